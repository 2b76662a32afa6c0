"""Rubrics on a terminal: a line of text, a line of figures, and what went the other way apart."""

import io

import numpy as np
from rich.console import Console
from rubric_set_by_hand import rubric, rubric_set

from pollex.cli.session import Screen, show_result
from pollex.rubrics.records import ChosenRubric
from pollex.rubrics.rubric_set import RubricSet
from pollex.rubrics.worth import measure_worth
from pollex.services.sets import describe_rubrics

UP = np.arange(200) >= 100
BAD = measure_worth(np.arange(200) < 60, UP)
TURNED = measure_worth(np.arange(200) >= 140, UP)


def event(number: int, text: str, worth: object) -> ChosenRubric:
    changes = {
        "id": f"abcdefgh{number}",
        "text": text,
        "source": "event:fail_left",
        "tells": "deed",
        "reason_ids": ("reason1", "reason2"),
        "worth": worth,
    }
    return rubric(number, "dsat").model_copy(update=changes)


LONG = "The assistant says that it couldn't book a mechanic or rent a tandem, and offers nothing."
RUBRICS = rubric_set(rubrics=(event(1, LONG, BAD), event(2, "The assistant asks twice.", TURNED)))


def shown(rubrics: RubricSet, *, verbose: bool = False, terminal: bool = False) -> list[str]:
    screen = Screen(verbose=verbose)
    out = io.StringIO()
    screen.console = Console(file=out, width=80, force_terminal=terminal, color_system=None)
    show_result(screen, describe_rubrics(rubrics, verbose))
    return out.getvalue().splitlines()


def test_a_rubric_is_a_line_of_text_and_one_of_figures_without_its_side() -> None:
    heading, text, figures, more = shown(RUBRICS)
    assert (heading, text) == ("What goes wrong:", f"  {LONG}")
    assert (
        figures
        == "    thumbs down: 100 % of 60 (94–100 %), elsewhere 29 % of 140 (22–37 %); id abcdefgh"
    )
    against = "1 that new conversations contradict"
    assert more == f"1 more rubric ({against}): in the report, or here with -v"


def test_what_went_the_other_way_has_a_heading_of_its_own_that_says_no_side() -> None:
    said = shown(RUBRICS, verbose=True)
    own = said.index("What goes wrong:")
    against = said.index("New conversations contradict these:")
    assert own < said.index(f"  {LONG}") < against < said.index("  The assistant asks twice.")
    assert "not confirmed; lowers the score" in said[-1]


def test_a_terminal_breaks_lines_between_words_and_keeps_them_indented() -> None:
    said = shown(RUBRICS, terminal=True)
    assert all(len(line) <= 80 for line in said[:-1])
    assert [line.strip() for line in said[1:3]] == [
        LONG[: LONG.index(" offers")],
        "offers nothing.",
    ]
    assert all(line.startswith("  ") for line in said[1:-1] if not line.startswith("1 more"))
