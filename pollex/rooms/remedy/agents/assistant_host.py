"""The process in which a user's assistant answers: asked by lines of JSON, whatever its code does to its process.

It is started as `python -P -m pollex.rooms.remedy.agents.assistant_host MODULE NAME FOLDER LIVE_TOOLS`. What
the user's code prints goes to standard error; the lines of this module have streams of their own.
A process stands between pollex and the user's code, and ends as that code ends: code that ends its
parent process ends this one.
"""

import asyncio
import ctypes
import json
import os
import signal
import sys
import threading
from contextlib import suppress
from functools import partial
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

from pollex.rooms.remedy.agents.assistant import (
    Assistant,
    AssistantReply,
    NoReply,
    ReplyRequest,
    build_assistant,
)
from pollex.text import JsonDict, replace_surrogates

MAX_REPLY_CHARACTERS = 1_000_000
"""Characters of a reply and its calls: no assistant writes more to a user, and all of it would be kept."""


class Outbox:
    """Where lines go; of this process alone, not of those that the user's code forks."""

    def __init__(self, file: int) -> None:
        self.file, self.process, self.lock = file, os.getpid(), threading.Lock()

    def send(self, line: JsonDict) -> None:
        """Send a line; a fork that came back from the user's code ends here."""
        if os.getpid() != self.process:
            os._exit(0)

        rest = f"{json.dumps(line)}\n".encode()
        with self.lock:
            try:
                while rest:
                    rest = rest[os.write(self.file, rest) :]
            except OSError:  # nobody listens, or the user's code has closed it
                os._exit(70)


def take_over_streams() -> tuple[int, int]:
    """Take the streams of this process for lines; the user's code reads nothing, and prints to standard error."""
    # the lines keep the old streams under new numbers
    inbox = os.dup(0)
    outbox = os.dup(1)
    # the user's code reads an empty input, and its output goes to standard error
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    # children of the user's code must not hold the lines open
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=partial(os.close, inbox))
        os.register_at_fork(after_in_child=partial(os.close, outbox))

    return inbox, outbox


def continue_in_child_process() -> None:
    """Go on in a process of its own, whose parent does nothing but end as it ends."""
    if not hasattr(os, "fork"):
        return

    # the child goes on, and ends when this process does
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        end_with_parent(parent)
        return

    # the lines are the child's alone: who reads them sees their end when it ends
    for stream in (0, 1, 2):
        os.close(stream)

    # signals are for the child: this process ends as the child ends
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)

    # the same exit code or signal as the child's, so that the reason is known
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        with suppress(OSError):  # some signals have no handler to set
            signal.signal(os.WTERMSIG(status), signal.SIG_DFL)
        os.kill(os.getpid(), os.WTERMSIG(status))

    os._exit(os.waitstatus_to_exitcode(status))


PRCTL_PARENT_DEATH_SIGNAL = 1
"""Of Linux: the signal that a process gets when its parent ends."""


