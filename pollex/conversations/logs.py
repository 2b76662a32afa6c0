"""Logs of conversations, read strictly and counted to the last row.

Nothing is read by guess. Parquet goes through DuckDB, which reads it faithfully, in a child process
(`iterate_parquet_rows`). JSON, JSON lines and CSV go through readers of our own (`json_rows`, `csv_rows`):
DuckDB's automatic ones turn ids into dates, take ragged tables for one column and lose one of two
equal keys without a word.

Every row ends as a conversation, an identical duplicate, a bad row with its place and reason, or a
row that its format has beside conversations; the counts add up. Many conversations are put on disk
(`SpilledList`), so that a log larger than memory can be read and walked through.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple, overload

import numpy as np
import numpy.typing as npt

from pollex.conversations.conversation import Conversation, Label, OddTextFlag
from pollex.errors import BadInput
from pollex.text import escape_controls, format_count, make_html_table


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row without a readable conversation, with its place, the reason and the remedy.

    Attributes:
        rows: How many rows of its conversation can't be used with it; 0 where they count as
            something else.
        of_label: Whether it can be read but for its label, which options can explain.
        label: How the label is spelled that nobody knows; empty for other reasons.
        option: What explains it, by names of options.
    """

    source: str
    line: int
    reason: str
    hint: str = ""
    rows: int = 1
    of_label: bool = False
    label: str = ""
    option: Mapping[str, object] = field(default_factory=dict, hash=False)

    def __str__(self) -> str:
        advice = f" → {self.hint}" if self.hint else ""
        return f"{self.source}:{self.line}: {self.reason}{advice}"

    def as_json(self) -> dict[str, str]:
        """Return where it is, and what is wrong with it."""
        return {"where": f"{self.source}:{self.line}", "reason": self.reason}


if TYPE_CHECKING:
    from pandas import DataFrame

MAX_CONVERSATIONS_SHOWN = 10
"""Conversations that a notebook shows of a log."""

TIME_FIELD_NAMES = (
    "timestamp",
    "created_at",
    "createdAt",
    "created",
    "sent_at",
    "datetime",
    "time",
    "date",
)
"""Usual fields that say when something was said."""
CONVERSATION_TIME_NAMES = (
    *TIME_FIELD_NAMES,
    *("started_at", "startedAt", "start_time", "startTime", "started", "start"),
    *("begun_at", "began_at", "opened_at", "openedAt"),
)
"""Fields of a whole conversation that say when it was had: also those of its beginning."""

NOT_RATED_NOTE_WORDS = "as not rated"
"""Words of a note on values of the label field that were not taken."""

MAX_ERRORS_LISTED = 5
"""How many bad rows or clashing ids an error lists."""


class ScoreKind(NamedTuple):
    """A kind of score in the files of other tools.

    Attributes:
        name: Empty where the tool's thumbs have none.
        source: As the tool writes it; empty where it doesn't say.
        scores: How many there are.
        taken: Whether it was read as the thumb.
    """

    name: str
    source: str
    scores: int
    taken: bool


@dataclass(slots=True)
class ReadingStatistics:
    """Statistics on reading files of other tools.

    Attributes:
        formats: Rows by format.
        ways: Conversations by the way that they were joined.
        scores: Kinds of scores, and which were taken for the thumb.
        general: Rows by general format, which no tool has to itself.
        spellings: Rows by the spelling of a label and what it was taken for: a label, or `neither`
            up nor down.
        rows: By file, how many rows became what; see `formats.conservation`.
        tables: Rows by the format of tables without words, such as users or files.
    """

    formats: Counter[str] = field(default_factory=Counter)
    ways: Counter[str] = field(default_factory=Counter)
    scores: list[ScoreKind] = field(default_factory=list)
    general: Counter[str] = field(default_factory=Counter)
    spellings: Counter[tuple[str, str]] = field(default_factory=Counter)
    rows: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    tables: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, repr=False)
