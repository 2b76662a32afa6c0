"""The report of `learn`: one HTML file that needs nothing else, without a script and without a web address."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from pollex.graphs.learn.results import LabelledScore
from pollex.rubrics.rubric_set import RubricSet
from pollex.store.place import STORE
from pollex.web.closing import accounts, colophon, commands, glossary
from pollex.web.figure_tables import baselines_table, figures_table
from pollex.web.headline import headline
from pollex.web.markup import Markup, tag
from pollex.web.material import MeanAnswer, Scores, Skipped
from pollex.web.page import Section, section, whole_page
from pollex.web.probability_section import probability_section
from pollex.web.rubric_list import dropped_list, rubric_lists
from pollex.web.score_plots import alphas_table, distributions, precisions


def render_report(
    rubrics: RubricSet,
    scores: Sequence[LabelledScore] = (),
    skipped: Sequence[Skipped] = (),
    *,
    means: Mapping[str, MeanAnswer] | None = None,
    path: str = "rubrics.json",
    store: str = STORE,
) -> str:
    """The whole page.

    Args:
        scores: Of the labelled conversations of both sides.
        skipped: What was left out, and why.
        means: By rubric id, how much it is agreed with in each class.
        path: Where the rubric set lies, for the commands.
        store: The folder of the run's store, likewise.

    Returns:
        HTML, the same for the same arguments. Write it as UTF-8.
    """
    parts = [
        *_learnt(rubrics, means or {}),
        *_scored(rubrics, scores),
        *_told(rubrics, scores, skipped, path, store),
    ]
    body = [headline(rubrics), _contents(parts), tag("main", [section(part) for part in parts]), colophon(rubrics)]
    return whole_page("pollex: what makes a conversation good", body, file=Path(path).name)


def _contents(parts: Sequence[Section]) -> Markup:
    links = [tag("li", tag("a", part.title, href=f"#{part.id}")) for part in parts]
    return tag("nav", tag("ul", links), aria_label="On this page")


def _table(content: Markup) -> Markup:
    return tag("div", content, class_="wide")


def _learnt(rubrics: RubricSet, means: Mapping[str, MeanAnswer]) -> list[Section]:
    compared = tag("h3", "Against something simpler") + _table(baselines_table(rubrics))
    return [
        Section(
            "figures",
            "How well they tell good from bad",
            "Training figures flatter: the rubrics were chosen on those conversations. Trust the held-out ones."
            if rubrics.held_out
            else "Nothing was held out, so there are training figures only, and they flatter.",
            _table(figures_table(rubrics)) + compared,
        ),
        Section(
            "rubrics",
            "The rubrics",
            "The number is the step at which a rubric was chosen, over both kinds: the first one separates the classes "
            "best, each next one adds most to those before it.",
            rubric_lists(rubrics, means),
        ),
    ]


def _scored(rubrics: RubricSet, scores: Sequence[LabelledScore]) -> list[Section]:
    sides = {"Training": Scores.of(scores, "training")}
    if rubrics.held_out is not None:
        sides["Held out"] = Scores.of(scores, "held_out")
    # One row alone is of an α that was given, or that a refit keeps.
    compared = " It was chosen by cross-validation on training conversations." if len(rubrics.alphas) > 1 else ""
    return [
        Section(
            "scores",
            "The scores",
            "Each conversation's NetSAT. The less both classes overlap, the better.",
            distributions(rubrics, sides),
        ),
        Section(
            "precision",
            "How precise the labels are",
            "Where both curves are high, a label at that threshold can be relied on.",
            precisions(rubrics, sides),
        ),
        Section(
            "probability",
            "How likely a conversation is positive",
            "A model, fitted to the thumbs of training conversations, turns answers into a probability."
            if rubrics.calibrator
            else "A logistic curve, fitted to training conversations, turns NetSAT into a probability.",
            probability_section(rubrics, sides),
        ),
        Section(
            "alpha",
            "How much sharpness weighs",
            f"Rubrics were chosen by {rubrics.policy}. Its α weighs how sharply scores turn from bad to good against "
            f"the distance of the classes.{compared}",
            _table(alphas_table(rubrics)),
        ),
    ]


def _told(
    rubrics: RubricSet, scores: Sequence[LabelledScore], skipped: Sequence[Skipped], path: str, store: str
) -> list[Section]:
    return [
        Section(
            "dropped",
            "What was not chosen",
            "Rubrics of the pool that are not in the set, and why.",
            dropped_list(rubrics.dropped),
        ),
        Section(
            "skipped",
            "What was skipped",
            "Where every conversation went, and what could not be used.",
            accounts(rubrics.data, scores, skipped),
        ),
        Section("next", "How to go on", "", commands(rubrics, path, store)),
        Section("words", "How to read this page", "", glossary()),
    ]
