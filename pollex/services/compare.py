"""Compare two samples of conversations: files, runs, or the values of a field; scored, as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np

from pollex.conversations.conversation import Conversation, Label
from pollex.conversations.logs import Logs
from pollex.errors import WrongUse
from pollex.formats.fields import RATED_LABELS, ReadOptions
from pollex.formats.label_files import (
    RANDOM_DRAW_METHOD,
    ConversationLabel,
    list_conversation_labels,
    read_label_file,
)
from pollex.formats.write import require_writable_output_path
from pollex.graphs.context import Progress
from pollex.measures.arrays import (
    Bools,
    Floats,
    Ints,
    assign_numbers_to_names,
    draw_random_items_in_order,
)
from pollex.measures.drift import (
    MIN_STABILITY_INDEX_OF_DRIFT,
    StabilityIndex,
    compute_expected_log_loss,
    count_values_in_bins,
    estimate_share_without_counterpart,
    measure_stability_of_bin_counts,
    measure_stability_of_two_samples,
)
from pollex.measures.intervals import Figure
from pollex.measures.share import (
    MIN_LABELS_FOR_SHARE_ESTIMATE,
    LabeledSample,
    Share,
    count_conversations_for_difference,
    count_labels_for_difference,
    estimate_mean_differences,
    estimate_share_difference_from_random_labels,
    estimate_share_from_probabilities,
    list_names_of_significant_differences,
)
from pollex.outputs import write_text
from pollex.reports.share import render_compare_page
from pollex.rubrics.answers import LIKERT_OPTIONS, Answer, Unanswered
from pollex.rubrics.rubric_set import RubricSet
from pollex.rubrics.score import Score
from pollex.rubrics.worth import compute_share_with_interval
from pollex.runs.options import ModelOptions, RunOptions
from pollex.services.logs import list_file_names, logs_from
from pollex.services.paired_texts import match_rows, share_folds
from pollex.services.results import TabularResult, format_interval
from pollex.services.score import read_unedited, score
from pollex.services.share import build_share_sample, group_conversations, split_random_labels
from pollex.store.resume import find_run, iterate_conversations, iterate_scores
from pollex.store.store import Store
from pollex.text import TerminalLine, TerminalLines, TerminalTable, render_notes

ScoredSample = tuple[list[Conversation], list[Score], frozenset[str]]
"""Conversations, their scores, and the hashes of those that were answered by folds."""

LEARNED_TEXT_HASHES_QUERY = "SELECT text_hash FROM conversations WHERE side = 'train'"


@dataclass(frozen=True, eq=False)
class ScoredArm:
    """One sample, scored.

    Attributes:
        values: Mean answers `[conversation, rubric]`.
        folded: Hashes of the texts that a run learned from: answered without their own fold, unlike
            all others.
        by_folds: Whether its rubrics were chosen without that fold, too: these scores are as those
            of new texts.
        unscored: Hashes of the texts that have no score here.
    """

    name: str
    conversations: list[Conversation]
    probability: Floats
    netsat: Floats
    values: Floats
    folded: frozenset[str] = frozenset()
    unscored: frozenset[str] = frozenset()
    by_folds: bool = False

    def without(self, texts: frozenset[str]) -> ScoredArm:
        """Return the sample without these texts."""
        # rows of all arrays and of the conversations stay parallel
        rows = []
        for row, conversation in enumerate(self.conversations):
            if conversation.text_hash not in texts:
                rows.append(row)

        conversations = [self.conversations[row] for row in rows]
        return replace(
            self,
            conversations=conversations,
            probability=self.probability[rows],
            netsat=self.netsat[rows],
            values=self.values[rows],
        )

    @property
    def measured(self) -> frozenset[str]:
        """Hashes of the texts that were learned from and have scores as those of new texts."""
        return self.folded if self.by_folds else frozenset()

    def scored_by(self, other: ScoredArm, texts: frozenset[str]) -> ScoredArm:
        """Return the sample with the other's scores and answers of these texts, of those that both have."""
        rows, other_rows = match_rows(
            [conversation.text_hash for conversation in self.conversations],
            [conversation.text_hash for conversation in other.conversations],
            texts,
        )
        if not rows:
            return self

        # copies, as the arrays of this sample stay what they are
        columns = {}
        for name in ("probability", "netsat", "values"):
            columns[name] = getattr(self, name).copy()

        for name, column in columns.items():
            column[rows] = getattr(other, name)[other_rows]

        return replace(self, **columns)


