"""What is measured of a chosen set, beside its scores and plain methods, and how far it reaches: one record each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import Any, Literal

import numpy as np

from pollex.calibration.candidates import (
    NETWORK_STARTING_MODEL_DESCRIPTION,
    CandidateScore,
    LabelsPoint,
)
from pollex.conversations.conversation import Conversation, Label
from pollex.conversations.logs import flag_positive_labels
from pollex.conversations.splits import flag_queue_preferred, number_dependent_blocks
from pollex.measures.arrays import Bools, Floats, Ints
from pollex.measures.classification import (
    assess_scores_against_labels,
    compute_auc,
    estimate_auc,
    estimate_auc_difference,
    estimate_share_of_plain_auc_gain_reached,
    measure_auc_by_label_count,
)
from pollex.measures.correlations import estimate_mean_correlation_of_rubrics
from pollex.measures.drift import count_values_in_bins, make_bin_edges
from pollex.measures.intervals import Figure
from pollex.rubrics.answers import OPTIONS_BY_SCALE
from pollex.rubrics.learning.choice import list_rubrics_to_choose_from
from pollex.rubrics.learning.crossfit import (
    Candidates,
    CrossFit,
    FoldPart,
    WeighedPool,
    assign_held_out_conversations_to_folds,
    cross_fit,
    list_conversations_with_thumb,
    make_family_member,
)
from pollex.rubrics.learning.material import GivenAnswers, Material
from pollex.rubrics.learning.thumbs import FittedThumbs, collect_grades_on_scales
from pollex.rubrics.learning.tone import fit_logistic_model_of_signals
from pollex.rubrics.records import (
    Baseline,
    CalibratorRecord,
    ChosenRubric,
    DataRecord,
    GradeRow,
    JudgedBy,
    RatingRecord,
    RubricAlone,
    RubricEvidence,
    SignalShare,
    SpreadRecord,
    StandingRecord,
)
from pollex.rubrics.rubric import Polarity, Reason, Rubric
from pollex.rubrics.worth import (
    FURTHER_LABELS_IN_FORECAST,
    CurvePoint,
    Reach,
    add_counted_thumbs,
    compute_evidence_of_rubric,
    compute_share_with_interval,
    measure_probability_quality,
    measure_share_among,
    measure_signal_share,
)
from pollex.selection.losses import compute_midpoint_of_class_means
from pollex.selection.multi_split import (
    adjust_p_values_by_holm,
    compute_fisher_p_values_of_rubrics,
    keep_one_conversation_per_block,
)
from pollex.selection.netsat import sum_rubric_columns_in_order, sum_rubric_values
from pollex.selection.threshold import (
    GuaranteedWindow,
    Window,
    fit_guaranteed_window,
    fit_uncertainty_window,
    is_probability_clear,
)

TrainingAndUnseenLogOdds = tuple[Floats, Floats]
"""Log-odds of being positive `[conversation]`, of training conversations and of others."""

WORDS_BASELINE_NAME = "TF-IDF + logistic regression"
SIGNALS_BASELINE_NAME = "signals + logistic regression"
CONSTANT_BASELINE_NAME = "constant"


class PlainMethods:
    """The plain methods, fitted on training conversations.

    Attributes:
        scores: By method, what it gives training conversations, and those that figures are of.
        strongest: The method with the highest cross-validated AUC; words where there are too few
            labels.

    Args:
        measured: What was held out, or training conversations that are measured by folds.
        features: See `word_features`, of training and held-out conversations.
        fold: Of each training conversation, and of others behind them `[conversation]`; None where
            there are too few.
        crossfitted: Whether figures are by folds.
    """

    def __init__(
        self,
        training: Sequence[Conversation],
        positive: Bools,
        measured: Sequence[Conversation],
        features: Floats,
        fold: Ints | None,
        *,
        crossfitted: bool,
    ) -> None:
        self.training = training
        self.positive = positive
        self.measured = measured
        texts = [join_turn_texts(c) for c in training]
        # where folds measure, scores come from models without the fold, further below
        if crossfitted:
            held_out = []
        else:
            held_out = [join_turn_texts(c) for c in measured]

        # features of training conversations come first
        training_features = features[: len(training)]
        rest = features[len(training) :]
        # the constant method says of every conversation what most of training is
        constant = 1.0 if positive.mean() >= 0.5 else -1.0
        self.scores: dict[str, TrainingAndUnseenLogOdds] = {
            WORDS_BASELINE_NAME: score_conversations_by_words_baseline(texts, held_out, positive),
            CONSTANT_BASELINE_NAME: (
                np.full(len(training), constant),
                np.full(len(measured), constant),
            ),
            SIGNALS_BASELINE_NAME: score_conversations_by_signals_baseline(
                training_features, rest, positive
            ),
        }
        # each way scores a fold's conversations by a model that was fitted without them
        ways: dict[str, Callable[[Bools], Floats]] = {
            WORDS_BASELINE_NAME: lambda out: score_conversations_by_words_baseline(
                list(compress(texts, ~out)), list(compress(texts, out)), positive[~out]
            )[1],
            SIGNALS_BASELINE_NAME: lambda out: score_conversations_by_signals_baseline(
                training_features[~out], training_features[out], positive[~out]
            )[1],
        }
        self.strongest = WORDS_BASELINE_NAME
        reached = -1.0
        # a mask of training conversations for each fold
        outs = (
            [] if fold is None else [fold[: len(training)] == number for number in np.unique(fold)]
        )
        # the strongest method has the highest mean AUC over the folds
        for name, way in ways.items() if outs else ():
            out_of_fold = np.zeros(len(training))
            for out in outs:
                out_of_fold[out] = way(out)
            if (
                mean_auc := float(
                    np.mean([compute_auc(out_of_fold[out], positive[out]) for out in outs])
                )
            ) > reached:
                self.strongest = name
                reached = mean_auc

            # the measured conversations are among the training ones, in another order
            if crossfitted:
                own_rows = {c.id: row for row, c in enumerate(training)}
                self.scores[name] = (
                    self.scores[name][0],
                    out_of_fold[[own_rows[c.id] for c in measured]],
                )

    def baselines(
        self,
        truth: Bools,
        tested: Floats,
        likely: Floats,
        rng: np.random.Generator,
    ) -> list[Baseline]:
        """Measure each method on both sides, and how far the rubrics are ahead.

        Args:
            truth: Labels of held-out conversations `[conversation]`.
            tested: Their NetSAT `[conversation]`.
            likely: Their probability `[conversation]`.
        """
        training_blocks = number_dependent_blocks(self.training)
        blocks = number_dependent_blocks(self.measured)
        held_out = len(truth) > 0
        # random numbers of its own, so that the other intervals don't depend on this figure
        other_rng = np.random.default_rng(13)
        baselines: list[Baseline] = []
        for name, (training_scores, unseen) in self.scores.items():
            baselines.append(
                Baseline(
                    name=name,
                    training=assess_scores_against_labels(
                        training_scores,
                        self.positive,
                        0.0,
                        np.zeros(len(training_scores), bool),
                        rng,
                        together=training_blocks,
                    ),
                    held_out=assess_scores_against_labels(
                        unseen, truth, 0.0, np.zeros(len(unseen), bool), rng, together=blocks
                    )
                    if held_out
                    else None,
                    advantage=estimate_auc_difference(tested, unseen, truth, rng, together=blocks)
                    if held_out
                    else None,
                    probability_ahead=estimate_auc_difference(
                        likely, unseen, truth, other_rng, together=blocks
                    )
                    if held_out
                    else None,
                )
            )

        return baselines


def score_conversations_by_words_baseline(
    training: Sequence[str],
    unseen: Sequence[str],
    positive: Bools,
) -> TrainingAndUnseenLogOdds:
    """Fit words and pairs of words that two conversations have, sublinear, C = 10, balanced classes."""
    # a second, needed by `learn` alone
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression

    try:
        vectorizer = TfidfVectorizer(
            ngram_range=(1, 2),
            min_df=2,
            sublinear_tf=True,
        )
        training_words = vectorizer.fit_transform(training)
    except ValueError:  # no word stands in two conversations
        return np.zeros(len(training)), np.zeros(len(unseen))

    model = LogisticRegression(C=10, class_weight="balanced", max_iter=2000).fit(
        training_words,
        positive,
    )
    if unseen:
        others = np.asarray(model.decision_function(vectorizer.transform(unseen)))
    else:
        others = np.zeros(0)

    return np.asarray(model.decision_function(training_words)), others


def score_conversations_by_signals_baseline(
    training: Floats, unseen: Floats, positive: Bools
) -> TrainingAndUnseenLogOdds:
    """Fit all signals of mood and flow `[conversation, feature]`, as tone is fitted."""
    slopes, intercept = fit_logistic_model_of_signals(training, positive)
    return training @ slopes + intercept, unseen @ slopes + intercept


def join_turn_texts(conversation: Conversation) -> str:
    """Return the text of all turns, without roles."""
    # lone surrogates, which can't be encoded, become question marks
    return (
        "\n".join(turn.content for turn in conversation.turns).encode("utf-8", "replace").decode()
    )


@dataclass(frozen=True)
class Thresholds:
    """θ with its windows; the promised one is None where no scores are by rubrics chosen without the conversation."""

    theta: float
    window: Window
    promised: GuaranteedWindow | None


@dataclass(frozen=True, eq=False)
class TrainingScores:
    """NetSAT that θ and windows are fitted on: of training conversations, then of those held out.

    Attributes:
        own: By the set `[conversation]`.
        honest: Of training conversations by rubrics chosen without each, where there were folds
            `[conversation]`.
        up: Thumbs `[conversation]`.
        fold: Of those that are measured; −1 of others `[conversation]`.
        promises: Whether there were folds of training conversations.
    """

    own: Floats
    honest: Floats
    up: Bools
    fold: Ints
    promises: bool

    @classmethod
    def of(cls, material: Material, selection: Mapping[str, object]) -> TrainingScores:
        """Gather the scores of both sides."""
        training, (held_out, dealt) = (
            list_rubrics_to_choose_from(material).conversations,
            assign_held_out_conversations_to_folds(material),
        )
        # a grade without a thumb says nothing of θ
        held_out = list_conversations_with_thumb(held_out)
        # added up one by one in the set's order, as scoring does
        sums = []
        for side in (training, held_out):
            values, _ = material.table.matrix(side, material.chosen)
            sums.append(sum_rubric_columns_in_order(values.T, len(side)))

        scores, others = sums
        # training scores by rubrics chosen without the conversation, where there were folds
        folded = selection["held_out_scores"]
        honest = np.append(scores if folded is None else np.array(folded), others)
        # only held-out conversations have a fold here
        fold = np.append(np.full(len(training), -1), dealt[: len(held_out)])

        return cls(
            np.append(scores, others),
            honest,
            flag_positive_labels([*training, *held_out]),
            fold,
            folded is not None,
        )

    def bounds(self, rows: Bools, theta: float | None = None) -> Thresholds:
        """Fit θ, unless it is given, and the windows to some conversations `[conversation]`."""
        honest = self.honest[rows]
        up = self.up[rows]
        if theta is None:
            theta = compute_midpoint_of_class_means(self.own[rows], up)

        # only scores by rubrics that did not see the conversation can promise anything
        promised = None
        if self.promises:
            promised = fit_guaranteed_window(honest, up, theta)

        # a window, too, needs scores of conversations that took no part in the choice
        judged_unseen = self.promises or bool((self.fold >= 0).any())
        if judged_unseen:
            window = fit_uncertainty_window(honest, up, theta)
        else:
            window = Window(None, None, fitted=False)

        return Thresholds(theta, window, promised)


@dataclass(frozen=True, eq=False)
class UnseenScores:
    """Labeled conversations, and what rubrics, θ, windows and models say of them that did not see them.

    Attributes:
        netsat: `[conversation]`.
        theta: `[conversation]`.
        confident: Outside the window `[conversation]`.
        promised: Outside the window with a guarantee, where one was fitted `[conversation]`.
        probability: Of a thumb up `[conversation]`.
        held: Where each rubric of the set holds `[conversation, rubric]`.
        known: Where that was measured: by folds that chose it without the conversation
            `[conversation, rubric]`.
        folds: In how many it was learned; 0 where they were held out.
    """

    conversations: list[Conversation]
    netsat: Floats
    theta: Floats
    confident: Bools
    promised: Bools
    probability: Floats
    held: Bools
    known: Bools
    folds: int = 0

    @classmethod
    def held_out(
        cls,
        material: Material,
        fitted: FittedThumbs,
        taught: TrainingScores,
    ) -> UnseenScores:
        """Measure what was held out, each fold by what was fitted without it."""
        conversations = list_conversations_with_thumb(
            assign_held_out_conversations_to_folds(material)[0]
        )
        held = material.table.held(conversations, material.chosen)
        rows = np.flatnonzero(taught.fold >= 0)

        return cls._by_folds(
            conversations,
            rows,
            taught,
            None,
            fitted,
            held,
            np.ones(held.shape, dtype=bool),
        )

    @classmethod
    def crossfitted(
        cls,
        material: Material,
        fitted: FittedThumbs,
        theta: float,
    ) -> UnseenScores:
        """Measure what was learned without each fold on that fold; what a queue preferred is in no figure."""
        pool = list_rubrics_to_choose_from(material)
        fit = cross_fit(material, pool)
        fold = np.zeros(len(pool.labels), dtype=np.int64)
        held, unseen_there = fit.held_of(material.chosen)
        # the fold in which each training conversation was left out
        for number, part in enumerate(fit.parts):
            fold[part.labeled_out] = number

        # each fold has taken its own θ off; the set's θ brings all back to one scale
        netsat = fit.above + theta
        # what a queue preferred is no fair sample
        rows = np.flatnonzero(~flag_queue_preferred(pool.conversations))
        conversations = [pool.conversations[row] for row in rows.tolist()]
        taught = TrainingScores(netsat, netsat, pool.labels, fold, promises=False)

        return cls._by_folds(
            conversations,
            rows,
            taught,
            theta,
            fitted,
            held[rows],
            unseen_there[rows],
            len(fit.parts),
        )

    @classmethod
    def _by_folds(
        cls,
        conversations: list[Conversation],
        rows: Ints,
        taught: TrainingScores,
        fixed_theta: float | None,
        fitted: FittedThumbs,
        held: Bools,
        known: Bools,
        folds: int = 0,
    ) -> UnseenScores:
        theta, (confident, promised) = (
            np.zeros(len(taught.up)),
            np.zeros((2, len(taught.up)), dtype=bool),
        )
        # each fold by θ and windows of all others; training conversations have none
        for number in np.unique(taught.fold[taught.fold >= 0]):
            out = taught.fold == number
            thresholds = taught.bounds(~out, fixed_theta)
            scores = taught.own[out]
            theta[out], confident[out] = thresholds.theta, thresholds.window.confident(scores)
            promised[out] = (
                thresholds.promised is not None and thresholds.promised.window.confident(scores)
            )

        # by models that did not see the conversation
        probability = np.array([fitted.crossfitted[c.id] for c in conversations])
        of_rows = (
            taught.own[rows],
            theta[rows],
            confident[rows] & is_probability_clear(probability),
            promised[rows],
        )
        return cls(conversations, *of_rows, probability, held, known, folds)


def make_unseen_scores(
    material: Material,
    fitted: FittedThumbs,
    taught: TrainingScores,
    theta: float,
) -> UnseenScores:
    """Return the conversations that figures are of; none where nothing was held out, and labels are too few."""
    if material.crossfitted and cross_fit(material, list_rubrics_to_choose_from(material)).parts:
        return UnseenScores.crossfitted(material, fitted, theta)
    return UnseenScores.held_out(material, fitted, taught)


def make_spread_record(netsat: Floats) -> SpreadRecord:
    """Record how NetSAT is spread `[conversation]`."""
    edges = make_bin_edges(netsat)
    return SpreadRecord(
        edges=tuple(edges.tolist()),
        counts=tuple(count_values_in_bins(netsat, edges).astype(int).tolist()),
    )


def measure_rubric_evidence(
    chosen: Sequence[Rubric],
    unseen: UnseenScores,
    held_now: Bools,
    occasions: Mapping[str, tuple[str, Bools]],
) -> dict[str, RubricEvidence]:
    """Return how each rubric separates conversations that it did not see, by rubric.

    Args:
        held_now: Where each rubric holds as it is in the set, whoever saw the conversation: what is
            counted beside `[conversation, rubric]`.
        occasions: By rubric, its occasion in words, and where it came up `[conversation]`; of
            rubrics that may hold in any conversation none.
    """
    up = flag_positive_labels(unseen.conversations)
    unit = number_dependent_blocks(unseen.conversations)
    worths = {}
    columns = zip(chosen, unseen.held.T, unseen.known.T, held_now.T, strict=True)
    for rubric, held, measured, everywhere in columns:
        # a rubric that no fold chose has nothing measured
        if not measured.any():
            continue

        words, came_up = occasions.get(rubric.id, ("", None))
        rows = None if came_up is None else came_up[measured]
        worth = compute_evidence_of_rubric(
            held[measured], up[measured], unit[measured], rows, words
        )
        worths[rubric.id] = add_counted_thumbs(worth, everywhere, up, unit, came_up)

    return worths


def flag_mostly_neutral_rubrics(
    table: GivenAnswers,
    conversations: Sequence[Conversation],
    chosen: Sequence[Rubric],
) -> dict[str, bool]:
    """Tell whether most answers where a rubric holds are the middle option, by rubric.

    It holds where the mean answer is above the middle, however little; pages show the likeliest.
    """
    # a scale with an even number of options has no middle one
    if not table.options % 2:
        return dict.fromkeys((rubric.id for rubric in chosen), False)

    held = table.held(conversations, chosen)
    # unanswered is never the middle
    probabilities = np.nan_to_num(table.probabilities(conversations, chosen))
    middle = probabilities.argmax(axis=2) == table.options // 2
    mostly = {}
    for rubric, here, neutral in zip(chosen, held.T, middle.T, strict=True):
        mostly[rubric.id] = bool(here.any() and neutral[here].mean() > 0.5)

    return mostly


def list_judged_occasions(
    table: GivenAnswers,
    chosen: Sequence[Rubric],
    conversations: Sequence[Conversation],
) -> dict[str, tuple[str, Bools]]:
    """Return where a judge says that a rubric's occasion came up, by rubric; of one of which it always did, nothing."""
    columns = zip(chosen, table.came_up(conversations, chosen).T, strict=True)
    pairs: dict[str, tuple[str, Bools]] = {}
    for rubric, came_up in columns:
        if not came_up.all():
            pairs[rubric.id] = ("", came_up)

    return pairs


