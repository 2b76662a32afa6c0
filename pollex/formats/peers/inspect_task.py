"""Inspect: a scorer with one value for each rubric, and a task for existing conversations."""

from __future__ import annotations

from pollex.formats.peers.target import Sheet, Target, python_file, statement_prompt

BODY = '''import re

from inspect_ai import Task, task
from inspect_ai.dataset import Sample, json_dataset
from inspect_ai.model import ChatMessageAssistant, ChatMessageSystem, ChatMessageUser, get_model
from inspect_ai.scorer import Score, Target, mean, scorer, stderr
from inspect_ai.solver import Generate, TaskState, solver

# RUBRICS
PROMPT = """{prompt}
Give a reason, then a last line ANSWER: with one of __OPTIONS__."""
WORDS = {word.lower(): value for word, value in OPTIONS.items()}
LONGEST_FIRST = sorted(OPTIONS, key=len, reverse=True)
ANSWER = re.compile(r"ANSWER:\\s*(" + "|".join(map(re.escape, LONGEST_FIRST)) + ")", re.I)


def asked(conversation, statement):
    """The prompt about one statement; filled in order, so that nothing inside a text is taken for a place."""
    prompt = PROMPT.replace("__OPTIONS__", ", ".join(OPTIONS)).replace("__CONTEXT__", CONTEXT)
    before, after = prompt.split("__CONVERSATION__")
    return before + conversation + after.replace("__STATEMENT__", statement)


@scorer(metrics={"netsat": [mean(), stderr()], "*": [mean()]})
def pollex_netsat(model: str | None = None):
    """NetSAT and every rubric's value; unscored where an answer is missing."""

    async def score(state: TaskState, target: Target) -> Score:
        judge, values = get_model(model), {}
        said = "\\n".join(f"{m.role}: {m.text}" for m in state.messages if m.role != "system")
        for name, _, text in RUBRICS:
            out = await judge.generate(asked(said, text))
            found = ANSWER.findall(out.completion)
            if not found:
                return Score.unscored(explanation=f"{name}: no answer in {out.completion[:200]!r}")
            values[name] = WORDS[found[-1].lower()]
        netsat = sum(sign * values[name] for name, sign, _ in RUBRICS)
        label = {} if THETA is None else {"positive": int(netsat > THETA)}
        return Score(value={"netsat": netsat, **label, **values}, explanation=f"NetSAT {netsat:.2f}")

    return score


@solver
def as_it_was():
    """Leaves the conversation as it was logged."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        return state

    return solve


def record(row):
    """A conversation of a JSON lines file with id and messages."""
    kinds = {"user": ChatMessageUser, "assistant": ChatMessageAssistant, "system": ChatMessageSystem}
    said = [kinds[m["role"]](content=m["content"]) for m in row["messages"] if m["role"] in kinds]
    return Sample(id=row["id"], input=said)


@task
def pollex(log: str = "conversations.jsonl", judge: str | None = None):
    """Conversations of a file, scored as they are."""
    return Task(dataset=json_dataset(log, record), solver=as_it_was(), scorer=pollex_netsat(judge))
'''


def _files(sheet: Sheet) -> dict[str, str]:
    prompt = statement_prompt(sheet._replace(context=""), "__CONVERSATION__", "__STATEMENT__")
    prompt = prompt.replace("<conversation>", "__CONTEXT__\n<conversation>", 1)
    about = "pollex rubrics as an Inspect scorer: inspect eval pollex_task.py -T log=conversations.jsonl --model MODEL"
    return {"pollex_task.py": python_file(sheet, about, BODY.replace("{prompt}", prompt))}


TARGET = Target(name="inspect", version="0.3.285", files=_files, netsat="exact: the value netsat of the scorer")
