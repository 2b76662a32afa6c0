"""Where the assistant's replies failed, went well, or are any others: what is asked for again."""

import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pollex.agents.roles import Judge, answer_each_question
from pollex.conversations.conversation import Conversation
from pollex.conversations.logs import Logs
from pollex.errors import BadRubrics, WrongUse
from pollex.formats.fields import ReadOptions
from pollex.graphs.context import Progress
from pollex.rooms.remedy.conversations.reply_context import ReplyContext, is_answerable_reply
from pollex.rubrics.answers import MIDDLE_OPTION_VALUE, Answer, Question
from pollex.rubrics.headlines import list_headlines
from pollex.rubrics.judge_settings import DEFAULT_EMBEDDING_MODEL
from pollex.rubrics.lint import find_lint_in_rubric_sentence
from pollex.rubrics.records import ChosenRubric
from pollex.rubrics.rubric import Polarity, Rubric
from pollex.rubrics.rubric_set import RubricSet
from pollex.runs.known_answers import read_answers_by_rubric
from pollex.runs.options import RunOptions
from pollex.runs.roles import get_embedding_model_name, make_embedder, restore_embedded_judge
from pollex.runs.workspace import run_coroutine_to_end
from pollex.services.logs import Sources, logs_from
from pollex.services.named_sets import read_rubric_set
from pollex.store.store import Store
from pollex.text import format_count

POLARITIES: tuple[Polarity, ...] = ("dsat", "sat")
LEAST_SURVIVING_SHARE = 0.6
"""Share of its replies whose evidence must end there, and in which a built-in judge finds it without what follows."""


@dataclass(frozen=True)
class RubricOccurrences:
    """Where a rubric holds.

    Attributes:
        asked: Conversations that were answered.
        holds: Conversations in which it holds.
        replies: Of these, the first assistant's turn that its evidence names; none where it tells
            of the user's turns.
        without: Replies in conversations that had the occasion, where it doesn't hold.
        later: Of the replies, those after which the evidence goes on with turns of the user's.
    """

    rubric: ChosenRubric
    asked: int
    holds: int
    replies: tuple[ReplyContext, ...]
    without: tuple[ReplyContext, ...] = ()
    later: int = 0


def read_rubric_occurrences(
    logs: Sources | Logs,
    rubrics: Path | RubricSet,
    target: str | None,
    reading: ReadOptions,
    run: RunOptions,
    progress: Progress,
) -> tuple[RubricSet, Logs, dict[str, RubricOccurrences], list[RubricOccurrences]]:
    """Read a set and a log; return them, where each rubric holds, and the target that is named or all there are.

    Raises:
        BadRubrics: See `find_rubric_occurrences`.
        WrongUse: See `find_target`.
    """
    rubric_set = read_rubric_set(rubrics, run.store, arrays=False)
    read = logs_from(logs, reading, progress)
    held = find_rubric_occurrences(rubric_set, read.conversations, run.store)

    return (
        rubric_set,
        read,
        held,
        list_targets(rubric_set, held)
        if target is None
        else [find_target(rubric_set, held, target)],
    )


