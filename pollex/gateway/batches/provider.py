"""The protocol of a provider of batches, and what goes to and comes from one."""

import json
import os
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from pollex.errors import ModelRefused

ID_DIGITS = 40
"""Of a call's key in the id of its line; Anthropic allows 64 characters in all."""


@dataclass(frozen=True)
class Line:
    """A call in a batch.

    Attributes:
        body: The chat request as it is hashed.
        attempt: Counts how often the call was sent, this time included.
    """

    key: str
    attempt: int
    stage: str
    item: str
    body: bytes


@dataclass(frozen=True)
class Submission:
    """A batch as the store keeps it.

    Attributes:
        digest: 32 random hex digits, by which the batch is found again.
        provider: Which module knows it.
        place: Of the endpoint.
        intended: Unix time before it was sent.
        size: Number of lines.
        id: The provider's; empty while nobody knows whether there is a batch.
    """

    digest: str
    provider: str
    place: str
    model: str
    intended: float
    size: int
    id: str = ""

    @property
    def tag(self) -> str:
        """Return what the ids of its lines begin with."""
        return self.digest[:8]

    def line_id(self, key: str) -> str:
        """Return the id of a call's line."""
        return f"{self.tag}-{key[:ID_DIGITS]}"


@dataclass(frozen=True)
class Answer:
    """What came for a line.

    Attributes:
        body: Of a chat completion, or of an error, in OpenAI's shape.
    """

    line_id: str
    status: int
    body: str


@dataclass(frozen=True)
class Standing:
    """How far a batch is.

    Attributes:
        ended: Whether no more answers will come.
        sources: Where the answers are, as the provider calls these places.
        fault: Why the provider took none of the lines; empty where it did.
    """

    ended: bool
    sources: tuple[str, ...] = ()
    fault: str = ""


class Doubtful(Exception):
    """Nobody knows whether the batch was created: no reply came, or one that doesn't say."""


class Undecided(Exception):
    """A batch is open that may be the one that is looked for, and can't be told yet."""


class Gone(ModelRefused):
    """The provider knows no such batch, or no such address."""


class Provider(Protocol):
    """A way to hand in many calls at once, and to fetch the answers later."""

    name: str
    most_lines: int
    most_bytes: int

    def where(self, id_: str) -> str:
        """Return what to tell people about an open batch."""

    async def create(self, submission: Submission, lines: Sequence[Line]) -> str:
        """Hand in a batch, never twice, and return its id.

        Raises:
            Doubtful: It may have been created.
            PollexError: It was not.
        """

    async def find(self, submission: Submission) -> str | None:
        """Return the id of a batch that may have been created; None where there is none.

        Raises:
            Undecided: It can't be told yet.
        """

    async def standing(self, id_: str) -> Standing:
        """Return how far a batch is."""

    def answers(self, id_: str, standing: Standing) -> AsyncIterator[Answer]:
        """Yield the answers of a batch that has ended, in any order."""

    async def close(self) -> None:
        """End connections."""


def request_line(submission: Submission, line: Line) -> bytes:
    """Return a call as a line of OpenAI's batch files, which vLLM reads, too."""
    head = {"custom_id": submission.line_id(line.key), "method": "POST", "url": "/v1/chat/completions"}
    return json.dumps(head)[:-1].encode() + b', "body": ' + line.body + b"}\n"


def answer_in(text: str | bytes) -> Answer | None:
    """Return the answer in a line of OpenAI's output or error files; None where it has none."""
    try:
        row = json.loads(text)
        response: Any = row["response"]
        body = response.get("body") or {"error": row.get("error")}  # vLLM's words about a failure
        return Answer(str(row["custom_id"]), int(response["status_code"]), compact(body))
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return None


def compact(body: Any) -> str:
    """Return JSON values as a ledger keeps them."""
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"))


def parts(lines: Sequence[Line], provider: Provider, overhead: int = 256) -> Iterator[list[Line]]:
    """Split lines so that no part is larger than the provider takes."""
    part: list[Line] = []
    size = 0
    for line in lines:
        more = len(line.body) + overhead
        if part and (len(part) == provider.most_lines or size + more > provider.most_bytes):
            yield part
            part, size = [], 0
        part.append(line)
        size += more
    if part:
        yield part


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
