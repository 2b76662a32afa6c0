"""Spans of OpenTelemetry as libraries and collectors write them, and as Phoenix and MLflow keep them."""

import base64
import binascii
import re
from collections.abc import Iterator, Mapping

from pollex.conversations.conversation import Turn
from pollex.errors import BadInput
from pollex.formats.assembly.log_parts import (
    LabelTargetKind,
    LogPart,
    ModelCall,
    SpanWords,
    ToolScore,
    WholeTalk,
    parse_timestamp,
)
from pollex.formats.log_shapes.exports import (
    Fields,
    WrongExportFile,
    format_id,
    get_at_path,
    get_column_value,
    keep_filled_facts,
    list_objects,
    require_text,
    unwrap_object,
)
from pollex.formats.log_shapes.payloads import (
    RunSide,
    WrittenForm,
    flatten_to_dotted_names,
    is_silent_kind,
    list_retrieved_documents,
    make_call_sides,
    make_system_turns,
    nest_dotted_names,
    parse_nested_json,
    read_run_input,
    read_run_output,
)
from pollex.formats.log_shapes.turns import is_content_part, read_turns
from pollex.text import JsonDict, JsonObject

SESSION_ATTRIBUTES = (
    "gen_ai.conversation.id",
    "session.id",
    "langfuse.session.id",
    "mlflow.trace.session",
    "traceloop.association.properties.session_id",
    "traceloop.association.properties.thread_id",
    "session_id",
    "traceloop.association.properties.conversation_id",
    "traceloop.association.properties.chat_id",
    "ai.telemetry.metadata.sessionId",
    "ai.telemetry.metadata.threadId",
    "ai.telemetry.metadata.chatId",
    "gcp.vertex.agent.session_id",
    "gen_ai.thread.id",
    "langsmith.metadata.thread_id",
    "langsmith.metadata.session_id",
    "conversation.id",
    "conversation_id",
    "thread.id",
    "thread_id",
)
USER_ATTRIBUTES = (
    "user.id",
    "enduser.id",
    "langfuse.user.id",
    "mlflow.trace.user",
    "langfuse.trace.user_id",
    "traceloop.association.properties.user_id",
    "ai.telemetry.metadata.userId",
)
MODEL_ATTRIBUTES = (
    "gen_ai.response.model",
    "gen_ai.request.model",
    "llm.model_name",
    "langfuse.observation.model.name",
)
METADATA_ATTRIBUTES = (
    "metadata",
    "langfuse.trace.metadata",
    "langsmith.metadata",
    "traceloop.association.properties",
)
SPAN_KIND_ATTRIBUTES = (
    "openinference.span.kind",
    "langfuse.observation.type",
    "mlflow.spanType",
    "traceloop.span.kind",
)
_AGENT_OPERATIONS = frozenset(
    ["invoke_agent", "invoke_workflow", "execute_event_loop_cycle", "execute_agent"]
)
_MODEL_SPAN_KINDS = frozenset(
    ["llm", "generation", "chat_model", "chat", "completion", "text_completion", "generate_content"]
)


def make_model_call(
    trace: str,
    span: str,
    parent: str | None,
    start: object,
    attributes: JsonObject,
    error: str,
    kind: str = "",
) -> ModelCall:
    """Return the call that a span of any exporter is; `attributes` have names with dots."""
    # what kind of span it is, and what went in and out
    kind = kind or next(
        (
            str(parse_nested_json(attributes[name]))
            for name in SPAN_KIND_ATTRIBUTES
            if attributes.get(name)
        ),
        "",
    )
    operation = str(
        attributes.get("gen_ai.operation.name") or attributes.get("llm.request.type") or ""
    )
    if is_silent_kind(kind) or operation == "execute_tool":
        sides = None
    else:
        sides = read_span_sides(attributes)

    before, after = sides or (None, None)
    metadata = {}
    for name in METADATA_ATTRIBUTES:
        for k, v in unwrap_object(get_column_value(attributes, name)).items():
            metadata[k] = v

    return ModelCall(
        trace,
        span,
        parent,
        _find_first_attribute(attributes, SESSION_ATTRIBUTES),
        parse_timestamp(start),
        **make_call_sides(before, after),
        # a span of unknown kind is a model's where its input is a list of messages
        model=kind.casefold() in _MODEL_SPAN_KINDS
        or operation in _MODEL_SPAN_KINDS
        or (not kind and before is not None and before.history),
        agent=operation in _AGENT_OPERATIONS,
        error=error,
        facts=keep_filled_facts(
            user=_find_first_attribute(attributes, USER_ATTRIBUTES),
            model=_find_first_attribute(attributes, MODEL_ATTRIBUTES),
            release=_find_first_attribute(attributes, ("langfuse.release",)),
            version=_find_first_attribute(attributes, ("langfuse.version",)),
            retrieved_documents=[
                *(
                    dict(document)
                    for document in _list_attribute_objects(attributes, "retrieval.documents")
                    if isinstance(document, Mapping)
                ),
                *list_retrieved_documents(kind, attributes.get(MLFLOW_SIDE_ATTRIBUTES[1])),
            ],
            metadata=metadata,
        ),
        beside=attributes,
    )


