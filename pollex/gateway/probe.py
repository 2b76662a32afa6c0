"""The probe of an endpoint's capabilities, by a few tiny calls before a run."""

import json
from dataclasses import replace
from typing import Any

from pollex.errors import ModelRefused, ModelUnavailable
from pollex.gateway.budget import Limits
from pollex.gateway.calls import Call, Capabilities, Completed, Failed, Malformed, MemoryLedger, Outcome
from pollex.gateway.endpoint import OPENAI, Endpoint
from pollex.gateway.gateway import Gateway
from pollex.gateway.json_in_text import Block, last_object, value_spans
from pollex.gateway.logprobs import Tokens
from pollex.gateway.transport import ChatModel, OpenAIWire

MOST_ALTERNATIVES = 20
"""More `top_logprobs` than these OpenAI refuses."""

_WORDS = ["amber", "basalt"]
_SCHEMA = {
    "type": "object",
    "properties": {"answer": {"type": "string", "enum": _WORDS}},
    "required": ["answer"],
    "additionalProperties": False,
}
_WINDOW_FIELDS = ("max_model_len", "context_length", "context_window", "max_context_length", "n_ctx")
_FEW_ALTERNATIVES = 5
_SECONDS = 60.0


async def probe(
    endpoint: Endpoint | ChatModel,
    *,
    max_wait: float = 0.0,
    backoff: float = 0.5,
) -> Capabilities:
    """Probe an endpoint by four to some ten calls of about 30 tokens.

    Args:
        max_wait: Most seconds to wait for an endpoint that is away.
        backoff: Seconds, about, before a call that failed is sent again.

    Raises:
        ModelRefused: It refuses every call: wrong key, model or address, or no credit.
        ModelUnavailable: It can't be reached, or fails.
    """
    if endpoint.keyless and isinstance(endpoint, Endpoint) and endpoint.place == OPENAI:
        remedy = "set OPENAI_API_KEY, or name another server"
        raise ModelRefused("no API key is set", where=endpoint.shown, remedy=remedy, option="base_url")
    bench = _Bench(endpoint, max_wait, backoff)
    everything = _question(temperature=0.0, seed=1, top_logprobs=MOST_ALTERNATIVES)
    call, outcome = everything, await bench.ask(everything)
    if not _accepted(outcome):
        call = await _narrowed(bench, everything)
        outcome = await bench.ask(call)
    bare = replace(call, schema=_SCHEMA, top_logprobs=None)
    return Capabilities(
        model=endpoint.model,
        json_schema=call.form == "json_schema" and _obeys(outcome),
        tools=_obeys(await bench.ask(replace(bare, form="tool"))),
        json_object=_object(await bench.ask(replace(bare, form="json_object"))) is not None,
        logprobs=(call.top_logprobs or 0) if _lists_alternatives(outcome) else 0,
        seed=call.seed is not None,
        temperature=call.temperature is not None,
        limit_field=call.limit_field,
        window=await _window(endpoint),
        calls=bench.calls,
    )


def _question(**settings: Any) -> Call:
    """Make a prompt whose answer has the schema's words only if the schema is obeyed.

    It says JSON because JSON mode wants the word, and has room for a model that thinks first.
    """
    words = "Greet me in one short JSON object."
    messages = [{"role": "user", "content": words}]
    return Call(messages=messages, schema=_SCHEMA, max_tokens=1024, stage="probe", **settings)


class _Bench:
    def __init__(self, endpoint: Endpoint | ChatModel, max_wait: float, backoff: float) -> None:
        self.endpoint = endpoint
        self._limits = Limits(concurrency=1, deadline=_SECONDS, max_wait=max_wait, backoff=backoff)
        self._ledger = MemoryLedger()
        self.calls = 0

    async def ask(self, call: Call) -> Outcome:
        async with Gateway(self.endpoint, self._ledger, self._limits) as gateway:
            outcome = await gateway.ask(call)
            self.calls += gateway.used.total.sent
        if isinstance(outcome, Failed) and outcome.fault != "bad_request":
            remedy = "check the address and that the server runs"
            raise ModelUnavailable(outcome.detail, where=self.endpoint.shown, remedy=remedy)
        return outcome


async def _narrowed(bench: _Bench, everything: Call) -> Call:
    """Return the most of `everything` that the endpoint accepts, one parameter tried at a time."""
    none = replace(everything, form="text", temperature=None, seed=None, top_logprobs=None)
    plain = none
    if not _accepted(await bench.ask(plain)):
        plain = replace(none, limit_field="max_tokens")
        if not _accepted(refusal := await bench.ask(plain)):
            remedy = "check the base URL, up to and including the version, and the model's name"
            raise ModelRefused(refusal.detail, where=bench.endpoint.shown, remedy=remedy)
    accepted = plain
    changes: list[dict[str, Any]] = [
        {"form": everything.form},
        {"temperature": everything.temperature},
        {"seed": everything.seed},
        {"top_logprobs": min(_FEW_ALTERNATIVES, everything.top_logprobs or 0)},
        {"top_logprobs": everything.top_logprobs},
    ]
    for change in changes:
        if _accepted(await bench.ask(replace(plain, **change))):
            accepted = replace(accepted, **change)
    return accepted


async def _window(endpoint: Endpoint | ChatModel) -> int | None:
    if isinstance(endpoint, ChatModel):
        return None
    wire = OpenAIWire(endpoint, 1)
    try:
        reply = await wire.fetch("models", _SECONDS)
        models = json.loads(reply.body)["data"]
        model = models[0] if len(models) == 1 else next(row for row in models if row["id"] == endpoint.model)
        found = (place.get(name) for place in (model, model.get("meta") or {}) for name in _WINDOW_FIELDS)
        return next((value for value in found if isinstance(value, int) and value > 0), None)
    except (ValueError, TypeError, LookupError, AttributeError, StopIteration):
        return None
    finally:
        await wire.close()


def _accepted(outcome: Outcome) -> bool:
    return not isinstance(outcome, Failed | Malformed)


def _object(outcome: Outcome) -> Block | None:
    return last_object(outcome.text) if isinstance(outcome, Completed) else None


def _obeys(outcome: Outcome) -> bool:
    block = _object(outcome)
    return block is not None and set(block.value) == {"answer"} and block.value["answer"] in _WORDS


def _lists_alternatives(outcome: Outcome) -> bool:
    """Tell whether alternatives came for the token that the answer begins with."""
    tokens = Tokens.of(outcome.logprobs, outcome.text)
    if tokens is None:
        return False
    block = _object(outcome)
    spans = value_spans(outcome.text, block) if block else {}
    start, _ = next(iter(spans.values()), (0, 0))
    return tokens.alternatives(start) > 0
