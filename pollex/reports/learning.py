"""The report on a rubric set: what was learned, figures, and their uncertainty."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np

from pollex.agents.embedded.embedder import Embedder
from pollex.agents.embedded.evidence import find_evidence_signal
from pollex.conversations.conversation import Conversation
from pollex.conversations.logs import NOT_RATED_NOTE_WORDS
from pollex.measures.arrays import Bools, Floats, Ints
from pollex.measures.classification import Assessment
from pollex.measures.distributions import bin_predictions_by_probability
from pollex.measures.intervals import MIN_UNITS_FOR_INTERVAL
from pollex.reports.numbers import (
    INTERVAL_WORDS,
    NO_BREAK_SPACE,
    format_grouped_count,
    format_number,
    format_percent,
    format_percent_interval,
    format_points,
    is_known,
    join_with_and,
    make_percent_unbreakable,
)
from pollex.reports.page import MAX_REASON_CHARACTERS, render_template, shorten_text
from pollex.reports.transcript import (
    MarkedText,
    cut_text_at_marked_spans,
    mark_turns,
    shorten_turns,
    trim_quote,
)
from pollex.rubrics.headlines import (
    POLARITIES_IN_HEADLINE_ORDER,
    UNEXPECTED_SIDE_NOTES,
    Habit,
    describe_lack_of_proven_rubrics,
    describe_same_facts,
    describe_side_without_headline,
    do_phrases_explain_more_thumbs_than_deeds,
    explain_why_proven_rubric_is_no_headline,
    has_proven_deed_of_assistant,
    is_proven_or_likely,
    is_rubric_too_thin_to_show,
    list_deeds_in_conversations_of_ending,
    list_headlines,
    list_phrase_rubrics_explained_by_findings,
    list_proven_deeds_outside_headlines,
    list_proven_phrase_rubrics,
    list_proven_tone_rubrics,
    list_rubrics_contradicted_by_thumbs,
    list_rubrics_explained_by_circumstances,
    list_rubrics_of_conversation_endings,
    list_rubrics_of_separate_facts,
    list_strongest_unproven_deeds,
    list_thin_rubrics,
    list_tone_rubrics,
    list_topics_unlike_the_rest,
    list_unexpected_rubrics,
    list_unproven_rubrics,
)
from pollex.rubrics.learning.measured import (
    CONSTANT_BASELINE_NAME,
    SIGNALS_BASELINE_NAME,
    WORDS_BASELINE_NAME,
)
from pollex.rubrics.learning.results import (
    NO_EVENTS_NOTE,
    REASONS_LEFT_OUT_NOTE_WORDS,
    LabelledScore,
)
from pollex.rubrics.lint import LintMark
from pollex.rubrics.records import (
    Baseline,
    ChosenRubric,
    DroppedRubric,
    FamilyMember,
    Segment,
    describe_guarantee,
)
from pollex.rubrics.rubric import (
    ANSWERED_BY_DISTILLED_JUDGE,
    Polarity,
    Quote,
    Rubric,
    is_built_in_source,
)
from pollex.rubrics.rubric_set import RubricSet
from pollex.rubrics.worth import (
    FURTHER_LABELS_IN_FORECAST,
    Reach,
    describe_difference_and_test_of_rubric,
    describe_doubt_about_rubric,
    describe_evidence_of_rubric,
    describe_reading,
    describe_signal_share,
)
from pollex.selection.threshold import Window
from pollex.store.folder import DEFAULT_STORE_FOLDER, format_store_option

OTHER_FINDINGS_TITLE = "Also proven or likely"
"""Title of what labels bear out and doesn't lead."""

CONVERSATION_OUTCOMES_TITLE = "How conversations come out"
"""Title of what tells how a conversation came out."""

TONE_TITLE = "How people sound"

WORDS_TITLE = "What is said"

MAX_RUBRICS_BEFORE_FOLD = 5
"""Rubrics of a side before anything is unfolded."""

MAX_EXAMPLES_PER_FINDING = 3
MAX_TOPICS_SHOWN = 6
MAX_WRONGLY_SCORED_CONVERSATIONS_SHOWN = 6


ExampleLink = tuple[str, str]
"""A conversation to look at: its id, and its anchor on the page, or empty."""


@dataclass(frozen=True)
class SeparateCase:
    """A case of another kind than what its entry begins with.

    Attributes:
        worth: In words.
        quote: The best one, with the words that decided marked; empty for none.
        example: Where the quote stands; None for none.
    """

    text: str
    worth: str
    quote: tuple[MarkedText, ...]
    example: ExampleLink | None


@dataclass(frozen=True)
class Finding:
    """A rubric as it is told.

    Attributes:
        worth: In words; empty where it wasn't measured.
        bounds: What stands behind it, likewise.
        beside: Further signals, in words.
        doubt: Why its worth can't be relied on; empty where it can.
        quote: The best one, with the words that decided marked.
        source: Where it stands.
        why_beside: Why it doesn't lead though labels bear it out; empty where it does.
        to_check: What is odd about its side; empty for most.
        marks: What makes it hard to judge.
        also: Near twins, which stand under it.
        apart: Cases of another kind in its family, each with its best quote.
        same_facts: What says the same otherwise, in words; empty for most.
    """

    rubric: ChosenRubric
    worth: str
    beside: tuple[str, ...]
    bounds: str
    doubt: str
    quote: tuple[MarkedText, ...]
    source: Quote | None
    examples: tuple[ExampleLink, ...]
    why_beside: str = ""
    to_check: str = ""
    marks: Sequence[LintMark] = ()
    also: tuple[Finding, ...] = ()
    apart: tuple[SeparateCase, ...] = ()
    same_facts: str = ""


