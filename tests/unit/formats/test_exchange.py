"""Exports of other tools, read to the conversations that went into them, whole and damaged."""

import gzip
import json
import random
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest
from damaged_exports import RATES, damaged_file

from pollex.conversations.logs import Logs
from pollex.errors import BadInput, WrongUse
from pollex.formats.fields import ReadOptions
from pollex.formats.read_logs import read_logs

FOLDER = Path(__file__).parent / "exchange"
TALKS: dict[str, dict[str, Any]] = {
    talk["id"]: talk for talk in json.loads((FOLDER / "EXPECTED.json").read_text(encoding="utf-8"))
}
ALL = tuple(TALKS)
RATED = ALL[:5]


class Case(NamedTuple):
    """Files that are read together.

    Attributes:
        files: By the beginnings of their names.
        talks: Those that the files hold.
        lost: What the tool lost of them, as talk:what.
    """

    files: tuple[str, ...]
    options: Mapping[str, Any] = MappingProxyType({})
    talks: tuple[str, ...] = ALL
    lost: frozenset[str] = frozenset()


LANGFUSE = "langfuse/server-62751446/"
PHOENIX = "phoenix/20.26.1/"
CHAINLIT = "chainlit/2.12.0/"
ANNOTATIONS = tuple(f"{PHOENIX}rest-{kind}_annotations" for kind in ("span", "trace", "session"))
STARS = {"positive": ">=4", "negative": "<=2"}
MARK = frozenset({"shop-005:words"})  # answers that failed aren't told from others
CASES = (
    Case(("open-webui/0.12.4/chat-export-all",)),
    Case(("open-webui/0.12.4/feedback-history-export",), talks=RATED),
    Case(("open-webui/0.12.4/feedback-history-export", "open-webui/0.12.4/chat-export-all")),
    Case((f"{LANGFUSE}ui-traces", f"{LANGFUSE}ui-scores")),
    Case((f"{LANGFUSE}ui-events", f"{LANGFUSE}ui-scores")),
    Case((f"{LANGFUSE}blob-observations", f"{LANGFUSE}blob-scores")),
    Case((f"{LANGFUSE}api-v2-observations", f"{LANGFUSE}api-v3-scores")),
    Case(("langfuse/sdk-5.0.4/sdk-spans", "langfuse/sdk-5.0.4/sdk-scores")),
    Case(("langsmith/0.15.0/list_runs.", "langsmith/0.15.0/list_feedback")),
    Case(("langsmith/0.15.0/list_runs-roots", "langsmith/0.15.0/list_feedback")),
    Case(("langgraph/api-0.16.7/threads.search",)),
    Case(("dify/api-messages",)),
    Case(("dify/feedback-export",), talks=RATED, lost=frozenset(f"{talk}:words" for talk in RATED)),
    Case(("otel/genai-openai-1.3b0",)),
    Case(("otel/openai-v2-2.4b0",)),
    Case(("otel/traceloop-openai-0.40.14",), lost=frozenset({"shop-003:words"})),
    Case(("openinference/openai-0.1.66",)),
    Case(("openinference/langchain-0.1.80/tool-call",), talks=("shop-002",)),
    Case((f"{PHOENIX}rest-spans", *ANNOTATIONS)),
    Case((f"{PHOENIX}client-session_turns", *ANNOTATIONS)),
    Case(
        (
            f"{PHOENIX}spans_dataframe-roots",
            f"{PHOENIX}span_annotations_dataframe",
            *ANNOTATIONS[1:],
        )
    ),
    Case(("mlflow/3.17.2/trace-to_json",)),
    Case(("librechat/mongoexport-messages",)),
    Case(("librechat/export-shop-002",), talks=("shop-002",)),
    Case((f"{CHAINLIT}get_thread",)),
    Case((f"{CHAINLIT}steps", f"{CHAINLIT}feedbacks", f"{CHAINLIT}threads")),
    Case(("vercel-ai/7.0.173/chats", "vercel-ai/7.0.173/vote-table")),
    Case(("vercel-ai/7.0.173/message-table", "vercel-ai/7.0.173/vote-table")),
    Case(("langflow/monitor-messages",)),
    Case(("flowise/chatmessage",), lost=MARK),
    Case(("opik/2.2.122/search_traces", "opik/2.2.122/rest-threads")),
    Case(("braintrust/0.47.0/logs", "braintrust/0.47.0/comments")),
    Case(("weave/calls",)),
    Case(("helicone/export",)),
    Case(("inspect-ai/0.3.285/shop.eval",), lost=frozenset({"shop-005:label"})),
    Case(("inspect-scout/0.6.1/own/transcripts",)),
    Case(("chatgpt-export/conversations", "chatgpt-export/message_feedback")),
    Case(("openai/responses/responses",)),
    Case(("openai/stored-completions/with-messages",), lost=MARK),
    Case(("gemini/contents",)),
    Case(("anthropic/messages",), lost=frozenset({"shop-002:words"})),
    Case(("rasa/trackers",), lost=MARK),
    Case(("rasa/event-broker",), lost=MARK),
    Case(("hf/oasst2",)),
    Case(("dialogflow-cx/conversation-history",)),
    Case(("intercom/conversations",), STARS),
    Case(("zendesk/tickets",)),
    Case(("zendesk/ticket-comments",)),
)
PAIRS = ("hf/chatbot-arena", "hf/hh-rlhf", "hf/ultrafeedback", "openai/fine-tuning/preference")
DAMAGED = (*CASES, *(Case((name,), {"pairs": True}) for name in PAIRS))
each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.files[0])
each_damaged = pytest.mark.parametrize("case", DAMAGED, ids=lambda case: case.files[0])


