"""The state that `learn` passes between nodes, and what its nodes work with."""

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

from pydantic import AfterValidator

# LangGraph Studio can't show the standard one before Python 3.12
from typing_extensions import TypedDict

from pollex.agents.roles import Extraction, Extractor, Judge, Roles
from pollex.conversations.conversation import Conversation
from pollex.graphs.context import LogContext, Resources
from pollex.prompts.domain import DomainProfile
from pollex.rubrics.answers import Unanswered
from pollex.rubrics.edits import make_pool_row, read_edited_pool
from pollex.rubrics.learning.material import Material
from pollex.rubrics.learning.results import Learned
from pollex.rubrics.rubric import Polarity, Reason, Rubric, make_content_id
from pollex.store.resume import read_step_result


def _require_pool_row(row: dict[str, object]) -> dict[str, object]:
    """Return a row of a pool as it is; see `edits.make_pool_row`.

    Raises:
        ValueError: It has no id, text or polarity.
    """
    if not all(isinstance(row.get(name), str) for name in ("id", "text", "polarity")):
        raise ValueError("a rubric of the pool has no id, text or polarity")
    return row


PoolRow = Annotated[dict[str, object], AfterValidator(_require_pool_row)]


class LearnState(TypedDict, total=False):
    """What a person wants to see of a run; bulk is in the store, under the run's id.

    Attributes:
        parent: The run that this one was forked from, with the node, `learn-3:deduplicate`.
        split: Conversations of either side, and a digest of their ids.
        progress: By stage, how many conversations are done, of how many, and outcomes.
        reasons: By side, how many there are, and the first ones with up to three quotes.
        pool: By side, the rubrics that were written; see `edits.make_pool_row`.
        refused: Why batches and texts came to no rubric, and how often.
        kept: The pool without duplicates, as a person may have edited it.
        merged: By duplicate, the rubric that it was merged into.
        reworded: By rubric that was hard to judge, the one that says it in better words.
        mirrors: Pairs of a rubric and its reverse on the other side.
        judged_by: By rubric of the pool, who answers it.
        learned: By rubric of the pool, what its judge learned on training conversations.
        pooled: By rubric of the pool, its mean answer, their spread, and the share answered.
        chosen: Rubrics of the set with step, loss and standing.
        dropped: By rubric that was not chosen, why.
        alphas: The table that α was chosen by.
        probability: The model of the probability, why, and what it was compared with.
        figures: Of the held-out conversations, each with its interval.
        theta: The threshold of NetSAT, with the `window` of uncertainty around it.
        model: Of the probability: its name, λ by which a network is shrunk to its start, and what
            each rubric weighs, the change of log-odds from the lowest to the highest answer with
            all others in the middle.
        digest: Of the rubric set, which is in the store.
    """

    run: str
    parent: str
    settings: dict[str, object]
    split: dict[str, object]
    progress: Annotated[dict[str, dict[str, object]], operator.or_]
    reasons: dict[str, dict[str, object]]
    pool: Annotated[dict[str, list[PoolRow]], operator.or_]
    refused: Annotated[dict[str, int], operator.or_]
    kept: list[PoolRow]
    merged: dict[str, str]
    reworded: dict[str, str]
    mirrors: list[list[str]]
    reviewed: bool
    judged_by: dict[str, str]
    learned: dict[str, object]
    pooled: dict[str, dict[str, object]]
    chosen: list[PoolRow]
    dropped: dict[str, dict[str, object]]
    alpha: float
    alphas: list[dict[str, object]]
    probability: dict[str, object]
    figures: dict[str, object]
    theta: float
    window: dict[str, float | None]
    model: dict[str, object]
    digest: str
    notes: list[str]


@dataclass(frozen=True, kw_only=True)
class LearnChoice(LogContext):
    """What the user chose for `learn`; what is empty or 0 is as usual.

    Attributes:
        domain: A domain profile or its file; empty for the neutral one.
        system: Settings of a system of RUBICON's paper, `--as` of the command: `rubicon`.
        policy: How rubrics are chosen; the fields after it are as in `LearnSettings`.
        scale: On which a model judges rubrics; the fields after it are as in `JudgeSettings`.
        starter: A rubric set learned elsewhere: its file, run or digest.
        test_fraction: Share held out; None holds out half where a model works on many labels, and
            else nothing.
        budget: Rubrics of each side at most; 0 for 15 in all.
        review: Whether the run waits for people at the pool.
    """

    domain: str = ""
    test_fraction: float | None = None
    budget: int = 0
    seed: int = 0
    review: bool = False
    system: str = ""
    method: str = ""
    policy: str = ""
    alpha: float | None = None
    probability: str = ""
    also: str = ""
    mini_batch: int = 0
    scale: str = ""
    prompts: str = ""
    samples: int = 0
    elicitation: str = ""
    require: str = ""
    without: str = ""
    reasons: int = 0
    starter: str = ""
    sources: int = 0
    embedding_model: str = ""


