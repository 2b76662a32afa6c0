"""The probe of an endpoint's capabilities, by a few tiny calls before a run."""

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from http import HTTPStatus
from typing import Any

from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from pollex.errors import ModelRefused, ModelUnavailable, PollexError
from pollex.gateway.budget import Limits
from pollex.gateway.calls import (
    MESSAGE_ROLES,
    Call,
    Capabilities,
    CompletedReply,
    ContextExceeded,
    FailedCall,
    MalformedReply,
    MemoryLedger,
    MessageRoles,
    Outcome,
    TruncatedReply,
)
from pollex.gateway.endpoint import OPENAI_URL, Endpoint, warn_of_exposure
from pollex.gateway.gateway import Gateway
from pollex.gateway.json_in_text import JsonBlock, find_last_json_object, locate_json_values
from pollex.gateway.logprobs import AnswerTokens
from pollex.gateway.responses import MESSAGE_ROLES_REGEX
from pollex.gateway.transport import ChatModel, OpenAIConnection

MAX_TOP_LOGPROBS = 20
"""More `top_logprobs` than these OpenAI refuses."""

_PROBE_ANSWER_WORDS = ["amber", "basalt"]
_PROBE_ANSWER_SCHEMA = {
    "type": "object",
    "properties": {"answer": {"type": "string", "enum": _PROBE_ANSWER_WORDS}},
    "required": ["answer"],
    "additionalProperties": False,
}
_CONTEXT_WINDOW_FIELDS = (
    "max_model_len",
    "context_length",
    "context_window",
    "max_context_length",
    "n_ctx",
)
_OBJECTS_WITH_WINDOW_FIELDS = ("meta", "model_info", "capabilities", "limits")
_FEW_TOP_LOGPROBS = 5
_PROBE_TIMEOUT_SECONDS = 120.0
_DRAIN_SECONDS = 0.5
"""That a call which is out is waited for where the probe is stopped: nothing of it is kept."""
_FIRST_ANSWER_TOKENS, _MAX_ANSWER_TOKENS = 4096, 16_384
"""Tokens to write: as a run's calls ask for, and at most for a model that thinks long."""
_FEW_ANSWER_TOKENS = 1024
"""Tokens to write where the context has no room for more."""
_MAX_PARAMETERS_DROPPED_BY_NAME = 8
"""Refusals after each of which what they name is left out."""


async def probe_endpoint(
    endpoint: Endpoint | ChatModel,
    *,
    max_wait: float = 0.0,
    backoff: float = 0.5,
    deadline: float = _PROBE_TIMEOUT_SECONDS,
) -> Capabilities:
    """Probe an endpoint by one to some fifteen calls of about 30 tokens.

    What is refused is left out as the refusal names it, or where it names nothing, piece by piece.
    Only what is needed is tried: tools where no JSON schema is obeyed, JSON mode where no tool
    comes back either.

    Args:
        max_wait: Most seconds to wait for an endpoint that is away.
        backoff: Seconds, about, before a call that failed is sent again.
        deadline: Seconds after which a call is given up; two minutes at most.

    Raises:
        ModelRefused: It refuses every call: wrong key, model or address, or no credit.
        ModelUnavailable: It can't be reached, or fails.
    """
    warn_of_exposure(endpoint)
    if endpoint.keyless and isinstance(endpoint, Endpoint) and endpoint.place == OPENAI_URL:
        hint = "set OPENAI_API_KEY, or name another server"
        raise ModelRefused(
            "no API key is set",
            where=endpoint.shown,
            hint=hint,
            option="base_url",
        )

    deadline = min(deadline, _PROBE_TIMEOUT_SECONDS)
    bench = _ProbeCalls(endpoint, max_wait, backoff, deadline)
    profile = _get_model_profile(endpoint)
    call, outcome = await _find_most_capable_accepted_call(bench, _make_probe_question(profile))
    bare = replace(call, schema=_PROBE_ANSWER_SCHEMA, top_logprobs=None)
    json_schema = call.form == "json_schema" and _obeys_schema(outcome)
    tools = json_schema or _obeys_schema(await bench.ask(replace(bare, form="tool")))
    json_object = (
        tools
        or _find_json_object_in_outcome(await bench.ask(replace(bare, form="json_object")))
        is not None
    )

    return Capabilities(
        model=endpoint.model,
        json_schema=json_schema,
        tools=tools,
        json_object=json_object,
        logprobs=(call.top_logprobs or 0) if _lists_token_alternatives(outcome) else 0,
        seed=call.seed is not None,
        temperature=call.temperature is not None,
        limit_field=call.limit_field,
        stream=call.stream,
        roles=call.roles,
        most_tokens=bench.most_tokens,
        window=await _ask_for_context_window(endpoint, deadline)
        or _parse_whole_number(profile.get("max_input_tokens")),
        calls=bench.calls,
    )


