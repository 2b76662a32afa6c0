"""How many labels are saved by asking for the most telling ones instead of random ones.

    python benchmarks/active_learning.py --data LOG LOG [--repeats 40] [--seed 100] [--embeddings
    FOLDER] [--plot FILE]

The conversations of each log are judged by a rubric set that was learnt on the other log, so no
label of theirs is behind their features. In each repeat a random half of the labelled conversations
is held out. Of the other half a few random labels are known to begin with; then labels are bought
ten at a time: by our rule (`calibration/active.py`), the least certain ones, or random ones. After
each purchase the calibrator is fitted anew, and its probabilities of the held-out thumbs are
measured. Repeats are paired: all rules begin with the same labels.

The rule was chosen on repeats from 1000 on; figures of others are to be reported. Two intervals are
printed: of the mean over repeats, which is about these conversations, and one widened for what
repeats share, which is about new ones (Nadeau & Bengio 2003, doi:10.1023/A:1024068626366).
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rubicon import learned, resampled_interval
from scipy.stats import t as student
from sklearn.metrics import roc_auc_score
from small_form import FEW, OTHERS, Findings, arguments_of, run

from pollex.agents.embedded.embedder import Embedder
from pollex.agents.embedded.judge import EmbeddedJudge
from pollex.calibration.active_learning import (
    choose_texts_to_label_next,
    compute_relative_variance_of_prediction,
    make_vectors_for_choosing_labels,
)
from pollex.calibration.estimator import JudgedEstimator
from pollex.calibration.judgments import Judgments
from pollex.calibration.models.ordinal import OrdinalMixedEffects
from pollex.calibration.questionnaire import Questionnaire, Scale
from pollex.conversations.conversation import Label
from pollex.conversations.logs import Logs
from pollex.formats.read_logs import read_logs
from pollex.measures.arrays import Floats, Ints
from pollex.measures.distributions import compute_answer_log_losses
from pollex.prompts.domain import DomainProfile
from pollex.rubrics.answers import Answer
from pollex.rubrics.learning.settings import LearnSettings
from pollex.rubrics.rubric_set import RubricSet
from pollex.services.label import embed_sides

THUMB = "thumb"
OURS = "most telling"
RANDOM = "random"
RULES = (OURS, "least certain", RANDOM)
SHARED = 10.0
"""Of the calibrator's slopes: on repeats 1000 to 1013 better in log-loss than its default, which is for grades."""

MEASURES = {"auc": "AUC", "log_loss": "log-loss"}


@dataclass(frozen=True, eq=False)
class Data:
    """Labelled conversations of one log.

    Attributes:
        X: Answers to the rubrics `[conversation, rubric × option]`.
        embeddings: `[conversation, width]`.
        positive: 1 for thumbs up, 0 for down `[conversation]`.
    """

    X: Floats
    embeddings: Floats
    positive: Ints
    questions: Questionnaire

    def part(self, rows: Ints) -> Data:
        """Those conversations."""
        return Data(self.X[rows], self.embeddings[rows], self.positive[rows], self.questions)


Rule = Callable[[Data, Ints, Floats, int, np.random.Generator], Ints]
"""From the pool, what is labelled, P(positive) of all and a count: what to label next."""


def main() -> int:
    """Print the learning curves."""
    parser = arguments_of(__doc__)
    parser.add_argument("--data", nargs=2, required=True, metavar="LOG")
    parser.add_argument("--repeats", type=int, default=40)
    parser.add_argument(
        "--seed", type=int, default=100, help="of the first repeat; the others follow"
    )
    parser.add_argument(
        "--draws", type=int, default=3, help="random orders a repeat, of which the mean is taken"
    )
    parser.add_argument("--start", type=int, default=20, help="labels known to begin with")
    parser.add_argument("--step", type=int, default=10, help="labels bought at a time")
    parser.add_argument(
        "--end", type=int, default=100, help="well below the size of the pool, where all rules meet"
    )
    parser.add_argument(
        "--embeddings", help="folder of cached embeddings; an empty temporary one if left out"
    )
    parser.add_argument(
        "--one-way", action="store_true", help="the first log alone, by the rubrics of the other"
    )
    sizes = ["--start", "10", "--end", "20", "--repeats", "1", "--draws", "1"]
    return run(parser, measure_all, ["--data", FEW, OTHERS, "--one-way", *sizes])


