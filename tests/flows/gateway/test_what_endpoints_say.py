"""Refusals of a parameter, faults inside a 200, empty answers, thoughts and streams: what they are taken for."""

import json
import time
from typing import Any

import pytest
from gateway_asking import KEY, ask_all, ask_once, gateway, question
from protocol_server import ProtocolServer

from pollex.errors import ModelRefused, ModelUnavailable
from pollex.gateway.calls import (
    AnswerForm,
    Capabilities,
    CompletedReply,
    EmptyReply,
    FailedCall,
    MalformedReply,
    MemoryLedger,
    RefusedReply,
    Reply,
    TruncatedReply,
    Usage,
)
from pollex.gateway.endpoint import Endpoint
from pollex.gateway.gateway import Gateway
from pollex.gateway.json_in_text import find_last_json_object
from pollex.gateway.limiter import INITIAL_CALL_SLOTS
from pollex.gateway.probe import probe_endpoint
from pollex.gateway.responses import HttpFault, interpret_reply
from pollex.gateway.thoughts import remove_thoughts
from pollex.gateway.transport import StreamedReply


def status(code: int, body: Any, **rule: Any) -> dict[str, Any]:
    return {"do": "status", "code": code, "body": body, **rule}


def error(message: str, **fields: Any) -> dict[str, Any]:
    return {"error": {"message": message, **fields}}


async def probed(*script: dict[str, Any]) -> Capabilities:
    with ProtocolServer(script=script) as server:
        return await probe_endpoint(Endpoint("any-model", server.url, KEY), backoff=0.01)


@pytest.mark.parametrize("code", [400, 401, 403, 404, 405, 415, 422, 500, 501])
async def test_a_refusal_that_names_a_parameter_is_of_the_parameter_whatever_its_status(
    code: int,
) -> None:
    refusal = status(
        code, error("logprobs are not supported for this model"), match='"logprobs":true'
    )
    found = await probed(refusal)
    assert (found.json_schema, found.logprobs, found.temperature, found.seed) == (
        True,
        0,
        True,
        True,
    )
    assert found.calls == 2


@pytest.mark.parametrize("code", [400, 403, 404])
async def test_a_refusal_that_names_nothing_is_tried_without_what_may_have_caused_it(
    code: int,
) -> None:
    refused = status(code, error("No route for these requirements."), match='"logprobs":true')
    found = await probed(refused)
    assert (found.json_schema, found.logprobs) == (True, 0)
    both = [
        refused,
        status(code, error("No route for these requirements."), match='"response_format"'),
    ]
    found = await probed(*both)
    assert (found.form, found.tools) == ("tool", True)


async def test_several_parameters_that_one_refusal_names_are_left_out_together() -> None:
    named = [
        {"loc": ["body", name], "msg": "extra"}
        for name in ("max_completion_tokens", "seed", "logprobs")
    ]
    body = {"object": "error", "message": {"detail": named}}
    found = await probed(status(422, body, match='"max_completion_tokens"'))
    assert (found.limit_field, found.seed, found.logprobs, found.temperature) == (
        "max_tokens",
        False,
        0,
        True,
    )
    assert found.calls == 2


async def test_a_wrong_key_stays_a_wrong_key() -> None:
    for code, words in (
        (401, "Incorrect API key provided"),
        (403, "project has no access"),
        (404, "no such model"),
    ):
        with pytest.raises(ModelRefused, match=f"HTTP {code}"):
            await probed(status(code, error(words)))
    with pytest.raises(ModelRefused, match="raise the quota"):
        await probed(status(402, error("more credits, or fewer max_tokens")))


@pytest.mark.parametrize(
    "body",
    [
        {"choices": None, "error": {"message": "Provider returned error", "code": 429}},
        {"error": {"message": "slow down", "code": "429"}},
        {"object": "error", "message": "Too many requests", "type": "RateLimit"},
        {
            "choices": [
                {
                    "error": {"code": 429, "message": "x"},
                    "finish_reason": "error",
                    "message": {"content": ""},
                }
            ]
        },
        {"base_resp": {"status_code": 1002, "status_msg": "rate limit"}, "choices": []},
        {"detail": "Throttling: request rate exceeded"},
    ],
    ids=lambda body: json.dumps(body)[:50],
)
async def test_a_429_inside_a_200_is_waited_for_and_costs_nothing(body: dict[str, Any]) -> None:
    spoiled = {"do": "body", "text": json.dumps(body), "count": 5}
    with ProtocolServer(script=[spoiled]) as server:
        async with gateway(server.url, max_attempts=1) as door:
            outcome = await door.ask(question())
            used = door.used.total
    assert isinstance(outcome, CompletedReply)
    assert outcome.attempts == 6
    assert (used.sent, used.prompt, used.uncounted) == (6, outcome.usage.prompt, 0)


