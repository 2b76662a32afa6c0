"""Attributes of spans in the ways that tracing libraries record messages, as calls."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from pollex.conversations.conversation import Turn
from pollex.errors import BadInput
from pollex.formats.assembly.pieces import Call, moment
from pollex.formats.log_shapes.exports import facts, text
from pollex.formats.log_shapes.payloads import Side, answered, asked, nested, of_sides, opened, system_of
from pollex.formats.log_shapes.turns import turns_of

SESSION_NAMES = (
    *("gen_ai.conversation.id", "session.id", "langfuse.session.id", "mlflow.trace.session"),
    *("traceloop.association.properties.session_id", "traceloop.association.properties.thread_id", "session_id"),
    *("traceloop.association.properties.conversation_id", "traceloop.association.properties.chat_id"),
    *("ai.telemetry.metadata.sessionId", "ai.telemetry.metadata.threadId", "ai.telemetry.metadata.chatId"),
    *(
        "gcp.vertex.agent.session_id",
        "gen_ai.thread.id",
        "langsmith.metadata.thread_id",
        "langsmith.metadata.session_id",
    ),
    *("conversation.id", "conversation_id", "thread.id", "thread_id"),
)
USER_NAMES = (
    *("user.id", "enduser.id", "langfuse.user.id", "mlflow.trace.user", "langfuse.trace.user_id"),
    *("traceloop.association.properties.user_id", "ai.telemetry.metadata.userId"),
)
MODEL_NAMES = ("gen_ai.response.model", "gen_ai.request.model", "llm.model_name", "langfuse.observation.model.name")
KIND_NAMES = ("openinference.span.kind", "langfuse.observation.type", "mlflow.spanType", "traceloop.span.kind")
_SILENT = frozenset(
    ["tool", "retriever", "embedding", "embeddings", "reranker", "guardrail", "evaluator", "event", "parser"]
)
_MODELS = frozenset(["llm", "generation", "chat_model", "chat", "completion", "text_completion", "generate_content"])


class Span(NamedTuple):
    """A span as any exporter writes it.

    Attributes:
        attributes: Flat, names with dots.
        error: What failed, in words.
    """

    trace: str
    span: str
    parent: str | None
    begun: object
    attributes: Mapping[str, Any]
    error: str = ""
    kind: str = ""


def silent_kind(kind: str) -> bool:
    """Return whether spans of a kind, such as tools, never have the conversation's messages."""
    return kind.casefold() in _SILENT


def call_of(span: Span) -> Call:
    """Convert a span to a call."""
    have = span.attributes
    kind = span.kind or next((str(opened(have[name])) for name in KIND_NAMES if have.get(name)), "")
    operation = str(have.get("gen_ai.operation.name") or have.get("llm.request.type") or "")
    said = None if silent_kind(kind) or operation == "execute_tool" else messages_of(have)
    before, after = said or (None, None)
    return Call(
        *(span.trace, span.span, span.parent, _first(have, SESSION_NAMES), moment(span.begun)),
        **of_sides(before, after),
        model=kind.casefold() in _MODELS
        or operation in _MODELS
        or (not kind and before is not None and before.history),
        error=span.error,
        facts=facts(user=_first(have, USER_NAMES), model=_first(have, MODEL_NAMES)),
        beside=have,
    )


def _first(attributes: Mapping[str, Any], names: tuple[str, ...]) -> str | None:
    return next((found for name in names if (found := text(opened(attributes.get(name))))), None)


def messages_of(attributes: Mapping[str, Any]) -> tuple[Side | None, Side | None] | None:
    """Return a span's input and output, by the first convention that fits."""
    for way in (_semantic, _openinference, _flat, _listed_events, _langfuse, _mlflow, _vercel, _plain):
        try:
            found = way(attributes)
        except BadInput:
            continue
        if found and (found[0] or found[1]):
            return found
    return None


def _semantic(have: Mapping[str, Any]) -> tuple[Side | None, Side | None] | None:
    """OpenTelemetry's conventions from 1.37 on: lists of messages, or JSON text of them."""
    before, after = (opened(have.get(f"gen_ai.{name}.messages")) for name in ("input", "output"))
    if not isinstance(before, list) and not isinstance(after, list):
        return None
    system = opened(have.get("gen_ai.system_instructions"))
    turns = system_of({"system": system}) if system else ()
    asked_ = Side(turns + turns_of(before or []), True) if before else None
    return asked_, Side(turns_of(after), True) if after else None


def _openinference(have: Mapping[str, Any]) -> tuple[Side | None, Side | None] | None:
    sides = []
    for name in ("llm.input_messages", "llm.output_messages"):
        listed = _listed(have, name)
        turns = turns_of([_message(one.get("message", one)) for one in listed if isinstance(one, Mapping)])
        sides.append(Side(turns, True) if turns else None)
    if sides[0] is None:
        return None
    return sides[0], sides[1] or answered(have.get("output.value"))


def _listed(have: Mapping[str, Any], name: str) -> list[Any]:
    """Return a list of objects from one name, or from names with numbers."""
    if name in have:
        whole = opened(have[name])
        return [nested(one) for one in whole if isinstance(one, Mapping)] if isinstance(whole, list) else []
    prefix = f"{name}."
    spread = nested({key[len(prefix) :]: value for key, value in have.items() if key.startswith(prefix)})
    return spread if isinstance(spread, list) else []


