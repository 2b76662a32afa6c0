"""The contexts of a remedy: where the target failed, where it went well, and any others; by who may see them."""

import random
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np

from pollex.conversations.conversation import Conversation
from pollex.conversations.reply_context import ReplyContext, chance_of, in_order, may_answer
from pollex.conversations.splits import blocks
from pollex.errors import BadLabels
from pollex.measures.arrays import Ints
from pollex.measures.looks import LOOKS
from pollex.measures.paired_effects import MARGIN
from pollex.measures.proofs import ANY, FAILING, FINE
from pollex.rubrics.records import ChosenRubric
from pollex.services.remedy.contexts import Held, failing, fine
from pollex.services.remedy.prompt_text import PromptText, rendered_for
from pollex.services.remedy.result import STRATA
from pollex.text import count

RemedyPart = Literal["propose", "select", "prove"]
SHARES: tuple[tuple[RemedyPart, float], ...] = (("propose", 0.2), ("select", 0.3), ("prove", 0.5))
FAILURES = 80
ENOUGH = 40
"""Contexts of new conversations from which on none is taken that the rubrics were learned from."""
FEWEST_FAILURES, FEWEST_USERS = 30, 10
FEW_DATA = 120
"""Failing contexts under which there is one proposal, and no selection."""


@dataclass(frozen=True, kw_only=True)
class RemedyOptions:
    """What a remedy is about; `pollex remedy run` describes each.

    Attributes:
        render: Fills a prompt's template for a conversation; None: from its system turn or metadata.
    """

    prompt: Path | str | tuple[str, ...]
    target: str
    edit: Path | str | tuple[str | Path, ...] = ()
    keep: tuple[str, ...] = ()
    any_prompt: bool = False
    margin: float = MARGIN
    candidates: int | None = None
    finalists: int = 1
    accept: str | None = None
    people: int = 0
    live_tools: str = "no"
    back: int = 0
    replies: int | None = None
    tried: int = 60
    others: int = 100
    seed: int = 0
    render: Callable[[str, Conversation], str | None] | None = None

    @property
    def prompts(self) -> tuple[str | Path, ...]:
        """The prompt, or several as `NAME=FILE`."""
        return (self.prompt,) if isinstance(self.prompt, str | Path) else tuple(self.prompt)

    @property
    def edits(self) -> tuple[str | Path, ...]:
        """Changes of the user, each perhaps as `NAME=FILE`; empty: they are proposed."""
        return (self.edit,) if isinstance(self.edit, str | Path) else tuple(self.edit)


