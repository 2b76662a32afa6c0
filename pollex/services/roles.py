"""The agents of a run: the built-in roles, or an LLM's through the gateway."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pollex.agents.backends import build
from pollex.agents.embedded import NAME
from pollex.agents.embedded.deduplicator import EmbeddedDeduplicator
from pollex.agents.embedded.embedder import Embedder
from pollex.agents.embedded.extractor import EmbeddedExtractor
from pollex.agents.embedded.judge import EmbeddedJudge
from pollex.agents.embedded.summarizer import EmbeddedSummarizer
from pollex.agents.roles import Judge, Roles
from pollex.errors import WrongUse
from pollex.gateway.budget import Budget
from pollex.gateway.endpoint import LANGCHAIN, Endpoint
from pollex.graphs.context import BATCH
from pollex.graphs.run import RunSettings
from pollex.prompts.domain import DomainProfile
from pollex.rubrics.answers import DOMAIN_SCALES, RETRYABLE, Outcome
from pollex.rubrics.judge_settings import DEFAULT_MODEL, JudgeSettings
from pollex.rubrics.records import EMBEDDED, LLM, JudgeRecord
from pollex.rubrics.rubric_set import RubricSet
from pollex.services.mixed_roles import with_built_in_judge
from pollex.services.options import ModelOptions

if TYPE_CHECKING:
    from pollex.gateway.capabilities import Capabilities
    from pollex.gateway.gateway import Gateway
    from pollex.store.spans import Tracer
    from pollex.store.store import Store


EMBEDDINGS = "embeddings"
"""Folder of cached embeddings inside a store."""


@dataclass(kw_only=True)
class Workers:
    """The roles of a run, with its model and its resources.

    Attributes:
        record: How a rubric set remembers the judge.
        prompts: Version of each prompt by name; empty for the built-in roles.
        gateway: None for the built-in roles.
        capabilities: Capabilities of the endpoint; None for the built-in roles.
        retry_outcomes: Outcomes that a resume asks about again.
        traced: Told the run's tracer, for spans of model calls.
        notes: What to tell the user before the work.
    """

    roles: Roles
    record: JudgeRecord
    embedder: Embedder
    prompts: dict[str, str] = field(default_factory=dict)
    secrets: tuple[str, ...] = ()
    retry_outcomes: frozenset[Outcome] = RETRYABLE
    gateway: Gateway | None = None
    capabilities: Capabilities | None = None
    traced: Callable[[Tracer], None] = lambda _tracer: None
    notes: list[str] = field(default_factory=list)

    @property
    def at_once(self) -> int:
        """Return how many conversations to ask about at once: twice the concurrent calls."""
        return BATCH if self.gateway is None else 2 * self.gateway.limits.concurrency

    def used(self) -> dict[str, Any]:
        """Return the model's usage so far; empty for the built-in roles."""
        if self.gateway is None:
            return {}
        total = self.gateway.used.total
        return {
            "calls": total.asked,
            "sent": total.sent,
            "known": total.known,
            "prompt_tokens": total.prompt,
            "completion_tokens": total.completion,
            "outcomes": dict(total.outcomes),
            "cost": total.cost(self.gateway.limits.price),
            "max_calls": self.gateway.limits.max_calls,
            "max_cost": self.gateway.limits.max_cost,
        }

    def setting(self, store: Store, **rest: Any) -> RunSettings:
        """Make the setting of a run with these roles; `rest` as in `RunSettings.of`."""
        return RunSettings.of(
            store,
            retry_outcomes=self.retry_outcomes,
            secrets=self.secrets,
            traced=self.traced,
            at_once=self.at_once,
            used=self.used,
            **rest,
        )

    def for_method(self, method: str) -> Roles:
        """Return the roles that a method of learning needs.

        Raises:
            WrongUse: SPUR, and no model.
        """
        if method != "spur":
            return self.roles
        if self.gateway is None:
            raise WrongUse("SPUR rewrites rubrics, and that takes a model", remedy="name one", option="model")
        from pollex.agents.llm.judge import LlmJudge
        from pollex.agents.llm.updater import LlmUpdater

        assert isinstance(self.roles.judge, LlmJudge), "who has a gateway judges by it"
        return replace(self.roles, updater=LlmUpdater(self.roles.judge.asker))

    @property
    def said(self) -> str:
        """Display name of the judge, with its endpoint."""
        if self.gateway is None:
            return NAME
        return f"{self.record.name} at {self.gateway.endpoint.shown}"


@asynccontextmanager
async def workers(
    options: ModelOptions, profile: DomainProfile, store: Store, seed: int = 0, budget: Budget | None = None
) -> AsyncIterator[Workers]:
    """Build the roles of a run and close their connections on exit."""
    async with dismissed(await hire(options, profile, store, seed, budget=budget)) as staff:
        yield staff


