"""Files for `vllm run-batch`: batches without any provider."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from pollex.gateway.batches.provider import Answer, Line, Standing, Submission, answer_in, request_line

ASKED, ANSWERED = ".jsonl", ".answers.jsonl"


class FileBatches:
    """See `Provider`; the id of a batch is the path of its file.

    Args:
        folder: Where files are written; those that are there are found by their ids.
    """

    name = "files"
    most_lines = 1_000_000
    most_bytes = 1 << 40

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def where(self, id_: str) -> str:
        """See `Provider`."""
        return f"{id_}: `vllm run-batch -i {id_} -o {answers_to(id_)} --model MODEL`"

    async def create(self, submission: Submission, lines: Sequence[Line]) -> str:
        """See `Provider`."""
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._path(submission)
        draft = path.with_suffix(".draft")
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.writelines(request_line(submission, line) for line in lines)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
        return str(path)

    async def find(self, submission: Submission) -> str | None:
        """See `Provider`."""
        path = self._path(submission)
        return str(path) if path.exists() else None

    async def standing(self, id_: str) -> Standing:
        """See `Provider`: it has ended when there are answers, or when its file was removed."""
        return Standing(_ended(id_))

    async def answers(self, id_: str, standing: Standing) -> AsyncIterator[Answer]:  # noqa: ARG002 - the protocol's
        """See `Provider`."""
        path = answers_to(id_)
        if path.exists():
            with path.open("rb") as file:
                for line in file:
                    if (answer := answer_in(line)) is not None:
                        yield answer

    async def close(self) -> None:
        """See `Provider`."""

    def _path(self, submission: Submission) -> Path:
        return self._folder.absolute() / f"pollex-{submission.tag}{ASKED}"


def answers_to(id_: str) -> Path:
    """Return the file of a batch's answers."""
    return Path(id_.removesuffix(ASKED) + ANSWERED)


def _ended(id_: str) -> bool:
    return answers_to(id_).exists() or not Path(id_).exists()
