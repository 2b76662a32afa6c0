"""The parts of a rubric set, as they stand in its file; the window with a guarantee in words, too.

Of the rubrics by which a conversation is scored for that window only the choice is made without the
conversation: their texts are extracted from all training conversations. What that does to the
promise where a model extracts is not measured.
"""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, field_serializer, model_validator

from pollex.calibration.candidates import (
    DECORRELATED_NETSAT_NAME,
    NETWORK_STARTING_MODEL_NAME,
    CandidateScore,
    LabelsPoint,
)
from pollex.measures.classification import Assessment
from pollex.measures.intervals import Figure, compute_clopper_pearson_interval
from pollex.rubrics.answers import ScaleName
from pollex.rubrics.judge_settings import JudgeSettings
from pollex.rubrics.rubric import PERSON_SOURCE, Polarity, Quote, Rubric, make_content_id
from pollex.selection.threshold import Calibration, GuaranteedWindow, WindowSide
from pollex.text import format_count, round_estimate


class Record(BaseModel):
    """Base of all records: unknown fields are errors, to detect typing errors."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class AdaptedRubric(Record):
    """What became of a general rubric when a model adapted it to a domain.

    Attributes:
        before: Its words before.
        text: Its words now, where it was reworded.
        why: The model's reason, in a few words.
    """

    before: str
    polarity: Polarity
    does: Literal["kept", "reworded", "left out"]
    text: str = ""
    why: str = ""

    def __str__(self) -> str:
        if self.text:
            words = f"“{self.before}” → “{self.text}”"
        else:
            words = f"“{self.before}”"

        return f"{self.does}: {words}" + (f" ({self.why})" if self.why else "")


class Choice(Record):
    """The choice of a rubric, with the losses at that step.

    Attributes:
        step: From 1, in the order of choice.
        loss: `−LC/(10·|R|) + α·LS` of the set with it in.
        correctness: LC of that set.
        sharpness: LS of that set.
        stability: Share of halves of the training conversations in which it is chosen.
    """

    step: int
    loss: float
    correctness: float
    sharpness: float
    stability: float | None = None


class CountedThumbs(Record):
    """Plain shares of thumbs down in all labeled conversations, which anybody can count.

    Attributes:
        holds: Share of conversations in which the rubric holds.
        there: Share of thumbs down where it holds.
        others: The same of those that it is compared with.
        same_occasion: The same where its occasion came up and it doesn't hold; None where the
            occasion always comes up, and in sets of before.
    """

    holds: Figure
    there: Figure
    others: Figure
    same_occasion: Figure | None = None


class RubricEvidence(Record):
    """Associations of a rubric with thumbs on conversations that it did not see, not causes.

    Attributes:
        holds: Share of conversations in which it holds: the answer is beyond the middle of the
            scale.
        down_with: Share of thumbs down where it holds.
        down_without: Share of thumbs down where it doesn't, in any other conversation.
        gap: By how much `down_with` and `down_without` differ, in the way that the rubric's side
            says, where all shares are shrunk for the rubric having been chosen by such shares;
            None where they are those of the sample.
        occasion: When it could hold at all, as it stands behind “when”; empty where only a judge
            knows it, or where that is always.
        came_up: Share of conversations in which that occasion came up; None where it always does,
            and in sets of before.
        down_within: Share of thumbs down where the occasion came up and the rubric doesn't hold;
            None likewise.
        compared: With which others it is told: with those of the same occasion where all labeled
            conversations have enough of these, `MIN_CONVERSATIONS_OF_SAME_OCCASION`, whatever their
            thumbs; else with all others.
        counted: What is counted in all labeled conversations, those that chose it too, with nothing
            shrunk; None in sets of before.
        neutral: Whether most answers where it holds are the middle option, only just above the
            middle on average: no finding.
    """

    holds: Figure
    down_with: Figure
    down_without: Figure
    gap: Figure | None = None
    occasion: str = ""
    came_up: Figure | None = None
    down_within: Figure | None = None
    compared: Literal["occasion", "elsewhere"] = "elsewhere"
    counted: CountedThumbs | None = None
    neutral: bool = False

    @property
    def down_others(self) -> Figure:
        """Share of thumbs down of those that it is compared with."""
        # those of the same occasion where these are enough, else all others
        within = self.down_within if self.compared == "occasion" else None
        return within or self.down_without


MIN_CONVERSATIONS_OF_SAME_OCCASION = 10
"""Conversations of the same occasion from which on a rubric is compared with these, each of another user."""


PROVEN_LEVEL, LIKELY_LEVEL = 0.05, 0.30
"""Adjusted p-values up to which a rubric is proven, or likely."""


class StandingRecord(Record):
    """How far labels bear a rubric out.

    Attributes:
        p: That its thumbs differ as its side says, by chance alone; adjusted for all rubrics that
            were looked at.
        n: Conversations with a thumb behind it.
        by: Which these are: `halvings` of those that it was learned from, the choice made anew on
            one half and tested on the other; the `held-out` ones; or `all`, where the rubrics were
            given and nothing was chosen.
        clear: Whether its thumbs differ beyond chance on conversations that a choice of it did not
            see, too.
    """

    p: float
    n: int
    by: Literal["halvings", "held-out", "all"]
    clear: bool = True

    @property
    def word(self) -> Literal["proven", "likely", "hint"]:
        """The standing in one word: a step lower where the difference isn't clear."""
        words: list[Literal["proven", "likely", "hint"]] = ["proven", "likely", "hint"]
        step = (self.p > PROVEN_LEVEL) + (self.p > LIKELY_LEVEL) + (not self.clear)
        return words[min(step, 2)]


