"""Ensembles: one question asked in n independent runs, and the verdict that their votes come to.

Diversity entropy DE(A) = −Σ_a p_a ln p_a, p_a the share of the runs that answered a. The rating is the mode of the
answers where they agree enough, else NONE; a tie of the mode is NONE.

Source: Goldman, Vasilevski 2024, "RoboRater: Automating Ratings of Task-Oriented Conversations using LLMs", AAAI Spring
Symposium.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from math import comb, log
from typing import Any, Literal, Protocol

from pydantic import BaseModel, ConfigDict

from pollex.agents.answers import Answer, Question, Unanswered
from pollex.agents.roles import Judge
from pollex.agents.rubrics import Rubric, content_id
from pollex.conversations.model import Conversation
from pollex.errors import PollexError, WrongUse

VERSION = "1"
RUNS = 7
ROUNDING = 1e-9

MOST_STATES = 20_000
"""Beyond so many states of the votes, no early stop is looked for: that would take longer than it saves."""

Votes = list[Answer | Unanswered]
Reason = Literal["", "too_few_runs", "tie", "disagreement"]


class Repeatable(Judge, Protocol):
    """A judge that can be asked again with its chance drawn anew."""

    def again(self, replicate: int) -> Judge:
        """This judge as it answers in its run of that number, from 0: another number is another, independent run."""


@dataclass(frozen=True)
class Rule:
    """When the mode of the votes is a rating.

    Attributes:
        runs: n.
        minimum: Fewest runs that must have answered.
        tau: Highest diversity entropy of those that answered that passes; None lets nothing pass, as where no τ reaches
            the precision that is wanted.
    """

    runs: int
    minimum: int
    tau: float | None

    def __post_init__(self) -> None:
        if self.runs < 1 or not 1 <= self.minimum <= self.runs:
            raise WrongUse(
                f"{self.runs} runs of which {self.minimum} must have answered",
                remedy="ask for at least one run, and for no more answers than runs",
            )
        if self.tau is not None and not self.tau >= 0:
            raise WrongUse(f"τ = {self.tau}", remedy="entropy is never negative: give a τ from 0 on")

    @classmethod
    def of(cls, runs: int = RUNS, *, minimum: int | None = None, tau: float | None = None) -> Rule:
        """The usual one: more than half of the runs must have answered; without τ at least n − 1 of n must agree."""
        return cls(runs, runs // 2 + 1 if minimum is None else minimum, all_but_one(runs) if tau is None else tau)

    def refusal(self, votes: Sequence[int], left: int = 0) -> Reason:
        """Why votes [option] come to no rating; empty where they do.

        Args:
            left: Runs that were spared: they might have answered, and would have changed nothing.
        """
        if left and self.chosen(votes) is None:
            return "too_few_runs" if sum(votes) + left < self.minimum else "disagreement"
        if sum(votes) < self.minimum:
            return "too_few_runs"
        if mode(votes) is None:
            return "tie"
        agreed = self.tau is not None and diversity_entropy(votes) <= self.tau + ROUNDING
        return "" if agreed else "disagreement"

    def chosen(self, votes: Sequence[int]) -> int | None:
        """Index of the option that votes [option] come to; None for NONE."""
        return None if self.refusal(votes) else mode(votes)

    def in_words(self) -> str:
        """The rule for people."""
        if self.tau is None:
            return "nothing passes"
        usual = self.runs > 1 and self.tau == all_but_one(self.runs)
        return f"DE ≤ {self.tau:.4f}" + (f", as where {self.runs - 1} of {self.runs} runs agree" if usual else "")


def all_but_one(runs: int) -> float:
    """The τ that lets pass where at least n − 1 of n runs agree. Where runs failed it asks for all that answered."""
    return diversity_entropy([runs - 1, 1]) if runs > 1 else 0.0


def diversity_entropy(votes: Sequence[int]) -> float:
    """DE in nats of votes [option], at least one of them given; see the module."""
    total = sum(votes)
    return -sum(count / total * log(count / total) for count in votes if count) + 0.0


def mode(votes: Sequence[int]) -> int | None:
    """Index of the option with the most votes; None where two have as many, or none has any."""
    most = max(votes)
    return votes.index(most) if most and votes.count(most) == 1 else None


class Verdict(BaseModel):
    """What an ensemble came to: a rating, or NONE with the reason.

    Attributes:
        rating: Text of the option; None for NONE.
        reason: Why there is no rating; empty where there is one.
        options: Texts of all options.
        votes: Runs that chose each option, [option].
        runs: How many runs were asked.
        planned: n; more than `runs` where the verdict was certain before.
        failures: Runs without an answer, by outcome. None of them is a vote.
        words: By option, the words of the first run that chose it and gave any.
    """

    model_config = ConfigDict(frozen=True)

    conversation_id: str
    question_id: str
    rating: str | None
    reason: Reason
    options: tuple[str, ...]
    votes: tuple[int, ...]
    runs: int
    planned: int
    failures: dict[str, int] = {}
    words: dict[str, str] = {}

    @property
    def answered(self) -> int:
        """Runs that the verdict rests on."""
        return sum(self.votes)

    @property
    def saved(self) -> int:
        """Runs that were not needed."""
        return self.planned - self.runs

    @property
    def entropy(self) -> float | None:
        """DE of the runs that answered; None where none did."""
        return diversity_entropy(self.votes) if self.answered else None

    @property
    def agreement(self) -> float | None:
        """Share of the answers that are the most frequent one; None where no run answered."""
        return max(self.votes) / self.answered if self.answered else None

    @property
    def distribution(self) -> tuple[float, ...] | None:
        """Share of the answers for each option; None where no run answered."""
        return tuple(count / self.answered for count in self.votes) if self.answered else None


def verdict(conversation_id: str, question: Question, votes: Sequence[Answer | Unanswered], rule: Rule) -> Verdict:
    """What the votes of one question come to under a rule."""
    options = [option.text for option in question.options]
    counts = counted(votes, len(options))
    chosen = rule.chosen(counts)
    words = {
        options[vote.chosen]: vote.justification
        for vote in reversed(votes)
        if isinstance(vote, Answer) and vote.justification
    }
    return Verdict(
        conversation_id=conversation_id,
        question_id=question.id,
        rating=None if chosen is None else options[chosen],
        reason=rule.refusal(counts, rule.runs - len(votes)),
        options=tuple(options),
        votes=counts,
        runs=len(votes),
        planned=rule.runs,
        failures=dict(Counter(vote.outcome for vote in votes if isinstance(vote, Unanswered))),
        words=words,
    )


def counted(votes: Sequence[Answer | Unanswered], options: int) -> tuple[int, ...]:
    """How many runs chose each option, [option]."""
    found = Counter(vote.chosen for vote in votes if isinstance(vote, Answer))
    return tuple(found[option] for option in range(options))


@lru_cache(maxsize=1 << 16)
def settled(votes: tuple[int, ...], left: int, rule: Rule) -> bool:
    """Whether the verdict is the same whatever the runs that are left answer, or if they fail."""
    if left == 0:
        return True
    after = [votes, *more(votes)]
    # Where each is settled, what it comes to is also what it comes to if no further run answers.
    return all(settled(one, left - 1, rule) for one in after) and len({rule.chosen(one) for one in after}) == 1


def more(votes: tuple[int, ...]) -> list[tuple[int, ...]]:
    """The votes after one more answer, for each option that it may choose."""
    return [(*votes[:i], votes[i] + 1, *votes[i + 1 :]) for i in range(len(votes))]


@lru_cache(maxsize=1 << 16)
def soonest(votes: tuple[int, ...], left: int, rule: Rule) -> int:
    """How many more runs it takes at the least until the verdict is settled: so many may be asked side by side."""
    if settled(votes, left, rule):
        return 0
    return 1 + min(soonest(one, left - 1, rule) for one in [votes, *more(votes)])


def next_runs(votes: tuple[int, ...], left: int, rule: Rule) -> int:
    """How many runs to ask next; 0 where the verdict can no longer change."""
    states = comb(left + len(votes) + 1, len(votes) + 1)
    return soonest(votes, left, rule) if states <= MOST_STATES else left


class Ensemble:
    """A judge that asks one judge, or a panel in turn, in n independent runs.

    Run i is asked of judge i mod k as its replicate i div k. Which runs fail is told; a failed run is never a vote.

    Args:
        judges: One, or a panel of several.
        rule: When the mode is a rating; `Rule.of(n)` if left out.
        stop_early: Ask no more runs once the verdict can no longer change. Entropy and distribution then rest on fewer
            runs, and are not to be compared between conversations.
    """

    def __init__(self, *judges: Repeatable, n: int = RUNS, rule: Rule | None = None, stop_early: bool = False) -> None:
        if not judges:
            raise WrongUse("an ensemble of no judge", remedy="give at least one")
        self.judges, self.rule, self.stop_early = judges, rule or Rule.of(n), stop_early

    @property
    def n(self) -> int:
        """Runs that are planned for a question."""
        return self.rule.runs

    @property
    def name(self) -> str:
        """How many runs, and of whom."""
        return f"{self.n} runs of {', '.join(judge.name for judge in self.judges)}"

    @property
    def fingerprint(self) -> str:
        """Of the rule and all judges."""
        return content_id("ensemble", VERSION, str(self.stop_early), str(asdict(self.rule)), self.drawn_from)

    @property
    def drawn_from(self) -> str:
        """Of the judges alone: what single runs depend on."""
        return content_id(*(judge.fingerprint for judge in self.judges))

    @property
    def learned(self) -> Mapping[str, Any]:
        """What each judge learnt, by its place in the panel."""
        return {str(place): judge.learned for place, judge in enumerate(self.judges) if judge.learned}

    async def study(self, training: Sequence[Conversation], rubrics: Sequence[Rubric]) -> None:
        """Every judge studies."""
        for judge in self.judges:
            await judge.study(training, rubrics)

    def reworded(self, rubric: Rubric, written: str) -> Rubric:
        """As the first judge is to be asked."""
        return self.judges[0].reworded(rubric, written)

    async def prepare(self, conversations: Sequence[Conversation]) -> None:
        """Every judge prepares."""
        for judge in self.judges:
            await judge.prepare(conversations)

    async def judge(self, conversation: Conversation, questions: Sequence[Question]) -> Votes:
        """The share of the runs for each option where the rule lets the mode pass; else undecided, with the figures."""
        found = await self.votes(conversation, questions)
        return [self._answer(conversation, question, votes) for question, votes in zip(questions, found, strict=True)]

    async def verdicts(self, conversation: Conversation, questions: Sequence[Question]) -> list[Verdict]:
        """What the runs come to, one verdict a question."""
        found = await self.votes(conversation, questions)
        return [verdict(conversation.id, q, votes, self.rule) for q, votes in zip(questions, found, strict=True)]

    async def votes(
        self, conversation: Conversation, questions: Sequence[Question], known: Mapping[int, Votes] | None = None
    ) -> list[Votes]:
        """Each question's answers in the order of the runs.

        Args:
            known: Runs that were asked before, by number from 0: an answer a question.
        """
        asked: list[Votes] = []
        while size := self._next(questions, asked):
            numbers = range(len(asked), len(asked) + size)
            asked += await asyncio.gather(
                *(self._run(conversation, questions, number, (known or {}).get(number)) for number in numbers)
            )
        return [[answers[place] for answers in asked] for place in range(len(questions))]

    def _next(self, questions: Sequence[Question], asked: Sequence[Votes]) -> int:
        left = self.n - len(asked)
        if not self.stop_early:
            return left
        return max(
            next_runs(counted([answers[place] for answers in asked], len(question.options)), left, self.rule)
            for place, question in enumerate(questions)
        )

    async def _run(
        self, conversation: Conversation, questions: Sequence[Question], number: int, known: Votes | None
    ) -> Votes:
        """One run's answers; one that raises failed alone."""
        if known is not None:
            return known
        judge = self.judges[number % len(self.judges)].again(number // len(self.judges))
        try:
            answers = await judge.judge(conversation, questions)
        except PollexError:
            raise
        except Exception as error:
            detail = f"{type(error).__name__} in run {number + 1}"
            return [Unanswered(question_id=q.id, outcome="error", detail=detail, judge=judge.name) for q in questions]
        if len(answers) != len(questions):
            detail = f"Mismatch: {len(answers)} answers to {len(questions)} questions in run {number + 1}"
            return [Unanswered(question_id=q.id, outcome="error", detail=detail, judge=judge.name) for q in questions]
        return [_fitting(q, answer, judge.name) for q, answer in zip(questions, answers, strict=True)]

    def _answer(self, conversation: Conversation, question: Question, votes: Votes) -> Answer | Unanswered:
        found = verdict(conversation.id, question, votes, self.rule)
        if found.rating is None or found.distribution is None:
            detail = in_words(found)
            return Unanswered(question_id=question.id, outcome="undecided", detail=detail, judge=self.name)
        chosen = found.options.index(found.rating)
        first = next(vote for vote in votes if isinstance(vote, Answer) and vote.chosen == chosen)
        return first.model_copy(update={"probabilities": found.distribution, "source": "sampled", "judge": self.name})


def _fitting(question: Question, answer: Answer | Unanswered, judge: str) -> Answer | Unanswered:
    """The answer under its question's id; a failure where it names no option."""
    if isinstance(answer, Answer) and not 0 <= answer.chosen < len(question.options):
        detail = "Malformed: not one of the question's options"
        return Unanswered(question_id=question.id, outcome="error", detail=detail, judge=judge)
    return answer if answer.question_id else answer.model_copy(update={"question_id": question.id})


def in_words(found: Verdict) -> str:
    """A verdict for people: what the runs said, and with how many it was decided."""
    said = ", ".join(f"{count} {option}" for option, count in zip(found.options, found.votes, strict=True) if count)
    failed = f", {sum(found.failures.values())} failed" if found.failures else ""
    why = f"; {found.reason.replace('_', ' ')}" if found.reason else ""
    return f"{found.answered} of {found.planned} runs answered: {said or 'none'}{failed}{why}"
