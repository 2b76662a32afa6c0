"""Traces as Langfuse, LangSmith, LangGraph and MLflow export them."""

import json
from collections.abc import Iterator
from typing import Any

from traced.talks import COMMENTS, TALKS, Asked, Files, Json, exchanges, hexed, pythonic

# Langfuse


def _observations(snake: bool = False, text: bool = False, session: bool = True) -> Iterator[Json]:
    """All observations: a span around each exchange, generations, and calls of tools."""
    for one in exchanges():
        spans: list[tuple[str, str | None, str, Any, Any]] = [("turn", None, "SPAN", one.words, one.answer["content"])]
        for n, (before, after) in enumerate(one.models):
            spans.append((f"chat{n}", "turn", "GENERATION", before, after))
            if n == 0:
                spans += [("look", "turn", "TOOL", {"number": "A-1"}, step["content"]) for step in one.steps[1:]]
        for order, (name, parent, kind, said, answered) in enumerate(spans):
            row: Json = {
                "id": f"{one.id}{name}{order}" if name == "look" else f"{one.id}{name}",
                "traceId": one.trace,
                "parentObservationId": f"{one.id}{parent}" if parent else None,
                "type": kind,
                "name": name,
                "startTime": f"{one.time[:-1]}.{order}00Z",
                "endTime": f"{one.time[:-1]}.900Z",
                "input": json.dumps(said) if text else said,
                "output": json.dumps(answered) if text else answered,
                "level": "DEFAULT",
                "statusMessage": None,
                "model": "fake-1" if kind == "GENERATION" else None,
                "environment": "default",
                "metadata": {},
            }
            row |= {"sessionId": one.talk, "userId": one.talk} if session else {}
            yield {_snake(key): value for key, value in row.items()} if snake else row


def _snake(name: str) -> str:
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name)


def _traces(text: bool = False) -> Iterator[Json]:
    for one in exchanges():
        said: Any = {"messages": [*one.history, one.question]} if one.talk == "bob" else one.words
        yield {
            "id": one.trace,
            "timestamp": one.time,
            "name": "turn",
            "input": json.dumps(said) if text else said,
            "output": json.dumps(one.answer) if text else one.answer["content"],
            "sessionId": one.talk,
            "userId": one.talk,
            "metadata": {"feedback_page": 1},
            "tags": [],
            "public": False,
            "bookmarked": False,
            "release": None,
            "version": None,
            "environment": "default",
        }


def _scores(target: str = "trace", kind: str = "NUMERIC") -> list[Json]:
    given = [("ann", 1, COMMENTS["ann"], "API", 1), ("bob", 1, None, "API", 1), ("bob", 0, COMMENTS["bob"], "API", 2)]
    given += [("cat", 0, "A model said so", "EVAL", 1)]
    rows = []
    for talk, value, comment, source, when in given:
        one = next(one for one in exchanges() if one.talk == talk and one.is_last)
        ids = {"trace": {"traceId": one.trace}, "observation": {"traceId": one.trace, "observationId": f"{one.id}turn"}}
        word = {"BOOLEAN": ("False", "True"), "CATEGORICAL": ("down", "up")}.get(kind, (None, None))[value]
        rows.append(
            {
                "id": f"s-{talk}",
                "traceId": None,
                "observationId": None,
                "sessionId": talk if target == "session" else None,
                **ids.get(target, {}),
                "name": "user-feedback",
                "value": value,
                "dataType": kind,
                "stringValue": word,
                "source": source,
                "comment": comment,
                "timestamp": f"2026-09-21T14:0{when}:00Z",
                "createdAt": f"2026-09-21T14:0{when}:00Z",
                "updatedAt": f"2026-09-21T14:0{when}:00Z",
                "authorUserId": None,
                "configId": None,
                "environment": "default",
            }
        )
    return rows


def _page(rows: list[Json]) -> Json:
    return {"data": rows, "meta": {"page": 1, "limit": 50, "totalItems": len(rows), "totalPages": 1}}


def _details() -> list[Json]:
    """Traces with their observations and scores, as the interface gives each alone."""
    rows = []
    for trace in _traces():
        inner = [{k: v for k, v in o.items() if k not in ("sessionId", "userId")} for o in _observations()]
        trace["observations"] = [one for one in inner if one["traceId"] == trace["id"]]
        trace["scores"] = [one for one in _scores() if one["traceId"] == trace["id"]]
        rows.append({**trace, "htmlPath": "/t", "latency": 1.0, "totalCost": 0.1})
    return rows


