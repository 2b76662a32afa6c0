"""The score of a conversation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ConfigDict

from pollex.rubrics.answers import Answer, Unanswered
from pollex.text import html_table

if TYPE_CHECKING:
    from pandas import DataFrame


class Score(BaseModel):
    """The score of a conversation.

    Attributes:
        netsat: Sum of the signed rubric values; None if any rubric is unanswered, and so are the six below.
        label: `positive` if NetSAT is over θ, as in the paper; `decision` is the one to filter by.
        confident: Whether NetSAT lies outside the uncertainty window.
        guaranteed: Whether it lies outside the window with a guarantee; None if the set has no such window.
        probability: P(positive), of an unknown annotator.
        entropy: Entropy of that probability, in nats: 0 is certain, log 2 = 0.69 is open.
        decision: `positive` if the probability is at least that at which both mistakes cost the same.
        differs: Why the decision is not the label, in a sentence; empty if it is.
        judges: P(positive) of each requested annotator.
        rating: Expected grade; None where the set has not learned grades.
        grades: Probability of each grade, by the grade; empty likewise.
        judge_ratings: Expected grade of each requested annotator.
        outcome: `scored`, or why there is no score.
        answers: One for each rubric, in the set's order.
    """

    model_config = ConfigDict(frozen=True)

    conversation_id: str
    netsat: float | None = None
    label: Literal["positive", "negative"] | None = None
    confident: bool | None = None
    guaranteed: bool | None = None
    probability: float | None = None
    entropy: float | None = None
    decision: Literal["positive", "negative"] | None = None
    differs: str = ""
    judges: dict[str, float] = {}
    rating: float | None = None
    grades: dict[str, float] = {}
    judge_ratings: dict[str, float] = {}
    outcome: str = "scored"
    answers: tuple[Answer | Unanswered, ...] = ()

    def __repr__(self) -> str:
        """Return the score in a line."""
        if self.netsat is None or self.probability is None:
            return f"<Score of {self.conversation_id}: {self.outcome}>"
        sure = "confident" if self.confident else "in the uncertainty window"
        found = f"{self.decision}, P(positive) = {self.probability:.2f}, NetSAT {self.netsat:.2f}, {self.label}, {sure}"
        return f"<Score of {self.conversation_id}: {found}>"

    def _repr_html_(self) -> str:
        answers = [(a.question_id, a.word if isinstance(a, Answer) else a.outcome) for a in self.answers]
        return html_table(repr(self), ("rubric", "answer"), answers)

    def to_frame(self) -> DataFrame:
        """Return a pandas table of a row a rubric."""
        from pandas import DataFrame  # it takes half a second to import

        rows = [
            {
                "rubric": a.question_id,
                "value": None if a.never_came_up else a.expected(),
                "justification": a.justification,
            }
            if isinstance(a, Answer)
            else {"rubric": a.question_id, "outcome": a.outcome}
            for a in self.answers
        ]
        return DataFrame(rows)
