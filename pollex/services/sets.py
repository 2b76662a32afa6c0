"""Rubric sets in people's hands: what one says, how two differ, edits beside one, and what is hard to judge."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any, Literal

import numpy as np

from pollex.agents.embedded.embedder import Embedder
from pollex.agents.embedded.events.signal import parse_event_source
from pollex.agents.embedded.roles import DISTINCT_SOURCE_PREFIXES, MIN_COSINE_OF_DUPLICATES
from pollex.errors import WrongUse
from pollex.graphs.context import NullProgress, Progress
from pollex.outputs import write_file
from pollex.reports.transcript import MarkedText, trim_quote
from pollex.rubrics.answers import Unanswered
from pollex.rubrics.edits import (
    MAX_RUBRIC_CHARACTERS,
    EditEntry,
    get_edits_path,
    make_editable_rubric_entries,
    write_edits_toml,
)
from pollex.rubrics.headlines import (
    UNEXPECTED_SIDE_NOTES,
    Habit,
    Headline,
    describe_same_facts,
    do_phrases_explain_more_thumbs_than_deeds,
    do_thumbs_contradict_rubric,
    explain_why_proven_rubric_is_no_headline,
    is_proven_or_likely,
    list_deeds_in_conversations_of_ending,
    list_headlines,
    list_phrase_rubrics_explained_by_findings,
    list_proven_deeds_outside_headlines,
    list_proven_phrase_rubrics,
    list_rubrics_contradicted_by_thumbs,
    list_rubrics_explained_by_circumstances,
    list_rubrics_of_conversation_endings,
    list_strongest_unproven_deeds,
    list_thin_rubrics,
    list_tone_rubrics,
    list_unexpected_rubrics,
    list_unproven_rubrics,
)
from pollex.rubrics.lint import (
    LintMark,
    find_lint_in_rubric_answers,
    find_lint_in_rubric_pairs,
    find_lint_in_rubric_sentence,
)
from pollex.rubrics.records import NESTED_FINDING_PREFIX, ChosenRubric, CommentFinding
from pollex.rubrics.rubric import Polarity, Rubric
from pollex.rubrics.rubric_set import RubricSet
from pollex.rubrics.worth import (
    JUDGED_BY_IN_WORDS,
    describe_doubt_about_rubric,
    describe_reading,
    describe_signal_share,
    describe_thumb_shares_of_rubric,
    format_interval_ends,
    format_percent,
)
from pollex.runs.options import ModelOptions, RunOptions
from pollex.runs.roles import build_run_roles, make_embedder
from pollex.runs.workspace import Workspace, open_workspace, run_coroutine_to_end
from pollex.services.named_sets import get_store_folder, read_rubric_set
from pollex.services.rejudging import preview_edits
from pollex.services.results import Result, make_figures_json
from pollex.store.store import Store
from pollex.text import JsonDict, TerminalLine, TerminalLines, format_count

SIDE_HEADINGS: dict[Polarity, str] = {"dsat": "What goes wrong", "sat": "What goes well"}
HINT_HEADINGS: dict[Polarity, str] = {
    "dsat": "Hints of what goes wrong, none of them proven",
    "sat": "Hints of what goes well, none of them proven",
}
OUTCOMES_HEADINGS: dict[Polarity, str] = {
    "dsat": "How it comes out, and how people react, where it goes wrong",
    "sat": "How it comes out, and how people react, where it goes well",
}
WORDS_HEADINGS: dict[Polarity, str] = {
    "dsat": "What is said where it goes wrong",
    "sat": "What is said where it goes well",
}
SCORE_DIRECTIONS: dict[Polarity, str] = {"dsat": "lowers the score", "sat": "raises the score"}
"""The side of a rubric, where the heading doesn't say it."""

CONTRADICTED_HEADING = "Thumbs contradict these"
UNEXPECTED_HEADING = "To check: one would expect these on the other side"
BESIDE_HEADING = "Also proven or likely, but not among the findings"
CIRCUMSTANCES_HEADING = "What goes along with a circumstance, which may be the reason as well"
EXPLAINED_WORDS_HEADING = "Words that say no more than a finding above"
FURTHER_HINTS_HEADING = "Hints: each may be luck"
HEADINGS_OF_A_SIDE = (
    *SIDE_HEADINGS.values(),
    *HINT_HEADINGS.values(),
    *WORDS_HEADINGS.values(),
    *OUTCOMES_HEADINGS.values(),
)
"""Headings that say on which side their rubrics are."""

MAX_RUBRIC_LINE_CHARACTERS = 1000
MAX_REMARKS_SHOWN = 3
ID_CHARACTERS_SHOWN = 8
"""Characters of an id; `pollex why` takes the beginning."""


