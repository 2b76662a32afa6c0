"""Grading of answers against references on a model, and without references for comparison.

Source: Liu et al. 2024, "AlignBench: Benchmarking Chinese Alignment of Large Language Models";
    arXiv:2311.18743.

Questions of different options in one call, in order, each justified before it is answered.

A question with one option asks for a text: it is written before all numbers, under its id, and kept
as justification.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from pollex.agents.llm.asker import (
    ModelRole,
    PromptAsker,
    make_judge_id,
    make_unanswered_from_outcome,
)
from pollex.agents.llm.evidence import (
    PROMPT_BLOCKS_OMITTED_WITHOUT_SOURCES,
    make_prompt_items_of_documents,
)
from pollex.agents.llm.sampling import AnswerSheet, ask_and_pool_samples
from pollex.agents.roles import Judge, make_unanswered_for_all
from pollex.conversations.conversation import Conversation
from pollex.gateway.calls import Call, CompletedReply
from pollex.prompts.data_boundary import DataItem, write_value_as_escaped_json_line
from pollex.prompts.judging import write_option_for_prompt
from pollex.prompts.prompt import Prompt
from pollex.rooms.grade.conversations.references import ReferenceCase
from pollex.rooms.grade.prompts.grading.profile import (
    COMPARISON_QUESTION_ID,
    EVIDENCE_QUESTION_ID,
    EXPLANATION_QUESTION_ID,
    OVERALL_QUESTION_ID,
    UNSURE_OPTION,
    ReferencingProfile,
    load_prompt,
)
from pollex.rubrics.answers import Answer, Option, Question, Unanswered
from pollex.rubrics.judge_settings import SETTING_NAMES_CHANGING_JUDGE_ANSWERS
from pollex.text import JsonDict, is_visible

AnswerList = list[Answer | Unanswered]


class NumberedAnswerSheet(AnswerSheet):
    """Numbered answers where a number may name an option: 8 is the option `8`.

    Nothing is put right: 8.5, 11 and "9/10" are no options where grades are whole numbers from 1 to
    10.
    """

    def entry(self, place: int) -> JsonDict:
        """See `Sheet`; a whole number is its option."""
        entry = super().entry(place)
        answer = entry.get("answer")
        if type(answer) is int or (type(answer) is float and answer.is_integer()):
            return entry | {"answer": str(int(answer))}
        return entry

    def fault(self, place: int) -> str:
        """See `Sheet`."""
        answer = self.entry(place).get("answer")
        if answer is None:
            return super().fault(place)
        return f"off the scale: {str(answer)[:80]!r}"


@dataclass
class MixedPrompt:
    """Asks one prompt, whose gaps are `items` and what `values` fills.

    Attributes:
        values: For the prompt's other gaps.
    """

    asker: PromptAsker
    prompt: Prompt
    values: Mapping[str, str]

    @property
    def judge(self) -> str:
        """Identity of the judge."""
        return make_judge_id(self.asker.name, self.prompt)

    async def answers(
        self,
        item: str,
        data: Sequence[DataItem],
        questions: Sequence[Question],
    ) -> AnswerList:
        """Answer each question, in their order; make no call if there are none."""
        if not questions:
            return []

        return await ask_and_pool_samples(
            questions,
            self.asker.replicates,
            lambda r: self._sample(item, data, questions, r),
        )

    async def _sample(
        self,
        item: str,
        data: Sequence[DataItem],
        questions: Sequence[Question],
        replicate: int,
    ) -> AnswerList:
        """Answer in one call; ask once more for questions that the answer left out."""
        answers, missing = await self._ask(item, data, questions, replicate)
        if not missing:
            return answers

        # texts are asked for again with the grades that rest on them
        asked_again = []
        for question in questions:
            if is_text(question) or question in missing:
                asked_again.append(question)

        again, _ = await self._ask(
            item,
            data,
            asked_again,
            # beyond the replicates of all samples, so that no stored reply is read
            replicate + self.asker.settings.samples,
        )
        # only what was missing is taken from the second call
        missing_ids = {question.id for question in missing}
        second = {}
        for answer in again:
            if answer.question_id in missing_ids:
                second[answer.question_id] = answer

        return [second.get(answer.question_id, answer) for answer in answers]

    async def _ask(
        self,
        item: str,
        data: Sequence[DataItem],
        questions: Sequence[Question],
        replicate: int,
    ) -> tuple[AnswerList, list[Question]]:
        outcome = await self.asker.ask(self._call(item, data, questions, replicate))
        if not isinstance(outcome, CompletedReply):
            # no reply at all: every question has the same failure
            return [
                make_unanswered_from_outcome(outcome, self.judge, question.id)
                for question in questions
            ], []

        # grades have numbers in the reply, texts their ids
        numbered = []
        for question in questions:
            if not is_text(question):
                numbered.append(question)

        read = NumberedAnswerSheet.of(outcome, [], len(numbered))
        answers = {}
        for question in questions:
            if is_text(question):
                answers[question.id] = self._text(read, question)

        # options may differ from question to question, so each place has spellings of its own
        require = self.asker.settings.require == "logprobs"
        for place, question in enumerate(numbered, 1):
            sheet = replace(read, spellings=self._spellings(question))
            answers[question.id] = sheet.answer(
                place,
                question,
                self.judge,
                require_logprobs=require,
            )

        # a reply without any grade was no answer: its texts are asked for again, too
        missing = []
        for place, question in enumerate(numbered, 1):
            if read.missing(place):
                missing.append(question)

        if len(missing) == len(numbered):
            texts = []
            for question in questions:
                if is_text(question):
                    texts.append(question)
        else:
            texts = []

        return [answers[question.id] for question in questions], [*texts, *missing]

    def _text(self, read: AnswerSheet, question: Question) -> Answer | Unanswered:
        text = None
        if read.block:
            text = read.block.value.get(question.id)

        # an empty text counts as one that was not written
        if not isinstance(text, str) or not is_visible(text):
            return Unanswered(
                question_id=question.id,
                outcome="unparsable",
                detail="not written",
                judge=self.judge,
            )

        return Answer(
            question_id=question.id,
            probabilities=(1.0,),
            chosen=0,
            source="point",
            justification=text,
            judge=self.judge,
        )

    def _call(
        self,
        item: str,
        data: Sequence[DataItem],
        questions: Sequence[Question],
        replicate: int,
    ) -> Call:
        numbered = []
        for question in questions:
            if not is_text(question):
                numbered.append(question)

        texts = [question.text for question in numbered]
        # the first spelling of each option is the one that the prompt asks for
        spellings = [self._spellings(question)[0] for question in numbered]

        return self.asker.call(
            self.prompt,
            data,
            {**self.values, "items": list_questions(texts, spellings)},
            schema=make_answer_schema(
                spellings, [question.id for question in questions if is_text(question)]
            ),
            # without sources in the data the prompt says nothing of sources
            without=frozenset()
            if any("source" in item_shown for item_shown in data)
            else PROMPT_BLOCKS_OMITTED_WITHOUT_SOURCES,
            item=item,
            top_logprobs=self.asker.capabilities.logprobs or None,
            **self.asker.sampling(replicate),
        )

    def _spellings(self, question: Question) -> list[list[str]]:
        """Return the spellings of the options, as listed; with log-probabilities first padded."""
        texts = [option.text for option in question.options]
        if self.asker.capabilities.logprobs:
            return [pad_numbers(texts), texts]
        return [texts]


def make_text_question(id_: str, text: str) -> Question:
    """Make a question that asks for a text."""
    return Question(
        id=id_,
        text=text,
        options=(Option(text="written", value=0.0),),
    )


def is_text(question: Question) -> bool:
    """Return whether a question asks for a text."""
    return len(question.options) == 1


def pad_numbers(options: Sequence[str]) -> list[str]:
    """Whole numbers with as many digits each: 01 … 10.

    Where 1 and 10 are both options, a token `1` that was not written may have been either: its
    probability would be lost, and always that of the worst grade.
    """
    width = max(map(len, options))
    if all(map(str.isdecimal, options)):
        return [option.zfill(width) for option in options]
    return list(options)


def list_questions(texts: Sequence[str], spellings: Sequence[Sequence[str]]) -> str:
    """List the questions, one per line from 1, with their options."""
    numbered = enumerate(zip(texts, spellings, strict=True), start=1)
    return "\n".join(
        f"{n}. {write_value_as_escaped_json_line(text)} ({', '.join(map(write_option_for_prompt, options))})"
        for n, (text, options) in numbered
    )


def make_answer_schema(
    spellings: Sequence[Sequence[str]], texts: Sequence[str] = ()
) -> dict[str, object]:
    """Build the schema of the answers: `texts` first, then one property for each question, in order.

    Options that are whole numbers, and written as such, are asked for as numbers.
    """
    # a definition for each list of options, however many questions share it
    kinds: dict[tuple[str, ...], str] = {}
    for options in spellings:
        kinds.setdefault(tuple(options), f"a{len(kinds)}")

    # numbers count from 1, in the order in which the prompt lists the questions
    numbers = {}
    for place, options in enumerate(spellings, 1):
        numbers[str(place)] = kinds[tuple(options)]

    return {
        "type": "object",
        "properties": {name: {"type": "string"} for name in texts}
        | {number: {"$ref": f"#/$defs/{kind}"} for number, kind in numbers.items()},
        "required": [*texts, *numbers],
        "additionalProperties": False,
        "$defs": {kind: _make_schema_entry(options) for options, kind in kinds.items()},
    }


def _make_schema_entry(options: Sequence[str]) -> dict[str, object]:
    if all(option.isdecimal() and str(int(option)) == option for option in options):
        answer: dict[str, object] = {"type": "integer", "enum": [int(option) for option in options]}
    else:
        answer = {"type": "string", "enum": list(options)}

    return {
        "type": "object",
        "properties": {"why": {"type": "string"}, "answer": answer},
        "required": ["why", "answer"],
        "additionalProperties": False,
    }


CONSISTENT_OPTION = "consistent"
CONTRADICTS_OPTION = "contradicts"
EVIDENCE_OPTIONS = (CONSISTENT_OPTION, UNSURE_OPTION, CONTRADICTS_OPTION)
"""What may be answered to whether a reference agrees with its evidence."""

PLAIN_QUESTION_ID = "plain"
TYPE_QUESTION_ID = "type"


class _Grader(ModelRole, Judge):
    def __init__(
        self,
        asker: PromptAsker,
        profile: ReferencingProfile,
        *mixed: MixedPrompt,
    ) -> None:
        # settings that change a judgment belong to the judge's fingerprint
        facts = asker.settings.facts(SETTING_NAMES_CHANGING_JUDGE_ANSWERS)
        super().__init__(
            asker,
            [mixed_judge.prompt for mixed_judge in mixed],
            referencing=profile.fingerprint,
            **facts,
        )
        self.profile = profile
        self.asked = mixed[0]


class ReferenceJudge(_Grader):
    """Grades a conversation's answer against the reference in its metadata.

    See `conversations.references.ReferenceCase`.

    Whether the reference agrees with its evidence is asked in a call of its own, which doesn't show
    the answer: so that can't talk its way out of being graded, and the call is bought once for all
    systems under test. Where the two contradict each other no grade is believed.
    """

    def __init__(self, asker: PromptAsker, profile: ReferencingProfile) -> None:
        words = profile.words
        # the parts of the prompt that the profile writes
        values = {
            "task": words.task,
            "rules": profile.rule_lines(),
            "steps": words.steps,
        }
        self.check = MixedPrompt(
            asker,
            load_prompt("check_evidence"),
            {"task": words.evidence_task},
        )
        super().__init__(
            asker,
            profile,
            MixedPrompt(asker, load_prompt("grade_reference"), values),
            self.check,
        )

    async def judge(self, conversation: Conversation, questions: Sequence[Question]) -> AnswerList:
        """Answer each question, in order; make no call without answer or reference."""
        case = ReferenceCase.of(conversation)
        # nothing to grade, or nothing to grade against
        if why := explain_no_answer(case) or ("" if case.reference else "no reference"):
            return make_unanswered_for_all(questions, "not_scorable", why, self.asked.judge)

        # the evidence is checked without the answer, which must not lead the check
        *before_answer, answer = list_case_material(case)
        shown = make_prompt_items_of_documents(case.sources, self.asker.settings.sources)
        checks = []
        for question in questions:
            if question.id == EVIDENCE_QUESTION_ID:
                checks.append(question)

        grades = []
        for question in questions:
            if question.id != EVIDENCE_QUESTION_ID:
                grades.append(question)

        # two calls at a time: they don't need each other
        answer_lists = await asyncio.gather(
            self.check.answers(conversation.id, before_answer, checks),
            self.asked.answers(conversation.id, [*before_answer, *shown, answer], grades),
        )
        # in the order in which the questions came
        by_id = {answer.question_id: answer for answers in answer_lists for answer in answers}

        return mark_suspect_grades(questions, [by_id[question.id] for question in questions])


class PlainJudge(_Grader):
    """Grades a conversation's answer with neither reference nor rules: the general judge, to compare with."""

    def __init__(self, asker: PromptAsker, profile: ReferencingProfile) -> None:
        values = {"task": profile.words.plain_task, "steps": profile.words.plain_steps}
        super().__init__(
            asker,
            profile,
            MixedPrompt(asker, load_prompt("grade_plain"), values),
        )

    async def judge(self, conversation: Conversation, questions: Sequence[Question]) -> AnswerList:
        """Answer each question, in the questions' order."""
        case = ReferenceCase.of(conversation)
        if why := explain_no_answer(case):
            return make_unanswered_for_all(questions, "not_scorable", why, self.asked.judge)

        shown = make_prompt_items_of_documents(case.sources, self.asker.settings.sources)
        question = {"part": "question", "text": case.question}
        answer = {"part": "answer", "text": case.answer}
        data: list[DataItem] = [question, *shown, answer]
        return await self.asked.answers(conversation.id, data, questions)


