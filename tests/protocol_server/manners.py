"""Endpoints as they are: what each refuses, names otherwise, leaves out and adds, by `manners.toml`.

The model behind all of them is one: its answers depend on what it is told and asked, and not on the
way in which they are asked for. So whatever the manner, a run comes to one result.
"""

import hashlib
import json
import re
import tomllib
from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

from protocol_server.answers import Answer
from protocol_server.replies import FIELDS, Sending, prompt_tokens, streamed, usage, whole

JsonObject = dict[str, Any]
Manner = Mapping[str, Any]

FILE = Path(__file__).with_name("manners.toml")
_INLINE = re.compile(
    r"\nWrite one JSON object of this JSON schema and nothing else:\n(.*)\Z", re.DOTALL
)
_BOUNDED = re.compile(
    r"(?P<rules>.*?)\n\n(?P<data>(?P<line>[^\n]+)\n\[.*\n(?P=line))\n\n(?P<task>.*)", re.DOTALL
)
_SEALED = re.compile(r'^\{"i":-?\d+,.*\}', re.MULTILINE)
_CODED = re.compile(r"\b[A-Z]\. |\b0(?=\d\b)")
"""What is put before options where log-probabilities are read: it makes no other question of it."""

SHAPES: dict[str, Any] = {
    "openai": {
        "error": {"message": "{}", "type": "invalid_request_error", "param": None, "code": None}
    },
    "openrouter": {"error": {"message": "{}", "code": 404}, "user_id": "u"},
    "flat": {
        "object": "error",
        "message": "{}",
        "type": "BadRequestError",
        "param": None,
        "code": 400,
    },
    "validation": {"detail": [{"type": "extra_forbidden", "loc": ["body"], "msg": "{}"}]},
    "nested": {
        "object": "error",
        "message": {"detail": [{"msg": "{}"}]},
        "type": "invalid_request_error",
    },
    "google": [{"error": {"code": 400, "message": "{}", "status": "INVALID_ARGUMENT"}}],
    "aws": {"message": "{}", "__type": "ValidationException"},
    "words": "{}",
}
"""Bodies of refusals; `{}` stands for the words."""


_FORBIDDEN_ROLES: dict[str, Callable[[list[str]], bool]] = {
    "system": lambda roles: "system" in roles,
    "system_later": lambda roles: "system" in roles[1:],
    "user_twice": lambda roles: any(pair == ("user", "user") for pair in pairwise(roles)),
}
"""Of chat templates: roles of messages that they don't take."""


def manners() -> dict[str, JsonObject]:
    """The table of each manner, by its id."""
    return tomllib.loads(FILE.read_text(encoding="utf-8"))


def mannered(manner: Manner, request: JsonObject, latency: float) -> Sending:
    """The reply of an endpoint of that manner."""
    for refusal in manner.get("refuses", ()):
        if _asks(request, refusal):
            return whole(refusal["status"], _shaped(refusal))
    if manner.get("streams_only") and not request.get("stream"):
        return whole(
            400, SHAPES["openai"] | {"error": {"message": "Only streams are served: set `stream`."}}
        )
    dropped = {field for what in manner.get("ignores", ()) for field in FIELDS[what]}
    heard = {name: value for name, value in request.items() if name not in dropped}
    body = _completion(manner, heard)
    return streamed(body, latency) if request.get("stream") else whole(200, body, delay=latency)


def models(manner: Manner) -> tuple[int, JsonObject]:
    """Status and body of the list of models."""
    listed = manner.get("models", {"id": "m"})
    if not listed:
        return 404, {"error": {"message": "not found"}}
    return 200, {"object": "list", "data": [{"object": "model"} | listed]}


def _asks(request: JsonObject, refusal: Mapping[str, Any]) -> bool:
    """Whether a request has what is refused: a field, a form of answer, or more alternatives than are given."""
    asked = (request.get("response_format") or {}).get("type")
    for what in refusal["what"]:
        if what in ("json_schema", "json_object"):
            if asked == what:
                return True
        elif what in _FORBIDDEN_ROLES:
            if _FORBIDDEN_ROLES[what]([message["role"] for message in request["messages"]]):
                return True
        elif any(field in request for field in FIELDS[what]):
            most = refusal.get("above")
            if most is None or any(
                request.get(field, 0) > most for field in ("top_logprobs", "temperature")
            ):
                return True
    return False


