"""`pollex share` and `label next --for share`: how many of all conversations are good."""

from pathlib import Path

import pytest
from small_log import read_rows, small_log, write_log
from small_runs import Learnt, Pollex


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """160 conversations; 60 have a label at random, and 40 a voluntary one."""
    rows = small_log(80, seed=3)
    for place, row in enumerate(rows):
        row |= {"release": "1.0" if place < 110 else "2.0", "source": "ann"}
        # no text is one that a set has seen
        row["messages"][0]["content"] += f" My number is {place}."
        row |= (
            {"drawn": "random"}
            if place < 60
            else {"drawn": "voluntary"}
            if place < 100
            else {"thumbs": None}
        )
    return write_log(tmp_path / "logs.jsonl", rows)


def test_labels_at_random_and_voluntary_ones_stay_apart_and_a_group_with_few_says_what_it_needs(
    pollex: Pollex, logs: Path
) -> None:
    ended = pollex("share", logs, "--by", "release", "--json")
    found = ended.last
    total = ended.last["all"]
    assert total["labels"] == {"random": 60, "voluntary": 40}
    assert total["at_random"]["n"] == 60
    assert total["at_random"]["low"] < 0.5 < total["at_random"]["high"]
    assert total["at_random"]["gain"] > 1.1, "signals tell good from bad in this log"
    assert (total["voters"]["value"], total["voters"]["n"]) == (0.5, 40)
    widths = [one["high"] - one["low"] for one in total["bounds"]]
    assert widths == sorted(widths), "a larger factor allows more"
    assert 0 <= total["dependence"]["p"] <= 1
    first, second = found["groups"]
    assert (first["name"], first["at_random"]["n"]) == ("1.0", 60)
    assert (second["name"], second["at_random"], second["missing"]) == ("2.0", None, {"random": 20})
    assert "20 more labels at random are needed" in " ".join(ended.err.split())
    assert pollex("share", logs, "--by", "segment", "--page", "share.html").code == 0
    text = Path("share.html").read_text(encoding="utf-8")
    for part in ("By segment", "<svg", "of all, if good and bad ones vote up to 2"):
        assert part in text


def test_a_rubric_set_that_has_seen_the_labels_is_not_taken(
    pollex: Pollex, learnt: Learnt, store: Path, logs: Path
) -> None:
    new = pollex("share", logs, "--rubrics", learnt.rubrics, "--store", store, "--json").last
    assert "learned from other conversations" in " ".join(new["notes"])
    given = ("--rubrics", learnt.rubrics, "--store", store, "--drawn", "random", "--json")
    seen = pollex("share", learnt.log, *given).last
    assert "cross-fitted without it" in " ".join(seen["notes"])
    assert seen["all"]["labels"]["random"] == 48


def test_what_label_next_draws_can_be_filled_in_and_counts_as_random(
    pollex: Pollex, logs: Path
) -> None:
    drawn = Path("to-label.jsonl")
    ended = pollex(
        "label", "next", logs, "--for", "share", "--count", "50", "--out", drawn, "--json"
    )
    assert ended.code == 0, ended.err
    assert 0.1 < ended.last["half_width"][""] < 0.15
    rows = read_rows(drawn)
    assert len(rows) == 50
    assert all((row["drawn"], row["thumbs"]) == ("random", None) for row in rows)
    assert any(int(str(row["id"])[1:]) < 100 for row in rows), "those who voted are drawn, too"
    write_log(drawn, [row | {"thumbs": "up", "source": "ben"} for row in rows])
    found = pollex("share", logs, "--labels", drawn, "--json").last["all"]
    assert found["labels"] == {"random": 110, "voluntary": 40}


def test_one_loud_user_is_told_and_is_no_figure(pollex: Pollex) -> None:
    rows = small_log(30)
    loud = [row | {"user": "loud" if place < 40 else f"u{place}"} for place, row in enumerate(rows)]
    log = write_log(Path("loud.jsonl"), loud)
    notes = " ".join(pollex("share", log, "--group-field", "user", "--json").last["notes"])
    for said in (
        "one user (loud) gave 40 of 60 labels",
        "taken as given voluntarily",
        "do not say who gave them",
    ):
        assert said in notes
