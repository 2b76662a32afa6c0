"""Measure a rubric set on labeled conversations, and what a conversation's beginning tells of its thumb.

Satisfaction shows in how a conversation ends; after a turn a probability is given only where its
log-loss is under that of the share of thumbs up alone, on conversations that it was not fitted to.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from pollex.conversations.conversation import Conversation, Label
from pollex.conversations.logs import BadRow, Logs, flag_positive_labels
from pollex.conversations.splits import assign_folds, number_dependent_blocks
from pollex.errors import BadLabels, WrongUse
from pollex.formats.fields import ReadOptions
from pollex.formats.write import (
    require_distinct_outputs,
    require_known_ending,
    require_writable_output_path,
    write_rows,
)
from pollex.graphs.context import Progress
from pollex.measures.arrays import Bools, Floats
from pollex.measures.classification import (
    Assessment,
    WindowAssessment,
    assess_scores_against_labels,
    assess_uncertainty_window,
    estimate_auc,
)
from pollex.measures.distributions import compute_answer_log_losses
from pollex.measures.intervals import (
    Figure,
    Measure,
    estimate_figures_on_same_resamples,
    make_weighted_mean_statistic,
)
from pollex.rubrics.records import ProbabilityFigures, TurnRecord, describe_both_window_sides
from pollex.rubrics.rubric_set import CHANCE_AUC, RubricSet
from pollex.rubrics.score import Score
from pollex.rubrics.worth import measure_probability_quality
from pollex.runs.options import ModelOptions, RunOptions
from pollex.runs.usage import ModelUsage, render_usage_by_stage
from pollex.runs.workspace import open_workspace
from pollex.selection.threshold import fit_logistic_calibration_curve
from pollex.services.dry_run import DryRunEnded, plan_scoring_calls
from pollex.services.logs import (
    Sources,
    list_file_names,
    list_source_names,
    logs_from,
    read_labeled_logs,
)
from pollex.services.named_sets import require_not_edited
from pollex.services.results import (
    METRIC_NAMES,
    TabularResult,
    describe_figures,
    describe_probabilities,
    format_outcomes,
    make_calibration_support_json,
    make_figures_json,
    make_probability_json,
)
from pollex.services.score import read_unedited, score_in_run
from pollex.services.scorer import BatchScorer
from pollex.store.runs import RunStatus
from pollex.text import (
    JsonDict,
    TerminalLine,
    TerminalLines,
    TerminalTable,
    format_count,
    render_notes,
)

EARLIER_USE_WORDS = {
    "learned_from": "the rubrics were learned from",
    "fitted_to": "θ was fitted to",
}
"""How a conversation may have been used before, in words."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Evaluation(TabularResult):
    """Figures of a rubric set on labeled conversations.

    Attributes:
        probability: Figures of the probabilities.
        guarantee: Figures of the window with a guarantee; None if the set has none.
        seen: Number of conversations that the set was made from, by use; see `EARLIER_USE_WORDS`.
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
    def headline(self) -> str:
        auc = self.figures.auc
        if auc.value is None:
            value = f"undefined: {auc.undefined}"
        else:
            value = f"{auc.value:.3f}"

        return f"AUC {value} (n = {self.n})"

    def records(self) -> list[dict[str, object]]:
        # people read the titles of figures, not their names in the code
        named = {}
        for name, title in METRIC_NAMES.items():
            named[title] = getattr(self.figures, name)

        records: list[dict[str, object]] = []
        for name, f in named.items():
            records.append(
                {
                    "metric": name,
                    "value": f.value,
                    "low": f.low,
                    "high": f.high,
                }
            )

        return records

    def told(self) -> TerminalLines:
        """Yield how well a rubric set does on labeled conversations."""
        yield from describe_figures({f"{self.n} labeled": self.figures})
        if self.at_chance:
            yield TerminalLine(self.at_chance, "yellow")

        yield from self._guarantee_told()
        smooth = ""
        if self.probability.smece:
            smooth = f", smECE {self.probability.smece}"

        about = f"Probabilities ({self.rubrics.support}; n = {self.probability.n})"
        yield f"{about}: {describe_probabilities(self.probability)}{smooth}"
        if self.probability_auc is not None:
            yield f"Probabilities rest on a starter, too; their AUC is {self.probability_auc}"

        yield format_outcomes(self.outcomes)
        yield from render_usage_by_stage(self.usage)
        yield f"Judge: {self.rubrics.judge.name}; run {self.run}"
        yield from render_notes(explain_optimism(self.seen))

    @property
    def at_chance(self) -> str:
        """Say that these conversations don't show the set to be better than chance; empty where they do."""
        # only an interval that lies above chance shows that a set is better
        auc = self.figures.auc
        if auc.value is None or (auc.low is not None and auc.low > CHANCE_AUC):
            return ""

        bounds = ""
        if auc.low is not None:
            bounds = f", 95 % interval {auc.low:.2f} to {auc.high:.2f}"

        return (
            "On these conversations the set is not known to be better than chance: of a good and a bad one it ranks "
            f"the good one higher {auc.value:.0%} of the time{bounds}, n = {auc.n}"
        )

    def _guarantee_told(self) -> TerminalLines:
        if (record := self.rubrics.guaranteed) is None or (measured := self.guarantee) is None:
            return

        yield_text = _format_share(measured.yield_rate)
        figures_text = f"yield {yield_text}; right outside it {_format_share(measured.accuracy)}"
        yield f"Window with a guarantee ({describe_both_window_sides(record)}): {figures_text}"
        # each side has its threshold; one of them may not exist
        for side, label, place, precision in (
            (record.upper, "positive", "over", measured.positive),
            (record.lower, "negative", "at most", measured.negative),
        ):
            if side.threshold is not None:
                yield f"  {label} {place} {side.threshold:.1f}: right {_format_share(precision)}"

    def as_json(self) -> JsonDict:
        # thresholds, what was promised, and what these conversations show
        record = self.rubrics.guaranteed
        guaranteed = None
        if record is not None and self.guarantee is not None:
            sides = {"lower": record.lower.threshold, "upper": record.upper.threshold}
            promised = {
                "precision": record.precision,
                "delta": record.delta,
                "fitted_on": record.n,
            }
            guaranteed = sides | promised | asdict(self.guarantee)

        return (
            make_figures_json(self.figures)
            | {"probability": make_probability_json(self.probability)}
            | make_calibration_support_json(self.rubrics)
            | ({} if self.probability_auc is None else self.of("probability_auc"))
            | self.of("at_chance")
            | {
                "theta": self.rubrics.theta,
                "window": [self.rubrics.window.lower, self.rubrics.window.upper],
            }
            | {"guaranteed_window": guaranteed}
            | {"run": self.run, "judge": self.rubrics.judge.name, "outcomes": self.outcomes}
            | self.seen
            | self.of("usage")
        )


