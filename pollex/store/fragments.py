"""What tells that a text quotes a conversation: runs of its words that no other conversation has."""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

WORDS_PER_FRAGMENT = 5
"""Words of a fragment that always tells; a shorter turn tells as a whole."""
MIN_WORDS_OF_SHORT_TEXT = 2
"""Words of the shortest turn that does."""

MIN_TELLING_RARITY = 9.0
"""How rare two to four words are together to tell: as a run that stands once in 10⁹ words would be."""
MIN_SINGLE_WORD_RARITY = 5.0
"""How rare a single word is to tell: a name, a number, a word that stands once in 10⁵."""
RARITY_OF_UNKNOWN_WORD = 9.0
"""The frequencies of `wordfreq` count a word's places in 10⁹ words, as powers of ten."""

REPLACEMENT_OF_FORGOTTEN_TEXT = "[forgotten]"
"""In place of a text that quotes what was forgotten."""

OWN_TEXT_FILE_SUFFIXES = (".py", ".html", ".toml", ".md", ".txt", ".js")
"""Endings of the files of pollex whose words stand in every output."""

CHARS_EXAMINED_TOGETHER = 1 << 20
"""Characters of a text that are looked at together."""

_WORD_REGEX = re.compile(r"\w+")
_NON_WORD_CHARACTER_REGEX = re.compile(r"\W")

FragmentWords = tuple[str, ...]


def split_compared_words(text: str) -> list[str]:
    """Return the words of a text as they are compared."""
    return _WORD_REGEX.findall(text.casefold())


def iterate_fragments(text: str) -> Iterator[FragmentWords]:
    """Yield the runs of words that tell of a text, whatever the words are."""
    words = split_compared_words(text)
    if MIN_WORDS_OF_SHORT_TEXT <= len(words) <= WORDS_PER_FRAGMENT:
        yield tuple(words)
    yield from _iterate_word_runs(words, WORDS_PER_FRAGMENT)


class ConversationFragments:
    """What tells that a text quotes one of some texts.

    Args:
        texts: Whose quotes are looked for.
        others: Texts whose fragments tell nothing: greetings, and what assistants say to everybody.
        names: Ids and names that tell as a whole.
    """

    def __init__(
        self,
        texts: Iterable[str],
        others: Iterable[str] = (),
        names: Iterable[str] = (),
    ) -> None:
        texts = list(texts)
        # long runs tell by themselves, short ones where their words are rare
        sure_fragments: set[tuple[str, ...]] = set()
        for text in texts:
            sure_fragments.update(iterate_fragments(text))
        self._sure = sure_fragments
        possible: set[FragmentWords] = set()
        for text in texts:
            for length in range(1, WORDS_PER_FRAGMENT):
                possible.update(_iterate_word_runs(split_compared_words(text), length))

        hints = set()
        for run in possible:
            if _is_telling_run(run):
                hints.add(run)

        # What others say, and what pollex itself says in every output, tells of nobody.
        for other in others:
            if self._sure or hints:
                spoken = set(_iterate_runs_up_to_fragment(split_compared_words(other)))
                self._sure -= spoken
                hints -= spoken

        if hints:
            hints -= _find_runs_in_own_texts(frozenset(run[0] for run in hints))

        self._hints = hints | {
            tuple(words)
            for name in names
            if _is_distinctive_name(words := split_compared_words(name))
        }
        # first words of all, so that most texts need one look
        self._first = {run[0] for run in self._sure | self._hints}

    def within(self, text: str) -> bool:
        """Tell whether a text quotes one of them."""
        before: list[str] = []
        for piece in _split_text_into_pieces(text):
            # a run may begin in the piece before
            words = before + split_compared_words(piece)
            runs = () if self._first.isdisjoint(words) else self._runs_in(words)
            if any(run in self._sure or run in self._hints for run in runs):
                return True
            before = words[1 - WORDS_PER_FRAGMENT :]

        return False

    def masked(self, text: str) -> str:
        """Return a text without them: nothing is left of a quote, and single words are taken out of other texts."""
        if not self.within(text):
            return text

        words = list(_WORD_REGEX.finditer(text))
        folded = [word[0].casefold() for word in words]
        if any(run in self._sure for run in self._runs_in(folded)):
            return REPLACEMENT_OF_FORGOTTEN_TEXT

        # From the end, so that places before it stay what they are.
        places = list(self._places_of_hints(folded))
        for start, end in reversed(_merge_overlapping_places(places)):
            text = (
                text[: words[start].start()]
                + REPLACEMENT_OF_FORGOTTEN_TEXT
                + text[words[end - 1].end() :]
            )

        return text

    def _runs_in(self, words: Sequence[str]) -> Iterator[FragmentWords]:
        for start, word in enumerate(words):
            if word in self._first:
                for length in range(1, WORDS_PER_FRAGMENT + 1):
                    yield tuple(words[start : start + length])

    def _places_of_hints(self, words: Sequence[str]) -> Iterator[tuple[int, int]]:
        for start, word in enumerate(words):
            if word in self._first:
                ends = range(min(start + WORDS_PER_FRAGMENT, len(words)), start, -1)
                for end in ends:
                    if tuple(words[start:end]) in self._hints:
                        yield (start, end)


