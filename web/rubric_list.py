"""The report's rubrics: what they say, why they were chosen, what they rest on; and those that were dropped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pollex.agents.rubrics import Quote, Reason
from pollex.graphs.rubric_set import ChosenRubric, DroppedRubric, RubricSet
from pollex.web.charts import mean_answers, share_bar
from pollex.web.markup import Child, Markup, escape, tag
from pollex.web.material import MeanAnswer
from pollex.web.words import count, known, number, percent

TEXT, QUOTE, NAME = 1000, 400, 120
"""Characters shown of a rubric, a quote, an id or file name."""

MOST_DROPPED = 400

KINDS = {
    "sat": ("Satisfaction", "SAT: the more they hold, the higher the score."),
    "dsat": ("Dissatisfaction", "DSAT: the more they hold, the lower the score."),
}


def rubric_lists(rubrics: RubricSet, means: Mapping[str, MeanAnswer]) -> Markup:
    """Both kinds side by side, each in the order of choice; rubrics that a person added come last."""
    reasons = {reason.id: reason for reason in rubrics.reasons}
    return tag("div", [_column(kind, rubrics, reasons, means) for kind in KINDS], class_="kinds")


def _column(kind: str, rubrics: RubricSet, reasons: Mapping[str, Reason], means: Mapping[str, MeanAnswer]) -> Markup:
    title, meaning = KINDS[kind]
    own = sorted(
        (rubric for rubric in rubrics.rubrics if rubric.polarity == kind),
        key=lambda rubric: rubric.choice.step if rubric.choice else len(rubrics.rubrics) + 1,
    )
    cards = tag("ol", [_card(rubric, reasons, means.get(rubric.id)) for rubric in own], class_="rubrics")
    return tag(
        "section",
        tag("h3", title),
        tag("p", meaning, class_="note"),
        cards if own else tag("p", "There is none of this kind.", class_="note"),
        class_=kind,
    )


def _card(rubric: ChosenRubric, reasons: Mapping[str, Reason], means: MeanAnswer | None) -> Markup:
    return tag(
        "li",
        tag("p", escape(rubric.text, TEXT), class_="rubric", dir="auto"),
        tag("dl", _choice(rubric), _support(rubric, reasons), _separation(means), class_="facts"),
        _quotes(rubric.quotes),
        tag("p", tag("code", escape(rubric.id, NAME)), class_="id"),
    )


def _fact(name: str, *value: Child) -> Markup:
    return tag("div", tag("dt", name), tag("dd", *value))


def _choice(rubric: ChosenRubric) -> list[Markup]:
    choice = rubric.choice
    if choice is None:
        return [_fact("Chosen", "written by a person")]
    chosen = _fact("Chosen", f"at step {choice.step}, loss {number(choice.loss, 3)}")
    if not known(choice.stability):
        return [chosen, _fact("Stability", "not measured")]
    share = percent(choice.stability)
    spoken = f"chosen in {share} of the resamples"
    return [chosen, _fact("Stability", share_bar(spoken, choice.stability), f" in {share} of resamples")]


def _support(rubric: ChosenRubric, reasons: Mapping[str, Reason]) -> Markup:
    if not rubric.reason_ids:
        return _fact("Rests on", "no reason of the log")
    conversations = {reasons[id_].conversation_id for id_ in rubric.reason_ids if id_ in reasons}
    shared = f" in {count(len(conversations), 'conversation')}" if conversations else ""
    return _fact("Rests on", f"{count(len(rubric.reason_ids), 'reason')}{shared}")


def _separation(means: MeanAnswer | None) -> Markup | None:
    if means is None:
        return None
    positive, negative = number(means.positive, 1), number(means.negative, 1)
    return _fact("Agreement", mean_answers(means), f" {positive} in positive, {negative} in negative")


def _quotes(quotes: Sequence[Quote]) -> Markup | None:
    if not quotes:
        return None
    return tag(
        "details",
        tag("summary", count(len(quotes), "quote")),
        [
            tag(
                "figure",
                tag("blockquote", escape(quote.text, QUOTE), dir="auto"),
                tag("figcaption", tag("code", escape(quote.conversation_id, NAME)), f", turn {quote.turn}"),
            )
            for quote in quotes
        ],
    )


def dropped_list(dropped: Sequence[DroppedRubric]) -> Markup:
    """Rubrics of the pool that are not in the set, folded: first those not chosen, then duplicates."""
    if not dropped:
        return tag("p", "None: every rubric of the pool was chosen.")
    groups = [
        ("not chosen", [rubric for rubric in dropped if rubric.duplicate_of is None]),
        ("the same as another", [rubric for rubric in dropped if rubric.duplicate_of is not None]),
    ]
    return tag("div", [_dropped_group(name, rows) for name, rows in groups if rows])


def _dropped_group(name: str, rows: Sequence[DroppedRubric]) -> Markup:
    beyond = len(rows) - MOST_DROPPED
    return tag(
        "details",
        tag("summary", f"{count(len(rows), 'rubric')} {name}"),
        tag("ul", [_dropped(rubric) for rubric in rows[:MOST_DROPPED]], class_="dropped"),
        tag("p", f"{beyond:,} more are in the rubric set's file.", class_="note") if beyond > 0 else None,
    )


def _dropped(rubric: DroppedRubric) -> Markup:
    facts = [
        rubric.polarity.upper(),
        count(rubric.support, "reason"),
        rubric.reason,
        f"loss {number(rubric.loss, 3)}" if known(rubric.loss) else "",
        f"chosen in {percent(rubric.stability)} of resamples" if known(rubric.stability) else "",
    ]
    return tag(
        "li",
        tag("span", escape(rubric.text, TEXT), dir="auto"),
        tag("small", " · ".join(fact for fact in facts if fact), " · ", tag("code", escape(rubric.id, NAME))),
    )
