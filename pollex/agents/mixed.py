"""Roles of a model and of the built-in side at once: one pool, in which each rubric is answered by whom it belongs to.

The model is asked exactly what it would be asked alone, about its own reasons and rubrics.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from pollex.agents.roles import (
    Agent,
    ContrastingPair,
    Deduplication,
    Deduplicator,
    Extraction,
    Extractor,
    Judge,
    Roles,
    Summarizer,
    Summary,
    list_fingerprints_for_questions,
)
from pollex.conversations.conversation import Conversation
from pollex.rubrics.answers import Answer, Question, Unanswered
from pollex.rubrics.rubric import (
    ANSWERED_BY_BUILT_IN_JUDGE,
    Polarity,
    Reason,
    Rubric,
    is_built_in_source,
    make_content_id,
)

AgentType = TypeVar("AgentType", bound=Agent)


@dataclass(frozen=True)
class RoleOfBothSides(Generic[AgentType]):
    """One role of either side."""

    model: AgentType
    built_in: AgentType

    @property
    def name(self) -> str:
        return f"{self.model.name} and {self.built_in.name}"

    @property
    def fingerprint(self) -> str:
        return make_content_id(
            "mixed",
            self.model.fingerprint,
            self.built_in.fingerprint,
        )


class MixedExtractor(RoleOfBothSides[Extractor]):
    """Finds reasons in both ways."""

    async def fit(self, training: Sequence[Conversation]) -> None:
        """Learn what distinguishes the classes of this log."""
        await self.built_in.fit(training)
        await self.model.fit(training)

    async def extract(self, conversation: Conversation) -> Extraction | Unanswered:
        """Extract the model's reasons and the built-in ones; nothing where the model fails."""
        extraction = await self.model.extract(conversation)
        if isinstance(extraction, Unanswered):
            return extraction

        # built-in reasons are an addition, and without them the model's still stand
        built_in_extraction = await self.built_in.extract(conversation)
        more = () if isinstance(built_in_extraction, Unanswered) else built_in_extraction.reasons
        return extraction.model_copy(update={"reasons": (*extraction.reasons, *more)})


class MixedSummarizer(RoleOfBothSides[Summarizer]):
    """Writes rubrics from a batch of reasons of one side."""

    async def summarize(
        self,
        reasons: Sequence[Reason],
        pool: Sequence[Rubric],
        polarity: Polarity,
        pairs: Sequence[ContrastingPair] = (),
        *,
        few: bool = False,
    ) -> Summary | Unanswered:
        """Write new rubrics from a batch of reasons that are all the model's or all built-in."""
        # each side sees its own rubrics only
        built_in_rubrics = []
        for rubric in pool:
            if rubric.answered_by == ANSWERED_BY_BUILT_IN_JUDGE:
                built_in_rubrics.append(rubric)

        if not reasons or not is_built_in_source(reasons[0].source):
            others = []
            for rubric in pool:
                if rubric.answered_by != ANSWERED_BY_BUILT_IN_JUDGE:
                    others.append(rubric)

            return await self.model.summarize(
                reasons,
                others,
                polarity,
                pairs,
                few=few,
            )

        summary = await self.built_in.summarize(
            reasons,
            built_in_rubrics,
            polarity,
            (),
        )
        if isinstance(summary, Unanswered):
            return summary

        # marked as the built-in judge's to answer
        signed = (
            rubric.model_copy(update={"answered_by": ANSWERED_BY_BUILT_IN_JUDGE})
            for rubric in summary.rubrics
        )
        return summary.model_copy(update={"rubrics": tuple(signed)})


