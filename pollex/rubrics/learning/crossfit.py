"""The choice of built-in rubrics by what the labels prove of them, and cross-fitting.

All that labels decide is done anew without each fifth of the conversations, which then measure it.
Pools, sides, scales and choices that saw a conversation flatter themselves on it: with labels that
mean nothing, and the choice alone made anew, one log's AUC was .578.
Source of the point: Ambroise and McLachlan 2002, doi:10.1073/pnas.102102699.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from pollex.conversations.conversation import Conversation, Label
from pollex.conversations.logs import flag_positive_labels
from pollex.conversations.splits import assign_folds, number_dependent_blocks
from pollex.errors import BadLabels
from pollex.measures.arrays import Bools, Floats, Ints
from pollex.measures.classification import compute_auc
from pollex.rubrics.answers import MIDDLE_OPTION_VALUE
from pollex.rubrics.learning.material import GivenAnswers, MadePool, Material
from pollex.rubrics.learning.settings import LearnSettings
from pollex.rubrics.learning.words import NO_PHRASE_PROOF, LogPhrases, PhraseProof
from pollex.rubrics.records import (
    LIKELY_LEVEL,
    PROVEN_LEVEL,
    Family,
    FamilyMember,
    RubricEvidence,
    get_detector_kind,
)
from pollex.rubrics.rubric import (
    ANSWERED_BY_BUILT_IN_JUDGE,
    PERSON_SOURCE,
    TONE_SOURCE_KINDS,
    Rubric,
    is_built_in_source,
)
from pollex.rubrics.worth import compute_evidence_of_rubric
from pollex.selection.losses import MAX_EVAL_DIFFERENCE, compute_midpoint_of_class_means
from pollex.selection.multi_split import (
    EVENT_RANK,
    HALVING_ALPHA,
    QUOTABLE_RANK,
    TONE_RANK,
    MultiSplit,
    NarrowedFamilies,
    add_unproven_rubrics_as_hints,
    adjust_p_values_by_holm,
    compute_fisher_p_values_of_rubrics,
    find_where_rubrics_hold,
    keep_one_conversation_per_block,
    keep_one_rubric_per_family,
    prove_rubrics_by_halvings,
)
from pollex.selection.netsat import sum_rubric_values
from pollex.selection.policies import CROSS_VALIDATED_ALPHAS_BY_POLICY, get_selection_policy
from pollex.selection.pool import Pool
from pollex.selection.prefix import compute_log_losses_of_logistic_fit, find_best_rubric_list_length

if TYPE_CHECKING:
    from pollex.calibration.thumbs import Fold


@dataclass(frozen=True, eq=False)
class Candidates:
    """The rubrics and training conversations to choose from.

    Attributes:
        conversations: Conversations with an answer to any of the rubrics.
        rubrics: Rubrics answered on at least half of the training conversations.
        values: Signed terms of NetSAT `[conversation, rubric]`.
        answered: Which of them a judge gave `[conversation, rubric]`.
        unjudged: By id, why other rubrics are out, as JSON values.
        came_up: Where a rubric's occasion came up `[conversation, rubric]`; None: everywhere.
    """

    conversations: list[Conversation]
    rubrics: list[Rubric]
    values: Floats
    answered: Bools
    unjudged: dict[str, object]
    came_up: Bools | None = None

    @cached_property
    def held(self) -> Bools:
        """Where rubrics hold `[conversation, rubric]`: nowhere that the occasion never came up."""
        return find_where_rubrics_hold(self.values, self.came_up)

    @property
    def labels(self) -> Bools:
        """True for positive `[conversation]`."""
        return flag_positive_labels(self.conversations)

    @property
    def kinds(self) -> Ints:
        """Number of each rubric's budget `[rubric]`: 0 of SAT, 1 of DSAT."""
        return np.array(
            [rubric.polarity == "dsat" for rubric in self.rubrics],
            dtype=np.intp,
        )

    def only(self, columns: Ints) -> Candidates:
        """Return the pool of some of its rubrics."""
        rubrics = [self.rubrics[column] for column in columns.tolist()]
        values = self.values[:, columns]
        answered = self.answered[:, columns]
        came_up = None if self.came_up is None else self.came_up[:, columns]

        return Candidates(
            self.conversations,
            rubrics,
            values,
            answered,
            self.unjudged,
            came_up,
        )

    @property
    def ids(self) -> list[str]:
        """Ids of the rubrics."""
        return [rubric.id for rubric in self.rubrics]


MIN_PROOFS_OF_DEED = 2


