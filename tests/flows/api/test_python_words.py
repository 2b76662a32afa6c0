"""Errors of the Python API name arguments, where the command line names options."""

from pathlib import Path

import click
import pytest

import pollex
from pollex.cli.main import pollex as pollex_command
from pollex.cli.settings import spelled
from pollex.conversations.conversation import BOUNDS
from pollex.errors import BadInput, PollexError


def test_options_are_spelled_as_arguments() -> None:
    error = BadInput("turns may be in both", remedy="say which", option={"messages_field": "a", "pairs": None})
    assert str(error) == "turns may be in both → say which: messages_field='a', pairs="


def test_a_terminal_spells_options_and_settings_as_the_verb_takes_them() -> None:
    learn, judge = (pollex_command.get_command(click.Context(pollex_command), verb) for verb in ("learn", "judge"))
    assert learn is not None
    assert judge is not None
    said = {"label_field": "feedback.score", "thumbs": "last", "samples": 5, "messages_field": None}
    assert spelled(learn, said) == "--label-field feedback.score --set thumbs=last --samples 5 --messages-field"
    assert spelled(judge, BOUNDS) == "--positive '>=4' --negative '<=2'"


def test_an_error_of_the_api_names_arguments_in_all_that_it_tells(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text('{"id": 1, "text": "Hello."}\n', encoding="utf-8")
    with pytest.raises(PollexError) as found:
        pollex.read_logs(log, on_duplicate="best")
    assert str(found.value) == "on_duplicate is 'best' → use one of error, first, last: on_duplicate='error'"


def test_learning_without_labels_says_which_arguments_name_them(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text('{"id": "1", "messages": [{"role": "user", "content": "Hello."}]}\n', encoding="utf-8")
    with pytest.raises(PollexError) as found:
        pollex.learn(pollex.read_logs(log), store=tmp_path / "kept")
    assert "label_field=" in found.value.remedy
    assert "--" not in str(found.value)
