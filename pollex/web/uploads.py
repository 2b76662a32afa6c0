"""Files that a browser sends: streamed into a folder of the store, and gone where they don't come whole."""

from __future__ import annotations

import logging
import secrets
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from pollex.errors import PollexError, StoreFull
from pollex.services.bring import (
    FilesTooLarge,
    SentFile,
    keep_sent_files,
    make_too_large_error,
    require_disk_space,
    shorten_file_name,
)
from pollex.services.readings import LogReading, find_free_name, make_reading
from pollex.store.folder import make_write_error
from pollex.web import frame
from pollex.web.faults import RequestError, VersionConflict
from pollex.web.forms import get_site
from pollex.web.site import Site
from pollex.web.views import PAGE_ROUTES

# what is wrong with a form is told to whoever sent it, and not to the server's owner
logging.getLogger("python_multipart").setLevel(logging.CRITICAL)

MAX_FILES = 200
MAX_FIELDS = 8
MAX_FIELD_CHARACTERS = 1000
MAX_BOUNDARY_CHARACTERS = 200
MAX_UPLOADS_AT_ONCE = 4
"""Uploads that are received at the same time."""
PIECE_BYTES = 1 << 20
"""Bytes that are gathered before they are written."""
FILES_FIELD = "files"
"""Name of the field that holds files; an input that is left empty sends one without a name."""


class RefusedUpload(RequestError):
    """An upload that is too large, or one too many."""

    status = 413


@dataclass
class ReceivedUpload:
    """What has come of an upload.

    Attributes:
        reading: The log that it is to be, in whose folder the files are written.
        most: Bytes that its files may have together.
        files: The files that came whole.
        fields: Its other fields.
        is_whole: Whether its end was there.
    """

    reading: LogReading
    most: int
    files: list[SentFile] = field(default_factory=list)
    fields: dict[str, str] = field(default_factory=dict)
    is_whole: bool = False
    _headers: dict[bytes, bytes] = field(default_factory=dict)
    _name: bytearray = field(default_factory=bytearray)
    _value: bytearray = field(default_factory=bytearray)
    _field: str = ""
    _text: bytearray = field(default_factory=bytearray)
    _title: str = ""
    _file: BinaryIO | None = None
    _pieces: list[tuple[BinaryIO, bytes]] = field(default_factory=list)
    _closing: list[BinaryIO] = field(default_factory=list)
    _size: int = 0
    _gathered: int = 0
    _parts: int = 0

    def parser(self, boundary: bytes) -> MultipartParser:
        """Return the parser that tells what comes."""
        return MultipartParser(
            boundary,
            {
                "on_part_begin": self._begin_part,
                "on_header_field": lambda data, start, end: self._name.extend(data[start:end]),
                "on_header_value": lambda data, start, end: self._value.extend(data[start:end]),
                "on_header_end": self._end_header,
                "on_headers_finished": self._begin_content,
                "on_part_data": self._take,
                "on_part_end": self._end_part,
                "on_end": self._end,
            },
        )

    def _begin_part(self) -> None:
        self._headers.clear()
        self._parts += 1
        if self._parts > MAX_FILES + MAX_FIELDS:
            raise RefusedUpload(
                f"more than {MAX_FILES} files at once",
                hint="pack them as .zip",
            )

    def _end_header(self) -> None:
        self._headers[bytes(self._name).lower()] = bytes(self._value)
        self._name.clear()
        self._value.clear()

    def _begin_content(self) -> None:
        kind, options = parse_options_header(self._headers.get(b"content-disposition", b""))
        if kind != b"form-data" or b"name" not in options:
            raise RequestError(
                "a part of the form has no name",
                hint="send it from the page Logs",
            )

        self._field = options[b"name"].decode("utf-8", "replace")
        self._text.clear()
        self._title = ""
        # a part without a file's name is a plain field
        if b"filename" not in options:
            return
        if self._field != FILES_FIELD:
            raise RequestError(
                f"{self._field[:40]}: there is no such field",
                hint=f"it is {FILES_FIELD}",
            )

        sent_title = options[b"filename"].decode("utf-8", "replace")
        # an input that nobody filled sends an empty file without a name
        if sent_title:
            self._title = shorten_file_name(sent_title)
            # a made-up name on the disk, and readable by the owner alone
            path = self.reading.folder / secrets.token_hex(8)
            self._file = path.open("xb")
            path.chmod(0o600)
            self.files.append(SentFile(path, self._title))

    def _take(self, data: bytes, start: int, end: int) -> None:
        # a plain field stays in memory, so that it has to be short
        if self._file is None:
            self._text.extend(data[start:end])
            if len(self._text) > MAX_FIELD_CHARACTERS:
                raise RequestError(
                    f"{self._field[:40]}: it is too long",
                    hint="send files as files",
                )

            return

        # counted as it comes, since a browser may announce less
        self._size += end - start
        if self._size > self.most:
            raise make_too_large_error(self._title, self.most)

        # kept until enough has come to be written at once, in a thread
        self._pieces.append((self._file, data[start:end]))
        self._gathered += end - start

    def _end_part(self) -> None:
        if self._file is not None:
            # closed once its last piece is written
            self._closing.append(self._file)
            self._file = None
        elif self._field != FILES_FIELD:
            self.fields[self._field] = self._text.decode("utf-8", "replace")

    def _end(self) -> None:
        self.is_whole = True

    @property
    def is_full(self) -> bool:
        """Whether so much was gathered that it is to be written."""
        return self._gathered >= PIECE_BYTES

    def write(self) -> None:
        """Write what was gathered, and close the files that came whole."""
        for file, piece in self._pieces:
            file.write(piece)

        self._pieces.clear()
        self._gathered = 0
        for file in self._closing:
            file.close()

        self._closing.clear()

    def close(self) -> None:
        """Close all files, whole or not."""
        for file in (*self._closing, *([self._file] if self._file else [])):
            file.close()