def describe_rubrics(rubrics: RubricSet, verbose: bool = False) -> TerminalLines:
    """Yield what labels bear out, problems first; all others only if verbose."""
    every = rubrics.rubrics
    same_facts = describe_same_facts(every)
    shown_above: set[str] = set()
    # how to read the list is said once, where there is one
    if listed := _list_rubrics_with_figures(every):
        yield from describe_reading(every if verbose else listed)

    # findings lead, problems first; of deeds and words what explains more thumbs
    for side, heading in SIDE_HEADINGS.items():
        deeds = _render_group(heading, list_headlines(every, side), verbose, same_facts)
        words = _render_group(
            WORDS_HEADINGS[side],
            _make_entries(list_proven_phrase_rubrics(every), side),
            verbose,
            same_facts,
        )
        first, second = (
            (words, deeds)
            if do_phrases_explain_more_thumbs_than_deeds(every, side)
            else (deeds, words)
        )
        yield from first
        yield from second
        # hints that stand out say what to look at next; they are not repeated below
        strongest = list_strongest_unproven_deeds(every, side)
        yield from _render_group(HINT_HEADINGS[side], map(Headline, strongest), verbose, same_facts)
        shown_above |= {rubric.id for rubric in strongest}

    yield from _describe_habits(list_deeds_in_conversations_of_ending(every))
    # outcomes restate the thumb, and circumstances explain it: both stand apart from causes
    for side, heading in OUTCOMES_HEADINGS.items():
        yield from _render_group(
            heading,
            _make_entries(list_rubrics_of_conversation_endings(every), side),
            verbose,
            same_facts,
        )
    yield from _render_group(
        CIRCUMSTANCES_HEADING,
        map(Headline, list_rubrics_explained_by_circumstances(rubrics.rubrics)),
        verbose,
        same_facts,
    )
    yield from _describe_remarks(
        rubrics.remarks if verbose else rubrics.remarks[:MAX_REMARKS_SHOWN]
    )
    # what is left is counted, and listed only if asked for
    borne_out = list_proven_deeds_outside_headlines(rubrics.rubrics)
    hints = []
    for rubric in list_unproven_rubrics(rubrics.rubrics):
        if rubric.id not in shown_above:
            hints.append(rubric)

    against = list_rubrics_contradicted_by_thumbs(rubrics.rubrics)
    odd = list_unexpected_rubrics(rubrics.rubrics)
    sounds = list_tone_rubrics(rubrics.rubrics)
    explained = list_phrase_rubrics_explained_by_findings(rubrics.rubrics)
    thin = list_thin_rubrics(rubrics.rubrics)
    if verbose:
        yield from _render_group(
            EXPLAINED_WORDS_HEADING, map(Headline, explained), verbose, same_facts
        )
        yield from _render_group(BESIDE_HEADING, map(Headline, borne_out), verbose, same_facts)
        yield from _render_group(FURTHER_HINTS_HEADING, map(Headline, hints), verbose, same_facts)
        yield from _render_group(CONTRADICTED_HEADING, map(Headline, against), verbose, same_facts)
        yield from _render_group(UNEXPECTED_HEADING, map(Headline, odd), verbose, same_facts)
        people = "How people sound: these count for the score"
        yield from _render_group(people, map(Headline, sounds), verbose, same_facts)
        yield from _describe_thin_rubrics(len(thin))
        return

    # the same lists as numbers, without those that are empty
    if borne_out:
        counts = [f"{len(borne_out)} also proven or likely"]
    else:
        counts = []

    counts += [format_count(len(hints), "hint")] if hints else []
    counts += [f"{len(against)} that thumbs contradict"] if against else []
    counts += [f"{len(odd)} to check, as one expects the other thumb"] if odd else []
    counts += [_count_sounds(sounds)] if sounds else []
    counts += [f"{len(explained)} of words that say no more than these"] if explained else []
    if counts:
        lists = (borne_out, hints, against, odd, sounds, explained)
        more = sum(map(len, lists))
        yield f"{format_count(more, 'more rubric')} ({'; '.join(counts)}): in the report, or here with -v"
    yield from _describe_thin_rubrics(len(thin))


def _count_sounds(sounds: Sequence[ChosenRubric]) -> str:
    """Count rubrics of how people sound, and those of them that labels bear out."""
    counted = f"{len(sounds)} of how people sound"
    if borne_out := sum(map(is_proven_or_likely, sounds)):
        return f"{counted}, {borne_out} proven or likely"
    return counted


def _describe_thin_rubrics(number: int) -> TerminalLines:
    """Yield how many rubrics say too little to be shown; nothing for none."""
    if number:
        are = "rubric says", "rubrics say"
        yield f"{format_count(number, *are)} too little to be shown: in the file of the rubric set"


