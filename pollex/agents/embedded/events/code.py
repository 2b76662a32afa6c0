"""What replies do with code: they leave parts out, repeat the user's unchanged, or change another file."""

import re
from collections.abc import Callable, Iterator, Sequence

from pollex.agents.embedded.events.patterns import Exchange, PatternFiring
from pollex.agents.embedded.events.sentences import ActHit, ConversationMove, Sentence

_CODE_BLOCK_REGEX = re.compile(r"```[^\n]*\n(.*?)(?:```|\Z)", re.DOTALL)
_COMMENT_START_REGEX = r"^[ \t]*(?://|#|/\*+|<!--|--|;|%|\*|\{/\*)[ \t]*"
_ELISION_WORDS_REGEX = (
    r"(?:the |your |all |\()*(?:rest|remaining|other|existing|previous|original|everything else)\b[^\n]{0,40}?"
    r"\b(?:code|methods?|functions?|lines?|logic|routes?|markup|loop|unchanged|as (?:it|they|is|before|above)"
    r"|stays?|remains?|identical|goes here|omitted)\b"
    r"|(?:same|exactly) as (?:before|above)|unchanged\b"
    r"|(?:your|the) (?:existing )?(?:code|logic|implementation)[^\n]{0,12} here\b"
    r"|(?:code|part|lines?)[^\n]{0,20}omitted|omitted for brevity|rest of (?:your|the|it)\b|keep the rest\b"
    r"|(?:der |le |el |il |lo |o |de )?(?:rest|reste|resto)\b[^\n]{0,30}\b(?:unverändert|bleibt|gleich|inchangée?"
    r"|identique|pareil|igual|mismo|sin cambios|invariato|uguale|inalterado|mesmo|ongewijzigd|hetzelfde)"
)
_ELIDED_CODE_COMMENT_REGEX = re.compile(
    rf"{_COMMENT_START_REGEX}(?:\.{{2,}}|…)?[ \t(]*(?:{_ELISION_WORDS_REGEX})",
    re.IGNORECASE | re.MULTILINE,
)
_FILE_NAME_REGEX = re.compile(
    r"(?<![\w/.@-])(?:[\w-]+/)*[\w-]+\.(?:py|pyi|js|jsx|ts|tsx|rb|java|kt|go|rs|c|h|cc|cpp|hpp|cs|php|swift|scala"
    r"|css|scss|html|vue|svelte|sql|sh|ya?ml|toml|json|xml|ini|md|tf|gradle|ipynb)(?![\w/])"
)
_PROSE_LINE_REGEX = re.compile(r"[A-Z][\w',-]*(?: [\w',-]+)*[.?!:]")
MIN_REPEATED_LINES = 3
MIN_REPEATED_SHARE = 0.8
"""Share of the user's code that has to stand in a reply for it to be a repetition."""
SURENESS_OF_CODE_ACTS = 0.9

CharacterSpan = tuple[int, int]
"""Characters of a move's text."""


def mark_code_acts(moves: Sequence[ConversationMove]) -> None:
    """Add what replies do with code to the acts of moves."""
    # replies are compared with the user's last move
    users: ConversationMove | None = None
    for move in moves:
        if move.role == "user":
            users = move
        elif move.code:
            for act, find in FINDERS_BY_CODE_ACT.items():
                if act not in move.acts and (span := find(move, users)):
                    _add_code_act(move, act, *span)


def _add_code_act(move: ConversationMove, act: str, start: int, end: int) -> None:
    """Add an act that no sentence does, with a sentence made of what shows it."""
    # places in the move's text become places in its turn's
    turn, offset = _locate_turn_of_character(move, start)
    text = move.text[start:end]
    hit = ActHit(act, SURENESS_OF_CODE_ACTS, start - offset, end - offset)
    move.acts[act] = Sentence(
        text,
        text.lower(),
        start - offset,
        turn,
        (),
        frozenset(),
        asking=False,
        hits={act: hit},
    )


def _locate_turn_of_character(move: ConversationMove, at: int) -> tuple[int, int]:
    """Return the turn that a character of a move stands in, and where that turn begins in the move's text."""
    offset = 0
    for turn, length in zip(move.turns, move.lengths, strict=True):
        if at <= offset + length:
            return turn, offset
        # turns are joined by a line break
        offset += length + 1

    return move.turns[-1], offset


