"""Counts of what was read: conversations, duplicates, clashes, bad and skipped rows."""

import hashlib
import json
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NamedTuple, overload

from pollex.conversations.conversation import Conversation, Feedback, Label, OddTextFlag
from pollex.conversations.logs import BadRow, Logs, format_error_list
from pollex.errors import BadInput
from pollex.formats.assembly.log_parts import ToolScore
from pollex.formats.conservation import (
    ROW_OUTCOME_LEFT_OUT_BY_USER,
    ROW_OUTCOME_REPEATED,
    ROW_OUTCOME_REPLACED_BY_SAME_ID,
    ROW_OUTCOME_TURNS,
    ROW_OUTCOME_UNREADABLE,
    RowOutcomeCounter,
)
from pollex.formats.fields import ReadOptions
from pollex.text import JsonDict, format_count

MAX_TEXT_BYTES_IN_MEMORY = 100_000_000
"""Bytes of text, about, that are kept in memory."""
MEMORY_BYTES_PER_TURN_BESIDE_TEXT = 500
"""Bytes that a turn takes beside its text."""


class SpilledList(Sequence[Conversation]):
    """A growing list of conversations that may not fit into memory, read in any order.

    Its temporary file has no name and is removed with the list. Reading one conversation costs one
    read and one parse.
    """

    def __init__(self, memory: int = MAX_TEXT_BYTES_IN_MEMORY) -> None:
        self._room = memory
        self._kept: list[Conversation] = []
        self._file: IO[bytes] | None = None
        self._places: list[tuple[int, int]] = []
        self._lock = threading.Lock()
        self._groups: Mapping[str, str] = {}

    def group(self, groups: Mapping[str, str]) -> None:
        """Put conversations into groups, by id, where they aren't in one that somebody named."""
        self._groups = groups
        self._kept = [self._grouped(conversation) for conversation in self._kept]

    def _grouped(self, conversation: Conversation) -> Conversation:
        group = self._groups.get(conversation.id)
        if group is None:
            return conversation
        return conversation.model_copy(update={"group": group})

    def append(self, conversation: Conversation) -> None:
        """Put one more at the end."""
        if self._file is not None:
            self._places.append(self._written(self._file, conversation))
            return

        self._kept.append(conversation)
        self._room -= sum(
            turn.size + MEMORY_BYTES_PER_TURN_BESIDE_TEXT for turn in conversation.turns
        )
        # the memory is used up: all conversations move to the file
        if self._room < 0:
            self._file = tempfile.TemporaryFile()  # noqa: SIM115
            self._places = [self._written(self._file, earlier) for earlier in self._kept]
            self._kept = []

    def replace(self, index: int, conversation: Conversation) -> None:
        """Put another in one's place."""
        if self._file is None:
            self._kept[index] = conversation
        else:
            # the earlier text stays in the file, where nothing points to it
            self._places[index] = self._written(self._file, conversation)

    @property
    def on_disk(self) -> bool:
        """Whether the list was moved to disk."""
        return self._file is not None

    def __len__(self) -> int:
        return len(self._kept) + len(self._places)

    @overload
    def __getitem__(self, index: int) -> Conversation: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Conversation]: ...
    def __getitem__(self, index: int | slice) -> Conversation | Sequence[Conversation]:
        if isinstance(index, slice):
            return tuple(self[i] for i in range(*index.indices(len(self))))
        if self._file is None:
            return self._kept[index]
        return self._read(self._file, *self._places[index])

    def _written(self, file: IO[bytes], conversation: Conversation) -> tuple[int, int]:
        """Append a conversation to the file; return its place and length.

        `json` is used because pydantic writes null for NaN in metadata.
        """
        content = json.dumps(conversation.model_dump()).encode("ascii")
        # the file has one position for all threads
        with self._lock:
            place = file.seek(0, 2)
            file.write(content)
        return place, len(content)

    def _read(self, file: IO[bytes], place: int, length: int) -> Conversation:
        with self._lock:
            file.seek(place)
            content = file.read(length)
        return self._grouped(Conversation.model_validate(json.loads(content)))


CONTENT_ID_PREFIX = "sha256-"
"""How an id begins that was made from a row's content."""


class PlacedConversation(NamedTuple):
    """A conversation, and the place of its first row.

    Attributes:
        number: The rating that its label was read from, which `LogTally.settle` keeps or not; empty
            for other labels.
        rows: How many rows it was made of; 0 where they were counted as parts of an export.
    """

    conversation: Conversation
    source: str
    line: int
    number: str = ""
    rows: int = 1


class SkippedRow(NamedTuple):
    """A row that is no conversation of its own, and nothing wrong with it."""

    source: str
    line: int
    outcome: str = ROW_OUTCOME_LEFT_OUT_BY_USER
    rows: int = 1