@pytest.mark.parametrize(
    "message",
    [
        {"content": {"answer": "Agree"}},
        {"content": [{"text": '{"answer": "Agree"}'}]},
        {"content": None, "function_call": {"name": "answer", "arguments": '{"answer": "Agree"}'}},
        {
            "content": "",
            "tool_calls": [{"function": {"name": "answer", "arguments": {"answer": "Agree"}}}],
        },
    ],
    ids=lambda message: json.dumps(message)[:40],
)
def test_an_answer_in_another_place_is_read_with_what_usage_is_called_elsewhere(
    message: dict[str, Any],
) -> None:
    usage = {"input_tokens": 90, "output_tokens": 4}
    body = {"choices": [{"message": message, "finish_reason": "end_turn"}], "usage": usage}
    outcome = interpret_reply(Reply(200, json.dumps(body)), question())
    assert isinstance(outcome, CompletedReply)
    assert find_last_json_object(outcome.text) is not None
    assert (outcome.usage.prompt, outcome.usage.completion) == (90, 4)


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        ("MAX_TOKENS", TruncatedReply),
        ("SAFETY", RefusedReply),
        ("content_filter: RECITATION", RefusedReply),
        ("COMPLETE", CompletedReply),
    ],
)
def test_finish_reasons_of_providers_are_understood_behind_a_gateway(
    reason: str, kind: type
) -> None:
    body = {"choices": [{"message": {"content": '{"answer": "Agree"}'}, "finish_reason": reason}]}
    assert isinstance(interpret_reply(Reply(200, json.dumps(body)), question(max_tokens=100)), kind)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (400, "data_inspection_failed: the output may hold inappropriate content"),
        (400, "Content Exists Risk"),
        (400, "rejected, as it was considered high risk"),
        (400, "potentially unsafe or sensitive content"),
        (403, "This violates our usage guidelines."),
    ],
)
def test_words_of_providers_filters_are_a_refusal_of_that_conversation(
    code: int, words: str
) -> None:
    outcome = interpret_reply(Reply(code, json.dumps(error(words))), question())
    assert isinstance(outcome, RefusedReply)


def test_what_a_filter_held_back_is_refused_though_no_message_came() -> None:
    body = {"choices": [{"index": 0, "finish_reason": "PROHIBITED_CONTENT"}]}
    assert isinstance(interpret_reply(Reply(200, json.dumps(body)), question()), RefusedReply)


@pytest.mark.parametrize(
    "usage",
    [
        {"prompt_tokens": 7, "prompt_tokens_details": {"cached_tokens": 83}},
        {"prompt_tokens": 7, "cache_creation_input_tokens": 83, "cache_read_input_tokens": 0},
        {"input_tokens": 7, "cache_read_input_tokens": 43, "cache_creation_input_tokens": 40},
        {
            "prompt_tokens": 90,
            "prompt_tokens_details": {"cached_tokens": 83},
            "cache_read_input_tokens": 83,
        },
    ],
)
def test_tokens_from_a_cache_are_of_the_prompt_wherever_they_are_counted(
    usage: dict[str, Any],
) -> None:
    message = {"content": '{"answer": "Agree"}'}
    body = {"choices": [{"message": message, "finish_reason": "stop"}], "usage": usage}
    call = question(messages=[{"role": "user", "content": "word " * 80}])
    outcome = interpret_reply(Reply(200, json.dumps(body)), call)
    assert isinstance(outcome, CompletedReply)
    assert outcome.usage.prompt == 90


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
def test_an_object_that_a_server_took_for_thoughts_is_the_answer(name: str) -> None:
    answer = '{"answer": "Agree"}'
    for thoughts, kind in ((answer, CompletedReply), (f"It is {answer}, I think", EmptyReply)):
        message = {"content": None, name: thoughts}
        body = {"choices": [{"message": message, "finish_reason": "stop"}]}
        outcome = interpret_reply(Reply(200, json.dumps(body)), question())
        assert isinstance(outcome, kind)
        assert outcome.text == (answer if kind is CompletedReply else "")


