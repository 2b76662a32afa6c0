"""A trial: contexts whose replies are asked for under several prompts, and judged."""

import hashlib
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field

import numpy as np

from pollex.agents.roles import Judge, answer_each_question
from pollex.errors import AnswersPending
from pollex.gateway.calls import estimate_tokens
from pollex.graphs.batches import BatchWork, await_all_or_cancel_others
from pollex.measures.arrays import Floats
from pollex.rooms.remedy.agents.assistant import (
    Assistant,
    AssistantReply,
    FileAssistant,
    NoReply,
    ReplyRequest,
    ask_with_tools,
    build_messages_before,
)
from pollex.rooms.remedy.agents.llm.second_reader import SecondReader
from pollex.rooms.remedy.conversations.reply_context import ReplyContext
from pollex.rooms.remedy.graphs.state import RemedyState
from pollex.rooms.remedy.measures.proofs import FAILING_STRATUM, OLD_ARM, ProofArrays
from pollex.rubrics.answers import Answer, Question, Unanswered
from pollex.store.resume import read_step_result
from pollex.text import JsonDict, JsonObject

REPLY_RECORD_NAME = "reply"
ReplyPlace = tuple[int, int, int]
"""A context, an arm and a reply."""
ReplyCheck = Callable[[str, str, ReplyContext], bool]


@dataclass(frozen=True)
class Trial:
    """Contexts that are asked again under several prompts; arm 0 is the old one.

    Attributes:
        systems: Prompts with each conversation's values `[arm][context]`; empty: this arm isn't
            asked there.
        checks: What is checked of a reply without a judge, after the questions.
        texts: Replies or why there is none, as they come.
        wins, worded: By arm, what a second judge says of pairs `[context]`, by other words
            `[context, side, words]`.
    """

    name: str
    contexts: Sequence[ReplyContext]
    systems: Sequence[Sequence[str]]
    questions: Sequence[Question]
    checks: Sequence[ReplyCheck]
    arrays: ProofArrays
    texts: dict[ReplyPlace, AssistantReply | NoReply] = field(default_factory=dict)
    answers: dict[ReplyPlace, Sequence[Answer | Unanswered]] = field(default_factory=dict)
    wins: dict[int, Floats] = field(default_factory=dict)
    worded: dict[int, Floats] = field(default_factory=dict)

    @property
    def stage(self) -> str:
        """What its progress is called: a trial and a node of another command may have one name."""
        return f"{self.name} replies"

    def places(
        self, where: Sequence[int] | None = None, arms: Sequence[int] | None = None
    ) -> list[ReplyPlace]:
        """Return what is asked in some contexts or all, the arms in turn."""
        if where is None:
            where = range(len(self.contexts))
        if arms is None:
            arms = range(len(self.systems))

        # arms in turn within each context, so that drift of a model meets all arms alike
        replies = range(self.arrays.values.shape[2])
        places: list[ReplyPlace] = []
        for n in where:
            for k in replies:
                for arm in arms:
                    # an empty system prompt marks what isn't asked under this arm
                    if self.systems[arm][n]:
                        places.append((n, arm, k))

        return places

    def cut(self, arms: Sequence[int], look: int) -> float:
        """Leave out contexts that lack replies or their judging; return the fraction of users that is left."""
        # settled: judged, or known to have no reply
        settled = set()
        for place, text in self.texts.items():
            if isinstance(text, NoReply) or place in self.answers:
                settled.add(place)

        # a context that lacks anything is left out in all arms
        lacking = set()
        for place in self.places(arms=arms):
            if place not in settled:
                lacking.add(place[0])

        return self.arrays.keep(
            np.array([n not in lacking for n in range(len(self.contexts))]),
            look,
        )

    def pair(self, arm: int, n: int) -> tuple[str, str] | None:
        """Return the old and the new reply to a context; None where one is missing."""
        old = self.texts.get((n, OLD_ARM, 0))
        new = self.texts.get((n, arm, 0))
        if isinstance(old, AssistantReply) and isinstance(new, AssistantReply):
            return (old.text, new.text)
        return None

    def missing(self, arm: int) -> Counter[str]:
        """Count replies, judgings and comparisons of an arm that are missing, by kind."""
        # no reply came
        missing = Counter(
            text.kind
            for place, text in self.texts.items()
            if place[1] == arm and isinstance(text, NoReply)
        )
        # a reply came, and its judging failed
        for place, answers in self.answers.items():
            if place[1] == arm and (
                failed := [answer for answer in answers if isinstance(answer, Unanswered)]
            ):
                missing[f"judging {failed[0].outcome}"] += 1

        # pairs that the second reader didn't answer
        unread = np.flatnonzero(np.isnan(self.wins.get(arm, np.zeros(0))))
        missing["comparing"] += sum(self.pair(arm, int(n)) is not None for n in unread)
        return +missing


