"""Requests that are repeated after a lost answer: they take effect only once."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from functools import wraps

from starlette.requests import Request
from starlette.responses import Response

from pollex.web.guests import guest_of

HEADER = "idempotency-key"
KEPT = 1000

Handler = Callable[[Request], Awaitable[Response]]


def once(handler: Handler) -> Handler:
    """Answer a repeated request as before; a failed one may be tried again.

    Repeated is what the same person sends to the same place with the same words: a key alone may be two people's.
    """

    @wraps(handler)
    async def wrapped(request: Request) -> Response:
        key = request.headers.get(HEADER)
        if not key:
            return await handler(request)
        answers: dict[tuple[str, ...], asyncio.Future[Response]] = request.app.state.site.answers
        guest, words = guest_of(request), hashlib.sha256(await request.body()).hexdigest()
        named = (request.url.path, key, guest.id if guest else "", words)
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
