"""Conversations with words in any turn, one after the other as they are found."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import AsyncIterator

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from pollex.store.runs import Run
from pollex.web import links
from pollex.web.faults import Fault
from pollex.web.filters import all_of
from pollex.web.lens import Lens
from pollex.web.listing import ListForm, Row, labeled, lens_for, masks_of, row_json, scoring_run
from pollex.web.searching import Found, keep
from pollex.web.searching import search as pieces_of
from pollex.web.site import Site
from pollex.web.views import page


@page("/api/conversations/search")
def search(site: Site, form: ListForm, request: Request) -> Response:
    """Send the first `n` hits a line each, and a line of progress a piece, until all is read or nobody listens."""
    if not form.q:
        raise Fault("there are no words to look for", remedy="give q=WORDS")
    run = scoring_run(site, form.run)
    lens = labeled(site, lens_for(site, run), form.source)
    return StreamingResponse(_lines(request, site, run, lens, form), media_type=links.NDJSON)


async def _lines(request: Request, site: Site, run: Run, lens: Lens, form: ListForm) -> AsyncIterator[str]:
    rows, found, hits = _rows_of(lens, form), set[str](), 0
    pieces = pieces_of(site.store, run.id, form.q)
    while (piece := await run_in_threadpool(next, pieces, None)) is not None:
        if await request.is_disconnected():
            return
        mine = sorted(row for text in piece.hashes - found for row in rows.get(text, ()))
        found |= piece.hashes
        shown = mine[: max(0, form.n - hits)]
        hits += len(mine)
        yield "".join(_line({"hit": row_json(Row.of(lens, row, row))}) for row in shown) + _line(_told(piece, hits))
    keep(site, lens, form.q, frozenset(found))
    yield _line({"ended": True, "found": hits})


def _rows_of(lens: Lens, form: ListForm) -> dict[str, list[int]]:
    left = all_of(masks_of(form, lens, frozenset()), len(lens), but="q")
    rows: dict[str, list[int]] = defaultdict(list)
    for row in left.nonzero()[0].tolist():
        rows[lens.hashes[row]].append(row)
    return rows


def _told(piece: Found, hits: int) -> dict[str, object]:
    return {"done": piece.done, "total": piece.total, "found": hits}


def _line(told: dict[str, object]) -> str:
    return json.dumps(told, ensure_ascii=False) + "\n"
