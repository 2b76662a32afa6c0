"""The built-in judge: answers any rubric from evidence in the turns, on a learned scale."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import comb, exp
from typing import Any, Self

import numpy as np

from pollex.agents.embedded import BUILT_IN_MODEL_NAME
from pollex.agents.embedded.embedder import Embedder
from pollex.agents.embedded.events.signal import list_general_event_sentences, parse_event_source
from pollex.agents.embedded.evidence import (
    choose_strongest_turns,
    find_evidence_signal,
    find_party_of_rubric,
)
from pollex.agents.embedded.signals import (
    MEASURE_NAMES,
    SIGNALS_BY_NAME,
    WORDING_SIGNALS,
    Signal,
    measure_wording_of_view,
    summarize_marks_in_order,
    summarize_marks_of_party,
)
from pollex.agents.embedded.view import (
    RESAMPLED_MODEL_NAME,
    BoolArray,
    ConversationView,
    Floats,
    Indices,
    make_conversation_views,
    make_random_generator,
    resample_turn_indices,
)
from pollex.agents.roles import make_unanswered_for_all
from pollex.conversations.conversation import Conversation
from pollex.conversations.logs import flag_positive_labels, list_labeled_conversations
from pollex.errors import BadRubrics
from pollex.rubrics.answers import Answer, Question, Unanswered
from pollex.rubrics.rubric import PERSON_SOURCE, TONE_SOURCE, Rubric, make_content_id
from pollex.rubrics.tone import ToneScale, make_tone_answers

EMBEDDED_JUDGE_VERSION = "4"
SCALE_FOLDS = 5
MAX_REMEMBERED_VIEWS = 256
"""See `EmbeddedJudge.remembered`."""

MAX_CACHED_ANSWERS = 8192
"""Answers that are kept, to be given again where a rubric's turns are marked alike."""

MAX_TURNS_OF_EVIDENCE = 3
"""So many turns are named as what an answer rests on."""


