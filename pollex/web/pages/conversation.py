"""One conversation: turns with quotes, its score's explanation, and its trace."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from markupsafe import Markup

from pollex.agents.roles import Extraction
from pollex.conversations.conversation import Conversation
from pollex.errors import WrongUse
from pollex.reports.transcript import MarkedTurn, mark_turns
from pollex.rubrics.answers import Answer, Unanswered
from pollex.rubrics.rubric import TONE_SOURCE, Polarity, Reason, Rubric
from pollex.rubrics.rubric_set import RubricSet
from pollex.rubrics.score import (
    MIN_TOLD_MOVE,
    AnswerColumns,
    compute_answer_value,
    compute_binary_entropy,
)
from pollex.store.labels import read_opinions
from pollex.store.resume import read_pool_rubrics
from pollex.store.runs import Run
from pollex.store.tables import ScoreRow
from pollex.store.traces import ConversationTrace, collect_conversation_trace
from pollex.web import drawings, links
from pollex.web.faults import NotFound
from pollex.web.filters import WORDS_BY_FLAG
from pollex.web.listing import make_listing, read_list_form
from pollex.web.pages.chosen import list_queues_with
from pollex.web.queues import THUMB_QUESTION
from pollex.web.site import NamedSet, Site
from pollex.web.views import PageData, page


@page(links.CONVERSATION_PATH, "conversation.html", here="Conversations")
def show_conversation(
    site: Site,
    as_json: bool,
    run: Run,
    id_: str,
    of: str = "",
    who: str = "",
) -> PageData:
    """Show a conversation beside the reasons for its score."""
    trace, rubrics, named, sums = find_trace(site, run, id_)
    if as_json:
        parts = []
        for part in sums.parts:
            parts.append(
                {
                    "rubric": {
                        name: getattr(part.rubric, name) for name in ("id", "text", "polarity")
                    },
                    "answer": part.answer,
                    "adds": part.adds,
                }
            )
        return {
            "conversation": trace.conversation,
            "side": trace.side,
            "score": vars(trace.score) if trace.score else None,
            "parts": parts,
            "sums": {"sat": sums.of("sat"), "dsat": sums.of("dsat")}
            | {"never": sums.never, "unanswered": sums.unanswered},
        }

    rubric_set = named.rubric_set if named else None
    within, queues = list_queues_with(site, run, id_)
    # neighbors in the list that the visitor came from
    before, behind = make_listing(
        site, read_list_form(of).model_copy(update={"run": run.id})
    ).neighbors(id_)
    score = trace.score
    if rubric_set:
        moves = compute_moves(rubric_set, trace.answers)
    else:
        moves = {}

    people = []
    for opinion in read_opinions(site.store, THUMB_QUESTION):
        if opinion.text_hash == trace.conversation.text_hash:
            people.append(opinion)
    return {
        "who": who,
        "moves": moves,
        "told_move": describe_move,
        "parts_shown": sort_by_effect(sums.parts, moves, good=is_good(score)),
        "trace": trace,
        "flags": WORDS_BY_FLAG,
        "turns": mark_quotes(trace.conversation, trace.extraction, rubrics),
        "sums": sums,
        "named": named,
        "own": rubric_set,
        "guaranteed": is_guaranteed(score.netsat if score else None, rubric_set),
        "entropy": compute_binary_entropy(score.probability)
        if score and score.probability is not None
        else None,
        "good": is_good(score),
        "scale": draw_netsat_scale(score.netsat, named.rubric_set)
        if named and score and score.netsat is not None
        else None,
        "draw": drawings.draw_distribution,
        "before": before,
        "behind": behind,
        "elsewhere": list_other_scores(site, run, trace),
        "people": people,
        "in_batches": not trace.steps and trace.score is not None,
        "within": within,
        "queues": queues,
    }


def compute_moves(
    rubric_set: RubricSet, answers: Mapping[str, Answer | Unanswered]
) -> dict[str, float]:
    """Return by how much each answer moves the probability of a thumb up, by rubric; see `NetSat`."""
    # without all answers there is no probability that could move
    for rubric in rubric_set.rubrics:
        if not isinstance(answers.get(rubric.id), Answer):
            return {}

    # an answer to a rubric that is off now counts for nothing
    named = (*(rubric.id for rubric in rubric_set.rubrics), TONE_SOURCE)
    columns = AnswerColumns.of(named, [list(answers.values())])
    (moves,) = rubric_set.explainer.compute_probability_moves(columns).tolist()

    moves_by_rubric = {}
    for rubric, move in zip(rubric_set.rubrics, moves, strict=False):
        answer = answers[rubric.id]
        if isinstance(answer, Answer) and not answer.never_came_up:
            moves_by_rubric[rubric.id] = move

    return moves_by_rubric


def sort_by_effect(
    parts: Sequence[Contribution],
    moves: Mapping[str, float],
    *,
    good: bool,
) -> list[Contribution]:
    """Sort what a score is made of: what speaks most for the verdict first, what never came up last."""
    side = 1 if good else -1

    def place(part: Contribution) -> tuple[bool, float]:
        # the direction of the verdict comes first; without moves what the answer adds decides
        silent = part.never or part.value is None
        return silent, -side * moves.get(
            part.rubric.id, 0.0 if silent or moves else (part.adds or 0.0) / 100
        )

    return sorted(parts, key=place)


LARGE_MOVE = 0.1
"""Change of a probability from which on a rubric moves it much."""


def describe_move(move: float) -> str:
    """Say in words what an answer does to the probability of a thumb up."""
    if abs(move) < MIN_TOLD_MOVE:
        return "hardly changes it"
    return f"makes a thumb up {'much ' if abs(move) >= LARGE_MOVE else ''}{'more' if move > 0 else 'less'} likely"


def draw_netsat_scale(netsat: float, rubric_set: RubricSet) -> Markup:
    """Draw a NetSAT beside θ and the window, on a scale that holds them all."""
    # the scale holds the marks that are there, and some room beyond the farthest
    ends = []
    for value in (netsat, rubric_set.theta, rubric_set.window.lower, rubric_set.window.upper):
        if value is not None:
            ends.append(abs(value))

    return drawings.draw_scale(
        netsat,
        rubric_set.theta,
        rubric_set.window.lower,
        rubric_set.window.upper,
        1.4 * max(*ends, 1.0),
    )


def is_guaranteed(netsat: float | None, rubric_set: RubricSet | None) -> bool | None:
    """Return whether a NetSAT lies outside the window with a guarantee; None where there is none."""
    if netsat is None or rubric_set is None or rubric_set.guaranteed is None:
        return None
    return bool(rubric_set.guaranteed.window.confident(np.array([netsat]))[0])


def is_good(score: ScoreRow | None) -> bool:
    """Decide by the probability, at .5; without one by the label."""
    if score is None or score.probability is None:
        return score is not None and score.label == "positive"
    return score.probability >= 0.5


def find_trace(
    site: Site,
    run: Run,
    id_: str,
) -> tuple[ConversationTrace, tuple[Rubric, ...], NamedSet | None, NetsatExplanation]:
    """Return a conversation's trace in a run, and the rubrics of its score.

    Raises:
        NotFound: The run did not use it; the remedy says which run did.
    """
    try:
        trace = collect_conversation_trace(site.store, run.id, id_)
    except WrongUse as error:
        raise NotFound(
            error.what,
            hint="the list of its conversations has those there are",
        ) from None

    named = site.set_of(run)
    # where the set's file is lost, the run has its own record of the rubrics
    rubrics = (
        named.rubric_set.rubrics if named else tuple(read_pool_rubrics(site.store, run.id).values())
    )
    rule = named.rubric_set.judge.options.value if named else "auto"
    never = named.rubric_set.never if named else None
    return trace, rubrics, named, explain_netsat(rubrics, trace.answers, rule, never)


OTHER_SCORES_QUERY = """
    SELECT c.id, arg_max(s.netsat, s.seq) AS netsat, arg_max(s.probability, s.seq) AS probability
    FROM conversations AS c JOIN scores AS s ON s.conversation = c.id WHERE c.text_hash = ? GROUP BY c.id
