"""The results of a run so far: all that a resume needs."""

import base64
import hashlib
import json
import zlib
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from pollex.agents.roles import Extraction
from pollex.conversations.conversation import Conversation
from pollex.errors import ResumeRefused, WrongUse
from pollex.rubrics.answers import RETRYABLE_OUTCOMES, Answer, NoAnswerOutcome, Unanswered
from pollex.rubrics.rubric import Rubric
from pollex.rubrics.rubric_set import RubricSet
from pollex.rubrics.score import ScoreColumns
from pollex.store.columns import EVERY_RUN_WILDCARD
from pollex.store.rows import read_answer_row, read_conversation_row
from pollex.store.runs import ALL_RUNS_QUERY, FINISHED_STATUSES, Run, read_run_rows
from pollex.store.store import Store
from pollex.store.tables import OriginalRow, load_json, make_damage_error

MAX_RUNS_NAMED = 20
"""Runs that an error names."""


def list_stored_runs(store: Store, where: str = "", values: Sequence[object] = ()) -> list[Run]:
    """Return all runs, the first one first.

    Args:
        where: A condition of SQL, with the values of its question marks, for some of them.
    """
    condition = f" WHERE {where}" if where else ""
    return read_run_rows(store.rows(f"{ALL_RUNS_QUERY}{condition} ORDER BY number", values))


def find_last_run(store: Store, where: str, values: Sequence[object]) -> Run | None:
    """Return the last run that meets a condition, reading no other."""
    last = f"number = (SELECT max(number) FROM runs WHERE {where})"
    return next(iter(list_stored_runs(store, last, values)), None)


def find_run(store: Store, name: str, command: str = "") -> Run:
    """Return the run whose id begins with `name`; `last` is the last one, of a command if one is given.

    Raises:
        WrongUse: There is none, or several.
    """
    of_command = find_last_run(store, "? IN ('', command)", [command])
    if name == "last" and of_command is not None:
        return of_command

    # `learn-1` means run 1, though the id of run 12 begins with it, too.
    begins = "substr(id, 1, length(?1)) = ?1"
    is_whole = "(length(id) = length(?1) OR substr(id, length(?1) + 1) GLOB '-*')"
    is_whole += " AND instr(substr(id, length(?1) + 2), '-') = 0"
    matches = list_stored_runs(store, f"{begins} AND {is_whole}", [name])
    few = f"number IN (SELECT number FROM runs WHERE {begins} LIMIT {MAX_RUNS_NAMED + 1})"
    matches = matches or list_stored_runs(store, few, [name])
    if len(matches) == 1:
        return matches[0]

    # none, or several
    several = ", ".join(run.id for run in matches[:MAX_RUNS_NAMED])
    several += " and more" if len(matches) > MAX_RUNS_NAMED else ""
    of = f" of `pollex {command}`" if command else ""
    raise WrongUse(
        f"several runs begin with {name!r}: {several}"
        if matches
        else f"there is no run {name!r}{of}",
        where=str(store.folder),
        hint="`pollex runs` lists them",
    )


def find_last_unfinished_run(
    store: Store,
    command: str,
    fingerprint: Mapping[str, str] | None = None,
) -> Run | None:
    """Return the last unfinished run of `command`, with this fingerprint if given."""
    is_left = f"command = ? AND status NOT IN ({', '.join('?' * len(FINISHED_STATUSES))})"
    if fingerprint is None:
        return find_last_run(store, is_left, [command, *FINISHED_STATUSES])

    left = list_stored_runs(store, is_left, [command, *FINISHED_STATUSES])
    return next(
        (run for run in reversed(left) if run.fingerprint == dict(fingerprint)),
        None,
    )


def find_resumable_run(
    store: Store,
    command: str,
    fingerprint: Mapping[str, str],
    behind: Mapping[str, object] | None = None,
) -> Run:
    """Return the run that a `--resume` of `command` goes on with.

    Args:
        behind: What stands behind the digests of its roles; see `read_settings_behind_digests`.

    Raises:
        ResumeRefused: What is unfinished was started with something else; the message says with
            what.
        WrongUse: Nothing is unfinished.
    """
    if run := find_last_unfinished_run(store, command, fingerprint):
        return run

    # say in what the unfinished run differs
    other = find_last_unfinished_run(store, command)
    if other is None:
        raise WrongUse(
            f"no {command} run is unfinished",
            where=str(store.folder),
            hint="start one without resuming",
        )

    from pollex.store.settings_told import (
        describe_fingerprint_differences,  # a run that goes on needs none
    )

    changed = "; ".join(
        describe_fingerprint_differences(
            other.fingerprint,
            fingerprint,
            read_settings_behind_digests(store, other),
            behind,
        )
    )
    raise ResumeRefused(
        f"{other.id} was started with other settings ({changed})",
        where=str(store.folder),
        hint="resume it with the settings that it was started with, or start a new run, without resuming",
    )