class EmbeddedJudge:
    """Answers from signals, phrases and similarity of turns; no LLM.

    A conversation that it has studied is answered on a scale learned without it (five folds), so
    that answers on training data are as honest as answers on new data.

    Args:
        embedder: Turns to vectors.
        learned: State of an earlier judge, from its `learned`.
        rubrics: Rubrics that it will be asked about; only where one of them reads vectors are turns
            embedded together.

    Attributes:
        remembered: Conversations that are kept, looked at, for further questions about them.

    Raises:
        BadRubrics: `learned` has another form.
    """

    def __init__(
        self,
        embedder: Embedder,
        learned: Mapping[str, Any] | None = None,
        rubrics: Sequence[Rubric] = (),
    ) -> None:
        self.embedder = embedder
        self.vectors = any(find_evidence_signal(rubric, embedder).vectors for rubric in rubrics)
        # the scale of tone is stored among those of the rubrics, under a name of its own
        stored_by_id = dict(learned or {})
        tone = stored_by_id.pop(TONE_SOURCE, None)
        if tone is None:
            self.tone = None
        else:
            self.tone = ToneScale.from_json(tone, len(WORDING_SIGNALS) * len(MEASURE_NAMES))

        self.scales = {
            id_: read_scale_from_json(id_, stored) for id_, stored in stored_by_id.items()
        }
        # scales learned without each fold, and the fold of each text that was studied
        self._fold_scales: list[dict[str, LearnedScale]] = []
        self._folds: dict[str, int] = {}
        self._fingerprint: str | None = None
        self._replicate: int | None = None
        # views by text, evidence by rubric, and answers by what their turns are marked with
        self._views: dict[str, ConversationView] = {}
        self.remembered = MAX_REMEMBERED_VIEWS
        self._evidence: dict[str, tuple[Rubric, Signal]] = {}
        self._known: dict[tuple[Any, ...], tuple[Signal, LearnedScale | None, Answer]] = {}
        self._asked: tuple[Sequence[Question], list[tuple[Question, Signal | None, str]]] = (), []
        self._patterns: frozenset[str] = frozenset()
        self._look_for(rubrics)

    @property
    def name(self) -> str:
        return BUILT_IN_MODEL_NAME if self._replicate is None else RESAMPLED_MODEL_NAME

    @property
    def fingerprint(self) -> str:
        if self._fingerprint is None:
            # all that answers depend on: version, embedder, and everything learned
            scales = sorted(f"{id_} {scale.to_json()}" for id_, scale in self.scales.items())
            scales += [] if self.tone is None else [f"{TONE_SOURCE} {self.tone.to_json()}"]
            self._fingerprint = make_content_id(
                "judge",
                EMBEDDED_JUDGE_VERSION,
                self.embedder.identity,
                *scales,
            )

        return self._fingerprint

    @property
    def learned(self) -> Mapping[str, Any]:
        return {id_: scale.to_json() for id_, scale in sorted(self.scales.items())}

    async def fit(self, training: Sequence[Conversation], rubrics: Sequence[Rubric]) -> None:
        """Learn a scale for each rubric from the labeled conversations, in all and per fold."""
        # sums depend on their order, in the last digit
        labelled = list_labeled_conversations(training)
        positive = flag_positive_labels(labelled)
        evidence = []
        for rubric in rubrics:
            evidence.append(find_evidence_signal(rubric, self.embedder))

        self.vectors = any(signal.vectors for signal in evidence)
        measures = measure_evidence_in_views(
            make_conversation_views(labelled, self.embedder, vectors=self.vectors),
            evidence,
        )
        # copies of a text share its fold, so that no scale that saw one answers another
        folds = assign_stratified_folds([c.text_hash for c in labelled], positive)
        self._folds = dict(
            zip(
                (c.text_hash for c in labelled),
                folds.tolist(),
                strict=True,
            )
        )
        # it named what was learned before
        self._fingerprint = None
        self.scales = learn_scales_of_rubrics(measures, positive, rubrics, evidence)
        fold_scales = []
        for fold in range(SCALE_FOLDS):
            fold_scales.append(
                learn_scales_of_rubrics(
                    measures[folds != fold], positive[folds != fold], rubrics, evidence
                )
            )
        self._fold_scales = fold_scales

    def again(self, replicate: int) -> Self:
        """Return the judge on resampled turns."""
        other = copy(self)
        other._replicate = replicate
        # answers depend on the turns that are drawn; views and evidence don't, and are shared
        other._known = {}

        return other

    def without_folds(self) -> Self:
        """Return the judge as a set has it: it answers what it has studied by its one scale, too."""
        other = copy(self)
        other._folds = {}
        other._known = {}

        return other

    def understood(self, rubric: Rubric) -> Rubric:
        """Return the rubric with evidence for a person's words."""
        return find_evidence_for_own_words(rubric, self.embedder)

    async def prepare(self, conversations: Sequence[Conversation]) -> None:
        """Embed all turns at once, where a rubric reads vectors."""
        if self.vectors:
            scorable = []
            for c in conversations:
                if not c.not_scorable:
                    scorable.append(c)
            make_conversation_views(
                scorable,
                self.embedder,
                vectors=True,
            )

    async def judge(
        self, conversation: Conversation, questions: Sequence[Question]
    ) -> list[Answer | Unanswered]:
        """Answer each question; a conversation without both parties is not scorable."""
        if reason := conversation.not_scorable:
            return make_unanswered_for_all(questions, "not_scorable", reason, self.name)

        prepared = self._asked
        if prepared[0] is not questions:  # the same ones are asked about all of a log
            rubrics = [get_rubric_of_question(question) for question in questions]
            # A view is read for the events of all of it; tone has no single evidence.
            evidence = []
            for rubric in rubrics:
                evidence.append(None if rubric.source == TONE_SOURCE else self._evidence_of(rubric))
            prepared = (
                questions,
                list(zip(questions, evidence, [rubric.id for rubric in rubrics], strict=True)),
            )
            self._asked = prepared

        # a conversation that was studied is answered without its own fold
        fold = self._folds.get(conversation.text_hash)
        view = self._view(conversation)
        scales = self.scales if fold is None else self._fold_scales[fold]
        answers: list[Answer | Unanswered] = []
        for question, signal, id_ in prepared[1]:
            answers.append(self._answer(view, question, signal, scales.get(id_)))

        return answers

    def _view(self, conversation: Conversation) -> ConversationView:
        view = self._views.get(conversation.text_hash)
        # one text may have two ids, and rubrics leave out quotes of the conversation itself
        if view is None or view.conversation.id != conversation.id:
            if len(self._views) >= self.remembered:
                del self._views[next(iter(self._views))]
            view = self._views[conversation.text_hash] = ConversationView(
                conversation,
                self.embedder,
                self._patterns,
            )

        return view

    def _answer(
        self,
        view: ConversationView,
        question: Question,
        evidence: Signal | None,
        scale: LearnedScale | None,
    ) -> Answer | Unanswered:
        if evidence is None:
            return self._tone_answer(view, question)

        # a view hands out one array of zeros, so that silence is told without comparing numbers
        marks = evidence.marks(view)
        silent = marks is view.silent
        # turns are drawn for each conversation, so that no other one shares the answer
        if self._replicate is not None and not silent:
            return self._answered(
                view,
                question,
                evidence,
                scale,
                marks.tolist(),
            )

        # Most rubrics are silent in most conversations, or marked alike, and such an answer is the
        # same in all of them.
        marked = () if silent else (marks.tobytes(), *view.places(evidence.party))
        key = question.id, len(question.options), *marked
        cached = self._known.get(key)
        # a fit makes new scales, and a rubric of the same id may have other evidence now
        if cached is None or cached[0] is not evidence or cached[1] is not scale:
            if len(self._known) >= MAX_CACHED_ANSWERS:
                self._known.clear()
            answer = self._answered(
                view,
                question,
                evidence,
                scale,
                marks.tolist(),
            )
            cached = self._known[key] = evidence, scale, answer

        return cached[2]

    def _tone_answer(self, view: ConversationView, question: Question) -> Answer | Unanswered:
        if self.tone is None:
            return make_unanswered_for_all(
                [question], "error", "the set has lost the scale of its tone", self.name
            )[0]

        tone = float(self.tone.tone(measure_wording_of_view(view)))
        p = tuple(make_tone_answers(np.array(tone), len(question.options)).tolist())
        return Answer.trusted(
            question_id=question.id,
            probabilities=p,
            chosen=p.index(max(p)),
            source="built-in",
            justification=f"tone {tone:+.1f}; 0 is the middle of the training log, over 0 it sounds like a good one",
            turns=(),
            judge=self.name,
            asked_in="",
        )

    def _answered(
        self,
        view: ConversationView,
        question: Question,
        evidence: Signal,
        scale: LearnedScale | None,
        marks: list[float],
    ) -> Answer:
        # measures are of the turns drawn, while the turns named are chosen from all
        turns = view.places(evidence.party)
        turns_drawn = turns
        if self._replicate is not None:
            drawn = resample_turn_indices(
                view.of(evidence.party),
                make_random_generator(view.conversation, self._replicate),
            )
            turns_drawn = drawn.tolist()

        measures = summarize_marks_in_order([marks[turn] for turn in turns_drawn])
        p = compute_binomial_distribution(
            compute_logistic((scale or SCALE_OF_UNSTUDIED_RUBRIC).odds_of(measures)),
            len(question.options),
        )
        return Answer.trusted(
            question_id=question.id,
            probabilities=p,
            chosen=p.index(max(p)),
            source="built-in",
            justification=describe_decisive_measure(evidence, measures, scale),
            turns=tuple(choose_strongest_turns(marks, turns, MAX_TURNS_OF_EVIDENCE)),
            judge=self.name,
            asked_in="",
        )

    def _evidence_of(self, rubric: Rubric) -> Signal:
        cached = self._evidence.get(rubric.id)
        if cached is None or cached[0] is not rubric:
            cached = self._evidence[rubric.id] = (
                rubric,
                find_evidence_signal(rubric, self.embedder),
            )
            self._look_for([rubric])
        return cached[1]

    def _look_for(self, rubrics: Sequence[Rubric]) -> None:
        events = filter(None, (parse_event_source(rubric.source) for rubric in rubrics))
        patterns = self._patterns.union(event.event.pattern for event in events)
        # views were read for the old patterns alone
        if patterns != self._patterns:
            self._patterns = patterns
            self._views = {}


