"""How often a gate that is looked at every day shuts without a reason, and how soon it shuts with one.

    python benchmarks/gate.py [--series 1000] [--days 20] [--a-day 20] [--baseline 400] [--json]

Series of simulated probabilities (Beta with mean .7, as a calibrated set gives) grow from day to
day beside a fixed baseline, and are checked each day: once with the interval for one look (normal
approximation), once with the confidence sequence of `pollex check --again`. Without a drop every
shut gate is a false alarm: at most 5 % are allowed over all days together. A gate shuts where the
drop is at least .03 and its interval leaves out 0.
"""

import argparse
from collections.abc import Sequence

import numpy as np
from small_form import Findings, arguments_of, run, table

from pollex.measures.arrays import Floats
from pollex.measures.every_look import ConfidenceSequence
from pollex.measures.intervals import Figure
from pollex.services.check import Condition, decide_condition

LIMIT = 0.03
MEAN, SIZE = 0.7, 4.0
"""Mean of probabilities, and the sum of Beta's parameters: a standard deviation of .2."""
DROPS = (0.0, 0.05, 0.1, 0.2)


def main() -> int:
    """Print a row a drop."""
    parser = arguments_of(__doc__)
    for name, number in (("series", 1000), ("days", 20), ("a-day", 20), ("baseline", 400)):
        parser.add_argument(f"--{name}", type=int, default=number)
    return run(parser, measure_all, ["--series", "30", "--days", "10"])


def measure_all(given: argparse.Namespace) -> Findings:
    """Measure what was asked for."""
    figures = {
        drop: measured(drop, given.series, given.days, given.a_day, given.baseline)
        for drop in DROPS
    }
    alarms = {kind: row["share"] or 0.0 for kind, row in figures[0.0].items()}
    return Findings(
        {"table": table_of(figures)},
        figures,
        {
            "without a drop, the interval for every look shuts in at most .05 of series": alarms[
                "every look"
            ]
            <= 0.05,
            "without a drop, it shuts no more often than that for one look": alarms["every look"]
            <= alarms["one look"],
            "the largest drop shuts both, always": all(
                row["share"] == 1 for row in figures[DROPS[-1]].values()
            ),
        },
    )


def measured(
    drop: float, series: int, days: int, a_day: int, baseline: int
) -> dict[str, dict[str, float | None]]:
    """Share of series whose gate ever shut, with half its 95 % interval, and the median day, by kind of interval."""
    rng = np.random.default_rng(0)
    first: dict[str, list[int | None]] = {"one look": [], "every look": []}
    for _ in range(series):
        before = drawn(MEAN, baseline, rng)
        after = drawn(MEAN - drop, days * a_day, rng)
        looks = {
            "one look": at_one_look(before, after, a_day),
            "every look": at_every_look(before, after, a_day),
        }
        for kind, figures in looks.items():
            first[kind].append(shut_on(figures))
    return {kind: summed(shut) for kind, shut in first.items()}


def drawn(mean: float, n: int, rng: np.random.Generator) -> Floats:
    """Probabilities with this mean."""
    return rng.beta(mean * SIZE, (1 - mean) * SIZE, size=n)


def at_one_look(before: Floats, after: Floats, a_day: int) -> list[Figure]:
    """The difference on each day, with the interval for one look."""
    found = []
    for n in range(a_day, len(after) + 1, a_day):
        value = float(after[:n].mean() - before.mean())
        half = 1.96 * float(np.sqrt(before.var(ddof=1) / len(before) + after[:n].var(ddof=1) / n))
        found.append(Figure(value, value - half, value + half, n))
    return found


def at_every_look(before: Floats, after: Floats, a_day: int) -> list[Figure]:
    """The difference on each day, with the interval that holds on all of them."""
    first = ConfidenceSequence(0.025).add(before)
    second = ConfidenceSequence(0.025)
    found = []
    for n in range(a_day, len(after) + 1, a_day):
        second.add(after[n - a_day : n])
        value = float(after[:n].mean() - before.mean())
        found.append(Figure(value, second.low - first.high, second.high - first.low, n))
    return found


def shut_on(figures: Sequence[Figure]) -> int | None:
    """The first day on which the gate is shut."""
    condition = Condition("mean(p) drops by 0.03", "difference", "p", LIMIT, -1)
    return next(
        (
            day
            for day, one in enumerate(figures, 1)
            if decide_condition(condition, one).status == "failed"
        ),
        None,
    )


def summed(shut: Sequence[int | None]) -> dict[str, float | None]:
    """The share that ever shut, half its 95 % interval, and the median day of those."""
    days = [day for day in shut if day is not None]
    share = len(days) / len(shut)
    half = 1.96 * float(np.sqrt(share * (1 - share) / len(shut)))
    return {
        "share": share,
        "half": half,
        "n": len(shut),
        "median day": float(np.median(days)) if days else None,
    }


def table_of(figures: dict[float, dict[str, dict[str, float | None]]]) -> str:
    """Return a row a drop: how often a gate ever shut, and on which day."""
    kinds = list(figures[DROPS[0]])
    head = ["drop", *(f"{kind}: {what}" for kind in kinds for what in ("ever shut", "median day"))]
    rows = []
    for drop, by_kind in figures.items():
        cells = [f"{drop:.2f}"]
        for row in by_kind.values():
            day = row["median day"]
            cells += [
                f"{row['share']:.3f} ± {row['half']:.3f} of {row['n']:,}",
                f"{day:.0f}" if day else "–",
            ]
        rows.append(cells)
    return table(head, rows)


if __name__ == "__main__":
    raise SystemExit(main())
