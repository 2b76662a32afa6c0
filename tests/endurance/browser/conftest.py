"""A real Chromium, and the application on a store made by hand, served in a process of its own.

Chromium is the program that POLLEX_CHROMIUM names, or one on the PATH. Where there is none the
tests are skipped, unless POLLEX_BROWSER=required.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from judged_run import judged_run
from visitors import Served, Visitor
from web_site import made_store

CHROMIUM = os.environ.get("POLLEX_CHROMIUM")
REQUIRED = os.environ.get("POLLEX_BROWSER") == "required"
PATIENCE = 120_000
"""Milliseconds that are waited for what a page has to show: a machine may have much else to do."""
NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.parent == Path(__file__).parent:
            item.add_marker(pytest.mark.browser)


def _missing(reason: str) -> None:
    if REQUIRED:
        pytest.fail(f"{reason}, and POLLEX_BROWSER=required")
    pytest.skip(reason)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A browser for one module: while Playwright's loop runs, commands in this process can't run theirs."""
    found = CHROMIUM or next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        _missing("no Chromium: sudo apt install chromium, or name one with POLLEX_CHROMIUM")
    try:
        from playwright.sync_api import sync_playwright  # an extra that not everybody has
    except ImportError:
        _missing("no Playwright: pip install 'pollex[browser]'")
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(
            executable_path=found, args=["--no-sandbox", "--disable-gpu"]
        )
        yield launched
        launched.close()


@pytest.fixture(scope="session")
def serve(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Served]]:
    """Starts servers; all have ended with the tests."""
    started: list[subprocess.Popen[str]] = []

    def begin(store: Path, *options: str, folder: Path | None = None) -> Served:
        command = [
            sys.executable,
            "-m",
            "pollex",
            "serve",
            "--store",
            str(store),
            "--port",
            "0",
            "--no-open",
            "--json",
        ]
        process = subprocess.Popen(
            [*command, *options], stdout=subprocess.PIPE, text=True, cwd=folder
        )
        started.append(process)
        assert process.stdout is not None
        return Served(json.loads(process.stdout.readline())["url"], store, process)

    yield begin
    for process in started:
        process.terminate()
        assert process.wait(PATIENCE / 1000) == 0


@pytest.fixture(scope="session")
def served(serve: Callable[..., Served], tmp_path_factory: pytest.TempPathFactory) -> Served:
    folder = tmp_path_factory.mktemp("browser") / ".pollex"
    with made_store(folder, n=250) as store:
        judged_run(store)
    return serve(folder)


@pytest.fixture
def visit(browser: Any) -> Iterator[Callable[..., Visitor]]:
    """Opens pages; at the end their consoles must have stayed empty."""
    opened: list[tuple[Any, Visitor]] = []

    def begin(served: Served, **options: Any) -> Visitor:
        context = browser.new_context(**({"viewport": {"width": 1200, "height": 850}} | options))
        context.set_default_timeout(PATIENCE)
        visitor = Visitor(context.new_page(), served, [])
        visitor.page.on(
            "console", lambda message: visitor.faults.append(f"console: {message.text}")
        )
        visitor.page.on("pageerror", lambda error: visitor.faults.append(f"error: {error}"))
        visitor.page.on(
            "dialog", lambda dialog: (visitor.faults.append(dialog.message), dialog.dismiss())
        )
        visitor.page.on(
            "request",
            lambda asked: (
                None if asked.url.startswith(served.base) else visitor.faults.append(asked.url)
            ),
        )
        visitor.page.goto(served.url)
        opened.append((context, visitor))
        return visitor

    yield begin
    for context, visitor in opened:
        context.close()
        assert [fault for fault in visitor.faults if "404 (Not Found)" not in fault] == []


@pytest.fixture
def visitor(visit: Callable[..., Visitor], served: Served) -> Visitor:
    return visit(served)
