"""RUBICON's elicitation: up to ten questions and a canary in a call, each justified before its answer."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from pollex.agents.llm.asker import Asker, failure, judge_id, turns_as_items
from pollex.agents.llm.attention_checks import Canary, canary, suspect
from pollex.agents.llm.numbered_answers import Sheet
from pollex.conversations.conversation import Conversation
from pollex.gateway.calls import Call
from pollex.gateway.outcomes import Completed
from pollex.prompts.judging import batch_schema, coded, glossed, listed, meaning, numbered
from pollex.prompts.prompt import load
from pollex.rubrics.answers import NEVER_CAME_UP, Answer, Question, Unanswered

Answers = list[Answer | Unanswered]


@dataclass
class Batched:
    """Asks questions in batches of one polarity and one set of options.

    Attributes:
        tally: What was put right or left out: `asked again`, `unknown answers`, `failed canaries`.
    """

    asker: Asker
    tally: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.prompt = load("judge_batch" if self.asker.settings.scale == "occasion" else "judge_batch_paper")
        self.judge = judge_id(self.asker.name, self.prompt)

    async def answers(self, conversation: Conversation, questions: Sequence[Question], replicate: int) -> Answers:
        """Answer each question, in the questions' order."""
        groups = self._groups(questions)
        found = await asyncio.gather(*(self._group(conversation, group, replicate) for group in groups))
        by_id = {answer.question_id: answer for answers in found for answer in answers}
        return [by_id[question.id] for question in questions]

    def _groups(self, questions: Sequence[Question]) -> list[list[Question]]:
        alike: defaultdict[tuple[str, tuple[tuple[str, float], ...]], list[Question]] = defaultdict(list)
        for question in questions:
            options = tuple([(option.text, option.value) for option in question.options])  # quicker than their own hash
            alike[question.rubric.polarity if question.rubric else "", options].append(question)
        size = self.asker.settings.batch
        return [group[i : i + size] for group in alike.values() for i in range(0, len(group), size)]

    async def _group(self, conversation: Conversation, questions: Sequence[Question], replicate: int) -> Answers:
        """Answer one batch; ask once more for questions that the answer left out."""
        answers, missing = await self._ask(conversation, questions, replicate)
        if not missing:
            return answers
        self.tally["asked again"] += len(missing)
        # Another replicate: where all is missing the call would be the same, and its answer already known.
        again, _ = await self._ask(conversation, missing, replicate + self.asker.settings.samples)
        second = {answer.question_id: answer for answer in again}
        return [second.get(answer.question_id, answer) for answer in answers]

    async def _ask(
        self, conversation: Conversation, questions: Sequence[Question], replicate: int
    ) -> tuple[Answers, list[Question]]:
        probe = canary(conversation, questions, self.asker.salt) if self.asker.settings.canary else None
        outcome = await self.asker.ask(self._call(conversation, questions, probe, replicate))
        if not isinstance(outcome, Completed):
            return [failure(outcome, self.judge, question.id) for question in questions], []
        count = len(questions) + (probe is not None)
        sheet = Sheet.of(outcome, self._labels(questions), count)
        self.tally["unknown answers"] += sheet.unknown
        places = [place for place in range(1, count + 1) if probe is None or place != probe.place]
        pairs = list(zip(questions, places, strict=True))
        require, turns = self.asker.settings.require == "logprobs", len(conversation.turns)
        answers = [
            sheet.answer(place, question, self.judge, require_logprobs=require, turns=turns)
            for question, place in pairs
        ]
        self.tally["never came up"] += sum(isinstance(one, Answer) and one.never_came_up for one in answers)
        missing = [question for question, place in pairs if sheet.missing(place)]
        why = "" if probe is None or len(missing) == len(questions) else self._caught(sheet, probe)
        return suspect(answers, why) if why else answers, missing

    def _call(
        self, conversation: Conversation, questions: Sequence[Question], probe: Canary | None, replicate: int
    ) -> Call:
        texts = [question.text for question in questions]
        if probe:
            texts.insert(probe.place - 1, probe.text)
        labels, spelled = self._labels(questions)[0], self._labels(questions)[-1]
        return self.asker.call(
            self.prompt,
            turns_as_items(conversation),
            {
                "items": numbered(texts),
                "options": self._listed(questions[0], labels),
                **meaning(spelled if questions[0].rubric else ()),
            },
            schema=batch_schema(self.prompt.schema, len(texts), labels),
            item=conversation.id,
            top_logprobs=self.asker.capabilities.logprobs or None,
            **self.asker.sampling(replicate),
        )

    def _labels(self, questions: Sequence[Question]) -> list[list[str]]:
        """Return the spellings of the options, as listed; with log-probabilities first behind letters."""
        texts = [option.text for option in questions[0].options] + [NEVER_CAME_UP] * questions[0].may_never
        return [coded(texts), texts] if self.asker.capabilities.logprobs else [texts]

    def _listed(self, question: Question, labels: Sequence[str]) -> str:
        return glossed(labels) if question.may_never else listed(labels)

    def _caught(self, sheet: Sheet, probe: Canary) -> str:
        """Return the wrong answer to the canary; empty if it was right."""
        option = sheet.chosen(probe.place)
        if option is not None and probe.passed(option):
            return ""
        self.tally["failed canaries"] += 1
        said = "nothing" if option is None else sheet.spellings[-1][option]
        return f"the canary was answered wrong: {said} to {probe.text}"
