"""Who does the work of a run: the embedded roles, or an LLM's through the gateway."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin, get_type_hints

from pollex.agents.answers import MENDABLE, Outcome, ScaleName
from pollex.agents.embedded.deduplicator import EmbeddedDeduplicator
from pollex.agents.embedded.embedder import DEFAULT_MODEL, Embedder
from pollex.agents.embedded.extractor import EmbeddedExtractor
from pollex.agents.embedded.judge import EmbeddedJudge
from pollex.agents.embedded.summarizer import EmbeddedSummarizer
from pollex.errors import WrongUse
from pollex.gateway.endpoint import OPENAI, Endpoint
from pollex.gateway.limits import Budget, Limits
from pollex.graphs.rubric_records import JudgeRecord
from pollex.graphs.running import Setting
from pollex.graphs.runtime import WAVE, Roles
from pollex.prompts.messages import Closing
from pollex.prompts.profile import DomainProfile
from pollex.salt import salt_of

if TYPE_CHECKING:
    from pollex.agents.llm.options import LlmOptions
    from pollex.gateway.capabilities import Capabilities
    from pollex.gateway.chat_models import ChatModel
    from pollex.gateway.gateway import Gateway
    from pollex.store.spans import Tracer
    from pollex.store.store import Store

EMBEDDINGS = "embeddings"
"""Folder of cached embeddings inside a store."""

JUDGING = ("scale", "elicitation", "samples", "canary", "straight_lining", "closing")
"""What a rubric set remembers of how its judge was asked, and asks again."""


@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """Which model, how hard it may be worked, and what it is asked for.

    Attributes:
        model: None for the embedded roles.
        scale: How rubrics are asked; all but `likert-domain` leave the domain out of the judging.
        elicitation: `batched` or `independent`; see `agents.llm.options.LlmOptions`, also for what follows.
        value: What NetSAT adds up; see `graphs.rubric_records.JudgeRecord`.
    """

    model: str | None = None
    base_url: str | None = None
    limits: Limits = field(default_factory=Limits)
    scale: ScaleName = "likert-domain"
    elicitation: Literal["batched", "independent"] = "batched"
    samples: int = 1
    require: Literal["logprobs"] | None = None
    without: frozenset[str] = frozenset()
    canary: bool = True
    straight_lining: bool = True
    closing: Closing = "system"
    retry_refused: bool = False
    value: Literal["auto", "expected", "mode"] = "auto"
    embedding_model: str = DEFAULT_MODEL

    def __post_init__(self) -> None:
        """Refuses words that nobody would heed.

        Raises:
            WrongUse: Says which, and those that are known.
        """
        for name, hint in get_type_hints(ModelOptions).items():
            words = [word for part in (hint, *get_args(hint)) if get_origin(part) is Literal for word in get_args(part)]
            if words and (given := getattr(self, name)) is not None and given not in words:
                raise WrongUse(f"{name} is {given!r}", remedy=f"use one of {', '.join(words)}")

    def endpoint(self) -> Endpoint:
        """Where to ask. The key comes from the environment alone, so that it stands in no shell history.

        White space around it is what a file that it was read from ended with.
        """
        assert self.model is not None, "the embedded roles need no endpoint"
        return Endpoint(self.model, self.base_url or OPENAI, os.environ.get("OPENAI_API_KEY", "").strip() or None)


@dataclass(kw_only=True)
class Workers:
    """The roles of a run, and what the run must know of them.

    Attributes:
        record: How a rubric set remembers the judge.
        prompts: Version of each prompt by name; empty for the embedded roles.
        gateway: None for the embedded roles; `capabilities` likewise.
        again: Outcomes that a resume asks about again.
        traced: Told the run's tracer, for spans of model calls.
        notes: What to tell the user before the work.
    """

    roles: Roles
    record: JudgeRecord
    embedder: Embedder
    prompts: dict[str, str] = field(default_factory=dict)
    secrets: tuple[str, ...] = ()
    again: frozenset[Outcome] = MENDABLE
    gateway: Gateway | None = None
    capabilities: Capabilities | None = None
    traced: Callable[[Tracer], None] = lambda _tracer: None
    notes: list[str] = field(default_factory=list)

    @property
    def at_once(self) -> int:
        """About how many conversations to ask at once: twice what may be out, so that slots never stand empty."""
        return WAVE if self.gateway is None else 2 * self.gateway.limits.concurrency

    def setting(self, store: Store, **rest: Any) -> Setting:
        """The setting of a run that they work in; `rest` as of `Setting.of`."""
        return Setting.of(
            store, again=self.again, secrets=self.secrets, traced=self.traced, at_once=self.at_once, **rest
        )

    def for_method(self, method: str) -> Roles:
        """The roles with all that a way to learn needs.

        Raises:
            WrongUse: SPUR, and no model.
        """
        if method != "spur":
            return self.roles
        if self.gateway is None:
            raise WrongUse("SPUR rewrites rubrics, and that takes a model", remedy="name one: --model")
        from pollex.agents.llm.judge import LlmJudge
        from pollex.agents.llm.updater import LlmUpdater

        assert isinstance(self.roles.judge, LlmJudge), "who has a gateway judges by it"
        return replace(self.roles, updater=LlmUpdater(self.roles.judge.asker))

    @property
    def said(self) -> str:
        """Who works, for people."""
        if self.gateway is None:
            return "embedded (no LLM, no network)"
        return f"{self.record.name} at {self.gateway.endpoint.shown}"


@asynccontextmanager
async def workers(
    options: ModelOptions, profile: DomainProfile, store: Store, seed: int = 0, budget: Budget | None = None
) -> AsyncIterator[Workers]:
    """`hire`, with a model's connections closed at the end."""
    async with dismissed(await hire(options, profile, store, seed, budget=budget)) as staff:
        yield staff


