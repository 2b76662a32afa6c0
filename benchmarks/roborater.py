"""How well an ensemble's ratings agree with people, by the number of runs and by τ: RoboRater's figures 1 and 2.

    python benchmarks/roborater.py --runs TABLE --labels LABELS [--plots DIR] [--json FILE]
    python benchmarks/roborater.py --data LOG [--n 15] [--embeddings DIR] [--plots DIR] [--json
    FILE]

TABLE has recorded runs, as `pollex judge --votes` writes them (CSV, JSON lines or Parquet):
conversation, run, answer and perhaps variant; LABELS has conversation and label. Conversations
labelled vague, or not at all, are left out and counted; an answer that is empty is a failed run,
and no vote. With LOG the embedded rater answers on resampled turns: a thumb is the truth, none is
vague; conversations that it learnt from are answered by weights learnt without them.

For every n, the first n runs of each conversation are taken, and for every τ that their entropies
can have: coverage, and the score (+1 right, −1 wrong, averaged) on DE ≤ τ and on DE > τ, with 95 %
intervals (Clopper–Pearson). A tie of the mode has no rating: it never passes, and counts as wrong
where it is left. No τ is chosen here but by --precision, which fits it on one half of the
conversations and reports the other half, both ways round. Beside the embedded ensemble stands its
rater alone: as many conversations, those that it is surest of by its own probability.

With --plots figure 1 has scores and coverage by n where at least n − 1 runs agree, figure 2 the
same over τ with a line for every n.

Source: Goldman, Vasilevski 2024, "RoboRater: Automating Ratings of Task-Oriented Conversations
    using LLMs", AAAI Spring
Symposium.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from small_form import DEBUGGING, Findings, arguments_of, run

from pollex.conversations.conversation import Label
from pollex.conversations.logs import BadRow
from pollex.formats.files import iterate_file_rows
from pollex.formats.read_logs import read_logs
from pollex.rooms.judge.agents.votes import JudgeEnsemble, compute_tau_of_all_but_one, count_votes
from pollex.rooms.judge.selection.consensus import (
    TauSide,
    compute_tau_points,
    count_first_runs,
    fit_tau,
    split_at,
)
from pollex.rubrics.answers import Answer

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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
        plain: Where the rater gives one without an ensemble, the probability of the first option,
            [conversation].
    """

    answers: Ints
    truth: Ints
    options: tuple[str, ...]
    vague: int
    plain: npt.NDArray[np.float64] | None = None