class SeparateVote(NamedTuple):
    """A thumb from another file than its conversation's."""

    id: str
    label: Label
    judge: str | None
    feedback: tuple[Feedback, ...]


@dataclass(slots=True)
class ConversationRecord:
    """The record of a conversation that was read.

    Attributes:
        index: Its place in the list on disk.
        digest: Hash of everything that makes two conversations of one id identical.
        number: As in `PlacedConversation`.
    """

    index: int
    digest: bytes
    label: Label
    flags: tuple[OddTextFlag, ...]
    place: str
    number: str = ""


class LogTally:
    """Takes what is read, one by one, finds duplicates and counts.

    Attributes:
        grouped: Whether any conversation came with a group.
    """

    def __init__(
        self,
        options: ReadOptions,
        memory: int | None = None,
        conservation: RowOutcomeCounter | None = None,
    ) -> None:
        self._conservation = conservation or RowOutcomeCounter()
        self._on_duplicate = options.on_duplicate
        self._labels_needed = options.labels_needed
        if memory is None:
            self._shelf = SpilledList()
        else:
            self._shelf = SpilledList(memory)

        self._entries: dict[str, ConversationRecord] = {}
        self._bad_rows: list[BadRow] = []
        self._clashes: list[str] = []
        self._by_number: list[tuple[ConversationRecord, PlacedConversation]] = []
        self._counts: Counter[str] = Counter()
        self._rated: dict[str, dict[str, Label]] = {}
        self._each_judge = options.judge_field is not None
        self._messages: dict[str, str] | None = None
        self.grouped = False
        self._values: dict[str, str | None] | None = None
        self._files: dict[str, str | None] | None = None

    def add(self, item: PlacedConversation | SkippedRow | SeparateVote | BadRow) -> None:
        """Keep a conversation unless its id is taken; count anything else."""
        if isinstance(item, SeparateVote):
            self._label(item)
        elif isinstance(item, BadRow):
            self._bad_rows.append(item)
            self._conservation.add(item.source, ROW_OUTCOME_UNREADABLE, item.rows)
        elif isinstance(item, SkippedRow):
            # inner steps of traces are no rows of their own
            self._counts["skipped"] += item.rows == 0
            self._conservation.add(item.source, item.outcome, item.rows)
        elif (entry := self._entries.get(item.conversation.id)) is None:
            self._entries[item.conversation.id] = _make_record(len(self._shelf), item)
            self._shelf.append(item.conversation)
            self.grouped |= item.conversation.group is not None
            self._conservation.add(item.source, ROW_OUTCOME_TURNS, item.rows)
        else:
            # the id is known: what this conversation is shows by what is counted for it
            before = self._counts["overruled"]
            self._meet(entry, item)
            if self._counts["overruled"] > before:
                outcome = ROW_OUTCOME_REPLACED_BY_SAME_ID
            else:
                outcome = ROW_OUTCOME_REPEATED

            self._conservation.add(item.source, outcome, item.rows)

    def owner_of(self, score: ToolScore) -> str | None:
        """Return the conversation that a score names by its id, or by a message's; None if there is none."""
        if score.target == "conversation" and score.id in self._entries:
            return score.id

        # keys of messages are collected when a score first asks for them
        if self._messages is None:
            self._messages = {
                key: conversation.id
                for conversation in self._shelf
                for key in _iterate_message_keys(conversation)
            }

        named = self._messages.get(score.message or score.id)
        return named or self._owner_by_value(score.id) or self._owner_by_file(score.id)

    def _owner_by_file(self, name: str) -> str | None:
        """Return the one conversation of the file with a name; None if there is none, or it has several."""
        if self._files is None:
            self._files = {}
            for id_, entry in self._entries.items():
                path = Path(entry.place.rpartition(":")[0])
                # a name that two conversations share leads to neither
                for spelled in {path.name, path.stem}:
                    self._files[spelled] = None if spelled in self._files else id_

        return self._files.get(name)

    def _owner_by_value(self, value: str) -> str | None:
        """Return the one conversation without an id that has a value in a field; None if there are several."""
        if self._values is None:
            self._values = {}
            for conversation in self._shelf:
                if not conversation.id.startswith(CONTENT_ID_PREFIX):
                    continue
                for value_beside in _collect_short_values(conversation):
                    is_shared = value_beside in self._values
                    self._values[value_beside] = None if is_shared else conversation.id

        return self._values.get(value)

    def _label(self, voted: SeparateVote) -> None:
        entry = self._entries[voted.id]
        conversation = self._shelf[entry.index]
        # a label of the log itself stays; comments are added, each once
        written = {(known.comment, known.tags) for known in conversation.feedback}
        further = []
        for feedback in voted.feedback:
            if feedback.author or (feedback.comment, feedback.tags) not in written:
                further.append(feedback)

        changes: JsonDict = {"feedback": (*conversation.feedback, *further)}
        if entry.label is Label.NONE and voted.label is not Label.NONE:
            changes |= {"label": voted.label, "judge": voted.judge or conversation.judge}

        self._replace(voted.id, entry, conversation.model_copy(update=changes))

    def _replace(
        self,
        id_: str,
        entry: ConversationRecord,
        conversation: Conversation,
    ) -> None:
        # a source may have colons in its name; the line stands behind the last one
        source, _, line = entry.place.rpartition(":")
        self._entries[id_] = _make_record(
            entry.index,
            PlacedConversation(conversation, source, int(line)),
        )
        self._shelf.replace(entry.index, conversation)

    def settle(self, numbers: frozenset[str], majority: Callable[[Sequence[Label]], Label]) -> None:
        """Take the label from every conversation that has it from a rating which is no thumb.

        Args:
            numbers: The ratings that are thumbs.
            majority: The label of a conversation that several people rated.
        """
        # conversations that several people rated
        for id_, rated in self._rated.items():
            label = majority(list(rated.values()))
            entry = self._entries[id_]
            self._replace(
                id_,
                entry,
                self._shelf[entry.index].model_copy(update={"label": label}),
            )

        # conversations of one id that differ by a number: a clash only where numbers are thumbs
        for recorded, item in self._by_number:
            if {recorded.number, item.number} - {""} <= numbers:
                self._meet_another(recorded, item)
            else:
                self._counts["duplicates"] += 1

        # labels read from numbers that are no thumbs
        for id_, entry in self._entries.items():
            if entry.number not in numbers | {""} and entry.label is not Label.NONE:
                self._replace(
                    id_,
                    entry,
                    self._shelf[entry.index].model_copy(update={"label": Label.NONE}),
                )

    @property
    def labels(self) -> dict[str, Label]:
        """Labels of the conversations that were taken in, by id."""
        return {id_: entry.label for id_, entry in self._entries.items()}

    @property
    def conversations(self) -> Sequence[Conversation]:
        """The conversations that were taken in."""
        return self._shelf

    def group(self, groups: Mapping[str, str]) -> None:
        """Put conversations into groups, by id."""
        self._shelf.group(groups)

    def check_clashes(self) -> None:
        """Raise an error if different conversations share an id and no option decides.

        Raises:
            BadInput: Lists the first of them.
        """
        if self._clashes:
            ids = format_count(len(self._clashes), "id has", "ids have")
            what = f"{ids} different conversations:{format_error_list(self._clashes)}\n "
            raise BadInput(
                what,
                hint="make ids unique, or say which counts",
                option={"on_duplicate": "last"},
            )

    def logs(self, notes: Sequence[str]) -> Logs:
        """Everything that was taken in."""
        entries = self._entries
        flags: dict[OddTextFlag, list[str]] = {}
        for id_, entry in entries.items():
            for flag in entry.flags:
                flags.setdefault(flag, []).append(id_)

        counts = Counter(entry.label for entry in entries.values())
        return Logs(
            conversations=self._shelf if self._shelf.on_disk else tuple(self._shelf),
            bad_rows=tuple(self._bad_rows),
            duplicates=self._counts["duplicates"],
            overruled=self._counts["overruled"],
            skipped=self._counts["skipped"],
            counts={label: counts[label] for label in Label},
            flags={flag: tuple(ids) for flag, ids in flags.items()},
            notes=(*notes, *self._own_notes()),
            # equal for the same conversations in any order
            fingerprint=hashlib.sha256(
                b"".join(sorted(entry.digest for entry in entries.values()))
            ).hexdigest(),
        )

    def _meet(self, recorded: ConversationRecord, item: PlacedConversation) -> None:
        # identical, another rater's, of another label, or another conversation
        entry = _make_record(recorded.index, item)
        if entry.digest == recorded.digest:
            self._counts["duplicates"] += 1
        elif self._is_another_raters(recorded, item):
            self._rate(recorded, item)
        elif not self._labels_needed and self._differ_in_label(recorded, item):
            # two labels where none is needed: neither is taken
            self._counts["duplicates"] += 1
            unlabeled = item.conversation.model_copy(update={"label": Label.NONE})
            self._replace(unlabeled.id, recorded, unlabeled)
        elif (recorded.number or entry.number) and self._differ_in_label(recorded, item):
            # whether the numbers are labels shows once all rows are read
            self._by_number.append((recorded, item))
        else:
            self._meet_another(recorded, item)

    def _is_another_raters(self, recorded: ConversationRecord, item: PlacedConversation) -> bool:
        """Return whether somebody else rated the conversation that is known."""
        before = self._shelf[recorded.index]
        conversation = item.conversation
        judges = {before.judge, conversation.judge, *self._rated.get(conversation.id, ())}

        return (
            before.turns == conversation.turns
            and None not in judges - {before.judge}
            and bool(before.judge or self._rated)
        )

    def _rate(self, recorded: ConversationRecord, item: PlacedConversation) -> None:
        """Keep another rater's label: for the majority, or with judges wanted as a conversation of its own."""
        conversation = item.conversation
        before = self._shelf[recorded.index]
        # an id of its own for each judge, in the group of the conversation
        if self._each_judge:
            update = {
                "id": f"{conversation.id}#{conversation.judge}",
                "group": conversation.group or conversation.id,
            }
            of_rater = conversation.model_copy(update=update)
            if of_rater.id not in self._entries:
                self._entries[of_rater.id] = _make_record(
                    len(self._shelf),
                    item._replace(conversation=of_rater),
                )
                self._shelf.append(of_rater)

            return

        # votes by judge; the majority is taken when all rows are in
        if conversation.id not in self._rated:
            first = {str(before.judge): before.label}
        else:
            first = {}

        self._rated.setdefault(conversation.id, first)[str(conversation.judge)] = conversation.label
        both = dict.fromkeys((*before.feedback, *conversation.feedback))
        self._replace(
            conversation.id,
            recorded,
            before.model_copy(update={"judge": None, "feedback": tuple(both)}),
        )

    def _differ_in_label(self, recorded: ConversationRecord, item: PlacedConversation) -> bool:
        # identical once both have no label
        unrated = []
        for conversation in (self._shelf[recorded.index], item.conversation):
            unrated.append(
                _make_record(
                    0,
                    PlacedConversation(
                        conversation.model_copy(update={"label": Label.NONE}), "", 0
                    ),
                ).digest
            )

        return unrated[0] == unrated[1]

    def _meet_another(self, recorded: ConversationRecord, item: PlacedConversation) -> None:
        entry = _make_record(recorded.index, item)
        before = self._shelf[recorded.index]
        # a longer moment of a chat takes the place of a shorter one
        if self._on_duplicate == "error" and (
            _is_earlier_state_of_conversation(before, item.conversation)
            or _is_earlier_state_of_conversation(item.conversation, before)
        ):
            self._counts["duplicates"] += 1
            if len(item.conversation.turns) > len(before.turns):
                self._entries[item.conversation.id] = entry
                self._shelf.replace(entry.index, item.conversation)
        elif self._on_duplicate == "error":
            self._clashes.append(
                f"{item.conversation.id!r:.80} in {recorded.place} and {entry.place}"
            )
        else:
            self._counts["overruled"] += 1
            if self._on_duplicate == "last":
                self._entries[item.conversation.id] = entry
                self._shelf.replace(entry.index, item.conversation)

    def _own_notes(self) -> Iterator[str]:
        nameless = sum(id_.startswith(CONTENT_ID_PREFIX) for id_ in self._entries)
        if nameless:
            have = format_count(nameless, "conversation has", "conversations have")
            yield f"{have} no id; a hash of the row stands in for it ({CONTENT_ID_PREFIX}…)"

        if self._counts["skipped"]:
            rows = format_count(
                self._counts["skipped"],
                "row or span is an inner step",
                "rows or spans are inner steps",
            )
            yield f"{rows} of a trace, and left out"


