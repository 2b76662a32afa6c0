"""What the room hangs into the browser beside its pages."""

from collections.abc import Sequence
from pathlib import Path

from pollex.rooms.study.web.links import TALK_PATH
from pollex.rooms.study.web.profiles import SpeakerTable
from pollex.rooms.study.web.studies import get_study, read_studies
from pollex.web.hooks import GuestDoor, MenuEntry, ProfileTable, ServedFiles
from pollex.web.site import Site


def has_studies(site: Site) -> bool:
    """Return whether people can talk to a system."""
    return bool(site.store.value("SELECT count(*) FROM studies"))


def require_study(site: Site, id_: str) -> None:
    """Raise NotFound where there is no such study."""
    get_study(site.store, id_)


def keep_studies(site: Site, files: Sequence[Path]) -> None:
    """Keep the studies that a server is started with."""
    site.require_writing()
    site.store.put(read_studies(files, site.profiles))
    site.store.flush()


HOOKS = (
    MenuEntry("Talk", TALK_PATH, "t", 150, has_studies),
    GuestDoor("talk", TALK_PATH, ("/api/talks/",), require_study),
    ProfileTable(SpeakerTable, SpeakerTable.options, ("system", "documents")),
    ServedFiles("studies", keep_studies),
)