@pytest.mark.parametrize(
    "words", ["API key not valid. Please pass one.", "Authentication Error, wrong token"]
)
async def test_a_400_that_speaks_of_the_key_is_of_the_key(words: str) -> None:
    with pytest.raises(ModelRefused, match="check the API key"):
        await probed(status(400, error(words)))


async def test_a_firewalls_403_for_the_first_call_is_that_calls_own_where_the_probe_was_served() -> (
    None
):
    refused = status(403, error("Forbidden"), match="Question 0")
    with ProtocolServer(script=[refused]) as server:
        place = Endpoint("any-model", server.url, KEY)
        async with Gateway(place, MemoryLedger(), served=True) as door:
            assert isinstance(await door.ask(question(0)), FailedCall)
            assert isinstance(await door.ask(question(1)), CompletedReply)
        async with Gateway(place, MemoryLedger()) as door:
            with pytest.raises(ModelRefused):
                await door.ask(question(0))


async def test_calls_that_are_answered_by_nothing_dont_keep_a_run_from_its_end() -> None:
    nothing = {"do": "body", "text": json.dumps({"choices": []}), "match": '"seed":7'}
    ledger = MemoryLedger()
    useless = [question(number, seed=7) for number in range(12)]
    useful = [question(number) for number in range(24)]
    with ProtocolServer(script=[nothing]) as server:
        # the useless ones may end the first run; a resume knows that others were answered
        async with gateway(server.url, ledger) as door:
            await ask_all(door, [*useful, *useless])
        async with gateway(server.url, ledger) as door:
            await ask_all(door, [*useful, *useless])
        async with gateway(server.url, ledger) as door:
            outcomes = await ask_all(door, [*useful, *useless])
    assert [type(outcome) for outcome in outcomes] == [CompletedReply] * 24 + [MalformedReply] * 12


async def test_other_faults_inside_a_200_are_what_their_code_says() -> None:
    meaning = interpret_reply(Reply(200, json.dumps(error("down", code=502))), question())
    assert isinstance(meaning, HttpFault)
    assert (meaning.action, meaning.away) == ("retry", True)
    meaning = interpret_reply(Reply(200, json.dumps(error("no credit", code=402))), question())
    assert isinstance(meaning, HttpFault)
    assert meaning.name == "quota"
    with ProtocolServer(
        script=[{"do": "body", "text": json.dumps(error("model is gone", code=400))}]
    ) as server:
        assert isinstance(await ask_once(server.url), FailedCall)
        assert server.counts()["received"] == 1


@pytest.mark.parametrize(
    ("words", "seconds"),
    [
        ("Please try again in 986ms.", 0.986),
        ("Please try again in 7m12s.", 432.0),
        ("Rate limited. Retry after 20 seconds.", 20.0),
        ("Limit 30000, used 29000. Come back tomorrow.", None),
    ],
)
def test_the_wait_that_a_body_names_is_kept(words: str, seconds: float | None) -> None:
    meaning = interpret_reply(Reply(429, json.dumps(error(words))), question())
    assert isinstance(meaning, HttpFault)
    assert meaning.wait == pytest.approx(seconds)