def score_arms(
    samples: Sequence[str | Path] | Logs,
    rubric_set: RubricSet,
    *,
    by: str | None = None,
    baseline: str | None = None,
    reading: ReadOptions,
    run: RunOptions,
    model: ModelOptions,
    progress: Progress,
) -> tuple[list[ScoredArm], int]:
    """Score samples; return them, and the number of conversations that have no score.

    Raises:
        WrongUse: There are fewer than two samples, or the baseline is none of them.
    """

    def scored(logs: Logs) -> ScoredSample:
        result = score(
            logs,
            rubric_set,
            reading=reading,
            run=run,
            model=model,
            progress=progress,
        )
        return list(logs), list(result.scores or ()), frozenset()

    def sample(name: str) -> ScoredSample:
        # what exists or looks like a path is a file; anything else names a run of the store
        if Path(name).exists() or any(sign in name for sign in "*?[./"):
            return scored(logs_from(name, reading, progress))

        with Store.open(run.store, read_only=True) as store:
            return _read_run_sample(store, name, rubric_set)

    if by is None:
        if isinstance(samples, Logs | str) or len(samples) < 2:
            raise WrongUse(
                "one sample can't be compared",
                hint="name two files or runs, or a field",
                option="by",
            )

        # each name is a sample of its own; with a field, one log is cut into samples
        named = [(name, sample(name)) for name in map(str, samples)]
    else:
        named = _cut_by_group(scored(logs_from(samples, reading, progress)), by, baseline)

    # the number without a score is what the arms have lost
    arms = [_make_arm(name, sample, rubric_set) for name, sample in named]
    return arms, sum(len(scores) for _, (_, scores, _) in named) - sum(
        len(arm.conversations) for arm in arms
    )


def read_run_arm(store: Store, name: str, rubric_set: RubricSet) -> ScoredArm:
    """Return a run of an open store as a sample."""
    return _make_arm(name, _read_run_sample(store, name, rubric_set), rubric_set)


def _read_run_sample(store: Store, name: str, rubric_set: RubricSet) -> ScoredSample:
    run = find_run(store, name)
    conversations = list(iterate_conversations(store, run.id))
    # a model knows no folds
    folded = store.ask(run.id, LEARNED_TEXT_HASHES_QUERY) if rubric_set.judge.learned else ()
    scores = [
        conversation_score
        for score in iterate_scores(store, run.id, rubric_set, conversations)
        for conversation_score in score
    ]
    return conversations, scores, frozenset(row["text_hash"] for row in folded)


def _cut_by_group(
    sample: ScoredSample, by: str, baseline: str | None
) -> list[tuple[str, ScoredSample]]:
    conversations, scores, folded = sample
    masks = group_conversations(conversations, by)
    if baseline is not None and baseline not in masks:
        raise WrongUse(
            f"no conversation has {by} {baseline!r}",
            hint=f"values are {', '.join(masks)}",
        )

    if len(masks) < 2:
        raise WrongUse(
            f"all conversations have the same {by}",
            hint="name another field",
        )

    # the baseline comes first; sorting is stable, so that the others stay in their order
    names = sorted(masks, key=lambda name: name != baseline)
    rows = {}
    for name in names:
        rows[name] = np.flatnonzero(masks[name]).tolist()

    pairs: list[tuple[str, ScoredSample]] = []
    for name in names:
        pairs.append(
            (
                name,
                (
                    [conversations[row] for row in rows[name]],
                    [scores[row] for row in rows[name]],
                    folded,
                ),
            )
        )

    return pairs


