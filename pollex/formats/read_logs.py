"""The way from rows to conversations."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar, get_args

from pollex.conversations.conversation import Conversation, Feedback, Label, OddTextFlag, Turn
from pollex.conversations.logs import BadRow, Logs, describe_bad_rows
from pollex.errors import BadInput, NotText, PollexError, WrongUse, spell_options
from pollex.formats.assembly.intake import MAX_LABEL_ROWS_HELD_IN_MEMORY, Intake, UnknownRows
from pollex.formats.assembly.log_parts import (
    LogPart,
    Message,
    MessageAddition,
    ModelCall,
    SpanWords,
    ToolScore,
    WholeTalk,
    format_iso_time,
    parse_timestamp,
)
from pollex.formats.bounds import CUT_TEXT_ENDING
from pollex.formats.columns import Column, list_columns
from pollex.formats.comments import find_comment_beside, find_comment_columns
from pollex.formats.conservation import (
    ROW_OUTCOME_ABOUT_CONVERSATIONS,
    ROW_OUTCOME_LABELS,
    ROW_OUTCOME_REPEATED,
    ROW_OUTCOME_TURNS,
    RowOutcomeCounter,
)
from pollex.formats.fields import (
    CONVERSATION_ID_NAMES,
    JUDGE_FIELD_NAMES,
    LABEL_FIELD_NAMES,
    TURN_TABLE_ID_NAMES,
    WHOLE_CONVERSATION_ID_NAMES,
    FieldPicker,
    ReadOptions,
    RowFields,
)
from pollex.formats.files import (
    STANDARD_INPUT_SOURCE_NAME,
    find_files_of_sources,
    iterate_file_rows,
    may_hold_several_tables,
)
from pollex.formats.json_rows import LogRow
from pollex.formats.labels import (
    MAX_LABEL_VALUES_LISTED,
    NEITHER_THUMB_VALUE,
    BadLabel,
    is_usual_thumb,
)
from pollex.formats.log_shapes.choices import (
    drop_unchosen,
    drop_unchosen_turns,
    keep_chosen_answers,
)
from pollex.formats.log_shapes.exports import WrongExportFile, list_objects
from pollex.formats.log_shapes.readers import (
    TURN_LIST_NAMES,
    Reader,
    RowDraft,
    UnknownShape,
    detect_date_orders,
    find_reader,
    find_time_field,
    read_turns_field,
)
from pollex.formats.log_shapes.tools import (
    ExportFormat,
    describe_nearest_format,
    find_export_format,
    has_spoken_words,
    respell_row,
)
from pollex.formats.log_shapes.turns import read_message_turns
from pollex.formats.log_shapes.unfolded import (
    extract_carried_row,
    join_sides_to_turns,
    move_turns_to_usual_name,
    name_speakers,
    unwrap_typed_row,
)
from pollex.formats.mapping import USUAL_FIELD_BY_PART, ColumnMapper
from pollex.formats.names import is_named_as_comment, is_named_as_part
from pollex.formats.paths import (
    MISSING_VALUE,
    find_value_at_path,
    get_path_value,
    parse_value_if_json_text,
)
from pollex.formats.shown_sources import split_sources_from_row_fields
from pollex.formats.structure import LogStructure
from pollex.formats.tally import (
    CONTENT_ID_PREFIX,
    LogTally,
    PlacedConversation,
    SeparateVote,
    SkippedRow,
)
from pollex.formats.users import UserFields, format_copies_note, format_users_note
from pollex.text import (
    SURROGATE_PATTERN,
    JsonDict,
    JsonObject,
    escape_controls,
    format_count,
    replace_surrogates,
)

if TYPE_CHECKING:
    from pollex.formats.assembly.joiner import JoinedConversation, PartJoiner
    from pollex.formats.assembly.labelled import ConversationLabeler
    from pollex.formats.frames import RowSource
    from pollex.formats.inference import Reading, ReadingCandidate
    from pollex.formats.proposal import UnmappedLog

ValueT = TypeVar("ValueT")

MAX_CONVERSATION_CHARS_IN_LONGEST_TURNS = 4
"""A conversation as long as so many of the longest turns is too large as well."""
MAX_ROWS_HELD_OF_PACKED_FILE = 20_000
"""Rows of an archive, a database or a spreadsheet that are held while they are read again."""
MAX_WORDLESS_ROWS = 100_000
"""Rows without words that are kept until their file ends."""
MIN_SPOKEN_WORDS = 4
"""Words of a text that may be what somebody said."""
MAX_NESTING_DEPTH_OF_SPOKEN_TEXT = 4
"""Levels of objects and lists in which a row may hold what was said."""
EXAMPLE_OF_POSITIVE_AND_NEGATIVE_OPTIONS = spell_options(positive="A,B", negative="C,D")
"""How somebody says which values of a label are good, and which are bad."""
MAX_ROWS_SEARCHED_FOR_FEEDBACK = 1_000
"""Rows whose messages are searched for feedback."""
_CONVERSATION_ID_NAME_SET = frozenset(CONVERSATION_ID_NAMES)
USUAL_MESSAGE_FIELDS = frozenset(
    ("role", "content", "id", "timestamp", "createdAt", "name", "tool_calls")
)
EMPTY_FILE_NOTES: Mapping[str, None] = {}
MAX_LABEL_ROW_CHARS = 2_000
"""Characters of the texts of a row that may be a label, with what was written beside it."""
SOURCE_NAME_OF_ROWS_IN_MEMORY = "row"
"""What rows in memory are said to be from."""

_FLAG_PATTERNS: dict[OddTextFlag, re.Pattern[str]] = {
    "surrogates": SURROGATE_PATTERN,
    "nul": re.compile("\x00"),
    "bidi": re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"),
    "zero_width": re.compile("[\u200b\u2060-\u2064\ufeff]"),
}
"""The joiners U+200C and U+200D aren't odd: Persian, Hindi and many emoji are written with them."""


SYSTEM_AS_ASSISTANT_ROLES = (("assistant", "system"),)
"""How corpora of dialogues are read, whose assistant is called the system."""
SYSTEM_AS_ASSISTANT_NOTE = (
    "users are answered by the system, and by nobody else: its turns are read as the assistant's"
)
EXCHANGE_READER_NAME = "request and response"
"""The reader of rows that are a question with its answer, and name no conversation."""
UNCHOSEN_ANSWERS_REASON = "answers that nobody chose are no turns"


class TableTurn(NamedTuple):
    """A turn of a flat table; the second of a row is `part` 1."""

    position: float | None
    part: int
    turn: Turn
    picked: RowFields
    feedback: Feedback | None
    at: float | None = None


def _get_turn_fields(turn: TableTurn) -> JsonObject:
    return turn.picked.rest


def _get_turn_role(turn: TableTurn) -> str:
    return turn.turn.role


class RowOfTurns(NamedTuple):
    """The turns of one row of a table, and when they were said."""

    at: float | None
    turns: list[TableTurn]


@dataclass(slots=True)
class ConversationRows:
    """The rows of one conversation in a flat table, with its first bad row."""

    source: str
    line: int
    turns: list[TableTurn] = field(default_factory=list)
    rows: int = 0
    bad: BadRow | None = None

    def add(
        self,
        draft: RowDraft,
        picked: RowFields,
        feedback: Feedback | None,
    ) -> None:
        """Add a row's turn; what the row before it says, too, is kept once."""
        if self.turns and self.turns[-1].picked == picked:
            picked = self.turns[-1].picked

        self.turns += [
            TableTurn(draft.position, n, turn, picked, feedback)
            for n, turn in enumerate(draft.turns)
        ]


class TableClock:
    """What the times of a file's tables are, and whether it has the newest row first."""

    def __init__(self, tables: Collection[ConversationRows]) -> None:
        self._ways = detect_date_orders(
            turn.picked.rest for table in tables for turn in table.turns
        )
        # first and last time of each conversation: most of them tell the direction of the file
        ends = []
        for rows in tables:
            if rows.turns:
                ends.append((self.timed(rows.turns[0]).at, self.timed(rows.turns[-1]).at))

        self.newest_first = (
            sum((a > b) - (a < b) for a, b in ends if a is not None and b is not None) > 0
        )
        self.untimed = 0

    def timed(self, turn: TableTurn) -> TableTurn:
        """Return a turn with its time, of which the fields have ISO text where only the whole file tells the month."""
        rest = turn.picked.rest
        name = find_time_field(turn.picked.rest)
        at = None
        if name is not None:
            at = parse_timestamp(rest[name], self._ways[0] if self._ways else None)
        if name is None or at is None:
            return turn
        if len(self._ways) == 1 and parse_timestamp(rest[name]) is None:
            turn = turn._replace(
                picked=replace(turn.picked, rest=rest | {name: format_iso_time(at)})
            )

        return turn._replace(at=at)

    def in_order(self, turns: Sequence[TableTurn]) -> list[TableTurn]:
        """Sort the turns of a conversation by their numbers, else by time."""
        timed = list(map(self.timed, turns))
        if any(turn.position is not None for turn in turns):
            return sorted(timed, key=lambda turn: turn.position or 0)

        self.untimed += sum(
            turn.at is None and find_time_field(turn.picked.rest) is not None for turn in timed
        )
        from pollex.formats.assembly.trees import sort_messages  # rows of turns alone need it

        # the turns of a row stay together, also among rows of the same minute
        rows: list[list[TableTurn]] = []
        for turn in timed:
            if turn.part and rows:
                rows[-1].append(turn)
            else:
                rows.append([turn])

        ordered = sort_messages(
            [RowOfTurns(row[0].at, row) for row in rows],
            self.newest_first,
        )
        return [turn for row in ordered for turn in row.turns]

    @property
    def notes(self) -> Iterator[str]:
        """Notes on times that tell too little."""
        if len(self._ways) > 1:
            yield "dates may begin with the day or the month: turns are ordered as with the day, and no week is known"
        if n := self.untimed:
            yield f"{format_count(n, 'turn has', 'turns have')} no time that can be read; the file's order counts there"


