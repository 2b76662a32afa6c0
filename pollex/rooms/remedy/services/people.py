"""What people say of pairs of replies, blind: which helps more, with a reader without rubrics as prediction."""

import hashlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from pollex.errors import BadInput
from pollex.measures.distributions import compute_wilson_bounds
from pollex.measures.share import (
    MIN_LABELS_FOR_SHARE_ESTIMATE,
    LabeledSample,
    estimate_share_from_random_labels,
)
from pollex.rooms.remedy.agents.assistant import read_keyed_lines
from pollex.rooms.remedy.conversations.reply_context import hash_to_random_order
from pollex.rooms.remedy.graphs.trial import Trial
from pollex.rooms.remedy.measures.proofs import FINE_STRATUM
from pollex.rooms.remedy.services.result import (
    SKIPPED_CHOICE,
    list_turns_before,
    read_browser_choices,
)
from pollex.rooms.remedy.services.sample import RemedyOptions
from pollex.store.store import Store
from pollex.text import JsonDict

PAIRS_FILE_NAME = "pairs.jsonl"
CHOICES_FILE_NAME = "choices.jsonl"


def get_people_folder(out: Path | None) -> Path:
    """Return where people find pairs, and write what they choose: beside the result, where there is one."""
    return Path(f"{out.with_suffix('')}-people" if out else "people")


def draw_pairs(trial: Trial, arm: int, seed: int) -> list[int]:
    """Return contexts of traffic in random order, whose replies are there under both prompts."""
    there = []
    for n in range(len(trial.contexts)):
        if trial.arrays.stratum[n] != FINE_STRATUM and trial.pair(arm, n):
            there.append(n)

    return sorted(
        there,
        key=lambda n: hash_to_random_order(f"pair {trial.contexts[n].id}", seed),
    )


def make_pair_key(trial: Trial, n: int, secret: bytes) -> str:
    """Name a pair at random, for this run alone; the name also tells which side the new reply is on."""
    return hashlib.sha256(
        secret + f"pair {trial.contexts[n].id}".encode("utf-8", "replace")
    ).hexdigest()[:16]


def order_sides(key: str, pair: tuple[str, str]) -> tuple[str, str]:
    """Return the replies as they are shown, left and right."""
    return pair[::-1] if int(key[-1], 16) % 2 else pair


def build_pair_sheet(
    trial: Trial,
    arm: int,
    options: RemedyOptions,
    secret: bytes,
) -> list[JsonDict]:
    """Return the pairs that people are shown: no prompt, arm, rubric or judge; equal replies need no look."""
    # pairs in random order, up to the number that people are to compare
    rows = []
    for n in draw_pairs(trial, arm, options.seed)[: options.people]:
        pair = trial.pair(arm, n)
        # the key decides which reply stands left
        key = make_pair_key(trial, n, secret)
        if pair and pair[0] != pair[1]:
            left, right = order_sides(key, pair)
            about = {
                "conversation": trial.contexts[n].conversation.id,
                "said": list_turns_before(trial.contexts[n]),
            }
            rows.append({"key": key, **about, "1": left, "2": right})

    # sorted by key, so that the order tells nothing
    return sorted(rows, key=lambda row: row["key"])


def read_choices_from_file(folder: Path) -> dict[str, list[str]]:
    """Read what people wrote into a file, by pair.

    Raises:
        BadInput: A line is no choice.
    """
    choices_by_key = dict[str, list[str]]()
    for key, choice, where in read_keyed_lines(folder / CHOICES_FILE_NAME, "choice"):
        if choice.upper() not in ("1", "2", "0", SKIPPED_CHOICE):
            raise BadInput(
                f"{choice!r:.20} is no choice",
                where=where,
                hint="1, 2, 0 for no difference, or S",
            )

        choices_by_key.setdefault(key, []).append(choice.upper())

    return choices_by_key


def read_choices(folder: Path, store: Store, run: str) -> dict[str, str]:
    """Read what people chose in a file and in the browser, by pair; of several the most frequent, or no difference.

    Raises:
        BadInput: A line is no choice.
    """
    # choices of the file, then of the browser
    choices_by_key = read_choices_from_file(folder)
    for key, by in read_browser_choices(store, run).items():
        choices_by_key.setdefault(key, []).extend(by.values())

    # a skipped pair says nothing
    decided = {}
    for key, every in choices_by_key.items():
        decided[key] = [choice for choice in every if choice != SKIPPED_CHOICE]

    choices: dict[str, str] = {}
    for key, every in decided.items():
        # two people who differ count as no difference; of more the most frequent choice
        if every:
            choices[key] = (
                max(every, key=every.count) if len(set(every)) < 2 or len(every) > 2 else "0"
            )

    return choices


def estimate_preference(
    trial: Trial,
    arm: int,
    choices: Mapping[str, str],
    options: RemedyOptions,
    secret: bytes,
) -> JsonDict:
    """Estimate the share that prefers the new reply, by prediction-powered inference.

    What a reader without rubrics says is the prediction, where there is one.
    """
    # the same pairs in the same order as on the sheet
    every = draw_pairs(trial, arm, options.seed)
    wins = trial.wins.get(arm)
    if wins is None:
        guess = np.full(len(trial.contexts), 0.5)
    else:
        guess = np.where(np.isnan(wins), 0.5, wins)

    # the preference of people: 1 the new reply, 0 the old one, ½ no difference
    preferences: dict[int, float] = {}
    for n in every[: options.people]:
        key, (old, new) = make_pair_key(trial, n, secret), trial.pair(arm, n) or ("", "")
        if old == new or choices.get(key) == "0":
            preferences[n] = 0.5
        elif choices.get(key) in ("1", "2"):
            preferences[n] = float(order_sides(key, ("old", "new"))[int(choices[key]) - 1] == "new")

    answered = list(preferences)
    # with fewer pairs the interval would say nothing
    if len(answered) < MIN_LABELS_FOR_SHARE_ESTIMATE:
        return {
            "value": None,
            "n": len(answered),
            "reason": f"{MIN_LABELS_FOR_SHARE_ESTIMATE - len(answered)} more pairs are needed",
        }

    if wins is not None:
        others = []
        for n in every:
            if n not in preferences:
                others.append(n)
    else:
        others = []

    # the share, corrected by the pairs that only the reader compared
    good = np.array(list(preferences.values()))
    user = trial.arrays.user
    share = estimate_share_from_random_labels(
        LabeledSample(
            good,
            guess[answered],
            guess[others],
            user[answered],
            user[others],
        )
    )
    # how often the reader without rubrics agrees where both decided
    decided = []
    for i, n in enumerate(answered):
        if good[i] != 0.5 and guess[n] != 0.5:
            decided.append((good[i] > 0.5) == (guess[n] > 0.5))

    agree = None
    if decided:
        low, high = compute_wilson_bounds(float(np.mean(decided)), len(decided))
        agree = {
            "value": float(np.mean(decided)),
            "low": float(low),
            "high": float(high),
            "n": len(decided),
        }

    record = {
        "value": share.value,
        "low": share.low,
        "high": share.high,
        "n": share.n,
        "method": share.method,
    }
    return record | {"drawn": "random", "reader_agrees": agree}
