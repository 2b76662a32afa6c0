"""The figures on a remedy's page."""

from pollex.rooms.remedy.reports.remedies import (
    PLOT_WIDTH,
    build_effect_rows,
    describe_worse_guardrails,
)


def test_what_fell_beyond_chance_is_said_and_lengths_in_percent() -> None:
    fell = {
        "name": "length",
        "state": "cleared",
        "effect": {"value": -0.084, "low": -0.14, "high": -0.026},
    }
    harmed = {
        "name": "It is polite.",
        "state": "harmed",
        "effect": {"value": -0.3, "low": -0.4, "high": -0.2},
    }
    noise = {
        "name": "It is brief.",
        "state": "cleared",
        "effect": {"value": -0.01, "low": -0.1, "high": 0.08},
    }
    assert describe_worse_guardrails([fell, harmed, noise]) == [
        "length +9% [+3%, +15%] (within its margin)",
        "It is polite. -30 points [-40, -20] (harmed)",
    ]


def test_the_targets_own_effect_is_drawn_whole_however_large_it_is() -> None:
    large = {"effect": {"value": 0.77, "low": 0.42, "high": 1.0}}
    small = {
        "name": "cost",
        "state": "cleared",
        "effect": {"value": -0.09, "low": -0.1, "high": -0.08},
        "sealed": False,
    }
    target, cost = build_effect_rows({"primary": large, "verdict": "better", "guardrails": [small]})
    assert PLOT_WIDTH / 2 < target["low"] < target["value"] < target["high"] < PLOT_WIDTH
    assert (target["told"], target["bounds"]) == ("+77", "+42, +100")
    assert (cost["told"], cost["bounds"]) == ("+9%", "+8%, +11%"), "length and cost in percent"
    assert cost["high"] < PLOT_WIDTH / 2
