"""Ask one question about each conversation, in several independent runs, and people where these don't agree."""

import asyncio
import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from pollex.agents.embedded import BUILT_IN_MODEL_NAME
from pollex.agents.llm.evidence import describe_cut_sources
from pollex.agents.llm.judge import LlmJudge
from pollex.agents.llm.parsing import normalize_option
from pollex.conversations.conversation import Conversation
from pollex.conversations.logs import Logs
from pollex.errors import UNREADABLE_FILE_HINT, BadInput, BadLabels, WrongUse
from pollex.formats.fields import ReadOptions
from pollex.formats.write import (
    require_distinct_outputs,
    require_known_ending,
    require_writable_output_path,
)
from pollex.gateway.batches.desk import BatchSubmissionRound
from pollex.gateway.budget import Budget
from pollex.gateway.calls import Call, CompletedReply, Outcome
from pollex.graphs.context import Progress
from pollex.outputs import require_replaceable
from pollex.prompts.domain import DomainProfile, read_domain_profile
from pollex.rooms.judge.agents.embedded.rater import EmbeddedRater
from pollex.rooms.judge.agents.llm.rater import LlmRater, PromptVariant, count_calls_of_run
from pollex.rooms.judge.agents.votes import (
    DEFAULT_RUNS,
    JudgeEnsemble,
    RatingRule,
    RatingTask,
    RepeatableJudge,
    make_question,
)
from pollex.rooms.judge.formats.verdicts import AnswersFile
from pollex.rooms.judge.graphs.state import RunTally
from pollex.rooms.judge.services.judge_runs import AskPeople, apply_people_answers, ask_and_rate
from pollex.rooms.judge.services.verdicts import JudgeResult, VerdictFiles, write_verdicts
from pollex.runs.options import ModelOptions, RunOptions
from pollex.runs.plan import WORDS_FOR_UPPER_BOUND_OF_CALLS, PlannedRun, PlanningGateway
from pollex.runs.roles import RunRoles, build_embedded_run_roles, build_run_roles, make_embedder
from pollex.runs.run import RunSettings
from pollex.runs.usage import ModelUsage
from pollex.runs.workspace import Workspace, open_workspace
from pollex.services.dry_run import NO_CALLS_PLAN, CallPlan, DryRunEnded, make_call_plan
from pollex.services.logs import Sources, list_file_names, list_source_names, logs_from
from pollex.store.resume import find_run, iterate_conversations
from pollex.store.spans import Tracer
from pollex.text import read_file_text

HOW_IT_WENT_PATTERN = re.compile(
    r"\b(?:w[eo]nt|well|good|bad|(?:un|dis)?satisf\w*|(?:un)?happy|pleased|help\w*|(?:un)?solv\w*|(?:un|re)solv\w*|complet\w*"
    r"|done|succe\w*|fail\w*|fulfil\w*|useful\w*|achiev\w*|accomplish\w*|g[ai]ve\w* up|got? what|get what|frustrat\w*"
    r"|disappoint\w*|thumbs?)\b",
    re.IGNORECASE,
)
"""A question that the built-in rater answers speaks of that."""
NOT_UNDERSTOOD_MESSAGE = (
    "the built-in rater doesn't understand a question: it answers whether a conversation went well"
)


