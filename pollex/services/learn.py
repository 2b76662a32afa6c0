"""Learn a rubric set from labeled conversations, or fit an edited one again."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from pollex.agents.embedded.evidence import say_judged_by
from pollex.agents.embedded.there import write_rubrics_of_deeds
from pollex.agents.llm.adapting import adapt_rubrics
from pollex.agents.llm.asker import Asker
from pollex.agents.llm.evidence import note_cut_sources
from pollex.conversations.conversation import Label
from pollex.conversations.logs import Logs
from pollex.conversations.splits import check_learnable
from pollex.errors import BadRubrics, WrongUse
from pollex.formats.fields import ReadOptions
from pollex.formats.peers.rubrics_in import rubrics_of
from pollex.graphs.context import Progress
from pollex.prompts.domain import DomainProfile, load_profile
from pollex.rubrics.learning.material import Starter
from pollex.rubrics.learning.results import Learned
from pollex.rubrics.learning.settings import HALF_HELD_OUT, LearnSettings, resolve_held_out_share
from pollex.rubrics.learning.thumbs import describe_grades, require_grades
from pollex.rubrics.records import AdaptedRubric
from pollex.rubrics.rubric import Rubric
from pollex.rubrics.rubric_set import RubricSet
from pollex.rubrics.worth import JUDGED_BY_IN_WORDS
from pollex.runs.learn_runs import Learning
from pollex.runs.learn_runs import learn as run_learning
from pollex.runs.learn_runs import refit as run_refit
from pollex.runs.options import ModelOptions, RunOptions
from pollex.runs.pool_review import (
    POOL_FILE_ENDING,
    Fork,
    People,
    PoolWaits,
    read_pool,
    rows_of,
    write_pool,
)
from pollex.runs.roles import RunRoles, embedded_roles, hire, hire_judge
from pollex.runs.usage import ModelUsage
from pollex.runs.workspace import Workspace, workspace
from pollex.services.dry_run import Planned, plan_learning, plan_scoring
from pollex.services.few_thumbs import FewThumbs, Thumbs, strip_figures, write_queue
from pollex.services.learn_result import (
    LearnResult,
    learned_result,
    require_not_edited,
    require_places,
)
from pollex.services.logs import Sources, files_of, labeled_logs, names_of, say_repeats
from pollex.services.named_sets import read_set
from pollex.services.starter import FEWEST, read_starter_answers, starter_of, with_starter
from pollex.store.rubric_sets import rubric_set_rows
from pollex.text import count


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
    people: People | None = None,
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
    named, _, node = (start or "").partition(":")
    # a fork is a run and a node; a run alone makes sense for a resume only
    if named and not node and not run.resume:
        raise WrongUse(
            f"{start!r} names no node",
            hint="give a run and a node, learn-3:deduplicate",
            option="from",
        )

    pool = _pool_file(rubrics_from, out, run, review=review and not node)
    # a reviewed file is the pool itself; any other file has rubrics to fit
    rubrics_given = () if pool else read_given_rubrics(rubrics_from, settings, model)
    if adapt:
        require_adaptable(rubrics_given, model)

    # beside a node the rubrics are the pool from there on, and no rubrics to fit
    fork = None
    if named:
        fork = Fork(named, node, rows_of(rubrics_given) if node else ())
    if node:
        rubrics_given = ()
    if out is not None:
        # before the long work: no input and no edited set may be replaced
        require_places(out, *files_of(domain, rubrics_from, logs))
        require_not_edited(out)

    # with a starter two labels of each class are enough
    elsewhere = None
    if starter is not None:
        elsewhere = starter_of(starter, run.store, model)
    if elsewhere is not None:
        settings = replace(settings, minimum=min(settings.minimum, FEWEST))

    profile = keep_reading_in_profile(
        domain if isinstance(domain, DomainProfile) else load_profile(domain),
        reading,
    )
    read = labeled_logs(logs, reading, run.store, progress)
    thumbs = Thumbs.of(read)
    # too few thumbs to choose by, and neither rubrics, a model nor a starter: only hints are left
    hints = (
        ()
        if rubrics_given or model.name or elsewhere or not thumbs.few
        else write_rubrics_of_deeds([c for c in read if c.turns])
    )
    if hints:  # no rubric can be chosen: what is there is fitted, and nothing is said of it
        rubrics_given = hints
        settings = replace(settings, minimum=FEWEST)

    check_learnable(read, settings.minimum)
    # how much is held out depends on the smaller class
    settings = replace(settings, test_fraction=choose_held_out_share(settings, read))
    if settings.others_rated:
        require_grades(read, settings.others_rated)

    if adapt and domain is None:
        progress.note(
            "Note: no domain profile is given: rubrics are adapted to any assistant; --domain names yours"
        )

    if note := describe_grades(read):
        progress.note(f"Note: {note}")

    if model.name and (note := note_cut_sources(read, model.settings.sources)):
        progress.note(note)

    say_repeats(read, progress)
    if run.dry_run:
        raise Planned(
            plan_learning(
                read,
                settings,
                profile,
                run,
                model,
                rubrics_given,
                adapt=adapt,
            )
        )

    # the starter's answers come first: the model of the probability takes both
    helper = elsewhere and read_starter_answers(
        *elsewhere, read, run=run, model=model, progress=progress
    )
    with workspace(run, progress, read) as opened:
        arguments = {
            "logs": names_of(logs),
            "out": out and str(out),
            "model": model.name,
        }
        # a resumed run takes the edited file as the answer of people
        if pool and pool.exists() and run.resume:
            edited = read_pool(pool)
        else:
            edited = None

        more: dict[str, Any] = {
            "fork": fork,
            "review": review,
            "people": (lambda _pool: edited) if edited else people,
        }
        learning = Learning(
            logs=read,
            profile=profile,
            settings=settings,
            rubrics=rubrics_given,
            starter=helper,
            **more,
        )
        try:
            learned, usage = opened.run(
                _learn(
                    opened,
                    learning,
                    model,
                    arguments,
                    adapt=adapt,
                )
            )
        # the pool goes to a file for people, and the error says where
        except PoolWaits as waits:
            if pool:
                write_pool(pool, waits.run, waits.pool)
                waits.where = str(pool)
                waits.hint = "edit the file, or the pool in `pollex serve`"

            raise

        # what the starter adds to the set; hints lose what few thumbs seem to say
        learned = with_starter(learned, helper, read, opened.store)
        if hints:
            learned = strip_figures(learned, thumbs)
            # the run has stored the set with figures: hints replace it
            opened.store.keep(list(rubric_set_rows(learned.run, learned.rubric_set)))

    queue = None
    if hints and out:
        queue = write_queue(read, hints, out, reading, settings.seed)

    few = None
    if hints:
        few = FewThumbs(thumbs, tuple(names_of(logs)), queue)

    return learned_result(read, learned, usage, out, run, few)


def keep_reading_in_profile(profile: DomainProfile, reading: ReadOptions) -> DomainProfile:
    """Return a profile that keeps how the log was read, so that the set finds it again for a log of the same fields."""
    if not reading.columns and not reading.roles:
        return profile

    roles: dict[str, str | list[str]] = {}
    for role, name in reading.roles:
        role_names = roles.get(role, [])
        # several names may have the same role
        roles[role] = [*([role_names] if isinstance(role_names, str) else role_names), name]

    log: dict[Literal["columns", "roles"], dict[str, str | list[str]]] = {
        "columns": dict(reading.columns)
    }
    return profile.model_copy(update={"log": log | ({"roles": roles} if roles else {})})


def _pool_file(
    rubrics_from: str | Path | None,
    out: Path | None,
    run: RunOptions,
    *,
    review: bool,
) -> Path | None:
    """Return the file that people edit the pool in; None where it isn't theirs to edit.

    Raises:
        WrongUse: Rubrics are given for a run that has no pool yet.
    """
    if not review:
        return None
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
    return out and out.with_suffix(POOL_FILE_ENDING)


async def _learn(
    opened: Workspace,
    learning: Learning,
    model: ModelOptions,
    arguments: dict[str, Any],
    *,
    adapt: bool = False,
) -> tuple[Learned, ModelUsage | None]:
    profile = learning.profile
    seed = learning.settings.seed
    async with await hire(model, profile, opened.store, seed) as staff:
        # built-in rubrics join a pool that a model makes; SPUR has none, and given ones are final
        if not learning.rubrics and learning.settings.method != "spur":
            built_in = embedded_roles(
                profile,
                staff.embedder,
                seed,
                model.settings.alike,
            )
            staff = staff.beside_built_in(built_in, model.settings.without)

        opened.announce(staff)
        changes: Sequence[AdaptedRubric] = ()
        if adapt:
            learning, changes = await _adapt_rubrics(opened, learning, staff, model)
        # how each rubric of a person will be judged; events say that themselves
        for line in describe_judging(
            [rubric for rubric in learning.rubrics if not rubric.source.startswith("event:")], staff
        ):
            opened.progress.note(line)

        learned = await run_learning(
            learning,
            staff,
            opened.setting(arguments, staff),
        )
        return _note_changes(learned, changes, opened), ModelUsage.of(staff)


async def _adapt_rubrics(
    opened: Workspace,
    learning: Learning,
    staff: RunRoles,
    model: ModelOptions,
) -> tuple[Learning, list[AdaptedRubric]]:
    """Return what is learned with its rubrics in the terms of the domain, and what became of each.

    Raises:
        BadRubrics: The model left out all of them.
    """
    # only a model adapts rubrics
    assert staff.gateway is not None
    assert staff.capabilities is not None
    settings = model.settings.but(seed=learning.settings.seed)
    asker = Asker(
        staff.gateway,
        staff.capabilities,
        learning.profile,
        settings,
        opened.store.secret,
    )
    adapted, changes = await adapt_rubrics(asker, learning.rubrics)
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
    note = f"A model adapted {count(len(changes), 'rubric')} to the domain: {changes_text}."
    notes = (*learned.rubric_set.notes, note)
    rubric_set = learned.rubric_set.model_copy(update={"adapted": tuple(changes), "notes": notes})
    # the set has changed since the run stored it
    opened.store.keep(list(rubric_set_rows(learned.run, rubric_set)))

    return replace(learned, rubric_set=rubric_set)


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
    """
    if out is not None:
        require_places(out, *files_of(logs))

    # Arrays are left alone: a new calibrator is fitted.
    rubric_set = read_set(rubrics, run.store, arrays=False)
    read = labeled_logs(logs, reading, run.store, progress)
    if test_fraction is None:
        # half of new conversations is held out, if all labels taught the set and none of these did
        new = all(c.text_hash[:16] not in rubric_set.learned_from for c in read.learnable)
        if rubric_set.data.folds and new:
            test_fraction = HALF_HELD_OUT
        else:
            test_fraction = rubric_set.data.test_fraction

    settings = LearnSettings(
        test_fraction=test_fraction,
        seed=rubric_set.data.seed if seed is None else seed,
        minimum=FEWEST if rubric_set.starter else LearnSettings.minimum,
        probability=probability or LearnSettings.probability,
    )
    check_learnable(read, settings.minimum)
    say_repeats(read, progress)
    # answers on another scale would have other meanings
    model = replace(model, settings=model.settings.but(scale=rubric_set.judge.scale))
    if run.dry_run:
        # of the set's own judge many answers may be known; another judge has to give all
        if model.name is None:
            raise Planned(plan_scoring(read.learnable, rubric_set, run, model))
        raise Planned(
            plan_learning(
                read,
                settings,
                rubric_set.domain,
                run,
                model,
                rubric_set.rubrics,
            )
        )

    helper = read_starter_answers(
        rubric_set.starter,
        rubric_set,
        read,
        run=run,
        model=model,
        progress=progress,
    )
    with workspace(run, progress, read) as opened:
        arguments = {
            "logs": names_of(logs),
            "rubrics": names_of(rubrics)[0],
            "model": model.name,
        }
        learned, usage = opened.run(
            _refit(
                opened,
                read,
                model,
                rubric_set,
                settings,
                arguments,
                helper,
            )
        )
        learned = with_starter(learned, helper, read, opened.store)

    return learned_result(read, learned, usage, out, run)