def _is_earlier_state_of_conversation(early: Conversation, late: Conversation) -> bool:
    """Return whether one begins the other and has no thumb that the other lacks."""
    agree = early.label in (Label.NONE, late.label)
    return (
        agree
        and len(early.turns) < len(late.turns)
        and late.turns[: len(early.turns)] == early.turns
    )


def _collect_short_values(conversation: Conversation) -> set[str]:
    """Return the short values beside a conversation's turns that may be its id."""
    values = conversation.metadata.values()
    return {
        str(value)
        for value in values
        if isinstance(value, str | int) and not isinstance(value, bool)
    }


def _iterate_message_keys(conversation: Conversation) -> Iterator[str]:
    for name in ("id", "message_id", "messageId", "uuid"):
        value = conversation.metadata.get(name)
        for key in value if isinstance(value, list) else [value]:
            if key is not None:
                yield str(key)


def _make_record(index: int, item: PlacedConversation) -> ConversationRecord:
    conversation, source, line, number = item[:4]
    # two conversations of one id are identical where all of these are
    content = [
        conversation.id,
        conversation.text_hash,
        conversation.label,
        conversation.judge,
        conversation.group,
    ]
    digest = hashlib.sha256(json.dumps(content).encode("ascii")).digest()

    return ConversationRecord(
        index,
        digest,
        conversation.label,
        conversation.flags,
        f"{source}:{line}",
        number,
    )
