"""The embedded pool of one split: what `learn` chooses from, judged on the held-out side as well.

`learn` asks about the held-out conversations only what it chose. A comparison of policies needs the
answers to the whole pool there; and it needs them once, not once a policy.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
import numpy.typing as npt

from pollex.agents.embedded.embedder import Embedder
from pollex.agents.roles import Extraction, Roles, ask_both_sides
from pollex.conversations.conversation import Conversation
from pollex.conversations.logs import Logs, flag_positive_labels
from pollex.conversations.splits import assign_folds, split_conversations
from pollex.prompts.domain import DomainProfile
from pollex.rubrics.answers import Question
from pollex.rubrics.learning.material import GivenAnswers
from pollex.rubrics.learning.settings import LearnSettings
from pollex.rubrics.rubric import Polarity, Reason, Rubric, add_reasons_to_rubric
from pollex.runs.roles import build_embedded_roles, make_embedded_judge_record

FOLDS = 5

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class JudgedPool:
    """One split's pool, as `learn` sees it on the training side.

    Attributes:
        values: What NetSAT adds up, of training conversations `[conversation, rubric]`.
        positive: Their labels `[conversation]`.
        folds: Their folds `[conversation]`, as `learn` deals them.
        held_out: Likewise of held-out conversations `[conversation, rubric]`.
        truth: Their labels `[conversation]`.
        sat: Kinds `[rubric]`.
        ids: Of the rubrics.
    """

    values: Floats
    positive: Bools
    folds: npt.NDArray[np.int64]
    held_out: Floats
    truth: Bools
    sat: Bools
    ids: tuple[str, ...]

    def save(self, path: Path) -> None:
        """Kept for another benchmark on the same split."""
        np.savez_compressed(path, **vars(self))

    @classmethod
    def load(cls, path: Path) -> Self:
        """What `save` kept."""
        with np.load(path) as stored:
            arrays = {name: stored[name] for name in stored.files}
        return cls(**arrays | {"ids": tuple(arrays["ids"].tolist())})


def judged_pool(
    logs: Logs, profile: DomainProfile, seed: int, embeddings: Path, kept: Path | None = None
) -> JudgedPool:
    """The pool of the split that `learn` draws from this seed.

    Args:
        embeddings: Folder of cached embeddings.
        kept: Folder of pools that were judged before; None keeps none.
    """
    place = None if kept is None else kept / f"{logs.fingerprint[:12]}-{seed}.npz"
    if place is not None and place.exists():
        return JudgedPool.load(place)
    found = asyncio.run(
        _judged(
            logs,
            build_embedded_roles(profile, embedder := Embedder(cache=embeddings)),
            embedder,
            seed,
        )
    )
    if place is not None:
        place.parent.mkdir(parents=True, exist_ok=True)
        found.save(place)
    return found


async def _judged(logs: Logs, roles: Roles, embedder: Embedder, seed: int) -> JudgedPool:
    settings = LearnSettings(seed=seed)
    sides = split_conversations(logs.learnable, settings.test_fraction, seed)
    rubrics = await _pool(roles, sides.train, settings.mini_batch)
    table = GivenAnswers(make_embedded_judge_record(embedder).options.value)
    await roles.judge.fit(sides.train, rubrics)
    for side in (sides.train, sides.test):
        await roles.judge.prepare(side)
        for conversation in side:
            questions = [Question.about(rubric) for rubric in rubrics]
            table.take(conversation.id, await ask_both_sides(roles.judge, conversation, questions))
    return JudgedPool(
        values=table.matrix(sides.train, rubrics)[0],
        positive=flag_positive_labels(sides.train),
        folds=assign_folds(sides.train, FOLDS, seed),
        held_out=table.matrix(sides.test, rubrics)[0],
        truth=flag_positive_labels(sides.test),
        sat=np.array([rubric.polarity == "sat" for rubric in rubrics]),
        ids=tuple(rubric.id for rubric in rubrics),
    )


async def _pool(roles: Roles, training: Sequence[Conversation], batch: int) -> Sequence[Rubric]:
    """Extraction, summaries and deduplication, in the order of the graph and without its records."""
    await roles.extractor.fit(training)
    found = [await roles.extractor.extract(conversation) for conversation in training]
    reasons = [reason for one in found if isinstance(one, Extraction) for reason in one.reasons]
    kinds: tuple[Polarity, Polarity] = ("sat", "dsat")
    pools = [
        await _summarized(roles, [r for r in reasons if r.polarity == kind], kind, batch)
        for kind in kinds
    ]
    return (
        await roles.deduplicator.deduplicate([rubric for pool in pools for rubric in pool])
    ).kept


async def _summarized(
    roles: Roles, reasons: Sequence[Reason], polarity: Polarity, batch: int
) -> list[Rubric]:
    pool = dict[str, Rubric]()
    for start in range(0, len(reasons), batch):
        summary = await roles.summarizer.summarize(
            reasons[start : start + batch], tuple(pool.values()), polarity
        )
        assert not hasattr(summary, "outcome"), "the embedded summariser always answers"
        pool |= {
            id_: add_reasons_to_rubric(pool[id_], more) for id_, more in summary.supported.items()
        }
        pool |= {rubric.id: rubric for rubric in summary.rubrics if rubric.id not in pool}
    return list(pool.values())
