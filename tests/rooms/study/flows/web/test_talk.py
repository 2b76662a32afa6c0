"""Talk: sessions of participants with models on loopback, who may see what, and exports that `calibrate fit` reads."""

import asyncio
import csv
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
from httpx2 import AsyncClient
from markupsafe import escape
from protocol_server import ProtocolServer
from small_runs import run_here
from web_site import client_of, made_app

from pollex.rooms.study.store.tables import StudyRow
from pollex.rooms.study.web.studies import Study, read_studies
from pollex.store.store import Store
from pollex.store.tables import format_current_time
from pollex.web.profiles import read_profiles

STUDY = """
title = "Parcels"
consent = "What you say is kept."
systems = ["mini", "local"]
topics = ["Find a parcel."]
design = "{design}"
turns = [1, 2]
main = "Q0"
[[question]]
id = "Q0"
text = "Satisfied?"
options = [[1, "no"], [2, "partly"], [3, "yes"]]
[[question]]
id = "Q1"
text = "Was it =1+1 true?"
options = [[0, "no"], [1, "yes"]]
skip = "doesn't apply"
"""


@dataclass
class Field:
    """A served study, its owner, and a way to make participants."""

    store: Store
    study: Study
    owner: AsyncClient
    server: ProtocolServer
    app: object

    @property
    def page(self) -> str:
        return f"/talk/{self.study.id}"

    async def link(self) -> str:
        """The token of a new participant."""
        asked = {"room": "talk", "place": self.study.id, "count": 1}
        made = await self.owner.post("/api/guests", json=asked)
        assert made.status_code == 200
        return parse_qs(urlsplit(made.json()["links"][0]["link"]).query)["token"][0]

    async def participant(self) -> AsyncClient:
        return client_of(self.app, token=await self.link())  # type: ignore[arg-type]

    async def send(self, who: AsyncClient, what: str, **values: object) -> httpx2.Response:
        return await who.post(f"/api/talks/{self.study.id}/{what}", json=values)

    async def seen(self, who: AsyncClient) -> str:
        """The participant's page, once the replies have come."""
        for _ in range(1500):
            if (await who.get(f"{self.page}/live")).headers["x-pollex-ended"]:
                return (await who.get(self.page)).text
            await asyncio.sleep(0.02)
        raise AssertionError("no reply came")


SYSTEM = '[{0}]\nmodel = "secret-{0}"\nbase_url = "{1}"\nkey_env = "NO_KEY"\n{2}\n'


@asynccontextmanager
async def served(
    folder: Path, server: ProtocolServer, study: str, systems: str
) -> AsyncIterator[Field]:
    for name, text in (("study.toml", study), ("profiles.toml", systems)):
        (folder / name).write_text(text)
    known = read_profiles(folder / "profiles.toml")
    with Store.open(folder / ".pollex") as store:
        await store.write(read_studies([folder / "study.toml"], known))
        (payload,) = [row["payload"] for row in store.rows("SELECT payload FROM studies")]
        app = made_app(store, profiles=known)
        async with client_of(app) as owner:
            yield Field(store, Study.model_validate_json(payload), owner, server, app)


@pytest.fixture
async def field(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Field]:
    study = STUDY.format(design=getattr(request, "param", "one-after-other"))
    with ProtocolServer() as server:
        systems = "".join(SYSTEM.format(name, server.url, "") for name in ("mini", "local"))
        async with served(tmp_path, server, study, systems) as made:
            yield made


QUOTE = "faulty <b>kettle</b> within thirty days"
SAID = {
    "text": "Thirty days.",
    "sources": [{"document": 1, "quote": QUOTE}, {"document": 1, "quote": "forty"}],
}


