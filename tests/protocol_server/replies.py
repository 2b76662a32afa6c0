"""What the server sends: an honest reply, or one that a rule spoils."""

import gzip
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any, Literal

from protocol_server.answers import Answer

JsonObject = dict[str, Any]
Rule = Mapping[str, Any]

_REASONS = {
    200: "OK",
    307: "Temporary Redirect",
    400: "Bad Request",
    401: "Unauthorized",
    429: "Too Many Requests",
}
FIELDS = {
    "response_format": ("response_format",),
    "tools": ("tools", "tool_choice"),
    "logprobs": ("logprobs", "top_logprobs"),
    "n": ("n",),
    "seed": ("seed",),
    "temperature": ("temperature",),
    "limit": ("max_tokens", "max_completion_tokens"),
    "max_completion_tokens": ("max_completion_tokens",),
    "max_tokens": ("max_tokens",),
}
_TOO_LONG = {
    "openai": {
        "error": {
            "message": "This model's maximum context length is {limit} tokens.",
            "type": "invalid_request_error",
            "code": "context_length_exceeded",
        }
    },
    "vllm": {
        "object": "error",
        "message": "This model's maximum context length is {limit} tokens. However, you requested {asked} tokens.",
        "type": "BadRequestError",
        "code": 400,
    },
    "llamacpp": {
        "error": {
            "code": 400,
            "message": "the request exceeds the available context size, try increasing it",
            "type": "exceed_context_size_error",
        }
    },
    "ollama": {
        "error": {
            "message": "input length exceeds the context length",
            "type": "api_error",
            "code": None,
        }
    },
}


@dataclass(slots=True)
class Sending:
    """How a reply goes out.

    Attributes:
        status: For the counts.
        parts: Seconds to wait and bytes to send, again and again.
        end: Whether the connection then stays, closes, breaks, or says no more.
        whole: Whether all of the reply is sent.
    """

    status: int
    parts: Iterable[tuple[float, bytes]] = field(default_factory=list)
    end: Literal["keep", "close", "abort", "hang"] = "keep"
    whole: bool = True


def http(
    status: int,
    body: bytes,
    headers: Mapping[str, str] | None = None,
    kind: str = "application/json",
) -> bytes:
    """An HTTP reply."""
    lines = [f"HTTP/1.1 {status} {_REASONS.get(status, 'Status')}", f"Content-Length: {len(body)}"]
    lines += [f"Content-Type: {kind}"] if kind else []
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + body


def whole(
    status: int, body: Any, headers: Mapping[str, str] | None = None, delay: float = 0.0
) -> Sending:
    """A JSON reply."""
    data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
    return Sending(status, [(delay, http(status, data, headers))])


def completion(request: JsonObject, *, attentive: bool = False) -> JsonObject:
    """An honest chat completion."""
    schema, tool = _wanted(request)
    choices = []
    for number in range(request.get("n", 1)):
        salt = str(number) if number else ""
        tokens = bool(request.get("logprobs"))
        answer = Answer(request["messages"], schema, salt, tokens=tokens, attentive=attentive)
        message: JsonObject = {"role": "assistant", "content": answer.text, "refusal": None}
        if tool:
            call = {
                "id": "call_1",
                "type": "function",
                "function": {"name": tool, "arguments": answer.text},
            }
            message |= {"content": None, "tool_calls": [call]}
        choice = {"index": number, "message": message, "finish_reason": "stop", "logprobs": None}
        if request.get("logprobs"):
            choice["logprobs"] = answer.logprobs(request.get("top_logprobs", 0))
        choices.append(choice)
    written = sum(len(choice["message"]["content"] or "") // 3 for choice in choices)
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 0,
        "model": request.get("model", ""),
        "system_fingerprint": "fp_honest",
        "choices": choices,
        "usage": usage(prompt_tokens(request), written),
    }


