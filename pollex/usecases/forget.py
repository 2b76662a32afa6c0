"""Conversations taken out of all that is kept."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pollex.usecases.families import StoreOptions
from pollex.usecases.use_case import UseCase, opt, use_case

if TYPE_CHECKING:
    from pollex.services.forget import ForgetResult


@use_case("forget")
class ForgetConversations(StoreOptions, UseCase["ForgetResult"]):
    """Take conversations out of the store for good, and name the files that quote them.

    Out of the store go texts, answers, scores, labels, calls and replies, prompts and originals of
    placeholders, with the cache of vectors; the files are written anew, so that no free page keeps
    them. A user is known by the group field of the log, or by a field such as `user_id` of the
    metadata.

    The store knows all files that pollex wrote; these, the FILES that you name (files and folders)
    and those beside the store are looked through. The exit code is 3 if one still quotes a
    conversation, or can't be looked into. Give --rewrite at once, or look with --dry-run first:
    afterwards the store no longer knows what to look for. The log itself is yours to change.

    \b
    Examples
      pollex forget --conversation debug-017 --dry-run
      pollex forget --user anna@example.com --rewrite
      pollex forget reports/ rubrics.json --user 4711 --rewrite --store shared/.pollex
    """

    does = "forget.forget_conversations"
    places: tuple[Path, ...] = opt(
        default=(),
        kw_only=False,
        place="argument",
        metavar="[FILES]…",
        exists=True,
    )
    # what is forgotten
    ids: tuple[str, ...] = opt(
        "Forget this conversation; repeatable.",
        default=(),
        flag="conversation",
        metavar="ID",
    )
    users: tuple[str, ...] = opt(
        "Forget all conversations of this user; repeatable.",
        default=(),
        flag="user",
        metavar="U",
    )
    # what happens to files that quote it
    rewrite: bool = opt(
        "Take quotes out of rubric sets, pages and rows that have them.",
        default=False,
    )
    dry_run: bool = opt(
        "Name the files that quote them, and change nothing.",
        default=False,
    )
