"""A conversation as the built-in roles see it: parties, words, vectors, replies."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from math import hypot

import numpy as np
import numpy.typing as npt

from pollex.agents.embedded import BUILT_IN_MODEL_NAME
from pollex.agents.embedded.embedder import Embedder
from pollex.agents.embedded.events.patterns import PatternFiring
from pollex.agents.embedded.events.reading import (
    ConversationReading,
    find_sure_firings,
    read_events_of_conversation,
    read_moves_with_acts,
)
from pollex.agents.embedded.events.sentences import ConversationMove, stem_word
from pollex.agents.embedded.events.topics import LogTopics
from pollex.conversations.conversation import Conversation

ZIPF_OF_COMMONEST_WORDS = 7.5
"""Zipf frequency from which on a word counts next to nothing."""

MIN_WORD_WEIGHT = 0.05
_WORD_REGEX = re.compile(r"\w+(?:['’]\w+)?")


@dataclass(frozen=True, slots=True)
class WeighedStems:
    """The stems of a text, weighed by rarity.

    Attributes:
        weights: By stem.
        length: Euclidean, of the weights.
    """

    weights: dict[str, float]
    length: float


@lru_cache(maxsize=8192)
def weigh_stems_of_text(text: str) -> WeighedStems:
    """Weigh the stems of a text by how rare their words are in English."""
    weights = dict(map(stem_and_weigh_word, _WORD_REGEX.findall(text.casefold())))
    return WeighedStems(weights, hypot(*weights.values()))


@lru_cache(maxsize=65536)
def stem_and_weigh_word(word: str) -> tuple[str, float]:
    """Return the stem of a word, and its weight."""
    return stem_word(word), weigh_word_by_rarity(word)


def weigh_word_by_rarity(word: str) -> float:
    """Return the weight of a word, from 0 to 1."""
    # a fifth of a second, with its list; only what reads likeness needs it
    from wordfreq import zipf_frequency

    return max(MIN_WORD_WEIGHT, 1 - zipf_frequency(word, "en") / ZIPF_OF_COMMONEST_WORDS)


def measure_text_likeness(first: WeighedStems, second: WeighedStems) -> float:
    """Cosine of two texts, from 0 to 1."""
    shared = first.weights.keys() & second.weights.keys()
    if not shared:
        return 0.0
    # words in a fixed order, for sums depend on it in the last digit
    return sum(first.weights[word] * second.weights[word] for word in sorted(shared)) / (
        first.length * second.length
    )


class ExampleTexts:
    """Texts that others are compared with, by the words that they hold."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._lengths = [weigh_stems_of_text(text).length for text in texts]
        # by word, the texts that hold it: only words of the text in question are looked up
        self._holding: dict[str, list[tuple[int, float]]] = {}
        for place, text in enumerate(texts):
            for word, weight in weigh_stems_of_text(text).weights.items():
                self._holding.setdefault(word, []).append((place, weight))

    def nearest(self, text: str) -> float:
        """Return the highest likeness of a text to any of them."""
        terms = weigh_stems_of_text(text)
        sums = dict[int, float]()
        # in the order in which `measure_text_likeness` adds up
        for word in sorted(terms.weights.keys() & self._holding.keys()):
            weight = terms.weights[word]
            for place, other in self._holding[word]:
                sums[place] = sums.get(place, 0.0) + weight * other

        # cosines: sums over shared words, divided by both lengths
        return max(
            (total / (terms.length * self._lengths[place]) for place, total in sums.items()),
            default=0.0,
        )


Floats = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
Indices = npt.NDArray[np.intp]

# Signals read the head and the tail of a huge turn; the middle of a pasted log tells nothing of
# satisfaction.
KEPT_HEAD_CHARS_OF_TURN = 6_000
KEPT_TAIL_CHARS_OF_TURN = 2_000
MAX_EARLIER_TURNS_COMPARED = 200
"""So many earlier turns of a party are looked at for repeats: among thousands, all would take minutes."""
OMISSION_MARK = "\n…\n"


