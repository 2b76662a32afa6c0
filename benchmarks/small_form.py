"""What all benchmarks have in common: a small form, bars, and a file of figures that pages quote.

A benchmark hands `run` its arguments, the arguments of its small form, and a function that
measures:

    python benchmarks/NAME.py …                 # prints what it measured, as Markdown
    python benchmarks/NAME.py --quick           # the small form: ten seconds at most, on bundled or
    made data
    python benchmarks/NAME.py … --json FILE     # and writes it into a file, from which `make
    figures` fills pages

It ends with 1 where a bar is missed.
"""

import argparse
import json
import random
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).parents[1]
FEW, OTHERS = "a made log of few conversations", "another one"
"""In the arguments of a small form: logs that `run` puts in their place, see `made_log`."""
HOW_FEW = 48
THINGS = ("bell", "saddle", "pump", "helmet", "lamp", "lock", "chain", "basket", "mirror", "stand")
TURNED = 0.1
BIKES, DEBUGGING = (str(ROOT / "examples" / f"{name}.jsonl") for name in ("bikes", "debugging"))


@dataclass(frozen=True)
class Findings:
    """What a benchmark measured.

    Attributes:
        texts: Markdown for pages, by the name that the page's mark has.
        figures: The same as JSON values, in full.
        bars: What has to hold, and whether it does.
    """

    texts: dict[str, str] = field(default_factory=dict)
    figures: Any = None
    bars: dict[str, bool] = field(default_factory=dict)


Measure = Callable[[argparse.Namespace], Findings]


class Copied(StringIO):
    """Shows what is printed at once, and keeps it."""

    def __init__(self) -> None:
        super().__init__()
        self.shown = sys.stdout

    def write(self, text: str) -> int:
        """Print and keep."""
        self.shown.write(text)
        self.shown.flush()
        return super().write(text)


def arguments_of(documentation: str | None) -> argparse.ArgumentParser:
    """Begin the arguments of a benchmark: its words, and the options that all have."""
    parser = argparse.ArgumentParser(
        description=documentation, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--quick", action="store_true", help="the small form, on bundled or made data"
    )
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="write texts and figures into it, too"
    )
    return parser


def run(
    parser: argparse.ArgumentParser,
    measure: Callable[[argparse.Namespace], Findings],
    quick: Sequence[str],
) -> int:
    """Measure, print, and write the file that was asked for.

    Args:
        quick: Arguments of the small form.

    Returns:
        1 where a bar is missed.
    """
    started = list(sys.argv)  # a benchmark that carries out commands may change it
    words = started[1:]
    with TemporaryDirectory() as folder:
        if "--quick" in words:
            small = {FEW: Path(folder) / "few.jsonl", OTHERS: Path(folder) / "others.jsonl"}
            for seed, path in enumerate(small.values()):
                path.write_text(
                    "".join(json.dumps(row) + "\n" for row in made_log(HOW_FEW, seed)), "utf-8"
                )
            words += [str(small.get(word, word)) for word in quick]
        return measured(parser.parse_args(words), measure, started)


def made_log(count: int, seed: int) -> list[dict[str, Any]]:
    """Make conversations whose thumbs have a cause that can be seen; one thumb in ten is turned round."""
    rng = random.Random(seed)
    rows = []
    for number in range(count):
        thing = f"{rng.choice(THINGS)} {number}"
        served = number % 2 == 0
        asked = rng.choice(
            (f"Can you order {thing} for me?", f"I need {thing}, please.", f"Have you {thing}?")
        )
        said = [asked, f"I have ordered {thing}, it comes in two days.", "Great, thank you!"]
        if not served:
            said = [
                asked,
                "Sorry, I was unable to find that.",
                f"I said {thing}, nothing else.",
                "I can't do that.",
            ]
        roles = ("user", "assistant") * 2
        messages = [
            {"role": role, "content": text} for role, text in zip(roles, said, strict=False)
        ]
        up = served != (rng.random() < TURNED)
        rows.append(
            {"id": f"made-{seed}-{number}", "thumbs": "up" if up else "down", "messages": messages}
        )
    return rows


def measured(arguments: argparse.Namespace, measure: Measure, started: Sequence[str]) -> int:
    """Measure, print, and write."""
    begun = time.perf_counter()
    with redirect_stdout(Copied()) as copied:
        findings = measure(arguments)
    seconds = time.perf_counter() - begun
    if printed := copied.getvalue():
        findings.texts["printed"] = block(printed)

    for name, text in findings.texts.items():
        if name != "printed":
            print(text, end="\n\n")
    for bar, holds in findings.bars.items():
        print(f"{'held' if holds else 'MISSED'}: {bar}")
    if arguments.json:
        write(arguments.json, findings, seconds, started)
    return 0 if all(findings.bars.values()) else 1


def write(path: Path, findings: Findings, seconds: float, started: Sequence[str]) -> None:
    """Write a file of figures: what they are, and the commit and command that they are from."""
    program = Path(started[0]).resolve().relative_to(ROOT)
    words = [word for word in started[1:] if word not in ("--json", str(path))]
    content = {
        "command": shlex.join(["python", str(program), *words]).replace(f"{ROOT}/", ""),
        "commit": commit(),
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "seconds": round(seconds),
        "texts": findings.texts,
        "bars": findings.bars,
        "figures": findings.figures,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, ensure_ascii=False, indent=1, default=str) + "\n", "utf-8")


def commit() -> str:
    """Return the commit that is checked out, or nothing outside a clone."""
    command = ["git", "-C", str(ROOT), "rev-parse", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()  # noqa: S603


def table(head: Iterable[object], rows: Iterable[Iterable[object]]) -> str:
    """Return a Markdown table."""
    names = [str(name) for name in head]
    lines = [
        names,
        ["---"] * len(names),
        *([str(cell).replace("|", "\\|") for cell in row] for row in rows),
    ]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def block(text: str) -> str:
    """Return printed lines as a block of a page."""
    return f"```text\n{text.strip()}\n```"
