"""Repeated questions: one conversation with a reworded rubric, or by another judge."""

import asyncio
import secrets
from dataclasses import replace
from typing import Any

from pollex.errors import PollexError
from pollex.rubrics.edits import remove_detector_from_rubric
from pollex.rubrics.records import ChosenRubric
from pollex.rubrics.rubric_set import RubricSet
from pollex.runs.options import ModelOptions
from pollex.services.rejudging import ask_conversation_again, estimate_judge_calls
from pollex.services.sets import diff_words
from pollex.store.runs import Run
from pollex.store.tables import ReplayRow, dump_json, format_current_time, load_json
from pollex.text import JsonDict
from pollex.web import links
from pollex.web.faults import NotFound, RequestError
from pollex.web.forms import LongText
from pollex.web.pages.conversation import find_trace
from pollex.web.site import Site
from pollex.web.views import NextPage, PageData, page, post

OWN_JUDGE = ""
"""Name of the judge that the set has."""


@page(links.REPLAY_PATH, "replay.html", here="Conversations")
def show_replays(
    site: Site,
    run: Run,
    id_: str,
    rubric: str = "",
    replay: str = "",
) -> PageData:
    """Show what can be asked again, and what came of it."""
    trace, _, named, _ = find_trace(site, run, id_)
    if named is None:
        raise NotFound(
            "the rubric set of this run isn't here",
            hint="name its file at the start",
            option="rubrics",
        )

    rubric_set = named.rubric_set
    chosen = next(
        (candidate for candidate in rubric_set.rubrics if candidate.id == rubric),
        rubric_set.rubrics[0],
    )
    task = site.working.get(replay)
    # what the question would cost at each profile
    plan = {}
    for name, options in site.profiles.items():
        plan[name] = _describe_price(rubric_set, trace.conversation, options)

    return {
        "own": rubric_set,
        "rubric": chosen,
        "profiles": site.profiles,
        "plan": plan,
        "at_work": task is not None and not task.done(),
        "over": False,
        "words": site.typed.get(replay) or chosen.text,
        "fault": task.result() if task is not None and task.done() else "",
        "shown": _show_replay(site, rubric_set, replay),
        "earlier": _list_earlier_replays(site, run, id_),
    }


def _describe_price(
    rubric_set: RubricSet,
    conversation: Any,
    options: ModelOptions,
) -> JsonDict:
    estimate: JsonDict = dict(estimate_judge_calls(rubric_set.rubrics, conversation))
    price = options.limits.price
    return estimate | {
        "cost": price.cost(estimate["prompt_tokens"], estimate["completion_tokens"])
        if price
        else None
    }


def _list_earlier_replays(site: Site, run: Run, conversation: str) -> list[dict[str, object]]:
    rows = site.store.rows(
        "SELECT id, time, payload FROM replays WHERE run = ? AND conversation = ? ORDER BY rowid DESC LIMIT 20",
        [run.id, conversation],
    )
    earlier = []
    for row in rows:
        earlier.append(
            {"id": row["id"], "time": row["time"], "judge": load_json(row["payload"])["judge"]}
        )
    return earlier


def _show_replay(site: Site, rubric_set: RubricSet, replay_id: str) -> JsonDict | None:
    payload = None
    if replay_id:
        payload = site.store.value("SELECT payload FROM replays WHERE id = ?", [replay_id])
    if payload is None:
        return None

    payload_fields: JsonDict = load_json(payload)
    # a row for each rubric that was asked: its words now and then, and both answers
    words = {rubric.id: rubric for rubric in rubric_set.rubrics}
    rows = []
    for id_, text in payload_fields["asked"].items():
        rows.append(
            _make_row(
                words.get(id_),
                text,
                payload_fields["before"].get(id_),
                payload_fields["after"].get(id_),
            )
        )

    return payload_fields | {"rows": sorted(rows, key=lambda row: -abs(row["change"] or 0.0))}


def _make_row(
    rubric: ChosenRubric | None,
    text: str,
    before: Any,
    after: Any,
) -> JsonDict:
    old, new = (answer and answer.get("value") for answer in (before, after))
    return {
        "rubric": rubric,
        "words": diff_words(rubric.text if rubric else "", text),
        "before": before,
        "after": after,
        "change": None if old is None or new is None else new - old,
    }


@post("/api/replays")
def begin_replay(
    site: Site,
    run: Run,
    id_: str,
    rubric: str = "",
    text: LongText = "",
    judge: str = OWN_JUDGE,
) -> NextPage:
    """Begin to ask again; the page tells when the answer has come."""
    _, _, named, _ = find_trace(site, run, id_)
    if named is None:
        raise NotFound(
            "the rubric set of this run isn't here",
            hint="name its file at the start",
            option="rubrics",
        )

    if judge and judge not in site.profiles:
        raise RequestError(
            f"there is no judge {judge[:80]!r}",
            hint="take one of those that the page names",
        )

    # only the chosen rubric has new words
    rubrics = []
    for asked_rubric in named.rubric_set.rubrics:
        rubrics.append(_reword_rubric(asked_rubric, rubric, text))

    if not judge and rubrics == [*named.rubric_set.rubrics]:
        raise RequestError(
            "nothing is changed",
            hint="change the words, or choose another judge",
        )

    replay = secrets.token_hex(6)
    # a thread asks, and the page looks whether it has ended
    site.typed[replay] = text
    asking = (site, replay, run.id, id_, named.rubric_set, rubrics, judge)
    site.working[replay] = site.at_work.submit(_ask_again, *asking)
    address = links.make_address(
        links.REPLAY_PATH,
        run=run.id,
        id=id_,
        rubric=rubric,
        replay=replay,
    )

    return address, {"replay": replay}


def _reword_rubric(rubric: ChosenRubric, reworded: str, text: str) -> ChosenRubric:
    words = " ".join(text.split())
    if not words or rubric.id != reworded or words == rubric.text:
        return rubric
    return remove_detector_from_rubric(
        rubric.model_copy(update={"text": words})
    )  # what the old words were judged by tells nothing here


def _ask_again(
    site: Site,
    id_: str,
    run: str,
    conversation: str,
    rubric_set: RubricSet,
    rubrics: list[ChosenRubric],
    judge: str,
) -> str:
    """Ask; return what went wrong, or nothing."""
    model = site.profiles.get(judge)
    try:
        came = asyncio.run(
            ask_conversation_again(
                site.store,
                run,
                conversation,
                rubric_set,
                rubrics,
                model,
            )
        )
    except PollexError as error:
        error.where = judge or error.where  # people know the profile, and not its address
        error.hint = error.hint.replace("then resume", "then ask again")
        return str(error)

    if model is not None:  # a probe is paid, too
        site.profiles[judge] = replace(model, able=came.able)

    site.store.keep(
        [ReplayRow(id_, format_current_time(), run, conversation, dump_json(came.as_json()))]
    )
    return ""


@page(f"{links.REPLAY_PATH}/live", "replay_live.html")
def show_replay_live(
    site: Site,
    run: str,  # noqa: ARG001 - the page's, as are the two others
    id_: str,  # noqa: ARG001
    replay: str = "",
    rubric: str = "",  # noqa: ARG001
) -> PageData:
    """Tell whether an answer has come."""
    task = site.working.get(replay)
    over = task is None or task.done()
    return {"headers": {"X-Pollex-Ended": "1" if over else ""}, "over": over}