@dataclass(frozen=True, kw_only=True)
class RemedyWork(BatchWork):
    """The resources of `remedy`.

    Attributes:
        tools: Functions by the names of tools whose calls the log lacks.
        make: Makes a trial of a name and changed prompts.
        propose: Returns changes that are worth a try, and those that were refused, with the reason.
        begun: What is in the state at first: the split, and changes that the user gave; none: they
            are proposed.
        register: Keeps all that may not change once a proof's first reply is asked for; returns its
            number once the replies of its first wave are there.
        sheet: Pairs of replies that people are to compare, of a trial and an arm; empty: nobody is
            asked.
        conclude: Returns the verdicts, the best first.
        blind: Whether people compare replies without knowing whose they are: the state then tells
            no reply.
        trials: Replies and answers as arrays, at hand while the process lives: the store and the
            ledger have them.
    """

    assistant: Assistant
    judge: Judge
    second: SecondReader | None
    tools: Mapping[str, Callable[..., object]]
    make: Callable[[str, Sequence[str]], Trial]
    propose: Callable[[Trial], Awaitable[list[dict[str, str]]]]
    begun: JsonObject
    register: Callable[[str, Trial, Sequence[str]], Awaitable[int]]
    finalists: int
    sheet: Callable[[Trial, int], Sequence[JsonObject]]
    conclude: "Callable[[RemedyWork, RemedyState], list[JsonDict]]"
    seed: int
    blind: bool = False
    trials: dict[str, Trial] = field(default_factory=dict)

    @property
    def salt(self) -> bytes:
        """Names pairs of replies: what people choose in another run is of other replies."""
        return self.store.secret + self.run.encode()


async def ask_trial(
    live: RemedyWork,
    trial: Trial,
    where: Sequence[int] | None = None,
    arms: Sequence[int] | None = None,
) -> Trial:
    """Ask for and judge replies of a trial, both arms in turn; return it.

    Raises:
        AnswersPending: Replies are to be written into a file first.
    """
    # kept by name: pages and later nodes read it
    live.trials[trial.name] = trial
    await require_written_replies(live, trial)
    places = trial.places(where, arms)
    live.progress.start(trial.stage, len(places))
    # as many at once as the semaphore lets through
    await await_all_or_cancel_others(reply_and_judge(live, trial, place) for place in places)
    live.outcomes.update({"asked": len(trial.contexts if where is None else where)})
    await live.store.settle()

    return trial


async def require_written_replies(live: RemedyWork, *trials: Trial) -> None:
    """Raise `AnswersPending` where replies are still to be written; what is waited for is written into a file."""
    if not isinstance(assistant := live.assistant, FileAssistant):
        return

    # every place is tried, so that all that is missing stands in one file
    for trial in trials:
        for place in trial.places():
            await assistant.reply(
                make_reply_request(
                    trial,
                    place,
                    live.store.secret,
                    live.seed,
                )
            )

    if assistant.waiting:
        path = assistant.write_todo()
        what = f"{len(assistant.waiting)} replies are still to be written"
        hint = f'write {{"key": …, "reply": …}} for each line into {assistant.folder / "replies.jsonl"}, then go on'
        raise AnswersPending(what, where=str(path), hint=hint)


