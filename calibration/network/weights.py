"""Weights of calibration networks of one shape, and their predictions. NumPy only.

Source: Hashemi et al. 2024, equations 3–5, doi:10.18653/v1/2024.acl-long.745. For a judge a:

    z1 = σ((W1 + W1ᵃ) [x; 1]) z2 = σ((W2 + W2ᵃ) [z1; 1]) p̂(y | question) = softmax((V + Vᵃ) [z2;
    1])

or, for a question with a cumulative-link head, P(answer ≤ k) = σ((cutₖ − l)·eˢ) with (l, s) = (V +
Vᵃ) [z2; 1]: location and log scale. The bias comes last, as the columns of a missing-answer mask
come between x and it.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit, softmax

from pollex.calibration.judgments import UNKNOWN_JUDGE_CODE
from pollex.measures.arrays import Floats, Ints

WeightArray = npt.NDArray[Any]

MAX_ROWS_PREDICTED_AT_ONCE = 4096
"""So many rows are predicted at once, which bounds the memory."""

MAX_LOG_SCALE = 3.0
"""The log scale of a cumulative-link head stays within ± this."""


@dataclass(frozen=True, eq=False)
class Weights:
    """Shared weights, judges' deltas, and cuts.

    Attributes:
        W1: `[seed, input + 1, h1]`.
        W2: `[seed, h1 + 1, h2]`.
        V: `[seed, h2 + 1, question × output]`; a question has as many outputs as the largest has
            options.
        W1a: `[seed, judge, input + 1, h1]`; no judges where there are no deltas.
        W2a: `[seed, judge, h1 + 1, h2]`, likewise.
        Va: `[seed, judge, h2 + 1, question × output]`, likewise.
        cuts: `[seed, question, option − 1]`, ascending; read for cumulative-link heads only.
        options: How many each question has `[question]`.
        ordinal: Which questions have a cumulative-link head `[question]`.
    """

    W1: WeightArray
    W2: WeightArray
    V: WeightArray
    W1a: WeightArray
    W2a: WeightArray
    Va: WeightArray
    cuts: WeightArray
    options: Ints
    ordinal: npt.NDArray[np.bool_]

    def arrays(self) -> dict[str, WeightArray]:
        """Return the arrays by name."""
        arrays: dict[str, WeightArray] = {}
        for field in fields(self):
            arrays[field.name] = getattr(self, field.name)
        return arrays

    def only(self, question: int) -> Weights:
        """Return the same with the head of one question."""
        head = slice(question, question + 1)
        V = self._head(self.V, question)
        Va = self._head(self.Va, question)

        return replace(
            self,
            V=V,
            Va=Va,
            cuts=self.cuts[:, head],
            options=self.options[head],
            ordinal=self.ordinal[head],
        )

    def with_judges(self, codes: Ints) -> Weights:
        """Reorder judges: `codes` has the old place of each `[judge]`."""
        return replace(
            self,
            W1a=self.W1a[:, codes],
            W2a=self.W2a[:, codes],
            Va=self.Va[:, codes],
        )

    def proba(
        self,
        inputs: Floats,
        judges: Ints,
        question: int,
        begins: Floats | None = None,
    ) -> Floats:
        """Return the probability of each answer, mean over the seeds `[row, option]`.

        Args:
            inputs: `[row, input + 1]`, with the bias.
            judges: Codes `[row]`; −1 for nobody known, who gets the shared part.
            question: Place among the heads.
            begins: Log-probabilities that the logits are added to `[row, option]`; None: 0.
        """
        # some rows at a time
        out = np.empty((len(inputs), int(self.options[question])))
        for start in range(0, len(inputs), MAX_ROWS_PREDICTED_AT_ONCE):
            part = slice(start, start + MAX_ROWS_PREDICTED_AT_ONCE)
            begins_of_part = 0.0 if begins is None else begins[part]
            out[part] = self._proba(
                inputs[part],
                judges[part],
                question,
                begins_of_part,
            )

        return out

    def _proba(
        self,
        inputs: Floats,
        judges: Ints,
        question: int,
        begins: Floats | float,
    ) -> Floats:
        # shared logits `[seed, row, output]`, and the deltas of the judges who are known
        hidden = self._hidden(inputs, judges)
        logits = _append_bias_column(hidden) @ self._head(self.V, question)
        if self.Va.shape[1]:
            has_deltas = judges != UNKNOWN_JUDGE_CODE
            deltas = self._head(self.Va, question)[:, judges[has_deltas]]
            logits[:, has_deltas] += np.einsum(
                "srh,srho->sro",
                _append_bias_column(hidden[:, has_deltas]),
                deltas,
            )

        if self.ordinal[question]:
            by_seed = self._ordinal(logits, question)
        else:
            by_seed = self._softmax(logits, question, begins)

        mean: Floats = by_seed.mean(axis=0)
        return mean

    def _hidden(self, inputs: Floats, judges: Ints) -> Floats:
        """Compute z2 `[seed, row, h2]`."""
        if not self.W1a.shape[1]:
            return _apply_shared_layers(inputs, self.W1, self.W2)

        # rows of one judge go through the same layers
        out = np.empty((len(self.W1), len(inputs), self.W2.shape[2]))
        for judge in np.unique(judges):
            rows = judges == judge
            W1 = self.W1
            W2 = self.W2
            if judge != UNKNOWN_JUDGE_CODE:
                W1 = W1 + self.W1a[:, judge]
                W2 = W2 + self.W2a[:, judge]
            out[:, rows] = _apply_shared_layers(inputs[rows], W1, W2)

        return out

    def _head(self, V: WeightArray, question: int) -> WeightArray:
        width = V.shape[-1] // len(self.options)
        return V[..., question * width : (question + 1) * width]

    def _softmax(
        self,
        logits: Floats,
        question: int,
        begins: Floats | float,
    ) -> Floats:
        by_seed: Floats = softmax(
            logits[..., : self.options[question]] + begins,
            axis=-1,
        )
        return by_seed

    def _ordinal(self, outputs: Floats, question: int) -> Floats:
        # bounds between the options on the logistic scale `[seed, row, option − 1]`
        cuts = self.cuts[:, None, question, : self.options[question] - 1]
        scale = np.exp(np.clip(outputs[..., 1:2], -MAX_LOG_SCALE, MAX_LOG_SCALE))
        bounds = (cuts - outputs[..., :1]) * scale
        ends = np.full((*bounds.shape[:2], 1), np.inf)
        upper = np.concatenate([bounds, ends], -1)
        lower = np.concatenate([-ends, bounds], -1)
        # σ(b) − σ(a) = σ(b) σ(−a) (1 − e^(a − b)), which doesn't cancel where both are near 1.
        by_seed: Floats = expit(upper) * expit(-lower) * -np.expm1(lower - upper)

        return by_seed


def concatenate_seeds(parts: list[Weights]) -> Weights:
    """Return the seeds of several as one."""
    shared = {"options", "ordinal"}
    arrays = {}
    for name in parts[0].arrays():
        by_part = [getattr(part, name) for part in parts]
        arrays[name] = by_part[0] if name in shared else np.concatenate(by_part)

    return Weights(**arrays)


def _apply_shared_layers(inputs: Floats, W1: WeightArray, W2: WeightArray) -> Floats:
    hidden: Floats = expit(_append_bias_column(expit(inputs @ W1)) @ W2)
    return hidden


def _append_bias_column(z: Floats) -> Floats:
    return np.concatenate([z, np.ones((*z.shape[:-1], 1))], axis=-1)
