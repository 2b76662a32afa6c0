"""Rubric sets as users name them: a file, a run that made one, or a digest."""

import os
from pathlib import Path

from pollex.errors import BadRubrics, WrongUse
from pollex.rubrics.edits import get_edits_path
from pollex.rubrics.rubric_set import RubricSet
from pollex.runs.options import RunOptions
from pollex.store.folder import DEFAULT_STORE_FOLDER, STORE_ENVIRONMENT_VARIABLE
from pollex.store.store import Store


def read_rubric_set(
    rubrics: Path | str | RubricSet,
    store: Path | None = None,
    *,
    arrays: bool = True,
    edits: bool = True,
) -> RubricSet:
    """Return a rubric set: as it is, of its file, or of the store by its run's name or its digest.

    Args:
        store: Where runs are kept; None for the usual one.
        arrays: See `RubricSet.load`; `edits` likewise. A set of the store has its arrays, and no
            file of edits.

    Raises:
        BadRubrics: There is none of this name, or it can't be read.
        BadCalibrator: The arrays of a file aren't beside it.
        WrongUse: Several sets of the store have this name.
    """
    if isinstance(rubrics, RubricSet):
        return rubrics

    path = Path(rubrics)
    folder = store or Path(os.environ.get(STORE_ENVIRONMENT_VARIABLE) or DEFAULT_STORE_FOLDER)
    # what has a folder or an ending in it is meant as a file, there or not
    if path.exists() or len(path.parts) != 1 or path.suffix or not folder.is_dir():
        return RubricSet.load(path, arrays=arrays, edits=edits)

    from pollex.store.rubric_sets import find_stored_rubric_set  # files don't need it

    with Store.open(folder, read_only=True) as opened:
        rubric_set = find_stored_rubric_set(opened, str(rubrics))

    if rubric_set is None:
        what = f"there is no such file, and no rubric set of this run or digest in {folder}"
        raise BadRubrics(
            what,
            where=str(rubrics),
            hint="`pollex runs` lists runs; `pollex learn` writes a set",
        )

    return rubric_set


def get_store_folder(run: RunOptions | None) -> Path | None:
    """Return where runs are kept; None for the usual place."""
    return None if run is None else run.store


def name_rubric_set(rubrics: Path | str | RubricSet) -> str:
    """Return how a set is called in messages; empty for one in memory."""
    if isinstance(rubrics, RubricSet):
        return ""
    return str(rubrics)


def require_not_edited(out: Path, *, own: object = None) -> None:
    """Refuse to overwrite a file that is an edited rubric set, or no rubric set.

    Args:
        own: What the set is read from: where that is this very file, it may be written anew.

    Raises:
        WrongUse: Says what to do.
    """
    if isinstance(own, str | Path) and out.exists() and out.resolve() == Path(own).resolve():
        return

    beside = get_edits_path(out)
    if not out.exists() and not beside.exists():
        return

    # a set without edits may be written anew; another file may not
    try:
        edited = RubricSet.load(out, arrays=False).has_edits
    except BadRubrics as error:
        what = "a file is there already that pollex did not write as it is"
        hint = "give another name"
        where = str(out if out.exists() else beside)
        raise WrongUse(what, where=where, hint=hint, option="out") from error

    if edited:
        what = "a person edited this rubric set, and it would be overwritten"
        hint = f"fit the edited rubrics (`pollex refit LOGS --rubrics {out}`), or give another name"
        raise WrongUse(what, where=str(out), hint=hint, option="out")
