"""Kept calibrators: what was changed or damaged is refused; what was kept predicts to the last bit as before."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

from pollex.calibration.estimator import JudgedEstimator
from pollex.calibration.models.baselines import JudgeMean
from pollex.calibration.models.ordinal import OrdinalMixedEffects
from pollex.calibration.questionnaire import Questionnaire, Scale
from pollex.calibration.storage import described, load, packed, rebuilt, save, unpacked
from pollex.errors import BadCalibrator, WrongUse
from pollex.measures.arrays import Floats

QUESTIONS = Questionnaire((Scale("fluent", (1.0, 2.0, 3.0)), Scale("thumb", (0.0, 1.0), asked=False)), "thumb")
JUDGES = ["ann", "bob", None, "zoë"]


def answers(rows: int = 40, seed: int = 0) -> Floats:
    return np.random.default_rng(seed).dirichlet(np.ones(3), size=rows)


def fitted(**settings: Any) -> JudgedEstimator:
    X = answers()
    thumbs = (X @ [1.0, 2.0, 3.0] > 2).astype(float)
    y = [(row, "thumb", JUDGES[row % 4], float(thumb)) for row, thumb in enumerate(thumbs)]
    return OrdinalMixedEffects(**settings).fit(X, y, questions=QUESTIONS)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save(fitted(), tmp_path / "kept")
    return tmp_path / "kept"


def changed(folder: Path, **changes: Any) -> Path:
    path = folder / "calibrator.json"
    facts = json.loads(path.read_text("utf-8"))
    path.write_text(json.dumps(facts | changes), "utf-8")
    return path


def test_a_folder_without_a_calibrator_is_told_how_to_get_one(tmp_path: Path) -> None:
    with pytest.raises(BadCalibrator, match="pollex calibrate fit --out"):
        load(tmp_path)


def test_one_of_an_earlier_pollex_predicts_as_before_without_the_settings_that_are_gone(folder: Path) -> None:
    settings = json.loads((folder / "calibrator.json").read_text("utf-8"))["settings"]
    again = load(changed(folder, settings=settings | {"drift": 0.5, "memory": 4.0}))
    np.testing.assert_array_equal(again.predict_proba(answers()), load(folder).predict_proba(answers()))


def test_text_that_is_no_json_object_is_refused(folder: Path) -> None:
    for text in ("{", "[1]", "\x00", "[" * 100_000):
        (folder / "calibrator.json").write_text(text, "utf-8")
        with pytest.raises(BadCalibrator, match=r"not (a )?JSON"):
            load(folder)


def test_another_format_is_refused_with_the_version_that_wrote_it(folder: Path) -> None:
    with pytest.raises(BadCalibrator, match=r"format 2.*use pollex 9\.9"):
        load(changed(folder, format=2, pollex="9.9"))


def test_an_unknown_model_is_refused_with_those_that_there_are(folder: Path) -> None:
    with pytest.raises(BadCalibrator, match=r"no calibrator is called 'os'.*ordinal"):
        load(changed(folder, model="os"))


@pytest.mark.parametrize(
    "changes",
    [
        {"settings": {"no_such_setting": 1}},
        {"settings": [1]},
        {"learned": {}},
        {"questionnaire": {"main": "thumb", "scales": [{"question": "thumb"}]}},
        {"questionnaire": {"main": "other", "scales": [{"question": "thumb", "values": [0, 1]}]}},
        {"questionnaire": None},
        {"questionnaire": {"main": "thumb", "scales": [{"question": "thumb", "values": [0, 10**400]}]}},
    ],
)
def test_facts_that_do_not_fit_are_refused(folder: Path, changes: dict[str, Any]) -> None:
    with pytest.raises(BadCalibrator, match="fit it again"):
        load(changed(folder, **changes))


def test_one_to_which_answers_came_in_other_columns_is_refused_for_that(folder: Path) -> None:
    fluent = {"question": "fluent", "values": [1, 2, 3], "ordinal": False}
    scales = [fluent, {"question": "thumb", "values": [0, 1], "asked": False}]
    message = r"in 3 columns, and its questions have 5 here → use the pollex that fitted it, or fit it again"
    with pytest.raises(BadCalibrator, match=message):
        load(changed(folder, questionnaire={"main": "thumb", "scales": scales}))


def test_one_that_asks_nothing_is_kept_too(tmp_path: Path) -> None:
    nothing = Questionnaire((Scale("thumb", (0.0, 1.0), asked=False),), "thumb")
    model = JudgeMean().fit(np.zeros((2, 0)), [0, 1], ["ann", "bob"], nothing)
    save(model, tmp_path)
    assert load(tmp_path).predict(np.zeros((1, 0)), ["bob"]) == model.predict(np.zeros((1, 0)), ["bob"])


def test_arrays_of_another_calibrator_are_refused(folder: Path) -> None:
    (arrays,) = folder.glob("*.safetensors")
    arrays.write_bytes(packed(fitted(shared=1.0)).arrays)
    with pytest.raises(BadCalibrator, match="not the ones that were written with it"):
        load(folder)


def test_missing_arrays_are_named(folder: Path) -> None:
    (arrays,) = folder.glob("*.safetensors")
    arrays.unlink()
    with pytest.raises(BadCalibrator, match=f"put {arrays.name} beside it again"):
        load(folder)


@pytest.mark.parametrize("name", ["../outside.safetensors", "/etc/hostname", None, 3])
def test_arrays_are_read_from_the_same_folder_only(folder: Path, name: Any) -> None:
    with pytest.raises(BadCalibrator, match="arrays' file is called"):
        load(changed(folder, arrays=name))


def test_a_setting_that_is_no_json_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    model = fitted()
    model.shared = np.inf  # type: ignore[attr-defined]
    with pytest.raises(WrongUse, match="can't be written as JSON"):
        save(model, tmp_path / "kept")
    assert not (tmp_path / "kept").exists()


def test_a_place_that_can_not_be_written_is_wrong_use(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(WrongUse, match="give another folder"):
        save(fitted(), tmp_path / "file")


@pytest.mark.parametrize("settings", [{}, {"slopes": None, "shared": 1.0}])
def test_what_was_kept_predicts_as_before(tmp_path: Path, settings: dict[str, Any]) -> None:
    model = fitted(**settings)
    again = load(save(model, tmp_path))
    X = answers(12, seed=1)
    for judges in (None, [*JUDGES, "stranger", None] * 2):
        np.testing.assert_array_equal(again.predict_proba(X, judges), model.predict_proba(X, judges))
    assert again.get_params() == model.get_params()
    assert (again.questionnaire_, again.judges_) == (model.questionnaire_, model.judges_)


def test_the_same_calibrator_is_kept_as_the_same_bytes(tmp_path: Path) -> None:
    first, second = packed(fitted()), packed(fitted())
    assert (first.facts, first.arrays) == (second.facts, second.arrays)
    assert packed(unpacked(first.facts, first.arrays)).arrays == first.arrays


def test_the_json_is_for_people_and_the_arrays_are_safetensors(folder: Path) -> None:
    facts = json.loads((folder / "calibrator.json").read_text("utf-8"))
    assert (facts["model"], facts["format"]) == ("ordinal", 1)
    assert facts["questionnaire"]["scales"][1] == {
        "question": "thumb",
        "values": [0.0, 1.0],
        "ordinal": True,
        "asked": False,
    }
    arrays = load_file(folder / facts["arrays"])
    assert arrays.keys() == fitted().state().arrays.keys()


def test_a_second_calibrator_takes_the_first_ones_place(folder: Path) -> None:
    save(fitted(shared=1.0), folder)
    assert load(folder).get_params()["shared"] == 1.0
    assert len(list(folder.iterdir())) == 2


def test_a_calibrator_can_be_kept_inside_another(tmp_path: Path) -> None:
    model, other = fitted(), fitted(shared=1.0)
    one, two = described(model, "one."), described(other, "two.")
    one.arrays.update(two.arrays)
    again = rebuilt(one, "one.")
    np.testing.assert_array_equal(again.predict_proba(answers()), model.predict_proba(answers()))


@pytest.mark.parametrize(
    "values", [[0, 1, 2], np.arange(3), np.arange(3, dtype=np.float32)], ids=["list", "int", "float32"]
)
def test_a_questionnaire_of_lists_and_arrays_is_kept_as_any_other(tmp_path: Path, values: Any) -> None:
    questions = Questionnaire([Scale("main", values)], "main")  # type: ignore[arg-type]
    model = OrdinalMixedEffects().fit(answers(), [0, 1, 2, 1] * 10, questions=questions)
    save(model, tmp_path / "kept")
    again = load(tmp_path / "kept")
    assert again.questionnaire_ == questions == Questionnaire((Scale("main", (0.0, 1.0, 2.0)),), "main")
    np.testing.assert_array_equal(again.predict(answers()), model.predict(answers()))
