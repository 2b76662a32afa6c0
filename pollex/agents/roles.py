"""The four roles and the baseline's updater, as protocols that graph nodes depend on.

A role never raises for one conversation: it returns a result or an `Unanswered`. It raises a
`PollexError` only for what stops all work (a wrong key, a missing model). `fit` is where a role
learns from the training log before its first item; a role that has nothing to learn returns at
once. Whatever is learnt must depend on nothing but the arguments.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from pydantic import BaseModel, ConfigDict

from pollex.conversations.conversation import Conversation
from pollex.errors import PollexError
from pollex.gateway.redaction import redact_secrets
from pollex.rubrics.answers import Answer, NoAnswerOutcome, Question, Unanswered
from pollex.rubrics.rubric import Polarity, Reason, Rubric


@dataclass(frozen=True)
class Roles:
    """The agents that work in a run.

    Attributes:
        updater: Agent that writes the rubrics, in place of summarizer and deduplicator, when SPUR
            is used.
        further: Agents of steps beside these, by the name of their role, such as the `rewriter` that
            finds better words for rubrics that are hard to judge; see `agents.llm.further`.
    """

    extractor: Extractor
    summarizer: Summarizer
    deduplicator: Deduplicator
    judge: Judge
    updater: Updater | None = None
    further: Mapping[str, Any] = field(default_factory=dict)

    @property
    def names(self) -> dict[str, str]:
        """Names of the agents, by role."""
        return {role: agent.name for role, agent in self._working.items()}

    @property
    def fingerprints(self) -> dict[str, str]:
        """Fingerprints of the agents, by role, before a judge studies, which changes its own."""
        return {role: agent.fingerprint for role, agent in self._working.items()}

    @property
    def _working(self) -> dict[str, Agent]:
        if self.updater is not None:
            return {
                "extractor": self.extractor,
                "updater": self.updater,
                "judge": self.judge,
            }

        return {
            "extractor": self.extractor,
            "summarizer": self.summarizer,
            "deduplicator": self.deduplicator,
            "judge": self.judge,
            **self.further,
        }


class Extraction(BaseModel):
    """Reasons that an extractor found in one labeled conversation.

    Attributes:
        summary: What happened, with the decisive moment.
        reasons: At most three, each with at least one quote that is in the conversation.
        dropped: Reasons that were dropped.
        unquoted: Of these, the ones with no quote that is in the conversation.
    """

    model_config = ConfigDict(frozen=True)

    conversation_id: str
    summary: str
    reasons: tuple[Reason, ...]
    dropped: int = 0
    unquoted: int = 0


class Summary(BaseModel):
    """Rubrics and support that one batch of reasons adds to the pool.

    Attributes:
        rubrics: New ones.
        supported: Reasons of the batch that say what a known rubric says: the rubric's id, and the
            reasons.
        refused: How many texts were refused, by cause.
    """

    model_config = ConfigDict(frozen=True)

    rubrics: tuple[Rubric, ...]
    supported: dict[str, tuple[Reason, ...]] = {}
    refused: dict[str, int] = {}


class Deduplication(BaseModel):
    """The rubrics that stay, with the reasons of those merged into them.

    Attributes:
        merged: Id of each rubric that went, to the id of the one that it went into.
        mirrors: Pairs of a rubric and its reverse on the other side, by id: both are judged, and
            the better one stays.
    """

    model_config = ConfigDict(frozen=True)

    kept: tuple[Rubric, ...]
    merged: dict[str, str]
    mirrors: tuple[tuple[str, str], ...] = ()


class Rewording(BaseModel):
    """Rubrics in better words.

    Attributes:
        rubrics: All of them; some may have become two.
        reworded: Id of each rubric that has other words now, to its new id.
    """

    model_config = ConfigDict(frozen=True)

    rubrics: tuple[Rubric, ...]
    reworded: dict[str, str] = {}


class Revision(BaseModel):
    """A restricted set of rubrics after a batch of reasons.

    Attributes:
        refused: How many texts were refused, by cause.
    """

    model_config = ConfigDict(frozen=True)

    rubrics: tuple[Rubric, ...]
    refused: dict[str, int] = {}


class Agent(Protocol):
    """Properties that all roles have in common."""

    @property
    def name(self) -> str:
        """Display name of the agent: `built-in (no LLM)` or the model's name."""

    @property
    def fingerprint(self) -> str:
        """Hash of everything that its results depend on beside the arguments: version, model, prompts, settings."""


