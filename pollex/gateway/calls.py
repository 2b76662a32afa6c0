"""One question to a model, as it is sent and as it is remembered.

Estimates of a text's number of tokens, without tokenizer or network.

`floor` counts runs of letters and groups of three digits: the tokenizers of GPT, Llama 3, Qwen and Mistral never join
two of these into one token, so the true count is not lower but for the odd word of an older tokenizer. `estimate` is a
rule of thumb: within a factor of 1.5 for prose and code in Latin script and of 2 elsewhere, rather too high than too
low, as a check before sending should be.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from pollex.gateway.ledger import StoredCall

_WORD = re.compile(r"(?<!['’])[^\W\d_]+|\d{1,3}")
_PIECE = re.compile(r"[^\W\d_]+|\d{1,3}|[^\w\s]+|_+")
_SIX_LETTERS = re.compile(r"[^\W\d_]{1,6}|\d{1,3}|[^\w\s]{1,6}|_{1,6}")
_LETTERS_A_TOKEN = 6
_BYTES_A_TOKEN = 3
_TOKENS_A_MESSAGE = 4


def floor(text: str) -> int:
    """Return a lower bound of the tokens in `text`."""
    return len(_WORD.findall(text))


def estimate(text: str) -> int:
    """Estimate the tokens in `text`: six letters each, or three bytes beyond ASCII."""
    if text.isascii():
        return len(_SIX_LETTERS.findall(text))
    return sum(_piece_tokens(piece) for piece in _PIECE.findall(text))


def prompt_floor(messages: Sequence[Mapping[str, Any]]) -> int:
    """Return `floor` of all messages, without their wrapping."""
    return sum(floor(content) for content in _contents(messages))


def prompt_ceiling(messages: Sequence[Mapping[str, Any]]) -> int:
    """Return an upper bound of `prompt_estimate`, from lengths alone."""
    return sum(_TOKENS_A_MESSAGE + len(content) * (1 if content.isascii() else 2) for content in _contents(messages))


def prompt_estimate(messages: Sequence[Mapping[str, Any]]) -> int:
    """Return `estimate` of all messages with their wrapping."""
    return sum(_TOKENS_A_MESSAGE + estimate(content) for content in _contents(messages))


def _piece_tokens(piece: str) -> int:
    if piece.isascii():
        return 1 + (len(piece) - 1) // _LETTERS_A_TOKEN
    return 1 + (len(piece.encode("utf-8", "replace")) - 1) // _BYTES_A_TOKEN


def _contents(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    return [content for message in messages if isinstance(content := message.get("content"), str)]


Form = Literal["json_schema", "tool", "json_object", "text"]
"""How an answer's schema is put to the endpoint; `text` leaves it to the prompt alone."""

