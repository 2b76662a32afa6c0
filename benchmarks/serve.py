"""How fast `pollex serve` answers on a store of many conversations, made for it, beside the bars it is held to.

    python benchmarks/serve.py --conversations 100000     # prints the table; exits with 1 where a bar is missed
    python benchmarks/serve.py --weight                   # bytes that the server adds to the package, and packages

Times are of requests in memory, after the first; the bars are those of two idle cores. What Chromium shows is measured
where it is found, as README says.
"""

import argparse
import asyncio
import gzip
import json
import multiprocessing
import os
import re
import subprocess
import sys
import tempfile
import time
import tracemalloc
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import PackageNotFoundError, requires
from importlib.resources import files
from importlib.resources.abc import Traversable
from multiprocessing.synchronize import Event
from pathlib import Path
from threading import Thread

import httpx2
import numpy as np
import serve_chromium
from packaging.requirements import Requirement
from serve_chromium import Row

from pollex.store.store import Store
from pollex.store.tables import AnswerRow, ConversationRow, FactRow, ScoreRow, SpanRow, TextRow, pack
from pollex.web.app import application
from pollex.web.frame import static_files
from pollex.web.guard import Door
from pollex.web.listing import lens_for
from pollex.web.site import Site

RUBRICS, SPANS, ASKED, PORT = 20, 2, 20, 8765
BASE = f"http://127.0.0.1:{PORT}"
LIST, PAGE, RUN, SEARCH, PULSE, LAST, START = 100.0, 200.0, 400.0, 4000.0, 5.0, 300.0, 1200.0
"""Bars in milliseconds, for 95 of 100 requests."""
LABEL, SLOWER, LENS, LABELS, BESIDE, PAIRS, PROVED = 50.0, 3.0, 60.0, 200, 10_000, 7, 10_000
ELEMENTS, MEMORY = 2500.0, 120.0
WHEEL, SCRIPT = 400_000, 12_000
SERVER = ("starlette", "uvicorn")
PACE = "a run beside a server and a page is slower by"
UNITS = {
    "elements on the largest page": "",
    "memory then": "MB",
    "memory of a run's columns": "MB",
    "heap's growth meanwhile": "MB",
    PACE: "%",
}


def made(store: Store, n: int, rng: np.random.Generator, rubrics: int = RUBRICS) -> str:
    """Make a run that scored `n` conversations with some rubrics each."""
    run = store.begin("score", arguments={}, fingerprint={}, versions={}).id
    for i in range(n):
        id_, text, p = f"conversation {i}", f"{i:064x}", float(rng.random())
        words = f"Where is parcel {i}? It was sent to office {i % 97} on {i % 7} May."
        turns = pack([["user", words], ["assistant", "It is in Lima. " * 20], ["user", "Thanks."]])
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
                    for k in range(rubrics)
                ),
            ]
        )  # fmt: skip
        if i % 1000 == 999:
            store.flush()
    store.finish(run, "done")
    return run


def proved(store: Store, n: int, rng: np.random.Generator) -> str:
    """Make a run of `remedy` with `n` pairs of replies."""
    run = store.begin("remedy", arguments={}, fingerprint={}, versions={}).id
    kept = {"verdict": "", "edits": [], "candidates": [], "notes": [], "headroom": None, "ended": ""}
    kept |= {"target": {"text": "It can't book.", "polarity": "dsat"}, "assistant": "m", "judge": "j"}
    store.put([FactRow(run, "step", "remedy", pack(kept))])
    for i, (change, fell, read) in enumerate(zip(*rng.normal(0, 0.3, (2, n)), rng.integers(0, 2, n), strict=True)):
        about = {"context": f"{i}", "said": ["user: a table?"] * 3, "edit": "new", "guardrail": "short"}
        about |= {"old": "Sorry. " * 40, "new": "Booked. " * 40, "reader": int(read)}
        store.put([FactRow(run, "pair", f"{i}", pack({f"{i}": about | {"change": change, "fell": fell}}))])
    store.finish(run, "done")
    return run


@contextmanager
def serving(folder: Path) -> Iterator[tuple[str, int]]:
    """Start a server on a store; give its address with the way in, and its process."""
    command = [sys.executable, "-m", "pollex", "serve", "--store", str(folder), "--port", "0", "--no-open", "--json"]
    # An installed package is compiled; a folder is not, where this is set.
    compiled = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=compiled) as server:  # noqa: S603 - ours
        assert server.stdout is not None
        try:
            yield json.loads(server.stdout.readline())["url"], server.pid
        finally:
            server.terminate()