def _split_text_into_pieces(text: str) -> Iterator[str]:
    """Yield a long text in pieces that end between words: a list of all its words would take too much memory."""
    start = 0
    while len(text) - start > CHARS_EXAMINED_TOGETHER:
        end = _NON_WORD_CHARACTER_REGEX.search(text, start + CHARS_EXAMINED_TOGETHER)
        if end is None:
            break
        yield text[start : end.start()]
        start = end.start()

    yield text[start:]


def _iterate_word_runs(words: Sequence[str], length: int) -> Iterator[FragmentWords]:
    return (tuple(words[start : start + length]) for start in range(len(words) - length + 1))


def _iterate_runs_up_to_fragment(words: Sequence[str]) -> Iterator[FragmentWords]:
    for length in range(1, WORDS_PER_FRAGMENT + 1):
        yield from _iterate_word_runs(words, length)


def _merge_overlapping_places(places: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return places that overlap or touch as one."""
    joined: list[tuple[int, int]] = []
    for start, end in sorted(places):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))

    return joined


def _is_telling_run(run: FragmentWords) -> bool:
    """Tell whether words are so rare that who has them got them from there."""
    return sum(map(_measure_word_rarity, run)) >= (
        MIN_SINGLE_WORD_RARITY if len(run) == 1 else MIN_TELLING_RARITY
    )


@cache
def _measure_word_rarity(word: str) -> float:
    # a fifth of a second, with its list; only forgetting needs it here
    from wordfreq import zipf_frequency

    if len(word) < 3 and not word.isalpha():  # a count, or the number of a list
        return 0.0
    return RARITY_OF_UNKNOWN_WORD - float(zipf_frequency(word, "en"))


def _is_distinctive_name(words: Sequence[str]) -> bool:
    """Tell whether a name may be looked for by itself: `bike-103` may, `12` would be found everywhere."""
    return len("".join(words)) >= 5 and not (
        len(words) == 1 and words[0].isdecimal() and len(words[0]) < 6
    )


def _find_runs_in_own_texts(first: frozenset[str]) -> set[FragmentWords]:
    """Return the runs of words in pollex's own texts that begin with one of some words."""
    spoken: set[FragmentWords] = set()
    for text in _iterate_own_texts():
        words = split_compared_words(text)
        for start, word in enumerate(words):
            if word in first:
                spoken.update(
                    tuple(words[start : start + length])
                    for length in range(1, WORDS_PER_FRAGMENT + 1)
                )

    return spoken


def _iterate_own_texts() -> Iterator[str]:
    waiting: list[Traversable] = [files("pollex")]
    while waiting:
        for inner in waiting.pop().iterdir():
            if inner.is_dir() and inner.name not in ("examples", "__pycache__"):
                waiting.append(inner)
            elif inner.name.endswith(OWN_TEXT_FILE_SUFFIXES):
                yield inner.read_text(encoding="utf-8")
