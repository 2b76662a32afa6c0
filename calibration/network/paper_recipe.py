"""The training recipe of LLM-Rubric's authors, one network at a time.

Weights and deltas are all drawn from N(0, 1). A phase takes `epochs · ⌊size / batch⌋` steps on batches drawn with
replacement, and begins with the same seed as the other, so that both see the same batches. A missing answer counts as 0
in the mean. Adam's memory goes on from the first phase to the second.

Saturated units make training in single precision depend on the order of every sum (see `layout.table_of`). So what is
to give the authors' own numbers does the same operations as they do; `sweep` trains many networks at once, in double.

Source: Hashemi et al. 2024, doi:10.18653/v1/2024.acl-long.745, and the code that they released with it.
"""

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from pollex.calibration.judgments import UNANSWERED, AnswerMatrix
from pollex.calibration.network.batched import flat
from pollex.calibration.network.weights import Weights
from pollex.errors import WrongUse
from pollex.measures.arrays import Floats, Ints


@dataclass(frozen=True)
class Settings:
    """Settings of one network.

    Attributes:
        h1: Units of the first layer.
        h2: Units of the second layer.
        batch: Sheets of a step.
        rate: Adam's rate.
        pretraining: Epochs on all questions.
        finetuning: Epochs on the main one.
        seed: Seed of weights and batches.
        epoch: Number of sheets in an epoch; in cross-validation the authors count those held out, too.
    """

    h1: int
    h2: int
    batch: int
    rate: float
    pretraining: int
    finetuning: int
    seed: int
    epoch: int


def initial_weights(shape: tuple[int, int, int], heads: tuple[int, int], judges: int, seed: int) -> dict[str, Tensor]:
    """Draw the initial weights of one network by name, in the authors' order.

    Args:
        shape: Inputs without the bias, h1, h2.
        heads: Questions, options.
        judges: With deltas of their own.
        seed: Of the generator.

    Returns:
        W1 `[input + 1, h1]`, W2, V `[question, h2 + 1, option]`, and W1a, W2a, Va with an axis of judges before these.
    """
    inputs, h1, h2 = shape
    questions, options = heads
    sizes = {"W1": (inputs + 1, h1), "W2": (h1 + 1, h2), "V": (questions, h2 + 1, options)}
    random = torch.Generator().manual_seed(seed)
    found = {}
    for name, size in sizes.items():
        found[name] = torch.randn(size, generator=random)
        found[f"{name}a"] = torch.randn((judges, *size), generator=random)
    return found


def batches(rows: Ints, size: int, steps: int, seed: int) -> Ints:
    """Draw the numbers of the sheets of each step `[step, sheet]`.

    Args:
        rows: To draw from.
        size: Of a batch.
        steps: How many batches.
        seed: Of the generator that the authors use, NumPy's old one.
    """
    found: Ints = rows[np.random.RandomState(seed).choice(len(rows), size=(steps, size))]
    return found


class OneNetwork(torch.nn.Module):
    """Equations 3–5, with each sheet's own sum of shared weights and deltas."""

    def __init__(self, weights: dict[str, Tensor]) -> None:
        super().__init__()
        self.of = torch.nn.ParameterDict({name: torch.nn.Parameter(value.clone()) for name, value in weights.items()})

    def forward(self, inputs: Tensor, judges: Tensor) -> Tensor:
        """Compute logits `[sheet, question, option]` of inputs `[sheet, input + 1]`, bias last."""
        z1 = torch.sigmoid(torch.einsum("si,sih->sh", inputs, self._summed("W1", judges)))
        z2 = torch.sigmoid(torch.einsum("si,sih->sh", _with_bias(z1), self._summed("W2", judges)))
        return torch.einsum("si,sqio->sqo", _with_bias(z2), self._summed("V", judges))

    def _summed(self, name: str, judges: Tensor) -> Tensor:
        total: Tensor = self.of[name] + self.of[f"{name}a"][judges]
        return total


def _with_bias(z: Tensor) -> Tensor:
    return torch.cat([z, z.new_ones((len(z), 1))], dim=1)


def fitted(
    inputs: Floats, sheets: AnswerMatrix, train: Ints, judges: int, options: int, main: int, settings: Settings,
    dtype: torch.dtype = torch.float32,
) -> OneNetwork:  # fmt: skip
    """Train one network in both phases.

    Args:
        inputs: `[sheet, input + 1]`, bias last.
        sheets: All; every judge known.
        train: Numbers of those to learn from.
        judges: How many.
        options: Of the question with most.
        main: Place of the main question among the sheets'.
        settings: Of the network.
        dtype: To compute in; the first weights are drawn in single precision all the same.
    """
    count = sheets.answer.shape[1]
    first = initial_weights((inputs.shape[1] - 1, settings.h1, settings.h2), (count, options), judges, settings.seed)
    network = OneNetwork(first).to(dtype)
    adam = torch.optim.Adam(network.parameters(), lr=settings.rate)
    data = torch.from_numpy(inputs).to(dtype), torch.from_numpy(sheets.judge), torch.from_numpy(sheets.answer)
    for epochs, questions in ((settings.pretraining, list(range(count))), (settings.finetuning, [main])):
        steps = epochs * (settings.epoch // settings.batch)
        for rows in torch.from_numpy(batches(train, settings.batch, steps, settings.seed)):
            x, judge, answer = (array[rows] for array in data)
            logits = network(x, judge).permute(0, 2, 1)[:, :, questions]
            losses = cross_entropy(logits, answer[:, questions], ignore_index=UNANSWERED, reduction="none")
            adam.zero_grad()
            torch.autograd.backward(losses.mean())
            adam.step()
    return network


def several(
    inputs: Floats, sheets: AnswerMatrix, options: Ints, main: int, settings: Settings, seeds: int
) -> list[Weights]:
    """Train networks with consecutive seeds on all sheets, and return their weights.

    Args:
        inputs: `[sheet, input + 1]`, bias last.
        sheets: Every judge known, numbered without gaps.
        options: How many each question has `[question]`.
        main: Place of the main question.
        settings: Of the first.
        seeds: How many.

    Raises:
        WrongUse: There are fewer sheets than a batch has, so that an epoch has no step.
    """
    if settings.epoch < settings.batch:
        raise WrongUse(
            f"{settings.epoch} filled-in sheets are less than a batch of {settings.batch}",
            remedy="take smaller batches, such as batch=32",
        )
    judges, most = int(sheets.judge.max()) + 1, int(options.max())
    every = np.arange(len(sheets))
    each = [replace(settings, seed=settings.seed + number) for number in range(seeds)]
    return [_weights(fitted(inputs, sheets, every, judges, most, main, one), options) for one in each]


def _weights(network: OneNetwork, options: Ints) -> Weights:
    W1, W2, V, W1a, W2a, Va = (array.detach().double().numpy()[None] for array in flat(dict(network.of.items())))
    cuts = np.zeros((1, len(options), int(options.max()) - 1))
    return Weights(W1, W2, V, W1a, W2a, Va, cuts, options, np.zeros(len(options), dtype=bool))
