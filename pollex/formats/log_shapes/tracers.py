"""Tools that trace calls of models: each tool's functions have its name, and stand together."""

from collections.abc import Iterator, Mapping

from pollex.errors import BadInput
from pollex.formats.assembly.log_parts import LogPart, ModelCall, ToolScore, parse_timestamp
from pollex.formats.labels import is_usual_thumb
from pollex.formats.log_shapes.exports import (
    Fields,
    detect_written_form,
    format_id,
    get_at_path,
    get_column_value,
    keep_filled_facts,
    list_objects,
    require_text,
    unwrap_object,
)
from pollex.formats.log_shapes.payloads import (
    ANSWER_TEXT_NAMES,
    GENERATED_FIELD_NAMES,
    QUESTION_TEXT_NAMES,
    RunSide,
    WrittenForm,
    is_silent_kind,
    list_retrieved_documents,
    make_call_sides,
    parse_nested_json,
    read_call_sides,
    read_run_input,
    read_run_output,
)
from pollex.formats.log_shapes.spans import get_camel_field
from pollex.text import JsonDict, JsonObject, escape_controls

_LANGFUSE_FIELD_NAMES = frozenset(
    (
        "id",
        "timestamp",
        "name",
        "userid",
        "sessionid",
        "release",
        "version",
        "environment",
        "tags",
        "bookmarked",
        "public",
        "input",
        "output",
        "metadata",
        "comments",
        "traceid",
        "tracename",
        "type",
        "starttime",
        "endtime",
        "completionstarttime",
        "level",
        "statusmessage",
        "parentobservationid",
        "latency",
        "latencyms",
        "observationcount",
        "totalcost",
        "usage",
        "usagedetails",
        "costdetails",
        "toolcalls",
        "tooldefinitions",
        "toolcallnames",
        "htmlpath",
        "projectid",
        "createdat",
        "updatedat",
        "scores",
        "observations",
        "model",
        "modelid",
        "providedmodelname",
    )
)


def read_langfuse_trace(fields: Fields) -> Iterator[LogPart]:
    trace = require_text(fields, "id")
    session = format_id(get_camel_field(fields, "sessionId"))
    yield _make_langfuse_call(
        fields,
        trace,
        f"{trace}/trace",
        None,
        session,
        get_camel_field(fields, "timestamp"),
    )
    for observation in list_objects(fields.get("observations")):
        yield from read_langfuse_observation({"traceId": trace, **observation})

    yield from _read_langfuse_scores(fields, trace)


def read_langfuse_download(fields: Fields) -> Iterator[LogPart]:
    for observation in list_objects(fields.get("observations")):
        yield from read_langfuse_observation(observation)
    yield from _read_langfuse_scores(fields, None)


def _read_langfuse_scores(fields: Fields, trace: str | None) -> Iterator[ToolScore]:
    """Yield scores in rows, or in columns of values, which have no sources."""
    for score in list_objects(fields.get("scores")):
        if "name" in score:
            yield from read_langfuse_score({"traceId": trace, **score})

    for name, value in {**fields, **unwrap_object(fields.get("scores"))}.items():
        listed = parse_nested_json(value)
        # a list under a name that Langfuse doesn't use holds a score's values
        if (
            isinstance(listed, list)
            and listed
            and name.replace("_", "").lower() not in _LANGFUSE_FIELD_NAMES
            and trace
        ):
            values = []
            for score_value in listed:
                if isinstance(score_value, str | int | float):
                    values.append(score_value)
            for score_value in values:
                yield ToolScore(
                    "trace",
                    trace,
                    score_value,
                    name=name,
                    summary=True,
                )


def read_langfuse_observation(fields: Fields) -> Iterator[LogPart]:
    trace = require_text(fields, "traceId", "trace_id")
    parent = format_id(get_camel_field(fields, "parentObservationId"))
    session = format_id(get_camel_field(fields, "sessionId"))
    start = get_camel_field(fields, "startTime")
    yield _make_langfuse_call(
        fields,
        trace,
        require_text(fields, "id"),
        parent,
        session,
        start,
    )
    # columns of scores in the root's row count for the trace
    if not parent:
        fields_beside = {}
        for k, v in fields.items():
            if k != "scores":
                fields_beside[k] = v
        yield from _read_langfuse_scores(fields_beside, trace)


