"""Profiles of a domain and of grading against references: what a wrong one says, and what a right one gives."""

import tomllib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pollex.errors import WrongUse
from pollex.prompts.domain import DomainProfile

EXAMPLES = Path(__file__).parents[3] / "examples"
WHOLE = {
    "assistant": "a bicycle repair assistant",
    "task": "to mend the brake",
    "user": "a cyclist",
    "ideal_conversation": "The brake works.",
    "expectations": ["name the part"],
    "language": "English",
}


def test_a_profile_names_all_that_it_misses(tmp_path: Path) -> None:
    file = tmp_path / "half.toml"
    file.write_text('assistant = "a helper"\nuser = "  "\ncolour = "red"\n', encoding="utf-8")
    with pytest.raises(WrongUse) as caught:
        DomainProfile.load(file)
    message = str(caught.value)
    assert "missing: task, ideal_conversation, expectations, language" in message
    assert "empty: user" in message
    assert "unknown: colour" in message
    assert "half.toml" in message
    assert "pollex domain new" in message


@pytest.mark.parametrize(
    ("content", "clause"),
    [
        (b"assistant = ", "not valid TOML.* → correct it"),
        (b"assistant = " + b"[" * 100_000, "not valid TOML.* → correct it"),
        (b"assistant = " + b"9" * 5000, "not valid TOML.* → correct it"),
        (b"\xff\xfe", "can't be read: .* → check the path; the file is to be UTF-8"),
        (b'expectations = "one"', "must be a list of texts: expectations"),
        (b"expectations = []", "empty: expectations"),
        (b"task = 3", "must be text: task"),
    ],
)
def test_a_profile_that_is_not_one_says_why(tmp_path: Path, content: bytes, clause: str) -> None:
    file = tmp_path / "p.toml"
    file.write_bytes(content)
    with pytest.raises(WrongUse, match=clause):
        DomainProfile.load(file)


def test_bundled_profiles_are_whole_and_a_mark_of_byte_order_is_no_part_of_one(
    tmp_path: Path,
) -> None:
    file = tmp_path / "p.toml"
    file.write_text(DomainProfile.neutral().toml(), encoding="utf-8-sig")
    assert DomainProfile.load(file) == DomainProfile.neutral()
    assert DomainProfile.neutral().language == "English"
    assert "debugging" in DomainProfile.load(EXAMPLES / "debugging.toml").words()
    with pytest.raises(WrongUse, match=r"nowhere\.toml"):
        DomainProfile.load(tmp_path / "nowhere.toml")


@settings(deadline=None)
@given(
    st.builds(
        lambda text, items: WHOLE | {"task": text, "expectations": items},
        st.text(st.characters(exclude_categories=["Cs"]), max_size=60).filter(str.strip),
        st.lists(
            st.text(st.characters(exclude_categories=["Cs"]), max_size=60).filter(str.strip),
            min_size=1,
            max_size=4,
        ),
    )
)
def test_a_written_profile_reads_back_the_same(fields: dict[str, object]) -> None:
    profile = DomainProfile.model_validate(fields)
    tomllib.loads(profile.toml())
    assert DomainProfile.parse(profile.toml()) == profile


def test_words_are_the_content_words_each_once_in_order() -> None:
    profile = DomainProfile.model_validate(
        WHOLE | {"task": "to mend the C# brake and the null-reference Brake"}
    )
    assert profile.words() == (
        *(
            "bicycle",
            "repair",
            "assistant",
            "mend",
            "c#",
            "brake",
            "null-reference",
            "cyclist",
            "name",
            "part",
        ),
    )