class CircumstanceRecord(Record):
    """A circumstance that a rubric goes along with, and that may explain its difference as well.

    Attributes:
        name: As in `within each {name}`.
        over_all: Share of thumbs down where the rubric holds, minus that elsewhere.
        within: The same within strata of the circumstance, on average.
        turned: Whether it goes the other way there.
        strata: How many there are.
        itself: Whether the rubric measures the circumstance itself.
    """

    name: str
    over_all: float
    within: Figure
    turned: bool
    strata: int
    itself: bool = False

    def __str__(self) -> str:
        """Say what is left of the difference."""
        if self.itself:
            return f"measures the {self.name} itself, and says no more than that"

        low, value, high = (
            round(100 * (end or 0.0))
            for end in (self.within.low, self.within.value, self.within.high)
        )
        figures = f"{value:+d} points of thumbs down [{low:+d}, {high:+d}]"
        over_all = f"over all {round(100 * self.over_all):+d}; n = {self.within.n}"
        if self.turned:
            return (
                f"goes along with the {self.name}: among conversations that are alike in it, it goes the other way "
                f"({figures}, {over_all})"
            )
        return (
            f"can't be told apart from the {self.name}: among conversations that are alike in it, the "
            f"difference is {figures} ({over_all})"
        )


class FamilyMember(Record):
    """A narrower or near form of a rubric, which isn't in the set by itself.

    Attributes:
        among: Conversations of the family's `n` in which it holds; where a model merged it, that
            its reasons are of.
        quote: Of one of them; None in sets of before.
        source: What it is found by; empty where nobody judged it by itself, and in sets of before.
        worth: On the conversations that it was learned from, as they are; None likewise.
        within: The same on those alone in which the whole holds, beside the rest of them; None
            where it makes no difference there.
    """

    id: str
    text: str
    among: int
    quote: Quote | None = None
    source: str = ""
    worth: RubricEvidence | None = None
    within: RubricEvidence | None = None

    @property
    def kind(self) -> str:
        """What finds it, whatever its object."""
        return get_detector_kind(self.source)

    @property
    def figures(self) -> str:
        """Its thumbs beside those of the rest of the whole, as counted where it was learned."""
        # its thumbs where the whole holds, and those of the rest of the whole
        there = self.within.down_with if self.within else None
        rest = self.within.down_without if self.within else None
        if there is None or rest is None or there.value is None or rest.value is None:
            count = format_count(self.among, "labeled conversation")
            return f"in {count}; thumbs there aren't known to differ"

        return (
            f"hint: {round(there.value * there.n)} of {there.n} thumbs down "
            f"({100 * there.value:.0f} %), of the other {rest.n} it is "
            f"{round(rest.value * rest.n)} ({100 * rest.value:.0f} %)"
        )


