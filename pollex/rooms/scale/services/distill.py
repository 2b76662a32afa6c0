"""Teach a built-in judge to answer a set's rubrics from the answers of a model that were paid for already."""

from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path
from typing import Any, Literal

import numpy as np

from pollex.agents.distilled.judge import (
    DistilledJudge,
    JudgeWithoutModel,
    TeacherAnswer,
    TeacherAnswersByRubric,
)
from pollex.agents.embedded.embedder import Embedder
from pollex.conversations.conversation import Conversation
from pollex.conversations.logs import Logs
from pollex.conversations.splits import number_dependent_blocks, require_enough_labels
from pollex.errors import WrongUse
from pollex.formats.fields import ReadOptions
from pollex.graphs.context import Progress
from pollex.measures.arrays import Bools, Floats
from pollex.measures.classification import estimate_auc, estimate_auc_difference
from pollex.measures.correlations import make_pearson_statistic
from pollex.measures.intervals import (
    Figure,
    Measure,
    estimate_figures_on_same_resamples,
    make_weighted_mean_statistic,
)
from pollex.rubrics.answers import LIKERT_OPTIONS, Answer, Unanswered
from pollex.rubrics.judge_settings import MAX_RUBRICS_PER_MODEL_CALL, JudgeSettings
from pollex.rubrics.learning.results import Learned
from pollex.rubrics.learning.settings import LearnSettings
from pollex.rubrics.records import LLM_JUDGE_KIND, ChosenRubric, JudgeRecord
from pollex.rubrics.rubric import ANSWERED_BY_DISTILLED_JUDGE
from pollex.rubrics.rubric_set import RubricSet
from pollex.rubrics.score import Score, compute_answer_value
from pollex.rubrics.worth import compute_share_with_interval
from pollex.runs.learn_runs import refit_rubric_set as run_refit
from pollex.runs.options import ModelOptions, RunOptions
from pollex.runs.roles import (
    RunRoles,
    build_embedded_run_roles,
    get_embedding_model_name,
    make_embedder,
    restore_judge,
)
from pollex.runs.usage import ModelUsage, render_usage_by_stage
from pollex.runs.workspace import Workspace, open_workspace
from pollex.services.learn_result import require_distinct_paths
from pollex.services.logs import (
    Sources,
    list_file_names,
    list_source_names,
    logs_from,
    report_repeats,
)
from pollex.services.named_sets import require_not_edited
from pollex.services.results import TabularResult
from pollex.services.score import read_unedited
from pollex.store.resume import list_stored_runs
from pollex.store.rows import read_answer_row
from pollex.store.store import Store
from pollex.text import JsonDict, TerminalLines, TerminalTable, format_count

CASCADE_SHARES = (0.0, 0.1, 0.2, 0.3, 0.5, 1.0)
HardRubrics = Literal["drop", "model"]


@dataclass(frozen=True)
class RubricFidelity:
    """How well a rubric's answers are foretold for conversations that they were not learned from.

    Attributes:
        correlation: Pearson's, of distilled values and the model's.
        by: Who answers the rubric now; `dropped` where nobody does.
    """

    id: str
    text: str
    correlation: Figure
    by: Literal["distilled", "model", "dropped"]


@dataclass(frozen=True)
class CascadeRow:
    """What asking the model about the most doubtful conversations buys.

    Attributes:
        asked: Share of conversations that the model is asked about.
        right: Share of decisions that are right.
    """

    asked: float
    right: Figure


async def measure_fidelity(
    judged: Sequence[Conversation],
    rubrics: Sequence[ChosenRubric],
    lessons: TeacherAnswersByRubric,
    embedder: Embedder,
    hard: HardRubrics,
    least: float,
) -> tuple[RubricFidelity, ...]:
    """Cross-fit each rubric over conversations, and correlate what is foretold with what the model said."""
    # the judge learns on all texts; what it foretells of one comes from the other folds
    judge = DistilledJudge(embedder, lessons=lessons)
    await judge.fit(judged, rubrics)
    foretold = {c.text_hash: judge.foretold(c) for c in judged}

    return tuple(
        _measure_rubric_fidelity(rubric, judged, lessons.get(rubric.id, {}), foretold, hard, least)
        for rubric in rubrics
    )


