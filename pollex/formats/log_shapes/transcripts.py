"""Talks written as text: each turn begins with who speaks, perhaps with a time beside the name."""

import html
import re
from collections import Counter
from collections.abc import Sequence

from pollex.formats.log_shapes.turns import ROLE_BY_SPELLING
from pollex.formats.names import (
    ROLE_BY_SPEAKER_WORD,
    is_name_of_service,
    remove_accents,
    split_name_words,
)
from pollex.text import JsonDict

_CLOCK_REGEX = r"\d{1,2}[:.]\d{2}(?:[:.]\d{2})?(?:[\s\u202f\u00a0]?[AaPp]\.?[Mm]\.?)?"
_DAY_REGEX = r"(?:\d{4}-\d{1,2}-\d{1,2}|\d{1,2}[./-]\d{1,2}[./-]\d{2,4})"
_DATE_TIME_GAP_REGEX = r"(?:,?\s*(?:T|à|às|um|alle|a las)?\s*)"
DATE_REGEX = rf"{_DAY_REGEX}{_DATE_TIME_GAP_REGEX}(?:{_CLOCK_REGEX})?Z?"
"""A day, with a time or without."""
_TIME_REGEX = rf"(?:{DATE_REGEX}|{_CLOCK_REGEX})"
_SPEAKER_NAME_REGEX = r"[^\W\d_][^:\[\]\n]{0,39}?"
_COLON_REGEX = r"(?:(?<!\d):|:(?!\d))"
"""A colon that isn't one within a time."""
_DIRECTION_MARKS = "\u200e\u200f\u202a-\u202e\ufeff"
_ELAPSED_TIME_REGEX = r"(?:\d{1,3}h )?(?:\d{1,3}m )?\d{1,5}s"
"""The time since a talk began, as Salesforce writes it."""
_SPOKEN_HEAD_PATTERN = re.compile(
    r"(?P<name>[^\W\d_][^\W_]{0,20}(?: [^\W_]{1,20})?) "
    r"(?:said|says|wrote|sagte|schrieb|a dit|dijo|ha detto|disse|zei):(?P<time>(?!))?(?P<words>)\s*"
)
"""A line that says who speaks below, as a page of a chat has it when it is copied: `You said:`."""
_TURN_HEAD_PATTERNS = (
    re.compile(
        rf"\(\s*(?P<time>{_ELAPSED_TIME_REGEX})\s*\)\s*(?P<name>[^:\n]{{1,60}}?):[ \t]*(?P<words>.*)"
    ),
    re.compile(
        rf"[{_DIRECTION_MARKS}]*[\[(]\s*(?P<time>{_TIME_REGEX})\s*[\])]\s*"
        rf"[{_DIRECTION_MARKS}]*(?P<name>[^:>\n]{{1,60}}?)[:>][ \t]*(?P<words>.*)"
    ),
    re.compile(
        rf"[{_DIRECTION_MARKS}]*(?P<time>{_TIME_REGEX})\s+[-–]\s+(?P<name>[^:\n]{{1,60}}?):[ \t]*(?P<words>.*)"
    ),
    re.compile(rf"(?P<name>[^\n\[]{{1,60}}?),?\s+\[(?P<time>{_TIME_REGEX})\]:?[ \t]*(?P<words>.*)"),
    re.compile(
        rf"(?P<time>{_TIME_REGEX})\s+(?P<name>{_SPEAKER_NAME_REGEX})[:>][ \t]*(?P<words>.*)"
    ),
    re.compile(
        rf"(?:\[?(?P<time>{_TIME_REGEX})\]?\s+)?<(?P<name>[^<>\n]{{1,40}})>[ \t]*(?P<words>.*)"
    ),
    re.compile(
        rf"(?P<name>[^\n:\[]{{1,60}}?)(?:\s{{2,}}|\s*[—–]\s*)(?P<time>{_TIME_REGEX})(?P<words>)\s*"
    ),
    re.compile(
        rf"(?:#{{1,6}}\s*|\*\*)(?P<name>{_SPEAKER_NAME_REGEX}):?(?P<time>(?!))?(?:\*\*)?:?(?P<words>)\s*"
    ),
    _SPOKEN_HEAD_PATTERN,
    re.compile(
        rf"[*_]{{0,2}}(?P<name>{_SPEAKER_NAME_REGEX})(?:\s*\((?P<time>{_TIME_REGEX})\))?[*_]{{0,2}}"
        rf"{_COLON_REGEX}[*_]{{0,2}}[ \t]*(?P<words>.*)"
    ),
)
"""How a turn begins: with the time since the beginning in brackets, as phones and desks write it ([time] name: …,
(time) name: …, time - name: …), as Telegram's copies do (name, [time]), with the time before the name, as chats show
it (<name> …), with the name and the time on a line of their own, as a heading, with `name said:` above the words, and
with the name alone, or bold."""
_INLINE_SPEAKER_PATTERN = re.compile(
    r"(?:^|;\s*)(?P<name>[^\W\d_][^\W_ ]{0,20}(?: [^\W_]{1,20})?) says: "
)
"""How turns begin that stand behind each other on one line, as Copilot Studio writes them in a cell."""
_TEMPLATE_HEAD_PATTERN = re.compile(
    r"<\|im_start\|>(?P<chatml>\w+)\n|<\|start_header_id\|>(?P<llama>\w+)<\|end_header_id\|>\s*"
    r"|<start_of_turn>(?P<gemma>\w+)\n|<\|(?P<plain>user|assistant|system)\|>\s*"
)
"""How turns begin in the templates by which models are given a talk as one text."""
_TEMPLATE_MARK_PATTERN = re.compile(
    r"<\|(?:im_end|eot_id|end|endoftext|end_of_text|begin_of_text)\|>|<end_of_turn>|<bos>|</?s>"
)
_BAR_BEFORE_TURN_PATTERN = re.compile(r"\s+(?:\|{1,3}|¦|//)\s+(?=[^\W\d_][^:|\n]{0,39}:)")
"""What parts turns on one line, as in a cell: `User: hello | Bot: hello`."""
_HTML_BREAK_PATTERN = re.compile(r"(?i)<br\s*/?>|</(?:p|div|li)>")
"""Where a line ends in a talk that is written as HTML."""
_HTML_TAG_PATTERN = re.compile(r"</?[A-Za-z][^<>]*>")
_PHONE_EVENT_PATTERN = re.compile(
    rf"[{_DIRECTION_MARKS}]*(?:\[{_TIME_REGEX}\]|{_TIME_REGEX}\s+[-–]|\({_TIME_REGEX}\)\s+\*{{2,}})\s"
)
"""A line that begins with a time and names nobody: what the phone or the desk itself tells."""
_PHONE_TEXT_MARK = "\u200e"
"""What WhatsApp puts before words of its own, as of files that it left out."""
_OMITTED_FILE_PATTERN = re.compile(
    r"(?i)^(?:<media omitted>|<attached: .*>|(?P<kind>image|video|audio|sticker|gif|document) omitted)$"
)
MAX_SPEAKERS = 12
MAX_WORDS_OF_SPEAKER = 3
"""Words of a name that may say which side of a talk somebody is."""
MAX_LINES_EXAMINED = 40
"""Lines by which a text is told to be a transcript."""


