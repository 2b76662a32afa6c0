"""Which sentence spoke most for what was decided of a conversation, for rows of a list."""

from collections.abc import Iterable, Mapping, Sequence

from pollex.rubrics.rubric import Rubric
from pollex.store.store import Store
from pollex.web.listing import Listed

MIDDLE = 0.5
"""Of an answer that neither agrees nor disagrees, as a share of the scale."""

ANSWERS = """
    SELECT conversation, question, list_dot_product(
            probabilities, list_transform(range(len(probabilities)), lambda place: place * 1.0)
        ) / (len(probabilities) - 1) AS share
    FROM (
        SELECT DISTINCT ON (conversation, question) * FROM answers WHERE list_contains(?, conversation)
        ORDER BY conversation, question, seq DESC
    )
    WHERE outcome = '' AND chosen < len(probabilities)
"""
"""How far each rubric holds, as a share of its scale; of one whose occasion never came up nothing."""


def reasons_of(
    store: Store,
    run: str,
    rubrics: Sequence[Rubric],
    rows: Iterable[Listed],
) -> dict[str, str]:
    """Return the sentence that spoke most for each verdict, by conversation; of one without any, nothing."""
    verdicts = {row.id: row.good for row in rows if row.good is not None}
    by_id = {rubric.id: rubric for rubric in rubrics}
    spoken: dict[str, dict[str, float]] = {}
    for answer in store.ask(run, ANSWERS, [list(verdicts)]) if verdicts else ():
        # rubrics that the set doesn't have say nothing
        if answer["question"] in by_id:
            shares = spoken.setdefault(answer["conversation"], {})
            shares[answer["question"]] = answer["share"] - MIDDLE

    return {
        id_: text
        for id_, shares in spoken.items()
        if (text := first_reason(shares, by_id, good=verdicts[id_]))
    }


def first_reason(
    shares: Mapping[str, float],
    rubrics: Mapping[str, Rubric],
    *,
    good: bool,
) -> str:
    """Return the sentence that speaks most for a verdict; empty where none does.

    Args:
        shares: By rubric, how far it holds beyond the middle of its scale.
    """
    side = 1 if good else -1
    # points for the verdict: a SAT rubric that holds speaks for good, a DSAT rubric against
    points = {}
    for id_, share in shares.items():
        points[id_] = side * rubrics[id_].sign * share

    best = max(points, key=points.__getitem__, default="")
    if not best or points[best] <= 0:
        return ""
    # a sentence that doesn't hold may speak for the verdict, too
    if shares[best] > 0:
        return rubrics[best].text
    return f"Not so: {rubrics[best].text}"
