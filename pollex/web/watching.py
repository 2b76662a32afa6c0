"""Folders that are looked at: each new file is scored once, compared with what was there before, and told of.

What is known of files, and what was found, stands in a file of the store: a server that is started
anew goes on with it. Where another machine, or an earlier pollex, wrote that file, its folders and
its address wait until somebody has said yes to them.
"""

from __future__ import annotations

import fnmatch
import hashlib
import json
import logging
import os
import secrets
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import TimeoutError as NotYet
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Literal

from pydantic import BaseModel, Field, ValidationError

from pollex.errors import PollexError
from pollex.formats.mapping import format_name_pairs, parse_name_pairs
from pollex.services.readings import find_reading_of_columns
from pollex.store.seal import read_json_object
from pollex.store.tables import format_current_time
from pollex.text import JsonDict, escape_controls, is_unicode_path
from pollex.usecases.score import ScoreLogs
from pollex.usecases.use_case import iterate_options
from pollex.web import links
from pollex.web.alerts import Alert
from pollex.web.begun import write_set_word
from pollex.web.children import Child
from pollex.web.controls import make_option_words
from pollex.web.logs_at_hand import may_be_log
from pollex.web.output_names import find_free_path
from pollex.web.site import Site
from pollex.web.typed_endpoints import require_endpoint
from pollex.web.webhook import tell_webhook

logger = logging.getLogger("pollex.web")

WATCHED_FILE_NAME = "watched.json"
"""File of the store with all that is known of folders that are looked at."""
DEFAULT_MINUTES = 5.0
SECONDS_BETWEEN_TICKS = 2.0
"""Seconds between two looks at what is at work; folders are looked at each so many minutes."""
MAX_FILES_REMEMBERED = 2_000
"""Files that are remembered; the oldest go."""
MAX_ALERTS = 200
MAX_COMMANDS_AT_ONCE = 4
"""Commands of folders that wait at the same time: other people's commands have room beside them."""
WATCH_CONDITION = "mean(p) drops by 0.03"
MIN_CONVERSATIONS_WATCHED = 20
"""Conversations of a file below which nothing is compared."""

FileState = Literal["settling", "new", "scoring", "checking", "done", "failed"]


@dataclass(frozen=True, kw_only=True)
class WatchedFile:
    """A file that arrived in a folder.

    Attributes:
        mark: Its size and time: another file under the same name is another one.
        state: `settling` until it is the same at two looks, so that nothing is read half written.
        child: The command that works on it.
        run: The run that scored it; empty before.
        why: Why it failed, or wasn't compared.
    """

    path: str
    mark: str
    state: FileState = "settling"
    child: str = ""
    run: str = ""
    why: str = ""
    seen: str = field(default_factory=format_current_time)


@dataclass(frozen=True, kw_only=True)
class WatchedFolder:
    """A folder that is looked at.

    Attributes:
        is_from_start: Whether the server's command named it, so that no page takes it away.
    """

    path: str
    minutes: float = DEFAULT_MINUTES
    is_from_start: bool = False


class OfferedFolder(BaseModel):
    """A folder that waits for a yes."""

    path: str = Field(min_length=1, max_length=2000)
    minutes: float = Field(DEFAULT_MINUTES, ge=0.1, le=10_000)


class WatchingOffer(BaseModel):
    """What a file that this machine didn't write would have looked at and told of: it waits for a yes."""

    folders: list[OfferedFolder] = Field(default=[], max_length=100)
    webhook: str = Field("", max_length=2000)
    with_text: bool = False
    files: dict[str, WatchedFile] = {}

    @classmethod
    def of(cls, path: Path) -> WatchingOffer | None:
        """Return what a file names; None where it names nothing, or is damaged."""
        try:
            offer = cls.model_validate(read_json_object(path) or {})
        except ValidationError:
            return None

        return offer if offer.folders or offer.webhook else None

    @property
    def digest(self) -> str:
        """Hash of all that somebody says yes to."""
        content = self.model_dump_json().encode("utf-8", "surrogatepass")
        return hashlib.sha256(content).hexdigest()[:16]


