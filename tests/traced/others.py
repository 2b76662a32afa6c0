"""Logs as Opik, Weave, Braintrust, Helicone, Dify, Inspect and Scout export them."""

import json
from typing import Any

from traced.talks import COMMENTS, LABELS, TALKS, Asked, Files, Json, exchanges

Given = list[tuple[Any, str | None, bool, int]]
GIVEN: dict[str, Given] = {
    "ann": [(1, COMMENTS["ann"], True, 1)],
    "bob": [(1, None, True, 1), (0, COMMENTS["bob"], True, 2)],
    "cat": [(0, "A model said so", False, 1)],
}
"""Value, comment, whether a person gave it, and when: of the last exchange of each conversation."""


def _given(one: Asked) -> Given:
    return GIVEN[one.talk] if one.is_last else []


def _later(when: int) -> str:
    return f"2026-09-21T14:0{when}:00Z"


# Opik


def _opik_scores(given: Given, talk: str) -> list[Json]:
    """One score a name: a person's later one replaces the earlier."""
    rows = {}
    for value, comment, person, when in given:
        own: Json = {"name": "User feedback", "value": value, "reason": comment, "created_by": talk}
        rows["User feedback"] = {**own, "source": "ui" if person else "online_scoring", "last_updated_at": _later(when)}
    return list(rows.values())


def _opik_traces(messages: bool, of_threads: bool = False) -> list[Json]:
    rows = []
    for one in exchanges():
        said: Json = {"messages": [*one.history, one.question]} if messages else {"question": one.words}
        answer: Json = (
            {"choices": [{"index": 0, "message": one.answer}]} if messages else {"answer": one.answer["content"]}
        )
        row: Json = {"id": one.trace, "project_id": "p", "name": "turn", "thread_id": one.talk}
        row |= {"start_time": one.time, "end_time": one.time, "input": said, "output": answer}
        row |= {"metadata": {"user": one.talk}, "tags": [], "error_info": None, "usage": {}}
        scores = [] if of_threads else _opik_scores(_given(one), one.talk)
        rows.append({**row, "feedback_scores": scores, "span_count": 2, "comments": []})
    return rows


def _opik_spans(one: Asked) -> list[Json]:
    rows: list[Json] = []
    for n, (before, after) in enumerate(one.models):
        ids = {"id": f"{one.id}chat{n}", "trace_id": one.trace, "parent_span_id": None, "project_id": "p"}
        words = {"input": {"messages": before}, "output": {"choices": [{"index": 0, "message": after}]}}
        rows.append({**ids, "name": "chat", "type": "llm", "start_time": one.time, **words, "feedback_scores": []})
    return rows


def _opik_threads() -> list[Json]:
    return [
        {"id": talk, "project_id": "p", "start_time": "2026-09-21T13:33:20Z", "first_message": "…", "last_message": "…"}
        | {"feedback_scores": _opik_scores(GIVEN[talk], talk), "number_of_messages": 4, "status": "inactive"}
        for talk in TALKS
    ]


def _opik_page() -> list[Json]:
    """Rows as the page exports them: chosen columns, a column a score."""
    rows = []
    for row in _opik_traces(messages=True):
        score = next(iter(row["feedback_scores"]), None)
        human = score if score and score["source"] == "ui" else None
        kept = {name: row[name] for name in ("id", "name", "start_time", "thread_id", "input", "output")}
        kept["feedback_scores.User feedback"] = human["value"] if human else "-"
        rows.append(kept | ({"feedback_scores.User feedback_reason": human["reason"]} if human else {}))
    return rows


OPIK: dict[str, Files] = {
    "Opik, page of traces": {
        "traces.json": {"page": 1, "size": 6, "total": 6, "content": _opik_traces(True)},
        "lost": ["calls"],
    },
    "Opik, traces beside spans": {
        "traces.jsonl": _opik_traces(messages=False),
        "spans.json": {
            "page": 1,
            "size": 9,
            "total": 9,
            "content": [s for one in exchanges() for s in _opik_spans(one)],
        },
    },
    "Opik, files of traces": {
        f"trace_{one.id}.json": {
            "trace": trace,
            "spans": _opik_spans(one),
            "downloaded_at": _later(5),
            "project_name": "p",
        }
        for one, trace in zip(exchanges(), _opik_traces(messages=False), strict=True)
    },
    "Opik, scores of threads": {
        "traces.jsonl": _opik_traces(messages=True, of_threads=True),
        "threads.json": {"page": 1, "size": 3, "total": 3, "content": _opik_threads()},
        "lost": ["calls"],
    },
    "Opik, rows of the page as JSON": {"traces.json": _opik_page(), "lost": ["calls"]},
    "Opik, rows of the page as CSV": {"traces.csv": _opik_page(), "lost": ["calls"]},
}

