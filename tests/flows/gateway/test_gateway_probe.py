"""Finding out what an endpoint can do, and asking any LangChain chat model."""

import asyncio
from dataclasses import asdict
from typing import Any

import pytest
from gateway_asking import KEY, LABELS, ask_all, ask_once, question
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_openai import ChatOpenAI
from protocol_server import ProtocolServer
from pydantic import Field

from pollex.errors import ModelRefused, ModelUnavailable
from pollex.gateway.budget import Limits
from pollex.gateway.calls import (
    Call,
    Capabilities,
    CompletedReply,
    FailedCall,
    MalformedReply,
    MemoryLedger,
    TruncatedReply,
    arrange_messages,
)
from pollex.gateway.endpoint import Endpoint
from pollex.gateway.gateway import Gateway
from pollex.gateway.json_in_text import find_last_json_object
from pollex.gateway.probe import probe_endpoint
from pollex.gateway.transport import ChatModel

ALL = {"json_schema", "tools", "json_object", "logprobs", "seed", "temperature", "window"}


async def probed(*script: dict[str, Any]) -> tuple[Capabilities, int]:
    with ProtocolServer(script=script) as server:
        capabilities = await probe_endpoint(Endpoint("any-model", server.url, KEY), backoff=0.01)
        return capabilities, server.counts()["received"]


def cannot(capabilities: Capabilities) -> set[str]:
    return {name for name, value in asdict(capabilities).items() if name in ALL and not value}


async def test_an_endpoint_that_can_do_everything_is_known_by_one_call() -> None:
    capabilities, received = await probed()
    assert cannot(capabilities) == set()
    assert capabilities.missing() == []
    assert (capabilities.form, capabilities.logprobs, capabilities.window) == (
        "json_schema",
        20,
        32768,
    )
    assert capabilities.calls == received == 1


async def test_an_unencrypted_address_is_noted_before_anything_is_sent(
    caplog: pytest.LogCaptureFixture,
) -> None:
    # nothing listens there; the address is of documents alone
    away = Endpoint("any-model", "http://192.0.2.1:9/v1", KEY)
    with pytest.raises(ModelUnavailable):
        await probe_endpoint(away, deadline=0.1, backoff=0.01)
    (note, *_) = caplog.messages
    assert note.endswith("conversations and the key go over the network unencrypted (http)")


@pytest.mark.parametrize("part", ["none", "half"])
async def test_an_endpoint_that_answers_nothing_is_given_up_at_the_users_deadline(
    part: str,
) -> None:
    begun = asyncio.get_running_loop().time()
    with ProtocolServer(script=[{"do": "hang", "part": part}]) as server:
        with pytest.raises(ModelUnavailable):
            await probe_endpoint(Endpoint("any-model", server.url, KEY), deadline=0.2)
        # the whole question, and the words alone
        assert server.counts()["received"] == 2
    assert asyncio.get_running_loop().time() - begun < 5


async def test_a_probe_that_is_stopped_ends_at_once() -> None:
    loop = asyncio.get_running_loop()
    with ProtocolServer(script=[{"do": "hang", "part": "none"}]) as server:
        probing = asyncio.ensure_future(probe_endpoint(Endpoint("any-model", server.url, KEY)))
        await asyncio.sleep(0.3)
        begun = loop.time()
        probing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await probing
        assert loop.time() - begun < 2


async def test_what_an_endpoint_ignores_is_found_and_told_in_sentences() -> None:
    for what, lost, form in (
        ("logprobs", {"logprobs"}, "json_schema"),
        ("response_format", {"json_schema"}, "tool"),
        ("tools", set(), "json_schema"),
    ):
        capabilities, _ = await probed({"do": "ignore", "what": [what]})
        assert (cannot(capabilities), capabilities.form) == (lost, form)
    capabilities, _ = await probed({"do": "ignore", "what": ["response_format", "logprobs"]})
    for words in ("a forced tool call", "no log-probabilities"):
        assert any(words in sentence for sentence in capabilities.missing())


async def test_what_an_endpoint_refuses_is_found_and_left_out() -> None:
    for what, lost in (
        ("temperature", {"temperature"}),
        ("seed", {"seed"}),
        ("logprobs", {"logprobs"}),
        ("response_format", {"json_schema"}),
        ("max_completion_tokens", set()),
    ):
        capabilities, received = await probed({"do": "refuse", "what": [what]})
        assert cannot(capabilities) == lost
        assert received == capabilities.calls <= 14
        call = capabilities.fit(question(temperature=0.0, seed=1, top_logprobs=20, max_tokens=10))
        with ProtocolServer(script=[{"do": "refuse", "what": [what]}]) as server:
            assert isinstance(await ask_once(server.url, call), CompletedReply), (
                "the fitted call was refused"
            )