@dataclass(frozen=True, kw_only=True)
class JudgeOptions:
    """Options of a question to a panel, and the rule that accepts a rating.

    Attributes:
        options: Answers to choose from; the first is a thumb up.
        runs: Independent runs per conversation.
        minimum: Runs that must have answered; None for more than half.
        panel: Models at the endpoint that take turns with the first.
        variant: Prompt: v0 question only, v1 instructions, v2 grounded, v3 expected end state, v4
            actual end state.
        domain: Domain profile; None for the neutral one.
        instructions: File with the instructions for human annotators.
        tau: Highest diversity entropy that passes; None for at most one run that disagrees.
        tau_precision: Precision on the thumbs that τ is fitted to, in place of `tau`.
        stop_early: Ask no more runs once the verdict can no longer change.
        seed: Each run is sent another one.
    """

    question: str
    options: Sequence[str] = ("yes", "no")
    runs: int = DEFAULT_RUNS
    minimum: int | None = None
    panel: Sequence[str] = ()
    variant: PromptVariant = "v4"
    domain: Path | DomainProfile | None = None
    instructions: Path | None = None
    tau: float | None = None
    tau_precision: float | None = None
    stop_early: bool = False
    seed: int = 0

    def members(self, model: ModelOptions) -> list[str]:
        """Return the models that are asked, each once; none for the built-in rater.

        Raises:
            WrongUse: A panel is named beside a chat object, which is no endpoint that could serve
                them.
        """
        # models of a panel need an endpoint to ask, which a chat object hides
        if model.chat is not None and self.panel:
            what = "a panel beside a chat model of LangChain's: its names belong to no endpoint"
            raise WrongUse(
                what,
                hint="leave out the panel, or name the first model and its base_url",
                option="panel",
            )

        # in the order in which they are named: the first is the command's own model
        return list(dict.fromkeys(name for name in (model.name, *self.panel) if name))

    def profile(self) -> DomainProfile:
        """Return the domain profile."""
        if isinstance(self.domain, DomainProfile):
            return self.domain
        return read_domain_profile(self.domain)

    def task(self, members: Sequence[str]) -> RatingTask:
        """Return the question and the rule.

        Raises:
            WrongUse: There is no question, nothing to choose from, or no rule that can be carried
                out.
        """
        if not self.question.strip():
            raise WrongUse(
                "no question",
                hint="give one",
                option={"question": "Was the task completed?"},
            )

        # As answers are read: of two options that look alike there, the second would never be
        # chosen.
        if len({normalize_option(option).casefold() for option in self.options}) < max(
            2, len(self.options)
        ):
            what = f"{', '.join(self.options)!r} is not a list of answers"
            raise WrongUse(
                what,
                hint="give at least two different ones",
                option={"options": "yes,no"},
            )

        # the built-in rater reads no question: any other than how it went is refused
        if not members and not HOW_IT_WENT_PATTERN.search(self.question):
            hint = "ask how it went (“Was the task completed?”), or name an LLM"
            raise WrongUse(
                NOT_UNDERSTOOD_MESSAGE,
                where=self.question,
                hint=hint,
                option="model",
            )

        # its probability of going well has two sides alone
        if not members and len(self.options) != 2:
            hint = "give two options, the first for a conversation that went well, or name an LLM"
            raise WrongUse(
                "the built-in rater chooses between two options only",
                hint=hint,
                option="model",
            )

        # fitting needs every vote, and sets τ itself
        if self.tau_precision is not None and (self.stop_early or self.tau is not None):
            what = "τ is fitted to a precision on the answers of all runs"
            raise WrongUse(
                what,
                hint="leave out the value of τ and early stopping, or the precision",
            )

        # a τ that is to be fitted is none until all runs are in
        rule = RatingRule.of(self.runs, minimum=self.minimum, tau=self.tau)
        if self.tau_precision is not None:
            rule = replace(rule, tau=None)

        # the words that name who voted, in files and in the run's fingerprint
        if members:
            by = f"{', '.join(members)}, prompt {self.variant}"
        else:
            by = BUILT_IN_MODEL_NAME

        return RatingTask(
            make_question(self.question, self.options),
            rule,
            self.tau_precision,
            by,
        )

    def instructions_text(self) -> str:
        """Return the instructions for human raters; empty if there is no file."""
        if self.instructions is None:
            return ""

        try:
            return read_file_text(self.instructions)
        except (OSError, UnicodeDecodeError) as error:
            what = f"the instructions can't be read: {error}"
            raise BadInput(what, where=str(self.instructions), hint=UNREADABLE_FILE_HINT) from error


