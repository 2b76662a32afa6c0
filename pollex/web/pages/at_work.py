"""What is at work: commands that the browser started, runs that go on, and those that stopped before their end."""

import shlex
from typing import Any

from pollex.store.runs import Run
from pollex.web import links
from pollex.web.begun import fault_of, run_of
from pollex.web.children import Child
from pollex.web.faults import Clash
from pollex.web.kept_commands import go_on, kept_command, require_yes
from pollex.web.pages.runs import ENDED, pulse_of, to_go_on
from pollex.web.results import result_shown
from pollex.web.site import SCORING, Site
from pollex.web.views import Data, Done, page, post

LAST = 10
"""Commands that have ended and are still listed."""


@page(links.AT_WORK, "at_work.html", here="At work")
def at_work(site: Site, as_json: bool) -> Data:
    """List what goes on, what stopped, and what has ended since the server's start."""
    children = [child for child in reversed(site.children.by_id.values()) if not child.over]
    ended = [child for child in reversed(site.children.by_id.values()) if child.over]
    if as_json:
        return {"commands": [state_of(child) for child in (*children, *ended[:LAST])]}

    every = [(run, site.status(run)) for run in site.runs()]
    # runs of these commands stand with them, and not once more among the others
    of_children = set()
    for child in children:
        if run := run_of(site, child):
            of_children.add(run.id)

    return {
        "working": [(child, progress_of(site, child)) for child in children],
        "elsewhere": [
            (run, status, pulse_of(site, run))
            for run, status in every
            if status in ("running", "stalled") and run.id not in of_children
        ],
        "stopped": [(run, status, kept_command(site, run)) for run, status in to_go_on(every)],
        "ended": ended[:LAST],
        "folder": site.store.folder,
    }


def progress_of(site: Site, child: Child) -> Data:
    """Return the run that a command makes, and how far that is; no run before it has begun one."""
    run = run_of(site, child)
    fault = fault_of(child)
    # a command that made a queue leads to it
    queue = ""
    if isinstance(child.told, dict):
        queue = child.told.get("queue", "")
    if run is None:
        return {"run": None, "queue": queue, "fault": fault}

    status = site.status(run)
    return {
        "run": run,
        "status": status,
        "pulse": pulse_of(site, run) if status not in ENDED else None,
        "folder": site.store.folder,
        "queue": queue,
        "fault": fault,
        "scoring": run.command in SCORING,
        "changed": changes_of(site, run) if child.state == "done" else "",
    }


def changes_of(site: Site, run: Run) -> str:
    """Return where it stands what a run's rubric set changed beside the one before it; empty where there is none."""
    if run.command not in ("learn", "refit"):
        return ""

    # sets come latest first, so that the next one is the set before
    ids = [named.id for named in site.sets().values()]
    new = next(
        (named.id for named in site.sets().values() if named.run == run.id),
        "",
    )
    before = ids[ids.index(new) + 1 :] if new else []
    if before:
        return links.address(links.SET_DIFF, a=before[0], b=new)
    return ""


@page(f"{links.CHILDREN}/{{child}}", "child.html", here="At work")
def shown(site: Site, child: Child, as_json: bool) -> Data:
    """Show a command; once it is done, what it came to."""
    if as_json:
        return state_of(child)

    template, figures = result_shown(site, child) or ("", {})
    return progress_of(site, child) | {
        "result_template": template,
        "figures_of_result": figures,
        "begun_of_child": child.back.partition("begun=")[2],
        "command": shlex.join(["pollex", *(word for word in child.arguments if word != "--json")]),
    }


@page(f"{links.CHILDREN}/{{child}}/live", "child_live.html")
def live(site: Site, child: Child) -> Data:
    """Return the part of the page that tells how far the command is."""
    return progress_of(site, child) | {"headers": {"X-Pollex-Ended": "again" if child.over else ""}}


def state_of(child: Child) -> dict[str, Any]:
    """Return what is known of a command, as JSON values."""
    return {
        "id": child.id,
        "words": child.words,
        "state": child.state,
        "said": list(child.said),
        "told": child.told,
    }


@post("/api/children/{child}/stop")
def stop(child: Child) -> Done:
    """End a command; what it has done is kept."""
    child.stop()
    return f"{links.CHILDREN}/{child.id}", state_of(child)


@post("/api/runs/{run}/go-on")
def go_on_with(
    site: Site,
    run: Run,
    confirmed: str = "",
    key: str = "",
) -> Done:
    """Go on with a run that stopped, by the command that the store keeps, once somebody has said yes to it."""
    require_yes(site, run, confirmed)
    if site.status(run) in ("running", "stalled"):
        raise Clash(f"{run.id} is at work", hint="wait until it has ended")

    # kept for the address, where the command that starts now looks for it
    command = kept_command(site, run)
    if command is not None and key.strip():
        site.keys[command.key_address] = key.strip()

    child = go_on(site, run)
    if child is None:
        raise Clash(
            f"no command began {run.id}",
            hint="start it again where it was started, with `resume`",
        )

    return f"{links.CHILDREN}/{child.id}", {"child": child.id}