def get_rubric_of_question(question: Question) -> Rubric:
    """Return the rubric that a question is about; for any other question one of its words."""
    return question.rubric or Rubric(id=question.id, text=question.text, polarity="sat")


def measure_evidence_in_views(
    views: Sequence[ConversationView], evidence: Sequence[Signal]
) -> Floats:
    """Return the measures [conversation, rubric, measure]."""
    rows = []
    for view in views:
        rows.append(
            [
                summarize_marks_of_party(signal.marks(view), view.of(signal.party))
                for signal in evidence
            ]
        )

    return np.array(rows).reshape(len(views), len(evidence), len(MEASURE_NAMES))


def learn_scales_of_rubrics(
    measures: Floats,
    positive: BoolArray,
    rubrics: Sequence[Rubric],
    evidence: Sequence[Signal],
) -> dict[str, LearnedScale]:
    """Learn a scale for each rubric; none if there is only one class."""
    if not positive.any() or positive.all():
        return {}

    scales: dict[str, LearnedScale] = {}
    for i, (rubric, signal) in enumerate(zip(rubrics, evidence, strict=True)):
        scales[rubric.id] = learn_scale_of_rubric(
            measures[:, i],
            positive,
            rubric.sign,
            signal.lean,
            signal.telling_measures,
        )

    return scales


