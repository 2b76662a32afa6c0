"""Reads exports of other tools, and compares what comes out with the conversations that went in.

    python benchmarks/exchange.py --data FOLDER [--top]

FOLDER holds exports of the same six conversations and `EXPECTED.json`. By file one line: `right`; `lost by the tool`,
where the export itself lacks what its README says; `clear error`, for exports from which nothing can be learned; or
`wrong`, which must not be: the exit code is 1 then. `--top` reads the eight tools alone that most people have logs in.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pollex.conversations.conversation import Conversation
from pollex.conversations.logs import Logs
from pollex.errors import BadInput, WrongUse
from pollex.formats.fields import ReadOptions
from pollex.formats.read_logs import read_logs

TOP = (
    *("open-webui", "langfuse", "langsmith", "langgraph", "dify", "otel", "openinference", "phoenix", "mlflow"),
    *("librechat", "chainlit"),
)
RATINGS = {"positive": ">=4", "negative": "<=2"}
"""Companions and options by the end of a file's path; what the tools' READMEs say is lost, as talk:what."""
OPIK = (
    *("aa8cd038-298f-5ccd-a9e9-23eb1e0bc12c", "3d34c4a1-46ec-5703-b5b5-d6f96c52f456"),
    *("cd3566a5-89cc-53b4-9ee2-48ef5671dc82", "a414177e-632b-5af6-8bae-1f403786d6a0"),
    *("cb72d2ce-03bb-581b-be97-c4c293fefe82", "261ce00d-ef02-5f18-927d-b5f81dfbe146"),
    *("d29d3886-88d8-5972-9aab-38bed4467125", "b0c0b540-3bbf-562f-bc5c-82c8a7864b19"),
    *("846b427b-279b-517f-81ea-58e346ee3875", "c9cf7832-f4b6-52ef-9784-f7df50ad50f0"),
    *("7281d6d4-d14c-5ca2-ae24-c9b824c594ee", "90ad174f-f00a-5df4-ad0c-200742f2448a"),
)
"""A trace a file."""
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
    "rest-spans.json": ("rest-span_annotations.json", "rest-trace_annotations.json", "rest-session_annotations.json"),
    "rest-spans-otlpv1.json": (
        *("rest-span_annotations.json", "rest-trace_annotations.json", "rest-session_annotations.json"),
    ),
    "spans_dataframe.jsonl": (
        *("span_annotations_dataframe.csv", "rest-trace_annotations.json", "rest-session_annotations.json"),
    ),
    "spans_dataframe.parquet": (
        *("span_annotations_dataframe.csv", "rest-trace_annotations.json", "rest-session_annotations.json"),
    ),
    "spans_dataframe-roots.csv": (
        *("span_annotations_dataframe.csv", "rest-trace_annotations.json", "rest-session_annotations.json"),
    ),
    "client-session_turns.json": (
        *("rest-span_annotations.json", "rest-trace_annotations.json", "rest-session_annotations.json"),
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
}
ONLY: dict[str, tuple[str, ...]] = {
    "rest-spans-otlpv1.json": ("shop-003", "shop-004", "shop-005", "shop-006"),
    "search_traces-records.jsonl": ("shop-002", "shop-003", "shop-004"),
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
PAIRS = tuple(end for end, options in OPTIONS.items() if options.get("pairs"))
NO_THUMBS = ", ".join(f"shop-00{n}:none for {'positive' if n < 3 else 'negative'}" for n in range(1, 6))
UNLABELED = (
    *("hf/lmsys-chat-1m.jsonl", "hf/lmsys-chat-1m.parquet", "hf/wildchat.jsonl", "fine-tuning/supervised.jsonl"),
    "responses/conversation-items.jsonl",
)
RATED_TURN = ", ".join(f"shop-00{n}:words" for n in range(1, 6))
LOST: dict[str, tuple[str, str]] = {
    "otel/openai-v2-2.4b0/span-and-event.otlp.jsonl": ("shop-003:words", "the words of a message with an image"),
    "otel/traceloop-openai-0.40.14/attributes.otlp.jsonl": (
        "shop-003:unknown, shop-003:absent",
        "the prompts of a call with an image",
    ),
    "otel/traceloop-openai-0.62.4/attributes.otlp.jsonl": ("shop-003:absent", "the messages of a call with an image"),
    "rest-spans-otlpv1.json": ("shop-003:words", "cut to 14 spans"),
    "dify/feedback-export.csv": (RATED_TURN, "the rated exchange alone"),
    "dify/feedback-export.json": (RATED_TURN, "the rated exchange alone"),
    "threads.get_history-shop-002.json": ("shop-002:none for positive", "states have no metadata of the thread's"),
    "threads.get_state.json": (
        NO_THUMBS,
        "states have no metadata of the thread's",
    ),
    "ui-trace-c01d3c377f57e67bbbba68845ae0dc0d.json": (
        *("shop-002:words, shop-002:none for positive", "one trace of two; its thumb is the other's"),
    ),
    "anthropic/messages.jsonl": ("shop-002:words", "nothing: the file has the words before the tool call, too"),
    "flowise/chatmessage.json": ("shop-005:words", "the mark of an error"),
    "rasa/event-broker.jsonl": ("shop-005:words", "the mark of an error"),
    "rasa/trackers.jsonl": ("shop-005:words", "the mark of an error"),
    "inspect-ai/0.3.285/shop.eval": ("shop-005:none for negative", "the score of a sample that failed"),
    "8ab5cb28.parquet": ("shop-005:none for negative", "the score of a sample that failed"),
    "stored-completions/with-messages.jsonl": ("shop-005:words", "the mark of an error: it is a refusal"),
    **dict.fromkeys(PAIRS, ("*", "thumbs: pairs are of one turn, and both sides of each come out")),
    **dict.fromkeys(UNLABELED, (NO_THUMBS, "thumbs: the data set has none")),
    "hf/oasst2-trees.jsonl": (NO_THUMBS, "thumbs down: trees have no emojis for them"),
    "messages-of-one.json": ("shop-002:words, shop-002:none for positive", "the answer and the metadata"),
    "openai/evals/output_items.jsonl": ("*", "all but one turn; graders are no users"),
    "phoenix/20.26.1/dataset.csv": ("*", "the sessions: every example stands alone"),
    "phoenix/20.26.1/dataset-examples.json": ("*", "the sessions: every example stands alone"),
}
"""What the tools' READMEs say is lost, and its reason; a star where nothing can be compared."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a file."""

    kind: str
    why: str = ""


