"""Conversations, and a rubric set whose judge is a model: what a scoring run needs, without learning first."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pollex.conversations.conversation import Conversation, Label, Turn
from pollex.measures.classification import Assessment
from pollex.measures.intervals import Figure
from pollex.prompts.domain import DomainProfile
from pollex.rubrics.judge_settings import JudgeSettings
from pollex.rubrics.records import ChosenRubric, DataRecord, JudgeRecord
from pollex.rubrics.rubric import Polarity
from pollex.rubrics.rubric_set import RubricSet, hash_rubrics
from pollex.selection.threshold import Calibration, Window

MODEL = "fake-model"

_TOPICS = (
    "the parser",
    "a null reference",
    "the build",
    "a slow query",
    "the login page",
    "an off-by-one error",
)
_FIXES = (
    "adds a check",
    "moves the call",
    "renames the field",
    "closes the handle",
    "escapes the path",
)
_ENDS = {
    Label.POSITIVE: (
        "Thanks, {topic} works now.",
        "Perfect, thank you! {topic} is fine.",
        "That was it, thanks.",
    ),
    Label.NEGATIVE: (
        "No, {topic} still fails.",
        "You said that already and it is wrong.",
        "Forget it, I give up.",
    ),
}


def conversation(number: int, words: int = 60) -> Conversation:
    """A conversation of about six times so many characters; every other one ends well."""
    label = Label.POSITIVE if number % 2 else Label.NEGATIVE
    topic = _TOPICS[number % len(_TOPICS)]
    fix = _FIXES[number % len(_FIXES)]
    filler = " ".join(f"line{(number * 7 + i) % 97}" for i in range(words))
    turns = [
        ("user", f"Problem {number}: {topic} breaks. {filler}"),
        ("assistant", f"This {fix} in {topic}; run it again. {filler}"),
        ("user", _ENDS[label][number % 3].format(topic=topic)),
    ]
    said = tuple(Turn(role=role, content=content) for role, content in turns)  # type: ignore[arg-type]
    return Conversation(id=f"c{number:05d}", turns=said, label=label)


def write_log(path: Path, count: int, words: int = 60) -> Path:
    """A log of `count` conversations as JSON lines."""
    with path.open("w", encoding="utf-8") as file:
        for row in rows(count, words):
            file.write(json.dumps(row) + "\n")
    return path


def rows(count: int, words: int = 60) -> Iterator[dict[str, Any]]:
    """The rows of a log."""
    for number in range(count):
        one = conversation(number, words)
        turns = [{"role": turn.role, "content": turn.content} for turn in one.turns]
        yield {
            "id": one.id,
            "messages": turns,
            "feedback": "up" if one.label is Label.POSITIVE else "down",
        }


def rubric_set(place: str, *, sat: int = 10, dsat: int = 10, **options: Any) -> RubricSet:
    """Rubrics of both kinds, as if they had been learnt with the model at `place`."""
    rubrics = tuple(
        _rubric(kind, number)
        for kind, count in (("sat", sat), ("dsat", dsat))
        for number in range(count)
    )
    made_with = {
        "elicitation": "batched",
        "samples": 1,
        "canary": True,
        "straight_lining": True,
        "without": [],
    }
    undefined = Figure(value=None, n=0, undefined="never measured")
    names = set(Assessment.__dataclass_fields__) - {"n", "positives", "negatives"}
    return RubricSet(
        pollex="0",
        created="2026-01-01T00:00:00+00:00",
        run="learn-0-0000",
        roles={"judge": MODEL},
        domain=DomainProfile.neutral(),
        rubrics=rubrics,
        theta=0.0,
        window=Window(lower=-5.0, upper=5.0, precision=0.9),
        calibration=Calibration(slope=0.1, intercept=0.0),
        alpha=1.0,
        judge=JudgeRecord(
            kind="llm",
            name=MODEL,
            fingerprint="0",
            options=JudgeSettings(
                **{"place": place, "scale": "likert-domain", **made_with, **options}
            ),
        ),
        data=DataRecord(
            fingerprint="0",
            conversations=0,
            positives=0,
            negatives=0,
            unlabeled=0,
            not_scorable=0,
            training=0,
            held_out=0,
            test_fraction=0.5,
            seed=0,
        ),
        training=Assessment(n=0, positives=0, negatives=0, **dict.fromkeys(names, undefined)),
        held_out=None,
        rubrics_digest=hash_rubrics(rubrics),
    )


def _rubric(kind: Polarity, number: int) -> ChosenRubric:
    mood = "glad" if kind == "sat" else "upset"
    text = f"The user is {mood} about how matter {number:03d} of the work was handled."
    return ChosenRubric(text=text, written=text, polarity=kind, id=f"{kind}{number:02d}")
