"""What leaving a synthetic system out can tell of settings, and what those that it can't tell apart reach elsewhere.

    python benchmarks/llm_rubric_settings.py --data FOLDER [--processes 2]

FOLDER has LLM-Rubric's four released tables. The ordinal model on the nine expected scores, in every combination of
`GRID`, is tried by leaving each of five synthetic systems out, and measured on the real dialogues. Nothing is chosen
here: the table says between which figures a choice by that evidence can fall. A setting can't be told from the best
where its log-loss is no more than so many standard errors of the difference (over dialogues) behind it.
"""

import argparse
import itertools
import multiprocessing
import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from leftovers import end_with_parent
from llm_rubric_data import systems_of, with_scores_alone
from llm_rubric_methods import Method, kind
from llm_rubric_runs import Material, beside

from pollex.calibration.model_choice import standard_error
from pollex.measures.arrays import Floats
from pollex.measures.distributions import Predictions, Quality, assess, log_losses

GRID: dict[str, tuple[float | None, ...]] = {
    "shared": (1.0, 3.0, 10.0, 30.0, 60.0, 100.0),
    "intercepts": (1.0, 2.0, 4.0, 8.0, 16.0),
    "scales": (4.0, 10.0, 30.0, None),
    "slopes": (None, 400.0, 200.0, 100.0, 50.0),
}
PEARSON, RMSE = 0.275, 0.766
"""What was to be reached on real dialogues."""


@dataclass(frozen=True, eq=False)
class Tried:
    """One setting.

    Attributes:
        left_out: Predictions of the synthetic sheets, each by a model that has not seen its system.
        real: Of the real ones.
    """

    settings: dict[str, Any]
    left_out: Predictions
    real: Quality

    @property
    def losses(self) -> Floats:
        """−log p of each synthetic judgment, its system left out."""
        return log_losses(self.left_out.proba, self.left_out.answer)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    arguments = parser.parse_args()
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    every = [dict(zip(GRID, values, strict=True)) for values in itertools.product(*GRID.values())]
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(arguments.processes, context, initializer=_begin, initargs=(arguments.data,)) as pool:
        print(in_words(list(pool.map(_tried, every, chunksize=10))))


def tried(settings: dict[str, Any], material: Material) -> Tried:
    """Learns with a setting, without each system and on all synthetic sheets."""
    method, synthetic = Method("", kind("ordinal", **settings), view=with_scores_alone), material.synthetic
    proba = np.zeros((len(synthetic), len(synthetic.questions.scale().values)))
    for rows in systems_of(synthetic):
        proba[rows], _ = method.predict(synthetic.without(rows), synthetic.part(rows), 0)
    real, _ = method.predict(synthetic, material.real, 0)
    return Tried(settings, beside(proba, synthetic), assess(beside(real, material.real), smooth=False))


def close(every: Sequence[Tried], errors: float) -> list[int]:
    """Places of the settings that are no more than so many standard errors behind the best; the best is one of them."""
    losses = np.stack([one.losses for one in every])
    best = int(losses.mean(axis=1).argmin())
    text = every[best].left_out.text
    behind = losses - losses[best]
    return [place for place, row in enumerate(behind) if row.mean() <= errors * standard_error(row, text)]


def in_words(every: Sequence[Tried]) -> str:
    """The table."""
    sizes = len(every[0].losses), every[0].real.n
    title = f"{len(every)} settings of the ordinal model, {sizes[0]} synthetic sheets, {sizes[1]} real ones"
    names = ("settings", "log-loss, at most", "real Pearson: least, median, most", f"≥ {PEARSON}, RMSE ≤ {RMSE}")
    lines = [title, _line("no further behind the best than", names)]
    for name, errors in (("1 standard error", 1), ("2 standard errors", 2)):
        lines.append(_line(name, _cells([every[place] for place in close(every, errors)])))
    return "\n".join([*lines, _line("(all)", _cells(every))])


def _cells(those: Sequence[Tried]) -> tuple[str, ...]:
    figures = np.array([[one.real.pearson.value, one.real.rmse.value] for one in those], dtype=np.float64)
    reached = (figures[:, 0] >= PEARSON) & (figures[:, 1] <= RMSE)
    return (
        str(len(those)),
        f"{max(one.losses.mean() for one in those):.3f}",
        ", ".join(f"{figure:.3f}" for figure in np.quantile(figures[:, 0], [0, 0.5, 1])),
        f"{int(reached.sum())} of {len(those)}",
    )


def _line(title: str, cells: Sequence[str]) -> str:
    return f"{title:<33}" + "".join(f"{cell:>{width}}" for cell, width in zip(cells, (9, 19, 35, 24), strict=True))


def _begin(folder: Path) -> None:
    # A process of the pool reads its material once.
    global _material
    end_with_parent()
    _material = Material.read(folder)


def _tried(settings: dict[str, Any]) -> Tried:
    return tried(settings, _material)


_material: Material


if __name__ == "__main__":
    main()
