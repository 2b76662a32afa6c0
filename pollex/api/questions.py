"""Questions from Python: judge with one question and review, ask a questionnaire, answer, grade, simulate dialogues."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from typing_extensions import Unpack

from pollex.agents.votes import RUNS
from pollex.api.common import logs_of, model_of, path_of, running
from pollex.formats.questionnaires import PAPER
from pollex.graphs.context import Progress
from pollex.graphs.judge.run import People
from pollex.services import answer as answering
from pollex.services import ask as asking
from pollex.services import grade as grading
from pollex.services import judge as judging
from pollex.services import review as reviewing
from pollex.services import simulate as simulating
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
    votes: str | Path | None = None,
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
        votes: Where a row for each run of each conversation is written.

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
            votes=path_of(votes),
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
    profile: str | None = None,
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
        profile: Scale, rules and dimensions: a bundled profile's name, or a file; None: as the questions' language is.
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


def answer(
    questions: Sources,
    *,
    profile: str | None = None,
    system: str = "",
    out: str | Path | None = None,
    model: str | BaseChatModel | None = None,
    store: str | Path = STORE,
    resume: bool = False,
    progress: Progress | None = None,
    **options: Unpack[ModelArguments],
) -> answering.AnswerResult:
    """Put questions to the model under test, whose answers `grade` grades.

    Args:
        questions: Files of questions, or a glob.
        profile: Its temperatures count: a bundled profile's name, or a file; None: as the questions' language is.
        system: System message before each question.
        out: Where a row a question is written.

    Raises:
        BadInput: A file or row can't be read.
        WrongUse: No model is named.
    """
    asked = answering.AnswerOptions(profile=profile, system=system)
    with running(store, progress, resume=resume) as run:
        return answering.answer(questions, asked, out=path_of(out), model=model_of(model, options), **run)


def simulate(
    topics: str | Path,
    systems: Sequence[str],
    *,
    documents: str | Path | None = None,
    turns: int = 8,
    out: str | Path | None = None,
    model: str | BaseChatModel | None = None,
    store: str | Path = STORE,
    resume: bool = False,
    progress: Progress | None = None,
    **options: Unpack[ModelArguments],
) -> simulating.SimulateResult:
    """Simulate a dialogue for each system, topic and persona.

    Args:
        topics: File of topics and personas.
        systems: Names of dialogue systems.
        documents: Folder that systems with retrieval search.
        turns: Most turns of the user, where turns are taken.
        out: Where a row a dialogue is written.

    Raises:
        BadInput: Topics or documents can't be read.
        WrongUse: No model is named, or what is asked for can't be carried out.
    """
    asked = simulating.SimulateOptions(topics=Path(topics), systems=systems, documents=path_of(documents), turns=turns)
    with running(store, progress, resume=resume) as run:
        model_options, progress = model_of(model, options), run["progress"]
        return simulating.simulate(asked, out=path_of(out), run=run["run"], model=model_options, progress=progress)


def review(
    run: str = "last",
    people: People | Mapping[str, str] | None = None,
    *,
    answers: str | Path | None = None,
    out: str | Path | None = None,
    verdicts: str | Path | None = None,
    accepted: str | Path | None = None,
    store: str | Path = STORE,
    progress: Progress | None = None,
) -> JudgeResult:
    """Take up a run of `judge` for people's answers; nobody else is asked again.

    Args:
        run: Id of the run, or the beginning of one; `last` for the last run of `judge`.
        people: By conversation, the option that a person chose; or a function that is given the question, its options
            and the conversations, and returns that.
        answers: The file that an earlier review wrote to `out`, with answers in it.
        out: Where to write what people are still to answer, the most contested first.
        verdicts: Where to write a row a conversation.
        accepted: Where to write conversations with a rating, ready for fine-tuning.

    Raises:
        BadInput: The answers can't be read.
        WrongUse: There is no such run of `judge`.
    """
    once = iter([] if people is None or callable(people) else [people])  # what is no option would be given for ever
    asked = people if callable(people) else lambda _question: next(once, {})
    with running(store, progress) as given:
        return reviewing.review(
            run,
            out=path_of(out),
            answers=path_of(answers),
            interview=None if people is None else lambda _find: asked,
            verdicts=path_of(verdicts),
            accepted=path_of(accepted),
            run=given["run"],
            progress=given["progress"],
        )
