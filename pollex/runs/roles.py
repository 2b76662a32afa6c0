"""The agents of a run: the built-in roles, or an LLM's through the gateway."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from pollex.agents.embedded import BUILT_IN_MODEL_NAME
from pollex.agents.embedded.embedder import Embedder
from pollex.agents.embedded.judge import EmbeddedJudge
from pollex.agents.roles import Judge, Roles
from pollex.errors import BadRubrics, WrongUse
from pollex.gateway.budget import Budget
from pollex.gateway.calls import Capabilities
from pollex.graphs.context import MAX_CONVERSATIONS_PER_BATCH
from pollex.prompts.domain import DomainProfile
from pollex.rubrics.answers import (
    RETRYABLE_OUTCOMES,
    SCALE_NAMES_WITH_DOMAIN_IN_PROMPT,
    NoAnswerOutcome,
)
from pollex.rubrics.judge_settings import (
    DEFAULT_EMBEDDING_MODEL,
    SETTING_NAMES_CHANGING_ANY_ROLE,
    SETTING_NAMES_CHANGING_JUDGE_ANSWERS,
    JudgeSettings,
)
from pollex.rubrics.records import EMBEDDED_JUDGE_KIND, LLM_JUDGE_KIND, JudgeRecord
from pollex.rubrics.rubric import ANSWERED_BY_BUILT_IN_JUDGE, ANSWERED_BY_DISTILLED_JUDGE, Rubric
from pollex.rubrics.rubric_set import RubricSet
from pollex.runs.options import ModelOptions
from pollex.runs.run import RunSettings
from pollex.store.folder import EMBEDDINGS_FOLDER_NAME

if TYPE_CHECKING:
    from pollex.agents.llm.asker import PromptAsker
    from pollex.agents.llm.judge import AnswerMemory
    from pollex.conversations.conversation import Conversation
    from pollex.gateway.batches.desk import BatchSubmissionRound, ModelBatchQueue
    from pollex.gateway.endpoint import Endpoint
    from pollex.gateway.gateway import Gateway
    from pollex.gateway.recorded import RecordedEndpoint
    from pollex.gateway.transport import ChatModel
    from pollex.store.ledger import StoreCallLedger
    from pollex.store.spans import Tracer
    from pollex.store.store import Store

CONVERSATIONS_PER_PROVIDER_BATCH = 10_000
"""Conversations whose calls go into one batch; more take another one."""

CONVERSATIONS_IN_FLIGHT_PER_SLOT = 4
"""Conversations in flight for each call that a model answers at once: at the end of so many, some slots wait."""


@dataclass(kw_only=True)
class RunRoles:
    """The roles of a run, with its model and its resources; left as a context they close its connections.

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
    retry_outcomes: frozenset[NoAnswerOutcome] = RETRYABLE_OUTCOMES
    gateway: Gateway | None = None
    capabilities: Capabilities | None = None
    traced: Callable[[Tracer], None] = lambda _tracer: None
    notes: list[str] = field(default_factory=list)
    by_batch: bool = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        """Await pending calls and close connections."""
        if self.gateway is not None:
            await self.gateway.close()

    @property
    def at_once(self) -> int:
        """Return how many conversations to ask about at once: twice the concurrent calls."""
        if self.gateway is None:
            return MAX_CONVERSATIONS_PER_BATCH
        if self.by_batch:
            return self.in_flight
        return 2 * self.gateway.limits.concurrency

    @property
    def in_flight(self) -> int:
        """Return how many conversations to have in flight; those that wait for one batch are many.

        LangGraph looks at all of them whenever one is done: more than keep the calls busy only
        cost.
        """
        if self.by_batch or self.gateway is None:
            return (
                CONVERSATIONS_PER_PROVIDER_BATCH if self.by_batch else MAX_CONVERSATIONS_PER_BATCH
            )
        return min(
            MAX_CONVERSATIONS_PER_BATCH,
            CONVERSATIONS_IN_FLIGHT_PER_SLOT * self.gateway.limits.concurrency,
        )

    @property
    def known_answers(self) -> int:
        """Return how many answers of earlier runs the model's judge gave without a call."""
        judge = self.roles.judge
        model_judge = getattr(judge, "model", judge)  # of a judge with a built-in side, the model's
        return int(getattr(model_judge, "known_answers", 0))

    def used(self) -> dict[str, object]:
        """Return the model's usage so far; empty for the built-in roles."""
        if self.gateway is None:
            return {}

        # totals over all roles, as the run's progress and its record keep them
        total = self.gateway.used.total
        price = self.gateway.limits.price
        return {
            "calls": total.asked,
            "sent": total.sent,
            "known": total.known,
            "prompt_tokens": total.prompt,
            "completion_tokens": total.completion,
            "outcomes": dict(total.outcomes),
            "cost": total.cost(price),
            "estimated_cost": total.estimated_cost(price),
            "price": [price.read, price.written, price.discount] if price else None,
            "max_calls": self.gateway.limits.max_calls,
            "max_cost": self.gateway.limits.max_cost,
        }

    @property
    def behind(self) -> dict[str, Any]:
        """What stands behind the digests of roles, for people; empty for the built-in roles."""
        if self.gateway is None or self.capabilities is None:
            return {}

        from pollex.store.settings_told import (  # models alone need it
            WORDS_BY_CAPABILITY,
            make_setting_writable,
        )

        # abilities of the endpoint, settings and prompts: a change of any changes answers
        able = {}
        for name in WORDS_BY_CAPABILITY:
            able[f"can {name}"] = getattr(self.capabilities, name)

        able["can limit_field"] = self.capabilities.limit_field
        if self.capabilities.roles != "any":
            able["can roles"] = self.capabilities.roles
        if self.capabilities.most_tokens is not None:
            able["can most_tokens"] = self.capabilities.most_tokens

        settings = self.record.options.facts(
            SETTING_NAMES_CHANGING_ANY_ROLE | SETTING_NAMES_CHANGING_JUDGE_ANSWERS
        )
        settings_asked = {}
        for name, value in settings.items():
            settings_asked[f"setting {name}"] = make_setting_writable(value)

        prompts = {}
        for name, version in self.prompts.items():
            prompts[f"prompt {name}"] = version

        return {
            "model": self.capabilities.model,
            **able,
            **settings_asked,
            **prompts,
        }

    def setting(self, store: Store, **rest: object) -> RunSettings:
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
            behind=self.behind,
            **rest,
        )

    def for_method(self, method: str) -> Roles:
        """Return the roles that a method of learning needs.

        Raises:
            WrongUse: SPUR, and no model.
        """
        # only SPUR has a role of its own, and it takes a model
        if method != "spur":
            return self.roles
        if self.gateway is None:
            raise WrongUse(
                "SPUR rewrites rubrics, and that takes a model",
                hint="name one",
                option="model",
            )

        from pollex.agents.llm.judge import LlmJudge
        from pollex.agents.llm.summarizer import LlmUpdater

        assert isinstance(self.roles.judge, LlmJudge), "who has a gateway judges by it"

        return replace(self.roles, updater=LlmUpdater(self.roles.judge.asker))

    def beside_built_in(self, built_in: Roles, without: frozenset[str]) -> RunRoles:
        """Return workers whose pool is of both sides; these where no model works or the user wants that."""
        from pollex.agents.mixed import mix_roles  # what works with a model alone needs

        # without a model both sides would be the same
        if self.gateway is None or ANSWERED_BY_BUILT_IN_JUDGE in without:
            return self
        return self._with(mix_roles(self.roles, built_in))

    def leaving(self, rubrics: Iterable[Rubric], learned: Mapping[str, Any]) -> RunRoles:
        """Return workers whose judge leaves a set's built-in and distilled rubrics to judges without a model.

        Args:
            learned: By rubric, what these judges learned.
        """
        from pollex.agents.distilled.judge import JudgeWithoutModel

        # only the rubrics that are answered without a model need the second judge
        own_ids = set()
        for rubric in rubrics:
            if rubric.answered_by:
                own_ids.add(rubric.id)

        if self.record.built_in or not own_ids:
            return self

        learned_of_own = {}
        for id_, what in learned.items():
            if id_ in own_ids:
                learned_of_own[id_] = what

        return self.judging_beside(JudgeWithoutModel(self.embedder, learned_of_own))

    def judging_by(self, judge: Judge, record: JudgeRecord) -> RunRoles:
        """Return workers with another judge."""
        return replace(
            self,
            roles=replace(self.roles, judge=judge),
            record=record,
        )

    def judging_beside(self, local: Judge) -> RunRoles:
        """Return workers whose model judges what `local` doesn't."""
        from pollex.agents.mixed import MixedJudge

        # one that is mixed already keeps its model and gets another local side
        if isinstance(self.roles.judge, MixedJudge):
            judge = self.roles.judge.model
        else:
            judge = self.roles.judge

        return self._with(replace(self.roles, judge=MixedJudge(judge, local)))

    def _with(self, roles: Roles) -> RunRoles:
        # a local judge embeds: the record says with what, as another model would answer differently
        options = self.record.options.but(embedding_model=self.embedder.model)
        return replace(
            self,
            roles=roles,
            record=self.record.model_copy(update={"options": options}),
        )

    @property
    def display_name(self) -> str:
        """Display name of the judge, with its endpoint."""
        if self.record.built_in:
            return BUILT_IN_MODEL_NAME
        if self.gateway is None:
            return f"{self.record.name}, whose answers are all in the store: nobody is asked"
        return f"{self.record.name} at {self.gateway.endpoint.shown}"


