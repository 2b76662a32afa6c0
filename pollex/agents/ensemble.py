"""Ensembles: questions asked in n independent runs, of one judge or of a panel."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Protocol

from pollex.agents.roles import Judge, no_answers
from pollex.agents.votes import RUNS, Rule, Verdict, Votes, counted, in_words, next_runs, verdict
from pollex.conversations.conversation import Conversation
from pollex.errors import PollexError, WrongUse
from pollex.rubrics.answers import Answer, Question, Unanswered
from pollex.rubrics.rubric import Rubric, content_id

VERSION = "1"


class Repeatable(Judge, Protocol):
    """A judge that can be asked again with its chance drawn anew."""

    def again(self, replicate: int) -> Judge:
        """Return this judge for one independent run, numbered from 0."""


class Ensemble:
    """A judge that asks one judge, or a panel in turn, in n independent runs.

    Run i is asked of judge i mod k, each time as another of its replicates; a judge that stands in the panel twice has
    twice the runs. Which runs fail is told; a failed run is never a vote.

    Args:
        judges: One, or a panel of several.
        rule: When the mode is a rating; `Rule.of(n)` if left out.
        stop_early: Ask no more runs once the verdict can no longer change. Entropy and distribution then rest on fewer
            runs, and are not to be compared between conversations.
    """

    def __init__(self, *judges: Repeatable, n: int = RUNS, rule: Rule | None = None, stop_early: bool = False) -> None:
        if not judges:
            raise WrongUse("an ensemble without a judge", remedy="give at least one")
        self.judges, self.rule, self.stop_early = judges, rule or Rule.of(n), stop_early

    @property
    def n(self) -> int:
        """Runs that are planned for a question."""
        return self.rule.runs

    @property
    def name(self) -> str:
        """Number of runs, and the names of the judges."""
        return f"{self.n} runs of {', '.join(judge.name for judge in self.judges)}"

    @property
    def fingerprint(self) -> str:
        """Fingerprint of the rule and all judges."""
        return content_id("ensemble", VERSION, str(self.stop_early), str(asdict(self.rule)), self.drawn_from)

    @property
    def drawn_from(self) -> str:
        """Fingerprint of the judges alone, on which single runs depend."""
        return content_id(*(judge.fingerprint for judge in self.judges))

    @property
    def learned(self) -> Mapping[str, Any]:
        """State that each judge learned, by its place in the panel."""
        return {str(place): judge.learned for place, judge in enumerate(self.judges) if judge.learned}

    async def fit(self, training: Sequence[Conversation], rubrics: Sequence[Rubric]) -> None:
        """Let every judge study the training conversations."""
        for judge in self.judges:
            await judge.fit(training, rubrics)

    def understood(self, rubric: Rubric) -> Rubric:
        """Return the rubric as the first judge understands it."""
        return self.judges[0].understood(rubric)

    async def prepare(self, conversations: Sequence[Conversation]) -> None:
        """Let every judge prepare."""
        for judge in self.judges:
            await judge.prepare(conversations)

    async def judge(self, conversation: Conversation, questions: Sequence[Question]) -> Votes:
        """Return the share of runs for each option; undecided if the rule rejects the mode."""
        found = await self.votes(conversation, questions)
        return [self._answer(conversation, question, votes) for question, votes in zip(questions, found, strict=True)]

    async def verdicts(self, conversation: Conversation, questions: Sequence[Question]) -> list[Verdict]:
        """Return the verdict of the runs, one for each question."""
        found = await self.votes(conversation, questions)
        return [verdict(conversation.id, q, votes, self.rule) for q, votes in zip(questions, found, strict=True)]

    async def votes(
        self, conversation: Conversation, questions: Sequence[Question], known: Mapping[int, Votes] | None = None
    ) -> list[Votes]:
        """Ask the runs and return each question's answers in the order of the runs.

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
        """Ask one run; a run that raises counts as failed, without stopping the others."""
        if known is not None:
            return known
        judge = self.judges[number % len(self.judges)].again(self._replicate(number))
        try:
            answers = await judge.judge(conversation, questions)
        except PollexError:
            raise
        except Exception as error:
            detail = f"{type(error).__name__} in run {number + 1}"
            return no_answers(questions, "error", detail, judge.name)
        if len(answers) != len(questions):
            detail = f"Mismatch: {len(answers)} answers to {len(questions)} questions in run {number + 1}"
            return no_answers(questions, "error", detail, judge.name)
        return [_fitting(q, answer, judge.name) for q, answer in zip(questions, answers, strict=True)]

    def _replicate(self, number: int) -> int:
        """Return the replicate number of a run; runs of identical judges never share a number."""
        turn, place = divmod(number, len(self.judges))
        fingerprints = [judge.fingerprint for judge in self.judges]
        same = [i for i, fingerprint in enumerate(fingerprints) if fingerprint == fingerprints[place]]
        return turn * len(same) + same.index(place)

    def _answer(self, conversation: Conversation, question: Question, votes: Votes) -> Answer | Unanswered:
        found = verdict(conversation.id, question, votes, self.rule)
        if found.rating is None or found.distribution is None:
            detail = in_words(found)
            return Unanswered(question_id=question.id, outcome="undecided", detail=detail, judge=self.name)
        chosen = found.options.index(found.rating)
        first = next(vote for vote in votes if isinstance(vote, Answer) and vote.chosen == chosen)
        return first.model_copy(update={"probabilities": found.distribution, "source": "sampled", "judge": self.name})


def _fitting(question: Question, answer: Answer | Unanswered, judge: str) -> Answer | Unanswered:
    """Return the answer under its question's id; a failure if it names no option."""
    if isinstance(answer, Answer) and not 0 <= answer.chosen < len(question.options):
        detail = "Malformed: not one of the question's options"
        return Unanswered(question_id=question.id, outcome="error", detail=detail, judge=judge)
    return answer if answer.question_id else answer.model_copy(update={"question_id": question.id})
