"""The rubric set made of chosen rubrics."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import compress
from typing import Any

import numpy as np

from pollex.agents.embedded.comments import find_frequent_remarks
from pollex.agents.embedded.events.language import (
    detect_log_language,
    explain_rubrics_lacking_by_language,
)
from pollex.agents.embedded.events.learning import compute_topic_segments
from pollex.agents.embedded.events.occasions import find_occasions_of_rubrics
from pollex.agents.embedded.evidence import contradicts_usual_side, describe_basis_of_judgment
from pollex.agents.embedded.judge import EmbeddedJudge
from pollex.agents.embedded.signals import LENGTH_SIGNALS, REVERSED_SIGNALS, measure_wording_signals
from pollex.agents.mixed import DividingJudge
from pollex.agents.roles import Extraction
from pollex.conversations.conversation import Conversation
from pollex.conversations.logs import flag_positive_labels
from pollex.conversations.splits import flag_queue_preferred, number_dependent_blocks
from pollex.graphs.learn.state import LearnContext
from pollex.measures.arrays import Bools, Floats
from pollex.measures.classification import Assessment, assess_scores_against_labels
from pollex.measures.intervals import Figure, widen_interval_of_figure
from pollex.rubrics.answers import Question, Unanswered
from pollex.rubrics.headlines import (
    add_overlaps_with_headlines,
    find_deed_behind_each_phrase,
    find_earlier_equivalents_of_headlines,
    find_finding_explaining_each_phrase,
    find_findings_of_same_fact,
    is_proven_or_likely,
)
from pollex.rubrics.learning.choice import list_rubrics_to_choose_from
from pollex.rubrics.learning.circumstances import (
    LENGTH_CIRCUMSTANCE_NAMES,
    find_explaining_circumstance,
    list_circumstances,
)
from pollex.rubrics.learning.crossfit import (
    assign_conversations_to_folds,
    list_conversations_with_thumb,
)
from pollex.rubrics.learning.material import GivenAnswers, Material
from pollex.rubrics.learning.measured import (
    PlainMethods,
    TrainingScores,
    UnseenScores,
    flag_mostly_neutral_rubrics,
    list_judged_occasions,
    list_merged_families,
    make_calibrator_record,
    make_data_record,
    make_guaranteed_window_record,
    make_spread_record,
    make_standings_of_chosen_rubrics,
    make_unseen_scores,
    measure_further_signals,
    measure_reach_of_rubric_set,
    measure_rubric_evidence,
    measure_rubrics_alone,
    measure_share_where_rubric_never_came_up,
)
from pollex.rubrics.learning.results import (
    NO_EVENTS_NOTE,
    REASONS_LEFT_OUT_NOTE_WORDS,
    LabelledScore,
    describe_refused_rubrics,
    iterate_labelled_scores,
    list_caveats_about_figures,
    list_dropped_rubrics,
    list_nearly_constant_handwritten_rubrics,
)
from pollex.rubrics.learning.thumbs import FittedThumbs
from pollex.rubrics.records import (
    LIKELY_LEVEL,
    PROVEN_LEVEL,
    Choice,
    ChosenRubric,
    Family,
    JudgedBy,
    JudgeRecord,
    RubricEvidence,
    StandingRecord,
)
from pollex.rubrics.rubric import (
    ANSWERED_BY_BUILT_IN_JUDGE,
    Polarity,
    Reason,
    Rubric,
    has_rubrics_written_by_model,
    is_built_in_source,
)
from pollex.rubrics.rubric_set import RubricSet, hash_rubrics
from pollex.rubrics.worth import (
    add_counted_thumbs,
    compute_evidence_of_rubric,
    compute_share_with_interval,
    describe_doubt_about_rubric,
    do_thumbs_contradict_side,
    get_counted_thumbs,
    shrink_evidence_for_rubric_choice,
)
from pollex.selection.losses import AlphaScore
from pollex.selection.multi_split import compute_fisher_p_values_of_rubrics
from pollex.selection.netsat import sum_rubric_columns_in_order
from pollex.selection.threshold import fit_logistic_calibration_curve
from pollex.text import format_count

MIN_CONVERSATIONS_OF_SPREAD = 20
"""Conversations drawn at random from which on NetSAT's spread is of these alone."""

