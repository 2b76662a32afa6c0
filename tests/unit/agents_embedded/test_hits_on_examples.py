"""What all detectors see in the bundled logs: a change of a rule shows what it moves."""

import os
import tomllib
from collections import Counter
from pathlib import Path

from pollex.agents.embedded.embedder import Embedder
from pollex.agents.embedded.events.reading import fired, marked
from pollex.agents.embedded.signals import SIGNALS
from pollex.agents.embedded.view import View
from pollex.formats.read_logs import read_logs

EXAMPLES = Path(__file__).parents[3] / "examples"
FILE = Path(__file__).with_name("hits_on_examples.toml")


def test_signals_acts_and_patterns_are_seen_in_the_bundled_logs_as_before() -> None:
    logs = [list(read_logs(str(EXAMPLES / f"{name}.jsonl")).conversations)[:60] for name in ("debugging", "bikes")]
    signals, acts, patterns = Counter[str](), Counter[str](), Counter[str]()
    for conversation in (one for log in logs for one in log):
        view, moves = View(conversation, Embedder()), marked(conversation)
        signals.update({name: int((signal.marks(view) != 0).sum()) for name, signal in SIGNALS.items()})
        acts.update(act for move in moves for sentence in move.sentences for act in sentence.hits)
        patterns.update(firing.pattern for firing in fired(moves))
    found = {"signals": signals, "acts": acts, "patterns": patterns}
    if os.environ.get("WRITE_SNAPSHOTS"):
        FILE.write_text(
            "\n".join(
                f"[{kind}]\n" + "".join(f"{name} = {count}\n" for name, count in sorted(counts.items()))
                for kind, counts in found.items()
            )
        )
    assert tomllib.loads(FILE.read_text()) == found
