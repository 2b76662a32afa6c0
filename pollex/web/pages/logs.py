"""Logs that are brought: files, places, what other tools have; and what was read of each, which a person corrects."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYet
from dataclasses import dataclass, replace
from typing import Annotated, Any
from urllib.parse import urlencode

from pydantic import Field
from starlette.responses import Response

from pollex.errors import PollexError, WrongUse
from pollex.rooms import list_hooks
from pollex.services.bring import (
    keep_bundled_log,
    keep_place_as_log,
    require_still_allowed,
)
from pollex.services.hooks import LogSourceTools, ToolInterface
from pollex.services.readings import (
    LogReading,
    find_free_name,
    find_reading,
    find_reading_of_columns,
    keep_reading,
    list_readings,
    make_reading,
    remove_reading,
)
from pollex.text import JsonDict, format_size
from pollex.web import frame, links
from pollex.web.faults import NotFound, RequestError, VersionConflict
from pollex.web.forms import PrefixedFields, ShortText
from pollex.web.log_forms import (
    MAPPING_OPTIONS,
    PART_WORDS,
    ROLE_WORDS,
    WORDS_BY_COUNT,
    list_option_fields,
    read_options,
)
from pollex.web.site import Site
from pollex.web.typed_endpoints import require_endpoint
from pollex.web.uploads import make_request_error, make_upload
from pollex.web.views import NextPage, PageData, page, post

MENU_ENTRY = "Logs"
MAX_WAIT_SECONDS = 20.0
"""Seconds that a page waits for what is read; then it says that it is being read."""

ReadingFields = Annotated[PrefixedFields, "col-", "who-", "val-", "opt-"]
"""What the form of a reading sends: see `log_forms`."""
AddressText = Annotated[str, Field(max_length=2000)]
KeyFields = Annotated[PrefixedFields, "key-"]
"""Keys of a tool, by the variable that its own client uses: they are in memory alone."""

make_upload(links.UPLOAD_PATH, lambda reading: links.link_to_log(reading.id))


@dataclass(frozen=True)
class PullableTool:
    """A tool whose logs can be pulled.

    Attributes:
        address: Variable of its address, empty where it has none.
        usual_address: Where it is asked if nobody says otherwise.
        is_addressed: Whether an address is known.
        keys: Variables of its keys, with whether the server's environment has each.
        optional: Those that it may do without, likewise.
        project: Whether a project is to be named.
    """

    name: str
    address: str
    usual_address: str
    is_addressed: bool
    keys: Mapping[str, bool]
    optional: Mapping[str, bool]
    project: bool


def list_tools() -> list[PullableTool]:
    """Return the tools whose logs can be pulled."""
    return [_make_tool(interface) for interface in list_interfaces()]


def list_interfaces() -> list[ToolInterface]:
    """Return the interfaces of tools that logs can be fetched from."""
    return [interface for logs in list_hooks(LogSourceTools) for interface in logs.interfaces()]


def _make_tool(interface: ToolInterface) -> PullableTool:
    # an address is known where the tool has a usual one, or a variable of the server names one
    names, usual = interface.url
    is_addressed = bool(usual) or any(os.environ.get(name) for name in names)
    # whether the server has a key is shown, and never the key
    keys = {name: bool(os.environ.get(name)) for name in interface.keys}
    optional = {name: bool(os.environ.get(name)) for name in interface.optional}
    variable = names[0] if names else ""

    return PullableTool(
        interface.name,
        variable,
        usual,
        is_addressed,
        keys,
        optional,
        interface.project,
    )


@page(links.LOGS_PATH, "logs.html", here=MENU_ENTRY)
def show_logs(site: Site, as_json: bool) -> PageData:
    """Show the logs that were brought, and the ways to bring one."""
    readings = list_readings(site.store.folder, kept_only=False)
    if as_json:
        return {"logs": [make_log_json(reading) for reading in readings]}
    # somebody here soon brings a log, and what reads it takes seconds to start
    if not site.read_only:
        site.reader.warm_up()

    sizes = {}
    for reading in readings:
        if reading.files:
            sizes[reading.id] = format_size(reading.size)
    return {
        "readings": readings,
        "most": site.max_upload,
        "most_told": format_size(site.max_upload),
        "sizes": sizes,
        "has_roots": bool(site.roots.folders),
        "is_open": site.roots.is_open,
        "tools": list_tools(),
    }


def make_log_json(reading: LogReading) -> PageData:
    """Return a log as JSON; no path of the server is in it."""
    # the fields of a reading without its files and folder, which are paths of the server
    names = ("id", "name", "titles", "options", "is_kept", "conversations", "created", "notes")
    return {name: getattr(reading, name) for name in names} | {"argument": reading.argument}


def get_reading(site: Site, log_id: str) -> LogReading:
    """Return a log by its id. Raises NotFound where there is none."""
    try:
        return find_reading(site.store.folder, log_id)
    except WrongUse as error:
        raise NotFound("there is no such log", hint=error.advice) from None


@page(f"{links.LOGS_PATH}/{{log}}", "log.html", here=MENU_ENTRY)
def show_log(
    site: Site,
    log_id: str,
    given: ReadingFields,
    as_json: bool,
    name: ShortText = "",
) -> PageData:
    """Show what was read of a log, as it was kept or as a form asks for it."""
    return _fill_log_page(site, log_id, given, as_json=as_json, name=name)


@page(f"{links.LOGS_PATH}/{{log}}/part")
def show_log_part(
    site: Site,
    log_id: str,
    given: ReadingFields,
    name: ShortText = "",
) -> Response:
    """Show the same without its frame, for a script that puts it in place."""
    shown = _fill_log_page(site, log_id, given, name=name)
    # tells the script whether to ask for this part again
    headers = {"X-Pollex-Ended": "" if shown["is_waiting"] else "yes"}
    about: PageData = {"site": site.id, "read_only": site.read_only}
    return frame.answer_page("log_read.html", headers=headers, **about, **shown)


def _fill_log_page(
    site: Site,
    log_id: str,
    form_fields: Mapping[str, object],
    *,
    as_json: bool = False,
    name: str = "",
) -> PageData:
    """Return what the page of a log shows; for a program the view alone."""
    reading = get_reading(site, log_id)
    like: LogReading | None = None
    try:
        # options of the form; without one as the log was kept
        if form_fields:
            options = read_options(form_fields)
        else:
            options = dict(reading.options)

        view = _get_view(site, reading, options)
        # a new log is read as an earlier one of the same columns, until a person says otherwise
        if not form_fields and not options and not reading.is_kept and view is not None:
            like, view = _read_as_before(site, reading, view)
    except PollexError as error:
        view = _make_fault_view(error, {})

    if as_json:
        return {"log": make_log_json(reading), "view": view}

    # the command that fetches the log, shown while no file has come
    child = site.children.last_of(links.link_to_log(reading.id))
    return {
        "reading": reading,
        "view": view,
        "like": like,
        "child": child if child is not None and not reading.files else None,
        "is_waiting": view is None,
        "has_set": bool(site.sets()),
        "is_changed": view is not None and _have_other_options(view["options"], reading.options),
        "asked": f"?{urlencode(form_fields)}" if form_fields else "",
        "typed_name": name or reading.name,
        "fields": list_option_fields(),
        "mappings": MAPPING_OPTIONS,
        "part_words": PART_WORDS,
        "role_words": ROLE_WORDS,
        "counts": WORDS_BY_COUNT,
        "tool": next((tool for tool in list_tools() if tool.name == reading.tool), None),
        # what a store from elsewhere names is no address to send keys to
        "address": reading.address if reading.is_own else "",
    }


def _have_other_options(options: Mapping[str, object], others: Mapping[str, object]) -> bool:
    return dict(options) != dict(others)


def _get_view(
    site: Site,
    reading: LogReading,
    options: Mapping[str, object],
    seconds: float = MAX_WAIT_SECONDS,
) -> JsonDict | None:
    """Return what is read of a log with some options; None while it is being read.

    Raises:
        WrongUse: A place of it may not be read.
    """
    # a log that is being fetched has no files yet
    if not reading.sources:
        return None

    # checked at each look, as the server may be started anew with fewer folders to read
    require_still_allowed(reading, site.roots)
    future: Future[JsonDict] = site.reader.look(reading.sources, options)
    try:
        view = future.result(seconds)
    except NotYet:
        # reading goes on beside, and a later look finds what came of it
        return None

    titled: JsonDict = _put_titles(reading, view)
    return titled


def _put_titles(reading: LogReading, value: object) -> Any:
    """Return a value with the titles of files in place of the server's paths, in all its texts."""
    if isinstance(value, str):
        return reading.with_titles(value)
    if isinstance(value, list):
        return [_put_titles(reading, inner) for inner in value]
    if isinstance(value, dict):
        # names of options and columns are the log's own
        titles = {}
        for name, inner in value.items():
            titles[name] = _put_titles(reading, inner)
        return titles

    return value


