"""Headline lists: rubrics to act on, near twins under one entry; those that went the other way stand apart."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist

import numpy as np

from pollex.measures.arrays import Bools, Floats
from pollex.rubrics.records import (
    MIN_OVERLAP_OF_NEARLY_SAME_RUBRICS,
    SIDES_IN_WORDS,
    ChosenRubric,
    DataRecord,
    FamilyMember,
    Segment,
    TwinOverlap,
)
from pollex.rubrics.rubric import (
    ANSWERED_BY_BUILT_IN_JUDGE,
    Polarity,
    Rubric,
    classify_sentence,
    has_rubrics_written_by_model,
    is_built_in_source,
)
from pollex.rubrics.worth import (
    describe_doubt_about_rubric,
    describe_missing_thumbs,
    do_thumbs_contradict_side,
    is_rubric_nearly_constant,
)
from pollex.selection.multi_split import MIN_FAMILY_CORRELATION, correlate_rubric_answers

MIN_OVERLAP_OF_SIMILAR_RUBRICS = 0.5
"""Two rubrics hold in much the same conversations from this share of those in which either holds."""

MIN_SHARED_WORD_SHARE_OF_SIMILAR_SENTENCES = 0.6
"""Share of the words of two sentences that both have, from which on they say nearly the same."""

MIN_CORRELATION_OF_SAME_FACT = 0.8
"""Correlation of two rubrics from which on they are one fact; below its negative, one fact told the other way round."""

MIN_WORD_LETTERS = 4
"""Of a word that says what a sentence is about."""

_WORD_PATTERN = re.compile(r"[^\W\d_]+")

MIN_CORRELATION_OF_EQUIVALENT_RUBRICS = 0.5
"""Correlation of answers from which on a model's rubric says what a built-in one says."""


@dataclass(frozen=True)
class Headline:
    """An entry of a headline list.

    Attributes:
        also: Near twins of the rubric, which stand under it.
    """

    rubric: ChosenRubric
    also: tuple[ChosenRubric, ...] = ()


def list_headlines(rubrics: Sequence[ChosenRubric], side: Polarity) -> list[Headline]:
    """List what leads on a side, most thumbs explained first, without what went the other way."""
    of_side = []
    for rubric in sort_rubrics_by_order_of_choice(list_rubrics_of_separate_facts(rubrics)):
        if rubric.polarity == side and _is_headline_rubric(rubric):
            of_side.append(rubric)

    # beside a model's rubrics built-in ones come last
    mixed = has_rubrics_written_by_model(rubrics)
    of_side.sort(
        key=lambda rubric: (
            mixed and rubric.answered_by == ANSWERED_BY_BUILT_IN_JUDGE,
            -compute_share_of_thumbs_explained(rubric),
        )
    )
    by_id = {rubric.id: rubric for rubric in of_side}
    # words that are said where a deed is done are no finding of their own
    said_there = []
    for rubric in sort_rubrics_by_order_of_choice(rubrics):
        beneath = rubric.twin_of in by_id and rubric.polarity == side
        if (
            beneath
            and is_proven_or_likely_phrase_rubric(rubric)
            and _may_be_shown_on_its_side(rubric)
        ):
            said_there.append(rubric)

    # a twin stands under the rubric that it names, in the order of first rubrics
    groups: dict[str, list[ChosenRubric]] = {}
    for rubric in (*of_side, *said_there):
        groups.setdefault(_find_first_of_family(rubric, by_id), []).append(rubric)

    headlines: list[Headline] = []
    for first, *rest in groups.values():
        headlines.append(Headline(first, tuple(rest)))

    return headlines


def list_rubrics_of_separate_facts(rubrics: Sequence[ChosenRubric]) -> list[ChosenRubric]:
    """List rubrics without those that are named beneath another one of them, which is the same fact."""
    ids = {rubric.id for rubric in rubrics}
    return [rubric for rubric in rubrics if rubric.same_fact_as not in ids]


def describe_same_facts(rubrics: Sequence[ChosenRubric]) -> dict[str, str]:
    """Name beneath each finding the rubrics that say the same otherwise, by its id; of most nothing."""
    sides = {rubric.id: rubric.polarity for rubric in rubrics}
    names: dict[str, list[str]] = {}
    for rubric in sort_rubrics_by_order_of_choice(rubrics):
        if rubric.same_fact_as not in sides:
            continue
        name = f"“{rubric.text}”"
        # the reverse of a finding goes along with the other thumb
        if rubric.polarity != sides[rubric.same_fact_as]:
            name += f" ({SIDES_IN_WORDS[rubric.polarity]})"
        names.setdefault(rubric.same_fact_as, []).append(name)

    return {
        id_: f"The same fact, or nearly, said otherwise: {'; '.join(several)}"
        for id_, several in names.items()
    }


