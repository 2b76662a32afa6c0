"""The built-in extractor: explains labels by what separates the classes of the log."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from textwrap import shorten
from typing import Any

import numpy as np
import numpy.typing as npt

from pollex.agents.checks import refusal
from pollex.agents.embedded import NAME, events
from pollex.agents.embedded.comments import proof_of
from pollex.agents.embedded.embedder import Embedder
from pollex.agents.embedded.events.language import ENGLISH, language_of, stopwords_of
from pollex.agents.embedded.events.model import EventRubric
from pollex.agents.embedded.events.signal import event_quotes, event_signal, source_of
from pollex.agents.embedded.events.topics import Topics
from pollex.agents.embedded.evidence import phrase_signal, quotes_from
from pollex.agents.embedded.judge import Scale, separation
from pollex.agents.embedded.signals import SIGNALS, Party, Signal, measured
from pollex.agents.embedded.view import Flags, Floats, View, views_of
from pollex.agents.roles import Extraction
from pollex.conversations.conversation import Conversation, Label
from pollex.prompts.domain import STOPWORDS
from pollex.rubrics.answers import Unanswered
from pollex.rubrics.rubric import Polarity, Reason, content_id

VERSION = "3"
MOST_REASONS = 3
MOST_EVENTS = 2
"""Of the reasons: so that what users sound like stays in the pool as well."""

HAPPENED = ("event:", "rate:")


@dataclass(frozen=True)
class Clue:
    """A signal that separates the classes of this log, and in which direction.

    Attributes:
        source: As in `Reason.source`.
        typical: Mean and standard deviation of its odds among conversations of its own class.
        event: What the signal is, where it is an event of the domain.
    """

    source: str
    signal: Signal
    polarity: Polarity
    scale: Scale
    typical: tuple[float, float]
    event: EventRubric | None = None

    def odds(self, view: View) -> float:
        return float(self.scale.odds(measured(self.signal.marks(view), view.of(self.signal.party))))


class EmbeddedExtractor:
    """Finds reasons by signals, contrastive phrases and clusters of turns; no LLM."""

    def __init__(self, embedder: Embedder, seed: int = 0) -> None:
        self.embedder = embedder
        self.seed = seed
        self.clues: list[Clue] = []
        self.topics = Topics(())

    @property
    def name(self) -> str:
        return NAME

    @property
    def fingerprint(self) -> str:
        return content_id("extractor", VERSION, self.embedder.identity, str(self.seed), *SIGNALS)

    async def fit(self, training: Sequence[Conversation]) -> None:
        """Learn which signals, phrases and clusters of turns separate the labeled conversations."""
        ordered = sorted(training, key=lambda c: (c.text_hash, c.id))
        labelled = [c for c in ordered if c.label is not Label.NONE and not c.not_scorable]
        positive = np.array([c.label is Label.POSITIVE for c in labelled], dtype=bool)
        if not positive.any() or positive.all():
            self.clues = []
            return
        views = views_of(labelled, self.embedder, vectors=True)
        sources = {f"signal:{name}": signal for name, signal in SIGNALS.items()}
        language = language_of(labelled)
        sources |= {signal.name: signal for signal in mined(views, positive, self.seed, language)}
        self.clues = [*clues(sources, views, positive), *self._events(labelled, views, positive)]

    def _events(self, labelled: Sequence[Conversation], views: Sequence[View], positive: Flags) -> list[Clue]:
        """Make clues of the domain's events; their side comes from the whole log."""
        model = events.study(labelled, [c.label for c in labelled], np.random.default_rng(self.seed))
        self.topics = model.topics
        found = []
        for rubric in model.rubrics:
            source = source_of(rubric, model.topics)
            signal = event_signal(source, rubric.text)
            if signal and not refusal(rubric.text):
                clue = clue_of(source, signal, measures_of(signal, views), positive, rubric.polarity)
                found.append(replace(clue, event=rubric))
        return found

    async def extract(self, conversation: Conversation) -> Extraction | Unanswered:
        """Extract the clues that are strongest here compared to conversations of the same label."""
        if reason := conversation.not_scorable or ("no label" if conversation.label is Label.NONE else ""):
            return Unanswered(question_id="", outcome="not_scorable", detail=reason, judge=self.name)
        polarity: Polarity = "sat" if conversation.label is Label.POSITIVE else "dsat"
        view = View(conversation, self.embedder)
        found = [(clue, clue.odds(view)) for clue in self.clues if clue.polarity == polarity]
        telling = [(clue, odds) for clue, odds in found if odds > 0]
        telling.sort(key=lambda pair: (-unusual(*pair), pair[0].source))
        shown = (self._reason(clue, view) for clue, _ in telling)
        reasons = chosen_reasons(reason for reason in shown if reason)
        return Extraction(conversation_id=conversation.id, summary=summary(view, reasons), reasons=reasons)

    def _reason(self, clue: Clue, view: View) -> Reason | None:
        if clue.event:
            quotes = event_quotes(view, clue.event, self.topics)
            quotes += proof_of(view.conversation, clue.signal.statement) if quotes else ()
        else:
            quotes = quotes_from(view, clue.signal, clue.signal.marks(view))
        if not quotes:
            return None
        return Reason(
            id=content_id(view.conversation.id, view.conversation.text_hash, clue.polarity, clue.source),
            conversation_id=view.conversation.id,
            polarity=clue.polarity,
            text=clue.signal.statement,
            quotes=quotes,
            source=clue.source,
        )


