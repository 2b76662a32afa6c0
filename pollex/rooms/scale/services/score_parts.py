"""Score logs of any size into a folder of parts, by an engine."""

import math
import secrets
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pollex.conversations.logs import BadRow
from pollex.errors import BadInput, WrongUse
from pollex.formats.fields import ReadOptions
from pollex.formats.places import StoragePath
from pollex.graphs.context import Progress
from pollex.measures.intervals import Figure
from pollex.measures.share import estimate_share_from_probability_sums
from pollex.rooms.scale.formats.units import UNIT_BYTES, LogUnit, cut_into_units
from pollex.rooms.scale.services.part_writer import PartWriter
from pollex.rooms.scale.services.parts import (
    LEDGER_FOLDER_NAME,
    ClusterOptions,
    ScoredPart,
    ScoringJob,
    UnitOutcome,
    find_written_parts,
    require_own_manifest,
    write_manifest,
)
from pollex.rubrics.rubric_set import RubricSet
from pollex.runs.options import ModelOptions, RunOptions
from pollex.services.named_sets import get_store_folder
from pollex.services.results import (
    TabularResult,
    describe_share,
    format_outcomes,
    make_calibration_support_json,
)
from pollex.services.score import read_unedited
from pollex.store.folder import SECRET_BYTES, SECRET_FILE_NAME
from pollex.text import JsonDict, TerminalLine, TerminalLines, format_count, make_json_values

ScoringEngine = Callable[[ScoringJob, Sequence[LogUnit], ClusterOptions], Iterator[UnitOutcome]]
"""Does units of a job side by side."""


def score_units_by_ray(
    job: ScoringJob, units: Sequence[LogUnit], cluster: ClusterOptions
) -> Iterator[UnitOutcome]:
    """See `ray_engine`."""
    try:
        from pollex.rooms.scale.services.ray_engine import (
            score_on_ray,  # an extra, and it takes a second to import
        )
    except ImportError as error:
        raise WrongUse(
            f"the engine ray needs a package: {error.name}",
            hint='pip install "pollex[ray]"',
        ) from None

    return score_on_ray(job, units, cluster)


def score_units_in_process(
    job: ScoringJob,
    units: Sequence[LogUnit],
    cluster: ClusterOptions,  # noqa: ARG001 - one is enough here
) -> Iterator[UnitOutcome]:
    """Do the units in this process, one after the other."""
    writer = PartWriter(job)
    for unit in units:
        try:
            yield unit, writer.write(unit)
        except BadInput as error:
            yield unit, str(error)


SCORING_ENGINES: Mapping[str, ScoringEngine] = {
    "ray": score_units_by_ray,
    "one": score_units_in_process,
}


@dataclass(frozen=True, kw_only=True, repr=False)
class PartsResult(TabularResult):
    """The result of scoring into parts.

    Attributes:
        out: Address of the folder.
        parts: In the order of the input.
        lost: Units that failed for good, and why.
        there: How many parts were there before.
    """

    columns = ("file", "source", "rows")

    rubrics: RubricSet
    out: str
    parts: tuple[ScoredPart, ...]
    lost: tuple[tuple[LogUnit, str], ...]
    there: int

    @property
    def outcomes(self) -> dict[str, int]:
        """Number of conversations by outcome."""
        return dict(
            sum(
                (Counter(part.outcomes) for part in self.parts),
                Counter[str](),
            )
        )

    @property
    def bad_rows(self) -> list[BadRow]:
        """Rows that could not be read."""
        rows: list[BadRow] = []
        for part in self.parts:
            for row in part.bad_rows:
                rows.append(BadRow(**row))
        return rows

    @property
    def n(self) -> int:
        """Number of conversations."""
        return sum(part.rows for part in self.parts)

    @property
    def good(self) -> Figure:
        """Share of good conversations: the mean of their probabilities."""
        # parts of an earlier version have no sums
        totals = []
        for part in self.parts:
            if part.total is not None:
                totals.append(part.total)

        if len(totals) < len(self.parts):
            return Figure(None, undefined="parts of an earlier version don't tell it")

        # the share and its interval come from sums alone, without the scores
        squares = math.fsum(part.squares for part in self.parts)
        n = sum(part.probabilities for part in self.parts)
        return estimate_share_from_probability_sums(
            math.fsum(totals),
            squares,
            n,
            self.rubrics.calibration_error,
        )

    @property
    def decided_good(self) -> float | None:
        """Share that is decided to be good; None where nothing was scored, or parts of before don't tell it."""
        scored = self.outcomes.get("scored", 0)
        if not scored or self.good.value is None:
            return None
        return sum(part.decided_good for part in self.parts) / scored

    @property
    def complete(self) -> bool:
        """Whether every unit, row and conversation was scored."""
        return not self.lost and not self.bad_rows and not self.outcomes.keys() - {"scored"}

    @property
    def headline(self) -> str:
        return f"{format_outcomes(self.outcomes) or 'nothing to score'} in {format_count(len(self.parts), 'part')}"

    def records(self) -> Iterator[dict[str, object]]:
        return (
            {"file": part.file, "source": part.source, "rows": part.rows} for part in self.parts
        )

    def told(self) -> TerminalLines:
        """Yield what scoring into parts came to."""
        yield format_outcomes(self.outcomes)
        yield from describe_share(self.good, self.decided_good, self.rubrics)
        yield f"Probabilities: {self.rubrics.support}"

        # failed units are told, and tried again by the same command
        if self.lost:
            yield TerminalLine(
                f"{format_count(len(self.lost), 'unit')} failed; the same command tries them again",
                "yellow",
            )

        parts = f"{format_count(len(self.parts), 'part')}, {self.there} of them from before"
        yield f"Wrote {self.out} ({parts}; {self.rubrics.judge.name})"

    def as_json(self) -> JsonDict:
        return (
            self.of("out", "judge=rubrics.judge.name", "n", "outcomes", "good", "decided_good")
            | {
                "parts": len(self.parts),
                "there_before": self.there,
                "calls": sum(part.calls for part in self.parts),
                "lost": [{"source": unit.shown, "why": why} for unit, why in self.lost],
                "bad_rows": make_json_values(self.bad_rows),
            }
            | make_calibration_support_json(self.rubrics)
        )


