"""The summarizer on a model, and SPUR's updater: one restricted set of rubrics, revised in place.

Source: Lin et al. 2024, "Interpretable User Satisfaction Estimation for Conversational Systems with
    Large Language
Models", arXiv:2403.12388.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from functools import reduce

from pollex.agents.checks import collapse_white_space, explain_rubric_refusal, split_words
from pollex.agents.llm.asker import (
    PROMPT_WORDS_BY_POLARITY,
    ModelRole,
    PromptAsker,
    load_prompts_by_polarity,
    name_prompt_version,
)
from pollex.agents.llm.parsing import read_numbers, read_objects
from pollex.agents.roles import ContrastingPair, Revision, Summary
from pollex.rubrics.answers import Unanswered
from pollex.rubrics.rubric import (
    MAX_QUOTES_PER_RUBRIC,
    Polarity,
    Reason,
    Rubric,
    add_reasons_to_rubric,
    make_content_id,
)

MIN_REASONS_PER_RUBRIC = 2
"""That a new rubric sums up, unless the log gives few."""


class LlmSummarizer(ModelRole):
    """Turns reasons into rubrics; the reasons of one polarity at a time, known rubrics shown."""

    def __init__(self, asker: PromptAsker) -> None:
        self.paper = asker.settings.prompts == "paper"
        self.prompts = load_prompts_by_polarity("summarize", paper=self.paper)
        super().__init__(
            asker,
            self.prompts.values(),
            new_rubrics=asker.settings.new_rubrics,
        )

    async def summarize(
        self,
        reasons: Sequence[Reason],
        pool: Sequence[Rubric],
        polarity: Polarity,
        pairs: Sequence[ContrastingPair] = (),
        *,
        few: bool = False,
    ) -> Summary | Unanswered:
        """Return new rubrics with their reasons, and reasons that support known rubrics."""
        prompt = self.prompts[polarity]
        others = []
        for rubric in pool:
            if rubric.polarity != polarity:
                others.append(rubric)

        pool = [rubric for rubric in pool if rubric.polarity == polarity]
        if not reasons:
            return Summary(rubrics=())

        # each list is numbered from 1, and answers name reasons and rubrics by number
        items = []
        for i, reason in enumerate(reasons, 1):
            items.append({"i": i, "reason": reason.text})

        for i, rubric in enumerate(pool, 1):
            items.append({"known": i, "rubric": rubric.text})

        # the paper's prompt knows neither the other side nor pairs
        if not self.paper:
            for i, rubric in enumerate(others, 1):
                items.append({"other_side": i, "rubric": rubric.text})
            for i, pair in enumerate(pairs, 1):
                items.append({"pair": i, **pair.model_dump()})

        values = {
            "most": str(self.asker.settings.new_rubrics),
            **PROMPT_WORDS_BY_POLARITY[polarity],
        }
        # leaves out the block that asks for several reasons for each rubric
        several = frozenset({"several"} if few or self.paper else ())
        value = await self.asker.value(
            prompt,
            items,
            values,
            {"rubrics": list},
            without=several,
            item=polarity,
        )
        if isinstance(value, Unanswered):
            return value

        batch = _SummaryBatch(
            reasons,
            pool,
            polarity,
            name_prompt_version(prompt),
            least=1 if several else MIN_REASONS_PER_RUBRIC,
        )
        for entry in read_objects(value.get("covered")):
            batch.cover(entry)

        for entry in read_objects(value["rubrics"]):
            batch.add(entry, self.asker.settings.new_rubrics)

        # only at the end, as an answer may give a rubric twice, with other reasons
        batch.drop_single()
        supported = {
            id_: tuple(dict.fromkeys(reasons))
            for id_, reasons in batch.supported.items()
            if reasons
        }
        return Summary(
            rubrics=tuple(batch.rubrics.values()),
            supported=supported,
            refused=dict(batch.refused),
        )


class _WrittenBatch:
    """What a model wrote of some reasons, beside the rubrics that it was shown."""

    def __init__(
        self,
        reasons: Sequence[Reason],
        shown: Sequence[Rubric],
        polarity: Polarity,
        source: str,
    ) -> None:
        self._reasons = reasons
        self._shown = shown
        self._polarity = polarity
        self._source = source
        # words of the quotes, which no rubric may copy
        quoted = []
        for reason in reasons:
            for quote in reason.quotes:
                quoted.append(split_words(quote.text))

        self._quoted = quoted
        self.rubrics: dict[str, Rubric] = {}
        self.refused: Counter[str] = Counter()

    def _reasons_of(self, entry: Mapping[str, object]) -> list[Reason]:
        """Return the reasons that an entry names; skip numbers that were not shown."""
        reasons: list[Reason] = []
        for i in read_numbers(entry.get("reasons"), range(1, len(self._reasons) + 1)):
            reasons.append(self._reasons[i - 1])
        return reasons

    def _shown_of(self, named: object) -> list[Rubric]:
        return [self._shown[i - 1] for i in read_numbers(named, range(1, len(self._shown) + 1))]

    def _written(self, text: str) -> Rubric:
        id_ = make_content_id(self._polarity, text)
        return Rubric(
            id=id_,
            text=text,
            polarity=self._polarity,
            source=self._source,
        )


class _SummaryBatch(_WrittenBatch):
    def __init__(
        self,
        reasons: Sequence[Reason],
        shown: Sequence[Rubric],
        polarity: Polarity,
        source: str,
        least: int,
    ) -> None:
        super().__init__(reasons, shown, polarity, source)
        self._least = least
        self._id_of = {rubric.text.casefold(): rubric.id for rubric in shown}
        self.supported: defaultdict[str, list[Reason]] = defaultdict(list)

    def cover(self, entry: Mapping[str, object]) -> None:
        """Assign reasons to the known rubric that covers them."""
        for rubric in self._shown_of([entry.get("known")]):
            self.supported[rubric.id] += self._reasons_of(entry)

    def add(self, entry: Mapping[str, object], most: int) -> None:
        """Add a new rubric, or refuse it and count why."""
        text = collapse_white_space(str(entry.get("text") or ""))
        reasons = self._reasons_of(entry)
        # a text that a known rubric has supports that one
        if known_id := self._id_of.get(text.casefold()):
            self.supported[known_id] += reasons
            return

        why = "" if reasons else "names no reason"
        if why := why or (
            "too many" if len(self.rubrics) >= most else explain_rubric_refusal(text, self._quoted)
        ):
            self.refused[why] += 1
        else:
            rubric = self._written(text)
            self.rubrics[rubric.id] = add_reasons_to_rubric(
                self.rubrics.get(rubric.id, rubric),
                reasons,
            )

    def drop_single(self) -> None:
        """Refuse new rubrics that rest on fewer reasons than they must; these reasons are shown again."""
        thin_rubrics = []
        for rubric in self.rubrics.values():
            if len(rubric.reason_ids) < self._least:
                thin_rubrics.append(rubric)

        for rubric in thin_rubrics:
            del self.rubrics[rubric.id]
            self.refused["rests on one reason"] += 1


class LlmUpdater(ModelRole):
    """Revises a set of rubrics by a batch of reasons; omitted rubrics are dropped."""

    def __init__(self, asker: PromptAsker) -> None:
        self.prompts = load_prompts_by_polarity("spur")
        super().__init__(asker, self.prompts.values())

    async def update(
        self,
        reasons: Sequence[Reason],
        current: Sequence[Rubric],
        polarity: Polarity,
        most: int,
    ) -> Revision | Unanswered:
        """Revise the set by a batch of reasons."""
        prompt = self.prompts[polarity]
        # nothing to learn from, or no room
        if not reasons or not most:
            return Revision(rubrics=tuple(current)[:most])

        items: list[dict[str, object]] = []
        for i, rubric in enumerate(current, 1):
            items.append({"known": i, "rubric": rubric.text})

        for i, reason in enumerate(reasons, 1):
            items.append({"i": i, "reason": reason.text})

        value = await self.asker.value(
            prompt,
            items,
            {"most": str(most)},
            {"revised": list},
            item=polarity,
        )
        if isinstance(value, Unanswered):
            return value

        revision = _RevisionBatch(reasons, current, polarity, name_prompt_version(prompt))
        for entry in read_objects(value["revised"]):
            revision.take(entry, most)

        return Revision(
            rubrics=tuple(revision.rubrics.values()),
            refused=dict(revision.refused),
        )


class _RevisionBatch(_WrittenBatch):
    def take(self, entry: Mapping[str, object], most: int) -> None:
        """Add a rubric of the new set; if refused, keep those that it replaces."""
        text = collapse_white_space(str(entry.get("text") or ""))
        reasons = self._reasons_of(entry)
        parents = self._shown_of(entry.get("known"))
        if parents or reasons:
            why = ""
        else:
            why = "names no reason"

        # a parent's own text was accepted before
        why = why or (
            ""
            if any(text == parent.text for parent in parents)
            else explain_rubric_refusal(text, self._quoted)
        )
        if why:
            self.refused[why] += 1

        # refused words leave the parents; accepted ones take over their reasons and quotes
        for rubric in parents if why else [reduce(_join_rubrics, parents, self._written(text))]:
            if rubric.id in self.rubrics or len(self.rubrics) < most:
                both = _join_rubrics(self.rubrics.get(rubric.id, rubric), rubric)
                self.rubrics[rubric.id] = both if why else add_reasons_to_rubric(both, reasons)
            else:
                self.refused["too many"] += 1


def _join_rubrics(first: Rubric, second: Rubric) -> Rubric:
    reasons = dict.fromkeys((*first.reason_ids, *second.reason_ids))
    quotes = dict.fromkeys((*first.quotes, *second.quotes))
    return first.model_copy(
        update={"reason_ids": tuple(reasons), "quotes": tuple(quotes)[:MAX_QUOTES_PER_RUBRIC]}
    )
