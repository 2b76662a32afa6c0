"""Kept calibrators: what was changed or damaged is refused; what was kept predicts to the last bit as before."""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load as load_arrays
from safetensors.numpy import load_file
from safetensors.numpy import save as save_arrays

from pollex.calibration.estimator import JudgedEstimator
from pollex.calibration.models.constant import Constant
from pollex.calibration.models.ordinal import OrdinalMixedEffects
from pollex.calibration.questionnaire import Questionnaire, Scale
from pollex.calibration.storage import (
    deserialize_calibrator,
    get_calibrator_state,
    load,
    restore_calibrator_from_state,
    save,
    serialize_calibrator,
)
from pollex.errors import BadCalibrator, WrongUse
from pollex.measures.arrays import Floats

QUESTIONS = Questionnaire(
    (Scale("fluent", (1.0, 2.0, 3.0)), Scale("thumb", (0.0, 1.0), asked=False)), "thumb"
)
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


def facts_of(folder: Path) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads((folder / "calibrator.json").read_text("utf-8"))
    return facts


def changed(folder: Path, **changes: Any) -> Path:
    path = folder / "calibrator.json"
    path.write_text(json.dumps(facts_of(folder) | changes), "utf-8")
    return path


def test_one_of_an_earlier_pollex_predicts_as_before_without_the_settings_that_are_gone(
    folder: Path,
) -> None:
    before = load(folder).predict_proba(answers())
    again = load(
        changed(folder, settings=facts_of(folder)["settings"] | {"drift": 0.5, "memory": 4.0})
    )
    np.testing.assert_array_equal(again.predict_proba(answers()), before)


def scales(*given: dict[str, Any], main: str = "thumb") -> dict[str, Any]:
    return {"questionnaire": {"main": main, "scales": list(given)}}


