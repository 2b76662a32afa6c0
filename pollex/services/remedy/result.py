"""What a proof came to, and its files."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pollex.agents.assistant import AssistantReply
from pollex.conversations.logs import BadRow
from pollex.formats.write import draft_of, write_rows
from pollex.graphs.remedy.run import Proven
from pollex.measures.paired_effects import PairedEffect
from pollex.measures.proofs import Guardrail, Primary, Verdict
from pollex.rubrics.answers import Answer
from pollex.rubrics.records import ChosenRubric
from pollex.services.remedy.edits import PromptEdit
from pollex.services.remedy.sample import ProofSample
from pollex.services.results import Shown, Usage, bad_rows_json, usage_json

if TYPE_CHECKING:
    from pandas import DataFrame

FORMAT = 1
COLUMNS = {
    "context": "VARCHAR",
    "conversation": "VARCHAR",
    "user": "VARCHAR",
    "stratum": "VARCHAR",
    "turn": "INTEGER",
    "arm": "VARCHAR",
    "k": "INTEGER",
    "reply": "VARCHAR",
    "outcome": "VARCHAR",
    "length": "INTEGER",
    "values": "JSON",
    "distributions": "JSON",
}
STRATA = ("failing", "fine", "any")
ARMS = ("old", "new")


@dataclass(frozen=True, kw_only=True, repr=False)
class RemedyResult(Shown):
    """What a change of the prompt does, with its level of evidence: R, replies judged by rubrics.

    Attributes:
        against: What speaks against the change, or is open, the worst first.
        traffic: The effect per conversation of the log; None where a stratum is empty.
        usage: Of the assistant, or of the judge where only that is a model.
        judging: Of the judge, where both are.
        times: Which proof of this target on these conversations it is.
    """

    run: str
    registered: str
    edit: PromptEdit
    target: ChosenRubric
    verdict: Verdict
    against: tuple[str, ...]
    primary: Primary
    guardrails: tuple[Guardrail, ...]
    traffic: float | None
    sample: ProofSample
    proven: Proven
    assistant: str
    judge: str
    times: int
    out: Path | None = None
    bad_rows: tuple[BadRow, ...] = ()
    usage: Usage | None = None
    judging: Usage | None = None
    notes: tuple[str, ...] = ()

    level = "R"

    @property
    def complete(self) -> bool:
        """Whether every row was read."""
        return not self.bad_rows

    @property
    def headline(self) -> str:
        """Return the verdict with its interval and level."""
        one = self.primary.effect
        figures = f"{one.value:+.3f} [{one.low:+.3f}, {one.high:+.3f}] of the scale, n = {one.n}, {one.users} users"
        said = f"{self.verdict} ({self.level}: replies judged by rubrics): {figures}, look {self.primary.look} of 4"
        if self.verdict == "no difference found":
            said += f"; {self.primary.smallest:.3f} would have been found in 80 %"
        return said

    def records(self) -> list[dict[str, Any]]:
        """Return a row for the target and each guardrail."""
        rows: list[tuple[str, str, PairedEffect, str]] = [
            ("target", self.target.text, self.primary.effect, self.verdict)
        ]
        rows += [("guardrail", one.name, one.effect, one.state) for one in self.guardrails]
        return [{"kind": kind, "what": what, **asdict(one), "state": state} for kind, what, one, state in rows]

    def pairs(self) -> DataFrame:
        """Return a pandas table of a row a reply."""
        from pandas import DataFrame  # it takes half a second to import

        return DataFrame(self.replies())

    def save(self, path: str | Path) -> None:
        """Write the result, a table of replies, and the edit."""
        write_result(self, Path(path))

    def replies(self) -> list[dict[str, Any]]:
        """Return a row a reply."""
        names, rows = self.proven.arrays.names, []
        for (n, arm, k), found in sorted(self.proven.texts.items()):
            context, here = self.sample.contexts[n], self.proven.arrays.values[n, arm, k]
            answers = self.proven.answers.get((n, arm, k), ())
            spoken = isinstance(found, AssistantReply)
            rows.append(
                {
                    "context": context.id,
                    "conversation": context.conversation.id,
                    "user": hashlib.sha256(context.user.encode("utf-8", "replace")).hexdigest()[:12],
                    "stratum": STRATA[self.sample.strata[n]],
                    "turn": context.turn,
                    "arm": ARMS[arm],
                    "k": k,
                    "reply": found.text if isinstance(found, AssistantReply) else "",
                    "outcome": "replied" if isinstance(found, AssistantReply) else found.kind,
                    "length": len(found.text) if isinstance(found, AssistantReply) else None,
                    "values": {name: None if np.isnan(v) else float(v) for name, v in zip(names, here, strict=True)},
                    "distributions": {a.question_id: list(a.probabilities) for a in answers if isinstance(a, Answer)}
                    if spoken
                    else {},
                }
            )
        return rows

    def as_json(self) -> dict[str, Any]:
        """Return the JSON values that `--json` prints, and that are written."""
        strata = {name: self.sample.strata.count(n) for n, name in enumerate(STRATA)}
        primary = asdict(self.primary) | {"level": self.level}
        missing = {ARMS[arm]: dict(sorted(kinds.items())) for arm, kinds in self.proven.missing.items()}
        return (
            {
                "format": FORMAT,
                "run": self.run,
                "registered": self.registered,
                "proof": self.times,
                "assistant": self.assistant,
                "judge": self.judge,
                "target": {"id": self.target.id, "text": self.target.text, "polarity": self.target.polarity},
                "edit": {"name": self.edit.name, "diff": self.edit.diff},
                "verdict": self.verdict,
                "against": list(self.against),
                "level": self.level,
                "primary": primary,
                "traffic": self.traffic,
                "thumbs": {"value": None, "reason": "this version gives no figure in thumbs"},
                "guardrails": [asdict(one) | {"sealed": False} for one in self.guardrails],
                "contexts": strata | {"users": self.sample.users, "learned_from": self.sample.learned},
                "left_out_by_prompt": self.sample.unmatched,
                "missing": missing,
                "notes": [*self.notes, *self.sample.notes],
                "bad_rows": bad_rows_json(self.bad_rows),
            }
            | usage_json(self.usage)
            | ({} if self.judging is None else {"judging": self.judging.by_stage()})
        )


def write_result(result: RemedyResult, out: Path) -> None:
    """Write the result, the table of replies, and the edit."""
    folder = out.with_name(f"{out.stem}-edits")
    folder.mkdir(parents=True, exist_ok=True)
    for path, text in (
        (folder / "1.diff", result.edit.diff),
        (folder / "1.md", result.edit.new.text),
        (out, json_of(result)),
    ):
        with draft_of(path) as draft:
            draft.write_text(text, encoding="utf-8", errors="replace")
    write_rows(out.with_name(f"{out.stem}-pairs.parquet"), result.replies(), COLUMNS)


def json_of(result: RemedyResult) -> str:
    """Return the result as the text of its file."""
    whole = {
        name: value
        for name, value in result.as_json().items()
        if name not in ("usage", "probe_calls", "judging", "run")
    }
    return json.dumps(whole, ensure_ascii=False, indent=1, allow_nan=False) + os.linesep
