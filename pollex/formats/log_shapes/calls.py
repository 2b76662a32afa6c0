"""Calls of models as proxies and tracers log them, told by what the fields hold, whatever their names are.

A row is one call: a list of messages that was sent, what came of it, and the session that it
belongs to; or a trace whose spans stand in a list inside it. Scores stand beside, in lists or objects.
"""

from collections.abc import Iterator, Mapping
from hashlib import sha256
from json import dumps
from typing import Any

from pollex.formats.assembly.chains import BY_HISTORY
from pollex.formats.assembly.log_parts import LogPart, ModelCall, Target, ToolScore, parse_moment
from pollex.formats.assembly.thumbs import NAMES, STAR_NAMES, fold
from pollex.formats.feedback import COMMENT_NAMES
from pollex.formats.fields import LABEL_NAMES, RATING_NAMES
from pollex.formats.log_shapes.exports import (
    Fields,
    get,
    has,
    id_as_text,
    is_true,
    keep_filled_facts,
    list_objects,
    require_text,
    unwrap,
)
from pollex.formats.log_shapes.payloads import (
    HISTORY_NAMES,
    MESSAGE_NAMES,
    input_of,
    of_sides,
    output_of,
    parse,
    retrieved_by,
    sides,
)
from pollex.formats.log_shapes.spans import silent_kind
from pollex.formats.log_shapes.turns import ROLE_NAMES

SENT = (
    "prompt_messages",
    "input_messages",
    "inputMessages",
    "messages",
    "request_body",
    "requestBody",
    "llm_input",
    "request",
    "prompt",
    "input",
    "inputs",
    "body",
)
CAME = (
    "completion_message",
    "output_message",
    "output_messages",
    "outputMessages",
    "completion",
    "response_body",
    "responseBody",
    "llm_output",
    "response",
    "output",
    "outputs",
    "choices",
    "candidates",
)
_SENT, _CAME = frozenset(SENT), frozenset(CAME)
SESSIONS = frozenset(
    (
        "threadid",
        "threadidentifier",
        "threaduniqueidentifier",
        "sessionid",
        "sessionidentifier",
        "conversationid",
        "conversationidentifier",
        "chatid",
        "dialogid",
        "heliconesessionid",
        "genai.conversation.id",
        "session.id",
        "sessionuuid",
        "chatuuid",
        "conversationuuid",
        "threaduuid",
        "conversationkey",
        "session",
        "conversation",
    )
)
"""Names of the field that says which conversation a call belongs to, folded."""
USERS = frozenset(
    (
        "userid",
        "user",
        "customeridentifier",
        "customerid",
        "enduser",
        "enduserid",
        "externaluserid",
        "username",
        "customer",
        "distinctid",
        "useridentifier",
    )
)
CALL_IDS = (
    "span_id",
    "spanId",
    "id",
    "request_id",
    "requestId",
    "log_id",
    "call_id",
    "run_id",
    "generation_id",
    "databricks_request_id",
    "trace_id",
    "traceId",
    "uuid",
    "event_id",
)
PARENTS = ("parent_id", "parentId", "parent_span_id", "parentSpanId", "parent_run_id", "parent")
TIMES = (
    "start_time",
    "startTime",
    "started_at",
    "startedAt",
    "request_timestamp",
    "timestamp",
    "timestamp_ms",
    "created_at",
    "createdAt",
    "created",
    "time",
    "start",
    "date",
)
SPAN_LISTS = ("spans", "observations", "child_runs", "runs", "children", "steps", "calls")
KINDS = ("type", "span_type", "spanType", "kind", "span_kind", "run_type", "event_type")
MODELS = frozenset(
    ("llm", "generation", "chat", "chatmodel", "chatcompletion", "model", "completion")
)
SCORE_LISTS = (
    "scores",
    "feedback",
    "feedbacks",
    "user_feedback",
    "userFeedback",
    "feedback_scores",
    "evaluations",
    "evaluator_logs",
    "assessments",
    "annotations",
    "events",
    "votes",
    "reviews",
)
SCORE_VALUES = (
    "value",
    "score",
    "judgment",
    "rating",
    "vote",
    "thumb",
    "thumbs",
    "label",
    "verdict",
    "metrics.vote",
    "metrics.score",
)
SCORE_NAMES = ("name", "key", "metric", "evaluator.name", "event_type", "type", "title")
SCORE_SOURCES = (
    "source.type",
    "source",
    "source_type",
    "evaluator_type",
    "evaluator.spec.evaluator_type",
    "evaluator.type",
    "annotator_kind",
    "annotator_type",
)
SCORE_COMMENTS = (
    "comment",
    "explanation",
    "rationale",
    "text",
    "event_details.feedback",
    "message",
)
FAILED_FROM = 400
"""The status of a call from which on it failed."""
LISTS = (*MESSAGE_NAMES, *HISTORY_NAMES)
DEEPEST = 2
"""Objects inside one another in which the session and the user are looked for."""


