"""A run that goes on while somebody looks: it is slow, is killed, is resumed, and ends."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from judged import rubric_set, write_log
from protocol_server import ProtocolServer
from visitors import Served, Visitor

from pollex.store.store import Store

pytestmark = pytest.mark.nightly  # CI has twenty minutes

READS: dict[str, Any] = {"do": "attentive"}
SLOW = [READS | {"match": "Problem", "latency": 2.0}, READS]
N = 60


@contextmanager
def begun(command: list[str], folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A command that is on its way, and gone at the end whatever happens."""
    process = subprocess.Popen(
        [sys.executable, "-m", *command], cwd=folder, stdout=subprocess.DEVNULL, text=True
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def opened(visitor: Visitor) -> Any:
    """The page of the first run, as soon as there is one."""
    page = visitor.page
    visitor.go("/runs")
    while not page.locator("main table a").count():
        page.wait_for_timeout(200)
        page.reload()
    page.locator("main table a").first.click()
    page.get_by_role("heading", level=1).wait_for()
    return page


def numbers(page: Any) -> tuple[float, int, float]:
    """How far the bar is, how many spans the strips are made of, and how long a strip is."""
    done = float(page.locator("progress").last.get_attribute("value"))
    spans = sum(
        int(n.replace(",", ""))
        for n in page.locator(".times tbody td:nth-child(4)").all_inner_texts()
    )
    return done, spans, float(page.locator("td[data-last]").first.get_attribute("data-last"))


@pytest.mark.scenario(10)
def test_a_slow_models_run_fills_bar_and_strips_is_killed_is_resumed_ends_and_the_page_says_so(
    visit: Callable[..., Visitor], serve: Callable[..., Served], tmp_path: Path
) -> None:
    Store.open(tmp_path / ".pollex").close()
    write_log(tmp_path / "log.jsonl", N)
    visitor = visit(serve(tmp_path / ".pollex"))
    with ProtocolServer(script=SLOW) as server:
        rubric_set(server.url, sat=1, dsat=1).save(tmp_path / "rubrics.json")
        words = (
            f"pollex score log.jsonl --rubrics rubrics.json --base-url {server.url} --concurrency 2"
        )
        with begun(words.split(), tmp_path) as process:
            page = opened(visitor)
            page.locator(".times tbody .strip").first.wait_for()
            before = numbers(page)
            page.evaluate("document.body.dataset.same = 'yes'")
            page.get_by_role("group", name="Nodes over time").focus()
            while any(now <= then for now, then in zip(numbers(page), before, strict=True)):
                page.wait_for_timeout(200)
                assert process.poll() is None, "what never fills ends with the run"
            assert page.locator(".graph .node.ran").count() > 0
            assert (
                page.evaluate("document.activeElement.getAttribute('aria-label')")
                == "Nodes over time"
            )
            assert visitor.findings() == []
            process.kill()
            page.locator(".state.killed").wait_for()
            assert page.evaluate("document.body.dataset.same") == "yes", (
                "all that came into the page that was open"
            )
            (command,) = page.locator(".command").all_inner_texts()
            assert command == f"cd {tmp_path} && {words} --resume --store {tmp_path / '.pollex'}"
        page.reload()
        assert page.locator(".command").all_inner_texts() == [command]
        assert visitor.findings() == []
        with begun(command.partition(" && ")[2].split(), tmp_path) as process:
            while not page.locator(".state.running").count():
                page.wait_for_timeout(200)
                page.reload()
            server.script([READS])
            page.get_by_role("link", name="It has ended").click()
            assert process.wait(120) == 0
        page.locator(".state.done").wait_for()
    visitor.go("/runs")
    assert page.locator("main table tbody tr").count() == 1, "it went on with the same run"
    assert page.get_by_role("cell", name=str(N), exact=True).count() == 1
