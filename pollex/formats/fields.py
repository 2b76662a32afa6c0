"""Choice of the fields that hold the id, label, judge and group of a row."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal, NamedTuple, get_args

from pollex.conversations.conversation import Label
from pollex.conversations.logs import NOT_RATED_NOTE_WORDS
from pollex.errors import BadInput, WrongUse, spell_options
from pollex.formats.bounds import QUERY_TIMEOUT_SECONDS
from pollex.formats.feedback import (
    COMMENT_FIELD_NAMES,
    COMMENT_NAMES_INSIDE_FEEDBACK_OBJECT,
    TAG_FIELD_NAMES,
    TAG_NAMES_INSIDE_FEEDBACK_OBJECT,
    is_written_reason,
)
from pollex.formats.feedback import split_signal_option_into_field_and_side as signal_named
from pollex.formats.labels import (
    NAME_SHOWN_FOR_EMPTY_LABEL,
    NEITHER_THUMB_VALUE,
    THUMB_NUMBERS,
    LabelRules,
    describe_unlabeled_values,
    format_label_value,
    is_usual_thumb,
    normalize_number,
    normalize_rating,
)
from pollex.formats.opposites import (
    OppositeColumns,
    find_opposite_thumb_columns,
    get_written_comment,
    label_opposite_columns,
)
from pollex.formats.paths import get_path_value, parse_value_if_json_text
from pollex.formats.users import DO_NOT_GROUP_OPTION_VALUE
from pollex.text import JsonDict, JsonObject, format_count

CONVERSATION_ID_NAMES = (
    *(
        "conversation_id",
        "conversationId",
        "conv_id",
        "dialogue_id",
        "dialog_id",
        "chat_id",
        "chatId",
    ),
    *("session_id", "sessionId", "thread_id", "threadId"),
)
"""Fields that name the conversation of a turn."""
TURN_TABLE_ID_NAMES = (*CONVERSATION_ID_NAMES, "run_id", "uuid", "id")
"""In a table of turns, `id` is the turn's own where another field names the conversation."""
WHOLE_CONVERSATION_ID_NAMES = ("id", *TURN_TABLE_ID_NAMES[:-1], "_id")
"""Of a whole conversation; MongoDB calls its own id `_id`."""
BARE_ID_NAMES = ("session", "conversation", "thread", "dialog", "dialogue", "ticket")
"""Fields that hold the id of a whole conversation, or something else: only what looks like an id is one."""
_BARE_ID_PATTERN = re.compile(r"(?=\D*\d)(?=[^A-Za-z]*[A-Za-z])[\w.:/@#-]{3,100}\Z")
"""A word with a letter and a digit: plain numbers are often counted anew for each user."""
LABEL_FIELD_NAMES = (
    *(
        "label",
        "thumbs",
        "thumb",
        "feedback",
        "user_feedback",
        "vote",
        "reaction",
        "satisfaction",
    ),
    *("thumbs_up", "thumbsUp", "upvoted", "is_upvoted", "liked", "flag", "kto_tag"),
)
RATING_FIELD_NAMES = ("rating", "ratings", "stars", "csat")
JUDGE_FIELD_NAMES = (
    *("judge", "annotator", "annotator_id", "rater"),
    *("rater_id", "worker_id", "WorkerId"),
)
GROUP_FIELD_NAMES = ("group",)
RATED_LABELS = frozenset((Label.POSITIVE, Label.NEGATIVE))
LABEL_SOURCE_NAMES = ("log", "person", "adjudicated")


@dataclass(frozen=True, slots=True)
class RowFields:
    """The fields of a row besides the turns.

    Attributes:
        id: None if the row has none.
        rest: The fields that were not picked.
        comment: What was written with the thumb, as it stands there; likewise `tags`.
        number: The number in the label field; a label of it holds if `FieldPicker.numbers` has it.
    """

    id: str | None
    label: Label
    judge: str | None
    group: str | None
    rest: JsonDict
    comment: object = None
    tags: object = None
    number: str = ""