def is_logged_call(fields: Fields) -> bool:
    """Return whether a row is one of several calls of a session: messages that were sent, and what came."""
    if _SENT.isdisjoint(fields) or _CAME.isdisjoint(fields):
        return False
    if not _sent_messages(fields):
        return False
    # without a session it needs an id, a model and a time; with one, an id or no label beside it
    if named(fields, SESSIONS) is None:
        id_name = next((name for name in CALL_IDS if id_as_text(fields.get(name))), None)
        return bool(id_name) and has(fields, "model") and any(name in fields for name in TIMES)

    id_name = next((name for name in CALL_IDS if id_as_text(fields.get(name))), None)
    return id_name is not None or fields.keys().isdisjoint((*LABEL_NAMES, *RATING_NAMES))


def read_logged_call(fields: Fields) -> Iterator[LogPart]:
    """Yield a call of a model, and the scores beside it."""
    call_id = next(
        (id_ for name in CALL_IDS if (id_ := id_as_text(fields.get(name)))),
        None,
    )
    # a call without an id gets one made of its content
    call_id = (
        call_id
        or "sha256-" + sha256(dumps(fields, sort_keys=True, default=str).encode()).hexdigest()
    )
    sent = _sent_messages(fields)
    failed = _failure(fields)
    before = input_of(sent)
    trace = id_as_text(fields.get("trace_id")) or call_id
    yield ModelCall(
        trace,
        call_id,
        None,
        named(fields, SESSIONS) or BY_HISTORY,
        time_of(fields),
        **of_sides(before, None if failed else _received(fields)),
        model=True,
        error=failed,
        facts=_facts(fields),
    )
    yield from scores_beside(fields, ("span", call_id))


def read_bedrock_invocation(fields: Fields) -> Iterator[LogPart]:
    """Yield a call that Amazon Bedrock logged: Converse's messages, or the body of one of its models."""
    call_id = require_text(fields, "requestId")
    sent = unwrap(get(fields, "input.inputBodyJson"))
    received = parse(get(fields, "output.outputBodyJson"))
    if isinstance(received, list):  # the pieces of a stream
        received = {"role": "assistant", "content": "".join(map(_piece, list_objects(received)))}

    # the models' own bodies
    results = list_objects(unwrap(received).get("results")) or list_objects(
        unwrap(received).get("outputs")
    )
    if results:
        names = ("outputText", "text")
        received = next(result[name] for result in results for name in names if name in result)
    elif isinstance(received, Mapping) and "generation" in received:
        received = received["generation"]

    session = named(unwrap(fields.get("requestMetadata")), SESSIONS)
    failed = id_as_text(fields.get("errorCode")) or ""
    # some models take one text in place of messages
    prompt = None
    if "messages" not in sent:
        prompt = sent.get("inputText")

    yield ModelCall(
        call_id,
        call_id,
        None,
        session or BY_HISTORY,
        parse_moment(fields.get("timestamp")),
        **of_sides(input_of(prompt or sent), None if failed else output_of(received)),
        model=True,
        error=failed,
        facts=keep_filled_facts(
            user=named(unwrap(fields.get("requestMetadata")), USERS),
            model=fields.get("modelId"),
            metadata=unwrap(fields.get("requestMetadata")),
        ),
    )


def _piece(event: Mapping[str, Any]) -> str:
    """Return the words in an event of a stream, of Converse or of a model's own."""
    places = (
        "delta.text",
        "contentBlockDelta.delta.text",
        "completion",
        "outputText",
        "generation",
    )
    return next(
        (filled for place in places if isinstance(filled := get(event, place), str)),
        "",
    )