def measure_further_signals(
    chosen: Sequence[Rubric], unseen: UnseenScores
) -> dict[str, tuple[SignalShare, ...]]:
    """Return how often further signals happened where each rubric held and elsewhere, by rubric."""
    names = sorted({name for conversation in unseen.conversations for name in conversation.signals})
    if not names:
        return {}

    unit = number_dependent_blocks(unseen.conversations)
    # a conversation without the signal is in neither share
    has = {
        name: np.array([name in conversation.signals for conversation in unseen.conversations])
        for name in names
    }
    happened = {
        name: np.array(
            [conversation.signals.get(name, False) for conversation in unseen.conversations]
        )
        for name in names
    }

    def beside(name: str, held: Bools, measured: Bools) -> SignalShare:
        rows = has[name] & measured
        return measure_signal_share(
            name,
            held[rows],
            happened[name][rows],
            unit[rows],
        )

    shares = {}
    for i, rubric in enumerate(chosen):
        shares[rubric.id] = tuple(
            beside(name, unseen.held[:, i], unseen.known[:, i]) for name in names
        )
    return shares


def make_standings_of_chosen_rubrics(
    material: Material,
    selection: dict[str, Any],
    training: Sequence[Conversation],
) -> dict[str, StandingRecord]:
    """Return how far labels bear the chosen rubrics out, by id; empty where no labels could tell.

    The words of a model's rubrics come from the training conversations, so only the held-out ones
    can prove them. Rubrics that were given have all labels but those that they were learned from in
    an earlier run: where none are left, all are hints.
    """
    chosen = material.chosen
    # halvings have tested every rubric already
    if (p := selection.get("p")) is not None:
        standings: dict[str, StandingRecord] = {}
        for r in chosen:
            standings[r.id] = StandingRecord(
                p=p[r.id],
                n=len(training),
                by="halvings",
            )

        return standings

    rubrics_given = not material.pool
    held_out = material.table.answered(material.held_out, chosen)
    learned_hashes = material.learned_from
    # labels that taught an earlier run can't prove what it wrote
    if rubrics_given:
        testing = [c for c in (*training, *held_out) if c.text_hash[:16] not in learned_hashes]
    else:
        testing = held_out

    rng = np.random.default_rng([material.settings.seed, 10])
    every = np.ones(len(testing), dtype=bool)
    testing = list(
        compress(
            testing, keep_one_conversation_per_block(every, number_dependent_blocks(testing), rng)
        )
    )  # a user counts once
    up = flag_positive_labels(testing)
    both_thumbs = 0 < up.sum() < len(up)
    # neither labels to test on nor labels that were used up: there is nothing to say
    if not (both_thumbs or learned_hashes):
        return {}

    # where labels can't tell, p is 1, and every rubric a hint
    sat = np.array([rubric.polarity == "sat" for rubric in chosen], dtype=bool)
    if both_thumbs:
        p = adjust_p_values_by_holm(
            compute_fisher_p_values_of_rubrics(material.table.held(testing, chosen), up, sat)
        )
    else:
        p = np.ones(len(chosen))

    by: Literal["all", "held-out"]
    if rubrics_given and not learned_hashes:
        by = "all"
    else:
        by = "held-out"

    standing_records: dict[str, StandingRecord] = {}
    for r, p_value in zip(chosen, p.tolist(), strict=True):
        standing_records[r.id] = StandingRecord(p=p_value, n=len(up), by=by)

    return standing_records