async def build_run_roles(
    options: ModelOptions,
    profile: DomainProfile,
    store: Store,
    seed: int = 0,
    budget: Budget | None = None,
    together: BatchSubmissionRound | None = None,
) -> RunRoles:
    """Build the roles that the options ask for; probe an unknown model first, fetch what its batches brought.

    Args:
        budget: What these workers share with others; None: the options' limits are for them alone.
        together: Whose batches are handed in together with theirs; None: nobody's.

    Raises:
        ModelRefused: The endpoint refuses every call, or lacks what is required.
        ModelUnavailable: It can't be reached.
    """
    embedder = make_embedder(store.folder, options.settings.embedding_model)
    if options.name is None:
        require_no_model_settings(options.settings)
        return build_embedded_run_roles(profile, embedder, seed, options.settings.alike)

    # the client behind it takes a second to import
    from pollex.runs.batches import open_batch_queue
    from pollex.store.ledger import StoreCallLedger
    from pollex.store.resume import StoredAnswerMemory

    endpoint = options.chat or options.endpoint()
    capabilities = await determine_capabilities(options, endpoint)
    # calls are recorded in the store; prompts only if texts may be
    ledger = StoreCallLedger(store)
    store.prompts = store.texts and not options.no_prompts
    desk = open_batch_queue(options, endpoint, store, ledger, together)
    gateway = open_gateway(options, endpoint, capabilities, ledger, budget, desk)
    # results of earlier batches come first, so that nothing is paid for twice
    if desk is not None:
        await desk.fetch()

    # answers of earlier runs are known, unless everything is to be asked again
    retry_outcomes = RETRYABLE_OUTCOMES | list_outcomes_to_ask_again(options)
    memory = None if options.again else StoredAnswerMemory(store, retry_outcomes)
    workers = build_llm_run_roles(
        options, profile, store.secret, embedder, gateway, capabilities, seed, memory
    )
    return replace(
        workers,
        # a desk without a destination only fetches
        by_batch=desk is not None and bool(desk.to),
        retry_outcomes=retry_outcomes,
        traced=ledger.trace,
    )


