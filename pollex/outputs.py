"""The one way in which files are written that users name, or that stand beside those.

A file appears whole or not at all: a draft beside it takes its place. What isn't a file, a pipe or
`/dev/null` for example, is written into and stays what it is; a link stays, and what it leads to is
written. What was written is noted for whoever keeps a list of it. Of ours this module imports
errors, and every room may import it.
"""

import errno
import os
import re
import secrets
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from pollex.errors import WrongUse

STDOUT = Path("-")
"""In a file's place: standard output."""
HARMLESS_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/tty")
"""Devices that may be written into, beside terminals; another may be a disk, or do something when it is opened."""

PAGE_POLICY = b"default-src 'none'; style-src 'sha256-"
"""Stands in the first bytes of every page that is written; see `reports/templates/base.html`."""
PAGE_HEAD_BYTES = 2048


def require_output(path: Path, *, regular: bool = False, named: bool = True) -> None:
    """Refuse a place that can't be written as a file, as a pipe or as a harmless device.

    Args:
        regular: Whether it must be a file, as where others are written beside it.
        named: Whether the user named it. Else it may be no link: nobody asked to write where that
            leads.

    Raises:
        WrongUse: It can't; the message says what it is.
    """
    where = str(path)
    name_a_file = "give the name of a file"
    try:
        if path.is_symlink() and not named:
            raise WrongUse(
                "it is a link, and is not followed",
                where=where,
                hint="take it away, or put a file there",
            )

        kind = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        # there is nothing yet, unless a link leads to where nothing can be made
        if path.is_symlink() and not path.resolve().parent.is_dir():
            raise WrongUse(
                "it is a link into a folder that isn't there",
                where=where,
                hint="make that folder, or take the link away",
            ) from None

        return
    except OSError as failure:
        raise WrongUse(
            failure.strerror or "it can't be reached",
            where=where,
            hint=name_a_file,
        ) from failure

    if stat.S_ISDIR(kind.st_mode):
        raise WrongUse("it is a folder", where=where, hint=name_a_file)
    if stat.S_ISREG(kind.st_mode):
        return
    # beside a pipe or a device no other file can stand
    if regular or not named:
        raise WrongUse(
            "it is no file, and other files belong beside it",
            where=where,
            hint=name_a_file,
        )

    if not (
        stat.S_ISFIFO(kind.st_mode) or (stat.S_ISCHR(kind.st_mode) and _is_harmless_device(kind))
    ):
        raise WrongUse(
            "it is a device or a socket",
            where=where,
            hint=name_a_file,
        )


def is_own_page(path: Path) -> bool:
    """Return whether a page is one of ours, or empty: each of ours begins with the same policy for browsers."""
    with path.open("rb") as file:
        head = file.read(PAGE_HEAD_BYTES)
    return not head or PAGE_POLICY in head


def require_folder(path: Path, *, named: bool = True) -> None:
    """Refuse a place where no folder is and none can be made.

    Args:
        named: See `require_output`.

    Raises:
        WrongUse: It is a file; or a link, and the user didn't name it.
    """
    if path.is_symlink() and not named:
        raise WrongUse(
            "it is a link, and is not followed",
            where=str(path),
            hint="take it away, or put a folder there",
        )
    if path.exists() and not path.is_dir():
        raise WrongUse(
            "it is a file, and a folder of this name is to stand there",
            where=str(path),
            hint="remove it, or name another output",
        )


def make_folder(path: Path, *, named: bool = True) -> None:
    """Make a folder, unless it is there.

    Args:
        named: See `require_output`.

    Raises:
        WrongUse: Something else is there, a link that leads nowhere for example.
    """
    require_folder(path, named=named)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        leads_nowhere = path.is_symlink() and not path.exists()
        if leads_nowhere:
            what = "it is a link that leads nowhere"
        else:
            what = "it is no folder"

        raise WrongUse(what, where=str(path), hint="give the name of a folder") from None


def _is_harmless_device(device: os.stat_result) -> bool:
    """Return whether a device swallows what is written, or is a terminal."""
    harmless_devices = []
    # devices by their numbers, as they may have other names, too
    for name in HARMLESS_DEVICES:
        if Path(name).exists():
            harmless_devices.append(Path(name).stat().st_rdev)
    # pseudo-terminals, on Linux
    return device.st_rdev in harmless_devices or os.major(device.st_rdev) in range(136, 144)


@contextmanager
def open_draft(path: Path, *, named: bool = True) -> Iterator[Path]:
    """Open a draft that takes the place of a file on success and is removed on failure.

    Args:
        named: See `require_output`, whose errors it raises.
    """
    # standard output gets the whole, or nothing
    if path == STDOUT:
        with tempfile.TemporaryDirectory() as folder:
            yield (draft := Path(folder) / "stdout")
            sys.stdout.flush()
            with draft.open("rb") as file:
                shutil.copyfileobj(file, getattr(sys.stdout, "buffer", sys.stdout))

        return

    require_output(path, named=named)
    # a pipe or a device can't be replaced, so the draft is poured into it
    if path.exists() and not path.is_file():
        with tempfile.TemporaryDirectory() as folder:
            yield (draft := Path(folder) / "draft")
            _pour_draft_into(draft, path)
        return

    # a link stays, and the file that it leads to is replaced
    if path.is_symlink():
        target = path.resolve()
    else:
        target = path

    # nobody can guess it and put a link there
    draft = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    try:
        replaced = None
        if target.exists():
            replaced = target.stat()
        if replaced is not None:  # nobody reads in the draft what they couldn't read in the file
            os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        yield draft
        # on the disk before it takes the file's place: a crash leaves one of the two whole
        with draft.open("rb") as file:
            os.fsync(file.fileno())
        if replaced is not None:
            take_over_rights(draft, replaced)
        draft.replace(target)
        note_output(target)
    finally:
        draft.unlink(missing_ok=True)


