"""LangSmith: OpenEvals' judges, as one run evaluator with several results."""

from __future__ import annotations

from pollex.formats.peers.openevals import body
from pollex.formats.peers.target import Sheet, Target, python_file

RUN = '''

@run_evaluator
def pollex_rubrics(run, example=None):
    """All rubrics and NetSAT of a run: client.evaluate(..., evaluators=[pollex_rubrics])."""
    said = [*((run.inputs or {}).get("messages") or [run.inputs]), run.outputs]
    conversation = "\\n".join(str(one) for one in said)
    keep = ("key", "score", "comment")
    results = netsat(outputs=conversation)
    return EvaluationResults(results=[EvaluationResult(**{k: one.get(k) for k in keep}) for one in results])
'''
IMPORTS = "from langsmith.evaluation import EvaluationResult, EvaluationResults, run_evaluator\n"


def _files(sheet: Sheet) -> dict[str, str]:
    about = "pollex rubrics as a LangSmith evaluator (needs langsmith and openevals)"
    return {"pollex_evaluator.py": python_file(sheet, about, IMPORTS + body(sheet).rstrip("\n") + "\n" + RUN)}


TARGET = Target(
    name="langsmith", version="0.15", files=_files, netsat="exact: one result a rubric, and one for the sum"
)