"""


def list_other_scores(site: Site, run: Run, trace: ConversationTrace) -> list[PageData]:
    """Return what other runs said of the same text, the last five of them."""
    others = [other_run for other_run in site.runs() if other_run.id != run.id][:5]
    text = trace.conversation.text_hash
    rows = []
    for other in others:
        for row in site.store.ask(other.id, OTHER_SCORES_QUERY, [text]):
            rows.append(row | {"run": other.id})
    return rows


ValueRule = Literal["auto", "expected", "mode"]
MIDDLE_ANSWER_VALUE = 5.0
"""Value of an answer that neither agrees nor disagrees."""


@dataclass(frozen=True)
class Contribution:
    """One rubric's share of a NetSAT.

    Attributes:
        value: What the answer is worth, 0 … 10; None without an answer.
        never: Whether its occasion never came up: `value` is then what the rubric is usually worth.
    """

    rubric: Rubric
    answer: Answer | Unanswered | None
    value: float | None
    never: bool = False

    @property
    def adds(self) -> float | None:
        """Change of NetSAT by this answer."""
        if self.value is None:
            return None
        return self.value * self.rubric.sign

    @property
    def far(self) -> float:
        """Distance of the answer from the middle."""
        if self.value is None:
            return -1.0
        return abs(self.value - MIDDLE_ANSWER_VALUE)


@dataclass(frozen=True)
class NetsatExplanation:
    """A NetSAT taken apart.

    Attributes:
        parts: The farthest from the middle first.
    """

    parts: tuple[Contribution, ...]

    def of(self, polarity: Polarity) -> float:
        """Add up the values of one kind, of what came up."""
        parts = (part for part in self.parts if part.rubric.polarity == polarity and not part.never)
        return sum(abs(part.adds) for part in parts if part.adds is not None)

    @property
    def never(self) -> float:
        """What rubrics count whose occasion never came up."""
        return sum(part.adds for part in self.parts if part.never and part.adds is not None)

    @property
    def never_came_up(self) -> int:
        """How many rubrics' occasion never came up."""
        return sum(part.never for part in self.parts)

    @property
    def netsat(self) -> float:
        """Sum of what the rubrics add."""
        return sum(part.adds for part in self.parts if part.adds is not None)

    @property
    def unanswered(self) -> int:
        """Number of rubrics without an answer."""
        return sum(part.value is None for part in self.parts)


