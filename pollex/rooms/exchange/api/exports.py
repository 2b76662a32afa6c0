"""Rubric sets and scores in other tools' forms, from Python."""

from __future__ import annotations

from collections.abc import Iterable

from pollex.conversations.conversation import Conversation
from pollex.rooms.exchange.formats.peer_scores import make_requests
from pollex.rooms.exchange.services.exchange import collect_peer_ids, export_texts, require_form
from pollex.rubrics.rubric_set import RubricSet
from pollex.rubrics.score import Score


def export_rubrics(rubrics: RubricSet, *, to: str) -> dict[str, str]:
    """Return the files of a rubric set in another tool's form, as texts by name.

    Args:
        to: A tool as in `pollex export --to`, for example `promptfoo`.

    Raises:
        BadRubrics: The rubrics were edited after θ was fitted.
        WrongUse: No such tool is known.
    """
    return dict(export_texts(rubrics, to))


def export_scores(
    scores: Iterable[Score],
    rubrics: RubricSet,
    *,
    as_: str,
    logs: Iterable[Conversation] = (),
) -> list[dict[str, object]]:
    """Return scores as another tool's requests, one a figure; conversations without figures have none.

    Args:
        as_: A tool as in `pollex score --as`, for example `langfuse`.
        logs: What was scored, for the ids of traces; without it a conversation's id is its
            session's.

    Raises:
        WrongUse: No such tool is known.
    """
    require_form(as_)
    return make_requests(as_, scores, rubrics, collect_peer_ids(logs)).requests
