"""Moves and sentences of a conversation: what detectors of events read."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from pollex.conversations.conversation import Conversation, ToolCall, Turn, iterate_tool_uses

MAX_TURN_CHARS_READ = 6_000
"""Characters of a turn that are read: the rest of a pasted log says nothing of what the turn does."""

_CODE_BLOCK_REGEX = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_INLINE_CODE_REGEX = re.compile(r"`([^`\n]{1,200})`")
_SENTENCE_END_REGEX = re.compile(r"[.?!]+[\"')\]*]*\s+|\n+")
_UNMARKED_SENTENCE_START_REGEX = re.compile(
    r"(?<=[a-z0-9)]) +(?=(?:Would you|Will you|Can I|Could I|May I|Shall I|Should I|Do you|Did you|Are you|Is there"
    r"|What (?:else|other|day|time|date|area|type|kind|is|are|would|do)|Which"
    r"|How (?:about|many|much|can|may)|When would|Where would|Anything else)\b)"
)
"""Where a question begins after a sentence whose full stop was left out: its capital tells."""
_ABBREVIATIONS = (
    "mr.",
    "mrs.",
    "ms.",
    "dr.",
    "st.",
    "vs.",
    "e.g.",
    "i.e.",
    "a.m.",
    "p.m.",
    "no.",
    "approx.",
    "etc.",
)
_ABBREVIATION_AT_END_REGEX = re.compile(rf"\b(?:{'|'.join(map(re.escape, _ABBREVIATIONS))})$")
_ASCII_WORD_REGEX = re.compile(r"[a-z]+(?:'[a-z]+)?")
_WORD_REGEX = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")


def split_word_set(text: str) -> frozenset[str]:
    """Return the set of words of a text."""
    return frozenset(text.split())


WORD_LISTS = {
    name: split_word_set(words)
    for name, words in tomllib.loads(
        Path(__file__).with_name("words.toml").read_text("utf-8")
    ).items()
}
_STRAIGHT_APOSTROPHES = str.maketrans({"’": "'", "‘": "'", "`": "'"})
_MIN_CONTENT_WORD_CHARS = 3
_NO_STEM = frozenset({""})
_WORDS_ENDING_IN_IE = WORD_LISTS["ending_in_ie"]

FUNCTION_WORDS = WORD_LISTS["function_words"]


@dataclass(frozen=True, slots=True)
class ActHit:
    """An act that a sentence does.

    Attributes:
        sure: From 0 to 1.
        start: Where the deciding words begin in the turn's text.
        detail: What the act is about, where the words tell: a verb, for instance.
    """

    act: str
    sure: float
    start: int
    end: int
    detail: str = ""


@dataclass(eq=False)
class Sentence:
    """One sentence outside code.

    Attributes:
        text: Verbatim.
        low: Lower case, the same length, inline code blanked out.
        start: Offset in the turn's text.
        turn: Index of the turn in the conversation.
        words: In lower case, in order.
        bag: The words, each once, with "?" for a question.
        asking: Whether the sentence ends in a question mark.
    """

    text: str
    low: str
    start: int
    turn: int
    words: tuple[str, ...]
    bag: frozenset[str]
    asking: bool
    hits: dict[str, ActHit] = field(default_factory=dict)

    @property
    def end(self) -> int:
        return self.start + len(self.text)

    @cached_property
    def content(self) -> frozenset[str]:
        """Stems of the words that carry meaning."""
        return frozenset(map(stem_content_word, self.words)) - _NO_STEM


class ToolCallMark(NamedTuple):
    """A call of a tool, and where its mark stands in the turn's text."""

    call: ToolCall
    turn: int
    start: int
    end: int


class ToolAnswer(NamedTuple):
    """What a tool answered.

    Attributes:
        call: The tool's name; empty where it isn't known.
        failed: Whether the log says so.
    """

    turn: int
    text: str
    call: str
    failed: bool