def list_merged_families(
    material: Material,
    training: Sequence[Conversation],
    reasons: Sequence[Reason],
) -> dict[str, dict[str, object]]:
    """Return the forms that the deduplicator merged into each chosen rubric, by its id, as JSON values.

    Nobody judged these forms: they are counted where the rubric holds, in conversations whose
    reasons they came from.
    """
    # all rubrics that were written, merged ones too
    pool = {}
    for rubrics in material.pool.values():
        for rubric in rubrics:
            pool[rubric.id] = rubric

    # by reason, the conversation that it is of
    place = {reason.id: reason.conversation_id for reason in reasons}
    families = {}
    for rubric, held in zip(
        material.chosen, material.table.held(training, material.chosen).T, strict=True
    ):
        # conversations in which the rubric holds
        here = {c.id for c in compress(training, held)}
        forms = []
        for id_, into in material.merged.items():
            if into == rubric.id:
                forms.append(pool[id_])
        # in how many of these a reason of the form was given
        counted = []
        for form in forms:
            counted.append((len(here & {place.get(id_) for id_ in form.reason_ids}), form))
        members_of_side = []
        for among, form in counted:
            if among and form.polarity == rubric.polarity:
                members_of_side.append(make_family_member(form, among))
        # forms of most conversations first; ids decide between equals
        members = [
            member.model_dump(mode="json")
            for member in sorted(members_of_side, key=lambda member: (-member.among, member.id))
        ]
        if members:
            families[rubric.id] = {"n": len(here), "members": members}

    return families


