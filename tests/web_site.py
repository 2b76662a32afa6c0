"""A store with two runs made by hand, the application on it, and a client that speaks to it in memory."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import httpx2
import numpy as np
from rubric_set_by_hand import plain, rubric_set

from pollex.conversations.conversation import Conversation, Label, Turn
from pollex.rubrics.answers import LIKERT_OPTIONS, Answer, Question, Unanswered
from pollex.rubrics.rubric_set import RubricSet
from pollex.rubrics.score import NetSat
from pollex.runs.known_answers import make_judge_of_known_answers
from pollex.store.resume import iterate_conversations, read_answers, read_facts_by_id
from pollex.store.rows import AnswerRows, make_conversation_rows, make_fact_row, make_rubric_rows
from pollex.store.rubric_sets import compute_rubric_set_digest
from pollex.store.spans import Tracer
from pollex.store.store import Store
from pollex.store.tables import FactRow, ScoreRow, dump_json
from pollex.web.app import make_application
from pollex.web.guard import AccessRules, Guard
from pollex.web.guests import make_guest_finder
from pollex.web.hooks import begin_serving_files
from pollex.web.site import Site

TOKEN = "ab" * 32
PORT = 8765
BASE = f"http://127.0.0.1:{PORT}"
Words = Callable[[str], str]


def conversation(number: int, words: Words = plain) -> Conversation:
    """One of two kinds: those with an even number end in thanks."""
    turns = (
        Turn(role="user", content=words(f"Where is parcel {number}?")),
        Turn(
            role="assistant",
            content=words("It is in Lima.\n```\ntrack(parcel)\n```\nAnything else?"),
        ),
        Turn(role="user", content=words("No." if number % 2 else "it works now, thanks")),
        Turn(role="user", content=words(f"it works now, thanks {number}")),
    )
    label = (Label.POSITIVE, Label.NEGATIVE, Label.NONE)[number % 3]
    return Conversation(
        id=words(f"conversation {number}"),
        turns=turns,
        label=label,
        group=words(f"user {number % 4}"),
    )


def answers_to(
    number: int, questions: list[Question], words: Words = plain
) -> list[Answer | Unanswered]:
    """Answers drawn for a conversation; every tenth has one that is missing."""
    rng = np.random.default_rng(number)
    found: list[Answer | Unanswered] = []
    for place, question in enumerate(questions):
        if number % 10 == 9 and place == 0:
            found.append(
                Unanswered(
                    question_id=question.id, outcome="refused", detail=words("no"), judge="j"
                )
            )
            continue
        p = rng.dirichlet(np.ones(len(LIKERT_OPTIONS)))
        found.append(
            Answer(
                question_id=question.id,
                probabilities=tuple(p.tolist()),
                chosen=int(p.argmax()),
                source="built-in",
                justification=words("because"),
                turns=(3,),
                judge="built-in (no LLM)",
            )
        )
    return found


def scorer(found: RubricSet) -> NetSat:
    """What adds up, without a model of the thumb."""
    return NetSat(
        signs={rubric.id: 1 if rubric.polarity == "sat" else -1 for rubric in found.rubrics},
        theta=found.theta,
        window=found.window,
        calibration=found.calibration,
    )


def made_store(folder: Path, n: int = 30, words: Words = plain) -> Store:
    """A store with a run of `learn` whose rubric set it keeps, and a run of `score` with it."""
    store = Store.open(folder)
    given: dict[str, Any] = {
        "versions": {"pollex": "0.1.0"},
        "arguments": {"logs": [words("log.jsonl")]},
    }
    learn = store.begin("learn", fingerprint={"data": "d"}, **given)
    found = rubric_set(words, run=learn.id)
    store.put(
        [
            make_fact_row(learn.id, "rubric_set", "set", found),
            *make_rubric_rows(learn.id, found.rubrics),
        ]
    )
    judged(store, learn.id, found, range(n), words, "train")
    store.finish(learn.id, "done", roles=["built-in (no LLM)"])
    score = store.begin("score", fingerprint={"rubrics": "?"}, **given)
    store.put(make_rubric_rows(score.id, found.rubrics))
    judged(store, score.id, found, range(n), words, "")
    store.finish(score.id, "partial", roles=[words("built-in (no LLM)")])
    return store


def judged(
    store: Store, run: str, found: RubricSet, numbers: range, words: Words, side: str
) -> None:
    netsat = scorer(found)
    tracer = Tracer(store, run)
    questions = found.questions
    conversations = [conversation(number, words) for number in numbers]
    store.put(make_conversation_rows(run, conversations, side=side))
    with tracer.span("score", kind="graph"):
        for number, one in zip(numbers, conversations, strict=True):
            given = answers_to(number, questions, words)
            with tracer.span("judge", kind="role", item=one.id) as span:
                span.outputs([answer.question_id for answer in given])
                if number == 5:
                    span.failed(words("the judge stumbled"))
            store.put(AnswerRows(run).of(one, questions, given, "f"))
            score = netsat.score_all({one.id: given})[0]
            store.put(
                [
                    ScoreRow(
                        run, one.id, score.netsat, score.label, score.confident, score.probability
                    )
                ]
            )
    store.flush()


def of_a_model(store: Store) -> None:
    """Give the set in the store to a model, whose answers those of the run are."""
    run = store.value("SELECT id FROM runs WHERE command = 'learn'")
    found = read_facts_by_id(store, run, "rubric_set")["set"]
    able = {"model": "m"}
    options = {"scale": "likert", "value": "auto", "capabilities": able}
    found["judge"] |= {"kind": "llm", "name": "m", "fingerprint": "f", "options": options}
    for rubric in found["rubrics"]:
        rubric["written"] = rubric["text"]
    store.put([FactRow(run, "rubric_set", "set", dump_json(found))])
    judge = make_judge_of_known_answers(RubricSet.parse(found), store)
    assert judge is not None
    known = read_answers(store, run)
    questions = [question for question in RubricSet.parse(found).questions if question.rubric]
    for one in iterate_conversations(store, run):
        answers = [known[one.id][question.id] for question in questions]
        store.put(AnswerRows(run).of(one, questions, answers, judge.fingerprint))
    store.flush()


def made_app(
    store: Store, *, token: str | None = TOKEN, read_only: bool = False, **more: Any
) -> Guard:
    """The application on a store, as it is served at `BASE`; `more` is what it was started with beside that."""
    named = more.pop("named", {})
    site = Site(store, more.pop("files", {}), token, read_only, **more)
    begin_serving_files(site, named)
    return make_application(
        site,
        AccessRules.at(
            ("127.0.0.1", "localhost"), PORT, token, site.id, guest_of=make_guest_finder(store)
        ),
    )


def client_of(app: Guard, *, token: str | None = TOKEN) -> httpx2.AsyncClient:
    """A client in memory that brings the token."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return httpx2.AsyncClient(
        transport=httpx2.ASGITransport(app=app), base_url=BASE, headers=headers
    )


def scored(store: Store, found: RubricSet, numbers: Sequence[int]) -> str:
    """A run that scored other conversations with the set of the learning run."""
    run = store.begin(
        "score",
        fingerprint={"rubrics": compute_rubric_set_digest(found)},
        versions={},
        arguments={},
    )
    judged(store, run.id, found, numbers, plain, "")
    store.finish(run.id, "done", roles=["built-in (no LLM)"])
    return run.id
