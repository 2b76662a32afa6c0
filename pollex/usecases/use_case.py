"""A use case declared once: its fields are the options of a verb and the arguments of a function."""

from __future__ import annotations

import inspect
import math
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from importlib import import_module
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Generic,
    Literal,
    Self,
    TypeVar,
    cast,
    dataclass_transform,
)

from pollex.errors import BadInput, WrongUse
from pollex.outputs import is_own_page, require_replaceable
from pollex.rooms import find_room_of_class
from pollex.runs.options import RunOptions
from pollex.store.folder import DEFAULT_STORE_FOLDER, STORE_ENVIRONMENT_VARIABLE

if TYPE_CHECKING:
    from pollex.graphs.context import Progress
    from pollex.services.dry_run import CallPlan
    from pollex.services.results import Result

BOUNDS_BY_OPTION: Mapping[str, tuple[float, float]] = {
    "back": (0, 100),
    "batch": (1, 10**6),
    "concurrency": (1, 10**4),
    "count": (1, 10**6),
    "finetuning": (0, 10**4),
    "h1": (1, 4096),
    "h2": (1, 4096),
    "others": (2, 10**5),
    "people": (0, 10**5),
    "pretraining": (0, 10**4),
    "query_seconds": (1, 86_400),
    "replies": (1, 100),
    "runs": (1, 1000),
    "samples": (1, 1000),
    "seeds": (1, 100),
    "tried": (20, 10**5),
    "turns": (1, 1000),
    "workers": (1, 1024),
}
"""Numbers that say how much is done, by name, and what they may be: more would never end, or take all memory."""

ClassType = TypeVar("ClassType")
Result_co = TypeVar("Result_co", bound="Result", covariant=True)

OptionTitle = Literal["Data", "Rubrics", "Question", "Model", "Limits", "Output", "Other"]
REQUIRED: Any = object()
"""In place of a default: the option must be given."""
TYPES_BY_NAME: Mapping[str, type] = {
    "str": str,
    "int": int,
    "float": float,
    "bool": bool,
    "Path": Path,
}


@dataclass(frozen=True, kw_only=True)
class VerbOption:
    """How doors offer a field.

    Attributes:
        help: Empty for a field of `JudgeSettings`, which describes itself.
        kind: Type on the terminal, or the words to choose from.
        many: Whether it is given several times.
        flag: Its name on the terminal, where that isn't the field's.
        place: `rare` options are shown by `--help-all` only, a `setting` is given by `--set`.
        parse: Makes the value of what was typed.
        typed: Default on the terminal, where that isn't the field's.
        exists: Whether a path must be there.
        door: The only door that has it; empty for both.
        presets: Values of other options by the word that is chosen.
    """

    name: str = ""
    help: str = ""
    kind: type | tuple[str, ...] = str
    many: bool = False
    default: object = REQUIRED
    flag: str = ""
    group: OptionTitle = "Other"
    place: Literal["argument", "option", "rare", "setting"] = "option"
    metavar: str | None = None
    env: tuple[str, ...] = ()
    least: float | None = None
    most: float | None = None
    parse: Callable[[Any], Any] | None = None
    typed: Any = REQUIRED
    exists: bool = False
    door: Literal["", "terminal", "python"] = ""
    presets: Mapping[str, Mapping[str, Any]] | None = None

    @property
    def usual(self) -> Any:
        """The default on the terminal; `REQUIRED` where there is none."""
        return self.default if self.typed is REQUIRED else self.typed


def opt(
    help_text: str = "",
    *,
    default: Any = MISSING,
    kw_only: bool = True,
    **more: Any,
) -> Any:
    """Declare a field; see `VerbOption`."""
    return field(
        default=default,
        kw_only=kw_only,
        metadata={"option": VerbOption(help=help_text, **more)},
    )


def iterate_options(kind: type) -> Iterator[VerbOption]:
    """Yield the options of a use case, those of its families first."""
    for option_field in fields(kind):
        option: VerbOption = option_field.metadata["option"]
        # annotations are texts here: `tuple[…]` is given several times, `Literal[…]` has words
        written = re.match(
            r"(tuple\[)?(Literal\[[^]]*\]|\w+)",
            str(option_field.type),
        )
        assert written is not None, "an annotation begins with a name"
        inner = written[2]
        # words to choose from, else the type by its name
        words = tuple(re.findall(r"'([^']+)'", inner)) or TYPES_BY_NAME.get(inner, str)
        # a tuple that one text holds as a whole is given once
        many = option.many or (bool(written[1]) and option.parse is None)
        # bounds by name are of numbers alone
        least, most = (
            BOUNDS_BY_OPTION.get(option_field.name, (None, None))
            if words in (int, float)
            else (None, None)
        )
        yield VerbOption(
            **vars(option)
            | {
                "name": option_field.name,
                "kind": words,
                "many": many,
                "default": REQUIRED if option_field.default is MISSING else option_field.default,
                "least": least if option.least is None else option.least,
                "most": most if option.most is None else option.most,
            }
        )