def _make_arm(name: str, sample: ScoredSample, rubric_set: RubricSet) -> ScoredArm:
    # only conversations with a score and a probability can be compared
    both = []
    for c, s in zip(*sample[:2], strict=True):
        if s.netsat is not None and s.probability is not None:
            both.append((c, s))

    # answers of the set's rubrics, without those that may follow them
    width = len(rubric_set.rubrics)
    values = [
        [compute_expected_answer(answer) for answer in score.answers[:width]] for _, score in both
    ]
    return ScoredArm(
        name,
        [c for c, _ in both],
        np.array([s.probability for _, s in both], dtype=np.float64),
        np.array([s.netsat for _, s in both], dtype=np.float64),
        np.array(values, dtype=np.float64).reshape(len(both), width),
        sample[2],
        frozenset(c.text_hash for c in sample[0]) - {c.text_hash for c, _ in both},
        rubric_set.data.folds > 0,
    )


def compute_expected_answer(answer: Answer | Unanswered) -> float:
    """Return an answer's expected value; NaN without one, and where its occasion never came up."""
    if isinstance(answer, Answer) and not answer.never_came_up:
        return answer.expected()
    return np.nan


def number_users(conversations: Sequence[Conversation]) -> Ints:
    """Assign numbers to users or, without users, to ids; those in both samples are pairs."""
    units = []
    for c in conversations:
        units.append(("user", c.group) if c.group is not None else ("id", c.id))

    return assign_numbers_to_names(units)


MOST_CONVERSATIONS_A_SIDE = 2000
"""Conversations a side that the classifier of texts is trained on."""
NOVELTY_FOLDS = 5
WORD_PATTERN = r"(?u)\b\w+\b"
OPTION_MIDPOINTS = np.array(
    [(low.value + high.value) / 2 for low, high in pairwise(LIKERT_OPTIONS)]
)
FEWEST_TEXTS_A_SIDE = 20
"""Conversations a side below which texts are not told apart."""


@dataclass(frozen=True, kw_only=True)
class UnlabeledComparison:
    """Differences of a sample from an earlier one, by scores and texts alone.

    Attributes:
        stability: Population stability index of `p`, `netsat` and each rubric, by name: of a rubric
            over its answers, since means of answers crowd at the middle, where a change that nobody
            would see moves them all.
        unlike: Smallest share of the second sample without a counterpart in the first, by a
            classifier of their words.
        expected_log_loss: Of each sample, if its probabilities are calibrated.
        held_out_log_loss: Log-loss measured on held-out labels when the set was learned; None if
            unknown.
    """

    stability: dict[str, StabilityIndex]
    unlike: Figure
    expected_log_loss: tuple[float, float]
    held_out_log_loss: Figure | None


def compare_unlabeled(
    a: ScoredArm,
    b: ScoredArm,
    rubric_set: RubricSet,
    rng: np.random.Generator,
) -> UnlabeledComparison:
    """Compare two samples without labels."""
    # the score's two forms first, then each rubric
    differences = {
        "p": measure_stability_of_two_samples(a.probability, b.probability, rng),
        "netsat": measure_stability_of_two_samples(a.netsat, b.netsat, rng),
    }
    for place, rubric in enumerate(rubric_set.rubrics):
        values = (arm.values[:, place] for arm in (a, b))
        # NaN is no answer
        then, now = (
            count_values_in_bins(values[~np.isnan(values)], OPTION_MIDPOINTS) for values in values
        )
        if then.any() and now.any():
            differences[rubric.id] = measure_stability_of_bin_counts(then, now, rng)

    # log-loss on labels that were held out, to compare the expected one with
    measured = rubric_set.calibrator and rubric_set.calibrator.held_out
    return UnlabeledComparison(
        stability=differences,
        unlike=estimate_novelty(a.conversations, b.conversations, rng),
        expected_log_loss=(
            compute_expected_log_loss(a.probability),
            compute_expected_log_loss(b.probability),
        ),
        held_out_log_loss=measured.log_loss if measured else None,
    )


