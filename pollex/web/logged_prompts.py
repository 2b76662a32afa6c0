"""The assistant's prompt as a log has it: the system messages of conversations that a run read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice

from pollex.store.resume import iterate_conversations
from pollex.store.runs import Run
from pollex.text import format_count
from pollex.web.logs_at_hand import find_log_of_run
from pollex.web.run_logs import name_log_of_run
from pollex.web.site import SCORING_COMMANDS, Site

MAX_CONVERSATIONS_READ = 500
"""Conversations that are looked at for a prompt."""
MAX_PROMPT_CHARACTERS = 20_000
"""Characters of a message that may be a prompt of a form."""


@dataclass(frozen=True)
class LoggedPrompt:
    """The system message that most conversations of a log have.

    Attributes:
        log: Name of the log; empty where nobody knows it.
        having: Conversations that have it, of `read`.
        others: Other system messages that the log has.
    """

    text: str
    log: str
    having: int
    read: int
    others: int

    @property
    def told(self) -> str:
        """Where the prompt comes from, in a sentence."""
        where = f"the log {self.log}" if self.log else "the log"
        share = f"{self.having:,} of {format_count(self.read, 'conversation')}"
        line = f"Filled in from {where}: the system message of {share}."
        if self.others:
            line += f" {format_count(self.others, 'other message')} stand there, too."
        return f"{line} Change it where it isn’t today’s prompt."


def find_logged_prompt(site: Site, logs: Sequence[str], set_id: str) -> LoggedPrompt | None:
    """Return the prompt of the logs that a form names, else of its rubric set's own; None where neither has one."""
    for run in list_runs_to_look_at(site, logs, set_id):
        prompt = site.once("logged prompt", run, partial(read_logged_prompt, site, run))
        if prompt is not None:
            return prompt

    return None


def list_runs_to_look_at(site: Site, logs: Sequence[str], set_id: str) -> list[Run]:
    """Return a run of the logs that a form names, and the run that made its rubric set."""
    finished = []
    for run in site.runs():
        if run.command in SCORING_COMMANDS and run.finished is not None:
            finished.append(run)

    runs = []
    for run in finished if logs else ():
        if find_log_of_run(site, run) in logs:
            runs.append(run)
            break

    # a form in which nothing is chosen yet shows the last set first
    sets = site.sets()
    named = sets.get(set_id) or next(iter(sets.values()), None)
    if named is not None:
        runs += [run for run in finished if run.id == named.run]
    return runs


def read_logged_prompt(site: Site, run: Run) -> LoggedPrompt | None:
    """Return the system message that most of a run's first conversations have; None where none has one."""
    conversations = [*islice(iterate_conversations(site.store, run.id), MAX_CONVERSATIONS_READ)]
    counts: Counter[str] = Counter()
    for conversation in conversations:
        first = conversation.turns[0] if conversation.turns else None
        if first is not None and first.role == "system" and first.content.strip():
            counts[first.content.strip()] += 1

    if not counts:
        return None

    text, having = counts.most_common(1)[0]
    # a prompt that is made anew for each user is none that can be changed here
    if len(text) > MAX_PROMPT_CHARACTERS or (having == 1 and len(conversations) > 1):
        return None

    name = name_log_of_run(run)
    return LoggedPrompt(text, name, having, len(conversations), len(counts) - 1)
