"""Whether a log that nobody knows can be read in one way alone, so that nobody needs to be asked.

A reading is certain where names say what the columns and the speakers are, the values of the label
are words or a scale that everybody knows, every row with words is a turn, the conversations look
as conversations do, and no other reading holds. In any other case it is proposed.
"""

from __future__ import annotations

from collections.abc import Sequence

from pollex.conversations.conversation import Label
from pollex.conversations.logs import Logs
from pollex.formats.columns import Column, list_columns
from pollex.formats.conservation import ROW_OUTCOME_LEFT_OUT_BY_USER
from pollex.formats.feedback import is_judged_by_machine
from pollex.formats.fields import ReadOptions
from pollex.formats.inference import (
    Reading,
    ReadingCandidate,
    SampledRows,
    find_role_by_name,
)
from pollex.formats.label_columns import (
    estimate_label_likelihood,
    infer_thumb_sides_of_column_values,
    is_label_column_name,
    is_rater_column_name,
    rank_label_columns,
)
from pollex.formats.labels import (
    MAX_NPS_RATING,
    infer_thumb_side,
    is_said_plainly,
    is_usual_thumb,
    normalize_number,
)
from pollex.formats.log_shapes.transcripts import is_transcript
from pollex.formats.mapping import ANY_OTHER_ROLE, WHOLE_FILE_COLUMN
from pollex.formats.names import is_named_as_part, split_name_words
from pollex.formats.structure import MIN_CONVERSATIONS_TO_REPORT_STRUCTURE, LogStructure

MIN_CERTAIN_SCORE = 0.9
"""The score from which a reading may be certain."""
MAX_RIVAL_DISTANCE = 0.25
"""How much likelier than others a reading is at least."""
SURE_LABEL_LIKELIHOOD = 1.0
SCALE_NAME_WORDS = frozenset(("stars", "star", "rating", "ratings", "csat", "nps"))
"""Words in names of numbers of which more is better, in every country."""
SCALE_HIGHEST_RATING = 5
WEAK_LABEL_NAME_WORDS = frozenset(
    """success successful ok flag flags resolved solved resolution outcome mood emoji smiley esito risolto
    resuelto resolu opgelost geloest positive helped success""".split()  # noqa: SIM905
)
"""Words in names of columns that may say what a program found out, and no person."""
PARTS_OF_WORDS = ("messages", "role", "text", "user", "assistant")


def is_certain(
    reading: Reading,
    sample_readings: Sequence[Reading],
    rows: SampledRows,
    options: ReadOptions,
) -> bool:
    """Return whether the log can be read in this way alone.

    Args:
        reading: Of the whole log.
        sample_readings: All readings of the first rows, of other candidates, too.
        rows: The first ones.
        options: As the user gave them.
    """
    candidate = reading.candidate
    columns = list_columns(rows)
    return (
        reading.holds
        and reading.score >= MIN_CERTAIN_SCORE
        and candidate.doubtful is None
        and "thumbs" not in candidate.labels
        and _are_roles_named(candidate, columns, options)
        and _is_conversation_named(candidate)
        and is_read_whole(reading.logs)
        and _is_label_certain(reading, columns, options)
        and _are_all_words_read(candidate, sample_readings, columns)
        and not _has_rival(candidate, sample_readings)
    )


def is_read_whole(logs: Logs) -> bool:
    """Return whether nothing of a log is lacking or out of the ordinary."""
    structure = LogStructure()
    for conversation in logs:
        structure.look_at(conversation)

    whole = not (logs.bad_rows or logs.duplicates or logs.overruled)
    return (
        whole and len(logs) >= MIN_CONVERSATIONS_TO_REPORT_STRUCTURE and not any(structure.faults)
    )


