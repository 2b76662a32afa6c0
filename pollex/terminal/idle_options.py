"""Options that stand in the command line and do nothing there: refused, not passed over."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from pollex.errors import WrongUse
from pollex.terminal.options import written

if TYPE_CHECKING:
    from pollex.graphs.rubric_records import JudgeRecord
    from pollex.workers import ModelOptions

ASKED = ("elicitation", "samples", "without", "canary", "straight_lining", "closing", "value")
"""How a model is asked: what a rubric set remembers."""

CALLED = (
    *("base_url", "require", "retry_refused", "concurrency", "deadline", "max_wait"),
    *("max_calls", "max_cost", "price_in", "price_out"),
)
"""How a model is called, whatever it is asked."""

EMBEDDING = "embedding_model"


def refuse_without_model(model: ModelOptions, *others: str) -> None:
    """Refuses what only a model would heed.

    Args:
        others: Further parameters of the running command that it heeds for a model alone.

    Raises:
        WrongUse: Such an option was written, and no model is named.
    """
    if model.model is None and (idle := written(*ASKED, *CALLED, *others)):
        raise WrongUse(f"{', '.join(idle)} without a model", remedy="name one: --model, or leave them out")


def refuse_for(record: JudgeRecord, *, embeds: bool = False) -> None:
    """Refuses what the judge of a rubric set doesn't heed: it answers as it did when θ was fitted.

    Args:
        embeds: Whether texts are embedded beside what a model does.

    Raises:
        WrongUse: Such an option was written.
    """
    if record.kind == "embedded":
        # Its own embedding model may be named: one that isn't bundled is not loaded before.
        told = click.get_current_context().params.get(EMBEDDING) == record.options.get(EMBEDDING)
        judge, names = "the embedded judge of the rubric set", [*ASKED, *CALLED, *([] if told else [EMBEDDING])]
    else:
        # A set that was written before there was an option doesn't remember it: there it counts.
        judge, names = f"the judge {record.name}", [name for name in ASKED if name in (*record.options, "value")]
        names += [] if embeds else [EMBEDDING]
    if idle := written(*names):
        raise WrongUse(
            f"{', '.join(idle)}: {judge} answers as it did when θ was fitted",
            remedy="leave them out, or fit θ to a model's answers: `pollex refit … --model M`",
        )