def _find_first_attribute(attributes: JsonObject, names: tuple[str, ...]) -> str | None:
    values = (format_id(parse_nested_json(attributes.get(name))) for name in names)
    return next(
        (value for value in values if value and not value.startswith(SCRUBBED_PREFIX)),
        None,
    )


SCRUBBED_PREFIX = "[Scrubbed due to"
"""What Logfire writes in place of each attribute whose name or value may be a secret, a session's id, too."""


def read_span_sides(attributes: JsonObject) -> tuple[RunSide | None, RunSide | None] | None:
    """Return a span's input and output, by the first convention that fits."""
    for way in (
        _read_gen_ai_sides,
        _read_openinference_sides,
        _read_numbered_sides,
        _read_pydantic_ai_sides,
        _read_langfuse_sides,
        _read_mlflow_sides,
        _read_vercel_sides,
        _read_plain_sides,
    ):
        # values that can't be read by one convention may fit the next
        try:
            sides = way(attributes)
        except BadInput:
            continue

        if sides and (sides[0] or sides[1]):
            return sides

    return None


def _read_gen_ai_sides(
    attributes: JsonObject,
) -> tuple[RunSide | None, RunSide | None] | None:
    """OpenTelemetry's conventions from 1.37 on: lists of messages, or JSON text of them."""
    before, after = (
        parse_nested_json(attributes.get(f"gen_ai.{name}.messages")) for name in ("input", "output")
    )
    if not isinstance(before, list) and not isinstance(after, list):
        return None

    # what the system says may be an attribute of its own
    system = parse_nested_json(attributes.get("gen_ai.system_instructions"))
    if system:
        turns = make_system_turns({"system": system})
    else:
        turns = ()

    question = None
    if before:
        question = RunSide(turns + read_turns(before or []), True)

    return question, RunSide(read_turns(after), True) if after else None


def _read_openinference_sides(
    attributes: JsonObject,
) -> tuple[RunSide | None, RunSide | None] | None:
    # OpenInference numbers its messages: llm.input_messages.0.message.role
    sides = []
    for name in ("llm.input_messages", "llm.output_messages"):
        listed = _list_attribute_objects(attributes, name)
        messages = []
        for message in listed:
            if isinstance(message, Mapping):
                messages.append(_convert_openinference_message(message.get("message", message)))

        turns = read_turns(messages)
        sides.append(RunSide(turns, True) if turns else None)

    if sides[0] is None:
        return None
    # the answer may be a plain value without a role
    return sides[0], sides[1] or read_run_output(
        attributes.get("output.value"), _detect_attribute_form(attributes, "output.value")
    )


def _list_attribute_objects(attributes: JsonObject, name: str) -> list[object]:
    """Return a list of objects from one name, or from names with numbers."""
    if name in attributes:
        whole = parse_nested_json(attributes[name])
        if isinstance(whole, list):
            return [nest_dotted_names(entry) for entry in whole if isinstance(entry, Mapping)]
        return []

    # names with numbers, such as NAME.0.role, become a list
    prefix = f"{name}."
    keys_under = {}
    for key, value in attributes.items():
        if key.startswith(prefix):
            keys_under[key[len(prefix) :]] = value

    spread = nest_dotted_names(keys_under)
    return spread if isinstance(spread, list) else []


