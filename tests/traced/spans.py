"""Spans as OpenTelemetry, OpenInference and Phoenix export them."""

import json
from collections.abc import Callable, Iterator
from typing import Any

from traced.talks import COMMENTS, Asked, Files, Json, exchanges, hexed

Attributes = Callable[[list[Json], Json], Json]


def _value(value: Any) -> Json:
    if isinstance(value, list):
        return {"arrayValue": {"values": [_value(one) for one in value]}}
    if isinstance(value, dict):
        return {"kvlistValue": {"values": _pairs(value)}}
    if isinstance(value, int):
        return {"intValue": str(value)}
    return {"stringValue": str(value)}


def _pairs(attributes: Json) -> list[Json]:
    return [{"key": key, "value": _value(value)} for key, value in attributes.items()]


def _span(one: Asked, name: str, parent: str | None, attributes: Json, order: int, events: Any = ()) -> Json:
    begun = one.at * 10**9 + order * 10**7
    return {
        "traceId": one.trace,
        "spanId": hexed(one.id + name, 16),
        "parentSpanId": hexed(one.id + parent, 16) if parent else "",
        "name": name,
        "startTimeUnixNano": str(begun),
        "endTimeUnixNano": str(begun + 10**6),
        "attributes": _pairs(attributes),
        "events": list(events),
        "status": {},
    }


def _spans(*spans: Json) -> Json:
    return {"resourceSpans": [{"resource": {}, "scopeSpans": [{"scope": {"name": "s"}, "spans": list(spans)}]}]}


def _logs(*records: Json) -> Json:
    return {"resourceLogs": [{"resource": {}, "scopeLogs": [{"scope": {"name": "s"}, "logRecords": list(records)}]}]}


# OpenTelemetry


def parts(message: Json) -> Json:
    """A message as the conventions write it from version 1.37 on."""
    content = message["content"]
    if message["role"] == "tool":
        return {
            "role": "tool",
            "parts": [{"type": "tool_call_response", "id": message["tool_call_id"], "response": content}],
        }
    found: list[Json] = (
        [{"type": "text", "content": content}]
        if isinstance(content, str)
        else [
            {"type": "text", "content": content[0]["text"]},
            {"type": "uri", "modality": "image", "mime_type": "image/png", "uri": "https://pictures.test/1.png"},
        ]
    )
    for call in message.get("tool_calls", ()):
        given = json.loads(call["function"]["arguments"])
        found.append({"type": "tool_call", "id": call["id"], "name": call["function"]["name"], "arguments": given})
    return {"role": message["role"], "parts": found}


def _semantic(before: list[Json], after: Json) -> Json:
    system = [{"type": "text", "content": m["content"]} for m in before if m["role"] == "system"]
    told = {"gen_ai.system_instructions": json.dumps(system)} if system else {}
    return {
        **told,
        "gen_ai.operation.name": "chat",
        "gen_ai.input.messages": json.dumps([parts(m) for m in before if m["role"] != "system"]),
        "gen_ai.output.messages": json.dumps([{**parts(after), "finish_reason": "stop"}]),
    }


def _nested(before: list[Json], after: Json) -> Json:
    return {name: json.loads(v) if v[:1] == "[" else v for name, v in _semantic(before, after).items()}


def _flat(before: list[Json], after: Json) -> Json:
    found: Json = {"llm.request.type": "chat"}
    for side, messages in (("prompt", before), ("completion", [after])):
        for n, message in enumerate(messages):
            content = message["content"]
            found[f"gen_ai.{side}.{n}.role"] = message["role"]
            found[f"gen_ai.{side}.{n}.content"] = content if isinstance(content, str) else json.dumps(content)
            for m, call in enumerate(message.get("tool_calls", ())):
                found[f"gen_ai.{side}.{n}.tool_calls.{m}.id"] = call["id"]
                found[f"gen_ai.{side}.{n}.tool_calls.{m}.name"] = call["function"]["name"]
                found[f"gen_ai.{side}.{n}.tool_calls.{m}.arguments"] = call["function"]["arguments"]
    return found


def _body(message: Json) -> Json:
    return {key: value for key, value in message.items() if key != "role"}


def _bodies(before: list[Json], after: Json) -> Iterator[tuple[str, Json]]:
    yield from ((f"gen_ai.{message['role']}.message", _body(message)) for message in before)
    yield "gen_ai.choice", {"index": 0, "finish_reason": "stop", "message": after}


