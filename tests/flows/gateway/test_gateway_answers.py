"""Reading answers: objects in prose, and distributions over labels."""

import json
import math
from collections.abc import Sequence
from typing import Any

import pytest
from gateway_asking import LABELS, ask_once, gateway, question
from hypothesis import assume, given
from hypothesis import strategies as st
from protocol_server import ProtocolServer
from protocol_server.answers import truth

from pollex.gateway.calls import Call, CompletedReply
from pollex.gateway.json_in_text import find_last_json_object, locate_json_values
from pollex.gateway.logprobs import AnswerTokens

ANSWER = {"why": 'He said "no, [really]".', "answer": "Agree"}
PLAIN = json.dumps(ANSWER)


def test_the_last_complete_object_is_the_answer() -> None:
    for text in (
        PLAIN,
        f"\ufeff \n{PLAIN}\n",
        f"```json\n{PLAIN}\n```",
        f"Here you are: {PLAIN} Anything else? See [1].",
        f'First {{"answer": "Disagree"}}, no: {PLAIN}',
        f'<think>{{"answer": "Neutral"}} hm</think>{PLAIN}',
        f"<think>\n</think>\n\n```\n{PLAIN}\n```",
        PLAIN[:-1] + " ,\n}",
        f"{{not json}} {PLAIN}",
        f'{PLAIN} {{"answer": "Agr',
    ):
        block = find_last_json_object(text)
        assert block is not None
        assert block.value == ANSWER
        assert text[slice(*locate_json_values(text, block)["answer",])] == "Agree"


@pytest.mark.parametrize(
    "written",
    [
        '{"properties": {"answer": "yes"}}',
        '{"type": "object", "properties": {"answer": "yes"}, "required": ["answer"]}',
        '{"result" : {"data": {"answer": "yes",}}}',
        '```json\n{"output": {"answer": "yes"}}\n```',
    ],
)
def test_an_object_is_taken_out_of_one_that_says_nothing_else(written: str) -> None:
    block = find_last_json_object(written)
    assert block is not None
    assert block.value == {"answer": "yes"}
    assert written[block.start :].startswith('{"answer"')
    start, end = locate_json_values(written, block)["answer",]
    assert written[start:end] == "yes"


@pytest.mark.parametrize(
    "value",
    [
        {"result": {"answer": "yes"}, "answer": "no"},
        {"1": {"answer": "yes"}},
        {"result": "yes"},
        {"properties": {}, "answer": "yes"},
    ],
)
def test_an_object_that_says_more_stays_whole(value: dict[str, Any]) -> None:
    block = find_last_json_object(json.dumps(value))
    assert block is not None
    assert block.value == value


@pytest.mark.parametrize("space", ["\n", "\t", "\r\n"])
def test_a_line_may_break_within_a_string(space: str) -> None:
    block = find_last_json_object(f'{{"why": "first{space}second", "option": "yes"}}')
    assert block is not None
    assert block.value == {"why": f"first{space}second", "option": "yes"}


def test_what_is_no_object_is_not_mended_into_one() -> None:
    for text in (
        "",
        "Agree",
        "[1, 2]",
        PLAIN[:-1],
        "{'answer': 'Agree'}",
        '{"value": NaN}',
        '{"answer": "Agree",,}',
        f"<think>{PLAIN}",
        "{" * 100_000,
        '{"a":' * 50_000,
    ):
        assert find_last_json_object(text) is None, text[:40]


QUOTING = {"answer": "Agree", "why": "USER asks what <think> and </think> are."}


def test_tags_of_thoughts_within_an_answer_are_words_of_it() -> None:
    answer = json.dumps(QUOTING)
    for around in ("{}", " ```json\n{}\n```", "<think>Hm {{</think>\n{}", "{{</think>{}"):
        for written in (answer, answer[:-1] + ",}"):
            block = find_last_json_object(around.format(written))
            assert block is not None
            assert block.value == QUOTING


def test_every_value_is_found_where_it_stands() -> None:
    text = (
        'Well: {"answers": [{"id": "r,1", "n": 3}, {"id": "r]2", "ok": true,}], "x": {"y": "é\\""}}'
    )
    block = find_last_json_object(text)
    assert block is not None
    assert {path: text[slice(*span)] for path, span in locate_json_values(text, block).items()} == {
        ("answers", 0, "id"): "r,1",
        ("answers", 0, "n"): "3",
        ("answers", 1, "id"): "r]2",
        ("answers", 1, "ok"): "true",
        ("x", "y"): 'é\\"',
    }


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)


@given(
    st.dictionaries(st.text(), json_values, max_size=4),
    st.text(alphabet=st.characters(exclude_characters="{<")),
)
def test_any_object_is_read_back_from_any_prose(value: dict[str, Any], prose: str) -> None:
    text = f"{prose}{json.dumps(value)}{prose}"
    assume("think>" not in text)  # behind prose, a tag ends thoughts: it has tests of its own
    block = find_last_json_object(text)
    assert block is not None
    assert block.value == value
    for span in locate_json_values(text, block).values():
        assert text[slice(*span)] in text