SIDES_IN_WORDS: dict[Polarity, str] = {
    "dsat": "more often where it goes wrong",
    "sat": "more often where it goes well",
}
"""The side of a rubric, where no heading says it."""
NESTED_FINDING_PREFIX = "Among these"
"""How a case is introduced that makes a difference within a finding."""


class Family(Record):
    """What a rubric that leads mostly consists of.

    Attributes:
        n: Conversations that it was learned from in which it holds.
        members: Those that hold most often there first.
        worth: Of the whole, on the same conversations as that of its members; None in sets of
            before.
    """

    n: int
    members: tuple[FamilyMember, ...]
    worth: RubricEvidence | None = None


def get_detector_kind(source: str) -> str:
    """Return by what detector a rubric is found, without its object."""
    return source.partition(" ")[0]


def compute_effect_of_rubric_on_thumbs(worth: RubricEvidence | None, side: Polarity) -> float:
    """Return the difference of the shares of thumbs down on a side, times how often it holds; 0 if not measured."""
    if worth is None or worth.down_with.value is None or worth.down_others.value is None:
        return 0.0

    # what goes wrong has more thumbs down, what goes well fewer
    sign = 1 if side == "dsat" else -1
    return sign * (worth.down_with.value - worth.down_others.value) * (worth.holds.value or 0.0)


JudgedBy = Literal["event", "signal", "words", "likeness", "model", "distilled"]
"""By what a rubric is judged. Likeness of turns to its words is weak."""


class RubricAlone(Record):
    """Figures of a rubric alone on training conversations.

    Attributes:
        spread: Standard deviation of what its answers count as, of 10.
        commonest: The answer that is given most often.
        share: Of conversations with that answer.
        auc: Of its values, larger where it speaks for a thumb up.
    """

    by: JudgedBy
    spread: float
    commonest: str
    share: Figure
    auc: Figure


class Segment(Record):
    """Held-out conversations on one topic.

    Attributes:
        down: Share of thumbs down among them.
        rest: Likewise of all others.
        examples: Ids of three of them, first those that went as the topic does: worse than the
            rest, or better.
    """

    topic: str
    down: Figure
    rest: Figure
    examples: tuple[str, ...]


class SignalShare(Record):
    """How often a further signal happened where a rubric held, and elsewhere, on held-out conversations that have it.

    Attributes:
        signal: As the user named it: `retried:down`.
    """

    signal: str
    there: Figure
    elsewhere: Figure


class CommentFinding(Record):
    """What comments of one side of the thumb name.

    Attributes:
        text: In the words that most of them have, in lower case.
        share: Of that side's comments, those that name it.
        other: Likewise of the other side's.
        quotes: Of three comments.
    """

    text: str
    polarity: Polarity
    share: Figure
    other: Figure
    quotes: tuple[Quote, ...]


MIN_OVERLAP_OF_NEARLY_SAME_RUBRICS = 0.75
"""Share of the conversations in which either of two rubrics holds, from which on these are nearly the same ones."""

MIN_CONTAINED_SHARE_OF_PARTIAL_RUBRIC = 0.9
"""Share of a rubric's conversations in which its twin holds, from which on they are a part of the twin's."""


