"""Guests: people whose token opens one page, a queue to label or a study to take part in; or all, to read alone."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from starlette.requests import Request

from pollex.rooms import list_hooks
from pollex.store.seal import Seal
from pollex.store.store import Store
from pollex.web import links
from pollex.web.faults import Forbidden
from pollex.web.hooks import GuestDoor

READING_METHODS = ("GET", "HEAD")
GUEST_STATE_KEY = "guest"
"""Where a request's state names its guest."""


@dataclass(frozen=True)
class Guest:
    """Somebody who may see one page."""

    id: str
    name: str
    page: str

    @property
    def place(self) -> str:
        """The id of the queue or study."""
        return self.page.rpartition("/")[2]

    @property
    def is_reader(self) -> bool:
        """Whether they may see all pages, and begin and change nothing."""
        return self.page == links.HOME_PATH

    def may(self, path: str, method: str) -> bool:
        """Return whether a path is the guest's page, or where its forms go; a reader's are all pages."""
        if self.is_reader:
            return method in READING_METHODS
        # the page itself, and what stands below its address
        if path == self.page or path.startswith(f"{self.page}/"):
            return True

        # where forms of such pages go; behind an address with a slash stands the page's id
        pages = self.page.rpartition("/")[0]
        doors = (door for door in list_hooks(GuestDoor) if door.pages == pages)
        writes = []
        for door in doors:
            writes.extend(door.writes)

        # an id may begin with another one's: `s1` is no door to `s10`
        for address in writes:
            own = f"{address}{self.place}" if address.endswith("/") else address
            if path == own or (address.endswith("/") and path.startswith(f"{own}/")):
                return True

        return False


def find_guest(request: Request) -> Guest | None:
    """Return who asks, if it is a guest."""
    guest: Guest | None = request.scope.get("state", {}).get(GUEST_STATE_KEY)
    return guest


def require_guest_name(request: Request, name: str, place: str) -> None:
    """Raise Forbidden where a guest writes under another name than their own, or to another page than theirs."""
    guest = find_guest(request)
    if guest is not None and guest.name != name:
        raise Forbidden(
            "this link is somebody else's",
            hint=f"answer as {guest.name}",
        )

    if guest is not None and guest.place != place:
        raise Forbidden(
            "this is of another page than the link's",
            hint="open the link that you were given",
        )


def make_guest_finder(store: Store) -> Callable[[str], Guest | None]:
    """Make what finds a guest by token; links that were taken back, or not made here, open nothing."""

    # the seal's file is looked at once, and only where somebody brings a token
    @cache
    def seal_of_store() -> Seal:
        return Seal.of(store.folder)

    def find(token: str) -> Guest | None:
        if not token:
            return None

        rows = store.rows(
            "SELECT id, name, page FROM annotators WHERE digest = ? AND page <> '' "
            "AND id NOT IN (SELECT annotator FROM revocations)",
            [hash_token(seal_of_store(), token)],
        )
        return Guest(**rows[0]) if rows else None

    return find


def list_guest_links(store: Store, seal: Seal, page: str | None = None) -> list[dict[str, object]]:
    """List the guests of a page, or of all pages: id, name, time, and whether their link opens anything.

    Returns:
        Rows with `over` where the link was taken back, and `elsewhere` where another machine or an
        earlier pollex made it: it opens nothing.
    """
    return store.rows(
        "SELECT id, name, time, id IN (SELECT annotator FROM revocations) AS over, "
        "substr(digest, 1, ?) <> ? AS elsewhere FROM annotators "
        "WHERE page = coalesce(?, page) AND page <> '' ORDER BY rowid",
        [len(seal.name), seal.name, page],
    )


def hash_token(seal: Seal, token: str) -> str:
    """Return what the store keeps of a token: whoever makes a row for it needs this machine's seal."""
    return f"{seal.name}:{seal.sign('guest', token)}"
