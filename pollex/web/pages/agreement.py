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

from pollex.conversations.conversation import format_openai_messages
from pollex.formats.questionnaires import SheetQuestion
from pollex.measures.intervals import Figure
from pollex.reports.transcript import mark_turns
from pollex.rooms import list_hooks
from pollex.rubrics.answers import Question
from pollex.services.agreement import measure_agreement
from pollex.services.hooks import RunRatingReader
from pollex.store.labels import Opinion, read_opinions, settle_opinions
from pollex.store.resume import iterate_conversations
from pollex.store.runs import Run
from pollex.store.store import Store
from pollex.store.tables import LabelRow, LabelSheetRow, dump_json
from pollex.web import links
from pollex.web.faults import RequestError, VersionConflict
from pollex.web.forms import LongText, Person
from pollex.web.listing import load_run_columns
from pollex.web.questions import unpack_sheet
from pollex.web.queues import THUMB_QUESTION
from pollex.web.site import Site
from pollex.web.views import NextPage, PageData, iterate_csv_lines, page, post, send_file


@page(links.AGREEMENT_PATH, "agreement.html", here="Label", api="/api/agreement")
def show_agreement(site: Site, as_json: bool, question: str = "") -> PageData:
    """Show how far annotators agree, with each other and with the log."""
    questions = list_asked_questions(site.store)
    # without a question: the first that people answered, which is the thumb where there is one
    question = question or next(iter(questions), THUMB_QUESTION)
    opinions_here = read_opinions_in_words(site.store, question)
    # people who had seen the score don't count
    people = []
    for opinion in opinions_here:
        if opinion.source == "person" and opinion.counts:
            people.append(opinion)

    names = sorted({person.annotator for person in people})
    if as_json:
        each_with_oneself = {}
        for name in names:
            each_with_oneself[name] = measure_self_agreement(site.store, question, name)

        return {
            "question": question,
            "questions": questions,
            "all": measure_agreement(people),
            "pairs": [
                {"people": [a, b], "alpha": alpha}
                for a, b, alpha in measure_agreement_of_pairs(people)
            ],
            "with_oneself": measure_self_agreement(site.store, question),
            "each_with_oneself": each_with_oneself,
        }

    # two more annotators of thumbs: the log, and what the probabilities decide
    log, rubrics = (_read_other_opinions(site, people, column) for column in ("label", "decided"))
    # a question of a sheet may be a rubric, which the judge answered, too
    sheet_questions_by_id = list_sheet_questions(site.store)
    if question in sheet_questions_by_id:
        judge = _read_judge_opinions(site, people, sheet_questions_by_id[question])
    else:
        judge = []

    rated = _list_rating_runs(site)
    # words of questions as runs asked them, or as sheets did, which come before
    words = {rated_question.id: rated_question.text for _, rated_question, _ in rated} | {
        id_: question.text for id_, question in sheet_questions_by_id.items()
    }
    return {
        "question": question,
        "questions": {id_: words.get(id_, id_) for id_ in questions},
        "own": measure_self_agreement(site.store, question),
        "each": {name: measure_self_agreement(site.store, question, name) for name in names}
        if len(names) > 1
        else {},
        "all": measure_agreement(people),
        "pairs": measure_agreement_of_pairs(people),
        "log": measure_agreement([*people, *log]) if question == THUMB_QUESTION else None,
        "rubrics": measure_agreement([*people, *rubrics]) if question == THUMB_QUESTION else None,
        "judge": measure_agreement([*people, *judge]) if judge else None,
        "ensembles": _measure_ensembles(rated, people, question),
        "n": len(people),
        "random": sum(person.drawn == "random" for person in people),
        "disputed": len(list_disputed_texts(opinions_here)),
    }


def _read_other_opinions(
    site: Site,
    people: list[Opinion],
    column: Literal["label", "decided"],
) -> list[Opinion]:
    """Return the log's thumbs of the labeled texts, or what the probabilities decide, as an annotator's."""
    rows = []
    for run in {person.run for person in people}:
        lens = load_run_columns(site, site.run(run))
        codes = getattr(lens, column)
        texts = {}
        for person in people:
            if person.run == run:
                texts[person.text_hash] = person

        for row, text in enumerate(lens.hashes):
            # only texts that people labeled: others have nothing to agree with
            if text in texts and codes[row] >= 0:
                value = "up" if codes[row] else "down"
                rows.append(
                    Opinion(
                        "",
                        text,
                        lens.ids[row],
                        run,
                        value,
                        column,
                        "",
                    )
                )

    return rows


