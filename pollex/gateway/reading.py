"""Reads a reply as an outcome. Never raises, whatever a server sends, and depends on nothing but reply and call."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from pollex.gateway.calls import Call
from pollex.gateway.faults import Fault, error_text, fault_of
from pollex.gateway.outcomes import (
    Completed,
    ContextExceeded,
    Malformed,
    Outcome,
    Refused,
    SilentlyTruncated,
    Truncated,
    Usage,
)
from pollex.gateway.redaction import redacted
from pollex.gateway.replies import Reply
from pollex.gateway.tokens import prompt_floor

CUT_SHORT = 0.7
"""A prompt of which the server counted less than this share of the tokens it has at least was cut."""

_CHARACTERS_A_TOKEN = 4
_REFUSAL = re.compile(
    r"\s*(?:i(?:'|’)?m (?:very |really )?sorry|i am (?:very |really )?sorry|sorry, (?:but )?i\b|i apologi[sz]e"
    r"|i(?:'|’)?m (?:unable|not able) to|i am (?:unable|not able) to|i (?:can(?:'|’)?t|cannot|won(?:'|’)?t|can not) )",
    re.IGNORECASE,
)


def read(reply: Reply, call: Call) -> Outcome | Fault:
    """What `reply` means: an outcome, or a fault that the gateway has to act on."""
    fault = fault_of(reply)
    if fault is not None:
        return _settled(fault) or fault
    if reply.problem:
        return Malformed(detail=f"reply {reply.problem.replace('_', ' ')}", seconds=reply.seconds)
    try:
        return _read_completion(json.loads(reply.body), call, reply.seconds)
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        detail = f"not a chat completion: {error_text(reply.body)[:120]}"
        return Malformed(detail=detail, seconds=reply.seconds)


def _settled(fault: Fault) -> Outcome | None:
    if fault.action == "context":
        return ContextExceeded(detail=fault.detail)
    if fault.action == "refused":
        return Refused(detail=fault.detail)
    return None


def _read_completion(body: Mapping[str, Any], call: Call, seconds: float) -> Outcome:
    choice = body["choices"][0]
    message = choice["message"]
    text = _text(message, call)
    common: dict[str, Any] = {
        "text": text,
        "logprobs": _logprobs(choice),
        "finish_reason": str(choice.get("finish_reason") or ""),
        "model": redacted(str(body.get("model") or "")),
        "fingerprint": str(body.get("system_fingerprint") or ""),
        "usage": read_usage(body.get("usage")),
        "seconds": seconds,
    }
    return _judge(call, text, str(message.get("refusal") or ""), common)


def _judge(call: Call, text: str, refusal: str, common: dict[str, Any]) -> Outcome:
    if cut := _cut_prompt(common["usage"], call):
        return SilentlyTruncated(detail=cut, **common)
    if refusal:
        return Refused(detail=refusal, **common)
    if common["finish_reason"] == "content_filter":
        return Refused(detail="content filter", **common)
    if common["finish_reason"] == "length" and not _asked_for_one_token(call):
        return Truncated(detail="stopped at the token limit", **common)
    if common["finish_reason"] in {"error", "abort"}:
        return Malformed(detail=f"finish reason {common['finish_reason']}", **common)
    if not text.strip():
        return Refused(detail="empty answer", **common)
    if call.schema is not None and "{" not in text and _REFUSAL.match(text):
        return Refused(detail=text.strip()[:200], **common)
    return Completed(**common)


def _asked_for_one_token(call: Call) -> bool:
    """An answer of one token always ends at the limit."""
    return call.max_tokens == 1


def _text(message: Mapping[str, Any], call: Call) -> str:
    """What the model wrote: a string, text parts, or the arguments of the tool call that the answer was asked as.

    Some servers write words, or none, beside that call; of several calls the last counts, as of several objects.
    """
    content = message.get("content")
    if isinstance(content, list):
        content = "".join(part["text"] for part in content if part.get("type") == "text")
    if (call.form == "tool" or not content) and (calls := message.get("tool_calls")):
        content = calls[-1]["function"]["arguments"]
    if content is not None and not isinstance(content, str):
        raise TypeError("content is no text")
    return content or ""


def _logprobs(choice: Mapping[str, Any]) -> list[Any] | None:
    logprobs = choice.get("logprobs")
    tokens = logprobs.get("content") if isinstance(logprobs, dict) else None
    return tokens if isinstance(tokens, list) and tokens else None


def read_usage(usage: Any) -> Usage:
    """Token counts as far as they are there; a prompt of 0 tokens is a count that is not there."""
    if not isinstance(usage, dict):
        return Usage()
    return Usage(
        prompt=_count(usage, "prompt_tokens") or None,
        completion=_count(usage, "completion_tokens"),
        cached=_count(usage.get("prompt_tokens_details"), "cached_tokens"),
        reasoning=_count(usage.get("completion_tokens_details"), "reasoning_tokens"),
    )


def _count(counts: Any, name: str) -> int | None:
    value = counts.get(name) if isinstance(counts, dict) else None
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _cut_prompt(usage: Usage, call: Call) -> str:
    """Says how much of the prompt the server read, where that is less than was sent; else empty."""
    if usage.prompt is None:
        return ""
    # Counting takes time; a prompt with a token for every four characters was hardly cut.
    characters = sum(len(content) for message in call.messages if isinstance(content := message.get("content"), str))
    if usage.prompt * _CHARACTERS_A_TOKEN >= characters:
        return ""
    least = prompt_floor(call.messages)
    if usage.prompt >= CUT_SHORT * least:
        return ""
    return f"the server read {usage.prompt} of at least {least} prompt tokens"