@dataclass(eq=False)
class ConversationMove:
    """Consecutive turns of one party: usually one turn.

    Attributes:
        role: `user` or `assistant`.
        tools: Results of tools that came right before, in order.
        calls: Of tools by the assistant, in order.
        acts: The surest sentence of each act.
        lengths: Of the text of each turn.
    """

    role: str
    turns: list[int]
    sentences: list[Sentence]
    text: str
    tools: list[ToolAnswer] = field(default_factory=list)
    calls: list[ToolCallMark] = field(default_factory=list)
    acts: dict[str, Sentence] = field(default_factory=dict)
    lengths: list[int] = field(default_factory=list)

    @cached_property
    def low(self) -> str:
        """All sentences in lower case."""
        return " ".join(sentence.low for sentence in self.sentences)

    @cached_property
    def content(self) -> frozenset[str]:
        """Stems of all words that carry meaning."""
        return frozenset().union(*(sentence.content for sentence in self.sentences))

    @property
    def code(self) -> bool:
        """Whether there is a block of code."""
        return "```" in self.text

    @cached_property
    def names(self) -> frozenset[str]:
        """Inline code of the move, as written."""
        return frozenset(_INLINE_CODE_REGEX.findall(_CODE_BLOCK_REGEX.sub("", self.text)))

    def has(self, *acts: str) -> bool:
        return not self.acts.keys().isdisjoint(acts)


@lru_cache(maxsize=1 << 16)
def stem_word(word: str) -> str:
    """Remove a plural or possessive ending from a word."""
    word = word.partition("'")[0]
    # plurals in -ies, those in -es behind a hissing sound, and those with a plain -s
    if len(word) > 4 and word.endswith("ies"):
        return word[:-1] if word in _WORDS_ENDING_IN_IE else word[:-3] + "y"
    if len(word) > 4 and word.endswith(
        ("ches", "shes", "sses", "xes", "zes", "buses", "viruses", "statuses")
    ):
        return word[:-2]
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


@lru_cache(maxsize=1 << 16)
def stem_content_word(word: str) -> str:
    """Return the stem of a word that carries meaning; empty for others."""
    if len(word) >= _MIN_CONTENT_WORD_CHARS and word not in FUNCTION_WORDS:
        return stem_word(word)
    return ""


def split_moves(conversation: Conversation) -> list[ConversationMove]:
    """Split a conversation into moves that alternate between user and assistant."""
    moves: list[ConversationMove] = []
    # results wait for the move that follows them
    waiting: list[ToolAnswer] = []
    called: dict[int | None, str] = {}
    if any(turn.calls for turn in conversation.turns):
        called = {use.result: use.call.name for use in iterate_tool_uses(conversation.turns)}

    for index, turn in enumerate(conversation.turns):
        if turn.role == "tool":
            failed = bool(turn.result and turn.result.error)
            waiting.append(
                ToolAnswer(
                    index,
                    turn.content[:MAX_TURN_CHARS_READ],
                    called.get(index, ""),
                    failed,
                )
            )
        # a turn without text makes no move, and results go on waiting
        elif turn.role in ("user", "assistant") and turn.content.strip():
            add_turn_to_moves(moves, index, turn, waiting)
            waiting = []

    return moves


def add_turn_to_moves(
    moves: list[ConversationMove],
    index: int,
    turn: Turn,
    tools: list[ToolAnswer],
) -> None:
    """Append a turn to the last move of its role, or begin a new one."""
    text = turn.content[:MAX_TURN_CHARS_READ]
    # the mark of a call ends where the turn says, and is as long as the call writes it
    if turn.calls:
        calls = []
        for end, call in turn.placed():
            calls.append(ToolCallMark(call, index, end - len(call.mark), end))
    else:
        calls = []

    # kept before calls were
    if not calls and turn.role == "assistant" and "[tool call" in text:
        calls = []
        for match in _TOOL_CALL_MARK_REGEX.finditer(text):
            calls.append(
                ToolCallMark(
                    ToolCall(name=match[1]),
                    index,
                    *match.span(),
                )
            )

    sentences = list(split_sentences(text, index))
    # turns of one party in a row are one move, their texts joined by a line break
    if moves and moves[-1].role == turn.role:
        last = moves[-1]
        last.turns.append(index)
        last.lengths.append(len(text))
        last.sentences += sentences
        last.text += "\n" + text
        last.tools += tools
        last.calls += calls
    else:
        moves.append(
            ConversationMove(
                turn.role,
                [index],
                sentences,
                text,
                list(tools),
                calls,
                lengths=[len(text)],
            )
        )


