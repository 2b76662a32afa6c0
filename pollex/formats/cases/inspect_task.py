"""Inspect: a task over a dataset of chat messages, with a model-graded scorer."""

from __future__ import annotations

from pollex.formats.cases.case import ABOUT, JUDGE, CaseSheet, json_lines

BODY = '''"""{about}: inspect eval pollex_cases.py --model MODEL -T judge=MODEL"""

import json
import re
from pathlib import Path

from inspect_ai import Task, task
from inspect_ai.dataset import Sample, json_dataset
from inspect_ai.model import ChatMessageAssistant, ChatMessageSystem, ChatMessageTool, ChatMessageUser, get_model
from inspect_ai.scorer import Score, Target, mean, scorer, stderr
from inspect_ai.solver import TaskState, generate
from inspect_ai.tool import ToolCall

PROMPT = """{judge}
Give a reason, then a last line ANSWER: YES or ANSWER: NO."""
ANSWER = re.compile(r"ANSWER:\\s*(YES|NO)", re.I)
KINDS = {{
    "user": ChatMessageUser,
    "assistant": ChatMessageAssistant,
    "system": ChatMessageSystem,
    "tool": ChatMessageTool,
}}


def asked(said, reply, statement):
    """The prompt about one statement, filled in order: nothing in a text is taken for a place."""
    before, rest = PROMPT.split("__CONVERSATION__")
    middle, end = rest.split("__REPLY__")
    return before + said + middle + reply + end.replace("__STATEMENT__", statement)


@scorer(metrics=[mean(), stderr()])
def checks(judge=None):
    """The share of the checks that the reply passes; unscored where an answer is missing."""

    async def score(state: TaskState, target: Target) -> Score:
        model, passed = get_model(judge), []
        said = "\\n".join(f"{{m.role}}: {{m.text}}" for m in state.messages[:-1] if m.role != "system")
        for check in state.metadata["checks"]:
            out = await model.generate(asked(said, state.output.completion, check["text"]))
            found = ANSWER.findall(out.completion)
            if not found:
                return Score.unscored(explanation=f"{{check['rubric']}}: no answer in {{out.completion[:200]!r}}")
            passed.append((found[-1].upper() == "YES") == (check["polarity"] == "sat"))
        return Score(value=sum(passed) / len(passed), answer=state.output.completion)

    return score


def message(one):
    """A logged message, with its calls of tools."""
    more = {{}}
    if one["role"] == "tool":
        more["tool_call_id"] = one.get("tool_call_id")
    if calls := one.get("tool_calls"):
        named = [(call["id"], call["function"]["name"], call["function"]["arguments"]) for call in calls]
        more["tool_calls"] = [ToolCall(id=i or n, function=n, arguments=json.loads(a or "{{}}")) for i, n, a in named]
    return KINDS[one["role"]](content=one["content"], **more)


def record(row):
    """A case of the file."""
    said = [message(one) for one in row["messages"]]
    return Sample(id=row["id"], input=said, metadata={{k: v for k, v in row.items() if k != "messages"}})


@task
def pollex_cases(judge: str | None = None):
    """Every reply asked for again, and judged by its checks."""
    data = json_dataset(str(Path(__file__).with_name("cases.jsonl")), record)
    return Task(dataset=data, solver=generate(), scorer=checks(judge))
'''


def inspect_files(sheet: CaseSheet) -> dict[str, str]:
    """Write the task and its dataset."""
    rows = json_lines(case.row for case in sheet.cases)
    return {"pollex_cases.py": BODY.format(about=ABOUT, judge=JUDGE), "cases.jsonl": rows}
