"""What people wrote with their thumb: what many comments name, and comments as proof of an event.

Comments are there only where a thumb is, so they never count as evidence: no answer, weight or p
value rests on them.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from pollex.agents.embedded.events.language import detect_log_language, list_stopwords
from pollex.agents.embedded.events.sentences import split_word_set, stem_content_word
from pollex.conversations.conversation import Conversation, Label
from pollex.rubrics.records import CommentFinding
from pollex.rubrics.rubric import Polarity, Quote
from pollex.rubrics.worth import compute_share_with_interval

MAX_PHRASE_WORDS = 3
"""Words of a phrase."""
MIN_COMMENTS_PER_REMARK, MIN_COMMENT_SHARE_PER_REMARK = 3, 0.05
"""Comments of a side that have to name something, in number and as a share."""
MIN_SHARE_OF_LONGER_PHRASE, MAX_SHARED_COMMENTS_OF_REMARKS = 0.6, 0.8
"""A shorter phrase is left out where a longer one has so much of it; one that names nearly the same comments, too."""
MAX_REMARKS_PER_SIDE = 8
EXAMPLES_PER_REMARK = 3
UNTELLING_COMMENT_STEMS = frozenset(
    map(
        stem_content_word,
        split_word_set(
            "assistant user reply answer something offer ask say tell tool call chat bot"
        ),
    )
)
"""Words of all statements, which tie no comment to one."""

_SENTENCE_REGEX = re.compile(r"[^.!?\n]+[.!?]*")
_WORD_OR_NUMBER_REGEX = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*|\d+")


def find_frequent_remarks(conversations: Iterable[Conversation]) -> tuple[CommentFinding, ...]:
    """Return what the comments of labeled conversations name, by side of the thumb, the most frequent first."""
    rated = []
    for conversation in conversations:
        if conversation.feedback and conversation.label is not Label.NONE:
            rated.append(conversation)

    sides: dict[Polarity, list[Conversation]] = {
        "dsat": [conversation for conversation in rated if conversation.label is Label.NEGATIVE],
        "sat": [conversation for conversation in rated if conversation.label is Label.POSITIVE],
    }
    remarks: list[CommentFinding] = []
    for side, of_side in sides.items():
        remarks.extend(_find_remarks_of_side(side, of_side, sides))
    return tuple(remarks)


def _find_remarks_of_side(
    side: Polarity,
    conversations: Sequence[Conversation],
    sides: dict[Polarity, list[Conversation]],
) -> Iterator[CommentFinding]:
    stop = list_stopwords(detect_log_language(conversations))
    # by stems, the conversations whose comments have them, and their words
    named: defaultdict[tuple[str, ...], dict[int, str]] = defaultdict(dict)
    for place, conversation in enumerate(conversations):
        for stems, words in _iterate_comment_phrases(conversation, stop):
            named[stems].setdefault(place, words)

    # what the other side's comments name, to compare with
    other = []
    for conversation in sides["sat" if side == "dsat" else "dsat"]:
        other.append({stems for stems, _ in _iterate_comment_phrases(conversation, stop)})

    for stems in _choose_telling_phrases(
        {stems: set(places) for stems, places in named.items()}, len(conversations)
    ):
        places = named[stems]
        quotes = []
        for place in list(places)[:EXAMPLES_PER_REMARK]:
            if quote := quote_comment_sentence_with_stems(conversations[place], set(stems)):
                quotes.append(quote)
        yield CommentFinding(
            # the commonest wording, of equals the first in the alphabet
            text=max(sorted(places.values()), key=list(places.values()).count),
            polarity=side,
            share=compute_share_with_interval(len(places), len(conversations)),
            other=compute_share_with_interval(
                sum(stems in phrases for phrases in other), len(other)
            ),
            quotes=tuple(quotes),
        )


def _iterate_comment_phrases(
    conversation: Conversation, stop: frozenset[str]
) -> Iterator[tuple[tuple[str, ...], str]]:
    for feedback in conversation.feedback:
        # a tag is one phrase
        for tag in feedback.tags:
            yield (
                tuple(
                    _stem_comment_word(word)
                    for word in _WORD_OR_NUMBER_REGEX.findall(tag.casefold())
                ),
                tag.casefold(),
            )
        for sentence in _SENTENCE_REGEX.findall(feedback.comment.casefold()):
            words = _WORD_OR_NUMBER_REGEX.findall(sentence)
            # runs of words that neither begin nor end with a stop word
            for start in range(len(words)):
                for end in range(start + 1, min(start + MAX_PHRASE_WORDS, len(words)) + 1):
                    if stop.isdisjoint((words[start], words[end - 1])) and len(words[end - 1]) > 2:
                        yield (
                            tuple(map(_stem_comment_word, words[start:end])),
                            " ".join(words[start:end]),
                        )


def _stem_comment_word(word: str) -> str:
    return stem_content_word(word) or word


def _choose_telling_phrases(
    named: dict[tuple[str, ...], set[int]], comments: int
) -> list[tuple[str, ...]]:
    """Choose phrases that many comments have, longer ones before their parts, each for comments of its own."""
    often = {}
    for stems, places in named.items():
        if len(places) >= max(MIN_COMMENTS_PER_REMARK, MIN_COMMENT_SHARE_PER_REMARK * comments):
            often[stems] = places
    # a part says no more than the longer phrase that nearly always holds it
    whole = []
    for stems, places in often.items():
        if not any(
            _contains_phrase(longer, stems)
            and len(often[longer]) >= MIN_SHARE_OF_LONGER_PHRASE * len(places)
            for longer in often
        ):
            whole.append(stems)

    whole.sort(key=lambda stems: (-len(often[stems]), -len(stems), stems))
    chosen: list[tuple[str, ...]] = []
    # of phrases that name nearly the same comments, the commonest is enough
    for stems in whole:
        if all(
            len(often[stems] & often[other_stems])
            < MAX_SHARED_COMMENTS_OF_REMARKS * len(often[stems])
            for other_stems in chosen
        ):
            chosen.append(stems)

    return chosen[:MAX_REMARKS_PER_SIDE]


def _contains_phrase(longer: tuple[str, ...], stems: tuple[str, ...]) -> bool:
    size = len(stems)
    return len(longer) > size and any(
        longer[i : i + size] == stems for i in range(len(longer) - size + 1)
    )


def quote_comment_sentence_with_stems(conversation: Conversation, stems: set[str]) -> Quote | None:
    """Quote the comment's sentence that has most of some stems; None where it has none."""
    candidates = [
        (
            len(
                stems
                & {
                    _stem_comment_word(word)
                    for word in _WORD_OR_NUMBER_REGEX.findall(sentence.casefold())
                }
            ),
            -place,
            sentence.strip(),
        )
        for place, feedback in enumerate(conversation.feedback)
        for sentence in _SENTENCE_REGEX.findall(feedback.text)
    ]
    # the sentence with most of the stems, of equals the first
    shared, place, sentence = max(
        candidates,
        key=lambda candidate: candidate[0],
        default=(0, 0, ""),
    )
    if shared:
        # comments have the numbers −1, −2 and so on in place of a turn
        return Quote(
            conversation_id=conversation.id,
            turn=place - 1,
            text=sentence,
        )

    return None


def quote_comment_proving_statement(
    conversation: Conversation, statement: str
) -> tuple[Quote, ...]:
    """Quote the comment that speaks of what a reason says; none where no comment does."""
    stems = (
        {stem_content_word(word) for word in _WORD_OR_NUMBER_REGEX.findall(statement.casefold())}
        - UNTELLING_COMMENT_STEMS
        - {""}
    )
    quote = None
    if conversation.feedback:
        quote = quote_comment_sentence_with_stems(conversation, stems)

    return (quote,) if quote else ()