def _describe_habits(habits: Sequence[Habit]) -> TerminalLines:
    """Yield what the assistant does in conversations that end so, one a line."""
    if habits:
        yield TerminalLine("Habits to check, unproven:", "bold")
    for habit in habits:
        yield make_rubric_line(habit.case.text, [habit.figures])


def _describe_remarks(remarks: Iterable[CommentFinding]) -> TerminalLines:
    for remark in remarks:
        of = f"{format_count(remark.share.n, 'comment')} with thumbs {'up' if remark.polarity == 'sat' else 'down'}"
        share = f"{format_percent(remark.share)} of {of} ({format_interval_ends(remark.share)})"
        yield make_rubric_line(
            f"What people wrote: “{remark.text}”",
            [share, *(f"“{quote.text}”" for quote in remark.quotes[:1])],
        )


def _render_group(
    heading: str, entries: Iterable[Headline], verbose: bool, same_facts: Mapping[str, str]
) -> TerminalLines:
    """Yield a heading and its entries, each with its figures and what says the same; nothing for none."""
    for number, entry in enumerate(entries):
        if not number:
            yield TerminalLine(f"{heading}:", "bold")
        # rubrics of much the same conversations follow the one that stands for them
        for rubric in (entry.rubric, *entry.also):
            before = ""
            if rubric is not entry.rubric:
                before = rubric.overlap.words if rubric.overlap else "see also:"
            text = " ".join(filter(None, (before, *rubric.entry)))
            # a heading that names no side leaves it to the rubric's own line
            side = [SCORE_DIRECTIONS[rubric.polarity]] if heading not in HEADINGS_OF_A_SIDE else []
            if verbose:
                details = [format_count(len(rubric.reason_ids), "reason")]
            else:
                details = []

            if verbose and rubric.choice and rubric.choice.stability is not None:
                details.append(f"chosen in {100 * rubric.choice.stability:.0f} % of halves")
            # figures, then the side, then how the rubric came about, and last the id
            figures = [
                *describe_rubric_figures(rubric),
                *side,
                *details,
                *_quote_words(rubric),
                *([same_facts[rubric.id]] if rubric.id in same_facts else []),
                f"id {rubric.id[:ID_CHARACTERS_SHOWN]}",
            ]
            whole = ["the wider finding:"] if rubric.lead else []
            yield make_rubric_line(text, [" ".join((*whole, figures[0])), *figures[1:]])
            for case in () if rubric.outcome else rubric.apart:
                yield make_rubric_line(f"{NESTED_FINDING_PREFIX}: {case.text}", [case.figures])


def _make_entries(rubrics: Iterable[ChosenRubric], side: Polarity) -> list[Headline]:
    """Make an entry of each rubric of a side."""
    return [Headline(rubric) for rubric in rubrics if rubric.polarity == side]


def _list_rubrics_with_figures(rubrics: Sequence[ChosenRubric]) -> list[ChosenRubric]:
    """List the rubrics that are listed with their figures though nobody asks for all."""
    listed = [*list_proven_phrase_rubrics(rubrics), *list_rubrics_of_conversation_endings(rubrics)]
    for side in SIDE_HEADINGS:
        listed += list_strongest_unproven_deeds(rubrics, side)
        listed += [headline.rubric for headline in list_headlines(rubrics, side)]

    return listed


MAX_WORD_QUOTE_CHARACTERS = 120


def _quote_words(rubric: ChosenRubric) -> list[str]:
    """Quote a phrase where it was said, since two words alone mean little; nothing of other rubrics."""
    if not rubric.source.startswith("phrase:") or not rubric.best_quotes:
        return []

    text, _ = trim_quote(rubric.best_quotes[0], MAX_WORD_QUOTE_CHARACTERS)
    return [f"as in “{' '.join(text.split())}”"]


def make_rubric_line(text: str, figures: Sequence[str]) -> TerminalLine:
    """Return a rubric's words, with what is known of it below."""
    return TerminalLine(text, limit=MAX_RUBRIC_LINE_CHARACTERS, below="; ".join(figures))


