"""How many of all conversations are good."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pollex.usecases.families import GroupOptions, JudgedLogOptions, declare_page_option
from pollex.usecases.use_case import UseCase, opt, use_case

if TYPE_CHECKING:
    from pollex.services.logs import Data
    from pollex.services.share import ShareResult
    from pollex.usecases.families import Rubrics


@use_case("share")
class EstimateShare(GroupOptions, JudgedLogOptions, UseCase["ShareResult"]):
    """Estimate the share of good conversations over all, from few labels, with 95 % intervals.

    Give all conversations, those without a label too. Labels drawn at random give the share of all.
    Labels that users gave because they liked to (voluntary) give the share of voters, the share of
    all if votes depend on the conversation alone, and bounds for how far that may be off. The two
    are never mixed.

    \b
    Examples
      pollex label next logs.jsonl --for share --count 100 --out to-label.jsonl      then fill in the thumbs
      pollex share logs.jsonl --labels to-label.jsonl --rubrics rubrics.json
      pollex share logs.jsonl --rubrics rubrics.json --by release --page share.html
      pollex share logs.jsonl --drawn voluntary --by started:week
    """

    does = "share.estimate_share_of_logs"
    resumable = True
    goes_on_in_browser = True
    plans = True
    logs: tuple[str, ...] | Data = opt(
        kw_only=False,
        place="argument",
        metavar="LOGS…",
    )
    # scores that narrow the interval, and labels beside the logs
    rubrics: Path | Rubrics | None = opt(
        "A rubric set; its scores narrow the interval.",
        default=None,
        kw_only=False,
        group="Rubrics",
    )
    labels: Path | str | None = opt(
        "Labels by conversation id, with `drawn`; the logs' own if not set.",
        default=None,
        metavar="FILE",
    )
    # lines for parts of the log
    by: str | None = opt(
        "A line for each value: release, started:week, segment (topics).",
        default=None,
        metavar="FIELD",
    )
    drawn: Literal["random", "voluntary"] | None = opt(
        "How labels without a field `drawn` were selected.",
        default=None,
    )
    page: Path | str | None = declare_page_option()
