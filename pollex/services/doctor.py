"""Examine what is installed, and what works."""

from __future__ import annotations

import asyncio
import platform
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any, NamedTuple

from pollex.agents.embedded import BUILT_IN_MODEL_NAME
from pollex.agents.embedded.embedder import MODEL_WEIGHTS_SHA256, MiniLmEncoder
from pollex.errors import PollexError
from pollex.gateway.langsmith import switch_tracing
from pollex.graphs.context import Progress
from pollex.runs.options import ModelOptions, RunOptions
from pollex.services.results import Result
from pollex.store.repair import rebuild_store
from pollex.store.resume import list_stored_runs
from pollex.store.soundness import check_whole_store
from pollex.store.store import Store
from pollex.text import TerminalLines, TerminalTable, format_count

if TYPE_CHECKING:
    from pollex.gateway.calls import Capabilities


REPORTED_PACKAGES = (
    "pollex",
    "langgraph",
    "langchain-openai",
    "openai",
    "duckdb",
    "numpy",
    "scikit-learn",
    "sentence-transformers",
    "torch",
)

BUILT_IN_NOTE = "Without --model everything is built-in (no LLM): no network and no key are needed."
CAPABILITY_NAMES = {
    "json_schema": "JSON schema",
    "tools": "tool calls",
    "json_object": "JSON mode",
    "logprobs": "log-probabilities",
    "seed": "a seed",
    "temperature": "a temperature",
    "stream": "replies in pieces (streams) alone",
}


class Diagnosis(NamedTuple):
    """One thing examined; `hint` is empty where it is well."""

    what: str
    found: str
    well: bool
    hint: str = ""

    def as_json(self) -> dict[str, str | bool]:
        """Return it by the keys that doors of this program give: errors have `remedy`, too."""
        return {
            "what": self.what,
            "found": self.found,
            "well": self.well,
            "remedy": self.hint,
        }


@dataclass(frozen=True)
class ExaminationResult(Result):
    """The results of an examination.

    Attributes:
        notes: Notes on the roles and their endpoint.
        endpoint: Capabilities of the endpoint; None without a model.
    """

    json_fields = ("well", "findings", "roles", "endpoint")

    findings: tuple[Diagnosis, ...]
    notes: tuple[str, ...]
    roles: str
    endpoint: dict[str, Any] | None
    complete = True

    @property
    def well(self) -> bool:
        """Whether everything is all right."""
        return all(finding.well for finding in self.findings)

    def told(self) -> TerminalLines:
        """Yield what was examined, and what to know of the roles."""
        findings = []
        for finding in self.findings:
            findings.append(f"{finding.found} → {finding.hint}" if finding.hint else finding.found)

        rows = []
        for finding, words in zip(self.findings, findings, strict=True):
            rows.append(("ok" if finding.well else "BAD", finding.what, words))

        yield TerminalTable(("", "", "found"), rows)
        yield from self.notes


def examine_installation(
    run: RunOptions,
    model: ModelOptions,
    progress: Progress,
    *,
    rebuild: bool = False,
) -> ExaminationResult:
    """Examine the installation, the embedding weights, the store, and a model's endpoint.

    Args:
        rebuild: Make the store's database anew first; see `store.repair`.
    """
    # a rebuilt store is examined as it is then
    for done in rebuild_store(run.store) if rebuild else ():
        progress.note(f"{done[0].upper()}{done[1:]}.")

    # an examination leaves no traces elsewhere
    switch_tracing(on=False)
    endpoint = ExaminedEndpoint(model) if model.model else None
    # each is examined, whatever became of those before
    findings = [
        report_python(),
        *map(report_package, REPORTED_PACKAGES),
        run_examination("embeddings", try_embedding_model),
        run_examination("store", lambda: examine_store(run)),
        *([run_examination("model", endpoint.look)] if endpoint else []),
    ]
    if endpoint:
        notes = tuple(endpoint.notes)
    else:
        notes = (BUILT_IN_NOTE,)

    return ExaminationResult(
        tuple(findings),
        notes,
        model.model or BUILT_IN_MODEL_NAME,
        endpoint.as_dict() if endpoint else None,
    )


