"""Screens of the demo and of the recorded run, light and dark, and the report's picture.

    python docs/screens.py                                     # docs/screens/*.png, docs/report.png
    python docs/screens.py --demo FOLDER --recorded FOLDER     # of demos that were made before
    python docs/screens.py --only home --only report           # some of the pictures

All are of one run, and docs/screens/made.json keeps its rubrics: a test compares them with those
that README quotes, which `make figures` writes.

It needs the extra `browser` and a Chromium: the one that POLLEX_CHROMIUM names, or one on the PATH.
"""

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

from demo_rows import table_of
from PIL import Image

ROOT = Path(__file__).parents[1]
SCREENS = ROOT / "docs" / "screens"
REPORT = ROOT / "docs" / "report.png"
MADE = SCREENS / "made.json"

LARGEST = 150_000
NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
FIGURES_TAKE = 300_000
"""Milliseconds at most for figures that a page works out."""

WIDE = 1200
HIGH = 620
TALL = {"judge": 1340, "states": 1080}
"""Heights of the screens whose figures stand further down."""
OPENED = {"states": ("state-deduplicate", "state-select")}
"""What is opened on a page, by the ids inside."""
REPORT_SIZE = {"width": 1085, "height": 1450}


@contextmanager
def served(demo: Path) -> Iterator[str]:
    """Serve a demo's store; its address with the token."""
    command = [sys.executable, "-m", "pollex", "serve", "--store", str(demo / ".pollex")]
    command += ["--port", "0", "--no-open", "--json"]
    if (demo / "rubrics.json").exists():
        command += ["--rubrics", str(demo / "rubrics.json")]
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
    run = learned.rpartition("/")[2]
    rubrics = first("/sets", "main a[href^='/sets/']")
    return {
        "home": "/",
        "runs": "/runs",
        "run": learned,
        "states": learned,
        "conversations": f"/conversations?run={run}&sort=netsat",
        "conversation": first(f"/conversations?run={run}&thumb=down&sort=netsat", "#rows a"),
        "set": rubrics,
        "rubric": first(rubrics, "main a[href*='/rubric?id=']"),
        "label": "/label",
        "share": "/share",
        "calibration": "/calibration",
        "talk": "/talk",
    }


def recorded_pages(page: Any, base: str) -> dict[str, str]:
    """Return the pages of the recorded run: what the model adds, a conversation, a call, and runs beside each other.

    Scores are compared: where all labels teach, a learning run has no conversation that a
    comparison could use.
    """

    def first(path: str, link: str) -> str:
        page.goto(base + path)
        return str(page.locator(link).first.get_attribute("href"))

    def earliest(path: str, link: str) -> str:
        page.goto(base + path)
        return str(page.locator(link).last.get_attribute("href"))

    learned = first("/runs?command=learn", "table a").partition("?")[0]
    scored = first("/runs?command=score", "table a").partition("?")[0]
    scored_before = earliest("/runs?command=score", "table a[href^='/runs/score']").partition("?")[
        0
    ]
    run = learned.rpartition("/")[2]
    other = scored.rpartition("/")[2]
    before = scored_before.rpartition("/")[2]
    return {
        "compare": f"/compare?a={before}&b={other}",
        "recorded-compare": first("/", "#look ~ ul a[href^='/compare']"),
        "recorded-conversation": first(
            f"/conversations?run={run}&thumb=down&sort=netsat", "#rows a"
        ),
        "recorded-call": first(f"{learned}/calls", "main a[href*='/call?key=']"),
    }


def judge(folder: Path) -> Path:
    """Rate the sample with the question of docs/how-to/judge.md, in a store of its own."""
    command = [sys.executable, "-m", "pollex", "judge", str(ROOT / "examples" / "bikes.jsonl")]
    folder.mkdir()
    subprocess.run([*command, "--question", "Was the task completed?"], cwd=folder, check=True)  # noqa: S603 - ours
    return folder


