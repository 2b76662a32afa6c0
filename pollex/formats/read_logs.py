"""The way from rows to conversations."""

import hashlib
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, get_args

from pollex.conversations.conversation import Conversation, Feedback, Flag, Label, Turn
from pollex.conversations.logs import BadRow, Logs, describe_bad_rows
from pollex.conversations.redaction import choose_finders, make_pseudonym, mask_conversation
from pollex.errors import BadInput, NotText, PollexError, WrongUse, spell_options
from pollex.formats.assembly.beside import likely_feedback
from pollex.formats.assembly.joiner import Joiner
from pollex.formats.assembly.label_tables import MOST_ROWS as MOST_LABEL_ROWS
from pollex.formats.assembly.labelled import Labeller
from pollex.formats.assembly.log_parts import (
    Addition,
    LogPart,
    Message,
    ModelCall,
    ToolScore,
    WholeTalk,
    Words,
    format_iso_time,
    parse_moment,
)
from pollex.formats.assembly.thumbs import describe_unused
from pollex.formats.assembly.trees import sort_messages
from pollex.formats.bounds import CUT
from pollex.formats.columns import Column, columns_in
from pollex.formats.comments import find_comment_beside, find_comment_columns
from pollex.formats.conservation import BESIDE, LABELS, REPEATED, TURNS, Conservation
from pollex.formats.fields import (
    ID_NAMES,
    JUDGE_NAMES,
    LABEL_NAMES,
    OWNER_NAMES,
    TURN_ID_NAMES,
    Picker,
    ReadOptions,
    RowFields,
)
from pollex.formats.files import STDIN, find_files, may_hold_tables, rows_of
from pollex.formats.frames import Rows, iterate_rows
from pollex.formats.inference import Candidate, find_plain_label, owner_likelihood
from pollex.formats.joined_tables import joins_of
from pollex.formats.json_rows import LogRow
from pollex.formats.label_columns import (
    in_order_of_likelihood,
    meaning_of_labels,
    sides_of_column,
    values_told,
)
from pollex.formats.labels import MOST_TOLD, NEITHER, BadLabel, is_usual
from pollex.formats.log_shapes.choices import (
    drop_left,
    keep_chosen_alone,
    without_left_turns,
)
from pollex.formats.log_shapes.exports import WrongFile, list_objects
from pollex.formats.log_shapes.readers import (
    NAMES,
    Draft,
    NoShape,
    Reader,
    date_orders,
    read_field,
    reader_of,
    time_name,
)
from pollex.formats.log_shapes.tools import Export, export_of, has_words, nearest_format, respell
from pollex.formats.log_shapes.turns import turns_in
from pollex.formats.log_shapes.unfolded import carried_row, plain_row, with_sides, with_turns
from pollex.formats.mapping import USUAL, Mapper
from pollex.formats.names import is_called, is_called_comment
from pollex.formats.paths import MISSING, find_value, look_up, parse_if_json
from pollex.formats.proposal import (
    Strange,
    Unmapped,
    format_table,
    make_proposal_error,
    make_unmapped_error,
    read_all_rows,
    read_first_rows,
)
from pollex.formats.shown_sources import take_sources
from pollex.formats.structure import Structure
from pollex.formats.tally import CONTENT_ID, LogTally, Placed, Skipped, Voted
from pollex.formats.users import Users, note_on_copies, note_on_users
from pollex.text import SURROGATE_PATTERN, escape_controls, format_count, replace_surrogates

T = TypeVar("T")

MOST_TURNS = 4
"""A conversation as long as so many of the longest turns is too large as well."""
MOST_HELD = 20_000
"""Rows of an archive, a database or a spreadsheet that are held while they are read again."""
MOST_WORDLESS = 100_000
"""Rows without words that are kept until their file ends."""
FEWEST_WORDS = 4
"""Words of a text that may be what somebody said."""
ANY_SIDES = spell_options(positive="A,B", negative="C,D")
"""How somebody says which values of a label are good, and which are bad."""
MOST_SEARCHED = 1_000
"""Rows whose messages are searched for feedback."""
_OWNERS = frozenset(OWNER_NAMES)
USUAL_OF_MESSAGES = frozenset(
    ("role", "content", "id", "timestamp", "createdAt", "name", "tool_calls")
)
NO_NOTES: Mapping[str, None] = {}
LONGEST_LABEL_ROW = 2_000
"""Characters of the texts of a row that may be a label, with what was written beside it."""
IN_MEMORY = "row"
"""What rows in memory are said to be from."""

_ODD: dict[Flag, re.Pattern[str]] = {
    "surrogates": SURROGATE_PATTERN,
    "nul": re.compile("\x00"),
    "bidi": re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"),
    "zero_width": re.compile("[\u200b\u2060-\u2064\ufeff]"),
}
"""The joiners U+200C and U+200D aren't odd: Persian, Hindi and many emoji are written with them."""


EXCHANGE = "request and response"
"""The reader of rows that are a question with its answer, and name no conversation."""
ANSWERS_LEFT = "answers that nobody chose are no turns"


class TableTurn(NamedTuple):
    """A turn of a flat table; the second of a row is `part` 1."""

    position: float | None
    part: int
    turn: Turn
    picked: RowFields
    feedback: Feedback | None
    at: float | None = None


def _fields_of_turn(turn: TableTurn) -> Mapping[str, Any]:
    return turn.picked.rest


def _role_of_turn(turn: TableTurn) -> str:
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
        draft: Draft,
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


