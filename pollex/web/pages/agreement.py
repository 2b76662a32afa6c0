"""Labels of several people: how far they agree, decisions where they differ, and files of them."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations
from typing import Annotated, Literal

from pydantic import Field
from starlette.responses import Response

from pollex.agents.votes import persons_question
from pollex.conversations.conversation import messages_of
from pollex.formats.questionnaires import SheetQuestion
from pollex.measures.intervals import Figure
from pollex.reports.transcript import marked_turns
from pollex.rubrics.answers import Question
from pollex.services.judge_runs import ratings_of
from pollex.services.verdicts import agreement
from pollex.store.labels import Opinion, opinions, settle_answers
from pollex.store.resume import conversations_of
from pollex.store.runs import Run
from pollex.store.store import Store
from pollex.store.tables import LabelRow, SheetRow, pack
from pollex.web import links
from pollex.web.faults import Clash, Fault
from pollex.web.forms import Name, Words
from pollex.web.listing import lens_for
from pollex.web.questions import questions_of
from pollex.web.queues import QUESTION
from pollex.web.site import Site
from pollex.web.views import Data, Done, page, post, sent, table_lines


@page(links.AGREEMENT, "agreement.html", here="Label", api="/api/agreement")
def agree(site: Site, as_json: bool, question: str = "") -> Data:
    """Show how far annotators agree, with each other and with the log."""
    asked = asked_about(site.store)
    question = question or next(iter(asked), QUESTION)
    said = said_about(site.store, question)
    people = [one for one in said if one.source == "person" and one.counts]
    names = sorted({person.annotator for person in people})
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
    rated = _rated(site)
    words = {persons_question(one).id: one.text for _, one, _ in rated} | {
        id_: one.text for id_, one in known.items()
    }
    return {
        "question": question,
        "questions": {one: words.get(one, one) for one in asked},
        "own": with_oneself(site.store, question),
        "each": {name: with_oneself(site.store, question, name) for name in names}
        if len(names) > 1
        else {},
        "all": agreement(people),
        "pairs": between(people),
        "log": agreement([*people, *log]) if question == QUESTION else None,
        "rubrics": agreement([*people, *rubrics]) if question == QUESTION else None,
        "judge": agreement([*people, *judge]) if judge else None,
        "ensembles": _ensembles(rated, people, question),
        "n": len(people),
        "random": sum(person.drawn == "random" for person in people),
        "disputed": len(disputed(said)),
    }


def _others(
    site: Site, people: list[Opinion], column: Literal["label", "decided"]
) -> list[Opinion]:
    """Return the log's thumbs of the labeled texts, or what the probabilities decide, as an annotator's."""
    found = []
    for run in {person.run for person in people}:
        lens = lens_for(site, site.run(run))
        codes = getattr(lens, column)
        texts = {person.text_hash: person for person in people if person.run == run}
        for row, text in enumerate(lens.hashes):
            if text in texts and codes[row] >= 0:
                value = "up" if codes[row] else "down"
                found.append(Opinion("", text, lens.ids[row], run, value, column, ""))
    return found


SAID = "SELECT conversation, arg_max(chosen, seq) AS chosen FROM answers WHERE question = ? GROUP BY conversation"


def _judged(site: Site, people: list[Opinion], question: SheetQuestion) -> list[Opinion]:
    """Return the judge's answers to a rubric that people answered, too, as an annotator's."""
    values = [value for value, _ in question.options]
    found = []
    for run in {person.run for person in people}:
        texts = {person.conversation: person for person in people if person.run == run}
        for row in site.store.ask(run, SAID, [question.id]):
            about = texts.get(row["conversation"])
            chosen = row["chosen"]
            if about is not None and chosen is not None and chosen < len(values):
                value = values[chosen] if question.ordinal else str(values[chosen])
                found.append(replace(about, annotator="", value=value, source="judge"))
    return found


Rated = tuple[Run, Question, Mapping[str, str]]
"""A run of `judge`, its question, and the option agreed on by text."""


def _rated(site: Site) -> list[Rated]:
    found: list[Rated] = []
    for run in site.runs():
        if run.command == "judge" and run.finished is not None:
            ratings = site.kept(
                ("ratings", run.id, run.finished), partial(ratings_of, site.store, run)
            )
            found += [(run, *ratings)] if ratings else []
    return found


def _ensembles(
    rated: Sequence[Rated], people: list[Opinion], question: str
) -> list[tuple[Run, Figure]]:
    """Compute how far people agree with the votes of each run of `judge` on the same question.

    Of two options the first is a thumb up, as where a rule is fitted to thumbs.
    """
    texts = {person.text_hash for person in people}
    found = []
    for run, asked, chosen_of in rated:
        options = [option.text for option in asked.options]
        thumbs = dict(zip(options, ("up", "down"), strict=False)) if len(options) == 2 else {}
        same = persons_question(asked).id == question
        values = (
            {option: option for option in options}
            if same
            else thumbs
            if question == QUESTION
            else {}
        )
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
    asked = asked_about(site.store) if shape == "long" else [QUESTION]
    said = [opinion for question in asked for opinion in opinions(site.store, question)]
    said = [
        one for one in said if one.counts and one.source in wanted and drawn in ("all", one.drawn)
    ]
    if shape == "long":
        heads = ("text_id", "question", "judge", "answer", "source", "drawn")
        rows = (
            (one.conversation, one.question, one.annotator, one.value, one.source, one.drawn)
            for one in said
        )
        return sent("judgments.csv", "text/csv", table_lines([heads, *rows]))
    return sent("labels.jsonl", links.NDJSON, _log_rows(site, list(settle_answers(said).values())))


def _log_rows(site: Site, opinions: list[Opinion]) -> Iterator[str]:
    for run in sorted({one.run for one in opinions}):
        mine = {one.conversation: one for one in opinions if one.run == run}
        for conversation in conversations_of(site.store, run, ids=list(mine)):
            one = mine[conversation.id]
            row: Data = {
                "id": conversation.id,
                "messages": messages_of(conversation),
                "thumbs": one.value,
            }
            row |= {"source": one.source, "drawn": one.drawn, "judge": one.annotator}
            yield (
                json.dumps(
                    row | ({"group": conversation.group} if conversation.group else {}),
                    ensure_ascii=False,
                )
                + "\n"
            )


Option = tuple[str | float, str]
Reason = Annotated[str, Field(min_length=1, max_length=2000)]
THUMBS: tuple[Option, ...] = (("up", "up"), ("down", "down"))


@page(links.ADJUDICATE, "adjudicate.html", here="Label")
def adjudicate(site: Site, question: str = "") -> Data:
    """Show the text on which annotators differ most, without their names."""
    known = sheet_questions(site.store)
    left = {
        one: differing
        for one in asked_about(site.store)
        if (one == QUESTION or one in known) and (differing := disputed(opinions(site.store, one)))
    }
    question = question or next(iter(left), QUESTION)
    of = left.get(question, {})
    text = max(of, key=lambda one: spread(of[one]), default="")
    said = of.get(text, [])
    found = (
        next(conversations_of(site.store, said[0].run, ids=[said[0].conversation]), None)
        if said
        else None
    )
    options = options_of(question, known)
    words: dict[object, str] = dict(options)
    return {
        "text": text,
        "answers": [
            (chr(ord("A") + place % 26), words.get(one.value, one.value))
            for place, one in enumerate(said)
        ],
        "turns": marked_turns(found.turns, {}) if found else [],
        "left": len(of),
        "question": question,
        "asked": known[question].text if question in known else "",
        "options": options,
        "others": {
            one: (len(every), known[one].text if one in known else "")
            for one, every in left.items()
        },
    }


def spread(opinions: Sequence[Opinion]) -> float:
    """Return how far answers lie apart: the range of numbers, else the share that the largest part leaves."""
    values: list[str | float] = [one.value for one in opinions]
    numbers = [value for value in values if isinstance(value, float)]
    if len(numbers) == len(values):
        return max(numbers) - min(numbers)
    return 1 - max(Counter(values).values()) / len(values)


def options_of(question: str, sheet_questions: dict[str, SheetQuestion]) -> tuple[Option, ...]:
    """Return the options of a question, each with its words."""
    return sheet_questions[question].options if question in sheet_questions else THUMBS


@post("/api/adjudications")
def decide(
    site: Site, text: str, who: Name, value: Words, reason: Reason, question: str = QUESTION
) -> Done:
    """Keep a decision as a label of its own."""
    with site.turn:
        known = sheet_questions(site.store)
        options = options_of(question, known)
        chosen = next((one for one, _ in options if str(one) == value), None)
        if chosen is None:
            remedy = f"take one of {', '.join(str(value) for value, _ in options)}"
            raise Fault(f"{value[:80]!r} is no option of the question", remedy=remedy)
        said = disputed(opinions(site.store, question)).get(text)
        if said is None:
            raise Clash(
                "the annotators no longer disagree about this text",
                remedy="go on with the next one",
            )
        about = {"conversation": said[0].conversation, "run": said[0].run, "question": question}
        drawn = next((one.drawn for one in said if one.drawn == "random"), said[0].drawn)
        label = LabelRow(who, text, **about, value=pack(chosen), source="adjudicated", drawn=drawn)
        site.store.keep([label, SheetRow(label.id, comment=reason, saw=("others",))])
    return links.address(links.ADJUDICATE, question=question), {"label": label.id}


def asked_about(store: Store) -> list[str]:
    """Return the questions that people answered, thumbs first."""
    sql = "SELECT question, min(rowid) AS first FROM labels WHERE annotator <> '' GROUP BY question ORDER BY first"
    found = [str(row["question"]) for row in store.rows(sql)]
    return sorted(found, key=lambda question: question != "thumb")


def sheet_questions(store: Store) -> dict[str, SheetQuestion]:
    """Return the questions of all queues' sheets by id, as they were asked last."""
    rows = store.rows("SELECT sheet FROM queues WHERE sheet <> '' ORDER BY rowid")
    return {question.id: question for row in rows for question in questions_of(row["sheet"])}


