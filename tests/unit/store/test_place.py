"""How commands that are told to people find the store."""

import pytest

from pollex.store.folder import VARIABLE, store_option


@pytest.mark.parametrize(
    ("environment", "folder", "words"),
    [
        ("", ".pollex", ""),
        ("", "elsewhere", " --store elsewhere"),
        ("", "two words", " --store 'two words'"),
        ("elsewhere", "elsewhere", ""),
        ("elsewhere", ".pollex", " --store .pollex"),
    ],
)
def test_the_store_is_named_where_a_command_would_look_elsewhere(
    monkeypatch: pytest.MonkeyPatch, environment: str, folder: str, words: str
) -> None:
    monkeypatch.setenv(VARIABLE, environment)
    assert store_option(folder) == words