def make_upload(path: str, address_of: Callable[[LogReading], str]) -> None:
    """Make what takes files at an address, and leads to the page of the log that they are.

    Args:
        address_of: Returns where to go on with a log.
    """

    async def answer(request: Request) -> Response:
        site = get_site(request)
        site.require_writing()
        if site.receiving >= MAX_UPLOADS_AT_ONCE:
            raise RefusedUpload(
                "four uploads are on their way already",
                hint="wait for one to end",
            )

        site.receiving += 1
        try:
            reading = await receive_files(request, site)
        finally:
            site.receiving -= 1

        address = address_of(reading)
        if frame.wants_json(request.scope):
            return JSONResponse(
                {
                    "ok": True,
                    "log": reading.id,
                    "address": address,
                }
            )

        return RedirectResponse(address, 303)

    PAGE_ROUTES.append(Route(path, answer, methods=["POST"]))


async def receive_files(request: Request, site: Site) -> LogReading:
    """Receive files, and keep them as a log.

    Raises:
        RequestError: It is no form with files, its framing is broken, or no file is a log.
        StoreFull: There is no room for it.
    """
    boundary = get_boundary(request)
    store = site.store.folder
    reading: LogReading | None = None
    try:
        announced = request.headers.get("content-length", "")
        # refused before anything has come, where the disk has no room for it
        if announced.isdigit():
            await run_in_threadpool(require_disk_space, store, int(announced))
        reading = await run_in_threadpool(make_reading, store, "log")
        received = ReceivedUpload(reading, site.max_upload)
        await _read_body(request, received, boundary)
        require_own_form(site, received.fields)
        return await run_in_threadpool(_keep_files, store, received)
    except BaseException as error:
        # also where the visitor went away, or the server stops
        if reading is not None:
            shutil.rmtree(reading.folder, ignore_errors=True)
        if isinstance(error, OSError):
            raise make_write_error(store, error) from error
        if isinstance(error, PollexError):
            raise make_request_error(error) from error
        raise


def get_boundary(request: Request) -> bytes:
    """Return what stands between the parts of a form.

    Raises:
        RequestError: It is no form with files.
    """
    kind, options = parse_options_header(request.headers.get("content-type", ""))
    boundary = options.get(b"boundary", b"")
    if kind != b"multipart/form-data" or not 0 < len(boundary) <= MAX_BOUNDARY_CHARACTERS:
        raise RequestError("this is no form with files", hint="send it from the page Logs")
    return boundary


async def _read_body(
    request: Request,
    received: ReceivedUpload,
    boundary: bytes,
) -> None:
    """Read a form to its end.

    Raises:
        RequestError: It is cut off, or its framing is broken.
    """
    parser = received.parser(boundary)
    try:
        async for piece in request.stream():
            parser.write(piece)
            if received.is_full:
                await run_in_threadpool(received.write)

        # what is left is less than a piece
        await run_in_threadpool(received.write)
    except ClientDisconnect:
        raise RequestError("the upload was cut off", hint="send it again") from None
    except FormParserError as error:
        raise RequestError(f"the form can't be read: {error}"[:200], hint="send it again") from None
    finally:
        received.close()

    if not received.is_whole:
        raise RequestError("the upload ends too early", hint="send it again")


def require_own_form(site: Site, fields: Mapping[str, str]) -> None:
    """Refuse a form of another server, and fields that no form has.

    Raises:
        VersionConflict: The page was made by another server.
        RequestError: There is an unknown field.
    """
    if stray := [name for name in fields if name != "site"]:
        raise RequestError(
            f"{stray[0][:40]}: there is no such field",
            hint="send it from the page Logs",
        )
    if fields.get("site", site.id) != site.id:
        raise VersionConflict("this page was made by another server", hint="load it again")


def _keep_files(store: Path, received: ReceivedUpload) -> LogReading:
    # the first file gives the log its name
    title = received.files[0].title if received.files else ""
    name = find_free_name(store, title)
    return keep_sent_files(
        replace(received.reading, name=name),
        received.files,
        received.most,
    )


def make_request_error(error: PollexError) -> PollexError:
    """Return an error about what somebody sent or named as one that says so to a browser."""
    if isinstance(error, RequestError | StoreFull):
        return error

    kind = RefusedUpload if isinstance(error, FilesTooLarge) else RequestError
    return kind(error.what, where=error.where, hint=error.advice)
