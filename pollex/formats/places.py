"""Folders and files on any file system: local, object stores, whatever fsspec or Arrow reaches."""

from __future__ import annotations

import glob
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

from fsspec.core import url_to_fs

from pollex.errors import BadInput, WrongUse
from pollex.outputs import note_output, require_output


@dataclass(frozen=True)
class StoragePath:
    """A path on a file system.

    Attributes:
        files: An fsspec file system.
        local: Whether it is a disk of this machine: files there are written beside and renamed,
            elsewhere put whole.
    """

    files: Any
    path: str

    @classmethod
    def at(cls, url: str) -> StoragePath:
        """Find the file system of an address; a plain path is a local one.

        Where fsspec lacks a package for it, Arrow's own file system serves (S3, Google's, Azure's,
        HDFS).

        Raises:
            BadInput: It lies in an archive that can't be read.
            WrongUse: Neither knows the protocol.
        """
        try:
            return cls(*url_to_fs(url))
        except (ImportError, ValueError) as error:
            return cls._by_arrow(url, error)
        # an archive that is opened to see what is in it
        except (OSError, BadZipFile) as error:
            raise BadInput(f"can't be opened: {error}", where=url, hint="check the file") from None

    @classmethod
    def _by_arrow(cls, url: str, missing: Exception) -> StoragePath:
        try:
            from fsspec.implementations.arrow import ArrowFSWrapper
            from pyarrow.fs import FileSystem  # takes half a second to import, and is an extra

            file_system, path = FileSystem.from_uri(url)
            return cls(ArrowFSWrapper(file_system), path)
        except (ImportError, ValueError) as error:
            raise WrongUse(
                f"no file system is known for it: {missing}",
                where=url,
                hint=f"install what it needs ({error})",
            ) from None

    @property
    def local(self) -> bool:
        """Whether it is a disk of this machine."""
        protocol = self.files.protocol
        return "file" in ((protocol,) if isinstance(protocol, str) else protocol)

    def __truediv__(self, name: str) -> StoragePath:
        return StoragePath(self.files, f"{self.path.rstrip('/')}/{name}")

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rstrip("/").rpartition("/")[2]

    def exists(self) -> bool:
        """Tell whether a file is there."""
        return bool(self.files.exists(self.path))

    def read(self) -> bytes:
        """Return the file's content."""
        content: bytes = self.files.cat_file(self.path)
        return content

    def read_range(self, start: int, end: int) -> bytes:
        """Return the bytes from `start` to before `end`."""
        content: bytes = self.files.cat_file(self.path, start=start, end=end)
        return content

    def write(self, content: bytes) -> None:
        """Put a file there, whole or not at all."""
        if not self.local:
            self.files.pipe_file(self.path, content)
            note_output(self.files.unstrip_protocol(self.path))
            return

        require_output(Path(self.path), named=False)
        # beside the file and renamed, so that nobody sees half of it; the machine is in the name
        draft = Path(self.path).with_name(
            f".{self.name}.{os.uname().nodename}.{secrets.token_hex(4)}{DRAFT_FILE_SUFFIX}"
        )
        draft.write_bytes(content)
        draft.replace(self.path)
        note_output(self.path)

    def make_folder(self) -> None:
        """Make the folder; object stores need none.

        Raises:
            WrongUse: Nothing can be written there.
        """
        try:
            self.files.makedirs(self.path, exist_ok=True)
            # what has no folders keeps no files: an address that holds its own content
            self.files.exists(self.path) or self.names()
        except NotImplementedError:
            what = "nothing can be written there"
            raise WrongUse(what, where=self.path, hint="name a folder", option="out") from None

    def names(self) -> list[str]:
        """Return the names of the files in the folder; none where there is no folder."""
        try:
            paths = self.files.ls(self.path, detail=False)
        except FileNotFoundError:
            return []

        return sorted(str(path).rstrip("/").rpartition("/")[2] for path in paths)

    def state(self) -> str:
        """Return what changes when the file does: its size, with etag, or time of change."""
        # whatever the file system knows of the last change
        about = self.files.info(self.path)
        changed = next(
            (
                about[key]
                for key in ("ETag", "etag", "md5Hash", "mtime", "LastModified")
                if about.get(key)
            ),
            "",
        )
        return f"{about['size']} {changed}"

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return int(self.files.info(self.path)["size"])

    def remove_drafts(self) -> None:
        """Remove what writers of this machine left behind when they were killed."""
        if self.local:
            ours = re.compile(
                rf"\..+\.{re.escape(os.uname().nodename)}\.[0-9a-f]{{8}}{re.escape(DRAFT_FILE_SUFFIX)}"
            )
            for draft in Path(self.path).glob(f".*{DRAFT_FILE_SUFFIX}"):
                if ours.fullmatch(draft.name):
                    draft.unlink(missing_ok=True)

    @contextmanager
    def copied(self, folder: Path) -> Iterator[Path]:
        """Give a local copy of the file, or the file itself where it is local."""
        if self.local:
            yield Path(self.path)
            return

        copy = folder / self.name
        with self.files.open(self.path, "rb") as source, copy.open("wb") as target:
            shutil.copyfileobj(source, target)

        yield copy


DRAFT_FILE_SUFFIX = ".draft"


def list_storage_files(url: str) -> list[StoragePath]:
    """Return the files that an address or a pattern names, sorted.

    Raises:
        BadInput: There are none.
        WrongUse: Nobody knows the protocol.
    """
    place = StoragePath.at(url)
    # a folder stands for all files in it that aren't hidden
    if place.files.isdir(place.path):
        paths = []
        for path in place.files.find(place.path):
            if not path.rpartition("/")[2].startswith("."):
                paths.append(path)
    else:
        if glob.has_magic(place.path):
            paths = place.files.glob(place.path)
        else:
            paths = [place.path]

    files = []
    for path in sorted(paths):
        if place.files.isfile(path):
            files.append(StoragePath(place.files, str(path)))

    if not files:
        raise BadInput(
            "no such file",
            where=url,
            hint="check the address; a pattern must match at least one file",
        )

    return files
