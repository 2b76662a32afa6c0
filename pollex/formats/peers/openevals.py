"""OpenEvals: a judge a rubric, and NetSAT over them; LangSmith runs them as they are."""

from __future__ import annotations

from pollex.formats.peers.target import Sheet, Target, python_file, statement_prompt

BODY = '''from openevals.llm import create_llm_as_judge

# RUBRICS
PROMPT = """{prompt}
Score __SCORES__."""
TOP = max(OPTIONS.values())
CHOICES = [value / TOP for value in OPTIONS.values()]


def braced(text):
    """Braces doubled: prompts are format strings."""
    return text.replace("{", "{{").replace("}", "}}")


def judges(judge=None, model="openai:MODEL"):
    """One judge a rubric, with its sign."""
    told = ", ".join(f"{value / TOP:g} for {word}" for word, value in OPTIONS.items())
    prompt = PROMPT.replace("__SCORES__", told).replace("__CONTEXT__", braced(CONTEXT))
    more = {"choices": CHOICES, "judge": judge, "model": model}
    asked = [(name, sign, prompt.replace("__STATEMENT__", braced(text))) for name, sign, text in RUBRICS]
    return [(sign, create_llm_as_judge(prompt=one, feedback_key=name, **more)) for name, sign, one in asked]


def netsat(*, outputs, judge=None, model="openai:MODEL", theta=THETA, **_):
    """The judges' results, and NetSAT and its label after them; a missing answer voids both."""
    results = [(sign, one(outputs=outputs)) for sign, one in judges(judge, model)]
    found = [result for _, result in results]
    if any(result.get("score") is None for result in found):
        return found
    total = sum(sign * TOP * result["score"] for sign, result in results)
    figures = {"pollex_netsat": total} | ({} if theta is None else {"pollex_label": total > theta})
    told = [{"key": key, "score": score, "comment": None, "metadata": None} for key, score in figures.items()]
    return [*found, *told]
'''


def body(sheet: Sheet) -> str:
    """Write the code, with the prompt of the set."""
    prompt = statement_prompt(sheet._replace(context=""), "{outputs}", "__STATEMENT__")
    prompt = prompt.replace("<conversation>", "__CONTEXT__\n<conversation>", 1)
    return BODY.replace("{prompt}", prompt).replace("openai:MODEL", f"openai:{sheet.model or 'MODEL'}")


def _files(sheet: Sheet) -> dict[str, str]:
    about = "pollex rubrics as OpenEvals judges, and NetSAT over them: netsat(outputs=conversation)"
    return {"evaluators.py": python_file(sheet, about, body(sheet))}


TARGET = Target(
    name="openevals", version="0.2.2", files=_files, netsat="exact: by netsat(), a function over the judges"
)
