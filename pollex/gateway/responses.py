"""Interpretation of a reply as an outcome.

It never raises, whatever a server sends, and depends on nothing but reply and call.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any, Literal

from pollex.gateway.calls import (
    Call,
    CompletedReply,
    ContextExceeded,
    EmptyReply,
    MalformedReply,
    Outcome,
    RefusedReply,
    Reply,
    TruncatedPrompt,
    TruncatedReply,
    Usage,
    compute_lower_prompt_token_bound,
)
from pollex.gateway.redaction import redact_secrets
from pollex.text import is_visible

MAX_READ_SHARE_OF_CUT_PROMPT = 0.7
"""A prompt of which the server counted less than this share of the tokens it has at least was cut."""

_CHARS_PER_TOKEN = 4

MAX_TOKEN_COUNT = 10**9
"""Tokens of one call; who counts more counts something else."""
_REFUSAL_REGEX = re.compile(
    r"\s*(?:i(?:'|’)?m (?:very |really )?sorry|i am (?:very |really )?sorry|sorry, (?:but )?i\b|i apologi[sz]e"
    r"|i(?:'|’)?m (?:unable|not able) to|i am (?:unable|not able) to|i (?:can(?:'|’)?t|cannot|won(?:'|’)?t|can not) )",
    re.IGNORECASE,
)


def interpret_reply(reply: Reply, call: Call) -> Outcome | HttpFault:
    """Return the meaning of `reply`: an outcome, or a fault for the gateway."""
    fault = find_fault_in_reply(reply)
    if fault is not None:
        return _settle_fault(fault)
    if reply.problem:
        return MalformedReply(
            detail=f"reply {reply.problem.replace('_', ' ')}",
            seconds=reply.seconds,
        )

    try:
        body = json.loads(reply.body)
        if (fault := find_fault_in_body(body, reply.headers)) is not None:
            return _settle_fault(fault)
        choice = body["choices"][0]
        reason = _read_finish_reason(choice.get("finish_reason"))
        # what a filter holds back may have no message at all
        message = choice.get("message") or {} if reason == "content_filter" else choice["message"]
        logprobs = choice.get("logprobs")
        tokens = None
        if isinstance(logprobs, dict):
            tokens = logprobs.get("content")
        common: dict[str, object] = {
            "text": _read_answer_text(message, call),
            "logprobs": tokens if isinstance(tokens, list) and tokens else None,
            "finish_reason": reason,
            "model": redact_secrets(str(body.get("model") or "")),
            "fingerprint": str(body.get("system_fingerprint") or ""),
            "usage": read_token_usage(body.get("usage")),
            "seconds": reply.seconds,
        }
        return _read_outcome_of_message(call, message, common)
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        detail = f"not a chat completion: {read_error_message(reply.body)[:120]}"
        return MalformedReply(detail=detail, seconds=reply.seconds)


_FINISH_REASON_BY_PROVIDER_REASON = {
    **dict.fromkeys(("max_tokens", "max_output_tokens", "max_length", "token_limit"), "length"),
    **dict.fromkeys(
        (
            *(
                "safety",
                "refusal",
                "blocked",
                "blocklist",
                "prohibited_content",
                "content_filtered",
            ),
            *("spii", "recitation", "sensitive"),
        ),
        "content_filter",
    ),
}
"""What providers call the protocol's reasons, behind gateways that pass their words on."""


def _read_finish_reason(provider_reason: object) -> str:
    reason = str(provider_reason or "")
    # some say behind a colon what the filter found
    usual = reason.partition(":")[0].strip().lower()
    return _FINISH_REASON_BY_PROVIDER_REASON.get(usual, usual if ":" in reason else reason)


def _settle_fault(fault: HttpFault) -> Outcome | HttpFault:
    settled = {"context": ContextExceeded, "refused": RefusedReply}.get(fault.action)
    if settled:
        return settled(detail=fault.detail)
    return fault