def _get_model_profile(endpoint: Endpoint | ChatModel) -> Mapping[str, object]:
    """Return what LangChain's package knows of the model without a call; empty where it knows nothing.

    At an address that is not its maker's, a model of that name may be served otherwise.
    """
    if isinstance(endpoint, ChatModel):
        return endpoint.chat.profile or {}
    if endpoint.place != OPENAI_URL:
        return {}
    return ChatOpenAI(model=endpoint.model, api_key=SecretStr("none")).profile or {}


def _make_probe_question(profile: Mapping[str, object]) -> Call:
    """Make a prompt whose answer has the schema's words only if the schema is obeyed.

    It says JSON because JSON mode wants the word. A model of which it is known that it takes no
    temperature reasons, and gives no log-probabilities either.
    """
    words = "Greet me in one short JSON object."
    # in the roles of our prompts: rules, data, task
    messages = [
        {"role": "system", "content": "Be friendly."},
        {"role": "user", "content": "Hello!"},
        {"role": "system", "content": words},
    ]
    plain = Call(
        messages=messages,
        schema=_PROBE_ANSWER_SCHEMA,
        max_tokens=_FIRST_ANSWER_TOKENS,
        seed=1,
        stage="probe",
    )
    if profile.get("temperature") is False:
        return plain
    return replace(plain, temperature=0.0, top_logprobs=MAX_TOP_LOGPROBS)


