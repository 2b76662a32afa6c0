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

from pollex.agents.checks import explain_rubric_refusal
from pollex.agents.embedded.embedder import Embedder
from pollex.agents.embedded.events.language import (
    ENGLISH_LANGUAGE_NAME,
    detect_log_language,
    list_stopwords,
)
from pollex.agents.embedded.events.learning import fit_event_rubrics
from pollex.agents.embedded.events.reading import EventRubric
from pollex.agents.embedded.events.signal import make_event_signal, write_event_source
from pollex.agents.embedded.events.topics import LogTopics, learn_topics_of_log
from pollex.agents.embedded.evidence import (
    UNSPACED_SCRIPT_REGEX,
    contradicts_usual_side,
    get_detector_description,
    make_phrase_signal,
    parse_phrase_source,
)
from pollex.agents.embedded.judge import (
    SCALE_FOLDS,
    LearnedScale,
    assign_stratified_folds,
    compute_binomial_distributions,
    measure_class_separation,
)
from pollex.agents.embedded.signals import (
    MEASURE_NAMES,
    SIGNALS_BY_NAME,
    Signal,
    SignalParty,
    summarize_marks_of_party,
)
from pollex.agents.embedded.view import (
    BoolArray,
    ConversationView,
    Floats,
    Indices,
    make_conversation_views,
)
from pollex.conversations.conversation import Conversation
from pollex.conversations.splits import number_dependent_blocks
from pollex.prompts.domain import STOPWORDS
from pollex.rubrics.answers import LIKERT_OPTIONS
from pollex.rubrics.learning.material import MadePool
from pollex.rubrics.learning.words import (
    LogPhrases,
    compute_z_of_class_difference,
    list_phrase_sources,
)
from pollex.rubrics.records import LIKELY_LEVEL
from pollex.rubrics.rubric import Polarity, Rubric, make_content_id

BOTH_PARTIES: tuple[SignalParty, SignalParty] = ("user", "assistant")
# one half has to show a contrast clearly, and the other one to bear it out
MIN_Z_OF_STRONGER_HALF = 2.0
MIN_Z_OF_WEAKER_HALF = 1.645  # one-sided 5 %
MAX_PHRASES = 8
MAX_PHRASE_WORDS = 3
MAX_UNSPACED_PIECE_CHARS = 5
MIN_PHRASE_LETTERS = 3
LIKERT_OPTION_COUNT = len(LIKERT_OPTIONS)
MAX_CANDIDATE_PHRASES = 20_000

_WORD_REGEX = re.compile(r"\w+(?:'\w+)*")
_TOOL_CALL_MARK_REGEX = re.compile(r"\[tool call: [^\]\n]{1,100}\]")
"""The mark of a call, which nobody says."""
_DIGIT_REGEX = re.compile(r"[\d_]")


