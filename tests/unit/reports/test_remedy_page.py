"""What a remedy's page says got worse."""

from pollex.reports.remedies import worse_of


def test_what_fell_beyond_chance_is_said_and_lengths_in_percent() -> None:
    fell = {"name": "length", "state": "cleared", "effect": {"value": -0.084, "low": -0.14, "high": -0.026}}
    harmed = {"name": "It is polite.", "state": "harmed", "effect": {"value": -0.3, "low": -0.4, "high": -0.2}}
    noise = {"name": "It is brief.", "state": "cleared", "effect": {"value": -0.01, "low": -0.1, "high": 0.08}}
    assert worse_of([fell, harmed, noise]) == [
        "length +9% [+3%, +15%] (within its margin)",
        "It is polite. -0.30 [-0.40, -0.20] (harmed)",
    ]