def _listed() -> list[Json]:
    """Traces as the interface lists them: observations and scores are ids."""
    names = {trace["id"]: [o["id"] for o in _observations() if o["traceId"] == trace["id"]] for trace in _traces()}
    return [{**trace, "observations": names[trace["id"]], "scores": ["s-ann"]} for trace in _traces()]


def _sessions() -> list[Json]:
    return [
        {"id": talk, "createdAt": "2026-09-21T13:33:20Z", "projectId": "p", "environment": "default"}
        | {"traces": [trace for trace in _traces() if trace["sessionId"] == talk]}
        for talk in TALKS
    ]


LANGFUSE: dict[str, Files] = {
    "Langfuse, list of traces": {"traces.json": _page(_listed()), "scores.json": _page(_scores()), "lost": ["calls"]},
    "Langfuse, traces with all inside": {f"trace-{n}.json": trace for n, trace in enumerate(_details())},
    "Langfuse, observations and scores of sessions": {
        "observations.json": _page(list(_observations())[::-1]),
        "scores.json": _page(_scores("session")),
    },
    "Langfuse, observations without sessions beside traces": {
        "observations.json": _page(list(_observations(session=False))),
        "traces.json": _page(_listed()),
        "scores.json": _page(_scores("observation", "BOOLEAN")),
    },
    "Langfuse, sessions": {
        **{f"session-{n}.json": session for n, session in enumerate(_sessions())},
        "scores.csv": _scores("trace", "CATEGORICAL"),
        "lost": ["calls"],
    },
    "Langfuse, blob storage as JSON lines": {
        "observations.jsonl": list(_observations(snake=True, text=True)),
        "scores.jsonl": [{_snake(k): v for k, v in row.items()} for row in _scores()],
    },
    "Langfuse, blob storage as Parquet": {
        "observations.parquet": list(_observations(snake=True, text=True, session=False)),
        "traces.parquet": [{_snake(k): v for k, v in row.items()} for row in _traces(text=True)],
        "scores.parquet": [{_snake(k): v for k, v in row.items()} for row in _scores("observation", "CATEGORICAL")],
    },
    "Langfuse, blob storage as CSV": {
        "observations.csv": list(_observations(snake=True, text=True)),
        "scores.csv": [{_snake(k): v for k, v in row.items()} for row in _scores("session", "BOOLEAN")],
    },
}

# LangSmith

KINDS = {"user": "human", "assistant": "ai", "system": "system", "tool": "tool"}
CLASSES = {"user": "HumanMessage", "assistant": "AIMessage", "system": "SystemMessage", "tool": "ToolMessage"}


def langchain(message: Json) -> Json:
    """A message as LangChain dumps it."""
    calls = [
        {
            "name": call["function"]["name"],
            "args": json.loads(call["function"]["arguments"]),
            "id": call["id"],
            "type": "tool_call",
        }
        for call in message.get("tool_calls", ())
    ]
    found = {"type": KINDS[message["role"]], "content": message["content"], "additional_kwargs": {}, "id": None}
    found |= {"tool_calls": calls, "invalid_tool_calls": []} if message["role"] == "assistant" else {}
    return found | ({"tool_call_id": message["tool_call_id"], "name": "look_up"} if "tool_call_id" in message else {})


def _constructor(message: Json) -> Json:
    path = ["langchain", "schema", "messages", CLASSES[message["role"]]]
    return {"lc": 1, "type": "constructor", "id": path, "kwargs": langchain(message)}


