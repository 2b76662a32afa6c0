"""Labeling: who gets which conversation, what is kept, how far people agree, and what `learn` reads of it."""

import asyncio
import re
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
from web_site import client_of, judged_run, made_app, made_store

from pollex.formats.read_logs import read_logs
from pollex.services.verdicts import agreement
from pollex.store.labels import Opinion, opinions, settled
from pollex.store.store import Store
from pollex.store.tables import unpacked
from pollex.web.pages.agreement import disputed, with_oneself


@pytest.fixture
async def labeled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[httpx2.AsyncClient, Store]]:
    monkeypatch.setattr("secrets.randbits", lambda _bits: 7)  # what a queue draws is the same at each run
    with made_store(tmp_path / ".pollex", n=12) as store:
        async with client_of(made_app(store)) as client:
            yield client, store


async def queue(client: httpx2.AsyncClient, **given: object) -> str:
    answer = await client.post("/api/queues", json={"name": "a queue", "run": "learn-1", "repeat_share": 0} | given)
    assert answer.status_code == 200, answer.text
    return str(answer.json()["queue"])


async def lease(client: httpx2.AsyncClient, of: str, who: str) -> str | None:
    answer = (await client.post(f"/api/queues/{of}/next", json={"who": who})).json()
    return answer["lease"] if answer["lease"] is None else str(answer["lease"])


async def answer_all(client: httpx2.AsyncClient, of: str, who: str, value: str) -> int:
    given = 0
    while found := await lease(client, of, who):
        assert (await client.post("/api/labels", json={"lease": found, "who": who, "value": value})).status_code == 200
        given += 1
    return given


async def test_how_long_a_sheet_was_open_and_what_a_page_showed_is_kept(
    labeled: tuple[httpx2.AsyncClient, Store],
) -> None:
    client, store = labeled
    first = await lease(client, await queue(client), "Ann")
    about = {"lease": first, "who": "Ann", "value": "up", "shown_ms": 1234}
    assert (await client.post("/api/labels", json=about)).status_code == 200
    for who, id_ in (("Bob", "conversation 1"), ("Cyd", "conversation 1")):
        thumb = {"run": "score-2", "id": id_, "who": who, "value": "up"}
        assert (await client.post("/api/thumbs", json=thumb)).status_code == 200
    rows = store.rows("SELECT shown_ms, took_ms > 0 AS took, saw FROM sheets ORDER BY rowid")
    assert [(row["shown_ms"], row["took"], unpacked(row["saw"])) for row in rows] == [
        (1234, 1, []), (None, None, ["prediction"]), (None, None, ["prediction", "others"]),
    ]  # fmt: skip


async def test_an_answer_that_is_taken_back_counts_no_more_and_its_conversation_comes_again(
    labeled: tuple[httpx2.AsyncClient, Store],
) -> None:
    client, store = labeled
    of = await queue(client)
    first = await lease(client, of, "Ann")
    label = (await client.post("/api/labels", json={"lease": first, "who": "Ann", "value": "up"})).json()["label"]
    assert len(opinions(store, "thumb")) == 1
    assert (await client.post(f"/api/labels/{label}/undo", json={"who": "Bob"})).status_code == 409
    assert (await client.post("/api/labels/none/undo", json={"who": "Ann"})).status_code == 404
    assert (await client.post(f"/api/labels/{label}/undo", json={"who": "Ann"})).json()["lease"] == first
    assert opinions(store, "thumb") == []
    assert (await client.post(f"/api/labels/{label}/undo", json={"who": "Ann"})).status_code == 409
    assert await lease(client, of, "Ann") == first
    assert (await client.post("/api/labels", json={"lease": first, "who": "Ann", "value": "down"})).status_code == 200
    assert [one.value for one in opinions(store, "thumb")] == ["down"]
    assert await lease(client, of, "Ann") != first