class _ProbeCalls:
    """Asks the probe's calls, each once.

    Attributes:
        calls: How many were sent.
        refusal: The error that the last refused call would have ended a run with; None where it was
            no such refusal.
        most_tokens: Most tokens that a call may leave for its answer; None where none was refused.
    """

    def __init__(
        self,
        endpoint: Endpoint | ChatModel,
        max_wait: float,
        backoff: float,
        deadline: float,
    ) -> None:
        self.endpoint = endpoint
        self._limits = Limits(
            concurrency=1,
            deadline=deadline,
            max_attempts=2,
            max_wait=0.0,
            backoff=backoff,
        )
        self._max_wait = max_wait
        self._ledger = MemoryLedger()
        self._room = _FIRST_ANSWER_TOKENS
        self._served = False
        self.calls = 0
        self.refusal: PollexError | None = None
        self.most_tokens: int | None = None

    def limit_tokens(self, refusal: str) -> bool:
        """Ask for no more tokens than a refusal says; return whether it says how many there may be."""
        most = _find_token_limit(refusal, self._room)
        if most is None:
            return False

        self._room = self.most_tokens = most
        return True

    async def ask(self, call: Call) -> Outcome:
        """Ask; a model whose thoughts take all its tokens gets more, for good.

        An answer that is cut all the same says nothing of what the endpoint can do.
        """
        outcome = await self._send(replace(call, max_tokens=self._room))
        if isinstance(outcome, ContextExceeded) and self._room > _FEW_ANSWER_TOKENS:
            self._room = _FEW_ANSWER_TOKENS
            outcome = await self._send(replace(call, max_tokens=self._room))
        if self.most_tokens is not None:
            return outcome
        while isinstance(outcome, TruncatedReply) and self._room < _MAX_ANSWER_TOKENS:
            room = min(
                _MAX_ANSWER_TOKENS,
                max(4 * self._room, 2 * (outcome.usage.reasoning or 0)),
            )
            longer = await self._send(replace(call, max_tokens=room))
            if not _is_accepted_outcome(longer):
                break
            outcome = longer
            self._room = room

        return outcome

    async def _send(self, call: Call) -> Outcome:
        """Send a call; where the endpoint seems away, find out whether it is, or only away for such calls.

        Some answer with a gateway's error what they can't do. They are up where the same words are
        answered that ask for nothing else.
        """
        # What was answered before has shown that the endpoint is up: one more failure is enough.
        try:
            outcome = await self._exchange(
                call,
                replace(self._limits, max_attempts=1) if self._served else self._limits,
            )
        except ModelUnavailable as error:
            if error.fault == "connection":
                # A connection that broke tells of the network, and of nothing that the endpoint can
                # do.
                return await self._exchange(
                    call,
                    replace(self._limits, max_wait=self._max_wait),
                )
            if self._served:
                return FailedCall(fault="unavailable", detail=error.what)
            plain = _strip_optional_parameters(call)
            self._served = plain != call and await self._answers(plain)
            if not self._served and not self._max_wait:
                raise
        else:
            if _is_timeout(outcome):
                await self._require_answers(call, outcome)
            return outcome

        # It may have been away for a moment, or still be.
        if self._served:
            return await self._send(call)

        return await self._exchange(
            call,
            replace(self._limits, max_wait=self._max_wait),
        )

    async def _require_answers(self, call: Call, late: Outcome) -> None:
        """Find out whether an endpoint that let a call wait answers the same words alone.

        Raises:
            ModelUnavailable: It answers nothing in time.
        """
        if self._served:
            return

        plain = _strip_optional_parameters(call)
        if plain == call or _is_timeout(await self._exchange(plain, self._limits)):
            raise self.error(late)
        self._served = True

    async def _answers(self, call: Call) -> bool:
        try:
            await self._exchange(call, replace(self._limits, max_attempts=1))
        except ModelUnavailable:
            return False

        return True

    async def _exchange(self, call: Call, limits: Limits) -> Outcome:
        self.refusal = None
        async with Gateway(
            self.endpoint, self._ledger, limits, drain_seconds=_DRAIN_SECONDS
        ) as gateway:
            try:
                return await gateway.ask(call)
            except ModelRefused as error:
                self.refusal = error
                return FailedCall(fault="refused", detail=error.what)
            finally:
                self.calls += gateway.used.total.sent

    def error(self, outcome: Outcome) -> PollexError:
        """Return why even a plain call is not served."""
        where = self.endpoint.shown
        if self.refusal is not None:
            return self.refusal
        if isinstance(outcome, FailedCall) and outcome.fault not in {"bad_request", "refused"}:
            return ModelUnavailable(
                outcome.detail,
                where=where,
                hint="check the address and that the server runs",
            )

        hint = "check the base URL, up to and including the version, and the model's name"
        return ModelRefused(outcome.detail, where=where, hint=hint)


async def _find_most_capable_accepted_call(
    bench: _ProbeCalls, everything: Call
) -> tuple[Call, Outcome]:
    """Return the most of `everything` that the endpoint accepts, and the answer to it."""
    call = everything
    outcome = await bench.ask(everything)
    for _ in range(_MAX_PARAMETERS_DROPPED_BY_NAME):
        if _is_accepted_outcome(outcome):
            return call, outcome
        limited = bench.limit_tokens(outcome.detail)
        less = call if limited else _drop_named_parameters(call, outcome.detail)
        if less == call and not limited:
            break
        call = less
        outcome = await bench.ask(less)

    if _is_accepted_outcome(outcome):
        return call, outcome

    call = await _try_each_parameter(bench, call)
    return call, await bench.ask(call)


