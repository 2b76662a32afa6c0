"""What a run did."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pollex.usecases.families import StoreOptions
from pollex.usecases.use_case import CallContext, UseCase, opt, use_case

if TYPE_CHECKING:
    from pollex.services.history import ConversationHistory, NodeState, RunTrace


@use_case("trace")
class TraceRun(StoreOptions, UseCase["RunTrace | ConversationHistory | NodeState"]):
    """Show every node and role call of a run as a tree.

    RUN is an id, its beginning, or `last`.

    \b
    Examples
      pollex trace last
      pollex trace learn-3 --conversation debug-017
      pollex trace last --conversation debug-017 --reveal
      pollex trace last --state deduplicate

    \b
    Nodes that --state takes; of a room's graph a wrong name lists them
      learn     extract, summarize_sat, summarize_dsat, deduplicate, reword, review_pool, fit_judge,
                judge_pool, select, calibrate, fit_extractor, judge_held_out, assess
      spur      extract, gather_sets, update_sat, update_dsat, and learn's from fit_judge on
      refit     learn's from fit_judge on
      score     judge_sat, judge_dsat, compute_netsat
      ask       ask_questions
      all of these but the first three have plan_batch, commit_batch and finish, too
    """

    apart = True
    name: str = opt(kw_only=False, place="argument", metavar="RUN")
    conversation: str | None = opt(
        "Show everything that happened to this conversation.",
        default=None,
        metavar="ID",
    )
    reveal: bool = opt(
        "Show what the placeholders of this conversation stand for.",
        default=False,
    )
    state: str | None = opt(
        "Show what this node of the graph found, on a screen; with --json the whole state after it.",
        default=None,
        metavar="NODE",
    )

    def carry_out(self, context: CallContext) -> Any:
        """See `services.history`."""
        if self.state is not None:
            return self.call("history.trace_state", context)

        return self.call(
            "history.trace_run" if self.conversation is None else "history.trace_conversation",
            context,
        )
