"""Units done by actors of Ray: a lost worker's unit is done again elsewhere, and nothing is done twice on purpose.

Ray restarts and retries nothing here, since its own retries have no end and would pay again: one
unit is in flight an actor; when an actor dies, a new one takes its place, and the unit is given to
another, twice at most.
"""

import os
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import chdir, contextmanager, nullcontext
from dataclasses import replace
from tempfile import TemporaryDirectory
from typing import Any

# read when it is imported; nothing is sent anywhere
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")

import ray
from ray.exceptions import RayActorError, RayTaskError

from pollex.children import protect_children
from pollex.errors import BadInput, LimitReached, PollexError
from pollex.formats.places import StoragePath
from pollex.gateway.budget import Budget, Limits, write_way_on
from pollex.rooms.scale.formats.units import LogUnit
from pollex.rooms.scale.services.part_writer import PartWriter
from pollex.rooms.scale.services.parts import ClusterOptions, ScoredPart, ScoringJob, UnitOutcome

MAX_UNIT_TRIES = 3
"""Workers that a unit is given to before it counts as lost."""

LEASES_PER_LIMIT = 50
"""Leases that a limit is cut into at least."""


class BudgetActor:
    """What is left of a run's limits; the actor that all workers lease from."""

    def __init__(self, limits: Limits) -> None:
        self._left: dict[str, float | None] = {
            "max_calls": limits.max_calls,
            "max_cost": limits.max_cost,
        }

    def lease(self, limit: str, amount: float) -> float:
        """Hand out calls or money, 0 when none is left; take back what is less than 0."""
        left = self._left[limit]
        if left is None:
            share = amount
        else:
            share = min(amount, left)

        self._left[limit] = None if left is None else left - share
        return share


class LeasedBudget(Budget):
    """A worker's part of limits that hold for all workers together."""

    def __init__(self, limits: Limits, purse: Any) -> None:
        super().__init__(limits)
        self._purse = purse
        self._left = 0
        self._money = 0.0

    def take(self) -> None:
        """Count one call about to be sent; see `Budget`."""
        # calls are leased in portions, so that not every call asks the purse
        limits = self._limits
        if limits.max_calls is not None and self._left == 0:
            self._left = int(
                self._leased(
                    "max_calls",
                    max(1, limits.max_calls // LEASES_PER_LIMIT),
                )
            )

        # money, too; what a call costs is known only after it
        if limits.max_cost is not None and self.cost >= self._money:
            self._money += self._leased("max_cost", limits.max_cost / LEASES_PER_LIMIT)

        self._left -= limits.max_calls is not None
        self.calls += 1

    def _leased(self, limit: str, amount: float) -> float:
        leased: float = ray.get(self._purse.lease.remote(limit, amount))
        if leased == 0:
            reached = getattr(self._limits, limit)
            raise LimitReached(
                f"{limit} {reached} reached",
                hint=write_way_on(reached),
                option=limit,
            )

        return leased

    def end(self) -> None:
        """Give back what is left of the leases."""
        self._purse.lease.remote("max_calls", -self._left)
        self._purse.lease.remote("max_cost", min(self.cost - self._money, 0.0))
        self._left, self._money = 0, self.cost


class UnitWorker:
    """Does units in a process of its own."""

    def __init__(self, job: ScoringJob, purse: Any) -> None:
        self._budget = LeasedBudget(job.model.limits, purse)
        self._writer = PartWriter(job, self._budget)

    def write(self, unit: LogUnit) -> ScoredPart | PollexError:
        """Do a unit; return the error that a person has to see."""
        try:
            return self._writer.write(unit)
        except PollexError as error:
            return error
        finally:
            self._budget.end()


def score_on_ray(
    job: ScoringJob, units: Sequence[LogUnit], cluster: ClusterOptions
) -> Iterator[UnitOutcome]:
    """Do units on a cluster; yield each when it is done, in whichever order.

    Raises:
        LimitReached: A limit that holds for all workers is used up; what is done stays.
        ModelRefused: The model will never serve calls as they are configured.
    """
    place = StoragePath.at(job.out)
    if place.local:  # workers have another current folder
        job = replace(job, out=place.path)

    # a cluster that the caller began is left as it is
    with nullcontext() if ray.is_initialized() else _open_ray(cluster):
        yield from _WorkerPool(job, cluster).do(units)


@contextmanager
def _open_ray(cluster: ClusterOptions) -> Iterator[None]:
    """Begin Ray, or join a cluster, and end it or leave.

    Its workers look for modules in the folder where it is begun: that is an empty one.
    """
    # a cluster that is joined has its own number of cores
    if cluster.address is None and cluster.workers:
        started = {"num_cpus": cluster.workers}
    else:
        started = {}

    with TemporaryDirectory() as empty:
        with chdir(empty), protect_children():
            ray.init(
                cluster.address,
                include_dashboard=False,
                log_to_driver=False,
                logging_level="error",
                **started,
            )

        try:
            yield
        finally:
            ray.shutdown()


class _WorkerPool:
    def __init__(self, job: ScoringJob, cluster: ClusterOptions) -> None:
        by_model = job.capabilities is not None
        cores = int(ray.cluster_resources().get("CPU", 1))
        # with a model one worker is enough: it waits for replies most of the time
        self._size = cluster.workers or (1 if by_model else cores)

        if by_model:  # the limit holds for all of them
            job = replace(
                job,
                model=replace(job.model, limits=job.model.limits.shared(self._size)),
            )

        # job and purse are shared, not sent with every unit
        self._job = ray.put(job)
        self._purse = ray.remote(BudgetActor).options(num_cpus=0).remote(job.model.limits)
        # no restarts by Ray: what is paid twice is decided here
        self._made = ray.remote(UnitWorker).options(
            num_cpus=1,
            max_restarts=0,
            max_task_retries=0,
        )
        self._flights: dict[Any, tuple[LogUnit, Any, int]] = {}

    def do(self, units: Sequence[LogUnit]) -> Iterator[UnitOutcome]:
        # units with how often they were tried
        waiting = deque((unit, 1) for unit in units)
        idle = []
        for _ in range(min(self._size, len(units))):
            idle.append(self._hired())

        while waiting or self._flights:
            # one unit for each idle worker
            while waiting and idle:
                (unit, tries), worker = waiting.popleft(), idle.pop()
                self._flights[worker.write.remote(unit)] = unit, worker, tries
            for ref in ray.wait(list(self._flights), num_returns=1)[0]:
                unit, worker, tries = self._flights.pop(ref)
                try:
                    outcome = ray.get(ref)
                    idle.append(worker)
                except RayActorError as error:  # killed, or out of memory
                    # the dead worker is replaced, and its unit is given to another
                    idle.append(self._hired())
                    outcome = f"its worker died {tries} times: {error.__class__.__name__}"
                    if tries < MAX_UNIT_TRIES:
                        waiting.append((unit, tries + 1))
                        continue
                # an error of the unit itself: trying again would not help
                except RayTaskError as error:
                    idle.append(worker)
                    outcome = f"{error.cause.__class__.__name__}: {error.cause}"

                yield self._judged(unit, outcome)

    def _hired(self) -> Any:
        return self._made.remote(self._job, self._purse)

    def _judged(self, unit: LogUnit, outcome: ScoredPart | PollexError | str) -> UnitOutcome:
        """Return a unit's part or fault; raise what ends the whole run."""
        if isinstance(outcome, BadInput):
            return unit, str(outcome)
        if isinstance(outcome, PollexError):
            raise outcome
        return unit, outcome