def describe_rubric_figures(rubric: ChosenRubric) -> list[str]:
    """Return a rubric's worth in a few words, and why it can't be relied on."""
    stands = [rubric.stands] if rubric.standing else []
    aside = []
    # a rubric that labels bear out, and that doesn't lead all the same
    if list_proven_deeds_outside_headlines([rubric]):
        aside.append(f"not among the findings: {explain_why_proven_rubric_is_no_headline(rubric)}")
    if list_unexpected_rubrics([rubric]):
        aside.append(UNEXPECTED_SIDE_NOTES[rubric.polarity])

    # nothing is known of its thumbs: there are no shares to print
    if rubric.worth is None:
        return [
            *stands,
            "its thumbs were not measured: learned without each conversation, it didn't come up",
            *aside,
        ]

    # a standing says already how sure it is; only without one is a doubt named
    if stands:
        why = ""
    else:
        why = describe_doubt_about_rubric(rubric.worth, rubric.polarity).partition(":")[0]

    # signals and a circumstance, as far as it has them
    beside = filter(None, map(describe_signal_share, rubric.signals))
    if rubric.circumstance:
        along = [str(rubric.circumstance)]
    else:
        along = []

    doubts = [why] if why else []
    return [
        *stands,
        describe_thumb_shares_of_rubric(rubric.worth, rubric.standing),
        *along,
        *beside,
        *aside,
        *doubts,
    ]


ChangeKind = Literal["added", "gone", "turned round", "reworded", "moved", "same"]


WORD_CHANGE_FORMS = {"del": "[-{}-]", "ins": "{{+{}+}}"}
"""How words are marked that only the first text has, or only the second."""


@dataclass(frozen=True)
class RubricChange:
    """A rubric in two sets; None where a set hasn't got it."""

    before: ChosenRubric | None
    after: ChosenRubric | None

    @property
    def kind(self) -> ChangeKind:
        """Return what became of it."""
        if self.before is None or self.after is None:
            return "gone" if self.after is None else "added"
        if self.before.polarity != self.after.polarity:
            return "turned round"
        if self.before.text != self.after.text:
            return "reworded"
        # the same words in another place of the order have moved
        return "same" if self.steps[0] == self.steps[1] else "moved"

    @property
    def leads(self) -> bool:
        """Whether labels bear it out as a deed or an outcome, in the set after or else in the one before."""
        return (rubric := self.after or self.before) is not None and rubric.headlined

    @property
    def steps(self) -> tuple[int | None, int | None]:
        """Return as which number it was chosen in each set."""
        first, second = (
            rubric.choice.step if rubric and rubric.choice else None
            for rubric in (self.before, self.after)
        )
        return first, second

    @property
    def words(self) -> list[MarkedText]:
        """Return the words of both, marked where they differ."""
        return diff_words(
            self.before.text if self.before else "",
            self.after.text if self.after else "",
        )

    @property
    def marked(self) -> str:
        """Return the words of both, those that differ in brackets."""
        # words in one set only are all new or all gone: marks would say nothing
        if self.before and self.after:
            forms = WORD_CHANGE_FORMS
        else:
            forms = {}

        return " ".join(forms.get(part.kind, "{}").format(part.text) for part in self.words)


@dataclass(frozen=True)
class RubricSetDifference(Result):
    """The differences of two rubric sets.

    Attributes:
        changes: One a rubric: those of both sets, then what only the first has, then what only the
            second has.
    """

    before: RubricSet
    after: RubricSet
    changes: tuple[RubricChange, ...]

    @property
    def counts(self) -> dict[str, int]:
        """Return how many rubrics became what."""
        kinds = [change.kind for change in self.changes]
        counts: dict[str, int] = {}
        for kind in dict.fromkeys(kinds):
            counts[kind] = kinds.count(kind)

        return counts

    def told(self) -> TerminalLines:
        """Yield figures, then the rubrics that differ."""
        for name, rubric_set in (("before", self.before), ("after", self.after)):
            if rubric_set.held_out:
                auc = f"{rubric_set.held_out.auc}"
            else:
                auc = "nothing held out"

            yield (
                f"{name}: {format_count(len(rubric_set.rubrics), 'rubric')}, θ "
                f"{rubric_set.theta:.2f}, held-out AUC {auc}"
            )

        yield ", ".join(f"{number} {kind}" for kind, number in self.counts.items())
        for change in self.changes:
            rubric = change.after or change.before
            assert rubric is not None, "one of the two sets has it"
            if change.kind != "same":
                about = [change.kind, SIDE_HEADINGS[rubric.polarity].lower(), f"id {rubric.id}"]
                yield make_rubric_line(change.marked, about)

    def as_json(self) -> JsonDict:
        sides = {"before": self.before, "after": self.after}
        figures = {}
        for name, side in sides.items():
            figures[name] = {
                "rubrics": len(side.rubrics),
                "theta": side.theta,
                "held_out": make_figures_json(side.held_out) or None,
            }

        rows = [
            {
                "kind": change.kind,
                "id": (change.after or change.before).id,  # type: ignore[union-attr]
                "before": change.before and change.before.text,
                "after": change.after and change.after.text,
                "steps": change.steps,
            }
            for change in self.changes
        ]
        return figures | {"counts": self.counts, "changes": rows}


