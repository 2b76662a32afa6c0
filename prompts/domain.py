"""A domain's description, in a TOML file that a person writes once, and what of it prompts may leave out."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence, Set
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError
from pydantic.fields import FieldInfo

from pollex.errors import UNREADABLE_FILE_HINT, WrongUse
from pollex.text import parse_toml, read_file_bytes, read_file_text

NEUTRAL_PROFILE_PATH = Path(__file__).with_name("neutral.toml")
CORRECT_PROFILE_HINT = "correct it; `pollex domain new` writes a complete one"
_WORD_PATTERN = re.compile(r"[^\W\d_][\w-]*[#+]*")

ClosingRole = Literal["system", "user", "merged"]
OPTIONAL_PROMPT_PARTS = {
    "ds": "the domain, in generation",
    "cdp": "conversation design principles",
    "domain": "the domain, in judging",
}
"""Blocks that a user may leave out, as ablations do."""


ProfileText = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=2000)
]


class DomainProfile(BaseModel):
    """The words that make prompts and rubrics speak of one domain.

    A field's description is the question that `pollex domain new` asks for it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    assistant: ProfileText = Field(
        description="What is the assistant, and what is it for? (a noun phrase)"
    )
    task: ProfileText = Field(description="What is a conversation meant to achieve? (to …)")
    user: ProfileText = Field(description="Who are its users? (a noun phrase)")
    ideal_conversation: ProfileText = Field(
        description="How does a roughly ideal conversation go? (two or three sentences)"
    )
    expectations: tuple[ProfileText, ...] = Field(
        min_length=1,
        description="What is expected of the assistant? (one a line)",
    )
    notes: tuple[ProfileText, ...] = Field(
        default=(),
        description="What must a reader know of the data? (messages that cross, a missing beginning, placeholders, "
        "whether common knowledge may be used; one a line)",
    )
    language: ProfileText = Field(description="In what language shall rubrics be written?")
    log: dict[Literal["columns", "roles"], dict[str, str | list[str]]] | None = Field(
        default=None,
        exclude_if=lambda log: log is None,
    )
    """Which column of the log is what, and whose turns its names of roles mean; see `formats.mapping`."""

    @classmethod
    def load(cls, path: str | Path) -> DomainProfile:
        """Read a profile.

        Raises:
            WrongUse: The file can't be read, isn't TOML, or misses fields; all of them are named.
        """
        try:
            return cls.parse(read_file_text(path), where=str(path))
        except (OSError, UnicodeDecodeError) as error:
            what = f"the domain profile can't be read: {error}"
            raise WrongUse(what, where=str(path), hint=UNREADABLE_FILE_HINT) from error

    @classmethod
    def parse(cls, text: str, where: str = "domain profile") -> DomainProfile:
        """Return the profile that the TOML `text` holds; see `load`. Beside `[log]` alone the rest is neutral."""
        try:
            profile = parse_toml(text)
            # a profile with nothing but `[log]` is neutral in all else
            return cls.model_validate(
                (cls.neutral().model_dump() if profile.keys() == {"log"} else {}) | profile
            )
        except ValidationError as error:
            raise WrongUse(
                describe_domain_profile_faults(error), where=where, hint=CORRECT_PROFILE_HINT
            ) from error
        except ValueError as error:
            raise WrongUse(
                f"not valid TOML: {error}", where=where, hint=CORRECT_PROFILE_HINT
            ) from error

    @classmethod
    def neutral(cls) -> DomainProfile:
        """Return what is used when no profile is given; it holds for any assistant."""
        return cls.load(NEUTRAL_PROFILE_PATH)

    def toml(self) -> str:
        """Return the text that `parse` turns back into this profile, each field under its question."""
        lines = []
        for name, field in type(self).questions().items():
            lines.append(
                f"# {field.description}\n{name} = {write_toml_value(getattr(self, name))}\n"
            )
        return "\n".join(lines)

    @classmethod
    def questions(cls) -> dict[str, FieldInfo]:
        """Return what `pollex domain new` asks for."""
        return {name: field for name, field in cls.model_fields.items() if field.description}

    def values(self) -> dict[str, str]:
        """Return the texts for a prompt's gaps: noun phrases without a full stop."""
        # the first three stand inside sentences, which a full stop would end
        return {
            "assistant": self.assistant.rstrip("."),
            "task": self.task.rstrip("."),
            "user": self.user.rstrip("."),
            "ideal_conversation": self.ideal_conversation,
            "expectations": "\n".join(f"  - {expectation}" for expectation in self.expectations),
            "notes": "".join(f"Known about the data: {note}\n" for note in self.notes),
            "language": self.language,
        }

    def words(self) -> tuple[str, ...]:
        """Return the domain's content words, lower case, each once, in the order of the profile."""
        # notes are about the data, and say nothing of the domain
        text = " ".join(
            [self.assistant, self.task, self.user, self.ideal_conversation, *self.expectations]
        )
        # hyphens at a word's ends are dashes or list marks
        words = (match.group().strip("-").casefold() for match in _WORD_PATTERN.finditer(text))
        telling_words = []
        for word in words:
            if len(word) > 1 and word not in STOPWORDS:
                telling_words.append(word)
        return tuple(dict.fromkeys(telling_words))


