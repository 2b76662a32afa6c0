"""Changes of prompts that were looked for and proven, and pairs of replies that people compare for them, blind."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Literal
from zlib import crc32

import numpy as np

from pollex.errors import PollexError
from pollex.graphs.context import Progress
from pollex.rooms.remedy.conversations.reply_context import ReplyContext, shuffle_contexts
from pollex.rooms.remedy.reports.remedies import prepare_sections
from pollex.rooms.remedy.services.advice import find_advice
from pollex.rooms.remedy.services.result import (
    COMPARED_FACT_KIND,
    REMEDY_COMMAND,
    SHEET_RECORD_NAME,
    SKIPPED_CHOICE,
    count_people_for_pair,
    count_people_who_decided,
    read_browser_choices,
)
from pollex.rooms.remedy.web.hooks import REMEDIES_PATH
from pollex.rooms.remedy.web.next_step import USUAL_PAIRS_FOR_PEOPLE, suggest_next_step
from pollex.rooms.remedy.web.waiting import (
    count_pairs,
    describe_waiting,
    list_waiting_proposals,
)
from pollex.rubrics.records import ChosenRubric
from pollex.runs.options import ModelOptions, RunOptions
from pollex.store.resume import iterate_conversations, read_facts_by_id, read_step_result
from pollex.store.runs import Run
from pollex.store.tables import LabelRow, LabelSheetRow, dump_json
from pollex.text import JsonDict
from pollex.web import links
from pollex.web.faults import NotFound, NothingToShow
from pollex.web.forms import LongText, NameText, RowIndex, ShortText
from pollex.web.hooks import describe_outcome
from pollex.web.listing import find_run_that_asked
from pollex.web.logs_at_hand import find_log_of_run
from pollex.web.pages.runs import ENDED_STATUSES, find_work_of_stopped_runs, list_costs
from pollex.web.pages.sets import get_rubric
from pollex.web.said import keep_new_answers
from pollex.web.site import NamedSet, Site
from pollex.web.soon import BackgroundValue
from pollex.web.views import NextPage, PageData, page, post

if TYPE_CHECKING:
    from pollex.services.dry_run import CallPlan

PAIRS_ON_A_PAGE = 20


@page(REMEDIES_PATH, "remedy_list.html", here="Changes")
def list_remedies(site: Site, as_json: bool) -> PageData:
    """List what runs of `remedy` came to, the last one first."""
    runs = [run for run in site.runs() if run.command == REMEDY_COMMAND]
    rows = [_build_remedy_row(site, run) for run in runs]
    if as_json:
        return {"remedies": rows}

    steps = {}
    for run in runs:
        if record := read_step_result(site.store, run.id, REMEDY_COMMAND):
            steps[run.id] = suggest_next_step(run, record)

    return {
        "remedies": list(zip(runs, rows, strict=True)),
        "came_to": {run.id: describe_outcome(site, run) for run in runs},
        "statuses": {run.id: site.status(run) for run in runs},
        "steps": steps,
        "has_costs": any(row.get("cost") for row in rows),
        "waits_for": find_work_of_stopped_runs(
            site, [(run, site.status(run)) for run in runs if run.id not in steps]
        ),
    }


def _build_remedy_row(site: Site, run: Run) -> dict[str, object]:
    # the record of an ended run, or the sheet of one that waits for people
    record = read_step_result(site.store, run.id, REMEDY_COMMAND)
    sheet = read_step_result(site.store, run.id, SHEET_RECORD_NAME)
    progress = count_pairs(site, run, () if record else sheet or ())
    about: dict[str, object] = {
        "run": run.id,
        "verdict": "",
        "waiting": 0 if record or not sheet else len(sheet),
        "left": progress.left,
        "skipped": progress.skipped,
        "proposed": 0 if record or sheet else len(list_waiting_proposals(site, run)),
    }
    if record:
        # lines of the first change, for a list of runs
        diffs = []
        for edit in record["edits"][:1]:
            for line in edit["diff"].splitlines()[2:]:
                if line[:1] in "+-":
                    diffs.append(line[1:])

        about |= {
            "target": record["target"]["text"],
            "edit": " · ".join(diffs),
            "verdict": record["verdict"],
        }
        about |= {"level": record["level"], "cost": list_costs(site).get(run.id)}

    return about


def list_pair_keys(site: Site, run: Run) -> dict[str, list[str]]:
    """Return names of a run's pairs: all, those that fell or gained, or that the judges differ in, and *telling* ones.

    Judges differ where a reader without rubrics prefers (1 the new reply, 0 the old one, else ½)
    what doesn't gain.
    """
    facts = read_facts_by_id(site.store, run.id, COMPARED_FACT_KIND)
    # none where it was forgotten
    pairs_by_name = {}
    for name, fact in facts.items():
        for pair in fact.values():
            pairs_by_name[name] = pair

    # [pair]: NaN where a reader wasn't asked or nothing fell
    change, fell, reader = (
        np.array([pair[name] for pair in pairs_by_name.values()], dtype=np.float64)
        for name in ("change", "fell", "reader")
    )
    # the target gained and the reader prefers the old one, or the other way round
    differ = change * (reader - 0.5) < 0
    down, up, worst = (np.argsort(changes, kind="stable") for changes in (change, -change, fell))
    most = np.argsort(-np.abs(change), kind="stable")
    # each order as indices into the pairs
    orders = {
        "": most,
        "fell": down[change[down] < 0],
        "gained": up[change[up] > 0],
        "differ": down[differ[down]],
    }
    # a page of what tells most: judges that differ, falls, and gains
    telling_orders = (orders["differ"], worst[fell[worst] < 0], orders["gained"])
    telling = dict.fromkeys(int(n) for order in telling_orders for n in order[:PAIRS_ON_A_PAGE])
    names = [*pairs_by_name]

    return {
        only: [names[n] for n in rows] for only, rows in (orders | {"telling": telling}).items()
    }


@page(f"{REMEDIES_PATH}/{{run}}", "remedy.html", here="Changes")
def show_remedy(
    site: Site,
    run: Run,
    as_json: bool,
    tab: Literal["", "pairs", "refused", "registered", "people"] = "",
    only: Literal["", "fell", "gained", "differ", "telling"] = "",
    at: RowIndex = 0,
) -> PageData:
    """Show what a change does, and under tabs pairs of replies, what was refused, what was registered, and people."""
    record = site.once(
        "remedied", run, lambda: read_step_result(site.store, run.id, REMEDY_COMMAND)
    )
    # a run without a verdict has a page of what it waits for
    if not record and (waiting := describe_waiting(site, run)) is not None:
        if as_json:
            return waiting
        return {"template": "remedy_waits.html"} | waiting
    if not record and site.status(run) not in ENDED_STATUSES:
        raise NotFound(
            f"{run.id} is at work: it has no verdict yet",
            hint=f"load this page again once it has ended; {links.link_to_run(run.id)} shows how far it is",
        )
    if not record:
        raise NotFound(
            f"{run.id} proved nothing, or not yet",
            hint=f"{REMEDIES_PATH} has what there is",
        )

    # orders once, pairs by page
    pairs = site.once("pairs", run, lambda: list_pair_keys(site, run))
    names = pairs[only]
    read = [
        fact
        for name in names[at : at + PAIRS_ON_A_PAGE]
        for fact in read_facts_by_id(site.store, run.id, COMPARED_FACT_KIND, name).values()
    ]
    # arms stay hidden
    shown = []
    for conversation in read:
        for pair in conversation.values():
            # which reply stands first is decided by the pair's content
            shown.append(pair | {"new_first": crc32(dump_json(pair).encode()) % 2})

    data = {
        "n": len(names),
        "of": len(pairs[""]),
        "shown": shown,
    }
    if as_json:
        return data | {"remedy": record}

    # when the proof began: what was registered stood before that
    sql = "SELECT min(started) FROM spans WHERE run = ? AND name = 'prove'"
    data |= {
        "frozen": read_step_result(site.store, run.id, "registered"),
        "began": site.store.value(sql, [run.id]),
    }
    choices = Counter(
        who
        for by in read_browser_choices(site.store, run.id).values()
        for who, choice in by.items()
        if choice != SKIPPED_CHOICE
    )
    about = {
        # an address that narrows the pairs shows them
        "tab": tab or ("pairs" if only or at else ""),
        "remedy": prepare_sections(record, ()),
        "came_to": describe_outcome(site, run),
        "next_step": None if site.read_only else suggest_next_step(run, record),
        "size": PAIRS_ON_A_PAGE,
        "people": run.arguments.get("people"),
        "usual_pairs": USUAL_PAIRS_FOR_PEOPLE,
    }
    return data | about | {"said": choices, "asked": len(_read_sheet_by_key(site, run))}


@page(f"{REMEDIES_PATH}/{{run}}/compare", "remedy_pairs.html", here="Label")
def show_next_pair(site: Site, run: Run, who: ShortText = "", key: ShortText = "") -> PageData:
    """Show a person the next pair of replies that they haven't compared: no prompt, arm, rubric or judge.

    Args:
        key: Of a pair that they have seen, to choose anew; empty for the next one.
    """
    sheet = _read_sheet_by_key(site, run)
    choices = read_browser_choices(site.store, run.id)
    # what this person said so far, in the order in which pairs are shown
    own_choices: dict[str, str] = {}
    # pairs that this person hasn't seen, and that lack people
    left = []
    for pair_key in sheet:
        by = choices.get(pair_key, {})
        if who in by:
            own_choices[pair_key] = by[who]
        elif count_people_who_decided(by) < count_people_for_pair(pair_key):
            left.append(pair_key)

    if key and key not in own_choices:
        raise NotFound("you have not seen this pair", hint="go on with those that are left")
    at = key or (left[0] if left and who else "")

    return {
        "who": who,
        "left": len(left),
        "of": len(sheet),
        "progress": count_pairs(site, run, sheet.values()),
        "is_concluded": bool(read_step_result(site.store, run.id, REMEDY_COMMAND)),
        "pair": sheet.get(at),
        "mine": own_choices.get(at),
        "before": _find_pair_before([*sheet], own_choices, at),
        "skipped": [pair for pair, choice in own_choices.items() if choice == SKIPPED_CHOICE],
    }


def _find_pair_before(keys: list[str], own_choices: Mapping[str, str], at: str) -> str:
    """Return the pair that somebody has seen last before the one that is shown; empty if none."""
    before = keys[: keys.index(at)] if at else keys
    return next((key for key in reversed(before) if key in own_choices), "")


@post("/api/remedies/{run}")
def keep_choice(
    site: Site,
    run: Run,
    key: str,
    who: NameText,
    choice: Literal["1", "2", "0", "S"],
    comment: LongText = "",
) -> NextPage:
    """Keep what a person chose; a comment stands beside it."""
    pair = _read_sheet_by_key(site, run).get(key)
    if pair is None:
        raise NotFound("there is no such pair", hint="load the page again")

    about = {
        "annotator": who,
        # the pair's key in place of a text: what is labelled is a pair, no conversation
        "text_hash": key,
        "conversation": pair["conversation"],
        "run": run.id,
    }
    label = LabelRow(
        **about,
        question=f"{COMPARED_FACT_KIND} {run.id}",
        value=dump_json(choice),
        drawn="random",
    )
    # one at a time, since a label takes the place of an earlier one
    with site.turn:
        (label_id,) = keep_new_answers(
            site.store,
            [(label, LabelSheetRow(label.id, comment=comment))],
        )

    return links.make_address(f"{REMEDIES_PATH}/{run.id}/compare", who=who), {"label": label_id}


CHANGE_PATH = f"{links.SETS_PATH}/{{set}}/change/{{rubric}}"
MAX_PLANNED_CONVERSATIONS = 5_000
PATIENCE_SECONDS = 0.3
MAX_EXAMPLE_FAILURES = 3
"""Conversations that a plan is made of, seconds that the page waits for it, and failing replies that it shows."""


@page(CHANGE_PATH, "change.html", here="Rubrics")
def show_change(site: Site, named: NamedSet, rubric_id: str) -> PageData:
    """Show where a rubric fails, what may be tried in the prompt, and what a proof of that would ask and cost."""
    rubric, soon, run = _get_foreseen_proof(site, named, rubric_id)
    # a quick plan is shown at once, a slow one when the page is loaded again
    soon.wait(PATIENCE_SECONDS)
    # the command that would prove it, with the files of the run
    logs = run.arguments.get("logs") or ["logs.jsonl"]
    words = ["remedy", "run", *([logs] if isinstance(logs, str) else logs), "--rubrics"]
    words += [
        named.name if named.name in site.files else "rubrics.json",
        "--prompt",
        "system.md",
        "--target",
    ]
    command = shlex.join(
        ["pollex", *map(str, words), rubric.id, "--edit", "new.md", "--profiles", "profiles.toml"]
    )
    more = {"advice": find_advice(rubric), "profiled": "assistant" in site.profiles}
    # the run's log, if it may be read again here
    more |= {"log": find_log_of_run(site, run)}
    return {
        "rubric": rubric,
        "soon": soon,
        "run": run,
        "most": MAX_PLANNED_CONVERSATIONS,
        "command": command,
    } | more


@page(f"{CHANGE_PATH}/live", "soon.html")
def show_change_live(site: Site, named: NamedSet, rubric_id: str) -> PageData:
    """Return the part of that page that says what is being worked out."""
    soon = _get_foreseen_proof(site, named, rubric_id)[1]
    return {"headers": {"X-Pollex-Ended": "again" if soon.over else ""}, "soon": soon}


def _get_foreseen_proof(
    site: Site, named: NamedSet, rubric_id: str
) -> tuple[ChosenRubric, BackgroundValue, Run]:
    rubric = get_rubric(named.rubric_set, rubric_id)
    if (run := find_run_that_asked(site, named)) is None:
        raise NothingToShow(
            "no run of this store asked these rubrics",
            hint="`pollex score` does",
        )

    key = ("change", named.id, rubric.id, run.finished or "")
    return (
        rubric,
        site.kept(
            key, lambda: BackgroundValue(partial(foresee_proof, site, named, run, rubric.id))
        ),
        run,
    )


@dataclass(frozen=True)
class ForeseenProof:
    """What can be told before anything is asked of a change that mends a rubric.

    Attributes:
        failing: The first replies in which it fails, and how many there are.
        plan: Calls of a proof; None where none can be had, and `why` says why.
    """

    failing: tuple[ReplyContext, ...]
    of: int
    plan: CallPlan | None = None
    why: str = ""


def foresee_proof(
    site: Site,
    named: NamedSet,
    run: Run,
    target: str,
    progress: Progress,
) -> ForeseenProof:
    """Plan a proof at its usual settings, with the logged system turn as the prompt; nothing is asked."""
    # readers, SciPy and the roles of a model come with these
    from pollex.formats.fields import ReadOptions
    from pollex.formats.read_logs import make_logs_of_conversations
    from pollex.rooms.remedy.services.assistants import AssistantOptions
    from pollex.rooms.remedy.services.contexts import find_rubric_occurrences, list_failures
    from pollex.rooms.remedy.services.plan import count_calls
    from pollex.rooms.remedy.services.prompt_text import PromptText
    from pollex.rooms.remedy.services.run import gather_contexts
    from pollex.rooms.remedy.services.sample import RemedyOptions

    # at most so many conversations: a plan has to come soon
    progress.start("looking where it failed", 1)
    logs = make_logs_of_conversations(
        [*islice(iterate_conversations(site.store, run.id), MAX_PLANNED_CONVERSATIONS)]
    )
    system_texts = (
        turn.content
        for conversation in logs.conversations
        for turn in conversation.turns
        if turn.role == "system"
    )
    # a profile of the assistant gives its price; without one calls are counted alone
    assistant = site.profiles.get("assistant")
    record = named.rubric_set.judge
    place = record.options.place
    # A recorded answer or a model of Python has no address, and none is needed to count.
    model = ModelOptions(base_url=place if place.startswith(("http://", "https://")) else None)
    # braces in a logged turn are text, no places
    prompt = PromptText(next(system_texts, "Help.").replace("{", "("))
    options = RemedyOptions(prompt="", target=target, any_prompt=True)
    run_options = RunOptions(site.store.folder)

    # where it fails is shown even if the plan can't be made
    try:
        held = find_rubric_occurrences(named.rubric_set, logs.conversations, site.store.folder)[
            target
        ]
        failing = list_failures(held)
        shown = tuple(shuffle_contexts(failing, 0)[:MAX_EXAMPLE_FAILURES])
    except PollexError as error:
        return ForeseenProof((), 0, why=error.what)

    try:
        gathered = gather_contexts(
            logs,
            named.rubric_set,
            options,
            [prompt],
            ReadOptions(),
            run_options,
            progress,
            planned=True,
        )
        assistant_options = AssistantOptions(
            models={"assistant": assistant or ModelOptions(model="assistant")}
        )
        return ForeseenProof(
            shown,
            len(failing),
            count_calls(gathered, assistant_options, run_options, model),
        )
    except PollexError as error:
        return ForeseenProof(shown, len(failing), why=error.what)


def _read_sheet_by_key(site: Site, run: Run) -> dict[str, JsonDict]:
    return {
        pair["key"]: pair for pair in read_step_result(site.store, run.id, SHEET_RECORD_NAME) or ()
    }