async def test_who_talked_to_a_system_with_documents_sees_its_sources_beside_the_questions(
    tmp_path: Path,
) -> None:
    (tmp_path / "help").mkdir()
    (tmp_path / "help" / "ret<i>urns.md").write_text(f"Return a {QUOTE}.")
    (tmp_path / "help" / "lamps.md").write_text("A lamp has a warranty.")
    study = STUDY.format(design="one-after-other").replace("Find a parcel.", "Return a kettle.")
    rule = {"do": "message", "match": "DATA ", "content": json.dumps(SAID | {"ends": True})}
    pages = {}
    with ProtocolServer(script=[rule]) as server:
        finds = SYSTEM.format("mini", server.url, 'system = "DS3"\ndocuments = "help"')
        systems = finds + SYSTEM.format("local", server.url, 'system = "DS1"')
        async with (
            served(tmp_path, server, study, systems) as field,
            await field.participant() as who,
        ):
            await field.send(who, "begin")
            for position in range(2):
                await field.send(who, "turns", text="How <b>long</b>?")
                assert "Thirty days." in (page := await field.seen(who)), (
                    "the system said something"
                )
                assert "within thirty days" not in page, "people talk blind"
                await field.send(who, "end", why="talked")
                pages[position] = (await who.get(field.page)).text
                kept = await field.send(
                    who, "sheet", **{"position": position, "q-Q0": "2", "q-Q1": "0"}
                )
                assert kept.status_code == 200
            rows = [
                json.loads(line) for line in (await export(field, "conversations")).splitlines()
            ]
    found = {row["system"]: row for row in rows}
    assert found["mini"]["quotes"] == [{"turn": 1, "document": "ret<i>urns.md", "quote": QUOTE}]
    document = {"number": 1, "name": "ret<i>urns.md", "text": f"Return a {QUOTE}.", "turn": 1}
    assert found["mini"]["sources"][0] == document
    assert found["local"]["sources"] == []
    with_sources = pages[found["mini"]["position"] - 1]
    assert f"<q>{escape(QUOTE)}</q>" in with_sources
    assert "ret&lt;i&gt;urns.md" in with_sources
    assert "forty" not in with_sources
    assert "Sources" not in pages[found["local"]["position"] - 1]


async def test_a_participant_talks_to_each_system_and_sees_no_name_of_either(field: Field) -> None:
    async with await field.participant() as who:
        page = (await who.get(field.page)).text
        assert "I agree, begin" in page
        await field.send(who, "begin")
        for position in range(2):
            assert (
                await field.send(who, "turns", text="Where is <b>it</b>?", ms=900, edits=2)
            ).status_code == 200
            page = await field.seen(who)
            assert "Where is &lt;b&gt;it&lt;/b&gt;?" in page
            assert f"System {'AB'[position]}" in page
            assert not any(name in page for name in ("mini", "local", "secret"))
            assert (await field.send(who, "end", why="talked")).status_code == 200
            sheet = await field.send(
                who, "sheet", **{"position": position, "q-Q0": "2", "q-Q1": "skip"}
            )
            assert sheet.status_code == 200
        assert "Your answers are kept" in (await who.get(field.page)).text
    (row, other) = [
        json.loads(line) for line in (await export(field, "conversations")).splitlines()
    ]
    assert {row["system"], other["system"]} == {"mini", "local"}
    assert [turn["role"] for turn in row["messages"]] == ["user", "assistant"]
    assert (row["ended"], row["topic"], row["edits"][0], row["ms"][0]) == (
        "done",
        "Find a parcel.",
        2,
        900,
    )
    page = (await field.owner.get(field.page)).text
    assert "1 of 1" in page


async def test_a_reply_is_read_while_it_is_written_and_a_page_in_between_has_what_there_is(
    field: Field,
) -> None:
    async with await field.participant() as who:
        await field.send(who, "begin")
        field.server.script([{"do": "message", "content": "At <b>shelf 3, sir.", "seconds": 0.15}])
        await field.send(who, "turns", text="Tell me of it.")
        begun = '<li class="turn assistant" data-says="0">'
        page = ""
        while begun not in page:
            page = (await who.get(field.page)).text
            assert "data-stream" in page
        lines = (await who.get(f"{field.page}/stream")).text.splitlines()
        *pieces, end = [json.loads(line) for line in lines]
        assert [piece["begins"] for piece in pieces] == [True] + [False] * (len(pieces) - 1)
        assert (len(pieces) > 1, end) == (True, {"ended": True})
        said = "".join(piece["text"] for piece in pieces)
        early = page.partition(begun)[2].partition('<p dir="auto">')[2].partition("</p>")[0]
        assert str(escape(said)).startswith(early)
        page = await field.seen(who)
        assert "data-says" not in page
        assert f'<p dir="auto">{escape(said)}</p>' in page


