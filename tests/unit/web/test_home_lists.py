"""What Home lists of a rubric set: each rubric that labels bear out has a place there."""

from pathlib import Path

from rubric_set_by_hand import rubric, rubric_set

from pollex.rubrics.records import ChosenRubric, StandingRecord
from pollex.web.pages.home import MAX_RUNS_SHOWN, list_findings

PROVEN, HINT = (StandingRecord(p=p, n=40, by="halvings") for p in (0.01, 0.9))
HOME = Path(__file__).parents[3] / "pollex" / "web" / "templates" / "home.html"


def deed(number: int) -> ChosenRubric:
    return rubric(number, "dsat").model_copy(
        update={
            "id": f"deed{number}",
            "text": f"The assistant fails {number}.",
            "source": f"event:fail{number}",
            "tells": "deed",
            "standing": PROVEN,
            "reason_ids": ("reason1", "reason2"),
        }
    )


def tone(number: int, standing: StandingRecord) -> ChosenRubric:
    return rubric(number, "dsat").model_copy(
        update={"id": f"tone{number}", "tells": "tone", "standing": standing}
    )


def test_each_proven_rubric_stands_on_home_and_others_are_counted() -> None:
    deeds = [deed(number) for number in range(1, MAX_RUNS_SHOWN + 2)]
    rubrics = (*deeds, tone(11, PROVEN), tone(12, HINT))
    found = list_findings(rubric_set(rubrics=rubrics))
    assert len(found["sides"]["What goes wrong"]) == MAX_RUNS_SHOWN
    assert [one.id for one in found["rest_borne_out"]] == [deeds[-1].id, "tone11"]
    assert [one.id for one in found["rest"]] == [deeds[-1].id, "tone11", "tone12"]


def test_a_side_without_an_act_says_so_beside_what_is_said_there() -> None:
    words = rubric(1, "dsat").model_copy(
        update={"source": "phrase:assistant:please", "standing": PROVEN}
    )
    found = list_findings(rubric_set(rubrics=(words,)))
    assert [one.id for one in found["said"]] == [words.id]
    assert found["lacking"]["What goes wrong"] == (
        "No act of the assistant leads, but 1 of what it says or how it sounds is proven or likely on this side."
    )
    assert "on what is said (words, which may stand for an act)" in found["nothing"]


def test_a_run_without_the_name_of_its_log_stands_in_no_parentheses() -> None:
    assert "(<a href" not in HOME.read_text()