# Weave


def _weave_feedback(one: Asked) -> list[Json]:
    rows = []
    for value, comment, person, when in _given(one):
        ref = {"weave_ref": f"weave:///shop/p/call/{one.id}turn", "creator": one.talk, "created_at": _later(when)}
        emoji = "👍" if value else "👎"
        kind = "wandb.reaction.1" if person else "wandb.runnable.helpful"
        payload: Json = {"emoji": emoji, "alias": ":thumbsup:"} if person else {"output": {"helpful": value}}
        rows.append({"id": f"{one.talk}{when}", "feedback_type": kind, "payload": payload, **ref})
        if comment and person:
            note = {"id": f"n{one.talk}{when}", "feedback_type": "wandb.note.1", "payload": {"note": comment}}
            rows.append({**note, **ref})
    return rows


def _weave_annotations() -> list[Json]:
    """What people fill in on the page, as feedback."""
    rows = []
    for one in exchanges():
        for row in _weave_feedback(one):
            if "reaction" in row["feedback_type"]:
                good = row["payload"]["emoji"] == "👍"
                row |= {"feedback_type": "wandb.annotation.user-feedback", "payload": {"value": good}}
            rows.append(row)
    return rows


def _weave(kind: str, inside: bool = True) -> list[Json]:
    rows = []
    for one in exchanges():
        said: Json = {"question": one.words} if kind == "text" else {"messages": [*one.history, one.question]}
        calls: list[tuple[str, str | None, Json, Any]] = [("turn", None, said, one.answer["content"])]
        for n, (before, after) in enumerate(one.models):
            answer = {"id": "c", "choices": [{"index": 0, "finish_reason": "stop", "message": after}]}
            calls.append((f"openai.chat.completions.create{n}", "turn", {"self": "…", "messages": before}, answer))
            calls += [("look_up", "turn", {"number": "A-1"}, s["content"]) for s in one.steps[1:] if n == 0]
        for order, (name, parent, inputs, output) in enumerate(calls):
            feedback = _weave_feedback(one) if inside and not parent else []
            rows.append(
                {
                    "id": f"{one.id}{name}{order or ''}",
                    "project_id": "shop/p",
                    "op_name": f"weave:///shop/p/op/{name.strip('0123456789')}:v1",
                    "trace_id": one.trace,
                    "parent_id": f"{one.id}{parent}" if parent else None,
                    "thread_id": one.talk,
                    "turn_id": f"{one.id}turn",
                    "started_at": f"{one.time[:-1]}.{order}00Z",
                    "ended_at": f"{one.time[:-1]}.900Z",
                    "exception": None,
                    "attributes": {"user": one.talk, "weave": {"client_version": "0.54"}},
                    "inputs": inputs,
                    "output": output,
                    "summary": {"weave": {"status": "success", "feedback": feedback}},
                }
            )
    return rows


def _flat(value: Any, name: str = "") -> Json:
    if not isinstance(value, dict):
        return {name: value}
    found: Json = {}
    for key, inner in value.items():
        found |= _flat(inner, f"{name}.{key}" if name else key)
    return found


WEAVE: dict[str, Files] = {
    "Weave, calls with text around": {"calls.jsonl": _weave("text")},
    "Weave, calls beside feedback": {
        "calls.jsonl": _weave("messages", inside=False)[::-1],
        "feedback.json": {"result": [row for one in exchanges() for row in _weave_feedback(one)]},
    },
    "Weave, calls beside annotations": {
        "calls.jsonl": _weave("messages", inside=False),
        "feedback.jsonl": _weave_annotations(),
    },
    "Weave, frame as Parquet": {
        "calls.parquet": [
            {k: json.dumps(v) if isinstance(v, dict) else v for k, v in r.items()} for r in _weave("text")
        ]
    },
    "Weave, rows of the page as CSV": {
        "calls.csv": [_flat(row) for row in _weave("messages", inside=False)],
        "feedback.jsonl": [row for one in exchanges() for row in _weave_feedback(one)],
    },
}

# Braintrust