def _read_outcome_of_message(
    call: Call,
    message: Mapping[str, object],
    common: dict[str, Any],
) -> Outcome:
    text = common["text"]
    reason = common["finish_reason"]
    refusal = str(message.get("refusal") or "")
    if cut := _describe_cut_prompt(common["usage"], call):
        return TruncatedPrompt(detail=cut, **common)
    if refusal:
        return RefusedReply(detail=refusal, **common)
    if reason == "content_filter":
        return RefusedReply(detail="content filter", **common)
    if call.max_tokens != 1 and (
        reason == "length" or _has_only_thoughts(text, common["usage"], call)
    ):
        return TruncatedReply(detail="stopped at the token limit", **common)
    if reason in {"error", "abort"}:
        return MalformedReply(detail=f"finish reason {reason}", **common)
    if not is_visible(text):
        return EmptyReply(
            detail=_describe_missing_answer(message, reason, common["usage"]), **common
        )
    if call.schema is not None and "{" not in text and _REFUSAL_REGEX.match(text):
        return RefusedReply(detail=text.strip()[:200], **common)
    return CompletedReply(**common)


def _has_only_thoughts(text: str, usage: Usage, call: Call) -> bool:
    """Tell whether all tokens went into thoughts, which some servers call a regular end."""
    if is_visible(text) or call.max_tokens is None:
        return False
    return (usage.completion or 0) >= call.max_tokens


_THOUGHT_FIELDS = ("reasoning_content", "reasoning", "thinking", "thoughts", "reasoning_details")
"""Fields in which servers put what the model thought; none of them is an answer."""


def _describe_missing_answer(
    message: Mapping[str, object],
    reason: str,
    usage: Usage,
) -> str:
    """Describe what came in place of an answer."""
    # why it stopped, what it cost, and where the thoughts are
    facts = [f"finish reason {reason or 'not told'}"]
    if usage.reasoning:
        facts.append(f"{usage.reasoning} reasoning tokens")
    elif usage.completion:
        facts.append(f"{usage.completion} tokens")

    facts += [f"thoughts in `{name}` alone" for name in _THOUGHT_FIELDS if message.get(name)][:1]
    if message.get("tool_calls"):
        facts.append("tool calls without arguments that can be read")
    return f"empty answer ({', '.join(facts)})"


_TEXT_PART_TYPES = {"text", "output_text", None}
"""Kinds of content parts that are the answer; thoughts are of other kinds."""


def _read_answer_text(message: Mapping[str, object], call: Call) -> str:
    """Return the model's text: a string, text parts, or the tool call's arguments.

    Some servers write words, or none, beside that call; of several calls the last counts, as of
    several objects.
    """
    content = message.get("content")
    if isinstance(content, list):
        content = "".join(
            part if isinstance(part, str) else part["text"]
            for part in content
            if isinstance(part, str) or part.get("type") in _TEXT_PART_TYPES
        )
    elif isinstance(content, dict):  # some gateways parse what the model wrote
        content = json.dumps(content, ensure_ascii=False)

    if content is not None and not isinstance(content, str):
        raise TypeError("content is no text")

    # a tool call counts before words where one was asked for, else where there are no words
    if call.form == "tool" or not content:
        arguments = _get_arguments_of_last_tool_call(message)
        return arguments or content or _find_object_among_thoughts(message, call)
    return content


def _find_object_among_thoughts(message: Mapping[str, object], call: Call) -> str:
    """Return what a server took for thoughts where it is an object and nothing else; else nothing.

    Some put all that a model wrote there if it closes no thoughts.
    """
    if call.schema is None:
        return ""

    for name in _THOUGHT_FIELDS:
        text = message.get(name)
        if isinstance(text, str) and _is_json_object(text):
            return text

    return ""


