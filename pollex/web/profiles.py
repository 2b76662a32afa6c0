"""Models that the browser may use, named at the server's start, without addresses or keys."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from pollex.errors import UNREADABLE, BadInput
from pollex.gateway.budget import Limits, Price
from pollex.services.options import ModelOptions
from pollex.text import parse_toml

MEND = "a profile is a table: [mini], with model, and base_url, key_env, price_in, price_out, max_cost where wanted"


class Profile(BaseModel):
    """A table of the file; prices are for a million tokens."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: str
    base_url: str | None = None
    key_env: str = "OPENAI_API_KEY"
    price_in: float | None = None
    price_out: float | None = None
    max_cost: float | None = None

    def options(self) -> ModelOptions:
        """Return it as options of a model."""
        price = None if self.price_in is None or self.price_out is None else Price(self.price_in, self.price_out)
        limits = Limits(price=price, max_cost=self.max_cost, max_wait=20.0)
        return ModelOptions(model=self.model, base_url=self.base_url, key_env=self.key_env, limits=limits)


def read_profiles(path: Path | None) -> dict[str, ModelOptions]:
    """Read a file of profiles; without one there is none.

    Raises:
        BadInput: It can't be read, or something in it is missing or wrong.
    """
    if path is None:
        return {}
    try:
        tables = parse_toml(path.read_text(encoding="utf-8-sig"))
        return {name: Profile.model_validate(table).options() for name, table in tables.items()}
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"it can't be read: {error}", where=str(path), remedy=UNREADABLE) from error
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise BadInput(f"{'.'.join(map(str, first['loc']))}: {first['msg']}", where=str(path), remedy=MEND) from error
    except ValueError as error:
        raise BadInput(f"not valid TOML: {error}", where=str(path), remedy=MEND) from error