CHOICE_WIDENING_FACTOR = 1.2
"""How much wider the interval of a cross-fitted AUC is than one of scores that nobody chose: in planted worlds of 250
labels this one holds the AUC of the set in .94 of runs, the narrower one in .89
(`benchmarks/evidence.py`)."""


def assemble_rubric_set(
    live: LearnContext,
    material: Material,
    fitted: FittedThumbs,
    selection: dict[str, Any],
    comparison: dict[str, Any],
    netsat_of_set: Floats,
    pool_values: Floats | None = None,
) -> tuple[RubricSet, tuple[LabelledScore, ...]]:
    """Fit θ, window and probability, then measure what rubrics say of conversations that they did not see.

    Args:
        netsat_of_set: See `compute_netsat_of_set`.
        pool_values: See `get_held_out_values_of_pool`.
    """
    settings = material.settings
    chosen = material.chosen
    # θ and window by the labels that taught
    training = list_rubrics_to_choose_from(material).conversations
    taught = TrainingScores.of(material, selection)
    positive = flag_positive_labels(training)
    bounds = taught.bounds(np.ones(len(taught.up), dtype=bool))
    scores = taught.own[: len(training)]
    theta = bounds.theta
    window = bounds.window
    # scores by rubrics that did not see the conversation
    unseen = make_unseen_scores(material, fitted, taught, theta)
    measured = unseen.conversations
    tested = unseen.netsat
    truth = flag_positive_labels(measured)
    rng = np.random.default_rng([settings.seed, 2])
    blocks = number_dependent_blocks(measured)
    # each rubric with its evidence, and what explains it
    reasons = list_reasons_of_chosen(live, chosen)
    segments, about = compute_topic_segments(training, measured)
    occasions = find_occasions_of_chosen_rubrics(material, measured)
    rubrics = make_records_of_chosen_rubrics(
        material, selection, training, unseen, reasons, occasions
    )
    rubrics = add_explaining_circumstances_to_rubrics(material, rubrics, measured, about)
    held = material.table.held(measured or training, chosen)
    rubrics = add_findings_of_same_fact(rubrics, held, occasions)
    rubrics = add_overlaps_with_headlines(rubrics, held)
    # notes on what was left out, and why
    reader = material.by_model and bool(live.extractions)
    alone_by_id = {}
    for r in rubrics:
        if r.alone:
            alone_by_id[r.id] = r.alone
    notes = [
        *(describe_share_of_model_reasons_used(live.extractions, chosen) if reader else ()),
        *selection["notes"],
        *describe_refused_rubrics(material.refused),
        *list_caveats_about_figures(
            material, unseen, len(live.unextracted), write_language_notes(material.training)
        ),
        *list_nearly_constant_handwritten_rubrics(chosen, alone_by_id),
    ]
    # the probability, and plain methods beside it
    calibrator, arrays = make_calibrator_record(
        material,
        fitted,
        comparison,
        training,
        unseen,
    )
    features = measure_wording_signals(training if unseen.folds else [*training, *measured])
    crossfitted = unseen.folds > 0
    plain = PlainMethods(
        training,
        positive,
        measured,
        features,
        assign_conversations_to_folds(material, [*training, *material.graded_training]),
        crossfitted=crossfitted,
    )
    figures = None
    if measured:
        figures = assess_scores_against_labels(
            tested,
            truth,
            unseen.theta,
            unseen.confident,
            rng,
            together=blocks,
        )

    chosen_ids = {rubric.id for rubric in chosen}
    never_counts = {}
    for id_, value in material.table.never_counts.items():
        if id_ in chosen_ids:
            never_counts[id_] = value
    rubric_set = RubricSet(
        pollex=version("pollex"),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        run=live.run,
        roles=live.roles.names,
        prompts=live.prompts,
        domain=live.profile,
        rubrics=rubrics,
        theta=theta,
        window=window,
        guaranteed=make_guaranteed_window_record(bounds.promised, unseen),
        calibration=fit_logistic_calibration_curve(taught.honest, taught.up),
        policy=settings.policy,
        alpha=selection["alpha"],
        alphas=tuple(AlphaScore(**row) for row in selection["alphas"]),
        judge=make_judge_record(live, chosen),
        data=make_data_record(material, training, unseen),
        training=assess_scores_against_labels(
            scores,
            positive,
            theta,
            window.confident(scores),
            rng,
            together=number_dependent_blocks(training),
        ),
        held_out=widen_auc_interval_for_choice(figures, unseen.folds) if figures else None,
        baselines=tuple(plain.baselines(truth, tested, unseen.probability, rng)),
        notes=tuple(notes),
        dropped=tuple(list_dropped_rubrics(material, selection)),
        reasons=reasons,
        rubrics_digest=hash_rubrics(chosen),
        calibrator=calibrator,
        tone=fitted.tone,
        segments=segments,
        remarks=find_frequent_remarks((*training, *material.held_out)),
        spread=make_spread_record(netsat_of_set),
        found_nothing=measure_share_without_reason(live.extractions) if reader else None,
        never=never_counts,
    )
    # notes that need the whole set
    note_on_support = (
        () if rubric_set.support.enough else (f"Probabilities are {rubric_set.support}.",)
    )
    reach = measure_reach_of_rubric_set(
        material,
        rubric_set.rubrics,
        unseen,
        plain,
        pool_values,
    )
    noted = rubric_set.model_copy(
        update={
            "notes": (
                *rubric_set.notes,
                *note_on_support,
                *([calibrator.behind] if calibrator.behind else []),
            ),
            "reach": reach,
        }
    ).with_arrays(arrays)
    return noted, tuple(iterate_labelled_scores(material, fitted, unseen))


