"""What can't come to a result is refused in words before anything is paid."""

import json
from pathlib import Path
from typing import Any

import pytest

from pollex.errors import BadInput, WrongUse
from pollex.rooms.remedy.agents.assistant import (
    REPLIES_FILE_NAME,
    AssistantReply,
    FileAssistant,
    NoReply,
    convert_reply,
)
from pollex.rooms.remedy.services.assistants import parse_assistant
from pollex.rooms.remedy.services.desk import iterate_proofs_beside
from pollex.rooms.remedy.services.prompt_text import PromptText, apply_diff
from pollex.rooms.remedy.services.run import require_distinct_names, require_writable_places
from pollex.rooms.remedy.services.sample import RemedyOptions
from pollex.rooms.remedy.usecases.remedy import ProveRemedy
from pollex.runs.options import ModelOptions
from pollex.store.tables import dump_json, load_json
from pollex.text import replace_nan_by_none

PROMPT = PromptText("You book tables.\nBe short.\n")
MAIL = """From 1f2e Mon Sep 17 00:00:00 2001
From: Ann <ann@example.org>
Subject: [PATCH] Offer another time

---
 system.md | 1 +
 1 file changed, 1 insertion(+)

diff --git a/system.md b/system.md
index 1..2 100644
--- a/system.md
+++ b/system.md
@@ -1,2 +1,3 @@
 You book tables.
 Be short.
+Offer another time.
-- \n2.39.2
"""


def test_a_mail_of_format_patch_is_applied_without_its_signature() -> None:
    assert (
        apply_diff(PROMPT, MAIL, "my.patch") == "You book tables.\nBe short.\nOffer another time.\n"
    )


def test_lines_end_at_line_feeds_alone() -> None:
    prompt = PromptText("You book\u2028tables.\x85\r\nBe short.\n")
    diff = "@@ -1,2 +1,3 @@\n You book\u2028tables.\x85\n Be short.\n+Say\u2028more.\n"
    assert (
        apply_diff(prompt, diff, "my.diff")
        == "You book\u2028tables.\x85\nBe short.\nSay\u2028more.\n"
    )


@pytest.mark.parametrize(
    ("diff", "told"),
    [
        (f"@@ -{'9' * 5000},2 +1,3 @@\n Be short.\n", "no hunk begins like this"),
        ("@@ -1 +1,2 @@\n You book tables.\n+New.\nforeign\n", "begins with a blank"),
        (
            MAIL.replace(
                "-- \n", "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n-- \n"
            ),
            "changes 2 files",
        ),
        ("no diff at all", "no hunk"),
    ],
)
def test_what_is_no_diff_of_the_prompt_is_said_with_its_line(diff: str, told: str) -> None:
    with pytest.raises(BadInput, match=told) as refused:
        apply_diff(PROMPT, diff, "my.diff")
    assert len(str(refused.value)) < 400


def test_an_output_whose_companions_have_no_place_is_refused(tmp_path: Path) -> None:
    require_writable_places(tmp_path / "remedy.json", people=True)
    (tmp_path / "remedy-edits").write_text("mine")
    with pytest.raises(WrongUse, match="it is a file"):
        require_writable_places(tmp_path / "remedy.json", people=True)
    (tmp_path / "other.html").mkdir()
    with pytest.raises(WrongUse, match="it is a folder"):
        require_writable_places(tmp_path / "other.json", people=True)


@pytest.mark.parametrize("prompts", [("a.md", "b.md"), ("x=a.md", "x=b.md")])
def test_several_prompts_need_names(prompts: tuple[str, ...]) -> None:
    with pytest.raises(WrongUse, match="name of its own"):
        require_distinct_names(RemedyOptions(prompt=prompts, target="t"))
    require_distinct_names(RemedyOptions(prompt=("x=a.md", "y=b.md"), target="t"))
    require_distinct_names(RemedyOptions(prompt="a.md", target="t"))


NUMBERS = [
    ("margin", float("inf")),
    ("margin", float("nan")),
    ("margin", -0.5),
    ("margin", 1.0),
    ("replies", 0),
    ("back", 10**9),
    ("people", -1),
]


@pytest.mark.parametrize(("name", "value"), NUMBERS)
def test_numbers_beyond_what_an_option_takes_are_refused(name: str, value: float) -> None:
    with pytest.raises(WrongUse, match=f"{name} can't be"):
        ProveRemedy("log.jsonl", "r.json", prompt="a.md", target="t", **{name: value})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "line", ["temperature = nan", "temperature = -1.0", "price_in = inf", "max_cost = nan"]
)
def test_a_profile_with_a_number_that_is_none_is_refused(line: str, tmp_path: Path) -> None:
    (tmp_path / "profiles.toml").write_text(f'[assistant]\nmodel = "m"\n{line}\n')
    with pytest.raises(BadInput, match=f"assistant.{line.split(maxsplit=1)[0]}"):
        parse_assistant(None, tmp_path / "profiles.toml", ModelOptions())


