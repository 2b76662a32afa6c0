"""Routes of the scoring service: scores, health, figures, and their description."""

import asyncio
import json
import secrets
import time
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, suppress
from importlib.metadata import version
from importlib.resources import files
from typing import Any
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pollex.conversations.conversation import Conversation
from pollex.errors import WrongUse
from pollex.rooms.scale.web.live.waiting_line import Row, WaitingLine, WaitingLineFull
from pollex.services.scorer import parse_conversation
from pollex.text import make_object_of_unique_keys, replace_surrogates
from pollex.web.guard import is_loopback, is_same_site

MAX_BODY_BYTES = 16 << 20
"""Bytes of a request, and of a line of a stream."""
MAX_LINES_READ_AHEAD = 64
"""Conversations of one stream that wait at once."""
JSON_LINES_MEDIA_TYPES = ("application/x-ndjson", "application/jsonl", "application/ndjson")
TRUE_VALUES = ("1", "true", "yes")
PATHS_WITHOUT_TOKEN = ("/health", "/ready", "/openapi.json")
"""Paths that need no token."""


def make_application(line: WaitingLine, token: str | None) -> Starlette:
    """Make the application; `line.work` has to run beside it."""
    routes = [
        Route("/v1/score", answer_score, methods=["POST"]),
        Route("/health", answer_health),
        Route("/ready", answer_ready),
        Route("/metrics", answer_metrics),
        Route("/openapi.json", answer_openapi),
    ]
    # errors that have an answer of their own; others are a status of 500
    handlers: dict[object, Any] = {
        HTTPException: _answer_http_error,
        ClientDisconnect: _answer_cut_off,
        WrongUse: _answer_bad_input,
        WaitingLineFull: _answer_full_queue,
    }
    app = Starlette(
        routes=routes,
        exception_handlers=handlers,
        middleware=[Middleware(GuardedApplication, line=line, token=token)],
    )
    app.state.line = line

    return app