class Extractor(Agent, Protocol):
    """Finds why a labelled conversation was good or bad."""

    async def fit(self, training: Sequence[Conversation]) -> None:
        """Learn what distinguishes the classes of this log."""

    async def extract(self, conversation: Conversation) -> Extraction | Unanswered:
        """Extract at most three reasons: `sat` for a positive conversation, `dsat` for a negative one."""


class ContrastingPair(BaseModel):
    """Summaries of two conversations that are much alike and were rated differently."""

    model_config = ConfigDict(frozen=True)

    satisfied: str
    dissatisfied: str


class Summarizer(Agent, Protocol):
    """Turns reasons into rubrics."""

    async def summarize(
        self,
        reasons: Sequence[Reason],
        pool: Sequence[Rubric],
        polarity: Polarity,
        pairs: Sequence[ContrastingPair] = (),
        *,
        few: bool = False,
    ) -> Summary | Unanswered:
        """Write new rubrics from a batch of reasons of one polarity.

        Args:
            pool: Rubrics so far, those of the other polarity, too.
            pairs: Shown so that rubrics say what separates.
            few: Whether the log gives so few reasons that a single one may make a rubric.
        """


class Deduplicator(Agent, Protocol):
    """Removes rubrics that say the same thing."""

    async def deduplicate(self, rubrics: Sequence[Rubric]) -> Deduplication:
        """Merge rubrics that say the same, and pair those that say the reverse of one of the other polarity."""


class Rewriter(Agent, Protocol):
    """Finds better words for rubrics that are hard to judge."""

    async def reword(self, rubrics: Sequence[Rubric]) -> Rewording:
        """Return the rubrics, marked ones in better words where there are any."""


class Updater(Agent, Protocol):
    """Keeps one set of rubrics of limited size up to date, for SPUR."""

    async def update(
        self,
        reasons: Sequence[Reason],
        current: Sequence[Rubric],
        polarity: Polarity,
        most: int,
    ) -> Revision | Unanswered:
        """Revise the set by a batch of reasons of one polarity.

        The new set has at most `most` rubrics; none of the old ones has to stay.
        """


class Judge(Agent, Protocol):
    """Answers questions about conversations. Those that learn and prepare nothing inherit that."""

    async def fit(self, training: Sequence[Conversation], rubrics: Sequence[Rubric]) -> None:  # noqa: ARG002
        """Learn the scale on which the rubrics are answered."""
        return  # a body: what has none is abstract

    def understood(self, rubric: Rubric) -> Rubric:
        """Return the rubric as this judge asks it; one in a person's own words may need evidence for them."""
        return rubric

    async def prepare(self, conversations: Sequence[Conversation]) -> None:  # noqa: ARG002
        """Prepare for the conversations to come, such as by embedding them in one batch."""
        return

    @property
    def learned(self) -> Mapping[str, Any]:
        """State that `fit` learned, as JSON values for the rubric set; may be empty."""
        return {}

    async def judge(
        self, conversation: Conversation, questions: Sequence[Question]
    ) -> list[Answer | Unanswered]:
        """Answer each question, in the questions' order."""


def list_fingerprints_for_questions(judge: Judge, questions: Sequence[Question]) -> list[str]:
    """Return the fingerprint of who answers each question: a judge may divide them among several."""
    fingerprint_for = getattr(
        judge,
        "fingerprint_for",
        lambda _question: judge.fingerprint,
    )
    return [fingerprint_for(question) for question in questions]


def make_unanswered_for_all(
    questions: Sequence[Question],
    outcome: NoAnswerOutcome,
    detail: str,
    judge: str,
) -> list[Answer | Unanswered]:
    """Return questions that have no answer for one and the same reason."""
    answers: list[Answer | Unanswered] = []
    for question in questions:
        answers.append(
            Unanswered(
                question_id=question.id,
                outcome=outcome,
                detail=detail,
                judge=judge,
            )
        )

    return answers


MAX_EXCEPTION_DETAIL_CHARS = 300
DISTRIBUTION_SUM_TOLERANCE = 1e-6


