"""The graph `judge`: votes that are kept, people who are waited for, and runs that are taken up again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from recorded_runs import Recorded

from pollex.conversations.conversation import Conversation, Label, Turn
from pollex.errors import Interrupted, ResumeRefused, WrongUse
from pollex.rooms.judge.agents.votes import JudgeEnsemble, RatingRule, RatingTask, make_question
from pollex.rooms.judge.graphs.state import RunTally
from pollex.rooms.judge.services.judge_runs import AskPeople, apply_people_answers, ask_and_rate
from pollex.rooms.judge.store.votes import iterate_verdicts
from pollex.rubrics.answers import Answer
from pollex.runs.run import RunSettings
from pollex.store.resume import iterate_conversations, list_stored_runs, read_answers
from pollex.store.store import Store

QUESTION = make_question("Was it done?", ["yes", "no"])
RUNS = {
    "sure": ["yes"] * 7,
    "near": ["no"] * 6 + ["yes"],
    "split": ["yes"] * 4 + ["no"] * 3,
    "five": ["yes"] * 5 + ["no"] * 2,
    "few": ["yes"] * 3,
    "mute": [],
}


def talk(id_: str, label: Label = Label.NONE, *, parties: bool = True) -> Conversation:
    said = [Turn(role="user", content=f"Please do {id_}."), Turn(role="assistant", content="Done.")]
    return Conversation(id=id_, turns=tuple(said if parties else said[:1]), label=label)


LOG = [talk(id_) for id_ in RUNS]


def task(**changes: Any) -> RatingTask:
    return RatingTask(QUESTION, **{"rule": RatingRule.of(7), "by": "recorded", **changes})


async def judged(
    store: Store, people: AskPeople | None = None, log: Sequence[Conversation] = LOG, **changes: Any
) -> RunTally:
    settings = {name: changes.pop(name) for name in ("resume", "batch") if name in changes}
    found = changes.pop("judge", Recorded(RUNS))
    asked_for = task(**changes)
    ensemble = JudgeEnsemble(found, rule=asked_for.rule)
    setting = RunSettings.of(store, **settings)
    return await ask_and_rate(
        log, ensemble, asked_for, data_fingerprint="d" * 64, setting=setting, people=people
    )


class Somebody:
    """A person who answers from a table, and remembers what was asked."""

    def __init__(self, *rounds: Mapping[str, str]) -> None:
        self.rounds, self.asked = list(rounds), list[dict[str, Any]]()

    def __call__(self, asked: Mapping[str, Any]) -> Mapping[str, str]:
        self.asked.append(dict(asked))
        return self.rounds.pop(0) if self.rounds else {}


@pytest.fixture
def store(tmp_path: Path) -> Any:
    with Store.open(tmp_path / "store") as opened:
        yield opened


async def test_a_run_that_is_none_of_judge_or_not_there_is_wrong_use(store: Store) -> None:
    run = store.begin("score", arguments={}, fingerprint={}, versions={})
    for name in (run.id, "nothing", "last"):
        with pytest.raises(WrongUse):
            await apply_people_answers(store, name, RunSettings.of(store), None)


async def test_a_run_with_conversations_that_nobody_was_asked_about_is_not_taken_up_for_people(
    store: Store,
) -> None:
    class Dies(Recorded):
        def again(self, replicate: int) -> Dies:
            raise Interrupted("stopped")

    with pytest.raises(Interrupted):
        await judged(store, judge=Dies(RUNS))
    with pytest.raises(ResumeRefused, match="6 conversations were not asked about yet"):
        await apply_people_answers(store, "last", RunSettings.of(store), None)
    assert list_stored_runs(store)[-1].status == "interrupted"


def test_a_precision_that_thumbs_cannot_tell_is_wrong_use() -> None:
    for question, precision in (
        (QUESTION, 0.0),
        (QUESTION, 1.1),
        (make_question("How?", ["a", "b", "c"]), 0.9),
    ):
        with pytest.raises(WrongUse):
            RatingTask(question, RatingRule.of(7), precision)


async def test_verdicts_and_what_waits_are_those_of_the_votes_the_most_contested_first(
    store: Store,
) -> None:
    person = Somebody()
    found = await judged(store, person)
    assert found.counts(found.tallies) == {"rated": 2, "disagreement": 2, "too_few_runs": 2}
    assert person.asked == [
        {
            "question": "Was it done?",
            "options": ["yes", "no"],
            "conversations": ["split", "five", "few", "mute"],
        }
    ]
    decided = {
        one.conversation_id: one
        for one in iterate_verdicts(store, found.run, found.task, found.rule, LOG)
    }
    assert {id_: one.final for id_, one in decided.items()} == dict.fromkeys(RUNS) | {
        "sure": "yes",
        "near": "no",
    }
    assert decided["few"].failures == {"error": 4}
    assert [
        sum(each)
        for each in zip(*((one.runs, one.planned) for one in decided.values()), strict=True)
    ] == [42, 42]
    assert list_stored_runs(store)[-1].status == "partial"
    for batch in (1, 2):
        again = await judged(store, batch=batch)
        assert again.counts(again.tallies) == found.counts(found.tallies)


async def test_what_a_person_answers_stands_the_rest_is_asked_again_and_what_was_not_asked_changes_nothing(
    store: Store,
) -> None:
    odd = {"sure": "no", "five": "perhaps", "stranger": "yes"}
    person = Somebody({"split": "no"}, {"few": "yes"} | odd)
    found = await judged(store, person)
    assert [one["conversations"] for one in person.asked] == [
        ["split", "five", "few", "mute"],
        ["five", "few", "mute"],
        ["five", "mute"],
    ]
    decided = iterate_verdicts(store, found.run, found.task, found.rule, LOG)
    ratings = {one.conversation_id: (one.final, one.person) for one in decided}
    assert [ratings[id_] for id_ in ("split", "few", "five")] == [
        ("no", "no"),
        ("yes", "yes"),
        (None, None),
    ]
    assert ratings["sure"] == ("yes", None)
    assert found.counts(found.tallies)["by a person"] == 2


async def test_a_run_is_taken_up_for_people_in_another_process_without_its_judge(
    tmp_path: Path,
) -> None:
    with Store.open(tmp_path / "store") as store:
        first = await judged(store)
    with Store.open(tmp_path / "store") as store:
        person = Somebody({"split": "no", "mute": "no"})
        found = await apply_people_answers(store, first.run, RunSettings.of(store), person)
        assert person.asked[0]["conversations"] == ["split", "five", "few", "mute"]
        assert (found.run, len(found.waiting), found.counts(found.tallies)["by a person"]) == (
            first.run,
            2,
            2,
        )
    with Store.open(tmp_path / "store") as store:
        found = await apply_people_answers(
            store, "last", RunSettings.of(store), Somebody({"five": "yes", "few": "no"})
        )
        assert len(found.waiting) == 0
        assert list_stored_runs(store)[-1].status == "done"
        decided = list(
            iterate_verdicts(
                store,
                found.run,
                found.task,
                found.rule,
                list(iterate_conversations(store, found.run)),
            )
        )
        assert [one.final for one in decided] == ["yes", "no", "no", "yes", "no", "no"]
        assert len(list_stored_runs(store)) == 1


async def test_every_run_is_kept_under_its_number_and_a_resumed_run_asks_none_of_them_again(
    store: Store,
) -> None:
    found = await judged(store)
    kept = read_answers(store, found.run)["near"]
    assert [name.partition("#")[2] for name in kept] == ["1", "2", "3", "4", "5", "6", "7"]
    assert [one.chosen for one in kept.values() if isinstance(one, Answer)] == [1] * 6 + [0]

    class Counting(Recorded):
        asked = 0

        async def judge(self, conversation: Conversation, questions: Any) -> Any:
            Counting.asked += 1
            return await super().judge(conversation, questions)

    again = await judged(store, judge=Counting(RUNS), resume=True)
    assert again.run == found.run
    assert Counting.asked == 4 + 7  # the failed runs of `few` and `mute`: they may be mended
    assert again.counts(again.tallies) == found.counts(found.tallies)


async def test_what_cannot_be_judged_is_neither_rated_nor_waited_for(store: Store) -> None:
    class Refuses(Recorded):
        async def judge(self, conversation: Conversation, questions: Any) -> Any:
            found = await super().judge(conversation, questions)
            return [one.model_copy(update={"outcome": "not_scorable"}) for one in found]

    found = await judged(store, judge=Refuses({}), log=[talk("alone", parties=False)])
    assert (found.counts(found.tallies), len(found.waiting)) == ({"not_scorable": 1}, 0)


async def test_tau_is_fitted_to_thumbs_when_all_runs_are_in_and_too_few_runs_are_not_fitted_to(
    store: Store,
) -> None:
    labels = {"sure": "up", "near": "down", "five": "up", "split": "down", "few": "down"}
    log = [
        talk(id_, Label.POSITIVE if up == "up" else Label.NEGATIVE) for id_, up in labels.items()
    ]
    found = await judged(store, log=log, precision=0.9, rule=RatingRule(7, 4, None))
    assert found.fitted is not None
    assert (found.fitted.n, found.fitted.passed, found.fitted.right) == (4, 3, 3)
    assert found.unseen is not None
    assert found.unseen.passed.n + found.unseen.left.n == found.unseen.units == 4
    assert found.rule.tau == pytest.approx(0.59827, abs=1e-5)
    assert found.counts(found.tallies) == {"rated": 3, "disagreement": 1, "too_few_runs": 1}


async def test_what_a_fitted_tau_does_to_unseen_thumbs_is_the_same_after_a_resume_and_in_any_order(
    store: Store,
) -> None:
    runs_ = {f"up{i}": ["yes"] * (7 - i % 3) + ["no"] * (i % 3) for i in range(12)}
    runs_ |= {f"down{i}": ["no"] * (7 - i % 4) + ["yes"] * (i % 4) for i in range(12)}
    log = [talk(id_, Label.POSITIVE if id_.startswith("up") else Label.NEGATIVE) for id_ in runs_]
    wrong = {"up0": runs_["up0"][::-1], "down11": ["yes"] * 5 + ["no"] * 2}
    changes = {"judge": Recorded(runs_ | wrong), "precision": 0.97, "rule": RatingRule(7, 4, None)}
    found = await judged(store, log=log, **changes)
    again = await judged(store, log=log, resume=True, batch=5, **changes)
    taken_up = await apply_people_answers(store, found.run, RunSettings.of(store), None)
    turned = await judged(store, log=log[::-1], **changes)
    assert found.fitted is not None
    assert found.unseen is not None
    assert found.unseen.passed.n + found.unseen.left.n == found.fitted.n == found.unseen.units == 24
    assert again.unseen == taken_up.unseen == turned.unseen == found.unseen
    # a thumb of either kind each
    users = [one.model_copy(update={"group": one.id[-2:].strip("pn")}) for one in log]
    grouped = await judged(store, log=users, **changes)
    assert grouped.unseen is not None
    assert grouped.unseen.units == 12


async def test_where_thumbs_tell_too_little_that_is_said_and_people_decide(store: Store) -> None:
    one_down = [
        talk("sure", Label.POSITIVE),
        talk("five", Label.POSITIVE),
        talk("near", Label.NEGATIVE),
    ]
    found = await judged(store, log=one_down, precision=0.9)
    assert found.fitted is not None
    assert (found.fitted.passed, found.unseen) == (3, None), "of unseen thumbs nothing is told"
    found = await judged(store, log=[talk("sure", Label.NEGATIVE), talk("near")], precision=0.9)
    assert found.rule.tau is None, "none reaches the precision"
    assert (found.counts(found.tallies), len(found.waiting)) == ({"disagreement": 2}, 2)
