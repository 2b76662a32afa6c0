"""The HTTP side: a hand-parsed protocol, quick enough that the client is what is measured."""

import asyncio
import hashlib
import json
import re
import threading
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from typing import Any, Self

from protocol_server.batches import Batches
from protocol_server.manners import Manner, mannered, models
from protocol_server.replies import Rule, Sending, honest, spoiled, whole

_TLS_HANDSHAKE = 0x16
_LENGTH = re.compile(rb"content-length:\s*(\d+)", re.IGNORECASE)
_MODELS = {"object": "list", "data": [{"id": "honest", "object": "model", "max_model_len": 32768}]}


class State:
    """Rules, latency and counts."""

    def __init__(self, latency: float, script: Sequence[Rule]) -> None:
        self.latency = latency
        self.manner: Manner | None = None
        self.models: str | None = None
        self.script = list(script)
        self.open = 0
        self.batches = Batches()
        self.forget()

    def forget(self) -> None:
        """Sets all counts to nothing."""
        self.received = self.paid = self.at_once = self.most_at_once = self.connections = 0
        self.statuses: Counter[int] = Counter()
        self.kept: dict[str, Sending] = {}
        self.bodies: Counter[str] = Counter()
        self.headers = ""
        self._matched: Counter[tuple[int, str]] = Counter()
        self._moments: deque[float] = deque()

    def counts(self) -> dict[str, Any]:
        """See the package."""
        return {
            "received": self.received,
            "sent": sum(self.statuses.values()),
            "statuses": {str(status): number for status, number in self.statuses.items()},
            "paid": self.paid,
            "distinct": len(self.bodies),
            "repeated": self.received - len(self.bodies),
            "connections": self.connections,
            "open": self.open,
            "most_at_once": self.most_at_once,
        }

    def reply(self, body: bytes, headers: str) -> Sending:
        """What to send for a chat request."""
        self.received += 1
        self.headers = headers
        digest = hashlib.sha256(body).hexdigest()
        self.bodies[digest] += 1
        if digest in self.kept:
            return self.kept[digest]
        request = json.loads(body)
        if self.manner is not None:
            return mannered(self.manner, request, self.latency)
        for number, rule in enumerate(self.script):
            if self._applies(number, rule, body, digest):
                limited = rule["do"] == "rate"
                sending = (
                    self._rate(rule) if limited else spoiled(rule, request, headers, self.latency)
                )
                if sending is not None:
                    if rule.get("kept"):
                        self.kept[digest] = sending
                    return sending
        return honest(request, self.latency)

    def _applies(self, number: int, rule: Rule, body: bytes, digest: str) -> bool:
        if rule.get("match", "").encode() not in body:
            return False
        counter = (number, digest if rule.get("each") else "")
        position = self._matched[counter]
        self._matched[counter] += 1
        after = rule.get("after", 0)
        return bool(after <= position < after + rule.get("count", 1 << 60))

    def _rate(self, rule: Rule) -> Sending | None:
        now = asyncio.get_running_loop().time()
        while self._moments and self._moments[0] <= now - 1.0:
            self._moments.popleft()
        if len(self._moments) < rule["per_second"]:
            self._moments.append(now)
            return None
        error = {
            "error": {
                "message": "Rate limit reached",
                "type": "requests",
                "code": "rate_limit_exceeded",
            }
        }
        return whole(429, error, rule.get("headers", {"Retry-After": "1"}))


