"""Attention checks: questions that every attentive reader of the conversation answers correctly.

One goes with each judging call. A judge that fails it didn't read, or followed instructions in the conversation: its
other answers in the call are suspect. The canary takes the side that a planted instruction would not: among rubrics of
satisfaction, where agreement may have been ordered, it is false; among those of dissatisfaction it is true.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Sequence
from dataclasses import dataclass

from pollex.conversations.conversation import Conversation
from pollex.rubrics.answers import LIKERT, Answer, Question, Unanswered

_WORD = re.compile(r"[^\W\d_]{2,}")
_LONGEST = 12
_OPENING = 300
_ABSENT = (
    *("accordion", "blizzard", "cathedral", "dolphin", "elevator", "fountain", "giraffe", "harvest", "iceberg"),
    *("jasmine", "kangaroo", "lighthouse", "marmalade", "nightingale", "orchestra", "pineapple", "quarry", "rhubarb"),
    *("saxophone", "trampoline", "umbrella", "volcano", "walnut", "xylophone", "yoghurt", "zeppelin"),
)


@dataclass(frozen=True, slots=True)
class Canary:
    """A statement of known truth.

    Attributes:
        place: Where it stands among the other questions, from 1.
    """

    text: str
    true: bool
    place: int

    def passed(self, chosen: int) -> bool:
        """Return whether the Likert option `chosen` is on the right side."""
        middle = len(LIKERT) // 2
        return chosen > middle if self.true else chosen < middle


def canary(conversation: Conversation, questions: Sequence[Question], salt: bytes) -> Canary | None:
    """Choose the canary of a call: deterministic, but unpredictable without the salt.

    None where the questions are not answered by agreeing: then no statement can stand among them.
    """
    if any(question.options != LIKERT for question in questions):
        return None
    asked = "\x1f".join([conversation.text_hash, *(question.id for question in questions)])
    digest = hmac.digest(salt, asked.encode("utf-8", "replace"), "sha256")
    true = _side(questions, digest[0])
    word = _pick(_opening_words(conversation) if true else _absent_words(conversation), digest[1:9])
    text = f'The first USER turn contains "{word}".' if word else "The conversation has a USER turn."
    return Canary(text, true or not word, 1 + int.from_bytes(digest[9:17]) % (len(questions) + 1))


def _side(questions: Sequence[Question], byte: int) -> bool:
    polarities = {question.rubric.polarity if question.rubric else None for question in questions}
    return byte % 2 == 1 if polarities != {"sat"} and polarities != {"dsat"} else polarities == {"dsat"}


def _opening_words(conversation: Conversation) -> list[str]:
    """List words near the beginning of the user's first turn, long ones if possible."""
    opening = next((turn.content for turn in conversation.turns if turn.role == "user"), "")[:_OPENING]
    words = sorted({match.group()[:_LONGEST] for match in _WORD.finditer(opening)})
    labels = {option.text.casefold() for option in LIKERT}
    words = [word for word in words if word.casefold() not in labels]
    return [word for word in words if len(word) > 4] or words


def _absent_words(conversation: Conversation) -> list[str]:
    said = "\n".join(turn.content for turn in conversation.turns).casefold()
    return [word for word in _ABSENT if word not in said]


def _pick(words: Sequence[str], digest: bytes) -> str:
    return words[int.from_bytes(digest) % len(words)] if words else ""


FEWEST = 5
_NEUTRAL = len(LIKERT) // 2


def straight_lined(questions: Sequence[Question], answers: Sequence[Answer | Unanswered]) -> str:
    """Return the sign that answers ignore the questions; empty if there is none.

    That no rubric's occasion came up is none: in a short conversation it often is so.
    """
    pairs = [
        (q, a)
        for q, a in zip(questions, answers, strict=True)
        if isinstance(a, Answer) and q.options == LIKERT and not a.never_came_up
    ]
    options = {answer.chosen for _, answer in pairs}
    if len(pairs) < FEWEST or len(options) > 1 or options == {_NEUTRAL}:
        return ""
    option = LIKERT[options.pop()].text
    polarities = [question.rubric.polarity for question, _ in pairs if question.rubric]
    if min(polarities.count("sat"), polarities.count("dsat")) >= 2:
        return f"{option} to {len(pairs)} rubrics of satisfaction and dissatisfaction alike"
    reasons = {" ".join(answer.justification.split()) for _, answer in pairs}
    if len(reasons) == 1 and reasons != {""}:
        return f"{option} to {len(pairs)} questions, all for the same reason"
    return ""


def suspect(answers: Sequence[Answer | Unanswered], why: str) -> list[Answer | Unanswered]:
    """Replace all answers by `suspect` outcomes."""
    return [
        Unanswered(question_id=answer.question_id, outcome="suspect", detail=why, judge=answer.judge)
        if isinstance(answer, Answer)
        else answer
        for answer in answers
    ]
