"""Reads exports of other tools, and compares what comes out with the conversations that went in.

    python benchmarks/exchange.py --data FOLDER [--top]

FOLDER holds exports of the same six conversations and `EXPECTED.json`. By file one line, with what
the file lacks: `right`, where words and thumbs are as expected, and tool calls with arguments and
results, images, failures, users, comments and times as far as the file has them; `lost by the
tool`, where the export lacks words or thumbs; `clear error`, for exports from which nothing can be
learned; or `wrong`, which must not be: the exit code is 1 then. `--top` reads the eight tools alone
that most people have logs in.
"""

import argparse
import itertools
import json
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from small_form import ROOT, Findings, arguments_of, run

from pollex.conversations.conversation import Conversation, iterate_tool_uses
from pollex.conversations.logs import Logs
from pollex.errors import BadInput, WrongUse
from pollex.formats.fields import ReadOptions
from pollex.formats.read_logs import read_logs

TOP = (
    *(
        "open-webui",
        "langfuse",
        "langsmith",
        "langgraph",
        "dify",
        "otel",
        "openinference",
        "phoenix",
        "mlflow",
    ),
    *("librechat", "chainlit"),
)
Line = tuple[str, tuple[str, ...]]
Found = TypeVar("Found")
KINDS = {"tools": "[tool call", "image": "[image]", "error": "[error]", "order": ""}
"""What may be missing beside the words, and what stands for it."""
MARKS = ("[tool call", "[image]", "[file]", "[error]")
BESIDE_WORDS = {"tools", "image", "error", "user", "comment", "time"}
RATINGS = {"positive": ">=4", "negative": "<=2"}
OPIK = (
    *("aa8cd038-298f-5ccd-a9e9-23eb1e0bc12c", "3d34c4a1-46ec-5703-b5b5-d6f96c52f456"),
    *("cd3566a5-89cc-53b4-9ee2-48ef5671dc82", "a414177e-632b-5af6-8bae-1f403786d6a0"),
    *("cb72d2ce-03bb-581b-be97-c4c293fefe82", "261ce00d-ef02-5f18-927d-b5f81dfbe146"),
    *("d29d3886-88d8-5972-9aab-38bed4467125", "b0c0b540-3bbf-562f-bc5c-82c8a7864b19"),
    *("846b427b-279b-517f-81ea-58e346ee3875", "c9cf7832-f4b6-52ef-9784-f7df50ad50f0"),
    *("7281d6d4-d14c-5ca2-ae24-c9b824c594ee", "90ad174f-f00a-5df4-ad0c-200742f2448a"),
)
"""Files with one trace each."""
WITH: dict[str, tuple[str, ...]] = {
    "server-62751446/ui-traces.jsonl": ("ui-scores.csv",),
    "server-62751446/ui-traces.json": ("ui-scores.csv",),
    "server-62751446/ui-traces.csv": ("ui-scores.csv",),
    "server-62751446/ui-events.jsonl": ("ui-scores.csv",),
    "blob-observations_v2.jsonl": ("blob-scores.jsonl",),
    "api-v2-observations.json": ("api-v3-scores.json",),
    "sdk-spans.otlp.jsonl": ("sdk-scores.json",),
    "list_runs.jsonl": ("list_feedback.jsonl",),
    "list_runs-roots.jsonl": ("list_feedback.jsonl",),
    "rest-spans.json": (
        "rest-span_annotations.json",
        "rest-trace_annotations.json",
        "rest-session_annotations.json",
    ),
    "rest-spans-otlpv1.json": (
        *(
            "rest-span_annotations.json",
            "rest-trace_annotations.json",
            "rest-session_annotations.json",
        ),
    ),
    "spans_dataframe.jsonl": (
        *(
            "span_annotations_dataframe.csv",
            "rest-trace_annotations.json",
            "rest-session_annotations.json",
        ),
    ),
    "spans_dataframe.parquet": (
        *(
            "span_annotations_dataframe.csv",
            "rest-trace_annotations.json",
            "rest-session_annotations.json",
        ),
    ),
    "spans_dataframe-roots.csv": (
        *(
            "span_annotations_dataframe.csv",
            "rest-trace_annotations.json",
            "rest-session_annotations.json",
        ),
    ),
    "client-session_turns.json": (
        *(
            "rest-span_annotations.json",
            "rest-trace_annotations.json",
            "rest-session_annotations.json",
        ),
    ),
    "chainlit/2.12.0/steps.csv": ("feedbacks.csv", "threads.csv"),
    "vercel-ai/7.0.173/chats.jsonl": ("vote-table.jsonl",),
    "message-table.jsonl": ("vote-table.jsonl",),
    "chatgpt-export/conversations.json": ("message_feedback.json",),
    "weave/calls.jsonl": ("feedback.jsonl",),
    "braintrust/0.47.0/logs.jsonl": ("comments.jsonl",),
    **{f"trace_{name}.json": ("trace_*.json", "rest-threads.json") for name in OPIK},
    "opik/2.2.122/search_traces.jsonl": ("rest-threads.json",),
    "opik/2.2.122/rest-traces.json": ("rest-threads.json",),
}
OPTIONS: dict[str, dict[str, Any]] = {
    "intercom/conversations.json": RATINGS,
    "hf/hh-rlhf.jsonl": {"pairs": True},
    "hf/chatbot-arena.jsonl": {"pairs": True},
    "hf/arena-human-preference-140k.jsonl": {"pairs": True},
    "hf/ultrafeedback.jsonl": {"pairs": True},
    "hf/ultrafeedback_binarized.jsonl": {"pairs": True},
    "fine-tuning/preference.jsonl": {"pairs": True},
    "responses/responses.jsonl": {"label_field": "thumb"},
    "3555dec0.parquet": {"comment_field": "comment"},
}
ONLY: dict[str, tuple[str, ...]] = {
    "rest-spans-otlpv1.json": ("shop-003", "shop-004", "shop-005", "shop-006"),
    "search_traces-records.jsonl": ("shop-002", "shop-003", "shop-004"),
    "mlflow/3.17.2/search_traces.csv": ("shop-002", "shop-003", "shop-004"),
    "mlflow/3.17.2/cli-get.json": ("shop-002",),
    "open-webui/0.12.4/chat-export-one.json": ("shop-002",),
    "feedback-history-export.json": ("shop-001", "shop-002", "shop-003", "shop-004", "shop-005"),
    "langchain-0.1.80/error.otlp.jsonl": ("shop-005",),
    "langchain-0.1.80/tool-call.otlp.jsonl": ("shop-002",),
    "librechat/export-recursive-shop-001.json": ("shop-001",),
    "threads.get_history-shop-002.json": ("shop-002",),
    "ui-trace-c01d3c377f57e67bbbba68845ae0dc0d.json": ("shop-002",),
    "inspect-ai/0.3.285/shop.json": ("shop-001", "shop-002", "shop-004"),
    "messages-of-one.json": ("shop-002",),
    "dify/feedback-export.csv": ("shop-001", "shop-002", "shop-003", "shop-004", "shop-005"),
    "dify/feedback-export.json": ("shop-001", "shop-002", "shop-003", "shop-004", "shop-005"),
    **{f"librechat/export-shop-00{n}.json": (f"shop-00{n}",) for n in range(1, 7)},
}
"""Files that hold some of the conversations alone, as their READMEs say."""
ALL = tuple(f"shop-00{n}" for n in range(1, 7))
PAIRS = tuple(end for end, options in OPTIONS.items() if options.get("pairs"))
OWN = "the user and the comment: the label is a field of one's own"
LOST: dict[str, tuple[str, str]] = {
    "anthropic/messages.jsonl": (
        "time user comment error shop-002:words",
        f"{OWN}; words before a tool call are there, too",
    ),
    "get_thread.jsonl": ("image", "images: elements need a storage client"),
    "steps-joined.csv": ("image", "images: elements need a storage client"),
    "chainlit/2.12.0/steps.csv": ("image", "images: elements need a storage client"),
    "chatgpt-export/conversations.json": (
        "user tools error",
        "tool calls, failures; all users are one",
    ),
    "conversation-history.json": ("user tools image", "users, tool calls, images"),
    "dify/api-messages.jsonl": (
        "user comment tools image",
        "users, comments; no tools or files were used",
    ),
    "dify/feedback-export.csv": ("tools words", "all but the rated exchange"),
    "dify/feedback-export.json": ("tools words", "all but the rated exchange"),
    "flowise/chatmessage.json": (
        "user tools image shop-005:words",
        "users, tool calls, images; failed answers look as any",
    ),
    "gemini/contents.jsonl": ("time user comment error", f"{OWN}; failures"),
    "helicone/export.jsonl": ("comment", "comments"),
    "hf/oasst2.jsonl": (
        "user comment tools image error",
        "users, comments, tool calls, images, failures",
    ),
    "hf/oasst2-trees.jsonl": (
        "time thumb user comment tools image error",
        "as in the messages; trees have no emojis for down",
    ),
    "inspect-ai/0.3.285/shop.eval": (
        "user thumb shop-005:comment",
        "the score of a sample that failed; users have no field",
    ),
    "inspect-ai/0.3.285/shop.json": ("user", "users: they have no field"),
    "8ab5cb28.parquet": (
        "user thumb shop-005:comment",
        "the score of a sample that failed; users have no field",
    ),
    "3555dec0.parquet": ("tools", "shop-002 has no tool call there"),
    "intercom/conversations.json": ("tools image error", "tool calls, images, failures"),
    "langflow/monitor-messages.json": (
        "user comment tools image",
        "users, comments, tool calls, images",
    ),
    "ui-traces.jsonl": ("tools", "a trace's own words: tool calls stand in observations"),
    "ui-traces.json": ("tools", "a trace's own words: tool calls stand in observations"),
    "ui-traces.csv": ("tools", "a trace's own words: tool calls stand in observations"),
    "c01d3c377f57e67bbbba68845ae0dc0d.json": (
        "words thumb",
        "one trace of two; the thumb is the other's",
    ),
    "threads.get_history-shop-002.json": (
        "thumb",
        "states lack the thread's metadata, in which the thumb is",
    ),
    "threads.get_state.json": (
        "thumb comment",
        "states lack the thread's metadata, in which the thumb is",
    ),
    "threads.search.json": ("comment", "comments: the thumb is the application's own"),
    "list_runs-roots.jsonl": ("tools", "root runs alone: tool calls stand in the others"),
    **dict.fromkeys(
        [f"librechat/export-shop-00{n}.json" for n in range(1, 7)]
        + ["export-recursive-shop-001.json", "mongoexport-messages.jsonl"],
        ("user", "users: a message doesn't name them"),
    ),
    "mlflow/3.17.2/cli-get.json": ("tools", "one trace of two: the tool was called in the other"),
    "evals/output_items.jsonl": (
        "tools time words thumb comment",
        "all but one turn; graders are no users",
    ),
    "responses/conversation-items.jsonl": (
        "time thumb comment error",
        "thumbs, comments, failures: items are words alone",
    ),
    "responses/responses.jsonl": ("comment", "comments: the thumb is metadata of one's own"),
    "messages-of-one.json": (
        "time words thumb",
        "the answer and the metadata stand in the completion",
    ),
    "with-messages.jsonl": ("comment shop-005:words", "comments; a failure comes as a refusal"),
    **dict.fromkeys(
        ["rest-traces.json", "search_traces.jsonl", *(f"trace_{name}.json" for name in OPIK)],
        ("tools", "a trace's own words: tool calls are in no span"),
    ),
    "openai-v2-2.4b0/span-and-event.otlp.jsonl": (
        "shop-003:words",
        "the words of a message with an image",
    ),
    "openai-0.40.14/attributes.otlp.jsonl": (
        "shop-003:absent shop-003:unknown",
        "the prompts of a call with an image",
    ),
    "openai-0.62.4/attributes.otlp.jsonl": (
        "shop-003:absent",
        "all messages of a call with an image",
    ),
    "client-session_turns.json": ("tools", "root spans alone: tool calls stand in the others"),
    "spans_dataframe-roots.csv": ("tools", "root spans alone: tool calls stand in the others"),
    "rest-spans-otlpv1.json": ("shop-003:words", "cut to 14 spans"),
    "phoenix/20.26.1/dataset.csv": ("*", "the session: every example stands alone"),
    "dataset-examples.json": ("*", "the session: every example stands alone"),
    "rasa/event-broker.jsonl": (
        "user comment tools image shop-005:words",
        "all but words; failed answers look as any",
    ),
    "rasa/trackers.jsonl": (
        "user comment tools image shop-005:words",
        "all but words; failed answers look as any",
    ),
    "chats-with-votes.jsonl": ("time comment", "comments: votes have none"),
    "chats.jsonl": ("time comment", "comments: votes have none"),
    "message-table.jsonl": ("user comment", "comments and users: neither table has them"),
    "ticket-comments.csv": (
        "user tools image error",
        "tool calls, images, failures; users are numbers",
    ),
    "tickets.jsonl": ("user tools image error", "tool calls, images, failures; users are numbers"),
    **dict.fromkeys(PAIRS, ("*", "thumbs: pairs are of one turn, and both sides of each come out")),
    **dict.fromkeys(
        [
            "lmsys-chat-1m.jsonl",
            "lmsys-chat-1m.parquet",
            "wildchat.jsonl",
            "fine-tuning/supervised.jsonl",
        ],
        ("time thumb comment tools image error", "thumbs and all but words: the data set has none"),
    ),
}
"""What the files lack, of all talks or of one, and why; a star where nothing can be compared."""
REFUSED: dict[str, str] = {
    "chainlit.sqlite": "a database, not an export: the tables are exported as CSV",
    "checkpoints.sqlite": "msgpack with LangChain's classes, not to be read",
    "librechat/export-shop-001.csv": "the CSV has no feedback column",
    "mlflow/3.17.2/cli-search-fields.json": "chosen fields alone, without the spans",
    "dataset-openai_evals.jsonl": "the session and the thumbs are lost in that download",
    "dataset-openai_ft.jsonl": "the session and the thumbs are lost in that download",
    "rest-sessions.json": "a list of sessions without words",
    "span_annotations_dataframe.jsonl": "the index with the spans' ids isn't written",
    "stored-completions/list.json": "what was asked stands in other answers of the interface",
    "trace_d29d3886-88d8-5972-9aab-38bed4467125.csv": "cells hold Python's repr, not JSON",
}
"""Files from which nothing can be learned, and why."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a file."""

    kind: str
    why: str = ""


