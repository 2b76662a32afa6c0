"""Verbs have few options."""

from __future__ import annotations

import pytest
from verbs import counts

MOST = {"learn": 28, "refit": 24, "score": 17, "judge": 18, "grade": 18}
"""Maximum numbers of options; 21 for any other verb."""


@pytest.mark.parametrize(("verb", "number"), counts().items())
def test_a_verb_has_few_options(verb: str, number: int) -> None:
    assert number <= MOST.get(verb, 21)
