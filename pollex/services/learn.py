"""What `pollex learn` and `pollex refit` do around their graphs: read, run, write, tell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from pollex.cli.old_session import Session, session
from pollex.cli.options import refuse_for, refuse_without_model
from pollex.cli.output import (
    logs_from,
    print_plan,
    show_figures,
    show_logs,
    show_probabilities,
    show_rubrics,
    show_usage,
    told,
    usage_json,
)
from pollex.cli.session import print_json
from pollex.conversations.conversation import Label
from pollex.conversations.logs import Logs
from pollex.conversations.splits import check_learnable
from pollex.errors import WrongUse
from pollex.formats.fields import ReadOptions
from pollex.formats.peers.rubrics_in import rubrics_of
from pollex.formats.write import Source, draft_of, require_apart, require_writable
from pollex.graphs.learn.results import Learned
from pollex.graphs.learn.run import learn, refit
from pollex.graphs.learn.state import LearnSettings
from pollex.prompts.domain import DomainProfile, profile_at
from pollex.reports.learning import learning_page
from pollex.reports.learning_data import MeanAnswer, Skipped
from pollex.reports.page import file_of
from pollex.rubrics.guarantee import in_words
from pollex.rubrics.rubric import Rubric
from pollex.rubrics.rubric_set import RubricSet
from pollex.selection.policies import DEFAULT
from pollex.services.logs import not_scorable
from pollex.services.options import ModelOptions, RunOptions
from pollex.services.plan import plan_learning, plan_refit
from pollex.services.results import calibrator_json as probabilities_json
from pollex.services.results import figures_json
from pollex.services.roles import Workers, judging, workers

REPORT = "report.html"
DONE, PARTLY = 0, 3


def learn_command(
    sources: Sequence[str],
    out: Path,
    reading: ReadOptions,
    run: RunOptions,
    model: ModelOptions,
    *,
    domain: Path | None = None,
    test_fraction: float = 0.5,
    budget: int = 10,
    method: Literal["rubicon", "spur"] = "rubicon",
    rubrics_from: str | None = None,
    policy: str = DEFAULT,
    alpha: float | None = None,
    seed: int = 0,
) -> int:
    """Reads logs, learns, writes rubric set and report, tells; the exit code."""
    refuse_without_model(model)
    require_places(out, domain, rubrics_from, *sources)
    profile = profile_at(domain)
    settings = LearnSettings(
        test_fraction=test_fraction, budget=(budget, budget), method=method, policy=policy, alpha=alpha, seed=seed
    )
    given = given_rubrics(rubrics_from, method, model)
    logs = logs_from(sources, reading)
    check_learnable(logs, settings.minimum)
    if run.dry_run:
        return print_plan(plan_learning(logs, settings, profile, run, model, given), run)
    with session(run) as opened:
        show_logs(opened, logs)
        arguments = {"logs": list(sources), "out": str(out), "model": model.model}
        learned, staff = opened.run(_learn(opened, logs, model, profile, settings, arguments, given))
        return told_and_written(opened, logs, learned, staff, out)


def require_places(out: Path, *read: Source) -> None:
    """Refuses places of rubric set and report of which one is the other's, or that of something that is read.

    Raises:
        WrongUse: Says which.
    """
    require_writable(out, *read)
    report = report_of(out)
    require_apart(out, report)
    require_writable(report, *read)


def report_of(out: Path) -> Path:
    """Where a rubric set's report is written: beside it, under a name of its own where another set's has the usual."""
    usual = out.with_name(REPORT)
    owner = file_of(usual)
    if owner in (None, out.name) or not (out.parent / owner).is_file():
        return usual
    return out.with_name(f"{out.stem}-{REPORT}")


async def _learn(
    opened: Session,
    logs: Logs,
    model: ModelOptions,
    profile: DomainProfile,
    settings: LearnSettings,
    arguments: dict[str, Any],
    given: Sequence[Rubric],
) -> tuple[Learned, Workers]:
    async with workers(model, profile, opened.store, settings.seed) as staff:
        opened.meet(staff)
        learned = await learn(
            logs,
            roles=staff.for_method(settings.method),
            judge_record=staff.record,
            profile=profile,
            settings=settings,
            setting=opened.setting(arguments, staff),
            prompts=staff.prompts,
            rubrics=given,
        )
        return learned, staff


def given_rubrics(source: str | None, method: str, model: ModelOptions) -> tuple[Rubric, ...]:
    """The rubrics that the user wrote; none where they are to be learnt.

    Raises:
        WrongUse: The rubrics are to be learnt as well, or by a method that needs a model without one.
        BadRubrics: The file is wrong.
    """
    if method == "spur" and source:
        raise WrongUse("rubrics that are given are not learnt", remedy="drop --method, or --rubrics-from")
    if method == "spur" and model.model is None:
        raise WrongUse("SPUR rewrites rubrics, and that takes a model", remedy="name one: --model")
    return rubrics_of(source) if source else ()


def refit_command(
    sources: Sequence[str],
    rubrics: Path,
    out: Path | None,
    reading: ReadOptions,
    run: RunOptions,
    model: ModelOptions,
    *,
    test_fraction: float | None = None,
    seed: int | None = None,
) -> int:
    """Reads logs and a rubric set, fits it again, writes it and its report, tells; the exit code.

    The split is the one that the set was learnt with, unless told otherwise: another one would hold out conversations
    that the rubrics came from. The scale is the set's, too, whoever judges.
    """
    rubric_set = RubricSet.load(rubrics, arrays=False)  # a new calibrator is fitted
    if model.model is None:
        refuse_for(rubric_set.judge)
    model = replace(model, scale=rubric_set.judge.scale)
    require_places(out or rubrics, *sources)
    logs = logs_from(sources, reading)
    settings = LearnSettings(
        test_fraction=rubric_set.data.test_fraction if test_fraction is None else test_fraction,
        seed=rubric_set.data.seed if seed is None else seed,
    )
    check_learnable(logs, settings.minimum)
    if run.dry_run:
        return print_plan(plan_refit(logs, rubric_set, run, model, settings.seed), run)
    with session(run) as opened:
        show_logs(opened, logs)
        arguments = {"logs": list(sources), "rubrics": str(rubrics), "model": model.model}
        learned, staff = opened.run(_refit(opened, logs, model, rubric_set, settings, arguments))
        return told_and_written(opened, logs, learned, staff, out or rubrics)


async def _refit(
    opened: Session,
    logs: Logs,
    model: ModelOptions,
    rubric_set: RubricSet,
    settings: LearnSettings,
    arguments: dict[str, Any],
) -> tuple[Learned, Workers]:
    """With the model that the user names, else with the judge that the set has."""
    if model.model is None:
        hired = judging(model, rubric_set, opened.store)
    else:
        hired = workers(model, rubric_set.domain, opened.store, settings.seed)
    async with hired as staff:
        opened.meet(staff)
        learned = await refit(
            logs,
            rubric_set.model_copy(update={"judge": staff.record}),
            roles=staff.roles,
            settings=settings,
            setting=opened.setting(arguments, staff),
        )
        return learned, staff


def told_and_written(opened: Session, logs: Logs, learned: Learned, staff: Workers, out: Path) -> int:
    """Writes the rubric set and the report, and says what came of it."""
    rubrics = learned.rubric_set
    left_out = skipped(logs, learned)
    rubrics.save(out)
    means = {id_: MeanAnswer(*mean) for id_, mean in learned.means.items()}
    page = learning_page(rubrics, learned.scores, left_out, means=means, path=str(out), store=str(opened.options.store))
    report = report_of(out)
    with draft_of(report) as draft:
        draft.write_text(page, encoding="utf-8")
    show_rubrics(opened, rubrics)
    show_figures(opened, {"held out": rubrics.held_out, "training": rubrics.training})
    if rubrics.guaranteed:
        opened.say(f"Window with a guarantee: {in_words(rubrics.guaranteed)}")
    for baseline in rubrics.baselines:
        if baseline.held_out and baseline.advantage:
            auc, ahead = told(baseline.held_out.auc), told(baseline.advantage)
            opened.say(f"Baseline {baseline.name}: held-out AUC {auc}; the rubrics' AUC less that: {ahead}")
    show_probabilities(opened, rubrics)
    for note in rubrics.notes:
        opened.say(f"Note: {note}", style="yellow")
    show_usage(opened, staff)
    opened.say(f"Wrote {out} and {report} ({', '.join(sorted(set(rubrics.roles.values())))}; run {learned.run})")
    failed = learned.unextracted or any(score.netsat is None for score in learned.scores)
    if opened.options.as_json:
        print_json(learned_json(learned, out, report, left_out) | usage_json(staff))
    return PARTLY if failed or logs.bad_rows or not_scorable(logs) else DONE


def learned_json(learned: Learned, out: Path, report: Path, left_out: Sequence[Skipped]) -> dict[str, Any]:
    """The outcome for scripts."""
    rubrics = learned.rubric_set
    return {
        "run": learned.run,
        "rubrics": str(out),
        "report": str(report),
        "roles": rubrics.roles,
        "sat": sum(r.polarity == "sat" for r in rubrics.rubrics),
        "dsat": sum(r.polarity == "dsat" for r in rubrics.rubrics),
        "theta": rubrics.theta,
        "window": [rubrics.window.lower, rubrics.window.upper],
        "guaranteed_window": rubrics.guaranteed and rubrics.guaranteed.model_dump(),
        "policy": rubrics.policy,
        "alpha": rubrics.alpha,
        "training": figures_json(rubrics.training),
        "held_out": figures_json(rubrics.held_out) or None,
        "probabilities": probabilities_json(rubrics),
        "notes": list(rubrics.notes),
        "skipped": [{"where": s.where, "reason": s.reason} for s in left_out],
    }


def skipped(logs: Logs, learned: Learned) -> list[Skipped]:
    """Everything that was read and not learnt from, with its reason."""
    rows = [Skipped(f"{row.source}:{row.line}", row.reason, row.remedy) for row in logs.bad_rows]
    odd = [Skipped(id_, f"can't be judged: {reason}") for id_, reason in not_scorable(logs)]
    unlabelled = [Skipped(c.id, "no label: kept for scoring") for c in logs if c.label is Label.NONE]
    silent = [
        Skipped(id_, f"no reasons: {found.outcome}: {found.detail}") for id_, found in learned.unextracted.items()
    ]
    failed = [Skipped(s.conversation_id, f"unanswered: {s.outcome}") for s in learned.scores if s.netsat is None]
    return [*rows, *odd, *silent, *failed, *unlabelled]
