"""Which rubrics hold in the conversations of a scored run, as its answers say."""

import json
from datetime import UTC, datetime
from typing import NamedTuple

from pollex.conversations.conversation import find_prompt_version
from pollex.formats.log_shapes.readers import iterate_metadata_times
from pollex.store.runs import Run
from pollex.store.store import Store
from pollex.text import JsonObject

HELD_RUBRICS_QUERY = """
    SELECT c.id AS id, any_value(c.label) AS label, any_value(c.metadata) AS metadata,
        any_value(CASE WHEN t.turns ->> '$[0][0]' = 'system' THEN t.turns ->> '$[0][1]' END) AS system,
        list(a.question) AS asked,
        list(a.question) FILTER (a.chosen < len(a.probabilities) AND list_dot_product(
            a.probabilities,
            list_transform(range(len(a.probabilities)), lambda place: place - (len(a.probabilities) - 1) / 2.0)
        ) > 0) AS held
    FROM (SELECT DISTINCT ON (id) * FROM conversations ORDER BY id, seq DESC) AS c
    JOIN (SELECT DISTINCT ON (conversation, question) * FROM answers ORDER BY conversation, question, seq DESC) AS a
        ON a.conversation = c.id
    LEFT JOIN texts AS t ON t.text_hash = c.text_hash
    WHERE a.outcome = '' AND list_contains(?, a.question)
    GROUP BY c.id
"""
"""What holds in each conversation of a run: its answer is expected above the middle. One that never applied doesn't."""


class ScoredConversation(NamedTuple):
    """A conversation of a scored run."""

    id: str
    down: bool | None
    week: str
    release: str
    asked: frozenset[str]
    held: frozenset[str]


def read_held_rubrics(store: Store, run: Run) -> list[ScoredConversation]:
    """Return the conversations of a scored run with what holds in each."""
    # only the run's rubrics: answers to other questions say nothing here
    ids = []
    for row in store.rows("SELECT id FROM facts WHERE run = ? AND kind = 'rubric'", [run.id]):
        ids.append(row["id"])

    conversations: list[ScoredConversation] = []
    for row in store.ask(run.id, HELD_RUBRICS_QUERY, [ids]):
        conversations.append(_read_scored_conversation(row, run))

    return conversations


def _read_scored_conversation(row: JsonObject, run: Run) -> ScoredConversation:
    metadata = json.loads(row["metadata"] or "{}")
    # a conversation without a thumb is on neither side
    down = {"negative": True, "positive": False}.get(row["label"])
    release = find_prompt_version(metadata, row["system"])
    begun = next(iterate_metadata_times(metadata), None)
    # without a time of its own a conversation counts in the week of the run
    if begun is None:
        day = datetime.fromisoformat(run.started)
    else:
        day = datetime.fromtimestamp(begun, UTC)

    asked_ids = frozenset(row["asked"])
    held = frozenset(row["held"] or ())
    return ScoredConversation(row["id"], down, f"{day:%G-W%V}", release, asked_ids, held)
