"""The contexts of a proof: where the target failed, where it went well, and any others."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pollex.conversations.conversation import Conversation
from pollex.conversations.reply_context import ReplyContext, chance_of, in_order, may_answer
from pollex.measures.looks import LOOKS
from pollex.measures.paired_effects import MARGIN
from pollex.measures.proofs import ANY, FAILING, FINE
from pollex.rubrics.records import ChosenRubric
from pollex.services.remedy.contexts import Held, failing, fine
from pollex.services.remedy.prompt_text import PromptText
from pollex.services.remedy.rendering import rendered_for
from pollex.text import count

FAILURES, OTHERS = 80, 100
ENOUGH = 40
"""Contexts of new conversations from which on none is taken that the rubrics were learned from."""


@dataclass(frozen=True, kw_only=True)
class RemedyOptions:
    """What a proof is about.

    Attributes:
        keep: Patterns of lines of the prompt that nobody may change.
        any_prompt: Whether conversations under another system prompt count, too.
        margin: Drop of a guardrail that is to be ruled out.
    """

    prompt: Path
    target: str
    edit: Path
    keep: tuple[str, ...] = ()
    any_prompt: bool = False
    margin: float = MARGIN
    seed: int = 0


@dataclass(frozen=True, kw_only=True)
class ProofSample:
    """The contexts of a proof.

    Attributes:
        shares: Of conversations, by stratum.
        learned: Contexts whose conversations the rubrics were learned from.
        unmatched: Conversations that are left out, since the prompt doesn't make their system turn.
    """

    target: Held
    guards: tuple[ChosenRubric, ...]
    contexts: tuple[ReplyContext, ...]
    strata: tuple[int, ...]
    shares: tuple[float, ...]
    learned: int
    unmatched: int

    @property
    def failures(self) -> int:
        """Failing contexts."""
        return self.strata.count(FAILING)

    @property
    def users(self) -> int:
        """Users of the failing contexts."""
        return len({c.user for c, s in zip(self.contexts, self.strata, strict=True) if s == FAILING})

    @property
    def notes(self) -> list[str]:
        """What a reader must know of them."""
        found = []
        if self.unmatched:
            told = "the prompt doesn't make their system turn, or a value is missing"
            found.append(f"{count(self.unmatched, 'conversation')} left out: {told} (--any-prompt takes them)")
        if self.learned:
            found.append(f"{count(self.learned, 'context')} of conversations that the rubrics were learned from")
        return found


def sampled(
    target: Held,
    guards: tuple[ChosenRubric, ...],
    conversations: Sequence[Conversation],
    learned: frozenset[str],
    prompt: PromptText,
    options: RemedyOptions,
) -> ProofSample:
    """Choose the contexts of a proof: failing ones, fine ones, and any others, in the random order of users."""
    seed = options.seed
    strata: dict[int, Sequence[ReplyContext]] = {FAILING: failing(target), FINE: fine(target)}
    taken = {one.id for contexts in strata.values() for one in contexts}
    strata[ANY] = [one for one in map(any_reply(seed), conversations) if one is not None and one.id not in taken]
    unmatched = {
        one.conversation.id
        for contexts in strata.values()
        for one in contexts
        if rendered_for(one, prompt, any_prompt=options.any_prompt) is None
    }
    chosen: list[ReplyContext] = []
    numbers: list[int] = []
    for stratum, most in ((FAILING, FAILURES), (FINE, OTHERS // 2), (ANY, OTHERS // 2)):
        fit = [one for one in strata[stratum] if one.conversation.id not in unmatched]
        new = [one for one in in_order(fit, seed) if one.conversation.text_hash[:16] not in learned]
        known = [one for one in in_order(fit, seed) if one.conversation.text_hash[:16] in learned]
        mine = new[:most] if len(new) >= min(ENOUGH, most) else [*new, *known][:most]
        chosen += mine
        numbers += [stratum] * len(mine)
    n = max(len(conversations), 1)
    parts = [len(strata[FAILING]) / n, len(strata[FINE]) / n]
    return ProofSample(
        target=target,
        guards=guards,
        contexts=tuple(chosen),
        strata=tuple(numbers),
        shares=(*parts, max(0.0, 1 - sum(parts))),
        learned=sum(one.conversation.text_hash[:16] in learned for one in chosen),
        unmatched=len(unmatched),
    )


def any_reply(seed: int) -> Callable[[Conversation], ReplyContext | None]:
    """Return what draws a reply of a conversation by chance."""

    def drawn(conversation: Conversation) -> ReplyContext | None:
        places = [turn for turn in range(len(conversation.turns)) if may_answer(conversation, turn)]
        if conversation.not_scorable or not places:
            return None
        return ReplyContext(conversation, random.Random(chance_of(conversation.id, seed)).choice(places))

    return drawn


def waves_of(sample: ProofSample) -> list[int]:
    """Assign each context the look before which it is asked: a quarter of the users of each stratum each time."""
    waves: dict[str, int] = {}
    for stratum in (FAILING, FINE, ANY):
        mine = [c.user for c, s in zip(sample.contexts, sample.strata, strict=True) if s == stratum]
        users = [user for user in dict.fromkeys(mine) if user not in waves]
        waves |= {user: n * LOOKS // len(users) for n, user in enumerate(users)}
    return [waves[context.user] for context in sample.contexts]
