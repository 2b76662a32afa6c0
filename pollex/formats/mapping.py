"""Columns of any name: which part of a conversation each one holds, and whose turns the names of roles mean."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pollex.conversations.logs import BadRow
from pollex.errors import BadInput, WrongUse
from pollex.formats.assembly.log_parts import is_time, parse_moment
from pollex.formats.comments import find_comment_beside
from pollex.formats.conservation import LEFT_OUT as NO_TURN
from pollex.formats.fields import ReadOptions
from pollex.formats.json_rows import LogRow
from pollex.formats.log_shapes.dialects import step_of_tool
from pollex.formats.log_shapes.readers import TRACES
from pollex.formats.log_shapes.transcripts import is_transcript, messages_in
from pollex.formats.log_shapes.turns import ROLE_NAMES, ROLES, UnknownRole, role_of
from pollex.formats.names import is_called
from pollex.formats.paths import (
    MISSING,
    find_value,
    pairs_as_objects,
    parse_if_json,
    remove_path,
    unwrap_content,
)
from pollex.formats.tally import Skipped
from pollex.text import escape_controls, format_count

OF_TURNS = {"role": "role", "text": "content"}
USUAL = {
    **OF_TURNS,
    "conversation": "conversation_id",
    "turn": "turn",
    "time": "timestamp",
    "user": "prompt",
    "assistant": "response",
    "prompt": "prompt_version",
    "sources": "sources",
}
"""Parts whose column is read as if it had this name."""
FIELDS = {
    "label": "label_field",
    "comment": "comment_field",
    "judge": "judge_field",
    "group": "group_field",
    "messages": "messages_field",
}
"""Parts whose column an option of its own may name, too."""
PARTS = (
    "conversation",
    "role",
    "text",
    "turn",
    "time",
    "messages",
    "user",
    "assistant",
    *list(FIELDS)[:-1],
    "prompt",
    "sources",
    "fill",
    "parent",
    "id",
)

MESSAGES = "messages"
"""Where the list of turns stands in a row under the usual names."""
NO_ROLE = "none"
"""The role of rows that are no turns."""
ANY_OTHER = "*"
"""What stands for every other name of a role."""

OF_REPLIES = ("parent", "id")
"""Parts of rows that name what they answer, in place of a conversation: the row's own id, and the other one's."""
ROOT = "(root)"
"""Where the id of the row that began a conversation stands."""

WHOLE_FILE = "*"
"""The column of the conversation where each file is one."""

MOST_COLUMNS = 100
"""Columns that an error may name."""

SIDES = ("user", "assistant")

Pairs = tuple[tuple[str, str], ...]


def pairs(written: str | Mapping[str, Any] | Pairs) -> Pairs:
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


def pairs_as_typed(written: Iterable[tuple[str, str]]) -> str:
    """Return pairs as somebody types them."""
    return ",".join(f"{part}={name}" for part, name in written)


@dataclass
class Mapper:
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
    times: dict[bool, Any] = field(default_factory=dict)
    left_out: Counter[str] = field(default_factory=Counter)
    without_text: int = 0

    @classmethod
    def of(cls, options: ReadOptions) -> Mapper:
        """Check what was asked for.

        Raises:
            WrongUse: An unknown part or role, two columns for one part, or one column for two
                parts.
        """
        columns = _columns_by_part(options.columns)
        if "parent" in columns:
            _require_ids(columns)
            columns["conversation"] = ROOT

        # an option and the mapping name the same column for a part
        for part, option in FIELDS.items():
            if (other := getattr(options, option)) and other != columns.get(part, other):
                _refuse_two(
                    part,
                    columns[part],
                    other,
                    {option: columns[part]},
                )

        # each spelling has one role, and a known one
        roles = {}
        for role, spelling in options.roles:
            roles[_fold_name(spelling)] = role

        # the first role of each spelling, as an option that errors can show
        usual = (
            (role if role in ROLES.values() else "user", spelling)
            for role, spelling in reversed(options.roles)
        )
        first = {}
        for role, spelling in usual:
            first[_fold_name(spelling)] = (role, spelling)

        example = {"roles": pairs_as_typed(reversed(first.values()))}
        for role, spelling in options.roles:
            if role not in (*ROLES.values(), NO_ROLE):
                role_names = "user, assistant, system, tool, or none for what is no turn"
                raise WrongUse(
                    f"no role is called {role!r:.40}",
                    hint=f"give {role_names}",
                    option=example,
                )

            if roles[_fold_name(spelling)] != role:
                raise WrongUse(
                    f"{spelling!r:.40} is given two roles",
                    hint="give it one",
                    option=example,
                )

        return cls(columns, roles)

    def options(self, options: ReadOptions) -> ReadOptions:
        """Return options that name the mapped columns."""
        named: dict[str, Any] = {}
        for part, option in FIELDS.items():
            if part in self.columns:
                named[option] = self.columns[part]

        # fields inside the list are told by the list's usual name
        if nested := self.columns.get("messages"):
            inside = {}
            for name, value in named.items():
                inside[name] = value.replace(f"{nested}[].", f"{MESSAGES}[].", 1)

            named = inside | {"messages_field": MESSAGES}

        if "conversation" in self.columns:
            named["id_field"] = USUAL["conversation"]
        if named:
            return replace(options, **named)
        return options

    def rows(
        self, rows: Iterable[LogRow | BadRow | Skipped]
    ) -> Iterator[LogRow | BadRow | Skipped]:
        """Yield rows under the usual names; those that are no turns as what they are."""
        if not self.columns and not self.roles:
            yield from rows
            return

        above: Any = None
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

            if self.columns.get("conversation") == WHOLE_FILE:
                fields = {**fields, WHOLE_FILE: row.source}
            renamed = self.renamed(fields)
            if renamed is None:
                yield Skipped(row.source, row.line, NO_TURN)
            else:
                yield replace(row, fields=renamed)

    def _with_roots(
        self, rows: Iterable[LogRow | BadRow | Skipped]
    ) -> Iterator[LogRow | BadRow | Skipped]:
        """Yield rows with the id of the row that began their conversation, where a row names what it answers."""
        parent = self.columns.get("parent")
        if parent is None:
            yield from rows
            return

        held = list(rows)  # a row may answer one below
        fields_of_rows = []
        for row in held:
            fields_of_rows.append(row.fields if isinstance(row, LogRow) else {})

        roots = roots_of(fields_of_rows, parent, self.columns["id"])
        for row, root in zip(held, roots, strict=True):
            if not isinstance(row, LogRow):
                yield row
                continue
            self.seen |= {part for part in OF_REPLIES if self.columns[part] in row.fields}
            yield replace(row, fields={**row.fields, ROOT: root})

    def renamed(self, fields: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return a row under the usual names; None where it is no turn.

        A column in the way of a usual name stays under another name.
        """
        if len(self.there) < MOST_COLUMNS:
            self.there |= dict.fromkeys(fields)

        # rows with a column for each turn
        nested = self.columns.get("messages")
        if (
            "*" in self.columns.get("user", "")
            and "*" in self.columns.get("assistant", "")
            and not nested
        ):
            return self._wide(fields)

        # columns of the row itself get the usual names; those inside a list come later
        if nested:
            inside = {*OF_TURNS, "user", "assistant"}
        else:
            inside = set()

        parts = []
        for part in (*USUAL, *FIELDS):
            if part not in inside:
                parts.append(part)

        row = self._moved(fields, parts)
        if "time" in self.seen and (time := row.get(USUAL["time"])) not in (None, ""):
            self.times.setdefault(is_time(time), time)
        if nested:
            return self._with_messages(row, nested)

        # a row without words may be the call of a tool, or what came of it
        if self._says_nothing(row) and (step := step_of_tool(fields)) is not None:
            kept = (USUAL["conversation"], USUAL["time"], USUAL["turn"])
            return {name: row[name] for name in kept if name in row} | step

        # a row that is no turn may have the conversation's label
        silent = "text" in self.columns and USUAL["text"] not in row and "role" in self.columns
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

    def _wide(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Return a row that has a column for each turn, such as `question_1`, with its turns as a list."""
        numbered: dict[int, dict[str, Any]] = {}
        for side in ("user", "assistant"):
            pattern = re.compile(re.escape(self.columns[side]).replace(r"\*", r"(\d+)"))
            for name, value in fields.items():
                if match := pattern.fullmatch(name):
                    self.seen.add(side)
                    numbered.setdefault(int(match[1]), {})[side] = value

        # question 1, answer 1, question 2 and so on
        turns = []
        for number in sorted(numbered):
            for side, text in numbered[number].items():
                if text not in (None, ""):
                    turns.append({USUAL["role"]: side, USUAL["text"]: text})

        patterns = []
        for side in ("user", "assistant"):
            patterns.append(re.escape(self.columns[side]).replace(r"\*", r"\d+"))

        rest = {}
        for name, value in fields.items():
            if not re.fullmatch("|".join(patterns), name):
                rest[name] = value

        other_parts = []
        for part in (*USUAL, *FIELDS):
            if part not in SIDES:
                other_parts.append(part)

        return {
            MESSAGES: turns,
            **self._moved(rest, other_parts),
        }

    def _says_nothing(self, row: Mapping[str, Any]) -> bool:
        """Return whether the column of words is empty in a row that would be a turn."""
        return (
            "text" in self.columns
            and "role" in self.columns
            and row.get(USUAL["text"]) in (None, "")
        )

    def _is_no_turn(self, row: Mapping[str, Any]) -> bool:
        return "role" in self.columns and self._role(row.get(USUAL["role"])) == NO_ROLE

    def _label_alone(
        self, row: Mapping[str, Any], fields: Mapping[str, Any]
    ) -> dict[str, Any] | None:
        """Return the conversation's id, label and comment of a row that is no turn; None where it has no label."""
        path = self.columns.get("label")
        value = find_value(fields, path) if path else MISSING
        owner = row.get(USUAL["conversation"])
        if value is MISSING or value in (None, "", [], {}) or owner in (None, ""):
            return None

        self.seen |= {"label", "conversation"}
        label = {USUAL["conversation"]: owner, str(path): value}
        # what was written with it: in the column that was named, else beside the label
        comment = self.columns.get("comment")
        if comment:
            comment_text = find_value(fields, comment)
        else:
            comment_text = find_comment_beside(fields, str(path))

        if comment_text in (MISSING, None, ""):
            return label
        return {**label, "comment": comment_text}

    def _moved(self, fields: Mapping[str, Any], parts: Iterable[str]) -> dict[str, Any]:
        values = {}
        for part in parts:
            if name := self.columns.get(part):
                values[part] = find_value(fields, name)

        there = {}
        for part, value in values.items():
            if value is not MISSING:
                there[part] = value

        self.seen |= there.keys()
        moved = {}
        for part, value in there.items():
            if part in USUAL:
                moved[USUAL[part]] = value

        # the text may be an object with the content inside
        if isinstance(content := moved.get(USUAL["text"]), Mapping):
            moved[USUAL["text"]] = unwrap_content(content)

        # a mapped column leaves its old place
        rest: Mapping[str, Any] = fields
        for part in there:
            if part in USUAL:
                rest = remove_path(rest, self.columns[part])

        # whoever names both sides says that the row is an exchange, and no step of a trace
        if {*SIDES} <= there.keys() and not TRACES.isdisjoint(rest):
            rest = {
                f"{name} (column)" if name in TRACES else name: value
                for name, value in rest.items()
            }

        return moved | {
            f"{name} (column)" if name in moved else name: value for name, value in rest.items()
        }

    def _with_messages(self, fields: dict[str, Any], path: str) -> dict[str, Any]:
        """Return a row whose list of turns has its usual name."""
        value = find_value(fields, path)
        if value is MISSING:
            return fields

        self.seen.add("messages")
        rest = {}
        for n, inner in remove_path(fields, path).items():
            rest[f"{n} (column)" if n == MESSAGES else n] = inner

        return {MESSAGES: self._turns(value), **rest}

    def _turns(self, value: Any) -> Any:
        # the list may be JSON text, an object of turns by key, or a transcript
        listed = parse_if_json(value)
        if isinstance(listed, Mapping) and "messages" in self.columns:
            listed = list(listed.values())
        if isinstance(listed, str) and is_transcript(listed):
            listed = messages_in(listed)

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

            listed = pairs_as_objects(listed)

        if not isinstance(listed, list) or not all(isinstance(entry, Mapping) for entry in listed):
            return value
        if "messages" not in self.columns:
            spoken = [self._spoken(turn) for turn in listed]
            return [turn for turn in spoken if turn is not None]
        return list(self._mapped_turns(listed))

    def _mapped_turns(self, listed: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
        for message in oldest_first(listed):
            if {"user", "assistant"} <= self.columns.keys():
                yield from self._exchange(message)
                continue
            moved = self._moved(message, OF_TURNS)
            if self._says_nothing(moved) and (step := step_of_tool(message)) is not None:
                yield step
            elif "text" in self.columns and USUAL["text"] not in moved:
                self.without_text += 1
            elif (spoken := self._spoken(moved)) is not None:
                yield spoken

    def _exchange(self, item: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """Yield what was asked and what was answered in an item of a list of exchanges."""
        turn_columns = {*OF_TURNS.values(), self.columns["user"], self.columns["assistant"]}
        beside = {}
        for name, value in item.items():
            if name not in turn_columns:
                beside[name] = value

        for side in ("user", "assistant"):
            text = find_value(item, self.columns[side])
            if text is not MISSING and text not in (None, ""):
                self.seen.add(side)
                # What stands beside an exchange, such as its thumb, is about the answer.
                yield {
                    **(beside if side == "assistant" else {}),
                    USUAL["role"]: side,
                    USUAL["text"]: text,
                }

    def _spoken(self, turn: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return a turn with a role that is known; None where what is said of its role is that it is no turn."""
        if self.roles:
            names = []
            for name in ROLE_NAMES:
                if name in turn:
                    names.append(name)
        else:
            names = []

        # a turn that names nobody is by `*`
        if not names and ANY_OTHER in self.roles and "role" in self.columns:
            names = [USUAL["role"]]

        roles = {name: self._role(turn.get(name)) for name in names}
        if NO_ROLE in roles.values():
            self.left_out[as_word(turn.get(names[0]))] += 1
            return None
        return {**turn, **roles}

    def _role(self, role: Any) -> Any:
        word = as_word(role)
        if isinstance(role, Mapping | list):
            return role

        if _fold_name(word) in self.roles:
            named = _fold_name(word)
        else:
            named = ANY_OTHER

        # `*` doesn't stand for names that are known anyway
        if named not in self.roles or (named == ANY_OTHER and _is_role(word)):
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
            if part not in self.seen and (needed or part in USUAL):
                near = next(
                    (column for column in self.there if _fold_name(column) == _fold_name(name)),
                    None,
                )
                hint = "give " + (near or f"one of {', '.join(self.there)}")
                option = {
                    "columns": pairs_as_typed((self.columns | {part: near or "COLUMN"}).items())
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
            if name not in self.spoken and name != ANY_OTHER:
                silent.append(name)

        if needed and silent:
            what = f"no turn is by {silent[0]!r:.40}"
            raise BadInput(
                what,
                where=where,
                hint="check its spelling, or leave it out of",
                option="roles",
            )


def roots_of(
    rows: Sequence[Mapping[str, Any]],
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
        answered[as_word(find_value(row, own))] = _name_at(row, parent)

    roots = []
    for row in rows:
        # the chain is followed to its beginning; a circle ends where it closes
        root = _name_at(row, parent) or _name_at(row, own)
        passed = {_name_at(row, own)}
        while answered.get(root) and root not in passed:
            passed.add(root)
            root = answered[root]
        roots.append(root)

    return roots


def _name_at(row: Mapping[str, Any], path: str) -> str:
    value = find_value(row, path)
    if value is MISSING:
        return ""
    return as_word(value)


def oldest_first(listed: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    """Return the items of a list in the order of time, where one of their columns says that the newest is first."""
    if len(listed) > 1:
        names = []
        for name in listed[0]:
            if is_called(name, "time"):
                names.append(name)
    else:
        names = []

    for name in names:
        times = [parse_moment(item.get(name)) for item in listed]
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


def _columns_by_part(columns_of_parts: Pairs) -> dict[str, str]:
    """Return the column of each part of a conversation, as the user paired them.

    Raises:
        WrongUse: There is no such part, or a part or a column stands twice.
    """
    columns: dict[str, str] = {}
    for part, name in columns_of_parts:
        if part not in PARTS:
            raise WrongUse(
                f"no part is called {part!r:.40}",
                hint=f"parts are {', '.join(PARTS)}",
                option="columns",
            )

        without = {
            "columns": pairs_as_typed(pair for pair in columns_of_parts if pair != (part, name))
        }
        if columns.setdefault(part, name) != name:
            _refuse_two(part, columns[part], name, without)
        if part == "fill":  # the column has a part of its own, too
            continue
        # a column may have one part; a list of turns and what stands in its items may share a name
        if part in OF_TURNS:
            apart = {part, "messages"}
        else:
            apart = {part, *(OF_TURNS if part == "messages" else ())}

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


def _require_ids(columns: Mapping[str, str]) -> None:
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
        option = {"columns": pairs_as_typed((*typed.items(), ("id", "COLUMN")))}
        raise WrongUse(what, hint="name it", option=option)
    if "conversation" in columns:
        what = "two ways to tell conversations: by a column, and by what a row answers"
        raise WrongUse(
            what,
            hint="give one",
            option={"columns": pairs_as_typed(typed.items())},
        )


def _refuse_two(
    part: str,
    column: str,
    other: str,
    option: Mapping[str, object],
) -> None:
    what = f"two columns are given for {part}: {column!r:.60} and {other!r:.60}"
    raise WrongUse(what, hint="give one", option=option)


def _fold_name(text: str) -> str:
    return text.strip().casefold()


def as_word(role: object) -> str:
    """Return a name of a role as it is typed: of true, false and numbers, too; empty for nothing."""
    if role is None:
        return ""
    if isinstance(role, bool):
        return str(role).lower()
    return str(role)


def _is_role(word: str) -> bool:
    try:
        role_of(word)
    except (BadInput, UnknownRole):
        return False

    return True
