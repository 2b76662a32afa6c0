"""What people read of a server, and whom it lets in by the way it is started."""

import re
import shlex
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pollex.web
from pollex.errors import WrongUse
from pollex.reports.transcript import MarkedText
from pollex.store.runs import Run
from pollex.usecases.serve import ServeStore
from pollex.web.frame import format_dollars, format_duration, split_at_fences, write_resume_command
from pollex.web.frame import format_option_value as what_was_given
from pollex.web.guard import AccessRules
from pollex.web.pages.runs import compute_median_rate
from pollex.web.server import find_free_port, find_store, make_address, open_socket, require_safe
from pollex.web.site import read_or_make_token


def test_durations_costs_and_options_are_told_as_people_read_them() -> None:
    told = {
        820: "820 ms",
        4230: "4.2 s",
        200_000: "3 min 20 s",
        7_500_000: "2 h 5 min",
        None: "unknown",
    }
    assert {ms: format_duration(ms).replace("\N{NO-BREAK SPACE}", " ") for ms in told} == told
    assert [format_dollars(amount) for amount in (None, 0.01234, 1234.5)] == [
        "unknown",
        "$0.0123",
        "$1,234.50",
    ]
    assert [what_was_given(value) for value in (None, [], ["a", "b"], True, 0.5)] == [
        "–",
        "–",
        "a, b",
        "yes",
        "0.5",
    ]


def test_enter_in_a_text_field_never_gives_the_answer_that_a_form_s_first_button_stands_for() -> (
    None
):
    forms = [
        (template.name, form.partition("<button disabled hidden>"))
        for template in Path(pollex.web.__file__).with_name("templates").glob("*.html")
        for form in re.findall("<form.*?</form>", template.read_text("utf-8"), re.DOTALL)
        if re.search("<button[^>]* name=", form)
    ]
    assert len(forms) >= 5
    assert [
        name
        for name, (before, guard, _) in forms
        if not guard or re.search("<button[^>]* name=", before)
    ] == []


GIVEN = {
    "id": "score-1",
    "number": 1,
    "fingerprint": {},
    "versions": {},
    "started": "",
    "command": "score",
}


@pytest.mark.parametrize("named", ["", "--store elsewhere ", "--store=elsewhere "])
def test_the_command_that_resumes_a_run_names_its_store_and_where_it_began(named: str) -> None:
    arguments = {"command": f"pollex score {named}'my log.jsonl'", "folder": "/home/a b"}
    words = write_resume_command(Run(arguments=arguments, **GIVEN), Path("/stores/one"))
    assert shlex.split(words) == [
        *(
            "cd",
            "/home/a b",
            "&&",
            "pollex",
            "score",
            "my log.jsonl",
            "--resume",
            "--store",
            "/stores/one",
        )
    ]
    assert write_resume_command(Run(arguments={}, **GIVEN), Path("/stores/one")) == "", (
        "no command began it"
    )


def test_a_pace_is_that_of_most_looks_and_none_in_the_first_ten_seconds() -> None:
    assert compute_median_rate([(0.0, 0), (9.0, 18)]) is None
    steady = [(float(second), 2 * second) for second in range(30)]
    assert compute_median_rate(steady) == pytest.approx(2.0)
    assert compute_median_rate([*steady, (30.0, 500)]) == pytest.approx(2.0), (
        "a leap hardly moves it"
    )


def test_code_between_fences_is_told_from_prose() -> None:
    cut = split_at_fences(
        [MarkedText("Look:\n```py\nx = "), MarkedText("1", "sat"), MarkedText("\n```\nDone")]
    )
    assert [part.code for part in cut] == [False, True, False]
    assert [part.text for part in cut[1].parts] == ["```py", "\nx = ", "1", "\n", "```"]


@given(st.lists(st.text(st.sampled_from("`\na "), max_size=20), max_size=4))
def test_no_character_is_lost_between_prose_and_code(texts: list[str]) -> None:
    parts = [MarkedText(text) for text in texts]
    assert "".join(part.text for part in split_at_fences(parts) for part in part.parts) == "".join(
        texts
    )


def test_what_lets_others_in_is_refused_and_what_lets_nobody_else_in_is_served() -> None:
    for serving in (
        ServeStore(host="0.0.0.0"),
        ServeStore(host="::"),
        ServeStore(host="10.0.0.7"),
        ServeStore(host="0.0.0.0", allow_host=("box",), no_token=True),
        ServeStore(no_token=True, behind="https://pollex.example"),
    ):
        with pytest.raises(WrongUse):
            require_safe(serving)
    for serving in (
        ServeStore(),
        ServeStore(no_token=True),
        ServeStore(host="0.0.0.0", allow_host=("box",)),
    ):
        require_safe(serving)


def test_a_proxy_sets_name_and_origin() -> None:
    door = AccessRules.at(("127.0.0.1", "::1"), 80, "t", "s", "https://pollex.example/")
    assert door.hosts == {"127.0.0.1:80", "[::1]:80", "pollex.example"}
    assert "https://pollex.example" in door.origins
    assert (
        make_address(ServeStore(behind="https://pollex.example/"), 80) == "https://pollex.example"
    )


def test_the_token_stays_and_only_its_owner_reads_it(tmp_path: Path) -> None:
    token = read_or_make_token(tmp_path)
    assert len(token) == 64
    assert read_or_make_token(tmp_path) == token
    assert (tmp_path / "seal").stat().st_mode & 0o077 == 0


def test_a_port_in_use_is_told_with_a_free_one() -> None:
    with open_socket("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(WrongUse, match=r"in use .*--port \d+"):
            open_socket("127.0.0.1", port)
        assert find_free_port("127.0.0.1", port) != port


def test_the_only_store_below_is_found_unless_the_usual_one_is_there(tmp_path: Path) -> None:
    (tmp_path / "demo" / ".pollex").mkdir(parents=True)
    (tmp_path / "demo" / ".pollex" / "store.sqlite").touch()
    assert find_store(tmp_path) == tmp_path / "demo" / ".pollex"
    (tmp_path / ".pollex").mkdir()
    (tmp_path / ".pollex" / "store.sqlite").touch()
    assert find_store(tmp_path) == tmp_path / ".pollex"