def _read_as_before(
    site: Site,
    reading: LogReading,
    view: JsonDict,
) -> tuple[LogReading | None, JsonDict | None]:
    """Return an earlier log of the same columns with what is read in its way; else the view as it is."""
    columns = [column["path"] for column in view["columns"]]
    like = find_reading_of_columns(site.store.folder, columns)
    # a log is not its own model, and a log without options has nothing to take over
    if like is None or like.id == reading.id or not like.options:
        return None, view

    in_its_way = _get_view(site, reading, like.options)
    # options that this log can't be read with are dropped
    if in_its_way is not None and in_its_way["error"]:
        return None, view
    return like, in_its_way


def _make_fault_view(error: PollexError, options: Mapping[str, object]) -> JsonDict:
    """Return the view of a log that wasn't read, and why."""
    # empty lists, so that the page needs no case of its own for a log with an error
    lists = ("facts", "left_out", "notes", "columns", "values", "speakers", "talks")
    told_error = {"what": error.what, "where": error.where}
    told_error |= {"remedy": error.hint, "advice": error.advice}
    empty: JsonDict = {name: [] for name in lists}
    return empty | {"error": told_error, "options": options, "offer": {}, "proposed": False}


@post("/api/logs/{log}/reading")
def keep_log_reading(
    site: Site,
    log_id: str,
    given: ReadingFields,
    name: ShortText = "",
) -> NextPage:
    """Keep how a log is read, under a name."""
    reading = get_reading(site, log_id)
    try:
        # options of the form; without one as the log was kept before
        if given:
            options = read_options(given)
        else:
            options = dict(reading.options)

        view = _get_view(site, reading, options)
    except PollexError as error:
        raise make_request_error(error) from error

    if view is None:
        raise RequestError("it is still being read", hint="keep it once it was read")
    if view["error"]:
        told_error = view["error"]
        raise RequestError(
            told_error["what"],
            where=told_error["where"],
            hint=told_error["advice"],
        )

    # of a large log the first rows alone were counted, which says nothing of all
    is_part = bool(view["most_rows"])
    # nobody else takes the name between the look for a free one and the write
    with site.turn:
        kept_reading = keep_reading(
            replace(
                reading,
                name=find_free_name(site.store.folder, name or reading.name, but=reading.id),
                options=view["options"],
                columns=tuple(column["path"] for column in view["columns"]),
                conversations=None if is_part else view["conversations"],
                thumbs=None if is_part else (view["rated"]["up"], view["rated"]["down"]),
                is_kept=True,
            )
        )

    return links.link_to_log(kept_reading.id), {"log": kept_reading.id, "name": kept_reading.name}