def require_no_model_settings(settings: JudgeSettings) -> None:
    """Refuse settings that only a model can follow.

    Raises:
        WrongUse: Says which.
    """
    if settings.scale not in SCALE_NAMES_WITH_DOMAIN_IN_PROMPT:
        raise WrongUse(
            f"the scale {settings.scale} takes a model",
            hint="name one",
            option="model",
        )

    if settings.without:
        raise WrongUse(
            "the built-in roles (no LLM) have no prompts to leave parts out of",
            hint="name a model",
            option="model",
        )


async def determine_capabilities(
    options: ModelOptions, endpoint: Endpoint | ChatModel | RecordedEndpoint
) -> Capabilities:
    """Return what an endpoint can do: of a recording, of the options, or by asking it."""
    from pollex.gateway.probe import (
        probe_endpoint,  # with the client, which takes a second to import
    )
    from pollex.gateway.recorded import RecordedEndpoint

    if isinstance(endpoint, RecordedEndpoint):
        return endpoint.capabilities
    if options.batch_files:  # there need not be a server
        return options.settings.capabilities or Capabilities(endpoint.model)
    if options.able is not None:
        from pollex.gateway.endpoint import warn_of_exposure  # as above

        warn_of_exposure(endpoint)
        return options.able
    return await probe_endpoint(
        endpoint, max_wait=options.limits.max_wait, deadline=options.limits.deadline
    )


