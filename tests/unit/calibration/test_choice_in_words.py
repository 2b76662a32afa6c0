"""What a calibrator chose, in one sentence that can be read."""

from pollex.calibration.model_choice import CandidateFigures, ModelChoice


def trial(model: str, behind: float, **settings: float) -> CandidateFigures:
    return CandidateFigures(model, settings, n=90, loss=1.0 + behind, error=0.05, behind=behind, behind_error=0.02)


TRIALS = (
    trial("constant", 0.3),
    trial("ridge", 0.01),
    trial("ordinal", 0.0, shared=30.0),
    trial("ordinal", 0.015, shared=100.0),
    trial("ordinal", 0.02, shared=300.0),
    CandidateFigures("as_is", {}, n=90, refused="not asked"),
)


def test_one_alone_stands_beside_the_next() -> None:
    said = ModelChoice("5-fold cross-validation", "best", 2, TRIALS, {2: 1.0}).sentence()
    assert said == (
        "ordinal shared=30.0 by 5-fold cross-validation: log-loss 1.000 ± 0.050 on 90 judgments, "
        "next ridge with 0.010 ± 0.020 more"
    )


def test_those_averaged_stand_beside_the_best_and_the_first_that_was_left_out() -> None:
    said = ModelChoice("5-fold cross-validation", "average", 2, TRIALS, {1: 0.5, 2: 0.5}).sentence()
    assert said.startswith(
        "2 together (ridge, ordinal shared=30.0), which can't be told from the best, ordinal shared=30.0, by 5-fold"
    )
    assert said.endswith("next ordinal shared=100.0 with 0.015 ± 0.020 more")


def test_those_weighted_stand_beside_the_best_alone_and_its_loss() -> None:
    said = ModelChoice("leaving out one of 5 groups in turn", "stacked", 2, TRIALS, {0: 0.2, 2: 0.8}).sentence()
    assert said == (
        "2 together (constant, ordinal shared=30.0), weighted; the best alone ordinal shared=30.0 by leaving out one "
        "of 5 groups in turn: log-loss 1.000 ± 0.050 on 90 judgments, next ridge with 0.010 ± 0.020 more"
    )


def test_of_many_their_kinds_are_counted() -> None:
    said = ModelChoice("5-fold cross-validation", "average", 2, TRIALS, dict.fromkeys((1, 2, 3, 4), 0.25)).sentence()
    assert said.startswith("4 together (ridge, 3 of ordinal), which")
    assert said.endswith("next constant with 0.300 ± 0.020 more")


def test_where_all_that_could_be_fitted_are_averaged_there_is_no_next() -> None:
    said = ModelChoice("5-fold cross-validation", "average", 1, TRIALS[1:3], {0: 0.5, 1: 0.5}).sentence()
    assert said.endswith("there was no other candidate")


def refused(count: int, why: str) -> tuple[CandidateFigures, ...]:
    return tuple(CandidateFigures("ordinal", {"shared": float(number)}, n=90, refused=why) for number in range(count))


def test_those_that_could_not_be_fitted_are_told_where_there_is_no_next() -> None:
    trials = (*TRIALS[:1], CandidateFigures("ridge", {}, n=90, refused="no mean"), *refused(16, "no order"))
    said = ModelChoice("5-fold cross-validation", "average", 0, trials, {0: 1.0}).sentence()
    assert said.endswith("on 90 judgments; not fitted: ridge, 16 of ordinal")


def test_refusals_for_the_same_reason_stand_together() -> None:
    first, *others = refused(3, "no order")
    ridge = CandidateFigures("ridge", {}, n=90, refused="no mean")
    choice = ModelChoice("5-fold cross-validation", "average", 0, (*TRIALS[:1], first, ridge, *others), {0: 1.0})
    assert choice.refusals() == {"no order": [first, *others], "no mean": [ridge]}
