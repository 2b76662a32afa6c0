"""LangSmith: examples with messages, and an evaluator with a result a rubric."""

from __future__ import annotations

from typing import Any

from pollex.formats.cases.case import ABOUT, JUDGE, Case, CaseSheet, json_lines

BODY = '''"""{about}

client.evaluate(assistant, data="pollex cases", evaluators=[pollex_checks]); needs langsmith and openevals.
"""

import json
from pathlib import Path

from langsmith import Client
from langsmith.evaluation import EvaluationResult, EvaluationResults, run_evaluator
from openevals.llm import create_llm_as_judge

PROMPT = """{judge}"""


def braced(text):
    """Braces doubled: prompts are format strings."""
    return text.replace("{{", "{{{{").replace("}}", "}}}}")


def examples():
    """The cases of the file, as LangSmith's client takes them."""
    lines = Path(__file__).with_name("examples.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def upload(client=None, name="pollex cases"):
    """Make a dataset of the cases."""
    client = client or Client()
    client.create_dataset(name)
    return client.create_examples(dataset_name=name, examples=examples())


@run_evaluator
def pollex_checks(run, example, model="openai:{model}"):
    """One result a rubric: 1 where the reply is as wanted."""
    said = "\\n".join(f"{{one['role']}}: {{one['content']}}" for one in example.inputs["messages"])
    reply = str(run.outputs.get("reply", run.outputs)) if isinstance(run.outputs, dict) else str(run.outputs)
    results = []
    for check in example.metadata["checks"]:
        prompt = PROMPT.replace("__CONVERSATION__", "{{inputs}}").replace("__REPLY__", "{{outputs}}")
        prompt = prompt.replace("__STATEMENT__", braced(check["text"]))
        judge = create_llm_as_judge(prompt=prompt, feedback_key=check["rubric"], model=model)
        found = judge(inputs=said, outputs=reply)
        score = None if found["score"] is None else int(bool(found["score"]) == (check["polarity"] == "sat"))
        results.append(EvaluationResult(key=check["rubric"], score=score, comment=found.get("comment")))
    return EvaluationResults(results=results)
'''


def langsmith_files(sheet: CaseSheet) -> dict[str, str]:
    """Write the evaluator, and the examples of a dataset."""
    code = BODY.format(about=ABOUT, judge=JUDGE, model=sheet.model)
    return {"pollex_cases.py": code, "examples.jsonl": json_lines(map(_example, sheet.cases))}


def _example(case: Case) -> dict[str, Any]:
    metadata = {**case.about, "checks": [one._asdict() for one in case.checks]}
    return {"inputs": {"messages": list(case.messages)}, "outputs": {}, "metadata": metadata}
