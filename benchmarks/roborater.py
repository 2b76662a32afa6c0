"""How well an ensemble's ratings agree with people, by the number of runs and by τ: RoboRater's figures 1 and 2.

    python benchmarks/roborater.py --runs TABLE --labels LABELS [--plots DIR] [--json]
    python benchmarks/roborater.py --data LOG [--n 15] [--embeddings DIR] [--plots DIR] [--json]

TABLE is a CSV of recorded runs with the columns conversation, run, answer and perhaps variant; LABELS has conversation
and label. Conversations labelled vague, or not at all, are left out and counted; an answer that is empty is a failed
run, and no vote. With LOG the embedded rater answers on resampled turns: a thumb is the truth, none is vague;
conversations that it learnt from are answered by weights learnt without them.

For every n, the first n runs of each conversation are taken, and for every τ that their entropies can have: coverage,
and the score (+1 right, −1 wrong, averaged) on DE ≤ τ and on DE > τ, with 95 % intervals (Clopper–Pearson). A tie of
the mode has no rating: it never passes, and counts as wrong where it is left. No τ is chosen here but by --precision,
which fits it on one half of the conversations and reports the other half, both ways round. Beside the embedded
ensemble stands its rater alone: as many conversations, those that it is surest of by its own probability.

Source: Goldman, Vasilevski 2024, "RoboRater: Automating Ratings of Task-Oriented Conversations using LLMs", AAAI Spring
Symposium.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pollex.agents.answers import Answer
from pollex.agents.ensemble import Ensemble
from pollex.agents.verdicts import all_but_one, counted
from pollex.conversations.logs import read_logs
from pollex.conversations.model import Label
from pollex.selection.agreement import Side, entropies, filtered, fitted_tau, modes

Ints = npt.NDArray[np.int64]
FAILED = -1
"""In an array of answers: the run has none."""

VAGUE = {"", "vague"}
PRECISION = 0.9


@dataclass(frozen=True)
class Recording:
    """Runs about conversations that have a truth.

    Attributes:
        answers: Option chosen in each run [conversation, run], `FAILED` for none.
        truth: [conversation].
        options: Texts of the options.
        vague: Conversations with runs that were left out, having no clear label.
        plain: Where the rater gives one without an ensemble, the probability of the first option, [conversation].
    """

    answers: Ints
    truth: Ints
    options: tuple[str, ...]
    vague: int
    plain: npt.NDArray[np.float64] | None = None

    def votes(self, n: int) -> Ints:
        """How many of the first n runs chose each option, [conversation, option]."""
        options = np.arange(len(self.options))
        return np.asarray((self.answers[:, :n, None] == options).sum(axis=1))


def main() -> None:
    """Print the figures of every variant."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=Path, metavar="TABLE")
    parser.add_argument("--labels", type=Path)
    parser.add_argument("--data", nargs="+", default=[], metavar="LOG")
    parser.add_argument("--n", type=int, default=15, help="runs of the embedded rater")
    parser.add_argument("--embeddings", type=Path, help="folder of cached embeddings; none if left out")
    parser.add_argument("--precision", type=float, default=PRECISION, help="to fit τ to on one half")
    parser.add_argument("--seed", type=int, default=0, help="of the halves")
    parser.add_argument("--plots", type=Path, metavar="DIR")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    if bool(arguments.runs) != bool(arguments.labels) or bool(arguments.runs) == bool(arguments.data):
        parser.error("give --runs and --labels, or --data")
    recordings = recorded(arguments.runs, arguments.labels) if arguments.runs else {}
    for path in arguments.data:
        recordings[Path(path).stem] = asyncio.run(embedded(path, arguments.n, arguments.embeddings))
    reports = {}
    for name, recording in recordings.items():
        reports[name] = report(recording, arguments.precision, np.random.default_rng(arguments.seed))
    if arguments.plots:
        arguments.plots.mkdir(parents=True, exist_ok=True)
        draw(reports, arguments.plots)
    print(json.dumps(reports) if arguments.json else "\n\n".join(in_words(*item) for item in reports.items()))


def recorded(runs: Path, labels: Path) -> dict[str, Recording]:
    """A recording a variant of a table of runs; one without variants is called `runs`."""
    with labels.open(newline="", encoding="utf-8-sig") as file:
        truths = {row["conversation"]: row["label"].strip() for row in csv.DictReader(file)}
    tables: dict[str, dict[str, dict[int, str]]] = {}
    with runs.open(newline="", encoding="utf-8-sig") as file:
        for row in csv.DictReader(file):
            table = tables.setdefault(row.get("variant") or "runs", {})
            table.setdefault(row["conversation"], {})[int(row["run"])] = row["answer"].strip()
    return {name: recording(table, truths) for name, table in tables.items()}


