"""Runs of `judge`: begin, resume, and continue after people have answered; read what they came to."""

from collections.abc import Callable, Mapping, Sequence

from pollex.conversations.conversation import Conversation, Label
from pollex.errors import ResumeRefused, WrongUse
from pollex.graphs.context import ConversationIndex
from pollex.graphs.run import carry_out_run
from pollex.rooms.judge.agents.votes import JudgeEnsemble, RatingTask, decide_verdict
from pollex.rooms.judge.graphs.state import RunTally, count_votes_of_run
from pollex.rooms.judge.store.votes import (
    TASK_RECORD_NAME,
    iterate_votes,
    read_task,
    read_votes_so_far,
)
from pollex.rubrics.answers import Question
from pollex.runs.run import RunSettings, compute_json_digest, read_conversation_ids
from pollex.store.resume import CONVERSATIONS_PER_QUERY, find_run, iterate_conversations
from pollex.store.rows import make_conversation_rows
from pollex.store.runs import Run
from pollex.store.store import Store
from pollex.text import JsonObject, format_count

AskPeople = Callable[[JsonObject], Mapping[str, str]]
"""Given what the interrupt asks, `question`, `options` and the ids of the `conversations` that wait, the most contested
first: by id the options that people chose. Empty where nobody answers more now."""


async def ask_and_rate(
    conversations: Sequence[Conversation],
    ensemble: JudgeEnsemble,
    task: RatingTask,
    *,
    data_fingerprint: str,
    setting: RunSettings,
    people: AskPeople | None = None,
) -> RunTally:
    """Ask the ensemble about every conversation, and people about those without agreement.

    Args:
        people: None where nobody can be asked now: the run then waits.
    """
    # what must be the same for a run to be resumed
    fingerprint = {
        "data": data_fingerprint[:12],
        "question": compute_json_digest(task.question.model_dump(mode="json")),
        "rule": task.in_words,
        "stop early": str(ensemble.stop_early),
        "by": task.by,
        "judge": ensemble.drawn_from,
    }
    roles = [ensemble.name]
    # conversations are stored first, and only those that a resumed run lacks
    async with setting.begin_or_resume("judge", fingerprint, roles) as run:
        stored_ids = read_conversation_ids(setting.store, run.id)
        for start in range(0, len(conversations), CONVERSATIONS_PER_QUERY):
            new = []
            for c in conversations[start : start + CONVERSATIONS_PER_QUERY]:
                if c.id not in stored_ids:
                    new.append(c)

            await setting.store.write(make_conversation_rows(run.id, new))
        await setting.store.write_step(run.id, TASK_RECORD_NAME, task.as_json)
        return await _judge_conversations(
            run,
            conversations,
            ensemble,
            task,
            setting,
            people,
            roles,
        )


async def apply_people_answers(
    store: Store,
    name: str,
    setting: RunSettings,
    people: AskPeople | None,
) -> RunTally:
    """Continue a run that waits for people, from the store; no judge is asked again.

    Raises:
        WrongUse: There is no such run of `judge`.
        ResumeRefused: It has conversations that its judge was never asked about.
    """
    run = find_run(store, name, "judge")
    # other commands' runs have no question for people
    task = None
    if run.command == "judge":
        task = read_task(store, run.id)

    if task is None:
        raise WrongUse(
            f"{run.id} is no run of `pollex judge`",
            hint="`pollex runs` lists them",
        )

    conversations = list(iterate_conversations(store, run.id))
    # a run that was stopped has conversations without votes: they need the judge first
    tallies, _ = read_votes_so_far(store, run.id, task, setting.retry_outcomes)
    if left := sum(c.id not in tallies for c in conversations):
        hint = "go on with it first: the same command with LOGS and `--resume`"
        raise ResumeRefused(
            f"{format_count(left, 'conversation was', 'conversations were')} not asked about yet",
            where=run.id,
            hint=hint,
        )

    async with setting.begin_or_resume("judge", run.fingerprint, run.roles, run) as again:
        return await _judge_conversations(
            again,
            conversations,
            None,
            task,
            setting,
            people,
            run.roles,
        )


async def _judge_conversations(
    run: Run,
    conversations: Sequence[Conversation],
    ensemble: JudgeEnsemble | None,
    task: RatingTask,
    setting: RunSettings,
    people: AskPeople | None,
    roles: Sequence[str],
) -> RunTally:
    # LangGraph takes a while
    from pollex.rooms.judge.graphs.graph import JudgeContext, JudgeWork, build

    store = setting.store
    # answers that may be asked for again count as pending, if there is somebody to ask
    shelf = ConversationIndex(conversations)
    tallies, partial = read_votes_so_far(
        store,
        run.id,
        task,
        setting.retry_outcomes if ensemble else (),
    )
    # conversations without all their votes; those of a batch that broke off are asked in part
    live = JudgeWork(
        **setting.of_run(run.id),
        stage="judge",
        total=len(shelf),
        pending={id_: None for id_ in shelf if id_ not in tallies or id_ in partial},
        fine=frozenset({"rated", "by a person"}),
        workers=roles,
        shelf=shelf,
        ensemble=ensemble,
        task=task,
        stored_votes=partial,
    )
    state = await carry_out_run(
        build(),
        live,
        JudgeContext.of(setting.arguments),
        people=people and _ask_people_until_done(people),
    )
    # the graph stands at the question to people: the run is kept as partial
    if "__interrupt__" in state:
        store.finish(run.id, "partial", roles=roles, result=live.result(state))

    return live.tallied()


def _ask_people_until_done(people: AskPeople) -> AskPeople:
    """Ask until they have no answer, or none that was taken."""
    before: list[str] = []

    def asked(question: JsonObject) -> Mapping[str, str]:
        nonlocal before
        same = question["conversations"] == before
        before = question["conversations"]

        return {} if same else dict(people(question))

    return asked


def get_thumb_options(conversations: Sequence[Conversation]) -> dict[str, int]:
    """Return the option that each labeled conversation's thumb stands for, by id."""
    return {
        c.id: int(c.label is Label.NEGATIVE) for c in conversations if c.label is not Label.NONE
    }


def read_run_tally(store: Store, run: Run) -> RunTally | None:
    """Return the votes of an ended run with the rule that was fitted; None if it is no run of `judge`."""
    task = None
    if run.command == "judge":
        task = read_task(store, run.id)
    if task is None:
        return None
    return count_votes_of_run(store, run.id, task, iterate_conversations(store, run.id))


def read_run_ratings(store: Store, run: Run) -> tuple[Question, dict[str, str]] | None:
    """Return a run's question, and the option agreed on by text; None if it was never asked anything."""
    task = read_task(store, run.id)
    if task is None:
        return None

    # ratings belong to texts, so that another log with the same text has them too
    rows = store.ask(run.id, "SELECT id, text_hash FROM conversations")
    texts = {str(row["id"]): str(row["text_hash"]) for row in rows}
    verdicts = {}
    for id_, votes in iterate_votes(store, run.id, task):
        verdicts[id_] = decide_verdict(id_, task.question, votes, task.rule).rating

    return task.question, {
        texts[id_]: rating for id_, rating in verdicts.items() if rating is not None
    }
