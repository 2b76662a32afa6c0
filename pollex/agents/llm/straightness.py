"""Straight-lining: answers that would have been the same whatever was asked.

That ten rubrics of dissatisfaction all meet Strongly Disagree proves nothing, it is what a good conversation gets; and
Neutral is the answer to all that doesn't apply. Only what no reading of a conversation explains counts against a judge.
"""

from __future__ import annotations

from collections.abc import Sequence

from pollex.agents.answers import LIKERT, Answer, Question, Unanswered

FEWEST = 5
_NEUTRAL = len(LIKERT) // 2


def straight_lined(questions: Sequence[Question], answers: Sequence[Answer | Unanswered]) -> str:
    """What shows that the answers don't depend on the questions; empty where nothing does."""
    pairs = [(q, a) for q, a in zip(questions, answers, strict=True) if isinstance(a, Answer) and q.options == LIKERT]
    options = {answer.chosen for _, answer in pairs}
    if len(pairs) < FEWEST or len(options) > 1 or options == {_NEUTRAL}:
        return ""
    option = LIKERT[options.pop()].text
    polarities = [question.rubric.polarity for question, _ in pairs if question.rubric]
    if min(polarities.count("sat"), polarities.count("dsat")) >= 2:
        return f"{option} to {len(pairs)} rubrics of satisfaction and dissatisfaction alike"
    reasons = {" ".join(answer.justification.split()) for _, answer in pairs}
    if len(reasons) == 1 and reasons != {""}:
        return f"{option} to {len(pairs)} questions, all for the same reason"
    return ""


def suspect(answers: Sequence[Answer | Unanswered], why: str) -> list[Answer | Unanswered]:
    """The answers, none of them to be believed."""
    return [
        Unanswered(question_id=answer.question_id, outcome="suspect", detail=why, judge=answer.judge)
        if isinstance(answer, Answer)
        else answer
        for answer in answers
    ]