def _convert_openinference_message(message: JsonObject) -> JsonDict:
    # OpenInference wraps each call and each part in an object
    calls = []
    for call in list_objects(message.get("tool_calls")):
        calls.append(call.get("tool_call", call))

    parts = []
    for part in list_objects(message.get("contents")):
        parts.append(_convert_openinference_part(part.get("message_content", part)))

    content = message.get("content") or parts or None
    if message.get("tool_call_id"):
        beside = {"tool_call_id": message["tool_call_id"]}
    else:
        beside = {}

    return {
        "role": message.get("role") or "assistant",
        "content": content,
        "tool_calls": calls,
        **beside,
    }


def _convert_openinference_part(content: JsonObject) -> JsonDict:
    if content.get("type", "text") == "text":
        return {"type": "text", "text": content.get("text") or ""}
    return {"type": str(content["type"])}


def _read_numbered_sides(
    attributes: JsonObject,
) -> tuple[RunSide | None, RunSide | None] | None:
    """Read numbered names, as earlier libraries of Traceloop and Vercel wrote them."""
    sides = []
    for name in ("gen_ai.prompt", "gen_ai.completion"):
        listed = []
        for message in _list_attribute_objects(attributes, name):
            if isinstance(message, Mapping):
                listed.append(message)

        messages = []
        for message in listed:
            if message.get("role"):
                messages.append({**message, "content": _parse_content(message.get("content"))})

        turns = read_turns(messages)
        sides.append(RunSide(turns, True) if turns else None)

    return (sides[0], sides[1]) if sides[0] else None


def _parse_content(content: object) -> object:
    # text that is a list of parts becomes one; other JSON stays what somebody said
    parsed = parse_nested_json(content)
    if isinstance(parsed, list) and parsed and all(map(is_content_part, parsed)):
        return parsed
    return content


def _read_langfuse_sides(
    attributes: JsonObject,
) -> tuple[RunSide | None, RunSide | None] | None:
    names = ("langfuse.observation.input", "langfuse.observation.output")
    before = attributes.get(names[0])
    after = attributes.get(names[1])
    if before is not None or after is not None:
        return (read_run_input(before), read_run_output(after))
    return None


def _read_mlflow_sides(
    attributes: JsonObject,
) -> tuple[RunSide | None, RunSide | None] | None:
    return read_run_input(attributes.get(MLFLOW_SIDE_ATTRIBUTES[0]), "json"), read_run_output(
        attributes.get(MLFLOW_SIDE_ATTRIBUTES[1]), "json"
    )


MLFLOW_SIDE_ATTRIBUTES = ("mlflow.spanInputs", "mlflow.spanOutputs")


def _read_vercel_sides(
    attributes: JsonObject,
) -> tuple[RunSide | None, RunSide | None] | None:
    """Vercel's AI SDK: calls of tools stand beside the text of an answer."""
    prompt = attributes.get("ai.prompt.messages") or attributes.get("ai.prompt")
    if prompt is None:
        return None

    called = parse_nested_json(attributes.get("ai.response.toolCalls"))
    answer = {
        "role": "assistant",
        "content": attributes.get("ai.response.text"),
        "tool_calls": called,
    }
    return read_run_input(prompt), read_run_output(answer) if called or answer["content"] else None


def _read_pydantic_ai_sides(
    attributes: JsonObject,
) -> tuple[RunSide | None, RunSide | None] | None:
    """Pydantic AI's spans, whose events are one attribute."""
    events = parse_nested_json(attributes.get("events") or attributes.get("all_messages_events"))
    if not isinstance(events, list):
        # later versions keep all messages in one list, the answer among them
        whole = parse_nested_json(attributes.get("pydantic_ai.all_messages"))
        if isinstance(whole, list):
            return (RunSide(read_turns(whole), True), None)
        return None

    sides: tuple[list[Turn], list[Turn]] = [], []
    for event in events:
        if isinstance(event, Mapping) and (name := str(event.get("event.name") or "")):
            # False and True are the places of the two sides: asked, answered
            sides[name in ANSWER_EVENT_NAMES].extend(make_event_turns(name, event))

    before, after = (RunSide(tuple(turns), True) if turns else None for turns in sides)
    return before, after


