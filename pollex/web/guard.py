"""The checks of every request: host, origin, token, limits; and the headers of answers.

A page of another site, a name that resolves to loopback, and another user of the machine all reach
a local server:
none of them may read conversations or write labels.
"""

from __future__ import annotations

import asyncio
import ipaddress
import secrets
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs, quote

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pollex.runs.options import MAX_UPLOAD_BYTES
from pollex.text import format_size
from pollex.web import links
from pollex.web.frame import answer_refusal
from pollex.web.guests import GUEST_STATE_KEY, Guest
from pollex.web.hidden_paths import hide_paths_in_answers, list_path_replacements
from pollex.web.hooks import IS_READER, REQUESTED_ADDRESS, SERVED_SITE
from pollex.web.site import Site

CONTENT_SECURITY_POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types pollex",
    ]
)
SECURITY_HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
SAFE_METHODS = ("GET", "HEAD")
OPEN_PATHS = (links.ENTER_PATH, links.HEALTH_PATH)
"""Paths that need no token."""

MAX_BODY_BYTES = 1 << 20
MAX_FRAMING_BYTES = 2 << 20
"""Bytes that an upload may have beside its files: names and what stands between them."""

SEND_LESS_HINT = "send less at once"
MAX_HEAD_BYTES = 16 << 10
MAX_REQUESTS_AT_ONCE = 64
MAX_BODY_SECONDS = 30.0
MAX_WRONG_TOKENS_A_MINUTE = 10
MINUTE_SECONDS = 60.0
COOKIE_SECONDS = 30 * 24 * 3600


