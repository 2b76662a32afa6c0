"""What any calibrator has to beat: the judge's answer as it is, and shares of answers without a look at the text."""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from pollex.calibration.estimator import JudgedEstimator, State
from pollex.calibration.judgments import Judgments
from pollex.calibration.models.ordinal import OrdinalMixedEffects
from pollex.errors import WrongUse
from pollex.measures.arrays import Floats, Ints


class AsIs(JudgedEstimator):
    """Probabilities of the question's own block, p / Z; uniform if missing.

    Learns nothing. Its prediction is the expected answer Σ p·value / Z.
    """

    title: ClassVar[str] = "answer as it is, expected"
    uses_labels: ClassVar[bool] = False

    def _learn(self, X: Floats, y: Judgments, groups: Ints) -> None:  # noqa: ARG002
        find_own_block(self, self.questionnaire_.index())

    def _distribution(self, X: Floats, judges: Ints, question: int) -> Floats:  # noqa: ARG002
        block = X[:, find_own_block(self, question)]
        mass = block.sum(axis=1, keepdims=True)
        shares: Floats = np.divide(
            block,
            mass,
            out=np.full_like(block, 1 / block.shape[1]),
            where=mass > 0,
        )
        return shares

    def _state(self) -> State:
        return State({}, {})

    def _restore(self, state: State) -> None:
        """Do nothing: there is no state."""


class Argmax(AsIs):
    """All probability on the most probable answer of the question's own block; uniform if missing.

    An answer that it rules out is given with probability 0, so its log-loss is infinite as soon as
    it errs once.
    """

    title: ClassVar[str] = "answer as it is, most probable"

    def _distribution(self, X: Floats, judges: Ints, question: int) -> Floats:  # noqa: ARG002
        block = np.nan_to_num(X[:, find_own_block(self, question)])
        points = np.eye(block.shape[1])[block.argmax(axis=1)]
        answered = block.sum(axis=1, keepdims=True) > 0
        return np.asarray(np.where(answered, points, 1 / block.shape[1]))


class MainAlone(OrdinalMixedEffects):
    """Cumulative link on the judge's answer to the main question, for all judges: what others add is seen beside it.

    Args:
        shared: Precision of the prior on its slope.
        cuts: Of that on the cuts.
        intercepts: Of that on judges' intercepts; None, as in the paper's "calibrated Q0": none.
    """

    title: ClassVar[str] = "main question alone"

    def __init__(
        self,
        shared: float = 1.0,
        cuts: float = 0.1,
        intercepts: float | None = None,
    ) -> None:
        super().__init__(
            shared=shared,
            cuts=cuts,
            intercepts=intercepts,
            scales=None,
            slopes=None,
        )

    def _only(self) -> Sequence[str]:
        find_own_block(self, self.questionnaire_.index())
        return (self.questionnaire_.main,)


class JudgeMean(JudgedEstimator):
    """A judge's shares of answers to each question; an unknown judge has everybody's.

    Args:
        strength: Weight of everybody's shares, in judgments of each judge.
        smoothing: Number of prior judgments in everybody's shares, spread evenly over the options.
    """

    title: ClassVar[str] = "judge's mean"

    def __init__(self, strength: float = 8.0, smoothing: float = 1.0) -> None:
        self.strength = strength
        self.smoothing = smoothing

    def _learn(self, X: Floats, y: Judgments, groups: Ints) -> None:  # noqa: ARG002 (looks at no text)
        self.shares_: dict[int, Floats] = {}
        for question in np.unique(y.question).tolist():
            labels = y.of_question(question)
            # everybody's shares, smoothed, and each judge's counts `[judge + 1, option]`
            options = len(self.questionnaire_.scales[question].values)
            everybody = np.bincount(labels.answer, minlength=options) + self.smoothing / options
            counts = np.zeros((len(self.judges_) + 1, options))  # the last row is everybody's
            has_judge = labels.judge >= 0
            np.add.at(
                counts,
                (labels.judge[has_judge], labels.answer[has_judge]),
                1,
            )
            self.shares_[question] = self._shrink(counts, everybody / everybody.sum())

    def _shrink(self, counts: Floats, towards: Floats) -> Floats:
        """Shrink each judge's shares `[judge + 1, option]` to everybody's."""
        # everybody's shares count as `strength` judgments
        pulled = counts + self.strength * towards
        total = pulled.sum(axis=1, keepdims=True)
        shares: Floats = np.divide(
            pulled,
            total,
            out=np.broadcast_to(towards, pulled.shape).copy(),
            where=total > 0,
        )
        return shares

    def _distribution(self, X: Floats, judges: Ints, question: int) -> Floats:  # noqa: ARG002
        if question not in self.shares_:
            raise WrongUse(
                f"question {self.questionnaire_.scales[question].question!r} had no judgments in training",
                hint="add judgments of it, and fit again",
            )

        # the last row is everybody's, which is where the code of nobody, −1, points
        return self.shares_[question][judges]

    def _state(self) -> State:
        return State(
            {},
            {f"shares.{question}": shares for question, shares in self.shares_.items()},
        )

    def _restore(self, state: State) -> None:
        self.shares_ = {
            int(name.removeprefix("shares.")): shares for name, shares in state.arrays.items()
        }


class Constant(JudgeMean):
    """Shares of the answers to each question in the training judgments, for every text and judge.

    Args:
        smoothing: So many judgments more, spread evenly over the options.
    """

    title: ClassVar[str] = "constant"

    def __init__(self, smoothing: float = 1.0) -> None:
        self.smoothing = smoothing

    def _shrink(self, counts: Floats, towards: Floats) -> Floats:
        return np.broadcast_to(towards, counts.shape).copy()


def find_own_block(model: JudgedEstimator, question: int) -> slice:
    """Return the columns of X with the judge's own answer to a question.

    Raises:
        WrongUse: The judge was not asked it.
    """
    name = model.questionnaire_.scales[question].question
    if name not in model.questionnaire_.blocks:
        raise WrongUse(
            f"the judge was not asked {name!r}, so there is no answer to take as it is",
            hint="ask it, or use a model that predicts it from the other questions",
        )

    return model.questionnaire_.blocks[name]