def _read_plain_sides(
    attributes: JsonObject,
) -> tuple[RunSide | None, RunSide | None] | None:
    """OpenInference's and Traceloop's words of spans that are no model's."""
    # OpenInference, Traceloop, Logfire, Google's ADK, then the oldest names
    for before, after in (
        ("input.value", "output.value"),
        ("traceloop.entity.input", "traceloop.entity.output"),
        ("request_data", "response_data"),
        ("gcp.vertex.agent.llm_request", "gcp.vertex.agent.llm_response"),
        ("gen_ai.prompt", "gen_ai.completion"),
    ):
        if attributes.get(before) is not None:
            return read_run_input(
                attributes[before], _detect_attribute_form(attributes, before)
            ), read_run_output(attributes.get(after), _detect_attribute_form(attributes, after))

    return None


def _detect_attribute_form(attributes: JsonObject, name: str) -> WrittenForm:
    """Return what the text of an attribute is, by the media type beside it."""
    kind = str(attributes.get(name.replace(".value", ".mime_type")) or "")
    if name.startswith("traceloop.entity."):
        return "json"
    return "words" if kind.startswith("text/plain") else "either"


ANSWER_EVENT_NAMES = ("gen_ai.choice", "gen_ai.content.completion")
"""Events with what a model answered."""


def make_event_turns(name: str, body: object) -> tuple[Turn, ...]:
    """Return the turns of an event such as `gen_ai.user.message`; empty for others."""
    if not isinstance(body, Mapping):
        return ()

    # the older events, with a whole side in one text
    for whole, read in (
        ("gen_ai.content.prompt", read_run_input),
        ("gen_ai.content.completion", read_run_output),
    ):
        if name == whole:
            content = body.get(whole.replace(".content", ""))
            if isinstance(content, str):
                parts = re.split(r"(?m)^(system|user|assistant|tool|developer): ", content)
            else:
                parts = []

            if len(parts) > 1 and not parts[0].strip():  # text with a role before each message
                pairs = zip(parts[1::2], parts[2::2], strict=True)
                return read_turns(
                    [{"role": role, "content": words.strip()} for role, words in pairs]
                )
            side = read(content)
            return side.turns if side else ()

    # the answer is wrapped as `message`, or the body is the answer
    if name == "gen_ai.choice":
        message = parse_nested_json(body.get("message"))
        if isinstance(message, list):
            message = {"content": message}
        answer = message if isinstance(message, Mapping) else body
        return read_turns([{"role": "assistant", "content": None, **answer}])

    # events named after a role: gen_ai.user.message and so on
    role = name.removeprefix("gen_ai.").removesuffix(".message")
    if role not in ("system", "user", "assistant", "tool") or not name.endswith(".message"):
        return ()
    return read_turns([{"role": role, **body, "content": _parse_content(body.get("content"))}])


_HEX_ID_PATTERN = re.compile(r"[0-9a-fA-F]{16,32}")
_INTEGER_PATTERN = re.compile(r"-?[0-9]{1,19}")
_FAILED_STATUS_CODES = (2, "2", "STATUS_CODE_ERROR", "ERROR")
EVALUATION_EVENT = "gen_ai.evaluation.result"
OPERATION_DETAILS_EVENT = "gen_ai.client.inference.operation.details"


def get_camel_field(fields: JsonObject, camel: str) -> object:
    """Return a field in camel case, or as Python and blob storage spell it."""
    if camel in fields:
        return fields[camel]
    return fields.get(_convert_to_snake_case(camel))


def convert_id_to_hex(id_: object) -> str | None:
    """Convert a span's or trace's id to hexadecimal, from base64 if needed."""
    if not isinstance(id_, str) or not id_:
        return None

    id_ = id_.removeprefix("0x")
    if _HEX_ID_PATTERN.fullmatch(id_):
        return id_.lower()

    # JSON of protobuf has ids in base64
    try:
        raw = base64.b64decode(id_, validate=True)
    except (binascii.Error, ValueError):
        return id_

    # a span's id has 8 bytes, a trace's id 16
    if len(raw) in (8, 16):
        return raw.hex()
    return id_


def convert_otlp_value(value: object) -> object:
    if not isinstance(value, Mapping):
        return value

    # a value is an object whose key names its type: stringValue, intValue, arrayValue
    for name, inner in value.items():
        kind = name.replace("_", "").lower()
        if inner is None:
            continue
        if kind == "arrayvalue":
            if isinstance(inner, Mapping):
                return [
                    convert_otlp_value(element) for element in list_objects(inner.get("values"))
                ]
            return []
        if kind == "kvlistvalue":
            if isinstance(inner, Mapping):
                return convert_otlp_attributes(inner.get("values"))
            return {}
        if kind == "intvalue":
            # JSON of protobuf writes integers of 64 bits as text
            if _INTEGER_PATTERN.fullmatch(str(inner)):
                return int(inner)
            return inner
        return inner

    return None