class FieldPicker:
    """Picks fields by options or usual names, the same ones throughout a log."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._verdicts = LabelRules.of(
            options.positive,
            options.negative,
            options.unrated,
        )
        self._label_names: set[str] = set()
        self._ratings: Counter[tuple[str, str]] = Counter()
        self._unread = 0
        self._found: set[str] = set()
        self._pairs: dict[OppositeColumns, None] = {}
        self._contradicting = 0
        self._raters: Counter[str] = Counter()

    def pick(
        self, fields: JsonObject, id_names: tuple[str, ...] = WHOLE_CONVERSATION_ID_NAMES
    ) -> RowFields:
        """Return the id, label, judge and group of a row.

        Args:
            id_names: Where the id is looked for, the first one present, unless the options name its
                field.

        Raises:
            BadInput: A value that can't be what its field should be.
            WrongUse: The label may be in two fields.
        """
        options = self._options
        id_name = options.id_field or _find_first_present(fields, id_names)
        if id_name is None and id_names is WHOLE_CONVERSATION_ID_NAMES:
            id_name = _find_bare_id(fields)
        label_name, number, label = self._label(fields)
        usual = _find_usual_names(tuple(fields))
        # the field of each part: as the options name it, else the first usual one
        judge_name = options.judge_field or usual.judge
        group_name = options.named_group or (None if options.alone else usual.group)
        comment_name = options.comment_field or usual.comment
        tags_name = usual.tags
        # the row's label may have come from two columns
        pair = None
        if self._pairs:
            pair = self._opposites(fields)

        # an object that holds the thumb may hold its comment and tags
        beside = fields.get((label_name or "").partition(".")[0])
        beside = beside if isinstance(beside, dict) else {}
        # these are parts, and no metadata; what a row really has of them is noted
        named = {
            id_name,
            label_name,
            judge_name,
            group_name,
            comment_name,
            tags_name,
            *(pair or ()),
        }
        named_too = [options.label_field, *[signal_named(signal)[0] for signal in options.signals]]
        for name in (*named, *named_too):
            if name and name not in self._found and get_path_value(fields, name) is not None:
                self._found.add(name)

        rest = {}
        for name, value in fields.items():
            if name not in named or self._graded(name, label_name):
                rest[name] = value

        # a reason in words of its own is a comment, one of a list is a tag
        tags = _find_first_filled(beside, TAG_NAMES_INSIDE_FEEDBACK_OBJECT)
        reason = tags if is_written_reason(tags) else None
        if reason is not None:
            tags = None

        return RowFields(
            id=_format_id(get_path_value(fields, id_name)) if id_name else None,
            label=label,
            judge=_require_scalar_text(judge_name, get_path_value(fields, judge_name))
            if judge_name
            else None,
            group=_require_scalar_text(group_name, get_path_value(fields, group_name))
            if group_name
            else None,
            rest=rest,
            comment=self._comment(fields, comment_name, pair)
            or _find_first_filled(beside, COMMENT_NAMES_INSIDE_FEEDBACK_OBJECT[:-1])
            or reason,
            tags=fields[tags_name] if tags_name else tags,
            number=number,
        )

    def _comment(
        self,
        fields: JsonObject,
        name: str | None,
        pair: OppositeColumns | None,
    ) -> object:
        """Return what was written with the thumb; two columns of thumbs may hold it themselves."""
        if name and (comment := get_path_value(fields, name)) not in (None, ""):
            return comment

        return "\n".join(
            filter(
                None,
                (get_written_comment(fields.get(column)) for column in pair or ()),
            )
        )

    def _label(self, fields: JsonObject) -> tuple[str | None, str, Label]:
        try:
            named_field = self._options.label_field
            if (pair := self._opposites(fields)) is not None:
                return None, "", self._label_of_both(pair, fields)
            outer = named_field or self._label_name(fields)
            if outer is None:
                return None, "", Label.NONE
            # two thumbs may stand beside each other inside the field
            inside = fields.get(outer)
            if isinstance(inside, Mapping) and (pair := find_opposite_thumb_columns(inside)):
                by_path = {f"{outer}.{name}": inside.get(name) for name in pair if name}
                paths = OppositeColumns(*(name and f"{outer}.{name}" for name in pair))
                return None, "", self._label_of_both(paths, by_path)
            # the thumb may stand inside the field, or in each item of a list
            name = named_field or _find_thumb_path(fields, outer)
            if name.endswith("]") or "[]" in name or "*" in name:
                return (
                    name,
                    "",
                    self._label_of_several(
                        parse_value_if_json_text(get_path_value(fields, name)), name
                    ),
                )
            value = fields.get(name)
            if value is None:
                value = get_path_value(fields, name)
            # numbers wait: whether they are thumbs shows once all rows are read
            if number := self._number(outer, value):
                self._ratings[outer, number] += 1
                # a rating may turn out to be no label, and stays among the other fields until then
                return (
                    None if self._is_rating(outer) else name,
                    number,
                    _convert_thumb_number_to_label(number),
                )
            return name, "", self._verdicts.label(value, name)
        except (BadInput, WrongUse):
            if self._options.labels_needed:
                raise
            self.leave_unread()
            return None, "", Label.NONE

    def _opposites(self, fields: JsonObject) -> OppositeColumns | None:
        """Return two columns that are the label together, unless the user named or a usual name says another."""
        pair = find_opposite_thumb_columns(fields)
        # a pair that was taken once holds for the whole log
        if pair is None or pair in self._pairs:
            return pair

        options = self._options
        # whoever names one column of a pair, and no sides, means both
        if named_field := options.label_field:
            if named_field in pair and not (options.positive or options.negative):
                return pair
            return None

        # a usual name that has a value goes before a pair
        usual = (*LABEL_FIELD_NAMES, *RATING_FIELD_NAMES)
        others = []
        for name in usual:
            if name not in pair and not _is_blank(fields.get(name)):
                others.append(name)

        return None if others else pair

    def _label_of_both(self, pair: OppositeColumns, fields: JsonObject) -> Label:
        self._pairs[pair] = None
        self._found.update(filter(None, pair))
        label, contradicting = label_opposite_columns(pair, fields)
        self._contradicting += contradicting
        # a row with both thumbs counts as down where the worst one counts
        if contradicting and self._options.thumbs == "worst":
            label = Label.NEGATIVE

        shown_values = []
        for name in pair:
            if name:
                shown_values.append(f"{name} {format_label_value(fields.get(name))}")

        values = ", ".join(shown_values)
        self._verdicts.said[values, label] += 1
        return label

    def _label_of_several(self, values: object, name: str) -> Label:
        """Return the label of several raters' values: by their mean where numbers have bounds, else by majority."""
        listed = values if isinstance(values, list) else [values]
        if self._verdicts.numbers and all(map(normalize_number, listed)):
            return self._verdicts.label(listed, name)
        return self.settle_raters([self._verdicts.label(value, name) for value in listed])

    def settle_raters(self, labels: Sequence[Label], *, by_field: bool = True) -> Label:
        """Return the label that most raters gave, none where as many gave the other; count how they agree.

        Args:
            by_field: Whether a field names the raters, so that each one's labels can be had.
        """
        self._raters["by field"] += by_field
        ups = labels.count(Label.POSITIVE)
        downs = labels.count(Label.NEGATIVE)
        # pairs among n raters: n (n - 1) / 2, and those among each side agree
        self._raters["conversations"] += ups + downs > 1
        self._raters["pairs"] += (ups + downs) * (ups + downs - 1) // 2
        self._raters["alike"] += (ups * (ups - 1) + downs * (downs - 1)) // 2
        if ups == downs:
            self._raters["ties"] += ups > 0
            return Label.NONE
        return Label.POSITIVE if ups > downs else Label.NEGATIVE

    def leave_unread(self) -> None:
        """Count a label that can't be read where none is needed."""
        self._unread += 1

    def _number(self, name: str, value: object) -> str:
        """Return the number in a label field, whose meaning shows once all rows are read; empty for words.

        What the user said of numbers is known at once.
        """
        if self._verdicts.numbers or _is_blank(value):
            return ""
        if self._is_rating(name):
            if _is_label_text(value):
                return ""
            return normalize_rating(value)
        return normalize_number(value)

    def _is_rating(self, name: str) -> bool:
        return name in RATING_FIELD_NAMES and name != self._options.label_field

    def _graded(self, name: str, label_name: str | None) -> bool:
        """Tell whether a field is the label and holds grades, which are learned as such beside the thumb."""
        return name == label_name and self._verdicts.numbers

    def id_of_turn(self, fields: JsonObject) -> str | None:
        """Return the conversation id of a table's row; raise `BadInput` if it is invalid."""
        name = self._options.id_field or _find_first_present(fields, TURN_TABLE_ID_NAMES)
        if name:
            return _format_id(get_path_value(fields, name))
        return None

    def note_found(self, *names: str) -> None:
        """Remember label names found by another reader."""
        self._found.update(names)

    def never_found(self, options: ReadOptions) -> list[str]:
        """List the options that name a field which no row has."""
        fields = ("id_field", "label_field", "judge_field", "group_field", "comment_field")
        # `none` in place of a group isn't the name of a field
        named_fields = {name: getattr(options, name) for name in fields} | {
            "group_field": options.named_group
        }
        signals = []
        for signal in options.signals:
            signals.append(("label_field", signal_named(signal)[0]))

        unknown_names = []
        for key, name in (*named_fields.items(), *signals):
            if name and name not in self._found:
                unknown_names.append(spell_options(**{key: name}))

        return unknown_names

    @property
    def has_groups(self) -> bool:
        """Whether a usual name holds groups."""
        return not self._found.isdisjoint(GROUP_FIELD_NAMES)

    @property
    def label_field(self) -> str:
        """Name of the field that labels come from; empty if there is none, the first of two together."""
        if self._pairs:
            return next(name for pair in self._pairs for name in pair if name)
        if named := self._options.label_field or next(iter(self._label_names), ""):
            return named
        return next(iter(self._rated if self.numbers else ()), "")

    @property
    def numbers(self) -> frozenset[str]:
        """The numbers in the label field that are thumbs; none where there are others beside 1, 0 and -1.

        In a field of ratings both sides must occur. A 0 beside -1 is no rating.
        """
        sides_in_words = {meant for _, meant in self._verdicts.said} & RATED_LABELS
        numbers = set()
        for _, number in self._ratings:
            if number != NAME_SHOWN_FOR_EMPTY_LABEL:
                numbers.add(number)

        sides = sides_in_words | {_convert_thumb_number_to_label(number) for number in numbers}
        # ratings of 1 alone may be the worst of five stars
        one_sided = len(sides) < 2 and any(map(self._is_rating, self._rated))
        if one_sided or not numbers <= THUMB_NUMBERS or len({*self._rated, *self._label_names}) > 1:
            return frozenset()
        return frozenset(numbers - {"0"} if "-1" in numbers else numbers)

    @property
    def spellings(self) -> Counter[tuple[str, str]]:
        """Number of values of the label field by spelling and meaning, a label or `NEITHER_THUMB_VALUE`."""
        if self._pairs:
            return Counter(self._verdicts.said)
        return self._said_of(next(iter(self._read), ""))

    @property
    def notes(self) -> list[str]:
        """Notes on fields used as labels, and on values that were not taken."""
        if self._unread:
            return [format_unread_labels_note(self._unread)]
        if self._pairs:
            return [*self._notes_on_pairs(), *self._note_on_raters()]

        read = {}
        for name in self._read:
            read[name] = {meant for _, meant in self._said_of(name)}

        # fields of which at least one value was taken for a side
        used = []
        for n, meanings in read.items():
            if meanings & RATED_LABELS and n != self._options.label_field:
                used.append(n)

        left = []
        for name in read:
            left.append(
                describe_unlabeled_values(
                    name,
                    self._said_of(name),
                    compared=self._verdicts.compared,
                )
            )

        named = []
        for name in used:
            named.append(f"labels come from the field {name!r}")

        left_notes = []
        for notes in left:
            left_notes.extend(notes)

        return [*named, *self._note_on_raters(), *left_notes]

    def _note_on_raters(self) -> Iterator[str]:
        """Tell how several raters of a conversation agree, and what their label is."""
        raters = self._raters
        if not (n := raters["conversations"]):
            return

        rated = format_count(n, "conversation was", "conversations were")
        share = f"{raters['alike']} of {raters['pairs']} pairs of raters agree"
        ties = ""
        if raters["ties"]:
            ties = f"; {raters['ties']} with as many of each count {NOT_RATED_NOTE_WORDS}"

        by_rater = ""
        if raters["by field"]:
            by_rater = f"; for each rater's own: {spell_options(judge_field=None)}"

        yield f"{rated} rated by several, and the label is the majority's: {share}{ties}{by_rater}"

    def _notes_on_pairs(self) -> Iterator[str]:
        """Tell which two columns the labels come from, and what contradicts itself."""
        pair_names = []
        for pair in self._pairs:
            for name in pair:
                if name:
                    pair_names.append(name)

        names = dict.fromkeys(pair_names)
        together = " together" if len(names) > 1 else ""
        yield f"labels come from {' and '.join(map(repr, names))}{together}"

        if n := self._contradicting:
            both = format_count(
                n,
                "row has a thumb up and one",
                "rows have a thumb up and one",
            )
            if self._options.thumbs == "worst":
                outcome = "counts as down"
            else:
                outcome = f"is taken {NOT_RATED_NOTE_WORDS}"

            yield f"{both} down, which {outcome}"

    @property
    def _read(self) -> list[str]:
        return list(dict.fromkeys(filter(None, [self.label_field, *self._rated])))

    @property
    def _rated(self) -> list[str]:
        """Fields whose numbers may be labels; none where the labels are in another field."""
        return [
            name
            for name in dict.fromkeys(name for name, _ in self._ratings)
            if not self._label_names - {name}
        ]

    def _said_of(self, field: str) -> Counter[tuple[str, str]]:
        # numbers come to the words that were counted as they were read
        counts = Counter(self._verdicts.said)
        thumb_numbers = self.numbers
        for (name, number), n in self._ratings.items():
            if name != field:
                continue
            meant: str = NEITHER_THUMB_VALUE
            if number in thumb_numbers:
                meant = _convert_thumb_number_to_label(number)
            elif number == NAME_SHOWN_FOR_EMPTY_LABEL:
                meant = Label.NONE

            counts[number, meant] += n

        return counts

    def _label_name(self, fields: JsonObject) -> str | None:
        """Return the name of the label field: ratings first if they have bounds, else thumbs."""
        has_numbers = self._verdicts.numbers
        orders = (
            (RATING_FIELD_NAMES, LABEL_FIELD_NAMES)
            if has_numbers
            else (LABEL_FIELD_NAMES, RATING_FIELD_NAMES)
        )
        present = _find_usual_names(tuple(fields)).labels
        if not present:
            return None

        # the first usual name with a value, unless two of them have one
        for names in orders:
            there = []
            for name in names:
                if name in present and not _is_blank(fields[name]):
                    there.append(name)

            # numbers of a rating claim the label's field only once they are settled
            if there and names is RATING_FIELD_NAMES and self._number(there[0], fields[there[0]]):
                return there[0]
            self._label_names.update(there)
            if len(self._label_names) > 1:
                both = sorted(self._label_names)
                what = f"the label may be in {' and '.join(map(repr, both))}"
                raise WrongUse(
                    what,
                    hint="say which",
                    option={"label_field": both[0]},
                )
            if there:
                return there[0]

        # a field that is there and empty says that the row has no label
        blank = (
            name for names in orders for name in names if name in fields and _is_blank(fields[name])
        )
        return next(blank, None)