def find_findings_of_same_fact(
    rubrics: Sequence[ChosenRubric], held: Bools, could_hold: Bools, facts: Sequence[str]
) -> dict[str, str]:
    """Return the finding that each rubric says otherwise, by the rubric's id; of most rubrics none.

    Two rubrics are one fact if they hold in nearly the same conversations, or one in nearly all in
    which the other doesn't; or if one measures the reverse of the other. The surest one leads,
    deeds before words and tone.

    Args:
        held: Where each of them holds `[conversation, rubric]`.
        could_hold: Where its occasion came up, likewise.
        facts: What each measures, the same of a rubric and its reverse.
    """
    named_already = set[str]()
    for side in POLARITIES_IN_HEADLINE_ORDER:
        for headline in list_headlines(rubrics, side):
            named_already.update(twin.id for twin in headline.also)

    places = []
    for place, rubric in enumerate(rubrics):
        aside = do_thumbs_contradict_rubric(rubric) or is_rubric_too_thin_to_show(rubric)
        if rubric.worth is not None and not aside and rubric.id not in named_already:
            places.append(place)

    same = dict[str, str]()
    leading: list[int] = []
    for place in sorted(places, key=lambda place: _sort_key_of_fact(rubrics[place])):
        for first in leading:
            rows = could_hold[:, [first, place]].any(axis=1) | held[:, [first, place]].any(axis=1)
            # one fact of both sides is told the other way round
            way = 1 if rubrics[first].polarity == rubrics[place].polarity else -1
            alike = way * _correlate_two_answer_columns(held[rows, first], held[rows, place])
            # a rubric and its reverse have different sources, of which both facts are one
            reversed_ = (
                facts[first] == facts[place] and rubrics[first].source != rubrics[place].source
            )
            if reversed_ or alike >= MIN_CORRELATION_OF_SAME_FACT:
                same[rubrics[place].id] = rubrics[first].id
                break
        else:
            # words that another finding explains have no entry of their own to name others beneath
            if not rubrics[place].explained_by:
                leading.append(place)

    return same


def _sort_key_of_fact(rubric: ChosenRubric) -> tuple[object, ...]:
    """Return what decides which of several rubrics of one fact leads: the least key."""
    kinds = ("deed", "outcome")
    kind: float = kinds.index(rubric.kind) if rubric.kind in kinds else len(kinds)
    if is_proven_or_likely_phrase_rubric(rubric):
        kind = 0.5  # words stand between deeds and what came of them
    worth = rubric.worth
    holds = (worth.holds.value if worth else None) or 0.0
    strength = compute_share_of_thumbs_explained(rubric) * (1 - holds)
    return (
        not _is_headline_rubric(rubric),
        not is_proven_or_likely(rubric),
        rubric.circumstance is not None,
        rubric.unexpected,
        rubric.yields,
        kind,
        STANDINGS_FROM_SUREST.index(rubric.stands),
        # of a rubric and its reverse, which explain as much, the problem leads
        -round(strength, 2),
        POLARITIES_IN_HEADLINE_ORDER.index(rubric.polarity),
        rubric.choice.step if rubric.choice else np.inf,
    )


STANDINGS_FROM_SUREST = ("proven", "likely", "hint", "unknown")


def has_proven_deed_of_assistant(rubrics: Sequence[ChosenRubric]) -> bool:
    """Tell whether labels bear out any deed of the assistant."""
    return any(map(_is_headline_rubric, rubrics))


def _is_headline_rubric(rubric: ChosenRubric) -> bool:
    shown = rubric.headlined and rubric.kind == "deed"
    return shown and not (do_thumbs_contradict_rubric(rubric) or is_rubric_too_thin_to_show(rubric))


DETECTOR_KINDS_OF_RARE_EVENTS = ("event", "rate")
"""Detectors of what happens seldom: that most conversations have one answer is no fault of theirs."""

ANSWERS_WHERE_RUBRIC_DOES_NOT_HOLD = frozenset({"Strongly Disagree", "Disagree", "Never came up"})
"""Answers of a model by which a rubric doesn't hold."""


def is_rubric_too_thin_to_show(rubric: ChosenRubric) -> bool:
    """Tell whether a rubric is too thin to be shown: it counts for the score, and stays in the file.

    Its answer is nearly always the same, it was found in one conversation alone, or it held in none
    of the conversations that test it.
    """
    worth = rubric.worth
    if worth is not None and worth.holds.n and not worth.down_with.n:
        return True
    if worth is not None and len(rubric.reason_ids) == 1 and is_built_in_source(rubric.source):
        return True
    return _is_answered_alike_nearly_everywhere(rubric)


def _is_answered_alike_nearly_everywhere(rubric: ChosenRubric) -> bool:
    """Tell whether a rubric is answered alike nearly everywhere, though it isn't something rare."""
    # what a program finds seldom is told by its detector's name
    alone = rubric.alone
    kind = rubric.source.partition(":")[0]
    if (
        alone is None
        or kind in DETECTOR_KINDS_OF_RARE_EVENTS
        or not is_rubric_nearly_constant(alone)
    ):
        return False
    if kind == "phrase":  # words may be rare: what labels bear out of them is shown
        return rubric.stands not in ("proven", "likely")
    # a model's “no” nearly everywhere is what a rare thing looks like
    return (
        is_built_in_source(rubric.source)
        or alone.commonest not in ANSWERS_WHERE_RUBRIC_DOES_NOT_HOLD
    )


