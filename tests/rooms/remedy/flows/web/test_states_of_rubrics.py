"""What becomes of a rubric: shares by week and release, states that people set, and what is back again."""

import re
from collections.abc import Sequence
from typing import Any

import pytest
from httpx2 import AsyncClient
from web_site import answers_to, client_of, conversation, made_app, scored, scorer

from pollex.errors import BadRubrics, WrongUse
from pollex.formats.fields import ReadOptions
from pollex.graphs.context import NullProgress
from pollex.rooms.remedy.services.life import (
    build_lives,
    get_rubric_family,
    list_mended_rubrics,
    mark_rubrics_back,
    read_states,
    set_rubric_state,
)
from pollex.rubrics.answers import MIDDLE_OPTION_VALUE, Answer
from pollex.rubrics.rubric_set import RubricSet
from pollex.runs.options import ModelOptions, RunOptions
from pollex.services.check import check
from pollex.store.forgetting import delete_conversations_from_store, find_conversations_to_forget
from pollex.store.resume import list_stored_runs, read_answers, read_facts_by_id
from pollex.store.rows import AnswerRows, make_conversation_rows, make_fact_row, make_rubric_rows
from pollex.store.rubric_sets import compute_rubric_set_digest
from pollex.store.store import Store
from pollex.store.tables import ScoreRow
from pollex.web import links


def the_set(store: Store) -> RubricSet:
    return RubricSet.parse(
        read_facts_by_id(store, list_stored_runs(store)[0].id, "rubric_set")["set"]
    )


def kept_rubrics(store: Store, run: str, found: RubricSet) -> None:
    store.put(make_rubric_rows(run, found.rubrics))
    store.flush()


def test_what_is_no_state_and_no_rubric_is_refused_with_what_to_give(own: Store) -> None:
    name = the_set(own).rubrics[0].id
    run = RunOptions(own.folder)
    refused: list[tuple[str | None, dict[str, str], str]] = [
        ("mended", {}, "mended in which release"),
        ("open", {"release": "2"}, "only what is mended has a release"),
        ("gone", {}, "no state is called 'gone' → give one of open, mending, mended, accepted"),
        (None, {"note": "x"}, "there is no state"),
    ]
    for state, more, says in refused:
        with pytest.raises(WrongUse, match=says):
            set_rubric_state(run, name, state, **more)  # type: ignore[arg-type]
    for other in ("zzz", "%"):  # a name is no pattern
        with pytest.raises(BadRubrics, match="begin"):
            set_rubric_state(run, other)


def test_a_conversation_that_two_runs_scored_counts_once_as_the_last_has_it(own: Store) -> None:
    found = the_set(own)
    for _ in range(2):
        kept_rubrics(own, scored(own, found, range(12)), found)
    run = list_stored_runs(own)[-1].id
    answers = read_answers(own, run)
    for rubric in found.rubrics:
        said = [
            each[rubric.id] for each in answers.values() if isinstance(each.get(rubric.id), Answer)
        ]
        held = sum(one.expected() > MIDDLE_OPTION_VALUE for one in said if isinstance(one, Answer))
        (life,) = build_lives(own, [rubric])
        (share,) = life.weeks.values()
        assert (share.n, round((share.value or 0) * len(said))) == (len(said), held)
        assert life.events[0].what == "found"


async def test_a_state_that_is_set_in_the_browser_is_on_the_page_and_decides_what_home_begins_with(
    own: Store, web: AsyncClient
) -> None:
    found = the_set(own)
    kept_rubrics(own, scored(own, found, range(12)), found)
    wrong = [one for one in found.rubrics if one.polarity == "dsat"]
    given = {
        "set": compute_rubric_set_digest(found),
        "id": wrong[0].id,
        "state": "mended",
        "release": "2.14",
        "who": "Mia",
    }
    before = (await web.get("/")).text
    assert (
        await web.post("/api/states", json=given | {"state": "mending", "release": ""})
    ).status_code == 200
    mending = (await web.get("/")).text
    refused = await web.post("/api/states", json=given | {"release": ""})
    assert (refused.status_code, refused.json()["error"]) == (400, "mended in which release?")
    assert (
        await web.post("/api/states", json=given | {"note": "<b>asks once</b>"})
    ).status_code == 200
    page = (await web.get(links.link_to_rubric(compute_rubric_set_digest(found), wrong[0].id))).text
    after = (await web.get("/")).text
    assert "State: mended in 2.14" in page
    assert "&lt;b&gt;asks once" in page
    assert "How often it holds" in page
    opened = re.compile(r'<h2 id="open">Open</h2>.*?</section>', re.DOTALL)
    assert not opened.search(before), "how people sound leads nothing, unless somebody speaks of it"
    assert wrong[0].id in opened.findall(mending)[0]
    assert not opened.search(after) or wrong[0].id not in opened.findall(after)[0]
    mark_rubrics_back(
        own.folder, list_mended_rubrics(own.folder, found).values(), "new against old"
    )
    again = opened.findall((await web.get("/")).text)[0]
    assert again.index("back again") < again.index(wrong[0].id)
    async with client_of(made_app(own, read_only=True)) as client:
        assert (await client.post("/api/states", json=given)).status_code == 403