async def ask_both_sides(
    judge: Judge,
    conversation: Conversation,
    questions: Sequence[Question],
) -> list[Answer | Unanswered]:
    """SAT and DSAT rubrics asked side by side, as in the graphs, and nothing kept."""
    answers_by_side = await asyncio.gather(
        *(answer_each_question(judge, conversation, side) for side in split_by_polarity(questions))
    )
    answers: list[Answer | Unanswered] = []
    for side in answers_by_side:
        answers.extend(side)

    return answers


async def answer_each_question(
    judge: Judge,
    conversation: Conversation,
    questions: Sequence[Question],
    secrets: Collection[str] = (),
    *,
    trusted: bool = False,
) -> list[Answer | Unanswered]:
    """Return one answer for each question; invalid answers, but a trusted judge's, and exceptions become failures."""
    # what stops all work is raised; any other exception fails these questions alone
    try:
        answers = await judge.judge(conversation, questions)
    except PollexError:
        raise
    except Exception as error:
        return [
            make_unanswered(judge, question, describe_exception(error, secrets))
            for question in questions
        ]

    # only judges that come from elsewhere are checked
    if trusted:
        return list(answers)
    if wrong := name_wrong_answer_types(answers):
        malformed: list[Answer | Unanswered] = []
        for question in questions:
            malformed.append(
                make_unanswered(judge, question, f"Malformed: {wrong} in place of answers")
            )
        return malformed

    # an answer without an id is to the question in its place
    if len(answers) != len(questions) or any(
        answer.question_id not in ("", question.id)
        for answer, question in zip(answers, questions, strict=True)
    ):
        detail = f"Mismatch: {len(answers)} answers that are not to the {len(questions)} questions"
        return [make_unanswered(judge, question, detail) for question in questions]

    checked = []
    for question, answer in zip(questions, answers, strict=True):
        checked.append(check_answer(judge, question, answer))
    return checked


def name_wrong_answer_types(answers: object) -> str:
    """Return the names of wrong types in a custom judge's answers; empty if none."""
    if not isinstance(answers, Sequence):
        return type(answers).__name__

    type_names = set()
    for answer in answers:
        if not isinstance(answer, Answer | Unanswered):
            type_names.add(type(answer).__name__)
    return ", ".join(sorted(type_names))


def check_answer(
    judge: Judge,
    question: Question,
    answer: Answer | Unanswered,
) -> Answer | Unanswered:
    """Return the answer under its question's id, or a failure if its distribution is invalid."""
    if isinstance(answer, Answer) and not is_valid_distribution(answer, question):
        return make_unanswered(
            judge,
            question,
            "Malformed: not a distribution over the question's options",
        )
    if answer.question_id:
        return answer
    return answer.model_copy(update={"question_id": question.id})


def is_valid_distribution(answer: Answer, question: Question) -> bool:
    """Return whether probabilities and choice fit the options.

    NetSAT divides by the mass, so it must be positive.
    """
    p = answer.probabilities
    options = len(question.options)
    # no mass at all is right only where the occasion may never come up
    if len(p) != options or answer.never_came_up:
        return question.may_never and len(p) == options and sum(p) == 0
    # which a NaN or infinity isn't
    return (
        0 <= answer.chosen < options
        and 0 < sum(p) <= 1 + DISTRIBUTION_SUM_TOLERANCE
        and min(p) >= 0
    )


def make_unanswered(judge: Judge, question: Question, detail: str) -> Unanswered:
    """Return a failure to get an answer."""
    return Unanswered(
        question_id=question.id,
        outcome="error",
        detail=detail,
        judge=judge.name,
    )


def describe_exception(error: Exception, secrets: Collection[str]) -> str:
    """Describe an exception by its type and message, with keys removed."""
    # keys are removed before the cut, which might leave a part of one
    words = redact_secrets(str(error), secrets)[:MAX_EXCEPTION_DETAIL_CHARS]
    if words:
        return f"{type(error).__name__}: {words}"
    return type(error).__name__


def split_by_polarity(questions: Sequence[Question]) -> list[list[Question]]:
    """Split questions into those about SAT and about DSAT rubrics; omit an empty side."""
    # a question about no rubric is on neither side
    kinds = []
    for kind in ("sat", "dsat"):
        kinds.append([q for q in questions if q.rubric and q.rubric.polarity == kind])
    return [side for side in kinds if side]
