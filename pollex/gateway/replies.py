"""What came back for a sent call, before anybody reads it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pollex.gateway.ledger import StoredCall

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
        """What the ledger keeps beside the body. What the reply means is not in it: that is always read anew."""
        facts: dict[str, Any] = {"status": self.status, "attempt": attempt, "seconds": round(self.seconds, 4)}
        if self.problem:
            facts |= {"problem": self.problem, "detail": self.detail}
        return facts

    @classmethod
    def stored(cls, call: StoredCall) -> Reply:
        """The reply that a ledger kept."""
        facts = call.outcome
        return cls(
            status=facts.get("status", NO_STATUS),
            body=call.raw,
            problem=facts.get("problem", ""),
            detail=facts.get("detail", ""),
            seconds=facts.get("seconds", 0.0),
        )
