"""The outcomes of a call: each call has exactly one; only `Completed` has an answer.

Outcome
├── Completed           the model wrote its answer to the end
├── Refused             the model or a filter declined, or wrote nothing
├── Truncated           the answer stops at the token limit
├── ContextExceeded     the prompt is longer than the window
├── SilentlyTruncated   the server read only part of the prompt and did not say so
├── Malformed           the reply is not what the protocol promises
└── Failed              no reply that could be used: time, network, server, bad request
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

Kind = Literal[
    "completed",
    "refused",
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
        detail: Cause in words; empty for `Completed`.
        text: What the model wrote, if it wrote anything.
        logprobs: One entry a token as it came; None where none came. See `logprobs`.
        finish_reason: As it came.
        model: The model that says it answered; may differ from the one asked.
        fingerprint: The backend's, where it tells.
        attempts: Calls sent for it in this run; 0 where the ledger knew the reply or none was needed.
        seconds: Duration of the last attempt.
    """

    kind: ClassVar[Kind]

    key: str = ""
    detail: str = ""
    text: str = ""
    logprobs: Sequence[Any] | None = field(default=None, repr=False)
    finish_reason: str = ""
    model: str = ""
    fingerprint: str = ""
    usage: Usage = field(default_factory=Usage)
    attempts: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Completed(Outcome):
    """The model wrote its answer to the end."""

    kind: ClassVar[Kind] = "completed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused(Outcome):
    """The model or a filter declined, or wrote nothing."""

    kind: ClassVar[Kind] = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class Truncated(Outcome):
    """The answer stops at the token limit; `Call.longer` may be asked once."""

    kind: ClassVar[Kind] = "truncated"


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextExceeded(Outcome):
    """The prompt is longer than the window; said by the server, or known before sending."""

    kind: ClassVar[Kind] = "context_exceeded"


@dataclass(frozen=True, slots=True, kw_only=True)
class SilentlyTruncated(Outcome):
    """The server counted far fewer prompt tokens than were sent. Its text answers another question."""

    kind: ClassVar[Kind] = "silently_truncated"


@dataclass(frozen=True, slots=True, kw_only=True)
class Malformed(Outcome):
    """The reply is not what the protocol promises."""

    kind: ClassVar[Kind] = "unparsable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed(Outcome):
    """No reply that could be used.

    Attributes:
        fault: What failed, one word: `timeout`, `connection`, `server`, `rate_limited`, `bad_request`. Opens `detail`.
    """

    kind: ClassVar[Kind] = "error"

    fault: str
