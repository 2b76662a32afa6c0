"""What a plan learns from earlier runs: what the endpoint can do, and the pool of the same log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pollex.errors import PollexError
from pollex.gateway.calls import Capabilities
from pollex.gateway.endpoint import Endpoint
from pollex.rubrics.rubric import Rubric
from pollex.runs.options import RunOptions
from pollex.runs.run import STATE_FORMAT_VERSION
from pollex.store.resume import list_stored_runs, read_settings_behind_digests, read_step_result
from pollex.store.runs import Run
from pollex.store.store import Store

SETTING_NAMES_WITHOUT_EFFECT_ON_POOL = frozenset(
    ("alpha", "also", "budget", "fills", "judge", "policy", "probability", "stability")
)
"""Parts of a learning run's fingerprint on which the pool and its answers don't depend."""


@dataclass(frozen=True)
class EarlierPool:
    """The pool of an earlier run.

    Attributes:
        run: Its id.
        rubrics: As they were judged.
        chosen: Ids of those that the run chose; empty where it didn't come so far.
        is_chosen_alike: Whether the run that is planned chooses by the same settings.
    """

    run: str
    rubrics: tuple[Rubric, ...]
    chosen: frozenset[str]
    is_chosen_alike: bool


def find_capabilities_in_earlier_runs(run: RunOptions, endpoint: Endpoint) -> Capabilities | None:
    """Return what the last run that asked this model at this address knew of it; None where there is none."""
    try:
        with Store.open(run.store, read_only=True) as store:
            for earlier in reversed(list_stored_runs(store)):
                behind = read_settings_behind_digests(store, earlier)
                is_of_endpoint = earlier.fingerprint.get("endpoint") == endpoint.shown
                if is_of_endpoint and behind.get("model") == endpoint.model:
                    return _read_capabilities(endpoint.model, behind)
    except PollexError:  # there is no store yet, or none that can be read
        return None

    return None


def _read_capabilities(model: str, behind: Mapping[str, Any]) -> Capabilities:
    able = {}
    for name, value in behind.items():
        if name.startswith("can "):
            able[name.removeprefix("can ")] = value

    return Capabilities(model, **able)


def find_pool_of_earlier_run(
    run: RunOptions,
    fingerprint: Mapping[str, str],
    place: str,
) -> EarlierPool | None:
    """Return the pool that the last run of the same log, prompts and settings wrote; None where there is none.

    Args:
        fingerprint: Of the run that is planned.
        place: Where the model is asked.
    """
    planned = {**fingerprint, "graph": STATE_FORMAT_VERSION, "endpoint": place}
    try:
        with Store.open(run.store, read_only=True) as store:
            for earlier in reversed(list_stored_runs(store)):
                is_alike = _select_fingerprint_until_judging(
                    earlier.fingerprint
                ) == _select_fingerprint_until_judging(planned)
                if earlier.command == "learn" and is_alike:
                    pool = _read_written_pool(store, earlier, planned)
                    if pool is not None:
                        return pool
    except PollexError:  # as above
        return None

    return None


def _select_fingerprint_until_judging(fingerprint: Mapping[str, str]) -> dict[str, str]:
    """Return the parts of a fingerprint on which a pool depends."""
    return {
        part: digest
        for part, digest in fingerprint.items()
        if part not in SETTING_NAMES_WITHOUT_EFFECT_ON_POOL
    }


def _read_written_pool(
    store: Store,
    run: Run,
    planned: Mapping[str, str],
) -> EarlierPool | None:
    written = read_step_result(store, run.id, "reword")
    if written is None:
        return None

    choice = read_step_result(store, run.id, "select")
    is_alike = run.fingerprint == planned
    return EarlierPool(
        run.id,
        tuple(map(Rubric.model_validate, written["kept"])),
        frozenset(choice["chosen"] if choice else ()),
        is_chosen_alike=choice is not None and is_alike,
    )