@post("/api/logs/{log}/removal")
def remove_log(site: Site, log_id: str) -> NextPage:
    """Remove a log with its files; what was learned from it stays."""
    reading = get_reading(site, log_id)
    # a command that still fetches it would write into a folder that is gone
    child = site.children.last_of(links.link_to_log(reading.id))
    if child is not None:
        child.stop()

    remove_reading(reading)
    return links.LOGS_PATH, {"removed": reading.id}


@post("/api/logs/place")
def bring_named_place(site: Site, place_: str) -> NextPage:
    """Bring what is at a place that the server may read."""
    try:
        reading = keep_place_as_log(
            site.store.folder,
            place_,
            site.roots,
            site.max_upload,
        )
    except PollexError as error:
        raise make_request_error(error) from error

    return links.link_to_log(reading.id), {"log": reading.id}


@post("/api/logs/bundled")
def bring_bundled_log(site: Site) -> NextPage:
    """Bring the log that comes with pollex."""
    reading = keep_bundled_log(site.store.folder)
    return links.link_to_log(reading.id), {"log": reading.id}


@post("/api/logs/pull")
def pull_logs(
    site: Site,
    tool: ShortText,
    keys: KeyFields,
    project: ShortText = "",
    since: ShortText = "",
    url: AddressText = "",
) -> NextPage:
    """Begin to fetch the logs of a tool; its keys are given to the command alone, by its environment.

    The server's own keys go where its owner sends them, and to no address that a visitor types.
    """
    interface = require_interface(tool)
    if interface.project and not project:
        raise RequestError(f"{tool} has projects", hint="name one")

    environment = make_fetch_environment(site, interface, keys, url)
    store = site.store.folder
    # kept before any file has come, so that its page can show how far the command is
    title = f"{tool} {project}".strip()
    reading = make_reading(store, title.replace("/", "-"))
    reading = keep_reading(replace(reading, tool=tool, project=project, address=url))
    return _begin_to_fetch(site, reading, environment, since)


@post("/api/logs/{log}/pull")
def pull_what_is_new(
    site: Site,
    log_id: str,
    keys: KeyFields,
    url: AddressText = "",
) -> NextPage:
    """Begin to fetch what a tool has since a log was fetched, or the rest of one whose fetching failed."""
    reading = get_reading(site, log_id)
    interface = require_interface(reading.tool)
    child = site.children.last_of(links.link_to_log(reading.id))
    if child is not None and not child.over:
        raise VersionConflict("it is being fetched already", hint="wait until that has ended")

    environment = make_fetch_environment(site, interface, keys, url)
    reading = keep_reading(replace(reading, address=url))
    return _begin_to_fetch(site, reading, environment)