@dataclass(frozen=True, kw_only=True)
class RemedySample:
    """All contexts of a log, by stratum, in the random order of users.

    Attributes:
        parts: Of each conversation by id; of none where the user gave the changes, for all of them prove then.
        shares: Of conversations, by stratum.
        learned: Beginnings of the text hashes of conversations that the rubrics were learned from.
        unmatched: Conversations that are left out, since the prompt doesn't make their system turn.
        under: Of these, how many are under each of the other prompts that were given.
        without: Contexts that are left out, since the judge says that the target's occasion never came up there.
    """

    target: Held
    guards: tuple[ChosenRubric, ...]
    strata: Mapping[int, Sequence[ReplyContext]]
    parts: Mapping[str, RemedyPart]
    shares: tuple[float, ...]
    learned: frozenset[str]
    unmatched: int
    others: int = 100
    under: Mapping[str, int] = field(default_factory=dict)
    without: frozenset[str] = frozenset()

    def taken(self, parts: Collection[str], *most: int) -> list[tuple[ReplyContext, int]]:
        """Return contexts of some parts with their strata; new conversations first.

        Args:
            most: Of each stratum.
        """
        found: list[tuple[ReplyContext, int]] = []
        for stratum, number in enumerate(most):
            mine = [one for one in self.strata[stratum] if self.parts.get(one.conversation.id, "prove") in parts]
            new = [one for one in mine if not self.known(one)]
            chosen = new[:number] if len(new) >= min(ENOUGH, number) else [*new, *filter(self.known, mine)][:number]
            found += [(one, stratum) for one in chosen if one.id not in self.without]
        return found

    def known(self, context: ReplyContext) -> bool:
        """Tell whether the rubrics were learned from its conversation."""
        return context.conversation.text_hash[:16] in self.learned

    @property
    def split(self) -> dict[str, dict[str, int]]:
        """How many contexts there are by part and stratum."""
        parts = {s: [self.parts.get(one.conversation.id, "prove") for one in all_] for s, all_ in self.strata.items()}
        return {part: {name: parts[s].count(part) for s, name in enumerate(STRATA)} for part, _ in SHARES}

    @property
    def proof(self) -> list[tuple[ReplyContext, int]]:
        """The contexts that prove."""
        return self.taken(("prove",), FAILURES, self.others // 2, self.others // 2)

    @property
    def users(self) -> int:
        """Users of the failing contexts that prove."""
        return len({context.user for context, stratum in self.proof if stratum == FAILING})

    @property
    def notes(self) -> list[str]:
        """What a reader must know of them."""
        found = []
        if self.unmatched:
            told = "the prompt doesn't make their system turn, or a value is missing"
            found.append(f"{count(self.unmatched, 'conversation')} left out: {told} (--any-prompt takes them)")
        found += [f"{number} of them are under the prompt {name}" for name, number in self.under.items()]
        if "select" in self.parts.values() and (few := len(self.strata[FAILING])) < FEW_DATA:
            found.append(
                f"{few} failing contexts are few to choose among proposals: under {FEW_DATA} one is the default"
            )
        if self.without:
            found.append(f"{count(len(self.without), 'context')} left out: the target's occasion never came up there")
        if known := sum(self.known(context) for context, _ in self.proof):
            found.append(f"{count(known, 'context')} of conversations that the rubrics were learned from")
        return found


def sampled(
    target: Held,
    guards: tuple[ChosenRubric, ...],
    conversations: Sequence[Conversation],
    learned: frozenset[str],
    prompt: PromptText,
    options: RemedyOptions,
    others: Sequence[PromptText] = (),
) -> RemedySample:
    """Choose the contexts, and who proposes, selects and proves; those under other prompts are counted."""
    strata: dict[int, list[ReplyContext]] = {FAILING: list(failing(target)), FINE: list(fine(target)), ANY: []}
    taken = {one.id for contexts in strata.values() for one in contexts}
    for one in conversations:
        if not one.not_scorable and (turns := replies_in(one, len(one.turns))):
            chosen = ReplyContext(one, random.Random(chance_of(one.id, options.seed)).choice(turns))
            strata[ANY] += [] if chosen.id in taken else [chosen]
    shares = [len(strata[one]) / max(len(conversations), 1) for one in (FAILING, FINE)]
    for _ in range(options.back):
        for stratum in (FAILING, FINE):
            before = [(one.conversation, replies_in(one.conversation, one.turn)) for one in strata[stratum]]
            strata[stratum] = [ReplyContext(one, turns[-1]) for one, turns in before if turns]
    unmatched = {
        one.conversation.id: one
        for contexts in strata.values()
        for one in contexts
        if rendered_for(one, prompt, any_prompt=options.any_prompt, render=options.render) is None
    }
    enough = len(strata[FAILING]) >= FEW_DATA if options.candidates is None else options.candidates > 1
    return RemedySample(
        target=target,
        guards=guards,
        strata={
            stratum: in_order([one for one in contexts if one.conversation.id not in unmatched], options.seed)
            for stratum, contexts in strata.items()
        },
        parts={} if options.edit else parts_of(conversations, learned, options.seed, select=enough),
        shares=(*shares, max(0.0, 1 - sum(shares))),
        learned=learned,
        unmatched=len(unmatched),
        under=Counter(
            other.name for one in unmatched.values() for other in others if rendered_for(one, other) is not None
        ),
        others=options.others,
    )


def replies_in(conversation: Conversation, end: int) -> list[int]:
    """Return the places of replies before a turn that may be asked for again."""
    return [turn for turn in range(end) if may_answer(conversation, turn)]


def require_enough(sample: RemedySample) -> None:
    """Raise BadLabels where too few failing contexts or users are there to prove anything."""
    failures = sum(stratum == FAILING for _, stratum in sample.proof)
    if failures < FEWEST_FAILURES or sample.users < FEWEST_USERS:
        more = max(FEWEST_FAILURES - failures, FEWEST_USERS - sample.users, 1)
        what = f"{failures} failing contexts of {sample.users} users are too few for a proof"
        told = [f"{sample.unmatched} more are under another prompt (--any-prompt)"] if sample.unmatched else []
        least = f"{FEWEST_FAILURES} of {FEWEST_USERS} users are needed: {more} more"
        remedy_ = "; ".join([*told, least, "until then: `pollex remedy brief` and `pollex remedy cases`"])
        raise BadLabels(what, where=sample.target.rubric.id, remedy=remedy_)


def waves_of(chosen: Sequence[tuple[ReplyContext, int]], waves: int = LOOKS) -> Ints:
    """Assign each context the wave in which it is asked `[context]`: an equal share of the users of each stratum."""
    found: dict[str, int] = {}
    for stratum in (FAILING, FINE, ANY):
        users = [*dict.fromkeys(c.user for c, s in chosen if s == stratum and c.user not in found)]
        found |= {user: n * waves // len(users) for n, user in enumerate(users)}
    return np.array([found[context.user] for context, _ in chosen], int)


def parts_of(
    conversations: Sequence[Conversation], learned: Collection[str] = (), seed: int = 0, *, select: bool = True
) -> dict[str, RemedyPart]:
    """Assign each conversation a part, by id.

    Conversations of a user, or of one text, are never parted. What the rubrics were learned from proposes and selects
    first: rubrics fitted there flatter themselves.

    Args:
        learned: Beginnings of the text hashes of conversations that rubrics were learned from.
        select: Whether there is a selection; without one, its share proves.
    """
    tied = blocks(conversations)

    def order(block: list[int]) -> tuple[bool, str]:
        names = [conversations[index].id for index in block]
        new = not any(conversations[index].text_hash[:16] in learned for index in block)
        return new, chance_of(min(names), seed)

    found: dict[str, RemedyPart] = {}
    shares = SHARES if select else (("propose", 0.2), ("prove", 0.8))
    ends = np.cumsum([share for _, share in shares]) * len(conversations)
    for block in sorted(tied, key=order):
        place = int((ends < len(found) + len(block) / 2).sum())
        part = shares[min(place, len(shares) - 1)][0]
        found |= {conversations[index].id: part for index in block}
    return found
