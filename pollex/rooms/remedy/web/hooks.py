"""What the room hangs into the browser beside its pages."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from pollex.rooms.remedy.measures.advice import advise_on_record
from pollex.rooms.remedy.services.life import SCORING_COMMANDS
from pollex.rooms.remedy.services.result import REMEDY_COMMAND
from pollex.store.resume import read_step_result
from pollex.store.runs import Run
from pollex.web import links
from pollex.web.hooks import (
    MenuEntry,
    PageLink,
    PagePanel,
    RunKind,
    RunOutcome,
    WaitingWork,
    make_run_check,
)
from pollex.web.run_logs import list_runs_of_set, name_log_of_run
from pollex.web.site import NamedSet, Site

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

    named = about["named"]
    # another log of the store may have a rubric of the same id
    life = get_lives(site, [about["rubric"]], list_runs_of_set(site, named))[0]
    return {"life": life, "logs_of_lives": list_scored_logs(site, named)}


def list_scored_logs(site: Site, named: NamedSet) -> list[str]:
    """Return the names of the logs whose conversations count in the lives of a set's rubrics."""
    names = {}
    for run in list_runs_of_set(site, named):
        if run.command in SCORING_COMMANDS:
            names[name_log_of_run(run)] = run

    return [name for name in names if name]


def list_open_rubrics(site: Site, about: Mapping[str, Any]) -> Mapping[str, object] | None:
    """List on the first page the rubrics that somebody has to do something about."""
    from pollex.rooms.remedy.web.pages.states import list_open_lives  # as above

    named = about["named"]
    if named:
        lives = list_open_lives(site, named)
    else:
        lives = []

    return {"open": lives, "logs_of_lives": list_scored_logs(site, named)} if lives else None


def address_of_remedy(run: Run) -> str:
    """Lead from a run to what it waits for."""
    return f"{REMEDIES_PATH}/{run.id}"


def make_waiting_work(name: str, unit: str, more: str) -> WaitingWork:
    """Make what of a remedy waits for people.

    Args:
        name: What is counted, as `count_waiting` names it.
    """

    def count(site: Site, run: Run) -> int:
        from pollex.rooms.remedy.web.waiting import count_waiting  # pages need this module

        return count_waiting(site, run).get(name, 0)

    return WaitingWork("remedy", unit, count, address_of_remedy, more)


def describe_verdict(site: Site, run: Run) -> RunOutcome | None:
    """Say what a proof came to: release, try, don't, or not enough seen."""
    record = read_step_result(site.store, run.id, REMEDY_COMMAND)
    if not record:
        return None

    advice = advise_on_record(record)[0]
    return RunOutcome(advice, TONES_BY_ADVICE[advice])


TONES_BY_ADVICE = {
    "Release": "good",
    "Try on part of the traffic": "try",
    "Don't": "bad",
    "Not enough seen": "open",
}
"""How what to do is colored."""


HOOKS = (
    RunKind(REMEDY_COMMAND, "Proof of a change", describe_verdict),
    MenuEntry("Changes", REMEDIES_PATH, "x", 60, make_run_check("remedy")),
    PagePanel("home.html", "web/open_rubrics.html", list_open_rubrics),
    PagePanel("rubric.html", "web/life.html", show_life_of_rubric),
    PageLink("runs.html", "Changes of the prompt", link_all_remedies),
    PageLink("run.html", "The change", link_remedy_of_run),
    PageLink("child.html", "The verdict", link_verdict_of_child),
    PageLink("child.html", "Answer what it waits for", link_waiting_child),
    PageLink("rubric.html", "What would change this?", link_change_of_rubric),
    PageLink("home.html", "Change something", link_change_of_rubric),
    make_waiting_work("left", "pair to compare", "pairs to compare"),
    make_waiting_work(
        "compared", "compared pair, to go on with,", "compared pairs, to go on with,"
    ),
    make_waiting_work("proposals", "proposal to accept", "proposals to accept"),
    make_waiting_work("replies", "reply to bring", "replies to bring"),
)
