"""A run's states: what each node changed, the pool where it waits, forks with another pool, and commands."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from starlette.responses import JSONResponse, Response

from pollex.errors import BadRubrics, PollexError
from pollex.services.pool_review import Fork, begin_fork, take_pool, waiting_pool
from pollex.store.database import CHECKPOINTS
from pollex.store.runs import Run
from pollex.web import links
from pollex.web.children import Child
from pollex.web.faults import Fault, NotThere
from pollex.web.forms import Fields
from pollex.web.kept_commands import go_on, require_yes
from pollex.web.site import Site
from pollex.web.views import Data, Done, page, post

LONGEST = 4000
"""Characters of a value that a page shows; the whole state is JSON at an address of its own."""
EDITED = ("deduplicate", "review_pool", "select")
"""Nodes at which a page has the pool to edit; a fork with one after any other does the same as at one of these."""
NEW = 3
"""Empty rows for rubrics of one's own."""


@dataclass(frozen=True)
class NodeChange:
    """The last time that a node ran.

    Attributes:
        changed: What it changed in the state, by key: JSON for people.
        pool: The pool after it, where a run can be forked; empty elsewhere.
        state: The state after it.
    """

    node: str
    changed: Mapping[str, str]
    pool: Sequence[Mapping[str, Any]]
    state: Mapping[str, Any]

    @property
    def told(self) -> str:
        """What it changed, in a line."""
        return ", ".join(_counted(name, self.state[name]) for name in self.changed)


def _counted(name: str, value: Any) -> str:
    return f"{name} {len(value)}" if isinstance(value, list | dict) else name


Pool = Annotated[Fields, "text-", "polarity-", "was-", "out-"]
"""A pool as edited: of each row `text-1`, `polarity-1`, `was-1` if it is none of one's own, `out-1` to take it out."""


@dataclass(frozen=True)
class RunStates:
    """What a page shows of a run's states.

    Attributes:
        waiting: The pool at which it waits for people; empty where it doesn't.
        trouble: Why its states can't be read; the rest of the page doesn't need them.
    """

    changes: Sequence[NodeChange] = ()
    waiting: Sequence[Mapping[str, Any]] = ()
    trouble: str = ""


def states_shown(site: Site, run: Run, status: str) -> RunStates:
    """Return the states of a run, or why they can't be read."""
    try:
        return RunStates(changes_of(site, run), pool_waiting(site, run, status))
    except PollexError as error:
        return RunStates(trouble=str(error))


def changes_of(site: Site, run: Run) -> list[NodeChange]:
    """Return what the nodes of a run changed, in their order; those of an ended run are kept.

    Raises:
        StoreDamaged: A state isn't what a run wrote.
    """
    known = (site.store.folder / CHECKPOINTS).exists()
    return site.once("states", run, lambda: _changes(site, run)) if known else []


def _changes(site: Site, run: Run) -> list[NodeChange]:
    from pollex.graphs.run import states_of  # LangGraph comes with it

    found: dict[str, NodeChange] = {}
    before: Mapping[str, Any] = {}
    for nodes, state in asyncio.run(states_of(site.store, run)):
        changed = {key: told(value) for key, value in state.items() if before.get(key) != value}
        for node in nodes:
            if not node.startswith("__"):
                pool = state.get("kept", []) if run.command == "learn" and node in EDITED else []
                found.pop(node, None)
                found[node] = NodeChange(node, changed, pool, state)
        before = state
    return list(found.values())


def told(value: Any) -> str:
    """Return a value as JSON for people, a line for each row of a table, cut where it is long."""
    if isinstance(value, dict):
        text = "\n".join(f"{key}: {json.dumps(one, ensure_ascii=False)}" for key, one in value.items())
    elif isinstance(value, list):
        text = "\n".join(json.dumps(one, ensure_ascii=False) for one in value)
    else:
        text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} … ({len(text):,} characters)"


def pool_waiting(site: Site, run: Run, status: str) -> Sequence[Mapping[str, Any]]:
    """Return the pool at which a run waits for people; empty where it doesn't."""
    if run.command != "learn" or status != "interrupted" or not (site.store.folder / CHECKPOINTS).exists():
        return []
    return asyncio.run(waiting_pool(site.store, run))


@page("/api/runs/{run}/state")
def state(site: Site, run: Run, node: str) -> Response:
    """Return the state after a node as JSON."""
    for change in changes_of(site, run):
        if change.node == node:
            return JSONResponse(dict(change.state))
    raise NotThere(f"the run has no state after {node}", remedy="its page names those it has")


@post("/api/runs/{run}/pool")
def edit_pool(site: Site, run: Run, pool: Pool, node: str = "", confirmed: str = "") -> Done:
    """Take an edited pool, and carry on the run that waits with it, or with a `node` a fork after that.

    An empty row of one's own is none. `confirmed` is the digest of the kept command that somebody said yes to.
    """
    require_yes(site, run, confirmed)
    rows = [
        {"id": "", "text": pool.get(f"text-{n}", ""), "polarity": side}
        for name, side in pool.items()
        for kind, _, n in [name.partition("-")]
        if kind == "polarity" and f"out-{n}" not in pool and (f"text-{n}" in pool or f"was-{n}" in pool)
    ]
    try:
        named = asyncio.run(_edited(site, run, node, rows))
    except BadRubrics as wrong:
        place = f"{wrong.where}: " if wrong.where else ""
        raise Fault(f"the pool is not taken: {place}{wrong.what}", remedy=wrong.remedy) from wrong
    child = go_on(site, site.run(named))
    return links.run(named), {"run": named, "child": child and child.id}


async def _edited(site: Site, run: Run, node: str, rows: Sequence[Mapping[str, str]]) -> str:
    """Return the run that has the pool now.

    Raises:
        BadRubrics: A rubric is a duplicate, empty, or the reverse of another; or none is left.
    """
    if not node:
        await take_pool(site.store, run, rows)
        return run.id
    if not rows:
        raise BadRubrics("the pool has no rubric left", remedy="leave one at least")
    return (await begin_fork(site.store, Fork(run.id, node, rows))).id


@page(f"{links.CHILDREN}/{{child}}", "child.html")
def shown(child: Child, as_json: bool) -> Data:
    """Show a command."""
    return state_of(child) if as_json else {}


@page(f"{links.CHILDREN}/{{child}}/live", "child_live.html")
def live(child: Child) -> Data:
    """Return the part of the page that tells how far the command is."""
    ended = "again" if child.back == links.HOME else "1"
    return {"headers": {"X-Pollex-Ended": ended if child.over else ""}}


def state_of(found: Child) -> dict[str, object]:
    """Return what is known of a command, as JSON values."""
    return {"id": found.id, "state": found.state, "said": list(found.said), "told": found.told}


@post("/api/children/{child}/stop")
def stop(child: Child) -> Done:
    """End a command; what it has done is kept."""
    child.stop()
    return f"{links.CHILDREN}/{child.id}", state_of(child)