def _measure_rubric_fidelity(
    rubric: ChosenRubric,
    judged: Sequence[Conversation],
    taught: Mapping[str, TeacherAnswer],
    foretold: Mapping[str, Mapping[str, float]],
    hard: HardRubrics,
    least: float,
) -> RubricFidelity:
    """Correlate one rubric's values; conversations on which its occasion never came up are left out."""
    # pairs of foretold and taught value, where the rubric came up
    pairs = []
    for c in judged:
        if (answer := taught.get(c.text_hash)) and answer.value is not None:
            pairs.append((foretold[c.text_hash][rubric.id], answer.value, c))

    x = np.array([p[0] for p in pairs])
    y = np.array([p[1] for p in pairs], dtype=float)
    # a correlation needs both sides to vary
    if len(pairs) < 2 or not np.ptp(x) or not np.ptp(y):
        figure = Figure(None, n=len(pairs), undefined="the answers are all alike")
    else:
        # conversations that belong together are drawn together
        blocks = number_dependent_blocks([p[2] for p in pairs])
        measure = {"r": Measure(make_pearson_statistic(x, y), empty="the answers are all alike")}
        figure = estimate_figures_on_same_resamples(measure, blocks, np.random.default_rng(0), 500)[
            "r"
        ]

    # rubrics below the limit go, or stay with the model
    able = figure.value is not None and figure.value >= least
    return RubricFidelity(
        rubric.id,
        rubric.text,
        figure,
        "distilled" if able else "dropped" if hard == "drop" else "model",
    )


def measure_cascade(distilled: Floats, model: Floats, up: Bools) -> tuple[CascadeRow, ...]:
    """Ask the model where the distilled probability is nearest to .5, for some shares of the conversations."""
    if not len(up):
        return ()

    # the least sure first: there the model's answer changes most
    order = np.argsort(np.abs(distilled - 0.5), kind="stable")
    rows = []
    for share in CASCADE_SHARES:
        # the model's probability for the share that is asked, the distilled one for the rest
        p = distilled.copy()
        first_rows = order[: round(share * len(order))]
        p[first_rows] = model[first_rows]
        rows.append(
            CascadeRow(
                share,
                compute_share_with_interval(int(((p >= 0.5) == up).sum()), len(up)),
            )
        )

    return tuple(rows)


def measure_log_loss(
    probability: Floats,
    up: Bools,
    rng: np.random.Generator,
) -> Figure:
    """Measure the mean log-loss of probabilities, in nats, with its interval."""
    clipped = np.clip(probability, 1e-6, 1 - 1e-6)
    losses = -np.log(np.where(up, clipped, 1 - clipped))
    return estimate_figures_on_same_resamples(
        {"l": Measure(make_weighted_mean_statistic(losses))}, np.arange(len(up)), rng
    )["l"]


JUDGING_COMMANDS = ("learn", "refit", "score", "evaluate", "label")
FEWEST_JUDGED_CONVERSATIONS = 40
"""Conversations with paid answers below which nothing can be learned."""
LEAST_FIDELITY = 0.3
"""Correlation with the model's answers below which a rubric can't be answered without it."""
KEPT_PROBABILITIES_QUERY = (
    "SELECT conversation AS id, arg_max(probability, seq) AS p FROM scores GROUP BY conversation"
)
AnswersByConversation = Mapping[str, Mapping[str, Answer]]
"""A model's answers by text hash and rubric."""


