"""A log that nobody knows, from the error to the command that learns from it."""

import json
import os
import pty
import shlex
import sys
from pathlib import Path
from subprocess import PIPE, Popen
from types import SimpleNamespace

from protocol_server import ProtocolServer
from small_runs import run_here

from pollex.formats.columns import list_columns
from pollex.formats.disguise import disguise_values_of_columns, replace_letters_and_digits_of_value
from pollex.usecases.families import read_options

PROFILE = """
assistant = "a bot"
task = "to find parcels"
user = "customers"
ideal_conversation = "It is found."
expectations = ["It looks."]
language = "German"
[log]
columns = {conversation = "nr", role = "wer", text = "was", label = "note"}
roles = {user = ["Kunde", "Gast"], assistant = "Bot"}
"""


def log(folder: Path) -> Path:
    said = ("Kunde,Wo ist es?", "Bot,Ich sehe nach.", "Gast,Gut so.")
    lines = [f"{n},{one},{note}" for n, note in enumerate(("schlecht", "gut")) for one in said]
    (folder / "chats.csv").write_text(
        "\n".join(["nr,wer,was,note", *lines]) + "\n", encoding="utf-8"
    )
    return folder / "chats.csv"


def test_the_command_that_the_error_prints_reads_the_log_and_ends_with_the_one_that_learns(
    tmp_path: Path,
) -> None:
    path = log(tmp_path)
    ended = run_here("inspect", path, "--columns", "text=was")
    whole = next(line for line in ended.err.splitlines() if line.startswith("The whole command: "))
    command = shlex.split(whole.partition(": ")[2])
    assert command[:3] == ["pollex", "inspect", str(path)]
    assert command.count("--columns") == 1
    read = run_here(*command[1:])
    assert "The thumb is 'note': 1 up, 1 down, 0 not rated." in read.out
    first = shlex.join(["pollex", "label", "next", *command[2:], "--out", "to-label.jsonl"])
    assert read.out.splitlines()[-1] == f"Or give the first, to a random sample: {first}"


def test_a_domain_profile_and_a_set_learned_with_it_say_how_the_log_is_read(tmp_path: Path) -> None:
    profile = tmp_path / "domain.toml"
    for text in (PROFILE[PROFILE.index("[log]") :], PROFILE):  # the table alone will do
        profile.write_text(text, encoding="utf-8")
        read = run_here(
            "inspect",
            log(tmp_path),
            "--domain",
            profile,
            "--positive",
            "gut",
            "--negative",
            "schlecht",
        )
        assert "Roles: user (4), assistant (2)" in read.out
        assert f"--domain {profile}" in read.out.splitlines()[-1]
    (tmp_path / "rubrics.json").write_text(
        json.dumps({"domain": {"log": {"roles": {"user": "Kunde"}}}}), "utf-8"
    )
    for name, roles in {"rubrics.json": (("user", "Kunde"),), "none.json": ()}.items():
        assert read_options(SimpleNamespace(rubrics=tmp_path / name)).roles == roles
    profile.write_text(PROFILE.replace("columns", "colums"), encoding="utf-8")
    assert "unknown" in run_here("inspect", log(tmp_path), "--domain", profile).err


SAID = (("Where is my tent?", "It is late."), ("Can I return the boots?", "Within two weeks, yes."))
NOTED = "kept for the records of the shop"


def odd_log(folder: Path) -> Path:
    """Write a log of which no way to read it is found: three speakers, one of them no speaker."""
    rows = [
        {"mn": f"k-{n}", "op": speaker, "zu": words, "qq": "mm" if n % 2 else "nn"}
        for n in range(6)
        for question, answer in SAID
        for speaker, words in (("x7", question), ("y3", answer), ("z1", NOTED))
    ]
    path = folder / "odd.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def mapping_told(speakers: dict[str, str]) -> str:
    """Return a model's answer that names the columns of the odd log."""
    columns = {"conversation": "mn", "role": "op", "text": "zu", "label": "qq"}
    return json.dumps(
        {
            "columns": [{"part": part, "column": column} for part, column in columns.items()],
            "speakers": [{"name": name, "role": role} for name, role in speakers.items()],
            "up": ["mm"],
            "down": ["nn"],
        }
    )


def test_a_model_proposes_the_columns_of_a_log_that_nothing_reads_and_is_checked(
    tmp_path: Path,
) -> None:
    path = odd_log(tmp_path)
    assert "no way to read it was found" in run_here("inspect", path).err
    speakers = {"x7": "user", "y3": "assistant", "z1": "none"}
    with ProtocolServer() as server:
        asked = (
            "inspect",
            path,
            "--model",
            "m",
            "--base-url",
            server.url,
            "--store",
            tmp_path / "store",
        )
        # The plan counts one call, and makes none.
        planned = run_here(*asked, "--dry-run")
        assert (planned.code, server.counts()["received"]) == (0, 0)
        assert "map_columns" in planned.out
        assert "1 planned" in planned.out
        # What the model says is read, and only then proposed.
        server.script(
            [{"do": "message", "content": mapping_told(speakers), "match": "column of roles"}]
        )
        ended = run_here(*asked)
        assert "m read them" in ended.err
        assert "user: Where is my tent?" in ended.err
        whole = next(
            line for line in ended.err.splitlines() if line.startswith("The whole command: ")
        )
        paid = server.counts()["paid"]
        read = run_here(*shlex.split(whole.partition(": ")[2])[1:])
        assert "6 conversations: 3 up, 3 down" in read.out
        assert "Roles: user (12), assistant (12)" in read.out
        assert server.counts()["paid"] == paid
        assert "--model" not in read.out.splitlines()[-1]
        # The same question isn't paid for twice.
        assert "1 more needed no call" in run_here(*asked).out


