"""Learn the events of a log from labelled conversations, and which of its topics go better or worse than the rest.

Choice of the events that become rubrics: significant, and different from one another.

Fisher's exact test with the false discovery rate bounded (Benjamini and Hochberg 1995,
doi:10.1111/j.2517-6161.1995.tb02031.x); a difference of one sign on both halves of the training
conversations.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pollex.agents.embedded.events.language import ENGLISH, detect_log_language
from pollex.agents.embedded.events.patterns import PATTERNS
from pollex.agents.embedded.events.reading import (
    ANY_TOPIC,
    Event,
    EventRubric,
    Observed,
    mark_acts,
    read_conversation,
)
from pollex.agents.embedded.events.signal import (
    LEAST_QUOTE_SURENESS,
    MOST_QUOTES,
    EventQuote,
    find_told_topic,
    has_words_for,
    named_topics,
    quote_event,
    write_event_sentence,
)
from pollex.agents.embedded.events.topics import Topics, learn_topics, name_topics
from pollex.conversations.conversation import Conversation, Label
from pollex.conversations.splits import number_blocks
from pollex.rubrics.records import Segment
from pollex.rubrics.worth import measure_share_among

# bound of the false discovery rate
FALSE_DISCOVERY_RATE = 0.2
# an event has to occur in this share of conversations, in 3 at least and 6 at most
FEWEST = 3
MOST_NEEDED = 6
SHARE = 0.03
# correlation above which two events are one
MOST_ALIKE = 0.6
LEAST_BROADER_ALONE = 6
"""Conversations with the broader event alone that a comparison with it takes."""
STANDS_OUT = 0.05
"""Highest p of an event of one object against the same of others with which it is a rubric of its own."""
PER_PATTERN = 2
# factor for an event of one topic, and what the usual side and a doing of the assistant add
NARROW = 0.75
EXPECTED = 1.0
ACTING = 0.4


@dataclass(frozen=True)
class Marker:
    """An event that tells the classes apart.

    Attributes:
        column: In the table of events.
        side: +1 good, −1 bad.
        p: Of Fisher's exact test, two-sided.
        within_bound: Whether it stands within the bounded false discovery rate.
        expected: False where the side isn't the pattern's.
        both_halves: Whether the difference has one sign on both halves.
    """

    column: int
    side: int
    p: float
    within_bound: bool
    expected: bool
    both_halves: bool


def count_needed_conversations(conversations: int) -> int:
    """Return the number of conversations in which an event has to occur: 3 to 6."""
    return max(FEWEST, min(MOST_NEEDED, round(SHARE * conversations)))


def list_candidate_events(
    events: Sequence[Event],
    held: Bools,
    on_topic: Bools,
    up: Bools,
    rng: np.random.Generator,
    usable: Callable[[Event], bool],
) -> list[Marker]:
    """List events that distinguish the classes, the most significant first.

    Args:
        held: Whether an event happened, [conversation, event].
        on_topic: Whether a conversation is about a topic, [conversation, topic].
        up: [conversation].
        usable: Whether an event may become a rubric at all.
    """
    from scipy.stats import fisher_exact  # half a second; only learning needs it

    # all events are compared on the same two halves
    half = draw_stratified_half(up, rng)
    # each pattern's column without topic and object: its narrower events are compared with it
    broader = {}
    for column, event in enumerate(events):
        if event.topic == ANY_TOPIC and not event.detail:
            broader[event.pattern] = column

    covered = find_said_more_closely(events, held, broader)
    least = count_needed_conversations(len(up))
    markers = []
    for column, event in enumerate(events):
        h = held[:, column]
        # too rare, too common, told more closely by another event, or without words
        if min(h.sum(), (~h).sum()) < least or column in covered or not usable(event):
            continue
        gap = up[h].mean() - up[~h].mean()
        # a narrow event has to tell more than each of its broader ones: topic, pattern, any object
        wider = broader.get(PATTERNS[event.pattern].within)
        if gap == 0 or (
            event.topic != ANY_TOPIC and not tells_more(h, on_topic[:, event.topic], up, gap)
        ):
            continue
        if wider is not None and not tells_more(h, held[:, wider], up, gap):
            continue
        general = broader[event.pattern] if event.detail else None
        if general is not None and (
            general in covered or not stands_out_from_broader(h, held[:, general], up, gap)
        ):
            continue

        # conversations with and without the event, each with thumbs up and down
        side = 1 if gap > 0 else -1
        table = []
        for rows in (h, ~h):
            table.append([int((rows & label).sum()) for label in (up, ~up)])

        expected = PATTERNS[event.pattern].side in (0, side)
        markers.append(
            (
                float(fisher_exact(table)[1]),
                column,
                side,
                expected,
                holds_in_both_halves(h, up, half, side),
            )
        )

    # the smallest p first: the bounded rate is a bound on each rank
    markers.sort()
    bound = count_within_fdr(np.array([p for p, *_ in markers]))
    return [
        Marker(column, side, p, k < bound, expected, both)
        for k, (p, column, side, expected, both) in enumerate(markers)
    ]


def tells_more(
    h: Bools,
    broader: Bools,
    up: Bools,
    gap: float,
) -> bool:
    """Return whether an event distinguishes the classes beyond its broader case; each [conversation]."""
    rest = broader & ~h
    return int(rest.sum()) < LEAST_BROADER_ALONE or (up[h].mean() - up[rest].mean()) * gap > 0


def stands_out_from_broader(
    h: Bools,
    broader: Bools,
    up: Bools,
    gap: float,
) -> bool:
    """Return whether an event of one object differs from the same event of others; each [conversation].

    Else it is the same event, and one rubric of all objects has more conversations to be proven by.
    """
    from scipy.stats import fisher_exact  # half a second; only learning needs it

    rest = broader & ~h
    if int(rest.sum()) < LEAST_BROADER_ALONE or not tells_more(h, broader, up, gap):
        return False

    table = []
    for rows in (h, rest):
        table.append([int((rows & label).sum()) for label in (up, ~up)])

    return float(fisher_exact(table)[1]) < STANDS_OUT


def find_said_more_closely(
    events: Sequence[Event],
    held: Bools,
    broader: Mapping[str, int],
) -> set[int]:
    """Return the columns of events that hardly ever happen but as a narrower one, which says more of them."""
    columns = set[int]()
    for event in events:
        wider = broader.get(PATTERNS[event.pattern].within)
        # rates count beside their cases, and a case has to occur in this log
        if wider is None or PATTERNS[events[wider].pattern].rate or event.pattern not in broader:
            continue
        # the broader event hardly ever happens alone
        if int((held[:, wider] & ~held[:, broader[event.pattern]]).sum()) < LEAST_BROADER_ALONE:
            columns.add(wider)

    return columns


def draw_stratified_half(up: Bools, rng: np.random.Generator) -> Bools:
    """Half of the conversations of each class."""
    half = np.zeros(len(up), dtype=bool)
    for label in (True, False):
        rows = rng.permutation(np.flatnonzero(up == label))
        half[rows[: len(rows) // 2]] = True
    return half


def holds_in_both_halves(
    h: Bools,
    up: Bools,
    half: Bools,
    side: int,
) -> bool:
    """Return whether the difference has the sign of `side` on both halves."""
    for part in (half, ~half):
        with_ = h & part
        without = ~h & part
        # a half in which all conversations have the event, or none, shows no sign
        if (
            not with_.any()
            or not without.any()
            or (up[with_].mean() - up[without].mean()) * side <= 0
        ):
            return False

    return True


def count_within_fdr(p: Floats) -> int:
    """Count the sorted p values [event] within the false discovery rate."""
    if not len(p):
        return 0

    # the last p under the bound of its rank, and all before it
    within = np.flatnonzero(p <= FALSE_DISCOVERY_RATE * np.arange(1, len(p) + 1) / len(p))
    if len(within):
        return int(within[-1]) + 1
    return 0


def choose_events(
    events: Sequence[Event],
    sure: Floats,
    up: Bools,
    candidates: Sequence[Marker],
    budget: tuple[int, int],
    chosen_before: Sequence[Marker] = (),
) -> list[Marker]:
    """Add events one by one that most improve a logistic model, except near duplicates.

    Args:
        chosen_before: Chosen before: the model starts with them.
        sure: [conversation, event], from 0 to 1.
        budget: Good and bad ones at most.
    """
    # places left on each side
    left = {1: budget[0], -1: budget[1]}
    out: list[Marker] = []
    per_pattern: Counter[str] = Counter()
    waiting = []
    for f in candidates:
        if not any(are_twin_events(sure, f, marker) for marker in chosen_before):
            waiting.append(f)

    while waiting and any(left.values()):
        # a model of the events so far: what it leaves unexplained ranks those that wait
        model = [*chosen_before, *out]
        p = fit_shrunk(
            sure[:, [f.column for f in model]],
            up,
            np.array([f.side for f in model], dtype=float),
        )
        gains = []
        for f in waiting:
            gains.append(score_gain(sure[:, f.column], up, p, f, events[f.column]))

        best = int(np.argmax(gains))
        # none of them improves the model any more
        if gains[best] <= 0:
            break
        marker = waiting.pop(best)
        out.append(marker)
        left[marker.side] -= 1
        per_pattern[events[marker.column].pattern] += 1
        # left out: full sides, patterns with enough rubrics, twins of the event just chosen
        still_waiting = []
        for f in waiting:
            if (
                left[f.side]
                and per_pattern[events[f.column].pattern] < PER_PATTERN
                and not are_twin_events(sure, f, marker)
            ):
                still_waiting.append(f)

        waiting = still_waiting

    return out


def are_twin_events(sure: Floats, a: Marker, b: Marker) -> bool:
    """Return whether two events happen in the same conversations."""
    x = sure[:, a.column]
    y = sure[:, b.column]
    # an event that happens everywhere or nowhere tells nothing beside another one
    if not x.std() or not y.std():
        return True
    return abs(float(np.corrcoef(x, y)[0, 1])) > MOST_ALIKE


def score_gain(
    x: Floats,
    up: Bools,
    p: Floats,
    marker: Marker,
    event: Event,
) -> float:
    """Score the gain of adding an event [conversation]; actionable events get a bonus."""
    # score test of one more column: what it explains of the residuals, over its standard error
    w = p * (1 - p)
    centered = x - (w @ x) / w.sum()
    z = marker.side * float(centered @ (up - p)) / float(np.sqrt((w * centered**2).sum() + 0.5))
    pattern = PATTERNS[event.pattern]
    # a z below .3 is worth no rubric
    worth = z * (NARROW if event.topic != ANY_TOPIC else 1.0) - 0.3
    if worth <= 0:
        return worth
    return worth + EXPECTED * (pattern.side == marker.side) + ACTING * (pattern.who == "assistant")


def fit_shrunk(x: Floats, up: Bools, sides: Floats) -> Floats:
    """Fit the probability of a thumb up [conversation], with weights shrunk toward the sides."""
    w, b = fit_weights(x, up, sides)
    return np.asarray(1 / (1 + np.exp(-(x @ w + b))))


def fit_weights(
    x: Floats,
    up: Bools,
    sides: Floats,
    pull: float = 4.0,
    toward: float = 0.6,
) -> tuple[Floats, float]:
    """Fit weights [event] and intercept of a penalized logistic model by Newton's method.

    Weights are shrunk toward `toward` times the sides.
    """
    design = np.hstack([x, np.ones((len(x), 1))])
    # weights are pulled toward their sides, the intercept is practically free
    aim = np.append(toward * sides, 0.0)
    penalty = np.diag(np.append(np.full(x.shape[1], pull), 1e-6))
    theta = aim.copy()
    for _ in range(25):
        # gradient and curvature of the penalized loss give Newton's step
        p = 1 / (1 + np.exp(-(design @ theta)))
        slope = design.T @ (p - up) + penalty @ (theta - aim)
        bend = (design * (p * (1 - p))[:, None]).T @ design + penalty
        step = np.linalg.solve(bend, slope)
        theta -= step
        if np.abs(step).max() < 1e-8:
            break

    return theta[:-1], float(theta[-1])


Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]

BUDGET = (10, 10)
RATES = (4, 4)
"""Successes that are only successes: they count for the score, and are no rubrics to act on."""
FILL = 0.15
"""Events beyond the bounded rate may fill the budget up to this p: they count, and are not headlined."""
SURE_QUOTES = 2
EXAMPLES, FEWEST_ABOUT = 3, 5
"""Of conversations about a topic: those that are shown, and below how many nothing is said."""


def fit_event_rubrics(
    readings: Sequence[Observed],
    up: Bools,
    topics: Topics,
    rng: np.random.Generator,
    budget: tuple[int, int] = BUDGET,
) -> list[EventRubric]:
    """Choose events, and put them into words with their quotes."""
    all_events: set[Event] = set()
    for reading in readings:
        all_events.update(reading.firings)
    events = sorted(all_events)
    # probability of each event `[conversation, event]`
    sure = np.array([[reading.sure(event) for event in events] for reading in readings]).reshape(
        len(up),
        len(events),
    )
    markers = list_candidate_events(
        events,
        sure > 0,
        tabulate_topics(readings, len(topics.topics)),
        up,
        rng,
        lambda event: has_words_for(event, topics),
    )
    # significant, or likely and of the usual side; a difference of one half alone must be usual
    pool = []
    for f in markers:
        if (f.within_bound or (f.p < FILL and f.expected)) and (f.both_halves or f.expected):
            pool.append(f)

    # rates come after the events to act on, with a budget of their own, in one model with them
    rates = set()
    for f in pool:
        if PATTERNS[events[f.column].pattern].rate:
            rates.add(f.column)

    markers_of_events = []
    for f in pool:
        if f.column not in rates:
            markers_of_events.append(f)

    best = choose_events(
        events,
        sure,
        up,
        markers_of_events,
        budget,
    )
    markers_of_rates = []
    for f in pool:
        if f.column in rates:
            markers_of_rates.append(f)

    best += choose_events(
        events,
        sure,
        up,
        markers_of_rates,
        RATES,
        chosen_before=best,
    )
    return [make_event_rubric(events[f.column], f, readings, up, topics) for f in best]


def make_event_rubric(
    event: Event,
    marker: Marker,
    readings: Sequence[Observed],
    up: Bools,
    topics: Topics,
) -> EventRubric:
    """Make a rubric from a chosen event."""
    # the topic and object of each happening
    firings = []
    for reading in readings:
        for f in reading.firings.get(event, ()):
            firings.append((reading.topics[f.move], f.detail))

    named = named_topics(event, topics, [topic for topic, _ in firings])
    # the topic that each happening really names, or none
    descriptions = []
    for reading in readings:
        for firing in reading.firings.get(event, ()):
            descriptions.append(find_told_topic(reading, firing, topics))

    good = marker.side > 0
    # quotes from conversations with the rubric's label come first
    quotes = quote_event(event, readings, named, topics, [bool(label) == good for label in up])[
        :MOST_QUOTES
    ]
    return EventRubric(
        event=event,
        text=write_event_sentence(event, topics, descriptions, [detail for _, detail in firings]),
        polarity="sat" if good else "dsat",
        named=tuple(named),
        headline=may_lead(event, marker, quotes),
        quotes=tuple(quote.quote for quote in quotes),
    )


def may_lead(
    event: Event,
    marker: Marker,
    quotes: Sequence[EventQuote],
) -> bool:
    """Return whether a rubric may be shown first: proven pattern, sure quotes, stable difference."""
    pattern = PATTERNS[event.pattern]
    sure = (
        sum(quote.sure >= LEAST_QUOTE_SURENESS and quote.named for quote in quotes) >= SURE_QUOTES
    )
    telling = marker.expected and (marker.within_bound or pattern.side != 0)
    return pattern.proven and sure and telling and not pattern.rate and marker.both_halves


def compute_segments(
    training: Sequence[Conversation], shown: Sequence[Conversation]
) -> tuple[tuple[Segment, ...], dict[str, Bools]]:
    """Compute segments of labeled conversations by learned topics; none if the log isn't in English.

    Returns:
        The segments, and by topic which of `told` are about it `[conversation]`.
    """
    if not shown or detect_log_language(training) != ENGLISH:
        return (), {}

    # topics come from the whole training log, shares from the conversations that are shown
    log = [mark_acts(conversation) for conversation in training]
    topics = learn_topics(log)
    names = name_topics(topics, log)
    up = np.array(
        [conversation.label is Label.POSITIVE for conversation in shown],
        dtype=bool,
    )
    readings = [read_conversation(conversation, topics) for conversation in shown]
    about = tabulate_topics(readings, len(topics.topics))
    by_topic = dict(zip(names, about.T, strict=True))

    return tuple(rank_segments(readings, names, up)), by_topic


def rank_segments(
    readings: Sequence[Observed],
    topics: Sequence[str],
    up: Bools,
) -> list[Segment]:
    """Rank topics by how much their share of thumbs down differs from the rest."""
    by_topic = []
    about = tabulate_topics(readings, len(topics))
    # dependent conversations count together in the shares' intervals
    together = number_blocks([reading.conversation for reading in readings])
    for index, topic in enumerate(topics):
        rows = about[:, index]
        if rows.sum() < FEWEST_ABOUT:
            continue
        down = measure_share_among(rows, ~up, together)
        rest = measure_share_among(~rows, ~up, together)

        # Where a topic goes better than the rest, conversations that went well show it.
        goes_better = (down.value or 0.0) < (rest.value or 0.0)
        order = sorted(
            map(int, np.flatnonzero(rows)),
            key=lambda row: (up[row] != goes_better, row),
        )
        by_topic.append(
            Segment(
                topic=topic,
                down=down,
                rest=rest,
                examples=tuple(readings[row].conversation.id for row in order[:EXAMPLES]),
            )
        )

    return sorted(by_topic, key=lambda segment: -compute_unlikeness(segment))


def compute_unlikeness(segment: Segment) -> float:
    """Return z of the difference between a segment's share and the rest's; 0 if undefined."""
    a = segment.down
    b = segment.rest
    if a.value is None or b.value is None:
        return 0.0

    # both shares as one, and the standard error of their difference
    pooled = (a.value * a.n + b.value * b.n) / (a.n + b.n)
    spread = np.sqrt(max(pooled * (1 - pooled), 1e-9) * (1 / a.n + 1 / b.n))
    return abs(float((a.value - b.value) / spread))


def tabulate_topics(readings: Sequence[Observed], count: int) -> Bools:
    """Tabulate which conversations are about which topics, [conversation, topic]."""
    table = np.zeros((len(readings), count), dtype=bool)
    for row, reading in enumerate(readings):
        for topic in set(reading.topics):
            if topic >= 0:
                table[row, topic] = True

    return table
