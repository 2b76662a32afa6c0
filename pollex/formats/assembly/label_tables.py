"""Tables of labels under any names beside an export: they are joined by whatever their ids name in it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from pollex.conversations.logs import BadRow
from pollex.formats.assembly.log_parts import LabelTargetKind, ToolScore
from pollex.formats.assembly.thumbs import (
    NPS_SCORE_NAMES,
    STAR_SCORE_NAMES,
    THUMB_SCORE_NAMES,
    keep_lowercase_letters_of_name,
)
from pollex.formats.columns import Column, list_columns
from pollex.formats.comments import find_comment_beside
from pollex.formats.json_rows import LogRow
from pollex.formats.label_columns import (
    is_ambiguous_label_column,
    is_label_column_name,
    rank_label_columns,
)
from pollex.formats.paths import MISSING_VALUE, find_value_at_path
from pollex.text import escape_controls, format_count

MAX_SAMPLE_ROWS = 200
"""Rows by which the columns of a table are told."""
MIN_SHARE_OF_IDS_KNOWN_IN_EXPORT = 0.5
"""Share of the values of a column of ids that the export has, too."""
LABEL_TARGET_KINDS_WIDEST_FIRST: tuple[LabelTargetKind, ...] = (
    "conversation",
    "trace",
    "span",
    "message",
)
"""What an id may name, the widest first."""
USUAL_THUMB_NAMES = THUMB_SCORE_NAMES | NPS_SCORE_NAMES | STAR_SCORE_NAMES

TargetIdByKindAndSpelling = Mapping[tuple[str, str], str]


@dataclass(frozen=True)
class LabelTable:
    """How a table labels what an export has.

    Attributes:
        key: The column whose values are ids of the export.
        target: What they name there.
        label: The column of the thumb.
    """

    key: str
    target: LabelTargetKind
    label: str

    def read(self, row: LogRow, targets: TargetIdByKindAndSpelling) -> ToolScore:
        """Return the thumb of a row, with what was written beside it."""
        comment = find_comment_beside(row.fields, self.label)
        # a name that says what its numbers mean stays with the thumb
        name = self.label if keep_lowercase_letters_of_name(self.label) in USUAL_THUMB_NAMES else ""
        return ToolScore(
            self.target,
            _normalize_target_id(find_value_at_path(row.fields, self.key), self.target, targets),
            find_value_at_path(row.fields, self.label),
            name=name,
            comment=None if comment is MISSING_VALUE else comment,
        )


class SettledRows(NamedTuple):
    """Rows without words, once it is known what an export has.

    Attributes:
        labels: Those that label something, each with its thumb.
        rest: Those that don't, each with why it can't be read alone.
        notes: What is told of the tables that label something.
    """

    labels: list[tuple[LogRow, ToolScore]]
    rest: list[tuple[LogRow, BadRow]]
    notes: list[str]


def match_label_rows_to_export(
    label_rows: Iterable[tuple[LogRow, BadRow]],
    targets: TargetIdByKindAndSpelling,
    label_field: str | None,
) -> SettledRows:
    """Return the thumbs of rows that no reader knows and that name what is in an export, and the other rows."""
    by_source: dict[str, list[tuple[LogRow, BadRow]]] = {}
    for row, bad in label_rows:
        by_source.setdefault(row.source, []).append((row, bad))

    settled = SettledRows([], [], [])
    for source, rows in by_source.items():
        table = find_label_table([row for row, _ in rows[:MAX_SAMPLE_ROWS]], targets, label_field)
        if table is None:
            settled.rest.extend(rows)
            continue

        settled.notes.append(
            f"{escape_controls(Path(source).name, 60)} labels the conversations: its {table.key!r:.60} is the id "
            f"of a {table.target}, and {table.label!r:.60} the thumb ({format_count(len(rows), 'row', 'rows')})"
        )
        for row, _ in rows:
            # a name that the user gave is the score's
            score = table.read(row, targets)
            if label_field:
                score = score._replace(name=label_field)
            settled.labels.append((row, score))

    return settled


def find_label_table(
    rows: Sequence[LogRow], targets: TargetIdByKindAndSpelling, label_field: str | None
) -> LabelTable | None:
    """Return how rows label what an export has; None where no column names it, or none may be a label."""
    columns = list_columns([row.fields for row in rows])
    keys = []
    for column in columns:
        for kind in LABEL_TARGET_KINDS_WIDEST_FIRST:
            share = _measure_known_share(column, kind, targets)
            if share >= MIN_SHARE_OF_IDS_KNOWN_IN_EXPORT:
                keys.append((share, -LABEL_TARGET_KINDS_WIDEST_FIRST.index(kind), column.path))

    if not keys:
        return None

    _, place, key = max(keys)
    free = []
    for column in columns:
        if column.path != key:
            free.append(column)

    label = _find_label_column(free, label_field)
    return (
        None if label is None else LabelTable(key, LABEL_TARGET_KINDS_WIDEST_FIRST[-place], label)
    )


def _measure_known_share(
    column: Column, kind: LabelTargetKind, targets: TargetIdByKindAndSpelling
) -> float:
    """Return the share of a column's values that are ids of some kind in an export."""
    ids = {_normalize_target_id(value, kind, targets) for value in column.values} - {""}
    known = sum((kind, id_) in targets for id_ in ids)
    return known / len(ids) if known else 0.0


def _find_label_column(columns: Sequence[Column], label_field: str | None) -> str | None:
    """Return the likeliest label of a table, one that the user named before all others."""
    paths = [column.path for column in columns]
    if label_field in paths:
        return label_field

    likeliest = next(rank_label_columns(columns), None)
    if likeliest is not None:
        return likeliest[0].path

    # a name is enough where it is the only one: what the values mean is asked for then
    named = []
    for column in columns:
        if is_ambiguous_label_column(column):
            named.append(column.path)

    named = named or [column.path for column in columns if is_label_column_name(column.path)]
    return named[0] if len(named) == 1 else None


def _normalize_target_id(
    value: object, kind: LabelTargetKind, targets: TargetIdByKindAndSpelling
) -> str:
    """Return an id as text, the name of a file as the export has it; empty for what is no id."""
    if isinstance(value, float) and value.is_integer():
        return f"{value:.0f}"
    if not isinstance(value, str | int) or isinstance(value, bool):
        return ""

    id_ = str(value)
    stem = Path(id_).stem
    if (kind, id_) not in targets and (kind, stem) in targets:
        return stem
    return id_