def get_log_table_of_domain_profile(rubrics: object) -> dict[str, object]:
    """Return the table `[log]` of the profile in a rubric set or its file; empty where nothing is said or read."""
    # a file is read as plain JSON: to load the set takes longer, and may fail
    if isinstance(rubrics, str | Path):
        try:
            rubrics = json.loads(read_file_bytes(rubrics))["domain"]
        except (
            OSError,
            ValueError,
            TypeError,
            KeyError,
            RecursionError,
        ):  # whoever loads the set says what is wrong
            return {}

        if isinstance(rubrics, dict):
            return rubrics.get("log") or {}
        return {}

    return getattr(getattr(rubrics, "domain", None), "log", None) or {}


def read_domain_profile(path: Path | None) -> DomainProfile:
    """Return the domain profile of a file, or the neutral one."""
    if path is None:
        return DomainProfile.neutral()
    return DomainProfile.load(path)


def describe_domain_profile_faults(error: ValidationError) -> str:
    """Return all that is missing or wrong, in one clause a field."""
    # fields by the kind of their fault, so that each is said once
    names: dict[str, list[str]] = {}
    for fault in error.errors(include_url=False, include_input=False):
        names.setdefault(fault["type"], []).append(".".join(str(part) for part in fault["loc"]))

    faults = []
    for kind, fields in names.items():
        faults.append(f"{_FAULT_WORDS_BY_TYPE.get(kind, kind)}: {', '.join(fields)}")
    return "; ".join(faults)


_FAULT_WORDS_BY_TYPE = {
    "missing": "missing",
    "extra_forbidden": "unknown",
    "literal_error": "unknown",
    "dict_type": "must be a table",
    "string_too_short": "empty",
    "too_short": "empty",
    "string_too_long": "longer than 2,000 characters",
    "string_type": "must be text",
    "tuple_type": "must be a list of texts",
}


def write_toml_value(value: str | tuple[str, ...]) -> str:
    """Return a TOML string or list, using JSON's escapes, and DEL escaped."""
    if isinstance(value, str):
        # a bare DEL is valid in JSON, and an error in TOML
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return "[\n" + "".join(f"    {write_toml_value(item)},\n" for item in value) + "]"


STOPWORDS = frozenset(
    """
    a about above after again against all already also am an and another any anything are as at back be because been
    before being below between both but by came can cannot come could did do does doing done down during each either
    else enough ever every everything few first for from further gave get gets give given gives go goes going gone
    good got had has have having he her here hers him his how i if in instead into is it its itself just keep keeps
    kept know known knows last less let like likes made make makes many may me might mine more most much must my
    need needs neither never new next no none nor not nothing now of off often on once one only or other others our
    out over own per put rather really said same say says see seen shall she should show shows since so some someone
    something still such take takes than that the their them then there these they thing things this those though
    through to together too toward towards two under until up upon us use used uses using very want wants was way
    well were what whatever when where whether which while who whom whose why will with within without work works
    would yet you your
    """.split()  # noqa: SIM905 - a list of words reads better as text
)


def parse_names_of_omitted_prompt_parts(switches: Sequence[str] | Set[str]) -> frozenset[str]:
    """Return the blocks that a user wants left out.

    Raises:
        WrongUse: There is no such block.
    """
    if unknown := set(switches) - OPTIONAL_PROMPT_PARTS.keys():
        what = ", ".join(sorted(unknown))
        parts = ", ".join(OPTIONAL_PROMPT_PARTS)
        raise WrongUse(
            f"no such part of a prompt: {what}",
            hint=f"choose from {parts}",
        )

    return frozenset(switches)
