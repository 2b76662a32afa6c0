"""What is at work: commands that the browser started, runs that go on, and those that stopped before their end."""

import shlex

from pollex.store.runs import Run
from pollex.web import links
from pollex.web.begun import find_run_of_child, get_failure_of_child
from pollex.web.children import Child
from pollex.web.faults import VersionConflict
from pollex.web.hooks import describe_outcome, find_waiting_work
from pollex.web.kept_commands import go_on_with_run, read_kept_command, require_confirmation
from pollex.web.pages.runs import ENDED_STATUSES, list_stopped_runs, measure_progress
from pollex.web.results import show_result
from pollex.web.run_logs import identify_logs_of_run
from pollex.web.scored_run import summarize_scores
from pollex.web.site import SCORING_COMMANDS, Site
from pollex.web.views import NextPage, PageData, page, post

MAX_ENDED_SHOWN = 10
"""Commands that have ended and are still listed."""


@page(links.AT_WORK_PATH, "at_work.html", here="At work")
def show_work(site: Site, as_json: bool) -> PageData:
    """List what goes on, what stopped, and what has ended since the server's start."""
    children = []
    for child in reversed(site.children.by_id.values()):
        if not child.over:
            children.append(child)

    ended = []
    for child in reversed(site.children.by_id.values()):
        if child.over:
            ended.append(child)

    if as_json:
        return {
            "commands": [make_state_json(child) for child in (*children, *ended[:MAX_ENDED_SHOWN])]
        }

    every = [(run, site.status(run)) for run in site.runs()]
    # runs of these commands stand with them, and not once more among the others
    of_children = set()
    for child in children:
        if run := find_run_of_child(site, child):
            of_children.add(run.id)

    # what ended also before the server's start, so that one sees what came of it
    last_runs: list[tuple[Run, str]] = []
    for run, status in every:
        if status in ("done", "partial") and len(last_runs) < MAX_ENDED_SHOWN:
            last_runs.append((run, status))

    return {
        "working": [(child, get_progress(site, child)) for child in children],
        "elsewhere": [
            (run, status, measure_progress(site, run))
            for run, status in every
            if status in ("running", "stalled") and run.id not in of_children
        ],
        "stopped": [
            (run, status, read_kept_command(site, run)) for run, status in list_stopped_runs(every)
        ],
        "waits_for": {run.id: find_waiting_work(site, run) for run, _ in list_stopped_runs(every)},
        "ended": ended[:MAX_ENDED_SHOWN],
        "last": last_runs,
        "came_to": {run.id: describe_outcome(site, run) for run, _ in last_runs},
        "folder": site.store.folder,
    }


def get_progress(site: Site, child: Child) -> PageData:
    """Return the run that a command makes, and how far that is; no run before it has begun one."""
    run = find_run_of_child(site, child)
    fault = get_failure_of_child(child)
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
        "pulse": measure_progress(site, run) if status not in ENDED_STATUSES else None,
        "folder": site.store.folder,
        "queue": queue,
        "fault": fault,
        "scoring": run.command in SCORING_COMMANDS,
        "scored": summarize_scores(site, run) if child.state == "done" else None,
        "changed": find_changes_page(site, run) if child.state == "done" else "",
    }


def find_changes_page(site: Site, run: Run) -> str:
    """Return where it stands what a run's rubric set changed beside the one before it; empty where there is none."""
    if run.command not in ("learn", "refit"):
        return ""

    # sets of another log have other rubrics anyway: that is no change
    logs = identify_logs_of_run(run)
    runs_on_log = {other.id for other in site.runs() if identify_logs_of_run(other) == logs}
    # sets come latest first, so that the next one is the set before
    ids = [named.id for named in site.sets().values() if named.run in runs_on_log]
    new = next(
        (named.id for named in site.sets().values() if named.run == run.id),
        "",
    )
    before = ids[ids.index(new) + 1 :] if new else []
    if before:
        return links.make_address(links.SET_DIFF_PATH, a=before[0], b=new)
    return ""


@page(f"{links.CHILDREN_PATH}/{{child}}", "child.html", here="At work")
def show_child(site: Site, child: Child, as_json: bool) -> PageData:
    """Show a command; once it is done, what it came to."""
    if as_json:
        return make_state_json(child)

    template, figures = show_result(site, child) or ("", {})
    arguments = []
    for word in child.arguments:
        if word != "--json":
            arguments.append(word)

    return get_progress(site, child) | {
        "result_template": template,
        "figures_of_result": figures,
        "begun_of_child": child.back.partition("begun=")[2],
        "id_of_child": child.id,
        "command": shlex.join(["pollex", *arguments]),
    }


@page(f"{links.CHILDREN_PATH}/{{child}}/live", "child_live.html")
def show_child_live(site: Site, child: Child) -> PageData:
    """Return the part of the page that tells how far the command is."""
    return get_progress(site, child) | {
        "headers": {"X-Pollex-Ended": "again" if child.over else ""}
    }


def make_state_json(child: Child) -> PageData:
    """Return what is known of a command, as JSON values."""
    return {
        "id": child.id,
        "words": child.words,
        "state": child.state,
        "said": list(child.said),
        "told": child.told,
    }


@post("/api/children/{child}/stop")
def stop_child(child: Child) -> NextPage:
    """End a command; what it has done is kept."""
    child.stop()
    return f"{links.CHILDREN_PATH}/{child.id}", make_state_json(child)


@post("/api/runs/{run}/go-on")
def go_on_with_stopped_run(
    site: Site,
    run: Run,
    confirmed: str = "",
    key: str = "",
) -> NextPage:
    """Go on with a run that stopped, by the command that the store keeps, once somebody has said yes to it."""
    require_confirmation(site, run, confirmed)
    if site.status(run) in ("running", "stalled"):
        raise VersionConflict(f"{run.id} is at work", hint="wait until it has ended")

    # kept for the address, where the command that starts now looks for it
    command = read_kept_command(site, run)
    if command is not None and key.strip():
        site.keys[command.key_address] = key.strip()

    child = go_on_with_run(site, run)
    if child is None:
        raise VersionConflict(
            f"no command began {run.id}",
            hint="start it again where it was started, with `resume`",
        )

    return f"{links.CHILDREN_PATH}/{child.id}", {"child": child.id}
