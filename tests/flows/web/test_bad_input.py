"""Whatever is sent, the answer is a page, a figure or a 4xx: nothing that was sent ends in a traceback."""

import json
import re

import pytest
from httpx2 import AsyncClient
from starlette.routing import Route

from pollex.web.app import list_routes
from pollex.web.faults import RequestError
from pollex.web.questions import parse_questionnaire

VALUES = ("99999999999999999999", "9223372036854775807", "nan\x00")
PLACES = {"run": "learn-1", "queue": "all", "set": "last"}


async def test_no_parameter_of_a_page_ends_in_a_traceback(client: AsyncClient) -> None:
    for route in list_routes():
        if (
            not isinstance(route, Route)
            or "GET" not in (route.methods or ())
            or "stream" in route.path
        ):
            continue
        path = re.sub(r"{(\w+)(?::\w+)?}", lambda found: PLACES.get(found[1], "1"), route.path)
        told = await client.get(path, params={"no_such": "1"})
        for name in re.findall(r"parameters here: ([\w, ]+)", told.text)[:1]:
            for one in name.split(", "):
                for value in VALUES:
                    answer = await client.get(path, params={one: value})
                    assert answer.status_code < 500, f"{path}?{one}={value}: {answer.text[:2000]}"


async def test_no_value_of_a_body_ends_in_a_traceback(client: AsyncClient) -> None:
    bad = (10**30, -(10**19), float("inf"), "\ud800", {"\ud800": 1}, [["\udfff"]], "[" * 100_000)
    for route in list_routes():
        if not isinstance(route, Route) or "POST" not in (route.methods or ()):
            continue
        path = re.sub(r"{(\w+)(?::\w+)?}", lambda found: PLACES.get(found[1], "1"), route.path)
        told = await client.post(path, json={"no_such": 1})
        names = re.findall(r"parameters here: ([\w, ]+)", told.text)[:1] or ["x"]
        for value in bad:
            body = json.dumps(
                dict.fromkeys(names[0].split(", "), value)
                | ({"\ud800": 1} if value == "\ud800" else {})
            )
            answer = await client.post(
                path, content=body, headers={"Content-Type": "application/json"}
            )
            assert answer.status_code < 500, f"{path} {body[:200]}: {answer.text[:2000]}"


def test_deep_toml_is_no_questionnaire() -> None:
    with pytest.raises(RequestError, match="nested too deep"):
        parse_questionnaire("a = " + "[" * 20_000)