@pytest.mark.parametrize(
    ("words", "status", "refused", "roles"),
    [
        ("Unexpected role 'system' after role 'user'", 400, "system_later", "system_first"),
        ("messages[0].role does not support 'system' with this model", 400, "system", "user"),
        ("Only user and assistant roles are supported", 400, "system", "user"),
        ("the roles must alternate, Jinja says", 500, "user_twice", "alternating"),
        ("Internal Server Error", 500, "system", "user"),
    ],
)
async def test_messages_get_the_roles_that_a_chat_template_takes(
    words: str, status: int, refused: str, roles: str
) -> None:
    what = ["system_later", refused]
    with ProtocolServer() as server:
        server.behave({"refuses": [{"what": what, "status": status, "says": words}]})
        place = Endpoint("any-model", server.url, KEY)
        found = await probe_endpoint(place, backoff=0.01)
        assert (found.roles, found.form, found.logprobs) == (roles, "json_schema", 20)
        assert [sentence for sentence in found.missing() if "the boundary" in sentence]
        messages = [
            {"role": role, "content": role[0] + str(number)}
            for number, role in enumerate(["system", "user", "system"])
        ]
        async with Gateway(place, MemoryLedger()) as gateway:
            outcome = await gateway.ask(found.fit(Call(messages=messages)))
        assert isinstance(outcome, CompletedReply)


def test_fewer_roles_change_neither_words_nor_order() -> None:
    rules, data, task = "rules", "data", "task"
    messages = [
        {"role": "system", "content": rules},
        {"role": "user", "content": data},
        {"role": "system", "content": task},
    ]
    assert arrange_messages(messages, "any") == messages
    assert [message["role"] for message in arrange_messages(messages, "system_first")] == [
        "system",
        "user",
        "user",
    ]
    below = {"role": "user", "content": "data\n\ntask"}
    assert arrange_messages(messages, "alternating") == [messages[0], below]
    (alone,) = arrange_messages(messages, "user")
    assert alone == {"role": "user", "content": "rules\n\ndata\n\ntask"}


@pytest.mark.parametrize(
    ("match", "lost"), [("json_schema", {"json_schema"}), ("logprobs", {"logprobs"})]
)
async def test_a_gateways_error_for_what_it_cant_do_is_a_lack_where_plain_requests_are_answered(
    match: str, lost: set[str]
) -> None:
    for code in (502, 503):
        capabilities, received = await probed({"do": "status", "code": code, "match": f'"{match}"'})
        assert cannot(capabilities) == lost
        assert capabilities.calls == received <= 8


async def test_an_endpoint_that_was_away_for_a_moment_lacks_nothing() -> None:
    capabilities, received = await probed({"do": "status", "code": 502, "count": 2})
    assert (cannot(capabilities), received) == (set(), 4)
    with ProtocolServer(script=[{"do": "status", "code": 502, "count": 5}]) as server:
        waited = await probe_endpoint(
            Endpoint("any-model", server.url, KEY), backoff=0.01, max_wait=10.0
        )
    assert cannot(waited) == set()


async def test_what_is_no_endpoint_for_chat_is_refused_with_where_to_look() -> None:
    for text in ("<html>Log in</html>", "", "[1, 2]", '{"data": []}'):
        with pytest.raises(
            ModelRefused, match=r"http://127\.0\.0\.1.*not a chat completion.*check the base URL"
        ):
            await probed({"do": "body", "text": text})


async def test_an_endpoint_of_which_little_is_good_is_asked_for_that_and_no_more() -> None:
    capabilities, _ = await probed({"do": "body", "text": "oops", "match": '"logprobs":true'})
    assert cannot(capabilities) == {"logprobs"}, "what makes it write nonsense, and not the rest"
    capabilities, _ = await probed({"do": "status", "code": 400, "match": '"top_logprobs":20'})
    assert capabilities.fit(question(top_logprobs=20)).top_logprobs == capabilities.logprobs == 5
    assert capabilities.fit(question()).top_logprobs is None
    capabilities, _ = await probed(
        {"do": "message", "content": "```json\n{answer}\n```", "match": "json_schema"}
    )
    assert capabilities.json_schema, "fenced JSON is good enough"


async def test_a_probe_of_a_wrong_key_or_none_or_a_dead_endpoint_says_so() -> None:
    with pytest.raises(ModelRefused, match=r"no API key is set.*set OPENAI_API_KEY"):
        await probe_endpoint(Endpoint("gpt-5-mini"))
    with ProtocolServer(script=[{"do": "echo_key"}]) as server:
        with pytest.raises(ModelRefused, match="check the API key") as refused:
            await probe_endpoint(Endpoint("any-model", server.url, KEY), backoff=0.01)
        assert KEY not in str(refused.value)
    with pytest.raises(ModelUnavailable, match="connection"):
        await probe_endpoint(Endpoint("any-model", "http://127.0.0.1:9/v1"), backoff=0.01)
    with (
        ProtocolServer(script=[{"do": "status", "code": 422}]) as server,
        pytest.raises(ModelRefused, match="422"),
    ):
        await probe_endpoint(Endpoint("any-model", server.url), backoff=0.01)


