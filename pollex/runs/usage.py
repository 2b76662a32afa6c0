"""What a model did in a run: calls, tokens and cost, told and as JSON values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from pollex.gateway.budget import Price, StageUsage, UsageTable
from pollex.text import TerminalLine, TerminalLines, TerminalTable, format_count

if TYPE_CHECKING:
    from pollex.runs.roles import RunRoles


@dataclass(frozen=True)
class ModelUsage:
    """Calls, tokens and cost of a model in a run.

    Attributes:
        price: None where no prices were given: costs are unknown.
        probe_calls: Calls that found out what the endpoint can do.
        known_answers: Answers of earlier runs, for which no call was made.
    """

    table: UsageTable
    price: Price | None = None
    probe_calls: int = 0
    known_answers: int = 0

    @classmethod
    def of(cls, staff: RunRoles) -> ModelUsage | None:
        """Return the usage of a run's roles; None where no model worked."""
        known_answers = staff.known_answers
        # nobody was asked: the usage is only worth telling if answers were known
        if staff.gateway is None:
            if known_answers:
                return cls(UsageTable(), known_answers=known_answers)
            return None

        probed = staff.capabilities.calls if staff.capabilities else 0
        return cls(
            staff.gateway.used,
            staff.gateway.limits.price,
            probed,
            known_answers,
        )

    @property
    def rows(self) -> dict[str, StageUsage]:
        """The stages and their sum."""
        return self.table.stages | {"all": self.table.total}

    def by_stage(self) -> dict[str, object]:
        """Return the rows as JSON values."""
        rows: dict[str, object] = {}
        for name, row in self.rows.items():
            rows[name] = {
                "calls": row.asked,
                "sent": row.sent,
                "known": row.known,
                "prompt_tokens": row.prompt,
                "completion_tokens": row.completion,
                "cost": row.cost(self.price),
                "outcomes": dict(row.outcomes),
                **_make_estimate_json(row, self.price),
            }

        return rows

    def told(self) -> TerminalLines:
        """Yield a table by stage, with costs if known, and which models answered where these are several."""
        costs = () if self.price is None else ("cost",)
        # the sum of all stages is the last row
        rows: list[tuple[object, ...]] = []
        for name, row in self.rows.items():
            outcomes = ", ".join(f"{n} {kind}" for kind, n in sorted(row.outcomes.items()))
            spent = (_format_cost(row, self.price),) if costs else ()
            tokens = [_format_tokens(row, name) for name in ("prompt", "completion")]
            rows.append((name, row.asked, row.sent, row.known, *tokens, *spent, outcomes))

        yield TerminalTable(
            ("stage", "calls", "sent", "not sent", "tokens in", "tokens out", *costs, "outcomes"),
            rows,
        )
        # tokens that the endpoint didn't count are estimates, and marked as such
        if uncounted := self.table.total.uncounted:
            cost = "" if self.price is None else " and their cost"
            calls = format_count(uncounted, "call")
            yield f"Note: the endpoint didn't count the tokens of {calls}: they{cost} are estimated (≈)"

        if self.known_answers:
            yield f"{_format_kept_answers(self.known_answers)}."

        # an endpoint may answer by another model than the one that was named
        if len(models := self.table.models) > 1:
            model_texts = []
            for (model, fingerprint), n in models.items():
                model_texts.append(f"{model} {fingerprint} × {n}".strip())
            listed = ", ".join(model_texts)
            yield TerminalLine(f"Note: several models answered: {listed}", "yellow")

    @property
    def planned(self) -> str:
        """Say in a line how many calls and tokens are planned, and at what cost."""
        total = self.table.total
        cost = total.cost(self.price)
        if self.price is None or cost is None:
            priced = ""
        else:
            priced = f", cost {cost:.4g}"

        return f"{format_count(total.sent, 'call')}, {total.prompt} tokens in, {total.completion} out{priced}"

    @property
    def summary(self) -> str:
        """Say in a line what was asked, what it cost, and what needed no call."""
        total = self.table.total
        tokens_in, tokens_out = (_format_tokens(total, name) for name in TOKEN_USAGE_KINDS)
        parts = [format_count(total.sent, "call"), f"{tokens_in} tokens in, {tokens_out} out"]
        if self.price is not None:
            parts.append(f"cost {_format_cost(total, self.price)}")
        if total.known:
            # calls whose reply the ledger keeps or that are too long, and answers that nobody asked for
            parts.append(f"{total.known:,} more needed no call")
        if self.known_answers:
            parts.append(_format_kept_answers(self.known_answers))

        return f"Model: {'; '.join(parts)}"

    def as_json(self) -> dict[str, object]:
        """Return the fields that a result adds to its own."""
        return {
            "usage": self.by_stage(),
            "probe_calls": self.probe_calls,
            "known_answers": self.known_answers,
        }


def _format_kept_answers(number: int) -> str:
    return f"{format_count(number, 'answer')} kept from earlier runs, not asked again"


TOKEN_USAGE_KINDS: tuple[Literal["prompt", "completion"], ...] = ("prompt", "completion")


def _format_tokens(row: StageUsage, name: Literal["prompt", "completion"]) -> str:
    # what the endpoint counted, and an estimate for calls that it didn't count
    counted = getattr(row, name)
    estimated = getattr(row, f"{name}_estimated")
    if row.uncounted:
        return f"≈ {counted + estimated}"
    return str(counted)


def _format_cost(row: StageUsage, price: Price | None) -> str:
    cost = row.cost(price)
    if cost is not None:
        return f"{cost:.4f}"

    estimated = row.estimated_cost(price)
    return "unknown" if estimated is None else f"≈ {estimated:.4f}"


def _make_estimate_json(row: StageUsage, price: Price | None) -> dict[str, object]:
    """Return what is estimated of calls whose tokens the endpoint didn't count; empty where it counted all."""
    if not row.uncounted:
        return {}

    tokens = {
        "prompt_tokens": row.prompt_estimated,
        "completion_tokens": row.completion_estimated,
    }
    return {
        "uncounted": row.uncounted,
        "estimated": tokens | {"cost": row.estimated_cost(price)},
    }


def render_usage_by_stage(usage: ModelUsage | None) -> TerminalLines:
    """Yield calls, tokens and cost by stage, where a model worked."""
    if usage is not None:
        yield from usage.told()


def make_usage_json(usage: ModelUsage | None) -> dict[str, object]:
    """Return the usage as fields of a result; empty where no model worked."""
    return {} if usage is None else usage.as_json()
