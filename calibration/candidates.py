"""Names and figures of what may give the probability of a thumb up; `thumbs`, which is slow to load, fits them."""

from dataclasses import dataclass
from typing import ClassVar

from pollex.errors import WrongUse

PLAIN_NETSAT_NAME = "NetSAT"
"""The one that learns least."""

DECORRELATED_NETSAT_NAME = "decorrelated NetSAT"
"""What the network began as in sets of before, and the linear model of grades."""

CALIBRATION_NETWORK_NAME = "calibration network"
"""What gives the probability, always, unless the user names another."""

NETWORK_STARTING_MODEL_NAME = "what the network begins as"
NETWORK_STARTING_MODEL_DESCRIPTION = (
    "the mean of ordinal mixed effects and of NetSAT with learned weights, plain and decorrelated"
)
LEAST_LOG_LOSS_CHOICE_NAME = "best"
"""Stands for the one with the least log-loss."""

CALIBRATION_MODEL_NAMES = (
    PLAIN_NETSAT_NAME,
    DECORRELATED_NETSAT_NAME,
    "NetSAT with learned weights",
    "decorrelated NetSAT with learned weights",
    "ordinal mixed effects",
    CALIBRATION_NETWORK_NAME,
)


@dataclass(frozen=True)
class CandidateScore:
    """Cross-validated figures of a candidate, by rubrics chosen without the fold.

    Attributes:
        log_loss: Mean −log p of the given thumb, in nats.
        behind: Its log-loss minus that of the best.
        error: Standard error of `behind`, over independent blocks.
        ahead: How much lower its log-loss is than that of the model that is taken; None of that
            model itself, and in sets of before.
        low: Lower end of an interval of `ahead`, which allows for all comparisons at once.
        high: Upper end.
    """

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}
    name: str
    log_loss: float
    behind: float
    error: float
    n: int
    ahead: float | None = None
    low: float | None = None
    high: float | None = None


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


def find_calibration_model_name(name: str) -> str:
    """Return the candidate of a name, however it is written, or `best`; `network` is the calibration network.

    Raises:
        WrongUse: There is none.
    """
    by_spelling = {}
    for known_name in (*CALIBRATION_MODEL_NAMES, LEAST_LOG_LOSS_CHOICE_NAME):
        by_spelling[known_name.casefold()] = known_name

    by_spelling["network"] = CALIBRATION_NETWORK_NAME
    # underscores, hyphens and capitals make no difference
    plain = " ".join(name.replace("_", " ").replace("-", " ").casefold().split())
    if plain not in by_spelling:
        others = []
        for known_name in CALIBRATION_MODEL_NAMES:
            if known_name != CALIBRATION_NETWORK_NAME:
                others.append(known_name)

        names = ", ".join(("network", LEAST_LOG_LOSS_CHOICE_NAME, *others))
        raise WrongUse(
            f"no model of the probability is called {name!r}",
            hint=f"use one of {names}",
        )

    return by_spelling[plain]