class TerminalLines(BaseChatModel):
    """A chat model of another provider, which says what it is told to or raises it."""

    says: list[Any]
    asked: list[Any] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "told"

    def _generate(self, messages: Any, *args: Any, **kwargs: Any) -> ChatResult:
        self.asked.append(messages)
        said = self.says[min(len(self.asked), len(self.says)) - 1]
        if isinstance(said, Exception):
            raise said
        return ChatResult(generations=[ChatGeneration(message=said)])


class Overloaded(Exception):
    status_code = 529


class Unauthorized(Exception):
    status_code = 401


def told(*says: Any) -> TerminalLines:
    return TerminalLines(says=list(says), asked=[])


async def asked(model: BaseChatModel, max_wait: float = 120.0) -> Any:
    ledger = MemoryLedger()
    async with Gateway(ChatModel(model), ledger, Limits(backoff=0.01, max_wait=max_wait)) as door:
        outcome = await door.ask(question())
        assert (await door.ask(question())).key in ledger.calls
        return outcome


async def test_another_providers_message_is_an_outcome_and_kept() -> None:
    message = AIMessage(
        '{"answer": "Agree"}',
        response_metadata={"stop_reason": "end_turn", "model_name": "told-1"},
        usage_metadata={"input_tokens": 12, "output_tokens": 4, "total_tokens": 16},
    )
    model = told(message)
    outcome = await asked(model)
    assert isinstance(outcome, CompletedReply)
    assert (outcome.text, outcome.model) == ('{"answer": "Agree"}', "told-1")
    assert (outcome.usage.prompt, outcome.usage.completion) == (12, 4)
    assert len(model.asked) == 1, "the second question was answered by the ledger"


async def test_another_providers_limits_faults_and_nonsense_are_understood() -> None:
    assert isinstance(
        await asked(told(AIMessage("{", response_metadata={"stop_reason": "max_tokens"}))),
        TruncatedReply,
    )
    assert isinstance(
        await asked(told(Overloaded("busy"), Overloaded("busy"), AIMessage("{}"))), CompletedReply
    )
    assert isinstance(await asked(told(KeyError("choices"))), MalformedReply)
    with pytest.raises(ModelUnavailable, match="gone"):
        await asked(told(ConnectionError("gone")), max_wait=0.0)
    with pytest.raises(ModelRefused, match="check the API key"):
        await asked(told(Unauthorized("sk-abcdefgh12345")))


async def test_a_chat_openai_that_the_user_made_takes_every_parameter_and_retries_nothing_itself() -> (
    None
):
    with ProtocolServer(script=[{"do": "status", "code": 500, "count": 1}]) as server:
        chat = ChatOpenAI(model="any-model", base_url=server.url, api_key=KEY, max_retries=5)  # type: ignore[arg-type]
        async with Gateway(ChatModel(chat), MemoryLedger(), Limits(max_attempts=1)) as door:
            failed = await door.ask(question())
        assert server.counts()["received"] == 1
        async with Gateway(ChatModel(chat), MemoryLedger()) as door:
            results = await ask_all(
                door, [question(number, top_logprobs=5, seed=1) for number in range(20)]
            )
    assert isinstance(failed, FailedCall)
    assert all(isinstance(result, CompletedReply) for result in results)
    first = results[0]
    assert isinstance(first, CompletedReply)
    block = find_last_json_object(first.text)
    assert block is not None
    assert block.value["answer"] in LABELS, "the schema reached the server"
    assert first.logprobs
    assert KEY not in ChatModel(chat).place + repr(ChatModel(chat))
    assert ChatModel(chat).secrets == (KEY,)


def test_a_chat_openai_that_the_user_made_serves_one_event_loop_after_another() -> None:
    with ProtocolServer() as server:
        chat = ChatOpenAI(model="any-model", base_url=server.url, api_key=KEY)  # type: ignore[arg-type]

        async def run(first: int) -> list[Any]:
            async with Gateway(ChatModel(chat), MemoryLedger()) as door:
                return await ask_all(
                    door, [question(number) for number in range(first, first + 40)]
                )

        for first in (0, 40):
            assert all(isinstance(result, CompletedReply) for result in asyncio.run(run(first)))


async def test_a_connection_that_breaks_once_tells_of_no_lack() -> None:
    for match in ("json_schema", "logprobs"):
        capabilities, _ = await probed({"do": "reset", "match": f'"{match}"', "count": 1})
        assert cannot(capabilities) == set()
