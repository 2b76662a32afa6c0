"""How the roles work on a model."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from pollex.agents.answers import ScaleName
from pollex.errors import ModelRefused, WrongUse
from pollex.gateway.capabilities import Capabilities
from pollex.prompts.messages import Closing
from pollex.prompts.prompt import switched_off

MOST_IN_A_CALL = 10


@dataclass(frozen=True, kw_only=True)
class LlmOptions:
    """What a user may choose, beside model and domain.

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
    scale: ScaleName = "likert-domain"
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
        """Calls for one distribution: one where log-probabilities tell it.

        Raises:
            ModelRefused: Log-probabilities are required, and the endpoint gives none.
        """
        if capabilities.logprobs:
            return 1
        if self.require == "logprobs":
            remedy = "choose another endpoint, or drop --require logprobs"
            raise ModelRefused("the endpoint gives no log-probabilities", where=capabilities.model, remedy=remedy)
        return self.samples
