"""What the room hangs into the browser beside its pages."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from pollex.web import links
from pollex.web.hooks import MenuEntry, PageLink, PagePanel, make_has_run
from pollex.web.site import Site

REMEDIES = "/remedies"


def all_remedies(shown: Mapping[str, Any]) -> str:
    """Lead from the list of runs to all remedies, where there are any."""
    return REMEDIES if "remedy" in shown["commands"] else ""


def remedy_of_run(shown: Mapping[str, Any]) -> str:
    """Lead from a run to its remedy."""
    run = shown["run"]
    return f"{REMEDIES}/{run.id}" if run.command == "remedy" else ""


def waits_of_child(shown: Mapping[str, Any]) -> str:
    """Lead from a command that waits for people to where they answer."""
    return proof_of_child(shown, "pending")


def verdict_of_child(shown: Mapping[str, Any]) -> str:
    """Lead from a proof that is done to its verdict."""
    return proof_of_child(shown, "done")


def proof_of_child(shown: Mapping[str, Any], state: str) -> str:
    """Return the address of a command's proof, where the command is in a state; else nothing."""
    run = shown["run"]
    is_proof = run is not None and run.command == "remedy" and shown["child"].state == state
    return f"{REMEDIES}/{run.id}" if is_proof else ""


def change_of_rubric(shown: Mapping[str, Any]) -> str:
    """Lead from a rubric to what would change it."""
    rubric_id = quote(shown["rubric"].id, safe="")
    return f"{links.rubric_set(shown['named'].id)}/change/{rubric_id}"


def life_of_rubric(site: Site, about: Mapping[str, Any]) -> Mapping[str, Any]:
    """Tell the life of a rubric on its page."""
    from pollex.rooms.remedy.web.pages.states import lives_in  # it needs this module

    return {"life": lives_in(site, [about["rubric"]])[0]}


def open_rubrics(site: Site, about: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """List on the first page the rubrics that somebody has to do something about."""
    from pollex.rooms.remedy.web.pages.states import open_lives  # as above

    named = about["named"]
    if named:
        lives = open_lives(site, named.rubric_set)
    else:
        lives = []

    return {"open": lives} if lives else None


HOOKS = (
    MenuEntry("Changes", REMEDIES, "x", 60, make_has_run("remedy")),
    PagePanel("home.html", "web/open_rubrics.html", open_rubrics),
    PagePanel("rubric.html", "web/life.html", life_of_rubric),
    PageLink("runs.html", "Remedies", all_remedies),
    PageLink("run.html", "Remedy", remedy_of_run),
    PageLink("child.html", "The verdict", verdict_of_child),
    PageLink("child.html", "Answer what it waits for", waits_of_child),
    PageLink("rubric.html", "What would change this?", change_of_rubric),
)
