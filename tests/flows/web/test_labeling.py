"""Labeling: who gets which conversation, what is kept, how far people agree, and what `learn` reads of it."""

import asyncio
import json
import re
from collections import Counter
from html import unescape
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from httpx2 import AsyncClient
from judged_run import judged_run
from small_log import small_log, write_log
from small_runs import run_here
from web_site import client_of, conversation, made_app

from pollex.conversations.conversation import Source
from pollex.formats.read_logs import read_logs
from pollex.services.agreement import measure_agreement
from pollex.store.labels import Opinion, read_opinions, settle_opinions
from pollex.store.rows import make_conversation_rows
from pollex.store.store import Store
from pollex.store.tables import ScoreRow, load_json
from pollex.web.pages.agreement import list_disputed_texts, measure_self_agreement


@pytest.fixture(autouse=True)
def the_same_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("secrets.randbits", lambda _bits: 7)


async def queue(client: AsyncClient, **given: object) -> str:
    answer = await client.post(
        "/api/queues", json={"name": "a queue", "run": "learn-1", "repeat_share": 0} | given
    )
    assert answer.status_code == 200, answer.text
    return str(answer.json()["queue"])


async def lease(client: AsyncClient, of: str, who: str) -> str | None:
    answer = (await client.post(f"/api/queues/{of}/next", json={"who": who})).json()
    return answer["lease"] if answer["lease"] is None else str(answer["lease"])


def talks(number: int) -> list[dict[str, object]]:
    """Rows of a log of so many different conversations."""
    rows: list[dict[str, object]] = []
    for place in range(number):
        messages = [
            {"role": "user", "content": f"Where is parcel {place}?"},
            {"role": "assistant", "content": "It is on its way."},
        ]
        rows.append({"id": f"talk {place}", "messages": messages})
    return rows


def make_queue_of_log(folder: Path, rows: list[dict[str, object]], count: int = 200) -> str:
    """Make a queue of a log in the store of a folder; its id."""
    log = write_log(folder / "talks.jsonl", rows)
    options = ("--store", folder / ".pollex", "--count", count, "--json")
    made = run_here("label", "queue", log, *options)
    return str(json.loads(made.out.splitlines()[-1])["queue"])


async def answer_all(client: AsyncClient, of: str, who: str, value: str) -> int:
    given = 0
    while found := await lease(client, of, who):
        assert (
            await client.post("/api/labels", json={"lease": found, "who": who, "value": value})
        ).status_code == 200
        given += 1
    return given


async def test_how_long_a_sheet_was_open_and_what_a_page_showed_is_kept(
    own: Store, web: AsyncClient
) -> None:
    first = await lease(web, await queue(web), "Ann")
    about = {"lease": first, "who": "Ann", "value": "up", "shown_ms": 1234}
    assert (await web.post("/api/labels", json=about)).status_code == 200
    for who, id_ in (("Bob", "conversation 1"), ("Cyd", "conversation 1")):
        thumb = {"run": "score-2", "id": id_, "who": who, "value": "up"}
        assert (await web.post("/api/thumbs", json=thumb)).status_code == 200
    rows = own.rows("SELECT shown_ms, took_ms > 0 AS took, saw FROM sheets ORDER BY rowid")
    assert [(row["shown_ms"], row["took"], load_json(row["saw"])) for row in rows] == [
        (1234, 1, []), (None, None, ["prediction"]), (None, None, ["prediction", "others"]),
    ]  # fmt: skip


async def test_what_is_sent_twenty_times_is_kept_once_and_a_change_of_mind_is_another_row(
    own: Store, web: AsyncClient
) -> None:
    about = {"lease": await lease(web, await queue(web), "Ann"), "who": "Ann", "value": "up"}
    thumb = {"run": "score-2", "id": "conversation 1", "who": "Bob", "value": "up"}
    for path, row in (("/api/labels", about), ("/api/thumbs", thumb)):
        before = own.value("SELECT count(*) FROM labels")
        answers = await asyncio.gather(*(web.post(path, json=row) for _ in range(20)))
        assert {answer.status_code for answer in answers} == {200}
        assert len({answer.json()["label"] for answer in answers}) == 1
        changes = ({"value": "down"}, {"value": "up"}, {"comment": "Look again."})
        for change in changes:
            assert (await web.post(path, json=row | change)).status_code == 200
        assert own.value("SELECT count(*) FROM labels") == before + 1 + len(changes)
    assert own.value("SELECT count(*) FROM sheets") == own.value(
        "SELECT count(*) FROM labels WHERE annotator <> ''"
    )


