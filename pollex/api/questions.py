"""Questions from Python: judge conversations with one question, ask a questionnaire, grade against references."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from typing_extensions import Unpack

from pollex.agents.votes import RUNS
from pollex.api.common import logs_of, model_of, path_of, running
from pollex.formats.questionnaires import PAPER
from pollex.graphs.context import Progress
from pollex.services import ask as asking
from pollex.services import grade as grading
from pollex.services import judge as judging
from pollex.services.arguments import ModelArguments, QuestionArguments
from pollex.services.judge import JudgeOptions
from pollex.services.logs import Data, Sources
from pollex.services.verdicts import JudgeResult
from pollex.store.folder import STORE

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel


def judge(
    logs: Data,
    question: str,
    *,
    options: Sequence[str] = ("yes", "no"),
    runs: int = RUNS,
    panel: Sequence[str] = (),
    tau: float | None = None,
    tau_precision: float | None = None,
    stop_early: bool = False,
    out: str | Path | None = None,
    accepted: str | Path | None = None,
    model: str | BaseChatModel | None = None,
    store: str | Path = STORE,
    resume: bool = False,
    progress: Progress | None = None,
    **more: Unpack[QuestionArguments],
) -> JudgeResult:
    """Rate conversations with one question, asked in several independent runs.

    Args:
        question: What is asked about every conversation.
        options: Answers to choose from; the first is a thumb up.
        runs: Independent runs per conversation.
        panel: Models at the endpoint that take turns with the first.
        tau: Highest diversity entropy that passes; None for at most one run that disagrees.
        tau_precision: Precision on the thumbs that τ is fitted to, in place of `tau`.
        stop_early: Ask no more runs once the verdict can no longer change.
        out: Where a row a conversation is written.
        accepted: Where conversations with a rating are written, ready for fine-tuning.

    Raises:
        BadLabels: τ is to be fitted to thumbs, and there are none.
        WrongUse: What is asked for can't be carried out.
    """
    given: dict[str, Any] = dict(more)
    asked = {one.name: given.pop(one.name) for one in fields(JudgeOptions) if one.name in given}
    asked |= {"options": options, "runs": runs, "panel": panel, "stop_early": stop_early}
    asked |= {"tau": tau, "tau_precision": tau_precision}
    with running(store, progress, resume=resume) as run:
        return judging.judge(
            logs_of(logs),
            JudgeOptions(question=question, **asked),
            out=path_of(out),
            accepted=path_of(accepted),
            model=model_of(model, cast(ModelArguments, given)),
            **run,
        )


def ask(
    logs: Data,
    questionnaire: str | Path = PAPER,
    *,
    out: str | Path | None = None,
    model: str | BaseChatModel | None = None,
    store: str | Path = STORE,
    resume: bool = False,
    progress: Progress | None = None,
    **options: Unpack[ModelArguments],
) -> asking.AskResult:
    """Ask a model each question of a questionnaire about each conversation.

    Args:
        questionnaire: A bundled questionnaire's name, or a TOML file.
        out: Where a row for each option of each question is written, as `calibrate` reads it.

    Raises:
        BadInput: A file or row can't be read, or the questionnaire is wrong.
        WrongUse: No model is named.
    """
    with running(store, progress, resume=resume) as run:
        read = logs_of(logs, labels_needed=False)
        return asking.ask(read, questionnaire, out=path_of(out), model=model_of(model, options), **run)


def grade(
    questions: Sources,
    *,
    answers: str | Path | None = None,
    profile: str = grading.PROFILE,
    plain: bool = False,
    human: Sequence[str] = (),
    human_field: str | None = None,
    out: str | Path | None = None,
    page: str | Path | None = None,
    model: str | BaseChatModel | None = None,
    store: str | Path = STORE,
    resume: bool = False,
    progress: Progress | None = None,
    **options: Unpack[ModelArguments],
) -> grading.GradeResult:
    """Grade answers against references.

    Args:
        questions: Files of questions with references, or a glob.
        answers: File of answers; None where the questions have them in their field `answer`.
        profile: Scale, rules and dimensions: a bundled profile's name, or a file.
        plain: Whether a judge without references grades, too, to compare.
        human: Files of people's grades, by id.
        human_field: Field of people's grades.
        out: Where a row a question is written.
        page: Where the page about the grades is written.

    Raises:
        BadInput: A file or row can't be read.
        WrongUse: No model is named, or there are no answers to grade.
    """
    asked = grading.GradeOptions(
        answers=path_of(answers), profile=profile, plain=plain, human=human, human_field=human_field
    )
    with running(store, progress, resume=resume) as run:
        return grading.grade(
            questions, asked, out=path_of(out), page=path_of(page), model=model_of(model, options), **run
        )