def end_with_parent(parent: int) -> None:
    """Have this process end when its parent does, also once it has left the parent's group."""
    if not sys.platform.startswith("linux"):
        return
    ctypes.CDLL(None).prctl(PRCTL_PARENT_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != parent:  # it has ended meanwhile
        os._exit(0)


LANGCHAIN_TOOLS_MODULE = "langchain_core.tools.base"
"""Module of what carries out every tool of LangChain's and LangGraph's."""


class ToolRefusingImporter(MetaPathFinder):
    """Has tools refuse from their module's import on: what nobody could see in the code doesn't act, either."""

    def find_spec(self, name: str, *_where: object) -> ModuleSpec | None:
        """Return where the module of tools is, loaded with tools that refuse; nothing of others."""
        if name != LANGCHAIN_TOOLS_MODULE:
            return None

        sys.meta_path.remove(self)
        spec = find_spec(name)
        if spec is None or spec.loader is None:
            return spec

        execute = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            module.BaseTool.run = refuse_tool
            module.BaseTool.arun = refuse_tool

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def refuse_tool(tool: Any, *_given: Any, **_named: object) -> None:
    """Refuse to carry out a tool."""
    raise PermissionError(f"the tool {tool.name} is carried out with live_tools=yes alone")


def load_assistant(module: str, name: str, folder: str) -> Assistant:
    """Import what answers; the folder is searched only where the module stands in it."""
    if PathFinder.find_spec(module.partition(".")[0], [folder]) is not None:
        sys.path.insert(0, folder)

    answerer: object = import_module(module)
    for part in name.split("."):
        answerer = getattr(answerer, part)

    return build_assistant(answerer, module)


def describe_error(error: BaseException) -> str:
    """Return what an error says; its own text may fail as well."""
    try:
        return f"{type(error).__name__}: {error}"[:300]
    except BaseException:
        return type(error).__name__


async def answer_request(
    assistant: Assistant,
    line: JsonDict,
    folder: str,
    outbox: Outbox,
) -> None:
    """Answer one request; whatever the user's code raises is the outcome of this reply."""
    # told before it begins: a process that ends now ended under this reply
    outbox.send({"id": line["id"], "begun": True})
    try:
        os.chdir(folder)  # an earlier reply may have gone elsewhere
        sent = encode_reply(await assistant.reply(ReplyRequest(**line["request"])))
    # SystemExit and interrupts of the user's code, too, belong to this reply
    except BaseException as error:
        sent = {"kind": "error", "detail": describe_error(error)}

    outbox.send({"id": line["id"], "found": sent})


def encode_reply(reply: AssistantReply | NoReply) -> dict[str, object]:
    """Return a reply as JSON values; one that is too long is none."""
    if isinstance(reply, NoReply):
        return {"kind": reply.kind, "detail": reply.detail[:300]}

    # arguments count, too: they are sent through the same line
    size = len(reply.text) + sum(len(call.arguments) for call in reply.calls)
    if size > MAX_REPLY_CHARACTERS:
        return {
            "kind": "error",
            "detail": f"{size:,} characters: more than {MAX_REPLY_CHARACTERS:,} are no reply",
        }

    # only JSON values pass between the processes
    calls = []
    for call in reply.calls:
        calls.append(
            {
                "name": call.name,
                "arguments": call.arguments,
                "id": call.id,
            }
        )

    return dict(
        replace_surrogates(
            {
                "text": reply.text,
                "calls": calls,
                "cost": reply.cost,
                "seconds": reply.seconds,
            }
        )
    )


def main() -> None:
    """Load the assistant, say what it is, and answer until nobody asks."""
    module, name, folder, live_tools = sys.argv[1:]
    # the user's code is imported in the child, after the streams are safe
    continue_in_child_process()
    inbox, file = take_over_streams()
    outbox = Outbox(file)
    if live_tools == "no":
        sys.meta_path.insert(0, ToolRefusingImporter())
    try:
        assistant = load_assistant(module, name, folder)
        outbox.send({"ready": assistant.name, "acts": list(getattr(assistant, "acts", ()))})
    # the reason why it can't be imported, as a line like any other
    except BaseException as error:
        outbox.send({"failed": describe_error(error)})
        os._exit(1)

    # replies run side by side in one loop
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    tasks = set[asyncio.Task[None]]()

    # a task needs a reference, or it may be dropped while it runs
    def begin(line: JsonDict) -> None:
        task = loop.create_task(answer_request(assistant, line, folder, outbox))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    # lines are read in a thread, so that code that blocks the loop doesn't stop the reading
    def read() -> None:
        with os.fdopen(inbox, "rb") as lines:
            for line in lines:
                loop.call_soon_threadsafe(begin, json.loads(line))
        os._exit(0)  # who asked has gone, and the user's code may never end

    threading.Thread(target=read, daemon=True).start()
    # the loop goes on whatever a task raises, exits included
    while True:
        try:
            loop.run_forever()
        except BaseException:  # noqa: S112 - of a task of the user's, whose reply was told so: others go on
            continue


if __name__ == "__main__":
    sys.path[:] = [place for place in sys.path if place not in ("", str(Path.cwd()))]
    main()