def _braintrust(kind: str = "text", scored: bool = True) -> list[Json]:
    rows = []
    for one in exchanges():
        said: Any = [*one.history, one.question] if kind == "messages" else {"question": one.words}
        spans: list[tuple[str, bool, str, Any, Any]] = [("turn", True, "task", said, one.answer["content"])]
        for n, (before, after) in enumerate(one.models):
            answer = [{"index": 0, "finish_reason": "stop", "message": after}]
            spans.append((f"chat{n}", False, "llm", before, answer))
            spans += [("look", False, "tool", {"number": "A-1"}, s["content"]) for s in one.steps[1:] if n == 0]
        for order, (name, root, span_type, given, back) in enumerate(spans):
            person = [(value, comment) for value, comment, human, _ in _given(one) if human and root and scored]
            models = [value for value, _, human, _ in _given(one) if not human and root]
            scores = {"user_feedback": person[-1][0]} if person else {"Factuality": models[-1]} if models else {}
            rows.append(
                {
                    "id": f"row-{one.id}{name}{order}",
                    "span_id": f"{one.id}{name}{order or ''}",
                    "root_span_id": f"{one.id}turn",
                    "span_parents": None if root else [f"{one.id}turn"],
                    "is_root": root,
                    "span_attributes": {"type": span_type, "name": name},
                    "input": given,
                    "output": back,
                    "expected": None,
                    "error": None,
                    "scores": scores or None,
                    "metadata": {"session_id": one.talk, "user_id": one.talk} if root else {"model": "fake-1"},
                    "metrics": {"start": one.at + order / 10, "end": one.at + 1},
                    "created": f"{one.time[:-1]}.{order}00Z",
                    "tags": None,
                    "comments": [{"id": "c", "comment": {"text": c}} for _, c in person if c] or None,
                    "project_id": "p",
                    "log_id": "g",
                    "_xact_id": "1",
                }
            )
    return rows[::-1]


def _braintrust_packed() -> list[Json]:
    return [{k: json.dumps(v) if isinstance(v, dict | list) else v for k, v in r.items()} for r in _braintrust()]


BRAINTRUST: dict[str, Files] = {
    "Braintrust, events": {"logs.json": {"events": _braintrust(), "cursor": None}},
    "Braintrust, answer to a query": {
        "logs.json": {
            "data": _braintrust("messages"),
            "schema": {"type": "array"},
            "cursor": None,
            "realtime_state": {},
        }
    },
    "Braintrust, JSON lines": {"logs.jsonl": _braintrust()},
    "Braintrust, Parquet": {"logs.parquet": _braintrust_packed()},
    "Braintrust, CSV": {"logs.csv": _braintrust_packed()},
}

# Helicone


def _helicone(kind: str) -> list[Json]:
    """Requests of models; `scores` has the thumb there, and `anthropic` bodies of that provider."""
    rows = []
    for one in exchanges():
        for n, (before, after) in enumerate(one.models):
            last = n == len(one.models) - 1
            given = [(value, human) for value, _, human, _ in _given(one)][-1:] if last else []
            thumb = next((bool(value) for value, human in given if human), None)
            request: Json = {"model": "fake-1", "messages": before}
            response: Json = {"id": "c", "choices": [{"index": 0, "finish_reason": "stop", "message": after}]}
            if kind == "anthropic":
                request, response = _anthropic(before), {"type": "message", **_anthropic([after])["messages"][0]}
            row: Json = {
                "response_id": f"{one.id}{n}r",
                "response_created_at": one.time,
                "response_body": response,
                "response_status": 200,
                "request_id": f"{one.id}{n}",
                "request_created_at": f"{one.time[:-1]}.{n}00Z",
                "request_body": request,
                "request_path": "/v1/chat/completions",
                "request_user_id": one.talk,
                "request_properties": {"Helicone-Session-Id": one.talk, "Helicone-Session-Path": "/chat"},
                "request_model": "fake-1",
                "feedback_rating": None if kind == "scores" else thumb,
                "feedback_created_at": None,
                "scores": {"user_feedback": int(thumb)} if kind == "scores" and thumb is not None else {},
            }
            rows.append(row)
    return rows


def _anthropic(messages: list[Json]) -> Json:
    listed: list[Json] = []
    for message in messages:
        content = message["content"]
        if message["role"] == "system":
            continue
        if message["role"] == "tool":
            result = {"type": "tool_result", "tool_use_id": message["tool_call_id"], "content": content}
            if listed[-1]["role"] == "user":
                listed[-1]["content"].append(result)
            else:
                listed.append({"role": "user", "content": [result]})
            continue
        if isinstance(content, list):
            picture = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}
            content = [content[0], {"type": "image", "source": picture}]
        elif message["role"] == "assistant":
            content = [{"type": "text", "text": content}]
            for call in message.get("tool_calls", ()):
                given = json.loads(call["function"]["arguments"])
                content.append({"type": "tool_use", "id": call["id"], "name": call["function"]["name"], "input": given})
        listed.append({"role": message["role"], "content": content})
    system = [message["content"] for message in messages if message["role"] == "system"]
    return {"model": "fake-1", "max_tokens": 9, "messages": listed} | ({"system": system[0]} if system else {})


