"""Draw conversations at random to be labeled, to estimate a share from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pollex.conversations.conversation import Label
from pollex.conversations.logs import BadRow, Logs
from pollex.formats.fields import ReadOptions
from pollex.formats.label_files import RANDOM, drawn_of
from pollex.formats.label_requests import FORMATS, LOGGED, Row, sheet_for, write_requests
from pollex.formats.write import require_format
from pollex.graphs.context import Progress
from pollex.measures.share import FEWEST, expected_half_width
from pollex.services.label import as_logged
from pollex.services.labeled_sample import grouped
from pollex.services.logs import Sources, files_of, logs_from
from pollex.services.results import Shown, rows_told
from pollex.text import Told

if TYPE_CHECKING:
    pass  # scikit-learn comes with it, and takes a second to import


@dataclass(frozen=True, kw_only=True, repr=False)
class DrawnConversations(Shown):
    """Conversations drawn at random, to estimate a share from.

    Attributes:
        groups: Number of conversations drawn by group; empty where none was asked for.
        half_width: Half the 95 % interval that as many labels will give, by group; of all under the empty name.
        share: The share that the width is for: of the labels that there are, else one half, where it is widest.
    """

    rows: tuple[Row, ...]
    population: int
    groups: Mapping[str, int]
    half_width: Mapping[str, float]
    share: float
    out: Path | None
    bad_rows: tuple[BadRow, ...] = ()

    @property
    def headline(self) -> str:
        return f"{len(self.rows)} of {self.population} conversations, drawn at random"

    def records(self) -> Iterable[dict[str, Any]]:
        return self.rows

    @property
    def complete(self) -> bool:
        """Whether every row was read."""
        return not self.bad_rows

    def told(self) -> Told:
        """Yield what was drawn, and the interval that the labels will give."""
        number, of = len(self.rows), f"{self.population:,} conversations"
        yield f"{number:,} of {of}, drawn at random: only a random sample speaks for all."
        for name, half in self.half_width.items():
            drawn = f" of {name} ({self.groups[name]} labels)" if name else f" ({number} labels)"
            yield f"The share{drawn} will be known to about ±{half:.3f} (if it is {self.share:.2f})."
        if self.out is None:
            yield from rows_told(self.rows, ("id", "begins"))
        else:
            yield f"Wrote {self.out}. Fill in the thumbs, then: pollex share LOGS --labels {self.out}"

    def as_json(self) -> dict[str, Any]:
        shown = [{name: value for name, value in row.items() if name != LOGGED} for row in self.rows]
        widths = {"half_width": dict(self.half_width), "share": self.share}
        return {"next": shown, "population": self.population, "groups": dict(self.groups)} | widths


def draw_for_share(
    logs: Sources | Logs,
    *,
    count: int,
    by: str | None = None,
    seed: int = 0,
    out: Path | None,
    questionnaire: str | None = None,
    reading: ReadOptions,
    progress: Progress,
) -> DrawnConversations:
    """Draw conversations at random to be labeled; with `by` as many of each group.

    Every conversation without a label at random has the same chance, those with a thumb, too: to leave these out would
    make the sample one of people who don't vote.
    """
    questions = sheet_for(questionnaire, out)
    if out is not None:
        require_format(out, *files_of(logs), formats=FORMATS)
    read = logs_from(logs, reading, progress)
    open_ = [c for c in read if not c.not_scorable and not (c.label is not Label.NONE and drawn_of(c) == RANDOM)]
    rng = np.random.default_rng(seed)
    masks = {"": np.ones(len(open_), dtype=bool)} if by is None else grouped(open_, by)
    places = {
        name: rng.permutation(np.flatnonzero(mask))[:count].tolist() for name, mask in masks.items() if mask.any()
    }
    known = [c.label is Label.POSITIVE for c in read if c.label is not Label.NONE]
    share = float(np.mean(known)) if len(known) >= FEWEST else 0.5
    rows = []
    for place in dict.fromkeys(place for chosen in places.values() for place in chosen):
        one = open_[place]
        row: Row = {"id": one.id, "drawn": RANDOM, "begins": " ".join(one.opening.split())[:80]}
        rows.append(row | {LOGGED: as_logged(one, row, read.label_field, reading)})
    if out is not None:
        write_requests(out, rows, questions)
    return DrawnConversations(
        rows=tuple(rows),
        population=len(open_),
        groups={name: len(chosen) for name, chosen in places.items() if name},
        half_width={name: expected_half_width(len(chosen), share, rest=len(open_)) for name, chosen in places.items()},
        share=share,
        out=out,
        bad_rows=read.bad_rows,
    )
