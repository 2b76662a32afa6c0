"""What a change is worth in thumbs, if the relation of rubrics and thumbs in the log holds for the new replies too."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pollex.agents.assistant import AssistantReply
from pollex.conversations.conversation import Conversation, Label
from pollex.graphs.remedy.trial import Trial
from pollex.measures.arrays import Floats
from pollex.measures.paired_effects import of_users
from pollex.measures.proofs import FAILING, OLD
from pollex.rubrics.rubric_set import RubricSet
from pollex.selection.platt import fit_calibration
from pollex.services.scorer import BatchScorer
from pollex.services.turns import FEWEST, beginning, user_turns

DRAWS = 200
BASIS = "if the relation of rubrics and thumbs in the log holds for the new replies too"


@dataclass(frozen=True)
class Thumbs:
    """Maps NetSAT at the reply to the probability of a thumb up, as `pollex turns` fits it."""

    rubric_set: RubricSet
    conversations: Sequence[Conversation]

    def of(self, seed: int, trial: Trial, arm: int, look: int) -> dict[str, Any]:
        """Return the effect on P(thumb up) where the target failed; its interval resamples labels, too."""
        able = {one.turns: one for one in self.rubric_set.turns if one.helps}
        if not self.rubric_set.judge.built_in:
            return {"value": None, "reason": "the set's judge is a model: every rubric would be paid for at each reply"}
        if not able:
            return {"value": None, "reason": "the set has no probability that helps after a turn (`pollex turns`)"}
        depth, scorer = min(able), BatchScorer(self.rubric_set)
        mine = [
            n for n, one in enumerate(trial.contexts)
            if trial.arrays.wave[n] <= look and user_turns(one.cut) == depth and trial.arrays.stratum[n] == FAILING
        ]  # fmt: skip
        values = {side: self.netsat(trial, number, mine, scorer) for side, number in (("old", OLD), ("new", arm))}
        known = ~np.isnan(values["old"]) & ~np.isnan(values["new"])
        labeled = [one for one in self.conversations if one.label is not Label.NONE and user_turns(one) >= depth]
        if known.sum() < FEWEST // 2 or len(labeled) < FEWEST:
            return {
                "value": None,
                "reason": f"{int(known.sum())} replies after turn {depth}, where a probability helps",
            }
        scored = scorer.scores([beginning(one, depth) for one in labeled])
        x = np.array([np.nan if one.netsat is None else one.netsat for one in scored], float)
        up = np.array([one.label is Label.POSITIVE for one in labeled])
        x, up = x[~np.isnan(x)], up[~np.isnan(x)]
        rng, drawn, users = np.random.default_rng(seed), [], trial.arrays.user[np.array(mine)[known]]
        for number in range(DRAWS + 1):
            rows = rng.integers(0, len(x), len(x)) if number else np.arange(len(x))
            if up[rows].all() or not up[rows].any():
                continue
            fitted = fit_calibration(x[rows], up[rows])
            each = of_users(fitted.probability(values["new"][known]) - fitted.probability(values["old"][known]), users)
            drawn.append(float(each[rng.integers(0, len(each), len(each))].mean() if number else each.mean()))
        low, high = np.quantile(drawn[1:], (0.025, 0.975))
        told = {"value": drawn[0], "low": float(low), "high": float(high), "n": int(known.sum())}
        return told | {"basis": f"{BASIS}; where the target failed, after turn {depth}"}

    def netsat(self, trial: Trial, arm: int, mine: Sequence[int], scorer: BatchScorer) -> Floats:
        """Return the mean NetSAT of the conversations up to the replies `[context]`; NaN: no reply."""
        found = np.full(len(mine), np.nan)
        for place, n in enumerate(mine):
            texts = [one.text for k in range(trial.arrays.values.shape[2])
                     if isinstance(one := trial.texts.get((n, arm, k)), AssistantReply)]  # fmt: skip
            scores = [one.netsat for one in scorer.scores([trial.contexts[n].with_reply(text) for text in texts])]
            if scores and None not in scores:
                found[place] = float(np.mean(np.array(scores, float)))
        return found
