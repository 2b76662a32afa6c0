"""Training of calibration networks: full-batch, several seeds at once, with shrunk deltas.

Sheets lie in *slots*: a slot holds some sheets of one judge, and a batched matrix product takes
every slot through its judge's weights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from threading import Lock, get_ident

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from pollex.calibration.judgments import UNANSWERED_CODE, UNKNOWN_JUDGE_CODE, AnswerMatrix
from pollex.calibration.network.weights import MAX_LOG_SCALE, WeightArray, Weights
from pollex.measures.arrays import Bools, Floats, Ints

LEARNED_WEIGHT_NAMES = ("W1", "W2", "V", "W1a", "W2a", "Va", "cuts")
MAX_SHEETS_A_SLOT = 32
"""A judge with more sheets than this has several slots, so that one busy judge doesn't pad all others."""


@dataclass(frozen=True)
class TrainingConfig:
    """Settings of the training.

    Attributes:
        steps: Passes over all data.
        rate: Step size of Adam; it falls to zero along half a cosine.
        decay: Penalty on the shared weights but for biases: precision of a normal prior.
        shrinkage: Likewise on the judges' deltas with their biases.
        dropout: Share of sheets of which, in each step, some questions are hidden: each with a
            chance that is drawn anew for the sheet, from 0 to 1.
    """

    steps: int
    rate: float
    decay: float
    shrinkage: float
    dropout: float = 0.0


@dataclass(frozen=True, eq=False)
class JudgeSlots:
    """Sheets by judge.

    Attributes:
        sheet: Number of a sheet `[slot, place]`; 0 for padding.
        filled: Whether there is one `[slot, place]`.
        judge: Code `[slot]`; for an unknown judge, the number of judges.
    """

    sheet: Tensor
    filled: Tensor
    judge: Tensor


