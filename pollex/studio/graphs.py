"""The graphs `score` and `learn` as LangGraph Studio and its HTTP API run them.

A server gives a graph JSON, and neither a store nor roles. So each of these runs a use case, in which the graph of the
same name under `graphs/` does the work and keeps its run in the store, where `pollex trace` shows it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import TypeVar

from langgraph.graph import END, START, StateGraph

from pollex.studio import use_cases
from pollex.studio.use_cases import LearnInput, LearnOutput, ScoreInput, ScoreOutput

Given = TypeVar("Given")
Found = TypeVar("Found")


class ScoreState(ScoreInput, ScoreOutput):
    """A conversation, rubrics, and the score."""


class LearnState(LearnInput, LearnOutput):
    """Logs, and the rubric set learned from them."""


async def score_conversation(state: ScoreInput) -> ScoreOutput:
    """Ask the rubric set's judge about the conversation, and add its answers up."""
    return await asyncio.to_thread(apart, use_cases.score, state)


async def learn_from_logs(state: LearnInput) -> LearnOutput:
    """Learn rubrics on one part of the logs, and measure them on the other."""
    return await asyncio.to_thread(apart, use_cases.learn, state)


def apart(use_case: Callable[[Given], Found], given: Given) -> Found:
    """Run a blocking use case in its own process, since the server has other requests."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(use_case, given).result()


def build_score() -> StateGraph[ScoreState, None, ScoreInput, ScoreOutput]:
    """Build the graph `score`."""
    graph = StateGraph(ScoreState, input_schema=ScoreInput, output_schema=ScoreOutput)
    graph.add_node("score_conversation", score_conversation)
    graph.add_edge(START, "score_conversation")
    graph.add_edge("score_conversation", END)
    return graph


def build_learn() -> StateGraph[LearnState, None, LearnInput, LearnOutput]:
    """Build the graph `learn`."""
    graph = StateGraph(LearnState, input_schema=LearnInput, output_schema=LearnOutput)
    graph.add_node("learn_from_logs", learn_from_logs)
    graph.add_edge(START, "learn_from_logs")
    graph.add_edge("learn_from_logs", END)
    return graph


score = build_score().compile(name="score")
learn = build_learn().compile(name="learn")