async def test_an_answer_that_is_taken_back_counts_no_more_and_its_conversation_comes_again(
    own: Store, web: AsyncClient
) -> None:
    of = await queue(web)
    first = await lease(web, of, "Ann")
    label = (
        await web.post("/api/labels", json={"lease": first, "who": "Ann", "value": "up"})
    ).json()["label"]
    assert len(read_opinions(own, "thumb")) == 1
    assert (await web.post(f"/api/labels/{label}/undo", json={"who": "Bob"})).status_code == 409
    assert (await web.post("/api/labels/none/undo", json={"who": "Ann"})).status_code == 404
    assert (await web.post(f"/api/labels/{label}/undo", json={"who": "Ann"})).json()[
        "lease"
    ] == first
    assert read_opinions(own, "thumb") == []
    assert (await web.post(f"/api/labels/{label}/undo", json={"who": "Ann"})).status_code == 409
    assert await lease(web, of, "Ann") == first
    assert (
        await web.post("/api/labels", json={"lease": first, "who": "Ann", "value": "down"})
    ).status_code == 200
    assert [one.value for one in read_opinions(own, "thumb")] == ["down"]
    assert await lease(web, of, "Ann") != first


@pytest.mark.parametrize("kind", ["random", "unsure"])
async def test_many_at_once_get_every_conversation_as_often_as_is_wanted(
    own: Store, web: AsyncClient, kind: str
) -> None:
    of = await queue(web, kind=kind, overlap=2, random_share=0)
    wanted = 12 if kind == "random" else 11
    given = await asyncio.gather(*(answer_all(web, of, f"person {n}", "up") for n in range(8)))
    assert sum(given) == 2 * wanted
    rows = own.rows("SELECT text_hash, annotator FROM labels")
    assert set(Counter(row["text_hash"] for row in rows).values()) == {2}
    assert len({(row["text_hash"], row["annotator"]) for row in rows}) == 2 * wanted


async def test_a_lease_that_was_not_answered_comes_again_is_nobody_elses_and_ends(
    own: Store, web: AsyncClient
) -> None:
    of = await queue(web)
    mine = await lease(web, of, "ann")
    assert await lease(web, of, "ann") == mine
    assert await lease(web, of, "bob") != mine
    label = {"lease": mine, "who": "ann", "value": "up"}
    assert (await web.post("/api/labels", json=label | {"who": "bob"})).status_code == 409
    assert (await web.post("/api/labels", json=label | {"lease": "none"})).status_code == 404
    with own.database.transaction() as connection:
        connection.execute("UPDATE leases SET until = '2020-01-01T00:00:00.000000+00:00'")
    assert (await web.post("/api/labels", json=label)).status_code == 409
    assert own.value("SELECT count(*) FROM labels") == 0


async def test_what_is_predicted_is_not_in_the_page_before_the_answer(web: AsyncClient) -> None:
    of = await queue(web)
    page = (await web.get(f"/label/{of}", params={"lease": await lease(web, of, "ann")})).text
    assert "it works now" in page
    assert not re.search(r"NetSAT|P\(up\)|<mark|predicted|thanks 1\.|inside the window", page)


async def test_a_form_without_a_script_goes_on_to_the_next_conversation_and_home_to_a_queue_that_was_left(
    own: Store, web: AsyncClient
) -> None:
    of = await queue(web, name="Mondays")
    assert "Mondays" not in (await web.get("/")).text, "nobody began it"
    begun = await web.post(f"/api/queues/{of}/next", data={"who": "ann"})
    assert begun.status_code == 303
    (first,) = parse_qs(urlsplit(begun.headers["location"]).query)["lease"]
    kept = await web.post(
        "/api/labels", data={"lease": first, "who": "ann", "value": "down", "comment": ""}
    )
    (second,) = parse_qs(urlsplit(kept.headers["location"]).query)["lease"]
    assert second != first
    assert own.value("SELECT value FROM labels") == '"down"'
    page = re.sub(r"\s+", " ", (await web.get("/")).text)
    assert f'href="/label/{of}">Mondays</a> of <span dir="auto">log.jsonl</span>: 1 of ' in page


async def test_a_changed_answer_is_a_new_row_and_the_last_one_counts(
    own: Store, web: AsyncClient
) -> None:
    mine = await lease(web, await queue(web), "ann")
    for value in ("up", "down"):
        await web.post("/api/labels", json={"lease": mine, "who": "ann", "value": value})
    assert own.value("SELECT count(*) FROM labels") == 2
    assert own.value("SELECT count(*) FROM sheets WHERE replaces <> ''") == 1
    (row,) = (await web.get("/api/export", params={"shape": "long"})).text.splitlines()[1:]
    assert ",down," in row