def turns_of(conversation: Conversation) -> list[Line]:
    """What was said, without the system's turns; a turn's lines in any order, a tool's answer as its value."""
    return [_line(turn.role, turn.content) for turn in conversation.turns if turn.role != "system"]


def _line(role: str, content: str) -> Line:
    if role == "tool":
        try:
            return role, (json.dumps(json.loads(content), sort_keys=True),)
        except ValueError:
            pass
    return role, tuple(sorted(content.strip().splitlines()))


def expected_of(talk: dict[str, Any]) -> list[Line]:
    """A talk of EXPECTED.json likewise."""
    return [_line(*_spelled(turn)) for turn in talk["turns"]]


def _spelled(turn: dict[str, Any]) -> tuple[str, str]:
    if "error" in turn:
        return "assistant", "[error]"
    if "tool_call" in turn:
        return "assistant", f"[tool call: {turn['tool_call']['name']}]"
    content = turn["content"] if isinstance(turn["content"], str) else json.dumps(turn["content"])
    return turn["role"], content + ("\n[image]" if "image" in turn.get("parts", ()) else "")


def words_in(lines: list[Line]) -> list[Line]:
    """What users and assistants said, without what stands for images, calls and failures."""
    said = [
        (role, tuple(line for line in content if not line.startswith(MARKS)))
        for role, content in lines
        if role in ("user", "assistant")
    ]
    return [(role, content) for role, content in said if "".join(content)]