def _is_json_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _get_arguments_of_last_tool_call(message: Mapping[str, object]) -> str:
    """Return what the last tool call that can be read was given; empty where there is none."""
    calls = message.get("tool_calls")
    functions = []
    for tool_call in calls if isinstance(calls, list) else ():
        if isinstance(tool_call, dict):
            functions.append(tool_call.get("function"))

    # the call of older servers is read where there is no other
    functions.insert(0, message.get("function_call"))
    for function in reversed(functions):
        arguments = function.get("arguments") if isinstance(function, dict) else None
        if isinstance(arguments, dict):  # some gateways parse what the model wrote
            return json.dumps(arguments, ensure_ascii=False)
        if isinstance(arguments, str) and arguments:
            return arguments

    return ""


def read_token_usage(usage: object) -> Usage:
    """Return the token counts that are there; a prompt of 0 tokens is missing."""
    if not isinstance(usage, dict):
        return Usage()

    prompt = (
        _read_token_count(usage, "prompt_tokens") or _read_token_count(usage, "input_tokens") or 0
    )
    cached = _read_token_count(usage.get("prompt_tokens_details"), "cached_tokens")
    return Usage(
        prompt=prompt + _count_tokens_left_out_as_cached(usage, prompt, cached) or None,
        completion=_take_first_count(
            _read_token_count(usage, "completion_tokens"), _read_token_count(usage, "output_tokens")
        ),
        cached=cached,
        reasoning=_read_token_count(usage.get("completion_tokens_details"), "reasoning_tokens"),
    )


def _count_tokens_left_out_as_cached(
    usage: Mapping[str, object], prompt: int, cached: int | None
) -> int:
    """Count tokens of the prompt that came from a cache, or went into it, and stand beside its count.

    Where they are more than the whole, they are no part of it.
    """
    beside = 0
    for name in ("cache_read_input_tokens", "cache_creation_input_tokens"):
        beside += _read_token_count(usage, name) or 0

    most = max(beside, cached or 0)
    return most if most > prompt else 0


def _take_first_count(first: int | None, second: int | None) -> int | None:
    return second if first is None else first


def _read_token_count(counts: object, name: str) -> int | None:
    value = None
    if isinstance(counts, dict):
        value = counts.get(name)
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if 0 <= value <= MAX_TOKEN_COUNT else None


def _describe_cut_prompt(usage: Usage, call: Call) -> str:
    """Describe how much of the prompt the server read; empty if all of it."""
    if usage.prompt is None:
        return ""

    # Counting takes time; a prompt with a token for every four characters was hardly cut.
    characters = sum(
        len(content)
        for message in call.messages
        if isinstance(content := message.get("content"), str)
    )
    if usage.prompt * _CHARS_PER_TOKEN >= characters:
        return ""

    # fewer tokens than the prompt has at least: it was cut
    least = compute_lower_prompt_token_bound(call.messages)
    if usage.prompt >= MAX_READ_SHARE_OF_CUT_PROMPT * least:
        return ""
    return f"the server read {usage.prompt} of at least {least} prompt tokens"


FaultAction = Literal["retry", "wait", "fail", "stop", "refused", "context"]
"""Send again soon; send again when the endpoint allows; give this call up; give this call up, and all if it isn't this
one alone; two outcomes of their own."""

