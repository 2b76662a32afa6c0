"""Lines of `pollex judge` and `pollex review`."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from math import floor
from pathlib import Path

from pollex.cli.output import list_some, show_outcomes, show_used, table
from pollex.cli.session import Screen
from pollex.rubrics.answers import RETRYABLE
from pollex.selection.consensus import Filtered
from pollex.services.precision import Precision
from pollex.services.verdicts import JudgeResult
from pollex.store.folder import store_option
from pollex.text import count

ENOUGH_LABELS = 50
MOST_ROWS = 12


def show_verdicts(screen: Screen, found: JudgeResult, store: Path) -> None:
    """Show the results of a run, the files written, and how to ask people."""
    judged, kept = found.judged, store_option(store)
    show_outcomes(screen, judged.counts)
    for line in summary_lines(found, kept):
        screen.say(line)
    if found.precision:
        show_precision(screen, found.precision)
    list_some(screen, "answer was not used", "answers were not used", found.unused)
    for name, usage in found.usages:
        if len(found.usages) > 1:
            screen.say(f"{name}:")
        show_used(screen, usage)
    if found.files.written:
        names = ", ".join(map(str, found.files.written))
        screen.say(f"Wrote {names} ({judged.task.by}; run {judged.run})")
    if judged.waiting:
        file = shlex.quote(str(found.files.doubtful or "people.jsonl"))
        option = "--answers" if found.files.doubtful else "--out"
        waits = count(judged.waiting, "waits", "wait")
        screen.say(f"{waits} for people: pollex review {judged.run} {option} {file}{kept}")


def summary_lines(found: JudgeResult, kept: str) -> Iterator[str]:
    """Yield the rule, and what a reader of the verdicts has to know.

    Args:
        kept: What a command needs behind it to find the store.
    """
    rule = found.judged.rule
    yield f"Rule: {rule.in_words()}; at least {rule.minimum} runs must have answered"
    if rule.passes_all(len(found.judged.task.question.options)):
        yield (
            f"Note: with two options any {rule.runs} answers pass this rule, so that it filters nothing. "
            "With --ensemble 5 or more and no --tau, answers of 3:2 don't pass"
        )
    yield from _failures(found, kept)
    yield from _precision(found)
    judged = found.judged
    if spared := judged.planned - judged.asked:
        calls = "" if found.calls_saved is None else f", {found.calls_saved} calls,"
        yield f"Asked {judged.asked} of {judged.planned} runs: {spared}{calls} could not have changed a verdict"


def show_precision(screen: Screen, found: Precision) -> None:
    """Show how right ratings are on either side of τ, and tables of the paper's figures 1 and 2."""
    sides = (found.chosen.passed, found.chosen.left)
    for words, side, people in zip(("pass", "don't"), sides, found.people, strict=True):
        share = _share(side.precision, side.precision_interval)
        screen.say(f"Of {side.n} conversations with a thumb that {words}, {side.right} are rated right: {share}")
        if people.texts:
            share = _share(people.agreed / people.texts, people.interval)
            screen.say(f"  People agree on {people.agreed} of {count(people.texts, 'text')} among them: {share}")
    screen.say(f"Coverage: {_share(found.chosen.coverage, found.chosen.coverage_interval)}")
    every = max((point.n for point in found.by_tau), default=0)
    for points in (found.by_runs, [point for point in found.by_tau if point.n == every][:MOST_ROWS]):
        made = table("runs", "τ", "coverage", "right, DE ≤ τ", "right, DE > τ")
        for point in points:
            sides = (point.sides.passed, point.sides.left)
            shares = [_share(side.precision, side.precision_interval, 2) for side in sides]
            coverage = _share(point.sides.coverage, point.sides.coverage_interval, 2)
            made.add_row(str(point.n), f"{point.tau:.4f}", coverage, *shares)
        if points:
            screen.console.print(made)


def _failures(found: JudgeResult, kept: str) -> Iterator[str]:
    """Yield how many runs failed, and how to repeat them."""
    failures = found.failures
    if not failures:
        return
    verdicts = [one.verdict for one in found.verdicts if one.scorable]
    answered = [verdict.answered for verdict in verdicts]
    asked, kinds = sum(verdict.runs for verdict in verdicts), ", ".join(f"{n} {kind}" for kind, n in failures.items())
    yield (
        f"Note: {sum(failures.values())} of {asked} runs without an answer, so without a vote ({kinds}): "
        f"verdicts rest on {min(answered)} to {max(answered)} answers; why: pollex trace {found.judged.run}{kept}"
    )
    # An answer that came and can't be read is paid for, and would only be read again.
    if again := sorted(failures.keys() & RETRYABLE - {"unparsable"}):
        yield f"Note: the same command with LOGS and --resume repeats the runs that ended as {', '.join(again)}"
    if "refused" in failures:
        yield "Note: calls that the model refused are repeated with --resume and --set retry_refused=true"


def _precision(found: JudgeResult) -> Iterator[str]:
    fitted = found.judged.fitted
    if fitted is None:
        return
    if fitted.tau is None:
        reached = None if fitted.best is None else floor(1000 * fitted.best) / 1000
        best = "" if reached is None else f" The highest precision that any τ reaches is {reached:.3f}."
        yield f"No τ reaches a precision of {found.judged.task.precision} on {fitted.n} thumbs: nothing passes.{best}"
        return
    yield (
        f"τ was fitted to {fitted.n} thumbs: {fitted.right} of the {fitted.passed} that pass are right, "
        f"{_share(fitted.precision, fitted.interval)}"
    )
    yield _unseen(found.judged.unseen)
    if fitted.n < ENOUGH_LABELS:
        yield f"Note: {ENOUGH_LABELS - fitted.n} more thumbs are needed before this τ is reliable."


def _unseen(unseen: Filtered | None) -> str:
    """Describe how a fitted τ does on thumbs that it was not fitted to."""
    if unseen is None:
        return "There are too few thumbs to measure it on others."
    side, n = unseen.passed, unseen.passed.n + unseen.left.n
    if not side.n:
        return f"On thumbs that it is not fitted to none of {n} passes."
    return (
        f"On thumbs that it is not fitted to {side.right} of the {side.n} that pass are right, "
        f"{_share(side.precision, side.precision_interval)}; "
        f"{side.n} of {n} pass, {_share(unseen.coverage, unseen.coverage_interval)}"
    )


def _share(value: float | None, interval: tuple[float, float] | None, digits: int = 3) -> str:
    if value is None or interval is None:
        return "undefined"
    return f"{value:.{digits}f} [{interval[0]:.{digits}f}, {interval[1]:.{digits}f}]"