def make_records_of_chosen_rubrics(
    material: Material,
    selection: dict[str, Any],
    training: Sequence[Conversation],
    unseen: UnseenScores,
    reasons: Sequence[Reason],
    occasions: Mapping[str, tuple[str, Bools]],
) -> tuple[ChosenRubric, ...]:
    """Return the chosen rubrics with what is known of each.

    Args:
        occasions: See `find_occasions_of_chosen_rubrics`.
    """
    table = material.table
    chosen = material.chosen
    measured = unseen.conversations
    # what each rubric is worth where it could have held
    held_now = table.held(measured, chosen)
    worths: Mapping[str, RubricEvidence] = measure_rubric_evidence(
        chosen, unseen, held_now, occasions
    )
    standings = make_standings_of_chosen_rubrics(material, selection, training)
    worths = add_evidence_of_rubrics_no_fold_measured(material, training, standings, worths)
    worths = mark_neutral_evidence(
        worths, flag_mostly_neutral_rubrics(table, training or measured, chosen)
    )
    alone = measure_rubrics_alone(material, training, list_bases_of_judgments(material))
    beside = measure_further_signals(chosen, unseen)
    # families and twins: what is told under another rubric
    mixed = has_rubrics_written_by_model(chosen)
    if material.by_evidence:
        merged = {}
    else:
        merged = list_merged_families(material, training, reasons)

    families = selection.get("families") or merged
    asked_when = material.judge_record.scale == "occasion"
    standings, worths = reconcile_standings_with_evidence(chosen, standings, worths)
    held = table.held(training, chosen)
    twin_of = find_twin_rubrics(material, training)
    borne_out = {id_ for id_, standing in standings.items() if standing.word != "hint"}
    explained_by = find_finding_explaining_each_phrase(
        chosen, held, flag_positive_labels(training), borne_out
    )
    # what is nearly the same in all conversations comes first
    twin_of = find_deed_behind_each_phrase(chosen, held, borne_out, explained_by) | twin_of

    chosen_rubrics = []
    for r in chosen:
        chosen_rubrics.append(
            ChosenRubric(
                **r.model_dump(),
                written=r.text,
                choice=Choice(**selection["choices"][r.id]),
                standing=standings.get(r.id),
                family=Family(**families[r.id]) if families.get(r.id) else None,
                worth=worths.get(r.id),
                signals=beside.get(r.id, ()),
                unexpected=contradicts_usual_side(r),
                alone=alone[r.id],
                twin_of=twin_of.get(r.id, ""),
                explained_by=explained_by.get(r.id, ""),
                yields=mixed
                and r.answered_by == ANSWERED_BY_BUILT_IN_JUDGE
                and not is_proven_by_labels(standings.get(r.id)),
                never_came_up=measure_share_where_rubric_never_came_up(table, training, r)
                if asked_when and not r.answered_by
                else None,
            )
        )
    return tuple(chosen_rubrics)


