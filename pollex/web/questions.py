"""What a queue asks about each conversation: a thumb, the rubrics of a set, or a questionnaire as TOML."""

import json
from collections.abc import Mapping, Sequence

from pollex.errors import BadInput
from pollex.formats.questionnaires import SheetQuestion, parse_questions
from pollex.rubrics.answers import OPTIONS_BY_SCALE
from pollex.rubrics.rubric_set import RubricSet
from pollex.web.faults import RequestError


def make_rubric_questions(rubric_set: RubricSet) -> list[SheetQuestion]:
    """Return a set's rubrics as questions, on the scale that its judge has."""
    options = tuple(
        (option.value, option.text) for option in OPTIONS_BY_SCALE[rubric_set.judge.scale]
    )
    rubrics: list[SheetQuestion] = []
    for rubric in rubric_set.rubrics:
        # a digit answers the question, so that there is room for nine options
        rubrics.append(
            SheetQuestion(
                id=rubric.id,
                text=rubric.text,
                options=options[:9],
                skip="It never came up",
            )
        )

    return rubrics


def parse_questionnaire(text: str) -> list[SheetQuestion]:
    """Return the questions of a questionnaire; one that is named `main` is asked last.

    Raises:
        RequestError: Something in it is missing or wrong.
    """
    try:
        return parse_questions(text)
    except BadInput as error:
        line = f"line {error.where}: " if error.where else ""
        raise RequestError(line + error.what, hint=error.advice) from error


def pack_sheet(questions: Sequence[SheetQuestion]) -> str:
    """Return questions as a queue keeps them; empty for a thumb."""
    if questions:
        return json.dumps(
            [question.model_dump(mode="json") for question in questions],
            ensure_ascii=False,
        )

    return ""


def unpack_sheet(sheet: str) -> list[SheetQuestion]:
    """Return the questions that a queue keeps; none for a thumb."""
    if sheet:
        questions: list[SheetQuestion] = []
        for load in json.loads(sheet):
            questions.append(SheetQuestion.model_validate(load))
        return questions

    return []


def read_sheet_answers(
    questions: Sequence[SheetQuestion], typed: Mapping[str, object]
) -> list[tuple[str, str | float | None, str]]:
    """Return question, value, and why there is none, of a form's fields `q-ID`; all are wanted.

    Raises:
        RequestError: A question has no answer.
    """
    answers: list[tuple[str, str | float | None, str]] = []
    for question in questions:
        # the form sends the place of the option, or that the question is skipped
        place = str(typed.get(f"q-{question.id}", ""))
        if place == "skip" and question.skip:
            answers.append((question.id, None, question.skip))
        elif place.isdecimal() and int(place) < len(question.options):
            answers.append((question.id, question.options[int(place)][0], ""))
        else:
            raise RequestError(
                f"the question {question.id} has no answer",
                hint="answer every question",
            )

    return answers
