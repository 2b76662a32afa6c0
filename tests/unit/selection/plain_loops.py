"""The losses and the greedy policy once more, one number at a time: what the arrays have to agree with."""

import math
from collections.abc import Sequence

RESOLUTION = 1e-9


def plain_terms(
    scores: Sequence[float], positive: Sequence[bool], grid: int = 101
) -> tuple[float, float]:
    """LC and LS of one rubric set."""
    ups = [score for score, up in zip(scores, positive, strict=True) if up]
    downs = [score for score, up in zip(scores, positive, strict=True) if not up]
    mean_up = math.fsum(ups) / len(ups)
    mean_down = math.fsum(downs) / len(downs)
    theta = (mean_up + mean_down) / 2
    squares = math.fsum([(x - mean_up) ** 2 for x in ups] + [(x - mean_down) ** 2 for x in downs])
    spread = math.sqrt(squares / max(len(scores) - 2, 1))
    low = min(scores)
    span = max(scores) - min(scores)
    if span <= RESOLUTION:
        span = 0.0
        spread = math.inf
    spread = max(spread, 1e-3 * span / (grid - 1))
    base = len(ups) / len(scores)
    plus = base
    error_plus = 0.0
    error_minus = 0.0
    for j in range(grid):
        threshold = low + span * j / (grid - 1)
        margin = RESOLUTION * (span / (grid - 1) if span else 1.0)
        over = [
            up for score, up in zip(scores, positive, strict=True) if score > threshold + margin
        ]
        under = [
            up for score, up in zip(scores, positive, strict=True) if score <= threshold + margin
        ]
        plus = sum(over) / len(over) if over else plus
        minus = 1 - sum(under) / len(under)
        z = math.tanh((threshold - theta) / spread)
        error_plus += (plus - (base + (1 - base) * (1 + z) / 2)) ** 2
        error_minus += (minus - ((1 - base) + base * (1 - z) / 2)) ** 2
    return mean_up - mean_down, (error_plus + error_minus) / grid


def plain_loss(scores: Sequence[float], positive: Sequence[bool], alpha: float, size: int) -> float:
    """`−LC/(10·size) + α·LS`."""
    correctness, sharpness = plain_terms(scores, positive)
    return -correctness / (10 * size) + alpha * sharpness


def plain_greedy(
    values: Sequence[Sequence[float]],
    positive: Sequence[bool],
    sat: Sequence[bool],
    ids: Sequence[str],
    budget: tuple[int, int],
    alpha: float,
) -> list[int]:
    """Columns in the order of choice."""
    chosen: list[int] = []
    room = {True: budget[0], False: budget[1]}
    scores = [0.0] * len(values)
    while candidates := [r for r in range(len(sat)) if r not in chosen and room[sat[r]] > 0]:
        losses = {
            r: plain_loss(
                [s + row[r] for s, row in zip(scores, values, strict=True)],
                positive,
                alpha,
                len(chosen) + 1,
            )
            for r in candidates
        }
        ties = [r for r in candidates if losses[r] <= min(losses.values()) + RESOLUTION]
        best = min(ties, key=lambda r: ids[r])
        chosen.append(best)
        room[sat[best]] -= 1
        scores = [s + row[best] for s, row in zip(scores, values, strict=True)]
    return chosen
