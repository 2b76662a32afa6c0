"""Fitted calibrators as files: readable JSON with the arrays as safetensors beside it, never pickle.

The arrays' file is named after its content, and the JSON says which it is: the JSON appears last
and at once, so a reader finds the old calibrator or the new one, never a half of each. What is read
was perhaps edited or damaged: names and hashes are checked, and nothing in a file can run.
"""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as arrays_of
from safetensors.numpy import save as bytes_of

from pollex.calibration import CALIBRATOR_FILE_NAME
from pollex.calibration.estimator import EstimatorState
from pollex.calibration.models import get_model_class, get_model_name
from pollex.calibration.questionnaire import Questionnaire, Scale
from pollex.errors import BadCalibrator, WrongUse
from pollex.outputs import write_file
from pollex.text import read_file_bytes, read_file_text

if TYPE_CHECKING:
    from pollex.calibration.estimator import JudgedEstimator


CALIBRATOR_FORMAT_VERSION = 1
SECOND_CALIBRATOR_PREFIX = "beside."
QUESTION_ARRAY_PREFIX = "question.{}."
"""Before the arrays' names of what was fitted for another question, by its place in the questionnaire."""
FIT_AGAIN_HINT = "fit it again: pollex calibrate fit"

MALFORMED_CALIBRATOR_ERRORS = (
    SafetensorError,
    LookupError,
    TypeError,
    ValueError,
    AttributeError,
    ArithmeticError,
    RuntimeError,
)
"""What comes of facts and arrays that don't fit each other; a RuntimeError where they are nested without end, too."""

RETIRED_SETTING_NAMES = {
    "drift",
    "memory",
    "adapting_decay",
    "coding",
    "questions",
    "only",
    "mixture",
}
"""Settings that calibrators had of an earlier pollex: no command set them, or they changed no prediction."""


@dataclass(frozen=True, eq=False)
class CalibratorFiles:
    """A fitted calibrator, ready to be written.

    Attributes:
        facts: JSON values: the model, its settings, the questionnaire, what it learned, and the
            hash of the arrays.
        arrays: In the format of safetensors.
    """

    facts: dict[str, Any]
    arrays: bytes


def serialize_calibrator(
    model: JudgedEstimator,
    beside: JudgedEstimator | None = None,
    others: Sequence[JudgedEstimator] = (),
) -> CalibratorFiles:
    """Return a fitted calibrator as JSON values and bytes; the same for the same model.

    Args:
        beside: Another one whose arrays go into the same file; its facts stand under `beside`.
        others: Those of other questions, likewise; their facts stand under `questions`, by
            question.

    Raises:
        WrongUse: A setting or a fact can't be written as JSON.
    """
    # arrays of all calibrators go into one file; names tell whose they are
    state = get_calibrator_state(model)
    if beside is None:
        other = EstimatorState({}, {})
    else:
        other = get_calibrator_state(beside, SECOND_CALIBRATOR_PREFIX)

    other_states = {}
    for other_model in others:
        questions = other_model.questionnaire_
        prefix = QUESTION_ARRAY_PREFIX.format(questions.index())
        other_states[questions.main] = get_calibrator_state(other_model, prefix)

    arrays_by_name = state.arrays | other.arrays
    for other_state in other_states.values():
        arrays_by_name |= other_state.arrays

    every = sorted(arrays_by_name.items())
    arrays = bytes_of({name: np.array(value, order="C") for name, value in every})

    # the facts say which arrays belong to them, by their hash
    facts: dict[str, object] = {"format": CALIBRATOR_FORMAT_VERSION, "pollex": version("pollex")}
    if beside:
        facts["beside"] = other.facts
    if other_states:
        facts["questions"] = {name: learned.facts for name, learned in other_states.items()}

    return CalibratorFiles(
        facts | state.facts | {"arrays_sha256": hashlib.sha256(arrays).hexdigest()},
        arrays,
    )


def deserialize_calibrator(
    facts: Mapping[str, object],
    arrays: bytes,
    where: str = "calibrator",
    prefix: str = "",
) -> JudgedEstimator:
    """Return the calibrator that `packed` was given.

    Args:
        where: The file, for messages.
        prefix: `SECOND_CALIBRATOR_PREFIX` for the one beside it.

    Raises:
        BadCalibrator: Another format, an unknown model, arrays that aren't the ones written, facts
            that don't fit.
    """
    # a format that this pollex reads, and the arrays that were written with it
    if facts.get("format") != CALIBRATOR_FORMAT_VERSION:
        raise BadCalibrator(
            f"a calibrator of format {facts.get('format')!r}; this pollex reads format {CALIBRATOR_FORMAT_VERSION}",
            where=where,
            hint=f"use pollex {facts.get('pollex', 'of its time')}, or {FIT_AGAIN_HINT}",
        )

    if hashlib.sha256(arrays).hexdigest() != facts.get("arrays_sha256"):
        raise BadCalibrator(
            "the arrays are not the ones that were written with it",
            where=where,
            hint=FIT_AGAIN_HINT,
        )

    # facts and arrays that don't fit each other fail here, in many ways
    try:
        model = restore_calibrator_from_state(
            EstimatorState(dict(facts), arrays_of(arrays)), prefix
        )
        _require_valid_predicted_probabilities(model)
    except WrongUse as error:  # a model or a questionnaire that there is not
        raise BadCalibrator(
            error.what,
            where=where,
            hint=f"{error.hint}, or {FIT_AGAIN_HINT}",
        ) from error
    except MALFORMED_CALIBRATOR_ERRORS as error:
        what = "it can't be restored from this file: its facts and arrays don't fit each other"
        raise BadCalibrator(what, where=where, hint=FIT_AGAIN_HINT) from error

    return model


