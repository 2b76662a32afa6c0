"""Look at logs before anything is learned: formats, fields, labels, roles, lengths, languages, duplicates."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from itertools import islice
from typing import Any

from pollex.agents.embedded.spoken import load_language_identifier
from pollex.conversations.conversation import Conversation, Label, format_openai_messages
from pollex.conversations.logs import Logs, ReadingStatistics
from pollex.formats.conservation import (
    ROW_OUTCOME_ABOUT_CONVERSATIONS,
    ROW_OUTCOME_LABELS,
    ROW_OUTCOME_LEFT_OUT_BY_USER,
    ROW_OUTCOME_REPEATED,
    ROW_OUTCOME_REPLACED_BY_SAME_ID,
    ROW_OUTCOME_TURNS,
    ROW_OUTCOME_UNREADABLE,
)
from pollex.formats.fields import ReadOptions
from pollex.formats.labels import NEITHER_THUMB_VALUE
from pollex.formats.log_shapes.readers import iterate_metadata_times
from pollex.graphs.context import Progress
from pollex.services.few_thumbs import FEWEST_THUMBS_OF_EACH_CLASS, QUEUE_FILE_NAME, ThumbCounts
from pollex.services.logs import Sources, logs_from
from pollex.services.results import TabularResult
from pollex.text import JsonDict, NextCommand, TerminalLines, format_count, make_json_values

MAX_CONVERSATIONS_FOR_LANGUAGE = 2_000
"""Conversations whose language is told."""

LEAST_LANGUAGE_PROBABILITY = 0.8
"""Probability from which a language is named."""

MAX_EXAMPLE_TURNS = 6
MAX_EXAMPLE_CHARACTERS = 300
_CODE_PATTERN = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`|https?://\S+", re.DOTALL)
_ATTACHMENT_MARK_PATTERN = re.compile(r"\[(image|audio|video|file)\]")


MAX_NAMES_IN_SENTENCE = 12
"""Names in a sentence."""
LABELS_IN_WORDS = (
    (Label.POSITIVE, "up"),
    (Label.NEGATIVE, "down"),
    (Label.NONE, "not rated"),
    (NEITHER_THUMB_VALUE, "neither up nor down"),
)


@dataclass(frozen=True)
class LengthSummary:
    """The shortest, the median and the longest conversation."""

    shortest: int
    median: int
    longest: int

    @classmethod
    def of(cls, lengths: Iterable[int]) -> LengthSummary:
        """Sort lengths; 0 where there are none."""
        # no conversation counts as one of length 0
        in_order = sorted(lengths) or [0]
        return cls(in_order[0], in_order[len(in_order) // 2], in_order[-1])

    def __str__(self) -> str:
        return f"{self.shortest} to {self.longest} (median {self.median})"


@dataclass(frozen=True, kw_only=True, repr=False)
class Inspection(TabularResult):
    """The content of log files.

    Attributes:
        account: Formats, how conversations were joined, spellings of labels, and the scores found.
        fields: Number of conversations by field.
        roles: Number of turns by role.
        attached: Number of images, files and so on in the turns, by kind.
        languages: Number of conversations by language of the user's words; empty for too few words.
        comments: Conversations that somebody wrote a comment or chose a tag for.
        tools: Number of calls by tool.
        times: Day of the first and of the last turn; empty where none has a time.
        group: A field whose values several conversations share, and how many values it has; None
            where there is none.
        same_text: Conversations whose turns are those of another one.
        examples: A conversation with a thumb up and one with a thumb down, else the first two.
    """

    logs: Logs
    account: ReadingStatistics
    fields: dict[str, int]
    roles: dict[str, int]
    turns: LengthSummary
    words: LengthSummary
    attached: dict[str, int]
    languages: dict[str, int]
    comments: int
    tools: dict[str, int]
    times: tuple[str, ...]
    group: tuple[str, int] | None
    same_text: int
    examples: tuple[Conversation, ...]

    @property
    def headline(self) -> str:
        return f"{len(self.logs)} conversations, {len(self.logs.bad_rows)} bad rows"

    def records(self) -> Iterable[dict[str, object]]:
        return ({"field": name, "conversations": n} for name, n in self.fields.items())

    @property
    def complete(self) -> bool:
        """Whether every row was read."""
        return not self.logs.bad_rows

    def told(self, sources: Any, given_options: Mapping[str, object]) -> TerminalLines:
        """Yield a sentence for each question, two conversations, and the command to learn from them.

        Args:
            given_options: The options that it was read with.
        """
        yield from _describe_inspection(self)
        for example in self.examples:
            yield ""
            yield from _render_example(example)

        yield ""
        thumbs = ThumbCounts.of(self.logs)
        first = NextCommand(
            "Or give the first, to a random sample: ",
            "label next",
            sources,
            {**given_options, "out": QUEUE_FILE_NAME},
        )
        # what to do next depends on how many thumbs there are
        if min(thumbs.up, thumbs.down) < FEWEST_THUMBS_OF_EACH_CLASS:
            yield "Nothing can be learned yet: it takes thumbs up and down. If the log has any, name their field."
            if isinstance(sources, tuple):
                yield first
        elif thumbs.few and isinstance(sources, tuple):
            yield from thumbs.told()
            yield "Until then learning lists what is there, as hints, and what to label next:"
            yield NextCommand("", "learn", sources, {**given_options})
        elif isinstance(sources, tuple):
            yield NextCommand("Learn from it: ", "learn", sources, {**given_options})

    def as_json(self) -> JsonDict:
        account = self.account
        spellings = {}
        for meant in (*(label.value for label in Label), NEITHER_THUMB_VALUE):
            spellings[meant] = self.spellings(meant)

        return {
            "conversations": len(self.logs),
            "formats": dict(account.formats + account.general),
            "put_together": dict(account.ways),
            "fields": self.fields,
            "label_field": self.logs.label_field,
            "labels": {label.value: self.logs.counts.get(label, 0) for label in Label},
            "spellings": spellings,
            "scores": [kind._asdict() for kind in account.scores],
            **self.of(
                "roles", "turns", "words", "attached", "languages", "comments", "tools", "times"
            ),
            "group": self.group and {"field": self.group[0], "values": self.group[1]},
            "duplicates": {"identical": self.logs.duplicates, "same_text": self.same_text},
            "bad_rows": make_json_values(self.logs.bad_rows),
            "rows": {source: dict(became) for source, became in account.rows.items()},
            "notes": list(self.logs.notes),
            "examples": [
                {"id": c.id, "label": c.label.value, "messages": format_openai_messages(c)}
                for c in self.examples
            ],
        }

    def spellings(self, meaning: str) -> dict[str, int]:
        """Return how a label, or what was taken for `NEITHER_THUMB_VALUE`, was written, with the number of rows."""
        spellings: dict[str, int] = {}
        for (spelling, meant), n in self.account.spellings.most_common():
            if meant == meaning:
                spellings[spelling] = n
        return spellings


def inspect_logs(
    sources: Sources | Logs,
    *,
    reading: ReadOptions,
    progress: Progress,
) -> Inspection:
    """Read files, and describe what they hold.

    Raises:
        BadInput: A file or row can't be read.
        WrongUse: The options contradict each other or the log.
    """
    logs = logs_from(sources, reading, progress)
    # conversations with the same turns, whatever their ids
    hashes = Counter(conversation.text_hash for conversation in logs)
    # one example of each thumb, where both occur
    firsts = (
        next((conversation for conversation in logs if conversation.label is label), None)
        for label in (Label.POSITIVE, Label.NEGATIVE)
    )
    rated = []
    for first in firsts:
        if first is not None:
            rated.append(first)

    # a mark in the text stands for what was attached
    marks: Counter[str] = Counter()
    for conversation in logs:
        for turn in conversation.turns:
            for mark in _ATTACHMENT_MARK_PATTERN.findall(turn.content):
                marks[mark] += 1
    names = []
    for conversation in logs:
        for name in conversation.metadata:
            if name != logs.label_field:
                names.append(name)

    fields = _count_by_frequency(names)

    tool_names = []
    for conversation in logs:
        for turn in conversation.turns:
            for call in turn.calls:
                tool_names.append(call.name)

    turn_counts = []
    for conversation in logs:
        turn_counts.append(len(conversation.turns))

    return Inspection(
        logs=logs,
        account=logs.account,
        fields=fields,
        roles=_count_by_frequency(
            turn.role for conversation in logs for turn in conversation.turns
        ),
        turns=LengthSummary.of(turn_counts),
        words=LengthSummary.of(
            sum(len(turn.content.split()) for turn in conversation.turns) for conversation in logs
        ),
        attached=dict(marks.most_common()),
        languages=_count_by_frequency(
            make_language_detector()(join_user_words(conversation))
            for conversation in islice(logs, MAX_CONVERSATIONS_FOR_LANGUAGE)
        ),
        comments=sum(bool(conversation.feedback) for conversation in logs),
        tools=_count_by_frequency(tool_names),
        times=_format_time_range(logs),
        group=_find_group_field(logs, reading.named_group),
        same_text=sum(n - 1 for n in hashes.values()),
        # without both kinds of thumb, the first two conversations will do
        examples=tuple(rated) if len(rated) == 2 else tuple(islice(logs, 2)),
    )


def join_user_words(conversation: Conversation) -> str:
    """Return the user's words without code and addresses."""
    # code and addresses belong to no language
    user_texts = []
    for turn in conversation.turns:
        if turn.role == "user":
            user_texts.append(turn.content[:1000])

    words = " ".join(user_texts)
    return _CODE_PATTERN.sub(" ", words)[:4000]