def test_a_file_that_nests_without_end_beside_the_result_is_no_proof(tmp_path: Path) -> None:
    (tmp_path / "others.json").write_text("[" * 100_000)
    assert list(iterate_proofs_beside(tmp_path / "remedy.json")) == []


@pytest.mark.parametrize(
    "name", ["r-edits", "r-people", "r.html", "r-pairs.parquet", "r-edits/1.md"]
)
def test_a_link_beside_the_result_is_refused_before_anything_is_paid(
    name: str, tmp_path: Path
) -> None:
    (tmp_path / "theirs").mkdir()
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).symlink_to(tmp_path / "theirs")
    with pytest.raises(WrongUse, match="it is a link, and is not followed"):
        require_writable_places(tmp_path / "r.json", people=True)


def test_a_line_of_people_that_is_no_choice_is_refused_before_anything_is_paid(
    tmp_path: Path,
) -> None:
    (tmp_path / "r-people").mkdir()
    (tmp_path / "r-people" / "choices.jsonl").write_text('{"key": "a", "choice": "5"}\n')
    with pytest.raises(BadInput, match="'5' is no choice"):
        require_writable_places(tmp_path / "r.json", people=True)
    require_writable_places(tmp_path / "r.json", people=False)


def test_links_where_people_are_to_find_pairs_are_refused_without_an_output_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own").mkdir()
    Path("people").symlink_to("own")
    with pytest.raises(WrongUse, match="people: it is a link"):
        require_writable_places(None, people=True)
    require_writable_places(None, people=False)


@pytest.mark.parametrize(
    "given", ["./shop.py:answer", "shop.py", "a b:answer", ":answer", "shop:", "../x:y", ".x:y"]
)
def test_a_path_for_a_function_is_said_with_what_to_give(given: str, tmp_path: Path) -> None:
    with pytest.raises(WrongUse, match=r"is no MODULE:FUNCTION|is a file"):
        parse_assistant(given, None, ModelOptions())
    (tmp_path / "asked").write_text("")
    with pytest.raises(WrongUse, match="is a file"):
        parse_assistant(tmp_path / "asked", None, ModelOptions())


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('{"key": "b", "reply": "naïve"}'.encode("latin-1"), "isn't UTF-8"),
        (b'{"key": "b", "reply": ' + b"[" * 10_000, "RecursionError|no object"),
        (b"\xff\xfe", "isn't UTF-8"),
    ],
)
def test_a_line_of_replies_that_can_not_be_read_is_said_by_its_number(
    line: bytes, told: str, tmp_path: Path
) -> None:
    (tmp_path / REPLIES_FILE_NAME).write_bytes(
        '{"key": "a", "reply": "x\u2028y\x85z"}\n'.encode() + line + b"\n"
    )
    with pytest.raises(BadInput, match=told) as refused:
        FileAssistant.of(tmp_path)
    assert "replies.jsonl:2" in str(refused.value)
    (tmp_path / REPLIES_FILE_NAME).write_text(
        '\ufeff{"key": "a", "reply": "x\u2028y\x85z"}\r\n', encoding="utf-8"
    )
    assert FileAssistant.of(tmp_path).replies == {"a": "x\u2028y\x85z"}


@pytest.mark.parametrize("found", [None, 3, "", "  ", AssistantReply(""), AssistantReply(None)])  # type: ignore[arg-type]
def test_what_is_no_text_is_no_reply(found: Any) -> None:
    assert isinstance(convert_reply(found), NoReply)


def test_a_figure_that_is_no_number_is_written_as_none() -> None:
    value = {"a": float("nan"), "b": [float("inf"), 1.5, (float("-inf"),)], "c": "nan"}
    assert load_json(dump_json(value)) == {"a": None, "b": [None, 1.5, [None]], "c": "nan"}
    json.dumps(replace_nan_by_none(value), allow_nan=False)
    assert convert_reply(AssistantReply("Yes.", cost=float("nan"))) == AssistantReply("Yes.")


def test_a_file_of_requests_that_somebody_else_wrote_stays(tmp_path: Path) -> None:
    (tmp_path / "todo.jsonl").write_text("my own\n")
    with pytest.raises(WrongUse, match="did not write"):
        FileAssistant.of(tmp_path)
    (tmp_path / "todo.jsonl").write_text('{"key": "a", "messages": []}\n\n')
    assert FileAssistant.of(tmp_path).replies == {}
