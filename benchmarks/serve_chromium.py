"""What `pollex serve` is like in Chromium with a list of many conversations: first paint, its end, scrolling."""

import os
import shutil
from pathlib import Path
from typing import Any

Row = tuple[str, float, float]
NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = ("--no-sandbox", "--disable-gpu", "--enable-precise-memory-info", "--js-flags=--expose-gc")
PAINT, JUMP, FRAME, HEAP, SCROLLED, VIEWS = 1000.0, 300.0, 100.0, 20.0, 10_000, 9
PAINTED = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0"
JUMPED = """async ([share, row]) => {
  const box = document.getElementById("window"), body = document.getElementById("rows");
  const there = () => body.querySelector(`tr[aria-rowindex="${row}"]`);
  const begun = performance.now();
  await new Promise((done) => {
    const seen = new MutationObserver(() => there() && (seen.disconnect(), done()));
    seen.observe(body, { childList: true });
    box.scrollTop = share * box.scrollHeight;
    if (there()) done();
  });
  return performance.now() - begun;
}"""
SCROLLING = """async (rows) => {
  const box = document.getElementById("window"), by = 50, height = document.querySelector("#rows tr").offsetHeight;
  box.scrollTop = 0;
  await new Promise((done) => setTimeout(done, 1000));
  gc();
  const heap = performance.memory.usedJSHeapSize;
  let last = performance.now(), longest = 0;
  for (let done = 0; done < rows; done += by) {
    box.scrollTop += by * height;
    await new Promise(requestAnimationFrame);
    longest = Math.max(longest, performance.now() - last);
    last = performance.now();
  }
  await new Promise((done) => setTimeout(done, 1000));
  gc();
  return [longest, (performance.memory.usedJSHeapSize - heap) / 2 ** 20];
}"""


def found() -> str:
    """Return Chromium's program; nothing where there is none."""
    program = os.environ.get("POLLEX_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), "")
    return program if program and Path(program).exists() else ""


def missing() -> str:
    """Return what is missing to measure in a browser; nothing where nothing is."""
    try:
        import playwright.sync_api  # noqa: F401 - an extra that not everybody has
    except ImportError:
        return "no Playwright: pip install 'pollex[browser]'"
    return "" if found() else "no Chromium: sudo apt install chromium, or name one with POLLEX_CHROMIUM"


def opened(playwright: Any) -> Any:
    """Return a browser."""
    return playwright.chromium.launch(executable_path=found(), args=list(FLAGS))


def in_browser(url: str, run: str, n: int) -> list[Row]:
    """Measure a served list.

    Args:
        url: The server's, with the way in.
        run: Its run of `n` conversations.
    """
    from playwright.sync_api import sync_playwright

    base = url.partition("/enter")[0]
    with sync_playwright() as playwright:
        browser = opened(playwright)
        page = browser.new_page(viewport={"width": 1200, "height": 850})
        page.goto(url)
        painted = []
        for _ in range(VIEWS):
            page.goto(f"{base}/conversations?run={run}")
            page.wait_for_timeout(300)
            painted.append(page.evaluate(PAINTED))
        jumps = [page.evaluate(JUMPED, where) for where in ((1, n + 1), (0.5, n // 2 + 1), (0, 2)) * 3]
        longest, heap = page.evaluate(SCROLLING, min(SCROLLED, n))
        browser.close()
    return [
        (f"first paint of the list, most of {VIEWS}", max(painted[1:]), PAINT),
        ("last row, middle, first: most of 9", max(jumps), JUMP),
        (f"longest frame, {min(SCROLLED, n):,} rows scrolled", longest, FRAME),
        ("heap's growth meanwhile", heap, HEAP),
    ]
