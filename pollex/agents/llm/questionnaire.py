"""Questions of different options in one call, in order, each justified before it is answered.

A question with one option asks for a text: it is written before all numbers, under its id, and kept as justification.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pollex.agents.llm.asker import Asker, failure, judge_id
from pollex.agents.llm.numbered_answers import Sheet
from pollex.agents.llm.sampling import sampled
from pollex.gateway.calls import Call
from pollex.gateway.outcomes import Completed
from pollex.prompts.data_boundary import Item, escaped
from pollex.prompts.judging import plain
from pollex.prompts.prompt import Prompt
from pollex.rubrics.answers import Answer, Option, Question, Unanswered

Answers = list[Answer | Unanswered]


class Values(Sheet):
    """Numbered answers where a number may name an option: 8 is the option `8`.

    Nothing is put right: 8.5, 11 and "9/10" are no options where grades are whole numbers from 1 to 10.
    """

    def entry(self, place: int) -> dict[str, Any]:
        """Return the entry at `place`; a bare value counts as an answer without a reason."""
        value = self.block.value.get(str(place)) if self.block else None
        entry = super().entry(place) or ({"answer": value} if _is_value(value) else {})
        answer = entry.get("answer")
        if type(answer) is int or (type(answer) is float and answer.is_integer()):
            return entry | {"answer": str(int(answer))}
        return entry

    def fault(self, place: int) -> str:
        """See `Sheet`."""
        given = self.entry(place).get("answer")
        return super().fault(place) if given is None else f"off the scale: {str(given)[:80]!r}"


@dataclass
class Mixed:
    """Asks one prompt, whose gaps are `items` and what `values` fills.

    Attributes:
        values: For the prompt's other gaps.
    """

    asker: Asker
    prompt: Prompt
    values: Mapping[str, str]

    @property
    def judge(self) -> str:
        """Identity of the judge."""
        return judge_id(self.asker.name, self.prompt)

    async def answers(self, item: str, data: Sequence[Item], questions: Sequence[Question]) -> Answers:
        """Answer each question, in their order; make no call if there are none."""
        if not questions:
            return []
        return await sampled(questions, self.asker.replicates, lambda r: self._sample(item, data, questions, r))

    async def _sample(self, item: str, data: Sequence[Item], questions: Sequence[Question], replicate: int) -> Answers:
        """Answer in one call; ask once more for questions that the answer left out."""
        answers, missing = await self._ask(item, data, questions, replicate)
        if not missing:
            return answers
        asked = [question for question in questions if is_text(question) or question in missing]
        again, _ = await self._ask(item, data, asked, replicate + self.asker.settings.samples)
        wanted = {question.id for question in missing}
        second = {answer.question_id: answer for answer in again if answer.question_id in wanted}
        return [second.get(answer.question_id, answer) for answer in answers]

    async def _ask(
        self, item: str, data: Sequence[Item], questions: Sequence[Question], replicate: int
    ) -> tuple[Answers, list[Question]]:
        outcome = await self.asker.ask(self._call(item, data, questions, replicate))
        if not isinstance(outcome, Completed):
            return [failure(outcome, self.judge, question.id) for question in questions], []
        numbered = [question for question in questions if not is_text(question)]
        read = Values.of(outcome, [], len(numbered))
        answers = {question.id: self._text(read, question) for question in questions if is_text(question)}
        require = self.asker.settings.require == "logprobs"
        for place, question in enumerate(numbered, 1):
            sheet = replace(read, spellings=self._spellings(question))
            answers[question.id] = sheet.answer(place, question, self.judge, require_logprobs=require)
        missing = [question for place, question in enumerate(numbered, 1) if read.missing(place)]
        texts = [question for question in questions if is_text(question)] if len(missing) == len(numbered) else []
        return [answers[question.id] for question in questions], [*texts, *missing]

    def _text(self, read: Sheet, question: Question) -> Answer | Unanswered:
        said = read.block.value.get(question.id) if read.block else None
        if not isinstance(said, str) or not said.strip():
            return Unanswered(question_id=question.id, outcome="unparsable", detail="not written", judge=self.judge)
        return Answer(
            question_id=question.id,
            probabilities=(1.0,),
            chosen=0,
            source="point",
            justification=said,
            judge=self.judge,
        )

    def _call(self, item: str, data: Sequence[Item], questions: Sequence[Question], replicate: int) -> Call:
        numbered = [question for question in questions if not is_text(question)]
        texts = [question.text for question in numbered]
        spellings = [self._spellings(question)[0] for question in numbered]
        return self.asker.call(
            self.prompt,
            data,
            {**self.values, "items": listed(texts, spellings)},
            schema=schema_of(spellings, [question.id for question in questions if is_text(question)]),
            item=item,
            top_logprobs=self.asker.capabilities.logprobs or None,
            **self.asker.sampling(replicate),
        )

    def _spellings(self, question: Question) -> list[list[str]]:
        """Return the spellings of the options, as listed; with log-probabilities first padded."""
        texts = [option.text for option in question.options]
        return [padded(texts), texts] if self.asker.capabilities.logprobs else [texts]


def text_question(id_: str, text: str) -> Question:
    """Make a question that asks for a text."""
    return Question(id=id_, text=text, options=(Option(text="written", value=0.0),))


def is_text(question: Question) -> bool:
    """Return whether a question asks for a text."""
    return len(question.options) == 1


def padded(options: Sequence[str]) -> list[str]:
    """Whole numbers with as many digits each: 01 … 10.

    Where 1 and 10 are both options, a token `1` that was not written may have been either: its probability would be
    lost, and always that of the worst grade.
    """
    width = max(map(len, options))
    return [option.zfill(width) for option in options] if all(map(str.isdecimal, options)) else list(options)


def listed(texts: Sequence[str], spellings: Sequence[Sequence[str]]) -> str:
    """List the questions, one per line from 1, with their options."""
    asked = enumerate(zip(texts, spellings, strict=True), start=1)
    return "\n".join(f"{n}. {escaped(text)} ({', '.join(map(plain, options))})" for n, (text, options) in asked)


def schema_of(spellings: Sequence[Sequence[str]], texts: Sequence[str] = ()) -> dict[str, Any]:
    """Build the schema of the answers: `texts` first, then one property for each question, in order.

    Options that are whole numbers, and written as such, are asked for as numbers.
    """
    kinds: dict[tuple[str, ...], str] = {}
    for options in spellings:
        kinds.setdefault(tuple(options), f"a{len(kinds)}")
    numbers = {str(place): kinds[tuple(options)] for place, options in enumerate(spellings, 1)}
    return {
        "type": "object",
        "properties": {name: {"type": "string"} for name in texts}
        | {number: {"$ref": f"#/$defs/{kind}"} for number, kind in numbers.items()},
        "required": [*texts, *numbers],
        "additionalProperties": False,
        "$defs": {kind: _entry(options) for options, kind in kinds.items()},
    }


def _entry(options: Sequence[str]) -> dict[str, Any]:
    if all(option.isdecimal() and str(int(option)) == option for option in options):
        answer: dict[str, Any] = {"type": "integer", "enum": [int(option) for option in options]}
    else:
        answer = {"type": "string", "enum": list(options)}
    return {
        "type": "object",
        "properties": {"why": {"type": "string"}, "answer": answer},
        "required": ["why", "answer"],
        "additionalProperties": False,
    }


def _is_value(value: Any) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool)
