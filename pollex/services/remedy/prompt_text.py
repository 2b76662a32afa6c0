"""The assistant's system prompt: a text with protected parts and places, or a template of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from pollex.conversations.conversation import Conversation
from pollex.conversations.reply_context import ReplyContext
from pollex.errors import UNREADABLE, BadInput, WrongUse

KEEP = re.compile(r"<!--\s*keep\s*-->")
PLACE = re.compile(r"\{\{\s*(\w+)\s*\}\}|\{(\w+)\}")
"""A value of a conversation: `{name}` or `{{name}}`."""


@dataclass(frozen=True)
class PromptText:
    """A system prompt.

    Attributes:
        keep: Patterns of lines that nobody may change.
        name: As a user calls it who has several.
    """

    text: str
    keep: tuple[str, ...] = ()
    name: str = ""

    def __post_init__(self) -> None:
        for pattern in self.keep:
            try:
                re.compile(pattern)
            except re.error as error:
                raise WrongUse(f"{pattern!r:.60} is no pattern: {error}", option="keep") from None

    @classmethod
    def load(cls, path: Path, keep: Sequence[str] = (), name: str = "") -> PromptText:
        """Read a prompt from its file.

        Raises:
            BadInput: It can't be read, has no words, or a `<!-- keep -->` has no partner.
        """
        try:
            text = path.read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            raise BadInput(f"the prompt can't be read: {error}", where=str(path), remedy=UNREADABLE) from error
        if not text.strip():
            raise BadInput("the prompt has no words", where=str(path), remedy="give the assistant's system prompt")
        if len(KEEP.findall(text)) % 2:
            what = "a `<!-- keep -->` has no second one: what it protects has no end"
            raise BadInput(what, where=str(path), remedy="put one before and one after the protected part")
        return cls(text, tuple(keep), name)

    @cached_property
    def lines(self) -> list[str]:
        """Its lines."""
        return self.text.splitlines()

    @cached_property
    def places(self) -> tuple[str, ...]:
        """The places for values, as they are written, sorted."""
        return tuple(sorted(match.group() for match in PLACE.finditer(self.text)))

    @cached_property
    def protected(self) -> tuple[str, ...]:
        """The lines that nobody may change, in order."""
        inside, found = False, []
        for line in self.lines:
            marks = len(KEEP.findall(line))
            if inside or marks or any(re.search(pattern, line) for pattern in self.keep):
                found.append(line)
            inside ^= bool(marks % 2)
        return tuple(found)

    @cached_property
    def _form(self) -> re.Pattern[str]:
        """What a logged prompt made from this template looks like."""
        parts, end, named = [], 0, set[str]()
        for match in PLACE.finditer(self.text):
            name = match[1] or match[2]
            parts.append(re.escape(self.text[end : match.start()]))
            parts.append(f"(?P={name})" if name in named else f"(?P<{name}>.*?)")
            named.add(name)
            end = match.end()
        return re.compile("".join([*parts, re.escape(self.text[end:])]).strip(), re.DOTALL)

    def values_in(self, logged: str) -> dict[str, str] | None:
        """Return the values with which the logged system turn was made from this template; None if it wasn't."""
        found = self._form.fullmatch(logged.strip())
        return None if found is None else {name: value or "" for name, value in found.groupdict().items()}

    def rendered(self, values: dict[str, str]) -> str | None:
        """Fill the places; None where a value is missing: nothing is ever filled with emptiness."""
        names = {match[1] or match[2] for match in PLACE.finditer(self.text)}
        if names - values.keys():
            return None
        return PLACE.sub(lambda match: values[match[1] or match[2]], self.text)


def named_file(given: str | Path) -> tuple[str, Path]:
    """Return the name and the path of `NAME=FILE`; a file has no name."""
    name, _, path = str(given).partition("=")
    return (name, Path(path)) if path and not Path(given).exists() else ("", Path(given))


def rendered_for(
    context: ReplyContext,
    prompt: PromptText,
    *,
    any_prompt: bool = False,
    made_from: PromptText | None = None,
    render: Callable[[str, Conversation], str | None] | None = None,
) -> str | None:
    """Return the prompt with a conversation's values, from its system turn or its metadata; None where they miss.

    Args:
        any_prompt: Whether a system turn that another prompt made is passed over: values are the metadata's then.
        made_from: The prompt that made the logged system turn; None: this one.
        render: A function of the user's that does it.
    """
    if render is not None:
        return render(prompt.text, context.conversation)
    metadata = context.conversation.metadata
    known = {name: str(value) for name, value in metadata.items() if isinstance(value, str | int | float)}
    system = next((turn.content for turn in context.conversation.turns if turn.role == "system"), None)
    if system is None and prompt.name not in {"", *known.values()}:
        return None
    values = known if system is None else (made_from or prompt).values_in(system)
    if values is None:
        return prompt.rendered(known) if any_prompt else None
    return prompt.rendered(values)