_CONTEXT_LENGTH_REGEX = re.compile(
    r"context[_ ]length|context window|context[_ ]size|maximum context|prompt is too long|too many (?:input )?tokens"
    r"|input (?:is )?too long|reduce the length of the (?:messages|prompt|input)"
    r"|exceeds? the (?:model'?s )?max(?:imum)? (?:input|sequence|model)",
    re.IGNORECASE,
)
_QUOTA_REGEX = re.compile(
    r"insufficient_(?:quota|balance|credit)|billing|exceeded your current quota|payment",
    re.IGNORECASE,
)
_CONTENT_FILTER_REGEX = re.compile(
    r"content[_ ]?filter|content management policy|content_policy|moderation|flagged|data_inspection"
    r"|(?:inappropriate|sensitive|harmful|unsafe) (?:content|information|words|material)|content exists risk|high risk"
    r"|(?:usage|safety|content) (?:guidelines?|polic(?:y|ies))|safety (?:system|settings|filter)",
    re.IGNORECASE,
)
MESSAGE_ROLES_REGEX = re.compile(
    r"\bsystem['\"]? (?:role|message|prompt)|roles? must|\[\d+\]\.role|(?:role|user)s?\b.{0,40}\balternat"
    r"|only .{0,40}\broles\b|(?:no|unexpected) (?:system )?role|non-consecutive system|message_order",
    re.IGNORECASE,
)
"""Chat templates that take no system message, or not everywhere, or no two messages of the user in a row."""
_INVALID_REQUEST_REGEX = re.compile(
    r"\bvalidation error|literal_error|failed to parse (?:grammar|json)",
    re.IGNORECASE,
)
"""Servers built on FastAPI, llama-cpp-python's for one, may call a request that they don't understand a 500."""
_REQUEST_TOO_LARGE_REGEX = re.compile(r"request too large", re.IGNORECASE)
_RATE_LIMIT_REGEX = re.compile(
    r"rate.?limit|too.?many.?requests|throttl|requests? per (?:second|minute|day)|resource.?exhausted"
    r"|quota exceeded|concurrency (?:limit|exceeded)|\u9650\u6d41|\u8fc7\u4e8e\u9891\u7e41|\u5e76\u53d1\u6570",
    re.IGNORECASE,
)
_BUSY_SERVER_REGEX = re.compile(
    r"overload|unavailable|at capacity|no capacity|try again later|server.?error|internal.?error"
    r"|bad.?gateway|timed?.?out",
    re.IGNORECASE,
)
_CAPABILITY_REGEX = re.compile(
    r"log.?prob|response.?format|json.?(?:schema|mode|object)|structured.?(?:output|generation)"
    r"|\btools?\b|tool.?(?:use|choice|call)|function.?call|\btemperature\b|\bseed\b|max_(?:\w+_)?tokens"
    r"|\bstream(?:ing|ed)?\b|\bparameters?\b|guided.?(?:json|decoding)|\bgrammar\b",
    re.IGNORECASE,
)
"""What a call may ask for beside an answer. A refusal that names it says nothing of key and model."""
_CREDENTIALS_REGEX = re.compile(r"\bkey\b|credential|authenti|bearer|password", re.IGNORECASE)
_WRONG_KEY_REGEX = re.compile(
    r"(?:invalid|incorrect|wrong|missing|expired|no) (?:\w+ ){0,3}(?:api[ _]?key|token passed)"
    r"|api[ _]?key (?:\w+ )?(?:not valid|invalid|expired)|authentication error",
    re.IGNORECASE,
)
_NOT_SUPPORTED_REGEX = re.compile(
    r"not? (?:be )?(?:support|allow|permit|implement|enabl|available)|does(?:n't| not) (?:support|allow)|unsupported"
    r"|unrecogni[sz]ed|unknown|unexpected|extra (?:input|field)|can(?:'t|not) (?:be )?(?:use|handle)",
    re.IGNORECASE,
)
_WAIT_WORDS_REGEX = re.compile(
    r"\b(?:again|retry|retrying|wait)\b[^.\d]{0,40}((?:\d+(?:\.\d+)? ?(?:ms|h|m|s)[a-z]* ?)+)",
    re.IGNORECASE,
)
_NUMBER_WITH_UNIT_REGEX = re.compile(r"(\d+(?:\.\d+)?) ?(ms|h|m|s)", re.IGNORECASE)
_SECONDS_BY_UNIT = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_RETRY_DELAY_FIELD_REGEX = re.compile(
    r'"retry_?(?:delay|after)(?:_seconds)?" ?: ?"?(\d+(?:\.\d+)?)', re.IGNORECASE
)

