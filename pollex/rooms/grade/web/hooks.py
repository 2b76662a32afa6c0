"""What the room hangs into the browser."""

from collections.abc import Mapping

from pollex.store.runs import Run
from pollex.web.hooks import PagePanel, make_run_figures
from pollex.web.site import Site


def show_grades(site: Site, run: Run) -> Mapping[str, object] | None:
    """Return what the panel on the grades of a run shows."""
    from pollex.rooms.grade.web.grades import show_run_grades  # such pages alone need it

    return show_run_grades(site, run)


HOOKS = (PagePanel("run.html", "grades_sections.html", make_run_figures("grade", show_grades)),)
