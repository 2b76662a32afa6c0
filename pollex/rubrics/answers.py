"""Questions with answer options, and a judge's answers: distributions, or reasons for none."""

from __future__ import annotations

from collections.abc import Collection
from functools import cached_property, lru_cache
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from pollex.rubrics.rubric import Rubric, make_content_id


class Option(BaseModel):
    """One answer that may be given, and what it is worth."""

    model_config = ConfigDict(frozen=True)

    text: str
    value: float


LIKERT_OPTIONS = tuple(
    Option(text=text, value=value)
    for text, value in [
        ("Strongly Disagree", 0.0),
        ("Disagree", 2.5),
        ("Neutral", 5.0),
        ("Agree", 7.5),
        ("Strongly Agree", 10.0),
    ]
)
"""The five options of RUBICON with their values. Source: Biyani et al. 2024, the evaluation prompt."""

NUMERIC_OPTIONS = tuple(
    Option(text=str(grade), value=(grade - 1) / 9 * 10) for grade in range(1, 11)
)
"""Grades from 1 to 10, spread over the same 0 to 10. Source: Biyani et al. 2024, the evaluators that it compares."""

NEVER_CAME_UP_OPTION = "Never came up"
"""What a judge answers where the occasion of a statement never came up. Missing, and no value of the scale."""

MIDDLE_OPTION_VALUE = 5.0
"""The middle of the values 0 to 10."""

ScaleName = Literal["occasion", "likert-domain", "likert", "numeric"]

OPTIONS_BY_SCALE: dict[ScaleName, tuple[Option, ...]] = {
    "occasion": LIKERT_OPTIONS,
    "likert-domain": LIKERT_OPTIONS,
    "likert": LIKERT_OPTIONS,
    "numeric": NUMERIC_OPTIONS,
}
"""How rubrics may be asked. `occasion` has "Never came up" beside the five options; the others are RUBICON's, neutral
where a statement does not apply. With the first two the judge is told what is expected in the
domain."""

SCALE_NAMES_WITH_DOMAIN_IN_PROMPT: frozenset[ScaleName] = frozenset({"occasion", "likert-domain"})

_OPTIONS_BY_OPTION_COUNT = {len(options): options for options in OPTIONS_BY_SCALE.values()}
_OPTION_VALUES_BY_OPTION_COUNT = {
    length: tuple(option.value for option in options)
    for length, options in _OPTIONS_BY_OPTION_COUNT.items()
}


class Question(BaseModel):
    """A question about a conversation.

    Attributes:
        id: The rubric's id if the question is about one.
        rubric: The rubric; None for any other question.
        may_never: Whether "Never came up" is an answer.
    """

    model_config = ConfigDict(frozen=True)

    id: str
    text: str
    options: tuple[Option, ...] = LIKERT_OPTIONS
    rubric: Rubric | None = None
    may_never: bool = False

    @classmethod
    def about(cls, rubric: Rubric, scale: ScaleName = "likert-domain") -> Question:
        """Return the rubric as a question with the options of a scale."""
        return cls(
            id=rubric.id,
            text=rubric.text,
            rubric=rubric,
            options=OPTIONS_BY_SCALE[scale],
            may_never=scale == "occasion",
        )

    @cached_property
    def digest(self) -> str:
        """Twelve hex digits for the words and options: a re-worded question has others."""
        return make_content_id(
            self.text,
            *(f"{option.text}={option.value}" for option in self.options),
        )


AnswerSource = Literal["built-in", "logprobs", "sampled", "point", "recorded", "rule"]
RULE_ANSWER_SOURCE: AnswerSource = "rule"
"""Of answers that no judge is asked for."""


