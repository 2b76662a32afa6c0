"""Logs brought to a store: files that somebody sent, places that the server may read, and the bundled log."""

from __future__ import annotations

import os
import re
import secrets
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

from pollex.errors import BadInput, PollexError, WrongUse
from pollex.formats.content import detect_file_ending
from pollex.formats.databases import list_postgres_hosts
from pollex.formats.file_kinds import is_query_source, is_spreadsheet
from pollex.formats.files import count_unpacked_bytes, find_files_of_sources
from pollex.formats.places import list_storage_files
from pollex.services.readings import (
    LogReading,
    keep_reading,
    make_reading,
    remove_reading,
)
from pollex.text import escape_controls, format_size

MAX_UNPACKED_SHEET_BYTES = 512 << 20
"""Bytes that a spreadsheet may unpack to: it is read whole."""
LEAST_FREE_DISK_BYTES = 256 << 20
"""Bytes that stay free on the disk of the store."""
MAX_TITLE_CHARACTERS = 120
OBJECT_STORE_SCHEMES = ("s3", "gs", "gcs", "az", "abfs", "abfss")
"""Object stores that may be named: their addresses are names, and no hosts."""
BUNDLED_LOG_NAME = "bikes.jsonl"


@dataclass(frozen=True)
class SentFile:
    """A file that somebody sent, whole, under a random name.

    Attributes:
        title: The name that it had there, without a folder.
    """

    path: Path
    title: str


@dataclass(frozen=True)
class AllowedRoots:
    """Places that may be named.

    Attributes:
        folders: Folders of this machine, and beginnings of addresses such as `s3://bucket/logs/`.
        is_open: Whether object stores and databases of other machines may be named without them:
            whoever comes in is the owner of this process.
    """

    folders: tuple[str, ...] = ()
    is_open: bool = False

    @property
    def local(self) -> list[Path]:
        """The folders of this machine, without links on the way."""
        return [Path(folder).resolve() for folder in self.folders if "://" not in folder]

    def require_path(self, text: str) -> Path:
        """Return a path with all links followed.

        Raises:
            WrongUse: It is under none of the folders. Whether it is there is not told.
        """
        path = Path(text)
        # a relative path may lie in any of the folders
        if path.is_absolute():
            candidates = [path]
        else:
            candidates = [folder / path for folder in self.local]

        try:
            # links are followed before the check: none may lead out of the folders
            resolved = [candidate.resolve() for candidate in candidates]
            inside = []
            for candidate in resolved:
                if any(candidate.is_relative_to(folder) for folder in self.local):
                    inside.append(candidate)

            there = []
            for candidate in inside:
                if candidate.exists():
                    there.append(candidate)
        except (OSError, ValueError, RuntimeError):  # too long, or links in a circle
            raise WrongUse("this is no path", hint="check its spelling") from None

        if not inside:
            what = "the place is in no folder that this server may read"
            raise WrongUse(
                what,
                hint="its owner names folders: `pollex serve --root FOLDER`",
            )

        # one that is there goes before one that only could be
        return (*there, inside[0])[0]

    def require_address(self, address: str) -> None:
        """Refuse an address of another machine that was not named at the start.

        Raises:
            WrongUse: It is one.
        """
        under = (
            address.startswith(f"{folder.rstrip('/')}/")
            for folder in self.folders
            if "://" in folder
        )
        # `..` and patterns could lead out of what was named
        if self.is_open or (any(under) and ".." not in address):
            return

        what = "others reach this server, and the place was not named at its start"
        raise WrongUse(
            what,
            hint="its owner names it: `pollex serve --root s3://BUCKET/FOLDER`",
        )


def shorten_file_name(name: str) -> str:
    """Return what people are shown for a file: its name alone, whatever system it comes from, in one line."""
    last = name.replace("\\", "/").rstrip("/").rpartition("/")[2]
    return escape_controls(" ".join(last.split()), MAX_TITLE_CHARACTERS) or "file"


def require_disk_space(store: Path, size: int) -> None:
    """Refuse what the disk of a store has no room for.

    Raises:
        BadInput: It is too large.
    """
    free = shutil.disk_usage(store).free
    # a full disk would break the store
    if size > free - LEAST_FREE_DISK_BYTES:
        what = f"{format_size(size)} are more than the server's disk has room for"
        raise BadInput(what, hint="send less, or make room there")