@dataclass(frozen=True, kw_only=True, repr=False)
class DistillResult(TabularResult):
    """What distilling came to.

    Attributes:
        n: Conversations with paid answers.
        mean_correlation: Over the model's rubrics, those that are dropped as well.
        auc: Of the distilled set and of the model's own, on conversations that neither was learned
            from; by name.
        lost: AUC of the model's set less that of the distilled one.
        log_loss: Likewise, of the probabilities.
        calls: A conversation's calls of the model: before, and now.
    """

    run: str
    rubrics: RubricSet
    out: Path | None
    n: int
    fidelity: tuple[RubricFidelity, ...]
    mean_correlation: float | None
    auc: dict[str, Figure]
    lost: Figure
    log_loss: dict[str, Figure]
    cascade: tuple[CascadeRow, ...]
    calls: tuple[int, int]
    usage: ModelUsage | None = None

    @property
    def headline(self) -> str:
        mean, lost = (
            "undefined" if x is None else f"{x:.3f}"
            for x in (self.mean_correlation, self.lost.value)
        )
        calls = f"{self.calls[0]} → {format_count(self.calls[1], 'call')} a conversation"
        return f"{format_count(self.n, 'conversation')}, mean correlation {mean}, AUC lost {lost}, {calls}"

    def records(self) -> list[dict[str, object]]:
        records: list[dict[str, object]] = []
        for fidelity in self.fidelity:
            records.append(
                {
                    "id": fidelity.id,
                    "text": fidelity.text,
                    "correlation": fidelity.correlation.value,
                    "by": fidelity.by,
                }
            )

        return records

    def told(self) -> TerminalLines:
        """Yield each rubric's fidelity, both sets beside each other, and what asking the model buys."""
        # a row for each rubric, with its correlation and who answers it now
        rows = []
        for fidelity in self.fidelity:
            rows.append((fidelity.id, fidelity.text, fidelity.correlation, fidelity.by))

        yield TerminalTable(
            ("id", "rubric", "correlation with the model's answers", "answered by"), rows
        )
        if self.mean_correlation is None:
            mean = "undefined"
        else:
            mean = f"{self.mean_correlation:.3f}"

        # what both sets reach on conversations that neither was learned from
        yield f"Mean correlation, cross-fitted: {mean} ({format_count(self.n, 'conversation')})"
        for name, auc in self.auc.items():
            yield f"Held out, {name}: AUC {auc}; log-loss {self.log_loss[name]} (n = {auc.n})"

        yield f"AUC lost: {self.lost}"
        # what asking the model about the least sure ones would add
        for row in self.cascade:
            yield f"  the model asked about {row.asked:.0%}: decisions right {row.right} of {row.right.n}"

        before, now = self.calls
        yield f"Calls a conversation: {before} before, {now} now"
        yield from render_usage_by_stage(self.usage)
        if self.out is not None:
            yield f"Wrote {self.out} ({self.rubrics.judge.name}; run {self.run})"

    def as_json(self) -> JsonDict:
        return (
            self.of(
                "run",
                "rubrics=out",
                "n",
                "mean_correlation",
                "fidelity",
                "auc",
                "auc_lost=lost",
                "log_loss",
            )
            | self.of("cascade")
            | {"calls_a_conversation": {"before": self.calls[0], "now": self.calls[1]}}
            | self.of("usage")
        )


