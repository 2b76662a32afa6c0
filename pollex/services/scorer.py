"""Scoring batches of conversations, whoever the judge is: the one way to score, from wherever it is called.

    scorer = BatchScorer(rubric_set)                   # picklable: a worker process gets it once
    scores = scorer.scores(conversations)              # as columns; one by one they are `Score`s

What comes out for a conversation depends on nothing but that conversation: not on the batch, the
process or the order.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import multiprocessing
import os
import signal
import sys
import threading
import weakref
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack
from dataclasses import replace
from functools import cached_property
from multiprocessing.util import Finalize
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from pollex.agents.embedded.embedder import Embedder
from pollex.agents.embedded.evidence import find_evidence_signal
from pollex.agents.embedded.judge import EmbeddedJudge
from pollex.agents.roles import Judge, answer_each_question, ask_both_sides
from pollex.children import protect_children
from pollex.conversations.conversation import Conversation, Turn
from pollex.errors import BadInput, PollexError, WrongUse
from pollex.formats.log_shapes.readers import find_reader
from pollex.gateway.langsmith import switch_tracing
from pollex.graphs.context import MAX_CONVERSATIONS_PER_BATCH
from pollex.rubrics.answers import Answer, Unanswered
from pollex.rubrics.judge_settings import DEFAULT_EMBEDDING_MODEL
from pollex.rubrics.rubric import ANSWERED_BY_DISTILLED_JUDGE
from pollex.rubrics.rubric_set import RubricSet
from pollex.rubrics.score import NetSat, Score, ScoreColumns, list_requested_judges
from pollex.runs.options import ModelOptions
from pollex.runs.roles import restore_embedded_judge, restore_judge
from pollex.runs.workspace import GARBAGE_COLLECTION_THRESHOLD, BackgroundLoop, run_coroutine_to_end
from pollex.services.named_sets import read_rubric_set
from pollex.store.store import DEFAULT_STORE_PATH, Store

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

    from pollex.gateway.transport import ChatModel

LOGGER = logging.getLogger(__name__)
MAX_KEPT_VECTORS = 20_000
"""Vectors kept from batch to batch: 30 MB of the bundled model's, however long the log."""
CONVERSATIONS_IN_BATCH = 64
"""Conversations that are read together by a judge that asks no model; then an interrupt is heard."""