def assign_stratified_folds(hashes: Sequence[str], positive: BoolArray) -> Indices:
    """Assign each conversation a fold, stratified and independent of the order of rows.

    Conversations with the same text share a fold.
    """
    # within each class, texts in the order of their hashes go to the folds in turn
    order = {}
    for label in (True, False):
        class_hashes = set()
        for h, p in zip(hashes, positive, strict=True):
            if p == label:
                class_hashes.add(h)
        for rank, text in enumerate(sorted(class_hashes)):
            order[text] = rank

    return np.array([order[text] % SCALE_FOLDS for text in hashes], dtype=np.intp)


def describe_decisive_measure(
    evidence: Signal,
    measures: Sequence[float],
    scale: LearnedScale | None,
) -> str:
    """Describe the measure with the greatest weight and the midpoint between good and bad."""
    # what an event is about stands in the rubric's words
    name = evidence.name.partition(" {")[0]
    if scale is None:
        return f"{name}: likeness {measures[2]:.2f}; the scale was never fitted to labeled conversations"
    if scale.heaviest is None:
        return f"{name}: tells nothing here; in the training log it doesn't separate good from bad"

    place, middle = scale.heaviest
    return f"{name}: {MEASURE_NAMES[place]} {measures[place]:.2f}, halfway between good and bad is {middle}"


MIN_COSINE_OF_SAME_SENTENCE = 0.8
"""Cosine from which on a new wording says the same thing."""

_QUOTED_WORDS_REGEX = re.compile(r"[\"“]([^\"“”]{2,60})[\"”]")
_NEGATION_REGEX = re.compile(
    r"\b(?:not|no|never|none|nothing|neither|nor|without|cannot)\b|n['’]t\b",
    re.IGNORECASE,
)


def find_evidence_for_own_words(rubric: Rubric, embedder: Embedder) -> Rubric:
    """Return a rubric in a person's own words with evidence for them; any other keeps the evidence that it has.

    It rests on the signal or event whose sentence is near, else on the words that it quotes; else
    its turns are found by their likeness to its text.
    """
    if rubric.source == PERSON_SOURCE:
        return rubric.model_copy(update={"source": find_nearest_rubric_source(rubric, embedder)})
    return rubric


