"""Scores as OpenTelemetry events, through the exporters that an application has set up.

The convention `gen_ai.evaluation.result` is in stage development: its names are constants here.
"""

from __future__ import annotations

from pollex.rubrics.netsat import Score

EVENT = "gen_ai.evaluation.result"
NAME, VALUE, LABEL = "gen_ai.evaluation.name", "gen_ai.evaluation.score.value", "gen_ai.evaluation.score.label"
CONVERSATION, ERROR, RUBRICS = "gen_ai.conversation.id", "error.type", "pollex.rubric_set"


def events_of(score: Score, digest: str) -> list[dict[str, str | float]]:
    """Return the attributes of an event a figure; of one event with the reason where there is no score.

    Args:
        digest: Of the rubric set.
    """
    about: dict[str, str | float] = {CONVERSATION: score.conversation_id, RUBRICS: digest}
    if score.netsat is None:
        return [{**about, NAME: "pollex.netsat", ERROR: score.outcome}]
    found: list[dict[str, str | float]] = [{**about, NAME: "pollex.netsat", VALUE: score.netsat}]
    if score.probability is not None:
        found.append({**about, NAME: "pollex.probability", VALUE: score.probability})
        if score.decision is not None:
            found[-1][LABEL] = score.decision
    return found


def emit(score: Score, digest: str) -> None:
    """Emit a score's events in the span that is current; nothing is done with them unless an exporter is set up."""
    from opentelemetry._logs import get_logger  # an extra

    logger = get_logger("pollex")
    for attributes in events_of(score, digest):
        logger.emit(event_name=EVENT, attributes=attributes)