def list_outcomes_to_ask_again(options: ModelOptions) -> frozenset[Literal["refused"]]:
    """Return the outcomes that the user wants asked again: refusals are final else."""
    return frozenset({"refused"} if options.retry_refused else ())


def open_gateway(
    options: ModelOptions,
    endpoint: Endpoint | ChatModel | RecordedEndpoint,
    capabilities: Capabilities,
    ledger: StoreCallLedger,
    budget: Budget | None,
    desk: ModelBatchQueue | None,
) -> Gateway:
    """Return the connection to a model; see `build_run_roles` for `budget`."""
    from pollex.gateway.gateway import RETRYABLE_OUTCOMES as SENT_AGAIN  # as above
    from pollex.gateway.gateway import Gateway

    return Gateway(
        endpoint,
        ledger,
        options.limits,
        retry_outcomes=SENT_AGAIN | list_outcomes_to_ask_again(options),
        window=capabilities.window,
        budget=budget,
        desk=desk,
        served=capabilities.calls > 0,
    )


def build_embedded_run_roles(
    profile: DomainProfile,
    embedder: Embedder,
    seed: int = 0,
    alike: float | None = None,
) -> RunRoles:
    """Build all four roles without an LLM; see `EmbeddedDeduplicator` for `alike`."""
    roles = build_embedded_roles(profile, embedder, seed, alike)
    return RunRoles(
        roles=roles,
        record=make_embedded_judge_record(embedder),
        embedder=embedder,
    )


def build_llm_run_roles(
    options: ModelOptions,
    profile: DomainProfile,
    salt: bytes,
    embedder: Embedder,
    gateway: Gateway,
    capabilities: Capabilities,
    seed: int,
    memory: AnswerMemory | None = None,
) -> RunRoles:
    """Build all four roles on a model.

    Args:
        memory: Answers of earlier runs, which are not asked again.
    """
    from pollex.agents.llm.asker import PromptAsker  # the client behind it takes a second to import

    # the settings that answers depend on, which the rubric set remembers
    settings = options.settings.but(
        seed=seed,
        place=gateway.endpoint.shown,
        capabilities=capabilities,
    )
    asker = PromptAsker(gateway, capabilities, profile, settings, salt)
    # all roles ask through one gateway, which has the limits and the budget
    roles = build_llm_roles(asker, embedder, memory)
    record = JudgeRecord(
        kind=LLM_JUDGE_KIND,
        name=capabilities.model,
        fingerprint=roles.judge.fingerprint,
        options=settings,
    )

    return RunRoles(
        roles=roles,
        record=record,
        embedder=embedder,
        prompts=list_prompt_versions(),
        secrets=gateway.endpoint.secrets,
        gateway=gateway,
        capabilities=capabilities,
    )


def build_llm_roles(
    asker: PromptAsker,
    embedder: Embedder,
    memory: AnswerMemory | None = None,
) -> Roles:
    """Build all four roles that ask a model, and further ones.

    Args:
        memory: Answers of earlier runs, which are not asked again.
    """
    from pollex.agents.llm.deduplicator import LlmDeduplicator  # as in `build_llm_run_roles`
    from pollex.agents.llm.extractor import LlmExtractor
    from pollex.agents.llm.further import list_further_roles
    from pollex.agents.llm.judge import LlmJudge
    from pollex.agents.llm.summarizer import LlmSummarizer

    kinds = list_further_roles(asker.settings.prompts)
    return Roles(
        extractor=LlmExtractor(asker),
        summarizer=LlmSummarizer(asker),
        deduplicator=LlmDeduplicator(asker, embedder),
        judge=LlmJudge(asker, memory=memory),
        further={kind.role: kind(asker) for kind in kinds},
    )


def list_prompt_versions() -> dict[str, str]:
    """Return the version of every prompt, by name."""
    from pollex.prompts.prompt import list_prompt_names, load_prompt

    return {name: load_prompt(name).version for name in list_prompt_names()}


def build_embedded_roles(
    profile: DomainProfile,
    embedder: Embedder,
    seed: int = 0,
    alike: float | None = None,
) -> Roles:
    """Build all four roles without an LLM.

    Args:
        alike: From which cosine on two rubrics are the same; None for what is usual.
    """
    from pollex.agents.embedded.roles import (  # scoring needs the judge alone
        MIN_COSINE_OF_DUPLICATES,
        EmbeddedDeduplicator,
        EmbeddedExtractor,
        EmbeddedSummarizer,
    )

    return Roles(
        extractor=EmbeddedExtractor(embedder, seed),
        summarizer=EmbeddedSummarizer(profile.words()),
        deduplicator=EmbeddedDeduplicator(
            embedder, MIN_COSINE_OF_DUPLICATES if alike is None else alike
        ),
        judge=EmbeddedJudge(embedder),
    )


