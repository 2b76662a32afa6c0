"""Studies: their files, and orders that are balanced."""

from collections import Counter
from pathlib import Path

import pytest

from pollex.errors import BadInput
from pollex.rooms.study.store.tables import StudyRow
from pollex.rooms.study.web.studies import Study, read_stored_studies, read_studies, read_study
from pollex.runs.options import ModelOptions
from pollex.store.store import Store
from pollex.store.tables import format_current_time
from pollex.web.profiles import read_profiles

QUESTIONS = '[[question]]\nid = "Q0"\ntext = "Satisfied?"\noptions = [[1, "no"], [4, "yes"]]\n'
STUDY = 'title = "Parcels"\nsystems = ["mini", "local"]\n'


def study(**changed: object) -> Study:
    question = {"id": "Q0", "text": "Satisfied?", "options": [[1, "no"], [4, "yes"]]}
    return Study.model_validate(
        {"title": "t", "systems": ["a", "b"], "questions": [question]} | changed
    )


@pytest.mark.parametrize("design", ["one", "side-by-side", "one-after-other"])
def test_each_system_has_each_place_and_each_topic_equally_often(design: str) -> None:
    drawn = [study(design=design, seed=3).session(number)[0] for number in range(40)]
    assert Counter(order[0] for order in drawn) == {"a": 20, "b": 20}
    assert len({drawn[i] for i in range(0, 40, 2)}) == 2, (
        "which comes first in a pair is drawn, too"
    )
    asked = study(systems=["a", "b", "c"], topics=["x", "y"], design=design)
    counted = Counter((order[0], topic) for order, topic in map(asked.session, range(60)))
    assert (set(counted.values()), len(counted)) == ({10}, 6)
    assert study().id == study().id != study(seed=1).id


def test_a_questionnaire_of_its_own_file_is_read_and_its_main_question_comes_last(
    tmp_path: Path,
) -> None:
    other = QUESTIONS.replace("Q0", "Q1")
    (tmp_path / "asked.toml").write_text(f'main = "Q0"\n{QUESTIONS}{other}')
    file = tmp_path / "study.toml"
    file.write_text(STUDY + 'questionnaire = "asked.toml"\n')
    assert [one.id for one in read_study(file).questions] == ["Q1", "Q0"]
    with pytest.raises(BadInput, match="no profile is called local"):
        read_studies([file], {"mini": ModelOptions(model="m")})


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
def test_what_is_wrong_in_a_study_is_told_with_its_file(
    tmp_path: Path, text: str, told: str
) -> None:
    file = tmp_path / "study.toml"
    file.write_text(text)
    with pytest.raises(BadInput, match=told) as caught:
        read_study(file)
    assert caught.value.where == str(file)


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ('system = "DS9"', "no such dialogue system: DS9"),
        ('system = "DS3"', "DS3 finds documents, and there are none"),
        ('system = "DS3"\ndocuments = "none"', "no documents"),
        ('system = "DS1"\ndocuments = "help"', "DS1 takes no documents"),
        ('documents = "help"', "m takes no documents"),
    ],
)
def test_a_system_without_what_it_needs_is_told_with_the_profiles_file(
    tmp_path: Path, more: str, told: str
) -> None:
    (file := tmp_path / "profiles.toml").write_text(f'[mini]\nmodel = "m"\n{more}\n')
    with pytest.raises(BadInput, match=told) as caught:
        read_profiles(file)
    assert str(caught.value.where).startswith(str(tmp_path))
    assert caught.value.hint


@pytest.mark.parametrize(
    ("topics", "told"),
    [
        ("", "one names none"),
        ('topics = ["A kettle."]', "one names none"),
        ('topics = [{text = "A kettle.", documents = ["gone.md"]}]', "names gone.md"),
        ('topics = [{text = "A kettle.", documents = ["a.md"]}]', ""),
    ],
)
def test_topics_name_the_documents_of_a_system_that_is_given_them(
    tmp_path: Path, topics: str, told: str
) -> None:
    (tmp_path / "help").mkdir()
    (tmp_path / "help" / "a.md").write_text("Thirty days.")
    (profiles := tmp_path / "profiles.toml").write_text(
        '[mini]\nmodel = "m"\nsystem = "DS2"\ndocuments = "help"\n'
    )
    (file := tmp_path / "study.toml").write_text(
        f'title = "t"\nsystems = ["mini"]\n{topics}\n{QUESTIONS}'
    )
    known = read_profiles(profiles)
    if told:
        with pytest.raises(BadInput, match=told) as caught:
            read_studies([file], known)
        assert caught.value.where == str(file)
    else:
        found = Study.model_validate_json(read_studies([file], known)[0].payload)
        assert found.session(0)[1] == "A kettle."
        assert (found.documents("A kettle."), found.whole) == (("a.md",), True)


def test_a_study_takes_a_shipped_questionnaire_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text('title = "T"\nsystems = ["a"]\nquestionnaire = "llm-rubric"\n')
    questions = read_study(tmp_path / "s.toml").questions
    assert [question.id for question in questions] == [*(f"Q{n}" for n in range(1, 9)), "Q0"]


def test_a_store_that_was_made_without_the_room_gets_its_tables(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store, store.database.transaction() as connection:
        for table in ("studies", "talks", "talk_turns", "talk_answers", "talk_ends"):
            connection.execute(f"DROP TABLE {table}")
    with Store.open(tmp_path, read_only=True) as store:
        assert read_stored_studies(store) == []
    with Store.open(tmp_path) as store:
        store.put([StudyRow("s", format_current_time(), "{}")])
        store.flush()
        assert store.value("SELECT count(*) FROM studies") == 1
    with Store.open(tmp_path, read_only=True) as store:
        assert store.value("SELECT id FROM studies") == "s"
