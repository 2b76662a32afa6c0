"""Logs that were brought to a store, and how each is read: kept by name, and given to a verb as `log:NAME`."""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from datetime import datetime
from pathlib import Path
from typing import Annotated

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)

from pollex.errors import WrongUse
from pollex.formats.fields import ReadOptions
from pollex.store.folder import LOG_COPY_PREFIX, make_private_folder, require_plain_path
from pollex.store.seal import Seal, read_json_object
from pollex.store.tables import format_current_time

LOGS_FOLDER_NAME = "logs"
"""Folder of a store with a folder for each log that was brought."""
READING_FILE_NAME = "reading.json"
MAX_LOG_NAME_CHARACTERS = 60
_LOG_ID_PATTERN = re.compile(r"[0-9a-f]{12}")
_NOT_IN_NAMES_PATTERN = re.compile(r"[^\w.+-]+")
_MAPPING_OPTIONS = ("columns", "roles")
_FIELDS_NOT_WRITTEN = ("folder", "is_own")
"""Fields of a reading that whoever reads its file finds out."""
_NO_OPTION = object()
_DEFAULTS_OF_OPTIONS = {option.name: option.default for option in fields(ReadOptions)}
"""Options of reading, with what is usual."""


def _require_moment(text: str) -> str:
    datetime.fromisoformat(text)
    return text


_Name = Annotated[str, Field(pattern=r"^[\w.+-]{1,80}\z")]
_PlainName = Annotated[str, Field(pattern=r"^\w[\w.+-]{0,200}\z")]
"""Of a file in the folder itself: it leads nowhere, and is no pattern."""
_Place = Annotated[str, Field(pattern=r"^[^\x00]{1,4000}\z")]
_Moment = Annotated[str, AfterValidator(_require_moment)]


@dataclass(frozen=True, kw_only=True)
class LogReading:
    """A log that was brought, and how it is read.

    Attributes:
        id: Names its folder in the store.
        name: What people call it; no other log of the store has it.
        files: Names of its files in its folder, those that are the store's own.
        places: Paths, patterns, addresses and queries that stay where they are.
        titles: What people are shown for files and places, in their order: never a path of the
            store.
        options: Options of reading by the names of a use case's fields, as they are typed.
        columns: The columns of its first rows, by which a log of the same fields is known again.
        is_kept: Whether a person said that this is how it is read.
        conversations: How many were read; None where nobody counted yet.
        thumbs: How many of them have a thumb up, and down; None likewise.
        notes: Why files were left out that came with it.
        tool: The tool that it was fetched from, whose `project` and `address` are as they were typed;
            empty for other logs.
        folder: Where its files are; given by whoever reads it.
        is_own: Whether this machine and user wrote it down in this very store: else its places are
            somebody else's words.
    """

    id: str
    name: str
    created: str
    files: tuple[str, ...] = ()
    places: tuple[str, ...] = ()
    titles: tuple[str, ...] = ()
    options: Mapping[str, object] = field(default_factory=dict)
    columns: tuple[str, ...] = ()
    is_kept: bool = False
    conversations: int | None = None
    thumbs: tuple[int, int] | None = None
    notes: tuple[str, ...] = ()
    tool: str = ""
    project: str = ""
    address: str = ""
    folder: Path = field(default=Path(), compare=False)
    is_own: bool = field(default=True, compare=False)

    @property
    def sources(self) -> tuple[str, ...]:
        """What is read, as a verb takes it; see `require_safe_sources`."""
        return (*(str(self.folder / name) for name in self.files), *self.places)

    def require_safe_sources(self) -> tuple[str, ...]:
        """Return what is read, where nobody but this user leads to files outside the store.

        Raises:
            WrongUse: Somebody else's store names a place, or one of its files is a link.
        """
        self.require_plain_files()
        # what a store from elsewhere names was never named here
        if self.places and not self.is_own:
            raise WrongUse(
                f"this store comes from elsewhere, and its log {self.name} lies outside it",
                where=", ".join(self.places),
                hint="if you want it to be read, give that place itself in place of the log's name",
            )
        return self.sources

    def require_plain_files(self) -> None:
        """Refuse files of the log that are links, pipes or devices: they may lead anywhere.

        Raises:
            WrongUse: One of them is.
        """
        for name in self.files:
            require_plain_path(self.folder / name)

    @property
    def argument(self) -> str:
        """What a person types for it where a verb takes logs: its options come with it."""
        return f"{LOG_COPY_PREFIX}{self.name}"

    @property
    def size(self) -> int:
        """Bytes of the files that are the store's own."""
        paths = (self.folder / name for name in self.files)
        return sum(path.stat().st_size for path in paths if path.exists())

    def with_titles(self, text: str) -> str:
        """Return a text with the titles of files and places instead of their paths."""
        # paths of files first, then what is left of the store's folder
        for source, title in zip(self.sources, self.titles, strict=True):
            text = text.replace(source, title)
        return text.replace(f"{self.folder}{os.sep}", "")