@pytest.mark.parametrize(
    "message",
    [
        {"content": None},
        {"content": "", "reasoning_content": "Let me see."},
        {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "{}"}]}]},
    ],
)
async def test_an_empty_answer_is_asked_for_once_more_and_is_no_refusal(
    message: dict[str, Any],
) -> None:
    about = {"completion_tokens": 311, "completion_tokens_details": {"reasoning_tokens": 300}}
    body = {
        "choices": [{"message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 90, **about},
    }
    spoiled = {"do": "body", "text": json.dumps(body)}
    with ProtocolServer(script=[spoiled | {"count": 1}]) as server:
        assert isinstance(await ask_once(server.url), CompletedReply)
    with ProtocolServer(script=[spoiled]) as server:
        outcome = await ask_once(server.url)
        assert server.counts()["received"] == 2
    assert isinstance(outcome, EmptyReply)
    assert "finish reason stop, 300 reasoning tokens" in outcome.detail


@pytest.mark.parametrize("form", ["json_schema", "tool"])
@pytest.mark.parametrize(
    "tool_calls",
    [
        [{"id": 5, "function": {"name": None, "arguments": 7}}],
        [{"function": {}}],
        [{"function": 3}],
        [None, "x"],
        {"function": {"arguments": "{}"}},
        7,
    ],
    ids=json.dumps,
)
async def test_tool_calls_without_arguments_are_no_answer_and_no_more_than_that(
    tool_calls: Any, form: AnswerForm
) -> None:
    nothing = {"do": "message", "content": None, "tool_calls": tool_calls}
    with ProtocolServer(script=[nothing]) as server:
        outcome = await ask_once(server.url, question(form=form))
        assert server.counts()["received"] == 2
    assert isinstance(outcome, EmptyReply)
    assert "tool calls without arguments" in outcome.detail
    beside_words = {"do": "message", "content": '{"answer": "Agree"}', "tool_calls": tool_calls}
    with ProtocolServer(script=[beside_words]) as server:
        outcome = await ask_once(server.url, question(form=form))
        assert server.counts()["received"] == 1
    assert outcome.text == '{"answer": "Agree"}'


async def test_an_endpoint_that_never_answers_is_not_paid_twice_by_every_call() -> None:
    nothing = {"do": "message", "content": None, "tool_calls": [{"function": {"arguments": 7}}]}
    with ProtocolServer(script=[nothing], latency=0.02) as server:
        async with gateway(server.url) as door:
            outcomes = await ask_all(door, [question(number) for number in range(200)])
        counts = server.counts()
    assert all(isinstance(outcome, ModelUnavailable) for outcome in outcomes)
    assert "10 calls in a row failed, the last with empty answer" in str(outcomes[0])
    assert counts["received"] <= INITIAL_CALL_SLOTS + 10, "those that were out when it was seen"
    assert counts["repeated"] <= 10


@pytest.mark.parametrize("function", [{"name": None, "arguments": 7}, 3, None])
def test_tool_calls_without_arguments_are_no_answer_in_a_stream(function: Any) -> None:
    heard = StreamedReply()
    delta = {"tool_calls": [{"id": 5, "function": function}]}
    for choice in ({"delta": delta}, {"delta": {}, "finish_reason": "stop"}):
        heard.feed(b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n")
    assert isinstance(interpret_reply(Reply(200, heard.body()), question()), EmptyReply)


async def test_a_list_of_models_that_nests_without_end_tells_no_window() -> None:
    with ProtocolServer() as server:
        server.list_models('{"data":' + "[" * 100_000)
        found = await probe_endpoint(Endpoint("any-model", server.url, KEY), backoff=0.01)
    assert (found.json_schema, found.window) == (True, None)


@pytest.mark.parametrize("listened", [False, True])
def test_a_stream_of_many_parts_takes_time_for_each_once(listened: bool) -> None:
    told: list[int] = []

    def feed(parts: int) -> float:
        heard = StreamedReply((lambda text: told.append(len(text))) if listened else None)
        part = b'data: {"choices":[{"delta":{"content":"ten chars.","reasoning_content":"Hm."}}]}\n'
        began = time.process_time()
        for _ in range(parts):
            heard.feed(part)
        message = json.loads(heard.body())["choices"][0]["message"]
        assert message["content"] == "ten chars." * parts
        assert message["reasoning_content"] == "Hm." * parts
        return time.process_time() - began

    short = feed(5_000)
    assert feed(80_000) < 60 * short + 0.5, "a copy of all for each part took 250 times as long"
    assert not listened or told[:3] == [10, 20, 30]


def test_thoughts_that_took_all_tokens_are_a_cut_answer_whatever_the_finish_reason() -> None:
    body = {
        "choices": [{"message": {"content": ""}, "finish_reason": "stop"}],
        "usage": {"completion_tokens": 100},
    }
    assert isinstance(
        interpret_reply(Reply(200, json.dumps(body)), question(max_tokens=100)), TruncatedReply
    )


@pytest.mark.parametrize("tokens", [10**400, -1, 1.5, "9", True, 10**10])
def test_counts_of_tokens_that_no_call_can_have_are_none(tokens: object) -> None:
    body = {
        "choices": [{"message": {"content": "{}"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": tokens, "completion_tokens": tokens},
    }
    outcome = interpret_reply(Reply(200, json.dumps(body)), question())
    assert outcome.usage == Usage()


async def test_a_probe_gives_a_thinking_model_more_room_and_a_cut_one_says_nothing() -> None:
    cut = {"do": "message", "content": "", "finish_reason": "length"}
    found = await probed(cut | {"match": '"max_completion_tokens":4096'})
    assert (found.json_schema, found.calls) == (True, 2)
    found = await probed(cut)
    assert (found.json_schema, found.calls) == (True, 2), (
        "two sizes, and nothing is said against the schema"
    )


@pytest.mark.parametrize("options", [True, False])
async def test_an_endpoint_that_only_streams_is_read_with_its_tokens_and_thoughts(
    options: bool,
) -> None:
    script = [{"do": "streams", "options": options}]
    with ProtocolServer(script=script) as server:
        found = await probe_endpoint(Endpoint("any-model", server.url, KEY), backoff=0.01)
        call = found.fit(question(top_logprobs=5))
        outcome = await ask_once(server.url, call)
    assert found.stream == ("counted" if options else "bare")
    assert found.json_schema
    assert isinstance(outcome, CompletedReply)
    assert outcome.usage.known == options
    block = find_last_json_object(outcome.text)
    assert block is not None
    assert block.value["answer"]


async def test_a_stream_that_nobody_asked_for_is_read_too_whatever_its_type() -> None:
    for kind in ("text/event-stream", "text/plain"):
        part = {
            "choices": [
                {"index": 0, "delta": {"content": '{"answer": "Agree"}'}, "finish_reason": "stop"}
            ]
        }
        text = f": hello\n\ndata: {json.dumps(part)}\n\ndata: [DONE]\n\n"
        with ProtocolServer(script=[{"do": "body", "text": text, "type": kind}]) as server:
            outcome = await ask_once(server.url)
        assert isinstance(outcome, CompletedReply)
        assert outcome.text == '{"answer": "Agree"}'


DRAFT = 'Perhaps {"answer": "Disagree"}?'


@pytest.mark.parametrize(
    "around",
    [
        "<think>{}</think>",
        "{}</think>",
        "<thinking>{}</thinking>\n",
        "<thought>{}</thought>",
        "<seed:think>{}</seed:think>",
        "[THINK]{}[/THINK]",
        "\u25c1think\u25b7{}\u25c1/think\u25b7",
        "<|channel|>analysis<|message|>{}<|end|><|start|>assistant<|channel|>final<|message|>",
        "analysis{}assistantfinal",
        "<|begin_of_thought|>{}<|end_of_thought|>",
        "<|thinking|>{}<|/thinking|>",
        '<details type="reasoning" done="true">{}</details>\n',
    ],
)
def test_thoughts_are_no_answer_whatever_marks_are_around_them(around: str) -> None:
    text = around.replace("{}", DRAFT)
    block = find_last_json_object(text + '{"answer": "Agree"}')
    assert block is not None
    assert block.value == {"answer": "Agree"}
    assert remove_thoughts(text + "It is open.") == "It is open."


def test_marks_of_a_page_that_an_assistant_writes_are_words_of_its_reply() -> None:
    for reply in (
        "<details><summary>More</summary>Text</details> See above.",
        "Our assistantfinal is in May.",
    ):
        assert remove_thoughts(reply) == reply


@pytest.mark.parametrize(
    ("words", "most"),
    [
        ("max_tokens is too large: 4096. At most 2000 completion tokens", 2000),
        ("max_completion_tokens: has to be less than or equal to 4000", 4000),
        ("The range of max_tokens is [1, 2048]", 2048),
    ],
)
async def test_a_refusal_of_so_many_tokens_is_no_lack_but_a_limit_of_all_calls(
    words: str, most: int
) -> None:
    refused = status(400, error(words), match='_tokens":4096')
    found = await probed(refused)
    assert (found.most_tokens, found.form, found.limit_field) == (
        most,
        "json_schema",
        "max_completion_tokens",
    )
    assert found.calls == 2
    assert found.fit(question(max_tokens=8192)).max_tokens == most
    assert found.fit(question(max_tokens=100)).max_tokens == 100
    assert f"answers have {most} tokens at most" in found.missing()


async def test_a_context_without_room_for_a_long_answer_is_probed_with_a_short_one() -> None:
    refused = status(
        400,
        error("This model's maximum context length is 4096 tokens, you requested 4126."),
        match='_tokens":4096',
    )
    found = await probed(refused)
    assert (found.form, found.most_tokens, found.calls) == ("json_schema", None, 2)