def find_rubric_occurrences(
    rubric_set: RubricSet,
    conversations: Sequence[Conversation],
    store: Path,
) -> dict[str, RubricOccurrences]:
    """Find where each rubric holds, by id; no model is asked.

    A built-in judge answers anew. Of a model's set the answers of its learning run are read from
    the store; where that isn't there, the exchanges that the set quotes are all there is.

    Raises:
        BadRubrics: A model judged, and neither its answers nor the quoted conversations are here.
    """
    # each answer with its conversation, by rubric
    scorable = []
    for conversation in conversations:
        if not conversation.not_scorable:
            scorable.append(conversation)

    answers = _collect_answers(rubric_set, scorable, store)
    if not answers:
        return _find_quoted_occurrences(
            rubric_set,
            {conversation.id: conversation for conversation in scorable},
        )

    held_by_id = {}
    for rubric in rubric_set.rubrics:
        # conversations in which the rubric's occasion came up
        came_up = []
        for conversation, answer in answers[rubric.id]:
            if not answer.never_came_up:
                came_up.append((conversation, answer, answer.value() > MIDDLE_OPTION_VALUE))

        # replies where it holds, and where it doesn't
        places: dict[bool, list[ReplyContext]] = {True: [], False: []}
        later = 0
        for conversation, answer, holds in came_up:
            turn = find_reply_of_evidence(conversation, answer.turns)
            if turn is not None:  # the first reply that the evidence names
                # evidence in a user's turn after the reply: the reply alone may not show it
                places[holds].append(ReplyContext(conversation, turn))
                later += holds and any(
                    conversation.turns[n].role == "user" for n in answer.turns if n > turn
                )

        holding = sum(holds for *_, holds in came_up)
        replies, without = map(tuple, (places[True], places[False]))
        held_by_id[rubric.id] = RubricOccurrences(
            rubric,
            len(answers[rubric.id]),
            holding,
            replies,
            without,
            later,
        )

    # where no occasions are known, the other side's rubrics tell where it went well
    return held_by_id | _add_occasions(
        held_by_id,
        {id_ for id_ in held_by_id if is_answered_locally(rubric_set, held_by_id[id_].rubric)},
    )


def find_reply_of_evidence(conversation: Conversation, evidence: Sequence[int]) -> int | None:
    """Return the first reply that evidence names, or that follows a call or result that it names; None for none."""
    for turn in sorted(evidence):
        # From a call or its result on, up to the next turn of the user's.
        for place in range(turn, len(conversation.turns)):
            if conversation.turns[place].role == "user":
                break
            if is_answerable_reply(conversation, place):
                return place

    return None


AnsweredConversations = list[tuple[Conversation, Answer]]


def _collect_answers(
    rubric_set: RubricSet,
    conversations: Sequence[Conversation],
    store: Path,
) -> dict[str, AnsweredConversations]:
    """Return the answers about each rubric: without a model anew, of a model as the learning run kept them."""
    # rubrics that no model answers are judged anew
    answers: dict[str, AnsweredConversations] = defaultdict(list)
    rubrics = []
    for rubric in rubric_set.rubrics:
        if is_answered_locally(rubric_set, rubric):
            rubrics.append(rubric)

    local = [Question.about(rubric, rubric_set.judge.scale) for rubric in rubrics]

    # prepared with all conversations: measures are relative to the log
    async def judged() -> None:
        judge = build_local_judge(rubric_set)
        await judge.prepare(conversations)
        for conversation in conversations:
            for answer in await answer_each_question(judge, conversation, local):
                if isinstance(answer, Answer):
                    answers[answer.question_id].append((conversation, answer))

    # a model's answers are read by text, from whichever run of the store
    if not rubric_set.judge.built_in and store.is_dir():
        text_hashes = [conversation.text_hash for conversation in conversations]
        with Store.open(store) as opened:
            stored_answers = read_answers_by_rubric(rubric_set, opened, text_hashes)
        for conversation in conversations:
            for rubric_id, answer in stored_answers.get(conversation.text_hash, {}).items():
                if isinstance(answer, Answer):
                    answers[rubric_id].append((conversation, answer))

    # Where a model judged and nothing of it is here, what the set quotes tells of all its rubrics
    # alike.
    if local and (answers or rubric_set.judge.built_in):
        run_coroutine_to_end(judged())

    return answers


def is_answered_locally(rubric_set: RubricSet, rubric: Rubric | None) -> bool:
    """Tell whether a rubric is answered without a model."""
    return rubric_set.judge.built_in or bool(rubric and rubric.answered_by)


