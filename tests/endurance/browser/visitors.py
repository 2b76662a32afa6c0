"""A served store, and a page of a browser that visits it."""

import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

RULES = ["wcag2a", "wcag2aa", "wcag21aa", "wcag22aa", "best-practice"]


@dataclass(frozen=True)
class Served:
    """A server and how to reach it."""

    url: str
    store: Path
    process: subprocess.Popen[str]

    @property
    def base(self) -> str:
        """Its address without the way in."""
        return self.url.partition("/enter")[0]


@dataclass
class Visitor:
    """A page of a browser that has the token; what the console says, or is asked of others, is a fault."""

    page: Any
    served: Served
    faults: list[str]

    def go(self, path: str) -> Any:
        """Open a page; the answer."""
        return self.page.goto(self.served.base + path)

    def wait_until_drawn(self) -> None:
        """Wait until scripts hear keys and the page was shown: before, `keys.js` sends nothing."""
        self.page.wait_for_load_state()
        self.page.evaluate(
            "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
        )

    def press(self, *keys: str) -> None:
        """Press keys, one after another, on a page that was drawn."""
        self.wait_until_drawn()
        for key in keys:
            self.page.keyboard.press(key)

    def hold(self, key: str, times: int) -> None:
        """Hold a key down until it came a number of times."""
        for _ in range(times):
            self.page.keyboard.down(key)
        self.page.keyboard.up(key)

    def findings(self) -> list[str]:
        """What axe finds on the page, once all of it has come."""
        import axe_playwright_python

        self.page.wait_for_load_state()
        self.page.evaluate(
            (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text("utf-8")
        )
        found = self.page.evaluate(
            "rules => axe.run(document, {runOnly: rules}).then(r => r.violations)", RULES
        )
        return [f"{one['id']}: {node['target']}" for one in found for node in one["nodes"]]
