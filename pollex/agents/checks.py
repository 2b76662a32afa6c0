"""Checks that keep unsafe texts from becoming rubrics.

Rubrics are written by a model that has read conversations, and every one of them enters all later
judging: text that someone planted in a conversation must not get there. The checks count on no
model to be on our side. They refuse a text that speaks to the judge, names answers, carries markup,
or copies a long run of one conversation. A refused text is counted; a person who wants it can still
write it into the rubric set by hand.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence

from pollex.conversations.conversation import Conversation
from pollex.rubrics.answers import LIKERT_OPTIONS, Option
from pollex.rubrics.rubric import Quote

MIN_RUBRIC_CHARS = 8
MAX_RUBRIC_CHARS = 240
MIN_COPIED_WORDS_IN_A_ROW = 8
"""So many words in a row that also stand in one conversation are a quotation."""

_QUOTED_TEXT_REGEX = re.compile(r'"[^"]{0,30}"|“[^”]{0,30}”|«[^»]{0,30}»|「[^」]{0,30}」')
_COMMAND_VERBS_REGEX = (
    "ignore|disregard|forget|always|never|answer|respond|reply|rate|score|grade|mark|select|choose"
    "|pick|output"
)
_INSTRUCTION_TO_JUDGE_REGEX = re.compile(
    rf"(?:^|[.!?;:,]\s+)(?:please\s+)?(?:{_COMMAND_VERBS_REGEX})\b"
    r"|\b(?:you|your|yours|yourself)\b"
    r"|\b(?:evaluators?|raters?|graders?|annotators?|the judges?|rubrics?|system prompts?|language models?|llms?)\b"
    r"|\b(?:this|the) evaluation\b|\b(?:previous|prior|above|earlier|these|all) (?:instructions?|rules)\b"
    r"|\b(?:rate|score|grade|mark)[sd]? (?:this|it|everything|all|the conversation|as|with)\b"
    # the same in other languages
    r"|\b(?:ignorier\w*|bewerte\w*|antworte) (?:alle|immer|diese|das|mit)\b"
    r"|\b(?:ignora|ignore[zr]?|califica|responde|notez|répondez) (?:todo|todas|las|siempre|con|toutes?|les|toujours)\b"
    r"|忽略|无视|评分|打分|無視して|評価して|تجاهل|игнорируй|оцени",
    re.IGNORECASE,
)
_MARKUP_REGEX = re.compile(
    r"<[|/!a-zA-Z]|\|>|\[/?[A-Z_]{3,}\]|```|\+\+\+|\bDATA [0-9a-fA-F]{6,}|\\u[0-9a-fA-F]{4}|[{}]|#{3,}|&[a-z]+;|"
    r"https?://|!\[",
)
_WORD_REGEX = re.compile(
    r"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff]|[^\W\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff]+"
)


def explain_rubric_refusal(
    text: str,
    sources: Iterable[Sequence[str]] = (),
    options: Sequence[Option] = LIKERT_OPTIONS,
) -> str:
    """Return why a text is refused as a rubric; empty if accepted.

    Args:
        sources: `split_words` of each conversation (or quote) that it could have been copied from.
        options: The answers that it must not name.
    """
    # control and format characters, and white space other than the blank
    if any(unicodedata.category(character)[0] in "CZ" and character != " " for character in text):
        return "odd characters"
    if not MIN_RUBRIC_CHARS <= len(text) <= MAX_RUBRIC_CHARS:
        return "too short" if len(text) < MIN_RUBRIC_CHARS else "too long"
    if _MARKUP_REGEX.search(text):
        return "markup"
    if contains_option_label(text, options):
        return "names an answer"
    # what is quoted in a few words isn't said to the judge
    if _INSTRUCTION_TO_JUDGE_REGEX.search(_QUOTED_TEXT_REGEX.sub("…", text)):
        return "speaks to the judge"
    if copies_words_from_sources(split_words(text), sources):
        return "copies a conversation"
    return ""


def contains_option_label(text: str, options: Sequence[Option]) -> bool:
    """Return whether a text contains the label of an option.

    Labels of several words count in any case. One word, such as Agree, is also a word of the
    language: it counts where it is written as the label is, and not as the beginning of the text.
    """
    for option in options:
        several = " " in option.text
        matches = re.finditer(
            rf"(?<!\w){re.escape(option.text)}(?!\w)",
            text,
            re.IGNORECASE if several else 0,
        )
        if any(several or (match.start() > 0 and not option.text.islower()) for match in matches):
            return True

    return False


def copies_words_from_sources(text: Sequence[str], sources: Iterable[Sequence[str]]) -> bool:
    """Return whether a text shares `MIN_COPIED_WORDS_IN_A_ROW` consecutive words with any of `sources`."""
    runs = set()
    for i in range(len(text) - MIN_COPIED_WORDS_IN_A_ROW + 1):
        runs.add(tuple(text[i : i + MIN_COPIED_WORDS_IN_A_ROW]))

    return bool(runs) and any(
        tuple(source[i : i + MIN_COPIED_WORDS_IN_A_ROW]) in runs
        for source in sources
        for i in range(len(source) - MIN_COPIED_WORDS_IN_A_ROW + 1)
    )


def split_words(text: str) -> list[str]:
    """Split a text into lower-case words; in scripts without spaces, into characters."""
    return _WORD_REGEX.findall(unicodedata.normalize("NFKC", text).casefold())


def list_words_of_conversation(conversation: Conversation) -> list[str]:
    """Return the words of all turns, and of what was written of them."""
    comments = []
    for feedback in conversation.feedback:
        comments.append(feedback.text)
    texts = [turn.shown for turn in conversation.turns] + comments
    words = []
    for text in texts:
        words.extend(split_words(text))
    return words


# marks and dashes in which a true copy may differ
_QUOTATION_MARK_DELETIONS = dict.fromkeys(map(ord, "\"'`´“”„‟‘’‚‛«»‹›「」『』″′"))
_TYPOGRAPHY_TRANSLATION = (
    _QUOTATION_MARK_DELETIONS | dict.fromkeys(map(ord, "‐‑‒–—―−"), "-") | {ord("…"): "..."}
)
_ELLIPSIS_REGEX = re.compile(r"[\[(]?\.{3,}[\])]?")
MAX_CHARS_LEFT_OUT_OF_QUOTE = 400
"""Characters of a turn that an ellipsis of a quote may stand for."""
_JSON_ESCAPE_REGEX = re.compile(r'\\(?:u([0-9a-fA-F]{4})|([nrt"\\/]))')
_CHARACTER_BY_JSON_ESCAPE = {"n": "\n", "r": "\r", "t": "\t"}


def locate_quote_in_conversation(conversation: Conversation, text: str, turn: int) -> Quote | None:
    """Locate a quote, first in `turn`, then in the nearest turn, then in comments; None if not found.

    White space, quotation marks, dashes and case may differ, and an ellipsis may stand for words;
    what is returned are the turn's own words. A model that copies a turn's JSON escapes as it saw
    them (`\\u003c` for `<`) has quoted truly: the words are then looked for once more with the
    escapes resolved.
    """
    # turns from 0 up, comments from −1 down
    texts = {i: turn_there.shown for i, turn_there in enumerate(conversation.turns)}
    for i, feedback in enumerate(conversation.feedback):
        texts[-1 - i] = feedback.text

    # the turn that was named, the other turns by distance, and comments last
    nearest = sorted(texts, key=lambda i: (i != turn, i < 0, abs(i - turn), i))
    candidates = dict.fromkeys((text, resolve_json_escapes(text)))
    # an exact copy anywhere comes before an inexact one
    for find in (_find_verbatim_text, find_quoted_passage):
        for candidate in candidates:
            for i in nearest:
                if words := find(texts[i], candidate):
                    return Quote(
                        conversation_id=conversation.id,
                        turn=i,
                        text=words,
                    )

    return None


def _find_verbatim_text(content: str, quote: str) -> str:
    words = collapse_white_space(quote)
    return words if words in collapse_white_space(content) else ""


def find_quoted_passage(content: str, quote: str) -> str:
    """Return the words of a text that a quote repeats; empty if there are none.

    Both are compared as by `locate_quote_in_conversation`.
    """
    # each folded letter, and its place in the text
    letters = [
        (folded, at)
        for at, letter in enumerate(content)
        for folded in letter.translate(_TYPOGRAPHY_TRANSLATION).lower()
    ]
    # of a run of white space one is left, as in `collapse_white_space`
    kept_letters = []
    for letter, after in zip(letters, [*letters[1:], (" ", 0)], strict=True):
        if not (letter[0] + after[0]).isspace():
            kept_letters.append(letter)

    folded = "".join(" " if letter.isspace() else letter for letter, _ in kept_letters)
    # whole, then in its parts around an ellipsis
    for parts in (
        [_fold_typography(quote)],
        [
            _fold_typography(part)
            for part in _ELLIPSIS_REGEX.split(quote.translate(_TYPOGRAPHY_TRANSLATION))
        ],
    ):
        if (span := _find_quote_parts_in_order(folded, list(filter(None, parts)))) is not None:
            return collapse_white_space(
                content[kept_letters[span[0]][1] : kept_letters[span[1] - 1][1] + 1]
            )

    return ""


def _fold_typography(text: str) -> str:
    return collapse_white_space(text.translate(_TYPOGRAPHY_TRANSLATION).lower())


def _find_quote_parts_in_order(text: str, parts: Sequence[str]) -> tuple[int, int] | None:
    """Return where parts stand one after the other; None where they don't.

    Two parts have at most `MAX_CHARS_LEFT_OUT_OF_QUOTE` characters between them.
    """
    begin = text.find(parts[0]) if parts else -1
    while begin >= 0:
        end = begin + len(parts[0])
        for part in parts[1:]:
            at = text.find(part, end, end + MAX_CHARS_LEFT_OUT_OF_QUOTE + len(part))
            end = at + len(part)
            if at < 0:
                break
        else:
            return begin, end

        # the other parts don't follow: on to the next place of the first one
        begin = text.find(parts[0], begin + 1)

    return None


def collapse_white_space(text: str) -> str:
    """Collapse each run of white space in `text` to one space, and strip its ends."""
    return " ".join(text.split())


def resolve_json_escapes(text: str) -> str:
    """Resolve the JSON escapes in a text."""
    return _JSON_ESCAPE_REGEX.sub(
        lambda m: chr(int(m[1], 16)) if m[1] else _CHARACTER_BY_JSON_ESCAPE.get(m[2], m[2]),
        text,
    )