def main() -> int:
    """Print the figures of every variant."""
    parser = arguments_of(__doc__)
    parser.add_argument("--runs", type=Path, metavar="TABLE")
    parser.add_argument("--labels", type=Path)
    parser.add_argument("--data", nargs="+", default=[], metavar="LOG")
    parser.add_argument("--n", type=int, default=15, help="runs of the embedded rater")
    parser.add_argument(
        "--embeddings", type=Path, help="folder of cached embeddings; none if left out"
    )
    parser.add_argument(
        "--precision", type=float, default=PRECISION, help="to fit τ to on one half"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the halves")
    parser.add_argument("--plots", type=Path, metavar="DIR")
    return run(parser, measure_all, ["--data", DEBUGGING, "--n", "7"])


def measure_all(arguments: argparse.Namespace) -> Findings:
    """Measure what was asked for."""
    if bool(arguments.runs) != bool(arguments.labels) or bool(arguments.runs) == bool(
        arguments.data
    ):
        raise SystemExit("give --runs and --labels, or --data")
    recordings = recorded(arguments.runs, arguments.labels) if arguments.runs else {}
    for path in arguments.data:
        recordings[Path(path).stem] = asyncio.run(embedded(path, arguments.n, arguments.embeddings))
    reports = {}
    for name, recording in recordings.items():
        reports[name] = report(
            recording, arguments.precision, np.random.default_rng(arguments.seed)
        )
    if arguments.plots:
        arguments.plots.mkdir(parents=True, exist_ok=True)
        draw(reports, arguments.plots)
    print("\n\n".join(in_words(*item) for item in reports.items()))
    return Findings(
        figures=reports, bars={"every log has its figures": bool(reports) and all(reports.values())}
    )


def recorded(runs: Path, labels: Path) -> dict[str, Recording]:
    """A recording a variant of a table of runs; one without variants is called `runs`."""
    truths = {str(row["conversation"]): str(row["label"]).strip() for row in rows_in(labels)}
    tables: dict[str, dict[str, dict[int, str]]] = {}
    for row in rows_in(runs):
        table = tables.setdefault(row.get("variant") or "runs", {})
        table.setdefault(str(row["conversation"]), {})[int(row["run"])] = (
            row["answer"] or ""
        ).strip()
    return {name: recording(table, truths) for name, table in tables.items()}


def rows_in(path: Path) -> Iterator[dict[str, Any]]:
    """Rows of a table: CSV, JSON lines or Parquet, as `--votes` writes them."""
    for row in iterate_file_rows(str(path), "utf-8-sig"):
        if isinstance(row, BadRow):
            raise SystemExit(str(row))
        yield dict(row.fields)


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
    # these take seconds, and recorded runs need none of them
    from pollex.agents.embedded.embedder import Embedder
    from pollex.rooms.judge.agents.embedded.rater import EmbeddedRater
    from pollex.rooms.judge.agents.votes import make_question

    logs = read_logs(path)
    rater = EmbeddedRater(Embedder(cache=cache))
    await rater.fit(logs.conversations, [])
    ensemble = JudgeEnsemble(rater, n=n)
    question = make_question("Did the conversation go well?", ["yes", "no"])
    clear = [c for c in logs if c.label is not Label.NONE and not c.not_scorable]
    rows = []
    plain = []
    for conversation in clear:
        (answer,) = await rater.judge(conversation, [question])
        plain.append(answer.probabilities[0] if isinstance(answer, Answer) else np.nan)
        votes = await ensemble.votes(conversation, question)
        rows.append(
            [
                count_votes([vote], 2).index(1) if any(count_votes([vote], 2)) else FAILED
                for vote in votes
            ]
        )
    truth = np.array([int(c.label is Label.NEGATIVE) for c in clear], dtype=np.int64)
    return Recording(
        np.array(rows, dtype=np.int64),
        truth,
        ("yes", "no"),
        len(logs) - len(clear),
        np.array(plain),
    )


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
        "plain": []
        if found.plain is None
        else [by_confidence(found, found.plain, row) for row in usual],
    }


def by_tau(found: Recording, n: int) -> list[dict[str, Any]]:
    """Both sides of every τ that the entropies of n runs have."""
    entropy, mode = count_first_runs(found.answers, n, len(found.options))
    every = compute_tau_points(entropy, mode, found.truth, n)
    usual = compute_tau_of_all_but_one(n)
    return [point.as_json | {"agree": bool(abs(point.tau - usual) < 1e-6)} for point in every]


def by_confidence(
    found: Recording, plain: npt.NDArray[np.float64], row: Mapping[str, Any]
) -> dict[str, Any]:
    """As many conversations as pass in `row`, picked by how sure the rater is of itself without an ensemble."""
    passing = np.argsort(-np.abs(plain - 0.5), kind="stable")[: row["passed"]["n"]]
    right = int(((plain < 0.5) == found.truth)[passing].sum())
    return {
        "n": row["n"],
        "coverage": row["coverage"],
        "passed": TauSide(len(passing), right, 0).as_json,
    }


