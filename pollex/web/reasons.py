"""Which sentence spoke most for what was decided of a conversation, for rows of a list."""

from collections.abc import Iterable, Mapping, Sequence

from pollex.rubrics.answers import MIDDLE_OPTION_VALUE, Answer, Unanswered
from pollex.rubrics.rubric import Rubric
from pollex.rubrics.score import NetSat
from pollex.store.resume import read_answers
from pollex.store.runs import Run
from pollex.store.store import Store
from pollex.web.listing import ListedConversation
from pollex.web.site import Site


def find_reasons_of_set(site: Site, run: Run, rows: Iterable[ListedConversation]) -> dict[str, str]:
    """Return which sentence of a run's rubric set spoke most for each verdict, by conversation."""
    named = site.set_of(run)
    if named is None:
        return {}

    rubric_set = named.rubric_set
    # what rubrics weigh is worked out once a set
    scorer = site.kept(("explainer", named.id), lambda: rubric_set.explainer)
    return find_reasons(site.store, run.id, rubric_set.rubrics, scorer, rows)


def find_reasons(
    store: Store,
    run: str,
    rubrics: Sequence[Rubric],
    scorer: NetSat,
    rows: Iterable[ListedConversation],
) -> dict[str, str]:
    """Return the sentence that spoke most for each verdict, by conversation; of one without any, nothing.

    Args:
        scorer: Of the rubrics; it knows what each answer does to the score.
    """
    verdicts = {}
    for row in rows:
        if row.good is not None:
            verdicts[row.id] = row.good

    if not verdicts:
        return {}

    by_id = {rubric.id: rubric for rubric in rubrics}
    reasons = {}
    for id_, answers in read_answers(store, run, ids=list(verdicts)).items():
        text = choose_first_reason(list(answers.values()), by_id, scorer, good=verdicts[id_])
        if text:
            reasons[id_] = text

    return reasons


def choose_first_reason(
    answers: Sequence[Answer | Unanswered],
    rubrics: Mapping[str, Rubric],
    scorer: NetSat,
    *,
    good: bool,
) -> str:
    """Return the sentence that speaks most for a verdict; empty where none does."""
    side = 1 if good else -1
    # rubrics that the set doesn't have say nothing
    known = []
    for a in answers:
        if isinstance(a, Answer) and a.question_id in rubrics:
            known.append(a)

    strongest = max(known, key=lambda answer: side * scorer.move_of(answer), default=None)
    if strongest is None or side * scorer.move_of(strongest) <= 0:
        return ""

    # a sentence that doesn't hold may speak for the verdict, too
    text = rubrics[strongest.question_id].text
    if scorer.counted(strongest) > MIDDLE_OPTION_VALUE:
        return text
    return f"Not so: {text}"
