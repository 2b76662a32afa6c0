"""Phoenix: a classification evaluator a rubric, and NetSAT over them."""

from __future__ import annotations

from pollex.formats.peers.target import Sheet, Target, python_file, statement_prompt

BODY = '''from phoenix.evals import ClassificationEvaluator, Score

# RUBRICS
TEMPLATE = """{prompt}"""


def evaluators(llm):
    """One evaluator a rubric, with its sign and its statement."""
    return [
        (sign, text, ClassificationEvaluator(name=f"pollex_{name}", prompt_template=TEMPLATE, llm=llm, choices=OPTIONS))
        for name, sign, text in RUBRICS
    ]


def netsat(llm, conversation, theta=THETA):
    """The evaluators' scores, and NetSAT after them; a missing answer voids it."""
    told = {"conversation": conversation, "context": CONTEXT}
    asked = [(sign, one.evaluate({**told, "statement": text})[0]) for sign, text, one in evaluators(llm)]
    found = [score for _, score in asked]
    if any(score.score is None for score in found):
        return found
    total = sum(sign * score.score for sign, score in asked)
    label = None if theta is None else "positive" if total > theta else "negative"
    said = {"label": label, "explanation": f"NetSAT {total:.2f}", "kind": "code", "direction": "maximize"}
    return [*found, Score(name="pollex_netsat", score=total, **said)]
'''


def _files(sheet: Sheet) -> dict[str, str]:
    prompt = statement_prompt(sheet._replace(context=""), "{{conversation}}", "{{statement}}")
    prompt = prompt.replace("<conversation>", "{{context}}\n<conversation>", 1)
    about = "pollex rubrics as Phoenix evaluators, and NetSAT over them: netsat(LLM(...), conversation)"
    return {"evaluators.py": python_file(sheet, about, BODY.replace("{prompt}", prompt))}


TARGET = Target(name="phoenix", version="evals 3.9.4", files=_files, netsat="exact: by netsat(), a function")