_TOOL_CALL_MARK_REGEX = re.compile(r"\[tool call: ([^\]\n]{1,100})\]")


def split_sentences(text: str, turn: int) -> Iterator[Sentence]:
    """Yield sentences outside code, each with its place in the text."""
    low = lowercase_outside_code(text)
    words_in = (_ASCII_WORD_REGEX if low.isascii() else _WORD_REGEX).findall
    start = 0
    for end, following in _find_sentence_ends(low, text):
        # bullets and marks before a sentence are no part of it; its place follows from its end
        part = low[start:end].lstrip(" \t\n\r-*•>#")
        begin = end - len(part)
        body = part.rstrip()
        words = tuple(words_in(body))
        # a lone question mark is a sentence, too
        if words or "?" in body:
            # a bracket or a quotation mark may follow the question mark
            asking = "?" in body[-4:]
            bag = frozenset((*words, "?") if asking else words)
            yield Sentence(
                text[begin : begin + len(body)],
                body,
                begin,
                turn,
                words,
                bag,
                asking,
            )

        start = following


def _find_sentence_ends(low: str, text: str) -> list[tuple[int, int]]:
    # only a text with a question mark can have a question behind a missing full stop
    if "?" in text:
        cuts = [match.span() for match in _UNMARKED_SENTENCE_START_REGEX.finditer(text)]
    else:
        cuts = []

    for match in _SENTENCE_END_REGEX.finditer(low):
        start, end = match.span()
        # the cheap test first: the expression is tried only where an abbreviation may end
        if not low.endswith(_ABBREVIATIONS, 0, start + 1) or not _ABBREVIATION_AT_END_REGEX.search(
            low[max(0, start - 6) : start + 1]
        ):
            # a sentence keeps its full stop, but no line break
            cuts.append((start if low[start] == "\n" else end, end))

    if len(cuts) > 1:
        cuts.sort()

    cuts.append((len(low), len(low)))
    return cuts


def lowercase_outside_code(text: str) -> str:
    """Lower case of the same length: code blanked out, straight apostrophes."""
    # pieces keep their length when blanked out, so that places in the text hold
    if "`" in text or "[tool call" in text:
        text = _CODE_BLOCK_REGEX.sub(lambda m: "\n" + " " * (len(m.group()) - 1), text)
        text = _TOOL_CALL_MARK_REGEX.sub(lambda m: " " * len(m.group()), text)
        text = _INLINE_CODE_REGEX.sub(lambda m: "§" * len(m.group()), text)

    low = text.lower()
    if low.isascii() and "`" not in low:
        return low

    low = low.translate(_STRAIGHT_APOSTROPHES)
    if len(low) != len(text):  # a few letters have a longer lower case
        low = "".join(c.lower() if len(c.lower()) == 1 else c for c in text).translate(
            _STRAIGHT_APOSTROPHES
        )

    return low


_SOFT_LINE_BREAK_REGEX = re.compile(r"\n(?! )")
_FRAGMENT_REFERENCE_REGEX = re.compile(r"\{([A-Z_]+)\}")


def read_table_rows(path: Path) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield group, name and fields of each row of a table.

    A text right in a group is a fragment: `{NAME}` stands for it in all texts of the group that
    follow. A line break stands for nothing, unless the next line is indented.
    """
    for group, inner in tomllib.loads(path.read_text("utf-8")).items():
        fragments: dict[str, str] = {}
        for name, value in inner.items():
            written = _expand_fragments_in_value(value, fragments)
            if isinstance(written, str):
                fragments[name] = written
            else:
                yield group, name, written


def _expand_fragments_in_value(value: object, fragments: Mapping[str, str]) -> Any:
    match value:
        case str():
            return _FRAGMENT_REFERENCE_REGEX.sub(
                lambda match: fragments[match[1]],
                _SOFT_LINE_BREAK_REGEX.sub("", value),
            )
        case list():
            return [_expand_fragments_in_value(inner, fragments) for inner in value]
        case dict():
            return {
                name: _expand_fragments_in_value(inner, fragments) for name, inner in value.items()
            }

    return value
