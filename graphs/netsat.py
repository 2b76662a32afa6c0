"""NetSAT: the sum of a conversation's rubric values, and what it means.

Source: Biyani et al. 2024, "RUBICON: Rubric-Based Evaluation of Domain-Specific Human-AI Conversations".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
from pydantic import BaseModel, ConfigDict

from pollex.agents.answers import Answer, Unanswered
from pollex.selection.probability import Calibration
from pollex.selection.threshold import Window


class Score(BaseModel):
    """What a conversation came to.

    Attributes:
        netsat: Sum of the signed rubric values; None where any rubric is unanswered, and so are the three below.
        label: `positive` where NetSAT is over θ.
        confident: Whether NetSAT lies outside the uncertainty window.
        probability: P(positive), calibrated on training conversations.
        outcome: `scored`, or why there is no score.
        answers: One a rubric, in the set's order.
    """

    model_config = ConfigDict(frozen=True)

    conversation_id: str
    netsat: float | None = None
    label: Literal["positive", "negative"] | None = None
    confident: bool | None = None
    probability: float | None = None
    outcome: str = "scored"
    answers: tuple[Answer | Unanswered, ...] = ()


class NetSat(BaseModel):
    """The sum of rubric values, and what it means. Source: Biyani et al. 2024, §NetSAT.

    Attributes:
        signs: +1 for SAT and −1 for DSAT rubrics, by id.
    """

    model_config = ConfigDict(frozen=True, arbitrary_types_allowed=True)

    signs: Mapping[str, int]
    theta: float
    window: Window
    calibration: Calibration
    value: Literal["auto", "expected", "mode"] = "auto"

    def score(self, conversation_id: str, answers: Sequence[Answer | Unanswered]) -> Score:
        """A score where every rubric is answered, else the reason why there is none.

        Args:
            answers: In any order; they are added up in the set's, since the last digit of a sum depends on it.
        """
        by_rubric = {answer.question_id: answer for answer in answers}
        ordered = tuple(by_rubric[id_] for id_ in self.signs if id_ in by_rubric)
        failed = [answer for answer in ordered if isinstance(answer, Unanswered)]
        if failed or len(ordered) < len(self.signs):
            outcome = failed[0].outcome if len(failed) == len(self.signs) else "incomplete"
            return Score(conversation_id=conversation_id, outcome=outcome, answers=ordered)
        netsat = sum(self.signs[a.question_id] * value_of(a, self.value) for a in ordered if isinstance(a, Answer))
        return self.read(conversation_id, netsat).model_copy(update={"answers": ordered})

    def read(self, conversation_id: str, netsat: float) -> Score:
        """What a NetSAT means."""
        scores = np.array([netsat])
        return Score(
            conversation_id=conversation_id,
            netsat=netsat,
            label="positive" if netsat > self.theta else "negative",
            confident=bool(self.window.confident(scores)[0]),
            probability=float(self.calibration.probability(scores)[0]),
        )


def value_of(answer: Answer, rule: Literal["auto", "expected", "mode"] = "auto") -> float:
    """What NetSAT adds up for an answer: by default the mode for a point mass, else the expected value."""
    if rule == "auto":
        return answer.value()
    return answer.expected() if rule == "expected" else answer.mode()
