"""What a run of `pollex judge` came to, in lines for people and as JSON values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import floor
from typing import Any

from pollex.graphs.judge.run import Decided, Judged
from pollex.rubrics.answers import MENDABLE
from pollex.selection.consensus import Filtered, FittedTau
from pollex.services.options import JudgeOptions

ENOUGH_LABELS = 50


def summary_lines(judged: Judged, decided: Sequence[Decided], calls: int | None, kept: str) -> list[str]:
    """The rule, and what a reader of the verdicts has to know.

    Args:
        calls: What a run takes of them; None where that is not known.
        kept: What commands need behind them to find the store.
    """
    rule = f"Rule: {judged.rule.in_words()}; at least {judged.rule.minimum} runs must have answered"
    return [
        rule,
        *_told_of_failures(judged, decided, kept),
        *_told_of_precision(judged),
        *_told_of_saving(judged, calls),
    ]


def failures_of(decided: Sequence[Decided]) -> dict[str, int]:
    """How many runs have no answer, by outcome, of conversations that could be judged."""
    return dict(sum((Counter(one.verdict.failures) for one in decided if one.scorable), Counter()))


def _told_of_failures(judged: Judged, decided: Sequence[Decided], kept: str) -> list[str]:
    """With how many runs was decided where some of them failed, and what can be done about it."""
    failures = failures_of(decided)
    if not failures:
        return []
    verdicts = [one.verdict for one in decided if one.scorable]
    answered = [verdict.answered for verdict in verdicts]
    asked, kinds = sum(verdict.runs for verdict in verdicts), ", ".join(f"{n} {kind}" for kind, n in failures.items())
    found = [
        f"Note: {sum(failures.values())} of {asked} runs without an answer, so without a vote ({kinds}): "
        f"verdicts rest on {min(answered)} to {max(answered)} answers; why: pollex trace {judged.run}{kept}"
    ]
    # An answer that came and can't be read is paid for, and would only be read again.
    if again := sorted(failures.keys() & MENDABLE - {"unparsable"}):
        found.append(f"Note: the same command with LOGS and --resume asks again what came to {', '.join(again)}")
    if "refused" in failures:
        found.append("Note: what the model refused is asked again with --resume and --retry-refused")
    return found


def _told_of_precision(judged: Judged) -> list[str]:
    fitted = judged.fitted
    if fitted is None:
        return []
    if fitted.tau is None:
        best = (
            ""
            if fitted.best is None
            else f" The most that one reaches is {floor(1000 * fitted.best) / 1000:.3f}: ask for no more."
        )
        return [f"No τ reaches a precision of {judged.task.precision} on {fitted.n} thumbs: nothing passes.{best}"]
    lines = [
        f"τ was fitted to {fitted.n} thumbs: {fitted.right} of the {fitted.passed} that pass are right, "
        f"{_share(fitted.precision, fitted.interval)}",
        _told_of_unseen(judged.unseen),
    ]
    if fitted.n < ENOUGH_LABELS:
        lines.append(f"Note: {ENOUGH_LABELS - fitted.n} more thumbs are needed before this τ is to be relied on.")
    return lines


def _told_of_unseen(unseen: Filtered | None) -> str:
    """What a τ that is fitted so does to thumbs that it was not fitted to."""
    if unseen is None:
        return "There are too few thumbs to tell how it does on others."
    side, n = unseen.passed, unseen.passed.n + unseen.left.n
    if not side.n:
        return f"On thumbs that it is not fitted to none of {n} passes."
    return (
        f"On thumbs that it is not fitted to {side.right} of the {side.n} that pass are right, "
        f"{_share(side.precision, side.precision_interval)}; "
        f"{side.n} of {n} pass, {_share(unseen.coverage, unseen.coverage_interval)}"
    )


def _share(value: float | None, ends: tuple[float, float] | None) -> str:
    return "undefined" if value is None or ends is None else f"{value:.3f} [{ends[0]:.3f}, {ends[1]:.3f}]"


def _told_of_saving(judged: Judged, calls: int | None) -> list[str]:
    saved = judged.planned - judged.asked
    if not saved:
        return []
    of_calls = "" if calls is None else f", {saved * calls} calls,"
    return [f"Asked {judged.asked} of {judged.planned} runs: {saved}{of_calls} could not have changed a verdict"]


def summary_json(
    judged: Judged, decided: Sequence[Decided], options: JudgeOptions, calls: int | None = None
) -> dict[str, Any]:
    """What a run came to, for scripts."""
    saved = judged.planned - judged.asked
    return {
        "run": judged.run,
        "out": str(options.out),
        "judge": judged.task.by,
        "n": sum(judged.counts.values()),
        "outcomes": judged.counts,
        "waiting": judged.waiting,
        "rule": judged.rule.in_words(),
        "tau": judged.rule.tau,
        "runs": {"asked": judged.asked, "planned": judged.planned, "failed": failures_of(decided)},
        "calls_saved": None if calls is None else saved * calls,
        "fitted": fitted_json(judged.fitted),
        "unseen": unseen_json(judged.unseen),
    }


def fitted_json(fitted: FittedTau | None) -> dict[str, Any] | None:
    """How τ does on the thumbs that it was fitted to."""
    if fitted is None:
        return None
    return {
        "n": fitted.n,
        "passed": fitted.passed,
        "right": fitted.right,
        "precision": fitted.precision,
        "interval": fitted.interval,
        "best": fitted.best,
    }


def unseen_json(unseen: Filtered | None) -> dict[str, Any] | None:
    """How a τ that is fitted so does on thumbs that it was not fitted to."""
    if unseen is None:
        return None
    return {
        "n": unseen.passed.n + unseen.left.n,
        "passed": unseen.passed.n,
        "right": unseen.passed.right,
        "precision": unseen.passed.precision,
        "interval": unseen.passed.precision_interval,
        "coverage": unseen.coverage,
        "coverage_interval": unseen.coverage_interval,
    }
