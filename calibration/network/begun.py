"""Training of networks that begin as another model, and are shrunk to it.

The logits are the logarithms of that model's probabilities plus the network's heads, which begin at
0: before the first step the network is that model, exactly. What labels add is shrunk by λ, the
precision of the prior on the heads.

λ is chosen by cross-validation. All networks of all λ are trained at once, each without one fold,
which judges it; those of the λ taken stay, and their probabilities are averaged. Source: Krogh and
Vedelsby 1995, "Neural network ensembles, cross validation, and active learning", NIPS 7.

Training goes on in other units than predicting, so that penalties mean the same for any log:
answers enter by their expected value, and by each option with a fifth of the weight; what comes out
of the second layer has deviation 1/2.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.optim.adam import adam

from pollex.calibration.judgments import UNANSWERED_CODE, UNKNOWN_JUDGE_CODE, AnswerMatrix
from pollex.calibration.network.training import limit_torch_to_one_thread
from pollex.calibration.network.weights import Weights
from pollex.calibration.questionnaire import Questionnaire
from pollex.measures.arrays import Floats, Ints

TRAINING_STEPS = 120
LEARNING_RATE = 0.03
SINGLE_OPTION_LOSS_WEIGHT = 0.2
"""Weight of a single option beside the expected value: people's scales are steady, single options are noise."""

ALL_INPUTS_DEVIATION, INITIAL_WEIGHT_DEVIATION = 1.56, 0.82
"""Standard deviation of all inputs together, and of the first layer's weights: units begin where they bend a little."""

HIDDEN_LAYER_PENALTY = 2.0
"""Penalty on what the hidden layers move by. Chosen like the two before, and the number of units, in a world with a
planted interaction: with a half of it 2,000 labels are learned by heart, with twice as much it is
found late."""

MIN_INPUT_DEVIATION = 1e-3

STRONG_EVIDENCE_NATS = 3.0
"""Nats of log-likelihood that a weaker λ has to be better by: odds of 20 to 1. By a standard error instead, the weakest
of three was often taken by luck on some hundred labels. Sources: Geisser and Eddy 1979,
doi:10.1080/01621459.1979.10481632, for odds by what was left out; Kass and Raftery 1995,
doi:10.1080/01621459.1995.10476572, for what is strong."""


@dataclass(frozen=True, eq=False)
class StackData:
    """What the networks learn from.

    Attributes:
        inputs: As `CalibrationNetwork.inputs` has them `[sheet, input + 1]`.
        sheets: Answers to the questions that are learned.
        begins: Log-probabilities by the model without each fold `[fold, sheet, question, option]`.
        fold: Of each sheet `[sheet]`.
        options: How many each question has `[question]`.
        main: Place of the main question.
        judges: How many have deltas in the heads.
    """

    inputs: Floats
    sheets: AnswerMatrix
    begins: Floats
    fold: Ints
    options: Ints
    main: int
    judges: int


@limit_torch_to_one_thread()
def train_networks_choosing_penalty(
    lesson: StackData,
    questions: Questionnaire,
    shape: tuple[int, int],
    strengths: tuple[float, ...],
    seeds: int,
    seed: int,
) -> tuple[Weights, Weights, float]:
    """Train `seeds` networks for each strength λ; return those of one after all questions, after the main one, and λ.

    Args:
        shape: Units of both layers.
    """
    # all λ and seeds side by side, in coordinates of their own
    stack = _NetworkStack(
        lesson,
        _make_input_coordinate_basis(questions, lesson.inputs),
        shape,
        strengths,
        seeds,
        seed,
    )
    every = tuple(range(len(lesson.options)))
    if len(every) > 1:
        stack.learn(every)
        stack.anchor()

    # the networks after all questions, then after the main one
    general = stack.weights()
    stack.learn((lesson.main,))
    best = _choose_penalty_strength(stack.losses(), strengths)
    networks = slice(best * seeds, (best + 1) * seeds)
    tuned = _take_weights_of_networks(stack.weights(), networks).only(lesson.main)

    return _take_weights_of_networks(general, networks), tuned, strengths[best]