@dataclass(frozen=True)
class Findings:
    """All that leads the page.

    Attributes:
        leading: By side, the deeds that labels bear out, most thumbs explained first.
        strongest: By side, the strongest hints.
        outcomes: What tells how it came out, and restates the thumb.
        said: Words that labels bear out, in whatever language.
        along: Those that go along with a circumstance, which explains their difference.
        beside: Those that labels bear out and that don't lead all the same.
        hints: Those of which too few thumbs can tell, but for the strongest.
        turned: Those whose thumbs went the other way.
        to_check: Those that one would expect on the other side.
        sounds_borne_out: Those of how people sound that are proven or likely.
        sounds: The others that tell how people sound.
        topics: Segments, those least like the rest first, each with its conversations and how these
            begin.
        wrong: The held-out conversations that the set gets most wrong, each with how it begins.
        habits: What the assistant does in conversations that end so, unproven.
        read_first: The worst conversations, each with how it begins; empty where a deed leads.
        shown: The conversations that are in the page, as the template takes them.
        thin: Rubrics that say too little to be shown.
        explained: Words that say no more than a finding.
        words_first: Sides on which words explain more thumbs than any deed.
        without_headline: By side, what is said where no act of the assistant's leads.
        named_beneath: Rubrics that say a finding otherwise, and are named beneath it.
    """

    leading: Mapping[Polarity, Sequence[Finding]]
    strongest: Mapping[Polarity, Sequence[Finding]]
    outcomes: Sequence[Finding]
    said: Sequence[Finding]
    along: Sequence[Finding]
    beside: Sequence[Finding]
    hints: Sequence[Finding]
    turned: Sequence[Finding]
    to_check: Sequence[Finding]
    sounds_borne_out: Sequence[Finding]
    sounds: Sequence[Finding]
    topics: Sequence[tuple[Segment, tuple[tuple[ExampleLink, str], ...]]]
    wrong: Sequence[tuple[LabelledScore, ExampleLink, str]]
    habits: Sequence[tuple[Habit, SeparateCase]]
    read_first: Sequence[tuple[ExampleLink, str]]
    shown: Sequence[Mapping[str, object]]
    thin: int = 0
    explained: Sequence[Finding] = ()
    words_first: Sequence[Polarity] = ()
    without_headline: Mapping[Polarity, str] = field(default_factory=dict)
    named_beneath: int = 0

    def none_of(self, side: Polarity) -> str:
        """Say what there is of a side on which nothing leads."""
        elsewhere = {
            OTHER_FINDINGS_TITLE: self.beside,
            WORDS_TITLE: self.said,
            CONVERSATION_OUTCOMES_TITLE: self.outcomes,
        }
        titles = []
        for title, findings in elsewhere.items():
            if any(finding.rubric.polarity == side for finding in findings):
                titles.append(f"“{title}”")

        see = f" See {join_with_and(titles)}, below." if titles else ""
        return f"{self.without_headline[side]}{see}"

    @property
    def any_leads(self) -> bool:
        """Whether any deed is told to go along with the thumbs."""
        return any(self.leading.values())

    def counts(self) -> str:
        """Say where on the page how many rubrics stand."""
        # near twins stand under a finding, and count with it
        twins = 0
        for side in POLARITIES_IN_HEADLINE_ORDER:
            for finding in self.leading[side]:
                twins += len(finding.also)
        numbers = {
            "on what the assistant does": twins + sum(map(len, self.leading.values())),
            "on how conversations end": len(self.outcomes),
            "on what is said": len(self.said),
            "that go along with a circumstance": len(self.along),
            "also proven or likely": len(self.beside),
            "as hints": len(self.hints) + sum(map(len, self.strongest.values())),
            "contradicted by thumbs": len(self.turned),
            "to check": len(self.to_check),
            "on how people sound": len(self.sounds_borne_out),
            f"for the score alone (“{TONE_TITLE}”)": len(self.sounds),
            "of words that say no more than a finding": len(self.explained),
            "named beneath another that says the same": self.named_beneath,
            "in the file only, too thin to show": self.thin,
        }
        counts_in_words = []
        for what, n in numbers.items():
            if n:
                counts_in_words.append(f"{n:,} {what}")

        return join_with_and(counts_in_words)


@dataclass
class ConversationAnchors:
    """Anchors of conversations, in the order in which they are first named; by rubric marks, and what says the same."""

    texts: Mapping[str, Conversation]
    marks: Mapping[str, Sequence[LintMark]] = field(default_factory=dict)
    same_facts: Mapping[str, str] = field(default_factory=dict)
    anchors: dict[str, str] = field(default_factory=dict)

    def example(self, id_: str) -> ExampleLink:
        """Make an example of the conversation, with an anchor if its text is known."""
        if id_ not in self.texts:
            return id_, ""
        return id_, self.anchors.setdefault(id_, f"c-{len(self.anchors) + 1}")

    def opening(self, id_: str) -> str:
        """Return how a conversation begins; empty where its text isn't known."""
        return self.texts[id_].opening if id_ in self.texts else ""


