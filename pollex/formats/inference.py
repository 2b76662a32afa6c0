"""How an unknown log may be read: candidates are read, and only one that looks like conversations is proposed.

A candidate says where the conversation, the role, the text and the label stand. It is scored by
what the log looks like when it is read so: whose turns follow whose, how many have no words, how
often texts repeat.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, pairwise, product
from statistics import median

from pollex.conversations.conversation import Conversation, Turn
from pollex.conversations.logs import Logs
from pollex.errors import BadInput, PollexError
from pollex.formats.columns import Column, ListOfTurns, find_lists_of_turns, list_columns
from pollex.formats.comments import may_hold_comments
from pollex.formats.conservation import ROW_OUTCOME_LEFT_OUT_BY_USER
from pollex.formats.feedback import COMMENT_FIELD_NAMES, is_field_named_like_feedback
from pollex.formats.fields import (
    CONVERSATION_ID_NAMES,
    LABEL_FIELD_NAMES,
    RATING_FIELD_NAMES,
    ReadOptions,
)
from pollex.formats.label_columns import (
    NON_LABEL_NAME_WORDS,
    are_values_plain_thumbs,
    estimate_label_likelihood,
    infer_thumb_sides_of_column_values,
    is_about_user_turns,
    is_ambiguous_label_column,
    is_label_column_name,
    rank_label_columns,
)
from pollex.formats.labels import is_usual_thumb, normalize_number
from pollex.formats.log_shapes.choices import CHOSEN_FIELD_NAMES
from pollex.formats.log_shapes.transcripts import is_transcript, parse_transcript
from pollex.formats.log_shapes.turns import (
    ROLE_BY_SPELLING,
    ROLE_FIELD_NAMES,
    TEXT_FIELD_NAMES,
    parse_role,
)
from pollex.formats.mapping import (
    ANY_OTHER_ROLE,
    NO_TURN_ROLE,
    WHOLE_FILE_COLUMN,
    find_first_row_id_of_conversations,
    format_role_word,
)
from pollex.formats.names import (
    ROLE_BY_SPEAKER_WORD,
    is_name_of_service,
    is_named_as_comment,
    is_named_as_part,
    remove_accents,
    split_name_words,
)
from pollex.formats.opposites import find_opposite_thumb_columns
from pollex.formats.paths import (
    flatten_listed_values,
    parse_value_if_json_text,
    split_path,
)
from pollex.text import JsonDict, JsonObject

MAX_LOG_READING_CANDIDATES = 48
"""Candidates that are read."""
MAX_ROLES_LISTED = 12
"""Names of roles that a proposal lists."""
MAX_WORDS_OF_SPEAKER_NAME = 6
MAX_SPEAKER_NAMES = 40
"""Names that a column of roles has at most."""
SURE_LABEL_LIKELIHOOD = 0.9
"""The likelihood above which a column is rather the label than one that is named so, and can't be read."""
MIN_SPEAKERS_FOR_WILDCARD = 5
"""Names from which on all but one side are told by `*`."""
MAX_TURNS_OF_SINGLE_TALK = 60
"""Turns that the only conversation of a log has at most."""
MAX_TURNS_OF_SAMPLED_FILE = 600
"""Turns that the only conversation of a sample of several files has at most."""
MIN_SCORE_OF_ACCEPTED_READING = 0.65
"""The score from which a reading holds."""
MAX_SHARE_OF_NON_TURN_ROWS = 0.7
"""The share of rows that are no turns in a log of what a tool did, too."""
MAX_DISTINCT_VALUES_OF_NON_TEXT_COLUMN = 5
"""Different values of a column that is no text, since each of them is short."""
MAX_SHORT_VALUE_CHARS = 25
"""Characters of the longest of these values."""
MAX_BLOCK_START_SHARE = 0.6
"""Share of the rows that begin a block at most, where a cell above holds for those below."""
UNSPACED_SCRIPT_PATTERN = re.compile("[\u3040-\u30ff\u3400-\u9fff\u0e00-\u0e7f\uac00-\ud7af]")
"""Letters of scripts that put no space between words, or few."""
MAX_UNSPACED_WORD_CHARS = 6
_NUMBER_PATTERN = re.compile(r"\d+")
MAX_DISTINCT_TALK_SHARE = 0.6
"""Share of the talks that differ at most, where several people rated the same ones."""
MIN_ANSWERED_ROWS = 3
"""Rows that others answer, where a column names what a row answers."""
ROLE_BY_EXCHANGE_KEY = {
    **dict.fromkeys(("0", "u", "q", "h"), "user"),
    **dict.fromkeys(("1", "a", "b"), "assistant"),
}
"""Sides of the keys of an exchange: of a pair, and single letters."""
ROLE_BY_LETTER = {
    **dict.fromkeys("vcuk", "user"),
    **dict.fromkeys("abo", "assistant"),
    "s": "system",
}
"""Sides of single letters in place of names: visitor, customer, user; agent, bot, operator."""
CONVERSATION_LIKELIHOOD_BY_REPLY_CHAIN = 0.5
"""The likelihood that conversations are told so; a column that names them goes before it."""
MIN_GREETING_SHARE = 0.3
"""Share of the talks from which on words that open them are the assistant's greeting."""
MIN_TALKS_OPENED_BY_GREETING = 3
MIN_GREETING_WORDS = 3
SCORE_PENALTY_FOR_GUESSED_ROLES = 0.1
"""How much less a reading is likely whose names of roles say nothing of either side."""
MIN_ASSISTANT_PRESENCE = 0.8
"""Share of conversations that one who answers all users is in."""
COLUMN_NAME_WORDS_FOR_PEOPLE = frozenset(
    "name email mail person people phone nome nom nombre naam namn".split()  # noqa: SIM905
)
NON_TURN_ROLE_WORDS = frozenset(
    "event trace typing status queue-operation summary info log notification endofconversation".split()  # noqa: SIM905
)
"""Names in place of roles by rows that are no turns."""

SampledRows = Sequence[JsonObject]
RowSampleReader = Callable[[SampledRows, ReadOptions], Logs]


