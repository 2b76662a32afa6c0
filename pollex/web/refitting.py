"""What it takes to fit a draft again: a model that answers new words, and files for the command."""

from __future__ import annotations

import json
import os
import secrets
from pathlib import Path
from typing import Any

from pollex.conversations.conversation import messages_of
from pollex.rubrics.rubric_set import RubricSet
from pollex.services.options import ModelOptions
from pollex.store.desk import DraftRow
from pollex.store.resume import conversations_of
from pollex.store.runs import Run
from pollex.web.site import NamedSet, Site

THUMBS = {"positive": "up", "negative": "down"}


def judges_of(site: Site, named: NamedSet) -> dict[str, ModelOptions]:
    """Return the profiles of the model that answered a set's rubrics."""
    return {name: one for name, one in site.profiles.items() if one.name == named.rubric_set.judge.name}


def cost_of(options: ModelOptions, prompt: int, completion: int) -> float | None:
    """Return what tokens cost; None where prices aren't known."""
    price = options.limits.price
    return price.cost(prompt, completion) if price else None


def laid_out(site: Site, run: Run, row: DraftRow, changed: RubricSet) -> tuple[Path, bool]:
    """Write a draft and a run's conversations, in their order, where a command can read them.

    Returns:
        The folder, and whether the conversations have groups.
    """
    grouped = False
    folder = site.store.folder / "drafts" / f"{row.id}-{row.version}-{secrets.token_hex(2)}"
    folder.mkdir(parents=True, mode=0o700)
    (folder / "draft.json").write_text(changed.to_json(), encoding="utf-8")
    with os.fdopen(os.open(folder / "log.jsonl", os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="utf-8") as file:
        for one in conversations_of(site.store, run.id):
            told: dict[str, Any] = {"id": one.id, "messages": messages_of(one), "group": one.group or one.id}
            grouped |= one.group is not None
            if one.label.value in THUMBS:
                told["thumbs"] = THUMBS[one.label.value]
            file.write(json.dumps(told) + "\n")
    return folder, grouped