def test_learn_with_a_model_asks_it_for_the_columns_of_a_log_that_nothing_reads(
    tmp_path: Path,
) -> None:
    speakers = {"x7": "user", "y3": "assistant", "z1": "none"}
    with ProtocolServer() as server:
        server.script(
            [{"do": "message", "content": mapping_told(speakers), "match": "column of roles"}]
        )
        ended = run_here(
            *("learn", odd_log(tmp_path), "--model", "m", "--base-url", server.url),
            *("--store", tmp_path / "store", "--out", tmp_path / "set.json"),
        )
    assert ended.code == 1
    assert "m read them" in ended.err
    assert "user: Where is my tent?" in ended.err
    assert "The whole command: pollex learn" in ended.err


def test_what_a_model_proposes_is_refused_where_it_is_no_talk(tmp_path: Path) -> None:
    path = odd_log(tmp_path)
    with ProtocolServer() as server:
        asked = (
            "inspect",
            path,
            "--model",
            "m",
            "--base-url",
            server.url,
            "--store",
            tmp_path / "store",
        )
        speakers = {"x7": "user", "y3": "user", "z1": "user"}
        server.script(
            [{"do": "message", "content": mapping_told(speakers), "match": "column of roles"}]
        )
        ended = run_here(*asked)
        assert (ended.code, "The whole command" in ended.err) == (1, False)
        assert (
            "m's mapping was tried, and what comes out is no talk: most conversations have one side"
            in ended.err
        )


def test_a_model_is_shown_no_words_of_people_in_the_columns(tmp_path: Path) -> None:
    shown = disguise_values_of_columns(
        list_columns(
            [json.loads(line) for line in odd_log(tmp_path).read_text("utf-8").splitlines()]
        )
    )
    told = json.dumps(shown.items)
    assert {"column": "op", "different": 3, "values": ["x7", "y3", "z1"]} in shown.items
    assert not [word for word in ("tent", "boots", "weeks", "records") if word in told]
    assert "a text of 4 words that ends with ?" in told
    assert replace_letters_and_digits_of_value("K-17 2024-05-01") == "a-99 9999-99-99"
    assert replace_letters_and_digits_of_value("hana@example.com") == "aaaa@aaaaaaa.aaa"


def test_y_at_the_terminal_goes_on_with_what_was_proposed(tmp_path: Path) -> None:
    """A pseudo-terminal is what the person sits at; the process is one of its own, as it would be there."""
    path = log(tmp_path)
    keyboard, terminal = pty.openpty()
    try:
        words = [sys.executable, "-m", "pollex", "inspect", str(path)]
        with Popen(words, stdin=terminal, stdout=PIPE, stderr=terminal) as process:
            os.write(keyboard, b"y\n")
            out, _ = process.communicate(timeout=60)
    finally:
        os.close(keyboard)
        os.close(terminal)
    assert process.returncode == 0
    assert "The thumb is 'note': 1 up, 1 down, 0 not rated." in out.decode()


def test_a_kept_mapping_scores_a_log_of_the_same_fields_without_columns(tmp_path: Path) -> None:
    said = (
        ("Wo ist es?", "Es kommt am Freitag zu Ihnen."),
        ("Kann ich es zurückgeben?", "Leider nicht mehr."),
    )
    thumbs = ("gut", "schlecht")
    rows = [
        {"nr": f"n{n}", "wer": who, "was": f"{words} Nummer {n}.", "note": thumbs[n % 2]}
        for n in range(60)
        for who, words in zip(("Kunde", "Bot"), said[n % 2], strict=True)
    ]
    new = [{name: row[name] for name in ("nr", "wer", "was")} for row in rows[:20]]
    for name, written in (("old.jsonl", rows), ("new.jsonl", new)):
        lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in written)
        (tmp_path / name).write_text(lines, encoding="utf-8")
    kept = ("--store", tmp_path / "store")
    mapping = (
        "--columns",
        "conversation=nr,role=wer,text=was,label=note",
        "--roles",
        "user=Kunde,assistant=Bot",
    )
    rubrics = tmp_path / "rubrics.json"
    words = ("--positive", "gut", "--negative", "schlecht")
    learned = run_here("learn", tmp_path / "old.jsonl", *mapping, *words, "--out", rubrics, *kept)
    assert learned.code == 0, learned.err
    scored = run_here(
        "score", tmp_path / "new.jsonl", "--rubrics", rubrics, "--out", tmp_path / "s.jsonl", *kept
    )
    assert scored.code == 0, scored.err
    assert len((tmp_path / "s.jsonl").read_text("utf-8").splitlines()) == 10
