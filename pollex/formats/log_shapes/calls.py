"""Calls of models as proxies and tracers log them, told by what the fields hold, whatever their names are.

A row is one call: a list of messages that was sent, what came of it, and the session that it
belongs to; or a trace whose spans stand in a list inside it. Scores stand beside, in lists or objects.
"""

from collections.abc import Iterator, Mapping
from hashlib import sha256
from json import dumps
from typing import Any

from pollex.formats.assembly.log_parts import (
    SESSION_ID_FOR_CALLS_JOINED_BY_HISTORY,
    LabelTargetKind,
    LogPart,
    ModelCall,
    ToolScore,
    parse_timestamp,
)
from pollex.formats.feedback import COMMENT_FIELD_NAMES
from pollex.formats.fields import LABEL_FIELD_NAMES, RATING_FIELD_NAMES
from pollex.formats.log_shapes.exports import (
    Fields,
    format_id,
    get_at_path,
    has_path,
    keep_filled_facts,
    list_objects,
    parse_flag,
    require_text,
    unwrap_object,
)
from pollex.formats.log_shapes.payloads import (
    HISTORY_FIELD_NAMES,
    MESSAGES_FIELD_NAMES,
    is_silent_kind,
    list_retrieved_documents,
    make_call_sides,
    parse_nested_json,
    read_call_sides,
    read_run_input,
    read_run_output,
)
from pollex.formats.log_shapes.turns import ROLE_FIELD_NAMES
from pollex.text import JsonObject

