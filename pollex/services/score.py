"""What `pollex score` and `pollex evaluate` do around their graph: read, run, write, tell."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

import numpy as np

from pollex.cli.options import refuse_for
from pollex.cli.output import (
    figures_json,
    logs_from,
    print_json,
    probabilities_told,
    show_figures,
    show_logs,
    show_outcomes,
    show_usage,
    told,
    truth_json,
    usage_json,
)
from pollex.cli.session import Session, session
from pollex.conversations.conversation import Conversation, Label
from pollex.conversations.logs import Logs, positives
from pollex.conversations.splits import together
from pollex.errors import BadLabels
from pollex.formats.fields import ReadOptions
from pollex.formats.scores import exporter_for
from pollex.graphs.score.run import Scored, score, scores_of
from pollex.measures.arrays import Bools, Floats, Ints
from pollex.measures.classification import Assessment, WindowAssessment, assess, assess_window
from pollex.measures.intervals import Figure
from pollex.rubrics.figures import probability_figures
from pollex.rubrics.guarantee import promise
from pollex.rubrics.netsat import Score
from pollex.rubrics.records import ProbabilityFigures
from pollex.rubrics.rubric_set import RubricSet
from pollex.rubrics.thumb_model import judges_wanted
from pollex.selection.threshold import Window
from pollex.services.options import ModelOptions, RunOptions
from pollex.services.plan import plan_scoring
from pollex.services.roles import Workers, judging

DONE, PARTLY = 0, 3

SEEN = {"learnt_from": "the rubrics were learnt from", "fitted_to": "θ was fitted to"}
"""What may have been done with a conversation before, and how that is said."""


def score_command(
    sources: Sequence[str],
    rubrics: Path,
    out: Path,
    reading: ReadOptions,
    run: RunOptions,
    model: ModelOptions,
    judges: Sequence[str] = (),
) -> int:
    """Reads logs, scores them, writes a row a conversation, tells; the exit code.

    Args:
        judges: Whose probabilities are written beside that of somebody unknown; `all` for all.
    """
    rubric_set = RubricSet.load(rubrics)
    rubric_set.require_unedited(str(rubrics))
    refuse_for(rubric_set.judge)
    asked = judges_wanted(rubric_set.thumb_model, judges) if judges else ()  # to rebuild the model takes a second
    write = exporter_for(out, rubrics, *sources, judges=asked)
    logs = logs_from(sources, reading)
    if run.dry_run:
        return plan_scoring(logs.conversations, rubric_set, run, model)
    with session(run) as opened:
        show_logs(opened, logs)
        arguments = {"logs": list(sources), "rubrics": str(rubrics), "out": str(out)}
        scored, staff = opened.run(_score(opened, logs, rubric_set, model, arguments, "score"))
        scores = scores_of(opened.store, scored.run, rubric_set, logs.conversations, asked)
        write(out, opened.bars.over("write", scores, len(logs)), rubric_set, asked)
        show_outcomes(opened, scored.counts)
        show_usage(opened, staff)
        opened.say(f"Probabilities: {rubric_set.support}")
        opened.say(f"Wrote {out} ({rubric_set.judge.name}; run {scored.run})")
        if run.as_json:
            bad_rows = [{"where": f"{row.source}:{row.line}", "reason": row.reason} for row in logs.bad_rows]
            answer = {"run": scored.run, "out": str(out), "judge": rubric_set.judge.name, "outcomes": scored.counts}
            print_json(answer | {"n": len(logs), "bad_rows": bad_rows} | support_json(rubric_set) | usage_json(staff))
    return exit_code(logs, scored)


def evaluate_command(
    sources: Sequence[str], rubrics: Path, reading: ReadOptions, run: RunOptions, model: ModelOptions
) -> int:
    """Reads labelled logs, scores them, measures, tells; the exit code."""
    rubric_set = RubricSet.load(rubrics)
    rubric_set.require_unedited(str(rubrics))
    refuse_for(rubric_set.judge)
    logs = logs_from(sources, reading)
    labelled = [c for c in logs if c.label is not Label.NONE]
    if not labelled:
        raise BadLabels("no conversation has a label", where=", ".join(sources), remedy="name its field: --label-field")
    if run.dry_run:
        return plan_scoring(labelled, rubric_set, run, model)
    with session(run) as opened:
        show_logs(opened, logs)
        arguments = {"logs": list(sources), "rubrics": str(rubrics)}
        kept = Logs(conversations=tuple(labelled), fingerprint=logs.fingerprint)
        scored, staff = opened.run(_score(opened, kept, rubric_set, model, arguments, "evaluate"))
        scores = list(scores_of(opened.store, scored.run, rubric_set, labelled))
        measured, truth = measure(rubric_set, labelled, scores), likelihoods(rubric_set, labelled, scores)
        promised = kept_promise(rubric_set, labelled, scores)
        show_figures(opened, {f"{len(labelled)} labelled": measured})
        show_promise(opened, rubric_set, promised)
        show_truth(opened, rubric_set, truth)
        show_outcomes(opened, scored.counts)
        show_usage(opened, staff)
        opened.say(f"Judge: {rubric_set.judge.name}; run {scored.run}")
        seen = seen_before(rubric_set, labelled)
        for what, number in seen.items():
            if number:
                opened.say(f"Note: {SEEN[what]} {number} of these conversations: figures are too good.", "yellow")
        if run.as_json:
            limits = {"theta": rubric_set.theta, "window": [rubric_set.window.lower, rubric_set.window.upper]}
            limits |= {"guaranteed_window": promise_json(rubric_set, promised)}
            about = {"run": scored.run, "judge": rubric_set.judge.name, "outcomes": scored.counts} | seen
            probability = {"probability": truth_json(truth)} | support_json(rubric_set)
            print_json(figures_json(measured) | probability | limits | about | usage_json(staff))
    return exit_code(logs, scored)


def seen_before(rubric_set: RubricSet, labelled: Sequence[Conversation]) -> dict[str, int]:
    """How many of the conversations the rubric set is made of, by what was done with them; see `SEEN`."""
    known = {"learnt_from": rubric_set.learnt_from, "fitted_to": rubric_set.only_fitted_to}
    return {what: sum(c.text_hash[:16] in hashes for c in labelled) for what, hashes in known.items()}


def measure(rubric_set: RubricSet, labelled: Sequence[Conversation], scores: Iterable[Score]) -> Assessment:
    """The metrics of those conversations that have a score."""
    netsat, positive, blocks = scored_and_labelled(labelled, scores)
    window = Window(**rubric_set.window.model_dump())
    return assess(
        netsat, positive, rubric_set.theta, window.confident(netsat), np.random.default_rng(0), together=blocks
    )


def kept_promise(
    rubric_set: RubricSet, labelled: Sequence[Conversation], scores: Iterable[Score]
) -> WindowAssessment | None:
    """What the window with a guarantee does to them; None where the set has no such window."""
    if rubric_set.guaranteed is None:
        return None
    netsat, positive, blocks = scored_and_labelled(labelled, scores)
    window = rubric_set.guaranteed.window
    return assess_window(window.over(netsat), window.under(netsat), positive, blocks)


def scored_and_labelled(labelled: Sequence[Conversation], scores: Iterable[Score]) -> tuple[Floats, Bools, Ints]:
    """NetSAT, label and block of those conversations that have a score, each `[conversation]`."""
    pairs = [(s.netsat, c) for s, c in zip(scores, labelled, strict=True) if s.netsat is not None]
    scored = [c for _, c in pairs]
    return np.array([netsat for netsat, _ in pairs], float), positives(scored), together(scored)


def likelihoods(rubric_set: RubricSet, labelled: Sequence[Conversation], scores: Iterable[Score]) -> ProbabilityFigures:
    """How true the probabilities are of those conversations that have one."""
    pairs = [(s.probability, c) for s, c in zip(scores, labelled, strict=True) if s.probability is not None]
    probability, scored = np.array([p for p, _ in pairs], float), [c for _, c in pairs]
    share, rng = rubric_set.training.positives / rubric_set.training.n, np.random.default_rng(0)
    return probability_figures(probability, positives(scored), share, rng, together(scored), smooth=True)


def show_promise(opened: Session, rubric_set: RubricSet, found: WindowAssessment | None) -> None:
    """The yield and the precisions of the window with a guarantee, beside what it promises."""
    if (record := rubric_set.guaranteed) is None or found is None:
        return
    kept = f"yield {counted(found.yield_rate)}; right outside it {counted(found.accuracy)}"
    opened.say(f"Window with a guarantee ({promise(record)}): {kept}")
    for side, label, place, precision in (
        (record.upper, "positive", "over", found.positive),
        (record.lower, "negative", "at most", found.negative),
    ):
        if side.threshold is not None:
            opened.say(f"  {label} {place} {side.threshold:.1f}: right {counted(precision)}")


def counted(metric: Figure) -> str:
    """A share with its interval, and what it is of."""
    said = told(metric)
    return said if metric.value is None else f"{said} of {metric.n}"


def promise_json(rubric_set: RubricSet, found: WindowAssessment | None) -> dict[str, Any] | None:
    """The same for scripts; null where the set has no such window."""
    if (record := rubric_set.guaranteed) is None or found is None:
        return None
    sides = {"lower": record.lower.threshold, "upper": record.upper.threshold}
    return sides | {"precision": record.precision, "delta": record.delta, "fitted_on": record.n} | asdict(found)


def show_truth(opened: Session, rubric_set: RubricSet, found: ProbabilityFigures) -> None:
    """How true the probabilities are."""
    smooth = f", smECE {told(found.smece)}" if found.smece else ""
    opened.say(f"Probabilities ({rubric_set.support}; n = {found.n}): {probabilities_told(found)}{smooth}")


def support_json(rubric_set: RubricSet) -> dict[str, Any]:
    """Whether the probabilities may be called calibrated, for scripts."""
    support = rubric_set.support
    return {"calibrated": support.enough, "labels": support.labels, "labels_missing": support.missing}


async def _score(
    opened: Session,
    logs: Logs,
    rubric_set: RubricSet,
    model: ModelOptions,
    arguments: dict[str, Any],
    command: Literal["score", "evaluate"],
) -> tuple[Scored, Workers]:
    async with judging(model, rubric_set, opened.store) as staff:
        opened.meet(staff)
        scored = await score(
            logs.conversations,
            rubric_set,
            judge=staff.roles.judge,
            data_fingerprint=logs.fingerprint,
            setting=opened.setting(arguments, staff),
            command=command,
        )
        return scored, staff


def exit_code(logs: Logs, scored: Scored) -> int:
    """3 where a row or a conversation could not be processed."""
    return PARTLY if logs.bad_rows or scored.counts.keys() - {"scored"} else DONE
