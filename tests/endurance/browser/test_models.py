"""What pages ask of a model: nothing is paid twice, what went wrong is said, and people decide where runs differ."""

import json
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from judged import write_log
from protocol_server import ProtocolServer
from visitors import Served, Visitor
from web_site import made_store

pytestmark = pytest.mark.nightly  # a minute in a browser with a model

PROFILE = '[mini]\nmodel = "m"\nbase_url = "{}"\nprice_in = 1\nprice_out = 2\n'
JUDGE = "pollex judge log.jsonl --question done? --model m --ensemble 5 --set variant=v0 --set seed=100 --json"
VOTES = [
    {
        "do": "message",
        "match": f'"seed":{100 + n}',
        "content": json.dumps({"answer": answer, "why": f"It is {answer}."}),
    }
    for n, answer in enumerate(("yes", "no", "yes", "no", "yes"))
]
CONVERSATION = "/conversation?run=learn-1&id=conversation+1"


def ask_again(visitor: Visitor, words: str = "") -> str:
    """Ask the profile about a conversation again, by the page's own form; what the page says of it."""
    page = visitor.page
    visitor.go(CONVERSATION)
    visitor.press("a")
    page.wait_for_url("**/replay?*")
    if words:
        page.get_by_label("Its words").fill(words)
    page.get_by_label("Judge").select_option("mini")
    page.get_by_role("button", name="Ask again").click()
    page.wait_for_url("**replay=*")
    came = page.locator("#came, main [role=alert]")
    ended = page.get_by_role("link", name="It has ended")
    came.or_(ended).first.wait_for()
    # the answer may have come before the page
    if not came.count():
        ended.click()
    came.first.wait_for()
    page.wait_for_load_state()
    return str(page.locator("main").inner_text()).replace("\xa0", " ")


@pytest.mark.nightly  # it waits for the model that is down
@pytest.mark.scenario(17)
def test_what_was_asked_again_is_paid_once_and_a_model_that_is_down_is_said(
    visit: Callable[..., Visitor], serve: Callable[..., Served], tmp_path: Path
) -> None:
    folder = tmp_path / ".pollex"
    profiles = tmp_path / "profiles.toml"
    made_store(folder, n=6).close()
    words = "The user asks where a parcel is."
    with ProtocolServer() as server:
        profiles.write_text(PROFILE.format(server.url))
        visitor = visit(serve(folder, "--profiles", str(profiles)))
        assert "2 calls were sent" in ask_again(visitor)
        paid = server.counts()["paid"]
        assert "0 calls were sent, $0.0000; 2 more needed no call" in ask_again(visitor)
        assert server.counts()["paid"] == paid
        assert "1 call was sent" in ask_again(visitor, words), (
            "the other side's words are as they were"
        )
        assert server.counts()["paid"] == paid + 1
        assert "0 calls were sent" in ask_again(visitor, words)
        assert server.counts()["paid"] == paid + 1
        assert server.counts()["repeated"] == 0, "not even what found out what the model can do"
        assert visitor.findings() == []
    assert "What came of it" not in ask_again(visitor, "The user is never answered.")
    told = visitor.page.locator("main [role=alert]").inner_text()
    assert told.startswith("mini: no answer for 20 s")
    assert told.endswith("then ask again")
    assert visitor.page.get_by_label("Its words").input_value() == "The user is never answered."
    assert visitor.findings() == []


@pytest.mark.scenario(18)
def test_an_interrupt_of_judge_is_answered_resumed_and_taken_up_and_no_model_is_asked_for_it(
    visit: Callable[..., Visitor], serve: Callable[..., Served], tmp_path: Path
) -> None:
    folder = tmp_path / ".pollex"
    write_log(tmp_path / "log.jsonl", 3)
    with ProtocolServer(script=[*VOTES, {"do": "honest"}]) as server:
        words = [sys.executable, "-m", *JUDGE.split(), "--base-url", server.url]
        ran = subprocess.run(words, cwd=tmp_path, check=True, capture_output=True, text=True)
        assert json.loads(ran.stdout.splitlines()[-1])["waiting"] == 3
        asked = server.counts()["received"]
        visitor = visit(serve(folder))
        page = visitor.page
        visitor.press("g", "w")
        page.wait_for_url("**/waiting")
        page.get_by_role("link", name="judge-1").click()
        page.get_by_label("Your name").fill("ann")
        visitor.press("Control+Enter")
        page.wait_for_url("**who=ann")
        for key in "12":
            assert "the runs voted" not in page.locator("form.sheet").inner_text(), (
                "votes are shown after the answer"
            )
            before = page.url
            visitor.press(key)
            page.wait_for_url(lambda url, before=before: url != before)
            page.get_by_text("the runs voted yes 3, no 2").wait_for()
        page.get_by_text("3 conversations wait; 2 kept and not taken up; 0 taken up").wait_for()
        page.get_by_role("button", name="Take up 2 answers").click()
        page.locator(".state.done").wait_for()
        assert visitor.findings() == []
        page.get_by_role("link", name="Back to where it was started").click()
        page.get_by_text("1 conversation waits; 0 kept and not taken up; 2 taken up").wait_for()
        visitor.go("/waiting/judge-1?who=ann")
        assert page.get_by_text("yes: taken up").count() == 1
        assert server.counts()["received"] == asked
    with sqlite3.connect(folder / "store.sqlite") as kept:
        given = kept.execute(
            "SELECT value FROM labels WHERE annotator = '' ORDER BY rowid"
        ).fetchall()
    assert given == [('"yes"',), ('"no"',)], "taken up by the run, beside what ann said"
    assert not list(folder.glob("answers-*")), "the file that it read is gone"
