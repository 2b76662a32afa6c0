"""What the room hangs into the browser beside its pages."""

from collections.abc import Sequence

from pollex.rooms.questionnaire.web.calibrators import get_calibrator_folders, show_calibrators
from pollex.web.hooks import NamedCalibrators, ServedFiles
from pollex.web.site import Site


def list_calibrator_names(site: Site) -> Sequence[str]:
    """Return the names of the calibrators that are shown."""
    return [*get_calibrator_folders(site)]


def show_calibrator(site: Site, name: str) -> dict[str, object]:
    """Return what fills the page of a calibrator."""
    # reports take a while to import: such pages alone need it
    from pollex.rooms.questionnaire.web.pages.calibrators import show_calibrator_page

    return show_calibrator_page(site, name)


HOOKS = (
    NamedCalibrators(list_calibrator_names, show_calibrator),
    ServedFiles("calibrators", show_calibrators, always=True),
)
