"""Requests beside the chat operation, which batches need: OpenAI's client sends, retries and pages; errors are ours.

OpenAI's batches, and those of servers that follow its protocol: a file of lines is uploaded, a
batch made of it; answers come as two files, one for what failed. Both are read whatever the batch
came to, for one that expired or was canceled has answers, too.

Anthropic's message batches: calls are chat requests and answers chat completions everywhere else in
pollex, and both are translated here. A batch has no metadata, so one whose creation is in doubt is
told by its time, its size, and the ids in its results.
"""

import json
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from http import HTTPStatus
from itertools import takewhile
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx2
from openai import APIStatusError, AsyncOpenAI, DefaultAioHttpClient, Omit, OpenAIError

from pollex.errors import ModelRefused, ModelUnavailable, PollexError
from pollex.gateway.batches.desk import (
    BatchCall,
    BatchCreationUnknown,
    BatchIdentityUndecided,
    BatchNotFound,
    BatchProgress,
    BatchReply,
    BatchSubmission,
    dump_json_compactly,
    make_request_line,
    read_answer_line,
)
from pollex.gateway.budget import Limits
from pollex.gateway.calls import Reply
from pollex.gateway.endpoint import Endpoint
from pollex.gateway.redaction import redact_secrets, strip_secrets
from pollex.gateway.responses import find_fault_in_reply
from pollex.gateway.transport import CONNECT_TIMEOUT_SECONDS, NETWORK_ERRORS, REPLACED_HEADER_REGEX

_RETRIED_STATUSES = {HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.REQUEST_TIMEOUT}