def judge_logs(
    logs: Sources | Logs,
    options: JudgeOptions,
    *,
    out: Path | None = None,
    accepted: Path | None = None,
    votes: Path | None = None,
    reading: ReadOptions,
    run: RunOptions,
    model: ModelOptions,
    progress: Progress,
) -> JudgeResult:
    """Ask a question about each conversation in several runs, and rate it where they agree.

    Args:
        out: Where a row a conversation is written; None for the result alone.
        accepted: Where conversations with a rating are written, ready for fine-tuning.
        votes: Where a row for each run of each conversation is written.

    Raises:
        BadInput: A file or row can't be read.
        BadLabels: τ is to be fitted to thumbs, and there are none.
        WrongUse: What is asked for can't be carried out.
    """
    # no output may be a file that is read, and each needs a place of its own
    read_files = list_file_names(logs, options.domain, options.instructions)
    require_writable_places(out, accepted, read=read_files)
    if votes is not None:
        require_known_ending(votes, *read_files)
        require_distinct_outputs(out, accepted, votes)

    # all that can be refused is refused before a file is read or a model called
    members = options.members(model)
    profile = options.profile()
    task = options.task(members)
    read = logs_from(logs, reading, progress)
    if members and (note := describe_cut_sources(read, model.settings.sources)):
        progress.note(note)

    # all runs would be paid for, and nothing would pass
    if task.precision is not None and not read.learnable:
        what = "no conversation has a thumb that τ could be fitted to"
        raise BadLabels(what, hint="name their field", option="label_field")
    # a plan counts calls and stops here: nothing is stored
    if run.dry_run:
        raise DryRunEnded(
            _plan_judge_calls(
                read,
                task,
                profile,
                members,
                options,
                run,
                model,
            )
        )

    with open_workspace(run, progress, read) as opened:
        about = {"question": options.question, "options": list(options.options)}
        # what the run was called with, for a later look at it
        arguments = {"logs": list_source_names(logs)} | about
        judged, staff = opened.run(
            _judge_in_run(
                opened,
                read,
                task,
                profile,
                model,
                options,
                arguments,
            )
        )
        # the built-in rater uses no model, so it has no usage
        usages = []
        for worker in staff:
            usages.append((worker.record.name, ModelUsage.of(worker)))
        # calls and variant are a model's; the built-in rater has neither
        return write_verdicts(
            opened.store,
            judged,
            read.conversations,
            VerdictFiles(verdicts=out, accepted=accepted, votes=votes),
            calls=count_calls_of_run(options.variant) if members else None,
            variant=options.variant if members else None,
            bad_rows=read.bad_rows,
            usages=tuple((name, usage) for name, usage in usages if usage is not None),
        )


def require_writable_places(
    out: Path | None,
    *lines: Path | None,
    read: Sequence[str | Path | None],
) -> None:
    """Refuse files that can't be written, before any work.

    Args:
        out: A file of rows, whose ending says the format.
        lines: Files of JSON lines.
        read: Files that are read, and must not be written over.

    Raises:
        WrongUse: Says which file, and why.
    """
    if out is not None:
        require_known_ending(out, *read)

    for path in lines:
        if path is not None:
            require_writable_output_path(path, *read)
    require_distinct_outputs(out, *lines)


def _plan_judge_calls(
    read: Logs,
    task: RatingTask,
    profile: DomainProfile,
    members: Sequence[str],
    options: JudgeOptions,
    run: RunOptions,
    model: ModelOptions,
) -> CallPlan:
    if not members:
        return NO_CALLS_PLAN

    # a planner for each model of the panel: they differ in price and window
    plans = []
    for name in members:
        plans.append(
            PlannedRun.of(
                replace(model, model=name),
                profile,
                run,
                options.seed,
            )
        )

    if options.stop_early:  # which runs are spared depends on what the others answer
        for plan in plans:
            plan.planner.certainty = WORDS_FOR_UPPER_BOUND_OF_CALLS

    # raters that send to the planner in place of a model
    askers = []
    for plan in plans:
        askers.append(replace(plan.asker, door=JudgeRehearsal(plan.planner)))

    raters = []
    for asker in askers:
        raters.append(
            LlmRater(
                asker,
                options.variant,
                options.instructions_text(),
            )
        )

    ensemble = JudgeEnsemble(*raters, rule=task.rule)

    # the same order of calls as in the run, without their replies
    async def rehearse() -> None:
        for conversation in read:
            await ensemble.votes(conversation, task.question)

    asyncio.run(rehearse())
    # the first model is the command's own; others are told by name
    first, *others = (plan.planner.table for plan in plans)
    panel = []
    for name, table in zip(members[1:], others, strict=True):
        panel.append((name, ModelUsage(table, model.limits.price)))

    return make_call_plan(
        replace(model, model=members[0]),
        first,
        probed=False,
        panel=panel,
    )


