"""Preference data: two answers to the same prompt, of which people preferred one.

Pairs count as thumbs only if the user says so.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from typing import Any

from pollex.conversations.conversation import Turn
from pollex.errors import BadInput
from pollex.formats.assembly.pieces import PAIR, Piece, Score, Talk
from pollex.formats.log_shapes.exports import Fields, facts, inside, objects, required, text
from pollex.formats.log_shapes.turns import turns_of

_SPOKEN = re.compile(r"\n\n(Human|Assistant):")


def _sides(pair: str, sides: Mapping[str, tuple[tuple[Turn, ...], object]], **said: object) -> Iterator[Piece]:
    """Yield the conversations of a pair, in one group, each with its rating."""
    for name, (turns, value) in sides.items():
        id_ = f"{pair}#{name}"
        yield Talk(id_, turns, facts=facts(pair=pair, **said))
        yield Score("conversation", id_, value, source=PAIR)


def read_chosen(fields: Fields) -> Iterator[Piece]:
    first = [{"role": "user", "content": fields["prompt"]}] if isinstance(fields.get("prompt"), str) else []
    found = {name: _turns(fields.get(name), first) for name in ("chosen", "rejected")}
    pair = text(fields.get("prompt_id")) or text(fields.get("id")) or _digest(found)
    yield from _sides(pair, {"chosen": (found["chosen"], "up"), "rejected": (found["rejected"], "down")})


def _turns(value: object, first: list[Any]) -> tuple[Turn, ...]:
    """Read a list of messages, a dialogue in one text, or a single answer."""
    if isinstance(value, list):
        return turns_of(value)
    if not isinstance(value, str):
        raise BadInput("an answer of a pair is neither text nor messages", remedy="give chosen and rejected as text")
    parts = _SPOKEN.split(value)
    spoken = [{"role": role, "content": said.strip()} for role, said in zip(parts[1::2], parts[2::2], strict=True)]
    return turns_of(spoken) if spoken else turns_of([*first, {"role": "assistant", "content": value}])


def _digest(value: object) -> str:
    return "pair-" + hashlib.sha256(repr(value).encode("utf-8", "replace")).hexdigest()[:16]


def read_preferred(fields: Fields) -> Iterator[Piece]:
    """Fine-tuning by preference."""
    before = objects(inside(fields.get("input")).get("messages"))
    sides = {
        name: turns_of([*before, *objects(fields.get(name))]) for name in ("preferred_output", "non_preferred_output")
    }
    values = ("up", "down")
    yield from _sides(_digest(sides), {n: (t, v) for (n, t), v in zip(sides.items(), values, strict=True)})


def read_arena(fields: Fields) -> Iterator[Piece]:
    """Yield a comparison of two models; ties have no label, both bad two negative ones."""
    winner = str(fields.get("winner") or "")
    bad = "bad" in winner
    pair = required(fields, "id", "question_id")
    sides = {}
    for side in ("a", "b"):
        value = (
            "down"
            if bad or winner == f"model_{'b' if side == 'a' else 'a'}"
            else "up"
            if winner == f"model_{side}"
            else None
        )
        sides[side] = (turns_of(fields.get(f"conversation_{side}")), value or "none")
    yield from _sides(pair, sides, by=text(fields.get("judge")))


def read_ultrafeedback(fields: Fields) -> Iterator[Piece]:
    """Yield the best completion as positive and the worst as negative, by overall score."""
    asked = [{"role": "user", "content": fields.get("instruction") or ""}]
    known = objects(fields.get("completions"))
    completions = [one for one in known if isinstance(one.get("overall_score"), int | float)]
    scores = [one["overall_score"] for one in completions]
    if len(completions) < 2 or min(scores) == max(scores):
        return
    sides = {}
    for name, index in (("best", scores.index(max(scores))), ("worst", scores.index(min(scores)))):
        answer = {"role": "assistant", "content": completions[index].get("response") or ""}
        sides[name] = (turns_of([*asked, answer]), "up" if name == "best" else "down")
    yield from _sides(_digest(fields.get("instruction")), sides)
