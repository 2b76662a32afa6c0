"""The agents of a run: the built-in roles, or an LLM's through the gateway."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pollex.agents.embedded import NAME
from pollex.agents.embedded.deduplicator import NEAR, EmbeddedDeduplicator
from pollex.agents.embedded.embedder import Embedder
from pollex.agents.embedded.extractor import EmbeddedExtractor
from pollex.agents.embedded.judge import EmbeddedJudge
from pollex.agents.embedded.summarizer import EmbeddedSummarizer
from pollex.agents.roles import Judge, Roles
from pollex.errors import WrongUse
from pollex.gateway.budget import Budget
from pollex.graphs.context import BATCH
from pollex.prompts.domain import DomainProfile
from pollex.rubrics.answers import DOMAIN_SCALES, RETRYABLE, Outcome
from pollex.rubrics.judge_settings import DEFAULT_MODEL, JudgeSettings
from pollex.rubrics.records import EMBEDDED, LLM, JudgeRecord
from pollex.rubrics.rubric import BUILT_IN, Rubric
from pollex.services.options import ModelOptions
from pollex.services.runs import RunSettings

if TYPE_CHECKING:
    from pollex.gateway.batches.desk import Round
    from pollex.gateway.capabilities import Capabilities
    from pollex.gateway.gateway import Gateway
    from pollex.store.spans import Tracer
    from pollex.store.store import Store


BY_BATCH = 10_000
"""Conversations whose calls go into one batch; more take another one."""

WAVES = 4
"""Conversations in flight for each call that a model answers at once: at the end of so many, some slots wait."""

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
        by_batch: Whether calls that don't wait for each other are left to a provider's batch.
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
    by_batch: bool = False

    @property
    def at_once(self) -> int:
        """Return how many conversations to ask about at once: twice the concurrent calls."""
        if self.gateway is None:
            return BATCH
        return self.in_flight if self.by_batch else 2 * self.gateway.limits.concurrency

    @property
    def in_flight(self) -> int:
        """Return how many conversations to have in flight; those that wait for one batch are many.

        LangGraph looks at all of them whenever one is done: more than keep the calls busy only cost.
        """
        if self.by_batch or self.gateway is None:
            return BY_BATCH if self.by_batch else BATCH
        return min(BATCH, WAVES * self.gateway.limits.concurrency)

    def used(self) -> dict[str, Any]:
        """Return the model's usage so far; empty for the built-in roles."""
        if self.gateway is None:
            return {}
        total, price = self.gateway.used.total, self.gateway.limits.price
        return {
            "calls": total.asked,
            "sent": total.sent,
            "known": total.known,
            "prompt_tokens": total.prompt,
            "completion_tokens": total.completion,
            "outcomes": dict(total.outcomes),
            "cost": total.cost(price),
            "price": [price.read, price.written, price.discount] if price else None,
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
            batch=self.in_flight,
            at_once=self.at_once,
            used=self.used,
            place="" if self.gateway is None else self.gateway.endpoint.shown,
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

    def beside_built_in(self, built_in: Roles, without: frozenset[str]) -> Workers:
        """Return workers whose pool is of both sides; these where no model works or the user wants that."""
        from pollex.agents.mixed import mixed  # what works with a model alone needs

        return self if self.gateway is None or BUILT_IN in without else self._with(mixed(self.roles, built_in))

    def leaving(self, rubrics: Iterable[Rubric], learned: Mapping[str, Any]) -> Workers:
        """Return workers whose judge leaves a set's built-in and distilled rubrics to judges without a model.

        Args:
            learned: By rubric, what these judges learned.
        """
        from pollex.agents.distilled.judge import LocalJudge

        own = {rubric.id for rubric in rubrics if rubric.answered_by}
        if self.gateway is None or not own:
            return self
        known = {id_: what for id_, what in learned.items() if id_ in own}
        return self.judging_beside(LocalJudge(self.embedder, known))

    def judging_beside(self, local: Judge) -> Workers:
        """Return workers whose model judges what `local` doesn't."""
        from pollex.agents.mixed import MixedJudge

        judge = self.roles.judge.model if isinstance(self.roles.judge, MixedJudge) else self.roles.judge
        return self._with(replace(self.roles, judge=MixedJudge(judge, local)))

    def _with(self, roles: Roles) -> Workers:
        options = self.record.options.but(embedding_model=self.embedder.model)
        return replace(self, roles=roles, record=self.record.model_copy(update={"options": options}))

    @property
    def display_name(self) -> str:
        """Display name of the judge, with its endpoint."""
        if self.gateway is None:
            return NAME
        return f"{self.record.name} at {self.gateway.endpoint.shown}"


@asynccontextmanager
async def workers(
    options: ModelOptions,
    profile: DomainProfile,
    store: Store,
    seed: int = 0,
    budget: Budget | None = None,
    together: Round | None = None,
) -> AsyncIterator[Workers]:
    """Build the roles of a run and close their connections on exit."""
    async with dismissed(await hire(options, profile, store, seed, budget, together)) as staff:
        yield staff


async def hire(
    options: ModelOptions,
    profile: DomainProfile,
    store: Store,
    seed: int = 0,
    budget: Budget | None = None,
    together: Round | None = None,
) -> Workers:
    """Build the roles that the options ask for; probe an unknown model first, fetch what its batches brought.

    Args:
        budget: What these workers share with others; None: the options' limits are for them alone.
        together: Whose batches are handed in together with theirs; None: nobody's.

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
        return embedded_workers(profile, embedder, seed, options.settings.alike)
    from pollex.gateway.capabilities import Capabilities
    from pollex.gateway.gateway import RETRYABLE as SENT_AGAIN  # the client behind it takes a second to import
    from pollex.gateway.gateway import Gateway
    from pollex.gateway.probe import probe
    from pollex.gateway.recorded import RecordedEndpoint
    from pollex.services.batches import desk_for
    from pollex.store.ledger import StoreLedger

    endpoint = options.chat or options.endpoint()
    if isinstance(endpoint, RecordedEndpoint):
        capabilities = endpoint.capabilities
    elif options.batch_files:  # there need not be a server
        capabilities = options.settings.capabilities or Capabilities.assumed(endpoint.model)
    elif options.able is not None:
        capabilities = options.able
    else:
        capabilities = await probe(endpoint, max_wait=options.limits.max_wait)
    ledger, store.prompts = StoreLedger(store), store.texts and not options.no_prompts
    refused: frozenset[Literal["refused"]] = frozenset({"refused"} if options.retry_refused else ())
    retry_outcomes = SENT_AGAIN | refused
    desk = desk_for(options, endpoint, store, ledger, together)
    gateway = Gateway(
        endpoint,
        ledger,
        options.limits,
        retry_outcomes=retry_outcomes,
        window=capabilities.window,
        budget=budget,
        desk=desk,
    )
    if desk is not None:
        await desk.fetch()
    made = llm_workers(options, profile, store.secret, embedder, gateway, capabilities, seed)
    made.by_batch = desk is not None and bool(desk.to)
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


def embedded_workers(profile: DomainProfile, embedder: Embedder, seed: int = 0, alike: float = NEAR) -> Workers:
    """Build all four roles without an LLM; see `EmbeddedDeduplicator` for `alike`."""
    roles = embedded_roles(profile, embedder, seed, alike)
    return Workers(roles=roles, record=embedded_record(embedder), embedder=embedder)


def llm_workers(
    options: ModelOptions,
    profile: DomainProfile,
    salt: bytes,
    embedder: Embedder,
    gateway: Gateway,
    capabilities: Capabilities,
    seed: int,
) -> Workers:
    """Build all four roles on a model."""
    from pollex.agents.llm.asker import Asker  # the client behind it takes a second to import
    from pollex.agents.llm.deduplicator import LlmDeduplicator
    from pollex.agents.llm.extractor import LlmExtractor
    from pollex.agents.llm.judge import LlmJudge
    from pollex.agents.llm.summarizer import LlmSummarizer

    settings = options.settings.but(seed=seed, place=gateway.endpoint.shown, capabilities=capabilities)
    asker = Asker(gateway, capabilities, profile, settings, salt)
    roles = Roles(
        extractor=LlmExtractor(asker),
        summarizer=LlmSummarizer(asker),
        deduplicator=LlmDeduplicator(asker, embedder),
        judge=LlmJudge(asker),
    )
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


def embedded_roles(profile: DomainProfile, embedder: Embedder, seed: int = 0, alike: float = NEAR) -> Roles:
    """Build all four roles without an LLM."""
    return Roles(
        extractor=EmbeddedExtractor(embedder, seed),
        summarizer=EmbeddedSummarizer(profile.words()),
        deduplicator=EmbeddedDeduplicator(embedder, alike),
        judge=EmbeddedJudge(embedder),
    )


def embedded_record(embedder: Embedder) -> JudgeRecord:
    """Return the record of a built-in judge that has not learned yet."""
    settings = JudgeSettings(embedding_model=embedder.model)
    return JudgeRecord(kind=EMBEDDED, name=NAME, fingerprint="", options=settings)


def embedder_for(store: Path | None, model: str = DEFAULT_MODEL) -> Embedder:
    """Return the embedding model with the store's cache."""
    return Embedder(model, None if store is None else store / EMBEDDINGS)
