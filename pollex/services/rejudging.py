"""Repeated questions about conversations, with other words or another judge, outside any run."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from pollex.agents.embedded.evidence import describe_basis_of_judgment
from pollex.agents.roles import Judge, ask_both_sides
from pollex.conversations.conversation import Conversation, Label
from pollex.errors import WrongUse
from pollex.gateway.calls import estimate_prompt_tokens
from pollex.measures.arrays import Bools, Floats
from pollex.measures.classification import estimate_auc_difference
from pollex.measures.intervals import Figure
from pollex.rubrics.answers import Answer, Question, Unanswered
from pollex.rubrics.merging import merge_equal_rubrics
from pollex.rubrics.records import ChosenRubric, JudgedBy
from pollex.rubrics.rubric import Rubric
from pollex.rubrics.rubric_set import RubricSet
from pollex.rubrics.score import Score
from pollex.rubrics.worth import Detector, compute_evidence_of_rubric, describe_new_judgment
from pollex.runs.options import ModelOptions
from pollex.runs.roles import (
    build_run_roles,
    restore_embedded_judge,
    restore_judge,
    restore_model_options,
)
from pollex.selection.losses import MAX_EVAL_DIFFERENCE
from pollex.store.resume import iterate_conversations, read_answers
from pollex.store.store import Store
from pollex.text import JsonDict

if TYPE_CHECKING:
    from pollex.gateway.calls import Capabilities

AnswersByRubric = Mapping[str, Answer | Unanswered]
MAX_PREVIEW_CONVERSATIONS, MAX_MODEL_PREVIEW_CONVERSATIONS = 400, 20
"""Conversations that a preview looks at, and those that it asks a model about."""


@dataclass(frozen=True)
class RepeatedAnswers:
    """One conversation, answered before and again.

    Attributes:
        asked: Rubrics in their new words that were asked again, by id.
        judge: Who answered again.
        used: What a model was used for; empty for the built-in judge.
        able: What its endpoint can do, so that nobody need probe it again; None for the built-in
            judge.
        scores: Before and after, by the θ and the model of the probability that were fitted to the
            old answers.
    """

    conversation: str
    asked: dict[str, ChosenRubric]
    before: AnswersByRubric
    after: AnswersByRubric
    judge: str
    used: dict[str, object]
    scores: tuple[Score, Score]
    theta: float
    able: Capabilities | None = None

    @property
    def flips(self) -> bool:
        """Whether the decision changes."""
        return _has_flipped(self.scores)

    def as_json(self) -> JsonDict:
        """Return JSON values."""
        after = {}
        for id_, answer in self.after.items():
            if id_ in self.asked:
                after[id_] = _make_answer_json(answer)

        probabilities = []
        for score in self.scores:
            probabilities.append(score.probability)

        return {
            "conversation": self.conversation,
            "judge": self.judge,
            "used": self.used,
            "netsat": [score.netsat for score in self.scores],
            "probability": probabilities,
            "theta": self.theta,
            "flips": self.flips,
            "asked": {id_: rubric.text for id_, rubric in self.asked.items()},
            "before": {
                id_: _make_answer_json(answer)
                for id_, answer in self.before.items()
                if id_ in self.asked
            },
            "after": after,
        }


@dataclass(frozen=True)
class RewordedRubricFigures:
    """The figures of a reworded rubric alone, on labeled conversations.

    Attributes:
        up, down: Mean value of its answers where the thumb is up and down; None without any.
        now: How often it tells up from down, above .5 on its own side, and where it holds.
        before: Likewise by the answers that the run has; None for a new one.
    """

    rubric: ChosenRubric
    up: float | None
    down: float | None
    now: Detector
    before: Detector | None

    @property
    def auc(self) -> Figure:
        """Return how often it tells up from down, with its interval."""
        return self.now.auc

    @property
    def told(self) -> str:
        """Say in words what it was and is judged by, if a person gave that up; else nothing."""
        if self.rubric.anew and self.before:
            return describe_new_judgment(self.rubric.text, self.before, self.now)
        return ""


@dataclass(frozen=True)
class EditPreview:
    """The effect of an edited set on a run's conversations, with the old θ and the old model of the probability.

    Attributes:
        n: Conversations that were looked at.
        shift: Mean change of NetSAT.
        flips: Scores before and after of conversations whose decision changes, the largest change
            first.
        by_model: Whether the set's model gave the probabilities; otherwise its curve over NetSAT,
            as without arrays.
    """

    n: int
    changed: tuple[RewordedRubricFigures, ...]
    shift: float
    flips: tuple[tuple[Score, Score], ...]
    by_model: bool


def score_by_rubrics(
    rubric_set: RubricSet,
    rubrics: Iterable[ChosenRubric],
    answers: Mapping[str, AnswersByRubric],
) -> list[Score]:
    """Score conversations by edited rubrics, with all else as the set has it.

    Its model of the probability takes a removed rubric for unanswered, and knows no new one.
    """
    rubrics_left = tuple(rubrics)
    # without its arrays the model can't be restored: the curve over NetSAT gives probabilities
    scorer = rubric_set.model_copy(update={"rubrics": rubrics_left}).explainer
    # What was answered about a rubric that is off now counts for nothing: the model knows it still.
    left_ids = set()
    for rubric in rubrics_left:
        left_ids.add(rubric.id)

    off = {rubric.id for rubric in (*rubric_set.rubrics, *rubric_set.off)} - left_ids
    counted = {}
    for id_, answer in answers.items():
        counted[id_] = tuple(answer for name, answer in answer.items() if name not in off)

    return list(scorer.score_all(counted))


def _get_figures(score: Score) -> Floats:
    return np.array([score.netsat, score.probability], dtype=np.float64)


def _has_flipped(pair: tuple[Score, Score]) -> bool:
    old, new = pair
    return None not in (old.decision, new.decision) and old.decision != new.decision


def find_changed_rubrics(
    rubric_set: RubricSet, rubrics: Iterable[ChosenRubric]
) -> list[ChosenRubric]:
    """Return rubrics whose words, side or evidence are not those of the set, and new ones."""
    known_answers = {}
    for rubric in rubric_set.rubrics:
        known_answers[rubric.id] = (rubric.text, rubric.polarity, rubric.source)

    reworded_rubrics = []
    for rubric in rubrics:
        if known_answers.get(rubric.id) != (rubric.text, rubric.polarity, rubric.source):
            reworded_rubrics.append(rubric)

    return reworded_rubrics


async def ask_conversation_again(
    store: Store,
    run: str,
    conversation_id: str,
    rubric_set: RubricSet,
    rubrics: Sequence[ChosenRubric],
    model: ModelOptions | None = None,
) -> RepeatedAnswers:
    """Ask about one conversation again: the rubrics in `rubrics`, or all by another judge.

    Args:
        rubrics: The set's, some in other words.
        model: Another judge; None for the set's own.

    Raises:
        WrongUse: Nothing is changed, the set's judge is a model and none is named, or it is
            built-in and can't tell.
    """
    (conversation,) = iterate_conversations(store, run, ids=[conversation_id])
    before = read_answers(store, run, ids=[conversation_id]).get(conversation_id, {})
    # the set's own judge is asked about what changed, another judge about everything
    if model is None:
        rubrics_asked = find_changed_rubrics(rubric_set, rubrics)
    else:
        rubrics_asked = [*rubrics]

    if not rubrics_asked:
        raise WrongUse(
            "nothing is changed",
            hint="change a rubric's words, or choose another judge",
        )

    used = JsonDict()
    able = None
    # the built-in judge needs words or signs that it knows; a model can read any sentence
    if model is None:
        judge = await _build_own_judge(store, run, rubric_set, rubrics_asked)
        require_answerable_without_model(judge, rubrics_asked)
        answers = await _ask_rubrics(judge, conversation, rubric_set, rubrics_asked)
    else:
        async with await build_run_roles(
            _keep_judge_scale(model, rubric_set), rubric_set.domain, store
        ) as staff:
            judge = staff.roles.judge
            answers = await _ask_rubrics(judge, conversation, rubric_set, rubrics_asked)
            used = staff.used()
            able = staff.capabilities

    # rubrics that were not asked again keep their answers
    after = {**before, **answers}
    (old,) = score_by_rubrics(rubric_set, rubric_set.rubrics, {conversation_id: before})
    (new,) = score_by_rubrics(rubric_set, rubrics, {conversation_id: after})
    by_id = {rubric.id: rubric for rubric in rubrics_asked}

    return RepeatedAnswers(
        conversation_id,
        by_id,
        before,
        after,
        judge.name,
        used,
        (old, new),
        rubric_set.theta,
        able,
    )


def require_answerable_without_model(judge: Judge, rubrics: Iterable[ChosenRubric]) -> None:
    """Raise WrongUse where the built-in judge has no event, signal or words for a rubric.

    How alike turns are to a sentence doesn't answer what it says.
    """
    for rubric in rubrics:
        if describe_basis_of_judgment(_require_understood_rubric(judge, rubric)) == "likeness":
            what = f"the built-in judge can't tell this: it knows no event, sign or words for “{rubric.text[:120]}”"
            raise WrongUse(
                what,
                hint="put the words that show it between “ and ”, or choose a model as the judge",
            )


async def preview_edits(
    store: Store,
    run: str,
    rubric_set: RubricSet,
    rubrics: Sequence[ChosenRubric],
    rng: np.random.Generator,
    model: ModelOptions | None = None,
) -> EditPreview:
    """Compute the effect of an edited set on a run's conversations, by the set's judge.

    Args:
        model: How the set's judge is reached if it is a model; it is asked about few conversations.

    Raises:
        WrongUse: The set's judge is a model, words are changed, and `model` is None.
    """
    rubrics, _ = merge_equal_rubrics(rubrics)  # as a refit does: of equal texts one is asked
    # a model is asked about few conversations, as each of them is paid for
    most = MAX_MODEL_PREVIEW_CONVERSATIONS if model else MAX_PREVIEW_CONVERSATIONS
    conversations = _draw_conversations(store, run, rng, most)
    answers = read_answers(
        store,
        run,
        ids=[conversation.id for conversation in conversations],
    )
    rubrics_asked = find_changed_rubrics(rubric_set, rubrics)
    again = dict[str, AnswersByRubric]()
    by: dict[str, JudgedBy] = dict.fromkeys(
        [rubric.id for rubric in rubrics_asked],
        "model",
    )
    # a model is asked about all conversations side by side
    if rubrics_asked and model:
        async with await restore_judge(model, rubric_set, store) as staff:
            asking = []
            for conversation in conversations:
                asking.append(
                    _ask_rubrics(
                        staff.roles.judge,
                        conversation,
                        rubric_set,
                        rubrics_asked,
                    )
                )

            again = {}
            for conversation, outcomes in zip(
                conversations, await asyncio.gather(*asking), strict=True
            ):
                again[conversation.id] = outcomes
    # the built-in judge says of each rubric what it goes by
    elif rubrics_asked:
        judge = await _build_own_judge(store, run, rubric_set, rubrics_asked)
        await judge.prepare(conversations)
        by = {}
        for rubric in rubrics_asked:
            by[rubric.id] = describe_basis_of_judgment(_require_understood_rubric(judge, rubric))

        again = {}
        for conversation in conversations:
            again[conversation.id] = await _ask_rubrics(
                judge,
                conversation,
                rubric_set,
                rubrics_asked,
            )

    answers_before = {}
    for conversation in conversations:
        answers_before[conversation.id] = answers.get(conversation.id, {})

    # new answers replace those of the run
    edited = {}
    for id_, own_answers in answers_before.items():
        edited[id_] = {**own_answers, **again.get(id_, {})}

    both = zip(
        score_by_rubrics(rubric_set, rubric_set.rubrics, answers_before),
        score_by_rubrics(rubric_set, rubrics, edited),
        strict=True,
    )
    # only a conversation with a score before and after can be compared
    whole = []
    for pair in both:
        if None not in (pair[0].netsat, pair[1].netsat):
            whole.append(pair)

    # `[conversation, 2]`: change of NetSAT and of the probability; the largest of the latter first
    moved = np.array([(_get_figures(new) - _get_figures(old)) for old, new in whole]).reshape(-1, 2)
    order = np.argsort(-np.abs(moved[:, 1]), kind="stable")

    changed = []
    for rubric in rubrics_asked:
        changed.append(
            _measure_reworded_rubric(rubric, by[rubric.id], conversations, answers, again, rng)
        )

    return EditPreview(
        n=len(whole),
        changed=tuple(changed),
        shift=float(moved[:, 0].mean()) if whole else 0.0,
        flips=tuple(filter(_has_flipped, (whole[place] for place in order))),
        by_model=rubric_set.has_arrays,
    )


def _draw_conversations(
    store: Store,
    run: str,
    rng: np.random.Generator,
    most: int,
) -> list[Conversation]:
    estimates = []
    for row in store.ask(run, "SELECT id FROM conversations GROUP BY id ORDER BY min(seq)"):
        estimates.append(row["id"])

    # at random where there are too many, in the order of the log
    if len(estimates) <= most:
        ids = estimates
    else:
        ids = []
        for i in np.sort(rng.choice(len(estimates), most, replace=False)):
            ids.append(estimates[i])

    return list(iterate_conversations(store, run, ids=ids))


def estimate_preview_calls(
    store: Store,
    run: str,
    rubric_set: RubricSet,
    rubrics: Sequence[ChosenRubric],
    rng: np.random.Generator,
) -> dict[str, int]:
    """Return about how many calls and tokens a preview by a model takes."""
    # rubrics of equal text are asked once, as in the preview itself
    distinct, _ = merge_equal_rubrics(rubrics)
    rubrics_asked = find_changed_rubrics(rubric_set, distinct)
    conversations = _draw_conversations(store, run, rng, MAX_MODEL_PREVIEW_CONVERSATIONS)
    if rubrics_asked:
        calls_each = []
        for conversation in conversations:
            calls_each.append(estimate_judge_calls(rubrics_asked, conversation))
    else:
        calls_each = []

    names = ("calls", "prompt_tokens", "completion_tokens")
    calls_by_name = {}
    for name in names:
        calls_by_name[name] = sum(calls[name] for calls in calls_each)

    return calls_by_name | {"conversations": len(conversations)}


def estimate_judge_calls(
    rubrics: Sequence[ChosenRubric], conversation: Conversation
) -> dict[str, int]:
    """Return about how many calls and tokens another judge takes for one conversation."""
    # each side has a call of its own, with the whole conversation in it
    sides = len({rubric.polarity for rubric in rubrics})
    words = [turn.shown for turn in conversation.turns] + [rubric.text for rubric in rubrics]
    read = estimate_prompt_tokens([{"content": text} for text in words]) * sides

    return {
        "calls": sides,
        "prompt_tokens": read,
        "completion_tokens": 60 * len(rubrics),
    }


async def _build_own_judge(
    store: Store,
    run: str,
    rubric_set: RubricSet,
    rubrics: Sequence[ChosenRubric],
) -> Judge:
    judge = restore_embedded_judge(rubric_set, store.folder)
    # the run that made the set has its training conversations; this run stands in where it is gone
    if store.rows("SELECT id FROM runs WHERE id = ?", [rubric_set.run]):
        made_by = rubric_set.run
    else:
        made_by = run

    rows = store.ask(
        made_by,
        "SELECT id FROM conversations WHERE side = 'train' GROUP BY id ORDER BY min(seq)",
    )
    training = list(
        iterate_conversations(
            store,
            made_by,
            ids=[row["id"] for row in rows[: 5 * MAX_PREVIEW_CONVERSATIONS]],
        )
    )
    # the judge learns from them how to judge the new words
    if training:
        await judge.fit(training, [_require_understood_rubric(judge, rubric) for rubric in rubrics])

    return judge


def _require_understood_rubric(judge: Judge, rubric: ChosenRubric) -> Rubric:
    return judge.understood(rubric.plain)


async def _ask_rubrics(
    judge: Judge,
    conversation: Conversation,
    rubric_set: RubricSet,
    rubrics: Sequence[ChosenRubric],
) -> dict[str, Answer | Unanswered]:
    questions = []
    for rubric in rubrics:
        questions.append(
            Question.about(
                _require_understood_rubric(judge, rubric),
                rubric_set.judge.scale,
            )
        )

    answers_by_rubric = {}
    for answer in await ask_both_sides(judge, conversation, questions):
        answers_by_rubric[answer.question_id] = answer

    return answers_by_rubric


def _keep_judge_scale(model: ModelOptions, rubric_set: RubricSet) -> ModelOptions:
    """Return options that ask another judge on the set's own scale."""
    record = rubric_set.judge
    # the set's own model has its own settings; another model only takes over the scale
    if record.name == model.name and not record.built_in:
        return restore_model_options(model, record)
    return replace(model, settings=model.settings.but(scale=record.scale))