def make_embedded_judge_record(embedder: Embedder) -> JudgeRecord:
    """Return the record of a built-in judge that has not learned yet."""
    settings = JudgeSettings(embedding_model=embedder.model)
    return JudgeRecord(
        kind=EMBEDDED_JUDGE_KIND, name=BUILT_IN_MODEL_NAME, fingerprint="", options=settings
    )


def make_embedder(store: Path | None, model: str = DEFAULT_EMBEDDING_MODEL) -> Embedder:
    """Return the embedding model with the store's cache."""
    return Embedder(model, None if store is None else store / EMBEDDINGS_FOLDER_NAME)


def build_judge_without_model(
    record: JudgeRecord,
    embedder: Embedder,
    rubrics: Sequence[Rubric] = (),
) -> Judge:
    """Build a judge that needs no model.

    Raises:
        BadRubrics: There is no judge of this kind, or what it learned can't be used.
    """
    # the kind that is built in, then the one that was learned from a model's answers
    if record.kind == EMBEDDED_JUDGE_KIND:
        return EmbeddedJudge(embedder, record.learned, rubrics)
    if record.kind == ANSWERED_BY_DISTILLED_JUDGE:
        from pollex.agents.distilled.judge import JudgeWithoutModel  # few sets are

        return JudgeWithoutModel(embedder, record.learned)

    judge_kinds = ", ".join((LLM_JUDGE_KIND, EMBEDDED_JUDGE_KIND, ANSWERED_BY_DISTILLED_JUDGE))
    raise BadRubrics(
        f"there is no judge of the kind {record.kind!r:.60}",
        hint=f"use one of {judge_kinds}",
    )


def restore_embedded_judge(
    rubric_set: RubricSet,
    store: Path | None,
    model_name: str = DEFAULT_EMBEDDING_MODEL,
) -> Judge:
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
            hint="fit it for the built-in judge (`pollex refit`), or name the model",
            option={"model": record.name},
        )

    return build_judge_without_model(
        rubric_set.asked_judge,
        make_embedder(store, get_embedding_model_name(record, model_name)),
        rubric_set.rubrics,
    )


async def restore_judge(
    options: ModelOptions,
    rubric_set: RubricSet,
    store: Store,
    budget: Budget | None = None,
    together: BatchSubmissionRound | None = None,
    conversations: Iterable[Conversation] | None = None,
) -> RunRoles:
    """Restore the judge that θ was fitted to; see `build_run_roles` for `budget` and `together`.

    Args:
        conversations: All that it will be asked about, where that is known: if each answer is in
            the store, no endpoint need be named, and none is reached.

    Raises:
        WrongUse: Another judge was asked for, or the set's endpoint or embedding model wasn't
            confirmed.
    """
    record = rubric_set.judge
    # the set's judge is a model: its answers may all be in the store
    if not record.built_in:
        if conversations is not None and not options.again and options.name in (None, record.name):
            recalling = await restore_judge_from_memory(
                rubric_set,
                store,
                conversations,
                options.settings.embedding_model,
            )
            if recalling is not None:
                return recalling

        # else the same model is asked with the same settings
        options_asked = restore_model_options(options, record)
        hired = await build_run_roles(
            options_asked,
            rubric_set.domain,
            store,
            get_judge_seed(record),
            budget,
            together,
        )
        hired.notes += describe_capability_changes(record, hired.capabilities)

        # some rubrics are judged without it, by embeddings
        if any(rubric.answered_by for rubric in rubric_set.all_rubrics):
            hired.embedder = make_embedder(
                store.folder,
                get_embedding_model_name(record, options.settings.embedding_model),
            )

        return hired.leaving(rubric_set.all_rubrics, rubric_set.asked_judge.learned)

    # the built-in judge takes up what it learned
    staff = build_embedded_run_roles(
        rubric_set.domain,
        make_embedder(store.folder, confirm_embedding_model(options, record)),
    )
    return staff.judging_by(
        build_judge_without_model(rubric_set.asked_judge, staff.embedder, rubric_set.rubrics),
        record,
    )


