"""The report's rubrics: what they say, why they were chosen, what they rest on; and those that were dropped."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from pollex.rubrics.records import ChosenRubric, DroppedRubric
from pollex.rubrics.rubric import Quote, Reason
from pollex.rubrics.rubric_set import RubricSet
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
    reasons, scale = {reason.id: reason for reason in rubrics.reasons}, agreement_scale(means.values())
    kinds = tag("div", [_column(kind, rubrics, reasons, means, scale) for kind in KINDS], class_="kinds")
    return _about_agreement(scale) + kinds if means else kinds


def _about_agreement(scale: tuple[float, float]) -> Markup:
    low, high = (number(end, 0) for end in scale)
    return tag(
        "p",
        "Agreement is the judge's mean answer in ",
        tag("span", "positive", class_="mean positive"),
        " and in ",
        tag("span", "negative", class_="mean negative"),
        f" training conversations, from 0 (strongly disagree) to 10; drawn from {low} to {high}.",
        class_="note",
    )


def _column(
    kind: str,
    rubrics: RubricSet,
    reasons: Mapping[str, Reason],
    means: Mapping[str, MeanAnswer],
    scale: tuple[float, float],
) -> Markup:
    title, meaning = KINDS[kind]
    own = sorted(
        (rubric for rubric in rubrics.rubrics if rubric.polarity == kind),
        key=lambda rubric: rubric.choice.step if rubric.choice else len(rubrics.rubrics) + 1,
    )
    cards = tag("ol", [_card(rubric, reasons, means.get(rubric.id), scale) for rubric in own], class_="rubrics")
    return tag(
        "section",
        tag("h3", title),
        tag("p", meaning, class_="note"),
        cards if own else tag("p", "There is none of this kind.", class_="note"),
        class_=kind,
    )


def _card(
    rubric: ChosenRubric, reasons: Mapping[str, Reason], means: MeanAnswer | None, scale: tuple[float, float]
) -> Markup:
    step = str(rubric.choice.step) if rubric.choice else "+"
    return tag(
        "li",
        tag("span", step, class_="step"),
        tag("p", escape(rubric.text, TEXT), class_="rubric", dir="auto"),
        tag("dl", _choice(rubric), _support(rubric, reasons), _separation(means, scale), class_="facts"),
        tag("code", escape(rubric.id, NAME), class_="id"),
        _quotes(rubric, reasons),
    )


def _fact(name: str, *value: Child) -> Markup:
    return tag("div", tag("dt", name), tag("dd", *value))


def _choice(rubric: ChosenRubric) -> list[Markup]:
    choice = rubric.choice
    if choice is None:
        return [_fact("Chosen", "by a person")]
    chosen = _fact("Loss", number(choice.loss, 3), " with it in the set")
    if not known(choice.stability):
        return [chosen, _fact("Stability", "not measured")]
    share = percent(choice.stability)
    spoken = f"chosen in {share} of the resamples"
    return [chosen, _fact("Stability", share_bar(spoken, choice.stability), f" chosen in {share}")]


def _support(rubric: ChosenRubric, reasons: Mapping[str, Reason]) -> Markup:
    if not rubric.reason_ids:
        return _fact("Rests on", "no reason of the log")
    conversations = {reasons[id_].conversation_id for id_ in rubric.reason_ids if id_ in reasons}
    shared = f" in {count(len(conversations), 'conversation')}" if conversations else ""
    return _fact("Rests on", f"{count(len(rubric.reason_ids), 'reason')}{shared}")


def _separation(means: MeanAnswer | None, scale: tuple[float, float]) -> Markup | None:
    if means is None:
        return None
    sides = (("positive", means.positive), ("negative", means.negative))
    values = [tag("span", number(value, 1), class_=f"mean {class_}") for class_, value in sides]
    return _fact("Agreement", mean_answers(means, scale), values)


def agreement_scale(means: Iterable[MeanAnswer]) -> tuple[float, float]:
    """Whole answers that all means lie between: on all of 0 … 10 nobody could tell them apart."""
    values = [value for mean in means for value in (mean.positive, mean.negative) if known(value)]
    return (float(math.floor(min(values))), float(math.ceil(max(values)))) if values else (0.0, 10.0)


def _quotes(rubric: ChosenRubric, reasons: Mapping[str, Reason]) -> Markup | None:
    quotes = rubric.quotes
    if not quotes:
        return None
    every = [quote for id_ in rubric.reason_ids if id_ in reasons for quote in reasons[id_].quotes]
    return tag(
        "details",
        tag("summary", _counted(quotes, every)),
        [
            tag(
                "figure",
                tag("blockquote", escape(quote.text, QUOTE), dir="auto"),
                tag("figcaption", tag("code", escape(quote.conversation_id, NAME)), f", turn {quote.turn}"),
            )
            for quote in quotes
        ],
    )


def _counted(shown: Sequence[Quote], every: Sequence[Quote]) -> str:
    """How many quotes follow, and of how many: a rubric carries examples, its reasons have all of them."""
    return f"{len(shown)} of {count(len(every), 'quote')}" if len(every) > len(shown) else count(len(shown), "quote")


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