def _thumbs(ann: str, bob: tuple[str, str]) -> list[Json]:
    """Evaluations as log records: bob's first one up, his later one down, and a model's."""
    given = [("ann", ann, 1.0, "user_feedback", 1), ("bob", bob[0], 1.0, "user_feedback", 1)]
    given += [("bob", bob[1], 0.0, "user_feedback", 2), ("cat", "", 0.1, "relevance", 1)]
    found = []
    for talk, comment, score, name, when in given:
        one = next(one for one in exchanges() if one.talk == talk and one.is_last)
        attributes: Json = {"gen_ai.evaluation.name": name, "user.id": talk}
        attributes |= {"gen_ai.evaluation.explanation": comment} if comment else {}
        pairs = [*_pairs(attributes), {"key": "gen_ai.evaluation.score.value", "value": {"doubleValue": score}}]
        ids = {"traceId": one.trace, "spanId": hexed(one.id + "chat0", 16)}
        record = {**ids, "timeUnixNano": str((one.at + when) * 10**9), "eventName": "gen_ai.evaluation.result"}
        found.append({**record, "attributes": pairs})
    return found


THUMBS = _thumbs(COMMENTS["ann"], ("", COMMENTS["bob"]))


def _otlp(attributes: Attributes, *, agent: bool = False, newest_first: bool = False) -> Files:
    """A line a span; with `agent` a span around the model's that has the session alone."""
    lines = []
    for one in exchanges():
        session = {"gen_ai.conversation.id": one.talk, "user.id": one.talk}
        if agent:
            lines.append(_spans(_span(one, "POST /chat", None, {"session.id": one.talk, "http.method": "POST"}, 0)))
        for n, (before, after) in enumerate(one.models):
            have = attributes(before, after) | ({} if agent else session)
            lines.append(_spans(_span(one, f"chat{n}", "POST /chat" if agent else None, have, n + 1)))
    return {"otlp.jsonl": [*(lines[::-1] if newest_first else lines), _logs(*THUMBS)]}


def _vercel(before: list[Json], after: Json) -> Json:
    listed: list[Json] = []
    for message in before:
        content = message["content"]
        if message["role"] == "tool":
            result = {"type": "tool-result", "toolCallId": message["tool_call_id"], "toolName": "look_up"}
            content = [{**result, "output": {"type": "text", "value": content}}]
        elif isinstance(content, list):
            content = [content[0], {"type": "image", "image": content[1]["image_url"]["url"]}]
        elif message["role"] == "user":
            content = [{"type": "text", "text": content}]
        elif "tool_calls" in message:
            content = [
                {"type": "text", "text": content},
                *({"type": "tool-call", **one} for one in _vercel_calls(message)),
            ]
        listed.append({"role": message["role"], "content": content})
    called = {"ai.response.toolCalls": json.dumps(_vercel_calls(after))} if "tool_calls" in after else {}
    words = {"ai.prompt.messages": json.dumps(listed), "ai.response.text": after["content"]}
    return {"ai.operationId": "ai.generateText.doGenerate", **words, **called}


def _vercel_calls(message: Json) -> list[Json]:
    told = [(call["id"], call["function"]) for call in message["tool_calls"]]
    return [{"toolCallId": id_, "toolName": f["name"], "input": json.loads(f["arguments"])} for id_, f in told]


def _pydantic(before: list[Json], after: Json) -> Json:
    told = [{**message, "event.name": f"gen_ai.{message['role']}.message"} for message in before]
    choice = {"event.name": "gen_ai.choice", "index": 0, "message": after}
    return {"gen_ai.operation.name": "chat", "events": json.dumps([*told, choice])}


def _logfire(before: list[Json], after: Json) -> Json:
    given, back = {"messages": before, "model": "fake-1"}, {"message": after, "usage": {}}
    return {"request_data": json.dumps(given), "response_data": json.dumps(back)}


def _vertex(before: list[Json], after: Json) -> Json:
    """Contents as Gemini has them."""
    system = next((m["content"] for m in before if m["role"] == "system"), None)
    contents = [_content(message) for message in before if message["role"] != "system"]
    config = {"system_instruction": system} if system else {}
    return {
        "gen_ai.system": "gcp.vertex.agent",
        "gcp.vertex.agent.llm_request": json.dumps({"model": "fake-1", "config": config, "contents": contents}),
        "gcp.vertex.agent.llm_response": json.dumps({"content": _content(after), "partial": None}),
    }


def _content(message: Json) -> Json:
    content = message["content"]
    if message["role"] == "tool":
        response = {"name": "look_up", "response": {"result": content}}
        return {"role": "user", "parts": [{"function_response": response}]}
    found: list[Json] = [{"text": content if isinstance(content, str) else content[0]["text"]}]
    if isinstance(content, list):
        found.append({"inline_data": {"mime_type": "image/png", "data": "iVBORw0KGgo="}})
    for call in message.get("tool_calls", ()):
        given = json.loads(call["function"]["arguments"])
        found.append({"function_call": {"id": call["id"], "name": call["function"]["name"], "args": given}})
    return {"role": "model" if message["role"] == "assistant" else "user", "parts": found}