def test_the_state_of_one_is_not_that_of_another_of_its_family_beside_it(own: Store) -> None:
    found = the_set(own)
    one = found.rubrics[0].model_copy(update={"source": "signal:complaint"})
    two = one.model_copy(update={"id": "another", "text": "Another of its family."})
    both = found.model_copy(update={"rubrics": (one, two)})
    alone = found.model_copy(update={"rubrics": (two,)})
    assert get_rubric_family(one) == get_rubric_family(two) != one.id
    kept_rubrics(own, list_stored_runs(own)[0].id, both)
    set_rubric_state(RunOptions(own.folder), one.id, "mended", release="3")
    assert list(list_mended_rubrics(own.folder, both)) == [one.id]
    assert list(list_mended_rubrics(own.folder, alone)) == [two.id]


def test_a_note_that_quotes_what_is_forgotten_goes_too(own: Store) -> None:
    name = the_set(own).rubrics[0].id
    said = "it works now, thanks 4"
    set_rubric_state(RunOptions(own.folder), name, "mending", note=f"see: {said}")
    delete_conversations_from_store(own, find_conversations_to_forget(own, ["conversation 4"], []))
    (kept,) = next(iter(read_states(own).values()))
    assert (kept.state, said in kept.note) == ("mending", False)


def held_or_not(found: RubricSet, id_: str) -> tuple[list[int], list[int]]:
    """Numbers of made conversations in which a rubric holds, and of others."""
    sides: tuple[list[int], list[int]] = [], []
    place = [one.id for one in found.rubrics].index(id_)
    for number in range(300, 700):
        answer = answers_to(number, found.questions)[place]
        if isinstance(answer, Answer):
            sides[answer.expected() <= MIDDLE_OPTION_VALUE].append(number)
    return sides


def scored_users(store: Store, found: RubricSet, numbers: Sequence[int]) -> str:
    """A run that scored conversations of which each is a user's only one."""
    run = store.begin("score", fingerprint={}, versions={}, arguments={}).id
    netsat = scorer(found)
    for number in numbers:
        one = conversation(number).model_copy(update={"group": None})
        given = answers_to(number, found.questions)
        score = netsat.score_all({one.id: given})[0]
        row = ScoreRow(run, one.id, score.netsat, score.label, score.confident, score.probability)
        store.put([*make_conversation_rows(run, [one]), row])
        store.put(AnswerRows(run).of(one, found.questions, given, "f"))
    store.finish(run, "done")
    return run


def test_check_fails_where_a_mended_rubric_holds_more_often_and_marks_it(own: Store) -> None:
    found = the_set(own)
    wrong = next(one for one in found.rubrics if one.polarity == "dsat")
    held, others = held_or_not(found, wrong.id)
    old, same, worse = (
        scored_users(own, found, numbers)
        for numbers in (others[:80], others[80:160], [*held[:60], *others[80:100]])
    )
    setting = RunOptions(own.folder)
    progress = NullProgress()
    asked: dict[str, Any] = {
        "fail_if": [],
        "reading": ReadOptions(),
        "run": setting,
        "model": ModelOptions(),
    }
    with pytest.raises(WrongUse, match="there is no condition"):
        check(same, old, found, progress=progress, **asked)
    set_rubric_state(setting, wrong.id, "mended", release="2.14")
    for new, state in ((same, "mended"), (worse, "back")):
        result = check(new, old, found, progress=progress, **asked)
        assert (result.mended, result.failed) == (1, state == "back")
        said = read_states(own)[get_rubric_family(wrong)][-1]
        assert (said.state, said.who == "check") == (state, state == "back")
    assert f"{wrong.id}, mended in 2.14, is back again" in result.verdicts[0].condition


def test_what_another_log_doesnt_tell_of_is_not_gone(own: Store) -> None:
    found = the_set(own)
    rubric = found.rubrics[0]
    without = found.model_copy(update={"rubrics": found.rubrics[1:]})
    learned = [("other.jsonl", without), ("log.jsonl", without), ("log.jsonl", found)]
    for log, rubrics in learned:
        run = own.begin("learn", fingerprint={"data": log}, versions={}, arguments={"logs": [log]})
        own.put([make_fact_row(run.id, "rubric_set", "set", rubrics)])
        own.finish(run.id, "done", roles=["built-in (no LLM)"])
    (life,) = build_lives(own, [rubric])
    told = [(event.what, event.where) for event in life.events]
    runs = [run.id for run in list_stored_runs(own) if run.command == "learn"]
    assert told == [("found", runs[0]), ("gone", runs[2]), ("back again", runs[3])]