class Joining:
    """Hands rows of exports to their joiner, which is made with the first of them.

    Attributes:
        joiner: None while there is no such row.
    """

    def __init__(
        self,
        options: ReadOptions,
        intake: Intake,
        elsewhere: Callable[[ToolScore], str | None],
    ) -> None:
        self._options = options
        self._intake = intake
        self._elsewhere = elsewhere
        self.joiner: PartJoiner | None = None

    def take(self, row: LogRow, name: str, parts: Iterable[LogPart]) -> None:
        """Have the parts of a row joined with those of other rows.

        Raises:
            BadInput: The row can't be read.
        """
        if self.joiner is None:
            from pollex.formats.assembly.joiner import PartJoiner  # whole conversations need none

            self.joiner = PartJoiner(self._options, self._intake, self._elsewhere)

        self.joiner.take(row, name, parts)


class ConversationAssembler:
    """Makes the conversations of one file."""

    def __init__(
        self,
        picker: FieldPicker,
        options: ReadOptions,
        intake: Intake,
        joining: Joining,
        strange: UnknownRows,
        conservation: RowOutcomeCounter,
    ) -> None:
        self._intake = intake
        self._joining = joining
        self._strange = strange
        self._conservation = conservation
        self._picker = picker
        self._options = options
        self._tables: dict[str, ConversationRows] = {}
        self._begun = False
        self._moments: dict[str, list[PlacedConversation]] = {}
        self._wordless: list[tuple[str, LogRow, BadRow]] = []
        self._compared: set[frozenset[str]] = set()
        self._label_path = (options.label_field or "").partition("[].")

    def assemble(
        self, rows: Iterable[LogRow | BadRow | SkippedRow]
    ) -> Iterator[PlacedConversation | SkippedRow | BadRow]:
        """Yield conversations one by one; those of a flat table at the end.

        Raises:
            WrongUse: The label may be in two fields, or its value matches both sides.
        """
        for row in rows:
            if isinstance(row, LogRow):
                if not self._options.columns and (carried := extract_carried_row(row.fields)):
                    row = replace(row, fields=carried)
                self._intake.note_page(row)

            if isinstance(row, LogRow):
                item = self._read_row(row)
            else:
                item = row

            if isinstance(item, BadRow) and (
                self._may_be_beside(row, item) or self._may_label(row, item)
            ):
                continue
            if isinstance(item, BadRow):
                self._intake.unread.append(item)
            # moments of a chat wait for the end of the file, which shows the latest of them
            if isinstance(item, list):
                yield from item
            elif isinstance(item, PlacedConversation) and (
                chat := _find_chat_id_of_partial_conversation(item.conversation)
            ):
                self._moments.setdefault(chat, []).append(item)
            elif item is not None:
                yield item

        # what waited for the end of the file: moments of chats, rows beside tables, tables
        for moments in self._moments.values():
            yield from self._joined_moments(moments)

        yield from self._beside_tables()
        clock = TableClock(self._tables.values())
        for id_ in list(self._tables):
            table = self._tables.pop(id_)
            yield from (
                [replace(table.bad, rows=table.rows)] if table.bad else self._joined(table, clock)
            )

        self._intake.notes += clock.notes

    def _may_be_beside(self, row: object, bad: BadRow) -> bool:
        """Keep a row without words that has an id: at the end of the file it may be a conversation's own row."""
        if not isinstance(row, LogRow) or len(self._wordless) >= MAX_WORDLESS_ROWS:
            return False

        id_ = row.fields.get("id", row.fields.get("_id"))
        if (
            not isinstance(id_, str | int)
            or not self._strange.last_unshaped
            or has_spoken_words(row.fields)
        ):
            return False

        self._wordless.append((str(id_), row, bad))
        return True

    def _may_label(self, row: object, bad: BadRow) -> bool:
        """Keep a row without words for the end of all files: it may label what an export has."""
        if not isinstance(row, LogRow) or not self._strange.last_unshaped:
            return False
        return not has_spoken_words(row.fields) and self._hold_label(row, bad)

    def _hold_label(self, row: LogRow, bad: BadRow) -> bool:
        """Keep a small row for the end of all files, and return whether it was kept; what was said has its reader."""
        held = self._intake.label_rows
        size = sum(len(value) for value in row.fields.values() if isinstance(value, str))
        if (
            self._options.columns
            or len(held) >= MAX_LABEL_ROWS_HELD_IN_MEMORY
            or size > MAX_LABEL_ROW_CHARS
        ):
            return False

        held.append((row, bad))
        return True

    def _beside_tables(self) -> Iterator[BadRow | SkippedRow]:
        """Yield rows without words: those of a conversation whose turns are in the file stand beside it."""
        for id_, row, bad in self._wordless:
            if id_ in self._tables:
                self._intake.account.tables["rows of conversations without words"] += 1
                yield SkippedRow(row.source, row.line, ROW_OUTCOME_ABOUT_CONVERSATIONS)
            elif not self._hold_label(row, bad):
                self._intake.unread.append(bad)
                yield bad

        self._wordless = []

    def _read_row(
        self, row: LogRow
    ) -> PlacedConversation | list[PlacedConversation] | SkippedRow | BadRow | None:
        """Read a row; None for a turn that waits for the rest of its table."""
        try:
            # the user named the list of messages: no shape is looked for
            if self._options.messages_field is not None:
                self._intake.account.general["messages"] += 1
                return self._whole(
                    row,
                    read_turns_field(row.fields, self._options.messages_field),
                )

            if (
                not self._options.columns
                and not self._label_of_turns(row)
                and (export := find_export_format(row.fields)) is not None
            ):
                parts = list(export.read(row.fields))
                # a row of scores alone that has words, too, is rather a log with labels
                if not _are_scores_only(parts) or not has_spoken_words(row.fields):
                    self._take(row, export, parts)
                    return None

            # rows of the general shapes; another shape may still be a known one in other words
            try:
                reader = find_reader(row.fields)
            except UnknownShape as error:
                return self._reread(row, error)

            # a turn waits for the rest of its table; other rows are whole conversations
            if reader.row_is_turn:
                self._intake.account.general[reader.name] += 1
                self._put_aside(row, reader)
                return None

            self._intake.account.general[reader.name] += 1
            draft = reader.read(row.fields)
            if draft:
                return self._whole(row, draft)
            return SkippedRow(row.source, row.line)
        except WrongExportFile as error:
            if self._begun:  # the file is right, and this row is damaged
                return _make_bad_row(row, error)
            raise BadInput(error.what, where=row.source, hint=error.advice) from None
        except BadInput as error:
            self._strange.note(error)
            return _make_bad_row(row, error)

    def _reread(
        self, row: LogRow, error: UnknownShape
    ) -> PlacedConversation | list[PlacedConversation] | SkippedRow | BadRow | None:
        """Read a row of no known shape as one of a known format that is spelled otherwise, or whose talk stands deeper.

        Raises:
            NoShape: It is none.
        """
        if (fields := respell_row(row.fields)) is not None and (
            export := find_export_format(fields)
        ) is not None:
            self._take(row, export, list(export.read(fields)))
            return None
        # rows without words: a label, a vote, or what may be one
        if parts := list(self._labels_alone(row.fields)):
            self._joining.take(row, "labels", parts)
            self._conservation.add(row.source, ROW_OUTCOME_LABELS)
            return None
        if vote := _find_thumb_of_row_without_words(row.fields):
            self._joining.take(row, "votes", [vote])
            self._conservation.add(row.source, ROW_OUTCOME_LABELS)
            return None
        if label := _find_wordless_label_column(row.fields):
            what = "the row has no words, and names a conversation"
            unlabeled = UnknownShape(
                what,
                hint="if it labels it, say where",
                option={"label_field": label},
            )
            unlabeled.label = str(row.fields[label])
            raise unlabeled from None
        # columns that the user named stand: no other reading is tried
        if self._options.columns:
            raise error from None
        # a row that was unfolded has `messages`, and isn't unfolded again
        if (
            "messages" not in row.fields
            and (fields := join_sides_to_turns(row.fields) or move_turns_to_usual_name(row.fields))
            is not None
        ):
            return self._read_row(replace(row, fields=fields))

        # all rows of a table resemble the same
        if (names := frozenset(row.fields)) not in self._compared:
            self._compared.add(names)
            error.near = describe_nearest_format(row.fields)

        raise error from None

    def _labels_alone(self, fields: JsonObject) -> Iterator[ToolScore]:
        """Yield the label of a row that has no words, but a conversation's id and the field that the user named."""
        name = self._options.label_field
        value = None
        if name is not None:
            value = get_path_value(fields, name)

        # words under the names that the user gave to columns
        says = any(
            fields.get(USUAL_FIELD_BY_PART[part])
            for part, _ in self._options.columns
            if part in ("text", "user", "assistant")
        )
        if name is None or value is None or says or _has_sentences(fields):
            return

        # a column that names the conversation goes before the row's own id
        id_ = next(
            (
                fields[owner_name]
                for owner_name in (*CONVERSATION_ID_NAMES, *WHOLE_CONVERSATION_ID_NAMES)
                if fields.get(owner_name) not in (None, "")
            ),
            None,
        )
        if id_ is not None:
            person = next(
                (
                    str(fields[judge_name])
                    for judge_name in JUDGE_FIELD_NAMES
                    if fields.get(judge_name)
                ),
                None,
            )
            comment = find_comment_beside(fields, name)
            yield ToolScore(
                "conversation",
                str(id_),
                value,
                name=name,
                comment=None if comment is MISSING_VALUE else comment,
                person=person,
            )

    def _take(
        self,
        row: LogRow,
        export: ExportFormat,
        parts: Sequence[LogPart],
    ) -> None:
        """Have a row's parts joined with those of other rows, and count what they are."""
        self._joining.take(row, export.name, parts)
        self._begun = True
        self._strange.exports += 1
        outcome = _classify_row_outcome(parts)
        self._conservation.add(row.source, outcome)
        if outcome == ROW_OUTCOME_ABOUT_CONVERSATIONS:
            self._intake.account.tables[export.name] += 1

    def _put_aside(self, row: LogRow, reader: Reader) -> None:
        """Collect a row of a flat table; a bad row invalidates its whole conversation.

        Without that turn it would be another conversation.
        """
        id_ = self._picker.id_of_turn(row.fields)
        if id_ is None:
            raise UnknownShape(
                "the turn has no conversation id",
                hint="name the column that holds it",
                option="id_field",
            )

        table = self._tables.get(id_) or self._tables.setdefault(
            id_, ConversationRows(row.source, row.line)
        )
        # bad rows count, too: with one of them, all rows of the conversation are bad
        table.rows += 1
        try:
            draft = reader.read(row.fields)
            if draft:
                self._intake.odd.look_at(draft.turns, (row.source, row.line))
                picked = self._picked(draft, TURN_TABLE_ID_NAMES)
                table.add(draft, picked, self._feedback(picked, row))
        except BadInput as error:
            self._strange.note(error)
            table.bad = table.bad or _make_bad_row(row, error)

    def _whole(self, row: LogRow, draft: RowDraft) -> PlacedConversation | list[PlacedConversation]:
        if draft.left:
            self._intake.odd.add(UNCHOSEN_ANSWERS_REASON, (row.source, row.line))

        self._intake.odd.look_at(draft.turns, (row.source, row.line))
        # labels inside the messages may part a row into several conversations
        if draft.turns and (path := self._label_of_turns(row)):
            parts = list(self._parted(self._rated_turns(row, draft, path), row))
            placeds = []
            # the row counts once, with its first conversation
            for number, placed in enumerate(parts):
                placeds.append(placed._replace(rows=0 if number else 1))

            return placeds

        picked = self._picked(draft)
        if picked.label is Label.NONE and not picked.number and not self._picker.label_field:
            self._note_feedback_in(row)

        feedback = self._feedback(picked, row)
        conversation = _make_conversation(
            draft.turns,
            picked,
            (feedback,) if feedback else (),
            self._options,
            row,
        )
        conversation = self._intake.with_signals(conversation, (row.source, row.line))
        return PlacedConversation(conversation, row.source, row.line, picked.number)

    def _note_feedback_in(self, row: LogRow) -> None:
        """Note what looks like feedback inside the messages of the first rows."""
        name = next(
            (messages_name for messages_name in TURN_LIST_NAMES if messages_name in row.fields),
            None,
        )
        if name is None or row.line > MAX_ROWS_SEARCHED_FOR_FEEDBACK:
            return

        from pollex.formats.assembly.beside import (
            iterate_feedback_paths,  # labeled rows don't need it
        )

        for message in list_objects(row.fields[name]):
            if message.keys() - USUAL_MESSAGE_FIELDS:
                self._intake.unused.update(
                    f"{name}[].{path}" for path in iterate_feedback_paths(message)
                )

    def _label_of_turns(self, row: LogRow) -> str:
        """Return the path to the label inside a message, where the user named one in the list of turns; else empty."""
        before, listed, path = self._label_path
        if not listed:
            return ""

        field = self._options.messages_field or next(
            (name for name in TURN_LIST_NAMES if name in row.fields), ""
        )
        if listed and before == field:
            return path
        return ""

    def _rated_turns(self, row: LogRow, draft: RowDraft, path: str) -> Iterator[TableTurn]:
        """Yield the turns of a row with the label and the comment that each message has."""
        listed = self._label_path[0]
        comment = (self._options.comment_field or "").removeprefix(f"{listed}[].")
        messages = drop_unchosen(parse_value_if_json_text(get_path_value(row.fields, listed)))
        if isinstance(messages, list):
            spoken = [read_message_turns(message) for message in messages]
        else:
            spoken = []

        # turns before the list, such as a system prompt, have no label of their own
        before = len(draft.turns) - sum(map(len, spoken))
        own_label = self._picked(
            replace(draft, rest={**draft.rest, str(self._options.label_field): None})
        )
        for turn in draft.turns[:before]:
            yield TableTurn(None, 0, turn, own_label, None)

        for message, turns in zip(messages, spoken, strict=True):
            label_fields = {str(self._options.label_field): get_path_value(message, path)}
            if comment:
                label_fields[str(self._options.comment_field)] = get_path_value(message, comment)
            picked = self._picker.pick({**draft.rest, **label_fields})
            feedback = self._feedback(picked, row)
            # a message may be several turns, of which the last has its label
            for number, turn in enumerate(turns):
                last = number == len(turns) - 1
                yield TableTurn(
                    None,
                    0,
                    turn,
                    replace(picked, rest=own_label.rest) if last else own_label,
                    feedback if last else None,
                )

    def _picked(
        self, draft: RowDraft, id_names: tuple[str, ...] = WHOLE_CONVERSATION_ID_NAMES
    ) -> RowFields:
        picked = self._picker.pick(draft.rest, id_names)
        if picked.label is Label.NONE and not picked.number and not self._picker.label_field:
            from pollex.formats.assembly.beside import (
                iterate_feedback_paths,  # labeled rows don't need it
            )

            self._intake.unused.update(iterate_feedback_paths(picked.rest))
        return picked

    def _feedback(self, picked: RowFields, row: LogRow) -> Feedback | None:
        if picked.comment in (None, "") and picked.tags is None:  # as in most rows
            return None

        comment, tags = self._intake.odd.written(
            picked.comment,
            picked.tags,
            (row.source, row.line),
        )
        if comment or tags:
            return Feedback(comment=comment, tags=tags, author=picked.judge)
        return None

    def _joined(
        self, table: ConversationRows, clock: TableClock
    ) -> Iterator[PlacedConversation | BadRow]:
        """Yield the conversation of a table; several where its thumbs or its raters part it."""
        first = LogRow(table.source, table.line, {})
        try:
            _require_turn_positions(table.turns)
            turns = drop_unchosen_turns(
                clock.in_order(table.turns),
                _get_turn_fields,
                _get_turn_role,
            )
            if len(turns) < len(table.turns):
                self._intake.odd.add(UNCHOSEN_ANSWERS_REASON, (table.source, table.line))
            parts = list(self._parted(turns, first))
        except BadInput as error:
            yield replace(_make_bad_row(first, error), rows=table.rows)
            return

        for number, placed in enumerate(parts):
            yield placed._replace(rows=0 if number else table.rows)

    def _parted(self, turns: Iterable[TableTurn], row: LogRow) -> Iterator[PlacedConversation]:
        """Yield the conversations of some turns in their order.

        Raises:
            BadInput: The turns contradict each other.
        """
        ordered = list(turns)
        if by_judge := group_turns_by_judge(ordered):
            yield from self._of_raters(by_judge, row)
            return

        thumbed = self._thumbed(ordered)
        # each thumb gets a conversation that ends at its answer and has that thumb alone
        if self._options.thumbs == "each" and 0 < len(thumbed) < len(ordered):
            for place in thumbed:
                cut = []
                for turn in ordered[:place]:
                    cut.append(turn._replace(picked=_remove_label(turn.picked)))

                yield self._made([*cut, ordered[place]], row, f"#{place}")

            return

        yield self._made(self._with_one_label(ordered, thumbed), row)

    def _thumbed(self, turns: Sequence[TableTurn]) -> list[int]:
        """Return the places of turns with a thumb; none where numbers in the label's field are no thumbs."""
        labels = {turn.picked.label for turn in turns if not turn.picked.number} - {Label.NONE}
        if any(turn.picked.number for turn in turns):
            thumb_numbers = self._picker.numbers
        else:
            thumb_numbers = frozenset()

        # a number counts where numbers are thumbs, or where labels in words stand beside it
        places: list[int] = []
        for place, turn in enumerate(turns):
            if turn.picked.label is not Label.NONE and (
                turn.picked.number in thumb_numbers or not turn.picked.number or labels
            ):
                places.append(place)

        return places

    def _with_one_label(
        self, turns: Sequence[TableTurn], thumbed: Sequence[int]
    ) -> Sequence[TableTurn]:
        """Return turns of which those with a thumb that doesn't count have none."""
        labels = [turns[place].picked.label for place in thumbed]
        numbered = {turn.picked.label for turn in turns if turn.picked.number} - {Label.NONE}
        if not thumbed and len(numbered) > 1:  # numbers of a rating, which are no thumbs
            return [turn._replace(picked=_remove_label(turn.picked)) for turn in turns]
        if len(set(labels)) < 2:
            return turns
        if self._options.thumbs is None and not self._options.labels_needed:
            self._picker.leave_unread()
            return [turn._replace(picked=_remove_label(turn.picked)) for turn in turns]
        if self._options.thumbs is None:
            raise _make_differing_labels_error(labels)

        # the turn whose thumb counts: the last one down, or the last of all
        worst = []
        for place in thumbed:
            if turns[place].picked.label is Label.NEGATIVE:
                worst.append(place)

        if self._options.thumbs == "worst":
            counting_place = worst[-1]
        else:
            counting_place = thumbed[-1]

        return [
            turn if place == counting_place else turn._replace(picked=_remove_label(turn.picked))
            for place, turn in enumerate(turns)
        ]

    def _of_raters(
        self, by_judge: Mapping[str, Sequence[TableTurn]], row: LogRow
    ) -> Iterator[PlacedConversation]:
        """Yield a conversation that several people rated: once with their majority, or once for each of them."""
        judged = {
            judge: self._with_one_label(turns, self._thumbed(turns))
            for judge, turns in by_judge.items()
        }
        # the user named the field of the judges: one conversation for each of them
        if self._options.judge_field:
            for judge, turns in judged.items():
                yield self._made(turns, row, f"#{judge}")
            return

        # one conversation with the label of the majority, and everybody's comments
        rated = {
            judge: _combine_row_fields([turn.picked for turn in turns])
            for judge, turns in judged.items()
        }
        label = self._picker.settle_raters([rater_label.label for rater_label in rated.values()])
        number = next(
            (rater_label.number for rater_label in rated.values() if rater_label.label is label),
            "",
        )
        turns = next(iter(judged.values()))
        beside = []
        for rater_turns in by_judge.values():
            for turn in rater_turns:
                if turn.feedback:
                    beside.append(turn.feedback)

        # every turn has the label of the majority; comments are put on the conversation below
        chosen = replace(turns[0].picked, label=label, number=number, judge=None)
        bare = []
        for turn in turns:
            bare.append(
                turn._replace(
                    picked=replace(chosen, rest=turn.picked.rest),
                    feedback=None,
                )
            )

        placed = self._made(bare, row)
        feedback = tuple(dict.fromkeys(beside))
        yield placed._replace(
            conversation=placed.conversation.model_copy(update={"feedback": feedback})
        )

    def _made(
        self,
        ordered: Sequence[TableTurn],
        row: LogRow,
        behind: str = "",
    ) -> PlacedConversation:
        """Return the conversation of turns with one label.

        Args:
            behind: What stands behind its id where it is one of several.
        """
        picked = _combine_row_fields([turn.picked for turn in ordered])
        # several conversations of one id need ids of their own, and stay in one group
        if behind:
            picked = replace(
                picked,
                id=f"{picked.id}{behind}",
                group=picked.group or picked.id,
            )

        turns = tuple(turn.turn for turn in ordered)
        feedback = _assign_feedback_to_turns([turn.feedback for turn in ordered])
        conversation = _make_conversation(
            turns,
            picked,
            feedback,
            self._options,
            row,
        )

        return PlacedConversation(
            self._intake.with_signals(conversation, (row.source, row.line)),
            row.source,
            row.line,
            picked.number,
        )

    def _joined_moments(
        self, moments: Sequence[PlacedConversation]
    ) -> Iterator[PlacedConversation | BadRow]:
        """Yield a chat's latest moment in place of those that it begins with; other rows stay as they are."""
        thumbs = self._options.thumbs
        needed = self._options.labels_needed
        # short ones first: each is looked for at the start of the longer ones
        waiting = sorted(moments, key=lambda item: len(item.conversation.turns))
        while waiting:
            early, *waiting = waiting
            turns = early.conversation.turns
            # a later moment of the same chat begins with all turns of this one
            place = next(
                (
                    n
                    for n, late in enumerate(waiting)
                    if late.conversation.turns[: len(turns)] == turns
                ),
                None,
            )
            # no later moment, an equal one, or every moment counts: the conversation stays
            if (
                place is None
                or thumbs == "each"
                or len(waiting[place].conversation.turns) == len(turns)
            ):
                yield early
                continue

            self._conservation.add(early.source, ROW_OUTCOME_REPEATED, early.rows)
            late = waiting[place]
            # thumbs of two moments that differ: leave both out, ask the user, or take the worse
            if (
                early.conversation.label is not late.conversation.label
                and thumbs is None
                and not needed
            ):
                self._picker.leave_unread()
                waiting[place] = late._replace(
                    conversation=late.conversation.model_copy(update={"label": Label.NONE})
                )
            elif early.conversation.label is not late.conversation.label and thumbs is None:
                hint = "say which counts: last, worst, or each, which keeps both moments"
                reason = f"{late.conversation.id!r:.60}: 2 thumbs that differ, at two moments of one chat"
                yield BadRow(late.source, late.line, reason, hint, rows=0)
            elif thumbs == "worst" and early.conversation.label is Label.NEGATIVE:
                worse = late.conversation.model_copy(update={"label": Label.NEGATIVE})
                waiting[place] = late._replace(conversation=worse)