def distill_rubric_set(
    logs: Sources | Logs,
    rubrics: Path | RubricSet,
    *,
    out: Path | None,
    hard: HardRubrics = "drop",
    least: float = LEAST_FIDELITY,
    reading: ReadOptions,
    run: RunOptions,
    model: ModelOptions,
    progress: Progress,
) -> DistillResult:
    """Distill the model's rubrics of a set, fit θ again, and write the new set.

    Args:
        hard: What becomes of rubrics that can't be answered without the model: they go, or the
            model goes on.
        least: Correlation with the model's answers from which on a rubric can be.

    Raises:
        WrongUse: The set has no model, or too few of the conversations were judged by it.
    """
    rubric_set = read_unedited(rubrics, run.store)
    # values of five options are what a distilled judge can learn
    if rubric_set.judge.kind != LLM_JUDGE_KIND or len(rubric_set.questions[0].options) != len(
        LIKERT_OPTIONS
    ):
        raise WrongUse(
            "only answers of a model on five options are distilled",
            hint="learn the set with a model",
            option="model",
        )

    if out is not None:
        require_distinct_paths(out, *list_file_names(logs, rubrics))
        # a set that people edited by hand must not be written over
        require_not_edited(out)

    read = logs_from(logs, reading, progress)
    require_enough_labels(read, LearnSettings().minimum)
    report_repeats(read, progress)

    with open_workspace(run, progress, read) as opened:
        answers_given = collect_paid_answers(opened.store, rubric_set)
        model_rubrics = set()
        for rubric in rubric_set.rubrics:
            if not rubric.answered_by:
                model_rubrics.add(rubric.id)

        # conversations on which the model has answered all of its rubrics
        judged = []
        for c in read.learnable:
            if answers_given.get(c.text_hash, {}).keys() >= model_rubrics:
                judged.append(c)

        # too few to learn from and to measure on
        if len(judged) < FEWEST_JUDGED_CONVERSATIONS:
            what = f"{len(judged)} of these conversations were judged by {rubric_set.judge.name} in this store"
            raise WrongUse(
                f"{what}, and it takes {FEWEST_JUDGED_CONVERSATIONS}",
                hint="judge more: `pollex score LOGS --rubrics …`",
            )

        arguments = {
            "logs": list_source_names(logs),
            "rubrics": list_source_names(rubrics)[0],
            "out": out and str(out),
        }
        result = opened.run(
            _distill_in_run(
                opened,
                read,
                judged,
                rubric_set,
                answers_given,
                hard,
                least,
                model,
                arguments,
            )
        )

    # written last, when the set is complete
    if out is not None:
        result.rubrics.save(out)

    return replace(result, out=out)


def collect_paid_answers(store: Store, rubric_set: RubricSet) -> dict[str, dict[str, Answer]]:
    """Collect what was answered to the set's rubrics in any run, worded as they are now; the last answer stands."""
    # an answer counts if its question has the same words now
    digests = {question.id: question.digest for question in rubric_set.questions}
    own_ids = set()
    for rubric in rubric_set.all_rubrics:
        if rubric.answered_by:
            own_ids.add(rubric.id)

    answers: dict[str, dict[str, Answer]] = {}
    # answers of all runs of this store, the later ones in place of earlier
    for run in list_stored_runs(store):
        if run.command in JUDGING_COMMANDS:
            sql = "SELECT * FROM answers WHERE list_contains($1, question) AND outcome = '' ORDER BY seq"
            for row in store.ask(run.id, sql, [list(digests)]):
                model = str(row["judge"]).startswith(f"{rubric_set.judge.name} ")
                same = row["question_hash"] == digests[row["question"]] and model is not (
                    row["question"] in own_ids
                )
                if same and isinstance(answer := read_answer_row(row), Answer):
                    answers.setdefault(row["text_hash"], {})[row["question"]] = answer

    return answers


def make_lessons(
    answers_given: AnswersByConversation, rubric_set: RubricSet
) -> TeacherAnswersByRubric:
    """Return the model's answers by rubric and text hash, as values."""
    # rubrics that the model answers
    lessons: dict[str, dict[str, TeacherAnswer]] = {}
    for rubric in rubric_set.rubrics:
        if not rubric.answered_by:
            lessons[rubric.id] = {}

    for text_hash, answers in answers_given.items():
        for id_, answer in ((id_, answer) for id_, answer in answers.items() if id_ in lessons):
            # what never came up has no value to learn, but an option that was chosen
            if answer.never_came_up:
                value = None
            else:
                value = compute_answer_value(answer, rubric_set.judge.options.value)

            lessons[id_][text_hash] = TeacherAnswer(value, answer.chosen)

    return lessons


