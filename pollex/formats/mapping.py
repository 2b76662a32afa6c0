"""Columns of any name: which part of a conversation each one holds, and whose turns the names of roles mean."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pollex.conversations.logs import BadRow
from pollex.errors import BadInput, WrongUse
from pollex.formats.assembly.log_parts import is_time_value, parse_timestamp
from pollex.formats.comments import find_comment_beside
from pollex.formats.conservation import ROW_OUTCOME_LEFT_OUT_BY_USER as NO_TURN
from pollex.formats.encodings import repair_meta_encoding
from pollex.formats.fields import ReadOptions
from pollex.formats.json_rows import LogRow
from pollex.formats.log_shapes.readers import CALL_FIELD_NAMES, TRACE_FIELD_NAMES
from pollex.formats.log_shapes.turns import (
    ROLE_BY_SPELLING,
    ROLE_FIELD_NAMES,
    UnknownRole,
    parse_role,
)
from pollex.formats.names import is_named_as_part
from pollex.formats.paths import (
    MISSING_VALUE,
    convert_turns_to_objects,
    find_value_at_path,
    join_texts_if_all,
    parse_value_if_json_text,
    remove_path,
    unwrap_message_content,
)
from pollex.formats.tally import SkippedRow
from pollex.text import JsonDict, JsonObject, escape_controls, format_count

FIELD_NAME_BY_TURN_PART = {"role": "role", "text": "content"}
USUAL_FIELD_BY_PART = {
    **FIELD_NAME_BY_TURN_PART,
    "conversation": "conversation_id",
    "turn": "turn",
    "time": "timestamp",
    "user": "prompt",
    "assistant": "response",
    "prompt": "prompt_version",
    "sources": "sources",
}
"""Parts whose column is read as if it had this name."""
OPTION_BY_PART = {
    "label": "label_field",
    "comment": "comment_field",
    "judge": "judge_field",
    "group": "group_field",
    "messages": "messages_field",
}
"""Parts whose column an option of its own may name, too."""
CONVERSATION_PART_NAMES = (
    "conversation",
    "role",
    "text",
    "turn",
    "time",
    "messages",
    "user",
    "assistant",
    *list(OPTION_BY_PART)[:-1],
    "prompt",
    "sources",
    "fill",
    "parent",
    "id",
)

MESSAGES_FIELD = "messages"
"""Where the list of turns stands in a row under the usual names."""
NO_TURN_ROLE = "none"
"""The role of rows that are no turns."""
ANY_OTHER_ROLE = "*"
"""What stands for every other name of a role."""
SENDER_NAME_FIELD = "sender_name"
"""Who wrote a message of a messenger's chat."""

REPLY_COLUMN_PART_NAMES = ("parent", "id")
"""Parts of rows that name what they answer, in place of a conversation: the row's own id, and the other one's."""
ROOT_ID_FIELD = "(root)"
"""Where the id of the row that began a conversation stands."""

WHOLE_FILE_COLUMN = "*"
"""The column of the conversation where each file is one."""

MAX_COLUMNS_NAMED = 100
"""Columns that an error may name."""

EXCHANGE_ROLES = ("user", "assistant")

PartAndColumnNamePairs = tuple[tuple[str, str], ...]


def parse_name_pairs(written: str | JsonObject | PartAndColumnNamePairs) -> PartAndColumnNamePairs:
    """Return what was given as `part=column,part=column`, a table or pairs; several values of a part follow each other.

    Raises:
        ValueError: A text of another form.
    """
    if isinstance(written, Mapping):
        several = {}
        for part, value in written.items():
            several[part] = [value] if isinstance(value, str) else value

        return tuple((part, str(value)) for part, values in several.items() for value in values)
    if not isinstance(written, str):
        return tuple(written)

    cut = []
    for part in written.split(","):
        if part.strip():
            cut.append(part.partition("="))

    wrong = []
    for part, equals, name in cut:
        if not (equals and part.strip() and name.strip()):
            wrong.append(part)

    if wrong:
        raise ValueError(
            f"{wrong[0]!r} stands alone: write NAME=VALUE, with commas between several"
        )

    return tuple((part.strip(), name.strip()) for part, _, name in cut)


def format_name_pairs(written: Iterable[tuple[str, str]]) -> str:
    """Return pairs as somebody types them."""
    return ",".join(f"{part}={name}" for part, name in written)