def _require_valid_predicted_probabilities(model: JudgedEstimator) -> None:
    """Refuse a model that gives no probabilities: what was learned of it was changed.

    Raises:
        ValueError, IndexError: It gives none.
    """
    asked_scales = []
    for scale in model.questionnaire_.scales:
        if scale.asked:
            asked_scales.append(scale)

    undecided = []
    for scale in asked_scales:
        for _ in scale.values:
            undecided.append(1 / len(scale.values))

    with np.errstate(all="ignore"):
        probabilities = model.predict_proba(np.array([undecided]), model.judges_[:1] or None)
    if not np.isfinite(probabilities).all():
        raise ValueError("it gives no probabilities")


def get_calibrator_state(model: JudgedEstimator, prefix: str = "") -> EstimatorState:
    """Return the full state of a fitted calibrator, so that another may contain it.

    Args:
        prefix: Before the arrays' names, where several share one file.

    Raises:
        WrongUse: A setting or a fact can't be written as JSON.
    """
    state = model.state()
    questions = model.questionnaire_
    facts = {
        "model": get_model_name(model),
        "settings": _convert_to_json_value(model.get_params(deep=False)),
        "questionnaire": {
            "main": questions.main,
            "scales": [_convert_to_json_value(asdict(scale)) for scale in questions.scales],
        },
        "learned": _convert_to_json_value(state.facts),
    }

    return EstimatorState(
        facts,
        {prefix + name: value for name, value in state.arrays.items()},
    )


def restore_calibrator_from_state(state: EstimatorState, prefix: str = "") -> JudgedEstimator:
    """Return the calibrator that `described` was given; arrays of other prefixes are left alone.

    Raises:
        WrongUse: No such model, or no questionnaire.
        KeyError, TypeError, ValueError: Facts or arrays that don't fit.
    """
    facts = state.facts
    arrays = {}
    for name, value in state.arrays.items():
        if name.startswith(prefix):
            arrays[name.removeprefix(prefix)] = value

    questionnaire = facts["questionnaire"]
    scales = []
    for scale in questionnaire["scales"]:
        values = tuple(map(float, scale["values"]))
        scales.append(Scale(**{**scale, "values": values}))

    questions = Questionnaire(tuple(scales), questionnaire["main"])
    kind = get_model_class(facts["model"])
    return kind.from_state(
        _restore_settings_from_json(kind, facts["settings"]),
        questions,
        EstimatorState(dict(facts["learned"]), arrays),
    )


def save(
    model: JudgedEstimator,
    folder: Path,
    others: Sequence[JudgedEstimator] = (),
) -> Path:
    """Write a fitted calibrator into a folder, replacing an earlier one; return the path.

    Args:
        others: What was fitted for other questions of the same questionnaire.

    Raises:
        WrongUse: The folder can't be written.
    """
    # the arrays first, the JSON that names them last
    pack = serialize_calibrator(model, others=others)
    arrays = f"calibrator-{pack.facts['arrays_sha256'][:12]}.safetensors"
    text = json.dumps(
        pack.facts | {"arrays": arrays},
        indent=2,
        ensure_ascii=False,
        allow_nan=False,
    )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_file(folder / arrays, pack.arrays, named=False)
        write_file(folder / CALIBRATOR_FILE_NAME, f"{text}\n".encode(), named=False)
        # arrays of earlier calibrators are no longer named by anything
        for other in folder.glob("calibrator-*.safetensors"):
            if other.name != arrays:
                other.unlink(missing_ok=True)
    except OSError as error:
        raise WrongUse(
            f"can't be written: {error.strerror or error}",
            where=str(folder),
            hint="give another folder",
        ) from error

    return folder / CALIBRATOR_FILE_NAME


def load(path: Path) -> JudgedEstimator:
    """Load the calibrator in a folder, or of the JSON file named.

    Raises:
        BadCalibrator: Nothing is there, or it can't be trusted; says what to do.
    """
    return deserialize_calibrator(*_read_calibrator_files(path))


