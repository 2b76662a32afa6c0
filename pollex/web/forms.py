"""Queries and bodies of requests, parsed into models; unknown parameters are errors."""

import unicodedata
from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, TypeVar
from urllib.parse import parse_qsl

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from pollex.text import SURROGATE_PATTERN, is_visible, parse_json
from pollex.web.faults import RequestError, VersionConflict
from pollex.web.site import Site

AS_FILE_PARAMETER = "as_file"
"""Parameter of every page: it is sent as one file."""
MAX_JSON_NUMBER = 1 << 53
"""Numbers from here on are not told apart in JSON, and their products fit no column."""


class RequestForm(BaseModel):
    """Base of all queries and bodies."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    BEGINNINGS: ClassVar[tuple[str, ...]] = ()


class PrefixedFields(dict[str, Any]):
    """Fields that only the page knows; `Annotated[Fields, "q-", …]` says how their names begin."""


class OpenForm(RequestForm):
    """A form with such fields; it allows no others."""

    model_config = ConfigDict(frozen=True, extra="allow")


AnswerFields = Annotated[PrefixedFields, "q-"]
"""By `q-ID` of a question the place of the option that was chosen."""

NameText = Annotated[str, Field(min_length=1, max_length=80)]
CONTROL_CATEGORIES = ("Cc", "Zl", "Zp")
"""Of controls and ends of lines; joiners within a word belong to some languages' names."""


def require_name_of_person(name: str) -> str:
    """Return a name under which somebody labels.

    Raises:
        ValueError: It is blank, or has characters that nobody sees.
    """
    has_controls = any(unicodedata.category(letter) in CONTROL_CATEGORIES for letter in name)
    if has_controls or not is_visible(name):
        raise ValueError("say who you are: a name that people can read")
    return name


Person = Annotated[NameText, AfterValidator(require_name_of_person)]
ShortText = Annotated[str, Field(max_length=80)]
LongText = Annotated[str, Field(max_length=2000)]
RowIndex = Annotated[int, Field(ge=0)]
"""A row in a list, from 0."""
WindowSize = Annotated[int, Field(ge=1, le=500)]
"""How many rows of it."""

FormType = TypeVar("FormType", bound=RequestForm)


def get_site(request: Request) -> Site:
    """Return what the server shows."""
    site: Site = request.app.state.site
    return site


def read_query(request: Request, form: type[FormType]) -> FormType:
    """Read a request's query.

    Raises:
        RequestError: A parameter is unknown or wrong.
    """
    query = {}
    for name, value in request.query_params.items():
        # a field that is left empty counts as not sent
        if value != "" and name != AS_FILE_PARAMETER:
            query[name] = value
    return _validate_form(query, form)


async def read_body(request: Request, form: type[FormType]) -> FormType:
    """Read a request's body: JSON, or the fields of a form without script.

    Raises:
        RequestError: It is neither, or a field is unknown or wrong.
        VersionConflict: The page was made by another server.
    """
    # scripts send JSON, and their page's server in a header; forms have both as fields
    if request.headers.get("content-type", "").startswith("application/json"):
        try:
            body = parse_json((await request.body()).decode("utf-8"))
        except ValueError as error:
            raise RequestError(f"the body is not JSON: {error}") from error

        page = request.headers.get("x-pollex-site", "")
    else:
        body = _collect_fields(
            parse_qsl((await request.body()).decode("utf-8", "replace")),
            form,
        )
        page = str(body.pop("site", ""))

    if page and page != get_site(request).id:
        raise VersionConflict(
            "this page was made by another server",
            hint="load it again; what you typed stays in the form",
        )

    return _validate_form(body, form)


def _collect_fields(pairs: Sequence[tuple[str, str]], form: type[RequestForm]) -> dict[str, object]:
    """Return the fields of a form; those that may be ticked more than once as lists."""
    several = set()
    for name, field in form.model_fields.items():
        if field.annotation == tuple[str, ...]:
            several.add(name)
    # also one tick alone is a list
    return dict(pairs) | {name: [value for key, value in pairs if key == name] for name in several}


def _validate_form(values: object, form: type[FormType]) -> FormType:
    # looked at twice: here as it was sent, and below as the form reads it
    _require_storable(values)
    try:
        model = form.model_validate(values)
    except ValidationError as error:
        # one mistake is told at a time
        first = error.errors(include_url=False, include_input=False)[0]
        name = ".".join(map(str, first["loc"])) or "the whole"
        if first["type"] == "extra_forbidden":
            what = "there is no such parameter"
        else:
            what = first["msg"]

        if first["type"] == "missing":
            what = f"{name} is missing"
        else:
            what = f"{name}: {what}"

        raise RequestError(what, hint=f"parameters here: {_list_known_fields(form)}") from error

    # an open form takes fields that begin as its page says, and no others
    if stray := [name for name in model.model_extra or () if not name.startswith(form.BEGINNINGS)]:
        raise RequestError(
            f"{stray[0]}: there is no such field",
            hint=f"parameters here: {_list_known_fields(form)}",
        )

    # what came as text may be a number only now
    _require_storable(model.model_dump())
    return model


def _require_storable(value: object) -> None:
    """Refuse what no column of the store and no answer can hold: huge or infinite numbers, and half characters."""
    if isinstance(value, dict):
        # names of fields are looked at, too
        value = [*value, *value.values()]

    if isinstance(value, list | tuple):
        for part in value:
            _require_storable(part)
    elif isinstance(value, str) and SURROGATE_PATTERN.search(value):
        raise RequestError(
            "a text holds half a character (a lone surrogate)",
            hint="send it as UTF-8",
        )
    elif isinstance(value, int | float) and not -MAX_JSON_NUMBER <= value < MAX_JSON_NUMBER:
        raise RequestError("a number is too large", hint="give one of at most 15 digits")


def _list_known_fields(form: type[RequestForm]) -> str:
    return ", ".join([*form.model_fields, *(f"{name}…" for name in form.BEGINNINGS)]) or "none"


def answer_form(
    request: Request,
    address: str,
    facts: dict[str, object],
) -> Response:
    """Answer a script with facts, and a form with the page that comes next."""
    if request.headers.get("content-type", "").startswith("application/json"):
        return JSONResponse({"ok": True, **facts})
    return RedirectResponse(address, 303)