@given(st.text(alphabet='{}[]":,\\ae1 <>/think\n'))
def test_no_text_breaks_the_reader(text: str) -> None:
    block = find_last_json_object(text)
    assert block is None or locate_json_values(text, block) is not None


def entry(token: str, probability: float, **alternatives: float) -> dict[str, Any]:
    """A token as the protocol has it; alternatives by name, `_` for a space."""
    top = {token: probability, **{name.replace("_", " "): p for name, p in alternatives.items()}}
    listed = [
        {"token": text, "logprob": math.log(p) if p else -9999.0, "bytes": None}
        for text, p in top.items()
    ]
    return {"token": token, "logprob": math.log(probability), "top_logprobs": listed}


def chances(
    entries: Any, text: str, at: int = 0, labels: Sequence[str] = LABELS
) -> tuple[float, ...]:
    """The distribution over labels at a place of a text."""
    tokens = AnswerTokens.of(entries, text)
    assert tokens is not None
    found = tokens.distribution(at, labels)
    assert found is not None
    return found


DIGITS = ["1", "2", "3"]


def test_scores_that_are_no_log_probabilities_give_no_probability() -> None:
    for scores in ((0.7, 0.2, 0.1), (12.5, 8.0, -3.0), (900.0, 1.0, 1.0), (-0.1, -0.2, -0.3)):
        listed = [
            {"token": token, "logprob": score} for token, score in zip("321", scores, strict=True)
        ]
        assert not any(chances([{**listed[0], "top_logprobs": listed}], "3", labels=DIGITS))


def test_thoughts_that_a_server_cut_off_the_text_and_left_among_the_tokens_are_not_the_answer() -> (
    None
):
    thoughts = [
        entry("A", 0.6, B=0.3),
        entry(" or ", 1.0),
        entry("B", 0.9, A=0.05),
        entry("</think>", 1.0),
    ]
    assert chances([*thoughts, entry("B", 0.7, A=0.2)], "B", labels=["A", "B"]) == pytest.approx(
        (0.2, 0.7)
    )


def test_one_token_gives_each_label_its_probability_and_the_rest_is_told() -> None:
    # p(1) = .1 + .02 for " 1" with its space, p(2) = .3, p(3) = .5; "maybe" .05 and what isn't
    # listed .03 are neither.
    found = chances(
        [entry("3", 0.5, **{"1": 0.1, "2": 0.3, "maybe": 0.05, "_1": 0.02})], "3", labels=DIGITS
    )
    assert found == pytest.approx((0.12, 0.3, 0.5))


def test_a_label_of_several_tokens_is_followed_to_the_token_that_tells_it_apart() -> None:
    # "Strong" .6 leaves two labels open, " Dis" .25 and " Agree" .7 decide. "Ne" .3 is Neutral,
    # "Agree" .05 Agree.
    text = '{"answer":"Strongly Agree"}'
    entries = [
        entry('{"answer":"', 1.0),
        entry("Strong", 0.6, Ne=0.3, Agree=0.05),
        entry("ly", 1.0),
    ]
    entries += [entry(" Agree", 0.7, _Dis=0.25), entry('"}', 1.0)]
    found = chances(entries, text, text.index("Strong"))
    assert found == pytest.approx((0.6 * 0.25, 0.0, 0.3, 0.05, 0.6 * 0.7))


def test_a_beginning_that_labels_share_on_a_path_not_taken_is_uncovered_and_not_shared_out() -> (
    None
):
    assert chances([entry("Agree", 0.6, Strong=0.4)], "Agree") == pytest.approx((0, 0, 0, 0.6, 0))


def test_a_token_that_begins_before_the_label_or_ends_behind_it_is_read() -> None:
    # '"Agree' and '"Neutral"' begin with the quote; an alternative without it is another text.
    entries = [entry(': "Agree', 0.5, **{': "Neutral"': 0.3, "Disagree": 0.1}), entry('"', 1.0)]
    assert chances(entries, ': "Agree"', 3) == pytest.approx((0, 0, 0.3, 0.5, 0))


def test_one_label_being_the_beginning_of_another_is_decided_by_what_follows() -> None:
    # "1" .8 leaves 1 and 10 open; then nothing (a quote) .9 or "0" .1. Where the text ends, the
    # shorter one it is.
    entries = [entry("1", 0.8, **{"2": 0.2}), entry('"', 0.9, **{"0": 0.1})]
    labels = ["1", "2", "10"]
    assert chances(entries, '1"', labels=labels) == pytest.approx((0.72, 0.2, 0.08))
    assert chances(entries[:1], "1", labels=labels) == pytest.approx((0.8, 0.2, 0.0))


def test_a_character_split_over_tokens_is_put_together_from_bytes() -> None:
    face = "👍".encode()
    entries = [
        {"token": "\ufffd", "bytes": list(part), "logprob": 0.0} for part in (face[:2], face[2:])
    ]
    assert chances([*entries, entry("Agree", 0.75)], "👍Agree", 1)[3] == pytest.approx(0.75)


