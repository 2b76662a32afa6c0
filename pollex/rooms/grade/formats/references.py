"""Questions with references, answers and people's grades, read from files and joined by id."""

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice

from pollex.conversations.conversation import Source
from pollex.conversations.logs import BadRow
from pollex.conversations.redaction import IdentifierFinder, Placeholders, choose_finders
from pollex.errors import BadInput
from pollex.formats.csv_rows import unescape_formula
from pollex.formats.fields import ReadOptions
from pollex.formats.files import find_files_of_sources, iterate_file_rows
from pollex.formats.json_rows import LogRow
from pollex.formats.shown_sources import split_sources_from_row_fields
from pollex.rooms.grade.conversations.references import (
    ReferenceCase,
    ReferenceCases,
    ReferenceEvidence,
)
from pollex.text import format_count, parse_json, replace_surrogates

ID_FIELDS = ("question_id", "id")
QUESTION_FIELDS = ("question", "prompt", "instruction")
REFERENCE_FIELDS = ("reference", "reference_answer")
EVIDENCE_FIELDS = ("evidences", "evidence")
CATEGORY_FIELDS = ("category",)
SUBCATEGORY_FIELDS = ("subcategory",)
ANSWER_FIELDS = ("answer", "response")
SYSTEM_FIELDS = ("answered_by", "model")
HUMAN_GRADE_FIELDS = ("human", "human_grade", "human_rating", "human_score")
MAX_BAD_ROWS_LISTED = 10

TABLE_FILE_ENDINGS = (".csv", ".tsv")
"""Files with cells, which may be guarded."""


def read_cases(
    sources: Sequence[str],
    options: ReadOptions | None = None,
    human_field: str | None = None,
) -> ReferenceCases:
    """Read questions with references from JSON, JSON lines, CSV or Parquet.

    Raises:
        BadInput: A file can't be read, has no question in it, or more bad rows than `max_bad`.
    """
    options = options or ReadOptions()
    by_id: dict[str, ReferenceCase] = {}
    bad: list[BadRow] = []
    for row in _read_case_rows(sources, options):
        case = row if isinstance(row, BadRow) else _read_case(row, options, human_field)
        # the same row twice is one question, a different one under its id is a bad row
        if isinstance(case, ReferenceCase) and by_id.setdefault(case.id, case) != case:
            case = BadRow(
                row.source,
                row.line,
                f"another question has the id {case.id!r}",
                "give it an id of its own",
            )

        if isinstance(case, BadRow):
            bad.append(case)

    _check_rows(sources, len(by_id), bad, options.max_bad)
    # a field that was named has a value somewhere
    if options.category_field and not any(case.category for case in by_id.values()):
        what = f"no question has a category in {options.category_field!r}"
        raise BadInput(
            what,
            where=", ".join(sources),
            hint="check its name",
            option="category_field",
        )

    return ReferenceCases(tuple(by_id.values()), tuple(bad))


def add_answers(
    cases: ReferenceCases,
    sources: Sequence[str],
    options: ReadOptions | None = None,
    human_field: str | None = None,
) -> ReferenceCases:
    """Add answers from other files by id: from `pollex answer`, or any rows with answers.

    Raises:
        BadInput: As `read_cases`; also where no answer is to any of the questions.
    """
    options = options or ReadOptions()
    by_id = {case.id: case for case in cases}
    answers: dict[str, ReferenceCase] = {}
    bad: list[BadRow] = []
    strangers = 0
    for row in _read_case_rows(sources, options):
        # an answer to no question is counted, a second one to the same is bad
        answer = row if isinstance(row, BadRow) else _add_answer(row, by_id, options, human_field)
        if answer is None:
            strangers += 1
        elif isinstance(answer, BadRow):
            bad.append(answer)
        elif answers.setdefault(answer.id, answer) != answer:
            bad.append(
                BadRow(
                    row.source,
                    row.line,
                    f"a second answer to {answer.id!r}",
                    "keep one an id",
                )
            )

    _check_rows(sources, len(answers), bad, options.max_bad)
    # what doesn't fit together
    if strangers:
        notes = [f"{format_count(strangers, 'answer is', 'answers are')} to none of the questions"]
    else:
        notes = []

    # questions that neither file answers
    left = sum(case.id not in answers and case.answer is None for case in cases)
    notes += [f"{format_count(left, 'question has', 'questions have')} no answer"] if left else []
    # in the order of the questions
    merged = tuple(answers.get(case.id, case) for case in cases)
    return ReferenceCases(merged, (*cases.bad_rows, *bad), (*cases.notes, *notes))


