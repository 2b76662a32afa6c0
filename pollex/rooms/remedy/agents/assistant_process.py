"""An assistant of the user's in a process of its own: whatever its code does is the outcome of one reply."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections import deque
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from pollex.conversations.conversation import ToolCall
from pollex.errors import WrongUse
from pollex.rooms.remedy.agents.assistant import AssistantReply, NoReply, ReplyRequest
from pollex.text import JsonDict, escape_controls

DEFAULT_REPLY_SECONDS = 120.0
"""That one reply may take, and that an import may."""
MAX_LINE_BYTES = 16_000_000
"""Bytes; the host sends none that is longer."""
MAX_REPLY_CHARACTERS = 1_000_000
"""Characters of a reply, its calls included; the host makes a longer one a failure."""
MAX_KEPT_ERROR_CHARACTERS = 4_000
"""Bytes of what the user's code printed last, for messages."""
MAX_HANGING_REPLIES = 3
"""Replies that hang, after which no more is asked of an assistant that never answered."""
MAX_PROCESS_STARTS = 20
GRACE_SECONDS = 1.0
"""Seconds between the end of its lines and its own."""
MODULE_HINT = (
    "give MODULE:FUNCTION of a module in this folder, or a folder for todo.jsonl and replies.jsonl"
)


NO_REPLY_OUTCOMES = ("error", "empty", "diverged", "refused", "truncated")
"""Why a function or a graph of the user's gives no reply."""
FOREIGN_STREAM_MESSAGE = (
    "its code wrote into a stream that isn't its own, and its process was ended"
)


def parse_host_message(line: bytes) -> dict[str, object]:
    """Return a line of the host.

    Raises:
        ValueError: The host writes no such line.
    """
    message = json.loads(line)
    if not isinstance(message, dict):
        raise ValueError("no object")

    # what a line has decides what it must be: of a reply, a failure, or the first one
    if "id" in message:
        is_of_host = isinstance(message["id"], int)
        is_of_host = is_of_host and ("begun" in message or is_valid_reply(message.get("found")))
    elif "failed" in message:
        is_of_host = isinstance(message["failed"], str)
    else:
        is_of_host = isinstance(message.get("ready"), str) and isinstance(message.get("acts"), list)

    if not is_of_host:
        raise ValueError("no line of the host")
    return message