def estimate_novelty(
    before: Sequence[Conversation],
    after: Sequence[Conversation],
    rng: np.random.Generator,
) -> Figure:
    """Estimate the smallest share of a sample that an earlier one has no counterpart for.

    A user's conversations, and those of one id, are predicted by a classifier that has seen none of
    them.
    """
    # a classifier of few texts tells nothing
    if min(len(before), len(after)) < FEWEST_TEXTS_A_SIDE:
        return Figure(
            None,
            n=len(after),
            undefined=f"fewer than {FEWEST_TEXTS_A_SIDE} conversations on a side",
        )

    # as many a side as the classifier can be trained on in little time
    drawn = []
    for sample in (before, after):
        drawn.append(draw_random_items_in_order(sample, MOST_CONVERSATIONS_A_SIDE, rng))

    # the first sample's conversations, then the second's; `second` says which is which
    second = np.repeat([False, True], [len(sample) for sample in drawn])
    conversations = [*drawn[0], *drawn[1]]
    unit = number_users(conversations)
    if len(np.unique(unit)) < 2 * NOVELTY_FOLDS:
        return Figure(
            None,
            n=len(after),
            undefined=f"fewer than {2 * NOVELTY_FOLDS} users",
        )

    # all turns of a conversation are one text
    texts = []
    for conversation in conversations:
        texts.append(" ".join(turn.content for turn in conversation.turns))

    # a random fold for each unit, so that a user is never in two of them
    return estimate_share_without_counterpart(
        _predict_second_sample(
            texts, second, rng.permutation(unit.max() + 1)[unit] % NOVELTY_FOLDS
        ),
        second,
    )


def _predict_second_sample(
    texts: Sequence[str],
    second: Bools,
    fold: Ints,
) -> Bools:
    # scikit-learn takes a second to import
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression

    words = TfidfVectorizer(
        sublinear_tf=True,
        max_features=20_000,
        dtype=np.float64,
        token_pattern=WORD_PATTERN,
    )
    x = words.fit_transform(texts)  # weights of words, which no label enters
    # each fold is predicted by a model of the others; one side alone can't teach any
    in_fold = np.zeros(len(second), dtype=bool)
    for number in range(NOVELTY_FOLDS):
        of_fold = fold == number
        if of_fold.any() and len(np.unique(second[~of_fold])) == 2:
            model = LogisticRegression(class_weight="balanced", C=10.0).fit(
                x[~of_fold],
                second[~of_fold],
            )
            in_fold[of_fold] = model.predict(x[of_fold])

    return in_fold


UNDERSTATED_NOTE = (
    "Scores understate a difference in thumbs: of five points among thumbs, mean scores show about one and a half. "
    "Labels at random on both sides measure the difference itself."
)
MAX_MOVED_RUBRICS_SHOWN = 10
"""Rubrics that moved which a terminal shows."""
TRAINED_ON_REASON = "a run that learns answers them without themselves, which is not to be compared with other answers"
BY_FOLDS_NOTE = "by scores of rubrics that did not see them"


@dataclass(frozen=True)
class RubricDifference:
    """The frequency or mean of a rubric in each sample.

    Attributes:
        difference: Mean answer of the second sample minus that of the first, on the rubric's 0 …
            10.
        moved: Whether that is more than chance, with the false discovery rate over all rubrics
            bounded at .05.
    """

    id: str
    polarity: str
    text: str
    before: float
    after: float
    difference: Figure
    moved: bool


@dataclass(frozen=True, kw_only=True)
class SampleSize:
    """The sample size needed to detect a difference, with power .8.

    Attributes:
        difference: In mean probability, or in the share of good conversations.
        conversations: A side, for mean probabilities; None where nothing tells how far they spread.
        labels: A side, at random, with scores; and without.
    """

    difference: float
    conversations: int | None
    labels: int
    labels_alone: int

    @property
    def headline(self) -> str:
        """The plan in a sentence."""
        by_labels = f"{self.labels:,} labels a side with scores ({self.labels_alone:,} without)"
        if self.conversations is None:
            by_scores = ""
        else:
            by_scores = f"{self.conversations:,} conversations a side by mean scores, or "

        return f"To see a difference of {self.difference:.2g}: {by_scores}{by_labels}."


