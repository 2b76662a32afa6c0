"""The structure of a log as it was read: whose turns follow whose, and what is empty or repeated.

A log that was read wrongly has turns, too. It shows in what is out of the ordinary: answers that follow
each other, conversations in which only one side speaks, turns without words, words that come again and again.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from pollex.conversations.conversation import Conversation
from pollex.text import count

MOST_KEPT = 50_000
"""Turns whose words are compared with others'."""
FEWEST = 3
"""Conversations from which on something is said of them."""
FEWEST_TURNS = 20
"""Turns from which on words are said to repeat."""
MUCH = 0.5
"""Share of conversations that is out of the ordinary."""
MANY_EMPTY, MANY_IN_A_ROW, FEW_WORDS = 0.1, 1 / 3, 0.1
"""Shares of turns without words, of a side's turns that follow its own, and of different words."""


@dataclass(slots=True)
class Structure:
    """Counts of what a log looks like.

    Attributes:
        conversations: How many were looked at.
        one_sided: Those with turns of a user alone, or of an assistant alone.
        in_a_row: By role, those in which at least a third of its turns follow one of its own.
        turns: Turns of users and assistants.
        empty: Those without words and calls.
        texts: Number of turns by hash of their words, of the first ones.
    """

    conversations: int = 0
    one_sided: Counter[str] = field(default_factory=Counter)
    in_a_row: Counter[str] = field(default_factory=Counter)
    turns: int = 0
    empty: int = 0
    texts: Counter[int] = field(default_factory=Counter)
    compared: int = 0

    def look_at(self, conversation: Conversation) -> None:
        """Count a conversation."""
        self.conversations += 1
        roles, before = Counter[str](), ""
        repeated = Counter[str]()
        for turn in conversation.turns:
            role = turn.role
            if role in ("user", "assistant"):
                roles[role] += 1
                if role == before:
                    repeated[role] += 1
                if not turn.content and not turn.calls:
                    self.empty += 1
                elif self.compared < MOST_KEPT:
                    self.compared += 1
                    self.texts[hash(turn.content)] += 1
            before = role if not turn.calls else ""
        self.turns += roles.total()
        if len(roles) == 1:
            self.one_sided.update(roles.keys())
        for role, times in repeated.items():
            if len(roles) == 2 and times >= MANY_IN_A_ROW * roles[role]:
                self.in_a_row[role] += 1

    @property
    def different(self) -> float:
        """The share of different words among the turns that were compared."""
        return len(self.texts) / self.compared if self.compared else 1.0

    @property
    def faults(self) -> Iterator[str]:
        """What is out of the ordinary, in words."""
        n = self.conversations
        if n < FEWEST:
            return
        one_sided = self.one_sided.total()
        if one_sided >= MUCH * n:
            roles = " and ".join(f"{role}'s ({times})" for role, times in self.one_sided.most_common())
            of = count(n, "conversation")
            yield f"{one_sided} of {of} have turns of one side alone, the {roles}"
        for role, times in self.in_a_row.items():
            if times >= MUCH * n:
                yield f"in {times} of {n} conversations turns of the {role} follow each other, with no other between"
        if self.empty >= MANY_EMPTY * self.turns and self.empty:
            yield f"{self.empty} of {self.turns} turns of user and assistant have no words"
        if self.compared >= FEWEST_TURNS and self.different < FEW_WORDS:
            most = self.texts.most_common(1)[0][1]
            yield f"{self.compared} turns have {len(self.texts)} different texts, one of them {most} times"

    @property
    def notes(self) -> list[str]:
        """A note on what is out of the ordinary; none in most logs."""
        return [f"{fault}: look whether it was read rightly" for fault in self.faults]