async def reply_and_judge(live: RemedyWork, trial: Trial, place: ReplyPlace) -> None:
    """Get one reply, keep it, and have it judged; what fails is counted and never a score.

    The judge sees neither prompt nor arm.
    """
    # context, arm and number of the reply
    n, arm, k = place
    # shown in its conversation, cut after the reply
    context = trial.contexts[n]
    values = trial.arrays.values
    async with (
        live.semaphore,
        live.tracer.span(REPLY_RECORD_NAME, kind="role", item=context.conversation.id) as span,
    ):
        reply = trial.texts[place] = await get_reply(live, trial, place)
        live.progress.advance(trial.stage)
        # no reply: all values stay missing, but for the check that one came
        if isinstance(reply, NoReply):
            span.failed(f"{reply.kind}: {reply.detail}")
            # the first check: that one came
            values[n, arm, k, len(trial.questions) : len(trial.questions) + 1] = 0.0
            return

        conversation = context.with_reply(reply.text)
        answers = trial.answers[place] = await answer_each_question(
            live.judge,
            conversation,
            trial.questions,
            live.secrets,
        )
        # sizes only where they are known: some assistants tell no cost
        for name, size in {"length": len(reply.text), "cost": reply.cost}.items():
            if size and name in trial.arrays.sizes:
                trial.arrays.sizes[name][n, arm, k] = size
        # the judge's scores first, then the checks by code, as in the array's names
        scores = []
        for q, answer in zip(trial.questions, answers, strict=True):
            scores.append(compute_question_value(q, answer))
        values[n, arm, k] = [
            *scores,
            *(float(check(reply.text, trial.systems[arm][n], context)) for check in trial.checks),
        ]


async def get_reply(live: RemedyWork, trial: Trial, place: ReplyPlace) -> AssistantReply | NoReply:
    """Return a reply that was kept, or ask for one and keep it."""
    # the key holds context, prompt and number, so a reply fits whoever asks the same
    request = make_reply_request(trial, place, live.store.secret, live.seed)
    context = trial.contexts[place[0]]
    about = context.conversation.id
    name = f"{REPLY_RECORD_NAME} {request.key}"
    # a stored reply is taken as it is, a stored reason, too
    if (stored := (read_step_result(live.store, live.run, name) or {}).get(about)) is not None:
        if "text" in stored:
            return AssistantReply(**stored)
        return NoReply(**stored)

    reply = await ask_with_tools(live.assistant, request, context, live.tools)
    record = asdict(reply)
    record.pop("calls", None)  # of a reply they were answered
    if record.get("kind") not in ("pending", "error"):  # those may be others the next time
        await live.store.write_step(live.run, name, {about: record})  # so it can be forgotten

    return reply


def make_reply_request(
    trial: Trial,
    place: ReplyPlace,
    secret: bytes,
    seed: int,
) -> ReplyRequest:
    """Return what the assistant is asked; its key is random, so it tells nothing of arms."""
    n, arm, k = place
    context = trial.contexts[n]
    system = trial.systems[arm][n]
    # the secret keeps the key from being guessed; the arm counts only as old or new
    identity = f"{context.id}\0{system}\0{k}\0{arm > OLD_ARM}".encode("utf-8", "replace")

    return ReplyRequest(
        key=hashlib.sha256(secret + identity).hexdigest()[:16],
        item=context.conversation.id,
        system=system,
        messages=build_messages_before(context),
        # replies of one context differ by their seed
        seed=seed + k,
        written=estimate_tokens(context.reply.content),
    )


def compute_question_value(question: Question, answer: Answer | Unanswered) -> float:
    """Return an answer's worth; NaN where there is none. What never came up can't fail, and isn't done either."""
    if isinstance(answer, Unanswered):
        return float("nan")

    good = question.rubric is not None and question.rubric.polarity == "sat"
    if answer.never_came_up:
        return 0.5 if good else 1.0

    held = answer.value(question.options) / 10
    return held if good else 1 - held


async def ask_second_judge(live: RemedyWork, second: SecondReader, arm: int) -> dict[str, object]:
    """Have the second judge compare both replies to each context, and judge them by other words; return its share."""
    trial = live.trials["prove"]
    n = len(trial.contexts)
    # [context]: 1, ½ or 0; NaN until it was compared
    wins = trial.wins[arm] = np.full(n, np.nan)
    # [context, old or new, wording]
    worded = trial.worded[arm] = np.full((n, 2, len(second.wordings)), np.nan)

    async def compare(n: int) -> None:
        if pair := trial.pair(arm, n):
            async with live.semaphore:
                wins[n] = await second.wins(trial.contexts[n], *pair)
                # other words are asked only where the target had failed
                for side, text in enumerate(
                    pair if trial.arrays.stratum[n] == FAILING_STRATUM else ()
                ):
                    worded[n, side] = await second.reworded(
                        trial.contexts[n].with_reply(text),
                        compute_question_value,
                    )

        live.progress.advance("compare")

    live.progress.start("compare", n)
    await await_all_or_cancel_others(compare(index) for index in range(n))
    return trial.arrays.preferred(wins)