def prepare_findings(
    rubrics: RubricSet,
    scores: Sequence[LabelledScore],
    conversations: Mapping[str, Conversation],
    marks: Sequence[LintMark] = (),
) -> Findings:
    """Prepare what leads the page.

    Args:
        conversations: Those of `list_shown_ids`, by id.
        marks: Of rubrics that are hard to judge.
    """
    marks_by_id: dict[str, list[LintMark]] = {}
    for lint_mark in marks:
        marks_by_id.setdefault(lint_mark.id, []).append(lint_mark)

    every = rubrics.rubrics
    anchors = ConversationAnchors(conversations, marks_by_id, describe_same_facts(every))
    total = rubrics.data.held_out

    def describe(
        several: Sequence[ChosenRubric], examples: int = MAX_EXAMPLES_PER_FINDING
    ) -> list[Finding]:
        return [describe_finding(rubric, anchors, total, examples) for rubric in several]

    # what leads is named first, so that its conversations have the first anchors
    leading: dict[Polarity, list[Finding]] = {}
    for side in POLARITIES_IN_HEADLINE_ORDER:
        leading[side] = [
            describe_finding(headline.rubric, anchors, total, also=headline.also)
            for headline in list_headlines(every, side)
        ]

    # the strongest hints of a side stand with its findings, and nowhere else
    strongest = {
        side: list_strongest_unproven_deeds(every, side) for side in POLARITIES_IN_HEADLINE_ORDER
    }
    shown_above = {rubric.id for hints in strongest.values() for rubric in hints}
    hints = [rubric for rubric in list_unproven_rubrics(every) if rubric.id not in shown_above]

    topics = _prepare_topics(rubrics, anchors)
    wrong = []
    for score in find_most_wrongly_scored_conversations(scores):
        id_ = score.conversation_id
        wrong.append((score, anchors.example(id_), anchors.opening(id_)))

    # conversations to read first, where nothing else is told
    worst = [] if has_proven_deed_of_assistant(every) else find_worst_conversations(scores)
    read_first = []
    for score in worst:
        id_ = score.conversation_id
        read_first.append((anchors.example(id_), anchors.opening(id_)))

    return Findings(
        leading=leading,
        strongest={side: describe(strongest[side]) for side in POLARITIES_IN_HEADLINE_ORDER},
        outcomes=describe(list_rubrics_of_conversation_endings(every)),
        said=describe(list_proven_phrase_rubrics(every)),
        along=describe(list_rubrics_explained_by_circumstances(every)),
        beside=describe(list_proven_deeds_outside_headlines(every)),
        hints=describe(hints),
        turned=describe(list_rubrics_contradicted_by_thumbs(every)),
        to_check=describe(list_unexpected_rubrics(every)),
        sounds_borne_out=describe(list_proven_tone_rubrics(every)),
        sounds=describe(
            [rubric for rubric in list_tone_rubrics(every) if not is_proven_or_likely(rubric)], 0
        ),
        topics=topics,
        wrong=wrong,
        habits=[
            (habit, describe_separate_case(habit.case, anchors))
            for habit in list_deeds_in_conversations_of_ending(every)
        ],
        read_first=read_first,
        # last, as every conversation named above has its anchor by now
        shown=prepare_conversations(rubrics, anchors),
        thin=len(list_thin_rubrics(every)),
        explained=describe(list_phrase_rubrics_explained_by_findings(every), 0),
        words_first=[
            side
            for side in POLARITIES_IN_HEADLINE_ORDER
            if do_phrases_explain_more_thumbs_than_deeds(every, side)
        ],
        without_headline={
            side: describe_side_without_headline(every, side)
            for side in POLARITIES_IN_HEADLINE_ORDER
        },
        named_beneath=len(every) - len(list_rubrics_of_separate_facts(every)),
    )


def _prepare_topics(
    rubrics: RubricSet, anchors: ConversationAnchors
) -> list[tuple[Segment, tuple[tuple[ExampleLink, str], ...]]]:
    """Prepare the segments least like the rest, each with its conversations and how these begin."""
    topics = []
    for segment in list_topics_unlike_the_rest(rubrics.segments)[:MAX_TOPICS_SHOWN]:
        openings = []
        for id_ in segment.examples:
            openings.append((anchors.example(id_), anchors.opening(id_)))

        topics.append((segment, tuple(openings)))

    return topics


def describe_finding(
    rubric: ChosenRubric,
    anchors: ConversationAnchors,
    total: int,
    examples: int = MAX_EXAMPLES_PER_FINDING,
    also: Sequence[ChosenRubric] = (),
) -> Finding:
    """Put a rubric into words.

    Args:
        total: Conversations with a thumb that figures are of.
    """
    worth = rubric.worth
    quote = next(iter(rubric.best_quotes), None)
    return Finding(
        rubric=rubric,
        worth=make_percent_unbreakable(describe_evidence_of_rubric(worth)) if worth else "",
        bounds=make_percent_unbreakable(
            describe_difference_and_test_of_rubric(worth, rubric.standing, total)
        )
        if worth
        else "",
        beside=tuple(filter(None, map(describe_signal_share, rubric.signals))),
        doubt=make_percent_unbreakable(describe_doubt_about_rubric(worth, rubric.polarity))
        if worth
        else "",
        quote=cut_text_at_marked_spans(*trim_quote(quote)) if quote else (),
        source=quote,
        examples=tuple(map(anchors.example, list_quoted_conversations(rubric)[:examples])),
        why_beside=explain_why_proven_rubric_is_no_headline(rubric)
        if list_proven_deeds_outside_headlines([rubric])
        else "",
        to_check=UNEXPECTED_SIDE_NOTES[rubric.polarity]
        if list_unexpected_rubrics([rubric])
        else "",
        marks=anchors.marks.get(rubric.id, ()),
        also=tuple(describe_finding(twin, anchors, total, examples) for twin in also),
        # what the assistant does where a conversation ends so stands among the habits
        apart=()
        if rubric.outcome
        else tuple(describe_separate_case(case, anchors) for case in rubric.apart),
        same_facts=anchors.same_facts.get(rubric.id, ""),
    )


def describe_separate_case(case: FamilyMember, anchors: ConversationAnchors) -> SeparateCase:
    """Put a case of another kind into words."""
    quote = case.quote
    return SeparateCase(
        text=case.text,
        worth=make_percent_unbreakable(case.figures),
        quote=cut_text_at_marked_spans(*trim_quote(quote)) if quote else (),
        example=anchors.example(quote.conversation_id) if quote else None,
    )


def list_quoted_conversations(rubric: ChosenRubric) -> list[str]:
    """List the conversations that a rubric quotes, that of the best quote first."""
    return list(dict.fromkeys(quote.conversation_id for quote in rubric.best_quotes))


def find_most_wrongly_scored_conversations(scores: Sequence[LabelledScore]) -> list[LabelledScore]:
    """Return held-out conversations whose thumb was least probable, less probable than the other at least."""
    # only conversations with a probability by rubrics that didn't see them
    held_out = []
    for score in scores:
        if score.side == "held_out" and is_known(score.probability):
            held_out.append(score)

    wrong = []
    for score in held_out:
        if get_thumb_probability(score) < 0.5:
            wrong.append(score)

    return sorted(wrong, key=lambda score: (get_thumb_probability(score), score.conversation_id))[
        :MAX_WRONGLY_SCORED_CONVERSATIONS_SHOWN
    ]


MAX_CONVERSATIONS_TO_READ = 5
CONVERSATIONS_IN_WORDS_BY_COUNT = (
    "",
    "this conversation",
    "these two",
    "these three",
    "these four",
    "these five",
)


def find_worst_conversations(scores: Sequence[LabelledScore]) -> list[LabelledScore]:
    """Return the held-out conversations with a thumb down that are least probably good."""
    down = []
    for score in scores:
        if score.side == "held_out" and not score.positive and is_known(score.probability):
            down.append(score)

    return sorted(down, key=lambda score: (score.probability or 0.0, score.conversation_id))[
        :MAX_CONVERSATIONS_TO_READ
    ]