def measure_share_where_rubric_never_came_up(
    table: GivenAnswers,
    training: Sequence[Conversation],
    rubric: Rubric,
) -> Figure:
    """Return the share of answered training conversations in which a rubric's occasion never came up."""
    answered = [c.id for c in training if rubric.id in table.distributions.get(c.id, {})]
    return compute_share_with_interval(
        sum((id_, rubric.id) in table.never for id_ in answered),
        len(answered),
    )


def measure_rubrics_alone(
    material: Material,
    training: Sequence[Conversation],
    by: Mapping[str, JudgedBy],
) -> dict[str, RubricAlone]:
    """Return each rubric's figures alone on training conversations, by id; `by` says what each is judged by."""
    table = material.table
    options = OPTIONS_BY_SCALE[material.judge_record.scale]
    values, _ = table.matrix(training, material.chosen)
    rng = np.random.default_rng([material.settings.seed, 5])
    blocks = number_dependent_blocks(training)
    up = flag_positive_labels(training)
    alone = {}
    # the answer that is given most often, with its number
    for rubric, rubric_values in zip(material.chosen, values.T, strict=True):
        answer_counts: Counter[str] = Counter()
        for c in training:
            answer_counts[table.picked(c.id, rubric.id, options)] += 1
        commonest, n = answer_counts.most_common(1)[0]
        alone[rubric.id] = RubricAlone(
            by=by[rubric.id],
            spread=float(rubric_values.std()),
            commonest=commonest,
            share=compute_share_with_interval(n, len(training)),
            auc=estimate_auc(rubric_values, up, rng, 500, blocks),
        )

    return alone


