"""Estimate how many of all conversations are good, from the few that have labels.

Source of cross-fitting: Zrnic and Candès 2023, arXiv:2309.16598. A model that predicts labels which
it was fitted to makes intervals too narrow: coverage falls to 80 to 90 %.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from pollex.agents.embedded.events.learning import tabulate_topics_of_conversations
from pollex.agents.embedded.events.reading import read_events_of_conversation, read_moves_with_acts
from pollex.agents.embedded.events.topics import learn_topics_of_log, name_topics_for_readers
from pollex.agents.embedded.signals import measure_wording_signals
from pollex.conversations.conversation import NAME_OF_UNKNOWN_PROMPT_VERSION, Conversation, Label
from pollex.conversations.logs import BadRow, Logs
from pollex.errors import BadInput, BadLabels, WrongUse
from pollex.formats.fields import ReadOptions
from pollex.formats.label_files import (
    RANDOM_DRAW_METHOD,
    VOLUNTARY_DRAW_METHOD,
    ConversationLabel,
    list_conversation_labels,
    read_label_file,
)
from pollex.formats.paths import get_path_value
from pollex.formats.write import require_writable_output_path
from pollex.graphs.context import Progress
from pollex.measures.arrays import Bools, Floats, Ints, assign_numbers_to_names
from pollex.measures.intervals import Figure
from pollex.measures.share import (
    MIN_LABELS_FOR_SHARE_ESTIMATE,
    LabeledSample,
    Share,
    ShareBounds,
    VoteDependence,
    bound_share_for_voting_odds,
    check_vote_dependence_on_satisfaction,
    estimate_share_from_probabilities,
    estimate_share_from_random_labels,
    estimate_share_from_voluntary_votes,
    estimate_wilson_share,
)
from pollex.outputs import write_text
from pollex.reports.share import render_share_page
from pollex.rubrics.rubric_set import RubricSet
from pollex.runs.options import ModelOptions, RunOptions
from pollex.services.evaluate import count_seen_before
from pollex.services.logs import Sources, list_file_names, logs_from
from pollex.services.results import TabularResult, format_interval
from pollex.services.score import read_unedited, score
from pollex.text import TerminalLines, TerminalTable, format_count, render_notes

CROSSFIT_FOLDS = 10
LOGISTIC_INVERSE_PENALTY = 0.01
"""Inverse strength of the penalty: some 200 features stand against tens of labels."""


def crossfit_answers(
    features: Floats,
    is_known: Bools,
    answer: Bools,
    rng: np.random.Generator,
    together: Ints | None = None,
) -> Floats:
    """Predict an answer for every conversation by logistic regression `[conversation]`.

    Args:
        features: What is known of each conversation `[conversation, feature]`.
        known: Whether its answer is known `[conversation]`.
        answer: The answer; any value where it is not known `[conversation]`.
        together: Number of what must stay in one fold, such as a user `[conversation]`.

    Returns:
        By the model of the other folds, whether its answer is known or not: a model that has seen a
        conversation's like is surer of it, and known and unknown ones would not be alike.
    """
    # columns are standardized, so that one penalty fits all; a constant one stays 0
    scale = features.std(axis=0)
    x = (features - features.mean(axis=0)) / np.where(scale > 0, scale, 1.0)
    _, unit = np.unique(
        np.arange(len(x)) if together is None else together,
        return_inverse=True,
    )
    # those of one unit share a fold
    fold = (rng.permutation(unit.max() + 1 if len(unit) else 0) % CROSSFIT_FOLDS)[unit]
    # each fold is predicted by a model that has not seen it, labels or none
    out = np.zeros(len(x))
    for number in range(CROSSFIT_FOLDS):
        of_fold = fold == number
        out[of_fold] = _fit_answer_model(x, is_known & ~of_fold, answer)[of_fold]

    return out


def _fit_answer_model(x: Floats, is_labeled: Bools, answer: Bools) -> Floats:
    from sklearn.linear_model import LogisticRegression  # it takes a second to import

    if is_labeled.any():
        share = float(answer[is_labeled].mean())
    else:
        share = 0.5

    # labels that are all alike fit no model: their share, drawn towards one half
    if share in (0.0, 1.0) or not is_labeled.any():
        return np.full(
            len(x),
            (share * is_labeled.sum() + 0.5) / (is_labeled.sum() + 1),
        )

    model = LogisticRegression(C=LOGISTIC_INVERSE_PENALTY, max_iter=500).fit(
        x[is_labeled],
        answer[is_labeled],
    )
    return np.asarray(model.predict_proba(x)[:, 1], dtype=np.float64)


SEGMENT_GROUPING = "segment"
PERIOD_FORMATS = {
    "day": "%Y-%m-%d",
    "week": "%G-W%V",
    "month": "%Y-%m",
}
NO_VALUE_NAME = NAME_OF_UNKNOWN_PROMPT_VERSION
PROMPT_GROUPING = "prompt"
"""What stands for the version of the prompt, whatever field has it, where no field has this name."""
MAX_SEEN_SHARE = 0.05
"""Share of labeled conversations that a set may have seen: greetings are alike in every log."""

MAX_GROUPS_SHOWN = 50
"""Groups that a table can show."""


@dataclass(frozen=True, eq=False)
class ShareSample:
    """Conversations with what is known of their labels, as arrays.

    Attributes:
        random: Whether each has a label drawn at random `[conversation]`.
        good: That label; False where there is none `[conversation]`.
        voted: Whether each has a label given voluntarily `[conversation]`.
        liked: That label; False where there is none `[conversation]`.
        user: Number of its user; None where no conversation names one `[conversation]`.
        of_random: Probability of a good label at random, by a model that hasn't seen the label
            `[conversation]`.
        of_votes: The same of a good vote `[conversation]`.
        voting: Probability of a vote, by a model that hasn't seen whether there is one
            `[conversation]`.
    """

    random: Bools
    good: Bools
    voted: Bools
    liked: Bools
    user: Ints | None
    of_random: Floats
    of_votes: Floats
    voting: Floats

    def of(self, mask: Bools) -> ShareSample:
        """Return some of the conversations."""
        given_fields: dict[str, Any] = {}
        for name, var in vars(self).items():
            given_fields[name] = None if var is None else var[mask]
        return ShareSample(**given_fields)


def collect_labels(
    conversations: Sequence[Conversation],
    labels: Path | None,
    drawn: str | None,
    reading: ReadOptions,
) -> tuple[list[ConversationLabel], tuple[BadRow, ...]]:
    """Return the labels of the logs and of the file, and unreadable rows.

    Raises:
        BadInput: A label is of no conversation of the logs.
        BadLabels: There are none, none in the file, or some of the file don't say how they were
            drawn.
    """
    # beside a file, labels of the logs that don't say how they were drawn count as voluntary
    own_labels = list_conversation_labels(
        conversations, VOLUNTARY_DRAW_METHOD if labels else drawn or VOLUNTARY_DRAW_METHOD
    )
    read_in_labels, bad = ([], ()) if labels is None else read_label_file(labels, reading)
    if labels is not None and not read_in_labels:
        hint = "fill in its thumbs; answers to a questionnaire go to `pollex calibrate fit`"
        raise BadLabels("the file has no label", where=str(labels), hint=hint)

    # a row's own word on how it was drawn goes before the option
    read_in_labels = [label._replace(drawn=label.drawn or drawn or "") for label in read_in_labels]
    if unsaid := sum(not label.drawn for label in read_in_labels):
        raise BadLabels(
            f"{format_count(unsaid, 'label does', 'labels do')} not say how they were drawn",
            where=str(labels),
            hint="add a field `drawn` (random or voluntary), or say it where it is the same for all",
            option={"drawn": "random"},
        )

    # a label of an unknown conversation points to the wrong logs
    known_ids = {conversation.id for conversation in conversations}
    if strangers := [label.id for label in read_in_labels if label.id not in known_ids]:
        raise BadInput(
            f"{format_count(len(strangers), 'label is', 'labels are')} of conversations that the logs don't have: "
            f"{strangers[0]!r:.60}",
            where=str(labels),
            hint="give the logs that they were drawn from",
        )

    # scores alone give no share: there must be some label
    if not own_labels and not read_in_labels:
        raise BadLabels(
            "no conversation has a label; the share of scores over θ is no estimate",
            hint="`pollex label next LOGS --for share` draws conversations to label",
        )

    return [*own_labels, *read_in_labels], bad


def list_label_warnings(
    labels: Sequence[ConversationLabel],
    conversations: Sequence[Conversation],
    drawn: str | None,
) -> list[str]:
    """Return warnings about labels by queues, by unknown annotators, or by one user."""
    notes = []
    # labels by queues were picked for a reason and are no sample
    ways = Counter(label.drawn for label in labels)
    if others := sum(
        n for way, n in ways.items() if way not in (RANDOM_DRAW_METHOD, VOLUNTARY_DRAW_METHOD)
    ):
        left = format_count(
            others,
            "label of a queue is left out",
            "labels of queues are left out",
        )
        notes.append(f"{left}: conversations that were picked for a reason are no sample")

    # how labels were drawn changes the estimate: an assumption is told
    if drawn is None and not ways[RANDOM_DRAW_METHOD]:
        notes.append(
            "labels are taken as given voluntarily; if all were asked at random, say --drawn random"
        )

    if unnamed := sum(not label.source for label in labels):
        notes.append(
            f"{format_count(unnamed, 'label does', 'labels do')} not say who gave them (field `source`)"
        )

    # labels of one user count nearly as one
    user = {}
    for conversation in conversations:
        if conversation.group is not None:
            user[conversation.id] = conversation.group

    users: Counter[str] = Counter()
    for label in labels:
        if label.id in user:
            users[user[label.id]] += 1
    for who, n in users.most_common(1):
        if 2 * n >= len(labels) > 1:
            notes.append(
                f"one user ({who:.40}) gave {n} of {len(labels)} labels: the share is largely that user's"
            )

    return notes


def build_share_sample(
    conversations: Sequence[Conversation],
    labels: Sequence[ConversationLabel],
    rubric_set: RubricSet | None,
    probability: Floats | None,
) -> tuple[ShareSample, list[str]]:
    """Return the arrays, and how the probabilities came about.

    A set that was learned from labeled conversations has seen them: probabilities are then
    cross-fitted anew.
    """
    # labels at random and voluntary ones, each as the pair of whether and which
    (random, good), (voted, liked) = (
        _make_label_columns(conversations, labels, way)
        for way in (RANDOM_DRAW_METHOD, VOLUNTARY_DRAW_METHOD)
    )
    features = measure_wording_signals(conversations)
    rng = np.random.default_rng(0)
    user = number_users_of_conversations(conversations)
    notes = []
    of_random = None
    # scores are of use only for conversations that the set has not seen
    if rubric_set is not None and probability is not None:
        labeled = []
        for c, is_labeled in zip(conversations, random | voted, strict=True):
            if is_labeled:
                labeled.append(c)

        # a few seen ones do little harm; more make probabilities too sure
        seen_count = sum(count_seen_before(rubric_set, labeled).values())
        if seen_count > MAX_SEEN_SHARE * len(labeled):
            notes.append(
                f"the rubric set has seen {seen_count} of {len(labeled)} labeled conversations: probabilities are "
                "cross-fitted without it"
            )
        else:
            but = ""
            if seen_count:
                but = f" (but for {seen_count} of {len(labeled)})"
            notes.append(
                f"the rubric set was learned from other conversations{but}: its scores narrow the intervals"
            )
            # scores predict labels as they are, and votes as one more feature in log-odds
            odds = np.log(np.clip(probability, 1e-6, 1) / np.clip(1 - probability, 1e-6, 1))
            of_random = probability
            features = np.column_stack([features, odds])

    # without usable scores, words alone predict the labels
    if of_random is None:
        of_random = crossfit_answers(features, random, good, rng, user)

    of_votes = crossfit_answers(features, voted, liked, rng, user)
    # whether somebody votes is known of every conversation
    voting = crossfit_answers(
        features,
        np.ones(len(voted), dtype=bool),
        voted,
        rng,
        user,
    )
    return ShareSample(random, good, voted, liked, user, of_random, of_votes, voting), notes


def _make_label_columns(
    conversations: Sequence[Conversation],
    labels: Sequence[ConversationLabel],
    way: str,
) -> tuple[Bools, Bools]:
    # the last label wins where a conversation has several
    label = {label.id: label.label for label in labels if label.drawn == way}
    is_labeled = np.array(
        [conversation.id in label for conversation in conversations],
        dtype=bool,
    )
    return is_labeled, np.array(
        [label.get(conversation.id) is Label.POSITIVE for conversation in conversations], dtype=bool
    )


def number_users_of_conversations(conversations: Sequence[Conversation]) -> Ints | None:
    """Assign numbers to users [conversation]; None if no conversation names one.

    A conversation without a user is a user of its own.
    """
    if all(conversation.group is None for conversation in conversations):
        return None

    units = []
    for conversation in conversations:
        units.append(
            (conversation.group, "") if conversation.group is not None else ("", conversation.id)
        )

    return assign_numbers_to_names(units)


def group_conversations(conversations: Sequence[Conversation], by: str) -> dict[str, Bools]:
    """Return the conversations of each group by name; segments may overlap.

    Raises:
        WrongUse: No conversation has the field, or there are too many groups.
    """
    if by == SEGMENT_GROUPING:
        return _group_by_segments(conversations)

    # `FIELD:week` cuts times into periods; a colon before anything else belongs to the name
    name, _, period = (
        by.rpartition(":") if by.rpartition(":")[2] in PERIOD_FORMATS else (by, "", "")
    )
    prompt_given = by != PROMPT_GROUPING or any(
        PROMPT_GROUPING in conversation.metadata for conversation in conversations
    )
    # versions of the prompt may be in any field, unless one is called so
    values = []
    for conversation in conversations:
        values.append(
            _get_group_value(conversation, name, period) if prompt_given else conversation.prompt
        )

    # the fields that there are help to find the right name
    if all(value == NO_VALUE_NAME for value in values):
        field_names: set[str] = set()
        for conversation in conversations[:1000]:
            field_names.update(conversation.metadata)
        fields = sorted(field_names)
        raise WrongUse(
            f"no conversation has the field {name!r}",
            hint=f"fields are {', '.join(fields) or 'none'}",
            option="by",
        )

    # too many groups are no table: times may be cut into periods instead
    names = sorted(set(values))
    if len(names) > MAX_GROUPS_SHOWN:
        hint = "name a field with fewer values" + ("" if period else f", or {name}:week for times")
        raise WrongUse(
            f"{name!r} has {len(names)} values",
            hint=hint,
            option="by",
        )

    column = np.array(values, dtype=object)
    return {value: np.asarray(column == value, dtype=bool) for value in names}


def _get_group_value(conversation: Conversation, name: str, period: str) -> str:
    # values that are no scalar can't name a group
    value = get_path_value(conversation.metadata, name)
    if value is None or isinstance(value, dict | list):
        return NO_VALUE_NAME
    if not period:
        return str(value)

    try:
        # numbers are seconds since 1970, texts are dates in ISO 8601
        if isinstance(value, int | float):
            moment = datetime.fromtimestamp(value)
        else:
            moment = datetime.fromisoformat(str(value))
    except (ValueError, OverflowError, OSError):
        return NO_VALUE_NAME

    return moment.strftime(PERIOD_FORMATS[period])


def _group_by_segments(conversations: Sequence[Conversation]) -> dict[str, Bools]:
    # topics are learned from these conversations themselves
    log = []
    for conversation in conversations:
        log.append(read_moves_with_acts(conversation))

    topics = learn_topics_of_log(log)
    names = name_topics_for_readers(topics, log)
    about = tabulate_topics_of_conversations(
        [read_events_of_conversation(conversation, topics) for conversation in conversations],
        len(topics.topics),
    )
    # the most frequent topics first; some have no conversation at all
    sizes = about.sum(axis=0)
    order = []
    for place in np.argsort(-sizes)[:MAX_GROUPS_SHOWN]:
        if sizes[place]:
            order.append(int(place))

    return {names[place]: about[:, place] for place in order}


PROBABILITY_WITHOUT_SCORE = 0.5
"""Probability of a conversation without a score: it tells nothing."""

ESTIMATE_NAMES = {
    "at_random": "of all, from labels at random",
    "adjusted": "of all, if votes depend on the conversation alone",
    "voters": "of voters",
}
"""What is estimated, the first to read in front."""

DRAWN_IN_WORDS = {RANDOM_DRAW_METHOD: "at random", VOLUNTARY_DRAW_METHOD: "given voluntarily"}


@dataclass(frozen=True, kw_only=True)
class ShareEstimates:
    """The estimates from the labels of some conversations.

    Attributes:
        name: Of the group; empty for all conversations.
        labels: Number of labels by the way in which they were drawn.
        at_random: From labels at random; None where there are too few.
        voters: Share among those who voted; None where there are too few.
        adjusted: Of all, if votes depend on the conversation alone.
        bounds: Of all, if good and bad conversations vote unequally often.
        dependence: Whether votes depend on satisfaction; only labels at random can tell.
        missing: Labels that an estimate lacks, by the way in which they are drawn.
    """

    name: str
    conversations: int
    labels: Mapping[str, int]
    at_random: Share | None = None
    voters: Share | None = None
    adjusted: Share | None = None
    bounds: tuple[ShareBounds, ...] = ()
    dependence: VoteDependence | None = None
    missing: Mapping[str, int]

    @property
    def known(self) -> list[tuple[str, Share]]:
        """The estimates that there are, the first to read in front."""
        named = [(how, getattr(self, how)) for how in ESTIMATE_NAMES]
        return [(how, share) for how, share in named if share is not None]

    @property
    def needs(self) -> str:
        """What is missing for an estimate, in words; empty where nothing is."""
        # numbers of missing labels, by how they have to be drawn
        parts = []
        for way, n in self.missing.items():
            parts.append(f"{n} more labels {DRAWN_IN_WORDS[way]} are needed")

        return "; ".join(parts)

    def explained(self) -> TerminalLines:
        """Yield what the figures mean, and what is missing."""
        # random labels: what scores add to them, and what to keep in mind
        if (share := self.at_random) is not None:
            if share.gain > 1:
                yield f"With scores, one label is worth {share.gain:.2f} labels here."
            if share.note:
                yield f"Labels at random: {share.note}."

        if self.adjusted is not None and self.adjusted.note:
            yield f"Votes: {self.adjusted.note}."

        # only both kinds of labels together can tell whether votes depend on satisfaction
        if (test := self.dependence) is not None:
            if test.p < 0.05:
                sentence = "Votes depend on satisfaction"
            else:
                sentence = "No sign that votes depend on satisfaction"

            yield (
                f"{sentence} (difference {test.difference:+.3f}, p = {test.p:.3f}; a factor of 2 would be found with "
                f"probability {test.power:.2f})."
            )

        if self.missing:
            yield f"No estimate from fewer than {MIN_LABELS_FOR_SHARE_ESTIMATE} labels: {self.needs}."


def format_share_cells(share: Share) -> tuple[str, str, str]:
    """Return a share, its interval and its labels."""
    return f"{share.value:.3f}", f"[{share.low:.3f}, {share.high:.3f}]", f"{share.n:,}"


@dataclass(frozen=True, kw_only=True, repr=False)
class ShareResult(TabularResult):
    """Share of good conversations over all, and by group.

    Attributes:
        by: The field of the groups; empty where none was asked for.
        by_scores: Of all, by the mean of the set's probabilities alone; None without a set.
        notes: What the reader has to know.
    """

    columns = ("group", "of", "value", "low", "high", "n", "method")
    json_fields = ("all=total", "groups", "by", "by_scores", "notes", "page")

    total: ShareEstimates
    groups: tuple[ShareEstimates, ...]
    by: str
    notes: tuple[str, ...]
    by_scores: Figure | None = None
    page: Path | None = None
    bad_rows: tuple[BadRow, ...] = ()

    @property
    def headline(self) -> str:
        # without any estimate there is no figure to put in front
        if not self.total.known:
            return "too few labels"

        best = self.total.known[0][1]
        return f"{best.value:.3f} [{best.low:.3f}, {best.high:.3f}], n = {best.n}, {best.method}"

    @property
    def lines(self) -> list[tuple[str, Share]]:
        """The estimates for all conversations, the one to read first in front."""
        return [(ESTIMATE_NAMES[how], share) for how, share in self.total.known]

    @property
    def group_lines(self) -> list[tuple[ShareEstimates, Share | None]]:
        """A comparable estimate a group: from random labels if all have them, else adjusted."""
        how = "at_random" if self.total.at_random else "adjusted"
        return [(group, getattr(group, how)) for group in self.groups]

    def records(self) -> list[dict[str, object]]:
        return [
            {"group": segment.name or "all", "of": how, "conversations": segment.conversations}
            | asdict(share)
            for segment in (self.total, *self.groups)
            for how, share in segment.known
        ]

    def told(self) -> TerminalLines:
        """Yield the estimates for all conversations, then by group."""
        total = self.total
        yield f"Share of good conversations, of {total.conversations:,} in all"
        # estimates with their labels, then the bounds, which have no labels of their own
        rows = [(name, *format_share_cells(share)) for name, share in self.lines]
        for bound in total.bounds:
            name = f"of all, if good and bad ones vote up to {bound.factor:g} times unequally"
            rows.append((name, "", f"[{bound.low:.3f}, {bound.high:.3f}]", ""))

        if rows:
            yield TerminalTable(("", "share", "95 % interval", "labels"), rows)
        if (scores := self.by_scores) is not None:
            share = f"about {scores.value:.0%} are good, the mean of their probabilities"
            yield f"By scores alone {share} ({format_interval(scores)})."

        yield from total.explained()
        # a group without an estimate says what it lacks
        groups = []
        for segment, figures in self.group_lines:
            why_not = (
                "–",
                segment.needs or "no labels of this kind",
                f"{sum(segment.labels.values()):,}",
            )
            groups.append(
                (
                    segment.name,
                    f"{segment.conversations:,}",
                    *(format_share_cells(figures) if figures else why_not),
                )
            )

        if groups:
            yield TerminalTable(
                (self.by, "conversations", "share", "95 % interval", "labels"), groups
            )

        yield from render_notes(self.notes)
        if self.page:
            yield f"Wrote {self.page}"


def estimate_share_of_logs(
    logs: Sources | Logs,
    rubrics: Path | RubricSet | None = None,
    *,
    labels: Path | None = None,
    by: str | None = None,
    drawn: str | None = None,
    page: Path | None = None,
    reading: ReadOptions,
    run: RunOptions,
    model: ModelOptions,
    progress: Progress,
) -> ShareResult:
    """Estimate the share of good conversations over all.

    Args:
        rubrics: A rubric set, which narrows the intervals most where it was learned from other
            conversations.
        labels: A file of labels; None: those of the logs.
        by: A field of the logs; `FIELD:week` (`day`, `month`) for times; `segment` for the topics
            of the log.
        drawn: How labels were drawn whose rows don't say it: `random` or `voluntary`.
        page: Where the page is written.

    Raises:
        BadLabels: There are no labels, or rows of `labels` don't say how they were drawn.
        WrongUse: No conversation has the field.
    """
    # fails before the work if the page would replace an input
    if page is not None:
        require_writable_output_path(page, *list_file_names(logs, rubrics, labels))

    # a conversation that can't be scored is no part of the share
    read_in = logs_from(logs, reading, progress)
    conversations = []
    for conversation in read_in:
        if not conversation.not_scorable:
            conversations.append(conversation)

    given_labels, bad = collect_labels(conversations, labels, drawn, reading)
    notes = list_label_warnings(given_labels, conversations, drawn)
    rubric_set = None
    if rubrics is not None:
        rubric_set = read_unedited(rubrics, run.store)

    # scores narrow the intervals; without a set labels stand alone
    probability = None
    if rubric_set is not None:
        shown = Logs(
            conversations=tuple(conversations),
            fingerprint=read_in.fingerprint,
        )
        probability = score_probabilities(shown, rubric_set, run, model, progress)

    share = estimate_share(
        conversations,
        given_labels,
        rubric_set,
        probability,
        by,
    )
    # notes on labels go before those on scores
    share = replace(
        share,
        notes=(*notes, *share.notes),
        page=page,
        bad_rows=(*read_in.bad_rows, *bad),
    )
    if page is not None:
        write_text(page, render_share_page(share))

    return share


def estimate_share(
    conversations: Sequence[Conversation],
    labels: Sequence[ConversationLabel],
    rubric_set: RubricSet | None,
    probability: Floats | None,
    by: str | None = None,
) -> ShareResult:
    """Estimate the share from labels and scores that are at hand."""
    sample, notes = build_share_sample(conversations, labels, rubric_set, probability)
    if by is None:
        masks = {}
    else:
        masks = group_conversations(conversations, by)

    # the mean of all probabilities needs no label, but a set that is better than chance
    by_scores = None
    doubts = list[str]()
    if rubric_set is not None and probability is not None:
        by_scores = estimate_share_from_probabilities(probability, rubric_set.calibration_error)
        doubts = [rubric_set.at_chance] if rubric_set.at_chance else []

    return ShareResult(
        total=estimate_shares("", sample),
        groups=tuple(estimate_shares(name, sample.of(mask)) for name, mask in masks.items()),
        by=by or "",
        by_scores=by_scores,
        notes=(*notes, *doubts),
    )


def score_probabilities(
    logs: Logs,
    rubric_set: RubricSet,
    run: RunOptions,
    model: ModelOptions,
    progress: Progress,
) -> Floats:
    """Score all conversations, and return the probability of a thumb up `[conversation]`."""
    scored = (
        score(
            logs, rubric_set, reading=ReadOptions(), run=run, model=model, progress=progress
        ).scores
        or ()
    )
    return np.array(
        [
            PROBABILITY_WITHOUT_SCORE if score.probability is None else score.probability
            for score in scored
        ],
        dtype=np.float64,
    )


def estimate_shares(name: str, sample: ShareSample) -> ShareEstimates:
    """Estimate the share of some conversations in every way that their labels allow."""
    # labels are missing only of a kind that has some; without any, random ones are asked for
    numbers = {
        RANDOM_DRAW_METHOD: int(sample.random.sum()),
        VOLUNTARY_DRAW_METHOD: int(sample.voted.sum()),
    }
    missing = {}
    for way, n in numbers.items():
        if 0 < n < MIN_LABELS_FOR_SHARE_ESTIMATE:
            missing[way] = MIN_LABELS_FOR_SHARE_ESTIMATE - n

    if not any(numbers.values()):
        missing = {RANDOM_DRAW_METHOD: MIN_LABELS_FOR_SHARE_ESTIMATE}

    estimates = ShareEstimates(
        name=name,
        conversations=len(sample.good),
        labels=numbers,
        missing=missing,
    )
    # random labels estimate the share without assumptions
    if numbers[RANDOM_DRAW_METHOD] >= MIN_LABELS_FOR_SHARE_ESTIMATE:
        estimates = replace(
            estimates,
            at_random=estimate_share_from_random_labels(split_random_labels(sample)),
        )

    # votes alone: who votes, what all would say if votes were fair, and bounds if they are not
    if numbers[VOLUNTARY_DRAW_METHOD] < MIN_LABELS_FOR_SHARE_ESTIMATE:
        return estimates

    facts = (sample.voted, sample.liked, sample.of_votes, sample.voting)
    adjusted = estimate_share_from_voluntary_votes(*facts)
    return replace(
        estimates,
        voters=estimate_wilson_share(sample.liked[sample.voted], "of voters"),
        adjusted=adjusted,
        bounds=tuple(bound_share_for_voting_odds(*facts)),
        dependence=check_vote_dependence_on_satisfaction(
            estimates.at_random, adjusted, sample.of_votes
        )
        if estimates.at_random
        else None,
    )


def split_random_labels(sample: ShareSample) -> LabeledSample:
    # scores of the rest correct for which conversations the labels happened to fall on
    """Return the labels at random, and the probabilities of all other conversations."""
    is_random = sample.random
    rest = ~sample.random
    users = (None, None) if sample.user is None else (sample.user[is_random], sample.user[rest])

    return LabeledSample(
        sample.good[is_random],
        sample.of_random[is_random],
        sample.of_random[rest],
        *users,
    )
