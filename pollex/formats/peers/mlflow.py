"""MLflow: a judge of sessions a rubric, and NetSAT as a scorer over them."""

from __future__ import annotations

from pollex.formats.peers.target import Sheet, Target, python_file, statement_prompt

BODY = '''from typing import Literal

from mlflow.entities import AssessmentSource, Feedback
from mlflow.genai import scorer
from mlflow.genai.judges import make_judge

# RUBRICS
INSTRUCTIONS = """{prompt}"""
Answer = Literal[tuple(OPTIONS)]


def unbraced(text):
    """Doubled braces parted: instructions are templates."""
    return text.replace("{{", "{ {").replace("}}", "} }")


def judges(model="openai:/MODEL", **more):
    """One judge a rubric, with its sign."""
    told = INSTRUCTIONS.replace("__CONTEXT__", unbraced(CONTEXT))
    more = {"model": model, "feedback_value_type": Answer, **more}
    asked = [(name, sign, told.replace("__STATEMENT__", unbraced(text))) for name, sign, text in RUBRICS]
    return [(sign, make_judge(name=f"pollex_{name}", instructions=one, **more)) for name, sign, one in asked]


def netsat_of(feedbacks):
    """NetSAT of answers with their signs; None where one is missing."""
    values = [OPTIONS.get(getattr(feedback, "value", None)) for _, feedback in feedbacks]
    if None in values:
        return None
    return sum(sign * value for (sign, _), value in zip(feedbacks, values))


def pollex_netsat(model="openai:/MODEL"):
    """A scorer of sessions: its feedback is NetSAT, with every rubric's answer in the rationale."""
    parts = judges(model)

    @scorer(name="pollex_netsat")
    def score(session):
        found = [(sign, judge(session=session)) for sign, judge in parts]
        total = netsat_of(found)
        told = ", ".join(f"{feedback.name}: {feedback.value}" for _, feedback in found)
        source = AssessmentSource(source_type="CODE", source_id="pollex")
        return Feedback(name="pollex_netsat", value=total, rationale=told, source=source)

    return score
'''


def _files(sheet: Sheet) -> dict[str, str]:
    prompt = statement_prompt(sheet._replace(context=""), "{{ conversation }}", "__STATEMENT__")
    prompt = prompt.replace("<conversation>", "__CONTEXT__\n<conversation>", 1)
    code = BODY.replace("{prompt}", prompt).replace("openai:/MODEL", f"openai:/{sheet.model or 'MODEL'}")
    return {"judges.py": python_file(sheet, "pollex rubrics as MLflow judges of sessions, and NetSAT over them", code)}


TARGET = Target(
    name="mlflow",
    version="3.17.2",
    files=_files,
    netsat="exact: by the scorer pollex_netsat; registered judges alone can't add, and Guidelines know yes and no only",
)
