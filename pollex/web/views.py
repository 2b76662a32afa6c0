"""Pages and what forms send: a function each, which knows neither routes nor templates' frames.

A page's function gets by name what it asks for: the site, the request, what its address names, and
whether JSON is
wanted: under /api, and where nothing else is accepted. All its other arguments are its parameters,
    the fields of its
form. What it returns is filled into its template, or is that JSON.
"""

from __future__ import annotations

import csv
import inspect
import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Annotated, Any, Protocol, Self, TypeVar, get_origin, get_type_hints

from pydantic import create_model
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from pollex.formats.csv_rows import escape_formula
from pollex.rooms import list_modules_in_part
from pollex.store.runs import Run
from pollex.store.soundness import find_damage_behind_error
from pollex.store.tables import QueueRow
from pollex.text import make_json_values
from pollex.web import frame
from pollex.web.children import Child
from pollex.web.forms import (
    AS_FILE_PARAMETER,
    OpenForm,
    PrefixedFields,
    RequestForm,
    answer_form,
    get_site,
    read_body,
    read_query,
)
from pollex.web.names import read_name, remember_name
from pollex.web.queues import get_queue
from pollex.web.site import NamedSet, Site

PageData = dict[str, Any]
"""What a template is filled with, or JSON."""
NextPage = tuple[str, dict[str, object]]
"""The address of the page that comes next, and what a script is told."""
PageAnswer = PageData | Response
PageFunction = Callable[..., Any]
PageFunctionType = TypeVar("PageFunctionType", bound=PageFunction)

PAGE_ROUTES: list[Route] = []
"""Those of all pages, once `list_every_route` has imported them."""


def list_every_route() -> list[Route]:
    """Import the modules of all pages, and return their routes, those with a part that varies last."""
    for module in list_modules_in_part("web.pages").values():
        import_module(module)
    return sorted(PAGE_ROUTES, key=lambda route: "{" in route.path)


@dataclass(frozen=True)
class PageArguments:
    """What a page's function asks for.

    Attributes:
        form: That of its argument `form`, or one of all arguments that nothing else gives.
        parts: Arguments that the address names, with the part that does.
        finders: Arguments that are found by an id, in the address or the form.
        fields: Arguments that are fields of the form; behind an underscore where the bare name
            means something else.
        open: The argument that takes all `PrefixedFields` that only the page knows.
    """

    form: type[RequestForm]
    parts: Mapping[str, str]
    finders: Mapping[str, Callable[[Site, str], object]]
    fields: Mapping[str, str]
    others: frozenset[str]
    open: str

    @classmethod
    def read_signature(cls, function: PageFunction, path: str) -> PageArguments:
        """Read a function's arguments."""
        kinds = get_type_hints(function, include_extras=True)
        parameters = inspect.signature(function).parameters
        in_path = re.findall(r"{(\w+)}", path)
        # the field of each argument: `_id` and a last underscore only tell names of Python apart
        plain = {}
        for name in parameters:
            plain[name] = "set" if name == "named" else name.removesuffix("_id").rstrip("_")

        parts = {}
        for name, field_name in plain.items():
            if field_name in in_path:
                parts[name] = field_name

        finders = {}
        for name in parameters:
            if find := get_finder(kinds[name]):
                finders[name] = find

        # arguments that take all fields whose names begin in some ways
        beginnings = {}
        for parameter in parameters:
            if (
                get_origin(kinds[parameter]) is Annotated
                and kinds[parameter].__origin__ is PrefixedFields
            ):
                beginnings[parameter] = kinds[parameter].__metadata__

        # what neither the address nor the server gives is a field of the form
        fields = {}
        for name, field_name in plain.items():
            if name not in {*parts, *SERVER_ARGUMENTS, *beginnings}:
                fields[name] = field_name

        # things that are found by their id come as text; a field without a default is needed
        defaults = {name: parameters[name].default for name in fields}
        declared: PageData = {}
        for name, field in fields.items():
            declared[field] = (
                str if name in finders else kinds[name],
                ... if defaults[name] is inspect.Parameter.empty else defaults[name],
            )

        # unknown fields are an error, unless an argument takes them
        base: type[RequestForm] = kinds.get("form", OpenForm if beginnings else RequestForm)
        form: type[RequestForm] = create_model(
            function.__name__,
            __base__=base,
            **declared,
        )
        form.BEGINNINGS = sum(beginnings.values(), ())

        return cls(
            form,
            parts,
            finders,
            fields,
            frozenset(SERVER_ARGUMENTS.intersection(parameters)),
            "".join(beginnings),
        )

    def given(self, request: Request, form: RequestForm, *, as_json: bool = False) -> PageData:
        """Return the arguments of a request."""
        site = get_site(request)
        others: PageData = {
            "site": site,
            "form": form,
            "request": request,
            "as_json": as_json,
        }
        arguments = {}
        for name, part in self.parts.items():
            arguments[name] = request.path_params[part]

        for name, field in self.fields.items():
            arguments[name] = getattr(form, field)

        # ids become the things that they name
        arguments |= {name: find(site, arguments[name]) for name, find in self.finders.items()}
        arguments |= {self.open: form.model_extra} if self.open else {}
        return arguments | {name: others[name] for name in self.others}