def with_oneself(store: Store, question: str, annotator: str = "") -> Figure:
    """Compute how far people, or one of them, agree with themselves on texts that they were shown twice."""
    again = [
        one for one in said_about(store, question, again=True) if annotator in ("", one.annotator)
    ]
    seen = {(one.annotator, one.text_hash) for one in again}
    first = [one for one in said_about(store, question) if (one.annotator, one.text_hash) in seen]
    # A text of one person is a unit of its own: whether two people agree is another question.
    both = [replace(one, annotator=side, text_hash=f"{one.annotator} {one.text_hash}")
            for side, said in (("first", first), ("again", again)) for one in said]  # fmt: skip
    return agreement(both)


def said_about(store: Store, question: str, *, again: bool = False) -> list[Opinion]:
    """Return `opinions` with the answers to a question without an order as words."""
    sheets = store.rows("SELECT sheet FROM queues WHERE sheet <> ''")
    asked = [one for row in sheets for one in questions_of(row["sheet"]) if one.id == question]
    found = opinions(store, question, again=again)
    return (
        found
        if all(one.ordinal for one in asked)
        else [replace(one, value=str(one.value)) for one in found]
    )


def between(of: Sequence[Opinion]) -> list[tuple[str, str, Figure]]:
    """Compute the agreement of each pair of annotators."""
    people = sorted({one.annotator for one in of})
    return [
        (a, b, agreement([one for one in of if one.annotator in (a, b)]))
        for a, b in combinations(people, 2)
    ]


def disputed(of: Sequence[Opinion]) -> dict[str, list[Opinion]]:
    """Return, by text, differing answers that are not adjudicated yet."""
    decided = {one.text_hash for one in of if one.source == "adjudicated"}
    by_text: dict[str, list[Opinion]] = defaultdict(list)
    for one in of:
        if one.source == "person" and one.counts and one.text_hash not in decided:
            by_text[one.text_hash].append(one)
    return {text: said for text, said in by_text.items() if len({one.value for one in said}) > 1}
