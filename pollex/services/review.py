"""Hand conversations without agreement to people, and read their answers."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pollex.conversations.conversation import Conversation
from pollex.formats.verdicts import AnswersFile
from pollex.graphs.context import Progress
from pollex.services.judge import require_places
from pollex.services.judge_runs import People, answered_by_people, run_named
from pollex.services.options import RunOptions
from pollex.services.runs import RunSettings
from pollex.services.verdicts import JudgeResult, VerdictFiles, write_verdicts
from pollex.services.workspace import workspace
from pollex.store.resume import conversations_of

Find = Callable[[str], Conversation]
"""Returns a conversation of the run by its id."""


def review(
    named: str = "last",
    *,
    out: Path | None = None,
    answers: Path | None = None,
    interview: Callable[[Find], People] | None = None,
    verdicts: Path | None = None,
    accepted: Path | None = None,
    run: RunOptions,
    progress: Progress,
) -> JudgeResult:
    """Take up a run of `judge` for people's answers; nobody else is asked again.

    Args:
        named: Id of the run, or the beginning of one; `last` for the last run of `judge`.
        out: Where to write what people are still to answer, the most contested first.
        answers: That file, with answers in it.
        interview: Makes, given a way to look up conversations, somebody who can be asked now.
        verdicts: Where to write a row a conversation.
        accepted: Where to write conversations with a rating, ready for fine-tuning.

    Raises:
        BadInput: The answers can't be read.
        ResumeRefused: The run has conversations that its judge was never asked about.
        WrongUse: There is no such run of `judge`.
    """
    require_places(verdicts, accepted, out, read=[answers])
    file = None if answers is None else AnswersFile(answers)
    with workspace(run, progress) as opened:
        store = opened.store

        def find(id_: str) -> Conversation:
            return next(conversations_of(store, run_named(store, named).id, ids=[id_]))

        people: list[People] = [file] if file else []
        if interview is not None:
            people.append(interview(find))
        setting = RunSettings.of(store, progress=opened.progress)
        judged = opened.run(answered_by_people(store, named, setting, _first_of(people) if people else None))
        files = VerdictFiles(verdicts=verdicts, accepted=accepted, doubtful=out)
        return write_verdicts(store, judged, list(conversations_of(store, judged.run)), files, people=file)


def _first_of(people: Sequence[People]) -> People:

    def ask(question: Mapping[str, Any]) -> Mapping[str, str]:
        return next((given for each in people if (given := each(question))), {})

    return ask
