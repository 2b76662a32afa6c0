"""The capabilities of an endpoint, and the adaptation of calls to them."""

from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, Self

from pollex.gateway.calls import Call, Form


@dataclass(frozen=True, slots=True)
class Capabilities:
    """The capabilities of an endpoint; others are left out of calls, and reported once.

    Attributes:
        json_schema: Whether a schema in `response_format` is obeyed.
        tools: Whether a forced tool call comes back and obeys its schema.
        json_object: Whether JSON mode gives JSON.
        logprobs: Alternatives of a token that may be asked for; 0 where none come for the answer's token.
        n: Whether several samples of one call come back. Nothing here relies on it.
        seed: Whether a seed is accepted; whether it is obeyed can't be told.
        temperature: Whether a temperature is accepted.
        limit_field: What it calls the most tokens to write.
        window: Tokens of its context, where it says.
        calls: What finding out took.
    """

    model: str
    json_schema: bool
    tools: bool
    json_object: bool
    logprobs: int
    n: bool
    seed: bool
    temperature: bool
    limit_field: Literal["max_completion_tokens", "max_tokens"]
    window: int | None
    calls: int

    @classmethod
    def assumed(cls, model: str) -> Self:
        """Return the capabilities assumed for an endpoint that was not probed: all."""
        return cls(
            model=model,
            json_schema=True,
            tools=True,
            json_object=True,
            logprobs=20,
            n=True,
            seed=True,
            temperature=True,
            limit_field="max_completion_tokens",
            window=None,
            calls=0,
        )

    @property
    def form(self) -> Form:
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
            seed=call.seed if self.seed else None,
            temperature=call.temperature if self.temperature else None,
            top_logprobs=listed or None,
        )

    def missing(self) -> list[str]:
        """Describe missing capabilities, one sentence each."""
        said = {
            "json_schema": f"no JSON schema: answers are asked for by {self.form.replace('_', ' ')}",
            "logprobs": "no log-probabilities of the answer's token: no distributions from a single call",
            "seed": "no seed: samples can't be repeated",
            "temperature": "no temperature: the model's own is used",
            "window": "the endpoint doesn't tell its context window: it is not checked before sending",
        }
        return [sentence for name, sentence in said.items() if not getattr(self, name)]

    def as_dict(self) -> dict[str, Any]:
        """JSON values, to be recorded with a run."""
        return asdict(self)