async def hire(
    options: ModelOptions,
    profile: DomainProfile,
    store: Store,
    seed: int = 0,
    chat: ChatModel | None = None,
    budget: Budget | None = None,
) -> Workers:
    """The roles that the options ask for; a model is probed first.

    Args:
        chat: A LangChain chat model in place of an endpoint.
        budget: What these workers share with others; None: the options' limits are for them alone.

    Raises:
        ModelRefused: The endpoint refuses every call, or lacks what is required.
        ModelUnavailable: It can't be reached.
    """
    embedder = embedder_for(store.folder, options.embedding_model)
    if options.model is None and chat is None:
        if options.scale != "likert-domain":
            raise WrongUse(f"the scale {options.scale} takes a model", remedy="name one: --model")
        if options.without:
            raise WrongUse("the embedded roles have no prompts to leave parts out of", remedy="name a model: --model")
        return embedded_workers(profile, embedder, seed)
    from pollex.gateway.gateway import MENDABLE as SENT_AGAIN  # the client behind it takes a second to import
    from pollex.gateway.gateway import Gateway
    from pollex.gateway.probe import probe
    from pollex.store.ledger import StoreLedger

    endpoint = chat or options.endpoint()
    capabilities = await probe(endpoint)
    ledger = StoreLedger(store)
    refused: frozenset[Literal["refused"]] = frozenset({"refused"} if options.retry_refused else ())
    again = SENT_AGAIN | refused
    gateway = Gateway(endpoint, ledger, options.limits, again=again, window=capabilities.window, budget=budget)
    made = llm_workers(options, profile, store, embedder, gateway, capabilities, seed)
    made.again, made.traced = MENDABLE | refused, ledger.trace
    return made


@asynccontextmanager
async def dismissed(staff: Workers) -> AsyncIterator[Workers]:
    """Workers whose calls are awaited and whose connections are closed at the end."""
    try:
        yield staff
    finally:
        if staff.gateway is not None:
            await staff.gateway.close()


def embedded_workers(profile: DomainProfile, embedder: Embedder, seed: int = 0) -> Workers:
    """All four roles without an LLM."""
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
    """All four roles on a model."""
    from pollex.agents.llm.roles import build_llm_roles

    roles = Roles(
        *build_llm_roles(gateway, capabilities, profile, llm_options(options, salt_of(store), seed), embedder)
    )
    record = JudgeRecord(
        kind="llm",
        name=capabilities.model,
        fingerprint=roles.judge.fingerprint,
        value=options.value,
        options={
            "place": gateway.endpoint.shown,
            **{name: getattr(options, name) for name in JUDGING},
            "without": sorted(options.without),
            "seed": seed,
            "capabilities": capabilities.as_dict(),
        },
    )
    return Workers(
        roles=roles,
        record=record,
        embedder=embedder,
        prompts=prompt_versions(),
        secrets=gateway.endpoint.secrets,
        gateway=gateway,
        capabilities=capabilities,
    )


def llm_options(options: ModelOptions, salt: bytes, seed: int) -> LlmOptions:
    """What the roles on a model are told."""
    from pollex.agents.llm.options import LlmOptions

    return LlmOptions(
        salt=salt,
        without=options.without if options.scale == "likert-domain" else options.without | {"domain"},
        scale=options.scale,
        elicitation=options.elicitation,
        samples=options.samples,
        require=options.require,
        seed=seed,
        canary=options.canary,
        straight_lining=options.straight_lining,
        closing=options.closing,
    )


def prompt_versions() -> dict[str, str]:
    """The version of every prompt, by name."""
    from pollex.prompts.prompt import load, names

    return {name: load(name).version for name in names()}


def embedded_roles(profile: DomainProfile, embedder: Embedder, seed: int = 0) -> Roles:
    """All four roles without an LLM."""
    return Roles(
        extractor=EmbeddedExtractor(embedder, seed),
        summarizer=EmbeddedSummarizer(profile.words()),
        deduplicator=EmbeddedDeduplicator(embedder),
        judge=EmbeddedJudge(embedder),
    )


def embedded_record(embedder: Embedder) -> JudgeRecord:
    """How a rubric set remembers the embedded judge, before it has learnt anything."""
    return JudgeRecord(kind="embedded", name="embedded", fingerprint="", options={"embedding_model": embedder.model})


def embedder_for(store: Path | None, model: str = DEFAULT_MODEL) -> Embedder:
    """The embedding model with the store's cache."""
    return Embedder(model, None if store is None else store / EMBEDDINGS)
