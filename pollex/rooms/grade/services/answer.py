"""Put questions to the model under test, and write down what it answers."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from pollex.agents.llm.asker import PromptAsker
from pollex.conversations.conversation import Conversation
from pollex.conversations.logs import BadRow
from pollex.formats.fields import ReadOptions
from pollex.formats.write import require_known_ending, write_rows
from pollex.graphs.context import Progress
from pollex.graphs.run import carry_out_run
from pollex.rooms.grade.agents.llm.respondent import Respondent
from pollex.rooms.grade.conversations.references import ReferenceCase, ReferenceCases
from pollex.rooms.grade.formats.references import read_cases
from pollex.rooms.grade.prompts.grading.profile import ReferencingProfile
from pollex.rooms.grade.services.grade import choose_profile, report_cases
from pollex.runs.by_model import require_model_name, run_work_by_model
from pollex.runs.options import ModelOptions, RunOptions
from pollex.runs.run import RunSettings
from pollex.runs.usage import ModelUsage, render_usage_by_stage
from pollex.runs.workspace import open_workspace
from pollex.services.dry_run import plan_dry_run
from pollex.services.logs import Sources, list_source_names
from pollex.services.results import TabularResult, format_outcomes
from pollex.store.resume import iterate_conversations
from pollex.store.store import Store
from pollex.text import JsonDict, TerminalLines, render_first_lines

ANSWER_COLUMNS = {
    "id": "VARCHAR",
    "category": "VARCHAR",
    "subcategory": "VARCHAR",
    "question": "VARCHAR",
    "answer": "VARCHAR",
    "outcome": "VARCHAR",
    "detail": "VARCHAR",
    "model": "VARCHAR",
    "temperature": "DOUBLE",
}


NOT_ASKED_OUTCOME = "not_asked"


@dataclass(frozen=True)
class SystemResponse:
    """An answer of the system under test; None if it failed, as `outcome` says."""

    case: ReferenceCase
    answer: str | None
    outcome: str
    detail: str
    model: str
    temperature: float | None


@dataclass(frozen=True, kw_only=True, repr=False)
class AnswerResult(TabularResult):
    """Answers of the model under test.

    Attributes:
        out: File of a row a question; None where none was written.
    """

    fine = ("answered",)

    run: str
    model: str
    out: Path | None
    responses: tuple[SystemResponse, ...]
    outcomes: dict[str, int]
    bad_rows: tuple[BadRow, ...] = ()
    usage: ModelUsage | None = None

    def records(self) -> Iterator[dict[str, object]]:
        for response in self.responses:
            case = response.case
            yield {
                name: getattr(case, name) for name in ("id", "category", "subcategory", "question")
            } | {
                name: getattr(response, name)
                for name in ("answer", "outcome", "detail", "model", "temperature")
            }

    def told(self) -> TerminalLines:
        """Yield how many questions were answered, and which were not."""
        yield format_outcomes(self.outcomes)
        failed = []
        for r in self.responses:
            if r.answer is None:
                failed.append(f"{r.case.id}: {r.outcome}: {r.detail}")

        yield from render_first_lines("question has no answer", "questions have no answer", failed)
        yield from render_usage_by_stage(self.usage)
        yield f"Wrote {self.out} ({self.model}; run {self.run})"

    def as_json(self) -> JsonDict:
        return (
            self.of("run", "out", "model", "outcomes")
            | {"n": len(self.responses)}
            | self.of("bad_rows", "usage")
        )


def answer_questions(
    questions: Sources,
    *,
    profile: str | None = None,
    system: str = "",
    max_tokens: int = 4096,
    seed: int = 0,
    out: Path | None = None,
    reading: ReadOptions,
    run: RunOptions,
    model: ModelOptions,
    progress: Progress,
) -> AnswerResult:
    """Put questions to the model under test, one call a question.

    Args:
        profile: A bundled profile's name, or a file; its temperatures count. None: as the
            questions' language is.
        system: System message before each question.
        max_tokens: Maximum tokens of an answer; twice as many if it was truncated.
        seed: Sent with every question.
        out: Where a row a question is written.

    Raises:
        BadInput: A file or row can't be read.
        WrongUse: No model is named.
    """
    # what can be refused is refused before a file is read
    name = require_model_name(model, "no model to answer")
    if out is not None:
        require_known_ending(out, profile, *list_source_names(questions))

    cases = read_cases(list_source_names(questions), reading)
    report_cases(cases, progress)

    # the same respondent for the plan and for the run
    def respondent(asker: PromptAsker) -> Respondent:
        return Respondent(
            replace(asker, settings=asker.settings.but(max_tokens=max_tokens)),
            system,
        )

    # temperatures come from the profile
    grading = choose_profile(profile, cases)
    if run.dry_run:
        raise plan_dry_run(
            model,
            run,
            seed,
            lambda plan: _ask_all_questions(cases, grading, respondent(plan.asker)),
        )

    # the run keeps what it was called with, for a later look at it
    with open_workspace(run, progress) as opened:
        arguments = {
            "questions": list_source_names(questions),
            "out": out and str(out),
            "profile": grading.language,
        }
        (run_id, outcomes), usage = run_work_by_model(
            opened,
            model,
            seed,
            arguments,
            lambda asker, setting: collect_responses(
                cases, respondent=respondent(asker), profile=grading, setting=setting
            ),
        )
        # read from the store: a resumed run has answers of earlier ones
        responses = tuple(iterate_responses(opened.store, run_id, cases))

    result = AnswerResult(
        run=run_id,
        model=name,
        out=out,
        responses=responses,
        outcomes=outcomes,
        bad_rows=tuple(cases.bad_rows),
        usage=usage,
    )
    if out is not None:
        write_rows(out, result.records(), ANSWER_COLUMNS)

    return result


async def _ask_all_questions(
    cases: ReferenceCases,
    profile: ReferencingProfile,
    respondent: Respondent,
) -> None:
    for case in cases:
        await respondent.respond(
            case.id,
            case.question,
            profile.temperature_of(case.category, case.subcategory),
        )


async def collect_responses(
    cases: ReferenceCases,
    *,
    respondent: Respondent,
    profile: ReferencingProfile,
    setting: RunSettings,
) -> tuple[str, dict[str, int]]:
    """Ask the system under test; return the run, and how many came to what. `iterate_responses` reads its answers.

    Raises:
        ResumeRefused: The run to resume was started with other settings.
    """
    # LangGraph takes a while
    from pollex.rooms.grade.graphs.answer import AnswerContext, AnswerWork, build

    # what must be the same for a run to be resumed
    fingerprint = {
        "data": cases.fingerprint[:12],
        "profile": profile.fingerprint,
        "respondent": respondent.fingerprint,
    }
    store = setting.store
    async with setting.begin_or_resume("answer", fingerprint, [respondent.name]) as run:
        # answers that are there, but for those that are to be asked for again
        responses = list(iterate_responses(store, run.id, cases))
        done = []
        for response in responses:
            if response.outcome not in setting.retry_outcomes | {NOT_ASKED_OUTCOME}:
                done.append(response)
        settled = {response.case.id for response in done}
        # only questions without an answer are pending
        live = AnswerWork(
            **setting.of_run(run.id),
            stage="answer",
            total=len(cases),
            pending={case.id: None for case in cases if case.id not in settled},
            outcomes=Counter(response.outcome for response in done),
            fine=frozenset({"answered"}),
            workers=[respondent.name],
            profile=profile,
            cases={case.id: case for case in cases},
            respondent=respondent,
        )
        state = await carry_out_run(
            build(),
            live,
            AnswerContext.of(setting.arguments),
        )

    return run.id, state["outcomes"]


def iterate_responses(store: Store, run: str, cases: ReferenceCases) -> Iterator[SystemResponse]:
    """Yield one response for each question, in the questions' order."""
    by_id = {conversation.id: conversation for conversation in iterate_conversations(store, run)}
    for case in cases:
        yield _make_response(case, by_id.get(case.id))


def _make_response(case: ReferenceCase, conversation: Conversation | None) -> SystemResponse:
    # the run broke off before this question
    if conversation is None:
        return SystemResponse(case, None, NOT_ASKED_OUTCOME, "not asked", "", None)

    about = conversation.metadata
    # the system's turn, if it answered
    reply = next(
        (turn.content for turn in conversation.turns if turn.role == "assistant"),
        None,
    )
    return SystemResponse(
        case,
        reply,
        about["outcome"],
        about["detail"],
        about["model"],
        about["temperature"],
    )
