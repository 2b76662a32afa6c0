"""From a file to a proved change of the prompt in the browser alone, and the pages on the way beside each other."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from protocol_server import ProtocolServer
from visitors import Served, Visitor
from web_site import made_store

from pollex.runs.workspace import run_to_end
from pollex.store.seal import Seal

MINUTES_10 = 600_000
SECONDS_60 = 60_000
BIKES = Path(__file__).parents[3] / "pollex" / "examples" / "bikes.jsonl"
PROMPT = "You are the assistant of a bicycle shop.\nBe short and friendly.\n"
OFFER = "Where a wish can't be met, offer another day."
FAILS = "Sorry, I couldn't book it for Friday at 3 pm."
WAY_ON = f"{FAILS} Should I book it for Monday at 3 pm instead?"


@pytest.fixture
def assistant() -> Iterator[ProtocolServer]:
    """An assistant that fails, and that offers another day once its prompt says so."""
    with ProtocolServer() as server:
        server.script([
            {"do": "message", "match": "offer another day", "content": WAY_ON},
            {"do": "message", "match": "bicycle shop", "content": FAILS},
        ])  # fmt: skip
        yield server


@pytest.mark.nightly  # minutes: it learns, judges and proves
def test_a_log_is_brought_learned_labeled_compared_and_a_change_is_proved(
    visit: Callable[..., Visitor],
    serve: Callable[..., Served],
    assistant: ProtocolServer,
    tmp_path: Path,
) -> None:
    visitor = visit(serve(tmp_path / ".pollex", folder=tmp_path))
    page = visitor.page
    page.set_default_timeout(SECONDS_60)

    # a log is brought, and its reading kept
    page.get_by_role("link", name="Bring a log").first.click()
    page.set_input_files("input[name=files]", str(BIKES))
    page.get_by_role("button", name="Keep this reading").click(timeout=SECONDS_60)
    page.get_by_role("link", name="Learn from it").click()
    page.get_by_role("button", name="Learn", exact=True).click()
    page.get_by_role("link", name="What your users' thumbs are about").click(timeout=MINUTES_10)
    assert visitor.findings() == []

    # some of it is labeled by keys
    visitor.go("/begin/label-queue")
    page.get_by_label("bikes").first.check()
    page.get_by_label("How many conversations").fill("3")
    page.get_by_role("button", name="Make the queue").click()
    page.get_by_role("link", name="Label now").click(timeout=MINUTES_10)
    page.get_by_label("Your name").fill("Ann")
    page.get_by_role("button", name="Begin").click()
    for done in range(1, 4):
        page.get_by_role("button", name="Up").wait_for()
        page.keyboard.press("u")
        page.get_by_text(f"{done} of 3 done").wait_for()
    assert visitor.findings() == []

    # two samples are compared
    visitor.go("/begin/check")
    page.get_by_label("New conversations").select_option(index=1)
    page.get_by_label("Those of before").select_option(index=1)
    page.get_by_role("button", name="Check", exact=True).click()
    page.get_by_role("heading", name="The gate is open").wait_for(timeout=MINUTES_10)
    assert page.locator("main svg").count() > 2
    assert visitor.findings() == []

    # what to change, and whether it helps
    visitor.go("/begin/remedy-brief")
    page.get_by_label("The assistant’s prompt").fill(PROMPT)
    page.get_by_role("button", name="Write the brief").click()
    page.get_by_role("link", name="Change the prompt, and prove it").first.click(timeout=MINUTES_10)
    assert page.get_by_label("The assistant’s prompt").input_value().startswith("You are")
    page.get_by_label("The changed prompt").fill(f"{PROMPT}{OFFER}\n")
    page.locator("#changes ins", has_text=OFFER).wait_for()
    page.get_by_label("Its model", exact=True).fill("shop")
    page.get_by_label("Its base URL").fill(assistant.url)
    page.get_by_label("Its price").fill("0.1:0.4")
    assert visitor.findings() == []
    page.get_by_role("button", name="Prove it").click()
    page.get_by_text("At most").first.wait_for(timeout=MINUTES_10)
    page.get_by_role("button", name="Prove it").click()
    page.get_by_role("link", name="The verdict").click(timeout=MINUTES_10)
    assert page.get_by_role("heading", name="A change of the prompt").count() == 1
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
        run_to_end(store.write_step(run.id, "proposed", step))
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


@pytest.mark.parametrize("width", [1280, 400])
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