class Logs:
    """The conversations that were read, and counts of rows that were not.

    Attributes:
        conversations: In the order of the files, each id once; on disk where they are many: walk,
            don't list them.
        bad_rows: Rows from which nothing could be read.
        duplicates: Rows left out because an identical conversation of the same id is there.
        overruled: Rows left out because `on_duplicate` prefers another of the same id.
        skipped: Rows that are no conversations of their own, a trace's inner runs for example.
        counts: Conversations by label.
        flags: Ids of the conversations with odd text, by what is odd.
        notes: What a reader of the report should know of how the log was understood.
        label_field: The field of the labels; empty where no row has one.
        group_field: The field that names users, where conversations are grouped by it without being
            told.
        account: The formats of other tools' files, how conversations were put together, and which
            scores there are.
        originals: What placeholders stand for, by id and text hash, where the log was redacted.
        columns: Which column is which part of a conversation, where that was found out.
        roles: Likewise whose turns the names of roles mean, as pairs of ours and the log's.
        fingerprint: SHA-256 (hex) over ids, turns, labels, judges and named groups; the rows' order
            doesn't matter.
        sources: Names of the files that they were read from; none where they were given in memory.
    """

    conversations: Sequence[Conversation] = field(repr=False)  # a notebook would show them all
    bad_rows: tuple[BadRow, ...] = ()
    duplicates: int = 0
    overruled: int = 0
    skipped: int = 0
    counts: dict[Label, int] = field(default_factory=dict)
    flags: dict[OddTextFlag, tuple[str, ...]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    label_field: str = ""
    group_field: str = ""
    columns: Mapping[str, str] = field(default_factory=dict, repr=False)
    roles: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    fingerprint: str = ""
    account: ReadingStatistics = field(default_factory=ReadingStatistics, repr=False)
    originals: dict[tuple[str, str], dict[str, str]] = field(
        default_factory=dict,
        repr=False,
    )
    sources: tuple[str, ...] = field(default=(), repr=False)

    def __len__(self) -> int:
        return len(self.conversations)

    @overload
    def __getitem__(self, place: int) -> Conversation: ...

    @overload
    def __getitem__(self, place: slice) -> list[Conversation]: ...

    def __getitem__(self, place: int | slice) -> Conversation | list[Conversation]:
        """Return a conversation by its place, or some of them: `logs[0]`, `logs[:5]`."""
        if isinstance(place, slice):
            return list(self.conversations[place])
        return self.conversations[place]

    def __repr__(self) -> str:
        up = self.counts.get(Label.POSITIVE, 0)
        down = self.counts.get(Label.NEGATIVE, 0)
        bad = ""
        if self.bad_rows:
            bad = f", {format_count(len(self.bad_rows), 'bad row')}"

        return f"<Logs: {format_count(len(self), 'conversation')}, {up} up, {down} down{bad}>"

    def _repr_html_(self) -> str:
        rows = []
        for c in islice(self, MAX_CONVERSATIONS_SHOWN):
            rows.append((c.id, c.label.value, len(c.turns), escape_controls(c.opening, 100)))
        return make_html_table(repr(self), ("id", "label", "turns", "begins"), rows)

    def to_frame(self) -> DataFrame:
        """Return a pandas table of a row a conversation."""
        from pandas import DataFrame  # it takes half a second to import

        columns = ("id", "label", "judge", "group", "turns", "opening")
        rows = []
        for c in self:
            rows.append((c.id, c.label.value, c.judge, c.group, len(c.turns), c.opening))

        return DataFrame(rows, columns=list(columns))

    def __iter__(self) -> Iterator[Conversation]:
        return iter(self.conversations)

    @property
    def positives(self) -> tuple[Conversation, ...]:
        """Conversations with a thumb up that a judge can be asked about."""
        return tuple(c for c in self if c.label is Label.POSITIVE and not c.not_scorable)

    @property
    def negatives(self) -> tuple[Conversation, ...]:
        """Conversations with a thumb down that a judge can be asked about."""
        return tuple(c for c in self if c.label is Label.NEGATIVE and not c.not_scorable)

    @property
    def learnable(self) -> tuple[Conversation, ...]:
        """Conversations with a thumb that a judge can be asked about, each text once."""
        return self._choose_once[0]

    @property
    def repeated(self) -> dict[str, str]:
        """Ids of labeled conversations that are not learned from, since the conversation with this id counts for all.

        Texts with as many thumbs up as down have no label to learn; their ids stand for themselves.
        """
        return self._choose_once[1]

    @cached_property
    def _choose_once(self) -> tuple[tuple[Conversation, ...], dict[str, str]]:
        """Choose one conversation of each text, with the label that most of its repetitions have.

        Where annotators are named each of them counts: what several say of one text is no
        repetition.
        """
        # labeled conversations of the same text, by each annotator
        alike: dict[tuple[str, str | None], list[Conversation]] = {}
        for conversation in self:
            if conversation.label is not Label.NONE and not conversation.not_scorable:
                alike.setdefault((conversation.text_hash, conversation.judge), []).append(
                    conversation
                )

        chosen_ones: list[Conversation] = []
        repeated: dict[str, str] = {}
        for same in alike.values():
            # the label of the majority; a tie has none
            ups = sum(conversation.label is Label.POSITIVE for conversation in same)
            majority = Label.POSITIVE if 2 * ups > len(same) else Label.NEGATIVE
            chosen = None
            if 2 * ups != len(same):
                chosen = next(c for c in same if c.label is majority)
                chosen_ones.append(chosen)
            for conversation in same:
                if conversation is not chosen:
                    repeated[conversation.id] = (chosen or conversation).id

        return tuple(chosen_ones), repeated

    @property
    def note_on_repeats(self) -> list[str]:
        """A note on labeled conversations of the same text; none without such."""
        if not (repeated := self.repeated):
            return []

        # the text that stands most often is the example
        id_, most = Counter(repeated.values()).most_common(1)[0]
        example = ""
        if most > 1:
            example = f" ({escape_controls(id_, 40)!r} stands {most + 1:,} times)"

        ties = sum(id_ == other for id_, other in repeated.items())
        split = ""
        if ties:
            split = (
                f"; the text of {ties:,} of these has as many thumbs up as down, and doesn't count"
            )

        left_out = format_count(
            len(repeated),
            "labeled conversation is",
            "labeled conversations are",
        )
        return [
            f"{left_out} left out, having the text of another one{example}: each text counts once, "
            f"with the label that most of its copies have{split}"
        ]

    @property
    def lost_labels(self) -> list[str]:
        """Notes on values of the label field that are no label as they stand."""
        return [note for note in self.notes if NOT_RATED_NOTE_WORDS in note]

    def check_max_bad(self, max_bad: int, meaning: Mapping[str, object]) -> None:
        """Stop where more rows are bad than the user agreed to.

        Args:
            meaning: Options that say what unknown labels mean; empty where nobody can tell.

        Raises:
            BadInput: Lists the first bad rows.
        """
        if (bad := len(self.bad_rows)) > max_bad:
            what = describe_bad_rows(self.bad_rows)
            # unknown labels can be explained by options; other rows are corrected, or skipped
            every = not self.conversations
            if any(row.of_label for row in self.bad_rows):
                hint = "say what these labels mean; no conversation need be left out for one"
                raise BadInput(what, hint=hint, option=meaning)
            hint = "correct them" if every else "correct them, or skip them"
            raise BadInput(
                what,
                hint=hint,
                option={} if every else {"max_bad": bad},
            )


def describe_bad_rows(rows: Sequence[BadRow]) -> str:
    """Return how many rows are bad, and why the first of them are."""
    return f"{format_count(len(rows), 'row is', 'rows are')} bad:{format_error_list(describe_bad_row_kinds(rows))}\n "


def describe_bad_row_kinds(rows: Sequence[BadRow]) -> list[str]:
    """Describe each kind of bad row once, with the number of rows."""
    # rows of the same reason and remedy count together
    groups: dict[tuple[str, str], list[BadRow]] = {}
    for row in rows:
        groups.setdefault((row.reason, row.hint), []).append(row)

    lines = []
    for same in groups.values():
        number = ""
        if len(same) > 1:
            number = f"{len(same)} rows, the first "
        lines.append(f"{number}{same[0]}")

    return lines


def format_error_list(lines: Sequence[str]) -> str:
    shown = "".join(f"\n  {line}" for line in lines[:MAX_ERRORS_LISTED])
    return shown + (
        f"\n  and {len(lines) - MAX_ERRORS_LISTED} more" if len(lines) > MAX_ERRORS_LISTED else ""
    )


def flag_positive_labels(conversations: Sequence[Conversation]) -> npt.NDArray[np.bool_]:
    """Return labels [conversation], true for positive."""
    return np.array([c.label is Label.POSITIVE for c in conversations], dtype=bool)


def list_labeled_conversations(conversations: Iterable[Conversation]) -> list[Conversation]:
    """Return those with a label that can be scored, in an order that their texts and ids decide."""
    ordered = sorted(conversations, key=lambda c: (c.text_hash, c.id))
    return [c for c in ordered if c.label is not Label.NONE and not c.not_scorable]
