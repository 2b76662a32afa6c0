"""Options that use cases share: models, runs, and their checks.

The systems that RUBICON's paper compares, as settings of `learn`: what is given beside them wins.

Source: Biyani et al. 2024, tables 1 and 3. The paper's set for Bing is not ours to ship; `generic`
    is in its place,
and a model adapts it to the domain as the paper's authors did by hand.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from pollex.errors import UNREADABLE_FILE_HINT, BadInput, WrongUse
from pollex.gateway.budget import Limits, Price
from pollex.rubrics.judge_settings import JudgeSettings
from pollex.store.folder import DEFAULT_STORE_FOLDER
from pollex.text import parse_toml, read_file_text

if TYPE_CHECKING:
    from pollex.gateway.calls import Capabilities
    from pollex.gateway.endpoint import Endpoint
    from pollex.gateway.recorded import RecordedEndpoint
    from pollex.gateway.transport import ChatModel

MAX_UPLOAD_BYTES = 5 * 10**9
"""Bytes that may be brought in the browser at once, where nobody says otherwise."""

SETTINGS_OF_RUBICON_PAPER: Mapping[str, str | int] = {
    "policy": "greedy",
    "budget": 10,
    "scale": "likert-domain",
}

LEARN_SETTINGS_BY_SYSTEM_NAME: Mapping[str, Mapping[str, str | int]] = {
    "rubicon": {
        **SETTINGS_OF_RUBICON_PAPER,
        "method": "rubicon",
        "without": "built-in",
        "prompts": "paper",
        "reasons": 3,
    },
    "spur": {
        **SETTINGS_OF_RUBICON_PAPER,
        "method": "spur",
        "without": "ds,cdp",
        "prompts": "paper",
        "scale": "numeric",
    },
    "generic": {**SETTINGS_OF_RUBICON_PAPER, "rubrics_from": "generic"},
    "adapted": {**SETTINGS_OF_RUBICON_PAPER, "rubrics_from": "generic", "adapt": "yes"},
}
"""Settings by name, as a user of `pollex learn` gives them."""

SYSTEM_NAMES_NEEDING_MODEL = frozenset(
    name
    for name, sets in LEARN_SETTINGS_BY_SYSTEM_NAME.items()
    if sets.keys() & {"prompts", "adapt"}
)


def require_model_of_system(system: str, model: str | None) -> None:
    """Refuse a system that asks a model where none is named.

    Raises:
        WrongUse: Says so.
    """
    # such systems use prompts of the paper, or have rubrics adapted
    if system in SYSTEM_NAMES_NEEDING_MODEL and model is None:
        if "adapt" in LEARN_SETTINGS_BY_SYSTEM_NAME[system]:
            why = "adapts rubrics to your domain, and that"
        else:
            why = "as in the paper"

        raise WrongUse(
            f"{system} {why} takes a model",
            hint="name one",
            option="model",
        )


@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """The model, its limits, and its settings.

    Attributes:
        model: None for the built-in roles.
        chat: A LangChain chat model, or a recording, in place of an endpoint.
        key_env: Name of the environment variable that holds the endpoint's key.
        by_batch: Leave calls that don't wait for each other to a provider's batch.
        batch_files: Folder of files for `vllm run-batch`, in place of a provider.
        batch_api: Protocol of the provider's batches; empty: as its address tells.
        able: What a probe of the endpoint found; None where it is still to be probed.
        again: Ask again what was answered in an earlier run.
    """

    model: str | None = None
    base_url: str | None = None
    limits: Limits = field(default_factory=Limits)
    settings: JudgeSettings = field(default_factory=JudgeSettings)
    retry_refused: bool = False
    no_prompts: bool = False
    chat: ChatModel | RecordedEndpoint | None = None
    key_env: str = "OPENAI_API_KEY"
    by_batch: bool = False
    batch_files: Path | None = None
    batch_api: str = ""
    able: Capabilities | None = None
    again: bool = False

    def __post_init__(self) -> None:
        if self.base_url is not None:
            from pollex.gateway.endpoint import require_http_address  # the built-in roles need none

            require_http_address(self.base_url)

    @classmethod
    def of(
        cls,
        *,
        price: tuple[float, float] | None = None,
        batch_discount: float = 0.5,
        **fields_given: Any,
    ) -> Self:
        """Sort what a user gives by name into options, limits and settings.

        Args:
            price: Of a million prompt and completion tokens.
            batch_discount: Share of it that calls by batch don't cost.

        Raises:
            WrongUse: A setting can't be carried out; it is named.
        """
        # limits and options by their names; whatever is left is a setting of the judge
        limited = {
            field.name: fields_given.pop(field.name)
            for field in fields(Limits)
            if field.name in fields_given
        }
        own_fields = {
            field.name: fields_given.pop(field.name)
            for field in fields(cls)
            if field.name in fields_given
        }
        prices = None
        if price is not None:
            if len(price) != 2:
                raise WrongUse(
                    f"{price!r} are no two prices",
                    hint="give one for a million prompt tokens and one for a million completion tokens",
                    option="price",
                )
            prices = Price(price[0], price[1], batch_discount)

        return cls(
            limits=Limits(price=prices, **limited),
            settings=JudgeSettings.of(**fields_given),
            **own_fields,
        )

    @property
    def name(self) -> str | None:
        """The model's name; None for the built-in roles."""
        return self.chat.model if self.chat else self.model

    def endpoint(self) -> Endpoint:
        """Return the endpoint, with the key from the environment alone.

        A key as an option would be kept in the shell's history. White space around it, from the
        file that it was read from, is removed.
        """
        from pollex.gateway.endpoint import OPENAI_URL, Endpoint  # as above

        assert self.model is not None, "the built-in roles need no endpoint"
        key = os.environ.get(self.key_env, "").strip() or None
        return Endpoint(
            self.model,
            OPENAI_URL if self.base_url is None else self.base_url,
            key,
        )


