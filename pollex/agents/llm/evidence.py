"""A conversation as data of a prompt: turns, documents that were shown, and what was said of it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from pollex.conversations.conversation import Conversation, Source
from pollex.prompts.data_boundary import DataItem
from pollex.prompts.data_boundary import make_turn_items as items_of
from pollex.text import format_count

PROMPT_BLOCKS_OMITTED_WITHOUT_SOURCES = frozenset({"sources"})
"""The block of a prompt that tells of documents."""


def make_prompt_items_of_turns(conversation: Conversation) -> list[DataItem]:
    """Return a conversation as data: its turns, without id, label or metadata."""
    return items_of((turn.role, turn.shown) for turn in conversation.turns)


@dataclass(frozen=True)
class JudgeEvidence:
    """A conversation as a judge sees it.

    Attributes:
        items: Its turns, then the documents that the assistant was shown.
        without: Blocks of the prompt that it has no use for.
    """

    items: list[DataItem]
    without: frozenset[str]


def collect_evidence_shown_to_judge(conversation: Conversation, most: int) -> JudgeEvidence:
    """Return the turns and sources of a conversation as data.

    Documents are numbered as replies cite them; what tools returned stays in its turn, with the
    numbers after these.

    Args:
        most: Characters of all sources together; what is cut says so.
    """
    turns = make_prompt_items_of_turns(conversation)
    if not conversation.has_sources:
        return JudgeEvidence(turns, PROMPT_BLOCKS_OMITTED_WITHOUT_SOURCES)

    # results of tools are numbered like documents, but stay in their turns
    results = []
    for n, turn in enumerate(turns):
        if turn["role"] == "tool" and turn["text"].strip():
            results.append(n)

    cuts = cut_texts_to_length(_list_texts_shown_to_assistant(conversation), most)
    shown: list[DataItem] = [{"source": number, **cut} for number, cut in enumerate(cuts, 1)]
    # documents have the first numbers, results the next ones
    documents = shown[: len(conversation.sources)]
    for n, cut in zip(results, shown[len(documents) :], strict=True):
        turns[n] = {**turns[n], **cut}

    for source, item in zip(conversation.sources, documents, strict=True):
        about: dict[str, object] = {"name": source.name} if source.name else {}
        about |= {} if source.turn is None else {"shown_for_turn": source.turn}
        turns.append({"source": item["source"], **about, **item})

    return JudgeEvidence(turns, frozenset())


def _list_texts_shown_to_assistant(conversation: Conversation) -> list[str]:
    """Return what the assistant was shown: documents, then what its tools returned."""
    documents = [source.text for source in conversation.sources]
    results = []
    for turn in conversation.turns:
        if turn.role == "tool":
            results.append(turn.shown)

    return documents + [text for text in results if text.strip()]


def describe_cut_sources(conversations: Iterable[Conversation], most: int) -> str:
    """Say in how many conversations documents are cut for the judge; empty where none are."""
    cut = sum(
        sum(map(len, _list_texts_shown_to_assistant(conversation))) > most
        for conversation in conversations
    )
    if not cut:
        return ""

    return (
        f"Note: in {format_count(cut, 'conversation')} the judge is shown documents and results of tools cut, "
        f"to {most:,} characters together (setting `sources`)"
    )


def cut_texts_to_length(texts: Sequence[str], most: int) -> list[dict[str, Any]]:
    """Return the fields of texts that have at most so many characters together: the longest are cut, all alike."""
    room = most
    longest = most
    # from the shortest: what a text doesn't need of its share is left to the longer ones
    for left, text in zip(range(len(texts), 0, -1), sorted(texts, key=len), strict=True):
        longest = room // left
        if len(text) > longest:
            break
        room -= len(text)
        # where the loop ends by itself, everything fits
        longest = most

    fields: list[dict[str, object]] = []
    for text in texts:
        fields.append(
            {"text": text}
            if len(text) <= longest
            else {
                "text": text[:longest],
                "cut": f"the first {longest:,} of {len(text):,} characters",
            }
        )

    return fields


def make_prompt_items_of_documents(sources: Sequence[Source], most: int) -> list[DataItem]:
    """Return documents as data, numbered as replies cite them.

    Args:
        most: Characters of all of them together; what is cut says so.
    """
    cuts = cut_texts_to_length([source.text for source in sources], most)
    documents: list[DataItem] = []
    for number, (source, cut) in enumerate(zip(sources, cuts, strict=True), 1):
        documents.append(
            {
                "source": number,
                **({"name": source.name} if source.name else {}),
                **cut,
            }
        )

    return documents


FEEDBACK_ROLE_NAME = "what the user said of it"
"""In place of a role."""


def make_prompt_items_of_user_feedback(conversation: Conversation) -> list[DataItem]:
    """Return what was written of a conversation as data, after its turns; quotes of it have negative numbers."""
    rows: list[DataItem] = []
    for i, feedback in enumerate(conversation.feedback):
        rows.append(
            {
                "i": -1 - i,
                "role": FEEDBACK_ROLE_NAME,
                "text": feedback.text,
            }
        )

    return rows