def score_in_parts(
    logs: Sequence[str | Path] | str | Path,
    rubrics: Path | RubricSet,
    *,
    out: str,
    engine: str = "ray",
    workers: int | None = None,
    address: str | None = None,
    judges: Sequence[str] = (),
    costs: tuple[float, float] = (1.0, 1.0),
    unit_bytes: int = UNIT_BYTES,
    reading: ReadOptions,
    run: RunOptions | None = None,
    model: ModelOptions,
    progress: Progress,
) -> PartsResult:
    """Score logs unit by unit; parts that are there from a run before are not made again.

    Args:
        logs: Addresses and patterns on any file system that fsspec or Arrow knows.
        out: Address of the folder of parts, its manifest and, with a model, its ledger.
        engine: See `SCORING_ENGINES`.
        workers: Processes of the engine; None: as many as there are cores.
        address: Of a running cluster; None: one is started here.
        judges: Annotators whose own probabilities are wanted beside that of an unknown one.
        unit_bytes: Of JSON lines.

    Raises:
        BadInput: An address names nothing.
        LimitReached: A limit is used up; what is done stays, and the same command goes on.
        WrongUse: Nobody knows the engine or a file system, or the set's judge has to be confirmed.
    """
    if engine not in SCORING_ENGINES:
        raise WrongUse(
            f"no engine is called {engine!r}",
            hint=f"choose of {', '.join(SCORING_ENGINES)}",
            option="engine",
        )

    # labels aren't needed, so logs without them are read, too
    reading = reading.for_scores()
    job = _make_job(
        read_unedited(rubrics, get_store_folder(run)),
        out,
        reading,
        tuple(judges),
        costs,
        model,
    )
    # one address, or several
    if isinstance(logs, str | Path):
        urls = [str(logs)]
    else:
        urls = [str(conversation) for conversation in logs]

    # parts of an earlier run are taken, so only the others are done
    units = cut_into_units(urls, reading, unit_bytes)
    parts_done = find_written_parts(job, units)
    progress.note(f"{format_count(len(units), 'unit')} of work, {len(parts_done)} done before")
    progress.start("score", len(units), len(parts_done))
    there = len(parts_done)
    lost = []
    missing = []
    for unit in units:
        if unit.number not in parts_done:
            missing.append(unit)

    cluster = ClusterOptions(workers, address)
    # a unit that failed doesn't stop the others
    for unit, part in SCORING_ENGINES[engine](job, missing, cluster) if missing else ():
        if isinstance(part, ScoredPart):
            parts_done[unit.number] = part
        else:
            lost.append((unit, part))
            progress.note(f"Note: {unit.shown} could not be scored: {part}")

        progress.advance("score")

    # in the order of the logs, with parts of earlier runs among them
    parts = tuple(parts_done[number] for number in sorted(parts_done))
    write_manifest(job, parts, lost)
    return PartsResult(
        rubrics=job.rubrics,
        out=out,
        parts=parts,
        lost=tuple(lost),
        there=there,
    )


def _make_job(
    rubrics: RubricSet,
    out: str,
    reading: ReadOptions,
    judges: tuple[str, ...],
    costs: tuple[float, float],
    model: ModelOptions,
) -> ScoringJob:
    folder = StoragePath.at(out)
    folder.make_folder()
    require_own_manifest(folder)
    # drafts of a run that was killed are removed
    folder.remove_drafts()

    # without a model nothing has to be found out or kept secret
    if rubrics.judge.built_in:
        return ScoringJob(
            rubrics=rubrics,
            out=out,
            reading=reading,
            judges=judges,
            costs=costs,
        )

    # the client behind it takes a second to import
    from pollex.rooms.scale.services.units_by_model import probe_model

    # what the model can do is found out here, once for all workers
    model, capabilities = probe_model(model, rubrics)
    return ScoringJob(
        rubrics=rubrics,
        out=out,
        reading=reading,
        judges=judges,
        costs=costs,
        model=model,
        capabilities=capabilities,
        salt=_read_ledger_salt(folder / LEDGER_FOLDER_NAME),
    )


def _read_ledger_salt(ledger: StoragePath) -> bytes:
    ledger.make_folder()
    if not (secret := ledger / SECRET_FILE_NAME).exists():
        secret.write(secrets.token_bytes(SECRET_BYTES))
    return secret.read()
