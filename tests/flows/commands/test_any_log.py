"""A log that nobody knows, from the error to the command that learns from it."""

import json
import shlex
from pathlib import Path
from types import SimpleNamespace

from small_runs import run_here

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
    (folder / "chats.csv").write_text("\n".join(["nr,wer,was,note", *lines]) + "\n", encoding="utf-8")
    return folder / "chats.csv"


def test_the_command_that_the_error_prints_reads_the_log_and_ends_with_the_one_that_learns(tmp_path: Path) -> None:
    path = log(tmp_path)
    ended = run_here("inspect", path, "--columns", "text=was")
    whole = next(line for line in ended.err.splitlines() if line.startswith("The whole command: "))
    command = shlex.split(whole.partition(": ")[2])
    assert command[:3] == ["pollex", "inspect", str(path)]
    assert command.count("--columns") == 1
    read = run_here(*command[1:])
    assert "The thumb is 'note': 1 up, 1 down, 0 not rated." in read.out
    assert read.out.splitlines()[-1] == f"Learn from it: {shlex.join(['pollex', 'learn', *command[2:]])}"


def test_a_domain_profile_and_a_set_learned_with_it_say_how_the_log_is_read(tmp_path: Path) -> None:
    profile = tmp_path / "domain.toml"
    for text in (PROFILE[PROFILE.index("[log]") :], PROFILE):  # the table alone will do
        profile.write_text(text, encoding="utf-8")
        read = run_here("inspect", log(tmp_path), "--domain", profile, "--positive", "gut", "--negative", "schlecht")
        assert "Roles: user (4), assistant (2)" in read.out
        assert f"--domain {profile}" in read.out.splitlines()[-1]
    (tmp_path / "rubrics.json").write_text(json.dumps({"domain": {"log": {"roles": {"user": "Kunde"}}}}), "utf-8")
    for name, roles in {"rubrics.json": (("user", "Kunde"),), "none.json": ()}.items():
        assert read_options(SimpleNamespace(rubrics=tmp_path / name)).roles == roles
    profile.write_text(PROFILE.replace("columns", "colums"), encoding="utf-8")
    assert "unknown" in run_here("inspect", log(tmp_path), "--domain", profile).err