@pytest.mark.parametrize("kind", ["random", "unsure"])
async def test_many_at_once_get_every_conversation_as_often_as_is_wanted(
    labeled: tuple[httpx2.AsyncClient, Store], kind: str
) -> None:
    client, store = labeled
    of = await queue(client, kind=kind, overlap=2, random_share=0)
    wanted = 12 if kind == "random" else 11
    given = await asyncio.gather(*(answer_all(client, of, f"person {n}", "up") for n in range(8)))
    assert sum(given) == 2 * wanted
    rows = store.rows("SELECT text_hash, annotator FROM labels")
    assert set(Counter(row["text_hash"] for row in rows).values()) == {2}
    assert len({(row["text_hash"], row["annotator"]) for row in rows}) == 2 * wanted


async def test_a_lease_that_was_not_answered_comes_again_and_is_nobody_elses(
    labeled: tuple[httpx2.AsyncClient, Store],
) -> None:
    client, _ = labeled
    of = await queue(client)
    mine = await lease(client, of, "ann")
    assert await lease(client, of, "ann") == mine
    assert await lease(client, of, "bob") != mine
    stolen = await client.post("/api/labels", json={"lease": mine, "who": "bob", "value": "up"})
    assert stolen.status_code == 409
    assert (await client.post("/api/labels", json={"lease": "none", "who": "ann", "value": "up"})).status_code == 404


async def test_a_lease_that_is_over_takes_no_answer(labeled: tuple[httpx2.AsyncClient, Store]) -> None:
    client, store = labeled
    mine = await lease(client, await queue(client), "ann")
    with store.database.transaction() as connection:
        connection.execute("UPDATE leases SET until = '2020-01-01T00:00:00.000000+00:00'")
    late = await client.post("/api/labels", json={"lease": mine, "who": "ann", "value": "up"})
    assert late.status_code == 409
    assert store.value("SELECT count(*) FROM labels") == 0


async def test_what_is_predicted_is_not_in_the_page_before_the_answer(
    labeled: tuple[httpx2.AsyncClient, Store],
) -> None:
    client, _ = labeled
    of = await queue(client)
    page = (await client.get(f"/label/{of}", params={"lease": await lease(client, of, "ann")})).text
    assert "it works now" in page
    assert not re.search(r"NetSAT|P\(up\)|<mark|predicted|thanks 1\.|inside the window", page)


async def test_a_form_without_a_script_goes_on_to_the_next_conversation(
    labeled: tuple[httpx2.AsyncClient, Store],
) -> None:
    client, store = labeled
    of = await queue(client)
    begun = await client.post(f"/api/queues/{of}/next", data={"who": "ann"})
    assert begun.status_code == 303
    (first,) = parse_qs(urlsplit(begun.headers["location"]).query)["lease"]
    kept = await client.post("/api/labels", data={"lease": first, "who": "ann", "value": "down", "comment": ""})
    (second,) = parse_qs(urlsplit(kept.headers["location"]).query)["lease"]
    assert second != first
    assert store.value("SELECT value FROM labels") == '"down"'


async def test_a_changed_answer_is_a_new_row_and_the_last_one_counts(
    labeled: tuple[httpx2.AsyncClient, Store],
) -> None:
    client, store = labeled
    mine = await lease(client, await queue(client), "ann")
    for value in ("up", "down"):
        await client.post("/api/labels", json={"lease": mine, "who": "ann", "value": value})
    assert store.value("SELECT count(*) FROM labels") == 2
    assert store.value("SELECT count(*) FROM sheets WHERE replaces <> ''") == 1
    (row,) = (await client.get("/api/export", params={"shape": "long"})).text.splitlines()[1:]
    assert ",down," in row


async def test_an_answer_is_a_value_or_a_reason_why_there_is_none(labeled: tuple[httpx2.AsyncClient, Store]) -> None:
    client, store = labeled
    mine = await lease(client, await queue(client), "ann")
    both = await client.post("/api/labels", json={"lease": mine, "who": "ann", "value": "up", "skip": "no"})
    assert both.status_code == 400
    assert (await client.post("/api/labels", json={"lease": mine, "who": "ann"})).status_code == 400
    wrong = await client.post("/api/labels", json={"lease": mine, "who": "ann", "value": "up", "coment": "late"})
    assert (wrong.status_code, wrong.json()["error"]) == (400, "coment: there is no such field")
    await client.post("/api/labels", json={"lease": mine, "who": "ann", "skip": "another language"})
    assert store.value("SELECT skip FROM sheets") == "another language"
    assert (await client.get("/api/export")).text == ""


