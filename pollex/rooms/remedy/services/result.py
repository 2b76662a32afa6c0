"""What a remedy came to, and its files."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pollex.formats.write import write_rows
from pollex.outputs import make_folder, require_output, write_text
from pollex.rooms.remedy.agents.assistant import AssistantReply, NoReply
from pollex.rooms.remedy.conversations.reply_context import ReplyContext
from pollex.rooms.remedy.measures.advice import (
    VERDICT_PEOPLE_CAN_TELL,
    VERDICT_WITH_CAVEAT,
    advise_on_change,
)
from pollex.rooms.remedy.reports.remedies import render_remedy_page
from pollex.rubrics.answers import Answer
from pollex.runs.usage import ModelUsage, make_usage_json
from pollex.services.results import TabularResult
from pollex.store.store import Store
from pollex.store.tables import load_json
from pollex.text import (
    JsonDict,
    JsonObject,
    TerminalLine,
    TerminalLines,
    render_notes,
    replace_nan_by_none,
)

if TYPE_CHECKING:
    from pandas import DataFrame

    from pollex.rooms.remedy.graphs.trial import Trial

REMEDY_COMMAND = "remedy"
RESULT_FORMAT_VERSION = 1
MAX_EXAMPLE_PAIRS = 10
STRATUM_NAMES = ("failing", "fine", "any")
REPLY_COLUMNS = dict.fromkeys(
    ("trial", "context", "conversation", "user", "stratum", "arm", "reply", "outcome"),
    "VARCHAR",
)
REPLY_COLUMNS |= {
    "turn": "INTEGER",
    "k": "INTEGER",
    "length": "INTEGER",
    "values": "JSON",
    "distributions": "JSON",
}
REPLY_COLUMNS |= {"said": "VARCHAR", "reader": "DOUBLE"}
PROPOSED_RECORD_NAME = "proposed"
"""The step that has the prompt and its proposed changes, while the run waits for people to accept some."""
COMPARED_FACT_KIND, SHEET_RECORD_NAME, MAX_TURNS_SHOWN_BEFORE = "pair", "pairs", 3
"""The kind of fact that a pair of replies is, which also begins the question that people's choices of a run are kept
under; the step that has what they compare; and turns that are shown before the replies."""
SKIPPED_CHOICE = "S"
"""What a person says of a pair that they can't compare."""
VERDICTS_BY_RANK = (
    "better, people agree",
    "judged better",
    "judged better, by its own family",
    VERDICT_WITH_CAVEAT,
    "no difference found",
    "not proven",
    VERDICT_PEOPLE_CAN_TELL,
    "not cleared",
    "people prefer the old one",
    "no gain, likely harm",
    "worse",
)
"""Verdicts, the best first."""