@dataclass(frozen=True, eq=False)
class WeighedPool:
    """A pool with all that its choice rests on.

    Attributes:
        sat: Whether a rubric is one of satisfaction `[rubric]`.
        mined: Words that were found by looking at these labels, and that only halvings of their own
            prove `[rubric]`.
        ranks: How easy each is to act on; see `multi_split.EVENT_RANK` `[rubric]`.
        deeds: Whether it tells of a deed of the assistant, and may lead `[rubric]`: these have a gate of their
            own, and are no family with what came of them.
        families: Name of each rubric's family.
        broadest: Name of the broadest family that each is of, a deed and what came of it alike.
        blocks: Number of each conversation's user or other unit `[conversation]`.
        limits: Rubrics of satisfaction and of dissatisfaction at most.
        most: Rubrics in all at most.
        words: All phrases of these conversations; None where a log has none, or nobody mined.
        fills: Whether a model's rubrics are chosen up to the budget, as in RUBICON's paper.
    """

    pool: Candidates
    sat: Bools
    mined: Bools
    ranks: Ints
    deeds: Bools
    families: list[str]
    broadest: list[str]
    blocks: Ints
    limits: tuple[int, int]
    most: int
    policy: str
    seed: int
    words: LogPhrases | None = None
    fills: bool = False
    _known: dict[bytes, tuple[MultiSplit, NarrowedFamilies]] = field(
        default_factory=dict,
        repr=False,
    )

    @classmethod
    def of(
        cls,
        pool: Candidates,
        settings: LearnSettings,
        family_of: Callable[[str], str],
        words: LogPhrases | None = None,
    ) -> Self:
        """Lay out a pool; families are by what rubrics are found by."""
        rubrics = pool.rubrics
        return cls(
            pool,
            np.array([rubric.polarity == "sat" for rubric in rubrics]),
            np.array([rubric.source.partition(":")[0] in TONE_SOURCE_KINDS for rubric in rubrics]),
            np.array([rank_rubric_by_how_actionable(rubric) for rubric in rubrics], dtype=np.intp),
            np.array([is_deed_with_reliable_detector(rubric) for rubric in rubrics], dtype=bool),
            [get_family_name_of_rubric(rubric, family_of) for rubric in rubrics],
            [family_of(get_detector_name_of_rubric(rubric)) for rubric in rubrics],
            number_dependent_blocks(pool.conversations),
            settings.limits,
            settings.most,
            settings.policy,
            settings.seed,
            words,
            settings.fills,
        )

    def word_proofs(self, rows: Bools) -> list[PhraseProof]:
        """Say what halvings of their own prove of mined words `[rubric]`; nothing of other rubrics."""
        if self.words is None or not self.mined.any():
            return [NO_PHRASE_PROOF] * len(self.sat)

        # a stream of random numbers of its own: halvings of mined words take none from other draws
        rng = np.random.default_rng([self.seed, 13])
        words = self.words.at(np.flatnonzero(rows))
        proofs = words.proofs(
            self.pool.labels[rows],
            self.blocks[rows],
            rng,
        )
        sides = zip(self.pool.rubrics, self.sat.tolist(), strict=True)
        return [proofs.get((rubric.source, sat), NO_PHRASE_PROOF) for rubric, sat in sides]

    def weigh(self, rows: Bools) -> tuple[MultiSplit, NarrowedFamilies]:
        """Say what the labels of some conversations prove, and which rubrics they leave to choose from.

        Args:
            rows: Which conversations of the pool `[conversation]`.
        """
        # proofs by the same conversations are worked out once: the key is the mask itself
        if (key := rows.tobytes()) not in self._known:
            pool = self.pool
            rng = np.random.default_rng([self.seed, 9])
            values = pool.values[rows]
            up = pool.labels[rows]
            came_up = None if pool.came_up is None else pool.came_up[rows]
            # what many random halvings of these conversations prove of each rubric
            proved = prove_rubrics_by_halvings(
                values,
                up,
                self.sat,
                pool.ids,
                self.blocks[rows],
                rng,
                self.policy,
                came_up,
            )
            proved = self._with_deeds_alone(proved, rows)
            # mined words were found on these labels: only halvings that mine anew count for them
            proofs = self.word_proofs(rows)
            proved = MultiSplit(
                np.where(self.mined, [proof.p for proof in proofs], proved.p),
                np.where(self.mined, [proof.chosen for proof in proofs], proved.chosen),
            )
            # families are compared on one conversation a user, as independent tests need
            alone = keep_one_conversation_per_block(
                np.ones(len(up), dtype=bool),
                self.blocks[rows],
                rng,
            )
            leads = keep_one_rubric_per_family(
                values[alone],
                up[alone],
                self.sat,
                proved.p,
                self.ranks,
                self.deeds,
                self.families,
                LIKELY_LEVEL,
                None if came_up is None else came_up[alone],
            )
            self._known[key] = proved, leads

        return self._known[key]

    def _with_deeds_alone(self, proved: MultiSplit, rows: Bools) -> MultiSplit:
        """Take of each deed the better of two proofs, adjusted for both: among all rubrics, and among deeds alone.

        What came of a deed tells the thumb better than the deed, and a choice among all takes it
        first.
        """
        columns = np.flatnonzero(self.deeds)
        if not len(columns):
            return proved

        deeds = self.pool.only(columns)
        alone = prove_rubrics_by_halvings(
            deeds.values[rows],
            deeds.labels[rows],
            self.sat[columns],
            deeds.ids,
            self.blocks[rows],
            np.random.default_rng([self.seed, 14]),
            self.policy,
            None if deeds.came_up is None else deeds.came_up[rows],
        )
        # the smaller p-value of the two, times their number (Bonferroni)
        p = proved.p.copy()
        chosen = proved.chosen.copy()
        chosen[columns] = np.where(
            alone.p < p[columns],
            alone.chosen,
            chosen[columns],
        )
        p[columns] = np.minimum(
            1.0,
            MIN_PROOFS_OF_DEED * np.minimum(alone.p, p[columns]),
        )

        return MultiSplit(p, chosen)

    def order(self, rows: Bools, alpha: float, *, hints: bool) -> Ints:
        """Choose rubrics by some conversations: columns, the surest first, and one at least.

        Args:
            rows: As for `weigh`.
            hints: Add what is neither proven nor likely, chosen by the policy with this α.
        """
        pool, (_, narrowed) = self.pool, self.weigh(rows)
        values = pool.values[rows]
        up = pool.labels[rows]
        order = narrowed.base
        # nothing is proven or likely: the policy chooses what a reader may look at
        if hints or not len(order):
            order = add_unproven_rubrics_as_hints(
                values,
                up,
                self.sat,
                pool.ids,
                narrowed,
                alpha,
                len(pool.ids),
                self.policy,
            )

        # a set has one rubric at least: the one that separates best
        if not len(order):
            order = np.argsort(
                compute_fisher_p_values_of_rubrics(pool.held[rows], up, self.sat), kind="stable"
            )[:1]

        return self.within_limits(order)

    def within_limits(self, order: Ints) -> Ints:
        """Keep the first of an order, as many of each side as the budget has."""
        # what is left of each side's budget, by whether the side is satisfaction
        left = {True: self.limits[0], False: self.limits[1]}
        columns: list[int] = []
        for column in order.tolist():
            side = bool(self.sat[column])
            if left[side] and len(columns) < self.most:
                left[side] -= 1
                columns.append(column)

        return np.array(columns, dtype=np.intp)


