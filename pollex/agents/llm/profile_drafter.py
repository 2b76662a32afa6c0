"""The drafter of a domain profile: says what an assistant is for, from conversations with it."""

from collections.abc import Iterable, Sequence
from typing import Any

from pydantic import ValidationError

from pollex.agents.checks import collapse_white_space
from pollex.agents.llm.asker import PromptAsker
from pollex.agents.llm.evidence import cut_texts_to_length
from pollex.conversations.conversation import Conversation
from pollex.prompts.data_boundary import DataItem
from pollex.prompts.domain import DomainProfile
from pollex.prompts.prompt import load_prompt
from pollex.rubrics.answers import Unanswered

MAX_TURNS_SHOWN_PER_CONVERSATION = 8
"""Turns of a conversation that are shown: its beginning says what it is about."""
MAX_CHARS_OF_ALL_TURNS_SHOWN = 20_000
"""Characters of all turns together that are shown."""
MAX_CHARS_OF_PROFILE_FIELD = 2_000
TYPE_BY_PROFILE_FIELD = {
    "assistant": str,
    "task": str,
    "user": str,
    "ideal_conversation": str,
    "expectations": list,
}
"""Fields that a draft has to have."""


def make_conversation_items(conversations: Sequence[Conversation]) -> list[DataItem]:
    """Return conversations as data, without ids, labels or metadata; the longest turns are cut."""
    # a system turn stays: nothing says better what the assistant is for
    texts = []
    for conversation in conversations:
        texts += [turn.shown for turn in conversation.turns[:MAX_TURNS_SHOWN_PER_CONVERSATION]]

    cuts = iter(cut_texts_to_length(texts, MAX_CHARS_OF_ALL_TURNS_SHOWN))
    items: list[DataItem] = []
    for number, conversation in enumerate(conversations, 1):
        turns = []
        for turn in conversation.turns[:MAX_TURNS_SHOWN_PER_CONVERSATION]:
            cut = next(cuts)
            turns.append({"role": turn.role, "text": cut["text"] + ("…" if "cut" in cut else "")})
        items.append({"conversation": number, "turns": turns})

    return items


async def draft_profile(
    asker: PromptAsker,
    conversations: Sequence[Conversation],
) -> DomainProfile | str:
    """Return the profile that a model drafts, or why it drafts none."""
    value = await asker.value(
        load_prompt("draft_profile"),
        make_conversation_items(conversations),
        {},
        TYPE_BY_PROFILE_FIELD,
        item="",
    )
    if isinstance(value, Unanswered):
        return f"{value.outcome}: {value.detail}"

    return _make_profile(value)


def _make_profile(value: dict[str, Any]) -> DomainProfile | str:
    """Return a model's reply as a profile; in what language rubrics are written, people say."""
    drafted: dict[str, object] = {"language": DomainProfile.neutral().language}
    for name, kind in TYPE_BY_PROFILE_FIELD.items():
        drafted[name] = (
            _clean_profile_text(value[name]) if kind is str else _clean_profile_lines(value[name])
        )

    # a profile needs no notes, so that a reply may lack them
    notes = value.get("notes")
    drafted["notes"] = _clean_profile_lines(notes) if isinstance(notes, list) else ()
    try:
        return DomainProfile.model_validate(drafted)
    except ValidationError:
        return "it isn't in the form that was asked for"


def _clean_profile_text(text: object) -> str:
    return collapse_white_space(str(text))[:MAX_CHARS_OF_PROFILE_FIELD]


def _clean_profile_lines(lines: Iterable[object]) -> tuple[str, ...]:
    """Return the lines that say something; what is no text is left out."""
    texts = (_clean_profile_text(line) for line in lines if isinstance(line, str))
    return tuple(text for text in texts if text)