async def test_an_answer_is_a_value_or_a_reason_why_there_is_none(
    own: Store, web: AsyncClient
) -> None:
    mine = await lease(web, await queue(web), "ann")
    both = await web.post(
        "/api/labels", json={"lease": mine, "who": "ann", "value": "up", "skip": "no"}
    )
    assert both.status_code == 400
    assert (await web.post("/api/labels", json={"lease": mine, "who": "ann"})).status_code == 400
    wrong = await web.post(
        "/api/labels", json={"lease": mine, "who": "ann", "value": "up", "coment": "late"}
    )
    assert (wrong.status_code, wrong.json()["error"]) == (400, "coment: there is no such field")
    await web.post("/api/labels", json={"lease": mine, "who": "ann", "skip": "another language"})
    assert own.value("SELECT skip FROM sheets") == "another language"
    assert (await web.get("/api/export")).text == ""


async def test_where_people_differ_somebody_decides_and_that_counts(web: AsyncClient) -> None:
    of = await queue(web, kind="random", overlap=2)
    await answer_all(web, of, "ann", "up")
    await answer_all(web, of, "bob", "down")
    assert (await web.get("/api/export")).text == "", "where they tie there is no label"
    page = (await web.get("/label/adjudicate")).text
    assert "ann" not in re.sub(r"<[^>]+>", "", page)
    found = re.search(r'name="text" value="(\w+)"', page)
    assert found
    decided = {"text": found[1], "who": "cat", "value": "up", "reason": "it worked"}
    assert (await web.post("/api/adjudications", json=decided)).status_code == 200
    assert (await web.post("/api/adjudications", json=decided)).status_code == 409
    told = (await web.get("/label/agreement")).text
    assert "11" in told
    (row,) = (await web.get("/api/export", params={"drawn": "random"})).text.splitlines()
    assert '"source": "adjudicated", "drawn": "random"' in row, "it is still drawn at random"


async def test_people_are_compared_with_the_votes_of_a_judge_run(
    own: Store, web: AsyncClient
) -> None:
    # its votes agree about every odd one, and on the first option: a thumb up
    run = judged_run(own, 12)
    of = await queue(web, kind="random")
    for _ in range(12):
        found = await lease(web, of, "ann")
        about = own.value("SELECT conversation FROM leases WHERE id = ?", [found])
        number = int(str(about).split()[1])
        value = "up" if number % 2 and number > 1 else "down"  # she differs about number 1
        assert (
            await web.post("/api/labels", json={"lease": found, "who": "ann", "value": value})
        ).status_code == 200
    page = (await web.get("/label/agreement")).text
    row = page[page.index(f'the votes of <a href="/runs/{run}"') :].partition("</tr>")[0]
    # two answers each of the six that both answered
    assert "n = 12" in re.sub(r"<[^>]+>", " ", row)


async def test_learn_and_calibrate_read_what_is_exported(web: AsyncClient, tmp_path: Path) -> None:
    of = await queue(web, kind="random")
    await answer_all(web, of, "=ann", "down")
    log = tmp_path / "labels.jsonl"
    table = tmp_path / "judgments.csv"
    log.write_text((await web.get("/api/export")).text, "utf-8")
    table.write_text((await web.get("/api/export", params={"shape": "long"})).text, "utf-8")
    logs = read_logs([str(log)])
    assert [one.label.value for one in logs.conversations] == ["negative"] * 12
    assert "'=ann" in table.read_text("utf-8")
    assert (await web.get("/api/export", params={"sources": "adjudicated"})).text == ""


@pytest.mark.parametrize("own", [3], indirect=True)
async def test_a_server_that_only_shows_and_a_page_of_another_server_write_nothing(
    own: Store, web: AsyncClient
) -> None:
    other = await web.post("/api/queues", json={"name": "a"}, headers={"X-Pollex-Site": "other"})
    assert other.status_code == 409
    assert (await web.post("/api/queues", data={"name": "a", "site": "other"})).status_code == 409
    async with client_of(made_app(own, read_only=True)) as only:
        assert (await only.post("/api/queues", json={"name": "a"})).status_code == 403
    assert own.value("SELECT count(*) FROM queues") == 0


def said(*answers: tuple[str, str, str]) -> list[Opinion]:
    return [
        Opinion(who, text, text, "run", value, source="person", drawn="")
        for who, text, value in answers
    ]