def load_each(path: Path) -> dict[str, JudgedEstimator]:
    """Load the calibrator of every question that one was fitted for, the main one first; see `load`."""
    facts, arrays, where = _read_calibrator_files(path)
    main = deserialize_calibrator(facts, arrays, where)
    others = facts.get("questions", {})
    # each other question is one of the questionnaire
    if not isinstance(others, dict) or not all(
        isinstance(other_facts, dict) for other_facts in others.values()
    ):
        raise BadCalibrator(
            "its questions are no objects",
            where=where,
            hint=FIT_AGAIN_HINT,
        )

    places = {}
    for n, scale in enumerate(main.questionnaire_.scales):
        places[scale.question] = QUESTION_ARRAY_PREFIX.format(n)

    if strange := sorted(others.keys() - places.keys()):
        raise BadCalibrator(
            f"it has no question {strange[0]!r}",
            where=where,
            hint=FIT_AGAIN_HINT,
        )

    calibrators = {}
    for name, other_facts in others.items():
        calibrators[name] = deserialize_calibrator(
            facts | other_facts,
            arrays,
            where,
            places[name],
        )

    return {main.questionnaire_.main: main} | calibrators


def is_calibrator_file(path: Path) -> bool:
    """Tell whether a file says that it is a calibrator."""
    try:
        facts = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        return False

    return isinstance(facts, dict) and facts.get("format") == CALIBRATOR_FORMAT_VERSION


def _read_calibrator_files(path: Path) -> tuple[dict[str, object], bytes, str]:
    """Return the facts of a calibrator, its arrays, and its file for messages."""
    # the JSON, and then the arrays that it names
    file = path / CALIBRATOR_FILE_NAME if path.is_dir() else path
    try:
        facts = json.loads(read_file_text(file))
    except OSError as error:
        hint = "name the folder that `pollex calibrate fit --out` wrote"
        raise BadCalibrator(
            f"no calibrator can be read there: {error.strerror}",
            where=str(file),
            hint=hint,
        ) from error
    except (ValueError, RecursionError) as error:
        raise BadCalibrator(
            f"not JSON: {error}",
            where=str(file),
            hint=FIT_AGAIN_HINT,
        ) from error

    if not isinstance(facts, dict):
        raise BadCalibrator("not a JSON object", where=str(file), hint=FIT_AGAIN_HINT)

    name = facts.pop("arrays", None)
    if not isinstance(name, str) or Path(name).name != name:
        raise BadCalibrator(
            f"its arrays' file is called {name!r:.60}",
            where=str(file),
            hint=FIT_AGAIN_HINT,
        )

    try:
        arrays = read_file_bytes(file.parent / name)
    except OSError as error:
        hint = f"put {name} beside it again, or {FIT_AGAIN_HINT}"
        raise BadCalibrator(
            f"its arrays can't be read: {error.strerror}",
            where=str(file.parent / name),
            hint=hint,
        ) from error

    return facts, arrays, str(file)


def _convert_to_json_value(value: object) -> object:
    """Convert a value to JSON types; an unfitted estimator becomes name and settings.

    Raises:
        WrongUse: There is no such form.
    """
    # as in `models`: a file that isn't there needs none of it
    from pollex.calibration.estimator import JudgedEstimator

    if isinstance(value, JudgedEstimator):
        return {
            "estimator": get_model_name(value),
            "settings": _convert_to_json_value(value.get_params(deep=False)),
        }
    if isinstance(value, Mapping):
        return {str(key): _convert_to_json_value(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_convert_to_json_value(inner) for inner in value]
    if isinstance(value, np.generic):
        return _convert_to_json_value(value.item())
    if (
        value is None
        or isinstance(value, (bool, int, str))
        or (isinstance(value, float) and np.isfinite(value))
    ):
        return value

    raise WrongUse(
        f"{value!r} can't be written as JSON",
        where="settings or state",
        hint="keep arrays apart, and numbers finite",
    )


def _restore_settings_from_json(
    kind: type[JudgedEstimator], stored: Mapping[str, object]
) -> dict[str, object]:
    """Restore settings from JSON: lists become tuples if the default is one."""
    defaults = {}
    for name, parameter in inspect.signature(kind).parameters.items():
        defaults[name] = parameter.default

    restored = {}
    for name, value in stored.items():
        if name not in RETIRED_SETTING_NAMES:
            restored[name] = _restore_value_from_json(value)

    settings = {}
    for name, value in restored.items():
        was_tuple = isinstance(value, list) and isinstance(defaults.get(name), tuple)
        settings[name] = tuple(value) if was_tuple else value

    return settings


def _restore_value_from_json(value: object) -> Any:
    if isinstance(value, dict) and value.keys() == {"estimator", "settings"}:
        kind = get_model_class(value["estimator"])
        return kind(**_restore_settings_from_json(kind, value["settings"]))
    if isinstance(value, dict):
        values = {}
        for key, inner in value.items():
            values[key] = _restore_value_from_json(inner)

        return values
    if isinstance(value, list):
        return [_restore_value_from_json(inner) for inner in value]
    return value
