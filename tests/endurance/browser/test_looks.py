"""Pages look as they did when somebody last looked at them.

Pictures depend on the browser and its fonts: they are compared where both are those that
`looks/made-with.txt` names.
After a change that is wanted: WRITE_LOOKS=1 pytest tests/endurance/browser/test_looks.py, and look
at every picture.
"""

import os
import shutil
import subprocess
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from visitors import Served, Visitor

LOOKS = Path(__file__).parent / "looks"
MADE_WITH = LOOKS / "made-with.txt"
WRITES = bool(os.environ.get("WRITE_LOOKS"))
SIZE = {"width": 1000, "height": 600}
MOST = 0.005
"""Share of pixels that may differ."""
SAME_EACH_TIME = """() => {
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node; (node = walker.nextNode()); )
    node.data = node.data.replace(/(learn|score|judge)-(\\d)-[0-9a-f]{4}/g, "$1-$2-0000")
      .replace(/\\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\d:\\d\\d/g, "2026-01-01 00:00:00")
      .replace(/\\d+(\\.\\d)?\\s(ms|s)\\b/g, "1 ms");
}"""
"""Ids of runs, and times, which are others each time, move what stands after them."""
PAGES = {
    "home": "/",
    "replay": "/replay?run=learn-1&id=conversation+1",
    "conversations": "/conversations?run=learn-1",
    "conversation": "/conversation?run=learn-1&id=conversation+1",
    "sets": "/sets",
    "compare-empty": "/compare",
    "label": "/label",
    "agreement": "/label/agreement",
    "compare": "/compare?a=learn-1&b=score-2",
    "calibration": "/calibration",
    "waiting": "/waiting",
    "talk": "/talk",
}


def made_with(browser: Any) -> str:
    """The browser, and the fonts that pages ask for."""
    asked = ("serif", "sans-serif", "monospace")
    matcher = shutil.which("fc-match")
    fonts = (
        [
            subprocess.run(
                [matcher, name], capture_output=True, text=True, check=True
            ).stdout.strip()
            for name in asked
        ]
        if matcher
        else []
    )
    return "\n".join([f"Chromium {browser.version}", *fonts]) + "\n"


@pytest.mark.scenario(24)
@pytest.mark.nightly
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_a_page_looks_as_it_did(
    browser: Any, served: Served, visit: Callable[..., Visitor], name: str, scheme: str
) -> None:
    if not WRITES and MADE_WITH.read_text(encoding="utf-8") != made_with(browser):
        pytest.skip(f"the kept pictures were made with another browser or other fonts: {MADE_WITH}")
    visitor = visit(served, viewport=SIZE, color_scheme=scheme, reduced_motion="reduce")
    visitor.go(PAGES[name])
    visitor.page.wait_for_load_state("networkidle")
    visitor.page.evaluate(SAME_EACH_TIME)
    picture = visitor.page.screenshot()
    kept = LOOKS / f"{name}-{scheme}.png"
    if WRITES:
        LOOKS.mkdir(exist_ok=True)
        Image.open(BytesIO(picture)).convert("P", palette=Image.Palette.ADAPTIVE, colors=64).save(
            kept, optimize=True
        )
        MADE_WITH.write_text(made_with(browser), encoding="utf-8")
        return
    before, now = (
        np.asarray(Image.open(source).convert("L"), dtype=int)
        for source in (kept, BytesIO(picture))
    )
    assert before.shape == now.shape
    differ = float((np.abs(before - now) > 24).mean())
    assert differ <= MOST, f"{differ:.2%} of the picture differ"
