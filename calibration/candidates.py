"""Names and figures of what may give the probability of a thumb up; `thumbs`, which is slow to load, fits them."""

from dataclasses import dataclass
from typing import ClassVar

from pollex.errors import WrongUse

PLAIN = "NetSAT"
"""The one that learns least: it is taken where there are too few labels to compare them."""

START = "decorrelated NetSAT"
"""What the network begins as."""

NETWORK = "calibration network"
BEST = "best"
"""Stands for the one with the least log-loss."""

NAMES = (
    PLAIN,
    START,
    "NetSAT with learned weights",
    "decorrelated NetSAT with learned weights",
    "ordinal mixed effects",
    NETWORK,
)


@dataclass(frozen=True)
class CandidateScore:
    """Cross-validated figures of a candidate, by rubrics chosen without the fold.

    Attributes:
        log_loss: Mean −log p of the given thumb, in nats.
        behind: Its log-loss minus that of the best.
        error: Standard error of `behind`, over independent blocks.
    """

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}
    name: str
    log_loss: float
    behind: float
    error: float
    n: int


@dataclass(frozen=True)
class LabelsPoint:
    """What the network adds with so many labels.

    Attributes:
        labels: Of each fold's training part.
        start: Log-loss of what it begins as, in nats.
        network: Its own.
        gain: How much lower.
        error: Standard error of `gain`.
    """

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}
    labels: int
    start: float
    network: float
    gain: float
    error: float


def candidate(name: str) -> str:
    """Return the candidate of a name, however it is written, or `best`; `network` is the calibration network.

    Raises:
        WrongUse: There is none.
    """
    known = {one.casefold(): one for one in (*NAMES, BEST)} | {"network": NETWORK}
    plain = " ".join(name.replace("_", " ").replace("-", " ").casefold().split())
    if plain not in known:
        names = ", ".join(("network", BEST, *(one for one in NAMES if one != NETWORK)))
        raise WrongUse(f"no model of the probability is called {name!r}", remedy=f"use one of {names}")
    return known[plain]
