"""Models that a file of profiles names, a table each."""

from collections.abc import Collection
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from pollex.errors import UNREADABLE, BadInput
from pollex.gateway.budget import Limits, Price
from pollex.services.options import ModelOptions
from pollex.text import parse_toml


class ModelTable(BaseModel):
    """A table of the file; prices are for a million tokens."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: str
    base_url: str | None = None
    key_env: str = "OPENAI_API_KEY"
    price_in: float | None = None
    price_out: float | None = None
    max_cost: float | None = None

    @property
    def price(self) -> Price | None:
        """The price; None where it isn't given."""
        return None if self.price_in is None or self.price_out is None else Price(self.price_in, self.price_out)

    def within(self, **limits: Any) -> ModelOptions:
        """Return the model with its endpoint and caps."""
        known = Limits(price=self.price, max_cost=self.max_cost, **limits)
        return ModelOptions(model=self.model, base_url=self.base_url, key_env=self.key_env, limits=known)


T = TypeVar("T", bound=ModelTable)


def tables_in(path: Path, kind: type[T], mend: str, names: Collection[str] = ()) -> dict[str, T]:
    """Read the tables of a file of profiles.

    Args:
        mend: What a table is made of.
        names: Tables that are read; empty for all.

    Raises:
        BadInput: It can't be read, or something in it is missing or wrong.
    """
    try:
        tables = parse_toml(path.read_text(encoding="utf-8-sig"))
        wanted = {name: table for name, table in tables.items() if not names or name in names}
        return TypeAdapter(dict[str, kind]).validate_python(wanted)  # type: ignore[valid-type]
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"it can't be read: {error}", where=str(path), remedy=UNREADABLE) from error
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise BadInput(f"{'.'.join(map(str, first['loc']))}: {first['msg']}", where=str(path), remedy=mend) from error
    except ValueError as error:
        raise BadInput(f"not valid TOML: {error}", where=str(path), remedy=mend) from error
