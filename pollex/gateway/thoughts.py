"""Thoughts that stand in a model's text before its answer, and the marks around them.

Servers that know a model's template take thoughts out of the text. Others leave them, between marks
that differ from model to model; some templates put the opening mark into the prompt, so that only
the closing one comes.
"""

import re

_THOUGHT_TAG_NAMES_REGEX = (
    r"(?:seed:)?(?:think|thinking|thoughts?|reasoning|analysis|reflection|scratchpad)"
)

THOUGHT_BEGIN_REGEX = re.compile(
    rf"<{_THOUGHT_TAG_NAMES_REGEX}>|<\|{_THOUGHT_TAG_NAMES_REGEX}\|>|\[(?:THINK|REASONING)\]|\u25c1think\u25b7|<\|begin_of_thought\|>"
    r"|<details type=.?reasoning[^>]{0,80}>"
    r"|<\|channel\|>(?:analysis|commentary)[^<]{0,80}<\|message\|>",
    re.IGNORECASE,
)
"""Marks before thoughts: tags, Mistral's and Kimi's brackets, channels of OpenAI's open models."""

THOUGHT_END_REGEX = re.compile(
    rf"</{_THOUGHT_TAG_NAMES_REGEX}>|<\|/{_THOUGHT_TAG_NAMES_REGEX}\|>|<\|{_THOUGHT_TAG_NAMES_REGEX}_end\|>|</details>|\[/(?:THINK|REASONING)\]|\u25c1/think\u25b7|<\|end_of_thought\|>"
    r"|<\|channel\|>final[^<]{0,80}<\|message\|>|(?<=\S)assistantfinal",
    re.IGNORECASE,
)
"""Marks after thoughts. Of channels whose marks a server took out, the two names are left, joined."""

_BARE_CHANNEL_REGEX = re.compile(r"\s*(?:analysis|commentary)", re.IGNORECASE)
_DETAILS_TAG_REGEX = re.compile(r"<details type=.?reasoning", re.IGNORECASE)
_SOLUTION_END_REGEX = re.compile(r"<\|(?:return|end|end_of_solution)\|>\s*$")
_SOLUTION_BEGIN_REGEX = re.compile(r"^\s*<\|begin_of_solution\|>")


def find_thought_ends(text: str) -> list[tuple[int, int]]:
    """Return where marks after thoughts begin and end."""
    bare = _BARE_CHANNEL_REGEX.match(text) is not None
    folded = _DETAILS_TAG_REGEX.search(text) is not None
    counts = {"assistantfinal": bare, "</details>": folded}
    return [
        mark.span()
        for mark in THOUGHT_END_REGEX.finditer(text)
        if counts.get(mark.group().lower(), True)
    ]


def find_last_thought_begin(text: str) -> int:
    """Return where the last mark before thoughts begins; -1 without any."""
    return max((mark.start() for mark in THOUGHT_BEGIN_REGEX.finditer(text)), default=-1)


def remove_thoughts(text: str) -> str:
    """Remove the thoughts that `text` begins with; return nothing if they never end.

    Some templates omit the opening mark: then a single closing one marks them. Any other mark is
    part of the answer, to a question about such marks for example.
    """
    text = text.strip()
    closing = find_thought_ends(text)
    if opening := THOUGHT_BEGIN_REGEX.match(text):
        rest = next(
            (text[end:] for start, end in closing if start >= opening.end()),
            "",
        )
        return _strip_solution_marks(rest)
    if len(closing) == 1 and find_last_thought_begin(text) < 0:
        return _strip_solution_marks(text[closing[0][1] :])
    return text


def _strip_solution_marks(answer: str) -> str:
    return _SOLUTION_END_REGEX.sub("", _SOLUTION_BEGIN_REGEX.sub("", answer)).strip()