@dataclass(frozen=True, eq=False)
class MixedPool(WeighedPool):
    """A pool of a model's rubrics, and of built-in ones that enter by the gate that they pass alone.

    Built-in rubrics of moods and lengths never enter: they are one tone.
    """

    _pools: dict[bytes, Pool] = field(default_factory=dict, repr=False)

    @cached_property
    def models(self) -> Ints:
        """Columns of the model's rubrics, and of people's."""
        return np.flatnonzero(
            [rubric.answered_by != ANSWERED_BY_BUILT_IN_JUDGE for rubric in self.pool.rubrics]
        )

    @cached_property
    def built_in(self) -> Ints:
        """Columns of the built-in rubrics."""
        return np.setdiff1d(np.arange(len(self.pool.rubrics)), self.models)

    @cached_property
    def entitled(self) -> Ints:
        """Columns of the built-in rubrics that a set may have: no manners, no moods, no lengths."""
        leads = []
        for column in self.built_in.tolist():
            leads.append(self.pool.rubrics[column].leads)
        return np.asarray(self.built_in[np.array(leads, dtype=bool)])

    @cached_property
    def gate(self) -> WeighedPool:
        """The built-in rubrics alone."""
        return self._part(self.built_in)

    @cached_property
    def own(self) -> WeighedPool:
        """The model's rubrics alone."""
        return self._part(self.models)

    def _part(self, columns: Ints) -> WeighedPool:
        # Beside a model's rubrics, which tell deeds, one of a built-in family is enough, whatever it
        # tells of.
        families = [self.broadest[column] for column in columns.tolist()]
        return WeighedPool(
            self.pool.only(columns),
            self.sat[columns],
            self.mined[columns],
            self.ranks[columns],
            np.zeros(len(columns), dtype=bool),
            families,
            families,
            self.blocks,
            self.limits,
            self.most,
            self.policy,
            self.seed,
            self.words,
        )

    def weigh(self, rows: Bools) -> tuple[MultiSplit, NarrowedFamilies]:
        """Say what the labels of some conversations prove: of each side's rubrics as of that side alone."""
        if (key := rows.tobytes()) not in self._known:
            # p-values and shares of halvings `[rubric]`, filled in part by part
            p, chosen = np.ones((2, len(self.pool.rubrics)))
            base = list[int]()
            members = dict[int, Ints]()
            # each part is weighed alone, and its columns become columns of the whole pool
            for part, columns in ((self.gate, self.built_in), (self.own, self.models)):
                if len(columns):
                    proofs, narrowed = part.weigh(rows)
                    p[columns], chosen[columns] = proofs.p, proofs.chosen
                    base += columns[narrowed.base].tolist()
                    members |= {
                        int(columns[leader]): columns[family]
                        for leader, family in narrowed.members.items()
                    }

            # what is in no family is left to choose from
            in_families = np.concatenate([*members.values(), np.zeros(0, dtype=np.intp)]).astype(
                np.intp
            )
            left = np.setdiff1d(np.arange(len(p)), in_families)
            self._known[key] = (
                MultiSplit(p, chosen),
                NarrowedFamilies(np.array(base, dtype=np.intp), left, members),
            )

        return self._known[key]

    def entering(self, rows: Bools) -> Ints:
        """Return the columns to choose from: the model's that vary, and built-in ones that the gate lets in."""
        # an answer that is the same everywhere tells no conversations apart
        spread = self.pool.values[rows][:, self.models].std(axis=0)
        models: Ints = self.models[spread > 0]
        if not len(self.built_in):
            return models

        # of built-in rubrics only those that lead a proven or likely family
        base = self.built_in[self.gate.weigh(rows)[1].base]
        return np.sort(np.concatenate([models, base[np.isin(base, self.entitled)]]))

    def order(self, rows: Bools, alpha: float, *, hints: bool) -> Ints:
        """Choose built-in deeds as they are chosen alone, and the model's rubrics as far as they lower the loss."""
        order = self.choose_with_few_of_model(
            rows,
            alpha,
            self._how_many(rows, alpha, hints=hints),
            hints=hints,
        )
        # a set has one rubric at least: the first that could be chosen, else any
        if len(order):
            return order
        if len(columns := self.entering(rows)):
            return self._chosen(rows, columns, alpha)[:1]
        return (self.models if len(self.models) else self.entitled)[:1]

    def choose_with_few_of_model(
        self,
        rows: Bools,
        alpha: float,
        most: int,
        *,
        hints: bool,
    ) -> Ints:
        """Choose rubrics `[column]` for a set that has only some of those that a model wrote.

        The model's and the built-in ones are chosen together; of the model's the first `most` in
        the policy's order stay. Then what built-in roles would choose by themselves is added.

        Args:
            rows: Conversations that are chosen by, `[conversation]`.
            alpha: Weight of the policy's second term.
            most: Of the model's rubrics.
            hints: As for `order`: of built-in rubrics alone.
        """
        chosen = self._chosen(rows, self.entering(rows), alpha)
        alone = self._alone(rows, alpha, hints=hints)
        return self._cut(chosen, alone, most)

    def _cut(self, chosen: Ints, alone: Ints, most: int) -> Ints:
        """Keep of what is chosen together the first of the model's rubrics, and add what is chosen alone."""
        # of the model's rubrics only the first so many; built-in ones in between stay
        models = np.isin(chosen, self.models)
        first = chosen[~models | (np.cumsum(models) <= most)]
        return self.within_limits(
            np.concatenate([first, alone[~np.isin(alone, first)]]).astype(np.intp)
        )

    def _alone(self, rows: Bools, alpha: float, *, hints: bool) -> Ints:
        """Choose as built-in roles do alone, and leave out moods and lengths."""
        if not len(self.built_in):
            return np.zeros(0, dtype=np.intp)

        order = self.built_in[self.gate.order(rows, alpha, hints=hints)]
        return np.asarray(order[np.isin(order, self.entitled)])

    def _chosen(self, rows: Bools, columns: Ints, alpha: float) -> Ints:
        """Choose some columns by some conversations, within the budget: columns in the order of choice."""
        if not len(columns):
            return columns

        key = rows.tobytes() + columns.tobytes()
        if key not in self._pools:  # shared: the first steps of several α are alike
            names = [self.pool.ids[column] for column in columns.tolist()]
            values = self.pool.values[np.ix_(rows, columns)]
            up = self.pool.labels[rows]
            self._pools[key] = Pool.of(
                values,
                up,
                self.sat[columns],
                names,
                self.limits,
            )

        # the same seed for every choice, so that equal conversations choose alike
        chosen = get_selection_policy(self.policy)(
            self._pools[key],
            alpha,
            np.random.default_rng(self.seed),
        )
        return self.within_limits(columns[chosen])

    def _how_many(self, rows: Bools, alpha: float, *, hints: bool) -> int:
        """Return how many of the model's rubrics lower the loss on fifths of these conversations; all where too few."""
        # as in the paper: up to the budget, whatever the losses say
        if self.fills:
            return self.most

        inside = np.flatnonzero(rows)
        try:
            dealt = assign_folds(
                [self.pool.conversations[row] for row in inside.tolist()],
                CROSSFIT_FOLDS,
                self.seed,
            )
        except BadLabels:
            # too few conversations to measure on: nothing is cut off
            return self.most

        # Each length is measured on each fifth by a choice that did not see it.
        up = self.pool.labels[inside]
        # NetSAT less θ, by the most rubrics of the model `[most, conversation]`
        above = np.zeros((self.most + 1, len(inside)))
        for number in range(CROSSFIT_FOLDS):
            out = dealt == number
            training = np.zeros(len(rows), dtype=bool)
            training[inside[~out]] = True
            chosen = self._chosen(training, self.entering(training), alpha)
            alone = self._alone(training, alpha, hints=hints)
            for most in range(self.most + 1):
                order = self._cut(chosen, alone, most)
                # θ comes from outside the fifth, as the choice does
                netsat = sum_rubric_values(self.pool.values[np.ix_(inside, order)])
                above[most, out] = netsat[out] - compute_midpoint_of_class_means(
                    netsat[~out], up[~out]
                )

        losses = np.array([compute_log_losses_of_logistic_fit(scores, up) for scores in above])
        return find_best_rubric_list_length(
            losses,
            instead=len(self.choose_with_few_of_model(rows, alpha, 0, hints=hints)) > 0,
        )