def list_bases_of_judgments(material: Material) -> dict[str, JudgedBy]:
    """Return by what each chosen rubric is judged, by its id."""
    return {
        rubric.id: describe_basis_of_judgment(
            rubric, model=material.by_model and not rubric.answered_by
        )
        for rubric in material.chosen
    }


def find_occasions_of_chosen_rubrics(
    material: Material, measured: Sequence[Conversation]
) -> dict[str, tuple[str, Bools]]:
    """Return the occasion of each chosen rubric that has one, in words and where it came up, by id."""
    bases = list_bases_of_judgments(material)
    event_rubrics = [rubric for rubric in material.chosen if bases[rubric.id] == "event"]
    return list_judged_occasions(
        material.table, material.chosen, measured
    ) | find_occasions_of_rubrics(event_rubrics, measured)


def name_fact_of_source(source: str) -> str:
    """Return the source that a rubric's marks are of: that of a reversed signal is the signal's."""
    kind, _, rest = source.partition(":")
    name, _, topic = rest.partition(" ")
    if kind == "signal" and name in REVERSED_SIGNALS:
        return f"{kind}:{REVERSED_SIGNALS[name]} {topic}".rstrip()
    return source


def add_findings_of_same_fact(
    rubrics: Sequence[ChosenRubric], held: Bools, occasions: Mapping[str, tuple[str, Bools]]
) -> tuple[ChosenRubric, ...]:
    """Say of each rubric which finding it only says otherwise.

    Args:
        held: Where each of them holds `[conversation, rubric]`.
        occasions: See `find_occasions_of_chosen_rubrics`; of other conversations where none was measured.
    """
    could_hold = np.ones_like(held)
    for place, rubric in enumerate(rubrics):
        _, came_up = occasions.get(rubric.id, ("", could_hold[:, place]))
        if len(came_up) == len(held):
            could_hold[:, place] = came_up

    facts = [name_fact_of_source(rubric.source) for rubric in rubrics]
    same = find_findings_of_same_fact(rubrics, held, could_hold, facts)
    return tuple(
        rubric.model_copy(update={"same_fact_as": same.get(rubric.id, "")}) for rubric in rubrics
    )


def add_evidence_of_rubrics_no_fold_measured(
    material: Material,
    training: Sequence[Conversation],
    standings: Mapping[str, StandingRecord],
    worths: Mapping[str, RubricEvidence],
) -> dict[str, RubricEvidence]:
    """Add what halvings bear out and no fold has measured: its shares among all, which are shrunk for the choice."""
    unmeasured = []
    for rubric in material.chosen:
        if (
            rubric.id not in worths
            and (standing := standings.get(rubric.id)) is not None
            and standing.by == "halvings"
            and standing.p <= LIKELY_LEVEL
        ):
            unmeasured.append(rubric)

    held = material.table.held(training, unmeasured)
    up = flag_positive_labels(training)
    blocks = number_dependent_blocks(training)

    measured_worths = {}
    for rubric, here in zip(unmeasured, held.T, strict=True):
        worth = compute_evidence_of_rubric(here, up, blocks)
        measured_worths[rubric.id] = add_counted_thumbs(worth, here, up, blocks, None)
    return dict(worths) | measured_worths