class TwinOverlap(Record):
    """In how many labeled conversations a rubric and the one that it is shown under hold.

    Attributes:
        both: In which both hold.
        own: In which the rubric holds.
        twin: In which the other one holds.
        finding: Text of the other one, where it stands elsewhere; empty where it stands above.
    """

    both: int
    own: int
    twin: int
    finding: str = ""

    @property
    def beside(self) -> str:
        """Say of a finding that stands elsewhere in how many of these conversations it holds."""
        finding = self.finding.removesuffix(".")
        return f"In {self.both:,} of its {format_count(self.own, 'conversation')}, “{finding}” holds, too."

    @property
    def words(self) -> str:
        """How the rubric is introduced beneath its twin: what is counted, and not what either means."""
        either = self.own + self.twin - self.both
        if not self.both:
            return "in none of these conversations:"
        if self.both == either:
            return f"in the same {format_count(self.both, 'conversation')}:"
        if self.both >= MIN_OVERLAP_OF_NEARLY_SAME_RUBRICS * either:
            return f"in nearly the same conversations ({self.both} of the {either} of either):"
        if self.both >= MIN_CONTAINED_SHARE_OF_PARTIAL_RUBRIC * self.own:
            return f"in a part of these ({self.both} of the {self.twin}):"
        return f"in partly the same conversations ({self.both} of its {self.own}):"


MAX_FAMILY_MEMBERS = 3


