"""Find or take changes of the assistant's prompt, and prove them on users who took no part in finding them."""

from collections.abc import Sequence
from pathlib import Path

from pollex.conversations.logs import Logs
from pollex.conversations.redaction import find_identifiers
from pollex.errors import WrongUse
from pollex.formats.fields import ReadOptions
from pollex.formats.write import require_writable_output_path
from pollex.graphs.context import Progress
from pollex.outputs import is_own_page, require_folder, require_output, require_replaceable
from pollex.rooms.remedy.agents.assistant_process import ProcessAssistant
from pollex.rooms.remedy.services.advice import find_advice
from pollex.rooms.remedy.services.assistants import AssistantOptions
from pollex.rooms.remedy.services.contexts import (
    list_failures,
    list_targets,
    read_rubric_occurrences,
)
from pollex.rooms.remedy.services.life import make_proof_row
from pollex.rooms.remedy.services.people import (
    PAIRS_FILE_NAME,
    get_people_folder,
    read_choices_from_file,
)
from pollex.rooms.remedy.services.plan import count_calls
from pollex.rooms.remedy.services.prompt_text import (
    PromptEdit,
    PromptText,
    append_line,
    parse_named_file,
    read_prompt_edit,
    render_prompt_for,
    write_naive_sentence,
)
from pollex.rooms.remedy.services.result import REMEDY_COMMAND, RemedyResult
from pollex.rooms.remedy.services.sample import CASES_FACT_KIND, RemedyOptions
from pollex.rooms.remedy.services.trials import (
    GatheredContexts,
    require_enough_failures,
    sample_contexts,
)
from pollex.rubrics.rubric_set import RubricSet
from pollex.runs.options import ModelOptions, RunOptions
from pollex.runs.workspace import open_workspace
from pollex.services.dry_run import DryRunEnded
from pollex.services.logs import Sources, list_file_names, list_source_names
from pollex.store.database import DATABASE_FILE_NAME
from pollex.store.resume import list_stored_runs, read_facts_by_id
from pollex.store.store import Store
from pollex.store.tables import format_current_time


def prove_remedy(
    logs: Sources | Logs,
    rubrics: Path | RubricSet,
    options: RemedyOptions,
    assistant: AssistantOptions,
    *,
    out: Path | None = None,
    reading: ReadOptions,
    run: RunOptions,
    model: ModelOptions,
    progress: Progress,
) -> RemedyResult:
    """Prove changes of a prompt: the user's, or such as a model proposes.

    Raises:
        AnswersPending: The assistant's replies are to be written into a file first, or a person is
            asked.
        BadInput: A change doesn't apply, or changes what is protected.
        BadLabels: There are too few failing contexts for a proof.
        WrongUse: The target can't be one, nobody proposes, or the set's judge has to be confirmed.
    """
    try:
        return prove_prompt_changes(
            logs,
            rubrics,
            options,
            assistant,
            out=out,
            reading=reading,
            run=run,
            model=model,
            progress=progress,
        )
    finally:
        # a process of the user's code ends with the run, however it ends
        if isinstance(assistant.given, ProcessAssistant):
            assistant.given.close()


def prove_prompt_changes(
    logs: Sources | Logs,
    rubrics: Path | RubricSet,
    options: RemedyOptions,
    assistant: AssistantOptions,
    *,
    out: Path | None,
    reading: ReadOptions,
    run: RunOptions,
    model: ModelOptions,
    progress: Progress,
) -> RemedyResult:
    """Prove changes; see `remedy`."""
    # no output may be a file that is read
    if out is not None:
        edits = []
        for prompt in (*options.prompts, *options.edits):
            edits.append(str(parse_named_file(prompt)[1]))

        require_writable_output_path(out, *list_file_names(logs, rubrics, edits), regular=True)
    require_writable_places(out, people=options.people > 0)

    # prompts by the names that their users gave
    require_distinct_names(options)
    prompts = []
    for name, path in map(parse_named_file, options.prompts):
        prompts.append(PromptText.load(path, options.keep, name))

    # a plan needs no proposer, a run does
    alone = not options.edit and "proposer" not in assistant.models
    if alone and not run.dry_run:
        raise WrongUse(
            "nobody proposes",
            hint="give [proposer] in the profiles, or a change",
            option="edit",
        )

    # everything is read and chosen before anything is paid
    gathered = gather_contexts(
        logs,
        rubrics,
        options,
        prompts,
        reading,
        run,
        progress,
        planned=alone,
    )
    # tools that act need a yes, before the first call
    require_safe_tools(gathered, assistant.given)
    if run.dry_run:
        raise DryRunEnded(count_calls(gathered, assistant, run, model))

    from pollex.rooms.remedy.services.desk import carry_out_remedy  # LangGraph takes a while

    # what the run was called with, for a later look at it
    arguments: dict[str, object] = {
        "logs": list_source_names(logs),
        "rubrics": ", ".join(list_source_names(rubrics)),
    }
    arguments |= {
        "target": options.target,
        "edit": list(map(str, options.edits)),
        "people": options.people,
        "out": out and str(out),
    }
    with open_workspace(run, progress, gathered.logs) as opened:
        result = opened.run(
            carry_out_remedy(
                opened,
                gathered,
                assistant,
                model,
                arguments,
                out,
            )
        )
        # kept in the life of the target
        target = gathered.target
        opened.store.put(
            make_proof_row(target, result.run, edit.name, edit.verdict) for edit in result.edits
        )

    if out is not None:
        result.save(out)

    return result


