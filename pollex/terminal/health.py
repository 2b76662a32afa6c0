"""What `doctor` examines."""

from __future__ import annotations

import platform
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from typing import NamedTuple

from rich.console import Console

from pollex.agents.embedded.minilm import WEIGHTS_SHA256, MiniLM
from pollex.errors import PollexError
from pollex.store.resume import runs
from pollex.store.store import Store
from pollex.terminal.options import RunOptions
from pollex.terminal.session import print_json
from pollex.terminal.show import cell, table

PACKAGES = ("pollex", "langgraph", "langchain-openai", "openai", "duckdb", "numpy", "scikit-learn", "openvino", "torch")


class Finding(NamedTuple):
    """One thing examined; `remedy` is empty where it is well."""

    what: str
    found: str
    well: bool
    remedy: str = ""


def examine(options: RunOptions) -> int:
    """Prints the findings; 1 when something is not well."""
    findings = [
        python(),
        *map(package, PACKAGES),
        examined("embeddings", embeddings),
        examined("store", lambda: store(options)),
    ]
    console = Console(stderr=options.as_json)
    made = table("", "", "found")
    for finding in findings:
        found = f"{finding.found} → {finding.remedy}" if finding.remedy else finding.found
        made.add_row("ok" if finding.well else "BAD", finding.what, cell(found))
    console.print(made)
    console.print("Without --model the embedded roles work: no LLM, no network, no key.", highlight=False)
    if options.as_json:
        print_json(
            {"well": all(f.well for f in findings), "findings": [f._asdict() for f in findings], "roles": "embedded"}
        )
    return 0 if all(finding.well for finding in findings) else 1


def python() -> Finding:
    return Finding("python", f"{platform.python_version()} on {platform.system()} {platform.machine()}", True)


def package(name: str) -> Finding:
    """A package's version."""
    try:
        return Finding(name, version(name), True)
    except PackageNotFoundError:
        return Finding(name, "not installed", False, "pip install pollex")


def examined(what: str, work: Callable[[], str]) -> Finding:
    """What a check found, or its error and remedy."""
    try:
        return Finding(what, work(), True)
    except PollexError as error:
        return Finding(what, error.what, False, error.remedy)


def embeddings() -> str:
    """Loads the bundled model and tries it."""
    likeness = MiniLM().encode(["The fix works.", "It works now, thanks!", "Trains leave at nine."])
    near, far = likeness[0] @ likeness[1], likeness[0] @ likeness[2]
    tried = f"cosine of like sentences {near:.2f}, of unlike ones {far:.2f}"
    return f"all-MiniLM-L6-v2, SHA-256 {WEIGHTS_SHA256[:12]}… verified; {tried}"


def store(options: RunOptions) -> str:
    """Opens the store, if there is one."""
    if not options.store.exists():
        return f"{options.store}: none yet; the first run makes it"
    with Store.open(options.store, read_only=True) as opened:
        return f"{options.store}: {len(runs(opened))} runs"