def _has_sentences(fields: JsonObject) -> bool:
    """Return whether a row may hold what somebody said, beside a comment."""
    texts = _iterate_texts(fields)
    return any(len(text.split()) >= MIN_SPOKEN_WORDS for text in texts) or has_spoken_words(fields)


def _iterate_texts(value: object, depth: int = MAX_NESTING_DEPTH_OF_SPOKEN_TEXT) -> Iterator[str]:
    """Yield the texts of a row, and of objects and lists in it, but for those of comments."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping) and depth:
        for name, inner in value.items():
            if not is_named_as_comment(name):
                yield from _iterate_texts(inner, depth - 1)
    elif isinstance(value, list) and depth:
        for inner in value:
            yield from _iterate_texts(inner, depth - 1)


MAX_VOTE_COLUMNS = 8
"""Columns of a row that has a thumb and names its conversation, beside a time and who gave it."""


def _find_thumb_of_row_without_words(fields: JsonObject) -> ToolScore | None:
    """Return the thumb of a row without words that names a conversation in a column of any name; None for others."""
    if len(fields) > MAX_VOTE_COLUMNS or _has_sentences(fields):
        return None

    thumbs = []
    for name in LABEL_FIELD_NAMES:
        if name in fields and is_usual_thumb(fields[name]):
            thumbs.append(name)

    ids = []
    for name, value in fields.items():
        if _may_name_conversation(name, value) and name not in thumbs:
            ids.append(name)

    # with several of either, nobody can tell which is the thumb and which the id
    if len(thumbs) != 1 or len(ids) != 1:
        return None

    comment = find_comment_beside(fields, thumbs[0])
    return ToolScore(
        "conversation",
        str(fields[ids[0]]),
        fields[thumbs[0]],
        comment=None if comment is MISSING_VALUE else comment,
    )


def _may_name_conversation(name: str, value: object) -> bool:
    scalar = isinstance(value, str | int) and not isinstance(value, bool) and value != ""
    return scalar and is_named_as_part(name, "conversation") and not is_named_as_part(name, "time")


def _find_wordless_label_column(fields: JsonObject) -> str:
    """Return the column that may be the label of a row that names a conversation and has no words; else empty."""
    if not any(
        fields.get(name) not in (None, "") for name in CONVERSATION_ID_NAMES
    ) or _has_sentences(fields):
        return ""

    named = []
    for name in fields:
        if is_named_as_part(name, "label") and name not in CONVERSATION_ID_NAMES:
            named.append(name)

    return named[0] if len(named) == 1 else ""


def _are_scores_only(parts: Sequence[LogPart]) -> bool:
    return bool(parts) and all(isinstance(part, ToolScore) for part in parts)


def _classify_row_outcome(parts: Sequence[LogPart]) -> str:
    """Return what a row of an export becomes: turns, labels, or what stands beside conversations."""
    if any(isinstance(part, ModelCall | SpanWords | WholeTalk | MessageAddition) for part in parts):
        return ROW_OUTCOME_TURNS
    if any(isinstance(part, Message) and part.turns for part in parts):
        return ROW_OUTCOME_TURNS
    if any(isinstance(part, ToolScore) for part in parts):
        return ROW_OUTCOME_LABELS
    return ROW_OUTCOME_ABOUT_CONVERSATIONS


def _remove_label(picked: RowFields) -> RowFields:
    if picked.label is Label.NONE:
        return picked
    return replace(picked, label=Label.NONE, number="")


def group_turns_by_judge(turns: Sequence[TableTurn]) -> dict[str, list[TableTurn]]:
    """Return the turns by whoever rated them, where all rated the same conversation; empty where they didn't."""
    by_judge: dict[str, list[TableTurn]] = {}
    for turn in turns:
        by_judge.setdefault(turn.picked.judge or "", []).append(turn)

    # turns without a judge are no rows of raters
    if len(by_judge) < 2 or "" in by_judge:
        return {}

    conversations = set()
    for judge_turns in by_judge.values():
        conversations.add(tuple(turn.turn for turn in judge_turns))

    return by_judge if len(conversations) == 1 else {}