def name_conversations_to_read(scores: Sequence[LabelledScore], *, at_chance: bool) -> str:
    """Name the conversations to read first, in a line; empty where none has a probability."""
    worst = find_worst_conversations(scores)
    if not worst:
        return ""
    ids = ", ".join(shorten_text(score.conversation_id, MAX_REASON_CHARACTERS) for score in worst)
    return f"{write_reading_advice(len(worst), at_chance=at_chance)}: {ids}"


def write_reading_advice(number: int, *, at_chance: bool) -> str:
    """Say how many conversations to read first, and why these.

    Args:
        at_chance: Whether the rubrics that rank them aren't known to be better than chance.
    """
    these = (
        CONVERSATIONS_IN_WORDS_BY_COUNT[number]
        if number == 1
        else f"{CONVERSATIONS_IN_WORDS_BY_COUNT[number]} conversations"
    )
    worst = "worst by the rubrics"
    if at_chance:
        worst += ", which may be no better than chance"
    return f"Read {these} first (thumb down, and {worst})"


def get_thumb_probability(score: LabelledScore) -> float:
    """Return the probability of the thumb that was given."""
    probability = score.probability or 0.0
    return probability if score.positive else 1 - probability


def list_shown_ids(rubrics: RubricSet, scores: Sequence[LabelledScore]) -> list[str]:
    """List the ids of the conversations that the page shows."""
    # the same conversations that `prepare_findings` names: their texts are fetched before
    leading = []
    for rubric in rubrics.rubrics:
        if does_page_show_conversations_of_rubric(rubric):
            leading.append(rubric)

    quoted = []
    for rubric in leading:
        quoted.extend(list_quoted_conversations(rubric)[:MAX_EXAMPLES_PER_FINDING])

    for rubric in leading:
        for case in rubric.apart:
            if case.quote:
                quoted.append(case.quote.conversation_id)

    topics: list[str] = []
    for segment in list_topics_unlike_the_rest(rubrics.segments)[:MAX_TOPICS_SHOWN]:
        topics.extend(segment.examples)
    for habit in list_deeds_in_conversations_of_ending(rubrics.rubrics):
        if habit.case.quote:
            quoted.append(habit.case.quote.conversation_id)

    worst = (
        [] if has_proven_deed_of_assistant(rubrics.rubrics) else find_worst_conversations(scores)
    )
    looked_at = [
        score.conversation_id for score in (*find_most_wrongly_scored_conversations(scores), *worst)
    ]
    return list(dict.fromkeys([*quoted, *topics, *looked_at]))


def does_page_show_conversations_of_rubric(rubric: ChosenRubric) -> bool:
    """Tell whether the page shows conversations of a rubric: of all but what only counts for the score."""
    return rubric.headlined or rubric.leads or rubric.outcome or is_proven_or_likely(rubric)


def prepare_conversations(
    rubrics: RubricSet, anchors: ConversationAnchors
) -> list[Mapping[str, object]]:
    """Prepare the conversations that have an anchor, with the quotes of headline rubrics marked."""
    reasons = {reason.id: reason for reason in rubrics.reasons}
    # quotes to be marked, by conversation and turn, with their rubric's side
    quotes: dict[str, dict[int, list[tuple[str, Polarity]]]] = {}
    for rubric in rubrics.rubrics:
        # quotes of all reasons, beside the best ones
        behind: list[Quote] = []
        for id_ in rubric.reason_ids:
            if id_ in reasons:
                behind.extend(reasons[id_].quotes)
        behind += [case.quote for case in rubric.apart if case.quote]
        for quote in (
            (*rubric.best_quotes, *behind) if does_page_show_conversations_of_rubric(rubric) else ()
        ):
            turns = quotes.setdefault(quote.conversation_id, {})
            turns.setdefault(quote.turn, []).append((quote.text, rubric.polarity))

    rows: list[Mapping[str, object]] = []
    for id_, anchor in anchors.anchors.items():
        rows.append(
            {
                "id": id_,
                "place": anchor,
                "label": anchors.texts[id_].label.value,
                "turns": mark_turns(shorten_turns(anchors.texts[id_].turns), quotes.get(id_, {})),
                "said_of_it": [comment.text for comment in anchors.texts[id_].feedback],
            }
        )

    return rows


MAX_SKIPPED_PLACES = 200
MAX_DROPPED_RUBRICS_SHOWN = 400


@dataclass(frozen=True)
class SkippedItem:
    """One item that was left out.

    Attributes:
        where: Conversation id, or file and line.
        reason: Why, in one clause; equal reasons are shown together.
        hint: What to do about it; may be empty.
    """

    where: str
    reason: str
    hint: str = ""


MeanAgreementByClass = tuple[float | None, float | None]
"""Mean agreement with a rubric, 0 … 10, of positive and of negative conversations; None without answers."""


@dataclass(frozen=True)
class SideScores:
    """Scores of one side as arrays.

    Attributes:
        netsat: `[conversation]`.
        positive: Labels `[conversation]`.
        probability: P(positive) by a model that did not see it `[conversation]`; NaN where there is
            none.
        together: Conversations that belong together have the same number `[conversation]`.
    """

    netsat: Floats
    positive: Bools
    probability: Floats
    together: Ints

    @classmethod
    def of(
        cls, scores: Sequence[LabelledScore], side: Literal["training", "held_out"]
    ) -> SideScores:
        """Collect the conversations of `side` that have a score."""
        rows = []
        for score in scores:
            if score.side == side and is_known(score.netsat):
                rows.append(score)

        return cls(
            netsat=np.array([row.netsat for row in rows], float),
            positive=np.array([row.positive for row in rows], bool),
            probability=np.array(
                [math.nan if row.probability is None else row.probability for row in rows], float
            ),
            # a conversation that belongs to no other has a number of its own, below 0
            together=np.array(
                [-place if row.block is None else row.block for place, row in enumerate(rows, 1)],
                int,
            ),
        )

    def __len__(self) -> int:
        return len(self.netsat)

    @property
    def both_classes(self) -> bool:
        """Whether there are positive and negative conversations."""
        return bool(self.positive.any() and not self.positive.all())

    @property
    def with_probability(self) -> SideScores:
        """The conversations that have a probability."""
        has = ~np.isnan(self.probability)
        return SideScores(
            self.netsat[has],
            self.positive[has],
            self.probability[has],
            self.together[has],
        )


