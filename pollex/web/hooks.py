"""What a room hangs into the browser beside its pages: it names it in its own `web/hooks.py`, as `HOOKS`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import pass_context
from jinja2.runtime import Context
from markupsafe import Markup

from pollex.errors import WrongUse
from pollex.rooms import list_hooks
from pollex.runs.options import ModelOptions, ModelTable
from pollex.store.runs import Run
from pollex.text import format_count
from pollex.web import links
from pollex.web.site import Site

FIRST_PLACE_BEHIND_MORE = 100


@dataclass(frozen=True)
class MenuEntry:
    """A page in the menu.

    Attributes:
        name: What the menu says; a page in it says the same as its `here`.
        address: Where it leads.
        key: The key behind `g`.
        place: Entries stand in the order of their places; those of the core are 10, 20, 30. From
            `FIRST_PLACE_BEHIND_MORE` on they stand behind *More*.
        is_there: Whether its page has anything to show; else the menu doesn't have it.
    """

    name: str
    address: str
    key: str
    place: int
    is_there: Callable[[Site], bool] = lambda _: True


TemplateValues = Mapping[str, Any]
"""What a template is filled with, by the names that it knows."""

SERVED_SITE: ContextVar[Site | None] = ContextVar("served", default=None)
"""What the server shows to whoever asks now; None for strangers."""
IS_READER: ContextVar[bool] = ContextVar("reads", default=False)
"""Whether who asks now may see everything, and begin and change nothing."""
REQUESTED_ADDRESS: ContextVar[str] = ContextVar("asked_for", default="")
"""Path and query of the page that is asked for now."""


def list_menu_entries() -> list[MenuEntry]:
    """Return the entries of all rooms, in order, also of pages that have nothing yet."""
    return sorted(list_hooks(MenuEntry), key=lambda entry: entry.place)


def list_visible_menu() -> list[MenuEntry]:
    """Return the menu of who asks now: pages that have something to show."""
    site = SERVED_SITE.get()
    if site is None:
        return []

    # who only reads can't begin anything
    begins = not (IS_READER.get() or site.read_only)
    every = (entry for entry in list_menu_entries() if begins or entry.address != links.BEGIN_PATH)
    return [entry for entry in every if entry.is_there(site)]


def make_run_check(*commands: str) -> Callable[[Site], bool]:
    """Make what tells whether a run of one of some commands is there; of any command, where none is named."""
    return lambda site: count_runs(site, *commands) > 0


def count_runs(site: Site, *commands: str) -> int:
    """Return how many runs of some commands are there; of all commands, where none is named."""
    rows = site.store.rows("SELECT command, count(*) AS n FROM runs GROUP BY command")
    return sum(row["n"] for row in rows if not commands or row["command"] in commands)


def get_menu_name(address: str) -> str:
    """Return what the menu calls an address; empty where it doesn't have it."""
    names: Iterator[str] = (entry.name for entry in list_menu_entries() if entry.address == address)
    return next(names, "")


@dataclass(frozen=True)
class PageLink:
    """A link to a page of a room, on a page of the core.

    Attributes:
        page: Template of the page that shows it, by its file.
        name: Its words.
        address: Returns where it leads, given by name what the page shows; empty for no link.
    """

    page: str
    name: str
    address: Callable[[TemplateValues], str]


@dataclass(frozen=True)
class GuestDoor:
    """A kind of pages that a guest's link opens, one page a guest.

    Attributes:
        name: What links are made for: `label`.
        pages: Address of the pages; that of one has its id behind.
        writes: Where their forms go; one that ends in a slash has the page's id behind.
        require: Raises NotFound where no page has an id.
    """

    name: str
    pages: str
    writes: tuple[str, ...]
    require: Callable[[Site, str], object]


@dataclass(frozen=True)
class ProfileTable:
    """What a table of `serve --profiles` may say beside the model's name, endpoint and limits.

    Attributes:
        kind: The table, with fields of its own.
        options: Makes the model's options of a table and of the file that has it.
        fields: Names of its own fields.
    """

    kind: type[ModelTable]
    options: Callable[[Any, Path], ModelOptions]
    fields: tuple[str, ...] = ()


@dataclass(frozen=True)
class ServedFiles:
    """What a room does with the files that an option of `serve` names, before pages are served.

    Attributes:
        option: Name of the field of `ServeStore`.
        begin: Given the site and the files.
        always: Whether it begins where no file is named, too: the room finds some by itself.
    """

    option: str
    begin: Callable[[Site, Sequence[Path]], None]
    always: bool = False


def begin_serving_files(site: Site, named: Mapping[str, Sequence[Path]]) -> None:
    """Have rooms do what is to be done with the files that options name.

    Args:
        named: By option.

    Raises:
        WrongUse: The room that an option belongs to isn't installed.
    """
    hooks = {served.option: served for served in list_hooks(ServedFiles)}
    for option, files in named.items():
        served = hooks.get(option)
        if served is None and files:
            raise WrongUse(
                "the room that has this option is not installed",
                hint="pip install 'pollex[all]' has all rooms",
                option=option,
            )
        if served is not None and (files or served.always):
            served.begin(site, files)