def list_thin_rubrics(rubrics: Sequence[ChosenRubric]) -> list[ChosenRubric]:
    """List what isn't shown, since it says too little."""
    return [
        rubric
        for rubric in rubrics
        if is_rubric_too_thin_to_show(rubric) and not do_thumbs_contradict_rubric(rubric)
    ]


def list_unexpected_rubrics(rubrics: Sequence[ChosenRubric]) -> list[ChosenRubric]:
    """List deeds and outcomes that go along with the thumb that one would least expect."""
    unexpected_rubrics = []
    for rubric in sort_rubrics_by_order_of_choice(list_rubrics_of_separate_facts(rubrics)):
        if (
            rubric.unexpected
            and (rubric.leads or rubric.outcome)
            and not (
                rubric.circumstance
                or do_thumbs_contradict_rubric(rubric)
                or is_rubric_too_thin_to_show(rubric)
            )
        ):
            unexpected_rubrics.append(rubric)

    return unexpected_rubrics


UNEXPECTED_SIDE_NOTES: dict[Polarity, str] = {
    "sat": "usually a bad sign, and thumbs don't show that: read its conversations",
    "dsat": "usually a good sign, and thumbs don't show that: read its conversations",
}
"""What is said of a rubric that one would expect on the other side, by the side that it has."""


def list_rubrics_of_conversation_endings(rubrics: Sequence[ChosenRubric]) -> list[ChosenRubric]:
    """List what tells how conversations end, most thumbs explained first: it restates the thumb, and is no cause."""
    outcomes = []
    for rubric in list_rubrics_of_separate_facts(rubrics):
        if rubric.outcome and rubric.stands != "hint" and not rubric.circumstance:
            outcomes.append(rubric)

    shown_outcomes = []
    for rubric in outcomes:
        if _may_be_shown_on_its_side(rubric):
            shown_outcomes.append(rubric)

    return sorted(
        shown_outcomes,
        key=lambda rubric: (rubric.polarity, -compute_share_of_thumbs_explained(rubric)),
    )


@dataclass(frozen=True)
class Habit:
    """What the assistant does in conversations that end in some way, which labels don't bear out by itself.

    Attributes:
        ending: The outcome in whose conversations it was looked for.
    """

    case: FamilyMember
    ending: ChosenRubric

    @property
    def figures(self) -> str:
        """How often it is done, or its thumbs beside the rest, and in which conversations."""
        ending = self.ending.text.removesuffix(".")
        n = self.ending.family.n if self.ending.family else self.case.among
        among = f"the {n} labeled conversations with “{ending}”"
        if self.case.within is None:
            return f"in {self.case.among} of {among}; thumbs there aren't known to differ"
        return f"among {among}: {self.case.figures}"


def list_deeds_in_conversations_of_ending(rubrics: Sequence[ChosenRubric]) -> list[Habit]:
    """List deeds to check in conversations that end as labels bear out, without those shown otherwise."""
    strongest = []
    for side in POLARITIES_IN_HEADLINE_ORDER:
        strongest.extend(list_strongest_unproven_deeds(rubrics, side))

    shown = {rubric.text for rubric in (*filter(_is_headline_rubric, rubrics), *strongest)}
    habits = []
    for ending in list_rubrics_of_conversation_endings(rubrics):
        for case in (*ending.apart, *ending.deeds):
            if case.text not in shown and classify_sentence(case.text) == "deed":
                habits.append(Habit(case, ending))
                shown.add(case.text)

    return habits


def list_proven_phrase_rubrics(rubrics: Sequence[ChosenRubric]) -> list[ChosenRubric]:
    """List words that labels bear out, most thumbs explained first, without those that another finding tells."""
    elsewhere = _list_ids_of_headline_rubrics(rubrics)
    elsewhere |= {rubric.id for rubric in list_phrase_rubrics_explained_by_findings(rubrics)}
    worded = []
    for rubric in _list_all_proven_phrase_rubrics(rubrics):
        if rubric.twin_of not in elsewhere and rubric.id not in elsewhere:
            worded.append(rubric)

    return sorted(
        worded,
        key=lambda rubric: (rubric.polarity, -compute_share_of_thumbs_explained(rubric)),
    )


def list_phrase_rubrics_explained_by_findings(
    rubrics: Sequence[ChosenRubric],
) -> list[ChosenRubric]:
    """List words that labels bear out, and that say no more than a finding: its mirror, or a part of it."""
    leading = _list_ids_of_headline_rubrics(rubrics)
    worded = _list_all_proven_phrase_rubrics(rubrics)
    # words explain others only as long as they are shown themselves
    findings = leading | {rubric.id for rubric in worded}
    sides = {rubric.id: rubric.polarity for rubric in rubrics}
    explained = []
    for rubric in worded:
        # what stands under a deed of its side is shown there
        if rubric.twin_of in leading and sides[rubric.twin_of] == rubric.polarity:
            continue
        if rubric.twin_of in leading or rubric.explained_by in findings:
            explained.append(rubric)

    return explained


