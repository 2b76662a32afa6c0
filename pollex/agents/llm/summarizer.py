"""The summarizer on a model."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

from pollex.agents.checks import normalized, refusal, words
from pollex.agents.llm.asker import TOLD, Asker, Role, polar, source_of
from pollex.agents.llm.parsing import entries, numbers
from pollex.agents.roles import Pair, Summary
from pollex.rubrics.answers import Unanswered
from pollex.rubrics.rubric import Polarity, Reason, Rubric, content_id, with_reasons


class LlmSummarizer(Role):
    """Turns reasons into rubrics; the reasons of one polarity at a time, known rubrics shown."""

    def __init__(self, asker: Asker) -> None:
        self.paper = asker.settings.prompts == "paper"
        self.prompts = polar("summarize", paper=self.paper)
        super().__init__(asker, self.prompts.values(), new_rubrics=asker.settings.new_rubrics)

    async def summarize(
        self, reasons: Sequence[Reason], known: Sequence[Rubric], polarity: Polarity, pairs: Sequence[Pair] = ()
    ) -> Summary | Unanswered:
        """Return new rubrics with their reasons, and reasons that support known rubrics."""
        prompt, others = self.prompts[polarity], [rubric for rubric in known if rubric.polarity != polarity]
        known = [rubric for rubric in known if rubric.polarity == polarity]
        if not reasons:
            return Summary(rubrics=())
        items = [{"i": i, "reason": reason.text} for i, reason in enumerate(reasons, 1)]
        items += [{"known": i, "rubric": rubric.text} for i, rubric in enumerate(known, 1)]
        if not self.paper:
            items += [{"other_side": i, "rubric": rubric.text} for i, rubric in enumerate(others, 1)]
            items += [{"pair": i, **pair.model_dump()} for i, pair in enumerate(pairs, 1)]
        values = {"most": str(self.asker.settings.new_rubrics), **TOLD[polarity]}
        value = await self.asker.value(prompt, items, values, {"rubrics": list}, item=polarity)
        if isinstance(value, Unanswered):
            return value
        batch = _Batch(reasons, known, source_of(prompt), polarity)
        batch.cover(entries(value.get("covered")))
        for entry in entries(value["rubrics"]):
            batch.add(entry, self.asker.settings.new_rubrics)
        return batch.summary()


class _Batch:
    def __init__(self, reasons: Sequence[Reason], known: Sequence[Rubric], source: str, polarity: Polarity) -> None:
        self._reasons, self._known, self._source, self._polarity = reasons, known, source, polarity
        self._id_of = {rubric.text.casefold(): rubric.id for rubric in known}
        self._quoted = [words(quote.text) for reason in reasons for quote in reason.quotes]
        self._new: dict[str, Rubric] = {}
        self._supported: defaultdict[str, list[Reason]] = defaultdict(list)
        self._refused: Counter[str] = Counter()

    def cover(self, entries: Sequence[dict[str, Any]]) -> None:
        """Assign reasons to the known rubrics that cover them."""
        for entry in entries:
            number = entry.get("known")
            if type(number) is int and 1 <= number <= len(self._known):
                self._supported[self._known[number - 1].id] += self._of(entry)

    def add(self, entry: dict[str, Any], most: int) -> None:
        """Add a new rubric, or refuse it and count why."""
        text, reasons = normalized(str(entry.get("text") or "")), self._of(entry)
        if known := self._id_of.get(text.casefold()):
            self._supported[known] += reasons
        elif why := self._refusal(text, reasons, most):
            self._refused[why] += 1
        else:
            id_ = content_id(self._polarity, text)
            rubric = Rubric(id=id_, text=text, polarity=self._polarity, source=self._source)
            self._new[id_] = with_reasons(self._new.get(id_, rubric), reasons)

    def summary(self) -> Summary:
        supported = {id_: tuple(dict.fromkeys(reasons)) for id_, reasons in self._supported.items() if reasons}
        return Summary(rubrics=tuple(self._new.values()), supported=supported, refused=dict(self._refused))

    def _refusal(self, text: str, reasons: Sequence[Reason], most: int) -> str:
        if not reasons:
            return "names no reason"
        return "too many" if len(self._new) >= most else refusal(text, self._quoted)

    def _of(self, entry: dict[str, Any]) -> list[Reason]:
        """Return the reasons that an entry names; skip numbers that were not shown."""
        return [self._reasons[i - 1] for i in numbers(entry.get("reasons"), range(1, len(self._reasons) + 1))]
