"""Figures by group: the columns of both tables, and who judged."""

from pathlib import Path

import numpy as np

from pollex.formats.read_tables import read_answers, read_judgments
from pollex.graphs.context import NullProgress
from pollex.measures.distributions import Predictions
from pollex.services.calibration_report import QUICK, bench_of, subgroups_of

TEXTS = 8


def test_who_answered_and_who_judged_both_have_their_figures(tmp_path: Path) -> None:
    llms, people = ("gpt", "llama"), ("ann", "bob", "cy")
    answers = [f"t{n},overall,{option},0.5,{llms[n % 2]}" for n in range(TEXTS) for option in (1, 2)]
    judgments = [f"t{n},overall,{judge},{1 + n // 2 % 2}" for n in range(TEXTS) for judge in people]
    (tmp_path / "a.csv").write_text("\n".join(["text_id,question,option,probability,judge", *answers]))
    (tmp_path / "j.csv").write_text("\n".join(["text_id,question,judge,answer", *judgments]))
    table = read_answers(tmp_path / "a.csv")
    judged = read_judgments(tmp_path / "j.csv", table)
    bench = bench_of(table, judged, 0, None, QUICK, NullProgress())
    proba = np.full((len(bench.given), 2), 0.5)
    own = Predictions(proba, bench.given.answer, bench.given.row, (1.0, 2.0))
    found = subgroups_of(bench, own, table, judged)
    counts = {title: {name: one.rmse.n for name, one in groups.items()} for title, groups in found.items()}
    assert counts == {
        "judge (column of the answers)": {"gpt": TEXTS // 2 * 3, "llama": TEXTS // 2 * 3},
        "judge": dict.fromkeys(people, TEXTS),
    }