CHOSEN_ANSWERS_QUERY = (
    "SELECT conversation, arg_max(chosen, seq) AS chosen FROM answers WHERE question = ? GROUP BY "
    "conversation"
)


def _read_judge_opinions(
    site: Site,
    people: list[Opinion],
    question: SheetQuestion,
) -> list[Opinion]:
    """Return the judge's answers to a rubric that people answered, too, as an annotator's."""
    values = [value for value, _ in question.options]
    rows = []
    for run in {person.run for person in people}:
        texts = {}
        for person in people:
            if person.run == run:
                texts[person.conversation] = person

        # the judge's answer is the place of an option
        for row in site.store.ask(run, CHOSEN_ANSWERS_QUERY, [question.id]):
            about = texts.get(row["conversation"])
            chosen = row["chosen"]
            if about is not None and chosen is not None and chosen < len(values):
                # answers with an order are compared as numbers, others as words
                if question.ordinal:
                    value = values[chosen]
                else:
                    value = str(values[chosen])

                rows.append(
                    replace(
                        about,
                        annotator="",
                        value=value,
                        source="judge",
                    )
                )

    return rows


RatingRun = tuple[Run, Question, Mapping[str, str]]
"""A run that rated texts, its question as people are asked it, and the option agreed on by text."""


def _list_rating_runs(site: Site) -> list[RatingRun]:
    # how the ratings of a run are read, by its command
    readers = {kind.command: kind.ratings for kind in list_hooks(RunRatingReader)}
    rated: list[RatingRun] = []
    for run in site.runs():
        # unfinished runs have not rated all texts yet
        if run.command not in readers or run.finished is None:
            continue
        read_ratings = partial(readers[run.command], site.store, run)
        ratings = site.kept(("ratings", run.id, run.finished), read_ratings)
        rated += [(run, *ratings)] if ratings else []

    return rated


def _measure_ensembles(
    rated: Sequence[RatingRun],
    people: list[Opinion],
    question: str,
) -> list[tuple[Run, Figure]]:
    """Compute how far people agree with the votes of each run on the same question.

    Of two options the first is a thumb up, as where a rule is fitted to thumbs.
    """
    texts = {person.text_hash for person in people}
    rows = []
    for run, question_asked, chosen_of in rated:
        options = [option.text for option in question_asked.options]
        if len(options) == 2:
            thumbs = dict(zip(options, ("up", "down"), strict=False))
        else:
            thumbs = {}

        # the same question: options as they are; thumbs: by two options; else nothing to compare
        same = question_asked.id == question
        if same:
            values = {option: option for option in options}
        elif question == THUMB_QUESTION:
            values = thumbs
        else:
            values = {}

        # votes on texts that people labeled, too, as one annotator's answers
        answers = []
        for text, chosen in chosen_of.items():
            if text in texts and chosen in values:
                answers.append(
                    Opinion(
                        "",
                        text,
                        "",
                        run.id,
                        values[chosen],
                        "ensemble",
                        "",
                    )
                )

        if answers:
            rows.append((run, measure_agreement([*people, *answers])))

    return rows


@page("/api/export")
def export_labels(
    site: Site,
    sources: str = "person,adjudicated",
    drawn: Literal["all", "random"] = "all",
    shape: Literal["log", "long"] = "log",
) -> Response:
    """Send labels as a log for `learn`, or as a table for `calibrate`."""
    sources_wanted = sources.split(",")
    # a table has all questions, a log has room for thumbs alone
    if shape == "long":
        questions = list_asked_questions(site.store)
    else:
        questions = [THUMB_QUESTION]

    opinions_all = []
    for question in questions:
        opinions_all.extend(read_opinions(site.store, question))

    # `all` of `drawn` takes every label, `random` those of conversations drawn by chance
    opinions_drawn = []
    for opinion in opinions_all:
        if opinion.counts and opinion.source in sources_wanted and drawn in ("all", opinion.drawn):
            opinions_drawn.append(opinion)

    opinions_all = opinions_drawn
    # a row for each answer of each person
    if shape == "long":
        heads = ("text_id", "question", "judge", "answer", "source", "drawn")
        rows = (
            (
                opinion.conversation,
                opinion.question,
                opinion.annotator,
                opinion.value,
                opinion.source,
                opinion.drawn,
            )
            for opinion in opinions_all
        )
        return send_file("judgments.csv", "text/csv", iterate_csv_lines([heads, *rows]))

    # a log has one label for each text, so that people's answers are settled first
    return send_file(
        "labels.jsonl",
        links.NDJSON_CONTENT_TYPE,
        _iterate_log_rows(site, list(settle_opinions(opinions_all).values())),
    )