def _find_elided_code(move: ConversationMove, _: ConversationMove | None) -> CharacterSpan | None:
    """Find a comment in place of code."""
    for block in _CODE_BLOCK_REGEX.finditer(move.text):
        if elided := _ELIDED_CODE_COMMENT_REGEX.search(block[1]):
            # from the comment's first sign to the end of its line
            blank = len(elided[0]) - len(elided[0].lstrip())
            line = block[1].find("\n", elided.end())
            if line >= 0:
                end = line
            else:
                end = len(block[1].rstrip())

            return block.start(1) + elided.start() + blank, block.start(1) + end

    return None


def _find_repeated_user_code(
    move: ConversationMove, user: ConversationMove | None
) -> CharacterSpan | None:
    """Find code that is nothing but the user's own, and most of it."""
    if user is None:
        return None

    blocks = list(_CODE_BLOCK_REGEX.finditer(move.text))
    user_lines = list_code_lines(user.text)
    reply_lines = []
    for block in blocks:
        reply_lines.extend(split_code_lines(block[1]))

    # nearly as many lines as the user's, and none but those
    if len(reply_lines) < max(
        MIN_REPEATED_LINES, MIN_REPEATED_SHARE * len(user_lines)
    ) or not are_lines_in_order(reply_lines, user_lines):
        return None

    start = blocks[0].start(1)
    end = blocks[-1].end(1)
    return start, start + len(move.text[start:end].rstrip())


def are_lines_in_order(lines: Sequence[str], reference_lines: Sequence[str]) -> bool:
    """Return whether all lines are among the known ones, in the same order: moved lines are a change."""
    # each search goes on where the last one ended
    left = iter(reference_lines)
    return all(line in left for line in lines)


def list_code_lines(text: str) -> list[str]:
    """Return the lines of a message's blocks; of one without blocks, those that are no sentences."""
    fenced = []
    for block in _CODE_BLOCK_REGEX.finditer(text):
        fenced.extend(split_code_lines(block[1]))
    return fenced or [
        line for line in split_code_lines(text) if not _PROSE_LINE_REGEX.fullmatch(line)
    ]


def split_code_lines(code: str) -> list[str]:
    """Return the lines of code that hold something, each with single spaces."""
    lines: list[str] = []
    for line in code.splitlines():
        if line.strip():
            lines.append(" ".join(line.split()))
    return lines


def _find_file_that_user_did_not_name(
    move: ConversationMove, user: ConversationMove | None
) -> CharacterSpan | None:
    """Find the name of a file that a reply changes in place of those that the user named."""
    if user:
        user_files = {_get_file_name(path) for path in _FILE_NAME_REGEX.findall(user.text)}
    else:
        user_files = set()

    # code is blanked at its length: only prose names the file to change
    prose = _CODE_BLOCK_REGEX.sub(lambda block: " " * len(block[0]), move.text)
    named = list(_FILE_NAME_REGEX.finditer(prose))
    # nothing to compare, or one of the user's files is named, too
    if (
        not user_files
        or not named
        or any(_get_file_name(mention[0]) in user_files for mention in named)
    ):
        return None
    return named[0].span()


def _get_file_name(path: str) -> str:
    return path.rpartition("/")[2].lower()


FINDERS_BY_CODE_ACT: dict[
    str, Callable[[ConversationMove, ConversationMove | None], CharacterSpan | None]
] = {
    "elides": _find_elided_code,
    "repeats_code": _find_repeated_user_code,
    "other_file": _find_file_that_user_did_not_name,
}
PATTERN_BY_CODE_ACT = {
    "elides": "code_elided",
    "repeats_code": "code_repeated",
    "other_file": "code_elsewhere",
}


def find_code_firings(x: Exchange) -> Iterator[PatternFiring]:
    """Yield what replies do with code, and code that doesn't run."""
    for act, pattern in PATTERN_BY_CODE_ACT.items():
        if act in x.here.acts:
            yield x.fire(pattern, (x.here, act))

    if (
        x.after is not None
        and "doesnt_run" in x.after.acts
        and (x.here.code or x.here.has("instructs"))
    ):
        yield x.fire("code_broken", (x.after, "doesnt_run"))