def _make_differing_labels_error(labels: Sequence[Label]) -> BadInput:
    ups = labels.count(Label.POSITIVE)
    what = f"{format_count(len(labels), 'thumb', 'thumbs')} that differ: {ups} up, {len(labels) - ups} down"
    hint = "say which counts: last, worst, or each, which cuts after every thumbed answer"
    return BadLabel(what, hint=hint, option={"thumbs": "last"})


def _assign_feedback_to_turns(feedbacks: Sequence[Feedback | None]) -> tuple[Feedback, ...]:
    """Return what was written of some turns, each at its turn; what all have is of the whole conversation."""
    if len(set(feedbacks)) == 1:
        return tuple(filter(None, feedbacks[:1]))

    placed = []
    for turn, feedback in enumerate(feedbacks):
        # a row that is a question with its answer has one comment, which is of the answer
        goes_on = turn + 1 < len(feedbacks) and feedbacks[turn + 1] is feedback
        if feedback and not goes_on:
            placed.append(feedback.model_copy(update={"turn": turn}))

    return tuple(placed)


def _find_chat_id_of_partial_conversation(conversation: Conversation) -> str | None:
    """Return the chat that a row with a thumb names beside its own id: it may hold one moment of it."""
    if conversation.label is Label.NONE or _CONVERSATION_ID_NAME_SET.isdisjoint(
        conversation.metadata
    ):
        return None

    owners = (conversation.metadata.get(name) for name in CONVERSATION_ID_NAMES)
    return next(
        (str(value) for value in owners if isinstance(value, str | int)),
        None,
    )