def rank_rubric_by_how_actionable(rubric: Rubric) -> int:
    """Return how easy a rubric is to act on."""
    detector = rubric.source.partition(":")[0]
    if detector in ("event", "rate"):
        return EVENT_RANK
    if rubric.leads or detector == "phrase":
        return QUOTABLE_RANK
    return TONE_RANK


def is_deed_with_reliable_detector(rubric: Rubric) -> bool:
    """Tell whether a rubric is of a deed, and what finds it is known to be right: such a one may lead."""
    return rubric.kind == "deed" and not rubric.unsure


def get_family_name_of_rubric(rubric: Rubric, family_of: Callable[[str], str]) -> str:
    """Name a rubric's family: of a deed what finds it, whatever its object; of others their broadest pattern."""
    source = get_detector_name_of_rubric(rubric)
    if is_deed_with_reliable_detector(rubric) and is_built_in_source(source):
        return get_detector_kind(source).partition(":")[2]
    return family_of(source)


def get_detector_name_of_rubric(rubric: Rubric) -> str:
    """Name what a rubric is found by: its source, or itself where a person's or a model's words are all there is."""
    if rubric.source == PERSON_SOURCE or "@" in rubric.source:
        return rubric.id
    return rubric.source


def make_rubric_key_across_folds(rubric: Rubric) -> tuple[str, str]:
    """Name a rubric alike in the pools of all folds."""
    return rubric.polarity, get_detector_name_of_rubric(rubric)


