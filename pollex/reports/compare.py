"""The page that compares samples: differences, by rubric, and their uncertainty."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pollex.reports.page import render


def compare_page(comparisons: Sequence[Any]) -> str:
    """Render the whole page.

    Args:
        comparisons: Results of `services.compare`, one for each sample but the first.

    Returns:
        HTML, the same for the same arguments. Write it as UTF-8.
    """
    first = comparisons[0].first
    return render(
        "compare.html", file="", titles={}, comparisons=comparisons, first=first, facts={"compared with": first}
    )
