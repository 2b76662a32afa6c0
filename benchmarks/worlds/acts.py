"""What happens in a log, and what its comments name."""

import numpy as np
from choosing import chosen_on
from planted_tools import tool_log
from test_comments import commented_log

from pollex.agents.embedded.clues import StudiedLog
from pollex.agents.embedded.comments import find_frequent_remarks
from pollex.agents.embedded.embedder import Embedder
from pollex.conversations.logs import flag_positive_labels
from worlds import Outcome, world


@world("calls of tools")
def calls_of_tools(_quick: bool) -> Outcome:
    """Look for calls that were made again, or with what nobody said."""
    study = StudiedLog(sorted(tool_log(), key=lambda c: c.id), Embedder())
    up = flag_positive_labels(study.conversations)
    chosen = chosen_on(study, up, np.ones(len(up), dtype=bool), 0)
    leading = [
        chosen.weighed.pool.rubrics[column].source.partition(" ")[0] for column in chosen.leading
    ]
    row = (
        "calls made again, or with what nobody said",
        f"{', '.join(leading) or 'nothing'}, n = {len(up)}",
    )
    return Outcome([row], {"leading": leading}, {"what was planted leads": bool(leading)})


@world("comments")
def comments(_quick: bool) -> Outcome:
    """Look for an event that 30 % of the comments name."""
    named = [
        f"“{one.text}”, {one.share.value:.0%} of {one.share.n}"
        for one in find_frequent_remarks(commented_log())[:1]
    ]
    row = ("an event that 30 % of the comments name", ", ".join(named) or "missed")
    return Outcome([row], {"named": named}, {"what comments name is found": bool(named)})
