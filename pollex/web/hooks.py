"""What a room hangs into the browser beside its pages.

A room names them in its own `web/hooks.py`, as the tuple `HOOKS`; those of the core stand at the end.
"""

from collections.abc import Iterator
from dataclasses import dataclass

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
