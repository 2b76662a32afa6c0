"""The content of a server: a store, and named rubric sets."""

import hashlib
import time
from collections import deque
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

from pollex.errors import BadCalibrator, PollexError
from pollex.rubrics.rubric_set import RubricSet
from pollex.runs.options import MAX_UPLOAD_BYTES, ModelOptions
from pollex.services.bring import AllowedRoots
from pollex.services.named_sets import read_rubric_set
from pollex.store.columns import RUNS_FOLDER_NAME as RUNS_FOLDER
from pollex.store.resume import find_run, list_stored_runs
from pollex.store.rubric_sets import (
    StoredRubricSet,
    compute_rubric_set_digest,
    list_stored_rubric_sets,
)
from pollex.store.runs import FINISHED_STATUSES, Run, is_run_worked_on
from pollex.store.seal import Seal
from pollex.store.store import Store
from pollex.web import links
from pollex.web.children import Children
from pollex.web.faults import Forbidden, NotFound
from pollex.web.log_reader import LogReader, get_shared_reader

COMMANDS_FOLDER = "commands"
"""Folder in the store of what is known of commands that run."""
MAX_SET_BYTES = 16 << 20
MAX_RUNS_IN_MEMORY = 6
"""Runs whose columns stay in memory."""

SECONDS_UNTIL_STALE = 120.0
"""Seconds without progress after which a run counts as stalled: a built-in stage may say nothing for a minute."""

SCORING_COMMANDS = ("score", "evaluate", "label", "learn", "refit")
"""Commands whose runs have scores."""

Value = TypeVar("Value")


@dataclass(frozen=True)
class NamedSet:
    """A rubric set that pages may show.

    Attributes:
        id: Begins its digest, the one that scoring runs keep.
        name: Of its file, or the run that made it.
        run: The run that made it, if that is in the store; else empty.
    """

    id: str
    name: str
    run: str
    rubric_set: RubricSet