def started(folder: Path) -> tuple[float, float]:
    """Start a server on a store; return milliseconds until its first answer, and its memory then in MB."""
    begun = time.perf_counter()
    with serving(folder) as (url, process):
        httpx2.get(f"{url.partition('/enter')[0]}/api/health").raise_for_status()
        took = 1000 * (time.perf_counter() - begun)
        status = Path(f"/proc/{process}/status").read_text("ascii")
    return took, int(status.partition("VmRSS:")[2].split()[0]) / 1024


async def labels(client: httpx2.AsyncClient, run: str) -> list[float]:
    """Return how many milliseconds each label took until it was on the disk."""
    queue = (await client.post("/api/queues", json={"name": "a queue", "run": run, "kind": "random"})).json()["queue"]
    took = []
    for _ in range(LABELS):
        lease = (await client.post(f"/api/queues/{queue}/next", json={"who": "ann"})).json()["lease"]
        begun = time.perf_counter()
        answer = await client.post("/api/labels", json={"lease": lease, "who": "ann", "value": "up"})
        took.append(1000 * (time.perf_counter() - begun))
        assert answer.status_code == 200
    return took


def writing(folder: Path, begun: Event, over: Event) -> None:
    """Write runs until it is over."""
    with Store.open(folder) as store:
        while not over.is_set():
            begun.set()
            made(store, 500, np.random.default_rng(0))


@contextmanager
def run_that_writes(folder: Path) -> Iterator[None]:
    """Let another process write runs meanwhile."""
    processes = multiprocessing.get_context("spawn")
    begun, over = processes.Event(), processes.Event()
    writer = processes.Process(target=writing, args=(folder, begun, over))
    writer.start()
    begun.wait()
    yield
    over.set()
    writer.join()


def paced(folder: Path) -> None:
    """Write a run of some conversations, and print how many seconds it took."""
    with Store.open(folder) as store:
        begun = time.perf_counter()
        made(store, BESIDE, np.random.default_rng(0))
        print(time.perf_counter() - begun)


def pace(folder: Path) -> float:
    """Return how many seconds a run takes in a process of its own."""
    command = [sys.executable, __file__, "--pace", str(folder)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)  # noqa: S603 - ours


def slower(folder: Path) -> float:
    """Return by how many percent a run is slower beside a server that one page polls, as the median of pairs."""
    ratios = []
    for _ in range(PAIRS):
        alone = pace(folder)
        with serving(folder) as (url, _), one_page(url):
            ratios.append(pace(folder) / alone)
    return 100 * (float(np.median(ratios)) - 1)


@contextmanager
def one_page(url: str) -> Iterator[None]:
    """Ask as an open page of a run does, each second; a browser of its own would measure the browser."""
    over = False
    base, _, token = url.partition("/enter?token=")

    def asks() -> None:
        tag = ""
        with httpx2.Client(base_url=base, headers={"Authorization": f"Bearer {token}"}) as client:
            newest = ""
            while not over:
                newest = newest or next(
                    (one["id"] for one in client.get("/api/runs").json()["runs"] if one["status"] == "running"), ""
                )
                if newest:
                    tag = client.get(f"/runs/{newest}/live", headers={"If-None-Match": tag}).headers.get("etag", "")
                time.sleep(1)

    page = Thread(target=asks)
    page.start()
    yield
    over = True
    page.join()


def columns_memory(store: Store, run: str) -> float:
    """Return how many MB the columns of a run take."""
    tracemalloc.start()
    site = Site(store, {})
    kept = lens_for(site, site.run(run))
    took = tracemalloc.get_traced_memory()[0] / 2**20
    tracemalloc.stop()
    assert len(kept)
    return took


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


async def measured(store: Store, run: str, n: int) -> list[Row]:
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
        remedy = f"/remedies/{proved(store, PROVED, np.random.default_rng(0))}?only"
        pairs = [f"{remedy}={only}&at={at * 100}" for only in ("fell", "differ", "telling") for at in range(ASKED)]
        await timed(client, pairs[:1])
        largest = await elements(client, [lists[0], pages[0], f"/runs/{run}", "/", "/runs"])
        live = f"/runs/{run}/live"
        tag = (await client.get(live)).headers["etag"]
        pulses = p95(await timed(client, [live] * ASKED, tag))
        kept = p95(await labels(client, run))
        with run_that_writes(store.folder):
            beside = p95(await labels(client, run))
        return [
            ("first list of a run", first, 2000.0),
            ("list, filtered and sorted", p95(await timed(client, lists)), LIST),
            ("the last rows", max(await timed(client, [f"/conversations?run={run}&at={n - 1}"])), LAST),
            ("conversation", p95(await timed(client, pages)), PAGE),
            ("run, the first time", run_page, RUN),
            ("run with graph and strips", p95(await timed(client, [f"/runs/{run}"] * 5)), RUN),
            ("search in every turn", max(await timed(client, [search])), SEARCH),
            ("how far a run is, unchanged", pulses, PULSE),
            ("a label is kept", kept, LABEL),
            ("a label is kept while a run writes", beside, LABEL),
            (f"pairs of a remedy, of {PROVED:,}", p95(await timed(client, pairs)), LIST),
            ("elements on the largest page", float(largest), ELEMENTS),
        ]


