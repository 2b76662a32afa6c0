"""What providers do wrong, on a real server: `reliability.md` of the design calls these provider faults."""

import asyncio
import json
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from gateway_asking import KEY, ask_all, ask_once, gateway, question, received
from protocol_server import ProtocolServer

from pollex.errors import Interrupted, LimitReached, ModelRefused, ModelUnavailable, PollexError
from pollex.gateway.budget import Price
from pollex.gateway.calls import (
    Call,
    CompletedReply,
    ContextExceeded,
    FailedCall,
    MalformedReply,
    MemoryLedger,
    Outcome,
    RefusedReply,
    TruncatedPrompt,
    TruncatedReply,
)
from pollex.gateway.endpoint import Endpoint
from pollex.gateway.gateway import Gateway
from pollex.gateway.responses import read_retry_after

QUICK = {"deadline": 10.0, "max_wait": 5.0, "backoff": 0.1}


def kinds(results: list[Outcome | BaseException]) -> set[str]:
    return {type(result).__name__ for result in results}


def questions(count: int, first: int = 0) -> list[Call]:
    return [question(number) for number in range(first, first + count)]


def status(code: int, **more: Any) -> dict[str, Any]:
    return {"do": "status", "code": code, **more}


def body(text: str, **more: Any) -> dict[str, Any]:
    return {"do": "body", "text": text, **more}


def message(**more: Any) -> dict[str, Any]:
    return {"do": "message", **more}


async def test_the_wait_that_the_endpoint_asks_for_is_kept_and_one_that_makes_no_sense_is_a_backoff() -> (
    None
):
    for name, asked, attempts, seconds in (
        ("Retry-After", "0.5", 2, 0.5),
        ("retry-after-ms", "700", 2, 0.7),
        *(("Retry-After", senseless, 3, 0.14) for senseless in ("0", "-5", "soon", "nan", "")),
    ):
        rule = status(429, count=attempts - 1, headers={name: asked})
        with ProtocolServer(script=[rule]) as server:
            began = time.monotonic()
            outcome = await ask_once(server.url, **QUICK)
        assert isinstance(outcome, CompletedReply), asked
        assert outcome.attempts == attempts, asked
        assert seconds <= time.monotonic() - began < seconds + 30, asked


@pytest.mark.parametrize("skew", [-10, 0, 10])
def test_a_date_to_wait_for_counts_from_the_servers_own_clock(skew: int) -> None:
    there = datetime.now(UTC) + timedelta(minutes=skew)
    headers = {
        "date": format_datetime(there),
        "retry-after": format_datetime(there + timedelta(seconds=30)),
    }
    assert read_retry_after(headers) == 30


async def test_a_wait_beyond_the_limit_or_endless_429_pauses_the_run_and_never_spins() -> None:
    for headers, most in (({"Retry-After": "200"}, 1), ({"Retry-After": "1e9"}, 1), ({}, 10)):
        with ProtocolServer(script=[status(429, headers=headers)]) as server:
            told = r"longer|more than max_wait=1.*resume" if headers else "nothing but HTTP 429"
            with pytest.raises(ModelUnavailable, match=told):
                await ask_once(server.url, max_wait=1, backoff=0.25)
            assert server.counts()["received"] <= most


@pytest.mark.parametrize(
    ("code", "error", "hint"),
    [
        (401, {"message": "Incorrect API key", "code": "invalid_api_key"}, "check the API key"),
        (403, {"message": "Country not supported"}, "check what the API key may use"),
        (
            404,
            {"message": "The model does not exist", "code": "model_not_found"},
            "check the model's name",
        ),
        (402, {"message": "Insufficient credits"}, "add credit"),
        (
            429,
            {"message": "You exceeded your current quota", "code": "insufficient_quota"},
            "add credit",
        ),
        (407, {"message": "Proxy authentication required"}, "proxy"),
    ],
)
async def test_what_can_never_work_stops_the_run_within_the_calls_in_flight(
    code: int, error: dict[str, str], hint: str
) -> None:
    with ProtocolServer(latency=0.05, script=[status(code, body={"error": error})]) as server:
        ledger = MemoryLedger()
        async with gateway(server.url, ledger, concurrency=8) as door:
            results = await ask_all(door, questions(30))
            sent = server.counts()["received"]
            with pytest.raises(ModelRefused):
                await door.ask(question(30))
        assert kinds(results) == {"ModelRefused"}
        assert server.counts()["received"] == sent <= 8
        assert hint in str(results[0])
        assert "\n" not in str(results[0])
        assert error["message"] in str(results[0])
        server.script([])
        async with gateway(server.url, ledger, concurrency=8) as door:
            assert kinds(await ask_all(door, questions(30))) == {"CompletedReply"}


