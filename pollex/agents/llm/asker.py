"""The way from a prompt to an outcome, shared by all four roles."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol

from pollex.agents.llm.evidence import JudgeEvidence, collect_evidence_shown_to_judge
from pollex.agents.llm.parsing import parse_last_object
from pollex.conversations.conversation import Conversation
from pollex.errors import ModelRefused, WrongUse
from pollex.gateway.calls import Call, Capabilities, CompletedReply, Outcome, TruncatedReply
from pollex.prompts.data_boundary import DataItem
from pollex.prompts.domain import DomainProfile
from pollex.prompts.prompt import Prompt, PromptLayout, build_chat_messages_of_prompt, load_prompt
from pollex.rubrics.answers import Unanswered
from pollex.rubrics.judge_settings import SETTING_NAMES_CHANGING_ANY_ROLE, JudgeSettings
from pollex.rubrics.rubric import Polarity

LLM_ROLE_VERSION = "1"
"""Changes when the same model answer would be read differently."""

SAMPLING_TEMPERATURE = 1.0
"""Temperature of sampled answers, where none is set."""


_CAPABILITIES_WITHOUT_EFFECT_ON_ANSWERS = {"calls", "window", "stream"}
"""Capabilities that change no answer."""


class ModelClient(Protocol):
    """Protocol of the gateway that the roles use."""

    async def ask(self, call: Call) -> Outcome:
        """Make the call and return its outcome."""


@dataclass(frozen=True)
class PromptAsker:
    """Asks prompts of one model about one domain.

    Attributes:
        door: The gateway.
        capabilities: What the endpoint can do; calls are cut down to it.
        salt: Secret of the store, for the boundary code around data; see `prompts.data_boundary`.

    Raises:
        ModelRefused: Log-probabilities are required, and the endpoint gives none.
    """

    door: ModelClient
    capabilities: Capabilities
    profile: DomainProfile
    settings: JudgeSettings
    salt: bytes = field(repr=False)

    def __post_init__(self) -> None:
        if not self.salt:
            raise WrongUse(
                "no salt for the boundary around data",
                hint="give the store's secret",
            )

        if self.settings.require == "logprobs" and not self.capabilities.logprobs:
            hint = "choose another endpoint, or leave it out"
            raise ModelRefused(
                "the endpoint gives no log-probabilities",
                where=self.name,
                hint=hint,
                option="require",
            )

    @property
    def name(self) -> str:
        """The model's name."""
        return self.capabilities.model

    @property
    def replicates(self) -> int:
        """Number of calls for one distribution: one where log-probabilities give it."""
        return 1 if self.capabilities.logprobs else self.settings.samples

    def sampling(self, replicate: int) -> dict[str, Any]:
        """Return the sampling settings of a judging call: random only if outcomes are counted.

        Each sample has a seed of its own, for an endpoint that obeys seeds would give all of them
        one answer; a sample's second try has its sample's.

        Args:
            replicate: Samples are counted from 0, their second tries go on from there.
        """
        samples = self.replicates
        seed = self.settings.seed
        set_temperature = self.settings.temperature
        if samples == 1:
            temperature = 0.0
        elif set_temperature is None:
            temperature = SAMPLING_TEMPERATURE
        else:
            temperature = set_temperature

        # second tries are numbered on behind the samples, and have their seeds again
        drawn = None if seed is None else seed + replicate % samples
        return {
            "replicate": replicate,
            "temperature": temperature,
            "seed": drawn,
        }

    def layout(self, without: frozenset[str]) -> PromptLayout:
        """Return the layout of prompts, without the blocks in `without`."""
        # an endpoint without schemas is told the form in the prompt
        inline = self.capabilities.form in {"json_object", "text"}
        return PromptLayout(
            self.salt,
            self.settings.closing,
            inline,
            self.settings.left_out | without,
        )

    def call(
        self,
        prompt: Prompt,
        items: Sequence[DataItem],
        values: Mapping[str, str],
        *,
        schema: Mapping[str, object] | None = None,
        without: frozenset[str] = frozenset(),
        **settings: object,
    ) -> Call:
        """Build a call that this endpoint supports.

        Args:
            items: The data.
            values: For the prompt's gaps, beside the profile's.
            schema: The answer's, where it isn't the prompt's own.
            settings: Fields of `Call`: `item`, and what differs from a deterministic answer.
        """
        schema = prompt.schema if schema is None else schema
        prompt_messages = build_chat_messages_of_prompt(
            prompt,
            {**self.profile.values(), **values},
            items,
            self.layout(without),
            schema=schema,
        )
        about: dict[str, Any] = {
            "stage": prompt.stage,
            "written": prompt.written,
            "apart": prompt.apart,
        }
        # as deterministic as can be, where the caller says nothing else
        defaults = {
            "temperature": 0.0,
            "seed": self.settings.seed,
            "max_tokens": self.settings.max_tokens,
            **about,
        }
        call = Call(
            messages=prompt_messages,
            schema=schema or None,
            schema_name=prompt.name,
            **(defaults | settings),
        )

        return self.capabilities.fit(call)

    async def ask(self, call: Call) -> Outcome:
        """Make a call; ask once more with twice the tokens if the answer was truncated."""
        outcome = await self.door.ask(call)
        longer = self.capabilities.fit(call.longer())
        # some endpoints leave no more room
        if isinstance(outcome, TruncatedReply) and longer.max_tokens != call.max_tokens:
            return await self.door.ask(longer)
        return outcome

    async def value(
        self,
        prompt: Prompt,
        items: Sequence[DataItem],
        values: Mapping[str, str],
        fields: Mapping[str, type],
        **rest: Any,
    ) -> dict[str, Any] | Unanswered:
        """Ask for a JSON object with typed `fields`; ask once more if it is missing.

        Args:
            rest: As in `call`, with the items and values.
        """
        call = self.call(prompt, items, values, **rest)
        for attempt in range(2):
            # another replicate, as the same call would get its known answer again
            outcome = await self.ask(replace(call, replicate=call.replicate + attempt))
            if not isinstance(outcome, CompletedReply):
                break
            block = parse_last_object(outcome.text)
            if block and all(
                isinstance(block.value.get(name), kind) for name, kind in fields.items()
            ):
                return block.value

        return make_unanswered_from_outcome(outcome, make_judge_id(self.name, prompt))

    def evidence(self, conversation: Conversation) -> JudgeEvidence:
        """Return a conversation as a judge sees it: its turns, and the sources that the assistant was shown."""
        return collect_evidence_shown_to_judge(conversation, self.settings.sources)

    def fingerprint(self, *prompts: Prompt, **settings: object) -> str:
        """Hash the settings that affect a role's results, except the salt."""
        # what can't change an answer doesn't change the fingerprint
        capabilities = {}
        for k, v in asdict(self.capabilities).items():
            if k not in _CAPABILITIES_WITHOUT_EFFECT_ON_ANSWERS:
                capabilities[k] = v

        # what is as usual is left out: as before it was known
        if self.capabilities.roles == "any":
            del capabilities["roles"]
        if self.capabilities.most_tokens is None:
            del capabilities["most_tokens"]

        facts = {
            "version": LLM_ROLE_VERSION,
            "model": self.name,
            "capabilities": capabilities,
            **self.settings.facts(SETTING_NAMES_CHANGING_ANY_ROLE),
            "without": sorted(self.settings.left_out),
            "profile": self.profile.model_dump(),
            "prompts": {prompt.name: prompt.version for prompt in prompts},
            **settings,
        }
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:12]