@dataclass(frozen=True, kw_only=True, repr=False)
class ProvenEdit(TabularResult):
    """What one change of the prompt does; all are JSON values.

    Attributes:
        level: R, replies judged by rubrics; P, people prefer it.
        against: What speaks against the change, or is open, the worst first.
        primary: Effect on the target where it failed; see `measures.proofs.TargetEffect`.
        traffic: The effect per conversation of the log with its interval; None where it has none.
        thumbs: Effect on the probability of a thumb up, or None with the reason.
        pair, wording, people: What a reader without rubrics, other words and people say; None: not
            asked.
    """

    name: str
    diff: str
    prompt: str
    purpose: str
    verdict: str
    level: str
    against: list[str]
    primary: JsonDict
    guardrails: list[JsonDict]
    traffic: dict[str, float] | float | None
    thumbs: JsonDict
    pair: JsonDict | None
    wording: list[dict[str, object]] | None
    people: dict[str, object] | None
    shown_over_sealed: JsonDict | None

    @property
    def headline(self) -> str:
        """Return the verdict with its interval and level."""
        # value, interval and n, before what they rest on
        effect = self.primary["effect"]
        interval = f"[{effect['low']:+.3f}, {effect['high']:+.3f}]"
        figures = f"{effect['value']:+.3f} {interval} of the scale, n = {effect['n']}"
        if self.level == "P":
            basis = "people compared blind"
        else:
            basis = "replies judged by rubrics"

        if self.verdict == "not proven":
            named = f"not proven: {self.against[0]}"
        else:
            named = self.verdict

        look = f"look {self.primary['look']} of 4"
        headline = f"{named} ({self.level}: {basis}): {figures}, {effect['users']} users, {look}"
        # without an effect, how small a one would have been seen
        if self.verdict in ("no difference found", "not proven"):
            headline += f"; {self.primary['smallest']:.3f} would have been found in 80 %"

        return headline

    def records(self) -> list[JsonDict]:
        """Return a row for the target and each guardrail."""
        about = {
            "edit": self.name,
            "kind": "target",
            "what": "target",
            "state": self.verdict,
        }
        # the target first, then the guardrails
        rows = [about | self.primary["effect"]]
        about["kind"] = "guardrail"

        return rows + [
            about | {"what": guardrail["name"], "state": guardrail["state"]} | guardrail["effect"]
            for guardrail in self.guardrails
        ]

    def told(self) -> TerminalLines:
        """Yield the verdict, what speaks against it, and the effects."""
        advice, why = advise_on_change(vars(self))
        yield f"{self.name}: {advice}: {why}"
        yield self.headline
        for line in self.against:
            yield f"  {line}"

        # runs of before have no interval: a figure alone isn't told
        if isinstance(self.traffic, dict):
            hundred = {}
            for end, value in self.traffic.items():
                hundred[end] = 100 * value
            interval = f"{hundred['value']:+.1f} [{hundred['low']:+.1f}, {hundred['high']:+.1f}]"
            yield f"Per 100 conversations of this log: {interval} of the scale"

        # estimates beside the proof, or why there are none
        for what, estimate in (
            ("Thumbs up", self.thumbs),
            ("A reader without rubrics", self.pair),
            ("People", self.people),
        ):
            if estimate is not None:
                yield f"{what}: {estimate.get('reason') if estimate['value'] is None else _format_interval(estimate)}"

        yield f"With missing new replies as failing: {_format_interval(self.primary['worst'])}"
        for guard in self.guardrails:
            sealed = " (sealed)" if guard["sealed"] else ""
            yield f"  {guard['state']:8} {_format_interval(guard['effect'])}  {guard['name']}{sealed}"


def _format_interval(effect: JsonDict) -> str:
    return f"{effect['value']:+.3f} [{effect['low']:+.3f}, {effect['high']:+.3f}]"