def recording(table: Mapping[str, Mapping[int, str]], truths: Mapping[str, str]) -> Recording:
    """One variant: by conversation and number the answers of its runs."""
    given = {answer for runs in table.values() for answer in runs.values() if answer}
    options = sorted(given | {truths.get(id_, "") for id_ in table} - VAGUE)
    numbers = sorted({number for runs in table.values() for number in runs})
    clear = [id_ for id_ in table if truths.get(id_, "") not in VAGUE]
    rows = [[table[id_].get(number, "") for number in numbers] for id_ in clear]
    answers = [[options.index(answer) if answer else FAILED for answer in row] for row in rows]
    return Recording(
        np.array(answers, dtype=np.int64).reshape(len(clear), len(numbers)),
        np.array([options.index(truths[id_]) for id_ in clear], dtype=np.int64),
        tuple(options),
        len(table) - len(clear),
    )


async def embedded(path: str, n: int, cache: Path | None) -> Recording:
    """The embedded rater on resampled turns; thumbs are the truth."""
    from pollex.agents.embedded.embedder import Embedder  # these take seconds, and recorded runs need none of them
    from pollex.agents.embedded.rater import EmbeddedRater
    from pollex.graphs.judging import asked

    logs = read_logs(path)
    rater = EmbeddedRater(Embedder(cache=cache))
    await rater.study(logs.conversations, [])
    ensemble, question = Ensemble(rater, n=n), asked("Did the conversation go well?", ["yes", "no"])
    clear = [c for c in logs if c.label is not Label.NONE and not c.not_scorable]
    rows, plain = [], []
    for conversation in clear:
        (answer,) = await rater.judge(conversation, [question])
        plain.append(answer.probabilities[0] if isinstance(answer, Answer) else np.nan)
        (votes,) = await ensemble.votes(conversation, [question])
        rows.append([counted([vote], 2).index(1) if any(counted([vote], 2)) else FAILED for vote in votes])
    truth = np.array([int(c.label is Label.NEGATIVE) for c in clear], dtype=np.int64)
    return Recording(np.array(rows, dtype=np.int64), truth, ("yes", "no"), len(logs) - len(clear), np.array(plain))


def report(found: Recording, precision: float, rng: np.random.Generator) -> dict[str, Any]:
    """All figures of one recording, as JSON values."""
    most = found.answers.shape[1]
    rows = [row for n in range(1, most + 1) for row in by_tau(found, n)]
    halves = half_and_half(found, most, precision, rng)
    usual = [row for row in rows if row["agree"]]
    return {
        "conversations": len(found.truth),
        "vague": found.vague,
        "failed_runs": int((found.answers == FAILED).sum()),
        "runs": most,
        "truths": {option: int((found.truth == i).sum()) for i, option in enumerate(found.options)},
        "rows": rows,
        "fitted": halves,
        "plain": [] if found.plain is None else [by_confidence(found, found.plain, row) for row in usual],
    }


def by_tau(found: Recording, n: int) -> list[dict[str, Any]]:
    """Both sides of every τ that the entropies of n runs have."""
    votes = found.votes(n)
    entropy, mode = entropies(votes), modes(votes)
    usual = all_but_one(n)
    rows = []
    for tau in np.unique(np.round(entropy[~np.isnan(entropy)], 9)).tolist():
        sides = filtered(entropy, mode, found.truth, tau)
        rows.append(
            {
                "n": n,
                "tau": tau,
                "agree": bool(abs(tau - usual) < 1e-6),
                "coverage": sides.coverage,
                "coverage_interval": sides.coverage_interval,
                "passed": side_json(sides.passed),
                "left": side_json(sides.left),
            }
        )
    return rows


def by_confidence(found: Recording, plain: npt.NDArray[np.float64], row: Mapping[str, Any]) -> dict[str, Any]:
    """As many conversations as pass in `row`, picked by how sure the rater is of itself without an ensemble."""
    passing = np.argsort(-np.abs(plain - 0.5), kind="stable")[: row["passed"]["n"]]
    right = int(((plain < 0.5) == found.truth)[passing].sum())
    return {"n": row["n"], "coverage": row["coverage"], "passed": side_json(Side(len(passing), right, 0))}


def side_json(side: Side) -> dict[str, Any]:
    """One side of τ."""
    return {"n": side.n, "tied": side.tied, "score": side.score, "interval": side.interval}