def name_signal(number: int) -> str:
    """Return a signal's name; its number for one without, as real-time signals are."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)


def is_valid_reply(values: object) -> bool:
    """Tell whether values are a reply of a length that the host sends, or say why there is none."""
    if not isinstance(values, dict):
        return False
    # a reason in place of a reply, of a kind that is known
    if "kind" in values:
        return values["kind"] in NO_REPLY_OUTCOMES and isinstance(values.get("detail"), str)

    calls = values.get("calls")
    return (
        isinstance(values.get("text"), str)
        and len(values["text"]) <= MAX_REPLY_CHARACTERS
        and isinstance(calls, list)
        and all(map(is_valid_tool_call, calls))
        and all(is_valid_amount(values.get(name)) for name in ("cost", "seconds"))
    )


def is_valid_amount(value: Any) -> bool:
    """Tell whether a value is an amount of money or time, or none."""
    if value is None:
        return True
    return type(value) in (int, float) and 0 <= value < float("inf")


def is_valid_tool_call(values: object) -> bool:
    """Tell whether values are a call of a tool."""
    return (
        isinstance(values, dict)
        and values.keys() == {"name", "arguments", "id"}
        and isinstance(values["name"], str)
        and isinstance(values["arguments"], str)
        and len(values["arguments"]) <= MAX_REPLY_CHARACTERS
        and isinstance(values["id"], str | None)
    )


class HostProcessEnded(Exception):
    """The process ended before it answered.

    Attributes:
        alone: Whether it worked on nothing else: then it is this request that ended it.
        begun: Whether it had begun with this request.
    """

    def __init__(self, how: str, *, alone: bool, begun: bool) -> None:
        super().__init__(how)
        self.alone = alone
        self.begun = begun


@dataclass
class PendingRequest:
    """A request that is with the process.

    Attributes:
        started: As `begun`, at once and in every thread.
    """

    loop: asyncio.AbstractEventLoop
    begun: asyncio.Event
    found: asyncio.Future[JsonDict]
    started: bool = False


@dataclass(eq=False)
class HostProcess:
    """The process, and what it is asked.

    Attributes:
        active: When it last sent a line.
        ready: Its first line.
    """

    process: subprocess.Popen[bytes]
    waiting: dict[int, PendingRequest] = field(default_factory=dict)
    printed: deque[int] = field(default_factory=lambda: deque(maxlen=MAX_KEPT_ERROR_CHARACTERS))
    ready: SimpleQueue[dict[str, object]] = field(default_factory=SimpleQueue)
    lock: threading.Lock = field(default_factory=threading.Lock)
    reader: threading.Thread | None = None
    active: float = field(default_factory=time.monotonic)
    asked: int = 0
    gone: bool = False

    @classmethod
    def start(cls, module: str, name: str, folder: Path, live_tools: bool) -> HostProcess:
        """Start a process that imports nothing of the current folder by itself."""
        # the host's own module by name, and the user's by arguments
        command = [
            sys.executable,
            "-P",
            "-m",
            f"{__package__}.assistant_host",
            module,
            name,
            str(folder),
            "yes" if live_tools else "no",
        ]
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        # a session of its own, so that all it starts can be ended with it
        process = subprocess.Popen(command, cwd=folder, start_new_session=True, **pipes)  # type: ignore[call-overload]  # noqa: S603 - ours
        host = cls(process)
        host.reader = threading.Thread(target=host.read, daemon=True)
        # three threads: its lines, its error output, and its end
        host.reader.start()
        for work in (host.drain, host.watch):
            threading.Thread(target=work, daemon=True).start()

        return host

    def first_line(self, seconds: float) -> dict[str, object]:
        """Return what it says once the assistant is imported, or why it isn't."""
        try:
            return self.ready.get(timeout=seconds)
        except Empty:
            return {"failed": f"its import took more than {seconds:g} s"}

    def read(self) -> None:
        """Hand on its lines until it ends."""
        assert self.process.stdout is not None
        foreign = False
        # a stream that closes while it is read is no fault
        with suppress(OSError, ValueError):
            # a line over the limit comes in pieces, which are no JSON
            while line := self.process.stdout.readline(MAX_LINE_BYTES):
                # the time of the last sign of life
                self.active = time.monotonic()
                try:
                    self.take(parse_host_message(line))
                except (ValueError, RecursionError):
                    # the user's code wrote where only its host does
                    foreign = True
                    self.kill()
                    break

        # its own exit code first, then what is left of it
        self.let_end()
        self.kill()  # what it has started, too
        self.end(foreign=foreign)

    def watch(self) -> None:
        """End with the process, though something that it has started may hold its streams open."""
        if not hasattr(os, "waitid"):
            return

        with suppress(OSError):  # another thread took its exit code
            # waits without taking the exit code, which `end` takes
            os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOWAIT)

        self.kill()
        # lines that it had written are read before it is told to be gone
        if self.reader is not None:
            self.reader.join(2 * GRACE_SECONDS)

        self.end()

    def end(self, *, foreign: bool = False) -> None:
        """Take its exit code, once, and tell those who wait that it has ended."""
        # once, whoever comes first: the thread of its lines or the one of its end
        with self.lock:
            if self.gone:
                return
            self.gone = True
            self.process.wait()
            left = list(self.waiting.values())
            self.waiting.clear()

        # the reason is told to whoever waits for the start, and to each reply
        how = FOREIGN_STREAM_MESSAGE if foreign else self.ending()
        self.ready.put({"failed": how})
        # alone: only one reply had begun, so it is this one that ended the process
        begun = sum(pending.started for pending in left)
        for waiting_request in left:
            ended = HostProcessEnded(
                how,
                alone=waiting_request.started and begun == 1,
                begun=waiting_request.started,
            )
            with suppress(RuntimeError):  # its loop has ended
                waiting_request.loop.call_soon_threadsafe(
                    settle_future,
                    waiting_request.found,
                    ended,
                )

    def let_end(self) -> None:
        """Wait for a moment for it to end by itself, so that its own exit code is known."""
        # where the system can't look without taking the exit code, nothing is waited for
        if not hasattr(os, "waitid"):
            return

        until = time.monotonic() + GRACE_SECONDS
        with suppress(OSError):
            # looked at without taking the code, every 10 ms
            while time.monotonic() < until:
                if (
                    os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG)
                    is not None
                ):
                    return

                time.sleep(0.01)

    def take(self, line: JsonDict) -> None:
        """Take one line."""
        # a line without an id is about the start
        if "id" not in line:
            self.ready.put(line)
            return

        # a reply that has begun stays, one that came is taken out
        with self.lock:
            if "begun" in line:
                waiting_request = self.waiting.get(line["id"])
            else:
                waiting_request = self.waiting.pop(line["id"], None)

        # a reply that timed out has nobody who waits
        if waiting_request is not None:
            # an answer may come without the line that it has begun
            waiting_request.started = True
            done = (
                waiting_request.begun.set
                if "begun" in line
                else lambda: settle_future(waiting_request.found, line["found"])
            )
            with suppress(RuntimeError):
                waiting_request.loop.call_soon_threadsafe(done)

    def drain(self) -> None:
        """Keep the end of what the user's code prints."""
        assert self.process.stderr is not None
        with suppress(OSError, ValueError):
            while chunk := os.read(self.process.stderr.fileno(), 65536):
                self.printed.extend(chunk)

    def ending(self) -> str:
        """Say how it ended, and what it printed last."""
        code = self.process.returncode
        if code < 0:
            how = f"signal {name_signal(-code)}"
        else:
            how = f"exit code {code}"

        last = bytes(self.printed).decode("utf-8", "replace").strip().rpartition("\n")[2]
        return f"its process ended ({how})" + (f": {escape_controls(last, 200)}" if last else "")

    async def ask(self, request: ReplyRequest, seconds: float) -> JsonDict:
        """Return what it answers.

        Raises:
            Ended: It ended meanwhile.
            TimeoutError: It took too long, and was ended.
        """
        # futures belong to this loop: other threads reach them through it
        loop = asyncio.get_running_loop()
        waiting_request = PendingRequest(
            loop,
            asyncio.Event(),
            loop.create_future(),
        )
        # number and place in line are given together
        with self.lock:
            if self.gone:
                raise HostProcessEnded("its process ended", alone=False, begun=False)
            self.asked += 1
            number = self.asked
            self.waiting[number] = waiting_request

        # values that JSON has no form for are sent as their text
        line = json.dumps({"id": number, "request": asdict(request)}, default=str) + "\n"
        try:
            await asyncio.to_thread(self.write, line.encode())
            while not waiting_request.begun.is_set() and not waiting_request.found.done():
                begun = loop.create_task(waiting_request.begun.wait())
                both: list[asyncio.Future[Any]] = [waiting_request.found, begun]
                await asyncio.wait(
                    both,
                    timeout=seconds,
                    return_when=asyncio.FIRST_COMPLETED,
                )
                begun.cancel()

                if (
                    not waiting_request.begun.is_set()
                    and time.monotonic() - self.active > 2 * seconds
                ):
                    self.kill()  # it works on nothing that has a deadline, and takes nothing

            # from here on the reply has its own deadline
            return await asyncio.wait_for(waiting_request.found, seconds)
        finally:
            # timed out or given up: code that hangs can only be ended with its process
            if not waiting_request.found.done() or waiting_request.found.cancelled():
                self.kill()
            with self.lock:
                self.waiting.pop(number, None)

    def write(self, line: bytes) -> None:
        """Send it a line; that nobody takes it is seen by who reads."""
        assert self.process.stdin is not None
        with suppress(OSError, ValueError):
            self.process.stdin.write(line)
            self.process.stdin.flush()

    def kill(self) -> None:
        """End it, and what it has started."""
        if self.process.returncode is None:  # its number isn't another process's yet
            with suppress(OSError):
                if hasattr(os, "killpg"):
                    os.killpg(self.process.pid, signal.SIGKILL)
                else:
                    self.process.kill()


