"""How fast turns are embedded: `python benchmarks/embedding.py --data LOG [LOG …] [--turns 2000]`.

Prints turns a second of our MiniLM and of sentence-transformers with the same weights, in turn in the same run, their
ratio, and how far the cosines differ.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator

import numpy as np

from pollex.agents.embedded.embedder import Encoder, SentenceTransformersEncoder
from pollex.agents.embedded.minilm import MiniLM, model_folder
from pollex.formats.read_logs import read_logs


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", required=True, metavar="LOG")
    parser.add_argument("--turns", type=int, default=2000, help="different turns to embed")
    parser.add_argument("--rounds", type=int, default=3, help="the best of so many counts")
    arguments = parser.parse_args()
    turns = sorted(different_turns(arguments.data))
    np.random.default_rng(0).shuffle(turns)
    turns = turns[: arguments.turns]
    encoders: dict[str, Encoder] = {
        "pollex": MiniLM(),
        "sentence-transformers": SentenceTransformersEncoder(str(model_folder())),
    }
    seconds = {name: min(rounds) for name, rounds in timed(encoders, turns, arguments.rounds).items()}
    words = np.mean([len(turn.split()) for turn in turns])
    print(f"{len(turns)} different turns of {words:.0f} words on average, best of {arguments.rounds} rounds")
    for name, best in seconds.items():
        print(f"{name:<22} {len(turns) / best:7.0f} turns/s")
    print(f"ratio                  {seconds['sentence-transformers'] / seconds['pollex']:7.2f}")
    ours, theirs = (encoder.encode(turns) for encoder in encoders.values())
    print(f"lowest cosine of a turn's two embeddings: 1 − {1 - (ours * theirs).sum(axis=1).min():.1e}")
    print(f"largest change of a pair's cosine: {pair_change(ours, theirs):.1e}")
    print(f"{os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f}")


def different_turns(paths: list[str]) -> set[str]:
    """What users and assistants said, each text once."""
    conversations = (conversation for path in paths for conversation in read_logs(path))
    return {turn.content.strip() for c in conversations for turn in c.turns if turn.role in ("user", "assistant")}


def timed(encoders: dict[str, Encoder], turns: list[str], rounds: int) -> dict[str, list[float]]:
    """Seconds a round; encoders take turns, so that what else the machine does falls on all of them."""
    found: dict[str, list[float]] = {name: [] for name in encoders}
    for encoder in encoders.values():
        encoder.encode(turns[:64])
    for name in orders(list(encoders), rounds):
        start = time.perf_counter()
        encoders[name].encode(turns)
        found[name].append(time.perf_counter() - start)
    return found


def orders(names: list[str], rounds: int) -> Iterator[str]:
    """All names a round, every second round backwards."""
    for number in range(rounds):
        yield from names if number % 2 == 0 else reversed(names)


def pair_change(ours: np.ndarray, theirs: np.ndarray) -> float:
    """The largest difference of the two models' cosines over all pairs of turns."""
    return float(abs(ours @ ours.T - theirs @ theirs.T).max())


if __name__ == "__main__":
    main()