def _make_langfuse_call(
    fields: Fields,
    trace: str,
    span: str,
    parent: str | None,
    session: str | None,
    start: object,
) -> ModelCall:
    kind = str(fields.get("type") or "")
    failed = ""
    if fields.get("level") == "ERROR":
        failed = str(get_camel_field(fields, "statusMessage") or "failed")

    call_facts = keep_filled_facts(
        user=format_id(get_camel_field(fields, "userId")),
        model=get_camel_field(fields, "providedModelName") or fields.get("model"),
        release=fields.get("release"),
        version=fields.get("version"),
        metadata=unwrap_object(fields.get("metadata")),
        retrieved_documents=list_retrieved_documents(kind, fields.get("output")),
    )
    return ModelCall(
        trace,
        span,
        parent,
        session,
        parse_timestamp(start),
        **read_call_sides(fields.get("input"), fields.get("output"), silent=is_silent_kind(kind)),
        model=kind == "GENERATION",
        error=failed,
        facts=call_facts,
    )


def read_langfuse_score(fields: Fields) -> Iterator[ToolScore]:
    subject = fields.get("subject")
    kind = str(get_camel_field(fields, "dataType") or "")
    value = fields.get("value")
    # the words of a category stand beside its number
    if kind == "CATEGORICAL":
        value = get_camel_field(fields, "stringValue") or (
            value if isinstance(value, str) else None
        )

    subject = subject if isinstance(subject, Mapping) else {}
    # the narrowest target counts; the wider ones where that isn't in the files
    targets = {
        "span": format_id(get_camel_field(fields, "observationId"))
        or _get_subject_id(subject, "observation"),
        "trace": format_id(get_camel_field(fields, "traceId")) or _get_subject_id(subject, "trace"),
        "conversation": format_id(get_camel_field(fields, "sessionId"))
        or _get_subject_id(subject, "session"),
    }
    named_targets = [(target, id_) for target, id_ in targets.items() if id_]
    if value in (None, "") or not named_targets:
        return

    target, id_ = named_targets[0]
    yield ToolScore(
        *(target, id_, value, str(fields.get("name") or ""), str(fields.get("source") or "")),  # type: ignore[arg-type]
        comment=fields.get("comment"),
        person=format_id(get_camel_field(fields, "authorUserId"))
        or format_id(get_camel_field(fields, "authorUserName")),
        at=parse_timestamp(fields.get("timestamp")),
        key=format_id(fields.get("id")),
        around=tuple(named_targets[1:]),  # type: ignore[arg-type]
    )


def _get_subject_id(subject: JsonObject, kind: str) -> str | None:
    if subject.get("kind") == kind:
        return format_id(subject.get("id"))
    return None


def read_langfuse_ingestion(fields: Fields) -> Iterator[LogPart]:
    """Yield scores that a program sent to the API; uploads of media are skipped."""
    if str(fields.get("path")).endswith("/scores"):
        body = fields.get("body")
        for score in body if isinstance(body, list) else [body]:
            if isinstance(score, Mapping):
                yield from read_langfuse_score({"source": "API", **score})


LANGSMITH_THREAD_ID_NAMES = ("thread_id", "session_id", "conversation_id")


def read_langsmith_run(fields: Fields) -> Iterator[LogPart]:
    """Yield a run; its `session_id` is the project, and the conversation stands in the metadata."""
    run = require_text(fields, "id", "run_id")
    trace = format_id(fields.get("trace_id")) or format_id(fields.get("parent_run_id")) or run
    metadata = unwrap_object(unwrap_object(fields.get("extra")).get("metadata"))
    session = next(
        (
            thread_id
            for name in LANGSMITH_THREAD_ID_NAMES
            if (thread_id := format_id(metadata.get(name)))
        ),
        format_id(fields.get("thread_id")),
    )
    # inputs and outputs; tools and retrievers have no words for the conversation
    kind = str(fields.get("run_type") or "")
    failed = fields.get("error")
    sent = fields.get("inputs")
    received = fields.get("outputs")
    # an object holds what was said; a cell of a table holds JSON text
    written: WrittenForm = "words" if isinstance(sent, Mapping) else "json"
    before, after = (
        (None, None)
        if is_silent_kind(kind)
        else (read_run_input(sent, written), read_run_output(received, written))
    )
    parent = format_id(fields.get("parent_run_id"))
    # only a root's sides have to be read, since they are what the user saw
    if parent is None and not is_silent_kind(kind):
        _require_langsmith_sides(fields, before, after)

    yield ModelCall(
        trace,
        run,
        parent,
        session,
        parse_timestamp(fields.get("start_time")),
        **make_call_sides(before, after),
        model=kind == "llm",
        error=str(failed) if failed else "",
        facts=keep_filled_facts(
            user=format_id(metadata.get("user_id")),
            model=format_id(metadata.get("ls_model_name")),
            tags=fields.get("tags"),
            metadata=metadata,
            retrieved_documents=list_retrieved_documents(kind, received),
        ),
    )
    # runs inside this one get its trace and its id
    for child in list_objects(fields.get("child_runs")):
        yield from read_langsmith_run({"trace_id": trace, "parent_run_id": run, **child})


