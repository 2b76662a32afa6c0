"""Ensembles: votes, entropy, the rule, early stops and runs that fail."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import product
from math import log
from typing import Any

import pytest
from scripted import TALK

from pollex.agents.llm.sampling import make_point_distribution
from pollex.agents.roles import Judge
from pollex.conversations.conversation import Conversation
from pollex.errors import ModelRefused, WrongUse
from pollex.rooms.judge.agents.votes import (
    JudgeEnsemble,
    RatingRule,
    Verdict,
    compute_diversity_entropy,
    decide_verdict,
    find_mode,
)
from pollex.rubrics.answers import Answer, NoAnswerOutcome, Option, Question, Unanswered

YES = "yes"
NO = "no"
LOST = ""
QUESTION = Question(
    id="q",
    text="Was the task completed?",
    options=(Option(text=YES, value=1), Option(text=NO, value=0)),
)
THREE = QUESTION.model_copy(
    update={"options": (*QUESTION.options, Option(text="partly", value=0.5))}
)
REFUSED = ModelRefused("no credit")


def vote(
    text: str, question: Question = QUESTION, outcome: NoAnswerOutcome = "error"
) -> Answer | Unanswered:
    if text == LOST:
        return Unanswered(question_id=question.id, outcome=outcome, detail="timeout", judge="one")
    options = [option.text for option in question.options]
    chosen = options.index(text)
    words = f"because {text}"
    mass = make_point_distribution(chosen, len(options))
    return Answer(
        question_id=question.id,
        probabilities=mass,
        chosen=chosen,
        source="point",
        justification=words,
    )


def votes(*texts: str, question: Question = QUESTION) -> list[Answer | Unanswered]:
    return [vote(text, question) for text in texts]


@dataclass
class Many(Judge):
    """A judge whose runs answer as told.

    Attributes:
        says: Each run's answers; an error is raised.
        asked: Numbers of the runs that were asked.
    """

    says: Sequence[str | Exception]
    name: str = "many"
    asked: list[int] = field(default_factory=list)
    replicate: int = 0

    @property
    def fingerprint(self) -> str:
        return f"{self.name}-1"

    def again(self, replicate: int) -> Many:
        return Many(self.says, self.name, self.asked, replicate)

    async def judge(
        self, conversation: Conversation, questions: Sequence[Question]
    ) -> list[Answer | Unanswered]:
        self.asked.append(self.replicate)
        said = self.says[self.replicate]
        if isinstance(said, Exception):
            raise said
        return [vote(said, question) for question in questions]


async def decided(ensemble: JudgeEnsemble, question: Question) -> Verdict:
    return decide_verdict(TALK.id, question, await ensemble.votes(TALK, question), ensemble.rule)


async def test_failed_runs_are_no_votes_and_the_verdict_says_with_how_many_it_decided() -> None:
    judge = Many([YES, LOST, YES, LOST, YES, YES, LOST])
    found = await decided(JudgeEnsemble(judge, rule=RatingRule.of(7, tau=0.0)), QUESTION)
    assert (found.rating, found.answered, found.runs, found.failures) == (YES, 4, 7, {"error": 3})
    assert (found.distribution, found.entropy, found.agreement) == ((1.0, 0.0), 0.0, 1.0)
    few = await decided(
        JudgeEnsemble(
            Many([YES, LOST, YES, LOST, YES, LOST, LOST]), rule=RatingRule.of(7, tau=0.7)
        ),
        QUESTION,
    )
    assert (few.rating, few.reason, few.answered) == (None, "too_few_runs", 3), "however they agree"
    none = await decided(JudgeEnsemble(Many([LOST] * 7)), QUESTION)
    assert (none.entropy, none.agreement, none.distribution, none.reason) == (
        None,
        None,
        None,
        "too_few_runs",
    )


async def test_a_run_that_raises_or_answers_what_was_not_asked_fails_alone() -> None:
    class Odd(Many):
        def again(self, replicate: int) -> Many:
            return Odd(self.says, self.name, self.asked, replicate)

        async def judge(
            self, conversation: Conversation, questions: Sequence[Question]
        ) -> list[Answer | Unanswered]:
            found = await super().judge(conversation, questions)
            if self.replicate == 1:
                return []
            if self.replicate == 2:
                return [Answer(question_id="q", probabilities=(0, 0, 1), chosen=2, source="point")]
            return found

    judge = Odd([ValueError("secret words"), YES, YES, YES, YES, YES, YES])
    found = await JudgeEnsemble(judge).votes(TALK, QUESTION)
    failed = [one for one in found if isinstance(one, Unanswered)]
    assert [one.detail for one in failed] == [
        "ValueError in run 1",
        "Mismatch: 0 answers to 1 questions in run 2",
        "Malformed: not one of the question's options",
    ]
    with pytest.raises(ModelRefused):
        await JudgeEnsemble(Many([REFUSED] * 7)).votes(TALK, QUESTION)
    with pytest.raises(WrongUse):
        JudgeEnsemble()


def test_entropy_is_that_worked_by_hand() -> None:
    assert compute_diversity_entropy([7, 0]) == 0.0
    assert compute_diversity_entropy([6, 1]) == pytest.approx(6 / 7 * log(7 / 6) + 1 / 7 * log(7))
    assert compute_diversity_entropy([6, 1]) == pytest.approx(0.410116, abs=1e-6)
    assert compute_diversity_entropy([5, 2]) == pytest.approx(0.598270, abs=1e-6)
    assert compute_diversity_entropy([1, 1, 1]) == pytest.approx(log(3))


@pytest.mark.parametrize(
    ("counts", "tau", "reason"),
    [
        ((7, 0), None, ""),
        ((1, 6), None, ""),
        ((5, 2), None, "disagreement"),
        ((5, 0), None, ""),  # two runs failed: those that answered must all agree
        ((5, 1), None, "disagreement"),
        ((5, 2), 0.5983, ""),
        ((5, 2), 0.5982, "disagreement"),
        ((3, 3), 0.7, "tie"),
        ((2, 1), 0.7, "too_few_runs"),
        ((0, 0), 0.7, "too_few_runs"),
    ],
)
def test_the_mode_is_a_rating_where_the_rule_lets_it_pass(
    counts: tuple[int, ...], tau: float | None, reason: str
) -> None:
    rule = RatingRule.of(7, tau=tau)
    assert rule.refusal(counts) == reason
    assert (rule.chosen(counts) is None) == bool(reason)


def test_without_a_tau_at_least_all_but_one_of_the_runs_must_agree() -> None:
    for n, yes in ((runs, some) for runs in range(2, 12) for some in range(runs + 1)):
        counts = (yes, n - yes)
        assert (RatingRule.of(n).chosen(counts) is not None) == (
            max(counts) >= n - 1 and yes != n - yes
        )
    assert RatingRule.of(1).chosen((0, 1)) == 1
    nothing = RatingRule(7, 4, None)
    assert (nothing.refusal((7, 0)), nothing.in_words()) == ("disagreement", "nothing passes")


def test_a_rule_that_everything_passes_is_known() -> None:
    for rule, options, all_pass in (
        (RatingRule.of(3), 2, True),  # 2:1 agrees
        (RatingRule.of(3), 3, False),  # 1:1:1 is a tie
        (RatingRule.of(4), 2, False),  # 2:2 is one
        (RatingRule.of(5), 2, False),  # 3:2 disagrees
        (RatingRule.of(5, tau=0.68), 2, True),
        (RatingRule.of(1), 2, True),
    ):
        assert rule.passes_all(options) is all_pass, (rule, options)


def test_ties_of_the_mode_are_none() -> None:
    assert find_mode([3, 3, 1]) is None
    assert find_mode([0, 0]) is None
    assert find_mode([2, 3, 1]) == 1
    found = decide_verdict(
        "c", THREE, votes(YES, YES, NO, NO, "partly", question=THREE), RatingRule.of(5, tau=2.0)
    )
    assert (found.rating, found.reason, found.votes) == (None, "tie", (2, 2, 1))
    found = decide_verdict("c", QUESTION, [*votes(NO, YES, LOST), vote(YES)], RatingRule.of(4))
    assert found.words == {YES: "because yes", NO: "because no"}, "of the first run for each option"


async def test_every_run_is_another_replicate_and_a_panel_takes_turns() -> None:
    one = Many([YES] * 4, "one")
    two = Many([NO] * 3, "two")
    found = await decided(JudgeEnsemble(one, two, n=7), QUESTION)
    assert (sorted(one.asked), sorted(two.asked)) == ([0, 1, 2, 3], [0, 1, 2])
    assert (found.votes, found.rating, found.reason) == ((4, 3), None, "disagreement")
    assert JudgeEnsemble(one, two).name == "7 runs of one, two"
    one = Many([YES] * 5, "one")
    two = Many([NO] * 2, "two")
    found = await decided(JudgeEnsemble(one, two, one, n=7), QUESTION)
    assert (sorted(one.asked), sorted(two.asked)) == ([0, 1, 2, 3, 4], [0, 1]), (
        "also for a judge that is there twice"
    )
    assert found.votes == (5, 2)


async def test_known_runs_are_not_asked_again() -> None:
    judge = Many([NO] * 7)
    found = await JudgeEnsemble(judge).votes(TALK, QUESTION, {0: vote(YES), 3: vote(YES)})
    assert judge.asked == [1, 2, 4, 5, 6]
    assert [one.chosen for one in found if isinstance(one, Answer)] == [0, 1, 1, 0, 1, 1, 1]


@pytest.mark.parametrize(("question", "n"), [(QUESTION, 5), (THREE, 4)])
@pytest.mark.parametrize("options", [{}, {"tau": 0.6}, {"minimum": 0}, {"minimum": 1, "tau": 1.0}])
async def test_stopping_early_never_changes_a_verdict_and_never_asks_what_could_not_change_it(
    options: dict[str, Any], question: Question, n: int
) -> None:
    rule = RatingRule.of(n, **(options if options.get("minimum", 1) else {"minimum": n}))
    texts = [option.text for option in question.options]
    saved = 0
    for course in product([*texts, LOST], repeat=n):
        judge = Many(course)
        whole = await decided(JudgeEnsemble(Many(course), rule=rule), question)
        early = await decided(JudgeEnsemble(judge, rule=rule, stop_early=True), question)
        assert early.rating == whole.rating
        assert (early.runs, early.saved) == (len(judge.asked), n - len(judge.asked))
        counts = [tuple(course[:asked].count(text) for text in texts) for asked in range(n + 1)]
        first = next(
            asked for asked in range(n + 1) if unchangeable(counts[asked], n - asked, rule)
        )
        assert early.runs == first
        saved += early.saved
    assert saved > 0 or rule.minimum == n


@lru_cache
def unchangeable(counts: tuple[int, ...], left: int, rule: RatingRule) -> bool:
    """By looking at all that may come, one option or failure after the other."""
    ends = set()
    for course in product(range(len(counts) + 1), repeat=left):
        more = [course.count(option) for option in range(len(counts))]
        ends.add(rule.chosen([a + b for a, b in zip(counts, more, strict=True)]))
    return len(ends) == 1