async def test_a_burst_of_errors_or_a_dropped_connection_is_outlived_by_attempts_that_are_spaced_wider() -> (
    None
):
    for rule in (*map(status, (500, 502, 503, 504, 520, 408, 409)), {"do": "reset"}):
        with ProtocolServer(script=[rule | {"count": 2}]) as server:
            outcome = await ask_once(server.url)
        assert isinstance(outcome, CompletedReply), rule
        assert outcome.attempts == 3, rule
    with ProtocolServer(script=[status(503, count=3)]) as server:
        began = time.monotonic()
        await ask_once(server.url, backoff=0.1)
    assert 0.5 * (0.1 + 0.2 + 0.4) <= time.monotonic() - began < 1.5 * (0.1 + 0.2 + 0.4) + 30


async def test_a_persistent_500_is_sent_four_times_and_then_is_an_error_of_its_item() -> None:
    with ProtocolServer(script=[status(500)]) as server:
        outcome = await ask_once(server.url)
        assert server.counts()["received"] == 4
    assert isinstance(outcome, FailedCall)
    assert outcome.fault == "server"
    assert outcome.detail.startswith("server: HTTP 500")


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/v1", "http://nowhere.invalid/v1"])
async def test_an_endpoint_that_is_not_there_ends_the_run_after_the_longest_wait(url: str) -> None:
    began = time.monotonic()
    async with gateway(url, concurrency=8, max_wait=1.0) as door:
        results = await ask_all(door, questions(40))
    assert 1.0 < time.monotonic() - began < 90.0
    assert kinds(results) == {"ModelUnavailable"}
    assert "no answer for 1 s" in str(results[0])
    assert "resume" in str(results[0])


@pytest.mark.parametrize("code", [500, 503])
async def test_a_server_that_fails_for_seconds_is_waited_for_with_one_line_and_few_calls(
    code: int, caplog: pytest.LogCaptureFixture
) -> None:
    """As while it loads its model: nobody is given up, and one call at a time tries it."""
    with ProtocolServer(script=[status(code)]) as server:

        async def loaded() -> None:
            await asyncio.sleep(1.0)
            server.script([])

        async with gateway(server.url, concurrency=64) as door:
            results, _ = await asyncio.gather(ask_all(door, questions(120)), loaded())
        assert kinds(results) == {"CompletedReply"}
        assert server.counts()["received"] - 120 <= 64 + 10, (
            "the first calls, one a slot, and one at a time"
        )
        (told,) = caplog.messages
        assert "waiting up to 120 s for it (max_wait)" in told
        server.script([status(503, count=5)])
        assert isinstance(
            await ask_once(server.url, question(999), concurrency=1), CompletedReply
        ), "alone, too"


@pytest.mark.parametrize("rule", [*map(status, (502, 503, 504)), {"do": "reset"}])
async def test_two_prompts_that_always_fail_hold_nobody_while_others_are_answered(
    rule: dict[str, Any],
) -> None:
    script = [rule | {"match": f"Question {number}:"} for number in (3, 17)]
    with ProtocolServer(script=script) as server:
        # and the usual 120 s for an outage
        async with gateway(server.url, concurrency=8) as door:
            async with asyncio.timeout(30):
                results = await ask_all(door, questions(24))
        assert server.counts()["received"] <= 22 + 2 * 8
    assert [type(result).__name__ for result in results].count("FailedCall") == 2
    assert kinds(results) == {"CompletedReply", "FailedCall"}


