"""The judge on a model: what goes wrong first, then what an answer is taken to mean."""

import json
import math
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from scripted import (
    ABLE,
    LISTING,
    TALK,
    Scripted,
    asker,
    honest,
    is_canary,
    items_of,
    of,
    questions,
    rubric,
    sheet,
    tokens,
    truth,
)

from pollex.agents.llm.extractor import LlmExtractor
from pollex.agents.llm.judge import BatchedElicitation, LlmJudge, sort_questions_by_rubric
from pollex.conversations.conversation import Conversation, Turn
from pollex.errors import ResumeRefused
from pollex.gateway.calls import (
    Call,
    Capabilities,
    CompletedReply,
    ContextExceeded,
    FailedCall,
    MalformedReply,
    Outcome,
    RefusedReply,
    TruncatedPrompt,
    TruncatedReply,
)
from pollex.rubrics.answers import LIKERT_OPTIONS, Answer, Option, Question, Unanswered
from pollex.store.resume import find_resumable_run
from pollex.store.store import Store

TWO = questions("one", "two")


def outcomes(answers: list[Answer | Unanswered]) -> list[str]:
    return [
        a.outcome if isinstance(a, Unanswered) else LIKERT_OPTIONS[a.chosen].text for a in answers
    ]


@pytest.mark.parametrize("elicitation", ["batched", "independent"])
@pytest.mark.parametrize(
    ("outcome", "word"),
    [
        (RefusedReply(detail="content filter"), "refused"),
        (ContextExceeded(detail="9,000 of 8,192 tokens"), "context_exceeded"),
        (TruncatedPrompt(detail="read 2,050 of 9,000"), "silently_truncated"),
        (MalformedReply(detail="not a chat completion"), "unparsable"),
        (FailedCall(fault="timeout", detail="timeout: 120 s"), "error"),
        (TruncatedReply(detail="stopped at the token limit"), "truncated"),
    ],
)
async def test_a_call_without_an_answer_leaves_every_question_unanswered(
    outcome: Outcome, word: str, elicitation: str
) -> None:
    judge = LlmJudge(asker(Scripted(otherwise=outcome), elicitation=elicitation))
    answers = await judge.judge(TALK, TWO)
    assert outcomes(answers) == [word, word]
    assert [answer.question_id for answer in answers] == [question.id for question in TWO]
    assert all(
        isinstance(answer, Unanswered) and answer.detail == outcome.detail for answer in answers
    )


@pytest.mark.parametrize("elicitation", ["batched", "independent"])
async def test_nothing_but_turns_is_sent_and_no_call_is_made_for_what_cannot_be_scored(
    elicitation: str,
) -> None:
    door = Scripted(otherwise=honest({}))
    alone = Conversation(id="c", turns=(Turn(role="user", content="Hello?"),))
    judge = LlmJudge(asker(door, elicitation=elicitation))
    assert outcomes(await judge.judge(alone, TWO)) == ["not_scorable", "not_scorable"]
    assert door.history == []
    await judge.judge(TALK, TWO)
    sent = json.dumps([list(call.messages) for call in door.history])
    assert "secret" not in sent
    assert "positive" not in sent


async def test_an_answer_that_was_cut_has_twice_the_room_and_only_what_is_missing_is_asked_again() -> (
    None
):
    door = Scripted([TruncatedReply(text='{"1": {"why"')], honest({"one": "Agree"}))
    answers = await LlmJudge(asker(door, max_tokens=100)).judge(TALK, TWO)
    assert outcomes(answers) == ["Agree", "Neutral"]
    assert [call.max_tokens for call in door.history] == [100, 200]
    for second, word in (("Disagree", "Disagree"), (None, "unparsable")):
        door = Scripted([honest({"one": "Agree", "two": None})], honest({"two": second}))
        judge = LlmJudge(asker(door))
        assert outcomes(await judge.judge(TALK, TWO)) == ["Agree", word]
        asked = [
            {text for text in items_of(call).values() if not is_canary(text)}
            for call in door.history
        ]
        assert asked == [{"one", "two"}, {"two"}]
        assert judge.tally["asked again"] == 1


