"""Scores as OpenTelemetry events, through the exporters that an application has set up.

The convention `gen_ai.evaluation.result` is in stage development: its names are constants here.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from pollex.errors import WrongUse
from pollex.gateway.endpoint import require_http_address
from pollex.rubrics.score import Score

EVENT_NAME = "gen_ai.evaluation.result"
NAME_ATTRIBUTE = "gen_ai.evaluation.name"
VALUE_ATTRIBUTE = "gen_ai.evaluation.score.value"
LABEL_ATTRIBUTE = "gen_ai.evaluation.score.label"
CONVERSATION_ATTRIBUTE = "gen_ai.conversation.id"
ERROR_ATTRIBUTE = "error.type"
RUBRIC_SET_ATTRIBUTE = "pollex.rubric_set"


def make_event_attributes(score: Score, digest: str) -> list[dict[str, str | float]]:
    """Return the attributes of an event a figure; of one event with the reason where there is no score.

    Args:
        digest: Of the rubric set.
    """
    about: dict[str, str | float] = {
        CONVERSATION_ATTRIBUTE: score.conversation_id,
        RUBRIC_SET_ATTRIBUTE: digest,
    }
    # without a score the event has the reason in its place
    if score.netsat is None:
        return [{**about, NAME_ATTRIBUTE: "pollex.netsat", ERROR_ATTRIBUTE: score.outcome}]

    attributes: list[dict[str, str | float]] = [
        {**about, NAME_ATTRIBUTE: "pollex.netsat", VALUE_ATTRIBUTE: score.netsat}
    ]
    if score.probability is not None:
        attributes.append(
            {
                **about,
                NAME_ATTRIBUTE: "pollex.probability",
                VALUE_ATTRIBUTE: score.probability,
            }
        )
        # the decision is one about the probability
        if score.decision is not None:
            attributes[-1][LABEL_ATTRIBUTE] = score.decision

    return attributes


def emit_score_events(score: Score, digest: str) -> None:
    """Emit a score's events in the span that is current; nothing is done with them unless an exporter is set up."""
    from opentelemetry._logs import get_logger  # an extra

    _send_score_events(get_logger("pollex"), score, digest)


def _send_score_events(logger: Any, score: Score, digest: str) -> None:
    for attributes in make_event_attributes(score, digest):
        logger.emit(event_name=EVENT_NAME, attributes=attributes)


@contextmanager
def open_event_exporter(url: str | None, digest: str) -> Iterator[Callable[[Score], None] | None]:
    """Give what sends a score's events to an OpenTelemetry collector; None without an address.

    The SDK's own exporter sends them in batches, the last one at the end. Proxies of the
    environment are not used.

    Args:
        url: Base address of OTLP over HTTP, such as http://localhost:4318.
        digest: Of the rubric set.

    Raises:
        WrongUse: The extra `otel` is missing, or the address is none.
    """
    if url is None:
        yield None
        return

    require_http_address(url, "the address for events", "events")
    try:
        # an extra
        from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
        from opentelemetry.sdk._logs import LoggerProvider
        from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
        from opentelemetry.sdk.resources import Resource
        from requests import Session
    except ImportError as error:
        raise WrongUse(
            f"events need a package: {error.name}",
            hint='pip install "pollex[otel]"',
        ) from None

    # proxies and passwords of the environment are left out
    session = Session()
    session.trust_env = False
    provider = LoggerProvider(
        Resource({"service.name": "pollex"}),
        shutdown_on_exit=False,
    )
    exporter = OTLPLogExporter(f"{url.rstrip('/')}/v1/logs", session=session)
    provider.add_log_record_processor(BatchLogRecordProcessor(exporter))
    try:
        yield partial(_send_score_events, provider.get_logger("pollex"), digest=digest)
    # what waits in the batch is sent before it ends
    finally:
        provider.shutdown()
