"""Figures of README and docs: made by benchmarks, kept in `docs/figures/`, and quoted by pages between two marks.

    python docs/figures.py                        # fills the pages from docs/figures/*.json
    python docs/figures.py --make                 # makes the files anew first: those that need no
    data
    python docs/figures.py --make --data FOLDER   # all of them; FOLDER holds the logs that aren't
    in this repository
    python docs/figures.py --make --only gate     # one of them
    python docs/figures.py --age                  # how many changes of the code are newer than each
    file

`docs/figures/commands.toml` has the command of each file. A page quotes a text of it so:

    <!-- figures of gate: table --> … <!-- end of figures -->
"""

import argparse
import json
import re
import shlex
import subprocess
import sys
import tomllib
from datetime import date
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
FIGURES = ROOT / "docs" / "figures"
COMMANDS: dict[str, dict[str, Any]] = tomllib.loads((FIGURES / "commands.toml").read_text("utf-8"))
QUOTED = re.compile(
    r"(<!-- figures of ([\w-]+): ([\w-]+) -->\n?)(.*?)(\n?<!-- end of figures -->)", re.DOTALL
)
DATA = "DATA"
MEASURED = ("pollex", "graphs", "selection", "calibration", "prompts")
"""The code that figures are of."""


def pages() -> list[Path]:
    """Return the pages that may quote figures."""
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def file_of(name: str) -> dict[str, Any]:
    """Return what a file of figures holds."""
    content: dict[str, Any] = json.loads((FIGURES / f"{name}.json").read_text("utf-8"))
    return content


def filled(page: str) -> str:
    """Return a page with the texts of the files between its marks."""
    return QUOTED.sub(lambda mark: mark[1] + quoted(mark[2], mark[3]) + mark[5], page)


def quoted(name: str, text: str) -> str:
    """Return a text of a file; where its command didn't make it, the page says when it was measured, and that."""
    content = file_of(name)
    if "from" not in content:
        return str(content["texts"][text])
    day = f"{date.fromisoformat(content['date']):%-d %B %Y}"
    return f"{content['texts'][text]}\n\n*Of {day}: {content['from']}.*"


def make(name: str, data: Path | None) -> bool:
    """Make a file anew, and return whether that went well.

    One that needs data stays as it is where no data are given, and so does one whose benchmark
    fails.
    """
    arguments = COMMANDS[name]["arguments"]
    if DATA in arguments and data is None:
        sys.stdout.write(f"{name}: stays as it is, since it needs data: --data FOLDER\n")
        return True
    path = FIGURES / f"{name}.json"
    draft = path.with_suffix(".draft.json")
    words = shlex.split(arguments.replace(DATA, str(data.resolve()) if data else ""))
    command = [sys.executable, COMMANDS[name]["program"], *words, "--json", str(draft)]
    ended = subprocess.run(command, cwd=ROOT, check=False)  # noqa: S603 - ours
    if not draft.exists():
        sys.stdout.write(f"{name}: FAILED: the benchmark wrote no figures, and the old ones stay\n")
        return False

    # No page names a folder of the machine that measured.
    content = draft.read_text("utf-8")
    if data:
        content = content.replace(str(data.resolve()), DATA)
    content = content.replace(str(draft.relative_to(ROOT)), str(path.relative_to(ROOT)))
    path.write_text(content, "utf-8")
    draft.unlink()
    sys.stdout.write(
        f"{name}: {'made' if ended.returncode == 0 else 'made, and a bar is MISSED'}\n"
    )
    return ended.returncode == 0


def changes_since(name: str) -> int | None:
    """Return how many commits changed the measured code, or the benchmark, after a file's commit; None if unknown."""
    commit = file_of(name)["commit"]
    paths = [*MEASURED, COMMANDS[name]["program"]]
    command = ["git", "-C", str(ROOT), "rev-list", "--count", f"{commit}..HEAD", "--", *paths]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - ours
    return int(ended.stdout) if ended.returncode == 0 else None


def ages() -> list[str]:
    """Return a line for each file, the oldest first: by which commit it was made, and what changed since."""
    known = {name: changes_since(name) for name in sorted(COMMANDS)}
    lines = []
    for name, changes in sorted(known.items(), key=lambda row: -(row[1] or 0)):
        newer = (
            "of a commit that this clone doesn't have"
            if changes is None
            else f"{changes} changes of the code since"
        )
        lines.append(f"{name:<16} {file_of(name)['commit'][:8]}  {file_of(name)['date']}  {newer}")
    return lines


def main() -> int:
    """Fill the pages, after making the files if that is asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--make", action="store_true")
    parser.add_argument("--data", type=Path, metavar="FOLDER")
    parser.add_argument(
        "--only", nargs="+", choices=sorted(COMMANDS), default=sorted(COMMANDS), metavar="NAME"
    )
    parser.add_argument("--age", action="store_true")
    asked = parser.parse_args()
    if asked.age:
        sys.stdout.write("\n".join(ages()) + "\n")
        return 0
    went_well = [make(name, asked.data) for name in asked.only] if asked.make else []
    for page in pages():
        before = page.read_text("utf-8")
        if (after := filled(before)) != before:
            page.write_text(after, "utf-8")
            sys.stdout.write(f"{page.relative_to(ROOT)}: filled\n")
    return 0 if all(went_well) else 1


if __name__ == "__main__":
    sys.exit(main())
