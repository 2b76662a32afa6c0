"""The roles behind the real gateway, against a server that speaks the protocol."""

import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from protocol_server import ProtocolServer
from protocol_server.answers import truth
from scripted import TALK, questions, rubric

from pollex.agents.llm.asker import PromptAsker
from pollex.agents.llm.deduplicator import LlmDeduplicator
from pollex.agents.llm.extractor import LlmExtractor
from pollex.agents.llm.judge import LlmJudge
from pollex.agents.llm.summarizer import LlmSummarizer
from pollex.agents.roles import Extraction, Roles, Summary
from pollex.gateway.calls import Call, MemoryLedger, Outcome
from pollex.gateway.endpoint import Endpoint
from pollex.gateway.gateway import Gateway
from pollex.gateway.probe import probe_endpoint
from pollex.prompts.domain import DomainProfile
from pollex.prompts.judging import prefix_options_with_letters
from pollex.rubrics.answers import LIKERT_OPTIONS, Answer, Unanswered
from pollex.rubrics.judge_settings import JudgeSettings

LABELS = prefix_options_with_letters([option.text for option in LIKERT_OPTIONS])
ASKED = [
    *questions("The user thanks.", "The fix works."),
    *questions("The user repeats.", polarity="dsat"),
]


class Constant:
    """Finds all texts alike, so that the model has to decide."""

    identity = "constant"

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        return np.ones((len(texts), 1), dtype=np.float32)


@dataclass
class Witness:
    """A gateway that remembers its calls."""

    gateway: Gateway
    calls: list[Call] = field(default_factory=list)

    async def ask(self, call: Call) -> Outcome:
        self.calls.append(call)
        return await self.gateway.ask(call)


@asynccontextmanager
async def roles_at(
    server: ProtocolServer, ledger: MemoryLedger | None = None, **options: Any
) -> AsyncIterator[tuple[Roles, Witness]]:
    """Roles without canaries, which the server doesn't know how to answer."""
    endpoint = Endpoint("m", server.url, "key")
    settings = JudgeSettings(**({"canary": False, "straight_lining": False} | options))
    async with Gateway(endpoint, ledger or MemoryLedger()) as gateway:
        witness = Witness(gateway)
        capabilities = await probe_endpoint(endpoint)
        asker = PromptAsker(witness, capabilities, DomainProfile.neutral(), settings, b"salt")
        extractor = LlmExtractor(asker)
        summarizer = LlmSummarizer(asker)
        yield (
            Roles(extractor, summarizer, LlmDeduplicator(asker, Constant()), LlmJudge(asker)),
            witness,
        )


def likert(text: str, call: Call) -> list[float]:
    """Return what the server says of a statement, wherever it stands in the call's list."""
    listed = re.search(
        rf'^(\d+)\. "{re.escape(text)}"$',
        "\n".join(str(message["content"]) for message in call.messages),
        re.MULTILINE,
    )
    assert listed is not None
    distribution = truth(call.messages, LABELS, f".{listed[1]}.answer")
    return [distribution[label] for label in LABELS]


async def test_distributions_of_a_batch_are_those_that_the_server_gave() -> None:
    with ProtocolServer() as server:
        async with roles_at(server) as (roles, witness):
            answers = await roles.judge.judge(TALK, ASKED)
    assert [answer.source for answer in answers if isinstance(answer, Answer)] == ["logprobs"] * 3
    good, bad = witness.calls
    expected = [
        likert(question.text, call) for question, call in zip(ASKED, (good, good, bad), strict=True)
    ]
    for answer, chances in zip(answers, expected, strict=True):
        assert isinstance(answer, Answer)
        assert answer.probabilities == pytest.approx(chances, abs=1e-6)
        assert answer.chosen == int(np.argmax(chances))


@pytest.mark.parametrize("elicitation", ["batched", "independent"])
async def test_samples_without_log_probabilities_have_seeds_of_their_own_and_none_is_bought_twice(
    elicitation: str,
) -> None:
    ledger = MemoryLedger()
    with ProtocolServer(script=[{"do": "ignore", "what": ["logprobs"]}]) as server:
        async with roles_at(server, ledger, samples=4, seed=7, elicitation=elicitation) as (
            roles,
            witness,
        ):
            probes = server.counts()
            first = await roles.judge.judge(TALK, ASKED)
        once = server.counts()
        assert [answer.source for answer in first if isinstance(answer, Answer)] == ["sampled"] * 3
        assert {call.seed for call in witness.calls} == {7, 8, 9, 10}
        # a body has no number of the sample, so it is the seed that makes it another
        assert (
            once["distinct"] - probes["distinct"]
            == once["paid"] - probes["paid"]
            == len(witness.calls)
        )
        async with roles_at(server, ledger, samples=4, seed=7, elicitation=elicitation) as (
            roles,
            _,
        ):
            assert await roles.judge.judge(TALK, ASKED) == first
        assert server.counts()["paid"] - once["paid"] == probes["paid"]


async def test_all_roles_work_on_an_endpoint_that_obeys_schemas() -> None:
    with ProtocolServer() as server:
        async with roles_at(server) as (roles, _):
            found = await roles.extractor.extract(TALK)
            assert isinstance(found, Extraction)
            assert found.reasons
            assert {quote.turn for reason in found.reasons for quote in reason.quotes} <= {0, 1, 2}
            made = await roles.summarizer.summarize(found.reasons, [], "sat")
            assert isinstance(made, Summary)
            assert (await roles.deduplicator.deduplicate([rubric("one"), rubric("two")])).kept
            assert set(roles.names.values()) == {"m"}
            assert len(set(roles.fingerprints.values())) == 4


async def test_a_conversation_that_does_not_fit_the_window_is_said_not_to() -> None:
    # The rule asks for more than the probe's short prompts and less than the judge's.
    with ProtocolServer(script=[{"do": "window", "tokens": 100, "style": "vllm"}]) as server:
        async with roles_at(server) as (roles, _):
            answers = await roles.judge.judge(TALK, ASKED)
    assert [answer.outcome for answer in answers if isinstance(answer, Unanswered)] == [
        "context_exceeded"
    ] * 3