@dataclass
class ColumnMapper:
    """Gives rows the names that readers know.

    Attributes:
        seen: Mapped columns that a row had.
        spoken: Mapped names of roles that a turn had.
        there: All columns, in the order of the first rows.
        times: The first values of the time that can be read, and that can't.
    """

    columns: dict[str, str]
    roles: dict[str, str]
    seen: set[str] = field(default_factory=set)
    spoken: set[str] = field(default_factory=set)
    there: dict[str, None] = field(default_factory=dict)
    times: dict[bool, object] = field(default_factory=dict)
    left_out: Counter[str] = field(default_factory=Counter)
    without_text: int = 0

    @classmethod
    def of(cls, options: ReadOptions) -> ColumnMapper:
        """Check what was asked for.

        Raises:
            WrongUse: An unknown part or role, two columns for one part, or one column for two
                parts.
        """
        columns = _resolve_part_columns(options.columns)
        if "parent" in columns:
            _require_parent_and_id(columns)
            columns["conversation"] = ROOT_ID_FIELD

        # an option and the mapping name the same column for a part
        for part, option in OPTION_BY_PART.items():
            if (other := getattr(options, option)) and other != columns.get(part, other):
                _refuse_second_column(
                    part,
                    columns[part],
                    other,
                    {option: columns[part]},
                )

        # each spelling has one role, and a known one
        roles = {}
        for role, spelling in options.roles:
            roles[_normalize_name(spelling)] = role

        # the first role of each spelling, as an option that errors can show
        usual = (
            (role if role in ROLE_BY_SPELLING.values() else "user", spelling)
            for role, spelling in reversed(options.roles)
        )
        first = {}
        for role, spelling in usual:
            first[_normalize_name(spelling)] = (role, spelling)

        example = {"roles": format_name_pairs(reversed(first.values()))}
        for role, spelling in options.roles:
            if role not in (*ROLE_BY_SPELLING.values(), NO_TURN_ROLE):
                role_names = "user, assistant, system, tool, or none for what is no turn"
                raise WrongUse(
                    f"no role is called {role!r:.40}",
                    hint=f"give {role_names}",
                    option=example,
                )

            if roles[_normalize_name(spelling)] != role:
                raise WrongUse(
                    f"{spelling!r:.40} is given two roles",
                    hint="give it one",
                    option=example,
                )

        return cls(columns, roles)

    def options(self, options: ReadOptions) -> ReadOptions:
        """Return options that name the mapped columns."""
        named: JsonDict = {}
        for part, option in OPTION_BY_PART.items():
            if part in self.columns:
                named[option] = self.columns[part]

        # fields inside the list are told by the list's usual name
        if nested := self.columns.get("messages"):
            inside = {}
            for name, value in named.items():
                inside[name] = value.replace(f"{nested}[].", f"{MESSAGES_FIELD}[].", 1)

            named = inside | {"messages_field": MESSAGES_FIELD}

        if "conversation" in self.columns:
            named["id_field"] = USUAL_FIELD_BY_PART["conversation"]
        if named:
            return replace(options, **named)
        return options

    def rows(
        self, rows: Iterable[LogRow | BadRow | SkippedRow]
    ) -> Iterator[LogRow | BadRow | SkippedRow]:
        """Yield rows under the usual names; those that are no turns as what they are."""
        if not self.columns and not self.roles:
            yield from rows
            return

        above: object = None
        fill = self.columns.get("fill")
        for row in self._with_roots(rows):
            if not isinstance(row, LogRow):
                yield row
                continue
            fields = row.fields
            if fill is not None:  # as in merged cells, an empty one holds what stands above
                self.seen.add("fill")
                if fields.get(fill) not in (None, ""):
                    above = fields.get(fill)
                fields = {**fields, fill: above}

            if self.columns.get("conversation") == WHOLE_FILE_COLUMN:
                fields = {**fields, WHOLE_FILE_COLUMN: row.source}
            renamed = self.renamed(fields)
            if renamed is None:
                yield SkippedRow(row.source, row.line, NO_TURN)
            else:
                yield replace(row, fields=renamed)

    def _with_roots(
        self, rows: Iterable[LogRow | BadRow | SkippedRow]
    ) -> Iterator[LogRow | BadRow | SkippedRow]:
        """Yield rows with the id of the row that began their conversation, where a row names what it answers."""
        parent = self.columns.get("parent")
        if parent is None:
            yield from rows
            return

        held = list(rows)  # a row may answer one below
        fields_of_rows = []
        for row in held:
            fields_of_rows.append(row.fields if isinstance(row, LogRow) else {})

        roots = find_first_row_id_of_conversations(fields_of_rows, parent, self.columns["id"])
        for row, root in zip(held, roots, strict=True):
            if not isinstance(row, LogRow):
                yield row
                continue
            self.seen |= {
                part for part in REPLY_COLUMN_PART_NAMES if self.columns[part] in row.fields
            }
            yield replace(row, fields={**row.fields, ROOT_ID_FIELD: root})

    def renamed(self, fields: JsonObject) -> JsonDict | None:
        """Return a row under the usual names; None where it is no turn.

        A column in the way of a usual name stays under another name.
        """
        if len(self.there) < MAX_COLUMNS_NAMED:
            self.there |= dict.fromkeys(fields)

        # rows with a column for each turn
        nested = self.columns.get("messages")
        if (
            "*" in self.columns.get("user", "")
            and "*" in self.columns.get("assistant", "")
            and not nested
        ):
            return self._wide(fields)
        if (
            "*" in self.columns.get("role", "")
            and "*" in self.columns.get("text", "")
            and not nested
        ):
            return self._wide_with_speakers(fields)
        if not nested and (turns := self._list_paired_turns(fields)):
            return self._with_turns(fields, turns)

        # columns of the row itself get the usual names; those inside a list come later
        if nested:
            inside = {*FIELD_NAME_BY_TURN_PART, "user", "assistant"}
        else:
            inside = set()

        parts = []
        for part in (*USUAL_FIELD_BY_PART, *OPTION_BY_PART):
            if part not in inside:
                parts.append(part)

        row = self._moved(fields, parts)
        if "time" in self.seen and (time := row.get(USUAL_FIELD_BY_PART["time"])) not in (None, ""):
            self.times.setdefault(is_time_value(time), time)
        if nested:
            return self._with_messages(row, nested)

        # a row without words may be the call of a tool, or what came of it
        if (step := self._step_in(row, fields)) is not None:
            kept = (
                USUAL_FIELD_BY_PART["conversation"],
                USUAL_FIELD_BY_PART["time"],
                USUAL_FIELD_BY_PART["turn"],
            )
            return {name: row[name] for name in kept if name in row} | step

        # a row that is no turn may have the conversation's label
        silent = (
            "text" in self.columns
            and USUAL_FIELD_BY_PART["text"] not in row
            and "role" in self.columns
        )
        if (silent or self._is_no_turn(row)) and (label := self._label_alone(row, fields)):
            return label
        if silent:
            self.without_text += 1
            return None
        # turns in the row or in its lists, with roles that are known
        if (spoken := self._spoken(row)) is None:
            return None

        # where the user named roles, turns in the row's lists have them, too
        lists = list(spoken) if self.roles else []
        return spoken | {name: self._turns(spoken[name]) for name in lists}

    def _wide(self, fields: JsonObject) -> JsonDict:
        """Return a row that has a column for each turn, such as `question_1`, with its turns as a list."""
        numbered, rest = self._collect_numbered_values(fields, ("user", "assistant"))
        # question 1, answer 1, question 2 and so on
        turns = []
        for number in sorted(numbered):
            for side, text in numbered[number].items():
                if text not in (None, ""):
                    turns.append(
                        {USUAL_FIELD_BY_PART["role"]: side, USUAL_FIELD_BY_PART["text"]: text}
                    )

        return self._with_turns(rest, turns)

    def _wide_with_speakers(self, fields: JsonObject) -> JsonDict:
        """Return a row that has two columns for each turn, such as `from_1` and `text_1`, with its turns as a list."""
        numbered, rest = self._collect_numbered_values(fields, ("role", "text"))
        turns = []
        for number in sorted(numbered):
            turn = {USUAL_FIELD_BY_PART[part]: value for part, value in numbered[number].items()}
            has_words = turn.get(USUAL_FIELD_BY_PART["text"]) not in (None, "")
            if has_words and (spoken := self._spoken(turn)) is not None:
                turns.append(spoken)

        return self._with_turns(rest, turns)

    def _collect_numbered_values(
        self, fields: JsonObject, parts: Sequence[str]
    ) -> tuple[dict[int, JsonDict], JsonDict]:
        """Return the values of columns with numbers, by number and part, and the row's other fields."""
        patterns = {}
        for part in parts:
            patterns[part] = re.compile(re.escape(self.columns[part]).replace(r"\*", r"(\d+)"))

        numbered: dict[int, JsonDict] = {}
        rest: JsonDict = dict(fields)
        for part, pattern in patterns.items():
            for name, value in fields.items():
                if match := pattern.fullmatch(name):
                    self.seen.add(part)
                    numbered.setdefault(int(match[1]), {})[part] = value
                    rest.pop(name, None)

        return numbered, rest

    def _list_paired_turns(self, fields: JsonObject) -> list[JsonDict]:
        """Return the turns of a row that has all questions in one list and all answers in another; else none."""
        sides = []
        for side in EXCHANGE_ROLES:
            path = self.columns.get(side)
            sides.append(find_value_at_path(fields, path) if path else None)

        asked, told = sides
        if not (isinstance(asked, list) and isinstance(told, list) and len(asked) == len(told) > 1):
            return []
        if not all(isinstance(words, str) for words in (*asked, *told)):
            return []

        self.seen |= {*EXCHANGE_ROLES}
        turns = []
        for exchange in zip(asked, told, strict=True):
            for side, words in zip(EXCHANGE_ROLES, exchange, strict=True):
                turns.append(
                    {USUAL_FIELD_BY_PART["role"]: side, USUAL_FIELD_BY_PART["text"]: words}
                )

        return turns

    def _with_turns(self, fields: JsonObject, turns: Sequence[JsonDict]) -> JsonDict:
        """Return a row with its turns as a list, and its other columns under their usual names."""
        rest = fields
        other_parts = []
        for part in (*USUAL_FIELD_BY_PART, *OPTION_BY_PART):
            if part not in EXCHANGE_ROLES:
                other_parts.append(part)
            elif part in self.columns:
                rest = remove_path(rest, self.columns[part])

        return {MESSAGES_FIELD: turns, **self._moved(rest, other_parts)}

    def _step_in(self, row: JsonObject, fields: JsonObject) -> JsonDict | None:
        """Return the call of a tool, or what came of it, that a row without words is; None for others."""
        if not self._says_nothing(row):
            return None

        from pollex.formats.log_shapes.dialects import (
            convert_tool_step,  # rows with words don't need it
        )

        return convert_tool_step(fields)

    def _says_nothing(self, row: JsonObject) -> bool:
        """Return whether the column of words is empty in a row that would be a turn."""
        return (
            "text" in self.columns
            and "role" in self.columns
            and row.get(USUAL_FIELD_BY_PART["text"]) in (None, "")
        )

    def _is_no_turn(self, row: JsonObject) -> bool:
        return (
            "role" in self.columns
            and self._role(row.get(USUAL_FIELD_BY_PART["role"])) == NO_TURN_ROLE
        )

    def _label_alone(self, row: JsonObject, fields: JsonObject) -> JsonDict | None:
        """Return the conversation's id, label and comment of a row that is no turn; None where it has no label."""
        path = self.columns.get("label")
        value = find_value_at_path(fields, path) if path else MISSING_VALUE
        owner = row.get(USUAL_FIELD_BY_PART["conversation"])
        if value is MISSING_VALUE or value in (None, "", [], {}) or owner in (None, ""):
            return None

        self.seen |= {"label", "conversation"}
        label = {USUAL_FIELD_BY_PART["conversation"]: owner, str(path): value}
        # what was written with it: in the column that was named, else beside the label
        comment = self.columns.get("comment")
        if comment:
            comment_text = find_value_at_path(fields, comment)
        else:
            comment_text = find_comment_beside(fields, str(path))

        if comment_text in (MISSING_VALUE, None, ""):
            return label
        return {**label, "comment": comment_text}

    def _moved(self, fields: JsonObject, parts: Iterable[str]) -> JsonDict:
        values = {}
        for part in parts:
            if name := self.columns.get(part):
                values[part] = find_value_at_path(fields, name)

        there = {}
        for part, value in values.items():
            if value is not MISSING_VALUE:
                there[part] = value

        self.seen |= there.keys()
        moved = {}
        for part, value in there.items():
            if part in EXCHANGE_ROLES:  # an answer may stand in several texts
                value = join_texts_if_all(value)
            if part in USUAL_FIELD_BY_PART:
                moved[USUAL_FIELD_BY_PART[part]] = value

        # the text may be an object with the content inside, and the calls beside it
        if isinstance(content := moved.get(USUAL_FIELD_BY_PART["text"]), Mapping):
            for name in CALL_FIELD_NAMES:
                if name in content and name not in fields:
                    moved[name] = content[name]
            moved[USUAL_FIELD_BY_PART["text"]] = unwrap_message_content(content)

        # a mapped column leaves its old place
        rest: JsonObject = fields
        for part in there:
            if part in USUAL_FIELD_BY_PART:
                rest = remove_path(rest, self.columns[part])

        # whoever names both sides says that the row is an exchange, and no step of a trace
        if {*EXCHANGE_ROLES} <= there.keys() and not TRACE_FIELD_NAMES.isdisjoint(rest):
            rest = {
                f"{name} (column)" if name in TRACE_FIELD_NAMES else name: value
                for name, value in rest.items()
            }

        # where the words are missing, another column isn't taken for them
        taken = set(moved)
        if "text" in parts and self.columns.get("text"):
            taken.add(USUAL_FIELD_BY_PART["text"])

        renamed = {}
        for name, value in rest.items():
            renamed[f"{name} (column)" if name in taken else name] = value

        return moved | renamed

    def _with_messages(self, fields: JsonDict, path: str) -> JsonDict:
        """Return a row whose list of turns has its usual name."""
        value = find_value_at_path(fields, path)
        if value is MISSING_VALUE:
            return fields

        self.seen.add("messages")
        rest = {}
        for n, inner in remove_path(fields, path).items():
            rest[f"{n} (column)" if n == MESSAGES_FIELD else n] = inner

        return {MESSAGES_FIELD: self._turns(value), **rest}

    def _turns(self, value: object) -> object:
        # the list may be JSON text, an object of turns by key, or a transcript
        listed = parse_value_if_json_text(value)
        if isinstance(listed, Mapping) and "messages" in self.columns:
            listed = list(listed.values())
        if isinstance(listed, str):
            from pollex.formats.log_shapes.transcripts import is_transcript, parse_transcript

            listed = parse_transcript(listed) if is_transcript(listed) else listed

        if "messages" in self.columns:
            # a list of exchanges, each a list of turns, becomes one list
            if (
                isinstance(listed, list)
                and listed
                and all(isinstance(entry, list) for entry in listed)
            ):
                nested = []
                for exchange in listed:
                    nested.extend(exchange)

                if all(isinstance(turn, Mapping) for turn in nested):
                    listed = nested

            listed = convert_turns_to_objects(listed)

        if not isinstance(listed, list) or not all(isinstance(entry, Mapping) for entry in listed):
            return value
        if "messages" not in self.columns:
            spoken = [self._spoken(turn) for turn in listed]
            return [turn for turn in spoken if turn is not None]
        return list(self._mapped_turns(listed))

    def _mapped_turns(self, listed: Sequence[JsonObject]) -> Iterator[JsonDict]:
        for message in sort_turns_oldest_first(listed):
            if {"user", "assistant"} <= self.columns.keys():
                yield from self._exchange(message)
                continue
            moved = self._moved(message, FIELD_NAME_BY_TURN_PART)
            if (step := self._step_in(moved, message)) is not None:
                yield step
            elif "text" in self.columns and USUAL_FIELD_BY_PART["text"] not in moved:
                self.without_text += 1
            elif (spoken := self._spoken(moved)) is not None:
                yield spoken

    def _exchange(self, item: JsonObject) -> Iterator[JsonDict]:
        """Yield what was asked and what was answered in an item of a list of exchanges."""
        turn_columns = {
            *FIELD_NAME_BY_TURN_PART.values(),
            self.columns["user"],
            self.columns["assistant"],
        }
        beside = {}
        for name, value in item.items():
            if name not in turn_columns:
                beside[name] = value

        for side in ("user", "assistant"):
            text = find_value_at_path(item, self.columns[side])
            if text is not MISSING_VALUE and text not in (None, ""):
                self.seen.add(side)
                # What stands beside an exchange, such as its thumb, is about the answer.
                yield {
                    **(beside if side == "assistant" else {}),
                    USUAL_FIELD_BY_PART["role"]: side,
                    USUAL_FIELD_BY_PART["text"]: text,
                }

    def _spoken(self, turn: JsonObject) -> JsonDict | None:
        """Return a turn with a role that is known; None where what is said of its role is that it is no turn."""
        if self.roles:
            names = []
            for name in ROLE_FIELD_NAMES:
                if name in turn:
                    names.append(name)
        else:
            names = []

        # chats of messengers name the sender, which the user may know better than their reader
        if self.roles and not names and SENDER_NAME_FIELD in turn and "role" not in self.columns:
            sender = repair_meta_encoding(turn[SENDER_NAME_FIELD])
            turn = {**turn, SENDER_NAME_FIELD: sender}
            names = [SENDER_NAME_FIELD]

        # a turn that names nobody is by `*`
        if not names and ANY_OTHER_ROLE in self.roles and "role" in self.columns:
            names = [USUAL_FIELD_BY_PART["role"]]

        roles = {name: self._role(turn.get(name)) for name in names}
        if NO_TURN_ROLE in roles.values():
            self.left_out[format_role_word(turn.get(names[0]))] += 1
            return None
        return {**turn, **roles}

    def _role(self, role: object) -> object:
        word = format_role_word(role)
        if isinstance(role, Mapping | list):
            return role

        if _normalize_name(word) in self.roles:
            named = _normalize_name(word)
        else:
            named = ANY_OTHER_ROLE

        # `*` doesn't stand for names that are known anyway
        if named not in self.roles or (named == ANY_OTHER_ROLE and _is_known_role(word)):
            return role

        self.spoken.add(named)
        return self.roles[named]

    @property
    def notes(self) -> Iterator[str]:
        """Notes on what was no turn."""
        if self.left_out:
            speaker_counts = []
            for speaker, n in self.left_out.most_common(5):
                speaker_counts.append(f"{escape_controls(speaker, 40)!r} ({n})")

            names = ", ".join(speaker_counts)
            yield f"no turns, as you said: by {names}"

        if self.without_text:
            items = format_count(
                self.without_text,
                "row or item has",
                "rows or items have",
            )
            yield f"{items} no {self.columns['text']!r}, and {'is' if self.without_text == 1 else 'are'} no turn"

    def check(self, where: str, *, needed: bool = True) -> None:
        """Require that all that was mapped is there.

        Args:
            needed: Also labels and what stands with them, and each name of a role: new
                conversations may have none.

        Raises:
            BadInput: A column or a role is in no row, or nothing in the column of times is one.
        """
        # every mapped column stands in some row
        for part, name in self.columns.items():
            if part not in self.seen and (needed or part in USUAL_FIELD_BY_PART):
                near = next(
                    (
                        column
                        for column in self.there
                        if _normalize_name(column) == _normalize_name(name)
                    ),
                    None,
                )
                hint = "give " + (near or f"one of {', '.join(self.there)}")
                option = {
                    "columns": format_name_pairs((self.columns | {part: near or "COLUMN"}).items())
                }
                raise BadInput(
                    f"no row has the column {name!r:.60} of {part}",
                    where=where,
                    hint=hint,
                    option=option,
                )

        # the column of times has times
        if self.times.keys() == {False}:
            hint = "write times as 2026-12-31 14:00, or leave time out of"
            raise BadInput(
                f"{self.times[False]!r:.40} is no time",
                where=where,
                hint=hint,
                option="columns",
            )

        # every role that was named speaks
        silent = []
        for name in self.roles:
            if name not in self.spoken and name != ANY_OTHER_ROLE:
                silent.append(name)

        if needed and silent:
            what = f"no turn is by {silent[0]!r:.40}"
            raise BadInput(
                what,
                where=where,
                hint="check its spelling, or leave it out of",
                option="roles",
            )


