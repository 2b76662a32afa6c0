"""Questions with reference answers in AlignBench's form, and answers to grade."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from pydantic import BaseModel, ConfigDict

from pollex.conversations.conversation import Conversation, Source, Turn
from pollex.conversations.logs import BadRow

NO_REFERENCE_FLAG = "no reference"
REFERENCE_LANGUAGE_FLAG = "reference in another language than the question"
ANSWER_LANGUAGE_FLAG = "answer in another language than the question"


class ReferenceEvidence(BaseModel):
    """Evidence for a reference: a passage, and its source."""

    model_config = ConfigDict(frozen=True)

    url: str = ""
    quote: str


class ReferenceCase(BaseModel):
    """A question with its reference, and the answer to grade.

    Attributes:
        reference: A curated answer; empty if there is none.
        answer: Answer of the system under test; None if there is none.
        answered_by: Name of the system under test, if known.
        human: A person's grade of that answer.
        unanswered: Why there is no answer, if a system was asked.
        sources: Documents that the system was shown for its answer, in their order: the third is
            cited as `[3]`.
    """

    model_config = ConfigDict(frozen=True)

    id: str
    question: str
    reference: str = ""
    evidences: tuple[ReferenceEvidence, ...] = ()
    category: str = ""
    subcategory: str = ""
    answer: str | None = None
    answered_by: str = ""
    human: float | None = None
    unanswered: str = ""
    sources: tuple[Source, ...] = ()

    @property  # not cached: `model_copy` would take what was cached along
    def conversation(self) -> Conversation:
        """The question and the answer as a conversation; all else is metadata."""
        turns = [Turn(role="user", content=self.question)]
        turns += [] if self.answer is None else [Turn(role="assistant", content=self.answer)]
        metadata = self.model_dump(exclude={"id", "question", "answer", "sources"})

        return Conversation(
            id=self.id,
            turns=tuple(turns),
            sources=self.sources,
            metadata=metadata,
        )

    @classmethod
    def of(cls, conversation: Conversation) -> ReferenceCase:
        """Return the case that a conversation was made of."""
        # one turn by role: the last one, where there are several
        text_by_role = {turn.role: turn.content for turn in conversation.turns}
        # fields of a case that have no place among turns are kept in the metadata
        fields = {}
        for name, value in conversation.metadata.items():
            if name in cls.model_fields:
                fields[name] = value

        from_turns = {
            "question": text_by_role.get("user", ""),
            "answer": text_by_role.get("assistant"),
            "sources": conversation.sources,
        }
        return cls(**fields | {"id": conversation.id} | from_turns)

    @property
    def flags(self) -> tuple[str, ...]:
        """Warnings about the case; languages are compared by script only."""
        # without a reference there is nothing to compare the answer with
        warnings = [] if self.reference else [NO_REFERENCE_FLAG]
        # a question about a language may rightly be answered in another one
        if not mentions_languages(self.question):
            if differ_in_script(self.reference, self.question):
                warnings.append(REFERENCE_LANGUAGE_FLAG)
            if differ_in_script(self.answer or "", self.question):
                warnings.append(ANSWER_LANGUAGE_FLAG)
        elif differ_in_script(self.answer or "", self.reference):
            # a question that asks for a language: the reference is in it
            warnings.append(ANSWER_LANGUAGE_FLAG)

        return tuple(warnings)


@dataclass(frozen=True)
class ReferenceCases:
    """The cases that were read.

    Attributes:
        bad_rows: Rows that were left out, and why.
        notes: Notes for readers of results.
    """

    cases: tuple[ReferenceCase, ...]
    bad_rows: tuple[BadRow, ...] = ()
    notes: tuple[str, ...] = field(default=())

    def __len__(self) -> int:
        return len(self.cases)

    def __iter__(self) -> Iterator[ReferenceCase]:
        return iter(self.cases)

    @cached_property
    def fingerprint(self) -> str:
        """Fingerprint of all cases, in their order."""
        digest = hashlib.sha256()
        for case in self.cases:
            # Where nothing was shown, the fingerprint is that of a case of before, so a run of
            # before is resumed.
            without = None if case.sources else {"sources"}
            digest.update(case.model_dump_json(exclude=without).encode("utf-8", "replace") + b"\n")

        return digest.hexdigest()


FEWEST_WORDS_FOR_SCRIPT = 6
"""Below so many words (of Chinese: characters) nothing is said."""

LEAST_SHARE_OF_SCRIPT = 0.75
"""Of the words, at least, for a text to be in a script."""

# What stands before an @ has an end: without one, a text without spaces is read again from each of
# its characters.
_NOT_PROSE_PATTERN = re.compile(
    r"```.*?(?:```|\Z)|`[^`\n]*`|\$[^$]*\$|\\\w+|https?://\S+|\S{1,64}@\S+",
    re.DOTALL,
)
_WORD_PATTERNS_BY_SCRIPT = {
    "Kana": re.compile(r"[\u3041-\u30ff]"),
    "Han": re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]"),
    "Hangul": re.compile(r"[\uac00-\ud7af]+"),
    # Variables and chemical symbols are short: what counts as a word of prose has three letters.
    "Latin": re.compile(r"(?<![^\W\d_])[A-Za-z\u00c0-\u024f]{3,}(?![^\W\d_])"),
    "Cyrillic": re.compile(r"[\u0400-\u04ff]{2,}"),
    "Greek": re.compile(r"[\u0370-\u03ff]{3,}"),
    "Arabic": re.compile(r"[\u0600-\u06ff]{2,}"),
    "Hebrew": re.compile(r"[\u0590-\u05ff]{2,}"),
    "Devanagari": re.compile(r"[\u0900-\u097f]+"),
    "Thai": re.compile(r"[\u0e00-\u0e7f]+"),
}
_LANGUAGE_TALK_PATTERN = re.compile(
    r"翻译|译成|译为|英译|汉译|中译|[英法德日韩俄中汉]文|[英法德日韩俄汉]语|语言|拼音|读音|代码|编程"
    r"|translat|english|chinese|french|german|spanish|japanese|korean|russian|arabic|language|\bcode\b"
    r"|italian|portugu|dutch|swedish|polish|turkish|indones|übersetz|tradu|vertaal|deutsch|englisch|franç|españ|sprache",
    re.IGNORECASE,
)


def detect_script(text: str) -> str | None:
    """Return the script of most words of prose in `text`; None if unclear."""
    # formulas, code and addresses are in no language
    prose = _NOT_PROSE_PATTERN.sub(" ", text)
    words = Counter(
        {name: len(pattern.findall(prose)) for name, pattern in _WORD_PATTERNS_BY_SCRIPT.items()}
    )
    if words["Kana"] * 5 >= words["Han"] > 0:  # Japanese is written with both
        words["Kana"] += words.pop("Han")

    script, most = words.most_common(1)[0]
    total = sum(words.values())
    if most >= FEWEST_WORDS_FOR_SCRIPT and most >= LEAST_SHARE_OF_SCRIPT * total:
        return script
    return None


def differ_in_script(text: str, to: str) -> bool:
    """Return whether two texts are clearly written in different scripts."""
    scripts = {detect_script(text), detect_script(to)}
    return len(scripts) == 2 and None not in scripts


def mentions_languages(question: str) -> bool:
    """Return whether a question mentions a language, translation or code.

    Its answer may then be in another language.
    """
    return _LANGUAGE_TALK_PATTERN.search(question) is not None