def test_answers_that_are_near_each_other_agree_more_where_options_have_an_order() -> None:
    ann = (0.0, 2.5, 5.0, 7.5, 10.0, 0.0, 10.0)
    others = (2.5, 5.0, 7.5, 10.0, 0.0, 10.0)

    def between(kind: type, first: float) -> float:
        bob = (first, *others)
        rows = [
            (who, f"t{n}", kind(v))
            for who, every in (("ann", ann), ("bob", bob))
            for n, v in enumerate(every)
        ]
        return float(measure_agreement(said(*rows)).value or 0.0)

    assert between(float, 2.5) - between(float, 10.0) > 0.2
    assert between(str, 2.5) - between(str, 10.0) <= 0.2
    few = measure_agreement(said(("ann", "a", "up"), ("bob", "a", "up"), ("ann", "b", "up")))
    assert (few.value, few.undefined[:7]) == (None, "too few")


def test_most_answers_settle_a_text_and_a_tie_settles_none() -> None:
    given = said(
        ("a", "t", "up"), ("b", "t", "up"), ("c", "t", "down"), ("a", "s", "up"), ("b", "s", "down")
    )
    assert {text: one.value for text, one in settle_opinions(given).items()} == {"t": "up"}
    assert set(list_disputed_texts(given)) == {"t", "s"}


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
    own: Store, web: AsyncClient, tmp_path: Path
) -> None:
    of = await queue(web, kind="random", ask="questionnaire", questionnaire=QUESTIONNAIRE)
    mine = await lease(web, of, "ann")
    page = (await web.get(f"/label/{of}", params={"lease": mine})).text
    assert page.index("Was the &lt;b&gt;answer") < page.index("All in all?"), (
        "the main question comes last"
    )
    half = await web.post("/api/labels", json={"lease": mine, "who": "ann", "q-Q1": "2"})
    assert half.status_code == 400
    assert own.value("SELECT count(*) FROM labels") == 0
    whole = {"lease": mine, "who": "ann", "q-Q1": "skip", "q-Q0": "1"}
    assert (await web.post("/api/labels", json=whole)).status_code == 200
    rows = {row["question"]: row["value"] for row in own.rows("SELECT * FROM labels")}
    assert rows == {"Q1": "null", "Q0": "2.0"}
    (row,) = (await web.get("/api/export", params={"shape": "long"})).text.splitlines()[1:]
    assert ",Q0,ann,2.0,person,random" in row


ABOUT_SOURCES = f"""{QUESTIONNAIRE}
[[question]]
id = "Q2"
text = "Is it in the sources?"
options = [[1, "no"], [2, "yes"]]
skip = "No sources were shown"
needs = "sources"
"""


async def test_people_are_asked_about_sources_only_where_there_are_some_and_see_them_there(
    own: Store, web: AsyncClient
) -> None:
    run = own.value("SELECT id FROM runs WHERE command = 'learn'")
    sources = (Source(text="Parcels go to Lima.", name="manual"),)
    own.put(make_conversation_rows(run, [conversation(99).model_copy(update={"sources": sources})]))
    own.put([ScoreRow(run, "conversation 99", 0.0, "up", True, 0.5)])
    own.flush()
    of = await queue(web, kind="random", ask="questionnaire", questionnaire=ABOUT_SOURCES)
    seen = set()
    while mine := await lease(web, of, "ann"):
        page = (await web.get(f"/label/{of}", params={"lease": mine})).text
        asked = "Is it in the sources?" in page
        seen.add((asked, "Parcels go to Lima." in page))
        whole = {"lease": mine, "who": "ann", "q-Q1": "0", "q-Q0": "1"} | (
            {"q-Q2": "1"} if asked else {}
        )
        assert (await web.post("/api/labels", json=whole)).status_code == 200
    assert seen == {(True, True), (False, False)}
    values = Counter(
        row["value"] for row in own.rows("SELECT value FROM labels WHERE question = 'Q2'")
    )
    assert values == {"null": 12, "2.0": 1}


async def test_a_questionnaire_that_is_wrong_makes_no_queue(own: Store, web: AsyncClient) -> None:
    for text in (
        "[[question]",
        "",
        "[[question]]\nid='a'\ntext='b'\noptions=[[1,'c']]",
        "question=3",
    ):
        body = {"name": "q", "run": "learn-1", "ask": "questionnaire", "questionnaire": text}
        assert (await web.post("/api/queues", json=body)).status_code == 400
    assert own.value("SELECT count(*) FROM queues") == 0


