"""Which replies are faults, and what each fault calls for. The one place that knows how providers say no."""

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

from pollex.gateway.redaction import redacted
from pollex.gateway.replies import Reply

Action = Literal["retry", "wait", "fail", "stop", "refused", "context"]
"""Send again soon; send again when the endpoint allows; give this call up; give all up; two outcomes of their own."""

_CONTEXT = re.compile(
    r"context[_ ]length|context window|context[_ ]size|maximum context|prompt is too long|too many (?:input )?tokens"
    r"|input (?:is )?too long|reduce the length of the (?:messages|prompt|input)"
    r"|exceeds? the (?:model'?s )?max(?:imum)? (?:input|sequence|model)",
    re.IGNORECASE,
)
_QUOTA = re.compile(r"insufficient_(?:quota|balance|credit)|billing|exceeded your current quota|payment", re.IGNORECASE)
_FILTERED = re.compile(r"content[_ ]?filter|content management policy|content_policy|moderation|flagged", re.IGNORECASE)
_INVALID = re.compile(r"\bvalidation error|literal_error|failed to parse (?:grammar|json)", re.IGNORECASE)
"""Servers built on FastAPI, llama-cpp-python's for one, may call a request that they don't understand a 500."""
_NEVER_FITS = re.compile(r"request too large", re.IGNORECASE)

_CHECK_KEY = "check the API key, then resume"
_REMEDIES: dict[int, tuple[str, str]] = {
    401: ("key", _CHECK_KEY),
    402: ("quota", "add credit or raise the quota, then resume"),
    403: ("key", "check what the API key may use, then resume"),
    404: ("model", "check the model's name and the base URL, then resume"),
    405: ("address", "check the base URL, then resume"),
    407: ("proxy", "check the proxy's user and password, then resume"),
}
_RETRIED = {HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.CONFLICT, HTTPStatus.TOO_EARLY}
_LONGEST_DETAIL = 300


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a reply is no answer.

    Attributes:
        name: One word, see `Failed.fault`.
        detail: The endpoint's words on one line, secrets blanked out.
        remedy: What to do, for faults that stop everything.
        wait: Seconds that the endpoint asks to wait; None where it doesn't say.
    """

    name: str
    action: Action
    detail: str = ""
    remedy: str = ""
    wait: float | None = None


def fault_of(reply: Reply) -> Fault | None:
    """The fault that `reply` is, None for a whole reply with status 200."""
    if reply.problem == "timeout":
        return Fault("timeout", "fail", reply.detail)
    if reply.problem == "connection":
        return Fault("connection", "retry", reply.detail)
    if reply.problem == "certificate":
        return Fault("certificate", "stop", reply.detail, "check the address and its certificate, then resume")
    if reply.status == HTTPStatus.OK:
        return None
    return _status_fault(reply.status, reply.headers, error_text(reply.body))


def _status_fault(status: int, headers: Mapping[str, str], text: str) -> Fault:
    detail = f"HTTP {status} {text}".strip()
    if 300 <= status < 400:
        target = redacted(headers.get("location", "another address"))
        return Fault("redirect", "stop", f"HTTP {status} to {target}", "set the base URL to where the endpoint is")
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        return _too_many(headers, text, detail)
    if _CONTEXT.search(text) and (status < 500 or status == HTTPStatus.INTERNAL_SERVER_ERROR):
        return Fault("context", "context", detail)
    if status == HTTPStatus.INTERNAL_SERVER_ERROR and _INVALID.search(text):
        return Fault("bad_request", "fail", detail)
    if status >= 500 or status in _RETRIED:
        return Fault("server", "retry", detail, wait=retry_after(headers))
    if _FILTERED.search(text) and status in {HTTPStatus.BAD_REQUEST, HTTPStatus.FORBIDDEN}:
        return Fault("filter", "refused", detail)
    if status in _REMEDIES:
        name, remedy = _REMEDIES[status]
        return Fault(name, "stop", detail, remedy)
    return Fault("bad_request", "fail", detail)


def _too_many(headers: Mapping[str, str], text: str, detail: str) -> Fault:
    if _QUOTA.search(text):
        return Fault("quota", "stop", detail, _REMEDIES[402][1])
    if _NEVER_FITS.search(text):
        return Fault("bad_request", "fail", detail)
    return Fault("rate_limited", "wait", detail, wait=retry_after(headers))


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait that a reply's headers ask for; None when they ask for none or for nonsense.

    `retry-after-ms` comes before `retry-after`, which is seconds or an HTTP date. A date counts from the reply's own
    `Date`, so that a wrong clock on either side does no harm.
    """
    if (milliseconds := _number(headers.get("retry-after-ms"))) is not None:
        return milliseconds / 1000
    value = headers.get("retry-after")
    if (seconds := _number(value)) is not None:
        return seconds
    until, now = _date(value), _date(headers.get("date")) or datetime.now(UTC)
    return max((until - now).total_seconds(), 0.0) if until else None


def _number(value: str | None) -> float | None:
    try:
        number = float(value or "")
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None


def _date(value: str | None) -> datetime | None:
    try:
        date = parsedate_to_datetime(value or "")
    except (ValueError, IndexError):
        return None
    return date if date.tzinfo else date.replace(tzinfo=UTC)


def error_text(body: str) -> str:
    """The code and message of an error body, or its beginning, on one line with secrets blanked out."""
    try:
        error = json.loads(body)
    except (ValueError, RecursionError):
        error = body
    if isinstance(error, dict):
        error = error.get("error", error.get("detail", error.get("message", body)))
    if isinstance(error, dict):
        error = " ".join(str(error[name]) for name in ("code", "type", "message") if error.get(name))
    return redacted(" ".join(_plain(error).split())[:_LONGEST_DETAIL])


def _plain(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return re.sub(r"<[^<>]{0,200}>", " ", text[: 20 * _LONGEST_DETAIL])