@pytest.mark.parametrize("text", ["I like it.", '{"1": {"why": "cut', "[]", "<think>{}"])
async def test_an_answer_without_an_object_is_asked_again_as_another_call(text: str) -> None:
    door = Scripted([text], honest({"one": "Agree"}))
    judge = LlmJudge(asker(door, samples=1))
    assert outcomes(await judge.judge(TALK, TWO)) == ["Agree", "Neutral"]
    assert [call.replicate for call in door.history] == [0, 1]
    assert door.history[0].messages == door.history[1].messages
    assert judge.tally == Counter({"asked again": 2})


async def test_answers_that_nobody_asked_for_are_dropped_and_counted() -> None:
    def generous(call: Call) -> Outcome:
        extra = {"99": {"why": "", "turns": [], "answer": "Agree"}, "note": 1}
        return CompletedReply(
            text=json.dumps(dict(reversed((sheet(call, {"one": "Agree"}) | extra).items())))
        )

    judge = LlmJudge(asker(Scripted(otherwise=generous)))
    assert outcomes(await judge.judge(TALK, TWO)) == ["Agree", "Neutral"]
    assert judge.tally["unknown answers"] == 2


NO_LABELS = [
    *(
        "Strongly Agreee",
        "6",
        6,
        "N/A",
        "",
        "...",
        "Ich stimme zu",
        "Agree\u200b",
        ["Agree"],
        True,
        "Agree?",
    ),
    *("Agree, in part", "Agree or Neutral", "I agree"),
]
LABELS = [
    "Agree",
    " Agree\n",
    "Ａｇｒｅｅ",
    "\u00a0Agree",
    "agree",
    "AGREE",
    "Agree.",
    "**Agree**",
    '"agree".',
    "«Agree»",
]


@pytest.mark.parametrize(
    ("label", "outcome"),
    [
        *[(label, "unparsable") for label in NO_LABELS],
        *[(label, "Agree") for label in LABELS],
    ],
)
async def test_a_label_is_exact_but_for_case_marks_around_it_and_unicode_forms(
    label: Any, outcome: str
) -> None:
    door = Scripted(otherwise=honest({"one": label, "two": "Agree"}))
    assert outcomes(await LlmJudge(asker(door)).judge(TALK, TWO)) == [outcome, "Agree"]
    assert len(door.history) == 1


async def test_one_wrong_canary_makes_its_call_suspect_and_no_other() -> None:
    def half_obedient(call: Call) -> Outcome:
        asked = items_of(call).values()
        return honest({} if "fine" in asked else dict.fromkeys(asked, "Strongly Agree"))(call)

    def blind(call: Call) -> Outcome:
        return honest(
            {text: "Agree" if not is_canary(text) else None for text in items_of(call).values()}
        )(call)

    judge = LlmJudge(asker(Scripted(otherwise=half_obedient)))
    answers = await judge.judge(TALK, [*TWO, *questions("fine", polarity="dsat")])
    assert outcomes(answers) == ["suspect", "suspect", "Neutral"]
    assert "Strongly Agree to The user uses the word" in answers[0].detail  # type: ignore[union-attr]
    assert judge.tally["failed canaries"] == 1
    passed_over = LlmJudge(asker(Scripted(otherwise=blind)))
    assert outcomes(await passed_over.judge(TALK, TWO)) == ["suspect", "suspect"]
    await LlmJudge(asker(none := Scripted(otherwise=honest({})), canary=False)).judge(TALK, TWO)
    assert list(items_of(none.history[0]).values()) == ["one", "two"]


WRAPPED = ["```json\n{}\n```", "Here it is:\n{}", "<think>Hmm {{</think>{}", "{}\n<end>"]
WRAPPED += ['{{"1": {{"why": "", "turns": [], "answer": "Disagree"}}}}\nNo:\n{}']


async def test_a_wrapped_answer_is_read_and_a_question_answered_twice_counts_once_if_the_answers_agree() -> (
    None
):
    def wrote(wrapping: str, second: str | None = None) -> Scripted:
        def wrapped(call: Call) -> Outcome:
            text = json.dumps(sheet(call, {"one": "Agree"}))
            place = next(number for number, item in items_of(call).items() if item == "one")
            again = f', "{place}": {{"why": "again", "turns": [], "answer": "{second}"}}}}'
            return CompletedReply(text=wrapping.format(f"{text[:-1]}{again}" if second else text))

        return Scripted(otherwise=wrapped)

    for door, outcome in (
        *[(wrote(wrapping), "Agree") for wrapping in WRAPPED],
        (wrote("{}", "Agree"), "Agree"),
        (wrote("{}", "Disagree"), "unparsable"),
    ):
        assert outcomes(await LlmJudge(asker(door)).judge(TALK, TWO)) == [outcome, "Neutral"]
        assert len(door.history) == 1