def differences(logs: Logs, talks: list[dict[str, Any]]) -> set[str]:
    """What is other than expected, as `talk:what`."""
    by_line = {
        line: talk for talk in talks for line in words_in(expected_of(talk)) if line[0] == "user"
    }
    found = set()
    seen = set()
    for conversation in logs:
        talk = next(
            (by_line[line] for line in words_in(turns_of(conversation)) if line in by_line), None
        )
        if talk is None:
            found.add(f"{conversation.id}:unknown")
            continue
        seen.add(talk["id"])
        found |= {f"{talk['id']}:{what}" for what in _compared(conversation, talk)}
    return found | {f"{talk['id']}:absent" for talk in talks if talk["id"] not in seen}


def _compared(conversation: Conversation, talk: dict[str, Any]) -> Iterator[str]:
    said = turns_of(conversation)
    expected = expected_of(talk)
    if words_in(said) != words_in(expected):
        yield "words"
    elif said != expected:
        yield next(what for what, mark in KINDS.items() if _marked(expected, mark) or mark == "")
    if conversation.label.value != talk["label"]:
        yield "thumb"
    if [one.comment for one in conversation.feedback if one.comment] != (
        [talk["comment"]] if talk["comment"] else []
    ):
        yield "comment"
    known = (talk["user"], str(uuid.uuid5(uuid.NAMESPACE_DNS, talk["user"])))
    user = (
        conversation.judge
        if conversation.label.value != "none"
        else conversation.metadata.get("user", known[0])
    )
    if user not in known:
        yield "user"
    if calls_of(conversation) != calls_expected(talk):
        yield "tools"
    if not _is_of_these_years(conversation.metadata.get("timestamp")):
        yield "time"


