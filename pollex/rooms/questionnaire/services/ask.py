"""Ask a model a questionnaire about texts: the first step of LLM-Rubric, whose answers `calibrate fit` reads."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pollex.agents.by_rule import SourcelessRuleJudge
from pollex.agents.llm.asker import PromptAsker
from pollex.agents.llm.evidence import describe_cut_sources
from pollex.agents.llm.judge import LlmJudge
from pollex.agents.roles import Judge, answer_each_question
from pollex.conversations.conversation import Conversation
from pollex.conversations.logs import BadRow, Logs
from pollex.formats.fields import ReadOptions
from pollex.formats.questionnaires import SheetQuestion, load_questionnaire
from pollex.formats.write import require_known_ending, write_rows
from pollex.graphs.context import ConversationIndex, Progress
from pollex.graphs.run import carry_out_run
from pollex.prompts.domain import DomainProfile, read_domain_profile
from pollex.rubrics.answers import (
    RULE_ANSWER_SOURCE,
    Answer,
    NoAnswerOutcome,
    Question,
    Unanswered,
    may_asking_again_bring_answer,
)
from pollex.runs.by_model import require_model_name, run_work_by_model
from pollex.runs.options import ModelOptions, RunOptions
from pollex.runs.run import RunSettings, compute_json_digest, read_conversation_ids
from pollex.runs.usage import ModelUsage, render_usage_by_stage
from pollex.runs.workspace import Workspace, open_workspace
from pollex.services.dry_run import plan_dry_run
from pollex.services.logs import Sources, list_file_names, list_source_names, logs_from
from pollex.services.results import TabularResult, format_outcomes
from pollex.store.resume import CONVERSATIONS_PER_QUERY, read_answers, read_step_result
from pollex.store.rows import make_conversation_rows
from pollex.store.store import Store
from pollex.text import JsonDict, TerminalLine, TerminalLines, format_count

ASKING_SEED = 0
PAPER_QUESTIONNAIRE = "llm-rubric"
"""Name of the questionnaire of LLM-Rubric."""
MODEL_NEEDED_REASON = "a questionnaire is answered by an LLM"
ANSWER_COLUMNS = {
    "text_id": "VARCHAR",
    "question": "VARCHAR",
    "option": "DOUBLE",
    "probability": "DOUBLE",
    "ordinal": "BOOLEAN",
    "source": "VARCHAR",
}
"""A row for each option of each question that was answered, with DuckDB's types."""

SOURCES_IN_WORDS = {
    "logprobs": "from log-probabilities",
    "sampled": "from samples",
    "point": "points: one option has all",
    RULE_ANSWER_SOURCE: "not applicable, since no sources were shown",
}
Row = JsonDict
AnswersByQuestion = Mapping[str, Answer | Unanswered]

SHEET_RECORD_NAME = "questionnaire"
"""Name of the step that keeps the questions."""


@dataclass(frozen=True, kw_only=True, repr=False)
class AskResult(TabularResult):
    """Answers of a model to a questionnaire.

    Attributes:
        rows: A row for each option of each answered question; probabilities aren't renormalised.
        sources: Answers by where their probabilities come from (`logprobs`, `sampled`, `point`), or
            why there is none.
    """

    run: str
    judge: str
    out: Path | None
    questions: tuple[SheetQuestion, ...]
    texts: int
    rows: tuple[Row, ...]
    sources: dict[str, int]
    bad_rows: tuple[BadRow, ...] = ()
    usage: ModelUsage | None = None

    @property
    def complete(self) -> bool:
        """Whether every row was read and every question answered."""
        return not self.bad_rows and not self.sources.keys() - SOURCES_IN_WORDS.keys()

    @property
    def headline(self) -> str:
        return format_outcomes(self.sources)

    def records(self) -> tuple[Row, ...]:
        return self.rows

    def told(self) -> TerminalLines:
        """Yield where the answers come from, and how many are missing."""
        source_texts = []
        for name, n in self.sources.items():
            source_texts.append(f"{n} {SOURCES_IN_WORDS.get(name, name.replace('_', ' '))}")
        outcomes = ", ".join(source_texts)
        questions = format_count(len(self.questions), "question")
        yield f"{questions} about {format_count(self.texts, 'text')}: {outcomes or 'no answer'}"
        if "point" in self.sources:
            advice = "choose an endpoint with log-probabilities, or --samples"
            yield TerminalLine(f"Points tell nothing of doubt: {advice}", "yellow")

        yield from render_usage_by_stage(self.usage)
        yield f"Wrote {self.out} ({self.judge}; run {self.run})"

    def as_json(self) -> JsonDict:
        return (
            self.of("run", "out", "judge", "texts")
            | {"questions": [question.id for question in self.questions]}
            | self.of("sources", "bad_rows", "usage")
        )