def _no_words(_: list[Json], __: Json) -> Json:
    return {"gen_ai.operation.name": "chat"}


def _events(kind: str) -> Files:
    """Messages as events: `logs`, shuffled `lines` of logs, events `inside` spans, `azure`'s, or `old` ones."""
    spans, records = [], []
    for one in exchanges():
        spans.append(_spans(_span(one, "POST /chat", None, {"session.id": one.talk}, 0)))
        for n, (before, after) in enumerate(one.models):
            span = _span(one, f"chat{n}", "POST /chat", {"gen_ai.operation.name": "chat"}, n + 1)
            when = int(span["startTimeUnixNano"])
            if kind == "old":
                said = [("gen_ai.content.prompt", {"gen_ai.prompt": json.dumps(before)})]
                said += [("gen_ai.content.completion", {"gen_ai.completion": json.dumps([after])})]
                span["events"] = [
                    {"name": name, "timeUnixNano": str(when), "attributes": _pairs(h)} for name, h in said
                ]
            for place, (name, body) in enumerate(_bodies(before, after)):
                at = str(when + place * 1000)
                if kind in ("logs", "lines"):
                    ids = {"traceId": span["traceId"], "spanId": span["spanId"], "timeUnixNano": at}
                    records.append({**ids, "eventName": name, "attributes": [], "body": _value(body)})
                elif kind == "inside":
                    flat = {key: v if isinstance(v, str) else json.dumps(v) for key, v in body.items()}
                    span["events"].append({"name": name, "timeUnixNano": at, "attributes": _pairs(flat)})
                elif kind == "azure":
                    role = {} if name == "gen_ai.choice" else {"role": name.split(".")[1]}
                    have = {"gen_ai.system": "az.ai.inference", "gen_ai.event.content": json.dumps({**role, **body})}
                    span["events"].append({"name": name, "timeUnixNano": at, "attributes": _pairs(have)})
            spans.append(_spans(span))
    lines = [*spans, *(_logs(record) for record in records)]
    if kind == "lines":
        lines = lines[1::2][::-1] + lines[::2]
    return {"otlp.jsonl": [*lines, _logs(*THUMBS)]}


def _details() -> Files:
    lines = list(_otlp(_no_words, agent=True)["otlp.jsonl"])
    for one in exchanges():
        for n, (before, after) in enumerate(one.models):
            ids = {"traceId": one.trace, "spanId": hexed(f"{one.id}chat{n}", 16), "timeUnixNano": str(one.at * 10**9)}
            have = _pairs(_nested(before, after))
            lines.insert(
                0, _logs({**ids, "eventName": "gen_ai.client.inference.operation.details", "attributes": have})
            )
    return {"otlp.jsonl": lines}


# OpenInference and Phoenix


def openinference(before: list[Json], after: Json) -> Json:
    """A model's call, its messages under numbered names."""
    found: Json = {"openinference.span.kind": "LLM", "llm.model_name": "fake-1"}
    for side, messages in (("input", before), ("output", [after])):
        for n, message in enumerate(messages):
            begin = f"llm.{side}_messages.{n}.message."
            found[f"{begin}role"] = message["role"]
            content = message["content"]
            if isinstance(content, str):
                found[f"{begin}content"] = content
            else:
                found[f"{begin}contents.0.message_content.type"] = "text"
                found[f"{begin}contents.0.message_content.text"] = content[0]["text"]
                found[f"{begin}contents.1.message_content.type"] = "image"
                found[f"{begin}contents.1.message_content.image.image.url"] = content[1]["image_url"]["url"]
            for m, call in enumerate(message.get("tool_calls", ())):
                name = f"{begin}tool_calls.{m}.tool_call."
                found[f"{name}id"] = call["id"]
                found[f"{name}function.name"] = call["function"]["name"]
                found[f"{name}function.arguments"] = call["function"]["arguments"]
    return found


