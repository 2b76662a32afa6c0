"""What a room hangs into the core's services: it names it in its own `services/hooks.py`, as `HOOKS`."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

from pollex.conversations.conversation import Conversation
from pollex.conversations.logs import Logs
from pollex.errors import WrongUse
from pollex.measures.intervals import Figure
from pollex.rooms import list_hooks
from pollex.rubrics.answers import Question
from pollex.rubrics.rubric import Rubric
from pollex.rubrics.rubric_set import RubricSet
from pollex.rubrics.score import Score
from pollex.store.runs import Run
from pollex.store.store import Store


class AgentToolStore(Protocol):
    """What a tool of a room knows of the store that an agent asks."""

    @property
    def folder(self) -> Path:
        """Folder of the store."""

    def scored(self, run: str) -> tuple[Run, RubricSet, Logs]:
        """Return a scored run, the last one for an empty name, its rubric set, and its conversations."""

    def answer(self, rows: Sequence[object], offset: int, **about: Any) -> str:
        """Return a page of rows, sealed as data."""


class MendedRubrics(ABC):
    """What people said of rubrics, for a check of a release: one that they call mended must not come back."""

    @abstractmethod
    def mended_in(self, folder: Path, rubric_set: RubricSet) -> Mapping[str, object]:
        """Return the rubrics of a set that are mended, by id, in words; none where there is no store."""

    @abstractmethod
    def mark_back(
        self,
        folder: Path,
        rubric_set: RubricSet,
        ids: Collection[str],
        why: str,
    ) -> None:
        """Keep that mended rubrics are back again."""


class RubricFacts(ABC):
    """What a room tells coding agents of the rubrics of a set."""

    @abstractmethod
    def facts_of(self, store: Store, rubrics: Sequence[Rubric]) -> list[dict[str, object]]:
        """Return facts of each rubric, by name."""


class AgentTool(ABC):
    """A question that a coding agent may ask of a store, beside those that every agent has."""

    @abstractmethod
    def of(self, store: AgentToolStore) -> Callable[..., str]:
        """Make the function that an agent calls: its name, arguments and docstring are what the agent sees."""


@dataclass(frozen=True)
class RunQuestionReader:
    """The questions of a command's runs, where they weren't about rubrics, for what a trace shows.

    Attributes:
        command: Of the runs.
        questions: Returns them by the ids in the answers.
    """

    command: str
    questions: Callable[[Store, str], Mapping[str, Question]]


@dataclass(frozen=True)
class RunRatingReader:
    """What the runs of a command say of texts that people may have answered about, too.

    Attributes:
        command: Of the runs.
        ratings: Returns the question, under the id of people's answers, and by text the option
            that was agreed on; None where a run asked nothing.
    """

    command: str
    ratings: Callable[[Store, Run], tuple[Question, Mapping[str, str]] | None]


class ScoreForms(ABC):
    """Scores as requests of other tools."""

    @abstractmethod
    def require(self, form: str) -> None:
        """Raise WrongUse where no tool takes scores under a name."""

    @abstractmethod
    def requests(
        self,
        form: str,
        scores: Iterable[Score],
        rubrics: RubricSet,
        conversations: Iterable[Conversation],
    ) -> list[dict[str, Any]]:
        """Return a tool's requests, one a figure; conversations without figures have none."""

    @abstractmethod
    def write(
        self,
        path: Path,
        form: str,
        scores: Iterable[Score],
        rubrics: RubricSet,
        conversations: Sequence[Conversation],
    ) -> Sequence[tuple[str, str]]:
        """Write them to a file; return the conversations for which there are none, and why."""


class SetForms(ABC):
    """Rubric sets as files of other tools."""

    @abstractmethod
    def texts(self, rubrics: RubricSet, to: str) -> Mapping[str, str]:
        """Return the files of a set in another tool's form, as texts by name."""


def get_score_forms() -> ScoreForms:
    """Return what writes scores for other tools.

    Raises:
        WrongUse: Its room isn't installed.
    """
    # one room at most writes for other tools
    for forms in list_hooks(ScoreForms):
        known_forms: ScoreForms = forms
        return known_forms
    raise make_missing_room_error()


def get_set_forms() -> SetForms:
    """Return what writes rubric sets for other tools; raises as `get_score_forms`."""
    for forms in list_hooks(SetForms):
        known_forms: SetForms = forms
        return known_forms
    raise make_missing_room_error()


def make_missing_room_error() -> WrongUse:
    """Return the error for a room that isn't installed."""
    return WrongUse(
        "the room that knows other tools is not installed",
        hint="pip install 'pollex[all]' has all rooms",
    )


@dataclass(frozen=True)
class OptionService:
    """What a room does for a verb of the core, where an option of that verb asks for it.

    Attributes:
        verb: Of the use case.
        option: Name of its field.
        does: Full name of the service, whose arguments are the use case's.
    """

    verb: str
    option: str
    does: str


def find_option_service(verb: str, option: str) -> str:
    """Return the full name of the service that an option asks for.

    Raises:
        WrongUse: The room that has it isn't installed.
    """
    works: tuple[OptionService, ...] = list_hooks(OptionService)
    for work in works:
        if (work.verb, work.option) == (verb, option):
            return work.does
    raise WrongUse(
        "the room that has this option is not installed",
        hint="pip install 'pollex[all]' has all rooms",
        option=option,
    )


class ToolInterface(Protocol):
    """A tool's interface that logs are fetched from by `pollex pull`."""

    @property
    def name(self) -> str:
        """What the verb calls the tool."""

    @property
    def url(self) -> tuple[Sequence[str], str]:
        """The variables of its address, and the usual one."""

    @property
    def keys(self) -> Sequence[str]:
        """The variables of its keys."""

    @property
    def optional(self) -> Sequence[str]:
        """Variables of keys that only some of its servers want."""

    @property
    def project(self) -> bool:
        """Whether logs belong to a project that has to be named."""


@dataclass(frozen=True)
class LogSourceTools:
    """The tools that logs can be fetched from by `pollex pull`.

    Attributes:
        interfaces: Returns them.
    """

    interfaces: Callable[[], Sequence[ToolInterface]]


def describe_figure(figure: Figure) -> dict[str, object]:
    """Return what an agent is told of a figure."""
    # agents pay for each word: what is empty is left out, and so are units
    figure_values = {}
    for name, value in asdict(figure).items():
        if value not in (None, "") and name != "units":
            figure_values[name] = value
    return figure_values
