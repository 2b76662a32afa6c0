"""Calibrators: one file an estimator, found under the file's name; rooms have more in the same place.

A new module in this folder with one class that derives from `JudgedEstimator` is a new calibrator.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING

from pollex.errors import WrongUse
from pollex.rooms import find_module, list_modules_in_part

if TYPE_CHECKING:
    from pollex.calibration.estimator import JudgedEstimator

MODELS_PACKAGE_NAME = "calibration.models"
"""Where this package and rooms have their calibrators."""


def list_model_names() -> tuple[str, ...]:
    """Return the names of all calibrators, those of rooms among them."""
    return tuple(sorted(list_modules_in_part(MODELS_PACKAGE_NAME)))


def get_model_class(name: str) -> type[JudgedEstimator]:
    """Return the estimator class of a name; PyTorch is imported only if needed.

    Raises:
        WrongUse: There is none.
    """
    # a name may come out of a file: only a module's name is looked for
    home = find_module(MODELS_PACKAGE_NAME, name) if name.isidentifier() else None
    if home is None:
        raise WrongUse(
            f"no calibrator is called {name!r}",
            hint=f"use one of {', '.join(list_model_names())}",
        )

    # scikit-learn comes with it, and takes a second to import
    from pollex.calibration.estimator import JudgedEstimator

    module = import_module(home)
    classes = [kind for _, kind in inspect.getmembers(module, inspect.isclass)]
    estimators = []
    for kind in classes:
        if issubclass(kind, JudgedEstimator) and kind.__module__ == module.__name__:
            estimators.append(kind)
    (estimator,) = estimators
    return estimator


def make_model(name: str, settings: Mapping[str, object]) -> JudgedEstimator:
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
    return type(model).__module__.rpartition(".")[2]