class BatchScorer:
    """Scores batches of conversations; knows no run and no file.

    Args:
        judges: Annotators whose own probabilities are wanted; `all` for all.
        costs: Of a bad conversation taken for good, and of a good one taken for bad.
        embedding_model: That of the set's judge, if it isn't the bundled one.
        judge: Who answers; None: the set's own, which needs no model.
        at_once: Conversations that a model is asked about at once, SAT and DSAT rubrics side by
            side; None: no model is, and one comes after the other.
    """

    def __init__(
        self,
        rubrics: RubricSet,
        judges: Sequence[str] = (),
        costs: tuple[float, float] = (1.0, 1.0),
        embedding_model: str = DEFAULT_EMBEDDING_MODEL,
        judge: Judge | None = None,
        at_once: int | None = None,
    ) -> None:
        self.rubrics = rubrics
        self.costs = costs
        self.embedding_model = embedding_model
        # unknown names fail here, not at the first batch
        if judges:
            self.judges = list_requested_judges(rubrics.thumb_model, judges)
        else:
            self.judges = ()

        self._at_once = at_once
        self._questions = rubrics.questions
        # takes the place of the cached property
        if judge is not None:
            self.judge = judge

    def __reduce__(self) -> tuple[object, ...]:
        """Travel without what can be built again where the work is done."""
        return type(self), (self.rubrics, self.judges, self.costs, self.embedding_model)

    @cached_property
    def judge(self) -> Judge:
        """The set's judge, built when it is first asked."""
        judge = restore_embedded_judge(self.rubrics, None, self.embedding_model)
        if isinstance(judge, EmbeddedJudge):
            judge.remembered = 1  # it is asked about all rubrics at once
            judge.embedder.remembered = MAX_KEPT_VECTORS
        return judge

    @cached_property
    def reads_vectors(self) -> bool:
        """Whether a rubric is judged by the likeness of vectors."""
        own_rubrics = (
            rubric
            for rubric in self.rubrics.rubrics
            if rubric.answered_by != ANSWERED_BY_DISTILLED_JUDGE
        )
        return any(find_evidence_signal(rubric, Embedder()).vectors for rubric in own_rubrics)

    @cached_property
    def netsat(self) -> NetSat:
        """What turns answers into scores, built when it is first needed."""
        return self.rubrics.scorer_of(self.costs)

    def scores(self, conversations: Sequence[Conversation]) -> ScoreColumns:
        """Score conversations in synchronous code; see `batch`."""
        return run_coroutine_to_end(self.batch(conversations))

    async def batch(
        self, conversations: Sequence[Conversation], judges: Sequence[str] | None = None
    ) -> ScoreColumns:
        """Score conversations, in their order; an error is the outcome of one alone.

        Args:
            judges: Others than the scorer's.
        """
        # without a model conversations are read in turn; a model is asked about many at once
        answers = await (
            self._read(conversations) if self._at_once is None else self._asked(conversations)
        )
        ids = [conversation.id for conversation in conversations]
        return self.netsat.columns(
            ids,
            answers,
            self.judges if judges is None else judges,
        )

    async def _read(self, conversations: Sequence[Conversation]) -> list[list[Answer | Unanswered]]:
        answers = list[list[Answer | Unanswered]]()
        # the answers of the built-in judge need no check
        ours = isinstance(self.judge, EmbeddedJudge)
        for start in range(0, len(conversations), CONVERSATIONS_IN_BATCH):
            batch = conversations[start : start + CONVERSATIONS_IN_BATCH]
            if start:
                await asyncio.sleep(0)  # an interrupt is heard
            await self.judge.prepare(batch)
            answers += [
                await answer_each_question(self.judge, conversation, self._questions, trusted=ours)
                for conversation in batch
            ]

        return answers

    async def _asked(
        self, conversations: Sequence[Conversation]
    ) -> list[list[Answer | Unanswered]]:
        # rubrics of both sides are asked side by side, for so many conversations at a time
        free = asyncio.Semaphore(self._at_once or 1)
        await self.judge.prepare(conversations)

        async def one(conversation: Conversation) -> list[Answer | Unanswered]:
            async with free:
                return await ask_both_sides(self.judge, conversation, self._questions)

        return await asyncio.gather(*map(one, conversations))


CONVERSATION_SHAPES_HINT = 'give a Conversation, a dict with "messages", or a list of messages'
ConversationLike = Conversation | Mapping[str, object] | Sequence[Mapping[str, str]]
"""A conversation of ours, a dict with `messages`, or a list of OpenAI-style messages."""


