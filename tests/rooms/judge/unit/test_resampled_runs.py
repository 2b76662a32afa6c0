"""Runs without a model: the built-in rater and judge on resampled turns."""

import asyncio

import numpy as np
import pytest
from scripted import of
from small_logs import conversation

from pollex.agents.embedded.embedder import Embedder
from pollex.agents.embedded.judge import EmbeddedJudge
from pollex.agents.embedded.view import (
    RESAMPLED_MODEL_NAME,
    make_random_generator,
    resample_turn_indices,
)
from pollex.conversations.conversation import Conversation, Label
from pollex.errors import WrongUse
from pollex.rooms.judge.agents.embedded.rater import EmbeddedRater
from pollex.rooms.judge.agents.votes import JudgeEnsemble, RatingRule, decide_verdict
from pollex.rubrics.answers import Answer, Option, Question, Unanswered
from pollex.rubrics.rubric import Rubric

WELL = Question(
    id="q",
    text="Did it go well?",
    options=(Option(text="yes", value=1), Option(text="no", value=0)),
)
MIXED = conversation(
    ("u", "I need a train to Leeds."),
    ("a", "Sorry, I am unable to find that."),
    ("u", "No, I said Leeds. Still the same error."),
    ("a", "Here is the 10:15."),
    ("u", "Thanks, great, that works!"),
    id_="mixed",
)


async def studied(embedder: Embedder, log: list[Conversation]) -> EmbeddedRater:
    rater = EmbeddedRater(embedder)
    await rater.fit(log, [])
    return rater


@pytest.fixture(scope="module")
def rater(embedder: Embedder, log: list[Conversation]) -> EmbeddedRater:
    return asyncio.run(studied(embedder, log))


async def test_a_rater_that_studied_nothing_is_wrong_use_and_what_cannot_be_judged_is_unanswered(
    embedder: Embedder, log: list[Conversation]
) -> None:
    alone = conversation(("u", "Hello?"), id_="alone")
    with pytest.raises(WrongUse, match="studied no log"):
        await EmbeddedRater(embedder).judge(MIXED, [WELL])
    rater = await studied(embedder, [*log, alone])
    with pytest.raises(WrongUse, match="two options"):
        await rater.judge(MIXED, [Question(id="l", text="?")])
    assert of(Unanswered, (await rater.judge(alone, [WELL]))[0]).outcome == "not_scorable"


async def right(rater: EmbeddedRater, log: list[Conversation]) -> float:
    answers = [(await rater.judge(one, [WELL]))[0] for one in log]
    return float(np.mean([
        isinstance(a, Answer) and a.chosen == (one.label is Label.NEGATIVE) for a, one in zip(answers, log, strict=True)
    ]))  # fmt: skip


async def test_the_rater_learns_from_thumbs_and_answers_each_by_weights_learnt_without_it(
    embedder: Embedder, log: list[Conversation], rater: EmbeddedRater
) -> None:
    assert rater.labelled == len(log)
    assert await right(rater, log) > 0.9
    other = await studied(embedder, [log[0].model_copy(update={"label": Label.NONE}), *log[1:]])
    (with_it,), (without,) = await other.judge(log[0], [WELL]), await rater.judge(log[0], [WELL])
    assert of(Answer, with_it).probabilities != of(Answer, without).probabilities
    turned = await studied(embedder, log[::-1])
    assert rater.fingerprint == turned.fingerprint
    assert await rater.judge(MIXED, [WELL]) == await turned.judge(MIXED, [WELL]), (
        "the order of the log is nothing"
    )
    bare = await studied(embedder, [one.model_copy(update={"label": Label.NONE}) for one in log])
    assert (bare.labelled, bare.learned) == (0, {"labelled": 0})
    assert await right(bare, log) > 0.8, "by what signals mean in general"


async def test_runs_on_resampled_turns_differ_and_each_is_the_same_whenever_it_is_asked(
    rater: EmbeddedRater,
) -> None:
    runs = [(await rater.again(number).judge(MIXED, [WELL]))[0] for number in range(8)]
    again = [(await rater.again(number).judge(MIXED, [WELL]))[0] for number in reversed(range(8))]
    assert runs == again[::-1]
    assert len({run.probabilities for run in runs if isinstance(run, Answer)}) > 3
    assert {run.judge for run in runs} == {RESAMPLED_MODEL_NAME}
    assert rater.name == "built-in (no LLM)"


async def test_an_ensemble_of_the_rater_is_sure_where_all_turns_say_the_same_and_not_where_one_decides(
    log: list[Conversation], rater: EmbeddedRater
) -> None:
    ensemble = JudgeEnsemble(rater, rule=RatingRule.of(25, tau=0.0))
    clear, mixed = [
        decide_verdict("", WELL, await ensemble.votes(one, WELL), ensemble.rule)
        for one in (log[0], MIXED)
    ]
    assert (clear.rating, clear.entropy) == ("yes", 0.0)
    assert mixed.entropy is not None
    assert mixed.entropy > 0
    assert (mixed.rating, mixed.reason) == (None, "disagreement")


async def test_the_embedded_judge_of_rubrics_has_runs_of_its_own_too(
    embedder: Embedder, log: list[Conversation]
) -> None:
    rubric = Rubric(
        id="r", text="The user thanks the assistant.", polarity="sat", source="signal:thanks"
    )
    judge = EmbeddedJudge(embedder)
    await judge.fit(log, [rubric])
    (plain,) = await judge.judge(MIXED, [Question.about(rubric)])
    runs = [
        (await judge.again(number).judge(MIXED, [Question.about(rubric)]))[0] for number in range(8)
    ]
    assert len({run.probabilities for run in runs if isinstance(run, Answer)}) > 1
    assert (await judge.judge(MIXED, [Question.about(rubric)])) == [plain]
    assert plain.judge == "built-in (no LLM)"


def test_drawn_turns_are_a_bootstrap_in_the_order_of_the_conversation() -> None:
    turns = np.array([1, 3, 5, 7])
    draws = np.array(
        [
            resample_turn_indices(turns, make_random_generator(MIXED, number))
            for number in range(400)
        ]
    )
    assert (np.diff(draws, axis=1) >= 0).all()
    assert set(draws.ravel()) == {1, 3, 5, 7}
    share_without = np.mean([3 not in draw for draw in draws])
    assert share_without == pytest.approx((3 / 4) ** 4, abs=0.08)
    assert (
        len(resample_turn_indices(np.array([], dtype=np.intp), make_random_generator(MIXED, 0)))
        == 0
    )