def judged_pages(page: Any, base: str) -> dict[str, str]:
    """Return the page of the run that judged."""
    page.goto(base + "/runs?command=judge")
    return {"judge": str(page.locator("table a").first.get_attribute("href")).partition("?")[0]}


def keep(made: list[Path], rows: dict[str, str]) -> None:
    """Write what was made into the file that the test reads: pictures by their hash, and rows."""
    known = json.loads(MADE.read_text("utf-8")) if MADE.exists() else {"pictures": {}}
    now = {
        str(path.relative_to(ROOT)): hashlib.sha256(path.read_bytes()).hexdigest() for path in made
    }
    content = {"pictures": dict(sorted((known["pictures"] | now).items())), "rows": rows}
    MADE.write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n", "utf-8")


def shoot_report(browser: Any, demo: Path) -> Path:
    """Take the picture of a demo's report."""
    page = browser.new_page(viewport=REPORT_SIZE)
    page.goto((demo / "report.html").absolute().as_uri())
    whole = Image.open(BytesIO(page.screenshot())).convert("RGB")
    page.close()
    # a third of the bytes, and nobody sees a difference
    whole.quantize(256).save(REPORT, optimize=True)
    return REPORT


def shoot(
    browser: Any,
    url: str,
    scheme: str,
    pages: Callable[[Any, str], dict[str, str]],
    only: list[str],
) -> list[Path]:
    """Take the screens in a scheme, all or only some."""
    context = browser.new_context(viewport={"width": WIDE, "height": HIGH}, color_scheme=scheme)
    page = context.new_page()
    base = url.partition("/enter")[0]
    made = []
    page.goto(url)
    wanted = {name: path for name, path in pages(page, base).items() if name in only or not only}
    for name, path in wanted.items():
        page.set_viewport_size({"width": WIDE, "height": TALL.get(name, HIGH)})
        page.goto(base + path)
        page.locator("[data-live]").first.wait_for(
            state="detached", timeout=FIGURES_TAKE
        )  # figures that are worked out meanwhile
        page.goto(base + path)
        for inside in OPENED.get(name, ()):
            page.locator(f"#{inside}").evaluate("one => one.parentElement.open = true")
        made.append(SCREENS / f"{name}-{scheme}.png")
        page.screenshot(path=made[-1])
    context.close()
    return made


def main() -> int:
    """Make the demo and the pictures; return 1 where a screen is too large."""
    from playwright.sync_api import sync_playwright  # an extra that not everybody has

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--demo", type=Path)
    parser.add_argument("--recorded", type=Path)
    parser.add_argument("--only", action="append", default=[], metavar="NAME")
    given = parser.parse_args()
    program = os.environ.get("POLLEX_CHROMIUM") or next(
        filter(None, map(shutil.which, NAMES)), None
    )
    SCREENS.mkdir(exist_ok=True)
    made: list[Path] = []
    rows: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=program, args=["--no-sandbox", "--disable-gpu"]
        )
        for known, more, shown in (
            (given.demo, [], pages),
            (given.recorded, ["--recorded"], recorded_pages),
        ):
            demo = known or Path(folder) / f"pollex-demo{''.join(more)}"
            if known is None:
                command = [sys.executable, "-m", "pollex", "demo", "--out", demo.name, *more]
                subprocess.run(command, cwd=folder, check=True)  # noqa: S603 - ours
            run = "recorded" if more else "demo"
            rows[run] = table_of(demo, run)
            if not more and (not given.only or "report" in given.only):
                made.append(shoot_report(browser, demo))
            with served(demo) as url:
                for scheme in ("light", "dark"):
                    made += shoot(browser, url, scheme, shown, given.only)
        if not given.only or "judge" in given.only:
            with served(judge(Path(folder) / "judged")) as url:
                for scheme in ("light", "dark"):
                    made += shoot(browser, url, scheme, judged_pages, ["judge"])
    keep(made, rows)
    for path in made:
        sys.stdout.write(f"{path.stat().st_size:>8,} bytes  {path}\n")
    return int(any(path.stat().st_size > LARGEST for path in made if path != REPORT))


if __name__ == "__main__":
    sys.exit(main())
