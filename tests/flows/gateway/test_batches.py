"""Calls by batch: what is handed in, fetched, asked again, and never paid twice, whatever goes wrong in between."""

import asyncio
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx2
import pytest
from gateway_asking import KEY, ask_all, question
from protocol_server import ProtocolServer
from protocol_server.batches import Batch, message
from protocol_server.replies import completion

from pollex.errors import AnswersPending, LimitReached, ModelRefused, ModelUnavailable, PollexError
from pollex.gateway.batches import desk as desks
from pollex.gateway.batches.client import AnthropicBatches, BatchHttpClient, OpenAIBatches
from pollex.gateway.batches.desk import (
    BatchProvider,
    BatchSubmissionRound,
    FileBatches,
    ModelBatchQueue,
)
from pollex.gateway.budget import Limits, Price
from pollex.gateway.calls import Call, CompletedReply, FailedCall, Outcome
from pollex.gateway.endpoint import Endpoint
from pollex.gateway.gateway import Gateway
from pollex.store.ledger import StoreBatchRecords, StoreCallLedger
from pollex.store.store import Store

CALLS = [question(number) for number in range(8)]
APIS = ["openai", "anthropic"]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """No waiting for a provider that lists new batches late."""
    monkeypatch.setattr(desks, "SECONDS_BETWEEN_BATCH_CHECKS", 0.01)
    monkeypatch.setattr(desks, "QUIET_SECONDS_BEFORE_SUBMISSION", 0.05)


@pytest.fixture
def server() -> Iterator[ProtocolServer]:
    with ProtocolServer() as server:
        yield server


@pytest.fixture(params=APIS)
def api(request: pytest.FixtureRequest, server: ProtocolServer) -> str:
    """The name of a provider's protocol, which the server speaks."""
    name: str = request.param
    if name == "anthropic":
        server.batches.answer = message
    return name


class Command:
    """One command on a store: fetches, asks, and ends."""

    def __init__(self, url: str, store: Path, to: str, **limits: Any) -> None:
        self.endpoint = Endpoint("any-model", url, KEY)
        self.store = store
        self.to = to
        self.limits = Limits(**{"backoff": 0.01, **limits})
        self.used = 0

    async def __call__(self, calls: Sequence[Call]) -> list[Outcome | BaseException]:
        """What came of each call."""
        makers: dict[str, Callable[[], BatchProvider]] = {
            "openai": lambda: OpenAIBatches(self.endpoint, self.limits),
            "anthropic": lambda: AnthropicBatches(self.endpoint, self.limits),
            "files": lambda: FileBatches(self.store / "files"),
        }
        with Store.open(self.store) as store:
            ledger = StoreCallLedger(store)
            desk = ModelBatchQueue(
                self.endpoint,
                makers,
                ledger,
                StoreBatchRecords(store),
                self.limits,
                self.to,
                BatchSubmissionRound(),
            )
            async with Gateway(self.endpoint, ledger, self.limits, desk=desk) as door:
                self.table = door.used
                await desk.fetch()
                return await ask_all(door, calls)


@pytest.fixture
def command(server: ProtocolServer, tmp_path: Path, api: str) -> Command:
    return Command(server.url, tmp_path, api)


@pytest.fixture
def openai(server: ProtocolServer, tmp_path: Path) -> Command:
    return Command(server.url, tmp_path, "openai")


def pending(outcomes: Sequence[object]) -> bool:
    return all(isinstance(outcome, AnswersPending) for outcome in outcomes)


def completed(outcomes: Sequence[object]) -> bool:
    return all(isinstance(outcome, CompletedReply) for outcome in outcomes)


def paid_twice(server: ProtocolServer) -> int:
    return sum(number - 1 for number in server.batches.paid.values())


def files_with_the_key(folder: Path) -> list[Path]:
    return [
        path for path in folder.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()
    ]


async def rounds_of(command: Command, most: int = 6) -> tuple[int, list[Outcome | BaseException]]:
    """Repeats a command until nothing is pending: how often it handed in, and what came of each call."""
    for number in range(most):
        outcomes = await command(CALLS)
        if not any(isinstance(outcome, AnswersPending) for outcome in outcomes):
            return number, outcomes
    raise AssertionError(f"pending after {most} commands")


async def test_the_command_ends_and_the_next_has_the_answers_that_the_same_calls_get_at_once(
    server: ProtocolServer, tmp_path: Path, api: str
) -> None:
    command = Command(server.url, tmp_path / "batch", api)
    assert pending(await command(CALLS))
    by_batch = await command(CALLS)
    assert completed(by_batch)
    assert (len(server.batches.made), paid_twice(server), server.counts()["received"]) == (1, 0, 0)
    at_once = await Command(server.url, tmp_path / "once", "")(CALLS)
    for one, other in zip(by_batch, at_once, strict=True):
        assert isinstance(one, CompletedReply)
        assert isinstance(other, CompletedReply)
        assert (json.loads(one.text), one.key) == (json.loads(other.text), other.key)


