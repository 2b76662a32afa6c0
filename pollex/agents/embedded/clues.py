"""Clues of a labeled log: signals, phrases and events that tell good conversations from bad.

A log is looked at once, and without its labels. What labels say of it can then be asked of any part
of it, as often as need be: for the set, for each fold of it, and for labels that mean nothing.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from pollex.agents.checks import explain_refusal
from pollex.agents.embedded.embedder import Embedder
from pollex.agents.embedded.events.language import ENGLISH, detect_log_language, list_stopwords
from pollex.agents.embedded.events.learning import fit_event_rubrics
from pollex.agents.embedded.events.reading import EventRubric
from pollex.agents.embedded.events.signal import make_event_signal, write_event_source
from pollex.agents.embedded.events.topics import Topics, learn_topics
from pollex.agents.embedded.evidence import (
    UNSPACED,
    get_tells,
    is_unexpected,
    make_phrase_signal,
    parse_phrase_source,
)
from pollex.agents.embedded.judge import (
    FOLDS,
    LearnedScale,
    compute_binomials,
    deal_into_folds,
    measure_separation,
)
from pollex.agents.embedded.signals import MEASURES, SIGNALS, Party, Signal, measure_marks
from pollex.agents.embedded.view import Flags, Floats, Indices, View, make_views
from pollex.conversations.conversation import Conversation
from pollex.conversations.splits import number_blocks
from pollex.prompts.domain import STOPWORDS
from pollex.rubrics.answers import LIKERT
from pollex.rubrics.learning.material import MadePool
from pollex.rubrics.learning.words import LogPhrases, contrast_classes, list_phrase_sources
from pollex.rubrics.records import LIKELY
from pollex.rubrics.rubric import Polarity, Rubric, make_content_id

PARTIES: tuple[Party, Party] = ("user", "assistant")
# one half has to show a contrast clearly, and the other one to bear it out
PICKED_Z = 2.0
HELD_Z = 1.645  # one-sided 5 %
MOST_PHRASES = 8
LONGEST_PHRASE = 3
LONGEST_PIECE = 5
FEWEST_LETTERS = 3
OPTIONS = len(LIKERT)
MOST_CANDIDATES = 20_000

_WORD = re.compile(r"\w+(?:'\w+)*")
_CALL = re.compile(r"\[tool call: [^\]\n]{1,100}\]")
"""The mark of a call, which nobody says."""
_FIGURE = re.compile(r"[\d_]")


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
    scale: LearnedScale
    typical: tuple[float, float]
    event: EventRubric | None = None

    @property
    def rubric(self) -> Rubric:
        """The rubric that asserts it."""
        text = self.signal.statement
        return Rubric(
            id=make_content_id(self.polarity, text, self.source),
            text=text,
            polarity=self.polarity,
            source=self.source,
            tells=get_tells(self.source),
        )

    def odds(self, view: View) -> float:
        return float(
            self.scale.odds(
                measure_marks(
                    self.signal.marks(view),
                    view.of(self.signal.party),
                )
            )
        )


class StudiedLog:
    """A log, looked at: all that clues are chosen by, but for the labels.

    Attributes:
        topics: Of the log.
    """

    def __init__(
        self,
        conversations: Sequence[Conversation],
        embedder: Embedder,
        seed: int = 0,
    ) -> None:
        self.conversations = conversations
        self.views = make_views(conversations, embedder, vectors=False)
        self.seed = seed
        self.language = detect_log_language(conversations)
        english = self.language == ENGLISH
        # topics are found by lists of English words
        if english:
            self.topics = learn_topics([view.moves for view in self.views])
        else:
            self.topics = Topics(())

        self._measures: dict[str, Floats] = {}

    @cached_property
    def _phrases(self) -> list[tuple[Party, list[str], Any]]:
        """Phrases of each party, and which conversations have them `[conversation, phrase]`."""
        phrases: list[tuple[Party, list[str], Any]] = []
        for party in PARTIES:
            phrases.append(
                (party, *list_frequent_phrases(party, self.views, list_stopwords(self.language)))
            )
        return phrases

    @cached_property
    def words(self) -> LogPhrases:
        """The phrases of both parties together."""
        # a quarter of a second; only `learn` needs it
        from scipy.sparse import csr_matrix, hstack

        sources = []
        for party, phrases, _ in self._phrases:
            sources.extend(list_phrase_sources(party, phrases))

        present = hstack(
            [csr_matrix(present) for *_, present in self._phrases],
            format="csr",
        )
        return LogPhrases(sources, present)

    @cached_property
    def _blocks(self) -> Indices:
        return number_blocks(self.conversations)

    def clues(self, positive: Flags, rows: Flags) -> list[Clue]:
        """Find what separates some of the conversations, in the direction that separates them more.

        Args:
            positive: Thumbs up `[conversation]`.
            rows: Which conversations are looked at `[conversation]`.
        """
        up = positive[rows]
        # what any log may have, then the phrases of this one, then its events
        signals = {f"signal:{name}": signal for name, signal in SIGNALS.items()}
        signals |= {signal.name: signal for signal in self.mined(positive, rows)}
        clues = [
            make_clue(name, signal, self.measures(name, signal)[rows], up)
            for name, signal in signals.items()
        ]
        for rubric in self.events(positive, rows):
            source = write_event_source(rubric, self.topics)
            signal = make_event_signal(source, rubric.text)
            # an event's words come from the log, and are checked like any text out of it
            if signal and not explain_refusal(rubric.text):
                clue = make_clue(
                    source,
                    signal,
                    self.measures(source, signal)[rows],
                    up,
                    rubric.polarity,
                )
                clues.append(replace(clue, event=rubric))

        return clues

    def made(self, positive: Flags, rows: Flags) -> MadePool:
        """Make the pool of some conversations, with its answers about all of them; see `clues`."""
        clues = self.clues(positive, rows)
        rubrics = [clue.rubric for clue in clues]
        # a rubric against the usual side of its source doesn't lead
        leads = np.array(
            [rubric.leads and not is_unexpected(rubric) for rubric in rubrics],
            dtype=bool,
        )
        return MadePool(rubrics, leads, self.answers(clues, positive, rows))

    def mined(self, positive: Flags, rows: Flags) -> list[Signal]:
        """Return signals for phrases that are more frequent in one class of some conversations.

        They quote what users wrote, so they pass the checks of any rubric that was made from
        conversations.
        """
        # Words alone, of a language without stop words, are no hint; what halvings prove is told in
        # any language.
        chosen = []
        for party, phrases, present in self._phrases if self.language else ():
            for column in choose_phrases(present[rows], positive[rows], phrases):
                chosen.append(f"phrase:{party}:{phrases[column]}")

        # a phrase that is found in both ways counts once
        every = dict.fromkeys([*chosen, *self.proven_words(positive, rows)])
        signals = (make_phrase_signal(*parse_phrase_source(source)) for source in every)
        return [signal for signal in signals if not explain_refusal(signal.statement)]

    def proven_words(self, positive: Flags, rows: Flags) -> list[str]:
        """Return the phrases that halvings of some conversations bear out."""
        here = np.flatnonzero(rows)
        # draws of its own, apart from others by the same seed
        rng = np.random.default_rng([self.seed, 13])
        proofs = self.words.at(here).proofs(
            positive[rows],
            self._blocks[rows],
            rng,
        )
        return [source for (source, _), proof in proofs.items() if proof.p <= LIKELY]

    def events(self, positive: Flags, rows: Flags) -> list[EventRubric]:
        """Learn the events of some conversations; none where detectors don't know the language."""
        if not self.language:
            return []

        readings = []
        for view, here in zip(self.views, rows, strict=True):
            if here:
                readings.append(view.reading("", self.topics))

        return fit_event_rubrics(
            readings,
            positive[rows],
            self.topics,
            np.random.default_rng(self.seed),
        )

    def measures(self, source: str, signal: Signal) -> Floats:
        """Return the measures of a signal `[conversation, measure]`, taken once."""
        if source not in self._measures:
            rows = []
            for view in self.views:
                rows.append(measure_marks(signal.marks(view), view.of(signal.party)))
            self._measures[source] = np.array(rows).reshape(len(rows), len(MEASURES))

        return self._measures[source]

    def answers(
        self,
        clues: Sequence[Clue],
        positive: Flags,
        rows: Flags,
    ) -> Floats:
        """Answer clues as the judge does that has learned from some conversations.

        Returns:
            Probabilities `[conversation, clue, option]`; those of `rows` on scales learned without
            their own fold.
        """
        # [conversation, clue, measure]
        measures = np.stack(
            [self.measures(clue.source, clue.signal) for clue in clues],
            axis=1,
        )
        # [clue, 1], the same for all measures
        lean = np.array([clue.signal.lean for clue in clues])[:, None]
        side = np.array([1.0 if clue.polarity == "sat" else -1.0 for clue in clues])[:, None]

        # scales of all clues from some conversations, and what they say of all
        def odds(learned_from: Flags) -> Floats:
            apart, middle, spread = measure_separation(
                measures[learned_from],
                positive[learned_from],
                lean,
            )
            return LearnedScale(middle, spread, np.maximum(0.0, side * apart)).odds(measures)

        # −1 for conversations outside `rows`, which no scale has seen
        fold = np.full(len(rows), -1)
        hashes_here = []
        for c, here in zip(self.conversations, rows, strict=True):
            if here:
                hashes_here.append(c.text_hash)
        fold[rows] = deal_into_folds(
            hashes_here,
            positive[rows],
        )
        log_odds = odds(rows)
        # each fold is answered anew, by scales that were learned without it
        for number in range(FOLDS):
            if (out := fold == number).any():
                log_odds[out] = odds(rows & ~out)[out]

        return compute_binomials(1 / (1 + np.exp(-log_odds)), OPTIONS)