def find_twin_rubrics(material: Material, training: Sequence[Conversation]) -> dict[str, str]:
    """Return the rubric under which another is told that says nearly the same, by the other's id."""
    chosen = material.chosen
    table = material.table
    if material.by_evidence:
        values = None
    else:
        values = table.matrix(training, chosen)[0]

    return find_earlier_equivalents_of_headlines(chosen, table.held(training, chosen), values)


def widen_auc_interval_for_choice(figures: Assessment, folds: int) -> Assessment:
    """Widen the interval of a cross-fitted AUC by what resampling of scores leaves out: the choice of rubrics."""
    if folds:
        return replace(figures, auc=widen_interval_of_figure(figures.auc, CHOICE_WIDENING_FACTOR))
    return figures


def add_explaining_circumstances_to_rubrics(
    material: Material,
    rubrics: Sequence[ChosenRubric],
    measured: Sequence[Conversation],
    about: Mapping[str, Bools],
) -> tuple[ChosenRubric, ...]:
    """Say of what labels bear out whether a circumstance may explain its difference.

    Args:
        measured: Labeled conversations, and by topic which of them are `about` it `[conversation]`.
    """
    leading = list_ids_to_check_by_circumstances(rubrics)
    if not measured or not leading:
        return tuple(rubrics)

    languages = []
    for conversation in measured:
        languages.append(detect_log_language([conversation]))

    circumstances = list_circumstances(
        measured,
        about,
        languages,
        material.logs.label_field,
    )
    up = flag_positive_labels(measured)
    held = material.table.held(measured, material.chosen)

    explained_rubrics = []
    for rubric, here in zip(rubrics, held.T, strict=True):
        if rubric.id not in leading:
            explained_rubrics.append(rubric)
            continue

        others = [
            place
            for place, other in enumerate(rubrics)
            if other.id != rubric.id
            and other.polarity == rubric.polarity
            and other.id in leading
            and not is_measure_of_length(other)
        ]
        told_by_others: Bools = np.asarray(held[:, others].any(axis=1))
        circumstance = find_explaining_circumstance(here, up, circumstances, told_by_others)
        if circumstance is not None and is_measure_of_length(rubric):
            itself = circumstance.name in LENGTH_CIRCUMSTANCE_NAMES
            circumstance = circumstance.model_copy(update={"itself": itself})
        explained_rubrics.append(rubric.model_copy(update={"circumstance": circumstance}))
    return tuple(explained_rubrics)


def is_measure_of_length(rubric: Rubric) -> bool:
    """Tell whether a rubric measures how long conversations, answers or messages are."""
    kind, _, name = rubric.source.partition(":")
    return kind == "signal" and name.partition(" ")[0] in LENGTH_SIGNALS


def list_ids_to_check_by_circumstances(rubrics: Sequence[ChosenRubric]) -> set[str]:
    """List the ids of what leads or labels bear out: how people sound goes along with length, too."""
    return {rubric.id for rubric in rubrics if rubric.headlined or is_proven_or_likely(rubric)}


def reconcile_standings_with_evidence(
    chosen: Sequence[Rubric],
    standings: Mapping[str, StandingRecord],
    worths: Mapping[str, RubricEvidence],
) -> tuple[dict[str, StandingRecord], dict[str, RubricEvidence]]:
    """Let standing and figures say the same: unclear figures lower a standing, clear ones are shrunk for the choice."""
    lowered = dict(standings)
    shrunk = dict(worths)
    for rubric in chosen:
        standing = standings.get(rubric.id)
        worth = worths.get(rubric.id)
        if standing is None or worth is None:
            continue
        lowered[rubric.id] = standing.model_copy(
            update={"clear": not describe_doubt_about_rubric(worth, rubric.polarity)}
        )
        # p is 1 where labels can't tell, which makes it a hint
        if worth.neutral or not do_counts_bear_standing_out(standing, worth, rubric.polarity):
            lowered[rubric.id] = standing.model_copy(update={"p": 1.0})
        if (
            lowered[rubric.id].word != "hint"
            and standing.by == "halvings"
            and lowered[rubric.id].clear
        ):
            passed = PROVEN_LEVEL if standing.p <= PROVEN_LEVEL else LIKELY_LEVEL
            corrected = shrink_evidence_for_rubric_choice(
                worth, rubric.polarity, standing.p, passed
            )
            if do_thumbs_contradict_side(corrected, rubric.polarity):
                lowered[rubric.id] = standing.model_copy(update={"clear": False})
            else:
                shrunk[rubric.id] = corrected

    return lowered, shrunk


