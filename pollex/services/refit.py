"""Judge the rubrics of an edited set again, and fit them again: parse, plan, run, report."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from pollex.conversations.logs import Logs
from pollex.conversations.splits import require_enough_labels
from pollex.formats.fields import ReadOptions
from pollex.graphs.context import Progress
from pollex.rubrics.learning.material import Starter
from pollex.rubrics.learning.results import Learned
from pollex.rubrics.learning.settings import DEFAULT_HELD_OUT_SHARE, LearnSettings
from pollex.rubrics.rubric_set import RubricSet
from pollex.runs.learn_runs import LearningInput
from pollex.runs.learn_runs import refit_rubric_set as run_refit
from pollex.runs.options import ModelOptions, RunOptions
from pollex.runs.roles import RunRoles, build_run_roles, restore_judge
from pollex.runs.usage import ModelUsage
from pollex.runs.workspace import Workspace, open_workspace
from pollex.services.dry_run import CallPlan, DryRunEnded, plan_learning_calls, plan_scoring_calls
from pollex.services.learn import describe_judging
from pollex.services.learn_result import (
    LearnResult,
    require_distinct_paths,
    write_learn_result,
)
from pollex.services.logs import (
    Sources,
    list_file_names,
    list_source_names,
    read_labeled_logs,
    report_repeats,
)
from pollex.services.named_sets import read_rubric_set, require_not_edited
from pollex.services.starter import (
    FEWEST_THUMBS_WITH_STARTER,
    add_starter_to_set,
    read_starter_answers,
)
from pollex.store.store import Store


def refit(
    logs: Sources | Logs,
    rubrics: Path | RubricSet,
    *,
    out: Path | None,
    test_fraction: float | None,
    seed: int | None,
    probability: str | None = None,
    reading: ReadOptions,
    run: RunOptions,
    model: ModelOptions,
    progress: Progress,
) -> LearnResult:
    """Judge the rubrics of a set again, and fit θ, window and probability again.

    The scale is the set's, whoever judges.

    Args:
        out: Where to write; None writes nothing.
        test_fraction: Share held out; None takes the set's, so that no conversation that rubrics
            came from is held out:
            of a set that all labels taught, half of what it has not seen, and nothing else.
        seed: Of the split; None takes the set's.
        probability: See `LearnSettings`; None is the network.

    Raises:
        BadLabels: One class is missing or too small.
        BadRubrics: The set can't be read.
        WrongUse: Another file than the set's own would be lost.
    """
    # parse
    if out is not None:
        require_distinct_paths(out, *list_file_names(logs))
        require_not_edited(out, own=rubrics)

    # Arrays are left alone: a new calibrator is fitted.
    rubric_set = read_rubric_set(rubrics, run.store, arrays=False)
    read = read_labeled_logs(logs, reading, run.store, progress)
    settings = make_refit_settings(rubric_set, read, test_fraction, seed, probability)
    require_enough_labels(read, settings.minimum)
    report_repeats(read, progress)
    # answers on another scale would have other meanings
    model = replace(model, settings=model.settings.but(scale=rubric_set.judge.scale))

    # plan
    if run.dry_run:
        raise DryRunEnded(plan_refit(read, rubric_set, settings, run, model))

    # run
    helper = read_starter_answers(
        rubric_set.starter, rubric_set, read, run=run, model=model, progress=progress
    )
    arguments = {
        "logs": list_source_names(logs),
        "rubrics": list_source_names(rubrics)[0],
        "model": model.name,
    }
    with open_workspace(run, progress, read) as opened:
        work = refit_in_run(opened, read, model, rubric_set, settings, arguments, helper)
        learned, usage = opened.run(work)
        learned = add_starter_to_set(learned, helper, read, opened.store)

    # report
    return write_learn_result(read, learned, usage, out, run)


def make_refit_settings(
    rubric_set: RubricSet,
    logs: Logs,
    test_fraction: float | None,
    seed: int | None,
    probability: str | None,
) -> LearnSettings:
    """Return the settings of a refit: what isn't given is as the set was learned."""
    if test_fraction is None:
        # half of new conversations is held out, if all labels taught the set and none of these did
        new = all(c.text_hash[:16] not in rubric_set.learned_from for c in logs.learnable)
        if rubric_set.data.folds and new:
            test_fraction = DEFAULT_HELD_OUT_SHARE
        else:
            test_fraction = rubric_set.data.test_fraction

    return LearnSettings(
        test_fraction=test_fraction,
        seed=rubric_set.data.seed if seed is None else seed,
        minimum=FEWEST_THUMBS_WITH_STARTER if rubric_set.starter else LearnSettings.minimum,
        probability=probability or LearnSettings.probability,
    )


def plan_refit(
    logs: Logs,
    rubric_set: RubricSet,
    settings: LearnSettings,
    run: RunOptions,
    model: ModelOptions,
) -> CallPlan:
    """Plan the calls: of the set's own judge many answers may be known, another judge has to give all."""
    if model.name is None:
        return plan_scoring_calls(logs.learnable, rubric_set, run, model)

    learning = LearningInput(
        logs=logs,
        profile=rubric_set.domain,
        settings=settings,
        rubrics=rubric_set.rubrics,
    )
    return plan_learning_calls(learning, run, model)


async def refit_in_run(
    opened: Workspace,
    logs: Logs,
    model: ModelOptions,
    rubric_set: RubricSet,
    settings: LearnSettings,
    arguments: dict[str, Any],
    starter: Starter | None,
) -> tuple[Learned, ModelUsage | None]:
    """Have the set fitted again in a run, by the judge that is named or the set's own; return what was asked."""
    async with await hire_fitter(opened.store, logs, model, rubric_set, settings.seed) as staff:
        if model.name is not None:
            # another model leaves to local judges what they judged before
            staff = staff.leaving(rubric_set.rubrics, {})
        opened.announce(staff)
        # rubrics that θ was never fitted for
        unwritten_rubrics = []
        for rubric in rubric_set.rubrics:
            if not rubric.written:
                unwritten_rubrics.append(rubric)
        for line in describe_judging(unwritten_rubrics, staff):
            opened.progress.note(line)

        learned = await run_refit(
            logs,
            rubric_set.model_copy(update={"judge": staff.record}),
            roles=staff.roles,
            settings=settings,
            setting=opened.setting(arguments, staff),
            starter=starter,
        )
        return learned, ModelUsage.of(staff)


async def hire_fitter(
    store: Store,
    logs: Logs,
    model: ModelOptions,
    rubric_set: RubricSet,
    seed: int,
) -> RunRoles:
    """Hire the model that is named, else the judge that the set has."""
    if model.name is None:
        return await restore_judge(model, rubric_set, store, conversations=logs.learnable)
    return await build_run_roles(model, rubric_set.domain, store, seed)
