"""Fields of a log beside the turns: groups and weeks of them, on the page of calibration."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np

from pollex.measures.arrays import Bools, Floats, Ints
from pollex.measures.intervals import Figure
from pollex.rubrics.rubric_set import RubricSet
from pollex.rubrics.worth import share_of
from pollex.store.runs import Run
from pollex.web.calibrated import outside, usable
from pollex.web.lens import Lens
from pollex.web.likeness import drift_of
from pollex.web.listing import SCORING, lens_for
from pollex.web.site import NamedSet, Site

if TYPE_CHECKING:
    from pollex.measures.drift import Stability

KEPT = "SELECT id, arg_max(metadata, seq) AS metadata FROM conversations GROUP BY id"
MOST_FIELDS, MOST_WEEKS = 30, 60
LATEST = 1e11
"""Numbers over this are times in milliseconds, those under it in seconds."""

Values = Mapping[str, str]
"""By conversation."""


@dataclass(frozen=True)
class Week:
    """Conversations of one week, beside those that the rubrics were learned from.

    Attributes:
        begins: Its Monday.
        n: Conversations with a probability, whose mean is `mean`.
        seen: Share of thumbs up among labels that nothing was learned from.
        drift: How unlike NetSAT is spread; None for too few, and where the set doesn't say how it was spread.
        outside: Share whose NetSAT lies outside the range of those conversations; None where the store lacks them.
    """

    begins: date
    n: int
    mean: float
    seen: Figure
    drift: Stability | None
    outside: Figure | None


def fields_of(site: Site, run: Run, lens: Lens) -> dict[str, Values]:
    """Return the fields of a run's conversations that have one value each, by name."""

    def read() -> dict[str, Values]:
        found: dict[str, dict[str, str]] = defaultdict(dict)
        for row in site.store.ask(run.id, KEPT):
            for name, value in _flat(json.loads(row["metadata"] or "{}")):
                found[name][row["id"]] = value
        most = Counter({name: len(values) for name, values in found.items()}).most_common(MOST_FIELDS)
        return {name: found[name] for name, _ in most}

    return site.kept(("fields", lens.version), read)


def _flat(fields: Mapping[str, object], before: str = "") -> Iterator[tuple[str, str]]:
    """Yield names and values; fields within a field have both names, joined by a dot."""
    for name, value in fields.items():
        if isinstance(value, dict) and not before:
            yield from _flat(value, f"{name}.")
        elif isinstance(value, str | int | float):
            yield f"{before}{name}", str(value)


def times_among(fields: Mapping[str, Values]) -> dict[str, Values]:
    """Return the fields that hold times."""
    return {name: values for name, values in fields.items() if all(map(moment_of, [*values.values()][:50]))}


def moment_of(value: str) -> datetime | None:
    """Read a time: ISO 8601, or seconds or milliseconds since 1970; None where it is neither."""
    try:
        number = float(value)
    except ValueError:
        try:
            found = datetime.fromisoformat(value)
        except ValueError:
            return None
        return found if found.tzinfo else found.replace(tzinfo=UTC)
    seconds = number / 1000 if number > LATEST else number
    return datetime.fromtimestamp(seconds, UTC) if 1e8 < seconds < 1e10 else None


def learned_netsat(site: Site, named: NamedSet | None) -> Floats | None:
    """Return NetSAT of the conversations that a set was learned from `[n]`; None where the store doesn't have them."""
    run = next((one for one in site.runs() if named is not None and one.id == named.rubric_set.run), None)
    if run is None or run.command not in SCORING:
        return None
    lens = lens_for(site, run)
    found = lens.netsat[np.fromiter((side == "train" for side in lens.sides), bool, len(lens))]
    found = found[~np.isnan(found)]
    return found if len(found) else None


def weeks(lens: Lens, values: Values, found: RubricSet | None, learned: Floats | None) -> list[Week]:
    """Return the last weeks that a field's times lie in, the first one first.

    Args:
        learned: NetSAT of the conversations that the set was learned from `[n]`.
    """
    rows: dict[date, list[int]] = defaultdict(list)
    for id_, value in values.items():
        if (moment := moment_of(value)) is not None and id_ in lens.place:
            day = moment.astimezone(UTC).date()
            rows[day - timedelta(days=day.weekday())].append(lens.place[id_])
    told = usable(lens)
    last = sorted(rows)[-MOST_WEEKS:]
    return [_week(lens, begins, np.array(rows[begins]), told[rows[begins]], found, learned) for begins in last]


def _week(lens: Lens, begins: date, rows: Ints, told: Bools, found: RubricSet | None, learned: Floats | None) -> Week:
    p, netsat = lens.probability[rows], lens.netsat[rows]
    labels = lens.label[rows][told]
    known = p[~np.isnan(p)]
    return Week(
        begins,
        len(known),
        float(known.mean()) if len(known) else float("nan"),
        share_of(int((labels == 1).sum()), len(labels)),
        None if found is None else drift_of(netsat[~np.isnan(netsat)], found),
        None if learned is None else outside(learned, netsat),
    )
