"""Conversations, their turns and labels."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from enum import StrEnum
from functools import cached_property
from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from pollex.text import JsonDict, JsonObject

MAX_ARGUMENT_CHARS_SHOWN = 300
"""Characters of a call's arguments that prompts, pages and quotes show."""


class ToolCall(BaseModel):
    """A call of a tool.

    Attributes:
        name: Empty where the log gives none.
        arguments: As given: JSON text, or the text of a tool that takes one; empty where the log
            has none.
        id: By which its result names it.
    """

    model_config = ConfigDict(frozen=True)

    name: str
    arguments: str = ""
    id: str | None = None

    @property
    def mark(self) -> str:
        """What stands for it in a turn's text."""
        return f"[tool call: {self.name or None}]"

    @property
    def shown(self) -> str:
        """The arguments on one line, cut at `MAX_ARGUMENT_CHARS_SHOWN` characters."""
        line = " ".join(self.arguments.split())
        if len(line) <= MAX_ARGUMENT_CHARS_SHOWN:
            return line
        return f"{line[:MAX_ARGUMENT_CHARS_SHOWN]}…"

    @property
    def normalized(self) -> str:
        """The arguments, equal for two calls that differ only in the order of names and in white space."""
        with suppress(ValueError, RecursionError):
            return json.dumps(
                json.loads(self.arguments),
                sort_keys=True,
                ensure_ascii=False,
            )

        return " ".join(self.arguments.split())

    def mapped(self, change: Callable[[str], str]) -> ToolCall:
        """Return the call with changed texts."""
        update = {
            "name": change(self.name),
            "arguments": _map_argument_texts(self.arguments, change),
        }
        return self.model_copy(update=update)


def _map_argument_texts(arguments: str, change: Callable[[str], str]) -> str:
    try:
        value = json.loads(arguments)
    except (ValueError, RecursionError):
        return change(arguments)

    changed = _map_texts(value, change)
    if changed == value:
        return arguments
    return json.dumps(changed, ensure_ascii=False)


def _map_texts(value: object, change: Callable[[str], str]) -> object:
    if isinstance(value, dict):
        texts = {}
        for name, inner in value.items():
            texts[change(name)] = _map_texts(inner, change)

        return texts
    if isinstance(value, list):
        return [_map_texts(inner, change) for inner in value]
    if isinstance(value, int | float) and not isinstance(value, bool):
        written = json.dumps(value)  # a number may be somebody's
        if change(written) == written:
            return value
        return change(written)
    if isinstance(value, str):
        return change(value)
    return value


class ToolResult(BaseModel):
    """What the log says of a result beside its content, which is the text of its turn.

    Attributes:
        id: Of the call that it answers; None where the log doesn't say.
        error: What failed; empty where nothing did.
    """

    model_config = ConfigDict(frozen=True)

    id: str | None = None
    error: str = ""


Role = Literal["user", "assistant", "system", "tool"]


DEFAULT_RATING_BOUNDS = {"positive": ">=4", "negative": "<=2"}
"""Bounds that make thumbs of ratings, as messages propose them."""


MAX_SCORABLE_TURNS = 5_000
"""Turns of a conversation that a judge can be asked about: of seconds of work for the built-in one."""


class Label(StrEnum):
    """The verdict that a person gave a whole conversation."""

    POSITIVE = "positive"
    NEGATIVE = "negative"
    NONE = "none"


OddTextFlag = Literal["surrogates", "nul", "bidi", "zero_width", "too_large"]
"""What is odd about a conversation's text: lone surrogates that were replaced by U+FFFD, characters that deceive the
eye (kept as they are), a turn over the size limit."""


DRAW_METHOD_FIELD = "drawn"
"""Field that says how a labeled conversation came before whoever labeled it."""

NON_RANDOM_DRAW_METHODS = frozenset(
    {"unsure", "telling", "window", "differs", "filter", "chosen", "doubtful"}
)
"""Ways of drawing that prefer some conversations: figures on such ones hold for no others."""