def _format_share(share: Figure) -> str:
    if share.value is None:
        return f"{share}"
    return f"{share} of {share.n}"


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
    # rubrics that were edited have no θ that fits them
    rubric_set = read_unedited(rubrics, run.store)
    read = read_labeled_logs(logs, reading, run.store, progress)
    labelled = list_labelled(read, logs)
    if run.dry_run:
        raise DryRunEnded(plan_scoring_calls(labelled, rubric_set, run, model))

    with open_workspace(run, progress, read) as opened:
        arguments = {"logs": list_source_names(logs), "rubrics": list_source_names(rubrics)[0]}
        labelled_logs = Logs(
            conversations=tuple(labelled),
            fingerprint=read.fingerprint,
        )
        scores = list[Score]()
        scored, usage = score_in_run(
            opened,
            labelled_logs,
            rubric_set,
            model,
            arguments,
            "evaluate",
            scores.extend,
        )
        # figures of NetSAT are of conversations that have one
        measured = []
        for score, conversation in zip(scores, labelled, strict=True):
            if score.netsat is not None:
                measured.append((score, conversation))

        netsat = np.array([score.netsat for score, _ in measured], float)
        conversations = [conversation for _, conversation in measured]
        up = flag_positive_labels(conversations)
        # conversations that depend on each other are drawn together in resamples
        blocks = number_dependent_blocks(conversations)
        confident = np.array([score.confident is True for score, _ in measured], bool)
        figures = assess_scores_against_labels(
            netsat,
            up,
            rubric_set.theta,
            confident,
            np.random.default_rng(0),
            together=blocks,
        )
        # any outcome but a score leaves the run partial, so that a resume asks again
        report = {"outcomes": (counts := dict(scored.counts)), "auc": figures.auc.value}
        status: RunStatus = "partial" if counts.keys() - {"scored"} else "done"
        opened.store.finish(
            scored.run,
            status,
            roles=[rubric_set.judge.name],
            result=report,
        )

    # a score may lack a probability: its figures have their own conversations
    probability, area = measure_likelihoods(rubric_set, labelled, scores)
    window = None
    if rubric_set.guaranteed:
        window = rubric_set.guaranteed.window

    return Evaluation(
        run=scored.run,
        rubrics=rubric_set,
        n=len(labelled),
        figures=figures,
        probability=probability,
        guarantee=None
        if window is None
        else assess_uncertainty_window(window.over(netsat), window.under(netsat), up, blocks),
        probability_auc=area,
        seen=count_seen_before(rubric_set, labelled),
        outcomes=counts,
        bad_rows=read.bad_rows,
        usage=usage,
    )


