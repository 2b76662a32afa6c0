"""Regression cases from a log: replies that failed or went well, to be asked for again in other tools."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pollex.conversations.conversation import messages_of
from pollex.conversations.logs import BadRow, Logs
from pollex.conversations.reply_context import ReplyContext, in_order
from pollex.errors import BadLabels, WrongUse
from pollex.formats.fields import ReadOptions
from pollex.formats.peers.cases import CASE_FORMS, Case, CaseCheck, case_files
from pollex.formats.write import draft_of, require_writable
from pollex.graphs.context import Progress
from pollex.rubrics.rubric_set import RubricSet
from pollex.services.logs import Sources, files_of, logs_from
from pollex.services.options import RunOptions
from pollex.services.remedy.contexts import Held, held_in, target_of, targets
from pollex.services.remedy.prompt_text import PromptText, rendered_for
from pollex.services.remedy.sample import RemedyPart, parts_of
from pollex.services.results import Shown
from pollex.text import Told, count, notes_told

MOST = 40
"""Cases of one rubric."""


@dataclass(frozen=True, kw_only=True, repr=False)
class CasesResult(Shown):
    """Cases in a tool's form.

    Attributes:
        unmatched: Conversations that are left out, since their system turn isn't made from the prompt.
        proving: Cases that are left out, since they prove.
    """

    to: str
    files: tuple[Path, ...]
    cases: tuple[Case, ...]
    unmatched: int = 0
    proving: int = 0
    bad_rows: tuple[BadRow, ...] = ()

    @property
    def headline(self) -> str:
        return f"{count(len(self.cases), 'case')} for {self.to}"

    @property
    def notes(self) -> list[str]:
        """What was left out, and why."""
        found = []
        if self.proving:
            found.append(f"{count(self.proving, 'case')} left out for a proof: nobody is to tune on them (--all)")
        if self.unmatched:
            found.append(f"{count(self.unmatched, 'conversation')} left out: the prompt doesn't make their system turn")
        return found

    def records(self) -> list[dict[str, Any]]:
        return [case.row for case in self.cases]

    def told(self) -> Told:
        """Yield the files and what was left out."""
        yield self.headline
        for path in self.files:
            yield f"Wrote {path}"
        yield from notes_told(self.notes)

    def as_json(self) -> dict[str, Any]:
        left = {"left_out_for_a_proof": self.proving, "left_out_by_prompt": self.unmatched}
        return self.of("to", "files", "bad_rows") | {"cases": len(self.cases)} | left


def cases(
    logs: Sources | Logs,
    rubrics: Path | RubricSet,
    *,
    to: str,
    out: Path,
    target: str | None = None,
    prompt: Path | None = None,
    every: bool = False,
    seed: int = 0,
    reading: ReadOptions,
    run: RunOptions,
    progress: Progress,
) -> CasesResult:
    """Write cases for a tool, from replies that failed or went well.

    Args:
        to: The tool.
        out: A folder, which is made.
        target: Id of the one rubric; None: all headlines that a reply shows.
        prompt: A system prompt in place of the logged ones, perhaps a template; None: as logged.
        every: Whether those of the part that proves are written, too.

    Raises:
        BadLabels: There are no cases.
        WrongUse: No such tool is known, or the folder can't be written.
    """
    if to not in CASE_FORMS:
        raise WrongUse(
            f"no tool for cases is called {to!r:.40}", remedy=f"one of: {', '.join(CASE_FORMS)}", option="to"
        )
    if out.exists() and not out.is_dir():
        raise WrongUse("it is a file", where=str(out), remedy="give the name of a folder")
    rubric_set = rubrics if isinstance(rubrics, RubricSet) else RubricSet.load(rubrics, arrays=False)
    text = None if prompt is None else PromptText.load(prompt)
    read = logs_from(logs, reading, progress)
    held = held_in(rubric_set, read.conversations, run.store)
    wanted = [target_of(rubric_set, held, target)] if target else targets(rubric_set, held)
    parts = parts_of(read.conversations, rubric_set.learned_from, seed)
    found, unmatched = cases_of(wanted, parts, text, seed)
    shown = [case for case in found if every or case.part != "prove"]
    if not shown:
        what = f"no cases: {len(found)} replies, all of them left for a proof" if found else "no reply shows a rubric"
        raise BadLabels(what, remedy="give more conversations")
    model = "MODEL" if rubric_set.judge.built_in else rubric_set.judge.name
    texts = case_files(to, shown, model)
    out.mkdir(parents=True, exist_ok=True)
    for name, written in texts.items():
        require_writable(out / name, *files_of(logs, rubrics, prompt))
        with draft_of(out / name) as draft:
            draft.write_text(written, encoding="utf-8", errors="replace")
    return CasesResult(
        to=to,
        files=tuple(out / name for name in texts),
        cases=tuple(shown),
        unmatched=unmatched,
        proving=len(found) - len(shown),
        bad_rows=read.bad_rows,
    )


def cases_of(
    wanted: Sequence[Held], parts: Mapping[str, RemedyPart], prompt: PromptText | None, seed: int
) -> tuple[list[Case], int]:
    """Return the cases of some rubrics, one a reply, and how many conversations the prompt doesn't match."""
    checks: dict[str, list[CaseCheck]] = defaultdict(list)
    contexts: dict[str, ReplyContext] = {}
    for held in wanted:
        for context in in_order(held.replies, seed)[:MOST]:
            rubric = held.rubric
            contexts[context.id] = context
            checks[context.id].append(CaseCheck(rubric.id, rubric.polarity, rubric.text, context.reply.content))
    found, unmatched = [], 0
    for context in in_order(contexts.values(), seed):
        if (said := messages_before(context, prompt)) is None:
            unmatched += 1
            continue
        part = parts[context.conversation.id]
        found.append(Case(context.id, said, checks[context.id], context.conversation.id, context.turn, part))
    return found, unmatched


def messages_before(context: ReplyContext, prompt: PromptText | None) -> list[dict[str, Any]] | None:
    """Return the messages before a reply; None where the logged system turn isn't made from the prompt."""
    conversation = context.conversation
    said = messages_of(conversation.model_copy(update={"turns": conversation.turns[: context.turn]}))
    if prompt is None:
        return said
    if (rendered := rendered_for(context, prompt)) is None:
        return None
    return [{"role": "system", "content": rendered}, *(one for one in said if one["role"] != "system")]