def make_json_of_rubric_families(
    weighed: WeighedPool, narrowed: NarrowedFamilies
) -> dict[str, dict[str, object]]:
    """Return what each rubric that leads a family consists of, by its id, as JSON values.

    That is of a deed its narrower forms; of an outcome the deeds that happen where it holds, but for
    those that have an entry of their own.
    """
    pool = weighed.pool
    held = weighed.pool.held
    up = flag_positive_labels(pool.conversations)
    together = number_dependent_blocks(pool.conversations)
    families = {}
    for first, family in narrowed.members.items():
        # where the rubric that leads holds `[conversation]`
        here = held[:, first]
        often = held.sum(axis=0)
        # a narrower form holds in fewer conversations
        narrower = [member for member in family.tolist() if often[member] < often[first]]
        deeds, within = list_deeds_behind_outcome_rubric(weighed, narrowed, first)
        members = []
        # a deed consists of its narrower forms, an outcome of deeds
        for column in narrower if weighed.deeds[first] else deeds:
            rubric = pool.rubrics[column]
            among = int((here & held[:, column]).sum())
            if among:
                member = make_family_member(
                    rubric,
                    among,
                    compute_evidence_of_rubric(held[:, column], up, together),
                )
                # a deed that makes a difference within the outcome has its figures there, too
                if column in within:
                    inside = compute_evidence_of_rubric(
                        held[here, column],
                        up[here],
                        together[here],
                    )
                    member = member.model_copy(update={"within": inside})

                members.append(member)

        # members that hold most often come first; ids decide between equals
        families[pool.ids[first]] = Family(
            n=int(here.sum()),
            members=tuple(sorted(members, key=lambda member: (-member.among, member.id))),
            worth=compute_evidence_of_rubric(here, up, together),
        ).model_dump(mode="json")

    return families


def list_deeds_behind_outcome_rubric(
    weighed: WeighedPool, narrowed: NarrowedFamilies, first: int
) -> tuple[list[int], list[int]]:
    """Return the deeds of an outcome's broadest family, and those that make a difference where the outcome holds.

    Where they hold, thumbs are compared with those of the rest of the outcome's conversations, by
    Holm's adjustment. What has an entry of its own, whatever its object, isn't told again.
    """
    if weighed.deeds[first]:
        return [], []

    rubrics = weighed.pool.rubrics
    # what has an entry of its own, by its detector, whatever its object
    entries = set()
    for column in narrowed.base.tolist():
        entries.add(get_detector_kind(get_detector_name_of_rubric(rubrics[column])))

    # other deeds of the same side and of the same broadest pattern
    columns = []
    for column in np.flatnonzero(weighed.deeds & (weighed.sat == weighed.sat[first])).tolist():
        if (
            get_detector_kind(get_detector_name_of_rubric(rubrics[column])) not in entries
            and weighed.broadest[column] == weighed.broadest[first]
        ):
            columns.append(column)

    candidates = np.array(columns, dtype=np.intp)
    if not len(candidates):
        return [], []

    # thumbs are compared inside the outcome's conversations alone
    held = weighed.pool.held
    rows = held[:, first]
    p = compute_fisher_p_values_of_rubrics(
        held[np.ix_(rows, candidates)],
        weighed.pool.labels[rows],
        weighed.sat[candidates],
    )
    return columns, [
        int(column) for column in candidates[adjust_p_values_by_holm(p) <= PROVEN_LEVEL]
    ]


def make_family_member(
    rubric: Rubric, among: int, worth: RubricEvidence | None = None
) -> FamilyMember:
    """Return a narrower form with its best quote, and its thumbs where it was judged by itself."""
    quote = rubric.quotes[0] if rubric.quotes else None
    source = get_detector_name_of_rubric(rubric) if worth else ""
    return FamilyMember(
        id=rubric.id,
        text=rubric.text,
        among=among,
        quote=quote,
        source=source,
        worth=worth,
    )


VALUES_TRIED_FOR_NEVER_CAME_UP = (0.0, MAX_EVAL_DIFFERENCE / 4)
"""Values of "never came up" that are tried for a side, beside neutral and the mean of its rubrics."""

ANSWERS_FOR_HALF_TRUST_IN_LEARNED_VALUE = 30
"""Answers "never came up" of a side at which half of what they show is believed."""


def learn_never_came_up_values_of_rubrics(
    table: GivenAnswers,
    training: Sequence[Conversation],
    rubrics: Sequence[Rubric],
) -> dict[str, float]:
    """Return what "never came up" counts, by rubric: one value for all rubrics of a side, as labels show.

    That there was no occasion for what goes wrong is good news, so 0 may be right of
    dissatisfaction; that there was none for what goes well is often no news at all.
    """
    value_by_id = dict[str, float]()
    for side in ("sat", "dsat"):
        of_side = [rubric for rubric in rubrics if rubric.polarity == side]
        # where the occasion never came up `[conversation, rubric]`
        never = np.array(
            [[(c.id, r.id) in table.never for r in of_side] for c in training],
            dtype=bool,
        )
        if never.any():
            # without a learned value, “never came up” stands as neutral among the terms
            signed, answered = replace(table, never_counts={}).matrix(training, of_side)
            value = learn_never_came_up_value_of_side(
                signed,
                answered & ~never,
                never,
                flag_positive_labels(training),
            )
            value_by_id |= {rubric.id: value for rubric in of_side}

    return value_by_id