class Clock:
    """What the times of a file's tables are, and whether it has the newest row first."""

    def __init__(self, tables: Collection[ConversationRows]) -> None:
        self._ways = date_orders(turn.picked.rest for table in tables for turn in table.turns)
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
        name = time_name(turn.picked.rest)
        at = None
        if name is not None:
            at = parse_moment(rest[name], self._ways[0] if self._ways else None)
        if name is None or at is None:
            return turn
        if len(self._ways) == 1 and parse_moment(rest[name]) is None:
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
            turn.at is None and time_name(turn.picked.rest) is not None for turn in timed
        )
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


class Assembler:
    """Makes the conversations of one file."""

    def __init__(
        self,
        picker: Picker,
        options: ReadOptions,
        joiner: Joiner,
        strange: Strange,
        conservation: Conservation,
    ) -> None:
        self._joiner = joiner
        self._strange = strange
        self._conservation = conservation
        self._picker = picker
        self._options = options
        self._tables: dict[str, ConversationRows] = {}
        self._begun = False
        self._moments: dict[str, list[Placed]] = {}
        self._wordless: list[tuple[str, LogRow, BadRow]] = []
        self._compared: set[frozenset[str]] = set()
        self._label_path = (options.label_field or "").partition("[].")

    def assemble(
        self, rows: Iterable[LogRow | BadRow | Skipped]
    ) -> Iterator[Placed | Skipped | BadRow]:
        """Yield conversations one by one; those of a flat table at the end.

        Raises:
            WrongUse: The label may be in two fields, or its value matches both sides.
        """
        for row in rows:
            if isinstance(row, LogRow):
                plain = plain_row(row.fields)
                if not self._options.columns:
                    plain = carried_row(plain) or plain
                if plain is not row.fields:
                    row = replace(row, fields=plain)
                self._joiner.note_page(row)

            if isinstance(row, LogRow):
                item = self._read_row(row)
            else:
                item = row

            if isinstance(item, BadRow) and (
                self._may_be_beside(row, item) or self._may_label(row, item)
            ):
                continue
            if isinstance(item, BadRow):
                self._joiner.unread.append(item)
            # moments of a chat wait for the end of the file, which shows the latest of them
            if isinstance(item, list):
                yield from item
            elif isinstance(item, Placed) and (chat := _chat_of(item.conversation)):
                self._moments.setdefault(chat, []).append(item)
            elif item is not None:
                yield item

        # what waited for the end of the file: moments of chats, rows beside tables, tables
        for moments in self._moments.values():
            yield from self._joined_moments(moments)

        yield from self._beside_tables()
        clock = Clock(self._tables.values())
        for id_ in list(self._tables):
            table = self._tables.pop(id_)
            yield from (
                [replace(table.bad, rows=table.rows)] if table.bad else self._joined(table, clock)
            )

        self._joiner.notes += clock.notes

    def _may_be_beside(self, row: object, bad: BadRow) -> bool:
        """Keep a row without words that has an id: at the end of the file it may be a conversation's own row."""
        if not isinstance(row, LogRow) or len(self._wordless) >= MOST_WORDLESS:
            return False

        id_ = row.fields.get("id", row.fields.get("_id"))
        if (
            not isinstance(id_, str | int)
            or not self._strange.last_unshaped
            or has_words(row.fields)
        ):
            return False

        self._wordless.append((str(id_), row, bad))
        return True

    def _may_label(self, row: object, bad: BadRow) -> bool:
        """Keep a row without words for the end of all files: it may label what an export has."""
        if not isinstance(row, LogRow) or not self._strange.last_unshaped:
            return False
        return not has_words(row.fields) and self._hold_label(row, bad)

    def _hold_label(self, row: LogRow, bad: BadRow) -> bool:
        """Keep a small row for the end of all files, and return whether it was kept; what was said has its reader."""
        held = self._joiner.label_tables.rows
        size = sum(len(value) for value in row.fields.values() if isinstance(value, str))
        if self._options.columns or len(held) >= MOST_LABEL_ROWS or size > LONGEST_LABEL_ROW:
            return False

        held.append((row, bad))
        return True

    def _beside_tables(self) -> Iterator[BadRow | Skipped]:
        """Yield rows without words: those of a conversation whose turns are in the file stand beside it."""
        for id_, row, bad in self._wordless:
            if id_ in self._tables:
                self._joiner.account.tables["rows of conversations without words"] += 1
                yield Skipped(row.source, row.line, BESIDE)
            elif not self._hold_label(row, bad):
                self._joiner.unread.append(bad)
                yield bad

        self._wordless = []

    def _read_row(self, row: LogRow) -> Placed | list[Placed] | Skipped | BadRow | None:
        """Read a row; None for a turn that waits for the rest of its table."""
        try:
            # the user named the list of messages: no shape is looked for
            if self._options.messages_field is not None:
                self._joiner.account.general["messages"] += 1
                return self._whole(
                    row,
                    read_field(row.fields, self._options.messages_field),
                )

            if (
                not self._options.columns
                and not self._label_of_turns(row)
                and (export := export_of(row.fields)) is not None
            ):
                parts = list(export.read(row.fields))
                # a row of scores alone that has words, too, is rather a log with labels
                if not _are_scores(parts) or not has_words(row.fields):
                    self._take(row, export, parts)
                    return None

            # rows of the general shapes; another shape may still be a known one in other words
            try:
                reader = reader_of(row.fields)
            except NoShape as error:
                return self._reread(row, error)

            # a turn waits for the rest of its table; other rows are whole conversations
            if reader.row_is_turn:
                self._joiner.account.general[reader.name] += 1
                self._put_aside(row, reader)
                return None

            self._joiner.account.general[reader.name] += 1
            draft = reader.read(row.fields)
            if draft:
                return self._whole(row, draft)
            return Skipped(row.source, row.line)
        except WrongFile as error:
            if self._begun:  # the file is right, and this row is damaged
                return _bad_row_of(row, error)
            raise BadInput(error.what, where=row.source, hint=error.advice) from None
        except BadInput as error:
            self._strange.note(error)
            return _bad_row_of(row, error)

    def _reread(
        self, row: LogRow, error: NoShape
    ) -> Placed | list[Placed] | Skipped | BadRow | None:
        """Read a row of no known shape as one of a known format that is spelled otherwise, or whose talk stands deeper.

        Raises:
            NoShape: It is none.
        """
        if (fields := respell(row.fields)) is not None and (
            export := export_of(fields)
        ) is not None:
            self._take(row, export, list(export.read(fields)))
            return None
        # rows without words: a label, a vote, or what may be one
        if parts := list(self._labels_alone(row.fields)):
            self._joiner.take(row, "labels", parts)
            self._conservation.add(row.source, LABELS)
            return None
        if vote := _vote_in(row.fields):
            self._joiner.take(row, "votes", [vote])
            self._conservation.add(row.source, LABELS)
            return None
        if label := _label_without_words(row.fields):
            what = "the row has no words, and names a conversation"
            unlabeled = NoShape(
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
            and (fields := with_sides(row.fields) or with_turns(row.fields)) is not None
        ):
            return self._read_row(replace(row, fields=fields))

        # all rows of a table resemble the same
        if (names := frozenset(row.fields)) not in self._compared:
            self._compared.add(names)
            error.near = nearest_format(row.fields)

        raise error from None

    def _labels_alone(self, fields: Mapping[str, Any]) -> Iterator[ToolScore]:
        """Yield the label of a row that has no words, but a conversation's id and the field that the user named."""
        name = self._options.label_field
        value = None
        if name is not None:
            value = look_up(fields, name)

        # words under the names that the user gave to columns
        says = any(
            fields.get(USUAL[part])
            for part, _ in self._options.columns
            if part in ("text", "user", "assistant")
        )
        if name is None or value is None or says or _has_sentences(fields):
            return

        # a column that names the conversation goes before the row's own id
        id_ = next(
            (
                fields[owner_name]
                for owner_name in (*OWNER_NAMES, *ID_NAMES)
                if fields.get(owner_name) not in (None, "")
            ),
            None,
        )
        if id_ is not None:
            person = next(
                (str(fields[judge_name]) for judge_name in JUDGE_NAMES if fields.get(judge_name)),
                None,
            )
            comment = find_comment_beside(fields, name)
            yield ToolScore(
                "conversation",
                str(id_),
                value,
                name=name,
                comment=None if comment is MISSING else comment,
                person=person,
            )

    def _take(
        self,
        row: LogRow,
        export: Export,
        parts: Sequence[LogPart],
    ) -> None:
        """Have a row's parts joined with those of other rows, and count what they are."""
        self._joiner.take(row, export.name, parts)
        self._begun = True
        self._strange.exports += 1
        outcome = _outcome_of(parts)
        self._conservation.add(row.source, outcome)
        if outcome == BESIDE:
            self._joiner.account.tables[export.name] += 1

    def _put_aside(self, row: LogRow, reader: Reader) -> None:
        """Collect a row of a flat table; a bad row invalidates its whole conversation.

        Without that turn it would be another conversation.
        """
        id_ = self._picker.id_of_turn(row.fields)
        if id_ is None:
            raise NoShape(
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
                self._joiner.odd.look_at(draft.turns, (row.source, row.line))
                picked = self._picked(draft, TURN_ID_NAMES)
                table.add(draft, picked, self._feedback(picked, row))
        except BadInput as error:
            self._strange.note(error)
            table.bad = table.bad or _bad_row_of(row, error)

    def _whole(self, row: LogRow, draft: Draft) -> Placed | list[Placed]:
        if draft.left:
            self._joiner.odd.add(ANSWERS_LEFT, (row.source, row.line))

        self._joiner.odd.look_at(draft.turns, (row.source, row.line))
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
        conversation = self._joiner.with_signals(conversation, (row.source, row.line))
        return Placed(conversation, row.source, row.line, picked.number)

    def _note_feedback_in(self, row: LogRow) -> None:
        """Note what looks like feedback inside the messages of the first rows."""
        name = next(
            (messages_name for messages_name in NAMES if messages_name in row.fields),
            None,
        )
        if name is None or row.line > MOST_SEARCHED:
            return

        for message in list_objects(row.fields[name]):
            if message.keys() - USUAL_OF_MESSAGES:
                self._joiner.unused.update(f"{name}[].{path}" for path in likely_feedback(message))

    def _label_of_turns(self, row: LogRow) -> str:
        """Return the path to the label inside a message, where the user named one in the list of turns; else empty."""
        before, listed, path = self._label_path
        if not listed:
            return ""

        field = self._options.messages_field or next(
            (name for name in NAMES if name in row.fields), ""
        )
        if listed and before == field:
            return path
        return ""

    def _rated_turns(self, row: LogRow, draft: Draft, path: str) -> Iterator[TableTurn]:
        """Yield the turns of a row with the label and the comment that each message has."""
        listed = self._label_path[0]
        comment = (self._options.comment_field or "").removeprefix(f"{listed}[].")
        messages = drop_left(parse_if_json(look_up(row.fields, listed)))
        if isinstance(messages, list):
            spoken = [turns_in(message) for message in messages]
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
            label_fields = {str(self._options.label_field): look_up(message, path)}
            if comment:
                label_fields[str(self._options.comment_field)] = look_up(message, comment)
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

    def _picked(self, draft: Draft, id_names: tuple[str, ...] = ID_NAMES) -> RowFields:
        picked = self._picker.pick(draft.rest, id_names)
        if picked.label is Label.NONE and not picked.number and not self._picker.label_field:
            self._joiner.unused.update(likely_feedback(picked.rest))
        return picked

    def _feedback(self, picked: RowFields, row: LogRow) -> Feedback | None:
        if picked.comment in (None, "") and picked.tags is None:  # as in most rows
            return None

        comment, tags = self._joiner.odd.written(
            picked.comment,
            picked.tags,
            (row.source, row.line),
        )
        if comment or tags:
            return Feedback(comment=comment, tags=tags, author=picked.judge)
        return None

    def _joined(self, table: ConversationRows, clock: Clock) -> Iterator[Placed | BadRow]:
        """Yield the conversation of a table; several where its thumbs or its raters part it."""
        first = LogRow(table.source, table.line, {})
        try:
            _require_places(table.turns)
            turns = without_left_turns(
                clock.in_order(table.turns),
                _fields_of_turn,
                _role_of_turn,
            )
            if len(turns) < len(table.turns):
                self._joiner.odd.add(ANSWERS_LEFT, (table.source, table.line))
            parts = list(self._parted(turns, first))
        except BadInput as error:
            yield replace(_bad_row_of(first, error), rows=table.rows)
            return

        for number, placed in enumerate(parts):
            yield placed._replace(rows=0 if number else table.rows)

    def _parted(self, turns: Iterable[TableTurn], row: LogRow) -> Iterator[Placed]:
        """Yield the conversations of some turns in their order.

        Raises:
            BadInput: The turns contradict each other.
        """
        ordered = list(turns)
        if by_judge := turns_by_judge(ordered):
            yield from self._of_raters(by_judge, row)
            return

        thumbed = self._thumbed(ordered)
        # each thumb gets a conversation that ends at its answer and has that thumb alone
        if self._options.thumbs == "each" and 0 < len(thumbed) < len(ordered):
            for place in thumbed:
                cut = []
                for turn in ordered[:place]:
                    cut.append(turn._replace(picked=_without_label(turn.picked)))

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
            return [turn._replace(picked=_without_label(turn.picked)) for turn in turns]
        if len(set(labels)) < 2:
            return turns
        if self._options.thumbs is None and not self._options.labels_needed:
            self._picker.leave_unread()
            return [turn._replace(picked=_without_label(turn.picked)) for turn in turns]
        if self._options.thumbs is None:
            raise _differing_labels(labels)

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
            turn if place == counting_place else turn._replace(picked=_without_label(turn.picked))
            for place, turn in enumerate(turns)
        ]

    def _of_raters(
        self, by_judge: Mapping[str, Sequence[TableTurn]], row: LogRow
    ) -> Iterator[Placed]:
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
    ) -> Placed:
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
        feedback = _place_feedback([turn.feedback for turn in ordered])
        conversation = _make_conversation(
            turns,
            picked,
            feedback,
            self._options,
            row,
        )

        return Placed(
            self._joiner.with_signals(conversation, (row.source, row.line)),
            row.source,
            row.line,
            picked.number,
        )

    def _joined_moments(self, moments: Sequence[Placed]) -> Iterator[Placed | BadRow]:
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

            self._conservation.add(early.source, REPEATED, early.rows)
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