def half_and_half(
    found: Recording, n: int, precision: float, rng: np.random.Generator
) -> list[dict[str, Any]]:
    """τ fitted to the precision on one half, and what it keeps of it on the other; both ways round."""
    (entropy, mode), truth = count_first_runs(found.answers, n, len(found.options)), found.truth
    side = rng.permutation(len(truth)) % 2 == 0
    rows = []
    for half in (side, ~side):
        fitted = fit_tau(entropy[half], mode[half], truth[half], precision)
        tau = -1.0 if fitted.tau is None else fitted.tau
        sides = split_at(entropy[~half], mode[~half], truth[~half], tau)
        rows.append(
            {
                "wanted": precision,
                "tau": fitted.tau,
                "fitted_on": fitted.n,
                "precision_there": fitted.precision.value,
                "coverage": sides.coverage.value,
                "passed": sides.passed.as_json,
                "precision": sides.passed.precision.value,
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
        coverage = interval(row["coverage"], row["coverage_interval"], "")
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
        kept = (
            "nothing passes"
            if row["precision"] is None
            else f"{row['precision']:.3f} (n = {row['passed']['n']})"
        )
        lines.append(
            f"τ for a precision of {row['wanted']} fitted on {row['fitted_on']}: {tau}; on the other half {kept}"
        )
    return "\n".join(lines)


def told(side: Mapping[str, Any]) -> str:
    """A score with its interval and n."""
    return f"{interval(side['score'], side['interval'])} n = {side['n']}"


def interval(value: float | None, ends: Sequence[float] | None, sign: str = "+") -> str:
    """A figure with its interval; a dash where there is none."""
    if value is None or ends is None:
        return "–"
    return f"{value:{sign}.3f} [{ends[0]:{sign}.3f}, {ends[1]:{sign}.3f}]"


def draw(reports: Mapping[str, Mapping[str, Any]], folder: Path) -> None:
    """Figure 1: scores and coverage by n where at least n − 1 runs agree. Figure 2: the same by τ, a line an n."""
    import matplotlib as mpl

    mpl.use("svg")
    for name, found in reports.items():
        by_runs([row for row in found["rows"] if row["agree"]], name).savefig(
            folder / f"figure1-{name}.svg"
        )
        by_entropy(found["rows"], name).savefig(folder / f"figure2-{name}.svg")


def by_runs(rows: Sequence[Mapping[str, Any]], title: str) -> Figure:
    """Scores of what passes and of what is left, and coverage, at the usual τ of every n."""
    figure, (scores, coverage) = panels(2, title)
    for axes, values in (
        (scores, (("passed", "DE ≤ τ"), ("left", "DE > τ"))),
        (coverage, (("", "coverage"),)),
    ):
        for side, label in values:
            told = [(row["n"], *figures_of(row, side)) for row in rows if figures_of(row, side)]
            n, value, low, high = zip(*told, strict=True) if told else ((), (), (), ())
            axes.plot(n, value, marker="o", label=label)
            axes.fill_between(n, low, high, alpha=0.15)
        axes.set_xlabel("runs n; DE ≤ τ where n − 1 agree")
        axes.xaxis.get_major_locator().set_params(integer=True)
    scores.set(ylabel="score, with 95 % intervals", ylim=(-1.05, 1.05))
    scores.legend()
    coverage.set(ylabel="coverage", ylim=(0, 1.05))
    return figure


def by_entropy(rows: Sequence[Mapping[str, Any]], title: str) -> Figure:
    """Coverage and both scores over τ."""
    from matplotlib import colormaps

    figure, all_axes = panels(3, title)
    numbers = sorted({row["n"] for row in rows})
    end = 1.05 * max((row["tau"] for row in rows), default=0.0) or 1.0
    shown = (("", "coverage"), ("passed", "score, DE ≤ τ"), ("left", "score, DE > τ"))
    for (side, label), axes in zip(shown, all_axes, strict=True):
        for place, n in enumerate(numbers):
            colour = colormaps["viridis"](0.95 * place / max(len(numbers) - 1, 1))
            tau, value = steps([row for row in rows if row["n"] == n], side, end)
            axes.plot(
                tau, value, drawstyle="steps-post", color=colour, label=f"n = {n}", linewidth=1.3
            )
        axes.set(
            xlabel="τ in nats",
            ylabel=label,
            xlim=(0, end),
            ylim=(-1.05, 1.05) if side else (0, 1.05),
        )
    figure.legend(
        *all_axes[0].get_legend_handles_labels(), loc="outside right center", fontsize="small"
    )
    return figure


def steps(
    rows: Sequence[Mapping[str, Any]], side: str, end: float
) -> tuple[list[float], list[float]]:
    """τ and values of one n: constant between entropies that occur, and no line where there is no value."""
    told = [(row["tau"], found[0]) for row in rows if (found := figures_of(row, side))]
    if not told:
        return [], []
    ends = next((row["tau"] for row in rows if row["tau"] > told[-1][0]), end)
    return [*(tau for tau, _ in told), ends], [*(value for _, value in told), told[-1][1]]


def panels(count: int, title: str) -> tuple[Figure, Sequence[Axes]]:
    """So many panels side by side."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.2 * count, 3.6), layout="constrained")
    figure.suptitle(title)
    return figure, list(figure.subplots(1, count))


def figures_of(row: Mapping[str, Any], side: str) -> tuple[float, float, float] | tuple[()]:
    """A side's score, or without a side the coverage, with its interval; nothing where there is none."""
    value, ends = (
        (row[side]["score"], row[side]["interval"])
        if side
        else (row["coverage"], row["coverage_interval"])
    )
    return () if value is None else (value, *ends)


if __name__ == "__main__":
    raise SystemExit(main())
