"""The transport of requests and replies.

A wire sends once, never raises, and never interprets a reply.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache, cached_property
from io import StringIO
from typing import Any, Protocol

import aiohttp
import httpx2
from httpx2 import AsyncClient
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import Runnable
from langchain_openai import ChatOpenAI
from langchain_openai.chat_models.base import BaseChatOpenAI
from openai import DefaultAioHttpClient, Omit
from pydantic import SecretStr

from pollex.gateway.calls import Call, Reply, Request, arrange_messages, make_model_request
from pollex.gateway.endpoint import LANGCHAIN_PREFIX, Endpoint
from pollex.gateway.recorded import RecordedEndpoint
from pollex.gateway.redaction import redact_secrets, strip_secrets

EVENT_STREAM_MEDIA_TYPE = "text/event-stream"
_LAST_EVENT_DATA = "[DONE]"
_REPLY_METADATA_FIELDS = ("id", "model", "system_fingerprint", "usage")
_STREAMING_BODY_END = b',"stream":true,"stream_options":{"include_usage":true}}'
_EVENT_STREAM_STARTS = (b"data:", b"event:", b"id:", b":")


class StreamedReply:
    """The parts of one reply (server-sent events of OpenAI's protocol).

    Args:
        tell: Gets the text so far whenever it has grown by a hundredth; None where nobody listens.

    Attributes:
        whole: Whether the last part has come.
    """

    def __init__(self, tell: Callable[[str], None] | None = None) -> None:
        self._tell = tell
        self._rest = b""
        # texts that are added to: a sum of strings would be copied whole for each part
        self._text = StringIO()
        self._told_length = 0
        self._refusal = StringIO()
        self._thoughts = StringIO()
        self._calls = dict[int, _StreamedToolCall]()
        self._tokens = list[object]()
        self._about: dict[str, object] = {}
        self._finish: str | None = None
        self._error: object = None
        self.whole = False

    def feed(self, data: bytes) -> None:
        """Take what has arrived; half a line waits for its other half."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            name, _, value = line.decode("utf-8", "replace").partition(":")
            if name == "data":
                self._take(value.strip())

    def body(self) -> str:
        """Return the reply as JSON: a completion, or the error that came in its place."""
        if self._error is not None:
            return json.dumps({"error": self._error}, ensure_ascii=False)

        message: dict[str, object] = {
            "role": "assistant",
            "content": self._text.getvalue(),
            "refusal": self._refusal.getvalue() or None,
        }
        if thoughts := self._thoughts.getvalue():
            message["reasoning_content"] = thoughts

        if self._calls:
            tool_calls = []
            for call in self._calls.values():
                function = {"name": call.name, "arguments": call.arguments.getvalue()}
                tool_calls.append({"type": "function", "function": function})

            message["tool_calls"] = tool_calls

        choice = {
            "index": 0,
            "message": message,
            "finish_reason": self._finish,
        }
        if self._tokens:
            choice["logprobs"] = {"content": self._tokens}

        return json.dumps(
            self._about | {"object": "chat.completion", "choices": [choice]},
            ensure_ascii=False,
        )

    def _take(self, value: str) -> None:
        if value == _LAST_EVENT_DATA:
            self.whole = True
            return

        try:
            part = json.loads(value)
            self._error = part.get("error", self._error)
            self._about |= {name: part[name] for name in _REPLY_METADATA_FIELDS if part.get(name)}
            for choice in part.get("choices") or ():
                self._add(choice)
        except (ValueError, TypeError, AttributeError, RecursionError):
            self._error = f"not a part of a chat completion: {value[:120]}"

    def _add(self, choice: dict[str, Any]) -> None:
        delta = choice.get("delta") or choice.get("message") or {}
        self._thoughts.write(delta.get("reasoning_content") or "")
        for number, call in enumerate(delta.get("tool_calls") or ()):
            if isinstance(call, dict) and isinstance(call.get("function"), dict):
                self._add_call(call.get("index", number), call["function"])

        if isinstance(about := choice.get("logprobs"), dict):
            self._tokens += about.get("content") or []

        self._refusal.write(delta.get("refusal") or "")
        if choice.get("finish_reason"):
            self._finish = choice["finish_reason"]
            self.whole = True

        if delta.get("content"):
            self._text.write(delta["content"])
            length = self._text.tell()
            if self._tell is not None and length > 1.01 * self._told_length:
                self._told_length = length
                self._tell(self._text.getvalue())

    def _add_call(self, index: int, function: dict[str, Any]) -> None:
        """Add a part of a tool call; its name comes once, its arguments bit by bit."""
        call = self._calls.setdefault(index, _StreamedToolCall())
        call.name = function.get("name") or call.name
        # some gateways parse what the model wrote; other values are no arguments
        part = function.get("arguments")
        if isinstance(part, dict):
            part = json.dumps(part, ensure_ascii=False)
        if isinstance(part, str):
            call.arguments.write(part)


@dataclass
class _StreamedToolCall:
    """What has come of a call of a tool."""

    name: str = ""
    arguments: StringIO = field(default_factory=StringIO)


MAX_REPLY_BYTES = 1 << 20
"""Of a body that is read and kept."""

MAX_REPLY_BYTES_WITH_LOGPROBS = 1 << 24
"""Each token brings its alternatives along, some two kilobytes at twenty of them; of a stream, some 300 bytes."""

CONNECT_TIMEOUT_SECONDS = 10.0
REPLACED_HEADER_REGEX = re.compile(r"accept|content-type|user-agent|x-stainless-", re.IGNORECASE)
"""Not the organization, project and custom headers that `OPENAI_…` variables name."""

NETWORK_ERRORS = (
    httpx2.HTTPError,
    httpx2.InvalidURL,
    aiohttp.ClientError,
    OSError,
    EOFError,
    ValueError,
)


class ModelConnection(Protocol):
    """A way to a model, for one event loop."""

    async def send(self, request: Request, seconds: float) -> Reply:
        """Return one attempt, of at most that many seconds by the clock."""

    async def close(self) -> None:
        """End all connections."""


def open_connection(place: Endpoint | ChatModel, concurrency: int) -> ModelConnection:
    """Return a wire to `place` for the running event loop."""
    if isinstance(place, ChatModel):
        return ChatModelConnection(place)
    if isinstance(place, RecordedEndpoint):
        return place
    return OpenAIConnection(place, concurrency)


@cache
def _load_ssl_context() -> ssl.SSLContext:
    """Read whom to trust; once, as it takes longer than a reply on the same machine."""
    return httpx2.create_ssl_context(trust_env=False)


class OpenAIConnection:
    """A `ChatOpenAI` whose connections are used directly.

    The body goes out as it was hashed and comes back as it is kept: `ainvoke` would parse a reply
    before anybody could save it, and costs five times the processor time of a call
    (`benchmarks/gateway.py` measures both). Redirects are not followed, environment proxies not
    used, nothing is retried.

    Attributes:
        model: The chat model, for whoever needs a LangChain object; its client and connections are
            the wire's own.
    """

    def __init__(self, endpoint: Endpoint, concurrency: int) -> None:
        self._endpoint = endpoint
        self._url = httpx2.URL(endpoint.url("chat/completions"))
        self._http = DefaultAioHttpClient(
            timeout=httpx2.Timeout(None, connect=CONNECT_TIMEOUT_SECONDS),
            limits=httpx2.Limits(max_connections=concurrency + 1, keepalive_expiry=30),
            follow_redirects=False,
            trust_env=False,
            verify=_load_ssl_context(),
            proxy=endpoint.proxy,
        )
        self.model = ChatOpenAI(
            model=endpoint.model,
            base_url=endpoint.place,
            api_key=endpoint.api_key or "none",
            default_headers=endpoint.headers,
            max_retries=0,
            openai_proxy="",  # else OPENAI_PROXY, which it refuses beside a client of ours
            http_async_client=self._http,
        )
        # With the client: merging them into each request takes a sixth of what a call costs.
        self._http.headers.update(
            _merge_headers(self.model.root_async_client.default_headers, endpoint)
        )

    async def send(self, request: Request, seconds: float) -> Reply:
        # somebody listens: the reply is asked for in pieces, whose secrets are blanked
        if (tell := request.call.on_text) is not None:
            heard = StreamedReply(lambda text: tell(strip_secrets(self._endpoint.secrets, text)))
            arriving = _PartialReply(MAX_REPLY_BYTES_WITH_LOGPROBS, heard)
            if request.call.stream:
                body = request.body
            else:
                body = request.body[:-1] + _STREAMING_BODY_END

            return await self._send(
                "POST",
                self._url,
                body,
                arriving,
                seconds,
            )

        if request.call.stream:
            arriving = _PartialReply(MAX_REPLY_BYTES_WITH_LOGPROBS)
            return await self._send(
                "POST",
                self._url,
                request.body,
                arriving,
                seconds,
            )

        # alternatives of every token take much more room
        if request.call.top_logprobs is None:
            cap = MAX_REPLY_BYTES
        else:
            cap = MAX_REPLY_BYTES_WITH_LOGPROBS

        return await self._send(
            "POST",
            self._url,
            request.body,
            _PartialReply(cap),
            seconds,
        )

    async def fetch(self, path: str, seconds: float) -> Reply:
        """Return a document beside the chat operation, for example `models`."""
        return await self._send(
            "GET",
            self._endpoint.url(path),
            None,
            _PartialReply(MAX_REPLY_BYTES_WITH_LOGPROBS),
            seconds,
        )

    async def close(self) -> None:
        await self._http.aclose()

    async def _send(
        self,
        method: str,
        url: httpx2.URL | str,
        body: bytes | None,
        arriving: _PartialReply,
        seconds: float,
    ) -> Reply:
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            async with (
                limit_running_time(seconds),
                self._http.stream(method, url, content=body) as response,
            ):
                await arriving.read(response)
        except TimeoutError:
            arriving.fail("timeout", f"no whole reply within {seconds:g} s")
        except NETWORK_ERRORS as error:
            # a certificate that isn't trusted, else the connection
            certificate = _describe_certificate_error(error)
            # Whatever the library's class: an address where nothing listens is no matter of time.
            if CONNECTION_REFUSED_MESSAGE in str(error):
                name = "ConnectionRefused"
            else:
                name = type(error).__name__

            words = redact_secrets(f"{name}: {certificate or error}", self._endpoint.secrets)
            arriving.fail(
                "certificate" if certificate else "cut" if arriving.status == 200 else "connection",
                words,
            )

        return arriving.reply(self._endpoint.secrets, loop.time() - began)


CONNECTION_REFUSED_MESSAGE = "Connect call failed"


class _PartialReply:
    """A partly received reply; the received part is kept if the connection fails.

    Args:
        heard: Reads a reply that comes in parts; some endpoints send these unasked.
    """

    def __init__(self, cap: int, heard: StreamedReply | None = None) -> None:
        self._cap = cap
        self._heard = heard
        self._chunks: list[bytes] = []
        self._problem: str = ""
        self._detail = ""
        self._headers: Mapping[str, str] = {}
        self.status = 0

    async def read(self, response: httpx2.Response) -> None:
        self.status = response.status_code
        self._headers = response.headers
        size = 0
        # An endpoint that knows no streams answers whole; so do its errors. Others stream without
        # being asked.
        listener = self._heard or StreamedReply()
        self._heard = None
        heard: StreamedReply | None = None
        async for chunk in response.aiter_bytes():
            if size == 0 and self._comes_in_parts(chunk):
                heard = self._heard = listener
            if heard is not None:
                heard.feed(chunk)
            self._chunks.append(chunk[: self._cap - size])
            size += len(chunk)
            if size > self._cap:
                self.fail("too_large", f"more than {self._cap} bytes")
                return

        if heard is not None and not heard.whole:
            self.fail("cut", "the stream ended before the reply did")

    def _comes_in_parts(self, start: bytes) -> bool:
        """Tell by its type, or where that is wrong by its beginning, whether a reply is a stream of events."""
        if EVENT_STREAM_MEDIA_TYPE in self._headers.get("content-type", ""):
            return True
        return self.status == 200 and start.lstrip().startswith(_EVENT_STREAM_STARTS)

    def fail(self, problem: str, detail: str) -> None:
        self._problem = problem
        self._detail = detail

    def reply(self, secrets: tuple[str, ...], seconds: float) -> Reply:
        heard = self._heard if self.status else None
        if heard is not None:
            body = heard.body()
        else:
            body = b"".join(self._chunks).decode("utf-8", "replace")

        return Reply(
            status=self.status,
            body=strip_secrets(secrets, body),
            headers=self._headers,
            problem=self._problem,  # type: ignore[arg-type]
            detail=self._detail,
            seconds=seconds,
        )


def _merge_headers(defaults: Mapping[str, str | Omit], endpoint: Endpoint) -> dict[str, str]:
    """Merge default headers with the endpoint's; drop those from the environment."""
    default_headers = {}
    for name, value in defaults.items():
        if isinstance(value, str) and REPLACED_HEADER_REGEX.match(name):
            default_headers[name] = value

    # Uncompressed, so that the cap holds for what arrives; replies are small.
    headers = default_headers | dict(endpoint.headers) | {"Accept-Encoding": "identity"}
    if endpoint.authorization:
        headers["Authorization"] = endpoint.authorization

    return headers


def _describe_certificate_error(error: BaseException | None) -> str:
    while error is not None:
        if isinstance(error, ssl.SSLError | ssl.CertificateError):
            return str(error)
        error = error.__cause__ or error.__context__

    return ""


_FINISH_REASON_BY_PROVIDER_REASON = {
    "end_turn": "stop",
    "max_tokens": "length",
    "refusal": "content_filter",
    "safety": "content_filter",
}


@dataclass(frozen=True)
class ChatModel:
    """A chat model that the user made.

    An OpenAI model takes every parameter of a call, and its own retries are switched off. Of
    another provider's model the sampling parameters stay as the user set them; a schema reaches it
    as a tool, or in the prompt.
    """

    chat: BaseChatModel = field(repr=False)

    @cached_property
    def model(self) -> str:
        """The model's name."""
        for name in ("model_name", "model", "model_id", "deployment_name"):
            if isinstance(value := getattr(self.chat, name, None), str) and value:
                return value
        return self.chat._llm_type

    @cached_property
    def place(self) -> str:
        """Class and settings of the model: what a base URL is to an endpoint."""
        kind = type(self.chat)
        settings = json.dumps(
            self.chat._identifying_params,
            sort_keys=True,
            default=repr,
        )
        digest = hashlib.sha256(
            strip_secrets(self.secrets, settings).encode("utf-8", "replace")
        ).hexdigest()[:16]
        return f"{LANGCHAIN_PREFIX}{kind.__module__}.{kind.__qualname__}:{digest}"

    @property
    def shown(self) -> str:
        """See `Endpoint`; no key is in it."""
        return self.place

    @property
    def keyless(self) -> bool:
        """Whether calls carry no key; False, since only the model knows."""
        return False

    @cached_property
    def secrets(self) -> tuple[str, ...]:
        """Keys that the model holds."""
        held = (getattr(self.chat, name, None) for name in type(self.chat).model_fields)
        secrets = []
        for value in held:
            if isinstance(value, SecretStr):
                secrets.append(value.get_secret_value())

        return tuple(secrets)

    def request(self, call: Call) -> Request:
        """Prepare `call` for this model."""
        return make_model_request(self.place, self.model, call)


class ChatModelConnection:
    """Sends through `ainvoke` and stores the message in the form of an endpoint's body."""

    def __init__(self, place: ChatModel) -> None:
        self._place = place
        self._chat = place.chat
        self._http: AsyncClient | None = None

        if isinstance(place.chat, BaseChatOpenAI):
            if place.chat.http_async_client is None:
                # By default all models share connections, which die with the event loop that opened
                # them.
                self._http = DefaultAioHttpClient(
                    follow_redirects=False,
                    trust_env=False,
                )

            # Its own retries are off: the gateway retries.
            client = place.chat.root_async_client.with_options(
                max_retries=0,
                http_client=self._http,
            )
            changes = {"root_async_client": client, "async_client": client.chat.completions}
            self._chat = place.chat.model_copy(update=changes)

    async def send(self, request: Request, seconds: float) -> Reply:
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            async with limit_running_time(seconds):
                message = await self._bound(request.call).ainvoke(
                    [
                        dict(message)
                        for message in arrange_messages(request.call.messages, request.call.roles)
                    ]
                )
        except TimeoutError:
            return Reply(
                problem="timeout",
                detail=f"no reply within {seconds:g} s",
                seconds=loop.time() - began,
            )
        except Exception as error:  # what a provider's package raises, nobody knows
            return _make_reply_of_error(error, self._place.secrets, loop.time() - began)

        body = json.dumps(_make_completion_of_message(message), ensure_ascii=False, default=str)
        return Reply(
            status=200,
            body=strip_secrets(self._place.secrets, body),
            seconds=loop.time() - began,
        )

    async def close(self) -> None:
        """See `ModelConnection`. Connections that the user made stay open."""
        if self._http is not None:
            await self._http.aclose()

    def _bound(self, call: Call) -> Runnable[LanguageModelInput, BaseMessage]:
        if isinstance(self._chat, BaseChatOpenAI):
            fields = call.payload(self._place.model, {})
            chat_fields = {"model", "messages", "stream", "stream_options"}
            if call.stream:
                chat = self._chat.model_copy(update={"streaming": True})
            else:
                chat = self._chat

            extra_body = {}
            for name, value in fields.items():
                if name not in chat_fields:
                    extra_body[name] = value

            return chat.bind(extra_body=extra_body)

        if call.schema is not None and call.form == "tool":
            tool = {
                "title": call.schema_name,
                "description": "The answer.",
                **call.schema,
            }
            return self._chat.bind_tools([tool], tool_choice=call.schema_name)

        return self._chat


def _make_completion_of_message(message: BaseMessage) -> dict[str, object]:
    about = message.response_metadata
    reason = str(about.get("finish_reason") or about.get("stop_reason") or "stop").lower()
    usage = None
    if isinstance(message, AIMessage):
        usage = message.usage_metadata

    calls = message.tool_calls if isinstance(message, AIMessage) else []
    arguments = []
    for call in calls:
        arguments.append(
            {"function": {"name": call["name"], "arguments": json.dumps(call["args"])}}
        )

    content = None
    if message.content or not arguments:
        content = message.content

    return {
        "model": about.get("model_name") or about.get("model"),
        "system_fingerprint": about.get("system_fingerprint"),
        "choices": [
            {
                "finish_reason": _FINISH_REASON_BY_PROVIDER_REASON.get(reason, reason),
                "logprobs": about.get("logprobs"),
                "message": {
                    "content": content,
                    "refusal": message.additional_kwargs.get("refusal"),
                    "tool_calls": arguments,
                },
            }
        ],
        "usage": {
            "prompt_tokens": usage["input_tokens"],
            "completion_tokens": usage["output_tokens"],
        }
        if usage
        else None,
    }


def _make_reply_of_error(
    error: Exception,
    secrets: tuple[str, ...],
    seconds: float,
) -> Reply:
    """Return the reply behind a provider's exception: its status, or a fault of the connection."""
    response = getattr(error, "response", None)
    status = getattr(error, "status_code", None) or getattr(response, "status_code", None)
    words = redact_secrets(f"{type(error).__name__}: {error}", secrets)
    if isinstance(status, int):
        headers: Mapping[str, str] = getattr(response, "headers", None) or {}
        return Reply(status=status, body=words, headers=headers, seconds=seconds)
    if isinstance(error, NotImplementedError):
        # a model that can't call tools: it is asked otherwise
        return Reply(status=400, body=words, seconds=seconds)
    if isinstance(error, ValueError) and error.args and isinstance(error.args[0], dict):
        inside = json.dumps(
            {"error": error.args[0]},
            ensure_ascii=False,
            default=str,
        )
        # an error in place of an answer
        return Reply(status=200, body=redact_secrets(inside, secrets), seconds=seconds)
    if isinstance(error, ValueError | TypeError | LookupError):
        # a body that the package could not read
        return Reply(status=200, body=words, seconds=seconds)
    return Reply(problem="connection", detail=words, seconds=seconds)


MAX_TIMER_SECONDS = 1.0
GRACE_SECONDS_AFTER_SLEEP = 5.0
"""Seconds to take in what came while the process was stopped."""


@asynccontextmanager
async def limit_running_time(seconds: float) -> AsyncIterator[None]:
    """End what is in the block with `TimeoutError` after so many seconds in which the process ran.

    Time is counted in slices, of each of which at most one counts: a reply that came meanwhile is
    paid, and is read.
    """
    loop = asyncio.get_running_loop()
    timer: asyncio.Handle
    async with asyncio.timeout(None) as limit:

        def tick(left: float, due: float) -> None:
            nonlocal timer
            if left <= 0 and loop.time() - due > MAX_TIMER_SECONDS:  # stopped, or busy for as long
                left = GRACE_SECONDS_AFTER_SLEEP
            if left <= 0:
                limit.reschedule(loop.time())
                return

            length = min(left, MAX_TIMER_SECONDS)
            timer = loop.call_later(
                length,
                tick,
                left - length,
                loop.time() + length,
            )

        timer = loop.call_soon(tick, seconds, loop.time())
        try:
            yield
        finally:
            timer.cancel()