def _list_all_proven_phrase_rubrics(rubrics: Sequence[ChosenRubric]) -> list[ChosenRubric]:
    worded = []
    for rubric in list_rubrics_of_separate_facts(rubrics):
        if is_proven_or_likely_phrase_rubric(rubric) and _may_be_shown_on_its_side(rubric):
            worded.append(rubric)

    return worded


def _list_ids_of_headline_rubrics(rubrics: Sequence[ChosenRubric]) -> set[str]:
    return {rubric.id for rubric in rubrics if _is_headline_rubric(rubric)}


def _may_be_shown_on_its_side(rubric: ChosenRubric) -> bool:
    """Tell whether a rubric may be told as what goes along with the thumb of its side."""
    aside = do_thumbs_contradict_rubric(rubric) or is_rubric_too_thin_to_show(rubric)
    return not (aside or rubric.unexpected)


def is_proven_or_likely(rubric: ChosenRubric) -> bool:
    """Tell whether labels bear a rubric out."""
    return rubric.stands in ("proven", "likely")


def is_proven_or_likely_phrase_rubric(rubric: ChosenRubric) -> bool:
    """Tell whether a rubric is words, and proven or likely: a finding, whatever they mean."""
    shown = rubric.source.startswith("phrase:") and not (rubric.yields or rubric.circumstance)
    return shown and is_proven_or_likely(rubric)


def describe_lack_of_proven_rubrics(rubrics: Sequence[ChosenRubric], data: DataRecord) -> str:
    """Say that no act of the assistant's leads, what is borne out all the same, and what more thumbs would show."""
    # thumbs that standings are of, else all of the data
    thumbs = next(
        (rubric.standing.n for rubric in rubrics if rubric.standing),
        data.thumbs,
    )
    others = count_proven_rubrics_beside_headlines(rubrics)
    circumstances = sorted({rubric.circumstance.name for rubric in rubrics if rubric.circumstance})
    if circumstances and not others:
        return (
            f"{describe_side_without_act(rubrics)}: what differs goes along with the "
            f"{', the '.join(circumstances)}, and {thumbs} thumbs can't tell which of both it is."
        )

    if others:
        counts = " and ".join(f"{n} {place}" for place, n in others.items())
        rest = f"what is proven or likely stands elsewhere: {counts}"
    elif list_unproven_rubrics(rubrics):
        rest = "what stands out is listed as hints, which may well be luck"
    else:
        rest = "nothing else is, either"
    if circumstances:
        rest = f"some go along with the {', the '.join(circumstances)}, which may be the reason as well; {rest}"

    return f"{describe_side_without_act(rubrics)}; {rest}. {describe_missing_thumbs(thumbs, data.down)}"


def describe_side_without_act(rubrics: Sequence[ChosenRubric]) -> str:
    """Say of rubrics without a headline that no act of the assistant's leads; what is put aside is not denied."""
    # acts that labels bear out, and that don't lead for another reason
    aside = [
        *list_proven_deeds_outside_headlines(rubrics),
        *list_unexpected_rubrics(rubrics),
        *list_rubrics_explained_by_circumstances(rubrics),
    ]
    if any(rubric.kind == "deed" and is_proven_or_likely(rubric) for rubric in aside):
        return "No act of the assistant is a finding"

    # what the assistant says may stand for an act
    said = []
    for rubric in (*list_proven_phrase_rubrics(rubrics), *list_proven_tone_rubrics(rubrics)):
        if rubric.source.startswith("phrase:assistant:") or rubric.text.startswith(
            "The assistant "
        ):
            said.append(rubric)
    if said:
        are = "is" if len(said) == 1 else "are"
        return f"No act of the assistant leads, but {len(said)} of what it says or how it sounds {are} proven or likely"
    return "No act of the assistant is proven or likely to go along with the thumbs"


def describe_side_without_headline(rubrics: Sequence[ChosenRubric], side: Polarity) -> str:
    """Say of a side on which nothing leads what is known of the assistant's acts, in one sentence."""
    of_side = [rubric for rubric in rubrics if rubric.polarity == side]
    if any(map(_is_headline_rubric, of_side)):
        return (
            "What is proven or likely of the assistant's acts on this side is the reverse of a "
            "finding on the other side, and is named there."
        )
    return f"{describe_side_without_act(of_side)} on this side."


def count_proven_rubrics_beside_headlines(rubrics: Sequence[ChosenRubric]) -> dict[str, int]:
    """Count what labels bear out and that doesn't lead, by where it stands; without what no page lists by name."""
    places = {
        "on what is said (words, which may stand for an act)": list_proven_phrase_rubrics(rubrics),
        "on how conversations end": list_rubrics_of_conversation_endings(rubrics),
        "not among the findings for a reason that is named": list_proven_deeds_outside_headlines(
            rubrics
        ),
        "to check": list_unexpected_rubrics(rubrics),
        "on how people sound": list_tone_rubrics(rubrics),
    }
    counts = {}
    for place, listed in places.items():
        if n := sum(is_proven_or_likely(rubric) for rubric in listed):
            counts[place] = n

    return counts


