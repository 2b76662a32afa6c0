"""A prompt with its data as chat messages: rules, sealed data, task.

The order makes calls about one conversation share their beginning: the rules, the same for every batch of rubrics, then
the conversation, then what is asked about it. The task comes last also because nothing from outside may have the last
word.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from pollex.prompts.data_boundary import Item, escaped, seal
from pollex.prompts.prompt import Prompt

Message = dict[str, str]
Closing = Literal["system", "user", "merged"]


@dataclass(frozen=True)
class Layout:
    """The layout of prompts for an endpoint.

    Attributes:
        salt: Secret of the store, for the boundary code.
        closing: Who says the task. `system` keeps it apart from all data, and is the default. Chat templates that
            refuse a system message after the first want `user`; those that also refuse two user messages in a row
            want `merged`, the task below the data in one message, where the boundary alone keeps them apart.
        inline_schema: Whether the task ends with the answer's schema, for an endpoint that can't be held to one.
        without: Blocks to leave out, of `prompt.SWITCHES`.
    """

    salt: bytes = field(repr=False)
    closing: Closing = "system"
    inline_schema: bool = False
    without: frozenset[str] = frozenset()


def messages(
    prompt: Prompt,
    values: Mapping[str, str],
    items: Sequence[Item],
    layout: Layout,
    *,
    schema: Mapping[str, Any] | None = None,
    without: frozenset[str] = frozenset(),
) -> list[Message]:
    """Build the messages of a call.

    Args:
        values: What stands in the prompt's gaps. Outside text must have gone through `envelope.escaped`.
        items: The data, as from `envelope.conversation`.
        schema: The answer's, where it isn't the prompt's own.
        without: Blocks to leave out beside the layout's.
    """
    off = layout.without | without
    rules = {"role": "system", "content": prompt.render("system", values, off)}
    data = {"role": "user", "content": seal(items, layout.salt)}
    task = prompt.render("closing", values, off)
    schema = prompt.schema if schema is None else schema
    if layout.inline_schema and schema:
        task += f"\nWrite one JSON object of this JSON schema and nothing else:\n{escaped(schema)}"
    if layout.closing == "merged":
        return [rules, {"role": "user", "content": f"{data['content']}\n\n{task}"}]
    return [rules, data, {"role": layout.closing, "content": task}]
