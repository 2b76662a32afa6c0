"""Distributions without log-probabilities: from samples, or none at all."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from pollex.agents.llm.asker import Asker, ModelClient
from pollex.gateway.calls import Call
from pollex.gateway.capabilities import Capabilities
from pollex.gateway.outcomes import Outcome
from pollex.rubrics.answers import Answer, Question, Unanswered


def point(chosen: int, options: int) -> tuple[float, ...]:
    """Return a distribution with all mass on the chosen option."""
    return tuple(float(i == chosen) for i in range(options))


def pooled(samples: Sequence[Answer | Unanswered], options: int) -> Answer | Unanswered:
    """Combine samples of the same question into one answer.

    An option's probability is its share of the samples that came to an end; those that named no option are mass that is
    missing, as with log-probabilities. Samples that no model ever answered (errors) count for nothing. The option
    chosen is the most frequent, of equals the first; the words are those of the first sample that chose it.
    """
    answers = [sample for sample in samples if isinstance(sample, Answer)]
    if not answers:
        failures = [sample for sample in samples if isinstance(sample, Unanswered)]
        usual = Counter(failure.outcome for failure in failures).most_common(1)[0][0]
        return next(failure for failure in failures if failure.outcome == usual)
    counts = Counter(answer.chosen for answer in answers)
    ended = sum(isinstance(sample, Answer) or sample.outcome == "unparsable" for sample in samples)
    most = min(counts, key=lambda option: (-counts[option], option))
    shares = tuple(counts[i] / ended if most < options else 0.0 for i in range(options))
    return next(answer for answer in answers if answer.chosen == most).model_copy(
        update={"probabilities": shares, "source": "sampled"}
    )


async def sampled(
    questions: Sequence[Question], replicates: int, ask: Callable[[int], Awaitable[Sequence[Answer | Unanswered]]]
) -> list[Answer | Unanswered]:
    """Ask questions so many times, at once, and combine the samples of each; see `pooled`."""
    samples = await asyncio.gather(*(ask(replicate) for replicate in range(replicates)))
    if replicates == 1:
        return list(samples[0])
    return [pooled(answers, len(q.options)) for q, answers in zip(questions, zip(*samples, strict=True), strict=True)]


def unlisted(question: Question, judge: str) -> Unanswered:
    """Return an error outcome for an answer without the required log-probabilities."""
    detail = "no_logprobs: the answer came without log-probabilities, which are required"
    return Unanswered(question_id=question.id, outcome="error", detail=detail, judge=judge)


STRIDE = 1000
"""Numbers of a run's own samples and second tries; those of the next run begin behind them, so that none are shared."""


@dataclass(frozen=True)
class Replicate:
    """See `agents.llm.asker.ModelClient`.

    A call of another replicate has another key: it is paid by itself, and found again by itself. Its seed is another,
    too, for an endpoint that obeys seeds would give all runs one answer; and its temperature is that which is
    set, else the model's own.

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
        seed = None if call.seed is None else call.seed + self.seeds * self.number
        drawn = replace(call, replicate=call.replicate + STRIDE * self.number, seed=seed, temperature=self.temperature)
        return await self.door.ask(self.capabilities.fit(drawn))


def again(asker: Asker, number: int, seeds: int = 1) -> Asker:
    """Return the asker for the run of that number; see `Replicate`."""
    door = Replicate(asker.door, asker.capabilities, number, asker.settings.temperature, seeds)
    return replace(asker, door=door)
