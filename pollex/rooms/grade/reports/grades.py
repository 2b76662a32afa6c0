"""The page on answers graded against references: how grades are distributed, and their means."""

from collections.abc import Mapping, Sequence

import numpy as np
from markupsafe import Markup

from pollex.measures.arrays import Floats
from pollex.measures.intervals import Figure
from pollex.reports.numbers import (
    SHARE_AXIS_MARKS,
    format_grouped_count,
    format_number,
    is_known,
    join_with_and,
)
from pollex.reports.page import render_template
from pollex.reports.svg import ChartFrame, make_svg
from pollex.rooms.grade.agents.llm.reference_judge import CaseGrading
from pollex.rooms.grade.formats.grade_summary import (
    ALL_CATEGORIES,
    HUMAN_JUDGE,
    RULES_JUDGE,
    GradeSummary,
)
from pollex.rooms.grade.prompts.grading.profile import (
    COMPARISON_QUESTION_ID,
    EXPLANATION_QUESTION_ID,
    OVERALL_QUESTION_ID,
    ReferencingProfile,
)
from pollex.rubrics.answers import Answer

CURVES_BY_JUDGE = {
    HUMAN_JUDGE: ("ink", "people"),
    "plain": ("negative", "plain: no reference, no rules"),
    RULES_JUDGE: ("positive", "by rules, against the reference"),
}
"""Class and name of each judge's curve; dashed and solid lines tell them apart without color."""

COLUMN_TITLES = {
    "overall": "Overall, by rules",
    "plain": "Overall, plain",
    "human": "Overall, people",
}
"""Names of the columns that stand first."""


def render_grades_page(
    grade_summary: GradeSummary,
    *,
    judge: str,
    pivot: float,
    run: str = "",
    example: Mapping[str, object] | None = None,
) -> str:
    """Render the whole page.

    Args:
        judge: The model's name.
        pivot: The grade of the reference.
        example: An answer that is shown; see `choose_example`.

    Returns:
        HTML, the same for the same arguments. Write it as UTF-8.
    """
    # the ends of the scale, as readers see them
    worst, best = (format_number(float(level), 0) for level in grade_summary.levels[[0, -1]])
    return render_template(
        "grades.html",
        file="",
        titles={},
        judge=judge,
        scale=f"The reference has grade {format_number(pivot, 0)} on a scale from {worst} to {best}.",
        by_people=bool(grade_summary.counts.get(HUMAN_JUDGE)),
        left_out=list_left_out(grade_summary.outcomes, grade_summary.flags),
        facts={"judge": judge, "run": run},
        **prepare_sections(grade_summary, pivot, example),
    )


def prepare_sections(
    grade_summary: GradeSummary,
    pivot: float,
    example: Mapping[str, object] | None,
) -> dict[str, object]:
    """Return what the template of distributions, means, agreement and the example shows; arguments as above."""
    # only judges that graded something have a curve
    shown = []
    for name in CURVES_BY_JUDGE:
        if grade_summary.counts.get(name):
            shown.append(name)

    # columns over all cases come first, dimensions after them
    columns = sorted(grade_summary.dimensions, key=lambda name: name not in COLUMN_TITLES)
    return {
        "found": grade_summary,
        "legend": [
            (CURVES_BY_JUDGE[name][0], f"{CURVES_BY_JUDGE[name][1]} (n = {grade_summary.counts[name]})")
            for name in shown
        ],
        "drawing": draw_cumulative_chart(grade_summary, pivot),
        "unequal": len({grade_summary.counts[name] for name in shown}) > 1,
        "areas": {name.replace(" - ", " minus "): (figure, describe_area(name, figure))
                  for name, figure in grade_summary.areas.items()},
        "columns": {name: grade_summary.names.get(name, COLUMN_TITLES.get(name, name)) for name in columns},
        "everything": ALL_CATEGORIES,
        "example": example,
    }  # fmt: skip


def choose_example(
    profile: ReferencingProfile, gradings: Sequence[CaseGrading]
) -> dict[str, object] | None:
    """Return the answer with the lowest grade, with all that the judge said; None without grades."""
    # cases with an overall grade, which decides which one is shown
    graded = []
    for grading in gradings:
        if isinstance(overall := grading.answers.get(OVERALL_QUESTION_ID), Answer):
            graded.append((grading, overall.chosen))

    if not graded:
        return None

    worst = min(graded, key=lambda pair: pair[1])[0]
    names = {key: part.name for key, part in profile.dimensions.items()} | COLUMN_TITLES
    # every question of that case, in the order of the rules
    answers = []
    for question in worst.graded:
        answers.append((question, worst.answers.get(question.id)))

    return {
        "case": worst.case,
        "comparison": worst.said(COMPARISON_QUESTION_ID),
        "explanation": worst.said(EXPLANATION_QUESTION_ID),
        "grades": [
            (
                names.get(question.id, question.id),
                question.options[answer.chosen].text,
                answer.justification,
            )
            for question, answer in answers
            if isinstance(answer, Answer)
        ],
    }


def draw_cumulative_chart(grade_summary: GradeSummary, pivot: float) -> Markup:
    """Draw the cumulative distributions of all judges' grades, with the reference's own grade marked."""
    low = float(grade_summary.levels[0])
    high = float(grade_summary.levels[-1])
    # half a grade to the left, so that the first step is seen
    frame = ChartFrame.over((low - 0.5, high), (0.0, 1.0))
    shown = []
    for name in CURVES_BY_JUDGE:
        if grade_summary.counts.get(name):
            shown.append(name)

    curves_told = join_with_and(
        [
            f"{CURVES_BY_JUDGE[name][1]} ({format_grouped_count(grade_summary.counts[name], 'grade')})"
            for name in shown
        ]
    )

    return make_svg(
        f"Cumulative distribution of grades: {curves_told}",
        frame.y_axis(SHARE_AXIS_MARKS),
        frame.vline(pivot, "reference", "reference"),
        [
            frame.curve(
                *compute_step_corners(grade_summary.levels, grade_summary.shares[name], low - 0.5),
                CURVES_BY_JUDGE[name][0],
            )
            for name in shown
        ],
        frame.x_axis("grade"),
    )


def compute_step_corners(
    levels: Floats, shares: Floats, start: float
) -> tuple[list[float], list[float]]:
    """Return the corners of a cumulative distribution with steps, from 0 at `start`."""
    rises = np.flatnonzero(np.diff(shares, prepend=0.0))  # flat stretches need no corners
    xs = np.concatenate([[start], np.repeat(levels[rises], 2), levels[-1:]])
    after = shares[rises]
    before = np.concatenate([[0.0], after[:-1]])[: len(after)]
    ys = np.concatenate([[0.0], np.stack([before, after], axis=1).ravel(), shares[-1:]])

    return xs.tolist(), ys.tolist()


def describe_area(name: str, figure: Figure) -> str:
    """Say whether the difference between two judges is more than noise; empty for one judge."""
    if " - " not in name or not (is_known(figure.low) and is_known(figure.high)):
        return ""
    if figure.low <= 0 <= figure.high:
        return "may be noise: the interval includes 0"
    return "more than noise"


def list_left_out(outcomes: Mapping[str, int], flags: Mapping[str, int]) -> list[str]:
    """List cases without a grade by outcome, and cases with a flag."""
    missing = []
    for name, n in outcomes.items():
        if name != "graded":
            missing.append(f"{format_grouped_count(n, 'case')}: {name.replace('_', ' ')}")

    return missing + [
        f"{format_grouped_count(n, 'case')} flagged: {name}" for name, n in flags.items()
    ]
