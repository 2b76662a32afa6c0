"""Batches as providers have them: OpenAI's files and batches, Anthropic's message batches.

Answers come out of order, one of them twice, and one for a line that nobody asked. A list has two
batches a page.
"""

import json
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs

from protocol_server.replies import Sending, completion, whole

_CONTENT = re.compile(rb'name="file".*?\r\n\r\n(.*?)\r\n--', re.DOTALL)
PAGE = 2


@dataclass
class Batch:
    """A batch that was created.

    Attributes:
        answered: By line id, status and body.
        expired: Ids of the lines that got no answer.
    """

    id: str
    requests: dict[str, dict[str, Any]]
    created: float
    metadata: dict[str, str] = field(default_factory=dict)
    answered: dict[str, tuple[int, Any]] = field(default_factory=dict)
    expired: list[str] = field(default_factory=list)


@dataclass
class Batches:
    """A provider; its fields are what a test sets and reads.

    Attributes:
        ready: Whether batches have ended.
        expire: So many lines of the next batch get no answer.
        fail: Statuses of the next lines' answers; then all are 200.
        creation: What becomes of the next creation: it is carried out with a reply, without one
            (`no reply`), or with a connection that stays open (`no word`); `dropped`; or `refused`.
        invalid: Whether files are found to be faulty after they were taken.
        paid: How often each body was answered, over all batches.
    """

    ready: bool = True
    expire: int = 0
    fail: list[int] = field(default_factory=list)
    creation: list[str] = field(default_factory=list)
    invalid: bool = False
    files: dict[str, bytes] = field(default_factory=dict)
    made: dict[str, Batch] = field(default_factory=dict)
    paid: Counter[str] = field(default_factory=Counter)
    answer: Callable[[dict[str, Any]], dict[str, Any]] = completion

    def reply(self, method: str, address: str, body: bytes) -> Sending | None:
        """What to send; None where the address is none of batches."""
        path, _, query = address.partition("?")
        after = parse_qs(query)
        if path.endswith("/v1/files"):
            return self._upload(body)
        if found := re.search(r"/v1/files/([\w-]+)/content$", path):
            return (
                whole(200, self.files[found[1]].decode())
                if found[1] in self.files
                else whole(404, {"error": "gone"})
            )
        if path.endswith("/v1/batches"):
            return (
                self._create_of_file(json.loads(body))
                if method == "POST"
                else self._list(after.get("after"))
            )
        if found := re.search(r"/v1/batches/([\w-]+)$", path):
            return (
                whole(200, self._openai(self.made[found[1]])) if found[1] in self.made else _gone()
            )
        if path.endswith("/v1/messages/batches"):
            return (
                self._create_of_messages(json.loads(body))
                if method == "POST"
                else self._list(after.get("after_id"), True)
            )
        if found := re.search(r"/v1/messages/batches/([\w-]+)(/results)?$", path):
            if (batch := self.made.get(found[1])) is None:
                return _gone()
            return whole(
                200, "\n".join(self._results(batch)) if found[2] else self._anthropic(batch)
            )
        return None

    def _upload(self, body: bytes) -> Sending:
        content = _CONTENT.search(body)
        assert content, "a form with a file"
        name = f"file-{len(self.files)}"
        self.files[name] = content[1]
        return whole(200, {"id": name, "object": "file", "purpose": "batch"})

    def _create_of_file(self, asked: dict[str, Any]) -> Sending:
        assert asked["completion_window"] == "24h"
        assert asked["endpoint"] == "/v1/chat/completions"
        rows = [json.loads(line) for line in self.files[asked["input_file_id"]].splitlines()]
        assert all(row["method"] == "POST" and row["url"] == asked["endpoint"] for row in rows)
        return self._create(
            {row["custom_id"]: row["body"] for row in rows}, asked["metadata"], self._openai
        )

    def _create_of_messages(self, asked: dict[str, Any]) -> Sending:
        requests = {row["custom_id"]: row["params"] for row in asked["requests"]}
        assert len(requests) == len(asked["requests"])
        return self._create(requests, {}, self._anthropic)

    def _create(
        self,
        requests: dict[str, Any],
        metadata: dict[str, str],
        show: Callable[[Batch], dict[str, Any]],
    ) -> Sending:
        assert all(len(name) <= 64 for name in requests)
        how = self.creation.pop(0) if self.creation else "carried out"
        if how == "refused":
            return whole(
                400,
                {
                    "error": {
                        "message": "no batches for this model",
                        "type": "invalid_request_error",
                    }
                },
            )
        if how != "dropped":
            batch = Batch(f"batch_{len(self.made)}", requests, time.time(), metadata)
            self.made[batch.id] = batch
            self._work(batch)
            if how == "carried out":
                return whole(200, show(batch))
            if how == "no word":
                return Sending(0, [], end="hang", whole=False)
        return Sending(0, [(0.0, b"")], end="abort", whole=False)

    def _work(self, batch: Batch) -> None:
        """Answer all lines but those that expire; a faulty file has none."""
        expire = self.expire
        self.expire = 0
        names = [] if self.invalid else list(batch.requests)
        batch.expired = names[:expire]
        for name in names[expire:]:
            status = self.fail.pop(0) if self.fail else 200
            if status == 200:
                self.paid[json.dumps(batch.requests[name])] += 1
                batch.answered[name] = 200, self.answer(batch.requests[name])
            else:
                kind = "server_error" if status >= 500 else "invalid_request_error"
                batch.answered[name] = (
                    status,
                    {"error": {"message": f"status {status}", "type": kind}},
                )

    def _list(self, after: list[str] | None, anthropic: bool = False) -> Sending:
        newest = list(reversed(self.made))
        start = newest.index(after[0]) + 1 if after else 0
        show = self._anthropic if anthropic else self._openai
        page = [show(self.made[name]) for name in newest[start : start + PAGE]]
        return whole(200, {"data": page, "has_more": start + PAGE < len(newest)})

    def _openai(self, batch: Batch) -> dict[str, Any]:
        status = (
            ("failed" if self.invalid else "expired" if batch.expired else "completed")
            if self.ready
            else "in_progress"
        )
        shown: dict[str, Any] = {
            "id": batch.id,
            "object": "batch",
            "status": status,
            "metadata": batch.metadata,
        }
        if status == "failed":
            shown["errors"] = {
                "data": [{"line": 1, "message": "no such model", "code": "model_not_found"}]
            }
        elif self.ready:
            for kind, good in (("output", True), ("error", False)):
                lines = "\n".join(_lines(batch, good))
                self.files[f"{kind}-{batch.id}"] = lines.encode()
                shown[f"{kind}_file_id"] = f"{kind}-{batch.id}" if lines else None
        return shown

    def _anthropic(self, batch: Batch) -> dict[str, Any]:
        counts = Counter(
            "succeeded" if status == 200 else "errored" for status, _ in batch.answered.values()
        )
        counts["expired"] = len(batch.expired)
        return {
            "id": batch.id,
            "type": "message_batch",
            "processing_status": "ended" if self.ready else "in_progress",
            "request_counts": dict(counts) if self.ready else {"processing": len(batch.requests)},
            "created_at": datetime.fromtimestamp(batch.created, UTC).isoformat(),
            "results_url": "http://elsewhere.example/results",
        }

    def _results(self, batch: Batch) -> Iterator[str]:
        for name, (status, body) in _shuffled(batch):
            kind = {400: "invalid_request_error"}.get(status, "api_error")
            failed = {
                "type": "errored",
                "error": {"type": "error", "error": {"type": kind, "message": f"status {status}"}},
            }
            yield json.dumps(
                {"custom_id": name, "result": failed if status != 200 else _succeeded(body)}
            )
        yield from (
            json.dumps({"custom_id": name, "result": {"type": "expired"}}) for name in batch.expired
        )


