"""What there is to compute, one process a core."""

from __future__ import annotations

import multiprocessing
import os
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from leftovers import end_with_parent
from llm_rubric_data import AnswerMatrix, folds_of, read_sheets, systems_of
from llm_rubric_methods import CHOSEN_ONCE, CURVE, CV, REAL, chosen_once, everything

from pollex.calibration.judgments import convert_judgments_to_arrays
from pollex.measures.arrays import Floats
from pollex.measures.distributions import Predictions
from pollex.rooms.questionnaire.calibration.crossfit import (
    LearningCurvePoint,
    compute_learning_curve,
)


@dataclass(frozen=True)
class Task:
    """One thing to compute.

    Attributes:
        key: Of the method.
        where: One of the constants.
        seed: Of the method.
        split: Of the folds, where there are any.
        repeats: Draws of training texts.
    """

    key: str
    where: str
    seed: int = 0
    split: int = 0
    repeats: int = 0


@dataclass(frozen=True, eq=False)
class Done:
    """What came of it.

    Attributes:
        predictions: None for a curve.
        note: What the estimator says about its choice.
    """

    task: Task
    predictions: Predictions | None = None
    seconds: float = 0.0
    note: str = ""
    curve: tuple[LearningCurvePoint, ...] = ()


@dataclass(frozen=True, eq=False)
class Material:
    """Both sets of sheets."""

    synthetic: AnswerMatrix
    real: AnswerMatrix

    @classmethod
    def read(cls, folder: Path) -> Material:
        """From the released tables."""
        return cls(read_sheets(folder, "synthetic"), read_sheets(folder, "real"))


def all_done(tasks: Sequence[Task], folder: Path, processes: int) -> list[Done]:
    """Computes tasks, the likely longest first; says on stderr how far it is."""
    # One thread each: the arrays are small, and threads of two processes would be in each other's
    # way.
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    context = multiprocessing.get_context("spawn")
    found = []
    with ProcessPoolExecutor(processes, context, initializer=_begin, initargs=(folder,)) as pool:
        waiting = [pool.submit(_done, task) for task in tasks]
        for number, future in enumerate(as_completed(waiting), start=1):
            found.append(future.result())
            _tell(
                f"\r{number}/{len(tasks)} {found[-1].task.key} {found[-1].task.where} {found[-1].seconds:.0f} s".ljust(
                    70
                )
            )
    _tell("\r" + " " * 70 + "\r")
    return found


def computed(task: Task, material: Material) -> Done:
    """Computes one task."""
    start = time.perf_counter()
    if task.where == CURVE:
        done = Done(task, curve=tuple(curve(task, material.synthetic)))
    elif task.where == REAL:
        proba, note = everything()[task.key].predict(material.synthetic, material.real, task.seed)
        done = Done(task, beside(proba, material.real), note=note)
    else:
        done = held_out(task, material.synthetic)
    return replace(done, seconds=time.perf_counter() - start)


def held_out(task: Task, sheets: AnswerMatrix) -> Done:
    """Pooled predictions of all folds, each by a model that has not seen its dialogues."""
    method = everything()[task.key]
    if task.key == CHOSEN_ONCE:
        method = chosen_once(method, sheets, task.seed)
    folds = folds_of(sheets, task.split) if task.where == CV else systems_of(sheets)
    proba = np.zeros((len(sheets), len(sheets.questions.scale().values)))
    notes = []
    for rows in folds:
        proba[rows], note = method.predict(sheets.without(rows), sheets.part(rows), task.seed)
        notes.append(note)
    return Done(task, beside(proba, sheets), note="; ".join(filter(None, notes)))


def beside(proba: Floats, sheets: AnswerMatrix) -> Predictions:
    """Predictions beside what was answered to Q0."""
    return Predictions(proba, sheets.main, sheets.dialogue, sheets.questions.scale().values)


def curve(task: Task, sheets: AnswerMatrix) -> list[LearningCurvePoint]:
    """Cross-validation with a growing share of each fold's training dialogues."""
    model = everything()[task.key].make(task.seed)
    y = convert_judgments_to_arrays(sheets.said, questions=sheets.questions)
    rng = np.random.default_rng(task.seed)
    folds = folds_of(sheets, task.split)
    return compute_learning_curve(
        model,
        sheets.X,
        y,
        sheets.questions,
        folds,
        rng,
        repeats=task.repeats,
        groups=sheets.dialogue,
    )


def _begin(folder: Path) -> None:
    # A process of the pool reads its material once.
    global _material
    end_with_parent()
    _material = Material.read(folder)


def _done(task: Task) -> Done:
    return computed(task, _material)


_material: Material


def _tell(words: str) -> None:
    sys.stderr.write(words)
    sys.stderr.flush()