def _iterate_log_rows(site: Site, opinions: list[Opinion]) -> Iterator[str]:
    # the store has conversations by run
    for run in sorted({opinion.run for opinion in opinions}):
        by_conversation = {
            opinion.conversation: opinion for opinion in opinions if opinion.run == run
        }
        for conversation in iterate_conversations(site.store, run, ids=list(by_conversation)):
            opinion = by_conversation[conversation.id]
            row: PageData = {
                "id": conversation.id,
                "messages": format_openai_messages(conversation),
                "thumbs": opinion.value,
            }
            row |= {
                "source": opinion.source,
                "drawn": opinion.drawn,
                "judge": opinion.annotator,
            }
            yield (
                json.dumps(
                    row | ({"group": conversation.group} if conversation.group else {}),
                    ensure_ascii=False,
                )
                + "\n"
            )


OptionWords = tuple[str | float, str]
ReasonText = Annotated[str, Field(min_length=1, max_length=2000)]
THUMB_OPTIONS: tuple[OptionWords, ...] = (("up", "up"), ("down", "down"))


@page(links.ADJUDICATE_PATH, "adjudicate.html", here="Label")
def show_adjudication(site: Site, question: str = "") -> PageData:
    """Show the text on which annotators differ most, without their names."""
    questions_by_id = list_sheet_questions(site.store)
    # disputed texts by question; those of questions whose words are lost are left out
    left = {}
    for question_id in list_asked_questions(site.store):
        if (question_id == THUMB_QUESTION or question_id in questions_by_id) and (
            differing := list_disputed_texts(read_opinions(site.store, question_id))
        ):
            left[question_id] = differing

    question = question or next(iter(left), THUMB_QUESTION)
    of = left.get(question, {})
    # the text whose answers lie farthest apart comes first
    text = max(of, key=lambda text_hash: measure_spread(of[text_hash]), default="")
    opinions_here = of.get(text, [])
    conversation = None
    if opinions_here:
        conversation = next(
            iterate_conversations(
                site.store, opinions_here[0].run, ids=[opinions_here[0].conversation]
            ),
            None,
        )

    options = list_options(question, questions_by_id)
    words: dict[object, str] = dict(options)
    # letters stand for people, so that nobody sees who said what
    answers = []
    for place, opinion in enumerate(opinions_here):
        answers.append((chr(ord("A") + place % 26), words.get(opinion.value, opinion.value)))

    others = {}
    for text_hash, every in left.items():
        others[text_hash] = (
            len(every),
            questions_by_id[text_hash].text if text_hash in questions_by_id else "",
        )

    return {
        "text": text,
        "answers": answers,
        "turns": mark_turns(conversation.turns, {}) if conversation else [],
        "left": len(of),
        "question": question,
        "asked": questions_by_id[question].text if question in questions_by_id else "",
        "options": options,
        "others": others,
    }


def measure_spread(opinions: Sequence[Opinion]) -> float:
    """Return how far answers lie apart: the range of numbers, else the share that the largest part leaves."""
    values: list[str | float] = [opinion.value for opinion in opinions]
    numbers = []
    for value in values:
        if isinstance(value, float):
            numbers.append(value)

    if len(numbers) == len(values):
        return max(numbers) - min(numbers)
    return 1 - max(Counter(values).values()) / len(values)


def list_options(
    question: str, sheet_questions: dict[str, SheetQuestion]
) -> tuple[OptionWords, ...]:
    """Return the options of a question, each with its words."""
    if question in sheet_questions:
        return sheet_questions[question].options
    return THUMB_OPTIONS


@post("/api/adjudications")
def keep_decision(
    site: Site,
    text: str,
    who: Person,
    value: LongText,
    reason: ReasonText,
    question: str = THUMB_QUESTION,
) -> NextPage:
    """Keep a decision as a label of its own."""
    # nobody else labels between the look at the answers and the decision
    with site.turn:
        questions_by_id = list_sheet_questions(site.store)
        options = list_options(question, questions_by_id)
        # the form sends text, while values of options may be numbers
        chosen = next((option for option, _ in options if str(option) == value), None)
        if chosen is None:
            hint = f"take one of {', '.join(str(value) for value, _ in options)}"
            raise RequestError(f"{value[:80]!r} is no option of the question", hint=hint)
        # somebody else may have decided it meanwhile
        opinions_here = list_disputed_texts(read_opinions(site.store, question)).get(text)
        if opinions_here is None:
            raise VersionConflict(
                "the annotators no longer disagree about this text",
                hint="go on with the next one",
            )

        about = {
            "conversation": opinions_here[0].conversation,
            "run": opinions_here[0].run,
            "question": question,
        }
        # drawn at random if any of the disputed labels was
        drawn = next(
            (opinion.drawn for opinion in opinions_here if opinion.drawn == "random"),
            opinions_here[0].drawn,
        )
        label = LabelRow(
            who,
            text,
            **about,
            value=dump_json(chosen),
            source="adjudicated",
            drawn=drawn,
        )
        site.store.keep([label, LabelSheetRow(label.id, comment=reason, saw=("others",))])

    return links.make_address(links.ADJUDICATE_PATH, question=question), {"label": label.id}