@dataclass(frozen=True, kw_only=True, repr=False)
class RemedyResult(TabularResult):
    """What changes of the prompt do, each with its level of evidence.

    Attributes:
        record: All that is kept, as JSON values: the same for the same replies.
        replies: A row a reply.
        compared: Pairs of replies of the proof; see `build_proof_pairs`.
        usage: Of the assistant, or of the judge where only that is a model; the others' by role in
            `usages`.
    """

    record: JsonObject
    replies: Sequence[dict[str, object]] = ()
    compared: Sequence[dict[str, object]] = ()
    run: str = ""
    out: Path | None = None
    usage: ModelUsage | None = None
    usages: Mapping[str, ModelUsage] = field(default_factory=dict)

    @property
    def edits(self) -> tuple[ProvenEdit, ...]:
        """The best first; empty where it ended before a proof."""
        return tuple(ProvenEdit(**fields) for fields in self.record["edits"])

    @property
    def complete(self) -> bool:
        """Whether every row was read."""
        return not self.record["bad_rows"]

    @property
    def verdict(self) -> str:
        """The best change's verdict; or why it ended before a proof."""
        return str(self.record["verdict"])

    @property
    def headline(self) -> str:
        """Return the best change's verdict with its interval and level; or why it ended before a proof."""
        return self.edits[0].headline if self.edits else self.verdict

    def records(self) -> list[JsonDict]:
        """Return a row for the target and each guardrail of each change."""
        records: list[dict[str, object]] = []
        for edit in self.edits:
            records.extend(edit.records())
        return records

    def pairs(self) -> DataFrame:
        """Return a pandas table of a row a reply."""
        from pandas import DataFrame  # it takes half a second to import

        return DataFrame(list(self.replies))

    def save(self, path: str | Path) -> None:
        """Write the result, its page, a table of replies, and the changes."""
        out = Path(path)
        record = self.record
        require_output(out, regular=True)  # other files stand beside it
        folder = out.with_name(f"{out.stem}-edits")
        make_folder(folder, named=False)
        # the page, the record, and a diff with the changed prompt for each change
        texts = {
            out.with_suffix(".html"): render_remedy_page(
                self.run, record, choose_example_pairs(self.compared)
            ),
            out: json.dumps(
                replace_nan_by_none(dict(record)), ensure_ascii=False, indent=1, allow_nan=False
            )
            + os.linesep,
        }
        for number, edit in enumerate(self.edits, 1):
            texts |= {folder / f"{number}.diff": edit.diff, folder / f"{number}.md": edit.prompt}

        for place, text in texts.items():
            write_text(place, text, named=place == out)

        write_rows(
            out.with_name(f"{out.stem}-pairs.parquet"),
            list(self.replies),
            REPLY_COLUMNS,
            named=False,
        )

    def told(self) -> TerminalLines:
        """Yield each verdict with its level, what speaks against it, the effects, and what is missing."""
        # headroom, proposals, verdicts, what is missing, notes
        record = self.record
        yield record["target"]["text"]
        if room := record["headroom"]:
            most = room["room_high"]
            hints = room["ceiling"]["value"]
            yield f"Room {room['room']:+.3f} (at most {most:+.3f}); with hints {hints:+.3f}"

        for candidate in record["candidates"]:
            if candidate["proven"]:
                became = "proven"
            else:
                became = candidate.get("left") or candidate["refused"] or "not selected"

            yield f"  {became:32} {candidate['name']}: {candidate['purpose']}"

        if not self.edits:
            yield self.verdict

        for edit in self.edits:
            yield from edit.told()

        # replies that are missing count as no score
        for arm, kinds in record["missing"].items():
            if kinds:
                counts = ", ".join(f"{n} {kind}" for kind, n in kinds.items())
                note = f"Note: missing under the {arm} prompt, and no score: {counts}"
                yield TerminalLine(note, "yellow")

        yield from render_notes(record["notes"])
        if self.out is not None:
            stem = self.out.with_suffix("")
            yield f"Wrote {self.out}, {stem}-pairs.parquet and {stem}-edits (run {self.run})"

    def as_json(self) -> JsonDict:
        """Return the JSON values that `--json` prints."""
        others = {}
        for role, usage in self.usages.items():
            others[role] = usage.by_stage()
        return {"run": self.run} | dict(self.record) | make_usage_json(self.usage) | others


def read_browser_choices(store: Store, run: str) -> dict[str, dict[str, str]]:
    """Return what people chose in the browser: by pair, each person's last choice by name."""
    choices: dict[str, dict[str, str]] = {}
    sql = "SELECT annotator, text_hash, value FROM labels WHERE question = ? ORDER BY rowid"
    for row in store.rows(sql, [f"{COMPARED_FACT_KIND} {run}"]):
        choices.setdefault(row["text_hash"], {})[row["annotator"]] = load_json(row["value"])

    return choices


def count_people_who_decided(choices: Mapping[str, str]) -> int:
    """Return how many people said something of a pair: who skips it says nothing."""
    return sum(choice != SKIPPED_CHOICE for choice in choices.values())


def count_people_for_pair(key: str) -> int:
    """Return how many people compare a pair: two for one in five, which tells how far they agree."""
    return 1 + (int(key[:4], 16) % 5 == 0)


