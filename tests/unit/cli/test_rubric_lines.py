"""Rubrics on a terminal: a line of text, a line of figures, and what went the other way apart."""

import io

import numpy as np
from rich.console import Console
from rubric_set_by_hand import rubric, rubric_set

from pollex.cli.session import Screen, show_result
from pollex.rubrics.records import ChosenRubric, RubricEvidence, StandingRecord
from pollex.rubrics.rubric import Quote
from pollex.rubrics.rubric_set import RubricSet
from pollex.rubrics.worth import (
    add_counted_thumbs,
    compute_evidence_of_rubric,
    shrink_evidence_for_rubric_choice,
)
from pollex.services.sets import describe_rubrics

UP = np.arange(200) >= 100
BAD = compute_evidence_of_rubric(np.arange(200) < 60, UP)
TURNED = compute_evidence_of_rubric(np.arange(200) >= 140, UP)


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
        == "    60 of 60 thumbs down (100 %), elsewhere 40 of 140 (29 %); 71 points more (95 % 61 to 78); "
        "id abcdefgh"
    )
    against = "1 that thumbs contradict"
    assert more == f"1 more rubric ({against}): in the report, or here with -v"


def test_what_went_the_other_way_has_a_heading_of_its_own_that_says_no_side() -> None:
    said = shown(RUBRICS, verbose=True)
    own = said.index("What goes wrong:")
    against = said.index("Thumbs contradict these:")
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


PROVEN = StandingRecord(p=0.01, n=200, by="halvings")


def phrase(words: str, worth: RubricEvidence, text: str) -> ChosenRubric:
    """Return a phrase that is borne out, with a text in which it is said."""
    begin = text.index(words)
    quote = Quote(conversation_id="a", turn=1, text=text, marks=((begin, begin + len(words)),))
    changes = {
        "id": "words123",
        "source": "phrase:assistant:x",
        "tells": "",
        "standing": PROVEN,
        "quotes": (quote,),
    }
    return event(2, f"The assistant says “{words}”.", worth).model_copy(update=changes)


def test_words_stand_before_a_weaker_deed_of_their_side_and_are_quoted() -> None:
    weak = compute_evidence_of_rubric(np.arange(200) < 20, UP)
    text = "Das geht leider nicht. " * 20 + "Bitte rufen Sie uns an."
    words = phrase("Bitte rufen", BAD, text)
    deed = event(1, LONG, weak).model_copy(update={"standing": PROVEN})
    lines = shown(rubric_set(rubrics=(deed, words)))
    assert lines.index("What is said where it goes wrong:") < lines.index("What goes wrong:")
    (figures,) = [line for line in lines if "id words123" in line]
    assert "as in “…" in figures
    assert "Bitte rufen Sie uns an.”" in figures
    assert len(figures) < 300

    strong = deed.model_copy(update={"worth": BAD})
    lines = shown(rubric_set(rubrics=(strong, words.model_copy(update={"worth": weak}))))
    assert lines.index("What goes wrong:") < lines.index("What is said where it goes wrong:")


def test_how_sure_each_word_is_and_what_is_counted_is_said_once_before_the_list() -> None:
    counted = add_counted_thumbs(BAD, np.arange(200) < 60, UP, np.arange(200), None)
    evidence = shrink_evidence_for_rubric_choice(counted, "dsat", 0.01, 0.05)
    deed = event(1, LONG, evidence).model_copy(update={"standing": PROVEN})
    sure, counts, heading, *_ = shown(rubric_set(rubrics=(deed,)))
    assert "“proven” in at most 5 % of logs, and “likely” in at most 30 %" in sure
    assert "halves of the log, which tested" in sure
    assert counts.startswith("Counts are of 200 labeled conversations. “Expected” is")
    assert counts.endswith("“Holds” is an answer above the middle of its scale on average.")
    assert heading == "What goes wrong:"


def test_what_comes_out_well_stands_apart_from_what_comes_out_badly() -> None:
    outcomes = [
        event(number, text, worth).model_copy(
            update={"tells": "outcome", "standing": PROVEN, "polarity": side, "id": side * 3}
        )
        for number, text, worth, side in (
            (1, "The assistant gives a negative answer.", BAD, "dsat"),
            (2, "The user thanks.", TURNED, "sat"),
        )
    ]
    lines = shown(rubric_set(rubrics=tuple(outcomes)))
    wrong, well = (index for index, line in enumerate(lines) if line.startswith("How it comes out"))
    assert lines.index("  The assistant gives a negative answer.") == wrong + 1
    assert lines.index("  The user thanks.") == well + 1
    assert "lowers" not in "".join(lines)