def list_asked_questions(store: Store) -> list[str]:
    """Return the questions that people answered, thumbs first."""
    sql = "SELECT question, min(rowid) AS first FROM labels WHERE annotator <> '' GROUP BY question ORDER BY first"
    question_ids = [str(row["question"]) for row in store.rows(sql)]
    # the sort is stable: other questions stay in the order of their first label
    return sorted(question_ids, key=lambda question: question != "thumb")


def list_sheet_questions(store: Store) -> dict[str, SheetQuestion]:
    """Return the questions of all queues' sheets by id, as they were asked last."""
    rows = store.rows("SELECT sheet FROM queues WHERE sheet <> '' ORDER BY rowid")
    # a later queue's words replace those of an earlier one
    questions: dict[str, SheetQuestion] = {}
    for row in rows:
        for question in unpack_sheet(row["sheet"]):
            questions[question.id] = question

    return questions


def measure_self_agreement(store: Store, question: str, annotator: str = "") -> Figure:
    """Compute how far people, or one of them, agree with themselves on texts that they were shown twice."""
    # answers to texts that were shown once more
    again = []
    for opinion in read_opinions_in_words(store, question, again=True):
        if annotator in ("", opinion.annotator):
            again.append(opinion)

    seen_twice = set()
    for opinion in again:
        seen_twice.add((opinion.annotator, opinion.text_hash))

    # first answers of the same people to the same texts
    first = []
    for opinion in read_opinions_in_words(store, question):
        if (opinion.annotator, opinion.text_hash) in seen_twice:
            first.append(opinion)

    # A text of one person is a unit of its own: whether two people agree is another question.
    both = []
    for side, opinions_of_side in (("first", first), ("again", again)):
        for opinion in opinions_of_side:
            both.append(
                replace(
                    opinion,
                    annotator=side,
                    text_hash=f"{opinion.annotator} {opinion.text_hash}",
                )
            )

    return measure_agreement(both)


def read_opinions_in_words(store: Store, question: str, *, again: bool = False) -> list[Opinion]:
    """Return `read_opinions` with the answers to a question without an order as words."""
    sheets = store.rows("SELECT sheet FROM queues WHERE sheet <> ''")
    # the question as each queue with a sheet asked it
    questions = []
    for row in sheets:
        for sheet_question in unpack_sheet(row["sheet"]):
            if sheet_question.id == question:
                questions.append(sheet_question)

    opinions_found = read_opinions(store, question, again=again)
    # values with an order are compared as numbers, others as words
    if all(sheet_question.ordinal for sheet_question in questions):
        return opinions_found
    return [replace(opinion, value=str(opinion.value)) for opinion in opinions_found]


def measure_agreement_of_pairs(of: Sequence[Opinion]) -> list[tuple[str, str, Figure]]:
    """Compute the agreement of each pair of annotators."""
    people = sorted({opinion.annotator for opinion in of})
    rows: list[tuple[str, str, Figure]] = []
    for a, b in combinations(people, 2):
        opinions_of_pair = []
        for opinion in of:
            if opinion.annotator in (a, b):
                opinions_of_pair.append(opinion)

        rows.append((a, b, measure_agreement(opinions_of_pair)))

    return rows


def list_disputed_texts(of: Sequence[Opinion]) -> dict[str, list[Opinion]]:
    """Return, by text, differing answers that are not adjudicated yet."""
    decided = set()
    for opinion in of:
        if opinion.source == "adjudicated":
            decided.add(opinion.text_hash)

    by_text: dict[str, list[Opinion]] = defaultdict(list)
    for opinion in of:
        if opinion.source == "person" and opinion.counts and opinion.text_hash not in decided:
            by_text[opinion.text_hash].append(opinion)

    # only one value: people agree, or nobody else answered
    disputed = {}
    for text, opinions_of_text in by_text.items():
        if len({opinion.value for opinion in opinions_of_text}) > 1:
            disputed[text] = opinions_of_text

    return disputed