def find_first_row_id_of_conversations(
    rows: Sequence[JsonObject],
    parent: str,
    own: str,
) -> list[str]:
    """Return the id of the row that began each row's conversation.

    Args:
        parent: The column of what a row answers: the one before it, or the first of all.
        own: The column of a row's own id.
    """
    answered = {}
    for row in rows:
        answered[format_role_word(find_value_at_path(row, own))] = _get_text_at_path(row, parent)

    roots = []
    for row in rows:
        # the chain is followed to its beginning; a circle ends where it closes
        root = _get_text_at_path(row, parent) or _get_text_at_path(row, own)
        passed = {_get_text_at_path(row, own)}
        while answered.get(root) and root not in passed:
            passed.add(root)
            root = answered[root]
        roots.append(root)

    return roots


def _get_text_at_path(row: JsonObject, path: str) -> str:
    value = find_value_at_path(row, path)
    if value is MISSING_VALUE:
        return ""
    return format_role_word(value)


def sort_turns_oldest_first(listed: Sequence[JsonObject]) -> Sequence[JsonObject]:
    """Return the items of a list in the order of time, where one of their columns says that the newest is first."""
    if len(listed) > 1:
        names = []
        for name in listed[0]:
            if is_named_as_part(name, "time"):
                names.append(name)
    else:
        names = []

    for name in names:
        times = [parse_timestamp(item.get(name)) for item in listed]
        known_times = []
        for time in times:
            if time is not None:
                known_times.append(time)

        if (
            len(known_times) == len(listed)
            and known_times[0] > known_times[-1]
            and known_times == sorted(known_times, reverse=True)
        ):
            return listed[::-1]

    return listed


