"""The built-in summarizer: one rubric for all reasons with the same evidence."""

import re
from collections import defaultdict
from collections.abc import Sequence

from pollex.agents.embedded import NAME
from pollex.agents.roles import Pair, Summary
from pollex.rubrics.answers import Unanswered
from pollex.rubrics.rubric import Polarity, Reason, Rubric, content_id, with_reasons

VERSION = "2"
LEAST_SHARE = 0.3
MOST_WORDS = 2


class EmbeddedSummarizer:
    """Writes rubrics from templates around what the extractor found; no LLM.

    Args:
        domain_words: Words of the domain profile; those that the quotes use enter the rubric.
    """

    name = NAME

    def __init__(self, domain_words: Sequence[str] = ()) -> None:
        self.domain_words = tuple(domain_words)

    @property
    def fingerprint(self) -> str:
        return content_id("summarizer", VERSION, *self.domain_words)

    async def summarize(
        self,
        reasons: Sequence[Reason],
        known: Sequence[Rubric],
        polarity: Polarity,
        pairs: Sequence[Pair] = (),  # noqa: ARG002 - a model's
    ) -> Summary | Unanswered:
        """Write one rubric for each new source; other reasons support the existing rubric."""
        by_source: defaultdict[str, list[Reason]] = defaultdict(list)
        for reason in reasons:
            by_source[reason.source].append(reason)
        rubric_of = {rubric.source: rubric for rubric in known if rubric.polarity == polarity}
        return Summary(
            rubrics=tuple(
                self._written(source, group, polarity) for source, group in by_source.items() if source not in rubric_of
            ),
            supported={
                rubric_of[source].id: tuple(group) for source, group in by_source.items() if source in rubric_of
            },
        )

    def _written(self, source: str, reasons: Sequence[Reason], polarity: Polarity) -> Rubric:
        names_objects = source.startswith(("event:", "rate:"))
        text = about(reasons[0].text, [] if names_objects else self._topic(reasons))
        return with_reasons(
            Rubric(id=content_id(polarity, text, source), text=text, polarity=polarity, source=source), reasons
        )

    def _topic(self, reasons: Sequence[Reason]) -> list[str]:
        """Domain words that at least three in ten reasons quote, the most frequent first."""
        quoted = [set(re.findall(r"[\w#+-]+", " ".join(q.text for q in r.quotes).casefold())) for r in reasons]
        counts = {word: sum(word in words for words in quoted) for word in self.domain_words}
        frequent = [word for word, count in counts.items() if count >= max(2, LEAST_SHARE * len(reasons))]
        return sorted(frequent, key=lambda word: -counts[word])[:MOST_WORDS]


def about(statement: str, topic: Sequence[str]) -> str:
    """Append the main topic to a statement."""
    return f"{statement.removesuffix('.')}, mostly about {' and '.join(topic)}." if topic else statement
