"""Who proposes, selects and proves; what may be a target; who judges replies."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from rubric_set_by_hand import rubric, rubric_set

from pollex.agents.mixed import MixedJudge
from pollex.agents.roles import Judge
from pollex.conversations.conversation import Conversation, Turn
from pollex.conversations.logs import Logs
from pollex.rooms.remedy.agents.llm.second_reader import build_reply_judge
from pollex.rooms.remedy.conversations.reply_context import ReplyContext
from pollex.rooms.remedy.services.contexts import RubricOccurrences, explain_no_target
from pollex.rooms.remedy.services.desk import explain_zero_width
from pollex.rooms.remedy.services.prompt_text import PromptText, parse_named_file
from pollex.rooms.remedy.services.proposals import count_proposals_to_ask
from pollex.rooms.remedy.services.sample import RemedyOptions, assign_parts
from pollex.rooms.remedy.services.trials import sample_contexts
from pollex.rubrics.answers import Answer, Question, Unanswered

RUBRIC = rubric(1, "dsat").model_copy(
    update={"id": "t", "text": "The assistant names no other time."}
)
SET = rubric_set()


def table(number: int) -> Conversation:
    turns = (
        Turn(role="user", content=f"A table, {number}?"),
        Turn(role="assistant", content="Sorry, no."),
    )
    return Conversation(id=f"c{number}", turns=turns, group=f"u{number}")


def conversation(name: str, text: str, group: str | None) -> Conversation:
    return Conversation(id=name, turns=(Turn(role="user", content=text),), group=group)


def random_log(rng: np.random.Generator) -> list[Conversation]:
    """Users with one to six conversations, some without a user, some of one text."""
    n = int(rng.integers(5, 40))
    users = rng.integers(0, max(2, n // 2), n)
    texts = rng.integers(0, 2 * n, n)
    return [
        conversation(f"c{i}", f"text {texts[i]}", None if users[i] % 5 == 0 else f"u{users[i]}")
        for i in range(n)
    ]


def test_no_user_and_no_text_is_in_two_parts_of_random_logs() -> None:
    rng = np.random.default_rng(0)
    for seed in range(300):
        log = random_log(rng)
        parts = assign_parts(log, seed=seed)
        assert parts.keys() == {one.id for one in log}
        for key in ("group", "text_hash"):
            seen: dict[str, str] = {}
            for one in log:
                if (value := getattr(one, key)) is not None:
                    assert seen.setdefault(value, parts[one.id]) == parts[one.id]


def test_shares_are_a_fifth_three_tenths_and_a_half_and_the_order_of_rows_counts_nothing() -> None:
    log = [conversation(f"c{i}", f"text {i}", None) for i in range(1000)]
    parts = assign_parts(log, seed=3)
    assert [list(parts.values()).count(part) for part in ("propose", "select", "prove")] == [
        200,
        300,
        500,
    ]
    assert assign_parts(log[::-1], seed=3) == parts
    assert assign_parts(log, seed=4) != parts


def test_what_the_rubrics_were_learned_from_proves_only_where_there_is_too_little_else() -> None:
    log = [conversation(f"c{i}", f"text {i}", None) for i in range(100)]
    learned = {one.text_hash[:16] for one in log[:40]}
    parts = assign_parts(log, learned)
    assert all(parts[one.id] != "prove" for one in log[:40])
    parts = assign_parts(log, {one.text_hash[:16] for one in log[:80]})
    assert [parts[one.id] for one in log[80:]] == ["prove"] * 20


def test_without_a_selection_its_share_proves() -> None:
    log = [conversation(f"c{i}", f"text {i}", None) for i in range(100)]
    parts = list(assign_parts(log, select=False).values())
    assert (parts.count("propose"), parts.count("prove")) == (20, 80)


def test_who_names_a_number_of_proposals_has_a_selection_of_few_failures_and_is_told_so() -> None:
    log = [table(n) for n in range(50)]
    target = RubricOccurrences(RUBRIC, 50, 50, tuple(ReplyContext(one, 1) for one in log))
    known = (SET, Logs(log), PromptText("x"), [])
    usual = RemedyOptions(prompt=Path("x"), target="t")
    few = sample_contexts(*known, usual, target, ())
    assert (few.most, few.notes) == (1, [])
    named = RemedyOptions(
        prompt=Path("x"), target="t", candidates=3, replies=1, tried=20, others=10
    )
    some = sample_contexts(*known, named, target, ())
    assert some.most == 3
    assert "50 failing contexts are too few to choose by" in some.notes[0]
    assert [count_proposals_to_ask(most) for most in (1, 2, 3, 4, 6)] == [1, 1, 2, 2, 4]


def test_conversations_in_cases_prove_only_where_there_are_too_few_others_and_that_is_told() -> (
    None
):
    log = [table(n) for n in range(100)]
    target = RubricOccurrences(RUBRIC, 100, 100, tuple(ReplyContext(one, 1) for one in log))
    known = (
        SET,
        Logs(log),
        PromptText("x"),
        [],
        RemedyOptions(prompt=Path("x"), target="t", seed=1),
        target,
        (),
        (),
    )
    for in_cases, told in (
        (50, []),
        (100, ["80 contexts of conversations in cases, on which the change may be tuned"]),
    ):
        found = sample_contexts(*known, frozenset(one.text_hash[:16] for one in log[:in_cases]))
        assert found.notes == told
        assert bool(found.proving(found.tuned)) == bool(told)


def test_a_rubric_whose_evidence_goes_on_after_the_reply_is_no_target_of_a_model_either() -> None:
    replies = tuple(ReplyContext(table(n), 1) for n in range(10))
    assert "goes on with" in explain_no_target(
        SET, RubricOccurrences(RUBRIC, 10, 10, replies, later=9)
    )
    assert "goes on with" not in explain_no_target(
        SET, RubricOccurrences(RUBRIC, 10, 10, replies, later=4)
    )


def under(number: int, system: str | None, **metadata: str) -> Conversation:
    said = () if system is None else (Turn(role="system", content=system),)
    return table(number).model_copy(
        update={"turns": (*said, *table(number).turns), "metadata": metadata}
    )


def test_each_context_is_asked_under_the_prompt_of_its_conversation_and_others_are_counted_by_prompt() -> (
    None
):
    web = PromptText("Be short on {day}.", name="web")
    app = PromptText("Be kind.", name="app")
    log = [under(0, "Be short on Friday."), under(1, "Be kind."), under(2, "Be wild."), under(3, None, channel="app"),
           under(4, None, channel="web", day="Monday"), under(5, None)]  # fmt: skip
    target = RubricOccurrences(
        RUBRIC, 6, 6, tuple(ReplyContext(one, len(one.turns) - 1) for one in log)
    )
    options = RemedyOptions(prompt=("web=web.md", "app=app.md"), target="t")
    assert [parse_named_file(one) for one in options.prompts] == [
        ("web", Path("web.md")),
        ("app", Path("app.md")),
    ]
    sample = sample_contexts(SET, Logs(log), web, [], options, target, (), [app])
    assert sorted(one.conversation.id for one in sample.strata[0]) == ["c0", "c4"]
    assert (sample.unmatched, dict(sample.under)) == (4, {"app": 2})
    assert "2 of them are under the prompt app" in sample.notes


def test_a_pool_of_both_sides_is_judged_at_the_reply_by_both() -> None:
    class Judging(Judge):
        name = fingerprint = "judging"

        def __init__(self) -> None:
            self.seen: list[int] = []

        async def judge(
            self, conversation: Conversation, questions: Sequence[Question]
        ) -> list[Answer | Unanswered]:
            self.seen.append(len(conversation.turns))
            return [Unanswered(question_id=one.id, outcome="error", detail="") for one in questions]

    own = Judging()
    others = Judging()
    judge = build_reply_judge(MixedJudge(others, own))
    signed = RUBRIC.model_copy(update={"id": "s", "answered_by": "built-in"})
    said = table(0)
    longer = said.model_copy(update={"turns": (*said.turns, *said.turns)})
    answers = asyncio.run(
        judge.judge(
            longer, [Question.about(RUBRIC, "occasion"), Question.about(signed, "occasion")]
        )
    )
    assert ([one.question_id for one in answers], own.seen, others.seen) == (["t", "s"], [2], [2])


def test_an_interval_without_width_is_told_to_be_no_certainty() -> None:
    said = explain_zero_width("naive", value=1.0, low=1.0, high=1.0, users=13)
    assert "the effect was the same for all 13 users" in said
    assert "up to 21% of other users it may be different" in said
    assert explain_zero_width("naive", value=0.5, low=0.4, high=0.6, users=13) == ""
