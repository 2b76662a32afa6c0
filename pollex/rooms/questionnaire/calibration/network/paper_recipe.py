"""The training recipe of LLM-Rubric's authors, one network at a time.

Weights and deltas are all drawn from N(0, 1). A phase takes `epochs · ⌊size / batch⌋` steps on
batches drawn with replacement, and begins with the same seed as the other, so that both see the
same batches. A missing answer counts as 0 in the mean. Adam's memory goes on from the first phase
to the second.

Saturated units make training in single precision depend on the order of every sum: 1 − σ has no
digits left there, and Adam makes whole steps of what is rounding. So this does the same operations
as they do.

Source: Hashemi et al. 2024, doi:10.18653/v1/2024.acl-long.745, and the code that they released with
    it.
"""

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from pollex.calibration.judgments import UNANSWERED_CODE, UNKNOWN_JUDGE_CODE, AnswerMatrix
from pollex.calibration.models.network import CalibrationNetwork
from pollex.calibration.network.weights import Weights, concatenate_seeds
from pollex.errors import WrongUse
from pollex.measures.arrays import Floats, Ints


def draw_initial_weights(
    shape: tuple[int, int, int],
    heads: tuple[int, int],
    judges: int,
    seed: int,
) -> dict[str, Tensor]:
    """Draw the initial weights of one network by name, in the authors' order.

    Args:
        shape: Inputs without the bias, h1, h2.
        heads: Questions, options.
        judges: With deltas of their own.
        seed: Of the generator.

    Returns:
        W1 `[input + 1, h1]`, W2, V `[question, h2 + 1, option]`, and W1a, W2a, Va with an axis of
        judges before these.
    """
    inputs, h1, h2 = shape
    questions, options = heads
    sizes = {
        "W1": (inputs + 1, h1),
        "W2": (h1 + 1, h2),
        "V": (questions, h2 + 1, options),
    }
    random = torch.Generator().manual_seed(seed)
    # in the order in which their code draws them
    weights = {}
    for name, size in sizes.items():
        weights[name] = torch.randn(size, generator=random)
        weights[f"{name}a"] = torch.randn((judges, *size), generator=random)

    return weights


def draw_batches(
    sheets: int,
    size: int,
    steps: int,
    seed: int,
) -> Ints:
    """Draw the numbers of the sheets of each step `[step, sheet]`.

    Args:
        sheets: How many there are.
        size: Of a batch.
        steps: How many batches.
        seed: Of the generator that the authors use, NumPy's old one.
    """
    drawn: Ints = np.random.RandomState(seed).choice(sheets, size=(steps, size))
    return drawn


class OneNetwork(torch.nn.Module):
    """Equations 3–5, with each sheet's own sum of shared weights and deltas."""

    def __init__(self, weights: dict[str, Tensor]) -> None:
        super().__init__()
        self.of = torch.nn.ParameterDict(
            {name: torch.nn.Parameter(value.clone()) for name, value in weights.items()}
        )

    def forward(self, inputs: Tensor, judges: Tensor) -> Tensor:
        """Compute logits `[sheet, question, option]` of inputs `[sheet, input + 1]`, bias last."""
        z1 = torch.sigmoid(
            torch.einsum(
                "si,sih->sh",
                inputs,
                self._summed("W1", judges),
            )
        )
        z2 = torch.sigmoid(
            torch.einsum(
                "si,sih->sh",
                _append_bias(z1),
                self._summed("W2", judges),
            )
        )
        return torch.einsum(
            "si,sqio->sqo",
            _append_bias(z2),
            self._summed("V", judges),
        )

    def _summed(self, name: str, judges: Tensor) -> Tensor:
        total: Tensor = self.of[name] + self.of[f"{name}a"][judges]
        return total


def _append_bias(z: Tensor) -> Tensor:
    return torch.cat([z, z.new_ones((len(z), 1))], dim=1)