def paths_of(case: Case) -> list[Path]:
    return [
        found for name in case.files for found in sorted(FOLDER.glob(f"{name}*")) if found.is_file()
    ] or [found for name in case.files for found in sorted((FOLDER / name).glob("*"))]


def lines(turns: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """What users and assistants said, without what stands for images, calls and failures."""
    said = []
    for role, content in turns:
        kept = [
            line
            for line in content.splitlines()
            if not line.startswith(("[tool call", "[image]", "[file]", "[error]"))
        ]
        if role in ("user", "assistant") and (text := "\n".join(kept).strip()):
            said.append((role, text))
    return said


def expected(talk: dict[str, Any]) -> list[tuple[str, str]]:
    return lines(
        [
            (turn["role"], turn["content"])
            for turn in talk["turns"]
            if isinstance(turn.get("content"), str)
        ]
    )


def differences(logs: Logs, talks: tuple[str, ...]) -> set[str]:
    by_line = {
        words: id_
        for id_ in talks
        for role, words in expected(TALKS[id_])
        if role == "user" or id_ == "shop-003"
    }
    found = set()
    seen = set()
    for conversation in logs:
        said = lines([(turn.role, turn.content) for turn in conversation.turns])
        id_ = next((by_line[words] for _, words in said if words in by_line), conversation.id)
        seen.add(id_)
        talk = TALKS.get(id_, {"turns": [], "label": "?"})
        found |= {f"{id_}:words"} if said != expected(talk) else set()
        found |= {f"{id_}:label"} if conversation.label.value != talk["label"] else set()
    return found | {f"{id_}:absent" for id_ in talks if id_ not in seen}


@each_case
def test_an_export_is_read_to_the_conversations_that_went_into_it(case: Case) -> None:
    logs = read_logs(paths_of(case), options=ReadOptions(**case.options))
    assert differences(logs, case.talks) == case.lost
    unrated = {id_ for id_ in ALL if TALKS[id_]["label"] == "none"}
    assert not [c.id for c in logs if c.id in unrated and c.label.value != "none"], (
        "a judge's score is no thumb"
    )
    assert (
        sum(logs.account.formats.values()) > 0
        or "gemini" in case.files[0]
        or "anthropic" in case.files[0]
    )


@pytest.mark.parametrize("name", PAIRS)
def test_preferences_are_thumbs_only_if_the_user_says_so(name: str) -> None:
    files = list(FOLDER.glob(f"{name}*"))
    with pytest.raises(
        WrongUse, match=r"pairs of a chosen and a rejected answer, not thumbs → .*: pairs=True"
    ):
        read_logs(files)
    logs = read_logs(files, options=ReadOptions(pairs=True))
    assert 0 < len(logs.positives) <= len(logs.negatives)  # of two bad ones both are down
    assert all(
        len([c for c in logs if c.group == conversation.group]) == 2 for conversation in logs
    )


def test_one_row_without_words_is_a_bad_row_and_the_rest_is_read(tmp_path: Path) -> None:
    path = next(FOLDER.glob("mlflow/3.17.2/trace-to_json*"))
    whole, *others = gzip.decompress(path.read_bytes()).decode().splitlines()
    hollow = [json.dumps({**json.loads(line), "data": {}}) for line in others]
    (tmp_path / "traces.jsonl").write_text("\n".join([whole, *hollow]))
    logs = read_logs(tmp_path / "traces.jsonl", options=ReadOptions(max_bad=len(hollow)))
    assert (len(logs), {bad.reason for bad in logs.bad_rows}) == (1, {"the traces have no spans"})
    (tmp_path / "hollow.jsonl").write_text("\n".join(hollow))
    with pytest.raises(
        BadInput, match=r"hollow.jsonl: the traces have no spans → write whole traces"
    ):
        read_logs(tmp_path / "hollow.jsonl", options=ReadOptions(max_bad=len(hollow)))


def read_damaged(case: Case, seed: int, folder: Path) -> None:
    rng = random.Random(seed)
    rate = rng.choice(RATES)
    files = [damaged_file(path, folder, rng, rate) for path in paths_of(case)]
    try:
        logs = read_logs(
            files, options=ReadOptions(**case.options, max_bad=10_000, on_duplicate="last")
        )
    except (BadInput, WrongUse) as error:
        assert error.what  # noqa: PT017
        return
    assert len(logs) > 0
    assert all(bad.reason for bad in logs.bad_rows)


@each_damaged
def test_a_damaged_export_ends_in_conversations_or_in_words(case: Case, tmp_path: Path) -> None:
    for seed in range(3):
        read_damaged(case, seed, tmp_path)
