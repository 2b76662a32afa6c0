"""Scores in the forms of other tools, each as a file of requests."""

import hashlib
import json
import time
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pollex.formats.scores import get_answer_value
from pollex.rubrics.answers import Answer
from pollex.rubrics.rubric_set import RubricSet, hash_rubrics
from pollex.rubrics.score import Score
from pollex.text import JsonDict

DIGEST_CHARACTERS = 12


class PeerIds(NamedTuple):
    """The identifiers of a conversation in the other tool.

    Attributes:
        session: Its id; empty if only a trace is known.
        trace: The last trace, or root run; empty if none is known.
        span: The last trace's root span.
        first: The first trace.
    """

    session: str
    trace: str = ""
    span: str = ""
    first: str = ""


class PeerFigure(NamedTuple):
    """One thing to write back about a conversation.

    Attributes:
        name: After `pollex_`.
        value: A number, a truth value or a word.
        number: The value as a number.
        kind: NUMERIC, BOOLEAN or CATEGORICAL.
        judged: Whether an LLM said so; else code did.
    """

    name: str
    value: float | bool | str
    number: float
    kind: str
    comment: str
    judged: bool
    metadata: Mapping[str, object]


def list_peer_figures(score: Score, rubrics: RubricSet) -> list[PeerFigure]:
    """NetSAT, the label and every rubric's answer; nothing where there is no score or no answer."""
    # without NetSAT the conversation could not be scored, so it has no figures
    if score.netsat is None:
        return []

    # the score and the label, which rest on all rubrics
    digest = hash_rubrics(rubrics.rubrics)[:DIGEST_CHARACTERS]
    about = {
        "probability": score.probability,
        "entropy": score.entropy,
        "confident": score.confident,
        "guaranteed": score.guaranteed,
        "rubrics": digest,
        "pollex": rubrics.pollex,
    }
    sure = "confident" if score.confident else "not confident"
    # what a person reads beside the figure in the other tool
    comment = f"NetSAT {score.netsat:.2f}, θ {rubrics.theta:.4g}: {score.label}, {sure}"
    figures = [PeerFigure("netsat", score.netsat, score.netsat, "NUMERIC", comment, False, about)]
    if score.label is not None:
        up = score.label == "positive"
        figures.append(
            PeerFigure(
                "label",
                up,
                float(up),
                "BOOLEAN",
                comment,
                False,
                about,
            )
        )

    # the answer to each rubric that came up
    texts = {rubric.id: rubric for rubric in rubrics.rubrics}
    llm = rubrics.judge.kind == "llm"
    for answer in score.answers:
        # an answer to a rubric that never came up is a neutral one that nobody gave
        if isinstance(answer, Answer) and answer.question_id in texts and not answer.never_came_up:
            rubric = texts[answer.question_id]
            turns = ""
            # turns that the answer rests on, in words
            if answer.turns:
                turns = f" Turns {', '.join(map(str, answer.turns))}."
            metadata = {
                "polarity": rubric.polarity,
                "probabilities": list(answer.probabilities),
                "rubrics": digest,
            }
            word = answer.word
            # the rubric's own value, as NetSAT adds it up
            value = get_answer_value(answer, rubrics)
            name = f"{rubric.polarity}_{rubric.id}"
            figures.append(
                PeerFigure(
                    name,
                    word,
                    float(value),
                    "CATEGORICAL",
                    f"{rubric.text}{turns}",
                    llm,
                    metadata,
                )
            )

    return figures


def _get_form_values(aim: PeerIds, figure: PeerFigure, id_: str) -> dict[str, object]:
    """Return what the table of forms names."""
    # the same id gives the same UUID, so that a second sending replaces the first
    digits = hashlib.sha256(id_.encode()).hexdigest()
    metadata = dict(figure.metadata)
    session = {"mlflow.trace.session": aim.session} if aim.session else {}

    # all that a form may name; a form takes what its tool knows
    return figure._asdict() | {
        "id": id_,
        "uuid": f"{digits[:8]}-{digits[8:12]}-5{digits[13:16]}-a{digits[17:20]}-{digits[20:32]}",
        # tools that hang figures on sessions, on traces, or on the first trace of a session
        **aim._asdict(),
        "first": aim.first or aim.trace,
        "alone": "" if aim.session else aim.trace,
        "name": f"pollex_{figure.name}",
        "whole": int(figure.value) if figure.kind == "BOOLEAN" else figure.value,
        "word": _format_figure_as_word(figure),
        "metadata": metadata,
        "identified": {"id": id_, **metadata},
        # tools whose metadata are texts alone
        "texts": session
        | {"id": id_}
        | {k: json.dumps(value) for k, value in metadata.items() if value is not None},
        "rubrics": str(metadata["rubrics"]),
        "judge": "LLM" if figure.judged else "CODE",
        "judge_type": "LLM_JUDGE" if figure.judged else "CODE",
    }


def _fill_form(form: Any, parts: Mapping[str, object]) -> Any:
    if isinstance(form, Mapping):
        filled = {}
        for name, inner in form.items():
            filled[name] = _fill_form(inner, parts)
        return {
            name.removesuffix("?"): value
            for name, value in filled.items()
            if value or not name.endswith("?")
        }

    return parts[form[1:]] if form.startswith("$") else form