def calls_of(conversation: Conversation) -> list[tuple[str, str, str | None]]:
    """The calls of tools: name, arguments, and what came back."""
    turns = conversation.turns
    return [
        (
            use.call.name,
            use.call.normalized,
            None if use.result is None else _value(turns[use.result].content),
        )
        for use in iterate_tool_uses(turns)
    ]


def calls_expected(talk: dict[str, Any]) -> list[tuple[str, str, str | None]]:
    """Those of a talk of EXPECTED.json, each with the result that comes next."""
    turns = talk["turns"]
    return [
        (
            turn["tool_call"]["name"],
            _written(turn["tool_call"]["arguments"]),
            _written(after["content"]),
        )
        for turn, after in itertools.pairwise(turns)
        if "tool_call" in turn
    ]


def _value(content: str) -> str:
    try:
        return _written(json.loads(content))
    except ValueError:
        return content


def _written(value: object) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def _is_of_these_years(time: object) -> bool:
    """Whether a conversation has a time, and no place or duration in its stead."""
    return isinstance(time, str) and time[:4] in ("2023", "2024", "2025", "2026")


def _marked(lines: list[Line], mark: str) -> bool:
    return bool(mark) and any(line.startswith(mark) for _, content in lines for line in content)


def judge(path: Path, talks: list[dict[str, Any]], data: Path) -> Verdict:
    """Reads a file with those beside it, and compares; scores alone are read with the words that they belong to."""
    name = name_of(path, data)
    if why := _of(REFUSED, name):
        return _refused(path, why)
    if main := next(
        (end for end, names in WITH.items() if _is_beside(path, end, names, data)), None
    ):
        path = next(
            found
            for found in sorted(path.parent.iterdir())
            if str(found).removesuffix(".gz").endswith(main)
        )
        verdict = judge(path, talks, data)
        return Verdict(
            verdict.kind, "; ".join(filter(None, [f"read with {path.name}", verdict.why]))
        )
    beside = _of(WITH, name) or ()
    files = [path, *(found for one in beside for found in sorted(path.parent.glob(one)))]
    try:
        logs = read_logs(files, options=ReadOptions(**(_of(OPTIONS, name) or {})))
    except (BadInput, WrongUse) as error:
        return Verdict("wrong", str(error).replace("\n", " ")[:200])
    there = _of(ONLY, name) or ALL
    found = differences(logs, [talk for talk in talks if talk["id"] in there])
    if not found:
        return Verdict("right")
    what, why = _of(LOST, name) or ("", "")
    lacking = what.split()
    kinds = {one: one.partition(":")[2] for one in found}
    if more := sorted(one for one in found if what != "*" and not {one, kinds[one]} & set(lacking)):
        return Verdict("wrong", ", ".join(more))
    beside_words = what != "*" and set(kinds.values()) <= BESIDE_WORDS
    return Verdict("right" if beside_words else "lost by the tool", why)


