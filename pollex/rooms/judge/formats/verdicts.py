"""Files of `judge` and `review`: verdicts, accepted ratings, questions to people, their answers."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from pollex.agents.llm.parsing import match_option_of_person
from pollex.conversations.conversation import Conversation, format_openai_messages
from pollex.errors import UNREADABLE_FILE_HINT, BadInput
from pollex.rooms.judge.agents.votes import RatingTask, Verdict
from pollex.rooms.judge.graphs.state import RunTally
from pollex.rooms.judge.store.votes import iterate_votes
from pollex.rubrics.answers import Answer
from pollex.store.resume import CONVERSATIONS_PER_QUERY
from pollex.store.store import Store
from pollex.text import JsonDict, JsonObject, parse_json, read_file_text

VERDICT_COLUMNS = {
    "id": "VARCHAR",
    "rating": "VARCHAR",
    "decided_by": "VARCHAR",
    "reason": "VARCHAR",
    "entropy": "DOUBLE",
    "agreement": "DOUBLE",
    "answered": "INTEGER",
    "runs": "INTEGER",
    "planned": "INTEGER",
    "votes": "MAP(VARCHAR, INTEGER)",
    "failures": "MAP(VARCHAR, INTEGER)",
    "judge": "VARCHAR",
}
"""What is told of a verdict, with DuckDB's types."""

VOTE_COLUMNS = {
    "conversation": "VARCHAR",
    "run": "INTEGER",
    "answer": "VARCHAR",
    "variant": "VARCHAR",
    "outcome": "VARCHAR",
    "judge": "VARCHAR",
}
"""What is told of each run: its number from 1, and None for the answer of a run that failed."""


def make_verdict_row(verdict: Verdict, task: RatingTask) -> dict[str, object]:
    """Turn a verdict into plain values; None where a conversation has no figure."""
    # a person's answer stands above that of the runs
    decided_by = "ensemble" if verdict.rating else None
    if verdict.person:
        decided_by = "person"

    return {
        "id": verdict.conversation_id,
        "rating": verdict.final,
        "decided_by": decided_by,
        "reason": explain_missing_rating(verdict),
        "entropy": verdict.entropy,
        "agreement": verdict.agreement,
        "answered": verdict.answered,
        "runs": verdict.runs,
        "planned": verdict.planned,
        "votes": dict(zip(verdict.options, verdict.votes, strict=True)),
        "failures": verdict.failures,
        "judge": task.by,
    }


def iterate_vote_rows(
    store: Store,
    judged: RunTally,
    conversations: Sequence[Conversation],
    variant: str | None,
) -> Iterator[dict[str, object]]:
    """Yield a row for each run of each conversation, in their order."""
    options = [option.text for option in judged.task.question.options]
    # votes are read by batch, so that a large log stays out of memory
    for start in range(0, len(conversations), CONVERSATIONS_PER_QUERY):
        votes = dict(
            iterate_votes(
                store,
                judged.run,
                judged.task,
                [
                    conversation.id
                    for conversation in conversations[start : start + CONVERSATIONS_PER_QUERY]
                ],
            )
        )
        for conversation in conversations[start : start + CONVERSATIONS_PER_QUERY]:
            # runs are numbered from 1 in files
            for number, vote in enumerate(votes.get(conversation.id, []), 1):
                yield {
                    "conversation": conversation.id,
                    "run": number,
                    "answer": options[vote.chosen] if isinstance(vote, Answer) else None,
                    "variant": variant,
                    "outcome": "answered" if isinstance(vote, Answer) else vote.outcome,
                    "judge": vote.judge,
                }


def explain_missing_rating(decided: Verdict) -> str:
    """Say why there is no rating; empty where there is one."""
    if decided.final:
        return ""
    return decided.reason if decided.scorable else "not_scorable"


def iterate_accepted_rows(
    pairs: Iterable[tuple[Conversation, Verdict]], judged: RunTally
) -> Iterator[dict[str, object]]:
    """Yield conversations with a rating, ready for fine-tuning; a person's rating has no confidence."""
    for conversation, decided in pairs:
        if decided.final is None:
            continue
        # the runs' agreement says nothing of what a person answered
        by_runs = decided.person is None
        yield {
            "messages": format_openai_messages(conversation),
            "rating": decided.final,
            "confidence": decided.agreement if by_runs else None,
            "provenance": {
                **make_verdict_row(decided, judged.task),
                "text_hash": conversation.text_hash,
                "question": judged.task.question.text,
                "rule": judged.rule.in_words(),
                "run": judged.run,
            },
        }