@dataclass(frozen=True, kw_only=True)
class SampleComparison:
    """The second sample beside the first.

    Attributes:
        sizes: Conversations of each.
        paired: Conversations with the same id in both.
        good: Share of good conversations of each, by the mean of their probabilities.
        share: Difference of the share of good conversations, from labels at random; None where a
            side has too few.
        labels: Labels at random of each.
        thumbs: Share of thumbs up among the thumbs of each log; None where a side has too few, or
            where both have the same conversations.
        thumb_difference: Its difference; None likewise.
        drift: How unlike NetSAT is spread.
        watch: All that differs without labels.
    """

    first: str
    second: str
    sizes: tuple[int, int]
    paired: int
    means: tuple[float, float]
    good: tuple[Figure, Figure]
    probability: Figure
    netsat: Figure
    rubrics: tuple[RubricDifference, ...]
    share: Share | None
    labels: tuple[int, int]
    thumbs: tuple[Figure, Figure] | None
    thumb_difference: Figure | None
    plan: SampleSize
    drift: StabilityIndex
    watch: UnlabeledComparison
    notes: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, repr=False)
class CompareResult(TabularResult):
    """Comparisons of each sample with the first.

    Attributes:
        unscored: Conversations without a score, which are left out.
    """

    json_fields = ("comparisons", "unscored", "page")

    comparisons: tuple[SampleComparison, ...]
    unscored: int
    page: Path | None = None

    @property
    def headline(self) -> str:
        differences = []
        for comparison in self.comparisons:
            differences.append(
                f"{comparison.second} − {comparison.first}: {comparison.probability.value:+.3f}"
            )

        return "; ".join(differences)

    def records(self) -> list[dict[str, object]]:
        # a record for each rubric of each comparison
        rows = []
        for comparison in self.comparisons:
            for rubric in comparison.rubrics:
                rows.append((comparison.first, comparison.second, asdict(rubric)))

        records: list[dict[str, object]] = []
        for first, second, row in rows:
            records.append({"first": first, "second": second, **row})

        return records

    def told(self) -> TerminalLines:
        """Yield the difference to the first sample, and the rubrics that moved."""
        for comparison in self.comparisons:
            a, b = comparison.sizes
            n = f"{a} and {b}"
            yield TerminalLine(
                f"{comparison.second} compared with {comparison.first}",
                "bold",
            )
            probability = f"mean P(thumb up), {comparison.means[0]:.3f} → {comparison.means[1]:.3f}"
            rows = []
            # what users said goes before what is predicted of it
            if comparison.thumbs is not None:
                up, up_now = comparison.thumbs
                thumbs = f"share of thumbs up, {up.value:.3f} → {up_now.value:.3f}"
                rows.append(
                    (thumbs, f"{comparison.thumb_difference:+.3f}", f"{up.n} and {up_now.n}")
                )

            rows += [
                (probability, f"{comparison.probability:+.3f}", n),
                ("mean NetSAT", f"{comparison.netsat:+.3f}", n),
            ]
            # labels at random on both sides measure the difference itself
            if (share := comparison.share) is not None:
                labels = f"{comparison.labels[0]} and {comparison.labels[1]} labels"
                ends = f"[{share.low:+.3f}, {share.high:+.3f}]"
                rows.append(("share of good ones", f"{share.value:+.3f}  {ends}", labels))

            yield TerminalTable(("", "difference  [95 % interval]", "n"), rows)
            for name, good in zip(
                (comparison.first, comparison.second), comparison.good, strict=True
            ):
                sentence = f"about {good.value:.0%} are good, by the mean of their probabilities"
                yield f"{name}: {sentence} ({format_interval(good)})"

            moved = []
            for rubric in comparison.rubrics:
                if rubric.moved:
                    moved.append(rubric)

            counted = (
                f"{len(moved)} of {len(comparison.rubrics)} rubrics moved by more than chance:"
            )
            yield counted if moved else "No rubric moved clearly."
            for moved_rubric in moved[:MAX_MOVED_RUBRICS_SHOWN]:
                change = f"{moved_rubric.before:.2f} → {moved_rubric.after:.2f}"
                yield f"  {moved_rubric.polarity.upper():<4} {change}  {moved_rubric.text}"
            if comparison.thumbs is None:
                yield comparison.plan.headline
            yield from render_notes(comparison.notes)

        if self.unscored:
            yield f"{self.unscored} conversations without a score were left out."
        if self.page:
            yield f"Wrote {self.page}"