def test_missing_tokens_or_alternatives_and_tokens_of_another_text_give_no_made_up_probability() -> (
    None
):
    for entries in (None, [], [None], ["Agree"], [{"token": "Disagree", "logprob": 0}], [{"x": 1}]):
        assert AnswerTokens.of(entries, "Agree") is None
    for top in (None, [], "x", [7]):
        tokens = AnswerTokens.of(
            [{"token": "Agree", "logprob": -0.1, "top_logprobs": top}], "Agree"
        )
        assert tokens is not None
        assert tokens.distribution(0, LABELS) is None


def test_minus_infinity_is_probability_nought_and_rounding_above_one_is_cut() -> None:
    assert chances([entry("Agree", 1.0, Neutral=0.0), entry("!", 1.0)], "Agree!") == (0, 0, 0, 1, 0)
    assert sum(chances([entry("Agree", 0.9, Neutral=0.101)], "Agree")) == pytest.approx(
        1.0, abs=1e-12
    )


async def told(call: Call, *script: dict[str, Any]) -> CompletedReply:
    """What the server answers."""
    with ProtocolServer(script=script) as server:
        outcome = await ask_once(server.url, call)
    assert isinstance(outcome, CompletedReply)
    return outcome


def spans_of(text: str) -> dict[tuple[str | int, ...], tuple[int, int]]:
    block = find_last_json_object(text)
    assert block is not None
    return dict(locate_json_values(text, block))


async def test_every_answer_of_a_batch_gets_the_servers_own_distribution() -> None:
    options = ["1", "2", "3", "4", "5"]
    item = {
        "type": "object",
        "properties": {"why": {"type": "string"}, "option": {"enum": options}},
    }
    ten = {"type": "array", "minItems": 10, "maxItems": 10, "items": item}
    call = question(schema={"type": "object", "properties": {"answers": ten}}, top_logprobs=20)
    outcome = await told(call)
    spans = spans_of(outcome.text)
    for number in range(10):
        found = chances(
            outcome.logprobs, outcome.text, spans["answers", number, "option"][0], options
        )
        known = truth(call.messages, options, f".answers[{number}].option")
        assert found == pytest.approx(tuple(known.values()), abs=1e-9)
        assert 1 - sum(found) == pytest.approx(0.03)


async def test_split_labels_get_the_probabilities_of_the_path_taken() -> None:
    chosen = set()
    with ProtocolServer() as server:
        async with gateway(server.url) as door:
            for call in [question(number, top_logprobs=20) for number in range(12)]:
                outcome = await door.ask(call)
                start, end = spans_of(outcome.text)["answer",]
                found = chances(outcome.logprobs, outcome.text, start)
                label = outcome.text[start:end]
                chosen.add(label)
                known = truth(call.messages, LABELS, ".answer")[label]
                assert found[LABELS.index(label)] == pytest.approx(known, abs=0.01)
                assert sum(found) <= 1 + 1e-12
    assert chosen & {LABELS[0], LABELS[4]}, "no answer of several tokens came up"


async def test_spoiled_logprobs_leave_the_label_alone() -> None:
    for rule in ({"null": True}, {"no_top": True}, {"top": 0}):
        outcome = await told(question(top_logprobs=5), {"do": "logprobs", **rule})
        start, end = spans_of(outcome.text)["answer",]
        assert outcome.text[start:end] in LABELS
        tokens = AnswerTokens.of(outcome.logprobs, outcome.text)
        assert tokens is None or tokens.distribution(start, LABELS) is None


async def test_alternatives_beyond_those_listed_are_uncovered() -> None:
    call = Call(messages=question().messages, max_tokens=1, top_logprobs=20)
    options = ["1", "2", "3", "4", "5"]
    outcome = await told(call, {"do": "logprobs", "top": 2, "minus_infinity": True})
    known = sorted(truth(call.messages, options, "answer").values(), reverse=True)
    found = chances(outcome.logprobs, outcome.text, labels=options)
    assert sorted(found, reverse=True) == pytest.approx([*known[:2], 0, 0, 0])


@given(
    st.lists(
        st.fixed_dictionaries(
            {},
            optional={
                "token": st.text() | st.integers(),
                "bytes": st.none() | st.lists(st.integers()),
                "logprob": st.floats() | st.text(),
                "top_logprobs": st.none()
                | st.lists(
                    st.dictionaries(st.sampled_from(["token", "logprob"]), st.floats() | st.text())
                ),
            },
        ),
        min_size=1,
    ),
    st.text(min_size=1),
)
def test_no_tokens_break_the_reader(entries: list[dict[str, Any]], text: str) -> None:
    tokens = AnswerTokens.of(entries, text)
    if tokens is not None and (found := tokens.distribution(0, LABELS)) is not None:
        assert 0 <= sum(found) <= 1 + 1e-12
