"""`--dry-run`: what a run would ask and what it would cost, told without one call."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, replace

from pollex.agents.mixed import mix_roles
from pollex.conversations.conversation import Conversation
from pollex.errors import PollexError
from pollex.gateway.budget import UsageTable
from pollex.prompts.domain import DomainProfile
from pollex.rubrics.rubric import ANSWERED_BY_BUILT_IN_JUDGE
from pollex.rubrics.rubric_set import RubricSet
from pollex.runs.earlier_runs import EarlierPool, find_pool_of_earlier_run
from pollex.runs.known_answers import (
    are_all_answers_known,
    list_questions_of_model,
    make_judge_of_known_answers,
)
from pollex.runs.learn_runs import LearningInput, make_learning_fingerprint
from pollex.runs.options import ModelOptions, RunOptions
from pollex.runs.plan import WORDS_FOR_UPPER_BOUND_OF_CALLS, PlannedRun
from pollex.runs.roles import (
    build_embedded_roles,
    build_llm_roles,
    confirm_embedding_model,
    get_judge_seed,
    make_embedder,
    restore_model_options,
)
from pollex.runs.usage import ModelUsage
from pollex.services.results import Result
from pollex.store.store import Store
from pollex.text import TerminalLines


@dataclass(frozen=True)
class CallPlan(Result):
    """The calls of a planned run, and their cost.

    Attributes:
        models: Names and planned calls of the models; empty for the built-in roles.
        notes: Notes on the figures.
        likely: What of it is likely, where the plan itself is an upper bound; None where it is
            exact.
    """

    models: tuple[tuple[str, ModelUsage], ...]
    notes: tuple[str, ...]
    likely: ModelUsage | None = None

    def told(self, **_asked: object) -> TerminalLines:
        """Yield what would be asked, and what to know of the figures."""
        for name, usage in self.models:
            if len(self.models) > 1:
                yield f"{name}:"
            yield from usage.told()

        if self.likely is not None:
            yield f"Likely: {self.likely.planned}"
        yield from self.notes

    def as_json(self) -> dict[str, object]:
        tables = {name: usage.by_stage() for name, usage in self.models}
        # the first model's plan, then those of the panel by name
        first, *others = tables.values() if tables else [{}]
        if others:
            panel = {"panel": dict(list(tables.items())[1:])}
        else:
            panel = {}

        costs = {"costs": self.costs} if self.costs else {}
        if self.likely is None:
            likely = {}
        else:
            likely = {"likely": self.likely.by_stage()}

        return {"dry_run": True, "notes": list(self.notes), "plan": first} | likely | costs | panel

    @property
    def costs(self) -> dict[str, float]:
        """Return the cost of all models that have a price, asked at once and by batch; empty without prices."""
        return compute_costs([usage for _, usage in self.models])


class DryRunEnded(Exception):
    """The end of a dry run, where the first call would have been made."""

    def __init__(self, plan: CallPlan) -> None:
        super().__init__("nothing was asked")
        self.plan = plan


def compute_costs(planned: Sequence[ModelUsage]) -> dict[str, float]:
    """Return the cost at once and by batch, each model's at its price; empty where none has one."""
    # each stage with the price of its model, as models cost differently
    rows = []
    for model in planned:
        if model.price:
            for row in model.table.stages.values():
                rows.append((row, model.price))

    if not rows:
        return {}

    at_once = sum(price.cost(row.prompt, row.completion) for row, price in rows)
    # a discount is for calls that can wait, as they don't need each other's replies
    saved = 0.0
    for row, price in rows:
        if row.apart:
            saved += price.discount * price.cost(row.prompt, row.completion)
    return {"at_once": at_once, "by_batch": at_once - saved}


def plan_scoring_calls(
    conversations: Sequence[Conversation],
    rubrics: RubricSet,
    run: RunOptions,
    model: ModelOptions,
) -> CallPlan:
    """Plan what `score` and `evaluate` would ask, or `refit` with the set's own judge."""
    if rubrics.judge.built_in:
        confirm_embedding_model(model, rubrics.judge)  # refuses what the run would refuse
        return NO_CALLS_PLAN
    if not model.again and (known_count := _count_if_all_known(conversations, rubrics, run)):
        usage = ModelUsage(
            UsageTable(),
            model.limits.price,
            known_answers=known_count,
        )
        return CallPlan(((rubrics.judge.name, usage),), (NOTHING_LEFT_NOTE,))

    # the endpoint is taken to be able to do what it could when θ was fitted
    model = restore_model_options(model, rubrics.judge)
    able = rubrics.judge.options.capabilities
    plan = PlannedRun.of(model, rubrics.domain, run, get_judge_seed(rubrics.judge), able)
    table = asyncio.run(plan.fitting(conversations, rubrics.rubrics))

    return make_call_plan(
        model,
        table,
        able is not None,
        known_answers=plan.planner.known_answers,
    )


NOTHING_LEFT_NOTE = "Nothing is left to ask: all answers are in the store."