def name_of(path: Path, data: Path) -> str:
    """Return a file's name in the tables above; a packed one is the same file."""
    return str(path.relative_to(data)).removesuffix(".gz")


def _of(table: Mapping[str, Found], name: str) -> Found | None:
    return next((found for end, found in table.items() if name.endswith(end)), None)


def _is_beside(path: Path, main: str, names: tuple[str, ...], data: Path) -> bool:
    """Whether a file holds scores or facts of the words in another one."""
    name = name_of(path, data)
    there = any(str(found).removesuffix(".gz").endswith(main) for found in path.parent.iterdir())
    return there and _of(WITH, name) is None and any(path.match(one) for one in names)


def _refused(path: Path, why: str) -> Verdict:
    try:
        read_logs(path)
    except (BadInput, WrongUse):
        return Verdict("clear error", why)
    return Verdict("wrong", f"read, though it is {why}")


def main() -> int:
    """Prints a line a file, and how many came out how."""
    parser = arguments_of(__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--top", action="store_true", help="the eight tools that come first, alone")
    return run(
        parser, measure_all, ["--data", str(ROOT / "tests" / "unit" / "formats" / "exchange")]
    )


def measure_all(given: argparse.Namespace) -> Findings:
    """Measure what was asked for."""
    talks = json.loads((given.data / "EXPECTED.json").read_text(encoding="utf-8"))
    counts: Counter[str] = Counter()
    for path in sorted(given.data.rglob("*")):
        name = str(path.relative_to(given.data))
        if (
            not path.is_file()
            or name.startswith("_")
            or path.name in ("README.md", "EXPECTED.json")
        ):
            continue
        if given.top and not name.startswith(TOP):
            continue
        verdict = judge(path, talks, given.data)
        counts[verdict.kind] += 1
        print(f"{verdict.kind:17} {name}" + (f": {verdict.why}" if verdict.why else ""))
    print(", ".join(f"{n} {kind}" for kind, n in sorted(counts.items())))
    return Findings(
        figures=dict(counts),
        bars={"no file is read wrongly": counts["wrong"] == 0 < counts["right"]},
    )


if __name__ == "__main__":
    raise SystemExit(main())