class TaskClassifier(_Grader):
    """Tells what type of task a conversation's question sets; it sees nothing but the question."""

    def __init__(self, asker: PromptAsker, profile: ReferencingProfile) -> None:
        values = {"task": profile.words.classify}
        super().__init__(
            asker,
            profile,
            MixedPrompt(asker, load_prompt("classify_task"), values),
        )

    async def judge(self, conversation: Conversation, questions: Sequence[Question]) -> AnswerList:
        """Answer each question, in the questions' order."""
        data: list[DataItem] = [
            {"part": "question", "text": ReferenceCase.of(conversation).question}
        ]
        return await self.asked.answers(conversation.id, data, questions)


def explain_no_answer(case: ReferenceCase) -> str:
    """Return why there is no answer to grade; empty if there is one."""
    if case.answer is not None:
        return ""
    if case.unanswered:
        return f"no answer: {case.unanswered}"
    return "no answer"


def list_case_material(case: ReferenceCase) -> list[DataItem]:
    """Return the question, reference, evidence and answer as data; the answer last."""
    evidence: list[DataItem] = []
    for e in case.evidences:
        evidence.append(
            {
                "part": "evidence",
                "url": e.url,
                "quote": e.quote,
            }
        )

    # in this order in every prompt: the answer is read last
    return [
        {"part": "question", "text": case.question},
        {"part": "reference", "text": case.reference},
        *evidence,
        {"part": "answer", "text": case.answer},
    ]