def _runs(kind: str) -> Iterator[Json]:
    """Runs of `graph`s, of `wrapped` OpenAI clients, or of functions with `text`."""
    for one in exchanges():
        told = [*one.history, one.question]
        if kind == "graph":
            said: Json = {"messages": [langchain(one.question)]}
            answered: Json = {"messages": [langchain(m) for m in [*told, *one.steps, one.answer]]}
        else:
            said, answered = {"question": one.words}, {"answer": one.answer["content"]}
        runs: list[tuple[str, str | None, str, Json, Json]] = [("turn", None, "chain", said, answered)]
        for n, (before, after) in enumerate(one.models):
            if kind == "wrapped":
                given: Json = {"messages": before, "model": "fake-1"}
                back: Json = {"id": "c", "choices": [{"index": 0, "finish_reason": "stop", "message": after}]}
            else:
                given = {"messages": [[_constructor(message) for message in before]]}
                message = {"text": after["content"], "message": _constructor(after), "type": "ChatGeneration"}
                back = {"generations": [[message]], "llm_output": None, "run": None, "type": "LLMResult"}
            runs.append((f"chat{n}", "turn", "llm", given, back))
        runs += [
            ("look", "turn", "tool", {"input": "{}"}, {"output": langchain(m)})
            for m in one.steps
            if m["role"] == "tool"
        ][:1]
        for order, (name, parent, run_type, inputs, outputs) in enumerate(runs):
            yield {
                "id": f"{one.id}{name}" if parent else one.trace,
                "trace_id": one.trace,
                "parent_run_id": one.trace if parent else None,
                "parent_run_ids": [one.trace] if parent else [],
                "name": name,
                "run_type": run_type,
                "start_time": f"{one.time[:-1]}.{order}00000",
                "end_time": f"{one.time[:-1]}.900000",
                "inputs": inputs,
                "outputs": outputs,
                "error": None,
                "status": "success",
                "session_id": "project",
                "extra": {"metadata": {"thread_id": one.talk, "user_id": one.talk}, "runtime": {"sdk": "py"}},
                "tags": [],
                "dotted_order": f"{one.at}",
                "feedback_stats": {},
                "events": [],
            }


def _bulk() -> list[Json]:
    """Rows of the bulk export: objects are JSON text, and the thread has a column."""
    rows = []
    for run in _runs("graph"):
        thread = run["extra"]["metadata"]["thread_id"]
        packed = {k: json.dumps(v) for k, v in run.items() if isinstance(v, dict | list)}
        rows.append({**run, **packed, "tenant_id": "t", "is_root": run["parent_run_id"] is None, "thread_id": thread})
    return rows


def _anonymous() -> list[Json]:
    """Feedback of programs, which name nobody; the later one on a run counts."""
    return [{**row, "feedback_source": {**row["feedback_source"], "user_id": None}} for row in _feedback()]


def _feedback(at_root: bool = True) -> list[Json]:
    given: list[tuple[str, Any, str | None, str, int]] = [("ann", True, COMMENTS["ann"], "api", 1)]
    given += [("bob", True, None, "app", 1), ("bob", False, COMMENTS["bob"], "app", 2), ("cat", 0, "m", "model", 1)]
    rows = []
    for talk, score, comment, source, when in given:
        one = next(one for one in exchanges() if one.talk == talk and one.is_last)
        rows.append(
            {
                "id": f"f-{talk}{when}",
                "run_id": one.trace if at_root else f"{one.id}chat0",
                "trace_id": one.trace,
                "session_id": "project",
                "key": "user_score",
                "score": score,
                "value": None,
                "comment": comment,
                "correction": None,
                "created_at": f"2026-09-21T14:0{when}:00Z",
                "modified_at": f"2026-09-21T14:0{when}:00Z",
                "feedback_source": {"type": source, "metadata": {}, "user_id": talk},
            }
        )
    return rows


def _threads() -> list[Json]:
    roots = [run for run in _runs("graph") if run["parent_run_id"] is None]
    return [
        {"thread_id": talk, "count": 2, "first_inputs": "…", "last_outputs": "…", "total_tokens": 9}
        | {"runs": [run for run in roots if run["extra"]["metadata"]["thread_id"] == talk]}
        for talk in TALKS
    ]


def _nested_runs() -> list[Json]:
    """Root runs with the others inside, as `read_run(load_child_runs=True)` gives them."""
    runs = list(_runs("text"))
    inner = {run["id"]: {**run, "trace_id": run["trace_id"]} for run in runs}
    roots = [run for run in runs if run["parent_run_id"] is None]
    return [
        {**root, "child_runs": [run for run in inner.values() if run["parent_run_id"] == root["id"]]} for root in roots
    ]


LANGSMITH: dict[str, Files] = {
    "LangSmith, pages of runs of graphs": {
        "runs.json": {"runs": list(_runs("graph"))[::-1], "cursors": {"next": None, "prev": None}},
        "feedback.json": _feedback(),
    },
    "LangSmith, runs with text around": {"runs.jsonl": list(_runs("text")), "feedback.jsonl": _feedback(at_root=False)},
    "LangSmith, runs of wrapped clients": {"runs.jsonl": list(_runs("wrapped")), "feedback.jsonl": _anonymous()},
    "LangSmith, runs inside runs": {"runs.jsonl": _nested_runs(), "feedback.jsonl": _feedback()},
    "LangSmith, bulk export": {"runs.parquet": _bulk(), "feedback.jsonl": _feedback()},
    "LangSmith, bulk export beside feedback as CSV": {"runs.parquet": _bulk(), "feedback.csv": _feedback()},
    "LangSmith, frames as CSV": {"runs.csv": pythonic(list(_runs("text"))), "feedback.csv": pythonic(_feedback())},
    "LangSmith, threads": {"threads.json": _threads(), "feedback.json": _feedback()},
}

