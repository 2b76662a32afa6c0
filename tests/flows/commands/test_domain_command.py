"""A domain profile that a model drafts: cost first, one call, and a file that people correct."""

import json
from pathlib import Path
from typing import Any

from protocol_server import ProtocolServer
from small_log import small_log, write_log
from small_runs import run_here

from pollex.prompts.domain import DomainProfile

DRAFT = {
    "assistant": " a chat  assistant of a shop ",
    "task": "to get an answer",
    "user": "customers",
    "ideal_conversation": "It answers.",
    "expectations": ["answer", " ", 7, "say when it can't"],
    "notes": [],
}


def reply(draft: dict[str, Any]) -> dict[str, Any]:
    """A rule of the server: what it answers to the one prompt."""
    return {"do": "message", "match": "what the assistant is for", "content": json.dumps(draft)}


def test_a_profile_is_drafted_from_some_conversations_without_their_labels(tmp_path: Path) -> None:
    conversations = small_log()
    write_log(tmp_path / "talks.jsonl", conversations)
    out = tmp_path / "domain.toml"
    words = ("domain", "draft", tmp_path / "talks.jsonl", "--out", out, "--store", tmp_path / "s")
    refused = run_here(*words)
    assert refused.code == 2
    assert "none is named" in refused.err
    with ProtocolServer() as server:
        asked = (*words, "--model", "m", "--base-url", server.url, "--price", "1:2")
        planned = run_here(*asked, "--dry-run")
        assert "1 planned" in planned.out
        assert (server.counts()["received"], out.exists()) == (0, False), "cost comes first"

        # what it can't use is no draft, and no file is written
        server.script([reply(DRAFT | {"expectations": [" "]})])
        nothing = run_here(*asked)
        assert "drafted nothing of use" in nothing.err
        assert not out.exists()

        server.script([reply(DRAFT)])
        drafted = run_here(*asked, "--model", "other", "--json")
        assert drafted.code == 0, drafted.err
        told = json.loads(drafted.out.splitlines()[-1])
        assert (told["conversations"], told["population"]) == (12, len(conversations))

    profile = DomainProfile.load(out)
    assert profile.assistant == "a chat assistant of a shop"
    assert profile.expectations == ("answer", "say when it can't")
    assert profile.language == DomainProfile.neutral().language
    # what people wrote is never written over
    assert "the file is there already" in run_here(*words, "--model", "m").err
