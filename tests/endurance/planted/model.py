"""The simulated model: it reads a prompt as a person of the planted world would, with slips of known frequency.

It is given messages and nothing else. Slips come from a hash of what it reads, so that the same
call has the same reply in every process. What it is taken to be like where no paper says it is in
`Reader`.
"""

import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sealed import unseal

from planted.world import Signal, signal_of, signals
from pollex.rubrics.answers import NEVER_CAME_UP_OPTION

Message = Mapping[str, Any]
Items = list[dict[str, Any]]

MOST_REASONS = 3
_PART_OF = {"assistant": "act", "user": "effect"}
_ITEM = re.compile(r'^(\d+)\. (".*")$', re.MULTILINE)
_IN_A_LINE = re.compile(r"then `answer`, one of: (.*?)\. For a statement")
_LISTED = re.compile(r"^  - ([^:\n]+)", re.MULTILINE)
_CANARY = re.compile(r'The user uses the word "(\w+)" in their first message\.')
_MOST = re.compile(r"at most (\d+)")


@dataclass(frozen=True)
class Reader:
    """How well the model reads.

    Attributes:
        agreement: How often it says of a rubric, or notices in a conversation, what is true.
        unguided: How often it notices, without being told of the domain or of what either party is
            to do, a signal that takes knowing it. An assumption; no paper gives the figure.
        unguided_agreement: As `agreement`, for rubrics about the domain where a judge isn't told of
            it. An assumption.
        scatter: Standard deviation of grades on a scale of more than five steps, as a share of it.
            An assumption.
    """

    agreement: float = 0.85
    unguided: float = 0.2
    unguided_agreement: float = 0.7
    scatter: float = 0.2
    seed: int = 0

    def reply(self, messages: Sequence[Message]) -> str | None:
        """The answer to one of pollex's prompts; None for anything else."""
        if len(messages) < 3:
            return None
        rules = str(messages[0]["content"])
        task = str(messages[-1]["content"])
        items = unsealed(str(messages[1]["content"]))
        told = {"plain"} | ({"domain"} if "\nThe domain\n" in rules else set())
        told |= {"design"} if "Both parties answer for the progress" in task else set()
        for mark, answer in (
            ("rated this conversation thumbs", self._extraction),
            ("`covered`:", self._summary),
            ("`same`:", self._same),
            ("`revised`:", self._revision),
        ):
            if mark in task:
                return json.dumps(answer(items, task, frozenset(told)))
        return (
            json.dumps(self._answers(items, task, "\nRoughly ideal: " in rules))
            if _ITEM.search(task)
            else None
        )

    def luck(self, *parts: object) -> float:
        """A number from 0 to 1 that depends on the parts and the seed alone."""
        digest = hashlib.sha256("\x1f".join([str(self.seed), *map(str, parts)]).encode()).digest()
        return int.from_bytes(digest[:7], "big") / 2**56

    def level(self, text: str, said: str, happens: bool, agreement: float) -> float:
        """How far it agrees with a rubric, from 0 to 1, on five steps: on the true side as often as `agreement`."""
        true = self.luck("judge", text, said) < agreement
        return (0.75 if happens == true else 0.0) + 0.25 * (self.luck("strength", text, said) < 0.5)

    def _notices(self, signal: Signal, told: frozenset[str], *parts: object) -> bool:
        chance = self.agreement * (1.0 if signal.kind in told else self.unguided)
        return self.luck("notice", signal.key, *parts) < chance

    def _extraction(self, items: Items, task: str, told: frozenset[str]) -> dict[str, Any]:
        """Reasons that are there and noticed; as often as a slip, one that isn't there, with any words as its proof."""
        polarity = "sat" if "thumbs up" in task else "dsat"
        said = json.dumps(items)
        mine = [signal for signal in signals() if signal.polarity == polarity]
        found: list[tuple[Signal, dict[str, Any]]] = [
            (signal, {"part": _PART_OF[item["role"]], "turn": item["i"], "quote": line})
            for signal in mine
            if self._notices(signal, told, said)
            for item in items
            for line in signal.lines
            if line in item["text"]
        ]
        if self.luck("imagine", said) > self.agreement:
            imagined = mine[int(self.luck("which", said) * len(mine))]
            last = {"part": "effect", "turn": items[-1]["i"], "quote": items[-1]["text"]}
            found.append((imagined, last))
        found.sort(key=lambda pair: self.luck("order", pair[0].key, said))
        first = {"part": "occasion", "turn": items[0]["i"], "quote": items[0]["text"][:40]}
        reasons = [
            {"quotes": [first, quote], "reason": self._wording(signal, said)}
            for signal, quote in found
        ]
        return {"summary": "A developer asked and was answered.", "reasons": reasons[:MOST_REASONS]}

    def _wording(self, signal: Signal, *parts: object) -> str:
        return signal.texts[int(self.luck("words", signal.key, *parts) * len(signal.texts))]

    def _by_signal(self, items: Items, told: frozenset[str]) -> dict[Signal, list[int]]:
        """The reasons that it understands, by what they speak of."""
        by_signal: defaultdict[Signal, list[int]] = defaultdict(list)
        for item in items:
            signal = signal_of(item["reason"]) if "reason" in item else None
            if signal and (
                signal.kind in told or self.luck("sum up", signal.key, item["i"]) < self.unguided
            ):
                by_signal[signal].append(item["i"])
        return by_signal

    def _summary(self, items: Items, task: str, told: frozenset[str]) -> dict[str, Any]:
        """A rubric for each thing that the reasons speak of and no known rubric does; a slip words a known one anew."""
        known = {signal_of(item["rubric"]): item["known"] for item in items if "known" in item}
        covered = []
        new = []
        most = _MOST.search(task)
        fewest = 2 if "A single reason makes no rubric" in task else 1
        for signal, reasons in self._by_signal(items, told).items():
            if (
                signal in known
                and self.luck("known", signal.key, json.dumps(items)) < self.agreement
            ):
                covered.append({"known": known[signal], "reasons": reasons})
            elif len(reasons) >= fewest:
                new.append({"reasons": reasons, "text": self._wording(signal, items)})
        new.sort(key=lambda rubric: -len(rubric["reasons"]))
        return {"covered": covered, "rubrics": new[: int(most[1]) if most else None]}

    def _same(self, items: Items, task: str, told: frozenset[str]) -> dict[str, Any]:
        """Rubrics that speak of one thing."""
        groups: defaultdict[Signal | None, list[int]] = defaultdict(list)
        for item in items:
            groups[signal_of(item["rubric"])].append(item["i"])
        return {
            "same": [group for signal, group in groups.items() if signal and len(group) > 1],
            "mirrored": [],
        }

    def _revision(self, items: Items, task: str, told: frozenset[str]) -> dict[str, Any]:
        """What this batch speaks of most, then what stood there before: it has seen no other batch."""
        known = {signal_of(item["rubric"]): item["known"] for item in items if "known" in item}
        by_signal = self._by_signal(items, told)
        most = _MOST.search(task)
        ranked = sorted(
            {*by_signal, *(s for s in known if s)},
            key=lambda s: (-len(by_signal.get(s, ())), s.key),
        )
        return {
            "revised": [
                {
                    "known": [known[signal]] if signal in known else [],
                    "reasons": by_signal.get(signal, []),
                    "text": self._wording(signal, "revision"),
                }
                for signal in ranked[: int(most[1]) if most else None]
            ]
        }

    def _answers(self, items: Items, task: str, in_domain: bool) -> dict[str, Any]:
        options = _options_of(task)
        said = [item["text"] for item in items]
        first = next((item["text"] for item in items if item["role"] == "user"), "")
        found = {}
        for number, written in _ITEM.findall(task):
            text = json.loads(written)
            level = self._opinion(text, said, first, in_domain)
            if len(options) > 5:
                # uniform, of that deviation
                level += self.scatter * 3.46 * (self.luck("scatter", text, said) - 0.5)
            place = round(min(max(level, 0.0), 1.0) * (len(options) - 1))
            found[number] = {
                "why": f"As to {text}",
                "turns": [items[0]["i"]],
                "answer": options[place],
            }
        return found

    def _opinion(self, text: str, said: Sequence[str], first: str, in_domain: bool) -> float:
        if canary := _CANARY.fullmatch(text):
            return 1.0 if canary[1] in first else 0.0
        if text == "The user writes a message.":
            return 1.0
        signal = signal_of(text)
        if signal is None:
            return 0.5
        vague = signal.kind == "domain" and not in_domain
        agreement = min(self.agreement, self.unguided_agreement) if vague else self.agreement
        return self.level(text, "\n".join(said), signal.happens(said), agreement)


def _options_of(task: str) -> list[str]:
    """The options by degree, without the one that says there was no occasion."""
    if in_a_line := _IN_A_LINE.search(task):
        return in_a_line[1].split(", ")
    return [option for option in _LISTED.findall(task) if option != NEVER_CAME_UP_OPTION]


def unsealed(message: str) -> Items:
    """The items between the boundary lines; none where it isn't one of pollex's prompts."""
    try:
        items = unseal(message)
    except json.JSONDecodeError:
        return []
    return items if isinstance(items, list) else []
