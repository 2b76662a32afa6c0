"""`pollex forget`: conversations taken out of all that is kept."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pollex.cli import session as cli
from pollex.cli.options import with_store
from pollex.services.options import RunOptions

if TYPE_CHECKING:
    from pollex.cli.session import Screen
    from pollex.services.forget import Forgotten


@click.command("forget")
@click.argument("places", nargs=-1, type=click.Path(path_type=Path, exists=True), metavar="[FILES]…")
@click.option("--conversation", "ids", multiple=True, metavar="ID", help="Forget this conversation; repeatable.")
@click.option("--user", "users", multiple=True, metavar="U", help="Forget all conversations of this user; repeatable.")
@click.option("--rewrite", is_flag=True, help="Take quotes out of rubric sets, pages and rows that have them.")
@click.option("--dry-run", is_flag=True, help="Name the files that quote them, and change nothing.")
@with_store
def command(
    places: tuple[Path, ...],
    ids: tuple[str, ...],
    users: tuple[str, ...],
    rewrite: bool,
    dry_run: bool,
    run: RunOptions,
) -> int:
    """Take conversations out of the store for good, and name the files that quote them.

    Out of the store go texts, answers, scores, labels, calls and replies, prompts and originals of placeholders, with
    the cache of vectors; the files are written anew, so that no free page keeps them. A user is known by the group
    field of the log, or by a field such as `user_id` of the metadata.

    Rubric sets, pages and rows of scores are looked for in FILES (files and folders), in the folder of the store, and
    where its runs wrote; the exit code is 3 if some still quote a conversation. Give --rewrite at once, or look with
    --dry-run first: afterwards the store no longer knows what to look for. The log itself is yours to change.

    \b
    Examples
      pollex forget --conversation debug-017 --dry-run
      pollex forget --user anna@example.com --rewrite
      pollex forget reports/ rubrics.json --user 4711 --rewrite --store shared/.pollex
    """
    from pollex.services.forget import forget_conversations

    use_case = partial(forget_conversations, run, ids, users, places, rewrite=rewrite, dry_run=dry_run)
    return cli.run(use_case, show, as_json=run.as_json)


def show(screen: Screen, found: Forgotten) -> None:
    """Print what went, and what still quotes it."""
    rows = ", ".join(f"{count} {name}" for name, count in found.gone.items())
    screen.say(f"Forgot {found.conversations} conversations ({rows or 'nothing was kept of them'})")
    for path in found.quoting:
        screen.say(f"{'Rewritten' if path in found.rewritten else 'Still quotes them'}: {path}")
    for path in found.left:
        screen.say(f"Set aside as damaged, and not looked into: {path}")
    if set(found.quoting) - set(found.rewritten):
        screen.say("--rewrite would have taken the quotes out: make these files again, or edit them", "bold")
