"""Pages as they are sent: what they say, what they link to, and that nothing in them runs."""

import json
import re
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import duckdb
import pytest
from httpx2 import AsyncClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rubric_set_by_hand import (
    model_that_goes_by_the_second_rubric,
    point_answer,
    rubric,
    rubric_set,
)
from web_site import PORT, client_of, made_app, made_store

from pollex.conversations.conversation import Conversation, ToolCall, Turn
from pollex.measures.intervals import Figure
from pollex.rubrics.answers import MIDDLE_OPTION_VALUE, Answer
from pollex.rubrics.records import RubricEvidence
from pollex.rubrics.score import NetSat
from pollex.services.sets import diff_words
from pollex.store.resume import list_stored_runs, read_answers
from pollex.store.rows import make_conversation_rows, make_fact_row
from pollex.store.store import Store
from pollex.web.app import make_application
from pollex.web.frame import read_static_files
from pollex.web.guard import AccessRules
from pollex.web.hooks import list_menu_entries
from pollex.web.listing import search_texts
from pollex.web.pages.conversation import Contribution, describe_move, sort_by_effect
from pollex.web.reasons import choose_reasons
from pollex.web.site import Site

ID = "conversation 4"
PAGES = [
    "/",
    "/conversations",
    "/conversations?differs=yes&sort=surprise&down=1",
    "/conversations?q=nothing+like+this",
    f"/conversation?run=learn-1&id={ID}",
    f"/conversation?run=score-2&id={ID}",
    "/conversation?run=learn-1&id=nobody",
    "/runs",
    "/runs/learn-1",
    "/runs/learn-1?from=0&to=1",
    "/runs/learn-1/calls",
    "/sets",
    "/waiting",
    "/calibration",
    "/calibration?source=person",
    "/calibration/learn-1",
    f"/replay?run=learn-1&id={ID}",
    "/compare?a=learn-1&b=score-2",
    "/check",
    "/check?run=score-2&against=learn-1&what=mean(p)+drops+by&limit=0.03",
    "/label",
    "/label/agreement",
    "/label/adjudicate",
    "/nowhere",
]
ELEMENTS = """
a aside b blockquote body br button caption circle code dd del details dialog div dl dt em fieldset figcaption
figure footer form g h1 h2 h3 head header hr html input ins kbd label legend li line link main mark meta nav ol
option output p path polyline pre progress q rect script search section select small span strong summary svg
table tbody td text textarea th thead time title tr ul
"""
HOSTILE = (
    "<script>alert(1)</script>",
    "\"'><img src=x onerror=alert(1)>",
    "</table></main>",
    "<base href=//evil.example>",
    "\u202egnp.exe",
    "\x1b[31m",
    "x/../y?#&id=2",
    "javascript:alert(1)",
    "{{ 7*7 }}",
    "<svg onload=alert(1)>",
)