def _format_figure_as_word(figure: PeerFigure) -> str | None:
    if figure.kind == "BOOLEAN":
        return "positive" if figure.value else "negative"
    return figure.value if isinstance(figure.value, str) else None


def _make_otel_record(aim: PeerIds, figure: PeerFigure, id_: str) -> dict[str, object]:
    """Make one log record, with ids of the trace and the span if known; attributes hold no null."""
    # attributes by name, typed as the protocol has them
    fields: list[tuple[str, JsonDict]] = [
        ("gen_ai.evaluation.name", {"stringValue": f"pollex.{figure.name}"}),
        ("gen_ai.evaluation.score.value", {"doubleValue": figure.number}),
        ("gen_ai.evaluation.explanation", {"stringValue": figure.comment}),
        ("gen_ai.conversation.id", {"stringValue": aim.session}),
        *(
            (f"pollex.{name}", {"stringValue": _format_as_text(value)})
            for name, value in figure.metadata.items()
        ),
        ("pollex.id", {"stringValue": id_}),
    ]
    if word := _format_figure_as_word(figure):
        fields.append(("gen_ai.evaluation.score.label", {"stringValue": word}))

    # a trace needs both ids, or the record stands alone
    if aim.trace and aim.span:
        ids = {"traceId": aim.trace, "spanId": aim.span}
    else:
        ids = {}

    # an empty text stands for a value that isn't known
    attributes = []
    for key, value in fields:
        if value != {"stringValue": ""}:
            attributes.append({"key": key, "value": value})

    return {
        "body": {},
        "attributes": attributes,
        "eventName": "gen_ai.evaluation.result",
        **ids,
    }


def _format_as_text(value: object) -> str:
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    return json.dumps(value)


_FORMS_IN_FILE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
REQUEST_FORMS: dict[str, object] = {
    form: _FORMS_IN_FILE.get({"openinference": "phoenix"}.get(form, form))
    for form in ("langfuse", "phoenix", "openinference", "mlflow", "langsmith", "opik", "otel")
}
"""How tools take scores back, by the name that users give."""
FORMS_THAT_NEED_TRACE = frozenset({"mlflow", "langsmith"})
"""Tools whose scores lie on a trace or a run, and not on a session."""


class WrittenRequests(NamedTuple):
    """The requests made from scores.

    Attributes:
        requests: One for each figure and conversation.
        left_out: Conversations without a request, with the reason.
    """

    requests: list[dict[str, object]]
    left_out: list[tuple[str, str]]


def make_requests(
    form: str,
    scores: Iterable[Score],
    rubrics: RubricSet,
    aims: Mapping[str, PeerIds] | None = None,
) -> WrittenRequests:
    """Convert scores to a tool's requests; leave out those without figures, with their reason.

    Args:
        form: One of `REQUEST_FORMS`.
        aims: What conversations are called in the tool; without one the conversation's id is its
            session's.
    """
    requests: list[JsonDict] = []
    left_out: list[tuple[str, str]] = []
    digest = hash_rubrics(rubrics.rubrics)[:DIGEST_CHARACTERS]
    for score in scores:
        aim = (aims or {}).get(score.conversation_id, PeerIds(score.conversation_id))
        figures = list_peer_figures(score, rubrics)
        # left out with the reason, so that it can be told
        if not figures:
            left_out.append((score.conversation_id, score.outcome))
        elif form in FORMS_THAT_NEED_TRACE and not aim.trace:
            left_out.append((score.conversation_id, "no trace of it is known"))
        else:
            # ids are made of what is scored, so that a repeat has the same
            ids = (f"pollex-{digest}-{score.conversation_id}-{figure.name}" for figure in figures)
            named = zip(figures, ids, strict=True)
            if form == "otel":
                requests += [_make_otel_record(aim, figure, id_) for figure, id_ in named]
            else:
                for figure, id_ in named:
                    requests.append(
                        _fill_form(
                            REQUEST_FORMS[form],
                            _get_form_values(aim, figure, id_),
                        )
                    )

    return WrittenRequests(requests, left_out)


def iterate_file_lines(form: str, requests: Sequence[Mapping[str, object]]) -> Iterator[str]:
    """Format requests as the tool's file: one JSON value, or one request a line."""
    if form in ("langfuse", "langsmith", "mlflow"):
        yield json.dumps(list(requests), ensure_ascii=False, indent=1) + "\n"
    elif form == "phoenix":
        yield json.dumps({"data": list(requests)}, ensure_ascii=False, indent=1) + "\n"
    elif form == "otel":
        resource = {"attributes": [{"key": "service.name", "value": {"stringValue": "pollex"}}]}
        # nanoseconds as text: the protocol's JSON has no numbers of 64 bits
        observed = {"observedTimeUnixNano": str(time.time_ns())}
        logs = [
            {
                "scope": {"name": "pollex"},
                "logRecords": [{**observed, **request} for request in requests],
            }
        ]
        yield (
            json.dumps(
                {"resourceLogs": [{"resource": resource, "scopeLogs": logs}]}, ensure_ascii=False
            )
            + "\n"
        )
    # the other tools take one request a line
    else:
        for request in requests:
            yield json.dumps(request, ensure_ascii=False) + "\n"
