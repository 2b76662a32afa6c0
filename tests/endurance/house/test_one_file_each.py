"""What CONTRIBUTING says of adding things, done in a copy of the project: one file each, or one row of a table."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from rooms import ROOT

VERB = '''
"""How long files are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pollex.services.results import Result
from pollex.usecases.use_case import Crew, UseCase, opt, use_case


@dataclass(frozen=True)
class Length(Result):
    """A number of lines."""

    lines: int
    json_fields = ("lines",)

    def told(self) -> Iterator[str]:
        """Yield the number."""
        yield f"{self.lines} lines"


@use_case("length")
class TellLength(UseCase[Length]):
    """Tell how many lines a file has."""

    source: Path = opt(kw_only=False, place="argument", metavar="FILE")
    half: bool = opt("Count half of them.", default=False)

    def carry_out(self, crew: Crew) -> Length:
        """Count."""
        return Length(len(Path(self.source).read_text().splitlines()) // (2 if self.half else 1))
'''
POLICY = '''
"""The last rubrics first."""

import numpy as np

from pollex.selection.pool import ranked


def choose(pool, alpha, rng):
    """Choose by place."""
    return ranked(pool, np.arange(pool.evals[0].shape[0], dtype=float))
'''
CALIBRATOR = '''
"""Every answer is as likely as any other."""

import numpy as np

from pollex.calibration.estimator import JudgedEstimator, State


class Uniform(JudgedEstimator):
    """Knows nothing."""

    title = "knows nothing"

    def _learn(self, X, y, groups):
        pass

    def _distribution(self, X, judges, question):
        return np.full(X.shape, 1 / X.shape[1])

    def _state(self):
        return State({}, {})

    def _restore(self, state):
        pass
'''
PAGE = '''
"""A page that greets."""

from pollex.web.site import Site
from pollex.web.views import page


@page("/greeting")
def greeting(site: Site):
    """Greet."""
    return {"greeting": "hello"}
'''
PROMPT = """+++
purpose = "Whether a text is polite."
stage = "polite"
variables = []
blocks = []
+++

# system

Is the text polite?

# closing

Answer with yes or no.
"""
LOAD = "import sys; sys.argv[1:] = {arguments!r}; from pollex.cli.main import main; main()"
SERVED = """
from pollex.web.views import every_route
print([one.path for one in every_route()])
"""
DETECTED = """
from pollex.agents.embedded.signals import SIGNALS
print(SIGNALS["shouts"].statement)
"""
TOOL = """
[chat_pages."Acme thumbs"]
keys = ["acme_session acme_thumb"]
thumb = { conversation = "acme_session", value = "acme_thumb" }
"""
TOLD = """
import json, pathlib
pathlib.Path("rows.jsonl").write_text("".join(json.dumps({"acme_session": f"c{n}", "acme_thumb": 1}) + "\\n"
                                              for n in range(3)))
import sys
sys.argv[1:] = ["inspect", "rows.jsonl"]
from pollex.cli.main import main
main()
"""
SIGNAL = """
[user.shouts]
party = "user"
statement = "The user shouts."
pattern = '!{3}'
"""
SYSTEM = """
[DS9]
purpose = "One call writes the whole dialogue, and nobody knows why."
whole = true
retrieval = "none"
"""
TARGET = """
[acme]
version = "1.0"
netsat = "exact: Acme adds up"
file = "acme.py"
about = "pollex rubrics for Acme"
conversation = "__CONVERSATION__"
statement = "__STATEMENT__"
context = "__CONTEXT__"
"""
EXPORTED = """
from pollex.formats.peers.targets import TARGETS
print(TARGETS["acme"].netsat)
"""
HELP, LENGTH = "pollex/usecases/length.py", LOAD.format(arguments=["length", "two.txt", "--half", "--json"])
IN_PYTHON = """
import inspect, pollex
print(pollex.length("two.txt"), inspect.signature(pollex.length))
"""
FITTED = """
from pollex.calibration.models import model_named
print(model_named("uniform")().fit([[.2, .8], [.7, .3]], [0, 1]).predict_proba([[.9, .1]]))
"""
NAMED = "from pollex.selection.policies import policy_named; print(policy_named('last_first').__doc__)"
LOADED = "from pollex.prompts.prompt import load; print(load('polite').purpose)"
LISTED = "from pollex.prompts.simulate.systems import systems; print(*systems())"
ADDED = {
    "a verb": (HELP, VERB, LENGTH, '{"lines": 1}'),
    "a verb in the help": (HELP, VERB, LOAD.format(arguments=["--help"]), "Tell how many lines a file has"),
    "a verb as a function": (HELP, VERB, IN_PYTHON, "Length(lines=2) (source: 'Path', *, half: 'bool' = False)"),
    "a policy": ("selection/policies/last_first.py", POLICY, NAMED, "Choose by place."),
    "a calibrator": ("calibration/models/uniform.py", CALIBRATOR, FITTED, "[[0.5 0.5]]"),
    "a prompt": ("prompts/polite.md", PROMPT, LOADED, "Whether a text is polite."),
    "a page": ("pollex/web/pages/greeting.py", PAGE, SERVED, "/greeting"),
    "a tool's export": ("pollex/formats/log_shapes/tools.toml", TOOL, TOLD, "the files have scores and no words"),
    "a detector": ("pollex/agents/embedded/signals.toml", SIGNAL, DETECTED, "The user shouts."),
    "a dialogue system": ("prompts/simulate/systems.toml", SYSTEM, LISTED, "DS9"),
    "a target of exports": ("pollex/formats/peers/targets.toml", TARGET, EXPORTED, "exact: Acme adds up"),
}
"""By what is added: its file (appended to where it is there), what stands in it, a program, and what that prints."""


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy the project's source."""
    copy = tmp_path_factory.mktemp("copy")
    for room in ("pollex", "graphs", "prompts", "selection", "calibration", "examples"):
        shutil.copytree(ROOT / room, copy / room, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    (copy / "two.txt").write_text("one\ntwo\n")
    return copy


def printed(checkout: Path, program: str) -> str:
    """Run a program on the copy."""
    env = os.environ | {"PYTHONPATH": str(checkout), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=checkout, env=env, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


@pytest.mark.parametrize("what", ADDED)
def test_adding_is_one_file(checkout: Path, what: str) -> None:
    name, text, program, expected = ADDED[what]
    file = checkout / name
    before = file.read_text() if file.exists() else ""
    assert expected not in printed(checkout, program)
    file.write_text((before + text).lstrip())
    try:
        assert expected in printed(checkout, program)
    finally:
        file.write_text(before) if before else file.unlink()
