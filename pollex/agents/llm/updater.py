"""SPUR's updater on a model: one restricted set of rubrics, revised in place.

Source: Lin et al. 2024, "Interpretable User Satisfaction Estimation for Conversational Systems with Large Language
Models", arXiv:2403.12388.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from pollex.agents.checks import normalized, refusal, words
from pollex.agents.llm.asker import Asker, Role, polar, source_of
from pollex.agents.llm.parsing import entries, numbers
from pollex.agents.roles import Revision
from pollex.rubrics.answers import Unanswered
from pollex.rubrics.rubric import MAX_QUOTES, Polarity, Quote, Reason, Rubric, content_id, with_reasons


class LlmUpdater(Role):
    """Revises a set of rubrics by a batch of reasons; omitted rubrics are dropped."""

    def __init__(self, asker: Asker) -> None:
        self.prompts = polar("spur")
        super().__init__(asker, self.prompts.values())

    async def update(
        self, reasons: Sequence[Reason], current: Sequence[Rubric], polarity: Polarity, most: int
    ) -> Revision | Unanswered:
        """Revise the set by a batch of reasons."""
        prompt = self.prompts[polarity]
        if not reasons or not most:
            return Revision(rubrics=tuple(current)[:most])
        items: list[dict[str, Any]] = [{"known": i, "rubric": rubric.text} for i, rubric in enumerate(current, 1)]
        items += [{"i": i, "reason": reason.text} for i, reason in enumerate(reasons, 1)]
        value = await self.asker.value(prompt, items, {"most": str(most)}, {"revised": list}, item=polarity)
        if isinstance(value, Unanswered):
            return value
        revision = _Revising(reasons, current, polarity, source_of(prompt))
        for entry in entries(value["revised"]):
            revision.take(entry, most)
        return Revision(rubrics=tuple(revision.rubrics.values()), refused=dict(revision.refused))


class _Revising:
    def __init__(self, reasons: Sequence[Reason], current: Sequence[Rubric], polarity: Polarity, source: str) -> None:
        self._reasons, self._current, self._polarity, self._source = reasons, current, polarity, source
        self._quoted = [words(quote.text) for reason in reasons for quote in reason.quotes]
        self.rubrics: dict[str, Rubric] = {}
        self.refused: Counter[str] = Counter()

    def take(self, entry: dict[str, Any], most: int) -> None:
        """Add a rubric of the new set; if refused, keep those that it replaces."""
        text = normalized(str(entry.get("text") or ""))
        parents = [self._current[i - 1] for i in numbers(entry.get("known"), range(1, len(self._current) + 1))]
        reasons = [self._reasons[i - 1] for i in numbers(entry.get("reasons"), range(1, len(self._reasons) + 1))]
        why = "" if parents or reasons else "names no reason"
        why = why or ("" if any(text == parent.text for parent in parents) else refusal(text, self._quoted))
        if why:
            self.refused[why] += 1
        for rubric in parents if why else [self._revised(text, parents)]:
            if rubric.id in self.rubrics or len(self.rubrics) < most:
                both = _joined(self.rubrics.get(rubric.id, rubric), rubric)
                self.rubrics[rubric.id] = both if why else with_reasons(both, reasons)
            else:
                self.refused["too many"] += 1

    def _revised(self, text: str, parents: Sequence[Rubric]) -> Rubric:
        id_ = content_id(self._polarity, text)
        rubric = Rubric(id=id_, text=text, polarity=self._polarity, source=self._source)
        for parent in parents:
            rubric = _joined(rubric, parent)
        return rubric


def _joined(one: Rubric, other: Rubric) -> Rubric:
    reasons = tuple(dict.fromkeys((*one.reason_ids, *other.reason_ids)))
    quotes: tuple[Quote, ...] = tuple(dict.fromkeys((*one.quotes, *other.quotes)))
    return one.model_copy(update={"reason_ids": reasons, "quotes": quotes[:MAX_QUOTES]})