def _shallow(have: Json) -> Json:
    """Lists in place of numbered names, as the data frame has them."""
    found: Json = {}
    for name, value in have.items():
        head, numbered, rest = name.partition("_messages.")
        if not numbered:
            found[name] = value
            continue
        number, _, inner = rest.partition(".")
        listed = found.setdefault(f"{head}_messages", [])
        listed += [{} for _ in range(int(number) + 1 - len(listed))]
        deep, called, later = inner.partition("tool_calls.")
        deep, kind, later = (
            (deep, "tool_calls", later)
            if called
            else (*inner.partition("contents.")[:1], "contents", inner.partition("contents.")[2])
        )
        if not later:
            listed[int(number)][inner] = value
            continue
        place, _, last = later.partition(".")
        inside = listed[int(number)].setdefault(f"message.{kind}", [])
        inside += [{} for _ in range(int(place) + 1 - len(inside))]
        inside[int(place)][last] = value
    return found


def _root(one: Asked, kind: str) -> Json:
    """What the span around an exchange has: `text`, or messages as LangGraph writes its states."""
    if kind == "text":
        return {"input.value": one.words, "output.value": one.answer["content"]}
    told = [*(one.finals if kind == "finals" else one.history), one.question]
    said = {"messages": [*told, *one.steps, one.answer]} if kind == "state" else one.answer
    types = {"input.mime_type": "application/json", "output.mime_type": "application/json"}
    return {"input.value": json.dumps({"messages": told}), "output.value": json.dumps(said), **types}


def _silent(before: list[Json]) -> list[Json]:
    """A history as libraries write it that drop the words beside calls."""
    return [{**message, "content": ""} if "tool_calls" in message else message for message in before]


def _all_spans(kind: str) -> Iterator[tuple[Asked, str, str | None, Json, int]]:
    for one in exchanges():
        if kind:
            have = {"openinference.span.kind": "AGENT", "session.id": one.talk, "user.id": one.talk}
            yield one, "turn", None, {**have, **_root(one, kind)}, 0
        for n, (before, after) in enumerate(one.models_after(one.finals) if kind == "finals" else one.models):
            before = _silent(before) if kind == "silent" else before
            own = {} if kind else {"session.id": one.talk, "user.id": one.talk}
            yield one, f"chat{n}", "turn" if kind else None, {**openinference(before, after), **own}, n + 1
            for m, step in enumerate(s for s in one.steps if s["role"] == "tool" and n == 0):
                tool = {"openinference.span.kind": "TOOL", "input.value": "{}", "output.value": step["content"]}
                yield one, f"look{m}", "turn" if kind else "chat0", tool, n + 2


def _rest(kind: str) -> list[Json]:
    rows = []
    for one, name, parent, have, order in _all_spans(kind):
        rows.append(
            {
                "id": f"{one.id}{name}",
                "name": name,
                "context": {"trace_id": one.trace, "span_id": hexed(one.id + name, 16)},
                "span_kind": have["openinference.span.kind"],
                "parent_id": hexed(one.id + parent, 16) if parent else None,
                "start_time": f"{one.time[:-1]}.{order}00000+00:00",
                "end_time": f"{one.time[:-1]}.900000+00:00",
                "status_code": "OK",
                "status_message": "",
                "attributes": have,
                "events": [],
            }
        )
    return rows[::-1]


def _frame(kind: str) -> list[Json]:
    rows = []
    for row in _rest(kind):
        have = {f"attributes.{name}": value for name, value in _shallow(row.pop("attributes")).items()}
        context = row.pop("context")
        rows.append({"context.span_id": context["span_id"], "context.trace_id": context["trace_id"], **row, **have})
    names = dict.fromkeys(name for row in rows for name in row)
    return [{name: row.get(name) for name in names} for row in rows]


def _annotations(target: str, span: str = "turn") -> list[Json]:
    """Annotations of spans, traces or sessions, as the interface lists them."""
    given: list[tuple[Any, ...]] = [("ann", "HUMAN", "user_feedback", "thumbs-up", 1, COMMENTS["ann"], 1)]
    given += [("bob", "HUMAN", "user_feedback", "thumbs-up", 1, None, 1)]
    given += [("bob", "HUMAN", "user_feedback", "thumbs-down", 0, COMMENTS["bob"], 2)]
    given += [("cat", "LLM", "user_feedback", "bad", 0, "A model said so", 1)]
    rows = []
    for talk, kind, name, label, score, comment, when in given:
        one = next(one for one in exchanges() if one.talk == talk and one.is_last)
        ids = {"span_id": hexed(one.id + span, 16), "trace_id": one.trace, "session_id": talk}
        result = {"label": label, "score": score, "explanation": comment}
        times = {"created_at": one.time, "updated_at": f"2026-09-21T14:0{when}:00+00:00"}
        own = {"id": f"{talk}{when}", "name": name, "annotator_kind": kind, "identifier": f"{talk}", "source": "API"}
        rows.append({**own, target: ids[target], "result": result, "metadata": {}, **times, "user_id": None})
    return rows


