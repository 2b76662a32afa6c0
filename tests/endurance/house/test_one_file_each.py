"""What CONTRIBUTING says of adding things, done in a copy of the project: one file each, or one row of a table."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from rooms import ROOT

VERB = '''
"""How long files are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pollex.services.results import Result
from pollex.usecases.use_case import CallContext, UseCase, opt, use_case


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

    def carry_out(self, context: CallContext) -> Length:
        """Count."""
        return Length(len(Path(self.source).read_text().splitlines()) // (2 if self.half else 1))
'''
POLICY = '''
"""The last rubrics first."""

import numpy as np

from pollex.selection.pool import rank_by_worth


def choose(pool, alpha, rng):
    """Choose by place."""
    return rank_by_worth(pool, np.arange(pool.evals[0].shape[0], dtype=float))
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
TOOL = """
[chat_pages."Acme thumbs"]
keys = ["acme_session acme_thumb"]
thumb = { conversation = "acme_session", value = "acme_thumb" }
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
ADDED = {
    "pollex/usecases/length.py": VERB,
    "selection/policies/last_first.py": POLICY,
    "calibration/models/uniform.py": CALIBRATOR,
    "prompts/polite.md": PROMPT,
    "pollex/web/pages/greeting.py": PAGE,
    "pollex/formats/log_shapes/tools.toml": TOOL,
    "pollex/agents/embedded/signals.toml": SIGNAL,
    "pollex/rooms/study/prompts/simulate/systems.toml": SYSTEM,
    "pollex/rooms/exchange/formats/peers/targets.toml": TARGET,
}
"""What is added, by its file; it is appended to one that is there."""

LOOKS = """
import inspect, json
from pathlib import Path

import pollex
from click.testing import CliRunner
from pollex.agents.embedded.signals import SIGNALS
from pollex.calibration.models import get_model_class
from pollex.cli.main import pollex as command
from pollex.rooms.exchange.formats.peers.targets import TARGETS
from pollex.prompts.prompt import load_prompt
from pollex.rooms.study.prompts.simulate.systems import systems
from pollex.selection.policies import get_policy
from pollex.web.views import every_route

rows = [json.dumps({"acme_session": f"c{n}", "acme_thumb": 1}) for n in range(3)]
Path("rows.jsonl").write_text("\\n".join(rows))
Path("two.txt").write_text("one\\ntwo\\n")
told = lambda *words: (ended := CliRunner().invoke(command, words)).output + str(ended.exception)
for look in (
    lambda: told("length", "two.txt", "--half", "--json"),
    lambda: told("--help"),
    lambda: f"{pollex.length('two.txt')} {inspect.signature(pollex.length)}",
    lambda: get_policy("last_first").__doc__,
    lambda: get_model_class("uniform")().fit([[.2, .8], [.7, .3]], [0, 1]).predict_proba([[.9, .1]]),
    lambda: load_prompt("polite").purpose,
    lambda: [one.path for one in every_route()],
    lambda: told("inspect", "rows.jsonl"),
    lambda: SIGNALS["shouts"].statement,
    lambda: systems(),
    lambda: TARGETS["acme"].netsat,
):
    try:
        print(look())
    except Exception as error:
        print(repr(error))
"""
SEEN = (
    '{"lines": 1}',
    "Tell how many lines a file has",
    "Length(lines=2) (source: 'Path', *, half: 'bool' = False)",
    "Choose by place.",
    "[[0.5 0.5]]",
    "Whether a text is polite.",
    "/greeting",
    "the files have scores and no words",
    "The user shouts.",
    "DS9",
    "exact: Acme adds up",
)


def test_a_verb_a_policy_a_calibrator_a_prompt_a_page_or_a_row_of_a_table_is_one_file(
    tmp_path: Path,
) -> None:
    for room in ("pollex", "graphs", "prompts", "selection", "calibration", "examples"):
        shutil.copytree(
            ROOT / room,
            tmp_path / room,
            symlinks=True,
            ignore=shutil.ignore_patterns("__pycache__"),
        )

    def printed() -> str:
        env = os.environ | {"PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(
            [sys.executable, "-c", LOOKS],
            cwd=tmp_path,
            env=env,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.stdout + done.stderr

    before = printed()
    assert [words for words in SEEN if words in before] == []
    for name, text in ADDED.items():
        file = tmp_path / name
        file.write_text(((file.read_text() if file.exists() else "") + text).lstrip())
    after = printed()
    assert [words for words in SEEN if words not in after] == [], after
