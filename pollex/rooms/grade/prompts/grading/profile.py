"""A profile for grading against references: scale, rules, dimensions, task types.

Source: Liu et al. 2024, "AlignBench: Benchmarking Chinese Alignment of Large Language Models";
    arXiv:2311.18743. The
bundled profiles say in their own words what the paper's rules and dimensions say.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from pollex.errors import WrongUse
from pollex.prompts.domain import ProfileText, describe_domain_profile_faults
from pollex.prompts.prompt import Prompt, parse_prompt
from pollex.text import parse_toml, read_file_text

PROFILES_FOLDER = Path(__file__).parent
DEFAULT_PROFILE_NAME = "chinese"
MAX_GRADES = 100
"""Each is an option that judges choose among, and a column of figures."""
UNSURE_OPTION = "unsure"
OVERALL_QUESTION_ID = "overall"
EVIDENCE_QUESTION_ID = "evidence"
COMPARISON_QUESTION_ID, EXPLANATION_QUESTION_ID = "comparison", "explanation"
"""What a judge writes before its grades: with a reference, and without one."""
RESERVED_NAMES = {
    OVERALL_QUESTION_ID,
    EVIDENCE_QUESTION_ID,
    UNSURE_OPTION,
    COMPARISON_QUESTION_ID,
    EXPLANATION_QUESTION_ID,
    "plain",
    "type",
}
"""What questions and answers of our own are called; no dimension or type may be."""

Temperature = Annotated[float, Field(ge=0, le=2)]


class _ProfilePart(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class GradeRule(_ProfilePart):
    """The meaning of grades from `lowest` to `highest`."""

    lowest: int
    highest: int
    text: ProfileText


class Dimension(_ProfilePart):
    """One side of an answer that gets a grade of its own."""

    name: ProfileText
    text: ProfileText


class TaskType(_ProfilePart):
    """A kind of task.

    Attributes:
        text: What tasks are of this type, for the model that has to tell.
        dimensions: Keys of what its answers are graded on, in order.
        categories: Categories of a question file that are of this type: `category` or
            `category/subcategory`.
        temperature: At which the system under test is asked.
    """

    text: ProfileText
    dimensions: tuple[str, ...] = Field(min_length=1)
    categories: tuple[ProfileText, ...] = ()
    temperature: Temperature


class UnknownTaskType(_ProfilePart):
    """The settings for tasks of unknown type."""

    dimensions: tuple[str, ...] = Field(min_length=1)
    temperature: Temperature


class ProfileWords(_ProfilePart):
    """The texts for the judge besides rules and dimensions.

    Attributes:
        task: Who it is and what it does, where there is a reference.
        steps: How it goes about it.
        evidence_task: What the judge does who looks at reference and evidence alone.
        evidence: The question whether they agree.
        overall: The question for the last grade.
        plain_task: As `task`, for the judge without a reference; so with the two that follow.
        classify: What is asked of the model that tells the type of a task.
        type: The question for the type; the types are listed behind it.
        unsure: When to answer `unsure` to that.
    """

    task: ProfileText
    steps: ProfileText
    evidence_task: ProfileText
    evidence: ProfileText
    overall: ProfileText
    plain_task: ProfileText
    plain_steps: ProfileText
    plain_overall: ProfileText
    classify: ProfileText
    type: ProfileText
    unsure: ProfileText


class ReferencingProfile(_ProfilePart):
    """A parsed grading profile; see the module.

    Attributes:
        language: Of the profile, for people.
        lowest: Worst grade; grades are whole numbers.
        highest: Best grade.
        pivot: What the reference itself is worth.
        temperatures: By category, or `category/subcategory`, where it differs from that of the
            category's type.
    """

    language: ProfileText
    lowest: int
    highest: int
    pivot: int
    words: ProfileWords
    rules: tuple[GradeRule, ...] = Field(min_length=1)
    dimensions: dict[str, Dimension]
    types: dict[str, TaskType] = Field(min_length=1)
    unknown: UnknownTaskType
    temperatures: dict[str, Temperature] = {}

    @classmethod
    def load(cls, path: str | Path) -> ReferencingProfile:
        """Read a profile: a bundled one by its name (`chinese`, `english`), else a file.

        Raises:
            WrongUse: It can't be read, isn't TOML, or doesn't hang together; what is wrong is
                named.
        """
        # a bundled name wins over a file of the same name
        if str(path) in list_bundled_profiles():
            file = PROFILES_FOLDER / f"{path}.toml"
        else:
            file = Path(path)

        try:
            return cls.parse(read_file_text(file), where=str(path))
        except (OSError, UnicodeDecodeError) as error:
            hint = f"give a TOML file, or one of {', '.join(list_bundled_profiles())}"
            raise WrongUse(
                f"the profile can't be read: {error}",
                where=str(path),
                hint=hint,
            ) from error

    @classmethod
    def parse(cls, text: str, where: str = "profile") -> ReferencingProfile:
        """Return the profile that the TOML `text` holds; see `load_prompt`."""
        try:
            return cls.model_validate(parse_toml(text))
        except ValidationError as error:
            # the profile's own messages say more than the parser's
            own_messages = []
            for f in error.errors():
                if f["type"] == "value_error" and "ctx" in f:
                    own_messages.append(str(f["ctx"]["error"]))
            raise WrongUse(
                "; ".join(own_messages) or describe_domain_profile_faults(error),
                where=where,
                hint=_make_profile_hint(),
            ) from error
        except ValueError as error:
            raise WrongUse(
                f"not valid TOML: {error}",
                where=where,
                hint=_make_profile_hint(),
            ) from error

    @model_validator(mode="after")
    def _hangs_together(self) -> Self:
        # the reference's grade lies on the scale, above its lowest grade
        if not self.lowest < self.pivot <= self.highest:
            raise ValueError(
                f"the pivot {self.pivot} is not on the scale from {self.lowest} to {self.highest}"
            )
        if self.highest - self.lowest >= MAX_GRADES:
            raise ValueError(
                f"a scale from {self.lowest} to {self.highest} has more than {MAX_GRADES} grades"
            )
        if any(
            not self.lowest <= rule.lowest <= rule.highest <= self.highest for rule in self.rules
        ):
            raise ValueError(f"a rule is not on the scale from {self.lowest} to {self.highest}")

        # every grade has exactly one rule, so that a judge never has to choose
        covered = [grade for rule in self.rules for grade in range(rule.lowest, rule.highest + 1)]
        if sorted(covered) != list(self.grades):
            raise ValueError(
                f"the rules don't cover each grade from {self.lowest} to {self.highest} once"
            )

        # dimensions that types name must be defined
        used = {key for part in self.types.values() for key in part.dimensions} | {
            *self.unknown.dimensions
        }
        if strange := used - self.dimensions.keys():
            raise ValueError(f"no such dimension: {', '.join(sorted(strange))}")
        # ids of questions that are always asked can't be used again
        if reserved := RESERVED_NAMES & {*self.dimensions, *self.types}:
            raise ValueError(f"a name that is taken: {', '.join(sorted(reserved))}")

        self._one_type_a_category()
        return self

    def _one_type_a_category(self) -> None:
        every = []
        for part in self.types.values():
            for category in part.categories:
                every.append(normalize_category(category))

        if twice := {category for category in every if every.count(category) > 1}:
            raise ValueError(f"a category of two types: {', '.join(sorted(twice))}")

    @property
    def grades(self) -> range:
        """All grades, the worst first."""
        return range(self.lowest, self.highest + 1)

    @property
    def fingerprint(self) -> str:
        """Twelve hex digits of all that it says."""
        return hashlib.sha256(json.dumps(self.model_dump(), sort_keys=True).encode()).hexdigest()[
            :12
        ]

    def type_of(self, category: str, subcategory: str = "") -> str | None:
        """Return the type of a category's tasks, or of a type's name; may be None."""
        places = {}
        for name, part in self.types.items():
            for place in (*part.categories, name):
                places[normalize_category(place)] = name

        return next(
            (
                places[place]
                for place in _list_category_keys(category, subcategory)
                if place in places
            ),
            None,
        )

    def dimensions_of(self, type_: str | None) -> tuple[str, ...]:
        """Return the keys of the dimensions for a task of that type."""
        if type_ in self.types:
            return self.types[type_].dimensions
        return self.unknown.dimensions

    def temperature_of(self, category: str, subcategory: str = "") -> float:
        """Return the temperature for asking the system under test."""
        # places are compared as categories are: spelling and case don't count
        temperatures = {}
        for place, value in self.temperatures.items():
            temperatures[normalize_category(place)] = value

        # the subcategory before the category, then the type's own temperature
        for place in _list_category_keys(category, subcategory):
            if place in temperatures:
                return temperatures[place]

        type_ = self.type_of(category, subcategory)
        if type_:
            return self.types[type_].temperature
        return self.unknown.temperature

    def rule_lines(self) -> str:
        """Return the rules, one a line, the worst grades first."""
        rules = sorted(self.rules, key=lambda rule: rule.lowest)
        return "\n".join(f"{_format_grade_interval(rule)}: {rule.text}" for rule in rules)


def _make_profile_hint() -> str:
    paths = [str(PROFILES_FOLDER / f"{name}.toml") for name in list_bundled_profiles()]
    return f"begin with a bundled one: {', '.join(paths)}"


def list_bundled_profiles() -> list[str]:
    """Return the names of the bundled profiles."""
    return sorted(file.stem for file in PROFILES_FOLDER.glob("*.toml"))


def load_prompt(name: str) -> Prompt:
    """Return one of the prompts beside this module."""
    return parse_prompt(name, (PROFILES_FOLDER / f"{name}.md").read_text(encoding="utf-8"))


def list_prompts() -> list[Prompt]:
    """Return all of them."""
    return [load_prompt(file.stem) for file in sorted(PROFILES_FOLDER.glob("*.md"))]


def normalize_category(place: str) -> str:
    """Return a category in one spelling."""
    return "/".join(part.strip() for part in place.casefold().split("/"))


def _list_category_keys(category: str, subcategory: str) -> Iterable[str]:
    if subcategory:
        return [normalize_category(f"{category}/{subcategory}"), normalize_category(category)]
    return [normalize_category(category)]


def _format_grade_interval(rule: GradeRule) -> str:
    if rule.lowest == rule.highest:
        return str(rule.lowest)
    return f"{rule.lowest}–{rule.highest}"