def diff_sets(
    before: Path | RubricSet,
    after: Path | RubricSet,
    *,
    run: RunOptions | None = None,
) -> RubricSetDifference:
    """Compare two rubric sets, with what people edited in each.

    Raises:
        BadRubrics: A file can't be read.
    """
    # arrays are not read: a difference is one of words and figures
    first, second = (
        read_rubric_set(rubrics, get_store_folder(run), arrays=False) for rubrics in (before, after)
    )
    return RubricSetDifference(
        first,
        second,
        tuple(pair_rubrics(first.rubrics, second.rubrics)),
    )


def pair_rubrics(
    before: Sequence[ChosenRubric], after: Sequence[ChosenRubric]
) -> list[RubricChange]:
    """Pair rubrics by id, else by event and topic; what only one has comes last."""
    # the same id is the same rubric, even in other words
    new = {rubric.id: rubric for rubric in after}
    pairs = {}
    for rubric in before:
        if rubric.id in new:
            pairs[rubric.id] = new[rubric.id]

    # among rubrics without a pair, the same meaning makes one; each is used once
    paired_ids = {rubric.id for rubric in pairs.values()}
    same = {}
    for rubric in after:
        if rubric.id not in paired_ids:
            same[make_meaning_key(rubric)] = rubric

    for rubric in before:
        if (
            rubric.id not in pairs
            and (same_meaning := same.pop(make_meaning_key(rubric), None)) is not None
        ):
            pairs[rubric.id] = same_meaning

    paired = {rubric.id for rubric in pairs.values()}
    # those of both sets in the order of the first, then what is gone, then what is new
    both = []
    for rubric in before:
        if rubric.id in pairs:
            both.append(RubricChange(rubric, pairs[rubric.id]))

    gone = []
    for rubric in before:
        if rubric.id not in pairs:
            gone.append(RubricChange(rubric, None))

    added = []
    for rubric in after:
        if rubric.id not in paired:
            added.append(RubricChange(None, rubric))

    return [
        *both,
        *gone,
        *added,
    ]


def make_meaning_key(rubric: ChosenRubric) -> Hashable:
    """Return a key that rubrics with the same event, topic and side share."""
    # without an event behind it, only the id says what a rubric means
    source = parse_event_source(rubric.source)
    if source is None:
        return rubric.id

    # a topic's number differs from set to set: its name doesn't
    topic = ""
    if source.event.topic >= 0:
        topic = source.topics.topics[source.event.topic].name

    return source.event.pattern, topic, source.event.detail, rubric.polarity


def diff_words(before: str, after: str) -> list[MarkedText]:
    """Compare two texts word by word; what only the first has is `del`, only the second `ins`."""
    old = before.split()
    new = after.split()
    marked = []
    # `autojunk` would ignore words that are frequent in long texts
    for kind, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "equal":
            marked.append(MarkedText(" ".join(old[a:b])))
            continue
        # replaced words are both: gone first, then new
        marked += [MarkedText(" ".join(old[a:b]), "del")] if b > a else []
        marked += [MarkedText(" ".join(new[c:d]), "ins")] if d > c else []

    return marked


