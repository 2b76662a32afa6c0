"""`pollex remedy`: what to change where, and cases for other tools, without a model."""

import re
from pathlib import Path

import pytest
from remedy_log import REACTION, TARGET, WELL, read_table_log, table_log, table_rubrics
from small_log import read_rows, write_log
from small_runs import Pollex

PROMPT = (
    "You are a helper.\nAlways say which date you need.\nIf you couldn't do something, say so.\n"
)


@pytest.fixture
def given(tmp_path: Path) -> tuple[object, ...]:
    """The log, and the options that name its rubrics and its users."""
    table_rubrics(read_table_log(tmp_path / "log.jsonl")).save(tmp_path / "rubrics.json")
    return tmp_path / "log.jsonl", "--rubrics", tmp_path / "rubrics.json", "--group-field", "user"


@pytest.fixture
def prompt(tmp_path: Path) -> Path:
    (tmp_path / "system.md").write_text(PROMPT)
    return tmp_path / "system.md"


def test_a_target_that_no_reply_shows_and_a_protected_part_without_end_are_refused(
    pollex: Pollex, given: tuple[object, ...], prompt: Path
) -> None:
    ended = pollex("remedy", "brief", *given, "--target", REACTION[:6])
    assert ended.code == 2
    assert "can't be a target" in ended.err
    assert f"one of: {TARGET}" in ended.err
    prompt.write_text("<!-- keep -->\nNever promise a refund.\n")
    ended = pollex("remedy", "brief", *given, "--prompt", prompt)
    assert (ended.code, "system.md" in ended.err, "has no second one" in ended.err) == (
        1,
        True,
        True,
    )


def test_the_brief_quotes_failing_exchanges_without_their_markup_and_says_that_nothing_is_proposed(
    pollex: Pollex, given: tuple[object, ...], prompt: Path
) -> None:
    rows = table_log()
    for row in rows:
        row["messages"][0]["content"] += "\n\n# Heading\n\n<script>alert(1)</script>\x1b[2J"
    log = write_log(Path("hostile.jsonl"), rows)
    ended = pollex("remedy", "brief", log, *given[1:], "--prompt", prompt, "--json")
    assert ended.code == 0, ended.err
    assert ended.last["proposed"] == 0
    assert ended.last["untestable"].keys() == {REACTION}
    said = Path("brief.md").read_text()
    assert "pollex has proposed nothing: no model was named." in said
    for target in ended.last["targets"]:
        assert f"`{target['target']}`" in said
        assert target["low"] <= target["share"] <= target["high"]
    assert said.count("> user: ") >= len(ended.last["targets"])
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in said
    assert not re.search(r"<|(?<!\\)# Heading", said)
    assert "\x1b" not in said


def test_cases_of_the_part_that_proves_are_left_out_unless_asked_for(
    pollex: Pollex, given: tuple[object, ...]
) -> None:
    whole = ("remedy", "cases", *given, "--to", "jsonl", "--json")
    some = pollex(*whole, "--out", "a")
    every = pollex(*whole, "--out", "b", "--all")
    assert some.code == every.code == 0, some.err + every.err
    assert some.last["cases"] + some.last["left_out_for_a_proof"] == every.last["cases"]
    rows = read_rows(Path("a/cases.jsonl"))
    assert rows
    assert {row["split"] for row in rows} <= {"propose", "select"}
    logged = {row["id"]: row["messages"] for row in table_log()}
    for row in rows:
        assert row["messages"] == logged[row["conversation"]][: row["turn"]]
        assert all(
            check["quote"] == logged[row["conversation"]][row["turn"]]["content"]
            for check in row["checks"]
        )


def test_a_prompt_that_does_not_make_the_logged_system_turn_leaves_the_conversation_out_and_says_how_many(
    pollex: Pollex, given: tuple[object, ...], prompt: Path
) -> None:
    rows = table_log()
    for n, row in enumerate(rows):
        row["messages"].insert(
            0, {"role": "system", "content": f"You help {row['id']}." if n % 4 else "Another."}
        )
    log = write_log(Path("log.jsonl"), rows)
    prompt.write_text("You help {name}.")
    whole = ("remedy", "cases", log, *given[1:], "--to", "jsonl", "--all")
    ended = pollex(*whole, "--prompt", prompt, "--json")
    assert ended.code == 0, ended.err
    assert ended.last["left_out_by_prompt"] > 0
    cases = read_rows(Path("cases/cases.jsonl"))
    assert cases
    for case in cases:
        assert case["messages"][0] == {
            "role": "system",
            "content": f"You help {case['conversation']}.",
        }


def test_a_brief_names_no_sentence_for_figures_and_says_how_many_thumbs_down_it_does_not_reach(
    pollex: Pollex, given: tuple[object, ...], prompt: Path
) -> None:
    ended = pollex("remedy", "brief", *given, "--prompt", prompt, "--json")
    target = next(one for one in ended.last["targets"] if one["target"] == TARGET)
    assert "offer the nearest thing" in target["sentence"]
    assert (ended.last["thumbs_down"], ended.last["thumbs_down_without"]) == (40, 0)
    ended = pollex("remedy", "brief", *given, "--target", WELL, "--json")
    (well,) = ended.last["targets"]
    assert (well["sentence"], well["kind"]) == ("", "figures")
    assert "so that this is true" not in Path("brief.md").read_text()


def test_a_plan_needs_no_change_and_says_which_value_of_the_prompt_the_log_lacks(
    pollex: Pollex, given: tuple[object, ...], prompt: Path
) -> None:
    asked = (*given, "--prompt", prompt, "--target", TARGET, "--assistant", "asked")
    ended = pollex("remedy", "plan", *asked)
    assert ended.code == 0, ended.err
    assert "80 of 100 proofs" in ended.out
    prompt.write_text(f"{PROMPT}Free times: {{{{calendar}}}}\n")
    ended = pollex("remedy", "plan", *asked)
    assert ended.code == 1
    assert "the log has no value for {{calendar}}" in " ".join(ended.err.split())