@dataclass(frozen=True, kw_only=True)
class LearnContext(Resources):
    """What the nodes of `learn` work with.

    Attributes:
        material: Both sides of the log and the answers; a node adds the rubrics that its state
            names.
        extractions: By training conversation; what the store has, kept at hand.
        by_id: All conversations that are judged.
        writing: What the nodes that write rubrics begin with.
        review: Whether the run waits for people at the pool.
        fitted: Roles that have learned in this process.
        result: Filled by the last node, for who runs the graph.
    """

    material: Material
    extractions: dict[str, Extraction | Unanswered]
    by_id: Mapping[str, Conversation]
    roles: Roles
    profile: DomainProfile
    prompts: dict[str, str] = field(default_factory=dict)
    writing: str = "summarize"
    review: bool = False
    fitted: set[str] = field(default_factory=set)
    result: list[Learned] = field(default_factory=list)

    def bulk(self, name: str) -> Any:
        """Return what a node kept under its name."""
        return read_step_result(self.store, self.run, name)

    def material_at(self, state: LearnState) -> Material:
        """Return the material with the rubrics that a state names, as the store has them."""
        written = {}
        for side in state.get("pool", {}):
            written[side] = self.bulk(f"{self.writing}_{side}")

        pool = {}
        for side, written_side in written.items():
            pool[side] = tuple(map(Rubric.model_validate, written_side["pool"]))

        written_rubrics: list[Rubric] = []
        for rubrics in pool.values():
            written_rubrics.extend(rubrics)
        known_rubrics = [
            *self.material.kept,
            *written_rubrics,
        ]
        if "merged" in state:
            known_rubrics += map(
                Rubric.model_validate,
                self.bulk("deduplicate")["kept"],
            )

        if "reworded" in state:
            known_rubrics += map(Rubric.model_validate, self.bulk("reword")["kept"])

        if state.get("kept"):
            pool_rubrics = read_edited_pool(state["kept"], known_rubrics)
        else:
            pool_rubrics = self.material.kept

        by_id = {rubric.id: rubric for rubric in pool_rubrics}
        if "chosen" in state:
            never = self.bulk("select")["never"]
        else:
            never = {}

        refused = {}
        for written_side in written.values():
            for cause, n in written_side["refused"].items():
                refused[cause] = n
        return replace(
            self.material,
            pool=pool,  # type: ignore[arg-type]  # sides are polarities
            refused=refused,
            kept=pool_rubrics,
            merged=state.get("merged", {}),
            reworded=state.get("reworded", {}),
            mirrors=[(first, second) for first, second in state.get("mirrors", ())],
            chosen=tuple(by_id[str(row["id"])] for row in state.get("chosen", ())),
            table=replace(self.material.table, never_counts=never),
        )

    def rows(self, rubrics: Sequence[Rubric]) -> list[dict[str, object]]:
        """Return rubrics as the state tells them."""
        return [make_pool_row(rubric, self.store.texts) for rubric in rubrics]

    async def fit(self, role: Extractor | Judge, *rubrics: Sequence[Rubric]) -> None:
        """Let the extractor, or the judge for a pool, learn on training conversations, once in a process.

        A process that goes on with a run has roles of its own.
        """
        rubric_ids = []
        for pool in rubrics:
            for rubric in pool:
                rubric_ids.append(rubric.id)
        name = make_content_id(
            role.name,
            *rubric_ids,
            str(len(rubrics)),
        )
        if name not in self.fitted:
            await role.fit(self.material.training, *rubrics)
            self.fitted.add(name)

    @property
    def opening(self) -> LearnState:
        """What the state tells from the first node on."""
        ids = []
        for side in (self.material.training, self.material.held_out):
            ids.append([c.id for c in side])

        settings = vars(self.material.settings).items()
        settings_json = {}
        for name, value in settings:
            settings_json[name] = list(value) if isinstance(value, tuple) else value
        return {
            "run": self.run,
            "settings": settings_json,
            "split": {
                "training": len(ids[0]),
                "held_out": len(ids[1]),
                "digest": make_content_id(*map("\x1e".join, ids)),
            },
        }

    @property
    def unextracted(self) -> dict[str, Unanswered]:
        """Reasons for missing extractions, by conversation."""
        failures = {}
        for id_, extraction in self.extractions.items():
            if isinstance(extraction, Unanswered):
                failures[id_] = extraction
        return failures

    def reasons(self, polarity: Polarity) -> list[Reason]:
        """List all reasons of one polarity, in the order of the conversations."""
        extractions = (
            self.extractions.get(conversation.id) for conversation in self.material.training
        )
        every: list[Reason] = []
        for extraction in extractions:
            if isinstance(extraction, Extraction):
                every.extend(extraction.reasons)
        return [reason for reason in every if reason.polarity == polarity]
