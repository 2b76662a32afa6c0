"""One question to a model: what the endpoint can do, how it is sent, what it comes to, and how it is remembered.

Estimates of a text's number of tokens, without tokenizer or network.

`compute_lower_token_bound` counts runs of letters and groups of three digits: the tokenizers of GPT, Llama 3, Qwen and
Mistral never join two of these into one token, so the true count is not lower but for the odd word
of an older tokenizer. `estimate_tokens` is a rule of thumb: within a factor of 1.5 for prose and code in
Latin script and of 2 elsewhere, rather too high than too low, as a check before sending should be.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, Protocol, get_args

CALL_LEASE_SECONDS = 120.0
"""Seconds for which a call that is out is nobody else's, unless it may take longer."""


@dataclass(frozen=True, slots=True)
class StoredReply:
    """The last reply that came for a key.

    Attributes:
        key: See `calls.make_model_request`.
        outcome: Facts about the reply, as `Reply.facts` gives them: JSON values.
        raw: The body as it came, with keys blanked out and cut at the cap.
    """

    key: str
    outcome: dict[str, Any]
    raw: str


class Ledger(Protocol):
    """Two entries for each sent call: an intent before, a record after.

    An intent without a record was possibly billed. It is a lease, too: until the record, or until
    it runs out, nobody else who shares the ledger may send the same.
    """

    async def lookup(self, key: str) -> StoredReply | None:
        """Return the last record of `key`, None when there is none."""

    async def intend(
        self,
        key: str,
        attempt: int,
        about: Mapping[str, object],
        seconds: float = CALL_LEASE_SECONDS,
    ) -> bool:
        """Record durably, before it returns, that a call is about to be sent.

        Args:
            seconds: The lease: what the call may take at most.

        Returns:
            False where it must not be sent: somebody else has it out, or has its reply to this
            attempt already.
        """

    async def is_out(self, key: str) -> bool:
        """Return whether somebody else has the call out."""

    async def record(
        self,
        key: str,
        attempt: int,
        outcome: Mapping[str, object],
        raw: str,
    ) -> None:
        """Record durably, before it returns, what came back."""


@dataclass(slots=True)
class MemoryLedger:
    """A ledger in memory, for tests and calls that need not be kept."""

    calls: dict[str, StoredReply] = field(default_factory=dict)
    intents: list[tuple[str, int]] = field(default_factory=list)

    async def lookup(self, key: str) -> StoredReply | None:
        return self.calls.get(key)

    async def intend(
        self,
        key: str,
        attempt: int,
        about: Mapping[str, object],  # noqa: ARG002
        seconds: float = CALL_LEASE_SECONDS,  # noqa: ARG002
    ) -> bool:
        self.intents.append((key, attempt))
        return True

    async def is_out(self, key: str) -> bool:  # noqa: ARG002
        return False

    async def record(self, key: str, attempt: int, outcome: Mapping[str, object], raw: str) -> None:  # noqa: ARG002
        self.calls[key] = StoredReply(key, dict(outcome), raw)