def chosen_reasons(shown: Iterable[Reason]) -> tuple[Reason, ...]:
    """Choose the first reasons, events before all others, but not events alone."""
    found = list(shown)
    happened = [reason for reason in found if reason.source.startswith(HAPPENED)][:MOST_EVENTS]
    rest = [reason for reason in found if not reason.source.startswith(HAPPENED)]
    return tuple([*happened, *rest][:MOST_REASONS])


def measures_of(signal: Signal, views: Sequence[View]) -> Floats:
    """Return the measures [conversation, measure] of a signal."""
    return np.array([measured(signal.marks(view), view.of(signal.party)) for view in views])


def clues(sources: dict[str, Signal], views: Sequence[View], positive: Flags) -> list[Clue]:
    """Make a clue from each source, in the direction that separates the classes more."""
    return [clue_of(source, signal, measures_of(signal, views), positive) for source, signal in sources.items()]


def clue_of(source: str, signal: Signal, measures: Floats, positive: Flags, known: Polarity | None = None) -> Clue:
    """Direction (unless `known`), scale and what is typical, from measures [conversation, measure]."""
    differences, middle, spread = separation(measures, positive, signal.lean)
    good, bad = np.maximum(0, differences), np.maximum(0, -differences)
    polarity: Polarity = known or ("sat" if (good**2).sum() >= (bad**2).sum() else "dsat")
    scale = Scale(middle, spread, good if polarity == "sat" else bad)
    own = scale.odds(measures[positive if polarity == "sat" else ~positive])
    return Clue(source, signal, polarity, scale, (float(own.mean()), float(own.std()) or 1.0))


def unusual(clue: Clue, odds: float) -> float:
    """Return how far a clue stands out in its class, plus its log-odds.

    Ranked by the odds alone, every conversation would give the same three reasons, and the pool would stay small.
    """
    mean, deviation = clue.typical
    return (odds - mean) / deviation + odds


def summary(view: View, reasons: Sequence[Reason]) -> str:
    """Length, decisive turn and what was found there, in one sentence."""
    spoken = len(view.of("both"))
    if not reasons:
        return f"{spoken} turns; nothing in them stands out."
    turn = max(quote.turn for quote in reasons[0].quotes)
    return f"{spoken} turns; decisive is turn {turn}: {reasons[0].text}"


PARTIES: tuple[Party, Party] = ("user", "assistant")
PICKED_Z = 2.0
HELD_Z = 1.645  # one-sided 5 %
MOST_PHRASES = 8
MOST_CLUSTERS = 6
LONGEST_PHRASE = 3
LONGEST_EXAMPLE = 30
MOST_CANDIDATES = 20_000
MOST_CENTERS = 40
TURNS_PER_CLUSTER = 12

_WORD = re.compile(r"\w+(?:'\w+)*")
_FIGURE = re.compile(r"[\d_]")


@dataclass(frozen=True)
class Cluster:
    """Turns of one party that are alike.

    Attributes:
        center: [width], length 1.
        closeness: Cosine to the center from which on a turn belongs.
        example: The turn nearest to the center.
    """

    party: Party
    center: npt.NDArray[np.float32]
    closeness: float
    example: str

    def signal(self, name: str) -> Signal:
        """Make a signal that marks turns near the cluster's center."""

        def marks(view: View) -> Floats:
            out = np.zeros(len(view.texts))
            turns = view.of(self.party)
            if len(turns):
                cosines = view.vectors[turns] @ self.center
                out[turns] = np.where(cosines >= self.closeness, cosines, 0.0)
            return out

        return Signal(name, self.party, f"The {self.party} says something like “{beginning(self.example)}”.", marks)


def beginning(text: str) -> str:
    """Return the first words of a text: recognizable, but too few for personal data."""
    line = " ".join(text.split())
    short = shorten(line, LONGEST_EXAMPLE, placeholder="…")
    return short if short != "…" else f"{line[: LONGEST_EXAMPLE - 1]}…"


def mined(views: Sequence[View], positive: Flags, seed: int = 0, language: str = ENGLISH) -> list[Signal]:
    """Return signals for phrases and clusters of turns that are more frequent in one class.

    Phrases of a language without stop words would be bare words, and are left out. Signals quote what users wrote, so
    they pass the checks of any rubric that was made from conversations.
    """
    stop = stopwords_of(language)
    parties = PARTIES if language else ()
    phrases = [phrase_signal(party, one) for party in parties for one in phrases_of(party, views, positive, stop)]
    clusters = [cluster for party in PARTIES for cluster in clusters_of(party, views, positive, seed)]
    signals = phrases + [cluster.signal(f"turns:{cluster.party}:{i}") for i, cluster in enumerate(clusters)]
    return [signal for signal in signals if not refusal(signal.statement)]


