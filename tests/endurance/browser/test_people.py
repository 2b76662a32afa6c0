"""What several people do in a real browser: they talk to systems, watch a run, label by links of their own, print."""

import csv
import itertools
import json
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any
from urllib.request import Request, urlopen

import httpx2
import pytest
from click.testing import CliRunner
from protocol_server import ProtocolServer
from visitors import Served, Visitor
from web_site import made_store

from pollex.cli.main import pollex
from pollex.store.store import Store
from pollex.store.tables import ScoreRow

pytestmark = pytest.mark.nightly  # CI has twenty minutes

STUDY = """
title = "Parcels"
consent = "What you say is kept."
systems = ["mini", "local"]
design = "side-by-side"
turns = [1, 2]
[[question]]
id = "Q0"
text = "Were you satisfied?"
options = [[1, "no"], [2, "partly"], [3, "yes"]]
"""
SLOWLY = {"do": "message", "content": "It is at the depot.", "seconds": 0.5, "count": 2}
SESSIONS, SEEN = 40, 2
"""Those in all, and those in a browser; what it sends is what the others send without one."""


@pytest.fixture
def studied(serve: Callable[..., Served], tmp_path: Path) -> Iterator[Served]:
    """A store with a study of two systems, which answer on loopback."""
    (tmp_path / "study.toml").write_text(STUDY)
    with ProtocolServer(latency=0.05, script=[SLOWLY]) as server:
        tables = [
            f'[{name}]\nmodel = "secret-{name}"\nbase_url = "{server.url}"\n'
            for name in ("mini", "local")
        ]
        (tmp_path / "profiles.toml").write_text("".join(tables))
        Store.open(tmp_path / ".pollex").close()
        options = (
            "--study",
            str(tmp_path / "study.toml"),
            "--profiles",
            str(tmp_path / "profiles.toml"),
        )
        yield serve(tmp_path / ".pollex", *options)


def links_of(page: Any) -> list[str]:
    """The links that a page shows this once."""
    page.locator("table code").first.wait_for()
    page.wait_for_load_state()
    return [str(link) for link in page.locator("table code").all_inner_texts()]


def talk(study: str, link: str, answer: int) -> None:
    """One session over HTTP, as the browser's forms send it: a message, and a sheet for each side."""
    address, _, token = link.partition("/enter?token=")
    write = study.replace(f"{address}/talk/", "/api/talks/")
    headers = {"Authorization": f"Bearer {token}"}
    with httpx2.Client(base_url=address, headers=headers, timeout=60) as client:

        def send(what: str, **values: object) -> None:
            client.post(f"{write}/{what}", json=values).raise_for_status()

        send("begin")
        send("turns", text=f"Where is parcel {answer}?")
        while not client.get(f"{study}/live").headers["x-pollex-ended"]:
            time.sleep(0.02)
        send("end", why="talked")
        for position in (0, 1):
            send("sheet", **{"position": position, "q-Q0": str((answer + position) % 3)})


