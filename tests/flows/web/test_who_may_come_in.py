"""Every route: without a token, under another name, from another site, with a parameter that doesn't exist."""

from collections.abc import AsyncIterator

import pytest
from httpx2 import AsyncClient
from starlette.routing import Route
from web_site import TOKEN, made_app

from pollex.store.store import Store
from pollex.web import links
from pollex.web.app import list_routes
from pollex.web.views import list_every_route

OPEN = {links.ENTER_PATH, links.HEALTH_PATH}
ROUTES = {route.path: route for route in list_routes() if isinstance(route, Route)}
NAMES = {"run": "learn-1", "door": "learn"}
NAMES |= dict.fromkeys(("id", "set", "rubric", "calibrator", "study", "begun", "log"), "x")
NAMES |= dict.fromkeys(("queue", "child", "draft", "guest"), "1")
PAGES = [
    path.format(**NAMES)
    for path in sorted(ROUTES)
    if not path.startswith(links.STATIC_PATH) and path not in OPEN
]
READ = [path for path in PAGES if path in ROUTES and "GET" in (ROUTES[path].methods or ())]


async def test_without_the_token_or_under_another_name_no_route_answers(
    stranger: AsyncClient, client: AsyncClient
) -> None:
    for path in PAGES:
        answer = await stranger.get(path)
        assert answer.status_code == 401, path
        assert "conversation 1" not in answer.text
        for host in ("evil.example:8765", "127.0.0.1:1", "127.0.0.1", ""):
            assert (await client.get(path, headers={"Host": host})).status_code == 400, host


FOREIGN = (
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Origin": "http://evil.example"},
    {"Origin": "null"},
    {"Origin": "null", "Sec-Fetch-Site": "cross-site"},
    {"Origin": "http://127.0.0.1:8765", "Sec-Fetch-Site": "cross-site"},
)


async def test_no_other_site_writes_and_a_form_of_our_own_page_that_tells_no_referrer_is_ours(
    client: AsyncClient,
) -> None:
    for path in PAGES:
        for headers in FOREIGN:
            assert (await client.post(path, headers=headers)).status_code == 403, headers
    ours = {"Origin": "null", "Sec-Fetch-Site": "same-origin"}
    assert (await client.post("/api/queues", data={"name": ""}, headers=ours)).status_code == 400


WRITES = sorted({route.path for route in list_every_route() if "POST" in (route.methods or ())})


@pytest.mark.parametrize("path", WRITES)
async def test_every_address_that_writes_asks_where_a_request_comes_from_and_takes_no_more_than_it_may(
    path: str, client: AsyncClient
) -> None:
    async def parts() -> AsyncIterator[bytes]:
        for _ in range(26):
            yield b" " * 100_000

    for headers in FOREIGN:
        assert (await client.post(path, json={}, headers=headers)).status_code == 403, headers
    # files are streamed, and have a limit of their own
    kinds = ("application/json", "application/x-www-form-urlencoded", "text/plain")
    for kind in () if path == links.UPLOAD_PATH else kinds:
        answer = await client.post(path, content=parts(), headers={"Content-Type": kind})
        assert (answer.status_code, "over 1 MB" in answer.text) == (413, True)


async def test_another_site_may_link_to_a_page_and_not_read_it(client: AsyncClient) -> None:
    opened = {
        "Sec-Fetch-Site": "cross-site",
        "Sec-Fetch-Mode": "navigate",
        "Sec-Fetch-Dest": "document",
    }
    assert (await client.get("/", headers=opened)).status_code == 200
    for read in ({"Sec-Fetch-Dest": "iframe"}, {"Sec-Fetch-Mode": "cors"}):
        assert (await client.get("/", headers=opened | read)).status_code == 403


async def test_an_address_that_is_not_there_leads_to_what_is(client: AsyncClient) -> None:
    assert "what there is: /runs" in (await client.get("/run")).text
    told = (await client.get("/api/conversation/search?run=learn-1&q=x")).json()
    assert (told["status"], "/api/conversations/search" in told["remedy"]) == (404, True)
    assert (await client.get("/api/sets/diff?b=x")).json()["error"] == "a is missing"
    told = (await client.get("/api/labels")).json()
    assert (told["status"], told["remedy"]) == (405, "it takes POST")


async def test_an_unknown_parameter_is_refused_and_those_there_are_are_named(
    client: AsyncClient,
) -> None:
    for path in READ:
        answer = await client.get(path, params={"nonsense": "1"})
        assert answer.status_code == 400, path
        assert "parameters here" in answer.text


async def test_every_answer_has_the_policy(client: AsyncClient, stranger: AsyncClient) -> None:
    for path in [*PAGES, links.ENTER_PATH, links.HEALTH_PATH, f"{links.STATIC_PATH}/x/app.css"]:
        for who in (client, stranger):
            answer = await who.get(path)
            assert answer.headers["content-security-policy"].startswith(
                "default-src 'none'; script-src 'self'"
            )
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert answer.headers["referrer-policy"] == "no-referrer"
            assert "access-control-allow-origin" not in answer.headers


async def test_the_token_becomes_a_cookie_and_ten_wrong_ones_a_minute_are_enough(
    stranger: AsyncClient,
) -> None:
    entered = await stranger.get(links.ENTER_PATH, params={"token": TOKEN})
    assert (entered.status_code, entered.headers["location"]) == (303, "/")
    cookie = entered.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=lax" in cookie
    assert (await stranger.get("/")).status_code == 200
    tried = [
        (await stranger.get(links.ENTER_PATH, params={"token": f"{n}"})).status_code
        for n in range(12)
    ]
    assert tried == [401] * 10 + [429] * 2


async def test_a_stranger_learns_nothing_but_that_the_server_lives(
    stranger: AsyncClient, client: AsyncClient
) -> None:
    assert (await stranger.get(links.HEALTH_PATH)).json() == {"ok": True}
    assert {"site", "pollex", "schema", "uptime"} <= (
        await client.get(links.HEALTH_PATH)
    ).json().keys()


async def test_a_body_over_a_megabyte_is_refused_whatever_it_says_of_its_length(
    client: AsyncClient,
) -> None:
    assert (await client.post("/", content=b"x" * ((1 << 20) + 1))).status_code == 413


async def test_two_host_headers_are_refused(store: Store) -> None:
    scope = {
        "type": "http", "method": "GET", "path": "/", "query_string": b"",
        "headers": [(b"host", b"127.0.0.1:8765"), (b"host", b"127.0.0.1:8765")],
    }  # fmt: skip
    sent: list[dict[str, object]] = []

    async def send(message: object) -> None:
        assert isinstance(message, dict)
        sent.append(message)

    await made_app(store)(scope, None, send)  # type: ignore[arg-type]
    assert sent[0]["status"] == 400
