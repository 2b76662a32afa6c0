"""The store's folder: its path, access rights, secret, and write errors."""

import errno
import hashlib
import logging
import os
import re
import secrets
import shlex
import shutil
import stat
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path

from pollex.errors import PollexError, StoreDamaged, StoreFull, WrongUse
from pollex.text import is_unicode_path

DEFAULT_STORE_FOLDER = ".pollex"
"""Where commands look when no store is named."""

DRAFT_COPIES_FOLDER_NAME = "drafts"
"""Folder of the copies of conversations with which the server has drafts of rubric sets fitted again."""

DRAFT_COPY_NAME_REGEX = re.compile(r"[0-9a-f]{8}-\d+-[0-9a-f]{4}")
"""Names of the folders in it: a draft, its version, and what is random."""

LOG_COPY_PREFIX = "log:"
"""What stands before the name of a log that was brought to a store, where a verb takes logs."""

EMBEDDINGS_FOLDER_NAME = "embeddings"
"""Folder of cached embeddings inside a store."""

_VECTOR_CACHE_NAME_REGEX = re.compile(r"[0-9a-f]{16}\.vectors")

STORE_ENVIRONMENT_VARIABLE = "POLLEX_STORE"
"""Of the environment: names another folder to look in."""

SEAL_KEY_FILE_NAME = "seal"
"""File of a store with random bytes, to which what is sealed is bound."""
SECRET_FILE_NAME, SECRET_BYTES = "secret", 32
"""File and bytes of what boundaries around data are made from: part of what a paid call is known by. In the file its
check stands behind it."""

JOURNAL_SUFFIX, SUPER_JOURNAL_MAGIC = "-journal", bytes.fromhex("d9d505f920a163d7")
"""How SQLite names a journal beside a database, and how one ends that names another file."""

LOGGER = logging.getLogger(__name__)

DISK_FULL_ERROR_NUMBERS = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


def format_store_option(folder: str | Path) -> str:
    """Return `--store PATH` for a printed command; empty for the default store."""
    usual = os.environ.get(STORE_ENVIRONMENT_VARIABLE) or DEFAULT_STORE_FOLDER
    if str(folder) == usual:
        return ""
    return f" --store {shlex.quote(str(folder))}"


def require_plain_path(path: Path) -> None:
    """Refuse a link, a device or a pipe where a file or a folder of a store belongs.

    Who hands a store on may have put a link there: what is written through it would be written
    over, or be made to be somebody's alone, wherever it leads.

    Raises:
        StoreDamaged: It is one.
    """
    with suppress(FileNotFoundError, NotADirectoryError):
        kind = path.lstat().st_mode
        if not (stat.S_ISREG(kind) or stat.S_ISDIR(kind)):
            what = "a link" if stat.S_ISLNK(kind) else "no file of a store"
            hint = "put the file itself there, or take it away; a store as a whole may be a link"
            raise StoreDamaged(
                f"it is {what}, and is not followed",
                where=str(path),
                hint=hint,
            )


