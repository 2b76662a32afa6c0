"""What a room hangs into the browser beside its pages.

A room names them in its own `web/hooks.py`, as the tuple `HOOKS`; those of the core stand at the end.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from jinja2 import pass_context
from jinja2.runtime import Context

from pollex.rooms import hooks_of
from pollex.web import links


@dataclass(frozen=True)
class MenuEntry:
    """A page in the menu.

    Attributes:
        name: What the menu says; a page in it says the same as its `here`.
        address: Where it leads.
        key: The key behind `g`.
        place: Entries stand in the order of their places; those of the core are 10, 20, 30.
    """

    name: str
    address: str
    key: str
    place: int


def menu() -> list[MenuEntry]:
    """Return the menu of all rooms, in order."""
    return sorted(hooks_of(MenuEntry), key=lambda entry: entry.place)


def menu_name(address: str) -> str:
    """Return what the menu calls an address; empty where it doesn't have it."""
    names: Iterator[str] = (entry.name for entry in menu() if entry.address == address)
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
    MenuEntry("Runs", links.RUNS, "r", 20),
    MenuEntry("Conversations", links.CONVERSATIONS, "c", 30),
    MenuEntry("Rubric sets", links.SETS, "s", 40),
    MenuEntry("Label", links.LABEL, "l", 50),
    MenuEntry("Talk", links.TALK, "t", 60),
    MenuEntry("Waiting", links.WAITING, "w", 70),
    MenuEntry("Calibration", links.CALIBRATION, "k", 80),
)
