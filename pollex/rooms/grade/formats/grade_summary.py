"""Summary of gradings: means by category and dimension, and distributions of grades."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from pollex.measures.arrays import Bools, Floats
from pollex.measures.distributions import (
    compute_cumulative_shares_of_grades,
    estimate_areas_between_grade_distributions,
    estimate_grade_agreement,
    estimate_mean_grade,
)
from pollex.measures.intervals import Figure
from pollex.rooms.grade.agents.llm.reference_judge import (
    PLAIN_QUESTION_ID,
    TYPE_QUESTION_ID,
    CaseGrading,
    make_plain_question,
    make_type_question,
)
from pollex.rooms.grade.prompts.grading.profile import (
    COMPARISON_QUESTION_ID,
    EVIDENCE_QUESTION_ID,
    EXPLANATION_QUESTION_ID,
    OVERALL_QUESTION_ID,
    ReferencingProfile,
)
from pollex.rubrics.answers import Answer, Question, Unanswered

GradeReading = Literal["auto", "expected", "mode"]

ALL_CATEGORIES = "all"
UNNAMED_CATEGORY = "(no category)"
RULES_JUDGE = "rules"
HUMAN_JUDGE = "human"
RESAMPLING_SEED = 0
TENTHS_PER_GRADE = 10


@dataclass(frozen=True)
class CategoryMean:
    """A mean grade of the cases of one category.

    Attributes:
        dimension: Key of a dimension, or `overall`, `plain`, `human`.
    """

    category: str
    dimension: str
    figure: Figure


@dataclass(frozen=True)
class GradeSummary:
    """Summary of gradings; see the module.

    Attributes:
        n: Cases that were to be graded.
        dimensions: Keys in the order of the profile's types; then those of Mean.dimension that
            occur.
        categories: In the order of the file, `all` first.
        levels: Tenths of grades `[level]`, the worst first: means of distributions are no whole
            grades.
        shares: By judge (`rules`, `plain`, `human`), the share of grades that are at most each
            level `[level]`.
        counts: By judge, how many grades there are.
        areas: Between each judge's distribution and people's; see `measures.distributions.areas`.
            Empty without people.
        agreement: By category and dimension, Pearson, Spearman and alpha between the judge's grade
            and people's.
        flags: How many cases have which flag.
        outcomes: How many cases came to which outcome.
    """

    n: int
    names: Mapping[str, str]
    dimensions: tuple[str, ...]
    categories: tuple[str, ...]
    means: tuple[CategoryMean, ...]
    levels: Floats
    shares: Mapping[str, Floats]
    counts: Mapping[str, int]
    areas: Mapping[str, Figure]
    agreement: Mapping[tuple[str, str], Mapping[str, Figure]]
    flags: Mapping[str, int]
    outcomes: Mapping[str, int]

    def mean(self, category: str, dimension: str) -> Figure | None:
        """Return a mean by its place; None if that category has no grades for it."""
        return next(
            (m.figure for m in self.means if (m.category, m.dimension) == (category, dimension)),
            None,
        )


def summarize_grades(
    profile: ReferencingProfile,
    gradings: Sequence[CaseGrading],
    value: GradeReading = "auto",
) -> GradeSummary:
    """Summarize gradings.

    Args:
        value: What of an answer is its grade; see `graded`.
    """
    # grades by column [case]; NaN where a case has none
    columns = _make_grade_columns(profile, gradings, value)
    # the category of each case; those without one share a name
    places = np.array([g.case.category or UNNAMED_CATEGORY for g in gradings])
    categories = list(dict.fromkeys(places.tolist()))
    # a fixed seed: the same gradings give the same intervals
    rng = np.random.default_rng(RESAMPLING_SEED)
    # with one category its figures are those of all
    every = [ALL_CATEGORIES, *(categories if len(categories) > 1 else [])]

    def here(category: str) -> Bools:
        return np.asarray((places == category) | (category == ALL_CATEGORIES))

    # the mean of each column, over all and by category
    means = [
        CategoryMean(category, name, estimate_mean_grade(column[here(category)], rng))
        for category in every
        for name, column in columns.items()
    ]
    # what share of grades lies at or below each level, by who gave them
    # in tenths of a grade: expected grades lie between whole ones
    levels = (
        np.arange(TENTHS_PER_GRADE * profile.lowest, TENTHS_PER_GRADE * profile.highest + 1)
        / TENTHS_PER_GRADE
    )
    judges = {RULES_JUDGE: columns[OVERALL_QUESTION_ID]} | {
        name: columns[name] for name in (PLAIN_QUESTION_ID, HUMAN_JUDGE) if name in columns
    }
    areas_of_judges = _measure_areas_against_people(judges, rng)
    # how far each column agrees with people, where both graded something
    agreement: dict[tuple[str, str], dict[str, Figure]] = {}
    # without people's grades there is nothing to agree with
    for category in every if HUMAN_JUDGE in columns else ():
        rows = here(category)
        for name, column in columns.items():
            if name == HUMAN_JUDGE:
                continue
            figures = estimate_grade_agreement(
                column[rows],
                columns[HUMAN_JUDGE][rows],
                rng,
            )
            # columns that share no case with people are left out
            if figures["alpha"].n:
                agreement[category, name] = figures

    return GradeSummary(
        n=len(gradings),
        names={key: part.name for key, part in profile.dimensions.items()},
        dimensions=tuple(columns),
        categories=tuple(dict.fromkeys(mean.category for mean in means)),
        # means without a case are left out
        means=tuple(mean for mean in means if mean.figure.n),
        levels=levels,
        shares={
            name: compute_cumulative_shares_of_grades(grades, levels)
            for name, grades in judges.items()
        },
        counts={name: int((~np.isnan(grades)).sum()) for name, grades in judges.items()},
        areas=areas_of_judges,
        agreement=agreement,
        flags=_count_words(gradings, lambda grading: grading.flags),
        outcomes=_count_words(gradings, lambda grading: (grading.outcome,)),
    )


def get_grade(answer: object, question: Question, value: GradeReading = "auto") -> float | None:
    """Return the grade that an answer gives; None if it gives none.

    That is the grade that was written, as in the paper, and as people give theirs. Only `expected`
    takes the mean of its distribution, which is nearer to the middle of the scale.
    """
    if not isinstance(answer, Answer):
        return None
    if value == "expected":
        return answer.expected(question.options)
    return answer.mode(question.options)


def _make_grade_columns(
    profile: ReferencingProfile,
    gradings: Sequence[CaseGrading],
    value: GradeReading,
) -> dict[str, Floats]:
    # dimensions that some grading was asked for
    used = set()
    for grading in gradings:
        for question in grading.graded:
            used.add(question.id)

    # in the order of the profile, so that all pages have the same
    order = [key for key in profile.dimensions if key in used]
    columns = {}
    for key in [*order, OVERALL_QUESTION_ID]:
        columns[key] = np.array([_get_grade_on(g, key, value) for g in gradings], float)

    # the judge without rules, and people, as columns of their own
    plain = make_plain_question(profile)
    columns[PLAIN_QUESTION_ID] = np.array(
        [get_grade(g.answers.get(PLAIN_QUESTION_ID), plain, value) for g in gradings],
        float,
    )
    columns[HUMAN_JUDGE] = np.array([g.case.human for g in gradings], float)

    # an empty column is dropped, the whole stays in any case
    return {
        key: column
        for key, column in columns.items()
        if key == OVERALL_QUESTION_ID or not np.isnan(column).all()
    }


def _get_grade_on(grading: CaseGrading, key: str, value: GradeReading) -> float | None:
    question = next(
        (question for question in grading.graded if question.id == key),
        None,
    )
    if question is None:
        return None
    return get_grade(grading.answers.get(key), question, value)


def _measure_areas_against_people(
    judges: Mapping[str, Floats], rng: np.random.Generator
) -> dict[str, Figure]:
    if HUMAN_JUDGE not in judges:
        return {}

    return estimate_areas_between_grade_distributions(
        {name: grades for name, grades in judges.items() if name != HUMAN_JUDGE},
        judges[HUMAN_JUDGE],
        rng,
    )


def _count_words(
    gradings: Sequence[CaseGrading], words: Callable[[CaseGrading], Sequence[str]]
) -> dict[str, int]:
    counted_words = [word for grading in gradings for word in words(grading)]
    return {word: counted_words.count(word) for word in dict.fromkeys(counted_words)}


GRADE_COLUMNS = {
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


def iterate_grade_rows(
    profile: ReferencingProfile,
    gradings: Iterable[CaseGrading],
    judge: str,
    value: GradeReading = "auto",
) -> Iterator[dict[str, object]]:
    """Yield one row for each case; grades are None if missing."""
    # questions outside the rules: the judge without references, and the type
    beside = [make_plain_question(profile), make_type_question(profile)]
    for grading in gradings:
        case = grading.case
        answers = grading.answers
        # the grade of each question that the rules ask
        grades = {}
        for q in grading.graded:
            grades[q.id] = get_grade(answers.get(q.id), q, value)
        # all answers in full, but for the comparison, which has a column of its own
        answered = []
        for q in (*grading.questions, *beside):
            if q.id in answers and q.id != COMPARISON_QUESTION_ID:
                answered.append(q)
        yield {
            "id": case.id,
            "category": case.category,
            "subcategory": case.subcategory,
            "type": grading.type,
            "type_from": grading.type_from,
            "outcome": grading.outcome,
            "detail": grading.detail,
            "overall": grades[OVERALL_QUESTION_ID],
            "plain": get_grade(answers.get(PLAIN_QUESTION_ID), make_plain_question(profile), value),
            "human": case.human,
            "comparison": grading.said(COMPARISON_QUESTION_ID),
            "explanation": grading.said(EXPLANATION_QUESTION_ID),
            "grades": {id_: grade for id_, grade in grades.items() if grade is not None},
            "flags": list(grading.flags),
            "answered_by": case.answered_by,
            "evidences": [evidence.model_dump() for evidence in case.evidences],
            "answers": [_make_answer_row(question, answers[question.id]) for question in answered],
            "judge": judge,
        }


def make_summary_json(grade_summary: GradeSummary) -> dict[str, object]:
    """Return a summary for scripts: figures with n and interval, null if undefined."""
    return {
        "n": grade_summary.n,
        "outcomes": dict(grade_summary.outcomes),
        "flags": dict(grade_summary.flags),
        # a figure has its n and interval beside its value
        "means": [
            {
                "category": mean.category,
                "dimension": mean.dimension,
                **make_figure_json(mean.figure),
            }
            for mean in grade_summary.means
        ],
        # distributions at whole grades only
        "distributions": {
            judge: dict(
                zip(
                    map(_format_grade, grade_summary.levels[::TENTHS_PER_GRADE].tolist()),
                    shares[::TENTHS_PER_GRADE].tolist(),
                    strict=True,
                )
            )
            for judge, shares in grade_summary.shares.items()
            if grade_summary.counts[judge]
        },
        "areas": {name: make_figure_json(figure) for name, figure in grade_summary.areas.items()},
        "agreement": [
            {
                "category": category,
                "dimension": name,
                **{key: make_figure_json(figure) for key, figure in figures.items()},
            }
            for (category, name), figures in grade_summary.agreement.items()
        ],
    }


def make_figure_json(figure: Figure) -> dict[str, object]:
    """Return a figure with its interval as JSON values."""
    interval = None if figure.low is None else [figure.low, figure.high]
    fields = {
        "value": figure.value,
        "interval": interval,
        "n": figure.n,
    }
    return fields | ({"undefined": figure.undefined} if figure.undefined else {})


def _format_grade(level: float) -> str:
    return f"{level:g}"


def _make_answer_row(question: Question, answer: Answer | Unanswered) -> dict[str, object]:
    row: dict[str, object] = {"question": question.id}
    # no answer: the reason in place of its fields
    if isinstance(answer, Unanswered):
        return row | {"outcome": answer.outcome, "detail": answer.detail}

    named = question.id in (
        EVIDENCE_QUESTION_ID,
        TYPE_QUESTION_ID,
    )  # their options are names, which have no mean
    return row | {
        "option": question.options[answer.chosen].text,
        "expected": None if named else answer.expected(question.options),
        "probabilities": list(answer.probabilities),
        "source": answer.source,
        "justification": answer.justification,
        "outcome": "answered",
    }