def _has_sentences(fields: Mapping[str, Any]) -> bool:
    """Return whether a row may hold what somebody said, beside a comment."""
    texts = []
    for name, value in fields.items():
        if isinstance(value, str) and not is_called_comment(name):
            texts.append(value)

    return any(len(text.split()) >= FEWEST_WORDS for text in texts) or has_words(fields)


MOST_OF_VOTE = 8
"""Columns of a row that has a thumb and names its conversation, beside a time and who gave it."""


def _vote_in(fields: Mapping[str, Any]) -> ToolScore | None:
    """Return the thumb of a row without words that names a conversation in a column of any name; None for others."""
    if len(fields) > MOST_OF_VOTE or _has_sentences(fields):
        return None

    thumbs = []
    for name in LABEL_NAMES:
        if name in fields and is_usual(fields[name]):
            thumbs.append(name)

    ids = []
    for name, value in fields.items():
        if _may_name_talk(name, value) and name not in thumbs:
            ids.append(name)

    # with several of either, nobody can tell which is the thumb and which the id
    if len(thumbs) != 1 or len(ids) != 1:
        return None

    comment = find_comment_beside(fields, thumbs[0])
    return ToolScore(
        "conversation",
        str(fields[ids[0]]),
        fields[thumbs[0]],
        comment=None if comment is MISSING else comment,
    )