def settle_future(
    future: asyncio.Future[JsonDict], outcome: dict[str, object] | HostProcessEnded
) -> None:
    """Set what a request came to, where somebody still waits for it."""
    if future.done():
        return

    if isinstance(outcome, HostProcessEnded):
        future.set_exception(outcome)
    else:
        future.set_result(outcome)


class ProcessAssistant:
    """A function or graph of a module of the user's.

    Attributes:
        name: What people call it.
        acts: What in it carries out tools, or can't be seen not to.
    """

    def __init__(
        self,
        module: str,
        attribute: str,
        folder: Path,
        seconds: float = DEFAULT_REPLY_SECONDS,
        *,
        live_tools: bool = False,
    ) -> None:
        """Import it in a process of its own.

        Args:
            live_tools: Whether tools of LangChain's are carried out there.

        Raises:
            WrongUse: It can't be imported, or is neither a function nor a graph.
        """
        # absolute: the user's code may change the current folder
        self.where = (module, attribute, folder.absolute(), live_tools)
        self.seconds = seconds
        # replies that took too long, and those that came
        self.hanging = 0
        self.answered = 0
        self.starting = asyncio.Lock()
        self.apart = asyncio.Lock()
        self.host: HostProcess | None = None
        # imported at once, so that a fault is known before anything is paid
        line = self.begin()
        if "failed" in line:
            self.close()
            what = f"{f'{module}:{attribute}'!r:.60} can't be imported: {escape_controls(line['failed'], 400)}"
            raise WrongUse(what, hint=MODULE_HINT, option="assistant")

        # what acts in it decides whether it may be used without a yes
        self.name, self.acts = str(line["ready"]), [str(tool) for tool in line["acts"]]

    def begin(self) -> JsonDict:
        """Start the process; return its first line."""
        host = self.host = HostProcess.start(*self.where)
        weakref.finalize(self, host.kill)
        return host.first_line(self.seconds)

    def close(self) -> None:
        """End the process."""
        if self.host is not None:
            self.host.kill()
            self.host = None

    async def reply(self, request: ReplyRequest) -> AssistantReply | NoReply:
        """Answer once; where the process ends under several replies, each is asked again in one of its own."""
        # a process that ends before this reply began is no fault of it, so it is asked again
        for _ in range(MAX_PROCESS_STARTS):
            if self.never_answers:
                return NoReply(
                    "error",
                    f"not asked: {self.hanging} replies took more than {self.seconds:g} s each",
                )

            try:
                return self.taken(await (await self.running()).ask(request, self.seconds))
            except TimeoutError:
                return self.timed_out()
            except HostProcessEnded as ended:
                # the reply that ended the process is the one that had begun alone
                if ended.alone:
                    return NoReply("error", str(ended))
                # several had begun: which one ended it is found by asking each by itself
                if ended.begun:
                    return await self.reply_apart(request)

        return NoReply("error", "its process ended again and again, before it began")

    async def reply_apart(self, request: ReplyRequest) -> AssistantReply | NoReply:
        """Answer in a process for this reply alone."""
        # one at a time, since each needs a process
        async with self.apart:
            if self.never_answers:
                return NoReply(
                    "error",
                    f"not asked: {self.hanging} replies took more than {self.seconds:g} s each",
                )

            host = await asyncio.to_thread(HostProcess.start, *self.where)
            try:
                await asyncio.to_thread(host.first_line, self.seconds)
                return self.taken(await host.ask(request, self.seconds))
            except TimeoutError:
                return self.timed_out()
            except HostProcessEnded as ended:
                return NoReply("error", str(ended))
            # ended in any case: its memory is not needed for other replies
            finally:
                host.kill()

    @property
    def never_answers(self) -> bool:
        """Whether some replies hung, and none ever came."""
        return self.hanging >= MAX_HANGING_REPLIES and not self.answered

    async def running(self) -> HostProcess:
        """Return the process; another one where it has ended."""
        async with self.starting:
            if self.host is None or self.host.gone:
                await asyncio.to_thread(self.begin)
            assert self.host is not None
            return self.host

    def timed_out(self) -> NoReply:
        """Count a reply that hung."""
        self.hanging += 1
        return NoReply("error", f"no reply within {self.seconds:g} s")

    def taken(self, message: JsonDict) -> AssistantReply | NoReply:
        """Return what the process sent as our types."""
        # a sign that the assistant answers at all
        self.answered += 1
        if "kind" in message:
            return NoReply(message["kind"], message["detail"])

        calls = tuple(ToolCall(**call) for call in message["calls"])
        return AssistantReply(
            message["text"],
            calls,
            message["cost"],
            message["seconds"],
        )
