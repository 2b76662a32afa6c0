"""The systems that RUBICON's paper compares, as settings of `learn`: what is given beside them wins.

Source: Biyani et al. 2024, tables 1 and 3. The paper's set for Bing is not ours to ship; `generic` is in its place.
"""

from __future__ import annotations

from collections.abc import Mapping

from pollex.errors import WrongUse

PAPER: Mapping[str, str | int] = {"policy": "greedy", "budget": 10, "scale": "likert-domain"}

SYSTEMS: Mapping[str, Mapping[str, str | int]] = {
    "rubicon": {**PAPER, "method": "rubicon", "without": "built-in", "prompts": "paper", "reasons": 3},
    "spur": {**PAPER, "method": "spur", "without": "ds,cdp", "prompts": "paper", "scale": "numeric"},
    "generic": {**PAPER, "rubrics_from": "generic"},
    "adapted": {**PAPER, "rubrics_from": "generic_debugging"},
}
"""Settings by name, as a user of `pollex learn` gives them."""

NEED_A_MODEL = frozenset(name for name, sets in SYSTEMS.items() if "prompts" in sets)


def require_model(system: str, model: str | None) -> None:
    """Refuse a system that asks a model where none is named.

    Raises:
        WrongUse: Says so.
    """
    if system in NEED_A_MODEL and model is None:
        raise WrongUse(f"{system} as in the paper takes a model", remedy="name one", option="model")