def build_local_judge(rubric_set: RubricSet) -> Judge:
    """Return who answers a set's rubrics without a model: all of them, or those that its model leaves."""
    if rubric_set.judge.built_in:
        return restore_embedded_judge(rubric_set, None)

    # NumPy and the tables of the built-in roles come with it
    from pollex.agents.distilled.judge import JudgeWithoutModel

    local_ids = set()
    for rubric in rubric_set.rubrics:
        if rubric.answered_by:
            local_ids.add(rubric.id)

    # only what was learned for rubrics that the model leaves
    learned = {}
    for id_, what in rubric_set.judge.learned.items():
        if id_ in local_ids:
            learned[id_] = what

    return JudgeWithoutModel(
        make_embedder(None, get_embedding_model_name(rubric_set.judge, DEFAULT_EMBEDDING_MODEL)),
        learned,
    )


def _add_occasions(
    held_by_id: Mapping[str, RubricOccurrences], among: Collection[str] | None = None
) -> dict[str, RubricOccurrences]:
    """Add where it went well: without a model's answers no occasions are known, but what holds for the other side is.

    Args:
        among: Ids of the rubrics that have no such answers; None: all.
    """
    changed = dict(held_by_id)
    # for each rubric, replies in which a rubric of the other side holds
    for id_, held in held_by_id.items():
        if among is not None and id_ not in among:
            continue
        failed = {context.conversation.id for context in held.replies}
        other = []
        for opposite in held_by_id.values():
            if opposite.rubric.polarity != held.rubric.polarity and opposite.rubric.leads:
                other.append(opposite)

        # one reply a conversation, and none of those that failed
        without = {}
        for opposite in other:
            for c in opposite.replies:
                if c.conversation.id not in failed:
                    without[c.conversation.id] = c

        changed[id_] = replace(held, without=tuple(without.values()), later=0)

    return changed


def _find_quoted_occurrences(
    rubric_set: RubricSet, conversations: Mapping[str, Conversation]
) -> dict[str, RubricOccurrences]:
    # without answers, conversations that reasons quote show where a rubric held
    reasons = {reason.id: reason for reason in rubric_set.reasons}
    held_by_id = {}
    for rubric in rubric_set.rubrics:
        quoted_ids = set[str]()
        replies = dict[str, ReplyContext]()
        for quote in (
            quote for id_ in rubric.reason_ids if id_ in reasons for quote in reasons[id_].quotes
        ):
            if (conversation := conversations.get(quote.conversation_id)) is not None:
                quoted_ids.add(conversation.id)
                # a quote of the assistant's turn is a reply, any other only tells that it holds
                spoken = (
                    not quote.of_comment
                    and quote.turn < len(conversation.turns)
                    and is_answerable_reply(conversation, quote.turn)
                )
                if spoken and quote.text in conversation.turns[quote.turn].shown:
                    replies[conversation.id] = ReplyContext(conversation, quote.turn)

        # of all conversations, since nobody knows which were asked about
        held_by_id[rubric.id] = RubricOccurrences(
            rubric,
            len(conversations),
            len(quoted_ids),
            tuple(replies.values()),
        )

    if not any(held.holds for held in held_by_id.values()):
        what = f"{rubric_set.judge.name} judged, and its answers (run {rubric_set.run}) are not in the store"
        raise BadRubrics(
            what,
            hint="give the store of that run, or the log that it was learned from",
            option="store",
        )

    return _add_occasions(held_by_id)


def list_targets(
    rubric_set: RubricSet, held: Mapping[str, RubricOccurrences]
) -> list[RubricOccurrences]:
    """List what a change of the prompt may aim at, commonest first; see `explain_no_target`."""
    able = []
    for headline_rubric in list_headline_rubrics(rubric_set):
        if not explain_no_target(rubric_set, held[headline_rubric.id]):
            able.append(held[headline_rubric.id])

    return sorted(
        able,
        key=lambda target: (target.rubric.polarity != "dsat", -len(target.replies)),
    )


def list_headline_rubrics(rubric_set: RubricSet) -> list[ChosenRubric]:
    """Return the rubrics of both headline lists."""
    rubrics: list[ChosenRubric] = []
    for side in POLARITIES:
        for entry in list_headlines(rubric_set.rubrics, side):
            rubrics.append(entry.rubric)
    return rubrics


