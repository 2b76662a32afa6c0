"""A tool's logs in the browser: fetched, fetched again with nothing twice, and after a failure on from there."""

import asyncio
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from httpx2 import AsyncClient
from web_site import client_of, made_app, made_store

from pollex.services.readings import list_readings

KEYS = {"key-LANGFUSE_PUBLIC_KEY": "pk", "key-LANGFUSE_SECRET_KEY": "canary-of-the-key"}


class Langfuse(ThreadingHTTPServer):
    """A server with so many observations, one a second; it refuses as long as `refuses` says."""

    count = 3
    refuses = False

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.server_port}"


class Answers(BaseHTTPRequestHandler):
    server: Langfuse

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        address = urlsplit(self.path)
        since = parse_qs(address.query).get("fromStartTime", [""])[0]
        rows = []
        for number in range(self.server.count if "observations" in address.path else 0):
            time = f"2026-01-01T00:00:0{number}Z"
            about = {"id": f"o{number}", "traceId": f"t{number}", "sessionId": f"s{number}"}
            words = {"input": f"Where is parcel {number}?", "output": "On its way."}
            row = about | words | {"startTime": time, "parentObservationId": None, "type": "SPAN"}
            rows += [row] if time >= since else []
        body = json.dumps({"data": rows, "meta": {"cursor": None}}).encode()
        self.send_response(401 if self.server.refuses else 200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def langfuse() -> Iterator[Langfuse]:
    server = Langfuse(("127.0.0.1", 0), Answers)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


async def fetch(client: AsyncClient, address: str, url: str, **fields: str) -> str:
    """Send a form that fetches, and wait for its command; its page."""
    begun = await client.post(address, data=KEYS | fields | {"url": url})
    page = begun.headers["location"]
    for _ in range(600):
        if (await client.get(f"/api{page}")).json()["state"] not in ("waiting", "running"):
            break
        await asyncio.sleep(0.1)
    return (await client.get(page)).text


async def count_conversations(client: AsyncClient, address: str) -> int:
    """Return how many conversations the page of a log counts."""
    for _ in range(600):
        view = (await client.get(f"/api{address}")).json()["view"]
        if view is not None:
            return int(view["conversations"])
        await asyncio.sleep(0.1)
    raise AssertionError("it was not read")


def list_files_with(folder: Path, words: bytes) -> list[Path]:
    """Return the files below a folder that have some words."""
    paths = [path for path in folder.rglob("*") if path.is_file()]
    return [path for path in paths if words in path.read_bytes()]


async def test_a_log_is_fetched_again_nothing_comes_twice_and_no_file_has_the_key(
    langfuse: Langfuse, tmp_path: Path
) -> None:
    with made_store(tmp_path / ".pollex", n=3) as own:
        app = made_app(own, local_endpoints=True)
        async with client_of(app) as client:
            langfuse.refuses = True
            failed = await fetch(client, "/api/logs/pull", langfuse.url, tool="langfuse")
            (log,) = list_readings(own.folder, kept_only=False)
            address = f"/logs/{log.id}"
            assert "HTTP 401" in failed
            assert "Fetch it from langfuse again" in (await client.get(address)).text
            langfuse.refuses = False
            done = await fetch(client, f"/api{address}/pull", langfuse.url)
            assert f'href="{address}">Look at the log</a>' in done
            assert await count_conversations(client, address) == 3
            page = (await client.get(address)).text
            langfuse.count = 5
            await fetch(client, f"/api{address}/pull", langfuse.url)
            assert await count_conversations(client, address) == 5
        assert "Fetch what is new from langfuse" in page
        (log,) = list_readings(own.folder, kept_only=False)
        assert len(list(log.folder.glob("*.jsonl"))) == 1
        assert list_files_with(own.folder, b"canary-of-the-key") == []
