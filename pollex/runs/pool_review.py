"""The pool of rubrics in people's hands: where a run waits for them, and where another run goes on with their edit."""

import secrets
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pollex.errors import AnswersPending, WrongUse
from pollex.graphs.run import (
    build_run_graph,
    compile_graph_with_checkpoints,
    get_current_state_of_run,
    get_last_state_after_node,
    make_run_config,
)
from pollex.outputs import write_text
from pollex.prompts.domain import write_toml_value
from pollex.rubrics.edits import PoolRowMapping, read_edited_pool, read_rubrics
from pollex.rubrics.merging import merge_equal_rubrics
from pollex.rubrics.rubric import Rubric
from pollex.runs.run import STATE_FORMAT_VERSION, collect_package_versions, require_same_settings
from pollex.store.resume import (
    find_run,
    read_extractions,
    read_facts_by_id,
    read_pool_rubrics,
    read_settings_behind_digests,
)
from pollex.store.rows import make_fact_row, make_rubric_rows
from pollex.store.runs import Run
from pollex.store.settings_told import make_settings_row
from pollex.store.store import Store
from pollex.text import format_count

GRAPH_NODES_AFTER_POOL_IS_FINAL = (
    "fit_judge",
    "judge_pool",
    "select",
    "calibrate",
    "judge_held_out",
    "assess",
)
"""Nodes after the pool is final: a fork with another pool goes back to before the first of them."""
STATE_FIELD_BY_GRAPH_NODE = {"select": "chosen", "calibrate": "probability"}
"""What these nodes put into the state beside what they keep."""
POOL_FILE_SUFFIX = ".pool.toml"
POOL_FILE_HEADER = """\
# The pool of {run}. Change text and polarity (sat or dsat), take rubrics out, add others.
# Then go on with --resume: this file is the pool as it is to be.
"""

PoolReviewer = Callable[[Mapping[str, Any]], Sequence[PoolRowMapping] | None]
"""Given the rows of a `pool`, and why the last answer was `refused`, the rows as they are to be."""


class PoolAwaitsReview(AnswersPending):
    """A run waits for people at its pool."""

    def __init__(self, run: str, pool: Sequence[PoolRowMapping]) -> None:
        super().__init__(
            f"{run} waits for you at its pool of {format_count(len(pool), 'rubric')}",
            hint="edit it in `pollex serve`",
        )
        self.run = run
        self.pool = pool


@dataclass(frozen=True)
class RunFork:
    """A run that another goes on from, after one of its nodes; with another pool where rows of one are given.

    Attributes:
        node: Empty where it is this very run that goes on.
    """

    run: str
    node: str
    pool: Sequence[PoolRowMapping] = ()


def ask_reviewers_until_accepted(people: PoolReviewer) -> PoolReviewer:
    """Ask until they give nothing."""
    return lambda question: list(people(question) or ()) or None


def write_pool_file(path: Path, run: str, pool: Sequence[PoolRowMapping]) -> None:
    """Write a pool where people edit it; see `read_pool_file`."""
    lines = [POOL_FILE_HEADER.format(run=run)]
    # reasons and a quote are comments: they help people, and are not read again
    for row in pool:
        lines += [
            "[[rubrics]]",
            f"text = {write_toml_value(row['text'])}",
            f"polarity = {write_toml_value(row['polarity'])}",
        ]
        lines += [
            f"# {format_count(row['reasons'], 'reason')}",
            f"# {write_toml_value(row['quote'])}",
            "",
        ]

    write_text(path, "\n".join(lines), named=False)


def read_pool_file(path: Path) -> list[PoolRowMapping]:
    """Return the rows of an edited file.

    Raises:
        BadRubrics: It can't be read, or a rubric of it is wrong.
    """
    return match_edited_rows(make_pool_rows(read_rubrics(path)), [])


def make_pool_rows(rubrics: Sequence[Rubric]) -> list[PoolRowMapping]:
    """Return rubrics that people wrote as rows of a pool; those of equal text on one side are one."""
    distinct, _ = merge_equal_rubrics(rubrics)
    rows: list[PoolRowMapping] = []
    for rubric in distinct:
        rows.append(
            {
                "id": "",
                "text": rubric.text,
                "polarity": rubric.polarity,
            }
        )

    return rows


def match_edited_rows(
    rows: Sequence[PoolRowMapping], before: Sequence[PoolRowMapping]
) -> list[PoolRowMapping]:
    """Return edited rows; one that says what a rubric of the pool says is that rubric, with its reasons.

    Raises:
        BadRubrics: One is a duplicate, empty, or the reverse of another; or none is left.
    """
    # called for what it raises: duplicates and contradictions
    read_edited_pool(
        list(rows),
        [Rubric(id=row["id"], text=row["text"], polarity=row["polarity"]) for row in before],
    )
    # words that are as they were keep the id, and so the reasons behind it
    row_by_text = {(row["text"], row["polarity"]): row for row in before}
    return [row_by_text.get((row["text"], row["polarity"]), {**row, "id": ""}) for row in rows]


async def get_waiting_pool(store: Store, run: Run) -> list[PoolRowMapping]:
    """Return the pool at which a run waits for people; nothing where it doesn't."""
    state = await get_current_state_of_run(store, run)
    waits = any(task.interrupts for task in state.tasks)
    return state.values.get("kept", []) if waits else []