async def test_what_people_answer_to_a_questionnaire_differently_is_decided_the_farthest_apart_first(
    own: Store, web: AsyncClient
) -> None:
    of = await queue(
        web, kind="random", ask="questionnaire", questionnaire=QUESTIONNAIRE, overlap=2
    )
    # they agree, are one step apart, and two
    for who, places in (("ann", "000"), ("bob", "012")):
        for place in places:
            given = {"lease": await lease(web, of, who), "who": who, "q-Q1": place, "q-Q0": "1"}
            assert (await web.post("/api/labels", json=given)).status_code == 200
    words = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", (await web.get("/label/adjudicate")).text))
    assert "2 conversations left" in words.replace("\xa0", " ")
    assert "A: no, B: yes" in words
    page = (await web.get("/label/adjudicate", params={"question": "Q1"})).text
    text = re.search(r'name="text" value="(\w+)"', page)
    assert text
    decided = {
        "text": text[1],
        "who": "cat",
        "value": "up",
        "reason": "it was half right",
        "question": "Q1",
    }
    assert (await web.post("/api/adjudications", json=decided)).status_code == 400
    assert (
        await web.post("/api/adjudications", json=decided | {"value": "1.0"})
    ).status_code == 200
    assert [one.value for one in read_opinions(own, "Q1") if one.source == "adjudicated"] == [1.0]
    assert "A: no, B: partly" in re.sub(r"\s+", " ", (await web.get("/label/adjudicate")).text)


async def test_rubrics_are_asked_of_people_in_their_own_words_and_people_are_compared_with_the_judge(
    own: Store, web: AsyncClient
) -> None:
    of = await queue(web, kind="random", ask="rubrics")
    page = (await web.get(f"/label/{of}", params={"lease": await lease(web, of, "ann")})).text
    assert "The user says thanks 2." in page
    assert page.count("<fieldset") == 2
    run = own.value("SELECT id FROM runs WHERE command = 'learn'")
    said = {row["conversation"]: row["chosen"] for row in own.ask(run, JUDGED)}
    for _ in range(11):  # all but the one that the judge gave no answer about
        found = (await web.post(f"/api/queues/{of}/next", json={"who": "ann"})).json()
        place = said.get(found["conversation"])
        given = {
            "lease": found["lease"],
            "who": "ann",
            "q-rubric1": str(place or 0),
            "q-rubric2": "0",
        }
        assert (await web.post("/api/labels", json=given)).status_code == 200
    page = (await web.get("/label/agreement")).text
    row = page[page.index("the judge’s answers") :].partition("</tr>")[0]
    assert "1.00" in row, "she said the same each time"
    assert "The user says thanks 1." in page, "questions are shown in their words"


JUDGED = "SELECT conversation, arg_max(chosen, seq) AS chosen FROM answers WHERE question = 'rubric1' GROUP BY ALL"


async def test_a_queue_of_a_filtered_list_has_the_list_and_what_chance_drew_from_the_whole_run_for_as_many_people(
    own: Store, web: AsyncClient
) -> None:
    listed = (
        await web.get("/api/conversations", params={"run": "learn-1", "thumb": "down"})
    ).json()
    inside = {row["id"] for row in listed["rows"]}
    of = await queue(web, kind="filter", filter="thumb=down", random_share=0)
    assert await answer_all(web, of, "eve", "up") == listed["total"]
    rows = own.rows("SELECT conversation, drawn FROM labels")
    assert {(row["conversation"], row["drawn"]) for row in rows} == {
        (id_, "filter") for id_ in inside
    }
    of = await queue(web, kind="filter", filter="thumb=down", random_share=0.9, overlap=2)
    assert await answer_all(web, of, "ann", "up") + await answer_all(
        web, of, "bob", "up"
    ) > 2 * len(inside)
    rows = own.rows("SELECT conversation, annotator, drawn FROM labels WHERE annotator <> 'eve'")
    assert {row["drawn"] for row in rows if row["conversation"] not in inside} == {"random"}
    ann, bob = (
        {row["conversation"] for row in rows if row["annotator"] == who} for who in ("ann", "bob")
    )
    assert inside <= ann & bob
    assert {
        row["conversation"]
        for row in rows
        if row["annotator"] == "ann" and row["drawn"] == "random"
    } <= bob