BOTH = [*questions("a", "b", "c"), *questions("d", "e", "f", polarity="dsat")]


def agree_to_all(call: Call) -> CompletedReply:
    """Answer without reading: canaries, too."""
    return CompletedReply(
        text=json.dumps({n: {"why": "so", "turns": [1], "answer": "Agree"} for n in items_of(call)})
    )


@pytest.mark.parametrize(("on", "word"), [(True, "suspect"), (False, "Agree")])
async def test_who_gives_one_answer_to_canaries_too_loses_the_calls_that_passed(
    on: bool, word: str
) -> None:
    judge = LlmJudge(asker(Scripted(otherwise=agree_to_all), straight_lining=on))
    assert outcomes(await judge.judge(TALK, BOTH)) == ["suspect"] * 3 + [word] * 3
    assert judge.tally["straight-lined"] == 3 * on


@pytest.mark.parametrize("word", ["Strongly Disagree", "Agree"])
async def test_truthful_answers_of_a_bare_reply_may_all_be_alike(word: str) -> None:
    judge = LlmJudge(asker(Scripted(otherwise=honest({}, word))))
    assert outcomes(await judge.judge(TALK, BOTH)) == [word] * 6


async def test_up_to_ten_questions_go_in_a_call_and_good_and_bad_apart() -> None:
    door = Scripted(otherwise=honest({}))
    good = [f"good {i}" for i in range(12)]
    bad = [f"bad {i}" for i in range(10)]
    asked = [*questions(*good), *questions(*bad, polarity="dsat")]
    answers = await LlmJudge(asker(door)).judge(TALK, asked)
    assert [answer.question_id for answer in answers] == [question.id for question in asked]
    batches = [
        [text for text in items_of(call).values() if not is_canary(text)] for call in door.history
    ]
    in_order = {
        polarity: [
            question.text for question in sort_questions_by_rubric(asked) if question.text in texts
        ]
        for polarity, texts in (("sat", good), ("dsat", bad))
    }
    assert batches == [in_order["sat"][:10], in_order["sat"][10:], in_order["dsat"]]
    assert all(
        len(items_of(call)) == len(batch) + 1
        for call, batch in zip(door.history, batches, strict=True)
    )
    assert len({json.dumps(call.messages[:2]) for call in door.history}) == 1


async def test_rubrics_chosen_in_another_order_are_the_same_calls() -> None:
    doors = [Scripted(otherwise=honest({})), Scripted(otherwise=honest({}))]
    asked = questions(*[f"good {i}" for i in range(13)])
    for door, in_some_order in zip(doors, (asked, asked[::-1]), strict=True):
        await LlmJudge(asker(door)).judge(TALK, in_some_order)
    calls = [sorted(str(call.messages) for call in door.history) for door in doors]
    assert calls[0] == calls[1]


async def test_questions_with_other_options_are_asked_with_those_and_without_a_canary() -> None:
    options = (Option(text="Yes", value=1), Option(text="No", value=0))
    door = Scripted(otherwise=honest({"Solved?": "Yes"}))
    answers = await LlmJudge(asker(door)).judge(
        TALK, [*TWO, Question(id="q", text="Solved?", options=options)]
    )
    assert isinstance(answers[2], Answer)
    assert answers[2].probabilities == (1.0, 0.0)
    assert door.history[1].schema["$defs"]["a"]["properties"]["answer"]["enum"] == ["Yes", "No"]  # type: ignore[index]
    assert list(items_of(door.history[1]).values()) == ["Solved?"]


async def test_an_answer_keeps_words_turns_and_who_gave_it() -> None:
    def talkative(call: Call) -> Outcome:
        said = sheet(call, {"one": "Agree"})
        place = next(number for number, item in items_of(call).items() if item == "one")
        said[place] |= {"why": "Broken \ud83d.", "turns": [2, 0, 2, 9, -1, "1", True]}
        return CompletedReply(text=json.dumps(said))

    answer = of(Answer, (await LlmJudge(asker(Scripted(otherwise=talkative))).judge(TALK, TWO))[0])
    assert (answer.justification, answer.turns, answer.source) == ("Broken ?.", (0, 2), "point")
    assert answer.judge.startswith("scripted judge_batch@")
    assert answer.value() == 7.5