SENT_FIELD_NAMES = (
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
RECEIVED_FIELD_NAMES = (
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
_SENT_NAME_SET, _RECEIVED_NAME_SET = frozenset(SENT_FIELD_NAMES), frozenset(RECEIVED_FIELD_NAMES)
SESSION_ID_NAMES = frozenset(
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
USER_ID_NAMES = frozenset(
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
CALL_ID_NAMES = (
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
PARENT_ID_NAMES = (
    "parent_id",
    "parentId",
    "parent_span_id",
    "parentSpanId",
    "parent_run_id",
    "parent",
)
CALL_TIME_NAMES = (
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
SPAN_LIST_NAMES = ("spans", "observations", "child_runs", "runs", "children", "steps", "calls")
SPAN_KIND_NAMES = ("type", "span_type", "spanType", "kind", "span_kind", "run_type", "event_type")
MODEL_SPAN_KINDS = frozenset(
    ("llm", "generation", "chat", "chatmodel", "chatcompletion", "model", "completion")
)
SCORE_LIST_NAMES = (
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
SCORE_VALUE_PATHS = (
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
SCORE_NAME_PATHS = ("name", "key", "metric", "evaluator.name", "event_type", "type", "title")
SCORE_SOURCE_PATHS = (
    "source.type",
    "source",
    "source_type",
    "evaluator_type",
    "evaluator.spec.evaluator_type",
    "evaluator.type",
    "annotator_kind",
    "annotator_type",
)
SCORE_COMMENT_PATHS = (
    "comment",
    "explanation",
    "rationale",
    "text",
    "event_details.feedback",
    "message",
)
MIN_FAILED_STATUS = 400
"""The status of a call from which on it failed."""
MESSAGE_LIST_NAMES = (*MESSAGES_FIELD_NAMES, *HISTORY_FIELD_NAMES)
MAX_SEARCH_DEPTH = 2
"""Objects inside one another in which the session and the user are looked for."""


def is_logged_call(fields: Fields) -> bool:
    """Return whether a row is one of several calls of a session: messages that were sent, and what came."""
    if _SENT_NAME_SET.isdisjoint(fields) or _RECEIVED_NAME_SET.isdisjoint(fields):
        return False
    if not _find_sent_messages(fields):
        return False
    # without a session it needs an id, a model and a time; with one, an id or no label beside it
    if find_named_text(fields, SESSION_ID_NAMES) is None:
        id_name = next((name for name in CALL_ID_NAMES if format_id(fields.get(name))), None)
        return (
            bool(id_name)
            and has_path(fields, "model")
            and any(name in fields for name in CALL_TIME_NAMES)
        )

    id_name = next((name for name in CALL_ID_NAMES if format_id(fields.get(name))), None)
    return id_name is not None or fields.keys().isdisjoint(
        (*LABEL_FIELD_NAMES, *RATING_FIELD_NAMES)
    )


def read_logged_call(fields: Fields) -> Iterator[LogPart]:
    """Yield a call of a model, and the scores beside it."""
    call_id = next(
        (id_ for name in CALL_ID_NAMES if (id_ := format_id(fields.get(name)))),
        None,
    )
    # a call without an id gets one made of its content
    call_id = (
        call_id
        or "sha256-" + sha256(dumps(fields, sort_keys=True, default=str).encode()).hexdigest()
    )
    sent = _find_sent_messages(fields)
    failed = _describe_failure(fields)
    before = read_run_input(sent)
    trace = format_id(fields.get("trace_id")) or call_id
    yield ModelCall(
        trace,
        call_id,
        None,
        find_named_text(fields, SESSION_ID_NAMES) or SESSION_ID_FOR_CALLS_JOINED_BY_HISTORY,
        find_call_time(fields),
        **make_call_sides(before, None if failed else _find_received(fields)),
        model=True,
        error=failed,
        facts=_collect_call_facts(fields),
    )
    yield from iterate_scores_beside(fields, ("span", call_id))


def read_bedrock_invocation(fields: Fields) -> Iterator[LogPart]:
    """Yield a call that Amazon Bedrock logged: Converse's messages, or the body of one of its models."""
    call_id = require_text(fields, "requestId")
    sent = unwrap_object(get_at_path(fields, "input.inputBodyJson"))
    received = parse_nested_json(get_at_path(fields, "output.outputBodyJson"))
    if isinstance(received, list):  # the pieces of a stream
        received = {
            "role": "assistant",
            "content": "".join(map(_get_stream_words, list_objects(received))),
        }

    # the models' own bodies
    results = list_objects(unwrap_object(received).get("results")) or list_objects(
        unwrap_object(received).get("outputs")
    )
    if results:
        names = ("outputText", "text")
        received = next(result[name] for result in results for name in names if name in result)
    elif isinstance(received, Mapping) and "generation" in received:
        received = received["generation"]

    session = find_named_text(unwrap_object(fields.get("requestMetadata")), SESSION_ID_NAMES)
    failed = format_id(fields.get("errorCode")) or ""
    # some models take one text in place of messages
    prompt = None
    if "messages" not in sent:
        prompt = sent.get("inputText")

    yield ModelCall(
        call_id,
        call_id,
        None,
        session or SESSION_ID_FOR_CALLS_JOINED_BY_HISTORY,
        parse_timestamp(fields.get("timestamp")),
        **make_call_sides(
            read_run_input(prompt or sent), None if failed else read_run_output(received)
        ),
        model=True,
        error=failed,
        facts=keep_filled_facts(
            user=find_named_text(unwrap_object(fields.get("requestMetadata")), USER_ID_NAMES),
            model=fields.get("modelId"),
            metadata=unwrap_object(fields.get("requestMetadata")),
        ),
    )


def _get_stream_words(event: JsonObject) -> str:
    """Return the words in an event of a stream, of Converse or of a model's own."""
    places = (
        "delta.text",
        "contentBlockDelta.delta.text",
        "completion",
        "outputText",
        "generation",
    )
    return next(
        (filled for place in places if isinstance(filled := get_at_path(event, place), str)),
        "",
    )


def _find_sent_messages(fields: Fields) -> object:
    """Return what a model was sent, where it is a list of messages or an object with one; None if there is none."""
    for name in SENT_FIELD_NAMES:
        value = parse_nested_json(fields.get(name))
        if isinstance(value, Mapping):
            # the body may stand inside an envelope of the proxy
            inner = value.get("body") or value.get("inputBodyJson") or value
            value = next(
                (
                    unwrap_object(inner)
                    for list_name in MESSAGE_LIST_NAMES
                    if unwrap_object(inner).get(list_name)
                ),
                None,
            )

        if isinstance(value, Mapping) or (value and _are_messages_with_roles(value)):
            return value

    return None


def _are_messages_with_roles(value: object) -> bool:
    listed = list_objects(value)
    return bool(listed) and all(
        any(name in message for name in ROLE_FIELD_NAMES) for message in listed
    )


def _find_received(fields: Fields) -> Any:
    """Return what came of a call: the first of its fields that holds words or calls of tools."""
    for name in RECEIVED_FIELD_NAMES:
        # one layer of JSON alone, since words may look like JSON themselves
        value = parse_nested_json(fields.get(name), 1)
        if name in ("choices", "candidates"):
            value = {name: value}
        if isinstance(value, Mapping):
            value = value.get("body") or value.get("outputBodyJson") or value
        if value not in (None, "", [], {}) and (side := read_run_output(value, "words")):
            return side

    return None


def _describe_failure(fields: Fields) -> str:
    """Return why a call failed, by its status or its error; empty if it didn't."""
    answer = next(
        (
            unwrap_object(fields.get(name))
            for name in RECEIVED_FIELD_NAMES
            if unwrap_object(fields.get(name))
        ),
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
        bad = int(code) >= MIN_FAILED_STATUS
    else:
        bad = code.casefold() in ("error", "failed")

    return f"status {code}" if bad else ""


def find_named_text(fields: Fields, names: frozenset[str], depth: int = 0) -> str | None:
    """Return the first text under one of some names, in a row or in the objects in it."""
    # the row's own fields first, then the objects in it
    inner = list[JsonObject]()
    for name, value in fields.items():
        if _normalize_name(name) in names and (filled := format_id(value)):
            return filled
        if isinstance(value, Mapping | str):
            opened = unwrap_object(value)
        else:
            opened = {}

        if opened and depth < MAX_SEARCH_DEPTH:
            inner.append(opened)

    return next(
        (filled for nested in inner if (filled := find_named_text(nested, names, depth + 1))),
        None,
    )


def _normalize_name(name: str) -> str:
    return str(name).replace("_", "").replace("-", "").replace(" ", "").casefold()


def find_call_time(fields: Fields) -> float | None:
    """Return when a call began, in seconds since 1970."""
    places = (
        fields,
        *(unwrap_object(fields.get(name)) for name in ("timestamps", "metrics", "metadata")),
    )
    times = (
        parse_timestamp(place[name])
        for place in places
        for name in CALL_TIME_NAMES
        if name in place
    )
    return next((at for at in times if at is not None), None)


def _collect_call_facts(fields: Fields) -> JsonObject:
    # single values beside the call; text in JSON is left out
    beside = {}
    for name, value in fields.items():
        if (
            name not in (*CALL_ID_NAMES, *CALL_TIME_NAMES)
            and isinstance(value, str | int | float | Mapping)
        ) and (not isinstance(value, str) or value.lstrip()[:1] not in ("{", "[")):
            beside[name] = value

    shown = {}
    for name, value in beside.items():
        if name not in _SENT_NAME_SET | _RECEIVED_NAME_SET:
            shown[name] = value

    user = find_named_text(fields, USER_ID_NAMES)
    return shown | keep_filled_facts(user=user, metadata=unwrap_object(fields.get("metadata")))


def iterate_scores_beside(
    fields: Fields, owner: tuple[LabelTargetKind, str]
) -> Iterator[ToolScore]:
    """Yield what was said of a call: scores and votes in lists and objects, and a comment in a field."""
    from pollex.formats.assembly.thumbs import (  # calls alone need it
        STAR_SCORE_NAMES,
        THUMB_SCORE_NAMES,
        keep_lowercase_letters_of_name,
    )

    thumbs = {
        name: value
        for name, value in fields.items()
        if keep_lowercase_letters_of_name(name) in THUMB_SCORE_NAMES | STAR_SCORE_NAMES
    }
    # a list of entries, or one entry in a list's place
    for name in SCORE_LIST_NAMES:
        single = unwrap_object(fields.get(name))
        for entry in list_objects(fields.get(name)) or ([single] if single else []):
            yield from _read_score(name, entry, owner)

    # a thumb of the row itself, with the comment beside it
    comment = next((fields[name] for name in COMMENT_FIELD_NAMES if fields.get(name)), None)
    if (value := _find_first_filled(fields, LABEL_FIELD_NAMES)) is not None and not isinstance(
        value, Mapping | list
    ):
        yield ToolScore(*owner, value, comment=comment)
        return

    for name, value in thumbs.items():
        if value not in (None, "") and isinstance(value, bool | str | int | float):
            yield ToolScore(*owner, value, name, comment=comment)
            return

    if isinstance(comment, str) and comment.strip():
        yield ToolScore(*owner, None, comment=comment)


def _read_score(
    listed: str, fields: Fields, owner: tuple[LabelTargetKind, str]
) -> Iterator[ToolScore]:
    name = next(
        (filled for path in SCORE_NAME_PATHS if (filled := format_id(get_at_path(fields, path)))),
        listed,
    )
    value = next(
        (
            filled
            for path in SCORE_VALUE_PATHS
            if (filled := get_at_path(fields, path)) not in (None, "", {}, [])
        ),
        None,
    )
    source = next(
        (filled for path in SCORE_SOURCE_PATHS if (filled := format_id(get_at_path(fields, path)))),
        "",
    )
    written = next(
        (
            comment
            for path in SCORE_COMMENT_PATHS
            if isinstance(comment := get_at_path(fields, path), str)
        ),
        None,
    )
    from pollex.formats.assembly.thumbs import keep_lowercase_letters_of_name  # as above

    # an entry that is named like a comment has its words as the value
    if keep_lowercase_letters_of_name(name) in map(
        keep_lowercase_letters_of_name, COMMENT_FIELD_NAMES
    ) and isinstance(value, str):
        value, written = None, value

    person = find_named_text(fields, USER_ID_NAMES)
    if value is not None and not isinstance(value, Mapping | list):
        at = find_call_time(fields)
        yield ToolScore(
            *owner,
            value,
            name,
            source,
            comment=written,
            person=person,
            at=at,
        )
    elif value is None and written and not is_model_score(name, source):
        yield ToolScore(*owner, None, comment=written, person=person)


def is_model_score(name: str, source: str) -> bool:
    """Return whether a score is a model's or a rule's by what it is called."""
    from pollex.formats.assembly.thumbs import keep_lowercase_letters_of_name  # as above

    return (
        keep_lowercase_letters_of_name(source) in ("llm", "model", "code", "ai")
        or "judge" in name.casefold()
    )


def is_trace_with_spans(fields: Fields) -> bool:
    """Return whether a row is a trace with its spans in a list, each with an id of its own and two sides."""
    name = next(
        (name for name in SPAN_LIST_NAMES if isinstance(fields.get(name), list)),
        None,
    )
    if name is None or not any(has_path(fields, id_name) for id_name in CALL_ID_NAMES):
        return False

    spans = list_objects(fields[name])
    # the first three spans stand for all
    return bool(spans) and all(map(_is_span, spans[:3]))


def _is_span(span: JsonObject) -> bool:
    kind = any(name in span for name in SPAN_KIND_NAMES) and any(
        name in span for name in CALL_ID_NAMES
    )
    return kind and not (_SENT_NAME_SET.isdisjoint(span) and _RECEIVED_NAME_SET.isdisjoint(span))


def read_trace_with_spans(fields: Fields) -> Iterator[LogPart]:
    """Yield the calls of a trace that holds its spans, and the scores beside."""
    ids = ("trace_id", "traceId", "id", "run_id", "log_id", "uuid")
    trace = next((id_ for name in ids if (id_ := format_id(fields.get(name)))), "")
    root = f"{trace}/trace"
    start = find_call_time(fields)
    yield ModelCall(
        trace,
        root,
        None,
        # the session is looked for outside the spans
        find_named_text({**fields, **dict.fromkeys(SPAN_LIST_NAMES)}, SESSION_ID_NAMES),
        start,
        **read_call_sides(
            _find_first_filled(fields, SENT_FIELD_NAMES),
            _find_first_filled(fields, RECEIVED_FIELD_NAMES),
        ),
        error=_describe_failure(fields),
        facts=_collect_call_facts(fields),
    )
    for name in SPAN_LIST_NAMES:
        for span in list_objects(fields.get(name)):
            yield from _read_span(span, trace, root)

    yield from iterate_scores_beside(fields, ("trace", trace))


def _read_span(span: Fields, trace: str, around: str) -> Iterator[LogPart]:
    span_id = next((id_ for name in CALL_ID_NAMES if (id_ := format_id(span.get(name)))), "")
    kind = next((filled for name in SPAN_KIND_NAMES if (filled := format_id(span.get(name)))), "")
    parent = next((id_ for name in PARENT_ID_NAMES if (id_ := format_id(span.get(name)))), None)
    yield ModelCall(
        trace,
        span_id,
        # a span without a parent hangs below the trace
        parent or around,
        None,
        find_call_time(span),
        **read_call_sides(
            _find_first_filled(span, SENT_FIELD_NAMES),
            _find_first_filled(span, RECEIVED_FIELD_NAMES),
            silent=is_silent_kind(kind),
        ),
        model=_normalize_name(kind) in MODEL_SPAN_KINDS,
        error=_describe_failure(span) if parse_flag(span.get("error")) else "",
        facts=keep_filled_facts(
            retrieved_documents=list_retrieved_documents(
                kind, _find_first_filled(span, RECEIVED_FIELD_NAMES)
            )
        ),
    )
    for name in SPAN_LIST_NAMES:
        for inner in list_objects(span.get(name)):
            yield from _read_span(inner, trace, span_id)


def _find_first_filled(fields: Fields, names: tuple[str, ...]) -> object:
    return next(
        (fields[name] for name in names if fields.get(name) not in (None, "", [], {})),
        None,
    )
