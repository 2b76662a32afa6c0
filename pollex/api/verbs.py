"""The use cases as functions of Python."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, wraps
from html import escape
from importlib import import_module
from inspect import Signature, cleandoc, isclass, signature
from time import monotonic
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar, cast, get_args, get_origin, overload

from typing_extensions import get_original_bases

from pollex.api.rubrics import RubricSet
from pollex.graphs.context import NullProgress, Progress
from pollex.graphs.hooks import name_stage
from pollex.rooms import find_module, list_python_names
from pollex.runs.options import RunOptions
from pollex.services.results import Result
from pollex.text import escape_controls
from pollex.usecases.check import CheckRelease
from pollex.usecases.compare import CompareSamples
from pollex.usecases.evaluate import EvaluateSet
from pollex.usecases.inspect import InspectLogs
from pollex.usecases.learn import LearnRubrics
from pollex.usecases.refit import RefitSet
from pollex.usecases.rubrics import DiffSets
from pollex.usecases.score import ScoreLogs
from pollex.usecases.share import EstimateShare
from pollex.usecases.use_case import (
    USE_CASES_BY_MODULE,
    CallContext,
    TerminalUseCase,
    UseCase,
    VerbOption,
    import_by_name,
    iterate_options,
)

SECONDS_BETWEEN_DRAWINGS = 0.2
"""Seconds between two drawings."""


class NotebookProgress:
    """One output of a cell that is drawn anew while the work goes on; it needs no widgets."""

    def __init__(self) -> None:
        self._stages: dict[str, list[int]] = {}
        self._notes: list[str] = []
        self._output: Any = None
        self._drawn_at = 0.0

    def start(self, stage: str, total: int, done: int = 0) -> None:
        """Begin a stage, or give it a new total."""
        self._stages[stage] = [done, total]
        self._draw()

    def advance(self, stage: str, by: int = 1) -> None:
        """Move a stage's bar."""
        self._stages[stage][0] += by
        # many steps are quick: not each of them is drawn
        if monotonic() - self._drawn_at >= SECONDS_BETWEEN_DRAWINGS:
            self._draw()

    def note(self, text: str) -> None:
        """Add a line."""
        self._notes.append(escape_controls(text, keep_lines=True))
        self._draw()

    def html(self) -> str:
        """Return what the output shows."""
        bars = "".join(
            f"<div><progress value='{done}' max='{max(total, 1)}'></progress> "
            f"{escape(name_stage(stage))} {done}/{total}</div>"
            for stage, (done, total) in self._stages.items()
        )
        return bars + "".join(f"<div>{escape(note)}</div>" for note in self._notes)

    def _draw(self) -> None:
        self._drawn_at = monotonic()
        if self._output is not None:
            self._output.update(
                {"text/html": self.html(), "text/plain": "; ".join(self._notes)},
                raw=True,
            )

    def __enter__(self) -> Self:
        # every notebook has it; pollex needs it nowhere else
        display = import_module("IPython.display").display
        self._output = display(
            {"text/plain": "pollex"},
            raw=True,
            display_id=True,
        )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._draw()


Parameters = ParamSpec("Parameters")
Value = TypeVar("Value")
ResultType = TypeVar("ResultType", bound=Result)


@overload
def make_function(
    kind: Callable[Parameters, UseCase[ResultType]],
) -> Callable[Parameters, ResultType]: ...


@overload
def make_function(
    kind: Callable[Parameters, UseCase[ResultType]], then: Callable[[ResultType], Value]
) -> Callable[Parameters, Value]: ...


def make_function(
    kind: Callable[..., UseCase[ResultType]],
    then: Callable[[ResultType], Any] = lambda result: result,
) -> Callable[..., object]:
    """Make the function of a use case, with a true signature.

    Args:
        then: Makes what is returned of the result.
    """
    use_case = cast(type[UseCase[ResultType]], kind)

    def made(*args: Any, **options: object) -> Any:
        call = kind(*args, **options)
        with show_progress(getattr(call, "progress", None)) as progress:
            return then(call.perform(CallContext(progress, RunOptions())))

    made.__name__ = made.__qualname__ = use_case.verb.rpartition(" ")[2]
    made.__doc__ = write_docstring(use_case)
    made.__signature__ = make_signature(use_case)  # type: ignore[attr-defined]

    return made


