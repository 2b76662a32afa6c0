"""An endpoint whose replies were recorded: nothing leaves the machine, nothing is paid."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from pollex.errors import PollexError
from pollex.gateway.calls import Reply, Request
from pollex.gateway.capabilities import Capabilities
from pollex.gateway.endpoint import Endpoint

PLACE = "https://recorded.invalid/v1"
"""Stands for the address in each call's key; such a host can't exist (RFC 6761)."""


class NotRecorded(PollexError):
    """A prompt that the recording has no reply to: it was changed since, or the data was."""


@dataclass(frozen=True)
class RecordedEndpoint(Endpoint):
    """A model whose replies are in a file, by the key of the call.

    Attributes:
        file: JSON lines, packed by gzip, with `key`, `stage`, `item` and `body`, the reply as it came.
    """

    base_url: str = PLACE
    file: Path = field(kw_only=True)

    @cached_property
    def shown(self) -> str:
        """What messages and files call the place."""
        return "a recording"

    @cached_property
    def replies(self) -> Mapping[str, str]:
        """The recorded replies by key."""
        if not self.file.exists():
            return {}
        lines = map(json.loads, gzip.decompress(self.file.read_bytes()).decode().splitlines())
        return {line["key"]: line["body"] for line in lines}

    @property
    def capabilities(self) -> Capabilities:
        """What the model could do when it was recorded."""
        return replace(Capabilities.assumed(self.model), tools=False, json_object=False, logprobs=0, n=False)

    def wire(self) -> RecordedWire:
        """Return a wire to the recording."""
        return RecordedWire(self)


class RecordedWire:
    """Answers from the recording."""

    def __init__(self, endpoint: RecordedEndpoint) -> None:
        self._endpoint = endpoint

    async def send(self, request: Request, seconds: float) -> Reply:  # noqa: ARG002
        """Return the recorded reply.

        Raises:
            NotRecorded: There is none.
        """
        body = self._endpoint.replies.get(request.key)
        if body is None:
            raise NotRecorded(
                f"no reply to this prompt was recorded: {request.call.stage} of {request.call.item}",
                where=str(self._endpoint.file),
                remedy="record it (`make record`), or look at the recorded result",
            )
        return Reply(status=200, body=body)

    async def close(self) -> None:
        """Do nothing: nothing is open."""