def add_human_grades(
    cases: ReferenceCases,
    sources: Sequence[str],
    options: ReadOptions | None = None,
    human_field: str | None = None,
) -> ReferenceCases:
    """Add people's grades from other files, by id.

    Raises:
        BadInput: As `read_cases`; also where no grade is of any of the questions.
    """
    options = options or ReadOptions()
    by_id = {case.id: case for case in cases}
    grades = dict[str, float]()
    bad: list[BadRow] = []
    strangers: list[str] = []
    for row in _read_case_rows(sources, options):
        # the grade of each row, by the id of its question
        human = (
            row
            if isinstance(row, BadRow)
            else _read_grade(row, [human_field] if human_field else ["grade", *HUMAN_GRADE_FIELDS])
        )
        if isinstance(human, BadRow):
            bad.append(human)
        elif isinstance(row, LogRow) and human is not None:
            id_ = _get_case_id(row, options)
            if id_ not in by_id:
                strangers.append(f"{row.source}:{row.line}")
            elif grades.setdefault(id_, human) != human:
                bad.append(
                    BadRow(
                        row.source,
                        row.line,
                        f"a second grade of {id_!r}",
                        "keep one an id, or their mean",
                    )
                )

    # grades of no question are told; if there are no others, nothing fits
    strangers_note = (
        format_count(len(strangers), "grade is", "grades are") + " of none of the questions"
    )
    hint = "give them the questions' ids"
    if strangers and not grades:
        raise BadInput(strangers_note, where=strangers[0], hint=hint)

    _check_rows(sources, len(grades), bad, options.max_bad)
    if strangers:
        notes = [f"{strangers_note}, the first at {strangers[0]} → {hint}"]
    else:
        notes = []

    graded = (
        case.model_copy(update={"human": grades[case.id]}) if case.id in grades else case
        for case in cases
    )
    return ReferenceCases(tuple(graded), (*cases.bad_rows, *bad), (*cases.notes, *notes))


def drop_unusable_grades(cases: ReferenceCases, lowest: float, highest: float) -> ReferenceCases:
    """Leave out people's grades that are off the scale, or of an answer that isn't there."""
    # grades that can't be used are taken off their cases, which stay
    graded = []
    for case in cases:
        if case.human is not None:
            graded.append(case)

    off = []
    for case in graded:
        if not lowest <= (case.human or 0) <= highest:
            off.append(case.id)

    gone = []
    for case in graded:
        if case.answer is None and case.id not in off:
            gone.append(case.id)

    # one note for each cause, with the first id
    notes = []
    for ids, why, hint in (
        (off, f"off the scale from {lowest:g} to {highest:g}", "correct them"),
        (gone, "of answers that aren't there", "add the answers"),
    ):
        if ids:
            notes.append(
                format_count(len(ids), "of people's grades is", "of people's grades are")
                + f" {why}, the first that of {ids[0]!r}, and left out → {hint}"
            )

    usable = tuple(
        # off the scale or without an answer: the case stays, its grade goes
        case.model_copy(update={"human": None}) if case.id in {*off, *gone} else case
        for case in cases
    )
    return ReferenceCases(usable, cases.bad_rows, (*cases.notes, *notes))