def _gone() -> Sending:
    return whole(404, {"error": {"message": "no such batch", "type": "not_found_error"}})


def _shuffled(batch: Batch) -> list[tuple[str, tuple[int, Any]]]:
    """The answers out of order, the first twice, and one that nobody asked for."""
    answers = list(reversed(batch.answered.items()))
    return [*answers, *answers[:1], ("nobody-asked", (200, {"choices": []}))]


def _lines(batch: Batch, good: bool) -> Iterator[str]:
    for name, (status, body) in _shuffled(batch):
        if (status == 200) is good:
            response = {"status_code": status, "request_id": "r", "body": body}
            yield json.dumps({"id": "line", "custom_id": name, "response": response, "error": None})
    for name in [] if good else batch.expired:
        yield json.dumps(
            {"id": "line", "custom_id": name, "response": None, "error": {"code": "batch_expired"}}
        )


def _succeeded(body: dict[str, Any]) -> dict[str, Any]:
    """An honest message: the chat completion's, or the tool's."""
    return {"type": "succeeded", "message": body}


def message(asked: dict[str, Any]) -> dict[str, Any]:
    """An honest answer to the parameters of a message, for `Batches.answer`."""
    system = [{"role": "system", "content": asked["system"]}] if "system" in asked else []
    chat = {"messages": [*system, *asked["messages"]], "model": asked["model"]}
    content: list[dict[str, Any]]
    if "tools" in asked:
        tool = asked["tools"][0]
        function = {"function": {"name": tool["name"], "parameters": tool["input_schema"]}}
        said = completion(chat | {"tools": [function], "tool_choice": {"type": "function"}})
        arguments = said["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"]
        content = [
            {"type": "tool_use", "id": "t", "name": tool["name"], "input": json.loads(arguments)}
        ]
    else:
        said = completion(chat)
        content = [{"type": "text", "text": said["choices"][0]["message"]["content"]}]
    return {
        "id": "msg",
        "type": "message",
        "role": "assistant",
        "model": asked["model"],
        "content": content,
        "stop_reason": "end_turn",
        "usage": {
            "input_tokens": said["usage"]["prompt_tokens"],
            "output_tokens": said["usage"]["completion_tokens"],
        },
    }
