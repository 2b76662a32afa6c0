"""Calibrators: one file an estimator, found under the file's name; the baselines share one.

A new module in this folder with one class that derives from `JudgedEstimator` is a new calibrator.
"""

from __future__ import annotations

import inspect
import pkgutil
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from pollex.errors import WrongUse

if TYPE_CHECKING:
    from pollex.calibration.estimator import JudgedEstimator

BASELINES = {
    "argmax": "Argmax",
    "as_is": "AsIs",
    "constant": "Constant",
    "judge_mean": "JudgeMean",
    "main_alone": "MainAlone",
}
"""Names and classes of those in `baselines`."""

MODEL_NAMES = (
    *BASELINES,
    *(module.name for module in pkgutil.iter_modules(__path__) if module.name != "baselines"),
)


def get_model_class(name: str) -> type[JudgedEstimator]:
    """Return the estimator class of a name; PyTorch is imported only if needed.

    Raises:
        WrongUse: There is none.
    """
    if name not in MODEL_NAMES:
        raise WrongUse(
            f"no calibrator is called {name!r}",
            hint=f"use one of {', '.join(MODEL_NAMES)}",
        )

    # scikit-learn comes with it, and takes a second to import
    from pollex.calibration.estimator import JudgedEstimator

    if name in BASELINES:
        baseline: type[JudgedEstimator] = getattr(
            import_module(f"{__name__}.baselines"),
            BASELINES[name],
        )
        return baseline

    module = import_module(f"{__name__}.{name}")
    classes = [kind for _, kind in inspect.getmembers(module, inspect.isclass)]
    (estimator,) = [
        kind
        for kind in classes
        if issubclass(kind, JudgedEstimator) and kind.__module__ == module.__name__
    ]
    return estimator


def make_model(name: str, settings: Mapping[str, Any]) -> JudgedEstimator:
    """Return an estimator that has not learned yet.

    Raises:
        WrongUse: There is none of that name, or it has no such setting.
    """
    kind = get_model_class(name)
    settings_of_kind = kind().get_params(deep=False)
    if unknown := sorted(set(settings) - set(settings_of_kind)):
        raise WrongUse(
            f"calibrator {name!r} has no setting {unknown[0]!r}",
            hint=f"it has {', '.join(settings_of_kind) or 'none'}",
        )

    return kind(**settings)


def get_model_name(model: JudgedEstimator) -> str:
    """Return the name that `get_model_class` finds its class by."""
    names_by_class = {kind: name for name, kind in BASELINES.items()}
    return names_by_class.get(type(model).__name__) or type(model).__module__.rpartition(".")[2]