def _may_name_talk(name: str, value: object) -> bool:
    scalar = isinstance(value, str | int) and not isinstance(value, bool) and value != ""
    return scalar and is_called(name, "conversation") and not is_called(name, "time")


def _label_without_words(fields: Mapping[str, Any]) -> str:
    """Return the column that may be the label of a row that names a conversation and has no words; else empty."""
    if not any(fields.get(name) not in (None, "") for name in OWNER_NAMES) or _has_sentences(
        fields
    ):
        return ""

    named = []
    for name in fields:
        if is_called(name, "label") and name not in OWNER_NAMES:
            named.append(name)

    return named[0] if len(named) == 1 else ""


def _are_scores(parts: Sequence[LogPart]) -> bool:
    return bool(parts) and all(isinstance(part, ToolScore) for part in parts)


def _outcome_of(parts: Sequence[LogPart]) -> str:
    """Return what a row of an export becomes: turns, labels, or what stands beside conversations."""
    if any(isinstance(part, ModelCall | Words | WholeTalk | Addition) for part in parts):
        return TURNS
    if any(isinstance(part, Message) and part.turns for part in parts):
        return TURNS
    if any(isinstance(part, ToolScore) for part in parts):
        return LABELS
    return BESIDE


def _without_label(picked: RowFields) -> RowFields:
    if picked.label is Label.NONE:
        return picked
    return replace(picked, label=Label.NONE, number="")


