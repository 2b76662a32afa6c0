"""The share of good conversations of a run, from the labels of the log and of annotators."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pollex.conversations.conversation import Label
from pollex.errors import BadLabels, PollexError, WrongUse
from pollex.formats.label_files import (
    VOLUNTARY_DRAW_METHOD,
    ConversationLabel,
    list_conversation_labels,
)
from pollex.store.labels import read_opinions, settle_opinions
from pollex.store.resume import iterate_conversations
from pollex.store.runs import Run
from pollex.web import links
from pollex.web.listing import find_scoring_run, load_run_columns
from pollex.web.queues import THUMB_QUESTION
from pollex.web.site import Site
from pollex.web.views import PageData, page

if TYPE_CHECKING:
    from pollex.services.share import ShareResult

MAX_CONVERSATIONS = 5_000
"""Conversations that a page can wait for."""


@page(links.SHARE_PATH, "share.html", here="Label")
def show_share(site: Site, run: str = "", by: str = "") -> PageData:
    """Show the share of all conversations, with intervals."""
    from pollex.reports.share import (
        draw_forest_plot,  # SciPy comes with it, and takes half a second
    )

    named = find_scoring_run(site, run)
    share = None
    why_not = ""
    try:
        # a label that is new makes the estimate anew
        labels = site.store.value("SELECT max(rowid) FROM labels")
        share = site.kept(
            ("share", named.id, by, f"{named.finished} {labels}"),
            lambda: _estimate_share(site, named, by),
        )
    except PollexError as error:
        why_not = str(error)

    shown, groups = (share.lines, share.group_lines) if share else ([], [])
    return {
        "run": named,
        "found": share,
        "why_not": why_not,
        "lines": shown,
        "drawing": draw_forest_plot("Share of good conversations", shown),
        "groups": groups,
        "groups_drawing": groups
        and draw_forest_plot(
            f"Share of good conversations by {by}", [(a.name, b) for a, b in groups]
        ),
    }


def _estimate_share(site: Site, run: Run, by: str) -> ShareResult:
    from pollex.services.share import PROBABILITY_WITHOUT_SCORE, estimate_share  # as above

    lens = load_run_columns(site, run)
    if len(lens) > MAX_CONVERSATIONS:
        raise WrongUse(
            f"{len(lens):,} conversations take a while",
            hint="run: `pollex share LOGS --rubrics SET`",
        )

    conversations = []
    for conversation in iterate_conversations(site.store, run.id):
        if not conversation.not_scorable:
            conversations.append(conversation)

    probability_by_id = dict(zip(lens.ids, lens.probability.tolist(), strict=True))
    named = site.set_of(run)
    # a conversation without a score has a value that stands for that, not NaN
    probability = np.nan_to_num(
        np.array([probability_by_id[conversation.id] for conversation in conversations]),
        nan=PROBABILITY_WITHOUT_SCORE,
    )
    # labels of the log, and those that people settled on
    labels = [
        *list_conversation_labels(conversations, VOLUNTARY_DRAW_METHOD),
        *_collect_labels(site, run),
    ]
    if not labels:
        raise BadLabels(
            "no conversation has a label",
            hint="make a random queue under Label, and answer it",
        )

    return estimate_share(
        conversations,
        labels,
        named.rubric_set if named else None,
        probability,
        by or None,
    )


def _collect_labels(site: Site, run: Run) -> list[ConversationLabel]:
    """One label a conversation, as annotators settled on it."""
    lens = load_run_columns(site, run)
    ids = dict(zip(lens.hashes, lens.ids, strict=True))
    usable_opinions = []
    for opinion in read_opinions(site.store, THUMB_QUESTION):
        if opinion.counts and opinion.text_hash in ids:
            usable_opinions.append(opinion)
    answers_settled = settle_opinions(usable_opinions)
    thumbs = {"up": Label.POSITIVE, "down": Label.NEGATIVE}
    annotators: list[ConversationLabel] = []
    for text, opinion in answers_settled.items():
        if opinion.value in thumbs:
            annotators.append(
                ConversationLabel(
                    ids[text],
                    thumbs[opinion.value],
                    opinion.drawn,
                    opinion.annotator,
                )
            )

    return annotators