def list_topics_unlike_the_rest(segments: Sequence[Segment]) -> list[Segment]:
    """List the topics that go better or worse than the rest, allowing for all of them having been looked at.

    Two shares beside each other by the normal approximation, at 5 % for all topics together
    (Bonferroni).
    """
    least = NormalDist().inv_cdf(1 - MAX_P_VALUE_OF_ANY_TOPIC / (2 * max(len(segments), 1)))
    return [segment for segment in segments if _compute_z_of_topic(segment) > least]


MAX_P_VALUE_OF_ANY_TOPIC = 0.05
"""Probability that any topic of a log is listed where none differs."""


def _compute_z_of_topic(segment: Segment) -> float:
    """Compute by how many standard errors a topic's share of thumbs down differs from that of the rest."""
    here = segment.down
    rest = segment.rest
    if here.value is None or rest.value is None:
        return 0.0

    # independent conversations: fewer where several are of one user
    n, others = (figure.units or figure.n for figure in (here, rest))
    share = (here.value * n + rest.value * others) / (n + others)
    error = sqrt(share * (1 - share) * (1 / n + 1 / others))
    return abs(here.value - rest.value) / error if error else 0.0


def list_rubrics_explained_by_circumstances(rubrics: Sequence[ChosenRubric]) -> list[ChosenRubric]:
    """List what goes along with a circumstance that explains its difference: what it says is no cause to act on."""
    explained_rubrics = []
    for rubric in sort_rubrics_by_order_of_choice(list_rubrics_of_separate_facts(rubrics)):
        if (
            rubric.circumstance
            and rubric.stands != "hint"
            and not is_rubric_too_thin_to_show(rubric)
        ):
            explained_rubrics.append(rubric)

    # what is done or said says more than how people sound
    return sorted(
        explained_rubrics,
        key=lambda rubric: not (rubric.leads or rubric.source.startswith("phrase:")),
    )


def do_phrases_explain_more_thumbs_than_deeds(
    rubrics: Sequence[ChosenRubric], side: Polarity
) -> bool:
    """Tell whether words of a side explain more thumbs than any of its deeds: then they are told first."""
    explained_by_words = [0.0]
    for rubric in list_proven_phrase_rubrics(rubrics):
        if rubric.polarity == side:
            explained_by_words.append(compute_share_of_thumbs_explained(rubric))

    deeds = [
        compute_share_of_thumbs_explained(headline.rubric)
        for headline in list_headlines(rubrics, side)
    ]
    return max(explained_by_words) > max(deeds, default=0.0)


def compute_share_of_thumbs_explained(rubric: ChosenRubric) -> float:
    """Return the difference of the shares of thumbs down, times how often a rubric holds; 0 where nobody measured."""
    worth = rubric.worth
    if worth is None or worth.down_with.value is None or worth.down_others.value is None:
        return 0.0
    return abs(worth.down_with.value - worth.down_others.value) * (worth.holds.value or 0.0)


def list_unproven_rubrics(rubrics: Sequence[ChosenRubric]) -> list[ChosenRubric]:
    """List deeds and outcomes of which too few thumbs can tell, without what went the other way."""
    return [
        rubric
        for rubric in _list_proven_rubrics_outside_headlines(rubrics)
        if rubric.stands in ("hint", "unknown")
    ]


POLARITIES_IN_HEADLINE_ORDER: tuple[Polarity, ...] = ("dsat", "sat")

MAX_UNPROVEN_DEEDS_SHOWN_PER_SIDE = 3
"""Hints of a side that stand with its findings."""


def list_strongest_unproven_deeds(
    rubrics: Sequence[ChosenRubric], side: Polarity
) -> list[ChosenRubric]:
    """List deeds of a side that stand out most, and that labels don't bear out: what to look at next.

    Each differs clearly by itself, without regard to how many others were looked at.
    """
    # clear by themselves, and found by what is known to be right
    deeds = []
    for rubric in list_unproven_rubrics(rubrics):
        if rubric.polarity == side:
            deeds.append(rubric)

    clear = []
    for rubric in deeds:
        if (
            rubric.kind == "deed"
            and rubric.worth
            and not describe_doubt_about_rubric(rubric.worth, side)
        ):
            clear.append(rubric)

    clear = [rubric for rubric in clear if not rubric.unsure]
    return sorted(clear, key=lambda rubric: -compute_share_of_thumbs_explained(rubric))[
        :MAX_UNPROVEN_DEEDS_SHOWN_PER_SIDE
    ]


def list_proven_deeds_outside_headlines(rubrics: Sequence[ChosenRubric]) -> list[ChosenRubric]:
    """List deeds that labels bear out and that don't lead: `explain_why_proven_rubric_is_no_headline` says why."""
    borne_out = []
    for rubric in _list_proven_rubrics_outside_headlines(rubrics):
        if is_proven_or_likely(rubric):
            borne_out.append(rubric)

    return borne_out


def explain_why_proven_rubric_is_no_headline(rubric: ChosenRubric) -> str:
    """Say why a rubric that labels bear out doesn't lead."""
    if rubric.unsure:
        return "what finds it isn't known to be right often enough: read its conversations"
    return "found by a program; beside a model's sentences, one of these leads only if it is proven"


