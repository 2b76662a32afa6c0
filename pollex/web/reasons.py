"""Which sentence spoke most for what was decided of a conversation, for rows of a list."""

from collections.abc import Iterable, Mapping, Sequence

from pollex.rubrics.answers import MIDDLE_OPTION_VALUE, Answer, Unanswered
from pollex.rubrics.rubric import TONE_SOURCE, Rubric
from pollex.rubrics.score import MIN_TOLD_MOVE, AnswerColumns, NetSat
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

    It is that whose answer moves the probability most, as the page of the conversation says.

    Args:
        scorer: Of the rubrics; it knows what each answer does to the score.
    """
    verdicts = {}
    for row in rows:
        if row.good is not None:
            verdicts[row.id] = row.good

    if not verdicts or not rubrics:
        return {}

    return choose_reasons(rubrics, scorer, read_answers(store, run, ids=list(verdicts)), verdicts)


def choose_reasons(
    rubrics: Sequence[Rubric],
    scorer: NetSat,
    answers: Mapping[str, Mapping[str, Answer | Unanswered]],
    verdicts: Mapping[str, bool],
) -> dict[str, str]:
    """Return the sentence that speaks most for each verdict, by conversation; of one without any, nothing.

    Args:
        answers: By conversation and rubric.
        verdicts: Whether a conversation is good.
    """
    columns = AnswerColumns.of(
        (*(rubric.id for rubric in rubrics), TONE_SOURCE),
        [list(answers_of_one.values()) for answers_of_one in answers.values()],
    )
    moves = scorer.compute_probability_moves(columns)

    reasons = {}
    for row, id_ in enumerate(answers):
        # rubrics come before the tone, which is no sentence
        for_verdict = moves[row, : len(rubrics)] * (1 if verdicts[id_] else -1)
        strongest = int(for_verdict.argmax())
        if for_verdict[strongest] < MIN_TOLD_MOVE:
            continue

        answer = columns.different[columns.index[row, strongest]]
        reasons[id_] = write_reason(rubrics[strongest], answer, scorer)

    return reasons


def write_reason(rubric: Rubric, answer: Answer | Unanswered, scorer: NetSat) -> str:
    """Return a rubric's sentence as a reason; one that doesn't hold may speak for a verdict, too."""
    if isinstance(answer, Answer) and scorer.counted(answer) > MIDDLE_OPTION_VALUE:
        return rubric.text
    return f"Not so: {rubric.text}"
