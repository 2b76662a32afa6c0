"""What the room hangs into the browser beside its pages."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from pollex.web import links
from pollex.web.hooks import MenuEntry, PageLink, ran

REMEDIES = "/remedies"


def all_remedies(shown: Mapping[str, Any]) -> str:
    """Lead from the list of runs to all remedies, where there are any."""
    return REMEDIES if "remedy" in shown["commands"] else ""


def remedy_of_run(shown: Mapping[str, Any]) -> str:
    """Lead from a run to its remedy."""
    run = shown["run"]
    return f"{REMEDIES}/{run.id}" if run.command == "remedy" else ""


def change_of_rubric(shown: Mapping[str, Any]) -> str:
    """Lead from a rubric to what would change it."""
    rubric_id = quote(shown["rubric"].id, safe="")
    return f"{links.rubric_set(shown['named'].id)}/change/{rubric_id}"


HOOKS = (
    MenuEntry("Changes", REMEDIES, "x", 60, ran("remedy")),
    PageLink("runs.html", "Remedies", all_remedies),
    PageLink("run.html", "Remedy", remedy_of_run),
    PageLink("rubric.html", "What would change this?", change_of_rubric),
)