class ChosenRubric(Rubric):
    """A rubric of the set; one added by a person needs only text and polarity.

    Attributes:
        worth: On held-out conversations; None where nothing was held out, and for a rubric that a
            person added.
        written: The text that θ was fitted for; differs from `text` once a person re-worded it;
            empty for a new one, and for one that is to be judged anew.
        choice: None for a rubric that a person added.
        signals: Further signals beside the label; shown, and never summed into it.
        note: What a person wrote beside it.
        alone: How it does by itself; None before it was fitted.
        unexpected: Whether its words contradict its side, by what is known of its event or signal
            in general.
        twin_of: Id of the rubric that it stands under in the headline list; empty for most.
        overlap: With the one that it is shown under; None without such, and in sets of before.
        explained_by: Of a phrase, id of the finding in whose conversations it is said, or isn't,
            and without which it makes no difference; empty for most.
        same_fact_as: Id of the finding that holds in the same conversations or in all others, and
            beneath which it is named; empty for most.
        never_came_up: Share of training conversations in which its occasion never came up; None
            where nobody says so.
        standing: None in files of before, and where no labels could tell.
        family: None where nothing else is of its kind.
        yields: Whether it is built-in, not proven, and stands in a set beside a model's, which
            lead.
        circumstance: What it goes along with, and which explains its difference; None for most.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str = ""
    written: str = ""
    choice: Choice | None = None
    worth: RubricEvidence | None = None
    signals: tuple[SignalShare, ...] = ()
    note: str = ""
    alone: RubricAlone | None = None
    unexpected: bool = False
    twin_of: str = ""
    overlap: TwinOverlap | None = None
    explained_by: str = ""
    same_fact_as: str = ""
    never_came_up: Figure | None = None
    standing: StandingRecord | None = None
    family: Family | None = None
    yields: bool = False
    circumstance: CircumstanceRecord | None = None

    @property
    def stands(self) -> Literal["proven", "likely", "hint", "unknown"]:
        """Its standing in one word."""
        return self.standing.word if self.standing else "unknown"

    @property
    def cases(self) -> tuple[FamilyMember, ...]:
        """What its family consists of, what explains most thumbs first."""
        members = self.family.members if self.family else ()
        return tuple(
            sorted(
                members,
                key=lambda member: -compute_effect_of_rubric_on_thumbs(member.worth, self.polarity),
            )
        )

    @property
    def lead(self) -> FamilyMember | None:
        """The form that explains most of what a deed does, by thumbs; None where none does."""
        # what the whole family explains, against which a single form is measured
        if self.family:
            whole = compute_effect_of_rubric_on_thumbs(self.family.worth, self.polarity)
        else:
            whole = 0.0

        # a form that the same kind of detector finds
        first = next(
            (case for case in self.cases if case.kind == get_detector_kind(self.source)),
            None,
        )
        if first is None or self.outcome or whole <= 0:
            return None
        # more than half of what the whole explains
        if 2 * compute_effect_of_rubric_on_thumbs(first.worth, self.polarity) > whole:
            return first
        return None

    @property
    def apart(self) -> tuple[FamilyMember, ...]:
        """Deeds of another kind that make a difference among the conversations in which this holds."""
        others = []
        for case in self.cases:
            if case.within and case.kind != get_detector_kind(self.source):
                others.append(case)

        return tuple(others)[:MAX_FAMILY_MEMBERS]

    @property
    def best_quotes(self) -> tuple[Quote, ...]:
        """Its quotes, that of the case that it begins with first."""
        first = self.lead.quote if self.lead else None
        if first:
            other_quotes = []
            for quote in self.quotes:
                if quote != first:
                    other_quotes.append(quote)

            return (first, *other_quotes)
        return self.quotes

    @property
    def entry(self) -> tuple[str, str]:
        """One sentence in two parts: what is borne out, and of what it mostly consists, with counts, or nothing.

        Where one form explains most, it is the first part, and the second one names the whole. Of
        an outcome the second part names the finding that holds in most of its conversations.
        """
        if self.outcome and self.overlap and self.overlap.finding:
            return self.text, self.overlap.beside
        if self.family is None or not self.family.members:
            return self.text, ""
        if self.outcome:
            return self.text, ""

        # narrower forms of the same kind, and those that nobody judged
        first = self.lead
        alike_cases = []
        for case in self.cases:
            if case is not first and case.kind in ("", get_detector_kind(self.source)):
                alike_cases.append(case)

        alike = alike_cases[:MAX_FAMILY_MEMBERS]
        if first is not None:
            whole = f"“{self.text.removesuffix('.')}”"
            return first.text, f"This explains most of the wider finding {whole}."
        if not alike:
            return self.text, ""

        most, *others = alike
        # the first holds in more than half of the family's conversations
        is_most = 2 * most.among > self.family.n
        if most.kind and not is_most:
            return self.text, ""

        how = "mostly" if is_most else "among others"
        counts = [
            f"{format_count(most.among, 'conversation')}",
            *(str(case.among) for case in others),
        ]
        parts = []
        for case, n in zip(alike, counts, strict=True):
            parts.append(f"“{case.text.removesuffix('.')}” ({n})")

        return f"{self.text.removesuffix('.')}:", f"{how} {', '.join(parts)}."

    @property
    def deeds(self) -> tuple[FamilyMember, ...]:
        """What happens in some of the conversations that end so, without a clear difference to the rest of them."""
        members = self.family.members if self.family else ()
        events = []
        for case in members:
            if case.kind.startswith("event:") and not case.within:
                events.append(case)

        return tuple(events)[:MAX_FAMILY_MEMBERS]

    @property
    def plain(self) -> Rubric:
        """The rubric alone, without what is known of it."""
        return Rubric.model_validate(self.model_dump(include=set(Rubric.model_fields)))

    @property
    def anew(self) -> bool:
        """Whether a person gave up how it was judged, which counts once it is fitted; its figures are of before."""
        return self.source == PERSON_SOURCE and not self.written and self.alone is not None

    @property
    def headlined(self) -> bool:
        """Whether it is shown as a finding: a deed or an outcome that labels bear out."""
        shown = self.leads and not (self.unexpected or self.yields or self.circumstance)
        return shown and not self.unsure and self.stands != "hint"

    @model_validator(mode="before")
    @classmethod
    def _with_id(cls, data: object) -> object:
        if isinstance(data, dict) and not data.get("id") and "text" in data:
            data = {**data, "id": make_content_id(str(data.get("polarity", "")), str(data["text"]))}
        return data


class DroppedRubric(Record):
    """A rubric of the pool that is not in the set.

    Attributes:
        reason: In words: what it was a duplicate of, or which rubric was chosen before it.
        duplicate_of: Id of the rubric that it went into.
        loss: Of the set with it in, at the last step at which its kind was open; None for
            duplicates.
    """

    id: str
    text: str
    polarity: Polarity
    support: int
    reason: str
    duplicate_of: str | None = None
    loss: float | None = None
    stability: float | None = None


class Baseline(Record):
    """Figures of a simpler method on the same split.

    Attributes:
        advantage: AUC of the rubrics minus that of the baseline, with its interval.
        probability_ahead: AUC of the set's probability minus that of the baseline; None in sets of
            before.
    """

    name: str
    training: Assessment | None = None
    held_out: Assessment | None = None
    advantage: Figure | None = None
    probability_ahead: Figure | None = None


EMBEDDED_JUDGE_KIND, LLM_JUDGE_KIND = "embedded", "llm"
"""Kinds of judges: the built-in one, and a model behind the gateway."""


class JudgeRecord(Record):
    """The judge that answers, and all that it has learned.

    Attributes:
        kind: `embedded`, or `llm`; see `runs.roles`.
        options: How it was asked, and is asked again.
        learned: `Judge.learned`.
    """

    kind: str
    name: str
    fingerprint: str
    options: JudgeSettings = Field(default_factory=JudgeSettings)
    learned: dict[str, object] = Field(default_factory=dict)

    @property
    def built_in(self) -> bool:
        """Whether it answers on this machine, without a model: nothing is sent or paid."""
        return self.kind != LLM_JUDGE_KIND

    @property
    def scale(self) -> ScaleName:
        """Scale on which rubrics are asked."""
        if self.kind == EMBEDDED_JUDGE_KIND:
            return "likert-domain"
        return self.options.scale

    @field_serializer("options")
    def _that_count(self, options: JudgeSettings) -> dict[str, object]:
        if not self.built_in:
            return options.model_dump(mode="json")

        # settings that such a judge heeds: others would be no facts of it
        heeded = {"embedding_model", "value"} | (
            set() if self.kind == EMBEDDED_JUDGE_KIND else {"scale"}
        )
        return options.model_dump(mode="json", include=heeded)


class DataRecord(Record):
    """The data of a set, with text hashes to recognize conversations seen before.

    Attributes:
        training_hashes: Of those that rubrics came from and were chosen on.
        fitted_hashes: Of those that only θ, window and probability are fitted to.
        folds: Where all conversations teach: in so many folds, figures are of what was learned
            without each. There `held_out` are those that were measured so.
    """

    fingerprint: str
    conversations: int
    positives: int
    negatives: int
    unlabeled: int
    not_scorable: int
    training: int
    held_out: int
    test_fraction: float
    seed: int
    training_hashes: tuple[str, ...] = ()
    fitted_hashes: tuple[str, ...] = ()
    folds: int = 0

    @property
    def thumbs(self) -> int:
        """Conversations with a thumb."""
        return self.positives + self.negatives

    @property
    def down(self) -> float:
        """Share of thumbs down."""
        return self.negatives / max(self.thumbs, 1)


class SpreadRecord(Record):
    """How NetSAT is spread over the conversations that a set was learned on.

    Attributes:
        edges: Between bins, ascending.
        counts: Conversations in each bin: one more than edges.
    """

    edges: tuple[float, ...]
    counts: tuple[int, ...]


class TurnRecord(Record):
    """A probability after so many turns of the user, when the conversation goes on or not.

    Attributes:
        turns: Of the user.
        n: Labeled conversations with so many turns or more.
        calibration: From NetSAT of what was said until then.
        log_loss: Of its probabilities, cross-fitted.
        share_log_loss: Of the share of thumbs up alone, cross-fitted too.
        gain: The difference.
    """

    turns: int
    n: int
    calibration: Calibration
    log_loss: Figure
    share_log_loss: Figure
    gain: Figure

    @property
    def helps(self) -> bool:
        """Whether the probabilities are better than the share alone, by more than chance."""
        return self.gain.low is not None and self.gain.low > 0


class ProbabilityFigures(Record):
    """Figures of the probabilities of one set of conversations.

    Attributes:
        log_loss: Mean −log p of the given thumb, in nats.
        brier: Mean (p − thumb)².
        smece: Smoothed calibration error; None if it was not measured.
        share_log_loss: Log-loss of the share of positive training conversations, as prediction for
            every conversation.
        share_brier: Brier score of that share.
        gain: `share_log_loss` minus `log_loss`.
    """

    n: int
    log_loss: Figure
    brier: Figure
    smece: Figure | None = None
    share_log_loss: Figure
    share_brier: Figure
    gain: Figure


class GradeRow(Record):
    """Figures of a model of grades, in the scale's own units."""

    name: str
    n: int
    rmse: Figure
    pearson: Figure