_CHECK_KEY_HINT = "check the API key, then resume"
_CAUSE_AND_HINT_BY_STATUS: dict[int, tuple[str, str]] = {
    401: ("key", _CHECK_KEY_HINT),
    402: ("quota", "add credit or raise the quota, then resume"),
    403: ("key", "check what the API key may use, then resume"),
    404: ("model", "check the model's name and the base URL, then resume"),
    405: ("address", "check the base URL, then resume"),
    407: ("proxy", "check the proxy's user and password, then resume"),
}
_RETRIED_STATUSES = {HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.CONFLICT, HTTPStatus.TOO_EARLY}
_FINAL_STATUSES = {
    HTTPStatus.NOT_MODIFIED,
    HTTPStatus.NOT_IMPLEMENTED,
    HTTPStatus.HTTP_VERSION_NOT_SUPPORTED,
}
"""No other time brings another answer, and they say nothing of other calls."""
_UNREACHABLE_STATUSES = {
    HTTPStatus.BAD_GATEWAY,
    HTTPStatus.SERVICE_UNAVAILABLE,
    HTTPStatus.GATEWAY_TIMEOUT,
}
_MAX_DETAIL_CHARS = 300


@dataclass(frozen=True, slots=True)
class HttpFault:
    """The reason why a reply is no answer.

    Attributes:
        name: One word, see `Failed.fault`.
        detail: The endpoint's words on one line, secrets removed.
        hint: What to do, for faults that stop everything.
        wait: Seconds that the endpoint asks to wait; None if it doesn't say.
        away: Whether no call can be answered now, as far as this reply shows.
        concerns_all: Whether one such reply says that no call will be served.
        concerns_one: Whether it says nothing of other calls where any was served, be it the probe's:
            a firewall refuses words.
    """

    name: str
    action: FaultAction
    detail: str = ""
    hint: str = ""
    wait: float | None = None
    away: bool = False
    concerns_all: bool = False
    concerns_one: bool = False


def find_fault_in_reply(reply: Reply) -> HttpFault | None:
    """Return the fault that `reply` is, None for a whole reply with status 200."""
    if reply.problem == "timeout":
        return HttpFault("timeout", "fail", reply.detail)
    if reply.problem == "connection":
        return HttpFault("connection", "retry", reply.detail, away=True)
    if reply.problem == "certificate":
        hint = "check the address and its certificate, then resume"
        return HttpFault(
            "certificate",
            "stop",
            reply.detail,
            hint,
            concerns_all=True,
        )
    if reply.status == HTTPStatus.OK:
        return None

    # by status and words
    text = read_error_message(reply.body)
    wait = _read_wait_seconds(reply.headers, reply.body)
    return _make_status_fault(
        reply.status,
        reply.headers,
        text,
        f"HTTP {reply.status} {text}".strip(),
        wait,
    )


def find_fault_in_body(body: object, headers: Mapping[str, str]) -> HttpFault | None:
    """Return the fault that a body with status 200 holds in place of an answer; None where it has an answer."""
    if not isinstance(body, dict):
        return None

    choices = body.get("choices")
    first = None
    if isinstance(choices, list) and choices:
        first = choices[0]
    if isinstance(first, dict) and (not first.get("error") or _has_answer_text(first)):
        return None

    # an error in place of the answer
    inside = first if isinstance(first, dict) else body
    body_text = json.dumps(inside, ensure_ascii=False)
    text = read_error_message(body_text)
    status = _find_status_in_body(inside, body_text)
    if status is None:
        return None

    return _make_status_fault(
        status,
        headers,
        text,
        f"HTTP 200, and in it: {text}",
        _read_wait_seconds(headers, body_text),
    )


def _has_answer_text(choice: Mapping[str, object]) -> bool:
    message = choice.get("message")
    return isinstance(message, dict) and bool(message.get("content") or message.get("tool_calls"))


