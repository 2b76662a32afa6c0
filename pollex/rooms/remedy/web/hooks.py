"""What the room hangs into the browser beside its pages."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from pollex.web import links
from pollex.web.hooks import MenuEntry, PageLink, PagePanel, make_run_check
from pollex.web.site import Site

REMEDIES_PATH = "/remedies"


def link_all_remedies(shown: Mapping[str, Any]) -> str:
    """Lead from the list of runs to all remedies, where there are any."""
    return REMEDIES_PATH if "remedy" in shown["commands"] else ""


def link_remedy_of_run(shown: Mapping[str, Any]) -> str:
    """Lead from a run to its remedy."""
    run = shown["run"]
    return f"{REMEDIES_PATH}/{run.id}" if run.command == "remedy" else ""


def link_waiting_child(shown: Mapping[str, object]) -> str:
    """Lead from a command that waits for people to where they answer."""
    return find_proof_address(shown, "pending")


def link_verdict_of_child(shown: Mapping[str, object]) -> str:
    """Lead from a proof that is done to its verdict."""
    return find_proof_address(shown, "done")


def find_proof_address(shown: Mapping[str, Any], state: str) -> str:
    """Return the address of a command's proof, where the command is in a state; else nothing."""
    run = shown["run"]
    is_proof = run is not None and run.command == "remedy" and shown["child"].state == state
    return f"{REMEDIES_PATH}/{run.id}" if is_proof else ""


def link_change_of_rubric(shown: Mapping[str, Any]) -> str:
    """Lead from a rubric to what would change it."""
    rubric_id = quote(shown["rubric"].id, safe="")
    return f"{links.link_to_rubric_set(shown['named'].id)}/change/{rubric_id}"


def show_life_of_rubric(site: Site, about: Mapping[str, Any]) -> Mapping[str, Any]:
    """Tell the life of a rubric on its page."""
    from pollex.rooms.remedy.web.pages.states import get_lives  # it needs this module

    return {"life": get_lives(site, [about["rubric"]])[0]}


def list_open_rubrics(site: Site, about: Mapping[str, Any]) -> Mapping[str, object] | None:
    """List on the first page the rubrics that somebody has to do something about."""
    from pollex.rooms.remedy.web.pages.states import list_open_lives  # as above

    named = about["named"]
    if named:
        lives = list_open_lives(site, named.rubric_set)
    else:
        lives = []

    return {"open": lives} if lives else None


HOOKS = (
    MenuEntry("Changes", REMEDIES_PATH, "x", 60, make_run_check("remedy")),
    PagePanel("home.html", "web/open_rubrics.html", list_open_rubrics),
    PagePanel("rubric.html", "web/life.html", show_life_of_rubric),
    PageLink("runs.html", "Remedies", link_all_remedies),
    PageLink("run.html", "Remedy", link_remedy_of_run),
    PageLink("child.html", "The verdict", link_verdict_of_child),
    PageLink("child.html", "Answer what it waits for", link_waiting_child),
    PageLink("rubric.html", "What would change this?", link_change_of_rubric),
    PageLink("home.html", "Change something", link_change_of_rubric),
)