async def _distill_in_run(
    opened: Workspace,
    read: Logs,
    judged: Sequence[Conversation],
    rubric_set: RubricSet,
    answers_given: AnswersByConversation,
    hard: HardRubrics,
    least: float,
    model: ModelOptions,
    arguments: dict[str, Any],
) -> DistillResult:
    lessons = make_lessons(answers_given, rubric_set)
    record = rubric_set.judge
    # the embedding model of the set, or the one that was asked for
    embedder = make_embedder(
        opened.store.folder,
        get_embedding_model_name(record, model.settings.embedding_model),
    )
    # which rubrics can be told without the model, each cross-fitted
    rubrics_asked = []
    for rubric in rubric_set.rubrics:
        if not rubric.answered_by:
            rubrics_asked.append(rubric)

    opened.progress.start("Distilling the judge", len(rubrics_asked))
    fidelity = await measure_fidelity(
        judged,
        rubrics_asked,
        lessons,
        embedder,
        hard,
        least,
    )
    opened.progress.advance("Distilling the judge", len(rubrics_asked))
    by = {rubric_fidelity.id: rubric_fidelity.by for rubric_fidelity in fidelity}
    # dropped rubrics leave the set; the others say who answers them
    distillable = tuple(
        _sign_rubric(rubric, by) for rubric in rubric_set.rubrics if by.get(rubric.id) != "dropped"
    )
    if not distillable:
        raise WrongUse(
            "no rubric can be answered without the model",
            hint="judge more conversations first",
        )

    # θ is fitted again, with the new judge and the split that the set had
    async with AsyncExitStack() as stack:
        staff = await _build_roles(
            stack,
            opened,
            rubric_set,
            distillable,
            lessons,
            embedder,
            model,
        )
        settings = LearnSettings(
            test_fraction=rubric_set.data.test_fraction,
            seed=rubric_set.data.seed,
        )
        new = rubric_set.model_copy(update={"rubrics": distillable, "judge": staff.record})
        setting = opened.setting(arguments, staff)
        learned = await run_refit(
            read,
            new,
            roles=staff.roles,
            settings=settings,
            setting=setting,
        )
        usage = ModelUsage.of(staff)

    # old and new set on the same held-out conversations
    return _compare_sets(
        rubric_set,
        learned,
        judged,
        answers_given,
        fidelity,
        usage,
        opened.store,
    )


def _sign_rubric(rubric: ChosenRubric, by: Mapping[str, str]) -> ChosenRubric:
    if by.get(rubric.id) == "distilled":
        return rubric.model_copy(update={"answered_by": ANSWERED_BY_DISTILLED_JUDGE})
    return rubric


async def _build_roles(
    stack: AsyncExitStack,
    opened: Workspace,
    rubric_set: RubricSet,
    distillable: Sequence[ChosenRubric],
    lessons: TeacherAnswersByRubric,
    embedder: Embedder,
    model: ModelOptions,
) -> RunRoles:
    """Return workers whose judge leaves nothing to the model that can be answered without it."""
    record = rubric_set.judge
    # answers by what it learns from the lessons, without a model
    local = JudgeWithoutModel(embedder, {}, lessons)
    if any(not rubric.answered_by for rubric in distillable):
        staff = await stack.enter_async_context(
            await restore_judge(model, rubric_set, opened.store)
        )
        return replace(staff, embedder=embedder).judging_beside(local)

    # no rubric is left to the model: none is hired
    staff = build_embedded_run_roles(rubric_set.domain, embedder)
    options = JudgeSettings(embedding_model=embedder.model, scale=record.scale)
    judge_record = JudgeRecord(
        kind=ANSWERED_BY_DISTILLED_JUDGE,
        name=f"distilled from {record.name}",
        fingerprint="",
        options=options,
    )

    return replace(
        staff,
        roles=replace(staff.roles, judge=local),
        record=judge_record,
    )