def _are_roles_named(
    candidate: ReadingCandidate, columns: Sequence[Column], options: ReadOptions
) -> bool:
    """Return whether each name of a speaker says itself whose turns it means, or all of one side do."""
    unnamed_sides = set()
    for side, name in candidate.roles:
        is_named = (side, name) in options.roles or find_role_by_name(name) == side
        if name == ANY_OTHER_ROLE or not is_named:
            unnamed_sides.add(side)

    if not unnamed_sides:
        return True
    if unnamed_sides not in ({"user"}, {"assistant"}):
        return False

    # people with names of their own, where each name of the other side is known, as `Support` is
    listed = candidate.columns.get("messages")
    path = candidate.columns.get("role", "")
    role = next((column for column in columns if column.path in (path, f"{listed}[].{path}")), None)
    if role is None or role.sparse:
        return False
    known_sides = {find_role_by_name(word) for word in role.words}
    return known_sides <= {"user", "assistant", None} - unnamed_sides


def _is_conversation_named(candidate: ReadingCandidate) -> bool:
    """Return whether rows are conversations by themselves, or a column is named as theirs."""
    path = candidate.columns.get("conversation")
    if not candidate.columns:
        return True  # rows of a known shape
    if "parent" in candidate.columns or path == WHOLE_FILE_COLUMN:
        return False
    if "messages" in candidate.columns or "*" in candidate.columns.get("user", ""):
        return True
    if path is None:
        return "user" in candidate.columns
    return is_named_as_part(path, "conversation")


def _is_label_certain(reading: Reading, columns: Sequence[Column], options: ReadOptions) -> bool:
    """Return whether there is one label, whose values mean what they mean everywhere; none is needed to score."""
    candidate = reading.candidate
    path = candidate.columns.get("label") or candidate.labels.get("label_field")
    counts = reading.logs.counts
    both = bool(counts[Label.POSITIVE] and counts[Label.NEGATIVE])
    if path is None or path in (options.label_field, dict(options.columns).get("label")):
        return both or not options.labels_needed or _can_no_column_be_label(candidate, columns)
    if not both and options.labels_needed:
        return False

    column = next((column for column in columns if column.path == path), None)
    if column is None or not are_values_known(column):
        return False

    # another column that may as well be the label leaves a doubt
    used_paths = {path, *candidate.columns.values()}
    others = [other for other in columns if other.path not in used_paths]
    return all(likelihood < SURE_LABEL_LIKELIHOOD for _, likelihood in rank_label_columns(others))


def _can_no_column_be_label(candidate: ReadingCandidate, columns: Sequence[Column]) -> bool:
    """Return whether all columns are words, times and names of conversations, as those of talks in text files are."""
    if candidate.columns:
        return False

    parts = ("id", "conversation", "time")
    return all(
        any(is_named_as_part(column.path, part) for part in parts)
        or all(map(is_transcript, column.texts))
        for column in columns
    )


def find_certain_label(rows: SampledRows) -> ReadingCandidate | None:
    """Return the column of rows of a known shape that is certainly the label; None if none is, or another may be."""
    columns = [column for column in list_columns(rows) if "[]" not in column.path]
    likely = []
    for column, likelihood in rank_label_columns(columns):
        if likelihood >= SURE_LABEL_LIKELIHOOD:
            likely.append(column)

    # several raters are one label, and each of them is none
    raters = [column for column in likely if column.path.endswith("*")]
    if raters:
        likely = [column for column in likely if not is_rater_column_name(column.path)] or raters

    if len(likely) != 1 or is_judged_by_machine(likely[0].path):
        return None
    # numbers of a tool's own shape are told, and taken by whoever knows them
    sides = infer_thumb_sides_of_column_values(likely[0])
    if any(map(normalize_number, likely[0].words)):
        return None
    is_named = is_label_column_name(likely[0].path) or bool(raters)
    if sides is None or not is_named or not are_values_known(likely[0]):
        return None
    return ReadingCandidate({}, (), {"label_field": likely[0].path, **sides})


