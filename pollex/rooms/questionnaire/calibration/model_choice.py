"""Comparison of candidates for a calibrator on held-out judgments, and the choice."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Literal

import numpy as np

from pollex.calibration.paired import compute_clustered_standard_error_of_mean
from pollex.measures.arrays import Floats, Ints
from pollex.measures.distributions import compute_answer_log_losses
from pollex.text import JsonDict

Candidate = tuple[str, JsonDict]
"""Name of a model in `models/`, and its settings."""

ChoiceRule = Literal["best", "average", "stacked"]
"""`best`: the largest held-out log-likelihood. `average`: all that are within one standard error of the best, alike.
`stacked`: the mixture with the largest."""

FEW_LABELS_OF_JUDGE = 5
"""Where the middle judge has fewer labels than this, a judge has an intercept of their own and no more."""

MAX_TRIAL_NAMES = 3
"""Of more candidates together, a sentence gives their kinds, not every name."""


@dataclass(frozen=True)
class CandidateFigures:
    """The figures of one candidate.

    Attributes:
        model: Its name in `models/`.
        settings: What differs from its defaults.
        n: Held-out judgments of the main question.
        loss: Mean of minus the log-likelihood, in nats; None: it could not be fitted.
        error: Standard error of the loss, over texts.
        behind: By how much its loss exceeds that of the best.
        behind_error: Standard error of that difference, over texts.
        refused: Why it could not be fitted.
    """

    model: str
    settings: dict[str, object]
    n: int
    loss: float | None = None
    error: float | None = None
    behind: float | None = None
    behind_error: float | None = None
    refused: str = ""

    @property
    def name(self) -> str:
        """Model and settings on one line."""
        return " ".join([self.model, *(f"{key}={value}" for key, value in self.settings.items())])


@dataclass(frozen=True)
class ModelChoice:
    """The chosen candidate, and all trials.

    Attributes:
        how: How the candidates were compared, in words.
        rule: See `ChoiceRule`.
        chosen: Index in `trials` of the best one.
        trials: All candidates, in the order in which they were given.
        weights: Shares in the prediction by index in `trials`: one alone, the members of a mixture,
            or those averaged.
    """

    how: str
    rule: ChoiceRule
    chosen: int
    trials: tuple[CandidateFigures, ...]
    weights: dict[int, float]

    def ranking(self) -> list[CandidateFigures]:
        """Sort trials by loss; those that could not be fitted come last."""
        return sorted(self.trials, key=_get_loss)

    def refusals(self) -> dict[str, list[CandidateFigures]]:
        """Return those that could not be fitted, by why."""
        by_reason: dict[str, list[CandidateFigures]] = {}
        for trial in self.trials:
            if trial.loss is None:
                by_reason.setdefault(trial.refused, []).append(trial)
        return by_reason

    def sentence(self) -> str:
        """Describe the choice and its margin."""
        # what is taken, and how the rule took it
        best = self.trials[self.chosen]
        other = self._find_next()
        selection = self._describe_selection()
        if self.rule == "average" and len(self.weights) > 1:
            selection = f"{selection}, which can't be told from the best, {best.name},"
        if self.rule == "stacked" and len(self.weights) > 1:
            selection = f"{selection}, weighted; the best alone {best.name}"

        # how far the next candidate is behind, where there is another
        start = f"{selection} by {self.how}: log-loss {best.loss:.3f} ± {best.error:.3f} on {best.n} judgments"
        if other is None:
            refused = []
            for trial in self.trials:
                if trial.loss is None:
                    refused.append(trial)

            return f"{start}; " + (
                f"not fitted: {join_trial_names(refused)}"
                if refused
                else "there was no other candidate"
            )

        return f"{start}, next {other.name} with {other.behind:.3f} ± {other.behind_error:.3f} more"

    def _describe_selection(self) -> str:
        chosen = [self.trials[place] for place in self.weights]
        if len(chosen) == 1:
            return chosen[0].name
        return f"{len(chosen)} together ({join_trial_names(chosen)})"

    def facts(self) -> JsonDict:
        """Return the choice as JSON values."""
        weights = {}
        for place, weight in self.weights.items():
            weights[str(place)] = weight

        return asdict(self) | {
            "trials": [asdict(trial) for trial in self.trials],
            "weights": weights,
        }

    def _find_next(self) -> CandidateFigures | None:
        # an average says nothing of its own members: the next is the best of the others
        if self.rule == "average":
            selected = {self.chosen, *self.weights}
        else:
            selected = {self.chosen}

        others = []
        for place, trial in enumerate(self.trials):
            if place not in selected:
                others.append(trial)

        fitted = []
        for trial in others:
            if trial.loss is not None:
                fitted.append(trial)

        return min(fitted, key=_get_loss, default=None)


def join_trial_names(trials: Sequence[CandidateFigures]) -> str:
    """Their names; of many, how many there are of each kind."""
    if len(trials) <= MAX_TRIAL_NAMES:
        return ", ".join(trial.name for trial in trials)

    kinds = Counter(trial.model for trial in trials)
    return ", ".join(kind if count == 1 else f"{count} of {kind}" for kind, count in kinds.items())


def restore_choice(facts: JsonDict) -> ModelChoice:
    """Restore a choice from the result of `ModelChoice.facts`."""
    weights = {}
    for place, weight in facts["weights"].items():
        weights[int(place)] = float(weight)

    trials = tuple(CandidateFigures(**trial) for trial in facts["trials"])
    return ModelChoice(
        facts["how"],
        facts["rule"],
        facts["chosen"],
        trials,
        weights,
    )


def try_candidates(
    candidates: Sequence[Candidate],
    held_out: Sequence[Floats | str],
    answers: Ints,
    texts: Ints,
) -> list[CandidateFigures]:
    """Return a trial for each candidate.

    Args:
        held_out: Distributions of the judgments by each candidate `[judgment, option]`, or why
            there are none.
        answers: What was answered `[judgment]`.
        texts: The text of each judgment, for standard errors `[judgment]`.
    """
    # losses `[judgment]` of each candidate, None where it could not be fitted
    losses = []
    for proba in held_out:
        losses.append(
            None if isinstance(proba, str) else compute_clipped_log_losses(proba, answers)
        )

    means = []
    for loss in losses:
        means.append(np.inf if loss is None else float(loss.mean()))

    best = losses[int(np.argmin(means))]
    # each beside the best, on the same judgments
    trials = []
    for (model, settings), proba, loss in zip(candidates, held_out, losses, strict=True):
        if loss is None or best is None or isinstance(proba, str):
            trials.append(
                CandidateFigures(
                    model,
                    settings,
                    len(answers),
                    refused=str(proba),
                )
            )
            continue

        trials.append(
            CandidateFigures(
                model,
                settings,
                len(answers),
                loss=float(loss.mean()),
                error=compute_clustered_standard_error_of_mean(loss, texts),
                behind=float((loss - best).mean()),
                behind_error=compute_clustered_standard_error_of_mean(loss - best, texts),
            )
        )

    return trials


LEAST_PROBABILITY = 1e-15


def compute_clipped_log_losses(proba: Floats, answers: Ints) -> Floats:
    """Compute −log p of the given answer `[judgment]`; probability 0 counts as 1e-15."""
    return compute_answer_log_losses(np.maximum(proba, LEAST_PROBABILITY), answers)


def find_best_trial(trials: Sequence[CandidateFigures]) -> int:
    """Place of the trial with the smallest loss; of equals, the first."""
    return min(range(len(trials)), key=lambda place: _get_loss(trials[place]))


def list_trials_near_best(trials: Sequence[CandidateFigures]) -> list[int]:
    """List the trials within one standard error of the best."""
    fitted = []
    for place, trial in enumerate(trials):
        fitted.append((place, trial.behind, trial.behind_error))

    places: list[int] = []
    for place, behind, error in fitted:
        if behind is not None and error is not None and behind <= error:
            places.append(place)

    return places


def _get_loss(trial: CandidateFigures) -> float:
    return np.inf if trial.loss is None else trial.loss


def fit_mixture_weights(
    held_out: Sequence[Floats],
    answers: Ints,
    rounds: int = 200,
) -> Floats:
    """Fit mixture weights `[candidate]` by expectation-maximization.

    The usual number of rounds ends shortly before that, with more members left: on LLM-Rubric's
    synthetic dialogues up to 0.002 nats a judgment short of the largest likelihood, and on systems
    that the weights have not seen, alike.
    """
    # probability of each given answer, by candidate `[judgment, candidate]`
    likely = np.stack(
        [np.maximum(p[np.arange(len(answers)), answers], LEAST_PROBABILITY) for p in held_out],
        axis=1,
    )
    weights = np.full(len(held_out), 1 / len(held_out))
    for _ in range(rounds):
        shares = likely * weights
        weights = (shares / shares.sum(axis=1, keepdims=True)).mean(axis=0)

    return weights
