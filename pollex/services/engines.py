"""Engines that do units of a job side by side; each is one module with a `run`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pollex.errors import BadInput, WrongUse
from pollex.formats.units import Unit
from pollex.services.parts import Job, Part, PartWriter

Done = tuple[Unit, Part | str]
"""A unit with its part, or why it failed for good."""


@dataclass(frozen=True)
class Cluster:
    """Where the work is done.

    Attributes:
        workers: None: one a core, or, with a model, one in all.
        address: Of a running cluster; None starts one on this machine.
    """

    workers: int | None = None
    address: str | None = None


Engine = Callable[[Job, Sequence[Unit], Cluster], Iterator[Done]]


def by_ray(job: Job, units: Sequence[Unit], cluster: Cluster) -> Iterator[Done]:
    """See `ray_engine`."""
    try:
        from pollex.services.ray_engine import run  # an extra, and it takes a second to import
    except ImportError as error:
        raise WrongUse(f"the engine ray needs a package: {error.name}", remedy='pip install "pollex[ray]"') from None
    return run(job, units, cluster)


def by_one(job: Job, units: Sequence[Unit], cluster: Cluster) -> Iterator[Done]:  # noqa: ARG001 - one is enough here
    """Do the units in this process, one after the other."""
    writer = PartWriter(job)
    for unit in units:
        try:
            yield unit, writer.write(unit)
        except BadInput as error:
            yield unit, str(error)


ENGINES: Mapping[str, Engine] = {"ray": by_ray, "one": by_one}
