"""Whatever stands in place of a value that a role asked for, it is left out, and breaks nothing."""

import copy
import json
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from scripted import TALK, Scripted, asker, questions, rubric
from test_deduplicator import POOL, Angles

from pollex.agents.llm.adapting import adapt_rubrics_to_domain
from pollex.agents.llm.asker import PromptAsker
from pollex.agents.llm.columns import identify_columns
from pollex.agents.llm.deduplicator import LlmDeduplicator
from pollex.agents.llm.extractor import LlmExtractor
from pollex.agents.llm.judge import LlmJudge
from pollex.agents.llm.profile_drafter import draft_profile
from pollex.agents.llm.rewording import LlmRewriter
from pollex.agents.llm.summarizer import LlmSummarizer, LlmUpdater
from pollex.rubrics.rubric import Reason

NONSENSE = (None, 7, -1, 1.5, True, "words", "", [], {}, [None], [[]], {"a": []})

JOINED = rubric("The assistant explains and apologizes.").model_copy(
    update={"source": "summarize_sat@1"}
)
REASONS = [
    Reason(id=str(number), conversation_id="c", polarity="sat", text="The user waits.", quotes=())
    for number in (1, 2)
]
QUOTE = {"part": "act", "turn": 1, "quote": "Replace .Result by await in the constructor."}
ANSWER = {"why": "said so", "turns": [1], "answer": "Agree"}

ROLES: dict[str, tuple[Callable[[PromptAsker], Awaitable[object]], Any]] = {
    "extract": (
        lambda ask: LlmExtractor(ask).extract(TALK),
        {"summary": "Fixed.", "reasons": [{"quotes": [QUOTE, QUOTE], "reason": "It helps."}]},
    ),
    "summarize": (
        lambda ask: LlmSummarizer(ask).summarize(REASONS, [JOINED], "sat"),
        {
            "covered": [{"known": 1, "reasons": [1]}],
            "rubrics": [{"reasons": [1, 2], "text": "The user waits."}],
        },
    ),
    "update": (
        lambda ask: LlmUpdater(ask).update(REASONS, [JOINED], "sat", 3),
        {"revised": [{"known": [1], "reasons": [1, 2], "text": "The user waits."}]},
    ),
    "deduplicate": (
        lambda ask: LlmDeduplicator(ask, Angles()).deduplicate(POOL),
        {"same": [[1, 2]], "mirrored": [[1, 3]]},
    ),
    "reword": (
        lambda ask: LlmRewriter(ask).reword([JOINED]),
        {"better": [{"i": 1, "texts": ["The assistant explains."]}]},
    ),
    "judge": (
        lambda ask: LlmJudge(ask).judge(TALK, questions("one", "two")),
        {"1": ANSWER, "2": ANSWER, "3": ANSWER},
    ),
    "adapt": (
        lambda ask: adapt_rubrics_to_domain(ask, [JOINED]),
        {"1": {"why": "so", "does": "reword", "text": "The assistant explains."}},
    ),
    "profile": (
        lambda ask: draft_profile(ask, [TALK]),
        {
            "assistant": "a chat assistant",
            "task": "to book",
            "user": "customers",
            "ideal_conversation": "It books.",
            "expectations": ["book"],
            "notes": ["Names are placeholders."],
        },
    ),
    "columns": (
        lambda ask: identify_columns(ask, [{"name": "text"}]),
        {"columns": [{"part": "text", "column": "t"}], "speakers": [], "up": ["1"], "down": []},
    ),
}


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where something stands in a reply, from the outside in."""
    entries = list(enumerate(value)) if isinstance(value, list) else []
    if isinstance(value, dict):
        entries = list(value.items())
    for key, inner in entries:
        yield (*path, key)
        yield from places(inner, (*path, key))


def spoiled(reply: Any) -> Iterator[str]:
    """The reply with one of its values replaced, each by each kind of nonsense."""
    for *outer, last in places(reply):
        for nonsense in NONSENSE:
            changed = copy.deepcopy(reply)
            inner = changed
            for key in outer:
                inner = inner[key]
            inner[last] = nonsense
            yield json.dumps(changed)


@pytest.mark.parametrize("role", ROLES)
async def test_a_value_of_another_kind_breaks_no_role(role: str) -> None:
    work, reply = ROLES[role]
    for text in (json.dumps(reply), *spoiled(reply)):
        await work(asker(Scripted(otherwise=text)))