def _sent_messages(fields: Fields) -> object:
    """Return what a model was sent, where it is a list of messages or an object with one; None if there is none."""
    for name in SENT:
        value = parse(fields.get(name))
        if isinstance(value, Mapping):
            # the body may stand inside an envelope of the proxy
            inner = value.get("body") or value.get("inputBodyJson") or value
            value = next(
                (unwrap(inner) for list_name in LISTS if unwrap(inner).get(list_name)),
                None,
            )

        if isinstance(value, Mapping) or (value and _are_messages(value)):
            return value

    return None


def _are_messages(value: object) -> bool:
    listed = list_objects(value)
    return bool(listed) and all(any(name in message for name in ROLE_NAMES) for message in listed)


def _received(fields: Fields) -> Any:
    """Return what came of a call: the first of its fields that holds words or calls of tools."""
    for name in CAME:
        # one layer of JSON alone, since words may look like JSON themselves
        value = parse(fields.get(name), 1)
        if name in ("choices", "candidates"):
            value = {name: value}
        if isinstance(value, Mapping):
            value = value.get("body") or value.get("outputBodyJson") or value
        if value not in (None, "", [], {}) and (side := output_of(value, "words")):
            return side

    return None


def _failure(fields: Fields) -> str:
    """Return why a call failed, by its status or its error; empty if it didn't."""
    answer = next(
        (unwrap(fields.get(name)) for name in CAME if unwrap(fields.get(name))),
        {},
    )
    for error in (fields.get("error"), fields.get("error_message"), answer.get("error")):
        if error and not isinstance(error, bool):
            if isinstance(error, Mapping):
                return str(error.get("message") or "failed")
            return str(error)

    # the status is a number, or a word
    status = next(
        (fields[name] for name in ("status_code", "response_status", "status") if name in fields),
        "",
    )
    code = str(status).partition(".")[0]
    if code.isdecimal():
        bad = int(code) >= FAILED_FROM
    else:
        bad = code.casefold() in ("error", "failed")

    return f"status {code}" if bad else ""


def named(fields: Fields, names: frozenset[str], depth: int = 0) -> str | None:
    """Return the first text under one of some names, in a row or in the objects in it."""
    # the row's own fields first, then the objects in it
    inner = list[Mapping[str, Any]]()
    for name, value in fields.items():
        if _folded(name) in names and (filled := id_as_text(value)):
            return filled
        if isinstance(value, Mapping | str):
            opened = unwrap(value)
        else:
            opened = {}

        if opened and depth < DEEPEST:
            inner.append(opened)

    return next(
        (filled for nested in inner if (filled := named(nested, names, depth + 1))),
        None,
    )


def _folded(name: str) -> str:
    return str(name).replace("_", "").replace("-", "").replace(" ", "").casefold()


def time_of(fields: Fields) -> float | None:
    """Return when a call began, in seconds since 1970."""
    places = (fields, *(unwrap(fields.get(name)) for name in ("timestamps", "metrics", "metadata")))
    times = (parse_moment(place[name]) for place in places for name in TIMES if name in place)
    return next((at for at in times if at is not None), None)


def _facts(fields: Fields) -> Mapping[str, Any]:
    # single values beside the call; text in JSON is left out
    beside = {}
    for name, value in fields.items():
        if (
            name not in (*CALL_IDS, *TIMES) and isinstance(value, str | int | float | Mapping)
        ) and (not isinstance(value, str) or value.lstrip()[:1] not in ("{", "[")):
            beside[name] = value

    shown = {}
    for name, value in beside.items():
        if name not in _SENT | _CAME:
            shown[name] = value

    user = named(fields, USERS)
    return shown | keep_filled_facts(user=user, metadata=unwrap(fields.get("metadata")))


def scores_beside(fields: Fields, owner: tuple[Target, str]) -> Iterator[ToolScore]:
    """Yield what was said of a call: scores and votes in lists and objects, and a comment in a field."""
    thumbs = {name: value for name, value in fields.items() if fold(name) in NAMES | STAR_NAMES}
    # a list of entries, or one entry in a list's place
    for name in SCORE_LISTS:
        single = unwrap(fields.get(name))
        for entry in list_objects(fields.get(name)) or ([single] if single else []):
            yield from _score(name, entry, owner)

    # a thumb of the row itself, with the comment beside it
    comment = next((fields[name] for name in COMMENT_NAMES if fields.get(name)), None)
    if (value := _first(fields, LABEL_NAMES)) is not None and not isinstance(value, Mapping | list):
        yield ToolScore(*owner, value, comment=comment)
        return

    for name, value in thumbs.items():
        if value not in (None, "") and isinstance(value, bool | str | int | float):
            yield ToolScore(*owner, value, name, comment=comment)
            return

    if isinstance(comment, str) and comment.strip():
        yield ToolScore(*owner, None, comment=comment)