@lru_cache(maxsize=1)
def make_language_detector() -> Callable[[str], str]:
    """Return what tells the language of a text (ISO 639-1); `unsure` for few words, or many languages."""

    def language(text: str) -> str:
        name, probability = load_language_identifier().classify(text)
        if probability >= LEAST_LANGUAGE_PROBABILITY and text.strip():
            return str(name)
        return "unsure"

    return language


def _format_time_range(logs: Logs) -> tuple[str, ...]:
    times: list[float] = []
    for conversation in logs:
        times.extend(iterate_metadata_times(conversation.metadata))
    if times:
        # the first and the last day, in UTC so that every machine says the same
        return tuple(
            f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d}" for at in (min(times), max(times))
        )
    return ()


def _find_group_field(logs: Logs, field: str | None) -> tuple[str, int] | None:
    """Return the field of the groups, and how many values it has; None where each conversation stands alone."""
    values = Counter(conversation.group for conversation in logs)
    # a group of one conversation each is no group: some value has to be shared
    del values[None]
    if 1 < len(values) < values.total():
        return (field or logs.group_field or "group", len(values))
    return None


def _count_by_frequency(names: Iterable[str]) -> dict[str, int]:
    return dict(Counter(names).most_common())


def _describe_inspection(inspection: Inspection) -> Iterator[str]:
    account = inspection.account
    logs = inspection.logs
    ways = ""
    if account.ways:
        ways = f", put together {_list_names_in_sentence(account.ways)}"

    yield (
        f"{format_count(len(logs), 'conversation')} in the shape of "
        f"{_list_names_in_sentence(account.formats + account.general)}{ways}."
    )
    lengths = f"{inspection.turns} turns and {inspection.words} words a conversation"
    yield f"Roles: {_list_names_in_sentence(inspection.roles)}; {lengths}."
    yield from _describe_thumbs(inspection)
    yield from _describe_left_out(inspection)
    if not inspection.comments:
        wrote = "Nobody wrote a comment with the thumb"
    else:
        wrote = f"Comments or tags stand with {format_count(inspection.comments, 'conversation')}"

    yield f"{wrote}."
    yield (
        f"Tools were called: {_list_names_in_sentence(inspection.tools)}."
        if inspection.tools
        else "No tool was called."
    )
    if inspection.attached:
        yield f"Attached are {_list_names_in_sentence(inspection.attached)}."

    yield f"Languages of the users' words: {_list_names_in_sentence(inspection.languages)}."
    yield (
        f"Said between {inspection.times[0]} and {inspection.times[1]}."
        if inspection.times
        else "No time is known of any turn."
    )
    if inspection.group:
        name, different = inspection.group
        yield f"Groups: {name!r} has {different} values; what shares one counts together."
    if inspection.fields:
        yield f"Other fields, kept with the conversations: {_list_names_in_sentence(inspection.fields)}."