def mark_suspect_grades(questions: Sequence[Question], answers: AnswerList) -> AnswerList:
    """Mark grades as suspect if the judge found that reference and evidence contradict."""
    # by the question's id, as questions about evidence are asked of some cases only
    by_id = {
        question.id: (question, answer) for question, answer in zip(questions, answers, strict=True)
    }
    question, check = by_id.get(EVIDENCE_QUESTION_ID, (None, None))
    # unchecked or consistent references leave the grades as they are
    if (
        question is None
        or not isinstance(check, Answer)
        or question.options[check.chosen].text != CONTRADICTS_OPTION
    ):
        return answers

    why = f"the reference contradicts its evidence: {check.justification}".removesuffix(": ")
    # grades become suspect; the check itself and the comparison stay to be read
    return [
        Unanswered(
            question_id=answer.question_id, outcome="suspect", detail=why, judge=answer.judge
        )
        if isinstance(answer, Answer)
        and answer is not check
        and answer.question_id != COMPARISON_QUESTION_ID
        else answer
        for answer in answers
    ]


def list_grade_options(profile: ReferencingProfile) -> tuple[Option, ...]:
    """Return the grades as options."""
    return tuple(Option(text=str(grade), value=float(grade)) for grade in profile.grades)


def list_rule_questions(
    profile: ReferencingProfile,
    type_: str | None,
    *,
    evidence: bool,
) -> list[Question]:
    """List the questions about an answer of a type: evidence, comparison, dimensions, and overall last."""
    # the same grades for every dimension and the whole
    options = list_grade_options(profile)
    if evidence:
        questions = [make_evidence_question(profile)]
    else:
        questions = []

    # the comparison is written first: grades rest on it
    questions.append(make_text_question(COMPARISON_QUESTION_ID, profile.words.steps))
    # dimensions in the profile's order, the whole after them
    for key in profile.dimensions_of(type_):
        dimension = profile.dimensions[key]
        questions.append(
            Question(
                id=key,
                text=f"{dimension.name}: {dimension.text}",
                options=options,
            )
        )

    return [
        *questions,
        Question(id=OVERALL_QUESTION_ID, text=profile.words.overall, options=options),
    ]


