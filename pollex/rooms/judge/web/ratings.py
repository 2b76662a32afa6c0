"""What the page of a run shows of its ratings."""

from collections import Counter
from typing import Any

from pollex.rooms.judge.agents.votes import compute_diversity_entropy
from pollex.rooms.judge.services.judge_runs import read_run_tally
from pollex.rooms.judge.services.verdicts import measure_precision
from pollex.store.resume import iterate_conversations
from pollex.store.runs import Run
from pollex.web.site import Site

MAX_VOTE_KINDS_SHOWN = 60
"""Kinds of votes that are listed."""


def show_run_ratings(site: Site, run: Run) -> dict[str, object] | None:
    """Return an ended run's votes by kind, those that agree most first, and how right they are.

    Returns:
        None if it is no run of `judge`. A kind has the runs that chose each option, their entropy
        (None where no run answered), the rating (None for NONE), and the number of conversations.
    """
    if run.finished is None or run.command != "judge":
        return None
    return site.once("rated", run, lambda: _count_run_ratings(site, run))


def _count_run_ratings(site: Site, run: Run) -> dict[str, object] | None:
    # not a run of `judge`, or one that hasn't begun
    work = read_run_tally(site.store, run)
    if work is None:
        return None

    options = [option.text for option in work.task.question.options]
    # conversations with the same votes are one row
    counts = Counter(tally.votes for tally in work.tallies.values() if tally.scorable)
    kinds: list[dict[str, Any]] = []
    for votes, n in counts.items():
        chosen = work.rule.chosen(votes)
        entropy = None
        if sum(votes):
            entropy = compute_diversity_entropy(votes)
        rating = None if chosen is None else options[chosen]
        kinds.append(
            {
                "votes": votes,
                "entropy": entropy,
                "rating": rating,
                "n": n,
            }
        )

    # the most agreed on first, then the most frequent; those without votes last
    ordered = sorted(
        kinds,
        key=lambda kind: (kind["entropy"] is None, kind["entropy"] or 0.0, -kind["n"]),
    )
    conversations = list(iterate_conversations(site.store, run.id))
    precision = measure_precision(
        site.store,
        run.id,
        work.task,
        work.rule,
        conversations,
    )

    return {
        "task": work.task,
        "rule": work.rule,
        "kinds": ordered[:MAX_VOTE_KINDS_SHOWN],
        "precision": precision,
    }