def explain_netsat(
    rubrics: Sequence[Rubric],
    answers: Mapping[str, Answer | Unanswered],
    rule: ValueRule = "auto",
    never: Mapping[str, float] | None = None,
) -> NetsatExplanation:
    """Take a NetSAT apart into what each rubric adds.

    Args:
        never: By rubric, what counts where its occasion never came up; the middle where none is
            known.
    """
    parts = []
    for rubric in rubrics:
        parts.append(
            _make_contribution(
                rubric,
                answers.get(rubric.id),
                rule,
                (never or {}).get(rubric.id, MIDDLE_ANSWER_VALUE),
            )
        )

    return NetsatExplanation(tuple(sorted(parts, key=lambda part: -part.far)))


def _make_contribution(
    rubric: Rubric,
    answer: Answer | Unanswered | None,
    rule: ValueRule,
    never: float,
) -> Contribution:
    if not isinstance(answer, Answer):
        return Contribution(rubric, answer, None)

    return Contribution(
        rubric,
        answer,
        compute_answer_value(answer, rule, never),
        answer.never_came_up,
    )


def mark_quotes(
    conversation: Conversation,
    extraction: Extraction | Unanswered | None,
    rubrics: Sequence[Rubric],
) -> list[MarkedTurn]:
    """Mark in a conversation's turns what rubrics and reasons quote."""
    # quotes by turn; rubrics also quote other conversations
    quotes: dict[int, list[tuple[str, Polarity]]] = defaultdict(list)
    if isinstance(extraction, Extraction):
        reasons = extraction.reasons
    else:
        reasons = ()

    sources: tuple[Rubric | Reason, ...] = (*rubrics, *reasons)
    for source in sources:
        for quote in source.quotes:
            if quote.conversation_id == conversation.id:
                quotes[quote.turn].append((quote.text, source.polarity))

    return mark_turns(conversation.turns, quotes)
