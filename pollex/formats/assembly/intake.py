"""What is noted of all files while their rows are read."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pollex.conversations.conversation import Conversation, Turn
from pollex.conversations.logs import BadRow, ReadingStatistics
from pollex.errors import BadInput
from pollex.formats.feedback import (
    iterate_behavior_signals_of_row,
    parse_feedback_comment,
    parse_feedback_tags,
    split_signal_option_into_field_and_side,
)
from pollex.formats.fields import ReadOptions
from pollex.formats.json_rows import LogRow
from pollex.formats.labels import BadLabel
from pollex.formats.log_shapes.exports import WrongExportFile
from pollex.formats.log_shapes.readers import UnknownShape
from pollex.formats.log_shapes.turns import UnknownRole, UnreadableTurns
from pollex.formats.paths import get_path_value
from pollex.text import format_count

MAX_LABEL_ROWS_HELD_IN_MEMORY = 50_000
"""Rows that are held until all files are read, since they may label what is in them."""
MIN_UNKNOWN_ROW_SHARE_OF_UNKNOWN_LOG = 0.5
"""Share of rows without a known shape from which on the log is unknown."""
MAX_UNKNOWN_SPELLINGS_KEPT = 50


class Intake:
    """What is noted of all files.

    Attributes:
        account: What was read, by its kind.
        notes: What is told of the files.
        unread: Bad rows, which may be why parts don't fit together.
        odd: What had an odd shape, and where.
        unused: Columns of rows that aren't joined, named like feedback and no label, and how many
            have them.
        signals_found: Fields of signals that were there.
        comments_found: Whether the field that the user named for comments was there.
        label_rows: Rows that nobody knows, which may label what is in the files.
        labels_of: The files of those that do, one for each row.
    """

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._pages: set[str] = set()
        self.account = ReadingStatistics()
        self.notes: list[str] = []
        self.unread: list[BadRow] = []
        self.odd = OddityPlaces()
        self.unused: Counter[str] = Counter()
        self.signals_found: set[str] = set()
        self.comments_found = False
        self.label_rows: list[tuple[LogRow, BadRow]] = []
        self.labels_of: list[str] = []

    def note_page(self, row: LogRow) -> None:
        """Note that a file is one page of many."""
        if row.beside and row.source not in self._pages and _has_next_page(row.beside):
            self._pages.add(row.source)
            self.notes.append(
                f"{row.source} is a page of many, and the next isn't in it; give all pages"
            )

    def with_signals(self, conversation: Conversation, place: tuple[str, int]) -> Conversation:
        """Return a conversation with the signals that its fields tell of."""
        if not self._options.signals:
            return conversation

        signals = self.odd.happened(
            conversation.metadata,
            self._options.signals,
            place,
        )
        self.signals_found.update(
            split_signal_option_into_field_and_side(signal)[0] for signal in signals
        )
        return conversation.model_copy(update={"signals": signals})


def _has_next_page(envelope: Mapping[str, object]) -> bool:
    cursors = (
        "next_page_token",
        "next_cursor",
        "has_more",
        "next_page",
        "nextCursor",
        "nextPageToken",
    )
    if any(envelope.get(name) for name in cursors):
        return True

    info = []
    for name in ("meta", "pageInfo", "page_info"):
        info.append(envelope.get(name))

    further = ("cursor", "has_more", "hasNextPage")
    return any(
        isinstance(page_info, Mapping) and any(page_info.get(name) for name in further)
        for page_info in info
    )


MAX_PLACES_NAMED_PER_NOTE = 3
"""How many places a note names."""


class OddityPlaces:
    """Places of what was of an odd shape, by what it was."""

    def __init__(self) -> None:
        self._places: dict[str, dict[tuple[str, int], None]] = {}

    def add(self, what: str, place: tuple[str, int]) -> None:
        """Note that a row has something odd; several of a kind in one row format_count once."""
        self._places.setdefault(what, {})[place] = None

    def look_at(self, turns: Iterable[Turn], place: tuple[str, int]) -> None:
        """Note calls of tools without a name."""
        if any(not call.name for turn in turns for call in turn.calls):
            self.add("a tool call has no name, and is kept as it stands", place)

    def written(
        self,
        comment: object,
        tags: object,
        place: tuple[str, int],
    ) -> tuple[str, tuple[str, ...]]:
        """Return a comment and tags as text; what has an odd shape is noted, and kept as JSON."""
        comment_text = parse_feedback_comment(comment)
        chosen = parse_feedback_tags(tags)
        if comment_text is None:
            self.add(
                "a comment is neither text nor an object with text, and is kept as JSON",
                place,
            )
            comment_text = json.dumps(comment, ensure_ascii=False, default=str)

        if chosen is None:
            self.add("tags of a comment are no list of texts, and are kept as JSON", place)
            chosen = (json.dumps(tags, ensure_ascii=False, default=str),)

        return comment_text, chosen

    def happened(
        self,
        values: Mapping[str, object],
        signals: Sequence[str],
        place: tuple[str, int],
    ) -> dict[str, bool]:
        """Return which signals happened; a value that tells nothing is noted."""
        outcomes = dict(
            iterate_behavior_signals_of_row(
                {
                    name: get_path_value(values, name)
                    for name, _ in map(split_signal_option_into_field_and_side, signals)
                },
                signals,
            )
        )
        for signal in [signal for signal, yes in outcomes.items() if yes is None]:
            self.add(
                f"a value of {split_signal_option_into_field_and_side(signal)[0]!r} is neither yes nor no, "
                "and was left out",
                place,
            )

        return {signal: yes for signal, yes in outcomes.items() if yes is not None}

    @property
    def notes(self) -> list[str]:
        """A note on each kind."""
        lines: list[str] = []
        for what, places in self._places.items():
            lines.append(f"{what}: {_format_places(list(places))}")
        return lines


def _format_places(places: list[tuple[str, int]]) -> str:
    named = ", ".join(f"{source}:{line}" for source, line in places[:MAX_PLACES_NAMED_PER_NOTE])
    more = len(places) - MAX_PLACES_NAMED_PER_NOTE
    if more > 0:
        return f"{named} and {format_count(more, 'more row')}"
    return named


@dataclass
class UnknownRows:
    """Rows that no reader knows, and what else went wrong.

    Attributes:
        rows: How many rows can't be read as turns or conversations.
        unshaped: How many of them have no known shape.
        all_rows: How many rows there are; 0 where reading ended early.
        labels: How many rows have a label that isn't known.
        exports: How many rows are of a tool's export.
        near: What a row looks like that lacks something.
        roles: Names of roles that nobody knows.
        last_unshaped: Whether the last row that couldn't be read has no known shape.
        wrong_file: Whether the file is an export that can't be used.
        read: How many conversations were read.
        offered: Columns that are named like feedback, and weren't used.
        system_answers: Whether users are answered by a system in place of an assistant.
    """

    rows: int = 0
    unshaped: int = 0
    all_rows: int = 0
    near: str = ""
    roles: Counter[str] = field(default_factory=Counter)
    labels: int = 0
    exports: int = 0
    wrong_file: bool = False
    last_unshaped: bool = False
    read: int = 0
    offered: Sequence[str] = ()
    system_answers: bool = False

    def note(self, error: BadInput) -> None:
        """Look at why a row couldn't be read."""
        self.wrong_file = self.wrong_file or isinstance(error, WrongExportFile)
        for spelling in error.spellings if isinstance(error, UnknownRole) else ():
            if spelling in self.roles or len(self.roles) < MAX_UNKNOWN_SPELLINGS_KEPT:
                self.roles[spelling] += 1

        self.last_unshaped = isinstance(error, UnknownShape) and not error.options
        self.labels += isinstance(error, BadLabel)
        self.rows += isinstance(error, UnknownShape | UnreadableTurns)
        self.unshaped += isinstance(error, UnknownShape) and not error.options
        if isinstance(error, UnknownShape):
            self.near = self.near or error.near

    def forget(self, rows: int) -> None:
        """Take back what was noted of rows without a known shape that turned out to be labels."""
        self.rows -= rows
        self.unshaped -= rows

    @property
    def is_unknown(self) -> bool:
        """Whether it is the log that nobody knows, and not some rows that are damaged."""
        # a file that can't be used, and labels that can't be read, are no unknown shape
        if self.wrong_file or (self.labels and not self.rows):
            return False
        if self.rows or self.roles:
            return (
                bool(self.roles)
                or self.rows >= MIN_UNKNOWN_ROW_SHARE_OF_UNKNOWN_LOG * self.all_rows
            )
        return not self.read and not self.all_rows
