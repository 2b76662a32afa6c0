"""Measure a rubric set on labeled conversations."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pollex.conversations.conversation import Conversation, Label
from pollex.conversations.logs import BadRow, Logs, positives
from pollex.conversations.splits import block_ids
from pollex.errors import BadLabels
from pollex.formats.fields import ReadOptions
from pollex.graphs.context import Progress
from pollex.measures.arrays import Bools, Floats, Ints
from pollex.measures.classification import Assessment, WindowAssessment, assess, assess_window, auc_of_scores
from pollex.measures.intervals import Figure
from pollex.rubrics.guarantee import guarantee_text
from pollex.rubrics.records import ProbabilityFigures
from pollex.rubrics.rubric_set import RubricSet
from pollex.rubrics.score import Score
from pollex.rubrics.worth import probability_figures
from pollex.services.label_sources import labeled_logs
from pollex.services.logs import Sources, names_of
from pollex.services.options import ModelOptions, RunOptions
from pollex.services.plan import Planned, plan_scoring
from pollex.services.results import (
    FIGURES,
    ModelUsage,
    Shown,
    counted,
    figures_json,
    figures_told,
    probabilities_told,
    probability_json,
    support_json,
    used,
)
from pollex.services.score import scored_by, unedited
from pollex.services.workspace import workspace
from pollex.store.runs import Status
from pollex.text import Told, notes_told

SEEN = {"learned_from": "the rubrics were learned from", "fitted_to": "θ was fitted to"}
"""How a conversation may have been used before, in words."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Evaluation(Shown):
    """Figures of a rubric set on labeled conversations.

    Attributes:
        probability: Figures of the probabilities.
        guarantee: Figures of the window with a guarantee; None if the set has none.
        seen: Number of conversations that the set was made from, by use; see `SEEN`.
    """

    fine = ("scored",)

    run: str
    rubrics: RubricSet
    n: int
    figures: Assessment
    probability: ProbabilityFigures
    guarantee: WindowAssessment | None
    seen: dict[str, int]
    outcomes: dict[str, int]
    bad_rows: tuple[BadRow, ...] = ()
    usage: ModelUsage | None = None
    probability_auc: Figure | None = None

    @property
    def warnings(self) -> list[str]:
        """Reasons why the figures are too optimistic, if they are."""
        used = [(SEEN[how], number) for how, number in self.seen.items() if number]
        return [f"{how} {number} of these conversations: figures are too good." for how, number in used]

    @property
    def headline(self) -> str:
        auc = self.figures.auc
        value = f"undefined: {auc.undefined}" if auc.value is None else f"{auc.value:.3f}"
        return f"AUC {value} (n = {self.n})"

    def records(self) -> list[dict[str, Any]]:
        named = {title: getattr(self.figures, name) for name, title in FIGURES.items()}
        return [{"metric": name, "value": f.value, "low": f.low, "high": f.high} for name, f in named.items()]

    def told(self) -> Told:
        """Yield how well a rubric set does on labeled conversations."""
        yield from figures_told({f"{self.n} labeled": self.figures})
        yield from self._guarantee_told()
        smooth = f", smECE {self.probability.smece}" if self.probability.smece else ""
        about = f"Probabilities ({self.rubrics.support}; n = {self.probability.n})"
        yield f"{about}: {probabilities_told(self.probability)}{smooth}"
        if self.probability_auc is not None:
            yield f"Probabilities rest on a starter, too; their AUC is {self.probability_auc}"
        yield counted(self.outcomes)
        yield from used(self.usage)
        yield f"Judge: {self.rubrics.judge.name}; run {self.run}"
        yield from notes_told(self.warnings)

    def _guarantee_told(self) -> Told:
        if (record := self.rubrics.guaranteed) is None or (measured := self.guarantee) is None:
            return
        kept = f"yield {_of(measured.yield_rate)}; right outside it {_of(measured.accuracy)}"
        yield f"Window with a guarantee ({guarantee_text(record)}): {kept}"
        for side, label, place, precision in (
            (record.upper, "positive", "over", measured.positive),
            (record.lower, "negative", "at most", measured.negative),
        ):
            if side.threshold is not None:
                yield f"  {label} {place} {side.threshold:.1f}: right {_of(precision)}"

    def as_json(self) -> dict[str, Any]:
        record, guaranteed = self.rubrics.guaranteed, None
        if record is not None and self.guarantee is not None:
            sides = {"lower": record.lower.threshold, "upper": record.upper.threshold}
            promised = {"precision": record.precision, "delta": record.delta, "fitted_on": record.n}
            guaranteed = sides | promised | asdict(self.guarantee)
        return (
            figures_json(self.figures)
            | {"probability": probability_json(self.probability)}
            | support_json(self.rubrics)
            | ({} if self.probability_auc is None else self.of("probability_auc"))
            | {"theta": self.rubrics.theta, "window": [self.rubrics.window.lower, self.rubrics.window.upper]}
            | {"guaranteed_window": guaranteed}
            | {"run": self.run, "judge": self.rubrics.judge.name, "outcomes": self.outcomes}
            | self.seen
            | self.of("usage")
        )