def group_scores_by_side(
    rubrics: RubricSet, scores: Sequence[LabelledScore]
) -> dict[str, SideScores]:
    """Group scores by the name of their side, in display order."""
    if rubrics.held_out:
        held_out = {"Held out": SideScores.of(scores, "held_out")}
    else:
        held_out = {}

    # with folds every conversation is held out once, and there is no side of training
    if rubrics.data.folds:
        return held_out
    return {"Training": SideScores.of(scores, "training")} | held_out


def prepare_rubric_cards(
    rubrics: RubricSet,
    kind: str,
    means: Mapping[str, MeanAgreementByClass],
) -> list[dict[str, object]]:
    """Prepare the rubrics of one kind in the order of choice; added ones last.

    With each: from how many `conversations` its reasons are; how many quotes they have, some of
    which are the rubric's examples; and its `means`, None where agreement was not measured.
    """
    reasons = {reason.id: reason for reason in rubrics.reasons}
    # rubrics that somebody added were never chosen: they come last
    last = len(rubrics.rubrics) + 1
    of_kind = []
    for rubric in rubrics.rubrics:
        if rubric.polarity == kind:
            of_kind.append(rubric)

    cards = []
    for rubric in sorted(of_kind, key=lambda rubric: rubric.choice.step if rubric.choice else last):
        behind = []
        for id_ in rubric.reason_ids:
            if id_ in reasons:
                behind.append(reasons[id_])

        # examples may be quotes of the reasons, so the two aren't added up
        quoted = max(len(rubric.quotes), sum(len(reason.quotes) for reason in behind))
        conversations = len({reason.conversation_id for reason in behind})
        about = {
            "rubric": rubric,
            "conversations": conversations,
            "quoted": quoted,
        }
        cards.append(about | {"means": means.get(rubric.id)})

    return cards


def compute_axis_range_of_mean_agreement(
    means: Iterable[MeanAgreementByClass],
) -> tuple[float, float]:
    """Return integers around all means, since the full scale would hide differences."""
    values = []
    for mean in means:
        for value in mean:
            if is_known(value):
                values.append(value)

    if values:
        return (float(math.floor(min(values))), float(math.ceil(max(values))))
    return (0.0, 10.0)


def group_dropped_rubrics(dropped: Sequence[DroppedRubric]) -> dict[str, list[DroppedRubric]]:
    """Group rubrics that are not in the set: first those not chosen, then duplicates."""
    merged_rubrics = []
    for rubric in dropped:
        if rubric.duplicate_of is not None:
            merged_rubrics.append(rubric)

    groups = {
        "not chosen": [rubric for rubric in dropped if rubric.duplicate_of is None],
        "merged into another rubric": merged_rubrics,
    }
    return {name: rows for name, rows in groups.items() if rows}


def group_skipped_items(
    skipped: Sequence[SkippedItem], scores: Sequence[LabelledScore]
) -> dict[tuple[str, str], list[str]]:
    """Group what was skipped by reason and remedy, the most frequent reason first."""
    named = {item.where for item in skipped}
    # what was left out before scoring is there already, with its reason
    unscored = []
    for score in scores:
        if not is_known(score.netsat) and score.conversation_id not in named:
            unscored.append(
                SkippedItem(
                    score.conversation_id,
                    f"no score: {score.outcome}",
                )
            )

    groups: dict[tuple[str, str], list[str]] = {}
    for item in [*skipped, *unscored]:
        groups.setdefault((item.reason, item.hint), []).append(item.where)

    return dict(sorted(groups.items(), key=lambda group: -len(group[1])))


TURNS_OF_COST_EXAMPLE = 25
"""Turns of the conversation that costs are told for."""

BASE_MS, MS_PER_RUBRIC, MS_FOR_EVENTS, MS_PER_WORD_RUBRIC, MS_FOR_VECTORS = (
    1.2,
    0.03,
    1.0,
    0.2,
    100.0,
)
"""Milliseconds of CPU: of any conversation (reading, writing, keeping), and of it for each rubric, for events, for each
rubric that compares words, and for vectors of all turns. Measured by `benchmarks/scoring.py` on a
slow core."""


def describe_scoring_cost(rubrics: Sequence[Rubric]) -> str:
    """Say about what a conversation of 25 turns costs, and whether turns are embedded."""
    computed = []
    for rubric in rubrics:
        if rubric.answered_by != ANSWERED_BY_DISTILLED_JUDGE:
            computed.append(rubric)

    kinds = [rubric.source.partition(":")[0] for rubric in computed]
    vectors = any(find_evidence_signal(rubric, Embedder()).vectors for rubric in computed)
    ms = (
        BASE_MS
        + MS_PER_RUBRIC * len(rubrics)
        + MS_PER_WORD_RUBRIC * kinds.count("turns")
        + MS_FOR_VECTORS * vectors
    )
    # events are read once for all rubrics
    ms += MS_FOR_EVENTS * any(kind in ("event", "rate") for kind in kinds)
    embedded = "its turns embedded" if vectors else "no embedding"

    return f"about {ms:.0f} ms of CPU a conversation of {TURNS_OF_COST_EXAMPLE} turns, {embedded}"


CHANCE_AUC = 0.5
MAX_LOWER_AUC_BOUND_NEAR_CHANCE = 0.55
"""Lower end of an interval up to which a set may be little better than guessing."""
ASSOCIATION_NOTE = "They say what goes along with thumbs; that need not be what causes them."
MIN_CONVERSATIONS_TO_ASSESS_PROBABILITIES = 10
"""Fewer conversations than this say nothing about probabilities."""


