"""Whether the pipeline gets back what was planted: a simulated model in a world whose causes are known.

    python benchmarks/planted_world.py recovery [--worlds 5] [--conversations 200] [--agreement 0.75
    0.85 0.95]
    python benchmarks/planted_world.py policies [--worlds 200] [--conversations 200] [--agreement
    0.85]
    python benchmarks/planted_world.py tables   [--worlds 5] [--model M --base-url U]

Each world draws 6 of 14 signals of satisfaction and 6 of 14 of dissatisfaction that have to do with
the thumb; the others occur whatever it is. `recovery` learns with the whole pipeline and prints the
share of the planted signals among the rubrics chosen, at several agreements of model and truth,
with budgets of 6 + 6, as many as were planted, and 10 + 10. `policies` leaves the pipeline out and
compares ways to choose from a pool of one rubric a signal, on answers drawn with the same noise.
`tables` prints the rows of RUBICON's tables that take a model, beside the published figures.

All figures are of a SIMULATED model unless `--model` names a real one. They say whether the
pipeline works, not how well a model reads; what the simulation is taken to be like without DS, CDP
or domain is an assumption (see `tests/endurance/planted/model.py`), and so are the sizes of the gaps between
the rows that rest on it. Worlds are independent of one another: intervals are Student's, 95 %, over
worlds. Half of each world's conversations are held out.
"""

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy.stats import t as student
from small_form import Findings, arguments_of, run
from techniques import RUBICON, TABLES, Technique, learnt

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "endurance"))
from planted.chat import PlantedChat
from planted.model import Reader
from planted.world import World, signals

from pollex.formats.read_logs import make_logs_of_conversations
from pollex.gateway.transport import ChatModel
from pollex.measures.classification import compute_auc
from pollex.prompts.domain import DomainProfile
from pollex.rubrics.answers import LIKERT_OPTIONS
from pollex.rubrics.rubric_set import RubricSet
from pollex.runs.options import ModelOptions
from pollex.selection.alpha import choose_alpha_by_cross_validation
from pollex.selection.policies import (
    DEFAULT_SELECTION_POLICY_NAME,
    SELECTION_POLICY_BY_NAME,
    select_rubrics,
)
from pollex.store.store import Store

DEBUGGING = Path(__file__).parents[1] / "examples" / "debugging.toml"
FIGURES = ("delta_netsat", "yield_rate", "accuracy", "precision", "recall", "f1", "auc")
HEADINGS = ("ΔNetSAT", "YR@90", "acc", "P", "R", "F1", "AUC")
PLANTED = "the planted ones"
UNPUBLISHED = (None,) * 6

Floats = npt.NDArray[np.float64]


def main() -> int:
    """Print what is asked for."""
    parser = arguments_of(__doc__)
    parser.add_argument("part", choices=["recovery", "policies", "tables"])
    parser.add_argument("--worlds", type=int)
    parser.add_argument("--seed", type=int, default=0, help="of the first world; the others follow")
    parser.add_argument(
        "--conversations", type=int, default=200, help="of a world, half of them held out"
    )
    parser.add_argument(
        "--agreement", type=float, nargs="+", help="of the simulated model with the truth"
    )
    parser.add_argument(
        "--budgets", type=int, nargs="+", default=[6, 10], help="rubrics a side, for `recovery`"
    )
    parser.add_argument("--model", help="a real model in place of the simulated one, for `tables`")
    parser.add_argument("--base-url")
    quick = [
        "recovery",
        "--worlds",
        "1",
        "--agreement",
        "0.95",
        "--conversations",
        "40",
        "--budgets",
        "6",
    ]
    return run(parser, measure_all, quick)


def measure_all(asked: argparse.Namespace) -> Findings:
    """Measure what was asked for."""
    worlds = [
        World(asked.seed + i)
        for i in range(asked.worlds or (200 if asked.part == "policies" else 5))
    ]
    if asked.part == "recovery":
        shares = recovery(
            worlds, asked.conversations, asked.agreement or [0.75, 0.85, 0.95], asked.budgets
        )
        return Findings(
            figures=shares,
            bars={"all that was planted is in the pool": min(shares["in the pool"]) == 1},
        )
    if asked.part == "policies":
        for agreement in asked.agreement or [0.85]:
            policies(worlds, asked.conversations, agreement)
    else:
        options = ModelOptions(model=asked.model, base_url=asked.base_url)
        tables(worlds, asked.conversations, (asked.agreement or [0.85])[0], options)
    return Findings()