def learn_never_came_up_value_of_side(
    signed: Floats,
    came_up: Bools,
    never: Bools,
    up: Bools,
) -> float:
    """Return the value of "never came up" that separates best, shrunk to neutral the more the fewer answers show it.

    Args:
        signed: Terms of NetSAT of the rubrics of one side `[conversation, rubric]`.
        came_up: Where another answer was given `[conversation, rubric]`.
        up: Thumbs up `[conversation]`.
    """
    # where all thumbs are alike, no value separates better than another
    if up.all() or not up.any():
        return MIDDLE_OPTION_VALUE

    # a rubric weighs as often as its occasion never came up
    weights = never.sum(axis=0)
    sign = np.sign(signed.sum()) or 1.0
    # what a rubric of the side counts on average where its occasion came up
    if came_up.any():
        usual = float(np.abs(signed[came_up]).mean())
    else:
        usual = MIDDLE_OPTION_VALUE

    def separates(value: float) -> float:
        """Return the mean AUC of the rubrics, each alone."""
        counted = np.where(never, sign * value, signed)
        return float(
            np.average(
                [compute_auc(column, up) for column in counted.T],
                weights=weights,
            )
        )

    # neutral comes first, so that it wins between equals
    best = max((MIDDLE_OPTION_VALUE, *VALUES_TRIED_FOR_NEVER_CAME_UP, usual), key=separates)
    n = int(weights.sum())
    return MIDDLE_OPTION_VALUE + (best - MIDDLE_OPTION_VALUE) * n / (
        n + ANSWERS_FOR_HALF_TRUST_IN_LEARNED_VALUE
    )


CROSSFIT_FOLDS = 5
NO_CROSS_FITTED_FIGURES_NOTE = (
    "There are no cross-fitted figures: without a fifth of the conversations, built-in roles would have found none of "
    "the rubrics that people left in the pool."
)
Kind = TypeVar("Kind", bound=np.generic)


@dataclass(frozen=True, eq=False)
class FoldPart:
    """A fold, with the pool that was made and chosen from without it.

    Attributes:
        out: The fold's conversations `[row]`, those with a thumb first.
        made: Of the others.
        weighed: Conversations with a thumb alone.
        chosen: Columns of the pool.
    """

    out: Bools
    made: MadePool
    weighed: WeighedPool
    chosen: Ints

    @cached_property
    def labeled_out(self) -> Bools:
        """The fold's conversations with a thumb `[labeled row]`."""
        return self.out[: len(self.weighed.pool.labels)]

    @cached_property
    def above(self) -> Floats:
        """NetSAT less the fold's own θ `[labeled row]`."""
        pool = self.weighed.pool
        training = ~self.labeled_out
        netsat = sum_rubric_values(pool.values[:, self.chosen])
        return np.asarray(
            netsat - compute_midpoint_of_class_means(netsat[training], pool.labels[training])
        )

    @cached_property
    def held(self) -> Bools:
        """Where rubrics of its pool hold `[labeled row, rubric]`."""
        return self.weighed.pool.held

    @cached_property
    def covered(self) -> Bools:
        """Where a rubric of dissatisfaction holds that would lead `[labeled row]`."""
        # borne out by the other folds alone: the fold's own labels take no part
        proofs, _ = self.weighed.weigh(~self.labeled_out)
        leads = self.made.leads & ~self.weighed.sat & (proofs.p <= LIKELY_LEVEL)
        return np.asarray(
            self.held[:, [column for column in self.chosen.tolist() if leads[column]]].any(axis=1)
        )

    def column(self, rubric: Rubric) -> int | None:
        """Return the column of a rubric that it chose, or of one of a family that leads; None where it has none."""
        _, narrowed = self.weighed.weigh(~self.labeled_out)
        # a member of a family that leads stands for the one that is in the set
        columns = {
            *self.chosen.tolist(),
            *(member for members in narrowed.members.values() for member in members.tolist()),
        }
        # the same rubric has another column in this fold's own pool
        named = (
            i
            for i, candidate in enumerate(self.made.rubrics)
            if make_rubric_key_across_folds(candidate) == make_rubric_key_across_folds(rubric)
        )
        return next((i for i in named if i in columns), None)

    @property
    def fold(self) -> Fold:
        """The fold for models of the probability."""
        # scikit-learn comes with it, and takes a second to import
        from pollex.calibration.thumbs import Fold

        rubrics = self.made.rubrics
        # the network's one order
        places = sorted(self.chosen.tolist(), key=lambda place: rubrics[place].id)

        return Fold(
            self.out,
            [rubrics[place].sign for place in places],
            self.made.answers[:, places],
        )


@dataclass(frozen=True, eq=False)
class CrossFit:
    """What five choices, each without a fifth, say of choosing.

    Attributes:
        alpha: Weight of sharpness with the highest AUC.
        hints: Whether hints help by more than a standard error of the difference.
        table: AUC of each α, as JSON values.
        parts: None of them where there are too few conversations.
        notes: Warnings.
    """

    alpha: float
    hints: bool
    table: list[dict[str, Any]]
    parts: list[FoldPart]
    notes: list[str]

    @property
    def above(self) -> Floats:
        """NetSAT less θ of each conversation, by rubrics that did not see it `[labeled row]`."""
        return self.gathered([part.above for part in self.parts])

    @property
    def covered(self) -> Bools:
        """See `FoldPart.covered`, each conversation's by rubrics that did not see it `[labeled row]`."""
        return self.gathered([part.covered for part in self.parts])

    def held_of(self, rubrics: Sequence[Rubric]) -> tuple[Bools, Bools]:
        """Tell where rubrics hold, and where choices that did not see it have them, each `[labeled row, rubric]`."""
        held, unseen = np.zeros(
            (2, len(self.parts[0].labeled_out), len(rubrics)),
            dtype=bool,
        )
        # each fold fills in its own rows, from the pool that was made without it
        for part in self.parts:
            held_out = part.labeled_out
            for place, rubric in enumerate(rubrics):
                if (column := part.column(rubric)) is not None:
                    held[held_out, place], unseen[held_out, place] = (
                        part.held[held_out, column],
                        True,
                    )

        return held, unseen

    def gathered(self, values_by_part: Sequence[NDArray[Kind]]) -> NDArray[Kind]:
        """Take each conversation's value of the part that did not see it `[labeled row]`."""
        values_unseen = values_by_part[0].copy()
        for part, values in zip(self.parts, values_by_part, strict=True):
            values_unseen[part.labeled_out] = values[part.labeled_out]
        return values_unseen


