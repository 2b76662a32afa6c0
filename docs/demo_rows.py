"""The rubrics that README quotes: of the demo, or of the recorded run with those of its model alone.

python docs/demo_rows.py [--recorded] [--json FILE]
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from pollex.rubrics.headlines import list_headlines
from pollex.rubrics.records import ChosenRubric
from pollex.rubrics.rubric import Polarity
from pollex.rubrics.rubric_set import RubricSet
from pollex.rubrics.worth import (
    FEW_CONVERSATIONS_OF_WORTH,
    describe_doubt_about_rubric,
    describe_occasion_of_worth,
    format_hits,
    get_counted_thumbs,
)

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "benchmarks"))
from small_form import Findings, arguments_of, run, table  # noqa: E402

ROWS = {"demo": 6, "recorded": 4}
"""Rows that README quotes, by run: of the recorded run those of the model."""


def main() -> int:
    """Make the demo, and print what leads in it."""
    parser = arguments_of(__doc__)
    parser.add_argument("--recorded", action="store_true")
    return run(parser, measure, [])


def measure(asked: argparse.Namespace) -> Findings:
    """Make the demo in a folder of its own."""
    options = ["--recorded"] if asked.recorded else []
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pollex", "demo", "--out", "demo", *options]
        subprocess.run(command, cwd=folder, check=True, capture_output=True)  # noqa: S603 - ours
        demo = Path(folder) / "demo"
        rubric_set = RubricSet.load(demo / "rubrics.json", arrays=False)
        texts = {
            "rows": table_of(demo, "recorded" if asked.recorded else "demo"),
            "auc": auc_of(rubric_set),
        }
    return Findings(texts, bars={"rubrics lead": len(texts["rows"].splitlines()) > 2})


def table_of(demo: Path, name: str) -> str:
    """Return what leads in a demo's folder, as a Markdown table."""
    rubric_set = RubricSet.load(demo / "rubrics.json", arrays=False)
    rows = rows_of(rubric_set, ROWS[name], by_model=name == "recorded")
    return table(["rubric", "quote", f"thumbs down {of_which(rubric_set)}"], rows)


def auc_of(rubric_set: RubricSet) -> str:
    """Return the set's AUC with its interval."""
    auc = rubric_set.held_out.auc if rubric_set.held_out else None
    if auc is None or auc.value is None:
        return "not measured"
    return f"{auc.value:.3f} [{auc.low:.3f}, {auc.high:.3f}], n = {rubric_set.data.held_out}"


def rows_of(found: RubricSet, most: int, *, by_model: bool) -> list[list[str]]:
    """Return the rubrics that README quotes, half of each side if there are: text, quote and figures.

    Args:
        by_model: Whether only those of a model count, near twins of built-in ones, too.
    """
    chosen: list[ChosenRubric] = []
    sides: tuple[tuple[Polarity, int], ...] = (("sat", most // 2), ("dsat", most))
    for side, room in sides:
        listed = list_headlines(found.rubrics, side)
        own = [
            each
            for one in listed
            for each in ((one.rubric, *one.also) if by_model else (one.rubric,))
        ]
        kept = [
            one
            for one in own
            if one.quotes and told(one) is not None and ("@" in one.source or not by_model)
        ]
        chosen += sorted(kept, key=rank)[: room if side == "sat" else most - len(chosen)]
    return [[one.text, f"“{one.quotes[0].text}”", figures(one)] for one in sorted(chosen, key=rank)]


def rank(one: ChosenRubric) -> tuple[bool, float]:
    """Put what is more than chance first, and larger differences."""
    return told(one) != "", -abs(gap(one))


def told(one: ChosenRubric) -> str | None:
    """Return what is said of a rubric's figures: nothing, or that they are few; None where README doesn't quote it."""
    if one.worth is None or one.worth.down_with.value is None:
        return None
    why = describe_doubt_about_rubric(one.worth, one.polarity).partition(":")[0]
    return None if why and one.worth.down_with.n >= FEW_CONVERSATIONS_OF_WORTH else why


def gap(one: ChosenRubric) -> float:
    """Return the share of thumbs down with a rubric minus that of what it is compared with."""
    assert one.worth is not None, "it was measured"
    return (one.worth.down_with.value or 0) - (one.worth.down_others.value or 0)


def figures(one: ChosenRubric) -> str:
    """Return the shares of thumbs down with a rubric and in what it is compared with."""
    assert one.worth is not None, "it was measured"
    counted = get_counted_thumbs(one.worth)
    place = "elsewhere"
    if one.worth.compared == "occasion":
        place = f"of the others {describe_occasion_of_worth(one.worth)}"
    shares = (
        format_hits(counted.there),
        f"{format_hits(counted.others)} {place}",
        told(one),
    )
    return "; ".join(filter(None, shares))


def of_which(found: RubricSet) -> str:
    """Say of which conversations a set's shares are."""
    n = found.data.held_out
    return (
        f"on at most {n}, each by rubrics learned without it"
        if found.data.folds
        else f"on {n} others"
    )


if __name__ == "__main__":
    raise SystemExit(main())
