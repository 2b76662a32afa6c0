"""LLM-Rubric's elicitation: one question in a call, answered by one letter with log-probabilities.

Source: Hashemi et al. 2024, section 2; 10.18653/v1/2024.acl-long.745.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from string import ascii_uppercase

from pollex.agents.llm.asker import Asker, failure, judge_id, turns_as_items
from pollex.agents.llm.attention_checks import canary, suspect
from pollex.agents.llm.parsing import chosen
from pollex.agents.llm.sampling import point, unlisted
from pollex.conversations.conversation import Conversation
from pollex.gateway.calls import Call
from pollex.gateway.logprobs import Tokens
from pollex.gateway.outcomes import Completed
from pollex.prompts.data_boundary import escaped
from pollex.prompts.judging import lettered, meaning
from pollex.prompts.prompt import load
from pollex.rubrics.answers import NEVER_CAME_UP, Answer, Question, ScaleName, Unanswered
from pollex.rubrics.rubric import Rubric

Answers = list[Answer | Unanswered]


@dataclass
class Independent:
    """Asks each question by itself; a canary once for all questions of a polarity.

    Attributes:
        tally: Failed canaries, and occasions that never came up.
    """

    asker: Asker
    tally: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.prompt = load("judge_question")
        self.judge = judge_id(self.asker.name, self.prompt)

    async def answers(self, conversation: Conversation, questions: Sequence[Question], replicate: int) -> Answers:
        """Answer each question, in the questions' order."""
        alike: defaultdict[str, list[Question]] = defaultdict(list)
        for question in questions:
            alike[question.rubric.polarity if question.rubric else ""].append(question)
        found = await asyncio.gather(*(self._group(conversation, group, replicate) for group in alike.values()))
        by_id = {answer.question_id: answer for answers in found for answer in answers}
        return [by_id[question.id] for question in questions]

    async def _group(self, conversation: Conversation, questions: Sequence[Question], replicate: int) -> Answers:
        probe = canary(conversation, questions, self.asker.salt) if self.asker.settings.canary else None
        # What has a rubric is asked as a statement, and so must be what stands among them.
        rubric = Rubric(id="canary", text=probe.text, polarity="sat") if probe else None
        scale: ScaleName = "occasion" if any(question.may_never for question in questions) else "likert-domain"
        asked = [*questions, Question.about(rubric, scale)] if rubric else questions
        answers = await asyncio.gather(*(self._ask(conversation, question, replicate) for question in asked))
        if probe is None or not any(isinstance(answer, Answer) for answer in answers):
            return answers[: len(questions)]
        checked = answers.pop()
        # A canary that was refused or got lost on the way proves nothing.
        proof = isinstance(checked, Answer) or checked.outcome == "unparsable"
        if not proof or (isinstance(checked, Answer) and probe.passed(checked.chosen)):
            return answers
        self.tally["failed canaries"] += 1
        return suspect(answers, f"the canary was answered wrong: {probe.text}")

    async def _ask(self, conversation: Conversation, question: Question, replicate: int) -> Answer | Unanswered:
        outcome = await self.asker.ask(self._call(conversation, question, replicate))
        if not isinstance(outcome, Completed):
            return failure(outcome, self.judge, question.id)
        option = chosen(outcome.text, ascii_uppercase[: len(_shown(question))])
        if option is None:
            return Unanswered(
                question_id=question.id,
                outcome="unparsable",
                detail=f"not a letter of an option: {outcome.text.encode('utf-8', 'replace').decode()[:80]!r}",
                judge=self.judge,
            )
        return self._answer(question, option, outcome)

    def _call(self, conversation: Conversation, question: Question, replicate: int) -> Call:
        logprobs = self.asker.capabilities.logprobs
        settings = self.asker.sampling(replicate) | ({"max_tokens": 1} if logprobs else {})
        options = _shown(question)
        return self.asker.call(
            self.prompt,
            turns_as_items(conversation),
            {
                "item": escaped(question.text),
                "options": lettered(options),
                **meaning(options if question.rubric else ()),
                **({"middle": NEVER_CAME_UP} if question.may_never else {}),
            },
            without=frozenset() if question.rubric else frozenset({"statement"}),
            item=conversation.id,
            top_logprobs=logprobs or None,
            **settings,
        )

    def _answer(self, question: Question, option: int, outcome: Completed) -> Answer | Unanswered:
        letters, options = list(ascii_uppercase[: len(_shown(question))]), len(question.options)
        tokens = Tokens.of(outcome.logprobs, outcome.text)
        found = tokens.distribution(0, letters) if tokens else None
        listed = found is not None and any(found)
        if not listed and self.asker.settings.require == "logprobs":
            return unlisted(question, self.judge)
        came_up = option < options
        self.tally["never came up"] += not came_up
        probabilities = found if found and listed else point(option, len(letters))
        return Answer(
            question_id=question.id,
            probabilities=probabilities[:options] if came_up else (0.0,) * options,
            chosen=option,
            source="logprobs" if listed else "point",
            judge=self.judge,
        )


def _shown(question: Question) -> list[str]:
    """Return the options that a model is shown, with the one for what never came up as the last."""
    return [option.text for option in question.options] + [NEVER_CAME_UP] * question.may_never