def _list_proven_rubrics_outside_headlines(rubrics: Sequence[ChosenRubric]) -> list[ChosenRubric]:
    not_leading = []
    for rubric in sort_rubrics_by_order_of_choice(list_rubrics_of_separate_facts(rubrics)):
        if (
            rubric.leads
            and not (rubric.headlined or _is_told_by_another_finding(rubric))
            and _may_be_shown_on_its_side(rubric)
        ):
            not_leading.append(rubric)

    return not_leading


def _is_told_by_another_finding(rubric: ChosenRubric) -> bool:
    return (rubric.outcome or rubric.circumstance is not None) and rubric.stands != "hint"


def list_tone_rubrics(rubrics: Sequence[ChosenRubric]) -> list[ChosenRubric]:
    """List rubrics of tone, how people sound, without what went the other way."""
    tone_rubrics: list[ChosenRubric] = []
    for rubric in sort_rubrics_by_order_of_choice(list_rubrics_of_separate_facts(rubrics)):
        # what has a place in another list
        elsewhere = (
            rubric.leads
            or _is_told_by_another_finding(rubric)
            or is_proven_or_likely_phrase_rubric(rubric)
        )
        aside = do_thumbs_contradict_rubric(rubric) or is_rubric_too_thin_to_show(rubric)
        if not (elsewhere or aside or (rubric.unexpected and rubric.outcome)):
            tone_rubrics.append(rubric)

    return tone_rubrics


def list_proven_tone_rubrics(rubrics: Sequence[ChosenRubric]) -> list[ChosenRubric]:
    """List rubrics of how people sound that labels bear out, most thumbs explained first."""
    return sorted(
        filter(is_proven_or_likely, list_tone_rubrics(rubrics)),
        key=lambda rubric: (rubric.polarity, -compute_share_of_thumbs_explained(rubric)),
    )


def list_rubrics_contradicted_by_thumbs(
    rubrics: Sequence[ChosenRubric],
) -> list[ChosenRubric]:
    """List rubrics whose thumbs went the other way than their side says."""
    return list(filter(do_thumbs_contradict_rubric, sort_rubrics_by_order_of_choice(rubrics)))


def do_thumbs_contradict_rubric(rubric: ChosenRubric) -> bool:
    """Tell whether thumbs went the other way than a rubric's side says."""
    return rubric.worth is not None and do_thumbs_contradict_side(rubric.worth, rubric.polarity)


def _find_first_of_family(rubric: ChosenRubric, by_id: dict[str, ChosenRubric]) -> str:
    # twins of twins end at the first that is shown
    while rubric.twin_of in by_id:
        rubric = by_id[rubric.twin_of]
    return rubric.id


def sort_rubrics_by_order_of_choice(rubrics: Sequence[ChosenRubric]) -> list[ChosenRubric]:
    """Sort by the order of choice; rubrics that a person added come last."""
    return sorted(
        rubrics,
        key=lambda rubric: rubric.choice.step if rubric.choice else len(rubrics) + 1,
    )


def find_earlier_equivalents_of_headlines(
    rubrics: Sequence[Rubric],
    held: Bools,
    values: Floats | None,
) -> dict[str, str]:
    """Return the earlier twin of each headline rubric that has one, by id.

    Twins are of one side, and hold in much the same conversations, are answered alike, or are the
    same event with objects of different breadth.

    Args:
        rubrics: In the order of choice.
        held: Where each of them holds on training conversations `[conversation, rubric]`.
        values: Terms of NetSAT, likewise; None where what is answered alike, and what is of one
            event, is one entry already.
    """
    mixed = has_rubrics_written_by_model(rubrics)
    # beside a model's rubrics, those that a program answers
    from_built_in = np.array(
        [mixed and rubric.answered_by == ANSWERED_BY_BUILT_IN_JUDGE for rubric in rubrics],
        dtype=bool,
    )
    alike = find_rubric_pairs_holding_together(rubrics, held)
    if values is not None:
        # A built-in rubric stands under a model's that says about the same, whichever was chosen
        # first.
        enough = np.where(
            from_built_in[:, None] != from_built_in[None, :],
            MIN_CORRELATION_OF_EQUIVALENT_RUBRICS,
            MIN_FAMILY_CORRELATION,
        )
        alike |= (correlate_rubric_answers(values) >= enough) | _find_narrow_and_broad_event_pairs(
            rubrics
        )

    # each rubric that leads, under the first one that is its twin; built-in ones come last
    leading_places = []
    for place, rubric in enumerate(rubrics):
        if rubric.leads:
            leading_places.append(place)

    leading = sorted(
        leading_places,
        key=lambda place: (bool(from_built_in[place]), place),
    )
    earlier_twins = {}
    for rank, later in enumerate(leading):
        for earlier in leading[:rank]:
            same_side = rubrics[earlier].polarity == rubrics[later].polarity
            if same_side and alike[earlier, later]:
                earlier_twins[rubrics[later].id] = rubrics[earlier].id
                break

    return earlier_twins | _find_deed_equivalent_to_each_phrase(rubrics, held)