def measure_all(arguments: argparse.Namespace) -> Findings:
    """Measure what was asked for."""
    sizes = list(range(arguments.start, arguments.end + 1, arguments.step))
    seeds = range(arguments.seed, arguments.seed + arguments.repeats)
    with tempfile.TemporaryDirectory() as scratch:
        data = read(
            arguments.data, Path(arguments.embeddings or scratch), one_way=arguments.one_way
        )
    reports = {
        name: report_of(
            found, sizes, [repeat(found, sizes, seed, arguments.draws) for seed in seeds]
        )
        for name, found in data.items()
    }
    print(
        f"Model: {OrdinalMixedEffects.title}, prior precision {SHARED:g}; repeats {seeds[0]} to {seeds[-1]}, "
        f"the mean of {arguments.draws} random orders each"
    )
    print("\n\n".join(in_words(name, report) for name, report in reports.items()))
    last = [curve[-1] for report in reports.values() for curve in report["curves"]["auc"].values()]
    return Findings(figures=reports, bars={"AUC of every rule is above chance": min(last) > 0.5})


def read(paths: Sequence[str], embeddings: Path, *, one_way: bool = False) -> dict[str, Data]:
    """Both logs, or the first alone, each judged by the rubrics of the other."""
    profile = DomainProfile.neutral()
    settings = LearnSettings(stability=False, test_fraction=0.2)
    embedder = Embedder(cache=embeddings)
    pairs = [tuple(paths), tuple(reversed(paths))][: 1 if one_way else 2]
    data = {}
    for here, there in pairs:
        found, _ = learned(read_logs(there), profile, settings, embeddings, embedder=embedder)
        data[Path(here).name] = judged(read_logs(here), found.rubric_set, embedder)
    return data


def judged(logs: Logs, rubric_set: RubricSet, embedder: Embedder) -> Data:
    """The labelled conversations that can be judged."""
    conversations = [c for c in logs if c.label is not Label.NONE and not c.not_scorable]
    judge = EmbeddedJudge(embedder, rubric_set.asked_judge.learned)

    async def ask() -> list[list[float]]:
        await judge.prepare(conversations)
        answers = [await judge.judge(c, rubric_set.questions) for c in conversations]
        return [
            [p for a in row if isinstance(a, Answer) for p in a.probabilities] for row in answers
        ]

    likert = [
        Scale(q.id, tuple(option.value for option in q.options)) for q in rubric_set.questions
    ]
    questions = Questionnaire((*likert, Scale(THUMB, (0.0, 1.0), asked=False)), THUMB)
    positive = np.array([c.label is Label.POSITIVE for c in conversations], dtype=np.int64)
    return Data(
        np.array(asyncio.run(ask())), embed_sides(conversations, embedder), positive, questions
    )


def repeat(
    data: Data, sizes: Sequence[int], seed: int, draws: int
) -> dict[str, dict[str, list[float]]]:
    """By rule and measure, the figures at each size; the same halves and the same first labels for all rules."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(data.positive))
    pool = data.part(order[: len(order) // 2])
    held_out = data.part(order[len(order) // 2 :])
    first = both_kinds(pool.positive, sizes[0], rng)
    curves = {
        rule: [curve(pool, held_out, first, sizes, CHOOSE[rule], rng)]
        for rule in RULES
        if rule != RANDOM
    }
    curves[RANDOM] = [
        curve(pool, held_out, first, sizes, CHOOSE[RANDOM], rng) for _ in range(draws)
    ]
    return {
        rule: dict(zip(MEASURES, np.mean(found, axis=0).T.tolist(), strict=True))
        for rule, found in curves.items()
    }


def both_kinds(positive: Ints, count: int, rng: np.random.Generator) -> Ints:
    """Random conversations, drawn again until a thumb up and a thumb down are among them."""
    while True:
        rows = rng.choice(len(positive), count, replace=False)
        if 0 < positive[rows].sum() < count:
            return rows


def curve(
    pool: Data,
    held_out: Data,
    first: Ints,
    sizes: Sequence[int],
    rule: Rule,
    rng: np.random.Generator,
) -> Floats:
    """AUC and log-loss on the held-out half at each size `[size, 2]`."""
    labelled = first
    found = []
    for size, following in zip(sizes, [*sizes[1:], sizes[-1]], strict=True):
        model = fit(pool, labelled)
        proba = model.predict_proba(held_out.X)
        auc = roc_auc_score(held_out.positive, proba[:, 1])
        found.append((auc, compute_answer_log_losses(proba, held_out.positive).mean()))
        if more := following - size:
            bought = rule(pool, labelled, model.predict_proba(pool.X), more, rng)
            labelled = np.concatenate([labelled, bought])
    return np.array(found)


def fit(pool: Data, labelled: Ints) -> JudgedEstimator:
    """A calibrator of the labels that there are; it sees the answers of these conversations alone."""
    count = len(labelled)
    places = np.full(count, pool.questions.index())
    nobody = np.full(count, -1)
    given = Judgments(np.arange(count), places, nobody, pool.positive[labelled])
    return OrdinalMixedEffects(shared=SHARED).fit(pool.X[labelled], given, questions=pool.questions)


def telling(
    pool: Data,
    labelled: Ints,
    proba: Floats,
    count: int,
    rng: np.random.Generator,  # noqa: ARG001
) -> Ints:
    """Our rule, as `pollex label next` has it."""
    sheet = pool.questions
    vectors = make_vectors_for_choosing_labels(sheet.expected(pool.X), pool.embeddings)
    known = np.isin(np.arange(len(proba)), labelled)[:, None]
    return choose_texts_to_label_next(
        vectors, compute_relative_variance_of_prediction(proba, sheet)[:, None], known, count
    ).row


def uncertain(
    pool: Data,  # noqa: ARG001
    labelled: Ints,
    proba: Floats,
    count: int,
    rng: np.random.Generator,  # noqa: ARG001
) -> Ints:
    """Those whose probability is nearest to one half."""
    away = np.abs(proba[:, 1] - 0.5)
    away[labelled] = np.inf
    return np.argsort(away, kind="stable")[:count]


def at_random(
    pool: Data,  # noqa: ARG001
    labelled: Ints,
    proba: Floats,
    count: int,
    rng: np.random.Generator,
) -> Ints:
    """Any."""
    return rng.choice(np.setdiff1d(np.arange(len(proba)), labelled), count, replace=False)


CHOOSE: dict[str, Rule] = {OURS: telling, "least certain": uncertain, RANDOM: at_random}


def report_of(
    data: Data, sizes: Sequence[int], repeats: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Means at each size, and how far each rule is ahead of random choice over the whole curve."""
    values = {
        measure: {rule: np.array([one[rule][measure] for one in repeats]) for rule in RULES}
        for measure in MEASURES
    }
    return {
        "conversations": len(data.positive),
        "positive": int(data.positive.sum()),
        "sizes": list(sizes),
        "repeats": len(repeats),
        "curves": {
            m: {rule: v.mean(axis=0).tolist() for rule, v in by.items()} for m, by in values.items()
        },
        "ahead": {
            rule: {
                m: ahead(by[rule], by[RANDOM], sign=1 if m == "auc" else -1)
                for m, by in values.items()
            }
            for rule in RULES
            if rule != RANDOM
        },
        "same_as": {m: same_as(by[OURS], by[RANDOM], sizes, m) for m, by in values.items()},
    }