class RatingRecord(Record):
    """The model of the grades that people gave.

    Attributes:
        scales: Grades by question; the first is the one that is predicted, the others are learned
            beside it.
        chosen: Which of those compared.
        why: Why, in a sentence.
        labels: Grades that it was fitted on.
        compared: Cross-fitted figures.
        held_out: Of the chosen one; None where nothing was held out.
        reliability: Mean predicted grade, mean given grade and count in fifths of the cross-fitted
            predictions.
        facts: See `calibration.storage.CalibratorFiles`; its arrays lie beside those of the model of thumbs.
    """

    scales: dict[str, tuple[float, ...]]
    chosen: str
    why: str
    labels: int
    compared: tuple[GradeRow, ...] = ()
    held_out: GradeRow | None = None
    reliability: tuple[tuple[float, float, int], ...] = ()
    facts: dict[str, object]

    @property
    def question(self) -> str:
        """Name of the rated question."""
        return next(iter(self.scales))


class StarterRecord(Record):
    """A set that was learned elsewhere, kept inside the one that it helps.

    Attributes:
        source: Name of its file.
        rubrics: Its rubrics, their ids with `STARTER_PREFIX`.
        never: What "Never came up" counts as, by rubric id.
        weights: What a point of either NetSAT counts for, the set's own and the starter's, in the
            model to begin with.
        auc: Of the set alone (`own`), of the starter alone (`starter`), and of both (`both`).
        measured_on: Which conversations these figures are of.
        helps: Whether both have a larger area than the set alone.
    """

    source: str
    rubrics: tuple[ChosenRubric, ...]
    judge: JudgeRecord
    theta: float
    never: dict[str, float] = Field(default_factory=dict)
    weights: tuple[float, float]
    auc: dict[str, Figure]
    measured_on: str
    helps: bool