async def test_what_is_final_is_sent_once_and_ends_no_run_in_which_others_are_answered() -> None:
    final = (304, 400, 401, 403, 404, 405, 418, 451, 501, 505)  # a 304 has no body
    script = [
        status(code, body="", match=f"Question {2 * place + 1}:")
        for place, code in enumerate(final)
    ]
    with ProtocolServer(script=script) as server:
        async with gateway(server.url, concurrency=1, failures=3) as door:
            results = await ask_all(door, questions(2 * len(final)))
        assert server.counts()["received"] == 2 * len(final)
    assert [isinstance(result, FailedCall) for result in results] == [False, True] * len(final)
    assert kinds(results) == {"CompletedReply", "FailedCall"}


async def test_a_refused_call_without_a_key_says_that_there_was_none() -> None:
    with ProtocolServer(script=[status(401)]) as server:
        door = Gateway(Endpoint("any-model", server.url), MemoryLedger())
        with pytest.raises(ModelRefused, match="set OPENAI_API_KEY"):
            await door.ask(question())
        await door.close()


@pytest.mark.parametrize(
    "rule",
    [
        {"do": "hang", "part": "none"},
        {"do": "hang", "part": "headers"},
        {"do": "hang", "part": "half"},
        {"do": "trickle", "seconds": 0.2},
    ],
)
async def test_a_call_ends_at_its_deadline_whatever_the_server_does(rule: dict[str, Any]) -> None:
    with ProtocolServer(script=[rule | {"count": 1}]) as server:
        async with gateway(server.url, concurrency=1, deadline=0.4) as door:
            began = time.monotonic()
            first, second = await ask_all(door, questions(2))
            took = time.monotonic() - began
        assert server.counts()["received"] == 2
    assert isinstance(first, FailedCall)
    assert first.fault == "timeout"
    assert isinstance(second, CompletedReply), "the slot was not given back"
    assert 0.4 <= took < 60.0
    assert door.used.total.uncounted == 1, "a call that timed out may be billed"


async def test_a_reply_that_came_while_the_process_was_stopped_is_read() -> None:
    with ProtocolServer(latency=0.1) as server:
        async with gateway(server.url, deadline=0.5) as door:
            asked = asyncio.ensure_future(door.ask(question()))
            await received(server, 1)
            time.sleep(0.9)  # noqa: ASYNC251 - as Ctrl-Z does
            assert isinstance(await asked, CompletedReply)


@pytest.mark.parametrize(
    "rule",
    [
        {"do": "cut"},
        body("<html><body>Bad gateway</body></html>", type="text/html"),
        body('{"error": {"message": "odd"}}'),
        body('{"choices": []}'),
        body('{"choices": null}'),
        body('{"choices": [{"message": {"content": 7}}]}'),
        body('{"choices": [{"message": {"content": [1]}}]}'),
        body('"hello"'),
        body(""),
        body("[" * 5000),
        body("\x00\ud83d".encode("utf-8", "replace").decode()),
        {"do": "huge", "megabytes": 20},
        {"do": "huge", "megabytes": 40, "encoding": "gzip"},
        message(finish_reason="error"),
    ],
    ids=lambda rule: json.dumps(rule)[:60],
)
async def test_a_malformed_reply_is_asked_for_once_more_and_kept(rule: dict[str, Any]) -> None:
    ledger = MemoryLedger()
    with ProtocolServer(script=[rule]) as server:
        async with gateway(server.url, ledger) as door:
            outcome = await door.ask(question())
        assert server.counts()["received"] == 2
    assert isinstance(outcome, MalformedReply)
    assert outcome.detail
    raw = ledger.calls[outcome.key].raw
    assert len(raw) <= 1 << 20
    if rule["do"] == "body":
        assert raw == rule["text"]
    if rule["do"] == "cut":
        assert raw.startswith('{"id"'), "what arrived of the body is kept"


async def test_a_malformed_reply_that_is_mended_counts_as_answered() -> None:
    with ProtocolServer(script=[body("oops", count=1)]) as server:
        async with gateway(server.url) as door:
            outcome = await door.ask(question())
    assert isinstance(outcome, CompletedReply)
    assert outcome.attempts == 2
    assert door.used.total.uncounted == 1, "the malformed reply may be billed"


