"""Every method of the four papers has a door, and every door opens: on small data, and a loopback endpoint."""

import json
import shlex
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from protocol_server import ProtocolServer
from small_log import small_log, write_log
from small_runs import run_here

ROOT = Path(__file__).parents[3]
PAPERS: dict[str, list[dict[str, Any]]] = tomllib.loads(
    (ROOT / "tests/house/papers.toml").read_text("utf-8")
)
TOPICS = """
[[topics]]
id = "lamp"
text = "You want to know how long the warranty of a lamp is."
documents = ["lamps.md"]
[[personas]]
id = "hurried"
text = "Short of time."
"""
QUICKLY = {
    "calibrate fit answers.parquet judgments.csv --main Q0 --out calibrator": ["--model", "ordinal"],
    "calibrate report calibrator answers.parquet judgments.csv --out calibration.html": [
        "--quick", "--texts", "log.jsonl",
    ],
}  # fmt: skip
"""What makes a door cheaper."""

QUESTION = {"question_id": 1, "question": "Why?", "reference": "Because.", "category": "logical"}


@pytest.mark.nightly
@pytest.mark.timeout(300)
def test_every_door_of_the_papers_opens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_files()
    with ProtocolServer(script=[{"do": "attentive"}]) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        for doors in PAPERS.values():
            for door in doors:
                assert door["opens"], door
                if "tested" in door:
                    assert (ROOT / door["tested"]).is_file(), door
                    continue
                asks = "fake-model" in door["door"] or "paper.json" in door["door"]
                more = ["--base-url", server.url] if asks else QUICKLY.get(door["door"], [])
                ended = run_here(*shlex.split(door["door"]), *more)
                assert ended.code in (0, 3), (door["door"], ended.err)
                told = ended.out + ended.err
                missing = [
                    words for words in door["shows"] if words not in told + written(door["door"])
                ]
                assert missing == [], (door["door"], told)
    told = Counter(
        json.loads(line)["question"] for line in Path("predictions.jsonl").read_text().splitlines()
    )
    assert told["Q0"] == told["Q1"] == 24, "what a model answered is predicted for every question"
    page = Path("calibration.html").read_text("utf-8")
    assert page.count("The lowest:") == 2
    assert '<details class="conversation">' in page, "the lowest texts open"


def written(door: str) -> str:
    """What the command's own outputs hold."""
    names = [
        word for word in shlex.split(door) if Path(word).suffix in {".jsonl", ".html", ".json"}
    ]
    return "".join(Path(name).read_text("utf-8") for name in names if Path(name).is_file())


def write_files() -> None:
    """The small log with thumbs, people's answers, a topic with a document, and a question with its reference."""
    rows = small_log(12)
    write_log(Path("log.jsonl"), rows)
    people = [
        f"{row['id']},{question},{who},{1 + (place + len(who)) % 4}"
        for place, row in enumerate(rows)
        for who in ("ann", "bo")
        for question in ("Q0", "Q1")
    ]
    Path("judgments.csv").write_text("\n".join(["text_id,question,judge,answer", *people]) + "\n")
    Path("topics.toml").write_text(TOPICS)
    Path("help").mkdir()
    Path("help/lamps.md").write_text("A lamp has a warranty of two years.")
    Path("questions.jsonl").write_text(json.dumps(QUESTION) + "\n")
    Path("people.csv").write_text("id,rating\n1,7\n")
    Path("raters.md").write_text("Answer no where the user had to ask twice.\n")