def render_learning_page(
    rubrics: RubricSet,
    scores: Sequence[LabelledScore] = (),
    skipped: Sequence[SkippedItem] = (),
    *,
    means: Mapping[str, MeanAgreementByClass] | None = None,
    conversations: Mapping[str, Conversation] | None = None,
    marks: Sequence[LintMark] = (),
    path: str = "rubrics.json",
    store: str = DEFAULT_STORE_FOLDER,
) -> str:
    """Render the whole page.

    Args:
        conversations: By id, those that the page names (`list_shown_ids`) and whose text is at hand.
        marks: Of rubrics that are hard to judge.
        scores: Of the labeled conversations of both sides.
        skipped: What was left out, and why.
        means: By rubric id, the mean agreement in each class.
        path: Where the rubric set lies, for the commands.
        store: The folder of the run's store, for the commands.

    Returns:
        HTML, the same for the same arguments. Write it as UTF-8.
    """
    sides = group_scores_by_side(rubrics, scores)
    # the side that comes last is the held-out one, where there is one
    last, latest = list(sides.items())[-1]
    likely = latest.with_probability
    findings = prepare_findings(rubrics, scores, conversations or {}, marks)

    return render_template(
        "learning.html",
        file=Path(path).name,
        rubrics=rubrics,
        found=findings,
        first=MAX_RUBRICS_BEFORE_FOLD,
        read_these=write_reading_advice(len(findings.read_first), at_chance=bool(rubrics.at_chance))
        if findings.read_first
        else "",
        beside_title=OTHER_FINDINGS_TITLE,
        ends_title=CONVERSATION_OUTCOMES_TITLE,
        words_title=WORDS_TITLE,
        reading=describe_reading(
            [rubric for rubric in rubrics.rubrics if not is_rubric_too_thin_to_show(rubric)]
        ),
        trust=describe_how_far_to_trust_rubrics(rubrics),
        behind_plain=describe_better_plain_method(rubrics),
        associations=ASSOCIATION_NOTE,
        first_notes=list_notes_needed_to_read_rubrics(rubrics),
        nothing=""
        if findings.any_leads
        else describe_lack_of_proven_rubrics(rubrics.rubrics, rubrics.data),
        verdict=describe_how_well_rubrics_rank(rubrics),
        learned_from=describe_sources(rubrics, findings),
        roles=name_models(rubrics),
        cautions=[*list_limits_of_figures(rubrics), *rubrics.notes],
        lead=rubrics.held_out or rubrics.training,
        chance=CHANCE_AUC,
        kinds={kind: prepare_rubric_cards(rubrics, kind, means or {}) for kind in ("sat", "dsat")},
        agreement_ends=compute_axis_range_of_mean_agreement(means.values()) if means else None,
        sides=sides,
        last=last,
        likely=likely,
        bins=bin_predictions_by_probability(likely.probability, likely.positive, likely.together)
        if len(likely) >= MIN_CONVERSATIONS_TO_ASSESS_PROBABILITIES
        else [],
        window=describe_window(rubrics.window, rubrics.held_out),
        guarantee=describe_guarantee(rubrics.guaranteed).replace(" %", f"{NO_BREAK_SPACE}%")
        if rubrics.guaranteed
        else "",
        dropped=group_dropped_rubrics(rubrics.dropped),
        skipped=group_skipped_items(skipped, scores),
        most_dropped=MAX_DROPPED_RUBRICS_SHOWN,
        most_places=MAX_SKIPPED_PLACES,
        commands=list_next_commands_by_purpose(rubrics, path, store),
        fewest=MIN_UNITS_FOR_INTERVAL,
        facts=list_run_facts(rubrics),
        more_labels=describe_more_labels(rubrics.reach),
    )


def list_caveats_of_report(rubrics: RubricSet) -> list[str]:
    """List what the report begins with, sentence by sentence: how far to trust the rubrics, and for what."""
    nothing = describe_lack_of_proven_rubrics(rubrics.rubrics, rubrics.data)
    first = [] if has_proven_deed_of_assistant(rubrics.rubrics) else [nothing]
    return [
        *first,
        f"{describe_how_far_to_trust_rubrics(rubrics)} {ASSOCIATION_NOTE}",
        *list_notes_needed_to_read_rubrics(rubrics),
    ]


def list_notes_needed_to_read_rubrics(rubrics: RubricSet) -> list[str]:
    """Return the notes without which the rubrics would be misread."""
    notes: list[str] = []
    for note in rubrics.notes:
        if any(
            words in note
            for words in (NO_EVENTS_NOTE, REASONS_LEFT_OUT_NOTE_WORDS, NOT_RATED_NOTE_WORDS)
        ):
            notes.append(note)
    return notes


def describe_how_far_to_trust_rubrics(rubrics: RubricSet) -> str:
    """Say in one sentence how far a reader may trust the rubrics."""
    held_out = rubrics.held_out
    if held_out is None:
        unknown = "Nobody knows how far to trust these rubrics"
        return f"{unknown}: all conversations were used for learning, none for testing."

    # from the least trust to the most: no figure, maybe luck, only together, and proven
    auc = held_out.auc
    if not is_known(auc.value):
        return f"How far to trust these rubrics could not be measured: {auc.undefined or 'there is no figure'}."

    tell = (
        f"the rubrics tell a good conversation from a bad one {format_percent(auc.value)} of the time "
        f"({format_percent_interval(auc)}; guessing is right {format_percent(CHANCE_AUC)} of the "
        f"time), {describe_measurement(rubrics)}"
    )
    if not is_known(auc.low) or auc.low <= CHANCE_AUC:
        first = "Take these rubrics as hints"
        if any(map(is_proven_or_likely, rubrics.rubrics)):
            first = "Together these rubrics may be no better than guessing"
        return f"{first}: {tell} That may be luck."

    # an interval that begins near guessing promises little
    little = ""
    if auc.low <= MAX_LOWER_AUC_BOUND_NEAR_CHANCE:
        little = " That may be little better than guessing."
        if has_proven_finding(rubrics.rubrics):
            little = (
                " Over all conversations that may be little better than guessing; what is proven or "
                "likely differs where it holds."
            )
    if not has_proven_finding(rubrics.rubrics):
        first = "Take each of these rubrics as a hint: none is proven or likely by itself."
        if any(map(is_proven_or_likely, rubrics.rubrics)):
            first = (
                "What is proven or likely here is how people sound, or goes along with a "
                "circumstance: a sign to watch, and no act to change."
            )
        return f"{first} Together, with those of how people sound, {tell}{little}"

    return f"{tell[0].upper()}{tell[1:]}{little}"


