"""The page that compares samples: differences, by rubric, and their uncertainty."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pollex.reports.page import render


def compare_page(comparisons: Sequence[Any], verdicts: Sequence[Any] = ()) -> str:
    """Render the whole page.

    Args:
        comparisons: Results of `services.compare`, one for each sample but the first.
        verdicts: Conditions of a gate, as `services.check` decided them.

    Returns:
        HTML, the same for the same arguments. Write it as UTF-8.
    """
    first = comparisons[0].first
    facts = {"compared with": first}
    given = {"comparisons": comparisons, "verdicts": verdicts, "first": first, "facts": facts}
    return render("compare.html", file="", titles={}, **given)