def _compare_sets(
    before: RubricSet,
    learned: Learned,
    judged: Sequence[Conversation],
    answers_given: AnswersByConversation,
    fidelity: tuple[RubricFidelity, ...],
    usage: ModelUsage | None,
    store: Store,
) -> DistillResult:
    """Measure both sets on held-out conversations that the model judged on all its rubrics.

    Logs read without the groups that the set was split by are split otherwise: what the set was
    learned from is left out by its text. The model's own probability of what the set was fitted to
    is that of its run, which is by folds.
    """
    # texts that the set was learned from are left out
    unseen = []
    for c in judged:
        if c.text_hash[:16] not in before.learned_from:
            unseen.append(c)

    # probabilities of what it was fitted to come from its run, by folds; NaN until they are read
    by_folds = dict.fromkeys(
        (c.id for c in unseen if c.text_hash[:16] in before.only_fitted_to),
        np.nan,
    )
    stored_probabilities = {}
    for row in store.ask(before.run, KEPT_PROBABILITIES_QUERY):
        if row["p"] is not None:
            stored_probabilities[row["id"]] = row["p"]

    by_folds |= {id_: stored_probabilities[id_] for id_ in by_folds.keys() & stored_probabilities}
    # scores of the old set from paid answers, without a call
    own_answers = {}
    for score in score_by_old_set(before, unseen, answers_given):
        if score.netsat is not None:
            own_answers[score.conversation_id] = score

    # pairs of both sets on held-out conversations
    pairs = []
    for s in learned.scores:
        if (
            s.side == "held_out"
            and s.netsat is not None
            and s.probability is not None
            and s.conversation_id in own_answers
        ):
            pairs.append((own_answers[s.conversation_id], s))

    # [pair]: label, block, and NetSAT with probability of both sides
    up = np.array([s.positive for _, s in pairs], bool)
    blocks = np.array([s.block or 0 for _, s in pairs], np.int64)
    sides = {
        "model": (
            np.array([o.netsat for o, _ in pairs]),
            np.array([by_folds.get(s.conversation_id, o.probability) for o, s in pairs], float),
        ),
        "distilled": (
            np.array([s.netsat for _, s in pairs]),
            np.array([s.probability for _, s in pairs], float),
        ),
    }
    rng = np.random.default_rng(1)
    # probabilities of the model that nobody stored are left out of log-loss and cascade
    is_told = ~np.isnan(sides["model"][1])
    correlations = []
    for rubric_fidelity in fidelity:
        if rubric_fidelity.correlation.value is not None:
            correlations.append(rubric_fidelity.correlation.value)

    calls = tuple(
        count_model_calls(rubric_set.rubrics) for rubric_set in (before, learned.rubric_set)
    )
    return DistillResult(
        run=learned.run,
        rubrics=learned.rubric_set,
        out=None,
        n=len(judged),
        fidelity=fidelity,
        mean_correlation=float(np.mean(correlations)) if correlations else None,
        auc={
            name: estimate_auc(netsat, up, rng, together=blocks)
            for name, (netsat, _) in sides.items()
        },
        lost=estimate_auc_difference(
            sides["model"][0], sides["distilled"][0], up, rng, together=blocks
        ),
        log_loss={
            name: measure_log_loss(p[is_told], up[is_told], rng) for name, (_, p) in sides.items()
        },
        cascade=measure_cascade(
            sides["distilled"][1][is_told], sides["model"][1][is_told], up[is_told]
        ),
        calls=(calls[0], calls[1]),
        usage=usage,
    )


def score_by_old_set(
    rubric_set: RubricSet,
    judged: Sequence[Conversation],
    answers_given: AnswersByConversation,
) -> list[Score]:
    """Score conversations by the set as it was, from answers that are there; one that lacks any has no score."""
    answers: dict[str, Sequence[Answer | Unanswered]] = {}
    for c in judged:
        answers[c.id] = tuple(answers_given[c.text_hash].values())
    return list(rubric_set.scorer_of().score_all(answers))


def count_model_calls(rubrics: Sequence[ChosenRubric]) -> int:
    """Count the model's calls about one conversation."""
    sides = []
    for kind in ("sat", "dsat"):
        sides.append(sum(r.polarity == kind and not r.answered_by for r in rubrics))

    return sum(ceil(size / MAX_RUBRICS_PER_MODEL_CALL) for size in sides)