class _Connection(asyncio.Protocol):
    def __init__(self, state: State) -> None:
        self._state = state
        self._buffer = bytearray()
        self._busy = False
        self._gone = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: asyncio.Transport = transport  # type: ignore[assignment]
        self._state.connections += 1
        self._state.open += 1

    def connection_lost(self, exc: Exception | None) -> None:
        self._gone = True
        self._state.open -= 1
        if self._busy:
            self._state.at_once -= 1

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if self._buffer[0] == _TLS_HANDSHAKE:
            self._transport.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            self._transport.close()
        else:
            self._next_request()

    def _next_request(self) -> None:
        end = self._buffer.find(b"\r\n\r\n")
        if self._busy or end < 0:
            return
        head = bytes(self._buffer[:end])
        length = _LENGTH.search(head)
        size = end + 4 + (int(length.group(1)) if length else 0)
        if len(self._buffer) < size:
            return
        body = bytes(self._buffer[end + 4 : size])
        del self._buffer[:size]
        self._answer(head.decode("latin-1"), body)

    def _answer(self, head: str, body: bytes) -> None:
        method, address, _ = head.split(" ", 2)
        path = address.partition("?")[0]
        if (sending := self._state.batches.reply(method, address, body)) is not None:
            self._busy = True
            self._state.at_once += 1
            self._send(sending, iter(sending.parts))
            return
        if path.endswith("/chat/completions"):
            state = self._state
            self._busy = True
            state.at_once += 1
            state.most_at_once = max(state.most_at_once, state.at_once)
            sending = state.reply(body, head)
            self._send(sending, iter(sending.parts))
        else:
            for _, data in self._control(method, path, body).parts:
                self._transport.write(data)

    def _control(self, method: str, path: str, body: bytes) -> Sending:
        if path.endswith("/models"):
            if self._state.models is not None:
                return whole(200, self._state.models)
            manner = self._state.manner
            return whole(200, _MODELS) if manner is None else whole(*models(manner))
        if path == "/script":
            self._state.script, self._state.kept = json.loads(body), {}
        elif path == "/reset":
            self._state.forget()
        elif path != "/counts":
            return whole(404, {"error": {"message": f"no {method} {path} here"}})
        return whole(200, self._state.counts())

    def _send(self, sending: Sending, parts: Iterator[tuple[float, bytes]]) -> None:
        for delay, data in parts:
            if delay > 0:
                asyncio.get_running_loop().call_later(delay, self._send_later, sending, parts, data)
                return
            if not self._gone:
                self._transport.write(data)
        self._finish(sending)

    def _send_later(
        self, sending: Sending, parts: Iterator[tuple[float, bytes]], data: bytes
    ) -> None:
        if self._gone:
            return
        self._transport.write(data)
        self._send(sending, parts)

    def _finish(self, sending: Sending) -> None:
        if self._gone or sending.end == "hang":
            return
        self._busy = False
        self._state.at_once -= 1
        if sending.whole:
            self._state.statuses[sending.status] += 1
            self._state.paid += sending.status == 200
        if sending.end == "abort":
            self._transport.abort()
        elif sending.end == "close":
            self._transport.close()
        else:
            self._next_request()


async def serve(state: State, port: int = 0) -> asyncio.Server:
    """A server on loopback."""
    return await asyncio.get_running_loop().create_server(
        lambda: _Connection(state), "127.0.0.1", port
    )


class ProtocolServer:
    """A server on a thread of this process; see the package.

    Args:
        latency: Seconds before each honest reply.
        script: Rules.
    """

    def __init__(self, latency: float = 0.0, script: Sequence[Rule] = ()) -> None:
        self._state = State(latency, script)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        server = asyncio.run_coroutine_threadsafe(serve(self._state), self._loop).result()
        self._server = server
        self.port = server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/v1"
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._server.close)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)
        self._loop.close()

    def counts(self) -> dict[str, Any]:
        """See the package."""

        async def read() -> dict[str, Any]:
            return self._state.counts()

        if not self._thread.is_alive():
            return self._state.counts()
        return asyncio.run_coroutine_threadsafe(read(), self._loop).result()

    @property
    def batches(self) -> Batches:
        """The provider of batches; a test sets its fields while nothing is asked."""
        return self._state.batches

    @property
    def headers(self) -> str:
        """Those of the last chat request, as they came."""
        return self._state.headers

    def behave(self, manner: Manner | None) -> None:
        """Takes on the manner of an endpoint (see `manners`), and begins to count anew."""

        async def take() -> None:
            self._state.forget()
            self._state.manner = manner

        asyncio.run_coroutine_threadsafe(take(), self._loop).result()

    def list_models(self, body: str) -> None:
        """Replaces the list of models by a text."""
        self._loop.call_soon_threadsafe(setattr, self._state, "models", body)

    def script(self, rules: Sequence[Rule]) -> None:
        """Replaces the rules."""
        self._loop.call_soon_threadsafe(setattr, self._state, "script", list(rules))