def _resolve_part_columns(columns_of_parts: PartAndColumnNamePairs) -> dict[str, str]:
    """Return the column of each part of a conversation, as the user paired them.

    Raises:
        WrongUse: There is no such part, or a part or a column stands twice.
    """
    columns: dict[str, str] = {}
    for part, name in columns_of_parts:
        if part not in CONVERSATION_PART_NAMES:
            raise WrongUse(
                f"no part is called {part!r:.40}",
                hint=f"parts are {', '.join(CONVERSATION_PART_NAMES)}",
                option="columns",
            )

        without = {
            "columns": format_name_pairs(pair for pair in columns_of_parts if pair != (part, name))
        }
        if columns.setdefault(part, name) != name:
            _refuse_second_column(part, columns[part], name, without)
        if part == "fill":  # the column has a part of its own, too
            continue
        # a column may have one part; a list of turns and what stands in its items may share a name
        if part in FIELD_NAME_BY_TURN_PART:
            apart = {part, "messages"}
        else:
            apart = {part, *(FIELD_NAME_BY_TURN_PART if part == "messages" else ())}

        apart.add("fill")
        if other := next(
            (
                other_part
                for other_part, column in columns.items()
                if column == name and other_part not in apart
            ),
            None,
        ):
            what = f"the column {name!r:.60} is given as {other} and as {part}"
            raise WrongUse(what, hint="give it one part", option=without)

    return columns


