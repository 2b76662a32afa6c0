"""How a judge is asked: what users set, what a rubric set records, and what identifies answers, in one place."""

from collections.abc import Iterable
from typing import Annotated, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    ValidationError,
    field_validator,
)

from pollex.errors import WrongUse
from pollex.gateway.calls import Capabilities
from pollex.prompts.domain import ClosingRole, parse_names_of_omitted_prompt_parts
from pollex.rubrics.answers import SCALE_NAMES_WITH_DOMAIN_IN_PROMPT, ScaleName
from pollex.rubrics.rubric import ANSWERED_BY_BUILT_IN_JUDGE

MAX_RUBRICS_PER_MODEL_CALL = 10
DEFAULT_EMBEDDING_MODEL = "all-MiniLM-L6-v2"
"""The bundled embedding model."""

SETTING_NAMES_CHANGING_ANY_ROLE = frozenset({"closing", "seed", "max_tokens"})
"""Settings that change what any role answers."""

SETTING_NAMES_CHANGING_JUDGE_ANSWERS = frozenset(
    {"scale", "samples", "require", "temperature", "canary", "straight_lining", "batch", "sources"}
)
"""Settings that change what a judge answers besides; its prompt tells the elicitation."""


def _sort_prompt_part_names(parts: object) -> object:
    if isinstance(parts, str):
        return frozenset(filter(None, map(str.strip, parts.split(","))))
    return parts


PromptPartNames = Annotated[
    frozenset[str], BeforeValidator(_sort_prompt_part_names), PlainSerializer(sorted)
]
"""Parts of prompts; as a text separated by commas."""


class JudgeSettings(BaseModel):
    """How a judge is asked. The descriptions are those of `--help-all`; the last fields are only recorded.

    Attributes:
        batch: Maximum number of questions in a call.
        max_tokens: Maximum number of tokens of an answer; doubled once if an answer was cut.
        seed: Sent with every call, with each further sample the next; None sends none.
        place: Where the model answered.
        capabilities: What the endpoint could do; None for a built-in judge.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    scale: ScaleName = Field(
        "occasion",
        description='Answer scale of rubrics; `occasion` includes "Never came up".',
    )
    elicitation: Literal["batched", "independent"] = Field(
        "batched",
        description="`batched`: ten rubrics and a canary a call, with reasons; `independent`: one rubric, one token.",
    )
    samples: int = Field(
        1,
        ge=1,
        description="Calls for one distribution if the endpoint gives no log-probabilities.",
    )
    require: Literal["logprobs"] | None = Field(
        None,
        description="Fail if the endpoint gives no log-probabilities.",
    )
    without: PromptPartNames = Field(
        frozenset(),
        description="What to leave out: built-in (rubrics found without the model); ds, cdp, domain of prompts.",
    )
    canary: bool = Field(
        True,
        description="Also ask a question with a known answer, as attention check.",
    )
    straight_lining: bool = Field(
        True,
        description="Mark answers that are all the same.",
    )
    closing: ClosingRole = Field(
        "system",
        description="Role of the task message; merged for strict chat templates.",
    )
    value: Literal["auto", "expected", "mode"] = Field(
        "auto",
        description="Part of an answer's distribution that NetSAT sums, or that is the grade.",
    )
    embedding_model: str = Field(
        DEFAULT_EMBEDDING_MODEL,
        description="A sentence-transformers model, by name or path.",
    )

    temperature: float | None = Field(
        None,
        ge=0,
        description="Temperature of independent runs, the model's own if not set; of samples 1 if not set.",
    )
    prompts: Literal["pollex", "paper"] = Field(
        "pollex",
        description="Whose prompts and scale: `paper` is RUBICON's own, where Neutral is also what doesn't apply.",
    )
    reasons: int = Field(
        3,
        ge=1,
        le=10,
        description="Maximum number of reasons from one conversation, the paper's k.",
    )
    new_rubrics: int = Field(
        10,
        ge=1,
        description="Maximum number of new rubrics from one batch of reasons.",
    )
    near: float = Field(
        0.7,
        gt=0,
        le=1,
        description="Cosine from which the model is asked whether two of its rubrics say the same.",
    )
    alike: float = Field(
        0.88,
        gt=0,
        le=1,
        description="Cosine from which rubrics are one where no model decides, and from which the model is asked about "
        "one of its own and a built-in one.",
    )

    sources: int = Field(
        20_000,
        ge=0,
        description="Characters of all documents together that a judge is shown of one conversation.",
    )

    batch: int = Field(MAX_RUBRICS_PER_MODEL_CALL, ge=1, le=MAX_RUBRICS_PER_MODEL_CALL)
    max_tokens: int = Field(4096, ge=1)
    seed: int | None = None
    place: str = ""
    capabilities: Capabilities | None = None

    @field_validator("without")
    @classmethod
    def _known(cls, without: frozenset[str]) -> frozenset[str]:
        # parts of prompts are checked by their module, which doesn't know of built-in rubrics
        return parse_names_of_omitted_prompt_parts(without - {ANSWERED_BY_BUILT_IN_JUDGE}) | (
            without & {ANSWERED_BY_BUILT_IN_JUDGE}
        )

    @classmethod
    def of(cls, **values: object) -> Self:
        """Return the settings that a user gives.

        Raises:
            WrongUse: Names the setting that can't be carried out.
        """
        try:
            return cls(**values)
        except ValidationError as error:
            # the first complaint names the option that a person gave
            first = error.errors(include_url=False)[0]
            name = str(first["loc"][0])
            complaint = first["msg"][0].lower() + first["msg"][1:]
            raise WrongUse(
                f"{name} is {first['input']!r:.60}: {complaint}",
                hint="change it",
                option=name,
            ) from None

    def but(self, **changes: object) -> Self:
        """Return the settings with changes."""
        return self.model_copy(update=changes)

    @property
    def left_out(self) -> frozenset[str]:
        """Parts that prompts are put without; only some scales ask about the domain."""
        return (
            self.without
            | (set() if self.scale in SCALE_NAMES_WITH_DOMAIN_IN_PROMPT else {"domain"})
        ) - {ANSWERED_BY_BUILT_IN_JUDGE}

    def facts(self, names: Iterable[str]) -> dict[str, object]:
        """Return settings by name, for a fingerprint."""
        return {name: getattr(self, name) for name in names}