def turns_by_judge(turns: Sequence[TableTurn]) -> dict[str, list[TableTurn]]:
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


def _differing_labels(labels: Sequence[Label]) -> BadInput:
    ups = labels.count(Label.POSITIVE)
    what = f"{format_count(len(labels), 'thumb', 'thumbs')} that differ: {ups} up, {len(labels) - ups} down"
    hint = "say which counts: last, worst, or each, which cuts after every thumbed answer"
    return BadLabel(what, hint=hint, option={"thumbs": "last"})


def _place_feedback(feedbacks: Sequence[Feedback | None]) -> tuple[Feedback, ...]:
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


def _chat_of(conversation: Conversation) -> str | None:
    """Return the chat that a row with a thumb names beside its own id: it may hold one moment of it."""
    if conversation.label is Label.NONE or _OWNERS.isdisjoint(conversation.metadata):
        return None

    owners = (conversation.metadata.get(name) for name in OWNER_NAMES)
    return next(
        (str(value) for value in owners if isinstance(value, str | int)),
        None,
    )


def label_joined(
    joiner: Joiner,
    picker: Picker,
    options: ReadOptions,
) -> Iterator[Placed | Skipped | Voted | BadRow]:
    """Yield labeled conversations from rows that may be in several files.

    Raises:
        BadInput: There are thumbs and no words, or words and only thumbs of others.
        WrongUse: Several scores may be the thumb.
    """
    labeller = Labeller(options, partial(picker.settle_raters, by_field=False))
    # rows of exports were counted when they were taken: nothing counts twice
    for item in joiner.join():
        if isinstance(item, BadRow):
            yield replace(item, rows=0)
            continue
        row = LogRow(*item.place, {})
        try:
            for turns, picked, feedback in labeller.label(item):
                conversation = _make_conversation(
                    turns,
                    picked,
                    feedback,
                    options,
                    row,
                )
                yield Placed(
                    joiner.with_signals(conversation, item.place),
                    *item.place,
                    rows=0,
                )
        except BadInput as error:
            reason = f"{item.id!r:.60}: {error.what}"
            of_label = isinstance(error, BadLabel)
            label = error.value if isinstance(error, BadLabel) else ""
            yield BadRow(
                row.source,
                row.line,
                reason,
                error.advice,
                0,
                of_label,
                label,
                error.options,
            )

    # votes on conversations, by their ids
    for id_, scores in joiner.votes.items():
        try:
            yield labeller.voted(id_, scores)
        except BadInput as error:
            label = error.value if isinstance(error, BadLabel) else ""
            of_label = isinstance(error, BadLabel)
            yield BadRow(
                "",
                0,
                f"{id_!r:.60}: {error.what}",
                error.advice,
                0,
                of_label,
                label,
                error.options,
            )

    # inner steps of traces are counted without a row
    yield from [Skipped("", 0, rows=0)] * joiner.steps
    # what was found, for the account of the reading
    joiner.notes += labeller.notes
    joiner.account.spellings.update(labeller.spellings)
    # the user's field was found only where a score of that name was taken
    taken_scores = []
    for kind in joiner.account.scores:
        if kind.taken:
            taken_scores.append(kind)

    named = [
        options.label_field if taken_scores else None,
        options.comment_field if joiner.comments_found else None,
    ]
    picker.note_found(
        *labeller.found,
        *filter(None, named),
        *joiner.signals_found,
    )


def _require_places(turns: Sequence[TableTurn]) -> None:
    places = [turn.position is None for turn in turns]
    if any(places) and not all(places):
        what = f"{sum(places)} of its {len(places)} turns have no number"
        raise BadInput(what, hint="number all turns of a conversation, or none")


def _bad_row_of(row: LogRow, error: BadInput) -> BadRow:
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
    sources, rest = take_sources(picked.rest)
    # flags tell of the log as it is: they are found before turns are cut or cleaned
    flags = _find_flags(turns, options.max_turn_chars)
    if "too_large" in flags:
        turns = tuple(_shorten_turns(turns, options.max_turn_chars))
    if "surrogates" in flags:
        turns = tuple(turn.mapped(replace_surrogates) for turn in turns)

    return Conversation(
        # ids of the log first; raters of one talk share an id that is made of its words
        id=replace_surrogates(picked.id)
        or (_rated_id(turns) if picked.judge else _content_id(row)),
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
    room = MOST_TURNS * longest
    for turn in turns:
        size = min(longest, room)
        yield turn if turn.size <= size else Turn(role=turn.role, content=turn.content[:size] + CUT)
        room -= min(size, turn.size)
        if room <= 0:
            return


def _find_flags(turns: Sequence[Turn], max_turn_chars: int) -> tuple[Flag, ...]:
    flags: set[Flag] = set()
    sizes = [turn.size for turn in turns]
    if sum(sizes) > MOST_TURNS * max_turn_chars or max(sizes, default=0) > max_turn_chars:
        flags.add("too_large")

    for turn in turns:
        for text in (turn.content, *[call.arguments for call in turn.calls]):
            # of the odd signs, plain ASCII has NUL alone
            if not text.isascii() or "\x00" in text:
                flags.update(flag for flag, odd in _ODD.items() if odd.search(text))

    return tuple(flag for flag in get_args(Flag) if flag in flags)


def _rated_id(turns: Sequence[Turn]) -> str:
    """Return an id of what was said alone: another rater's row of the same talk has the same."""
    content = json.dumps(
        [[turn.role, turn.content] for turn in turns],
        ensure_ascii=True,
    )
    return CONTENT_ID + hashlib.sha256(content.encode("ascii")).hexdigest()[:16]


def _content_id(row: LogRow) -> str:
    content = json.dumps(row.fields, sort_keys=True, ensure_ascii=True)
    return CONTENT_ID + hashlib.sha256(content.encode("ascii")).hexdigest()[:16]


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
        label=_only_value("label", labels) or Label.NONE,
        judge=_only_value("judge", [row.judge for row in rows]),
        group=_only_value("group", [row.group for row in rows]),
        rest=_merge_metadata([row.rest for row in rows]),
        number="" if sure else max(row.number for row in rows),
    )


