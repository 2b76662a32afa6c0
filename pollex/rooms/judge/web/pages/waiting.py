"""Undecided cases of `judge` runs, answered in the browser, one at a time."""

import json
import os
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path

from pollex.reports.transcript import mark_turns
from pollex.rooms.judge.agents.votes import make_person_question
from pollex.rooms.judge.graphs.state import RunTally
from pollex.rooms.judge.services.judge_runs import read_run_tally
from pollex.rooms.judge.web.links import WAITING_PATH
from pollex.store.labels import Opinion, read_opinions, settle_opinions
from pollex.store.resume import iterate_conversations
from pollex.store.runs import Run
from pollex.store.tables import LabelRow, LabelSheetRow, dump_json
from pollex.web import links
from pollex.web.faults import NotFound, RequestError, VersionConflict
from pollex.web.forms import LongText, NameText, ShortText
from pollex.web.pages.agreement import list_disputed_texts
from pollex.web.said import keep_new_answers
from pollex.web.site import Site
from pollex.web.views import NextPage, PageData, page, post


@page(WAITING_PATH, "waiting.html", here="Waiting")
def list_waiting_runs(site: Site, as_json: bool) -> PageData:
    """List the runs that wait for people."""
    # runs without open cases are left out
    waiting_by_run = []
    for run in site.runs():
        if waiting := find_waiting_tally(site, run):
            waiting_by_run.append((run, waiting))

    if as_json:
        rows = [
            (run.id, waiting.task.question.text, len(waiting.waiting))
            for run, waiting in waiting_by_run
        ]
        return {
            "runs": [{"run": run, "question": question, "waiting": n} for run, question, n in rows]
        }

    # what people answered so far, and where they differ
    opinions_by_run = [
        (run, waiting, list_opinions(site, run, waiting)) for run, waiting in waiting_by_run
    ]
    shown = [
        (
            run,
            waiting,
            choose_answers_to_apply(waiting, opinions),
            find_differing_opinions(opinions),
        )
        for run, waiting, opinions in opinions_by_run
    ]
    return {"runs": [row for row in shown if row[1].waiting]}


def find_waiting_tally(site: Site, run: Run) -> RunTally | None:
    """Return what a run waits for; None where it waits for nobody, or goes on."""
    if run.command != "judge" or run.finished is None:
        return None
    return site.once("waiting", run, lambda: read_run_tally(site.store, run))


def list_opinions(site: Site, run: Run, waiting: RunTally) -> list[Opinion]:
    """Return people's answers to a run's cases; those applied have no name."""
    about = make_person_question(waiting.task.question).id
    return [
        opinion
        for opinion in read_opinions(site.store, about)
        if opinion.run == run.id and opinion.annotator
    ]


def find_differing_opinions(opinions: Sequence[Opinion]) -> dict[str, list[Opinion]]:
    """Return differing answers by conversation, which are to be adjudicated."""
    answers: dict[str, list[Opinion]] = {}
    for every in list_disputed_texts(opinions).values():
        answers[every[0].conversation] = every
    return answers


def choose_answers_to_apply(waiting: RunTally, opinions: Sequence[Opinion]) -> dict[str, str]:
    """Return the answers that a run can take up, by conversation."""
    # a case that people disagree on is held back until somebody decides
    open_ = set(waiting.waiting)
    left = find_differing_opinions(opinions)
    value_by_id = {}
    for opinion in settle_opinions(opinions).values():
        value_by_id[opinion.conversation] = opinion.value

    answers: dict[str, str] = {}
    for id_, value in value_by_id.items():
        if id_ in open_ and id_ not in left:
            answers[id_] = value

    return answers


@page(f"{WAITING_PATH}/{{run}}", "case.html", here="Waiting")
def show_case(
    site: Site,
    run: Run,
    as_json: bool,
    who: ShortText = "",
    case: str = "",
    after: str = "",
) -> PageData:
    """Show a case with question and turns; the votes only after an answer."""
    waiting = require_waiting_run(site, run)
    opinions_here = list_opinions(site, run, waiting)
    question = waiting.task.question.text
    options = [option.text for option in waiting.task.question.options]
    if as_json:
        fields = {
            "question": question,
            "options": options,
            "cases": [*waiting.waiting],
        }
        return fields | {"given": choose_answers_to_apply(waiting, opinions_here)}

    # what this person has answered, by conversation
    own_values = {}
    for opinion in opinions_here:
        if opinion.annotator == who and opinion.source == "person":
            own_values[opinion.conversation] = opinion.value

    # the first case that this person hasn't answered, unless an address names one
    left = []
    for id_ in waiting.waiting:
        if id_ not in own_values:
            left.append(id_)

    at = case or (left[0] if who and left else "")
    if case and case not in waiting.waiting:
        raise NotFound(
            "the run does not wait for this conversation",
            hint="its page has those that it waits for",
        )

    conversation = None
    if at:
        conversation = next(iterate_conversations(site.store, run.id, ids=[at]), None)

    # votes are shown only of a case that this person has answered: they must not lead
    return {
        "waiting": waiting,
        "options": options,
        "case": conversation,
        "turns": mark_turns(conversation.turns, {}) if conversation else [],
        "left": len(left),
        "given": choose_answers_to_apply(waiting, opinions_here),
        "differ": find_differing_opinions(opinions_here),
        "answers": [
            (chr(ord("A") + n % 26), opinion.value)
            for n, opinion in enumerate(find_differing_opinions(opinions_here).get(at, ()))
        ],
        "before": dict(zip(options, waiting.tallies[after].votes, strict=True))
        if after in own_values and after in waiting.waiting
        else None,
        "words": _list_answer_words(site, run, waiting, after) if after in own_values else [],
        "states": {
            id_: _describe_state_of_case(waiting, opinions_here, id_, value)
            for id_, value in own_values.items()
        },
        "mine": own_values,
    }