def _read_case_rows(sources: Sequence[str], options: ReadOptions) -> Iterator[LogRow | BadRow]:
    for source in find_files_of_sources(sources):
        rows = iterate_file_rows(
            source,
            options.encoding,
            query_seconds=options.query_seconds,
        )
        if str(source).lower().endswith(TABLE_FILE_ENDINGS):
            rows = map(_unescape_row, rows)
        yield from (
            rows if options.redact is None else _redact_rows(rows, choose_finders(options.redact))
        )


def _redact_rows(
    rows: Iterator[LogRow | BadRow], finders: Sequence[IdentifierFinder]
) -> Iterator[LogRow | BadRow]:
    """Yield rows with placeholders, counted from the question on, so that all files of a question have the same."""
    for row in rows:
        # bad rows have no texts to redact
        if isinstance(row, BadRow):
            yield row
            continue
        # placeholders are numbered anew for each row
        places = Placeholders(finders)
        first = {}
        for name in QUESTION_FIELDS:
            if name in row.fields:
                first[name] = places.everywhere(row.fields[name])

        rest = {}
        for name, value in row.fields.items():
            if name not in first:
                rest[name] = value

        # fields after the question take up its placeholders
        yield replace(
            row,
            fields=first | {name: places.everywhere(value) for name, value in rest.items()},
        )


def _unescape_row(row: LogRow | BadRow) -> LogRow | BadRow:
    if isinstance(row, BadRow):
        return row

    return replace(
        row,
        fields={name: unescape_formula(value) for name, value in row.fields.items()},
    )


def _read_case(
    row: LogRow,
    options: ReadOptions,
    human_field: str | None,
) -> ReferenceCase | BadRow:
    question, reference = (
        _get_text(row.fields, names) for names in (QUESTION_FIELDS, REFERENCE_FIELDS)
    )
    # without a question nothing can be asked or graded
    if not question:
        return BadRow(
            row.source,
            row.line,
            "no question",
            f"name it {QUESTION_FIELDS[0]!r}",
        )

    # no list of evidence is something else than an empty one
    evidences = _read_evidences(row.fields)
    if evidences is None:
        return BadRow(
            row.source,
            row.line,
            "evidences are no list of url and quote",
            "correct or remove them",
        )

    # the field that was named, else the usual names
    human = _read_grade(row, [human_field] if human_field else HUMAN_GRADE_FIELDS)
    if isinstance(human, BadRow):
        return human

    # a category's field may be named, too
    return ReferenceCase(
        id=_get_case_id(row, options),
        question=question,
        reference=reference,
        evidences=evidences,
        category=_get_text(
            row.fields, [options.category_field] if options.category_field else CATEGORY_FIELDS
        ),
        subcategory=_get_text(row.fields, SUBCATEGORY_FIELDS),
        answer=_get_text(row.fields, ANSWER_FIELDS) or None,
        answered_by=_get_text(row.fields, SYSTEM_FIELDS),
        human=human,
        unanswered=_explain_no_answer(row),
        sources=_read_sources(row.fields, options),
    )


def _add_answer(
    row: LogRow,
    by_id: Mapping[str, ReferenceCase],
    options: ReadOptions,
    human_field: str | None,
) -> ReferenceCase | BadRow | None:
    # answers are joined to questions by their id
    case = by_id.get(_get_case_id(row, options))
    if case is None:
        return None

    # an id that was used for another question would grade the wrong answer
    question = _get_text(row.fields, QUESTION_FIELDS)
    if question and question != case.question:
        reason = f"answers another question than the one called {case.id!r}"
        return BadRow(
            row.source,
            row.line,
            reason,
            "use the file it was made for",
        )

    human = _read_grade(row, [human_field] if human_field else HUMAN_GRADE_FIELDS)
    if isinstance(human, BadRow):
        return human

    # what the answer's row lacks stays as the question's row has it
    changes = {
        "answer": _get_text(row.fields, ANSWER_FIELDS) or None,
        "answered_by": _get_text(row.fields, SYSTEM_FIELDS),
        "human": case.human if human is None else human,
        "unanswered": _explain_no_answer(row),
        "sources": _read_sources(row.fields, options) or case.sources,
    }
    return case.model_copy(update=changes)