def begins_known_turn(line: str) -> bool:
    """Return whether a line begins a turn of somebody whose name says that they are a side of a talk."""
    for head in _TURN_HEAD_PATTERNS:
        if head_match := head.fullmatch(line):
            return is_role_name(head_match["name"].strip(" *_"))
    return False


def begins_turn(line: str) -> bool:
    """Return whether a line may begin a turn, whoever speaks."""
    return any(head.fullmatch(line) for head in _TURN_HEAD_PATTERNS)


def is_role_name(name: str) -> bool:
    """Return whether a name says which side of a talk somebody is."""
    return _keep_letters(name) in ROLE_BY_SPELLING or remove_accents(name) in ROLE_BY_SPEAKER_WORD


def has_turn_times(text: str) -> bool:
    """Return whether the turns of a talk have times beside the names."""
    return any("timestamp" in message for message in parse_transcript(text))


def is_transcript(text: str) -> bool:
    """Return whether a text is a talk with its speakers' names: its first line begins a turn, and so do others."""
    if _INLINE_SPEAKER_PATTERN.match(text) or len(_find_template_heads(text)) > 1:
        return True

    lines = []
    for line in _split_talk_lines(text)[:MAX_LINES_EXAMINED]:
        if line.strip():
            lines.append(line)

    return len(lines) > 1 and _find_turn_head_pattern(lines) is not None