def compare(
    samples: Sequence[str | Path] | Logs,
    rubrics: Path | RubricSet,
    *,
    by: str | None = None,
    baseline: str | None = None,
    labels: Path | None = None,
    drawn: str | None = None,
    see: float = 0.05,
    page: Path | None = None,
    reading: ReadOptions,
    run: RunOptions,
    model: ModelOptions,
    progress: Progress,
) -> CompareResult:
    """Compare samples of conversations by scores, and by random labels if both have them.

    Args:
        samples: Two or more files, globs, or runs of the store; with `by`, logs that a field cuts
            into samples.
        baseline: The value of `by` that the others are compared with; None: the first.
        labels: A file of labels; None: those of the logs.
        drawn: How labels were drawn whose rows don't say it.
        see: The difference to plan for.

    Raises:
        WrongUse: There are fewer than two samples, or no such value.
    """
    # fails before the work if the page would replace an input
    if page is not None:
        require_writable_output_path(page, *list_file_names(samples, rubrics, labels))

    rubric_set = read_unedited(rubrics, run.store)

    arms, lost = score_arms(
        samples,
        rubric_set,
        by=by,
        baseline=baseline,
        reading=reading,
        run=run,
        model=model,
        progress=progress,
    )
    given_labels = None
    if labels is not None:
        given_labels = read_label_file(labels, reading)[0]

    # the first sample is what all others are compared with
    comparisons = []
    for arm in arms[1:]:
        comparisons.append(
            compare_two(
                arms[0],
                arm,
                rubric_set,
                given_labels,
                drawn,
                see,
            )
        )

    if page is not None:
        write_text(page, render_compare_page(comparisons))

    return CompareResult(comparisons=tuple(comparisons), unscored=lost, page=page)


def compare_runs(
    store: Store,
    first: str,
    second: str,
    rubric_set: RubricSet,
) -> SampleComparison:
    """Compare two runs of an open store with one rubric set, as `compare` does."""
    a, b = (read_run_arm(store, name, rubric_set) for name in (first, second))
    return compare_two(a, b, rubric_set, None, None, 0.05)


