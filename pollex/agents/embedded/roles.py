"""The built-in roles that learn rubrics: an extractor, a summarizer and a deduplicator, none with an LLM."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from pollex.agents.embedded import BUILT_IN_MODEL_NAME
from pollex.agents.embedded.embedder import Embedder
from pollex.agents.embedded.events.signal import quote_event_rubric
from pollex.agents.embedded.evidence import get_detector_description, quote_strongest_turns
from pollex.agents.embedded.signals import SIGNALS_BY_NAME
from pollex.agents.embedded.view import BoolArray, ConversationView
from pollex.agents.roles import ContrastingPair, Deduplication, Extraction, Summary
from pollex.conversations.conversation import Conversation, Label
from pollex.conversations.logs import flag_positive_labels, list_labeled_conversations
from pollex.rubrics.answers import Unanswered
from pollex.rubrics.rubric import Polarity, Reason, Rubric, add_reasons_to_rubric, make_content_id

if TYPE_CHECKING:
    from pollex.agents.embedded.clues import SeparatingClue, StudiedLog
    from pollex.rubrics.learning.material import MadePool
    from pollex.rubrics.learning.words import LogPhrases

MAX_REASONS_PER_CONVERSATION = 3
MAX_EVENTS_PER_CONVERSATION = 2
"""Of the reasons: so that what users sound like stays in the pool as well."""

EVENT_SOURCE_PREFIXES = ("event:", "rate:")


class EmbeddedExtractor:
    """Finds reasons by signals, contrastive phrases and events; no LLM."""

    name = BUILT_IN_MODEL_NAME

    def __init__(self, embedder: Embedder, seed: int = 0) -> None:
        self.embedder = embedder
        self.seed = seed
        self.clues: list[SeparatingClue] = []
        self.study: StudiedLog | None = None

    @property
    def fingerprint(self) -> str:
        return make_content_id(
            "extractor",
            "5",
            self.embedder.identity,
            str(self.seed),
            *SIGNALS_BY_NAME,
        )

    async def fit(self, training: Sequence[Conversation]) -> None:
        """Learn which signals, phrases and events separate the labeled conversations."""
        # sums depend on their order, in the last digit
        labelled = list_labeled_conversations(training)
        positive = flag_positive_labels(labelled)
        # where all labels are alike, nothing separates them
        if not positive.any() or positive.all():
            self.clues = []
            return

        self.study = self._study_of(labelled)
        self.clues = self.study.clues(positive, np.ones(len(labelled), dtype=bool))

    def anew(self, conversations: Sequence[Conversation], rows: BoolArray) -> MadePool:
        """Make the pool of some conversations, with its answers about all of them.

        Args:
            rows: Those that it is made of, all with a label `[conversation]`.
        """
        # the caller's order isn't that of the study
        study, order = self._studied(conversations)
        in_training = np.zeros(len(study.conversations), dtype=bool)
        in_training[order[rows]] = True
        pool = study.made(flag_positive_labels(study.conversations), in_training)
        return replace(pool, answers=pool.answers[order])

    def words(self, conversations: Sequence[Conversation]) -> LogPhrases:
        """Lay out all phrases of some conversations, in their order."""
        study, order = self._studied(conversations)
        return study.words.at(order)

    def _studied(
        self, conversations: Sequence[Conversation]
    ) -> tuple[StudiedLog, npt.NDArray[np.intp]]:
        """Return the study that has these conversations, made anew where it lacks one, and the place of each."""
        if self.study:
            place = {c.id: n for n, c in enumerate(self.study.conversations)}
        else:
            place = {}

        if self.study is None or any(c.id not in place for c in conversations):
            self.study = self._study_of(
                sorted(
                    conversations,
                    key=lambda c: (c.text_hash, c.id),
                )
            )
            place = {c.id: n for n, c in enumerate(self.study.conversations)}

        return self.study, np.array([place[c.id] for c in conversations], dtype=np.intp)

    def _study_of(self, conversations: Sequence[Conversation]) -> StudiedLog:
        # whoever judges needs none, nor what is behind it
        from pollex.agents.embedded.clues import StudiedLog

        return StudiedLog(conversations, self.embedder, self.seed)

    async def extract(self, conversation: Conversation) -> Extraction | Unanswered:
        """Extract the clues that are strongest here compared to conversations of the same label."""
        if why := conversation.not_scorable or (
            "no label" if conversation.label is Label.NONE else ""
        ):
            return Unanswered(
                question_id="",
                outcome="not_scorable",
                detail=why,
                judge=self.name,
            )

        polarity: Polarity = "sat" if conversation.label is Label.POSITIVE else "dsat"
        view = ConversationView(conversation, self.embedder)
        # clues of the label's side that speak for it in this conversation
        clues_with_odds = []
        for clue in self.clues:
            if clue.polarity == polarity:
                clues_with_odds.append((clue, clue.odds(view)))

        telling = []
        for clue, odds in clues_with_odds:
            if odds > 0:
                telling.append((rate_clue_in_class(clue, odds), clue))

        # the strongest first, equal ones by source, so that runs agree
        telling.sort(key=lambda pair: (-pair[0], pair[1].source))
        shown = []
        for _, clue in telling:
            if reason := self._reason(clue, view):
                shown.append(reason)

        # Events come before all others, but never alone.
        happened = [reason for reason in shown if reason.source.startswith(EVENT_SOURCE_PREFIXES)][
            :MAX_EVENTS_PER_CONVERSATION
        ]
        rest = [reason for reason in shown if not reason.source.startswith(EVENT_SOURCE_PREFIXES)]
        reasons = tuple([*happened, *rest][:MAX_REASONS_PER_CONVERSATION])

        return Extraction(
            conversation_id=conversation.id,
            summary=summarize_reasons(view, reasons),
            reasons=reasons,
        )

    def _reason(self, clue: SeparatingClue, view: ConversationView) -> Reason | None:
        from pollex.agents.embedded.comments import (
            quote_comment_proving_statement,  # who judges alone needs none
        )

        # an event is quoted where it happened, any other signal by its strongest turns
        if clue.event and self.study:
            quotes = quote_event_rubric(view, clue.event, self.study.topics)
            quotes += (
                quote_comment_proving_statement(view.conversation, clue.signal.statement)
                if quotes
                else ()
            )
        else:
            quotes = quote_strongest_turns(view, clue.signal, clue.signal.marks(view))

        if not quotes:
            return None

        return Reason(
            id=make_content_id(
                view.conversation.id, view.conversation.text_hash, clue.polarity, clue.source
            ),
            conversation_id=view.conversation.id,
            polarity=clue.polarity,
            text=clue.signal.statement,
            quotes=quotes,
            source=clue.source,
        )


def rate_clue_in_class(clue: SeparatingClue, odds: float) -> float:
    """Return how far a clue stands out in its class, plus its log-odds.

    Ranked by the odds alone, every conversation would give the same three reasons, and the pool
    would stay small.
    """
    mean, deviation = clue.typical
    return (odds - mean) / deviation + odds


def summarize_reasons(view: ConversationView, reasons: Sequence[Reason]) -> str:
    """Length, decisive turn and what was found there, in one sentence."""
    spoken = len(view.of("both"))
    if not reasons:
        return f"{spoken} turns; nothing in them stands out."

    turn = max(quote.turn for quote in reasons[0].quotes)
    return f"{spoken} turns; decisive is turn {turn}: {reasons[0].text}"


MIN_TOPIC_WORD_SHARE = 0.3
MAX_TOPIC_WORDS = 2


class EmbeddedSummarizer:
    """Writes rubrics from templates around what the extractor found; no LLM.

    Args:
        domain_words: Words of the domain profile; those that the quotes use enter the rubric.
    """

    name = BUILT_IN_MODEL_NAME

    def __init__(self, domain_words: Sequence[str] = ()) -> None:
        self.domain_words = tuple(domain_words)

    @property
    def fingerprint(self) -> str:
        return make_content_id("summarizer", "2", *self.domain_words)

    async def summarize(
        self,
        reasons: Sequence[Reason],
        pool: Sequence[Rubric],
        polarity: Polarity,
        pairs: Sequence[ContrastingPair] = (),  # noqa: ARG002 - a model's
        *,
        few: bool = False,  # noqa: ARG002 - likewise
    ) -> Summary | Unanswered:
        """Write one rubric for each new source; other reasons support the existing rubric."""
        by_source: defaultdict[str, list[Reason]] = defaultdict(list)
        for reason in reasons:
            by_source[reason.source].append(reason)

        # a source that the pool has makes no second rubric
        rubric_of = {}
        for rubric in pool:
            if rubric.polarity == polarity:
                rubric_of[rubric.source] = rubric

        written = []
        for source, group in by_source.items():
            if source not in rubric_of:
                written.append(self._written(source, group, polarity))

        rubrics = tuple(written)
        supported = {}
        for source, group in by_source.items():
            if source in rubric_of:
                supported[rubric_of[source].id] = tuple(group)

        return Summary(rubrics=rubrics, supported=supported)

    def _written(
        self,
        source: str,
        reasons: Sequence[Reason],
        polarity: Polarity,
    ) -> Rubric:
        text = append_topic_to_statement(
            reasons[0].text,
            # an event's sentence names its objects already
            [] if source.startswith(EVENT_SOURCE_PREFIXES) else self._topic(reasons),
        )
        return add_reasons_to_rubric(
            Rubric(
                id=make_content_id(polarity, text, source),
                text=text,
                polarity=polarity,
                source=source,
                tells=get_detector_description(source),
            ),
            reasons,
        )

    def _topic(self, reasons: Sequence[Reason]) -> list[str]:
        """Domain words that at least three in ten reasons quote, the most frequent first."""
        # the words that each reason quotes
        quoted = []
        for r in reasons:
            quoted.append(
                set(
                    re.findall(
                        r"[\w#+-]+",
                        " ".join(q.text for q in r.quotes).casefold(),
                    )
                )
            )

        counts = {}
        for word in self.domain_words:
            counts[word] = sum(word in words for words in quoted)

        frequent = []
        for word, count in counts.items():
            if count >= max(2, MIN_TOPIC_WORD_SHARE * len(reasons)):
                frequent.append(word)

        return sorted(frequent, key=lambda word: -counts[word])[:MAX_TOPIC_WORDS]


def append_topic_to_statement(statement: str, topic: Sequence[str]) -> str:
    """Append the main topic to a statement."""
    if topic:
        return f"{statement.removesuffix('.')}, mostly about {' and '.join(topic)}."
    return statement


MIN_COSINE_OF_DUPLICATES = 0.88

DISTINCT_SOURCE_PREFIXES = ("signal:", *EVENT_SOURCE_PREFIXES)
"""Sources that differ by design, however alike their sentences are."""


class EmbeddedDeduplicator:
    """Merges rubrics of one polarity with similar texts, and keeps the best supported one.

    Args:
        near: Cosine from which on two rubrics say the same thing. Neighbours of neighbours are
            merged too.
    """

    name = BUILT_IN_MODEL_NAME

    def __init__(self, embedder: Embedder, near: float = MIN_COSINE_OF_DUPLICATES) -> None:
        self.embedder = embedder
        self.near = near

    @property
    def fingerprint(self) -> str:
        return make_content_id(
            "deduplicator",
            "2",
            self.embedder.identity,
            f"{self.near:.6f}",
        )

    async def deduplicate(self, rubrics: Sequence[Rubric]) -> Deduplication:
        """Return the kept rubrics in their order, with the reasons of those merged into them."""
        from pollex.rubrics.merging import merge_rubrics, sort_rubrics_by_reason_count  # as above

        kept_rubrics: dict[str, Rubric] = {}
        merged: dict[str, str] = {}
        for group in self.groups(rubrics):
            ranked = sort_rubrics_by_reason_count(group)
            kept_rubrics[ranked[0].id] = merge_rubrics(ranked)
            merged |= {rubric.id: ranked[0].id for rubric in ranked[1:]}

        kept_in_order = []
        for r in rubrics:
            if r.id in kept_rubrics:
                kept_in_order.append(kept_rubrics[r.id])

        return Deduplication(
            kept=tuple(kept_in_order),
            merged=merged,
        )

    def groups(self, rubrics: Sequence[Rubric]) -> list[list[Rubric]]:
        """Group rubrics into connected components of near pairs of one polarity."""
        if not rubrics:
            return []

        vectors = self.embedder.embed([r.text for r in rubrics])
        groups = find_components_of_near_vectors(
            vectors,
            [r.polarity for r in rubrics],
            self.near,
            [r.source for r in rubrics],
        )
        groups_of_rubrics = []
        for group in groups:
            groups_of_rubrics.append([rubrics[i] for i in group])

        return groups_of_rubrics


def find_components_of_near_vectors(
    vectors: npt.NDArray[np.float32],
    polarities: Sequence[str],
    near: float,
    sources: Sequence[str] = (),
) -> list[list[int]]:
    """Return connected components of near vectors [rubric, width].

    Two rubrics are linked where the cosine is at least `near` and the polarity the same. Different
    signals and events are never linked: what they measure differs by design, while their sentences
    differ in a word (“at length”, “briefly”).
    """
    # near, and of one polarity
    kinds = np.array(polarities)
    linked = (vectors @ vectors.T >= near) & (kinds[:, None] == kinds[None, :])
    # rubrics from other sources have no name here, and may be linked with any
    signals = np.array(
        [
            source if source.startswith(DISTINCT_SOURCE_PREFIXES) else ""
            for source in sources or [""] * len(kinds)
        ]
    )
    linked &= (
        (signals[:, None] == signals[None, :]) | (signals[:, None] == "") | (signals[None, :] == "")
    )
    return find_connected_components(linked)


def find_connected_components(linked: npt.NDArray[np.bool_]) -> list[list[int]]:
    """Return the connected components of a symmetric matrix, each in ascending order."""
    # a quarter of a second; only `learn` needs it
    from scipy.sparse.csgraph import connected_components

    count, labels = connected_components(linked, directed=False)
    return [np.flatnonzero(labels == label).tolist() for label in range(count)]