def list_case_questions(
    profile: ReferencingProfile,
    case: ReferenceCase,
    type_by_model: str | None,
) -> list[Question]:
    """List the questions about a case's answer, of its category's type or type `told`."""
    type_ = profile.type_of(case.category, case.subcategory) or type_by_model
    return list_rule_questions(profile, type_, evidence=bool(case.evidences))


def make_evidence_question(profile: ReferencingProfile) -> Question:
    """Ask whether the reference agrees with its evidence."""
    options = tuple(
        Option(text=text, value=value)
        for text, value in zip(EVIDENCE_OPTIONS, (1.0, 0.5, 0.0), strict=True)
    )
    return Question(id=EVIDENCE_QUESTION_ID, text=profile.words.evidence, options=options)


def list_plain_questions(profile: ReferencingProfile) -> list[Question]:
    """List the questions of the judge without reference and rules: its explanation, then its grade."""
    return [
        make_text_question(EXPLANATION_QUESTION_ID, profile.words.plain_steps),
        make_plain_question(profile),
    ]


def make_plain_question(profile: ReferencingProfile) -> Question:
    """Ask for a grade without reference and rules."""
    return Question(
        id=PLAIN_QUESTION_ID,
        text=profile.words.plain_overall,
        options=list_grade_options(profile),
    )


