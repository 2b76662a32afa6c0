"""The questionnaire: questions, their options, and the columns of their probabilities in X."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Real

import numpy as np
import numpy.typing as npt

from pollex.errors import WrongUse
from pollex.measures.arrays import Bools, Floats

PROBABILITY_SUM_TOLERANCE = 1e-6 + 1e-12
"""By so much the probabilities of one question may exceed 1: 1e-6, and what adding them up in any order rounds off, or
a table of six decimals whose rows sum to 1.000001 would be read here and refused there."""

MAX_OPTION_VALUE = 1e9
"""No value of an option lies further from 0: sums of squares of figures must not lose small ones, or overflow."""


@dataclass(frozen=True)
class Scale:
    """One question and its possible answers.

    Attributes:
        question: Its id.
        values: Value of each option, in the options' order.
        ordinal: Whether the options are ordered as their values are; else they are classes.
        asked: Whether X has a block for it: the judge (an LLM) was asked. A thumb is not asked,
            only given by people.
    """

    question: str
    values: tuple[float, ...]
    ordinal: bool = True
    asked: bool = True

    def __post_init__(self) -> None:
        """Take lists and arrays of values, too, and refuses what is no question.

        Raises:
            WrongUse: Fewer than two options; values that are no numbers, or the same; values that
                are not in ascending order where they are ordinal.
        """
        # NumPy's numbers become Python's, so that a scale can be written as JSON
        plain = (value.item() if isinstance(value, np.generic) else value for value in self.values)
        object.__setattr__(self, "values", tuple(plain))
        if len(self.values) < 2:
            raise WrongUse(
                f"question {self.question!r} has {len(self.values)} options",
                hint="give two or more",
            )

        odd = []
        for place, value in enumerate(self.values):
            # nor NaN
            is_number = isinstance(value, Real) and abs(float(value)) <= MAX_OPTION_VALUE
            if not is_number or value in self.values[:place]:
                odd.append(value)

        if odd:
            raise WrongUse(
                f"an option of question {self.question!r} can't have the value {odd[0]!r}",
                hint=f"give each of its options a number of its own, none beyond ±{MAX_OPTION_VALUE:g}",
            )

        if self.ordinal and any(b <= a for a, b in zip(self.values, self.values[1:], strict=False)):
            raise WrongUse(
                f"the values of question {self.question!r} don't ascend",
                hint="order its options by value, or say that it is not ordinal",
            )


@dataclass(frozen=True)
class Questionnaire:
    """All questions, in a fixed order, with their blocks in X.

    Attributes:
        main: Id of the question that is to be predicted.
    """

    scales: tuple[Scale, ...]
    main: str

    def __post_init__(self) -> None:
        """Accept a list of questions; refuse duplicates, and an unknown main question."""
        object.__setattr__(self, "scales", tuple(self.scales))
        names = [scale.question for scale in self.scales]
        repeated = set()
        for name in names:
            if names.count(name) > 1:
                repeated.add(name)
        if twice := sorted(repeated):
            raise WrongUse(
                f"two questions are called {twice[0]!r}",
                hint="give each a name of its own",
            )

        if self.main not in names:
            raise WrongUse(
                f"the main question {self.main!r} is none of {', '.join(names)}",
                hint="name one of them",
            )

    @cached_property
    def asked(self) -> tuple[Scale, ...]:
        """The questions with a block in X, in the blocks' order."""
        return tuple(scale for scale in self.scales if scale.asked)

    @cached_property
    def blocks(self) -> dict[str, slice]:
        """Columns of each asked question in X."""
        # where each block begins, and the last one ends
        ends = np.cumsum([0, *(len(scale.values) for scale in self.asked)]).tolist()
        blocks: dict[str, slice] = {}
        for scale, a, b in zip(self.asked, ends, ends[1:], strict=False):
            blocks[scale.question] = slice(a, b)

        return blocks

    @cached_property
    def width(self) -> int:
        """Columns of X."""
        return sum(len(scale.values) for scale in self.asked)

    def index(self, question: str | None = None) -> int:
        """Place of a question, by default the main one, among `scales`.

        Raises:
            WrongUse: There is no such question.
        """
        sought = self.main if question is None else question
        for place, scale in enumerate(self.scales):
            if scale.question == sought:
                return place

        raise WrongUse(
            f"no question is called {sought!r}",
            hint=f"use one of {', '.join(s.question for s in self.scales)}",
        )

    def scale(self, question: str | None = None) -> Scale:
        """Return the scale of a question, by default of the main one."""
        return self.scales[self.index(question)]

    def checked(self, X: npt.ArrayLike) -> Floats:
        """Check that X has the right shape, and whole distributions or NaN as blocks.

        Raises:
            WrongUse: No numbers, or another shape; a probability that is negative, over 1 or
                infinite; a block that sums to more than 1 + 1e-6, or is NaN in part. Says how many
                there are and where the first is.
        """
        # numbers, in the right shape
        try:
            array = np.asarray(X, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise WrongUse(
                f"X is no table of numbers ({error})",
                hint="give one row of probabilities a text, NaN where missing",
            ) from error

        if array.ndim != 2 or array.shape[1] != self.width:
            raise WrongUse(
                f"X has shape {array.shape}, the questionnaire needs [row, {self.width}]",
                hint="give one column for each option of each question that is asked",
            )
        # most tables are right: only others are looked at question by question
        if self._plain(array):
            return array

        for question, block in self.blocks.items():
            part = array[:, block]
            missing = np.isnan(part)
            with np.errstate(invalid="ignore"):
                wrong = {
                    "negative": (part < 0).any(axis=1),
                    "over 1": ((part > 1 + PROBABILITY_SUM_TOLERANCE) | np.isinf(part)).any(axis=1),
                    "missing in part": missing.any(axis=1) & ~missing.all(axis=1),
                    "of a sum over 1": part.sum(axis=1) > 1 + PROBABILITY_SUM_TOLERANCE,
                }

            for fault, rows in wrong.items():
                if rows.any():
                    raise WrongUse(
                        f"probabilities of question {question!r} are {fault} in {int(rows.sum())} of {len(array)} rows",
                        where=f"row {int(np.argmax(rows))}",
                        hint="give each option's probability with all its digits, or NaN for all options of a "
                        "question with no answer",
                    )

        return array

    def _plain(self, array: Floats) -> bool:
        """Return whether all is there and nothing is wrong: block by block takes thirty times as long to find out."""
        # the sums of all blocks at once `[row, question]`
        firsts = [block.start for block in self.blocks.values()]
        if firsts:
            sums = np.add.reduceat(array, firsts, axis=1)
        else:
            sums = array

        return bool((array >= 0).all() and (sums <= 1 + PROBABILITY_SUM_TOLERANCE / 2).all())

    def present(self, X: Floats) -> Bools:
        """Mask answered questions `[row, asked]`; a block of zeros (inapplicable) counts as answered."""
        firsts = [block.start for block in self.blocks.values()]
        return ~np.isnan(X[:, firsts])

    def mass(self, X: Floats) -> Floats:
        """Z, the probability that fell on any option `[row, asked]`; NaN where missing."""
        return self._each(X, [np.ones(len(scale.values)) for scale in self.asked])

    def expected(self, X: Floats) -> Floats:
        """Compute expected values Σ p·value / Z `[row, asked]`; NaN if missing or inapplicable."""
        mass = self.mass(X)
        totals = self._each(X, [np.array(scale.values) for scale in self.asked])
        return np.divide(
            totals,
            mass,
            out=np.full_like(mass, np.nan),
            where=mass > 0,
        )

    def _each(self, X: Floats, weights: Sequence[Floats]) -> Floats:
        parts = []
        for block, w in zip(self.blocks.values(), weights, strict=True):
            parts.append(X[:, block] @ w)

        if parts:
            return np.stack(parts, axis=1)
        return np.zeros((len(X), 0))
