"""Writes that come twice, because an answer was lost on its way, are made once: the repeat gets the first answer."""

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
    """Answer a request whose key came before as it was answered then; one that failed may be tried again."""

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