async def _judge_in_run(
    opened: Workspace,
    logs: Logs,
    task: RatingTask,
    profile: DomainProfile,
    model: ModelOptions,
    options: JudgeOptions,
    arguments: dict[str, Any],
) -> tuple[RunTally, list[RunRoles]]:
    raters = list[RepeatableJudge]()
    async with AsyncExitStack() as stack:
        if members := options.members(model):
            # of the whole command
            budget = Budget(model.limits)
            together = BatchSubmissionRound()
            instructions = options.instructions_text()
            staff = []
            # a chat object is one model, whatever its name
            for name in members:
                if model.chat:
                    member_model = model
                else:
                    member_model = replace(model, model=name)

                hired = await build_run_roles(
                    member_model,
                    profile,
                    opened.store,
                    options.seed,
                    budget,
                    together,
                )
                staff.append(worker := await stack.enter_async_context(hired))
                assert isinstance(worker.roles.judge, LlmJudge), "a model judges by its own role"
                raters.append(
                    LlmRater(
                        worker.roles.judge.asker,
                        options.variant,
                        instructions,
                    )
                )
        else:
            # the rater without a model learns from this log before it answers
            embedder = make_embedder(opened.store.folder, model.settings.embedding_model)
            embedder.watch(opened.progress)
            rater = EmbeddedRater(embedder)
            await rater.fit(logs.conversations, [])
            opened.progress.note(
                f"Note: {NOT_UNDERSTOOD_MESSAGE}, {_describe_learning(rater, task)}"
            )
            staff = [build_embedded_run_roles(profile, embedder, options.seed)]
            raters = [rater]

        # the run's settings come from the first worker, secrets from all of them
        for worker in staff:
            opened.announce(worker)
        setting = replace(
            opened.setting(arguments, staff[0]),
            secrets=tuple(secret for worker in staff for secret in worker.secrets),
            traced=partial(_trace_roles, staff),
        )
        # people are asked later, by `review`
        ensemble = JudgeEnsemble(
            *raters,
            rule=task.rule,
            stop_early=options.stop_early,
        )
        return await ask_and_rate(
            logs.conversations, ensemble, task, data_fingerprint=logs.fingerprint, setting=setting
        ), staff


def _trace_roles(staff: Sequence[RunRoles], tracer: Tracer) -> None:
    for worker in staff:
        worker.traced(tracer)


def _describe_learning(rater: EmbeddedRater, task: RatingTask) -> str:
    first, second = (option.text for option in task.question.options)
    if rater.labelled:
        return f"“{first}” as what goes with thumbs up in {rater.labelled} conversations, “{second}” with thumbs down"
    return f"“{first}” or “{second}” by what signals mean in general: the log has too few thumbs to learn from"


@dataclass
class JudgeRehearsal:
    """A model client that counts calls, with end states of the usual length."""

    planner: PlanningGateway

    async def ask(self, call: Call) -> Outcome:
        """See `agents.llm.asker.ModelClient`."""
        if call.stage == "describe":
            await self.planner.ask(call)
            return CompletedReply(
                text=json.dumps(dict.fromkeys((call.schema or {})["properties"], "a state " * 35))
            )
        if "end_state" not in call.messages[1]["content"]:
            return await self.planner.ask(call)

        with self.planner.estimating():
            return await self.planner.ask(call)


FindConversation = Callable[[str], Conversation]
"""Returns a conversation of the run by its id."""


def review_run(
    named: str = "last",
    *,
    out: Path | None = None,
    answers: Path | None = None,
    interview: Callable[[FindConversation], AskPeople] | None = None,
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
    require_writable_places(verdicts, accepted, out, read=[answers])
    # people may have answered in what an earlier command wrote
    require_replaceable(out)
    # read before the run is opened, so that a bad file stops early
    file = None
    if answers is not None:
        file = AnswersFile(answers)

    with open_workspace(run, progress) as opened:
        store = opened.store

        # looked up when somebody is asked, so that not all are in memory
        def find(id_: str) -> Conversation:
            return next(
                iterate_conversations(
                    store,
                    find_run(store, named, "judge").id,
                    ids=[id_],
                )
            )

        # answers of the file come before those of somebody at the screen
        people: list[AskPeople] = [file] if file else []
        if interview is not None:
            people.append(interview(find))
        # no model in these settings: nobody but people is asked
        setting = RunSettings.of(store, progress=opened.progress)
        judged = opened.run(
            apply_people_answers(
                store,
                named,
                setting,
                _combine_people(people) if people else None,
            )
        )
        files = VerdictFiles(verdicts=verdicts, accepted=accepted, doubtful=out)
        return write_verdicts(
            store,
            judged,
            list(iterate_conversations(store, judged.run)),
            files,
            people=file,
        )


def _combine_people(people: Sequence[AskPeople]) -> AskPeople:

    def ask(question: Mapping[str, Any]) -> Mapping[str, str]:
        return next((votes for person in people if (votes := person(question))), {})

    return ask