@dataclass(frozen=True)
class SeparatingClue:
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
            tells=get_detector_description(self.source),
        )

    def odds(self, view: ConversationView) -> float:
        return float(
            self.scale.odds(
                summarize_marks_of_party(
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
        self.views = make_conversation_views(conversations, embedder, vectors=False)
        self.seed = seed
        self.language = detect_log_language(conversations)
        english = self.language == ENGLISH_LANGUAGE_NAME
        # topics are found by lists of English words
        if english:
            self.topics = learn_topics_of_log([view.moves for view in self.views])
        else:
            self.topics = LogTopics(())

        self._measures: dict[str, Floats] = {}

    @cached_property
    def _phrases(self) -> list[tuple[SignalParty, list[str], Any]]:
        """Phrases of each party, and which conversations have them `[conversation, phrase]`."""
        phrases: list[tuple[SignalParty, list[str], object]] = []
        for party in BOTH_PARTIES:
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
        return number_dependent_blocks(self.conversations)

    def clues(self, positive: BoolArray, rows: BoolArray) -> list[SeparatingClue]:
        """Find what separates some of the conversations, in the direction that separates them more.

        Args:
            positive: Thumbs up `[conversation]`.
            rows: Which conversations are looked at `[conversation]`.
        """
        up = positive[rows]
        # what any log may have, then the phrases of this one, then its events
        signals = {f"signal:{name}": signal for name, signal in SIGNALS_BY_NAME.items()}
        signals |= {signal.name: signal for signal in self.mined(positive, rows)}
        clues = [
            make_clue_from_measures(name, signal, self.measures(name, signal)[rows], up)
            for name, signal in signals.items()
        ]
        for rubric in self.events(positive, rows):
            source = write_event_source(rubric, self.topics)
            signal = make_event_signal(source, rubric.text)
            # an event's words come from the log, and are checked like any text out of it
            if signal and not explain_rubric_refusal(rubric.text):
                clue = make_clue_from_measures(
                    source,
                    signal,
                    self.measures(source, signal)[rows],
                    up,
                    rubric.polarity,
                )
                clues.append(replace(clue, event=rubric))

        return clues

    def made(self, positive: BoolArray, rows: BoolArray) -> MadePool:
        """Make the pool of some conversations, with its answers about all of them; see `clues`."""
        clues = self.clues(positive, rows)
        rubrics = [clue.rubric for clue in clues]
        # a rubric against the usual side of its source doesn't lead
        leads = np.array(
            [rubric.leads and not contradicts_usual_side(rubric) for rubric in rubrics],
            dtype=bool,
        )
        return MadePool(rubrics, leads, self.answers(clues, positive, rows))

    def mined(self, positive: BoolArray, rows: BoolArray) -> list[Signal]:
        """Return signals for phrases that are more frequent in one class of some conversations.

        They quote what users wrote, so they pass the checks of any rubric that was made from
        conversations.
        """
        # Words alone, of a language without stop words, are no hint; what halvings prove is told in
        # any language.
        chosen = []
        for party, phrases, present in self._phrases if self.language else ():
            for column in choose_contrastive_phrases(present[rows], positive[rows], phrases):
                chosen.append(f"phrase:{party}:{phrases[column]}")

        # a phrase that is found in both ways counts once
        every = dict.fromkeys([*chosen, *self.proven_words(positive, rows)])
        signals = (make_phrase_signal(*parse_phrase_source(source)) for source in every)
        return [signal for signal in signals if not explain_rubric_refusal(signal.statement)]

    def proven_words(self, positive: BoolArray, rows: BoolArray) -> list[str]:
        """Return the phrases that halvings of some conversations bear out."""
        here = np.flatnonzero(rows)
        # draws of its own, apart from others by the same seed
        rng = np.random.default_rng([self.seed, 13])
        proofs = self.words.at(here).proofs(
            positive[rows],
            self._blocks[rows],
            rng,
        )
        return [source for (source, _), proof in proofs.items() if proof.p <= LIKELY_LEVEL]

    def events(self, positive: BoolArray, rows: BoolArray) -> list[EventRubric]:
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
                rows.append(summarize_marks_of_party(signal.marks(view), view.of(signal.party)))
            self._measures[source] = np.array(rows).reshape(len(rows), len(MEASURE_NAMES))

        return self._measures[source]

    def answers(
        self,
        clues: Sequence[SeparatingClue],
        positive: BoolArray,
        rows: BoolArray,
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
        telling = np.array([clue.signal.telling_measures for clue in clues])  # [clue, measure]
        side = np.array([1.0 if clue.polarity == "sat" else -1.0 for clue in clues])[:, None]

        # scales of all clues from some conversations, and what they say of all
        def odds(learned_from: BoolArray) -> Floats:
            apart, middle, spread = measure_class_separation(
                measures[learned_from],
                positive[learned_from],
                lean,
            )
            return LearnedScale(middle, spread, np.maximum(0.0, side * apart * telling)).odds(
                measures
            )

        # −1 for conversations outside `rows`, which no scale has seen
        fold = np.full(len(rows), -1)
        hashes_here = []
        for c, here in zip(self.conversations, rows, strict=True):
            if here:
                hashes_here.append(c.text_hash)
        fold[rows] = assign_stratified_folds(
            hashes_here,
            positive[rows],
        )
        log_odds = odds(rows)
        # each fold is answered anew, by scales that were learned without it
        for number in range(SCALE_FOLDS):
            if (out := fold == number).any():
                log_odds[out] = odds(rows & ~out)[out]

        return compute_binomial_distributions(1 / (1 + np.exp(-log_odds)), LIKERT_OPTION_COUNT)


def make_clue_from_measures(
    source: str,
    signal: Signal,
    measures: Floats,
    positive: BoolArray,
    known_side: Polarity | None = None,
) -> SeparatingClue:
    """Direction (unless `known`), scale and what is typical, from measures [conversation, measure]."""
    differences, middle, spread = measure_class_separation(measures, positive, signal.lean)
    differences = differences * signal.telling_measures
    # how much each measure speaks for a good and for a bad conversation
    good = np.maximum(0, differences)
    bad = np.maximum(0, -differences)
    polarity: Polarity = known_side or ("sat" if (good**2).sum() >= (bad**2).sum() else "dsat")
    scale = LearnedScale(middle, spread, good if polarity == "sat" else bad)
    odds_on_side = scale.odds(measures[positive if polarity == "sat" else ~positive])

    return SeparatingClue(
        source,
        signal,
        polarity,
        scale,
        (float(odds_on_side.mean()), float(odds_on_side.std()) or 1.0),
    )


def score_class_contrasts(present: Any, positive: BoolArray) -> Floats:
    """Compute z for each column; 0 if the contrast of every second conversation of a class fails on the others."""
    rank = np.where(positive, positive.cumsum(), (~positive).cumsum())  # within its class
    # every second conversation of either class, and the others
    first = compute_z_of_class_difference(present[rank % 2 == 1], positive[rank % 2 == 1])
    second = compute_z_of_class_difference(present[rank % 2 == 0], positive[rank % 2 == 0])
    # both halves show it in one direction, and one of them clearly
    held = (np.minimum(first, second) >= MIN_Z_OF_WEAKER_HALF) | (
        np.maximum(first, second) <= -MIN_Z_OF_WEAKER_HALF
    )
    picked = np.maximum(abs(first), abs(second)) >= MIN_Z_OF_STRONGER_HALF
    return np.where(held & picked, compute_z_of_class_difference(present, positive), 0.0)


def list_frequent_phrases(
    party: SignalParty,
    views: Sequence[ConversationView],
    stop: frozenset[str] = STOPWORDS,
) -> tuple[list[str], object]:
    """List the phrases of one party that often occur, and which conversations have them `[conversation, phrase]`."""
    # a second; only `learn` needs it
    from sklearn.feature_extraction.text import CountVectorizer

    # the mark of a call is nobody's words
    turns_of_party = []
    for view in views:
        turns_of_party.append(
            [_TOOL_CALL_MARK_REGEX.sub("\n", view.texts[turn]) for turn in view.of(party)]
        )

    # in 4 % of the conversations, and in four at least
    least = max(4, round(0.04 * len(views)))
    counter = CountVectorizer(
        analyzer=partial(collect_phrases_of_turns, stop=stop),
        binary=True,
        min_df=least,
        max_features=MAX_CANDIDATE_PHRASES,
    )
    try:
        present = counter.fit_transform(turns_of_party).tocsr()
    except ValueError:  # no phrase in so many conversations
        return [], np.zeros((len(views), 0))

    return list(counter.get_feature_names_out()), present


def choose_contrastive_phrases(
    present: Any,
    positive: BoolArray,
    phrases: Sequence[str],
) -> list[int]:
    """Choose phrases that separate the classes, the clearest first: columns of `present`."""
    z = score_class_contrasts(present, positive)
    chosen: dict[int, BoolArray] = {}
    for column in sorted(np.flatnonzero(z).tolist(), key=lambda i: (-abs(z[i]), phrases[i])):
        if len(chosen) == MAX_PHRASES:
            break
        where = present[:, [column]].toarray()[:, 0].astype(bool)
        # One of two phrases that stand in the same conversations is enough.
        if all(compute_jaccard_similarity(where, other) < 0.5 for other in chosen.values()):
            chosen[column] = where

    return list(chosen)


def collect_phrases_of_turns(turns: Sequence[str], stop: frozenset[str] = STOPWORDS) -> set[str]:
    """Collect phrases of up to `MAX_PHRASE_WORDS` words, without digits and not of stopwords alone."""
    phrases = set()
    for turn in turns:
        words = _WORD_REGEX.findall(turn.lower())
        # where no spaces part words, all short pieces stand for them
        for word in words:
            if UNSPACED_SCRIPT_REGEX.search(word):
                for piece in split_unspaced_word(word):
                    phrases.add(piece)
        for length in range(1, MAX_PHRASE_WORDS + 1):
            for phrase in zip(*(words[i:] for i in range(length)), strict=False):
                # too short, nothing but stop words, or with a digit
                bare = sum(map(len, phrase)) < MIN_PHRASE_LETTERS
                if not (bare or stop.issuperset(phrase) or any(map(_DIGIT_REGEX.search, phrase))):
                    phrases.add(" ".join(phrase))

    return phrases


def split_unspaced_word(word: str) -> Iterator[str]:
    """Yield the pieces of a run of letters in a script without spaces between words."""
    for length in range(2, MAX_UNSPACED_PIECE_CHARS + 1):
        for start in range(len(word) - length + 1):
            yield word[start : start + length]


def compute_jaccard_similarity(a: BoolArray, b: BoolArray) -> float:
    """Jaccard: conversations with both over conversations with either."""
    return float((a & b).sum() / max(1, (a | b).sum()))