def cross_fit(material: Material, pool: Candidates) -> CrossFit:
    """Choose anew without each fold, once in a process, and by that α and whether hints are added.

    What a fold's own choice is made with, the other four folds say.
    """
    if "cross_fit" not in material.once:
        material.once["cross_fit"] = _choose_without_each_fold(material, pool)

    cross_fit: CrossFit = material.once["cross_fit"]
    return cross_fit


def list_training_and_graded_conversations(
    material: Material, pool: Candidates
) -> list[Conversation]:
    """List the pool's training conversations, then those with a grade that is no thumb."""
    return [*pool.conversations, *material.table.judged(material.graded_training, pool.rubrics)]


def list_conversations_with_thumb(conversations: Sequence[Conversation]) -> list[Conversation]:
    """List the conversations that have a thumb."""
    return [conversation for conversation in conversations if conversation.label is not Label.NONE]


def assign_held_out_conversations_to_folds(material: Material) -> tuple[list[Conversation], Ints]:
    """List held-out conversations that have all answers, those with a thumb first, and deal them to folds.

    What is fitted for a fold sees all of the others, and all that taught. Where there are too few,
    all are one fold.
    """
    judged = material.table.answered(
        (*material.held_out, *material.graded_held_out),
        material.chosen,
    )
    fold = assign_conversations_to_folds(material, judged)
    return judged, np.zeros(len(judged), dtype=np.int64) if fold is None else fold


def assign_conversations_to_folds(
    material: Material, conversations: Sequence[Conversation]
) -> Ints | None:
    """Return the fold of each conversation; None where there are too few."""
    try:
        return assign_folds(conversations, CROSSFIT_FOLDS, material.settings.seed)
    except BadLabels:
        return None


def apply_people_edits_to_remade_pool(
    material: Material,
    remade: MadePool,
    rows: Sequence[Conversation],
) -> MadePool:
    """Leave of a pool made anew what people left of the first one, and add their own rubrics with the answers given."""
    # ids of the written pool, without those that were merged away
    written = {
        rubric.id for side in material.pool.values() for rubric in side
    } - material.merged.keys()
    if not material.kept or written == {rubric.id for rubric in material.kept}:
        return remade

    # rubrics of different folds are matched by side and source
    left = {make_rubric_key_across_folds(rubric) for rubric in material.kept}
    by_people = [rubric for rubric in material.kept if rubric.source == PERSON_SOURCE]
    here = [
        place
        for place, rubric in enumerate(remade.rubrics)
        if make_rubric_key_across_folds(rubric) in left
    ]
    # people's own rubrics come last, with the answers that a judge gave to them
    answers = np.concatenate(
        [remade.answers[:, here], material.table.probabilities(rows, by_people)],
        axis=1,
    )
    leads = np.append(
        remade.leads[here],
        np.array([rubric.leads for rubric in by_people], dtype=bool),
    )

    return MadePool(
        [*(remade.rubrics[place] for place in here), *by_people],
        leads,
        answers,
    )


def _choose_without_each_fold(material: Material, pool: Candidates) -> CrossFit:
    settings = material.settings
    rows = list_training_and_graded_conversations(material, pool)
    labels = pool.labels
    # the α that is taken where folds can't compare any
    first = HALVING_ALPHA if settings.alpha is None else settings.alpha
    try:
        dealt = assign_folds(rows, CROSSFIT_FOLDS, settings.seed)
    except BadLabels as error:
        return CrossFit(
            first,
            True,
            [],
            [],
            [f"α = {first:g} was not cross-validated: {error.what}"],
        )

    # a given α is the only one that is tried
    if settings.alpha is None:
        alphas = CROSS_VALIDATED_ALPHAS_BY_POLICY[settings.policy]
    else:
        alphas = (settings.alpha,)

    ways = _list_alpha_and_hint_combinations(material, pool, alphas)
    # a free pool is made anew without each fold; one that was paid for stays
    free = material.make is not None
    tried: list[tuple[Bools, MadePool, WeighedPool, list[Ints]]] = []
    # AUC on the fold that a choice did not see `[fold, way]`
    aucs = np.zeros((CROSSFIT_FOLDS, len(ways)))
    for number in range(CROSSFIT_FOLDS):
        out = dealt == number
        # conversations with a thumb stand first in `rows`
        labeled_out = out[: len(labels)]
        if free:
            pool_made, weighed = _remake_pool_without_fold(material, pool, rows, out)
        else:
            pool_made, weighed = _reuse_model_pool_without_fold(material, pool, rows, labeled_out)

        if not pool_made.rubrics:
            return CrossFit(first, True, [], [], [NO_CROSS_FITTED_FIGURES_NOTE])
        orders = [weighed.order(~labeled_out, alpha, hints=hints) for alpha, hints in ways]
        values = weighed.pool.values[labeled_out]
        aucs[number] = [
            compute_auc(sum_rubric_values(values[:, order]), labels[labeled_out])
            for order in orders
        ]
        tried.append((out, pool_made, weighed, orders))

    # each fold chooses in the way that is best on the other folds
    parts = [
        FoldPart(
            out,
            pool_made,
            weighed,
            orders[_find_best_alpha_and_hint_combination(np.delete(aucs, number, axis=0), ways)],
        )
        for number, (out, pool_made, weighed, orders) in enumerate(tried)
    ]

    # What is told of each α is of the ways that differ by it: without hints, built-in rubrics are
    # chosen without α.
    alpha, hints = ways[_find_best_alpha_and_hint_combination(aucs, ways)]
    ways_told = np.flatnonzero([way[1] == (hints or free) for way in ways])
    table = []
    for way, fold_aucs in zip(ways_told.tolist(), aucs[:, ways_told].T, strict=True):
        table.append(
            {
                "alpha": ways[way][0],
                "mean_auc": float(fold_aucs.mean()),
                "deviation": float(fold_aucs.std(ddof=1)),
                "folds": CROSSFIT_FOLDS,
            }
        )

    # α still counts where nothing is proven: the best of the ways with hints
    if free and not hints:
        alpha = ways[int(ways_told[np.argmax(aucs[:, ways_told].mean(axis=0))])][0]

    return CrossFit(alpha, hints, table, parts, [])


