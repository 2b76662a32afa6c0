"""Regression cases from a log: replies that failed or went well, to be asked for again in other tools."""

from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from pollex.conversations.conversation import format_openai_messages
from pollex.conversations.logs import BadRow, Logs
from pollex.errors import BadLabels, WrongUse
from pollex.formats.fields import ReadOptions
from pollex.formats.write import write_text_files_into_folder
from pollex.graphs.context import Progress
from pollex.rooms.remedy.conversations.reply_context import ReplyContext, shuffle_contexts
from pollex.rooms.remedy.formats.cases import (
    CASE_FILE_TEMPLATES,
    CaseCheck,
    ReplyCase,
    render_case_files,
)
from pollex.rooms.remedy.services.contexts import read_rubric_occurrences
from pollex.rooms.remedy.services.prompt_text import PromptText, render_prompt_for
from pollex.rooms.remedy.services.sample import CASES_FACT_KIND, assign_parts
from pollex.rubrics.rubric_set import RubricSet
from pollex.runs.options import RunOptions
from pollex.services.logs import Sources, list_file_names
from pollex.services.results import TabularResult
from pollex.store.store import Store
from pollex.store.tables import FactRow, dump_json, format_current_time
from pollex.text import TerminalLines, format_count, render_notes

DEFAULT_MAX_CASES = 40
"""Cases of one rubric."""


@dataclass(frozen=True, kw_only=True, repr=False)
class CasesResult(TabularResult):
    """Cases in a tool's form.

    Attributes:
        unmatched: Conversations that are left out, since their system turn isn't made from the
            prompt.
        proving: Cases that are left out, since they prove.
    """

    to: str
    files: tuple[Path, ...]
    cases: tuple[ReplyCase, ...]
    unmatched: int = 0
    proving: int = 0
    bad_rows: tuple[BadRow, ...] = ()

    @property
    def headline(self) -> str:
        return f"{format_count(len(self.cases), 'case')} for {self.to}"

    def records(self) -> list[dict[str, object]]:
        return [case.row for case in self.cases]

    def told(self) -> TerminalLines:
        """Yield the files and what was left out."""
        yield self.headline
        for path in self.files:
            yield f"Wrote {path}"

        # what was left out, and why
        left = []
        if self.proving:
            left.append(
                f"{format_count(self.proving, 'case')} left out for a proof: nobody is to tune on them (--all)"
            )

        if self.unmatched:
            left.append(
                f"{format_count(self.unmatched, 'conversation')} left out: the prompt doesn't make their system turn"
            )

        yield from render_notes(left)

    def as_json(self) -> dict[str, object]:
        left = {"left_out_for_a_proof": self.proving, "left_out_by_prompt": self.unmatched}
        return self.of("to", "files", "bad_rows") | {"cases": len(self.cases)} | left


def write_cases(
    logs: Sources | Logs,
    rubrics: Path | RubricSet,
    *,
    to: str,
    out: Path,
    target: str | None = None,
    prompt: Path | None = None,
    every: bool = False,
    reading: ReadOptions,
    run: RunOptions,
    progress: Progress,
) -> CasesResult:
    """Write cases for a tool, from replies that failed or went well; the store keeps which, for later proofs.

    Raises:
        BadLabels: There are no cases.
        WrongUse: No such tool is known, or the folder can't be written.
    """
    # what can be refused is refused before anything is read
    if to not in CASE_FILE_TEMPLATES:
        raise WrongUse(
            f"no tool for cases is called {to!r:.40}",
            hint=f"one of: {', '.join(CASE_FILE_TEMPLATES)}",
            option="to",
        )

    if out.exists() and not out.is_dir():
        raise WrongUse(
            "it is a file",
            where=str(out),
            hint="give the name of a folder",
        )

    text = None
    if prompt is not None:
        text = PromptText.load(prompt)

    rubric_set, read, _, held_targets = read_rubric_occurrences(
        logs,
        rubrics,
        target,
        reading,
        run,
        progress,
    )
    # the part that a proof would take: cases of it are held back
    parts = assign_parts(read.conversations, rubric_set.learned_from)
    # checks by context: one reply may show several rubrics
    checks: dict[str, list[CaseCheck]] = defaultdict(list)
    contexts: dict[str, ReplyContext] = {}
    for held in held_targets:
        for context in shuffle_contexts(held.replies, 0)[:DEFAULT_MAX_CASES]:
            rubric = held.rubric
            contexts[context.id] = context
            checks[context.id].append(
                CaseCheck(
                    rubric.id,
                    rubric.polarity,
                    rubric.text,
                    context.reply.content,
                )
            )

    reply_cases = []
    # messages up to the reply, which is what the tool asks for again
    for context in shuffle_contexts(contexts.values(), 0):
        messages = format_openai_messages(context.conversation)[: context.turn]
        id_ = context.conversation.id
        # the prompt's own system turn in place of the logged one, where it can be made
        if text is not None:
            system = render_prompt_for(context, text)
            messages = [
                {"role": "system", "content": system},
                *(message for message in messages if message["role"] != "system"),
            ]

        if text is None or system is not None:
            reply_cases.append(
                ReplyCase(
                    context.id,
                    messages,
                    checks[context.id],
                    id_,
                    context.turn,
                    parts[id_],
                )
            )

    # nobody is to tune on what a proof will use
    shown = []
    for case in reply_cases:
        if every or case.part != "prove":
            shown.append(case)

    if not shown:
        if reply_cases:
            what = f"no cases: {len(reply_cases)} replies, all of them left for a proof"
        else:
            what = "no reply shows a rubric"

        raise BadLabels(what, hint="give more conversations")

    # the tool's judge: the set's model, or a name to be replaced
    if rubric_set.judge.built_in:
        model = "MODEL"
    else:
        model = rubric_set.judge.name

    texts = render_case_files(to, shown, model)
    write_text_files_into_folder(out, texts, *list_file_names(logs, rubrics, prompt))
    # kept, so that a later proof knows what somebody may have tuned on
    hashes = sorted({contexts[case.id].conversation.text_hash[:16] for case in shown})
    with Store.open(run.store) as store:
        store.keep([FactRow("", CASES_FACT_KIND, format_current_time(), dump_json(hashes))])

    return CasesResult(
        to=to,
        files=tuple(out / name for name in texts),
        cases=tuple(shown),
        unmatched=len(contexts) - len(reply_cases),
        proving=len(reply_cases) - len(shown),
        bad_rows=read.bad_rows,
    )
