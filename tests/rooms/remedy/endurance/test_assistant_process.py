"""A user's assistant in a process of its own: what its code does is the outcome of one reply, and of no other."""

import asyncio
import time
from pathlib import Path

import pytest

from pollex.errors import WrongUse
from pollex.rooms.remedy.agents.assistant import AssistantReply, NoReply, ReplyRequest
from pollex.rooms.remedy.agents.assistant_process import ProcessAssistant

SHOP = """
import asyncio
import ctypes
import os
import signal
import sys
import time

PLAIN = "I've booked a table."


def answer(messages, system):
    match messages[-1]["content"]:
        case "exit":
            sys.exit(3)
        case "leave":
            os._exit(0)
        case "interrupt":
            raise KeyboardInterrupt
        case "raise":
            raise BaseException("gone")
        case "chdir":
            os.chdir("/")
            return os.getcwd()
        case "where":
            return os.getcwd()
        case "large":
            return "x" * 20_000_000
        case "close":
            sys.stderr.close()
            os.close(2)
            return "closed"
        case "close all":
            os.closerange(0, 100)
            return "closed"
        case "junk":
            for file in range(3, 12):
                try:
                    os.write(file, b"5\\n")
                except OSError:
                    pass
            return "written"
        case "forged":
            for file in range(3, 12):
                try:
                    os.write(file, b'{"id": 1, "found": {}}\\n')
                except OSError:
                    pass
            return "written"
        case "print":
            print('{"id": 1, "found": {"text": "not me"}}', flush=True)
            os.write(1, b"x" * 1_000_000)
            return input_of()
        case "fork":
            if os.fork() == 0:
                return "of the fork"
            return "of the parent"
        case "crash":
            ctypes.string_at(0)
        case "deep":
            return deep()
        case "hang":
            time.sleep(60)
        case "left the group":
            os.setpgrp()
            time.sleep(60)
        case "left a child":
            if ctypes.CDLL(None).fork() == 0:
                os.setsid()
                time.sleep(60)
                os._exit(0)
            os._exit(3)
        case "stop":
            os.kill(os.getpid(), signal.SIGSTOP)
        case "parent":
            os.kill(os.getppid(), signal.SIGTERM)
            return "asked its parent to end"
        case "parent at once":
            os.kill(os.getppid(), signal.SIGKILL)
            return "ended its parent"
        case "group":
            os.killpg(0, signal.SIGTERM)
        case "none":
            return None
        case "surrogate":
            return "half \\ud83d of it"
        case "lines":
            return "a\\u2028b\\x85c\\nd"
    return PLAIN


def input_of():
    try:
        return "read " + sys.stdin.read()
    except Exception as error:
        return type(error).__name__


def deep():
    return deep()


async def waiting(messages, system):
    if messages[-1]["content"] == "leave":
        await asyncio.sleep(0.2)
        os._exit(7)
    if messages[-1]["content"] == "exit":
        sys.exit(1)
    await asyncio.sleep(0.5)
    return PLAIN
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "shop.py").write_text(SHOP, encoding="utf-8")
    (tmp_path / "json.py").write_text("import os\nos._exit(9)\n")
    return tmp_path


async def replies(assistant: ProcessAssistant, *words: str) -> list[AssistantReply | NoReply]:
    asked = [
        ReplyRequest(
            key=str(n), item="c", system="", messages=[{"role": "user", "content": one}], seed=0
        )
        for n, one in enumerate(words)
    ]
    try:
        return list(await asyncio.gather(*map(assistant.reply, asked)))
    finally:
        assistant.close()


OUTCOMES = {
    "junk": "a stream that isn't its own",
    "forged": "a stream that isn't its own",
    "exit": "SystemExit: 3",
    "leave": "its process ended (exit code 0)",
    "interrupt": "KeyboardInterrupt",
    "raise": "BaseException: gone",
    "large": "20,000,000 characters",
    "close all": "its process ended (exit code 70)",
    "crash": "its process ended (signal SIGSEGV)",
    "deep": "RecursionError",
    "group": "its process ended (signal SIGTERM)",
    "none": "no text but NoneType",
}
TEXTS = {
    "chdir": "/",
    "close": "closed",
    "print": "read ",
    "fork": "of the parent",
    "parent": "asked its parent to end",
    "surrogate": "half \ufffd of it",
    "lines": "a\u2028b\x85c\nd",
    "plain": "I've booked a table.",
}


async def test_whatever_a_function_does_is_the_outcome_of_that_reply_alone(folder: Path) -> None:
    words = [*OUTCOMES, *TEXTS]
    here = Path.cwd()
    found = dict(
        zip(words, await replies(ProcessAssistant("shop", "answer", folder), *words), strict=True)
    )
    for word, text in TEXTS.items():
        assert found[word] == AssistantReply(text), word
    for word, detail in OUTCOMES.items():
        one = found[word]
        assert isinstance(one, NoReply), word
        assert (one.kind, detail in one.detail) == ("error", True), (word, one)
    assert Path.cwd() == here


async def test_each_reply_begins_in_the_folder_of_the_user(folder: Path) -> None:
    found = await replies(ProcessAssistant("shop", "answer", folder), "chdir", "where")
    assert found == [AssistantReply("/"), AssistantReply(str(folder))]


async def test_a_reply_that_hangs_is_given_up_and_others_come(folder: Path) -> None:
    begun = time.monotonic()
    assistant = ProcessAssistant("shop", "answer", folder, seconds=4)
    found = await replies(assistant, "plain", "hang", "plain", "stop", "plain")
    assert [isinstance(one, AssistantReply) for one in found] == [True, False, True, False, True]
    assert "no reply within 4 s" in str(found[1])
    assert time.monotonic() - begun < 30


async def test_an_assistant_that_only_hangs_is_not_asked_for_ever(folder: Path) -> None:
    begun = time.monotonic()
    # The time holds for the start of each new process, too: on a busy machine that takes over a
    # second.
    found = await replies(ProcessAssistant("shop", "answer", folder, seconds=3.0), *["hang"] * 40)
    assert sum("not asked" in str(one) for one in found) == 37
    assert time.monotonic() - begun < 60


async def test_async_replies_run_at_once_and_survive_one_that_ends_the_process(
    folder: Path,
) -> None:
    begun = time.monotonic()
    found = await replies(ProcessAssistant("shop", "waiting", folder), *["plain"] * 20)
    assert set(found) == {AssistantReply("I've booked a table.")}
    assert time.monotonic() - begun < 8, "20 replies of half a second are made at once"
    found = await replies(
        ProcessAssistant("shop", "waiting", folder), "plain", "leave", "exit", "plain"
    )
    assert [isinstance(one, AssistantReply) for one in found] == [True, False, False, True]


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("import sys\nsys.exit()", "SystemExit"),
        ("import os\nos._exit(0)", "its process ended (exit code 0)"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("import ctypes\nctypes.string_at(0)", "SIGSEGV"),
        ("import time\ntime.sleep(60)", "took more than 2 s"),
        ("syntax error here", "SyntaxError"),
        ("answer = 3", "int is no assistant"),
        ("", "has no attribute 'answer'"),
    ],
)
def test_a_module_that_ends_at_import_is_said(code: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(code)
    with pytest.raises(WrongUse) as refused:
        ProcessAssistant("shop", "answer", tmp_path, seconds=2.0)
    assert told in str(refused.value)


def test_a_folder_without_the_module_is_not_imported_from(tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    for name in ("click", "numpy", "yaml", "sitecustomize"):
        (tmp_path / f"{name}.py").write_text(f"open({str(canary)!r}, 'w').close()\n")
    with pytest.raises(WrongUse, match="No module named 'elsewhere'"):
        ProcessAssistant("elsewhere", "answer", tmp_path)
    assert not canary.exists()


async def test_nothing_is_left_running(folder: Path) -> None:
    assistant = ProcessAssistant("shop", "answer", folder)
    host = assistant.host
    assert host is not None
    await replies(assistant, "plain", "fork")
    assert host.process.wait(10) == -9


@pytest.mark.parametrize("word", ["left the group", "left a child"])
def test_what_leaves_its_group_or_holds_its_streams_keeps_no_later_reply(
    word: str, folder: Path
) -> None:
    assistant = ProcessAssistant("shop", "answer", folder, seconds=4)
    began = time.monotonic()
    outcomes = asyncio.run(replies(assistant, word, word, "plain"))
    assert [isinstance(outcome, NoReply) for outcome in outcomes] == [True, True, False]
    assert time.monotonic() - began < 40


def test_a_function_that_kills_its_parent_process_ends_itself_alone(folder: Path) -> None:
    assistant = ProcessAssistant("shop", "answer", folder, seconds=4)
    (outcome,) = asyncio.run(replies(assistant, "parent at once"))
    if isinstance(outcome, NoReply):  # it ends a moment before or after it answers
        assert "signal SIGKILL" in outcome.detail