def _only_value(name: str, values: Iterable[T | None]) -> T | None:
    distinct = list(dict.fromkeys(value for value in values if value is not None))
    if len(distinct) > 1:
        raise BadInput(
            f"its turns have different values of the {name}",
            hint="give a conversation one of them",
        )

    return distinct[0] if distinct else None


def _merge_metadata(rests: Sequence[dict[str, Any]]) -> dict[str, Any]:
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
    named = [sources] if isinstance(sources, str | Path) else sources
    if isinstance(sources, str | Path):
        where = str(sources)
    else:
        where = ", ".join(map(str, sources[:3]))

    files = find_files(named)
    notes = dict[str, None]()

    # rows of small archives, databases and spreadsheets, by their source
    held: dict[str, list[LogRow | BadRow]] = {}

    def open_file(source: str) -> Iterable[LogRow | BadRow]:
        if source in held:
            return held[source]

        longest = options.max_turn_chars
        rows = rows_of(
            source,
            options.encoding,
            longest,
            options.query_seconds,
            notes,
        )
        chosen = _with_chosen(rows, notes)
        if may_hold_tables([source]):
            return _holding(source, chosen, held)
        return chosen

    def open_files() -> Iterator[Iterable[LogRow | BadRow]]:
        every = map(open_file, files)
        if most_rows is None:
            return every
        return (islice(rows, most_rows) for rows in every)

    # several tables may be joined; that needs a look at all of them first
    again = STDIN not in files
    if again and may_hold_tables(files):
        joins = joins_of(files, open_files)
    else:
        joins = None

    if joins is None:
        return _read_or_propose(
            open_files,
            options,
            where,
            again=again,
            notes=notes,
        )

    notes.update(dict.fromkeys(joins.notes))

    def open_joined() -> Iterator[Iterable[LogRow | BadRow | Skipped]]:
        return map(joins.rows, open_files())

    return _read_or_propose(
        open_joined,
        options,
        where,
        notes=notes,
        beside=joins.labels,
    )


def read_rows(rows: Rows, *, options: ReadOptions | None = None) -> Logs:
    """Read conversations from rows in memory; see `read_logs`.

    Args:
        rows: Dicts as they would stand in JSON lines, or a table of pandas, polars or Arrow.
    """
    options = options or ReadOptions()
    listed = list(iterate_rows(rows))
    return _read_or_propose(lambda: [_number_rows(listed)], options, IN_MEMORY)


def _number_rows(rows: Iterable[Mapping[str, Any]]) -> Iterator[LogRow]:
    numbered = enumerate(rows, start=1)
    return (
        LogRow(IN_MEMORY, number, keep_chosen_alone(dict(fields))) for number, fields in numbered
    )


def _holding(
    source: str,
    rows: Iterable[LogRow | BadRow],
    held: dict[str, list[LogRow | BadRow]],
) -> Iterator[LogRow | BadRow]:
    """Yield rows, and hold those of a small archive, database or spreadsheet, which is read several times."""
    first = list[LogRow | BadRow]()
    number = 0
    for number, row in enumerate(rows, start=1):
        if number <= MOST_HELD:
            first.append(row)
        else:
            first.clear()

        yield row

    if number <= MOST_HELD:
        held[source] = first


def _with_chosen(
    rows: Iterable[LogRow | BadRow], notes: dict[str, None]
) -> Iterator[LogRow | BadRow]:
    """Yield rows of which lists of candidates gave way to the chosen one; how many is noted at their end."""
    settled_rows = 0
    for row in rows:
        fields = None
        if isinstance(row, LogRow):
            fields = keep_chosen_alone(row.fields)
        if fields is None or not isinstance(row, LogRow) or fields is row.fields:
            yield row
        else:
            settled_rows += 1
            yield replace(row, fields=fields)

    if settled_rows:
        notes[f"{ANSWERS_LEFT} ({format_count(settled_rows, 'row')} with several)"] = None


Sources = Iterable[Iterable[LogRow | BadRow | Skipped]]


def _read_or_propose(
    opened: Callable[[], Sources],
    options: ReadOptions,
    where: str,
    *,
    again: bool = True,
    notes: Mapping[str, None] = NO_NOTES,
    beside: Sequence[str] = (),
) -> Logs:
    """Read some sources; where nobody knows their shape, find out how they can be read.

    Args:
        beside: Columns of tables joined to the log that may be the label.
        again: Whether the sources can be opened more than once.
        notes: Notes on the files, which come as these are read.
    """
    strange = Strange()
    if options.kept_mapping and again:
        options = _as_kept(opened, options)

    try:
        logs = _read_sources(opened(), options, where, strange, notes)
        strange.offered = strange.offered or tuple(beside)
        # a log without labels takes a column that is plainly a thumb
        label = None
        if again:
            label = _plain_label(opened, options, logs, strange)
        # no such column: ask the user where a joined table leaves a doubt
        if label is None:
            _require_named(opened, options, logs, beside, where)
        if again:
            _require_owner(opened, options, logs, where, label)
        if label is not None:
            logs = _with_plain_label(opened, options, where, label, notes) or logs
            options = label.options(options) if logs.label_field else options

        return _with_comments(opened, options, where, logs, notes) if again else logs
    except NotText:
        raise
    except BadInput as error:
        # only rows of an unknown shape get a proposal; other errors stay as they are
        if not again or not strange.is_unknown or isinstance(error, Unmapped):
            raise
        better = _better_error(opened, options, strange, where, error)
        if better is None or (better.reading is None and "columns" in error.options):
            raise
        raise better from error