def label_joined_conversations(
    joiner: PartJoiner,
    intake: Intake,
    picker: FieldPicker,
    options: ReadOptions,
) -> Iterator[PlacedConversation | SkippedRow | SeparateVote | BadRow]:
    """Yield labeled conversations from rows that may be in several files.

    Raises:
        BadInput: There are thumbs and no words, or words and only thumbs of others.
        WrongUse: Several scores may be the thumb.
    """
    from pollex.formats.assembly.labelled import ConversationLabeler  # exports alone need it

    labeler = ConversationLabeler(options, partial(picker.settle_raters, by_field=False))
    # rows of exports were counted when they were taken: nothing counts twice
    for item in joiner.join():
        if isinstance(item, BadRow):
            yield replace(item, rows=0)
        else:
            yield from _label_joined_conversation(item, intake, labeler, options)

    # votes on conversations, by their ids
    for id_, scores in joiner.votes.items():
        try:
            yield labeler.voted(id_, scores)
        except BadInput as error:
            yield _make_bad_conversation(id_, "", 0, error)

    # inner steps of traces are counted without a row
    yield from [SkippedRow("", 0, rows=0)] * joiner.steps
    _record_label_counts_in_intake(labeler, intake, picker, options)


def _label_joined_conversation(
    joined: JoinedConversation,
    intake: Intake,
    labeler: ConversationLabeler,
    options: ReadOptions,
) -> Iterator[PlacedConversation | BadRow]:
    """Yield a conversation with its label; several where each thumb cuts it, or why it has none."""
    row = LogRow(*joined.place, {})
    try:
        for turns, picked, feedback in labeler.label(joined):
            conversation = _make_conversation(turns, picked, feedback, options, row)
            yield PlacedConversation(
                intake.with_signals(conversation, joined.place),
                *joined.place,
                rows=0,
            )
    except BadInput as error:
        yield _make_bad_conversation(joined.id, row.source, row.line, error)


def _make_bad_conversation(id_: str, source: str, line: int, error: BadInput) -> BadRow:
    """Return why a conversation of an export can't be labeled; its rows were counted before."""
    of_label = isinstance(error, BadLabel)
    label = error.value if isinstance(error, BadLabel) else ""
    reason = f"{id_!r:.60}: {error.what}"
    return BadRow(source, line, reason, error.advice, 0, of_label, label, error.options)


def _record_label_counts_in_intake(
    labeler: ConversationLabeler,
    intake: Intake,
    picker: FieldPicker,
    options: ReadOptions,
) -> None:
    """Keep what was found while labels were read, for the account of the reading."""
    intake.notes += labeler.notes
    intake.account.spellings.update(labeler.spellings)
    # the user's field was found only where a score of that name was taken
    named = []
    if options.label_field and any(kind.taken for kind in intake.account.scores):
        named.append(options.label_field)
    if options.comment_field and intake.comments_found:
        named.append(options.comment_field)

    picker.note_found(*labeler.found, *named, *intake.signals_found)


def _require_turn_positions(turns: Sequence[TableTurn]) -> None:
    places = [turn.position is None for turn in turns]
    if any(places) and not all(places):
        what = f"{sum(places)} of its {len(places)} turns have no number"
        raise BadInput(what, hint="number all turns of a conversation, or none")


def _make_bad_row(row: LogRow, error: BadInput) -> BadRow:
    if error.where:
        reason = f"{error.where}: {error.what}"
    else:
        reason = error.what

    if isinstance(error, BadLabel):
        label = error.value
    else:
        label = getattr(error, "label", "")

    of_label = isinstance(error, BadLabel) or bool(label)
    option = error.options if of_label else {}
    return BadRow(
        row.source,
        row.line,
        reason,
        error.advice,
        of_label=of_label,
        label=label,
        option=option,
    )


def _make_conversation(
    turns: tuple[Turn, ...],
    picked: RowFields,
    feedback: tuple[Feedback, ...],
    options: ReadOptions,
    row: LogRow,
) -> Conversation:
    sources, rest = split_sources_from_row_fields(picked.rest)
    # flags tell of the log as it is: they are found before turns are cut or cleaned
    flags = _find_text_flags(turns, options.max_turn_chars)
    if "too_large" in flags:
        turns = tuple(_shorten_turns(turns, options.max_turn_chars))
    if "surrogates" in flags:
        turns = tuple(turn.mapped(replace_surrogates) for turn in turns)

    return Conversation(
        # ids of the log first; raters of one talk share an id that is made of its words
        id=replace_surrogates(picked.id)
        or (_make_rated_talk_id(turns) if picked.judge else _make_content_id(row)),
        turns=turns,
        label=picked.label,
        judge=replace_surrogates(picked.judge),
        group=replace_surrogates(picked.group),
        sources=tuple(source.mapped(replace_surrogates) for source in sources),
        feedback=tuple(entry.mapped(replace_surrogates) for entry in feedback)
        if options.comments
        else (),
        metadata=replace_surrogates(rest),
        flags=flags,
    )


def _shorten_turns(turns: Iterable[Turn], longest: int) -> Iterator[Turn]:
    """Cut turns that nobody is asked about, since the store would keep each of them."""
    # characters that are left for the whole conversation
    room = MAX_CONVERSATION_CHARS_IN_LONGEST_TURNS * longest
    for turn in turns:
        size = min(longest, room)
        yield (
            turn
            if turn.size <= size
            else Turn(role=turn.role, content=turn.content[:size] + CUT_TEXT_ENDING)
        )
        room -= min(size, turn.size)
        if room <= 0:
            return


def _find_text_flags(turns: Sequence[Turn], max_turn_chars: int) -> tuple[OddTextFlag, ...]:
    flags: set[OddTextFlag] = set()
    sizes = [turn.size for turn in turns]
    if (
        sum(sizes) > MAX_CONVERSATION_CHARS_IN_LONGEST_TURNS * max_turn_chars
        or max(sizes, default=0) > max_turn_chars
    ):
        flags.add("too_large")

    for turn in turns:
        for text in (turn.content, *[call.arguments for call in turn.calls]):
            # of the odd signs, plain ASCII has NUL alone
            if not text.isascii() or "\x00" in text:
                flags.update(flag for flag, odd in _FLAG_PATTERNS.items() if odd.search(text))

    return tuple(flag for flag in get_args(OddTextFlag) if flag in flags)


def _make_rated_talk_id(turns: Sequence[Turn]) -> str:
    """Return an id of what was said alone: another rater's row of the same talk has the same."""
    content = json.dumps(
        [[turn.role, turn.content] for turn in turns],
        ensure_ascii=True,
    )
    return CONTENT_ID_PREFIX + hashlib.sha256(content.encode("ascii")).hexdigest()[:16]


def _make_content_id(row: LogRow) -> str:
    content = json.dumps(row.fields, sort_keys=True, ensure_ascii=True)
    return CONTENT_ID_PREFIX + hashlib.sha256(content.encode("ascii")).hexdigest()[:16]


def _combine_row_fields(rows: Sequence[RowFields]) -> RowFields:
    """Combine the fields of one conversation's rows; the label may be in one or all.

    Raises:
        BadInput: Two rows contradict each other.
    """
    labels = []
    for row in rows:
        if row.label is not Label.NONE:
            labels.append(row.label)

    # a label in words is sure; one of numbers alone is settled once all rows are read
    sure = any(row.label is not Label.NONE and not row.number for row in rows)
    return RowFields(
        id=rows[0].id,
        label=_require_single_value("label", labels) or Label.NONE,
        judge=_require_single_value("judge", [row.judge for row in rows]),
        group=_require_single_value("group", [row.group for row in rows]),
        rest=_merge_metadata([row.rest for row in rows]),
        number="" if sure else max(row.number for row in rows),
    )


