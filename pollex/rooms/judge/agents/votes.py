"""Votes of independent runs, of one judge or of a panel, and the verdict that they come to.

Diversity entropy DE(A) = −Σ_a p_a ln p_a, p_a the share of the runs that answered a. The rating is
the mode of the answers where they agree enough, else NONE; a tie of the mode is NONE.

Source: Goldman, Vasilevski 2024, "RoboRater: Automating Ratings of Task-Oriented Conversations
using LLMs", AAAI Spring Symposium.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from math import comb, inf, log
from typing import Literal, Protocol

from pydantic import BaseModel, ConfigDict

from pollex.agents.llm.sampling import make_point_distribution
from pollex.agents.roles import Judge, make_unanswered
from pollex.conversations.conversation import Conversation
from pollex.errors import PollexError, WrongUse
from pollex.rubrics.answers import Answer, Option, Question, Unanswered
from pollex.rubrics.rubric import make_content_id
from pollex.text import JsonDict, JsonObject

DEFAULT_RUNS = 7
ENTROPY_TOLERANCE = 1e-9

MAX_VOTE_STATES = 20_000
"""Beyond so many states of the votes, no early stop is looked for: that would take longer than it saves."""

Vote = Answer | Unanswered
Votes = list[Vote]
NoRatingReason = Literal["", "too_few_runs", "tie", "disagreement"]


@dataclass(frozen=True)
class RatingRule:
    """The rule that decides when the mode of the votes is a rating.

    Attributes:
        runs: n.
        minimum: Fewest runs that must have answered.
        tau: Highest diversity entropy of those that answered that passes; None lets nothing pass,
            as where no τ reaches the precision that is wanted.
    """

    runs: int
    minimum: int
    tau: float | None

    def __post_init__(self) -> None:
        if self.runs < 1 or not 1 <= self.minimum <= self.runs:
            raise WrongUse(
                f"{self.runs} runs of which {self.minimum} must have answered",
                hint="ask for at least one run, and for no more answers than runs",
            )
        if self.tau is not None and not 0 <= self.tau < inf:
            hint = "entropy is never negative, and never above the logarithm of the runs: give a τ from 0 on"
            raise WrongUse(f"τ = {self.tau}", hint=hint)

    @classmethod
    def of(
        cls, runs: int = DEFAULT_RUNS, *, minimum: int | None = None, tau: float | None = None
    ) -> RatingRule:
        """Return the default rule: more than half must answer; by default n − 1 agree."""
        return cls(
            runs,
            runs // 2 + 1 if minimum is None else minimum,
            compute_tau_of_all_but_one(runs) if tau is None else tau,
        )

    def refusal(self, votes: Sequence[int], left: int = 0) -> NoRatingReason:
        """Return why votes [option] give no rating; empty if they do.

        Args:
            left: Runs that were spared: they might have answered, and would have changed nothing.
        """
        # runs are spared where no vote could change the result: only its reason is to be told
        if left and self.chosen(votes) is None:
            if sum(votes) + left < self.minimum:
                return "too_few_runs"
            return "disagreement"
        if sum(votes) < self.minimum:
            return "too_few_runs"
        if find_mode(votes) is None:
            return "tie"

        # τ is an entropy, too: equal ones may differ in their last digits
        agreed = (
            self.tau is not None
            and compute_diversity_entropy(votes) <= self.tau + ENTROPY_TOLERANCE
        )
        return "" if agreed else "disagreement"

    def chosen(self, votes: Sequence[int]) -> int | None:
        """Return the index of the option that votes [option] decide for; None for NONE."""
        if self.refusal(votes):
            return None
        return find_mode(votes)

    def passes_all(self, options: int) -> bool:
        """Tell whether the votes of all runs always give a rating; of three options or more they may tie."""
        return options == 2 and not any(
            self.refusal((votes, self.runs - votes)) for votes in range(self.runs + 1)
        )

    def in_words(self) -> str:
        """Describe the rule in words."""
        if self.tau is None:
            return "nothing passes"

        usual = self.runs > 1 and self.tau == compute_tau_of_all_but_one(self.runs)
        return f"DE ≤ {self.tau:.4f}" + (
            f", as where {self.runs - 1} of {self.runs} runs agree" if usual else ""
        )


def compute_tau_of_all_but_one(runs: int) -> float:
    """Return the τ at which n − 1 of n runs must agree.

    If some runs failed, all that answered must agree.
    """
    if runs > 1:
        return compute_diversity_entropy([runs - 1, 1])
    return 0.0


def compute_diversity_entropy(votes: Sequence[int]) -> float:
    """DE in nats of votes [option], at least one of them given; see the module."""
    total = sum(votes)
    return -sum(count / total * log(count / total) for count in votes if count) + 0.0


def find_mode(votes: Sequence[int]) -> int | None:
    """Return the index of the option with the most votes; None for ties."""
    most = max(votes)
    if most and votes.count(most) == 1:
        return votes.index(most)
    return None


class Verdict(BaseModel):
    """The outcome of an ensemble: a rating, or NONE with the reason.

    Attributes:
        rating: Text of the option; None for NONE.
        reason: Why there is no rating; empty where there is one.
        options: Texts of all options.
        votes: Runs that chose each option, [option].
        runs: How many runs were asked.
        planned: n; more than `runs` where the verdict was certain before.
        failures: Runs without an answer, by outcome. None of them is a vote.
        words: By option, the words of the first run that chose it and gave any.
        person: What a person answered, if one was asked.
        scorable: False if no judge could be asked.
    """

    model_config = ConfigDict(frozen=True)

    conversation_id: str
    question_id: str
    rating: str | None
    reason: NoRatingReason
    options: tuple[str, ...]
    votes: tuple[int, ...]
    runs: int
    planned: int
    failures: dict[str, int] = {}
    words: dict[str, str] = {}
    person: str | None = None
    scorable: bool = True

    @property
    def final(self) -> str | None:
        """The person's rating, or the ensemble's; None for NONE."""
        return self.person or self.rating

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
        if self.answered:
            return compute_diversity_entropy(self.votes)
        return None

    @property
    def agreement(self) -> float | None:
        """Share of the answers that are the most frequent one; None where no run answered."""
        if self.answered:
            return max(self.votes) / self.answered
        return None

    @property
    def distribution(self) -> tuple[float, ...] | None:
        """Share of the answers for each option; None where no run answered."""
        if self.answered:
            return tuple(count / self.answered for count in self.votes)
        return None


def decide_verdict(
    conversation_id: str,
    question: Question,
    votes: Sequence[Answer | Unanswered],
    rule: RatingRule,
    person: str | None = None,
) -> Verdict:
    """Decide the verdict of one question's votes under a rule."""
    # [option]: how many runs chose it
    options = [option.text for option in question.options]
    counts = count_votes(votes, len(options))
    chosen = rule.chosen(counts)
    # backwards, so that the first run's reason for an option stays
    words = {}
    for vote in reversed(votes):
        if isinstance(vote, Answer) and vote.justification:
            words[options[vote.chosen]] = vote.justification

    return Verdict(
        conversation_id=conversation_id,
        question_id=question.id,
        rating=None if chosen is None else options[chosen],
        # runs of the plan that have no vote were spared by early stopping
        reason=rule.refusal(counts, rule.runs - len(votes)),
        options=tuple(options),
        votes=counts,
        runs=len(votes),
        planned=rule.runs,
        failures=dict(Counter(vote.outcome for vote in votes if isinstance(vote, Unanswered))),
        words=words,
        person=person,
        scorable=is_scorable(votes),
    )