def describe_measurement(rubrics: RubricSet) -> str:
    """Say on which conversations figures are, and what of the rubrics saw these before: the end of a sentence."""
    data = rubrics.data
    if not data.folds:
        return f"measured on {format_grouped_count(data.held_out, 'conversation')} that took no part in learning."
    return f"measured on {rubrics.measured_on}."


def has_proven_finding(rubrics: Sequence[ChosenRubric]) -> bool:
    """Tell whether labels bear out anything that the page tells; in a set of before all that leads counts."""
    leads = []
    for side in POLARITIES_IN_HEADLINE_ORDER:
        for entry in list_headlines(rubrics, side):
            leads.append(entry.rubric)

    others = list_proven_deeds_outside_headlines(rubrics)
    others += [*list_proven_phrase_rubrics(rubrics), *list_rubrics_of_conversation_endings(rubrics)]
    return any(rubric.stands != "hint" for rubric in leads) or any(map(is_proven_or_likely, others))


PLAIN_METHODS_IN_WORDS = {
    WORDS_BASELINE_NAME: "A plain count of words, whatever they mean,",
    SIGNALS_BASELINE_NAME: "How people sound and how turns follow each other, without any rubric,",
    CONSTANT_BASELINE_NAME: "The same answer for every conversation",
}


def describe_better_plain_method(rubrics: RubricSet) -> str:
    """Say which plain method tells good conversations from bad ones better; empty for none."""
    # a plain method that is surely ahead, by probability where that was compared
    for baseline in rubrics.baselines:
        by = "the probability of this set"
        ahead = baseline.probability_ahead
        if ahead is None:
            by = "the sum of these rubrics"
            ahead = baseline.advantage
        # the whole interval lies below 0
        if ahead and is_known(ahead.value) and is_known(ahead.low) and is_known(ahead.high):
            if ahead.high >= 0:
                continue
            ends = (-100 * ahead.high, -100 * ahead.value, -100 * ahead.low)
            # an interval that leaves out 0 doesn't look as if it began there
            digits = 0 if ends[0] >= 0.5 else 2
            less, value, more = (format_number(end, digits) for end in ends)
            return (
                f"{PLAIN_METHODS_IN_WORDS.get(baseline.name, baseline.name)} tells good conversations from bad "
                f"ones better than {by} does: {value} more of 100 pairs in the right order "
                f"({INTERVAL_WORDS} {less} to {more}). {describe_what_findings_rest_on(rubrics)}"
            )

    return ""


def describe_what_findings_rest_on(rubrics: RubricSet) -> str:
    """Say what findings rest on, where a plain method ranks better than the whole set."""
    borne_out = any(map(is_proven_or_likely, rubrics.rubrics))
    if not (borne_out or has_proven_finding(rubrics.rubrics)):
        return "Nothing here is proven or likely, either."
    return (
        "What is proven or likely rests on the thumbs where it holds beside those elsewhere, and not "
        "on this ranking; to rank conversations, that method is better."
    )


def describe_how_well_rubrics_rank(rubrics: RubricSet) -> str:
    """Say in one sentence how well the rubrics rank."""
    held_out = rubrics.held_out
    auc = (rubrics.held_out or rubrics.training).auc
    where = (
        f"On {format_grouped_count(rubrics.training.n, 'conversation')} that they were learned from"
    )
    if held_out:
        where = f"Measured on {rubrics.measured_on}"
    if not is_known(auc.value):
        return f"{where}, how well the rubrics rank could not be measured: {auc.undefined or 'there is no figure'}."

    return (
        f"{where}, the rubrics rank a positive conversation above a negative one "
        f"{format_percent(auc.value)} of the time "
        f"({format_percent_interval(auc)}); chance is {format_percent(CHANCE_AUC)}."
        + (
            ""
            if held_out
            else " This is optimistic, and because nothing was held out, nobody knows by how much."
        )
    )


def describe_sources(rubrics: RubricSet, findings: Findings | None = None) -> str:
    """Say how many rubrics there are and where they stand, from which conversations, and on which they were tested."""
    data = rubrics.data
    tested = ""
    if not rubrics.held_out:
        tested = "; nothing was held out"
    elif not data.folds:
        tested = f"; measured on {rubrics.measured_on} ({_describe_classes(rubrics.held_out)})"

    where = ""
    if findings:
        where = f": {findings.counts()}"

    return (
        f"Learned from {format_grouped_count(data.training, 'conversation')} "
        f"({_describe_classes(rubrics.training)}){tested}. "
        f"{format_grouped_count(len(rubrics.rubrics), 'rubric')}{where}. "
        f"{describe_authors(rubrics)}Domain: {shorten_text(rubrics.domain.assistant.rstrip('.'))}."
    )


def describe_authors(rubrics: RubricSet) -> str:
    """Say by whom the rubrics were written, in one sentence; empty where people wrote some of them."""
    built_in = sum(is_built_in_source(rubric.source) for rubric in rubrics.rubrics)
    others = sum("@" in rubric.source for rubric in rubrics.rubrics)  # a prompt at its version
    reworded = any(rubric.written not in ("", rubric.text) for rubric in rubrics.rubrics)
    # people wrote some of them, or changed their words
    if reworded or built_in + others < len(rubrics.rubrics):
        return ""
    if not others:
        return "A program wrote them, no LLM. "

    # of a model and the built-in side at once, the model is named first
    by = rubrics.roles.get("summarizer", rubrics.judge.name).partition(" and ")[0]
    rest = ""
    if built_in:
        rest = f", a program without an LLM the other {built_in}"

    return f"The model {shorten_text(by)} wrote {others if built_in else 'them'}{rest}. "


def _describe_classes(figures: Assessment) -> str:
    return f"{figures.positives:,} with thumbs up, {figures.negatives:,} with thumbs down"