def _require_parent_and_id(columns: Mapping[str, str]) -> None:
    """Require what the parent of a row needs.

    Raises:
        WrongUse: The column of a row's own id isn't named, or one of the conversation is, too.
    """
    typed = {}
    for part, name in columns.items():
        if part != "conversation":
            typed[part] = name

    if "id" not in columns:
        what = f"rows name what they answer by {columns['parent']!r:.60}, and no column is named as their id"
        option = {"columns": format_name_pairs((*typed.items(), ("id", "COLUMN")))}
        raise WrongUse(what, hint="name it", option=option)
    if "conversation" in columns:
        what = "two ways to tell conversations: by a column, and by what a row answers"
        raise WrongUse(
            what,
            hint="give one",
            option={"columns": format_name_pairs(typed.items())},
        )


def _refuse_second_column(
    part: str,
    column: str,
    other: str,
    option: Mapping[str, object],
) -> None:
    what = f"two columns are given for {part}: {column!r:.60} and {other!r:.60}"
    raise WrongUse(what, hint="give one", option=option)


def _normalize_name(text: str) -> str:
    return text.strip().casefold()


def format_role_word(role: object) -> str:
    """Return a name of a role as it is typed: of true, false and numbers, too; empty for nothing."""
    if role is None:
        return ""
    if isinstance(role, bool):
        return str(role).lower()
    return str(role)


def _is_known_role(word: str) -> bool:
    try:
        parse_role(word)
    except (BadInput, UnknownRole):
        return False

    return True