class BatchHttpClient(AsyncOpenAI):
    """Connections to one endpoint; proxies and headers of the environment aren't used, redirects not followed.

    Args:
        headers: Sent with every request, the credentials among them.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        headers: Mapping[str, str],
        limits: Limits,
    ) -> None:
        self._endpoint = endpoint
        self._ours = {**endpoint.headers, **headers}
        parts = urlsplit(endpoint.place)
        super().__init__(
            api_key="none",
            base_url=parts._replace(query="").geturl(),
            default_query=dict(parse_qsl(parts.query)),
            timeout=httpx2.Timeout(limits.deadline, connect=CONNECT_TIMEOUT_SECONDS),
            max_retries=limits.max_attempts - 1,
            http_client=DefaultAioHttpClient(
                follow_redirects=False, trust_env=False, proxy=endpoint.proxy
            ),
        )

    @property
    def default_headers(self) -> dict[str, str | Omit]:
        """See `AsyncOpenAI`; not the key, organization and headers that `OPENAI_…` variables name."""
        headers = {}
        for name, value in super().default_headers.items():
            if REPLACED_HEADER_REGEX.match(name):
                headers[name] = value
        return {**headers, "Authorization": Omit(), **self._ours}

    def _validate_headers(self, headers: object, custom_headers: object) -> None:
        """Let requests without a key pass."""

    async def once(self, path: str, body: object) -> str:
        """Return the id of what a request has made that must not be sent twice.

        Raises:
            Doubtful: It may have been carried out.
            PollexError: It was not.
        """
        with self.told(once=True):
            batch = await self.post(
                path,
                cast_to=object,
                body=body,
                options={"max_retries": 0},
            )

        if isinstance(batch, dict) and isinstance(batch.get("id"), str) and batch["id"]:
            return str(batch["id"])
        raise BatchCreationUnknown("the reply names no batch")

    async def json(self, path: str, **params: str) -> Any:
        """Return a JSON document.

        Raises:
            PollexError: It can't be had.
        """
        with self.told():
            return await self.get(
                path,
                cast_to=object,
                options={"params": params},
            )

    async def lines(self, path: str) -> list[bytes]:
        """Return the lines of a file; none where it is gone.

        Raises:
            ModelUnavailable: It can't be read to its end.
        """
        try:
            with self.told():
                return (await self.get(path, cast_to=httpx2.Response)).content.split(b"\n")
        except BatchNotFound:
            return []

    @contextmanager
    def told(self, *, once: bool = False) -> Iterator[None]:
        """Raise the client's errors as ours.

        Args:
            once: Whether the request must not be sent twice: it is doubtful what became of it where
                that isn't said.
        """
        try:
            yield
        except APIStatusError as error:
            status = error.response.status_code
            if once and (status >= HTTPStatus.INTERNAL_SERVER_ERROR or status in _RETRIED_STATUSES):
                raise BatchCreationUnknown(f"HTTP {status}") from error
            raise self._error(error.response) from error
        except (OpenAIError, *NETWORK_ERRORS) as error:
            cause = error.__cause__ or error
            words = redact_secrets(f"{type(cause).__name__}: {cause}", self._endpoint.secrets)
            raise (BatchCreationUnknown(words) if once else self._unavailable(words)) from error

    def _error(self, response: httpx2.Response) -> PollexError:
        body = strip_secrets(self._endpoint.secrets, response.text)
        fault = find_fault_in_reply(
            Reply(
                status=response.status_code,
                body=body,
                headers=response.headers,
            )
        )
        if fault is None or fault.action in ("retry", "wait"):
            return self._unavailable(fault.detail if fault else f"HTTP {response.status_code}")

        gone = response.status_code in (HTTPStatus.NOT_FOUND, HTTPStatus.GONE)
        kind = BatchNotFound if gone else ModelRefused
        return kind(fault.detail, where=self._endpoint.shown, hint=fault.hint)

    def _unavailable(self, words: str) -> ModelUnavailable:
        return ModelUnavailable(
            words,
            where=self._endpoint.shown,
            hint="resume later",
        )


ENDED_BATCH_STATUSES = frozenset({"completed", "failed", "expired", "cancelled"})
DIGEST_METADATA_KEY = "pollex_digest"
"""Name of the metadata by which a batch is found that was created though no reply came."""


class OpenAIBatches:
    """See `BatchProvider`."""

    name = "openai"
    most_lines = 50_000
    most_bytes = 190_000_000

    def __init__(self, endpoint: Endpoint, limits: Limits) -> None:
        if endpoint.authorization:
            headers = {"Authorization": endpoint.authorization}
        else:
            headers = {}

        self._client = BatchHttpClient(endpoint, headers, limits)
        self._shown = endpoint.shown

    def where(self, id_: str) -> str:
        return id_

    async def create(self, submission: BatchSubmission, lines: Sequence[BatchCall]) -> str:
        content = b"".join(make_request_line(submission, line) for line in lines)
        file = (f"pollex-{submission.tag}.jsonl", content, "application/jsonl")
        with self._client.told():
            uploaded = await self._client.files.create(file=file, purpose="batch")

        if not getattr(uploaded, "id", ""):
            raise ModelUnavailable(
                "the upload of the batch's file gave no id",
                where=self._shown,
            )

        batch = {
            "input_file_id": uploaded.id,
            "endpoint": "/v1/chat/completions",
            "completion_window": "24h",
            "metadata": {DIGEST_METADATA_KEY: submission.digest, "part": str(submission.size)},
        }
        return await self._client.once("/batches", batch)

    async def find(self, submission: BatchSubmission) -> str | None:
        """See `BatchProvider`; all pages are walked."""
        with self._client.told():
            async for batch in self._client.batches.list(limit=100):
                if (batch.metadata or {}).get(DIGEST_METADATA_KEY) == submission.digest:
                    return batch.id

        return None

    async def standing(self, id_: str) -> BatchProgress:
        with self._client.told():
            batch = await self._client.batches.retrieve(id_)

        faults = (batch.errors.data if batch.errors else None) or []
        fault_texts = []
        for fault in faults[:3]:
            fault_texts.append(
                f"line {fault.line}: {fault.message}" if fault.line else str(fault.message)
            )
        words = "; ".join(fault_texts)
        refused = ""
        if batch.status == "failed":
            refused = words or "no reason given"

        sources = tuple(source for source in (batch.output_file_id, batch.error_file_id) if source)
        return BatchProgress(batch.status in ENDED_BATCH_STATUSES, sources, refused)

    async def answers(self, id_: str, standing: BatchProgress) -> AsyncIterator[BatchReply]:  # noqa: ARG002 - the protocol's
        for source in standing.sources:
            for line in await self._client.lines(f"/files/{source}/content"):
                if (answer := read_answer_line(line)) is not None:
                    yield answer

    async def close(self) -> None:
        await self._client.close()


ANTHROPIC_VERSION = "2023-06-01"
DEFAULT_MAX_TOKENS = 4096
"""Written at most where a call doesn't say: the protocol wants a number."""

MAX_CLOCK_DIFFERENCE_SECONDS = 600.0
"""Seconds by which our clock may be ahead of the provider's."""

HTTP_STATUS_BY_ERROR_TYPE = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "timeout_error": 504,
    "overloaded_error": 529,
}
"""HTTP statuses of the errors that lines end with; any other is the server's fault."""

FINISH_REASON_BY_STOP_REASON = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
}


