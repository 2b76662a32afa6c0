"""The model of the probability, and its choice as a step of `learn`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from pollex.conversations.conversation import Conversation
from pollex.errors import WrongUse, spelled
from pollex.rubrics.answers import LIKERT, Answer
from pollex.rubrics.score import AnswerColumns

if TYPE_CHECKING:  # scikit-learn comes with it, and takes a second to import
    from pollex.calibration.estimator import JudgedEstimator


Floats = npt.NDArray[np.float64]

DIGITS = 12
"""Of a probability: those after it depend on how many conversations are worked out at once."""

SHOWN = 10
"""Names of judges that an error lists."""


class ThumbModel:
    """A fitted calibrator of thumbs.

    Args:
        rubrics: Ids, in the order in which it wants the answers.
        model: Fitted.
        options: Of each rubric.
        rating: Model of the grades, fitted; None where the labels are no grades.
    """

    def __init__(
        self,
        rubrics: Sequence[str],
        model: JudgedEstimator,
        options: int = len(LIKERT),
        rating: JudgedEstimator | None = None,
    ) -> None:
        self.rubrics = tuple(rubrics)
        self.model = model
        self.options = options
        self.rating = rating

    def rows(self, answers: AnswerColumns) -> Floats:
        """Conversations' answers in its order `[conversation, rubric, option]`; NaN where unanswered."""
        missing = (np.nan,) * self.options
        each = [one.probabilities if isinstance(one, Answer) else missing for one in answers.different]
        asked = {rubric: place for place, rubric in enumerate(answers.rubrics)}
        places = [answers.index[:, asked[id_]] if id_ in asked else [-1] * len(answers.index) for id_ in self.rubrics]
        return np.array([*each, missing], dtype=np.float64)[np.array(places, dtype=np.int64).T]

    def probability(self, answers: Floats, judge: str | None = None) -> Floats:
        """Compute P(thumb up) `[conversation]`; for an unknown annotator if `judge` is None.

        Args:
            answers: Probability of each option `[conversation, rubric, option]`; NaN where unanswered.
        """
        from pollex.calibration.thumbs import probability_positive

        if not len(answers):
            return np.zeros(0)
        found = probability_positive(self.model, answers, None if judge is None else [judge] * len(answers))
        return np.round(found, DIGITS)

    def grades(self, answers: Floats, judge: str | None = None) -> Floats:
        """Return the probability of each grade `[conversation, grade]`; see `probability`."""
        assert self.rating is not None, "only asked where there is one"
        found = self.rating.predict_proba(
            answers.reshape(len(answers), -1), None if judge is None else [judge] * len(answers)
        )
        return np.round(found, DIGITS)

    @property
    def judges(self) -> tuple[str, ...]:
        """Annotators of the thumbs that it was fitted on, if the log names them."""
        return self.model.judges_

    def wanted(self, judges: Sequence[str]) -> tuple[str, ...]:
        """Return the annotators that a user asks for; `all` means every known one.

        Raises:
            WrongUse: One is not known, or a name stands for a list.
        """
        if isinstance(judges, str):
            raise WrongUse(f"one name, {judges!r}, for a set of judges", remedy="give a list of names")
        if list(judges) == ["all"] and "all" not in self.judges:
            return self.judges
        if strangers := [judge for judge in judges if judge not in self.judges]:
            learn, more = spelled(judge_field="user"), f" … ({len(self.judges)} in all)" * (len(self.judges) > SHOWN)
            remedy = f"its log names no annotators: leave annotators out, or learn again with {learn}"
            remedy = f"name one of {', '.join(self.judges[:SHOWN])}{more}" if self.judges else remedy
            raise WrongUse(f"no thumb of {strangers[0]!r} was learned from", remedy=remedy)
        return tuple(dict.fromkeys(judges))


def judges_wanted(model: ThumbModel | None, judges: Sequence[str]) -> tuple[str, ...]:
    """Return the requested annotators, also for a rubric set without any.

    Raises:
        WrongUse: One is not known, or there is no model that knows any.
    """
    if judges and model is None:
        raise WrongUse("this rubric set has no annotators", remedy="learn it again, or score without annotators")
    return () if model is None else model.wanted(judges)


def judges_of(conversations: Sequence[Conversation]) -> list[str | None] | None:
    """Return who gave each thumb; None if the log names nobody."""
    judges = [conversation.judge for conversation in conversations]
    return judges if any(judge is not None for judge in judges) else None
