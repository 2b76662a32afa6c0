"""The rows of RUBICON's tables: what the paper has, and what is learnt for those that take a model.

Source: Biyani et al. 2024, Tables 1–4: 100 conversations with a C# debugging assistant, GPT-4.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from pollex.conversations.logs import Logs
from pollex.gateway.budget import StageUsage
from pollex.gateway.transport import ChatModel
from pollex.prompts.domain import DomainProfile
from pollex.rubrics.answers import ScaleName
from pollex.rubrics.edits import read_rubrics
from pollex.rubrics.judge_settings import JudgeSettings
from pollex.rubrics.learning.settings import LearnSettings
from pollex.rubrics.rubric_set import RubricSet
from pollex.runs import learn_runs as runs
from pollex.runs.options import ModelOptions
from pollex.runs.roles import build_run_roles
from pollex.selection.policies import DEFAULT_SELECTION_POLICY_NAME
from pollex.store.store import Store

PUBLISHED: dict[str, tuple[float, ...]] = {
    "BING": (11.0, 58, 70, 64.7, 88, 74.6),
    "BING adapted": (11.3, 64, 76, 70.9, 88, 78.6),
    "SPUR": (3.0, 28, 58, 55.9, 76, 64.4),
    "RUBICON": (27.4, 84, 76, 68.6, 96, 80.0),
    "−CDP": (23.7, 72, 64, 58.5, 96, 72.7),
    "−DS": (17.9, 66, 52, 51.0, 100, 67.6),
    "−CDP −DS": (15.7, 62, 50, 50.0, 100, 66.7),
    "UCB": (23.6, 68, 72, 65.7, 92, 76.7),
    "brute force": (24.2, 74, 74, 67.7, 92, 78.0),
    "correctness only": (29.7, 74, 76, 69.7, 92, 79.3),
    "SPUR, numeric scale": (3.0, 28, 58, 55.9, 76, 64.4),
    "SPUR, Likert": (14.5, 48, 70, 67.9, 76, 71.7),
    "SPUR, Likert, domain-adapted": (16.1, 58, 80, 77.8, 84, 80.8),
}
"""By technique: ΔNetSAT; YR@90, accuracy, P, R and F1 in percent."""


@dataclass(frozen=True)
class Technique:
    """A row that takes a model: how rubrics come about and are judged.

    Attributes:
        paper: The row of the paper beside which it stands; empty where the paper has none.
        ours: What stands in our row where it isn't what the paper's is named after.
        rubrics: A file, or a bundled set's name; empty where they are learnt.
    """

    paper: str
    ours: str = ""
    method: Literal["rubicon", "spur"] = "rubicon"
    policy: str = DEFAULT_SELECTION_POLICY_NAME
    without: tuple[str, ...] = ()
    scale: ScaleName = "likert-domain"
    rubrics: str = ""

    @property
    def name(self) -> str:
        """Of our row."""
        return self.ours or self.paper

    @property
    def published(self) -> tuple[float, ...]:
        """The paper's figures; none where it has no such row."""
        return PUBLISHED.get(self.paper, ())

    @property
    def options(self) -> str:
        """What `pollex learn` is told to do the same, beside model and domain."""
        return " ".join(self._options())

    def _options(self) -> Iterator[str]:
        if self.rubrics:
            yield f"--rubrics-from {self.rubrics}"
        elif self.method == "spur":
            yield "--method spur"
        else:
            yield f"--set policy={self.policy}"
        if self.without:
            yield f"--set without={','.join(self.without)}"
        if self.scale != "likert-domain":
            yield f"--set scale={self.scale}"


ADAPTED = "generic_debugging"
"""The generic set, adapted by hand to debugging."""

PLAIN = ("ds", "cdp")
"""The paper's SPUR knows neither."""

TABLES: dict[str, tuple[Technique, ...]] = {
    "Table 1, rubric sets": (
        Technique("BING", "our generic set, in BING's place", rubrics="generic"),
        Technique("BING adapted", "our generic set, adapted", rubrics=ADAPTED),
        Technique("SPUR", method="spur", without=PLAIN, scale="numeric"),
        Technique("", "SPUR with DS and CDP, Likert, domain", method="spur"),
        Technique("RUBICON", policy="greedy"),
    ),
    "Table 2, ablations": (
        Technique("−CDP", policy="greedy", without=("cdp",)),
        Technique("−DS", policy="greedy", without=("ds",)),
        Technique("−CDP −DS", policy="greedy", without=PLAIN),
    ),
    "Table 4, evaluators": (
        Technique("SPUR, numeric scale", method="spur", without=PLAIN, scale="numeric"),
        Technique("SPUR, Likert", method="spur", without=PLAIN, scale="likert"),
        Technique("SPUR, Likert, domain-adapted", method="spur", without=PLAIN),
    ),
}
"""RUBICON's SPUR of Table 1 has the figures of the numeric scale of
Table 4. BING's published set is not ours to ship: a generic set of our own stands in its place."""

RUBICON = "RUBICON"
"""The row that others are compared with."""


async def learnt(
    how: Technique,
    logs: Logs,
    profile: DomainProfile,
    store: Store,
    *,
    split: int = 0,
    budget: tuple[int, int] = (10, 10),
    model: ModelOptions | None = None,
    chat: ChatModel | None = None,
) -> tuple[RubricSet, StageUsage]:
    """The rubric set as `pollex learn` makes it, but for stability, which no table needs; and what was asked.

    Args:
        store: Whose ledger may have answers already: a call is known by all that it says, and no
            run takes anything else from another.
        split: Seed of the split. The model has the same seed in all, so that what it said of a
            conversation in one split is not asked again in the next.
        chat: A model in place of an endpoint.
    """
    model = model or ModelOptions()
    asked = ModelOptions(
        model=model.model,
        base_url=model.base_url,
        limits=model.limits,
        settings=JudgeSettings(without=frozenset(how.without), scale=how.scale),
        chat=chat,
    )
    settings = LearnSettings(
        budget=budget, method=how.method, policy=how.policy, seed=split, stability=False
    )
    async with await build_run_roles(asked, profile, store, 0) as staff:
        assert staff.gateway is not None, "all of these take a model"
        given = read_rubrics(how.rubrics) if how.rubrics else ()
        learning = runs.LearningInput(logs=logs, profile=profile, settings=settings, rubrics=given)
        run = runs.prepare_learning(learning, staff, staff.setting(store))
        learned = await run.carry_out()
        return learned.rubric_set, staff.gateway.used.total
