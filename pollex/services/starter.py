"""Learn with a set that was learned elsewhere."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from pollex.conversations.logs import Logs
from pollex.conversations.splits import MIN_LABELS_PER_CLASS, number_dependent_blocks
from pollex.errors import WrongUse
from pollex.formats.fields import ReadOptions
from pollex.graphs.context import Progress
from pollex.measures.classification import estimate_auc
from pollex.measures.intervals import Figure
from pollex.rubrics.answers import OPTIONS_BY_SCALE
from pollex.rubrics.learning.material import GivenAnswers, Starter
from pollex.rubrics.learning.results import Learned
from pollex.rubrics.learning.thumbs import list_conversations_graded_between_thumbs
from pollex.rubrics.records import StarterRecord
from pollex.rubrics.rubric_set import RubricSet, hash_rubrics
from pollex.rubrics.starter import STARTER_PREFIX, prefix_rubric_ids_of_starter, standardize_values
from pollex.runs.options import ModelOptions, RunOptions
from pollex.selection.threshold import Window
from pollex.services.score import read_unedited, score
from pollex.store.resume import read_step_result
from pollex.store.rubric_sets import make_rubric_set_rows
from pollex.store.store import Store

FEWEST_THUMBS_WITH_STARTER = 2
"""Conversations of each class that are enough where there is a starter."""


def require_same_judge(
    starter: RubricSet,
    name: str,
    model: ModelOptions,
) -> None:
    """Refuse a starter whose rubrics the judge of the new set can't answer.

    Raises:
        WrongUse: It is judged by another model, or by one that isn't given.
    """
    judged = starter.judge
    named = model.name
    # the same judge; a model's answers have a scale, too, which must be the same
    if (judged.built_in and named is None) or judged.name == named:
        if (
            judged.built_in
            or OPTIONS_BY_SCALE[judged.scale] == OPTIONS_BY_SCALE[model.settings.scale]
        ):
            return
        hint = f"answer on that scale, or fit it on yours: `pollex refit LOGS --rubrics {name}`"
        raise WrongUse(
            f"the starter {name} is answered on the scale {judged.scale}",
            hint=hint,
            option="scale",
        )

    if judged.built_in:
        by = "the built-in judge"
    else:
        by = f"the model {judged.name}"

    if judged.built_in:
        hint = "leave --model out"
    else:
        hint = f"give --model {judged.name}"

    raise WrongUse(
        f"the starter {name} is judged by {by}",
        hint=f"{hint}, or fit the starter for your judge: `pollex refit LOGS --rubrics {name}`",
    )


def read_starter(
    starter: Path | RubricSet,
    store: Path,
    model: ModelOptions,
) -> tuple[StarterRecord, RubricSet]:
    """Read a starter; return what a set keeps of it, and itself.

    Raises:
        BadRubrics: It can't be read, or was edited after θ was fitted.
        WrongUse: The judge of the new set can't answer its rubrics.
    """
    rubric_set = read_unedited(starter, store)
    name = starter.name if isinstance(starter, Path) else "(in memory)"
    require_same_judge(rubric_set, name, model)

    return make_starter_record(rubric_set, name), rubric_set


def make_starter_record(starter: RubricSet, name: str) -> StarterRecord:
    """Return what a set keeps of its starter; its figures come after learning."""
    # a prefix tells rubrics of the starter from those of the set
    prefixed_rubrics = []
    for rubric in starter.rubrics:
        prefixed_rubrics.append(rubric.model_copy(update={"id": STARTER_PREFIX + rubric.id}))

    rubrics = tuple(prefixed_rubrics)
    return StarterRecord(
        source=name,
        rubrics=rubrics,
        judge=starter.judge.model_copy(
            update={"learned": prefix_rubric_ids_of_starter(starter.judge.learned)}
        ),
        theta=starter.theta,
        never=prefix_rubric_ids_of_starter(starter.never),
        weights=(1.0, 1.0),
        auc={},
        measured_on="",
        helps=False,
    )


def convert_starter_to_set(record: StarterRecord, around: RubricSet) -> RubricSet:
    """Return the starter as a set of its own, to be scored with."""
    changes = {
        "rubrics": record.rubrics,
        "judge": record.judge,
        "theta": record.theta,
        "never": record.never,
    }
    # what is fitted to thumbs of elsewhere, or is about the set around it
    alone = {
        "calibrator": None,
        "guaranteed": None,
        "starter": None,
        "rubrics_digest": hash_rubrics(record.rubrics),
    }
    window = Window(None, None, around.window.precision)
    return around.model_copy(update=changes | alone | {"window": window})


def read_starter_answers(
    record: StarterRecord | None,
    around: RubricSet,
    logs: Logs,
    *,
    run: RunOptions,
    model: ModelOptions,
    progress: Progress,
) -> Starter | None:
    """Return a starter with its answers to the conversations of a log that are learned from; None without one."""
    if record is None:
        return None

    table = GivenAnswers(
        record.judge.options.value,
        len(OPTIONS_BY_SCALE[record.judge.scale]),
        never_counts=record.never,
    )
    # graded conversations of neither class are answered, too: grades learn from them
    learned_from = Logs(
        conversations=(*logs.learnable, *list_conversations_graded_between_thumbs(logs)),
        fingerprint=logs.fingerprint,
    )
    # a run of its own: only the one that learns is resumed
    options = replace(run, resume=False)
    alone = convert_starter_to_set(record, around)
    result = score(
        learned_from,
        alone,
        reading=ReadOptions(),
        run=options,
        model=model,
        progress=progress,
    )
    for row in result.scores or ():
        table.take(row.conversation_id, row.answers)

    return Starter(record, table)


def add_starter_to_set(
    learned: Learned,
    starter: Starter | None,
    logs: Logs,
    store: Store,
) -> Learned:
    """Return a learned set with what its starter brings; as it is without one."""
    if starter is None:
        return learned

    # scores by rubrics that did not see the conversation, where there are any
    comparison = read_step_result(store, learned.run, "calibrate")
    honest = dict[str, float]()
    if (scores := read_step_result(store, learned.run, "select")["held_out_scores"]) is not None:
        honest = dict(zip(comparison["conversations"], scores, strict=True))

    by_id = {c.id: c for c in logs}
    scored = [score for score in learned.scores if score.netsat is not None]
    # held-out conversations have to have both thumbs; else the training ones stand in
    sample = []
    for row in scored:
        if row.side == "held_out":
            sample.append(row)

    where = "held out"
    if len({row.positive for row in sample}) < 2:
        sample = []
        for row in scored:
            if row.side == "training":
                sample.append(row)

        where = "cross-validated on training conversations"

    netsat = np.array(
        [honest.get(row.conversation_id, row.netsat) for row in sample],
        dtype=np.float64,
    )
    conversations = [by_id[row.conversation_id] for row in sample]
    other = starter.netsats(conversations)
    both = np.array([row.probability for row in sample], dtype=np.float64)
    if np.isnan(both).any():  # too few for folds
        both = standardize_values(netsat) + standardize_values(other)

    rng = np.random.default_rng(0)
    blocks = number_dependent_blocks(conversations)
    up = np.array([row.positive for row in sample])
    # one set of conversations for all three, so that figures can be compared
    columns = {"own": netsat, "starter": other, "both": both}
    areas = {}
    for name, column in columns.items():
        areas[name] = estimate_auc(column, up, rng, together=blocks)

    helps = (areas["both"].value or 0.0) > (areas["own"].value or 0.0)
    update = {
        "weights": (*comparison["weights"],),
        "auc": areas,
        "measured_on": where,
        "helps": helps,
    }
    record = starter.record.model_copy(update=update)
    # what else to do depends on whether the thumbs would be enough without a starter
    changes = {
        "starter": record,
        "notes": (
            *learned.rubric_set.notes,
            describe_starter(
                record,
                LEARN_ALONE_HINT
                if up.sum() >= MIN_LABELS_PER_CLASS <= (~up).sum()
                else MORE_THUMBS_HINT,
            ),
        ),
    }
    # the run stored the set before this was known
    rubric_set = learned.rubric_set.model_copy(update=changes)
    store.keep(list(make_rubric_set_rows(learned.run, rubric_set)))

    return replace(learned, rubric_set=rubric_set)


LEARN_ALONE_HINT = "learn without --starter"
MORE_THUMBS_HINT = (
    "give more thumbs, `pollex label next LOGS --out to-label.jsonl` says to which conversations"
)


def describe_starter(record: StarterRecord, instead: str = LEARN_ALONE_HINT) -> str:
    """Say what a starter brings, in a sentence for the notes of a set.

    Args:
        instead: What to do where it doesn't help.
    """
    parts = (("this set alone", "own"), ("the starter alone", "starter"), ("both", "both"))
    figures = ", ".join(f"{name} {_format_figure(record.auc[key])}" for name, key in parts)
    if record.helps:
        advice = ""
    else:
        advice = f"; it does not help here: {instead}"

    n = record.auc["both"].n
    return f"Starter {record.source}: AUC of {figures} ({record.measured_on}, n = {n}){advice}."


def _format_figure(figure: Figure) -> str:
    if figure.value is None:
        return "undefined"

    if figure.low is None or figure.high is None:
        ends = ""
    else:
        ends = f" [{figure.low:.2f}, {figure.high:.2f}]"

    return f"{figure.value:.2f}{ends}"
