"""Distributions without log-probabilities: from samples, or none at all."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from pollex.agents.llm.asker import ModelClient, PromptAsker
from pollex.agents.llm.parsing import (
    describe_unknown_option,
    find_named_option,
    parse_last_object,
    read_numbers,
)
from pollex.gateway.calls import Call, Capabilities, CompletedReply, Outcome
from pollex.gateway.json_in_text import CONFLICTING_VALUE, JsonBlock, locate_json_values
from pollex.gateway.logprobs import AnswerTokens
from pollex.rubrics.answers import Answer, Question, Unanswered


def make_point_distribution(chosen: int, options: int) -> tuple[float, ...]:
    """Return a distribution with all mass on the chosen option."""
    return tuple(float(i == chosen) for i in range(options))


def pool_samples(samples: Sequence[Answer | Unanswered], options: int) -> Answer | Unanswered:
    """Combine samples of the same question into one answer.

    An option's probability is its share of the samples that came to an end; those that named no
    option are mass that is missing, as with log-probabilities. Samples that no model ever answered
    (errors) count for nothing. The option chosen is the most frequent, of equals the first; the
    words are those of the first sample that chose it.
    """
    answers = []
    for sample in samples:
        if isinstance(sample, Answer):
            answers.append(sample)

    if not answers:
        # no sample has an answer: the commonest failure stands for all
        failures = []
        for sample in samples:
            if isinstance(sample, Unanswered):
                failures.append(sample)

        usual = Counter(failure.outcome for failure in failures).most_common(1)[0][0]
        return next(failure for failure in failures if failure.outcome == usual)

    counts = Counter(answer.chosen for answer in answers)
    ended = sum(isinstance(sample, Answer) or sample.outcome == "unparsable" for sample in samples)
    most = min(counts, key=lambda option: (-counts[option], option))
    # the option past the last says that it never came up, and leaves no mass to the others
    shares = tuple(counts[i] / ended if most < options else 0.0 for i in range(options))

    return next(answer for answer in answers if answer.chosen == most).model_copy(
        update={"probabilities": shares, "source": "sampled"}
    )


async def ask_and_pool_samples(
    questions: Sequence[Question],
    replicates: int,
    ask: Callable[[int], Awaitable[Sequence[Answer | Unanswered]]],
) -> list[Answer | Unanswered]:
    """Ask questions so many times, at once, and combine the samples of each; see `pool_samples`."""
    samples = await asyncio.gather(*(ask(replicate) for replicate in range(replicates)))
    # a single sample keeps the distribution that it has
    if replicates == 1:
        return list(samples[0])

    pooled = []
    for q, answers in zip(questions, zip(*samples, strict=True), strict=True):
        pooled.append(pool_samples(answers, len(q.options)))

    return pooled


def make_missing_logprobs_error(question: Question, judge: str) -> Unanswered:
    """Return an error outcome for an answer without the required log-probabilities."""
    detail = "no_logprobs: the answer came without log-probabilities, which are required"
    return Unanswered(
        question_id=question.id,
        outcome="error",
        detail=detail,
        judge=judge,
    )


REPLICATES_PER_RUN = 1000
"""Numbers of a run's own samples and second tries; those of the next run begin behind them, so that none are shared."""


@dataclass(frozen=True)
class ReplicateClient:
    """See `agents.llm.asker.ModelClient`.

    A call of another replicate has another key: it is paid by itself, and found again by itself.
    Its seed is another, too, for an endpoint that obeys seeds would give all runs one answer; and
    its temperature is that which is set, else the model's own.

    Attributes:
        seeds: How many a run uses by itself, one for each of its samples.
    """

    door: ModelClient
    capabilities: Capabilities
    number: int
    temperature: float | None
    seeds: int = 1

    async def ask(self, call: Call) -> Outcome:
        """Make the call as an independent sample and return its outcome."""
        # seeds of a run lie behind those of the run before
        seed = None
        if call.seed is not None:
            seed = call.seed + self.seeds * self.number

        drawn = replace(
            call,
            replicate=call.replicate + REPLICATES_PER_RUN * self.number,
            seed=seed,
            temperature=self.temperature,
        )
        return await self.door.ask(self.capabilities.fit(drawn))


def make_asker_of_run(asker: PromptAsker, number: int, seeds: int = 1) -> PromptAsker:
    """Return the asker for the run of that number; see `ReplicateClient`."""
    door = ReplicateClient(
        asker.door,
        asker.capabilities,
        number,
        asker.settings.temperature,
        seeds,
    )
    return replace(asker, door=door)