async def test_a_batch_that_is_open_is_waited_for_and_not_paid_again(
    server: ProtocolServer, api: str, command: Command
) -> None:
    server.batches.ready = False
    for to in (api, api, ""):  # asked at once, too, it would be paid twice
        command.to = to
        assert pending(await command(CALLS))
    server.batches.ready = True
    assert completed(await command(CALLS))
    assert (len(server.batches.made), paid_twice(server), server.counts()["received"]) == (1, 0, 0)


async def test_only_what_expired_is_asked_again_and_at_once_where_there_are_no_batches_any_more(
    server: ProtocolServer, tmp_path: Path, api: str
) -> None:
    server.batches.expire = 3
    number, outcomes = await rounds_of(Command(server.url, tmp_path / "batch", api))
    assert (number, completed(outcomes), paid_twice(server)) == (2, True, 0)
    assert [len(batch.requests) for batch in server.batches.made.values()] == [8, 3]
    server.batches.expire = 3
    command = Command(server.url, tmp_path / "once", api)
    await command(CALLS)
    command.to = ""
    assert completed(await command(CALLS))
    assert server.counts()["received"] == 3


async def test_only_what_may_succeed_is_asked_again_and_other_failures_are_outcomes(
    server: ProtocolServer, tmp_path: Path, command: Command
) -> None:
    server.batches.fail = [500, 400]
    assert pending(await command(CALLS))
    second = await command(CALLS)
    assert [type(one) for one in second] == [AnswersPending, FailedCall, *[CompletedReply] * 6]
    assert [len(batch.requests) for batch in server.batches.made.values()] == [8, 1]
    await rounds_of(command)
    assert files_with_the_key(tmp_path) == []


async def test_a_creation_without_a_reply_that_did_create_is_found_and_while_it_may_be_ours_no_other_is_made(
    server: ProtocolServer, command: Command
) -> None:
    for number in range(3):  # others' batches, on several pages
        server.batches.made[f"other_{number}"] = Batch(f"other_{number}", {"x": {}}, 4e9)
    server.batches.creation, server.batches.ready = ["no reply"], False
    for _ in range(2):
        assert pending(await command(CALLS))
    server.batches.ready = True
    assert completed(await command(CALLS))
    assert (len(server.batches.made), paid_twice(server)) == (4, 0)


@pytest.mark.parametrize("how", ["no word", "no reply"])
async def test_a_creation_that_times_out_but_did_create_is_not_repeated(
    server: ProtocolServer, tmp_path: Path, how: str
) -> None:
    server.batches.creation = [how]
    command = Command(server.url, tmp_path, "openai", deadline=0.5)
    number, outcomes = await rounds_of(command)
    assert (number, completed(outcomes), len(server.batches.made), paid_twice(server)) == (
        1,
        True,
        1,
        0,
    )


async def test_a_batch_of_another_key_is_not_given_up(
    server: ProtocolServer, openai: Command
) -> None:
    await openai(CALLS)
    there, server.batches.made = server.batches.made, {}
    with pytest.raises(ModelRefused, match="there is no batch batch_0"):
        await openai(CALLS)
    server.batches.made = there
    assert completed(await openai(CALLS))


async def test_a_creation_without_a_reply_that_did_not_create_is_repeated_by_the_next_command(
    server: ProtocolServer, openai: Command
) -> None:
    server.batches.creation = ["dropped"]
    assert all(isinstance(outcome, ModelUnavailable) for outcome in await openai(CALLS))
    assert server.batches.made == {}
    assert pending(await openai(CALLS))
    assert completed(await openai(CALLS))
    assert paid_twice(server) == 0


async def test_a_kill_between_the_creation_and_its_record_costs_nothing(
    server: ProtocolServer, monkeypatch: pytest.MonkeyPatch, command: Command
) -> None:
    async def killed(*_: object) -> None:
        raise PollexError("as if killed")

    with monkeypatch.context() as patch:
        patch.setattr(StoreBatchRecords, "created", killed)
        assert all(isinstance(outcome, PollexError) for outcome in await command(CALLS))
    assert completed(await command(CALLS))
    assert (len(server.batches.made), paid_twice(server)) == (1, 0)


async def test_a_kill_before_the_creation_costs_nothing(
    server: ProtocolServer, monkeypatch: pytest.MonkeyPatch, openai: Command
) -> None:
    async def killed(*_: object) -> str:
        raise asyncio.CancelledError

    with monkeypatch.context() as patch:
        patch.setattr(OpenAIBatches, "create", killed)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(openai(CALLS), 0.5)
    number, outcomes = await rounds_of(openai)
    assert (number, completed(outcomes), paid_twice(server)) == (1, True, 0)