_REGEX_BY_PARAMETER = {
    "top_logprobs": re.compile(r"log.?prob", re.IGNORECASE),
    "temperature": re.compile(r"\btemperature\b", re.IGNORECASE),
    "seed": re.compile(r"\bseed\b", re.IGNORECASE),
    "form": re.compile(
        r"response.?format|json.?schema|structured.?(?:output|generation)|guided|grammar",
        re.IGNORECASE,
    ),
    "limit_field": re.compile(r"max_(?:completion_)?tokens", re.IGNORECASE),
    "stream": re.compile(r"\bstream(?:ing|ed)?\b", re.IGNORECASE),
    "stream_options": re.compile(r"stream_options", re.IGNORECASE),
    "roles": MESSAGE_ROLES_REGEX,
}
_TOO_MANY_TOKENS_REGEX = re.compile(
    r"too (?:large|high|many|big)|at most|maximum|less than|greater than|no more than|up to|exceed"
    r"|range|between|<=|\u2264",
    re.IGNORECASE,
)
_TOKEN_COUNT_REGEX = re.compile(r"(?<![\w.-])\d{3,5}(?!\w)")
_STATUSES = {int(status) for status in HTTPStatus}
_SMALL_NUMBER_REGEX = re.compile(r"(?<![\w.])(?:[1-9]|1\d)(?![\w.])")


def _drop_named_parameters(call: Call, refusal: str) -> Call:
    """Return the call without the parameters that a refusal names, or with what it asks for in their place."""
    words = re.sub(r"^.*?HTTP \d+", "", refusal)
    named = set()
    for name, pattern in _REGEX_BY_PARAMETER.items():
        if pattern.search(words):
            named.add(name)

    changes: dict[str, Any] = {}
    if "top_logprobs" in named and call.top_logprobs:
        fewer = (
            call.top_logprobs > _FEW_TOP_LOGPROBS and _SMALL_NUMBER_REGEX.search(words) is not None
        )
        changes["top_logprobs"] = _FEW_TOP_LOGPROBS if fewer else None
    if "temperature" in named:
        changes["temperature"] = None
    if "seed" in named:
        changes["seed"] = None
    if "form" in named:
        changes["form"] = "text"
    if "limit_field" in named and call.limit_field == "max_completion_tokens":
        changes["limit_field"] = "max_tokens"

    if "roles" in named:
        changes["roles"] = _take_fewer_roles(call.roles)
    if "stream_options" in named and call.stream == "counted":
        changes["stream"] = "bare"
    elif "stream" in named and not call.stream:
        changes["stream"] = "counted"

    return replace(call, **changes)


def _find_token_limit(refusal: str, asked: int) -> int | None:
    """Return how many tokens there may be, below those that were asked for; None where a refusal doesn't say."""
    if not (
        _REGEX_BY_PARAMETER["limit_field"].search(refusal)
        and _TOO_MANY_TOKENS_REGEX.search(refusal)
    ):
        return None

    numbers = {int(number) for number in _TOKEN_COUNT_REGEX.findall(refusal)} - _STATUSES
    return max((number for number in numbers if number < asked), default=None)


def _take_fewer_roles(roles: MessageRoles) -> MessageRoles:
    """Return the next of the message roles, fewer than `roles`; the last has none behind it."""
    place = MESSAGE_ROLES.index(roles)
    return MESSAGE_ROLES[min(place + 1, len(MESSAGE_ROLES) - 1)]


async def _try_each_parameter(bench: _ProbeCalls, everything: Call) -> Call:
    """Return the most of `everything` that the endpoint accepts, one parameter tried at a time.

    Raises:
        PollexError: It accepts nothing at all.
    """
    usual = replace(everything, top_logprobs=None)
    if everything.top_logprobs and _is_accepted_outcome(await bench.ask(usual)):
        fewer = replace(everything, top_logprobs=_FEW_TOP_LOGPROBS)
        return fewer if _is_accepted_outcome(await bench.ask(fewer)) else usual

    formless = replace(everything, form="text")
    if _is_accepted_outcome(await bench.ask(formless)):
        return formless

    plain = await _find_accepted_plain_call(bench, everything)
    accepted = replace(plain, roles=await _find_accepted_roles(bench, plain, everything.roles))
    changes: list[dict[str, Any]] = [
        {"form": everything.form},
        {"temperature": everything.temperature},
        {"seed": everything.seed},
        {"top_logprobs": min(_FEW_TOP_LOGPROBS, everything.top_logprobs or 0) or None},
        {"top_logprobs": everything.top_logprobs},
    ]
    for change in changes:
        changed = replace(plain, **change)
        if changed == plain or _is_accepted_outcome(await bench.ask(changed)):
            accepted = replace(accepted, **change)

    return accepted


