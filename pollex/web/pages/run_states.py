"""A run's states: what each node changed, the pool where it waits, forks with another pool, and commands."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from starlette.responses import JSONResponse, Response

from pollex.errors import BadRubrics, PollexError
from pollex.runs.pool_review import RunFork, begin_forked_run, get_waiting_pool, resume_with_pool
from pollex.store.database import CHECKPOINTS_FILE_NAME
from pollex.store.runs import Run
from pollex.text import JsonDict, JsonObject
from pollex.web import links
from pollex.web.faults import NotFound, RequestError
from pollex.web.forms import PrefixedFields
from pollex.web.kept_commands import go_on_with_run, require_confirmation
from pollex.web.site import Site
from pollex.web.views import NextPage, page, post

MAX_TABLE_ROWS = 60
"""Rows of a table that a page shows; the whole state is JSON at an address of its own."""
NODES_WITH_POOL = ("deduplicate", "review_pool", "select")
"""Nodes at which a page has the pool to edit; a fork with one after any other does the same as at one of these."""
NEW_RUBRIC_ROWS = 3
"""Empty rows for rubrics of one's own."""


@dataclass(frozen=True)
class NodeChange:
    """The last time that a node ran.

    Attributes:
        changed: What it changed in the state, by key.
        pool: The pool after it, where a run can be forked; empty elsewhere.
        state: The state after it.
    """

    node: str
    changed: JsonDict
    pool: Sequence[JsonObject]
    state: JsonDict

    @property
    def told(self) -> str:
        """What it changed, in a line."""
        return ", ".join(_describe_count(name, self.state[name]) for name in self.changed)


def _describe_count(name: str, value: object) -> str:
    if isinstance(value, list | dict):
        return f"{name} {len(value)}"
    return name


PoolFields = Annotated[PrefixedFields, "text-", "polarity-", "was-", "out-"]
"""A pool as edited: of each row `text-1`, `polarity-1`, `was-1` if it is none of one's own, `out-1` to take it out."""


@dataclass(frozen=True)
class RunStates:
    """What a page shows of a run's states.

    Attributes:
        waiting: The pool at which it waits for people; empty where it doesn't.
        trouble: Why its states can't be read; the rest of the page doesn't need them.
    """

    changes: Sequence[NodeChange] = ()
    waiting: Sequence[Mapping[str, object]] = ()
    trouble: str = ""


def read_states(site: Site, run: Run, status: str) -> RunStates:
    """Return the states of a run, or why they can't be read."""
    try:
        return RunStates(list_node_changes(site, run), read_waiting_pool(site, run, status))
    except PollexError as error:
        return RunStates(trouble=str(error))


def list_node_changes(site: Site, run: Run) -> list[NodeChange]:
    """Return what the nodes of a run changed, in their order; those of an ended run are kept.

    Raises:
        StoreDamaged: A state isn't what a run wrote.
    """
    # a store without checkpoints has no states to read
    has_checkpoints = (site.store.folder / CHECKPOINTS_FILE_NAME).exists()
    if has_checkpoints:
        return site.once("states", run, lambda: _compute_node_changes(site, run))
    return []


def _compute_node_changes(site: Site, run: Run) -> list[NodeChange]:
    from pollex.graphs.run import list_states_of_run  # LangGraph comes with it

    node_changes: dict[str, NodeChange] = {}
    before: JsonDict = {}
    for nodes, state in asyncio.run(list_states_of_run(site.store, run)):
        # keys whose value is another one than before the node
        changed = {}
        for key, value in state.items():
            if before.get(key) != value:
                changed[key] = make_state_table(value)
        for node in nodes:
            # start and end of the graph are nodes by name only
            if not node.startswith("__"):
                # a fork takes another pool only after these nodes
                if run.command == "learn" and node in NODES_WITH_POOL:
                    pool = state.get("kept", [])
                else:
                    pool = []

                # taken out first, so that nodes stand in the order in which each ran last
                node_changes.pop(node, None)
                node_changes[node] = NodeChange(node, changed, pool, state)

        before = state

    return list(node_changes.values())


