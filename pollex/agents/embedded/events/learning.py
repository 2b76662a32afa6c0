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

from pollex.agents.embedded.events.language import ENGLISH_LANGUAGE_NAME, detect_log_language
from pollex.agents.embedded.events.patterns import PATTERNS_BY_NAME
from pollex.agents.embedded.events.reading import (
    ANY_TOPIC,
    ConversationReading,
    Event,
    EventRubric,
    read_events_of_conversation,
    read_moves_with_acts,
)
from pollex.agents.embedded.events.signal import (
    MAX_QUOTES_PER_EVENT,
    MIN_QUOTE_SURENESS,
    EventQuote,
    choose_topics_to_name,
    find_topic_named_in_exchange,
    has_words_for_sentence,
    quote_event,
    write_event_sentence,
)
from pollex.agents.embedded.events.topics import (
    LogTopics,
    learn_topics_of_log,
    name_topics_for_readers,
)
from pollex.conversations.conversation import Conversation, Label
from pollex.conversations.splits import number_dependent_blocks
from pollex.rubrics.records import Segment
from pollex.rubrics.worth import measure_share_among

# bound of the false discovery rate
FALSE_DISCOVERY_RATE = 0.2
# an event has to occur in this share of conversations, in 3 at least and 6 at most
MIN_CONVERSATIONS_OF_EVENT = 3
MAX_CONVERSATIONS_NEEDED = 6
NEEDED_CONVERSATION_SHARE = 0.03
# correlation above which two events are one
MAX_EVENT_CORRELATION = 0.6
MIN_CONVERSATIONS_OF_BROADER_ALONE = 6
"""Conversations with the broader event alone that a comparison with it takes."""
MAX_P_OF_NARROWER_EVENT = 0.05
"""Highest p of an event of one object against the same of others with which it is a rubric of its own."""
MAX_EVENTS_PER_PATTERN = 2
# factor for an event of one topic, and what the usual side and a doing of the assistant add
NARROW_EVENT_FACTOR = 0.75
EXPECTED_SIDE_BONUS = 1.0
ASSISTANT_EVENT_BONUS = 0.4


@dataclass(frozen=True)
class EventContrast:
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


def count_conversations_needed_of_event(conversations: int) -> int:
    """Return the number of conversations in which an event has to occur: 3 to 6."""
    return max(
        MIN_CONVERSATIONS_OF_EVENT,
        min(MAX_CONVERSATIONS_NEEDED, round(NEEDED_CONVERSATION_SHARE * conversations)),
    )


def list_candidate_events(
    events: Sequence[Event],
    held: Bools,
    on_topic: Bools,
    up: Bools,
    rng: np.random.Generator,
    usable: Callable[[Event], bool],
) -> list[EventContrast]:
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

    covered = find_events_told_better_by_narrower(events, held, broader)
    least = count_conversations_needed_of_event(len(up))
    markers = []
    for column, event in enumerate(events):
        h = held[:, column]
        # too rare, too common, told more closely by another event, or without words
        if min(h.sum(), (~h).sum()) < least or column in covered or not usable(event):
            continue
        gap = up[h].mean() - up[~h].mean()
        # a narrow event has to tell more than each of its broader ones: topic, pattern, any object
        wider = broader.get(PATTERNS_BY_NAME[event.pattern].within)
        if gap == 0 or (
            event.topic != ANY_TOPIC
            and not tells_more_than_broader_event(h, on_topic[:, event.topic], up, gap)
        ):
            continue
        if wider is not None and not tells_more_than_broader_event(h, held[:, wider], up, gap):
            continue
        general = broader[event.pattern] if event.detail else None
        if general is not None and (
            general in covered or not differs_from_other_objects(h, held[:, general], up, gap)
        ):
            continue

        # conversations with and without the event, each with thumbs up and down
        side = 1 if gap > 0 else -1
        table = []
        for rows in (h, ~h):
            table.append([int((rows & label).sum()) for label in (up, ~up)])

        expected = PATTERNS_BY_NAME[event.pattern].side in (0, side)
        markers.append(
            (
                float(fisher_exact(table)[1]),
                column,
                side,
                expected,
                has_same_sign_in_both_halves(h, up, half, side),
            )
        )

    # the smallest p first: the bounded rate is a bound on each rank
    markers.sort()
    bound = count_within_false_discovery_rate(np.array([p for p, *_ in markers]))
    return [
        EventContrast(column, side, p, k < bound, expected, both)
        for k, (p, column, side, expected, both) in enumerate(markers)
    ]