class Seen(HTMLParser):
    """Elements and attributes of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def only_our_elements(text: str) -> None:
    """Holds a page to what our templates make."""
    for tag, attributes in Seen(text).found:
        assert tag in ELEMENTS.split(), tag
        for name, value in attributes.items():
            assert name != "style"
            assert not name.startswith("on"), (tag, name)
            if name in ("href", "src", "action"):
                assert (value or "").startswith(("/", "#")), (tag, name, value)
                assert not (value or "").startswith("//")
        if tag == "script":
            assert attributes.keys() == {"type", "src"}


async def test_no_inline_style_or_script_and_only_our_elements(client: AsyncClient) -> None:
    for path in PAGES:
        only_our_elements((await client.get(path)).text)


async def test_hostile_texts_and_ids_make_only_our_elements(tmp_path: Path) -> None:
    used = set()

    def words(text: str) -> str:
        used.add(one := HOSTILE[sum(map(ord, text)) % len(HOSTILE)])
        return f"{text} {one}"

    with made_store(tmp_path / ".pollex", n=12, words=words) as store:
        async with client_of(made_app(store)) as client:
            listed = await client.get("/conversations?run=learn-1")
            only_our_elements((await client.get("/")).text)
            only_our_elements(listed.text)
            links = [
                a["href"]
                for _, a in Seen(listed.text).found
                if (a.get("href") or "").startswith("/conversation?")
            ]
            ids = {dict(parse_qsl(urlsplit(link or "").query))["id"] for link in links}
            assert ids == {words(f"conversation {number}") for number in range(12)}
            for link in links:
                opened = await client.get(link)
                assert opened.status_code == 200
                only_our_elements(opened.text)
                assert "\u202e" not in opened.text
                assert "\x1b" not in opened.text
    assert used == set(HOSTILE)


@given(text=st.text(max_size=60))
@settings(
    max_examples=settings().max_examples // 3,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
async def test_any_words_to_search_for_make_only_our_elements(store: Store, text: str) -> None:
    async with client_of(made_app(store)) as client:
        for query in ({"q": text}, {"q": text, "words": "all"}, {"group": text}):
            answer = await client.get("/conversations", params=query)
            assert answer.status_code == 200
            only_our_elements(answer.text)


async def test_a_conversation_shows_quotes_where_they_stand_and_sums_that_give_netsat_or_why_there_are_none(
    client: AsyncClient,
) -> None:
    told = (await client.get("/api/conversation", params={"run": "learn-1", "id": ID})).json()
    assert told["sums"]["sat"] - told["sums"]["dsat"] == pytest.approx(told["score"]["netsat"])
    assert sum(part["adds"] for part in told["parts"]) == pytest.approx(told["score"]["netsat"])
    page = (await client.get("/conversation", params={"run": "learn-1", "id": ID})).text
    shown = re.findall(r'<td class="n"[^>]*>([+−0-9.]+)</td>', page)[:3]
    good, bad, whole = (float(number.replace("−", "-")) for number in shown)
    assert good + bad == pytest.approx(whole, abs=0.11)
    page = (
        await client.get("/conversation", params={"run": "score-2", "id": "conversation 9"})
    ).text
    assert "Without an answer: 1, so there is no sum" in page
    assert "No answer: refused, no" in page
    assert 'id="netsat"' not in page
    page = (
        await client.get("/conversation", params={"run": "learn-1", "id": "conversation 1"})
    ).text
    assert '<mark class="sat">it works now, thanks</mark> 1' in page


async def test_a_list_is_read_in_windows_that_join_and_its_neighbors_are_known(
    client: AsyncClient,
) -> None:
    about = {"run": "learn-1", "sort": "netsat"}
    whole = (await client.get("/api/conversations", params=about)).json()
    parts = [
        (await client.get("/api/conversations", params=about | {"at": at, "n": 10})).json()
        for at in (0, 10, 20)
    ]
    rows = whole["rows"]
    assert [row for part in parts for row in part["rows"]] == rows
    assert whole["total"] == 30
    known = [row["netsat"] for row in rows if row["netsat"] is not None]
    assert known == sorted(known)
    assert [row["netsat"] for row in rows[len(known) :]] == [None] * 3, (
        "what has no score comes last"
    )
    assert (await client.get("/api/conversations", params={"version": "older"})).status_code == 409
    page = (
        await client.get(
            "/conversation", params={"run": "learn-1", "id": rows[3]["id"], "of": "sort=netsat"}
        )
    ).text
    links = [a["href"] or "" for _, a in Seen(page).found if a.get("data-key") in ("p", "n")]
    assert [dict(parse_qsl(urlsplit(link).query))["id"] for link in links] == [
        rows[2]["id"],
        rows[4]["id"],
    ]


async def test_a_search_tells_hits_and_progress_and_its_list_has_the_same(
    client: AsyncClient,
) -> None:
    asked = {"run": "learn-1", "q": "TRACK(parcel)", "words": "all", "thumb": "up"}
    answer = await client.get("/api/conversations/search", params=asked)
    lines = [json.loads(line) for line in answer.text.splitlines()]
    assert answer.headers["content-type"] == "application/x-ndjson"
    assert [*lines[-1]] == ["ended", "found"]
    assert lines[-2] == {"done": 30, "total": 30, "found": 10}
    listed = (await client.get("/api/conversations", params=asked)).json()
    assert [line["hit"]["id"] for line in lines[:-2]] == [row["id"] for row in listed["rows"]]
    assert (await client.get("/api/conversations", params=asked | {"words": "first"})).json()[
        "total"
    ] == 0
    assert (await client.get("/api/conversations/search")).status_code == 400


def test_texts_are_searched_piece_by_piece_each_once(store: Store) -> None:
    run = list_stored_runs(store)[0].id
    batches = [*search_texts(store, run, "parcel 1", batch=7)]
    assert [done for _, done, _ in batches] == [7, 14, 21, 28, 30]
    whole = [*search_texts(store, run, "parcel 1")]
    assert len(whole) == 1
    assert sum(len(hashes) for hashes, *_ in batches) == len(whole[0][0]) == 11
    assert frozenset().union(*(hashes for hashes, *_ in batches)) == whole[0][0]


@pytest.mark.parametrize(
    ("words", "n"),
    [("user", 0), ("assistant", 0), ("calls", 0), ("[tool call: find]", 1), ("OSLO", 1)],
)
def test_roles_and_names_of_fields_are_no_words(own: Store, words: str, n: int) -> None:
    turns = (
        Turn(role="user", content="Hi"),
        Turn(role="assistant", content="[tool call: find]", calls=(FIND,)),
    )
    run = own.begin("score", arguments={}, fingerprint={}, versions={}).id
    own.put(make_conversation_rows(run, [Conversation(id="a", turns=turns)]))
    own.flush()
    assert [len(hashes) for hashes, *_ in search_texts(own, run, words)] == [n]


FIND = ToolCall(name="find", arguments='{"city": "Oslo"}')


async def test_a_search_ends_when_whoever_asked_has_gone(store: Store) -> None:
    site = Site(store, {}, None)
    app = make_application(site, AccessRules.at(("127.0.0.1",), PORT, None, site.id))
    sent: list[dict[str, Any]] = []

    async def gone() -> dict[str, Any]:
        return {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "method": "GET",
        "path": "/api/conversations/search",
        "query_string": b"q=parcel&run=learn-1",
        "headers": [(b"host", f"127.0.0.1:{PORT}".encode())],
    }
    await app(scope, gone, send)
    assert b"".join(message.get("body", b"") for message in sent) == b""
    assert not any(key[0] == "search" for key in site._made), (
        "what was not read to the end is not kept"
    )


async def test_a_list_is_narrowed_by_answers_groups_and_ranges(client: AsyncClient) -> None:
    every = (await client.get("/api/conversations", params={"run": "learn-1"})).json()["rows"]
    for asked, kept in (
        ({"answered": "no"}, [row for row in every if row["failed"]]),
        ({"group": "user 1"}, [row for row in every if int(row["id"].split()[-1]) % 4 == 1]),
        ({"turns_from": 4, "turns_to": 4}, every),
        ({"turns_to": 3}, []),
    ):
        told = (await client.get("/api/conversations", params={"run": "learn-1"} | asked)).json()
        assert [row["id"] for row in told["rows"]] == [row["id"] for row in kept]
    page = (await client.get("/conversations", params={"run": "learn-1", "turns_from": "4"})).text
    assert "user 1" in page
    assert 'name="turns_from" value="4.0"' in page


async def test_each_page_of_a_store_without_runs_says_what_would_be_there_and_leads_to_it(
    nothing: AsyncClient,
) -> None:
    addresses = {"/check", "/share", "/compare", *(entry.address for entry in list_menu_entries())}
    empty = sorted(addresses - {"/begin", "/at-work", "/logs"})
    shown = {address: await nothing.get(address) for address in empty}
    assert {address: answer.status_code for address, answer in shown.items()} == dict.fromkeys(
        empty, 200
    )
    told = re.compile(
        r'<p>Here (is|are) .*\n(<p class="row"><a [^>]*href="/(?:logs|begin).*\n.*\n)?<pre[^>]*>pollex '
    )
    assert [address for address, answer in shown.items() if not told.search(answer.text)] == []
    assert (
        await nothing.get("/conversations", headers={"accept": "application/json"})
    ).status_code == 404
    assert (await nothing.get("/conversations", params={"run": "none"})).status_code == 404


async def test_static_files_are_kept_for_good_under_a_name_that_changes_with_them(
    client: AsyncClient,
) -> None:
    page = (await client.get("/")).text
    for address in re.findall(r'"(/static/[^"]+)"', page):
        answer = await client.get(address)
        assert answer.status_code == 200
        assert "immutable" in answer.headers["cache-control"]
    assert (await client.get("/static/x/../../site.py")).status_code == 404


def test_all_static_files_are_light() -> None:
    kept = read_static_files()
    assert sum(len(body) for body in kept.values()) < 120_000
    for name, body in kept.items():
        if name.endswith(".js") and name != "part.js":
            assert not re.search(
                rb"innerHTML|insertAdjacentHTML|document\.write|eval\(|new Function", body
            ), name


async def test_a_set_leads_to_the_turns_that_its_rubrics_came_from_and_to_what_changed(
    client: AsyncClient,
) -> None:
    listed = (await client.get("/sets")).text
    (address,) = {
        a["href"] for _, a in Seen(listed).found if (a.get("href") or "").startswith("/sets/")
    }
    assert address is not None
    page = (await client.get(address)).text
    only_our_elements(page)
    assert "it works now, thanks" in page
    assert "#turn-3" in page
    (rubric, *_) = [a["href"] for _, a in Seen(page).found if "/rubric?" in (a.get("href") or "")]
    assert rubric is not None
    only_our_elements((await client.get(rubric)).text)
    same = (await client.get("/sets/diff", params={"a": address[6:], "b": address[6:]})).text
    only_our_elements(same)
    assert same.count("The same words") == 2
    found = [
        (part.text, part.kind)
        for part in diff_words("The user says thanks", "The user shouts thanks loudly")
    ]
    assert found == [
        ("The user", ""),
        ("says", "del"),
        ("shouts", "ins"),
        ("thanks", ""),
        ("loudly", "ins"),
    ]


async def test_home_leads_with_what_rubrics_are_worth_in_words(tmp_path: Path) -> None:
    def worth(down: float, error: float, n: int = 20) -> RubricEvidence:
        shares = {"holds": (0.5, 40), "down_with": (down, n), "down_without": (0.75, 20)}
        return RubricEvidence(
            **{name: Figure(at, at - error, at + error, n) for name, (at, n) in shares.items()}
        )

    worths = [worth(0.3, 0.5, 5), worth(0.5, 0.05), worth(0.1, 0.05)]
    rubrics = tuple(
        rubric(n, "sat").model_copy(update={"worth": one, "source": ""})
        for n, one in enumerate(worths, 1)
    )
    with Store.open(tmp_path / ".pollex") as store:
        async with client_of(
            made_app(store, files={"mine.json": rubric_set(rubrics=rubrics)})
        ) as client:
            page = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", (await client.get("/")).text))
    told = page.replace("\N{NO-BREAK SPACE}", " ").replace("\u2009", " ")
    assert (
        "Holds in 20 of 40 conversations: 2 of 20 thumbs down (10 %); elsewhere 15 of 20 (75 %)"
        in told
    )
    assert "65 points fewer (95 % " in told
    assert "too few to tell: it holds in 5 of 40" in page, "the doubts that the report has"
    places = [
        page.index(one)
        for one in ("says thanks 3.", "says thanks 1.", "says thanks 2.", "The whole rubric set")
    ]
    assert places == sorted(places), (
        "most thumbs explained first, as in the report and the terminal"
    )


async def test_all_that_a_list_has_comes_as_a_file(client: AsyncClient, tmp_path: Path) -> None:
    query = {"run": "learn-1", "thumb": "down", "sort": "netsat"}
    listed = (await client.get("/api/conversations", params=query)).json()
    files = {
        kind: await client.get("/api/conversations/file", params=query | {"kind": kind})
        for kind in ("csv", "jsonl", "parquet")
    }
    assert all("attachment" in one.headers["content-disposition"] for one in files.values())
    for kind, head in (("csv", 1), ("jsonl", 0)):
        lines = files[kind].text.splitlines()[head:]
        assert len(lines) == listed["total"]
        assert listed["rows"][0]["id"] in lines[0]
    (tmp_path / "c.parquet").write_bytes(files["parquet"].content)
    rows = duckdb.read_parquet(str(tmp_path / "c.parquet")).select("id, netsat, thumb").fetchall()
    assert rows == [(row["id"], row["netsat"], row["thumb"]) for row in listed["rows"]]


async def test_a_sets_page_says_how_its_rubrics_were_answered_by_class(
    client: AsyncClient, store: Store
) -> None:
    run = list_stored_runs(store)[0].id
    rows = store.ask(
        run,
        "SELECT DISTINCT a.*, c.label FROM answers a JOIN conversations c ON c.id = a.conversation",
    )
    mine = [row for row in rows if row["question"] == "rubric1" and row["chosen"] is not None]
    up, down = (
        [row for row in mine if row["label"] == label] for label in ("positive", "negative")
    )
    agreed = sum(row["chosen"] == 3 for row in up) / len(up)
    (set_id, *_) = [s["id"] for s in (await client.get("/api/sets")).json()["sets"]]
    page = (await client.get(f"/sets/{set_id}")).text
    only_our_elements(page)
    told = re.findall("<title>(thumb up, n = .*?)</title>", page)
    first = next(title for title in told if f"n = {len(up)}:" in title)
    assert f"thumb down, n = {len(down)}" in first
    assert f" Agree {100 * agreed:.0f} %" in first
    above = sum(row["chosen"] >= 3 for row in down) / len(down)
    assert f"{100 * above:.0f}\N{NO-BREAK SPACE}% with a thumb down" in page


def test_a_reason_is_told_by_what_it_does_to_the_probability() -> None:
    assert describe_move(-0.21) == "makes a thumb up much less likely"
    assert describe_move(0.05) == "makes a thumb up more likely"
    assert describe_move(0.001) == "hardly changes it"


def test_reasons_for_a_bad_verdict_begin_with_what_speaks_most_for_it_and_end_with_what_never_came_up() -> (
    None
):
    parts = [Contribution(rubric(n, "dsat"), None, value, never) for n, value, never in
             ((1, 0.0, False), (2, 10.0, True), (3, 9.0, False), (4, 8.0, False))]  # fmt: skip
    ids = [part.rubric.id for part in parts]
    moves = {ids[0]: 0.1, ids[2]: -0.02, ids[3]: -0.3}
    assert [part.rubric.id for part in sort_by_effect(parts, moves, good=False)] == [
        ids[3],
        ids[2],
        ids[0],
        ids[1],
    ]
    assert [part.rubric.id for part in sort_by_effect(parts, moves, good=True)] == [
        ids[0],
        ids[2],
        ids[3],
        ids[1],
    ]


async def test_the_menu_has_what_has_something_to_show(
    nothing: AsyncClient, client: AsyncClient, stranger: AsyncClient
) -> None:
    def entries(page: str) -> list[str]:
        return re.findall(r'data-key="g \w" data-does="([^"]+)"', page)

    empty = entries((await nothing.get("/")).text)
    full = entries((await client.get("/")).text)
    assert {"Home", "Label", "Begin"} <= {*empty}
    assert not {"Runs", "Conversations", "Rubrics", "Compare", "Talk", "Waiting"} & {*empty}
    assert {"Runs", "Conversations", "Rubrics", "Compare", "Calibration"} <= {*full}
    assert not {"Talk", "Waiting"} & {*full}
    assert entries((await stranger.get("/")).text) == [], "strangers learn nothing of what is there"


async def test_each_row_of_the_list_says_which_sentence_spoke_most_for_its_verdict(
    client: AsyncClient,
) -> None:
    page = (await client.get("/conversations", params={"run": "learn-1"})).text
    reasons = re.findall(r'<td class="reason" dir="auto" title="([^"]*)">', page)
    verdicts = re.findall(r'<span class="(?:up|down)">(Good|Bad)</span>', page)
    assert page.count(">Why</th>") == 1
    assert len(reasons) == 30
    assert set(verdicts) == {"Good", "Bad"}
    assert sum(map(bool, reasons)) > 10
    parts = {"x-pollex-part": "rows"}
    rows = (await client.get("/conversations", params={"run": "learn-1"}, headers=parts)).text
    assert re.findall(r'<td class="reason" dir="auto" title="([^"]*)">', rows) == reasons


def test_what_speaks_most_for_a_verdict_is_what_moved_the_score_most() -> None:
    by_hand = rubric_set(rubrics=(rubric(1, "sat"), rubric(2, "dsat")))
    sat, dsat = (rubric.text for rubric in by_hand.rubrics)

    def reason(answers: dict[str, int], *, good: bool, scorer: NetSat = by_hand.explainer) -> str:
        answered = {id_: point_answer(id_, chosen) for id_, chosen in answers.items()}
        reasons = choose_reasons(by_hand.rubrics, scorer, {"a": answered}, {"a": good})
        return reasons.get("a", "")

    both = {"rubric1": 4, "rubric2": 3}
    assert reason(both, good=True) == sat
    assert reason(both, good=False) == dsat
    assert reason({"rubric1": 3, "rubric2": 0}, good=True) == f"Not so: {dsat}"
    assert reason({"rubric1": 0}, good=True) == ""
    assert reason({"rubric1": 5, "rubric2": 2}, good=False) == "", (
        "what never came up moves nothing"
    )
    assert reason({}, good=False) == ""

    # a model that learned that the second rubric speaks for a thumb up, whatever side it is of
    learned = replace(by_hand.explainer, thumb_model=model_that_goes_by_the_second_rubric())
    assert reason(both, good=True, scorer=learned) == dsat
    assert reason({"rubric2": 0}, good=False, scorer=learned) == f"Not so: {dsat}"


async def test_a_list_is_narrowed_to_the_conversations_in_which_a_rubric_holds(
    client: AsyncClient, store: Store
) -> None:
    learnt = next(run.id for run in list_stored_runs(store) if run.command == "learn")
    holding = []
    for conversation, answers in read_answers(store, learnt).items():
        answer = answers["rubric1"]
        if (
            isinstance(answer, Answer)
            and not answer.never_came_up
            and answer.value() > MIDDLE_OPTION_VALUE
        ):
            holding.append(conversation)

    address = f"/api/conversations?run={learnt}&n=500"
    listed = (await client.get(f"{address}&holds=rubric1")).json()
    assert sorted(row["id"] for row in listed["rows"]) == sorted(holding)
    assert 0 < listed["total"] < (await client.get(address)).json()["total"]
    assert (await client.get(f"{address}&holds=nothing")).json()["total"] == 0
    shown = (await client.get(f"/conversations?run={learnt}&holds=rubric1")).text
    assert "Where this holds: " in shown


async def test_two_sets_learned_from_one_log_are_told_apart_by_who_judged(tmp_path: Path) -> None:
    with made_store(tmp_path / ".pollex", n=6) as store:
        again = store.begin(
            "learn",
            fingerprint={"data": "e"},
            versions={"pollex": "0.1.0"},
            arguments={"logs": ["log.jsonl"]},
        )
        found = rubric_set(run=again.id)
        by_model = found.model_copy(
            update={"judge": found.judge.model_copy(update={"name": "gpt-judge"})}
        )
        store.put([make_fact_row(again.id, "rubric_set", "set", by_model)])
        store.finish(again.id, "done", roles=["gpt-judge"])
        async with client_of(made_app(store)) as client:
            page = (await client.get("/")).text
    reports = page[page.index('aria-label="Reports"') :].partition("</nav>")[0]
    assert "log.jsonl, judged by gpt-judge" in reports
    assert "log.jsonl, judged by built-in" in reports


async def test_words_that_begin_no_conversation_are_looked_for_in_all_turns(
    client: AsyncClient,
) -> None:
    asked = {"run": "learn-1", "q": "nothing begins so"}
    page = (await client.get("/conversations", params=asked)).text
    further = re.search(r'<a href="([^"]*)">Look for them in all turns</a>', page)
    assert further is not None
    assert "words=all" in further[1]
    page = (await client.get(unescape(further[1]))).text
    assert "No conversation is like that" in page