class GuardedApplication:
    """The application with the token's check before it, and each answer counted."""

    def __init__(
        self,
        app: ASGIApp,
        line: WaitingLine,
        token: str | None,
    ) -> None:
        self.app = app
        self.line = line
        self.token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        begun = time.perf_counter()
        # 500 unless an answer says otherwise
        status = 500

        # the status that was sent, for the figures
        async def noted(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        try:
            if scope["type"] == "http" and not self._here(scope):
                words = {
                    "error": "without a token only this machine is answered, under its own name: send a token"
                }
                await JSONResponse(words, 400)(scope, receive, noted)
            # a page in a browser could otherwise use the token of this machine
            elif scope["type"] == "http" and not is_same_site(
                Headers(scope=scope), scope["method"], _list_own_origins(scope)
            ):
                words = {
                    "error": "the request comes from a page of another site: only programs are answered"
                }
                await JSONResponse(words, 403)(scope, receive, noted)
            elif (
                scope["type"] == "http"
                and scope["path"] not in PATHS_WITHOUT_TOKEN
                and not self._known(scope)
            ):
                words = {
                    "error": "the token is missing or wrong: send `Authorization: Bearer TOKEN`"
                }
                await JSONResponse(words, 401, {"WWW-Authenticate": "Bearer"})(
                    scope,
                    receive,
                    noted,
                )
            else:
                await self.app(scope, receive, noted)
        # counted in any case, also where the client has gone
        finally:
            if scope["type"] == "http":
                self.line.figures.answered(status, time.perf_counter() - begun)

    def _here(self, scope: Scope) -> bool:
        """Tell whether a request names this machine, as one must that needs no token: a page can rename its server."""
        named = Headers(scope=scope).getlist("host")
        return self.token is not None or (
            len(named) == 1 and is_loopback(urlsplit(f"//{named[0]}").hostname or "")
        )

    def _known(self, scope: Scope) -> bool:
        if self.token is None:
            return True

        header = dict(scope["headers"]).get(b"authorization", b"")
        return secrets.compare_digest(header, b"Bearer " + self.token.encode())


def _list_own_origins(scope: Scope) -> list[str]:
    """Return the origins that a page of the server itself would have."""
    origins: list[str] = []
    for host in Headers(scope=scope).getlist("host"):
        for scheme in ("http", "https"):
            origins.append(f"{scheme}://{host}")
    return origins


class StreamedAnswer(StreamingResponse):
    """An answer that is written while the request is read: nobody else may take the request's parts."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        """Send the answer, without listening for the client's end as Starlette does."""
        # a client that goes away in the middle reads no end, and that is no fault of ours
        with suppress(ClientDisconnect):
            await self.stream_response(send)


async def answer_score(request: Request) -> Response:
    """Score one conversation, many, or a stream of lines."""
    line: WaitingLine = request.app.state.line
    # while stopping, nothing new is taken
    if line.draining:
        return JSONResponse(
            {"error": "the service is stopping"},
            503,
            {"Retry-After": "1", "Connection": "close"},
        )

    # the kind of body decides the kind of answer
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    answers, turns = (
        request.query_params.get(name, "").lower() in TRUE_VALUES for name in ("answers", "turns")
    )
    # a stream is answered line by line, while the request still goes on
    if kind in JSON_LINES_MEDIA_TYPES:
        return StreamedAnswer(
            _stream_rows(request, line, answers), media_type=JSON_LINES_MEDIA_TYPES[0]
        )
    if kind != "application/json":
        raise HTTPException(
            415,
            f"send application/json, or {JSON_LINES_MEDIA_TYPES[0]} for a stream of lines",
        )

    body = _parse_json(await _read_body(request))
    # one conversation: its score, and on request those of its beginnings
    if (many := _get_conversations_of_many(body)) is None:
        (future,) = line.put([conversation := _parse_payload(body)])
        row = _select_shown_fields(await future, answers)
        return JSONResponse(row | (await line.after_turns(conversation) if turns else {}))

    # many: what is no conversation becomes a row in its place
    tried = []
    for number, record in enumerate(many):
        tried.append(_parse_or_explain(record, number))

    # conversations wait together, then rows are put back in the order of the request
    futures = iter(line.put([entry for entry in tried if isinstance(entry, Conversation)]))
    scored = []
    for entry in tried:
        scored.append(entry if isinstance(entry, dict) else await next(futures))

    return JSONResponse({"scores": [_select_shown_fields(score, answers) for score in scored]})


async def answer_health(request: Request) -> Response:
    """Tell that the process lives, and with which set."""
    line: WaitingLine = request.app.state.line
    rubrics = line.scorer.rubrics
    status = {
        "ok": True,
        "set": rubrics.run,
        "digest": rubrics.rubrics_digest,
        "waiting": line.depth,
    }
    return JSONResponse(status | ({"stale": line.stale} if line.stale else {}))


async def answer_ready(request: Request) -> Response:
    """Tell whether conversations are taken."""
    line: WaitingLine = request.app.state.line
    return JSONResponse({"ready": not line.draining}, 503 if line.draining else 200)


async def answer_metrics(request: Request) -> Response:
    """Answer with the figures for Prometheus."""
    return Response(
        request.app.state.line.figures.text(),
        media_type="text/plain; version=0.0.4; charset=utf-8",
    )


async def answer_openapi(_: Request) -> Response:
    """Answer with the description of these routes."""
    document = json.loads(
        (files("pollex.rooms.scale.web.live") / "openapi.json").read_text(encoding="utf-8")
    )
    document["info"]["version"] = version("pollex")
    return JSONResponse(document)


async def _read_body(request: Request) -> bytes:
    parts = []
    total = 0
    async for part in request.stream():
        parts.append(part)
        if (total := total + len(part)) > MAX_BODY_BYTES:
            raise HTTPException(413, "the request is over 16 MB: send a stream of lines")

    return b"".join(parts)


def _parse_json(text: bytes) -> object:
    try:
        return replace_surrogates(json.loads(text, object_pairs_hook=make_object_of_unique_keys))
    except (ValueError, RecursionError) as error:
        raise HTTPException(400, f"not valid JSON: {error}") from error


def _get_conversations_of_many(payload: object) -> list[object] | None:
    """Return the conversations of a request for many; None for one, a list of turns too."""
    if isinstance(payload, dict) and isinstance(records := payload.get("conversations"), list):
        return records
    if (
        isinstance(payload, list)
        and payload
        and all(isinstance(record, dict) and "messages" in record for record in payload)
    ):
        return payload

    return None


def _parse_payload(payload: Any) -> Conversation:
    try:
        return parse_conversation(payload)
    except WrongUse:
        raise
    except Exception as error:  # outside data that no reader foresaw
        raise WrongUse(
            f"not a conversation: {type(error).__name__}",
            hint="send a list of messages",
        ) from error


def _parse_or_explain(payload: object, number: int) -> Conversation | Row:
    """Return a conversation, or the row that says why it is none; without an id it is named by its place."""
    try:
        conversation = _parse_payload(payload)
    # an id that is readable names the row, else its place does
    except WrongUse as error:
        id_ = None
        if isinstance(payload, Mapping):
            id_ = payload.get("id")
        return {
            "id": str(number if id_ is None else id_),
            "outcome": "unreadable",
            "error": str(error),
        }

    # without an id of its own the place names the conversation
    has_id = isinstance(payload, Mapping) and payload.get("id") is not None
    if has_id:
        return conversation
    return conversation.model_copy(update={"id": str(number)})


def _select_shown_fields(row: Row, answers: bool) -> Row:
    if answers:
        return row
    return {name: value for name, value in row.items() if name != "answers"}


async def _stream_rows(request: Request, line: WaitingLine, answers: bool) -> AsyncIterator[bytes]:
    """Yield a line for each line of the request, in order; what can't be scored is a line, too."""
    # scores and rows in the order of the request
    waiting: deque[asyncio.Future[Row] | Row] = deque()
    number = 0
    async with aclosing(_read_lines(request)) as lines:
        async for text in lines:
            waiting.append(await _queue_line(text, number, line))
            number += 1
            # what is ready goes out at once; a full line waits for its first
            while waiting and (len(waiting) >= MAX_LINES_READ_AHEAD or _is_done(waiting[0])):
                yield await _encode_row(waiting.popleft(), answers)

    # the request has ended, and what is left is waited for
    while waiting:
        yield await _encode_row(waiting.popleft(), answers)


async def _queue_line(
    text: bytes | None, number: int, line: WaitingLine
) -> asyncio.Future[Row] | Row:
    if text is None:
        return {
            "id": str(number),
            "outcome": "unreadable",
            "error": "the line is over 16 MB",
        }

    try:
        entry = _parse_or_explain(_parse_json(text), number)
    except HTTPException as error:
        return {
            "id": str(number),
            "outcome": "unreadable",
            "error": error.detail,
        }

    # a row that says why needs no place in the queue
    if isinstance(entry, dict):
        return entry
    return await line.wait_and_put(entry)


def _is_done(outcome: asyncio.Future[Row] | Row) -> bool:
    return isinstance(outcome, dict) or outcome.done()


async def _encode_row(outcome: asyncio.Future[Row] | Row, answers: bool) -> bytes:
    row = outcome if isinstance(outcome, dict) else await outcome
    return (
        json.dumps(_select_shown_fields(row, answers), ensure_ascii=True, allow_nan=False).encode()
        + b"\n"
    )


async def _read_lines(request: Request) -> AsyncGenerator[bytes | None, None]:
    """Yield the lines of a request that aren't blank; None for one that is too long."""
    # the rest of a part is the beginning of the next line
    rest = b""
    skipping = False
    async for part in request.stream():
        *whole, rest = (rest + part).split(b"\n")
        # the end of a line that was too long is no line of its own
        for text in whole:
            if text.strip() or skipping:
                yield None if skipping or len(text) > MAX_BODY_BYTES else text
            skipping = False

        # a line that is too long is not kept, only skipped
        if len(rest) > MAX_BODY_BYTES:
            rest = b""
            skipping = True

    # the last line may have no line feed
    if rest.strip() or skipping:
        yield None if skipping else rest


def _answer_http_error(_: Request, error: HTTPException) -> Response:
    return JSONResponse({"error": error.detail}, error.status_code)


def _answer_bad_input(_: Request, error: WrongUse) -> Response:
    return JSONResponse({"error": str(error)}, 422)


def _answer_cut_off(_: Request, error: ClientDisconnect) -> Response:  # noqa: ARG001 - its contract
    # nobody reads it: whoever asked went away, and that is no fault of ours
    return JSONResponse({"error": "the request was cut off"}, 400)


def _answer_full_queue(_: Request, error: WaitingLineFull) -> Response:
    return JSONResponse(
        {"error": "too many conversations wait"},
        429,
        {"Retry-After": str(error.after)},
    )
