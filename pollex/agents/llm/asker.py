"""The way from a prompt to an outcome, shared by all four roles."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, Protocol

from pollex.agents.llm.parsing import object_in
from pollex.conversations.conversation import Conversation
from pollex.errors import ModelRefused, WrongUse
from pollex.gateway.calls import Call
from pollex.gateway.capabilities import Capabilities
from pollex.gateway.outcomes import Completed, Outcome, Truncated
from pollex.prompts.data_boundary import Item
from pollex.prompts.data_boundary import conversation as turns_as_items
from pollex.prompts.domain import DomainProfile
from pollex.prompts.messages import Closing, Layout, messages
from pollex.prompts.prompt import Prompt, load, switched_off
from pollex.rubrics.answers import ScaleName, Unanswered
from pollex.rubrics.rubric import Polarity

VERSION = "1"
"""Changes when the same model answer would be read differently."""


class ModelClient(Protocol):
    """Protocol of the gateway that the roles use."""

    async def ask(self, call: Call) -> Outcome:
        """Make the call and return its outcome."""


@dataclass(frozen=True)
class Asker:
    """Asks prompts of one model about one domain.

    Attributes:
        door: The gateway.
        capabilities: What the endpoint can do; calls are cut down to it.
    """

    door: ModelClient
    capabilities: Capabilities
    profile: DomainProfile
    options: LlmOptions

    @property
    def name(self) -> str:
        """The model's name."""
        return self.capabilities.model

    def sampling(self, replicate: int) -> dict[str, Any]:
        """Return the sampling settings of a judging call: random only if outcomes are counted.

        Each sample has a seed of its own, for an endpoint that obeys seeds would give all of them one answer; a
        sample's second try has its sample's.

        Args:
            replicate: Samples are counted from 0, their second tries go on from there.
        """
        samples, seed = self.options.replicates(self.capabilities), self.options.seed
        temperature = self.options.temperature if samples > 1 else 0.0
        drawn = None if seed is None else seed + replicate % samples
        return {"replicate": replicate, "temperature": temperature, "seed": drawn}

    def layout(self, without: frozenset[str]) -> Layout:
        """Return the layout of prompts, without the blocks in `without`."""
        inline = self.capabilities.form in {"json_object", "text"}
        return Layout(self.options.salt, self.options.closing, inline, self.options.without | without)

    def call(
        self,
        prompt: Prompt,
        items: Sequence[Item],
        values: Mapping[str, str],
        *,
        schema: Mapping[str, Any] | None = None,
        without: frozenset[str] = frozenset(),
        **settings: Any,
    ) -> Call:
        """Build a call that this endpoint supports.

        Args:
            items: The data.
            values: For the prompt's gaps, beside the profile's.
            schema: The answer's, where it isn't the prompt's own.
            settings: Fields of `Call`: `stage` and `item`, and what differs from a deterministic answer.
        """
        schema = prompt.schema if schema is None else schema
        said = messages(prompt, {**self.profile.values(), **values}, items, self.layout(without), schema=schema)
        defaults = {"temperature": 0.0, "seed": self.options.seed, "max_tokens": self.options.max_tokens}
        call = Call(messages=said, schema=schema or None, schema_name=prompt.name, **(defaults | settings))
        return self.capabilities.fit(call)

    async def ask(self, call: Call) -> Outcome:
        """Make a call; ask once more with twice the tokens if the answer was truncated."""
        outcome = await self.door.ask(call)
        return await self.door.ask(call.longer()) if isinstance(outcome, Truncated) else outcome

    async def read(self, call: Call, fields: Mapping[str, type], judge: str) -> dict[str, Any] | Unanswered:
        """Ask for a JSON object with typed `fields`; ask once more if it is missing."""
        for attempt in range(2):
            outcome = await self.ask(replace(call, replicate=call.replicate + attempt))
            if not isinstance(outcome, Completed):
                break
            block = object_in(outcome.text)
            if block and all(isinstance(block.value.get(name), kind) for name, kind in fields.items()):
                return block.value
        return failure(outcome, judge)

    def fingerprint(self, *prompts: Prompt, **settings: Any) -> str:
        """Hash the settings that affect a role's results, except the salt."""
        facts = {
            "version": VERSION,
            "model": self.name,
            "capabilities": {k: v for k, v in asdict(self.capabilities).items() if k not in {"calls", "window"}},
            "closing": self.options.closing,
            "seed": self.options.seed,
            "max_tokens": self.options.max_tokens,
            "without": sorted(self.options.without),
            "profile": self.profile.model_dump(),
            "prompts": {prompt.name: prompt.version for prompt in prompts},
            **settings,
        }
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:12]


