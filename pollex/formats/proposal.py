"""What is said of a log that nobody knows: how it can be read, with its first conversation, or what is missing."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from pollex.conversations.conversation import Conversation, Label
from pollex.conversations.logs import Logs
from pollex.errors import BadInput, PollexError
from pollex.formats.assembly.intake import UnknownRows
from pollex.formats.certainty import is_certain
from pollex.formats.columns import Column, find_lists_of_turns, list_columns
from pollex.formats.fields import ReadOptions
from pollex.formats.inference import (
    Reading,
    ReadingCandidate,
    SampledRows,
    estimate_conversation_id_likelihood,
    estimate_role_likelihood,
    estimate_text_likelihood,
    iterate_labeled_candidates,
    iterate_speaker_guesses,
    rank_ways_to_read_rows,
    score_reading_as_conversations,
)
from pollex.formats.json_rows import LogRow
from pollex.formats.label_columns import format_value_counts
from pollex.formats.mapping import format_name_pairs
from pollex.text import JsonDict, JsonObject, escape_controls

MAX_SAMPLE_ROWS = 400
"""Rows that candidates are tried on."""
MAX_EXAMPLE_VALUES_PER_COLUMN = 3
MAX_VALUE_CHARS_SHOWN = 40
MAX_COLUMN_TABLE_LINES = 40
MAX_TURNS_SHOWN = 6
MAX_TURN_CHARS_SHOWN = 160
MAX_READINGS_TRIED_ON_WHOLE_LOG = 3
"""Readings of the sample that are tried on the whole log."""


class UnmappedLog(BadInput):
    """A log whose columns or roles nobody knows; the options say what they are, where a reading holds."""

    reading: Reading | None = None
    columns: Sequence[Column] = ()


RowSampleReader = Callable[[SampledRows, ReadOptions], Logs]
WholeLogReader = Callable[[ReadOptions], Logs]


def make_unmapped_error(
    rows: SampledRows,
    options: ReadOptions,
    strange: UnknownRows,
    where: str,
    refused: BadInput,
    read: RowSampleReader,
    read_all: WholeLogReader,
) -> UnmappedLog | None:
    """Return the error that proposes how to read a log, or says what is missing; None where columns aren't the matter.

    Args:
        rows: The first ones of the log.
        refused: Why it can't be read as it is.
        read: Reads rows.
        read_all: Reads the whole log.
    """
    if not rows:
        return None

    reading = find_verified_reading(rows, options, strange, read, read_all)
    columns = list_columns(rows)
    # where no reading helps, the error that names the unknown roles says most
    if reading is None and strange.roles and not strange.exports:
        error = UnmappedLog(
            refused.what,
            where=refused.where,
            hint=refused.hint,
            option=refused.options,
        )
        error.columns = columns
        return error
    if reading is None:
        return _make_unreadable_error(rows, columns, strange, where)
    # what is proposed, and why it is needed
    if strange.roles:
        spellings = strange.roles.most_common()
        unknown = ", ".join(
            f"{escape_controls(role, MAX_VALUE_CHARS_SHOWN)!r} ({n} rows)" for role, n in spellings
        )
        return make_proposal_error(
            reading,
            columns,
            f"roles that nobody knows: {unknown}",
            where,
        )

    return make_proposal_error(
        reading,
        columns,
        f"no known shape; its columns are\n{format_column_table(columns, reading)}",
        where,
    )


def make_proposal_error(
    reading: Reading,
    columns: Sequence[Column],
    begins: str,
    where: str,
) -> UnmappedLog:
    """Return the error that proposes a reading that holds, with its first conversation.

    Args:
        begins: What is said of the log first.
    """
    talk = "\n".join(format_shortened_conversation(reading.first_talks[0]))
    error = UnmappedLog(
        f"{begins}\nIt can be read, and begins so:\n{talk}\n{describe_label_column(reading)}",
        where=where,
        hint="Is this what was said? If so",
        option=format_candidate_options(reading.candidate),
    )
    error.reading = reading
    error.columns = columns

    return error


def find_verified_reading(
    rows: SampledRows,
    options: ReadOptions,
    strange: UnknownRows,
    read: RowSampleReader,
    read_all: WholeLogReader,
) -> Reading | None:
    """Return the best reading that holds for the first rows and for the whole log; None if there is none."""
    # shapes that lack only roles come before columns of any name
    roles_alone = sorted(
        _iterate_role_readings(rows, options, strange, read),
        key=_make_reading_rank,
        reverse=True,
    )
    readings_of_sample = [*roles_alone, *rank_ways_to_read_rows(rows, options, read)]
    for reading in [
        candidate_reading for candidate_reading in readings_of_sample if candidate_reading.holds
    ][:MAX_READINGS_TRIED_ON_WHOLE_LOG]:
        for whole in read_whole_log_with_candidate(reading.candidate, options, read_all):
            if whole.holds:
                certain = is_certain(whole, readings_of_sample, rows, options)
                return replace(whole, certain=certain)

    return None


def read_whole_log_with_candidate(
    candidate: ReadingCandidate,
    options: ReadOptions,
    read_all: WholeLogReader,
) -> Iterator[Reading]:
    """Yield what comes out when a whole log is read with a candidate, and with the last of thumbs that differ."""
    for thumbs in dict.fromkeys((options.thumbs, options.thumbs or "last")):
        try:
            logs = read_all(replace(candidate.options(options), thumbs=thumbs))
        except PollexError:
            continue

        rows = sum(sum(became.values()) for became in logs.account.rows.values())
        if thumbs != options.thumbs:
            labels = {**candidate.labels, "thumbs": thumbs or ""}
            yield score_reading_as_conversations(
                replace(candidate, labels=labels),
                logs,
                max(rows, 1),
                whole=True,
            )
        else:
            yield score_reading_as_conversations(candidate, logs, max(rows, 1), whole=True)


def _make_reading_rank(reading: Reading) -> tuple[bool, float]:
    labels = reading.logs.counts
    return bool(labels[Label.POSITIVE] or labels[Label.NEGATIVE]), reading.score


def _iterate_role_readings(
    rows: SampledRows,
    options: ReadOptions,
    strange: UnknownRows,
    read: RowSampleReader,
) -> Iterator[Reading]:
    """Yield readings in which only names of roles are new."""
    if not strange.roles:
        return

    for roles in iterate_speaker_guesses(rows, options):
        plain = ReadingCandidate(dict(options.columns), roles)
        for candidate in (plain, *iterate_labeled_candidates(rows, plain, options)):
            try:
                logs = read(rows, candidate.options(options))
            except PollexError:
                continue

            # labels that are found without being named are the surest
            if candidate is plain and (logs.counts[Label.POSITIVE] or logs.counts[Label.NEGATIVE]):
                yield replace(score_reading_as_conversations(candidate, logs, len(rows)), score=1.0)
            else:
                yield score_reading_as_conversations(candidate, logs, len(rows))


def format_candidate_options(candidate: ReadingCandidate) -> dict[str, object]:
    """Return the options of a candidate as somebody types them."""
    order = (
        "conversation",
        "parent",
        "id",
        "messages",
        "role",
        "text",
        "user",
        "assistant",
        "label",
        "comment",
        "time",
        "turn",
    )
    named = dict(candidate.columns)
    # a doubtful label is proposed, too, and its values are asked for
    if candidate.doubtful is not None:
        named["label"] = candidate.doubtful.path

    parts = sorted(
        named.items(),
        key=lambda pair: order.index(pair[0]) if pair[0] in order else 99,
    )
    options: dict[str, object] = {}
    if parts:
        options["columns"] = escape_controls(format_name_pairs(parts))
    if candidate.roles:
        options["roles"] = escape_controls(format_name_pairs(candidate.roles))

    return options | {name: escape_controls(value) for name, value in candidate.labels.items()}


def describe_label_column(reading: Reading) -> str:
    """Return which column may be the label, where nobody can tell what its values mean, or that none was found."""
    column = reading.candidate.doubtful
    counts = reading.logs.counts
    if column is not None:
        name = escape_controls(column.path, MAX_VALUE_CHARS_SHOWN)
        return (
            f"{name!r} may be the thumb, but what its values mean isn't known: "
            f"{escape_controls(format_value_counts(column), 200)}. Say it with positive and negative.\n"
        )
    if counts[Label.POSITIVE] or counts[Label.NEGATIVE]:
        return ""
    return "No column is taken for the thumb: name it as label, if there is one.\n"


def format_shortened_conversation(talk: Conversation) -> list[str]:
    """Return the lines of a conversation, cut short."""
    label = "no label" if talk.label is Label.NONE else talk.label.value
    lines = [f"  {escape_controls(talk.id, MAX_VALUE_CHARS_SHOWN)} ({label})"]
    for turn in talk.turns[:MAX_TURNS_SHOWN]:
        words = " ".join(turn.content.split())
        more = "…" if len(words) > MAX_TURN_CHARS_SHOWN else ""
        lines.append(
            f"    {turn.role}: {escape_controls(words[:MAX_TURN_CHARS_SHOWN], MAX_TURN_CHARS_SHOWN)}{more}"
        )

    if (rest := len(talk.turns) - MAX_TURNS_SHOWN) > 0:
        lines.append(f"    … {rest} more")

    return lines


def format_column_table(columns: Sequence[Column], reading: Reading | None = None) -> str:
    """Return each column with three values, and what it is in a reading."""
    shown = list(iterate_column_rows(columns, reading))
    wide = max((len(row["column"]) for row in shown), default=0)
    lines = []
    for row in shown[:MAX_COLUMN_TABLE_LINES]:
        examples = " · ".join(row["values"]) or "(empty)"
        part = f"  ({row['part']}?)" if row["part"] else ""
        lines.append(f"  {row['column']:<{wide}}  {examples}{part}")

    if (rest := len(shown) - MAX_COLUMN_TABLE_LINES) > 0:
        lines.append(f"  and {rest} more")

    return "\n".join(lines)


def iterate_column_rows(
    columns: Sequence[Column], reading: Reading | None = None
) -> Iterator[JsonDict]:
    """Yield each column with a value: its name, three values, and the part that it is in a reading."""
    named = reading.candidate.columns if reading else {}
    messages = named.get("messages")
    parts = {name: part for part, name in named.items()}
    # parts inside a list are shown with the list's path
    for part in ("role", "text") if messages else ():
        if part in named:
            parts[f"{messages}[].{named[part]}"] = part

    for column in columns:
        # the first different values, those of lists one by one
        values = (
            value
            for cell in column.values
            for value in (cell if isinstance(cell, list) else [cell])
        )
        filled = (value for value in values if value not in (None, "", [], {}))
        different = dict.fromkeys(
            escape_controls(str(_shorten_example_value(value)), MAX_VALUE_CHARS_SHOWN)
            for value in filled
        )
        if column.filled or column.path in parts:
            part = parts.get(column.path, "")
            yield {
                "column": escape_controls(column.path, MAX_VALUE_CHARS_SHOWN),
                "values": [*different][:MAX_EXAMPLE_VALUES_PER_COLUMN],
                "part": part,
            }


def _make_unreadable_error(
    rows: SampledRows,
    columns: Sequence[Column],
    strange: UnknownRows,
    where: str,
) -> UnmappedLog | None:
    """Return the error for a log that no candidate reads, with what is missing in its own names."""
    # exports, and logs of which some rows can be read, lack no names of columns
    if strange.exports or strange.read or strange.unshaped < strange.rows or not strange.rows:
        return None

    lacking = "; ".join(describe_missing_parts(rows, columns))
    near = f"; perhaps {strange.near}" if strange.near else ""
    error = UnmappedLog(
        "no known shape, and no way to read it was found; its columns are\n"
        f"{format_column_table(columns)}\n{lacking}{near}\n",
        where=where,
        hint="name the columns (parts are conversation, role, text, or messages, or user and assistant)",
        option="columns",
    )
    error.columns = columns

    return error


def describe_missing_parts(rows: SampledRows, columns: Sequence[Column]) -> Iterator[str]:
    """Yield what a log lacks to be read as conversations."""
    texts = []
    for column in columns:
        if estimate_text_likelihood(column) > 0.2:
            texts.append(column)

    pair = _find_two_answer_columns(
        [column for column in columns if any(" " in text for text in column.texts)]
    )
    if pair:
        both = " and ".join(repr(column.path) for column in pair)
        yield f"{both} are two answers to one question: a preference, and no conversation with a thumb"
        return

    lists = find_lists_of_turns(rows)
    if not texts:
        yield "no column has sentences that somebody said"
        return

    named = ", ".join(repr(column.path) for column in texts[:MAX_EXAMPLE_VALUES_PER_COLUMN])
    # the first that is missing: who speaks, which conversation, or turns of two sides
    if not any(estimate_role_likelihood(column) > 0.2 for column in columns) and not lists:
        yield f"words may be in {named}, but no column says who speaks"
    elif not any(estimate_conversation_id_likelihood(column) for column in columns) and not lists:
        yield f"words may be in {named}, but no column has a value that the rows of a conversation share"
    else:
        yield f"words may be in {named}, but what comes out does not look like turns of two sides"


def _find_two_answer_columns(texts: Sequence[Column]) -> list[Column]:
    """Return two columns of texts whose names differ in a number or a letter at the end."""
    stems: dict[str, list[Column]] = {}
    for column in texts:
        stem = column.path.rstrip("0123456789")
        if stem != column.path or column.path.endswith(("_a", "_b", "A", "B")):
            stems.setdefault(stem.removesuffix("a").removesuffix("b").rstrip("AB"), []).append(
                column
            )

    return next((columns[:2] for columns in stems.values() if len(columns) > 1), [])


def read_first_rows(sources: Iterable[Any], most: int = MAX_SAMPLE_ROWS) -> list[JsonObject]:
    """Return the first rows of some files that can be read at all; a first file takes half of the places at most."""
    first: list[JsonObject] = []
    for rows in sources:
        read = (row.fields for row in rows if isinstance(row, LogRow))
        first += islice(read, max(most // 2, 1) if first else most)
        if len(first) >= most * 1.5:
            break

    return first


def _shorten_example_value(value: object) -> object:
    if isinstance(value, list | dict):
        return json.dumps(value, ensure_ascii=False, default=str)[:200]
    return value[:200] if isinstance(value, str) else value
