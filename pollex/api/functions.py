"""Functions of Python made of use cases: their fields are the arguments."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

from pollex.api.common import shown_progress
from pollex.services.options import RunOptions
from pollex.services.results import Result
from pollex.usecases.use_case import Crew, Option, UseCase, options_of

P = ParamSpec("P")
R = TypeVar("R", bound=Result)


def function(kind: Callable[P, UseCase[R]]) -> Callable[P, R]:
    """Make the function of a use case, with a true signature."""
    return _made(kind, cast(type[UseCase[R]], kind))


def spread(kind: Callable[..., UseCase[R]]) -> Callable[..., R]:
    """Make a function whose first argument is all that is given without a name."""
    known = cast(type[UseCase[R]], kind)
    made = _made(lambda *first, **given: kind(first, **given), known)
    first, *rest = inspect.signature(made).parameters.values()
    made.__signature__ = inspect.Signature([first.replace(kind=first.VAR_POSITIONAL), *rest])  # type: ignore[attr-defined]
    return made


def _made(make: Callable[P, UseCase[R]], known: type[UseCase[R]]) -> Callable[P, R]:
    def made(*args: P.args, **given: P.kwargs) -> R:
        asked = make(*args, **given)
        with shown_progress(getattr(asked, "progress", None)) as progress:
            return asked.carry_out(Crew(progress, RunOptions()))

    made.__name__ = made.__qualname__ = known.verb.rpartition(" ")[2]
    made.__doc__ = described(known)
    made.__signature__ = signature_of(known)  # type: ignore[attr-defined]
    return made


def signature_of(kind: type[UseCase[Any]]) -> inspect.Signature:
    """Return the arguments of a use case, without those that only a terminal has."""
    found = inspect.signature(kind).parameters
    places = [one for one in found.values() if one.kind is not one.KEYWORD_ONLY]
    named = [found[one.name] for one in own_first(kind) if found[one.name] not in places]
    return inspect.Signature([*places, *named], return_annotation=kind.carry_out.__annotations__["return"])


def own_first(kind: type[UseCase[Any]]) -> list[Option]:
    """Return a use case's arguments, those of its families last."""
    return sorted(
        (one for one in options_of(kind) if one.door != "terminal"),
        key=lambda one: one.name not in vars(kind).get("__annotations__", {}),
    )


def described(kind: type[UseCase[Any]]) -> str:
    """Return the docstring of a function: what the use case is for, and what its arguments are."""
    about = inspect.cleandoc(kind.__doc__ or "").partition("\n\b\n")[0].strip()
    told = [f"    {one.name}: {one.help}" for one in own_first(kind) if one.help]
    error = "    PollexError: Says what was wrong, where, and what to do."
    return "\n".join([about, "", "Args:", *told, "", "Raises:", error])
