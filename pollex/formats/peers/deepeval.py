"""DeepEval: a conversational metric a rubric, and NetSAT as a metric over them."""

from __future__ import annotations

from pollex.errors import WrongUse
from pollex.formats.peers.target import Sheet, Target, python_file

GRADES = ((0, 1), (2, 3), (4, 6), (7, 8), (9, 10))
"""Whole grades that stand for the five options: 2.5 and 7.5 can't be."""
BODY = '''from deepeval.metrics import BaseConversationalMetric, ConversationalGEval
from deepeval.metrics.g_eval import Rubric
from deepeval.test_case import ConversationalTestCase, MultiTurnParams

# RUBRICS
GRADES = {grades!r}
SCALE = [Rubric(score_range=grades, expected_outcome=word) for grades, word in zip(GRADES, OPTIONS)]


class NetSAT(BaseConversationalMetric):
    """Sum of sign times 10 times score; not exactly pollex's, since grades are whole. A missing answer voids it."""

    def __init__(self, model=None, threshold=THETA):
        self.threshold, self.model = threshold, model
        params = [MultiTurnParams.ROLE, MultiTurnParams.CONTENT]
        more = {{"rubric": SCALE, "model": model, "async_mode": False}}
        before = [f"Know this of the domain: {{CONTEXT}}"] if CONTEXT else []
        self.parts = [
            (sign, ConversationalGEval(name=name, evaluation_params=params, evaluation_steps=steps, **more))
            for name, sign, steps in [
                (name, sign, [*before, f"Judge whether this is true of the conversation: {{text}}"])
                for name, sign, text in RUBRICS
            ]
        ]

    def measure(self, test_case: ConversationalTestCase, *args, **kwargs):
        scores = [(sign, part.measure(test_case, _show_indicator=False)) for sign, part in self.parts]
        if any(score is None for _, score in scores):
            self.score, self.success, self.reason = None, False, "no NetSAT: a rubric has no answer"
            return self.score
        self.score = sum(sign * 10 * score for sign, score in scores)
        self.success = self.threshold is None or self.score > self.threshold
        self.reason = f"NetSAT {{self.score:.2f}}, not exact: whole grades"
        return self.score

    async def a_measure(self, test_case, *args, **kwargs):
        return self.measure(test_case)

    def is_successful(self):
        return self.success

    @property
    def __name__(self):
        return "NetSAT"
'''


def _files(sheet: Sheet) -> dict[str, str]:
    if len(sheet.options) != len(GRADES):
        raise WrongUse(
            "DeepEval's grades stand for five options",
            remedy="learn it with `pollex learn LOGS --model M --set scale=likert`",
        )
    code = BODY.replace("{grades!r}", repr(GRADES)).replace("{{", "{").replace("}}", "}")
    about = "pollex rubrics as DeepEval metrics. NOT EXACT: grades are whole numbers from 0 to 10, so sums differ."
    return {"pollex_metrics.py": python_file(sheet, about, code)}


TARGET = Target(
    name="deepeval",
    version="4.3.1",
    files=_files,
    netsat="NOT exact: grades are whole numbers from 0 to 10, averaged over log-probabilities",
    exact=False,
)