def compare_two(
    a: ScoredArm,
    b: ScoredArm,
    rubric_set: RubricSet,
    labels: list[ConversationLabel] | None,
    drawn: str | None,
    see: float,
) -> SampleComparison:
    """Compare two samples, without texts that a run learned from and answered without their own fold.

    Raises:
        WrongUse: One has no score, or none but of such texts.
    """
    # texts that only one side can judge fairly would pass for a difference
    a, b, left_out = keep_comparable(a, b)
    for arm in (a, b):
        if not arm.conversations:
            what = "a score that can be compared" if left_out else "a score"
            raise WrongUse(
                f"{arm.name}: no conversation has {what}",
                hint="look at `pollex score` on it",
            )

    # both samples one below the other, with a fixed seed: the same samples, the same intervals
    rng = np.random.default_rng(0)
    second = np.repeat([False, True], [len(a.conversations), len(b.conversations)])
    columns = {
        "p": np.append(a.probability, b.probability),
        "netsat": np.append(a.netsat, b.netsat),
    }
    answers = np.concatenate([a.values, b.values])
    for place, rubric in enumerate(rubric_set.rubrics):
        columns[rubric.id] = answers[:, place]

    differences = estimate_mean_differences(
        columns,
        second,
        number_users([*a.conversations, *b.conversations]),
        rng,
    )
    # the share of good ones, if each side has enough labels at random
    (left, n), (right, m) = (_estimate_by_labels(arm, labels, drawn, rubric_set) for arm in (a, b))
    share = None
    if left and right:
        share = estimate_share_difference_from_random_labels(left, right)

    thumbs, thumb_difference = _compare_thumbs(a.conversations, b.conversations)
    watched = compare_unlabeled(a, b, rubric_set, rng)
    drift = watched.stability["netsat"]
    # which rubrics moved is decided over rubrics alone, without the two scores
    of_rubrics = {}
    for rubric in rubric_set.rubrics:
        of_rubrics[rubric.id] = differences[rubric.id]

    changed = list_names_of_significant_differences(of_rubrics)
    rubrics = []
    for place, rubric in enumerate(rubric_set.rubrics):
        rubrics.append(
            RubricDifference(
                rubric.id,
                rubric.polarity,
                rubric.text,
                float(np.nanmean(a.values[:, place])),
                float(np.nanmean(b.values[:, place])),
                differences[rubric.id],
                rubric.id in changed,
            )
        )

    return SampleComparison(
        first=a.name,
        second=b.name,
        sizes=(len(a.conversations), len(b.conversations)),
        paired=len({c.id for c in a.conversations} & {c.id for c in b.conversations}),
        means=(float(a.probability.mean()), float(b.probability.mean())),
        good=(estimate_good_share(a, rubric_set), estimate_good_share(b, rubric_set)),
        probability=differences["p"],
        netsat=differences["netsat"],
        # what moved comes first, the largest change in front
        rubrics=tuple(
            sorted(
                rubrics, key=lambda rubric: (not rubric.moved, -abs(rubric.difference.value or 0.0))
            )
        ),
        share=share,
        labels=(n, m),
        thumbs=thumbs,
        thumb_difference=thumb_difference,
        plan=_plan_sample_size(see, a, share),
        drift=drift,
        watch=watched,
        notes=(
            *left_out,
            *filter(None, [rubric_set.at_chance]),
            *_note_conditions(n, m, drift, b, measured=share is not None or thumbs is not None),
        ),
    )


MIN_THUMBS_A_SIDE = 10
"""Thumbs of a log below which their share says nothing."""


def _compare_thumbs(
    before: Sequence[Conversation], after: Sequence[Conversation]
) -> tuple[tuple[Figure, Figure] | None, Figure | None]:
    """Return the shares of thumbs up of two logs, and their difference; None where that isn't to be had."""
    thumbs = [_list_thumbs(sample) for sample in (before, after)]
    texts = [{c.text_hash for c, _ in sample} for sample in thumbs]
    # the same conversations, scored twice, have the same thumbs
    if min(map(len, thumbs)) < MIN_THUMBS_A_SIDE or texts[0] == texts[1]:
        return None, None

    shares = []
    for sample in thumbs:
        shares.append(compute_share_with_interval(sum(up for _, up in sample), len(sample)))

    both = [*thumbs[0], *thumbs[1]]
    # a generator of its own, so that no other interval depends on whether there are thumbs
    differences = estimate_mean_differences(
        {"thumb": np.array([up for _, up in both], dtype=np.float64)},
        np.repeat([False, True], [len(sample) for sample in thumbs]),
        number_users([conversation for conversation, _ in both]),
        np.random.default_rng(0),
    )
    return (shares[0], shares[1]), differences["thumb"]


def _list_thumbs(sample: Sequence[Conversation]) -> list[tuple[Conversation, bool]]:
    """Return the conversations with a thumb, and whether it is up."""
    rated = []
    for conversation in sample:
        if conversation.label in RATED_LABELS:
            rated.append((conversation, conversation.label == Label.POSITIVE))

    return rated


def estimate_good_share(arm: ScoredArm, rubric_set: RubricSet) -> Figure:
    """Estimate the share of good conversations of a sample by its probabilities."""
    return estimate_share_from_probabilities(arm.probability, rubric_set.calibration_error)