def half_and_half(found: Recording, n: int, precision: float, rng: np.random.Generator) -> list[dict[str, Any]]:
    """τ fitted to the precision on one half, and what it keeps of it on the other; both ways round."""
    votes = found.votes(n)
    entropy, mode, truth = entropies(votes), modes(votes), found.truth
    side = rng.permutation(len(truth)) % 2 == 0
    rows = []
    for half in (side, ~side):
        fitted = fitted_tau(entropy[half], mode[half], truth[half], precision)
        tau = -1.0 if fitted.tau is None else fitted.tau
        sides = filtered(entropy[~half], mode[~half], truth[~half], tau)
        rows.append(
            {
                "wanted": precision,
                "tau": fitted.tau,
                "fitted_on": fitted.n,
                "precision_there": fitted.precision,
                "coverage": sides.coverage,
                "passed": side_json(sides.passed),
                "precision": None if sides.passed.score is None else (1 + sides.passed.score) / 2,
            }
        )
    return rows


def in_words(name: str, found: Mapping[str, Any]) -> str:
    """The table of one recording."""
    truths = ", ".join(f"{count} {option}" for option, count in found["truths"].items())
    lines = [
        f"{name}: {found['conversations']} conversations ({truths}), {found['vague']} vague ones left out; "
        f"{found['runs']} runs, {found['failed_runs']} of them failed",
        f"{'n':>3} {'τ':>7}   {'coverage':<24}{'score, DE ≤ τ':<34}{'score, DE > τ':<34}",
    ]
    for row in found["rows"]:
        mark = "*" if row["agree"] else " "
        coverage = interval(row["coverage"], row["coverage_interval"])
        lines.append(
            f"{row['n']:>3} {row['tau']:>7.4f}{mark}  {coverage:<24}{told(row['passed']):<34}{told(row['left']):<34}"
        )
    lines.append("* at least n − 1 of n runs agree")
    lines += [
        f"the {row['coverage']:.0%} of which the rater is surest without an ensemble, as many as at n = {row['n']}: "
        f"score {told(row['passed'])}"
        for row in found["plain"]
    ]
    for row in found["fitted"]:
        tau = "none" if row["tau"] is None else f"{row['tau']:.4f}"
        kept = "nothing passes" if row["precision"] is None else f"{row['precision']:.3f} (n = {row['passed']['n']})"
        lines.append(
            f"τ for a precision of {row['wanted']} fitted on {row['fitted_on']}: {tau}; on the other half {kept}"
        )
    return "\n".join(lines)


def told(side: Mapping[str, Any]) -> str:
    """A score with its interval and n."""
    return f"{interval(side['score'], side['interval'])} n = {side['n']}"


def interval(value: float | None, ends: Sequence[float] | None) -> str:
    """A figure with its interval; a dash where there is none."""
    return "–" if value is None or ends is None else f"{value:+.3f} [{ends[0]:+.3f}, {ends[1]:+.3f}]"


def draw(reports: Mapping[str, Mapping[str, Any]], folder: Path) -> None:
    """Figure 1: score by n where at least n − 1 agree, where not, and coverage. Figure 2: score by coverage over τ."""
    import matplotlib as mpl

    mpl.use("svg")
    from matplotlib import pyplot

    for name, found in reports.items():
        usual = [row for row in found["rows"] if row["agree"]]
        figure, axes = pyplot.subplots(figsize=(6, 4))
        for side, label in (("passed", "score, n − 1 agree"), ("left", "score, the rest")):
            rows = [row for row in usual if row[side]["score"] is not None]
            n = [row["n"] for row in rows]
            axes.plot(n, [row[side]["score"] for row in rows], marker="o", label=label)
            low, high = zip(*(row[side]["interval"] for row in rows), strict=True) if rows else ((), ())
            axes.fill_between(n, low, high, alpha=0.15)
        axes.plot([row["n"] for row in usual], [row["coverage"] for row in usual], "k--", label="coverage")
        axes.set(xlabel="runs n", ylabel="score, coverage", ylim=(-1.05, 1.05), title=name)
        axes.legend()
        figure.savefig(folder / f"figure1-{name}.svg")
        pyplot.close(figure)
        figure, axes = pyplot.subplots(figsize=(6, 4))
        for n in sorted({row["n"] for row in found["rows"]} & {3, 5, 7, 11, 15, found["runs"]}):
            rows = [row for row in found["rows"] if row["n"] == n and row["passed"]["score"] is not None]
            axes.plot(
                [row["coverage"] for row in rows], [row["passed"]["score"] for row in rows], ".-", label=f"n = {n}"
            )
        axes.set(xlabel="coverage of DE ≤ τ", ylabel="score on DE ≤ τ", xlim=(0, 1.02), title=name)
        axes.legend()
        figure.savefig(folder / f"figure2-{name}.svg")
        pyplot.close(figure)


if __name__ == "__main__":
    main()
