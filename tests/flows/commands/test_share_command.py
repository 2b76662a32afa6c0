"""`pollex share` and `label next --for share`: how many of all conversations are good."""

import json
from pathlib import Path

import pytest
from small_log import small_log, write_log
from small_runs import Learnt, Pollex


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """160 conversations; 60 have a label at random, and 40 a voluntary one."""
    rows = small_log(80, seed=3)
    for place, row in enumerate(rows):
        row["release"] = "1.0" if place < 110 else "2.0"
        row["source"] = "ann"
        row["messages"][0]["content"] += f" My number is {place}."  # no text is one that a set has seen
        if place < 60:
            row["drawn"] = "random"
        elif place < 100:
            row["drawn"] = "voluntary"
        else:
            row["thumbs"] = None
    return write_log(tmp_path / "logs.jsonl", rows)


def test_labels_at_random_and_voluntary_ones_stay_apart(pollex: Pollex, logs: Path) -> None:
    found = pollex("share", logs, "--json").last
    total = found["all"]
    assert total["labels"] == {"random": 60, "voluntary": 40}
    assert total["at_random"]["n"] == 60
    assert total["at_random"]["low"] < 0.5 < total["at_random"]["high"]
    assert total["at_random"]["gain"] > 1.1, "signals tell good from bad in this log"
    assert (total["voters"]["value"], total["voters"]["n"]) == (0.5, 40)
    widths = [one["high"] - one["low"] for one in total["bounds"]]
    assert widths == sorted(widths), "a larger factor allows more"
    assert 0 <= total["dependence"]["p"] <= 1
    assert found["notes"] == []


def test_a_group_with_few_labels_has_no_estimate_and_says_what_it_needs(pollex: Pollex, logs: Path) -> None:
    ended = pollex("share", logs, "--by", "release", "--json")
    first, second = ended.last["groups"]
    assert (first["name"], first["at_random"]["n"]) == ("1.0", 60)
    assert (second["name"], second["at_random"], second["missing"]) == ("2.0", None, {"random": 20})
    assert "20 more labels at random are needed" in " ".join(ended.err.split())


def test_the_page_and_the_segments_are_there(pollex: Pollex, logs: Path, tmp_path: Path) -> None:
    page = tmp_path / "share.html"
    ended = pollex("share", logs, "--by", "segment", "--page", page)
    assert ended.code == 0, ended.err
    text = page.read_text(encoding="utf-8")
    assert "By segment" in text
    assert "<svg" in text
    assert "of all, if good and bad ones vote up to 2" in text


def test_a_rubric_set_that_has_seen_the_labels_is_not_taken(
    pollex: Pollex, learnt: Learnt, store: Path, logs: Path
) -> None:
    new = pollex("share", logs, "--rubrics", learnt.rubrics, "--store", store, "--json").last
    assert "learned from other conversations" in " ".join(new["notes"])
    seen = pollex(
        "share", learnt.log, "--rubrics", learnt.rubrics, "--store", store, "--drawn", "random", "--json"
    ).last
    assert "cross-fitted without it" in " ".join(seen["notes"])
    assert seen["all"]["labels"]["random"] == 48


def test_what_label_next_draws_can_be_filled_in_and_counts_as_random(
    pollex: Pollex, logs: Path, tmp_path: Path
) -> None:
    drawn = tmp_path / "to-label.jsonl"
    ended = pollex("label", "next", logs, "--for", "share", "--count", "50", "--out", drawn, "--json")
    assert ended.code == 0, ended.err
    assert 0.1 < ended.last["half_width"][""] < 0.15
    rows = [json.loads(line) for line in drawn.read_text().splitlines()]
    assert len(rows) == 50
    assert all((row["drawn"], row["thumbs"]) == ("random", None) for row in rows)
    assert any(int(str(row["id"])[1:]) < 100 for row in rows), "those who voted are drawn, too"
    write_log(drawn, [row | {"thumbs": "up", "source": "ben"} for row in rows])
    found = pollex("share", logs, "--labels", drawn, "--json").last["all"]
    assert found["labels"] == {"random": 110, "voluntary": 40}


def test_one_loud_user_is_told_and_is_no_figure(pollex: Pollex, tmp_path: Path) -> None:
    rows = small_log(30)
    loud = [row | {"user": "loud" if place < 40 else f"u{place}"} for place, row in enumerate(rows)]
    log = write_log(tmp_path / "loud.jsonl", loud)
    notes = " ".join(pollex("share", log, "--group-field", "user", "--json").last["notes"])
    assert "one user (loud) gave 40 of 60 labels" in notes
    assert "taken as given voluntarily" in notes
    assert "do not say who gave them" in notes