async def _find_accepted_roles(bench: _ProbeCalls, plain: Call, most: MessageRoles) -> MessageRoles:
    """Return the most message roles that the endpoint accepts, `most` or fewer."""
    for roles in MESSAGE_ROLES[MESSAGE_ROLES.index(most) :]:
        if roles == plain.roles or _is_accepted_outcome(
            await bench.ask(replace(plain, roles=roles))
        ):
            return roles

    return plain.roles


async def _find_accepted_plain_call(bench: _ProbeCalls, everything: Call) -> Call:
    """Return the call without any parameter that the endpoint may not know, as it accepts it: whole or streamed."""
    none = _strip_optional_parameters(everything)
    ways: list[dict[str, Any]] = [
        {},
        {"limit_field": "max_tokens"},
        {"stream": "counted"},
        {"stream": "bare"},
    ]
    first: PollexError | None = None
    for way in ways:
        call = replace(none, **way)
        outcome = await bench.ask(call)
        if _is_accepted_outcome(outcome):
            return call
        first = first or bench.error(outcome)
        if bench.refusal is not None:
            break  # a key, a name or an address, which no other way mends

    assert first is not None
    raise first


def _strip_optional_parameters(call: Call) -> Call:
    """Return the call without any parameter that an endpoint may not know."""
    return replace(
        call,
        form="text",
        temperature=None,
        seed=None,
        top_logprobs=None,
        roles="user",
    )


async def _ask_for_context_window(endpoint: Endpoint | ChatModel, deadline: float) -> int | None:
    if isinstance(endpoint, ChatModel):
        return None

    wire = OpenAIConnection(endpoint, 1)
    try:
        reply = await wire.fetch("models", deadline)
        models = json.loads(reply.body)["data"]
        if len(models) == 1:
            model = models[0]
        else:
            model = next(row for row in models if row["id"] == endpoint.model)

        places = (model, *(model.get(name) or {} for name in _OBJECTS_WITH_WINDOW_FIELDS))
        windows = (
            _parse_whole_number(place.get(name))
            for place in places
            for name in _CONTEXT_WINDOW_FIELDS
        )
        return next((value for value in windows if value), None)
    except (
        ValueError,
        TypeError,
        LookupError,
        AttributeError,
        StopIteration,
        RecursionError,
    ):
        return None
    finally:
        await wire.close()


def _parse_whole_number(value: object) -> int | None:
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return value
    return None


def _is_timeout(outcome: Outcome) -> bool:
    return isinstance(outcome, FailedCall) and outcome.fault == "timeout"


def _is_accepted_outcome(outcome: Outcome) -> bool:
    return not isinstance(outcome, FailedCall | MalformedReply)


def _find_json_object_in_outcome(outcome: Outcome) -> JsonBlock | None:
    if isinstance(outcome, CompletedReply):
        return find_last_json_object(outcome.text)
    return None


def _obeys_schema(outcome: Outcome) -> bool:
    """Tell whether the answer is the schema's; one that was cut says nothing, and the parameter was accepted."""
    if isinstance(outcome, TruncatedReply):
        return True

    block = _find_json_object_in_outcome(outcome)
    return (
        block is not None
        and set(block.value) == {"answer"}
        and block.value["answer"] in _PROBE_ANSWER_WORDS
    )


def _lists_token_alternatives(outcome: Outcome) -> bool:
    """Tell whether alternatives came for the token that the answer begins with."""
    tokens = AnswerTokens.of(outcome.logprobs, outcome.text)
    if tokens is None:
        return False

    block = _find_json_object_in_outcome(outcome)
    if block:
        spans = locate_json_values(outcome.text, block)
    else:
        spans = {}

    start, _ = next(iter(spans.values()), (0, 0))
    return tokens.alternatives(start) > 0
