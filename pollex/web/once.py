"""Requests that are repeated after a lost answer: they take effect only once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import wraps

from starlette.requests import Request
from starlette.responses import Response

HEADER = "idempotency-key"
KEPT = 1000

Handler = Callable[[Request], Awaitable[Response]]


def once(handler: Handler) -> Handler:
    """Answer a repeated request as before; a failed one may be tried again."""

    @wraps(handler)
    async def wrapped(request: Request) -> Response:
        key = request.headers.get(HEADER)
        if not key:
            return await handler(request)
        answers: dict[tuple[str, str], asyncio.Future[Response]] = request.app.state.site.answers
        named = (request.url.path, key)
        if named not in answers:
            answers[named] = asyncio.ensure_future(handler(request))
            for old in [*answers][:-KEPT]:
                del answers[old]
        try:
            return await asyncio.shield(answers[named])
        except Exception:
            answers.pop(named, None)
            raise

    return wrapped