def listing(call: Call) -> Outcome:
    """Says Agree to `one` with probability 0.6; Neutral has 0.2, Strongly Agree 0.1, no option the rest."""
    alternatives = {
        "D": math.log(0.6),
        "C": math.log(0.2),
        "E": math.log(0.1),
        "Maybe": math.log(0.1),
    }
    letters = dict(zip([option.text for option in LIKERT_OPTIONS], "ABCDE", strict=True))
    pieces: list[tuple[str, dict[str, float]]] = [("{", {})]
    for number, said in sheet(call, {"one": "Agree"}).items():
        comma = "," if len(pieces) > 1 else ""
        pieces.append(
            (
                f'{comma}"{number}":{{"why":"{said["why"].replace(chr(34), "")}","turns":[0],"answer":"',
                {},
            )
        )
        letter = letters[said["answer"]]
        pieces.append((letter, alternatives if items_of(call)[number] == "one" else {letter: 0.0}))
        pieces.append((f'. {said["answer"]}"}}', {}))
    pieces.append(("}", {}))
    return CompletedReply(text="".join(token for token, _ in pieces), logprobs=tokens(pieces))


async def test_log_probabilities_of_the_answers_token_are_the_distribution_and_not_renormalised() -> (
    None
):
    door = Scripted(otherwise=listing)
    answer = of(Answer, (await LlmJudge(asker(door, LISTING, samples=5)).judge(TALK, TWO))[0])
    assert answer.source == "logprobs"
    assert answer.probabilities == pytest.approx((0, 0, 0.2, 0.6, 0.1))
    assert answer.mass == pytest.approx(0.9)
    assert answer.value() == pytest.approx((0.2 * 5 + 0.6 * 7.5 + 0.1 * 10) / 0.9)
    assert [(call.top_logprobs, call.temperature) for call in door.history] == [(20, 0.0)]


@pytest.mark.parametrize("elicitation", ["batched", "independent"])
@pytest.mark.parametrize(("require", "word"), [("logprobs", "error"), (None, "Neutral")])
async def test_an_answer_that_came_without_log_probabilities_falls_back_only_if_it_may(
    require: Any, word: str, elicitation: str
) -> None:
    reply = honest({}) if elicitation == "batched" else CompletedReply(text="C")
    judge = LlmJudge(
        asker(
            Scripted(otherwise=reply),
            LISTING,
            require=require,
            elicitation=elicitation,
            canary=False,
        )
    )
    answers = await judge.judge(TALK, TWO)
    assert outcomes(answers) == [word, word]
    if require:
        assert answers[0].detail.startswith("no_logprobs")  # type: ignore[union-attr]
    else:
        assert answers[0].source == "point"  # type: ignore[union-attr]


async def test_samples_are_separate_calls_and_their_shares_the_distribution() -> None:
    replies = [honest({"one": answer}) for answer in ["Agree", "Disagree", "Agree", "Whatever"]]
    door = Scripted(list(replies))
    answer = of(
        Answer, (await LlmJudge(asker(door, samples=4, temperature=0.7)).judge(TALK, TWO))[0]
    )
    assert answer.source == "sampled"
    assert answer.probabilities == (0, 0.25, 0, 0.5, 0)
    assert answer.chosen == 3
    assert [(call.replicate, call.temperature) for call in door.history] == [
        (i, 0.7) for i in range(4)
    ]
    assert {call.seed for call in door.history} == {None}
    assert len({json.dumps(list(call.messages)) for call in door.history}) == 1


@pytest.mark.parametrize("elicitation", ["batched", "independent"])
async def test_every_sample_has_a_seed_of_its_own_and_its_second_try_has_the_same(
    elicitation: str,
) -> None:
    door = Scripted(otherwise="{}")
    await LlmJudge(asker(door, samples=3, seed=5, elicitation=elicitation, canary=False)).judge(
        TALK, TWO
    )
    assert {call.seed for call in door.history} == {5, 6, 7}
    assert all(call.seed == 5 + call.replicate % 3 for call in door.history)
    assert max(call.replicate for call in door.history) == (5 if elicitation == "batched" else 2)