_STATUS_FIELDS = (
    *("code", "status", "status_code", "http_status", "http_code"),
    *("statusCode", "errorCode", "error_code", "httpStatus"),
)
_NESTED_ERROR_FIELDS = ("error", "errors", "detail", "metadata", "base_resp", "status", "data")


def _find_status_in_body(value: Any, body_text: str) -> int | None:
    """Return the HTTP status that an error in a body names, or that its words mean; None where it is no error."""
    for name in _STATUS_FIELDS:
        code = None
        if isinstance(value, dict):
            code = value.get(name)
        number = int(code) if isinstance(code, str) and code.isdecimal() else code
        if isinstance(number, int) and not isinstance(number, bool) and 400 <= number < 600:
            return number

    for part in (
        value if isinstance(value, list) else [value.get(name) for name in _NESTED_ERROR_FIELDS]
    ):
        if isinstance(part, dict | list) and (status := _find_status_in_body(part, "")) is not None:
            return status

    if _RATE_LIMIT_REGEX.search(body_text):
        return int(HTTPStatus.TOO_MANY_REQUESTS)
    if _BUSY_SERVER_REGEX.search(body_text):
        return int(HTTPStatus.SERVICE_UNAVAILABLE)
    return None


def _make_status_fault(
    status: int,
    headers: Mapping[str, str],
    text: str,
    detail: str,
    wait: float | None,
) -> HttpFault:
    if status in _FINAL_STATUSES:
        return HttpFault("bad_request", "fail", detail)
    if 300 <= status < 400:
        target = redact_secrets(headers.get("location", "another address"))
        return HttpFault(
            "redirect",
            "stop",
            f"HTTP {status} to {target}",
            "set the base URL to where the endpoint is",
        )

    if status == HTTPStatus.TOO_MANY_REQUESTS or _is_rate_limited(status, text):
        if _QUOTA_REGEX.search(text):
            return HttpFault(
                "quota",
                "stop",
                detail,
                _CAUSE_AND_HINT_BY_STATUS[402][1],
                concerns_all=True,
            )
        if _REQUEST_TOO_LARGE_REGEX.search(text):
            return HttpFault("bad_request", "fail", detail)
        return HttpFault("rate_limited", "wait", detail, wait=wait)
    if _CONTEXT_LENGTH_REGEX.search(text) and (
        status < 500 or status == HTTPStatus.INTERNAL_SERVER_ERROR
    ):
        return HttpFault("context", "context", detail)
    if status == HTTPStatus.INTERNAL_SERVER_ERROR and _is_refusal_of_request(text):
        return HttpFault("bad_request", "fail", detail)
    if status >= 500 or status in _RETRIED_STATUSES:
        return HttpFault(
            "server",
            "retry",
            detail,
            wait=wait,
            away=status in _UNREACHABLE_STATUSES,
        )
    if _CONTENT_FILTER_REGEX.search(text) and status in {
        HTTPStatus.BAD_REQUEST,
        HTTPStatus.FORBIDDEN,
    }:
        return HttpFault("filter", "refused", detail)
    if status == HTTPStatus.BAD_REQUEST and _WRONG_KEY_REGEX.search(text):
        return HttpFault("key", "stop", detail, _CHECK_KEY_HINT)
    if status in _CAUSE_AND_HINT_BY_STATUS and not _refuses_capability(status, text):
        name, hint = _CAUSE_AND_HINT_BY_STATUS[status]
        return HttpFault(name, "stop", detail, hint, concerns_one=status == HTTPStatus.FORBIDDEN)
    return HttpFault("bad_request", "fail", detail)


def _is_rate_limited(status: int, text: str) -> bool:
    """Tell whether another status than 429 says that calls come too fast; 413 says that one is too large."""
    refusing = status in {
        HTTPStatus.BAD_REQUEST,
        HTTPStatus.FORBIDDEN,
        HTTPStatus.SERVICE_UNAVAILABLE,
    }
    return refusing and _RATE_LIMIT_REGEX.search(text) is not None


