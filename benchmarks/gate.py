"""How often a gate that is looked at every day shuts without a reason, and how soon it shuts with one.

    python benchmarks/gate.py [--series 1000] [--days 20] [--a-day 20] [--baseline 400] [--json]

Series of simulated probabilities (Beta with mean .7, as a calibrated set gives) grow from day to day beside a fixed
baseline, and are checked each day: once with the interval for one look (normal approximation), once with the
confidence sequence of `pollex check --again`. Without a drop every shut gate is a false alarm: at most 5 % are
allowed over all days together. A gate shuts where the drop is at least .03 and its interval leaves out 0.
"""

import argparse
import json
from collections.abc import Sequence

import numpy as np

from pollex.measures.arrays import Floats
from pollex.measures.intervals import Figure
from pollex.measures.looks import ConfidenceSequence
from pollex.services.check import Condition, verdict

LIMIT = 0.03
MEAN, SIZE = 0.7, 4.0
"""Mean of probabilities, and the sum of Beta's parameters: a standard deviation of .2."""
DROPS = (0.0, 0.05, 0.1, 0.2)


def main() -> None:
    """Print a row a drop."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, number in (("series", 1000), ("days", 20), ("a-day", 20), ("baseline", 400)):
        parser.add_argument(f"--{name}", type=int, default=number)
    parser.add_argument("--json", action="store_true", help="print the numbers as JSON")
    given = parser.parse_args()
    found = {drop: measured(drop, given.series, given.days, given.a_day, given.baseline) for drop in DROPS}
    print(json.dumps(found, indent=1) if given.json else "\n".join(in_words(*row) for row in found.items()))


def measured(drop: float, series: int, days: int, a_day: int, baseline: int) -> dict[str, dict[str, float | None]]:
    """Share of series whose gate ever shut, with half its 95 % interval, and the median day, by kind of interval."""
    rng = np.random.default_rng(0)
    first: dict[str, list[int | None]] = {"one look": [], "every look": []}
    for _ in range(series):
        before, after = drawn(MEAN, baseline, rng), drawn(MEAN - drop, days * a_day, rng)
        looks = {"one look": at_one_look(before, after, a_day), "every look": at_every_look(before, after, a_day)}
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
    first, second = ConfidenceSequence(0.025).add(before), ConfidenceSequence(0.025)
    found = []
    for n in range(a_day, len(after) + 1, a_day):
        second.add(after[n - a_day : n])
        value = float(after[:n].mean() - before.mean())
        found.append(Figure(value, second.low - first.high, second.high - first.low, n))
    return found


def shut_on(figures: Sequence[Figure]) -> int | None:
    """The first day on which the gate is shut."""
    condition = Condition("mean(p) drops by 0.03", "difference", "p", LIMIT, -1)
    return next((day for day, one in enumerate(figures, 1) if verdict(condition, one).status == "failed"), None)


def summed(shut: Sequence[int | None]) -> dict[str, float | None]:
    """The share that ever shut, half its 95 % interval, and the median day of those."""
    days = [day for day in shut if day is not None]
    share = len(days) / len(shut)
    half = 1.96 * float(np.sqrt(share * (1 - share) / len(shut)))
    return {"share": share, "half": half, "n": len(shut), "median day": float(np.median(days)) if days else None}


def in_words(drop: float, found: dict[str, dict[str, float | None]]) -> str:
    """One drop's row."""
    parts = []
    for kind, one in found.items():
        day = f", median day {one['median day']:.0f}" if one["median day"] else ""
        parts.append(f"{kind}: shut in {one['share']:.3f} ± {one['half']:.3f} of {one['n']:,}{day}")
    return f"drop {drop:.2f}: {'; '.join(parts)}"


if __name__ == "__main__":
    main()
