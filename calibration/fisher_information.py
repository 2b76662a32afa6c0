"""Fisher information of a fitted cumulative-link model.

It is used as prior when the model adapts to new judgments. A judge's own terms share no judgment with those of other
judges, so the information is kept by judge.
Source: McCullagh 1980, doi:10.1111/j.2517-6161.1980.tb01109.x, section 4 (Fisher's information of a cumulative link);
Laplace's approximation of the posterior: Tierney & Kadane 1986, doi:10.1080/01621459.1986.10478240.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.special import expit

from pollex.calibration.cumulative_link import Terms, located
from pollex.measures.arrays import Bools, Floats, Ints

LEAST = 1e-6
"""An answer is taken to have at least this probability: it is divided by."""


@dataclass(frozen=True, eq=False)
class Information:
    """Fisher information of the terms.

    Attributes:
        blocks: Of nobody known, then of each judge, about the shared terms (cuts, slopes) and the judge's own
            (intercept, scale, and slopes unless these are held), in that order `[1 + judge, local, local]`.
    """

    blocks: Floats

    def with_judges(self, judges: int) -> Self:
        """Extend the information to `judges` judges; nothing is known of new ones."""
        new = judges + 1 - len(self.blocks)
        return type(self)(np.pad(self.blocks, ((0, new), (0, 0), (0, 0))))

    def and_of(self, other: Self) -> Self:
        """Return what both tell of the same terms."""
        return type(self)(self.blocks + other.blocks)

    def dense(self, shape: Terms, free: Bools) -> Floats:
        """Return the information of the free terms as a matrix `[free, free]`.

        Args:
            shape: Terms of the shapes that it is about.
            free: Which are `[term]`.
        """
        count = int(free.sum())
        place = np.where(free, np.cumsum(free) - 1, count)
        where = np.append(place, count)[_places(shape)[:, : self.blocks.shape[1]]]
        out = np.zeros((count + 1, count + 1))
        np.add.at(out, (where[:, :, None], where[:, None, :]), self.blocks)
        return out[:count, :count]


def information(terms: Terms, F: Floats, judges: Ints, own_slopes: bool = True) -> Information:
    """Compute Σ over judgments and options of ∂p ∂pᵀ / p, the expected information.

    Args:
        F: Inputs of the judgments `[judgment, input]`.
        judges: Their codes `[judgment]`, −1 for nobody known.
        own_slopes: False where judges' slopes are held: then they take no place, which many judges would need much of.
    """
    below, slopes = _bounds(terms, F, judges)
    if not own_slopes:
        slopes = slopes[:, :, : slopes.shape[2] - F.shape[1]]
    edge = np.zeros((len(F), 1, slopes.shape[2]))
    proba = np.diff(np.concatenate([edge[:, :, 0], below, edge[:, :, 0] + 1], axis=1), axis=1)
    rises = np.diff(np.concatenate([edge, slopes, edge], axis=1), axis=1)
    roots = rises / np.sqrt(np.maximum(proba, LEAST))[:, :, None]
    blocks = np.zeros((1 + len(terms.intercepts), roots.shape[2], roots.shape[2]))
    order = np.argsort(judges, kind="stable")
    starts = np.searchsorted(judges[order], np.arange(len(terms.intercepts)))
    # A block a judgment, to be added up, would take gigabytes; to look for every judge among all judgments, minutes.
    for block, own in zip(blocks, np.split(order, starts), strict=True):
        theirs = roots[own].reshape(-1, roots.shape[2])
        block[:] = theirs.T @ theirs
    return Information(blocks)


def _bounds(terms: Terms, F: Floats, judges: Ints) -> tuple[Floats, Floats]:
    """P(answer ≤ k) `[judgment, cut]`, and its derivatives `[judgment, cut, local]`."""
    place, scale = located(terms, F, judges)
    away = terms.cuts[None, :] - place[:, None]
    below = expit(scale[:, None] * away)
    by_cut = np.tril(np.ones((len(terms.cuts), len(terms.cuts))))
    by_cut[:, 1:] *= np.exp(terms.gaps)
    known = (judges >= 0).astype(np.float64)[:, None, None]
    alike = np.ones((*away.shape, 1))
    inputs = F[:, None, :] * alike
    inner = [by_cut[None] * alike, -inputs, -known * alike, known * away[:, :, None], -known * inputs]
    rise = (below * (1 - below) * scale[:, None])[:, :, None]
    return below, np.asarray(rise * np.concatenate(inner, axis=2))


def _places(shape: Terms) -> Ints:
    """Return the packed index of each local term `[1 + judge, local]`; −1 if fixed."""
    judges, inputs = shape.judge_slopes.shape
    shared = 1 + len(shape.gaps) + inputs
    who = np.arange(judges)[:, None]
    own = np.concatenate(
        [shared + who, shared + judges + who, shared + 2 * judges + who * inputs + np.arange(inputs)], axis=1
    )
    nobody = np.full((1, 2 + inputs), -1)
    everybody = np.broadcast_to(np.arange(shared), (1 + judges, shared))
    return np.concatenate([everybody, np.concatenate([nobody, own])], axis=1).astype(np.int64)