@dataclass
class Site:
    """A store with everything else that the server shows.

    Attributes:
        files: Rubric sets that were named at the start, by file.
        token: What visitors bring; None asks for none.
        asked_for: Names of the sets that the command named: the first of them is at home.
        read_only: Nothing can be written.
        unreadable: Why a set of a run can't be shown, by run and set.
        seen: How many items of a run's stages were done when somebody looked, lately.
        profiles: Models that pages may ask, by name, with what was found out about them since the
            start.
        at_work: Threads that ask models.
        working: What is asked now, by id; each ends with words about what went wrong, or none.
        typed: The words that each of them was asked in.
        of_rooms: What a room remembers while the server runs, by the class of it.
        children: Commands that the browser started.
        keys: Keys that were typed, by the address they are for: here alone, gone with this process.
        begun: What was asked for on a form, by id: shown again, and planned, before it starts.
        here: Folder whose logs may be chosen by whoever comes in; None for none.
        local_endpoints: Whether addresses of this machine and its network may be typed.
        roots: Places that may be named as logs.
        max_upload: Bytes that files which are brought at once may have.
        receiving: How many uploads are on their way.
        reader: Looks at logs, in a process of its own.
        watcher: Looks at folders, once `watching.get_watcher` has made it.
        turn: Held by whoever gives out or keeps labels, or names what a command writes: no
            conversation and no name is given out once too often.
    """

    store: Store
    files: dict[str, RubricSet]
    token: str | None = None
    read_only: bool = False
    asked_for: Collection[str] = ()
    started: float = field(default_factory=time.monotonic)
    unreadable: dict[str, str] = field(default_factory=dict)
    turn: Lock = field(default_factory=Lock)
    seen: dict[str, deque[tuple[float, int]]] = field(default_factory=dict)
    profiles: dict[str, ModelOptions] = field(default_factory=dict)
    at_work: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(32))
    working: dict[str, Future[str]] = field(default_factory=dict)
    typed: dict[str, str] = field(default_factory=dict)
    of_rooms: dict[type, Any] = field(default_factory=dict)
    children: Children = field(default_factory=Children)
    keys: dict[str, str] = field(default_factory=dict, repr=False)
    begun: dict[str, Any] = field(default_factory=dict)
    here: Path | None = None
    local_endpoints: bool = False
    roots: AllowedRoots = field(default_factory=AllowedRoots)
    max_upload: int = MAX_UPLOAD_BYTES
    receiving: int = 0
    reader: LogReader = field(default_factory=get_shared_reader)
    watcher: Any = field(default=None, repr=False)
    _sets: dict[str, NamedSet] = field(default_factory=dict)
    _made: dict[Any, Any] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def __post_init__(self) -> None:
        # commands are kept in the store, so that a later server finds them
        if self.children.place is None:
            self.children.place = self.store.folder / COMMANDS_FOLDER

    @property
    def id(self) -> str:
        """Names store and token in cookies and pages; tells nothing of either."""
        return hashlib.sha256(f"{self.store.folder.resolve()}\0{self.token}".encode()).hexdigest()[
            :12
        ]

    @cached_property
    def seal(self) -> Seal:
        """What this machine signs with what it writes into the store."""
        return Seal.of(self.store.folder)

    def memory_of(self, kind: type[Value]) -> Value:
        """Return what a room remembers while the server runs, an object of a class of its own."""
        with self._lock:
            memory: Value = self.of_rooms.setdefault(kind, kind())
            return memory

    def runs(self) -> list[Run]:
        """Return all runs, the last one first."""
        return list(reversed(list_stored_runs(self.store)))

    def run(self, name: str) -> Run:
        """Return a run by its id; `last` is the last one.

        Raises:
            NotFound: There is none.
        """
        try:
            return find_run(self.store, name)
        except PollexError as error:
            raise NotFound(error.what, hint="the list of runs has those there are") from None

    def status(self, run: Run) -> str:
        """Return a run's state: `running`, also where this server carries it on, `stalled`, `killed`, or as stored."""
        if run.status in FINISHED_STATUSES:
            return run.status
        # nobody works on it, unless a command of this server goes on with it
        if run.status != "unfinished" or not is_run_worked_on(
            self.store.folder / RUNS_FOLDER, run.id
        ):
            child = self.children.last_of(links.link_to_run(run.id))
            stopped = "killed" if run.status == "unfinished" else run.status
            if child and not child.over:
                return "running"
            return stopped

        # its process lives: it runs, or has said nothing for too long
        beat = self.store.value("SELECT beat FROM progress WHERE run = ?", [run.id])
        if beat and count_seconds_since(beat) > SECONDS_UNTIL_STALE:
            return "stalled"
        return "running"

    def sets(self) -> dict[str, NamedSet]:
        """Return all rubric sets by id, of files and runs; the last first."""
        # a run's set is read once; one that can't be read isn't tried again
        keys_kept = {}
        for kept_set in list_stored_rubric_sets(self.store):
            keys_kept[f"{kept_set.run}/{kept_set.digest}"] = kept_set

        for key, place in keys_kept.items():
            if key not in self._sets and key not in self.unreadable:
                self._read_set(key, place)

        # sets from files, under the names of these
        for name, rubric_set in self.files.items():
            self._sets.setdefault(name, _make_named_set(rubric_set, name))

        sets_found = []
        for key in keys_kept:
            if key in self._sets:
                sets_found.append(self._sets[key])

        named = [self._sets[name] for name in self.files]
        by_id = {named.id: named for named in sets_found}
        # a file's name says more than its run's, and the store has arrays that its folder may lack
        for named_set in named:
            same = by_id.get(named_set.id)
            whole = (
                same.rubric_set
                if same and not named_set.rubric_set.has_arrays
                else named_set.rubric_set
            )
            by_id[named_set.id] = replace(named_set, rubric_set=whole)

        return dict(
            sorted(
                by_id.items(),
                key=lambda pair: pair[1].rubric_set.created,
                reverse=True,
            )
        )

    def _read_set(self, key: str, kept_set: StoredRubricSet) -> None:
        try:
            self._sets[key] = _make_named_set(kept_set.read(self.store), f"of {kept_set.run}")
        except PollexError as error:  # one of another version hides no other
            self.unreadable[key] = str(error)

    def set_at_home(self) -> NamedSet | None:
        """Return the set that was named at the start, else the last one; None where there is none."""
        sets = list(self.sets().values())
        sets_asked = []
        for named in sets:
            if named.name in self.asked_for:
                sets_asked.append(named)

        return next(iter((*sets_asked, *sets)), None)

    def set(self, set_id: str) -> NamedSet:
        """Return a rubric set by its id.

        Raises:
            NotFound: There is none.
        """
        if (named := self.sets().get(set_id)) is None:
            raise NotFound(
                f"there is no rubric set {set_id!r}",
                hint="the list of rubric sets has those there are",
            )

        return named

    def set_of(self, run: Run) -> NamedSet | None:
        """Return the rubric set that a run made or used; None if unknown."""
        sets = self.sets()
        rubrics_digest = run.fingerprint.get("rubrics", "")
        for rubric_set in sets.values():
            if rubric_set.id == rubrics_digest or rubric_set.run == run.id:
                return rubric_set
        return None

    def kept(self, key: tuple[str, ...], make: Callable[[], Value]) -> Value:
        """Return a cached value, or make it; each kind keeps its last ones."""
        with self._lock:
            if key in self._made:
                # moved to the end: what was used lately is dropped last
                self._made[key] = self._made.pop(key)
                cached: Value = self._made[key]
                return cached

        # made outside of the lock, so that nobody waits for somebody else's value
        value = make()
        with self._lock:
            self._made[key] = value
            # the oldest of its own kind go, and none of another kind
            alike = []
            for cached_key in self._made:
                if cached_key[0] == key[0]:
                    alike.append(cached_key)

            for old in alike[: max(0, len(alike) - MAX_RUNS_IN_MEMORY)]:
                del self._made[old]

        return value

    def once(self, kind: str, run: Run, make: Callable[[], Value]) -> Value:
        """Make what a run came to: once where it has ended, else each time."""
        if run.finished is None:
            return make()
        return self.kept((kind, run.id, run.finished), make)

    def require_writing(self) -> None:
        """Raise Forbidden on a server that was started to be read only."""
        if self.read_only:
            raise Forbidden(
                "this server only shows",
                hint="start it without read_only to write",
            )


