"""The report on a rubric set: what was learned, figures, and their uncertainty."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pollex.agents.embedded.embedder import Embedder
from pollex.agents.embedded.evidence import evidence_of
from pollex.conversations.conversation import Conversation
from pollex.conversations.logs import NOT_RATED
from pollex.measures.classification import Assessment
from pollex.measures.intervals import FEWEST
from pollex.measures.reliability import bin_predictions
from pollex.reports.findings import FIRST, findings_of
from pollex.reports.learning_charts import bars_over
from pollex.reports.learning_data import (
    MOST_DROPPED,
    MOST_PLACES,
    LeftOut,
    MeanAnswer,
    agreement_range,
    cards_of,
    dropped_groups,
    sides_of,
    skipped_groups,
)
from pollex.reports.numbers import (
    LEVEL,
    SPACE,
    count,
    known,
    listed,
    number,
    percent,
    percent_interval,
    points,
)
from pollex.reports.page import REASON, render, short
from pollex.reports.sparks import scale_over
from pollex.rubrics.guarantee import in_words
from pollex.rubrics.learning.results import NO_EVENTS, NOT_THE_MODELS, LabelledScore
from pollex.rubrics.lint import Mark
from pollex.rubrics.records import Baseline
from pollex.rubrics.rubric import DISTILLED, Rubric, is_built_in
from pollex.rubrics.rubric_set import RubricSet
from pollex.rubrics.worth import MORE, Reach, nothing_leads
from pollex.selection.threshold import Window
from pollex.store.folder import STORE, store_option

TURNS = 25
"""Turns of the conversation that costs are told for."""

BASE, EACH, EVENTS, WORDS, VECTORS = 1.2, 0.03, 1.0, 0.2, 100.0
"""Milliseconds of CPU: of any conversation (reading, writing, keeping), and of it for each rubric, for events, for each
rubric that compares words, and for vectors of all turns. Measured by `benchmarks/scoring.py` on a slow core."""


def cost_of(rubrics: Sequence[Rubric]) -> str:
    """Say about what a conversation of 25 turns costs, and whether turns are embedded."""
    own = [rubric for rubric in rubrics if rubric.answered_by != DISTILLED]
    kinds = [rubric.source.partition(":")[0] for rubric in own]
    vectors = any(evidence_of(rubric, Embedder()).vectors for rubric in own)
    ms = BASE + EACH * len(rubrics) + WORDS * kinds.count("turns") + VECTORS * vectors
    ms += EVENTS * any(kind in ("event", "rate") for kind in kinds)
    embedded = "its turns embedded" if vectors else "no embedding"
    return f"about {ms:.0f} ms of CPU a conversation of {TURNS} turns, {embedded}"


CHANCE = 0.5
ASSOCIATIONS = "These are associations with thumbs; they need not be causes."
TOO_FEW = 10
"""Fewer conversations than this say nothing about probabilities."""


def learning_page(
    rubrics: RubricSet,
    scores: Sequence[LabelledScore] = (),
    skipped: Sequence[LeftOut] = (),
    *,
    means: Mapping[str, MeanAnswer] | None = None,
    conversations: Mapping[str, Conversation] | None = None,
    marks: Sequence[Mark] = (),
    path: str = "rubrics.json",
    store: str = STORE,
) -> str:
    """Render the whole page.

    Args:
        conversations: By id, those that the page names (`findings.named_in`) and whose text is at hand.
        marks: Of rubrics that are hard to judge.
        scores: Of the labeled conversations of both sides.
        skipped: What was left out, and why.
        means: By rubric id, the mean agreement in each class.
        path: Where the rubric set lies, for the commands.
        store: The folder of the run's store, for the commands.

    Returns:
        HTML, the same for the same arguments. Write it as UTF-8.
    """
    sides = sides_of(rubrics, scores)
    last, latest = list(sides.items())[-1]
    likely = latest.with_probability
    found = findings_of(rubrics, scores, conversations or {}, marks)
    return render(
        "learning.html",
        file=Path(path).name,
        rubrics=rubrics,
        found=found,
        first=FIRST,
        trust=trust(rubrics),
        associations=ASSOCIATIONS,
        first_notes=first_notes(rubrics),
        nothing="" if any(found.leading.values()) else nothing_leads(rubrics.data.thumbs, rubrics.data.down),
        verdict=verdict(rubrics),
        learned_from=learned_from(rubrics),
        roles=who_worked(rubrics),
        cautions=[*cautions(rubrics), *rubrics.notes],
        lead=rubrics.held_out or rubrics.training,
        chance=CHANCE,
        kinds={kind: cards_of(rubrics, kind, means or {}) for kind in ("sat", "dsat")},
        agreement=scale_over(*agreement_range(means.values())) if means else None,
        sides=sides,
        bars=bars_over(rubrics, sides.values()),
        last=last,
        likely=likely,
        bins=bin_predictions(likely.probability, likely.positive, likely.together) if len(likely) >= TOO_FEW else [],
        window=window_in_words(rubrics.window),
        guarantee=in_words(rubrics.guaranteed).replace(" %", f"{SPACE}%") if rubrics.guaranteed else "",
        dropped=dropped_groups(rubrics.dropped),
        skipped=skipped_groups(skipped, scores),
        most_dropped=MOST_DROPPED,
        most_places=MOST_PLACES,
        commands=commands(rubrics, path, store),
        fewest=FEWEST,
        facts=facts(rubrics),
        more_labels=more_labels(rubrics.reach),
    )


def caveats(rubrics: RubricSet) -> list[str]:
    """List what the report begins with, sentence by sentence: how far to trust the rubrics, and for what."""
    return [f"{trust(rubrics)} {ASSOCIATIONS}", *first_notes(rubrics)]


def first_notes(rubrics: RubricSet) -> list[str]:
    """Return the notes without which the rubrics would be misread."""
    return [note for note in rubrics.notes if any(words in note for words in (NO_EVENTS, NOT_THE_MODELS, NOT_RATED))]


def trust(rubrics: RubricSet) -> str:
    """Say in one sentence how far a reader may trust the rubrics."""
    held_out = rubrics.held_out
    if held_out is None:
        return (
            "Nobody knows how far to trust these rubrics: all conversations were used for learning, none for testing."
        )
    auc = held_out.auc
    if not known(auc.value):
        return f"How far to trust these rubrics could not be measured: {auc.undefined or 'there is no figure'}."
    if ahead := [
        one for one in rubrics.baselines if one.advantage and known(one.advantage.high) and one.advantage.high < 0
    ]:
        return (
            f"Take these rubrics as hints of where to look, and not for scores: {ahead[0].name} tells good "
            f"conversations from bad ones better than they do."
        )
    share = f"{percent(auc.value)} of the time"
    tested = f"{percent_interval(auc)}, measured on {rubrics.data.measured_on}"
    if not known(auc.low) or auc.low <= CHANCE:
        return (
            f"Take these rubrics as hints: of a good and a bad conversation they tell which is which {share} "
            f"({tested}), and that may be luck, as guessing has {percent(CHANCE)}."
        )
    return (
        f"These rubrics hold for new conversations: of a good and a bad one, they tell which is which {share} "
        f"({tested}; guessing has {percent(CHANCE)})."
    )


def verdict(rubrics: RubricSet) -> str:
    """Say in one sentence how well the rubrics rank."""
    held_out, auc = rubrics.held_out, (rubrics.held_out or rubrics.training).auc
    where = f"On {count(rubrics.training.n, 'conversation')} that they were learned from"
    if held_out:
        where = f"Measured on {rubrics.data.measured_on}"
    if not known(auc.value):
        return f"{where}, how well the rubrics rank could not be measured: {auc.undefined or 'there is no figure'}."
    return (
        f"{where}, the rubrics rank a positive conversation above a negative one {percent(auc.value)} of the time "
        f"({percent_interval(auc)}); chance is {percent(CHANCE)}."
        + ("" if held_out else " This is optimistic, and because nothing was held out, nobody knows by how much.")
    )


def learned_from(rubrics: RubricSet) -> str:
    """Say how many rubrics there are, from which conversations, and on which they were tested."""
    sat, dsat = (sum(rubric.polarity == kind for rubric in rubrics.rubrics) for kind in ("sat", "dsat"))
    data = rubrics.data
    tested = (
        f"measured on {data.measured_on} ({_classes(rubrics.held_out)})" if rubrics.held_out else "nothing was held out"
    )
    return (
        f"{count(len(rubrics.rubrics), 'rubric')}, {sat} of satisfaction and {dsat} of dissatisfaction, "
        f"learned from {count(data.training, 'conversation')} ({_classes(rubrics.training)}); {tested}. "
        f"{written_by(rubrics)}Domain: {short(rubrics.domain.assistant.rstrip('.'))}."
    )


def written_by(rubrics: RubricSet) -> str:
    """Say by whom the rubrics were written, in one sentence; empty where people wrote some of them."""
    own = sum(is_built_in(rubric.source) for rubric in rubrics.rubrics)
    others = sum("@" in rubric.source for rubric in rubrics.rubrics)  # a prompt at its version
    reworded = any(rubric.written not in ("", rubric.text) for rubric in rubrics.rubrics)
    if reworded or own + others < len(rubrics.rubrics):
        return ""
    if not others:
        return "A program wrote them, no LLM. "
    by = rubrics.roles.get("summarizer", rubrics.judge.name).partition(" and ")[0]
    rest = f", a program without an LLM the other {own}" if own else ""
    return f"The model {short(by)} wrote {others if own else 'them'}{rest}. "


def _classes(figures: Assessment) -> str:
    return f"{figures.positives:,} positive, {figures.negatives:,} negative"


def who_worked(rubrics: RubricSet) -> str:
    """Name the model of each role, and how often it found no reason; or say that no LLM was used."""
    names = dict.fromkeys([*rubrics.roles.values(), rubrics.judge.name])
    if rubrics.judge.built_in and all(name.startswith("built-in") for name in names):
        return (
            "Built-in (no LLM): a small sentence-embedding model and fixed rules found the reasons, wrote the rubrics, "
            "and judged, on this machine. Topics and signals of wording read English only."
        )
    by_name = {name: [role for role, who in rubrics.roles.items() if who == name] for name in names}
    work = [f"{short(name)} ({listed(list(map(short, roles)))})" if roles else name for name, roles in by_name.items()]
    told = f"Models and their roles: {listed(work)}. The judge was {short(rubrics.judge.name)}."
    if (share := rubrics.found_nothing) is None or not known(share.value):
        return told
    of = f"{percent(share.value)} of {count(share.n, 'training conversation')} ({percent_interval(share)})"
    return f"{told} The model found nothing to give as a reason in {of}."


def more_labels(reach: Reach | None) -> str:
    """Say what further labels are worth; empty where there is no curve."""
    if reach is None or not known(reach.more.value):
        return ""
    more, n = reach.more, reach.more.n
    low, value, high = (
        number(100 * each, 1, signed=True) if known(each) else "" for each in (more.low, more.value, more.high)
    )
    bounds = f"{LEVEL} {low} to {high}, " if low and high else ""
    worth = f"about {value} in 100 pairs ({bounds}n = {n})"
    return (
        f"{MORE} more labels are worth {worth}, if AUC grows as it did up to here, with the logarithm of their number."
    )


def cautions(rubrics: RubricSet) -> Iterator[str]:
    """Say what the figures don't show."""
    if rubrics.edited:
        yield "Rubrics were edited after θ was fitted: run pollex refit before scoring."
    if rubrics.held_out is None:
        return
    auc = rubrics.held_out.auc
    if known(auc.low) and auc.low <= CHANCE:
        yield "The interval includes chance: on these conversations, the rubrics may be no better than guessing."
    yield from filter(None, map(_comparison, rubrics.baselines))


