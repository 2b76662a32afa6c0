"""The calls, tokens and cost of a run, counted without one call.

The roles on a model are run against a client that records calls instead of making them, so these
counts are exact.
What depends on answers (rubrics, duplicates, the size of the pool) is an upper bound, and reported
as such.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path
from typing import NamedTuple

from pollex.agents.llm.adapting import adapt_rubrics_to_domain
from pollex.agents.llm.asker import PromptAsker
from pollex.agents.llm.extractor import LlmExtractor
from pollex.agents.llm.further import list_further_roles
from pollex.agents.llm.judge import AnswerMemory, LlmJudge
from pollex.agents.llm.summarizer import LlmSummarizer, LlmUpdater
from pollex.agents.roles import ask_both_sides
from pollex.conversations.conversation import Conversation, Label
from pollex.conversations.logs import Logs
from pollex.errors import PollexError
from pollex.gateway.budget import UsageTable
from pollex.gateway.calls import Call, Capabilities, FailedCall, Outcome, estimate_prompt_tokens
from pollex.gateway.endpoint import Endpoint
from pollex.prompts.domain import DomainProfile
from pollex.prompts.prompt import load_prompt
from pollex.rubrics.answers import Answer, Question, Unanswered
from pollex.rubrics.judge_settings import MAX_RUBRICS_PER_MODEL_CALL
from pollex.rubrics.learning.settings import LearnSettings
from pollex.rubrics.learning.thumbs import SplitSides, split_logs_into_training_and_held_out
from pollex.rubrics.rubric import (
    ANSWERED_BY_BUILT_IN_JUDGE,
    Polarity,
    Reason,
    Rubric,
    make_content_id,
)
from pollex.runs.earlier_runs import EarlierPool, find_capabilities_in_earlier_runs
from pollex.runs.known_answers import (
    CONVERSATIONS_PER_QUERY,
    ESTIMATED_TOKENS_PER_ANSWER,
)
from pollex.runs.options import ModelOptions, RunOptions
from pollex.store.folder import read_secret
from pollex.store.resume import StoredAnswerMemory
from pollex.store.store import Store

WORD_FOR_EXACT_CALL_COUNT = "planned"
WORDS_FOR_UPPER_BOUND_OF_CALLS = "at most"

LABEL_BY_POLARITY: dict[Polarity, Label] = {"sat": Label.POSITIVE, "dsat": Label.NEGATIVE}

_SAMPLE_REASON_WORDS = 30
_SAMPLE_RUBRIC_WORDS = 16


LIKELY_REASONS_PER_CONVERSATION = 0.8
"""Reasons that a conversation gives, of up to three: in many there is none to be seen."""

LIKELY_NEW_RUBRICS_PER_BATCH = 2.0
"""New rubrics of a batch of reasons: most reasons say again what an earlier batch said."""


LIKELY_SHARE_OF_MAX_TOKENS = 0.4
"""Share of the tokens that a stage may write which its usual reply has; a third on the recorded run."""

LIKELY_TOKEN_SHARE_OF_LONGEST_ANSWER = 0.75
"""Share of the tokens that an answer may have which a usual one has: 18 of 25 on the recorded run."""

LIKELY_DUPLICATE_SHARE = 0.15
"""Looks for duplicates for each rubric of the pool."""


class SizeEstimate(NamedTuple):
    """How many of something there will be that hangs on replies."""

    at_most: int
    likely: int

    def batches(self, size: int) -> SizeEstimate:
        """Return how many batches of a size hold so many."""
        return SizeEstimate(ceil(self.at_most / size), ceil(self.likely / size))

    def __add__(self, other: SizeEstimate) -> SizeEstimate:  # type: ignore[override]  # sizes add up, tuples would be joined
        return SizeEstimate(self.at_most + other.at_most, self.likely + other.likely)


ZERO_SIZE_ESTIMATE = SizeEstimate(0, 0)


@dataclass
class PlanningGateway:
    """A door that notes calls. Each is noted `times` over, as `certainty`.

    Attributes:
        likely: The same calls, as often as they are likely to be made.
        likely_times: How many times over each is noted there.
        known: Whether the ledger has the reply to a key.
        known_answers: Answers that were paid for in earlier runs, and that no call is made for.
    """

    endpoint: Endpoint
    known: Callable[[str], bool]
    table: UsageTable = field(default_factory=UsageTable)
    likely: UsageTable = field(default_factory=UsageTable)
    times: int = 1
    likely_times: int = 1
    certainty: str = WORD_FOR_EXACT_CALL_COUNT
    known_answers: int = 0

    async def ask(self, call: Call) -> Outcome:
        """See `agents.llm.asker.ModelClient`."""
        # a call that is counted several times is a stand-in: no reply to it can be in the store
        exactly_known = self.times == 1 and self.known(self.endpoint.request(call).key)
        prompt = estimate_prompt_tokens(call.messages)
        completion = estimate_max_reply_tokens(call)
        likely_completion = estimate_likely_reply_tokens(call)
        # the upper bound, and beside it what is likely
        for table, times, written in (
            (self.table, self.times, completion),
            (self.likely, self.likely_times, likely_completion),
        ):
            row = table.stage(call.stage)
            row.asked += times
            row.apart = call.apart
            row.outcomes[self.certainty] += times

            if exactly_known:
                row.known += 1
            else:
                row.sent += times
                row.prompt += times * prompt
                row.completion += times * written

        # a failed call tells roles nothing, so that they go on without using a reply
        return FailedCall(fault="planned")

    @contextmanager
    def estimating(self, times: SizeEstimate | int = 1) -> Iterator[None]:
        """Count calls in this context as up to so many calls, and as those that are likely."""
        # contexts may be nested: each puts back what was before it
        before = self.times, self.likely_times, self.certainty
        if isinstance(times, int):
            size = SizeEstimate(times, times)
        else:
            size = times

        self.times = size.at_most
        self.likely_times = size.likely
        self.certainty = WORDS_FOR_UPPER_BOUND_OF_CALLS
        try:
            yield
        finally:
            self.times, self.likely_times, self.certainty = before


def estimate_max_reply_tokens(call: Call) -> int:
    """Estimate the tokens of a model's reply."""
    # an answer that is read from log-probabilities is one token
    if call.max_tokens == 1:
        return 1
    # other stages say themselves how much they write
    if call.stage not in ("judge", "grade"):
        return call.written
    return ESTIMATED_TOKENS_PER_ANSWER * max(1, len((call.schema or {}).get("properties", {})))