def mark_neutral_evidence(
    worths: Mapping[str, RubricEvidence], mostly_neutral: Mapping[str, bool]
) -> dict[str, RubricEvidence]:
    """Mark what holds with neutral answers alone, by rubric."""
    marked = {}
    for id_, worth in worths.items():
        marked[id_] = worth.model_copy(update={"neutral": mostly_neutral[id_]})

    return marked


def do_counts_bear_standing_out(
    standing: StandingRecord, worth: RubricEvidence, side: Polarity
) -> bool:
    """Tell whether the counts beside a standing show it, too, where they are of fewer conversations.

    Labels that a queue preferred take part in halvings, and are in no count: what only they bear
    out has nothing that a reader could check.
    """
    counted = get_counted_thumbs(worth)
    if counted.holds.n >= standing.n:
        return True

    held = np.arange(counted.there.n + counted.others.n) < counted.there.n
    up = np.ones(len(held), dtype=bool)
    # thumbs down come first on both sides
    for start, share in ((0, counted.there), (counted.there.n, counted.others)):
        up[start : start + round((share.value or 0.0) * share.n)] = False

    p = compute_fisher_p_values_of_rubrics(held[:, np.newaxis], up, np.array([side == "sat"]))
    return bool(p[0] <= PROVEN_LEVEL)


def is_proven_by_labels(standing: StandingRecord | None) -> bool:
    """Tell whether labels prove a rubric."""
    return standing is not None and standing.word == "proven"


def make_judge_record(live: LearnContext, chosen: Sequence[Rubric]) -> JudgeRecord:
    """Return the judge's record with its state for the chosen rubrics."""
    judge = live.roles.judge
    ids = {rubric.id for rubric in chosen}
    learned = {id_: what for id_, what in judge.learned.items() if id_ in ids}

    return live.material.judge_record.model_copy(
        update={"learned": learned, "fingerprint": judge.fingerprint}
    )


def list_reasons_of_chosen(live: LearnContext, chosen: Sequence[Rubric]) -> tuple[Reason, ...]:
    """Return the reasons behind the chosen rubrics."""
    reason_ids = {id_ for rubric in chosen for id_ in rubric.reason_ids}
    reasons = []
    for reason in [*live.reasons("sat"), *live.reasons("dsat")]:
        if reason.id in reason_ids:
            reasons.append(reason)
    return tuple(reasons)


def write_language_notes(training: Sequence[Conversation]) -> list[str]:
    """Say what the log lacks because of its language."""
    if not (reason := explain_rubrics_lacking_by_language(training)):
        return []
    return [f"{reason}." if detect_log_language(training) else f"{NO_EVENTS_NOTE}: {reason}."]


