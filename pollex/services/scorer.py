"""Scorer."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pollex.agents.embedded.judge import EmbeddedJudge
from pollex.agents.roles import Judge
from pollex.conversations.conversation import Conversation
from pollex.errors import BadInput, WrongUse
from pollex.formats.frames import in_dicts
from pollex.formats.log_shapes import reader_of
from pollex.gateway.langsmith import tracing_off
from pollex.graphs.ask import answered, ask_sides
from pollex.rubrics.judge_settings import DEFAULT_MODEL
from pollex.rubrics.netsat import Score
from pollex.rubrics.rubric_set import RubricSet
from pollex.rubrics.thumb_model import judges_wanted
from pollex.services.event_loop import Background, complete
from pollex.services.judging import embedded_judge, hire_judge
from pollex.services.options import ModelOptions
from pollex.store.store import DEFAULT, Store

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

    from pollex.gateway.langchain import ChatModel

SHAPES = 'give a Conversation, a dict with "messages", or a list of messages'
Given = Conversation | Mapping[str, Any] | Sequence[Mapping[str, str]]
"""A conversation of ours, a dict with `messages`, or a list of OpenAI-style messages."""


class Scorer:
    """Scores conversations with a rubric set, one by one or many.

    A model's answers are kept in the store, so that none is paid for twice; the built-in judge keeps nothing. With a
    model, `close` the scorer in the end, or use it in a `with`. Any thread and event loop may ask: a model is asked
    from one event loop of the scorer's own.

    Args:
        rubrics: The rubric set.
        judge: Who answers; by default the judge that the set was learnt with.
        model: The LangChain chat model that the set was learnt with, where it was one.
        base_url: Where the set's model is served, if not at OpenAI.
        embedding_model: Embedding model of the set's built-in judge, if it isn't the bundled one.
        store: Folder of a model's answers.
        costs: Of a bad conversation taken for good, and of a good one taken for bad: they move the decision.

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
        embedding_model: str = DEFAULT_MODEL,
        store: str | Path = DEFAULT,
        costs: tuple[float, float] = (1.0, 1.0),
    ) -> None:
        if not isinstance(rubrics, RubricSet):
            raise WrongUse(
                f"not a rubric set, but {type(rubrics).__name__}", remedy="read its file: pollex.Scorer.load(PATH)"
            )
        rubrics.require_unedited()
        self.rubrics = rubrics
        embedded = rubrics.judge.built_in
        if (judge or embedded) and (model is not None or base_url is not None):
            who = "the judge that is given" if judge else "the built-in judge, whose answers θ was fitted to,"
            raise WrongUse(f"a model beside {who} would not be asked", remedy="leave out model and base_url")
        self._judge = judge or (embedded_judge(rubrics, None, embedding_model) if embedded else None)
        self._chat, self._options, self._folder = model, ModelOptions(base_url=base_url), Path(store)
        self._hiring = asyncio.Lock()
        self._opened = ExitStack()
        self._background = None if self._judge else Background()
        if self._background is not None:  # a scorer that nobody closed and nobody holds any more ends, too
            self._end = weakref.finalize(self, _end, self._background, self._opened)
        self._questions = rubrics.questions
        self._netsat = rubrics.scorer_of(costs)

    @classmethod
    def load(cls, path: str | Path, **options: Any) -> Self:
        """Load a scorer from a rubric set's file; `options` are those of the class."""
        return cls(RubricSet.load(path), **options)

    def score(self, conversation: Given, judges: Sequence[str] = ()) -> Score:
        """Score a conversation; see `Given` for possible types.

        Args:
            judges: People whose thumbs the set was learnt from, and whose own probabilities are wanted; `["all"]` for
                all.

        Raises:
            WrongUse: It is no conversation, one of the judges is not known; see `score_many`, too.
        """
        return self.score_many([conversation_from(conversation)], judges)[0]

    async def ascore(self, conversation: Given, judges: Sequence[str] = ()) -> Score:
        """Score a conversation; see `score`."""
        known, asked = conversation_from(conversation), judges_wanted(self._netsat.thumb_model, judges)
        if self._background is None:
            return await self._scored(known, asked)
        return await asyncio.wrap_future(self._background.submit(self._scored(known, asked)))

    def score_many(self, conversations: Iterable[Given], judges: Sequence[str] = ()) -> list[Score]:
        """Score conversations in order; those that can't be scored have an `outcome`.

        Raises:
            WrongUse: One of them is no conversation, or one of the judges is not known.
        """
        asked = judges_wanted(self._netsat.thumb_model, judges)

        async def every() -> list[Score]:
            known = list(numbered(conversations))
            judge = await self._hired()
            await judge.prepare(known)
            if isinstance(judge, EmbeddedJudge) and len({one.id for one in known}) == len(known):
                # In one piece, which is much quicker.
                answers = {one.id: await answered(judge, one, self._questions) for one in known}
                return self._netsat.score_all(answers, asked)
            return await asyncio.gather(*(self._scored(conversation, asked) for conversation in known))

        return complete(every()) if self._background is None else self._background.complete(every())

    async def _scored(self, known: Conversation, judges: Sequence[str]) -> Score:
        return self._netsat.score(known.id, await ask_sides(await self._hired(), known, self._questions), judges)

    def close(self) -> None:
        """Close the store and a model's connections; a scorer with the built-in judge has none."""
        if self._background is not None:
            self._end()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def _hired(self) -> Judge:
        """Return the judge; a model is probed when it is first asked."""
        if self._judge is None:
            async with self._hiring:
                if self._judge is None:
                    await self._hire()
        assert self._judge is not None, "hired above"
        return self._judge

    async def _hire(self) -> None:
        tracing_off()
        with ExitStack() as opened:
            store = opened.enter_context(Store.open(self._folder))
            chat = None if self._chat is None else chat_model(self._chat)
            staff = await hire_judge(replace(self._options, chat=chat), self.rubrics, store)
            self._opened.push(opened.pop_all())
        self._judge = staff.roles.judge