async def resume_with_pool(store: Store, run: Run, rows: Sequence[PoolRowMapping]) -> None:
    """Have a run that waits go on with these rows when it is resumed.

    Raises:
        BadRubrics: As for `match_edited_rows`; the run waits on.
        WrongUse: It doesn't wait.
    """
    if not (before := await get_waiting_pool(store, run)):
        raise WrongUse(
            f"{run.id} doesn't wait at its pool",
            hint="go on with it, or fork it to change the pool",
        )

    # written to the state as if the node of the review had just ended
    reviewed_pool = {"kept": match_edited_rows(rows, before), "reviewed": True}
    async with compile_graph_with_checkpoints(build_run_graph(run), store) as compiled:
        await compiled.aupdate_state(
            make_run_config(run.id),
            reviewed_pool,
            as_node="review_pool",
        )


async def begin_forked_run(
    store: Store,
    fork: RunFork,
    arguments: Mapping[str, object] | None = None,
    fingerprint: Mapping[str, str] | None = None,
) -> Run:
    """Begin a run that goes on from another's state when it is resumed: what was paid for before is taken over.

    Args:
        arguments: Of the new run; those of the other if None. So is its fingerprint, which must be
            the same.

    Raises:
        BadRubrics: The edited pool has a duplicate, an empty or a contradictory rubric.
        ResumeRefused: The run was started by another version or with other settings; the message
            says with what.
        WrongUse: There is no such run or node, or nothing comes after it.
    """
    parent = find_run(store, fork.run)
    if fingerprint is None:
        fingerprint_wanted = parent.fingerprint | {"graph": STATE_FORMAT_VERSION}
    else:
        fingerprint_wanted = dict(fingerprint)

    # another endpoint may go on: what is taken over was answered already
    if "endpoint" in parent.fingerprint:
        anywhere = {"endpoint": parent.fingerprint["endpoint"]}
    else:
        anywhere = {}

    fingerprint_elsewhere = {}
    for name, part in fingerprint_wanted.items():
        if name != "endpoint":
            fingerprint_elsewhere[name] = part
    require_same_settings(
        parent,
        fingerprint_elsewhere | anywhere,
        store,
    )
    # after the last node only another pool leaves something to do
    if parent.command != "learn" or (fork.node == "assess" and not fork.pool):
        raise WrongUse(
            f"nothing comes after {fork.node!r}",
            hint="name an earlier node of a run of learn",
        )

    state = await get_last_state_after_node(store, parent, fork.node)
    at = fork.node
    # with another pool, everything that was judged has to be judged again
    if fork.pool:
        if "kept" not in state:
            raise WrongUse(
                f"there is no pool after {fork.node!r}",
                hint="fork after deduplicate to edit it",
            )

        state = {**state, "kept": match_edited_rows(fork.pool, state["kept"])}
        at = "reword" if at == "deduplicate" else at  # people's words stay as they are
        if fork.node in GRAPH_NODES_AFTER_POOL_IS_FINAL:
            state = {
                name: state[name] for name in STATE_FIELD_NAMES_BEFORE_JUDGING if name in state
            }
            if "gather_sets" in build_run_graph(parent).nodes:
                at = "gather_sets"
            else:
                at = "review_pool"

    # without arguments of its own the fork writes beside the files of its parent
    if arguments is None:
        arguments_given = _redirect_output_beside_parent(parent.arguments)
    else:
        arguments_given = arguments

    named = {"parent": f"{parent.id}:{fork.node}"}
    run = store.begin(
        "learn",
        arguments={**arguments_given, **named},
        fingerprint=fingerprint_wanted,
        versions=collect_package_versions(),
    )
    if behind := read_settings_behind_digests(store, parent):
        store.keep([make_settings_row(run.id, behind)])

    await _copy_results_of_parent(store, parent.id, run.id, state)
    # of another pool, only answers to rubrics that it took over
    store.copy_answers(
        parent.id,
        run.id,
        [row["id"] for row in state["kept"] if row["id"]] if fork.pool else None,
    )
    state |= {"run": run.id, **named}
    async with compile_graph_with_checkpoints(build_run_graph(run), store) as compiled:
        await compiled.aupdate_state(make_run_config(run.id), state, as_node=at)

    # not begun, but to be resumed
    store.finish(run.id, "interrupted")
    return run


STATE_FIELD_NAMES_BEFORE_JUDGING = (
    "settings",
    "split",
    "reasons",
    "pool",
    "refused",
    "kept",
    "merged",
    "reworded",
    "mirrors",
    "reviewed",
)
"""What the state tells before a pool is judged."""


def _redirect_output_beside_parent(arguments: Mapping[str, Any]) -> Mapping[str, object]:
    # only a command that names a file can be made to write another one
    if not (arguments.get("command") and arguments.get("out")):
        return arguments

    out = Path(arguments["out"])
    beside = str(out.with_stem(f"{out.stem}-{secrets.token_hex(2)}"))
    return {
        **arguments,
        "out": beside,
        "command": f"{arguments['command']} --out {shlex.quote(beside)}",
    }


async def _copy_results_of_parent(
    store: Store,
    parent: str,
    run: str,
    state: Mapping[str, object],
) -> None:
    store.put(make_rubric_rows(run, read_pool_rubrics(store, parent).values()))
    for id_, extraction in read_extractions(store, parent).items():
        store.put([make_fact_row(run, "extraction", id_, extraction)])

    # steps whose results the state doesn't have are done again
    for name, step_fact in read_facts_by_id(store, parent, "step").items():
        if STATE_FIELD_BY_GRAPH_NODE.get(name, "settings") in state:
            await store.write_step(run, name, step_fact)

    await store.settle()