def _describe_thumbs(inspection: Inspection) -> Iterator[str]:
    logs = inspection.logs
    kinds = inspection.account.scores
    numbers = ", ".join(
        f"{logs.counts.get(label, 0)} {noun}" for label, noun in LABELS_IN_WORDS[:3]
    )
    # a tool's own thumb has no name of a field
    kind_taken = next((kind for kind in kinds if kind.taken), None)
    tool = (
        "the tool's own thumbs"
        if kind_taken and not kind_taken.name
        else kind_taken and repr(kind_taken.name)
    )
    name = repr(logs.label_field) if logs.label_field else tool
    yield f"The thumb is {name}: {numbers}." if name else "No field is taken for the thumb."
    for label, noun in LABELS_IN_WORDS:
        # how each side is spelled in the log
        if values := inspection.spellings(label):
            yield f"  taken for {noun}: {_list_names_in_sentence(values)}"

    for kind in kinds:
        source = f" from {kind.source}" if kind.source else ""
        used = "read as the thumb" if kind.taken else "not used"
        yield f"  score {kind.name or 'of the tool'!r}{source} ({kind.scores}): {used}"


def _describe_left_out(inspection: Inspection) -> Iterator[str]:
    logs = inspection.logs
    texts = inspection.same_text
    sentences = [
        f"{format_count(logs.duplicates, 'identical row')}, counted once"
        if logs.duplicates
        else "",
        f"{format_count(texts, 'conversation has', 'conversations have')} the text of another one"
        if texts
        else "",
        f"{format_count(logs.skipped, 'row')} inside other steps" if logs.skipped else "",
        f"{format_count(logs.overruled, 'conversation')} of an id that another one has"
        if logs.overruled
        else "",
        f"{format_count(len(logs.bad_rows), 'bad row')}" if logs.bad_rows else "",
    ]
    yield f"Left out: {'; '.join(filter(None, sentences)) or 'nothing'}."
    yield from _describe_rows(inspection.account)


