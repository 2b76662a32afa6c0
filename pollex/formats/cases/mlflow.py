"""MLflow: a dataset with inputs and guidelines, and the scorer that reads these."""

from __future__ import annotations

from typing import Any

from pollex.formats.cases.case import ABOUT, Case, CaseSheet, json_lines

BODY = '''"""{about}

run(assistant), where assistant(messages) returns the reply's text.
"""

import json
from pathlib import Path

import mlflow
from mlflow.genai.scorers import ExpectationsGuidelines


def data():
    """The cases of the file, as mlflow.genai.evaluate takes them."""
    lines = Path(__file__).with_name("cases.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def run(assistant, model="openai:/{model}"):
    """Ask for every reply again, and judge it by its guidelines."""
    return mlflow.genai.evaluate(data=data(), predict_fn=assistant, scorers=[ExpectationsGuidelines(model=model)])
'''


def mlflow_files(sheet: CaseSheet) -> dict[str, str]:
    """Write the dataset, and the code that runs it."""
    code = BODY.format(about=ABOUT, model=sheet.model)
    return {"pollex_cases.py": code, "cases.jsonl": json_lines(map(_row, sheet.cases))}


def _row(case: Case) -> dict[str, Any]:
    quotes = {one.rubric: one.quote for one in case.checks}
    return {
        "inputs": {"messages": list(case.messages)},
        "expectations": {"guidelines": [one.told for one in case.checks], "rubrics": quotes},
        "tags": {name: str(value) for name, value in case.about.items()},
    }