class Turn(BaseModel):
    """One message: who spoke, the words, and calls of tools.

    Attributes:
        content: The words, with a mark for each call; of a tool's turn, its result.
        calls: In the order of their marks.
        result: Of a tool's turn, where the log says more of it than its content.
    """

    model_config = ConfigDict(frozen=True)

    role: Role
    content: str
    calls: tuple[ToolCall, ...] = ()
    result: ToolResult | None = None

    @cached_property
    def shown(self) -> str:
        """The words as people and models see them: each call with its arguments, a failed result marked."""
        if self.calls:
            placed = self.placed()
            unmarked = []
            for call in self.calls[len(placed) :]:
                unmarked.append(f"{call.mark} {call.shown}".strip())

            return "\n".join([self.part(0, len(self.content)), *unmarked]).strip("\n")
        if self.result and self.result.error:
            return f"[failed] {self.content}"
        return self.content

    def part(self, start: int, end: int) -> str:
        """Return the content from one position up to another, with the arguments of the calls that end in it."""
        parts = []
        at = start
        for place, call in self.placed():
            if start < place <= end and call.arguments:
                parts += [self.content[at:place], f" {call.shown}"]
                at = place

        return "".join([*parts, self.content[at:end]])

    def placed(self) -> list[tuple[int, ToolCall]]:
        """Return the place behind the mark of each call, up to the first call without one."""
        places = []
        at = 0
        for call in self.calls:
            if (place := self.content.find(call.mark, at)) < 0:
                break
            at = place + len(call.mark)
            places.append((at, call))

        return places

    def mapped(self, change: Callable[[str], str]) -> Turn:
        """Return the turn with changed texts."""
        if not self.calls and self.result is None:
            return Turn(role=self.role, content=change(self.content))

        result = self.result and self.result.model_copy(update={"error": change(self.result.error)})
        calls = tuple(call.mapped(change) for call in self.calls)
        return Turn(
            role=self.role,
            content=change(self.content),
            calls=calls,
            result=result,
        )

    @property
    def size(self) -> int:
        """Characters of all that is kept."""
        size = len(self.content)
        if self.calls:
            return size + sum(len(call.arguments) for call in self.calls)
        return size


class Feedback(BaseModel):
    """What somebody wrote of a conversation, with the thumb or without.

    Attributes:
        comment: In their own words.
        tags: Reasons that they chose.
        time: In seconds since 1970.
        turn: Index of the turn that it was written of; None for the whole conversation.
    """

    model_config = ConfigDict(frozen=True)

    comment: str = ""
    tags: tuple[str, ...] = ()
    author: str | None = None
    time: float | None = None
    turn: int | None = None

    @property
    def text(self) -> str:
        """The comment, and the tags where there are any."""
        return "\n".join(filter(None, [self.comment, ", ".join(self.tags)]))

    def mapped(self, change: Callable[[str], str]) -> Feedback:
        """Return it with changed texts."""
        return self.model_copy(
            update={"comment": change(self.comment), "tags": tuple(map(change, self.tags))}
        )


class Source(BaseModel):
    """A document that was shown to the assistant.

    Attributes:
        name: Of its file or page; empty where the log gives none.
        turn: Index of the reply that it was first shown for; None for the whole conversation.
    """

    model_config = ConfigDict(frozen=True)

    text: str
    name: str = ""
    turn: int | None = None

    def mapped(self, change: Callable[[str], str]) -> Source:
        """Return it with changed texts."""
        return self.model_copy(update={"text": change(self.text), "name": change(self.name)})


MIN_SHARED_USER_TURNS, MIN_SHARED_USER_WORDS = 2, 12
"""Turns and words of a user from which on the same ones in two conversations are one user's, and no coincidence."""
_SIGN_BEYOND_ASCII_PATTERN = re.compile(r"[^\x00-\x7f\w]")
"""Characters beyond ASCII that belong to no word, such as dashes and curly quotes."""
_SIGNS_TO_SPACES = bytes(
    code if code > 0x7F or chr(code).isalnum() or chr(code) == "_" else ord(" ")
    for code in range(256)
)
"""Table for `bytes.translate`: in UTF-8, letters beyond ASCII have bytes above 0x7f alone."""