def _message(message: Mapping[str, Any]) -> dict[str, Any]:
    """Convert an OpenInference message to OpenAI's form."""
    calls = [call.get("tool_call", call) for call in _objects(message.get("tool_calls"))]
    parts = [_part(part.get("message_content", part)) for part in _objects(message.get("contents"))]
    content = message.get("content") or parts or None
    beside = {"tool_call_id": message["tool_call_id"]} if message.get("tool_call_id") else {}
    return {"role": message.get("role") or "assistant", "content": content, "tool_calls": calls, **beside}


def _objects(listed: object) -> list[Mapping[str, Any]]:
    return [one for one in listed if isinstance(one, Mapping)] if isinstance(listed, list) else []


def _part(content: Mapping[str, Any]) -> dict[str, Any]:
    if content.get("type", "text") == "text":
        return {"type": "text", "text": content.get("text") or ""}
    return {"type": str(content["type"])}


def _flat(have: Mapping[str, Any]) -> tuple[Side | None, Side | None] | None:
    """Read numbered names, as earlier libraries of Traceloop and Vercel wrote them."""
    sides = []
    for name in ("gen_ai.prompt", "gen_ai.completion"):
        listed = [one for one in _listed(have, name) if isinstance(one, Mapping)]
        turns = turns_of([{**one, "content": _content(one.get("content"))} for one in listed if one.get("role")])
        sides.append(Side(turns, True) if turns else None)
    return (sides[0], sides[1]) if sides[0] else None


def _content(content: object) -> object:
    """Return the content, parsed if it is JSON text of a list of parts."""
    found = opened(content)
    return (
        found
        if isinstance(found, list) and found and all(isinstance(one, Mapping) and "type" in one for one in found)
        else content
    )


def _langfuse(have: Mapping[str, Any]) -> tuple[Side | None, Side | None] | None:
    names = ("langfuse.observation.input", "langfuse.observation.output")
    before, after = have.get(names[0]), have.get(names[1])
    return (asked(before), answered(after)) if before is not None or after is not None else None


def _mlflow(have: Mapping[str, Any]) -> tuple[Side | None, Side | None] | None:
    return asked(have.get("mlflow.spanInputs")), answered(have.get("mlflow.spanOutputs"))


def _vercel(have: Mapping[str, Any]) -> tuple[Side | None, Side | None] | None:
    """Vercel's AI SDK: calls of tools stand beside the text of an answer."""
    prompt = have.get("ai.prompt.messages") or have.get("ai.prompt")
    if prompt is None:
        return None
    called = opened(have.get("ai.response.toolCalls"))
    answer = {"role": "assistant", "content": have.get("ai.response.text"), "tool_calls": called}
    return asked(prompt), answered(answer) if called or answer["content"] else None


def _listed_events(have: Mapping[str, Any]) -> tuple[Side | None, Side | None] | None:
    """Pydantic AI's spans, whose events are one attribute."""
    events = opened(have.get("events") or have.get("all_messages_events"))
    if not isinstance(events, list):
        whole = opened(have.get("pydantic_ai.all_messages"))
        return (Side(turns_of(whole), True), None) if isinstance(whole, list) else None
    sides: tuple[list[Turn], list[Turn]] = [], []
    for event in events:
        if isinstance(event, Mapping) and (name := str(event.get("event.name") or "")):
            sides[name in ANSWERS].extend(turns_of_event(name, event))
    before, after = (Side(tuple(turns), True) if turns else None for turns in sides)
    return before, after


def _plain(have: Mapping[str, Any]) -> tuple[Side | None, Side | None] | None:
    """OpenInference's and Traceloop's words of spans that are no model's."""
    for before, after in (
        ("input.value", "output.value"),
        ("traceloop.entity.input", "traceloop.entity.output"),
        ("request_data", "response_data"),
        ("gcp.vertex.agent.llm_request", "gcp.vertex.agent.llm_response"),
        ("gen_ai.prompt", "gen_ai.completion"),
    ):
        if have.get(before) is not None:
            return asked(have[before]), answered(have.get(after))
    return None


ANSWERS = ("gen_ai.choice", "gen_ai.content.completion")
"""Events with what a model answered."""


def turns_of_event(name: str, body: object) -> tuple[Turn, ...]:
    """Return the turns of an event such as `gen_ai.user.message`; empty for others."""
    if not isinstance(body, Mapping):
        return ()
    for whole, read in (("gen_ai.content.prompt", asked), ("gen_ai.content.completion", answered)):
        if name == whole:
            said = body.get(whole.replace(".content", ""))
            parts = re.split(r"(?m)^(system|user|assistant|tool|developer): ", said) if isinstance(said, str) else []
            if len(parts) > 1 and not parts[0].strip():  # text with a role before each message
                pairs = zip(parts[1::2], parts[2::2], strict=True)
                return turns_of([{"role": role, "content": words.strip()} for role, words in pairs])
            side = read(said)
            return side.turns if side else ()
    if name == "gen_ai.choice":
        message = body.get("message")
        found = message if isinstance(message, Mapping) else body
        return turns_of([{"role": "assistant", "content": None, **found}])
    role = name.removeprefix("gen_ai.").removesuffix(".message")
    if role not in ("system", "user", "assistant", "tool") or not name.endswith(".message"):
        return ()
    return turns_of([{"role": role, "content": None, **body}])
