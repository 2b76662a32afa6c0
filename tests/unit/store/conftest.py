"""The domain objects that the tests of this room share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pollex.agents.roles import Extraction
from pollex.conversations.conversation import Conversation, Label, Turn
from pollex.rubrics.answers import Answer, Question
from pollex.rubrics.rubric import Quote, Reason, Rubric
from pollex.store.store import Store


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "kept"


@pytest.fixture
def conversation() -> Conversation:
    """With all that text may contain."""
    return Conversation(
        id="c'1; drop table runs; --",
        turns=(
            Turn(role="user", content="héllo \ud800 \x00 👍\u202e"),
            Turn(role="assistant", content='"}\n{"'),
        ),
        label=Label.NEGATIVE,
        judge="ann",
        group="u1",
        metadata={"stars": 2, "nested": {"odd": "\udc00"}},
    )


@pytest.fixture
def rubric() -> Rubric:
    quote = Quote(conversation_id="c'1; drop table runs; --", turn=0, text="héllo")
    return Rubric(
        id="r1",
        text="The user greets.",
        polarity="sat",
        reason_ids=("e1",),
        quotes=(quote,),
        source="phrase",
    )


@pytest.fixture
def extraction(conversation: Conversation, rubric: Rubric) -> Extraction:
    reason = Reason(
        id="e1",
        conversation_id=conversation.id,
        polarity="sat",
        text="A greeting.",
        quotes=rubric.quotes,
        source="phrase",
    )
    return Extraction(
        conversation_id=conversation.id, summary="It went well.", reasons=(reason,), dropped=2
    )


@pytest.fixture
def answer(rubric: Rubric) -> Answer:
    """To the rubric's question; the probabilities leave a rest."""
    return Answer(
        question_id=rubric.id,
        probabilities=(0.1, 0.0, 0.2, 0.3, 0.25),
        chosen=3,
        source="logprobs",
        justification="Said “héllo”.",
        turns=(0,),
        judge="gpt",
    )


@pytest.fixture
def question(rubric: Rubric) -> Question:
    return Question.about(rubric)


@pytest.fixture
def store(folder: Path) -> Iterator[Store]:
    with Store.open(folder) as store:
        yield store
