"""A queue of conversations to label in the browser, of any log: no rubric set has to be there."""

from __future__ import annotations

import secrets
from collections.abc import Set
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from pollex.conversations.conversation import Conversation
from pollex.conversations.logs import Logs
from pollex.errors import BadInput
from pollex.formats.fields import ReadOptions
from pollex.graphs.context import Progress
from pollex.runs.options import RunOptions
from pollex.runs.run import collect_package_versions
from pollex.runs.workspace import open_workspace
from pollex.services.logs import Sources, logs_from
from pollex.services.results import Result
from pollex.store.resume import list_stored_runs
from pollex.store.rows import make_conversation_rows
from pollex.store.store import Store
from pollex.store.tables import QueueRow, format_current_time
from pollex.text import TerminalLines, format_count

QUEUE_COMMAND = "queue"
"""Of its run, which has conversations and no scores."""
RANDOM_QUEUE_KIND = "random"
REPEATED_SHARE = 0.05
"""Share of conversations that a person gets twice, to see how far they agree with themselves."""


@dataclass(frozen=True, kw_only=True)
class LabelQueue(Result):
    """A queue that waits for people.

    Attributes:
        id: Of the queue.
        run: Whose conversations these are.
        conversations: How many are in it, and `population` how many could be.
    """

    json_fields: ClassVar[tuple[str, ...]] = ("queue=id", "run", "conversations", "population")
    id: str
    name: str
    run: str
    conversations: int
    population: int

    def told(self, *_given: object, **_asked: object) -> TerminalLines:
        """Yield what waits, and where."""
        drawn = (
            f"{format_count(self.conversations, 'conversation')} of {self.population:,}, at random"
        )
        yield f"The queue {self.name!r} has {drawn} ({self.run}). Label it in `pollex serve`, page Label"


def draw_label_queue(
    logs: Sources | Logs,
    name: str,
    *,
    number: int,
    seed: int,
    reading: ReadOptions,
    run: RunOptions,
    progress: Progress,
) -> LabelQueue:
    """Draw conversations of a log at random, and keep them as a queue in the store.

    Every conversation has the same chance, those with a thumb, too: so the labels say how well a
    rubric set does on the whole log. A further queue of the same log goes on where the last one
    ended: what was drawn already comes only once nothing else is left.

    Raises:
        BadInput: No conversation can be labeled.
    """
    read = logs_from(logs, reading, progress)
    possible = []
    for conversation in read:
        if not conversation.not_scorable:
            possible.append(conversation)

    if not possible:
        raise BadInput(
            "no conversation can be labeled",
            hint="look at it with `pollex inspect`",
        )

    # only names of files can be stored; other data has none
    sources = logs if isinstance(logs, list | tuple) else ()
    arguments = {"logs": [str(source) for source in sources], "command": run.typed}
    # the queue has a run of its own, which holds its conversations, and judges nothing
    with open_workspace(run, progress, read) as work:
        drawn = draw_conversations(
            possible,
            number,
            np.random.default_rng(seed),
            drawn_before=list_texts_drawn_before(work.store, arguments["logs"]),
        )
        began = work.store.begin(
            QUEUE_COMMAND,
            arguments=arguments,
            fingerprint={},
            versions=collect_package_versions(),
        )
        work.store.put(make_conversation_rows(began.id, drawn))
        queue = QueueRow(
            id=secrets.token_hex(4),
            name=name,
            kind=RANDOM_QUEUE_KIND,
            run=began.id,
            random_share=1.0,
            overlap=1,
            # not the seed of the draw: this one decides what each person is given next, and what twice
            seed=secrets.randbits(32),
            time=format_current_time(),
            repeat_share=REPEATED_SHARE,
        )
        work.store.keep([queue])
        work.store.finish(began.id, "done", roles=[])

    return LabelQueue(
        id=queue.id,
        name=name,
        run=began.id,
        conversations=len(drawn),
        population=len(possible),
    )


def draw_conversations(
    conversations: list[Conversation],
    number: int,
    rng: np.random.Generator,
    *,
    drawn_before: Set[str] = frozenset(),
) -> list[Conversation]:
    """Return some conversations at random, in the order in which they were drawn.

    Args:
        drawn_before: Hashes of texts that come after all others.
    """
    shuffled = [conversations[place] for place in rng.permutation(len(conversations)).tolist()]
    # both parts stay in random order
    shuffled.sort(key=lambda conversation: conversation.text_hash in drawn_before)
    return shuffled[:number]


def list_texts_drawn_before(store: Store, logs: object) -> set[str]:
    """Return the hashes of texts that earlier queues of the same log hold; none for a log without a name."""
    texts = set()
    for run in list_stored_runs(store) if logs else ():
        if run.command == QUEUE_COMMAND and run.arguments.get("logs") == logs:
            for row in store.ask(run.id, "SELECT text_hash FROM conversations"):
                texts.add(row["text_hash"])

    return texts


def name_queue_after(logs: object) -> str:
    """Return a queue's name where nobody gave one: that of its first log."""
    sources = logs if isinstance(logs, list | tuple) else ()
    if sources:
        return Path(str(sources[0]).rpartition(":")[2]).stem[:80]
    return "conversations"
