"""Rubrics written by hand, in a TOML file: `[[rubrics]]` with `text` and `polarity`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from pollex.errors import UNREADABLE, BadRubrics
from pollex.prompts import rubric_sets
from pollex.rubrics.rubric import Polarity, Rubric, content_id
from pollex.text import parse_toml

HOME = Path(rubric_sets.__file__).parent
MEND = "correct it; each of [[rubrics]] has text and polarity, sat or dsat"


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid")

    text: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=2000)]
    polarity: Polarity


class _List(BaseModel):
    model_config = ConfigDict(extra="forbid")

    rubrics: list[_Entry] = Field(min_length=1)
    purpose: str = ""


def bundled() -> list[str]:
    """Return the names of the bundled sets."""
    return sorted(file.stem for file in HOME.glob("*.toml"))


def read_rubrics(source: str | Path) -> tuple[Rubric, ...]:
    """Return the rubrics of a file, or of a bundled set, in their order.

    Args:
        source: A path, or a name of `bundled`.

    Raises:
        BadRubrics: It can't be read, something in it is missing or wrong, or a rubric occurs twice.
    """
    path = HOME / f"{source}.toml" if str(source) in bundled() else Path(source)
    try:
        stored = parse_toml(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        remedy = f"give a TOML file, or one of {', '.join(bundled())}"
        raise BadRubrics("there is no such file", where=str(source), remedy=remedy) from None
    except (OSError, UnicodeDecodeError) as error:
        raise BadRubrics(f"it can't be read: {error}", where=str(source), remedy=UNREADABLE) from error
    except ValueError as error:
        raise BadRubrics(f"not valid TOML: {error}", where=str(source), remedy=MEND) from error
    try:
        entries = _List.model_validate(stored).rubrics
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise BadRubrics(f"{place}: {first['msg']}", where=str(source), remedy=MEND) from error
    rubrics = [Rubric(id=content_id(e.polarity, e.text), text=e.text, polarity=e.polarity) for e in entries]
    if len({rubric.id for rubric in rubrics}) < len(rubrics):
        raise BadRubrics("a rubric occurs twice", where=str(source), remedy="remove one of them")
    return tuple(rubrics)
