"""Answers to readers without paths of the server: they see what was found, and not where it lies."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from starlette.datastructures import MutableHeaders
from starlette.types import Message, Send

from pollex.services.readings import list_readings
from pollex.web.site import Site

_PATH_PATTERN = re.compile(r"(?:^|(?<=[\s'\"=:,(]))/(?!/)[^\s'\"]*[^\s'\"/]")
"""An absolute path among words: not what stands behind a host."""
HIDING_CONTENT_TYPES = ("text/html", "application/json")
"""Kinds of answers that are looked through: others are what somebody said, or files of ours."""


def list_path_replacements(site: Site) -> Mapping[str, str]:
    """Return paths of the server with what stands for each, the longest first."""
    store = site.store.folder
    names: dict[str, str] = {}
    # logs that were brought, and the files that they are made of
    for reading in list_readings(store, kept_only=False):
        sources = zip(reading.sources, reading.titles, strict=False)
        names |= {source: title for source, title in sources if source.startswith("/")}
        names[str(reading.folder)] = reading.name

    # where commands worked, and what they read and wrote: the store may have moved since
    for run in site.runs():
        for place in _iterate_paths(run.arguments):
            names.setdefault(place, Path(place).name)

    # the store as it was named and as links lead to it, and the folder that it lies in
    for folder in {store.absolute(), store.resolve()}:
        names[str(folder)] = folder.name
        if folder.parent != Path("/"):
            names[f"{folder.parent}/"] = ""
            names[str(folder.parent)] = "."

    # folders that are looked at, and those that may be read
    watched = site.watcher.folders if site.watcher is not None else ()
    names |= {path: Path(path).name for path in watched}
    for root in site.roots.local:
        names[str(Path(root).absolute())] = Path(root).name

    # a longer path is replaced before one that it begins with
    return dict(sorted(names.items(), key=lambda pair: -len(pair[0])))


def _iterate_paths(value: object) -> Iterator[str]:
    """Yield the absolute paths in a run's arguments, and in the words of its command."""
    if isinstance(value, str):
        for path in _PATH_PATTERN.findall(value):
            # a folder at the top, such as /logs, may be an address of ours; its page leaves it out
            if path.count("/") > 1:
                yield path
    elif isinstance(value, list | tuple):
        for element in value:
            yield from _iterate_paths(element)
    elif isinstance(value, Mapping):
        for element in value.values():
            yield from _iterate_paths(element)


def hide_paths(text: str, names: Mapping[str, str]) -> str:
    """Return a page, or JSON, with names in place of paths, however they are written there."""
    for path, name in names.items():
        # as plain text, and as HTML and JSON escape it
        for write in (str, html.escape, _escape_as_json):
            text = text.replace(write(path), write(name))
    return text


def _escape_as_json(text: str) -> str:
    return json.dumps(text)[1:-1]


def hide_paths_in_answers(send: Send, names: Mapping[str, str]) -> Send:
    """Return what sends answers on, once paths are out of them; streams are sent as they come."""
    held: list[Message] = []
    body: list[bytes] = []

    async def hiding(message: Message) -> None:
        # the head waits for the body, as the length changes
        if message["type"] == "http.response.start" and _is_looked_through(message):
            held.append(message)
            return
        if not held:
            await send(message)
            return

        # gathered until it is whole: a path may lie across two pieces
        body.append(message.get("body", b""))
        if message.get("more_body", False):
            return

        content = hide_paths(b"".join(body).decode("utf-8"), names).encode("utf-8")
        start = held.pop()
        headers = MutableHeaders(raw=list(start["headers"]))
        headers["content-length"] = str(len(content))
        await send({**start, "headers": headers.raw})
        await send({"type": "http.response.body", "body": content})

    return hiding


def _is_looked_through(message: Message) -> bool:
    headers: Sequence[tuple[bytes, bytes]] = message.get("headers", ())
    named = {}
    for name, value in headers:
        named[name.lower()] = value.decode("latin-1")

    # an answer without a length is a stream, which can't be held back
    has_length = b"content-length" in named
    return has_length and named.get(b"content-type", "").startswith(HIDING_CONTENT_TYPES)
