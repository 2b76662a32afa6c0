"""Where calls wait for a batch, and where a batch's answers go into the ledger.

Nothing is paid twice, whatever is killed when: what a batch asks is kept before it is handed in,
its id right after, and its answers are recorded as if each had been a call of its own. A batch of
which only the first is kept is looked for at the provider before its calls are asked again.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from pollex.errors import AnswersPending, LimitReached, ModelRefused, ModelUnavailable, PollexError
from pollex.gateway.budget import Budget, Limits, UsageTable
from pollex.gateway.calls import Ledger, Reply, Request, Usage, estimate_prompt_tokens
from pollex.gateway.endpoint import Endpoint
from pollex.gateway.redaction import strip_secrets
from pollex.gateway.responses import read_token_usage
from pollex.outputs import open_draft

CALL_ID_HEX_DIGITS = 40
"""Of a call's key in the id of its line; Anthropic allows 64 characters in all."""


@dataclass(frozen=True)
class BatchCall:
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
class BatchSubmission:
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
        return f"{self.tag}-{key[:CALL_ID_HEX_DIGITS]}"


@dataclass(frozen=True)
class BatchReply:
    """What came for a line.

    Attributes:
        body: Of a chat completion, or of an error, in OpenAI's shape.
    """

    line_id: str
    status: int
    body: str


@dataclass(frozen=True)
class BatchProgress:
    """How far a batch is.

    Attributes:
        ended: Whether no more answers will come.
        sources: Where the answers are, as the provider calls these places.
        fault: Why the provider took none of the lines; empty where it did.
    """

    ended: bool
    sources: tuple[str, ...] = ()
    fault: str = ""


class BatchCreationUnknown(Exception):
    """Nobody knows whether the batch was created: no reply came, or one that doesn't say."""


class BatchIdentityUndecided(Exception):
    """A batch is open that may be the one that is looked for, and can't be told yet."""


class BatchNotFound(ModelRefused):
    """The provider knows no such batch, or no such address."""


class BatchProvider(Protocol):
    """A way to hand in many calls at once, and to fetch the answers later."""

    name: str
    most_lines: int
    most_bytes: int

    def where(self, id_: str) -> str:
        """Return what to tell people about an open batch."""

    async def create(self, submission: BatchSubmission, lines: Sequence[BatchCall]) -> str:
        """Hand in a batch, never twice, and return its id.

        Raises:
            Doubtful: It may have been created.
            PollexError: It was not.
        """

    async def find(self, submission: BatchSubmission) -> str | None:
        """Return the id of a batch that may have been created; None where there is none.

        Raises:
            Undecided: It can't be told yet.
        """

    async def standing(self, id_: str) -> BatchProgress:
        """Return how far a batch is."""

    def answers(self, id_: str, standing: BatchProgress) -> AsyncIterator[BatchReply]:
        """Yield the answers of a batch that has ended, in any order."""

    async def close(self) -> None:
        """End connections."""


def make_request_line(submission: BatchSubmission, line: BatchCall) -> bytes:
    """Return a call as a line of OpenAI's batch files, which vLLM reads, too."""
    head = {
        "custom_id": submission.line_id(line.key),
        "method": "POST",
        "url": "/v1/chat/completions",
    }
    return json.dumps(head)[:-1].encode() + b', "body": ' + line.body + b"}\n"


def read_answer_line(text: str | bytes) -> BatchReply | None:
    """Return the answer in a line of OpenAI's output or error files; None where it has none."""
    try:
        row = json.loads(text)
        response: Any = row["response"]
        # vLLM's words about a failure
        body = response.get("body") or {"error": row.get("error")}
        return BatchReply(
            str(row["custom_id"]),
            int(response["status_code"]),
            dump_json_compactly(body),
        )
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return None


def dump_json_compactly(body: object) -> str:
    """Return JSON values as a ledger keeps them."""
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"))


def split_calls_into_parts(
    lines: Sequence[BatchCall],
    provider: BatchProvider,
    overhead: int = 256,
) -> Iterator[list[BatchCall]]:
    """Split lines so that no part is larger than the provider takes."""
    part: list[BatchCall] = []
    size = 0
    for line in lines:
        more = len(line.body) + overhead
        if part and (len(part) == provider.most_lines or size + more > provider.most_bytes):
            yield part
            part = []
            size = 0

        part.append(line)
        size += more

    if part:
        yield part


