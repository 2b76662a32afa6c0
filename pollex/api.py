"""The Python API: the same graphs as on the command line, without its printing."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Self, TypeVar

from pollex.agents.embedded.embedder import DEFAULT_MODEL
from pollex.agents.roles import Judge
from pollex.conversations import logs as reading
from pollex.conversations.logs import Logs, logs_of
from pollex.conversations.model import Conversation
from pollex.conversations.options import ReadOptions
from pollex.conversations.readers import reader_of
from pollex.errors import BadInput, WrongUse
from pollex.gateway.tracing import tracing_off
from pollex.graphs import runs
from pollex.graphs.asking import ask_sides
from pollex.graphs.learn.state import LearnSettings
from pollex.graphs.rubric_set import RubricSet, Score
from pollex.graphs.runs import Setting
from pollex.prompts.profile import DomainProfile
from pollex.store.store import DEFAULT, Store
from pollex.workers import embedded_judge, embedded_record, embedded_roles, embedder_for, profile_at

T = TypeVar("T")

SHAPES = 'give a Conversation, a dict with "messages", or a list of messages'


def read_logs(sources: str | Path | Sequence[str | Path], **options: Any) -> Logs:
    """Conversations from JSON lines, JSON, CSV or Parquet files.

    Args:
        sources: Paths or globs.
        options: Fields of `conversations.options.ReadOptions`, for example `label_field="rating", positive=">=4"`.

    Raises:
        BadInput: A file or row can't be read; file, line and remedy are named.
    """
    return reading.read_logs(sources, options=ReadOptions(**options))


def learn(
    logs: Logs | Iterable[Conversation],
    *,
    domain: str | Path | DomainProfile | None = None,
    test_fraction: float = 0.5,
    budget: int = 10,
    seed: int = 0,
    embedding_model: str = DEFAULT_MODEL,
    store: str | Path = DEFAULT,
    resume: bool = False,
) -> RubricSet:
    """Learns a rubric set from conversations with thumbs.

    Args:
        domain: A domain profile or its file; the neutral one when left out.
        test_fraction: Share held out for honest figures; 0 holds nothing out.
        budget: SAT and DSAT rubrics to choose, each.
        store: Folder where runs, answers and embeddings are kept.
        resume: Go on with the last unfinished run of the same data and settings.

    Raises:
        BadLabels: One class is missing or too small.
    """
    tracing_off()
    read = logs if isinstance(logs, Logs) else logs_of(logs)
    profile = domain if isinstance(domain, DomainProfile) else profile_at(Path(domain) if domain else None)
    folder = Path(store)
    embedder = embedder_for(folder, embedding_model)
    settings = LearnSettings(test_fraction=test_fraction, budget=(budget, budget), seed=seed)
    with Store.open(folder) as opened:
        learned = complete(
            runs.learn(
                read,
                roles=embedded_roles(profile, embedder, seed),
                judge_record=embedded_record(embedder),
                profile=profile,
                settings=settings,
                setting=Setting.of(opened, resume=resume, arguments={"api": "learn"}),
            )
        )
    return learned.rubric_set


class Scorer:
    """Scores conversations with a rubric set, one by one or many; keeps nothing.

    Args:
        rubrics: The rubric set.
        judge: Who answers; by default the judge that the set was learnt with.
    """

    def __init__(self, rubrics: RubricSet, judge: Judge | None = None) -> None:
        rubrics.require_unedited()
        self.rubrics = rubrics
        self.judge = judge or embedded_judge(rubrics, None)
        self._questions = rubrics.questions
        self._netsat = rubrics.scorer_of()

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """A scorer with the rubric set of a file."""
        return cls(RubricSet.load(path))

    def score(self, conversation: Conversation | Mapping[str, Any] | Sequence[Mapping[str, str]]) -> Score:
        """The score of a conversation: ours, a dict with `messages`, or a list of OpenAI-style messages."""
        return complete(self.ascore(conversation))

    async def ascore(self, conversation: Conversation | Mapping[str, Any] | Sequence[Mapping[str, str]]) -> Score:
        """`score`, to be awaited."""
        known = conversation_from(conversation)
        return self._netsat.score(known.id, await ask_sides(self.judge, known, self._questions))

    def score_many(
        self, conversations: Iterable[Conversation | Mapping[str, Any] | Sequence[Mapping[str, str]]]
    ) -> list[Score]:
        """Scores in the order of the conversations; one that can't be scored has its `outcome`, and stops none."""

        async def every() -> list[Score]:
            known = [conversation_from(conversation) for conversation in conversations]
            await self.judge.prepare(known)
            return await asyncio.gather(*(self.ascore(conversation) for conversation in known))

        return complete(every())


def conversation_from(given: Conversation | Mapping[str, Any] | Sequence[Mapping[str, str]]) -> Conversation:
    """A conversation from what people have at hand.

    Raises:
        WrongUse: It is none of the known shapes.
    """
    if isinstance(given, Conversation):
        return given
    listed = list(given) if isinstance(given, Sequence) and not isinstance(given, str) else given
    fields = dict(given) if isinstance(given, Mapping) else {"messages": listed}
    try:
        reader = reader_of(fields)
        draft = None if reader.row_is_turn else reader.read(fields)
    except BadInput as error:
        raise WrongUse(f"not a conversation: {error.what}", where=error.where, remedy=SHAPES) from error
    if draft is None:
        raise WrongUse("not a conversation, but a part of one", remedy=SHAPES)
    return Conversation(id=str(draft.rest.get("id", "conversation")), turns=draft.turns)


def complete(work: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine to its end, also where an event loop is running already, as in a notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(max_workers=1) as thread:
        return thread.submit(asyncio.run, work).result()
