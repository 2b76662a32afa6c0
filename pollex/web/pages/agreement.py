"""Labels of several people: how far they agree, and files of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Literal

from starlette.responses import Response

from pollex.agents.votes import persons_question
from pollex.conversations.conversation import Conversation, messages_of
from pollex.formats.questionnaires import SheetQuestion
from pollex.measures.intervals import Figure
from pollex.services.judge_runs import ratings_of
from pollex.services.precision import agreement
from pollex.store.labels import Opinion, opinions, settled
from pollex.store.resume import conversations_of
from pollex.store.runs import Run
from pollex.web import links
from pollex.web.listing import lens_for
from pollex.web.opinions import (
    asked_about,
    between,
    disputed,
    people_in,
    said_about,
    sheet_questions,
    with_oneself,
)
from pollex.web.queues import QUESTION
from pollex.web.site import Site
from pollex.web.views import Data, page, sent, table_lines


@page(links.AGREEMENT, "agreement.html", here="Label", api="/api/agreement")
def agree(site: Site, as_json: bool, question: str = "") -> Data:
    """Show how far annotators agree, with each other and with the log."""
    asked = asked_about(site.store)
    question = question or next(iter(asked), QUESTION)
    said = said_about(site.store, question)
    people = people_in(said)
    names = sorted({one.annotator for one in people})
    if as_json:
        return {
            "question": question,
            "questions": asked,
            "all": agreement(people),
            "pairs": [{"people": [a, b], "alpha": one} for a, b, one in between(people)],
            "with_oneself": with_oneself(site.store, question),
            "each_with_oneself": {name: with_oneself(site.store, question, name) for name in names},
        }
    log, rubrics = (_others(site, people, column) for column in ("label", "decided"))
    known = sheet_questions(site.store)
    judge = _judged(site, people, known[question]) if question in known else []
    return {
        "question": question,
        "questions": {one: known[one].text if one in known else one for one in asked},
        "own": with_oneself(site.store, question),
        "each": {name: with_oneself(site.store, question, name) for name in names} if len(names) > 1 else {},
        "all": agreement(people),
        "pairs": between(people),
        "log": agreement([*people, *log]) if question == QUESTION else None,
        "rubrics": agreement([*people, *rubrics]) if question == QUESTION else None,
        "judge": agreement([*people, *judge]) if judge else None,
        "ensembles": _ensembles(site, people, question),
        "n": len(people),
        "random": sum(one.drawn == "random" for one in people),
        "disputed": len(disputed(said)),
    }


def _others(site: Site, people: list[Opinion], column: Literal["label", "decided"]) -> list[Opinion]:
    """Return the log's thumbs of the labeled texts, or what the probabilities decide, as an annotator's."""
    found = []
    for run in {one.run for one in people}:
        lens = lens_for(site, site.run(run))
        codes = getattr(lens, column)
        texts = {one.text_hash: one for one in people if one.run == run}
        for row, text in enumerate(lens.hashes):
            if text in texts and codes[row] >= 0:
                value = "up" if codes[row] else "down"
                found.append(Opinion("", text, lens.ids[row], run, value, column, ""))
    return found


SAID = "SELECT conversation, arg_max(chosen, seq) AS chosen FROM answers WHERE question = ? GROUP BY conversation"


def _judged(site: Site, people: list[Opinion], question: SheetQuestion) -> list[Opinion]:
    """Return the judge's answers to a rubric that people answered, too, as an annotator's."""
    values, found = [value for value, _ in question.options], []
    for run in {one.run for one in people}:
        texts = {one.conversation: one for one in people if one.run == run}
        for row in site.store.ask(run, SAID, [question.id]):
            about, chosen = texts.get(row["conversation"]), row["chosen"]
            if about is not None and chosen is not None and chosen < len(values):
                value = values[chosen] if question.ordinal else str(values[chosen])
                found.append(replace(about, annotator="", value=value, source="judge"))
    return found


def _ensembles(site: Site, people: list[Opinion], question: str) -> list[tuple[Run, Figure]]:
    """Compute how far people agree with the votes of each run of `judge` on the same question.

    Of two options the first is a thumb up, as where a rule is fitted to thumbs.
    """
    texts, found = {one.text_hash for one in people}, []
    for run in site.runs():
        if run.command != "judge" or run.finished is None:
            continue
        ratings = site.kept(("ratings", run.id, run.finished), partial(ratings_of, site.store, run))
        if ratings is None:
            continue
        asked, chosen_of = ratings
        options = [option.text for option in asked.options]
        thumbs = dict(zip(options, ("up", "down"), strict=False)) if len(options) == 2 else {}
        same = persons_question(asked).id == question
        values = {option: option for option in options} if same else thumbs if question == QUESTION else {}
        said = [
            Opinion("", text, "", run.id, values[chosen], "ensemble", "")
            for text, chosen in chosen_of.items()
            if text in texts and chosen in values
        ]
        if said:
            found.append((run, agreement([*people, *said])))
    return found


@page("/api/export")
def export(
    site: Site,
    sources: str = "person,adjudicated",
    drawn: Literal["all", "random"] = "all",
    shape: Literal["log", "long"] = "log",
) -> Response:
    """Send labels as a log for `learn`, or as a table for `calibrate`."""
    wanted = sources.split(",")
    said = [one for one in opinions(site.store, QUESTION) if one.source in wanted]
    said = [one for one in said if drawn == "all" or one.drawn == drawn]
    if shape == "long":
        others = [
            one
            for question in asked_about(site.store)
            if question != QUESTION
            for one in opinions(site.store, question)
        ]
        said += [one for one in others if one.source in wanted and drawn in ("all", one.drawn)]
        return sent("judgments.csv", "text/csv", _long(said))
    return sent("labels.jsonl", links.NDJSON, _log_rows(site, list(settled(said).values())))


def _log_rows(site: Site, said: list[Opinion]) -> Iterator[str]:
    for run in sorted({one.run for one in said}):
        mine = {one.conversation: one for one in said if one.run == run}
        for found in conversations_of(site.store, run, ids=list(mine)):
            yield json.dumps(_log_row(found, mine[found.id]), ensure_ascii=False) + "\n"


def _log_row(found: Conversation, said: Opinion) -> dict[str, object]:
    row: dict[str, object] = {"id": found.id, "messages": messages_of(found), "thumbs": said.value}
    return (
        row
        | {"source": said.source, "drawn": said.drawn, "judge": said.annotator}
        | ({"group": found.group} if found.group else {})
    )


def _long(said: list[Opinion]) -> Iterator[str]:
    heads = ("text_id", "question", "judge", "answer", "source", "drawn")
    rows = ((one.conversation, one.question, one.annotator, one.value, one.source, one.drawn) for one in said)
    return table_lines([heads, *rows])