class Conversation(BaseModel):
    """A conversation as it was logged.

    Attributes:
        id: Text, unique within a log.
        turns: In the order they were said.
        label: The thumb.
        judge: Who gave the label, where the log says so.
        group: What must stay on one side of a split, a user id for example.
        sources: Documents that the assistant was shown, in their order: the third is cited as
            `[3]`.
        feedback: What was written of it. Explains the thumb to whoever learns, and isn't there for
            new conversations: no judge sees it.
        signals: Whether what other fields tell of happened (retried, copied), by field; shown, and
            never summed.
        metadata: All other fields of the log's row, untouched.
        flags: What is odd about the text.
    """

    model_config = ConfigDict(frozen=True)

    id: str
    turns: tuple[Turn, ...]
    label: Label = Label.NONE
    judge: str | None = None
    group: str | None = None
    sources: tuple[Source, ...] = ()
    feedback: tuple[Feedback, ...] = ()
    signals: dict[str, bool] = Field(default_factory=dict)
    metadata: JsonDict = Field(default_factory=dict)
    flags: tuple[OddTextFlag, ...] = ()

    @cached_property
    def text_hash(self) -> str:
        """SHA-256 (hex) of turns and sources: equal for two conversations of the same text, and the same arguments."""
        has_more = self.sources or any(call.arguments for turn in self.turns for call in turn.calls)
        if not has_more:  # as in most logs
            return self.words_hash

        # what a judge can read of it: roles, contents, arguments, and sources
        parts = []
        for turn in self.turns:
            parts.append([turn.role, turn.content, *(call.arguments for call in turn.calls)])

        for source in self.sources:
            parts.append(["source", source.name, source.text])

        return _hash_turns(parts)

    @property
    def asked_hash(self) -> str:
        """Hash of the words of the user's turns: equal where somebody asked the same again; empty for few words.

        Two conversations with one short question are no sign of one user; the same course of
        several turns is.
        """
        texts = []
        for turn in self.turns:
            if turn.role == "user":
                texts.append(turn.content)

        if len(texts) < MIN_SHARED_USER_TURNS:
            return ""

        # few words, or few turns with words, may be the same by chance
        word_lists = []
        for text in texts:
            if words := _split_words(text.casefold()):
                word_lists.append(words)

        if (
            len(word_lists) < MIN_SHARED_USER_TURNS
            or sum(map(len, word_lists)) < MIN_SHARED_USER_WORDS
        ):
            return ""
        return hashlib.sha256(b"\n".join(map(b" ".join, word_lists))).hexdigest()

    @cached_property
    def has_sources(self) -> bool:
        """Whether the assistant was shown anything: documents, or what its tools returned."""
        return bool(self.sources) or any(
            turn.role == "tool" and turn.content.strip() for turn in self.turns
        )

    @cached_property
    def words_hash(self) -> str:
        """The `text_hash` of before calls were kept: of roles and contents alone."""
        return _hash_turns([[turn.role, turn.content] for turn in self.turns])

    @property
    def prompt(self) -> str:
        """Version of the prompt that it was had with; see `find_prompt_version`."""
        first = next(iter(self.turns), None)
        return find_prompt_version(
            self.metadata,
            first.content if first and first.role == "system" else None,
        )

    @property
    def opening(self) -> str:
        """First user turn with text, for lists; else the first turn with text."""
        turns = []
        for turn in self.turns:
            if turn.content.strip():
                turns.append(turn)

        of_user = []
        for turn in turns:
            if turn.role == "user":
                of_user.append(turn)

        first = next(iter(of_user or turns), None)
        return first.content if first else ""

    @property
    def preferred(self) -> bool:
        """Whether a queue chose it to be labeled for what it is, and not at random."""
        return self.metadata.get(DRAW_METHOD_FIELD) in NON_RANDOM_DRAW_METHODS

    @cached_property
    def not_scorable(self) -> str:
        """Reason why no judge can be asked about this conversation; empty if one can."""
        if "too_large" in self.flags:
            return "too large: its text is over the size limit"
        if len(self.turns) > MAX_SCORABLE_TURNS:
            return f"too large: more than {MAX_SCORABLE_TURNS:,} turns"
        if not any(turn.content.strip() for turn in self.turns):
            return "no turn with text"

        # a judge needs words of both sides
        roles = set()
        for turn in self.turns:
            if turn.content.strip():
                roles.add(turn.role)

        if "user" not in roles:
            return "no user turn"
        if "assistant" not in roles:
            return "no assistant turn"
        return ""