async def compute_netsat_of_set(live: LearnContext, material: Material) -> Floats:
    """Compute NetSAT of labeled conversations as the set gives it to new ones `[conversation]`.

    The built-in judge answers what it has studied by scales learned without it, one a fold. The set
    keeps one scale, and what is spread over five is unlike the same conversations on one.
    """
    judge = live.roles.judge
    chosen = material.chosen
    conversations = list_conversations_with_thumb(
        material.table.answered((*material.training, *material.held_out), chosen)
    )
    # what a queue preferred is unlike the log that it is of
    drawn = list(compress(conversations, ~flag_queue_preferred(conversations)))
    if len(drawn) >= MIN_CONVERSATIONS_OF_SPREAD:
        conversations = drawn

    values, _ = material.table.matrix(conversations, chosen)
    built_in = judge.built_in if isinstance(judge, DividingJudge) else judge
    if isinstance(built_in, EmbeddedJudge):
        answers = GivenAnswers(material.table.rule, never_counts=material.table.never_counts)
        places = []
        for place, rubric in enumerate(chosen):
            if built_in is judge or rubric.answered_by == ANSWERED_BY_BUILT_IN_JUDGE:
                places.append(place)

        asked = [chosen[place] for place in places]
        questions = [Question.about(rubric, material.judge_record.scale) for rubric in asked]
        without_folds = built_in.without_folds()
        for conversation in conversations:
            answers.take(conversation.id, await without_folds.judge(conversation, questions))

        values[:, places] = answers.matrix(conversations, asked)[0]

    return np.asarray(sum_rubric_columns_in_order(values.T, len(conversations)))


async def get_held_out_values_of_pool(live: LearnContext, material: Material) -> Floats | None:
    """Return the values of the whole pool on held-out conversations; None where that would have to be paid for.

    Returns:
        `[conversation, rubric]`, those of `GivenAnswers.answered` and of `list_rubrics_to_choose_from`.
    """
    judge = live.roles.judge
    settings = material.settings
    if not (
        isinstance(judge, EmbeddedJudge)
        and settings.stability
        and material.by_evidence
        and material.held_out
    ):
        return None

    pool = list_rubrics_to_choose_from(material).rubrics
    answers = GivenAnswers(material.table.rule)
    questions = []
    for rubric in pool:
        questions.append(Question.about(rubric, material.judge_record.scale))

    held_out = material.table.answered(material.held_out, material.chosen)
    for conversation in held_out:
        answers.take(conversation.id, await judge.judge(conversation, questions))

    return answers.matrix(held_out, pool)[0]


def measure_share_without_reason(extractions: Mapping[str, Extraction | Unanswered]) -> Figure:
    """Return the share of training conversations in which a model that read them found no reason."""
    read = [extraction for extraction in extractions.values() if isinstance(extraction, Extraction)]
    silent = sum(
        not extraction.dropped
        and all(is_built_in_source(reason.source) for reason in extraction.reasons)
        for extraction in read
    )
    return compute_share_with_interval(silent, len(read))


def describe_share_of_model_reasons_used(
    extractions: Mapping[str, Extraction | Unanswered], chosen: Sequence[Rubric]
) -> list[str]:
    """Say how many of a model's reasons were left out, and if most were or it gave no rubric, what it came to."""
    read = [extraction for extraction in extractions.values() if isinstance(extraction, Extraction)]
    left_out = sum(extraction.dropped for extraction in read)
    unquoted = sum(extraction.unquoted for extraction in read)
    model_reasons = 0
    for extraction in read:
        for reason in extraction.reasons:
            model_reasons += not is_built_in_source(reason.source)
    proposed = left_out + model_reasons
    from_model = sum(not is_built_in_source(rubric.source) for rubric in chosen)
    if from_model and not left_out:
        return []

    others = ""
    if left_out > unquoted:
        others = f"; {left_out - unquoted} others quote no exchange, or copy it"

    why = f", {unquoted} because their quotes don't stand in the conversation{others}"
    if left_out == unquoted:
        why = ", because their quotes don't stand in the conversation"

    what = f"{left_out} of {format_count(proposed, 'reason')} {'was' if left_out == 1 else 'were'} left out{why}"
    if from_model and 2 * left_out < proposed:
        return [f"Of the model, {what}."]

    if not left_out:
        if proposed:
            what = f"none of its {format_count(proposed, 'reason')} led to one that was chosen"
        else:
            what = "it gave no reason"

    return [f"{from_model} of {len(chosen)} {REASONS_LEFT_OUT_NOTE_WORDS}{what}."]
