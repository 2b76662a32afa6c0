"""The recorded run of a large language model, replayed through the whole graph with the network refused."""

from __future__ import annotations

import asyncio
import gzip
import html
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from small_runs import Pollex
from web_site import client_of, made_app

from pollex.cli.demo import replayed
from pollex.rubrics.rubric_set import RubricSet
from pollex.services.recorded import MANIFEST, PACKED, REPLIES, Recording
from pollex.store.store import Store

RECORDED = Path(__file__).parents[3] / "examples" / "recorded"


def rows(path: Path) -> list[dict[str, Any]]:
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return [json.loads(line) for line in content.decode().splitlines()]


def test_the_replay_is_the_recorded_result(pollex: Pollex, tmp_path: Path) -> None:
    ended = pollex("demo", "--recorded", "--out", "with a model")
    assert ended.code == 0, ended.err
    found, kept = (RubricSet.load(folder / "rubrics.json") for folder in (tmp_path / "with a model", RECORDED))
    assert [one.text for one in found.rubrics] == [one.text for one in kept.rubrics]
    assert {one.answered_by for one in found.rubrics} == {"", "built-in"}
    assert found.held_out is not None
    assert kept.held_out is not None
    assert found.held_out.auc == kept.held_out.auc
    for mine, theirs in zip(rows(tmp_path / "with a model" / "scores.jsonl"), rows(RECORDED / PACKED), strict=True):
        assert (mine["id"], mine["decision"], mine["outcome"]) == (theirs["id"], theirs["decision"], theirs["outcome"])
        assert mine["netsat"] == pytest.approx(theirs["netsat"], abs=1e-6)
    assert (tmp_path / "with a model" / "built-in" / "rubrics.json").exists()
    beside = asyncio.run(pages_of(tmp_path / "with a model" / ".pollex"))
    assert "What the model adds, and what it costs" in beside
    assert f"{found.held_out.auc.value:.3f}" in beside
    assert "771,303, 159,135" in beside  # tokens read and written


async def pages_of(folder: Path) -> str:
    """Return the page that the first page's link on what a model adds leads to."""
    with Store.open(folder) as store:
        async with client_of(made_app(store)) as client:
            first = (await client.get("/")).text
            link = re.search(r'href="(/compare[^"]*)">What the model adds', first)
            assert link
            return (await client.get(html.unescape(link[1]))).text


@pytest.mark.nightly
def test_where_a_prompt_has_no_reply_the_recorded_result_is_shown_as_it_was_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "recorded"
    shutil.copytree(RECORDED, folder)
    lines = gzip.decompress((folder / REPLIES).read_bytes()).splitlines(keepends=True)
    (folder / REPLIES).write_bytes(gzip.compress(b"".join(lines[1:])))
    about = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    about["prompts"]["judge_batch"] = "0" * 12
    (folder / MANIFEST).write_text(json.dumps(about), encoding="utf-8")
    assert replayed(Recording.at(folder), tmp_path / "out", as_json=False) == 3
    assert "these prompts were changed since: judge_batch" in capsys.readouterr().err
    assert (tmp_path / "out" / "rubrics.json").read_bytes() == (RECORDED / "rubrics.json").read_bytes()


def test_the_recording_is_of_this_repositorys_prompts_and_small() -> None:
    assert Recording.bundled().changed_prompts() == []
    assert sum(path.stat().st_size for path in RECORDED.rglob("*")) < 5_000_000