def make_guaranteed_window_record(
    guaranteed_window: GuaranteedWindow | None, unseen: UnseenScores
) -> GuaranteedWindow | None:
    """Record the window with a guarantee; its figures are of what was held out."""
    if guaranteed_window is None:
        return None

    # the promise is measured on held-out conversations, never on folds
    held_out = [] if unseen.folds else unseen.conversations
    right = (unseen.netsat > unseen.theta) == flag_positive_labels(unseen.conversations)
    outside = unseen.promised[: len(held_out)]
    # users or other units, of all and of those outside the window
    blocks = number_dependent_blocks(held_out)

    return replace(
        guaranteed_window,
        held_out=len(held_out),
        outside=int(outside.sum()),
        right=int((outside & right[: len(held_out)]).sum()),
        blocks=(len(np.unique(blocks)), len(np.unique(blocks[outside]))),
    )


def make_calibrator_record(
    material: Material,
    fitted: FittedThumbs,
    comparison: dict[str, Any],
    training: Sequence[Conversation],
    unseen: UnseenScores,
) -> tuple[CalibratorRecord, bytes]:
    """Return the chosen probability model with the figures of both sides, and its arrays."""
    # scikit-learn comes with it, and takes a second to import
    from pollex.calibration.storage import serialize_calibrator

    rng = np.random.default_rng([material.settings.seed, 4])
    model = fitted.model
    pack = serialize_calibrator(model.model, model.rating)
    # training probabilities by models that did not see them; None where nothing was compared
    training_probability = comparison["held_out"]
    held_out = unseen.conversations
    positive = flag_positive_labels(training)
    truth = flag_positive_labels(held_out)
    # the constant prediction that a model has to beat
    share = float(positive.mean())
    facts = {}
    for name, value in pack.facts.items():
        if name not in ("questionnaire", "beside"):
            facts[name] = value
    record = CalibratorRecord(
        chosen=comparison["chosen"],
        why=comparison.get("why", ""),
        begins=NETWORK_STARTING_MODEL_DESCRIPTION,
        curve=tuple(LabelsPoint(**row) for row in comparison.get("curve", ())),
        compared=tuple(CandidateScore(**row) for row in comparison["compared"]),
        labels=len(training) + (0 if unseen.folds else len(held_out)),
        training=measure_probability_quality(
            np.array(training_probability), positive, share, rng, number_dependent_blocks(training)
        )
        if training_probability
        else None,
        held_out=measure_probability_quality(
            unseen.probability, truth, share, rng, number_dependent_blocks(held_out)
        )
        if held_out
        else None,
        rubrics=model.rubrics,
        # the questionnaire follows from the rubrics, and grades have a record of their own
        facts=facts,
        rating=make_rating_record(material, fitted, comparison, pack.facts),
    )

    return record, pack.arrays