class Scorer:
    """Scores conversations with a rubric set, one by one or many.

    A model's answers are kept in the store, so that none is paid for twice; the built-in judge
    keeps nothing. With a model, `close` the scorer in the end, or use it in a `with`. Any thread
    and event loop may ask: a model is asked from one event loop of the scorer's own.

    Args:
        rubrics: The rubric set.
        judge: Who answers; by default the judge that the set was learnt with.
        model: The LangChain chat model that the set was learnt with, where it was one.
        base_url: Where the set's model is served, if not at OpenAI.
        embedding_model: Embedding model of the set's built-in judge, if it isn't the bundled one.
        store: Folder of a model's answers.
        costs: Of a bad conversation taken for good, and of a good one taken for bad: they move the
            decision.

    Raises:
        BadRubrics: The rubrics were edited after θ was fitted.
        WrongUse: No rubric set is given, or a model that nobody would ask.
    """

    def __init__(
        self,
        rubrics: RubricSet,
        judge: Judge | None = None,
        *,
        model: BaseChatModel | None = None,
        base_url: str | None = None,
        embedding_model: str = DEFAULT_EMBEDDING_MODEL,
        store: str | Path = DEFAULT_STORE_PATH,
        costs: tuple[float, float] = (1.0, 1.0),
    ) -> None:
        if not isinstance(rubrics, RubricSet):
            raise WrongUse(
                f"not a rubric set, but {type(rubrics).__name__}",
                hint="read its file: pollex.Scorer.load(PATH)",
            )

        # θ and the curve belong to the words that they were fitted to
        rubrics.require_unedited()
        if rubrics.at_chance:
            LOGGER.warning(rubrics.at_chance)

        self.rubrics = rubrics
        # a judge that asks no model would leave a model unused: better to say so
        embedded = rubrics.judge.built_in and judge is None
        if (judge or embedded) and (model is not None or base_url is not None):
            if judge:
                who = "the judge that is given"
            else:
                who = "the built-in judge, whose answers θ was fitted to,"

            raise WrongUse(
                f"a model beside {who} would not be asked",
                hint="leave out model and base_url",
            )

        self._netsat = rubrics.scorer_of(costs)
        self._scorer: BatchScorer | None = None
        # a judge at hand is used from the start; a model's is hired with the first conversation
        if judge is not None or embedded:
            self._scorer = BatchScorer(
                rubrics,
                (),
                costs,
                embedding_model,
                judge,
                None if embedded else MAX_CONVERSATIONS_PER_BATCH,
            )
            # what is wrong is told now
            self._scorer.judge, self._scorer.netsat = self._scorer.judge, self._netsat

        # what hiring needs later
        self._chat, self._options, self._folder = (
            model,
            ModelOptions(base_url=base_url),
            Path(store),
        )
        # one task hires for all that wait
        self._hiring = asyncio.Lock()
        self._opened = ExitStack()
        self._background = None if self._scorer else BackgroundLoop()

        # a scorer that nobody closed and nobody holds any more ends, too
        if self._background is not None:
            self._end = weakref.finalize(
                self,
                _close_scorer,
                self._background,
                self._opened,
            )

    @classmethod
    def load(cls, path: str | Path, **options: Any) -> Self:
        """Load a scorer from a rubric set: its file, the run that made it, or its digest.

        Args:
            options: Those of the class.
        """
        store = options.get("store")
        return cls(read_rubric_set(path, None if store is None else Path(store)), **options)

    def score(self, conversation: ConversationLike, judges: Sequence[str] = ()) -> Score:
        """Score a conversation; see `ConversationLike` for possible types.

        Args:
            judges: People whose thumbs the set was learnt from, and whose own probabilities are
                wanted; `["all"]` for all.

        Raises:
            WrongUse: It is no conversation, one of the judges is not known; see `score_many`, too.
        """
        return self.batch([parse_conversation(conversation)], judges)[0]

    async def ascore(self, conversation: ConversationLike, judges: Sequence[str] = ()) -> Score:
        """Score a conversation; see `score`."""
        # names are checked before anything is asked
        work = self._batch(
            [parse_conversation(conversation)],
            list_requested_judges(self._netsat.thumb_model, judges),
        )
        # the model is asked on the scorer's own event loop; this one only waits
        return (
            await (
                work
                if self._background is None
                else asyncio.wrap_future(self._background.submit(work))
            )
        )[0]

    def score_many(
        self, conversations: Iterable[ConversationLike], judges: Sequence[str] = ()
    ) -> list[Score]:
        """Score conversations in order; those that can't be scored have an `outcome`.

        Raises:
            WrongUse: One of them is no conversation, or one of the judges is not known.
        """
        return list(self.batch(list(iterate_numbered_conversations(conversations)), judges))

    def batch(
        self, conversations: Sequence[Conversation], judges: Sequence[str] = ()
    ) -> ScoreColumns:
        """Score conversations in order, as columns."""
        work = self._batch(
            conversations,
            list_requested_judges(self._netsat.thumb_model, judges),
        )
        # without a model the work never waits, so that it ends right here
        if self._background is None:
            return run_coroutine_to_end(work)
        return self._background.complete(work)

    async def _batch(
        self, conversations: Sequence[Conversation], judges: Sequence[str]
    ) -> ScoreColumns:
        return await (await self._hired()).batch(conversations, judges)

    def close(self) -> None:
        """Close the store and a model's connections; a scorer with the built-in judge has none."""
        if self._background is not None:
            self._end()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def _hired(self) -> BatchScorer:
        if self._scorer is None:
            async with self._hiring:
                # while this task waited for the lock, another may have hired
                if self._scorer is None:
                    await self._hire()

        assert self._scorer is not None, "hired above"
        return self._scorer

    async def _hire(self) -> None:
        switch_tracing(on=False)
        # what is opened is closed if hiring fails; else the scorer closes it in the end
        with ExitStack() as opened:
            store = opened.enter_context(Store.open(self._folder))
            chat = None
            if self._chat is not None:
                chat = wrap_chat_model(self._chat)
            staff = await restore_judge(
                replace(self._options, chat=chat),
                self.rubrics,
                store,
            )
            self._opened.push(opened.pop_all())

        batch_scorer = BatchScorer(
            self.rubrics,
            judge=staff.roles.judge,
            at_once=MAX_CONVERSATIONS_PER_BATCH,
        )
        batch_scorer.netsat = self._netsat
        self._scorer = batch_scorer