async def hire(
    options: ModelOptions,
    profile: DomainProfile,
    store: Store,
    seed: int = 0,
    budget: Budget | None = None,
) -> Workers:
    """Build the roles that the options ask for; probe a model first.

    Args:
        budget: What these workers share with others; None: the options' limits are for them alone.

    Raises:
        ModelRefused: The endpoint refuses every call, or lacks what is required.
        ModelUnavailable: It can't be reached.
    """
    embedder = embedder_for(store.folder, options.settings.embedding_model)
    if options.name is None:
        if options.settings.scale not in DOMAIN_SCALES:
            raise WrongUse(f"the scale {options.settings.scale} takes a model", remedy="name one", option="model")
        if options.settings.without:
            raise WrongUse(
                "the built-in roles (no LLM) have no prompts to leave parts out of",
                remedy="name a model",
                option="model",
            )
        return embedded_workers(profile, embedder, seed)
    from pollex.gateway.gateway import RETRYABLE as SENT_AGAIN  # the client behind it takes a second to import
    from pollex.gateway.gateway import Gateway
    from pollex.gateway.probe import probe
    from pollex.store.ledger import StoreLedger

    endpoint = options.chat or options.endpoint()
    capabilities = await probe(endpoint, max_wait=options.limits.max_wait)
    ledger, store.prompts = StoreLedger(store), not options.no_prompts
    refused: frozenset[Literal["refused"]] = frozenset({"refused"} if options.retry_refused else ())
    retry_outcomes = SENT_AGAIN | refused
    gateway = Gateway(
        endpoint, ledger, options.limits, retry_outcomes=retry_outcomes, window=capabilities.window, budget=budget
    )
    made = llm_workers(options, profile, store, embedder, gateway, capabilities, seed)
    made.retry_outcomes, made.traced = RETRYABLE | refused, ledger.trace
    return made


@asynccontextmanager
async def dismissed(staff: Workers) -> AsyncIterator[Workers]:
    """Await pending calls and close connections on exit."""
    try:
        yield staff
    finally:
        if staff.gateway is not None:
            await staff.gateway.close()


def embedded_workers(profile: DomainProfile, embedder: Embedder, seed: int = 0) -> Workers:
    """Build all four roles without an LLM."""
    return Workers(roles=embedded_roles(profile, embedder, seed), record=embedded_record(embedder), embedder=embedder)


def llm_workers(
    options: ModelOptions,
    profile: DomainProfile,
    store: Store,
    embedder: Embedder,
    gateway: Gateway,
    capabilities: Capabilities,
    seed: int,
) -> Workers:
    """Build all four roles on a model."""
    from pollex.agents.llm.asker import Asker  # the client behind it takes a second to import
    from pollex.agents.llm.roles import build_llm_roles

    settings = options.settings.but(seed=seed, place=gateway.endpoint.shown, capabilities=capabilities)
    roles = Roles(*build_llm_roles(Asker(gateway, capabilities, profile, settings, store.secret), embedder))
    return Workers(
        roles=roles,
        record=JudgeRecord(kind=LLM, name=capabilities.model, fingerprint=roles.judge.fingerprint, options=settings),
        embedder=embedder,
        prompts=prompt_versions(),
        secrets=gateway.endpoint.secrets,
        gateway=gateway,
        capabilities=capabilities,
    )


def prompt_versions() -> dict[str, str]:
    """Return the version of every prompt, by name."""
    from pollex.prompts.prompt import load, names

    return {name: load(name).version for name in names()}


def embedded_roles(profile: DomainProfile, embedder: Embedder, seed: int = 0) -> Roles:
    """Build all four roles without an LLM."""
    return Roles(
        extractor=EmbeddedExtractor(embedder, seed),
        summarizer=EmbeddedSummarizer(profile.words()),
        deduplicator=EmbeddedDeduplicator(embedder),
        judge=EmbeddedJudge(embedder),
    )


def embedded_record(embedder: Embedder) -> JudgeRecord:
    """Return the record of a built-in judge that has not learned yet."""
    settings = JudgeSettings(embedding_model=embedder.model)
    return JudgeRecord(kind=EMBEDDED, name=NAME, fingerprint="", options=settings)


def embedder_for(store: Path | None, model: str = DEFAULT_MODEL) -> Embedder:
    """Return the embedding model with the store's cache."""
    return Embedder(model, None if store is None else store / EMBEDDINGS)


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
        return with_built_in_judge(hired, rubric_set.rubrics, record.learned)
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