async def test_where_people_differ_somebody_decides_and_that_counts(labeled: tuple[httpx2.AsyncClient, Store]) -> None:
    client, _ = labeled
    of = await queue(client, kind="random", overlap=2)
    await answer_all(client, of, "ann", "up")
    await answer_all(client, of, "bob", "down")
    assert (await client.get("/api/export")).text == "", "where they tie there is no label"
    page = (await client.get("/label/adjudicate")).text
    assert "ann" not in re.sub(r"<[^>]+>", "", page)
    found = re.search(r'name="text" value="(\w+)"', page)
    assert found
    decided = {"text": found[1], "who": "cat", "value": "up", "reason": "it worked"}
    assert (await client.post("/api/adjudications", json=decided)).status_code == 200
    assert (await client.post("/api/adjudications", json=decided)).status_code == 409
    told = (await client.get("/label/agreement")).text
    assert "11" in told
    assert '"source": "adjudicated"' in (await client.get("/api/export")).text


async def test_people_are_compared_with_the_votes_of_a_judge_run(labeled: tuple[httpx2.AsyncClient, Store]) -> None:
    client, store = labeled
    run = judged_run(store, 12)  # its votes agree about every odd one, and on the first option: a thumb up
    of = await queue(client, kind="random")
    for _ in range(12):
        found = await lease(client, of, "ann")
        about = store.value("SELECT conversation FROM leases WHERE id = ?", [found])
        number = int(str(about).split()[1])
        value = "up" if number % 2 and number > 1 else "down"  # she differs about number 1
        assert (
            await client.post("/api/labels", json={"lease": found, "who": "ann", "value": value})
        ).status_code == 200
    page = (await client.get("/label/agreement")).text
    row = page[page.index(f'the votes of <a href="/runs/{run}"') :].partition("</tr>")[0]
    assert "n = 12" in re.sub(r"<[^>]+>", " ", row)  # two answers each of the six that both answered


async def test_learn_and_calibrate_read_what_is_exported(
    labeled: tuple[httpx2.AsyncClient, Store], tmp_path: Path
) -> None:
    client, _ = labeled
    of = await queue(client, kind="random")
    await answer_all(client, of, "=ann", "down")
    log, table = tmp_path / "labels.jsonl", tmp_path / "judgments.csv"
    log.write_text((await client.get("/api/export")).text, "utf-8")
    table.write_text((await client.get("/api/export", params={"shape": "long"})).text, "utf-8")
    logs = read_logs([str(log)])
    assert [one.label.value for one in logs.conversations] == ["negative"] * 12
    assert "'=ann" in table.read_text("utf-8")
    assert (await client.get("/api/export", params={"sources": "adjudicated"})).text == ""


async def test_a_server_that_only_shows_takes_no_label(tmp_path: Path) -> None:
    with made_store(tmp_path / ".pollex", n=3) as store:
        async with client_of(made_app(store, read_only=True)) as client:
            assert (await client.post("/api/queues", json={"name": "a"})).status_code == 403


async def test_a_page_of_another_server_writes_nothing(labeled: tuple[httpx2.AsyncClient, Store]) -> None:
    client, store = labeled
    other = await client.post("/api/queues", json={"name": "a"}, headers={"X-Pollex-Site": "other"})
    assert other.status_code == 409
    assert (await client.post("/api/queues", data={"name": "a", "site": "other"})).status_code == 409
    assert store.value("SELECT count(*) FROM queues") == 0


def said(*answers: tuple[str, str, str]) -> list[Opinion]:
    return [Opinion(who, text, text, "run", value, source="person", drawn="") for who, text, value in answers]