def find_nearest_rubric_source(rubric: Rubric, embedder: Embedder) -> str:
    """Return the source with the sentence nearest to the rubric's text, else of the words that it quotes, or `person`.

    Embeddings hardly see a “not”: a sentence that is denied in one of the two texts only is not
    near.
    """
    # sentences of all signals and events, with the source that each stands for
    signal_sources = {}
    for signal in SIGNALS_BY_NAME.values():
        for sentence in filter(None, (signal.statement, signal.called)):
            signal_sources[sentence] = f"signal:{signal.name}"
    sources_by_sentence = signal_sources | dict(list_general_event_sentences())
    # only sentences that deny, or don't, as the rubric does
    alike = []
    for sentence in sources_by_sentence:
        if is_sentence_negated(sentence) == is_sentence_negated(rubric.text):
            alike.append(sentence)

    cosines = embedder.embed(alike) @ embedder.embed([rubric.text])[0]
    nearest = int(np.argmax(cosines))
    if cosines[nearest] >= MIN_COSINE_OF_SAME_SENTENCE:
        return sources_by_sentence[alike[nearest]]

    # nothing is near: the words that the rubric quotes, unless it denies them
    quoted = _QUOTED_WORDS_REGEX.search(rubric.text)
    party = find_party_of_rubric(rubric)
    if quoted is None or is_sentence_negated(rubric.text) or party == "both":
        return PERSON_SOURCE
    return f"phrase:{party}:{quoted[1]}"


def is_sentence_negated(text: str) -> bool:
    """Return whether a sentence is negated; a double negation is not."""
    return len(_NEGATION_REGEX.findall(text)) % 2 == 1


PRIOR_CONVERSATION_COUNT = 40
PRIOR_CLASS_DIFFERENCE = 0.3
LOG_ODDS_GAIN = 0.5
MAX_LOG_ODDS = 700.0
"""Log-odds beyond which exp overflows; a probability is 0 long before."""
MAX_STANDARD_SCORE = 2.5  # standard deviations from the middle beyond which a measure says no more


@dataclass(frozen=True)
class LearnedScale:
    """The learned scale of one rubric: middle, spread and weight of each measure, [measure]."""

    middle: Floats
    spread: Floats
    weight: Floats

    def odds(self, measures: Floats) -> Floats:
        """Return the log-odds e of measures [..., measure]."""
        # one extreme measure can't outweigh all others
        z = np.clip((measures - self.middle) / self.spread, -MAX_STANDARD_SCORE, MAX_STANDARD_SCORE)
        return np.asarray(LOG_ODDS_GAIN * (z * self.weight).sum(axis=-1))

    def odds_of(self, measures: Sequence[float]) -> float:
        """Return the log-odds of one conversation's measures, the same whatever is worked out beside it."""
        total = 0.0
        for place, middle, spread, weight in self._telling:
            z = (measures[place] - middle) / spread
            total += (
                MAX_STANDARD_SCORE
                if z > MAX_STANDARD_SCORE
                else -MAX_STANDARD_SCORE
                if z < -MAX_STANDARD_SCORE
                else z
            ) * weight
        return LOG_ODDS_GAIN * total

    @cached_property
    def heaviest(self) -> tuple[int, str] | None:
        """Place of the measure with the greatest weight, and its middle; None where none has any."""
        place = int(np.argmax(self.weight))
        if self.weight.any():
            return (place, f"{self.middle[place]:.2f}")
        return None

    @cached_property
    def _telling(self) -> list[tuple[int, float, float, float]]:
        every = enumerate(
            zip(
                self.middle.tolist(),
                self.spread.tolist(),
                self.weight.tolist(),
                strict=True,
            )
        )
        # measures without weight add nothing, and most scales have some
        pairs: list[tuple[int, float, float, float]] = []
        for place, figures in every:
            if figures[2]:
                pairs.append((place, *figures))

        return pairs

    def to_json(self) -> dict[str, list[float]]:
        return {name: getattr(self, name).tolist() for name in ("middle", "spread", "weight")}


def read_scale_from_json(rubric: str, stored: Any) -> LearnedScale:
    """Read the scale that `LearnedScale.to_json` gave.

    Raises:
        BadRubrics: It has another form.
    """
    try:
        scale = LearnedScale(
            *(np.array(stored[name], dtype=np.float64) for name in ("middle", "spread", "weight"))
        )
    except (KeyError, TypeError, ValueError):
        # no numbers at all: refused with other wrong shapes below
        scale = LearnedScale(np.empty(0), np.empty(0), np.empty(0))

    if any(
        column.shape != (len(MEASURE_NAMES),)
        for column in (scale.middle, scale.spread, scale.weight)
    ):
        what = f"judge.learned.{rubric}: middle, spread and weight are not {len(MEASURE_NAMES)} numbers each"
        raise BadRubrics(
            what,
            hint="fit it again: `pollex refit LOGS --rubrics …`",
        )

    return scale