def keep_comparable(a: ScoredArm, b: ScoredArm) -> tuple[ScoredArm, ScoredArm, list[str]]:
    """Return two samples without what only one of them scored, by folds where one of them has that, and notes.

    Where all labels taught, the run that learned scored each conversation by rubrics and scales
    that did not see it. What the other sample scored by the whole set is flattered there: it takes
    the same figures. Where some were held out, those that taught are left out.
    """
    notes = []
    taught_by_one = (a.folded ^ b.folded) & (a.measured | b.measured)
    a, b, unlike = share_folds(a, b)
    if taught_by_one:
        taught = []
        for arm in (a, b):
            taught.append(
                sum(conversation.text_hash in taught_by_one for conversation in arm.conversations)
            )

        taught_of_each = f"{taught[0]} of {a.name} and {taught[1]} of {b.name}"
        notes.append(
            f"conversations that the set was learned from, {taught_of_each}, are compared {BY_FOLDS_NOTE}"
        )

    # what is left out of both samples, with the reason for the note
    for texts, what, why in (
        (unlike, "that the set was learned from", TRAINED_ON_REASON),
        (
            a.unscored | b.unscored,
            "without a score in the other",
            "a difference is one of answers to the same texts",
        ),
    ):
        first = a.without(texts)
        second = b.without(texts)
        lost = []
        for arm, left in ((a, first), (b, second)):
            lost.append(len(arm.conversations) - len(left.conversations))

        if any(lost):
            notes.append(
                f"left out are conversations {what}, {lost[0]} of {a.name} and {lost[1]} of {b.name}: {why}"
            )

        # the second reason applies to what the first one left
        a = first
        b = second

    return a, b, notes


def _estimate_by_labels(
    arm: ScoredArm,
    labels: list[ConversationLabel] | None,
    drawn: str | None,
    rubric_set: RubricSet,
) -> tuple[LabeledSample | None, int]:
    # labels of a file belong to a sample by their id; without a file the logs have them
    ids = {c.id for c in arm.conversations}
    arm_labels = list_conversation_labels(arm.conversations, drawn or "") if labels is None else [
        label._replace(drawn=label.drawn or drawn or "") for label in labels if label.id in ids
    ]  # fmt: skip
    # too few labels at random: their number alone is of use
    if (
        n := len({label.id for label in arm_labels if label.drawn == RANDOM_DRAW_METHOD})
    ) < MIN_LABELS_FOR_SHARE_ESTIMATE:
        return None, n

    sample, _ = build_share_sample(
        arm.conversations,
        arm_labels,
        rubric_set,
        arm.probability,
    )
    return split_random_labels(sample), n


def _plan_sample_size(see: float, a: ScoredArm, share: Share | None) -> SampleSize:
    mean = float(a.probability.mean())
    spread = float(a.probability.std())
    # the correlation that labels showed; without labels the one that calibration implies
    human_correlation = None if share is None else share.correlation
    # of a calibrated probability and its label
    expected = min(spread / max(np.sqrt(mean * (1 - mean)), 1e-6), 0.99)
    correlation = expected if human_correlation is None else human_correlation
    # the share is kept low enough that adding the difference doesn't exceed 1
    with_scores, alone = (
        count_labels_for_difference(see, min(mean, 1 - see), r) for r in (correlation, 0.0)
    )

    # how far one conversation's scores spread, or equal ones, nobody knows
    return SampleSize(
        difference=see,
        conversations=count_conversations_for_difference(see, spread) if spread > 0 else None,
        labels=with_scores,
        labels_alone=alone,
    )


def _note_conditions(
    n: int,
    m: int,
    drift: StabilityIndex,
    b: ScoredArm,
    *,
    measured: bool,
) -> list[str]:
    # where people's own words measure nothing, a reader would underestimate the difference
    notes = [] if measured else [UNDERSTATED_NOTE]
    if not measured and n + m:
        notes.append(
            f"{n} and {m} labels at random: a difference of shares takes {MIN_LABELS_FOR_SHARE_ESTIMATE} on each side"
        )

    if drift.marked and drift.value >= MIN_STABILITY_INDEX_OF_DRIFT:
        notes.append(
            f"conversations of {b.name} are unlike those before: probabilities may not be calibrated there"
        )

    return notes