async def test_chance_draws_what_was_labeled_for_being_doubtful_too_and_its_answer_counts_as_drawn_at_random(
    own: Store, web: AsyncClient
) -> None:
    of = await queue(web, kind="unsure", random_share=0)
    for _ in range(8):
        found = await lease(web, of, "ann")
        assert (
            await web.post("/api/labels", json={"lease": found, "who": "ann", "value": "up"})
        ).status_code == 200
    with own.database.transaction() as connection:
        connection.execute("UPDATE queues SET random_share = 1, kind = 'random'")
    assert await answer_all(web, of, "ann", "down") == 4
    said = read_opinions(own, "thumb")
    assert Counter(one.value for one in said) == {"up": 8, "down": 4}, (
        "answers stay what they were, and count once"
    )
    drawn = Counter((one.value, one.drawn) for one in said)
    assert drawn["down", "random"] == 4
    adopted = own.value("SELECT count(*) FROM labels") - 12
    assert drawn["up", "random"] == adopted
    assert own.value("SELECT count(*) FROM sheets WHERE replaces <> ''") == adopted
    assert "12 of 12 done" in (await web.get(f"/label/{of}")).text


async def test_a_label_of_a_conversation_that_chance_drew_stays_so_when_it_is_labeled_in_another_way(
    own: Store, web: AsyncClient
) -> None:
    at_random = await queue(web, kind="random")
    assert await answer_all(web, at_random, "ann", "up") == 12
    for who in ("ann", "bob"):
        ticked = {"run": "learn-1", "id": ["conversation 4"], "name": f"for {who}"}
        of = (await web.post("/api/chosen", json=ticked)).json()["queue"]
        assert await answer_all(web, of, who, "down") == 1
    assert Counter((one.annotator, one.value, one.drawn) for one in read_opinions(own, "thumb")) == {
        ("ann", "up", "random"): 11, ("ann", "down", "random"): 1, ("bob", "down", "random"): 1,
    }  # fmt: skip
    # who had seen the score gives no label that counts, however the text was drawn for others
    thumb = {"run": "learn-1", "id": "conversation 5", "who": "cyd", "value": "up"}
    assert (await web.post("/api/thumbs", json=thumb)).status_code == 200
    assert [one.drawn for one in read_opinions(own, "thumb") if one.annotator == "cyd"] == [
        "voluntary"
    ]


async def test_no_queue_hands_out_what_its_person_labeled_before_unless_it_was_put_there_by_hand(
    own: Store, web: AsyncClient
) -> None:
    first = await queue(web, kind="filter", filter="thumb=down", random_share=0)
    labeled = await answer_all(web, first, "ann", "up")
    every = await queue(web, kind="random")
    page = (await web.get(f"/label/{every}", headers={"cookie": "pollex-name=ann"})).text
    told = f"{labeled}\xa0conversations of this queue you have labeled in another queue."
    assert f"{told} They don't come again; {12 - labeled} left for you." in unescape(page)
    assert await answer_all(web, every, "ann", "down") == 12 - labeled
    # chance went through the whole run, so that the earlier labels are drawn at random, too
    said = Counter((one.value, one.drawn) for one in read_opinions(own, "thumb"))
    assert said == {("up", "random"): labeled, ("down", "random"): 12 - labeled}
    assert await answer_all(web, every, "bob", "up") == labeled, "these nobody labeled here"
    ticked = {"run": "learn-1", "id": ["conversation 4"], "name": "once more"}
    asked_for = (await web.post("/api/chosen", json=ticked)).json()["queue"]
    assert await answer_all(web, asked_for, "ann", "up") == 1


@pytest.mark.parametrize("who", ["Ann", "علی"])
async def test_a_name_is_typed_once_and_then_stands_in_every_form(
    web: AsyncClient, who: str
) -> None:
    of = await queue(web)
    begun = await web.post(f"/api/queues/{of}/next", data={"who": who})
    cookie = begun.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie
    kept = {"cookie": cookie.partition(";")[0]}
    other = await queue(web)
    for path in (f"/label/{other}", "/conversation?run=learn-1&id=conversation+4"):
        assert f'value="{who}"' in (await web.get(path, headers=kept)).text, path
    web.cookies.clear()
    for bad in ("pollex-name=%0a", "pollex-name=" + "a" * 81):
        assert (await web.get(f"/label/{other}", headers={"cookie": bad})).status_code == 200


async def test_a_queue_says_why_it_asks_about_fewer_than_it_has_and_what_comes_twice(
    nothing: AsyncClient, tmp_path: Path
) -> None:
    messages = [
        {"role": "user", "content": "Where is it?"},
        {"role": "assistant", "content": "Here."},
    ]
    same = [{"id": f"same {n}", "messages": messages} for n in range(3)]
    other = {"id": "other", "messages": [{"role": "user", "content": "Hello?"}, messages[1]]}
    log = write_log(tmp_path / "talks.jsonl", [*same, other])
    made = run_here("label", "queue", log, "--store", tmp_path / ".pollex", "--json")
    of = json.loads(made.out.splitlines()[-1])["queue"]
    page = unescape((await nothing.get(f"/label/{of}")).text)
    assert "0 of 2 done" in page
    told = (
        r"2\xa0conversations of this queue have the same text as another one \(same \d, same \d\)"
    )
    assert re.search(told, page)
    assert "About 5 % of the conversations come a second time" in page.replace("\xa0", " ")


