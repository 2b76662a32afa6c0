"""The protocol of a ledger of paid calls; `MemoryLedger` forgets on exit.

The store implements it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

LEASE = 120.0
"""Seconds for which a call that is out is nobody else's, unless it may take longer."""


@dataclass(frozen=True, slots=True)
class StoredCall:
    """The last reply that came for a key.

    Attributes:
        key: See `calls.request_for`.
        outcome: Facts about the reply, as `replies.Reply.facts` gives them: JSON values.
        raw: The body as it came, with keys blanked out and cut at the cap.
    """

    key: str
    outcome: dict[str, Any]
    raw: str


class Ledger(Protocol):
    """Two entries for each sent call: an intent before, a record after.

    An intent without a record was possibly billed. It is a lease, too: until the record, or until it runs out, nobody
    else who shares the ledger may send the same.
    """

    async def lookup(self, key: str) -> StoredCall | None:
        """Return the last record of `key`, None when there is none."""

    async def intend(self, key: str, attempt: int, about: Mapping[str, Any], seconds: float = LEASE) -> bool:
        """Record durably, before it returns, that a call is about to be sent.

        Args:
            seconds: The lease: what the call may take at most.

        Returns:
            False where it must not be sent: somebody else has it out, or has its reply to this attempt already.
        """

    async def is_out(self, key: str) -> bool:
        """Return whether somebody else has the call out."""

    async def record(self, key: str, attempt: int, outcome: Mapping[str, Any], raw: str) -> None:
        """Record durably, before it returns, what came back."""


@dataclass(slots=True)
class MemoryLedger:
    """A ledger in memory, for tests and calls that need not be kept."""

    calls: dict[str, StoredCall] = field(default_factory=dict)
    intents: list[tuple[str, int]] = field(default_factory=list)

    async def lookup(self, key: str) -> StoredCall | None:
        """See `Ledger`."""
        return self.calls.get(key)

    async def intend(self, key: str, attempt: int, about: Mapping[str, Any], seconds: float = LEASE) -> bool:  # noqa: ARG002
        """See `Ledger`."""
        self.intents.append((key, attempt))
        return True

    async def is_out(self, key: str) -> bool:  # noqa: ARG002
        """See `Ledger`."""
        return False

    async def record(self, key: str, attempt: int, outcome: Mapping[str, Any], raw: str) -> None:  # noqa: ARG002
        """See `Ledger`."""
        self.calls[key] = StoredCall(key, dict(outcome), raw)