@pytest.mark.scenario(19)
def test_participants_talk_orders_are_balanced_over_40_sessions_and_calibrate_reads_the_sheets(
    visit: Callable[..., Visitor], studied: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = visit(studied)
    owner.go("/talk")
    assert owner.findings() == []
    owner.page.locator(".card a").click()
    study = owner.page.url
    owner.page.get_by_label("and how many without a name").fill(str(SESSIONS))
    owner.page.get_by_role("button", name="Make links").click()
    links = links_of(owner.page)
    for link in links[:SEEN]:
        participant = visit(replace(studied, url=link))
        page = participant.page
        participant.press("Control+Enter")
        page.get_by_label("Your message").fill("Where is my parcel?")
        participant.press("Control+Enter")
        if link == links[0]:  # both sides are read while they speak
            page.locator("[data-says='0']").get_by_text("It").wait_for()
            page.locator("[data-says='1']").get_by_text("It is at").wait_for()
        page.get_by_role("button", name="I am done").click()
        assert "secret" not in page.content()
        for side in "AB":
            page.get_by_role("heading", name=f"About System {side}").wait_for()
            participant.press("3", "Control+Enter")
        page.get_by_text("Your answers are kept").wait_for()
        assert participant.findings() == []
    for number, link in enumerate(links[SEEN:]):
        talk(study, link, number)
    owner.page.goto(study)
    assert f"{SESSIONS} of {SESSIONS} sessions done" in owner.page.locator(
        ".lead"
    ).inner_text().replace("\xa0", " ")
    assert owner.findings() == []
    with owner.page.expect_download() as kept:
        owner.page.get_by_role("link", name="Answers as a table").click()
    kept.value.save_as(tmp_path / "judgments.csv")
    with (tmp_path / "judgments.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert Counter((row["system"], row["position"]) for row in rows) == {
        (name, place): SESSIONS // 2 for name in ("mini", "local") for place in "12"
    }
    first = [row["system"] for row in rows if row["position"] == "1"]
    assert (
        max(abs(first[:n].count("mini") - first[:n].count("local")) for n in range(SESSIONS)) <= 2
    )
    assert len(set(zip(first[::2], first[1::2], strict=True))) > 1, (
        "nobody can tell from one whose turn the next is"
    )
    with (tmp_path / "answers.csv").open("w") as file:
        file.write("text_id,question,option,probability\n")
        for n, row in enumerate(rows):
            for option in (1, 2, 3):
                file.write(f"{row['text_id']},J1,{option},{0.6 if option == n % 3 + 1 else 0.2}\n")
    words = [
        "calibrate",
        "fit",
        "answers.csv",
        "judgments.csv",
        "--main",
        "Q0",
        "--out",
        "fitted",
        "--json",
    ]
    monkeypatch.chdir(tmp_path)
    fitted = CliRunner().invoke(pollex, words, catch_exceptions=False)
    assert json.loads(fitted.stdout.splitlines()[-1])["judgments"] == 2 * SESSIONS


def test_a_run_is_seen_live_until_it_ends_and_focus_stays_where_it_was(
    visit: Callable[..., Visitor], serve: Callable[..., Served], tmp_path: Path
) -> None:
    with Store.open(tmp_path / ".pollex") as store:
        run = store.begin("score", arguments={}, fingerprint={}, versions={})
        store.pulse(run.id, {"stages": {"judge": {"done": 10, "total": 40}}, "used": {}})
        store.flush()
        visitor = visit(serve(tmp_path / ".pollex"))
        page = visitor.page
        visitor.go(f"/runs/{run.id}")
        page.get_by_text("Judging: 10 of 40").wait_for()
        link = page.locator("[data-live] a").first
        link.focus()
        store.pulse(run.id, {"stages": {"judge": {"done": 30, "total": 40}}, "used": {}})
        store.flush()
        page.get_by_text("Judging: 30 of 40").wait_for()
        assert page.evaluate("document.activeElement.closest('[data-live]') !== null")
        assert visitor.findings() == []
        store.finish(run.id, "done", roles=[])
    page.get_by_role("link", name="It has ended").wait_for()


def write(store: Store, run: str, over: Event) -> int:
    """Write as a run does until it is over; how often."""
    for count in itertools.count():
        store.put([ScoreRow(run, f"conversation {count}", 1.0, "positive", True, 0.9)])
        store.pulse(run, {"stages": {"judge": {"done": count, "total": 10_000}}, "used": {}})
        store.flush()
        if over.wait(0.02):
            return count
    raise AssertionError


@pytest.mark.scenario(11, 13, 14, 15)
def test_two_annotators_label_by_links_of_their_own_beside_a_run_that_writes(
    visit: Callable[..., Visitor], serve: Callable[..., Served], tmp_path: Path
) -> None:
    folder = tmp_path / ".pollex"
    with made_store(folder, n=6) as store, ThreadPoolExecutor(1) as pool, ExitStack() as ends:
        served = serve(folder)
        run = store.begin("score", arguments={}, fingerprint={}, versions={}).id
        over = Event()
        # a test that fails here would wait for the writer without end
        ends.callback(over.set)
        written = pool.submit(write, store, run, over)
        token = served.url.partition("token=")[2]
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

        def post(path: str, **values: object) -> Any:
            asked = Request(served.base + path, json.dumps(values).encode(), headers)
            with urlopen(asked) as answer:
                return json.load(answer)

        queue = post(
            "/api/queues", name="both", run="score-2", overlap=2, random_share=0, repeat_share=0
        )["queue"]
        made = post("/api/guests", room="label", place=queue, names="ann\nbob")["links"]
        for one, keys in zip(made, ("uuuddd", "uuuddu"), strict=True):
            visitor = visit(replace(served, url=served.base + one["link"]))
            page = visitor.page
            visitor.press("Control+Enter")
            page.wait_for_url("**lease=*")
            assert "P(up)" not in page.content(), (
                "nothing that was predicted is shown before the answer"
            )
            for key in keys:
                before = page.url
                visitor.press(key)
                page.wait_for_url(lambda url, before=before: url != before)
            assert visitor.findings() == []
        over.set()
        assert written.result(60) > 12, "the run went on while they labeled"
        owner = visit(served)
        owner.go("/label/agreement")
        (told,) = owner.page.get_by_role("row", name="ann and bob").all_inner_texts()
        # 1 of 6 pairs differs; of 12 answers 7 are up: 1 - (1/6) / (2 * 7 * 5 / (12 * 11)) = 0.686
        assert "0.69" in told
        assert "n = 12" in told.replace("\xa0", " ")
        owner.go("/label/adjudicate")
        assert "farthest apart first. A: down, B: up" in owner.page.locator("main").inner_text()
        owner.page.get_by_label("Your name").fill("cleo")
        owner.page.get_by_label("Why").fill("It was found.")
        owner.page.get_by_role("button", name="Decide: up").click()
        owner.page.get_by_text("Nobody differs").wait_for()
    with sqlite3.connect(folder / "store.sqlite") as kept:
        said = kept.execute("SELECT annotator, count(*) FROM labels GROUP BY annotator").fetchall()
    assert said == [("ann", 6), ("bob", 6), ("cleo", 1)]


@pytest.mark.scenario(23)
def test_a_conversation_is_printed_whole_and_without_what_is_only_for_screens(
    visitor: Visitor,
) -> None:
    visitor.go("/conversation?run=learn-1&id=conversation+1")
    page = visitor.page
    page.emulate_media(media="print")
    assert page.locator("header.bar").is_hidden()
    assert page.locator(".why").evaluate("why => why.scrollHeight <= why.clientHeight + 1")
    assert page.locator(".turn").last.is_visible()


@pytest.mark.scenario(20)
def test_a_page_of_another_store_writes_nothing(visitor: Visitor) -> None:
    visitor.go("/label")
    page = visitor.page
    page.locator("input[name=site]").first.evaluate("field => { field.value = 'another' }")
    page.get_by_label("Name", exact=True).fill("other")
    page.get_by_role("button", name="Make the queue").click()
    page.get_by_text("made by another server").wait_for()
    visitor.faults[:] = [fault for fault in visitor.faults if "409" not in fault]