def make_clue(
    source: str,
    signal: Signal,
    measures: Floats,
    positive: Flags,
    known_side: Polarity | None = None,
) -> Clue:
    """Direction (unless `known`), scale and what is typical, from measures [conversation, measure]."""
    differences, middle, spread = measure_separation(measures, positive, signal.lean)
    # how much each measure speaks for a good and for a bad conversation
    good = np.maximum(0, differences)
    bad = np.maximum(0, -differences)
    polarity: Polarity = known_side or ("sat" if (good**2).sum() >= (bad**2).sum() else "dsat")
    scale = LearnedScale(middle, spread, good if polarity == "sat" else bad)
    odds_on_side = scale.odds(measures[positive if polarity == "sat" else ~positive])

    return Clue(
        source,
        signal,
        polarity,
        scale,
        (float(odds_on_side.mean()), float(odds_on_side.std()) or 1.0),
    )


def score_contrasts(present: Any, positive: Flags) -> Floats:
    """Compute z for each column; 0 if the contrast of every second conversation of a class fails on the others."""
    rank = np.where(positive, positive.cumsum(), (~positive).cumsum())  # within its class
    # every second conversation of either class, and the others
    first = contrast_classes(present[rank % 2 == 1], positive[rank % 2 == 1])
    second = contrast_classes(present[rank % 2 == 0], positive[rank % 2 == 0])
    # both halves show it in one direction, and one of them clearly
    held = (np.minimum(first, second) >= HELD_Z) | (np.maximum(first, second) <= -HELD_Z)
    picked = np.maximum(abs(first), abs(second)) >= PICKED_Z
    return np.where(held & picked, contrast_classes(present, positive), 0.0)


