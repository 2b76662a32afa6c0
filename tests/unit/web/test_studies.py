"""Studies: their files, and orders that are balanced."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from pollex.errors import BadInput
from pollex.web.studies import Study, read_studies, read_study

QUESTIONS = '[[question]]\nid = "Q0"\ntext = "Satisfied?"\noptions = [[1, "no"], [4, "yes"]]\n'
STUDY = 'title = "Parcels"\nsystems = ["mini", "local"]\n'


def study(**changed: object) -> Study:
    question = {"id": "Q0", "text": "Satisfied?", "options": [[1, "no"], [4, "yes"]]}
    return Study.model_validate({"title": "t", "systems": ["a", "b"], "questions": [question]} | changed)


@pytest.mark.parametrize("design", ["one", "side-by-side", "one-after-other"])
def test_each_system_has_each_place_equally_often_in_forty_sessions(design: str) -> None:
    drawn = [study(design=design, seed=3).session(number)[0] for number in range(40)]
    assert Counter(order[0] for order in drawn) == {"a": 20, "b": 20}
    assert len({drawn[i] for i in range(0, 40, 2)}) == 2, "which comes first in a pair is drawn, too"


def test_each_system_gets_each_topic_equally_often() -> None:
    asked = study(systems=["a", "b", "c"], topics=["x", "y"])
    counted = Counter((order[0], topic) for order, topic in map(asked.session, range(60)))
    assert set(counted.values()) == {10}
    assert len(counted) == 6


def test_a_study_that_is_changed_is_another_study(tmp_path: Path) -> None:
    assert study().id == study().id != study(seed=1).id


def test_a_questionnaire_of_its_own_file_is_read_and_its_main_question_comes_last(tmp_path: Path) -> None:
    other = QUESTIONS.replace("Q0", "Q1")
    (tmp_path / "asked.toml").write_text(f'main = "Q0"\n{QUESTIONS}{other}')
    file = tmp_path / "study.toml"
    file.write_text(STUDY + 'questionnaire = "asked.toml"\n')
    assert [one.id for one in read_study(file).questions] == ["Q1", "Q0"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (STUDY, "no question"),
        (STUDY + "turns = [3, 2]\n" + QUESTIONS, "fewest and the most"),
        (STUDY + "sytems = 3\n" + QUESTIONS, "sytems"),
        ("title = [", "TOML"),
        (STUDY + 'questionnaire = "none.toml"\n', "can't be read"),
    ],
)
def test_what_is_wrong_in_a_study_is_told_with_its_file(tmp_path: Path, text: str, told: str) -> None:
    file = tmp_path / "study.toml"
    file.write_text(text)
    with pytest.raises(BadInput, match=told) as caught:
        read_study(file)
    assert caught.value.where == str(file)


def test_a_system_without_a_profile_is_told_at_the_start(tmp_path: Path) -> None:
    file = tmp_path / "study.toml"
    file.write_text(STUDY + QUESTIONS)
    with pytest.raises(BadInput, match="no profile is called local"):
        read_studies([file], ["mini"])
