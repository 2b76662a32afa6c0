"""Lines and tables of `pollex grade`, `pollex answer` and `pollex ask`."""

from __future__ import annotations

from pollex.cli.output import list_some, show_outcomes, show_used, table
from pollex.cli.session import Screen
from pollex.formats.grade_summary import ALL
from pollex.measures.intervals import Figure
from pollex.services.answer import AnswerResult
from pollex.services.ask import AskResult
from pollex.services.grade import GradeResult
from pollex.text import count


def show_grades(screen: Screen, result: GradeResult) -> None:
    """Show mean grades, flags, and the distance between judges and people."""
    found = result.summary
    made = table("", "mean grade", "95 % interval", "n")
    for name in found.dimensions:
        if figure := found.mean(ALL, name):
            made.add_row(found.names.get(name, name), *_cells(figure))
    screen.console.print(made)
    for judge, figure in found.areas.items():
        value, interval, n = _cells(figure)
        screen.say(f"Area between distributions, {judge} and people: {value} {interval} (n = {n})")
    agreement = {name: found.agreement[ALL, name] for name in found.dimensions if (ALL, name) in found.agreement}
    if agreement:
        made = table("agreement with people", "Pearson", "Spearman", "Krippendorff's α", "n")
        for name, figures in agreement.items():
            cells = [" ".join(_cells(figure)[:2]) for figure in figures.values()]
            made.add_row(found.names.get(name, name), *cells, str(figures["alpha"].n))
        screen.console.print(made)
    for flag, times in found.flags.items():
        screen.say(f"Flagged, {times} of {found.n}: {flag}", style="yellow")
    failed = [f"{g.case.id}: {g.outcome}: {g.detail}" for g in result.gradings if g.outcome != "graded"]
    list_some(screen, "answer is not or not wholly graded", "answers are not or not wholly graded", failed)
    show_outcomes(screen, result.outcomes)
    show_used(screen, result.usage)
    screen.say(f"Wrote {result.out} and {result.page} ({result.judge}; run {result.run})")


def show_answers(screen: Screen, result: AnswerResult) -> None:
    """Show how many questions were answered, and which were not."""
    show_outcomes(screen, result.outcomes)
    failed = [f"{r.case.id}: {r.outcome}: {r.detail}" for r in result.responses if r.answer is None]
    list_some(screen, "question has no answer", "questions have no answer", failed)
    show_used(screen, result.usage)
    screen.say(f"Wrote {result.out} ({result.model}; run {result.run})")


SOURCES = {"logprobs": "from log-probabilities", "sampled": "from samples", "point": "points: one option has all"}


def show_asked(screen: Screen, result: AskResult) -> None:
    """Show where the answers come from, and how many are missing."""
    asked = count(len(result.questions), "question")
    told = ", ".join(f"{n} {SOURCES.get(name, name.replace('_', ' '))}" for name, n in result.sources.items())
    screen.say(f"{asked} about {count(result.texts, 'text')}: {told or 'no answer'}")
    if "point" in result.sources:
        screen.say(
            "Points tell nothing of doubt: choose an endpoint with log-probabilities, or --samples", style="yellow"
        )
    show_used(screen, result.usage)
    screen.say(f"Wrote {result.out} ({result.judge}; run {result.run})")


def _cells(figure: Figure) -> tuple[str, str, str]:
    if figure.value is None:
        return f"undefined: {figure.undefined}", "", str(figure.n)
    interval = "too few" if figure.low is None else f"[{figure.low:.2f}, {figure.high:.2f}]"
    return f"{figure.value:.2f}", interval, str(figure.n)
