"""Use cases by the contexts that LangGraph Studio shows as forms."""

import os
from pathlib import Path
from typing import Any

from pollex.formats.fields import ReadOptions
from pollex.formats.questionnaires import PAPER
from pollex.graphs.context import Context, NullProgress
from pollex.graphs.grade.graph import GradeContext
from pollex.graphs.judge.graph import JudgeContext
from pollex.graphs.learn.state import LearnChoice
from pollex.graphs.questionnaire import AskContext
from pollex.graphs.remedy.graph import RemedyContext
from pollex.graphs.score import ScoreContext
from pollex.graphs.simulate.graph import SimulateContext
from pollex.rubrics.learning.settings import LearnSettings, budget_of
from pollex.services import ask as asking
from pollex.services import grade as grading
from pollex.services import judge as judging
from pollex.services import learn as learning
from pollex.services import score as scoring
from pollex.services import simulate as simulating
from pollex.services.options import ModelOptions, RunOptions
from pollex.services.remedy import run as remedying
from pollex.services.remedy.assistants import named_assistant
from pollex.services.remedy.sample import RemedyOptions
from pollex.store.folder import STORE, VARIABLE


def common_arguments(given: Context) -> dict[str, Any]:
    """Return what all use cases take: the store of the context, of the environment, or the usual one."""
    store = Path(given.store or os.environ.get(VARIABLE) or STORE)
    model = ModelOptions(model=given.model or None, base_url=given.base_url or None)
    return {"run": RunOptions(store=store), "model": model, "progress": NullProgress()}


def learn(given: LearnChoice) -> None:
    """Learn a rubric set; it is in the store."""
    share = 0.0 if given.test_fraction is None and not given.model else given.test_fraction
    settings = LearnSettings(test_fraction=share, budget=budget_of(given.budget or None), seed=given.seed)
    domain = Path(given.domain) if given.domain else None
    about: dict[str, Any] = {"out": None, "domain": domain, "rubrics_from": None, "settings": settings}
    learning.learn(given.logs, **about, review=given.review, reading=ReadOptions(), **common_arguments(given))


def score(given: ScoreContext) -> None:
    """Score a log with a rubric set."""
    scoring.score(given.logs, Path(given.rubrics), reading=ReadOptions(), **common_arguments(given))


def judge(given: JudgeContext) -> None:
    """Ask one question about each conversation of a log."""
    options = judging.JudgeOptions(question=given.question, options=given.options or ("yes", "no"))
    judging.judge(given.logs, options, reading=ReadOptions(), **common_arguments(given))


def grade(given: GradeContext) -> None:
    """Grade answers against references."""
    grading.grade(given.questions, profile=given.profile or None, reading=ReadOptions(), **common_arguments(given))


def ask(given: AskContext) -> None:
    """Ask a questionnaire about each conversation of a log."""
    asking.ask(given.logs, given.questionnaire or PAPER, reading=ReadOptions(), **common_arguments(given))


def remedy(given: RemedyContext) -> None:
    """Find or take changes of a prompt, and prove them."""
    options = RemedyOptions(prompt=Path(given.prompt), target=given.target, edit=tuple(given.edit), people=given.people)
    reading, common = ReadOptions(group_field=given.group_field or None), common_arguments(given)
    asked = named_assistant(given.assistant or None, given.profiles, common["model"])
    remedying.remedy(given.logs, Path(given.rubrics), options, asked, reading=reading, **common)


def simulate(given: SimulateContext) -> None:
    """Simulate dialogues."""
    simulating.simulate(Path(given.topics), given.systems, **common_arguments(given))
