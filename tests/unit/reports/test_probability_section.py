"""The report's part on probabilities, read as a reader would."""

from dataclasses import replace
from typing import Any

import numpy as np
from rubric_set_by_hand import figure, rubric_set, scores

from pollex.calibration.candidates import CandidateScore, LabelsPoint
from pollex.measures.intervals import Figure
from pollex.reports.learning import render_learning_page
from pollex.rubrics.learning.results import LabelledScore
from pollex.rubrics.records import CalibratorRecord, GradeRow, ProbabilityFigures, RatingRecord
from pollex.rubrics.rubric_set import RubricSet
from pollex.services.learn_result import describe_lead

NONE = Figure(value=None, n=20, undefined="1 given thumbs had probability 0")


def truth(**changes: Any) -> ProbabilityFigures:
    whole = {
        "log_loss": 0.512,
        "brier": 0.171,
        "share_log_loss": 0.693,
        "share_brier": 0.25,
        "gain": 0.181,
    }
    return ProbabilityFigures(
        n=20, **({name: figure(value) for name, value in whole.items()} | changes)
    )


def judged(labels: int = 60, **changes: Any) -> RubricSet:
    rows = (
        CandidateScore(name="NetSAT", log_loss=0.601, behind=0.089, error=0.031, n=60),
        CandidateScore(name="decorrelated NetSAT", log_loss=0.512, behind=0.0, error=0.0, n=60),
    )
    whole: dict[str, Any] = {
        "chosen": "decorrelated NetSAT",
        "compared": rows,
        "labels": labels,
        "training": truth(),
        "held_out": truth(),
        "rubrics": (),
        "facts": {"learned": {"judges": []}},
    }
    return rubric_set(calibrator=CalibratorRecord(**(whole | changes)))


def likely(seed: int = 0) -> list[LabelledScore]:
    rng = np.random.default_rng(seed)
    return [replace(score, probability=float(rng.random())) for score in scores()]


def section(rubrics: RubricSet, given: list[LabelledScore]) -> str:
    page = render_learning_page(rubrics, given)
    begin = page.index('<section id="probability"')
    return page[begin : page.index("</section>", begin)]


def test_how_far_the_chosen_model_lies_from_netsats_curve_is_its_own_lead_and_no_other_models() -> (
    None
):
    worse = CandidateScore(name="network", log_loss=0.603, behind=0.091, error=0.031, n=60)
    for chosen, told in (("decorrelated NetSAT", "0.089 under"), ("network", "0.002 over")):
        record = judged(chosen=chosen).calibrator
        assert record is not None
        record = record.model_copy(update={"compared": (*record.compared, worse)})
        assert describe_lead(record) == f"; cross-validated log-loss {told} that of NetSAT's curve"


def test_what_is_missing_is_told_in_words() -> None:
    for rubrics, given, told in (
        (judged(labels=12), likely(), "not yet calibrated: 12 of 50 labels, 38 are missing"),
        (
            judged(),
            scores(),
            "0\N{NO-BREAK SPACE}conversations with a probability: too few to say.",
        ),
        (judged(), scores(), "No conversation of this side has a probability."),
        (
            judged(compared=()),
            likely(),
            "Models were not compared, because there were too few conversations",
        ),
        (
            judged(training=None, held_out=None),
            likely(),
            "the accuracy of the probabilities is unknown",
        ),
        (rubric_set(), scores(), "no model of probabilities: run pollex refit"),
    ):
        said = section(rubrics, given)
        assert told in said
        assert ("calibrated on" in said) == ("60 labels" in said)
    said = section(judged(held_out=truth(log_loss=NONE, gain=NONE)), likely())
    assert said.count("1 given thumbs had probability 0") == 2
    assert ">nan<" not in said
    name = "<script>alert(1)</script></td>&amp;"
    row = CandidateScore(name=name, log_loss=0.5, behind=0.0, error=0.0, n=60)
    assert name not in section(judged(chosen=name, compared=(row,)), likely())


def test_it_shows_the_chosen_model_by_how_much_and_the_class_share() -> None:
    said = section(judged(), likely())
    assert "calibrated on 60 labels" in said
    assert "20\N{NO-BREAK SPACE}conversations in 2\N{NO-BREAK SPACE}bins" in said
    rows = [row for row in said.split("<tr")[1:] if "NetSAT" in row.split("</th>")[0]]
    assert "0.089" in rows[1]
    assert "± 0.031" in rows[1]
    assert "chosen" in rows[0]  # the best one stands first
    for value in ("0.512", "0.693", "+0.181", "0.171", "0.250"):
        assert value in said


def test_it_says_why_a_model_was_taken_what_the_network_adds_and_how_good_ratings_are() -> None:
    value = Figure(value=0.62, low=0.55, high=0.7, n=60)
    row = GradeRow(name="decorrelated NetSAT", n=60, rmse=value, pearson=value)
    rating = RatingRecord(
        scales={"stars": (1.0, 2.0, 5.0), "kind": (0.0, 1.0)}, chosen="the network", why="it is ahead", labels=60,
        compared=(row,), held_out=row, reliability=((1.5, 1.6, 30), (3.0, 2.5, 30)), facts={},
    )  # fmt: skip
    points = ((20, -0.01), (40, 0.02), (80, 0.03))
    curve = tuple(
        LabelsPoint(labels=n, start=0.5, network=0.5 - gain, gain=gain, error=0.01)
        for n, gain in points
    )
    said = section(
        judged(why="the network has the least log-loss", rating=rating, curve=curve), likely()
    )
    assert "the network has the least log-loss" in said
    assert (
        "0.030 ± 0.010 nats off the log-loss of what it begins as; more than a standard error from 40"
        in said
    )
    assert "stars is learned as 3 grades" in said
    assert "predicted 3.00, given 2.50" in said
    assert "which is no more than noise." in section(judged(curve=curve[:1]), likely())