@dataclass(frozen=True)
class EditedRubricSet(Result):
    """A rubric set with what people edited.

    Attributes:
        path: Of the set.
        changed: The id of the rubric that was added, removed or reworded; empty where the set was
            only read.
        judged: By what a reworded rubric is judged now, in words.
    """

    path: Path
    rubrics: RubricSet
    changed: str = ""
    judged: str = ""

    @property
    def edits(self) -> Path:
        """Return the file that people edit."""
        return get_edits_path(self.path)

    @property
    def rows(self) -> list[tuple[ChosenRubric, bool]]:
        """Return all rubrics, each with whether it is on."""
        rubrics_off = []
        for off_rubric in self.rubrics.off:
            rubrics_off.append((off_rubric, False))

        return [(rubric, True) for rubric in self.rubrics.rubrics] + rubrics_off

    def told(self) -> TerminalLines:
        """Yield where a change was written; without a change the rubrics, and whether changes wait for a refit."""
        if self.changed:
            yield f"{self.changed}: wrote {self.edits}"
            if self.judged:
                yield self.judged
            return

        # by side, and last what thumbs contradict, whatever its side
        groups: dict[str, list[tuple[ChosenRubric, bool]]] = {
            heading: [] for heading in (*SIDE_HEADINGS.values(), CONTRADICTED_HEADING)
        }
        for rubric, on in self.rows:
            groups[
                CONTRADICTED_HEADING
                if do_thumbs_contradict_rubric(rubric)
                else SIDE_HEADINGS[rubric.polarity]
            ].append((rubric, on))

        for heading, listed in groups.items():
            if listed:
                yield TerminalLine(f"{heading}:", "bold")
            for rubric, on in listed:
                # under the headings of a side, the side need not be said again
                side = SCORE_DIRECTIONS[rubric.polarity] if heading == CONTRADICTED_HEADING else ""
                by = f"judge {rubric.answered_by}" if rubric.answered_by else ""
                state = (
                    side,
                    by,
                    "edited" * is_edited(rubric),
                    "" if on else "off",
                    rubric.note,
                    f"id {rubric.id}",
                )
                yield make_rubric_line(
                    rubric.text,
                    [*describe_rubric_figures(rubric), *filter(None, state)],
                )

        if self.rubrics.tone is not None:
            yield self.rubrics.tone.told

        yield f"Judge: {self.rubrics.judge.name}"
        # an edit counts only after the next fit
        if self.rubrics.edited:
            again = f"pollex refit LOGS --rubrics {self.path}"
            yield TerminalLine(f"Edited since θ was fitted; fit it again: {again}", "yellow")

    def as_json(self) -> JsonDict:
        rubric_rows = []
        for r, on in self.rows:
            rubric_rows.append(
                {
                    "id": r.id,
                    "text": r.text,
                    "polarity": r.polarity,
                    "on": on,
                    "note": r.note,
                    "edited": is_edited(r),
                }
            )

        return self.of("edits", "refit=rubrics.edited", "changed", "judged") | {
            "rubrics": rubric_rows,
            "tone": self.rubrics.tone and self.rubrics.tone.told,
        }


def is_edited(rubric: ChosenRubric) -> bool:
    """Tell whether a rubric's words are not those that θ was fitted for."""
    return rubric.text != rubric.written


def list_rubrics(rubrics: Path, run: RunOptions | None = None) -> EditedRubricSet:
    """Read a rubric set with what people edited.

    Raises:
        BadRubrics: The set or its edits can't be read.
    """
    return EditedRubricSet(rubrics, read_rubric_set(rubrics, get_store_folder(run), arrays=False))


def add_rubric(
    rubrics: Path,
    text: str,
    polarity: Polarity,
    *,
    note: str = "",
    progress: Progress | None = None,
) -> EditedRubricSet:
    """Add a rubric in a person's words.

    Raises:
        WrongUse: It has no words, or the set has it already.
    """
    new = EditEntry(text=_require_words(text), polarity=polarity, note=note)
    # the same words have the same name, so that a second copy is seen here
    entries = _list_entries(rubrics)
    if any(entry.name == new.name for entry in entries):
        raise WrongUse(
            f"the set has this rubric already: {new.name}",
            where=str(rubrics),
            hint="reword that one",
        )

    return _write_edits(
        rubrics,
        [*entries, new.model_copy(update={"id": new.name})],
        new.name,
        progress,
    )


def remove_rubric(
    rubrics: Path,
    rubric: str,
    *,
    progress: Progress | None = None,
) -> EditedRubricSet:
    """Take a rubric out of a set.

    Raises:
        WrongUse: The set has no such rubric, or no other.
    """
    id_ = _find_entry(rubrics, rubric)
    # a set without an active rubric can't score
    rest = []
    for entry in _list_entries(rubrics):
        if entry.name != id_:
            rest.append(entry)

    if not any(entry.on for entry in rest):
        raise WrongUse(
            "it is the only active rubric",
            where=str(rubrics),
            hint="add another one first",
        )

    return _write_edits(rubrics, rest, id_, progress)


def reword_rubric(
    rubrics: Path,
    rubric: str,
    text: str,
    *,
    note: str | None = None,
    judge_anew: bool = False,
    store: Path | None = None,
    progress: Progress | None = None,
) -> EditedRubricSet:
    """Give a rubric other words; its id stays.

    Args:
        judge_anew: True gives up by what it was judged; then it is judged by its new words, where
            that can be.
        store: Where the conversations are on which figures of both are shown.

    Raises:
        WrongUse: The set has no such rubric, or there are no words.
    """
    id_ = _find_entry(rubrics, rubric)
    words = _require_words(text)
    changes: dict[str, Any] = {"text": words} | ({} if note is None else {"note": note})
    changes |= {"judge_anew": True} if judge_anew else {}
    # only this entry changes; the order of the file stays
    worded = []
    for entry in _list_entries(rubrics):
        worded.append(entry.model_copy(update=changes) if entry.name == id_ else entry)

    # what it is judged by is told last, as the edits must be read anew for it
    edited_set = _write_edits(rubrics, worded, id_, progress)
    return replace(edited_set, judged=_judge_edited_rubric(edited_set, store))