PROMPT_VERSION_FIELDS = ("prompt_version", "prompt_name", "release", "version")
"""Fields that say which prompt a conversation was had with."""
NAME_OF_UNKNOWN_PROMPT_VERSION = "(not said)"


def find_prompt_version(metadata: JsonObject, system: str | None) -> str:
    """Return the prompt's version: of a usual field, also one level down, else a hash of the system turn."""
    inner = metadata.get("metadata")
    places = (metadata, inner if isinstance(inner, Mapping) else {})
    # usual fields, each at the top and one level down
    for name in PROMPT_VERSION_FIELDS:
        for place in places:
            value = place.get(name)
            if isinstance(value, str | int | float) and value != "":
                return str(value)

    if not system:
        return NAME_OF_UNKNOWN_PROMPT_VERSION
    return hashlib.sha256(system.encode("utf-8", "replace")).hexdigest()[:8]


def _split_words(text: str) -> list[bytes]:
    r"""Return the words of a text in UTF-8, the same as `\w+` finds.

    Every conversation comes here as it is read, and a search for each word takes twice as long.
    """
    if not text.isascii():
        text = _SIGN_BEYOND_ASCII_PATTERN.sub(" ", text)
    return text.encode("utf-8").translate(_SIGNS_TO_SPACES).split()


def _hash_turns(turns: list[list[str]]) -> str:
    return hashlib.sha256(_JSON_ENCODER.encode(turns).encode("utf-8", "replace")).hexdigest()


_JSON_ENCODER = json.JSONEncoder(ensure_ascii=False)


class ToolUse(NamedTuple):
    """A call with its result.

    Attributes:
        turn: Index of the turn that calls.
        result: Index of the tool's turn that answers; None where none does.
    """

    turn: int
    call: ToolCall
    result: int | None


def iterate_tool_uses(turns: Sequence[Turn]) -> Iterator[ToolUse]:
    """Yield the calls of a conversation with their results: by id, else the first result not yet taken after it."""
    # results not yet taken, by place, with the id of the call that they answer
    results = {}
    for n, turn in enumerate(turns):
        if turn.role == "tool":
            results[n] = turn.result.id if turn.result else None

    for index, turn in enumerate(turns):
        for call in turn.calls:
            # the result that names this call, else the next one that names none
            after = []
            for place in results:
                if place > index:
                    after.append(place)

            named = []
            for place in after:
                if call.id is not None and results[place] == call.id:
                    named.append(place)

            free = []
            for place in after:
                if call.id is None or results[place] is None:
                    free.append(place)

            result = next(iter(named or free), None)
            if result is not None:
                del results[result]
            yield ToolUse(index, call, result)


def format_openai_messages(conversation: Conversation) -> list[JsonDict]:
    """Return the turns, OpenAI style."""
    return [_format_openai_message(turn) for turn in conversation.turns]


def format_sources(conversation: Conversation) -> list[JsonDict]:
    """Return the documents that the assistant was shown, as a row has them."""
    sources: list[JsonDict] = []
    for source in conversation.sources:
        sources.append(source.model_dump(exclude_defaults=True))
    return sources


def _format_openai_message(turn: Turn) -> JsonDict:
    message: JsonDict = {"role": turn.role, "content": turn.content}
    if turn.calls:
        tool_calls = []
        for call in turn.calls:
            tool_calls.append(
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.name, "arguments": call.arguments},
                }
            )

        message["tool_calls"] = tool_calls

    if turn.result:
        message |= {"tool_call_id": turn.result.id} | (
            {"error": turn.result.error} if turn.result.error else {}
        )

    return message