@dataclass
class AnswerSheet:
    """See the module.

    Attributes:
        spellings: Ways to write the options, each with all of them; an answer may be in any.
        unknown: Answers to numbers that were not asked.
    """

    block: JsonBlock | None
    spellings: Sequence[Sequence[str]]
    tokens: AnswerTokens | None
    text: str
    unknown: int

    @classmethod
    def of(
        cls,
        outcome: CompletedReply,
        spellings: Sequence[Sequence[str]],
        count: int,
    ) -> AnswerSheet:
        """Parse a completed call.

        Args:
            spellings: As in the attributes.
            count: How many questions were asked.
        """
        block = parse_last_object(outcome.text)
        # answers to numbers that nobody asked are counted, and not used
        asked_numbers = {str(i) for i in range(1, count + 1)}
        if block:
            unknown = len(block.value.keys() - asked_numbers)
        else:
            unknown = 0

        return cls(
            block,
            spellings,
            AnswerTokens.of(outcome.logprobs, outcome.text),
            outcome.text,
            unknown,
        )

    def __post_init__(self) -> None:
        # places of the answers in the text, by which their tokens are found
        if self.block and self.tokens:
            self._spans = locate_json_values(self.text, self.block)
        else:
            self._spans = {}

    def entry(self, place: int) -> dict[str, object]:
        """Return the entry at `place`, empty if it is unusable; a bare value is an answer without a reason."""
        value = None
        if self.block:
            value = self.block.value.get(str(place))
        if type(value) in (str, int, float, bool):
            return {"answer": value}
        return value if isinstance(value, dict) else {}

    def chosen(self, place: int) -> int | None:
        """Return the index of the option chosen at `place`."""
        match = self._match(place)
        return match[0] if match else None

    def missing(self, place: int) -> bool:
        """Return whether the question at `place` has no entry at all."""
        return self.block is None or str(place) not in self.block.value

    def fault(self, place: int) -> str:
        """Return why there is no answer at `place`."""
        if self.block is None:
            return "no JSON object in the answer"

        value = self.block.value.get(str(place))
        if value is CONFLICTING_VALUE:
            return "answered twice, and not alike"

        answer = self.entry(place).get("answer")
        return describe_unknown_option(answer)

    def probabilities(self, place: int) -> tuple[float, ...] | None:
        """Off the answer's tokens; None where the endpoint lists no alternatives to them."""
        if self.tokens is None:
            return None

        span = self._spans.get((str(place), "answer"))
        match = self._match(place)
        if span is None or match is None:
            return None

        # labels as JSON writes them, without its quotation marks
        written = []
        for label in match[1]:
            written.append(json.dumps(label, ensure_ascii=False)[1:-1])

        # an answer in another spelling than the label's is looked up by its folded tokens
        exact = self.entry(place).get("answer") == match[1][match[0]]
        distribution = self.tokens.distribution(
            span[0],
            written,
            folded=not exact,
        )
        if distribution and any(distribution):
            return distribution
        return None

    def answer(
        self,
        place: int,
        question: Question,
        judge: str,
        *,
        require_logprobs: bool,
        turns: int = 0,
    ) -> Answer | Unanswered:
        """Read the answer at `place`.

        Args:
            require_logprobs: Whether an answer without them is none.
            turns: How many turns there are to name.
        """
        option = self.chosen(place)
        if option is None:
            detail = self.fault(place)
            return Unanswered(
                question_id=question.id,
                outcome="unparsable",
                detail=detail,
                judge=judge,
            )

        probabilities = self.probabilities(place)
        if probabilities is None and require_logprobs:
            return make_missing_logprobs_error(question, judge)

        entry = self.entry(place)
        options = len(question.options)
        # it never came up
        if option == options:
            listed = (0.0,) * options
        else:
            listed = (probabilities or ())[:options]

        return Answer(
            question_id=question.id,
            probabilities=listed or make_point_distribution(option, options),
            chosen=option,
            source="logprobs" if probabilities else "point",
            justification=str(entry.get("why") or ""),
            turns=tuple(sorted(read_numbers(entry.get("turns"), range(turns)))),
            judge=judge,
        )

    def _match(self, place: int) -> tuple[int, Sequence[str]] | None:
        answer = self.entry(place).get("answer")
        # the first way of writing options in which the answer is one
        tried = ((find_named_option(answer, spelling), spelling) for spelling in self.spellings)
        return next(
            ((option, spelling) for option, spelling in tried if option is not None),
            None,
        )