def test_alpha_of_two_people_is_that_worked_by_hand() -> None:
    ann, bob = "uuuuddddud", "uuuudddduu"
    given = [("ann", f"t{n}", value) for n, value in enumerate(ann)] + [("bob", f"t{n}", v) for n, v in enumerate(bob)]
    ups = (ann + bob).count("u")
    expected = 2 * ups * (20 - ups) / (20 * 19)
    assert agreement(said(*given)).value == pytest.approx(1 - 0.1 / expected)


@pytest.mark.parametrize("kind", [float, str])
def test_answers_that_are_near_each_other_agree_more_where_options_have_an_order(kind: type) -> None:
    def between(*bob: float) -> float:
        ann = (0.0, 2.5, 5.0, 7.5, 10.0, 0.0, 10.0)
        rows = [(who, f"t{n}", kind(v)) for who, every in (("ann", ann), ("bob", bob)) for n, v in enumerate(every)]
        return float(agreement(said(*rows)).value or 0.0)

    near, far = between(2.5, 2.5, 5.0, 7.5, 10.0, 0.0, 10.0), between(10.0, 2.5, 5.0, 7.5, 10.0, 0.0, 10.0)
    assert (near - far > 0.2) == (kind is float)


def test_fewer_than_five_shared_texts_have_no_figure() -> None:
    few = agreement(said(("ann", "a", "up"), ("bob", "a", "up"), ("ann", "b", "up")))
    assert few.value is None
    assert few.undefined.startswith("too few")


def test_most_answers_settle_a_text_and_a_tie_settles_none() -> None:
    given = said(("a", "t", "up"), ("b", "t", "up"), ("c", "t", "down"), ("a", "s", "up"), ("b", "s", "down"))
    assert {text: one.value for text, one in settled(given).items()} == {"t": "up"}
    assert set(disputed(given)) == {"t", "s"}


QUESTIONNAIRE = """
main = "Q0"
[[question]]
id = "Q0"
text = "All in all?"
options = [[1, "bad"], [2, "good"]]
[[question]]
id = "Q1"
text = "Was the <b>answer</b> right?"
options = [[0, "no"], [1, "partly"], [2, "yes"]]
skip = "doesn't apply"
"""


async def test_a_questionnaire_is_asked_whole_and_exported_by_question(
    labeled: tuple[httpx2.AsyncClient, Store], tmp_path: Path
) -> None:
    client, store = labeled
    of = await queue(client, kind="random", ask="questionnaire", questionnaire=QUESTIONNAIRE)
    mine = await lease(client, of, "ann")
    page = (await client.get(f"/label/{of}", params={"lease": mine})).text
    assert page.index("Was the &lt;b&gt;answer") < page.index("All in all?"), "the main question comes last"
    half = await client.post("/api/labels", json={"lease": mine, "who": "ann", "q-Q1": "2"})
    assert half.status_code == 400
    assert store.value("SELECT count(*) FROM labels") == 0
    whole = {"lease": mine, "who": "ann", "q-Q1": "skip", "q-Q0": "1"}
    assert (await client.post("/api/labels", json=whole)).status_code == 200
    rows = {row["question"]: row["value"] for row in store.rows("SELECT * FROM labels")}
    assert rows == {"Q1": "null", "Q0": "2.0"}
    (row,) = (await client.get("/api/export", params={"shape": "long"})).text.splitlines()[1:]
    assert ",Q0,ann,2.0,person,random" in row


@pytest.mark.parametrize("text", ["[[question]", "", "[[question]]\nid='a'\ntext='b'\noptions=[[1,'c']]", "question=3"])
async def test_a_questionnaire_that_is_wrong_makes_no_queue(
    labeled: tuple[httpx2.AsyncClient, Store], text: str
) -> None:
    client, store = labeled
    body = {"name": "q", "run": "learn-1", "ask": "questionnaire", "questionnaire": text}
    assert (await client.post("/api/queues", json=body)).status_code == 400
    assert store.value("SELECT count(*) FROM queues") == 0


