"""Words of a log in regression cases for other tools: they stay words."""

import json
from typing import Any

import pytest
from hostile_files import HOSTILE, shapes

from pollex.rooms.remedy.formats.cases import (
    CASE_FILE_TEMPLATES,
    CaseCheck,
    ReplyCase,
    render_case_files,
)


@pytest.mark.parametrize("tool", CASE_FILE_TEMPLATES)
@pytest.mark.parametrize(
    "field", ["model", "id", "rubric", "text", "quote", "content", "conversation", "part"]
)
def test_no_field_of_a_case_becomes_code_or_structure(tool: str, field: str) -> None:
    def files(words: str) -> dict[str, str]:
        told = dict.fromkeys(
            ("model", "id", "rubric", "text", "quote", "content", "conversation", "part"), "plain"
        )
        told[field] = words
        check = CaseCheck(told["rubric"], "sat", told["text"], told["quote"])
        messages = [{"role": "user", "content": told["content"]}]
        case = ReplyCase(told["id"], messages, [check], told["conversation"], 1, told["part"])
        return render_case_files(tool, [case], told["model"])

    def known(found: dict[str, str]) -> dict[str, Any]:
        # the names of metadata are ids of rubrics: any words, but one name
        text = json.dumps(shapes(found))
        return {
            "shape": text.replace(json.dumps(words)[1:-1], "plain") if field == "rubric" else text
        }

    for words in HOSTILE:
        made = files(words)
        assert known(made) == known(files("plain")), f"{field}: {words!r}"
        if tool == "promptfoo":
            (test,) = [json.loads(line) for line in made["tests.jsonl"].splitlines()]
            spoken = json.dumps([test["vars"], test["assert"], test["description"]])
            assert not any(mark in spoken for mark in ("{{", "{%", "{#")), f"{field}: {words!r}"
