"""What the page of a run shows of its grades."""

from typing import Any

from pollex.rooms.grade.formats.grade_summary import summarize_grades
from pollex.rooms.grade.reports.grades import choose_example, prepare_sections
from pollex.rooms.grade.services.grade import read_kept_gradings
from pollex.store.runs import Run
from pollex.web.site import Site


def show_run_grades(site: Site, run: Run) -> dict[str, object] | None:
    """Return what the sections of a page on an ended run's grades show; None if it is no run of `grade`."""
    # grades of a run that goes on would change from look to look
    if run.finished is None or run.command != "grade":
        return None

    # computed once for an ended run: intervals take a while
    def made() -> dict[str, Any] | None:
        profile_and_gradings = read_kept_gradings(site.store, run.id)
        if profile_and_gradings is None:
            return None

        profile, gradings = profile_and_gradings
        return prepare_sections(
            summarize_grades(profile, gradings),
            profile.pivot,
            choose_example(profile, gradings),
        )

    return site.once("graded", run, made)