# LangGraph


def _with_ids(talk: str) -> list[Json]:
    return [{**langchain(message), "id": f"{talk}m{n}"} for n, message in enumerate(TALKS[talk])]


def _threads_of_graphs() -> list[Json]:
    thumbs = {
        "ann": {"feedback": "up", "comment": COMMENTS["ann"]},
        "bob": {"feedback": "down", "comment": COMMENTS["bob"]},
    }
    return [
        {
            "thread_id": talk,
            "created_at": "2026-09-21T13:33:20+00:00",
            "updated_at": "2026-09-21T13:43:20+00:00",
            "metadata": {"graph_id": "agent", "user_id": talk, **thumbs.get(talk, {})},
            "status": "idle",
            "config": {},
            "values": {"messages": _with_ids(talk), "remaining_steps": 9},
            "interrupts": {},
        }
        for talk in TALKS
    ]


def _states(kind: str) -> list[Json]:
    """States of all threads, oldest last: of the server, of a local graph, or of its saver."""
    rows: list[Json] = []
    for row in _threads_of_graphs():
        for n, messages in enumerate((row["values"]["messages"], row["values"]["messages"][:-1])):
            at = f"2026-09-21T13:4{9 - n}:00+00:00"
            place = {"thread_id": row["thread_id"], "checkpoint_ns": "", "checkpoint_id": f"1f-{9 - n}"}
            metadata = {**row["metadata"], "source": "loop", "step": 9 - n, "parents": {}}
            if kind == "saver":
                state = {"v": 4, "ts": at, "id": place["checkpoint_id"], "channel_values": {"messages": messages}}
                rows.append({"config": {"configurable": place}, "checkpoint": state, "metadata": metadata})
                continue
            own = {"checkpoint": place} if kind == "server" else {"config": {"configurable": place}}
            parent = {"parent_checkpoint": None} if kind == "server" else {"parent_config": None}
            values = {"messages": messages}
            rows.append(
                {"values": values, "next": [], **own, **parent, "metadata": metadata, "created_at": at, "tasks": []}
            )
    return rows


LANGGRAPH: dict[str, Files] = {
    "LangGraph, threads": {"threads.json": _threads_of_graphs()},
    "LangGraph, histories of the server": {"history.json": _states("server")},
    "LangGraph, histories of a local graph": {"history.jsonl": _states("local")},
    "LangGraph, checkpoints of a saver": {"checkpoints.jsonl": _states("saver")},
}

# MLflow


def _mlflow_spans(one: Asked, version: int, kind: str) -> list[Json]:
    if kind == "messages":
        said: Any = {"messages": [*one.history, one.question]}
    else:
        said = {"question": one.words}
    spans: list[tuple[str, str | None, str, Any, Any]] = [("turn", None, "AGENT", said, one.answer["content"])]
    for n, (before, after) in enumerate(one.models):
        back = {"id": "c", "choices": [{"index": 0, "finish_reason": "stop", "message": after}]}
        spans.append((f"chat{n}", "turn", "CHAT_MODEL", {"messages": before, "model": "fake-1"}, back))
    rows = []
    for order, (name, parent, span_type, inputs, outputs) in enumerate(spans):
        span_id, above = hexed(one.id + name, 16), hexed(one.id + parent, 16) if parent else None
        have = {
            "mlflow.traceRequestId": json.dumps(f"tr-{one.trace}"),
            "mlflow.spanType": json.dumps(span_type),
            "mlflow.spanInputs": json.dumps(inputs),
            "mlflow.spanOutputs": json.dumps(outputs),
        }
        begun = one.at * 10**9 + order
        if version == 2:
            row: Json = {"name": name, "context": {"span_id": f"0x{span_id}", "trace_id": f"0x{one.trace}"}}
            row |= {"parent_id": f"0x{above}" if above else None, "start_time": begun, "end_time": begun + 5}
            row |= {"status_code": "OK", "status_message": "", "attributes": have, "events": []}
        else:
            row = {"trace_id": one.trace, "span_id": span_id, "parent_span_id": above, "name": name, "events": []}
            row |= {"start_time_unix_nano": begun, "end_time_unix_nano": begun + 5, "attributes": have}
            row |= {"status": {"code": "STATUS_CODE_OK", "message": ""}}
        rows.append(row)
    return rows