class AnthropicBatches:
    """See `BatchProvider`."""

    name = "anthropic"
    most_lines = 100_000
    most_bytes = 240_000_000

    def __init__(self, endpoint: Endpoint, limits: Limits) -> None:
        key = {"x-api-key": endpoint.api_key} if endpoint.api_key else {}
        self._client = BatchHttpClient(
            endpoint,
            {"anthropic-version": ANTHROPIC_VERSION, **key},
            limits,
        )

    def where(self, id_: str) -> str:
        return id_

    async def create(self, submission: BatchSubmission, lines: Sequence[BatchCall]) -> str:
        requests = []
        for line in lines:
            requests.append(
                {
                    "custom_id": submission.line_id(line.key),
                    "params": make_anthropic_message(line.body),
                }
            )

        return await self._client.once("/messages/batches", {"requests": requests})

    async def find(self, submission: BatchSubmission) -> str | None:
        """See `BatchProvider`; batches are listed from the newest on."""
        after: dict[str, str] = {}
        undecided = False
        while True:
            page = await self._client.json(
                "/messages/batches",
                limit="100",
                **after,
            )
            for row in page["data"]:
                if (
                    datetime.fromisoformat(row["created_at"]).timestamp()
                    < submission.intended - MAX_CLOCK_DIFFERENCE_SECONDS
                ):
                    page["has_more"] = False
                elif sum(row["request_counts"].values()) == submission.size:
                    if row["processing_status"] != "ended":
                        undecided = True
                    elif await self._is(submission, row["id"]):
                        return str(row["id"])

            if not page.get("has_more") or not page["data"]:
                break
            after = {"after_id": page["data"][-1]["id"]}

        if undecided:
            raise BatchIdentityUndecided
        return None

    async def standing(self, id_: str) -> BatchProgress:
        batch = await self._client.json(f"/messages/batches/{id_}")
        return BatchProgress(batch["processing_status"] == "ended")

    async def answers(self, id_: str, standing: BatchProgress) -> AsyncIterator[BatchReply]:  # noqa: ARG002 - the protocol's
        for line in await self._client.lines(f"/messages/batches/{id_}/results"):
            if (answer := read_anthropic_result(line)) is not None:
                yield answer

    async def close(self) -> None:
        await self._client.close()

    async def _is(self, submission: BatchSubmission, id_: str) -> bool:
        for line in await self._client.lines(f"/messages/batches/{id_}/results"):
            try:
                return str(json.loads(line)["custom_id"]).startswith(f"{submission.tag}-")
            except (ValueError, TypeError, LookupError, RecursionError):
                continue

        return False


def make_anthropic_message(body: bytes) -> dict[str, object]:
    """Return a chat request as the parameters of a message.

    The system messages that open it are the system prompt; later ones, which close the evidence,
    are the user's, so that they stay last.
    """
    request = json.loads(body)
    opening = [
        message["content"]
        for message in takewhile(lambda message: message["role"] == "system", request["messages"])
    ]
    turns = []
    for m in request["messages"][len(opening) :]:
        turns.append(
            {
                "role": "assistant" if m["role"] == "assistant" else "user",
                "content": m["content"],
            }
        )

    limit = request.get("max_completion_tokens") or request.get("max_tokens") or DEFAULT_MAX_TOKENS
    sampling = {}
    for name in ("temperature", "top_p"):
        if name in request:
            sampling[name] = request[name]

    if opening:
        system = {"system": "\n\n".join(opening)}
    else:
        system = {}

    return {
        "model": request["model"],
        "max_tokens": limit,
        "messages": turns,
        **system,
        **sampling,
        **_make_anthropic_tool(request),
    }


def _make_anthropic_tool(request: Mapping[str, Any]) -> dict[str, object]:
    if "tools" in request:
        function = request["tools"][0]["function"]
        name = function["name"]
        schema = function["parameters"]
    elif "json_schema" in request.get("response_format", {}):
        named = request["response_format"]["json_schema"]
        name = named["name"]
        schema = named["schema"]
    else:
        return {}

    tools = [{"name": name, "description": "Takes the answer.", "input_schema": schema}]
    return {"tools": tools, "tool_choice": {"type": "tool", "name": name}}


def read_anthropic_result(text: bytes) -> BatchReply | None:
    """Return the answer in a line of results; None where it was canceled, expired, or can't be read."""
    try:
        row = json.loads(text)
        result = row["result"]
        if result["type"] == "succeeded":
            return BatchReply(
                row["custom_id"],
                200,
                dump_json_compactly(make_completion_of_message(result["message"])),
            )

        if result["type"] == "errored":
            error = result["error"].get("error", result["error"])
            return BatchReply(
                row["custom_id"],
                HTTP_STATUS_BY_ERROR_TYPE.get(error.get("type"), 500),
                dump_json_compactly({"error": error}),
            )
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return None

    return None


def make_completion_of_message(message: Mapping[str, Any]) -> dict[str, object]:
    """Return a message as a chat completion: its text, or what it gave to the tool."""
    used = []
    for block in message["content"]:
        if block["type"] == "tool_use":
            used.append(dump_json_compactly(block["input"]))

    texts = []
    for block in message["content"]:
        if block["type"] == "text":
            texts.append(block["text"])
    text = "".join(texts)
    usage = message.get("usage") or {}
    cached = usage.get("cache_read_input_tokens") or 0
    prompt = (
        (usage.get("input_tokens") or 0) + cached + (usage.get("cache_creation_input_tokens") or 0)
    )
    finish = FINISH_REASON_BY_STOP_REASON.get(message.get("stop_reason") or "", "stop")
    choice = {
        "index": 0,
        "finish_reason": finish,
        "message": {"role": "assistant", "content": used[-1] if used else text},
    }
    counted = {"prompt_tokens": prompt, "completion_tokens": usage.get("output_tokens")}

    return {
        "id": message.get("id"),
        "object": "chat.completion",
        "model": message.get("model"),
        "choices": [choice],
        "usage": {**counted, "prompt_tokens_details": {"cached_tokens": cached}},
    }