def _require_langsmith_sides(
    fields: Fields,
    before: RunSide | None,
    after: RunSide | None,
) -> None:
    """Refuse a conversation with one side empty although other fields may hold its text."""
    sides = (
        ("inputs", before, QUESTION_TEXT_NAMES, "user"),
        ("outputs", after, ANSWER_TEXT_NAMES, "assistant"),
    )
    # one side may have the whole talk
    if any(
        side and {turn.role for turn in side.turns} >= {"user", "assistant"}
        for side in (before, after)
    ):
        return

    # an object of several fields, none of which has a usual name
    for name, side, names, role in sides:
        values = parse_nested_json(fields.get(name))
        unread = side is None or not side.sure
        if side is None and values is not None and not isinstance(values, Mapping):
            raise BadInput(
                "inputs or outputs aren't an object",
                hint="export the runs as LangSmith records them",
            )

        known_names = {"messages", *names, *GENERATED_FIELD_NAMES}
        if (
            unread
            and values
            and len(values) > 1
            and any(values.values())
            and not values.keys() & known_names
        ):
            field_names = escape_controls(", ".join(values), 100)
            raise BadInput(
                f"it is not clear which field has the {role}'s text; there are {field_names}",
                hint=f"call it {names[0]}",
            )


def read_langsmith_feedback(fields: Fields) -> Iterator[LogPart]:
    """Link a run to its trace, so that feedback on it finds the conversation."""
    run = require_text(fields, "run_id", "trace_id")
    trace = format_id(fields.get("trace_id"))
    if trace and run != trace:
        yield ModelCall(trace, run, trace)


OPIK_SCORE_PREFIX, OPIK_REASON_SUFFIX = "feedback_scores.", "_reason"
"""How a score's columns begin in the rows of the page, and how the name of its reason ends."""


def read_opik_trace(fields: Fields) -> Iterator[LogPart]:
    trace = require_text(fields, "id")
    error = unwrap_object(fields.get("error_info"))
    metadata = unwrap_object(fields.get("metadata"))
    user = format_id(metadata.get("user") or metadata.get("user_id"))
    trace_facts = keep_filled_facts(user=user, tags=fields.get("tags"), metadata=metadata)
    call = _make_opik_call(
        fields,
        trace,
        None,
        str(error.get("message") or "failed") if error else "",
    )
    yield call._replace(session=format_id(fields.get("thread_id")), facts=trace_facts)

    # scores in columns, each with a column for its reason
    for column, value in fields.items():
        if (
            column.startswith(OPIK_SCORE_PREFIX)
            and not column.endswith(OPIK_REASON_SUFFIX)
            and value not in (None, "", "-")
        ):
            yield ToolScore(
                "trace",
                trace,
                value,
                column.removeprefix(OPIK_SCORE_PREFIX),
                comment=fields.get(f"{column}{OPIK_REASON_SUFFIX}"),
            )


def _make_opik_call(
    fields: Fields,
    trace: str,
    parent: str | None,
    error: str = "",
) -> ModelCall:
    return ModelCall(
        trace,
        require_text(fields, "id"),
        parent,
        None,
        parse_timestamp(fields.get("start_time")),
        **read_call_sides(get_column_value(fields, "input"), get_column_value(fields, "output")),
        model=fields.get("type") == "llm",
        error=error,
    )


def read_opik_span(fields: Fields) -> Iterator[LogPart]:
    trace = require_text(fields, "trace_id")
    model = fields.get("type") == "llm"
    call = _make_opik_call(fields, trace, format_id(fields.get("parent_span_id")) or trace)
    # spans of other kinds have no words for the talk, but may be rated
    yield call if model else call._replace(before=None, after=None)