OutcomeKind = Literal[
    "completed",
    "refused",
    "empty",
    "truncated",
    "context_exceeded",
    "silently_truncated",
    "unparsable",
    "error",
]
"""The words are those of `Unanswered.outcome`."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as the endpoint counted them; None if it did not say.

    Attributes:
        prompt: Read, `cached` ones included.
        completion: Written, `reasoning` ones included.
    """

    prompt: int | None = None
    completion: int | None = None
    cached: int | None = None
    reasoning: int | None = None

    @property
    def known(self) -> bool:
        """Whether the cost is known."""
        return self.prompt is not None and self.completion is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Properties of all outcomes.

    Attributes:
        kind: One word for counting.
        key: The call's key, under which the ledger keeps the reply.
        detail: Cause in words; empty for `CompletedReply`.
        text: What the model wrote, if it wrote anything.
        logprobs: One entry a token as it came; None where none came. See `logprobs`.
        finish_reason: As it came.
        model: The model that says it answered; may differ from the one asked.
        fingerprint: The backend's, where it tells.
        attempts: Calls sent for it in this run; 0 where the ledger knew the reply or none was
            needed.
        seconds: Duration of the last attempt.
    """

    kind: ClassVar[OutcomeKind]

    key: str = ""
    detail: str = ""
    text: str = ""
    logprobs: Sequence[object] | None = field(default=None, repr=False)
    finish_reason: str = ""
    model: str = ""
    fingerprint: str = ""
    usage: Usage = field(default_factory=Usage)
    attempts: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletedReply(Outcome):
    """The model wrote its answer to the end."""

    kind: ClassVar[OutcomeKind] = "completed"


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedReply(Outcome):
    """The model or a filter declined."""

    kind: ClassVar[OutcomeKind] = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class EmptyReply(Outcome):
    """The model wrote nothing that is an answer; `detail` has what came in its place."""

    kind: ClassVar[OutcomeKind] = "empty"


@dataclass(frozen=True, slots=True, kw_only=True)
class TruncatedReply(Outcome):
    """The answer stops at the token limit; `Call.longer` may be asked once."""

    kind: ClassVar[OutcomeKind] = "truncated"


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextExceeded(Outcome):
    """The prompt is longer than the window; said by the server, or known before sending."""

    kind: ClassVar[OutcomeKind] = "context_exceeded"


@dataclass(frozen=True, slots=True, kw_only=True)
class TruncatedPrompt(Outcome):
    """The server counted far fewer prompt tokens than were sent. Its text answers another question."""

    kind: ClassVar[OutcomeKind] = "silently_truncated"


@dataclass(frozen=True, slots=True, kw_only=True)
class MalformedReply(Outcome):
    """The reply is not what the protocol promises."""

    kind: ClassVar[OutcomeKind] = "unparsable"


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedCall(Outcome):
    """No reply that could be used.

    Attributes:
        fault: What failed, one word: `timeout`, `connection`, `server`, `rate_limited`,
            `bad_request`. Opens `detail`.
    """

    kind: ClassVar[OutcomeKind] = "error"

    fault: str


_WORD_OR_NUMBER_REGEX = re.compile(r"(?<!['’])[^\W\d_]+|\d{1,3}")
_TOKEN_PIECE_REGEX = re.compile(r"[^\W\d_]+|\d{1,3}|[^\w\s]+|_+")
_SIX_LETTER_PIECE_REGEX = re.compile(r"[^\W\d_]{1,6}|\d{1,3}|[^\w\s]{1,6}|_{1,6}")
_WRAPPING_TOKENS_PER_MESSAGE = 4


def compute_lower_token_bound(text: str) -> int:
    """Return a lower bound of the tokens in `text`."""
    return len(_WORD_OR_NUMBER_REGEX.findall(text))


def estimate_tokens(text: str) -> int:
    """Estimate the tokens in `text`: six letters each, or three bytes beyond ASCII."""
    if text.isascii():
        return len(_SIX_LETTER_PIECE_REGEX.findall(text))

    parts = _TOKEN_PIECE_REGEX.findall(text)
    sizes = (
        (len(part), 6) if part.isascii() else (len(part.encode("utf-8", "replace")), 3)
        for part in parts
    )
    return sum(1 + (size - 1) // of_a_token for size, of_a_token in sizes)


def compute_lower_prompt_token_bound(messages: Sequence[Mapping[str, object]]) -> int:
    """Return `compute_lower_token_bound` of all messages, without their wrapping."""
    return sum(compute_lower_token_bound(content) for content in _list_message_contents(messages))


def compute_upper_prompt_token_bound(messages: Sequence[Mapping[str, object]]) -> int:
    """Return an upper bound of `estimate_prompt_tokens`, from lengths alone."""
    return sum(
        _WRAPPING_TOKENS_PER_MESSAGE + len(content) * (1 if content.isascii() else 2)
        for content in _list_message_contents(messages)
    )


def estimate_prompt_tokens(messages: Sequence[Mapping[str, object]]) -> int:
    """Return `estimate_tokens` of all messages with their wrapping."""
    return sum(
        _WRAPPING_TOKENS_PER_MESSAGE + estimate_tokens(content)
        for content in _list_message_contents(messages)
    )


def _list_message_contents(messages: Sequence[Mapping[str, object]]) -> list[str]:
    contents: list[str] = []
    for message in messages:
        if isinstance(content := message.get("content"), str):
            contents.append(content)
    return contents


AnswerForm = Literal["json_schema", "tool", "json_object", "text"]
"""How an answer's schema is put to the endpoint; `text` leaves it to the prompt alone."""