@dataclass(frozen=True)
class CallContext:
    """What a door brings along.

    Attributes:
        run: How a run is kept and stopped.
        interview: Asks people on a terminal; see `services.judge.review_run`.
        editor: Makes what has a person edit a pool at the terminal; None where nobody sits at one.
    """

    progress: Progress
    run: RunOptions
    interview: Any = None
    editor: Callable[[], Any] = lambda: None


class UseCase(Generic[Result_co]):
    """What a user asks for.

    Attributes:
        does: Module and function of `pollex.services` that does it; its arguments are options by
            name.
        plans: Whether a dry run of it counts the calls that it would make.
        bundle: Class of the service's argument `declare_options`, which is made of several options.
        apart: Whether notes go to standard error: the output is data, or a view that is to stay the
            same.
        shown_with: Options that the printer needs.
        resumable: Whether its run goes on where it stopped, with `--resume`.
        goes_on_in_browser: Whether a page may go on with its run: its command names every model that
            it asks by options that the page looks at.
        looks_at_its_place: Whether its service itself refuses to take the place of others' files, as it
            knows its own by what stands in them.
        help_title: Of a room's verb: the title that it stands under in `pollex --help`.
    """

    verb: ClassVar[str]
    does: ClassVar[str] = ""
    plans: ClassVar[bool] = False
    bundle: ClassVar[str] = ""
    apart: ClassVar[bool] = False
    shown_with: ClassVar[tuple[str, ...]] = ()
    resumable: ClassVar[bool] = False
    goes_on_in_browser: ClassVar[bool] = False
    looks_at_its_place: ClassVar[bool] = False
    help_title: ClassVar[str] = ""

    def __post_init__(self) -> None:
        """Refuse numbers that are none, and those beyond what an option takes, at every door.

        Raises:
            WrongUse: One is.
        """
        for option in iterate_options(type(self)):
            value = getattr(self, option.name)
            # the default may lie beyond the bounds: it says that nothing was given
            if (
                isinstance(value, int | float)
                and not isinstance(value, bool)
                and value != option.default
            ):
                require_number_in_bounds(option, value)

    def carry_out(self, context: CallContext) -> Result_co:
        """Do it."""
        return cast(Result_co, self.call(self.does, context))

    def perform(self, context: CallContext) -> Result_co:
        """Do it, and note in the store which files it wrote."""
        # what only describes itself needs no store
        from pollex.store.outputs import note_written_outputs

        # the option comes before the environment, and that before the usual folder
        folder = (
            getattr(self, "store", None)
            or os.environ.get(STORE_ENVIRONMENT_VARIABLE)
            or DEFAULT_STORE_FOLDER
        )
        with note_written_outputs(Path(folder)):
            if not self.looks_at_its_place:
                require_replaceable(self.unchosen_output(), recognizes=self.recognizes)
            return self.carry_out(context)

    def unchosen_output(self) -> Path | None:
        """Return the file that is written where the user names none; None where they did."""
        for option in iterate_options(type(self)):
            if option.name != "out":
                continue
            usual = option.default if option.typed is REQUIRED else option.typed
            if isinstance(usual, Path) and usual == getattr(self, "out", None):
                return usual

        return None

    def recognizes(self, path: Path) -> bool:
        """Tell whether a file that no store knows of is one that it wrote; `False` where it can't tell."""
        return path.suffix == ".html" and is_own_page(path)

    def plan(self, context: CallContext) -> CallPlan:
        """Count the calls that it would make.

        Raises:
            WrongUse: Nothing counts them, or there are none.
        """
        if not self.plans:
            what = f"nothing counts the calls of {self.verb} before it runs"
            raise WrongUse(what, hint="leave it out", option="dry_run")

        from pollex.services.dry_run import DryRunEnded  # the roles of a model come with it

        # the run ends by `DryRunEnded` where its first call would be made
        try:
            self.carry_out(replace(context, run=replace(context.run, dry_run=True)))
        except DryRunEnded as ended:
            return ended.plan

        # nothing was to be asked
        what = f"{self.verb} asks nobody here: there are no calls to count"
        raise WrongUse(what, hint="leave it out", option="dry_run")

    def call(self, name: str, context: CallContext) -> Any:
        """Call a service of the use case's room with what its arguments name."""
        return self.call_at(f"{find_room_of_class(type(self))}.services.{name}", context)

    def call_at(self, name: str, context: CallContext) -> Any:
        """Call a service by its full name with what its arguments name."""
        service = import_by_name(name)
        parameters = inspect.signature(service).parameters
        arguments = {name: self.argument(name, context) for name in parameters}
        # arguments that have a default in the service
        usual = {
            name
            for name, parameter in parameters.items()
            if parameter.default is not parameter.empty
        }
        # what isn't given is left to the service's default
        left = {
            name
            for name, value in arguments.items()
            if value is REQUIRED or (value is None and name in usual)
        }
        try:
            return service(**{name: value for name, value in arguments.items() if name not in left})
        except BadInput as error:
            self.propose_by_model(error, context)
            raise

    def propose_by_model(self, error: BadInput, context: CallContext) -> None:
        """Have the model that was named say how a log may be read, where nothing else was found.

        Raises:
            BadInput: What it proposes, or why that doesn't hold.
            Planned: Calls are to be counted alone.
        """
        # what reads is there already where a log couldn't be read
        proposal = sys.modules.get("pollex.formats.proposal")
        if (
            proposal is None
            or not isinstance(error, proposal.UnmappedLog)
            or error.reading is not None
        ):
            return

        # how the log is read, where the store is, and which model
        parts = {}
        for name in ("reading", "run", "model"):
            parts[name] = self.argument(name, context)

        # some use cases call their logs sources
        logs = []
        for name in ("logs", "sources"):
            logs.append(self.argument(name, context))

        sources = next((value for value in logs if value is not REQUIRED), REQUIRED)
        # without a model there is nobody to ask
        if REQUIRED in (sources, *parts.values()) or not getattr(parts["model"], "name", None):
            return

        # a model's client takes a second to import
        from pollex.services.propose_by_model import ask_for_mapping

        raise ask_for_mapping(sources, error, progress=context.progress, **parts) from error

    def argument(self, name: str, context: CallContext) -> Any:
        """Return what a service takes under a name: of `as_NAME`, or an option; `REQUIRED` where neither is."""
        if name == "progress":
            return context.progress
        # a method `as_NAME` comes before an option of that name
        if make := getattr(self, f"as_{name}", None):
            return make(context)
        if name == "options" and self.bundle:
            kind = import_by_name(f"{find_room_of_class(type(self))}.{self.bundle}")
            return kind(**self.given(*(option.name for option in fields(kind))))
        return self.taken(name)

    def taken(self, name: str) -> Any:
        """Return an option as services take it."""
        value = getattr(self, name, REQUIRED)
        if not isinstance(value, str):
            return value

        # an address such as s3://… stays a text
        paths = (option.name for option in iterate_options(type(self)) if option.kind is Path)
        if name in paths and "://" not in value:
            return Path(value)
        return value

    def given(self, *names: str) -> dict[str, Any]:
        """Return the options of some names that were given."""
        options = {name: self.taken(name) for name in names}
        options_typed = {}
        for name, value in options.items():
            if value is not None and value is not REQUIRED:
                options_typed[name] = value
        return options_typed

    def typed(self) -> Self:
        """Return it as somebody means it who typed it on a terminal."""
        return self

    @property
    def to_confirm(self) -> str:
        """What a person is asked first; empty for nothing."""
        return ""

    def exit_code(self, result: Any) -> int | None:
        """Return an exit code that only this use case has; None for the usual ones."""
        return None

    @property
    def data(self) -> bool:
        """Whether standard output is the data itself."""
        return False