@dataclass(frozen=True)
class StateTable:
    """A value of a state as a table; what is nested in it is a table again.

    Attributes:
        columns: Their headings; none where the table has two columns, names and values.
        rows: Cells, the first a heading of its row: plain values or tables.
        more: Rows that are left out.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]
    more: int = 0

    def __str__(self) -> str:
        return f"{len(self.rows) + self.more} rows"


def make_state_table(value: object) -> object:
    """Return a value of a state as people read it: lists and objects as tables, plain values as they are."""
    if isinstance(value, dict) and value:
        return _make_object_table(value)
    if isinstance(value, list) and value:
        return _make_list_table(value)
    if value is None or value in ({}, []):
        return "none"
    return ("no", "yes")[value] if isinstance(value, bool) else value


def _make_object_table(value: JsonDict) -> StateTable:
    items = list(value.items())[:MAX_TABLE_ROWS]
    more = len(value) - len(items)
    # objects of the same shape share their columns, with a row for each
    columns = _find_shared_columns([entry for _, entry in items])
    if columns:
        rows = []
        for name, entry in items:
            rows.append((name, *(make_state_table(entry.get(column)) for column in columns)))
        return StateTable(("", *columns), tuple(rows), more)

    return StateTable(
        (),
        tuple((name, make_state_table(entry)) for name, entry in items),
        more,
    )


def _make_list_table(value: Sequence[Any]) -> object:
    # plain values need no table
    if not any(isinstance(entry, dict | list) for entry in value):
        return ", ".join(map(str, value[:MAX_TABLE_ROWS])) + (
            f" and {len(value) - MAX_TABLE_ROWS} more" * (len(value) > MAX_TABLE_ROWS)
        )

    first = value[:MAX_TABLE_ROWS]
    columns = _find_shared_columns(first)
    if columns:
        rows = []
        for entry in first:
            rows.append(tuple(make_state_table(entry.get(column)) for column in columns))
    else:
        rows = []
        for number, entry in enumerate(first, 1):
            rows.append((number, make_state_table(entry)))

    return StateTable(columns, tuple(rows), len(value) - len(first))


def _find_shared_columns(rows: Sequence[Any]) -> tuple[str, ...]:
    """Return the columns of rows that are all objects; none where one is none, or there is one row alone of many."""
    if not rows or not all(isinstance(row, dict) and row for row in rows):
        return ()
    names: list[str] = []
    for row in rows:
        names.extend(row)
    return tuple(dict.fromkeys(names))


def read_waiting_pool(site: Site, run: Run, status: str) -> Sequence[JsonObject]:
    """Return the pool at which a run waits for people; empty where it doesn't."""
    # a learning run waits for people at its pool, and is stored as interrupted
    if (
        run.command != "learn"
        or status != "interrupted"
        or not (site.store.folder / CHECKPOINTS_FILE_NAME).exists()
    ):
        return []

    return asyncio.run(get_waiting_pool(site.store, run))


def describe_status(site: Site, run: Run, status: str) -> str:
    """Return a run's state as people read it: one that waits for them at its pool isn't interrupted."""
    try:
        return "waiting" if read_waiting_pool(site, run, status) else status
    except PollexError:  # its page says why its states can't be read
        return status


@page("/api/runs/{run}/state")
def send_state(site: Site, run: Run, node: str) -> Response:
    """Return the state after a node as JSON."""
    for change in list_node_changes(site, run):
        if change.node == node:
            return JSONResponse(dict(change.state))

    raise NotFound(
        f"the run has no state after {node}",
        hint="its page names those it has",
    )


@post("/api/runs/{run}/pool")
def resume_with_edited_pool(
    site: Site,
    run: Run,
    pool: PoolFields,
    node: str = "",
    confirmed: str = "",
) -> NextPage:
    """Take an edited pool, and carry on the run that waits with it, or with a `node` a fork after that.

    An empty row of one's own is none. `confirmed` is the digest of the kept command that somebody
    said yes to.
    """
    require_confirmation(site, run, confirmed)
    # each rubric of the form has a side; those that were taken out are left out
    rows = []
    for name, side in pool.items():
        kind, _, n = name.partition("-")
        is_row = f"text-{n}" in pool or f"was-{n}" in pool
        if kind == "polarity" and is_row and f"out-{n}" not in pool:
            # a rubric is one line of text
            text = pool.get(f"text-{n}", "").replace("\r\n", " ")
            rows.append({"id": "", "text": text, "polarity": side})

    try:
        named = asyncio.run(_resume_with_pool(site, run, node, rows))
    except BadRubrics as wrong:
        place = f"{wrong.where}: " if wrong.where else ""
        raise RequestError(
            f"the pool is not taken: {place}{wrong.what}",
            hint=wrong.hint,
        ) from wrong

    # the run, or the fork that was made of it
    child = go_on_with_run(site, site.run(named))
    return links.link_to_run(named), {"run": named, "child": child and child.id}


async def _resume_with_pool(
    site: Site,
    run: Run,
    node: str,
    rows: Sequence[Mapping[str, str]],
) -> str:
    """Return the run that has the pool now.

    Raises:
        BadRubrics: A rubric is a duplicate, empty, or the reverse of another; or none is left.
    """
    # the run itself waits at its pool
    if not node:
        await resume_with_pool(site.store, run, rows)
        return run.id
    if not rows:
        raise BadRubrics("the pool has no rubric left", hint="leave one at least")
    return (await begin_forked_run(site.store, RunFork(run.id, node, rows))).id