def estimate_likely_reply_tokens(call: Call) -> int:
    """Estimate the tokens of a usual reply: all answers that are asked for, and few items of other lists."""
    most = estimate_max_reply_tokens(call)
    if call.stage in ("judge", "grade"):
        return ceil(LIKELY_TOKEN_SHARE_OF_LONGEST_ANSWER * most)
    return ceil(LIKELY_SHARE_OF_MAX_TOKENS * most)


@dataclass(frozen=True)
class PlannedRun:
    """The roles of a run, working against a planner.

    Attributes:
        memory: Answers of earlier runs; None where there is no store, or all is to be asked again.
        probed: Whether it is known what the endpoint can do, by an earlier run or the rubric set.
    """

    planner: PlanningGateway
    asker: PromptAsker
    memory: AnswerMemory | None = None
    probed: bool = False

    @classmethod
    def of(
        cls,
        model: ModelOptions,
        profile: DomainProfile,
        run: RunOptions,
        seed: int = 0,
        capabilities: Capabilities | None = None,
    ) -> PlannedRun:
        """Make a plan for the named endpoint; the store is read, not created."""
        endpoint = model.endpoint()
        # keys of calls depend on the store's secret; without a store nothing is known anyway
        salt = read_secret(run.store) or secrets.token_bytes(32)
        settings = model.settings.but(seed=seed, place=endpoint.shown)
        planner = PlanningGateway(endpoint, read_paid_call_keys(run).__contains__)
        # what the endpoint can do is part of each call, and of the judge that answers are found by
        known_capabilities = capabilities or find_capabilities_in_earlier_runs(run, endpoint)
        able = known_capabilities or Capabilities(endpoint.model)
        memory = None if model.again else ReadOnlyAnswerMemory(run.store)
        asker = PromptAsker(planner, able, profile, settings, salt)

        return cls(planner, asker, memory, probed=known_capabilities is not None)

    async def fitting(
        self, conversations: Sequence[Conversation], rubrics: Sequence[Rubric]
    ) -> UsageTable:
        """Plan to judge every conversation on every one of the rubrics, but for answers that are known."""
        judge = LlmJudge(self.asker, memory=self.memory)
        scale = self.asker.settings.scale
        questions = []
        # rubrics that are judged without a model cost no call
        for rubric in rubrics:
            if not rubric.answered_by:
                questions.append(Question.about(rubric, scale))

        # answers of earlier runs are looked up for many conversations in one query
        for start in range(0, len(conversations), CONVERSATIONS_PER_QUERY):
            batch = conversations[start : start + CONVERSATIONS_PER_QUERY]
            await judge.prepare(batch)
            for conversation in batch:
                await ask_both_sides(judge, conversation, questions)

        self.planner.known_answers += judge.known_answers
        return self.planner.table

    async def adapting(
        self, conversations: Sequence[Conversation], rubrics: Sequence[Rubric]
    ) -> UsageTable:
        """Plan to adapt rubrics to the domain, then to judge every conversation on what may be left of them."""
        await adapt_rubrics_to_domain(self.asker, rubrics)
        # adapted rubrics have other words, so that no earlier answer counts
        for side in LABEL_BY_POLARITY:
            calls = ceil(
                sum(rubric.polarity == side for rubric in rubrics) / MAX_RUBRICS_PER_MODEL_CALL
            )
            if calls:
                await self._judging(conversations, SizeEstimate(calls, calls))

        return self.planner.table

    async def learning(
        self,
        logs: Logs,
        settings: LearnSettings,
        written: EarlierPool | None = None,
    ) -> UsageTable:
        """Plan all calls of `learn`; those after the extraction are upper bounds.

        Args:
            written: The pool that an earlier run wrote from the same log: it is written again
                without a call.
        """
        sides = split_logs_into_training_and_held_out(logs, settings.share, settings.seed)
        extractor = LlmExtractor(self.asker)
        # extraction depends on no answer: its calls are exact
        for conversation in sides.train:
            await extractor.extract(conversation)

        if settings.method == "spur":
            return await self._spur(sides, settings)
        if written is not None:
            return await self._judging_again(sides, settings, written)

        # the most rubrics that the reasons of each side can become
        pool = {}
        for kind, label in LABEL_BY_POLARITY.items():
            pool[kind] = await self._summaries(
                kind,
                self._reasons(sides, label),
                settings,
            )

        rubrics = sum(pool.values(), start=ZERO_SIZE_ESTIMATE)
        await self._deduplication(rubrics)
        await self._further_roles(rubrics)

        # SAT and DSAT rubrics are asked in calls of their own.
        batches = sum(
            (size.batches(MAX_RUBRICS_PER_MODEL_CALL) for size in pool.values()),
            start=ZERO_SIZE_ESTIMATE,
        )
        await self._judging(sides.judged_train, batches, rubrics.likely)
        # only chosen rubrics are asked about conversations that are held out
        chosen = ZERO_SIZE_ESTIMATE
        batches_of_chosen = ZERO_SIZE_ESTIMATE
        for most, size in zip(settings.limits, pool.values(), strict=True):
            of_side = SizeEstimate(min(most, size.at_most), min(most, size.likely))
            chosen += of_side
            batches_of_chosen += of_side.batches(MAX_RUBRICS_PER_MODEL_CALL)

        await self._judging(sides.judged_test, batches_of_chosen, chosen.likely)
        return self.planner.table

    async def _judging_again(
        self,
        sides: SplitSides,
        settings: LearnSettings,
        written: EarlierPool,
    ) -> UsageTable:
        """Plan to judge a pool that is known, but for answers that are known, too."""
        await self.fitting(sides.judged_train, written.rubrics)
        if not sides.judged_test:
            return self.planner.table

        # held-out conversations are asked about chosen rubrics alone: those of the earlier choice,
        # unless other settings choose others
        chosen = []
        for rubric in written.rubrics:
            if rubric.id in written.chosen:
                chosen.append(rubric)

        if written.is_chosen_alike or 0 < settings.most <= len(chosen):
            return await self.fitting(sides.judged_test, chosen)

        with self.planner.estimating(SizeEstimate(1, 0)):
            await self.fitting(sides.judged_test, written.rubrics)
        with self.planner.estimating(SizeEstimate(0, 1)):
            await self.fitting(sides.judged_test, chosen)

        return self.planner.table

    def _reasons(self, sides: SplitSides, label: Label) -> SizeEstimate:
        """Return how many reasons the training conversations of a class give."""
        conversations = sum(conversation.label is label for conversation in sides.train)
        most_each = self.asker.settings.reasons
        return SizeEstimate(
            most_each * conversations,
            ceil(min(most_each, LIKELY_REASONS_PER_CONVERSATION) * conversations),
        )

    async def _spur(self, sides: SplitSides, settings: LearnSettings) -> UsageTable:
        updater = LlmUpdater(self.asker)
        for (kind, label), most in zip(LABEL_BY_POLARITY.items(), settings.limits, strict=True):
            batches = self._reasons(sides, label).batches(settings.mini_batch)
            # stand-ins of usual length: of their texts only the size matters
            shown = []
            for number in range(settings.mini_batch):
                shown.append(_make_sample_reason(number, kind))

            if batches.at_most and most:
                with self.planner.estimating(batches):
                    await updater.update(
                        shown,
                        [_make_sample_rubric(number, kind) for number in range(most)],
                        kind,
                        most,
                    )

        # both parts are judged by as many rubrics as each side may have
        judged = sum(ceil(most / MAX_RUBRICS_PER_MODEL_CALL) for most in settings.limits)
        for side in (sides.judged_train, sides.judged_test):
            await self._judging(side, SizeEstimate(judged, judged))

        return self.planner.table

    async def _summaries(
        self,
        kind: Polarity,
        reasons: SizeEstimate,
        settings: LearnSettings,
    ) -> SizeEstimate:
        """Plan the summaries of `reasons`, and return the number of rubrics."""
        summarizer = LlmSummarizer(self.asker)
        most = self.asker.settings.new_rubrics
        batches = reasons.batches(settings.mini_batch)
        shown = []
        for number in range(settings.mini_batch):
            shown.append(_make_sample_reason(number, kind))

        # a batch may bring as many new rubrics as the setting allows; most bring fewer
        rubrics = SizeEstimate(
            batches.at_most * most,
            ceil(batches.likely * min(most, LIKELY_NEW_RUBRICS_PER_BATCH)),
        )
        # A batch sees the rubrics of those before it: half of all on average.
        for number, times in (
            (rubrics.at_most // 2, SizeEstimate(batches.at_most, 0)),
            (rubrics.likely // 2, SizeEstimate(0, batches.likely)),
        ):
            planned_rubrics = [_make_sample_rubric(place, kind) for place in range(number)]
            if any(times):
                with self.planner.estimating(times):
                    await summarizer.summarize(shown, planned_rubrics, kind)

        return rubrics

    async def _deduplication(self, rubrics: SizeEstimate) -> None:
        """Plan a call for every two rubrics, or, with built-in ones, for each: groups are disjoint."""
        # two rubrics of usual length stand for every pair
        items = []
        for number in (1, 2):
            items.append({"i": number, "rubric": _make_sample_rubric(number, "sat").text})

        call = self.asker.call(load_prompt("deduplicate"), items, {})
        answers_each = 2 if ANSWERED_BY_BUILT_IN_JUDGE in self.asker.settings.without else 1
        with self.planner.estimating(
            SizeEstimate(
                rubrics.at_most // answers_each, ceil(rubrics.likely * LIKELY_DUPLICATE_SHARE)
            )
        ):
            await self.planner.ask(call)

    async def _further_roles(self, rubrics: SizeEstimate) -> None:
        """Plan a call of each further role for every so many rubrics of the pool."""
        for kind in list_further_roles(self.asker.settings.prompts):
            most = kind.rubrics_a_call
            call = kind.make_usual_call(
                self.asker, [_make_sample_rubric(number, "sat") for number in range(most)]
            )
            # likely it is asked about few rubrics, so that one call holds them all
            with self.planner.estimating(SizeEstimate(ceil(rubrics.at_most / most), 1)):
                await self.planner.ask(call)

    async def _judging(
        self,
        conversations: Sequence[Conversation],
        batches: SizeEstimate,
        rubrics: int | None = None,
    ) -> None:
        """Plan to judge every conversation in so many batches.

        Args:
            rubrics: How many there are likely; None for full batches.
        """
        judge = LlmJudge(self.asker)
        # at most all batches are full; likely ones share the rubrics that there are
        fill = MAX_RUBRICS_PER_MODEL_CALL
        if rubrics is not None and batches.likely:
            fill = min(fill, ceil(rubrics / batches.likely))

        for times, size in (
            (SizeEstimate(batches.at_most, 0), MAX_RUBRICS_PER_MODEL_CALL),
            (SizeEstimate(0, batches.likely), fill),
        ):
            questions = []
            for number in range(size):
                rubric = _make_sample_rubric(number, "sat")
                questions.append(Question.about(rubric, self.asker.settings.scale))

            if any(times):
                with self.planner.estimating(times):
                    for conversation in conversations:
                        await judge.judge(conversation, questions)


@dataclass(frozen=True)
class ReadOnlyAnswerMemory:
    """Answers of earlier runs, from a store that is only read, and may not be there."""

    folder: Path

    def find(
        self, fingerprint: str, text_hashes: Collection[str]
    ) -> Mapping[str, Mapping[str, Answer | Unanswered]]:
        """See `agents.llm.judge.AnswerMemory`."""
        try:
            with Store.open(self.folder, read_only=True) as store:
                return StoredAnswerMemory(store).find(fingerprint, text_hashes)
        except PollexError:
            return {}


def read_paid_call_keys(run: RunOptions) -> set[str]:
    """Return the keys of stored replies; an empty set if the store can't be read."""
    try:
        with Store.open(run.store, read_only=True) as store:
            keys: set[str] = set()
            for row in store.rows("SELECT DISTINCT key FROM calls WHERE reply IS NOT NULL"):
                keys.add(row["key"])
            return keys
    except PollexError:
        return set()


def _make_sample_reason(number: int, kind: Polarity) -> Reason:
    text = " ".join(["reason"] * _SAMPLE_REASON_WORDS)
    return Reason(
        id=make_content_id(str(number)),
        conversation_id="",
        polarity=kind,
        text=text,
        quotes=(),
    )


def _make_sample_rubric(number: int, kind: Polarity) -> Rubric:
    return Rubric(
        id=make_content_id(str(number)),
        text=" ".join(["rubric"] * _SAMPLE_RUBRIC_WORDS),
        polarity=kind,
    )
