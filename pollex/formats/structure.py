"""The structure of a log as it was read: whose turns follow whose, and what is empty or repeated.

A log that was read wrongly has turns, too. It shows in what is out of the ordinary: answers that
follow each other, conversations in which only one side speaks, turns without words, words that come
again and again.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from operator import eq

from pollex.conversations.conversation import Conversation
from pollex.text import format_count

MAX_TURNS_COMPARED = 10_000
"""Turns whose words are compared with others'."""
MIN_CONVERSATIONS_TO_REPORT_STRUCTURE = 3
"""Conversations from which on something is said of them."""
MIN_TURNS_TO_REPEAT = 20
"""Turns from which on words are said to repeat."""
MIN_UNUSUAL_CONVERSATION_SHARE_TO_REPORT = 0.5
"""Share of conversations that is out of the ordinary."""
MIN_EMPTY_TURN_SHARE_TO_REPORT = 0.1
"""Share of turns without words that is much."""
MIN_SHARE_OF_TURNS_AFTER_SAME_SIDE = 1 / 3
"""Share of a side's turns that follow its own that is much."""
MIN_SYSTEM_ANSWERS_SHARE = 0.9
"""Share of conversations in which the system answers users, and nobody else does, where it is the assistant."""
MAX_DISTINCT_TEXT_SHARE_OF_REPETITIVE_LOG = 0.1
"""Share of different texts among all that is little."""


@dataclass(slots=True)
class LogStructure:
    """Counts of what a log looks like.

    Attributes:
        conversations: How many were looked at.
        one_sided: Those with turns of a user alone, or of an assistant alone.
        in_a_row: By role, those in which at least a third of its turns follow one of its own.
        turns: Turns of users and assistants.
        empty: Those without words and calls.
        answered_by_system: Conversations without an assistant in which the system speaks after a user.
        texts: Number of turns by hash of their words, of the first ones.
    """

    conversations: int = 0
    one_sided: Counter[str] = field(default_factory=Counter)
    in_a_row: Counter[str] = field(default_factory=Counter)
    turns: int = 0
    empty: int = 0
    answered_by_system: int = 0
    texts: Counter[int] = field(default_factory=Counter)
    compared: int = 0

    def look_at(self, conversation: Conversation) -> None:
        """Count a conversation."""
        self.conversations += 1
        roles = [turn.role for turn in conversation.turns]
        spoken = {"user": roles.count("user"), "assistant": roles.count("assistant")}
        self.turns += spoken["user"] + spoken["assistant"]
        texts = [turn.content for turn in conversation.turns]
        # turns without words, unless they call a tool
        if not all(texts):
            empty_turns = (
                turn for turn in conversation.turns if turn.role in spoken and not turn.content
            )
            self.empty += sum(not turn.calls for turn in empty_turns)

        # how many texts differ, of the first ones
        if self.compared < MAX_TURNS_COMPARED:
            spoken_texts = []
            for role, text in zip(roles, texts, strict=True):
                if role in spoken and text:
                    spoken_texts.append(text)
            self.compared += len(spoken_texts)
            self.texts.update(map(hash, spoken_texts))

        # conversations of one side, and sides whose turns follow each other
        if not spoken["user"] or not spoken["assistant"]:
            self.one_sided.update(role for role, turns in spoken.items() if turns)
            self.answered_by_system += ("user", "system") in pairwise(roles)
        elif any(map(eq, roles, roles[1:])):
            self._look_at_rows(conversation, spoken)

    def _look_at_rows(self, conversation: Conversation, spoken: dict[str, int]) -> None:
        """Count a conversation in which turns of one side follow each other without a call between."""
        repeated = Counter(
            a.role for a, b in pairwise(conversation.turns) if a.role == b.role and not a.calls
        )
        for role, times in repeated.items():
            if role in spoken and times >= MIN_SHARE_OF_TURNS_AFTER_SAME_SIDE * spoken[role]:
                self.in_a_row[role] += 1

    @property
    def different(self) -> float:
        """The share of different words among the turns that were compared."""
        if self.compared:
            return len(self.texts) / self.compared
        return 1.0

    @property
    def is_system_assistant(self) -> bool:
        """Whether nearly all conversations are between users and a system, as corpora of dialogues call it."""
        nearly_all = MIN_SYSTEM_ANSWERS_SHARE * self.conversations
        return bool(self.conversations) and self.answered_by_system >= nearly_all

    @property
    def faults(self) -> Iterator[str]:
        """What is out of the ordinary, in words."""
        n = self.conversations
        if n < MIN_CONVERSATIONS_TO_REPORT_STRUCTURE:
            return

        one_sided = self.one_sided.total()
        if one_sided >= MIN_UNUSUAL_CONVERSATION_SHARE_TO_REPORT * n:
            roles = " and ".join(
                f"{role}'s ({times})" for role, times in self.one_sided.most_common()
            )
            of = format_count(n, "conversation")
            yield f"{one_sided} of {of} have turns of one side alone, the {roles}"

        for role, times in self.in_a_row.items():
            if times >= MIN_UNUSUAL_CONVERSATION_SHARE_TO_REPORT * n:
                yield f"in {times} of {n} conversations turns of the {role} follow each other, with no other between"

        if self.empty >= MIN_EMPTY_TURN_SHARE_TO_REPORT * self.turns and self.empty:
            yield f"{self.empty} of {self.turns} turns of user and assistant have no words"
        if (
            self.compared >= MIN_TURNS_TO_REPEAT
            and self.different < MAX_DISTINCT_TEXT_SHARE_OF_REPETITIVE_LOG
        ):
            most = self.texts.most_common(1)[0][1]
            yield f"{self.compared} turns have {len(self.texts)} different texts, one of them {most} times"

    @property
    def notes(self) -> list[str]:
        """A note on what is out of the ordinary; none in most logs."""
        notes: list[str] = []
        for fault in self.faults:
            notes.append(f"{fault}: look whether it was read rightly")
        return notes
