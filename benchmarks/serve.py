"""How fast `pollex serve` answers on a store of many conversations, made for it, beside the bars it is held to.

    python benchmarks/serve.py --conversations 100000     # prints the table; exits with 1 where a bar is missed
    python benchmarks/serve.py --weight                   # bytes of the static files

Times are of requests in memory, after the first; the bars are those of two idle cores.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx2
import numpy as np

from pollex.store.store import Store
from pollex.store.tables import AnswerRow, ConversationRow, ScoreRow, SpanRow, TextRow, packed
from pollex.web.app import application
from pollex.web.frame import static_files
from pollex.web.guard import Door
from pollex.web.site import Site

RUBRICS, SPANS, ASKED, PORT = 20, 2, 20, 8765
BASE = f"http://127.0.0.1:{PORT}"
LIST, PAGE, RUN, SEARCH, PULSE, LAST, START = 100.0, 200.0, 400.0, 4000.0, 5.0, 300.0, 1200.0
"""Bars in milliseconds, for 95 of 100 requests."""
ELEMENTS, MEMORY = 2500.0, 120.0
UNITS = {"elements on the largest page": "", "memory then": "MB"}


def made(store: Store, n: int, rng: np.random.Generator) -> str:
    """Make a run that scored `n` conversations with 20 rubrics each."""
    run = store.begin("score", arguments={}, fingerprint={}, versions={}).id
    for i in range(n):
        id_, text, p = f"conversation {i}", f"{i:064x}", float(rng.random())
        words = f"Where is parcel {i}? It was sent to office {i % 97} on {i % 7} May."
        turns = packed([["user", words], ["assistant", "It is in Lima. " * 20], ["user", "Thanks."]])
        label = ("positive", "negative", "none")[i % 3]
        found = "positive" if p > 0.5 else "negative"
        begun = f"2026-01-01T{i // 3600 % 24:02}:{i // 60 % 60:02}:{i % 60:02}.000000+00:00"
        store.put(
            [
                TextRow(run, text, turns),
                ConversationRow(run, id_, text, label, None, None, "{}", "", words, 3),
                ScoreRow(run, id_, 20 * (p - 0.5), found, abs(p - 0.5) > 0.2, p),
                *(SpanRow(run, f"{i}-{k}", None, f"n{k}", "role", id_, (), (), begun, 20.0, "") for k in range(SPANS)),
                *(
                    AnswerRow(run, id_, text, f"rubric {k}", "h", "f", "j", (0.1, 0.2, 0.3, 0.2, 0.2), 2, "built-in")
                    for k in range(RUBRICS)
                ),
            ]
        )  # fmt: skip
        if i % 1000 == 999:
            store.flush()
    store.finish(run, "done")
    return run


def started(folder: Path) -> tuple[float, float]:
    """Start a server on a store; return milliseconds until its first answer, and its memory then in MB."""
    command = [sys.executable, "-m", "pollex", "serve", "--store", str(folder), "--port", "0", "--no-open", "--json"]
    begun = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:  # noqa: S603 - ours
        assert server.stdout is not None
        try:
            base = json.loads(server.stdout.readline())["url"].partition("/enter")[0]
            httpx2.get(f"{base}/api/health").raise_for_status()
            took = 1000 * (time.perf_counter() - begun)
            status = Path(f"/proc/{server.pid}/status").read_text("ascii")
        finally:
            server.terminate()
    return took, int(status.partition("VmRSS:")[2].split()[0]) / 1024


async def elements(client: httpx2.AsyncClient, paths: list[str]) -> int:
    """Return how many elements the largest of some pages has."""
    return max([len(re.findall(r"<[a-zA-Z]", (await client.get(path)).text)) for path in paths])


async def timed(client: httpx2.AsyncClient, paths: list[str], tag: str = "") -> list[float]:
    """Return how many milliseconds each request took."""
    took = []
    for path in paths:
        begun = time.perf_counter()
        answer = await client.get(path, headers={"If-None-Match": tag} if tag else {})
        took.append(1000 * (time.perf_counter() - begun))
        assert answer.status_code == (304 if tag else 200)
    return took


async def measured(store: Store, run: str, n: int) -> list[tuple[str, float, float]]:
    """Return what was measured: name, milliseconds, bar."""
    site = Site(store, {})
    app = application(site, Door.at(("127.0.0.1",), PORT, None, site.id))
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url=BASE, timeout=120) as client:
        (first,) = await timed(client, [f"/conversations?run={run}"])
        (run_page,) = await timed(client, [f"/runs/{run}"])
        places = np.linspace(0, n - 1, ASKED).astype(int).tolist()
        lists = [f"/conversations?run={run}&sort=netsat&predicted=up&at={at // 2}" for at in places]
        pages = [f"/conversation?run={run}&id=conversation+{at}" for at in places]
        search = f"/conversations?run={run}&q=office+13&words=all"
        await timed(client, [lists[0], pages[0]])
        largest = await elements(client, [lists[0], pages[0], f"/runs/{run}", "/", "/runs"])
        live = f"/runs/{run}/live"
        tag = (await client.get(live)).headers["etag"]
        return [
            ("first list of a run", first, 2000.0),
            ("list, filtered and sorted", p95(await timed(client, lists)), LIST),
            ("the last rows", max(await timed(client, [f"/conversations?run={run}&at={n - 1}"])), LAST),
            ("conversation", p95(await timed(client, pages)), PAGE),
            ("run, the first time", run_page, RUN),
            ("run with graph and strips", p95(await timed(client, [f"/runs/{run}"] * 5)), RUN),
            (
                "search in every turn",
                max(await timed(client, [search])),
                SEARCH,
            ),
            ("how far a run is, unchanged", p95(await timed(client, [live] * ASKED, tag)), PULSE),
            ("elements on the largest page", float(largest), ELEMENTS),
        ]


def p95(took: list[float]) -> float:
    """Return what 95 of 100 stay under."""
    return float(np.quantile(took, 0.95))


def weight() -> int:
    """Print the bytes of the static files; return 1 where they are too many."""
    kept = static_files()
    raw, packed_ = (sum(map(len, each)) for each in (kept.values(), [gzip.compress(body) for body in kept.values()]))
    print(f"static files: {raw:,} bytes, {packed_:,} compressed (bars 120,000 and 40,000)")
    return int(raw > 120_000 or packed_ > 40_000)


def main() -> int:
    """Print the table; return 1 where a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--conversations", type=int, default=100_000)
    parser.add_argument("--weight", action="store_true")
    given = parser.parse_args()
    if given.weight:
        return weight()
    with tempfile.TemporaryDirectory() as folder, Store.open(Path(folder) / "store") as store:
        run = made(store, given.conversations, np.random.default_rng(0))
        rows = asyncio.run(measured(store, run, given.conversations))
        took, memory = started(store.folder)
    rows += [("start to the first answer", took, START), ("memory then", memory, MEMORY)]
    print(f"{given.conversations:,} conversations, {RUBRICS * given.conversations:,} answers")
    for name, took, bar in rows:
        unit = UNITS.get(name, "ms")
        print(f"{name:<30}{took:>9.1f} {unit:<2}   bar {bar:>6.0f} {unit:<2}   {'' if took <= bar else 'missed'}")
    return int(any(took > bar for _, took, bar in rows))


if __name__ == "__main__":
    sys.exit(main())