def contrast(present: Any, positive: Flags) -> Floats:
    """Compute z of the difference between the classes in log-odds of presence [conversation, thing].

    Half a conversation is added to each cell. Source: Haldane 1956, doi:10.1111/j.1469-1809.1955.tb01285.x.
    """
    yes_good, yes_bad = (side.astype(np.float64) @ present + 0.5 for side in (positive, ~positive))
    no_good = positive.sum() + 1 - yes_good
    no_bad = (~positive).sum() + 1 - yes_bad
    odds = np.log(yes_good / no_good) - np.log(yes_bad / no_bad)
    return np.asarray(odds / np.sqrt(1 / yes_good + 1 / yes_bad + 1 / no_good + 1 / no_bad))


def standing_out(present: Any, positive: Flags) -> Floats:
    """Compute z for each column; 0 if one half's contrast fails on the other."""
    halves = [every_second(positive, start) for start in (0, 1)]
    first, second = (contrast(present[half], positive[half]) for half in halves)
    held = (np.minimum(first, second) >= HELD_Z) | (np.maximum(first, second) <= -HELD_Z)
    picked = np.maximum(abs(first), abs(second)) >= PICKED_Z
    return np.where(held & picked, contrast(present, positive), 0.0)


def every_second(positive: Flags, start: int) -> Flags:
    """Return a mask of every second conversation of each class."""
    half = np.zeros(len(positive), dtype=bool)
    for label in (True, False):
        half[np.flatnonzero(positive == label)[start::2]] = True
    return half


def phrases_of(party: Party, views: Sequence[View], positive: Flags, stop: frozenset[str] = STOPWORDS) -> list[str]:
    """List phrases of one party that separate the classes, the clearest first."""
    from sklearn.feature_extraction.text import CountVectorizer  # a second; only `learn` needs it

    said = [[view.texts[turn] for turn in view.of(party)] for view in views]
    least = max(4, round(0.04 * len(views)))
    counter = CountVectorizer(
        analyzer=partial(phrases_in, stop=stop), binary=True, min_df=least, max_features=MOST_CANDIDATES
    )
    try:
        present = counter.fit_transform(said).tocsc()
    except ValueError:  # no phrase in so many conversations
        return []
    z = standing_out(present.tocsr(), positive)
    phrases = counter.get_feature_names_out()
    chosen: dict[str, Flags] = {}
    for column in sorted(np.flatnonzero(z), key=lambda i: (-abs(z[i]), phrases[i])):
        if len(chosen) == MOST_PHRASES:
            break
        where = present[:, [column]].toarray()[:, 0].astype(bool)
        # One of two phrases that stand in the same conversations is enough.
        if all(overlap(where, other) < 0.5 for other in chosen.values()):
            chosen[str(phrases[column])] = where
    return list(chosen)


def phrases_in(turns: Sequence[str], stop: frozenset[str] = STOPWORDS) -> set[str]:
    """Collect phrases of up to `LONGEST_PHRASE` words, without digits and not of stopwords alone."""
    found = set()
    for turn in turns:
        words = _WORD.findall(turn.lower())
        for length in range(1, LONGEST_PHRASE + 1):
            for phrase in zip(*(words[i:] for i in range(length)), strict=False):
                if not (stop.issuperset(phrase) or any(map(_FIGURE.search, phrase))):
                    found.add(" ".join(phrase))
    return found


def overlap(a: Flags, b: Flags) -> float:
    """Jaccard: conversations with both over conversations with either."""
    return float((a & b).sum() / max(1, (a | b).sum()))


def clusters_of(party: Party, views: Sequence[View], positive: Flags, seed: int) -> list[Cluster]:
    """List clusters of one party's turns that separate the classes, the clearest first."""
    from sklearn.cluster import MiniBatchKMeans  # a second; only `learn` needs it

    where = [(i, int(turn)) for i, view in enumerate(views) for turn in view.of(party)]
    count = min(MOST_CENTERS, len(where) // TURNS_PER_CLUSTER)
    if count < 2:
        return []
    vectors = np.stack([views[i].vectors[turn] for i, turn in where])
    fitted = MiniBatchKMeans(count, random_state=seed, n_init=3, batch_size=2048).fit(vectors)
    lengths = np.linalg.norm(fitted.cluster_centers_, axis=1, keepdims=True)
    centers = (fitted.cluster_centers_ / np.maximum(lengths, 1e-9)).astype(np.float32)
    own = np.einsum("tw,tw->t", vectors, centers[fitted.labels_])
    present = np.zeros((len(views), count), dtype=bool)
    present[[i for i, _ in where], fitted.labels_] = True
    z = standing_out(present, positive)
    clusters = []
    for k in [k for k in np.argsort(-abs(z), kind="stable") if z[k]][:MOST_CLUSTERS]:
        members = np.flatnonzero(fitted.labels_ == k)
        i, turn = where[members[np.argmax(own[members])]]
        clusters.append(Cluster(party, centers[k], float(np.quantile(own[members], 0.2)), views[i].texts[turn]))
    return clusters