async def test_what_people_answer_to_a_questionnaire_differently_is_decided_the_farthest_apart_first(
    labeled: tuple[httpx2.AsyncClient, Store],
) -> None:
    client, store = labeled
    of = await queue(client, kind="random", ask="questionnaire", questionnaire=QUESTIONNAIRE, overlap=2)
    for who, places in (("ann", "000"), ("bob", "012")):  # they agree, are one step apart, and two
        for place in places:
            given = {"lease": await lease(client, of, who), "who": who, "q-Q1": place, "q-Q0": "1"}
            assert (await client.post("/api/labels", json=given)).status_code == 200
    words = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", (await client.get("/label/adjudicate")).text))
    assert "2 conversations left" in words.replace("\xa0", " ")
    assert "A: no, B: yes" in words
    page = (await client.get("/label/adjudicate", params={"question": "Q1"})).text
    text = re.search(r'name="text" value="(\w+)"', page)
    assert text
    decided = {"text": text[1], "who": "cat", "value": "up", "reason": "it was half right", "question": "Q1"}
    assert (await client.post("/api/adjudications", json=decided)).status_code == 400
    assert (await client.post("/api/adjudications", json=decided | {"value": "1.0"})).status_code == 200
    assert [one.value for one in opinions(store, "Q1") if one.source == "adjudicated"] == [1.0]
    assert "A: no, B: partly" in re.sub(r"\s+", " ", (await client.get("/label/adjudicate")).text)


async def test_people_are_compared_with_the_judge_about_its_rubrics(
    labeled: tuple[httpx2.AsyncClient, Store],
) -> None:
    client, store = labeled
    of = await queue(client, kind="random", ask="rubrics")
    run = store.value("SELECT id FROM runs WHERE command = 'learn'")
    said = {row["conversation"]: row["chosen"] for row in store.ask(run, JUDGED)}
    for _ in range(11):  # all but the one that the judge gave no answer about
        found = (await client.post(f"/api/queues/{of}/next", json={"who": "ann"})).json()
        place = said.get(found["conversation"])
        given = {"lease": found["lease"], "who": "ann", "q-rubric1": str(place or 0), "q-rubric2": "0"}
        assert (await client.post("/api/labels", json=given)).status_code == 200
    page = (await client.get("/label/agreement")).text
    row = page[page.index("the judge’s answers") :].partition("</tr>")[0]
    assert "1.00" in row, "she said the same each time"
    assert "The user says thanks 1." in page, "questions are shown in their words"


JUDGED = "SELECT conversation, arg_max(chosen, seq) AS chosen FROM answers WHERE question = 'rubric1' GROUP BY ALL"


async def test_rubrics_are_asked_of_people_in_their_own_words(labeled: tuple[httpx2.AsyncClient, Store]) -> None:
    client, _ = labeled
    of = await queue(client, kind="random", ask="rubrics")
    page = (await client.get(f"/label/{of}", params={"lease": await lease(client, of, "ann")})).text
    assert "The user says thanks 2." in page
    assert page.count("<fieldset") == 2


async def test_a_queue_of_a_filtered_list_has_what_the_list_has(labeled: tuple[httpx2.AsyncClient, Store]) -> None:
    client, store = labeled
    listed = (await client.get("/api/conversations", params={"run": "learn-1", "thumb": "down"})).json()
    of = await queue(client, kind="filter", filter="thumb=down", random_share=0)
    assert await answer_all(client, of, "ann", "up") == listed["total"]
    given = {row["conversation"] for row in store.rows("SELECT conversation FROM labels")}
    assert given == {row["id"] for row in listed["rows"]}
    assert {row["drawn"] for row in store.rows("SELECT drawn FROM labels")} == {"filter"}


async def test_what_is_drawn_at_random_is_drawn_from_the_whole_run_and_goes_to_as_many_people(
    labeled: tuple[httpx2.AsyncClient, Store],
) -> None:
    client, store = labeled
    listed = (await client.get("/api/conversations", params={"run": "learn-1", "thumb": "down"})).json()
    inside = {row["id"] for row in listed["rows"]}
    of = await queue(client, kind="filter", filter="thumb=down", random_share=0.9, overlap=2)
    assert await answer_all(client, of, "ann", "up") + await answer_all(client, of, "bob", "up") > 2 * len(inside)
    rows = store.rows("SELECT conversation, annotator, drawn FROM labels")
    assert {row["drawn"] for row in rows if row["conversation"] not in inside} == {"random"}
    ann, bob = ({row["conversation"] for row in rows if row["annotator"] == who} for who in ("ann", "bob"))
    assert inside <= ann & bob
    assert {row["conversation"] for row in rows if row["annotator"] == "ann" and row["drawn"] == "random"} <= bob