def are_values_known(column: Column) -> bool:
    """Return whether everybody reads the values of a label in the same way."""
    words = column.words
    if not WEAK_LABEL_NAME_WORDS.isdisjoint(split_name_words(column.path)):
        return False
    named = is_label_column_name(column.path)
    if not any(map(normalize_number, words)):
        sides = [infer_thumb_side(word) for word in words]
        known = None not in sides and all(map(is_said_plainly, words))
        return known and estimate_label_likelihood(column) >= SURE_LABEL_LIKELIHOOD

    # numbers: thumbs under a name that says so, or a usual scale of which more is better
    if all(map(is_usual_thumb, words)):
        return named
    numbers = []
    for word in words:
        numbers.append(float(normalize_number(word) or "nan"))

    whole_numbers = all(number.is_integer() for number in numbers)
    name_words = {*split_name_words(column.path)}
    highest = MAX_NPS_RATING if "nps" in name_words else SCALE_HIGHEST_RATING
    return (
        bool(SCALE_NAME_WORDS & name_words)
        and whole_numbers
        and min(numbers) >= 0
        and max(numbers) == highest
    )


def _are_all_words_read(
    candidate: ReadingCandidate,
    sample_readings: Sequence[Reading],
    columns: Sequence[Column],
) -> bool:
    """Return whether each text of the first rows is a turn."""
    sampled = next((other for other in sample_readings if other.candidate is candidate), None)
    if sampled is None:
        return True
    # rows with lists of turns, and those of a known shape: none is left out
    if "messages" in candidate.columns or not candidate.columns:
        left_out = 0
        for outcomes in sampled.logs.account.rows.values():
            left_out += outcomes.get(ROW_OUTCOME_LEFT_OUT_BY_USER, 0)
        return not left_out
    if "*" in candidate.columns.get("user", ""):
        return True

    # rows that are turns or exchanges: as many turns as texts
    paths = {candidate.columns.get(part) for part in ("text", "user", "assistant")}
    texts = 0
    for column in columns:
        if column.path in paths:
            texts += column.filled
    turns = sum(len(conversation.turns) for conversation in sampled.logs)
    return texts == turns


def _has_rival(candidate: ReadingCandidate, sample_readings: Sequence[Reading]) -> bool:
    """Return whether another reading of the first rows holds that is about as likely, and isn't the same."""
    sampled = next((other for other in sample_readings if other.candidate is candidate), None)
    if sampled is None:
        return False

    rank = sampled.score + candidate.prior
    words = _get_word_columns(candidate)
    talks = _list_talks(sampled)
    for other in sample_readings:
        if not other.holds or other is sampled:
            continue
        # other columns of the same words are named, or no rivals of those that are
        if _is_unnamed_role(other.candidate, candidate):
            continue
        if _get_word_columns(other.candidate) == words:
            path = other.candidate.columns.get("conversation")
            if path is None or not is_named_as_part(path, "conversation"):
                continue
            is_near = path != candidate.columns.get("conversation")
        else:
            is_near = other.score + other.candidate.prior > rank - MAX_RIVAL_DISTANCE
        if is_near and _list_talks(other) != talks:
            return True

    return False


def _is_unnamed_role(other: ReadingCandidate, candidate: ReadingCandidate) -> bool:
    """Return whether only who speaks is told otherwise, by a column that is not named so, as `to` beside `from`."""
    if "role" not in other.columns or other.columns.get("text") != candidate.columns.get("text"):
        return False
    path = candidate.columns.get("role", "")
    return is_named_as_part(path, "role") and not is_named_as_part(other.columns["role"], "role")


def _get_word_columns(candidate: ReadingCandidate) -> list[str | None]:
    return [candidate.columns.get(part) for part in PARTS_OF_WORDS]


def _list_talks(reading: Reading) -> frozenset[tuple[tuple[str, str], ...]]:
    """Return who says what in each conversation."""
    talks = set()
    for conversation in reading.logs:
        talks.add(tuple((turn.role, turn.content) for turn in conversation.turns))
    return frozenset(talks)