def require_interface(tool: str) -> ToolInterface:
    """Return the interface of a tool. Raises RequestError where logs can't be fetched from it."""
    by_name = {interface.name: interface for interface in list_interfaces()}
    if tool not in by_name:
        names = ", ".join(tool.name for tool in list_tools())
        raise RequestError(f"{tool!r:.40} can't be pulled from", hint=f"one of: {names}")
    return by_name[tool]


def make_fetch_environment(
    site: Site,
    interface: ToolInterface,
    keys: Mapping[str, object],
    url: str,
) -> dict[str, str]:
    """Return the environment of a command that pulls; a visitor's address is checked before keys go there."""
    if url:
        require_endpoint(site, url)
    return make_pull_environment(interface, keys, url)


def _begin_to_fetch(
    site: Site,
    reading: LogReading,
    environment: Mapping[str, str],
    since: str = "",
) -> NextPage:
    """Start the command that fetches a log; where its file is there, it adds what is new."""
    store = site.store.folder
    title = f"{reading.tool} {reading.project}".strip()
    name = _name_fetched_file(reading)
    arguments = ["pull", reading.tool, "--out", str(reading.folder / name), "--json"]
    arguments += [f"--project={reading.project}"] if reading.project else []
    arguments += [f"--since={since}"] if since else []

    # done once the command has ended: only then has the log a file
    def keep_pulled() -> None:
        for path in reading.folder.iterdir():
            path.chmod(0o600)
        # its name and options may have been changed meanwhile, and nobody has counted it yet
        current = find_reading(store, reading.id)
        fetched = replace(current, files=(name,), titles=(title,))
        keep_reading(replace(fetched, conversations=None, thumbs=None))

    child = site.children.start(
        f"Fetching the logs of {title}",
        arguments,
        back=links.link_to_log(reading.id),
        environment=environment,
        after=keep_pulled,
    )
    return f"{links.CHILDREN_PATH}/{child.id}", {"child": child.id, "log": reading.id}


def _name_fetched_file(reading: LogReading) -> str:
    """Return the name of the file that a log is fetched into: the same one each time."""
    # a fetch that failed has left its file, with how far it came
    begun = sorted(path.name for path in reading.folder.glob("*.jsonl"))
    if begun:
        return begun[0]

    # a made-up name, as the title is a visitor's and may have any characters
    return f"{secrets.token_hex(8)}.jsonl"


def make_pull_environment(
    interface: ToolInterface,
    keys: Mapping[str, object],
    url: str = "",
) -> dict[str, str]:
    """Return what a command that pulls finds in its environment, beside the server's own.

    Raises:
        RequestError: A key is none of the tool's, or missing for the address.
    """
    typed = _read_variables(interface, keys)
    # the tool's address is the server's own: its keys may go there
    if not url:
        return typed
    if not _is_owners_address(interface, url):
        typed = _blank_server_keys(interface, typed)

    return typed | {interface.url[0][0]: url}


def _read_variables(interface: ToolInterface, keys: Mapping[str, object]) -> dict[str, str]:
    """Return the variables of a tool that were typed.

    Raises:
        RequestError: One of them is none of the tool's, or no line.
    """
    typed = {}
    for name, value in keys.items():
        if value:
            typed[name.removeprefix("key-")] = str(value)

    # any other variable could change how the command itself works
    secrets_of_tool = (*interface.keys, *interface.optional)
    if stray := [name for name in typed if name not in secrets_of_tool]:
        raise RequestError(
            f"{stray[0]:.60} is no key of {interface.name}",
            hint="use the form",
        )
    if any(not value.isprintable() or len(value) > 500 for value in typed.values()):
        raise RequestError("a key is no line of text", hint="type it again")
    return typed


def _is_owners_address(interface: ToolInterface, url: str) -> bool:
    """Tell whether an address is one that the server's owner named, or the usual one of the tool."""
    names, usual = interface.url
    addresses = [usual, *(os.environ.get(name, "") for name in names)]
    # with or without a slash at the end it is the same address
    return url.rstrip("/") in [address.rstrip("/") for address in addresses if address]


def _blank_server_keys(interface: ToolInterface, typed: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that were typed, and empty ones in place of the server's own.

    Raises:
        RequestError: The tool has to have one that nobody typed.
    """
    if missing := [name for name in interface.keys if not typed.get(name)]:
        raise RequestError(
            "the keys of this server go only to addresses that its owner named",
            hint=f"type {' and '.join(missing)}, too",
        )

    # empty ones hide those of the server, which the command would inherit
    return dict.fromkeys((*interface.keys, *interface.optional), "") | dict(typed)