def p95(took: list[float]) -> float:
    """Return what 95 of 100 stay under."""
    return float(np.quantile(took, 0.95))


def weight() -> int:
    """Print what the server weighs; return 1 where it is too much."""
    kept = static_files()
    raw, packed_ = (sum(map(len, each)) for each in (kept.values(), [gzip.compress(body) for body in kept.values()]))
    print(f"static files: {raw:,} bytes, {packed_:,} compressed (bars 120,000 and 40,000)")
    wheel = packed_size(files("pollex.web"))
    print(f"of the wheel: {wheel:,} bytes (bar {WHEEL:,})")
    script, page = max(scripts_of(kept))
    print(f"scripts of the page with most, {page}: {script:,} bytes compressed (bar {SCRIPT:,}); all are ours")
    new = sorted(needed_by(SERVER) - needed_by([one for one in ours() if one not in SERVER]))
    print(f"packages that nothing else needs: {', '.join(new)} (bar: {', '.join(SERVER)})")
    return int(raw > 120_000 or packed_ > 40_000 or wheel > WHEEL or script > SCRIPT or set(new) > set(SERVER))


def packed_size(place: Traversable) -> int:
    """Return how many bytes the files of a folder have, each compressed by itself as a wheel has them."""
    if place.is_dir():
        return sum(map(packed_size, place.iterdir())) if place.name != "__pycache__" else 0
    return len(zlib.compress(place.read_bytes()))


def scripts_of(kept: dict[str, bytes]) -> Iterator[tuple[int, str]]:
    """Give the compressed bytes of each page's scripts, with what they import."""
    for page in (files("pollex.web") / "templates").iterdir():
        asked = {"keys.js", *re.findall(r"static\('(\w+\.js)'\)", page.read_text("utf-8"))}
        imported = {name for one in asked for name in re.findall(r'from "\./(\w+\.js)"', kept[one].decode())}
        yield sum(len(gzip.compress(kept[name])) for name in asked | imported), page.name


def ours() -> list[str]:
    """List the packages that pollex asks for, without extras."""
    found = [Requirement(line) for line in requires("pollex") or []]
    return [one.name for one in found if one.marker is None or one.marker.evaluate({"extra": ""})]


def needed_by(names: list[str] | tuple[str, ...]) -> set[str]:
    """Return packages with all that they need."""
    found: set[str] = set()
    left = list(names)
    while left:
        if (name := left.pop().lower().replace("_", "-")) in found:
            continue
        found.add(name)
        with suppress(PackageNotFoundError):
            wanted = [Requirement(line) for line in requires(name) or []]
            left += [one.name for one in wanted if one.marker is None or one.marker.evaluate({"extra": ""})]
    return found


def main() -> int:
    """Print the table; return 1 where a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--conversations", type=int, default=100_000)
    parser.add_argument("--weight", action="store_true")
    parser.add_argument("--pace", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.weight:
        return weight()
    if given.pace:
        paced(given.pace)
        return 0
    with tempfile.TemporaryDirectory() as folder, Store.open(Path(folder) / "store") as store:
        run = made(store, given.conversations, np.random.default_rng(0))
        rows = asyncio.run(measured(store, run, given.conversations))
        rows.append(("memory of a run's columns", columns_memory(store, run), LENS))
        started(store.folder)  # compiles what was not
        took, memory = started(store.folder)
        rows += [("start to the first answer", took, START), ("memory then", memory, MEMORY)]
        rows.append((PACE, slower(store.folder), SLOWER))
        if not (missing := serve_chromium.missing()):
            with serving(store.folder) as (url, _):
                rows += serve_chromium.in_browser(url, run, given.conversations)
    print(f"{given.conversations:,} conversations, {RUBRICS * given.conversations:,} answers")
    for name, took, bar in rows:
        unit = UNITS.get(name, "ms")
        print(f"{name:<46}{took:>9.1f} {unit:<2}   bar {bar:>6.0f} {unit:<2}   {'' if took <= bar else 'missed'}")
    if missing:
        print(f"Not measured in a browser: {missing}")
    return int(any(took > bar for _, took, bar in rows))


if __name__ == "__main__":
    sys.exit(main())
