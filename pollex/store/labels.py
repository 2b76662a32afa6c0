"""People's labels of texts: the last of each person, and what they come to."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pollex.store.store import Store
from pollex.store.tables import load_json

THUMB_QUESTION = "thumb"
"""The question that all conversations may be asked about; its values are `up` and `down`."""

LAST_ANSWER_PER_ANNOTATOR_QUERY = """
    SELECT annotator, text_hash, conversation, run, question, value, source, drawn FROM labels AS l
    WHERE question = ?1 AND (drawn = 'repeat') = ?2 AND rowid = (SELECT max(rowid) FROM labels AS o
        WHERE o.question = l.question AND o.text_hash = l.text_hash AND o.annotator = l.annotator
        AND o.source = l.source AND (o.drawn = 'repeat') = ?2)
    ORDER BY rowid
"""
"""A text that somebody was shown once more has two answers of theirs: the second says only how far they agree with
themselves."""

RANDOM_DRAW = "random"
TEXTS_DRAWN_AT_RANDOM_QUERY = """
    SELECT DISTINCT text_hash FROM labels WHERE question = ? AND drawn = 'random' AND annotator <> ''
"""

VOLUNTARY_SELECTION = "voluntary"
"""Drawn by the annotators themselves, who had seen the score: such labels stay out of figures."""


@dataclass(frozen=True)
class Opinion:
    """The last answer of one annotator to a question about a text, not skipped; one that a run took up is nobody's."""

    annotator: str
    text_hash: str
    conversation: str
    run: str
    value: str
    source: str
    drawn: str
    question: str = ""

    @property
    def counts(self) -> bool:
        """Whether figures count it: it is somebody's who had not seen the score."""
        return self.annotator != "" and self.drawn != VOLUNTARY_SELECTION


def read_opinions(store: Store, question: str, *, again: bool = False) -> list[Opinion]:
    """Return what everybody said last, or what they said of texts that they were shown once more.

    A text that chance drew once stays drawn at random, however it came to be labeled again: chance
    chose it before anybody knew what is in it.
    """
    opinions = []
    for row in store.rows(LAST_ANSWER_PER_ANNOTATOR_QUERY, [question, int(again)]):
        value = load_json(row["value"])
        if value is not None:
            opinions.append(Opinion(**row | {"value": value}))

    if again:
        return opinions

    drawn_at_random = set()
    for row in store.rows(TEXTS_DRAWN_AT_RANDOM_QUERY, [question]):
        drawn_at_random.add(row["text_hash"])

    # who had seen the score says so, however the text was drawn for others
    return [
        replace(opinion, drawn=RANDOM_DRAW)
        if opinion.text_hash in drawn_at_random and opinion.drawn != VOLUNTARY_SELECTION
        else opinion
        for opinion in opinions
    ]


def settle_opinions(of: Sequence[Opinion]) -> dict[str, Opinion]:
    """Return one answer for each text: adjudicated, or by majority; none for ties."""
    by_text: dict[str, list[Opinion]] = defaultdict(list)
    for opinion in of:
        by_text[opinion.text_hash].append(opinion)

    # adjudicated answers win, then a majority
    settled = {}
    for text, of_text in by_text.items():
        decided = []
        for opinion in of_text:
            if opinion.source == "adjudicated":
                decided.append(opinion)

        votes = Counter(opinion.value for opinion in of_text).most_common()
        if decided:
            settled[text] = decided[-1]
        elif len(votes) == 1 or votes[0][1] > votes[1][1]:
            settled[text] = next(opinion for opinion in of_text if opinion.value == votes[0][0])

    return settled