def _comparison(baseline: Baseline) -> str:
    gain = baseline.advantage
    if gain is None or baseline.name == "constant" or not (known(gain.low) and known(gain.high)):
        return ""
    bounds = f"{LEVEL} {points(gain.low)} to {points(gain.high)}"
    by = f"a difference of {points(gain.value)} in 100 pairs ({bounds})"
    if gain.low > 0:
        return f"The rubrics rank better than {baseline.name}: {by}."
    if gain.high < 0:
        return f"{baseline.name} ranks better than the rubrics: {by}."
    return f"It is not clear whether the rubrics rank better than {baseline.name}: {by}."


def window_in_words(window: Window) -> str:
    """Say in plain words what the uncertainty window promises."""
    precision = percent(window.precision)
    if window.lower is None and window.upper is None:
        return f"No threshold is right {precision} of the time where it was fitted: every score is uncertain."
    if window.lower is None:
        return f"A score over {number(window.upper, 1)} is confidently positive; none is confidently negative."
    if window.upper is None:
        return f"A score of at most {number(window.lower, 1)} is confidently negative; none is confidently positive."
    return (
        f"The shaded window runs from {number(window.lower, 1)} to {number(window.upper, 1)}. Where it was "
        f"fitted, at least {precision} of the labels outside it are right."
    )