def _find_deed_equivalent_to_each_phrase(rubrics: Sequence[Rubric], held: Bools) -> dict[str, str]:
    """Return the first deed of each phrase that is said in nearly the same conversations, on the same side."""
    deeds = []
    for place, rubric in enumerate(rubrics):
        if rubric.kind == "deed":
            deeds.append(place)

    beneath: dict[str, str] = {}
    for place, rubric in enumerate(rubrics):
        if not rubric.source.startswith("phrase:"):
            continue

        for deed in deeds:
            same_side = rubrics[deed].polarity == rubric.polarity
            both = (held[:, deed] & held[:, place]).sum()
            either = (held[:, deed] | held[:, place]).sum()
            if same_side and both and both >= MIN_OVERLAP_OF_NEARLY_SAME_RUBRICS * either:
                beneath[rubric.id] = rubrics[deed].id
                break

    return beneath


def add_overlaps_with_headlines(
    rubrics: Sequence[ChosenRubric], held: Bools
) -> tuple[ChosenRubric, ...]:
    """Add to each rubric that stands under a headline in how many conversations both hold; to outcomes, too.

    A twin may name one that stands under another itself: what is counted is what is shown above it.
    An outcome stands by itself; where a headline holds in most of its conversations, that is told.

    Args:
        held: Where each of them holds on the conversations that its worth is counted on
            `[conversation, rubric]`.
    """
    places = {rubric.id: place for place, rubric in enumerate(rubrics)}
    overlaps = {}
    for side in POLARITIES_IN_HEADLINE_ORDER:
        for headline in list_headlines(rubrics, side):
            above = held[:, places[headline.rubric.id]]
            for twin in headline.also:
                own = held[:, places[twin.id]]
                overlaps[twin.id] = count_overlap(own, above)

        leading = [headline.rubric for headline in list_headlines(rubrics, side)]
        for outcome in list_rubrics_of_conversation_endings(rubrics):
            if outcome.polarity != side:
                continue
            overlap = find_headline_in_most_conversations(outcome, leading, held, places)
            if overlap is not None:
                overlaps[outcome.id] = overlap

    return tuple(
        rubric.model_copy(update={"overlap": overlaps.get(rubric.id)}) for rubric in rubrics
    )


def count_overlap(own: Bools, other: Bools, finding: str = "") -> TwinOverlap:
    """Count where a rubric, another one and both hold, each `[conversation]`; see `TwinOverlap`."""
    return TwinOverlap(
        both=int((own & other).sum()),
        own=int(own.sum()),
        twin=int(other.sum()),
        finding=finding,
    )


def find_headline_in_most_conversations(
    outcome: ChosenRubric,
    leading: Sequence[ChosenRubric],
    held: Bools,
    places: Mapping[str, int],
) -> TwinOverlap | None:
    """Return the overlap with the headline that holds most often where an outcome does; None below half of it.

    Args:
        leading: Headlines of the outcome's side.
        held: As in `add_overlaps_with_headlines`, with the column of each rubric in `places`.
    """
    own = held[:, places[outcome.id]]
    overlaps = []
    for headline in leading:
        other = held[:, places[headline.id]]
        overlaps.append(count_overlap(own, other, headline.text))

    most = max(overlaps, key=lambda overlap: overlap.both, default=None)
    if most is None or 2 * most.both <= most.own:
        return None
    return most


def find_finding_explaining_each_phrase(
    rubrics: Sequence[Rubric], held: Bools, up: Bools, borne_out: Collection[str]
) -> dict[str, str]:
    """Return the finding that explains each phrase's difference, by the phrase's id; of most phrases none.

    A phrase may be said where something else goes wrong, or everywhere but there. Then thumbs don't
    differ by it in the other conversations, and it adds nothing to the finding.

    Args:
        held: Where each of them holds on training conversations `[conversation, rubric]`.
        up: Their labels `[conversation]`.
        borne_out: Ids of the rubrics that are proven or likely.
    """
    findings = []
    phrases = []
    for place, rubric in enumerate(rubrics):
        if rubric.id in borne_out and rubric.source.startswith("phrase:"):
            phrases.append(place)
        elif rubric.id in borne_out and rubric.kind == "deed":
            findings.append(place)

    # what goes wrong explains what goes well, and of each side the clearer phrase the other
    differences = np.abs(
        correlate_rubric_answers(np.column_stack([held, ~up]).astype(np.float64))[:, -1]
    )
    phrases.sort(key=lambda place: (rubrics[place].polarity, -differences[place]))

    explained: dict[str, str] = {}
    for place in phrases:
        near = _list_findings_overlapping_phrase(rubrics, held, place, findings)
        elsewhere = ~held[:, near].any(axis=1)
        if near and not _do_thumbs_differ_where_rubric_holds(
            held[elsewhere, place], up[elsewhere], rubrics[place].polarity
        ):
            strongest = max(near, key=lambda finding: differences[finding])
            explained[rubrics[place].id] = rubrics[strongest].id
        else:
            findings.append(place)

    return explained