def list_labelled(read: Logs, source: object) -> list[Conversation]:
    """Return the conversations with a label, except those that a queue preferred: figures are of others, too.

    Raises:
        BadLabels: None has one.
    """
    # conversations that a queue preferred would make figures of hard ones only
    if labelled := [c for c in read if c.label is not Label.NONE and not c.preferred]:
        return labelled

    where = ", ".join(list_source_names(source))
    raise BadLabels(
        "no conversation has a label",
        where=where,
        hint="name its field",
        option="label_field",
    )


def explain_optimism(seen_by_kind: Mapping[str, int]) -> list[str]:
    """Say why figures are too optimistic, if they are; see `count_seen_before`."""
    used = []
    for how, number in seen_by_kind.items():
        if number:
            used.append((EARLIER_USE_WORDS[how], number))

    lines: list[str] = []
    for how, number in used:
        lines.append(f"{how} {number} of these conversations: figures are too good.")

    return lines


def count_seen_before(rubric_set: RubricSet, labelled: Sequence[Conversation]) -> dict[str, int]:
    """Count the conversations that the set was made from, by use; see `EARLIER_USE_WORDS`."""
    # a set keeps the beginnings of hashes, and so only these are compared
    hashes = {
        "learned_from": rubric_set.learned_from,
        "fitted_to": rubric_set.only_fitted_to,
    }
    return {
        how: sum(c.text_hash[:16] in hashes for c in labelled) for how, hashes in hashes.items()
    }


def measure_likelihoods(
    rubric_set: RubricSet,
    labelled: Sequence[Conversation],
    scores: Iterable[Score],
) -> tuple[ProbabilityFigures, Figure | None]:
    """Measure how true the probabilities are of the conversations that have one; with a starter their AUC, too."""
    pairs = []
    for s, c in zip(scores, labelled, strict=True):
        if s.probability is not None:
            pairs.append((s.probability, c))

    probability = np.array([p for p, _ in pairs], float)
    scored = [c for _, c in pairs]
    # a forecast by the share of the training labels is what probabilities have to beat
    share = rubric_set.training.positives / rubric_set.training.n
    up = flag_positive_labels(scored)
    blocks = number_dependent_blocks(scored)
    figures = measure_probability_quality(
        probability,
        up,
        share,
        np.random.default_rng(0),
        blocks,
        smooth=True,
    )
    # a starter changes the order that NetSAT gives, so that probabilities have an AUC of their own
    if rubric_set.starter is None:
        return figures, None
    return figures, estimate_auc(probability, up, np.random.default_rng(0), together=blocks)


DEFAULT_TURN_COUNTS = (1, 2, 3, 5, 8)
"""Numbers of the user's turns after which a probability is fitted."""
TURN_FOLDS = 10
FEWEST_CONVERSATIONS_OF_TURNS = 40
MOST_BEGINNINGS = 50
"""Turns of the user after which one conversation is scored: each beginning is read anew, which takes its square."""
TURN_SCORE_COLUMNS = {
    "id": "VARCHAR",
    "turns": "INTEGER",
    "netsat": "DOUBLE",
    "probability": "DOUBLE",
    "outcome": "VARCHAR",
}