async def test_an_answer_cut_at_the_token_limit_keeps_its_text_and_can_be_asked_longer_once() -> (
    None
):
    script = [message(finish_reason="length", keep=0.5, match='"max_completion_tokens":100')]
    with ProtocolServer(script=script) as server:
        async with gateway(server.url) as door:
            short = question(max_tokens=100)
            cut = await door.ask(short)
            known = await door.ask(short)
            longer = await door.ask(short.longer())
        assert server.counts()["received"] == 2
    assert isinstance(cut, TruncatedReply)
    assert cut.text.startswith('{"why"')
    assert isinstance(known, TruncatedReply)
    assert known.attempts == 0
    assert isinstance(longer, CompletedReply)
    assert longer.key != cut.key


@pytest.mark.parametrize(
    ("rule", "call"),
    [
        (body(json.dumps({"choices": [{"message": {"content": "{}"}, "finish_reason": "stop"}]}), type="text/plain",
              encoding="gzip"), question()),
        (message(finish_reason="length"), question(schema=None, max_tokens=1)),
        (message(content="I'm sorry is what the agent said."), question(schema=None)),
    ],
    ids=["gzipped and of another type", "one token, ended at its limit", "prose that begins like a refusal"],
)  # fmt: skip
async def test_an_answer_is_taken_for_one(rule: dict[str, Any], call: Call) -> None:
    with ProtocolServer(script=[rule]) as server:
        assert isinstance(await ask_once(server.url, call), CompletedReply)


@pytest.mark.parametrize(
    "rule",
    [
        message(content=None, refusal="I can't help with that."),
        message(finish_reason="content_filter"),
        message(content="I'm sorry, but I can't assist with that request."),
        status(400, body={"error": {"code": "content_filter", "message": "filtered"}}),
        status(403, body={"error": {"code": 403, "message": "flagged by moderation"}}),
    ],
    ids=lambda rule: json.dumps(rule)[:70],
)
async def test_a_refusal_is_kept_and_not_paid_twice(rule: dict[str, Any]) -> None:
    ledger = MemoryLedger()
    with ProtocolServer(script=[rule]) as server:
        for _ in range(2):
            async with gateway(server.url, ledger) as door:
                outcome = await door.ask(question())
            assert isinstance(outcome, RefusedReply)
            assert outcome.detail
        assert server.counts()["received"] == 1
        async with Gateway(door.endpoint, ledger, retry_outcomes={"refused"}) as retrying:
            await retrying.ask(question())
        assert server.counts()["received"] == 2


@pytest.mark.parametrize("words", [None, "", "I'll use the tool."])
async def test_the_last_call_of_a_tool_is_the_answer_whatever_words_stand_beside_it(
    words: str | None,
) -> None:
    calls = [
        {"id": text, "type": "function", "function": {"name": "answer", "arguments": text}}
        for text in "ab"
    ]
    with ProtocolServer(script=[message(content=words, tool_calls=calls)]) as server:
        outcome = await ask_once(server.url, question(form="tool"))
    assert isinstance(outcome, CompletedReply)
    assert outcome.text == "b"


@pytest.mark.parametrize("style", ["openai", "vllm", "llamacpp", "ollama"])
async def test_a_prompt_beyond_the_window_is_recognised_from_every_server_and_one_beyond_a_known_window_is_not_sent(
    style: str,
) -> None:
    long = question(messages=[{"role": "user", "content": "word " * 600}])
    with ProtocolServer(script=[{"do": "window", "tokens": 100, "style": style}]) as server:
        assert isinstance(await ask_once(server.url, long), ContextExceeded)
        async with Gateway(Endpoint("any-model", server.url), MemoryLedger(), window=500) as door:
            assert isinstance(await door.ask(long), ContextExceeded)
        assert server.counts()["received"] == 1
    assert door.used.total.outcomes == {"context_exceeded": 1}