def assign_answer_sheets_to_judge_slots(judge: Ints, judges: int) -> JudgeSlots:
    """Assign sheets of the judges given `[sheet]` to slots."""
    # place of each sheet among those of its judge, and the slot that it lies in
    codes = np.where(judge == UNKNOWN_JUDGE_CODE, judges, judge)
    order = np.argsort(codes, kind="stable")
    ordered = codes[order]
    place = np.arange(len(codes)) - np.searchsorted(ordered, ordered)
    size = int(min(MAX_SHEETS_A_SLOT, place.max(initial=0) + 1))
    keys = np.stack([ordered, place // size], axis=1)
    unique, slot = np.unique(keys, axis=0, return_inverse=True)
    # which sheet lies where `[slot, place]`; the rest is padding
    sheet = np.zeros((len(unique), size), dtype=np.int64)
    filled = np.zeros((len(unique), size), dtype=bool)
    sheet[slot.reshape(-1), place % size] = order
    filled[slot.reshape(-1), place % size] = True

    return JudgeSlots(
        torch.from_numpy(sheet),
        torch.from_numpy(filled),
        torch.from_numpy(unique[:, 0].copy()),
    )


@dataclass(frozen=True, eq=False)
class TrainingData:
    """Data for training.

    Attributes:
        inputs: `[sheet, input + 1]`, bias last; what is missing is 0 and has a 1 in its mask
            column.
        sheets: Their answers.
        blocks: Of each column of x, the asked question that it belongs to.
    """

    inputs: Floats
    sheets: AnswerMatrix
    blocks: Ints

    def only(self, question: int) -> TrainingData:
        """Return the same with the answers to one question."""
        answer = self.sheets.answer[:, [question]]
        return replace(self, sheets=replace(self.sheets, answer=answer))


def initialize_weights(
    shape: tuple[int, int, int],
    judges: tuple[int, int],
    heads: OutputHeads,
    seeds: int,
    seed: int,
) -> Weights:
    """Initialize weights: shared ones small and random, deltas 0, heads at the answers' shares.

    Args:
        shape: Inputs without the bias, h1, h2.
        judges: With deltas of their own in the layers, and in the heads.
        heads: What they answer.
        seeds: How many networks.
        seed: Of them all.
    """
    inputs, h1, h2 = shape
    # the deltas are 0: every judge begins as everybody
    random = torch.Generator().manual_seed(seed)
    width = heads.shares.shape[0] * heads.outputs

    def uniform(rows: int, columns: int) -> WeightArray:
        spread = (2.0 / (rows + columns)) ** 0.5
        layer: WeightArray = torch.randn(
            (seeds, rows + 1, columns), generator=random, dtype=torch.float64
        ).numpy()
        layer = layer * spread
        layer[:, -1] = 0.0

        return layer

    # biases of the heads and cuts at the answers' shares
    V = uniform(h2, width)
    V[:, -1] = np.where(heads.ordinal[:, None], 0.0, np.log(heads.shares)).reshape(-1)
    below = np.cumsum(heads.shares, axis=1)[:, :-1].clip(1e-6, 1 - 1e-6)

    return Weights(
        W1=uniform(inputs, h1),
        W2=uniform(h1, h2),
        V=V,
        W1a=np.zeros((seeds, judges[0], inputs + 1, h1)),
        W2a=np.zeros((seeds, judges[0], h1 + 1, h2)),
        Va=np.zeros((seeds, judges[1], h2 + 1, width)),
        cuts=np.repeat(np.log(below / (1 - below))[None], seeds, axis=0),
        options=heads.options,
        ordinal=heads.ordinal,
    )


@dataclass(frozen=True, eq=False)
class OutputHeads:
    """The heads of a network.

    Attributes:
        options: Number of options of each question `[question]`.
        ordinal: Which have a cumulative-link head `[question]`.
        shares: Smoothed answer frequencies in the data `[question, option]`; 1e-6 for options that
            a question has not.
    """

    options: Ints
    ordinal: Bools
    shares: Floats

    @property
    def outputs(self) -> int:
        """Columns of a head."""
        return int(self.shares.shape[1])


def make_output_heads(sheets: AnswerMatrix, options: Ints, ordinal: Bools) -> OutputHeads:
    """Make heads for the questions of the sheets."""
    # counts of each answer, with one more for each option `[question, option]`
    places = np.arange(int(options.max()))
    counts = (sheets.answer[:, :, None] == places).sum(axis=0) + 1.0
    exists = places < options[:, None]
    shares = np.where(
        exists,
        counts / (counts * exists).sum(axis=1, keepdims=True),
        1e-6,
    )
    return OutputHeads(options, ordinal, shares)


_THREAD_LIMIT_LOCK = Lock()
_THREAD_COUNTS_BEFORE_LIMIT: dict[int, int] = {}
"""By thread inside `limit_torch_to_one_thread`, what it goes back to: PyTorch's number and this are the process's."""


@contextmanager
def limit_torch_to_one_thread() -> Iterator[None]:
    """Limit PyTorch to one thread in this context, also if several overlap.

    Products of matrices as small as these are done before a second thread has begun. Where others
    work on the same cores, waiting for it in every one of thousands of products made training ten
    times as long.
    """
    me = get_ident()
    if me in _THREAD_COUNTS_BEFORE_LIMIT:
        yield
        return

    with _THREAD_LIMIT_LOCK:
        # A thread that is new to PyTorch takes the number that was set last: by one that is inside
        # now, that is 1.
        _THREAD_COUNTS_BEFORE_LIMIT[me] = max(
            [torch.get_num_threads(), *_THREAD_COUNTS_BEFORE_LIMIT.values()]
        )
        torch.set_num_threads(1)

    try:
        yield
    finally:
        with _THREAD_LIMIT_LOCK:
            torch.set_num_threads(_THREAD_COUNTS_BEFORE_LIMIT.pop(me))


@limit_torch_to_one_thread()
def train_network_weights(
    weights: Weights,
    lesson: TrainingData,
    plan: TrainingConfig,
    seed: int,
) -> Weights:
    """Train weights as the plan says; return new weights."""
    # single precision; the anchor is what deltas are shrunk to
    random = torch.Generator().manual_seed(seed)
    single = {}
    for name in LEARNED_WEIGHT_NAMES:
        single[name] = torch.tensor(getattr(weights, name), dtype=torch.float32)

    anchor = {name: value.clone() for name, value in single.items()}
    for name in LEARNED_WEIGHT_NAMES:
        single[name].requires_grad_(single[name].numel() > 0)

    step = _make_negative_log_posterior(lesson, weights, anchor, plan)
    moving = []
    for value in single.values():
        if value.requires_grad:
            moving.append(value)

    adam = torch.optim.Adam(moving, lr=plan.rate, foreach=True)
    for number in range(plan.steps):
        # the rate falls along half a cosine
        progress = float(np.cos(np.pi * number / plan.steps))
        adam.param_groups[0]["lr"] = plan.rate * 0.5 * (1 + progress)
        adam.zero_grad()
        torch.autograd.backward(step(single, random))
        adam.step()

    learned = {}
    for name, value in single.items():
        learned[name] = value.detach().double().numpy()

    return replace(weights, **learned)


def _make_negative_log_posterior(
    lesson: TrainingData,
    weights: Weights,
    anchor: dict[str, Tensor],
    plan: TrainingConfig,
) -> Callable[[dict[str, Tensor], torch.Generator], Tensor]:
    """Make the negative log posterior a function of the weights, averaged over sheets."""
    # everything is laid out in slots `[slot, place, …]` once
    judges = max(weights.W1a.shape[1], weights.Va.shape[1])
    slots = assign_answer_sheets_to_judge_slots(lesson.sheets.judge, judges)
    inputs = torch.tensor(lesson.inputs, dtype=torch.float32)[slots.sheet]
    answers = torch.from_numpy(lesson.sheets.answer)[slots.sheet]
    answers = torch.where(slots.filled[..., None], answers, UNANSWERED_CODE)
    if plan.dropout:
        thin = _make_question_dropout_function(lesson, plan.dropout)
    else:
        thin = None

    seeds = len(weights.V)
    count = len(lesson.sheets)

    def objective(single: dict[str, Tensor], random: torch.Generator) -> Tensor:
        thinned = inputs.expand(seeds, *inputs.shape)
        if thin is not None:
            thinned = thin(inputs, seeds, random)

        logs = compute_log_likelihood_of_answers(
            single,
            thinned,
            answers,
            slots.judge,
            weights,
        )
        return (compute_weight_penalty(single, anchor, plan) - logs) / count

    return objective


def _make_question_dropout_function(
    lesson: TrainingData, dropout: float
) -> Callable[[Tensor, int, torch.Generator], Tensor]:
    """Make a function that hides whole questions: probability 0, mask 1."""
    columns = len(lesson.blocks)
    question_count = int(lesson.blocks.max(initial=-1)) + 1
    width = lesson.inputs.shape[1]
    # which columns a hidden question takes, and which it marks as missing `[question, input]`
    takes = torch.zeros((question_count, width))
    marks = torch.zeros((question_count, width))
    takes[torch.from_numpy(lesson.blocks), torch.arange(columns)] = 1.0
    marks[torch.arange(question_count), columns + torch.arange(question_count)] = 1.0
    both = takes + marks

    def thin(inputs: Tensor, seeds: int, random: torch.Generator) -> Tensor:
        # each sheet is thinned with chance `dropout`, by a share that is drawn for it
        shape = (seeds, *inputs.shape[:2])
        chance = torch.rand((*shape, 1), generator=random)
        chance *= torch.rand((*shape, 1), generator=random) < dropout
        hidden = (torch.rand((*shape, question_count), generator=random) < chance).to(inputs.dtype)
        return inputs * (1 - hidden @ both) + hidden @ marks

    return thin


def compute_log_likelihood_of_answers(
    single: dict[str, Tensor],
    inputs: Tensor,
    answers: Tensor,
    judge: Tensor,
    like: Weights,
) -> Tensor:
    """Compute Σ log p̂ of the answers, over seeds, sheets and questions; equations 3–5.

    Args:
        single: Weights by name.
        inputs: `[seed, slot, place, input + 1]`.
        answers: `[slot, place, question]`, −1: none.
        judge: `[slot]`.
        like: Has the heads' kinds.
    """
    # outputs of the heads `[seed, slot, place, question, output]`
    z1 = torch.sigmoid(_apply_layer_with_judge_deltas(inputs, single["W1"], single["W1a"], judge))
    z2 = torch.sigmoid(
        _apply_layer_with_judge_deltas(
            _append_bias_column(z1),
            single["W2"],
            single["W2a"],
            judge,
        )
    )
    outputs = _apply_layer_with_judge_deltas(
        _append_bias_column(z2), single["V"], single["Va"], judge
    )
    outputs = outputs.reshape(*outputs.shape[:3], len(like.options), -1)
    logs = torch.zeros((), dtype=outputs.dtype)
    # questions of one kind together
    for ordinal in (False, True):
        chosen = torch.from_numpy(np.flatnonzero(like.ordinal == ordinal))
        if len(chosen):
            link = (
                _compute_cumulative_link_log_probabilities
                if ordinal
                else _compute_softmax_log_probabilities
            )
            chosen_answers = answers[:, :, chosen]
            log_probabilities = link(
                outputs[:, :, :, chosen],
                single["cuts"][:, chosen],
                torch.from_numpy(like.options)[chosen],
            )
            # the log-probability of the answer; a missing answer picks any, and counts 0
            places = chosen_answers.clamp(min=0).expand(
                len(outputs),
                *chosen_answers.shape,
            )
            picked = log_probabilities.gather(-1, places[..., None])[..., 0]
            logs = logs + (picked * (chosen_answers >= 0)).sum()

    return logs


def _apply_layer_with_judge_deltas(
    inputs: Tensor,
    W: Tensor,
    Wa: Tensor,
    judge: Tensor,
) -> Tensor:
    """Multiply inputs by the shared weights and the judges' deltas, if any."""
    seeds, slots, places, width = inputs.shape
    if not Wa.shape[1]:
        return (inputs.reshape(seeds, slots * places, width) @ W).reshape(
            seeds,
            slots,
            places,
            -1,
        )

    # judge codes beyond the last are nobody, whose deltas are 0
    nobody = torch.zeros_like(Wa[:, :1])
    weights = W[:, None] + torch.cat([Wa, nobody], dim=1).index_select(1, judge)
    return inputs @ weights


def _append_bias_column(z: Tensor) -> Tensor:
    return torch.cat([z, torch.ones_like(z[..., :1])], dim=-1)


def _compute_softmax_log_probabilities(outputs: Tensor, cuts: Tensor, options: Tensor) -> Tensor:
    """Compute log-probabilities `[…, question, option]`; missing options get none."""
    del cuts
    if int(options.min()) < outputs.shape[-1]:
        exists = torch.arange(outputs.shape[-1]) < options[:, None]
        outputs = outputs.masked_fill(~exists, -torch.inf)
    # Along the first axis it is done for many rows at once; along a last axis of four, one by one.
    return torch.log_softmax(outputs.movedim(-1, 0).contiguous(), dim=0).movedim(0, -1)


def _compute_cumulative_link_log_probabilities(
    outputs: Tensor, cuts: Tensor, options: Tensor
) -> Tensor:
    """Compute log-probabilities of cumulative-link heads; see `weights`."""
    # bounds of the answers `[…, question, option − 1]`, stretched by the judge's scale
    cuts = cuts[:, None, None]
    bounds = (cuts - outputs[..., :1]) * outputs[..., 1:2].clamp(
        -MAX_LOG_SCALE, MAX_LOG_SCALE
    ).exp()
    real = torch.arange(cuts.shape[-1]) < options[:, None] - 1
    # A bound beyond all others stands for infinity, whose differences would have no slope.
    bounds = bounds.masked_fill(~real, 1e4)
    ends = torch.full_like(bounds[..., :1], 1e4)
    upper = torch.cat([bounds, ends], -1)
    lower = torch.cat([-ends, bounds], -1)
    gap = (upper - lower).clamp(min=1e-6)

    return logsigmoid(upper) + logsigmoid(-lower) + torch.log(-torch.expm1(-gap))


def compute_weight_penalty(
    single: dict[str, Tensor],
    anchor: dict[str, Tensor],
    plan: TrainingConfig,
) -> Tensor:
    """Compute the penalty on shared weights and deltas, over the seeds."""
    # biases of the shared weights are free
    shared = []
    for name in ("W1", "W2", "V"):
        shared.append((single[name][:, :-1] ** 2).sum())

    deltas = []
    for name in ("W1a", "W2a", "Va"):
        deltas.append(((single[name] - anchor[name]) ** 2).sum())

    decay = 0.5 * plan.decay * torch.stack(shared).sum()
    return decay + 0.5 * plan.shrinkage * torch.stack(deltas).sum()