def _shaped(refusal: Mapping[str, Any]) -> Any:
    if "body" in refusal:
        return {name: value or None for name, value in refusal["body"].items()}
    words = json.dumps(refusal["says"])[1:-1]
    return json.loads(json.dumps(SHAPES[refusal.get("shape", "openai")]).replace("{}", words))


def _completion(manner: Manner, request: JsonObject) -> JsonObject:
    schema, tool = _wanted(request)
    text = _answer(request["messages"], schema)
    limit = request.get("max_completion_tokens") or request.get("max_tokens") or 1 << 30
    thinks = manner.get("thinks", 0)
    written = len(text) // 3 + 1 + thinks
    if thinks >= limit > 1:
        text = ""
        finish = "length"
        written = limit
    else:
        finish = "tool_calls" if tool else "stop"
    message = _message(manner, text, tool)
    choice: JsonObject = {"index": 0, "message": message, "finish_reason": finish}
    if request.get("logprobs") and text and not tool:
        entries = [_certain(piece) for piece in re.findall(r"\w+|\s+|[^\w\s]", text)]
        choice["logprobs"] = {"content": entries}
    counted = usage(prompt_tokens(request), written)
    if thinks and manner.get("counts_thoughts", True):
        counted["completion_tokens_details"] = {"reasoning_tokens": thinks}
    body = {"id": "c", "object": "chat.completion", "created": 0, "model": request.get("model", "")}
    body |= {"choices": [choice], "usage": counted} | manner.get("adds", {})
    for name in manner.get("leaves_out", ()):
        (choice if name in choice else body)[name] = None
    return body


def _wanted(request: JsonObject) -> tuple[JsonObject | None, str]:
    """The schema of the answer, in whatever way it is given, and the tool's name."""
    if request.get("tools") and isinstance(request.get("tool_choice"), dict):
        function = request["tools"][0]["function"]
        return function["parameters"], function["name"]
    asked = request.get("response_format") or {}
    if asked.get("type") == "json_schema":
        return asked["json_schema"]["schema"], ""
    inline = _INLINE.search(str(request["messages"][-1]["content"]))
    if inline:
        return json.loads(inline[1]), ""
    return ({"type": "object", "properties": {"hello": {"type": "string"}}} if asked else None), ""


def _answer(messages: list[JsonObject], schema: JsonObject | None) -> str:
    """What the model answers, from the data and the task alone."""
    messages = _as_written(messages)
    task = _CODED.sub("", _INLINE.sub("", str(messages[-1]["content"])))
    said = [line for message in messages[:-1] for line in _SEALED.findall(str(message["content"]))]
    seed = hashlib.sha256(json.dumps([said, task]).encode()).hexdigest()
    return Answer(messages, schema, tokens=False, attentive=True, seed=seed).text


def _as_written(messages: list[JsonObject]) -> list[JsonObject]:
    """Rules, data and task, however many messages they came in; of others all words as one."""
    text = "\n\n".join(str(message["content"]) for message in messages)
    parts = _BOUNDED.fullmatch(text)
    if parts is None:
        return [{"role": "user", "content": text}]
    return [{"role": "user", "content": parts[name]} for name in ("rules", "data", "task")]


def _message(manner: Manner, text: str, tool: str) -> JsonObject:
    message: JsonObject = {"role": "assistant", "content": text}
    if tool:
        call = {"id": "call_1", "type": "function", "function": {"name": tool, "arguments": text}}
        return message | {"content": None, "tool_calls": [call]}
    if text:
        fenced = f"```json\n{text}\n```" if manner.get("fences") and text.startswith("{") else text
        message["content"] = manner.get("writes", "{}").replace("{}", fenced)
    if manner.get("parts") and text:
        thoughts = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}
        message["content"] = [thoughts, {"type": "text", "text": text}]
    if field := manner.get("thoughts_in"):
        message[field] = 'Perhaps {"answer": "no"}?'
    return message


def _certain(piece: str) -> JsonObject:
    entry = {"token": piece, "logprob": 0.0, "bytes": list(piece.encode())}
    return entry | {
        "top_logprobs": [dict(entry), {"token": "\u0000", "logprob": -9999.0, "bytes": [0]}]
    }
