"""Questionnaires as TOML: questions with options of their own, for people (a queue, a study) and for a model."""

import re
from pathlib import Path
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from pollex.conversations.conversation import Conversation
from pollex.errors import UNREADABLE_FILE_HINT, BadInput, WrongUse
from pollex.rooms import find_file, iterate_part_folders
from pollex.rubrics.answers import Option, Question
from pollex.text import parse_toml, read_file_text

QUESTIONNAIRES_FOLDER = "prompts/questionnaires"
"""Where rooms have the questionnaires that come with them."""
MAX_QUESTIONNAIRE_BYTES = 64 << 10
QUESTION_EXAMPLE = (
    '[[question]] id = "Q1", text = "…", '
    'options = [[1, "not at all"], [2, "fully"]], skip = "doesn\'t apply"'
)
QUESTION_HEAD_PATTERN = re.compile(r"^[ \t]*\[\[[ \t]*question[ \t]*\]\]", re.MULTILINE)


class SheetQuestion(BaseModel):
    """A question of a sheet.

    Attributes:
        options: What each option is worth, and its words.
        skip: Words of the answer that there is none; empty where every conversation has one.
        needs: What a conversation must have for the question to be asked; elsewhere its answer is
            `skip`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str = Field(min_length=1, max_length=80)
    text: str = Field(min_length=1, max_length=2000)
    options: tuple[tuple[float, str], ...]
    ordinal: bool = True
    skip: str = ""
    needs: Literal["", "sources"] = ""

    @field_validator("options")
    @classmethod
    def _enough(cls, options: tuple[tuple[float, str], ...]) -> tuple[tuple[float, str], ...]:
        if not 2 <= len(options) <= 9:
            # a key each for people, a letter, one token, for a model
            raise ValueError("give two to nine options")
        return options

    @model_validator(mode="after")
    def _skippable(self) -> Self:
        if self.needs and not self.skip:
            raise ValueError(
                "a question that needs sources has words for where there are none: give skip"
            )
        return self

    def applies_to(self, conversation: Conversation) -> bool:
        """Tell whether a conversation has what the question is about."""
        return not self.needs or conversation.has_sources

    @property
    def for_model(self) -> Question:
        """The question as a model is asked it: what has no answer is the last option, and worth nothing."""
        options = []
        for value, text in self.options:
            options.append(Option(text=text, value=value))

        options += [Option(text=self.skip, value=0.0)] if self.skip else []
        return Question(id=self.id, text=self.text, options=tuple(options))


def load_questionnaire(name: str | Path) -> list[SheetQuestion]:
    """Return the questions of a file, or of a bundled questionnaire by its name.

    Raises:
        BadInput: Something in it is missing or wrong; file, line and remedy are named.
        WrongUse: There is no such file.
    """
    path = find_bundled_questionnaire(str(name)) or Path(name)
    try:
        return parse_questions(read_file_text(path), str(path))
    except FileNotFoundError:
        raise WrongUse(
            "no such questionnaire",
            where=str(name),
            hint=describe_available_questionnaires(),
            option="questionnaire",
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(
            f"it can't be read: {error}",
            where=str(name),
            hint=UNREADABLE_FILE_HINT,
        ) from error


def find_bundled_questionnaire(name: str) -> Path | None:
    """Return the file of a bundled questionnaire; None if there is none of this name."""
    # a name, and no path
    if Path(name).name != name:
        return None
    return find_file(QUESTIONNAIRES_FOLDER, f"{name}.toml")


def list_bundled_questionnaires() -> list[str]:
    """Return the names of the questionnaires that come with rooms."""
    return sorted(
        {
            path.stem
            for folder in iterate_part_folders(QUESTIONNAIRES_FOLDER)
            for path in folder.glob("*.toml")
        }
    )


def describe_available_questionnaires() -> str:
    """Say which questionnaires can be named."""
    names = list_bundled_questionnaires()
    if not names:
        return "name a file"
    return f"name a file, or {', '.join(names)}, which {'is' if len(names) == 1 else 'are'} bundled"


def parse_questions(text: str, source: str = "") -> list[SheetQuestion]:
    """Return the questions of a questionnaire as TOML; the one that is named `main` is last.

    Args:
        source: Name of the file, for errors.

    Raises:
        BadInput: Something in it is missing or wrong; line and remedy are named.
    """
    if len(text.encode()) > MAX_QUESTIONNAIRE_BYTES:
        raise BadInput(
            "the questionnaire is over 64 kB",
            where=source,
            hint="ask fewer questions",
        )

    try:
        tables = parse_toml(text)
        question_tables = [*tables.get("question", [])]
    except (ValueError, TypeError) as error:
        raise BadInput(
            f"not a questionnaire as TOML: {error}",
            where=source,
            hint=QUESTION_EXAMPLE,
        ) from error

    # the line of each question, for errors
    lines = []
    for match in QUESTION_HEAD_PATTERN.finditer(text):
        lines.append(text.count("\n", 0, match.start()) + 1)

    # where lines and questions don't match, errors name the file alone
    if len(lines) == len(question_tables):
        places = [f"{source}:{line}".lstrip(":") for line in lines]
    else:
        places = [source] * len(question_tables)

    questions = []
    for question_table, place in zip(question_tables, places, strict=True):
        questions.append(_parse_question(question_table, place))

    names = [question.id for question in questions]
    if not questions:
        raise BadInput("it has no question", where=source, hint=QUESTION_EXAMPLE)

    # ids occur once, and the main question is one of them
    for number, name in enumerate(names):
        if name in names[:number]:
            hint = "give each question an id of its own"
            raise BadInput(
                f"a second question is called {name!r}",
                where=places[number],
                hint=hint,
            )

    if (main := tables.get("main")) is not None and main not in names:
        raise BadInput(
            f"its main question {main!r:.60} is none of its questions",
            where=source,
            hint="name one of them",
        )

    return sorted(questions, key=lambda question: question.id == main)


def _parse_question(question_table: object, place: str) -> SheetQuestion:
    try:
        question = SheetQuestion.model_validate(question_table)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        reason = first["msg"].removeprefix("Value error, ")
        what = ": ".join(filter(None, (".".join(map(str, first["loc"])), reason)))
        raise BadInput(what, where=place, hint=QUESTION_EXAMPLE) from error

    # numbers of options differ, and so do their words
    for part in zip(*question.options, strict=True):
        if len(set(part)) < len(part):
            hint = "give each option a number and words of its own"
            raise BadInput(
                f"two options of {question.id!r} are alike",
                where=place,
                hint=hint,
            )

    return question