def require_plain_store_files(folder: Path) -> None:
    """Refuse a store in which anything is a link, a device or a pipe, or has SQLite remove a file.

    Raises:
        StoreDamaged: Something is; see `require_plain_path` and `require_plain_journal`.
    """
    with suppress(FileNotFoundError, NotADirectoryError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                require_plain_store_files(Path(entry.path))
            elif not entry.is_file(follow_symlinks=False):
                require_plain_path(Path(entry.path))
            elif entry.name.endswith(JOURNAL_SUFFIX):
                # another process may take its journal away now: the other entries are looked at all the same
                with suppress(FileNotFoundError):
                    require_plain_journal(Path(entry.path))


def require_plain_journal(path: Path) -> None:
    """Refuse a journal that names another file at its end.

    That is how SQLite writes down a transaction over several databases, and it removes the file
    that is named, wherever it is. A store has no such transactions.

    Raises:
        StoreDamaged: It names one.
    """
    with path.open("rb") as journal:
        journal.seek(0, os.SEEK_END)
        journal.seek(max(0, journal.tell() - len(SUPER_JOURNAL_MAGIC)))
        names_another = journal.read() == SUPER_JOURNAL_MAGIC

    if names_another:
        hint = "take this file away: no store has one"
        raise StoreDamaged(
            "it would have SQLite remove another file",
            where=str(path),
            hint=hint,
        )


def remove_draft_copies(folder: Path) -> None:
    """Remove copies of conversations that drafts were fitted again on, and nothing else."""
    for copy in _list_own_entries(folder / DRAFT_COPIES_FOLDER_NAME, DRAFT_COPY_NAME_REGEX):
        if copy.is_dir():
            shutil.rmtree(copy, ignore_errors=True)
    _remove_empty_folder(folder / DRAFT_COPIES_FOLDER_NAME)


def remove_copies_and_caches(folder: Path) -> None:
    """Remove copies of conversations and cached vectors.

    Nothing else goes: a store may lie in a folder of the user's, with files of theirs.
    """
    remove_draft_copies(folder)
    for path in _list_own_entries(folder / EMBEDDINGS_FOLDER_NAME, _VECTOR_CACHE_NAME_REGEX):
        if path.is_file():
            path.unlink()
    _remove_empty_folder(folder / EMBEDDINGS_FOLDER_NAME)


def _list_own_entries(folder: Path, names: re.Pattern[str]) -> list[Path]:
    """Return what lies in a folder of the store under names of ours; a link isn't ours."""
    if folder.is_symlink() or not folder.is_dir():
        return []

    entries: list[Path] = []
    for path in folder.iterdir():
        if names.fullmatch(path.name) and not path.is_symlink():
            entries.append(path)

    return entries


def _remove_empty_folder(folder: Path) -> None:
    with suppress(OSError):  # it isn't there, or has files of the user's
        folder.rmdir()


@cache
def _make_links_folder() -> tempfile.TemporaryDirectory[str]:
    # which is removed when the process ends
    return tempfile.TemporaryDirectory(prefix="pollex-")


def make_utf8_path(path: Path) -> Path:
    """Return an absolute path that DuckDB takes: where a name on the way is no UTF-8, a link to it."""
    where = path.absolute()
    if is_unicode_path(where):
        return where
    return _make_link_to(where)


@cache
def _make_link_to(where: Path) -> Path:
    link = (
        Path(_make_links_folder().name)
        / f"{secrets.token_hex(8)}{where.suffix if is_unicode_path(where.suffix) else ''}"
    )
    link.symlink_to(where)
    return link


def make_private_folder(folder: Path) -> None:
    """Make a folder that nobody else may look into."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    # somebody else's: whether it can be written shows when it is
    with suppress(PermissionError):
        if folder.stat().st_mode & 0o077:
            folder.chmod(0o700)


def find_free_damaged_name(path: Path, why: str = "damaged") -> Path:
    """Return the first free `NAME.damaged.N`; `forgetting.list_unforgotten_files` knows such names."""
    number = 1
    while (name := path.with_name(f"{path.name}.{why}.{number}")).exists():
        number += 1
    return name


def read_secret(folder: Path) -> bytes | None:
    """Return the store's secret; None where there is none yet.

    Raises:
        StoreDamaged: It was changed, and can't be mended.
    """
    path = folder / SECRET_FILE_NAME
    if not path.exists():
        return None

    # the secret, and behind it its check
    secret = (content := path.read_bytes())[:SECRET_BYTES]
    check = content[SECRET_BYTES:]
    if (
        len(content) == SECRET_BYTES or _compute_secret_check(secret) == check
    ):  # earlier stores have no check
        return secret

    # one flipped bit can be turned back
    number = int.from_bytes(content)
    if len(content) == SECRET_BYTES + 8:
        bits = 8 * len(content)
    else:
        bits = 0

    for mended in ((number ^ 1 << place).to_bytes(len(content)) for place in range(bits)):
        if _compute_secret_check(mended[:SECRET_BYTES]) == mended[SECRET_BYTES:]:
            LOGGER.warning("%s: a bit of the store's secret had flipped; it was mended", path)
            _write_secret(path, mended[:SECRET_BYTES], anew=True)
            return mended[:SECRET_BYTES]

    raise _make_secret_error(path, "the store's secret was changed, by which it finds paid answers")


def _compute_secret_check(secret: bytes) -> bytes:
    """Return what stands behind a secret in its file, by which a change is noticed."""
    return hashlib.sha256(b"pollex secret" + secret).digest()[:8]


def get_or_create_secret(folder: Path, other_secret: bytes | None, paid: int) -> bytes:
    """Return the store's secret, written down where there is none yet.

    Args:
        other_secret: The secret of another store whose replies are to be found here; None: any will do.
        paid: How many paid answers the store has.

    Raises:
        StoreDamaged: It was cut, or is gone while there are answers that it finds.
        WrongUse: The store has another secret than the one given, or it is too short.
    """
    if other_secret is not None and len(other_secret) != SECRET_BYTES:
        raise WrongUse(
            f"a secret has {SECRET_BYTES} bytes, not {len(other_secret)}",
            hint="give that of a store",
        )

    if (stored := read_secret(folder)) is not None:
        if other_secret not in (None, stored):
            raise WrongUse(
                "the store has another secret than the one given",
                where=str(folder),
                hint="name another",
            )

        if (folder / SECRET_FILE_NAME).stat().st_size == SECRET_BYTES:
            _write_secret(folder / SECRET_FILE_NAME, stored, anew=True)
        return stored

    path = folder / SECRET_FILE_NAME
    if paid and other_secret is None:
        raise _make_secret_error(
            path,
            f"the store's secret is gone, by which it finds its {paid} paid answers",
        )

    _write_secret(path, other_secret or secrets.token_bytes(SECRET_BYTES), anew=False)
    return path.read_bytes()[:SECRET_BYTES]


def _write_secret(path: Path, secret: bytes, *, anew: bool) -> None:
    """Write a secret with its check.

    Args:
        anew: Whether it takes the place of a file that is there. Else, where another process or
            thread was quicker with a new one, that is the store's.
    """
    # a draft first: nobody reads a half-written secret; of this call alone, for other threads make one, too
    draft = path.with_name(f".{SECRET_FILE_NAME}.{secrets.token_hex(8)}")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(secret + _compute_secret_check(secret))
        file.flush()
        os.fsync(file.fileno())  # answers that are found by it will be on the disk, too

    if anew:
        draft.replace(path)
        return

    with suppress(FileExistsError):
        os.link(draft, path)

    draft.unlink()


def _make_secret_error(path: Path, what: str) -> StoreDamaged:
    hint = (
        "put back the file that belongs there; without it take another store, and all is asked anew"
    )
    return StoreDamaged(what, where=str(path), hint=hint)


def make_write_error(path: Path, failure: OSError) -> PollexError:
    """Return the error that says why the store can't be written."""
    if failure.errno in DISK_FULL_ERROR_NUMBERS:
        return make_full_disk_error(path)
    if (
        isinstance(failure, PermissionError | FileExistsError | NotADirectoryError)
        or failure.errno == errno.EROFS
    ):
        return make_unwritable_error(path, failure.strerror)
    if failure.errno == errno.ENOMEM:
        return make_memory_error(path)
    if isinstance(failure, FileNotFoundError):
        return PollexError(
            "the store was removed while it was in use",
            where=str(path),
            hint="put it back, then resume the run",
        )

    return make_store_error(path, failure.strerror or str(failure))


def make_store_error(path: Path, why: str) -> PollexError:
    """Return the error for what is neither damage nor any other trouble that has words of its own."""
    return PollexError(
        f"the store can't be used: {why}",
        where=str(path),
        hint="check the disk, then resume the run",
    )


def make_memory_error(path: Path) -> PollexError:
    """Return the error for memory that ran out."""
    return PollexError(
        "memory ran out",
        where=str(path),
        hint="give the command more, then resume the run",
    )


def make_unwritable_error(path: Path, why: str | None = "Permission denied") -> WrongUse:
    """Return the error for a store that this user can't write."""
    return WrongUse(
        f"the store can't be written: {why}",
        where=str(path),
        hint="give a folder that can be written",
        option="store",
    )


def make_full_disk_error(path: Path) -> StoreFull:
    """Return the error for a full disk."""
    return StoreFull(f"disk full at {path}", hint="make room, then resume the run")