def ahead(ours: Floats, random: Floats, sign: int) -> dict[str, Any]:
    """Area between the curves per label bought, paired: how much better on average from the first purchase on."""
    differences = sign * (ours - random)[:, 1:].mean(axis=1)
    count = len(differences)
    half = (
        student.ppf(0.975, count - 1) * differences.std(ddof=1) / np.sqrt(count)
        if count > 1
        else np.inf
    )
    mean = float(differences.mean())
    return {
        "mean": mean,
        "repeats": [mean - half, mean + half],
        "new": list(resampled_interval(differences, 1.0)),
        "won": int((differences > 0).sum()),
    }


def same_as(ours: Floats, random: Floats, sizes: Sequence[int], measure: str) -> int | None:
    """With how many of our labels the mean curve is as good as with all random ones; None where it never is."""
    curve = ours.mean(axis=0)
    last = random.mean(axis=0)[-1]
    reached = curve >= last if measure == "auc" else curve <= last
    return int(sizes[int(reached.argmax())]) if reached.any() else None


def in_words(name: str, report: Mapping[str, Any]) -> str:
    """The tables of one log."""
    lines = [
        f"{name}: {report['conversations']} conversations, {report['positive']} up; half of them held out; "
        f"means over {report['repeats']} repeats"
    ]
    for measure, title in MEASURES.items():
        by = report["curves"][measure]
        lines.append(f"{title + ' after labels':<24}" + "".join(f"{rule:>16}" for rule in by))
        for place, size in enumerate(report["sizes"]):
            lines.append(
                f"{size:>8}{'':<16}" + "".join(f"{values[place]:>16.3f}" for values in by.values())
            )
    for rule, found in report["ahead"].items():
        for measure, title in MEASURES.items():
            lines.append(
                f"{rule} ahead of random in {title}: {told(found[measure], report['repeats'])}"
            )
    for measure, title in MEASURES.items():
        if size := report["same_as"][measure]:
            lines.append(
                f"{title} of {report['sizes'][-1]} random labels is reached with {size} of ours"
            )
    return "\n".join(lines)


def told(found: Mapping[str, Any], repeats: int) -> str:
    """A mean with both intervals, and what can be said."""
    (low, high), (below, above) = found["repeats"], found["new"]
    verdict = "better" if low > 0 else "WORSE" if high < 0 else "noise"
    wide = "holds" if below > 0 else "does not hold"
    return (
        f"{found['mean']:+.4f}, 95 % over repeats [{low:+.4f}, {high:+.4f}]: {verdict}, "
        f"in {found['won']} of {repeats}; for new conversations [{below:+.4f}, {above:+.4f}]: {wide}"
    )


if __name__ == "__main__":
    raise SystemExit(main())
