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

from pollex.selection.pool import choose_rubrics_of_most_worth


def choose(pool, alpha, rng):
    """Choose by place."""
    return choose_rubrics_of_most_worth(pool, np.arange(pool.evals[0].shape[0], dtype=float))
'''
CALIBRATOR = '''
"""Every answer is as likely as any other."""

import numpy as np

from pollex.calibration.estimator import EstimatorState, JudgedEstimator


class Uniform(JudgedEstimator):
    """Knows nothing."""

    title = "knows nothing"

    def _learn(self, X, y, groups):
        pass

    def _distribution(self, X, judges, question):
        return np.full(X.shape, 1 / X.shape[1])

    def _state(self):
        return EstimatorState({}, {})

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
from pollex.agents.embedded.signals import SIGNALS_BY_NAME
from pollex.calibration.models import get_model_class
from pollex.cli.main import pollex as command
from pollex.rooms.exchange.formats.peers.targets import EXPORT_TARGETS
from pollex.prompts.prompt import load_prompt
from pollex.rooms.study.prompts.simulate.systems import load_systems
from pollex.selection.policies import get_selection_policy
from pollex.web.views import list_every_route

rows = [json.dumps({"acme_session": f"c{n}", "acme_thumb": 1}) for n in range(3)]
Path("rows.jsonl").write_text("\\n".join(rows))
Path("two.txt").write_text("one\\ntwo\\n")
told = lambda *words: (ended := CliRunner().invoke(command, words)).output + str(ended.exception)
for look in (
    lambda: told("length", "two.txt", "--half", "--json"),
    lambda: told("--help"),
    lambda: f"{pollex.length('two.txt')} {inspect.signature(pollex.length)}",
    lambda: get_selection_policy("last_first").__doc__,
    lambda: get_model_class("uniform")().fit([[.2, .8], [.7, .3]], [0, 1]).predict_proba([[.9, .1]]),
    lambda: load_prompt("polite").purpose,
    lambda: [one.path for one in list_every_route()],
    lambda: told("inspect", "rows.jsonl"),
    lambda: SIGNALS_BY_NAME["shouts"].statement,
    lambda: load_systems(),
    lambda: EXPORT_TARGETS["acme"].netsat,
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


SOFTEN = """+++
purpose = "Softer words for rubrics."
written = 60
variables = []
blocks = []
+++

# system

The next message holds rubrics between two lines that bear the same code.

# closing

Write each in softer words.
"""
SOFTENER = '''
"""Softer words, by a model."""

from pollex.agents.llm.further import FurtherRole
from pollex.prompts.prompt import load_prompt


class LlmSoftener(FurtherRole):
    """Softens rubrics."""

    role = "softener"
    rubrics_a_call = 5

    @classmethod
    def list_prompts(cls):
        """Return the one prompt."""
        return [load_prompt("soften")]

    @classmethod
    def make_usual_call(cls, asker, rubrics):
        """Return a call about them."""
        items = [{"i": i, "rubric": rubric.text} for i, rubric in enumerate(rubrics)]
        return asker.call(load_prompt("soften"), items, {})


FURTHER_ROLE = LlmSoftener
'''
NODE = '''

async def soften(state, runtime):
    """Soften the pool."""
    live = await get_resources(runtime, LearnContext)
    return {"notes": [live.roles.further["softener"].name]}
'''
STEPS = """
    graph.add_edge("reword", "soften")
    graph.add_node("soften", nodes.soften)
    graph.add_edge("soften", "review_pool")
"""
ROLE_OF_LEARN = {
    "prompts/soften.md": lambda _: SOFTEN,
    "pollex/agents/llm/softening.py": lambda _: SOFTENER.lstrip(),
    "graphs/learn/nodes.py": lambda text: text + NODE,
    "graphs/learn/graph.py": lambda text: text.replace(
        '    graph.add_edge("reword", "review_pool")\n', STEPS
    ),
}
"""A new role of `learn`: four places, each with what becomes of its text."""

OTHER_SUM = {
    "selection/netsat.py": lambda text: text.replace("values.sum(axis=1)", "values.max(axis=1)")
}
"""Another sum in place of NetSAT."""

LOOKS_AT_LEARN = """
from pathlib import Path

import numpy as np
from click.testing import CliRunner
from pollex.cli.main import pollex as command
from pollex.graphs.learn.graph import build
from pollex.selection.pool import Selection, Step

rows = Path("pollex/examples/bikes.jsonl").read_text()
Path("log.jsonl").write_text(rows)
words = "learn log.jsonl --model m --base-url http://127.0.0.1:9/v1 --dry-run --json".split()
print("soften" in build().nodes, '"soften"' in CliRunner().invoke(command, words).output)
chosen = Selection((Step(0, 0.0, 0.0, 0.0), Step(1, 0.0, 0.0, 0.0)), ())
print(chosen.scores(np.array([[1.0, 3.0]])))
"""


def copy_project(folder: Path) -> None:
    for room in ("pollex", "graphs", "prompts", "selection", "calibration", "examples"):
        shutil.copytree(
            ROOT / room,
            folder / room,
            symlinks=True,
            ignore=shutil.ignore_patterns("__pycache__"),
        )


def printed_by(code: str, folder: Path) -> str:
    env = os.environ | {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr


def test_a_role_of_learn_is_four_places_and_another_sum_is_one(tmp_path: Path) -> None:
    copy_project(tmp_path)
    assert printed_by(LOOKS_AT_LEARN, tmp_path) == "False False\n[4.]\n"
    for name, change in (ROLE_OF_LEARN | OTHER_SUM).items():
        file = tmp_path / name
        file.write_text(change(file.read_text() if file.exists() else ""))
    assert printed_by(LOOKS_AT_LEARN, tmp_path) == "True True\n[3.]\n"


def test_a_verb_a_policy_a_calibrator_a_prompt_a_page_or_a_row_of_a_table_is_one_file(
    tmp_path: Path,
) -> None:
    copy_project(tmp_path)
    before = printed_by(LOOKS, tmp_path)
    assert [words for words in SEEN if words in before] == []
    for name, text in ADDED.items():
        file = tmp_path / name
        file.write_text(((file.read_text() if file.exists() else "") + text).lstrip())
    after = printed_by(LOOKS, tmp_path)
    assert [words for words in SEEN if words not in after] == [], after
