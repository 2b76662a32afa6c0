"""The report's first part: what was learnt, how well it does, and how far that can be trusted."""

from __future__ import annotations

from collections.abc import Iterator

from pollex.rubrics.records import Baseline, Figure, Figures
from pollex.rubrics.rubric_set import RubricSet
from pollex.text import printable
from pollex.web.markup import Markup, tag
from pollex.web.words import count, interval, known, listed, number, percent, percent_interval, points

CHANCE = 0.5

LONGEST = 160
"""Characters shown of a name."""


def headline(rubrics: RubricSet) -> Markup:
    """Title, what it was learnt from and by whom, the verdict, and what to be careful about."""
    return tag(
        "header",
        tag("p", "pollex report", class_="eyebrow"),
        tag("h1", "What makes a conversation good, and what makes it bad"),
        tag(
            "div",
            tag(
                "div",
                tag("p", verdict(rubrics), class_="verdict"),
                tag("p", _learnt_from(rubrics), class_="lede"),
                tag("p", worker(rubrics), class_="lede"),
                _list([*cautions(rubrics), *rubrics.notes], "cautions"),
            ),
            _tiles(rubrics.held_out or rubrics.training, "held out" if rubrics.held_out else "training"),
            class_="opening",
        ),
    )


def _tiles(figures: Figures, side: str) -> Markup:
    """The three figures to remember."""
    right, level = figures.confident_accuracy, "95\N{NO-BREAK SPACE}% interval "
    rightly = f", {percent(right.value)} of them rightly" if known(right.value) else ""
    auc, accuracy, yielded = figures.auc, figures.accuracy, figures.yield_at_90
    bounds = level + interval(auc) if known(auc.low) else interval(auc)
    return tag(
        "dl",
        _tile(f"AUC, {side}", auc, number(auc.value), bounds),
        _tile(f"labelled right, {side}", accuracy, percent(accuracy.value), percent_interval(accuracy)),
        _tile(f"decided with confidence{rightly}", yielded, percent(yielded.value), percent_interval(yielded)),
        class_="tiles",
    )


def _tile(name: str, figure: Figure, shown: str, bounds: str) -> Markup:
    if not known(figure.value):
        return tag("div", tag("dt", name), tag("dd", figure.undefined or "undefined", class_="undefined"))
    return tag("div", tag("dt", name), tag("dd", shown, class_="value"), tag("dd", bounds, class_="bounds"))


def verdict(rubrics: RubricSet) -> str:
    """How well the rubrics rank, in one sentence."""
    held_out, auc = rubrics.held_out, (rubrics.held_out or rubrics.training).auc
    where = f"{held_out.n:,} held-out" if held_out else f"the {rubrics.training.n:,}"
    where = f"On {where} {'conversation' if auc.n == 1 else 'conversations'}"
    if not held_out:
        where += " that they were learnt from"
    if not known(auc.value):
        return f"{where}, how well the rubrics rank could not be measured: {auc.undefined or 'there is no figure'}."
    return (
        f"{where}, the rubrics rank a positive one over a negative one {percent(auc.value)} of the time "
        f"({percent_interval(auc)}); chance is {percent(CHANCE)}."
        + ("" if held_out else " That flatters them, and as nothing was held out nobody knows by how much.")
    )


def _learnt_from(rubrics: RubricSet) -> str:
    kinds = [sum(rubric.polarity == kind for rubric in rubrics.rubrics) for kind in ("sat", "dsat")]
    data, training = rubrics.data, rubrics.training
    tested = (
        "nothing was held out"
        if rubrics.held_out is None
        else f"tested on {data.held_out:,} others ({_classes(rubrics.held_out)})"
    )
    return (
        f"{count(len(rubrics.rubrics), 'rubric')}, {kinds[0]} of satisfaction and {kinds[1]} of dissatisfaction, "
        f"learnt from {count(data.training, 'conversation')} ({_classes(training)}); {tested}. "
        f"The domain: {printable(rubrics.domain.assistant.rstrip('.'), LONGEST)}."
    )


def _classes(figures: Figures) -> str:
    return f"{figures.positives:,} positive, {figures.negatives:,} negative"


def worker(rubrics: RubricSet) -> str:
    """Who did the work, by name."""
    judge = printable(rubrics.judge.name, LONGEST)
    roles = {printable(role, LONGEST): printable(name, LONGEST) for role, name in rubrics.roles.items()}
    names = dict.fromkeys([*roles.values(), judge])
    if rubrics.judge.kind == "embedded" and all(name.startswith("embedded") for name in names):
        return (
            "Who did the work: embedded. No LLM was used: a small sentence-embedding model and plain rules found the "
            "reasons, wrote the rubrics and judged, on this machine."
        )
    by_name = {name: [role for role, who in roles.items() if who == name] for name in names}
    work = [f"{name} ({listed(roles)})" if roles else name for name, roles in by_name.items()]
    return f"Who did the work: {listed(work)}; the rubrics were judged by {judge}."


def cautions(rubrics: RubricSet) -> Iterator[str]:
    """What the figures don't show."""
    if rubrics.edited:
        yield "Rubrics were edited after θ was fitted: fit it again (pollex refit) before scoring."
    if rubrics.held_out is None:
        return
    auc = rubrics.held_out.auc
    if known(auc.low) and auc.low <= CHANCE:
        yield "The interval includes chance: on these conversations the rubrics can't be told from guessing."
    yield from (said for said in map(_comparison, rubrics.baselines) if said)


def _comparison(baseline: Baseline) -> str:
    gain = baseline.advantage
    if gain is None or baseline.name == "constant" or not (known(gain.low) and known(gain.high)):
        return ""
    bounds = f"95\N{NO-BREAK SPACE}% interval {points(gain.low)} to {points(gain.high)}"
    by = f"a difference of {points(gain.value)} in 100 pairs ({bounds})"
    if gain.low > 0:
        return f"The rubrics rank better than {baseline.name}: {by}."
    if gain.high < 0:
        return f"{baseline.name} ranks better than the rubrics: {by}."
    return f"Whether the rubrics rank better than {baseline.name} is open: {by}."


def _list(items: list[str], class_: str) -> Markup | None:
    return tag("ul", [tag("li", item) for item in items], class_=class_) if items else None