@dataclass(frozen=True)
class RunOptions:
    """Place and end of a run.

    Attributes:
        dry_run: Count the calls that would be made, and make none: the service ends by
            `dry_run.DryRunEnded`.
        on_interrupt: Called when a signal asks the run to end; None leaves signals to the caller,
            as users of Python expect.
        typed: The command as it was typed, without `--resume`, which the run keeps; empty where it
            can't be resumed.
    """

    store: Path = Path(DEFAULT_STORE_FOLDER)
    resume: bool = False
    dry_run: bool = False
    on_interrupt: Callable[[], None] | None = None
    typed: str = ""


class ModelTable(BaseModel):
    """A table of the file; prices are for a million tokens."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: str
    base_url: str | None = None
    key_env: str = "OPENAI_API_KEY"
    price_in: float | None = Field(None, ge=0, allow_inf_nan=False)
    price_out: float | None = Field(None, ge=0, allow_inf_nan=False)
    max_cost: float | None = Field(None, ge=0, allow_inf_nan=False)

    @property
    def price(self) -> Price | None:
        """The price; None where it isn't given."""
        if self.price_in is None or self.price_out is None:
            return None
        return Price(self.price_in, self.price_out)

    def within(self, **limits: Any) -> ModelOptions:
        """Return the model with its endpoint and caps."""
        run_limits = Limits(price=self.price, max_cost=self.max_cost, **limits)
        return ModelOptions(
            model=self.model,
            base_url=self.base_url,
            key_env=self.key_env,
            limits=run_limits,
        )


ModelTableType = TypeVar("ModelTableType", bound=ModelTable)


def read_model_tables(
    path: Path,
    kind: type[ModelTableType],
    mend: str,
    names: Collection[str] = (),
) -> dict[str, ModelTableType]:
    """Read the tables of a file of profiles.

    Args:
        mend: What a table is made of.
        names: Tables that are read; empty for all.

    Raises:
        BadInput: It can't be read, or something in it is missing or wrong.
    """
    try:
        # only the tables that are wanted have to be right
        tables = parse_toml(read_file_text(path))
        tables_wanted = {
            name: table for name, table in tables.items() if not names or name in names
        }
        return TypeAdapter(dict[str, kind]).validate_python(tables_wanted)  # type: ignore[valid-type]
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(
            f"it can't be read: {error}",
            where=str(path),
            hint=UNREADABLE_FILE_HINT,
        ) from error
    except ValidationError as error:
        # the first fault, with the place in the file
        first = error.errors(include_url=False, include_input=False)[0]
        raise BadInput(
            f"{'.'.join(map(str, first['loc']))}: {first['msg']}",
            where=str(path),
            hint=mend,
        ) from error
    except ValueError as error:
        raise BadInput(
            f"not valid TOML: {error}",
            where=str(path),
            hint=mend,
        ) from error
