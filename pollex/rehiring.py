"""The judge of a rubric set, hired again: θ holds for its answers alone."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from pollex.agents.embedded.embedder import DEFAULT_MODEL
from pollex.agents.embedded.judge import EmbeddedJudge
from pollex.agents.roles import Judge
from pollex.errors import WrongUse
from pollex.gateway.endpoint import LANGCHAIN, Endpoint
from pollex.graphs.rubric_records import JudgeRecord
from pollex.graphs.rubric_set import RubricSet
from pollex.workers import JUDGING, ModelOptions, Workers, dismissed, embedded_workers, embedder_for, hire

if TYPE_CHECKING:
    from pollex.gateway.capabilities import Capabilities
    from pollex.gateway.chat_models import ChatModel
    from pollex.store.store import Store


def embedded_judge(rubric_set: RubricSet, store: Path | None, asked: str = DEFAULT_MODEL) -> Judge:
    """The embedded judge as the rubric set remembers it.

    Args:
        asked: The embedding model that the user names.

    Raises:
        WrongUse: The set's judge is a model, or embeds with something that the user did not name.
    """
    record = rubric_set.judge
    if record.kind != "embedded":
        raise WrongUse(
            f"θ was fitted to the answers of {record.name}, not of the embedded judge",
            remedy=f"give --model {record.name}, or fit it for the embedded judge: `pollex refit`",
        )
    return EmbeddedJudge(embedder_for(store, embeds_with(record, asked)), record.learned)


@asynccontextmanager
async def judging(options: ModelOptions, rubric_set: RubricSet, store: Store) -> AsyncIterator[Workers]:
    """`hire_judge`, with a model's connections closed at the end."""
    async with dismissed(await hire_judge(options, rubric_set, store)) as staff:
        yield staff


async def hire_judge(
    options: ModelOptions, rubric_set: RubricSet, store: Store, chat: ChatModel | None = None
) -> Workers:
    """Workers whose judge is the one that θ was fitted to.

    Raises:
        WrongUse: Another judge was asked for, or the set's endpoint or embedding model wasn't confirmed.
    """
    record = rubric_set.judge
    if record.kind == "llm":
        hired = await hire(confirmed(options, record, chat), rubric_set.domain, store, seed_of(record), chat)
        hired.notes += changed(record, hired.capabilities)
        return hired
    embedder = embedder_for(store.folder, embedding_confirmed(options, record, chat))
    staff = embedded_workers(rubric_set.domain, embedder)
    staff.roles = replace(staff.roles, judge=EmbeddedJudge(embedder, record.learned))
    staff.record = record
    return staff


def confirmed(options: ModelOptions, record: JudgeRecord, chat: ChatModel | None = None) -> ModelOptions:
    """The options with which the set's judge answers as it did.

    A rubric set may come from anybody: an address in it is not asked, and sent no key, unless the user names it too.
    """
    asked = chat.model if chat else options.model
    if asked not in (None, record.name):
        raise WrongUse(
            f"θ was fitted to the answers of {record.name}, not of {asked}",
            remedy=f"give --model {record.name}, or fit it again: `pollex refit … --model {asked}`",
        )
    place = record.options.get("place")
    if chat is None and options.base_url is None and place != Endpoint(record.name).place:
        made = str(place).startswith(LANGCHAIN)
        remedy = "give it in Python: pollex.Scorer.load(PATH, model=…)" if made else f"confirm it: --base-url {place}"
        raise WrongUse(f"the judge {record.name} answered at {place}", remedy=remedy)
    known = {name: record.options[name] for name in JUDGING if name in record.options}
    without = frozenset(record.options.get("without", ()))
    return replace(options, model=record.name, value=record.value, without=without, **known)


def embedding_confirmed(options: ModelOptions, record: JudgeRecord, chat: ChatModel | None = None) -> str:
    """The embedding model with which the set's embedded judge answers as it did; likewise."""
    if asked := options.model or (chat and chat.model):
        raise WrongUse(
            f"θ was fitted to the embedded judge's answers, not to those of {asked}",
            remedy=f"leave --model out, or fit it for the model: `pollex refit … --model {asked}`",
        )
    return embeds_with(record, options.embedding_model)


def changed(record: JudgeRecord, now: Capabilities | None) -> list[str]:
    """What a reader of scores must know where the endpoint can't do, or can do more than, what θ was fitted with."""
    before = record.options.get("capabilities")
    if not before or now is None or bool(before.get("logprobs")) == bool(now.logprobs):
        return []
    gave, gives = ("log-probabilities", "none") if before.get("logprobs") else ("none", "log-probabilities")
    return [f"when θ was fitted the endpoint gave {gave}, now {gives}: scores differ; `pollex refit` fits θ again"]


def seed_of(record: JudgeRecord) -> int:
    """The seed that a judge's calls were sent with."""
    return int(record.options.get("seed", 0))


def embeds_with(record: JudgeRecord, asked: str) -> str:
    """The embedding model that the set's judge was made with.

    A rubric set may come from anybody: a model that it names is neither fetched nor read, a folder's files not even
    hashed, unless the user names it too.
    """
    made_with = str(record.options.get("embedding_model", DEFAULT_MODEL))
    if made_with not in (DEFAULT_MODEL, asked):
        raise WrongUse(
            f"the rubric set's judge embeds with {made_with!r}, which may be fetched or read from disk",
            remedy=f"confirm it: --embedding-model {quote(made_with)}, in Python embedding_model={made_with!r}",
        )
    return made_with