class CalibratorRecord(Record):
    """The model of the probability; its arrays are in a file with the recorded hash.

    Attributes:
        chosen: Which of those compared.
        why: Why, in a sentence; empty in sets of before.
        compared: None where there were too few conversations to compare on.
        labels: Thumbs that it was fitted on.
        training: Of training conversations, each by a model and a choice of rubrics that did not
            see it; None where there are none.
        rubrics: Ids, in the order in which it wants the answers.
        facts: See `calibration.storage.CalibratorFiles`; the questionnaire follows from `rubrics`.
        begins: What the network begins as, in words.
        curve: What the network adds to that, with few to all labels; empty where unknown.
        rating: The model of grades; None where the labels are no grades, and in sets of before.
    """

    chosen: str
    why: str = ""
    compared: tuple[CandidateScore, ...] = ()
    labels: int
    training: ProbabilityFigures | None = None
    held_out: ProbabilityFigures | None = None
    rubrics: tuple[str, ...]
    facts: dict[str, object]
    rating: RatingRecord | None = None
    begins: str = DECORRELATED_NETSAT_NAME
    curve: tuple[LabelsPoint, ...] = ()

    @property
    def beginning(self) -> str:
        """Name of what the network begins as; sets of before began as decorrelated NetSAT."""
        return (
            DECORRELATED_NETSAT_NAME
            if self.begins == DECORRELATED_NETSAT_NAME
            else NETWORK_STARTING_MODEL_NAME
        )

    @property
    def adds(self) -> str:
        """Say what the network adds to what it begins as, and from how many labels on; empty where unknown."""
        if not self.curve:
            return ""

        last = self.curve[-1]
        gain = f"{last.gain:.3f} ± {last.error:.3f} nats"
        sentence = f"With {last.labels} labels the network takes {gain} off the log-loss of what it begins as"
        if last.gain <= last.error:
            return f"{sentence}, which is no more than noise."

        # the first of the last points, all of which are better by more than an error
        better = [point.gain > point.error for point in self.curve]
        first = len(better) - next(
            (n for n, good in enumerate(reversed(better)) if not good), len(better)
        )
        return f"{sentence}; more than a standard error from {self.curve[first].labels} labels on."

    @property
    def behind(self) -> str:
        """Say which model has better probabilities than the one that is taken, beyond chance; empty for none."""
        others = []
        for row in self.compared:
            if row.low is not None and row.low > 0:
                others.append(row)

        if not others:
            return ""

        first = min(others, key=lambda row: row.log_loss)
        return (
            f"Probabilities by {first.name} are better on these conversations than those of the {self.chosen}: "
            f"log-loss lower by {first.ahead:.3f} [{first.low:.3f}, {first.high:.3f}], an interval that allows for all "
            f'{len(self.compared) - 1} comparisons. `--set probability="{first.name}"` takes it.'
        )