def is_loopback(host: str) -> bool:
    """Tell whether only this machine reaches an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def is_same_site(
    headers: Headers,
    method: str,
    origins: Collection[str],
) -> bool:
    """Tell whether a request comes from the server's own pages, from no page, or by a typed address.

    Args:
        origins: Origins whose pages may write.
    """
    origin = headers.get("origin")
    fetched = headers.get("sec-fetch-site")
    # reading: from own pages, by a typed address, or by a link that opens a page of its own
    if method in SAFE_METHODS:
        opened = (
            headers.get("sec-fetch-mode") == "navigate"
            and headers.get("sec-fetch-dest") == "document"
        )
        return fetched in (None, "same-origin", "none") or opened
    # of our own forms, too, as pages tell no referrer; only a browser can say the rest
    if origin == "null":
        return fetched == "same-origin"
    if origin is not None:
        return origin in origins and fetched in (None, "same-origin")
    return fetched in (None, "same-origin", "none")


@dataclass(frozen=True)
class AccessRules:
    """The conditions of access.

    Attributes:
        hosts: Names with port that requests may be sent to.
        origins: Origins whose pages may write: scheme, name, port.
        token: Token of visitors; None asks for none.
        site: Name of this server and store in cookies and pages.
        guest_of: Finds who has another token, that opens one page.
        max_upload: Bytes that files which are sent may have together.
    """

    hosts: frozenset[str]
    origins: frozenset[str]
    token: str | None
    site: str
    guest_of: Callable[[str], Guest | None] = lambda _: None
    max_upload: int = MAX_UPLOAD_BYTES

    @classmethod
    def at(
        cls,
        names: Iterable[str],
        port: int,
        token: str | None,
        site: str,
        behind: str | None = None,
        guest_of: Callable[[str], Guest | None] = lambda _: None,
        max_upload: int = MAX_UPLOAD_BYTES,
    ) -> AccessRules:
        """Make the conditions of a server with several names, or behind a proxy."""
        hosts = {f"{_bracket_host(name)}:{port}" for name in names}
        origins = {f"http://{host}" for host in hosts}
        # browsers see the proxy's name and scheme, not those of this server
        if behind:
            scheme, _, host = behind.rstrip("/").partition("://")
            hosts = hosts | {host}
            origins = origins | {f"{scheme}://{host}"}

        return cls(
            frozenset(hosts),
            frozenset(origins),
            token,
            site,
            guest_of,
            max_upload,
        )

    @property
    def cookie(self) -> str:
        """Name of the cookie; cookies know no ports, so it names the store."""
        return f"pollex-{self.site}"


@dataclass
class Guard:
    """The application with everything in front of it that protects it."""

    app: ASGIApp
    door: AccessRules
    _wrong: deque[float] = field(default_factory=deque)
    _running: int = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        # start and end of the server pass; anything but HTTP gets no answer
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return

        # who asks, and for what: set anew for each request, and read by pages and menu
        SERVED_SITE.set(None)
        IS_READER.set(False)
        REQUESTED_ADDRESS.set(_get_path_and_query(scope))
        answer = _add_headers(send, scope["path"])
        response = self._stopped(scope)
        if response is not None:
            await response(scope, receive, answer)
        else:
            site: Site = self.app.state.site  # type: ignore[attr-defined] # ours, of `make_application`
            SERVED_SITE.set(site)
            # a guest who only reads sees no paths of the server
            if IS_READER.get():
                answer = hide_paths_in_answers(answer, list_path_replacements(site))
            await self._pass(scope, receive, answer)

    def _stopped(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        method = scope["method"]
        # exactly one name, and one of this server's: any other may merely resolve to it
        if (
            headers.getlist("host") == []
            or len(headers.getlist("host")) > 1
            or not self._known(headers["host"])
        ):
            return answer_refusal(
                scope,
                400,
                "this name is not one of this server's",
                "open the address that it printed",
            )

        if not is_same_site(headers, method, self.door.origins):
            return answer_refusal(
                scope,
                403,
                "the request comes from another site",
                "open the page in a tab of its own",
            )
        # the token of the owner or of a guest
        if response := self._refuse_without_token(scope, headers):
            return response
        if sum(len(name) + len(value) for name, value in scope["headers"]) > MAX_HEAD_BYTES:
            return answer_refusal(scope, 431, "the request's head is over 16 kB", "")

        # a body that announces too much is refused before it is read
        longest = self._longest(scope)
        announced = headers.get("content-length") or "0"
        if not (announced.isascii() and announced.isdigit()):
            return answer_refusal(scope, 400, "the request's length is no number", "")
        # twenty digits are over any limit already, and quick to read as a number
        if int(announced[:20]) > longest:
            return answer_refusal(
                scope,
                413,
                f"the request is over {format_size(longest)}",
                SEND_LESS_HINT,
            )

        if self._running >= MAX_REQUESTS_AT_ONCE:
            return answer_refusal(
                scope,
                503,
                "64 requests are being answered already",
                "try again in a moment",
            )

        return None

    def _longest(self, scope: Scope) -> int:
        """Return how many bytes a body may have: files are streamed, all others are held."""
        is_upload = scope["path"] == links.UPLOAD_PATH and scope["method"] == "POST"
        if is_upload:
            return self.door.max_upload + MAX_FRAMING_BYTES
        return MAX_BODY_BYTES

    def _known(self, host: str) -> bool:
        return host.lower() in self.door.hosts

    def _refuse_without_token(self, scope: Scope, headers: Headers) -> Response | None:
        """Return the page that asks for the token, or that keeps it in a cookie; None lets the request through."""
        path = scope["path"]
        token = self.door.token
        if path == links.ENTER_PATH:
            return self._enter(scope, token, _read_cookie(headers, self.door.cookie))

        # programs send the token in a header, browsers in the cookie
        presented = headers.get("authorization", "").removeprefix("Bearer ") or _read_cookie(
            headers, self.door.cookie
        )
        # the pages' own files need no token
        if (
            path in OPEN_PATHS
            or path.startswith(f"{links.STATIC_PATH}/")
            or self._is(presented, token)
        ):
            return None
        # a guest's token opens what it was made for, even where the server has no token
        if (guest := self.door.guest_of(presented)) is not None:
            return self._as_guest(scope, guest)
        if token is None:
            return None

        return answer_refusal(
            scope,
            401,
            "this server wants its token",
            "open the address that `pollex serve` printed",
        )

    def _as_guest(self, scope: Scope, guest: Guest) -> Response | None:
        if not guest.may(scope["path"], scope["method"]):
            if guest.is_reader:
                what = "this link is for reading alone"
                return answer_refusal(scope, 403, what, "ask whoever gave it to you")
            return answer_refusal(
                scope,
                403,
                "this link opens one page only",
                "open the link again that you were given",
            )

        # paths are hidden from readers; who labels is handed to the page
        if guest.is_reader:
            IS_READER.set(True)
        else:
            scope.setdefault("state", {})[GUEST_STATE_KEY] = guest

        return None

    @staticmethod
    def _is(presented: str, token: str | None) -> bool:
        return token is not None and secrets.compare_digest(presented.encode(), token.encode())

    def _enter(self, scope: Scope, token: str | None, own_token: str) -> Response:
        query = parse_qs(scope["query_string"].decode("latin-1"))
        presented = query.get("token", [""])[0]
        # the owner's token comes first; any other may be a guest's
        if self._is(presented, token):
            guest = None
        else:
            guest = self.door.guest_of(presented)

        if token is not None and guest is None and not self._is(presented, token):
            return self._wrong_token(scope, presented)
        # there is one cookie: a guest's token would replace the owner's in this browser
        if guest is not None and self._is(own_token, token):
            return answer_refusal(
                scope,
                409,
                "a guest's link would end your own session",
                "open it in a private window",
            )

        response = RedirectResponse(guest.page if guest else links.HOME_PATH, 303)
        # scripts can't read the cookie
        if presented and (guest is not None or token is not None):
            response.set_cookie(
                self.door.cookie,
                presented,
                max_age=COOKIE_SECONDS,
                path="/",
                httponly=True,
                samesite="lax",
            )

        return response

    def _wrong_token(self, scope: Scope, presented: str) -> Response:
        # times of wrong tokens within the last minute, the oldest first
        moment = time.monotonic()
        while self._wrong and moment - self._wrong[0] > MINUTE_SECONDS:
            self._wrong.popleft()

        if len(self._wrong) >= MAX_WRONG_TOKENS_A_MINUTE:
            return answer_refusal(
                scope,
                429,
                "ten wrong tokens in a minute",
                "wait a minute",
            )

        # an address without a token is no attempt to guess it
        if presented:
            self._wrong.append(moment)

        return answer_refusal(
            scope,
            401,
            "this is not the token",
            "open the address that `pollex serve` printed",
        )

    async def _pass(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._running += 1
        # not empty once a part of the answer has been sent
        started = list[bool]()

        limit = asyncio.timeout(MAX_BODY_SECONDS)

        async def watched(message: Message) -> None:
            if message["type"] == "http.response.start" and "content-length" not in MutableHeaders(
                scope=_get_raw_headers(message)
            ):
                limit.reschedule(None)  # a stream has begun: it may take its time

            started.append(True)
            await send(message)

        longest = self._longest(scope)

        async def heard() -> Message:
            message = await receive()
            # an upload takes as long as it takes, while something comes
            if longest > MAX_BODY_BYTES and not limit.expired():
                more = message.get("more_body", False)
                limit.reschedule(
                    asyncio.get_running_loop().time() + MAX_BODY_SECONDS if more else None
                )
            return message

        try:
            async with limit:
                await self.app(scope, _limit_body(heard, longest), watched)
        except TimeoutError:
            # an answer that has begun can't be replaced by a refusal
            if not started:
                late = answer_refusal(
                    scope,
                    503,
                    "the answer took longer than 30 s",
                    "ask for less at once",
                )
                await late(scope, receive, send)
        finally:
            self._running -= 1


def _limit_body(receive: Receive, longest: int) -> Receive:
    # a body may be longer than it announced: bytes are counted as they come
    total = 0

    async def counted() -> Message:
        nonlocal total
        message = await receive()
        total += len(message.get("body", b""))
        if total > longest:
            raise HTTPException(413, f"the request is over {format_size(longest)}")
        return message

    return counted


def _add_headers(send: Send, path: str) -> Send:
    async def with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=_get_raw_headers(message))
            headers.update(SECURITY_HEADERS)
            # pages have people's conversations in them, and stay out of the browser's cache
            if not path.startswith(f"{links.STATIC_PATH}/"):
                headers["Cache-Control"] = "no-store"

        await send(message)

    return with_headers


def _get_path_and_query(scope: Scope) -> str:
    """Return path and query of a request."""
    # latin-1 decodes any byte, so that no query fails here
    query = scope["query_string"].decode("latin-1")
    path = quote(scope["path"])
    return f"{path}?{query}" if query else path


def _get_raw_headers(message: Message) -> Message:
    # a list of its own, as servers may send headers that can't be changed
    message["headers"] = list(message.get("headers", []))
    return message


def _read_cookie(headers: Headers, name: str) -> str:
    try:
        morsel = SimpleCookie(headers.get("cookie", "")).get(name)
    except CookieError:
        return ""

    return morsel.value if morsel else ""


def _bracket_host(name: str) -> str:
    if ":" in name:
        return f"[{name}]"
    return name.lower()
