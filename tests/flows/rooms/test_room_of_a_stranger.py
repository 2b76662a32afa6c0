"""A package that somebody else wrote adds a verb, a Python function and a page, with no line of the core changed."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SERVICE = '''
"""Count who speaks in a log."""

from collections import Counter
from dataclasses import dataclass

from pollex.formats.fields import ReadOptions
from pollex.graphs.context import Progress
from pollex.services.logs import Sources, logs_from
from pollex.services.results import Result


@dataclass(frozen=True)
class Speakers(Result):
    """Turns by role."""

    turns: dict[str, int]
    json_fields = ("turns",)

    def told(self):
        """Yield a line a role."""
        yield from (f"{role}: {count} turns" for role, count in self.turns.items())


def count_speakers(logs: Sources, *, at_least: int, reading: ReadOptions, progress: Progress) -> Speakers:
    """Read a log, and count the turns of each role."""
    read = logs_from(logs, reading.for_scores(), progress)
    counts = Counter(turn.role for conversation in read for turn in conversation.turns)
    return Speakers({role: count for role, count in sorted(counts.items()) if count >= at_least})
'''
USE_CASE = '''
"""Who speaks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pollex.usecases.families import Reading
from pollex.usecases.use_case import UseCase, opt, use_case

if TYPE_CHECKING:
    from pollex.services.logs import Data
    from pollex_speakers.services.speakers import Speakers


@use_case("speakers")
class CountSpeakers(Reading, UseCase["Speakers"]):
    """Count the turns of each role in a log."""

    does = "speakers.count_speakers"
    help_title = "Look"
    logs: tuple[str, ...] | Data = opt(kw_only=False, place="argument", metavar="LOGS…")
    at_least: int = opt("Leave out who says less.", default=1, least=1, group="Output")
'''
PAGE = '''
"""Who speaks in a run."""

from collections import Counter

from pollex.store.resume import iterate_conversations
from pollex.store.runs import Run
from pollex.web.site import Site
from pollex.web.views import PageData, page


@page("/speakers/{run}", "speakers.html", here="Runs")
def show_speakers(site: Site, run: Run, as_json: bool) -> PageData:
    """Show them."""
    conversations = iterate_conversations(site.store, run.id)
    counts = Counter(turn.role for conversation in conversations for turn in conversation.turns)
    return {"speakers": dict(counts)}
'''
HOOKS = '''
"""What the room hangs into the browser."""

from pollex.web.hooks import MenuEntry

HOOKS = (MenuEntry("Speakers", "/speakers/last", "k", 25),)
'''
TEMPLATE = """{% extends "web/frame.html" %}
{% block title %}Speakers{% endblock %}
{% block main %}<ul>{% for role, count in speakers.items() %}
<li>{{ role }}: {{ count }}</li>{% endfor %}</ul>{% endblock %}
"""
LOOK_AT_THE_PAGE = """
from pathlib import Path
from starlette.testclient import TestClient
from web_site import made_store
from pollex.web.views import list_every_route
assert any(route.path == "/speakers/{run}" for route in list_every_route())
from pollex.web.frame import make_environment
print(make_environment().get_template("web/speakers.html").name)
from pollex.web.hooks import list_menu_entries
print([entry.name for entry in list_menu_entries()][2:5])
import pollex
print(pollex.speakers("log.jsonl").turns)
"""
CONVERSATION = {
    "messages": [
        {"role": "user", "content": "Is it open?"},
        {"role": "assistant", "content": "Until ten."},
    ]
}


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Return an environment in which the package is there as an installer would have left it."""
    package = tmp_path / "pollex_speakers"
    about = tmp_path / "pollex_speakers-1.0.dist-info"
    files = {
        package / "__init__.py": "",
        package / "services" / "__init__.py": "",
        package / "services" / "speakers.py": SERVICE,
        package / "usecases" / "__init__.py": "",
        package / "usecases" / "speakers.py": USE_CASE,
        package / "web" / "__init__.py": "",
        package / "web" / "pages" / "__init__.py": "",
        package / "web" / "pages" / "speakers.py": PAGE,
        package / "web" / "hooks.py": HOOKS,
        package / "templates" / "web" / "speakers.html": TEMPLATE,
        about / "METADATA": "Metadata-Version: 2.1\nName: pollex-speakers\nVersion: 1.0\n",
        about / "entry_points.txt": "[pollex.rooms]\nspeakers = pollex_speakers\n",
        tmp_path / "log.jsonl": json.dumps(CONVERSATION) + "\n",
    }
    for file, text in files.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text.lstrip("\n"), "utf-8")
    tests = Path(__file__).parents[2]
    return os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(tests)])}


def test_a_package_of_a_stranger_adds_a_verb_a_function_and_a_page(
    environment: dict[str, str], tmp_path: Path
) -> None:
    def run(*words: str) -> str:
        command = [sys.executable, *words]
        done = subprocess.run(
            command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "speakers" in run("-m", "pollex", "--help").partition("Improve")[0], (
        "under the title that it names"
    )
    assert "Leave out who says less." in run("-m", "pollex", "speakers", "--help")
    assert run("-m", "pollex", "speakers", "log.jsonl").splitlines()[-2:] == [
        "assistant: 1 turns",
        "user: 1 turns",
    ]
    told = json.loads(run("-m", "pollex", "speakers", "log.jsonl", "--json").splitlines()[-1])
    assert told["turns"] == {"assistant": 1, "user": 1}
    assert run("-c", LOOK_AT_THE_PAGE).splitlines() == [
        "web/speakers.html",
        "['Runs', 'Speakers', 'Conversations']",
        "{'assistant': 1, 'user': 1}",
    ]
