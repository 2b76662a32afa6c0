"""Rubric sets of a store: each whole, with the arrays of its calibrator, found by its run or its digest."""

import base64
import binascii
import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pollex.errors import BadCalibrator, WrongUse
from pollex.rubrics.rubric_set import RubricSet, require_arrays_matching_facts
from pollex.store.resume import list_stored_runs, read_facts_by_id
from pollex.store.rows import make_fact_row
from pollex.store.store import Store
from pollex.store.tables import FactRow, Row, dump_json, make_damage_error

ARRAYS_FACT_KIND = "arrays"
"""Kind of the facts that hold arrays, by their hash."""

MIN_DIGEST_PREFIX_CHARS = 6
"""Characters of a digest that will do."""


def make_rubric_set_rows(run: str, rubric_set: RubricSet) -> Iterator[Row]:
    """Yield a set as rows of the store; arrays first, so that no set is there without them."""
    if rubric_set.calibrator is not None and (arrays := rubric_set.arrays):
        payload = dump_json(base64.b64encode(arrays).decode("ascii"))
        yield FactRow(run, ARRAYS_FACT_KIND, hashlib.sha256(arrays).hexdigest(), payload)
    yield make_fact_row(run, "rubric_set", rubric_set.rubrics_digest, rubric_set)


DEFAULTS_OF_LATER_FIELDS = {
    "finding": "",
    "itself": False,
    "most_tokens": None,
    "roles": "any",
    "same_fact_as": "",
    "same_occasion": None,
}
"""Fields that records of a set got after stores had digests of sets, whatever record has them."""


def compute_rubric_set_digest(rubric_set: RubricSet) -> str:
    """Return the digest of a rubric set that fingerprints of scoring runs have.

    A set of before keeps its digest: fields that it didn't have yet are left out.
    """
    stored = leave_out_later_fields(rubric_set.model_dump(mode="json"))
    return hashlib.sha256(json.dumps(stored, sort_keys=True, default=str).encode()).hexdigest()[:12]


def leave_out_later_fields(value: Any) -> Any:
    """Return JSON values without the later fields that have their default."""
    if isinstance(value, list):
        return [leave_out_later_fields(part) for part in value]
    if not isinstance(value, dict):
        return value

    kept = {}
    for name, part in value.items():
        if name in DEFAULTS_OF_LATER_FIELDS and part == DEFAULTS_OF_LATER_FIELDS[name]:
            continue
        kept[name] = leave_out_later_fields(part)

    return kept


def restore_stored_arrays(store: Store, rubric_set: RubricSet) -> RubricSet:
    """Return a set with the arrays that the store has under their hash; as it is where it has none.

    Raises:
        StoreDamaged: They were changed.
    """
    if rubric_set.calibrator is None or rubric_set.has_arrays:
        return rubric_set

    # by their hash, whichever run wrote them
    digest = str(rubric_set.calibrator.facts.get("arrays_sha256"))
    rows = store.rows(
        "SELECT run FROM facts WHERE kind = ? AND id = ? LIMIT 1", [ARRAYS_FACT_KIND, digest]
    )
    if not rows:
        return rubric_set

    encoded = read_facts_by_id(store, rows[0]["run"], ARRAYS_FACT_KIND, digest)[digest]
    try:
        arrays = base64.b64decode(encoded, validate=True)
        require_arrays_matching_facts(arrays, rubric_set.calibrator.facts, str(store.folder))
    except (BadCalibrator, binascii.Error, TypeError, ValueError) as error:
        raise make_damage_error(
            str(store.folder),
            f"the arrays {digest!r:.20} of a rubric set were changed",
        ) from error

    return rubric_set.with_arrays(arrays)


@dataclass(frozen=True)
class StoredRubricSet:
    """Where a store has a rubric set.

    Attributes:
        digest: Of its rubrics, under which it is kept.
    """

    run: str
    digest: str

    def read(self, store: Store) -> RubricSet:
        """Read it, with its arrays where they are kept. Raises PollexError where it can't be read."""
        stored = read_facts_by_id(store, self.run, "rubric_set", self.digest)[self.digest]
        return restore_stored_arrays(
            store,
            RubricSet.parse(stored, where=f"{store.folder}: {self.run}"),
        )


def list_stored_rubric_sets(store: Store) -> list[StoredRubricSet]:
    """List the rubric sets of a store, the last one first."""
    rows = store.rows(
        "SELECT run, id, max(rowid) AS place FROM facts WHERE kind = 'rubric_set' GROUP BY run, id"
    )
    in_order = sorted(rows, key=lambda row: -row["place"])
    return [StoredRubricSet(row["run"], row["id"]) for row in in_order]


def find_stored_rubric_set(store: Store, name: str) -> RubricSet | None:
    """Return the set of a run, or the one whose digest begins with a name; `last` is the last one.

    Raises:
        WrongUse: Several have the name.
        PollexError: It can't be read.
    """
    # by its run first, then by its digest, then by the digest of the whole set
    every = list_stored_rubric_sets(store)
    numbers = set()
    for run in list_stored_runs(store):
        if name in (run.id, run.id.rpartition("-")[0]):
            numbers.add(run.id)

    named = []
    for stored in every:
        if name == "last" or stored.run in numbers:
            named.append(stored)

    if not named and len(name) >= MIN_DIGEST_PREFIX_CHARS:
        named = []
        for stored in every:
            if stored.run.startswith(name) or stored.digest.startswith(name):
                named.append(stored)

    if not named and re.fullmatch(r"[0-9a-f]{6,12}", name):  # as `serve` names it
        named = []
        for stored in every:
            if compute_rubric_set_digest(stored.read(store)).startswith(name):
                named.append(stored)
    if not named:
        return None

    # A run has a set of its own; with a starter it keeps two versions, of which the last counts.
    if name != "last" and len(owners := {stored.run for stored in named}) > 1:
        same = len({stored.digest for stored in named}) == 1
        if not same:
            what = f"several rubric sets are called {name!r}: those of {', '.join(sorted(owners))}"
            raise WrongUse(
                what,
                where=str(store.folder),
                hint="give more of its digest, or the run",
            )

    return named[0].read(store)
