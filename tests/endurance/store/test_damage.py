"""Random damage ends in words, and what was paid for is found again afterwards."""

import random
import shutil
from pathlib import Path
from typing import Any

import pytest

from pollex.conversations.conversation import Conversation, Turn
from pollex.errors import PollexError, StoreBusy, StoreDamaged
from pollex.rubrics.answers import Answer, Question
from pollex.rubrics.rubric import Rubric
from pollex.store.ledger import StoreCallLedger
from pollex.store.repair import rebuild_store
from pollex.store.resume import list_stored_runs, read_answers, read_step_result
from pollex.store.rows import AnswerRows, make_conversation_rows
from pollex.store.soundness import check_whole_store
from pollex.store.spans import Tracer
from pollex.store.store import Store
from pollex.store.tables import LabelRow, ScoreRow
from pollex.store.traces import build_span_tree

CALLS = 60
RUBRIC = Rubric(id="r1", text="The user greets.", polarity="sat")


@pytest.fixture
async def whole(tmp_path: Path) -> Path:
    """A store with a run, its calls, answers and a label."""
    folder = tmp_path / "whole"
    question = Question.about(RUBRIC)
    with Store.open(folder) as store:
        run = store.begin("score", arguments={}, fingerprint={"data": "d"}, versions={}).id
        tracer = Tracer(store, run)
        ledger = StoreCallLedger(store, tracer)
        for number in range(CALLS):
            turns = (Turn(role="user", content=f"Hello, I am number {number}."),)
            conversation = Conversation(id=f"c{number}", turns=turns)
            answer = Answer(
                question_id="r1", probabilities=(0, 0, 0, 0, 1), chosen=4, source="point", judge="m"
            )
            store.put(make_conversation_rows(run, [conversation]))
            async with tracer.span("judge", kind="role", item=conversation.id):
                await ledger.intend(f"key{number}", 1, {"stage": "judge", "request": "{}"})
                await ledger.record(f"key{number}", 1, {"kind": "completed"}, f"answer to {number}")
            store.put(AnswerRows(run).of(conversation, [question], [answer], "f"))
            store.put([ScoreRow(run, conversation.id, 1.0, "positive", True, None)])
        await store.write_step(run, "select", {"kept": ["r1"]})
        store.put([LabelRow("ann", "h", "c1", run, "r1", '"Agree"')])
        store.finish(run, "done", roles=["m"])
    return folder


async def looked_at(folder: Path) -> list[Any]:
    """What a resume goes by."""
    with Store.open(folder) as store:
        (run,) = list_stored_runs(store)
        ledger = StoreCallLedger(store)
        replies = [await ledger.lookup(f"key{number}") for number in range(CALLS)]
        build_span_tree(store, run.id)
        return [
            run,
            read_step_result(store, run.id, "select"),
            read_answers(store, run.id),
            replies,
        ]


@pytest.mark.parametrize("places", [12, pytest.param(100, marks=pytest.mark.nightly)])
async def test_damage_anywhere_ends_in_words_and_nothing_is_paid_again(
    whole: Path, tmp_path: Path, places: int
) -> None:
    before = await looked_at(whole)
    told: list[str] = []
    for seed in range(places):
        rng = random.Random(seed)
        folder = tmp_path / str(seed)
        shutil.copytree(whole, folder)
        content = bytearray((folder / "store.sqlite").read_bytes())
        start = rng.randrange(len(content))
        length = rng.choice((1, 16, 4096))
        content[start : start + length] = rng.randbytes(len(content[start : start + length]))
        (folder / "store.sqlite").write_bytes(content)
        try:
            # no harm: a span, a request, an unused byte
            assert await looked_at(folder) == before
        except PollexError as error:
            told.append(error.hint)
        rebuild_store(folder)
        with Store.open(folder, read_only=True) as store:
            check_whole_store(store)
            assert store.value("SELECT value FROM labels") == '"Agree"'
        again = await looked_at(folder)
        assert again == before
        shutil.rmtree(folder)
    assert len(told) > places // 4
    assert all("pollex doctor --rebuild" in hint for hint in told), told


def test_a_part_that_was_damaged_is_told_and_set_aside_with_the_scores_that_stand_on_it(
    whole: Path,
) -> None:
    (part,) = whole.glob("runs/*/answers-*.parquet")
    content = bytearray(part.read_bytes())
    content[4:200] = bytes(196)
    part.write_bytes(content)
    with Store.open(whole) as store, pytest.raises(StoreDamaged, match=r"doctor --rebuild"):
        check_whole_store(store)
    assert any("answers-000001" in line for line in rebuild_store(whole))
    with Store.open(whole) as store:
        run = list_stored_runs(store)[0].id
        check_whole_store(store)
        assert read_answers(store, run) == {}
        assert store.ask(run, "SELECT * FROM scores") == []
        assert len(store.ask(run, "SELECT * FROM conversations")) == CALLS


def test_a_store_in_which_a_run_is_at_work_is_not_made_anew(whole: Path) -> None:
    with Store.open(whole) as store:
        run = store.begin("learn", arguments={}, fingerprint={}, versions={})
        with pytest.raises(StoreBusy, match=f"{run.id} is running"):
            rebuild_store(whole)