@dataclass(frozen=True)
class NamedCalibrators:
    """Calibrators that a room shows under Calibration, beside those of rubric sets.

    Attributes:
        names: Returns what they are called.
        page: Given one of the names, returns what fills its page, the template among it.
    """

    names: Callable[[Site], Sequence[str]]
    page: Callable[[Site, str], dict[str, object]]


def list_calibrators_of_rooms(site: Site) -> dict[str, NamedCalibrators]:
    """Return the calibrators that rooms show, by name, in the order of the names."""
    by_name = {}
    for calibrators in list_hooks(NamedCalibrators):
        for name in calibrators.names(site):
            by_name[name] = calibrators

    return dict(sorted(by_name.items()))


@dataclass(frozen=True)
class PagePanel:
    """What a page of the core shows of a room, where its template has its panels.

    Attributes:
        page: Template of the page, by its file.
        template: What shows the panel.
        figures: Returns what the template is filled with, given by name what the page is about;
            None where there is nothing to show. The JSON of the page has them, too.
    """

    page: str
    template: str
    figures: Callable[[Site, TemplateValues], TemplateValues | None]


FilledPanels = list[tuple[str, TemplateValues]]
"""Templates, and what fills them."""


def list_panels(page: str, site: Site, **about: object) -> FilledPanels:
    """Return what a page of the core shows of rooms."""
    panels = []
    for panel in list_hooks(PagePanel):
        if panel.page == page:
            panels.append(panel)

    filled = [(panel.template, panel.figures(site, about)) for panel in panels]
    pairs = []
    for template, figures in filled:
        if figures is not None:
            pairs.append((template, figures))

    return pairs


def make_run_figures(
    command: str, figures: Callable[[Site, Run], TemplateValues | None]
) -> Callable[[Site, TemplateValues], TemplateValues | None]:
    """Make the figures of a panel on the page of a run, of ended runs of one command."""

    def of_run(site: Site, about: TemplateValues) -> TemplateValues | None:
        run: Run = about["run"]
        shows = run.command == command and run.finished is not None
        return figures(site, run) if shows else None

    return of_run


@pass_context
def fill_panel(
    context: Context,
    template: str,
    figures: TemplateValues,
) -> Markup:
    """Fill the template of a panel, beside what its page shows."""
    filled = context.environment.get_template(template).render({**context.get_all(), **figures})
    return Markup(filled)  # noqa: S704 - a template has escaped it


@dataclass(frozen=True)
class WaitingWork:
    """What of a run waits for people.

    Attributes:
        command: Of the runs.
        unit: What waits, in words for `format_count`: `doubtful case`.
        count: Returns how many wait.
        address: Returns where they are answered.
        more: The unit of several, where it isn't the unit with an s.
    """

    command: str
    unit: str
    count: Callable[[Site, Run], int]
    address: Callable[[Run], str]
    more: str = ""


def find_waiting_work(site: Site, run: Run) -> tuple[str, str] | None:
    """Return what of a run waits for people, in words, and where it is answered; None where nothing waits."""
    for kind in list_hooks(WaitingWork):
        if kind.command == run.command and (number := kind.count(site, run)):
            return f"{format_count(number, kind.unit, kind.more)} of {run.id}", kind.address(run)
    return None


@dataclass(frozen=True)
class RunOutcome:
    """What a run came to, for lists.

    Attributes:
        words: Short: `64 % good`.
        tone: How it is colored: `good`, `try`, `bad` or `open`; empty for no color.
    """

    words: str
    tone: str = ""


@dataclass(frozen=True)
class RunKind:
    """What runs of a command are called, and what they come to.

    Attributes:
        name: In words that stand before the log's name: `Scores`.
        outcome: Returns what an ended run came to; None where nothing can be said.
    """

    command: str
    name: str
    outcome: Callable[[Site, Run], RunOutcome | None] = lambda _site, _run: None


def name_kind_of_run(run: Run) -> str:
    """Return what a run is, in words; of a command that nobody has words for, the command."""
    for kind in list_hooks(RunKind):
        if kind.command == run.command:
            name: str = kind.name
            return name

    return run.command.replace("_", " ").capitalize()


class OutcomesByRun(dict[str, RunOutcome | None]):
    """What ended runs came to, by their ids; it is worked out once while a server runs."""


def describe_outcome(site: Site, run: Run) -> RunOutcome | None:
    """Return what a run came to; None for one that goes on, or of which nothing can be said."""
    if run.finished is None:
        return None

    known = site.memory_of(OutcomesByRun)
    key = f"{run.id} {run.finished}"
    if key not in known:
        known[key] = None
        for kind in list_hooks(RunKind):
            if kind.command == run.command:
                known[key] = kind.outcome(site, run)

    return known[key]


@pass_context
def list_page_links(context: Context, page: str) -> list[tuple[str, str]]:
    """Return the links of rooms on a page, for its template: words and address."""
    return list_links_of(page, context.get_all())


def list_links_of(page: str, shown: Mapping[str, object]) -> list[tuple[str, str]]:
    """Return the links of rooms on a page, or on one of its entries: words and address.

    Args:
        shown: What the page or the entry shows, by name.
    """
    links_there = []
    for link in list_hooks(PageLink):
        if link.page == page:
            links_there.append(link)

    addresses = []
    for link in links_there:
        addresses.append((link.name, link.address(shown)))

    pairs: list[tuple[str, str]] = []
    for name, address in addresses:
        if address:
            pairs.append((name, address))

    return pairs