def parse_transcript(text: str) -> list[JsonDict]:
    """Return the messages of a transcript, each with the name of who speaks as its role; empty if it is none."""
    if _INLINE_SPEAKER_PATTERN.match(text):
        return _parse_one_line_transcript(text)
    if heads := _find_template_heads(text):
        return _parse_templated_transcript(text, heads)

    lines = _split_talk_lines(text)
    filled_lines = []
    for line in lines:
        if line.strip():
            filled_lines.append(line)

    head = _find_turn_head_pattern(filled_lines)
    if head is None:
        return []

    # a line begins a turn, or goes on with the last one
    speakers = _find_speakers(lines, head)
    messages: list[JsonDict] = []
    for line in lines:
        head_match = head.fullmatch(line)
        if head_match and head_match["name"].strip(" *_") in speakers:
            if head_match["time"] and not head_match["time"].endswith("s"):
                time = {"timestamp": head_match["time"]}
            else:
                time = {}

            messages.append(
                {
                    "role": head_match["name"].strip(" *_"),
                    "content": _clean_turn_text(head_match["words"]),
                    **time,
                }
            )
        elif messages and not _PHONE_EVENT_PATTERN.match(line):
            messages[-1]["content"] = f"{messages[-1]['content']}\n{line}"

    stripped = []
    for message in messages:
        stripped.append({**message, "content": message["content"].strip()})

    return [message for message in stripped if message["content"]]


def _find_template_heads(text: str) -> list[re.Match[str]]:
    """Return where the turns of a talk in a model's template begin; none where another text stands first."""
    heads = list(_TEMPLATE_HEAD_PATTERN.finditer(text)) if "<" in text[:40] else []
    if not heads or _TEMPLATE_MARK_PATTERN.sub("", text[: heads[0].start()]).strip():
        return []
    return heads


def _parse_templated_transcript(text: str, heads: Sequence[re.Match[str]]) -> list[JsonDict]:
    """Return the messages of a talk in a model's template."""
    ends = [*(head.start() for head in heads[1:]), len(text)]
    messages: list[JsonDict] = []
    for head, end in zip(heads, ends, strict=True):
        words = _TEMPLATE_MARK_PATTERN.sub("", text[head.end() : end]).strip()
        if words:
            messages.append({"role": head[head.lastgroup or 0], "content": words})

    return messages


def _split_talk_lines(text: str) -> list[str]:
    """Return the lines of a talk; of one that is HTML on one line from the first on that says who speaks."""
    lines = text.strip().splitlines()
    if len(lines) == 1 and _BAR_BEFORE_TURN_PATTERN.search(lines[0]):
        pieces = _BAR_BEFORE_TURN_PATTERN.split(lines[0])
        if all(map(begins_turn, pieces)):
            return pieces
    if len(lines) != 1 or len(_HTML_BREAK_PATTERN.findall(lines[0])) < 2:
        return text.splitlines()

    unfolded = []
    for line in _HTML_BREAK_PATTERN.split(lines[0]):
        unfolded.append(html.unescape(_HTML_TAG_PATTERN.sub("", line)).strip())

    # what stands above the talk, as when it began, has no time
    begins = (n for n, line in enumerate(unfolded) if _TURN_HEAD_PATTERNS[0].fullmatch(line))
    return unfolded[next(begins, 0) :]


