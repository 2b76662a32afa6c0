"""Pages and what forms send: a function each, which knows neither routes nor templates' frames.

A page's function gets by name what it asks for: the site, its form, what its address names, and whether JSON is wanted:
under /api, and where nothing else is accepted. What it returns is filled into its template, or is that JSON.
"""

from __future__ import annotations

import csv
import inspect
import io
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, TypeVar

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from pollex.formats.csv_rows import escape_formula
from pollex.text import encoded
from pollex.web import frame, pages
from pollex.web.forms import Form, Nothing, answered, body, query, site_of

Data = dict[str, Any]
"""What a template is filled with, or JSON."""
Done = tuple[str, dict[str, object]]
"""The address of the page that comes next, and what a script is told."""
Found = Data | Response
Handler = Callable[..., Any]
F = TypeVar("F", bound=Handler)

ROUTES: list[Route] = []
"""Those of all pages, once `every_route` has imported them."""


def every_route() -> list[Route]:
    """Import the modules of all pages, and return their routes, those with a part that varies last."""
    for module in iter_modules(pages.__path__):
        import_module(f"{pages.__name__}.{module.name}")
    return sorted(ROUTES, key=lambda one: "{" in one.path)


def page(
    path: str, template: str = "", form: type[Form] = Nothing, *, here: str = "", api: str = ""
) -> Callable[[F], F]:
    """Make a page of a function.

    Args:
        template: Empty for one that makes its response itself, or is JSON alone.
        here: Its entry in the menu.
        api: Address of its JSON, where that is not its own under /api.
    """

    def made(function: F) -> F:
        wanted = inspect.signature(function).parameters
        known = ["as_json"] if "as_json" in wanted else []

        def answer(request: Request) -> Response:
            as_json = bool(known) and frame.wants_json(request.scope)
            found = function(**_given(wanted, request, query(request, form), as_json=as_json))
            return _answered(request, found, template if not as_json else "", here)

        async def answer_later(request: Request) -> Response:
            found = await function(**_given(wanted, request, query(request, form), as_json=False))
            return _answered(request, found, template, here)

        answering = answer_later if inspect.iscoroutinefunction(function) else answer
        ROUTES.extend(Route(one, answering) for one in (path, *([api or f"/api{path}"] if known else [])))
        return function

    return made


def _answered(request: Request, found: Found, template: str, here: str) -> Response:
    if isinstance(found, Response):
        return found
    if not template:
        return JSONResponse({"ok": True} | encoded(found))
    shown: Data = {"site": site_of(request).id, "here": here} | found
    return frame.page(template, **shown)


def post(path: str, form: type[Form] = Nothing) -> Callable[[F], F]:
    """Make what takes a form: its function leads to the page that comes next, or tells a script what was done."""

    def made(function: F) -> F:
        wanted = inspect.signature(function).parameters

        async def answer(request: Request) -> Response:
            given = await body(request, form)
            site_of(request).require_writing()
            found = await function(**await run_in_threadpool(_given, wanted, request, given))
            return found if isinstance(found, Response) else answered(request, *found)

        ROUTES.append(Route(path, answer, methods=["POST"]))
        return function

    return made


def sent(name: str, kind: str, what: str | bytes | Iterator[str]) -> Response:
    """Send a file under a name."""
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    if isinstance(what, str | bytes):
        return Response(what, media_type=kind, headers=headers)
    return StreamingResponse(what, media_type=kind, headers=headers)


def table_lines(rows: Iterable[Iterable[object]]) -> Iterator[str]:
    """Yield rows as lines of CSV; texts that a spreadsheet would take for formulas are escaped."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for row in rows:
        writer.writerow(["" if value is None else escape_formula(value) for value in row])
        yield text.getvalue()
        text.seek(0)
        text.truncate()


def _given(wanted: Mapping[str, object], request: Request, form: Form, *, as_json: bool = False) -> Data:
    """Return what a function asks for by name; a run, set or command of the address is found first."""
    site, path = site_of(request), request.path_params
    known: Data = {"site": site, "form": form, "request": request, "as_json": as_json, "id_": path.get("id")}
    finders = {"run": ("run", site.run), "named": ("set", site.set), "child": ("child", site.children.find)}
    found = {name: find(path[part]) for name, (part, find) in finders.items() if name in wanted}
    return (
        {name: value for name, value in known.items() if name in wanted}
        | found
        | {f"{name}_id": value for name, value in path.items() if f"{name}_id" in wanted}
    )