def convert_otlp_attributes(listed: object) -> JsonDict:
    if isinstance(listed, Mapping):
        return dict(listed)

    if isinstance(listed, list):
        pairs = []
        for pair in listed:
            if isinstance(pair, Mapping):
                pairs.append(pair)
    else:
        pairs = []

    attributes: JsonDict = {}
    for pair in pairs:
        if "key" in pair:
            attributes[str(pair["key"])] = convert_otlp_value(pair.get("value"))

    return attributes


def _iterate_nested_objects(fields: Fields, *names: str) -> Iterator[JsonObject]:
    # the objects at the end of a path of lists, of all branches
    level: list[JsonObject] = [fields]
    for name in names:
        level = [child for outer in level for child in list_objects(get_camel_field(outer, name))]
    yield from level


def read_otlp_batch(fields: Fields) -> Iterator[LogPart]:
    for span in _iterate_nested_objects(fields, "resourceSpans", "scopeSpans", "spans"):
        yield from read_otlp_span(span)

    for record in _iterate_nested_objects(fields, "resourceLogs", "scopeLogs", "logRecords"):
        yield from _read_log_record(record)


def read_otlp_span(fields: JsonObject) -> Iterator[LogPart]:
    trace = convert_id_to_hex(get_camel_field(fields, "traceId"))
    span = convert_id_to_hex(get_camel_field(fields, "spanId"))
    if not trace or not span:
        return

    status = fields.get("status")
    status = status if isinstance(status, Mapping) else {}
    error = ""
    if status.get("code") in _FAILED_STATUS_CODES:
        error = str(status.get("message") or "failed")

    attributes = convert_otlp_attributes(fields.get("attributes"))
    start = get_camel_field(fields, "startTimeUnixNano")
    _require_messages_present(attributes)
    call = make_model_call(
        trace,
        span,
        convert_id_to_hex(get_camel_field(fields, "parentSpanId")),
        start,
        attributes,
        error,
    )
    yield call._replace(beside={**attributes, **_collect_event_attributes(fields)})
    yield from iterate_span_events(fields, trace, span, start)
    yield from _read_logfire_feedback(attributes, trace, call.parent or span, start)


def _read_logfire_feedback(
    attributes: JsonObject,
    trace: str,
    span: str,
    start: object,
) -> Iterator[ToolScore]:
    """Yield the feedback that a span below the rated one holds."""
    name = format_id(attributes.get("logfire.feedback.name"))
    comment = attributes.get("logfire.feedback.comment")
    if name:
        person = _find_first_attribute(attributes, USER_ATTRIBUTES)
        around: tuple[tuple[LabelTargetKind, str | None], ...] = (("trace", trace),)
        score = ToolScore(
            "span",
            span,
            attributes.get(name),
            name,
            comment=comment,
            person=person,
            at=parse_timestamp(start),
        )
        yield score._replace(around=around)


def _collect_event_attributes(fields: JsonObject) -> JsonDict:
    # events of gen_ai are messages, and are read as turns
    other_events = []
    for event in list_objects(fields.get("events")):
        if not str(event.get("name")).startswith("gen_ai."):
            other_events.append(event)

    pairs = ((event, convert_otlp_attributes(event.get("attributes"))) for event in other_events)
    events: JsonDict = {}
    for event, attributes in pairs:
        for name, value in attributes.items():
            events[f"{event.get('name')}.{name}"] = value

    return events


def iterate_span_events(
    fields: JsonObject,
    trace: str,
    span: str,
    start: object,
) -> Iterator[LogPart]:
    for event in list_objects(fields.get("events")):
        # an event without a time has the time of its span
        when = get_camel_field(event, "timeUnixNano") or event.get("timestamp") or start
        yield from _read_event(
            str(event.get("name")),
            trace,
            span,
            convert_otlp_attributes(event.get("attributes")),
            None,
            when,
        )


def _require_messages_present(attributes: JsonObject) -> None:
    """Refuse spans whose messages were uploaded, so that only their addresses are here."""
    if (
        any(name.endswith(".messages_ref") for name in attributes)
        and "gen_ai.input.messages" not in attributes
    ):
        what = "the messages were uploaded elsewhere; the spans have only their addresses"
        raise WrongExportFile(
            what,
            hint="record them in the spans: OTEL_INSTRUMENTATION_GENAI_COMPLETION_HOOK unset",
        )