def list_rows_for_people(
    pairs: Iterable[tuple[Conversation, Verdict]], judged: RunTally
) -> list[JsonDict]:
    """List conversations for people: highest entropy first, those without votes last."""
    rows = []
    for conversation, decided in pairs:
        # neither runs nor a person have decided, and there is something to judge
        if decided.final is None and decided.scorable:
            rows.append(
                {
                    "id": conversation.id,
                    "question": judged.task.question.text,
                    "options": list(decided.options),
                    "answer": "",
                    "reason": decided.reason,
                    "entropy": decided.entropy,
                    "votes": dict(zip(decided.options, decided.votes, strict=True)),
                    "words": decided.words,
                    "messages": format_openai_messages(conversation),
                }
            )

    # entropies are 0 or more: −1 puts those without votes last
    return sorted(
        rows,
        key=lambda row: -1.0 if row["entropy"] is None else row["entropy"],
        reverse=True,
    )


class AnswersFile:
    """The answers that people wrote into the file of questions.

    Raises:
        BadInput: The file can't be read, or a line is no JSON object with `id` and `answer`.
    """

    def __init__(self, path: Path) -> None:
        self._said: dict[str, set[str]] = {}
        for number, row in iterate_json_lines(path):
            # extra fields are allowed: the file that was handed out has many
            if (
                not isinstance(row, dict)
                or not isinstance(row.get("answer"), str)
                or "id" not in row
            ):
                hint = "hand back the file that `pollex review --out` wrote, with options in its field `answer`"
                raise BadInput(
                    "no object with `id` and a text `answer`",
                    where=f"{path}:{number}",
                    hint=hint,
                )

            # an empty answer is a case that nobody has answered yet
            if row["answer"].strip():
                self._said.setdefault(str(row["id"]), set()).add(row["answer"])

    def __call__(self, request: JsonObject) -> Mapping[str, str]:
        """Return the options chosen for conversations that wait."""
        chosen = {}
        for id_ in request["conversations"]:
            if id_ in self._said:
                chosen[id_] = self._option(id_, request["options"])
        return {id_: option for id_, option in chosen.items() if option is not None}

    def unused(self, decided: Iterable[Verdict]) -> list[str]:
        """List answers that changed nothing, with the reason; repeated answers are not listed."""
        verdicts = {verdict.conversation_id: verdict for verdict in decided}
        reasons = ((id_, self._why_unused(id_, verdicts.get(id_))) for id_ in self._said)
        answers: list[str] = []
        for id_, why in reasons:
            if why:
                answers.append(f"{id_}: {why}")

        return answers

    def _option(self, id_: str, options: Sequence[str]) -> str | None:
        chosen = set()
        for answer in self._said[id_]:
            chosen.add(match_option_of_person(answer, options))

        if len(chosen) == 1:
            return chosen.pop()
        return None

    def _why_unused(self, id_: str, decided: Verdict | None) -> str:
        if decided is None:
            return "no such conversation in this run"

        # an answer that was given twice with different options is none
        option = self._option(id_, decided.options)
        if option is None:
            answers = ", ".join(sorted(self._said[id_]))
            return f"no option, or several: {answers[:80]}"
        # the answer was taken up, now or in an earlier run
        if option == decided.person:
            return ""
        if decided.person:
            return f"a person has answered {decided.person} before, and that stands"
        if decided.final:
            return f"the runs agree on {decided.final}"
        return "it can't be judged"


def iterate_json_lines(path: Path) -> Iterator[tuple[int, object]]:
    """Yield each line's number and JSON value; blank lines are skipped.

    Lines end only at line feeds: `splitlines` would also split within a text, at U+2028 for
    example.
    """
    try:
        lines = read_file_text(path).split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(
            f"the answers can't be read: {error}",
            where=str(path),
            hint=UNREADABLE_FILE_HINT,
        ) from error

    # lines count from 1, blank ones too, as an editor shows them
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            yield number, parse_json(line)
        except ValueError as error:
            hint = "correct the line: the file has one JSON object per line"
            raise BadInput(
                f"not JSON: {error}",
                where=f"{path}:{number}",
                hint=hint,
            ) from error