@dataclass(frozen=True)
class ReadingCandidate:
    """A way to read a log.

    Attributes:
        columns: Which column is what.
        roles: Whose turns the names of roles mean.
        labels: `positive`, `negative` and so on, where values need them.
        prior: How far names of columns speak for it.
        doubtful: The column that may be the label, where nobody can tell what its values mean.
    """

    columns: dict[str, str]
    roles: tuple[tuple[str, str], ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    prior: float = 0.0
    doubtful: Column | None = None

    def options(self, options: ReadOptions) -> ReadOptions:
        """Return how the log is read; what the user said stays."""
        labels: JsonDict = {}
        for name, value in self.labels.items():
            if getattr(options, name) is None:
                labels[name] = value

        columns = tuple(self.columns.items()) or options.columns
        if self.doubtful is not None:  # what its values mean is asked for later
            labels["labels_needed"] = False

        return replace(
            options,
            columns=columns,
            roles=self.roles or options.roles,
            **labels,
        )


@dataclass(frozen=True)
class Reading:
    """What comes out when a candidate is read.

    Attributes:
        score: From 0 to 1, how much it looks like conversations.
        faults: Why it doesn't hold; empty where it does.
        certain: Whether the log can be read in no other way.
    """

    candidate: ReadingCandidate
    logs: Logs
    score: float
    faults: tuple[str, ...] = ()
    certain: bool = False

    @property
    def holds(self) -> bool:
        """Whether it may be proposed."""
        return not self.faults and self.score >= MIN_SCORE_OF_ACCEPTED_READING

    @property
    def first_talks(self) -> tuple[Conversation, ...]:
        """The first conversations, the one that is shown first."""
        return tuple(islice(self.logs, 3))


def rank_ways_to_read_rows(
    rows: SampledRows, options: ReadOptions, read: RowSampleReader
) -> list[Reading]:
    """Return how rows can be read, the best first; those that can't be read at all are left out."""
    ranked = []
    for candidate in islice(
        iterate_log_reading_candidates(rows, options), MAX_LOG_READING_CANDIDATES
    ):
        try:
            logs = read(rows, candidate.options(options))
        except PollexError:
            continue

        ranked.append(score_reading_as_conversations(candidate, logs, len(rows)))

    # readings without faults first; names of columns decide between scores that are close
    return sorted(
        ranked,
        key=lambda reading: (not reading.faults, reading.score + reading.candidate.prior),
        reverse=True,
    )


def score_reading_as_conversations(
    candidate: ReadingCandidate,
    logs: Logs,
    rows: int,
    *,
    whole: bool = False,
) -> Reading:
    """Return how much a reading looks like conversations.

    Args:
        whole: Whether all of the log was read, and no sample of it.
    """
    talks = _list_spoken_turns(logs)
    spoken = [talk for talk in talks if talk]
    if not spoken:
        return Reading(candidate, logs, 0.0, ("nobody says anything",))

    measures = _measure_talks(spoken, len(talks))
    faults = [
        *_iterate_talk_faults(measures),
        *_iterate_log_faults(candidate, logs, talks, rows, whole=whole),
    ]
    # conversations of 2 to 200 turns are usual
    fits = 1.0 if 2 <= median(len(talk) for talk in spoken) <= 200 else 0.3
    score = (
        0.25 * measures.two_sided
        + 0.25 * measures.alternating
        + 0.2 * measures.sentences
        + 0.1 * measures.filled
        + 0.1 * measures.begun
        + 0.1 * fits
    )
    return Reading(candidate, logs, score, tuple(faults))


@dataclass(frozen=True)
class TalkMeasures:
    """What the talks of a reading look like: shares from 0 to 1, and what repeats.

    Attributes:
        two_sided: Of all talks, those in which both sides speak.
        alternating: Of neighbouring turns, those of different sides, or after a call of a tool.
        begun: Of talks in which somebody speaks, those that begin as talks do.
        filled: Of turns, those with words or calls.
        texts: How many turns have words.
        sentences: Of these texts, those that somebody may have said.
        several_words: Of these texts, those of more than a word.
        distinct: Different texts among them.
        repeating_roles: Sides that say the same again and again.
    """

    two_sided: float
    alternating: float
    begun: float
    filled: float
    texts: int
    sentences: float
    several_words: float
    distinct: float
    repeating_roles: tuple[str, ...]


def _list_spoken_turns(logs: Logs) -> list[list[Turn]]:
    """Return the turns of both sides, talk by talk: others don't show whose turn follows whose."""
    talks = []
    for conversation in logs:
        spoken_turns = []
        for turn in conversation.turns:
            if turn.role in ("user", "assistant"):
                spoken_turns.append(turn)
        talks.append(spoken_turns)

    return talks


def _measure_talks(spoken: Sequence[Sequence[Turn]], all_talks: int) -> TalkMeasures:
    """Measure talks in which somebody speaks.

    Args:
        all_talks: How many there are with those in which nobody does.
    """
    turns: list[Turn] = []
    pairs: list[tuple[Turn, Turn]] = []
    two_sided_talks = 0
    for talk in spoken:
        turns.extend(talk)
        pairs.extend(pairwise(talk))
        two_sided_talks += len({turn.role for turn in talk}) == 2

    # after a call of a tool the same side may go on
    alternating = sum(a.role != b.role or bool(a.calls) for a, b in pairs)
    texts = [turn.content for turn in turns if turn.content.strip()]
    several_words = sum(" " in text.strip() or not text.isascii() for text in texts)
    return TalkMeasures(
        two_sided=two_sided_talks / all_talks,
        alternating=alternating / len(pairs) if pairs else 0.0,
        begun=_measure_share_of_talks_begun_plausibly(spoken),
        filled=sum(bool(turn.content.strip() or turn.calls) for turn in turns) / len(turns),
        texts=len(texts),
        sentences=sum(looks_like_spoken_text(text) for text in texts) / max(len(texts), 1),
        several_words=several_words / max(len(texts), 1),
        distinct=len(set(texts)) / max(len(texts), 1),
        repeating_roles=tuple(
            role for role in ("user", "assistant") if _repeats_few_words(turns, role)
        ),
    )


def _iterate_talk_faults(measures: TalkMeasures) -> Iterator[str]:
    """Yield why talks don't look like conversations."""
    if measures.two_sided < 0.6:
        yield "most conversations have one side alone"
    if measures.alternating < 0.5:
        yield "turns of one side follow each other"
    if measures.filled < 0.8:
        yield "many turns have no words"
    if measures.sentences < 0.4:
        yield "what would be the words are no sentences"
    if measures.several_words < 0.3 and measures.distinct < 0.3:
        yield "the words are single ones"
    for role in measures.repeating_roles:
        yield f"the {role} says the same again and again"
    if measures.texts >= 10 and measures.distinct < 0.1:
        yield "the same words come again and again"


def _iterate_log_faults(
    candidate: ReadingCandidate,
    logs: Logs,
    talks: Sequence[Sequence[Turn]],
    rows: int,
    *,
    whole: bool,
) -> Iterator[str]:
    """Yield why the log as a whole doesn't look as if it was read right."""
    # the rows that a sample has of several files are one conversation, where each file is one
    of_files = candidate.columns.get("conversation") == WHOLE_FILE_COLUMN
    if of_files and not whole:
        longest = MAX_TURNS_OF_SAMPLED_FILE
    else:
        longest = MAX_TURNS_OF_SINGLE_TALK

    if len(talks) == 1 and len(talks[0]) > longest:
        yield "all rows are one conversation"
    if _measure_left_out_share(logs) > MAX_SHARE_OF_NON_TURN_ROWS:
        yield "most rows are no turns"
    if len(logs.bad_rows) > 0.02 * rows:
        yield "rows can't be read"


def _measure_share_of_talks_begun_plausibly(talks: Sequence[Sequence[Turn]]) -> float:
    """Return the share of talks that a user begins, or the assistant with words that open many of them."""
    openings = Counter(talk[0].content.strip() for talk in talks)
    begun = 0
    for talk in talks:
        times = openings[talk[0].content.strip()]
        several_words = len(talk[0].content.split()) >= MIN_GREETING_WORDS
        greets = several_words and times >= max(
            MIN_TALKS_OPENED_BY_GREETING, MIN_GREETING_SHARE * len(talks)
        )
        begun += greets != (talk[0].role == "user")

    return begun / len(talks)


def _repeats_few_words(turns: Sequence[Turn], role: str) -> bool:
    """Return whether one side has a few single words alone, as names and kinds are."""
    texts = []
    for turn in turns:
        if turn.role == role:
            texts.append(turn.content.strip())

    different = set(texts)
    return (
        len(texts) >= 6
        and len(different) <= 0.3 * len(texts)
        and not any(map(_has_several_words, different))
    )


def _has_several_words(text: str) -> bool:
    """Return whether a text is more than a word, also in a script that puts no space between them."""
    return " " in text or (
        bool(UNSPACED_SCRIPT_PATTERN.search(text)) and len(text) > MAX_UNSPACED_WORD_CHARS
    )


def _measure_left_out_share(logs: Logs) -> float:
    """Return the share of rows that are no turns."""
    became = Counter[str]()
    for rows in logs.account.rows.values():
        became.update(rows)
    return became[ROW_OUTCOME_LEFT_OUT_BY_USER] / max(became.total(), 1)


def looks_like_spoken_text(text: str) -> bool:
    """Return whether a text may be what somebody said: words with spaces, no JSON, no date, no key."""
    start = text.strip()[:200]
    if not start or start[0] in "{[" or re.fullmatch(r"[\d\s:./TZ+-]+(?:UTC|[AP]M)?", start):
        return False
    if UNSPACED_SCRIPT_PATTERN.search(start):
        return len(start) > 1

    # a single word may be said, too; letters are at least half of the signs
    letters = sum(sign.isalpha() for sign in start)
    return (" " in start or letters == len(start.strip("!?.,…"))) and letters * 2 >= len(
        start.replace(" ", "")
    )


def iterate_log_reading_candidates(
    rows: SampledRows, options: ReadOptions
) -> Iterator[ReadingCandidate]:
    """Yield ways to read rows, the likeliest first."""
    columns = list_columns(rows)
    named_columns = dict(options.columns)
    proposals = [
        *_iterate_list_candidates(rows, columns, named_columns, options),
        *_iterate_turn_table_candidates(
            _list_columns_outside_lists(_list_columns_of_rows_with_words(rows, columns)),
            columns,
            named_columns,
            options,
        ),
        *_iterate_exchange_candidates(
            _list_columns_outside_lists(columns), columns, named_columns, options
        ),
        *_iterate_transcript_candidates(columns, named_columns, options),
        *_iterate_wide_table_candidates(columns, named_columns, options),
    ]
    yield from sorted(proposals, key=lambda candidate: candidate.prior, reverse=True)


def _list_columns_of_rows_with_words(
    rows: SampledRows, columns: Sequence[Column]
) -> Sequence[Column]:
    """Return the columns of the rows in which something is said: events and other tables may stand between them."""
    # the likeliest words, rather those of a column that many rows have filled
    says = max(
        columns,
        key=lambda column: estimate_text_likelihood(column) * (len(rows) + column.filled),
        default=None,
    )
    if says is None or says.filled == len(rows):
        return columns

    rows_with_words = []
    for row, words in zip(rows, says.values, strict=True):
        if words not in (None, "", [], {}):
            rows_with_words.append(row)
    return list_columns(rows_with_words)


def _iterate_turn_table_candidates(
    columns: Sequence[Column],
    all_columns: Sequence[Column],
    named_columns: Mapping[str, str],
    options: ReadOptions,
) -> Iterator[ReadingCandidate]:
    """Yield ways to read rows that are turns: conversation, role and text.

    Args:
        all_columns: Those of rows without words, too, which may have the label.
    """
    roles = _find_likeliest_columns(columns, named_columns, "role", estimate_role_likelihood, 5)
    texts = _find_likeliest_columns(columns, named_columns, "text", estimate_text_likelihood, 3)
    owners = _find_conversation_columns(columns, named_columns)
    ordering = _find_ordering_columns(columns, named_columns)
    # every plausible triple of conversation, role and text is a candidate
    part_texts = _list_texts_of_one_side_or_place(columns)
    for id_, role, text in product(owners.likelihoods, roles, texts):
        # what stands in columns beside each other is no turn a row
        if text.path in part_texts and "text" not in named_columns:
            continue
        # a column is one part only, and who speaks is no name of the talk
        if len({id_.path, role.path, text.path}) < 3 or _is_constant_within_talks(role, id_):
            continue

        parts = {**owners.get_parts(id_), "role": role.path, "text": text.path}
        for part, column in ordering.items():
            if column.path not in parts.values():
                parts[part] = column.path
                break

        role_guesses = _iterate_role_guesses(
            role,
            _count_first_speakers(role, id_),
            options,
            _measure_presence_in_talks(role, id_),
            presence=role.sparse,
            answering=_find_names_speaking_after_user(role, id_, text),
        )
        likelihood = (owners.likelihoods[id_] + roles[role] + texts[text]) / 10
        for role_pairs in role_guesses:
            penalty = SCORE_PENALTY_FOR_GUESSED_ROLES * _are_roles_guessed(role_pairs)
            yield _add_label_and_comment(
                all_columns,
                parts,
                role_pairs,
                likelihood - penalty,
                options,
                named_columns,
                without=_list_user_guess_columns(columns, id_, role, role_pairs),
            )


def _list_texts_of_one_side_or_place(columns: Sequence[Column]) -> frozenset[str]:
    """Return the columns of words that have a part of the talk alone, since others beside them have the rest.

    These are words of one side where another column has the other side's, and numbered ones, as `Message 1 Text`.
    """
    side_of_path = {}
    numbered: dict[str, list[str]] = {}
    for column in columns:
        if not estimate_text_likelihood(column):
            continue
        if side := _find_side_of_path(column.path):
            side_of_path[column.path] = side
        if _NUMBER_PATTERN.search(column.path):
            numbered.setdefault(_NUMBER_PATTERN.sub("*", column.path), []).append(column.path)

    paths = set[str]()
    if len({*side_of_path.values()}) > 1:
        paths |= side_of_path.keys()
    for paths_of_name in numbered.values():
        if len(paths_of_name) > 1:
            paths |= {*paths_of_name}
    return frozenset(paths)


@dataclass(frozen=True)
class ConversationColumns:
    """The columns that may say which conversation a row belongs to.

    Attributes:
        likelihoods: How likely each does.
        filled_down: By path, columns whose cells hold for the rows below, filled there.
        replies: Of rows that name what they answer, their columns of the parent and the id.
    """

    likelihoods: dict[Column, float]
    filled_down: dict[str, Column]
    replies: dict[Column, dict[str, str]]

    def get_parts(self, column: Column) -> dict[str, str]:
        """Return the parts of a candidate whose conversation a column names."""
        parts = dict(self.replies.get(column, {"conversation": column.path}))
        if self.filled_down.get(column.path) is column:
            parts["fill"] = column.path
        return parts


def _find_conversation_columns(
    columns: Sequence[Column],
    named_columns: Mapping[str, str],
) -> ConversationColumns:
    likelihoods = _find_likeliest_columns(
        columns, named_columns, "conversation", estimate_conversation_id_likelihood, 4
    )
    # a cell that holds for the rows below it may name the conversation
    filled_down = {
        column.path: column for column in map(_fill_down_column, columns) if column is not None
    }
    if "conversation" in named_columns:
        return ConversationColumns(likelihoods, filled_down, {})

    likelihoods |= _find_likeliest_columns(
        list(filled_down.values()),
        named_columns,
        "conversation",
        estimate_conversation_id_likelihood,
        1,
    )
    # rows may name what they answer
    replies = _find_reply_columns(columns)
    likelihoods |= dict.fromkeys(replies, CONVERSATION_LIKELIHOOD_BY_REPLY_CHAIN)
    # each file may be one, where nothing better is found
    if columns:
        likelihoods[Column(WHOLE_FILE_COLUMN, [None] * len(columns[0].values))] = -1.0
    return ConversationColumns(likelihoods, filled_down, replies)


def _find_ordering_columns(
    columns: Sequence[Column],
    named_columns: Mapping[str, str],
) -> dict[str, Column]:
    """Return what may order the turns, by part: the time before the number of the turn."""
    estimates = {"time": estimate_time_likelihood, "turn": estimate_turn_number_likelihood}
    ordering = {}
    for part, estimate in estimates.items():
        likeliest = _find_likeliest_columns(columns, named_columns, part, estimate, 1)
        for column in likeliest:
            ordering[part] = column

    return ordering


def _are_roles_guessed(named: Sequence[tuple[str, str]]) -> bool:
    """Return whether no name of a role says itself whose turns it means."""
    names = [name for _, name in named if name != ANY_OTHER_ROLE]
    return bool(names) and not any(map(find_role_by_name, names))


def _find_names_speaking_after_user(role: Column, owner: Column, text: Column) -> frozenset[str]:
    """Return the names that speak next after a user, most times with words of their own."""
    after_user = Counter[str]()
    turns = Counter[str]()
    words: dict[str, set[str]] = {}
    latest: dict[str, str | None] = {}
    for id_, value, said in zip(owner.values, role.values, text.values, strict=True):
        name = format_role_word(value)
        after_user[name] += latest.get(str(id_)) == "user"
        turns[name] += 1
        words.setdefault(name, set()).add(str(said))
        latest[str(id_)] = find_role_by_name(name)

    answering = []
    for name, times in turns.items():
        if after_user[name] >= 0.5 * times and len(words[name]) >= 0.5 * times:
            answering.append(name)

    return frozenset(answering)


def _find_reply_columns(columns: Sequence[Column]) -> dict[Column, dict[str, str]]:
    """Return the conversations of rows that name what they answer, each with its columns of the parent and the id."""
    ids = [column for column in columns if column.unique]
    replies: dict[Column, dict[str, str]] = {}
    for parent in columns:
        # values by which rows name a parent; only some rows have one
        answered = {format_role_word(value) for value in parent.values} - {""}
        if len(answered) < MIN_ANSWERED_ROWS or not 0 < parent.filled < len(parent.values):
            continue
        for own in ids:
            names = {format_role_word(value) for value in own.values}
            if own is parent or len(answered & names) < MIN_ASSISTANT_PRESENCE * len(answered):
                continue
            # a row belongs to the conversation of the root of its chain
            rows = []
            for above, id_ in zip(parent.values, own.values, strict=True):
                rows.append({"parent": above, "id": id_})
            column = Column(own.path, find_first_row_id_of_conversations(rows, "parent", "id"))
            if estimate_conversation_id_likelihood(column):
                replies[column] = {"parent": parent.path, "id": own.path}
            break

    return replies


def _fill_down_column(column: Column) -> Column | None:
    """Return a column that is filled in the first row of each block alone, with the rest filled, too."""
    there = [value not in (None, "") for value in column.values]
    if not there or not there[0] or not 2 <= sum(there) <= MAX_BLOCK_START_SHARE * len(there):
        return None

    values = [value for value, filled in zip(column.values, there, strict=True) if filled]
    if len({*map(str, values)}) < len(values):  # a block has a name of its own
        return None

    latest: list[object] = []
    for value, filled in zip(column.values, there, strict=True):
        latest.append(value if filled else latest[-1])

    return Column(column.path, latest)


def _list_user_guess_columns(
    columns: Sequence[Column],
    owner: Column,
    role: Column,
    named: Sequence[tuple[str, str]],
) -> list[str]:
    """Return the columns that say something of each turn of users, which are no labels."""
    # names of roles as the candidate reads them, else by usual spellings
    roles = {remove_accents(name): side for side, name in named}
    sides = []
    for word in map(format_role_word, role.values):
        sides.append(roles.get(remove_accents(word)) or find_role_by_name(word))

    guesses: list[str] = []
    for column in columns:
        if estimate_label_likelihood(column) > 0 and is_about_user_turns(
            column, owner.values, sides
        ):
            guesses.append(column.path)

    return guesses


def _is_constant_within_talks(role: Column, owner: Column) -> bool:
    """Return whether a column says the same in all rows of most conversations, as no column of speakers does."""
    # filled for one side alone: a value for about every conversation names the talk
    if role.sparse:
        words = {*map(format_role_word, role.values)} - {""}
        owners = {*map(str, owner.values)}
        return len(words) > MIN_SPEAKERS_FOR_WILDCARD // 2 and len(words) >= 0.5 * len(owners)

    names: dict[str, set[str]] = {}
    for id_, value in zip(owner.values, role.values, strict=True):
        names.setdefault(str(id_), set()).add(format_role_word(value))

    return sum(len(spoken_names) > 1 for spoken_names in names.values()) < 0.3 * len(names)


def _list_columns_outside_lists(columns: Sequence[Column]) -> Sequence[Column]:
    """Return the columns of which a row has one value."""
    return [column for column in columns if "[]" not in column.path]


def _iterate_exchange_candidates(
    columns: Sequence[Column],
    all_columns: Sequence[Column],
    named_columns: Mapping[str, str],
    options: ReadOptions,
) -> Iterator[ReadingCandidate]:
    """Yield ways to read rows that are exchanges: what was asked, and what was answered."""
    questions = _find_likeliest_columns(
        columns,
        named_columns,
        "user",
        _make_side_likelihood("user"),
        3,
    )
    single = [column for column in columns if not _is_numbered_answer(column, columns)]
    # an answer may stand in parts, as `queryResult.responseMessages[].text.text`
    single += [_join_texts_of_lists(column) for column in all_columns if "[]" in column.path]
    answered = _find_likeliest_columns(
        single,
        named_columns,
        "assistant",
        _make_side_likelihood("assistant"),
        3,
    )
    owned_by = _find_likeliest_columns(
        columns,
        named_columns,
        "conversation",
        estimate_conversation_id_likelihood,
        2,
    )
    # rows may also be conversations of one exchange, without an owner
    owners = {
        "": 0.1,
        **{column.path: likelihood for column, likelihood in owned_by.items()},
    }
    time = next(
        iter(_find_likeliest_columns(columns, named_columns, "time", estimate_time_likelihood, 1)),
        None,
    )
    # every pair of a question and an answer, with each owner
    for question, asks in questions.items():
        for answer, other in answered.items():
            for owner, owned in owners.items():
                parts = {"user": question.path, "assistant": answer.path}
                if len({*parts.values(), owner}) < 3:
                    continue
                parts = {"conversation": owner, **parts} if owner else parts
                if owner and time is not None:
                    parts["time"] = time.path
                yield _add_label_and_comment(
                    all_columns,
                    parts,
                    (),
                    (asks + other + owned) / 10,
                    options,
                    named_columns,
                )


def _join_texts_of_lists(column: Column) -> Column:
    """Return a column inside a list with the texts of each row as one."""
    joined = []
    for value in column.values:
        texts = [text for text in flatten_listed_values(value) if isinstance(text, str)]
        joined.append("\n".join(texts) or None)
    return Column(column.path, joined)


def _iterate_wide_table_candidates(
    columns: Sequence[Column],
    named_columns: Mapping[str, str],
    options: ReadOptions,
) -> Iterator[ReadingCandidate]:
    """Yield ways to read rows with a column for each turn: `question_1`, `answer_1`, `question_2` and so on."""
    numbered = []
    for column in columns:
        if re.search(r"\d", column.path) and column.texts and "[]" not in column.path:
            numbered.append(column)

    # patterns such as `question_*` that several columns share
    names = Counter(re.sub(r"\d+", "*", column.path) for column in numbered)
    several = []
    for name, times in names.items():
        if times > 1 and name.count("*") == 1:
            several.append(name)

    # whose turns the columns of a pattern such as `question_*` are
    sides: dict[str, list[str]] = {"user": [], "assistant": []}
    for name in several:
        for side, paths in sides.items():
            if is_named_as_part(name, side) or find_role_by_name(name.replace("*", " ")) == side:
                paths.append(name)

    for user in sides["user"]:
        for assistant in sides["assistant"]:
            if user != assistant:
                parts = _find_whole_conversation_id(columns, named_columns) | {
                    "user": user,
                    "assistant": assistant,
                }
                yield _add_label_and_comment(
                    columns,
                    parts,
                    (),
                    0.3,
                    options,
                    named_columns,
                )

    yield from _iterate_wide_speaker_candidates(numbered, several, columns, named_columns, options)


def _iterate_wide_speaker_candidates(
    numbered: Sequence[Column],
    names: Sequence[str],
    columns: Sequence[Column],
    named_columns: Mapping[str, str],
    options: ReadOptions,
) -> Iterator[ReadingCandidate]:
    """Yield ways to read rows with two columns for each turn: `From 1`, `Text 1`, `From 2` and so on.

    Args:
        numbered: The columns with numbers.
        names: What they are called, with `*` in place of the number.
    """
    columns_by_name: dict[str, list[Column]] = {name: [] for name in names}
    for column in numbered:
        name = _NUMBER_PATTERN.sub("*", column.path)
        if name in columns_by_name:
            columns_by_name[name].append(column)

    together = {}
    for name, columns_of_name in columns_by_name.items():
        # rows of fewer turns have empty cells
        values = []
        for column in columns_of_name:
            values += [value for value in column.values if value not in (None, "")]
        together[name] = Column(name, values)

    for speakers, words in product(together, together):
        likely = estimate_role_likelihood(together[speakers])
        if speakers == words or not likely or not estimate_text_likelihood(together[words]):
            continue
        begins = columns_by_name[speakers][0]
        parts = _find_whole_conversation_id(columns, named_columns) | {
            "role": speakers,
            "text": words,
        }
        firsts = Counter(map(format_role_word, begins.values))
        for role_pairs in _iterate_role_guesses(together[speakers], firsts, options, {}):
            yield _add_label_and_comment(columns, parts, role_pairs, 0.3, options, named_columns)


def _is_numbered_answer(column: Column, columns: Sequence[Column]) -> bool:
    """Return whether a column is one of several answers to a question, by the number at its name's end."""
    stem = column.path.rstrip("0123456789")
    return (
        stem != column.path
        and sum(other.path.rstrip("0123456789") == stem for other in columns) > 1
    )


def _make_side_likelihood(side: str) -> Callable[[Column], float]:
    return lambda column: (
        estimate_text_likelihood(column) if _find_side_of_path(column.path) == side else 0.0
    )


def _find_side_of_path(path: str) -> str | None:
    """Return whose words a column has, by the last step of its path that says so: `queryResult.text`.

    A step may name the side, as `question` does, or who speaks, as `Customer said`.
    """
    for step in reversed(split_path(path)):
        for side in ("user", "assistant"):
            if is_named_as_part(step, side):
                return side
        if not is_named_as_comment(step) and not is_label_column_name(step):
            speaker = find_role_by_name(step)
            if speaker in ("user", "assistant"):
                return speaker
    return None


def _iterate_list_candidates(
    rows: SampledRows,
    columns: Sequence[Column],
    named_columns: Mapping[str, str],
    options: ReadOptions,
) -> Iterator[ReadingCandidate]:
    """Yield ways to read rows that have a list of turns."""
    for listed in find_lists_of_turns(rows):
        if named_columns.get("messages", listed.path) != listed.path:
            continue
        inner = listed.columns
        # what the user said of the columns inside the list
        inside = {}
        for part in ("role", "text"):
            if part in named_columns:
                inside[part] = named_columns[part]
        roles = _find_likeliest_columns(
            inner,
            inside,
            "role",
            estimate_role_likelihood,
            4,
        )
        texts = _find_likeliest_columns(
            inner,
            inside,
            "text",
            estimate_text_likelihood,
            3,
        )
        yield from _iterate_listed_exchange_candidates(columns, listed, named_columns, options)

        for role, speaks in roles.items():
            for text, says in texts.items():
                if role.path == text.path:
                    continue
                parts = _find_whole_conversation_id(columns, named_columns, words=listed.path) | {
                    "messages": listed.path
                }
                parts |= {"role": role.path, "text": text.path}
                firsts = _count_first_speakers_in_lists(listed, role)
                met = _measure_presence_in_lists(listed, role)
                names = _iterate_role_guesses(
                    role,
                    firsts,
                    options,
                    met,
                    presence=role.sparse,
                    answering=_find_names_speaking_after_user(role, listed.owner, text),
                )
                for named in names:
                    prior = (speaks + says + listed.likelihood) / 10 + 0.05
                    prior -= SCORE_PENALTY_FOR_GUESSED_ROLES * _are_roles_guessed(named)
                    yield _add_label_and_comment(
                        columns,
                        parts,
                        named,
                        prior,
                        options,
                        named_columns,
                        listed,
                    )


def _iterate_listed_exchange_candidates(
    columns: Sequence[Column],
    listed: ListOfTurns,
    named_columns: Mapping[str, str],
    options: ReadOptions,
) -> Iterator[ReadingCandidate]:
    """Yield ways to read lists whose items are exchanges: named so, or pairs of texts."""
    # the side of a column is told by a key at any depth, or by a single letter
    sides: dict[str, list[Column]] = {"user": [], "assistant": []}
    for column in listed.columns:
        for side, side_columns in sides.items():
            named = (
                any(is_named_as_part(step, side) for step in split_path(column.path))
                or ROLE_BY_EXCHANGE_KEY.get(column.path.casefold()) == side
            )
            if named and estimate_text_likelihood(column) > 0:
                side_columns.append(column)

    for question in sides["user"]:
        for answer in sides["assistant"]:
            if question.path != answer.path:
                parts = _find_whole_conversation_id(columns, named_columns, words=listed.path) | {
                    "messages": listed.path
                }
                parts |= {"user": question.path, "assistant": answer.path}
                yield _add_label_and_comment(
                    columns,
                    parts,
                    (),
                    0.15,
                    options,
                    named_columns,
                    listed,
                )


def _iterate_transcript_candidates(
    columns: Sequence[Column],
    named_columns: Mapping[str, str],
    options: ReadOptions,
) -> Iterator[ReadingCandidate]:
    """Yield ways to read rows that have a whole talk in a text, with names before colons."""
    for column in columns:
        texts = column.texts
        if not texts or sum(map(is_transcript, texts)) < 0.6 * len(texts):
            continue
        # who speaks, who begins, and in which share of the talks each name is met
        talks = [parse_transcript(text) for text in texts]
        names: Counter[str] = Counter()
        for turns in talks:
            for turn in turns:
                names[turn["role"]] += 1
        firsts: Counter[str] = Counter()
        for turns in talks:
            if turns:
                firsts[turns[0]["role"]] += 1
        owner = _find_whole_conversation_id(
            columns, named_columns, column.values, words=column.path
        )
        speakers = Column("", [name for name, _ in names.most_common(MAX_ROLES_LISTED)])
        met: Counter[str] = Counter()
        for turns in talks:
            for name in {turn["role"] for turn in turns}:
                met[name] += 1
        shares = {}
        for name, times in met.items():
            shares[name] = times / len(talks)
        for named in _iterate_role_guesses(speakers, firsts, options, shares):
            yield _add_label_and_comment(
                columns,
                owner | {"messages": column.path},
                named,
                0.3,
                options,
                named_columns,
            )


def _find_likeliest_columns(
    columns: Sequence[Column],
    named_columns: Mapping[str, str],
    part: str,
    likelihood: Callable[[Column], float],
    most: int,
) -> dict[Column, float]:
    """Return the columns that are likeliest some part, or the one that the user named."""
    if part in named_columns:
        return {column: 1.0 for column in columns if column.path == named_columns[part]}

    left = [column for column in columns if column.path not in named_columns.values()]
    # a name that fits adds to what the values look like
    scored = {}
    for column in left:
        if (score := float(likelihood(column))) > 0:
            scored[column] = score + 0.6 * is_named_as_part(column.path, part)

    return dict(sorted(scored.items(), key=lambda pair: pair[1], reverse=True)[:most])


def estimate_text_likelihood(column: Column) -> float:
    """Return how much a column's values look like what people said, from 0 to 1."""
    texts = column.texts
    if not texts or len(texts) < 0.3 * column.filled:
        return 0.0

    if len(texts) < 1000:
        few = set(texts)
    else:
        few = set(texts[:1000])

    if (
        len(texts) > 4
        and len(few) <= MAX_ROLES_LISTED
        and all(find_role_by_name(text) for text in few)
    ):
        return 0.0  # names of who speaks
    if (
        len(texts) >= 10
        and len(few) <= MAX_DISTINCT_VALUES_OF_NON_TEXT_COLUMN
        and max(map(len, few)) <= MAX_SHORT_VALUE_CHARS
    ):
        return 0.0  # values of a label, or of what else has few

    # what people say has several words, and seldom comes again
    spoken = sum(map(looks_like_spoken_text, texts)) / len(texts)
    several = sum(" " in text.strip() for text in texts) / len(texts)
    different = len(set(texts)) / len(texts)
    if several >= 0.2 or spoken >= 0.8:
        return spoken * (0.2 + 0.4 * several + 0.4 * different)
    return 0.0


def estimate_role_likelihood(column: Column) -> float:
    """Return how much a column's values look like names of who speaks, from 0 to 1."""
    words = [format_role_word(value) for value in column.values]
    filled = [word for word in words if word]
    names = Counter(filled)
    if not filled or len(names) > MAX_SPEAKER_NAMES or max(map(len, names)) > 60:
        return 0.0
    if any(len(name.split()) > MAX_WORDS_OF_SPEAKER_NAME for name in names):
        return 0.0  # what somebody said
    # columns whose name says that they are something else
    if NON_LABEL_NAME_WORDS & {*split_name_words(column.path)} or is_field_named_like_feedback(
        column.path
    ):
        return 0.0  # what a machine says of a turn, or a person
    if CHOSEN_FIELD_NAMES.intersection(split_path(column.path)[-1:]):
        return 0.0  # which answer of several somebody chose

    # columns of thumbs, unless their values may stand for two sides
    may_be_bits = any(map(normalize_number, names)) or {*map(remove_accents, names)} & {
        "true",
        "false",
    }
    thumbs = (
        all(map(is_usual_thumb, names)) or estimate_label_likelihood(column) > SURE_LABEL_LIKELIHOOD
    )
    if thumbs and not may_be_bits:
        return 0.0

    # usual names of both sides settle it; else few names that take turns
    sided = 0
    for name, times in names.items():
        if find_role_by_name(name):
            sided += times
    usual_share = sided / len(filled)
    sides = {find_role_by_name(name) for name in names} - {None}
    if {"user", "assistant"} <= sides:
        return 0.6 + 0.4 * usual_share
    if len(names) == 1:  # there for one side alone
        return 0.35 if column.sparse else 0.0
    if len(names) > len(filled) / 2 and len(filled) > 6:
        return 0.0

    # the fewer the names and the more often they take turns, the likelier
    few = 1 / len(names) ** 0.5
    pairs = list(pairwise(words))
    turns = sum(a != b for a, b in pairs) / max(len(pairs), 1)
    return float(0.4 * turns * few + 0.2 * usual_share + (0.1 if sides else 0))


def estimate_conversation_id_likelihood(column: Column) -> float:
    """Return how much a column's values look like ids that the rows of a conversation share, from 0 to 1."""
    # nearly all rows have an id, and ids are no sentences
    ids = []
    for value in column.values:
        if value not in (None, ""):
            ids.append(str(value))

    if len(ids) < 0.8 * len(column.values) or any(
        " " in word.strip() and len(word) > 40 for word in ids
    ):
        return 0.0

    # columns that name something else than a conversation
    sizes = Counter(ids)
    if len(sizes) < 2 and (len(ids) > 60 or not is_named_as_part(column.path, "conversation")):
        return 0.0
    if re.search("turn|message|utterance", column.path.rpartition(".")[2].casefold()):
        return 0.0  # it names a turn, or a question with its answer

    # half of the conversations have 2 to 200 rows, and values of a label are no ids
    rows = median(sizes.values())
    is_label = estimate_label_likelihood(column) > 0 and not is_named_as_part(
        column.path, "conversation"
    )
    if not 2 <= rows <= 200 or is_label:
        return 0.0
    if is_named_after_people(column.path) and not is_named_as_part(column.path, "conversation"):
        return 0.05  # who asks may come again

    # many ids, whose rows follow each other, speak for it
    fine = 0.1 * min(1.0, 10 * len(sizes) / len(ids))
    apart = sum(a == b for a, b in pairwise(ids)) / max(len(ids) - 1, 1)
    if any(isinstance(value, bool | float) for value in column.values):
        short = 0.0
    else:
        short = 0.1

    return float((0.15 if len(sizes) < 2 else 0.4) + 0.2 * apart + short + fine)


def is_named_after_people(path: str) -> bool:
    """Return whether a name says that a column names people, and no conversations."""
    words = split_name_words(path)
    return any(
        word in COLUMN_NAME_WORDS_FOR_PEOPLE or ROLE_BY_SPEAKER_WORD.get(word) == "user"
        for word in words
    )


def estimate_time_likelihood(column: Column) -> float:
    """Return how much a column's values look like times, from 0 to 1."""
    return column.times


def estimate_turn_number_likelihood(column: Column) -> float:
    """Return how much a column numbers turns: numbers that rise, under a name that says so."""
    numbers = []
    for value in column.values:
        if number := normalize_number(value):
            numbers.append(float(number))

    if len(numbers) == len(column.values) and is_named_as_part(column.path, "turn"):
        return 0.5
    return 0.0


def find_role_by_name(name: str) -> str | None:
    """Return whose turns a name of a role means, by usual spellings of some languages; None for others."""
    try:
        return parse_role(name)
    except BadInput:
        if is_name_of_service(name):
            return "assistant"
        # a name of several words counts where the words that are known agree; initials say nothing
        words = split_name_words(name)
        words = [word for word in words if len(word) > 1] if len(words) > 1 else words
        sides = {ROLE_BY_SPELLING.get(word) or ROLE_BY_SPEAKER_WORD.get(word) for word in words} - {
            None
        }
        return ROLE_BY_SPELLING.get(remove_accents(name)) or (
            sides.pop() if len(sides) == 1 else None
        )


def _count_first_speakers(role: Column, owner: Column) -> Counter[str]:
    """Return how often each name speaks first in a conversation."""
    first: dict[str, str] = {}
    for id_, value in zip(owner.values, role.values, strict=True):
        first.setdefault(str(id_), format_role_word(value))
    return Counter(first.values())


def _count_first_speakers_in_lists(listed: ListOfTurns, role: Column) -> Counter[str]:
    first_roles: Counter[str] = Counter()
    for start in listed.starts:
        if start < len(role.values):
            first_roles[format_role_word(role.values[start])] += 1
    return first_roles


def _measure_presence_in_talks(role: Column, owner: Column) -> dict[str, float]:
    """Return in which share of the conversations each name speaks."""
    talks: dict[str, set[str]] = {}
    for id_, value in zip(owner.values, role.values, strict=True):
        talks.setdefault(str(id_), set()).add(format_role_word(value))

    times: Counter[str] = Counter()
    for names in talks.values():
        for name in names:
            times[name] += 1
    shares: dict[str, float] = {}
    for name, number in times.items():
        shares[name] = number / len(talks)

    return shares


def _measure_presence_in_lists(listed: ListOfTurns, role: Column) -> dict[str, float]:
    """Return in which share of the lists each name speaks."""
    ends = [*listed.starts[1:], len(role.values)]
    talks = []
    for a, b in zip(listed.starts, ends, strict=True):
        talks.append({format_role_word(speaker) for speaker in role.values[a:b]})

    times: Counter[str] = Counter()
    for names in talks:
        for name in names:
            times[name] += 1
    return {name: number / len(talks) for name, number in times.items()}


def _iterate_role_guesses(
    role: Column,
    firsts: Counter[str],
    options: ReadOptions,
    met: Mapping[str, float],
    *,
    presence: bool = False,
    answering: Collection[str] = (),
) -> Iterator[tuple[tuple[str, str], ...]]:
    """Yield whose turns the names of a column may be; nothing to say where all are usual.

    Args:
        answering: Names that answer users; of those that nobody knows, they are the assistant's.
    """
    names = Counter(format_role_word(value) for value in role.values)
    role_of_name = _find_known_roles(names, options)
    both_sides = {"user", "assistant"} <= set(role_of_name.values())
    if all(role_of_name.values()) and "" not in names and both_sides:
        yield options.roles
        return

    sides = _add_roles_of_other_spellings(role_of_name)
    open_names = [name for name, side in sides.items() if side is None]
    missing = [side for side in ("user", "assistant") if side not in sides.values()]
    # empty cells are the other side where the column is filled for one side alone
    if presence and names[""]:
        yield from _iterate_roles_by_presence(sides, options)
        return
    # all names are known: the roles hold if both sides are among them
    if not open_names:
        if not missing:
            yield _format_role_pairs(sides, options)
        # in corpora of dialogues the system is who answers
        elif missing == ["assistant"] and "system" in sides.values():
            answering_system = {
                name: "assistant" if side == "system" else side for name, side in sides.items()
            }
            yield _format_role_pairs(answering_system, options)
        return
    # one side is missing: every open name belongs to it
    if len(missing) == 1:
        yield _format_role_pairs(
            {name: side or missing[0] for name, side in sides.items()},
            options,
        )
        return

    # both sides are known: who else answers users is the assistant's, others are the system
    if not missing:
        settled = {}
        for name, known_side in sides.items():
            settled[name] = known_side or ("assistant" if name in answering else "system")
        yield _format_role_pairs(settled, options)
        return

    # neither side is known
    if len(open_names) == 2:
        guesses = _guess_roles_of_two(open_names, firsts)
    else:
        guesses = _guess_roles_of_many(open_names, met)

    for guess in guesses:
        yield _format_role_pairs(sides | guess, options)


def _find_known_roles(names: Iterable[str], options: ReadOptions) -> dict[str, str | None]:
    """Return the roles of names as the user gave them, else by usual spellings; None for others."""
    named_roles = {remove_accents(spelling): side for side, spelling in options.roles}
    role_of_name: dict[str, str | None] = {}
    for name in names:
        if name:
            plain_name = remove_accents(name)
            if plain_name in named_roles:
                role_of_name[name] = named_roles[plain_name]
            else:
                role_of_name[name] = _find_usual_role(name)

    return role_of_name


def _add_roles_of_other_spellings(role_of_name: Mapping[str, str | None]) -> dict[str, str | None]:
    """Return roles with those that spellings of other languages, kinds of events and letters tell."""
    sides: dict[str, str | None] = {}
    for name, role in role_of_name.items():
        if not role and remove_accents(name) in NON_TURN_ROLE_WORDS:
            sides[name] = NO_TURN_ROLE
        else:
            sides[name] = role or find_role_by_name(name)

    return sides | _find_roles_of_letters(sides)


def _guess_roles_of_two(
    open_names: Sequence[str],
    firsts: Counter[str],
) -> Iterator[dict[str, str]]:
    """Yield roles of two unknown names: whoever begins most conversations asks, or the other way round."""
    asking, answering = open_names
    if firsts and firsts.most_common(1)[0][0] == answering:
        asking, answering = answering, asking

    yield {asking: "user", answering: "assistant"}
    yield {asking: "assistant", answering: "user"}


def _guess_roles_of_many(
    open_names: Sequence[str],
    met: Mapping[str, float],
) -> Iterator[dict[str, str]]:
    """Yield roles of many unknown names: the one who is in most conversations answers all others.

    Args:
        met: In which share of the conversations each name speaks.
    """
    if len(open_names) < 2:
        return

    answering = max(open_names, key=lambda name: met.get(name, 0))
    others = [met.get(name, 0) for name in open_names if name != answering]
    if met.get(answering, 0) < MIN_ASSISTANT_PRESENCE or max(others) >= MIN_ASSISTANT_PRESENCE:
        return

    roles = dict.fromkeys(open_names, "user")
    yield roles | {answering: "assistant"}


def _find_roles_of_letters(names: Collection[str]) -> dict[str, str]:
    """Return the sides of names that are single letters, where these tell both: visitor, agent, and the system."""
    sides = {}
    for name in names:
        if side := ROLE_BY_LETTER.get(name.casefold()):
            sides[name] = side

    both = {"user", "assistant"} <= {*sides.values()}
    return sides if both and sides.keys() == {*names} else {}


def _find_usual_role(name: str) -> str | None:
    """Return the role of a spelling that every reader knows."""
    try:
        return parse_role(name)
    except BadInput:
        return None


def _iterate_roles_by_presence(
    sides: Mapping[str, str | None], options: ReadOptions
) -> Iterator[tuple[tuple[str, str], ...]]:
    """Yield roles where a column is filled for one side alone, as a bot's id is."""
    named = [name for name, side in sides.items() if side != NO_TURN_ROLE]
    for side, other in (("assistant", "user"), ("user", "assistant")):
        yield (
            *options.roles,
            *((side, name) for name in named[:MAX_ROLES_LISTED]),
            (other, ANY_OTHER_ROLE),
        )


def _format_role_pairs(
    sides: Mapping[str, str | None], options: ReadOptions
) -> tuple[tuple[str, str], ...]:
    """Return pairs of ours and the log's names; a side with many names is told by `*`."""
    order = ("user", "assistant", "system", "tool", NO_TURN_ROLE)
    by_side: dict[str, list[str]] = {}
    for name, side in sides.items():
        by_side.setdefault(side or "system", []).append(name)

    # usual spellings need no pair
    pairs = []
    for side in order:
        for name in by_side.get(side, ()):
            if _find_usual_role(name) != side:
                pairs.append((side, name))

    many = max(by_side, key=lambda side: len(by_side[side]))
    if len(pairs) > MIN_SPEAKERS_FOR_WILDCARD:
        other_pairs = []
        for side, name in pairs:
            if side != many:
                other_pairs.append((side, name))
        pairs = [*other_pairs, (many, ANY_OTHER_ROLE)]

    named_words = {remove_accents(name) for _, name in options.roles}
    unnamed_pairs = []
    for side, name in pairs:
        if remove_accents(name) not in named_words:
            unnamed_pairs.append((side, name))
    return (
        *options.roles,
        *unnamed_pairs,
    )


def _find_whole_conversation_id(
    columns: Sequence[Column],
    named_columns: Mapping[str, str],
    talks: Sequence[object] = (),
    words: str = "",
) -> dict[str, str]:
    """Return the column whose values name each row, where rows are whole conversations.

    Args:
        talks: What is said in each row: the same in several rows that several people rated.
        words: The column of what is said, which names no row, whatever it is called.
    """
    if "conversation" in named_columns:
        return {"conversation": named_columns["conversation"]}
    if owner := _find_id_of_repeated_talks(columns, talks):
        return {"conversation": owner}

    # columns with a value of its own for each row, all text or none
    unique = []
    for column in columns:
        if (
            column.unique
            and len(column.texts) in (0, len(column.values))
            and "[]" not in column.path
            and column.path != words
        ):
            unique.append(column)

    named = []
    for column in unique:
        if is_named_as_part(column.path, "id") or is_named_as_part(column.path, "conversation"):
            named.append(column)

    # a column called `id` first, else the one that is called most like a conversation
    usual = next((column for column in named if column.path == "id"), None)
    order = []
    for column in named:
        order.append(
            (
                is_named_as_part(column.path, "conversation"),
                is_named_as_part(column.path, "id"),
                -len(column.path),
            )
        )

    best = usual or (named[order.index(max(order))] if named else None)
    return {} if best is None else {"conversation": best.path}


def _find_id_of_repeated_talks(columns: Sequence[Column], talks: Sequence[object]) -> str | None:
    """Return the first column of ids of which each goes with one talk, where the same talks come in several rows."""
    said = [str(talk) for talk in talks]
    if not said or len({*said}) > MAX_DISTINCT_TALK_SHARE * len(said):
        return None

    for column in columns:
        ids = [format_role_word(value) for value in column.values]
        one_each = len({*ids}) == len({*said}) == len({*zip(ids, said, strict=True)})
        if (
            one_each
            and "" not in ids
            and not any(map(is_transcript, ids))
            and (
                is_named_as_part(column.path, "id") or is_named_as_part(column.path, "conversation")
            )
        ):
            return column.path

    return None


def _add_label_and_comment(
    columns: Sequence[Column],
    parts: Mapping[str, str],
    roles: tuple[tuple[str, str], ...],
    prior: float,
    options: ReadOptions,
    named_columns: Mapping[str, str],
    listed: ListOfTurns | None = None,
    without: Collection[str] = (),
) -> ReadingCandidate:
    """Return a candidate with the likeliest label and comment; none where usual names are there.

    Args:
        without: Columns that are no label.
    """
    rest = {part: name for part, name in named_columns.items() if part not in parts}
    candidate = ReadingCandidate({**parts, **rest}, roles, {}, prior)
    used_paths = set(candidate.columns.values())

    # a label that the user named, or one that needs no name
    if options.label_field or "label" in candidate.columns:
        return _add_label_meaning(
            candidate,
            columns,
            options.label_field or candidate.columns["label"],
            options,
        )

    if listed:
        inside = []
        for column in listed.columns:
            inside.append(qualify_column_path(column, listed))
    else:
        inside = []

    examples = {}
    for column in columns:
        if "[]" not in column.path:
            examples[column.path] = column.example
    if find_opposite_thumb_columns(examples):
        return candidate

    # the likeliest of the columns that are nothing else
    free = []
    for column in [*columns, *inside]:
        if column.path not in used_paths | set(without):
            free.append(column)

    likeliest = next(rank_label_columns(free), None)
    doubtful = next(filter(is_ambiguous_label_column, free), None)
    # a doubtful column is asked about, unless another is surely the label
    if likeliest is not None and (doubtful is None or likeliest[1] > SURE_LABEL_LIKELIHOOD):
        return _add_comment(
            _add_label(candidate, likeliest[0]),
            [*columns, *inside],
        )

    if doubtful is not None:
        return _add_comment(
            replace(candidate, doubtful=doubtful),
            [*columns, *inside],
        )

    return candidate


def qualify_column_path(column: Column, listed: ListOfTurns) -> Column:
    """Return a column of a list's items by its path in the row."""
    return Column(f"{listed.path}[].{column.path}", column.values)


def _add_label_meaning(
    candidate: ReadingCandidate,
    columns: Sequence[Column],
    path: str,
    options: ReadOptions,
) -> ReadingCandidate:
    column = next((column for column in columns if column.path == path), None)
    # what the user said of the values stands
    if column is None or options.positive or options.negative:
        return candidate

    labels = _add_label(candidate, column).labels
    return replace(candidate, labels=labels)


def _add_label(candidate: ReadingCandidate, column: Column) -> ReadingCandidate:
    """Return a candidate with a column as its label, and what its values mean."""
    labels = infer_thumb_sides_of_column_values(column)
    top_level = column.path in (*LABEL_FIELD_NAMES, *RATING_FIELD_NAMES)
    if labels is None:
        return candidate

    # a usual name with usual values is found without being named
    usual = top_level and not labels and not column.sparse
    if usual:
        columns = candidate.columns
    else:
        columns = {**candidate.columns, "label": column.path}

    return replace(candidate, columns=columns, labels=labels)


def _add_comment(candidate: ReadingCandidate, columns: Sequence[Column]) -> ReadingCandidate:
    """Return a candidate with the likeliest column of comments, unless its name is usual."""
    used_paths = set(candidate.columns.values())
    if "comment" in candidate.columns:
        return candidate

    # what stands in the label's own object goes first, what stands in lists last
    holder = candidate.columns.get("label", "").rpartition(".")[0]
    nearest_first = sorted(
        columns,
        key=lambda column: (column.path.rpartition(".")[0] != holder, "[]" in column.path),
    )
    for column in nearest_first:
        is_usual_name = column.path in COMMENT_FIELD_NAMES
        if column.path not in used_paths and not is_usual_name and may_hold_comments(column):
            return replace(candidate, columns={**candidate.columns, "comment": column.path})

    return candidate


def find_plain_label_candidate(
    rows: SampledRows, offered: Sequence[str]
) -> ReadingCandidate | None:
    """Return the one column that is plainly a thumb by its name and its values; None if none is, or several are.

    Args:
        offered: Columns that are named like feedback.
    """
    plain = []
    for column in list_columns(rows):
        if (
            column.path in offered
            and are_values_plain_thumbs(column.words)
            and NON_LABEL_NAME_WORDS.isdisjoint(split_name_words(column.path))
        ):
            plain.append(column)

    if len(plain) != 1 or len(offered) != 1:
        return None

    labels = {"label_field": plain[0].path}
    # of two numbers, the higher one is good
    if all(map(normalize_number, plain[0].words)):
        low, high = sorted(plain[0].words, key=float)
        labels |= {"positive": high, "negative": low}

    return ReadingCandidate({}, (), labels)


def iterate_speaker_guesses(
    rows: SampledRows, options: ReadOptions
) -> Iterator[tuple[tuple[str, str], ...]]:
    """Yield whose turns the names of roles may be in rows of a known shape."""
    values = list[object]()
    firsts = Counter[str]()
    owner_columns = []
    for name, _ in options.columns:
        if name == "conversation":
            owner_columns.append(name)
    owners = [*owner_columns]
    begun: set[str] = set()
    for number, row in enumerate(rows):
        for spoken in _iterate_role_lists(row, options):
            values += spoken
            # the first name of a list, or of the first row of a conversation, begins
            if len(spoken) > 1:
                firsts[format_role_word(spoken[0])] += 1
            elif (id_ := _get_conversation_id(row, owners, number)) not in begun:
                begun.add(id_)
                firsts[format_role_word(spoken[0])] += 1

    if values:
        met = {name: 1.0 for name in map(format_role_word, values) if find_role_by_name(name)}
        yield from _iterate_role_guesses(Column("", values), firsts, options, met)


def _get_conversation_id(
    row: JsonObject,
    owners: Sequence[str],
    number: int,
) -> str:
    name = next(
        (column for column in (*owners, *CONVERSATION_ID_NAMES, "id") if column in row),
        None,
    )
    return str(row[name]) if name else str(number)


def _iterate_role_lists(row: JsonObject, options: ReadOptions) -> Iterator[list[object]]:
    """Yield the names of roles in a row, of its lists one by one."""
    columns = dict(options.columns)
    role_columns = []
    for name in (columns.get("role"), *ROLE_FIELD_NAMES):
        if name and name in row:
            role_columns.append(name)

    if role_columns and any(
        name in row for name in (columns.get("text"), *TEXT_FIELD_NAMES) if name
    ):
        yield [row[role_columns[0]]]

    # lists of turns and transcripts inside the row
    for value in row.values():
        if isinstance(value, str) and is_transcript(value):
            listed = parse_transcript(value)
        else:
            listed = parse_value_if_json_text(value)

        if (
            isinstance(listed, list)
            and listed
            and all(isinstance(entry, Mapping) for entry in listed)
        ):
            names = []
            for entry in listed:
                names.append(
                    next(
                        (entry[name] for name in ROLE_FIELD_NAMES if name in entry),
                        None,
                    )
                )

            if any(name is not None for name in names):
                yield names


def iterate_labeled_candidates(
    rows: SampledRows,
    candidate: ReadingCandidate,
    options: ReadOptions,
) -> Iterator[ReadingCandidate]:
    """Yield a candidate with the likeliest label, named by its field, where rows are of a known shape."""
    if options.label_field or "label" in candidate.columns:
        return

    used_names = {*candidate.columns.values(), *ROLE_FIELD_NAMES}
    free = [column for column in list_columns(rows) if column.path not in used_names]
    for column, _ in islice(rank_label_columns(free), 1):
        sides = infer_thumb_sides_of_column_values(column) or {}
        yield replace(candidate, labels={"label_field": column.path, **sides})