def _of(share: Figure) -> str:
    return f"{share}" if share.value is None else f"{share} of {share.n}"


def evaluate(
    logs: Sources | Logs,
    rubrics: Path | RubricSet,
    *,
    reading: ReadOptions,
    run: RunOptions,
    model: ModelOptions,
    progress: Progress,
) -> Evaluation:
    """Measure a rubric set on labeled conversations.

    Raises:
        BadLabels: No conversation has a label.
        BadRubrics: The rubrics were edited after θ was fitted.
    """
    rubric_set = unedited(rubrics)
    read = labeled_logs(logs, reading, run.store, progress)
    labelled = labelled_in(read, logs)
    if run.dry_run:
        raise Planned(plan_scoring(labelled, rubric_set, run, model))
    with workspace(run, progress, read) as opened:
        arguments = {"logs": names_of(logs), "rubrics": names_of(rubrics)[0]}
        kept = Logs(conversations=tuple(labelled), fingerprint=read.fingerprint)
        scores = list[Score]()
        scored, usage = scored_by(opened, kept, rubric_set, model, arguments, "evaluate", scores.extend)
        measured, counts = measure(rubric_set, labelled, scores), dict(scored.counts)
        found = {"outcomes": counts, "auc": measured.auc.value}
        status: Status = "partial" if counts.keys() - {"scored"} else "done"
        opened.store.finish(scored.run, status, roles=[rubric_set.judge.name], result=found)
    probability, area = likelihoods(rubric_set, labelled, scores)
    return Evaluation(
        run=scored.run,
        rubrics=rubric_set,
        n=len(labelled),
        figures=measured,
        probability=probability,
        guarantee=check_guarantee(rubric_set, labelled, scores),
        probability_auc=area,
        seen=seen_before(rubric_set, labelled),
        outcomes=counts,
        bad_rows=read.bad_rows,
        usage=usage,
    )


def labelled_in(read: Logs, given: object) -> list[Conversation]:
    """Return the conversations with a label, except those that a queue preferred: figures are of others, too.

    Raises:
        BadLabels: None has one.
    """
    if labelled := [c for c in read if c.label is not Label.NONE and not c.preferred]:
        return labelled
    where = ", ".join(names_of(given))
    raise BadLabels("no conversation has a label", where=where, remedy="name its field", option="label_field")


def seen_before(rubric_set: RubricSet, labelled: Sequence[Conversation]) -> dict[str, int]:
    """Count the conversations that the set was made from, by use; see `SEEN`."""
    known = {"learned_from": rubric_set.learned_from, "fitted_to": rubric_set.only_fitted_to}
    return {how: sum(c.text_hash[:16] in hashes for c in labelled) for how, hashes in known.items()}


def measure(rubric_set: RubricSet, labelled: Sequence[Conversation], scores: Iterable[Score]) -> Assessment:
    """Measure the conversations that have a score."""
    netsat, positive, blocks = scored_and_labelled(labelled, scores)
    confident, rng = rubric_set.window.confident(netsat), np.random.default_rng(0)
    return assess(netsat, positive, rubric_set.theta, confident, rng, together=blocks)


def check_guarantee(
    rubric_set: RubricSet, labelled: Sequence[Conversation], scores: Iterable[Score]
) -> WindowAssessment | None:
    """Measure the window with a guarantee; None where the set has no such window."""
    if rubric_set.guaranteed is None:
        return None
    netsat, positive, blocks = scored_and_labelled(labelled, scores)
    window = rubric_set.guaranteed.window
    return assess_window(window.over(netsat), window.under(netsat), positive, blocks)


def scored_and_labelled(labelled: Sequence[Conversation], scores: Iterable[Score]) -> tuple[Floats, Bools, Ints]:
    """Return NetSAT, label and block of the conversations that have a score, each `[conversation]`."""
    pairs = [(s.netsat, c) for s, c in zip(scores, labelled, strict=True) if s.netsat is not None]
    scored = [c for _, c in pairs]
    return np.array([netsat for netsat, _ in pairs], float), positives(scored), block_ids(scored)


def likelihoods(
    rubric_set: RubricSet, labelled: Sequence[Conversation], scores: Iterable[Score]
) -> tuple[ProbabilityFigures, Figure | None]:
    """Measure how true the probabilities are of the conversations that have one; with a starter their AUC, too."""
    pairs = [(s.probability, c) for s, c in zip(scores, labelled, strict=True) if s.probability is not None]
    probability, scored = np.array([p for p, _ in pairs], float), [c for _, c in pairs]
    share, up, blocks = rubric_set.training.positives / rubric_set.training.n, positives(scored), block_ids(scored)
    found = probability_figures(probability, up, share, np.random.default_rng(0), blocks, smooth=True)
    if rubric_set.starter is None:
        return found, None
    return found, auc_of_scores(probability, up, np.random.default_rng(0), together=blocks)