def make_type_question(profile: ReferencingProfile) -> Question:
    """Ask for the type of a task, or that it is unknown."""
    described = {name: part.text for name, part in profile.types.items()} | {
        UNSURE_OPTION: profile.words.unsure
    }
    text = " ".join(
        [profile.words.type, *(f"[{name}: {words}]" for name, words in described.items())]
    )
    options = tuple(Option(text=name, value=float(place)) for place, name in enumerate(described))
    return Question(id=TYPE_QUESTION_ID, text=text, options=options)


TypeSource = Literal["category", "model", "unsure", "unanswered", ""]
"""Who told the type of a task; `unanswered` where the model was asked and failed, empty where nobody was asked."""


@dataclass(frozen=True)
class CaseGrading:
    """All results for one case.

    Attributes:
        type: Type of the task; None if unknown.
        questions: Questions asked against the reference, in order; the last is the overall grade.
        answers: By question id; includes `plain` and `type` if they were asked.
    """

    case: ReferenceCase
    type: str | None
    type_from: TypeSource
    questions: tuple[Question, ...]
    answers: Mapping[str, Answer | Unanswered]

    @property
    def graded(self) -> list[Question]:
        """The questions whose answers are grades: the dimensions, and overall last."""
        questions: list[Question] = []
        for question in self.questions:
            if question.id not in (EVIDENCE_QUESTION_ID, COMPARISON_QUESTION_ID):
                questions.append(question)
        return questions

    def said(self, id_: str) -> str:
        """Return the judge's words about a question; empty if there are none."""
        answer = self.answers.get(id_)
        return answer.justification if isinstance(answer, Answer) else ""

    @property
    def outcome(self) -> str:
        """`graded` where every dimension and the whole have a grade, or why not."""
        # in the order of the questions, the whole last
        answers = []
        for question in self.graded:
            answers.append(self.answers.get(question.id))

        failed = []
        for answer in answers:
            if not isinstance(answer, Answer):
                failed.append(answer)

        if not failed:
            return "graded"

        overall = answers[-1]
        # everything failed: the outcome of the whole says why
        if len(failed) == len(answers) and isinstance(overall, Unanswered):
            return overall.outcome
        return "incomplete"

    @property
    def detail(self) -> str:
        """Why a grade is missing; empty if none is."""
        missing = []
        for question in self.graded:
            missing.append(self.answers.get(question.id))

        return next(
            (answer.detail for answer in missing if isinstance(answer, Unanswered)),
            "",
        )

    @property
    def flags(self) -> tuple[str, ...]:
        """Warnings for readers of the grades."""
        # warnings of the case itself come first
        warnings = list(self.case.flags)
        check = self.answers.get(EVIDENCE_QUESTION_ID)
        if (
            isinstance(check, Answer)
            and (contradiction := EVIDENCE_OPTIONS[check.chosen]) != CONSISTENT_OPTION
        ):
            warnings.append(f"reference and evidence: {contradiction}")

        if isinstance(check, Unanswered) and check.outcome != "not_scorable":
            # the grades are there, and may be of a wrong reference
            warnings.append("reference and evidence: not checked")
        if self.type_from in ("unsure", "unanswered"):
            warnings.append(f"task type {self.type_from}")

        return tuple(warnings)


