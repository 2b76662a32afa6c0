"""Who is asked, as a user names it: tables of a file, a function of theirs, or a folder of files."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from pollex.agents.assistant import Assistant, assistant_of
from pollex.errors import UNREADABLE, BadInput, WrongUse
from pollex.gateway.budget import Limits, Price
from pollex.services.options import ModelOptions
from pollex.text import parse_toml

ROLES = ("assistant", "proposer", "second")
MEND = "give [assistant] with model, and base_url, key_env, temperature, price_in, price_out, max_cost where wanted"


class RoleTable(BaseModel):
    """A table of a role; prices are for a million tokens."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: str
    base_url: str | None = None
    key_env: str = "OPENAI_API_KEY"
    temperature: float | None = None
    price_in: float | None = None
    price_out: float | None = None
    max_cost: float | None = None
    max_calls: int | None = None
    concurrency: int = 64

    @property
    def price(self) -> Price | None:
        """The price; None where it isn't given."""
        return None if self.price_in is None or self.price_out is None else Price(self.price_in, self.price_out)

    @property
    def options(self) -> ModelOptions:
        """The model with its endpoint and caps."""
        limits = Limits(
            price=self.price, max_cost=self.max_cost, max_calls=self.max_calls, concurrency=self.concurrency
        )
        return ModelOptions(model=self.model, base_url=self.base_url, key_env=self.key_env, limits=limits)


@dataclass(frozen=True, kw_only=True)
class AssistantOptions:
    """How the assistant is asked, an object of Python, a folder of files, or a model; and who else is.

    Attributes:
        tables: By role: the assistant, where it is a model, the proposer, and the second judge.
    """

    given: Assistant | None = None
    files: Path | None = None
    tables: dict[str, RoleTable] = field(default_factory=dict)


def of_profiles(path: Path) -> dict[str, RoleTable]:
    """Read the tables of a file of profiles.

    Raises:
        BadInput: It can't be read, or something in it is missing or wrong.
    """
    try:
        tables = parse_toml(path.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"it can't be read: {error}", where=str(path), remedy=UNREADABLE) from error
    except ValueError as error:
        raise BadInput(f"not valid TOML: {error}", where=str(path), remedy=MEND) from error
    found: dict[str, RoleTable] = {}
    for role in ROLES:
        try:
            found |= {role: RoleTable.model_validate(tables[role])} if role in tables else {}
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            place = ".".join(map(str, (role, *first["loc"])))
            raise BadInput(f"{place}: {first['msg']}", where=str(path), remedy=MEND) from error
    return found


def named_assistant(given: Any, tables: dict[str, RoleTable]) -> AssistantOptions:
    """Return who is asked: `module:name`, a folder of files, an object of Python, or a table.

    Raises:
        WrongUse: It is none of them, or named twice.
    """
    if (given is None) == ("assistant" not in tables):
        remedy = "by [assistant] in a file of profiles, or by what answers"
        raise WrongUse("name the assistant once", remedy=remedy, option="assistant")
    if given is None:
        return AssistantOptions(tables=tables)
    if isinstance(given, Path) or (isinstance(given, str) and ":" not in given):
        return AssistantOptions(files=Path(given), tables=tables)
    if not isinstance(given, str):
        return AssistantOptions(given=assistant_of(given), tables=tables)
    module, _, name = given.partition(":")
    folder = str(Path.cwd())
    sys.path.insert(0, folder)  # as `python -m` has it: the function stands in a file of the user's
    try:
        found: Any = import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        remedy = "give MODULE:FUNCTION of a module in this folder, or a folder for todo.jsonl and replies.jsonl"
        raise WrongUse(f"{given!r:.60} can't be imported: {error}", remedy=remedy, option="assistant") from error
    finally:
        sys.path.remove(folder)
    return AssistantOptions(given=assistant_of(found), tables=tables)
