"""A run of `judge` in a store, by hand."""

from web_site import Words, conversation, plain

from pollex.agents.llm.sampling import make_point_distribution
from pollex.rooms.judge.agents.votes import RatingRule, RatingTask, make_question, make_run_question
from pollex.rooms.judge.store.votes import TASK_RECORD_NAME
from pollex.rubrics.answers import Answer
from pollex.runs.workspace import run_coroutine_to_end
from pollex.store.rows import AnswerRows, make_conversation_rows
from pollex.store.store import Store


def judged_run(store: Store, n: int = 4, words: Words = plain) -> str:
    """A run of `judge` in seven votes that has ended: the runs agree about every odd conversation, and no other."""
    question = make_question("Was the task done?", ["yes", "no"])
    task = RatingTask(question, RatingRule(runs=7, minimum=5, tau=0.41), by="built-in (no LLM)")
    run = store.begin("judge", fingerprint={}, versions={}, arguments={}).id
    conversations = [conversation(number, words) for number in range(n)]
    store.put(make_conversation_rows(run, conversations))
    run_coroutine_to_end(store.write_step(run, TASK_RECORD_NAME, task.as_json))
    for number, one in enumerate(conversations):
        yes = 7 if number % 2 else 4
        questions = [make_run_question(question, vote) for vote in range(7)]
        votes = [
            Answer(
                question_id=each.id,
                probabilities=make_point_distribution(int(vote >= yes), 2),
                chosen=int(vote >= yes),
                source="point",
                justification=words("it was found" if vote < yes else "nobody said so"),
            )
            for vote, each in enumerate(questions)
        ]
        store.put(AnswerRows(run).of(one, questions, votes, "f"))
    store.finish(run, "partial", roles=["built-in (no LLM)"], result={"waiting": (n + 1) // 2})
    return run