ANSWER_WORDS_QUERY = """
    SELECT chosen, justification FROM answers WHERE conversation = $1 AND starts_with(question, $2)
        AND justification <> '' AND chosen IS NOT NULL
    GROUP BY ALL ORDER BY chosen, justification LIMIT 20
"""


def _list_answer_words(
    site: Site,
    run: Run,
    waiting: RunTally,
    id_: str,
) -> list[tuple[str, str]]:
    """Return what the runs said of a case: option and reason, each once."""
    # runs of one question are told apart by a number after #
    question = waiting.task.question
    rows = site.store.ask(run.id, ANSWER_WORDS_QUERY, [id_, f"{question.id}#"])
    words: list[tuple[str, str]] = []
    for row in rows:
        words.append((question.options[row["chosen"]].text, row["justification"]))

    return words


def _describe_state_of_case(
    waiting: RunTally,
    opinions: Sequence[Opinion],
    id_: str,
    own_answer: str,
) -> str:
    taken_up = waiting.people.get(id_)
    # taken up by the run: with this person's answer, or with somebody else's
    if taken_up is not None:
        if taken_up == own_answer:
            return "taken up"
        return f"not taken up: {taken_up} was"
    if id_ in find_differing_opinions(opinions):
        return "not taken up yet: people differ, and somebody has to decide"
    if id_ not in waiting.waiting:
        return "not taken up: the run does not wait for it any more"

    # still waiting, with an answer that would be taken up
    decided = choose_answers_to_apply(waiting, opinions).get(id_, own_answer)
    if decided == own_answer:
        return "kept, and not taken up yet"
    return f"not taken up: it was decided as {decided}"


def require_waiting_run(site: Site, run: Run) -> RunTally:
    """Return what a run waits for. Raises NotFound where it waits for nobody."""
    waiting = find_waiting_tally(site, run)
    if waiting is None:
        raise NotFound(
            f"{run.id} waits for nobody",
            hint="runs of `pollex judge` that have ended may wait",
        )

    return waiting


@post("/api/given")
def keep_answer(
    site: Site,
    run: Run,
    conversation: str,
    who: NameText,
    option: str,
    decides: bool = False,
    reason: LongText = "",
) -> NextPage:
    """Keep an answer; the run takes it up later."""
    # anything may have changed since the page was shown, so all of it is checked again
    waiting = require_waiting_run(site, run)
    if option not in [option.text for option in waiting.task.question.options]:
        raise RequestError(
            f"{option[:80]!r} is no option of the question",
            hint="choose one of those that are shown",
        )

    if conversation not in waiting.waiting:
        raise VersionConflict(
            "the run does not wait for this conversation any more",
            hint="go on with the next one",
        )

    about = next(iterate_conversations(site.store, run.id, ids=[conversation]))
    opinions_here = list_opinions(site, run, waiting)
    # a decision is for cases on which people differ, and says why
    if decides and about.id not in find_differing_opinions(opinions_here):
        raise VersionConflict(
            "people don't differ on it, or somebody has decided",
            hint="answer it as yourself",
        )

    if decides and not reason.strip():
        raise RequestError(
            "a decision takes a reason",
            hint="say why, or answer it as yourself",
        )

    # the label says where it came from: a person's own answer or a decision between others
    label = LabelRow(
        annotator=who,
        text_hash=about.text_hash,
        conversation=about.id,
        run=run.id,
        question=make_person_question(waiting.task.question).id,
        value=dump_json(option),
        source="adjudicated" if decides else "person",
        drawn="doubtful",
    )
    # The runs' words are shown to whoever has answered.
    again = any(
        (opinion.annotator, opinion.conversation) == (who, about.id) for opinion in opinions_here
    )
    with site.turn:
        (label_kept,) = keep_new_answers(
            site.store,
            [(label, LabelSheetRow(label.id, comment=reason, saw=("votes",) if again else ()))],
        )

    next_ = links.make_address(f"{WAITING_PATH}/{run.id}", who=who, after=about.id)
    return next_, {"label": label_kept, "kept": True}


@post("/api/waiting/{run}/resume")
def resume_run(site: Site, run: Run) -> NextPage:
    """Start the command that applies people's answers to a run."""
    # answers on which people agree, in a file that the command removes when it ends
    waiting = require_waiting_run(site, run)
    values_given = choose_answers_to_apply(waiting, list_opinions(site, run, waiting))
    if not values_given:
        raise RequestError(
            "nobody has answered yet, or people differ",
            hint="answer a case first",
        )

    path = _write_answers_file(site.store.folder, values_given)
    # the same command that a person would type
    arguments = [
        "review",
        run.id,
        "--answers",
        str(path),
        "--store",
        str(site.store.folder),
        "--json",
    ]
    words = f"{run.id} takes up {len(values_given)} of {len(waiting.waiting)} answers"
    child = site.children.start(
        words,
        arguments,
        back=f"{WAITING_PATH}/{run.id}",
        remove=[path],
    )
    return f"{links.CHILDREN_PATH}/{child.id}", {"child": child.id}


def _write_answers_file(folder: Path, answers: Mapping[str, str]) -> Path:
    path = folder / f"answers-{secrets.token_hex(4)}.jsonl"
    with os.fdopen(
        os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8"
    ) as file:
        for id_, option in answers.items():
            file.write(json.dumps({"id": id_, "answer": option}) + "\n")

    return path
