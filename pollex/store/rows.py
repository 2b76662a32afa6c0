"""Conversion between rows and conversations, reasons, rubrics and answers."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from typing import Any

import numpy as np
from pydantic import BaseModel

from pollex.conversations.conversation import Conversation
from pollex.rubrics.answers import Answer, Question, Unanswered
from pollex.rubrics.rubric import Rubric
from pollex.rubrics.score import AnswerColumns, ScoreColumns
from pollex.store.columns import RowBlock, make_column_arrays, make_row_block
from pollex.store.tables import (
    AnswerRow,
    ConversationRow,
    FactRow,
    LabelRow,
    Row,
    ScoreRow,
    TextRow,
    dump_json,
    load_json,
)
from pollex.store.writer import ROW_OVERHEAD_BYTES, StoredRow
from pollex.text import replace_surrogates

SOURCE_ROLE = "source"
"""In place of a role: a document that was shown, behind the turns."""
MAX_OPENING_CHARS = 200
"""Characters that a list shows of a conversation."""


def make_conversation_rows(
    run: str,
    conversations: Sequence[Conversation],
    *,
    side: str = "",
) -> Iterator[Row]:
    """Yield rows of a run's conversations; `side` is `train`, `test` or empty."""
    for conversation in conversations:
        # turns with what their tools did, then the documents that were shown
        parts = []
        for turn in conversation.turns:
            used = turn.model_dump(include={"calls", "result"}, exclude_defaults=True)
            parts.append([turn.role, turn.content, *([used] if used else [])])
        for source in conversation.sources:
            about = source.model_dump(exclude={"text"}, exclude_defaults=True)
            parts.append([SOURCE_ROLE, source.text, about])
        yield TextRow(run, conversation.text_hash, dump_json(parts))

        feedback = ""
        if conversation.feedback:
            entries = []
            for entry in conversation.feedback:
                entries.append(entry.model_dump(exclude_defaults=True))
            feedback = dump_json(entries)

        yield ConversationRow(
            run=run,
            id=conversation.id,
            text_hash=conversation.text_hash,
            label=conversation.label.value,
            judge=conversation.judge,
            group=conversation.group,
            metadata=dump_json(conversation.metadata),
            side=side,
            opening=conversation.opening[:MAX_OPENING_CHARS],
            turn_count=len(conversation.turns),
            flags=" ".join(conversation.flags),
            feedback=feedback,
        )


def make_rubric_rows(run: str, rubrics: Iterable[Rubric]) -> Iterator[Row]:
    """Return rubrics with their provenance as rows."""
    for rubric in rubrics:
        yield make_fact_row(run, "rubric", rubric.id, rubric)


def make_fact_row(
    run: str,
    kind: str,
    id_: str,
    value: BaseModel,
) -> FactRow:
    """Return a result of a run as a row."""
    return FactRow(run, kind, id_, dump_json(replace_surrogates(value.model_dump(mode="json"))))


