"""The state of a remedy: what its nodes hand on."""

from pollex.graphs.batches import BatchState
from pollex.text import JsonDict


class RemedyState(BatchState, total=False):
    """Where a remedy is, and what each node found; replies are in the store.

    `first`, `worst` and `so_far` tell of replies: what each prompt made of the first conversations
    of a batch, those where a new prompt fell the most behind the old one, and how far each does
    what the target asks.

    Attributes:
        split: Contexts by who may see them and by what they are.
        headroom: Whether replies still fail, and whether a prompt mends that; see
            `ProofArrays.headroom`.
        candidates: Changes: purpose, diff, the whole text, and why one is refused.
        tried: Names of those that were accepted.
        scores: What a selection goes by, by wave and name.
        edits: Names of the changes that are still in it, in the order of their arms.
        proof: Which proof of the target on such conversations it is, from 1: each has a stricter
            level.
        flatterer: What a prompt came to that only has replies claim to do well.
        look: Looks that were taken.
        looks: By look and name: the effect on the target, with the interval of that look.
        ended: Of each proven change by name, a `measures.proofs.ProofEnd`.
        cut: Fraction of users at which a cap of calls or cost ended the proof; 0 if none did.
        pairs: By name, how often a reader without rubrics prefers the new reply.
        choices: What people chose, by pair.
        decisions: By change, what the looks so far decided, in words.
        verdicts: Of each proven change, the best first.
        why: Why it ended before a proof; empty if it didn't.
    """

    split: dict[str, dict[str, int]]
    headroom: JsonDict | None
    candidates: list[dict[str, str]]
    tried: list[str]
    scores: list[dict[str, float]]
    edits: list[str]
    proof: int
    flatterer: JsonDict
    look: int
    looks: list[JsonDict]
    ended: dict[str, JsonDict]
    cut: float
    pairs: dict[str, JsonDict]
    choices: dict[str, str]
    decisions: dict[str, str]
    verdicts: list[JsonDict]
    why: str