def _judge_edited_rubric(edited_set: EditedRubricSet, store: Path | None) -> str:
    rubric = next(
        listed_rubric
        for listed_rubric, _ in edited_set.rows
        if listed_rubric.id == edited_set.changed
    )
    # judged anew: figures of both wordings, if the store can give them
    if rubric.anew:
        return (
            _preview_edited_set(edited_set, store)
            or "It is judged anew; `pollex refit` shows AUC and shares before and after"
        )
    if rubric.alone is None or rubric.alone.by in ("model", "likeness"):  # these read its words
        return ""
    return f"It is still judged by {JUDGED_BY_IN_WORDS[rubric.alone.by]}; --judge-anew gives that up for its new words"


def _preview_edited_set(edited_set: EditedRubricSet, store: Path | None) -> str:
    # the set as it was before any edit
    before = RubricSet.load(edited_set.path, arrays=False, edits=False)
    if store is None or not store.is_dir() or not before.judge.built_in:
        return ""

    with Store.open(store, read_only=True) as opened:
        # the run that the set came from may be gone from the store
        if not opened.rows("SELECT id FROM runs WHERE id = ?", [before.run]):
            return ""
        changed_rubrics = []
        # only the reworded rubric is judged again
        for rubric in edited_set.rubrics.rubrics:
            if rubric.id == edited_set.changed:
                changed_rubrics.append(rubric)

        previewed = run_coroutine_to_end(
            preview_edits(
                opened,
                before.run,
                before,
                changed_rubrics,
                np.random.default_rng(0),
            )
        )

    return " ".join(change.told for change in previewed.changed)


def _list_entries(path: Path) -> tuple[EditEntry, ...]:
    rubric_set = RubricSet.load(path, arrays=False)
    return make_editable_rubric_entries(rubric_set.rubrics, rubric_set.off)


def _write_edits(
    path: Path,
    entries: Sequence[EditEntry],
    id_: str,
    progress: Progress | None,
) -> EditedRubricSet:
    write_file(
        get_edits_path(path),
        write_edits_toml(entries, path.name).encode(),
        named=False,
    )
    # read again from disk, so that what is returned is what was written
    edited_set = EditedRubricSet(path, RubricSet.load(path, arrays=False), id_)
    if progress is not None and edited_set.rubrics.edited:
        progress.note(f"It counts once it is fitted: pollex refit LOGS --rubrics {path}")

    return edited_set


def _find_entry(path: Path, rubric: str) -> str:
    names = [entry.name for entry in _list_entries(path)]
    # a whole id wins over those that merely begin like it
    near = [id_ for id_ in names if id_ == rubric] or [
        id_ for id_ in names if rubric and id_.startswith(rubric)
    ]
    if len(near) != 1:
        what = f"{'several rubrics begin' if near else 'no rubric begins'} with {rubric!r:.60}"
        raise WrongUse(
            what,
            where=str(path),
            hint=f"`pollex rubrics list {path}` has the ids",
        )

    return near[0]


def _require_words(text: str) -> str:
    if not (words := " ".join(text.split())):
        raise WrongUse(
            "the rubric has no text",
            hint="write a statement that is true or false of a conversation",
        )
    if len(words) > MAX_RUBRIC_CHARACTERS:
        what = f"the rubric has {len(words):,} characters"
        raise WrongUse(what, hint=f"write one sentence, {MAX_RUBRIC_CHARACTERS:,} at most")

    return words


@dataclass(frozen=True)
class LintResult(Result):
    """The marks on a rubric set, in the order of its rubrics.

    Attributes:
        texts: By id, what the marked rubrics say.
        worded_by: The model whose words are proposed; empty for words by rule.
        unanswered: Why the model gave no words; empty where it did, or wasn't asked.
    """

    marks: tuple[LintMark, ...]
    texts: dict[str, str]
    n: int
    worded_by: str = ""
    unanswered: str = ""

    @property
    def complete(self) -> bool:
        """Return whether every rubric was looked at, and the model answered if it was asked."""
        return not self.unanswered

    def told(self) -> TerminalLines:
        """Yield each mark under its rubric."""
        # each rubric once, in the order of its first mark
        marked = dict.fromkeys(mark.id for mark in self.marks)
        by = ""
        if self.worded_by and not self.unanswered:
            by = f"; better words by {self.worded_by}"

        yield f"{len(marked)} of {format_count(self.n, 'rubric')} marked{by}"
        # words by rule take the place of a model's, which a reader should know
        if self.unanswered:
            why = f"{self.worded_by} gave no better words ({self.unanswered})"
            yield TerminalLine(f"{why}; those below are by rule", "yellow")

        for id_ in marked:
            yield f"{id_}  {self.texts[id_]}"
            for mark in self.marks:
                if mark.id == id_:
                    yield TerminalLine(f"  {mark.why}", "yellow")
                    for better in mark.better:
                        yield TerminalLine(f"  better: {better}", "green")

    def as_json(self) -> JsonDict:
        marks = []
        for mark in self.marks:
            marks.append(asdict(mark) | {"text": self.texts[mark.id]})

        return {"rubrics": self.n, "marks": marks} | (
            self.of("worded_by", "unanswered") if self.worded_by else {}
        )