class ModelRole:
    """Base of roles on a model.

    Args:
        prompts: All that the role asks.
        facts: What else its results depend on, beside what every call does.
    """

    def __init__(
        self,
        asker: PromptAsker,
        prompts: Iterable[Prompt],
        **facts: object,
    ) -> None:
        self.asker = asker
        self._prompts = prompts
        self._facts = facts

    @property
    def name(self) -> str:
        """The model's name."""
        return self.asker.name

    @cached_property
    def fingerprint(self) -> str:
        """See `Agent`."""
        return self.asker.fingerprint(*self._prompts, **self._facts)


def load_prompts_by_polarity(task: str, *, paper: bool = False) -> dict[Polarity, Prompt]:
    """Load the prompts of a task, one for each polarity.

    Args:
        paper: Whether RUBICON's paper's own is wanted, which is one for both.
    """
    return {
        kind: load_prompt(f"{task}_{'paper' if paper else kind}")
        for kind in PROMPT_WORDS_BY_POLARITY
    }


PROMPT_WORDS_BY_POLARITY: dict[Polarity, dict[str, str]] = {
    "sat": {"feeling": "satisfied", "thumb": "up"},
    "dsat": {"feeling": "dissatisfied", "thumb": "down"},
}
"""What a prompt of either polarity is told of its polarity."""


def make_judge_id(model: str, prompt: Prompt) -> str:
    """Return the judge's identity: model, prompt and version."""
    return f"{model} {name_prompt_version(prompt)}"


def name_prompt_version(prompt: Prompt) -> str:
    """Prompt and version, as records name where they come from."""
    return f"{prompt.name}@{prompt.version}"


def make_unanswered_from_outcome(outcome: Outcome, judge: str, question_id: str = "") -> Unanswered:
    """Convert an outcome without a usable answer; unusable answers are unparsable."""
    if isinstance(outcome, CompletedReply):
        kind = "unparsable"
    else:
        kind = outcome.kind

    detail = outcome.detail or "the answer is not in the form that was asked for"
    return Unanswered(
        question_id=question_id,
        outcome=kind,
        detail=detail,
        judge=judge,
    )