def recovery(
    worlds: Sequence[World], count: int, agreements: Sequence[float], budgets: Sequence[int]
) -> dict[str, list[float]]:
    """Print how much of what was planted is in the pool and among the rubrics chosen, and return it."""
    shares: dict[str, list[float]] = {"in the pool": [], "chosen": []}
    print(
        f"SIMULATED model, {len(worlds)} worlds, {count} conversations each, half held out; "
        f"policy {DEFAULT_SELECTION_POLICY_NAME}\n"
    )
    print(
        "agreement | budget | planted, in the pool | planted, chosen | chosen, planted | held-out AUC"
    )
    for agreement in agreements:
        for budget in budgets:
            rows = []
            for world in worlds:
                found = in_world(
                    world, count, Technique(RUBICON), Reader(agreement, seed=world.seed), budget
                )
                chosen = [rubric.text for rubric in found.rubrics]
                pool = [*chosen, *(rubric.text for rubric in found.dropped)]
                right = np.mean([world.recovered([text]) > 0 for text in chosen])
                rows.append(
                    [
                        world.recovered(pool),
                        world.recovered(chosen),
                        float(right),
                        value(found, "auc"),
                    ]
                )
            cells = " | ".join(interval(column, most=1) for column in np.array(rows).T)
            print(f"{agreement:.2f} | {budget} + {budget} | {cells}", flush=True)
            for name, column in zip(shares, np.array(rows).T, strict=False):
                shares[name] += column.tolist()
    return shares


def in_world(
    world: World,
    count: int,
    how: Technique,
    reader: Reader,
    budget: int = 10,
    model: ModelOptions | None = None,
) -> RubricSet:
    """The rubric set of one world, in a store of its own; by a simulated model where none is named."""
    chat = None if model and model.model else ChatModel(PlantedChat(reader=reader))
    logs = make_logs_of_conversations(world.conversations(count))
    profile = DomainProfile.load(DEBUGGING)
    with tempfile.TemporaryDirectory() as folder, Store.open(Path(folder)) as store:
        return asyncio.run(
            learnt(how, logs, profile, store, budget=(budget, budget), model=model, chat=chat)
        )[0]


def value(found: RubricSet, figure: str) -> float:
    """A held-out figure; NaN where it is undefined."""
    assert found.held_out is not None, "half is held out"
    known = getattr(found.held_out, figure).value
    return float("nan") if known is None else float(known)


def tables(worlds: Sequence[World], count: int, agreement: float, options: ModelOptions) -> None:
    """The rows of the paper's tables that take a model; what stands in two tables once, and RUBICON first."""
    who = f"model {options.model}" if options.model else f"SIMULATED model, agreement {agreement:g}"
    print(
        f"{who}; {len(worlds)} worlds, {count} conversations each, half held out; mean ± sd over worlds, in brackets"
    )
    print(
        "the paper's, of other conversations and GPT-4; last, AUC less that of RUBICON in the same world\n"
    )
    print(" | ".join(["technique", *HEADINGS, "planted, chosen", "AUC − RUBICON's"]))
    rows = {how.options: how for techniques in TABLES.values() for how in techniques}
    reference: Floats | None = None
    for how in sorted(rows.values(), key=lambda how: how.name != RUBICON):
        found = [
            in_world(world, count, how, Reader(agreement, seed=world.seed), model=options)
            for world in worlds
        ]
        cells = np.array([[value(one, figure) for figure in FIGURES] for one in found])
        cells[:, 1:6] *= 100
        back = [
            world.recovered(r.text for r in one.rubrics)
            for world, one in zip(worlds, found, strict=True)
        ]
        reference = cells[:, -1] if reference is None else reference
        gap = interval(cells[:, -1] - reference) if how.name != RUBICON else "–"
        published = how.published or UNPUBLISHED
        shown = [spread(column, p, 1) for column, p in zip(cells.T, published, strict=False)]
        shown.append(spread(cells[:, -1], None, 3))
        print(
            " | ".join([f"{how.name}: {how.options}", *shown, interval(back, most=1), gap]),
            flush=True,
        )


