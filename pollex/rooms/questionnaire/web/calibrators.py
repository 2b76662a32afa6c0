"""Calibrators that were fitted to tables, by the names of their folders."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pollex.calibration import CALIBRATOR_FILE_NAME
from pollex.errors import BadCalibrator, WrongUse
from pollex.web.site import Site


@dataclass
class CalibratorMemory:
    """What the room remembers while the server runs.

    Attributes:
        folders: By name.
    """

    folders: dict[str, Path] = field(default_factory=dict)


def get_calibrator_folders(site: Site) -> dict[str, Path]:
    """Return the folders of the calibrators that are shown, by name."""
    return site.memory_of(CalibratorMemory).folders


def show_calibrators(site: Site, folders: Sequence[Path]) -> None:
    """Show the calibrators that were named, or else those next to the store."""
    if folders:
        named = name_calibrators(folders)
    else:
        named = find_calibrators_beside(site.store.folder)

    get_calibrator_folders(site).update(named)


def name_calibrators(folders: Sequence[Path]) -> dict[str, Path]:
    """Name calibrators after their folders.

    Raises:
        BadCalibrator: There is none in one of them.
        WrongUse: Two folders have the same name.
    """
    paths: dict[str, Path] = {}
    for folder in folders:
        if not (folder / CALIBRATOR_FILE_NAME).is_file():
            raise BadCalibrator(
                "there is no calibrator",
                where=str(folder),
                hint="`pollex calibrate fit` writes one",
            )

        if (name := folder.absolute().name) in paths:
            raise WrongUse(
                f"two calibrators are called {name!r}",
                hint="rename one of the folders",
                option="calibrator",
            )

        paths[name] = folder

    return paths


def find_calibrators_beside(folder: Path) -> dict[str, Path]:
    """Find the calibrators next to a store."""
    return name_calibrators(
        [path.parent for path in sorted(folder.absolute().parent.glob(f"*/{CALIBRATOR_FILE_NAME}"))]
    )
