"""A recorded endpoint answers what was recorded, and nothing else."""

import gzip
import json
from pathlib import Path

import pytest

from pollex.gateway.calls import Call, CompletedReply, MemoryLedger
from pollex.gateway.gateway import Gateway
from pollex.gateway.recorded import (
    PromptNotRecorded,
    RecordedEndpoint,
    make_reply_body,
    split_recorded_request,
)

ASKED = Call(messages=[{"role": "user", "content": "How was it?"}], stage="judge", item="c1")
OTHER = Call(messages=[{"role": "user", "content": "And this one?"}], stage="judge", item="c2")


@pytest.fixture
def endpoint(tmp_path: Path) -> RecordedEndpoint:
    made = RecordedEndpoint("a-model", file=tmp_path / "replies.jsonl.gz")
    body = {
        "choices": [{"finish_reason": "stop", "message": {"role": "assistant", "content": "Well."}}]
    }
    line = {
        "key": made.request(ASKED).key,
        "stage": "judge",
        "item": "c1",
        "body": json.dumps(body),
    }
    made.file.write_bytes(gzip.compress(json.dumps(line).encode()))
    return made


async def test_a_recorded_reply_comes_back_without_a_network_and_a_prompt_that_was_not_recorded_stops_the_run(
    endpoint: RecordedEndpoint,
) -> None:
    async with Gateway(endpoint, MemoryLedger()) as gateway:
        outcome = await gateway.ask(ASKED)
        assert isinstance(outcome, CompletedReply)
        assert outcome.text == "Well."
        with pytest.raises(PromptNotRecorded, match="judge of c2"):
            await gateway.ask(OTHER)
    assert RecordedEndpoint("a-model", file=endpoint.file.with_name("none.jsonl")).lines == {}


def judging(*statements: str) -> Call:
    data, listed = "Book it.", "\n".join(f'{n}. "{one}"' for n, one in enumerate(statements, 1))
    told = [("system", "Judge."), ("user", data), ("system", f"For each number:\n{listed}")]
    return Call(
        messages=[{"role": role, "content": text} for role, text in told], stage="judge", item="c1"
    )


async def test_a_judging_is_put_together_from_answers_to_each_of_its_statements_and_counted(
    tmp_path: Path,
) -> None:
    made = RecordedEndpoint("a-model", file=tmp_path / "replies.jsonl.gz")
    check = 'The user uses the word \\"{}\\" in their first message.'
    lines = []
    for first, second, said in (
        ("A.", check.format("walnut"), "no"),
        ("B.", check.format("Book"), "yes"),
    ):
        request = made.request(judging(first, second))
        body = make_reply_body(
            "a-model", json.dumps({"1": {"answer": first}, "2": {"answer": said}}), request
        )
        form, statements = split_recorded_request(request)
        lines.append({"key": request.key, "body": body, "form": form, "statements": statements})
    made.file.write_bytes(gzip.compress("\n".join(map(json.dumps, lines)).encode()))
    async with Gateway(made, MemoryLedger()) as gateway:
        outcome = await gateway.ask(judging("B.", check.format("iceberg"), "A."))
        assert isinstance(outcome, CompletedReply)
        assert [one["answer"] for one in json.loads(outcome.text).values()] == ["B.", "no", "A."]
        assert len(made.composed) == 1
        with pytest.raises(PromptNotRecorded):
            await gateway.ask(judging("A.", "C."))