def describe_guarantee(record: GuaranteedWindow) -> str:
    """Describe the guarantee and its held-out figures, to follow a colon."""
    # where neither side can ever hold, one sentence says so for both
    upper = _describe_side(record.upper, "positive", "over", record)
    lower = _describe_side(record.lower, "negative", "at most", record)
    sides = f"{upper}; {lower}"
    if all(
        side.threshold is None and not (side.needed or side.confident)
        for side in (record.lower, record.upper)
    ):
        sides = f"no score is that certain, {_NO_THRESHOLD_NOTE}"

    return f"{describe_both_window_sides(record)}: {sides}. {_describe_held_out(record)}".rstrip()


def describe_both_window_sides(record: GuaranteedWindow) -> str:
    """Return what holds on each side."""
    return (
        f"labels on each side are right at least {_format_percent(record.precision)} of the time, with probability "
        f"{_format_percent(1 - record.delta)}, for conversations like the {record.n} that the window was fitted on"
    )


def _describe_held_out(record: GuaranteedWindow) -> str:
    if not record.held_out:
        return ""

    # users or other units, of all and of those outside
    all_, beyond = record.blocks
    outside = (
        f"Held out: {_describe_count(record.outside, record.held_out, all_)} outside this window"
    )
    if record.outside:
        return f"{outside}, {_describe_count(record.right, record.outside, beyond)} right."
    return f"{outside}."


def _describe_count(hits: int, n: int, blocks: int) -> str:
    low, high = compute_clopper_pearson_interval(hits, n, units=blocks)
    share = _format_percent(hits / n)
    return (
        f"{hits} of {n} ({share}, 95 % interval {_format_percent(low)} to {_format_percent(high)})"
    )


def _format_percent(share: float) -> str:
    percent = 100 * share
    # so many digits that it isn't rounded to 0 or to 100 %
    digits = next((n for n in range(12) if 0 < round(percent, n) < 100), 0)
    return f"{percent:.{digits}f} %"


def _describe_side(
    side: WindowSide,
    label: str,
    place: str,
    record: GuaranteedWindow,
) -> str:
    if side.threshold is not None:
        return (
            f"{label} {place} {side.threshold:.1f} "
            f"({format_count(side.confident, 'conversation')}, {side.wrong} wrong)"
        )

    # no threshold: more labels may bring one, or never
    none = f"no score is {label} that certainly"
    if side.needed is not None:
        rounded = round_estimate(side.needed)
        # rounding must not make it less than there are
        if min(side.needed, rounded) <= record.n + 1:
            return f"{none}: a few more labels may do"
        return f"{none}: this would take about {rounded:,} labels instead of {record.n:,}"
    if side.confident:
        return f"{none}: {format_count(side.confident, 'score lies', 'scores lie')} beyond a threshold, too few to tell"
    return f"{none}, {_NO_THRESHOLD_NOTE}"


_NO_THRESHOLD_NOTE = (
    "because no threshold was right that often on these labels; how many it would take isn't known"
)