async def test_a_refused_creation_is_told_and_frees_its_calls_and_a_faulty_file_is_told_with_its_line(
    server: ProtocolServer, openai: Command
) -> None:
    server.batches.creation = ["refused"]
    outcomes = await openai(CALLS)
    assert all(isinstance(outcome, ModelRefused) for outcome in outcomes)
    assert "no batches for this model" in str(outcomes[0])
    server.batches.invalid = True
    assert pending(await openai(CALLS))
    with pytest.raises(ModelRefused, match="line 1: no such model"):
        await openai(CALLS)


async def test_a_limit_of_calls_holds_and_the_rest_waits_for_the_next_command(
    server: ProtocolServer, tmp_path: Path
) -> None:
    command = Command(server.url, tmp_path, "openai", max_calls=5)
    first = await command(CALLS)
    assert "max_calls 5 reached" in str(first[0])
    assert pending(first)
    assert [type(outcome) for outcome in await command(CALLS)] == [
        *[CompletedReply] * 5,
        *[AnswersPending] * 3,
    ]
    assert completed(await command(CALLS))
    assert [len(batch.requests) for batch in server.batches.made.values()] == [5, 3]
    none = await Command(server.url, tmp_path / "none", "openai", max_calls=0)(CALLS)
    assert all(isinstance(outcome, LimitReached) for outcome in none)


async def test_a_large_batch_is_split_as_the_provider_wants(
    server: ProtocolServer, monkeypatch: pytest.MonkeyPatch, openai: Command
) -> None:
    monkeypatch.setattr(OpenAIBatches, "most_lines", 3)
    number, outcomes = await rounds_of(openai)
    assert (number, completed(outcomes)) == (1, True)
    assert [len(batch.requests) for batch in server.batches.made.values()] == [3, 3, 2]


async def test_what_waits_for_others_is_asked_at_once_and_tokens_of_a_batch_cost_half(
    server: ProtocolServer, tmp_path: Path, openai: Command
) -> None:
    outcomes = await openai([question(0, stage="summarize", apart=False), question(1)])
    assert [type(outcome) for outcome in outcomes] == [CompletedReply, AnswersPending]
    costs = []
    for to in ("openai", ""):
        command = Command(server.url, tmp_path / (to or "once"), to, price=Price(1.0, 2.0))
        await rounds_of(command)
        costs.append(command.table.total.cost(Price(1.0, 2.0)) or 0.0)
    assert 0 < costs[0] == pytest.approx(costs[1] / 2)


async def test_files_for_vllm_are_answered_by_files(server: ProtocolServer, tmp_path: Path) -> None:
    command = Command(server.url, tmp_path, "files")
    first = await command(CALLS)
    assert "vllm run-batch -i " in str(first[0])
    assert pending(await command(CALLS))
    (asked,) = (tmp_path / "files").glob("*.jsonl")
    rows = [json.loads(line) for line in asked.read_text().splitlines()]
    assert {row["url"] for row in rows} == {"/v1/chat/completions"}
    replies = [{"status_code": 200, "body": completion(row["body"])} for row in rows]
    answers = [
        {"custom_id": row["custom_id"], "response": reply}
        for row, reply in zip(rows, replies, strict=True)
    ]
    asked.with_suffix(".answers.jsonl").write_text("\n".join(map(json.dumps, answers[:-1])))
    outcomes = await command(CALLS)
    assert [type(one) for one in outcomes].count(CompletedReply) == 7
    assert server.counts()["received"] == 0
    assert len(list((tmp_path / "files").glob("pollex-????????.jsonl"))) == 2


async def test_a_query_in_the_address_stays_and_no_header_of_the_environment_is_sent(
    server: ProtocolServer, tmp_path: Path, api: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Mine: env-secret")
    monkeypatch.setenv("OPENAI_ORG_ID", "env-organization")
    asked: list[httpx2.Request] = []

    async def look(request: httpx2.Request) -> None:
        asked.append(request)

    client = BatchHttpClient(
        Endpoint("m", f"{server.url}?api-version=7", KEY), {"x-api-key": KEY}, Limits()
    )
    client._client.event_hooks = {"request": [look], "response": []}
    await client.json("/batches" if api == "openai" else "/messages/batches", limit="100")
    await client.close()
    (request,) = asked
    assert dict(request.url.params) == {"api-version": "7", "limit": "100"}
    assert request.headers["x-api-key"] == KEY
    assert not {"authorization", "x-mine", "openai-organization"} & {
        name.lower() for name in request.headers
    }
