"""What runs of `judge` and `grade` came to, for their page."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from pollex.agents.votes import Rule, Task, diversity_entropy
from pollex.formats.grade_summary import summary
from pollex.reports.grades import example, sections
from pollex.services.grade_runs import kept_gradings
from pollex.services.judge_runs import work_of
from pollex.services.precision import Precision, precision_of
from pollex.store.resume import conversations_of
from pollex.store.runs import Run
from pollex.web.site import Site

MOST = 60
"""Kinds of votes that are listed."""


@dataclass(frozen=True)
class Kind:
    """Conversations with the same votes.

    Attributes:
        votes: Runs that chose each option.
        entropy: None where no run answered.
        rating: None for NONE.
    """

    votes: tuple[int, ...]
    entropy: float | None
    rating: str | None
    n: int


@dataclass(frozen=True)
class Ratings:
    """A run of `judge`: votes by kind, those that agree most first, and how right they are."""

    task: Task
    rule: Rule
    kinds: tuple[Kind, ...]
    precision: Precision | None


def ratings_of(site: Site, run: Run) -> Ratings | None:
    """Return an ended run's ratings; None if it is no run of `judge`."""
    if run.finished is None or run.command != "judge":
        return None
    return site.once("rated", run, lambda: _ratings(site, run))


def _ratings(site: Site, run: Run) -> Ratings | None:
    work = work_of(site.store, run)
    if work is None:
        return None
    options = [option.text for option in work.task.question.options]
    counts = Counter(tally.votes for tally in work.tallies.values() if tally.scorable)
    kinds = []
    for votes, n in counts.items():
        chosen = work.rule.chosen(votes)
        entropy = diversity_entropy(votes) if sum(votes) else None
        kinds.append(Kind(votes, entropy, None if chosen is None else options[chosen], n))
    ordered = sorted(kinds, key=lambda kind: (kind.entropy is None, kind.entropy or 0.0, -kind.n))
    conversations = list(conversations_of(site.store, run.id))
    precision = precision_of(site.store, run.id, work.task, work.rule, conversations)
    return Ratings(work.task, work.rule, tuple(ordered[:MOST]), precision)


def grades_of(site: Site, run: Run) -> dict[str, Any] | None:
    """Return what the sections of a page on an ended run's grades show; None if it is no run of `grade`."""
    if run.finished is None or run.command != "grade":
        return None

    def made() -> dict[str, Any] | None:
        found = kept_gradings(site.store, run.id)
        if found is None:
            return None
        profile, gradings = found
        return sections(summary(profile, gradings), profile.pivot, example(profile, gradings))

    return site.once("graded", run, made)