def _score(listed: str, fields: Fields, owner: tuple[Target, str]) -> Iterator[ToolScore]:
    name = next(
        (filled for path in SCORE_NAMES if (filled := id_as_text(get(fields, path)))),
        listed,
    )
    value = next(
        (
            filled
            for path in SCORE_VALUES
            if (filled := get(fields, path)) not in (None, "", {}, [])
        ),
        None,
    )
    source = next(
        (filled for path in SCORE_SOURCES if (filled := id_as_text(get(fields, path)))),
        "",
    )
    written = next(
        (comment for path in SCORE_COMMENTS if isinstance(comment := get(fields, path), str)),
        None,
    )
    # an entry that is named like a comment has its words as the value
    if fold(name) in map(fold, COMMENT_NAMES) and isinstance(value, str):
        value, written = None, value

    person = named(fields, USERS)
    if value is not None and not isinstance(value, Mapping | list):
        at = time_of(fields)
        yield ToolScore(
            *owner,
            value,
            name,
            source,
            comment=written,
            person=person,
            at=at,
        )
    elif value is None and written and not is_judges(name, source):
        yield ToolScore(*owner, None, comment=written, person=person)


def is_judges(name: str, source: str) -> bool:
    """Return whether a score is a model's or a rule's by what it is called."""
    return fold(source) in ("llm", "model", "code", "ai") or "judge" in name.casefold()


def has_spans(fields: Fields) -> bool:
    """Return whether a row is a trace with its spans in a list, each with an id of its own and two sides."""
    name = next(
        (name for name in SPAN_LISTS if isinstance(fields.get(name), list)),
        None,
    )
    if name is None or not any(has(fields, id_name) for id_name in CALL_IDS):
        return False

    spans = list_objects(fields[name])
    # the first three spans stand for all
    return bool(spans) and all(map(_is_span, spans[:3]))


def _is_span(span: Mapping[str, Any]) -> bool:
    kind = any(name in span for name in KINDS) and any(name in span for name in CALL_IDS)
    return kind and not (_SENT.isdisjoint(span) and _CAME.isdisjoint(span))


def read_trace_with_spans(fields: Fields) -> Iterator[LogPart]:
    """Yield the calls of a trace that holds its spans, and the scores beside."""
    ids = ("trace_id", "traceId", "id", "run_id", "log_id", "uuid")
    trace = next((id_ for name in ids if (id_ := id_as_text(fields.get(name)))), "")
    root = f"{trace}/trace"
    start = time_of(fields)
    yield ModelCall(
        trace,
        root,
        None,
        # the session is looked for outside the spans
        named({**fields, **dict.fromkeys(SPAN_LISTS)}, SESSIONS),
        start,
        **sides(_first(fields, SENT), _first(fields, CAME)),
        error=_failure(fields),
        facts=_facts(fields),
    )
    for name in SPAN_LISTS:
        for span in list_objects(fields.get(name)):
            yield from _span(span, trace, root)

    yield from scores_beside(fields, ("trace", trace))


def _span(span: Fields, trace: str, around: str) -> Iterator[LogPart]:
    span_id = next((id_ for name in CALL_IDS if (id_ := id_as_text(span.get(name)))), "")
    kind = next((filled for name in KINDS if (filled := id_as_text(span.get(name)))), "")
    parent = next((id_ for name in PARENTS if (id_ := id_as_text(span.get(name)))), None)
    yield ModelCall(
        trace,
        span_id,
        # a span without a parent hangs below the trace
        parent or around,
        None,
        time_of(span),
        **sides(_first(span, SENT), _first(span, CAME), silent=silent_kind(kind)),
        model=_folded(kind) in MODELS,
        error=_failure(span) if is_true(span.get("error")) else "",
        facts=keep_filled_facts(retrieved_documents=retrieved_by(kind, _first(span, CAME))),
    )
    for name in SPAN_LISTS:
        for inner in list_objects(span.get(name)):
            yield from _span(inner, trace, span_id)


def _first(fields: Fields, names: tuple[str, ...]) -> Any:
    return next(
        (fields[name] for name in names if fields.get(name) not in (None, "", [], {})),
        None,
    )