@dataclass
class Watcher:
    """Looks at folders, and starts what is to be done with what arrives.

    Attributes:
        offer: What waits for a yes; None where nothing does.
        webhook: Address that is told of alerts; empty for none.
        with_text: Whether it is told the words of rubrics, too.
        secret: What its messages are signed with.
        told: What became of the last message.
        _earlier_children: Ids of the commands that an earlier server had started for files.
    """

    site: Site
    folders: dict[str, WatchedFolder] = field(default_factory=dict)
    files: dict[str, WatchedFile] = field(default_factory=dict)
    alerts: list[Alert] = field(default_factory=list)
    webhook: str = ""
    with_text: bool = False
    secret: str = field(default_factory=lambda: secrets.token_hex(32), repr=False)
    told: str = ""
    offer: WatchingOffer | None = None
    lock: Lock = field(default_factory=Lock)
    _looked: dict[str, float] = field(default_factory=dict)
    _earlier_children: frozenset[str] = frozenset()
    _stopping: Event = field(default_factory=Event)

    @classmethod
    def of(cls, site: Site) -> Watcher:
        """Return the watcher of a store, with what an earlier server knew."""
        watcher = cls(site)
        path = site.store.folder / WATCHED_FILE_NAME
        known = site.seal.read_fields(WATCHED_FILE_NAME, path)
        if known is None:
            watcher.offer = WatchingOffer.of(path)
            return watcher

        # folders of the server's command are left out: each start names them anew
        watcher.folders = {
            folder["path"]: WatchedFolder(**folder)
            for folder in known["folders"]
            if not folder["is_from_start"]
        }
        watcher.files = {key: WatchedFile(**file) for key, file in known["files"].items()}
        watcher._earlier_children = frozenset(file.child for file in watcher.files.values())
        watcher.alerts = [Alert(**alert) for alert in known["alerts"]]
        watcher.webhook = known["webhook"]
        watcher.with_text = known["with_text"]
        watcher.secret = known["secret"]
        if known["offer"]:
            watcher.offer = WatchingOffer.model_validate(known["offer"])
        return watcher

    def start(self) -> None:
        """Begin to look."""
        Thread(target=self._work, daemon=True).start()

    def close(self) -> None:
        """Look no more."""
        self._stopping.set()

    def add(self, path: Path, minutes: float, *, is_from_start: bool = False) -> None:
        """Look at a folder from now on."""
        folder = WatchedFolder(
            path=str(path),
            minutes=minutes,
            is_from_start=is_from_start,
        )
        with self.lock:
            self.folders[folder.path] = folder
            # without a last look the next tick looks at it
            self._looked.pop(folder.path, None)
            self._keep()

    def remove(self, path: str) -> None:
        """Look at a folder no more; what was scored stays, and what waits is forgotten."""
        with self.lock:
            self.folders.pop(path, None)
            for key, file in list(self.files.items()):
                if file.state in ("settling", "new") and str(Path(file.path).parent) == path:
                    del self.files[key]
            self._keep()

    def try_again(self, path: str, mark: str) -> None:
        """Score a file that failed once more, if it is still known."""
        for key, file in list(self.files.items()):
            if (file.path, file.mark, file.state) == (path, mark, "failed"):
                self._note(key, WatchedFile(path=path, mark=mark, seen=file.seen))

    def set_webhook(self, address: str, *, with_text: bool) -> None:
        """Tell an address of alerts from now on; empty for none."""
        with self.lock:
            self.webhook = address
            self.with_text = with_text
            self._keep()

    def answer_offer(self, *, is_wanted: bool) -> None:
        """Take over what waits for a yes, or drop it; where the webhook was offered, its secret is a new one.

        Raises:
            PollexError: A folder may not be read, or the address not be asked; all of it waits on.
        """
        offer = self.offer
        if offer is None:
            return

        if is_wanted:
            paths = [self.site.roots.require_path(folder.path) for folder in offer.folders]
            if offer.webhook:
                require_endpoint(self.site, offer.webhook)
            for path, folder in zip(paths, offer.folders, strict=True):
                self.add(path, folder.minutes)
            if offer.webhook:
                self.set_webhook(offer.webhook, with_text=offer.with_text)
            # what was scored already isn't scored again; all else arrives anew
            for key, file in offer.files.items():
                if file.state in ("done", "failed"):
                    self.files[key] = file

        with self.lock:
            self.offer = None
            self._keep()

    def refusal_of(self, folder: WatchedFolder) -> str:
        """Return why a folder is not looked at; empty where it is."""
        # the server's command may name any folder; pages name those below its roots
        if folder.is_from_start:
            return ""
        try:
            self.site.roots.require_path(folder.path)
        except PollexError as error:
            return str(error)
        return ""

    def mark_seen(self) -> None:
        """Note that people have seen the alerts: they no longer stand first."""
        with self.lock:
            self.alerts = [replace(alert, is_seen=True) for alert in self.alerts]
            self._keep()

    @property
    def open_alerts(self) -> list[Alert]:
        """Alerts that nobody has seen yet, the last one first."""
        return [alert for alert in reversed(self.alerts) if not alert.is_seen]

    def _work(self) -> None:
        while not self._stopping.wait(SECONDS_BETWEEN_TICKS):
            try:
                self.look()
            except Exception:  # a folder may hold anything, and the next look is another one
                logger.exception("a look at the folders failed")

    def look(self) -> None:
        """Look at the folders whose time has come, and at what is at work."""
        for folder in list(self.folders.values()):
            looked = self._looked.get(folder.path)
            if looked is None or time.monotonic() - looked >= 60 * folder.minutes:
                self._look_at(folder)

        # files move on at each tick, whatever the minutes of their folder
        for key, file in list(self.files.items()):
            if file.state in ("settling", "new", "scoring", "checking"):
                self._move_on(key, file)

    def _look_at(self, folder: WatchedFolder) -> None:
        """Note the files that have arrived."""
        self._looked[folder.path] = time.monotonic()
        if self.refusal_of(folder):
            return

        found_new = False
        for path in _iterate_logs(Path(folder.path), self.site):
            mark = _identify_file(path)
            # neither JSON nor a page can hold such a name
            if not is_unicode_path(path):
                shown = escape_controls(str(path).encode("utf-8", "backslashreplace").decode())
                why = "its name is no UTF-8 → rename it"
                failed = WatchedFile(path=shown, mark=mark, state="failed", why=why)
                if shown not in self.files:
                    self._note(shown, failed)
                    found_new = True
                continue
            # a file that was written again has another mark, and counts as a new one
            key = f"{path}\0{mark}"
            if mark and key not in self.files:
                self._note(key, WatchedFile(path=str(path), mark=mark))
                found_new = True

        if found_new:
            with self.lock:
                self._keep()

    def _move_on(self, key: str, file: WatchedFile) -> None:
        """Do with a file what comes next."""
        # settling, new, scoring, checking, done: one step at a look
        if file.state == "settling":
            self._settle(key, file)
        elif file.state == "new":
            self._score(key, file)
        else:
            self._follow_child(key, file)

    def _follow_child(self, key: str, file: WatchedFile) -> None:
        """Go on with a file that is scored or checked, once that has ended."""
        child = self.site.children.by_id.get(file.child)
        stopped = child is not None and child.state == "stopped"
        # it ended with an earlier server: what was answered is kept, and nobody pays twice
        if child is None or (stopped and child.id in self._earlier_children):
            if file.run:
                self._start_check(key, file)
            else:
                self._note(key, replace(file, state="new"))
            return

        if child.over and file.state == "scoring":
            self._scored(key, file, child)
        elif child.over:
            self._checked(key, file, child)

    def _settle(self, key: str, file: WatchedFile) -> None:
        if _identify_file(Path(file.path)) == file.mark:
            self._note(key, replace(file, state="new"))
        else:  # it grows, or is gone: another look finds it as it is then
            with self.lock:
                self.files.pop(key, None)

    def _score(self, key: str, file: WatchedFile) -> None:
        """Start to score a file, unless enough waits already."""
        named = self.site.set_at_home()
        # commands of all pages count, not those of folders alone
        waiting = [child for child in self.site.children.by_id.values() if not child.over]
        if named is None or len(waiting) >= MAX_COMMANDS_AT_ONCE:
            return

        path = Path(file.path)
        try:
            # options of reading as a log of the same columns has them; a new file for the scores
            words = ["score", file.path, f"--rubrics={write_set_word(self.site, named)}"]
            words += self._reading_words(path)
            with self.site.turn:
                out = find_free_path(self.site, f"scores-{path.stem}.parquet")
                words += [f"--out={out}", f"--store={self.site.store.folder}", "--json"]
                title = f"Score {path.name}"
                child = self.site.children.start(title, words, back=links.WATCH_PATH)
        except PollexError as error:
            # it isn't tried again: its page says why
            self._note(key, replace(file, state="failed", why=error.what))
            return

        self._note(key, replace(file, state="scoring", child=child.id))

    def _reading_words(self, path: Path) -> list[str]:
        """Return options of reading, as a log of the same columns was kept with."""
        try:
            # what takes over a minute to read is scored with the usual options
            view = self.site.reader.look([str(path)], {}).result(60)
        except NotYet:
            return []

        columns = [column["path"] for column in view["columns"]]
        like = find_reading_of_columns(self.site.store.folder, columns)
        options = {option.name: option for option in iterate_options(ScoreLogs)}
        words: list[str] = []
        for name, value in (like.options if like else {}).items():
            # options that scoring doesn't have are left out
            if name in options:
                words.extend(make_option_words(options[name], _format_option_value(value)))

        return words

    def _scored(self, key: str, file: WatchedFile, child: Child) -> None:
        """Compare what was scored with what was there before."""
        # the run's id stands in what the command printed as JSON
        run = ""
        if isinstance(child.told, dict):
            run = child.told.get("run", "")

        if child.state != "done" or not run:
            self._note(key, replace(file, state="failed", why=_tell_why_ended(child)))
            return

        self._start_check(key, replace(file, run=run))

    def _start_check(self, key: str, file: WatchedFile) -> None:
        """Start to compare a file that was scored with what was there before."""
        named = self.site.set_at_home()
        against = self._baseline(file.run)
        if named is None or not against:
            why = "nothing was scored before that it could be compared with"
            self._note(key, replace(file, state="done", why=why))
            return

        # the gate's condition is about the mean probability
        words = ["check", file.run, f"--against={against}", f"--fail-if={WATCH_CONDITION}"]
        words += [
            f"--rubrics={write_set_word(self.site, named)}",
            f"--store={self.site.store.folder}",
        ]
        try:
            name = Path(file.path).name
            checking = self.site.children.start(
                f"Check {name} against {against}",
                [*words, "--json"],
                back=links.WATCH_PATH,
            )
        except PollexError:
            return  # too much waits: the next look starts it

        self._note(key, replace(file, state="checking", child=checking.id))

    def _baseline(self, run: str) -> str:
        """Return the run that others are compared with: where the set was learned, else the first that it scored."""
        named = self.site.set_at_home()
        # the run that the set was learned from, if this store has it
        runs = {candidate.id: candidate for candidate in self.site.runs()}
        if named is not None and named.run in runs:
            return named.run

        # files keep the order in which they arrived, so that the first one stays the baseline
        first = []
        for file in self.files.values():
            if file.run in runs and file.run != run:
                first.append(file.run)

        return first[0] if first else ""

    def _checked(self, key: str, file: WatchedFile, child: Child) -> None:
        """Take up what a check came to."""
        if child.state != "done" or not isinstance(child.told, dict):
            why = f"not compared: {_tell_why_ended(child)}"
            self._note(key, replace(file, state="done", why=why))
            return

        if min(child.told["comparison"]["sizes"]) < MIN_CONVERSATIONS_WATCHED:
            why = f"too few conversations to compare: it takes {MIN_CONVERSATIONS_WATCHED}"
            self._note(key, replace(file, state="done", why=why))
            return

        alerts = list(self._alerts_of(file, child))
        with self.lock:
            self.alerts = [*self.alerts, *alerts][-MAX_ALERTS:]

        self._note(key, replace(file, state="done"))
        # outside of the lock, as the address may be slow to answer
        if alerts and self.webhook:
            self.told = tell_webhook(
                self.site,
                self.webhook,
                self.secret,
                alerts,
                with_text=self.with_text,
            )

    def _alerts_of(self, file: WatchedFile, child: Child) -> Iterator[Alert]:
        """Yield what is worse than before by more than chance."""
        comparison = child.told["comparison"]
        for rubric in comparison["rubrics"]:
            change = rubric["difference"]
            # worse: a DSAT rubric that holds more often, or a SAT rubric that holds less often
            if rubric["moved"] and (change["value"] > 0) == (rubric["polarity"] == "dsat"):
                yield self._make_alert(
                    file,
                    child,
                    rubric=rubric["id"],
                    text=rubric["text"],
                    polarity=rubric["polarity"],
                    means=(rubric["before"], rubric["after"]),
                    change=change,
                )

        # the mean probability, where the gate's condition failed
        if child.told["failed"]:
            before, after = comparison["means"]
            yield self._make_alert(
                file,
                child,
                rubric="",
                text="The mean probability of a thumb up dropped.",
                polarity="dsat",
                means=(before, after),
                change=comparison["probability"],
            )

    def _make_alert(
        self,
        file: WatchedFile,
        child: Child,
        *,
        rubric: str,
        text: str,
        polarity: str,
        means: tuple[float | None, float | None],
        change: JsonDict,
    ) -> Alert:
        """Make an alert of a file.

        Args:
            rubric: Its id; empty for the mean probability.
            means: Before, and in the file.
            change: The difference of both, with the ends of its interval.
        """
        rubric_set = self.site.set_at_home()
        return Alert(
            rubric=rubric,
            text=text,
            polarity=polarity,
            before=means[0],
            after=means[1],
            low=change["low"],
            high=change["high"],
            n=child.told["comparison"]["sizes"][1],
            file=Path(file.path).name,
            run=file.run,
            against=self._baseline(file.run),
            child=child.id,
            rubrics=rubric_set.id if rubric_set else "",
        )

    def _note(self, key: str, file: WatchedFile) -> None:
        # commands end with this server: the next one goes on with what they were doing
        if self._stopping.is_set():
            return

        with self.lock:
            self.files[key] = file
            for old in list(self.files)[: max(0, len(self.files) - MAX_FILES_REMEMBERED)]:
                del self.files[old]
            self._keep()

    def _keep(self) -> None:
        """Write down what is known, for the store's owner alone."""
        about: Mapping[str, object] = {
            "folders": [asdict(folder) for folder in self.folders.values()],
            "files": {key: asdict(file) for key, file in self.files.items()},
            "alerts": [asdict(alert) for alert in self.alerts],
            "webhook": self.webhook,
            "with_text": self.with_text,
            "secret": self.secret,
            "offer": self.offer.model_dump() if self.offer else None,
        }
        path = self.site.store.folder / WATCHED_FILE_NAME
        # written beside it and then moved there, so that the file is whole at any moment
        draft = path.with_name(f".{WATCHED_FILE_NAME}.{secrets.token_hex(4)}")
        opened = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(opened, "w", encoding="utf-8") as file:
            json.dump(self.site.seal.sign_fields(WATCHED_FILE_NAME, about), file)

        draft.replace(path)