def _explain_no_answer(row: LogRow) -> str:
    outcome = str(row.fields.get("outcome") or "")
    if outcome in ("", "answered"):
        return ""
    return f"{outcome}: {row.fields.get('detail') or ''}".rstrip(": ")


def _get_case_id(row: LogRow, options: ReadOptions) -> str:
    names = [options.id_field] if options.id_field else ID_FIELDS
    id_ = _get_text(row.fields, names)
    # A question without an id is known by its words, which are the same in every file.
    return (
        id_
        or hashlib.sha256(
            _get_text(row.fields, QUESTION_FIELDS).encode("utf-8", "replace")
        ).hexdigest()[:12]
    )


def _get_text(fields: Mapping[str, object], names: Sequence[str]) -> str:
    # the first of the names that has a value
    value = replace_surrogates(
        next(
            (fields[name] for name in names if fields.get(name) is not None),
            "",
        )
    )
    # texts in pieces are joined by line
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        value = "\n".join(value)
    if isinstance(value, str):
        return value.strip()
    # neither text nor number: as if the field were empty
    if isinstance(value, dict | list | bool):
        return ""
    return str(value)


def _read_evidences(fields: Mapping[str, object]) -> tuple[ReferenceEvidence, ...] | None:
    value: object = next((fields[name] for name in EVIDENCE_FIELDS if fields.get(name)), [])
    if isinstance(value, str):  # as a cell of CSV has it
        try:
            value = parse_json(value)
        except ValueError:
            return None

    if not isinstance(value, list) or not all(
        isinstance(item, dict) and item.get("quote") for item in value
    ):
        return None

    return tuple(
        ReferenceEvidence(url=_get_text(item, ["url"]), quote=_get_text(item, ["quote"]))
        for item in value
    )


def _read_sources(fields: Mapping[str, object], options: ReadOptions) -> tuple[Source, ...]:
    """Return the documents that a row's answer was written with."""
    named = options.sources_field
    sources, _ = split_sources_from_row_fields({"sources": fields.get(named)} if named else fields)
    return sources


def _read_grade(row: LogRow, names: Sequence[str]) -> float | BadRow | None:
    # zero is a grade: only None and an empty cell are none
    value = next(
        (row.fields[name] for name in names if row.fields.get(name) not in (None, "")),
        None,
    )
    if value is None:
        return None

    try:
        # true and false would pass as 1 and 0
        if isinstance(value, bool):
            raise ValueError
        number = float(value)
    except (TypeError, ValueError):
        return BadRow(
            row.source,
            row.line,
            f"no grade: {str(value)[:40]!r}",
            "write a number",
        )

    # NaN and infinity are numbers, and no grades
    if abs(number) < float("inf"):
        return number
    return BadRow(row.source, row.line, "no grade", "write a number")


def _check_rows(
    sources: Sequence[str],
    usable: int,
    bad: Sequence[BadRow],
    most: int,
) -> None:
    if len(bad) > most:
        # counted by cause, listed up to a few
        every = Counter(row.reason for row in bad)
        listed = "; ".join(str(row) for row in islice(bad, MAX_BAD_ROWS_LISTED))
        what = (
            f"{format_count(len(bad), 'bad row')} ({format_count(len(every), 'cause')}): {listed}"
        )
        # more bad rows may be allowed only if others are usable
        hint, option = (
            ("correct them, or allow some", {"max_bad": len(bad)})
            if usable
            else ("correct them", {})
        )
        raise BadInput(what, hint=hint, option=option)

    if not usable:
        raise BadInput(
            "nothing in it could be used",
            where=", ".join(sources),
            hint="name its fields as `pollex grade --help` says",
        )