REQUESTS_FILE_SUFFIX = ".jsonl"
ANSWERS_FILE_SUFFIX = ".answers.jsonl"


class FileBatches:
    """See `BatchProvider`; the id of a batch is the path of its file.

    Args:
        folder: Where files are written; those that are there are found by their ids.
    """

    name = "files"
    most_lines = 1_000_000
    most_bytes = 1 << 40

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def where(self, id_: str) -> str:
        return f"{id_}: `vllm run-batch -i {id_} -o {get_answers_path(id_)} --model MODEL`"

    async def create(self, submission: BatchSubmission, lines: Sequence[BatchCall]) -> str:
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._path(submission)
        with open_draft(path, named=False) as draft:
            opened = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(opened, "wb") as file:
                file.writelines(make_request_line(submission, line) for line in lines)

        return str(path)

    async def find(self, submission: BatchSubmission) -> str | None:
        path = self._path(submission)
        return str(path) if path.exists() else None

    async def standing(self, id_: str) -> BatchProgress:
        """See `BatchProvider`: it has ended when there are answers, or when its file was removed."""
        return BatchProgress(_has_batch_ended(id_))

    async def answers(self, id_: str, standing: BatchProgress) -> AsyncIterator[BatchReply]:  # noqa: ARG002 - the protocol's
        path = get_answers_path(id_)
        if path.exists():
            with path.open("rb") as file:
                for line in file:
                    if (answer := read_answer_line(line)) is not None:
                        yield answer

    async def close(self) -> None:
        """Do nothing: nothing is open."""

    def _path(self, submission: BatchSubmission) -> Path:
        return self._folder.absolute() / f"pollex-{submission.tag}{REQUESTS_FILE_SUFFIX}"


def get_answers_path(id_: str) -> Path:
    """Return the file of a batch's answers."""
    return Path(id_.removesuffix(REQUESTS_FILE_SUFFIX) + ANSWERS_FILE_SUFFIX)


def _has_batch_ended(id_: str) -> bool:
    return get_answers_path(id_).exists() or not Path(id_).exists()


SECONDS_BETWEEN_BATCH_CHECKS = 2.0
"""Seconds before a batch whose creation is in doubt is looked for a second time."""

QUIET_SECONDS_BEFORE_SUBMISSION = 0.25
"""Seconds without a new call, twice in a row, after which the calls that wait are handed in."""

COME_BACK_LATER_HINT = (
    "come back then, or earlier: what is there is fetched, and nothing is asked twice"
)

SECONDS_PER_DAY = 24 * 3600.0

MAX_SUBMISSION_AGE_SECONDS = 30 * SECONDS_PER_DAY
"""Seconds for which providers keep answers."""

ANSWERS_PER_TRANSACTION = 256
"""Answers that are recorded together."""


class BatchRecords(Protocol):
    """What a store keeps of batches."""

    def open(self, place: str, model: str) -> list[BatchSubmission]:
        """Return the batches whose answers were not fetched."""

    def lines(self, digest: str) -> list[BatchCall]:
        """Return the calls of a batch, without bodies."""

    async def intend(self, submission: BatchSubmission, lines: Sequence[BatchCall]) -> None:
        """Keep durably, before it returns, what is about to be handed in."""

    async def created(self, digest: str, id_: str) -> None:
        """Keep durably, before it returns, the id that the provider gave."""

    async def close(self, digest: str) -> None:
        """Keep that a batch has nothing more to give."""


@dataclass(frozen=True)
class OpenBatch:
    """An open batch, for people.

    Attributes:
        until: Unix time at which it expires; None where it never does.
    """

    description: str
    size: int
    until: float | None


@dataclass(slots=True)
class _WaitingBatchCall:
    request: Request
    attempt: int
    future: asyncio.Future[None]

    @property
    def line(self) -> BatchCall:
        """Return the call as a line of a batch."""
        call = self.request.call
        return BatchCall(
            self.request.key,
            self.attempt,
            call.stage,
            call.item,
            self.request.body,
        )


