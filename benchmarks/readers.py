"""Blind sheets for readers of rubrics, and the figures of filled ones.

    python benchmarks/readers.py draw LOG --rubrics SET [SET …] --out FOLDER [--pairs 100] [--seed
    0]
    python benchmarks/readers.py measure FOLDER

`draw` writes, in random order and without a hint of what is what:

- `pairs.md`: a rubric and one of its first three quotes in its place (two turns before, one after);
every eighth pair
  is a decoy, whose quote is another rubric's. Readers say in a copy of `pairs.csv` whether the
  quote proves the rubric.
- `rubrics.md`: each headline rubric with its side, what it mostly consists of, and two quotes.
Readers say in a copy of
  `rubrics.csv` whether they would act on it, and whether it is about this domain.
- `key.json`: which pairs are decoys, and whose rubrics they are: the model's or built-in. No reader
sees it.

Copies are named `pairs-NAME.csv` and `rubrics-NAME.csv`; answers are y or n. `measure` prints
shares with Wilson's 95 % intervals for each reader and for what all readers say yes to, how many
decoys passed, and how often readers agree; where a set has rubrics of both kinds, for each kind by
itself, too.
"""

import argparse
import csv
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from small_form import BIKES, ROOT, Findings, arguments_of, run

from pollex.conversations.conversation import Conversation
from pollex.formats.fields import ReadOptions
from pollex.formats.read_logs import read_logs
from pollex.measures.distributions import compute_wilson_bounds
from pollex.rubrics.records import ChosenRubric
from pollex.rubrics.rubric import Quote
from pollex.rubrics.rubric_set import RubricSet

QUOTES = 3
EVERY = 8
"""One pair in so many is a decoy."""

BEFORE = 2
AFTER = 1
SIDES = {"sat": "goes with satisfaction", "dsat": "goes with dissatisfaction"}
QUESTIONS = {"pairs": ("proves",), "rubrics": ("act_on", "domain")}
YES = ("y", "yes", "1", "true")
NO = ("n", "no", "0", "false")

Answers = Mapping[str, Mapping[str, bool]]
"""By reader and number of the row."""


@dataclass(frozen=True)
class Pair:
    """A rubric and a quote; `decoy` where the quote is another rubric's."""

    rubric: ChosenRubric
    quote: Quote
    decoy: bool


