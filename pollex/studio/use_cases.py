"""Use cases by the contexts that LangGraph Studio shows as forms.

A field of a form is the option of the same name: what a form leaves empty is as usual.
"""

import os
from dataclasses import MISSING, Field, fields
from pathlib import Path
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints

from pydantic import ConfigDict, TypeAdapter, ValidationError

from pollex.errors import WrongUse
from pollex.graphs.context import Context, NullProgress
from pollex.graphs.learn.refit import RefitChoice
from pollex.graphs.learn.state import LearnChoice
from pollex.graphs.score import ScoreContext
from pollex.runs.options import LEARN_SETTINGS_BY_SYSTEM_NAME, RunOptions
from pollex.services.results import Result
from pollex.store.folder import DEFAULT_STORE_FOLDER, STORE_ENVIRONMENT_VARIABLE
from pollex.text import escape_controls
from pollex.usecases.learn import LearnRubrics
from pollex.usecases.refit import RefitSet
from pollex.usecases.score import ScoreLogs
from pollex.usecases.use_case import REQUIRED, CallContext, UseCase, iterate_options


def get_usual_value(field: "Field[object]") -> object:
    """Return what a field of a form has where nobody fills it in."""
    if field.default_factory is MISSING:
        return field.default
    return field.default_factory()


FormValues = dict[str, Any]
"""Values of a form by the names of options, as JSON has them."""

WORDS_BY_TYPE = {str: "a text", int: "a whole number", float: "a number", bool: "true or false"}
STRICT_CONFIG = ConfigDict(strict=True, allow_inf_nan=False)
"""A form's values are JSON, so that nothing has to be made of a text; a number that is none is refused."""


def collect_filled_fields(form: Context) -> FormValues:
    """Return the fields of a form that somebody filled in.

    Raises:
        WrongUse: A field has a value of another type.
    """
    hints = get_type_hints(type(form))
    values = {}
    for field in fields(form):
        value = getattr(form, field.name)
        # what is as usual isn't passed on, so that settings of a system hold; null is an empty field
        if value is not None and value != get_usual_value(field):
            require_type(field.name, value, hints[field.name])
            values[field.name] = value

    return {
        name: tuple(value) if isinstance(value, list) else value for name, value in values.items()
    }


def require_type(name: str, value: object, hint: Any) -> None:
    """Raise WrongUse where a field's value is of another type, or holds what no text may hold."""
    try:
        TypeAdapter(hint, config=STRICT_CONFIG).validate_python(value)
        is_sound = is_storable_text(value)
    except (ValidationError, RecursionError):
        is_sound = False

    if not is_sound:
        raise WrongUse(
            f"{name} can't be {escape_controls(repr(value), 40)}",
            hint=f"give {describe_type(hint)}",
            option=name,
        )


def is_storable_text(value: object) -> bool:
    """Tell whether the texts of a value have no NUL and no half character, which no path and no name may have."""
    parts = [value]
    if isinstance(value, dict):
        parts = [*value, *value.values()]
    elif isinstance(value, list):
        parts = value

    text = "".join(part for part in parts if isinstance(part, str))
    return "\0" not in text and text.encode("utf-8", "ignore").decode() == text


def describe_type(hint: Any) -> str:
    """Say what values a type has: `a text or a list of texts`."""
    if hint in WORDS_BY_TYPE:
        return WORDS_BY_TYPE[hint]

    inner = get_args(hint)
    if get_origin(hint) is list:
        return "a list of texts"
    if get_origin(hint) is dict:
        return "an object whose values are texts"
    return " or ".join(describe_type(part) for part in inner if part is not NoneType)


def carry_out_use_case(kind: type[UseCase[Result]], form_values: FormValues) -> None:
    """Carry a use case out with what a form gives; the store is that of the form, of the environment, or the usual one.

    Raises:
        WrongUse: A field is empty that is needed.
    """
    store = Path(
        form_values.pop("store", "")
        or os.environ.get(STORE_ENVIRONMENT_VARIABLE)
        or DEFAULT_STORE_FOLDER
    )
    for option in iterate_options(kind):
        if option.default is REQUIRED and option.name not in form_values:
            raise WrongUse(
                f"{option.name} is empty",
                hint="fill it in",
                option=option.name,
            )

    progress = NullProgress()
    fields: FormValues = {**form_values, "store": store}  # each use case of a graph has a store
    kind(**fields).perform(CallContext(progress=progress, run=RunOptions(store=store)))


def learn_from_form(form: LearnChoice) -> None:
    """Learn a rubric set; it is in the store.

    Raises:
        WrongUse: What is asked for is another graph's.
    """
    form_values = collect_filled_fields(form)
    # what somebody filled in comes before the settings of the system
    form_values = {**get_system_settings(form_values.get("system", "")), **form_values}
    if form_values.get("method") == "spur":
        raise WrongUse(
            "SPUR's steps are another graph",
            hint="run the graph `spur`",
            option="method",
        )

    carry_out_use_case(LearnRubrics, add_pool_stop(form_values))


def learn_by_spur(form: LearnChoice) -> None:
    """Learn a rubric set by SPUR; it is in the store."""
    form_values = collect_filled_fields(form)
    carry_out_use_case(
        LearnRubrics,
        add_pool_stop(
            {**get_system_settings(form_values.get("system", "")), **form_values, "method": "spur"}
        ),
    )


def get_system_settings(system: str) -> FormValues:
    """Return the settings of a system of RUBICON's paper; none without one.

    Raises:
        WrongUse: There is no such system, or it learns nothing.
    """
    if not system:
        return {}

    # a system with rubrics written by hand learns nothing
    learned = {}
    for name, settings in LEARN_SETTINGS_BY_SYSTEM_NAME.items():
        if "rubrics_from" not in settings:
            learned[name] = dict(settings)

    if system not in learned:
        named = ", ".join(learned)
        what = f"no system that learns is called {system!r}"
        raise WrongUse(
            what,
            hint=f"name one of {named}; others: `pollex learn --as`",
            option="system",
        )

    return learned[system]


def add_pool_stop(form_values: FormValues) -> FormValues:
    """Return what was filled in, with the word for where the run is to wait."""
    if form_values.get("review"):
        return {**form_values, "review": "pool"}
    return form_values


def refit_from_form(form: RefitChoice) -> None:
    """Judge the rubrics of a set again, and fit it again; the new set is in the store."""
    carry_out_use_case(RefitSet, collect_filled_fields(form))


def score_from_form(form: ScoreContext) -> None:
    """Score a log with a rubric set."""
    carry_out_use_case(ScoreLogs, collect_filled_fields(form))
