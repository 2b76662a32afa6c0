"""Scores as a folder of parts, one a unit of work.

A part is there whole or not at all, and resuming makes what is missing.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from pollex.conversations.conversation import Conversation
from pollex.conversations.logs import BadRow
from pollex.errors import BadInput, WrongUse
from pollex.formats.fields import ReadOptions
from pollex.formats.places import StoragePath
from pollex.formats.scores import open_score_file
from pollex.rooms.scale.formats.units import LogUnit
from pollex.rubrics.rubric_set import RubricSet
from pollex.rubrics.score import ScoreColumns
from pollex.runs.options import ModelOptions
from pollex.runs.run import compute_json_digest
from pollex.store.rubric_sets import compute_rubric_set_digest
from pollex.text import JsonDict

if TYPE_CHECKING:
    from pollex.gateway.calls import Capabilities

MANIFEST_FILE_NAME = "manifest.json"
LEDGER_FOLDER_NAME = "ledger"
PARQUET_MAGIC = b"PAR1"


@dataclass(frozen=True, kw_only=True)
class ScoringJob:
    """All that the work on any unit depends on; picklable.

    Attributes:
        out: Address of the folder of parts.
        model: The set's model and its limits; its key is read from the environment where the work
            is done.
        capabilities: Of the model's endpoint, which is probed once; None for sets without a model.
        salt: For the boundary around data in a model's prompts, the same for all workers.
    """

    rubrics: RubricSet
    out: str
    reading: ReadOptions
    judges: tuple[str, ...] = ()
    costs: tuple[float, float] = (1.0, 1.0)
    model: ModelOptions = field(default_factory=ModelOptions)
    capabilities: Capabilities | None = None
    salt: bytes = field(default=b"", repr=False)

    @cached_property
    def rubrics_digest(self) -> str:
        """Hash of the rubric set with all that it was fitted to."""
        return compute_rubric_set_digest(self.rubrics)

    @cached_property
    def digest(self) -> str:
        """Hash of what parts depend on beside their unit."""
        options = {
            "judges": self.judges,
            "costs": self.costs,
            "reading": asdict(self.reading),
        }
        return compute_json_digest([version("pollex"), self.rubrics_digest, options])

    def key_of(self, unit: LogUnit) -> str:
        """Return what a unit's part and ledger are named by."""
        return unit.key(self.digest)

    def part_of(self, unit: LogUnit) -> str:
        """Return the name of a unit's part."""
        return f"part-{unit.number:06}-{self.key_of(unit)}.parquet"


@dataclass(frozen=True)
class ScoredPart:
    """A part that was written, or is there already.

    Attributes:
        rows: How many scores it has.
        calls: Calls that were sent for it; 0 without a model.
        probabilities: How many scores have one.
        total: Their sum; None in parts of before, which didn't keep it.
        squares: Sum of their squares.
        decided_good: Scores that are decided to be good.
    """

    file: str
    source: str
    rows: int
    outcomes: dict[str, int]
    bad_rows: list[JsonDict]
    calls: int = 0
    probabilities: int = 0
    total: float | None = None
    squares: float = 0.0
    decided_good: int = 0


UnitOutcome = tuple[LogUnit, ScoredPart | str]
"""A unit with its part, or why it failed for good."""


@dataclass(frozen=True)
class ClusterOptions:
    """Where the work is done.

    Attributes:
        workers: None: one a core, or, with a model, one in all.
        address: Of a running cluster; None starts one on this machine.
    """

    workers: int | None = None
    address: str | None = None


def read_unit(
    unit: LogUnit, options: ReadOptions
) -> tuple[Sequence[Conversation], Sequence[BadRow]]:
    """Read a unit; bad rows are listed, however many; one without any conversation is empty, not wrong."""
    try:
        logs = unit.read(replace(options, max_bad=sys.maxsize))
    except BadInput as error:
        if not error.what.startswith("no conversations"):
            raise
        return [], [BadRow(unit.shown, 0, error.what, error.advice)]

    return logs.conversations, logs.bad_rows


def write_parquet(
    batches: Iterable[ScoreColumns],
    rubrics: RubricSet,
    judges: Sequence[str],
) -> bytes:
    """Return scores as a Parquet file, with the columns of `pollex score`."""
    with tempfile.TemporaryDirectory() as folder:
        with open_score_file(file := Path(folder) / "part.parquet", rubrics, judges) as put:
            for scores in batches:
                put(scores)
        return file.read_bytes()


def name_facts_file(name: str) -> str:
    """Name the file of facts beside a part."""
    return f".{name.removesuffix('.parquet')}.json"


def find_written_parts(job: ScoringJob, units: Sequence[LogUnit]) -> dict[int, ScoredPart]:
    """Return the parts that are there already, by the number of their unit."""
    out = StoragePath.at(job.out)
    # names of parts end in a key of the unit, the set and the options
    names = {}
    for name in out.names():
        if name.startswith("part-"):
            names[name.rpartition("-")[2]] = name

    # a unit that has changed has another key, so its old part isn't taken
    parts = {}
    for unit in units:
        part_name = names.get(f"{job.key_of(unit)}.parquet")
        part = _read_part(out, part_name) if part_name else None
        if part is not None:
            parts[unit.number] = part

    return parts


def _read_part(out: StoragePath, name: str) -> ScoredPart | None:
    """Return the facts of a part; None where they or the part itself aren't whole, so that it is made again."""
    from pydantic import TypeAdapter

    part_file = out / name
    facts_file = out / name_facts_file(name)
    for file in (part_file, facts_file):
        # a link or a pipe is nothing that pollex wrote, and might never end
        if out.local and (Path(file.path).is_symlink() or not Path(file.path).is_file()):
            return None

    try:
        size = part_file.size
        # the last bytes of every Parquet file
        if part_file.read_range(max(0, size - len(PARQUET_MAGIC)), size) != PARQUET_MAGIC:
            return None
        part = TypeAdapter(ScoredPart).validate_json(facts_file.read(), strict=True)
        TypeAdapter(list[BadRow]).validate_python(part.bad_rows)
    # pydantic's errors are ValueErrors
    except (OSError, ValueError):
        return None

    return part


def require_own_manifest(out: StoragePath) -> None:
    """Refuse a folder whose manifest is somebody else's.

    Raises:
        WrongUse: It is.
    """
    file = out / MANIFEST_FILE_NAME
    if not file.exists():
        return

    try:
        manifest = json.loads(file.read())
    except (OSError, ValueError, RecursionError):
        manifest = None

    if not isinstance(manifest, dict) or not {"pollex", "parts"} <= manifest.keys():
        raise WrongUse(
            "a file is there already that pollex did not write",
            where=file.path,
            hint="give another folder",
            option="out",
        )


def write_manifest(
    job: ScoringJob,
    parts: Sequence[ScoredPart],
    lost: Sequence[tuple[LogUnit, str]],
) -> None:
    """Write which parts belong to the result, in the order of the input, and which units failed."""
    # parts in the order of their units, whichever was done first
    about = {
        "pollex": version("pollex"),
        "rubrics": job.rubrics_digest,
        "rows": sum(part.rows for part in parts),
        "outcomes": dict(sum((Counter(part.outcomes) for part in parts), Counter())),
        "parts": [asdict(part) for part in parts],
        "lost": [{"source": unit.shown, "why": why} for unit, why in lost],
    }
    (StoragePath.at(job.out) / MANIFEST_FILE_NAME).write(
        json.dumps(about, ensure_ascii=False, indent=1).encode()
    )
