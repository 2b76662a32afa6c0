"""What `pollex score` and `pollex evaluate` do around their graph: read, run, write, tell."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from pollex.conversations.logs import Logs, read_logs
from pollex.conversations.model import Label
from pollex.conversations.options import ReadOptions
from pollex.errors import BadLabels
from pollex.export import exporter_for
from pollex.graphs.figures import figures
from pollex.graphs.rubric_set import RubricSet
from pollex.graphs.runs import Scored, score, scores_of
from pollex.selection.metrics import assess
from pollex.selection.threshold import Window
from pollex.terminal.options import RunOptions
from pollex.terminal.session import Session, print_json, session
from pollex.terminal.show import figures_json, show_figures, show_logs, show_outcomes
from pollex.workers import embedded_judge

DONE, PARTLY = 0, 3


def score_command(sources: Sequence[str], rubrics: Path, out: Path, reading: ReadOptions, options: RunOptions) -> int:
    """Reads logs, scores them, writes a row a conversation, tells; the exit code."""
    rubric_set = RubricSet.load(rubrics)
    rubric_set.require_unedited(str(rubrics))
    write = exporter_for(out)
    logs = read_logs(sources, options=reading)
    with session(options) as opened:
        show_logs(opened, logs)
        scored = run_score(opened, logs, rubric_set, {"logs": list(sources), "rubrics": str(rubrics), "out": str(out)})
        write(out, scores_of(opened.store, scored.run, rubric_set, logs.conversations), rubric_set)
        show_outcomes(opened, scored.counts)
        opened.say(f"Wrote {out} ({rubric_set.judge.name}; run {scored.run})")
        if options.as_json:
            bad_rows = [{"where": f"{row.source}:{row.line}", "reason": row.reason} for row in logs.bad_rows]
            told = {"run": scored.run, "out": str(out), "judge": rubric_set.judge.name, "outcomes": scored.counts}
            print_json(told | {"n": len(logs), "bad_rows": bad_rows})
    return exit_code(logs, scored)


def evaluate_command(sources: Sequence[str], rubrics: Path, reading: ReadOptions, options: RunOptions) -> int:
    """Reads labelled logs, scores them, measures, tells; the exit code."""
    rubric_set = RubricSet.load(rubrics)
    rubric_set.require_unedited(str(rubrics))
    logs = read_logs(sources, options=reading)
    labelled = [c for c in logs if c.label is not Label.NONE]
    if not labelled:
        raise BadLabels("no conversation has a label", where=", ".join(sources), remedy="name its field: --label-field")
    with session(options) as opened:
        show_logs(opened, logs)
        kept = Logs(conversations=tuple(labelled), counts=logs.counts, fingerprint=logs.fingerprint)
        scored = run_score(opened, kept, rubric_set, {"logs": list(sources), "rubrics": str(rubrics)}, "evaluate")
        found = list(scores_of(opened.store, scored.run, rubric_set, labelled))
        pairs = [
            (s.netsat, c.label is Label.POSITIVE) for s, c in zip(found, labelled, strict=True) if s.netsat is not None
        ]
        netsat, positive = np.array([n for n, _ in pairs], float), np.array([p for _, p in pairs], bool)
        window = Window(**rubric_set.window.model_dump())
        measured = figures(assess(netsat, positive, rubric_set.theta, window, np.random.default_rng(0)))
        seen = sum(c.text_hash[:16] in set(rubric_set.data.training_hashes) for c in labelled)
        show_figures(opened, {f"{len(labelled)} labelled": measured})
        show_outcomes(opened, scored.counts)
        opened.say(f"Judge: {rubric_set.judge.name}; run {scored.run}")
        if seen:
            opened.say(
                f"Note: the rubrics were learnt from {seen} of these conversations: figures are too good.", "yellow"
            )
        if options.as_json:
            figures_found = figures_json(measured)
            limits = {"theta": rubric_set.theta, "window": [window.lower, window.upper]}
            about = {"run": scored.run, "judge": rubric_set.judge.name, "outcomes": scored.counts, "learnt_from": seen}
            print_json(figures_found | limits | about)
    return exit_code(logs, scored)


def run_score(
    opened: Session, logs: Logs, rubric_set: RubricSet, arguments: dict[str, object], command: str = "score"
) -> Scored:
    """The scoring run."""
    opened.say("Judge: embedded (no LLM, no network)")
    judge = embedded_judge(rubric_set, opened.options.store)
    return opened.run(
        score(
            logs.conversations,
            rubric_set,
            judge=judge,
            data_fingerprint=logs.fingerprint,
            setting=opened.setting(arguments),
            command="evaluate" if command == "evaluate" else "score",
        )
    )


def exit_code(logs: Logs, scored: Scored) -> int:
    """3 where a row or a conversation could not be processed."""
    return PARTLY if logs.bad_rows or scored.counts.keys() - {"scored"} else DONE
