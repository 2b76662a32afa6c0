"""The assistant as a user names it: a table of a file, a function of theirs, or a folder of files."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from pollex.agents.assistant import assistant_of
from pollex.errors import UNREADABLE, BadInput, WrongUse
from pollex.gateway.budget import Limits, Price
from pollex.services.options import ModelOptions
from pollex.services.remedy.run import AssistantOptions
from pollex.text import parse_toml

TABLE = "assistant"
MEND = "give [assistant] with model, and base_url, key_env, temperature, price_in, price_out, max_cost where wanted"


class AssistantTable(BaseModel):
    """The table `[assistant]`; prices are for a million tokens."""

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


def of_profiles(path: Path) -> AssistantOptions:
    """Read the assistant's table of a file of profiles.

    Raises:
        BadInput: It can't be read, has no such table, or something in it is missing or wrong.
    """
    try:
        tables = parse_toml(path.read_text(encoding="utf-8-sig"))
        found = AssistantTable.model_validate(tables.get(TABLE))
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"it can't be read: {error}", where=str(path), remedy=UNREADABLE) from error
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, (TABLE, *first["loc"])))
        raise BadInput(f"{place}: {first['msg']}", where=str(path), remedy=MEND) from error
    except ValueError as error:
        raise BadInput(f"not valid TOML: {error}", where=str(path), remedy=MEND) from error
    price = None if found.price_in is None or found.price_out is None else Price(found.price_in, found.price_out)
    limits = Limits(price=price, max_cost=found.max_cost, max_calls=found.max_calls, concurrency=found.concurrency)
    model = ModelOptions(model=found.model, base_url=found.base_url, key_env=found.key_env, limits=limits)
    return AssistantOptions(model=model, temperature=found.temperature)


def named_assistant(given: Any) -> AssistantOptions:
    """Return the assistant that is given: `module:name`, a folder of files, or an object of Python.

    Raises:
        WrongUse: It is none of them.
    """
    if isinstance(given, Path):
        return AssistantOptions(files=given)
    if not isinstance(given, str):
        return AssistantOptions(given=assistant_of(given))
    module, colon, name = given.partition(":")
    if not colon:
        return AssistantOptions(files=Path(given))
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
    return AssistantOptions(given=assistant_of(found))
