"""Replies that are read while they are written, put together as the endpoint would have sent them whole."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

EVENTS = "text/event-stream"
_LAST = "[DONE]"
_ABOUT = ("id", "model", "system_fingerprint", "usage")
_ASKED = b',"stream":true,"stream_options":{"include_usage":true}}'


def as_stream(body: bytes) -> bytes:
    """Return a request's body that asks for the reply in pieces."""
    return body[:-1] + _ASKED


class Heard:
    """The pieces of one reply (server-sent events of OpenAI's protocol).

    Args:
        tell: Gets the text so far after each piece.

    Attributes:
        whole: Whether the last piece has come.
    """

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._rest, self._text, self._refusal = b"", "", ""
        self._about: dict[str, Any] = {}
        self._finish: str | None = None
        self._error: Any = None
        self.whole = False

    def feed(self, data: bytes) -> None:
        """Take what has arrived; half a line waits for its other half."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            name, _, value = line.decode("utf-8", "replace").partition(":")
            if name == "data":
                self._take(value.strip())

    def body(self) -> str:
        """Return the reply as JSON: a completion, or the error that came in its place."""
        if self._error is not None:
            return json.dumps({"error": self._error}, ensure_ascii=False)
        message = {"role": "assistant", "content": self._text, "refusal": self._refusal or None}
        choice = {"index": 0, "message": message, "finish_reason": self._finish}
        return json.dumps(self._about | {"object": "chat.completion", "choices": [choice]}, ensure_ascii=False)

    def _take(self, value: str) -> None:
        if value == _LAST:
            self.whole = True
            return
        try:
            piece = json.loads(value)
            self._error = piece.get("error", self._error)
            self._about |= {
                name: piece[name] for name in ("id", "model", "system_fingerprint", "usage") if piece.get(name)
            }
            for choice in piece.get("choices") or ():
                self._add(choice)
        except (ValueError, TypeError, AttributeError, RecursionError):
            self._error = f"not a piece of a chat completion: {value[:120]}"

    def _add(self, choice: dict[str, Any]) -> None:
        delta = choice.get("delta") or {}
        self._refusal += delta.get("refusal") or ""
        if choice.get("finish_reason"):
            self._finish, self.whole = choice["finish_reason"], True
        if delta.get("content"):
            self._text += delta["content"]
            self._tell(self._text)