def _choose_penalty_strength(losses: Floats, strengths: tuple[float, ...]) -> int:
    """Place of the strongest λ against which there is no strong evidence in what was left out `[λ, sheet]`."""
    behind = losses.sum(axis=1) - losses.sum(axis=1).min()
    return max(np.flatnonzero(behind <= STRONG_EVIDENCE_NATS).tolist(), key=strengths.__getitem__)


def _take_weights_of_networks(weights: Weights, networks: slice) -> Weights:
    shared = ("options", "ordinal")
    arrays = {}
    for name, array in weights.arrays().items():
        arrays[name] = array if name in shared else array[networks].copy()

    return Weights(**arrays)


def _make_input_coordinate_basis(questions: Questionnaire, inputs: Floats) -> Floats:
    """Return the coordinates in which training goes on, as a linear map `[input, coordinate]`."""
    width = inputs.shape[1] - 1
    question_count = len(questions.asked)
    values = np.zeros((width, question_count))
    blocks = questions.blocks.values()
    for place, (scale, block) in enumerate(zip(questions.asked, blocks, strict=True)):
        worth = np.array(scale.values) / np.ptp(scale.values)
        shares = inputs[:, block]
        # Around the mean: what is missing or never came up, all zeros, then stands at it.
        values[block, place] = worth - (shares @ worth).sum() / max(
            shares.sum(), MIN_INPUT_DEVIATION
        )

    basis = np.concatenate([values, SINGLE_OPTION_LOSS_WEIGHT * np.eye(width)], axis=1)

    # all expected values together get the standard deviation of all inputs
    spread = float(np.sqrt((inputs[:, :-1] @ values).var(axis=0).sum()))
    factor = ALL_INPUTS_DEVIATION / spread if spread > MIN_INPUT_DEVIATION else 1.0
    return basis * factor


