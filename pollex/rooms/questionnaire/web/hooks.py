"""What the room hangs into the browser beside its pages."""

from collections.abc import Sequence
from typing import Any

from pollex.rooms.questionnaire.web.calibrators import get_calibrator_folders, show_calibrators
from pollex.web.hooks import NamedCalibrators, ServedFiles
from pollex.web.site import Site


def names_of_calibrators(site: Site) -> Sequence[str]:
    """Return the names of the calibrators that are shown."""
    return [*get_calibrator_folders(site)]


def calibrator_shown(site: Site, name: str) -> dict[str, Any]:
    """Return what fills the page of a calibrator."""
    # reports take a while to import: such pages alone need it
    from pollex.rooms.questionnaire.web.pages.calibrators import calibrator_page

    return calibrator_page(site, name)


HOOKS = (
    NamedCalibrators(names_of_calibrators, calibrator_shown),
    ServedFiles("calibrators", show_calibrators, always=True),
)