StreamingMode = Literal["", "counted", "bare"]
"""Whether a reply comes in parts: not, with the count of tokens at its end, or without."""

_BODY_FIELDS_BY_STREAMING: dict[StreamingMode, dict[str, object]] = {
    "": {},
    "counted": {"stream": True, "stream_options": {"include_usage": True}},
    "bare": {"stream": True},
}

MessageRoles = Literal["any", "system_first", "alternating", "user"]
"""Roles that messages may have, fewer each: a system message anywhere; at the beginning alone; so,
and no two of the user in a row; the user's alone."""

MESSAGE_ROLES: tuple[MessageRoles, ...] = get_args(MessageRoles)

_LONE_SURROGATE_REGEX = re.compile(r"[\ud800-\udfff]")


def arrange_messages(
    messages: Sequence[Mapping[str, Any]], roles: MessageRoles
) -> list[Mapping[str, Any]]:
    """Give messages the roles that an endpoint takes; what they say and its order stay."""
    if roles == "any":
        return list(messages)

    arranged: list[Mapping[str, Any]] = []
    for place, message in enumerate(messages):
        moved = message["role"] == "system" and (place > 0 or roles == "user")
        if moved:
            message = {**message, "role": "user"}

        # two messages of the user in a row become one
        before = arranged[-1] if arranged else None
        if (
            roles != "system_first"
            and before is not None
            and before["role"] == message["role"] == "user"
            and isinstance(before["content"], str)
            and isinstance(message["content"], str)
        ):
            joined = f"{before['content']}\n\n{message['content']}"
            arranged[-1] = {**before, "content": joined}
        else:
            arranged.append(message)

    return arranged


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A question for a model, with its settings.

    Attributes:
        messages: `role` and `content` of each, in order.
        schema: JSON schema of the answer; models write the properties in the schema's order.
        max_tokens: Most tokens to write, thinking included.
        limit_field: What the endpoint calls `max_tokens`.
        roles: Roles that the endpoint takes; see `arrange_messages`.
        top_logprobs: How many alternatives to give for each token; None asks for no
            log-probabilities.
        stream: How the reply is streamed, for an endpoint that serves nothing else.
        replicate: Number of the sample where the same is asked several times.
        stage: What the call is for, in the usage table. Not part of the key.
        item: Id of what the call is about, in traces. Not part of the key.
        written: Tokens of the answer, about, for plans; 0 where nobody says. Not part of the key.
        apart: Whether no other call waits for the answer, so that it may go into a batch. Not part
            of the key.
        on_text: Gets the text so far while an OpenAI-compatible endpoint writes it. Not part of the
            key; a reply that is already known comes at once, without it.
    """

    messages: Sequence[Mapping[str, Any]]
    schema: Mapping[str, Any] | None = None
    schema_name: str = "answer"
    form: AnswerForm = "json_schema"
    max_tokens: int | None = None
    limit_field: Literal["max_completion_tokens", "max_tokens"] = "max_completion_tokens"
    roles: MessageRoles = "any"
    temperature: float | None = None
    top_p: float | None = None
    seed: int | None = None
    top_logprobs: int | None = None
    stream: StreamingMode = ""
    replicate: int = 0
    stage: str = ""
    item: str = ""
    written: int = 0
    apart: bool = False
    on_text: Callable[[str], None] | None = field(
        default=None,
        repr=False,
        compare=False,
    )

    def longer(self) -> Call:
        """Return the call with room for twice the tokens, to be asked once after `TruncatedReply`.

        It has another key and is paid for again.
        """
        if self.max_tokens is None:
            return self
        return replace(self, max_tokens=2 * self.max_tokens)

    def payload(self, model: str, extra: Mapping[str, object]) -> dict[str, object]:
        """Return the request's JSON body; `extra` fields come last and win."""
        # what isn't set is left to the endpoint
        settings = {
            self.limit_field: self.max_tokens,
            "temperature": self.temperature,
            "top_p": self.top_p,
            "seed": self.seed,
            "logprobs": None if self.top_logprobs is None else True,
            "top_logprobs": self.top_logprobs,
        }
        sampling = {}
        for name, value in settings.items():
            if value is not None:
                sampling[name] = value

        fields = {
            **self._answer_format(),
            **sampling,
            **_BODY_FIELDS_BY_STREAMING[self.stream],
        }

        return {
            "model": model,
            "messages": arrange_messages(self.messages, self.roles),
            **fields,
            **extra,
        }

    def _answer_format(self) -> dict[str, object]:
        if self.schema is None or self.form == "text":
            return {}
        if self.form == "json_object":
            return {"response_format": {"type": "json_object"}}
        if self.form == "tool":
            function = {
                "name": self.schema_name,
                "parameters": self.schema,
                "strict": True,
            }
            chosen = {"type": "function", "function": {"name": self.schema_name}}
            return {
                "tools": [{"type": "function", "function": function}],
                "tool_choice": chosen,
            }

        named = {
            "name": self.schema_name,
            "schema": self.schema,
            "strict": True,
        }
        return {"response_format": {"type": "json_schema", "json_schema": named}}