def format_unread_labels_note(rows: int) -> str:
    """Return the note on labels that can't be read where none are needed."""
    return f"{format_count(rows, 'label')} can't be read, and {'is' if rows == 1 else 'are'} not needed here"


def _convert_thumb_number_to_label(number: str) -> Label:
    return {"1": Label.POSITIVE, "0": Label.NEGATIVE, "-1": Label.NEGATIVE}.get(number, Label.NONE)


def _find_first_filled(beside: JsonObject, names: tuple[str, ...]) -> object:
    if beside:
        return next(
            (beside[name] for name in names if beside.get(name) not in (None, "", [])),
            None,
        )

    return None


def _find_first_present(fields: Collection[str], names: tuple[str, ...]) -> str | None:
    for name in names:
        if name in fields:
            return name
    return None


def _find_bare_id(fields: JsonObject) -> str | None:
    for name in BARE_ID_NAMES:
        value = fields.get(name)
        if isinstance(value, str) and _BARE_ID_PATTERN.match(value):
            return name

    return None


class UsualFieldNames(NamedTuple):
    """The fields of a row that have usual names, by what they hold."""

    judge: str | None
    group: str | None
    comment: str | None
    tags: str | None
    labels: frozenset[str]


@lru_cache(maxsize=1024)
def _find_usual_names(names: tuple[str, ...]) -> UsualFieldNames:
    """Return which fields have usual names; cached for all rows of a table."""
    return UsualFieldNames(
        judge=_find_first_present(names, JUDGE_FIELD_NAMES),
        group=_find_first_present(names, GROUP_FIELD_NAMES),
        comment=_find_first_present(names, COMMENT_FIELD_NAMES),
        tags=_find_first_present(names, TAG_FIELD_NAMES),
        labels=frozenset(names) & {*LABEL_FIELD_NAMES, *RATING_FIELD_NAMES},
    )