async def test_a_study_that_wants_whole_replies_shows_none_before_all_are_there(
    field: Field,
) -> None:
    whole = field.study.model_copy(update={"whole": True})
    assert whole.id != field.study.id
    await field.store.write([StudyRow(whole.id, format_current_time(), whole.model_dump_json())])
    field.study = whole
    async with await field.participant() as who:
        await field.send(who, "begin")
        field.server.script([{"do": "honest", "latency": 0.15}])
        await field.send(who, "turns", text="Tell me of it.")
        page = (await who.get(field.page)).text
        assert f'data-live="{field.page}/live"' in page
        assert (await who.get(f"{field.page}/stream")).text == '{"ended": true}\n'
        assert "data-says" not in page
        await field.seen(who)


async def export(field: Field, what: str) -> str:
    return (
        await field.owner.get(f"/api/studies/{field.study.id}/export", params={"what": what})
    ).text


@pytest.mark.parametrize("field", ["side-by-side"], indirect=True)
async def test_two_systems_beside_each_other_get_the_same_message_and_a_sheet_each(
    field: Field,
) -> None:
    async with await field.participant() as who:
        await field.send(who, "begin")
        await field.send(who, "turns", text="hello")
        page = await field.seen(who)
        assert page.count('<li class="turn user">') == 2
        early = {"position": 0, "q-Q0": "2", "q-Q1": "0"}
        assert (await field.send(who, "sheet", **early)).status_code == 409
        await field.send(who, "end", why="talked")
        for position, main, other in ((0, "0", "1"), (1, "2", "0")):
            kept = await field.send(
                who, "sheet", **{"position": position, "q-Q0": main, "q-Q1": other}
            )
            assert kept.status_code == 200, kept.text
        assert (await field.send(who, "turns", text="one more")).status_code == 409
    rows = list(csv.DictReader((await export(field, "judgments")).splitlines()))
    assert [(row["position"], row["question"], row["answer"]) for row in rows] == [
        ("1", "Q1", "1.0"), ("1", "Q0", "1.0"), ("2", "Q1", "0.0"), ("2", "Q0", "3.0"),
    ]  # fmt: skip


async def test_what_has_no_reply_can_be_sent_again_and_who_leaves_is_kept_and_marked(
    field: Field,
) -> None:
    async with await field.participant() as who:
        await field.send(who, "begin")
        field.server.script([{"do": "status", "code": 401, "count": 1}])
        await field.send(who, "turns", text="anybody there?")
        page = await field.seen(who)
        assert "Send it again" in page
        assert "anybody there?" in page
        assert "gave no reply" not in page
        assert re.search(r"gave no reply: [^<]*401", (await field.owner.get(field.page)).text)
        assert (await field.send(who, "turns", text="hello?")).status_code == 409
        assert (await field.send(who, "again")).status_code == 200
        assert "Send it again" not in await field.seen(who)
        assert (await field.send(who, "end", why="left")).status_code == 200
    (row,) = [json.loads(line) for line in (await export(field, "conversations")).splitlines()]
    assert (row["ended"], len(row["messages"])) == ("left", 2)