async def test_silently_cut_prompts_are_noticed_and_stop_the_run_at_the_third() -> None:
    long = [
        question(n, messages=[{"role": "user", "content": f"{n} " + "some words " * 500}])
        for n in range(20)
    ]
    with ProtocolServer(script=[{"do": "window", "tokens": 200, "silent": True}]) as server:
        async with gateway(server.url, concurrency=1) as door:
            short = await door.ask(question())
            results = await ask_all(door, long)
        assert 4 <= server.counts()["received"] <= 4 + 1
    assert isinstance(short, CompletedReply)
    cut = [result for result in results if isinstance(result, TruncatedPrompt)]
    assert 3 <= len(cut) <= 3 + 1
    assert "read 200 of at least 1001" in cut[0].detail
    assert "num_ctx" in str(next(result for result in results if isinstance(result, ModelRefused)))


async def test_another_model_answering_is_seen() -> None:
    with ProtocolServer(
        script=[{"do": "model", "model": "other", "fingerprint": "fp_2", "after": 3}]
    ) as server:
        async with gateway(server.url, concurrency=1) as door:
            results = await ask_all(door, questions(6))
    assert door.used.models == {("any-model", "fp_honest"): 3, ("other", "fp_2"): 3}
    assert [result.model for result in results if isinstance(result, CompletedReply)][-1] == "other"


@pytest.mark.parametrize(
    "usage", [None, {}, {"prompt_tokens": 0}, {"prompt_tokens": "many", "completion_tokens": -1}]
)
async def test_cost_is_unknown_and_never_nothing_where_tokens_are_not_counted(
    usage: dict[str, Any] | None,
) -> None:
    with ProtocolServer(script=[{"do": "usage", "usage": usage, "count": 1}]) as server:
        async with gateway(server.url) as door:
            await ask_all(door, questions(3))
    assert door.used.total.uncounted == 1
    assert door.used.total.cost(Price(1.0, 1.0)) is None
    assert door.used.total.prompt > 0
    assert door.used.total.prompt_estimated > 0
    assert (door.used.total.estimated_cost(Price(1.0, 1.0)) or 0) > 0


async def test_a_redirect_is_not_followed_and_a_server_that_cannot_prove_who_it_is_gets_no_conversation() -> (
    None
):
    with ProtocolServer() as elsewhere:
        location = {"Location": f"{elsewhere.url}/chat/completions"}
        script = [status(307, headers=location)]
        with (
            ProtocolServer(script=script) as server,
            pytest.raises(ModelRefused, match="set the base URL"),
        ):
            await ask_once(server.url)
        with pytest.raises(ModelRefused, match="certificate"):
            await ask_once(elsewhere.url.replace("http:", "https:"))
        assert elsewhere.counts()["received"] == 0


async def test_max_calls_stops_exactly_there_and_the_run_can_be_resumed() -> None:
    ledger = MemoryLedger()
    with ProtocolServer() as server:
        async with gateway(server.url, ledger, concurrency=4, max_calls=10) as door:
            results = await ask_all(door, questions(30))
        assert server.counts()["received"] == 10
        assert len([result for result in results if isinstance(result, LimitReached)]) == 20
        async with gateway(server.url, ledger, concurrency=4) as door:
            assert kinds(await ask_all(door, questions(30))) == {"CompletedReply"}
        assert server.counts()["received"] == 30


@pytest.mark.parametrize("usage", [{"prompt_tokens": 15, "completion_tokens": 10}, None])
async def test_max_cost_stops_at_the_limit_plus_what_is_in_flight(
    usage: dict[str, int] | None,
) -> None:
    # 15 + 10 tokens cost 1.25. Where they aren't counted: 10 estimated for the words, 4 for
    # wrapping, 11 allowed.
    price = Price(read=50_000, written=50_000)
    with ProtocolServer(script=[{"do": "usage", "usage": usage}]) as server:
        async with gateway(server.url, concurrency=2, max_cost=5.0, price=price) as door:
            results = await ask_all(door, [question(number, max_tokens=11) for number in range(30)])
        assert 4 <= server.counts()["received"] <= 4 + 2
    assert kinds(results) == {"CompletedReply", "LimitReached"}


