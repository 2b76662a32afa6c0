"""Tools that trace calls of models: each tool's functions have its name, and stand together."""

from collections.abc import Iterator, Mapping
from typing import Any

from pollex.errors import BadInput
from pollex.formats.assembly.log_parts import LogPart, ModelCall, ToolScore, parse_moment
from pollex.formats.labels import is_usual
from pollex.formats.log_shapes.exports import (
    Fields,
    detect_written_form,
    get,
    get_under,
    id_as_text,
    keep_filled_facts,
    list_objects,
    require_text,
    unwrap,
)
from pollex.formats.log_shapes.payloads import (
    ANSWER_NAMES,
    GENERATED_NAMES,
    QUESTION_NAMES,
    RunSide,
    Written,
    input_of,
    of_sides,
    output_of,
    parse,
    retrieved_by,
    sides,
)
from pollex.formats.log_shapes.spans import field_of, silent_kind
from pollex.text import escape_controls

_LANGFUSE_FIELDS = frozenset(
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
    session = id_as_text(field_of(fields, "sessionId"))
    yield _langfuse_call(
        fields,
        trace,
        f"{trace}/trace",
        None,
        session,
        field_of(fields, "timestamp"),
    )
    for observation in list_objects(fields.get("observations")):
        yield from read_langfuse_observation({"traceId": trace, **observation})

    yield from _langfuse_scores(fields, trace)


def read_langfuse_download(fields: Fields) -> Iterator[LogPart]:
    for observation in list_objects(fields.get("observations")):
        yield from read_langfuse_observation(observation)
    yield from _langfuse_scores(fields, None)


def _langfuse_scores(fields: Fields, trace: str | None) -> Iterator[ToolScore]:
    """Yield scores in rows, or in columns of values, which have no sources."""
    for score in list_objects(fields.get("scores")):
        if "name" in score:
            yield from read_langfuse_score({"traceId": trace, **score})

    for name, value in {**fields, **unwrap(fields.get("scores"))}.items():
        listed = parse(value)
        # a list under a name that Langfuse doesn't use holds a score's values
        if (
            isinstance(listed, list)
            and listed
            and name.replace("_", "").lower() not in _LANGFUSE_FIELDS
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
    parent = id_as_text(field_of(fields, "parentObservationId"))
    session = id_as_text(field_of(fields, "sessionId"))
    start = field_of(fields, "startTime")
    yield _langfuse_call(
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
        yield from _langfuse_scores(fields_beside, trace)


def _langfuse_call(
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
        failed = str(field_of(fields, "statusMessage") or "failed")

    call_facts = keep_filled_facts(
        user=id_as_text(field_of(fields, "userId")),
        model=field_of(fields, "providedModelName") or fields.get("model"),
        release=fields.get("release"),
        version=fields.get("version"),
        metadata=unwrap(fields.get("metadata")),
        retrieved_documents=retrieved_by(kind, fields.get("output")),
    )
    return ModelCall(
        trace,
        span,
        parent,
        session,
        parse_moment(start),
        **sides(fields.get("input"), fields.get("output"), silent=silent_kind(kind)),
        model=kind == "GENERATION",
        error=failed,
        facts=call_facts,
    )


def read_langfuse_score(fields: Fields) -> Iterator[ToolScore]:
    subject = fields.get("subject")
    kind = str(field_of(fields, "dataType") or "")
    value = fields.get("value")
    # the words of a category stand beside its number
    if kind == "CATEGORICAL":
        value = field_of(fields, "stringValue") or (value if isinstance(value, str) else None)

    subject = subject if isinstance(subject, Mapping) else {}
    # the narrowest target counts; the wider ones where that isn't in the files
    targets = {
        "span": id_as_text(field_of(fields, "observationId"))
        or _subject_of_kind(subject, "observation"),
        "trace": id_as_text(field_of(fields, "traceId")) or _subject_of_kind(subject, "trace"),
        "conversation": id_as_text(field_of(fields, "sessionId"))
        or _subject_of_kind(subject, "session"),
    }
    named_targets = [(target, id_) for target, id_ in targets.items() if id_]
    if value in (None, "") or not named_targets:
        return

    target, id_ = named_targets[0]
    yield ToolScore(
        *(target, id_, value, str(fields.get("name") or ""), str(fields.get("source") or "")),  # type: ignore[arg-type]
        comment=fields.get("comment"),
        person=id_as_text(field_of(fields, "authorUserId"))
        or id_as_text(field_of(fields, "authorUserName")),
        at=parse_moment(fields.get("timestamp")),
        key=id_as_text(fields.get("id")),
        around=tuple(named_targets[1:]),  # type: ignore[arg-type]
    )


def _subject_of_kind(subject: Mapping[str, Any], kind: str) -> str | None:
    if subject.get("kind") == kind:
        return id_as_text(subject.get("id"))
    return None


def read_langfuse_sent(fields: Fields) -> Iterator[LogPart]:
    """Yield scores that a program sent to the API; uploads of media are skipped."""
    if str(fields.get("path")).endswith("/scores"):
        body = fields.get("body")
        for score in body if isinstance(body, list) else [body]:
            if isinstance(score, Mapping):
                yield from read_langfuse_score({"source": "API", **score})


LANGSMITH_THREADS = ("thread_id", "session_id", "conversation_id")


def read_langsmith_run(fields: Fields) -> Iterator[LogPart]:
    """Yield a run; its `session_id` is the project, and the conversation stands in the metadata."""
    run = require_text(fields, "id", "run_id")
    trace = id_as_text(fields.get("trace_id")) or id_as_text(fields.get("parent_run_id")) or run
    metadata = unwrap(unwrap(fields.get("extra")).get("metadata"))
    session = next(
        (thread_id for name in LANGSMITH_THREADS if (thread_id := id_as_text(metadata.get(name)))),
        id_as_text(fields.get("thread_id")),
    )
    # inputs and outputs; tools and retrievers have no words for the conversation
    kind = str(fields.get("run_type") or "")
    failed = fields.get("error")
    sent = fields.get("inputs")
    received = fields.get("outputs")
    # an object holds what was said; a cell of a table holds JSON text
    written: Written = "words" if isinstance(sent, Mapping) else "json"
    before, after = (
        (None, None)
        if silent_kind(kind)
        else (input_of(sent, written), output_of(received, written))
    )
    parent = id_as_text(fields.get("parent_run_id"))
    # only a root's sides have to be read, since they are what the user saw
    if parent is None and not silent_kind(kind):
        _require_langsmith_read(fields, before, after)

    yield ModelCall(
        trace,
        run,
        parent,
        session,
        parse_moment(fields.get("start_time")),
        **of_sides(before, after),
        model=kind == "llm",
        error=str(failed) if failed else "",
        facts=keep_filled_facts(
            user=id_as_text(metadata.get("user_id")),
            model=id_as_text(metadata.get("ls_model_name")),
            tags=fields.get("tags"),
            metadata=metadata,
            retrieved_documents=retrieved_by(kind, received),
        ),
    )
    # runs inside this one get its trace and its id
    for child in list_objects(fields.get("child_runs")):
        yield from read_langsmith_run({"trace_id": trace, "parent_run_id": run, **child})


def _require_langsmith_read(
    fields: Fields,
    before: RunSide | None,
    after: RunSide | None,
) -> None:
    """Refuse a conversation with one side empty although other fields may hold its text."""
    sides = (
        ("inputs", before, QUESTION_NAMES, "user"),
        ("outputs", after, ANSWER_NAMES, "assistant"),
    )
    # one side may have the whole talk
    if any(
        side and {turn.role for turn in side.turns} >= {"user", "assistant"}
        for side in (before, after)
    ):
        return

    # an object of several fields, none of which has a usual name
    for name, side, names, role in sides:
        values = parse(fields.get(name))
        unread = side is None or not side.sure
        if side is None and values is not None and not isinstance(values, Mapping):
            raise BadInput(
                "inputs or outputs aren't an object",
                hint="export the runs as LangSmith records them",
            )

        known_names = {"messages", *names, *GENERATED_NAMES}
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
    trace = id_as_text(fields.get("trace_id"))
    if trace and run != trace:
        yield ModelCall(trace, run, trace)


OPIK_COLUMN, OPIK_REASON = "feedback_scores.", "_reason"
"""How a score's columns begin in the rows of the page, and how the name of its reason ends."""


def read_opik_trace(fields: Fields) -> Iterator[LogPart]:
    trace = require_text(fields, "id")
    error = unwrap(fields.get("error_info"))
    metadata = unwrap(fields.get("metadata"))
    user = id_as_text(metadata.get("user") or metadata.get("user_id"))
    trace_facts = keep_filled_facts(user=user, tags=fields.get("tags"), metadata=metadata)
    call = _opik_call(
        fields,
        trace,
        None,
        str(error.get("message") or "failed") if error else "",
    )
    yield call._replace(session=id_as_text(fields.get("thread_id")), facts=trace_facts)

    # scores in columns, each with a column for its reason
    for column, value in fields.items():
        if (
            column.startswith(OPIK_COLUMN)
            and not column.endswith(OPIK_REASON)
            and value not in (None, "", "-")
        ):
            yield ToolScore(
                "trace",
                trace,
                value,
                column.removeprefix(OPIK_COLUMN),
                comment=fields.get(f"{column}{OPIK_REASON}"),
            )


def _opik_call(
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
        parse_moment(fields.get("start_time")),
        **sides(get_under(fields, "input"), get_under(fields, "output")),
        model=fields.get("type") == "llm",
        error=error,
    )


def read_opik_span(fields: Fields) -> Iterator[LogPart]:
    trace = require_text(fields, "trace_id")
    model = fields.get("type") == "llm"
    call = _opik_call(fields, trace, id_as_text(fields.get("parent_span_id")) or trace)
    # spans of other kinds have no words for the talk, but may be rated
    yield call if model else call._replace(before=None, after=None)


def is_opik_page_row(fields: Fields) -> bool:
    return any(name.startswith(OPIK_COLUMN) for name in fields)


WEAVE_REACTION = "wandb.reaction.1"
WEAVE_NOTE = "wandb.note.1"
WEAVE_USER_FEEDBACK = "wandb.agent_user_feedback"
WEAVE_VALUES = ("value", "score", "rating", "thumbs", "thumb", "label")
"""Names of the value in a feedback's payload that the application made."""
WEAVE_ANNOTATION = "wandb.annotation."


def read_weave_call(fields: Fields) -> Iterator[LogPart]:
    call = require_text(fields, "id")
    trace = require_text(fields, "trace_id")
    sent = get_under(fields, "inputs")
    received = get_under(fields, "output")
    written: Written = "words" if isinstance(sent, Mapping) else "json"
    before = input_of(sent, written)
    after = output_of(received, written)
    metadata = unwrap(get_under(fields, "attributes"))
    # a call inside another that gets a list of messages is a model's
    history = bool(before and before.history)
    yield ModelCall(
        trace,
        call,
        id_as_text(fields.get("parent_id")),
        id_as_text(fields.get("thread_id")),
        parse_moment(fields.get("started_at")),
        **of_sides(before, after),
        model=history and id_as_text(fields.get("parent_id")) is not None,
        error=str(fields.get("exception") or ""),
        facts=keep_filled_facts(user=id_as_text(metadata.get("user")), metadata=metadata),
    )
    for feedback in list_objects(get(unwrap(get_under(fields, "summary")), "weave.feedback")):
        yield from read_weave_feedback({**feedback, "weave_ref": f"call/{call}"})


def read_weave_feedback(fields: Fields) -> Iterator[LogPart]:
    call = require_text(fields, "weave_ref").rpartition("/")[2]
    payload: Mapping[str, object] = unwrap(fields.get("payload"))
    kind = str(fields.get("feedback_type"))
    if kind == WEAVE_NOTE and payload.get("note"):
        yield ToolScore(
            "span",
            call,
            None,
            comment=payload["note"],
            person=id_as_text(fields.get("creator")),
        )

    value = None
    if kind == WEAVE_REACTION:
        value = payload.get("emoji")

    name = ""
    if kind.startswith(WEAVE_ANNOTATION):
        name = kind.removeprefix(WEAVE_ANNOTATION)

    if value is not None and not is_usual(value):
        name = str(value)  # listed among the scores, and no thumb
    elif name:
        value = payload.get("value")
    elif not kind.startswith("wandb."):  # the application's own
        name = kind
        value = next(
            (payload[key] for key in WEAVE_VALUES if payload.get(key) is not None),
            None,
        )

    # feedback on an agent has its value in the first tag
    if kind == WEAVE_USER_FEEDBACK:
        tags = fields.get("scorer_tags") or payload.get("scorer_tags")
        value = None
        if isinstance(tags, list) and tags:
            value = tags[0]

    if value is not None:
        person = id_as_text(fields.get("creator"))
        when = parse_moment(fields.get("created_at"))
        yield ToolScore("span", call, value, name, person=person, at=when)


BRAINTRUST_SESSIONS = (
    "session_id",
    "sessionId",
    "thread_id",
    "conversation_id",
    "gen_ai.conversation.id",
)


def read_braintrust_span(fields: Fields) -> Iterator[LogPart]:
    trace = require_text(fields, "root_span_id")
    metadata = unwrap(fields.get("metadata"))
    parents = fields.get("span_parents")
    kind = str(unwrap(fields.get("span_attributes")).get("type") or "")
    # scores and functions say nothing in the conversation
    silent = silent_kind(kind) or kind in ("score", "function")
    yield ModelCall(
        trace,
        id_as_text(fields.get("span_id")) or require_text(fields, "id"),
        parent=id_as_text(parents[0]) if isinstance(parents, list) and parents else None,
        session=next(
            (
                session_id
                for name in BRAINTRUST_SESSIONS
                if (session_id := id_as_text(metadata.get(name)))
            ),
            None,
        ),
        at=parse_moment(unwrap(fields.get("metrics")).get("start"))
        or parse_moment(fields.get("created")),
        **sides(
            fields.get("input"),
            fields.get("output"),
            silent=silent,
            written=detect_written_form(fields),
        ),
        model=kind == "llm",
        # the last line of a traceback says what failed
        error=str(fields.get("error") or "").strip().rpartition("\n")[2],
        facts=keep_filled_facts(
            user=id_as_text(metadata.get("user_id")),
            tags=fields.get("tags"),
            model=id_as_text(metadata.get("model")),
            metadata=metadata,
        ),
    )
    if (row := require_text(fields, "id")) != id_as_text(fields.get("span_id")):
        yield ModelCall(trace, row, id_as_text(fields.get("span_id")))  # comments name the row


def read_datadog_span(fields: Fields) -> Iterator[LogPart]:
    attributes = unwrap(fields.get("attributes"))
    trace = require_text(attributes, "trace_id")
    kind = str(attributes.get("span_kind") or "")
    tags = _datadog_tags(attributes.get("tags"))
    # Datadog writes `undefined` for a missing parent
    parent = id_as_text(attributes.get("parent_id"))
    yield ModelCall(
        trace,
        require_text(attributes, "span_id"),
        None if parent in ("undefined", "0") else parent,
        session=id_as_text(attributes.get("session_id")) or id_as_text(tags.get("session_id")),
        at=parse_moment(attributes.get("start_ns")),
        **sides(
            attributes.get("input"),
            attributes.get("output"),
            silent=silent_kind(kind),
            written="words",
        ),
        model=kind == "llm",
        error="failed" if attributes.get("status") == "error" else "",
        facts=keep_filled_facts(
            user=id_as_text(tags.get("user_id")),
            model=id_as_text(attributes.get("model_name")),
            metadata=tags,
            retrieved_documents=retrieved_by(kind, attributes.get("output")),
        ),
        beside=attributes,
    )


def _datadog_tags(tags: object) -> Fields:
    """Return tags as an object, also those that are a list of `name:value`."""
    listed = tags if isinstance(tags, list) else []
    return unwrap(tags) or {
        name: value for name, mark, value in (str(tag).partition(":") for tag in listed) if mark
    }


def read_helicone_request(fields: Fields) -> Iterator[LogPart]:
    request = require_text(fields, "request_id")
    answer = unwrap(fields.get("response_body"))
    # properties are headers, whose names are written in any case
    properties: dict[str, Any] = {}
    for k, v in unwrap(fields.get("request_properties")).items():
        properties[str(k).casefold()] = v
    failed: Any = answer.get("error")
    if isinstance(failed, Mapping):
        failed = failed.get("message", "failed")

    # every request has the whole history
    call_sides = sides(fields.get("request_body"), None if failed else answer) | {"history": True}
    yield ModelCall(
        request,
        request,
        None,
        id_as_text(properties.get("helicone-session-id")),
        at=parse_moment(fields.get("request_created_at")),
        **call_sides,
        model=True,
        error=str(failed or ""),
        facts=keep_filled_facts(
            user=id_as_text(fields.get("request_user_id")),
            model=fields.get("request_model"),
            metadata=properties,
        ),
    )


def read_portkey_log(fields: Fields) -> Iterator[LogPart]:
    request = require_text(fields, "id")
    metadata = unwrap(fields.get("metadata"))
    sent = unwrap(fields.get("request"))
    received = unwrap(fields.get("response"))
    call_sides = sides(sent.get("body", sent), received.get("body", received)) | {"history": True}
    # requests of one conversation share Portkey's trace id
    session = id_as_text(fields.get("trace_id"))
    yield ModelCall(
        request,
        request,
        None,
        session,
        parse_moment(fields.get("created_at")),
        **call_sides,
        model=True,
        error="" if "after" in call_sides else str(fields.get("response_status_code") or "failed"),
        facts=keep_filled_facts(
            user=id_as_text(metadata.get("_user")),
            model=id_as_text(fields.get("ai_model")),
            metadata=metadata,
        ),
    )