def keep_sent_files(
    reading: LogReading,
    sent: Sequence[SentFile],
    most: int,
    but: Sequence[str] = (),
) -> LogReading:
    """Keep files as a log, once each was looked at; those that are no log are left out, and told.

    Args:
        reading: Whose folder they are in.
        most: Bytes that they may have together, packed or unpacked.
        but: Why files were left out before.

    Raises:
        BadInput: None of them is a log; or they unpack to too much.
    """
    names: list[str] = []
    titles: list[str] = []
    notes = list(but)
    # bytes that the next files may still have together
    left = most
    for file in sent:
        try:
            ending = detect_file_ending(file.title, file.path)
            left -= _require_unpacked_size(file, left, most)
        except FilesTooLarge:
            raise
        except PollexError as error:
            # no log, or damaged: the others are brought all the same
            file.path.unlink()
            notes.append(str(error))
            continue

        # a random name of its own, with the ending that its content calls for
        path = file.path.with_name(f"{secrets.token_hex(8)}{ending}")
        file.path.replace(path)
        path.chmod(0o600)
        names.append(path.name)
        titles.append(file.title)

    if not names:
        hint = "" if notes else "choose a file"
        raise BadInput("; ".join(notes) or "no file was sent", hint=hint)

    return keep_reading(
        replace(
            reading,
            files=tuple(names),
            titles=tuple(titles),
            notes=tuple(notes),
        )
    )


class FilesTooLarge(BadInput):
    """Files that are, or unpack to, more than may be brought at once."""


def make_too_large_error(title: str, most: int) -> FilesTooLarge:
    """Return the error for files of more than may be brought at once."""
    what = f"more than {format_size(most)}, packed or unpacked"
    hint = "send less at once, or have more allowed: `pollex serve --max-upload SIZE`"
    return FilesTooLarge(what, where=title, hint=hint)


def _require_unpacked_size(file: SentFile, left: int, most: int) -> int:
    """Return the bytes that a file unpacks to.

    Raises:
        TooLarge: There are more than are left.
    """
    # a spreadsheet is read whole, so that it may unpack to less than other files
    with file.path.open("rb") as opened:
        is_sheet = is_spreadsheet(file.path, opened.read(16))

    if is_sheet:
        room = min(left, MAX_UNPACKED_SHEET_BYTES)
    else:
        room = left

    # what isn't packed counts by its own size
    size = max(count_unpacked_bytes(file.title, file.path, room), file.path.stat().st_size)
    if size > room:
        raise make_too_large_error(
            file.title, min(most, MAX_UNPACKED_SHEET_BYTES) if is_sheet else most
        )
    return size


def keep_place_as_log(
    store: Path,
    text: str,
    roots: AllowedRoots,
    most: int,
) -> LogReading:
    """Keep a place as a log: a path under a folder that may be read, a query, or files of an object store.

    Files of an object store are copied; the others are read where they are, each time anew.

    Raises:
        WrongUse: The place may not be read, or is none.
        BadInput: Nothing is there.
    """
    text = text.strip()
    # no place has such characters or such a length
    if not text or "\x00" in text or len(text) > 4000:
        raise WrongUse(
            "no place was named",
            hint="type a path, s3://… or a query",
        )

    # queries and paths stay where they are; objects of a store elsewhere are copied
    if is_query_source(text):
        place = _require_allowed_query(text, roots)
    elif "://" in text:
        return _copy_remote_files(store, text, roots, most)
    else:
        place = _require_allowed_path(text, roots)

    title = shorten_file_name(text.partition("?")[0])
    reading = make_reading(store, title)
    return keep_reading(replace(reading, places=(place,), titles=(title,)))


def require_still_allowed(reading: LogReading, roots: AllowedRoots) -> None:
    """Refuse a place that may not be read any more: the server was started with other folders, or a link was set.

    Raises:
        WrongUse: One of its places is such, or one of its files leads out of the store.
    """
    reading.require_plain_files()
    for place in reading.places:
        if is_query_source(place):
            _require_allowed_query(place, roots)
        else:
            _require_allowed_path(place, roots)


def keep_bundled_log(store: Path) -> LogReading:
    """Keep a copy of the log that comes with pollex, as it is read."""
    reading = make_reading(store, BUNDLED_LOG_NAME)
    name = f"{secrets.token_hex(8)}.jsonl"
    content = (files("pollex.examples") / BUNDLED_LOG_NAME).read_bytes()
    write_private(reading.folder / name, content)

    return keep_reading(
        replace(
            reading,
            files=(name,),
            titles=(BUNDLED_LOG_NAME,),
            is_kept=True,
        )
    )


