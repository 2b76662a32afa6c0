"""Ragas: a discrete metric a rubric, and the table of its values."""

from __future__ import annotations

from pollex.formats.peers.target import Sheet, Target, python_file, statement_prompt

BODY = '''from ragas.metrics import DiscreteMetric

# RUBRICS
PROMPT = """{prompt}"""


def braced(text):
    """Braces doubled: prompts are format strings."""
    return text.replace("{", "{{").replace("}", "}}")


def metrics():
    """One metric a rubric, with its sign; metric.save() writes it as JSON."""
    told, words = PROMPT.replace("__CONTEXT__", braced(CONTEXT)), list(OPTIONS)
    asked = [(name, sign, told.replace("__STATEMENT__", braced(text))) for name, sign, text in RUBRICS]
    return [(sign, DiscreteMetric(name=name, prompt=one, allowed_values=words)) for name, sign, one in asked]


def netsat(llm, conversation, theta=THETA):
    """NetSAT and its label; None where an answer is missing. Ragas itself has no sum."""
    words = [(sign, metric.score(llm=llm, conversation=conversation).value) for sign, metric in metrics()]
    if any(word not in OPTIONS for _, word in words):
        return None
    total = sum(sign * OPTIONS[word] for sign, word in words)
    return total if theta is None else (total, total > theta)
'''


def _files(sheet: Sheet) -> dict[str, str]:
    prompt = statement_prompt(sheet._replace(context=""), "{conversation}", "__STATEMENT__")
    prompt = prompt.replace("<conversation>", "__CONTEXT__\n<conversation>", 1)
    about = "pollex rubrics as Ragas metrics (needs langchain-community < 0.4), and NetSAT by code of ours"
    return {"metrics.py": python_file(sheet, about, BODY.replace("{prompt}", prompt))}


TARGET = Target(
    name="ragas",
    version="0.4.3",
    files=_files,
    netsat="values exact by a table of the options; Ragas has no sum, the file's netsat() adds",
)