def list_readings(store: Path, *, kept_only: bool = True) -> list[LogReading]:
    """Return the logs that were brought to a store, the last one first.

    Args:
        kept_only: Only those of which a person said how they are read.
    """
    folders = (store / LOGS_FOLDER_NAME).glob("*") if (store / LOGS_FOLDER_NAME).is_dir() else ()
    # a folder of another name is none of a log
    read = (_read_reading(folder) for folder in folders if _LOG_ID_PATTERN.fullmatch(folder.name))
    readings = []
    for reading in read:
        if reading is not None:
            readings.append(reading)

    listed = []
    for reading in readings:
        if reading.is_kept or not kept_only:
            listed.append(reading)

    return sorted(
        listed,
        key=lambda reading: (reading.created, reading.id),
        reverse=True,
    )


def find_reading(store: Path, name: str) -> LogReading:
    """Return a log by its name or its id.

    Raises:
        WrongUse: There is none.
    """
    readings = list_readings(store, kept_only=False)
    matching = []
    for reading in readings:
        if name in (reading.name, reading.id):
            matching.append(reading)

    if not matching:
        names = ", ".join(reading.name for reading in readings[:10])
        if names:
            hint = f"known are {names}"
        else:
            hint = "bring one: `pollex serve`, page Logs"

        raise WrongUse(
            f"no log was brought under the name {name!r:.60}",
            hint=hint,
        )

    return matching[0]


def make_reading(store: Path, title: str) -> LogReading:
    """Return a log without files, whose private folder is there; it is kept once it has some.

    Args:
        title: Of its first file or its place; its name is made of it.
    """
    make_private_folder(store / LOGS_FOLDER_NAME)
    id_ = secrets.token_hex(6)
    folder = store / LOGS_FOLDER_NAME / id_
    folder.mkdir(mode=0o700)

    return LogReading(
        id=id_,
        name=find_free_name(store, title),
        created=format_current_time(),
        folder=folder,
    )


def find_free_name(store: Path, title: str, but: str = "") -> str:
    """Return a name for a log that no other log of a store has.

    Args:
        title: What it is made of: a file's name, or what a person typed.
        but: Id of a log that may have it already.
    """
    stem = title.rpartition("/")[2].strip()
    # endings that say only how the log is written and packed
    stem = re.sub(
        r"(\.(jsonl|ndjson|json|csv|tsv|txt|parquet|xlsx?|ods|gz|zst|zip))+$",
        "",
        stem,
    )
    base = _NOT_IN_NAMES_PATTERN.sub("-", stem).strip("-.")[:MAX_LOG_NAME_CHARACTERS] or "log"
    others = list_readings(store, kept_only=False)
    taken_names = set()
    for reading in others:
        if reading.id != but:
            taken_names.add(reading.name)

    # one more number than there are names, so that one is always free
    numbered = (f"{base}-{number}" for number in range(2, len(taken_names) + 3))

    return next(name for name in (base, *numbered) if name not in taken_names)


def keep_reading(reading: LogReading) -> LogReading:
    """Write down a log with its options, for its owner alone; return it.

    It is sealed, unless it is somebody else's: that stays theirs, whoever counts it or says how it is
    read.
    """
    content = {}
    for name, value in asdict(reading).items():
        if name not in _FIELDS_NOT_WRITTEN:
            content[name] = value

    if reading.is_own:
        content = _make_seal(reading.folder).sign_fields(_name_seal(reading.folder), content)

    # written aside and moved into place: a reader never sees half of it
    draft = reading.folder / f".{READING_FILE_NAME}.{secrets.token_hex(4)}"
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        json.dump(content, file, ensure_ascii=True, indent=1)

    draft.replace(reading.folder / READING_FILE_NAME)
    return reading


def _make_seal(folder: Path) -> Seal:
    """Return the seal of the store that a log's folder is in."""
    return Seal.of(folder.parent.parent)


def _name_seal(folder: Path) -> str:
    """Return what a reading is sealed as: of this log, so that it stands for no other."""
    return f"{LOGS_FOLDER_NAME}/{folder.name}"


def remove_reading(reading: LogReading) -> None:
    """Remove a log with the files that are the store's own; what was learned from it stays."""
    shutil.rmtree(reading.folder)


def remove_incomplete_logs(store: Path) -> None:
    """Remove folders of logs that never came whole, as an upload that was cut off leaves them."""
    for folder in (store / LOGS_FOLDER_NAME).glob("*"):
        if _LOG_ID_PATTERN.fullmatch(folder.name) and not (folder / READING_FILE_NAME).exists():
            shutil.rmtree(folder, ignore_errors=True)


def find_reading_of_columns(store: Path, columns: Sequence[str]) -> LogReading | None:
    """Return the last log of the same columns of which a person said how it is read; None if there is none."""
    for reading in list_readings(store):
        if columns and set(reading.columns) == set(columns):
            return reading
    return None