async def test_chance_draws_what_was_labeled_for_being_doubtful_too_and_its_answer_counts_as_drawn_at_random(
    labeled: tuple[httpx2.AsyncClient, Store],
) -> None:
    client, store = labeled
    of = await queue(client, kind="unsure", random_share=0)
    for _ in range(8):
        found = await lease(client, of, "ann")
        assert (await client.post("/api/labels", json={"lease": found, "who": "ann", "value": "up"})).status_code == 200
    with store.database.transaction() as connection:
        connection.execute("UPDATE queues SET random_share = 1, kind = 'random'")
    assert await answer_all(client, of, "ann", "down") == 4
    said = opinions(store, "thumb")
    assert Counter(one.value for one in said) == {"up": 8, "down": 4}, "answers stay what they were, and count once"
    drawn = Counter((one.value, one.drawn) for one in said)
    assert drawn["down", "random"] == 4
    adopted = store.value("SELECT count(*) FROM labels") - 12
    assert drawn["up", "random"] == adopted
    assert store.value("SELECT count(*) FROM sheets WHERE replaces <> ''") == adopted
    assert "12 of 12 done" in (await client.get(f"/label/{of}")).text


async def test_what_is_shown_twice_tells_how_far_one_agrees_with_oneself_and_nothing_else(
    labeled: tuple[httpx2.AsyncClient, Store],
) -> None:
    client, store = labeled
    of = await queue(client, kind="random", repeat_share=0.5)
    given = await answer_all(client, of, "ann", "up")
    repeats = store.value("SELECT count(*) FROM labels WHERE drawn = 'repeat'")
    assert given == 12 + repeats
    assert repeats > 0
    rows = (await client.get("/api/export", params={"shape": "long"})).text.splitlines()[1:]
    assert len(rows) == 12, "a second answer is no second label"
    assert repeats < 5 or with_oneself(store, "thumb").n == 2 * repeats


async def test_a_thumb_given_while_reading_is_of_its_own_kind_and_changes_no_blind_one(
    labeled: tuple[httpx2.AsyncClient, Store],
) -> None:
    client, store = labeled
    about = {"run": "learn-1", "id": "conversation 4", "who": "ann"}
    for value in ("up", "down"):
        assert (await client.post("/api/thumbs", json=about | {"value": value})).status_code == 200
    assert [row["drawn"] for row in store.rows("SELECT drawn FROM labels")] == ["voluntary"] * 2
    page = (await client.get("/conversation", params=about)).text
    assert page.count("who saw the score") == 1, "the last one counts"
    of = await queue(client, kind="filter", filter="q=conversation 4", random_share=0, overlap=2)
    assert await answer_all(client, of, "bob", "up") == 1
    assert (await client.post("/api/thumbs", json=about | {"who": "bob", "value": "down"})).status_code == 409
    assert (await client.post("/api/thumbs", json=about | {"id": "nobody", "value": "up"})).status_code == 404
    assert "1\xa0label of people" in (await client.get("/label/agreement")).text
    assert disputed(opinions(store, "thumb")) == {}, "who had seen the score disagrees with nobody"


async def test_home_says_which_queue_was_left(labeled: tuple[httpx2.AsyncClient, Store]) -> None:
    client, _ = labeled
    of = await queue(client, kind="random", name="Mondays")
    assert "Mondays" not in (await client.get("/")).text, "nobody began it"
    found = await lease(client, of, "ann")
    assert (await client.post("/api/labels", json={"lease": found, "who": "ann", "value": "up"})).status_code == 200
    page = re.sub(r"\s+", " ", (await client.get("/")).text)
    assert f'href="/label/{of}">Mondays</a>: 1' in page