def _read_log_record(fields: JsonObject) -> Iterator[LogPart]:
    attributes = convert_otlp_attributes(fields.get("attributes"))
    name = str(get_camel_field(fields, "eventName") or attributes.get("event.name") or "")
    trace = convert_id_to_hex(get_camel_field(fields, "traceId")) or ""
    span = convert_id_to_hex(get_camel_field(fields, "spanId")) or ""
    when = get_camel_field(fields, "timeUnixNano") or get_camel_field(
        fields, "observedTimeUnixNano"
    )
    yield from _read_event(
        name, trace, span, attributes, convert_otlp_value(fields.get("body")), when
    )


def _read_event(
    name: str,
    trace: str,
    span: str,
    attributes: JsonObject,
    body: object,
    when: object,
) -> Iterator[LogPart]:
    # an evaluation, all messages of one call, or a single message
    if name == EVALUATION_EVENT:
        yield from _read_evaluation_score(trace, span, attributes, when)
    elif name == OPERATION_DETAILS_EVENT and (sides := read_span_sides(attributes)):
        before, after = sides
        yield SpanWords(
            trace,
            span,
            before.turns if before else (),
            after.turns if after else (),
            whole=True,
        )
    elif name.startswith("gen_ai.") and (
        turns := make_event_turns(name, _unpack_event_body(body, attributes))
    ):
        answer = name in ANSWER_EVENT_NAMES
        yield SpanWords(
            trace,
            span,
            () if answer else turns,
            turns if answer else (),
            parse_timestamp(when),
        )


def _unpack_event_body(body: object, attributes: JsonObject) -> object:
    # the message is the body, or is spread over the event's attributes
    parsed = parse_nested_json(body) or parse_nested_json(attributes.get("gen_ai.event.content"))
    if isinstance(parsed, Mapping) and parsed:
        return parsed

    values = {}
    for name, value in attributes.items():
        values[name] = value if name in _EVENT_WORD_ATTRIBUTES else parse_nested_json(value)

    return values


_EVENT_WORD_ATTRIBUTES = ("content", "gen_ai.prompt", "gen_ai.completion")
"""Attributes of an event with words, which may look like JSON."""


def _read_evaluation_score(
    trace: str,
    span: str,
    attributes: JsonObject,
    when: object,
) -> Iterator[ToolScore]:
    """Yield an evaluation; the label counts if there is one.

    Scores have no known scale.
    """
    value = attributes.get("gen_ai.evaluation.score.value")
    if value is None:
        value = attributes.get("gen_ai.evaluation.score.label")

    name = str(attributes.get("gen_ai.evaluation.name") or "evaluation")
    session = _find_first_attribute(attributes, SESSION_ATTRIBUTES)
    person = _find_first_attribute(attributes, USER_ATTRIBUTES)
    comment = attributes.get("gen_ai.evaluation.explanation")
    if value is None:
        return

    # the narrowest place first: the wider ones count where it isn't found
    places: list[tuple[LabelTargetKind, str]] = [
        ("span", span),
        ("trace", trace),
        ("conversation", session or ""),
    ]
    if targets := [(target, id_) for target, id_ in places if id_]:
        first, *around = targets
        yield ToolScore(
            *(*first, value, name),
            comment=comment,
            person=person,
            at=parse_timestamp(when),
            around=tuple(around),
        )


PHOENIX_ATTRIBUTE_PREFIX = "attributes."


def read_phoenix_span(fields: Fields) -> Iterator[LogPart]:
    attributes = flatten_to_dotted_names(unwrap_object(fields.get("attributes")))
    # a table of spans has each attribute in a column of its own
    for k, v in fields.items():
        if k.startswith(PHOENIX_ATTRIBUTE_PREFIX) and v not in (None, ""):
            attributes[k.removeprefix(PHOENIX_ATTRIBUTE_PREFIX)] = v
    trace = convert_id_to_hex(_get_phoenix_context(fields, "trace_id")) or require_text(
        fields, "context.trace_id"
    )
    span = convert_id_to_hex(_get_phoenix_context(fields, "span_id")) or require_text(
        fields, "context.span_id"
    )
    status = unwrap_object(fields.get("status")) or {"code": fields.get("status_code")}
    failed = "ERROR" in (status.get("code"), status.get("status_code"))
    error = ""
    if failed:
        error = str(fields.get("status_message") or status.get("description") or "failed")

    parent = convert_id_to_hex(fields.get("parent_id"))
    kind = str(fields.get("span_kind") or "")
    yield from iterate_span_events(fields, trace, span, fields.get("start_time"))
    yield make_model_call(
        trace,
        span,
        parent,
        fields.get("start_time"),
        attributes,
        error,
        "" if kind == "UNKNOWN" else kind,
    )