def _parse_one_line_transcript(text: str) -> list[JsonDict]:
    """Return the messages of a talk on one line: each up to the semicolon before the next speaker."""
    starts = [*_INLINE_SPEAKER_PATTERN.finditer(text)]
    ends = [*(start.start() for start in starts[1:]), len(text)]
    texts = []
    for start, end in zip(starts, ends, strict=True):
        texts.append(text[start.end() : end].strip())

    # the last turn may end with the semicolon that parts turns
    texts[-1] = texts[-1].removesuffix(";").rstrip()
    spoken = []
    for start, words in zip(starts, texts, strict=True):
        spoken.append((start["name"].strip(), words))

    messages: list[JsonDict] = []
    for name, words in spoken:
        if words:
            messages.append({"role": name, "content": words})

    return messages


def _find_turn_head_pattern(lines: Sequence[str]) -> re.Pattern[str] | None:
    """Return how turns begin: as the first line does, or the first after what a phone tells, with two speakers."""
    first = ""
    for line in lines:
        if not _PHONE_EVENT_PATTERN.match(line) or any(
            h.fullmatch(line) for h in _TURN_HEAD_PATTERNS
        ):
            first = line
            break
    for head in _TURN_HEAD_PATTERNS:
        if head.fullmatch(first) and 1 < len(_find_speakers(lines, head)) <= MAX_SPEAKERS:
            return head
    return None


def _find_speakers(lines: Sequence[str], head: re.Pattern[str]) -> set[str]:
    """Return who speaks: all names with a time; without, those of known roles and those that come again."""
    head_matches = []
    for line in lines:
        if head_match := head.fullmatch(line):
            head_matches.append(head_match)

    names = Counter(head_match["name"].strip(" *_") for head_match in head_matches)
    timed = {head_match["name"].strip(" *_") for head_match in head_matches if head_match["time"]}
    usual = set()
    for name in names:
        if _keep_letters(name) in ROLE_BY_SPELLING:
            usual.add(name)

    # names of other languages count where both sides have one
    sides = {}
    for name in names:
        if side := _find_side(name):
            sides[name] = side

    if {"user", "assistant"} <= {*sides.values()}:
        usual |= sides.keys()
    # Q and A are two sides, however seldom they come, and so are those of whom a line says that they spoke
    if head is _SPOKEN_HEAD_PATTERN or {_keep_letters(name) for name in names} == {"q", "a"}:
        return set(names)

    # a name comes again, and is no sentence
    again = set()
    for name, times in names.items():
        if times > 1 and len(name.split()) < 4:
            again.add(name)

    if timed:
        return timed
    return usual if len(usual) > 1 else usual | again


def _find_side(name: str) -> str | None:
    """Return the side of a name, or of the words of a short one where those that are known agree: `Virtual Agent`."""
    side = ROLE_BY_SPEAKER_WORD.get(remove_accents(name)) or ROLE_BY_SPELLING.get(
        _keep_letters(name)
    )
    words = split_name_words(name)
    if side or len(words) > MAX_WORDS_OF_SPEAKER:
        return side
    if is_name_of_service(name):  # also `Customer Care`, which has a customer in its name
        return "assistant"

    # initials say nothing
    if len(words) > 1:
        words = [word for word in words if len(word) > 1]
    sides_of_words = {ROLE_BY_SPELLING.get(w) or ROLE_BY_SPEAKER_WORD.get(w) for w in words}
    sides_of_words.discard(None)
    return sides_of_words.pop() if len(sides_of_words) == 1 else None


def _keep_letters(name: str) -> str:
    return re.sub(r"[^a-z]", "", name.casefold())


def _clean_turn_text(text: str) -> str:
    text = text.strip()
    # words of the phone itself are no turn; what it left out leaves a mark
    is_own = text.startswith(_PHONE_TEXT_MARK)
    text = text.strip(_PHONE_TEXT_MARK).strip()
    if omitted := _OMITTED_FILE_PATTERN.match(text):
        return f"[{(omitted['kind'] or 'file').casefold()}]"
    return "" if is_own else text
