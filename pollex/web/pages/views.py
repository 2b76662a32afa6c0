"""Saved views: lists of conversations that have a name, whichever run they are looked at in."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, replace

from pydantic import Field
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from pollex.store.desk import ViewRow
from pollex.store.tables import now
from pollex.web import links
from pollex.web.faults import NotThere
from pollex.web.forms import Form, Nothing, answered, body, query, site_of
from pollex.web.listing import list_form
from pollex.web.once import once
from pollex.web.site import Site

LAST = """
    SELECT * FROM views AS v WHERE rowid = (SELECT max(rowid) FROM views WHERE id = v.id) AND NOT removed
    ORDER BY name COLLATE NOCASE, rowid
"""


class ViewForm(Form):
    """A view to keep; `run` is that of the list it was made in."""

    name: str = Field(min_length=1, max_length=80)
    query: str = Field("", max_length=2000)
    run: str = ""


class RemovalForm(Form):
    """The run whose list one was looking at."""

    run: str = ""


@dataclass(frozen=True)
class View:
    """A saved view."""

    id: str
    name: str
    query: dict[str, object]

    def address(self, run: str = "") -> str:
        """Link to it, in a run or in the last one that scored."""
        return links.conversations(run, **self.query)


def views_of(site: Site) -> list[View]:
    """Return all saved views by name."""
    return [View(row["id"], row["name"], list_form(row["query"]).but()) for row in site.store.rows(LAST)]


async def keep(request: Request) -> Response:
    """Keep a view."""
    site, form = site_of(request), await body(request, ViewForm)
    site.require_writing()
    kept = list_form(form.query).but()
    asked = links.address("", **kept).removeprefix("?")
    row = ViewRow(secrets.token_hex(4), now(), form.name, asked)
    await site.store.write([row])
    return answered(request, links.conversations(form.run, **kept), {"view": row.id})


async def remove(request: Request) -> Response:
    """Remove a view."""
    site, form = site_of(request), await body(request, RemovalForm)
    site.require_writing()
    id_ = request.path_params["id"]
    rows = [row for row in await run_in_threadpool(site.store.rows, LAST) if row["id"] == id_]
    if not rows:
        raise NotThere("there is no such view", remedy="the list of conversations has those there are")
    await site.store.write([replace(ViewRow(**rows[0]), time=now(), removed=True)])
    return answered(request, links.conversations(form.run), {"removed": id_})


def as_json(request: Request) -> Response:
    """Return all saved views as JSON."""
    query(request, Nothing)
    told = [{"id": one.id, "name": one.name, "query": one.query} for one in views_of(site_of(request))]
    return JSONResponse({"ok": True, "views": told})


ROUTES = [
    Route("/api/views", as_json),
    Route("/api/views", once(keep), methods=["POST"]),
    Route("/api/views/{id}/removal", once(remove), methods=["POST"]),
]
