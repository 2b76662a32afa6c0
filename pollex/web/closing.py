"""The report's last part: what was left out, how to go on, what the words mean, and how the page came to be."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

from pollex.graphs.learn.results import LabelledScore
from pollex.measures.resampling import FEWEST
from pollex.rubrics.records import DataRecord
from pollex.rubrics.rubric_set import RubricSet
from pollex.store.place import kept_in
from pollex.text import printable
from pollex.web.markup import Markup, escape, tag
from pollex.web.material import Skipped, has_score
from pollex.web.rubric_list import NAME
from pollex.web.words import count, listed

MOST_PLACES = 200

LONG = 300
"""Characters shown of a path, a reason or a remedy."""

GLOSSARY = [
    (
        "Rubric",
        "A plain statement about a conversation. A judge says how far it holds, from 0 (strongly disagree) to 10.",
    ),
    ("SAT, DSAT", "Rubrics of satisfaction add their answer to the score, rubrics of dissatisfaction take it away."),
    ("NetSAT", "The score: the sum of all answers with these signs. Higher is better."),
    (
        "θ (theta)",
        "The threshold, half way between the mean scores of both classes. Over it a conversation is labelled positive.",
    ),
    (
        "Uncertainty window",
        "The scores around θ that are too close to call. Outside it a score is confident.",
    ),
    (
        "Window with a guarantee",
        "A second window, which promises how often the labels on each side of it are right, and with what probability "
        "that holds. It takes more labels than the first, so a side may lack it.",
    ),
    ("Yield", "The share of conversations outside the window: those that the rubrics decide alone."),
    ("AUC", "How often a positive conversation scores over a negative one; 0.5 is chance, 1 is perfect."),
    ("Held out", "Conversations kept aside while learning. Only their figures say how new conversations will fare."),
    (
        "95\N{NO-BREAK SPACE}% interval",
        "Where the figure would mostly lie with other conversations of the same kind (bootstrap; exact at 0 and 1). "
        "Each holds by itself: of twenty intervals one misses on average. It is left out where fewer than "
        f"{FEWEST} conversations, in all or of a class, stand behind the figure; those of one group or with one text "
        "count as one.",
    ),
    ("Turn", "A message of a conversation, whoever's it is; numbered from 0."),
    (
        "Log-loss, Brier",
        "How far probabilities are from what came true: the mean of −log p of the thumb given, and of the squared gap.",
    ),
    (
        "Loss",
        "RUBICON's, of the set with a rubric in: classes that lie apart lower it, blurred precision curves raise it, "
        "weighed by α. It is told per rubric, so it rises when a weaker one joins. Some policies, separation among "
        "them, choose by a figure of their own.",
    ),
    (
        "Stability",
        "How often a rubric is chosen again on resampled training conversations; a low share: others do as well.",
    ),
]


def accounts(data: DataRecord, scores: Sequence[LabelledScore], skipped: Sequence[Skipped]) -> Markup:
    """Where every conversation went, and what was skipped by reason."""
    told = {item.where for item in skipped}
    silent = [score for score in scores if not has_score(score) and score.conversation_id not in told]
    unscored = [Skipped(score.conversation_id, f"no score: {score.outcome}") for score in silent]
    rows = [
        ("in the log", data.conversations),
        ("labelled positive", data.positives),
        ("labelled negative", data.negatives),
        ("without a label", data.unlabelled),
        ("not scorable", data.not_scorable),
        ("used for training", data.training),
        ("held out", data.held_out),
    ]
    table = tag("table", tag("tbody", [_account(*row) for row in rows]), class_="plain")
    return tag("div", table, class_="wide") + _skipped([*skipped, *unscored])


def _account(name: str, n: int) -> Markup:
    return tag("tr", tag("th", f"Conversations {name}", scope="row"), tag("td", f"{n:,}", class_="n"))


def _skipped(skipped: Sequence[Skipped]) -> Markup:
    if not skipped:
        return tag("p", "Nothing was skipped.")
    groups: dict[tuple[str, str], list[str]] = {}
    for item in skipped:
        groups.setdefault((item.reason, item.remedy), []).append(item.where)
    ranked = sorted(groups.items(), key=lambda group: -len(group[1]))
    return tag("div", [_skipped_group(*cause, places) for cause, places in ranked])


def _skipped_group(reason: str, remedy: str, places: Sequence[str]) -> Markup:
    beyond = len(places) - MOST_PLACES
    return tag(
        "details",
        tag("summary", tag("b", f"{len(places):,}"), " ", escape(reason, LONG)),
        tag("p", "What to do: ", escape(remedy, LONG)) if remedy else None,
        tag("ul", [tag("li", tag("code", escape(place, NAME))) for place in places[:MOST_PLACES]], class_="places"),
        tag("p", f"and {beyond:,} more", class_="note") if beyond > 0 else None,
    )


def commands(rubrics: RubricSet, path: str, store: str) -> Markup:
    """What to type next; the store is named where it isn't the usual one."""
    file, first, run = (_word(value) for value in (path, rubrics.rubrics[0].id, rubrics.run))
    kept = kept_in(printable(store, LONG))
    steps = [
        ("Score new conversations", f"pollex score LOGS --rubrics {file} --out scores.parquet"),
        ("See how well they do on another labelled log", f"pollex evaluate LOGS --rubrics {file}"),
        ("See where a rubric comes from", f"pollex why {file} {first}{kept}"),
        ("Edit the rubrics by hand, then fit θ again", f"pollex refit LOGS --rubrics {file}"),
        ("Look into the run that made them", f"pollex trace {run}{kept}"),
    ]
    return tag(
        "dl", [[tag("dt", what), tag("dd", tag("pre", tag("code", how)))] for what, how in steps], class_="steps"
    )


def _word(value: str) -> str:
    """A hostile name as one word of a shell that can be copied as it stands."""
    return shlex.quote(printable(value, LONG))


def glossary() -> Markup:
    """The page's words."""
    return tag("dl", [[tag("dt", word), tag("dd", meaning)] for word, meaning in GLOSSARY], class_="glossary")


def colophon(rubrics: RubricSet) -> Markup:
    """Everything that says which run this was."""
    facts: Mapping[str, str] = {
        "pollex": rubrics.pollex,
        "made": rubrics.created,
        "run": rubrics.run,
        "roles": listed([f"{role}: {who}" for role, who in rubrics.roles.items()]),
        "judge": f"{rubrics.judge.name}, fingerprint {rubrics.judge.fingerprint}",
        "data": f"fingerprint {rubrics.data.fingerprint}, seed {rubrics.data.seed}",
        "prompts": listed([f"{name} {version}" for name, version in rubrics.prompts.items()]),
        "size": f"{count(len(rubrics.rubrics), 'rubric')}, {count(len(rubrics.reasons), 'reason')}",
    }
    shown = [tag("div", tag("dt", name), tag("dd", escape(value, LONG))) for name, value in facts.items() if value]
    return tag("footer", tag("dl", shown))
