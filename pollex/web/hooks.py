"""What a room hangs into the browser beside its pages.

A room names them in its own `web/hooks.py`, as the tuple `HOOKS`; those of the core stand at the end.
"""

from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from jinja2 import pass_context
from jinja2.runtime import Context

from pollex.rooms import hooks_of
from pollex.web import links
from pollex.web.site import SCORING, Site

BEHIND_MORE = 100


@dataclass(frozen=True)
class MenuEntry:
    """A page in the menu.

    Attributes:
        name: What the menu says; a page in it says the same as its `here`.
        address: Where it leads.
        key: The key behind `g`.
        place: Entries stand in the order of their places; those of the core are 10, 20, 30. From
            `BEHIND_MORE` on they stand behind *More*.
        is_there: Whether its page has anything to show; else the menu doesn't have it.
    """

    name: str
    address: str
    key: str
    place: int
    is_there: Callable[[Site], bool] = lambda _: True


SERVED: ContextVar[Site | None] = ContextVar("served", default=None)
"""What the server shows to whoever asks now; None for strangers."""


def every_entry() -> list[MenuEntry]:
    """Return the entries of all rooms, in order, also of pages that have nothing yet."""
    return sorted(hooks_of(MenuEntry), key=lambda entry: entry.place)


def menu() -> list[MenuEntry]:
    """Return the menu of who asks now: pages that have something to show."""
    site = SERVED.get()
    return [entry for entry in every_entry() if site is not None and entry.is_there(site)]


def ran(*commands: str) -> Callable[[Site], bool]:
    """Make what tells whether a run of one of some commands is there; of any command, where none is named."""
    return lambda site: count_runs(site, *commands) > 0


def count_runs(site: Site, *commands: str) -> int:
    """Return how many runs of some commands are there; of all commands, where none is named."""
    rows = site.store.rows("SELECT command, count(*) AS n FROM runs GROUP BY command")
    return sum(row["n"] for row in rows if not commands or row["command"] in commands)


def two_scored(site: Site) -> bool:
    """Return whether there are two runs to compare."""
    return count_runs(site, *SCORING) > 1


def has_sets(site: Site) -> bool:
    """Return whether there is a rubric set."""
    return bool(site.sets())


def has_calibration(site: Site) -> bool:
    """Return whether probabilities can be looked at, of runs or of a calibrator."""
    return bool(site.calibrators) or ran(*SCORING)(site)


def has_studies(site: Site) -> bool:
    """Return whether people can talk to a system."""
    return bool(site.store.value("SELECT count(*) FROM studies"))


def has_work(site: Site) -> bool:
    """Return whether something is at work, or stopped before its end."""
    is_busy = any(not child.over for child in site.children.by_id.values())
    return is_busy or bool(site.store.value(UNFINISHED))


UNFINISHED = "SELECT count(*) FROM runs WHERE status NOT IN ('done', 'partial')"


def menu_name(address: str) -> str:
    """Return what the menu calls an address; empty where it doesn't have it."""
    names: Iterator[str] = (entry.name for entry in every_entry() if entry.address == address)
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
    address: Callable[[Mapping[str, Any]], str]


@pass_context
def page_links(context: Context, page: str) -> list[tuple[str, str]]:
    """Return the links of rooms on a page, for its template: words and address."""
    shown = context.get_all()
    links_there = [link for link in hooks_of(PageLink) if link.page == page]
    addresses = [(link.name, link.address(shown)) for link in links_there]
    return [(name, address) for name, address in addresses if address]


HOOKS = (
    MenuEntry("Home", links.HOME, "h", 10),
    MenuEntry("Logs", links.LOGS, "o", 15),
    MenuEntry("Runs", links.RUNS, "r", 20, ran()),
    MenuEntry("Conversations", links.CONVERSATIONS, "c", 30, ran(*SCORING)),
    MenuEntry("Rubrics", links.SETS, "s", 40, has_sets),
    MenuEntry("Label", links.LABEL, "l", 50),
    MenuEntry("At work", links.AT_WORK, "a", 70, has_work),
    MenuEntry("Begin", links.BEGIN, "b", 80),
    MenuEntry("Calibration", links.CALIBRATION, "k", 110, has_calibration),
    MenuEntry("Compare", links.COMPARE, "m", 120, two_scored),
    MenuEntry("Check", links.CHECK, "e", 130, two_scored),
    MenuEntry("Share", links.SHARE, "p", 140, ran(*SCORING)),
    MenuEntry("Talk", links.TALK, "t", 150, has_studies),
    MenuEntry("Waiting", links.WAITING, "w", 160, ran("judge")),
)
