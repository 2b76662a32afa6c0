"""`pollex remedy`: what to change where, and cases for other tools, without a model."""

import json
from pathlib import Path

import pytest
from remedy_log import REACTION, TARGET, read_table_log, table_log, table_rubrics
from small_log import write_log
from small_runs import Pollex

PROMPT = "You are a helper.\nAlways say which date you need.\nIf you couldn't do something, say so.\n"


@pytest.fixture
def given(tmp_path: Path) -> tuple[object, ...]:
    """The log, and the options that name its rubrics and its users."""
    table_rubrics(read_table_log(tmp_path / "log.jsonl")).save(tmp_path / "rubrics.json")
    return tmp_path / "log.jsonl", "--rubrics", tmp_path / "rubrics.json", "--group-field", "user"


@pytest.fixture
def prompt(tmp_path: Path) -> Path:
    (tmp_path / "system.md").write_text(PROMPT)
    return tmp_path / "system.md"


def test_a_target_that_no_reply_shows_is_refused_with_those_that_can_be(
    pollex: Pollex, given: tuple[object, ...]
) -> None:
    whole = ("remedy", "brief", *given, "--json")
    assert pollex(*whole).last["untestable"].keys() == {REACTION}
    ended = pollex(*whole, "--target", REACTION[:6])
    assert ended.code == 2
    assert "can't be a target" in ended.err
    assert f"one of: {TARGET}" in ended.err


def test_a_prompt_whose_protected_part_has_no_end_is_refused_by_name(
    pollex: Pollex, given: tuple[object, ...], prompt: Path
) -> None:
    prompt.write_text("<!-- keep -->\nNever promise a refund.\n")
    ended = pollex("remedy", "brief", *given, "--prompt", prompt)
    assert ended.code == 1
    assert "system.md" in ended.err
    assert "has no second one" in ended.err


def test_the_brief_says_that_nothing_is_proposed_and_shows_failing_exchanges(
    pollex: Pollex, given: tuple[object, ...], prompt: Path, tmp_path: Path
) -> None:
    whole = ("remedy", "brief", *given, "--prompt", prompt)
    ended = pollex(*whole, "--json")
    assert ended.code == 0, ended.err
    assert ended.last["proposed"] == 0
    said = (tmp_path / "brief.md").read_text()
    assert "pollex has proposed nothing: no model was named." in said
    for target in ended.last["targets"]:
        assert f"`{target['target']}`" in said
        assert target["low"] <= target["share"] <= target["high"]
    assert said.count("    user: ") >= len(ended.last["targets"])


def test_what_a_user_wrote_stays_in_its_block_of_the_brief(
    pollex: Pollex, given: tuple[object, ...], tmp_path: Path
) -> None:
    rows = table_log()
    for row in rows:
        row["messages"][0]["content"] += "\n\n# Heading\n\n<script>alert(1)</script>\x1b[2J"
    log = write_log(tmp_path / "hostile.jsonl", rows)
    ended = pollex("remedy", "brief", log, *given[1:])
    assert ended.code == 0, ended.err
    said = (tmp_path / "brief.md").read_text()
    assert "<script>" in said  # shown, but inside an indented block, and in one line
    assert all(line.startswith("    ") for line in said.splitlines() if "<script>" in line)
    assert "\n# Heading" not in said
    assert "\x1b" not in said


def test_cases_of_the_part_that_proves_are_left_out_unless_asked_for(
    pollex: Pollex, given: tuple[object, ...], tmp_path: Path
) -> None:
    whole = ("remedy", "cases", *given, "--to", "jsonl", "--json")
    some, every = pollex(*whole, "--out", tmp_path / "a"), pollex(*whole, "--out", tmp_path / "b", "--all")
    assert some.code == every.code == 0, some.err + every.err
    assert some.last["cases"] + some.last["left_out_for_a_proof"] == every.last["cases"]
    rows = [json.loads(line) for line in (tmp_path / "a" / "cases.jsonl").read_text().splitlines()]
    assert rows
    assert {row["split"] for row in rows} <= {"propose", "select"}
    logged = {row["id"]: row["messages"] for row in table_log()}
    for row in rows:
        assert row["messages"] == logged[row["conversation"]][: row["turn"]]
        assert all(check["quote"] == logged[row["conversation"]][row["turn"]]["content"] for check in row["checks"])


def test_a_prompt_that_does_not_make_the_logged_system_turn_leaves_the_conversation_out_and_says_how_many(
    pollex: Pollex, given: tuple[object, ...], tmp_path: Path, prompt: Path
) -> None:
    rows = table_log()
    for n, row in enumerate(rows):
        row["messages"].insert(0, {"role": "system", "content": f"You help {row['id']}." if n % 4 else "Another."})
    log = write_log(tmp_path / "log.jsonl", rows)
    prompt.write_text("You help {name}.")
    whole = ("remedy", "cases", log, *given[1:], "--to", "jsonl", "--all")
    ended = pollex(*whole, "--prompt", prompt, "--json")
    assert ended.code == 0, ended.err
    assert ended.last["left_out_by_prompt"] > 0
    cases = [json.loads(line) for line in (tmp_path / "cases" / "cases.jsonl").read_text().splitlines()]
    assert cases
    for case in cases:
        assert case["messages"][0] == {"role": "system", "content": f"You help {case['conversation']}."}