def get_type_by_model(
    profile: ReferencingProfile, answers: Mapping[str, Answer | Unanswered]
) -> str | None:
    """Return the type that the model chose; None if it was unsure or not asked."""
    type_answer = answers.get(TYPE_QUESTION_ID)
    if not isinstance(type_answer, Answer):
        return None

    named = make_type_question(profile).options[type_answer.chosen].text
    return named if named in profile.types else None


def make_grading(
    profile: ReferencingProfile,
    case: ReferenceCase,
    answers: Mapping[str, Answer | Unanswered],
) -> CaseGrading:
    """Return a case's grading by its answers, by question."""
    # a category of the data stands above what a model says
    by_category = profile.type_of(case.category, case.subcategory)
    type_by_model = get_type_by_model(profile, answers)
    type_answer = answers.get(TYPE_QUESTION_ID)
    # why the model gave no type, if it was asked
    untold: TypeSource
    if type_answer is None:
        untold = ""
    elif isinstance(type_answer, Answer):
        untold = "unsure"
    else:
        untold = "unanswered"

    source: TypeSource
    if by_category:
        source = "category"
    elif type_by_model:
        source = "model"
    else:
        source = untold

    return CaseGrading(
        case,
        by_category or type_by_model,
        source,
        tuple(list_case_questions(profile, case, type_by_model)),
        answers,
    )
