"""A system prompt with the values of a conversation."""

from __future__ import annotations

from pollex.conversations.reply_context import ReplyContext
from pollex.services.remedy.prompt_text import PromptText


def rendered_for(
    context: ReplyContext, prompt: PromptText, *, any_prompt: bool = False, made_from: PromptText | None = None
) -> str | None:
    """Return the prompt with a conversation's values, from its system turn or its metadata; None where they miss.

    Args:
        any_prompt: Whether a system turn that another prompt made is passed over: values are the metadata's then.
        made_from: The prompt that made the logged system turn; None: this one.
    """
    metadata = context.conversation.metadata
    known = {name: str(value) for name, value in metadata.items() if isinstance(value, str | int | float)}
    system = next((turn.content for turn in context.conversation.turns if turn.role == "system"), None)
    values = known if system is None else (made_from or prompt).values_in(system)
    if values is None:
        return prompt.rendered(known) if any_prompt else None
    return prompt.rendered(values)
