"""The window with a guarantee as a rubric set keeps it, and in words.

Of the rubrics by which a conversation is scored for it only the choice is made without the conversation: their texts
are extracted from all training conversations. What that does to the promise where a model extracts is not measured.
"""

from pydantic import BaseModel, ConfigDict

from pollex.measures.intervals import share_interval
from pollex.selection.threshold import Window, WindowSide
from pollex.text import count


class GuaranteeRecord(BaseModel):
    """Both sides; see `selection.threshold.GuaranteedWindow`.

    Attributes:
        n: Conversations that it was fitted on, by rubrics that were chosen without them; those written without them,
            too, were held out.
        held_out: Held-out conversations.
        outside: Those among them outside the window.
        right: Those of these that are labeled right.
        blocks: How many blocks the held-out ones are in (see `conversations.splits`), and those outside.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    lower: WindowSide
    upper: WindowSide
    precision: float
    delta: float
    n: int
    held_out: int = 0
    outside: int = 0
    right: int = 0
    blocks: tuple[int, int] = (0, 0)

    @property
    def window(self) -> Window:
        """The window in the form of the plug-in window."""
        return Window(self.lower.threshold, self.upper.threshold, self.precision)


def in_words(record: GuaranteeRecord) -> str:
    """Describe the guarantee and its held-out figures, to follow a colon."""
    sides = f"{_side(record.upper, 'positive', 'over', record)}; {_side(record.lower, 'negative', 'at most', record)}"
    if all(side.threshold is None and side.needed is None for side in (record.lower, record.upper)):
        sides = f"no score is that certain, {_HOPELESS}"
    return f"{guarantee_text(record)}: {sides}. {_held_out(record)}".rstrip()


def guarantee_text(record: GuaranteeRecord) -> str:
    """Return what holds on each side."""
    return (
        f"labels on each side are right at least {_percent(record.precision)} of the time, with probability "
        f"{_percent(1 - record.delta)}, for conversations like the {record.n} that the window was fitted on"
    )


def _held_out(record: GuaranteeRecord) -> str:
    if not record.held_out:
        return ""
    all_, beyond = record.blocks
    outside = f"Held out: {_counted(record.outside, record.held_out, all_)} outside this window"
    return f"{outside}, {_counted(record.right, record.outside, beyond)} right." if record.outside else f"{outside}."


def _counted(hits: int, n: int, blocks: int) -> str:
    low, high = share_interval(hits, n, units=blocks)
    return f"{hits} of {n} ({_percent(hits / n)}, 95 % interval {_percent(low)} to {_percent(high)})"


def _percent(share: float) -> str:
    """Format a percentage, with enough digits to avoid a false 0 % or 100 %."""
    percent = 100 * share
    digits = next((n for n in range(12) if 0 < round(percent, n) < 100), 0)
    return f"{percent:.{digits}f} %"


def _side(side: WindowSide, label: str, place: str, record: GuaranteeRecord) -> str:
    if side.threshold is not None:
        return f"{label} {place} {side.threshold:.1f} ({count(side.confident, 'conversation')}, {side.wrong} wrong)"
    if side.needed is None:
        return f"no score is {label} that certainly, {_HOPELESS}"
    return f"no score is {label} that certainly: this would take about {side.needed:,} labels instead of {record.n:,}"


_HOPELESS = "and more labels would not help, because no threshold is right that often"