def read_settings_behind_digests(store: Store, run: Run) -> dict[str, object]:
    """Return what stands behind the digests of a run's roles; nothing of a run of an earlier pollex."""
    from pollex.store.settings_told import SETTINGS_FACT_KIND  # as above

    roles = read_facts_by_id(store, run.id, SETTINGS_FACT_KIND).get("roles", {})
    return roles if isinstance(roles, dict) else {}


def read_facts_by_id(
    store: Store,
    run: str,
    kind: str,
    id_: str | None = None,
) -> dict[str, Any]:
    """Return a run's results of one kind by id; of several the last counts.

    Raises:
        StoreDamaged: One isn't what was written.
    """
    rows = store.rows(
        "SELECT id, payload, crc FROM facts WHERE run = ?1 AND kind = ?2 AND (?3 IS NULL OR id = ?3) ORDER BY rowid",
        [run, kind, id_],
    )
    for row in rows:
        payload = row["payload"]
        if not isinstance(payload, str) or zlib.crc32(payload.encode()) != row["crc"]:
            raise make_damage_error(
                str(store.folder),
                f"the {kind} {row['id']!r} of {run} was changed",
            )

    return {row["id"]: load_json(row["payload"]) for row in rows}


def read_step_result(store: Store, run: str, name: str) -> Any:
    """Return the result of a step; None if not done. Raises as `read_facts_by_id` does."""
    return read_facts_by_id(store, run, "step", name).get(name)


def read_pool_rubrics(store: Store, run: str, rubric: str | None = None) -> dict[str, Rubric]:
    """Return the rubrics of a run's pool by id, in their last version."""
    rubrics = read_facts_by_id(store, run, "rubric", rubric)
    return {id_: Rubric.model_validate(values) for id_, values in rubrics.items()}


def iterate_conversations(
    store: Store,
    run: str,
    *,
    ids: Sequence[str] | None = None,
) -> Iterator[Conversation]:
    """Yield the conversations of a run, or those in `ids`, read in batches."""
    if ids is None:
        places = store.ask(run, "SELECT id FROM conversations GROUP BY id ORDER BY min(seq)")
        ids = [row["id"] for row in places]

    for start in range(0, len(ids), CONVERSATIONS_PER_QUERY):
        batch = list(ids[start : start + CONVERSATIONS_PER_QUERY])
        rows = {}
        for row in store.ask(run, _CONVERSATIONS_QUERY, [batch]):
            rows[row["id"]] = row
        for id_ in batch:
            if id_ in rows:
                yield read_conversation_row(rows[id_])


CONVERSATIONS_PER_QUERY = 500
_CONVERSATIONS_QUERY = """
    SELECT c.* EXCLUDE (seq), t.turns FROM conversations AS c LEFT JOIN texts AS t USING (text_hash)
    WHERE list_contains(?, c.id) ORDER BY c.seq
"""


def read_extractions(
    store: Store,
    run: str,
    *,
    conversation: str | None = None,
) -> dict[str, Extraction | Unanswered]:
    """Return the extractions so far, by conversation, or of one conversation."""
    extractions = read_facts_by_id(store, run, "extraction", conversation)
    extractions_read = {}
    for id_, values in extractions.items():
        extractions_read[id_] = (Unanswered if "outcome" in values else Extraction).model_validate(
            values
        )
    return extractions_read


def read_answers(
    store: Store,
    run: str,
    *,
    ids: Sequence[str] | None = None,
) -> dict[str, dict[str, Answer | Unanswered]]:
    """Return the answers so far, by conversation and question; the last answer counts.

    Args:
        ids: Only answers about these conversations.
    """
    answers: dict[str, dict[str, Answer | Unanswered]] = defaultdict(dict)
    for row in store.ask(
        run,
        "SELECT * FROM answers WHERE $1 IS NULL OR list_contains($1, conversation) ORDER BY seq",
        [None if ids is None else list(ids)],
    ):
        answers[row["conversation"]][row["question"]] = read_answer_row(row)

    return dict(answers)


class StoredAnswerMemory:
    """Answers of all runs of a store; see `agents.llm.judge.AnswerMemory`.

    Args:
        asked_again: Outcomes without an answer that another call may mend: they aren't found.
    """

    def __init__(
        self, store: Store, asked_again: Collection[NoAnswerOutcome] = RETRYABLE_OUTCOMES
    ) -> None:
        self._store = store
        self._asked_again = sorted(asked_again)

    def find(
        self, fingerprint: str, text_hashes: Collection[str]
    ) -> dict[str, dict[str, Answer | Unanswered]]:
        """Return what a judge answered about texts, by text and by the question's digest.

        A refusal that was paid for is an outcome like any other.

        Args:
            fingerprint: Of who answered, which covers prompt, model and settings.
        """
        rows = self._store.ask(
            EVERY_RUN_WILDCARD,
            """SELECT * FROM answers WHERE fingerprint = $1 AND NOT list_contains($3, outcome)
            AND text_hash IN (SELECT unnest($2)) ORDER BY outcome <> '' DESC, run, seq""",
            [fingerprint, list(text_hashes), self._asked_again],
        )
        answers: dict[str, dict[str, Answer | Unanswered]] = defaultdict(dict)
        for row in rows:
            answer = read_answer_row(row)
            if isinstance(answer, Answer):
                answer = answer.model_copy(update={"asked_in": answer.asked_in or row["run"]})
            answers[row["text_hash"]][row["question_hash"]] = answer

        return dict(answers)