def take_over_rights(draft: Path, replaced: os.stat_result) -> None:
    """Give a draft the owner and the rights of the file that it replaces, as far as this user may."""
    # only root may give a file to somebody else
    with suppress(PermissionError):
        if (replaced.st_uid, replaced.st_gid) != (draft.stat().st_uid, draft.stat().st_gid):
            os.chown(draft, replaced.st_uid, replaced.st_gid)
    draft.chmod(stat.S_IMODE(replaced.st_mode))


def find_left_drafts(path: Path) -> list[Path]:
    """Return drafts of a file that a killed command left beside it: hidden, named by the file and 8 hex digits.

    Whatever else is hidden there, an editor's file or a copy, is the user's.
    """
    ours = re.compile(rf"\.{re.escape(path.name)}\.[0-9a-f]{{8}}")
    beside = path.parent.iterdir() if path.parent.is_dir() else ()
    drafts: list[Path] = []
    for draft in beside:
        if ours.fullmatch(draft.name) and draft.is_file() and not draft.is_symlink():
            drafts.append(draft)

    return drafts


def _pour_draft_into(draft: Path, path: Path) -> None:
    """Write a draft into what is no file.

    Raises:
        WrongUse: It is a pipe that nobody reads.
    """
    try:
        # a pipe without a reader would hold us here
        opened = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError as failure:
        if failure.errno != errno.ENXIO:
            raise
        raise WrongUse(
            "nobody reads from this pipe",
            where=str(path),
            hint="start its reader first",
        ) from failure

    # from here on, writing waits for the reader
    os.set_blocking(opened, True)
    with draft.open("rb") as source, os.fdopen(opened, "wb") as target:
        shutil.copyfileobj(source, target)


def write_file(path: Path, content: bytes, *, named: bool = True) -> None:
    """Write a file, whole or not at all; see `open_draft`."""
    with open_draft(path, named=named) as draft:
        draft.write_bytes(content)


def write_text(path: Path, text: str, *, named: bool = True) -> None:
    """Write a text as UTF-8, whole or not at all; half characters become question marks. See `open_draft`."""
    write_file(path, text.encode("utf-8", "replace"), named=named)


OutputState = Literal["own", "changed", "unknown"]
"""Of a file that is there: as pollex wrote it, changed by somebody since, or nothing is known of it."""

EDITED: tuple[OutputState, ...] = ("changed",)
"""The state of a file that a person changed since pollex wrote it."""
DOUBTED: tuple[OutputState, ...] = ("changed", "unknown")


@dataclass
class WrittenOutputs:
    """What a command has written so far.

    Attributes:
        paths: Absolute paths, or addresses of other file systems, each once, in order.
        run: The last run that began meanwhile; empty where none did.
        look_up: Says what the store knows of a file that is there.
    """

    paths: dict[str, None] = field(default_factory=dict)
    run: str = ""
    look_up: Callable[[Path], OutputState] | None = None


_WRITTEN_OUTPUTS: ContextVar[WrittenOutputs | None] = ContextVar("written", default=None)


def note_output(path: object) -> None:
    """Note that a file was written; without a listener nothing happens."""
    if (written := _WRITTEN_OUTPUTS.get()) is not None:
        written.paths[str(path)] = None


def note_run(run: str) -> None:
    """Note that a run begins, or goes on."""
    if (written := _WRITTEN_OUTPUTS.get()) is not None:
        written.run = run


def require_replaceable(
    *paths: Path | None,
    refused: Collection[str] = DOUBTED,
    recognizes: Callable[[Path], bool] | None = None,
) -> None:
    """Refuse to take the place of files that pollex didn't write, or that a person changed since.

    For names that the user didn't choose, and for files that people fill in. Where no command
    listens for outputs, as within Python, nothing is known and nothing refused.

    Args:
        refused: What may not be replaced; less where the caller knows pollex's files by themselves.
        recognizes: Whether a file that no store knows of is pollex's, by what stands in it: a command
            without a store notes nothing.

    Raises:
        WrongUse: There is such a file.
    """
    written = _WRITTEN_OUTPUTS.get()
    if written is None or written.look_up is None:
        return

    for path in paths:
        # an empty file holds nothing that could be lost
        if path is None or path == STDOUT or not path.is_file() or not path.stat().st_size:
            continue
        if str(path) in written.paths:
            continue

        state = written.look_up(path)
        is_recognized = state == "unknown" and recognizes is not None and recognizes(path)
        if state in refused and not is_recognized:
            raise WrongUse(
                "a file is there that pollex did not write, or that was changed since, and it would be lost",
                where=str(path),
                hint="rename it, or give your output another name",
            )


@contextmanager
def listen_for_outputs(
    look_up: Callable[[Path], OutputState] | None = None,
) -> Iterator[WrittenOutputs]:
    """Collect what is written until the block ends; an inner block has the files that are its own.

    Args:
        look_up: See `WrittenOutputs`.
    """
    outer = _WRITTEN_OUTPUTS.get()
    token = _WRITTEN_OUTPUTS.set(written := WrittenOutputs(look_up=look_up))
    try:
        yield written
    finally:
        _WRITTEN_OUTPUTS.reset(token)
        # files are the inner block's own, and its run is the outer block's, too
        if outer is not None and written.run:
            outer.run = written.run