def ask_questionnaire(
    logs: Sources | Logs,
    questionnaire: str | Path = PAPER_QUESTIONNAIRE,
    *,
    out: Path | None = None,
    domain: Path | DomainProfile | None = None,
    reading: ReadOptions,
    run: RunOptions,
    model: ModelOptions,
    progress: Progress,
) -> AskResult:
    """Ask every question about each conversation: one question in a call, answered by one letter.

    Args:
        questionnaire: A bundled questionnaire's name, or a file.
        out: Where a row for each option of each question is written; None for the result alone.
        domain: A domain profile or its file: the model is told of its task and what is expected;
            None tells nothing.

    Raises:
        BadInput: A file or row can't be read, or the questionnaire is wrong.
        ModelRefused: Log-probabilities are required, and the endpoint gives none.
        WrongUse: No model is named.
    """
    judge = require_model_name(model, MODEL_NEEDED_REASON)
    if out is not None:
        require_known_ending(out, *list_file_names(logs, questionnaire, domain))

    if isinstance(domain, DomainProfile):
        profile = domain
    else:
        profile = read_domain_profile(domain)

    # a word that is wrong in it is told before a long log is read
    questions = load_questionnaire(questionnaire)
    read = logs_from(logs, reading.for_scores(), progress)
    if note := describe_cut_sources(read, model.settings.sources):
        progress.note(note)

    # a dry run counts the calls that the same settings would make
    if run.dry_run:
        counted = pose_questions_singly(model, with_domain=domain is not None)
        work = lambda plan: _rehearse_calls(read, questions, choose_answerer(plan.asker, questions))  # noqa: E731
        raise plan_dry_run(counted, run, ASKING_SEED, work, profile)

    with open_workspace(run, progress, read) as opened:
        arguments = {
            "logs": list_source_names(logs),
            "questionnaire": str(questionnaire),
            "out": out and str(out),
        }
        (run_id, sources), usage = run_work_by_model(
            opened,
            pose_questions_singly(model, with_domain=domain is not None),
            ASKING_SEED,
            arguments,
            lambda asker, setting: ask_all_conversations(
                read.conversations,
                [question.for_model for question in questions],
                judge=choose_answerer(asker, questions),
                data_fingerprint=read.fingerprint,
                setting=setting,
                skips=frozenset(question.id for question in questions if question.skip),
                unordered=frozenset(question.id for question in questions if not question.ordinal),
            ),
            profile,
        )
        rows = tuple(_iterate_answer_rows(opened, run_id, read, questions))

    if out is not None:
        write_rows(out, rows, ANSWER_COLUMNS)

    return AskResult(
        run=run_id,
        judge=judge,
        out=out,
        questions=tuple(questions),
        texts=len(read),
        rows=rows,
        sources=sources,
        bad_rows=read.bad_rows,
        usage=usage,
    )


def pose_questions_singly(model: ModelOptions, *, with_domain: bool) -> ModelOptions:
    """Return the model asked one question in a call; nothing is asked beside the questions.

    Args:
        with_domain: Whether it is told of the domain.
    """
    # each question stands alone in its call, without checks that are made for rubrics
    changes = {
        "elicitation": "independent",
        "canary": False,
        "straight_lining": False,
    }
    settings = model.settings.but(
        **changes,
        without=model.settings.without | (set() if with_domain else {"domain"}),
    )
    return replace(model, settings=settings)


def choose_answerer(asker: PromptAsker, questions: Sequence[SheetQuestion]) -> Judge:
    """Return who answers: a model, and a rule where a question about sources doesn't apply."""
    source_questions = []
    for question in questions:
        if question.needs == "sources":
            source_questions.append(question.id)
    return SourcelessRuleJudge(
        LlmJudge(asker),
        frozenset(source_questions),
    )


async def _rehearse_calls(
    read: Logs,
    questions: list[SheetQuestion],
    judge: Judge,
) -> None:
    for conversation in read:
        await answer_each_question(
            judge,
            conversation,
            [question.for_model for question in questions],
        )