def make_rating_record(
    material: Material,
    fitted: FittedThumbs,
    comparison: dict[str, Any],
    facts: dict[str, Any],
) -> RatingRecord | None:
    """Return the model of grades with its figures; None where the labels are no grades."""
    if (comparison_of_grades := comparison.get("grades")) is None:
        return None

    from pollex.measures.distributions import Predictions
    from pollex.measures.distributions import assess_predictions as assess_grades

    held_out, _ = assign_held_out_conversations_to_folds(material)
    grades, scales = collect_grades_on_scales(comparison_of_grades, held_out)
    # the first scale is the one that is predicted
    graded = ~np.isnan(grades[:, 0])
    values = scales[0].values
    measured = None
    if graded.any():
        proba = np.array([fitted.grades[conversation.id] for conversation in held_out])[graded]
        # place of each grade on its scale
        place = np.searchsorted(values, grades[graded, 0])
        rng = np.random.default_rng([material.settings.seed, 8])
        blocks = number_dependent_blocks(held_out)[graded]
        assessment = assess_grades(
            Predictions(proba, place, blocks, values),
            rng,
            smooth=False,
        )
        measured = GradeRow(
            name=comparison_of_grades["chosen"],
            n=assessment.n,
            rmse=assessment.rmse,
            pearson=assessment.pearson,
        )

    beside = {name: value for name, value in facts["beside"].items() if name != "questionnaire"}
    # held-out grades teach as well, once they have measured
    labels = comparison_of_grades["labels"] + int(graded.sum())
    return RatingRecord(
        **comparison_of_grades | {"labels": labels},
        held_out=measured,
        facts=beside,
    )