def tells_more_than_broader_event(
    h: Bools,
    broader: Bools,
    up: Bools,
    gap: float,
) -> bool:
    """Return whether an event distinguishes the classes beyond its broader case; each [conversation]."""
    rest = broader & ~h
    return (
        int(rest.sum()) < MIN_CONVERSATIONS_OF_BROADER_ALONE
        or (up[h].mean() - up[rest].mean()) * gap > 0
    )


def differs_from_other_objects(
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
    if int(rest.sum()) < MIN_CONVERSATIONS_OF_BROADER_ALONE or not tells_more_than_broader_event(
        h, broader, up, gap
    ):
        return False

    table = []
    for rows in (h, rest):
        table.append([int((rows & label).sum()) for label in (up, ~up)])

    return float(fisher_exact(table)[1]) < MAX_P_OF_NARROWER_EVENT


def find_events_told_better_by_narrower(
    events: Sequence[Event],
    held: Bools,
    broader: Mapping[str, int],
) -> set[int]:
    """Return the columns of events that hardly ever happen but as a narrower one, which says more of them."""
    columns = set[int]()
    for event in events:
        wider = broader.get(PATTERNS_BY_NAME[event.pattern].within)
        # rates count beside their cases, and a case has to occur in this log
        if (
            wider is None
            or PATTERNS_BY_NAME[events[wider].pattern].rate
            or event.pattern not in broader
        ):
            continue
        # the broader event hardly ever happens alone
        if (
            int((held[:, wider] & ~held[:, broader[event.pattern]]).sum())
            < MIN_CONVERSATIONS_OF_BROADER_ALONE
        ):
            columns.add(wider)

    return columns


def draw_stratified_half(up: Bools, rng: np.random.Generator) -> Bools:
    """Half of the conversations of each class."""
    half = np.zeros(len(up), dtype=bool)
    for label in (True, False):
        rows = rng.permutation(np.flatnonzero(up == label))
        half[rows[: len(rows) // 2]] = True
    return half


def has_same_sign_in_both_halves(
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


def count_within_false_discovery_rate(p: Floats) -> int:
    """Count the sorted p values [event] within the false discovery rate."""
    if not len(p):
        return 0

    # the last p under the bound of its rank, and all before it
    within = np.flatnonzero(p <= FALSE_DISCOVERY_RATE * np.arange(1, len(p) + 1) / len(p))
    if len(within):
        return int(within[-1]) + 1
    return 0


def choose_events_stepwise(
    events: Sequence[Event],
    sure: Floats,
    up: Bools,
    candidates: Sequence[EventContrast],
    budget: tuple[int, int],
    chosen_before: Sequence[EventContrast] = (),
) -> list[EventContrast]:
    """Add events one by one that most improve a logistic model, except near duplicates.

    Args:
        chosen_before: Chosen before: the model starts with them.
        sure: [conversation, event], from 0 to 1.
        budget: Good and bad ones at most.
    """
    # places left on each side
    left = {1: budget[0], -1: budget[1]}
    out: list[EventContrast] = []
    per_pattern: Counter[str] = Counter()
    waiting = []
    for f in candidates:
        if not any(happen_together(sure, f, marker) for marker in chosen_before):
            waiting.append(f)

    while waiting and any(left.values()):
        # a model of the events so far: what it leaves unexplained ranks those that wait
        model = [*chosen_before, *out]
        p = fit_shrunk_probabilities(
            sure[:, [f.column for f in model]],
            up,
            np.array([f.side for f in model], dtype=float),
        )
        gains = []
        for f in waiting:
            gains.append(score_gain_of_event(sure[:, f.column], up, p, f, events[f.column]))

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
                and per_pattern[events[f.column].pattern] < MAX_EVENTS_PER_PATTERN
                and not happen_together(sure, f, marker)
            ):
                still_waiting.append(f)

        waiting = still_waiting

    return out


def happen_together(sure: Floats, a: EventContrast, b: EventContrast) -> bool:
    """Return whether two events happen in the same conversations."""
    x = sure[:, a.column]
    y = sure[:, b.column]
    # an event that happens everywhere or nowhere tells nothing beside another one
    if not x.std() or not y.std():
        return True
    return abs(float(np.corrcoef(x, y)[0, 1])) > MAX_EVENT_CORRELATION


def score_gain_of_event(
    x: Floats,
    up: Bools,
    p: Floats,
    marker: EventContrast,
    event: Event,
) -> float:
    """Score the gain of adding an event [conversation]; actionable events get a bonus."""
    # score test of one more column: what it explains of the residuals, over its standard error
    w = p * (1 - p)
    centered = x - (w @ x) / w.sum()
    z = marker.side * float(centered @ (up - p)) / float(np.sqrt((w * centered**2).sum() + 0.5))
    pattern = PATTERNS_BY_NAME[event.pattern]
    # a z below .3 is worth no rubric
    worth = z * (NARROW_EVENT_FACTOR if event.topic != ANY_TOPIC else 1.0) - 0.3
    if worth <= 0:
        return worth
    return (
        worth
        + EXPECTED_SIDE_BONUS * (pattern.side == marker.side)
        + ASSISTANT_EVENT_BONUS * (pattern.who == "assistant")
    )


def fit_shrunk_probabilities(x: Floats, up: Bools, sides: Floats) -> Floats:
    """Fit the probability of a thumb up [conversation], with weights shrunk toward the sides."""
    w, b = fit_event_weights(x, up, sides)
    return np.asarray(1 / (1 + np.exp(-(x @ w + b))))


def fit_event_weights(
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

EVENT_BUDGET_BY_SIDE = (10, 10)
RATE_BUDGET_BY_SIDE = (4, 4)
"""Successes that are only successes: they count for the score, and are no rubrics to act on."""
MAX_P_TO_FILL_BUDGET = 0.15
"""Events beyond the bounded rate may fill the budget up to this p: they count, and are not headlined."""
MIN_SURE_QUOTES_OF_LEADING_RUBRIC = 2
EXAMPLES_PER_SEGMENT, MIN_CONVERSATIONS_OF_SEGMENT = 3, 5
"""Of conversations about a topic: those that are shown, and below how many nothing is said."""


def fit_event_rubrics(
    readings: Sequence[ConversationReading],
    up: Bools,
    topics: LogTopics,
    rng: np.random.Generator,
    budget: tuple[int, int] = EVENT_BUDGET_BY_SIDE,
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
        tabulate_topics_of_conversations(readings, len(topics.topics)),
        up,
        rng,
        lambda event: has_words_for_sentence(event, topics),
    )
    # significant, or likely and of the usual side; a difference of one half alone must be usual
    pool = []
    for f in markers:
        if (f.within_bound or (f.p < MAX_P_TO_FILL_BUDGET and f.expected)) and (
            f.both_halves or f.expected
        ):
            pool.append(f)

    # rates come after the events to act on, with a budget of their own, in one model with them
    rates = set()
    for f in pool:
        if PATTERNS_BY_NAME[events[f.column].pattern].rate:
            rates.add(f.column)

    markers_of_events = []
    for f in pool:
        if f.column not in rates:
            markers_of_events.append(f)

    best = choose_events_stepwise(
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

    best += choose_events_stepwise(
        events,
        sure,
        up,
        markers_of_rates,
        RATE_BUDGET_BY_SIDE,
        chosen_before=best,
    )
    return [make_rubric_of_event(events[f.column], f, readings, up, topics) for f in best]


def make_rubric_of_event(
    event: Event,
    marker: EventContrast,
    readings: Sequence[ConversationReading],
    up: Bools,
    topics: LogTopics,
) -> EventRubric:
    """Make a rubric from a chosen event."""
    # the topic and object of each happening
    firings = []
    for reading in readings:
        for f in reading.firings.get(event, ()):
            firings.append((reading.topics[f.move], f.detail))

    named = choose_topics_to_name(event, topics, [topic for topic, _ in firings])
    # the topic that each happening really names, or none
    descriptions = []
    for reading in readings:
        for firing in reading.firings.get(event, ()):
            descriptions.append(find_topic_named_in_exchange(reading, firing, topics))

    good = marker.side > 0
    # quotes from conversations with the rubric's label come first
    quotes = quote_event(event, readings, named, topics, [bool(label) == good for label in up])[
        :MAX_QUOTES_PER_EVENT
    ]
    return EventRubric(
        event=event,
        text=write_event_sentence(event, topics, descriptions, [detail for _, detail in firings]),
        polarity="sat" if good else "dsat",
        named=tuple(named),
        headline=may_be_shown_first(event, marker, quotes),
        quotes=tuple(quote.quote for quote in quotes),
    )


def may_be_shown_first(
    event: Event,
    marker: EventContrast,
    quotes: Sequence[EventQuote],
) -> bool:
    """Return whether a rubric may be shown first: proven pattern, sure quotes, stable difference."""
    pattern = PATTERNS_BY_NAME[event.pattern]
    sure = (
        sum(quote.sure >= MIN_QUOTE_SURENESS and quote.named for quote in quotes)
        >= MIN_SURE_QUOTES_OF_LEADING_RUBRIC
    )
    telling = marker.expected and (marker.within_bound or pattern.side != 0)
    return pattern.proven and sure and telling and not pattern.rate and marker.both_halves


def compute_topic_segments(
    training: Sequence[Conversation], shown: Sequence[Conversation]
) -> tuple[tuple[Segment, ...], dict[str, Bools]]:
    """Compute segments of labeled conversations by learned topics; none if the log isn't in English.

    Returns:
        The segments, and by topic which of `told` are about it `[conversation]`.
    """
    if not shown or detect_log_language(training) != ENGLISH_LANGUAGE_NAME:
        return (), {}

    # topics come from the whole training log, shares from the conversations that are shown
    log = [read_moves_with_acts(conversation) for conversation in training]
    topics = learn_topics_of_log(log)
    names = name_topics_for_readers(topics, log)
    up = np.array(
        [conversation.label is Label.POSITIVE for conversation in shown],
        dtype=bool,
    )
    readings = [read_events_of_conversation(conversation, topics) for conversation in shown]
    about = tabulate_topics_of_conversations(readings, len(topics.topics))
    by_topic = dict(zip(names, about.T, strict=True))

    return tuple(rank_segments_by_difference(readings, names, up)), by_topic


def rank_segments_by_difference(
    readings: Sequence[ConversationReading],
    topics: Sequence[str],
    up: Bools,
) -> list[Segment]:
    """Rank topics by how much their share of thumbs down differs from the rest."""
    by_topic = []
    about = tabulate_topics_of_conversations(readings, len(topics))
    # dependent conversations count together in the shares' intervals
    together = number_dependent_blocks([reading.conversation for reading in readings])
    for index, topic in enumerate(topics):
        rows = about[:, index]
        if rows.sum() < MIN_CONVERSATIONS_OF_SEGMENT:
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
                examples=tuple(
                    readings[row].conversation.id for row in order[:EXAMPLES_PER_SEGMENT]
                ),
            )
        )

    return sorted(by_topic, key=lambda segment: -compute_segment_z(segment))


def compute_segment_z(segment: Segment) -> float:
    """Return z of the difference between a segment's share and the rest's; 0 if undefined."""
    a = segment.down
    b = segment.rest
    if a.value is None or b.value is None:
        return 0.0

    # both shares as one, and the standard error of their difference
    pooled = (a.value * a.n + b.value * b.n) / (a.n + b.n)
    spread = np.sqrt(max(pooled * (1 - pooled), 1e-9) * (1 / a.n + 1 / b.n))
    return abs(float((a.value - b.value) / spread))


def tabulate_topics_of_conversations(readings: Sequence[ConversationReading], count: int) -> Bools:
    """Tabulate which conversations are about which topics, [conversation, topic]."""
    table = np.zeros((len(readings), count), dtype=bool)
    for row, reading in enumerate(readings):
        for topic in set(reading.topics):
            if topic >= 0:
                table[row, topic] = True

    return table