def main() -> int:
    """Draw sheets, or measure filled ones."""
    parser = arguments_of(__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    drawing = verbs.add_parser("draw")
    drawing.add_argument("log")
    drawing.add_argument(
        "--rubrics",
        nargs="+",
        required=True,
        metavar="SET",
        help="of several splits, for more pairs",
    )
    drawing.add_argument("--out", type=Path, required=True)
    drawing.add_argument("--pairs", type=int, default=100)
    drawing.add_argument("--seed", type=int, default=0)
    measuring = verbs.add_parser("measure")
    measuring.add_argument("folder", type=Path)
    verbs.add_parser(
        "rehearse",
        help="draw from the recorded run, and fill the sheets as somebody who knows the key",
    )
    return run(parser, measure_all, ["rehearse"])


def measure_all(given: argparse.Namespace) -> Findings:
    """Draw sheets, measure filled ones, or both."""
    if given.verb == "measure":
        print("\n".join(measure(given.folder)))
        return Findings()
    if given.verb == "rehearse":
        return rehearsed()
    draw(given)
    return Findings()


def rehearsed() -> Findings:
    """Draw sheets, fill them by the key, and measure: no decoy passes, and every other quote proves."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        recorded = str(ROOT / "examples" / "recorded" / "rubrics.json")
        draw(argparse.Namespace(log=BIKES, rubrics=[recorded], out=folder, pairs=20, seed=0))
        key = json.loads((folder / "key.json").read_text("utf-8"))
        for sheet, questions in QUESTIONS.items():
            with (folder / f"{sheet}.csv").open(encoding="utf-8", newline="") as file:
                numbers = [int(row["number"]) for row in csv.DictReader(file)]
            with (folder / f"{sheet}-key.csv").open("w", encoding="utf-8", newline="") as file:
                form = csv.writer(file)
                form.writerow(["number", *questions])
                decoys = key["decoys"] if sheet == "pairs" else []
                form.writerows(
                    [number, *("n" if number in decoys else "y" for _ in questions)]
                    for number in numbers
                )
        lines = measure(folder)
    print("\n".join(lines))
    decoys, genuine = (
        next(line for line in lines if what in line)
        for what in ("decoys that passed, key", "  key")
    )
    return Findings(
        bars={
            "no decoy passes": ": 0.00" in decoys,
            "every other quote proves": ": 1.00" in genuine,
        }
    )


def draw(given: argparse.Namespace) -> None:
    """Draw sheets of what leads."""
    rubrics = headlined([RubricSet.load(path, arrays=False) for path in given.rubrics])
    texts = {c.id: c for c in read_logs([given.log], options=ReadOptions())}
    rng = np.random.default_rng(given.seed)
    pairs = drawn(rubrics, given.pairs, rng)
    write(given.out, pairs, [rubrics[i] for i in rng.permutation(len(rubrics))], texts)
    print(
        f"{len(pairs)} pairs, {sum(p.decoy for p in pairs)} of them decoys; {len(rubrics)} rubrics; in {given.out}"
    )


def headlined(sets: Sequence[RubricSet]) -> list[ChosenRubric]:
    """Return the headline rubrics of some sets, each text once."""
    every = [rubric for one in sets for rubric in one.rubrics if rubric.headlined and rubric.quotes]
    return list({(rubric.text, rubric.polarity): rubric for rubric in every}.values())


def drawn(rubrics: Sequence[ChosenRubric], most: int, rng: np.random.Generator) -> list[Pair]:
    """Draw pairs in random order, every eighth a decoy."""
    own = [Pair(rubric, quote, False) for rubric in rubrics for quote in rubric.quotes[:QUOTES]]
    own = [own[i] for i in rng.permutation(len(own))[: most - most // EVERY]]
    decoys = [
        decoy
        for decoy in (decoy_of(own[i], rubrics, rng) for i in rng.permutation(len(own)))
        if decoy
    ]
    pairs = [*own, *decoys[: round(len(own) / (EVERY - 1))]]
    return [pairs[i] for i in rng.permutation(len(pairs))]


def decoy_of(pair: Pair, rubrics: Sequence[ChosenRubric], rng: np.random.Generator) -> Pair | None:
    """Give a rubric the quote of one that tells of another event; None where there is none."""
    others = [rubric for rubric in rubrics if event_of(rubric) != event_of(pair.rubric)]
    own = {(quote.conversation_id, quote.turn) for quote in pair.rubric.quotes}
    strange = [
        q
        for rubric in others
        for q in rubric.quotes[:QUOTES]
        if (q.conversation_id, q.turn) not in own
    ]
    return Pair(pair.rubric, strange[int(rng.integers(len(strange)))], True) if strange else None


def event_of(rubric: ChosenRubric) -> str:
    """Return the event of a rubric without its topic; its text where it has none."""
    return rubric.source.split(" ")[0] if rubric.source.startswith("event:") else rubric.text


def write(
    folder: Path,
    pairs: Sequence[Pair],
    rubrics: Sequence[ChosenRubric],
    texts: Mapping[str, Conversation],
) -> None:
    """Write sheets, forms to be copied and filled, and the key."""
    folder.mkdir(parents=True, exist_ok=True)
    asked = "Does the quote, in its place, prove that the rubric holds here?"
    shown = [
        f"## Pair {n}\n\n**{p.rubric.text}**\n\n{placed(p.quote, texts)}"
        for n, p in enumerate(pairs, 1)
    ]
    (folder / "pairs.md").write_text(
        "\n\n".join([f"# {asked} (y or n)", *shown]) + "\n", encoding="utf-8"
    )
    asked = "Would you act on it (act_on)? Is it about this domain rather than any (domain)?"
    shown = [f"## Rubric {n}\n\n{told(rubric)}" for n, rubric in enumerate(rubrics, 1)]
    (folder / "rubrics.md").write_text(
        "\n\n".join([f"# {asked} (y or n)", *shown]) + "\n", encoding="utf-8"
    )
    for name, count in (("pairs", len(pairs)), ("rubrics", len(rubrics))):
        with (folder / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
            form = csv.writer(file)
            form.writerow(["number", *QUESTIONS[name]])
            form.writerows(
                [number, *("" for _ in QUESTIONS[name])] for number in range(1, count + 1)
            )
    key = {
        "decoys": [n for n, p in enumerate(pairs, 1) if p.decoy],
        "rubrics": [rubric.id for rubric in rubrics],
        "kinds": {
            "pairs": [kind_of(p.rubric) for p in pairs],
            "rubrics": [kind_of(rubric) for rubric in rubrics],
        },
    }
    (folder / "key.json").write_text(json.dumps(key), encoding="utf-8")


def kind_of(rubric: ChosenRubric) -> str:
    """Return by whom a rubric is answered: built-in, distilled or the set's model."""
    return rubric.answered_by or "model"


def placed(quote: Quote, texts: Mapping[str, Conversation]) -> str:
    """Return the turns around a quote, its own with the quote below."""
    turns = texts[quote.conversation_id].turns
    lines = []
    for place in range(max(0, quote.turn - BEFORE), min(len(turns), quote.turn + AFTER + 1)):
        lines.append(f"> {turns[place].role}: {' '.join(turns[place].content.split())}")
        if place == quote.turn:
            lines.append(f"> (the quote: “{' '.join(quote.text.split())}”)")
    return "\n>\n".join(lines)


def told(rubric: ChosenRubric) -> str:
    """Return a rubric as the report shows it: its side, what it mostly consists of, and two quotes."""
    quotes = [f"> “{' '.join(quote.text.split())}”" for quote in rubric.quotes[:2]]
    parts = [f"**{rubric.entry[0]}** {rubric.entry[1]} ({SIDES[rubric.polarity]})", *quotes]
    return "\n\n".join(filter(None, parts))


def measure(folder: Path) -> list[str]:
    """Return the figures of the filled sheets in a folder, a line each."""
    key = json.loads((folder / "key.json").read_text(encoding="utf-8"))
    decoys = {str(number) for number in key["decoys"]}
    lines = []
    for sheet, questions in QUESTIONS.items():
        for question in questions:
            answers = filled(folder, sheet, question)
            lines.append(f"{sheet}, {question}: {len(answers)} readers")
            if sheet == "pairs":
                passed = without(answers, decoys, keep=True)
                lines += [f"  decoys that passed, {line}" for line in shares(passed)]
            genuine = without(answers, decoys if sheet == "pairs" else set())
            lines += [f"  {line}" for line in shares(genuine)]
            lines += [f"  {line}" for line in by_kind(genuine, key.get("kinds", {}).get(sheet, []))]
            lines += [f"  {line}" for line in agreements(answers)]
    return lines


def by_kind(answers: Answers, kinds: Sequence[str]) -> list[str]:
    """Return the shares of each kind of rubric, where there is more than one."""
    numbers = {
        kind: {str(n) for n, own in enumerate(kinds, 1) if own == kind}
        for kind in sorted(set(kinds))
    }
    if len(numbers) < 2:
        return []
    return [
        f"{kind}, {line}"
        for kind, rows in numbers.items()
        for line in shares(without(answers, rows, keep=True))
    ]


def filled(folder: Path, sheet: str, question: str) -> dict[str, dict[str, bool]]:
    """Read the answers of every reader to one question; rows left empty are left out."""
    found: dict[str, dict[str, bool]] = {}
    for path in sorted(folder.glob(f"{sheet}-*.csv")):
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = [
                (row["number"].strip(), row[question].strip().casefold())
                for row in csv.DictReader(file)
            ]
        if odd := [number for number, said in rows if said and said not in (*YES, *NO)]:
            raise SystemExit(f"{path}: row {odd[0]}: the answer is neither y nor n")
        found[path.stem.removeprefix(f"{sheet}-")] = {
            number: said in YES for number, said in rows if said
        }
    return found


def without(
    answers: Answers, numbers: set[str], *, keep: bool = False
) -> dict[str, dict[str, bool]]:
    """Return the answers but those of some rows, or with `keep` those alone."""
    return {
        who: {n: said for n, said in own.items() if (n in numbers) == keep}
        for who, own in answers.items()
    }


def shares(answers: Answers) -> list[str]:
    """Return the share of yes of each reader, and of rows to which all say yes."""
    lines = [f"{who}: {share(list(own.values()))}" for who, own in answers.items()]
    if len(answers) > 1:
        common = set.intersection(*(set(own) for own in answers.values()))
        every = [all(own[n] for own in answers.values()) for n in sorted(common)]
        lines.append(f"all readers: {share(every)}")
        lines.append(
            f"answers together: {share([said for own in answers.values() for said in own.values()])}"
        )
    return lines


def share(said: Sequence[bool]) -> str:
    """Return a share of yes with its 95 % interval."""
    if not said:
        return "no answers"
    low, high = compute_wilson_bounds(sum(said) / len(said), len(said))
    return f"{sum(said) / len(said):.2f} [{low:.2f}, {high:.2f}] of {len(said)}"


def agreements(answers: Answers) -> list[str]:
    """Return how often each two readers say the same."""
    lines = []
    for one, other in combinations(answers, 2):
        common = answers[one].keys() & answers[other].keys()
        same = [answers[one][n] == answers[other][n] for n in common]
        lines.append(f"{one} and {other} agree: {share(same)}")
    return lines


if __name__ == "__main__":
    raise SystemExit(main())
