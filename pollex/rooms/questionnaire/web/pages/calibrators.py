"""The page of a calibrator that was fitted to tables: the report on it, measured while the page is open."""

from functools import partial
from pathlib import Path

from pollex.errors import BadInput
from pollex.graphs.context import Progress
from pollex.rooms.questionnaire.reports.calibration import CalibrationData, prepare_page_values
from pollex.rooms.questionnaire.web.calibrators import get_calibrator_folders
from pollex.web import links
from pollex.web.faults import NotFound
from pollex.web.site import Site
from pollex.web.soon import BackgroundValue
from pollex.web.views import PageData, page

TEXTS_IN_RUN_QUERY = "SELECT DISTINCT id FROM conversations WHERE id IN (SELECT unnest(?))"
PATIENCE_SECONDS = 0.3
"""Seconds that a page waits for figures before it says that they are being worked out."""


def show_calibrator_page(site: Site, name: str) -> PageData:
    """Return what fills the page of a calibrator."""
    soon = get_or_begin_figures(site, name)
    # short work is waited for, so that the page comes with its figures
    soon.wait(PATIENCE_SECONDS)
    shown: PageData = {"name": name, "soon": soon, "template": "calibrator.html"}
    if not soon.value:
        return shown | {"data": None, "opens": {}}

    tails = set()
    for prediction in soon.value.predicted:
        for text in prediction.tail:
            tails.add(text.id)

    return shown | {"opens": link_texts(site, tails)} | prepare_page_values(soon.value)


def link_texts(site: Site, texts: set[str]) -> dict[str, str]:
    """Return where texts are shown, of those that a run of this store has; the latest run first."""
    ids = sorted(texts)
    address_by_id: dict[str, str] = {}
    # runs come latest first, so that an address which is there already stays
    for run in site.runs():
        rows = site.store.ask(run.id, TEXTS_IN_RUN_QUERY, [ids])
        address_by_id = {
            row["id"]: links.link_to_conversation(run.id, row["id"]) for row in rows
        } | address_by_id

    return address_by_id


@page(f"{links.CALIBRATION_PATH}/{{calibrator}}/live", "soon.html")
def show_live(site: Site, calibrator_id: str) -> PageData:
    """Return the part of the page that says what is being worked out."""
    soon = get_or_begin_figures(site, calibrator_id)
    return {"headers": {"X-Pollex-Ended": "again" if soon.over else ""}, "soon": soon}


def get_or_begin_figures(site: Site, name: str) -> BackgroundValue:
    """Return the figures of a calibrator, or how far they are.

    Raises:
        NotFound: There is no such calibrator.
    """
    folder = get_calibrator_folders(site).get(name)
    if folder is None:
        raise NotFound(
            f"there is no calibrator {name!r}",
            hint="the page Calibration has those there are",
        )

    return site.kept(
        ("calibrator", name), lambda: BackgroundValue(partial(measure_calibrator_of_folder, folder))
    )


def measure_calibrator_of_folder(folder: Path, progress: Progress) -> CalibrationData:
    """Measure a calibrator on the tables that it was fitted to.

    Raises:
        BadInput: They are not known, or not there any more.
    """
    # scikit-learn comes with it, and takes a second to import
    from pollex.rooms.questionnaire.services.calibration_report import measure_calibrator
    from pollex.rooms.questionnaire.services.training_record import read_training_record

    # two tables: answers, then judgments
    names = read_training_record(folder).files
    if len(names) != 2:
        hint = "fit it again, or see `pollex calibrate report`"
        raise BadInput(
            "it doesn't say which tables it was fitted to",
            where=str(folder),
            hint=hint,
        )

    answers, judgments = (find_table(Path(name), folder) for name in names)
    return measure_calibrator(folder, answers, judgments, quick=True, progress=progress)[1]


def find_table(path: Path, folder: Path) -> str:
    """Return where a table lies: as it was named, or beside the calibrator; else its name, for the error to tell."""
    places = [
        path,
        folder.parent / path,
        folder.parent / path.name,
        folder / path.name,
    ]
    return str(next((place for place in places if place.exists()), path))