def prompt_tokens(request: JsonObject) -> int:
    """Tokens of the messages: three characters each."""
    return sum(len(str(message.get("content"))) // 3 + 4 for message in request["messages"])


def usage(prompt: int, written: int) -> JsonObject:
    return {"prompt_tokens": prompt, "completion_tokens": written, "total_tokens": prompt + written}


def _wanted(request: JsonObject) -> tuple[JsonObject | None, str]:
    """Schema of the answer, and the tool's name where it is asked for as a tool call."""
    if request.get("tools") and isinstance(request.get("tool_choice"), dict):
        function = request["tools"][0]["function"]
        return function["parameters"], function["name"]
    asked = request.get("response_format") or {}
    if asked.get("type") == "json_schema":
        return asked["json_schema"]["schema"], ""
    if asked.get("type") == "json_object":
        return {"type": "object", "properties": {"answer": {"type": "string"}}}, ""
    return None, ""


def spoiled(rule: Rule, request: JsonObject, headers: str, latency: float) -> Sending | None:
    """The reply that `rule` makes of a request; None leaves it honest."""
    return _SPOILERS[rule["do"]](rule, request, headers, latency)


def honest(request: JsonObject, latency: float) -> Sending:
    """An honest reply, in pieces where that is asked for."""
    body = completion(request)
    return streamed(body, latency) if request.get("stream") else whole(200, body, delay=latency)


def streamed(body: JsonObject, latency: float, *, counted: bool = True) -> Sending:
    """The reply word by word, `latency` before each; a tool's arguments likewise."""
    choice = body["choices"][0]
    about = {"id": body["id"], "model": body["model"]}
    message = choice["message"]
    words = re.findall(r"\S+\s*", message["content"] or "")
    deltas: list[JsonObject] = [{"content": word} for word in words]
    for index, call in enumerate(message.get("tool_calls") or ()):
        function = call["function"]
        deltas.append(
            {
                "tool_calls": [
                    {"index": index, "function": {"name": function["name"], "arguments": ""}}
                ]
            }
        )
        parts = re.findall(r"\S+\s*", function["arguments"])
        deltas += [
            {"tool_calls": [{"index": index, "function": {"arguments": part}}]} for part in parts
        ]
    pieces: list[JsonObject] = [
        about | {"choices": [{"index": 0, "delta": delta}]} for delta in deltas
    ]
    if choice.get("logprobs") and pieces:
        pieces[0]["choices"][0]["logprobs"] = choice["logprobs"]
    pieces.append(
        about | {"choices": [{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}]}
    )
    if counted:
        pieces.append(about | {"choices": [], "usage": body["usage"]})
    events = [f"data: {json.dumps(piece)}\n\n".encode() for piece in pieces] + [b"data: [DONE]\n\n"]
    head = (
        http(200, b"".join(events), kind="text/event-stream").partition(b"\r\n\r\n")[0]
        + b"\r\n\r\n"
    )
    return Sending(200, [(0, head), *((latency, event) for event in events)])


def _honest(rule: Rule, request: JsonObject, headers: str, latency: float) -> Sending:
    return honest(request, rule.get("latency", latency))


def _attentive(rule: Rule, request: JsonObject, headers: str, latency: float) -> Sending:
    return whole(200, completion(request, attentive=True), delay=rule.get("latency", latency))


def _planted(rule: Rule, request: JsonObject, headers: str, latency: float) -> Sending:
    from planted.model import Reader  # no other test needs it

    text = Reader(**rule.get("reader", {})).reply(request["messages"])
    asked = {name: value for name, value in request.items() if name not in FIELDS["logprobs"]}
    body = completion(asked)
    if text is not None:
        body["choices"][0]["message"]["content"] = text
    return whole(200, body, delay=rule.get("latency", latency))


def _status(rule: Rule, request: JsonObject, headers: str, latency: float) -> Sending:
    body = rule.get(
        "body",
        {"error": {"message": f"status {rule['code']}", "type": "server_error", "code": None}},
    )
    return whole(rule["code"], body, rule.get("headers"), latency)


def _hang(rule: Rule, request: JsonObject, headers: str, latency: float) -> Sending:
    reply = http(200, json.dumps(completion(request)).encode())
    head = reply.index(b"\r\n\r\n") + 4
    size = {"none": 0, "headers": head, "half": (head + len(reply)) // 2}[rule.get("part", "none")]
    return Sending(200, [(latency, reply[:size])] if size else [], end="hang", whole=False)


def _trickle(rule: Rule, request: JsonObject, headers: str, latency: float) -> Sending:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n\r\n"
    drops = repeat((rule.get("seconds", 0.5), b" "))
    return Sending(
        200,
        (part for parts in ([(latency, head)], drops) for part in parts),
        end="hang",
        whole=False,
    )


def _cut(rule: Rule, request: JsonObject, headers: str, latency: float) -> Sending:
    reply = http(200, json.dumps(completion(request)).encode())
    return Sending(200, [(latency, reply[: len(reply) * 2 // 3])], end="close", whole=False)


def _reset(rule: Rule, request: JsonObject, headers: str, latency: float) -> Sending:
    return Sending(0, [(latency, b"")], end="abort", whole=False)


def _body(rule: Rule, request: JsonObject, headers: str, latency: float) -> Sending:
    return _packed(rule["text"].encode(), rule, latency)


def _huge(rule: Rule, request: JsonObject, headers: str, latency: float) -> Sending:
    return _packed(b" " * (rule["megabytes"] << 20), rule, latency)


def _packed(body: bytes, rule: Rule, latency: float) -> Sending:
    packed = rule.get("encoding") == "gzip"
    reply = http(
        200,
        gzip.compress(body) if packed else body,
        {"Content-Encoding": "gzip"} if packed else None,
        rule.get("type", "application/json"),
    )
    return Sending(200, [(latency, reply)])


def _message(rule: Rule, request: JsonObject, headers: str, latency: float) -> Sending:
    body = completion(request)
    choice = body["choices"][0]
    answer = choice["message"]["content"] or ""
    if "finish_reason" in rule:
        choice["finish_reason"] = rule["finish_reason"]
    for name in ("content", "refusal", "tool_calls"):
        if name in rule:
            value = rule[name]
            choice["message"][name] = (
                value.replace("{answer}", answer) if isinstance(value, str) else value
            )
    if "keep" in rule:
        choice["message"]["content"] = answer[: int(len(answer) * rule["keep"])]
    if "seconds" in rule and request.get("stream"):
        return streamed(body, rule["seconds"])
    return whole(200, body, delay=latency)


def _streams(rule: Rule, request: JsonObject, headers: str, latency: float) -> Sending:
    asks_for_usage = "stream_options" in request
    if not request.get("stream"):
        return whole(400, {"error": {"message": "This model serves streams alone: set stream."}})
    if asks_for_usage and not rule.get("options", True):
        return whole(400, {"error": {"message": "stream_options is an unknown field"}})
    return streamed(completion(request), latency, counted=asks_for_usage)


def _usage(rule: Rule, request: JsonObject, headers: str, latency: float) -> Sending:
    body = completion(request)
    body["usage"] = rule["usage"]
    if rule["usage"] is None:
        del body["usage"]
    return whole(200, body, delay=latency)


def _model(rule: Rule, request: JsonObject, headers: str, latency: float) -> Sending:
    body = completion(request) | {
        "model": rule["model"],
        "system_fingerprint": rule.get("fingerprint"),
    }
    return whole(200, body, delay=latency)


def _ignore(rule: Rule, request: JsonObject, headers: str, latency: float) -> Sending:
    dropped = {name for what in rule["what"] for name in FIELDS[what]}
    kept = {name: value for name, value in request.items() if name not in dropped}
    return honest(kept, latency)


def _refuse(rule: Rule, request: JsonObject, headers: str, latency: float) -> Sending | None:
    for what in rule["what"]:
        if any(name in request for name in FIELDS[what]):
            message = (
                f"Unsupported parameter: '{FIELDS[what][0]}' is not supported with this model."
            )
            return whole(
                400,
                {
                    "error": {
                        "message": message,
                        "type": "invalid_request_error",
                        "code": "unsupported",
                    }
                },
            )
    return None


def _logprobs(rule: Rule, request: JsonObject, headers: str, latency: float) -> Sending:
    body = completion(request)
    choice = body["choices"][0]
    for token in (choice["logprobs"] or {}).get("content", []):
        if rule.get("minus_infinity"):
            token["top_logprobs"] += [{"token": "never", "logprob": -9999.0, "bytes": None}]
        token["top_logprobs"] = token["top_logprobs"][: rule.get("top", 99)]
        if rule.get("no_top"):
            del token["top_logprobs"]
    if rule.get("null"):
        choice["logprobs"] = {"content": None}
    return whole(200, body, delay=latency)


def _window(rule: Rule, request: JsonObject, headers: str, latency: float) -> Sending | None:
    asked = prompt_tokens(request)
    if asked <= rule["tokens"]:
        return None
    if rule.get("silent"):
        body = completion(request)
        body["usage"] = usage(rule["tokens"], body["usage"]["completion_tokens"])
        return whole(200, body, delay=latency)
    text = json.dumps(_TOO_LONG[rule.get("style", "openai")])
    return whole(400, text.replace("{limit}", str(rule["tokens"])).replace("{asked}", str(asked)))


def _echo_key(rule: Rule, request: JsonObject, headers: str, latency: float) -> Sending:
    line = next(
        (line for line in headers.split("\r\n") if line.lower().startswith("authorization:")), ""
    )
    key = line.partition(":")[2].strip().removeprefix("Bearer ")
    code = rule.get("code", 401)
    if code == 200:
        body = completion(request)
        body["choices"][0]["message"]["content"] = f"your key is {key}"
        return whole(200, body)
    asked = headers.partition("\r\n")[0]
    message = f"Incorrect API key provided: {key}. {line} for {asked}"
    return whole(code, {"error": {"message": message, "code": "invalid_api_key"}})


_SPOILERS = {
    "honest": _honest,
    "attentive": _attentive,
    "planted": _planted,
    "status": _status,
    "hang": _hang,
    "trickle": _trickle,
    "cut": _cut,
    "reset": _reset,
    "body": _body,
    "huge": _huge,
    "message": _message,
    "streams": _streams,
    "usage": _usage,
    "model": _model,
    "ignore": _ignore,
    "refuse": _refuse,
    "logprobs": _logprobs,
    "window": _window,
    "echo_key": _echo_key,
}