@pytest.mark.parametrize(("able", "samples"), [(ABLE, 1), (LISTING, 4)])
async def test_without_samples_second_tries_have_the_seed_that_was_given(
    able: Capabilities, samples: int
) -> None:
    door = Scripted(otherwise="{}")
    await LlmJudge(asker(door, able, samples=samples, seed=5)).judge(TALK, TWO)
    assert [(call.replicate, call.seed) for call in door.history] == [(0, 5), (samples, 5)]
    door = Scripted(otherwise=honest({"one": "Agree"}))
    judge = LlmJudge(asker(door, samples=3, seed=5, canary=False))
    for run in range(2):
        await judge.again(run).judge(TALK, TWO)
    assert [call.seed for call in door.history] == [5, 6, 7, 8, 9, 10], "no two runs share one"


async def test_a_sample_that_never_came_is_no_missing_mass_and_none_at_all_gives_the_most_frequent_cause() -> (
    None
):
    lost = FailedCall(fault="timeout", detail="timeout")
    refused = RefusedReply(detail="no")
    answer = (
        await LlmJudge(asker(Scripted([lost], honest({"one": "Agree"})), samples=3)).judge(
            TALK, TWO
        )
    )[0]
    assert isinstance(answer, Answer)
    assert answer.probabilities == (0, 0, 0, 1.0, 0)
    judge = LlmJudge(asker(Scripted([refused, lost, refused]), samples=3))
    assert outcomes(await judge.judge(TALK, TWO)) == ["refused", "refused"]


async def test_an_endpoint_that_cannot_keep_to_a_schema_is_shown_it() -> None:
    door = Scripted(otherwise=honest({}))
    poor = replace(ABLE, json_schema=False, tools=False, seed=False, temperature=False)
    await LlmJudge(asker(door, poor, seed=7)).judge(TALK, TWO)
    call = door.history[0]
    assert (call.form, call.seed, call.temperature) == ("json_object", None, None)
    assert '"required":["1","2","3"]' in call.messages[-1]["content"]


def test_the_fingerprint_hangs_on_model_settings_and_profile_and_not_on_the_salt() -> None:
    base = asker(Scripted())
    first = LlmJudge(base).fingerprint
    assert LlmJudge(replace(base, salt=b"other")).fingerprint == first
    others = [
        replace(base, settings=base.settings.but(batch=5)),
        replace(base, settings=base.settings.but(elicitation="independent")),
        replace(base, capabilities=replace(ABLE, model="other")),
        replace(base, profile=base.profile.model_copy(update={"user": "a pilot"})),
    ]
    assert len({first, *(LlmJudge(other).fingerprint for other in others)}) == 5