async def test_what_is_shown_twice_tells_how_far_one_agrees_with_oneself_and_nothing_else(
    own: Store, web: AsyncClient
) -> None:
    of = await queue(web, kind="random", repeat_share=0.5)
    given = await answer_all(web, of, "ann", "up")
    repeats = own.value("SELECT count(*) FROM labels WHERE drawn = 'repeat'")
    assert given == 12 + repeats
    assert repeats > 0
    rows = (await web.get("/api/export", params={"shape": "long"})).text.splitlines()[1:]
    assert len(rows) == 12, "a second answer is no second label"
    assert repeats < 5 or measure_self_agreement(own, "thumb").n == 2 * repeats


async def test_a_thumb_given_while_reading_is_of_its_own_kind_and_changes_no_blind_one(
    own: Store, web: AsyncClient
) -> None:
    about = {"run": "learn-1", "id": "conversation 4", "who": "ann"}
    for value in ("up", "down"):
        assert (await web.post("/api/thumbs", json=about | {"value": value})).status_code == 200
    assert [row["drawn"] for row in own.rows("SELECT drawn FROM labels")] == ["voluntary"] * 2
    page = (await web.get("/conversation", params=about)).text
    assert page.count("who saw the score") == 1, "the last one counts"
    of = await queue(web, kind="filter", filter="q=conversation 4", random_share=0, overlap=2)
    assert await answer_all(web, of, "bob", "up") == 1
    assert (
        await web.post("/api/thumbs", json=about | {"who": "bob", "value": "down"})
    ).status_code == 409
    assert (
        await web.post("/api/thumbs", json=about | {"id": "nobody", "value": "up"})
    ).status_code == 404
    assert "1\xa0label of people" in (await web.get("/label/agreement")).text
    assert list_disputed_texts(read_opinions(own, "thumb")) == {}, (
        "who had seen the score disagrees with nobody"
    )
    export = (await web.get("/api/export")).text
    assert ('"judge": "bob"' in export, '"judge": "ann"' in export) == (True, False)


async def test_after_twenty_new_labels_learning_is_offered_with_them(
    nothing: AsyncClient, tmp_path: Path
) -> None:
    log = write_log(tmp_path / "talks.jsonl", small_log(30))
    made = run_here(
        "label", "queue", log, "--count", "25", "--store", tmp_path / ".pollex", "--json"
    )
    queue = json.loads(made.out.splitlines()[-1])["queue"]
    conversations = set[str]()
    page = ""
    while ">Learn</a>" not in page:
        at = (await nothing.post(f"/api/queues/{queue}/next", json={"who": "ann"})).json()
        kept = {"who": "ann", "lease": at["lease"], "value": "up"}
        assert (await nothing.post("/api/labels", json=kept)).status_code == 200
        conversations.add(at["conversation"])
        page = (await nothing.get(f"/label/{queue}")).text
    assert len(conversations) == 20, "one that comes twice counts once"
    assert "Learn again" not in page, "nothing was learned yet"
    (form,) = re.findall(r'href="([^"]+)">Learn</a>', page)
    filled = (await nothing.get(unescape(form))).text
    assert 'value="log,person,adjudicated"' in filled


@pytest.mark.parametrize("who", ["  ", "\u200b", "a\u0000\u001b[31m", "Ann\nBob"])
async def test_a_name_that_nobody_can_read_labels_nothing(web: AsyncClient, who: str) -> None:
    place = f"/api/queues/{await queue(web)}/next"
    refused = await web.post(place, json={"who": who})
    assert refused.status_code == 400
    if "\x00" not in who:
        assert "say who you are" in refused.json()["error"]
    # a joiner within a name of Persian is a letter's form
    assert (await web.post(place, json={"who": "علی\u200cرضا"})).status_code == 200


