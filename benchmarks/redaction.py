"""How much of what says who somebody is gets redacted, and how much else: `python benchmarks/redaction.py [--wrong]`.

Reads `redaction.txt` beside it: sentences of ours, invented, in which `{{KIND|text}}` marks what
has to go; those without a mark hold what only looks like it (prices, dates, versions, order
numbers). Prints recall (marked texts that are covered to the last character) and precision (found
texts that lie in a marked one) with 95 % Wilson intervals, by kind and in all. The patterns were
written with sentences of this kind in mind: on other texts both will be lower.
"""

import argparse
import re
from collections import Counter
from pathlib import Path

from small_form import Findings, arguments_of, run

from pollex.conversations.redaction import Identifier, find_identifiers
from pollex.rubrics.worth import compute_share_with_interval

SET = Path(__file__).with_suffix(".txt")
_MARK = re.compile(r"\{\{(?P<kind>[A-Z]+)\|(?P<text>.*?)\}\}")


def unmarked(line: str) -> tuple[str, list[Identifier]]:
    """The sentence without marks, and what was marked in it."""
    line = line.replace("~", "")  # it keeps scanners for leaked keys quiet
    text = ""
    marks = []
    end = 0
    for mark in _MARK.finditer(line):
        text += line[end : mark.start()]
        marks.append(Identifier(len(text), len(text) + len(mark["text"]), mark["kind"]))
        text = text + mark["text"]
        end = mark.end()
    return text + line[end:], marks


def main() -> int:
    """Print the table."""
    parser = arguments_of(__doc__)
    parser.add_argument(
        "--wrong", action="store_true", help="list what was missed, and what was found wrongly"
    )
    return run(parser, measure_all, [])


def measure_all(arguments: argparse.Namespace) -> Findings:
    """Measure what was asked for."""
    marked, covered, found, right = (Counter[str]() for _ in range(4))
    lines = SET.read_text(encoding="utf-8").splitlines()
    for line in lines:
        text, marks = unmarked(line)
        hits = find_identifiers(text)
        for mark in marks:
            marked[mark.kind] += 1
            seen = any(hit.start <= mark.start and mark.end <= hit.end for hit in hits)
            covered[mark.kind] += seen
            if arguments.wrong and not seen:
                print(f"missed {mark.kind}: {text}")
        for hit in hits:
            found[hit.kind] += 1
            inside = any(mark.start <= hit.start and hit.end <= mark.end for mark in marks)
            right[hit.kind] += inside
            if arguments.wrong and not inside:
                print(f"wrong {hit.kind} {text[hit.start : hit.end]!r}: {text}")
    print(
        f"{len(lines)} sentences, {marked.total()} texts to redact, "
        f"{sum('{{' not in line for line in lines)} sentences without any"
    )
    print(f"{'':10}{'recall':>24}{'precision':>30}")
    for kind in sorted(marked):
        print(
            f"{kind:10}{figure(covered[kind], marked[kind]):>24}{figure(right[kind], found[kind]):>30}"
        )
    print(
        f"{'all':10}{figure(covered.total(), marked.total()):>24}{figure(right.total(), found.total()):>30}"
    )
    recall = covered.total() / marked.total()
    precision = right.total() / found.total()
    return Findings(
        bars={"recall is at least .8": recall >= 0.8, "precision is at least .9": precision >= 0.9}
    )


def figure(hits: int, of: int) -> str:
    """A share with its interval."""
    share = compute_share_with_interval(hits, of)
    return f"{share.value:.3f} [{share.low:.3f}, {share.high:.3f}] n={of}" if of else "-"


if __name__ == "__main__":
    raise SystemExit(main())
