"""From a file to a proved change of the prompt in the browser alone, and the pages on the way beside each other."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from protocol_server import ProtocolServer
from remedy_log import table_log
from small_log import write_log
from visitors import Served, Visitor
from web_site import made_store

from pollex.runs.workspace import run_coroutine_to_end
from pollex.store.seal import Seal

MINUTES_3 = 180_000
LABELS = 20
"""Labels after which learning again is offered."""
PROMPT = "You are the assistant of a restaurant.\nBe short and friendly.\n"
OFFER = "Where a wish can't be met, offer another day."
FAILS = "I'm sorry, I wasn't able to book a table for Friday at 6 pm."
WAY_ON = "I couldn't book it for Friday. Shall I book it for Monday at 6 pm?"


@pytest.fixture
def assistant() -> Iterator[ProtocolServer]:
    """An assistant that fails, and that offers another day once its prompt says so."""
    with ProtocolServer() as server:
        server.script([
            {"do": "message", "match": "offer another day", "content": WAY_ON},
            {"do": "message", "match": "assistant of a restaurant", "content": FAILS},
        ])  # fmt: skip
        yield server


def test_a_log_is_brought_learned_labeled_scored_compared_and_a_change_is_proved_and_shared(
    visit: Callable[..., Visitor],
    serve: Callable[..., Served],
    assistant: ProtocolServer,
    tmp_path: Path,
) -> None:
    log = write_log(tmp_path / "tables.jsonl", table_log(80))
    visitor = visit(serve(tmp_path / ".pollex", folder=tmp_path))
    page = visitor.page
    page.set_default_timeout(MINUTES_3)

    # a log is brought, and its reading kept
    page.get_by_role("link", name="Bring a log").first.click()
    page.set_input_files("input[name=files]", str(log))
    page.get_by_role("heading", name="Two conversations, as they will be judged").wait_for()
    page.get_by_role("button", name="Keep this reading").click()

    # it is learned from, and Home is the report
    page.get_by_role("link", name="Learn from it").click()
    page.get_by_text("pollex learn log:tables").wait_for()
    page.get_by_role("button", name="Learn", exact=True).click()
    page.get_by_role("link", name="What your users' thumbs are about").click()
    page.get_by_role("heading", name="What goes wrong").wait_for()
    for way in ("All where it holds", "Change something"):
        page.get_by_role("link", name=way).first.wait_for()
    assert visitor.findings() == []
    page.get_by_role("link", name="All where it holds").first.click()
    page.get_by_text("Where this holds: ").wait_for()

    # some more are labeled by keys, until learning again is offered
    visitor.go("/")
    page.get_by_role("button", name="Label more of these").first.click()
    page.get_by_label("Your name").fill("Ann")
    page.get_by_role("button", name="Begin").click()
    page.get_by_role("button", name="Down").wait_for()
    page.wait_for_load_state()
    for _ in range(2 * LABELS):
        # some are shown twice, and count once
        if page.get_by_role("link", name="Learn again").count():
            break
        with page.expect_navigation():
            visitor.press("d")
        page.get_by_role("button", name="Down").wait_for()
    page.get_by_role("link", name="Learn again").click()
    page.get_by_text("pollex learn log:tables --set label_sources=log,person").wait_for()
    page.get_by_role("button", name="Learn", exact=True).click()
    page.get_by_role("link", name="What changed").click()
    page.get_by_role("heading", name="What changed").wait_for()

    # it is scored, and the scores are compared with those of before
    visitor.go("/begin/score")
    page.get_by_label("tables").first.check()
    page.get_by_role("button", name="Score", exact=True).click()
    page.get_by_role("link", name="All of them, the worst first").click()
    page.locator("#rows tr").nth(10).wait_for()
    visitor.go("/runs")
    for box in page.locator("main tbody input[type=checkbox]").all()[:2]:
        box.check()
    page.get_by_role("button", name="Compare the two that are ticked").click()
    page.get_by_role("heading", name="Two runs side by side").wait_for()
    page.get_by_role("heading", name="What is different, on the same texts").wait_for()

    # what to change, and whether it helps
    visitor.go("/")
    page.get_by_role("link", name="Change something").first.click()
    page.get_by_role("link", name="Change the prompt, and prove it").click()
    page.get_by_label("The assistant’s prompt").fill(PROMPT)
    page.get_by_label("The changed prompt").fill(f"{PROMPT}{OFFER}\n")
    page.locator("#changes ins", has_text=OFFER).wait_for()
    page.get_by_label("Its model", exact=True).fill("shop")
    page.get_by_label("Its base URL").fill(assistant.url)
    page.get_by_label("Its price").fill("0.1:0.4")
    page.get_by_role("button", name="Prove it").click()
    page.get_by_role("heading", name="what it would ask").wait_for()
    page.locator("dt", has_text="Leaves this machine").wait_for()
    assert assistant.counts()["received"] == 0, "nothing is asked before somebody has seen the plan"
    page.get_by_role("button", name="Prove it").click()
    page.get_by_role("link", name="The verdict").click()
    page.get_by_role("heading", name="A change of the prompt").wait_for()
    page.get_by_text("the judge finds the new replies better").first.wait_for()
    assert visitor.findings() == []

    # and others read it
    visitor.go("/pass-on")
    page.get_by_label("Names, one a line").fill("Bo")
    page.get_by_role("button", name="Make links").click()
    link = page.locator("td code").first.inner_text()
    reader = visit(Served(link, visitor.served.store, visitor.served.process))
    reader.go("/runs")
    assert reader.page.locator("form[method=post]").count() == 0


@pytest.fixture(scope="module")
def waiting(
    serve: Callable[..., Served], tmp_path_factory: pytest.TempPathFactory
) -> tuple[Served, list[str]]:
    """A server whose store has a remedy that waits, results of commands, and folders that are looked at."""
    folder = tmp_path_factory.mktemp("waiting") / ".pollex"
    with made_store(folder, n=40) as store:
        run = store.begin(
            "remedy",
            arguments={"command": "pollex remedy run a.jsonl"},
            fingerprint={},
            versions={},
        )
        candidate = {"name": "naive", "purpose": "the plain opposite", "refused": "", "diff": ""}
        candidates = [candidate | {"text": PROMPT + OFFER}]
        step = {"prompt": PROMPT, "candidates": candidates}
        run_coroutine_to_end(store.write_step(run.id, "proposed", step))
        store.finish(run.id, "interrupted")
    results = folder / "commands" / "ended"
    results.mkdir(parents=True)
    brief: dict[str, Any] = {"target": "r1", "text": "It refuses.", "failing": 3, "share": 0.2}
    brief |= {"low": 0.1, "high": 0.3, "kind": "offer", "sentence": OFFER, "no_sentence": ""}
    told = {"n": 40, "thumbs_down": 9, "thumbs_down_without": 2, "untestable": {"r2": "why"}}
    kept = {"words": "Write the brief", "arguments": ["remedy", "brief", "a"], "back": "/begin"}
    kept |= {"began": "", "state": "done", "told": told | {"targets": [brief | {"lines": [2]}]}}
    sealed = Seal.of(folder).sign_fields("ended/0123abcd.json", kept | {"lines": []})
    (results / "0123abcd.json").write_text(json.dumps(sealed))
    inbox = folder.parent / "in"
    inbox.mkdir()
    served = serve(folder, "--watch", str(inbox), "--root", str(inbox))
    return served, ["/watch", "/pass-on", f"/remedies/{run.id}", "/children/0123abcd"]


@pytest.mark.parametrize("width", [pytest.param(1280, marks=pytest.mark.nightly), 400])
def test_pages_that_wait_for_people_are_whole_and_can_be_used_by_everybody(
    visit: Callable[..., Visitor], waiting: tuple[Served, list[str]], width: int
) -> None:
    served, paths = waiting
    visitor = visit(served, viewport={"width": width, "height": 800}, color_scheme="dark")
    for path in paths:
        assert visitor.go(path).status == 200, path
        visitor.page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
        assert visitor.page.evaluate("document.documentElement.scrollWidth") <= width, path
        assert visitor.findings() == [], path
