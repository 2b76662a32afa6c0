"""A small log with thumbs, generated, and what tests of runs share: it is learnt from once, and embedded once.

The conversations come from a dozen templates a kind, with words drawn into them, so that no two
texts are alike and there is something to learn. Nothing is measured on them but that figures agree
with each other.
"""

import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

Row = dict[str, Any]

THINGS = [
    "invoice",
    "parcel",
    "password",
    "booking",
    "refund",
    "ticket",
    "router",
    "menu",
    "visa form",
    "playlist",
]
PLACES = ["Lima", "Oslo", "Accra", "Hanoi", "Turin", "Quito", "Malmö", "Perth"]
DAYS = ["Monday", "Tuesday", "Friday", "Sunday", "tomorrow", "next week"]

GOOD = [
    [
        "My {thing} for {place} is missing.",
        "I found it and sent it again to {place}.",
        "It is here now, thanks a lot!",
    ],
    [
        "How do I change the {thing}?",
        "Open settings, choose {thing}, press edit.",
        "That worked, great.",
    ],
    ["Is the office in {place} open on {day}?", "Yes, from nine to five on {day}."],
    [
        "The {thing} shows a wrong date.",
        "Which date do you need?",
        "{day}.",
        "Done: it says {day} now.",
        "Perfect.",
    ],
    [
        "Move my {thing} to {day}, please.",
        "It is moved to {day}; you get a mail.",
        "Thank you, that was quick.",
    ],
    [
        "Can you explain the fee on my {thing}?",
        "It covers the transfer from {place}.",
        "I see, that makes sense.",
    ],
]
BAD = [
    [
        "My {thing} for {place} is missing.",
        "I am sorry, I can't help with that.",
        "That is useless.",
    ],
    [
        "How do I change the {thing}?",
        "Please rephrase.",
        "I want to change the {thing}!",
        "Please rephrase.",
    ],
    ["Is the office in {place} open on {day}?", "Offices are places where people work."],
    [
        "The {thing} shows a wrong date.",
        "Try again later.",
        "I did, twice. It is still wrong.",
        "Try again later.",
    ],
    [
        "Move my {thing} to {day}.",
        "I moved it to {place}.",
        "No, to {day}, not {place}. You misunderstood.",
    ],
    [
        "Can you explain the fee on my {thing}?",
        "Fees are explained on our page.",
        "Which page? That doesn't answer it.",
    ],
]


def small_log(each: int = 24, seed: int = 0) -> list[Row]:
    """So many thumbs up and as many down, in turn; rows as a `messages` log has them."""
    rng = random.Random(seed)
    rows: list[Row] = []
    seen: set[str] = set()
    while len(rows) < 2 * each:
        good = len(rows) % 2 == 0
        template = rng.choice(GOOD if good else BAD)
        words = {"thing": rng.choice(THINGS), "place": rng.choice(PLACES), "day": rng.choice(DAYS)}
        turns = [turn.format(**words) for turn in template]
        if (text := " ".join(turns)) not in seen:
            seen.add(text)
            rows.append(row(f"c{len(rows):03}", turns, thumbs="up" if good else "down"))
    return rows


def row(id_: Any, turns: Sequence[str], **fields: Any) -> Row:
    """A conversation in which user and assistant take turns."""
    roles = ("user", "assistant")
    return {
        "id": id_,
        **fields,
        "messages": [{"role": roles[n % 2], "content": t} for n, t in enumerate(turns)],
    }


def write_log(path: Path, rows: Iterable[Row]) -> Path:
    """The rows as JSON lines."""
    path.write_text("".join(json.dumps(one) + "\n" for one in rows), encoding="utf-8")
    return path


def read_rows(path: Path) -> list[Row]:
    """The rows of JSON lines, whatever line breaks a text holds."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]


class Ended(NamedTuple):
    """What a command came to."""

    code: int
    out: str
    err: str

    @property
    def last(self) -> dict[str, Any]:
        """The last line of standard output, which is one JSON object."""
        found = json.loads(self.out.splitlines()[-1])
        assert isinstance(found, dict)
        return found

    @property
    def said(self) -> str:
        """All that people can read."""
        return self.out + self.err


def command(*arguments: object) -> list[str]:
    """The command line of a process of its own."""
    code = "from pollex.cli.main import main; main()"
    return [sys.executable, "-c", code, *map(str, arguments)]


def run_apart(*arguments: object, cwd: Path, stdin: str = "", **environment: str) -> Ended:
    """A command in a process of its own."""
    ended = subprocess.run(
        command(*arguments),
        cwd=cwd,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=100,
        env={**os.environ, **environment},
    )
    return Ended(ended.returncode, ended.stdout, ended.stderr)


def with_embeddings(store: Path, embeddings: Path) -> Path:
    """A store's folder with all of the small log embedded already."""
    shutil.copytree(embeddings, store / "embeddings")
    return store


def same_but_for_time(rubrics: Path) -> dict[str, Any]:
    """A rubric set without the two fields that say when and in which run it was made."""
    found = json.loads(rubrics.read_text(encoding="utf-8"))
    assert found.pop("created")
    assert found.pop("run")
    return dict(found)