class _NetworkStack:
    """Networks of all λ and seeds, side by side; those of one λ are together, and begin as those of the others."""

    def __init__(
        self,
        lesson: StackData,
        basis: Floats,
        shape: tuple[int, int],
        strengths: tuple[float, ...],
        seeds: int,
        seed: int,
    ) -> None:
        self.lesson = lesson
        self.basis = basis
        self.strengths = strengths
        self.seeds = seeds
        # inputs in the training's coordinates, around their mean `[sheet, coordinate]`
        self.middle = lesson.inputs[:, :-1].mean(axis=0)
        self.X = _to_single_precision((lesson.inputs[:, :-1] - self.middle) @ basis)
        # networks of the same seed leave out the same fold, whatever their λ
        self.count = seeds * len(strengths)
        fold_of_network = np.arange(self.count) % seeds % len(lesson.begins)
        self.begins = _to_single_precision(lesson.begins)[torch.from_numpy(fold_of_network)]
        self.inside = torch.from_numpy(lesson.fold[None] != fold_of_network[:, None])
        if len(lesson.begins) == 1:  # nothing to leave out
            self.inside[:] = True

        # nobody known has the code after the last judge
        self.judge = torch.from_numpy(
            np.where(
                lesson.sheets.judge == UNKNOWN_JUDGE_CODE,
                lesson.judges,
                lesson.sheets.judge,
            )
        )
        # which options each question has `[question, option]`
        self.answer = torch.from_numpy(lesson.sheets.answer)
        exists = np.arange(lesson.begins.shape[3]) < lesson.options[:, None]
        self.exists = torch.from_numpy(exists)
        self._begin(shape, seed, basis.shape[1] - basis.shape[0])

    def _begin(self, shape: tuple[int, int], seed: int, leading: int) -> None:
        random = torch.Generator().manual_seed(seed)
        h1, h2 = shape
        width = self.basis.shape[1]
        heads = self.exists.numel()

        def drawn(*size: int) -> Tensor:
            return torch.randn((self.seeds, *size), generator=random).repeat(
                len(self.strengths),
                *(1 for _ in size),
            )

        # units bend by the expected values; the single options' weights begin at 0
        W1 = torch.zeros((self.count, width, h1))
        W1[:, :leading] = INITIAL_WEIGHT_DEVIATION * drawn(leading, h1)
        self.P = {
            "W1": W1, "b1": 0.5 * drawn(1, h1), "W2": 2 * (2 / h1) ** 0.5 * drawn(h1, h2), "b2": 0.5 * drawn(1, h2),
            "V": torch.zeros((self.count, h2 + 1, heads)),
            "Va": torch.zeros((self.count, self.lesson.judges, h2 + 1, heads)),
        }  # fmt: skip
        self.offset = torch.zeros((self.count, 1, h2))
        self.spread = torch.ones((self.count, 1, h2))

        # outputs of the second layer are standardized over the sheets, once
        with torch.no_grad():
            z2 = self._hidden()
            spread = z2.std(dim=1, keepdim=True, correction=0)
            self.offset = z2.mean(dim=1, keepdim=True)
            self.spread = torch.where(spread > MIN_INPUT_DEVIATION, 2 * spread, 1.0)

        self.anchor()

    def anchor(self) -> None:
        """Hold the hidden layers to where they are now."""
        self.anchors = {name: self.P[name].detach().clone() for name in ("W1", "W2")}

    def learn(self, questions: tuple[int, ...]) -> None:
        """Take the steps of Adam on the answers to these questions."""
        # Adam's memory begins anew with each phase
        moving = []
        for value in self.P.values():
            if value.numel():
                moving.append(value.requires_grad_())

        means, squares = ([torch.zeros_like(value) for value in moving] for _ in range(2))
        step_counts = [torch.zeros(()) for _ in moving]
        for number in range(TRAINING_STEPS):
            slopes = list(torch.autograd.grad(self._objective(questions), moving))
            # not the class of the optimizer, which loads a compiler and makes a folder for it
            with torch.no_grad():
                cosine = float(np.cos(np.pi * number / TRAINING_STEPS))
                adam(
                    moving, slopes, means, squares, [], step_counts, fused=True, amsgrad=False, beta1=0.9, beta2=0.999,
                    lr=LEARNING_RATE * 0.5 * (1 + cosine), weight_decay=0.0, eps=1e-8, maximize=False,
                )  # fmt: skip

    def _objective(self, questions: tuple[int, ...]) -> Tensor:
        # minus the log-likelihood of the sheets that a network may see, and its penalties
        sheet_counts = self.inside.sum(dim=1).clamp(min=1)
        fits = torch.zeros(self.count)
        for question in questions:
            fits = fits - (self._logs(question) * self.inside).sum(dim=1)

        strength = torch.tensor(
            np.repeat(self.strengths, self.seeds),
            dtype=torch.float32,
        )
        heads = _sum_squares(self.P["V"]) + _sum_squares(self.P["Va"])
        moved = sum(_sum_squares(self.P[name] - there) for name, there in self.anchors.items())
        return ((fits + strength * heads + HIDDEN_LAYER_PENALTY * moved) / sheet_counts).sum()

    def _logs(self, question: int) -> Tensor:
        # of the option that was answered
        """Log-probability of each sheet's answer, 0 where there is none `[network, sheet]`."""
        answer = self.answer[:, question]
        logs = torch.log_softmax(self.logits(question), dim=-1)
        place = answer.clamp(min=0)[None, :, None].expand(self.count, -1, 1)
        return logs.gather(-1, place)[..., 0] * (answer != UNANSWERED_CODE)

    def _hidden(self) -> Tensor:
        # both layers, standardized `[network, sheet, h2]`
        P = self.P
        z1 = (self.X @ P["W1"].permute(1, 0, 2).reshape(self.X.shape[1], -1)).view(
            len(self.X),
            self.count,
            -1,
        )
        z1 = torch.sigmoid(z1.permute(1, 0, 2) + P["b1"])
        return (torch.sigmoid((z1 - 0.5) @ P["W2"] + P["b2"]) - self.offset) / self.spread

    def logits(self, question: int) -> Tensor:
        """Return the outputs of a head `[network, sheet, option]`."""
        # columns of this question's head
        width = self.exists.shape[1]
        columns = slice(question * width, (question + 1) * width)
        u = self._hidden()
        u = torch.cat([u, torch.ones_like(u[..., :1])], dim=-1)
        out = self.begins[:, :, question] + u @ self.P["V"][..., columns]
        if self.lesson.judges:
            deltas = self.P["Va"][..., columns]
            deltas = torch.cat([deltas, torch.zeros_like(deltas[:, :1])], dim=1).index_select(
                1,
                self.judge,
            )
            out = out + torch.einsum("snh,snho->sno", u, deltas)

        masked: Tensor = out.masked_fill(~self.exists[question], -torch.inf)
        return masked

    def losses(self) -> Floats:
        """Log-loss of the main question by λ, each sheet by the networks that left it out `[λ, sheet]`."""
        # log-probabilities `[λ, seed, sheet]`
        with torch.no_grad():
            logs = self._logs(self.lesson.main).double().numpy()

        logs = logs.reshape(len(self.strengths), self.seeds, -1)
        # sheets with an answer that some network has left out
        out = ~self.inside.numpy().reshape(logs.shape)
        left_out = (
            out.any(axis=(0, 1)) & (self.answer[:, self.lesson.main] != UNANSWERED_CODE).numpy()
        )
        if not left_out.any():  # nothing was left out: as near to where it began as can be
            return np.zeros((len(self.strengths), 1))

        # probabilities are averaged over the networks that left the sheet out
        mean = (np.exp(logs) * out).sum(axis=1)[:, left_out] / out.sum(axis=1)[:, left_out]
        return np.asarray(-np.log(np.maximum(mean, 1e-12)))

    def weights(self) -> Weights:
        """Return the networks in the paper's form, for `Weights.proba`."""
        # back from the training's coordinates to the inputs', and from z − 1/2 to z
        P = {}
        for name, value in self.P.items():
            P[name] = value.detach().double().numpy()

        offset = self.offset.double().numpy()
        spread = self.spread.double().numpy()
        W1 = self.basis @ P["W1"]
        b1 = P["b1"] - (self.middle @ W1)[:, None]
        b2 = P["b2"] - 0.5 * P["W2"].sum(axis=1, keepdims=True)

        # the heads take up the standardization of the second layer
        def head(V: Floats) -> Floats:
            inner = V[..., :-1, :] / spread.reshape(self.count, *(1,) * (V.ndim - 3), -1, 1)
            at = offset.reshape(self.count, *(1,) * (V.ndim - 3), -1, 1)
            return np.concatenate(
                [inner, V[..., -1:, :] - (at * inner).sum(axis=-2, keepdims=True)],
                axis=-2,
            )

        questions = len(self.lesson.options)
        return Weights(
            W1=np.concatenate([W1, b1], axis=1),
            W2=np.concatenate([P["W2"], b2], axis=1),
            V=head(P["V"]),
            W1a=np.zeros((self.count, 0, *W1.shape[1:])),
            W2a=np.zeros((self.count, 0, *P["W2"].shape[1:])),
            Va=head(P["Va"]),
            cuts=np.zeros((self.count, questions, self.exists.shape[1] - 1)),
            options=self.lesson.options,
            ordinal=np.zeros(questions, dtype=bool),
        )


def _sum_squares(values: Tensor) -> Tensor:
    return (values**2).flatten(1).sum(dim=1)


def _to_single_precision(values: Floats) -> Tensor:
    return torch.tensor(values, dtype=torch.float32)