def _measure_reworded_rubric(
    rubric: ChosenRubric,
    by: JudgedBy,
    conversations: Sequence[Conversation],
    answers: Mapping[str, AnswersByRubric],
    again: Mapping[str, AnswersByRubric],
    rng: np.random.Generator,
) -> RewordedRubricFigures:
    up, values = _collect_values(rubric, conversations, again)
    # mean answer where the thumb is up and where it is down; None without such a thumb
    with_up, with_down = (float(values[side].mean()) if side.any() else None for side in (up, ~up))
    # the answers that the run has, by whatever judged the rubric then
    then, old = _collect_values(rubric, conversations, answers)
    judge_name = rubric.alone.by if rubric.alone else by
    before = None
    if len(old):
        before = _make_detector(judge_name, then, old, rubric, rng)

    return RewordedRubricFigures(
        rubric,
        with_up,
        with_down,
        _make_detector(by, up, values, rubric, rng),
        before,
    )


def _collect_values(
    rubric: ChosenRubric,
    conversations: Sequence[Conversation],
    answers: Mapping[str, AnswersByRubric],
) -> tuple[Bools, Floats]:
    """Return thumbs and a rubric's values `[conversation]`, of those that have both."""
    rows = []
    for conversation in conversations:
        # both are needed: a thumb, and an answer to this rubric
        if conversation.label is not Label.NONE and isinstance(
            answer := answers.get(conversation.id, {}).get(rubric.id), Answer
        ):
            rows.append((conversation.label is Label.POSITIVE, answer.value()))

    return np.array([row[0] for row in rows], dtype=bool), np.array(
        [row[1] for row in rows], dtype=np.float64
    )


def _make_detector(
    by: JudgedBy,
    up: Bools,
    values: Floats,
    rubric: ChosenRubric,
    rng: np.random.Generator,
) -> Detector:
    # a rubric holds where its answer is over the middle of the range
    worth = compute_evidence_of_rubric(values > MAX_EVAL_DIFFERENCE / 2, up)
    if not up.any() or up.all():
        return Detector(
            by,
            Figure(None, n=len(up), undefined="only one kind of thumb"),
            worth,
        )

    return Detector(
        by,
        # ahead of a constant score, whose AUC is one half, in the direction of the rubric's side
        _shift_above_half(
            estimate_auc_difference(values * rubric.sign, np.zeros(len(up)), up, rng, 500)
        ),
        worth,
    )


def _shift_above_half(over_chance: Figure) -> Figure:
    value, low, high = (
        None if end is None else end + 0.5
        for end in (over_chance.value, over_chance.low, over_chance.high)
    )
    return replace(over_chance, value=value, low=low, high=high)


def _make_answer_json(answer: Answer | Unanswered) -> dict[str, object]:
    answer_json = answer.model_dump(mode="json")
    return answer_json | {"value": answer.value() if isinstance(answer, Answer) else None}