async def test_what_was_skipped_is_not_done_and_counts_once_it_is_answered(
    nothing: AsyncClient, tmp_path: Path
) -> None:
    of = make_queue_of_log(tmp_path, talks(2))
    mine = await lease(nothing, of, "ann")
    await nothing.post("/api/labels", json={"lease": mine, "who": "ann", "skip": "no English"})
    begun = (await nothing.get(f"/label/{of}")).text
    last = await lease(nothing, of, "ann")
    await nothing.post("/api/labels", json={"lease": last, "who": "ann", "value": "up"})
    over = (await nothing.get(f"/label/{of}")).text
    await nothing.post("/api/labels", json={"lease": mine, "who": "ann", "value": "down"})
    answered = (await nothing.get(f"/label/{of}")).text
    assert "0 of 2 done, 1 skipped" in begun
    assert "1 of 2 done, 1 skipped" in over
    assert "as many labels as are wanted, but for 1 that was skipped" in over
    assert "2 of 2 done<" in answered


async def test_one_goes_back_answer_by_answer_sees_what_one_said_and_changes_it_at_any_time(
    nothing: AsyncClient, tmp_path: Path
) -> None:
    of = make_queue_of_log(tmp_path, talks(3))
    leases = []
    for value in ("up", "down"):
        leases.append(await lease(nothing, of, "ann"))
        about = {"lease": leases[-1], "who": "ann", "value": value, "comment": f"it is {value}"}
        await nothing.post("/api/labels", json=about)
    first, second = leases
    now = await lease(nothing, of, "ann")
    page = {}
    for id_ in (now, second, first):
        page[id_] = (await nothing.get(f"/label/{of}", params={"lease": id_})).text
    assert f'lease={second}" data-key="z"' in page[now]
    assert "You said" not in page[now]
    assert f'lease={first}" data-key="z"' in page[second]
    assert "You said: down" in page[second]
    assert 'value="it is down"' in page[second]
    assert 'data-key="z"' not in page[first]
    assert 'data-key="n"' in page[first]
    with Store.open(tmp_path / ".pollex") as store, store.database.transaction() as connection:
        connection.execute("UPDATE leases SET until = '2020-01-01T00:00:00.000000+00:00'")
    late = {"who": "ann", "value": "down"}
    changed = await nothing.post("/api/labels", json=late | {"lease": first})
    unanswered = await nothing.post("/api/labels", json=late | {"lease": now})
    assert (changed.status_code, unanswered.status_code) == (200, 409)
    front = (await nothing.get(f"/label/{of}", headers={"cookie": "pollex-name=ann"})).text
    assert f'lease={second}" data-key="z"' in front


async def test_a_further_queue_of_a_log_goes_on_where_the_last_one_ended(
    nothing: AsyncClient, tmp_path: Path
) -> None:
    drawn = []
    for _ in range(3):
        of = make_queue_of_log(tmp_path, talks(7), count=3)
        run = (await nothing.get(f"/label/{of}")).text
        assert "of 3 done" in run
        with Store.open(tmp_path / ".pollex") as store:
            run = store.value("SELECT run FROM queues WHERE id = ?", [of])
            drawn.append({row["id"] for row in store.ask(run, "SELECT id FROM conversations")})
    assert not drawn[0] & drawn[1]
    assert len(drawn[0] | drawn[1] | drawn[2]) == 7


async def test_a_further_queue_of_a_run_begins_with_what_nobody_labeled(web: AsyncClient) -> None:
    first = await queue(web, kind="unsure", random_share=0)
    labeled = set()
    for _ in range(3):
        given = (await web.post(f"/api/queues/{first}/next", json={"who": "ann"})).json()
        labeled.add(given["conversation"])
        answer = {"lease": given["lease"], "who": "ann", "value": "up"}
        await web.post("/api/labels", json=answer)
    other = await queue(web, kind="unsure", random_share=0)
    order = []
    while (given := (await web.post(f"/api/queues/{other}/next", json={"who": "bob"})).json())[
        "lease"
    ]:
        order.append(given["conversation"])
        answer = {"lease": given["lease"], "who": "bob", "value": "up"}
        await web.post("/api/labels", json=answer)
    assert set(order[-3:]) == labeled


async def test_a_changed_sheet_has_the_answers_that_were_given(
    own: Store, web: AsyncClient
) -> None:
    asked = '[[question]]\nid = "Q1"\ntext = "Solved?"\noptions = [[0, "no"], [2, "yes"]]\n'
    of = await queue(web, ask="questionnaire", questionnaire=asked)
    mine = await lease(web, of, "ann")
    await web.post("/api/labels", json={"lease": mine, "who": "ann", "q-Q1": "1"})
    page = (await web.get(f"/label/{of}", params={"lease": mine})).text
    assert re.findall(r'value="(\d)"[^>]* checked', page) == ["1"]