def list_turns_before(context: ReplyContext) -> list[str]:
    """Return the last turns before a reply."""
    lines: list[str] = []
    for turn in context.before[-MAX_TURNS_SHOWN_BEFORE:]:
        lines.append(f"{turn.role}: {turn.content}")
    return lines


def build_reply_rows(trial: Trial, arms: list[str]) -> list[dict[str, object]]:
    """Return a row a reply of a trial."""
    # a row for each reply, in the order of contexts and arms
    rows = []
    for (n, arm, k), outcome in sorted(trial.texts.items()):
        context = trial.contexts[n]
        here = trial.arrays.values[n, arm, k]
        reply = outcome if isinstance(outcome, AssistantReply) else None
        answers = trial.answers.get((n, arm, k), ())
        # a reader compares the first replies alone
        if k == 0 and arm in trial.wins:
            read = trial.wins[arm][n]
        else:
            read = np.nan

        # answers by name; null for missing ones
        values = {}
        for name, v in zip(trial.arrays.names, here, strict=True):
            values[name] = None if np.isnan(v) else float(v)
        rows.append({
            "trial": trial.name,
            "context": context.id,
            "conversation": context.conversation.id,
            # a hash in place of the user's name
            "user": hashlib.sha256(context.user.encode("utf-8", "replace")).hexdigest()[:12],
            "stratum": STRATUM_NAMES[trial.arrays.stratum[n]],
            "arm": arms[arm],
            "turn": context.turn,
            "k": k,
            "reply": reply.text if reply else "",
            "outcome": outcome.kind if isinstance(outcome, NoReply) else "replied",
            "length": len(reply.text) if reply else None,
            "said": list_turns_before(context),
            "reader": None if np.isnan(read) else float(read),
            "values": values,
            "distributions": {a.question_id: list(a.probabilities) for a in answers if isinstance(a, Answer)},
        })  # fmt: skip

    return rows


def build_proof_pairs(trial: Trial, arms: Sequence[str]) -> list[JsonDict]:
    """Return the pairs of replies of the proof, with what the target and the worst guardrail gained."""
    from pollex.rooms.remedy.measures.proofs import (
        OLD_ARM,  # half a second, and pages read this module
    )

    # the array's first name is the target
    names = trial.arrays.names[1:]
    values = trial.arrays.values
    pairs = []
    # each change against the old prompt, by the first replies
    for n, context in enumerate(trial.contexts):
        for arm, edit in list(enumerate(arms))[1:]:
            gained = dict(
                zip(
                    names,
                    values[n, arm, 0, 1:] - values[n, OLD_ARM, 0, 1:],
                    strict=True,
                )
            )
            gains = {}
            for name, value in gained.items():
                if not np.isnan(value):
                    gains[name] = float(value)
            change = float(values[n, arm, 0, 0] - values[n, OLD_ARM, 0, 0])
            both = trial.pair(arm, n)
            if both is None or np.isnan(change):
                # pairs without both replies or an answer tell nothing
                continue
            # the guardrail that fell the most
            worst = min(gains, key=gains.__getitem__, default="")
            read = trial.wins[arm][n] if arm in trial.wins else np.nan
            pairs.append({
                "context": context.id,
                "conversation": context.conversation.id,
                "said": list_turns_before(context),
                "reader": None if np.isnan(read) else float(read),
                "edit": edit,
                "change": change,
                "guardrail": worst,
                "fell": gains.get(worst),
                "old": both[0],
                "new": both[1],
            })  # fmt: skip

    # what fell the most first
    return sorted(pairs, key=lambda pair: (pair["change"], pair["context"]))


def choose_example_pairs(pairs: Sequence[JsonObject]) -> list[JsonObject]:
    """Return pairs for people's eyes: the ten that differ most."""
    return sorted(pairs, key=lambda pair: (-abs(pair["change"]), pair["context"]))[
        :MAX_EXAMPLE_PAIRS
    ]
