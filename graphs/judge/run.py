"""Runs of the graph `judge`: begin, resume, and continue after people have answered."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pollex.agents.ensemble import Ensemble, Recorded
from pollex.agents.votes import Rule, Verdict, Votes, verdict
from pollex.conversations.conversation import Conversation, Label
from pollex.errors import ResumeRefused, WrongUse
from pollex.graphs.context import ConversationIndex
from pollex.graphs.judge.state import JudgeRunState, Tally, persons_question, run_question
from pollex.graphs.run import RunSettings, carry_out, digest, kept_ids, running
from pollex.rubrics.answers import Answer, Option, Outcome, Question, Unanswered, retryable
from pollex.rubrics.rubric import content_id
from pollex.selection.consensus import Filtered, FittedTau
from pollex.store.resume import answers_of, conversations_of, find_run, step
from pollex.store.rows import conversation_rows
from pollex.store.runs import Run
from pollex.store.store import Store
from pollex.text import count

PORTION = 500
TASK = "task"
"""Name of the step that keeps what a run was asked to do."""

People = Callable[[Mapping[str, Any]], Mapping[str, str]]
"""Given what the interrupt asks, `question`, `options` and the ids of the `conversations` that wait, the most contested
first: by id the options that people chose. Empty where nobody answers more now."""


@dataclass(frozen=True)
class Task:
    """A question, and the rule that accepts its answers.

    Attributes:
        precision: Precision that τ is fitted to on the thumbs; the question then has two options, the first for a
            thumb up.
        by: Who is asked, for people.
    """

    question: Question
    rule: Rule
    precision: float | None = None
    by: str = ""

    def __post_init__(self) -> None:
        if self.precision is None:
            return
        if not 0 < self.precision <= 1:
            raise WrongUse(f"a precision of {self.precision}", remedy="give a share above 0 and up to 1")
        if len(self.question.options) != 2:
            remedy = "give two options, the first for a thumb up, or give τ by value"
            raise WrongUse(f"thumbs can't be compared with {len(self.question.options)} options", remedy=remedy)

    @property
    def in_words(self) -> str:
        """Description of the rule, for a message about a refused resume."""
        tau = self.rule.in_words() if self.precision is None else f"τ for a precision of {self.precision}"
        return f"{tau}; {self.rule.minimum} of {self.rule.runs} runs must have answered"

    @property
    def as_json(self) -> dict[str, Any]:
        """Task as stored with the run."""
        question = self.question.model_dump(mode="json")
        return {"question": question, "rule": asdict(self.rule), "precision": self.precision, "by": self.by}

    @classmethod
    def from_json(cls, kept: Mapping[str, Any]) -> Task:
        return cls(Question.model_validate(kept["question"]), Rule(**kept["rule"]), kept["precision"], kept["by"])


def asked(text: str, options: Sequence[str]) -> Question:
    """Make a question with these options; the first has the highest value."""
    worth = [Option(text=option, value=float(len(options) - 1 - i)) for i, option in enumerate(options)]
    return Question(id=content_id("question", text, *options), text=text, options=tuple(worth))


@dataclass(frozen=True)
class Judged:
    """The result of a run of `judge`; `verdicts_of` reads the verdicts.

    Attributes:
        counts: Conversations by result: `rated`, `by a person`, and the reasons of NONE.
        waiting: How many wait for people.
        asked: Runs asked, of `planned` ones: the others were saved by stopping early.
    """

    run: str
    task: Task
    rule: Rule
    fitted: FittedTau | None
    unseen: Filtered | None
    counts: dict[str, int]
    waiting: int
    asked: int
    planned: int


@dataclass(frozen=True)
class Decided:
    """A conversation's verdict, and a person's answer if one was asked for."""

    verdict: Verdict
    person: str | None = None
    scorable: bool = True

    @property
    def rating(self) -> str | None:
        """The person's, or the ensemble's; None for NONE."""
        return self.person or self.verdict.rating


async def judge(
    conversations: Sequence[Conversation],
    ensemble: Ensemble,
    task: Task,
    *,
    data_fingerprint: str,
    setting: RunSettings,
    people: People | None = None,
) -> Judged:
    """Ask the ensemble about every conversation, and people about those without agreement.

    Args:
        people: None where nobody can be asked now: the run then waits.
    """
    fingerprint = {
        "data": data_fingerprint[:12],
        "question": digest(task.question.model_dump(mode="json")),
        "rule": task.in_words,
        "stop early": str(ensemble.stop_early),
        "by": task.by,
        "judge": ensemble.drawn_from,
    }
    roles = [ensemble.name]
    async with running("judge", fingerprint, setting, roles) as run:
        known = kept_ids(setting.store, run.id)
        for start in range(0, len(conversations), PORTION):
            new = [c for c in conversations[start : start + PORTION] if c.id not in known]
            await setting.store.write(conversation_rows(run.id, new))
        await setting.store.write_step(run.id, TASK, task.as_json)
        return await _judge(run, conversations, ensemble, task, setting, people, roles)


async def answered_by_people(store: Store, name: str, setting: RunSettings, people: People | None) -> Judged:
    """Continue a run that waits for people, from the store; no judge is asked again.

    Raises:
        WrongUse: There is no such run of `judge`.
        ResumeRefused: It has conversations that its judge was never asked about.
    """
    run = run_named(store, name)
    kept = step(store, run.id, TASK) if run.command == "judge" else None
    if kept is None:
        raise WrongUse(f"{run.id} is no run of `pollex judge`", remedy="`pollex runs` lists them")
    task, conversations = Task.from_json(kept), list(conversations_of(store, run.id))
    ensemble = Ensemble(Recorded({}), rule=task.rule)
    tallies, _ = so_far(store, run.id, task, setting.retry_outcomes)
    if left := sum(c.id not in tallies for c in conversations):
        remedy = "go on with it first: the same command with LOGS and `--resume`"
        raise ResumeRefused(
            f"{count(left, 'conversation was', 'conversations were')} not asked about yet", where=run.id, remedy=remedy
        )
    async with running("judge", run.fingerprint, setting, run.roles, run) as again:
        return await _judge(again, conversations, ensemble, task, setting, people, run.roles, finished=True)


def asked_in(store: Store, run: str) -> dict[str, Question]:
    """Return the questions of a run of `judge`, by the ids in its answers."""
    kept = step(store, run, TASK)
    if kept is None:
        return {}
    task = Task.from_json(kept)
    asked_of = [run_question(task.question, number) for number in range(task.rule.runs)]
    return {one.id: one for one in [*asked_of, persons_question(task.question)]}


def run_named(store: Store, name: str) -> Run:
    """Return the run whose id begins with `name`; `last` is the last one."""
    if name != "last":
        return find_run(store, name)
    id_ = store.value("SELECT id FROM runs WHERE command = 'judge' ORDER BY number DESC LIMIT 1")
    if id_ is None:
        raise WrongUse("there is no run of `pollex judge`", where=str(store.folder), remedy="start one with LOGS")
    return find_run(store, id_)


async def _judge(
    run: Run,
    conversations: Sequence[Conversation],
    ensemble: Ensemble,
    task: Task,
    setting: RunSettings,
    people: People | None,
    roles: Sequence[str],
    *,
    finished: bool = False,
) -> Judged:
    from pollex.graphs.judge.graph import JudgeContext, JudgeWork, build  # LangGraph takes a while

    store, shelf = setting.store, ConversationIndex(conversations)
    tallies, partial = so_far(store, run.id, task, setting.retry_outcomes)
    if not finished:
        tallies = {id_: tally for id_, tally in tallies.items() if id_ not in partial}
    live = JudgeWork(
        **setting.of_run(run.id),
        stage="judge",
        total=len(shelf),
        pending={id_: None for id_ in shelf if id_ not in tallies},
        fine=frozenset({"rated", "by a person"}),
        workers=roles,
        shelf=shelf,
        ensemble=ensemble,
        question=task.question,
        work=JudgeRunState(task.rule, tallies=tallies, people=people_so_far(store, run.id, task)),
        known=partial,
        precision=task.precision,
        truth=truth_of(conversations),
    )
    if not live.pending:  # a run that waits for people goes on after its rule was fitted
        live.fit()
    state = await carry_out(build(), live, JudgeContext.of(setting.arguments), people=people and _once(people))
    found = _judged(run.id, task, live.work, shelf)
    if "__interrupt__" in state:
        store.finish(run.id, "partial", roles=roles, result=live.result())
    return found


def _once(people: People) -> People:
    """Ask until they have no answer, or none that was taken."""
    before: list[str] = []

    def asked(question: Mapping[str, Any]) -> Mapping[str, str]:
        nonlocal before
        same, before = question["conversations"] == before, question["conversations"]
        return {} if same else dict(people(question))

    return asked


def truth_of(conversations: Sequence[Conversation]) -> dict[str, int]:
    """Return the option that each labeled conversation's thumb stands for, by id."""
    return {c.id: int(c.label is Label.NEGATIVE) for c in conversations if c.label is not Label.NONE}


