"""Replies that are read while they are written: the same outcome, key and bill as of whole ones."""

import json
from dataclasses import replace
from itertools import pairwise

from gateway_asking import KEY, gateway, question
from protocol_server import ProtocolServer

from pollex.gateway.calls import CompletedReply, MalformedReply


async def test_a_streamed_reply_is_told_piece_by_piece_and_is_the_one_that_comes_whole() -> None:
    told: list[str] = []
    with ProtocolServer() as server:
        async with gateway(server.url) as asking:
            streamed = await asking.ask(replace(question(1), on_text=told.append))
            again = await asking.ask(question(1))
        sent = server.counts()["received"]
        async with gateway(server.url) as asking:
            whole = await asking.ask(question(1))
    assert isinstance(streamed, CompletedReply)
    assert len(told) > 1
    assert all(after.startswith(before) for before, after in pairwise(told))
    assert told[-1] == streamed.text == whole.text == again.text
    assert (streamed.key, streamed.usage, streamed.model) == (whole.key, whole.usage, whole.model)
    assert sent == 1


async def test_an_endpoint_without_streams_answers_whole_and_one_that_breaks_off_is_asked_again() -> (
    None
):
    told: list[str] = []
    cut = 'data: {"choices": [{"delta": {"content": "half a"}}]}\n\n'
    with ProtocolServer(
        script=[
            {"do": "message", "content": "all of it", "count": 1},
            {"do": "body", "text": cut, "type": "text/event-stream", "count": 1},
        ]
    ) as server:
        async with gateway(server.url, backoff=0.01) as asking:
            first = await asking.ask(replace(question(1), on_text=told.append))
            assert (first.kind, first.text, told) == ("completed", "all of it", [])
            second = await asking.ask(replace(question(2), on_text=told.append))
    assert told[0] == "half a"
    assert (second.kind, second.text, second.attempts) == ("completed", told[-1], 2)


async def test_an_error_in_a_stream_is_malformed_and_a_key_in_it_is_blanked_out() -> None:
    told: list[str] = []
    said = {"choices": [{"delta": {"content": KEY}}]}
    failed = {"error": {"message": f"no {KEY}"}}
    pieces = "".join(f"data: {json.dumps(piece)}\n\n" for piece in (said, failed))
    with ProtocolServer(
        script=[{"do": "body", "text": pieces, "type": "text/event-stream"}]
    ) as server:
        async with gateway(server.url, backoff=0.01) as asking:
            outcome = await asking.ask(replace(question(1), on_text=told.append))
    assert isinstance(outcome, MalformedReply)
    assert told
    assert KEY not in " ".join(told) + str(outcome)