def _phoenix(kind: str, target: str = "span_id") -> Files:
    span = "turn" if kind else "chat0"
    return {
        "spans.json": {"data": _rest(kind), "next_cursor": None},
        "annotations.json": {"data": _annotations(target, span), "next_cursor": None},
    }


def _inline() -> Files:
    """Spans with their annotations inside, as `get_spans` and the interface's detail give them."""
    rows = _rest("text")
    listed = _annotations("span_id")
    for row in rows:
        row["annotations"] = [one for one in listed if one["span_id"] == row["context"]["span_id"]]
    return {"spans.jsonl": rows}


def _frame_annotations() -> list[Json]:
    rows = []
    for row in _annotations("span_id"):
        result = row.pop("result")
        named = {f"result.{name}": value for name, value in result.items()}
        rows.append({**row, "annotation_name": row["name"], **named})
    return rows


def _traces() -> Files:
    """The list of traces with their spans."""
    found: dict[str, list[Json]] = {}
    for row in _rest("text"):
        found.setdefault(row["context"]["trace_id"], []).append(row)
    data = [
        {
            "id": trace,
            "trace_id": trace,
            "project_id": "p",
            "start_time": rows[0]["start_time"],
            "end_time": "",
            "spans": rows,
        }
        for trace, rows in found.items()
    ]
    return {
        "traces.json": {"data": data, "next_cursor": None},
        "notes.json": {"data": _annotations("trace_id"), "next_cursor": None},
    }


def _openinference_otlp(kind: str) -> Files:
    lines = [_spans(_span(*given)) for given in _all_spans(kind)]
    span = "turn" if kind else "chat0"
    records = [{**record, "spanId": hexed(_last_of(record["traceId"]) + span, 16)} for record in THUMBS]
    return {"otlp.jsonl": [*lines[::-1], _logs(*records)]}


def _last_of(trace: str) -> str:
    return next(one.id for one in exchanges() if one.trace == trace)


SETS: dict[str, Files] = {
    "OpenTelemetry, attributes as text": _otlp(_semantic),
    "OpenTelemetry, attributes nested, newest first": _otlp(_nested, newest_first=True),
    "OpenTelemetry, session on the span of the request": _otlp(_semantic, agent=True, newest_first=True),
    "OpenTelemetry, numbered names": _otlp(_flat, agent=True),
    "Vercel's spans": _otlp(_vercel, agent=True),
    "Pydantic AI's spans": _otlp(_pydantic, agent=True),
    "Logfire's spans": _otlp(_logfire),
    "Google ADK's spans": {**_otlp(_vertex, agent=True), "lost": ["results"]},
    "OpenTelemetry, one event with all messages": _details(),
    "OpenTelemetry, events as logs": _events("logs"),
    "OpenTelemetry, events as logs in any order": _events("lines"),
    "OpenTelemetry, events inside spans": _events("inside"),
    "OpenTelemetry, events inside spans with one attribute": _events("azure"),
    "OpenTelemetry, events of a prompt and a completion": _events("old"),
    "Phoenix, each trace alone": {
        **{f"trace-{n}.json": {"data": row} for n, row in enumerate(_traces()["traces.json"]["data"])},
        "notes.json": {"data": _annotations("trace_id"), "next_cursor": None},
    },
    "OpenInference, text around": _openinference_otlp("text"),
    "OpenInference, messages around": _openinference_otlp("messages"),
    "OpenInference, final answers around": _openinference_otlp("finals"),
    "OpenInference, histories without the words beside calls": _openinference_otlp("silent"),
    "OpenInference, states around": _openinference_otlp("state"),
    "OpenInference, models alone": _openinference_otlp(""),
    "Phoenix, spans with text around": _phoenix("text"),
    "Phoenix, spans with messages around": _phoenix("messages", "trace_id"),
    "Phoenix, spans with states around": _phoenix("state", "session_id"),
    "Phoenix, spans with final answers around": _phoenix("finals"),
    "Phoenix, models alone": _phoenix(""),
    "Phoenix, frame as JSON lines": {"spans.jsonl": _frame("text"), "notes.csv": _frame_annotations()},
    "Phoenix, frame as Parquet": {"spans.parquet": _frame("messages"), "notes.parquet": _frame_annotations()},
    "Phoenix, frame as CSV": {"spans.csv": _frame("text"), "notes.csv": _frame_annotations()},
    "Phoenix, spans as Parquet with objects": {"spans.parquet": _rest("text"), "notes.jsonl": _annotations("span_id")},
    "Phoenix, annotations inside": _inline(),
    "Phoenix, traces with spans": _traces(),
}
