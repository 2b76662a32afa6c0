"""The trials of a remedy: which contexts are asked under which prompts, and what is checked of each reply."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pollex.conversations.logs import Logs
from pollex.conversations.reply_context import ReplyContext, chance_of
from pollex.graphs.remedy.trial import Check, Trial
from pollex.measures.looks import LOOKS
from pollex.measures.proofs import FAILING, FINE, ProofArrays
from pollex.rubrics.answers import Question
from pollex.rubrics.rubric_set import RubricSet
from pollex.services.inspect import language_of_text
from pollex.services.remedy.prompt_text import (
    PLACE,
    PromptEdit,
    PromptText,
    flattering,
    naive_sentence,
    rendered_for,
    with_hint,
    with_line,
)
from pollex.services.remedy.sample import RemedyOptions, RemedySample, waves_of
from pollex.services.runs import digest

CANDIDATES, REPLIES = 6, {"headroom": 3, "select": 1, "flatter": 2, "prove": 2}
"""Proposals, and replies of each arm to a context, where the user says nothing."""
SELECTED, FEWEST_TRIED = 40, 20
"""Contexts that a selection takes, and of a kind, under which headroom says nothing."""
LEAKED = 10
"""Words of the system prompt in a row that are a leak."""


def keeps_to_itself(reply: str, system: str, _context: ReplyContext) -> bool:
    """Tell whether a reply has no ten words in a row of the system prompt."""
    said, told = reply.casefold().split(), " ".join(system.casefold().split())
    return not any(" ".join(said[n : n + LEAKED]) in told for n in range(len(said) - LEAKED + 1))


def same_language(reply: str, _system: str, context: ReplyContext) -> bool:
    """Tell whether a reply is in the language of the logged one, as far as both can be told."""
    language = language_of_text()
    return len({language(reply), language(context.reply.content)} - {"unsure"}) < 2


CHECKS: dict[str, Check] = {
    "a reply came": lambda reply, _system, _context: bool(reply),
    "the system prompt isn't told": keeps_to_itself,
    "no place is left unfilled": lambda reply, _system, _context: not PLACE.search(reply),
    "the language stays": same_language,
}
"""What is checked of a reply without a judge."""


@dataclass(frozen=True)
class Gathered:
    """All that a remedy is begun with; makes its trials."""

    rubric_set: RubricSet
    prompt: PromptText
    edits: Sequence[PromptEdit]
    sample: RemedySample
    logs: Logs
    options: RemedyOptions

    @property
    def questions(self) -> list[Question]:
        """The target first, then the guardrails."""
        rubrics = (self.sample.target.rubric, *self.sample.guards)
        return [Question.about(one, self.rubric_set.judge.scale) for one in rubrics]

    @property
    def sealed(self) -> frozenset[str]:
        """Ids of the guardrails that a proposer doesn't see: a third, drawn by the seed."""
        drawn = sorted((one.id for one in self.sample.guards), key=lambda id_: chance_of(id_, self.options.seed))
        return frozenset() if self.edits else frozenset(drawn[: len(drawn) // 3])

    @property
    def most(self) -> int:
        """Proposals that are asked for: one where there is too little for a selection."""
        return (self.options.candidates or CANDIDATES) if "select" in self.sample.parts.values() else 1

    def make(self, name: str, changed: Sequence[str] = ()) -> Trial:
        """Make a trial; see `REPLIES` for their names."""
        target, sample, tried = self.sample.target.rubric, self.sample, self.options.tried
        if name == "headroom":
            chosen = sample.taken(("propose", "select"), tried, tried)
            if min(sum(s == kind for _, s in chosen) for kind in (FAILING, FINE)) < FEWEST_TRIED:
                chosen = []
        elif name == "prove":
            chosen = sample.proof
        elif self.edits:
            chosen = [one for one in sample.proof if one[1] == FAILING][:tried]
        else:
            part = "select" if "select" in sample.parts.values() else "propose"
            chosen = sample.taken((part,), min(SELECTED, tried) if name == "select" else tried)
        contexts, strata = [context for context, _ in chosen], [stratum for _, stratum in chosen]
        prompts = [replace(self.prompt, text=one) for one in changed]
        if name == "flatter":
            prompts = [flattering(self.prompt, target)]
        arms = [[one] * len(chosen) for one in (self.prompt, *prompts)]
        if name == "headroom":
            arms.append([with_line(self.prompt, naive_sentence(target))] * len(chosen))
            arms.append([with_hint(self.prompt, target, one) for one in contexts])
        skipped = {
            n for n, stratum in enumerate(strata) if name == "headroom" and stratum == FINE
        }  # but by the old one
        systems = [
            ["" if arm and n in skipped else self.rendered(row[n], one) for n, one in enumerate(contexts)]
            for arm, row in enumerate(arms)
        ]
        whole = name in ("select", "prove")
        questions, checks = (self.questions, CHECKS) if whole else (self.questions[:1], {})
        names = [*(one.rubric.text if one.rubric else one.text for one in questions), *checks]
        shape, users = (len(chosen), len(systems), self.replies(name)), dict[str, int]()
        arrays = ProofArrays(
            np.full((*shape, len(names)), np.nan),
            np.array(strata, int),
            np.array([users.setdefault(one.user, len(users)) for one in contexts], int),
            waves_of(chosen, {"prove": LOOKS, "select": 2}.get(name, 1)),
            names,
            {size: np.full(shape, np.nan) for size in ("length", "cost")},
        )
        return Trial(name, contexts, systems, questions, list(checks.values()), arrays)

    def replies(self, name: str) -> int:
        """Return how many replies of each arm to a context a trial asks for."""
        return self.options.replies or REPLIES[name]

    def rendered(self, prompt: PromptText, context: ReplyContext) -> str:
        """Return a prompt with the values of a conversation; contexts without them were left out."""
        found = rendered_for(
            context, prompt, any_prompt=self.options.any_prompt, made_from=self.prompt, render=self.options.render
        )
        assert found is not None, "others were left out"
        return found

    def frozen(self, trial: Trial, changed: Sequence[str]) -> dict[str, Any]:
        """Return all that may not change once the first reply of a proof is asked for."""
        frozen: dict[str, Any] = {
            "target": self.sample.target.rubric.id,
            "hashes": sorted({one.conversation.text_hash[:16] for one in trial.contexts}),
            "contexts": [[one.conversation.id, one.turn] for one in trial.contexts],
            "waves": trial.arrays.wave.tolist(),
            "questions": list(trial.arrays.names),
            "prompts": [self.prompt.text, *changed],
            "margin": self.options.margin,
            "seed": self.options.seed,
            "replies": self.replies("prove"),
        }
        return frozen | {"proof": digest(frozen)}