def make_data_record(
    material: Material,
    training: Sequence[Conversation],
    unseen: UnseenScores,
) -> DataRecord:
    """Describe the data that the set was learned from."""
    logs = material.logs
    settings = material.settings
    # nothing is written where rubrics are given: they are only fitted
    written = bool(material.pool)
    # One that could not be judged has given its reasons all the same.
    hashes = set()
    for c in material.training if written else training:
        hashes.add(c.text_hash[:16])

    # a text that taught is not held out, whichever side it stands on
    if unseen.folds:
        others = set()
    else:
        others = {c.text_hash[:16] for c in unseen.conversations} - hashes

    return DataRecord(
        fingerprint=logs.fingerprint,
        conversations=len(logs),
        positives=logs.counts[Label.POSITIVE],
        negatives=logs.counts[Label.NEGATIVE],
        unlabeled=logs.counts[Label.NONE],
        not_scorable=logs.counts[Label.POSITIVE]
        + logs.counts[Label.NEGATIVE]
        - len(material.training)
        - len(material.held_out),
        training=len(training),
        held_out=len(unseen.conversations),
        folds=unseen.folds,
        test_fraction=settings.share,
        seed=settings.seed,
        training_hashes=tuple(sorted(hashes)) if written else (),
        fitted_hashes=tuple(sorted(others if written else hashes | others)),
    )


LABEL_SHARES_OF_LEARNING_CURVE = (0.25, 0.5, 0.75)
"""Of the labels, chosen with so many."""
RANDOM_DRAWS_PER_LABEL_SHARE = 2
MIN_LABELS_PER_CLASS_FOR_LEARNING_CURVE = 5
"""Labels of a class below which nothing is chosen."""
POLARITIES_SAT_FIRST: tuple[Polarity, ...] = ("sat", "dsat")


def measure_reach_of_rubric_set(
    material: Material,
    rubrics: Sequence[ChosenRubric],
    unseen: UnseenScores,
    plain: PlainMethods,
    pool_values: Floats | None,
) -> Reach | None:
    """Measure how far a set reaches; None where nothing was held out.

    Args:
        pool_values: Of the whole pool on held-out conversations `[conversation, rubric]`, those of
            `GivenAnswers.answered` and of `list_rubrics_to_choose_from`; None where they would have to be paid for.
    """
    if not unseen.conversations:
        return None

    truth = flag_positive_labels(unseen.conversations)
    unit = number_dependent_blocks(unseen.conversations)
    rng = np.random.default_rng([material.settings.seed, 6])
    values = material.table.matrix(unseen.conversations, material.chosen)[0]
    # rubrics that are shown as findings of what goes wrong
    leads = []
    for rubric in rubrics:
        leads.append(rubric.headlined and rubric.polarity == "dsat")

    covered = np.asarray(unseen.held[:, leads].any(axis=1))
    # good is decided from even odds on
    good = unseen.probability >= 0.5
    pool = list_rubrics_to_choose_from(material)
    # where folds measure, each conversation has the findings of the fold without it
    if unseen.folds:
        rows = {c.id: row for row, c in enumerate(pool.conversations)}
        covered = cross_fit(material, pool).covered[[rows[c.id] for c in unseen.conversations]]

    coverage, false_alarms = (
        measure_share_with_leading_act(rows, covered, unit, any_leads=any(leads))
        for rows in (~truth, truth)
    )
    curve, more = measure_learning_curve(pool, pool_values, unseen, truth, unit, material)
    return Reach(
        coverage=coverage,
        false_alarms=false_alarms,
        recall_up=measure_share_among(truth, good, unit),
        recall_down=measure_share_among(~truth, ~good, unit),
        beside=plain.strongest,
        recovered=estimate_share_of_plain_auc_gain_reached(
            unseen.netsat, plain.scores[plain.strongest][1], truth, unit, rng
        ),
        correlation={
            side: estimate_mean_correlation_of_rubrics(
                values[:, [r.polarity == side for r in rubrics]], unit, rng
            )
            for side in POLARITIES_SAT_FIRST
        },
        curve=curve,
        more=more,
    )