def _iterate_answer_rows(
    opened: Workspace,
    run_id: str,
    read: Logs,
    questions: list[SheetQuestion],
) -> Iterator[Row]:
    # a row for each option; a question without an answer has none
    for conversation, answers in iterate_answer_sheets(opened.store, run_id, read.conversations):
        for question in questions:
            if not isinstance(answer := answers.get(question.id), Answer):
                continue
            about = {"text_id": conversation.id, "question": question.id}
            for (value, _), probability in zip(
                question.options, answer.probabilities, strict=False
            ):
                distribution = {"option": value, "probability": probability}
                yield about | distribution | {"ordinal": question.ordinal, "source": answer.source}


async def ask_all_conversations(
    conversations: Sequence[Conversation],
    questions: Sequence[Question],
    *,
    judge: Judge,
    data_fingerprint: str,
    setting: RunSettings,
    skips: frozenset[str] = frozenset(),
    unordered: frozenset[str] = frozenset(),
) -> tuple[str, dict[str, int]]:
    """Ask all questions about each conversation; return the run, and where the answers come from.

    See `iterate_answer_sheets`.

    Args:
        questions: The main one last.
        skips: Ids of those whose last option says that they don't apply.
        unordered: Ids of those whose options are in no order.

    Raises:
        ResumeRefused: The run to resume was started with other settings.
    """
    # LangGraph takes a while
    from pollex.rooms.questionnaire.graphs.graph import AskContext, AskWork, build, describe_source

    questions_json = []
    for question in questions:
        questions_json.append(question.model_dump(mode="json"))

    # a resume goes on only with the same texts, questions and judge
    fingerprint = {
        "data": data_fingerprint[:12],
        "questionnaire": compute_json_digest(questions_json),
        "judge": judge.fingerprint,
    }
    store = setting.store
    async with setting.begin_or_resume("ask", fingerprint, [judge.name]) as run:
        stored_ids = read_conversation_ids(store, run.id)
        new_conversations = []
        for conversation in conversations:
            if conversation.id not in stored_ids:
                new_conversations.append(conversation)
        await store.write(
            make_conversation_rows(
                run.id,
                new_conversations,
            )
        )
        # questions are stored with the run, so that its answers can be read without the file
        await store.write_step(run.id, SHEET_RECORD_NAME, {"questions": questions_json})
        # a conversation is done when no question of it is open, or can be asked again
        done = {}
        for conversation, answers in iterate_answer_sheets(store, run.id, conversations):
            if _are_answers_settled(answers, questions, setting.retry_outcomes):
                done[conversation.id] = answers
        outcomes: Counter[str] = Counter()
        for answers in done.values():
            for answer in answers.values():
                outcomes[describe_source(answer)] += 1
        live = AskWork(
            **setting.of_run(run.id),
            stage="ask",
            total=len(conversations),
            pending={
                conversation.id: None
                for conversation in conversations
                if conversation.id not in done
            },
            outcomes=outcomes,
            fine=frozenset(SOURCES_IN_WORDS),
            workers=[judge.name],
            shelf=ConversationIndex(conversations),
            judge=judge,
            questions=questions,
            skips=skips,
            unordered=unordered,
        )
        state = await carry_out_run(
            build(),
            live,
            AskContext.of(setting.arguments),
        )

    return run.id, state["outcomes"]


def iterate_answer_sheets(
    store: Store,
    run: str,
    conversations: Sequence[Conversation],
) -> Iterator[tuple[Conversation, AnswersByQuestion]]:
    """Yield each conversation with its answers by question, read in batches."""
    for start in range(0, len(conversations), CONVERSATIONS_PER_QUERY):
        batch = conversations[start : start + CONVERSATIONS_PER_QUERY]
        answers = read_answers(
            store,
            run,
            ids=[conversation.id for conversation in batch],
        )
        for conversation in batch:
            yield (conversation, answers.get(conversation.id, {}))


def read_asked_questions(store: Store, run: str) -> dict[str, Question]:
    """Return the questions of a run of `ask`, by their ids."""
    # a run of before may have stored no questions
    sheet = read_step_result(store, run, SHEET_RECORD_NAME)
    if sheet:
        questions = []
        for question in sheet["questions"]:
            questions.append(Question.model_validate(question))
    else:
        questions = []

    return {question.id: question for question in questions}


def _are_answers_settled(
    case_answers: AnswersByQuestion,
    questions: Sequence[Question],
    retry_outcomes: Collection[NoAnswerOutcome],
) -> bool:
    answers = []
    for question in questions:
        answers.append(case_answers.get(question.id))
    return all(
        answer is not None and not may_asking_again_bring_answer(answer, retry_outcomes)
        for answer in answers
    )