_LONE_SURROGATE = re.compile(r"[\ud800-\udfff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A question for a model, with its settings.

    Attributes:
        messages: `role` and `content` of each, in order.
        schema: JSON schema of the answer; models write the properties in the schema's order.
        max_tokens: Most tokens to write, thinking included.
        limit_field: What the endpoint calls `max_tokens`.
        top_logprobs: How many alternatives to give for each token; None asks for no log-probabilities.
        replicate: Number of the sample where the same is asked several times.
        stage: What the call is for, in the usage table. Not part of the key.
        item: Id of what the call is about, in traces. Not part of the key.
        written: Tokens of the answer, about, for plans; 0 where nobody says. Not part of the key.
        apart: Whether no other call waits for the answer, so that it may go into a batch. Not part of the key.
        on_text: Gets the text so far while an OpenAI-compatible endpoint writes it. Not part of the key; a reply that
            is already known comes at once, without it.
    """

    messages: Sequence[Mapping[str, Any]]
    schema: Mapping[str, Any] | None = None
    schema_name: str = "answer"
    form: Form = "json_schema"
    max_tokens: int | None = None
    limit_field: Literal["max_completion_tokens", "max_tokens"] = "max_completion_tokens"
    temperature: float | None = None
    top_p: float | None = None
    seed: int | None = None
    top_logprobs: int | None = None
    replicate: int = 0
    stage: str = ""
    item: str = ""
    written: int = 0
    apart: bool = False
    on_text: Callable[[str], None] | None = field(default=None, repr=False, compare=False)

    def longer(self) -> Call:
        """Return the call with room for twice the tokens, to be asked once after `Truncated`.

        It has another key and is paid for again.
        """
        if self.max_tokens is None:
            return self
        return replace(self, max_tokens=2 * self.max_tokens)

    def payload(self, model: str, extra: Mapping[str, Any]) -> dict[str, Any]:
        """Return the request's JSON body; `extra` fields come last and win."""
        return {
            "model": model,
            "messages": list(self.messages),
            **self._answer_format(),
            **self._sampling(),
            **extra,
        }

    def _answer_format(self) -> dict[str, Any]:
        if self.schema is None or self.form == "text":
            return {}
        if self.form == "json_object":
            return {"response_format": {"type": "json_object"}}
        if self.form == "tool":
            function = {"name": self.schema_name, "parameters": self.schema, "strict": True}
            chosen = {"type": "function", "function": {"name": self.schema_name}}
            return {"tools": [{"type": "function", "function": function}], "tool_choice": chosen}
        named = {"name": self.schema_name, "schema": self.schema, "strict": True}
        return {"response_format": {"type": "json_schema", "json_schema": named}}

    def _sampling(self) -> dict[str, Any]:
        given = {
            self.limit_field: self.max_tokens,
            "temperature": self.temperature,
            "top_p": self.top_p,
            "seed": self.seed,
            "logprobs": None if self.top_logprobs is None else True,
            "top_logprobs": self.top_logprobs,
        }
        return {name: value for name, value in given.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Request:
    """A call prepared for one endpoint; its key is a hash of the bytes sent."""

    key: str
    body: bytes
    call: Call = field(repr=False)


def request_for(place: str, model: str, call: Call, extra: Mapping[str, Any] | None = None) -> Request:
    """Return the body to send and its key: SHA-256 (hex) of place, body and replicate, all that the answer depends on.

    The JSON is canonical by construction: fixed field order, no white space. Fields are not sorted, since the order of
    a schema's properties is the order in which models answer, so that two orders are two questions. Lone surrogates,
    which no JSON parser has to accept, become U+FFFD.

    Args:
        place: Base URL without user info.
        extra: Fields of the body that the endpoint needs and `Call` doesn't know.
    """
    payload = call.payload(model, extra or {})
    text = json.dumps(payload, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    try:
        body = text.encode()
    except UnicodeEncodeError:
        body = _LONE_SURROGATE.sub("\ufffd", text).encode()
    digest = hashlib.sha256(json.dumps([place, call.replicate]).encode())
    digest.update(body)
    return Request(digest.hexdigest(), body, call)


Problem = Literal["", "timeout", "connection", "certificate", "cut", "too_large"]
"""Why there is no whole reply: no time left, no connection, no trust, ended early, more than the cap."""

NO_STATUS = 0


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply, or why there is none.

    Attributes:
        status: HTTP status; 0 where none came.
        body: As it came, decoded, with keys blanked out and cut at the cap.
        headers: Names in lower case.
        detail: The exception's words, with keys blanked out.
        seconds: From sending to the last byte.
    """

    status: int = NO_STATUS
    body: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    problem: Problem = ""
    detail: str = ""
    seconds: float = 0.0

    def facts(self, attempt: int) -> dict[str, Any]:
        """Return the metadata of the reply for the ledger, without its interpretation."""
        facts: dict[str, Any] = {"status": self.status, "attempt": attempt, "seconds": round(self.seconds, 4)}
        if self.problem:
            facts |= {"problem": self.problem, "detail": self.detail}
        return facts

    @classmethod
    def stored(cls, call: StoredCall) -> Reply:
        """Return the reply that a ledger kept."""
        facts = call.outcome
        return cls(
            status=facts.get("status", NO_STATUS),
            body=call.raw,
            problem=facts.get("problem", ""),
            detail=facts.get("detail", ""),
            seconds=facts.get("seconds", 0.0),
        )