def _close_scorer(background: BackgroundLoop, opened: ExitStack) -> None:
    background.stop()
    opened.close()


def wrap_chat_model(model: BaseChatModel) -> ChatModel:
    """Wrap a user's LangChain model for the gateway.

    Raises:
        WrongUse: It is no chat model of LangChain's.
    """
    # LangChain takes a second to import
    from langchain_core.language_models import BaseChatModel

    from pollex.gateway.transport import ChatModel

    if not isinstance(model, BaseChatModel):
        raise WrongUse(
            f"not a model, but {type(model).__name__}",
            hint="give a model's name, or a LangChain chat model",
        )

    return ChatModel(model)


def parse_conversation(
    messages: Conversation | Mapping[str, Any] | Sequence[Mapping[str, str]],
) -> Conversation:
    """Convert common forms of a conversation.

    Raises:
        WrongUse: It is none of the known shapes.
    """
    if isinstance(messages, Conversation):
        return messages

    from pollex.formats.frames import convert_messages_to_dicts  # logs in files don't need it

    # objects of other libraries become dicts; a conversation may be wrapped in `values`
    messages = convert_messages_to_dicts(messages)
    if isinstance(messages, Mapping) and "messages" not in messages:
        messages = messages.get("values", messages)

    if not isinstance(messages, Mapping | Sequence) or isinstance(messages, str):
        raise WrongUse(
            f"not a conversation, but {type(messages).__name__}",
            hint=CONVERSATION_SHAPES_HINT,
        )

    if isinstance(messages, Mapping):
        fields = dict(messages)
    else:
        fields = {"messages": list(messages)}

    # read as a row of a log would be, whatever its shape
    try:
        reader = find_reader(fields)
        if reader.row_is_turn:
            draft = None
        else:
            draft = reader.read(fields)
    except BadInput as error:
        raise WrongUse(
            f"not a conversation: {error.what}",
            where=error.where,
            hint=CONVERSATION_SHAPES_HINT,
        ) from error

    # one turn in a row has its conversation spread over rows
    if draft is None:
        raise WrongUse("not a conversation, but a part of one", hint=CONVERSATION_SHAPES_HINT)

    return Conversation(
        id=str(draft.rest.get("id", "conversation")),
        turns=draft.turns,
    )


def iterate_numbered_conversations(records: Iterable[ConversationLike]) -> Iterator[Conversation]:
    """Yield conversations of a collection; errors name the number of the item."""
    # people count items from 1
    for number, record in enumerate(records, 1):
        try:
            yield parse_conversation(record)
        except WrongUse as error:
            where = ", ".join(filter(None, [f"item {number}", error.where]))
            raise WrongUse(
                error.what,
                where=where,
                hint=error.hint,
                option=error.options,
            ) from error


LEAST_PARALLEL_CONVERSATIONS = 1000
"""Conversations for which it pays to start processes: each takes a second."""
MAX_WORKER_TRIES = 3


class WorkerProcessDied(PollexError):
    """Worker processes die at the same conversations."""

    exit_code = 1