def _count_if_all_known(
    conversations: Sequence[Conversation],
    rubrics: RubricSet,
    run: RunOptions,
) -> int:
    """Return how many answers the set's model would give, if all of them are in the store; else 0."""
    try:
        with Store.open(run.store, read_only=True) as store:
            judge = make_judge_of_known_answers(rubrics, store)
            questions = list_questions_of_model(rubrics)
            if judge is None or not are_all_answers_known(judge, conversations, questions):
                return 0
            return len(questions) * sum(
                not conversation.not_scorable for conversation in conversations
            )
    except PollexError:  # there is no store yet
        return 0


def plan_learning_calls(
    learning: LearningInput,
    run: RunOptions,
    model: ModelOptions,
    *,
    adapt: bool = False,
) -> CallPlan:
    """Plan the calls of `learn`.

    Args:
        adapt: Whether rubrics that are fitted are put into the terms of the domain first.
    """
    if model.name is None:
        return NO_CALLS_PLAN

    logs = learning.logs
    rubrics = learning.rubrics
    plan = PlannedRun.of(model, learning.profile, run, learning.settings.seed)
    written = None
    # rubrics that exist are adapted or fitted; without them a set is learned
    if adapt:
        work = plan.adapting(logs.learnable, rubrics)
    elif rubrics:
        work = plan.fitting(logs.learnable, rubrics)
    else:
        written = _find_earlier_pool(plan, learning, run, model)
        work = plan.learning(logs, learning.settings, written)

    table = asyncio.run(work)
    planned = make_call_plan(
        model,
        table,
        plan.probed,
        known_answers=plan.planner.known_answers,
    )
    if written is not None:
        was_written = f"The pool is that of {written.run}: what wrote it is not asked again."
        planned = replace(planned, notes=(was_written, *planned.notes))

    # where all calls are counted one by one, no likely figures are needed beside them
    if not table.total.outcomes[WORDS_FOR_UPPER_BOUND_OF_CALLS]:
        return planned
    return replace(planned, likely=ModelUsage(plan.planner.likely, model.limits.price))


def _find_earlier_pool(
    plan: PlannedRun,
    learning: LearningInput,
    run: RunOptions,
    model: ModelOptions,
) -> EarlierPool | None:
    """Return the pool that an earlier run wrote from this log, by the same roles; None where there is none."""
    settings = learning.settings
    if model.again or settings.method == "spur":
        return None

    # the roles as a run would have them, for their fingerprints alone
    embedder = make_embedder(run.store, model.settings.embedding_model)
    roles = build_llm_roles(plan.asker, embedder)
    if ANSWERED_BY_BUILT_IN_JUDGE not in model.settings.without:
        alike = model.settings.alike
        built_in = build_embedded_roles(learning.profile, embedder, settings.seed, alike)
        roles = mix_roles(roles, built_in)

    fingerprint = make_learning_fingerprint(
        learning.logs,
        settings=settings,
        profile=learning.profile,
        roles=roles.fingerprints,
    )
    return find_pool_of_earlier_run(run, fingerprint, plan.planner.endpoint.shown)


def plan_dry_run(
    model: ModelOptions,
    run: RunOptions,
    seed: int,
    work: Callable[[PlannedRun], Coroutine[object, None, object]],
    profile: DomainProfile | None = None,
) -> DryRunEnded:
    """Return the end of a dry run: the calls that some work makes of a model that only counts them."""
    plan = PlannedRun.of(model, profile or DomainProfile.neutral(), run, seed)
    asyncio.run(work(plan))
    return DryRunEnded(make_call_plan(model, plan.planner.table, plan.probed))


def make_call_plan(
    model: ModelOptions,
    table: UsageTable,
    probed: bool,
    panel: Sequence[tuple[str, ModelUsage]] = (),
    known_answers: int = 0,
) -> CallPlan:
    """Return a plan with what to know of its figures.

    Args:
        known_answers: Answers of earlier runs, for which no call is made.
        panel: Names and plans of models that are asked beside the first.
    """
    assert model.name is not None, "the built-in roles ask nobody"
    models = (
        (model.name, ModelUsage(table, model.limits.price, known_answers=known_answers)),
        *panel,
    )
    notes = [
        "Nothing was asked. Tokens are estimates; a call is sent again where the endpoint fails."
    ]
    # upper bounds are explained only where the plan has some
    if any(usage.table.total.outcomes[WORDS_FOR_UPPER_BOUND_OF_CALLS] for _, usage in models):
        notes.append(
            "Stages with “at most” depend on answers: their true figures are lower, often several times."
        )

    if not probed:
        notes.append("The endpoint was taken to be able to do everything; `pollex doctor` asks it.")

    if not probed and model.settings.samples > 1:
        notes.append(
            f"Where it gives no log-probabilities, {model.settings.samples} samples judge so many times as often."
        )

    # the cost leaves out models without a price, which is said
    if costs := compute_costs([usage for _, usage in models]):
        cost_text = f"{costs['at_once']:.4g} at once, {costs['by_batch']:.4g} with --batch"
        unpriced_models = []
        for name, usage in models:
            if usage.price is None:
                unpriced_models.append(name)
        unpriced = ", ".join(unpriced_models)
        without = ""
        if unpriced:
            without = f", without that of {unpriced}, which has no price"
        notes.append(f"Cost: {cost_text}, where answers come within 24 hours{without}.")

    return CallPlan(models, tuple(notes))


NO_CALLS_PLAN = CallPlan((), ("Built-in (no LLM): no calls, no tokens, no cost.",))