FINDERS_BY_TYPE: Mapping[object, Callable[[Site, str], object]] = {
    Run: Site.run,
    NamedSet: Site.set,
    Child: lambda site, id_: site.children.find(id_),
    QueueRow: lambda site, id_: get_queue(site.store, id_),
}


class Findable(Protocol):
    """A kind of a room's things that a page asks for by an id, as it does for a run or a rubric set."""

    @classmethod
    def find_in(cls, site: Site, id_: str) -> Self:
        """Return the one with that id. Raises NotFound where there is none."""


def get_finder(kind: object) -> Callable[[Site, str], object] | None:
    """Return what finds the argument of a page by its id; None for an argument of another kind."""
    return FINDERS_BY_TYPE.get(kind) or getattr(kind, "find_in", None)


SERVER_ARGUMENTS = {"site", "form", "request", "as_json"}


@contextmanager
def explain_store_damage(site: Site) -> Iterator[None]:
    """Tell what nobody expected as damage of the store, where somebody changed that.

    Raises:
        StoreDamaged: The store isn't as pollex writes it.
    """
    try:
        yield
    except HTTPException:
        raise
    except Exception as error:
        if damage := find_damage_behind_error(site.store, error):
            raise damage from error
        raise


def page(
    path: str,
    template: str = "",
    *,
    here: str = "",
    api: str = "",
) -> Callable[[PageFunctionType], PageFunctionType]:
    """Make a page of a function; its template is filled with what it returns, its form, and what was found.

    What it returns may name another template, and headers.

    Args:
        template: Empty for one that makes its response itself, or is JSON alone.
        here: Its entry in the menu.
        api: Address of its JSON, where that is not its own under /api.
    """

    def made(function: PageFunctionType) -> PageFunctionType:
        request_form = PageArguments.read_signature(function, path)
        has_json = "as_json" in request_form.others or bool(api)

        def answer(request: Request) -> Response:
            with explain_store_damage(get_site(request)):
                return show(request)

        def show(request: Request) -> Response:
            as_json = has_json and frame.wants_json(request.scope)
            form = read_query(request, request_form.form)
            arguments = request_form.given(request, form, as_json=as_json)
            answered_with: PageAnswer = function(**arguments)
            if isinstance(answered_with, Response):
                return answered_with
            # programs get JSON, and so does everybody where the page has no template
            if as_json or not template:
                headers = answered_with.pop("headers", None)
                return JSONResponse(
                    {"ok": True} | make_json_values(answered_with),
                    headers=headers,
                )

            site = get_site(request)
            about: PageData = {
                "template": template,
                "here": here,
                "site": site.id,
                "read_only": site.read_only,
                "your_name": read_name(request),
            }
            shown = frame.answer_page(
                **about
                | {name: arguments[name] for name in request_form.finders}
                | {"form": form}
                | answered_with
            )
            # the page as a file, where the address asks for one
            if AS_FILE_PARAMETER not in request.query_params:
                return shown

            name = re.sub(r"[^\w-]+", "-", request.url.path).strip("-") or "home"
            content = frame.make_single_file(bytes(shown.body).decode("utf-8"))
            return send_file(f"pollex-{name}.html", "text/html", content)

        # JSON has an address under /api, unless the page names another
        for route_path in (path, *([api or f"/api{path}"] if has_json else [])):
            PAGE_ROUTES.append(Route(route_path, answer))
        return function

    return made


def post(path: str) -> Callable[[PageFunctionType], PageFunctionType]:
    """Make what takes a form, in a thread: its function leads to the page that comes next, or tells what was done."""

    def made(function: PageFunctionType) -> PageFunctionType:
        request_form = PageArguments.read_signature(function, path)

        def do(request: Request, form: RequestForm) -> Any:
            with explain_store_damage(get_site(request)):
                return function(**request_form.given(request, form))

        async def answer(request: Request) -> Response:
            form = await read_body(request, request_form.form)
            get_site(request).require_writing()
            answered_with = await run_in_threadpool(lambda: do(request, form))
            if isinstance(answered_with, Response):
                response = answered_with
            else:
                response = answer_form(request, *answered_with)
            remember_name(request, response, form)
            return response

        PAGE_ROUTES.append(Route(path, answer, methods=["POST"]))
        return function

    return made


def send_file(name: str, kind: str, what: str | bytes | Iterator[str]) -> Response:
    """Send a file under a name."""
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    if isinstance(what, str | bytes):
        return Response(what, media_type=kind, headers=headers)
    return StreamingResponse(what, media_type=kind, headers=headers)


def iterate_csv_lines(rows: Iterable[Iterable[object]]) -> Iterator[str]:
    """Yield rows as lines of CSV; texts that a spreadsheet would take for formulas are escaped."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for row in rows:
        writer.writerow(["" if value is None else escape_formula(value) for value in row])
        yield text.getvalue()
        # one buffer for all lines, emptied after each
        text.seek(0)
        text.truncate()