def _get_phoenix_context(fields: Fields, name: str) -> object:
    return fields.get(f"context.{name}") or get_at_path(fields, f"context.{name}")


def read_phoenix_session(fields: Fields) -> Iterator[LogPart]:
    for session, turns in fields.items():
        for turn in list_objects(turns):
            root = unwrap_object(turn.get("root_span"))
            # a turn without a root span has the id of its trace
            span = format_id(get_at_path(root, "context.span_id")) or require_text(turn, "trace_id")
            failed = root.get("status_code") == "ERROR"
            yield ModelCall(
                require_text(turn, "trace_id"),
                span,
                None,
                session,
                parse_timestamp(turn.get("start_time")),
                **make_call_sides(*_read_phoenix_sides(turn)),
                error=str(root.get("status_message") or "failed") if failed else "",
                facts=keep_filled_facts(
                    user=format_id(unwrap_object(root.get("attributes")).get("user.id"))
                ),
            )


def _read_phoenix_sides(turn: Fields) -> tuple[RunSide | None, RunSide | None]:
    attributes = flatten_to_dotted_names(
        {name: unwrap_object(turn.get(name)) for name in ("input", "output")}
    )
    before = attributes.get("input.value")
    after = attributes.get("output.value")

    return read_run_input(
        before, _detect_attribute_form(attributes, "input.value")
    ), read_run_output(after, _detect_attribute_form(attributes, "output.value"))


def require_phoenix_words(fields: Fields) -> tuple[()]:
    """Refuse a list of sessions, or of traces whose spans have no attributes: none have words."""
    if not any("attributes" in span for span in list_objects(fields.get("spans"))):
        what = "Phoenix's lists of sessions and traces have no words"
        raise WrongExportFile(
            what,
            hint="export spans: client.spans.get_spans_dataframe()",
        )

    return ()


def read_phoenix_example_row(fields: Fields) -> Iterator[LogPart]:
    before = read_run_input(get_column_value(fields, "input"))
    after = read_run_output(get_column_value(fields, "output"))
    id_ = require_text(fields, "id", "node_id")
    turns = (before.turns if before else ()) + (after.turns if after else ())
    yield WholeTalk(
        id_,
        turns,
        facts=keep_filled_facts(
            session_lost=True, span=format_id(get_at_path(fields, "source.span_id"))
        ),
    )

    for name, listed in _iterate_phoenix_annotations(fields):
        for annotation in listed if isinstance(listed, list) else [listed]:
            if isinstance(annotation, Mapping):
                # a score counts before a label
                if annotation.get("score") is not None:
                    value = annotation.get("score")
                else:
                    value = annotation.get("label")

                kind = str(annotation.get("annotator_kind") or "")
                comment = annotation.get("explanation")
                person = format_id(annotation.get("username")) or format_id(
                    annotation.get("user_id")
                )
                if value is not None:
                    yield ToolScore(
                        "conversation",
                        id_,
                        value,
                        name,
                        kind,
                        comment=comment,
                        person=person,
                    )


def _iterate_phoenix_annotations(fields: Fields) -> Iterator[tuple[str, object]]:
    # annotations are columns in a CSV file, and nested in the metadata otherwise
    prefix = "metadata.annotations."
    for k, v in fields.items():
        if k.startswith(prefix):
            yield (k.removeprefix(prefix), parse_nested_json(v))

    inside = get_at_path(
        {"metadata": parse_nested_json(fields.get("metadata"))}, "metadata.annotations"
    )
    yield from inside.items() if isinstance(inside, Mapping) else ()


def is_phoenix_fine_tuning_row(fields: Fields) -> bool:
    """Return whether the keys are only those of Phoenix's downloads, without label or id."""
    return set(fields) in ({"messages", "tools"}, {"messages", "ideal"}) and isinstance(
        fields["messages"], list
    )


