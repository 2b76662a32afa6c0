"""Fetch logs from tools' interfaces, and send scores to them."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pollex.errors import BadInput, WrongUse
from pollex.formats.assembly.log_parts import parse_timestamp
from pollex.formats.write import require_writable_output_path
from pollex.gateway.endpoint import require_http_address
from pollex.graphs.context import Progress
from pollex.outputs import write_text
from pollex.rooms.exchange.formats.peers.interfaces import (
    PEER_INTERFACES,
    ROWS_A_PAGE,
    PagePosition,
    PeerInterface,
    PeerRequest,
    Row,
    RowStream,
    get_nested_text,
)
from pollex.services.results import Result
from pollex.text import TerminalLines, read_file_text

if TYPE_CHECKING:
    import httpx2

MAX_REQUEST_TRIES = 6
"""How often a request is sent that fails for now."""
RETRIED_STATUS_CODES = frozenset((408, 409, 425, 429, 500, 502, 503, 504))
REQUEST_TIMEOUT_SECONDS = 60.0


@dataclass(frozen=True, kw_only=True)
class TransferResult(Result):
    """The data fetched or sent.

    Attributes:
        rows: Number by kind of rows.
        file: The file that they were written to, or read from.
    """

    json_fields = ("tool", "file", "rows")

    tool: str
    file: Path
    rows: dict[str, int]

    complete = True

    def told(self) -> TerminalLines:
        """Yield how many requests were sent, or how many rows of each kind there are."""
        if "requests" in self.rows:
            yield f"Sent {self.rows['requests']} requests of {self.file} to {self.tool}"
            return

        for name, rows in self.rows.items():
            yield f"{rows} {name}"
        yield f"Wrote {self.file}"


@dataclass(slots=True)
class FetchState:
    """Progress of a fetch, stored next to the file.

    A stopped fetch goes on from here, and the next fetch asks for new rows.

    Attributes:
        tool: Name of the tool.
        size: Bytes of the file that are complete.
        cursors: By stream, the next page's; `end` if there is none.
        newest: By stream, the time of its newest row.
        since: By stream, the earliest time that this fetch asks for.
        ids: By stream, ids that still have to be asked about.
    """

    tool: str
    project: str
    size: int = 0
    cursors: dict[str, str] = field(default_factory=dict)
    newest: dict[str, str] = field(default_factory=dict)
    since: dict[str, str] = field(default_factory=dict)
    ids: dict[str, list[str]] = field(default_factory=dict)


def find_interface(tool: str, *, pushing: bool) -> PeerInterface:
    """Return the API of a tool; raise `WrongUse` if it has none for this."""
    # reading takes streams, sending takes a function that makes requests
    able = {}
    for n, interface in PEER_INTERFACES.items():
        if interface.push is not None if pushing else bool(interface.streams):
            able[n] = interface

    if tool not in able:
        raise WrongUse(
            f"{tool!r:.40} can't be used for this",
            hint=f"one of: {', '.join(able)}",
        )

    return able[tool]


def pull_logs(
    tool: str,
    *,
    out: Path,
    project: str = "",
    since: str = "",
    progress: Progress,
    environment: Mapping[str, str] | None = None,
) -> TransferResult:
    """Fetch a tool's logs and scores into a file of JSON lines.

    A fetch that was stopped goes on where it was; a later one asks for what is new since, and adds
    it.

    Raises:
        BadInput: The interface refuses, or its answer can't be read.
        WrongUse: A key or the project is missing, or the file is another tool's.
    """
    interface = find_interface(tool, pushing=False)
    # the file is cut and continued, so it must be a regular one
    require_writable_output_path(out, regular=True)
    if interface.project and not project:
        raise WrongUse(
            f"{tool} has projects",
            hint="name one",
            option="project",
        )

    # where an earlier fetch stopped; the file is cut to what its state knows
    state = _load_or_begin_state(out, tool, project, since)
    counts: dict[str, int] = {}
    with (
        _make_client(interface, environment or os.environ) as client,
        _open_at_last_whole_line(out, state.size) as file,
    ):
        # the project as its interface names it in requests
        scope = _find_project_scope(client, interface, project)
        for stream in interface.streams:
            progress.start(f"Fetching {stream.name}", 0)
            for rows in _fetch_pages(client, stream, state, interface, scope):
                # some streams are fetched for their ids alone
                for row in rows if stream.kept else ():
                    file.write(
                        json.dumps(row, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
                    )

                # state after file: a stop between them fetches the rows again
                file.flush()
                state.size = file.tell()
                _write_state(out, state)
                counts[stream.name] = counts.get(stream.name, 0) + len(rows)
                progress.advance(f"Fetching {stream.name}", len(rows))

    # the next fetch begins at the newest time of each stream
    _finish_fetch(out, state)
    return TransferResult(tool=tool, file=out, rows=counts)


def _find_project_scope(
    client: httpx2.Client,
    interface: PeerInterface,
    project: str,
) -> str:
    if not project or (named := interface.named(project)) is None:
        return project

    # a lookup of the project's id by its name, for tools that want it
    ask, id_of = named
    try:
        return id_of(_send_request(client, ask))
    except (LookupError, TypeError):
        raise WrongUse(
            f"no project is called {project!r:.60}",
            hint="check its name",
            option="project",
        ) from None


def _fetch_pages(
    client: httpx2.Client,
    stream: RowStream,
    state: FetchState,
    interface: PeerInterface,
    scope: str,
) -> Iterator[list[Row]]:
    # a stream about another one is asked by that one's ids
    if stream.about:
        yield from _fetch_rows_about_ids(client, stream, state, scope)
        return

    used_cursors: set[str] = set()
    while (cursor := state.cursors.get(stream.name, "")) != "end":
        where = PagePosition(scope, cursor, state.since.get(stream.name, ""))
        page = stream.page(_send_request(client, stream.ask(where)))
        # a cursor that comes back would go on for ever
        used_cursors.add(cursor)
        is_new = page.cursor and page.cursor not in used_cursors
        state.cursors[stream.name] = page.cursor if is_new else "end"
        # interfaces that ignore the time are filtered here; rows without a time stay
        begin = parse_timestamp(where.since) or 0.0
        rows = []
        for row in page.rows:
            if (parse_timestamp(row.get(stream.time)) or begin) >= begin:
                rows.append(row)

        times = []
        for row in rows:
            if row.get(stream.time) is not None:
                times.append(str(row[stream.time]))

        # times are compared as moments: tools write them in different forms
        state.newest[stream.name] = max(
            [*times, state.newest.get(stream.name, "")],
            key=lambda time_: parse_timestamp(time_) or 0.0,
        )
        # ids for the streams that are asked by them, each once
        for other in interface.streams:
            if other.about == stream.name:
                known_ids = state.ids.setdefault(other.name, [])
                known_ids += dict.fromkeys(
                    id_
                    for row in rows
                    if (id_ := get_nested_text(row, *other.id)) and id_ not in known_ids
                )

        yield rows


def _fetch_rows_about_ids(
    client: httpx2.Client,
    stream: RowStream,
    state: FetchState,
    scope: str,
) -> Iterator[list[Row]]:
    # a page of ids at a time, dropped from the state when their rows are in
    while ids := tuple(state.ids.get(stream.name, [])[:ROWS_A_PAGE]):
        rows = []
        cursor = ""
        used_cursors: set[str] = set()
        while True:
            page = stream.page(
                _send_request(
                    client,
                    stream.ask(PagePosition(scope, cursor, ids=ids)),
                )
            )
            rows += page.rows
            # such interfaces want the number of rows to skip in place of a cursor
            if stream.counted and len(page.rows) == ROWS_A_PAGE:
                following = str(len(rows))
            else:
                following = page.cursor

            used_cursors.add(cursor)
            if not following or following in used_cursors:
                break
            cursor = following

        state.ids[stream.name] = state.ids[stream.name][len(ids) :]
        yield rows


def _make_client(interface: PeerInterface, environment: Mapping[str, str]) -> httpx2.Client:
    """Make a client with the keys of the environment, which are never written down.

    Raises:
        WrongUse: A key is missing.
    """
    import httpx2  # takes a quarter of a second, and no other verb needs it here

    # keys come from the environment alone, never from options or files
    if missing := [name for name in interface.keys if not environment.get(name)]:
        raise WrongUse(
            f"{missing[0]} is not set",
            hint=f"set it in the environment: export {missing[0]}=…",
        )

    # the first name that is set gives the address
    names, usual = interface.url
    name, url = next(
        ((name, environment[name]) for name in names if environment.get(name)),
        ("", usual),
    )
    require_http_address(url, name, option="")

    return httpx2.Client(
        base_url=url.rstrip("/"),
        headers=interface.headers(environment),
        timeout=REQUEST_TIMEOUT_SECONDS,
        # a proxy of the environment would see keys and conversations
        trust_env=False,
    )


def _send_request(client: httpx2.Client, ask: PeerRequest) -> object:
    """Send a request and return the answer; repeat requests that fail temporarily.

    Raises:
        BadInput: It refuses, or doesn't answer in JSON.
    """
    import httpx2  # as above

    # requests with a body are sent by POST where the table names no method
    method = ask.method or ("GET" if ask.body is None else "POST")
    for attempt in range(MAX_REQUEST_TRIES):
        try:
            response = client.request(
                method,
                ask.path,
                params=list(ask.query),
                json=ask.body,
            )
        except httpx2.InvalidURL as error:
            raise WrongUse(f"no address: {error}", hint="check the project's name") from None
        # no connection, or it broke off: worth another try
        except httpx2.HTTPError as error:
            failure = f"no answer: {error}"
        else:
            if response.status_code < 300:
                return _parse_response(response, ask.path)
            # what the interface says, cut: it may be a whole page
            failure = f"HTTP {response.status_code}: {response.text[:200]}"
            if response.status_code not in RETRIED_STATUS_CODES:
                break

        # 0.2 s, doubled each time, no pause after the last try
        if attempt + 1 < MAX_REQUEST_TRIES:
            time.sleep(min(0.2 * 2**attempt, 10))

    raise BadInput(
        failure,
        where=f"{client.base_url}{ask.path}",
        hint="check address, key and project; then go on",
    )


def _parse_response(response: httpx2.Response, path: str) -> object:
    if not response.content.strip():
        return {}

    try:
        return response.json()
    # nested deeper than Python reads
    except (ValueError, RecursionError):
        raise BadInput(
            "the answer isn't JSON that can be read",
            where=path,
            hint="check the address of the interface",
        ) from None


def _get_state_path(out: Path) -> Path:
    return out.with_name(f"{out.name}.state")


def _load_or_begin_state(
    out: Path,
    tool: str,
    project: str,
    since: str,
) -> FetchState:
    """Return the progress of the file; a new one begins at `since`.

    Raises:
        WrongUse: The file was fetched from somewhere else, or by nobody.
    """
    if out.is_symlink():
        raise WrongUse(
            "it is a link, and is not followed: it would be cut at the place where fetching goes on",
            where=str(out),
            hint="give the name of a file",
            option="out",
        )

    # no state beside it: a new file, unless it is somebody else's
    if not _get_state_path(out).exists():
        if out.exists() and out.stat().st_size:
            raise WrongUse(
                "the file exists, and `pollex pull` did not write it",
                where=str(out),
                hint="give another name",
                option="out",
            )

        streams = [stream.name for stream in PEER_INTERFACES[tool].streams]
        return FetchState(
            tool,
            project,
            since=dict.fromkeys(streams, since) if since else {},
        )

    state = _read_state(_get_state_path(out))

    # rows of two projects in one file could not be told apart
    if (state.tool, state.project) != (tool, project):
        what = f"it was fetched from {state.tool} {state.project}".strip()
        raise WrongUse(
            what,
            where=str(out),
            hint="give another name",
            option="out",
        )

    return state


def _read_state(path: Path) -> FetchState:
    """Read the progress of a file.

    Raises:
        BadInput: Another version wrote it, or it is damaged.
    """
    from pydantic import NonNegativeInt, TypeAdapter, ValidationError  # only where a fetch goes on

    try:
        state = TypeAdapter(FetchState).validate_json(path.read_bytes(), strict=True)
        TypeAdapter(NonNegativeInt).validate_python(state.size)
    except (OSError, ValidationError) as error:
        reason = error.errors()[0]["msg"] if isinstance(error, ValidationError) else str(error)
        raise BadInput(
            f"its state can't be read: {reason}",
            where=str(path),
            hint="remove both files",
        ) from None

    return state


def _open_at_last_whole_line(out: Path, size: int) -> Any:
    """Open the file at its last complete byte, to append."""
    out.parent.mkdir(parents=True, exist_ok=True)
    file = out.open("ab")
    file.truncate(size)
    file.seek(size)

    return file


def _write_state(out: Path, state: FetchState) -> None:
    slots = {}
    for name in FetchState.__slots__:
        slots[name] = getattr(state, name)

    write_text(_get_state_path(out), json.dumps(slots), named=False)


def _finish_fetch(out: Path, state: FetchState) -> None:
    state.since |= {name: time_ for name, time_ in state.newest.items() if time_}
    state.cursors.clear()
    _write_state(out, state)


def push_scores(
    file: Path,
    *,
    to: str,
    progress: Progress,
    environment: Mapping[str, str] | None = None,
) -> TransferResult:
    """Send the requests that `pollex score --as` wrote; a repeat updates them.

    Raises:
        BadInput: The file can't be read, or the interface refuses.
        WrongUse: A key is missing, or the tool takes no scores.
    """
    interface = find_interface(to, pushing=True)
    assert interface.push is not None
    entries = _read_entries(file, interface)
    asks = list(interface.push(entries))
    progress.start("Sending scores", len(asks))

    # what an earlier sending left is removed first, where the tool keeps every copy
    with _make_client(interface, environment or os.environ) as client:
        if interface.stale is not None:
            for entry in entries:
                about, removals = interface.stale(entry)
                for removal in removals(_send_request(client, about)):
                    _send_request(client, removal)

        for ask in asks:
            _send_request(client, ask)
            progress.advance("Sending scores")

    return TransferResult(tool=to, file=file, rows={"requests": len(asks)})


def _read_entries(file: Path, interface: PeerInterface) -> list[Row]:
    """Read what is to be sent: one JSON value, or one a line.

    Raises:
        BadInput: It can't be read, or an entry isn't one that the tool takes.
    """
    try:
        text = read_file_text(file)
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(
            f"can't be read: {error}",
            where=str(file),
            hint="check the path",
        ) from None

    hint = f"write it with `pollex score --as {interface.name}`"
    try:
        entries = _parse_entries(text)
    # nested deeper than Python reads, too
    except (ValueError, RecursionError) as error:
        raise BadInput(f"not JSON: {error}", where=str(file), hint=hint) from None

    for number, entry in enumerate(entries, start=1):
        if not isinstance(entry, dict):
            raise BadInput(f"entry {number} is no object", where=str(file), hint=hint)
        if lacking := interface.lacks(entry):
            what = f"entry {number} has no {lacking}"
            raise BadInput(what, where=str(file), hint=hint)

    return entries


def _parse_entries(text: str) -> list[Any]:
    """Return the entries of a text: a list, what stands under `data`, or values, one a line."""
    try:
        values = [_parse_json(text)]
    except ValueError:
        values = []
        for line in text.splitlines():
            if line.strip():
                values.append(_parse_json(line))

    if len(values) != 1:
        return values

    # the whole body as the tool takes it, or its list alone
    (value,) = values
    if isinstance(value, dict) and isinstance(value.get("data"), list):
        value = value["data"]
    return value if isinstance(value, list) else [value]


def _parse_json(text: str) -> object:
    """Parse a text as JSON that can be sent again: numbers that it has, and characters that UTF-8 has."""
    value = json.loads(text, parse_constant=_refuse_constant, parse_float=_parse_finite)
    # half a character (a lone surrogate) can't be sent
    json.dumps(value, ensure_ascii=False).encode()
    return value


def _parse_finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(f"{digits:.40} is out of range")
    return number


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is no number of JSON")