async def restore_judge_from_memory(
    rubric_set: RubricSet,
    store: Store,
    conversations: Iterable[Conversation],
    embedding_model: str,
) -> RunRoles | None:
    """Return workers whose model is the memory of its answers; None where something is left to ask.

    Args:
        embedding_model: The one that the user names.
    """
    # no endpoint is reached: either every answer is known, or nothing is done here
    record = rubric_set.judge
    from pollex.runs.known_answers import (  # sets of a model alone need it
        are_all_answers_known,
        list_questions_of_model,
        make_judge_of_known_answers,
    )

    judge = make_judge_of_known_answers(rubric_set, store)
    questions = list_questions_of_model(rubric_set)
    if judge is None or not await asyncio.to_thread(
        are_all_answers_known, judge, list(conversations), questions
    ):
        return None

    # rubrics that are judged without a model are judged anew: that costs nothing
    embedder = make_embedder(store.folder, get_embedding_model_name(record, embedding_model))
    workers = build_embedded_run_roles(rubric_set.domain, embedder).judging_by(judge, record)
    return workers.leaving(rubric_set.all_rubrics, rubric_set.asked_judge.learned)


def restore_model_options(options: ModelOptions, record: JudgeRecord) -> ModelOptions:
    """Return the options with which the set's judge answers as before.

    A rubric set may come from anybody: an address in it is not asked, and sent no key, unless the
    user names it too.
    """
    # another model answers differently: θ would not fit
    model_name = options.name
    if model_name not in (None, record.name):
        raise WrongUse(
            f"θ was fitted to the answers of {record.name}, not of {model_name}",
            hint=f"fit it again (`pollex refit … --model {model_name}`), or name the model that it has",
            option={"model": record.name},
        )

    from pollex.gateway.endpoint import LANGCHAIN_PREFIX, Endpoint  # sets of a model alone need it

    # the address in a set is only a claim until the user names it as well
    place = record.options.place
    if options.chat is None and options.base_url is None and place != Endpoint(record.name).place:
        is_langchain = place.startswith(LANGCHAIN_PREFIX)
        what = f"the judge {record.name} answered at {place}"
        if is_langchain:
            raise WrongUse(
                what,
                hint="give it in Python: pollex.Scorer.load(PATH, model=…)",
            )

        raise WrongUse(what, hint="confirm it", option={"base_url": place})

    # the record's settings, but for what the user decides about this endpoint
    settings = record.options.but(
        require=options.settings.require,
        embedding_model=get_embedding_model_name(record, options.settings.embedding_model),
    )
    return replace(options, model=record.name, settings=settings)


def confirm_embedding_model(options: ModelOptions, record: JudgeRecord) -> str:
    """Return the embedding model with which the set's built-in judge answers as before."""
    if model_name := options.name:
        raise WrongUse(
            f"θ was fitted to the built-in judge's answers, not to those of {model_name}",
            hint=f"leave the model out, or fit it for the model: `pollex refit … --model {model_name}`",
        )

    return get_embedding_model_name(record, options.settings.embedding_model)


def describe_capability_changes(record: JudgeRecord, now: Capabilities | None) -> list[str]:
    """Warn if the endpoint's capabilities changed since θ was fitted."""
    # nothing known of then or now, or no difference: nothing to warn of
    before = record.options.capabilities
    if before is None or now is None or bool(before.logprobs) == bool(now.logprobs):
        return []

    gave, gives = (
        ("log-probabilities", "none") if before.logprobs else ("none", "log-probabilities")
    )
    return [
        f"when θ was fitted the endpoint gave {gave}, now {gives}: scores differ; `pollex refit` fits θ again"
    ]


def get_judge_seed(record: JudgeRecord) -> int:
    """Return the seed of a judge's calls."""
    return record.options.seed or 0


def get_embedding_model_name(record: JudgeRecord, model_name: str) -> str:
    """Return the embedding model of the set's judge.

    A rubric set may come from anybody: a model that it names is neither fetched nor read, and the
    files of a folder not even hashed, unless the user names it too.
    """
    # the default model is safe; any other must be named by the user, too
    made_with = record.options.embedding_model
    if made_with not in (DEFAULT_EMBEDDING_MODEL, model_name):
        raise WrongUse(
            f"the rubric set's judge embeds with {made_with!r}, which may be fetched or read from disk",
            hint="confirm it",
            option={"embedding_model": made_with},
        )

    return made_with
