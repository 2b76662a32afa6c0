"""Anthropic's message batches.

Calls are chat requests and answers chat completions everywhere else in pollex: both are translated here. A batch has
no metadata, so one whose creation is in doubt is told by its time, its size, and the ids in its results.
"""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from pollex.gateway.batches.client import BatchClient
from pollex.gateway.batches.desk import BatchLine, BatchReply, Standing, Submission, Undecided, compact
from pollex.gateway.budget import Limits
from pollex.gateway.endpoint import Endpoint

VERSION = "2023-06-01"
MOST_TOKENS = 4096
"""Written at most where a call doesn't say: the protocol wants a number."""

CLOCKS_DIFFER = 600.0
"""Seconds by which our clock may be ahead of the provider's."""

STATUSES = {
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

FINISHES = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
}


class AnthropicBatches:
    """See `Provider`."""

    name = "anthropic"
    most_lines = 100_000
    most_bytes = 240_000_000

    def __init__(self, endpoint: Endpoint, limits: Limits) -> None:
        key = {"x-api-key": endpoint.api_key} if endpoint.api_key else {}
        self._client = BatchClient(endpoint, {"anthropic-version": VERSION, **key}, limits)

    def where(self, id_: str) -> str:
        return id_

    async def create(self, submission: Submission, lines: Sequence[BatchLine]) -> str:
        requests = [{"custom_id": submission.line_id(line.key), "params": message_of(line.body)} for line in lines]
        return await self._client.once("/messages/batches", {"requests": requests})

    async def find(self, submission: Submission) -> str | None:
        """See `Provider`; batches are listed from the newest on."""
        after: dict[str, str] = {}
        undecided = False
        while True:
            page = await self._client.json("/messages/batches", limit="100", **after)
            for row in page["data"]:
                if datetime.fromisoformat(row["created_at"]).timestamp() < submission.intended - CLOCKS_DIFFER:
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
            raise Undecided
        return None

    async def standing(self, id_: str) -> Standing:
        batch = await self._client.json(f"/messages/batches/{id_}")
        return Standing(batch["processing_status"] == "ended")

    async def answers(self, id_: str, standing: Standing) -> AsyncIterator[BatchReply]:  # noqa: ARG002 - the protocol's
        for line in await self._client.lines(f"/messages/batches/{id_}/results"):
            if (answer := result_in(line)) is not None:
                yield answer

    async def close(self) -> None:
        await self._client.close()

    async def _is(self, submission: Submission, id_: str) -> bool:
        for line in await self._client.lines(f"/messages/batches/{id_}/results"):
            try:
                return str(json.loads(line)["custom_id"]).startswith(f"{submission.tag}-")
            except (ValueError, TypeError, LookupError):
                continue
        return False


def message_of(body: bytes) -> dict[str, Any]:
    """Return a chat request as the parameters of a message.

    The system messages that open it are the system prompt; later ones, which close the evidence, are the user's, so
    that they stay last.
    """
    asked = json.loads(body)
    opening = [m["content"] for m in _leading(asked["messages"])]
    turns = [
        {"role": "assistant" if m["role"] == "assistant" else "user", "content": m["content"]}
        for m in asked["messages"][len(opening) :]
    ]
    limit = asked.get("max_completion_tokens") or asked.get("max_tokens") or MOST_TOKENS
    sampling = {name: asked[name] for name in ("temperature", "top_p") if name in asked}
    system = {"system": "\n\n".join(opening)} if opening else {}
    return {"model": asked["model"], "max_tokens": limit, "messages": turns, **system, **sampling, **_tool(asked)}


def _leading(messages: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    count = next((i for i, message in enumerate(messages) if message["role"] != "system"), len(messages))
    return list(messages[:count])


def _tool(asked: Mapping[str, Any]) -> dict[str, Any]:
    if "tools" in asked:
        function = asked["tools"][0]["function"]
        name, schema = function["name"], function["parameters"]
    elif "json_schema" in asked.get("response_format", {}):
        named = asked["response_format"]["json_schema"]
        name, schema = named["name"], named["schema"]
    else:
        return {}
    tools = [{"name": name, "description": "Takes the answer.", "input_schema": schema}]
    return {"tools": tools, "tool_choice": {"type": "tool", "name": name}}


def result_in(text: bytes) -> BatchReply | None:
    """Return the answer in a line of results; None where it was canceled, expired, or can't be read."""
    try:
        row = json.loads(text)
        result = row["result"]
        if result["type"] == "succeeded":
            return BatchReply(row["custom_id"], 200, compact(completion_of(result["message"])))
        if result["type"] == "errored":
            error = result["error"].get("error", result["error"])
            return BatchReply(row["custom_id"], STATUSES.get(error.get("type"), 500), compact({"error": error}))
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return None
    return None


def completion_of(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message as a chat completion: its text, or what it gave to the tool."""
    used = [compact(block["input"]) for block in message["content"] if block["type"] == "tool_use"]
    text = "".join(block["text"] for block in message["content"] if block["type"] == "text")
    usage = message.get("usage") or {}
    cached = usage.get("cache_read_input_tokens") or 0
    prompt = (usage.get("input_tokens") or 0) + cached + (usage.get("cache_creation_input_tokens") or 0)
    finish = FINISHES.get(message.get("stop_reason") or "", "stop")
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