HELICONE: dict[str, Files] = {
    "Helicone, answer to a query": {"requests.json": {"data": _helicone(""), "error": None}, "lost": ["comment"]},
    "Helicone, JSON lines of another provider": {"requests.jsonl": _helicone("anthropic"), "lost": ["comment"]},
    "Helicone, CSV": {"requests.csv": _helicone(""), "lost": ["comment"]},
    "Helicone, thumbs as scores": {"requests.jsonl": _helicone("scores"), "lost": ["comment"]},
}

# Dify


def _thoughts(one: Asked) -> list[Json]:
    """Steps of an agent: parallel calls are one step, the tools' names joined by semicolons."""
    rows: list[Json] = []
    results = [step["content"] for step in one.steps if step["role"] == "tool"]
    for message in [step for step in one.steps if step["role"] == "assistant"]:
        names = [f"{call['function']['name']}" for call in message["tool_calls"]]
        step = {"tool": ";".join(names), "tool_input": json.dumps({"look_up": {"number": "A-1"}}), "files": []}
        observed = json.dumps({f"{name}": "; ".join(results) for name in names})
        rows.append({**step, "thought": message["content"], "observation": observed, "tool_labels": {}})
    if rows:
        rows.append({"thought": one.answer["content"], "tool": "", "tool_input": "", "observation": "", "files": []})
    ids = ({"id": f"{one.id}t{n}", "message_id": one.id, "chain_id": None, "position": n + 1} for n in range(len(rows)))
    return [{**own, **row, "created_at": one.at} for own, row in zip(ids, rows, strict=True)]


def _dify(kind: str) -> list[Json]:
    rows = []
    for one in exchanges():
        image = [{"id": "f", "type": "image", "url": "/f.png", "belongs_to": "user"}]
        words = [step["content"] for step in one.steps if step["role"] == "assistant"]
        answer = "\n".join([*words, one.answer["content"]]) if kind == "joined" else one.answer["content"]
        row: Json = {"id": one.id, "conversation_id": one.talk, "inputs": {}, "query": one.words, "answer": answer}
        row |= {"created_at": one.at, "status": "normal", "error": None}
        row["parent_message_id"] = "00000000-0000-0000-0000-000000000000"
        row |= {"from_source": "api", "from_end_user_id": one.talk, "from_account_id": None, "app_id": "app"}
        people = [(v, c) for v, c, human, _ in _given(one) if human]
        rating = ["like" if v else "dislike" for v, _ in people]
        if kind != "table":
            row["message_files"] = image if isinstance(one.question["content"], list) else []
            row["agent_thoughts"] = _thoughts(one)
        if kind == "console":
            row["message"] = [{"role": "user", "text": one.words, "files": []}]
            found = [
                {"rating": r, "content": c, "from_source": "user"} for r, (_, c) in zip(rating, people, strict=True)
            ]
            row["feedbacks"] = [{**one_, "from_end_user_id": one.talk, "from_account": None} for one_ in found[-1:]]
        elif kind != "table":
            row["feedback"] = {"rating": rating[-1]} if rating else None
        rows.append(row)
    return rows


def _dify_feedbacks() -> list[Json]:
    rows = []
    for one in exchanges():
        for value, comment, human, when in _given(one):
            ids = {"id": f"{one.talk}{when}", "app_id": "app", "conversation_id": one.talk, "message_id": one.id}
            source = {
                "from_source": "user" if human else "admin",
                "from_end_user_id": one.talk,
                "from_account_id": None,
            }
            times = {"created_at": _later(when), "updated_at": _later(when)}
            rows.append({**ids, "rating": "like" if value else "dislike", "content": comment, **source, **times})
    return rows


def _dify_page(talk: str, kind: str) -> Json:
    return {"limit": 20, "has_more": False, "data": [row for row in _dify(kind) if row["conversation_id"] == talk]}


