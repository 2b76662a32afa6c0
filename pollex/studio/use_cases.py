"""Use cases as a server calls them: JSON in, JSON out."""

from __future__ import annotations

import os
from pathlib import Path
from typing import (
    Annotated,
    Any,
    NotRequired,  # LangGraph Studio can't show the standard one before Python 3.12
)

from pydantic import Field
from typing_extensions import TypedDict

from pollex.formats.fields import ReadOptions
from pollex.formats.read_logs import logs_of
from pollex.graphs.context import NullProgress
from pollex.graphs.learn.state import LearnSettings
from pollex.services.learn import learn as learn_rubrics
from pollex.services.options import ModelOptions, RunOptions
from pollex.services.score import score as score_logs
from pollex.services.scorer import conversation_from
from pollex.store.folder import STORE, VARIABLE


class Message(TypedDict):
    """One turn of a conversation."""

    role: Annotated[str, Field(description="Who speaks: user, assistant, system or tool.", examples=["user"])]
    content: Annotated[str, Field(description="What is said.")]


class ScoreInput(TypedDict):
    """A conversation and the rubrics to score it with."""

    messages: Annotated[list[Message], Field(description="The conversation, in order.", min_length=1)]
    rubrics: Annotated[str, Field(description="Path of a rubric set on the server.", examples=["rubrics.json"])]
    base_url: NotRequired[
        Annotated[str, Field(description="Where the rubric set's LLM is served, if it isn't at OpenAI.")]
    ]


class ScoreOutput(TypedDict):
    """The score of the conversation."""

    score: Annotated[
        dict[str, Any],
        Field(description="NetSAT, label, whether it is confident, probability of a thumb up, and the answers."),
    ]


class LearnInput(TypedDict):
    """Conversations with thumbs, and how to learn rubrics from them."""

    logs: Annotated[
        str | list[str],
        Field(
            description="Path or glob of files on the server: JSON lines, JSON, CSV, Parquet.", examples=["logs.jsonl"]
        ),
    ]
    domain: NotRequired[Annotated[str | None, Field(description="Path of a domain profile (TOML), if any.")]]
    model: NotRequired[Annotated[str | None, Field(description="Name of an LLM; else built-in roles.")]]
    base_url: NotRequired[Annotated[str | None, Field(description="Where the LLM is served, if not at OpenAI.")]]
    out: NotRequired[Annotated[str | None, Field(description="Where to write the rubric set and its report, too.")]]


class LearnOutput(TypedDict):
    """The rubric set that was learned."""

    rubrics: Annotated[dict[str, Any], Field(description="The rubric set: rubrics, θ, window, figures, provenance.")]
    run: Annotated[str, Field(description="Id of the run, for `pollex trace`.")]


def score(given: ScoreInput) -> ScoreOutput:
    """Score one conversation."""
    result = score_logs(
        logs_of([conversation_from({"messages": given["messages"]})]),
        Path(given["rubrics"]),
        reading=ReadOptions(),
        run=run_options(),
        model=ModelOptions(base_url=given.get("base_url")),
        progress=NullProgress(),
    )
    assert result.scores is not None, "they are kept where no file is named"
    return {"score": result.scores[0].model_dump(mode="json")}


def learn(given: LearnInput) -> LearnOutput:
    """Learn a rubric set."""
    domain, out = given.get("domain"), given.get("out")
    result = learn_rubrics(
        given["logs"],
        out=Path(out) if out else None,
        domain=Path(domain) if domain else None,
        rubrics_from=None,
        settings=LearnSettings(),
        reading=ReadOptions(),
        run=run_options(),
        model=ModelOptions(model=given.get("model"), base_url=given.get("base_url")),
        progress=NullProgress(),
    )
    return {"rubrics": result.rubrics.model_dump(mode="json"), "run": result.run}


def run_options() -> RunOptions:
    """Return the options of a run, with the environment's store or the default."""
    return RunOptions(store=Path(os.environ.get(VARIABLE) or STORE))