def list_frequent_phrases(
    party: Party,
    views: Sequence[View],
    stop: frozenset[str] = STOPWORDS,
) -> tuple[list[str], Any]:
    """List the phrases of one party that often occur, and which conversations have them `[conversation, phrase]`."""
    # a second; only `learn` needs it
    from sklearn.feature_extraction.text import CountVectorizer

    # the mark of a call is nobody's words
    turns_of_party = []
    for view in views:
        turns_of_party.append([_CALL.sub("\n", view.texts[turn]) for turn in view.of(party)])

    # in 4 % of the conversations, and in four at least
    least = max(4, round(0.04 * len(views)))
    counter = CountVectorizer(
        analyzer=partial(collect_phrases, stop=stop),
        binary=True,
        min_df=least,
        max_features=MOST_CANDIDATES,
    )
    try:
        present = counter.fit_transform(turns_of_party).tocsr()
    except ValueError:  # no phrase in so many conversations
        return [], np.zeros((len(views), 0))

    return list(counter.get_feature_names_out()), present


def choose_phrases(
    present: Any,
    positive: Flags,
    phrases: Sequence[str],
) -> list[int]:
    """Choose phrases that separate the classes, the clearest first: columns of `present`."""
    z = score_contrasts(present, positive)
    chosen: dict[int, Flags] = {}
    for column in sorted(np.flatnonzero(z).tolist(), key=lambda i: (-abs(z[i]), phrases[i])):
        if len(chosen) == MOST_PHRASES:
            break
        where = present[:, [column]].toarray()[:, 0].astype(bool)
        # One of two phrases that stand in the same conversations is enough.
        if all(compute_jaccard(where, other) < 0.5 for other in chosen.values()):
            chosen[column] = where

    return list(chosen)


def collect_phrases(turns: Sequence[str], stop: frozenset[str] = STOPWORDS) -> set[str]:
    """Collect phrases of up to `LONGEST_PHRASE` words, without digits and not of stopwords alone."""
    phrases = set()
    for turn in turns:
        words = _WORD.findall(turn.lower())
        # where no spaces part words, all short pieces stand for them
        for word in words:
            if UNSPACED.search(word):
                for piece in cut_unspaced_word(word):
                    phrases.add(piece)
        for length in range(1, LONGEST_PHRASE + 1):
            for phrase in zip(*(words[i:] for i in range(length)), strict=False):
                # too short, nothing but stop words, or with a digit
                bare = sum(map(len, phrase)) < FEWEST_LETTERS
                if not (bare or stop.issuperset(phrase) or any(map(_FIGURE.search, phrase))):
                    phrases.add(" ".join(phrase))

    return phrases


def cut_unspaced_word(word: str) -> Iterator[str]:
    """Yield the pieces of a run of letters in a script without spaces between words."""
    for length in range(2, LONGEST_PIECE + 1):
        for start in range(len(word) - length + 1):
            yield word[start : start + length]


def compute_jaccard(a: Flags, b: Flags) -> float:
    """Jaccard: conversations with both over conversations with either."""
    return float((a & b).sum() / max(1, (a | b).sum()))