def require_number_in_bounds(option: VerbOption, value: float) -> None:
    """Raise WrongUse where a number is infinite, none at all, or beyond what the option takes."""
    least = option.least
    most = option.most
    if (
        math.isfinite(value)
        and (least is None or value >= least)
        and (most is None or value <= most)
    ):
        return

    bounds = {"at least": least, "at most": most}
    limits = []
    for side, bound in bounds.items():
        if bound is not None:
            limits.append(f"{side} {bound:g}")

    hint = f"give {' and '.join(limits) or 'a number'}"
    raise WrongUse(
        f"{option.name} can't be {value!r:.40}",
        hint=hint,
        option=option.name,
    )


class TerminalUseCase(UseCase[Any]):
    """One that speaks for itself on the terminal, and has no other door.

    Attributes:
        at: Module and function that is given it, and returns the exit code.
    """

    at: ClassVar[str] = ""

    def work(self) -> Any:
        """Do it, and return the exit code."""
        return import_by_name(f"{find_room_of_class(type(self))}.{self.at}")(self)


def import_by_name(name: str) -> Any:
    """Import a function or class."""
    module, _, attribute = name.rpartition(".")
    return getattr(import_module(module), attribute)


USE_CASES_BY_MODULE: dict[str, list[type[UseCase[Result]]]] = {}
"""Use cases by the module that declares them."""


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(opt,))
def declare_options(kind: type[ClassType]) -> type[ClassType]:
    """Make a family of options of a class."""
    return dataclass(frozen=True, kw_only=True)(kind)


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(opt,))
def use_case(verb: str) -> Callable[[type[ClassType]], type[ClassType]]:
    """Make a use case of a class, under the name of its verb."""

    def made(kind: type[ClassType]) -> type[ClassType]:
        use_case_class = declare_options(kind)
        verb_class = cast("type[UseCase[Result]]", use_case_class)
        verb_class.verb = verb
        # by module, as a verb's first word names the module of its use cases
        USE_CASES_BY_MODULE.setdefault(kind.__module__, []).append(verb_class)

        return use_case_class

    return made
