"""Logs with fewer than ten thumbs of a class: hints of what is there, how many thumbs it takes, and what to label."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from pollex.agents.embedded.embedder import Embedder
from pollex.agents.embedded.evidence import find_evidence_signal
from pollex.agents.embedded.view import ConversationView
from pollex.conversations.conversation import Conversation, Label
from pollex.conversations.logs import Logs
from pollex.conversations.splits import MIN_LABELS_PER_CLASS
from pollex.formats.fields import ReadOptions
from pollex.formats.label_files import (
    LOGGED_CONVERSATION_ROW_KEY,
    RANDOM_DRAW_METHOD,
    LabelRequestRow,
    write_label_requests,
)
from pollex.rubrics.learning.results import Learned
from pollex.rubrics.records import StandingRecord
from pollex.rubrics.rubric import Rubric
from pollex.rubrics.worth import count_thumbs_needed
from pollex.text import NextCommand, TerminalLines, round_estimate

CALIBRATION_THUMBS = 50
"""Thumbs that a calibrated percentage takes."""
FEWEST_THUMBS_OF_EACH_CLASS = 2
"""Thumbs of each class without which no set can be made."""
RANDOM_QUEUE_ROWS = 10
TELLING_QUEUE_ROWS = 10
QUEUE_FILE_NAME = "to-label.jsonl"


@dataclass(frozen=True)
class FewThumbsAdvice:
    """What is told in place of figures where thumbs are too few.

    Attributes:
        logs: Names of the log's files, for the commands.
        queue: The file of what to label next, and how many conversations it has; None where none
            was written.
    """

    thumbs: "ThumbCounts"
    logs: tuple[str, ...]
    queue: tuple[Path, int] | None

    def told(self) -> TerminalLines:
        """Yield what to label, and the command that learns from it."""
        if self.queue is None:
            return

        path, number = self.queue
        drawn = f"the first {RANDOM_QUEUE_ROWS} at random, then those that show most of these hints"
        yield f"Wrote {path}: {number} conversations to label, {drawn}. Fill in the thumbs, then:"
        if self.logs:
            names = (*self.logs, str(path))
        else:
            names = ("LOGS", str(path))

        yield NextCommand("  ", "learn", names, {"on_duplicate": "last"})


@dataclass(frozen=True)
class ThumbCounts:
    """The thumbs of a log that can be learned from."""

    up: int
    down: int

    @classmethod
    def of(cls, conversations: Iterable[Conversation]) -> "ThumbCounts":
        """Count them as `require_enough_labels` does: once a text, where there is something to judge."""
        # repeated texts count once; only a whole log knows them
        if isinstance(conversations, Logs):
            repeated = conversations.repeated
        else:
            repeated = {}

        counts: Counter[Label] = Counter()
        for conversation in conversations:
            if conversation.id not in repeated and not conversation.not_scorable:
                counts[conversation.label] += 1
        return cls(counts[Label.POSITIVE], counts[Label.NEGATIVE])

    @property
    def few(self) -> bool:
        """Whether no figure can be learned, but a set of hints can."""
        return FEWEST_THUMBS_OF_EACH_CLASS <= min(self.up, self.down) < MIN_LABELS_PER_CLASS

    def told(self) -> TerminalLines:
        """Yield how many there are, and how many each figure takes."""
        # without any thumb, half of them are taken to be down
        if self.up + self.down:
            share = self.down / (self.up + self.down)
        else:
            share = 0.5

        yield f"{self.up} thumbs up and {self.down} down are too few to choose rubrics by. How many it takes:"
        yield f"  {MIN_LABELS_PER_CLASS} of each: rubrics chosen by thumbs, and how well they tell good from bad"
        yield f"  {CALIBRATION_THUMBS} in all: a percentage for each conversation"
        needed = count_thumbs_needed(share)
        yield f"  about {round_estimate(needed):,}: that something with 15 points more thumbs down is likely or proven"


def strip_figures(learned: Learned, thumbs: ThumbCounts) -> Learned:
    """Return a set whose rubrics are hints without figures."""
    # a p-value of 1 takes no rubric for a finding, whatever a fit found
    standing = StandingRecord(p=1.0, n=thumbs.up + thumbs.down, by="all")
    hinted_rubrics = []
    for rubric in learned.rubric_set.rubrics:
        hinted_rubrics.append(
            rubric.model_copy(update={"standing": standing, "worth": None, "alone": None})
        )
    hints = tuple(hinted_rubrics)
    notes = (*learned.rubric_set.notes, HINTS_NOTE.format(n=standing.n))

    return replace(
        learned,
        rubric_set=learned.rubric_set.model_copy(update={"rubrics": hints, "notes": notes}),
    )


HINTS_NOTE = (
    "Too few thumbs ({n}): these rubrics are what often happens in the log, on the side that it is of in general. They "
    "are hints, without figures."
)


def write_queue(
    read: Logs,
    rubrics: Sequence[Rubric],
    beside: Path,
    reading: ReadOptions,
    seed: int,
) -> tuple[Path, int] | None:
    """Write what to label next: some at random, then those in which most of the hints hold that few others show.

    Returns:
        The file, which is never one that is there already, and how many conversations it has; None
        where there is nothing to label, or such a file.
    """
    from pollex.services.label import make_log_row  # scikit-learn is not needed before

    # a file that is there may have thumbs that somebody filled in
    path = beside.with_name(QUEUE_FILE_NAME)
    left = [
        conversation
        for conversation in read
        if conversation.label is Label.NONE
        and not conversation.not_scorable
        and conversation.id not in read.repeated
    ]
    if not left or path.exists():
        return None

    # one order for both: its first are the random sample, the rest can be chosen
    order = np.random.default_rng(seed).permutation(len(left)).tolist()
    chosen = order[:RANDOM_QUEUE_ROWS] + choose_most_telling(
        [left[row] for row in order], rubrics, order
    )
    rows = []
    # a conversation that both ways chose is listed once, as random
    for place in dict.fromkeys(chosen):
        conversation = left[place]
        row: LabelRequestRow = {
            "id": conversation.id,
            "drawn": RANDOM_DRAW_METHOD if place in order[:RANDOM_QUEUE_ROWS] else "telling",
        }
        row["begins"] = " ".join(conversation.opening.split())[:80]
        rows.append(
            row
            | {
                LOGGED_CONVERSATION_ROW_KEY: make_log_row(
                    conversation, row, read.label_field, reading
                )
            }
        )

    write_label_requests(
        path,
        rows,
        [],
        {conversation.id: conversation for conversation in left},
    )
    return path, len(rows)


def choose_most_telling(
    conversations: Sequence[Conversation],
    rubrics: Sequence[Rubric],
    places: Sequence[int],
) -> list[int]:
    """Choose one by one the conversation with the hints that were shown least so far.

    Args:
        places: Of each conversation, which are returned.
    """
    embedder = Embedder()  # it loads a model only when it is asked
    signals = [find_evidence_signal(rubric, embedder) for rubric in rubrics]
    views = []
    for conversation in conversations:
        views.append(ConversationView(conversation, embedder))

    # `[conversation, rubric]`, whether it holds there
    held = np.array(
        [[bool((signal.marks(view) != 0).any()) for signal in signals] for view in views],
        dtype=float,
    )
    shown = np.zeros(len(signals))
    out = list[int]()
    # the random ones are labeled anyway
    held[:RANDOM_QUEUE_ROWS] = 0

    for _ in range(TELLING_QUEUE_ROWS):
        if signals:
            # each showing makes a hint count less
            worth = (held / (1.0 + shown)).sum(axis=1)
        else:
            worth = np.zeros(len(views))

        best = int(np.argmax(worth))
        # no conversation is left that shows a hint
        if worth[best] <= 0:
            break
        out.append(places[best])
        shown += held[best]
        held[best] = 0

    return out