def is_opik_page_row(fields: Fields) -> bool:
    return any(name.startswith(OPIK_SCORE_PREFIX) for name in fields)


WEAVE_REACTION_TYPE = "wandb.reaction.1"
WEAVE_NOTE_TYPE = "wandb.note.1"
WEAVE_USER_FEEDBACK_TYPE = "wandb.agent_user_feedback"
WEAVE_VALUE_NAMES = ("value", "score", "rating", "thumbs", "thumb", "label")
"""Names of the value in a feedback's payload that the application made."""
WEAVE_ANNOTATION_PREFIX = "wandb.annotation."


def read_weave_call(fields: Fields) -> Iterator[LogPart]:
    call = require_text(fields, "id")
    trace = require_text(fields, "trace_id")
    sent = get_column_value(fields, "inputs")
    received = get_column_value(fields, "output")
    written: WrittenForm = "words" if isinstance(sent, Mapping) else "json"
    before = read_run_input(sent, written)
    after = read_run_output(received, written)
    metadata = unwrap_object(get_column_value(fields, "attributes"))
    # a call inside another that gets a list of messages is a model's
    history = bool(before and before.history)
    yield ModelCall(
        trace,
        call,
        format_id(fields.get("parent_id")),
        format_id(fields.get("thread_id")),
        parse_timestamp(fields.get("started_at")),
        **make_call_sides(before, after),
        model=history and format_id(fields.get("parent_id")) is not None,
        error=str(fields.get("exception") or ""),
        facts=keep_filled_facts(user=format_id(metadata.get("user")), metadata=metadata),
    )
    for feedback in list_objects(
        get_at_path(unwrap_object(get_column_value(fields, "summary")), "weave.feedback")
    ):
        yield from read_weave_feedback({**feedback, "weave_ref": f"call/{call}"})


def read_weave_feedback(fields: Fields) -> Iterator[LogPart]:
    call = require_text(fields, "weave_ref").rpartition("/")[2]
    payload: Mapping[str, object] = unwrap_object(fields.get("payload"))
    kind = str(fields.get("feedback_type"))
    if kind == WEAVE_NOTE_TYPE and payload.get("note"):
        yield ToolScore(
            "span",
            call,
            None,
            comment=payload["note"],
            person=format_id(fields.get("creator")),
        )

    value = None
    if kind == WEAVE_REACTION_TYPE:
        value = payload.get("emoji")

    name = ""
    if kind.startswith(WEAVE_ANNOTATION_PREFIX):
        name = kind.removeprefix(WEAVE_ANNOTATION_PREFIX)

    if value is not None and not is_usual_thumb(value):
        name = str(value)  # listed among the scores, and no thumb
    elif name:
        value = payload.get("value")
    elif not kind.startswith("wandb."):  # the application's own
        name = kind
        value = next(
            (payload[key] for key in WEAVE_VALUE_NAMES if payload.get(key) is not None),
            None,
        )

    # feedback on an agent has its value in the first tag
    if kind == WEAVE_USER_FEEDBACK_TYPE:
        tags = fields.get("scorer_tags") or payload.get("scorer_tags")
        value = None
        if isinstance(tags, list) and tags:
            value = tags[0]

    if value is not None:
        person = format_id(fields.get("creator"))
        when = parse_timestamp(fields.get("created_at"))
        yield ToolScore("span", call, value, name, person=person, at=when)


BRAINTRUST_SESSION_ID_NAMES = (
    "session_id",
    "sessionId",
    "thread_id",
    "conversation_id",
    "gen_ai.conversation.id",
)


