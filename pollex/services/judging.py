"""The judge that a rubric set was fitted to, restored and confirmed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pollex.agents.embedded.embedder import Embedder
from pollex.agents.embedded.judge import EmbeddedJudge
from pollex.agents.roles import Judge
from pollex.errors import BadRubrics, WrongUse
from pollex.gateway.endpoint import LANGCHAIN, Endpoint
from pollex.rubrics.judge_settings import DEFAULT_MODEL
from pollex.rubrics.records import EMBEDDED, LLM, JudgeRecord
from pollex.rubrics.rubric import DISTILLED, Rubric
from pollex.rubrics.rubric_set import RubricSet
from pollex.services.options import ModelOptions
from pollex.services.roles import Workers, dismissed, embedded_workers, embedder_for, hire

Build = Callable[[JudgeRecord, Embedder, Sequence[Rubric]], Judge]
"""Builds the judge that a record describes, for some rubrics; texts are embedded by the embedder."""


def _distilled(record: JudgeRecord, embedder: Embedder, rubrics: Sequence[Rubric]) -> Judge:  # noqa: ARG001
    from pollex.agents.distilled.judge import LocalJudge  # few sets are

    return LocalJudge(embedder, record.learned)


BUILT_IN: Mapping[str, Build] = {
    EMBEDDED: lambda record, embedder, rubrics: EmbeddedJudge(embedder, record.learned, rubrics),
    DISTILLED: _distilled,
}


def build(record: JudgeRecord, embedder: Embedder, rubrics: Sequence[Rubric] = ()) -> Judge:
    """Build a judge that needs no model.

    Raises:
        BadRubrics: There is no judge of this kind, or what it learned can't be used.
    """
    if record.kind not in BUILT_IN:
        known = ", ".join((LLM, *BUILT_IN))
        raise BadRubrics(f"there is no judge of the kind {record.kind!r:.60}", remedy=f"use one of {known}")
    return BUILT_IN[record.kind](record, embedder, rubrics)


if TYPE_CHECKING:
    from pollex.gateway.capabilities import Capabilities
    from pollex.store.store import Store


def embedded_judge(rubric_set: RubricSet, store: Path | None, asked: str = DEFAULT_MODEL) -> Judge:
    """Restore the built-in judge of a rubric set.

    Args:
        asked: The embedding model that the user names.

    Raises:
        WrongUse: The set's judge is a model, or embeds with something that the user did not name.
    """
    record = rubric_set.judge
    if not record.built_in:
        raise WrongUse(
            f"θ was fitted to the answers of {record.name}, not of the built-in judge",
            remedy="fit it for the built-in judge (`pollex refit`), or name the model",
            option={"model": record.name},
        )
    return build(rubric_set.asked_judge, embedder_for(store, embeds_with(record, asked)), rubric_set.rubrics)


@asynccontextmanager
async def judging(options: ModelOptions, rubric_set: RubricSet, store: Store) -> AsyncIterator[Workers]:
    """Restore the set's judge and close its connections on exit."""
    async with dismissed(await hire_judge(options, rubric_set, store)) as staff:
        yield staff


async def hire_judge(options: ModelOptions, rubric_set: RubricSet, store: Store) -> Workers:
    """Restore the judge that θ was fitted to.

    Raises:
        WrongUse: Another judge was asked for, or the set's endpoint or embedding model wasn't confirmed.
    """
    record = rubric_set.judge
    if not record.built_in:
        hired = await hire(confirmed(options, record), rubric_set.domain, store, seed_of(record))
        hired.notes += changed(record, hired.capabilities)
        if any(rubric.answered_by for rubric in rubric_set.rubrics):
            hired.embedder = embedder_for(store.folder, embeds_with(record, options.settings.embedding_model))
        return hired.leaving(rubric_set.rubrics, record.learned)
    embedder = embedder_for(store.folder, embedding_confirmed(options, record))
    staff = embedded_workers(rubric_set.domain, embedder)
    staff.roles = replace(staff.roles, judge=build(rubric_set.asked_judge, embedder, rubric_set.rubrics))
    staff.record = record
    return staff


def confirmed(options: ModelOptions, record: JudgeRecord) -> ModelOptions:
    """Return the options with which the set's judge answers as before.

    A rubric set may come from anybody: an address in it is not asked, and sent no key, unless the user names it too.
    """
    asked = options.name
    if asked not in (None, record.name):
        raise WrongUse(
            f"θ was fitted to the answers of {record.name}, not of {asked}",
            remedy=f"fit it again (`pollex refit … --model {asked}`), or name the model that it has",
            option={"model": record.name},
        )
    place = record.options.place
    if options.chat is None and options.base_url is None and place != Endpoint(record.name).place:
        made = place.startswith(LANGCHAIN)
        what = f"the judge {record.name} answered at {place}"
        if made:
            raise WrongUse(what, remedy="give it in Python: pollex.Scorer.load(PATH, model=…)")
        raise WrongUse(what, remedy="confirm it", option={"base_url": place})
    return replace(options, model=record.name, settings=record.options.but(require=options.settings.require))


def embedding_confirmed(options: ModelOptions, record: JudgeRecord) -> str:
    """Return the embedding model with which the set's built-in judge answers as before."""
    if asked := options.name:
        raise WrongUse(
            f"θ was fitted to the built-in judge's answers, not to those of {asked}",
            remedy=f"leave the model out, or fit it for the model: `pollex refit … --model {asked}`",
        )
    return embeds_with(record, options.settings.embedding_model)


def changed(record: JudgeRecord, now: Capabilities | None) -> list[str]:
    """Warn if the endpoint's capabilities changed since θ was fitted."""
    before = record.options.capabilities
    if before is None or now is None or bool(before.logprobs) == bool(now.logprobs):
        return []
    gave, gives = ("log-probabilities", "none") if before.logprobs else ("none", "log-probabilities")
    return [f"when θ was fitted the endpoint gave {gave}, now {gives}: scores differ; `pollex refit` fits θ again"]


def seed_of(record: JudgeRecord) -> int:
    """Return the seed of a judge's calls."""
    return record.options.seed or 0


def embeds_with(record: JudgeRecord, asked: str) -> str:
    """Return the embedding model of the set's judge.

    A rubric set may come from anybody: a model that it names is neither fetched nor read, and the files of a folder
    not even hashed, unless the user names it too.
    """
    made_with = record.options.embedding_model
    if made_with not in (DEFAULT_MODEL, asked):
        raise WrongUse(
            f"the rubric set's judge embeds with {made_with!r}, which may be fetched or read from disk",
            remedy="confirm it",
            option={"embedding_model": made_with},
        )
    return made_with