class ScoringPool:
    """Scores batches of conversations; results are in their order, whoever made them.

    A worker that dies is replaced, and what it had is done again. Workers end with the process that
    began them.

    Args:
        workers: Processes; 1: this one alone.
    """

    def __init__(self, scorer: BatchScorer, workers: int) -> None:
        self._scorer = scorer
        self._workers = workers
        self._started: ProcessPoolExecutor | None = None

    @classmethod
    def for_log(
        cls,
        scorer: BatchScorer,
        count: int,
        workers: int | None = None,
    ) -> Self:
        """Return a pool for so many conversations; of one process a core where that pays, if `workers` is None."""
        if scorer.reads_vectors:  # the runtime of vectors has all cores already
            return cls(scorer, 1)
        return cls(
            scorer, workers or (count_cores() if count >= LEAST_PARALLEL_CONVERSATIONS else 1)
        )

    async def scores(self, conversations: Sequence[Conversation]) -> ScoreColumns:
        """Score conversations, in their order.

        Raises:
            WorkerDied: Processes end at the same conversations, again and again.
        """
        if self._workers == 1:
            return await self._scorer.batch(conversations)

        # parts are small, so that little is done again when a worker dies
        cuts = []
        for start in range(0, len(conversations), CONVERSATIONS_IN_BATCH):
            cuts.append(conversations[start : start + CONVERSATIONS_IN_BATCH])

        columns_by_part = dict[int, ScoreColumns]()
        tries = Counter[int]()
        # what a dead worker had is missing, and is sent again
        while missing := [number for number in range(len(cuts)) if number not in columns_by_part]:
            tries[missing[0]] += 1
            # the same part in front several times: something in it ends the workers
            if tries[missing[0]] > MAX_WORKER_TRIES:
                first = cuts[missing[0]][0].id
                last = cuts[missing[0]][-1].id
                raise WorkerProcessDied(
                    f"{MAX_WORKER_TRIES} processes ended, each at the conversations from {first!r:.60} to {last!r:.60}",
                    hint="score them in one process (`--set workers=1`), or look for too little memory",
                )

            await self._do(
                {number: cuts[number] for number in missing},
                columns_by_part,
            )

        # in the order of the conversations, not in that in which workers finished
        return ScoreColumns.joined([columns_by_part[number] for number in range(len(cuts))])

    async def _do(
        self, cuts: dict[int, Sequence[Conversation]], columns_by_part: dict[int, ScoreColumns]
    ) -> None:
        """Have the workers score; what one that dies had, and others with it, is not found."""
        if self._started is None:
            # a fork of a process with threads may hang
            context = multiprocessing.get_context("spawn")
            with protect_children():
                self._started = ProcessPoolExecutor(
                    self._workers,
                    context,
                    initialize_worker,
                    (self._scorer,),
                )

        try:
            with protect_children():  # they are started with the first of these
                sent = {}
                for number, cut in cuts.items():
                    sent[number] = self._started.submit(score_in_worker, pack_turns(cut))

            # in order, so that after a break the first missing part is the suspect
            for number, future in sent.items():
                columns_by_part[number] = await asyncio.wrap_future(future)
        except BrokenProcessPool:
            # a broken pool takes no more work; the next round starts another one
            self.close()

    def close(self) -> None:
        """End the processes."""
        if self._started is not None:
            self._started.shutdown(cancel_futures=True)
            self._started = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


_WORKER_SCORERS: list[BatchScorer] = []
"""In a worker process its own."""


def initialize_worker(scorer: BatchScorer) -> None:
    """Make this process a worker."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that began this one decides
    _WORKER_SCORERS[:] = [scorer]
    # what is loaded stays to the end: the collector need not look through it
    gc.freeze()
    gc.set_threshold(GARBAGE_COLLECTION_THRESHOLD)
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    # What is frozen is never freed, and libraries in C++ would tell of each object of theirs at the
    # end.
    Finalize(None, _exit_without_cleanup, exitpriority=-1000)


def _exit_without_cleanup() -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _exit_with_parent() -> None:
    # without its parent a worker would wait for work for ever
    if parent := multiprocessing.parent_process():
        parent.join()
        os._exit(1)


def score_in_worker(records: Sequence[object]) -> ScoreColumns:
    """Score conversations in a worker process."""
    return asyncio.run(_WORKER_SCORERS[0].batch(unpack_turns(records)))


def pack_turns(conversations: Sequence[Conversation]) -> list[object]:
    """Return what a judge reads of conversations, in a form that travels quickly."""
    turns: list[object] = []
    # metadata, labels and ids of users stay behind
    for conversation in conversations:
        turns.append(
            (
                conversation.id,
                conversation.flags,
                [(turn.role, turn.content, turn.calls, turn.result) for turn in conversation.turns],
            )
        )

    return turns


def unpack_turns(records: Sequence[Any]) -> list[Conversation]:
    """Return the conversations of `pack_turns`."""
    # without validation, which the first process has done
    conversations = []
    for id_, flags, turns in records:
        conversations.append(
            Conversation.model_construct(
                id=id_,
                flags=flags,
                turns=tuple(
                    [
                        Turn.model_construct(role=r, content=c, calls=calls, result=back)
                        for r, c, calls, back in turns
                    ]
                ),
            )
        )
    return conversations


def count_cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