def _make_named_set(rubric_set: RubricSet, name: str) -> NamedSet:
    return NamedSet(compute_rubric_set_digest(rubric_set), name, rubric_set.run, rubric_set)


def read_or_make_token(folder: Path) -> str:
    """Return the token of a store: the same at each start on this machine, and none that the store brings along."""
    return Seal.of(folder).sign("token", "")


def read_sets_beside(folder: Path) -> dict[str, RubricSet]:
    """Read the rubric sets next to a store; other files are skipped."""
    names = {}
    for path in sorted(folder.absolute().parent.glob("*.json")):
        # anything may lie there: files that are too large for a set aren't read
        if path.is_file() and path.stat().st_size <= MAX_SET_BYTES:
            try:
                names[path.name] = load_set(path, folder)
            except PollexError:
                continue

    return names


def read_sets(paths: Sequence[Path], store: Path) -> dict[str, RubricSet]:
    """Read rubric sets that were named; two files of one name keep their folders. Raises as `RubricSet.load` does."""
    names = [path.name for path in paths]
    sets: dict[str, RubricSet] = {}
    for path in paths:
        sets[path.name if names.count(path.name) == 1 else str(path)] = load_set(path, store)

    return sets


def load_set(path: Path, store: Path) -> RubricSet:
    """Read a rubric set; where its calibrator's arrays are missing, it can still be looked at."""
    try:
        return read_rubric_set(path, store)
    except BadCalibrator:
        return read_rubric_set(path, store, arrays=False)


def count_seconds_since(time_: str) -> float:
    """Return how many seconds ago an ISO time was."""
    return (datetime.now(UTC) - datetime.fromisoformat(time_)).total_seconds()
