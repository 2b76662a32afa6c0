"""OpenAI's batches, and those of servers that follow its protocol.

A file of lines is uploaded, a batch made of it; answers come as two files, one for what failed. Both are read whatever
the batch came to, for one that expired or was canceled has answers, too.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from pollex.errors import ModelUnavailable
from pollex.gateway.batches.client import BatchClient
from pollex.gateway.batches.provider import Answer, Line, Standing, Submission, answer_in, request_line
from pollex.gateway.budget import Limits
from pollex.gateway.endpoint import Endpoint

ENDED = frozenset({"completed", "failed", "expired", "cancelled"})
DIGEST = "pollex_digest"
"""Name of the metadata by which a batch is found that was created though no reply came."""


class OpenAIBatches:
    """See `Provider`."""

    name = "openai"
    most_lines = 50_000
    most_bytes = 190_000_000

    def __init__(self, endpoint: Endpoint, limits: Limits) -> None:
        headers = {"Authorization": endpoint.authorization} if endpoint.authorization else {}
        self._client = BatchClient(endpoint, headers, limits)
        self._shown = endpoint.shown

    def where(self, id_: str) -> str:
        """See `Provider`."""
        return id_

    async def create(self, submission: Submission, lines: Sequence[Line]) -> str:
        """See `Provider`."""
        content = b"".join(request_line(submission, line) for line in lines)
        file = (f"pollex-{submission.tag}.jsonl", content, "application/jsonl")
        with self._client.told():
            uploaded = await self._client.files.create(file=file, purpose="batch")
        if not getattr(uploaded, "id", ""):
            raise ModelUnavailable("the upload of the batch's file gave no id", where=self._shown)
        batch = {
            "input_file_id": uploaded.id,
            "endpoint": "/v1/chat/completions",
            "completion_window": "24h",
            "metadata": {DIGEST: submission.digest, "part": str(submission.size)},
        }
        return await self._client.once("/batches", batch)

    async def find(self, submission: Submission) -> str | None:
        """See `Provider`; all pages are walked."""
        with self._client.told():
            async for batch in self._client.batches.list(limit=100):
                if (batch.metadata or {}).get(DIGEST) == submission.digest:
                    return batch.id
        return None

    async def standing(self, id_: str) -> Standing:
        """See `Provider`."""
        with self._client.told():
            batch = await self._client.batches.retrieve(id_)
        faults = (batch.errors.data if batch.errors else None) or []
        words = "; ".join(f"line {one.line}: {one.message}" if one.line else str(one.message) for one in faults[:3])
        refused = (words or "no reason given") if batch.status == "failed" else ""
        sources = tuple(source for source in (batch.output_file_id, batch.error_file_id) if source)
        return Standing(batch.status in ENDED, sources, refused)

    async def answers(self, id_: str, standing: Standing) -> AsyncIterator[Answer]:  # noqa: ARG002 - the protocol's
        """See `Provider`."""
        for source in standing.sources:
            for line in await self._client.lines(f"/files/{source}/content"):
                if (answer := answer_in(line)) is not None:
                    yield answer

    async def close(self) -> None:
        """See `Provider`."""
        await self._client.close()
