"""The Python API: the same graphs as on the command line, without its printing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pollex.agents.embedded import DEFAULT_MODEL
from pollex.conversations.conversation import Conversation
from pollex.conversations.logs import Logs
from pollex.errors import WrongUse
from pollex.formats.fields import ReadOptions
from pollex.formats.peer_scores import requests_of
from pollex.formats.peers.rubrics_in import rubrics_of
from pollex.formats.read_logs import logs_of
from pollex.formats.read_logs import read_logs as read_log_files
from pollex.gateway.langsmith import tracing_off
from pollex.graphs.learn import run as runs
from pollex.graphs.learn.state import LearnSettings
from pollex.prompts.domain import DomainProfile, profile_at
from pollex.python_words import python_words
from pollex.rubrics.netsat import Score
from pollex.rubrics.rubric import Rubric
from pollex.rubrics.rubric_set import RubricSet
from pollex.selection.policies import DEFAULT as DEFAULT_POLICY
from pollex.services.event_loop import complete
from pollex.services.exchange import aims_of, export_texts, require_form
from pollex.services.options import ModelOptions
from pollex.services.roles import dismissed, hire
from pollex.services.scorer import chat_model
from pollex.store.store import DEFAULT, Store

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel


@python_words()
def read_logs(sources: str | Path | Sequence[str | Path], **options: Any) -> Logs:
    """Conversations from JSON lines, JSON, CSV or Parquet files.

    Args:
        sources: Paths or globs.
        options: Fields of `conversations.options.ReadOptions`, for example `label_field="rating", positive=">=4"`.

    Raises:
        BadInput: A file or row can't be read; file, line and remedy are named.
    """
    return read_log_files(sources, options=ReadOptions(**options))


@python_words()
def learn(
    logs: Logs | Iterable[Conversation],
    *,
    domain: str | Path | DomainProfile | None = None,
    model: str | BaseChatModel | None = None,
    base_url: str | None = None,
    test_fraction: float = 0.5,
    budget: int = 10,
    method: Literal["rubicon", "spur"] = "rubicon",
    policy: str = DEFAULT_POLICY,
    rubrics: str | Path | None = None,
    seed: int = 0,
    embedding_model: str = DEFAULT_MODEL,
    store: str | Path = DEFAULT,
    resume: bool = False,
    **options: Any,
) -> RubricSet:
    """Learns a rubric set from conversations with thumbs.

    Args:
        domain: A domain profile or its file; the neutral one when left out.
        model: An LLM's name (its key is taken from `OPENAI_API_KEY`) or any LangChain chat model; without one the
            embedded roles work.
        base_url: Of a server that speaks OpenAI's protocol.
        test_fraction: Share held out for honest figures; 0 holds nothing out.
        budget: SAT and DSAT rubrics to choose, each.
        method: `spur` for the baseline that revises one small set in place; it needs a model.
        policy: How rubrics are chosen; a name of `selection.policies`.
        rubrics: A file of rubrics written by hand, or a bundled set's name: all of them are fitted, and none learnt.
        store: Folder where runs, answers and embeddings are kept.
        resume: Go on with the last unfinished run of the same data and settings.
        options: Further fields of `workers.ModelOptions`, for example `samples=5`.

    Raises:
        BadLabels: One class is missing or too small.
        WrongUse: There is no such policy or method, something that takes a model is asked for without one, or rubrics
            are given and to be learnt.
    """
    tracing_off()
    _require_heeded(model, base_url, options)
    read = logs if isinstance(logs, Logs) else logs_of(logs)
    profile = domain if isinstance(domain, DomainProfile) else profile_at(Path(domain) if domain else None)
    settings = LearnSettings(
        test_fraction=test_fraction, budget=(budget, budget), method=method, policy=policy, seed=seed
    )
    given = _given(rubrics, method)
    name, chat = (model, None) if isinstance(model, str | None) else (None, chat_model(model))
    asked = ModelOptions(model=name, base_url=base_url, embedding_model=embedding_model, **options)

    async def work(opened: Store) -> RubricSet:
        async with dismissed(await hire(replace(asked, chat=chat), profile, opened, seed)) as staff:
            learned = await runs.learn(
                read,
                roles=staff.for_method(method),
                judge_record=staff.record,
                profile=profile,
                settings=settings,
                setting=staff.setting(opened, resume=resume, arguments={"api": "learn"}),
                prompts=staff.prompts,
                rubrics=given,
            )
        return learned.rubric_set

    with Store.open(Path(store)) as opened:
        return complete(work(opened))


def _require_heeded(model: str | BaseChatModel | None, base_url: str | None, options: Mapping[str, Any]) -> None:
    """Refuses what nobody would heed, as on the command line."""
    idle = [*options, *(["base_url"] if base_url is not None else [])]
    if model is None and idle:
        raise WrongUse(f"{', '.join(idle)} without a model", remedy="name one: model=…, or leave them out")
    if base_url is not None and not isinstance(model, str):
        raise WrongUse("base_url beside a chat model, which has its own", remedy="leave it out")


def _given(rubrics: str | Path | None, method: str) -> tuple[Rubric, ...]:
    if rubrics is None:
        return ()
    if method == "spur":
        raise WrongUse("rubrics that are given are not learnt", remedy="leave out method, or rubrics")
    return rubrics_of(rubrics)


@python_words()
def export_rubrics(rubrics: RubricSet, *, to: str) -> dict[str, str]:
    """The files of a rubric set in another tool's form, as texts by name.

    Args:
        to: A tool as in `pollex export --to`, for example `promptfoo`.

    Raises:
        BadRubrics: The rubrics were edited after θ was fitted.
        WrongUse: No such tool is known.
    """
    return dict(export_texts(rubrics, to))


@python_words()
def export_scores(
    scores: Iterable[Score], rubrics: RubricSet, *, as_: str, logs: Iterable[Conversation] = ()
) -> list[dict[str, Any]]:
    """Scores as another tool's requests, one a figure; conversations without figures have none.

    Args:
        as_: A tool as in `pollex score --as`, for example `langfuse`.
        logs: What was scored, for the ids of traces; without it a conversation's id is its session's.

    Raises:
        WrongUse: No such tool is known.
    """
    require_form(as_)
    return requests_of(as_, scores, rubrics, aims_of(logs)).requests