@dataclass(frozen=True, slots=True)
class Request:
    """A call prepared for one endpoint; its key is a hash of the bytes sent."""

    key: str
    body: bytes
    call: Call = field(repr=False)


def make_model_request(
    place: str,
    model: str,
    call: Call,
    extra: Mapping[str, object] | None = None,
) -> Request:
    """Return the body to send and its key: SHA-256 (hex) of place, body and replicate, all that the answer depends on.

    The JSON is canonical by construction: fixed field order, no white space. Fields are not sorted,
    since the order of a schema's properties is the order in which models answer, so that two orders
    are two questions. Lone surrogates, which no JSON parser has to accept, become U+FFFD.

    Args:
        place: Base URL without user info.
        extra: Fields of the body that the endpoint needs and `Call` doesn't know.
    """
    # the bytes that are hashed are those that are sent
    payload = call.payload(model, extra or {})
    text = json.dumps(
        payload,
        ensure_ascii=False,
        separators=(",", ":"),
        allow_nan=False,
    )
    try:
        body = text.encode()
    except UnicodeEncodeError:
        body = _LONE_SURROGATE_REGEX.sub("\ufffd", text).encode()

    digest = hashlib.sha256(json.dumps([place, call.replicate]).encode())
    digest.update(body)
    return Request(digest.hexdigest(), body, call)


ConnectionProblem = Literal["", "timeout", "connection", "certificate", "cut", "too_large"]
"""Why there is no whole reply: no time left, no connection, no trust, ended early, more than the cap."""

NO_HTTP_STATUS = 0


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

    status: int = NO_HTTP_STATUS
    body: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    problem: ConnectionProblem = ""
    detail: str = ""
    seconds: float = 0.0

    def facts(self, attempt: int) -> dict[str, object]:
        """Return the metadata of the reply for the ledger, without its interpretation."""
        facts: dict[str, object] = {
            "status": self.status,
            "attempt": attempt,
            "seconds": round(self.seconds, 4),
        }
        if self.problem:
            facts |= {"problem": self.problem, "detail": self.detail}
        return facts

    @classmethod
    def stored(cls, call: StoredReply) -> Reply:
        """Return the reply that a ledger kept."""
        facts = call.outcome
        stored_facts = {}
        for name in ("status", "problem", "detail", "seconds"):
            if name in facts:
                stored_facts[name] = facts[name]

        return cls(body=call.raw, **stored_facts)