def _require_single_value(name: str, values: Iterable[ValueT | None]) -> ValueT | None:
    distinct = list(dict.fromkeys(value for value in values if value is not None))
    if len(distinct) > 1:
        raise BadInput(
            f"its turns have different values of the {name}",
            hint="give a conversation one of them",
        )

    return distinct[0] if distinct else None


def _merge_metadata(rests: Sequence[JsonDict]) -> JsonDict:
    """Return each field's value if all turns agree, else its values in the turns' order."""
    names = dict.fromkeys(name for rest in rests for name in rest)
    columns = {}
    for name in names:
        columns[name] = [rest.get(name) for rest in rests]

    return {
        name: column[0] if all(v == column[0] for v in column) else column
        for name, column in columns.items()
    }


def read_logs(
    sources: Sequence[str | Path] | str | Path,
    *,
    options: ReadOptions | None = None,
    most_rows: int | None = None,
) -> Logs:
    """Read all conversations of some files.

    Args:
        sources: Paths, globs, or `-` for standard input; JSON lines, JSON, CSV or Parquet, told by
            ending and content.
        options: Where the usual names of fields and labels don't hold.
        most_rows: Rows of each file that are read at most, for a look at a large log; all if not
            set.

    Raises:
        BadInput: A file can't be read or holds no conversation, more rows are bad than `max_bad`,
            or different conversations share an id.
        WrongUse: The options contradict each other or the log.
    """
    options = options or ReadOptions()
    if isinstance(sources, str | Path):
        files = find_files_of_sources([sources])
        where = str(sources)
    else:
        files = find_files_of_sources(sources)
        where = ", ".join(map(str, sources[:3]))

    notes = dict[str, None]()
    log_files = LogFiles(files, options, most_rows, notes)
    # several tables may be joined; that needs a look at all of them first
    again = not any(map(_can_be_read_once, files))
    joins = None
    if again and may_hold_several_tables(files):
        from pollex.formats.joined_tables import (
            find_table_joins_of_log,
        )  # a single file of rows needs none

        joins = find_table_joins_of_log(files, log_files.open_all)

    if joins is None:
        return _read_or_propose(
            log_files.open_all,
            options,
            where,
            again=again,
            notes=notes,
        )

    notes.update(dict.fromkeys(joins.notes))
    join_rows = joins.rows

    def open_joined() -> Iterator[Iterable[LogRow | BadRow | SkippedRow]]:
        return map(join_rows, log_files.open_all())

    return _read_or_propose(
        open_joined,
        options,
        where,
        notes=notes,
        beside=joins.labels,
    )


def _can_be_read_once(source: str) -> bool:
    """Return whether a source is standard input or a named pipe, whose rows are gone once they are read."""
    if source == STANDARD_INPUT_SOURCE_NAME:
        return True
    try:
        return Path(source).is_fifo()
    except (OSError, ValueError):  # a query is no path
        return False


@dataclass
class LogFiles:
    """The files of a log, which are read anew each time; rows of small packed ones are held.

    Attributes:
        most_rows: Rows of each file that are read at most; all if not set.
        notes: What is said of how files were read.
        held_rows: Rows of small archives, databases and spreadsheets, by their source.
    """

    files: Sequence[str]
    options: ReadOptions
    most_rows: int | None
    notes: dict[str, None]
    held_rows: dict[str, list[LogRow | BadRow]] = field(default_factory=dict)

    def open_all(self) -> Iterator[Iterable[LogRow | BadRow]]:
        """Return the rows of each file."""
        rows_of_files = map(self._open, self.files)
        if self.most_rows is None:
            return rows_of_files
        return (islice(rows, self.most_rows) for rows in rows_of_files)

    def _open(self, source: str) -> Iterable[LogRow | BadRow]:
        if source in self.held_rows:
            return self.held_rows[source]

        rows = iterate_file_rows(
            source,
            self.options.encoding,
            self.options.max_turn_chars,
            self.options.query_seconds,
            self.notes,
        )
        chosen = _note_chosen_answers(_unwrap_typed_rows(rows), self.notes)
        if may_hold_several_tables([source]):
            return _hold_small_source_rows(source, chosen, self.held_rows)
        return chosen


def _unwrap_typed_rows(rows: Iterable[LogRow | BadRow]) -> Iterator[LogRow | BadRow]:
    """Yield rows with plain values in place of typed ones, and messages with the roles of people beside them."""
    for row in rows:
        if not isinstance(row, LogRow):
            yield row
            continue
        plain = name_speakers(unwrap_typed_row(row.fields))
        yield row if plain is row.fields else replace(row, fields=plain)


def read_logs_from_rows(rows: RowSource, *, options: ReadOptions | None = None) -> Logs:
    """Read conversations from rows in memory; see `read_logs`.

    Args:
        rows: Dicts as they would stand in JSON lines, or a table of pandas, polars or Arrow.
    """
    from pollex.formats.frames import iterate_plain_rows_of_table  # files don't need it

    options = options or ReadOptions()
    listed = list(iterate_plain_rows_of_table(rows))
    return _read_or_propose(lambda: [_number_rows(listed)], options, SOURCE_NAME_OF_ROWS_IN_MEMORY)


def _number_rows(rows: Iterable[JsonObject]) -> Iterator[LogRow]:
    numbered = enumerate(rows, start=1)
    return (
        LogRow(
            SOURCE_NAME_OF_ROWS_IN_MEMORY,
            number,
            keep_chosen_answers(name_speakers(unwrap_typed_row(dict(fields)))),
        )
        for number, fields in numbered
    )


def _hold_small_source_rows(
    source: str,
    rows: Iterable[LogRow | BadRow],
    held: dict[str, list[LogRow | BadRow]],
) -> Iterator[LogRow | BadRow]:
    """Yield rows, and hold those of a small archive, database or spreadsheet, which is read several times."""
    first = list[LogRow | BadRow]()
    number = 0
    for number, row in enumerate(rows, start=1):
        if number <= MAX_ROWS_HELD_OF_PACKED_FILE:
            first.append(row)
        else:
            first.clear()

        yield row

    if number <= MAX_ROWS_HELD_OF_PACKED_FILE:
        held[source] = first


def _note_chosen_answers(
    rows: Iterable[LogRow | BadRow], notes: dict[str, None]
) -> Iterator[LogRow | BadRow]:
    """Yield rows of which lists of candidates gave way to the chosen one; how many is noted at their end."""
    settled_rows = 0
    for row in rows:
        fields = None
        if isinstance(row, LogRow):
            fields = keep_chosen_answers(row.fields)
        if fields is None or not isinstance(row, LogRow) or fields is row.fields:
            yield row
        else:
            settled_rows += 1
            yield replace(row, fields=fields)

    if settled_rows:
        notes[f"{UNCHOSEN_ANSWERS_REASON} ({format_count(settled_rows, 'row')} with several)"] = (
            None
        )


RowSources = Iterable[Iterable[LogRow | BadRow | SkippedRow]]


def _read_or_propose(
    opened: Callable[[], RowSources],
    options: ReadOptions,
    where: str,
    *,
    again: bool = True,
    notes: Mapping[str, None] = EMPTY_FILE_NOTES,
    beside: Sequence[str] = (),
) -> Logs:
    """Read some sources; where nobody knows their shape, find out how they can be read.

    Args:
        beside: Columns of tables joined to the log that may be the label.
        again: Whether the sources can be opened more than once.
        notes: Notes on the files, which come as these are read.
    """
    strange = UnknownRows()
    if options.kept_mapping and again:
        options = _keep_fitting_mapping(opened, options)

    try:
        logs = _read_sources(opened(), options, where, strange, notes)
        if again and strange.system_answers and not options.roles:
            options = replace(options, roles=SYSTEM_AS_ASSISTANT_ROLES)
            logs = _read_sources(opened(), options, where, strange, notes)
            logs = replace(logs, notes=(*logs.notes, SYSTEM_AS_ASSISTANT_NOTE))
        strange.offered = strange.offered or tuple(beside)
        # a log without labels takes a column that is plainly a thumb
        label = None
        if again:
            label = _find_unnamed_label(opened, options, logs, strange)
        # no such column: ask the user where a joined table leaves a doubt
        if label is None:
            _require_label_named(opened, options, logs, beside, where)
        if again:
            _require_conversation_named(opened, options, logs, where, label)
        if label is not None:
            logs = _read_with_plain_label(opened, options, where, label, notes) or logs
            options = label.options(options) if logs.label_field else options

        return _read_with_comments(opened, options, where, logs, notes) if again else logs
    except NotText:
        raise
    except BadInput as error:
        from pollex.formats.proposal import UnmappedLog  # what is read plainly needs none

        # only rows of an unknown shape get a proposal; other errors stay as they are
        if isinstance(error, UnmappedLog):
            better: UnmappedLog | None = error
        elif not again or not strange.is_unknown:
            raise
        else:
            better = _make_proposing_error(opened, options, strange, where, error)
        if better is None or (better.reading is None and "columns" in error.options):
            raise
        # what can be read in one way alone is read so
        if better.reading is not None and better.reading.certain and not options.confirm:
            return _take_certain_reading(better.reading, opened, options, where, notes)
        if better is error:
            raise
        raise better from error