def _find_thumb_path(fields: JsonObject, name: str) -> str:
    """Return the path to the thumb in a field: the field itself, or the one in its object or in its list's objects."""
    value = fields.get(name)
    if isinstance(value, list) and value and all(isinstance(entry, Mapping) for entry in value):
        # the first item of a list stands for all
        inner = _find_thumb_path({name: value[0]}, name)
        if inner == name:
            return name
        return inner.replace(name, f"{name}[]", 1)
    if not isinstance(value, Mapping):
        return name

    names = (*LABEL_FIELD_NAMES, *RATING_FIELD_NAMES, "value", "score")
    there = [inner for inner in names if value.get(inner) is not None]
    unrated = [inner for inner in names if inner in value]
    if not there and len(unrated) == 1:
        return f"{name}.{unrated[0]}"

    # under names such as `rating`, a number may be of five: only words are thumbs there
    thumb = (
        len(there) == 1
        and is_usual_thumb(value[there[0]])
        and (there[0] not in RATING_FIELD_NAMES or _is_label_text(value[there[0]]))
    )
    rating = (
        len(there) == 1 and name in RATING_FIELD_NAMES and bool(normalize_number(value[there[0]]))
    )
    sure = thumb or rating
    return f"{name}.{there[0]}" if sure else name


def _is_blank(value: object) -> bool:
    return value is None or (isinstance(value, str) and not value.strip())


