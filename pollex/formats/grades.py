"""Gradings as rows, and a summary of them as JSON values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from pollex.agents.gradings import Grading
from pollex.agents.llm.reference_judge import PLAIN, TYPE, plain_question, type_question
from pollex.formats.grade_summary import TENTHS, Summary, Value, graded
from pollex.measures.intervals import Figure
from pollex.prompts.grading.profile import COMPARISON, EVIDENCE, EXPLANATION, OVERALL, ReferencingProfile
from pollex.rubrics.answers import Answer, Question, Unanswered

COLUMNS = {
    "id": "VARCHAR",
    "category": "VARCHAR",
    "subcategory": "VARCHAR",
    "type": "VARCHAR",
    "type_from": "VARCHAR",
    "outcome": "VARCHAR",
    "detail": "VARCHAR",
    "overall": "DOUBLE",
    "plain": "DOUBLE",
    "human": "DOUBLE",
    "comparison": "VARCHAR",
    "explanation": "VARCHAR",
    "grades": "MAP(VARCHAR, DOUBLE)",
    "flags": "VARCHAR[]",
    "answered_by": "VARCHAR",
    "evidences": "STRUCT(url VARCHAR, quote VARCHAR)[]",
    "answers": """STRUCT(question VARCHAR, option VARCHAR, expected DOUBLE, probabilities DOUBLE[], source VARCHAR,
        justification VARCHAR, outcome VARCHAR, detail VARCHAR)[]""",
    "judge": "VARCHAR",
}


def grade_rows(
    profile: ReferencingProfile, gradings: Iterable[Grading], judge: str, value: Value = "auto"
) -> Iterator[dict[str, Any]]:
    """Yield one row for each case; grades are None if missing."""
    beside = [plain_question(profile), type_question(profile)]
    for grading in gradings:
        case, answers = grading.case, grading.answers
        grades = {q.id: graded(answers.get(q.id), q, value) for q in grading.graded}
        asked = [q for q in (*grading.questions, *beside) if q.id in answers and q.id != COMPARISON]
        yield {
            "id": case.id,
            "category": case.category,
            "subcategory": case.subcategory,
            "type": grading.type,
            "type_from": grading.type_from,
            "outcome": grading.outcome,
            "detail": grading.detail,
            "overall": grades[OVERALL],
            "plain": graded(answers.get(PLAIN), plain_question(profile), value),
            "human": case.human,
            "comparison": grading.said(COMPARISON),
            "explanation": grading.said(EXPLANATION),
            "grades": {id_: grade for id_, grade in grades.items() if grade is not None},
            "flags": list(grading.flags),
            "answered_by": case.answered_by,
            "evidences": [evidence.model_dump() for evidence in case.evidences],
            "answers": [_answer_row(question, answers[question.id]) for question in asked],
            "judge": judge,
        }


def summary_json(found: Summary) -> dict[str, Any]:
    """Return a summary for scripts: figures with n and interval, null if undefined."""
    return {
        "n": found.n,
        "outcomes": dict(found.outcomes),
        "flags": dict(found.flags),
        "means": [
            {"category": mean.category, "dimension": mean.dimension, **figure_json(mean.figure)} for mean in found.means
        ],
        "distributions": {
            judge: dict(zip(map(_grade, found.levels[::TENTHS].tolist()), shares[::TENTHS].tolist(), strict=True))
            for judge, shares in found.shares.items()
            if found.counts[judge]
        },
        "areas": {name: figure_json(figure) for name, figure in found.areas.items()},
        "agreement": [
            {"category": category, "dimension": name, **{key: figure_json(one) for key, one in figures.items()}}
            for (category, name), figures in found.agreement.items()
        ],
    }


def figure_json(figure: Figure) -> dict[str, Any]:
    """Return a figure with its interval as JSON values."""
    interval = None if figure.low is None else [figure.low, figure.high]
    told = {"value": figure.value, "interval": interval, "n": figure.n}
    return told | ({"undefined": figure.undefined} if figure.undefined else {})


def _grade(level: float) -> str:
    return f"{level:g}"


def _answer_row(question: Question, answer: Answer | Unanswered) -> dict[str, Any]:
    row: dict[str, Any] = {"question": question.id}
    if isinstance(answer, Unanswered):
        return row | {"outcome": answer.outcome, "detail": answer.detail}
    named = question.id in (EVIDENCE, TYPE)  # their options are names, which have no mean
    return row | {
        "option": question.options[answer.chosen].text,
        "expected": None if named else answer.expected(question.options),
        "probabilities": list(answer.probabilities),
        "source": answer.source,
        "justification": answer.justification,
        "outcome": "answered",
    }
