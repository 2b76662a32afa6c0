"""A mapping that a model proposes, where nothing else read an unknown log: it is read and checked all the same."""

from __future__ import annotations

from collections.abc import Sequence

from pollex.agents.llm.asker import PromptAsker
from pollex.agents.llm.columns import IdentifiedColumns, identify_columns
from pollex.formats.columns import Column
from pollex.formats.disguise import disguise_values_of_columns
from pollex.formats.fields import ReadOptions
from pollex.formats.inference import ReadingCandidate
from pollex.formats.mapping import CONVERSATION_PART_NAMES, FIELD_NAME_BY_TURN_PART
from pollex.formats.proposal import (
    UnmappedLog,
    format_column_table,
    make_proposal_error,
    read_whole_log_with_candidate,
)
from pollex.formats.read_logs import read_logs
from pollex.graphs.context import Progress
from pollex.prompts.data_boundary import DataItem
from pollex.runs.by_model import run_work_by_model
from pollex.runs.options import ModelOptions, RunOptions
from pollex.runs.plan import PlannedRun
from pollex.runs.run import RunSettings, compute_json_digest
from pollex.runs.workspace import open_workspace
from pollex.services.dry_run import plan_dry_run
from pollex.services.logs import Sources, list_source_names
from pollex.text import format_count

PROPOSAL_SEED = 0
PARTS_INSIDE_TURNS = (*FIELD_NAME_BY_TURN_PART, "user", "assistant")
"""Parts that may stand in the items of a list of turns."""


def ask_for_mapping(
    sources: Sources,
    unread: UnmappedLog,
    *,
    reading: ReadOptions,
    run: RunOptions,
    model: ModelOptions,
    progress: Progress,
) -> UnmappedLog:
    """Return the error that proposes what a model said of the columns, if it holds; else why it doesn't.

    Args:
        unread: Why the log couldn't be read.

    Raises:
        ModelRefused: The endpoint refuses every call.
        ModelUnavailable: It can't be reached.
        Planned: Calls are to be counted alone.
    """
    # the model sees names of columns and disguised values, not what people said
    shown = disguise_values_of_columns(unread.columns)
    if run.dry_run:
        raise plan_dry_run(
            model,
            run,
            PROPOSAL_SEED,
            lambda plan: _rehearse_calls(plan, shown.items),
        )

    named = format_count(len(shown.items), "column")
    progress.note(
        f"Asking {model.name} for a mapping: one call with names and disguised values of {named}"
    )
    arguments = {"logs": list_source_names(sources)}
    with open_workspace(run, progress) as opened:
        columns_read, usage = run_work_by_model(
            opened,
            model,
            PROPOSAL_SEED,
            arguments,
            lambda asker, setting: _ask_in_run(asker, setting, shown.items),
        )

    if usage is not None:
        progress.note(usage.summary)

    # a sentence in place of columns says why nothing came
    if isinstance(columns_read, str):
        return _make_unmapped_error(
            unread,
            f"{model.name} said nothing of use ({columns_read})",
        )

    # what it said is tried on the log itself, and has to hold there
    candidate = make_candidate(
        columns_read,
        unread.columns,
        shown.originals,
        reading,
    )
    readings = list(
        read_whole_log_with_candidate(
            candidate,
            reading,
            lambda options: read_logs(sources, options=options),
        )
    )
    for tried in readings:
        if tried.holds:
            table = format_column_table(unread.columns, tried)
            begins = f"no known shape; its columns are\n{table}\n{model.name} read them"
            return make_proposal_error(tried, unread.columns, begins, unread.where)

    # nothing held: the first reading's faults are told
    faults = ""
    if readings:
        faults = ", ".join(readings[0].faults)

    if faults:
        why = f"what comes out is no talk: {faults}"
    else:
        why = "the log can't be read so"

    return _make_unmapped_error(unread, f"{model.name}'s mapping was tried, and {why}")


def make_candidate(
    columns_read: IdentifiedColumns,
    columns: Sequence[Column],
    originals: dict[str, str],
    options: ReadOptions,
) -> ReadingCandidate:
    """Return what a model said as a way to read the log; what the user said goes before it.

    Args:
        originals: What stands behind the values that the model was shown.
    """
    # columns, and lists that columns are in
    outer_paths = set()
    for column in columns:
        outer_paths.add(column.path.rpartition("[].")[0])
    paths = {column.path for column in columns} | outer_paths
    column_by_part = {}
    for named_column in columns_read.columns:
        column_by_part[named_column.part] = named_column.column.removesuffix("[]")

    parts = {}
    # parts and columns that nobody knows are ignored
    for part, name in column_by_part.items():
        if part in CONVERSATION_PART_NAMES and name in paths:
            parts[part] = name

    parts = _move_parts_inside_list(parts) | dict(options.columns)
    # disguised names become those of the log again
    speakers = (
        (speaker.role, originals.get(speaker.name, speaker.name))
        for speaker in columns_read.speakers
    )
    roles = tuple(dict.fromkeys((*options.roles, *speakers)))
    labels: dict[str, str] = {}
    # one side alone would leave all others without a label
    if "label" in parts and columns_read.up and columns_read.down:
        labels = {
            "positive": _format_label_rule(columns_read.up, originals),
            "negative": _format_label_rule(columns_read.down, originals),
        }

    return ReadingCandidate(parts, roles, labels)


def _move_parts_inside_list(parts: dict[str, str]) -> dict[str, str]:
    """Return parts whose turns stand in a list with the list as `messages`, and names inside it."""
    lists = set()
    for part in PARTS_INSIDE_TURNS:
        if part in parts:
            lists.add(parts[part].rpartition("[].")[0])

    # which list has the turns is plain only if all their parts name the same one
    path = parts.get("messages") or (lists.pop() if len(lists) == 1 else "")
    if not path:
        return parts

    inside = {}
    for part in PARTS_INSIDE_TURNS:
        if part in parts:
            inside[part] = parts[part].removeprefix(f"{path}[].")

    return {**parts, "messages": path, **inside}


def _format_label_rule(values: Sequence[str], originals: dict[str, str]) -> str:
    """Return values of a label as an option has them."""
    spelled = [originals.get(value, value) for value in values]
    return ",".join(f'"{value}"' if "," in value else value for value in spelled)


def _make_unmapped_error(unread: UnmappedLog, why: str) -> UnmappedLog:
    error = UnmappedLog(
        f"{unread.what.rstrip()}\n{why}\n",
        where=unread.where,
        hint=unread.hint,
        option=unread.options,
    )
    error.columns = unread.columns
    return error


async def _rehearse_calls(plan: PlannedRun, items: Sequence[DataItem]) -> None:
    await identify_columns(plan.asker, items)


async def _ask_in_run(
    asker: PromptAsker, setting: RunSettings, items: Sequence[DataItem]
) -> IdentifiedColumns | str:
    """Ask in a run of its own, which keeps the call in its ledger."""
    fingerprint = {"columns": compute_json_digest(list(items)), "prompt": asker.fingerprint()}
    async with setting.begin_or_resume("inspect", fingerprint, [asker.name]) as run:
        # without it the ledger wouldn't know which run a call is of
        setting.tracer(run.id)
        columns = await identify_columns(asker, items)
        setting.store.finish(run.id, "done", roles=[asker.name])
        return columns