def _is_label_text(value: object) -> bool:
    if not isinstance(value, str):
        return isinstance(value, bool)
    return not normalize_number(value)


def _format_id(value: object) -> str | None:
    """Convert an id to text; whole numbers become digits, others as Python writes them."""
    if _is_blank(value):
        return None
    return _require_scalar_text("the id", value)


def _require_scalar_text(name: str, value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value or None
    if isinstance(value, bool | int | float):
        return str(value).lower()

    raise BadInput(
        f"{name} is a list or an object",
        hint="name a field that holds text or a number",
    )


DuplicateConversationChoice = Literal["error", "first", "last"]
SeveralThumbsChoice = Literal["last", "worst", "each"]


RedactionChoice = Literal["yes", "names"]


MAX_QUERY_SECONDS = 86_400
"""Seconds that a query may be given at most."""


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """Options for reading logs; None stands for the usual field names.

    Attributes:
        id_field: A name, or a path with dots such as `metadata.session`; so for the other fields.
        label_field: The thumb, or a rating.
        signals: Further fields beside the label, as `retried:down` where a yes is a bad sign, or
            ratings as they are.
        judge_field: Who gave the label.
        group_field: What must stay on one side of a split; `none`: nothing; None: the field that
            names users, if one does, see `users`.
        comment_field: What people wrote with the thumb.
        comments: Whether what people wrote is taken up at all.
        messages_field: The list of turns.
        columns: Which column is which part of a conversation, as pairs; see `mapping`.
        roles: Whose turns the names of roles mean, as pairs of ours and the log's.
        kept_mapping: Whether `columns` and `roles` are those that a rubric set was learned with,
            and hold for a log of the same fields alone.
        confirm: Whether a way to read a log that nobody knows is proposed even where it is certain.
        positive: What counts as positive: a comparison (`>=4`), spellings separated by commas
            (`solved,great`), of which one with a comma has quotes, or `*` for every other word.
        negative: Likewise.
        unrated: Spellings that are no rating, beside the usual ones.
        category_field: Of questions: the category of the task, or its type's own name; no path.
        sources_field: Of questions or answers: the documents that the answer was written with; no
            path.
        max_bad: How many bad rows are put up with.
        encoding: Of text files.
        on_duplicate: What to do with different conversations under one id: stop, or keep the first
            or the last.
        thumbs: What several thumbs on one conversation come to where they differ: the last one, the
            worst, or each its own conversation, which ends with the thumbed answer; None refuses
            them.
        pairs: Whether chosen and rejected answers of preference data are read as thumbs up and
            down.
        label_sources: Whose labels count: thumbs of the `log`, labels of a `person` or
            `adjudicated` ones, which the store keeps; names separated by commas.
        redact: Put placeholders for what says who somebody is: `yes`, or `names` for names and
            places, too.
        labels_needed: Whether a label that can't be read is an error; else its conversation counts
            as not rated.
        max_turn_chars: A conversation with a longer turn is kept, and marked `too_large`.
        query_seconds: How long a query of a database may take.
    """

    id_field: str | None = None
    label_field: str | None = None
    signals: tuple[str, ...] = ()
    judge_field: str | None = None
    group_field: str | None = None
    comment_field: str | None = None
    comments: bool = True
    messages_field: str | None = None
    columns: tuple[tuple[str, str], ...] = ()
    roles: tuple[tuple[str, str], ...] = ()
    kept_mapping: bool = False
    confirm: bool = False
    positive: str | None = None
    negative: str | None = None
    unrated: str | None = None
    category_field: str | None = None
    sources_field: str | None = None
    max_bad: int = 0
    encoding: str = "utf-8-sig"
    on_duplicate: DuplicateConversationChoice = "error"
    thumbs: SeveralThumbsChoice | None = None
    pairs: bool = False
    redact: RedactionChoice | None = None
    label_sources: str = "log"
    labels_needed: bool = True
    max_turn_chars: int = 1_000_000
    query_seconds: int = QUERY_TIMEOUT_SECONDS

    def __post_init__(self) -> None:
        allowed = {
            "on_duplicate": get_args(DuplicateConversationChoice),
            "thumbs": get_args(SeveralThumbsChoice),
            "redact": get_args(RedactionChoice),
        }
        choices = []
        for name, values in allowed.items():
            choices.append((name, getattr(self, name), values))

        for name, value, values in (
            *choices,
            *(("label_sources", source, LABEL_SOURCE_NAMES) for source in self.sources),
        ):
            if value is not None and value not in values:
                hint = f"use one of {', '.join(values)}"
                raise WrongUse(
                    f"{name} is {value!r:.60}",
                    hint=hint,
                    option={name: values[0]},
                )

        # numbers within their bounds
        if self.max_bad < 0 or self.max_turn_chars < 1:
            raise WrongUse(
                "max_bad is negative or the turn limit below 1",
                hint="give a count",
            )

        if not 1 <= self.query_seconds <= MAX_QUERY_SECONDS:
            what = f"query_seconds is {self.query_seconds}"
            raise WrongUse(
                what,
                hint=f"give 1 to {MAX_QUERY_SECONDS}",
                option={"query_seconds": str(QUERY_TIMEOUT_SECONDS)},
            )

    def for_scores(self) -> ReadOptions:
        """Return options for what needs no labels; what the user said of labels still holds."""
        label_options = (
            self.label_field,
            self.positive,
            self.negative,
            self.thumbs,
            self.pairs or None,
        )
        return replace(
            self,
            labels_needed=any(option is not None for option in label_options),
        )

    @property
    def alone(self) -> bool:
        """Whether each conversation stands alone, since the user said so."""
        return self.group_field == DO_NOT_GROUP_OPTION_VALUE

    @property
    def named_group(self) -> str | None:
        """The field of the group that the user named."""
        return None if self.alone else self.group_field

    @property
    def sources(self) -> tuple[str, ...]:
        """The label sources by name."""
        return tuple(name.strip() for name in self.label_sources.split(","))