def lines(turns: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """What users and assistants said, without what stands for images, calls and failures."""
    said = []
    for role, content in turns:
        kept = [
            line for line in content.splitlines() if not line.startswith(("[tool call", "[image]", "[file]", "[error]"))
        ]
        if role in ("user", "assistant") and (text := "\n".join(kept).strip()):
            said.append((role, text))
    return said


def expected_lines(talk: dict[str, Any]) -> list[tuple[str, str]]:
    """A talk of EXPECTED.json likewise."""
    return lines([(turn["role"], turn["content"]) for turn in talk["turns"] if isinstance(turn.get("content"), str)])


def differences(logs: Logs, talks: list[dict[str, Any]]) -> list[str]:
    """What is other than expected, as `talk:what`."""
    by_line = {words: talk for talk in talks for role, words in expected_lines(talk) if role == "user"}
    found, seen = [], set()
    for conversation in logs:
        said = lines([(turn.role, turn.content) for turn in conversation.turns])
        talk = next((by_line[words] for _, words in said if words in by_line), None)
        if talk is None:
            found.append(f"{conversation.id}:unknown")
            continue
        seen.add(talk["id"])
        found += [f"{talk['id']}:{what}" for what in _compared(conversation, said, talk)]
    return found + [f"{talk['id']}:absent" for talk in talks if talk["id"] not in seen]


def _compared(conversation: Conversation, said: list[tuple[str, str]], talk: dict[str, Any]) -> list[str]:
    found = []
    if said != expected_lines(talk):
        found.append("words")
    if conversation.label.value != talk["label"]:
        found.append(f"{conversation.label.value} for {talk['label']}")
    return found


def judge(path: Path, talks: list[dict[str, Any]], data: Path) -> Verdict:
    """Reads a file with its companions, and compares."""
    name = str(path.relative_to(data))
    beside = next((names for end, names in WITH.items() if name.endswith(end)), ())
    options = next((found for end, found in OPTIONS.items() if name.endswith(end)), {})
    try:
        logs = read_logs(
            [path, *(found for one in beside for found in sorted(path.parent.glob(one)))],
            options=ReadOptions(**options),
        )
    except (BadInput, WrongUse) as error:
        return Verdict("clear error", str(error).replace("\n", " ")[:200])
    there = next((ids for end, ids in ONLY.items() if name.endswith(end)), tuple(talk["id"] for talk in talks))
    found = differences(logs, [talk for talk in talks if talk["id"] in there])
    if not found:
        return Verdict("right")
    what, why = next((lost for end, lost in LOST.items() if name.endswith(end)), ("", ""))
    if what == "*" or set(found) <= set(what.split(", ")):
        return Verdict("lost by the tool", why)
    return Verdict("wrong", "; ".join(found))


def main() -> int:
    """Prints a line a file, and how many came out how."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--top", action="store_true", help="the eight tools that come first, alone")
    given = parser.parse_args()
    talks = json.loads((given.data / "EXPECTED.json").read_text(encoding="utf-8"))
    counts: Counter[str] = Counter()
    for path in sorted(given.data.rglob("*")):
        name = str(path.relative_to(given.data))
        if not path.is_file() or name.startswith("_") or path.name in ("README.md", "EXPECTED.json"):
            continue
        if given.top and not name.startswith(TOP):
            continue
        verdict = judge(path, talks, given.data)
        counts[verdict.kind] += 1
        print(f"{verdict.kind:17} {name}" + (f": {verdict.why}" if verdict.why else ""))
    print(", ".join(f"{n} {kind}" for kind, n in sorted(counts.items())))
    return int(counts["wrong"] > 0)


if __name__ == "__main__":
    sys.exit(main())
