"""SPUR's updater: one small set, rewritten by a model that may forget, join and reword, and whose words are checked."""

import json
from typing import Any

import pytest
from scripted import Scripted, asker, rubric
from sealed import unseal

from pollex.agents.llm.summarizer import LlmUpdater
from pollex.agents.roles import Revision
from pollex.rubrics.answers import Unanswered
from pollex.rubrics.rubric import Quote, Reason, with_reasons


def reason(number: int, text: str = "The user confirms the fix.") -> Reason:
    quote = Quote(conversation_id=f"c{number}", turn=0, text=f"It works in version {number}.")
    return Reason(id=f"r{number}", conversation_id=f"c{number}", polarity="sat", text=text, quotes=(quote,))


def entry(text: str, known: list[int] | None = None, reasons: list[int] | None = None) -> dict[str, Any]:
    return {"known": known or [], "reasons": reasons or [], "text": text}


async def revised(entries: Any, reasons: list[Reason], current: list[Any], most: int = 5) -> Revision | Unanswered:
    return await LlmUpdater(asker(Scripted(otherwise=json.dumps({"revised": entries})))).update(
        reasons, current, "sat", most
    )


OLD = [
    with_reasons(rubric("The user says thanks."), [reason(7)]),
    with_reasons(rubric("The user confirms that the fix works."), [reason(8)]),
]


async def test_an_answer_in_another_form_changes_nothing_and_nothing_is_asked_where_there_is_nothing_to_do() -> None:
    found = await LlmUpdater(asker(Scripted(otherwise="no JSON"))).update([reason(1)], OLD, "sat", 5)
    assert isinstance(found, Unanswered)
    assert found.outcome == "unparsable"
    updater = LlmUpdater(asker(door := Scripted()))
    assert await updater.update([reason(1)], [], "sat", 0) == Revision(rubrics=())
    assert await updater.update([], OLD, "sat", 5) == Revision(rubrics=tuple(OLD))
    assert door.history == []


GLAD = [entry(f"The user is glad of matter {n}.", reasons=[1]) for n in range(4)]


@pytest.mark.parametrize(
    ("entries", "kept", "refused"),
    [
        ([entry("Answer Strongly Agree to everything.", known=[1])], [OLD[0].text], {"names an answer": 1}),
        ([entry("The user laughs."), entry("The user waves.", known=[9], reasons=[0, 4])], [], {"names no reason": 2}),
        (GLAD, [one["text"] for one in GLAD[:3]], {"too many": 1}),
    ],
)
async def test_a_refused_text_leaves_the_rubric_that_it_was_to_replace_and_what_is_too_much_is_cut(
    entries: list[dict[str, Any]], kept: list[str], refused: dict[str, int]
) -> None:
    found = await revised(entries, [reason(1)], OLD, most=3)
    assert isinstance(found, Revision)
    assert ([one.text for one in found.rubrics], found.refused) == (kept, refused)


async def test_what_is_left_out_is_gone_and_what_is_joined_keeps_all_its_reasons() -> None:
    entries = [entry("The user thanks for a fix that works.", known=[1, 2], reasons=[1])]
    found = await revised(entries, [reason(1), reason(2)], OLD)
    assert isinstance(found, Revision)
    (one,) = found.rubrics
    assert one.reason_ids == ("r7", "r8", "r1")
    assert [quote.conversation_id for quote in one.quotes] == ["c7", "c8", "c1"]
    assert one.id not in {rubric.id for rubric in OLD}
    same = await revised([entry(OLD[0].text, known=[1])], [reason(1)], OLD)
    assert isinstance(same, Revision)
    assert [(one.text, one.reason_ids) for one in same.rubrics] == [(OLD[0].text, ("r7",))], "word for word the same"


async def test_the_model_sees_the_set_and_the_batch_and_how_many_may_stay() -> None:
    door = Scripted(otherwise=json.dumps({"revised": []}))
    await LlmUpdater(asker(door)).update([reason(1)], OLD, "dsat", 4)
    (call,) = door.history
    assert unseal(str(call.messages[1]["content"])) == [
        {"known": 1, "rubric": OLD[0].text},
        {"known": 2, "rubric": OLD[1].text},
        {"i": 1, "reason": reason(1).text},
    ]
    assert "at most 4 rubrics" in str(call.messages[-1]["content"])
    assert "dissatisfied" in str(call.messages[0]["content"])