def find_named_readings(logs: object, store: Path) -> list[LogReading]:
    """Return the logs among some sources that are named as `log:NAME`.

    Raises:
        WrongUse: One of them isn't there.
    """
    sources = logs if isinstance(logs, tuple) else ()
    names = []
    for source in sources:
        if str(source).startswith(LOG_COPY_PREFIX):
            names.append(source[len(LOG_COPY_PREFIX) :])

    return [find_reading(store, name) for name in names]


def replace_named_sources(logs: tuple[str, ...], store: Path) -> tuple[str, ...]:
    """Return sources with those of a log in place of `log:NAME`. Raises as `find_named_readings`."""
    sources: list[str] = []
    for source in logs:
        # a log gives way to its files and places; everything else stays
        readings = find_named_readings((source,), store)
        sources += readings[0].require_safe_sources() if readings else [source]
    return tuple(sources)


def resolve_named_sample(source: str | Path, store: Path) -> str | Path:
    """Return a sample to compare: `log:NAME` as its one file, anything else as it is.

    Raises:
        WrongUse: It isn't there, or is made of several files.
    """
    readings = find_named_readings((str(source),), store)
    if not readings:
        return source

    sources = readings[0].require_safe_sources()
    if len(sources) != 1:
        what = f"{readings[0].name} is made of {len(sources)} files, and a sample is one"
        raise WrongUse(what, hint="score it, and compare the run")
    return sources[0]


def read_named_options(logs: object, store: Path) -> Mapping[str, object]:
    """Return the options of the logs that are named as `log:NAME`; none where there are none.

    Raises:
        WrongUse: One of them isn't there, or two are read in different ways.
    """
    readings = find_named_readings(logs, store)
    if not readings:
        return {}

    first = readings[0]
    # all are read in one go, with one set of options
    for other in readings[1:]:
        if dict(other.options) != dict(first.options):
            what = f"{first.name} and {other.name} are read in different ways"
            raise WrongUse(
                what,
                hint="give one of them, or bring their files together",
            )

    return first.options


class _ReadingFile(BaseModel):
    """What a reading's file may say: whoever handed the store on may have written it."""

    model_config = ConfigDict(strict=True)

    name: _Name
    created: _Moment
    files: list[_PlainName] = []
    places: list[_Place] = []
    titles: list[str] = []
    options: dict[str, object] = {}
    columns: list[str] = []
    is_kept: bool = False
    conversations: int | None = Field(None, ge=0)
    thumbs: Annotated[list[int], Field(min_length=2, max_length=2)] | None = None
    notes: list[str] = []
    tool: str = ""
    project: str = ""
    address: str = ""

    @model_validator(mode="after")
    def _require_title_of_each(self) -> _ReadingFile:
        if len(self.titles) != len(self.files) + len(self.places):
            raise ValueError("each file and each place has a title")
        return self


def _read_reading(folder: Path) -> LogReading | None:
    """Return the log of a folder; None where it never came whole, or what its file says isn't sound."""
    try:
        content = _ReadingFile.model_validate(read_json_object(folder / READING_FILE_NAME))
    except ValidationError:
        return None

    options = {}
    for name, value in content.options.items():
        if _is_sound_option(name, value):
            options[name] = value

    return LogReading(
        # where the folder lies is not written in it: a store may be moved
        id=folder.name,
        folder=folder.absolute(),
        name=content.name,
        created=content.created,
        files=tuple(content.files),
        places=tuple(content.places),
        titles=tuple(content.titles),
        options=options,
        columns=tuple(content.columns),
        # what is left out changes how it is read, which a person then says anew
        is_kept=content.is_kept and options == content.options,
        conversations=content.conversations,
        thumbs=None if content.thumbs is None else (content.thumbs[0], content.thumbs[1]),
        notes=tuple(content.notes),
        tool=content.tool,
        project=content.project,
        address=content.address,
        is_own=_is_sealed_here(folder),
    )


def _is_sealed_here(folder: Path) -> bool:
    """Return whether this machine and user wrote down the log of a folder."""
    sealed_fields = _make_seal(folder).read_fields(_name_seal(folder), folder / READING_FILE_NAME)
    return sealed_fields is not None


def _is_sound_option(name: str, value: object) -> bool:
    """Return whether a value is one of an option of reading: no other option of a verb is taken from a store."""
    usual = _DEFAULTS_OF_OPTIONS.get(name, _NO_OPTION)
    if usual is _NO_OPTION:
        return False
    if name in _MAPPING_OPTIONS and isinstance(value, dict):
        return all(map(_is_text_or_texts, value.values()))
    if isinstance(usual, bool | int):
        return type(value) is type(usual)
    return _is_text_or_texts(value)


def _is_text_or_texts(value: object) -> bool:
    """Return whether a value is a text, or a list of texts."""
    if isinstance(value, list):
        return all(isinstance(part, str) for part in value)
    return isinstance(value, str)