@dataclass(frozen=True, kw_only=True, repr=False)
class TurnsResult(TabularResult):
    """What beginnings of conversations tell, by the number of the user's turns.

    Attributes:
        seen: Number of conversations that the set was made from, by use.
        rows: A row a beginning; empty unless asked for.
    """

    rubrics: RubricSet
    out: Path | None
    scores: Path | None
    n: int
    seen: dict[str, int]

    @property
    def complete(self) -> bool:
        """Whether anything could be measured."""
        return bool(self.rubrics.turns)

    @property
    def headline(self) -> str:
        helpful = []
        for turn in self.rubrics.turns:
            if turn.helps:
                helpful.append(str(turn.turns))

        if helpful:
            stages = f"after {', '.join(helpful)}"
        else:
            stages = "after none"

        return f"a probability is better than the share of thumbs up {stages} of the user's turns (n = {self.n})"

    def records(self) -> list[dict[str, object]]:
        names = ("log_loss", "share_log_loss", "gain")
        records: list[dict[str, object]] = []
        for turn in self.rubrics.turns:
            records.append(
                {
                    "turns": turn.turns,
                    "n": turn.n,
                    **{name: getattr(turn, name).value for name in names},
                }
                | {"low": turn.gain.low, "high": turn.gain.high, "shown": turn.helps}
            )

        return records

    def told(self) -> TerminalLines:
        """Yield the log-loss after each number of turns, beside that of the share of thumbs up."""
        rows = []
        for turn in self.rubrics.turns:
            rows.append(
                (
                    turn.turns,
                    turn.n,
                    turn.log_loss,
                    turn.share_log_loss,
                    turn.gain,
                    "yes" if turn.helps else "no",
                )
            )

        yield TerminalTable(
            ("turns of the user", "n", "log-loss", "of the share alone", "gain", "given"),
            rows,
        )
        yield f"{self.headline[:1].upper()}{self.headline[1:]}"
        yield from render_notes(explain_optimism(self.seen))
        for path in filter(None, (self.out, self.scores)):
            yield f"Wrote {path}"

    def as_json(self) -> JsonDict:
        return self.of("out", "scores", "n") | {"turns": self.records()} | self.seen


def fit_turns(
    logs: Sources | Logs,
    rubrics: Path | RubricSet,
    *,
    out: Path | None = None,
    scores: Path | None = None,
    turns: Sequence[int] = DEFAULT_TURN_COUNTS,
    reading: ReadOptions,
    progress: Progress,
) -> TurnsResult:
    """Fit a probability after each number of turns, cross-fitted by blocks of conversations, and measure it.

    Args:
        logs: Labeled conversations, best those that the set was not learned from.
        out: Where the set with these probabilities is written.
        scores: Where a row a beginning is written: .jsonl, .csv or .parquet.

    Raises:
        BadLabels: There are fewer than forty labeled conversations, or ten of a class.
        WrongUse: The set's judge is a model: each beginning would be paid for; or an output would take
            the place of what is read, of a store's file or of the other output.
    """
    rubric_set = read_unedited(rubrics)
    if not rubric_set.judge.built_in:
        raise WrongUse(
            f"the set's judge is a model, {rubric_set.judge.name}: each beginning would be paid for",
            hint="distill the set first (`pollex distill`)",
        )

    if scores is not None:
        require_known_ending(scores, *list_file_names(rubrics, logs))

    # the set itself may get its probabilities, and arrays of it lie beside it
    if out is not None:
        require_writable_output_path(out, *list_file_names(logs), regular=True)
        require_not_edited(out, own=rubrics)
    require_distinct_outputs(out, scores)

    # only labels can teach; what can't be scored has no beginning, either
    read = logs_from(logs, reading, progress)
    labeled = []
    for conversation in list_labelled(read, logs):
        if not conversation.not_scorable:
            labeled.append(conversation)

    if len(labeled) < FEWEST_CONVERSATIONS_OF_TURNS:
        raise BadLabels(
            f"{format_count(len(labeled), 'labeled conversation')}",
            hint=f"give at least {FEWEST_CONVERSATIONS_OF_TURNS}",
        )

    # one scorer for all beginnings, so that its judge is built once
    scorer = BatchScorer(rubric_set)
    records = []
    progress.start("turns", len(turns))

    for number in turns:
        # conversations that ended before have no such beginning
        begun = []
        for conversation in labeled:
            if count_user_turns(conversation) >= number:
                begun.append(conversation)

        if (record := measure_after_turns(number, begun, scorer)) is not None:
            records.append(record)
        progress.advance("turns")

    # the set gets the curves, whether or not they help: each says so itself
    fitted = rubric_set.model_copy(update={"turns": tuple(records)})
    if out is not None:
        fitted.save(out)

    # scored by the set that has the curves now, which decide where a probability is given
    if scores is not None:
        after = BatchScorer(fitted)
        rows = (
            row
            for conversation in read.conversations
            for row in score_beginnings(conversation, after.scores, fitted.turns)
        )
        write_rows(scores, rows, TURN_SCORE_COLUMNS)

    return TurnsResult(
        rubrics=fitted,
        out=out,
        scores=scores,
        n=len(labeled),
        seen=count_seen_before(rubric_set, labeled),
    )