def find_deed_behind_each_phrase(
    rubrics: Sequence[Rubric],
    held: Bools,
    borne_out: Collection[str],
    explained: Collection[str],
) -> dict[str, str]:
    """Return the deed that a phrase is mostly said with, by the phrase's id; of those that explain the same thumbs.

    The deed leads then, and the phrase stands under it: words alone say less of what to do otherwise.

    Args:
        held: Where each of them holds on training conversations `[conversation, rubric]`.
        borne_out: Ids of the rubrics that are proven or likely.
        explained: Ids of the phrases that say no more than a finding.
    """
    deeds = []
    for place, rubric in enumerate(rubrics):
        if rubric.id in borne_out and rubric.kind == "deed":
            deeds.append(place)

    behind: dict[str, str] = {}
    for place, rubric in enumerate(rubrics):
        if rubric.id not in borne_out or rubric.id in explained:
            continue
        if not rubric.source.startswith("phrase:"):
            continue

        alike = {
            deed: _correlate_two_answer_columns(held[:, deed], held[:, place])
            for deed in deeds
            if rubrics[deed].polarity == rubric.polarity
        }
        nearest = max(alike, key=lambda deed: alike[deed], default=None)
        if nearest is not None and alike[nearest] >= MIN_CORRELATION_OF_EQUIVALENT_RUBRICS:
            behind[rubric.id] = rubrics[nearest].id

    return behind


def _list_findings_overlapping_phrase(
    rubrics: Sequence[Rubric], held: Bools, place: int, findings: Sequence[int]
) -> list[int]:
    """List the findings in whose conversations a phrase is mostly said, or, of the other side together, isn't."""
    side = rubrics[place].polarity
    near = []
    opposite = []
    for finding in findings:
        if rubrics[finding].polarity != side:
            opposite.append(finding)
        elif (
            _correlate_two_answer_columns(held[:, finding], held[:, place])
            >= MIN_CORRELATION_OF_EQUIVALENT_RUBRICS
        ):
            near.append(finding)

    anything_opposite = np.asarray(held[:, opposite].any(axis=1))
    if (
        _correlate_two_answer_columns(anything_opposite, ~held[:, place])
        >= MIN_CORRELATION_OF_EQUIVALENT_RUBRICS
    ):
        near += opposite
    return near


def _correlate_two_answer_columns(first: Bools, second: Bools) -> float:
    return float(
        correlate_rubric_answers(np.column_stack([first, second]).astype(np.float64))[0, 1]
    )


def _do_thumbs_differ_where_rubric_holds(held: Bools, up: Bools, side: Polarity) -> bool:
    """Tell whether thumbs differ as a side says where a rubric holds, by Fisher's exact test at 5 %."""
    from scipy.stats import fisher_exact  # half a second; only learning needs it

    down = ~up if side == "dsat" else up
    table = [
        [int((held & down).sum()), int((held & ~down).sum())],
        [int((~held & down).sum()), int((~held & ~down).sum())],
    ]
    return float(fisher_exact(table, alternative="greater").pvalue) <= MAX_P_VALUE_BESIDE_FINDING


MAX_P_VALUE_BESIDE_FINDING = 0.05
"""Level of the test of whether a phrase makes a difference beside a finding."""


def find_rubric_pairs_holding_together(rubrics: Sequence[Rubric], held: Bools) -> Bools:
    """Tell which rubrics hold in much the same conversations `[rubric, rubric]`.

    Where they are in nearly the same words, most conversations of the rarer one are enough.
    """
    # conversations in which both hold, and on the diagonal each alone `[rubric, rubric]`
    both = (held.T.astype(np.int64) @ held).astype(np.float64)
    alone = np.diag(both)
    either = alone[:, None] + alone[None, :] - both
    rarer = np.minimum(alone[:, None], alone[None, :])
    words = [_split_words(rubric.text) for rubric in rubrics]
    # in nearly the same words: most of the words of either
    near = np.array(
        [
            [
                len(word & other) >= MIN_SHARED_WORD_SHARE_OF_SIMILAR_SENTENCES * len(word | other)
                for other in words
            ]
            for word in words
        ]
    ).reshape(both.shape)

    return np.asarray(
        (both > 0)
        & (
            (both >= MIN_OVERLAP_OF_SIMILAR_RUBRICS * either)
            | (near & (both >= MIN_OVERLAP_OF_SIMILAR_RUBRICS * rarer))
        )
    )


def _split_words(text: str) -> frozenset[str]:
    return frozenset(
        word for word in _WORD_PATTERN.findall(text.lower()) if len(word) >= MIN_WORD_LETTERS
    )


def _find_narrow_and_broad_event_pairs(rubrics: Sequence[Rubric]) -> Bools:
    """Tell which rubrics are the same event, one of a single object and one of any `[rubric, rubric]`."""
    # a source is a kind, and an object where it is about one
    parts = [rubric.source.partition(" ") for rubric in rubrics]
    kinds = np.array([kind for kind, _, _ in parts])
    events = np.array(
        [kind.startswith("event:") for kind in kinds.tolist()],
        dtype=bool,
    )
    narrow = np.array([bool(topic) for _, _, topic in parts], dtype=bool)
    same = (kinds[:, None] == kinds[None, :]) & events[:, None]

    return np.asarray(same & (narrow[:, None] != narrow[None, :]))
