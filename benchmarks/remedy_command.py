"""Whether `pollex remedy run` tells harm: the command, on a planted assistant whose new prompt does harm or nothing.

    python benchmarks/remedy_command.py       # twenty runs of each harm, fifty of nothing: a
    quarter of an hour

The assistant is a function: rules and chance in place of a model. Under the new prompt it fails
more often where it was to be mended, refuses what it did before, or doesn't answer. Each run is a
command with a store of its own.
"""

import argparse
import io
import json
import os
import sys
from collections import Counter
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory

from small_form import Findings, arguments_of, run, table

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "rooms" / "remedy"))

from remedy_log import TARGET, read_table_log, table_rubrics

from pollex.cli.main import main as pollex
from pollex.measures.intervals import compute_clopper_pearson_interval
from pollex.reports.numbers import format_percent

CONVERSATIONS = 240
HARM = ("worse", "no gain, likely harm")
OLD = "You book tables.\n"
CHANGES = {
    "fails in 60 % of what went well": ("Be FRANK.\n", 0.8),
    "refuses half of all replies": ("Be CAREFUL.\n", 1.0),
    "gives no reply in 30 %": ("Be SILENT.\n", 1.0),
    "fails in 30 % of what went well": ("Be DULL.\n", 0.0),
    "does nothing": ("Be kind.\n", 0.0),
}
"""What the new prompt does, its line, by whose word the assistant knows, and in which share it has to be told as harm.

A harm that is half as large is beyond 80 failing contexts: it is measured, and no bar. "Fails in 30 % of what went
well" is harm on the target itself: the assistant fails in 65 % of its replies in place of 50 %, so whoever tells it is
right. No false alarm of a change that does nothing is behind it; these are counted by themselves.
"""
NOTHING = "does nothing"
ASSISTANT = '''
import random

ENDS = ("", " Is there anything else?", " Can I help you with anything else today?")


def answer(messages, system, seed):
    """Book half of the tables; words in the prompt do harm."""
    rng = random.Random(f"{seed} {messages[-1]['content']} {len(messages)} {system}")
    day, hour, fails, harm = rng.choice(("Tuesday", "Friday")), rng.randint(5, 10), rng.random(), rng.random()
    if "SILENT" in system and harm < 0.3:
        return ""
    if "CAREFUL" in system and harm < 0.5:
        return "I'm sorry, helping with tables is not something I can do."
    breaks = 0.6 if "FRANK" in system else 0.3 if "DULL" in system else 0.0
    if fails > 0.5 and harm >= breaks:
        return f"I've booked a table for {day} at {hour} pm. It costs ${10 * hour}.{rng.choice(ENDS)}"
    return f"I'm sorry, I wasn't able to book a table for {day} at {hour} pm.{rng.choice(ENDS)}"
'''
SEEDED = """
from planted import answer


def {name}(messages, system):
    return answer(messages, system, {seed})
"""


def verdict_of_command(folder: Path, line: str, seed: int) -> tuple[str, int]:
    """Prove a change by the command; return its verdict and exit code."""
    name = f"{line.split()[1].strip('.').lower()}_{seed}"
    (folder / f"{name}.py").write_text(SEEDED.format(name="seeded", seed=seed), "utf-8")
    (folder / "new.md").write_text(OLD + line, "utf-8")
    words = [
        "remedy",
        "run",
        "log.jsonl",
        "--rubrics",
        "rubrics.json",
        "--prompt",
        "old.md",
        "--edit",
        "new.md",
    ]
    words += [
        "--target",
        TARGET,
        "--assistant",
        f"{name}:seeded",
        "--set",
        f"seed={seed}",
        "--group-field",
        "user",
    ]
    # Results that stand beside each other make the next proof stricter: each run has a folder.
    (folder / name).mkdir()
    words += ["--store", f"{name}-store", "--out", f"{name}/result.json"]
    heard = io.StringIO()
    with chdir(folder), redirect_stdout(heard), redirect_stderr(heard):
        sys.argv = ["pollex", *words]
        try:
            pollex()
        except SystemExit as ended:
            code = int(ended.code or 0)
    saved = folder / name / "result.json"
    if not saved.exists():
        raise RuntimeError(heard.getvalue())
    return str(json.loads(saved.read_text("utf-8"))["verdict"]), code


def measure(arguments: argparse.Namespace) -> Findings:
    """Run the command for each change and seed."""
    rows = []
    figures = {}
    bars = {}
    with TemporaryDirectory() as made:
        folder = Path(made)
        logs = read_table_log(folder / "log.jsonl", CONVERSATIONS)
        table_rubrics(logs).save(folder / "rubrics.json")
        (folder / "old.md").write_text(OLD, "utf-8")
        (folder / "planted.py").write_text(ASSISTANT, "utf-8")
        os.environ["POLLEX_MODEL"] = ""
        for what in arguments.changes:
            line, least = CHANGES[what]
            times = arguments.nulls if what == NOTHING else arguments.runs
            ended = [verdict_of_command(folder, line, seed) for seed in range(times)]
            told = sum(verdict in HARM for verdict, _ in ended)
            coded = all(
                (code == 4)
                == (verdict in HARM or verdict in ("not cleared", "only people can tell"))
                for verdict, code in ended
            )
            low, high = compute_clopper_pearson_interval(told, times, units=None)
            verdicts = Counter(verdict for verdict, _ in ended)
            said = ", ".join(f"{verdict} {n}" for verdict, n in verdicts.most_common())
            rows.append(
                [what, f"{told} of {times} ({format_percent(low)} to {format_percent(high)})", said]
            )
            figures[what] = {
                "n": times,
                "harm": told,
                "low": low,
                "high": high,
                "verdicts": dict(verdicts),
            }
            bars[f"{what}: exit code 4 where harm is told"] = coded
            if what == NOTHING:
                bars["a change of nothing is called worse in 2 % at most"] = (
                    verdicts["worse"] <= 0.02 * times
                )
            else:
                bars[f"{what}: told as harm"] = told >= least * times
    head = ["the new prompt", "told as harm (95 %)", "verdicts"]
    return Findings({"table": table(head, rows)}, figures, bars)


def main() -> int:
    """Print what became of each change."""
    parser = arguments_of(__doc__)
    parser.add_argument(
        "changes", nargs="*", default=[*CHANGES], help="some of them; all if none is named"
    )
    parser.add_argument("--runs", type=int, default=20, help="of each harm")
    parser.add_argument("--nulls", type=int, default=50, help="of a change that does nothing")
    return run(parser, measure, ["gives no reply in 30 %", NOTHING, "--runs", "1", "--nulls", "1"])


if __name__ == "__main__":
    raise SystemExit(main())