def _tell_why_ended(child: Child) -> str:
    """Return why a command didn't come to a result."""
    if child.state == "stopped":
        return "it was stopped"
    return child.failure or "it ended early"


def _format_option_value(value: object) -> object:
    """Return a value of reading as an option takes it."""
    if isinstance(value, Mapping):
        return format_name_pairs(parse_name_pairs(value))
    if isinstance(value, list):
        return tuple(value)
    return value


def _iterate_logs(folder: Path, site: Site) -> Iterator[Path]:
    """Yield the files of a folder that may be logs; what links lead out of it is none."""
    try:
        paths = sorted(folder.iterdir())
    except OSError:
        return

    # links are resolved, as one may lead out of the folder
    inside = folder.resolve()
    store = site.store.folder.resolve()
    for path in paths:
        # what pollex itself writes there is no log
        is_ours = fnmatch.fnmatch(path.name, "scores-*.parquet") or path.resolve() == store
        if may_be_log(path) and not is_ours and inside in path.resolve().parents:
            yield path


def _identify_file(path: Path) -> str:
    """Return what tells a file from another under the same name; empty where it is gone."""
    try:
        about = path.stat()
    except OSError:
        return ""

    return f"{about.st_size} {about.st_mtime_ns}"


def get_watcher(site: Site) -> Watcher:
    """Return what looks at folders for a server."""
    if site.watcher is None:
        site.watcher = Watcher.of(site)

    watcher: Watcher = site.watcher
    return watcher