def so_far(
    store: Store, run: str, task: Task, again: Collection[Outcome]
) -> tuple[dict[str, Tally], dict[str, dict[int, Votes]]]:
    """Return vote counts by conversation, and known answers of those still to be asked."""
    tallies: dict[str, Tally] = {}
    partial: dict[str, dict[int, Votes]] = {}
    for id_, votes in votes_of(store, run, task):
        tallies[id_] = Tally.of(votes, len(task.question.options))
        if any(retryable(vote, again) for vote in votes):
            partial[id_] = {number: [vote] for number, vote in enumerate(votes) if not retryable(vote, again)}
    return tallies, partial


def votes_of(
    store: Store, run: str, task: Task, ids: Sequence[str] | None = None
) -> Iterator[tuple[str, list[Answer | Unanswered]]]:
    """Yield each conversation's votes, in the order of the runs."""
    names = [run_question(task.question, number).id for number in range(task.rule.runs)]
    for id_, answers in answers_of(store, run, ids=None if ids is None else list(ids)).items():
        votes = [answers[name] for name in names if name in answers]
        if votes:
            yield id_, votes


def people_so_far(store: Store, run: str, task: Task) -> dict[str, str]:
    rows = store.ask(
        run,
        "SELECT conversation, last(chosen ORDER BY seq) AS chosen FROM answers WHERE question = ? "
        "GROUP BY conversation",
        [persons_question(task.question).id],
    )
    return {row["conversation"]: task.question.options[row["chosen"]].text for row in rows}


def _judged(run: str, task: Task, work: JudgeRunState, shelf: ConversationIndex) -> Judged:
    tallies = [tally for tally in work.tallies.values() if tally.scorable]
    return Judged(
        run=run,
        task=task,
        rule=work.rule,
        fitted=work.fitted,
        unseen=work.unseen,
        counts=work.counts(shelf),
        waiting=len(work.waiting()),
        asked=sum(tally.asked for tally in tallies),
        planned=work.rule.runs * len(tallies),
    )


def verdicts_of(store: Store, judged: Judged, conversations: Sequence[Conversation]) -> Iterator[Decided]:
    """Yield the verdict of each conversation, in their order, read in portions."""
    people = people_so_far(store, judged.run, judged.task)
    for start in range(0, len(conversations), PORTION):
        ids = [c.id for c in conversations[start : start + PORTION]]
        votes = dict(votes_of(store, judged.run, judged.task, ids))
        for id_ in ids:
            mine: Votes = votes.get(id_, [])
            found = verdict(id_, judged.task.question, mine, judged.rule)
            scorable = not any(isinstance(vote, Unanswered) and vote.outcome == "not_scorable" for vote in mine)
            yield Decided(found, people.get(id_), scorable)