DIFY: dict[str, Files] = {
    "Dify, pages of the service": {
        **{f"messages-{talk}.json": _dify_page(talk, "service") for talk in TALKS},
        "lost": ["comment", "results"],
    },
    "Dify, answers that begin with the words beside calls": {
        "messages.json": [_dify_page(talk, "joined") for talk in TALKS],
        "lost": ["comment", "results"],
    },
    "Dify, pages of the console": {
        **{f"chat-messages-{talk}.json": _dify_page(talk, "console") for talk in TALKS},
        "lost": ["results"],
    },
    "Dify, pages beside the list of feedback": {
        "messages.jsonl": [_dify_page(talk, "table") for talk in TALKS],
        "feedbacks.json": {"data": _dify_feedbacks()},
        "lost": ["calls", "image"],
    },
    "Dify, tables": {
        "messages.csv": _dify("table"),
        "message_feedbacks.csv": _dify_feedbacks(),
        "message_agent_thoughts.csv": [row for one in exchanges() for row in _thoughts(one)],
        "message_files.csv": [
            {"id": f"{one.id}f", "message_id": one.id, "type": "image", "transfer_method": "local_file", "url": None}
            | {"belongs_to": "user", "upload_file_id": "u", "created_by": one.talk}
            for one in exchanges()
            if isinstance(one.question["content"], list)
        ],
        "lost": ["results"],
    },
}

# Inspect and Scout


def _inspect_messages(talk: str) -> list[Json]:
    rows: list[Json] = []
    for n, message in enumerate(TALKS[talk]):
        content = message["content"]
        if isinstance(content, list):
            content = [content[0], {"type": "image", "image": content[1]["image_url"]["url"], "detail": "auto"}]
        elif n == len(TALKS[talk]) - 1:
            content = [{"type": "reasoning", "reasoning": "Hm."}, {"type": "text", "text": content}]
        row = {"id": f"m{n}", "role": message["role"], "content": content, "source": "input"}
        if calls := message.get("tool_calls"):
            told = [(call["id"], call["function"]) for call in calls]
            row["tool_calls"] = [
                {"id": id_, "function": f["name"], "arguments": json.loads(f["arguments"]), "type": "function"}
                for id_, f in told
            ]
        if message["role"] == "tool":
            row |= {"tool_call_id": message["tool_call_id"], "function": "look_up"}
        rows.append(row)
    return rows


def _samples(value: dict[str, Any], kind: str = "") -> list[Json]:
    rows = []
    for talk in TALKS:
        score: Json = {"value": value[LABELS[talk]], "answer": "…", "explanation": COMMENTS.get(talk), "metadata": {}}
        if kind == "dict":
            score["value"] = {"user_feedback": score["value"], "length": 3}
        own = {"id": talk, "epoch": 1, "input": "…", "target": "", "metadata": {"user": talk}, "attachments": {}}
        scores = {"thumbs" if kind == "dict" else "user_feedback": score} if LABELS[talk] != "none" else {}
        rows.append(
            {**own, "messages": _inspect_messages(talk), "scores": scores | {"judge": {"value": "I"}}, "store": {}}
        )
    return rows


def _log(samples: list[Json]) -> Json:
    return {"version": 2, "status": "success", "eval": {"task": "shop"}, "plan": {}, "results": {}, "samples": samples}


def _transcripts(kind: str) -> list[Json]:
    rows: list[Json] = []
    for talk in TALKS:
        messages = _inspect_messages(talk)
        own: Json = {"transcript_id": f"t-{talk}", "source_type": "chat", "source_id": "s", "source_uri": "u"}
        own |= {"model": "fake-1", "error": None, "date": "2026-09-21T13:33:20Z", "message_count": len(messages)}
        own |= {"messages": json.dumps(messages) if kind == "text" else messages, "metadata": "{}", "task_id": talk}
        rated = LABELS[talk] != "none"
        good = LABELS[talk] == "positive"
        own |= {"success": good if rated else None, "score": json.dumps(int(good)) if rated else None}
        rows.append(own | {"score_explanation": COMMENTS.get(talk)})
    return rows


INSPECT: dict[str, Files] = {
    "Inspect, log": {"log.json": _log(_samples({"positive": 1, "negative": 0, "none": None}))},
    "Inspect, logs as JSON lines": {"logs.jsonl": [_log(_samples({"positive": 1, "negative": 0, "none": None}))]},
    "Inspect, letters": {"log.json": _log(_samples({"positive": "C", "negative": "I", "none": None}))},
    "Inspect, scores of several values": {
        "log.json": _log(_samples({"positive": True, "negative": False, "none": None}, "dict"))
    },
    "Inspect, samples as JSON lines": {"samples.jsonl": _samples({"positive": 1.0, "negative": 0.0, "none": None})},
    "Scout, transcripts": {"transcripts.parquet": _transcripts("text")},
    "Scout, transcripts with lists": {"transcripts.jsonl": _transcripts("lists")},
}
SETS = OPIK | WEAVE | BRAINTRUST | HELICONE | DIFY | INSPECT