def _is_refusal_of_request(text: str) -> bool:
    """Tell whether what is called a server's failure is its refusal of what was asked for."""
    if _INVALID_REQUEST_REGEX.search(text) or MESSAGE_ROLES_REGEX.search(text):
        return True
    return (
        _CAPABILITY_REGEX.search(text) is not None and _NOT_SUPPORTED_REGEX.search(text) is not None
    )


def _refuses_capability(status: int, text: str) -> bool:
    """Tell whether a 4xx refuses what was asked for beside the answer, and neither key nor model.

    402 speaks of money whatever it names, 407 of a proxy.
    """
    if status in {HTTPStatus.PAYMENT_REQUIRED, HTTPStatus.PROXY_AUTHENTICATION_REQUIRED}:
        return False
    if status == HTTPStatus.UNAUTHORIZED and _CREDENTIALS_REGEX.search(text):
        return False
    return any(regex.search(text) for regex in (_CAPABILITY_REGEX, MESSAGE_ROLES_REGEX))


def _read_wait_seconds(headers: Mapping[str, str], body: str) -> float | None:
    """Return the seconds to wait that headers ask for, else the body's fields or words; None without any."""
    if (seconds := read_retry_after(headers)) is not None:
        return seconds

    start = body[: 20 * _MAX_DETAIL_CHARS]
    if field_ := _RETRY_DELAY_FIELD_REGEX.search(start):
        return float(field_[1])
    if words := _WAIT_WORDS_REGEX.search(start):
        return sum(
            float(number) * _SECONDS_BY_UNIT[unit.lower()]
            for number, unit in _NUMBER_WITH_UNIT_REGEX.findall(words[1])
        )
    return None


def read_retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds to wait that a reply's headers ask for; None without any.

    `retry-after-ms` comes before `retry-after`, which is seconds or an HTTP date. A date counts
    from the reply's own `Date`, so that a wrong clock on either side does no harm.
    """
    if (milliseconds := _parse_finite_number(headers.get("retry-after-ms"))) is not None:
        return milliseconds / 1000

    value = headers.get("retry-after")
    if (seconds := _parse_finite_number(value)) is not None:
        return seconds

    until = _parse_http_date(value)
    now = _parse_http_date(headers.get("date")) or datetime.now(UTC)
    if until:
        return max((until - now).total_seconds(), 0.0)
    return None


def _parse_finite_number(value: str | None) -> float | None:
    try:
        number = float(value or "")
    except ValueError:
        return None

    if math.isfinite(number) and number >= 0:
        return number
    return None


def _parse_http_date(value: str | None) -> datetime | None:
    try:
        date = parsedate_to_datetime(value or "")
    except (ValueError, IndexError):
        return None

    if date.tzinfo:
        return date
    return date.replace(tzinfo=UTC)


def read_error_message(body: str) -> str:
    """Return the message of an error body on one line, with secrets removed."""
    try:
        error = json.loads(body)
    except (ValueError, RecursionError):
        error = body

    if isinstance(error, dict):
        error = error.get("error") or error.get("detail") or error.get("message") or body

    if isinstance(error, dict):
        words = []
        for name in ("code", "type", "message"):
            if error.get(name):
                words.append(str(error[name]))
        param = error.get("param")
        named = isinstance(param, str) and param and param not in " ".join(words)
        words += [f"(param {param})"] if named else []
        error = " ".join(words) if words else error

    return redact_secrets(" ".join(_join_lines(error).split())[:_MAX_DETAIL_CHARS])


def _join_lines(value: object) -> str:
    if isinstance(value, str):
        text = value
    else:
        text = json.dumps(value, ensure_ascii=False)

    return re.sub(r"<[^<>]{0,200}>", " ", text[: 20 * _MAX_DETAIL_CHARS])