def round_to_six_digits(values: Floats) -> Floats:
    """Round to six significant digits, for readers and for an exact round trip to JSON."""
    return np.array([float(f"{value:.6g}") for value in values])


# For a rubric that was never studied: cosines of unrelated turns lie around 0.1 to 0.3.
SCALE_OF_UNSTUDIED_RUBRIC = LearnedScale(
    # middle, spread and weight of share, amount, ending and trend
    np.array([0.2, 1.0, 0.35, 0.0]),
    np.array([0.15, 0.5, 0.2, 0.2]),
    np.array([0.5, 0.0, 1.0, 0.25]),
)


def learn_scale_of_rubric(
    measures: Floats,
    positive: BoolArray,
    direction: int,
    lean: int = 0,
    telling: Floats | float = 1.0,
) -> LearnedScale:
    """Learn the scale of one rubric from labeled conversations.

    Args:
        measures: [conversation, measure].
        positive: [conversation].
        direction: +1 where strong evidence should speak for a good conversation (SAT), −1 for a bad
            one (DSAT).
        lean: What is known of the evidence in general, +1, −1 or 0.
        telling: Which measures may tell anything, 1 or 0 `[measure]`.
    """
    differences, middle, spread = measure_class_separation(measures, positive, lean)
    return LearnedScale(
        round_to_six_digits(middle),
        round_to_six_digits(spread),
        round_to_six_digits(np.maximum(0.0, direction * differences * telling)),
    )


def measure_class_separation(
    measures: Floats,
    positive: BoolArray,
    lean: int | Indices = 0,
) -> tuple[Floats, Floats, Floats]:
    """Return δ, midpoint of the classes and spread, each [..., measure].

    Measures are [conversation, ..., measure], a lean of each thing is [..., 1].
    """
    spread = measures.std(axis=0)
    # a measure that never varies isn't divided by 0
    spread = np.where(spread > 1e-9, spread, 1.0)
    high = measures[positive].mean(axis=0)
    low = measures[~positive].mean(axis=0)
    n = len(positive)
    observed = (high - low) / spread

    return (
        # shrunk as if so many more conversations had shown what is known of it in general
        (n * observed + PRIOR_CONVERSATION_COUNT * PRIOR_CLASS_DIFFERENCE * lean)
        / (n + PRIOR_CONVERSATION_COUNT),
        (high + low) / 2,
        spread,
    )


def compute_logistic(odds: float) -> float:
    """Return the probability of log-odds."""
    return 1 / (1 + exp(min(-odds, MAX_LOG_ODDS)))


@lru_cache(maxsize=8)
def list_binomial_coefficients(n: int) -> tuple[int, ...]:
    """Return the binomial coefficients of n."""
    return tuple(comb(n, k) for k in range(n + 1))


def compute_binomial_distribution(p: float, options: int) -> tuple[float, ...]:
    """Return the binomial distribution over `options` ordered options with mean position p.

    The expected Likert value is exactly 10·p.
    """
    n = options - 1
    q = 1 - p
    if n == 4:  # nearly always: the same, to the last bit, in a third of the time
        return q**4, 4 * p * q**3, 6 * p**2 * q**2, 4 * p**3 * q, p**4
    return tuple(
        [ways * p**k * q ** (n - k) for k, ways in enumerate(list_binomial_coefficients(n))]
    )


def compute_binomial_distributions(p: Floats, options: int) -> Floats:
    """Return `compute_binomial_distribution` of many `[…, option]`."""
    k = np.arange(options)
    return np.asarray(
        list_binomial_coefficients(options - 1)
        * p[..., None] ** k
        * (1 - p[..., None]) ** (options - 1 - k)
    )


assert len(MEASURE_NAMES) == len(SCALE_OF_UNSTUDIED_RUBRIC.middle)
