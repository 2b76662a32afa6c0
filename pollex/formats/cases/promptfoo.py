"""promptfoo: a chat prompt of the logged messages, and a model-graded assertion a rubric."""

from __future__ import annotations

import json
from typing import Any

from pollex.formats.cases.case import ABOUT, Case, CaseSheet, inert, json_lines

CONFIG = """# {about}: promptfoo eval -c promptfooconfig.yaml
description: {about}
prompts: [file://chat.txt]
providers: [openai:chat:MODEL]  # the assistant
defaultTest:
  options: {{provider: {judge}}}  # the judge
tests: file://tests.jsonl
"""


def promptfoo_files(sheet: CaseSheet) -> dict[str, str]:
    """Write configuration, chat prompt, and one test a case."""
    return {
        "promptfooconfig.yaml": CONFIG.format(about=ABOUT.replace(":", ","), judge=f"openai:chat:{sheet.model}"),
        "chat.txt": "{{messages}}\n",
        "tests.jsonl": json_lines(map(_test, sheet.cases)),
    }


def _test(case: Case) -> dict[str, Any]:
    """Return a test; the messages are JSON in one variable, which the chat prompt is made of."""
    said = [{**one, "content": inert(one["content"])} for one in case.messages]
    asserted = [{"type": "llm-rubric", "metric": one.rubric, "value": inert(one.told)} for one in case.checks]
    quotes = {one.rubric: {"polarity": one.polarity, "quote": one.quote} for one in case.checks}
    return {
        "description": case.id,
        "vars": {"messages": inert(json.dumps(said, ensure_ascii=False))},
        "assert": asserted,
        "metadata": {**case.about, "rubrics": quotes},
    }
