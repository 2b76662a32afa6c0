"""Runs of `learn` and `refit`: each with what its nodes work with, begun or resumed in the store.

A graph is imported when it is to run: LangGraph takes a third of a second to import, which reading
logs or results does not need. Runs of the other graphs do the same.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from pollex.agents.embedded.events.signal import name_rubric_family
from pollex.agents.embedded.evidence import describe_basis_of_judgment
from pollex.agents.embedded.judge import EmbeddedJudge
from pollex.agents.embedded.roles import EmbeddedExtractor
from pollex.agents.embedded.signals import WORDING_TONE_FORM
from pollex.agents.roles import Extraction, Roles
from pollex.conversations.conversation import Conversation
from pollex.conversations.logs import Logs
from pollex.conversations.splits import require_enough_labels
from pollex.graphs.context import Progress
from pollex.graphs.learn.state import LearnChoice, LearnContext
from pollex.graphs.run import carry_out_run
from pollex.measures.arrays import Bools
from pollex.prompts.domain import DomainProfile
from pollex.rubrics.answers import (
    OPTIONS_BY_SCALE,
    Answer,
    NoAnswerOutcome,
    Unanswered,
    may_asking_again_bring_answer,
)
from pollex.rubrics.headlines import do_thumbs_contradict_rubric
from pollex.rubrics.learning.material import GivenAnswers, MadePool, Material, Starter
from pollex.rubrics.learning.results import Learned
from pollex.rubrics.learning.settings import LearnSettings
from pollex.rubrics.learning.thumbs import SplitSides, split_logs_into_training_and_held_out
from pollex.rubrics.learning.words import LogPhrases
from pollex.rubrics.merging import merge_equal_rubrics
from pollex.rubrics.records import ChosenRubric, JudgeRecord
from pollex.rubrics.rubric import ANSWERED_BY_BUILT_IN_JUDGE, Rubric, is_built_in_source
from pollex.rubrics.rubric_set import RubricSet, hash_rubrics
from pollex.rubrics.worth import describe_new_judgments
from pollex.runs.pool_review import (
    PoolAwaitsReview,
    PoolReviewer,
    RunFork,
    ask_reviewers_until_accepted,
    begin_forked_run,
)
from pollex.runs.roles import RunRoles
from pollex.runs.run import (
    RunSettings,
    compute_json_digest,
    read_conversation_ids,
    require_same_settings,
)
from pollex.selection.policies import DEFAULT_SELECTION_POLICY_NAME, SELECTION_POLICY_BY_NAME
from pollex.store.resume import find_run, read_answers, read_extractions, read_step_result
from pollex.store.rows import make_conversation_rows
from pollex.store.rubric_sets import make_rubric_set_rows
from pollex.store.runs import Run
from pollex.store.store import Store

if TYPE_CHECKING:
    from pollex.graphs.learn.graph import UncompiledLearnGraph


@dataclass(frozen=True, kw_only=True)
class LearningInput:
    """What is learned from, and how.

    Attributes:
        rubrics: Written by hand: none are learned then, and all of these are judged and fitted.
        fork: A run whose extractions and pool are taken over; nothing before its node is done
            again.
        review: Whether the run waits for people at the pool; see `PoolAwaitsReview`.
        people: Given the pool, return it as it is to be; None where nobody can be asked now.
        starter: A set that was learned elsewhere, with its answers: for the model of the
            probability.
    """

    logs: Logs
    profile: DomainProfile
    settings: LearnSettings
    rubrics: Sequence[Rubric] = ()
    fork: RunFork | None = None
    review: bool = False
    people: PoolReviewer | None = None
    starter: Starter | None = None


@dataclass(frozen=True, kw_only=True)
class LearnRun:
    """A run of `learn` or `refit`, ready to be carried out.

    Attributes:
        prompts: Version of each prompt by name.
        knowledge: Other fields of `Material`: the record of the judge, and what an earlier set knows.
    """

    command: Literal["learn", "refit"]
    graph: UncompiledLearnGraph
    learning: LearningInput
    roles: Roles
    setting: RunSettings
    prompts: Mapping[str, str]
    knowledge: Mapping[str, Any]

    @property
    def workers(self) -> list[str]:
        """Names of who works."""
        return sorted(set(self.roles.names.values()))

    async def carry_out(self) -> Learned:
        """Begin or resume the run, and walk its graph to the end.

        Raises:
            PoolWaits: The run waits for people.
            BadLabels: One class is missing or too small, or can't be split.
            ResumeRefused: The run to resume was started with other settings.
        """
        learning = self.learning
        setting = self.setting
        require_enough_labels(learning.logs, learning.settings.minimum)
        fingerprint = self._fingerprint()
        begun = await self._find_forked_run(setting.whole(fingerprint))
        async with setting.begin_or_resume(self.command, fingerprint, self.workers, begun) as run:
            live = self._keep_and_gather(run.id)
            # people are asked until they give nothing more
            state = await carry_out_run(
                self.graph,
                live,
                LearnChoice.of(setting.arguments),
                after="calibrate",
                people=learning.people and ask_reviewers_until_accepted(learning.people),
            )
            # the graph stopped to ask people who are not here now
            if "__interrupt__" in state:
                raise PoolAwaitsReview(run.id, state["kept"])

        learned: Learned = live.result[0]
        return learned

    def _fingerprint(self) -> dict[str, str]:
        """Return all that the result depends on: a resume goes on only if nothing of it changed."""
        learning = self.learning
        fingerprint = make_learning_fingerprint(
            learning.logs,
            settings=learning.settings,
            profile=learning.profile,
            roles=self.roles.fingerprints,
        )
        if learning.rubrics:
            fingerprint["rubrics"] = compute_json_digest(
                [rubric.model_dump(mode="json") for rubric in learning.rubrics]
            )

        if learning.starter is not None:
            fingerprint["starter"] = hash_rubrics(learning.starter.record.rubrics)

        return fingerprint

    async def _find_forked_run(self, fingerprint: dict[str, str]) -> Run | None:
        """Return the run of a fork: a new one, or the named one; None for any other run, and where a resume looks."""
        fork = self.learning.fork
        setting = self.setting
        if fork is None:
            return None
        # without a node it is this very run, if its settings are the same
        if not fork.node:
            named = find_run(setting.store, fork.run)
            return require_same_settings(named, fingerprint, setting.store, setting.behind)
        if setting.resume:
            return None
        return await begin_forked_run(setting.store, fork, setting.arguments, fingerprint)

    def _keep_and_gather(self, run: str) -> LearnContext:
        """Store the conversations of the run, and return what its nodes work with."""
        learning = self.learning
        settings = learning.settings
        store = self.setting.store
        sides = split_logs_into_training_and_held_out(learning.logs, settings.share, settings.seed)
        # conversations are stored first, so that whatever fails can be resumed
        store_split_conversations(store, run, learning.logs, sides.train, sides.test)
        # labeled and graded conversations are judged, of both sides
        judged = {c.id: c for c in (*sides.judged_train, *sides.judged_test)}

        return LearnContext(
            **self.setting.of_run(run),
            total=len(judged),
            workers=self.workers,
            material=self._gather_material(run, sides),
            extractions=_read_extractions_to_reuse(store, run, self.setting.retry_outcomes),
            roles=self.roles,
            by_id=judged,
            writing="update" if settings.method == "spur" else "summarize",
            profile=learning.profile,
            prompts=dict(self.prompts),
            review=learning.review,
        )

    def _gather_material(self, run: str, sides: SplitSides) -> Material:
        """Return both sides of a log with the answers that the store has."""
        record: JudgeRecord = self.knowledge["judge_record"]
        # answers that the store has go into the table; the graph asks for the others
        table = GivenAnswers(record.options.value, len(OPTIONS_BY_SCALE[record.scale]))
        for id_, answers in _read_answers_to_reuse(
            self.setting.store,
            run,
            {c.id for c in sides.judged_train},
            self.setting.retry_outcomes,
        ):
            table.take(id_, answers)

        return Material(
            logs=self.learning.logs,
            training=sides.train,
            held_out=sides.test,
            graded_training=sides.graded_train,
            graded_held_out=sides.graded_test,
            settings=self.learning.settings,
            table=table,
            progress=self.setting.progress,
            family_of=name_rubric_family,
            kept=tuple(self.learning.rubrics),
            starter=self.learning.starter,
            form=WORDING_TONE_FORM,
            make=make_unpaid_pool_maker(self.roles),
            words=make_phrase_miner(self.roles),
            **self.knowledge,
        )


def prepare_learning(learning: LearningInput, staff: RunRoles, setting: RunSettings) -> LearnRun:
    """Return the run that learns a rubric set from labeled conversations.

    Raises:
        WrongUse: SPUR was asked for without an updater.
    """
    from pollex.graphs.learn import graph as learn_graph
    from pollex.graphs.learn import refit as refit_graph
    from pollex.graphs.learn import spur as spur_graph

    graph = learn_graph.build()
    settings = learning.settings
    roles = staff.for_method(settings.method)
    # SPUR has a graph of its own
    if settings.method == "spur":
        graph = spur_graph.build()

    # rubrics that are there are judged and fitted as by a refit, and all of them stay
    if learning.rubrics:
        distinct = drop_duplicate_rubrics(learning.rubrics, setting.progress)
        graph = refit_graph.build()
        learning = replace(
            learning,
            settings=choose_every_rubric(settings, distinct),
            rubrics=[*map(roles.judge.understood, distinct)],
        )

    return LearnRun(
        command="learn",
        graph=graph,
        learning=learning,
        roles=roles,
        setting=setting,
        prompts=staff.prompts,
        knowledge={"judge_record": staff.record},
    )


def drop_duplicate_rubrics(rubrics: Sequence[Rubric], progress: Progress) -> tuple[Rubric, ...]:
    """Return rubrics, one of each text on a side, and tell which are left out."""
    merged_rubrics, merged = merge_equal_rubrics(rubrics)
    texts = {rubric.id: rubric.text for rubric in rubrics}
    for id_, into in merged.items():
        progress.note(f"“{texts[id_]}” stands there twice: it is asked once, as {into}")

    return merged_rubrics


def choose_every_rubric(settings: LearnSettings, rubrics: Sequence[Rubric]) -> LearnSettings:
    """Return settings that choose every one of these rubrics."""
    # the budget is as many as there are, so that α and stability decide nothing
    n_sat = sum(rubric.polarity == "sat" for rubric in rubrics)
    n_dsat = sum(rubric.polarity == "dsat" for rubric in rubrics)
    alpha = 1.0 if settings.alpha is None else settings.alpha
    return replace(settings, budget=(n_sat, n_dsat), alpha=alpha, stability=False)


async def refit_rubric_set(
    logs: Logs,
    rubric_set: RubricSet,
    *,
    roles: Roles,
    settings: LearnSettings,
    setting: RunSettings,
    starter: Starter | None = None,
) -> Learned:
    """Judge the rubrics of a set again and refit θ, window and probability; keep α."""
    from pollex.graphs.learn import refit as refit_graph

    distinct = drop_duplicate_rubrics(
        [rubric.plain for rubric in rubric_set.rubrics],
        setting.progress,
    )
    rubrics = tuple(map(roles.judge.understood, distinct))
    # the first scale is that of the thumb; the others are fitted again, too
    rating = rubric_set.calibrator and rubric_set.calibrator.rating
    kept_settings = LearnSettings(
        also=",".join(list(rating.scales)[1:]) if rating else "",
        test_fraction=settings.test_fraction,
        alpha=rubric_set.alpha,
        # sets of before have others
        policy=rubric_set.policy
        if rubric_set.policy in SELECTION_POLICY_BY_NAME
        else DEFAULT_SELECTION_POLICY_NAME,
        seed=settings.seed,
        minimum=settings.minimum,
        probability=settings.probability,
    )
    again = LearningInput(
        logs=logs,
        profile=rubric_set.domain,
        settings=choose_every_rubric(kept_settings, rubrics),
        rubrics=rubrics,
        starter=starter,
    )
    run = LearnRun(
        command="refit",
        graph=refit_graph.build(),
        learning=again,
        roles=roles,
        setting=setting,
        prompts=rubric_set.prompts,
        # what the earlier set knows, which new data doesn't replace
        knowledge={
            "judge_record": rubric_set.judge,
            "learned_from": rubric_set.learned_from,
            "earlier_tone": rubric_set.tone,
        },
    )
    learned = await run.carry_out()
    # hashes are kept in part
    known_ids = set()
    for c in logs:
        if c.text_hash[:16] in rubric_set.learned_from:
            known_ids.add(c.id)

    whole = _combine_with_earlier_set(rubric_set, learned, known_ids)
    await setting.store.write(list(make_rubric_set_rows(learned.run, whole)))

    return replace(learned, rubric_set=whole)


def _combine_with_earlier_set(
    before: RubricSet,
    learned: Learned,
    known_ids: Collection[str],
) -> RubricSet:
    """Return the refitted set with the parts of the earlier set that still hold.

    Figures on conversations that the set was learned from are dropped.

    Args:
        known: Ids of those conversations.
    """
    fitted = learned.rubric_set
    notes = []
    # of conversations that the rubrics came from, by the side on which they are now
    counts: Counter[str] = Counter()
    for score in learned.scores:
        if score.conversation_id in known_ids:
            counts[score.side] += 1
    if counts["held_out"]:
        notes.append(
            f"The rubrics were learnt from {counts['held_out']} of the held-out conversations: their figures are too "
            "good. Refit with the test fraction, seed and groups that the set was learnt with."
        )

    if counts["training"]:
        notes.append(
            f"There is no window with a guarantee: the rubrics were learnt from {counts['training']} of the "
            "conversations that it would be fitted on. Nor are there cross-fitted figures of them, and the model of "
            "probabilities is the set's, fitted again. `pollex learn` has all that, and so has a refit on others."
        )
        fitted = fitted.model_copy(update={"guaranteed": None, "alphas": ()})

    learned_from = before.learned_from
    # of what an earlier refit was fitted to, nothing is left
    fitted_to = set(fitted.data.fitted_hashes) - learned_from
    hashes = {
        "training_hashes": tuple(sorted(learned_from)),
        "fitted_hashes": tuple(sorted(fitted_to)),
    }
    # figures of before hold for the same judge, and where its conversations are here again
    same_judge = bool(known_ids) and before.roles.get("judge") == fitted.roles["judge"]
    were = {rubric.id: rubric for rubric in before.rubrics}
    rubrics = []
    for rubric in fitted.rubrics:
        rubrics.append(_keep_earlier_evidence(rubric, were[rubric.id], same_judge=same_judge))

    fields = {
        "rubrics": tuple(rubrics),
        "off": before.off,
        "by_hand": before.by_hand or before.edited,
        "reasons": before.reasons,
        "dropped": before.dropped,
        "adapted": before.adapted,
        "roles": before.roles | {"judge": fitted.roles["judge"]},
        "data": fitted.data.model_copy(update=hashes),
        "notes": (*fitted.notes, *notes, *describe_new_judgments(before.rubrics, fitted.rubrics)),
    }

    return fitted.model_copy(update=fields)


def _keep_earlier_evidence(
    fitted: ChosenRubric,
    before: ChosenRubric,
    *,
    same_judge: bool,
) -> ChosenRubric:
    """Return a fitted rubric with its note; where labels told more of it before, and its judge stayed, with that."""
    fields: dict[str, object] = {"note": before.note}
    # other words with the same detector behind them are judged as before
    if same_judge and (before.written == before.text or is_judged_as_before(before)):
        fields["worth"] = fitted.worth or before.worth
        now = fitted.standing
        then = before.standing
        # the standing of more conversations stays, unless labels spoke against the rubric
        if then and not do_thumbs_contradict_rubric(before) and (now is None or now.n < then.n):
            fields["standing"] = then

    return fitted.model_copy(update=fields)


def is_judged_as_before(rubric: ChosenRubric) -> bool:
    """Tell whether new words leave the judge of a rubric as it was: a detector decides it, and not its sentence."""
    detected = is_built_in_source(rubric.source) and describe_basis_of_judgment(rubric) in (
        "event",
        "signal",
        "words",
    )
    return (
        bool(rubric.written) and detected and rubric.answered_by in ("", ANSWERED_BY_BUILT_IN_JUDGE)
    )


def make_unpaid_pool_maker(
    roles: Roles,
) -> Callable[[Sequence[Conversation], Bools], MadePool] | None:
    """Return what makes a pool anew of some conversations; None where a model would have to be paid for it."""
    free = isinstance(roles.extractor, EmbeddedExtractor) and isinstance(roles.judge, EmbeddedJudge)
    # built-in roles cost nothing, so that halves of the data may have pools of their own
    return roles.extractor.anew if free else None  # type: ignore[attr-defined]  # it is one


def make_phrase_miner(roles: Roles) -> Callable[[Sequence[Conversation]], LogPhrases] | None:
    """Return what lays out the phrases of some conversations; None where words aren't mined."""
    if isinstance(roles.extractor, EmbeddedExtractor):
        return roles.extractor.words
    return None