_NOTE_BY_ANSWER_FORM: dict[AnswerForm, str] = {
    "json_schema": "",
    "tool": "answers are asked for by a forced tool call",
    "json_object": "answers are asked for by JSON mode, with the schema in the prompt",
    "text": "answers are asked for by text, with the schema in the prompt",
}


_DATA_NOTE = "the boundary around data alone keeps the two apart"
_NOTES_BY_ROLES: dict[MessageRoles, list[str]] = {
    "any": [],
    "system_first": [f"no system message behind the data: the task is the user's, {_DATA_NOTE}"],
    "alternating": [
        f"no two messages of the user in a row: the task stands below the data, {_DATA_NOTE}"
    ],
    "user": [f"no system message: rules, data and task are one message, {_DATA_NOTE}"],
}


@dataclass(frozen=True, slots=True)
class Capabilities:
    """The capabilities of an endpoint; others are left out of calls, and reported once. One not probed has all.

    Attributes:
        json_schema: Whether a schema in `response_format` is obeyed.
        tools: Whether a forced tool call comes back and obeys its schema; not tried where a JSON
            schema is obeyed.
        json_object: Whether JSON mode gives JSON; not tried where one of these is obeyed.
        logprobs: Alternatives of a token that may be asked for; 0 where none come for the answer's
            token.
        seed: Whether a seed is accepted; whether it is obeyed can't be told.
        temperature: Whether a temperature is accepted.
        limit_field: What it calls the most tokens to write.
        stream: How replies are streamed, where it serves nothing else.
        roles: Roles that messages may have.
        most_tokens: Most tokens that a call may leave for its answer; None where none was refused.
        window: Tokens of its context, where it says.
        calls: What finding out took.
    """

    __pydantic_config__: ClassVar = {"extra": "ignore"}  # sets of earlier versions record more

    model: str
    json_schema: bool = True
    tools: bool = True
    json_object: bool = True
    logprobs: int = 20
    seed: bool = True
    temperature: bool = True
    limit_field: Literal["max_completion_tokens", "max_tokens"] = "max_completion_tokens"
    window: int | None = None
    calls: int = 0
    stream: StreamingMode = ""
    roles: MessageRoles = "any"
    most_tokens: int | None = None

    @property
    def form(self) -> AnswerForm:
        """The strictest supported way to ask for an answer in a schema.

        Below `tool`, the prompt has to show the schema.
        """
        if self.json_schema:
            return "json_schema"
        if self.tools:
            return "tool"
        return "json_object" if self.json_object else "text"

    def fit(self, call: Call) -> Call:
        """Return `call` without what the endpoint doesn't support."""
        listed = min(call.top_logprobs or 0, self.logprobs)
        return replace(
            call,
            form=self.form,
            limit_field=self.limit_field,
            stream=self.stream,
            roles=self.roles,
            seed=call.seed if self.seed else None,
            temperature=call.temperature if self.temperature else None,
            top_logprobs=listed or None,
            max_tokens=self._limit_tokens(call.max_tokens),
        )

    def _limit_tokens(self, asked: int | None) -> int | None:
        if asked is None or self.most_tokens is None:
            return asked
        return min(asked, self.most_tokens)

    def missing(self) -> list[str]:
        """Describe missing capabilities and what is lost without them, one sentence each."""
        sentences = {
            "json_schema": f"no JSON schema: {_NOTE_BY_ANSWER_FORM[self.form]}; "
            "an answer in another form is asked for once more",
            "logprobs": "no log-probabilities of the answer's token: no distributions from a single call, only the "
            "answer itself; `--samples 5` asks five times and counts",
            "seed": "no seed: samples can't be repeated",
            "temperature": "no temperature: the model's own is used, and answers may differ from run to run",
            "window": "the endpoint doesn't tell its context window: it is not checked before sending",
        }
        short = [f"answers have {self.most_tokens} tokens at most"] if self.most_tokens else []
        missing = [sentence for name, sentence in sentences.items() if not getattr(self, name)]
        return [*missing, *short, *_NOTES_BY_ROLES[self.roles]]
