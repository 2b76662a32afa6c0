"""Files that pollex wrote outside the store: path, digest, size and run of each, so that forgetting finds them."""

import hashlib
import hmac
import json
import logging
import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from urllib.parse import quote, unquote_to_bytes

from pollex.errors import PollexError
from pollex.outputs import OutputState, WrittenOutputs, listen_for_outputs
from pollex.store.database import DATABASE_FILE_NAME, Database
from pollex.store.seal import Seal
from pollex.store.store import Store
from pollex.store.tables import FactRow, dump_json, format_current_time, load_json
from pollex.store.writer import make_row_change
from pollex.text import is_unicode_path

LOGGER = logging.getLogger(__name__)

ESCAPED_PATH_PREFIX = "file://"
"""Begins paths that are no UTF-8, escaped as in an address: the database takes text alone."""

STORED_OUTPUT_FIELD_NAMES = ("beside", "digest", "size", "run")
"""What the store keeps of a file, beside its path."""

OUTPUT_SIGNATURE_FIELD = "signature"
"""Field beside them: the seal of whoever noted the file."""

OUTPUT_FACT_KIND = "output"
"""Kind of the facts that tell of such a file; their id is its path."""


@dataclass(frozen=True)
class OutputFile:
    """A file that a command wrote.

    Attributes:
        path: Absolute, or an address of another file system.
        beside: Where it lies as seen from the store, with which it may have been moved or copied;
            empty: nowhere.
        digest: SHA-256 of what was written; empty where it couldn't be read.
        run: Of which it tells; empty where the command was no run.
        noted_here: Whether this machine and user noted it, in this very store: a copy of a store, or
            a stranger's, may name any file and its digest.
    """

    path: str
    beside: str
    digest: str
    size: int
    run: str
    noted_here: bool = True

    @property
    def remote(self) -> bool:
        """Whether it lies on another file system."""
        return "://" in self.path and not self.path.startswith(ESCAPED_PATH_PREFIX)

    def places(self, folder: Path) -> list[Path]:
        """Return where it may lie: beside the store, and where it was written; nowhere on another file system."""
        if self.beside:
            places = [folder / _decode_path(self.beside)]
        else:
            places = []

        places += [] if self.remote else [_decode_path(self.path)]
        return [place for place in places if place.is_file()]

    def place(self, folder: Path) -> Path | None:
        """Return where it lies; None where it is no longer there, or on another file system."""
        return next((place.resolve() for place in self.places(folder)), None)

    def is_believed(self, place: Path, folder: Path) -> bool:
        """Tell whether a file is surely what was written: unchanged, and noted here or in the store's surroundings.

        Args:
            folder: Of the store.
        """
        if not self.noted_here and not place.resolve().is_relative_to(folder.parent):
            return False
        return self.is_unchanged(place)

    def is_unchanged(self, place: Path) -> bool:
        """Tell whether a file is what was written, byte for byte; a link never is."""
        if place.is_symlink() or not place.is_file() or place.stat().st_size != self.size:
            return False
        return bool(self.digest) and compute_file_digest(place) == self.digest


@contextmanager
def note_written_outputs(folder: Path) -> Iterator[None]:
    """Note in a store, if there is one then, what is written until the block ends."""
    with listen_for_outputs(partial(look_up_output, folder)) as written:
        try:
            yield
        finally:
            record_output_files(folder, written)


def record_output_files(folder: Path, written: WrittenOutputs) -> None:
    """Note files in a store; where that can't be, say so: the files are there all the same."""
    if not written.paths or not (folder / DATABASE_FILE_NAME).exists():
        return

    store_folder = folder.resolve()
    # files in the store itself are no outputs
    outside = []
    for path in written.paths:
        if store_folder not in Path(path).absolute().parents:
            outside.append(path)

    seal = Seal.of(store_folder)
    rows = []
    for path in outside:
        rows.append(_make_output_row(_describe_output_file(path, written.run, store_folder), seal))

    try:
        with (
            closing(Database(folder / DATABASE_FILE_NAME)) as database,
            database.transaction() as connection,
        ):
            _replace_output_rows(connection, [row.id for row in rows], rows)
    except PollexError as failure:
        LOGGER.warning(
            "%s: it was not noted which files were written: %s",
            folder,
            failure.what,
        )


