"""The distribution of a model's probability over the possible labels.

Source: Hashemi et al. 2024 (LLM-Rubric), section 2: p(y | text, question) read off the answer
token's log-probabilities, not renormalised; 10.18653/v1/2024.acl-long.745. What is added here:
answers inside a longer text, and labels of several tokens.
"""

import math
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Self

_PROBABILITY_SUM_TOLERANCE = 0.05
"""By so much probabilities in half precision may add up to more than 1."""


@dataclass(frozen=True, slots=True)
class _TokenAlternative:
    text: bytes
    probability: float


class AnswerTokens:
    """The tokens of one answer, laid over its text."""

    def __init__(
        self,
        entries: Sequence[Mapping[str, object]],
        text: str,
        offset: int,
    ) -> None:
        self._entries = entries
        self._text = text
        sizes = [len(_get_token_bytes(entry)) for entry in entries]
        self._starts = [start - offset for start in accumulate(sizes[:-1], initial=0)]

    @classmethod
    def of(cls, entries: Sequence[Any] | None, text: str) -> Self | None:
        """Match token `entries` to `text`; None if they are missing or don't fit.

        Servers that remove thoughts from the text may leave their tokens: the answer is at the end.
        """
        if not entries or not all(
            isinstance(entry, Mapping) and "token" in entry for entry in entries
        ):
            return None

        # bytes, since a token may be part of a character
        offset = b"".join(_get_token_bytes(entry) for entry in entries).rfind(
            text.encode("utf-8", "replace")
        )
        if text and offset >= 0:
            return cls(entries, text, offset)
        return None

    def alternatives(self, start: int) -> int:
        """Return how many alternatives are listed for the token at `start` in the text."""
        return len(_list_token_alternatives(self._entries[self._locate(start)[0]]))

    def distribution(
        self,
        start: int,
        labels: Sequence[str],
        *,
        folded: bool = False,
    ) -> tuple[float, ...] | None:
        """Return the probability of each of `labels` for the answer at `start` in the text; their sum is at most 1.

        Follows the tokens that were written for as long as more than one label begins with them. At
        each, every alternative that leaves exactly one label open gives it its probability times
        that of the path so far. The rest is other words, alternatives that the endpoint didn't
        list, and beginnings that several labels share on a path that was not taken.

        Args:
            start: Offset of the label's first character, after a quote where there is one.
            folded: Whether capitals are not told from small letters, for a model that writes labels
                its own way.

        Returns:
            None where the endpoint lists no alternatives there: then only the label is known, not
            its probability.
        """
        # the token may begin before the label: its beginning is cut off
        index, lead = self._locate(start)
        if not _list_token_alternatives(self._entries[index]):
            return None

        spelled = [
            (label.lower() if folded else label).encode("utf-8", "replace") for label in labels
        ]
        chances = [0.0] * len(labels)
        for label, chance in self._branches(
            index, lead.lower() if folded else lead, spelled, folded=folded
        ):
            chances[label] += chance

        scale = 1.0 / max(math.fsum(chances), 1.0)  # rounding alone can bring a sum above 1
        return tuple(chance * scale for chance in chances)

    def _locate(self, start: int) -> tuple[int, bytes]:
        """Return the index of the token at `start`, and its bytes before it."""
        place = len(self._text[:start].encode("utf-8", "replace"))
        index = bisect_right(self._starts, place) - 1
        return index, _get_token_bytes(self._entries[index])[: place - self._starts[index]]

    def _branches(
        self,
        index: int,
        lead: bytes,
        labels: Sequence[bytes],
        *,
        folded: bool,
    ) -> Iterator[tuple[int, float]]:
        """Yield index and probability of a label, for each alternative that determines one."""
        # what was written so far, and its probability
        path: _TokenAlternative | None = _TokenAlternative(b"", 1.0)
        while path is not None:
            if index == len(self._entries):
                for label, text in enumerate(labels):
                    if text == path.text:
                        yield (label, path.probability)
                return

            chosen_text = _normalize_token_text(
                _get_token_bytes(self._entries[index]), folded=folded
            )
            following = None
            for choice in _make_token_alternatives(self._entries[index], folded=folded):
                if not choice.text.startswith(lead):
                    continue
                written = (path.text + choice.text[len(lead) :]).lstrip()
                probability = path.probability * choice.probability
                # labels that this alternative leaves open: one alone gets its probability
                open_labels = []
                for label, text in enumerate(labels):
                    if _may_become_label(written, text):
                        open_labels.append(label)
                if len(open_labels) == 1:
                    yield open_labels[0], probability
                elif open_labels and choice.text == chosen_text:
                    following = _TokenAlternative(written, probability)

            path = following
            lead = b""
            index = index + 1


def _may_become_label(written: bytes, label: bytes) -> bool:
    """Return whether `written` begins `label`, or is `label` followed by a word end."""
    if label.startswith(written):
        return True

    return (
        written.startswith(label)
        and not written[len(label) :].decode("utf-8", "replace")[0].isalnum()
    )


def _list_token_alternatives(entry: Mapping[str, object]) -> list[Mapping[str, object]]:
    top = entry.get("top_logprobs")
    if isinstance(top, list):
        return [choice for choice in top if isinstance(choice, Mapping)]
    return []


def _make_token_alternatives(
    entry: Mapping[str, object], *, folded: bool = False
) -> list[_TokenAlternative]:
    """Return the alternatives at a place, and the token that was written, each once.

    None where together they are more than certain: some servers give scores by that name that are
    no probabilities.
    """
    # the first probability of a token counts; the token written is among them
    probabilities: dict[bytes, float] = {}
    for choice in [*_list_token_alternatives(entry), entry]:
        logprob = choice.get("logprob")
        if isinstance(logprob, int | float) and not math.isnan(logprob):
            probabilities.setdefault(_get_token_bytes(choice), math.exp(min(logprob, 1.0)))

    if math.fsum(probabilities.values()) > 1 + _PROBABILITY_SUM_TOLERANCE:
        return []

    choices: list[_TokenAlternative] = []
    for text, probability in probabilities.items():
        choices.append(_TokenAlternative(_normalize_token_text(text, folded=folded), probability))

    return choices


def _normalize_token_text(text: bytes, *, folded: bool) -> bytes:
    if folded:
        return text.decode("utf-8", "surrogateescape").lower().encode("utf-8", "surrogateescape")
    return text


def _get_token_bytes(entry: Mapping[str, object]) -> bytes:
    """Return a token's bytes; `token` is incomplete for split characters."""
    raw = entry.get("bytes")
    if isinstance(raw, list) and all(isinstance(byte, int) and 0 <= byte < 256 for byte in raw):
        return bytes(raw)
    return str(entry.get("token", "")).encode("utf-8", "replace")