def _take_certain_reading(
    reading: Reading,
    opened: Callable[[], RowSources],
    options: ReadOptions,
    where: str,
    notes: Mapping[str, None],
) -> Logs:
    """Return the log as a reading without a rival has it, with a note on how it was read."""
    from pollex.formats.proposal import format_candidate_options

    candidate = reading.candidate
    logs = _read_with_comments(opened, candidate.options(options), where, reading.logs, notes)
    options_used = spell_options(**format_candidate_options(candidate))
    read_so = f"no tool's shape is known here, and it can be read in one way alone: {options_used}"
    return replace(
        logs,
        notes=(*notes, *logs.notes, f"{read_so}; to read it otherwise, name the columns"),
        columns=dict(candidate.columns),
        roles=candidate.roles,
    )


def _find_unnamed_label(
    opened: Callable[[], RowSources],
    options: ReadOptions,
    logs: Logs,
    strange: UnknownRows,
) -> ReadingCandidate | None:
    """Return the one column that is plainly the label of a log that has no other; None if none is, or several are."""
    named = (
        options.label_field
        or "label" in dict(options.columns)
        or options.positive
        or options.negative
    )
    # nothing to look for: the label is named, or the log has labels or scores
    if named or not options.labels_needed or logs.label_field or logs.account.scores:
        return None
    if logs.counts[Label.POSITIVE] or logs.counts[Label.NEGATIVE]:
        return None

    from pollex.formats.certainty import find_certain_label  # logs with a label don't need these
    from pollex.formats.inference import find_plain_label_candidate
    from pollex.formats.proposal import read_first_rows

    rows = read_first_rows(opened())
    if strange.offered and (plain := find_plain_label_candidate(rows, strange.offered)):
        return plain
    # a column whose name and values leave no doubt, where no other is named like feedback
    if options.confirm or len(strange.offered) > 1:
        return None
    return find_certain_label(rows)


def _require_label_named(
    opened: Callable[[], RowSources],
    options: ReadOptions,
    logs: Logs,
    beside: Sequence[str],
    where: str,
) -> None:
    """Require that somebody names the label where a joined table may have it, and nothing else has.

    Raises:
        BadInput: Nobody did; it proposes the likeliest column.
    """
    unlabeled = not (logs.counts[Label.POSITIVE] or logs.counts[Label.NEGATIVE])
    named = options.label_field or "label" in dict(options.columns)
    if not beside or named or not options.labels_needed or not unlabeled:
        return

    from pollex.formats.label_columns import (  # joined tables alone need it
        format_value_counts,
        infer_thumb_sides_of_column_values,
        rank_label_columns,
    )
    from pollex.formats.proposal import read_first_rows

    columns = []
    for column in list_columns(read_first_rows(opened())):
        if column.path in beside:
            columns.append(column)

    label_columns = [column for column, _ in rank_label_columns(columns)] or columns
    if not label_columns:
        return

    sides = infer_thumb_sides_of_column_values(label_columns[0]) or {}
    raise BadInput(
        f"{label_columns[0].path!r:.60} of a table that is joined to the log may be the label: "
        f"{escape_controls(format_value_counts(label_columns[0]), 200)}",
        where=where,
        hint="if it is, say so",
        option={"label_field": label_columns[0].path, **sides},
    )


def _require_conversation_named(
    opened: Callable[[], RowSources],
    options: ReadOptions,
    logs: Logs,
    where: str,
    label: ReadingCandidate | None,
) -> None:
    """Require that somebody says so where exchanges of one conversation are read as several.

    Args:
        label: The one column that is plainly a thumb.

    Raises:
        Unmapped: A column names the conversation of several rows; it proposes that column.
    """
    # only logs of single exchanges, without columns that the user named, may hide an owner
    exchanges = set(logs.account.general) == {EXCHANGE_READER_NAME} and not logs.account.formats
    if not exchanges or options.columns or options.id_field:
        return

    from pollex.formats.certainty import is_read_whole  # exchanges alone need these
    from pollex.formats.inference import (
        ReadingCandidate,
        estimate_conversation_id_likelihood,
        iterate_labeled_candidates,
    )
    from pollex.formats.proposal import (
        format_column_table,
        make_proposal_error,
        read_first_rows,
        read_whole_log_with_candidate,
    )

    rows = read_first_rows(opened())
    columns = list_columns(rows)
    # columns that are named like a conversation, with values that several rows share
    owners = []
    for column in columns:
        if (
            is_named_as_part(column.path, "conversation")
            and not is_named_as_part(column.path, "text")
            and estimate_conversation_id_likelihood(column) > 0.1
        ):
            owners.append(column)

    for owner in owners[:1]:
        labels = dict(label.labels) if label is not None else {}
        candidate = ReadingCandidate({"conversation": owner.path}, (), labels)
        # a scale that is likely the label is proposed with it
        rated = next(iterate_labeled_candidates(rows, candidate, options), None)
        if label is None and rated is not None:
            candidate = rated

        def read_all(candidate_options: ReadOptions) -> Logs:
            return _read_sources(
                opened(),
                candidate_options,
                where,
                UnknownRows(),
            )

        for reading in read_whole_log_with_candidate(candidate, options, read_all):
            if reading.holds:
                counts = reading.logs.counts
                both = bool(counts[Label.POSITIVE] and counts[Label.NEGATIVE])
                certain = (
                    len(owners) == 1
                    and is_read_whole(reading.logs)
                    and "thumbs" not in reading.candidate.labels
                    and (both or not options.labels_needed)
                    and _is_label_known(reading.candidate, columns)
                )
                reading = replace(reading, certain=certain)
                begins = (
                    f"{owner.path!r:.60} has one value for several exchanges; its columns are\n"
                )
                raise make_proposal_error(
                    reading,
                    columns,
                    begins + format_column_table(columns, reading),
                    where,
                )


def _is_label_known(candidate: ReadingCandidate, columns: Sequence[Column]) -> bool:
    """Return whether everybody reads the label of a candidate in the same way, or it has none."""
    from pollex.formats.certainty import are_values_known  # exchanges alone need it

    path = candidate.labels.get("label_field")
    labels = [column for column in columns if column.path == path]
    return path is None or any(map(are_values_known, labels))


def _read_with_plain_label(
    opened: Callable[[], RowSources],
    options: ReadOptions,
    where: str,
    label: ReadingCandidate,
    notes: Mapping[str, None],
) -> Logs | None:
    """Return the log with the label that is plainly one; None where it can't be read so."""
    try:
        logs = _read_sources(
            opened(),
            label.options(options),
            where,
            UnknownRows(),
            notes,
        )
    except PollexError:
        return None

    # a thumb has both sides; a column with one of them is no label
    if not (logs.counts[Label.POSITIVE] and logs.counts[Label.NEGATIVE]):
        return None

    name = str(label.labels["label_field"])
    note = (
        f"labels come from {name!r}, the one column that looks like a thumb; for another: "
        f"{spell_options(label_field=None)}"
    )
    return replace(logs, notes=(*logs.notes, note))


def _read_with_comments(
    opened: Callable[[], RowSources],
    options: ReadOptions,
    where: str,
    logs: Logs,
    notes: Mapping[str, None],
) -> Logs:
    """Return the log with the comments of the one column that has them; of several, they are told."""
    if not options.comments or options.comment_field or "comment" in dict(options.columns):
        return logs

    paths = find_comment_columns(logs)
    if len(paths) > 1:
        named = ", ".join(f"{path!r:.60}" for path in paths)
        several = (
            f"what people wrote with the thumb may be in {named}; to read one: "
            f"{spell_options(comment_field=paths[0])}"
        )
        return replace(logs, notes=(*logs.notes, several))
    if not paths:
        return logs

    try:
        commented = _read_sources(
            opened(), replace(options, comment_field=paths[0]), where, UnknownRows(), notes
        )
    except PollexError:
        return logs

    # nothing else may change by it
    if commented.counts != logs.counts:
        return logs
    where_from = f"comments come from {paths[0]!r:.60}, which is filled beside thumbs"
    note = f"{where_from}; for another: {spell_options(comment_field=None)}"
    return replace(commented, notes=(*commented.notes, note))


def _keep_fitting_mapping(opened: Callable[[], RowSources], options: ReadOptions) -> ReadOptions:
    """Return the options of a kept mapping, without it where the log has other fields."""
    from pollex.formats.proposal import read_first_rows  # logs with a mapping alone need it

    try:
        first = read_first_rows(opened(), 1)
    except PollexError:
        return options

    # columns without which nothing can be read; a label's column may be missing
    needed = []
    for part, name in options.columns:
        if part in ("conversation", "messages", "user", "assistant", "parent"):
            needed.append(name)

    # words of a list's items are in the list, not in the row itself
    needed += (
        []
        if dict(options.columns).get("messages")
        else [name for part, name in options.columns if part == "text"]
    )
    if first and all(find_value_at_path(first[0], name) is not MISSING_VALUE for name in needed):
        return options
    return replace(options, columns=(), roles=())