class AnswerRows:
    """Answers of a run as rows of the store."""

    def __init__(self, run: str) -> None:
        self._run = run

    def of(
        self,
        conversation: Conversation,
        questions: Sequence[Question],
        answers: Sequence[Answer | Unanswered],
        fingerprints: Sequence[str] | str,
    ) -> Iterator[StoredRow]:
        """Yield a judge's answers to `questions`, in their order.

        Args:
            fingerprints: Of who answered each question; one alone if that was the same for all.
        """
        if isinstance(fingerprints, str):
            fingerprints = [fingerprints] * len(questions)

        about = self._run, replace_surrogates(conversation.id), conversation.text_hash
        for question, answer, fingerprint in zip(questions, answers, fingerprints, strict=True):
            cells = about + self._cells_of(question, answer, fingerprint)
            yield StoredRow(
                AnswerRow,
                self._run,
                cells,
                ROW_OVERHEAD_BYTES
                + len(cells[RAW_ANSWER_COLUMN_INDEX])
                + len(cells[JUSTIFICATION_COLUMN_INDEX]),
            )

    def block(
        self,
        conversations: Sequence[Conversation],
        questions: Sequence[Question],
        answers: AnswerColumns,
        fingerprint: str,
    ) -> RowBlock:
        """Return a judge's answers about conversations, in their order; no object is made for an answer."""
        by_id = {question.id: question for question in questions}
        types = AnswerRow.types()
        types_of_texts = {}
        for name in ("run", "conversation", "text_hash"):
            types_of_texts[name] = types.pop(name)

        text_keys = []
        for conversation in conversations:
            text_keys.append(
                (self._run, replace_surrogates(conversation.id), conversation.text_hash)
            )
        about, of_whom = make_column_arrays(types_of_texts, text_keys)
        answer_cells = []
        for answer in answers.different:
            answer_cells.append(
                self._cells_of(
                    by_id[answer.question_id],
                    answer,
                    fingerprint,
                )
            )

        different, what = make_column_arrays(types, answer_cells)
        # each cell of the table of answers points to one of the different answers
        row, column = np.nonzero(answers.index >= 0)
        tables = {
            "about": about | {"n": np.arange(len(conversations))},
            "different": different | {"n": np.arange(len(answer_cells))},
            "given": {"row": row, "which": answers.index[row, column], "n": np.arange(len(row))},
        }
        cells = [cell.replace("r.", "a.") for cell in of_whom.values()] + list(what.values())
        sql = f"""SELECT {", ".join(cells)} FROM given AS g JOIN about AS a ON a.n = g.row
            JOIN different AS r ON r.n = g.which ORDER BY g.n"""

        return RowBlock(
            AnswerRow,
            self._run,
            tables,
            sql,
            24 * len(row) + 4 * ROW_OVERHEAD_BYTES * (len(answer_cells) + len(conversations)),
        )

    def _cells_of(
        self,
        question: Question,
        answer: Answer | Unanswered,
        fingerprint: str,
    ) -> tuple[object, ...]:
        question_cells = (
            replace_surrogates(question.id),
            question.digest,
            fingerprint,
            replace_surrogates(answer.judge),
        )
        if isinstance(answer, Unanswered):
            return (
                *question_cells,
                None,
                None,
                "",
                answer.outcome,
                replace_surrogates(answer.detail),
                "",
                (),
                "",
            )

        justification = replace_surrogates(answer.justification)
        outcome = ""
        detail = ""

        return (
            *question_cells,
            answer.probabilities,
            answer.chosen,
            answer.source,
            outcome,
            detail,
            justification,
            answer.turns,
            answer.asked_in,
        )


JUSTIFICATION_COLUMN_INDEX, RAW_ANSWER_COLUMN_INDEX = -4, -3
"""Places of an answer's cells that hold texts."""


def make_label_row(
    run: str,
    about: Conversation,
    question: str,
    value: object,
    *,
    drawn: str,
    annotator: str = "",
) -> LabelRow:
    """Make the row of a person's label; `drawn` says how the conversation was selected."""
    return LabelRow(
        annotator,
        about.text_hash,
        about.id,
        run,
        question,
        dump_json(value),
        drawn=drawn,
    )


def read_conversation_row(row: Mapping[str, Any]) -> Conversation:
    """Convert a row of conversations, with its text's turns, to a conversation; without turns if no text was kept."""
    turns = []
    sources = []
    # documents lie behind the turns, under a role of their own
    for role, content, *more in load_json(row["turns"] or "[]"):
        about = more[0] if more else {}
        if role == SOURCE_ROLE:
            sources.append({"text": content, **about})
        else:
            turns.append({"role": role, "content": content, **about})

    return Conversation.model_validate(
        {
            **{name: row[name] for name in ("id", "label", "judge", "group")},
            "turns": turns,
            "sources": sources,
        }
        | {"flags": (row["flags"] or "").split()}
        | {
            "metadata": load_json(row["metadata"]),
            "feedback": load_json(row.get("feedback") or "[]"),
        }
    )


def read_answer_row(row: Mapping[str, Any]) -> Answer | Unanswered:
    """Convert a row of answers to an answer, or to the reason for none."""
    if row["outcome"]:
        return Unanswered.model_construct(
            question_id=row["question"],
            outcome=row["outcome"],
            detail=row["detail"],
            judge=row["judge"],
        )

    # A run reads back as many answers as it has conversations times rubrics: validation would
    # double the time.
    return Answer.model_construct(
        question_id=row["question"],
        probabilities=tuple(row["probabilities"]),
        chosen=row["chosen"],
        source=row["source"],
        justification=row["justification"],
        turns=tuple(row["turns"]),
        judge=row["judge"],
        asked_in=row.get("asked_in") or "",  # parts of an earlier pollex have no such column
    )


def make_score_block(run: str, scores: ScoreColumns) -> RowBlock:
    """Return scores as rows of the store."""
    figures = (
        scores.column(name) for name in ("netsat", "label", "confident", "probability", "outcome")
    )
    return make_row_block(
        ScoreRow,
        run,
        list(zip(repeat(run), map(replace_surrogates, scores.ids), *figures)),
    )