def policies(worlds: Sequence[World], count: int, agreement: float) -> None:
    """Ways to choose 6 + 6 of 28 rubrics on answers with the noise, each against the default in the same world."""
    print(
        f"answers drawn at agreement {agreement:g}, {len(worlds)} worlds, {count // 2} training conversations\n"
    )
    print(
        "policy | planted, chosen | AUC on 2,000 others | planted less the default's | AUC less the default's"
    )
    names = [
        DEFAULT_SELECTION_POLICY_NAME,
        *(name for name in SELECTION_POLICY_BY_NAME if name != DEFAULT_SELECTION_POLICY_NAME),
        PLANTED,
    ]
    scores = {
        name: np.array([chosen_by(name, world, count, agreement) for world in worlds])
        for name in names
    }
    for name, rows in scores.items():
        gaps = (
            ["–", "–"]
            if name == DEFAULT_SELECTION_POLICY_NAME
            else [interval(gap) for gap in (rows - scores[DEFAULT_SELECTION_POLICY_NAME]).T]
        )
        print(
            " | ".join([name, *(interval(column, most=1) for column in rows.T), *gaps]), flush=True
        )


def chosen_by(policy: str, world: World, count: int, agreement: float) -> tuple[float, float]:
    """Share of the planted signals among what a policy chooses, and the AUC of that on conversations it didn't see."""
    sat = np.array([signal.polarity == "sat" for signal in signals()])
    cause = np.array([signal in world.causes for signal in signals()])
    positive, happens = world.happenings(count // 2 + 2_000)
    values = answers(happens, agreement, np.random.default_rng([world.seed, 3])) * np.where(
        sat, 1, -1
    )
    train = slice(None, count // 2)
    unseen = slice(count // 2, None)
    if policy == PLANTED:
        chosen = np.flatnonzero(cause)
    else:
        ids = [f"{place:02d}" for place in range(len(sat))]
        problem = values[train], positive[train], sat, ids, (world.planted, world.planted)
        folds = np.empty(count // 2, int)
        for label in (True, False):
            mine = np.flatnonzero(positive[train] == label)
            folds[mine] = np.arange(len(mine)) % 5
        alpha = choose_alpha_by_cross_validation(*problem, folds, policy, seed=world.seed).alpha
        steps = select_rubrics(*problem, alpha, np.random.default_rng(world.seed), policy).steps
        chosen = np.array([step.index for step in steps])
    scores = values[unseen][:, np.sort(chosen)].sum(axis=1)
    return float(cause[chosen].sum() / cause.sum()), compute_auc(scores, positive[unseen])


def answers(happens: npt.NDArray[np.bool_], agreement: float, rng: np.random.Generator) -> Floats:
    """What the simulated judge would answer: Likert values `[conversation, signal]`, on the true side so often."""
    agreed = happens == (rng.random(happens.shape) < agreement)
    place = np.where(agreed, 3, 0) + rng.integers(0, 2, happens.shape)
    options: Floats = np.array([option.value for option in LIKERT_OPTIONS])[place]
    return options


def interval(column: Sequence[float] | Floats, most: float = np.inf) -> str:
    """Mean and 95 % interval over worlds; that of a share ends at 1, its `most`."""
    known = np.asarray(column, float)
    known = known[~np.isnan(known)]
    if len(known) < 2:
        return " ".join(f"{x:.3f}" for x in known) or "undefined"
    half = student.ppf(0.975, len(known) - 1) * known.std(ddof=1) / np.sqrt(len(known))
    return f"{known.mean():.3f} [{known.mean() - half:.3f}, {min(known.mean() + half, most):.3f}]"


def spread(column: Floats, published: float | None, digits: int = 1) -> str:
    """Mean ± standard deviation, and the paper's figure."""
    known = column[~np.isnan(column)]
    deviation = f" ± {known.std(ddof=1):.{digits}f}" if len(known) > 1 else ""
    said = f"{known.mean():.{digits}f}{deviation}" if len(known) else "undefined"
    return said if published is None else f"{said} ({published:g})"


if __name__ == "__main__":
    raise SystemExit(main())