@pytest.mark.parametrize("code", [200, 401, 500])
async def test_a_key_that_the_server_repeats_reaches_neither_ledger_nor_outcome_nor_error(
    code: int,
) -> None:
    ledger = MemoryLedger()
    with ProtocolServer(script=[{"do": "echo_key", "code": code}]) as server:
        async with gateway(server.url, ledger, max_attempts=1) as door:
            try:
                said = repr(await door.ask(question()))
            except PollexError as error:
                said = str(error)
    assert KEY not in said + repr(ledger.calls) + repr(door.endpoint)
    assert "[redacted]" in said


async def test_stopping_sends_nothing_more_and_keeps_what_is_in_flight() -> None:
    ledger = MemoryLedger()
    with ProtocolServer(latency=0.2) as server:
        async with gateway(server.url, ledger, concurrency=8) as door:
            asking = asyncio.ensure_future(ask_all(door, questions(60)))
            await received(server, 16)
            door.stop()
            results = await asking
            stored = len(ledger.calls)
            with pytest.raises(Interrupted):
                await door.ask(question(1000))
        assert 16 <= stored == len(ledger.calls) == server.counts()["received"] <= 16 + 8
        assert kinds(results) == {"CompletedReply", "Interrupted"}
        async with gateway(server.url, ledger, concurrency=64) as door:
            assert kinds(await ask_all(door, questions(60))) == {"CompletedReply"}
        assert server.counts()["received"] == 60
        assert server.counts()["repeated"] == 0


async def test_a_cancelled_asker_leaves_a_sent_call_to_be_recorded_and_takes_an_unsent_one_along() -> (
    None
):
    ledger = MemoryLedger()
    with ProtocolServer(latency=0.2) as server:
        async with gateway(server.url, ledger, concurrency=1) as door:
            sent, unsent = (asyncio.ensure_future(door.ask(question(number))) for number in (1, 2))
            await received(server, 1)
            sent.cancel()
            unsent.cancel()
            await asyncio.gather(sent, unsent, return_exceptions=True)
        assert server.counts()["received"] == 1
    assert len(ledger.calls) == 1


async def test_who_asks_the_same_at_the_same_time_shares_one_call() -> None:
    with ProtocolServer(latency=0.1) as server:
        async with gateway(server.url) as door:
            first, *others = (asyncio.ensure_future(door.ask(question())) for _ in range(20))
            await asyncio.sleep(0.05)
            first.cancel()
            outcomes = await asyncio.gather(*others)
        assert server.counts()["received"] == 1
    assert {outcome.key for outcome in outcomes} == {outcomes[0].key}


def test_one_gateway_serves_one_event_loop_after_another() -> None:
    with ProtocolServer() as server:
        door = gateway(server.url)

        async def run(first: int) -> list[Outcome | BaseException]:
            async with door:
                return await ask_all(door, questions(60, first))

        for first in (0, 60, 120):
            assert kinds(asyncio.run(run(first))) == {"CompletedReply"}


async def test_a_ledger_that_fails_stops_the_run() -> None:
    class FullDisk(MemoryLedger):
        async def record(self, *entry: Any) -> None:
            if len(self.calls) == 3:
                raise OSError(28, "No space left on device")
            await super().record(*entry)

    with ProtocolServer() as server:
        async with gateway(server.url, FullDisk(), concurrency=4) as door:
            results = await ask_all(door, questions(50))
        assert server.counts()["received"] <= 3 + 4
    assert "No space left" in str(
        next(result for result in results if isinstance(result, PollexError))
    )


async def test_outcomes_sum_to_the_calls_that_were_asked() -> None:
    script = [
        message(refusal="no", match="Question 1:"),
        status(400, match="Question 2:"),
        message(finish_reason="length", match="Question 3:"),
        body("oops", match="Question 4:"),
    ]
    with ProtocolServer(script=script) as server:
        async with gateway(server.url) as door:
            await ask_all(door, questions(10))
    row = door.used.stages["judge"]
    assert row.outcomes == {
        "completed": 6,
        "refused": 1,
        "error": 1,
        "truncated": 1,
        "unparsable": 1,
    }
    assert row.outcomes.total() == row.asked == 10
    assert row.sent == server.counts()["received"] == 11