MLFLOW_SESSION_TAG = "mlflow.trace.session"
MLFLOW_USER_TAG = "mlflow.trace.user"


def read_mlflow_trace(fields: Fields) -> Iterator[LogPart]:
    info = unwrap_object(fields.get("info"))
    trace = require_text(info, "trace_id", "request_id")
    metadata = unwrap_object(info.get("trace_metadata", info.get("request_metadata")))
    trace_metadata = {}
    for k, v in {**metadata, **unwrap_object(info.get("tags"))}.items():
        if not k.startswith("mlflow."):
            trace_metadata[k] = v

    session = format_id(metadata.get(MLFLOW_SESSION_TAG))
    trace_facts = keep_filled_facts(
        user=format_id(metadata.get(MLFLOW_USER_TAG)), metadata=trace_metadata
    )
    spans = parse_nested_json(get_at_path(fields, "data.spans"))
    if not isinstance(spans, list):
        what = "the traces have no spans"
        raise WrongExportFile(
            what,
            hint="write whole traces: trace.to_json(), or `mlflow traces search --output json`",
        )

    start = info.get("request_time") or info.get("timestamp_ms")
    for span in spans:
        if isinstance(span, Mapping):
            call = _make_mlflow_call(span, trace, start)
            yield call._replace(session=session, facts={**call.facts, **trace_facts})

    yield from _read_mlflow_assessments(info, trace)


def _make_mlflow_call(span: JsonObject, trace: str, start: object) -> ModelCall:
    """Make a call of a span; the root has the trace's time.

    Older versions give times of spans in other units.
    """
    span = {_convert_to_snake_case(name): value for name, value in span.items()}
    parent = convert_id_to_hex(span.get("parent_span_id") or span.get("parent_id"))
    written = convert_otlp_attributes(parse_nested_json(span.get("attributes")))
    # attributes are JSON text; input and output are parsed where they are read
    attributes = {}
    for n, value in written.items():
        if value != "null":
            attributes[n] = value if n in MLFLOW_SIDE_ATTRIBUTES else parse_nested_json(value)

    status = unwrap_object(span.get("status")) or {"code": span.get("status_code")}
    failed = str(status.get("code")) in ("STATUS_CODE_ERROR", "ERROR", "2")
    error = ""
    if failed:
        error = str(status.get("message") or "failed")

    when = (
        span.get("start_time_unix_nano")
        or span.get("start_time_ns")
        or span.get("start_time")
        or start
    )
    span_id = (
        convert_id_to_hex(span.get("span_id") or get_at_path(span, "context.span_id")) or trace
    )
    return make_model_call(trace, span_id, parent, when, attributes, error)


def _convert_to_snake_case(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


def _read_mlflow_assessments(info: Fields, trace: str) -> Iterator[ToolScore]:
    for assessment in list_objects(info.get("assessments")):
        # feedback that a later one replaced is no longer valid
        if assessment.get("valid") is False:
            continue
        feedback = unwrap_object(assessment.get("feedback"))
        value = feedback.get("value")
        if value is None:
            continue
        source = unwrap_object(assessment.get("source"))
        # a rating of a session counts for the conversation, another for its trace
        session = format_id(unwrap_object(assessment.get("metadata")).get(MLFLOW_SESSION_TAG))
        target = ("conversation", session) if session else ("trace", trace)
        yield ToolScore(
            *(*target, value, require_text(assessment, "assessment_name", "name")),  # type: ignore[arg-type]
            source=str(source.get("source_type") or ""),
            comment=assessment.get("rationale"),
            person=format_id(source.get("source_id")),
            at=parse_timestamp(assessment.get("last_update_time")),
            key=format_id(assessment.get("assessment_id")),
        )


def read_mlflow_row(fields: Fields) -> Iterator[LogPart]:
    if isinstance(parse_nested_json(fields.get("spans")), str) and not isinstance(
        parse_nested_json(fields.get("trace")), Mapping
    ):
        what = "the cells hold Python's writing of objects, not JSON"
        raise WrongExportFile(
            what,
            hint="write each trace with trace.to_json(), one trace a line",
        )

    trace = parse_nested_json(fields.get("trace"))
    yield from read_mlflow_trace(
        trace if isinstance(trace, Mapping) else {"info": fields, "data": fields}
    )
