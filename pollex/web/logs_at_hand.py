"""Logs that a form offers: those that are there, by name; nobody types a path of the server."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path

from pollex.errors import PollexError
from pollex.services.bring import require_still_allowed
from pollex.services.readings import list_readings
from pollex.store.outputs import list_outputs
from pollex.store.runs import Run
from pollex.text import format_count, format_size
from pollex.web.site import Site

LOG_ENDINGS = (".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".parquet", ".xlsx", ".ods")
PACKED_ENDINGS = (".gz", ".zst", ".bz2", ".xz", ".zip", ".tar", ".tgz")
BUNDLED_LOG_ID = "bundled"
BUNDLED_GROUP_FIELD = "user_id"
"""Field of the user in the bundled log."""
MAX_LOGS_LISTED = 200


@dataclass(frozen=True)
class AvailableLog:
    """A log that can be chosen.

    Attributes:
        value: What the form sends.
        name: For people.
        source: The word of a command that names it.
    """

    value: str
    name: str
    source: str


def list_available_logs(site: Site) -> list[AvailableLog]:
    """Return the logs that can be chosen: those that were brought, those beside the store, and the bundled one."""
    return [*_list_brought_logs(site), *_list_logs_beside_store(site), _list_bundled_log()]


def find_log_of_run(site: Site, run: Run) -> str:
    """Return the value of the log that a run read, where it can be chosen; empty where it can't."""
    named = run.arguments.get("logs")
    sources = named if isinstance(named, list) else [named]
    at_hand = {log.source: log.value for log in list_available_logs(site)}
    # a run notes the files of a log that was brought, and not its name
    for reading in list_readings(site.store.folder):
        if reading.argument in at_hand:
            for source in reading.sources:
                at_hand.setdefault(source, reading.argument)

    return next((at_hand[str(source)] for source in sources if str(source) in at_hand), "")


def _list_brought_logs(site: Site) -> Iterator[AvailableLog]:
    """Yield the logs that were brought to the store, each with how it is read."""
    for reading in list_readings(site.store.folder):
        # a place that the server may not read, or no longer, is none
        try:
            require_still_allowed(reading, site.roots)
        except PollexError:
            continue

        counts = []
        if reading.conversations is not None:
            counts.append(format_count(reading.conversations, "conversation"))
        if reading.thumbs is not None:
            up, down = reading.thumbs
            counts.append(f"{up} thumbs up, {down} down" if up or down else "no thumbs")

        # nobody has counted a large log
        if not counts and reading.files:
            counts.append(format_size(reading.size))

        count_text = f" ({', '.join(counts)})" if counts else ""
        yield AvailableLog(
            reading.argument,
            f"{reading.name}{count_text}",
            reading.argument,
        )


def _list_bundled_log() -> AvailableLog:
    with as_file(files("pollex.examples")) as examples:
        source = str(examples / "bikes.jsonl")

    return AvailableLog(
        BUNDLED_LOG_ID,
        "The log that comes with pollex: 480 talks of a bicycle shop",
        source,
    )


def _list_logs_beside_store(site: Site) -> Iterator[AvailableLog]:
    """Yield the files beside the store that may be logs; what pollex wrote is none."""
    if site.here is None or not site.here.is_dir():
        return

    written = set()
    for output in list_outputs(site.store):
        written.add(output.place(site.store.folder))

    paths = []
    for path in sorted(site.here.iterdir()):
        if may_be_log(path):
            paths.append(path)

    for path in paths[:MAX_LOGS_LISTED]:
        if path.resolve() not in written and path.name not in site.files:
            yield AvailableLog(
                f"file:{path.name}",
                f"{path.name} ({format_file_size(path)})",
                str(path),
            )


def may_be_log(path: Path) -> bool:
    """Tell whether a file may be a log, by its name."""
    name = path.name.lower()
    # the ending in front of the packing's says what the file is
    for ending in PACKED_ENDINGS:
        name = name.removesuffix(ending)

    # an archive may hold logs, whatever it is called
    is_named_so = name.endswith(LOG_ENDINGS) or path.name.lower().endswith(PACKED_ENDINGS)
    # a name that begins with a dash would be read as an option
    return is_named_so and not path.name.startswith((".", "-")) and path.is_file()


def format_file_size(path: Path) -> str:
    """Return a file's size in words."""
    size = float(path.stat().st_size)
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 1000 or unit == "GB":
            if unit in ("bytes", "kB"):
                return f"{size:.0f} {unit}"
            return f"{size:.1f} {unit}"

        size /= 1000

    raise AssertionError("a gigabyte is the last unit")
