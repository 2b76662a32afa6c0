"""The recorded run of a large language model, replayed through the whole graph with the network refused."""

import asyncio
import gzip
import html
import json
import re
import shutil
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from small_runs import Pollex
from web_site import client_of, made_app

from pollex.cli.demo import replay_recording
from pollex.cli.hooks import find_demo_sequel
from pollex.rubrics.rubric_set import RubricSet
from pollex.runs.recorded import (
    MANIFEST_FILE_NAME,
    PACKED_SCORES_FILE_NAME,
    REPLIES_FILE_NAME,
    Recording,
)
from pollex.store.store import Store

RECORDED = Path(__file__).parents[3] / "examples" / "recorded"
sys.path.insert(0, str(RECORDED.parents[1] / "docs"))

from record import put, record_remedy  # noqa: E402 - a script


def rows(path: Path) -> list[dict[str, Any]]:
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return [json.loads(line) for line in content.decode().splitlines()]


def test_the_replay_is_the_recorded_result(pollex: Pollex, tmp_path: Path) -> None:
    ended = pollex("demo", "--recorded", "--remedy", "--out", "with a model")
    assert ended.code == 0, ended.err
    found, kept = (
        RubricSet.load(folder / "rubrics.json") for folder in (tmp_path / "with a model", RECORDED)
    )
    assert [one.text for one in found.rubrics] == [one.text for one in kept.rubrics]
    assert {one.answered_by for one in found.rubrics} == {"", "built-in"}
    assert found.held_out is not None
    assert kept.held_out is not None
    assert found.held_out.auc == kept.held_out.auc
    for mine, theirs in zip(
        rows(tmp_path / "with a model" / "scores.jsonl"),
        rows(RECORDED / PACKED_SCORES_FILE_NAME),
        strict=True,
    ):
        assert (mine["id"], mine["decision"], mine["outcome"]) == (
            theirs["id"],
            theirs["decision"],
            theirs["outcome"],
        )
        assert mine["netsat"] == pytest.approx(theirs["netsat"], abs=1e-6)
    assert (tmp_path / "with a model" / "built-in" / "rubrics.json").exists()
    remedied = json.loads((tmp_path / "with a model" / "remedy.json").read_text(encoding="utf-8"))
    if Recording.bundled().remedied:
        recorded = json.loads((RECORDED / "remedy.json").read_text(encoding="utf-8"))
        assert with_rounded_numbers(remedied) == with_rounded_numbers(recorded)
    else:
        assert "This assistant is planted" in ended.err + ended.out
    beside = asyncio.run(pages_of(tmp_path / "with a model" / ".pollex"))
    assert "What the model adds, and what it costs" in beside
    assert f"{found.held_out.auc.value:.3f}" in beside
    assert "1,850,582, 260,006" in beside  # tokens read and written


def with_rounded_numbers(value: Any) -> Any:
    """Return JSON whose floats have six digits: sums differ in the last ones between processors."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {key: with_rounded_numbers(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [with_rounded_numbers(entry) for entry in value]
    return value


async def pages_of(folder: Path) -> str:
    """Return the page that the first page's link on what a model adds leads to."""
    with Store.open(folder) as store:
        async with client_of(made_app(store)) as client:
            first = (await client.get("/")).text
            link = re.search(r'href="(/compare[^"]*)">What the model adds', first)
            assert link
            return (await client.get(html.unescape(link[1]))).text


