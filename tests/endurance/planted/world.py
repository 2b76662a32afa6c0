"""What happens in the planted world, and conversations in which it does."""

import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

from pollex.conversations.conversation import Conversation, Label, Turn
from pollex.rubrics.rubric import Polarity

WITH_THE_THUMB, AGAINST_IT, WHATEVER_IT_IS = 0.55, 0.15, 0.35
"""How often a planted signal occurs where the thumb is its own and where it isn't, and how often any other occurs."""

_OPENINGS = (
    "My program fails when I sort orders.",
    "The cart shows a wrong total.",
    "A page stays blank after login.",
)
_ANSWERS = (
    "Change the comparison in the second line.",
    "Move the call below the check.",
    "Rename the field as shown.",
)
_CLOSINGS = ("I will look at it tomorrow.", "That is all for today.", "Over to the next ticket.")


@dataclass(frozen=True)
class Signal:
    """Something that can happen; see `signals.toml`."""

    polarity: Polarity
    key: str
    kind: Literal["plain", "domain", "design"]
    role: Literal["user", "assistant"]
    lines: tuple[str, ...]
    topic: str
    texts: tuple[str, ...]

    def spoken_of(self, text: str) -> bool:
        """Whether a text, as of a rubric, is about this."""
        return re.search(self.topic, text, re.IGNORECASE) is not None

    def happens(self, turns: Iterable[str]) -> bool:
        """Whether any of the turns says it."""
        return any(line in turn for turn in turns for line in self.lines)


@lru_cache(maxsize=1)
def signals() -> tuple[Signal, ...]:
    """All that can happen, SAT first."""
    stored = tomllib.loads(Path(__file__).with_name("signals.toml").read_text(encoding="utf-8"))
    kinds: tuple[Polarity, ...] = ("sat", "dsat")
    return tuple(
        Signal(
            **(row | {"polarity": kind, "lines": tuple(row["lines"]), "texts": tuple(row["texts"])})
        )
        for kind in kinds
        for row in stored[kind]
    )


@lru_cache(maxsize=4096)
def signal_of(text: str) -> Signal | None:
    """What a text speaks of, where it speaks of one signal alone."""
    found = [signal for signal in signals() if signal.spoken_of(text)]
    return found[0] if len(found) == 1 else None


@dataclass(frozen=True)
class World:
    """Which signals have to do with the thumb, and conversations.

    Attributes:
        planted: So many signals of each polarity; the generator of `seed` draws which.
    """

    seed: int
    planted: int = 6

    @cached_property
    def causes(self) -> tuple[Signal, ...]:
        """The planted signals."""
        rng = np.random.default_rng([self.seed, 0])
        chosen = []
        for kind in ("sat", "dsat"):
            every = [signal for signal in signals() if signal.polarity == kind]
            chosen += [
                every[i] for i in sorted(rng.choice(len(every), self.planted, replace=False))
            ]
        return tuple(chosen)

    def chances(self, positive: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
        """How likely each signal is in each conversation `[conversation, signal]`."""
        sat = np.array([signal.polarity == "sat" for signal in signals()])
        cause = np.array([signal in self.causes for signal in signals()])
        own = positive[:, None] == sat[None, :]
        return np.where(cause, np.where(own, WITH_THE_THUMB, AGAINST_IT), WHATEVER_IT_IS)

    def happenings(self, count: int) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
        """Thumbs `[conversation]`, as many up as down, and what happens `[conversation, signal]`."""
        rng = np.random.default_rng([self.seed, 1])
        positive = rng.permutation(np.arange(count) % 2 == 0)
        return positive, rng.random((count, len(signals()))) < self.chances(positive)

    def conversations(self, count: int) -> list[Conversation]:
        """Conversations with thumbs, in which the signals are lines of user or assistant."""
        rng = np.random.default_rng([self.seed, 2])
        positive, happens = self.happenings(count)
        return [
            Conversation(
                id=f"c{number:04d}",
                turns=_turns(
                    number, [signal for signal, it in zip(signals(), row, strict=True) if it], rng
                ),
                label=Label.POSITIVE if up else Label.NEGATIVE,
            )
            for number, (up, row) in enumerate(zip(positive, happens, strict=True))
        ]

    def write_log(self, path: Path, count: int) -> Path:
        """The conversations as JSON lines."""
        with path.open("w", encoding="utf-8") as file:
            for one in self.conversations(count):
                turns = [{"role": turn.role, "content": turn.content} for turn in one.turns]
                thumb = "up" if one.label is Label.POSITIVE else "down"
                file.write(json.dumps({"id": one.id, "messages": turns, "feedback": thumb}) + "\n")
        return path

    def recovered(self, texts: Iterable[str]) -> float:
        """Share of the planted signals that any of the rubrics speaks of."""
        found = {signal_of(text) for text in texts}
        return len(found.intersection(self.causes)) / len(self.causes)


def _turns(number: int, happening: Sequence[Signal], rng: np.random.Generator) -> tuple[Turn, ...]:
    """An opening, what happens in any order, a closing; what one party says in a row is one turn."""
    said = [
        ("user", f"{_OPENINGS[number % 3]} Ticket {number}."),
        ("assistant", _ANSWERS[number % 3]),
    ]
    said += [
        (signal.role, str(rng.choice(signal.lines)))
        for signal in rng.permutation(np.array(happening, object))
    ]
    said.append(("user", _CLOSINGS[number % 3]))
    return tuple(Turn(role=role, content=content) for role, content in _joined(said))  # type: ignore[arg-type]


def _joined(said: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    role = said[0][0]
    lines = [said[0][1]]
    for speaker, line in said[1:]:
        if speaker != role:
            yield role, " ".join(lines)
            role = speaker
            lines = []
        lines.append(line)
    yield role, " ".join(lines)