def measure_after_turns(
    number: int,
    begun: Sequence[Conversation],
    scorer: BatchScorer,
) -> TurnRecord | None:
    """Fit and measure a probability after some turns; None where too few conversations have so many."""
    scored = scorer.scores([cut_after_turns(conversation, number) for conversation in begun])
    scored_pairs = []
    for conversation, score in zip(begun, scored, strict=True):
        if score.netsat is not None:
            scored_pairs.append((conversation, score.netsat))

    conversations = [conversation for conversation, _ in scored_pairs]
    positive = flag_positive_labels(conversations)
    netsat = np.array([value for _, value in scored_pairs], float)
    # each fold needs both classes to learn from
    if (
        len(conversations) < FEWEST_CONVERSATIONS_OF_TURNS
        or min(positive.sum(), (~positive).sum()) < TURN_FOLDS
    ):
        return None

    # the model and the share are both fitted without the fold: the comparison is fair
    probability, share = cross_fit_probabilities(netsat, positive, conversations)
    losses = compute_log_losses(probability, positive)
    constant = compute_log_losses(share, positive)
    # the gain is a mean of differences on the same conversations, with an interval of its own
    measures = {
        "log_loss": Measure(make_weighted_mean_statistic(losses)),
        "share_log_loss": Measure(make_weighted_mean_statistic(constant)),
        "gain": Measure(make_weighted_mean_statistic(constant - losses)),
    }
    estimates = estimate_figures_on_same_resamples(
        measures,
        number_dependent_blocks(conversations),
        np.random.default_rng(0),
    )

    # the curve for new conversations is fitted to all of them
    return TurnRecord(
        turns=number,
        n=len(conversations),
        calibration=fit_logistic_calibration_curve(netsat, positive),
        **estimates,
    )


def cross_fit_probabilities(
    netsat: Floats,
    positive: Bools,
    conversations: Sequence[Conversation],
) -> tuple[Floats, Floats]:
    """Compute P(positive) and the share of thumbs up `[conversation]`, each fitted without the conversation's fold."""
    fold = assign_folds(conversations, TURN_FOLDS, 0)
    probability = np.zeros(len(conversations))
    share = np.zeros(len(conversations))
    for number in range(TURN_FOLDS):
        of_fold = fold == number
        probability[of_fold] = fit_logistic_calibration_curve(
            netsat[~of_fold], positive[~of_fold]
        ).probability(netsat[of_fold])
        share[of_fold] = positive[~of_fold].mean()

    return probability, share


def compute_log_losses(probability: Floats, positive: Bools) -> Floats:
    """Compute −log P of each label `[conversation]`, in nats."""
    return compute_answer_log_losses(
        np.stack([1 - probability, probability], axis=1),
        positive.astype(np.int64),
    )


def count_user_turns(conversation: Conversation) -> int:
    """Return how many turns the user has."""
    return sum(turn.role == "user" for turn in conversation.turns)


def cut_after_turns(conversation: Conversation, number: int) -> Conversation:
    """Return a conversation until the user's next turn after so many of theirs."""
    # a beginning has the assistant's reply to its last turn, and ends before the user's next one
    users = []
    for place, turn in enumerate(conversation.turns):
        if turn.role == "user":
            users.append(place)

    if len(users) > number:
        end = users[number]
    else:
        end = len(conversation.turns)

    return conversation.model_copy(update={"turns": conversation.turns[:end]})


def score_beginnings(
    conversation: Conversation,
    scored: Callable[[list[Conversation]], Iterable[Score]],
    records: Iterable[TurnRecord],
) -> list[dict[str, object]]:
    """Score a conversation after each of the user's first `MOST_BEGINNINGS` turns.

    Args:
        scored: Scores beginnings.
        records: Those of the set; see `RubricSet.turns`.

    Returns:
        For each: `turns`, `netsat`, `outcome`, and `probability` of a thumb up in the end, None
        where it is not better than the share of thumbs up, or where nobody measured that.
    """
    numbers = range(1, min(count_user_turns(conversation), MOST_BEGINNINGS) + 1)
    # each beginning has an id of its own, as all are scored in one batch
    parts = []
    for n in numbers:
        parts.append(cut_after_turns(conversation, n).model_copy(update={"id": f"{n}"}))

    # a curve that doesn't help is noted as None: no probability rather than an earlier curve's
    curves = {}
    for record in records:
        curves[record.turns] = record.calibration if record.helps else None

    records_json = []
    for n, score in zip(numbers, scored(parts), strict=True):
        # the curve for the most turns that the beginning has already
        curve = curves.get(max((turns for turns in curves if turns <= n), default=0))
        probability = None
        if curve is not None and score.netsat is not None:
            probability = float(curve.probability(np.array([score.netsat]))[0])
        row = {
            "id": conversation.id,
            "turns": n,
            "netsat": score.netsat,
            "probability": probability,
        }
        records_json.append(row | {"outcome": score.outcome})

    return records_json
