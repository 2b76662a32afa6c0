"""Places where rubric sets and their reports are written, and what is never written over."""

from __future__ import annotations

from pathlib import Path

from pollex.errors import BadRubrics, WrongUse
from pollex.formats.write import require_apart, require_writable
from pollex.reports.page import file_of
from pollex.rubrics.edits import edits_beside
from pollex.rubrics.rubric_set import RubricSet

REPORT = "report.html"


def require_places(out: Path, *read: str) -> None:
    """Refuse output paths that overwrite each other or an input."""
    require_writable(out, *read)
    report = report_of(out)
    require_apart(out, report)
    require_writable(report, *read)


def require_not_edited(out: Path) -> None:
    """Refuse to overwrite a file that is an edited rubric set, or no rubric set.

    Raises:
        WrongUse: Says what to do.
    """
    beside = edits_beside(out)
    if not out.exists() and not beside.exists():
        return
    try:
        edited = RubricSet.load(out, arrays=False).has_edits
    except BadRubrics as error:
        what, remedy = "a file is there already that learn did not write as it is", "give another name"
        where = str(out if out.exists() else beside)
        raise WrongUse(what, where=where, remedy=remedy, option="out") from error
    if edited:
        what = "a person edited this rubric set, and learn would overwrite it"
        remedy = f"fit the edited rubrics (`pollex refit LOGS --rubrics {out}`), or give another name"
        raise WrongUse(what, where=str(out), remedy=remedy, option="out")


def report_of(out: Path) -> Path:
    """Return the report's path; with the set's name if another set's report is there."""
    usual = out.with_name(REPORT)
    owner = file_of(usual)
    if owner in (None, out.name) or not (out.parent / owner).is_file():
        return usual
    return out.with_name(f"{out.stem}-{REPORT}")