def train_by_paper(network: CalibrationNetwork, inputs: Floats, sheets: AnswerMatrix) -> Weights:
    """Return the weights that answer all questions.

    Of the network's settings the authors know h1, h2, batch, rate, the two phases (in epochs), and
    the seed.

    Args:
        inputs: Of the first layer `[sheet, column]`.

    Raises:
        WrongUse: Somebody unknown has answered.
    """
    if strangers := int((sheets.judge == UNKNOWN_JUDGE_CODE).sum()):
        raise WrongUse(
            f"the authors' recipe has no place for answers by nobody known, and there are {strangers} such sheets",
            hint="name their judges, or use the recipe `shrunk`",
        )

    # they number judges as they first come in the data
    _, first, code = np.unique(
        sheets.judge,
        return_index=True,
        return_inverse=True,
    )
    order = np.argsort(np.argsort(first))
    numbered = AnswerMatrix(sheets.row, order[code], sheets.answer)
    settings = {}
    for name in ("h1", "h2", "batch", "rate", "pretraining", "finetuning"):
        settings[name] = getattr(network, name)

    # one network after another, each with the next seed
    networks = []
    for number in range(network.seeds):
        networks.append(
            train_in_two_phases(
                inputs,
                numbered,
                network.learned_options(),
                network.main_place(),
                network.seed + number,
                **settings,
            )
        )

    return concatenate_seeds([weights.with_judges(order) for weights in networks])


def train_in_two_phases(
    inputs: Floats, sheets: AnswerMatrix, options: Ints, main: int, seed: int, *,
    h1: int, h2: int, batch: int, rate: float, pretraining: int, finetuning: int,
) -> Weights:  # fmt: skip
    """Train one network in both phases.

    Args:
        inputs: `[sheet, input + 1]`, bias last.
        sheets: Every judge known, numbered without gaps.
        options: How many each question has `[question]`.
        main: Place of the main question.
        seed: Of weights and batches.
        h1: Units of the first layer.
        h2: Units of the second layer.
        batch: Sheets of a step.
        rate: Adam's rate.
        pretraining: Epochs on all questions.
        finetuning: Epochs on the main one.

    Raises:
        WrongUse: There are fewer sheets than a batch has, so that an epoch has no step.
    """
    if len(sheets) < batch:
        raise WrongUse(
            f"{len(sheets)} filled-in sheets are less than a batch of {batch}",
            hint="take smaller batches, such as batch=32",
        )

    # single precision and one sheet after another, as they have it
    heads = len(options), int(options.max())
    network = OneNetwork(
        draw_initial_weights(
            (inputs.shape[1] - 1, h1, h2),
            heads,
            int(sheets.judge.max()) + 1,
            seed,
        )
    )
    adam = torch.optim.Adam(network.parameters(), lr=rate)
    x = torch.from_numpy(inputs).float()
    judge = torch.from_numpy(sheets.judge)
    answer = torch.from_numpy(sheets.answer)
    steps_an_epoch = len(sheets) // batch
    for epochs, questions in ((pretraining, list(range(len(options)))), (finetuning, [main])):
        # both phases begin with the same seed, and so see the same batches
        drawn = draw_batches(len(sheets), batch, epochs * steps_an_epoch, seed)
        for rows in torch.from_numpy(drawn):
            logits = network(x[rows], judge[rows]).permute(0, 2, 1)[:, :, questions]
            answers = answer[rows][:, questions]
            losses = cross_entropy(
                logits,
                answers,
                ignore_index=UNANSWERED_CODE,
                reduction="none",
            )
            adam.zero_grad()
            torch.autograd.backward(losses.mean())
            adam.step()

    weights = {}
    for name, value in network.of.items():
        weights[name] = value.detach().double()

    # heads side by side
    weights |= {name: torch.cat(weights[name].unbind(-3), dim=-1) for name in ("V", "Va")}
    cuts = np.zeros((1, len(options), heads[1] - 1))
    arrays = {}
    for name, value in weights.items():
        arrays[name] = value.numpy()[None]

    return Weights(
        **arrays,
        cuts=cuts,
        options=options,
        ordinal=np.zeros(len(options), dtype=bool),
    )
