"""Names of what may give the probability of a thumb up; what they are stands in `thumbs`, which is slow to load."""

from __future__ import annotations

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