class PolarRole:
    """Base of roles that have a prompt for each polarity.

    Args:
        task: What the prompts' names begin with.
    """

    def __init__(self, asker: Asker, task: str) -> None:
        self.asker = asker
        self.prompts: dict[Polarity, Prompt] = {"sat": load(f"{task}_sat"), "dsat": load(f"{task}_dsat")}

    @property
    def name(self) -> str:
        return self.asker.name

    @property
    def fingerprint(self) -> str:
        return self.asker.fingerprint(*self.prompts.values())


def spoken(conversation: Conversation) -> list[Item]:
    """Return a conversation as data: its turns, without id, label or metadata."""
    return turns_as_items((turn.role, turn.content) for turn in conversation.turns)


def signed(model: str, prompt: Prompt) -> str:
    """Return the judge's identity: model, prompt and version."""
    return f"{model} {source_of(prompt)}"


def source_of(prompt: Prompt) -> str:
    """Prompt and version, as records name where they come from."""
    return f"{prompt.name}@{prompt.version}"


def failure(outcome: Outcome, judge: str, question_id: str = "") -> Unanswered:
    """Convert an outcome without a usable answer; unusable answers are unparsable."""
    kind = "unparsable" if isinstance(outcome, Completed) else outcome.kind
    detail = outcome.detail or "the answer is not in the form that was asked for"
    return Unanswered(question_id=question_id, outcome=kind, detail=detail, judge=judge)


MOST_IN_A_CALL = 10


@dataclass(frozen=True, kw_only=True)
class LlmOptions:
    """Options of the LLM roles, besides model and domain.

    Attributes:
        salt: Secret of the store, for the boundary code around data; see `prompts.envelope`.
        without: Parts of prompts to leave out: `ds` and `cdp` in generation, `domain` in judging.
        scale: How rubrics are asked; see `agents.answers.SCALES`. Leaving the domain out of the prompts is up to
            `without`.
        elicitation: `batched` (RUBICON: up to ten questions a call, justified) or `independent` (LLM-Rubric: one
            question, one token).
        samples: Calls for one distribution where the endpoint gives no log-probabilities; 1 makes point masses.
        require: `logprobs` to fail rather than fall back on samples or point masses.
        temperature: Of sampled answers. All other calls are asked at 0.
        seed: Sent with every call, with each further sample the next; None sends none.
        canary: Whether each judging call has a question of known answer.
        straight_lining: Whether answers that don't depend on the question are told apart.
        closing: Who says the task; see `prompts.messages.Layout`.
        batch: Most questions in a call.
        new_rubrics: Most new rubrics from one batch of reasons.
        near: Cosine from which on two rubrics are shown to the deduplicator.
        max_tokens: Most tokens to write in a call; a model that thinks needs room for it. Twice as many when an answer
            was cut.
    """

    salt: bytes = field(repr=False)
    without: frozenset[str] = frozenset()
    scale: ScaleName = "occasion"
    elicitation: Literal["batched", "independent"] = "batched"
    samples: int = 1
    require: Literal["logprobs"] | None = None
    temperature: float = 1.0
    seed: int | None = None
    canary: bool = True
    straight_lining: bool = True
    closing: Closing = "system"
    batch: int = MOST_IN_A_CALL
    new_rubrics: int = 10
    near: float = 0.7
    max_tokens: int = 4096

    def __post_init__(self) -> None:
        switched_off(self.without)
        if not self.salt:
            raise WrongUse("no salt for the boundary around data", remedy="give the store's secret")
        if not 1 <= self.batch <= MOST_IN_A_CALL:
            raise WrongUse(f"{self.batch} questions a call", remedy=f"choose 1 to {MOST_IN_A_CALL}")
        if self.samples < 1 or self.new_rubrics < 1 or self.max_tokens < 1:
            raise WrongUse("samples, new_rubrics and max_tokens must be at least 1", remedy="give positive numbers")

    def replicates(self, capabilities: Capabilities) -> int:
        """Return the number of calls for one distribution: one if there are log-probabilities.

        Raises:
            ModelRefused: Log-probabilities are required, and the endpoint gives none.
        """
        if capabilities.logprobs:
            return 1
        if self.require == "logprobs":
            remedy = "choose another endpoint, or drop --require logprobs"
            raise ModelRefused("the endpoint gives no log-probabilities", where=capabilities.model, remedy=remedy)
        return self.samples
