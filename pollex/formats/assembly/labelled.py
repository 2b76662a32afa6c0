"""Conversations with their labels, from those that were put together and their thumbs."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from pollex.conversations.conversation import DEFAULT_RATING_BOUNDS, Feedback, Label
from pollex.errors import BadInput, spell_options
from pollex.formats.assembly.joiner import JoinedConversation
from pollex.formats.assembly.log_parts import ToolScore, TurnTuple
from pollex.formats.assembly.thumbs import (
    PlacedThumb,
    get_label_of_score,
    is_nps_score,
    label_conversation,
)
from pollex.formats.fields import ReadOptions, RowFields, format_unread_labels_note
from pollex.formats.labels import LabelRules, describe_unlabeled_values
from pollex.formats.paths import get_path_value
from pollex.formats.tally import SeparateVote
from pollex.text import JsonDict, format_count

GROUPING_FACT_NAMES = ("pair", "task", "sample")
"""Facts that conversations about the same thing share, which makes them a group: pairs, and epochs of a sample."""
MIN_TURNS_AFTER_THUMB = 2
"""Turns after a thumbed answer from which on the note counts its conversation."""


LabeledTurns = tuple[TurnTuple, RowFields, tuple[Feedback, ...]]


class ConversationLabeler:
    """Labels conversations, and counts what the notes have to say of it."""

    def __init__(self, options: ReadOptions, majority: Callable[[Sequence[Label]], Label]) -> None:
        self._options = options
        self._majority = majority
        self._verdicts = LabelRules.of(
            options.positive,
            options.negative,
            options.unrated,
        )
        self.spellings = self._verdicts.said
        self._counts: Counter[str] = Counter()
        self.found: set[str] = set()

    def label(self, joined: JoinedConversation) -> Iterator[LabeledTurns]:
        """Yield the conversation, or with `thumbs=each` one for every thumbed answer.

        Raises:
            BadInput: A thumb's value isn't known, or thumbs differ and nobody said which one
                counts.
        """
        try:
            thumbs = []
            for score in joined.scores:
                if (hung := self._hung(joined, score)) is not None:
                    thumbs.append(hung)

            label = label_conversation(thumbs, self._options.thumbs, self._majority)
        except BadInput:
            if self._options.labels_needed:
                raise
            self._counts["unread"] += 1
            thumbs = []
            label = Label.NONE

        # thumbs on single answers; others are of the whole conversation
        placed = []
        for thumb in thumbs:
            if thumb.place is not None:
                placed.append(thumb)

        if self._options.thumbs == "each" and placed:
            yield from self._cut(joined, thumbs)
            return

        # what is said long after the last thumb isn't what it was given for
        thumb_places = []
        for thumb in thumbs:
            if thumb.place is not None:
                thumb_places.append(thumb.place)

        last = max(
            thumb_places,
            default=None,
        )
        self._counts["after"] += (
            last is not None and len(joined.built.turns) - 1 - last > MIN_TURNS_AFTER_THUMB
        )
        yield self._labelled(
            joined,
            joined.id,
            joined.built.turns,
            label,
            thumbs,
        )

    def voted(self, id_: str, scores: Sequence[ToolScore]) -> SeparateVote:
        """Return the label of a conversation whose thumbs are in another file.

        Raises:
            BadInput: As for `label`.
        """
        thumbs = []
        for score in scores:
            thumbs.append(PlacedThumb(None, get_label_of_score(score, self._verdicts), score))

        label = label_conversation(thumbs, self._options.thumbs, self._majority)
        person_names = []
        for score in scores:
            if score.person:
                person_names.append(score.person)

        people = ", ".join(dict.fromkeys(person_names))
        return SeparateVote(id_, label, people or None, collect_feedback(thumbs))

    @property
    def notes(self) -> list[str]:
        """Notes on what was counted."""
        notes = []
        if n := self._counts["after"]:
            talks = format_count(n, "conversation goes", "conversations go")
            notes.append(
                f"{talks} on for more than {MIN_TURNS_AFTER_THUMB} turns after the thumb; "
                f"to cut them there: "
                f"{spell_options(thumbs='each')}"
            )

        if n := self._counts["unread"]:
            notes.append(format_unread_labels_note(n))

        if n := self._counts["replaced"]:
            notes.append(
                f"{format_count(n, 'thumb was', 'thumbs were')} given for answers that were replaced, and left out"
            )

        notes += describe_unlabeled_values(
            "the rating",
            self.spellings,
            compared=self._verdicts.compared,
        )
        if self._counts["rating"]:
            stars = "ratings in stars count as thumbs: 4 and 5 up, 1 and 2 down, 3 none"
            notes.append(f"{stars}; for other bounds: {spell_options(**DEFAULT_RATING_BOUNDS)}")

        if self._counts["nps"]:
            scale = "scores from 0 to 10 count as thumbs: 9 and 10 up, 0 to 6 down, 7 and 8 none"
            notes.append(
                f"{scale}; for other bounds: {spell_options(positive='>=9', negative='<=6')}"
            )

        if n := self._counts["cut"]:
            notes.append(
                f"{format_count(n, 'answer is', 'answers are')} cut by the export; export whole messages in its place"
            )

        if n := self._counts["rated turns"]:
            talks = format_count(n, "conversation holds", "conversations hold")
            notes.append(f"{talks} the rated turns alone; export the messages to have all of them")

        if n := self._counts["alone"]:
            rows = format_count(
                n,
                "example of a dataset has",
                "examples of a dataset have",
            )
            notes.append(
                f"{rows} lost the session, and stand alone; export spans to have whole conversations"
            )

        return notes

    def _hung(self, joined: JoinedConversation, score: ToolScore) -> PlacedThumb | None:
        """Attach a thumb to its turn; None for replaced turns and unbounded stars."""
        places = joined.built.places
        hung_at = score.message or score.id
        # a thumb on an answer that a later try replaced counts nowhere
        if (
            (score.target != "conversation" or score.message)
            and hung_at in places
            and places[hung_at] is None
        ):
            self._counts["replaced"] += 1
            return None

        # stars and recommendations without the user's bounds have usual ones, of which a note tells
        self._counts["rating"] += score.rating and not self._verdicts.numbers
        self._counts["nps"] += is_nps_score(score) and not self._verdicts.numbers
        return PlacedThumb(
            places.get(hung_at),
            get_label_of_score(score, self._verdicts),
            score,
        )

    def _cut(
        self, joined: JoinedConversation, thumbs: Sequence[PlacedThumb]
    ) -> Iterator[LabeledTurns]:
        thumb_places = set()
        for thumb in thumbs:
            if thumb.place is not None:
                thumb_places.add(thumb.place)

        places = sorted(thumb_places)
        for place in places:
            here = []
            for thumb in thumbs:
                if thumb.place == place:
                    here.append(thumb)

            # up to the thumbed answer, in one group with the whole
            turns = joined.built.turns[: place + 1]
            label = label_conversation(here, "last")
            yield self._labelled(
                joined,
                f"{joined.id}#{here[0].score.id}",
                turns,
                label,
                here,
                joined.id,
            )

        if whole := [thumb for thumb in thumbs if thumb.place is None]:
            yield self._labelled(
                joined,
                joined.id,
                joined.built.turns,
                label_conversation(whole, "last"),
                whole,
                joined.id,
            )

    def _labelled(
        self,
        joined: JoinedConversation,
        id_: str,
        turns: TurnTuple,
        label: Label,
        thumbs: Sequence[PlacedThumb],
        group: str | None = None,
    ) -> LabeledTurns:
        facts = joined.built.facts
        options = self._options
        self._counts["cut"] += bool(facts.get("answer_cut"))
        self._counts["rated turns"] += bool(facts.get("only_rated_turns"))
        self._counts["alone"] += bool(facts.get("session_lost"))
        thumb_records = []
        for thumb in thumbs:
            if thumb.score.value is not None:
                thumb_records.append(_make_thumb_record(thumb))

        beside = {"thumbs": thumb_records, "errors": list(joined.built.errors)}
        filled_beside = {}
        for name, value in beside.items():
            if value:
                filled_beside[name] = value

        metadata = {**facts, **filled_beside}
        # without scores, the label's field may be among the conversation's facts
        if label is Label.NONE and options.label_field and not joined.scores:
            label = self._verdicts.label(self._named(metadata, options.label_field))

        # who judged, and which group it belongs to
        person_names = []
        for thumb in thumbs:
            if thumb.score.person:
                person_names.append(thumb.score.person)

        people = list(dict.fromkeys(person_names))
        user = facts.get("user")
        judge = ", ".join(people) or (user if thumbs and isinstance(user, str) else None)
        if options.judge_field:
            judge = _require_scalar_text(self._named(metadata, options.judge_field))

        named = None
        if options.named_group:
            named = _require_scalar_text(self._named(metadata, options.named_group))

        alike = next(
            (
                text
                for name in GROUPING_FACT_NAMES
                if (text := _require_scalar_text(facts.get(name)))
            ),
            None,
        )
        # an id that the user named takes the place of the tool's; what stands behind it stays
        if options.id_field and (
            own_id := _require_scalar_text(self._named(metadata, options.id_field))
        ):
            id_ = own_id + id_.removeprefix(joined.id)

        return (
            turns,
            RowFields(id_, label, judge, named or alike or group, metadata),
            collect_feedback(thumbs),
        )

    def _named(self, metadata: JsonDict, name: str) -> object:
        value = get_path_value(metadata, name)
        if value is not None:
            self.found.add(name)
        return value


def collect_feedback(thumbs: Sequence[PlacedThumb]) -> tuple[Feedback, ...]:
    """Return what was written with thumbs, or without one; the same once."""
    all_feedback = []
    for thumb in thumbs:
        if thumb.score.comment or thumb.score.tags:
            all_feedback.append(
                Feedback(
                    comment=thumb.score.comment,
                    tags=thumb.score.tags,
                    author=thumb.score.person,
                    time=thumb.score.at,
                    turn=thumb.place,
                )
            )

    return tuple(
        {(feedback.comment, feedback.tags): feedback for feedback in all_feedback}.values()
    )


def _make_thumb_record(thumb: PlacedThumb) -> JsonDict:
    score = thumb.score
    fields = {
        "value": score.value,
        "name": score.name,
        "source": score.source,
        "by": score.person,
        "turn": thumb.place,
    }
    return {name: value for name, value in fields.items() if value not in (None, "")}


def _require_scalar_text(value: object) -> str | None:
    if isinstance(value, list | dict):
        raise BadInput(
            "the field is a list or an object",
            hint="name a field that holds text or a number",
        )

    return None if value is None else str(value)