def require_writable_places(out: Path | None, *, people: bool) -> None:
    """Refuse what can't be written beside the result, or read there of people: before anything is paid.

    Args:
        people: Whether people are to compare replies.

    Raises:
        WrongUse: Something else is there, or a link.
        BadInput: A line of people's choices is none.
    """
    if out is not None:
        edits = out.with_name(f"{out.stem}-edits")
        require_folder(edits, named=False)
        beside = [out.with_suffix(".html"), out.with_name(f"{out.stem}-pairs.parquet")]
        for file in (*beside, *edits.glob("*")):
            require_output(file, named=False)
            require_replaceable(file, recognizes=is_own_page)

    if people:
        folder = get_people_folder(out)
        require_folder(folder, named=False)
        require_output(folder / PAIRS_FILE_NAME, named=False)
        read_choices_from_file(folder)


def require_distinct_names(options: RemedyOptions) -> None:
    """Raise WrongUse where several prompts are given that can't be told apart."""
    names = [name for name, _ in map(parse_named_file, options.prompts)]
    if len({*names}) < len(names):
        what = f"{len(names)} prompts, and not each has a name of its own"
        raise WrongUse(what, hint="give each as NAME=FILE", option="prompt")


def gather_contexts(
    logs: Sources | Logs,
    rubrics: Path | RubricSet,
    options: RemedyOptions,
    prompts: Sequence[PromptText],
    reading: ReadOptions,
    run: RunOptions,
    progress: Progress,
    *,
    planned: bool = False,
) -> GatheredContexts:
    """Read everything but the prompts, and choose the contexts.

    Args:
        planned: Whether to count for a change of the user's that isn't written yet: a line more
            stands for it.
    """
    # changes name the prompt that they change, where there are several
    edited = [parse_named_file(edit) for edit in options.edits]
    named_prompts = [
        prompt
        for prompt in prompts
        if len(prompts) == 1 or {name for name, _ in edited} <= {prompt.name}
    ]
    if not named_prompts:
        remedy_ = f"each as NAME=FILE, NAME one of {', '.join(prompt.name for prompt in prompts)}"
        raise WrongUse(
            "the changes name no prompt, or several",
            hint=remedy_,
            option="edit",
        )

    # changes are told by the names of their files
    names = ["old", *(path.stem for _, path in edited)]
    if len({*names}) < len(names):
        what = f"changes have the names of their files, and two are one: {', '.join(names)}"
        raise WrongUse(what, hint="name each file otherwise", option="edit")

    edits = []
    for _, path in edited:
        edits.append(read_prompt_edit(path, named_prompts[0]))

    # where the target fails, and where others do
    rubric_set, read, held, (target,) = read_rubric_occurrences(
        logs,
        rubrics,
        options.target,
        reading,
        run,
        progress,
    )
    # all other targets are guardrails
    guards = tuple(
        held_target.rubric
        for held_target in list_targets(rubric_set, held)
        if held_target.rubric.id != target.rubric.id
    )
    # of several prompts the one that made most of the failing conversations
    prompt = max(
        named_prompts,
        key=lambda named_prompt: sum(
            render_prompt_for(context, named_prompt) is not None
            for context in list_failures(target)
        ),
    )
    others = []
    for other in prompts:
        if other is not prompt:
            others.append(other)

    tuned = read_text_hashes_of_cases(run)
    # a line in place of a change that isn't written yet, to count calls
    if planned:
        line = find_advice(target.rubric).sentence or write_naive_sentence(target.rubric)
        edits = [PromptEdit(NAME_OF_USERS_CHANGE, prompt, append_line(prompt, line))]

    gathered = sample_contexts(
        rubric_set,
        read,
        prompt,
        edits,
        options,
        target,
        guards,
        others,
        tuned,
    )
    require_enough_failures(gathered)
    return gathered


NAME_OF_USERS_CHANGE = "a change of yours"


def read_text_hashes_of_cases(run: RunOptions) -> frozenset[str]:
    """Return beginnings of text hashes of the conversations in cases; a run that goes on heeds no later ones."""
    # without a store nobody has tuned
    if not (run.store / DATABASE_FILE_NAME).exists():
        return frozenset()

    with Store.open(run.store, read_only=True) as store:
        # a resumed run heeds cases up to its own beginning
        begun = max(
            (
                earlier.started
                for earlier in list_stored_runs(store)
                if run.resume and earlier.command == REMEDY_COMMAND
            ),
            default=format_current_time(),
        )
        return frozenset(
            text_hash
            for time, every in read_facts_by_id(store, "", CASES_FACT_KIND).items()
            if time < begun
            for text_hash in every
        )


def require_safe_tools(gathered: GatheredContexts, assistant: object) -> None:
    """Raise WrongUse where tools would act for real that nobody let act, or on personal data."""
    # without a yes for tools, an assistant that may act is refused
    if gathered.options.live_tools == "no":
        if acts := getattr(assistant, "acts", ()):
            what = f"the assistant carries out tools itself, or nobody can see that it doesn't: {', '.join(acts)}"
            remedy_ = (
                "give a graph that ends at its calls, which get the logged results; or, with doubles "
                "of its tools,"
            )
            raise WrongUse(what, hint=remedy_, option={"live_tools": "yes"})

        return

    # conversations once each, whichever stratum has them
    every = {}
    for contexts in gathered.strata.values():
        for context in contexts:
            every[context.conversation.id] = context

    # personal data before the reply: tools would act on it
    hurt = []
    for id_, context in every.items():
        if any(find_identifiers(turn.content) for turn in context.before):
            hurt.append(id_)

    if hurt and gathered.options.live_tools != "personal":
        what = f"{len(hurt)} conversations hold personal data, and tools would act on it"
        raise WrongUse(
            what,
            where=hurt[0],
            hint="read the log redacted, or let them all the same",
            option={"live_tools": "personal"},
        )