def _read_extractions_to_reuse(
    store: Store,
    run: str,
    retry_outcomes: Collection[NoAnswerOutcome],
) -> dict[str, Extraction | Unanswered]:
    """Return the stored extractions to reuse.

    Failures in `retry_outcomes` are dropped, to be retried, until summarizing has begun.
    """
    extractions = read_extractions(store, run)
    if store.value("SELECT count(*) FROM facts WHERE run = ? AND kind = 'step'", [run]):
        return extractions

    settled_extractions = {}
    for id_, extraction in extractions.items():
        if not (
            isinstance(extraction, Unanswered)
            and may_asking_again_bring_answer(extraction, retry_outcomes)
        ):
            settled_extractions[id_] = extraction

    return settled_extractions


def _read_answers_to_reuse(
    store: Store,
    run: str,
    training: Collection[str],
    retry_outcomes: Collection[NoAnswerOutcome],
) -> Iterator[tuple[str, list[Answer | Unanswered]]]:
    """Yield the stored answers to reuse, by conversation.

    Failures in `retry_outcomes` are dropped, to be retried, until rubrics were chosen: folds and
    threshold rest on the conversations that had answers.
    """
    # once rubrics are chosen, training answers are final
    chosen = read_step_result(store, run, "select") is not None
    for id_, answers in read_answers(store, run).items():
        checked = chosen and id_ in training
        settled_answers = []
        for answer in answers.values():
            if checked or not may_asking_again_bring_answer(answer, retry_outcomes):
                settled_answers.append(answer)

        yield (id_, settled_answers)