async def test_a_participants_link_opens_their_page_alone_until_it_is_taken_back(
    field: Field,
) -> None:
    token = await field.link()
    async with client_of(field.app, token=token) as who:  # type: ignore[arg-type]
        for path in (
            "/",
            "/runs",
            "/talk",
            "/talk/other",
            "/conversations",
            f"/api/studies/{field.study.id}/export",
        ):
            assert (await who.get(path)).status_code == 403, path
        assert (
            await who.post("/api/guests", json={"room": "talk", "place": field.study.id})
        ).status_code == 403
        assert (await who.post("/api/labels", json={})).status_code == 403
        entered = await who.get("/enter", params={"token": token})
        assert (entered.status_code, entered.headers["location"]) == (303, field.page)
        (name,) = who.cookies
        mine = {"Cookie": f"{name}={field.owner.headers['authorization'].removeprefix('Bearer ')}"}
        assert (
            await field.owner.get("/enter", params={"token": token}, headers=mine)
        ).status_code == 409
        about = {"room": "talk", "place": field.study.id}
        (one,) = (await field.owner.get("/api/guests", params=about)).json()["guests"]
        assert token not in json.dumps(one)
        await field.owner.post(f"/api/guests/{one['id']}/revocation", json={})
        assert (await who.get(field.page)).status_code == 401


@pytest.mark.nightly
async def test_judgments_of_talks_are_read_by_calibrate_fit_and_conversations_as_a_log(
    field: Field, tmp_path: Path
) -> None:
    for number in range(4):
        async with await field.participant() as who:
            await field.send(who, "begin")
            for position in range(2):
                await field.send(who, "turns", text=f"hello {number}")
                await field.seen(who)
                await field.send(who, "end", why="talked")
                given = {
                    "position": position,
                    "q-Q0": str((number + position) % 3),
                    "q-Q1": str(number % 2),
                }
                assert (await field.send(who, "sheet", **given)).status_code == 200
    log, judged, answers = (
        tmp_path / name for name in ("conversations.jsonl", "judgments.csv", "answers.csv")
    )
    judged.write_text(await export(field, "judgments"))
    log.write_text(await export(field, "conversations"))
    rows = ["text_id,question,option,probability"]
    for i, line in enumerate(log.read_text().splitlines()):
        chances = {option: 0.6 if option == i % 3 + 1 else 0.2 for option in (1, 2, 3)}
        id_ = json.loads(line)["id"]
        rows += [
            f"{id_},{asked},{option},{p}" for asked in ("J1", "Q0") for option, p in chances.items()
        ]
    answers.write_text("\n".join(rows))
    fitted = run_here(
        "calibrate", "fit", answers, judged, "--out", tmp_path / "fitted", "--main", "Q0", "--json"
    )
    assert fitted.code == 0, fitted.err
    assert fitted.last["judgments"] == 16
    checked = run_here("inspect", log, "--json")
    assert checked.code == 0, checked.err


async def test_an_annotators_link_opens_one_queue_and_labels_under_their_name_alone(
    own: Store,
) -> None:
    app = made_app(own)
    async with client_of(app) as owner:
        queue = (await owner.post("/api/queues", json={"name": "q", "run": "score-2"})).json()[
            "queue"
        ]
        made = await owner.post(
            "/api/guests", json={"room": "label", "place": queue, "names": "ann\nbob"}
        )
        ann, _ = [parse_qs(urlsplit(one["link"]).query)["token"][0] for one in made.json()["links"]]
    async with client_of(app, token=ann) as who:
        assert "ann" in (await who.get(f"/label/{queue}")).text
        assert (await who.get("/label")).status_code == 403
        other = await who.post(f"/api/queues/{queue}/next", json={"who": "bob"})
        assert other.status_code == 403
        lease = (await who.post(f"/api/queues/{queue}/next", json={"who": "ann"})).json()["lease"]
        kept = await who.post("/api/labels", json={"lease": lease, "who": "ann", "value": "up"})
        assert kept.status_code == 200
    assert own.value("SELECT annotator FROM labels") == "ann"
    async with client_of(app) as owner:
        other = (await owner.post("/api/queues", json={"name": "r", "run": "score-2"})).json()[
            "queue"
        ]
        made = await owner.post(
            "/api/guests", json={"room": "label", "place": other, "names": "ann"}
        )
        namesake = parse_qs(urlsplit(made.json()["links"][0]["link"]).query)["token"][0]
    async with client_of(app, token=namesake) as who:
        kept = await who.post("/api/labels", json={"lease": lease, "who": "ann", "value": "down"})
        assert kept.status_code == 403, "it is the lease of another queue's ann"
    assert own.value("SELECT count(*) FROM labels") == 1