def _list_alpha_and_hint_combinations(
    material: Material,
    pool: Candidates,
    alphas: Sequence[float],
) -> list[tuple[float, bool]]:
    """List the ways to choose: α, and whether built-in hints are added.

    Without hints α makes a difference to a model's rubrics alone, and these are never left out as
    hints.
    """
    hinted = [(alpha, True) for alpha in alphas]
    if material.make is not None:
        return [(alphas[0], False), *hinted]

    # a pool without built-in rubrics has no way without hints
    built_in = any(rubric.answered_by == ANSWERED_BY_BUILT_IN_JUDGE for rubric in pool.rubrics)
    return [*((alpha, False) for alpha in alphas if built_in), *hinted]


def _find_best_alpha_and_hint_combination(aucs: Floats, ways: Sequence[tuple[float, bool]]) -> int:
    """Take the way with hints that has the highest AUC where they help by more than a standard error, else one without.

    Args:
        aucs: `[fold, way]`.
    """
    hinted = np.array([hints for _, hints in ways])
    means = aucs.mean(axis=0)
    # the best way of each kind: −1 is below any AUC
    best, bare = (int(np.argmax(np.where(among, means, -1.0))) for among in (hinted, ~hinted))
    # what hints add to AUC `[fold]`, against one standard error of the mean
    gain = aucs[:, best] - aucs[:, bare]
    if hinted.all() or gain.mean() > gain.std(ddof=1) / len(gain) ** 0.5:
        return best
    return bare


def _remake_pool_without_fold(
    material: Material,
    pool: Candidates,
    rows: Sequence[Conversation],
    out: Bools,
) -> tuple[MadePool, WeighedPool]:
    """Make the pool anew without a fold, as built-in roles do for nothing."""
    assert material.make is not None, "what is chosen by evidence can be made anew"
    # only conversations with a thumb make rubrics, and these stand first in `rows`
    training = ~out & (np.arange(len(rows)) < len(pool.labels))
    remade = apply_people_edits_to_remade_pool(material, material.make(rows, training), rows)
    left = make_candidates(remade, pool.conversations, material.table.rule)

    return remade, WeighedPool.of(
        left, material.settings, material.family_of, material.words_of(left.conversations)
    )


def _reuse_model_pool_without_fold(
    material: Material,
    pool: Candidates,
    rows: Sequence[Conversation],
    out: Bools,
) -> tuple[MadePool, WeighedPool]:
    """Return the pool that was paid for; what "never came up" counts is learned without the fold."""
    # those of the other folds
    training = []
    for conversation, held_out in zip(pool.conversations, out, strict=True):
        if not held_out:
            training.append(conversation)

    table = replace(
        material.table,
        never_counts=learn_never_came_up_values_of_rubrics(material.table, training, pool.rubrics),
    )
    leads = np.array([rubric.leads for rubric in pool.rubrics], dtype=bool)
    pool_made = MadePool(
        pool.rubrics,
        leads,
        material.table.probabilities(rows, pool.rubrics),
    )
    # the same rubrics, with terms as the other folds count “never came up”
    counted = Candidates(
        pool.conversations,
        pool.rubrics,
        *table.matrix(pool.conversations, pool.rubrics),
        {},
        table.came_up(pool.conversations, pool.rubrics),
    )
    words = material.words_of(counted.conversations)

    return pool_made, MixedPool.of(counted, material.settings, material.family_of, words)


def make_candidates(
    remade: MadePool,
    conversations: list[Conversation],
    rule: str,
) -> Candidates:
    """Return a pool made anew with its signed terms of NetSAT."""
    # rows behind these have a grade alone
    answers = remade.answers[: len(conversations)]
    # what each option counts, from 0 to 10
    options = np.linspace(0, MAX_EVAL_DIFFERENCE, remade.answers.shape[2])
    if rule == "mode":
        values = options[answers.argmax(axis=2)]
    else:
        values = answers @ options

    signed = values * [rubric.sign for rubric in remade.rubrics]
    # built-in roles leave nothing unanswered
    return Candidates(
        conversations,
        list(remade.rubrics),
        signed,
        np.ones(values.shape, dtype=bool),
        {},
    )
