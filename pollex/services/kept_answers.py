"""Answers of an earlier run in place of calls, where rubrics are as they were."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from pollex.agents.mixed import KeptAnswers, KeptJudge
from pollex.conversations.conversation import Conversation
from pollex.errors import WrongUse
from pollex.gateway.calls import prompt_estimate
from pollex.rubrics.records import ChosenRubric
from pollex.rubrics.rubric_set import RubricSet
from pollex.services.options import ModelOptions
from pollex.services.plan import WRITTEN_AN_ANSWER
from pollex.services.roles import Workers, embedded_workers, embedder_for, embeds_with, hire_judge
from pollex.store.resume import answers_of, conversations_of, find_run
from pollex.store.store import Store

LABELED = """
    SELECT id, text_hash FROM conversations WHERE label <> 'none' GROUP BY id, text_hash ORDER BY min(seq)
"""
LOOKED_AT = 50
"""Conversations that tokens are estimated from."""


def kept_answers(store: Store, run: str, rubric_set: RubricSet) -> KeptAnswers:
    """Return what the set's judge answered in a run about rubrics whose words nobody changed.

    Raises:
        WrongUse: There is no such run.
    """
    found = find_run(store, run).id
    same = {rubric.id for rubric in rubric_set.rubrics if rubric.text == rubric.written}
    hashes = {row["id"]: row["text_hash"] for row in store.ask(found, "SELECT id, text_hash FROM conversations")}
    answers = answers_of(store, found, fingerprint=rubric_set.judge.fingerprint)
    return {hashes[id_]: {q: one for q, one in own.items() if q in same} for id_, own in answers.items()}


async def hire_for_the_rest(
    model: ModelOptions, rubric_set: RubricSet, store: Store, logs: Iterable[Conversation], kept: KeptAnswers
) -> Workers:
    """Restore the set's judge for what is not answered yet; hire nobody where nothing is left.

    Raises:
        WrongUse: Another model is named: its answers don't mix with those of the set's judge.
    """
    record = rubric_set.judge
    if model.name not in (None, record.name):
        what = f"the answers are those of {record.name}, not of {model.name}"
        raise WrongUse(what, remedy="leave one of these out", option={"model": None, "answers": None})
    if all(rubric.id in kept.get(one.text_hash, {}) for one in logs for rubric in rubric_set.rubrics):
        embedder = embedder_for(store.folder, embeds_with(record, model.settings.embedding_model))
        judge = KeptJudge(record.name, record.fingerprint, kept, None, dict(record.learned))
        return embedded_workers(rubric_set.domain, embedder).judging_by(judge, record)
    staff = await hire_judge(replace(model, model=None), rubric_set, store)
    own = staff.roles.judge
    return staff.judging_by(KeptJudge(own.name, own.fingerprint, kept, own, dict(record.learned)), staff.record)


@dataclass(frozen=True)
class Left:
    """What a fit asks a model that no answer is kept of; tokens are estimates.

    Attributes:
        kept: Answers that are there.
        rubrics: Those that are asked about at least one conversation.
    """

    kept: int
    rubrics: int
    conversations: int
    calls: int
    prompt: int
    completion: int


def left_to_ask(store: Store, run: str, rubric_set: RubricSet) -> Left:
    """Count what fitting a set again on a run's conversations asks."""
    kept = kept_answers(store, run, rubric_set)
    rows = store.ask(run, LABELED)
    asked = {row["id"]: _missing(rubric_set.rubrics, kept.get(row["text_hash"], {})) for row in rows}
    asked = {id_: rubrics for id_, rubrics in asked.items() if rubrics}
    calls = sum(len({rubric.polarity for rubric in rubrics}) for rubrics in asked.values())
    some = list(conversations_of(store, run, ids=list(asked)[:LOOKED_AT]))
    read = sum(_prompt(one, asked[one.id]) for one in some)
    return Left(
        kept=len(rows) * len(rubric_set.rubrics) - sum(map(len, asked.values())),
        rubrics=len({rubric.id for rubrics in asked.values() for rubric in rubrics}),
        conversations=len(asked),
        calls=calls,
        prompt=round(read * len(asked) / len(some)) if some else 0,
        completion=WRITTEN_AN_ANSWER * sum(map(len, asked.values())),
    )


def _missing(rubrics: Sequence[ChosenRubric], known: Mapping[str, object]) -> list[ChosenRubric]:
    return [rubric for rubric in rubrics if rubric.id not in known]


def _prompt(conversation: Conversation, rubrics: Sequence[ChosenRubric]) -> int:
    words = [turn.shown for turn in conversation.turns]
    sides = {rubric.polarity: [one.text for one in rubrics if one.polarity == rubric.polarity] for rubric in rubrics}
    return sum(prompt_estimate([{"content": text} for text in (*words, *side)]) for side in sides.values())