class ExaminedEndpoint:
    """An endpoint, asked to show what it can do.

    Attributes:
        capabilities: None until `look` has found them.
    """

    def __init__(self, options: ModelOptions) -> None:
        self.endpoint = options.endpoint()
        self.deadline = options.limits.deadline
        self.capabilities: Capabilities | None = None

    def look(self) -> str:
        """Probe the endpoint and describe its capabilities."""
        from pollex.gateway.probe import (
            probe_endpoint,  # the client behind it takes a second to import
        )

        self.capabilities = asyncio.run(probe_endpoint(self.endpoint, deadline=self.deadline))
        able = []
        for name, sentence in CAPABILITY_NAMES.items():
            if name in name_seen_capabilities(self.capabilities):
                able.append(sentence)

        window = self.capabilities.window
        size = f"; a window of {window} tokens" if window else ""
        where = f"{self.capabilities.model} at {self.endpoint.shown}"

        return f"{where} can do {', '.join(able) or 'plain text alone'}{size} ({self.capabilities.calls} calls)"

    @property
    def notes(self) -> list[str]:
        """Notes on missing capabilities, and on an unencrypted connection."""
        if self.capabilities:
            missing = self.capabilities.missing()
        else:
            missing = []

        if self.endpoint.exposed:
            exposed = ["conversations go over the network unencrypted (http)"]
        else:
            exposed = []

        return [f"Note: {note}" for note in [*missing, *exposed]]

    def as_dict(self) -> dict[str, object]:
        """JSON values."""
        capabilities = self.capabilities
        return {
            "place": self.endpoint.shown,
            "capabilities": asdict(capabilities) if capabilities else None,
            "seen": name_seen_capabilities(capabilities) if capabilities else None,
            "switched_off": capabilities.missing() if capabilities else None,
        }


def name_seen_capabilities(capabilities: Capabilities) -> list[str]:
    """Return the names of what was seen: of the ways to ask in a form, the one that is used, as no other was tried."""
    # one form only is seen: the first that works is used
    forms = {
        "json_schema": "json_schema",
        "tool": "tools",
        "json_object": "json_object",
    }
    settings = []
    for name in ("logprobs", "seed", "temperature"):
        if getattr(capabilities, name):
            settings.append(name)

    forms_accepted = []
    for form, name in forms.items():
        if form == capabilities.form:
            forms_accepted.append(name)

    return [
        *(["stream"] if capabilities.stream else []),
        *forms_accepted,
        *settings,
    ]


def report_python() -> Diagnosis:
    return Diagnosis(
        "python",
        f"{platform.python_version()} on {platform.system()} {platform.machine()}",
        True,
    )


def report_package(name: str) -> Diagnosis:
    """Report a package's version."""
    try:
        return Diagnosis(name, version(name), True)
    except PackageNotFoundError:
        return Diagnosis(name, "not installed", False, "pip install pollex")


START_SERVER_HINT = "start the server, or name its address: --base-url"


def run_examination(what: str, work: Callable[[], str]) -> Diagnosis:
    """Run a check; return its result, or its error and remedy."""
    try:
        return Diagnosis(what, work(), True)
    except PollexError as error:
        # Advice to ask the doctor helps nobody who is asking.
        if "pollex doctor" in error.advice:
            advice = "start the server, or name its address: --base-url"
        else:
            advice = error.advice

        return Diagnosis(what, error.what, False, advice)


def try_embedding_model() -> str:
    """Load the bundled model and try it."""
    # two of these sentences say the same, the third has nothing to do with them
    likeness = MiniLmEncoder().encode(
        ["The fix works.", "It works now, thanks!", "Trains leave at nine."]
    )
    near = likeness[0] @ likeness[1]
    far = likeness[0] @ likeness[2]
    tried = f"cosine of like sentences {near:.2f}, of unlike ones {far:.2f}"
    return f"all-MiniLM-L6-v2, SHA-256 {MODEL_WEIGHTS_SHA256[:12]}… verified; {tried}"


def examine_store(options: RunOptions) -> str:
    """Open the store, if there is one."""
    if not options.store.exists():
        return f"{options.store}: none yet; the first run makes it"

    # a store that can be opened may be damaged all the same
    with Store.open(options.store, read_only=True) as opened:
        check_whole_store(opened)
        return f"{options.store}: {format_count(len(list_stored_runs(opened)), 'run')}"