def name_models(rubrics: RubricSet) -> str:
    """Name the model of each role, and how often it found no reason; or say that no LLM was used."""
    # a built-in judge, and built-in agents in all roles
    names = dict.fromkeys([*rubrics.roles.values(), rubrics.judge.name])
    if rubrics.judge.built_in and all(name.startswith("built-in") for name in names):
        return (
            "Built-in (no LLM): a small sentence-embedding model and fixed rules found the reasons, wrote the rubrics, "
            "and judged, on this machine. Topics and signals of wording read English only."
        )

    by_name = {}
    for name in names:
        by_name[name] = [role for role, who in rubrics.roles.items() if who == name]

    work = []
    for name, roles in by_name.items():
        work.append(
            f"{shorten_text(name)} ({join_with_and(list(map(shorten_text, roles)))})"
            if roles
            else name
        )

    roles_told = f"Models and their roles: {join_with_and(work)}. The judge was {shorten_text(rubrics.judge.name)}."
    if (share := rubrics.found_nothing) is None or not is_known(share.value):
        return roles_told

    of = (
        f"{format_percent(share.value)} of "
        f"{format_grouped_count(share.n, 'training conversation')} ({format_percent_interval(share)})"
    )
    return f"{roles_told} The model found nothing to give as a reason in {of}."


def describe_more_labels(reach: Reach | None) -> str:
    """Say what further labels are worth; empty where there is no curve."""
    if reach is None or not is_known(reach.more.value):
        return ""

    more = reach.more
    n = reach.more.n
    # pairs out of 100, with a sign
    low, value, high = (
        format_number(100 * figure_end, 1, signed=True) if is_known(figure_end) else ""
        for figure_end in (more.low, more.value, more.high)
    )
    bounds = ""
    if low and high:
        bounds = f"{INTERVAL_WORDS} {low} to {high}, "

    worth = f"about {value} more of 100 pairs in the right order ({bounds}n = {n})"
    return f"{FURTHER_LABELS_IN_FORECAST} more labels would put {worth}, if AUC goes on growing as it did up to here."


def list_limits_of_figures(rubrics: RubricSet) -> Iterator[str]:
    """Say what the figures don't show."""
    if rubrics.edited:
        yield "Rubrics were edited after θ was fitted: run pollex refit before scoring."
    if rubrics.held_out is None:
        return

    auc = rubrics.held_out.auc
    if is_known(auc.low) and auc.low <= CHANCE_AUC:
        yield "The interval includes chance: on these conversations, the rubrics may be no better than guessing."

    yield from filter(None, map(_describe_comparison, rubrics.baselines))


def _describe_comparison(baseline: Baseline) -> str:
    gain = baseline.advantage
    # a constant ranks nothing
    if (
        gain is None
        or baseline.name == "constant"
        or not (is_known(gain.low) and is_known(gain.high))
    ):
        return ""

    bounds = f"{INTERVAL_WORDS} {format_points(gain.low)} to {format_points(gain.high)}"
    by = f"a difference of {format_points(gain.value)} in 100 pairs ({bounds})"
    # an interval on one side of 0, or on both
    if gain.low > 0:
        return f"The rubrics rank better than {baseline.name}: {by}."
    if gain.high < 0:
        return f"{baseline.name} ranks better than the rubrics: {by}."
    return f"It is not clear whether the rubrics rank better than {baseline.name}: {by}."


def describe_window(window: Window, held_out: Assessment | None) -> str:
    """Say in plain words what the uncertainty window promised, and what held-out labels showed."""
    precision = format_percent(window.precision)
    if window.lower is None and window.upper is None:
        return f"No threshold is right {precision} of the time where it was fitted: every score is uncertain."

    seen = ""
    if held_out and is_known(held_out.confident_accuracy.value):
        seen = (
            f"; on held-out conversations {format_percent(held_out.confident_accuracy.value)} were"
        )
    elif held_out:
        seen = "; too few held-out conversations lie there to say how often they are"

    right = f"where this was fitted, at least {precision} of the labels there are right{seen}"
    if window.lower is None:
        return (
            f"Scores over {format_number(window.upper, 1)} are told as positive: {right}. "
            "No threshold tells negative ones that often."
        )
    if window.upper is None:
        return (
            f"Scores of at most {format_number(window.lower, 1)} are told as negative: {right}. "
            "No threshold tells positive ones that often."
        )
    return (
        f"The shaded window runs from {format_number(window.lower, 1)} to "
        f"{format_number(window.upper, 1)}. Where it was "
        f"fitted, at least {precision} of the labels outside it are right{seen}."
    )


def list_next_commands_by_purpose(rubrics: RubricSet, path: str, store: str) -> dict[str, str]:
    """List what to type next; a hostile name stays one word of the shell."""
    # names come from outside: cut and quoted, so that each stays one word
    file, first, run = (
        shlex.quote(shorten_text(name, MAX_REASON_CHARACTERS))
        for name in (path, rubrics.rubrics[0].id, rubrics.run)
    )
    store_words = format_store_option(shorten_text(store, MAX_REASON_CHARACTERS))
    return {
        "Score new conversations": f"pollex score LOGS --rubrics {file} --out scores.parquet",
        "Measure the rubrics on another labeled log": f"pollex evaluate LOGS --rubrics {file}",
        "See where a rubric comes from": f"pollex why {file} {first}{store_words}",
        "Edit the rubrics by hand, then fit θ again": f"pollex refit LOGS --rubrics {file}",
        "Look into the run that made them": f"pollex trace {run}{store_words}",
    }


def list_run_facts(rubrics: RubricSet) -> dict[str, str]:
    """List everything that identifies the run."""
    return {
        "pollex": rubrics.pollex,
        "made": rubrics.created,
        "run": rubrics.run,
        "roles": join_with_and([f"{role}: {who}" for role, who in rubrics.roles.items()]),
        "judge": f"{rubrics.judge.name}, fingerprint {rubrics.judge.fingerprint}",
        "data": f"fingerprint {rubrics.data.fingerprint}, seed {rubrics.data.seed}",
        "prompts": join_with_and(
            [f"{name} {version}" for name, version in rubrics.prompts.items()]
        ),
        "size": (
            f"{format_grouped_count(len(rubrics.rubrics), 'rubric')}, "
            f"{format_grouped_count(len(rubrics.reasons), 'reason')}"
        ),
    } | ({"scoring": describe_scoring_cost(rubrics.rubrics)} if rubrics.judge.built_in else {})