class Answer(BaseModel):
    """A judge's answer to one question about one conversation.

    Attributes:
        probabilities: One an option, in the question's order, not renormalised; their sum Z is at
            most 1.
        chosen: Index of the option picked; one past the last where the occasion never came up.
        source: Where the probabilities come from.
        justification: The judge's words, or what the built-in judge saw.
        turns: Indices of the turns that the answer rests on.
        judge: Who answered; starts with `built-in` for the built-in judge.
        asked_in: The earlier run that asked, where the answer was known already; it may have been
            asked beside other questions then.
    """

    model_config = ConfigDict(frozen=True)

    question_id: str
    probabilities: tuple[float, ...]
    chosen: int
    source: AnswerSource
    justification: str = ""
    turns: tuple[int, ...] = ()
    judge: str = ""
    asked_in: str = Field("", exclude_if=lambda run: not run)

    @classmethod
    def trusted(cls, **fields: object) -> Answer:
        """Make an answer of all fields unchecked, three times as quickly as `model_construct`, which has defaults."""
        answer = cls.__new__(cls)
        # past pydantic's checks: `frozen` forbids plain assignment
        object.__setattr__(answer, "__dict__", fields)
        object.__setattr__(answer, "__pydantic_fields_set__", set(fields))
        object.__setattr__(answer, "__pydantic_extra__", None)
        object.__setattr__(answer, "__pydantic_private__", None)

        return answer

    @property
    def never_came_up(self) -> bool:
        """Whether the statement never applied; the answer then has no probabilities or value."""
        return self.chosen == len(self.probabilities)

    @property
    def word(self) -> str:
        """The option picked, in words."""
        if self.never_came_up:
            return NEVER_CAME_UP_OPTION
        return self.scale[self.chosen].text

    @property
    def mass(self) -> float:
        """Z: the probability that fell on any of the options."""
        return sum(self.probabilities)

    @property
    def scale(self) -> tuple[Option, ...]:
        """The options that a rubric was asked with: its scales differ in their length."""
        return _OPTIONS_BY_OPTION_COUNT.get(len(self.probabilities), LIKERT_OPTIONS)

    def expected(self, options: tuple[Option, ...] | None = None) -> float:
        """Σ p·value / Z; without options, those of a rubric."""
        # without options, the scale is told by the number of probabilities
        if options is None:
            return _compute_expected_option_value(self.probabilities)

        return (
            sum([p * option.value for p, option in zip(self.probabilities, options, strict=True)])
            / self.mass
        )

    def mode(self, options: tuple[Option, ...] | None = None) -> float:
        """Return the picked option's value; without options, of those of a rubric."""
        return (self.scale if options is None else options)[self.chosen].value

    def value(self, options: tuple[Option, ...] | None = None) -> float:
        """Return the value for NetSAT: of the chosen option for point masses, else expected."""
        if self.source == "point":
            return self.mode(options)
        return self.expected(options)


@lru_cache(maxsize=8192)  # it is counted, written and summed up
def _compute_expected_option_value(probabilities: tuple[float, ...]) -> float:
    values = _OPTION_VALUES_BY_OPTION_COUNT.get(
        len(probabilities), _OPTION_VALUES_BY_OPTION_COUNT[len(LIKERT_OPTIONS)]
    )
    return sum([p * value for p, value in zip(probabilities, values, strict=True)]) / sum(
        probabilities
    )


NoAnswerOutcome = Literal[
    "not_scorable",
    "refused",
    "empty",
    "unparsable",
    "truncated",
    "context_exceeded",
    "silently_truncated",
    "suspect",
    "undecided",
    "error",
]
"""`undecided`: an ensemble's runs don't agree, or too few of them answered."""


RETRYABLE_OUTCOMES: frozenset[NoAnswerOutcome] = frozenset(
    {"error", "empty", "unparsable", "context_exceeded", "silently_truncated"}
)
"""Outcomes that may be others the next time: a resumed run asks again."""


class Unanswered(BaseModel):
    """The reason why a question has no answer, which is never a score.

    Attributes:
        question_id: Empty if the whole call failed.
        outcome: Outcome of the call.
        detail: The cause in words; for `error` it starts with the kind.
    """

    model_config = ConfigDict(frozen=True)

    question_id: str
    outcome: NoAnswerOutcome
    detail: str = ""
    judge: str = ""


def may_asking_again_bring_answer(
    answer: Answer | Unanswered, kinds: Collection[NoAnswerOutcome] = RETRYABLE_OUTCOMES
) -> bool:
    """Tell whether asking again may bring an answer."""
    return isinstance(answer, Unanswered) and answer.outcome in kinds