def _make_proposing_error(
    opened: Callable[[], RowSources],
    options: ReadOptions,
    strange: UnknownRows,
    where: str,
    error: BadInput,
) -> UnmappedLog | None:
    """Return the error that proposes how to read the sources; None where they can't be read at all.

    Args:
        error: Why they can't be read as they are.
    """

    def read_all(candidate_options: ReadOptions) -> Logs:
        return _read_sources(opened(), candidate_options, where, UnknownRows())

    from pollex.formats.proposal import make_unmapped_error, read_first_rows  # as above

    try:
        rows = read_first_rows(opened())
    except PollexError:
        return None

    return make_unmapped_error(
        rows,
        options,
        strange,
        where,
        error,
        read_logs_from_sample_rows,
        read_all,
    )


def read_logs_from_sample_rows(rows: Sequence[JsonObject], options: ReadOptions) -> Logs:
    """Read some rows of a log as it is tried; what is cut off or differs at their end stops nothing."""
    tried = replace(
        options,
        max_bad=len(rows),
        on_duplicate="first",
        thumbs=options.thumbs or "last",
    )
    return _read_sources([_number_rows(rows)], tried, SOURCE_NAME_OF_ROWS_IN_MEMORY, UnknownRows())


def _read_sources(
    sources: RowSources,
    options: ReadOptions,
    where: str,
    strange: UnknownRows,
    of_files: Mapping[str, None] = EMPTY_FILE_NOTES,
) -> Logs:
    # what each row goes through, and what is counted on the way
    mapper = ColumnMapper.of(options)
    user_options = options
    options = mapper.options(options)
    conservation = RowOutcomeCounter()
    structure = LogStructure()
    picker = FieldPicker(options)
    tally = LogTally(options, conservation=conservation)
    originals = dict[tuple[str, str], dict[str, str]]()
    finders = None
    if options.redact:
        from pollex.conversations.redaction import choose_finders, mask_conversation

        finders = choose_finders(options.redact)

    intake = Intake(options)
    joining = Joining(options, intake, tally.owner_of)
    users = UserFields(at_once=bool(finders))
    # one conversation after the other: users are found before their names are masked
    counted = (mapper.rows(conservation.count_in(rows)) for rows in sources)
    for item in _assemble_items(counted, picker, options, intake, joining, strange, conservation):
        if isinstance(item, PlacedConversation):
            users.look_at(item.conversation)
        if finders and isinstance(item, PlacedConversation):
            masked, replaced = mask_conversation(item.conversation, finders)
            item = item._replace(conversation=masked)
            originals |= {(masked.id, masked.text_hash): replaced} if replaced else {}

        if isinstance(item, PlacedConversation):
            structure.look_at(item.conversation)
        tally.add(item)

    # once all rows are read: whether numbers are thumbs, and whose conversations belong together
    intake.account.rows = conservation.check()
    intake.account.spellings.update(picker.spellings)
    tally.settle(picker.numbers, picker.settle_raters)
    group_field, *user_notes = _group_by_users(
        users,
        tally,
        options,
        picker,
        redacted=bool(finders),
    )
    strange.offered = tuple(intake.unused)
    strange.system_answers = structure.is_system_assistant
    # the log, with notes on how it was read
    reading_notes = [
        *of_files,
        *picker.notes,
        *mapper.notes,
        *_describe_unused_feedback(intake, picker, options),
        *intake.notes,
        *intake.odd.notes,
    ]
    logs = replace(
        tally.logs([*reading_notes, *user_notes, *structure.notes]),
        label_field=picker.label_field,
        group_field=group_field,
        account=intake.account,
        originals=originals,
    )
    strange.read = len(logs)
    strange.all_rows = sum(sum(outcomes.values()) for outcomes in logs.account.rows.values())
    # errors that only a whole log shows
    mapper.check(where, needed=options.labels_needed)
    if logs.bad_rows:
        from pollex.formats.label_columns import infer_label_options  # bad rows alone need it

        spellings = [spelling for spelling, _ in picker.spellings]
        logs.check_max_bad(options.max_bad, infer_label_options(logs.bad_rows, spellings))
    tally.check_clashes()
    _require_conversations(logs, where)
    _require_named_fields(logs, picker, user_options, where)
    return logs


def _describe_unused_feedback(
    intake: Intake,
    picker: FieldPicker,
    options: ReadOptions,
) -> list[str]:
    """Return notes on columns that look like feedback, which matter only where no label was found."""
    has_label = bool(picker.label_field) or any(kind.taken for kind in intake.account.scores)
    if has_label or not options.labels_needed:
        return []

    from pollex.formats.assembly.thumbs import describe_unused_columns  # as where they are found

    return describe_unused_columns(intake.unused)


def _require_conversations(logs: Logs, where: str) -> None:
    if logs.conversations:
        return

    bad = ""
    if logs.bad_rows:
        bad = f", and {describe_bad_rows(logs.bad_rows)}"
    raise BadInput(
        f"no conversations{bad}",
        where=where,
        hint="check that the file is the one you meant",
    )


def _require_named_fields(
    logs: Logs,
    picker: FieldPicker,
    user_options: ReadOptions,
    where: str,
) -> None:
    """Require that fields which the user named are in the log, and that the label's has thumbs."""
    names_label = user_options.label_field or "label" in dict(user_options.columns)
    if user_options.labels_needed and names_label:
        _require_some_labels(logs, picker, where)

    if missing := picker.never_found(user_options):
        raise BadInput(
            f"no row has the field of {missing[0]}",
            where=where,
            hint="check its spelling",
        )


def _require_some_labels(logs: Logs, picker: FieldPicker, where: str) -> None:
    """Require that of a field that was named for the label at least one value is a thumb.

    Raises:
        BadInput: It has values, and none is one.
    """
    if logs.counts[Label.POSITIVE] or logs.counts[Label.NEGATIVE]:
        return

    left = {}
    for (value, meant), rows in picker.spellings.items():
        if meant == NEITHER_THUMB_VALUE:
            left[value] = rows

    if not left:
        return

    most_frequent = sorted(left.items(), key=lambda pair: -pair[1])[:MAX_LABEL_VALUES_LISTED]
    values = ", ".join(f"{value} ({rows})" for value, rows in most_frequent)
    from pollex.formats.label_columns import (
        infer_thumb_sides_of_column_values,
    )  # labels that mean something don't

    sides = infer_thumb_sides_of_column_values(Column(picker.label_field, list(left)))
    raise BadInput(
        f"no value of {picker.label_field!r:.60} is a thumb up or down: {values}",
        where=where,
        hint="say which are good and which are bad"
        + ("" if sides else f": {EXAMPLE_OF_POSITIVE_AND_NEGATIVE_OPTIONS}"),
        option=sides or "",
    )


def _group_by_users(
    users: UserFields,
    tally: LogTally,
    options: ReadOptions,
    picker: FieldPicker,
    *,
    redacted: bool,
) -> tuple[str, ...]:
    """Group conversations by the field that names users, unless somebody named another; return it, and a note."""
    named = options.group_field or picker.has_groups
    if named:
        return ("",)
    # without users, near copies stay together, unless the log has groups already
    if (chosen := users.chosen(tally.labels.keys())) is None:
        if tally.grouped:
            copies = {}
        else:
            copies = users.near_copies(tally.labels, tally.conversations)

        tally.group(copies)
        if copies:
            return ("", format_copies_note(copies))
        return ("",)

    path, by_id = chosen
    groups = by_id
    # names of users become pseudonyms where names are masked
    if redacted:
        from pollex.conversations.redaction import make_pseudonym

        groups = {id_: make_pseudonym(user) for id_, user in by_id.items()}

    tally.group(groups)
    return path, format_users_note(path, by_id, len(tally.labels))


def make_logs_of_conversations(conversations: Iterable[Conversation]) -> Logs:
    """Make logs of conversations in memory, for the Python API.

    Raises:
        BadInput: Different conversations share an id, or there are none.
        WrongUse: What is given holds something else: a path, or rows as they were logged.
    """
    tally = LogTally(ReadOptions())
    hint = "read a log first: pollex.read_logs(PATH)"
    if isinstance(conversations, str) or not isinstance(conversations, Iterable):
        raise WrongUse(
            f"not conversations, but {type(conversations).__name__}",
            hint=hint,
        )

    for number, conversation in enumerate(conversations, start=1):
        if not isinstance(conversation, Conversation):
            raise WrongUse(
                f"not conversations: item {number} is {type(conversation).__name__}",
                hint=hint,
            )

        tally.add(PlacedConversation(conversation, "conversation", number))

    tally.check_clashes()
    return tally.logs([])


def _assemble_items(
    sources: Iterable[Iterable[LogRow | BadRow | SkippedRow]],
    picker: FieldPicker,
    options: ReadOptions,
    intake: Intake,
    joining: Joining,
    strange: UnknownRows,
    conservation: RowOutcomeCounter,
) -> Iterator[PlacedConversation | SkippedRow | SeparateVote | BadRow]:
    for rows in sources:
        assembler = ConversationAssembler(picker, options, intake, joining, strange, conservation)
        yield from assembler.assemble(rows)

    # rows of an export may be in several files: they are joined after the last
    if joining.joiner is not None:
        yield from label_joined_conversations(joining.joiner, intake, picker, options)

    # rows that label an export are labels; what is left is of no known shape
    for source in intake.labels_of:
        conservation.add(source, ROW_OUTCOME_LABELS)
    strange.forget(len(intake.labels_of))
    for _, bad in intake.label_rows:
        yield bad