THUMB: dict[str, Any] = {"question": "thumb", "values": [0, 1]}
CLASSES = {"question": "fluent", "values": [1, 2, 3], "ordinal": False}
UNFIT = "fit it again"
NO_NAME = "arrays' file is called"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": 2, "pollex": "9.9"}, r"format 2.*use pollex 9\.9"),
        ({"model": "os"}, "no calibrator is called 'os'.*ordinal"),
        ({"settings": {"no_such_setting": 1}}, UNFIT),
        ({"settings": [1]}, UNFIT),
        ({"learned": {}}, UNFIT),
        (scales({"question": "thumb"}), UNFIT),
        (scales(THUMB, main="other"), UNFIT),
        ({"questionnaire": None}, UNFIT),
        (scales(THUMB | {"values": [0, 10**400]}), UNFIT),
        (
            scales(CLASSES, THUMB | {"asked": False}),
            "in 3 columns, and its questions have 5 here → use the pollex that fitted it, or fit it again",
        ),
        *(
            ({"arrays": name}, NO_NAME)
            for name in ("../outside.safetensors", "/etc/hostname", None, 3)
        ),
    ],
)
def test_another_format_facts_that_do_not_fit_and_arrays_elsewhere_are_refused(
    folder: Path, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(BadCalibrator, match=message):
        load(changed(folder, **changes))


def test_what_is_no_json_and_arrays_that_are_missing_or_of_another_calibrator_are_refused(
    folder: Path,
) -> None:
    (arrays,) = folder.glob("*.safetensors")
    arrays.write_bytes(serialize_calibrator(fitted(shared=1.0)).arrays)
    with pytest.raises(BadCalibrator, match="not the ones that were written with it"):
        load(folder)
    arrays.unlink()
    with pytest.raises(BadCalibrator, match=f"put {arrays.name} beside it again"):
        load(folder)
    for text in ("{", "[1]", "\x00", "[" * 100_000):
        (folder / "calibrator.json").write_text(text, "utf-8")
        with pytest.raises(BadCalibrator, match=r"not (a )?JSON"):
            load(folder)
    (folder / "calibrator.json").unlink()
    with pytest.raises(BadCalibrator, match="pollex calibrate fit --out"):
        load(folder)


def test_what_can_not_be_written_is_refused_before_anything_is(tmp_path: Path) -> None:
    model = fitted()
    model.shared = np.inf  # type: ignore[attr-defined]
    with pytest.raises(WrongUse, match="can't be written as JSON"):
        save(model, tmp_path / "kept")
    assert not (tmp_path / "kept").exists()
    (tmp_path / "file").write_text("")
    with pytest.raises(WrongUse, match="give another folder"):
        save(fitted(), tmp_path / "file")


@pytest.mark.parametrize("settings", [{}, {"slopes": None, "shared": 1.0}])
def test_what_was_kept_predicts_as_before(tmp_path: Path, settings: dict[str, Any]) -> None:
    model = fitted(**settings)
    again = load(save(model, tmp_path))
    X = answers(12, seed=1)
    for judges in (None, [*JUDGES, "stranger", None] * 2):
        np.testing.assert_array_equal(
            again.predict_proba(X, judges), model.predict_proba(X, judges)
        )
    assert again.get_params() == model.get_params()
    assert (again.questionnaire_, again.judges_) == (model.questionnaire_, model.judges_)


def test_the_same_calibrator_is_kept_as_the_same_bytes_readable_json_with_safetensors_beside_it(
    folder: Path,
) -> None:
    facts = facts_of(folder)
    kept = serialize_calibrator(fitted())
    assert json.loads(json.dumps(kept.facts)).items() <= facts.items()
    assert (
        (folder / facts["arrays"]).read_bytes()
        == kept.arrays
        == serialize_calibrator(deserialize_calibrator(kept.facts, kept.arrays)).arrays
    )
    assert (facts["model"], facts["format"]) == ("ordinal", 1)
    thumb = {"question": "thumb", "values": [0.0, 1.0], "ordinal": True, "asked": False}
    assert facts["questionnaire"]["scales"][1] == thumb
    assert load_file(folder / facts["arrays"]).keys() == fitted().state().arrays.keys()


def test_a_second_calibrator_takes_the_first_ones_place(folder: Path) -> None:
    save(fitted(shared=1.0), folder)
    assert load(folder).get_params()["shared"] == 1.0
    assert len(list(folder.iterdir())) == 2


def test_a_calibrator_can_be_kept_inside_another() -> None:
    model = fitted()
    one = get_calibrator_state(model, "one.")
    two = get_calibrator_state(fitted(shared=1.0), "two.")
    one.arrays.update(two.arrays)
    np.testing.assert_array_equal(
        restore_calibrator_from_state(one, "one.").predict_proba(answers()),
        model.predict_proba(answers()),
    )


def test_one_that_asks_nothing_or_whose_values_are_a_list_or_an_array_is_kept_as_any_other(
    tmp_path: Path,
) -> None:
    nothing = Questionnaire((Scale("thumb", (0.0, 1.0), asked=False),), "thumb")
    silent = Constant().fit(np.zeros((2, 0)), [0, 1], ["ann", "bob"], nothing)
    again = load(save(silent, tmp_path))
    assert again.predict(np.zeros((1, 0)), ["bob"]) == silent.predict(np.zeros((1, 0)), ["bob"])
    for values in ([0, 1, 2], np.arange(3), np.arange(3, dtype=np.float32)):
        questions = Questionnaire([Scale("main", values)], "main")  # type: ignore[arg-type]
        model = OrdinalMixedEffects().fit(answers(), [0, 1, 2, 1] * 10, questions=questions)
        again = load(save(model, tmp_path))
        assert (
            again.questionnaire_
            == questions
            == Questionnaire((Scale("main", (0.0, 1.0, 2.0)),), "main")
        )
        np.testing.assert_array_equal(again.predict(answers()), model.predict(answers()))


def test_arrays_of_no_numbers_are_refused() -> None:
    pack = serialize_calibrator(fitted())
    head = 8 + int.from_bytes(pack.arrays[:8], "little")
    arrays = pack.arrays[:head].ljust(len(pack.arrays), b"\xff")
    facts = {**pack.facts, "arrays_sha256": hashlib.sha256(arrays).hexdigest()}
    with pytest.raises(BadCalibrator, match="it can't be restored from this file"):
        deserialize_calibrator(facts, arrays)


@pytest.mark.parametrize("spread", [0.0, -1.0, np.nan])
def test_columns_without_spread_and_arrays_of_other_names_are_refused_in_words(
    spread: float,
) -> None:
    pack = serialize_calibrator(fitted())
    learned = load_arrays(pack.arrays)
    spreads = {name: np.full_like(learned[name], spread) for name in learned if "spread" in name}
    assert spreads
    for changed in (learned | spreads, {"other": np.zeros(1)}):
        arrays = save_arrays(changed)
        facts = {**pack.facts, "arrays_sha256": hashlib.sha256(arrays).hexdigest()}
        with pytest.raises(BadCalibrator, match="its facts and arrays don't fit each other"):
            deserialize_calibrator(facts, arrays)
