"""The name that somebody labels under, kept by their browser: it is asked for once."""

from urllib.parse import quote, unquote

from starlette.requests import Request
from starlette.responses import Response

from pollex.web.forms import require_name_of_person
from pollex.web.guests import find_guest

NAME_COOKIE = "pollex-name"
NAME_COOKIE_SECONDS = 365 * 24 * 3600
MAX_NAME_CHARS = 80
NAME_FIELD = "who"
"""The field of all forms that ask for it."""


def read_name(request: Request) -> str:
    """Return the name of a guest, or the one typed last in this browser; empty where there is none."""
    if guest := find_guest(request):
        return guest.name

    name = unquote(request.cookies.get(NAME_COOKIE, ""))
    # whoever sends a request may have written the cookie
    try:
        return require_name_of_person(name) if len(name) <= MAX_NAME_CHARS else ""
    except ValueError:
        return ""


def remember_name(request: Request, response: Response, form: object) -> None:
    """Have the browser keep the name that a form says; scripts can't read it."""
    name = getattr(form, NAME_FIELD, "")
    is_new = isinstance(name, str) and name and name != read_name(request)
    if is_new and find_guest(request) is None:
        response.set_cookie(
            NAME_COOKIE,
            quote(name),
            max_age=NAME_COOKIE_SECONDS,
            path="/",
            httponly=True,
            samesite="lax",
        )