async def _refit(
    opened: Workspace,
    logs: Logs,
    model: ModelOptions,
    rubric_set: RubricSet,
    settings: LearnSettings,
    arguments: dict[str, Any],
    starter: Starter | None,
) -> tuple[Learned, ModelUsage | None]:
    # without a model named, the judge that the set has
    if model.name is None:
        hired = await hire_judge(
            model,
            rubric_set,
            opened.store,
            conversations=logs.learnable,
        )
    else:
        hired = await hire(model, rubric_set.domain, opened.store, settings.seed)

    async with hired as staff:
        if model.name is not None:
            # another model leaves to local judges what they judged before
            staff = staff.leaving(rubric_set.rubrics, {})
        opened.announce(staff)
        # rubrics that θ was never fitted for
        for line in describe_judging(
            [rubric for rubric in rubric_set.rubrics if not rubric.written], staff
        ):
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


def choose_held_out_share(settings: LearnSettings, logs: Logs) -> float:
    """Return the share of labels that is held out: as set, else as few or many labels ask for."""
    # a split needs enough of the smaller class
    smaller = min(logs.counts[Label.POSITIVE], logs.counts[Label.NEGATIVE])
    return resolve_held_out_share(settings.test_fraction, smaller=smaller)


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

    return rubrics_of(source) if source else ()


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


def describe_judging(rubrics: Sequence[Rubric], staff: RunRoles) -> Iterator[str]:
    """Yield how each rubric that a person wrote will be judged."""
    for rubric in rubrics:
        by = say_judged_by(
            staff.roles.judge.understood(rubric),
            model=not staff.record.built_in and not rubric.answered_by,
        )
        yield f"“{rubric.text}” is judged by {JUDGED_BY_IN_WORDS[by]}"