@dataclass
class ModelBatchQueue:
    """Batches of one model.

    Attributes:
        to: Name of the provider that new calls go to; empty where they are asked at once.
        open: What is not answered yet, by the digest of each batch.
        fresh: Calls whose answers were fetched by this command.
    """

    endpoint: Endpoint
    providers: Mapping[str, Callable[[], BatchProvider]]
    ledger: Ledger
    book: BatchRecords
    limits: Limits
    to: str
    round: BatchSubmissionRound
    open: dict[str, OpenBatch] = field(default_factory=dict)
    fresh: set[str] = field(default_factory=set)
    used: UsageTable = field(default_factory=UsageTable)
    budget: Budget = field(init=False)
    stop: Callable[[PollexError], None] = field(init=False, default=lambda _: None)
    others: Callable[[], int] = field(init=False, default=int)

    def __post_init__(self) -> None:
        self.budget = Budget(self.limits)
        self._made: dict[str, BatchProvider] = {}
        self._pending: set[str] = set()
        self._waiting: dict[str, _WaitingBatchCall] = {}
        self.round.join(self)

    def serve(
        self,
        used: UsageTable,
        budget: Budget,
        stop: Callable[[PollexError], None],
        flights: Callable[[], int],
    ) -> None:
        """Take over what a gateway counts.

        Args:
            stop: Ends the gateway's run.
            flights: Number of its calls that have no outcome yet.
        """
        self.used = used
        self.budget = budget
        self.stop = stop
        self.others = flights

    def takes(self, request: Request) -> bool:
        """Return whether a call is asked by batch, or was."""
        return request.key in self._pending or (bool(self.to) and request.call.apart)

    def busy(self) -> bool:
        """Return whether calls are asked at once just now."""
        return self.others() > len(self._waiting)

    async def leave(self, request: Request, attempt: int) -> None:
        """Leave a call here until the command ends with `AnswersPending`, or with another error."""
        waiting = _WaitingBatchCall(
            request,
            attempt,
            asyncio.get_running_loop().create_future(),
        )
        self._waiting[request.key] = waiting
        self.round.asked()
        try:
            await waiting.future
        finally:
            self._waiting.pop(request.key, None)

    def drop(self, error: Callable[[], PollexError]) -> None:
        """End all calls that wait, each with an error of its own."""
        for waiting in list(self._waiting.values()):
            if not waiting.future.done():
                waiting.future.set_exception(error())

    async def close(self) -> None:
        """Wait for what is being handed in, and end connections."""
        await self.round.close()
        for provider in self._made.values():
            await provider.close()
        self._made.clear()

    async def fetch(self) -> None:
        """Take in the answers of all batches that have ended.

        Raises:
            ModelRefused: The provider took none of a batch's lines.
            ModelUnavailable: It can't be asked now.
        """
        try:
            for submission in self.book.open(self.endpoint.place, self.endpoint.model):
                await self._fetch(submission, self._provider(submission.provider))
        finally:
            await self.close()

    async def hand_in(self) -> None:
        """Hand in what waits and is in no open batch.

        Raises:
            LimitReached: Not all of it may be sent; the rest was.
            PollexError: It can't be handed in.
        """
        for submission in self.book.open(self.endpoint.place, self.endpoint.model):
            if submission.digest not in self.open:  # another process has handed it in meanwhile
                keys = (line.key for line in self.book.lines(submission.digest))
                self._is_open(
                    submission,
                    self._provider(submission.provider),
                    submission.id,
                    keys,
                )

        # as many as the limits allow, each at its dearest
        limit: LimitReached | None = None
        lines: list[BatchCall] = []
        for waiting in list(self._waiting.values()):
            if waiting.request.key in self._pending:
                continue
            try:
                self.budget.take()
            except LimitReached as reached:
                limit = reached
                break

            lines.append(waiting.line)
            call = waiting.request.call
            most = Usage(
                prompt=estimate_prompt_tokens(call.messages),
                completion=call.max_tokens or 0,
            )
            self.budget.spend(most, by_batch=True)
            self.used.stage(call.stage).sent += 1

        # what may be sent is handed in, then the limit is told
        for part in split_calls_into_parts(lines, self._provider(self.to)) if lines else ():
            await self._hand_in(part, self._provider(self.to))

        if limit is not None:
            raise limit

    async def _hand_in(self, waiting_lines: Sequence[BatchCall], provider: BatchProvider) -> None:
        # another process may have taken some of them
        ours = await asyncio.gather(*(self._intend(line) for line in waiting_lines))
        lines = []
        for line, is_ours in zip(waiting_lines, ours, strict=True):
            if is_ours:
                lines.append(line)

        if not lines:
            return

        submission = BatchSubmission(
            digest=secrets.token_hex(16),
            provider=provider.name,
            place=self.endpoint.place,
            model=self.endpoint.model,
            intended=time.time(),
            size=len(lines),
        )
        # on disk before it is created: a kill in between is found out
        await self.book.intend(submission, lines)
        try:
            id_ = await provider.create(submission, lines)
        except BatchCreationUnknown as doubt:
            existing_id = await self._look_for(submission, provider, twice=True)
            if existing_id is None:
                what = f"a batch was handed in and is not there: {doubt}"
                hint = "resume later: it is looked for again before anything is asked again"
                raise ModelUnavailable(
                    what,
                    where=self.endpoint.shown,
                    hint=hint,
                ) from doubt

            id_ = existing_id
        except PollexError:
            await self.book.close(submission.digest)
            raise

        if id_:
            await self.book.created(submission.digest, id_)

        self._is_open(submission, provider, id_, (line.key for line in lines))

    async def _intend(self, line: BatchCall) -> bool:
        about = {
            "stage": line.stage,
            "item": line.item,
            "request": line.body.decode(),
        }
        return await self.ledger.intend(line.key, line.attempt, about)

    async def _look_for(
        self,
        submission: BatchSubmission,
        provider: BatchProvider,
        *,
        twice: bool = False,
    ) -> str | None:
        """Return the id of a batch that may have been created; empty where that can't be told, None without one."""
        try:
            batch_id = await provider.find(submission)
            if batch_id is None and twice:
                await asyncio.sleep(
                    SECONDS_BETWEEN_BATCH_CHECKS
                )  # a new batch may not be listed at once
                batch_id = await provider.find(submission)
        except BatchIdentityUndecided:
            return ""

        return batch_id

    async def _fetch(self, submission: BatchSubmission, provider: BatchProvider) -> None:
        id_ = submission.id
        lines = self.book.lines(submission.digest)
        if not id_:
            existing_id = await self._look_for(submission, provider)
            if existing_id is None:  # it was never created: its calls are asked again
                await self.book.close(submission.digest)
                return
            if id_ := existing_id:
                await self.book.created(submission.digest, id_)

        # not ended: it stays open
        standing = None
        if id_:
            standing = await self._standing(submission, provider, id_)
        if standing is None or not standing.ended:
            self._is_open(submission, provider, id_, (line.key for line in lines))
            return

        await self._record(
            submission,
            lines,
            [answer async for answer in provider.answers(id_, standing)],
        )
        await self.book.close(submission.digest)
        if standing.fault:
            hint = "correct what it names, then resume: the calls are asked again"
            raise ModelRefused(
                f"batch {id_} was refused: {standing.fault}",
                where=self.endpoint.shown,
                hint=hint,
            )

    async def _standing(
        self,
        submission: BatchSubmission,
        provider: BatchProvider,
        id_: str,
    ) -> BatchProgress:
        """Return how far a batch is; one that is gone has ended once providers forget them."""
        try:
            return await provider.standing(id_)
        except BatchNotFound as gone:
            if time.time() - submission.intended > MAX_SUBMISSION_AGE_SECONDS:
                return BatchProgress(ended=True)
            given_up_at = format_local_time(submission.intended + MAX_SUBMISSION_AGE_SECONDS)
            hint = f"use the key that it was handed in with; from {given_up_at} on it is given up"
            raise ModelRefused(
                f"there is no batch {id_}: {gone.what}",
                where=gone.where,
                hint=hint,
            ) from gone

    async def _record(
        self,
        submission: BatchSubmission,
        lines: Sequence[BatchCall],
        answers: Sequence[BatchReply],
    ) -> None:
        lines_by_id = {submission.line_id(line.key): line for line in lines}
        answered = []
        for answer in answers:
            if (line := lines_by_id.pop(answer.line_id, None)) is not None:
                answered.append((line, answer))

        for start in range(0, len(answered), ANSWERS_PER_TRANSACTION):
            await asyncio.gather(
                *(
                    self._take(line, answer)
                    for line, answer in answered[start : start + ANSWERS_PER_TRANSACTION]
                )
            )

    async def _take(self, line: BatchCall, answer: BatchReply) -> None:
        # recorded as a reply that came over the wire
        body = strip_secrets(self.endpoint.secrets, answer.body)
        reply = Reply(status=answer.status, body=body)
        await self.ledger.record(
            line.key,
            line.attempt,
            reply.facts(line.attempt),
            body,
        )
        self.fresh.add(line.key)
        if answer.status == 200:
            self.used.bill(line.stage, _read_batch_usage(answer.body), by_batch=True)

    def _is_open(
        self,
        submission: BatchSubmission,
        provider: BatchProvider,
        id_: str,
        keys: Iterable[str],
    ) -> None:
        # its calls are not handed in again
        self._pending |= set(keys)
        if id_:
            description = provider.where(id_)
        else:
            description = "a batch whose creation is in doubt"

        until = None
        if provider.name != "files":
            until = submission.intended + SECONDS_PER_DAY

        self.open[submission.digest] = OpenBatch(description, submission.size, until)

    def _provider(self, name: str) -> BatchProvider:
        if name not in self._made:
            self._made[name] = self.providers[name]()
        return self._made[name]