def lint_rubrics(
    rubrics: Path | RubricSet,
    *,
    run: RunOptions | None = None,
    model: ModelOptions | None = None,
    progress: Progress | None = None,
) -> LintResult:
    """Mark rubrics with two parts, ambiguous words or presuppositions, twins, and constant answers.

    Args:
        run: Where replies and vectors are kept.
        model: Who words marked sentences better; None: rules, where one applies.

    Raises:
        BadRubrics: The set can't be read.
    """
    # marks on words and answers need one rubric each, marks on twins need all
    rubric_set = read_rubric_set(rubrics, get_store_folder(run), arrays=False)
    reasons = {reason.id: reason for reason in rubric_set.reasons}
    marks: list[LintMark] = []
    for rubric in rubric_set.rubrics:
        marks.extend(
            (*find_lint_in_rubric_sentence(rubric), *find_lint_in_rubric_answers(rubric, reasons))
        )

    embedder = make_embedder(run.store if run is not None and run.store.is_dir() else None)
    marks += find_lint_in_rubric_pairs(
        rubric_set.rubrics,
        find_near_pairs(rubric_set.rubrics, embedder),
    )
    # in the order of the set, whatever kind of mark it is
    order = {rubric.id: place for place, rubric in enumerate(rubric_set.rubrics)}
    ordered = tuple(sorted(marks, key=lambda mark: order[mark.id]))
    result = LintResult(
        ordered,
        {rubric.id: rubric.text for rubric in rubric_set.rubrics},
        len(rubric_set.rubrics),
    )
    if model is None or model.name is None:
        return result

    # a model words the marked rubrics better
    with open_workspace(run or RunOptions(), progress or NullProgress()) as opened:
        return opened.run(_lint_by_model(opened, rubric_set, result, model))


async def _lint_by_model(
    opened: Workspace,
    rubric_set: RubricSet,
    result: LintResult,
    model: ModelOptions,
) -> LintResult:
    from pollex.agents.llm.judge import LlmJudge
    from pollex.agents.llm.rewording import ask_for_better_words

    # only marks on words can be mended by other words; the model is told what they are
    marked = []
    for rubric in rubric_set.rubrics:
        if find_lint_in_rubric_sentence(rubric):
            marked.append(rubric)

    why = {}
    for rubric in marked:
        why[rubric.id] = [mark.why for mark in find_lint_in_rubric_sentence(rubric)]

    async with await build_run_roles(model, rubric_set.domain, opened.store) as staff:
        opened.announce(staff)
        judge = staff.roles.judge
        assert isinstance(judge, LlmJudge), "a model was named"
        better = await ask_for_better_words(judge.asker, marked, why)

    if isinstance(better, Unanswered):
        return replace(
            result,
            worded_by=model.name or "",
            unanswered=f"{better.outcome}: {better.detail}",
        )

    # the model's words replace those by rule, only where it was asked about this mark
    better_marks = []
    for mark in result.marks:
        better_marks.append(
            replace(mark, better=better.get(mark.id, mark.better))
            if mark.why in why.get(mark.id, ())
            else mark
        )

    marks = tuple(better_marks)
    return replace(result, marks=marks, worded_by=model.name or "")


def find_near_pairs(rubrics: Sequence[Rubric], embedder: Embedder) -> list[tuple[int, int]]:
    """Return the places of rubrics with near texts, except those different by design."""
    # embeddings have length 1: their products are cosines `[rubric, rubric]`
    vectors = embedder.embed([rubric.text for rubric in rubrics])
    cosines = vectors @ vectors.T
    # different events are different rubrics, even in nearly the same words
    by_design = []
    for rubric in rubrics:
        by_design.append(
            rubric.source if rubric.source.startswith(DISTINCT_SOURCE_PREFIXES) else ""
        )

    pairs: list[tuple[int, int]] = []
    for j in range(len(rubrics)):
        for i in range(j):
            if cosines[i, j] >= MIN_COSINE_OF_DUPLICATES and not (
                by_design[i] and by_design[j] and by_design[i] != by_design[j]
            ):
                pairs.append((i, j))

    return pairs
