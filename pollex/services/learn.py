"""Learn a rubric set from labeled conversations.

`learn` tells it in four steps: parse what is asked for, plan its calls, run, report. Below it stand
the steps, in this order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pollex.agents.embedded.evidence import describe_basis_of_judgment
from pollex.agents.embedded.there import write_rubrics_of_frequent_deeds
from pollex.agents.llm.adapting import adapt_rubrics_to_domain
from pollex.agents.llm.asker import PromptAsker
from pollex.agents.llm.evidence import describe_cut_sources
from pollex.conversations.conversation import Label
from pollex.conversations.logs import Logs
from pollex.conversations.splits import require_enough_labels
from pollex.errors import BadRubrics, WrongUse
from pollex.formats.fields import ReadOptions
from pollex.formats.peers.rubrics_in import load_rubrics_of_any_tool
from pollex.graphs.context import Progress
from pollex.outputs import require_replaceable
from pollex.prompts.domain import DomainProfile, read_domain_profile
from pollex.rubrics.learning.material import Starter
from pollex.rubrics.learning.results import Learned
from pollex.rubrics.learning.settings import LearnSettings, resolve_test_fraction
from pollex.rubrics.learning.thumbs import (
    describe_use_of_label_grades,
    require_learnable_rated_questions,
)
from pollex.rubrics.records import AdaptedRubric, StarterRecord
from pollex.rubrics.rubric import Rubric
from pollex.rubrics.rubric_set import RubricSet
from pollex.rubrics.worth import JUDGED_BY_IN_WORDS
from pollex.runs.learn_runs import LearningInput, prepare_learning
from pollex.runs.options import ModelOptions, RunOptions
from pollex.runs.pool_review import (
    POOL_FILE_SUFFIX,
    PoolAwaitsReview,
    PoolReviewer,
    RunFork,
    make_pool_rows,
    read_pool_file,
    write_pool_file,
)
from pollex.runs.roles import RunRoles, build_embedded_roles, build_run_roles
from pollex.runs.usage import ModelUsage
from pollex.runs.workspace import Workspace, open_workspace
from pollex.services.dry_run import DryRunEnded, plan_learning_calls
from pollex.services.few_thumbs import FewThumbsAdvice, ThumbCounts, strip_figures, write_queue
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
from pollex.services.named_sets import require_not_edited
from pollex.services.starter import (
    FEWEST_THUMBS_WITH_STARTER,
    add_starter_to_set,
    read_starter,
    read_starter_answers,
)
from pollex.store.rubric_sets import make_rubric_set_rows
from pollex.store.store import Store
from pollex.text import format_count


def learn(
    logs: Sources | Logs,
    *,
    out: Path | None,
    domain: Path | DomainProfile | None,
    rubrics_from: str | Path | None,
    settings: LearnSettings,
    starter: Path | RubricSet | None = None,
    start: str | None = None,
    adapt: bool = False,
    review: bool = False,
    people: PoolReviewer | None = None,
    reading: ReadOptions,
    run: RunOptions,
    model: ModelOptions,
    progress: Progress,
) -> LearnResult:
    """Learn a rubric set; write it and its report where `out` names a place.

    Args:
        domain: A domain profile or its file; None for the neutral one.
        rubrics_from: A file of rubrics written by hand, or the name of a bundled set: all are
            fitted, none learned.
        start: A run and one of its nodes, `learn-3:deduplicate`, to go on from: nothing before is
            done again, and `rubrics_from` is the pool as it is to be. A run alone is the one that a
            resume goes on with.
        adapt: Whether a model puts the rubrics of `rubrics_from` into the terms of the domain
            before they are fitted.
        review: Whether the run waits for people at the pool: `people` where there are any, else an
            edited file, which is beside `out` or `rubrics_from` when it is resumed.
        starter: A set that was learned elsewhere; both give the probability. Two labels of each
            class are enough then.

    Raises:
        BadLabels: One class is missing or too small.
        PoolWaits: The run waits for people; the pool is written beside `out`.
        WrongUse: The starter is judged by another judge; something that takes a model is asked for
            without one; rubrics are given and to be learned; or a rubric set that a person edited
            would be overwritten.
    """
    # parse: what is refused is refused before the long work
    beginning = parse_beginning(
        start, rubrics_from, out, settings, run, model, review=review, adapt=adapt
    )
    require_free_places(out, domain, rubrics_from, logs)
    elsewhere = None if starter is None else read_starter(starter, run.store, model)
    profile = load_domain_profile(domain)
    read = read_labeled_logs(logs, reading, run.store, progress)
    profile = keep_reading_in_profile(profile, reading, read)
    task = make_learn_task(beginning, read, profile, settings, elsewhere, model)
    report_log(read, model, progress, adapts_blindly=adapt and domain is None)

    # plan
    if run.dry_run:
        raise DryRunEnded(plan_learning_calls(task.learning, run, model, adapt=adapt))

    # run: the starter's answers come first, as the model of the probability takes both
    helper = elsewhere and read_starter_answers(
        *elsewhere, read, run=run, model=model, progress=progress
    )
    task = task.with_helpers(helper, choose_pool_editor(beginning.pool, people, run))
    arguments = {"logs": list_source_names(logs), "out": out and str(out), "model": model.name}
    with open_workspace(run, progress, read) as opened, write_pool_while_waiting(beginning.pool):
        learned, usage = opened.run(learn_in_run(opened, task, model, arguments))
        learned = finish_set(learned, task, opened.store)

    # report
    few = (
        None
        if task.few is None
        else describe_few_thumbs(task, list_source_names(logs), out, reading)
    )
    return write_learn_result(read, learned, usage, out, run, few)


class RunBeginning(NamedTuple):
    """Where a run begins.

    Attributes:
        rubrics: Those that are fitted and not learned.
        fork: A run and a node that it goes on from; None for a new one.
        pool: The file that people edit the pool in; None where it isn't theirs to edit.
        review: Whether the run waits for people at the pool.
        adapt: Whether a model puts the rubrics into the terms of the domain first.
    """

    rubrics: tuple[Rubric, ...]
    fork: RunFork | None
    pool: Path | None
    review: bool
    adapt: bool


@dataclass(frozen=True)
class LearnTask:
    """What is to be learned, read and checked.

    Attributes:
        adapt: See `RunBeginning`.
        few: The thumbs, where they are too few for more than hints, which are the rubrics then.
    """

    learning: LearningInput
    adapt: bool
    few: ThumbCounts | None

    def with_helpers(self, starter: Starter | None, people: PoolReviewer | None) -> LearnTask:
        """Return the task with the answers of a starter, and who edits the pool."""
        return replace(self, learning=replace(self.learning, starter=starter, people=people))


def parse_beginning(
    start: str | None,
    rubrics_from: str | Path | None,
    out: Path | None,
    settings: LearnSettings,
    run: RunOptions,
    model: ModelOptions,
    *,
    review: bool,
    adapt: bool,
) -> RunBeginning:
    """Return where a run begins, with the rubrics that the user wrote.

    Raises:
        BadRubrics: Their file is wrong.
        WrongUse: What is asked for contradicts itself, or takes a model.
    """
    named, _, node = (start or "").partition(":")
    # a fork is a run and a node; a run alone makes sense for a resume only
    if named and not node and not run.resume:
        raise WrongUse(
            f"{start!r} names no node",
            hint="give a run and a node, learn-3:deduplicate",
            option="from",
        )

    pool = _get_pool_file(rubrics_from, out, run) if review and not node else None
    # a reviewed file is the pool itself; any other file has rubrics to fit
    rubrics = () if pool else read_given_rubrics(rubrics_from, settings, model)
    if adapt:
        require_adaptable(rubrics, model)

    # beside a node the rubrics are the pool from there on, and no rubrics to fit
    if node:
        return RunBeginning((), RunFork(named, node, make_pool_rows(rubrics)), pool, review, adapt)
    return RunBeginning(rubrics, RunFork(named, "") if named else None, pool, review, adapt)


def _get_pool_file(
    rubrics_from: str | Path | None, out: Path | None, run: RunOptions
) -> Path | None:
    """Return the file that people edit the pool in; None where there is no place for it.

    Raises:
        WrongUse: Rubrics are given for a run that has no pool yet.
    """
    if rubrics_from is not None and not run.resume:
        what = "rubrics that are given have no pool to wait at"
        raise WrongUse(
            what,
            hint="leave one of these out",
            option={"review": None, "rubrics_from": None},
        )
    # the file that was named, else one beside the set
    if rubrics_from:
        return Path(rubrics_from)

    pool = out and out.with_suffix(POOL_FILE_SUFFIX)
    # a run that goes on reads what people edited there; another would write over it
    if not run.resume:
        require_replaceable(pool)
    return pool


def read_given_rubrics(
    source: str | Path | None,
    settings: LearnSettings,
    model: ModelOptions,
) -> tuple[Rubric, ...]:
    """Return the rubrics that the user wrote; none where they are to be learned.

    Raises:
        WrongUse: The rubrics are to be learned as well, or by a method that needs a model without
            one.
        BadRubrics: The file is wrong.
    """
    if settings.method == "spur" and source:
        raise WrongUse(
            "rubrics that are given are not learned",
            hint="leave one of these out",
            option={"method": None, "rubrics_from": None},
        )

    if settings.method == "spur" and model.name is None:
        raise WrongUse(
            "SPUR rewrites rubrics, and that takes a model",
            hint="name one",
            option="model",
        )

    return load_rubrics_of_any_tool(source) if source else ()


def require_adaptable(rubrics: Sequence[Rubric], model: ModelOptions) -> None:
    """Refuse to adapt rubrics that aren't there, or without a model.

    Raises:
        WrongUse: Says which.
    """
    if not rubrics:
        hint = "name a file, or a bundled set"
        raise WrongUse(
            "there are no rubrics to adapt",
            hint=hint,
            option={"rubrics_from": "generic"},
        )
    if model.name is None:
        what = "rubrics are adapted to a domain by a model, and none is named"
        raise WrongUse(what, hint="name one", option="model")


def require_free_places(out: Path | None, *read: object) -> None:
    """Refuse to write over an input, or over a set that a person edited."""
    if out is not None:
        require_distinct_paths(out, *list_file_names(*read))
        require_not_edited(out)


def load_domain_profile(domain: Path | DomainProfile | None) -> DomainProfile:
    """Return a domain profile that is given as itself, as a file, or not at all."""
    return domain if isinstance(domain, DomainProfile) else read_domain_profile(domain)


def keep_reading_in_profile(
    profile: DomainProfile, reading: ReadOptions, logs: Logs
) -> DomainProfile:
    """Return a profile that keeps how the log was read, so that the set finds it again for a log of the same fields."""
    columns = dict(logs.columns) or dict(reading.columns)
    named_roles = logs.roles or reading.roles
    if not columns and not named_roles:
        return profile

    roles: dict[str, str | list[str]] = {}
    for role, name in named_roles:
        role_names = roles.get(role, [])
        # several names may have the same role
        roles[role] = [*([role_names] if isinstance(role_names, str) else role_names), name]

    log: dict[Literal["columns", "roles"], dict[str, str | list[str]]] = {"columns": dict(columns)}
    return profile.model_copy(update={"log": log | ({"roles": roles} if roles else {})})


def make_learn_task(
    beginning: RunBeginning,
    logs: Logs,
    profile: DomainProfile,
    settings: LearnSettings,
    elsewhere: tuple[StarterRecord, RubricSet] | None,
    model: ModelOptions,
) -> LearnTask:
    """Return what is to be learned of a log, once its thumbs are known.

    Args:
        elsewhere: A set that was learned elsewhere: two labels of each class are enough with it.

    Raises:
        BadLabels: One class is missing or too small, or others rated too little.
    """
    rubrics = beginning.rubrics
    if elsewhere is not None:
        settings = replace(settings, minimum=min(settings.minimum, FEWEST_THUMBS_WITH_STARTER))

    # too few thumbs to choose by, and neither rubrics, a model nor a starter: only hints are left
    thumbs = ThumbCounts.of(logs)
    hints: tuple[Rubric, ...] = ()
    if thumbs.few and not (rubrics or model.name or elsewhere):
        hints = write_rubrics_of_frequent_deeds([c for c in logs if c.turns])
    if hints:  # no rubric can be chosen: what is there is fitted, and nothing is said of it
        rubrics = hints
        settings = replace(settings, minimum=FEWEST_THUMBS_WITH_STARTER)

    require_enough_labels(logs, settings.minimum)
    # how much is held out depends on the smaller class
    settings = replace(settings, test_fraction=choose_held_out_share(settings, logs))
    if settings.others_rated:
        require_learnable_rated_questions(logs, settings.others_rated)

    learning = LearningInput(
        logs=logs,
        profile=profile,
        settings=settings,
        rubrics=rubrics,
        fork=beginning.fork,
        review=beginning.review,
    )
    return LearnTask(learning, beginning.adapt, thumbs if hints else None)


def choose_held_out_share(settings: LearnSettings, logs: Logs) -> float:
    """Return the share of labels that is held out: as set, else as few or many labels ask for."""
    # a split needs enough of the smaller class
    smaller = min(logs.counts[Label.POSITIVE], logs.counts[Label.NEGATIVE])
    return resolve_test_fraction(settings.test_fraction, smaller=smaller)


def report_log(
    logs: Logs, model: ModelOptions, progress: Progress, *, adapts_blindly: bool
) -> None:
    """Tell what is to be known of a log before it is learned from.

    Args:
        adapts_blindly: Whether rubrics are adapted to a domain that nothing is told of.
    """
    if adapts_blindly:
        progress.note(
            "Note: no domain profile is given: rubrics are adapted to any assistant; --domain names yours"
        )

    if note := describe_use_of_label_grades(logs):
        progress.note(f"Note: {note}")

    if model.name and (note := describe_cut_sources(logs, model.settings.sources)):
        progress.note(note)

    report_repeats(logs, progress)


def choose_pool_editor(
    pool: Path | None, people: PoolReviewer | None, run: RunOptions
) -> PoolReviewer | None:
    """Return who edits the pool: a file that they edited, where a run is resumed, else those who are here."""
    if pool and pool.exists() and run.resume and (edited := read_pool_file(pool)):
        return lambda _pool: edited
    return people


@contextmanager
def write_pool_while_waiting(pool: Path | None) -> Iterator[None]:
    """Write the pool to a file for people where a run waits for them, and have the error say where."""
    try:
        yield
    except PoolAwaitsReview as waits:
        if pool:
            write_pool_file(pool, waits.run, waits.pool)
            waits.where = str(pool)
            waits.hint = "edit the file, or the pool in `pollex serve`"

        raise


async def learn_in_run(
    opened: Workspace,
    task: LearnTask,
    model: ModelOptions,
    arguments: dict[str, Any],
) -> tuple[Learned, ModelUsage | None]:
    """Have agents learn a set in a run; return it, and what a model was asked for it."""
    learning = task.learning
    settings = learning.settings
    async with await build_run_roles(model, learning.profile, opened.store, settings.seed) as staff:
        # built-in rubrics join a pool that a model makes; SPUR has none, and given ones are final
        if not learning.rubrics and settings.method != "spur":
            built_in = build_embedded_roles(
                learning.profile, staff.embedder, settings.seed, model.settings.alike
            )
            staff = staff.beside_built_in(built_in, model.settings.without)

        opened.announce(staff)
        changes: Sequence[AdaptedRubric] = ()
        if task.adapt:
            learning, changes = await _adapt_rubrics(opened, learning, staff, model)
        # how each rubric of a person will be judged; events say that themselves
        rubrics_without_event = []
        for rubric in learning.rubrics:
            if not rubric.source.startswith("event:"):
                rubrics_without_event.append(rubric)
        for line in describe_judging(rubrics_without_event, staff):
            opened.progress.note(line)

        run = prepare_learning(learning, staff, opened.setting(arguments, staff))
        learned = await run.carry_out()
        return _note_changes(learned, changes, opened), ModelUsage.of(staff)


async def _adapt_rubrics(
    opened: Workspace,
    learning: LearningInput,
    staff: RunRoles,
    model: ModelOptions,
) -> tuple[LearningInput, list[AdaptedRubric]]:
    """Return what is learned with its rubrics in the terms of the domain, and what became of each.

    Raises:
        BadRubrics: The model left out all of them.
    """
    # only a model adapts rubrics
    assert staff.gateway is not None
    assert staff.capabilities is not None
    settings = model.settings.but(seed=learning.settings.seed)
    asker = PromptAsker(
        staff.gateway,
        staff.capabilities,
        learning.profile,
        settings,
        opened.store.secret,
    )
    adapted, changes = await adapt_rubrics_to_domain(asker, learning.rubrics)
    if not adapted:
        what = "the model left out all rubrics as not applicable to the domain"
        raise BadRubrics(
            what,
            hint="say in the domain profile what its conversations are about",
        )

    return replace(learning, rubrics=adapted), changes


def _note_changes(
    learned: Learned,
    changes: Sequence[AdaptedRubric],
    opened: Workspace,
) -> Learned:
    """Return a learned set that tells what became of the rubrics that it was adapted from."""
    if not changes:
        return learned

    counts = Counter(change.does for change in changes)
    changes_text = ", ".join(f"{counts[does]} {does}" for does in ("kept", "reworded", "left out"))
    note = f"A model adapted {format_count(len(changes), 'rubric')} to the domain: {changes_text}."
    notes = (*learned.rubric_set.notes, note)
    rubric_set = learned.rubric_set.model_copy(update={"adapted": tuple(changes), "notes": notes})
    # the set has changed since the run stored it
    opened.store.keep(list(make_rubric_set_rows(learned.run, rubric_set)))

    return replace(learned, rubric_set=rubric_set)


def describe_judging(rubrics: Sequence[Rubric], staff: RunRoles) -> Iterator[str]:
    """Yield how each rubric that a person wrote will be judged."""
    for rubric in rubrics:
        by = describe_basis_of_judgment(
            staff.roles.judge.understood(rubric),
            model=not staff.record.built_in and not rubric.answered_by,
        )
        yield f"“{rubric.text}” is judged by {JUDGED_BY_IN_WORDS[by]}"


def finish_set(learned: Learned, task: LearnTask, store: Store) -> Learned:
    """Return a learned set with what its starter adds; hints lose the figures that few thumbs seem to give."""
    learning = task.learning
    learned = add_starter_to_set(learned, learning.starter, learning.logs, store)
    if task.few is not None:
        learned = strip_figures(learned, task.few)
        # the run has stored the set with figures: hints replace it
        store.keep(list(make_rubric_set_rows(learned.run, learned.rubric_set)))

    return learned


def describe_few_thumbs(
    task: LearnTask,
    log_names: Sequence[str],
    out: Path | None,
    reading: ReadOptions,
) -> FewThumbsAdvice:
    """Return what is told in place of figures; write what to label next, where `out` names a place."""
    assert task.few is not None, "with enough thumbs figures are told"
    learning = task.learning
    queue = None
    if out:
        queue = write_queue(learning.logs, learning.rubrics, out, reading, learning.settings.seed)

    return FewThumbsAdvice(task.few, tuple(log_names), queue)