def is_scorable(votes: Sequence[Answer | Unanswered]) -> bool:
    """Return whether a judge could be asked."""
    return not any(
        isinstance(vote, Unanswered) and vote.outcome == "not_scorable" for vote in votes
    )


def count_votes(votes: Sequence[Answer | Unanswered], options: int) -> tuple[int, ...]:
    """Count the runs that chose each option, [option]."""
    counts = Counter(vote.chosen for vote in votes if isinstance(vote, Answer))
    return tuple(counts[option] for option in range(options))


@lru_cache(maxsize=1 << 16)
def is_settled(votes: tuple[int, ...], left: int, rule: RatingRule) -> bool:
    """Return whether the remaining runs can no longer change the verdict, even by failing."""
    if left == 0:
        return True

    after = [votes, *list_votes_after_one(votes)]
    # Where each is settled, what it comes to is also what it comes to if no further run answers.
    return (
        all(is_settled(next_votes, left - 1, rule) for next_votes in after)
        and len({rule.chosen(next_votes) for next_votes in after}) == 1
    )


def list_votes_after_one(votes: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Return the votes after one more answer, for each option that it may choose."""
    rows: list[tuple[int, ...]] = []
    for i in range(len(votes)):
        rows.append((*votes[:i], votes[i] + 1, *votes[i + 1 :]))
    return rows


@lru_cache(maxsize=1 << 16)
def count_fewest_runs_to_settle(votes: tuple[int, ...], left: int, rule: RatingRule) -> int:
    """Return the fewest further runs that could settle the verdict; these may run in parallel."""
    if is_settled(votes, left, rule):
        return 0
    return 1 + min(
        count_fewest_runs_to_settle(next_votes, left - 1, rule)
        for next_votes in [votes, *list_votes_after_one(votes)]
    )


def count_next_runs(votes: tuple[int, ...], left: int, rule: RatingRule) -> int:
    """Return the number of runs to ask next; 0 if the verdict is settled."""
    states = comb(left + len(votes) + 1, len(votes) + 1)
    if states <= MAX_VOTE_STATES:
        return count_fewest_runs_to_settle(votes, left, rule)
    return left


PERSON_RUN_NAME = "person"


@dataclass(frozen=True)
class RatingTask:
    """A question, and the rule that accepts its answers.

    Attributes:
        precision: Precision that τ is fitted to on the thumbs; the question then has two options,
            the first for a thumb up.
        by: Who is asked, for people.
    """

    question: Question
    rule: RatingRule
    precision: float | None = None
    by: str = ""

    def __post_init__(self) -> None:
        if self.precision is None:
            return
        if not 0 < self.precision <= 1:
            raise WrongUse(
                f"a precision of {self.precision}",
                hint="give a share above 0 and up to 1",
            )

        # precision is measured on thumbs, which are up or down
        if len(self.question.options) != 2:
            hint = "give two options, the first for a thumb up, or give τ by value"
            raise WrongUse(
                f"thumbs can't be compared with {len(self.question.options)} options",
                hint=hint,
            )

    @property
    def in_words(self) -> str:
        """Description of the rule, for a message about a refused resume."""
        if self.precision is None:
            tau = self.rule.in_words()
        else:
            tau = f"τ for a precision of {self.precision}"

        return f"{tau}; {self.rule.minimum} of {self.rule.runs} runs must have answered"

    @property
    def as_json(self) -> JsonDict:
        """Task as stored with the run."""
        question = self.question.model_dump(mode="json")
        return {
            "question": question,
            "rule": asdict(self.rule),
            "precision": self.precision,
            "by": self.by,
        }

    @classmethod
    def from_json(cls, stored: JsonObject) -> RatingTask:
        return cls(
            Question.model_validate(stored["question"]),
            RatingRule(**stored["rule"]),
            stored["precision"],
            stored["by"],
        )


def make_question(text: str, options: Sequence[str]) -> Question:
    """Make a question with these options; the first has the highest value."""
    worth = []
    for i, option in enumerate(options):
        worth.append(Option(text=option, value=float(len(options) - 1 - i)))

    return Question(
        id=make_content_id("question", text, *options),
        text=text,
        options=tuple(worth),
    )


@dataclass
class VoteTally:
    """The votes on one conversation.

    Attributes:
        votes: Runs that chose each option, [option].
        asked: Runs that were asked.
        scorable: False if no judge could be asked.
    """

    votes: tuple[int, ...]
    asked: int
    scorable: bool = True

    @classmethod
    def of(cls, votes: Sequence[Answer | Unanswered], options: int) -> VoteTally:
        """Count the votes in answers."""
        return cls(
            count_votes(votes, options),
            len(votes),
            is_scorable(votes),
        )


def make_run_question(question: Question, number: int) -> Question:
    """Return the question under the id of one run: with its number, from 1."""
    return question.model_copy(update={"id": f"{question.id}#{number + 1}"})


def make_person_question(question: Question) -> Question:
    """Return the question under the id of a person's answer."""
    return question.model_copy(update={"id": f"{question.id}#{PERSON_RUN_NAME}"})


def make_person_answer(question: Question, chosen: int) -> Answer:
    """Return a person's answer as stored."""
    mass = make_point_distribution(chosen, len(question.options))
    id_ = make_person_question(question).id
    return Answer(
        question_id=id_,
        probabilities=mass,
        chosen=chosen,
        source="recorded",
        judge=PERSON_RUN_NAME,
    )


class RepeatableJudge(Judge, Protocol):
    """A judge that can be asked again with its chance drawn anew."""

    def again(self, replicate: int) -> Judge:
        """Return this judge for one independent run, numbered from 0."""


class JudgeEnsemble:
    """Asks one judge, or a panel in turn, in n independent runs.

    Run i is asked of judge i mod k, each time as another of its replicates; a judge that stands in
    the panel twice has twice the runs. Which runs fail is told; a failed run is never a vote.

    Args:
        judges: One, or a panel of several.
        rule: When the mode is a rating; `Rule.of(n)` if left out.
        stop_early: Ask no more runs once the verdict can no longer change. Entropy and distribution
            then rest on fewer runs, and are not to be compared between conversations.
    """

    def __init__(
        self,
        *judges: RepeatableJudge,
        n: int = DEFAULT_RUNS,
        rule: RatingRule | None = None,
        stop_early: bool = False,
    ) -> None:
        if not judges:
            raise WrongUse("an ensemble without a judge", hint="give at least one")

        self.judges = judges
        self.rule = rule or RatingRule.of(n)
        self.stop_early = stop_early

    @property
    def n(self) -> int:
        """Runs that are planned for a question."""
        return self.rule.runs

    @property
    def name(self) -> str:
        """Number of runs, and the names of the judges."""
        return f"{self.n} runs of {', '.join(judge.name for judge in self.judges)}"

    @property
    def drawn_from(self) -> str:
        """Fingerprint of the judges alone, on which single runs depend."""
        return make_content_id(*(judge.fingerprint for judge in self.judges))

    async def prepare(self, conversations: Sequence[Conversation]) -> None:
        """Let every judge prepare."""
        for judge in self.judges:
            await judge.prepare(conversations)

    async def votes(
        self,
        conversation: Conversation,
        question: Question,
        known_votes: Mapping[int, Vote] | None = None,
    ) -> Votes:
        """Ask the runs and return their answers in order.

        Args:
            known_votes: Runs that were asked before, by number from 0.
        """
        # as many runs at once as could still matter; votes stay in the order of runs
        votes: Votes = []
        while size := self._next(question, votes):
            numbers = range(len(votes), len(votes) + size)
            votes += await asyncio.gather(
                *(
                    self._run(conversation, question, number, (known_votes or {}).get(number))
                    for number in numbers
                )
            )

        return votes

    def _next(self, question: Question, votes: Votes) -> int:
        left = self.n - len(votes)
        if self.stop_early:
            return count_next_runs(
                count_votes(votes, len(question.options)),
                left,
                self.rule,
            )

        return left

    async def _run(
        self,
        conversation: Conversation,
        question: Question,
        number: int,
        known_vote: Vote | None,
    ) -> Vote:
        """Ask one run; one that raises, or names no option, counts as failed, without stopping the others."""
        if known_vote is not None:
            return known_vote

        # a panel takes turns: run n is asked of judge n modulo their number
        judge = self.judges[number % len(self.judges)].again(self._replicate(number))
        try:
            answers = await judge.judge(conversation, [question])
        # faults that a user has to mend end the run, all others count as a failed vote
        except PollexError:
            raise
        except Exception as error:
            return make_unanswered(
                judge,
                question,
                f"{type(error).__name__} in run {number + 1}",
            )

        if len(answers) != 1:
            return make_unanswered(
                judge,
                question,
                f"Mismatch: {len(answers)} answers to 1 questions in run {number + 1}",
            )

        # a judge outside the project may return any number
        answer = answers[0]
        if isinstance(answer, Answer) and not 0 <= answer.chosen < len(question.options):
            return make_unanswered(
                judge,
                question,
                "Malformed: not one of the question's options",
            )
        # a judge may leave out the id when there is one question
        if answer.question_id:
            return answer
        return answer.model_copy(update={"question_id": question.id})

    def _replicate(self, number: int) -> int:
        """Return the replicate number of a run; runs of identical judges never share a number."""
        turn, place = divmod(number, len(self.judges))
        fingerprints = [judge.fingerprint for judge in self.judges]
        same = []
        for i, fingerprint in enumerate(fingerprints):
            if fingerprint == fingerprints[place]:
                same.append(i)

        return turn * len(same) + same.index(place)
