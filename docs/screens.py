"""Screens of the demo and of the recorded run in the browser, light and dark, as README and the how-tos show them.

    python docs/screens.py                                     # docs/screens/*.png
    python docs/screens.py --demo FOLDER --recorded FOLDER     # of demos that were made before

It needs the extra `browser` and a Chromium: the one that POLLEX_CHROMIUM names, or one on the PATH.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

SCREENS = Path(__file__).parent / "screens"
LARGEST = 150_000
NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
WIDE, HIGH = 1200, 620


@contextmanager
def served(demo: Path) -> Iterator[str]:
    """Serve a demo's store; its address with the token."""
    command = [sys.executable, "-m", "pollex", "serve", "--store", str(demo / ".pollex")]
    command += ["--rubrics", str(demo / "rubrics.json"), "--port", "0", "--no-open", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:  # noqa: S603 - ours
        assert server.stdout is not None
        try:
            yield str(json.loads(server.stdout.readline())["url"])
        finally:
            server.terminate()


def pages(page: Any, base: str) -> dict[str, str]:
    """Return the pages that are shown, by name: what the demo made, each as somebody would come to it."""

    def first(path: str, link: str) -> str:
        page.goto(base + path)
        return str(page.locator(link).first.get_attribute("href"))

    learned = first("/runs?command=learn", "table a").partition("?")[0]
    scored = first("/runs?command=score", "table a").partition("?")[0]
    run, other = learned.rpartition("/")[2], scored.rpartition("/")[2]
    rubrics = first("/sets", "main a[href^='/sets/']")
    return {
        "home": "/",
        "runs": "/runs",
        "run": learned,
        "conversations": f"/conversations?run={run}&sort=netsat",
        "conversation": first(f"/conversations?run={run}&thumb=down&sort=netsat", "#rows a"),
        "set": rubrics,
        "rubric": first(rubrics, "main a[href*='/rubric?id=']"),
        "compare": f"/compare?a={run}&b={other}",
        "label": "/label",
        "share": "/share",
        "calibration": "/calibration",
        "calibrator": f"/calibration/{run}#learning",
        "check": f"/check?run={other}&against={run}&what=mean(p)+drops+by&limit=0.03",
        "talk": "/talk",
    }


def recorded_pages(page: Any, base: str) -> dict[str, str]:
    """Return the pages of the recorded run: what the model adds, a conversation, a call with prompt and answer."""

    def first(path: str, link: str) -> str:
        page.goto(base + path)
        return str(page.locator(link).first.get_attribute("href"))

    learned = first("/runs?command=learn", "table a").partition("?")[0]
    run = learned.rpartition("/")[2]
    return {
        "recorded-compare": first("/", "#look ~ ul a[href^='/compare']"),
        "recorded-conversation": first(f"/conversations?run={run}&thumb=down&sort=netsat", "#rows a"),
        "recorded-call": first(f"{learned}/calls", "main a[href*='/call?key=']"),
    }


def shoot(browser: Any, url: str, scheme: str, pages: Callable[[Any, str], dict[str, str]]) -> list[Path]:
    """Take all screens in a scheme."""
    context = browser.new_context(viewport={"width": WIDE, "height": HIGH}, color_scheme=scheme)
    page, base, made = context.new_page(), url.partition("/enter")[0], []
    page.goto(url)
    for name, path in pages(page, base).items():
        page.goto(base + path)
        page.locator("[data-live]").first.wait_for(state="detached")  # figures that are worked out meanwhile
        page.goto(base + path)
        made.append(SCREENS / f"{name}-{scheme}.png")
        page.screenshot(path=made[-1])
    context.close()
    return made


def main() -> int:
    """Make the demo, and the screens; return 1 where one is too large."""
    from playwright.sync_api import sync_playwright  # an extra that not everybody has

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--demo", type=Path)
    parser.add_argument("--recorded", type=Path)
    given = parser.parse_args()
    program = os.environ.get("POLLEX_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    SCREENS.mkdir(exist_ok=True)
    made: list[Path] = []
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        for known, more, shown in ((given.demo, [], pages), (given.recorded, ["--recorded"], recorded_pages)):
            demo = known or Path(folder) / f"pollex-demo{''.join(more)}"
            if known is None:
                command = [sys.executable, "-m", "pollex", "demo", "--out", demo.name, *more]
                subprocess.run(command, cwd=folder, check=True)  # noqa: S603 - ours
            with served(demo) as url:
                made += [path for scheme in ("light", "dark") for path in shoot(browser, url, scheme, shown)]
    for path in made:
        sys.stdout.write(f"{path.stat().st_size:>8,} bytes  {path}\n")
    return int(any(path.stat().st_size > LARGEST for path in made))


if __name__ == "__main__":
    sys.exit(main())