def explain_no_target(rubric_set: RubricSet, held: RubricOccurrences) -> str:
    """Return why a rubric can't be a target; empty if it can.

    Of two parts that can be done apart none is a target: the half that is easier would be done for
    the whole.
    """
    # a rubric of two parts is refused before its figures are looked at
    for mark in find_lint_in_rubric_sentence(held.rubric):
        if mark.why.startswith(TWO_PARTS_MARK):
            return f"{mark.why}{'; better: ' + ' · '.join(mark.better) if mark.better else ''}"

    if not held.holds:
        return "it holds in no conversation of this log"
    # no replies: the rubric tells of the user, or of the whole conversation
    if not held.replies and ABOUT_USER_PATTERN.match(held.rubric.text):
        return (
            "it tells of the user's turns, which no reply shows: only whole dialogues or thumbs can"
        )
    if not held.replies:
        return "it tells of the whole conversation, which no single reply shows: only whole dialogues or thumbs can"
    # in too many of them the evidence goes on after the reply
    if held.later > (1 - LEAST_SURVIVING_SHARE) * len(held.replies):
        return "what it is told by goes on with what the user says after the reply, which no reply shows"
    if (
        is_answered_locally(rubric_set, held.rubric)
        and (share := measure_surviving_share(rubric_set, held)) < LEAST_SURVIVING_SHARE
    ):
        share_seen = f"{round(share * len(held.replies))} of {format_count(len(held.replies), 'reply', 'replies')}"
        return f"it takes what comes after the reply to see it: by the reply alone the judge finds it in {share_seen}"

    return ""


TWO_PARTS_MARK = "two parts"
ABOUT_USER_PATTERN = re.compile(
    r"(?:the|a) user\b|.*\bthe user (?:gives|takes|has to|turns|drops|asks|repeats)\b",
    re.IGNORECASE,
)


def list_failures(held: RubricOccurrences) -> tuple[ReplyContext, ...]:
    """Return where a target fails: where it holds for dissatisfaction, where it might hold for satisfaction."""
    if held.rubric.polarity == "dsat":
        return held.replies
    return held.without


def list_successes(held: RubricOccurrences) -> tuple[ReplyContext, ...]:
    """Return where the occasion of a target came up, and it went well."""
    if held.rubric.polarity == "dsat":
        return held.without
    return held.replies


def find_target(
    rubric_set: RubricSet,
    held: Mapping[str, RubricOccurrences],
    named: str,
) -> RubricOccurrences:
    """Return the target with an id, or the beginning of one.

    Raises:
        WrongUse: None or several have it, or it can't be a target.
    """
    # an empty name must not fit every id
    if named:
        ids = []
        for id_ in held:
            if id_.startswith(named):
                ids.append(id_)
    else:
        ids = []

    hint = "one of: " + ", ".join(target.rubric.id for target in list_targets(rubric_set, held)[:8])
    if len(ids) != 1:
        what = f"{len(ids)} rubrics have an id that begins with {named!r:.40}"
        raise WrongUse(what, hint=hint, option="target")
    # the reason decides the remedy: a rubric of two parts is to be reworded
    if why := explain_no_target(rubric_set, held[ids[0]]):
        if why.startswith(TWO_PARTS_MARK):
            hint = "reword it (`pollex rubrics reword`) and fit it again"
        raise WrongUse(f"the rubric {ids[0]} can't be a target: {why}", hint=hint)
    return held[ids[0]]


def measure_surviving_share(rubric_set: RubricSet, held: RubricOccurrences) -> float:
    """Return in which share of its replies the built-in judge finds a rubric without what follows the reply."""
    question = Question.about(held.rubric, rubric_set.judge.scale)
    judge = build_local_judge(rubric_set)

    # cut after the reply: the judge sees no more than a proof will show
    async def count() -> int:
        surviving = 0
        for context in held.replies:
            (answer,) = await answer_each_question(judge, context.cut, [question])
            surviving += (
                isinstance(answer, Answer)
                and bool(answer.turns)
                and answer.value() > MIDDLE_OPTION_VALUE
            )

        return surviving

    return run_coroutine_to_end(count()) / len(held.replies)