ROW_OUTCOMES_IN_WORDS = {
    ROW_OUTCOME_TURNS: "with words",
    ROW_OUTCOME_LABELS: "with thumbs or scores alone",
    ROW_OUTCOME_ABOUT_CONVERSATIONS: "of tables beside",
    ROW_OUTCOME_REPEATED: "again with what another one says",
    ROW_OUTCOME_REPLACED_BY_SAME_ID: "in whose place another one of the id counts",
    ROW_OUTCOME_UNREADABLE: "bad",
    ROW_OUTCOME_LEFT_OUT_BY_USER: "left out as you said",
}
"""What is said of rows, by what became of them."""


def _describe_rows(account: ReadingStatistics) -> Iterator[str]:
    """Yield what became of all rows, for each of the first files where there are several."""
    # each file has its own sum, as far as a terminal has room
    for source, became in list(account.rows.items())[:MAX_NAMES_IN_SENTENCE]:
        counts_text = []
        for outcome, row_outcome in ROW_OUTCOMES_IN_WORDS.items():
            if became.get(outcome):
                counts_text.append(f"{became[outcome]} {row_outcome}")

        name = f"Rows of {source}" if len(account.rows) > 1 else "Rows"
        yield f"{name}: {sum(became.values())} = {' + '.join(counts_text) or 'none'}."

    if (rest := len(account.rows) - MAX_NAMES_IN_SENTENCE) > 0:
        yield f"  and those of {format_count(rest, 'more file')}, all accounted for"
    if account.tables:
        yield f"  tables beside: {_list_names_in_sentence(account.tables)}"


def _list_names_in_sentence(named: Mapping[str, int]) -> str:
    rest = len(named) - MAX_NAMES_IN_SENTENCE
    name_counts = []
    for name, number in list(named.items())[:MAX_NAMES_IN_SENTENCE]:
        name_counts.append(f"{name} ({number})")

    shown = ", ".join(name_counts)
    return f"{shown} and {rest} more" if rest > 0 else shown


def _render_example(conversation: Conversation) -> Iterator[str]:
    yield f"{conversation.id} ({conversation.label.value if conversation.label is not Label.NONE else 'no label'})"
    for turn in conversation.turns[:MAX_EXAMPLE_TURNS]:
        words = " ".join(turn.content.split())
        yield f"  {turn.role}: {words[:MAX_EXAMPLE_CHARACTERS]}{'…' if len(words) > MAX_EXAMPLE_CHARACTERS else ''}"

    if (rest := len(conversation.turns) - MAX_EXAMPLE_TURNS) > 0:
        yield f"  … {format_count(rest, 'more turn')}"
