"""Calls of tools as they were logged, and what came back."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress

from pydantic import BaseModel, ConfigDict

MOST_ARGUMENTS = 300
"""Characters of a call's arguments that prompts, pages and quotes show."""


class ToolCall(BaseModel):
    """A call of a tool.

    Attributes:
        name: Empty where the log gives none.
        arguments: As given: JSON text, or the text of a tool that takes one; empty where the log has none.
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
        """The arguments on one line, cut at `MOST_ARGUMENTS` characters."""
        line = " ".join(self.arguments.split())
        return line if len(line) <= MOST_ARGUMENTS else f"{line[:MOST_ARGUMENTS]}…"

    @property
    def normalized(self) -> str:
        """The arguments, equal for two calls that differ only in the order of names and in white space."""
        with suppress(ValueError, RecursionError):
            return json.dumps(json.loads(self.arguments), sort_keys=True, ensure_ascii=False)
        return " ".join(self.arguments.split())

    def mapped(self, change: Callable[[str], str]) -> ToolCall:
        """Return the call with changed texts."""
        return self.model_copy(update={"name": change(self.name), "arguments": _inside(self.arguments, change)})


def _inside(arguments: str, change: Callable[[str], str]) -> str:
    try:
        value = json.loads(arguments)
    except (ValueError, RecursionError):
        return change(arguments)
    changed = _texts(value, change)
    return arguments if changed == value else json.dumps(changed, ensure_ascii=False)


def _texts(value: object, change: Callable[[str], str]) -> object:
    if isinstance(value, dict):
        return {change(name): _texts(inner, change) for name, inner in value.items()}
    if isinstance(value, list):
        return [_texts(inner, change) for inner in value]
    if isinstance(value, int | float) and not isinstance(value, bool):
        written = json.dumps(value)  # a number may be somebody's
        return value if change(written) == written else change(written)
    return change(value) if isinstance(value, str) else value


class ToolResult(BaseModel):
    """What the log says of a result beside its content, which is the text of its turn.

    Attributes:
        id: Of the call that it answers; None where the log doesn't say.
        error: What failed; empty where nothing did.
    """

    model_config = ConfigDict(frozen=True)

    id: str | None = None
    error: str = ""