def _plain_label(
    opened: Callable[[], Sources],
    options: ReadOptions,
    logs: Logs,
    strange: Strange,
) -> Candidate | None:
    """Return the one column that is plainly the label of a log that has no other; None if none is, or several are."""
    named = (
        options.label_field
        or "label" in dict(options.columns)
        or options.positive
        or options.negative
    )
    # nothing to look for: the label is named, or the log has labels or scores
    if (
        named
        or not options.labels_needed
        or logs.label_field
        or not strange.offered
        or logs.account.scores
    ):
        return None
    if logs.counts[Label.POSITIVE] or logs.counts[Label.NEGATIVE]:
        return None
    return find_plain_label(read_first_rows(opened()), strange.offered)


def _require_named(
    opened: Callable[[], Sources],
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

    columns = []
    for column in columns_in(read_first_rows(opened())):
        if column.path in beside:
            columns.append(column)

    label_columns = [column for column, _ in in_order_of_likelihood(columns)] or columns
    if not label_columns:
        return

    sides = sides_of_column(label_columns[0]) or {}
    raise BadInput(
        f"{label_columns[0].path!r:.60} of a table that is joined to the log may be the label: "
        f"{escape_controls(values_told(label_columns[0]), 200)}",
        where=where,
        hint="if it is, say so",
        option={"label_field": label_columns[0].path, **sides},
    )


def _require_owner(
    opened: Callable[[], Sources],
    options: ReadOptions,
    logs: Logs,
    where: str,
    label: Candidate | None,
) -> None:
    """Require that somebody says so where exchanges of one conversation are read as several.

    Args:
        label: The one column that is plainly a thumb.

    Raises:
        Unmapped: A column names the conversation of several rows; it proposes that column.
    """
    # only logs of single exchanges, without columns that the user named, may hide an owner
    exchanges = set(logs.account.general) == {EXCHANGE} and not logs.account.formats
    if not exchanges or options.columns or options.id_field:
        return

    rows = read_first_rows(opened())
    columns = columns_in(rows)
    # columns that are named like a conversation, with values that several rows share
    owners = []
    for column in columns:
        if (
            is_called(column.path, "conversation")
            and not is_called(column.path, "text")
            and owner_likelihood(column) > 0.1
        ):
            owners.append(column)

    for owner in owners[:1]:
        labels = dict(label.labels) if label is not None else {}
        candidate = Candidate({"conversation": owner.path}, (), labels)

        def read_all(candidate_options: ReadOptions) -> Logs:
            return _read_sources(
                opened(),
                candidate_options,
                where,
                Strange(),
            )

        for reading in read_all_rows(candidate, options, read_all):
            if reading.holds:
                begins = (
                    f"{owner.path!r:.60} has one value for several exchanges; its columns are\n"
                )
                raise make_proposal_error(
                    reading,
                    columns,
                    begins + format_table(columns, reading),
                    where,
                )


def _with_plain_label(
    opened: Callable[[], Sources],
    options: ReadOptions,
    where: str,
    label: Candidate,
    notes: Mapping[str, None],
) -> Logs | None:
    """Return the log with the label that is plainly one; None where it can't be read so."""
    try:
        logs = _read_sources(
            opened(),
            label.options(options),
            where,
            Strange(),
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


def _with_comments(
    opened: Callable[[], Sources],
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
            opened(), replace(options, comment_field=paths[0]), where, Strange(), notes
        )
    except PollexError:
        return logs

    # nothing else may change by it
    if commented.counts != logs.counts:
        return logs
    where_from = f"comments come from {paths[0]!r:.60}, which is filled beside thumbs"
    note = f"{where_from}; for another: {spell_options(comment_field=None)}"
    return replace(commented, notes=(*commented.notes, note))


def _as_kept(opened: Callable[[], Sources], options: ReadOptions) -> ReadOptions:
    """Return the options of a kept mapping, without it where the log has other fields."""
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
    if first and all(find_value(first[0], name) is not MISSING for name in needed):
        return options
    return replace(options, columns=(), roles=())


def _better_error(
    opened: Callable[[], Sources],
    options: ReadOptions,
    strange: Strange,
    where: str,
    error: BadInput,
) -> Unmapped | None:
    """Return the error that proposes how to read the sources; None where they can't be read at all.

    Args:
        error: Why they can't be read as they are.
    """

    def read_all(candidate_options: ReadOptions) -> Logs:
        return _read_sources(opened(), candidate_options, where, Strange())

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
        read_sample,
        read_all,
    )


def read_sample(rows: Sequence[Mapping[str, Any]], options: ReadOptions) -> Logs:
    """Read some rows of a log as it is tried; what is cut off or differs at their end stops nothing."""
    tried = replace(
        options,
        max_bad=len(rows),
        on_duplicate="first",
        thumbs=options.thumbs or "last",
    )
    return _read_sources([_number_rows(rows)], tried, IN_MEMORY, Strange())


def _read_sources(
    sources: Sources,
    options: ReadOptions,
    where: str,
    strange: Strange,
    of_files: Mapping[str, None] = NO_NOTES,
) -> Logs:
    # what each row goes through, and what is counted on the way
    mapper = Mapper.of(options)
    user_options = options
    options = mapper.options(options)
    conservation = Conservation()
    structure = Structure()
    picker = Picker(options)
    tally = LogTally(options, conservation=conservation)
    originals = dict[tuple[str, str], dict[str, str]]()
    finders = None
    if options.redact:
        finders = choose_finders(options.redact)

    joiner = Joiner(options, tally.owner_of)
    users = Users(at_once=bool(finders))
    # one conversation after the other: users are found before their names are masked
    counted = (mapper.rows(conservation.count_in(rows)) for rows in sources)
    for item in _assemble_items(counted, picker, options, joiner, strange, conservation):
        if isinstance(item, Placed):
            users.look_at(item.conversation)
        if finders and isinstance(item, Placed):
            masked, replaced = mask_conversation(item.conversation, finders)
            item = item._replace(conversation=masked)
            originals |= {(masked.id, masked.text_hash): replaced} if replaced else {}

        if isinstance(item, Placed):
            structure.look_at(item.conversation)
        tally.add(item)

    # once all rows are read: whether numbers are thumbs, and whose conversations belong together
    joiner.account.rows = conservation.check()
    joiner.account.spellings.update(picker.spellings)
    tally.settle(picker.numbers, picker.settle_raters)
    group_field, *of_users = _group_by_users(
        users,
        tally,
        options,
        picker,
        redacted=bool(finders),
    )
    # columns that look like feedback matter only where no label was found
    has_label = bool(picker.label_field) or any(kind.taken for kind in joiner.account.scores)
    if options.labels_needed and not has_label:
        unused = describe_unused(joiner.unused)
    else:
        unused = []

    strange.offered = tuple(joiner.unused)
    # the log, with notes on how it was read
    of_reading = [
        *of_files,
        *picker.notes,
        *mapper.notes,
        *unused,
        *joiner.notes,
        *joiner.odd.notes,
    ]
    logs = tally.logs([*of_reading, *of_users, *structure.notes])
    logs = replace(
        logs,
        label_field=picker.label_field,
        group_field=group_field,
        account=joiner.account,
        originals=originals,
    )
    strange.read = len(logs)
    strange.all_rows = sum(sum(outcomes.values()) for outcomes in logs.account.rows.values())
    # errors that only a whole log shows
    mapper.check(where, needed=options.labels_needed)
    logs.check_max_bad(
        options.max_bad,
        meaning_of_labels(logs.bad_rows, [spelling for spelling, _ in picker.spellings]),
    )
    tally.check_clashes()

    if not logs.conversations:
        bad = ""
        if logs.bad_rows:
            bad = f", and {describe_bad_rows(logs.bad_rows)}"
        raise BadInput(
            f"no conversations{bad}",
            where=where,
            hint="check that the file is the one you meant",
        )

    if user_options.labels_needed and (
        user_options.label_field or "label" in dict(user_options.columns)
    ):
        _require_labels(logs, picker, where)

    if missing := picker.never_found(user_options):
        raise BadInput(
            f"no row has the field of {missing[0]}",
            where=where,
            hint="check its spelling",
        )

    return logs


def _require_labels(logs: Logs, picker: Picker, where: str) -> None:
    """Require that of a field that was named for the label at least one value is a thumb.

    Raises:
        BadInput: It has values, and none is one.
    """
    if logs.counts[Label.POSITIVE] or logs.counts[Label.NEGATIVE]:
        return

    left = {}
    for (value, meant), rows in picker.spellings.items():
        if meant == NEITHER:
            left[value] = rows

    if not left:
        return

    most_frequent = sorted(left.items(), key=lambda pair: -pair[1])[:MOST_TOLD]
    values = ", ".join(f"{value} ({rows})" for value, rows in most_frequent)
    sides = sides_of_column(Column(picker.label_field, list(left)))
    raise BadInput(
        f"no value of {picker.label_field!r:.60} is a thumb up or down: {values}",
        where=where,
        hint="say which are good and which are bad" + ("" if sides else f": {ANY_SIDES}"),
        option=sides or "",
    )


def _group_by_users(
    users: Users,
    tally: LogTally,
    options: ReadOptions,
    picker: Picker,
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
            return ("", note_on_copies(copies))
        return ("",)

    # names of users become pseudonyms where names are masked
    path, by_id = chosen
    tally.group({id_: make_pseudonym(user) for id_, user in by_id.items()} if redacted else by_id)
    return path, note_on_users(path, by_id, len(tally.labels))


def logs_of(conversations: Iterable[Conversation]) -> Logs:
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

        tally.add(Placed(conversation, "conversation", number))

    tally.check_clashes()
    return tally.logs([])


def _assemble_items(
    sources: Iterable[Iterable[LogRow | BadRow | Skipped]],
    picker: Picker,
    options: ReadOptions,
    joiner: Joiner,
    strange: Strange,
    conservation: Conservation,
) -> Iterator[Placed | Skipped | Voted | BadRow]:
    for rows in sources:
        yield from Assembler(picker, options, joiner, strange, conservation).assemble(rows)

    # rows of an export may be in several files: they are joined after the last
    if joiner.account.formats:
        yield from label_joined(joiner, picker, options)

    # rows that label an export are labels; what is left is of no known shape
    for source in joiner.labels_of:
        conservation.add(source, LABELS)
    strange.forget(len(joiner.labels_of))
    for _, bad in joiner.label_tables.rows:
        yield bad