def store_split_conversations(
    store: Store,
    run: str,
    logs: Logs,
    training: Sequence[Conversation],
    held_out: Sequence[Conversation],
) -> None:
    """Store all conversations of the log with their side of the split, except those stored."""
    stored_ids = read_conversation_ids(store, run)
    used = {c.id for c in (*training, *held_out)}
    new_training = []
    for c in training:
        if c.id not in stored_ids:
            new_training.append(c)

    store.put(
        make_conversation_rows(
            run,
            new_training,
            side="train",
        )
    )
    new_held_out = []
    for c in held_out:
        if c.id not in stored_ids:
            new_held_out.append(c)

    store.put(
        make_conversation_rows(
            run,
            new_held_out,
            side="test",
        )
    )
    # what is on neither side is stored for later looks, without a side
    new_others = []
    for c in logs:
        if c.id not in stored_ids | used:
            new_others.append(c)

    store.put(
        make_conversation_rows(
            run,
            new_others,
        )
    )


def make_learning_fingerprint(
    logs: Logs,
    *,
    settings: LearnSettings,
    profile: DomainProfile,
    roles: Mapping[str, str],
) -> dict[str, str]:
    """Return everything a learning run's result depends on, as readable settings.

    A refused resume shows which of them changed.
    """
    return {
        # digests are cut to what people can compare
        "data": logs.fingerprint[:12],
        **{name: json.dumps(value) for name, value in vars(settings).items()},
        "domain": compute_json_digest(profile.model_dump(mode="json")),
        **{role: fingerprint[:12] for role, fingerprint in roles.items()},
    }