def _read_batch_usage(body: str) -> Usage:
    try:
        return read_token_usage(json.loads(body).get("usage"))
    except (ValueError, AttributeError, RecursionError):
        return Usage()


class BatchSubmissionRound:
    """The calls of one command that wait, of all its models: handed in together when nothing else is asked."""

    def __init__(self) -> None:
        self._desks: list[ModelBatchQueue] = []
        self._task: asyncio.Task[None] | None = None
        self._asked = 0
        self._handing_in = False

    def join(self, desk: ModelBatchQueue) -> None:
        """Add a model."""
        self._desks.append(desk)

    def asked(self) -> None:
        """Note a call that waits from now on."""
        self._asked += 1
        if self._task is None or self._task.done():
            self._task = asyncio.ensure_future(self._watch())

    async def close(self) -> None:
        """Wait for what is being handed in, and hand in nothing else."""
        if self._task is None:
            return
        if not self._handing_in:
            self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _watch(self) -> None:
        """Hand everything in once nothing else is asked, and end all who wait."""
        quiet = 0
        while quiet < 2:
            before = self._asked
            await asyncio.sleep(QUIET_SECONDS_BEFORE_SUBMISSION)
            is_quiet = before == self._asked and not any(desk.busy() for desk in self._desks)
            quiet = quiet + 1 if is_quiet else 0

        self._handing_in = True
        try:
            error = await self._hand_in()
        except PollexError as failure:
            error = failure
        except Exception as failure:
            error = PollexError(
                f"the batch failed: {type(failure).__name__}: {failure}",
                hint="resume to go on",
            )
        finally:
            self._handing_in = False

        for desk in self._desks:
            desk.stop(error)

    async def _hand_in(self) -> PollexError:
        refused: list[PollexError] = []
        for desk in self._desks:
            try:
                await desk.hand_in()
            except LimitReached as limit:
                refused.append(limit)

        if not any(desk.open for desk in self._desks) and refused:
            return refused[0]

        open_places: list[OpenBatch] = []
        for desk in self._desks:
            open_places.extend(desk.open.values())
        return make_answers_pending_error(
            open_places,
            refused,
        )


def make_answers_pending_error(
    places: Sequence[OpenBatch], refused: Sequence[PollexError] = ()
) -> AnswersPending:
    """Return the error that ends a command until answers are there."""
    calls = sum(place.size for place in places)
    n = len(places)
    times = []
    for place in places:
        if place.until:
            times.append(place.until)

    latest = max(times, default=None)
    if latest:
        when = f"by {format_local_time(latest)} at the latest"
    else:
        when = "when you have run it"

    what = f"{calls} calls wait in {n} {'batch' if n == 1 else 'batches'}, answered {when}"
    if refused:
        what += f"; others were not handed in: {refused[0].what}"

    return AnswersPending(
        what,
        where="; ".join(place.description for place in places),
        hint=COME_BACK_LATER_HINT,
    )


def format_local_time(moment: float) -> str:
    """Return a time of this machine, to the minute."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(moment))
