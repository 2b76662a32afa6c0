"""What a queue asks about each conversation: a thumb, the rubrics of a set, or a questionnaire as TOML."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from pollex.rubrics.answers import SCALES
from pollex.rubrics.rubric_set import RubricSet
from pollex.web.faults import Fault

LARGEST = 64 << 10
EXAMPLE = '[[question]] id = "Q1", text = "…", options = [[1, "not at all"], [2, "fully"]], skip = "doesn\'t apply"'


class SheetQuestion(BaseModel):
    """A question of a sheet.

    Attributes:
        options: What each option is worth, and its words.
        skip: Words of the answer that there is none; empty where every conversation has one.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str = Field(min_length=1, max_length=80)
    text: str = Field(min_length=1, max_length=2000)
    options: tuple[tuple[float, str], ...]
    ordinal: bool = True
    skip: str = ""

    @field_validator("options")
    @classmethod
    def _enough(cls, options: tuple[tuple[float, str], ...]) -> tuple[tuple[float, str], ...]:
        if not 2 <= len(options) <= 9:
            raise ValueError("give two to nine options")
        return options


def of_rubrics(found: RubricSet) -> list[SheetQuestion]:
    """Return a set's rubrics as questions, on the scale that its judge has."""
    options = tuple((option.value, option.text) for option in SCALES[found.judge.scale])
    return [
        SheetQuestion(id=rubric.id, text=rubric.text, options=options[:9], skip="It never came up")
        for rubric in found.rubrics
    ]


def of_toml(text: str) -> list[SheetQuestion]:
    """Return the questions of a questionnaire; one that is named `main` is asked last.

    Raises:
        Fault: Something in it is missing or wrong.
    """
    if len(text.encode()) > LARGEST:
        raise Fault("the questionnaire is over 64 kB", remedy="ask fewer questions")
    try:
        tables = tomllib.loads(text)
        found = [SheetQuestion.model_validate(one) for one in tables.get("question", [])]
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise Fault(f"{'.'.join(map(str, first['loc']))}: {first['msg']}", remedy=EXAMPLE) from error
    except (ValueError, AttributeError, TypeError) as error:
        raise Fault(f"not a questionnaire as TOML: {error}", remedy=EXAMPLE) from error
    if not found or len({one.id for one in found}) < len(found):
        raise Fault("it has no question, or two with one id", remedy=EXAMPLE)
    main = tables.get("main")
    return sorted(found, key=lambda one: one.id == main)


def packed_sheet(questions: Sequence[SheetQuestion]) -> str:
    """Return questions as a queue keeps them; empty for a thumb."""
    return json.dumps([one.model_dump(mode="json") for one in questions], ensure_ascii=False) if questions else ""


def questions_of(sheet: str) -> list[SheetQuestion]:
    """Return the questions that a queue keeps; none for a thumb."""
    return [SheetQuestion.model_validate(one) for one in json.loads(sheet)] if sheet else []


def answers_on(
    questions: Sequence[SheetQuestion], given: Mapping[str, object]
) -> list[tuple[str, str | float | None, str]]:
    """Return question, value, and why there is none, of a form's fields `q-ID`; all are wanted.

    Raises:
        Fault: A question has no answer.
    """
    found: list[tuple[str, str | float | None, str]] = []
    for one in questions:
        place = str(given.get(f"q-{one.id}", ""))
        if place == "skip" and one.skip:
            found.append((one.id, None, one.skip))
        elif place.isdecimal() and int(place) < len(one.options):
            found.append((one.id, one.options[int(place)][0], ""))
        else:
            raise Fault(f"the question {one.id} has no answer", remedy="answer every question")
    return found
