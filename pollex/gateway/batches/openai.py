"""OpenAI's batches, and those of servers that follow its protocol.

A file of lines is uploaded, a batch made of it; answers come as two files, one for what failed. Both are read whatever
the batch came to, for one that expired or was canceled has answers, too.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from pollex.errors import ModelUnavailable
from pollex.gateway.batches.http import Http
from pollex.gateway.batches.provider import Answer, Doubtful, Line, Standing, Submission, answer_in, request_line
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
        self._http = Http(endpoint, headers, limits)
        self._shown = endpoint.shown

    def where(self, id_: str) -> str:
        """See `Provider`."""
        return id_

    async def create(self, submission: Submission, lines: Sequence[Line]) -> str:
        """See `Provider`."""
        content = b"".join(request_line(submission, line) for line in lines)
        file = (f"pollex-{submission.tag}.jsonl", content, "application/jsonl")
        uploaded = await self._http.ask("POST", "files", data={"purpose": "batch"}, files={"file": file})
        if not isinstance(uploaded, dict) or not uploaded.get("id"):
            raise ModelUnavailable("the upload of the batch's file gave no id", where=self._shown)
        batch = {
            "input_file_id": uploaded["id"],
            "endpoint": "/v1/chat/completions",
            "completion_window": "24h",
            "metadata": {DIGEST: submission.digest, "part": str(submission.size)},
        }
        return _id(await self._http.once("batches", batch))

    async def find(self, submission: Submission) -> str | None:
        """See `Provider`; all pages are walked."""
        after: dict[str, str] = {}
        while True:
            page = await self._http.ask("GET", "batches", params={"limit": "100", **after})
            rows = page["data"]
            for row in rows:
                if (row.get("metadata") or {}).get(DIGEST) == submission.digest:
                    return str(row["id"])
            if not page.get("has_more") or not rows:
                return None
            after = {"after": rows[-1]["id"]}

    async def standing(self, id_: str) -> Standing:
        """See `Provider`."""
        batch = await self._http.ask("GET", f"batches/{id_}")
        sources = [batch[name] for name in ("output_file_id", "error_file_id") if batch.get(name)]
        faults = (batch.get("errors") or {}).get("data") or []
        words = "; ".join(
            f"line {fault['line']}: {fault.get('message')}" if fault.get("line") else str(fault.get("message"))
            for fault in faults[:3]
        )
        refused = (words or "no reason given") if batch["status"] == "failed" else ""
        return Standing(batch["status"] in ENDED, tuple(sources), refused)

    async def answers(self, id_: str, standing: Standing) -> AsyncIterator[Answer]:  # noqa: ARG002 - the protocol's
        """See `Provider`."""
        for source in standing.sources:
            async for line in self._http.lines(f"files/{source}/content"):
                if (answer := answer_in(line)) is not None:
                    yield answer

    async def close(self) -> None:
        """See `Provider`."""
        await self._http.close()


def _id(batch: object) -> str:
    """Return the id of a new batch."""
    if isinstance(batch, dict) and isinstance(batch.get("id"), str) and batch["id"]:
        return str(batch["id"])
    raise Doubtful("the reply names no batch")