def read_braintrust_span(fields: Fields) -> Iterator[LogPart]:
    trace = require_text(fields, "root_span_id")
    metadata = unwrap_object(fields.get("metadata"))
    parents = fields.get("span_parents")
    kind = str(unwrap_object(fields.get("span_attributes")).get("type") or "")
    # scores and functions say nothing in the conversation
    silent = is_silent_kind(kind) or kind in ("score", "function")
    yield ModelCall(
        trace,
        format_id(fields.get("span_id")) or require_text(fields, "id"),
        parent=format_id(parents[0]) if isinstance(parents, list) and parents else None,
        session=next(
            (
                session_id
                for name in BRAINTRUST_SESSION_ID_NAMES
                if (session_id := format_id(metadata.get(name)))
            ),
            None,
        ),
        at=parse_timestamp(unwrap_object(fields.get("metrics")).get("start"))
        or parse_timestamp(fields.get("created")),
        **read_call_sides(
            fields.get("input"),
            fields.get("output"),
            silent=silent,
            written=detect_written_form(fields),
        ),
        model=kind == "llm",
        # the last line of a traceback says what failed
        error=str(fields.get("error") or "").strip().rpartition("\n")[2],
        facts=keep_filled_facts(
            user=format_id(metadata.get("user_id")),
            tags=fields.get("tags"),
            model=format_id(metadata.get("model")),
            metadata=metadata,
        ),
    )
    if (row := require_text(fields, "id")) != format_id(fields.get("span_id")):
        yield ModelCall(trace, row, format_id(fields.get("span_id")))  # comments name the row


def read_datadog_span(fields: Fields) -> Iterator[LogPart]:
    attributes = unwrap_object(fields.get("attributes"))
    trace = require_text(attributes, "trace_id")
    kind = str(attributes.get("span_kind") or "")
    tags = _read_datadog_tags(attributes.get("tags"))
    # Datadog writes `undefined` for a missing parent
    parent = format_id(attributes.get("parent_id"))
    yield ModelCall(
        trace,
        require_text(attributes, "span_id"),
        None if parent in ("undefined", "0") else parent,
        session=format_id(attributes.get("session_id")) or format_id(tags.get("session_id")),
        at=parse_timestamp(attributes.get("start_ns")),
        **read_call_sides(
            attributes.get("input"),
            attributes.get("output"),
            silent=is_silent_kind(kind),
            written="words",
        ),
        model=kind == "llm",
        error="failed" if attributes.get("status") == "error" else "",
        facts=keep_filled_facts(
            user=format_id(tags.get("user_id")),
            model=format_id(attributes.get("model_name")),
            metadata=tags,
            retrieved_documents=list_retrieved_documents(kind, attributes.get("output")),
        ),
        beside=attributes,
    )


def _read_datadog_tags(tags: object) -> Fields:
    """Return tags as an object, also those that are a list of `name:value`."""
    listed = tags if isinstance(tags, list) else []
    return unwrap_object(tags) or {
        name: value for name, mark, value in (str(tag).partition(":") for tag in listed) if mark
    }


def read_helicone_request(fields: Fields) -> Iterator[LogPart]:
    request = require_text(fields, "request_id")
    answer = unwrap_object(fields.get("response_body"))
    # properties are headers, whose names are written in any case
    properties: JsonDict = {}
    for k, v in unwrap_object(fields.get("request_properties")).items():
        properties[str(k).casefold()] = v
    failed: object = answer.get("error")
    if isinstance(failed, Mapping):
        failed = failed.get("message", "failed")

    # every request has the whole history
    call_sides = read_call_sides(fields.get("request_body"), None if failed else answer) | {
        "history": True
    }
    yield ModelCall(
        request,
        request,
        None,
        format_id(properties.get("helicone-session-id")),
        at=parse_timestamp(fields.get("request_created_at")),
        **call_sides,
        model=True,
        error=str(failed or ""),
        facts=keep_filled_facts(
            user=format_id(fields.get("request_user_id")),
            model=fields.get("request_model"),
            metadata=properties,
        ),
    )


def read_portkey_log(fields: Fields) -> Iterator[LogPart]:
    request = require_text(fields, "id")
    metadata = unwrap_object(fields.get("metadata"))
    sent = unwrap_object(fields.get("request"))
    received = unwrap_object(fields.get("response"))
    call_sides = read_call_sides(sent.get("body", sent), received.get("body", received)) | {
        "history": True
    }
    # requests of one conversation share Portkey's trace id
    session = format_id(fields.get("trace_id"))
    yield ModelCall(
        request,
        request,
        None,
        session,
        parse_timestamp(fields.get("created_at")),
        **call_sides,
        model=True,
        error="" if "after" in call_sides else str(fields.get("response_status_code") or "failed"),
        facts=keep_filled_facts(
            user=format_id(metadata.get("_user")),
            model=format_id(fields.get("ai_model")),
            metadata=metadata,
        ),
    )
