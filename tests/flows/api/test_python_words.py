"""Errors of the Python API name arguments, where the command line names options."""

from __future__ import annotations

from pathlib import Path

import pytest

import pollex
from pollex.errors import PollexError, in_python


@pytest.mark.parametrize(
    ("said", "in_words_of_python"),
    [
        ("name the field with the turns: --messages-field", "name the field with the turns: messages_field"),
        ("say which: --label-field stars", "say which: label_field='stars'"),
        ("hold nothing out: --test-fraction 0", "hold nothing out: test_fraction=0"),
        ("give --model m, or `pollex refit … --model m`", "give model='m', or `pollex refit … --model m`"),
        ("for ratings: --positive '>=4' --negative '<=2'", "for ratings: positive='>=4' negative='<=2'"),
        ("confirm it: --base-url http://localhost:1/v1", "confirm it: base_url='http://localhost:1/v1'"),
        ("choose another, or drop --require logprobs", "choose another, or drop require='logprobs'"),
        ("which --require asks for", "which require asks for"),
        ("try --encoding utf-8 or latin-1", "try encoding utf-8 or latin-1"),
        ("the label '--none' is not known", "the label '--none' is not known"),
        ("RFC 4180 -- and no option", "RFC 4180 -- and no option"),
        ("", ""),
    ],
)  # fmt: skip
def test_options_are_named_as_arguments_and_commands_stay(said: str, in_words_of_python: str) -> None:
    assert in_python(said) == in_words_of_python
    assert in_python(in_words_of_python) == in_words_of_python


def test_an_error_of_the_api_names_arguments_in_all_that_it_tells(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text('{"id": 1, "text": "Hello."}\n', encoding="utf-8")
    with pytest.raises(PollexError) as found:
        pollex.read_logs(log, on_duplicate="best")
    assert str(found.value) == "on_duplicate best isn't known → one of: error, first, last"


def test_learning_without_labels_says_which_arguments_name_them(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text('{"id": "1", "messages": [{"role": "user", "content": "Hello."}]}\n', encoding="utf-8")
    with pytest.raises(PollexError) as found:
        pollex.learn(pollex.read_logs(log), store=tmp_path / "kept")
    assert "label_field" in found.value.remedy
    assert "--" not in str(found.value)