def look_up_output(folder: Path, path: Path) -> OutputState:
    """Say what the store in a folder knows of a file that is there."""
    if not (folder / DATABASE_FILE_NAME).exists():
        return "unknown"

    state: OutputState = "unknown"
    store_folder = folder.resolve()
    with suppress(PollexError), Store.open(folder, read_only=True) as store:
        for output in list_outputs(store):
            places = [place.resolve() for place in output.places(store_folder)]
            if path.resolve() not in places:
                continue
            if output.is_believed(path, store_folder):
                return "own"
            # what a stranger's store says of a file somewhere else is no knowledge
            if output.noted_here:
                state = "changed"

    return state


def list_outputs(store: Store) -> list[OutputFile]:
    """Return all files that the store knows of, those written last at the end."""
    rows = store.rows(
        "SELECT id, payload FROM facts WHERE kind = ? ORDER BY rowid", [OUTPUT_FACT_KIND]
    )
    seal = Seal.of(store.folder.resolve())
    files: list[OutputFile] = []
    for row in rows:
        values = load_json(row["payload"])
        fields = {name: values[name] for name in STORED_OUTPUT_FIELD_NAMES}
        signature = str(values.get(OUTPUT_SIGNATURE_FIELD, ""))
        expected = seal.sign(OUTPUT_FACT_KIND, _text_to_sign(row["id"], fields))
        files.append(
            OutputFile(
                row["id"],
                **fields,
                noted_here=hmac.compare_digest(signature.encode(), expected.encode()),
            )
        )

    return files


def update_noted_outputs(
    store: Store,
    before: list[str],
    paths: dict[str, str],
) -> None:
    """Note files as they are now in place of what was noted.

    Args:
        before: Paths whose notes go.
        paths: The run of each file, by where it lies now.
    """
    store_folder = store.folder.resolve()
    seal = Seal.of(store_folder)
    rows = []
    for path, run in paths.items():
        rows.append(_make_output_row(_describe_output_file(path, run, store_folder), seal))

    store.transact(
        lambda connection: _replace_output_rows(
            connection, [*before, *(row.id for row in rows)], rows
        )
    )


def compute_file_digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _describe_output_file(path: str, run: str, folder: Path) -> OutputFile:
    """Return a file as it is now; without a digest where it is none."""
    if "://" in path:
        return OutputFile(path, "", "", 0, run)

    # with its place as seen from the store, which may be moved with it
    place = Path(path).absolute()
    beside = _encode_path(Path(os.path.relpath(place.resolve(), folder)))
    if not place.is_file():
        return OutputFile(_encode_path(place), beside, "", 0, run)

    return OutputFile(
        _encode_path(place),
        beside,
        compute_file_digest(place),
        place.stat().st_size,
        run,
    )


def _encode_path(path: Path) -> str:
    """Return a path as the database takes it."""
    if is_unicode_path(path):
        return str(path)
    return ESCAPED_PATH_PREFIX + quote(os.fsencode(path))


def _decode_path(name: str) -> Path:
    if name.startswith(ESCAPED_PATH_PREFIX):
        return Path(os.fsdecode(unquote_to_bytes(name.removeprefix(ESCAPED_PATH_PREFIX))))
    return Path(name)


def _make_output_row(output: OutputFile, seal: Seal) -> FactRow:
    values = {name: getattr(output, name) for name in STORED_OUTPUT_FIELD_NAMES}
    signature = seal.sign(OUTPUT_FACT_KIND, _text_to_sign(output.path, values))
    about = {"time": format_current_time(), OUTPUT_SIGNATURE_FIELD: signature}
    return FactRow("", OUTPUT_FACT_KIND, output.path, dump_json(values | about))


def _text_to_sign(path: str, values: Mapping[str, object]) -> str:
    """Return what the store keeps of a file as one text, the same each time."""
    return json.dumps([path, *(values[name] for name in STORED_OUTPUT_FIELD_NAMES)])


def _replace_output_rows(
    connection: sqlite3.Connection,
    paths: list[str],
    rows: list[FactRow],
) -> None:
    connection.executemany(
        "DELETE FROM facts WHERE kind = ? AND id = ?",
        [[OUTPUT_FACT_KIND, path] for path in paths],
    )
    for row in rows:
        make_row_change(row).apply(connection)
