"""Tone: how people sound, and how long they get, as one number of a conversation.

Moods and lengths are no rubrics: nobody can act on them one by one. Together they tell something of
how a conversation went, so the model of the probability reads them as one answer more, beside those
to the rubrics.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import comb
from typing import Any, Self

import numpy as np

from pollex.conversations.conversation import Conversation
from pollex.errors import BadRubrics
from pollex.measures.arrays import Floats
from pollex.measures.intervals import Figure
from pollex.rubrics.records import ChosenRubric, Record
from pollex.rubrics.rubric import ANSWERED_BY_BUILT_IN_JUDGE, TONE_SOURCE

MAX_STANDARDIZED_VALUE = 2.5
"""Deviations from the middle beyond which a tone says no more."""

MAX_NAMED_FEATURES = 3
"""Signals that are named of all that tone is made of."""


@dataclass(frozen=True)
class ToneForm:
    """What tone is made of.

    Attributes:
        signals: A sentence for each.
        sounds: Of each, whether it tells how people sound; others, such as deeds, are for rubrics
            to tell.
        measure: Measures conversations `[conversation, feature]`; each signal has as many features
            as any other, side by side.
    """

    signals: tuple[str, ...]
    sounds: tuple[bool, ...]
    measure: Callable[[Sequence[Conversation]], Floats]


@dataclass(frozen=True, eq=False)
class ToneScale:
    """From the measures of form to tone.

    Attributes:
        slopes: `[feature]`.
        offset: So that 0 is the middle of the conversations that it was learned from, and 1 their
            deviation.
    """

    slopes: Floats
    offset: float

    def tone(self, features: Floats) -> Floats:
        """Return tone, over 0 where it sounds like a good conversation `[…]`, of features `[…, feature]`."""
        return np.asarray(
            np.clip(
                features @ self.slopes + self.offset,
                -MAX_STANDARDIZED_VALUE,
                MAX_STANDARDIZED_VALUE,
            ),
            dtype=np.float64,
        )

    def to_json(self) -> dict[str, object]:
        """Return it as JSON values."""
        return {"slopes": self.slopes.tolist(), "offset": self.offset}

    @classmethod
    def from_json(cls, stored: Any, features: int) -> Self:
        """Read what `to_json` gave.

        Raises:
            BadRubrics: It has another form, or another number of features.
        """
        try:
            scale = cls(
                np.array(stored["slopes"], dtype=np.float64),
                float(stored["offset"]),
            )
        # anything else than numbers has no slopes, and fails the check below
        except (KeyError, TypeError, ValueError):
            scale = cls(np.empty(0), 0.0)

        if scale.slopes.shape != (features,):
            what = f"tone.learned: slopes are not {features} numbers"
            raise BadRubrics(
                what,
                hint="fit it again: `pollex refit LOGS --rubrics …`",
            )

        return scale


def make_tone_answers(tone: Floats, options: int) -> Floats:
    """Return tones as answers, whose expected value rises with tone `[…, option]`."""
    # binomial: tone's own probability decides how far up the scale the answer is
    p = 1 / (1 + np.exp(-np.asarray(tone)[..., None]))
    places = np.arange(options)
    ways = np.array([comb(options - 1, place) for place in places.tolist()])
    return np.asarray(ways * p**places * (1 - p) ** (options - 1 - places))


class ToneRecord(Record):
    """The tone of a set.

    Attributes:
        weight: What a point of it counts for beside a point of a rubric, in the model to begin
            with; 0: it is left out.
        signals: Of those that tell how people sound, those that weigh most, the heaviest first,
            each in a sentence.
        adds: How much lower it makes the log-loss of the probability, by folds.
        learned: See `ToneScale`; empty where it is left out.
    """

    weight: float
    signals: tuple[str, ...]
    adds: Figure
    learned: Mapping[str, object] = {}

    @property
    def rubric(self) -> ChosenRubric:
        """What the built-in judge is asked, where it counts."""
        text = "The conversation sounds like those that went well."
        return ChosenRubric(
            id=TONE_SOURCE,
            text=text,
            polarity="sat",
            source=TONE_SOURCE,
            answered_by=ANSWERED_BY_BUILT_IN_JUDGE,
            written=text,
        )

    @property
    def clear(self) -> bool:
        """Whether it makes a difference beyond chance: the interval of what it adds leaves out 0."""
        low = self.adds.low
        high = self.adds.high
        return low is not None and high is not None and not low <= 0 <= high

    @property
    def told(self) -> str:
        """Say in one line what it is made of, and what it adds."""
        if self.adds.value is None:
            return f"{TONE_DESCRIPTION} doesn't count: {self.adds.undefined}."

        low, high = self.adds.low or 0.0, self.adds.high or 0.0
        change = f"changes by {-self.adds.value:+.3f}"
        bounds = f"95 % {-high:+.3f} to {-low:+.3f}"
        figure = (
            f"with it, the log-loss of probabilities {change} ({bounds}; lower is better; "
            f"n = {self.adds.n})"
        ).replace("-0.", "−0.")
        if not self.clear:
            return f"{TONE_DESCRIPTION} makes no clear difference to the probability: {figure}."
        if not self.weight:
            return f"{TONE_DESCRIPTION} doesn't count: {figure}."

        named = "; ".join(signal.rstrip(".") for signal in self.signals)
        helps = f"{TONE_DESCRIPTION} helps to tell how likely a thumb up is"
        named = f" How people sound counts most by this: {named}." if named else ""
        return f"{helps}: {figure}.{named}"


TONE_DESCRIPTION = "Tone (wording, mood and length as one number)"