def _assessments(one: Asked, value: tuple[Any, Any], of_session: bool) -> list[Json]:
    good, bad = value
    given: dict[str, list[tuple[Any, ...]]] = {
        "ann": [(good, COMMENTS["ann"], "HUMAN", 1)],
        "cat": [(bad, "m", "LLM_JUDGE", 1)],
    }
    given["bob"] = [(good, None, "HUMAN", 1), (bad, COMMENTS["bob"], "HUMAN", 2)]
    rows = []
    for said, comment, kind, when in given[one.talk] if one.is_last else ():
        row = {
            "assessment_id": f"a-{one.talk}{when}",
            "assessment_name": "user_feedback",
            "trace_id": f"tr-{one.trace}",
            "source": {"source_type": kind, "source_id": one.talk},
            "create_time": f"2026-09-21T14:0{when}:00Z",
            "last_update_time": f"2026-09-21T14:0{when}:00Z",
            "feedback": {"value": said},
            "metadata": {"mlflow.trace.session": one.talk} if of_session else {},
            "valid": True,
        }
        rows.append(row | ({"rationale": comment} if comment else {}))
    return [*rows, {"assessment_name": "right", "source": {"source_type": "HUMAN"}, "expectation": {"value": "no"}}]


def _mlflow(
    version: int = 3, kind: str = "text", value: tuple[Any, Any] = (True, False), of_session: bool = False
) -> list[Json]:
    rows = []
    for one in exchanges():
        metadata = {"mlflow.trace.session": one.talk, "mlflow.trace.user": one.talk}
        if version == 2:
            info = {
                "request_id": f"tr-{one.trace}",
                "experiment_id": "1",
                "timestamp_ms": one.at * 1000,
                "status": "OK",
            }
            info |= {"request_metadata": metadata, "tags": {}, "assessments": _assessments(one, value, of_session)}
            data: Json = {"request": json.dumps(one.words), "response": json.dumps(one.answer["content"])}
        else:
            info = {"trace_id": f"tr-{one.trace}", "request_time": one.time, "state": "OK", "trace_metadata": metadata}
            info |= {"assessments": _assessments(one, value, of_session), "request_preview": one.words[:9]}
            data = {}
        rows.append({"info": info, "data": {"spans": _mlflow_spans(one, version, kind), **data}})
    return rows


def _mlflow_frame(text: bool) -> list[Json]:
    """Rows of `search_traces`, saved as JSON lines or Parquet, where objects may be JSON text."""
    rows = []
    for trace in _mlflow():
        info = trace["info"]
        row = {
            "trace_id": info["trace_id"],
            "client_request_id": None,
            "state": "OK",
            "request_time": 1790000000000,
            "execution_duration": 5,
            "request": {"question": "…"},
            "response": "…",
            "trace_metadata": info["trace_metadata"],
            "tags": {},
            "spans": trace["data"]["spans"],
            "assessments": info["assessments"],
        }
        rows.append({k: json.dumps(v) if text and isinstance(v, dict | list) else v for k, v in row.items()})
    return rows


MLFLOW: dict[str, Files] = {
    "MLflow, traces": {"traces.jsonl": _mlflow()[::-1]},
    "MLflow, page of traces": {
        "traces.json": {"traces": _mlflow(kind="messages", value=("yes", "no")), "next_page_token": None}
    },
    "MLflow, feedback of sessions": {"traces.jsonl": _mlflow(value=(1, 0), of_session=True)},
    "MLflow, traces of version 2": {"traces.jsonl": _mlflow(version=2, value=("👍", "👎"))},
    "MLflow, frame as JSON lines": {"traces.jsonl": _mlflow_frame(text=False)},
    "MLflow, frame as Parquet": {"traces.parquet": _mlflow_frame(text=True)},
    "MLflow, frame as CSV": {"traces.csv": _mlflow_frame(text=True)},
    "MLflow, frame as CSV with Python's writing": {"traces.csv": pythonic(_mlflow_frame(text=False))},
}
SETS = LANGFUSE | LANGSMITH | LANGGRAPH | MLFLOW
