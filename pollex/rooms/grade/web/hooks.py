"""What the room hangs into the browser."""

from collections.abc import Mapping
from typing import Any

from pollex.store.runs import Run
from pollex.web.hooks import PagePanel, make_run_figures
from pollex.web.site import Site


def grades_shown(site: Site, run: Run) -> Mapping[str, Any] | None:
    """Return what the panel on the grades of a run shows."""
    from pollex.rooms.grade.web.grades import grades_of  # such pages alone need it

    return grades_of(site, run)


HOOKS = (PagePanel("run.html", "grades_sections.html", make_run_figures("grade", grades_shown)),)
