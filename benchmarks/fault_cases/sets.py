"""What a rubric set says of itself: re-worded rubrics, a set beside itself, doubts, and who said what."""

import html
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2

from fault_cases import case
from fault_cases.commands import learned
from fault_cases.commands import run as ended
from pollex.rubrics.headlines import describe_lack_of_proven_rubrics, list_headlines
from pollex.rubrics.rubric import Polarity
from pollex.rubrics.rubric_set import RubricSet

SIDES: tuple[Polarity, ...] = ("dsat", "sat")
EVIL = {"Host": "evil.example:8765"}


def run(folder: Path, *words: object) -> str:
    """Return what a command prints."""
    return " ".join(ended(folder, *words).out.split())


@contextmanager
def served(folder: Path, *words: str) -> Iterator[str]:
    """Serve, and give the address with which one begins."""
    command = [sys.executable, "-m", "pollex", "serve", *words, "--port", "0", "--json"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as server:  # noqa: S603 - likewise
        assert server.stdout
        try:
            yield json.loads(server.stdout.readline())["url"]
        finally:
            server.terminate()


@case("1.2", "a re-worded rubric is judged as before, and anew only with figures of both")
def reworded(folder: Path) -> str:
    """Reword an event and judge another anew, then fit again."""
    before = learned(folder)
    kept, anew = [one for one in before.rubrics if one.source.startswith("event:")][:2]
    told = run(
        folder, "rubrics", "reword", "r.json", kept.id, "They cannot do a thing.", "--store", "s"
    )
    assert "still judged by an event" in told, told
    told = run(
        folder,
        "rubrics",
        "reword",
        "r.json",
        anew.id,
        "It is rainy.",
        "--judge-anew",
        "--store",
        "s",
    )
    assert told.count("AUC alone") == told.count("it holds in") == 2, told
    told = run(folder, "refit", "log.jsonl", "--rubrics", "r.json", "--store", "s")
    assert "Judged anew: “It is rainy.”" in told, told
    assert any("Judged anew" in page.read_text(encoding="utf-8") for page in folder.glob("*.html"))
    after = {one.id: one for one in RubricSet.load(folder / "r.json").rubrics}
    assert after[kept.id].worth == kept.worth, "the detector is another"
    assert after[anew.id].source == "person"
    return f"kept: held out as before; anew: {told.partition('Judged anew: ')[2].partition('. Before')[0]}"


@case("1.5", "a set beside itself differs in nothing, whichever run answered")
def beside_itself(folder: Path) -> str:
    """Compare the run that learned with one that scored the same log."""
    found = learned(folder)
    run(folder, "score", "log.jsonl", "--rubrics", "r.json", "--store", "s", "--out", "s.jsonl")
    told = json.loads(
        run(folder, "compare", found.run, "last", "--rubrics", "r.json", "--store", "s", "--json")
    )
    (one,) = told["comparisons"]
    # The run that learned has tone by labels of others, the run that scored by all of them.
    likely = one["probability"]
    assert one["netsat"]["value"] == 0, one["netsat"]
    assert likely["low"] <= 0 <= likely["high"], likely
    assert abs(likely["value"]) < 0.005, likely
    assert not [each for each in one["rubrics"] if each["moved"]]
    assert "that the set was learned from" in one["notes"][0]
    return f"NetSAT {one['netsat']['value']:+.2f}, sizes {one['sizes']}; {one['notes'][0][:60]} …"


@case(
    "1.6",
    "Home leads with what the report leads with, each with how it stands, or says that nothing leads",
)
def home(folder: Path) -> str:
    """Compare the words on Home with those of the set."""
    found = learned(folder)
    with served(folder, "--rubrics", "r.json", "--store", "s", "--no-token") as url:
        text = html.unescape(httpx2.get(url, follow_redirects=True).text)
    shown = [one.rubric for side in SIDES for one in list_headlines(found.rubrics, side)[:5]]
    assert Counter(re.findall("<strong>(proven|likely|hint)</strong>", text)) == Counter(
        one.stands for one in shown
    )
    assert bool(shown) != (describe_lack_of_proven_rubrics(found.rubrics, found.data) in text)
    return f"{len(shown)} of {len(found.rubrics)} rubrics lead"


@case("3.10", "without a token the scoring service answers this machine's own names only")
def other_host(folder: Path) -> str:
    """Ask the scoring service under a foreign name."""
    learned(folder)
    with served(folder, "--score", "r.json", "--store", "s", "--no-token") as url:
        own, other = (
            httpx2.get(f"{url}/metrics", headers=named).status_code for named in ({}, EVIL)
        )
    assert (own, other) == (200, 400)
    return f"{EVIL['Host']}: {other}"