@cache
def find_function(name: str) -> Callable[..., object]:
    """Return what `import pollex` has of a room by its name, or the function of a use case by its verb."""
    # a public name of a room: the class of a use case becomes a function
    if name in list_python_names():
        public: Any = import_by_name(list_python_names()[name])
        return make_function(cast(type[UseCase[Result]], public)) if isclass(public) else public

    # else the verb of a use case, unless it is for the terminal alone
    home = find_module("usecases", name)
    if home is not None:
        import_module(home)
        for kind in USE_CASES_BY_MODULE[home]:
            if kind.verb == name and not issubclass(kind, TerminalUseCase):
                return make_function(kind)

    raise AttributeError(f"pollex has no function {name!r}: the verb is for the terminal alone")


def make_variadic_function(kind: Callable[..., UseCase[ResultType]]) -> Callable[..., ResultType]:
    """Make a function whose first argument is all that is given without a name."""
    inner = make_function(kind)
    first, *rest = signature(inner).parameters.values()

    @wraps(inner)
    def made(*several: Any, **options: Any) -> ResultType:
        return inner(several, **options)

    made.__signature__ = Signature([first.replace(kind=first.VAR_POSITIONAL), *rest])  # type: ignore[attr-defined]
    return made


def make_signature(kind: type[UseCase[Result]]) -> Signature:
    """Return the arguments of a use case, without those that only a terminal has."""
    parameters = signature(kind).parameters
    # arguments by place keep their order; of those by name the use case's own come first
    places = []
    for parameter in parameters.values():
        if parameter.kind is not parameter.KEYWORD_ONLY:
            places.append(parameter)

    named = []
    for option in sort_own_options_first(kind):
        if parameters[option.name] not in places:
            named.append(parameters[option.name])

    return Signature([*places, *named], return_annotation=get_result_name(kind))


def get_result_name(kind: type[UseCase[Result]]) -> str:
    """Return the name of what a use case comes to."""
    # what stands in brackets behind `UseCase` is what it comes to
    (result,) = (
        get_args(base)[0] for base in get_original_bases(kind) if get_origin(base) is UseCase
    )
    return getattr(result, "__forward_arg__", str(result))


def sort_own_options_first(kind: type[UseCase[Result]]) -> list[VerbOption]:
    """Return a use case's arguments, those of its families last."""
    return sorted(
        (option for option in iterate_options(kind) if option.door != "terminal"),
        key=lambda option: option.name not in vars(kind).get("__annotations__", {}),
    )


def write_docstring(kind: type[UseCase[Result]]) -> str:
    """Return the docstring of a function: what the use case is for, and what its arguments are."""
    # what stands behind the mark is for the terminal
    about = cleandoc(kind.__doc__ or "").partition("\n\b\n")[0].strip()
    arguments = []
    for option in sort_own_options_first(kind):
        if option.help:
            arguments.append(f"    {option.name}: {option.help}")

    error = "    PollexError: Says what was wrong, where, and what to do."
    return "\n".join([about, "", "Args:", *arguments, "", "Raises:", error])


@contextmanager
def show_progress(progress: Progress | None) -> Iterator[Progress]:
    """Yield where progress goes: as bars in a notebook, and elsewhere to what is given."""
    # only a notebook has a cell to draw in
    if progress is not None or "ipykernel" not in sys.modules:
        yield progress or NullProgress()
        return

    with NotebookProgress() as shown:
        yield shown


check = make_function(CheckRelease)
compare = make_variadic_function(CompareSamples)
diff_sets = make_function(DiffSets)
evaluate = make_function(EvaluateSet)
inspect = make_function(InspectLogs)
learn = make_function(LearnRubrics, RubricSet.of)
refit = make_function(RefitSet, RubricSet.of)
score = make_function(ScoreLogs)
share = make_function(EstimateShare)