class TestIndependent:
    @staticmethod
    def letter(call: Call) -> Outcome:
        """C, with probabilities for C, D and something else; canaries are answered right."""
        text = call.messages[-1]["content"].splitlines()[1]
        if is_canary(json.loads(text)):
            return CompletedReply(text="D" if truth(call, json.loads(text)) else "B")
        listed = {
            "C": math.log(0.5),
            "D": math.log(0.25),
            " C": math.log(0.125),
            "The": math.log(0.1),
        }
        return CompletedReply(text="C", logprobs=tokens([("C", listed)]))

    async def test_one_token_a_question_and_its_distribution(self) -> None:
        door = Scripted(otherwise=self.letter)
        answers = await LlmJudge(asker(door, LISTING, elicitation="independent")).judge(TALK, TWO)
        for answer in answers:
            assert of(Answer, answer).source == "logprobs"
            assert of(Answer, answer).probabilities == pytest.approx((0, 0, 0.625, 0.25, 0))
        assert [call.max_tokens for call in door.history] == [1, 1, 1]
        assert all(call.schema is None for call in door.history)

    async def test_a_letter_may_have_words_around_it_that_say_nothing_else(self) -> None:
        for text in (
            "C",
            "c.",
            "(C)",
            "**C**",
            "C. Neutral",
            "Neutral",
            "The answer is C.",
            "Final answer: C",
        ):
            door = Scripted(otherwise=CompletedReply(text=text))
            answers = await LlmJudge(asker(door, elicitation="independent", canary=False)).judge(
                TALK, TWO
            )
            assert outcomes(answers) == ["Neutral", "Neutral"]

    async def test_what_is_no_letter_of_an_option_is_unparsable(self) -> None:
        for text in ("The", "F", "cc", "C?", "3", "C or D"):
            door = Scripted(otherwise=CompletedReply(text=text))
            answers = await LlmJudge(asker(door, elicitation="independent", canary=False)).judge(
                TALK, TWO
            )
            assert outcomes(answers) == ["unparsable", "unparsable"]
            assert len(door.history) == 2

    @pytest.mark.parametrize(
        ("reply", "words"),
        [
            (CompletedReply(text="E"), ["suspect", "suspect", "Neutral"]),
            (CompletedReply(text="Yes"), ["suspect"] * 3),
            (FailedCall(fault="timeout", detail="timeout"), ["Neutral"] * 3),
        ],
    )
    async def test_a_wrong_canary_makes_questions_of_its_polarity_suspect_and_a_lost_one_proves_nothing(
        self, reply: Outcome, words: list[str]
    ) -> None:
        def spoilt(call: Call) -> Outcome:
            canary_asked = is_canary(json.loads(call.messages[-1]["content"].splitlines()[1]))
            return reply if canary_asked else CompletedReply(text="C")

        judge = LlmJudge(asker(door := Scripted(otherwise=spoilt), elicitation="independent"))
        assert (
            outcomes(await judge.judge(TALK, [*TWO, *questions("three", polarity="dsat")])) == words
        )
        assert len(door.history) == 5

    async def test_a_question_that_is_no_rubric_is_asked_as_it_stands(self) -> None:
        options = tuple(Option(text=str(i), value=i) for i in range(1, 11))
        door = Scripted(otherwise=CompletedReply(text="J"))
        question = Question(id="q", text="How good, 1 to 10?", options=options)
        answer = of(
            Answer,
            (await LlmJudge(asker(door, elicitation="independent")).judge(TALK, [question]))[0],
        )
        assert answer.chosen == 9
        task = door.history[0].messages[-1]["content"]
        assert "How far do you agree" not in task
        assert '"How good, 1 to 10?"\nA. 1\n' in task
        await LlmJudge(asker(door, elicitation="independent")).judge(
            TALK, [Question.about(rubric("It works."))]
        )
        assert "How far do you agree" in door.history[1].messages[-1]["content"]


async def test_an_occasion_that_never_came_up_is_an_answer_of_its_own_and_no_value() -> None:
    asked = [Question.about(rubric("The assistant owns up."), "occasion")]
    door = Scripted(otherwise=honest({"The assistant owns up.": "Never came up"}))
    found = of(Answer, (await LlmJudge(asker(door)).judge(TALK, asked))[0])
    assert found.never_came_up
    assert found.mass == 0
    assert "Never came up" in door.history[0].messages[2]["content"]
    one_by_one = Scripted(otherwise=CompletedReply(text="F"))
    (found,) = await LlmJudge(asker(one_by_one, elicitation="independent", canary=False)).judge(
        TALK, asked
    )
    assert isinstance(found, Answer)
    assert found.never_came_up
    assert found.mass == 0
    task = one_by_one.history[0].messages[-1]["content"]
    assert "Never came up if not applicable" in task
    assert "\nF. Never came up\n" in task
    await LlmJudge(asker(door, scale="likert-domain")).judge(TALK, questions("one"))
    assert "Never came up" not in door.history[1].messages[2]["content"], (
        "the paper's own scale has no such answer"
    )
    assert "Neutral if not applicable" in door.history[1].messages[2]["content"]


def test_a_resume_with_another_prompt_or_scale_is_refused_and_says_whose(tmp_path: Path) -> None:
    judge = LlmJudge(asker(Scripted()))
    changed = BatchedElicitation(asker(Scripted()))
    changed.prompt = replace(changed.prompt, version="another")
    other = LlmJudge(asker(Scripted()), changed)
    before = {"judge": judge.fingerprint}
    now = {"judge": other.fingerprint}
    with Store.open(tmp_path) as store:
        begun = store.begin("score", arguments={}, fingerprint=before, versions={})
        assert find_resumable_run(store, "score", before).id == begun.id
        with pytest.raises(ResumeRefused, match="judge: another model, prompt or setting"):
            find_resumable_run(store, "score", now)
    extractor = LlmExtractor(asker(Scripted()))
    changed_one = LlmExtractor(asker(Scripted()))
    changed_one.prompts["sat"] = replace(changed_one.prompts["sat"], version="another")
    assert extractor.fingerprint != changed_one.fingerprint
    assert (
        len(
            {
                LlmJudge(asker(Scripted(), scale=scale)).fingerprint
                for scale in ("likert", "numeric")
            }
        )
        == 2
    )