def _end(background: Background, opened: ExitStack) -> None:
    background.stop()
    opened.close()


def chat_model(model: BaseChatModel) -> ChatModel:
    """Wrap a user's LangChain model for the gateway.

    Raises:
        WrongUse: It is no chat model of LangChain's.
    """
    from langchain_core.language_models import BaseChatModel  # LangChain takes a second to import

    from pollex.gateway.langchain import ChatModel

    if not isinstance(model, BaseChatModel):
        raise WrongUse(
            f"not a model, but {type(model).__name__}", remedy="give a model's name, or a LangChain chat model"
        )
    return ChatModel(model)


def conversation_from(given: Conversation | Mapping[str, Any] | Sequence[Mapping[str, str]]) -> Conversation:
    """Convert common forms of a conversation.

    Raises:
        WrongUse: It is none of the known shapes.
    """
    if isinstance(given, Conversation):
        return given
    given = in_dicts(given)
    given = given.get("values", given) if isinstance(given, Mapping) and "messages" not in given else given
    if not isinstance(given, Mapping | Sequence) or isinstance(given, str):
        raise WrongUse(f"not a conversation, but {type(given).__name__}", remedy=SHAPES)
    fields = dict(given) if isinstance(given, Mapping) else {"messages": list(given)}
    try:
        reader = reader_of(fields)
        draft = None if reader.row_is_turn else reader.read(fields)
    except BadInput as error:
        raise WrongUse(f"not a conversation: {error.what}", where=error.where, remedy=SHAPES) from error
    if draft is None:
        raise WrongUse("not a conversation, but a part of one", remedy=SHAPES)
    return Conversation(id=str(draft.rest.get("id", "conversation")), turns=draft.turns)


def numbered(given: Iterable[Given]) -> Iterator[Conversation]:
    """Yield conversations of a collection; errors name the number of the item."""
    for number, one in enumerate(given, 1):
        try:
            yield conversation_from(one)
        except WrongUse as error:
            where = ", ".join(filter(None, [f"item {number}", error.where]))
            raise WrongUse(error.what, where=where, remedy=error.remedy, option=error.options) from error