def write_private(path: Path, content: bytes) -> None:
    """Write a new file that only its owner may read."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)


def _require_allowed_path(text: str, roots: AllowedRoots) -> str:
    """Return a path, or a pattern, of which every file is under a folder that may be read."""
    # the folder before a pattern is checked first, and then each file that it finds
    before = _get_folder_before_pattern(text)
    folder = roots.require_path(before)
    if before != text:
        path = str(folder / text[len(before) :].lstrip("/"))
    else:
        path = str(folder)

    try:
        names = find_files_of_sources([path])
    except PollexError as error:
        # without the server's own folders, which nobody typed
        raise BadInput(error.what, where=shorten_file_name(text), hint=error.hint) from None
    except OSError as error:
        what = f"can't be read: {error.strerror}"
        raise BadInput(what, where=shorten_file_name(text), hint="check the path") from None

    # a link inside of the folder may lead out of it
    for name in names:
        roots.require_path(name)

    return path


def _get_folder_before_pattern(text: str) -> str:
    """Return the folder that a pattern is in; a path without a pattern as it is."""
    pattern = re.search(r"[*?\[]", text)
    if pattern is None:
        return text
    return text[: text.rfind("/", 0, pattern.start()) + 1] or "."


def _require_allowed_query(text: str, roots: AllowedRoots) -> str:
    """Return a query whose database may be read."""
    kind, _, rest = text.partition(":")
    # a database server is an address; every other database is a file
    if kind.startswith("postgres"):
        roots.require_address(text)
        require_typed_host_without_password(rest.partition("?")[0])
        return text

    place, mark, query = rest.partition("?")
    return f"{kind}:{roots.require_path(place)}{mark}{query}"


def require_typed_host_without_password(place: str) -> None:
    """Refuse a host that somebody typed while the environment has a password, which is for another one.

    Raises:
        WrongUse: It isn't the host that the environment names.
    """
    # there is no password that could be sent, or nothing that would send it
    if not os.environ.get("PGPASSWORD") or find_spec("psycopg") is None:
        return

    own_hosts = {os.environ.get("PGHOST", ""), os.environ.get("PGHOSTADDR", "")}
    if others := list_postgres_hosts(place) - own_hosts:
        raise WrongUse(
            f"the password of this server is not for {sorted(others)[0]:.80}",
            hint="its owner names the host by PGHOST, or gives the password in a file (PGPASSFILE)",
        )


def _copy_remote_files(
    store: Path,
    address: str,
    roots: AllowedRoots,
    most: int,
) -> LogReading:
    """Keep copies of the files of an object store.

    Raises:
        WrongUse: It is no such address, or may not be read.
        BadInput: Nothing is there, or too much.
    """
    if address.partition("://")[0].lower() not in OBJECT_STORE_SCHEMES:
        what = "this kind of address is not read"
        hint = f"name one of {', '.join(f'{scheme}://' for scheme in OBJECT_STORE_SCHEMES)}, or bring the file"
        raise WrongUse(what, hint=hint)

    roots.require_address(address)
    reading = make_reading(store, shorten_file_name(address))
    try:
        # sizes first: nothing is copied that has no room
        places = list_storage_files(address)
        size = sum(place.size for place in places)
        if size > most:
            raise make_too_large_error(address, most)
        require_disk_space(store, size)
        sent: list[SentFile] = []
        # copied in blocks under random names, readable by the owner alone
        for place in places:
            path = reading.folder / secrets.token_hex(8)
            with place.files.open(place.path, "rb") as source, path.open("xb") as target:
                path.chmod(0o600)
                shutil.copyfileobj(source, target, 1 << 20)
            sent.append(SentFile(path, shorten_file_name(place.name)))

        return keep_sent_files(reading, sent, most)
    except PollexError:
        # half a log is removed before the error is told
        remove_reading(reading)
        raise
    except Exception as error:  # each object store's client has errors of its own
        remove_reading(reading)
        what = f"can't be read: {escape_controls(str(error), 200)}"
        hint = "check the address, and the keys in the server's environment"
        raise BadInput(what, where=shorten_file_name(address), hint=hint) from error