class ConversationView:
    """One conversation, looked at.

    Attributes:
        texts: One a turn, stripped, huge ones without their middle.

    Args:
        patterns: Those of the events that are looked for; None: all.
    """

    def __init__(
        self,
        conversation: Conversation,
        embedder: Embedder,
        patterns: frozenset[str] | None = None,
    ) -> None:
        self.conversation = conversation
        self.texts = [cut_middle_of_text(turn.content.strip()) for turn in conversation.turns]
        self.roles: list[str] = [turn.role for turn in conversation.turns]
        self._embedder = embedder
        self._patterns = patterns
        # both taken once: turns by party, and readings by topics
        self._places: dict[str, list[int]] = {}
        self._readings: dict[str, ConversationReading] = {}

    @cached_property
    def silent(self) -> Floats:
        """Marks of a signal that no turn carries, [turn]: zeros, the same array on each call; never written to."""
        return np.zeros(len(self.texts))

    def reading(self, lexicon: str, topics: LogTopics) -> ConversationReading:
        """Return the events that happened in it, by the topics of `lexicon`; cached."""
        if lexicon not in self._readings:
            self._readings[lexicon] = read_events_of_conversation(
                self.conversation,
                topics,
                self.moves,
                self._fired,
            )

        return self._readings[lexicon]

    @cached_property
    def moves(self) -> list[ConversationMove]:
        """Its moves, with their acts."""
        return read_moves_with_acts(self.conversation)

    @cached_property
    def _fired(self) -> list[PatternFiring]:
        return find_sure_firings(self.moves, self._patterns)

    @cached_property
    def vectors(self) -> npt.NDArray[np.float32]:
        """[turn, width], length 1; zeros for turns of other parties and turns without text."""
        spoken = self.of("both")
        vectors = self._embedder.embed([self.texts[turn] for turn in spoken])
        out = np.zeros((len(self.texts), vectors.shape[1]), dtype=np.float32)
        out[spoken] = vectors

        return out

    @cached_property
    def lowered(self) -> list[str | None]:
        """The texts in lower case; None where one has more letters than ASCII."""
        return [text.lower() if text.isascii() else None for text in self.texts]

    def of(self, party: str) -> Indices:
        """Return the indices of the turns with text of one party, or of both parties."""
        return np.array(self.places(party), dtype=np.intp)

    def places(self, party: str) -> list[int]:
        """Return what `of` does as a list, the same one on each call."""
        if party not in self._places:
            roles = ("user", "assistant") if party == "both" else (party,)
            spoken = enumerate(zip(self.roles, self.texts, strict=True))
            places = []
            for place, (role, text) in spoken:
                if role in roles and text:
                    places.append(place)
            self._places[party] = places

        return self._places[party]

    @cached_property
    def replies(self) -> list[tuple[int, int]]:
        """Each user turn with the assistant's turn that follows it at once."""
        return self.followed("user", "assistant")

    def followed(self, first: str, second: str) -> list[tuple[int, int]]:
        """Pair turns of one party with the next turn of the other; tools are skipped."""
        pairs: list[tuple[int, int]] = []
        for a, b in pairwise(self.of("both")):
            if self.roles[a] == first and self.roles[b] == second:
                pairs.append((int(a), int(b)))
        return pairs

    @cached_property
    def words(self) -> Floats:
        """Words in each turn."""
        return np.array([len(text.split()) for text in self.texts], dtype=np.float64)

    @cached_property
    def terms(self) -> list[WeighedStems]:
        """Words of each turn, weighed by rarity."""
        return [weigh_stems_of_text(text) for text in self.texts]

    def earlier_likeness(self, turns: Indices) -> Floats:
        """Compute the highest likeness by words of each of `turns` to an earlier one; 0 for the first.

        A turn is compared with the last `MAX_EARLIER_TURNS_COMPARED` before it.
        """
        terms = [self.terms[turn] for turn in turns]
        likenesses = []
        for k, term in enumerate(terms):
            likenesses.append(
                max(
                    (
                        measure_text_likeness(term, earlier)
                        for earlier in terms[max(0, k - MAX_EARLIER_TURNS_COMPARED) : k]
                    ),
                    default=0.0,
                )
            )

        return np.array(likenesses, dtype=np.float64)


def make_conversation_views(
    conversations: Sequence[Conversation],
    embedder: Embedder,
    *,
    vectors: bool = True,
) -> list[ConversationView]:
    """Make views of many conversations; with `vectors`, embed all turns together, which is faster than one by one."""
    views = []
    for conversation in conversations:
        views.append(ConversationView(conversation, embedder))

    # vectors stay in the embedder, where each view finds them
    if vectors:
        texts = []
        for view in views:
            for turn in view.of("both"):
                texts.append(view.texts[turn])
        embedder.embed(texts)

    return views


def cut_middle_of_text(text: str) -> str:
    """Cut the middle out of a very long text."""
    if len(text) <= KEPT_HEAD_CHARS_OF_TURN + KEPT_TAIL_CHARS_OF_TURN:
        return text
    return f"{text[:KEPT_HEAD_CHARS_OF_TURN]}{OMISSION_MARK}{text[-KEPT_TAIL_CHARS_OF_TURN:]}"


RESAMPLED_MODEL_NAME = f"{BUILT_IN_MODEL_NAME}, resampled turns"
"""Display name of a judge on resampled turns."""


def make_random_generator(conversation: Conversation, replicate: int) -> np.random.Generator:
    """Return the random generator of one run on a conversation, the same on every call."""
    # by text and run alone, so that nothing depends on what was drawn before
    return np.random.default_rng([int(conversation.text_hash[:12], 16), replicate])


def resample_turn_indices(turns: Indices, rng: np.random.Generator) -> Indices:
    """Draw a bootstrap sample of the turns, in the order of the conversation."""
    if len(turns):
        # with replacement: a turn may come twice, and another not at all
        return np.sort(rng.choice(turns, len(turns)))
    return turns