class MixedDeduplicator(RoleOfBothSides[Deduplicator]):
    """Removes duplicates: of built-in rubrics by their words, then those that the model decides on, of both sides."""

    async def deduplicate(self, rubrics: Sequence[Rubric]) -> Deduplication:
        """Merge rubrics that say the same, whoever they come from."""
        built_in_rubrics = []
        for rubric in rubrics:
            if rubric.answered_by == ANSWERED_BY_BUILT_IN_JUDGE:
                built_in_rubrics.append(rubric)

        of_built_in = await self.built_in.deduplicate(built_in_rubrics)
        # built-in rubrics as merging left them, in the pool's order
        kept_built_in = {rubric.id: rubric for rubric in of_built_in.kept}
        left = []
        for rubric in rubrics:
            if rubric.id not in of_built_in.merged:
                left.append(kept_built_in.get(rubric.id, rubric))

        of_model = await self.model.deduplicate(left)
        # what went into a rubric that then went into another points to the last one
        merged = {}
        for id_, into in of_built_in.merged.items():
            merged[id_] = of_model.merged.get(into, into)

        return Deduplication(
            kept=of_model.kept,
            merged=merged | of_model.merged,
            mirrors=of_model.mirrors,
        )


class DividingJudge(RoleOfBothSides[Judge]):
    """Has each rubric answered by whom it belongs to."""

    def _is_models(self, rubric: Rubric | None) -> bool:
        """Tell whether a rubric, or a question without one, is the model's: what is marked for nobody."""
        return rubric is None or not rubric.answered_by

    async def fit(self, training: Sequence[Conversation], rubrics: Sequence[Rubric]) -> None:
        """Learn the scale of the rubrics of either side."""
        built_in_rubrics = []
        for rubric in rubrics:
            if not self._is_models(rubric):
                built_in_rubrics.append(rubric)

        await self.built_in.fit(
            training,
            built_in_rubrics,
        )
        model_rubrics = []
        for rubric in rubrics:
            if self._is_models(rubric):
                model_rubrics.append(rubric)

        await self.model.fit(
            training,
            model_rubrics,
        )

    def understood(self, rubric: Rubric) -> Rubric:
        """Return the rubric as its judge asks it."""
        return (self.model if self._is_models(rubric) else self.built_in).understood(rubric)

    def fingerprint_for(self, question: Question) -> str:
        """Return the fingerprint of whom a question belongs to."""
        if self._is_models(question.rubric):
            judge = self.model
        else:
            judge = self.built_in

        return list_fingerprints_for_questions(judge, [question])[0]

    async def prepare(self, conversations: Sequence[Conversation]) -> None:
        """Prepare both for the conversations to come."""
        await self.built_in.prepare(conversations)
        await self.model.prepare(conversations)

    @property
    def learned(self) -> Mapping[str, object]:
        """Return what either side learned; a model learns nothing."""
        return {**self.built_in.learned, **self.model.learned}

    async def judge(
        self, conversation: Conversation, questions: Sequence[Question]
    ) -> list[Answer | Unanswered]:
        """Answer each question by whom it belongs to, in the questions' order."""
        model_questions = []
        for q in questions:
            if self._is_models(q.rubric):
                model_questions.append(q)

        sides = [(self.model, model_questions)]
        built_in_questions = []
        for q in questions:
            if not self._is_models(q.rubric):
                built_in_questions.append(q)

        sides += [(self.built_in, built_in_questions)]
        # a side without questions isn't asked; the others are, at the same time
        judges_with_part = []
        for judge, part in sides:
            if part:
                judges_with_part.append((judge, part))

        answers = await asyncio.gather(
            *(judge.judge(conversation, part) for judge, part in judges_with_part)
        )
        # each answer to its place among the questions
        by_id = {}
        for (_, part), part_answers in zip(judges_with_part, answers, strict=True):
            for question, answer in zip(part, part_answers, strict=True):
                by_id[question.id] = answer

        return [by_id[question.id] for question in questions]


class MixedJudge(DividingJudge):
    """A model, and the built-in side for the rubrics that are marked for it."""


def mix_roles(model: Roles, built_in: Roles) -> Roles:
    """Return the roles of both sides as one."""
    return Roles(
        extractor=MixedExtractor(model.extractor, built_in.extractor),
        summarizer=MixedSummarizer(model.summarizer, built_in.summarizer),
        deduplicator=MixedDeduplicator(model.deduplicator, built_in.deduplicator),
        judge=MixedJudge(model.judge, built_in.judge),
        further=model.further,
    )