def measure_share_with_leading_act(
    rows: Bools, covered: Bools, unit: Ints, *, any_leads: bool
) -> Figure:
    """Measure in how many conversations an act that leads holds; undefined where none leads.

    Args:
        rows: Which conversations these are `[conversation]`.
        covered: Where such an act holds, likewise.
    """
    if any_leads:
        return measure_share_among(rows, covered, unit)
    return Figure(None, n=int(rows.sum()), undefined="no act leads on the side of what goes wrong")


def measure_learning_curve(
    pool: Candidates,
    pool_values: Floats | None,
    unseen: UnseenScores,
    truth: Bools,
    unit: Ints,
    material: Material,
) -> tuple[tuple[CurvePoint, ...], Figure]:
    """Measure the AUC of choices with fewer labels; without a curve, the figure says why."""
    if why := explain_missing_learning_curve(material, pool_values, unseen, pool.labels, truth):
        return (), Figure(None, n=len(truth), undefined=why)

    rng = np.random.default_rng([material.settings.seed, 7])
    fit = cross_fit(material, pool)
    # labels that the whole choice had: folds leave a part of them out
    labels = round(len(pool.labels) * (1 - 1 / unseen.folds if unseen.folds else 1))
    rows = {c.id: row for row, c in enumerate(pool.conversations)}
    scores: dict[int, list[Floats]] = {}
    for share in LABEL_SHARES_OF_LEARNING_CURVE:
        # with fewer labels inside each fold, put together from folds that did not see the row
        if unseen.folds:
            netsat = fit.gathered(
                [
                    score_by_rubrics_chosen_with_fewer_labels(part, share, fit, rng)
                    for part in fit.parts
                ]
            )
            scores[round(share * labels)] = [netsat[[rows[c.id] for c in unseen.conversations]]]
        else:
            assert pool_values is not None, "there is no curve without"
            weighed = WeighedPool.of(
                pool,
                material.settings,
                material.family_of,
                material.words_of(pool.conversations),
            )
            # several draws, as one of so few labels says little
            orders = []
            for _ in range(RANDOM_DRAWS_PER_LABEL_SHARE):
                orders.append(
                    choose_rubrics_by_share_of_labels(
                        weighed, np.ones(len(rows), dtype=bool), share, fit, rng
                    )[1]
                )
            scores[round(share * labels)] = [
                sum_rubric_values(pool_values[:, order]) for order in orders
            ]

    # the last point is the set itself
    scores[labels] = [unseen.netsat]
    points, more = measure_auc_by_label_count(scores, truth, unit, rng, FURTHER_LABELS_IN_FORECAST)
    return tuple(CurvePoint(labels=size, auc=auc) for size, auc in points.items()), more


def choose_rubrics_by_share_of_labels(
    weighed: WeighedPool,
    rows: Bools,
    share: float,
    fit: CrossFit,
    rng: np.random.Generator,
) -> tuple[Bools, Ints]:
    """Choose by a share of each class of some conversations: which were drawn, and columns of the pool."""
    drawn = np.zeros(len(rows), dtype=bool)
    up = weighed.pool.labels
    # the same share of both classes
    for class_rows in (np.flatnonzero(rows & up), np.flatnonzero(rows & ~up)):
        drawn[rng.choice(class_rows, round(share * len(class_rows)), replace=False)] = True

    return drawn, weighed.order(drawn, fit.alpha, hints=fit.hints)


def score_by_rubrics_chosen_with_fewer_labels(
    part: FoldPart,
    share: float,
    fit: CrossFit,
    rng: np.random.Generator,
) -> Floats:
    """Score all conversations by rubrics that a share of those outside a fold chose, less their θ `[conversation]`."""
    pool = part.weighed.pool
    drawn, order = choose_rubrics_by_share_of_labels(
        part.weighed, ~part.labeled_out, share, fit, rng
    )
    netsat = sum_rubric_values(pool.values[:, order])
    return np.asarray(netsat - compute_midpoint_of_class_means(netsat[drawn], pool.labels[drawn]))


def explain_missing_learning_curve(
    material: Material,
    pool_values: Floats | None,
    unseen: UnseenScores,
    labels: Bools,
    truth: Bools,
) -> str:
    """Say why there is no curve; empty where there can be one."""
    # held-out conversations were asked about the chosen rubrics alone
    if pool_values is None and not unseen.folds:
        if not material.pool:
            return "rubrics were given, and none were chosen"
        if material.settings.method == "spur":
            return "SPUR revises one set, and chooses none"
        if not material.settings.stability:
            return "resampling was left out"
        return "a model would have to be paid for answering the rubrics that were not chosen"
    # the smallest draw needs enough of both classes
    if (
        LABEL_SHARES_OF_LEARNING_CURVE[0] * min(labels.sum(), (~labels).sum())
        < MIN_LABELS_PER_CLASS_FOR_LEARNING_CURVE
    ):
        return f"a quarter of the labels has fewer than {MIN_LABELS_PER_CLASS_FOR_LEARNING_CURVE} of a class"
    if truth.all() or not truth.any():
        return "only one class was held out"
    return ""