@pytest.mark.nightly
@pytest.mark.nightly
def test_what_a_plan_calls_likely_is_near_to_what_the_recorded_run_used(
    pollex: Pollex, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    examples = RECORDED.parent
    log = ("learn", examples / "bikes.jsonl", "--domain", examples / "bikes.toml")
    model = ("--model", "recorded-llm", "--base-url", "http://127.0.0.1:9/v1")
    settings = ("--group-field", "user_id", "--test-fraction", "0", "--store", "store")
    plan = pollex(*log, *model, *settings, "--dry-run", "--json").last

    # replies to what learning asked: scoring asked about conversations without a label, too
    replies = rows(RECORDED / REPLIES_FILE_NAME)
    labelled = {reply["item"] for reply in replies if reply["stage"] == "extract"}
    used = dict.fromkeys(("sent", "prompt_tokens", "completion_tokens"), 0)
    for reply in replies:
        if reply["stage"] == "judge" and reply["item"] not in labelled:
            continue
        usage = json.loads(reply["body"])["usage"]
        used["sent"] += 1
        used["prompt_tokens"] += usage["prompt_tokens"]
        used["completion_tokens"] += usage["completion_tokens"]

    for unit, count in used.items():
        assert 1 / 1.5 <= plan["likely"]["all"][unit] / count <= 1.5, unit


@pytest.mark.nightly
def test_where_a_prompt_has_no_reply_the_recorded_result_is_shown_as_it_was_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "recorded"
    shutil.copytree(RECORDED, folder)
    lines = gzip.decompress((folder / REPLIES_FILE_NAME).read_bytes()).splitlines(keepends=True)
    (folder / REPLIES_FILE_NAME).write_bytes(gzip.compress(b"".join(lines[1:])))
    about = json.loads((folder / MANIFEST_FILE_NAME).read_text(encoding="utf-8"))
    about["prompts"]["judge_batch"] = "0" * 12
    (folder / MANIFEST_FILE_NAME).write_text(json.dumps(about), encoding="utf-8")
    assert replay_recording(Recording.at(folder), tmp_path / "out", as_json=False) == 3
    assert "these prompts were changed since: judge_batch" in capsys.readouterr().err
    assert (tmp_path / "out" / "rubrics.json").read_bytes() == (
        RECORDED / "rubrics.json"
    ).read_bytes()


class Reader(threading.Thread):
    """Writes the replies that a recording waits for, by rules."""

    def __init__(self, folder: Path) -> None:
        super().__init__(daemon=True)
        self.folder, self.ended = folder, threading.Event()

    def run(self) -> None:
        while not self.ended.wait(0.2):
            for path in (self.folder / "pending").glob("[!.]*.json"):
                reply = self.folder / "replies" / f"{path.stem}.txt"
                if not reply.exists():
                    put(reply, self.reply(json.loads(path.read_text(encoding="utf-8"))))

    def reply(self, asked: dict[str, Any]) -> object:
        names = asked["schema"].get("properties", {})
        if not names:
            # the sentence of the plain opposite, whatever the target's words
            mended = "Never reply so that" in asked["messages"][0]["content"]
            return (
                "I couldn't book it. Would another time do?"
                if mended
                else "Sorry, I couldn't book that for you."
            )
        if "1" in names:
            return {number: self.judged(asked, number) for number in names}
        return {
            "better": "second" if "first" in str(asked["schema"]) else [],
            "facts": [],
            "hunks": [],
        }

    def judged(self, asked: dict[str, Any], number: str) -> dict[str, Any]:
        """Find that what asks for another time isn't the failure; checks are answered by their truth."""
        told = "".join(one["content"] for one in asked["messages"][1:-1])
        last = asked["messages"][-1]["content"]
        statement = next(line for line in last.splitlines() if line.startswith(f"{number}. "))
        check = re.search(r'uses the word \\"(.*)\\"', statement)
        offers = any(
            words in told
            for words in ("nother time", "different", "How about", "instead", "free slot")
        )
        holds = (
            (check[1] in told)
            if check
            else "USER turn" in statement or offers == ("not so" in statement)
        )
        return {
            "why": "so",
            "turns": [],
            "answer": "Strongly Agree" if holds else "Strongly Disagree",
        }


@pytest.mark.nightly
def test_a_remedy_that_was_recorded_is_replayed_and_no_reply_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    here = tmp_path / "recorded"
    folder = tmp_path / "asked"
    shutil.copytree(RECORDED, here, ignore=shutil.ignore_patterns("remedy.*"))
    monkeypatch.chdir(tmp_path)
    reader = Reader(folder)
    reader.start()
    record_remedy(folder, here)
    reader.ended.set()
    assert sum(1 for _ in (folder / "replies").iterdir()) > 200
    kept = json.loads((here / "remedy.json").read_text(encoding="utf-8"))
    assert kept["edits"]
    capsys.readouterr()
    sequel = find_demo_sequel("remedy")
    code = replay_recording(Recording.at(here), tmp_path / "out", as_json=False, sequel=sequel)
    assert code in (0, 4)
    assert json.loads((tmp_path / "out" / "remedy.json").read_text(encoding="utf-8")) == kept


def test_the_recording_is_of_this_repositorys_prompts_and_small() -> None:
    assert Recording.bundled().changed_prompts() == []
    assert sum(path.stat().st_size for path in RECORDED.rglob("*")) < 5_000_000