def commands(rubrics: RubricSet, path: str, store: str) -> dict[str, str]:
    """List what to type next; a hostile name stays one word of the shell."""
    file, first, run = (shlex.quote(short(name, REASON)) for name in (path, rubrics.rubrics[0].id, rubrics.run))
    kept = store_option(short(store, REASON))
    return {
        "Score new conversations": f"pollex score LOGS --rubrics {file} --out scores.parquet",
        "Measure the rubrics on another labeled log": f"pollex evaluate LOGS --rubrics {file}",
        "See where a rubric comes from": f"pollex why {file} {first}{kept}",
        "Edit the rubrics by hand, then fit θ again": f"pollex refit LOGS --rubrics {file}",
        "Look into the run that made them": f"pollex trace {run}{kept}",
    }


def facts(rubrics: RubricSet) -> dict[str, str]:
    """List everything that identifies the run."""
    return {
        "pollex": rubrics.pollex,
        "made": rubrics.created,
        "run": rubrics.run,
        "roles": listed([f"{role}: {who}" for role, who in rubrics.roles.items()]),
        "judge": f"{rubrics.judge.name}, fingerprint {rubrics.judge.fingerprint}",
        "data": f"fingerprint {rubrics.data.fingerprint}, seed {rubrics.data.seed}",
        "prompts": listed([f"{name} {version}" for name, version in rubrics.prompts.items()]),
        "size": f"{count(len(rubrics.rubrics), 'rubric')}, {count(len(rubrics.reasons), 'reason')}",
    } | ({"scoring": cost_of(rubrics.rubrics)} if rubrics.judge.built_in else {})