def iterate_scores(
    store: Store,
    run: str,
    rubric_set: RubricSet,
    conversations: Sequence[Conversation],
    judges: Sequence[str] = (),
    costs: tuple[float, float] = (1.0, 1.0),
) -> Iterator[ScoreColumns]:
    """Yield the scores of a run in batches, in order; see `NetSat.score_all`."""
    netsat = rubric_set.scorer_of(costs)
    for start in range(0, len(conversations), CONVERSATIONS_PER_QUERY):
        ids = [c.id for c in conversations[start : start + CONVERSATIONS_PER_QUERY]]
        answers = read_answers(store, run, ids=ids)
        yield netsat.score_all(
            {id_: list(answers.get(id_, {}).values()) for id_ in ids},
            judges,
        )


def list_scored_ids(
    store: Store,
    run: str,
    retry_outcomes: Collection[NoAnswerOutcome] = RETRYABLE_OUTCOMES,
) -> set[str]:
    """Return the ids of scored conversations, except those to be asked about again.

    Args:
        retry_outcomes: Outcomes of an answer that a resumed run asks about again.
    """
    rows = store.ask(
        run,
        """SELECT conversation FROM scores WHERE conversation NOT IN (
            SELECT conversation FROM answers GROUP BY conversation, question
            HAVING list_contains(?, last(outcome ORDER BY seq)))""",
        [sorted(retry_outcomes)],
    )
    return {row["conversation"] for row in rows}


def count_unreadable_answers(store: Store, run: str) -> tuple[int, str]:
    """Return how many questions have an answer that could not be read, and why one of the answers could not."""
    last = (
        "SELECT last(outcome ORDER BY seq) AS outcome FROM answers GROUP BY conversation, question"
    )
    number = store.ask(run, f"SELECT count(*) AS n FROM ({last}) WHERE outcome = 'unparsable'")[0][
        "n"
    ]
    rows = store.ask(
        run,
        "SELECT detail FROM answers WHERE outcome = 'unparsable' ORDER BY seq LIMIT 1",
    )
    return number, rows[0]["detail"] if rows else ""


def count_conversations_by_outcome(
    store: Store,
    run: str,
    ids: Collection[str] | None = None,
) -> dict[str, int]:
    """Count conversations by outcome: these, or all."""
    rows = store.ask(
        run,
        """SELECT outcome, count(*) AS n FROM (
            SELECT last(outcome ORDER BY seq) AS outcome FROM scores
            WHERE $1 IS NULL OR list_contains($1, conversation) GROUP BY conversation
        ) GROUP BY outcome ORDER BY outcome""",
        [None if ids is None else list(ids)],
    )
    return {row["outcome"]: row["n"] for row in rows}


def store_originals_of_placeholders(
    store: Store, originals: Mapping[tuple[str, str], Mapping[str, str]]
) -> None:
    """Keep what placeholders stand for, by conversation and text hash; what is kept already is not kept twice."""
    from cryptography.fernet import Fernet  # only stores with placeholders need it

    if not originals:
        return

    # sealed with a key of the store's secret
    seal = Fernet(_derive_originals_key(store))
    stored = set(store.each("SELECT conversation, text_hash FROM originals"))
    new_originals = []
    for (id_, text_hash), by_placeholder in originals.items():
        if (id_, text_hash) not in stored:
            new_originals.append(
                OriginalRow(
                    id_, text_hash, seal.encrypt(json.dumps(dict(by_placeholder)).encode()).decode()
                )
            )
    store.put(new_originals)


def read_originals_of_placeholders(store: Store, conversation: str) -> dict[str, str]:
    """Return what the placeholders of a conversation stand for.

    Raises:
        StoreDamaged: The store's secret is another one than when it was kept.
    """
    from cryptography.fernet import Fernet, InvalidToken  # as above

    by_placeholder: dict[str, str] = {}
    for row in store.rows(
        "SELECT sealed FROM originals WHERE conversation = ? ORDER BY rowid", [conversation]
    ):
        try:
            by_placeholder |= json.loads(
                Fernet(_derive_originals_key(store)).decrypt(row["sealed"].encode())
            )
        except InvalidToken:
            raise make_damage_error(
                str(store.folder),
                "what placeholders stand for was sealed with another secret",
            ) from None

    return by_placeholder


def _derive_originals_key(store: Store) -> bytes:
    return base64.urlsafe_b64encode(hashlib.sha256(b"pollex originals\0" + store.secret).digest())
