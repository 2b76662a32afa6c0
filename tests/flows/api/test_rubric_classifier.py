"""`pollex.RubricClassifier` is an estimator as scikit-learn's are."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.utils import estimator_checks
from small_logs import small_log
from small_runs import same_environment

import pollex
from pollex.errors import BadLabels

CHECKS = (
    estimator_checks.check_estimator_cloneable,
    estimator_checks.check_estimator_tags_renamed,
    estimator_checks.check_valid_tag_types,
    estimator_checks.check_estimator_repr,
    estimator_checks.check_no_attributes_set_in_init,
    estimator_checks.check_parameters_default_constructible,
    estimator_checks.check_get_params_invariance,
    estimator_checks.check_set_params,
    estimator_checks.check_do_not_raise_errors_in_init_or_set_params,
    estimator_checks.check_mixin_order,
)


@pytest.fixture(scope="module")
def talks() -> list[pollex.Conversation]:
    return small_log(30)


@pytest.fixture(scope="module")
def thumbs(talks: list[pollex.Conversation]) -> list[str]:
    return ["👍" if one.label is pollex.Label.POSITIVE else "👎" for one in talks]


@pytest.fixture(scope="module")
def fitted(talks: list[pollex.Conversation], thumbs: list[str]) -> pollex.RubricClassifier:
    with same_environment():
        return pollex.RubricClassifier(budget=2).fit(talks, thumbs)


@pytest.mark.parametrize("check", CHECKS)
def test_checks_of_scikit_learn_that_need_no_table_of_numbers_pass(check: object) -> None:
    check("RubricClassifier", pollex.RubricClassifier())  # type: ignore[operator]


def test_probabilities_are_of_the_classes_in_their_order(fitted, talks, thumbs) -> None:
    assert fitted.classes_.tolist() == ["👍", "👎"]
    proba = fitted.predict_proba(talks)
    assert proba.shape == (len(talks), 2)
    assert proba.sum(axis=1) == pytest.approx(1.0)
    good = np.array(thumbs) == "👍"
    assert proba[good, 0].mean() > proba[~good, 0].mean()
    assert fitted.score(talks, thumbs) > 0.5


def test_the_budget_is_the_most_of_the_set_whichever_list_a_rubric_is_of(fitted) -> None:
    kinds = [rubric.polarity for rubric in fitted.rubrics_.rubrics]
    assert (kinds.count("sat"), kinds.count("dsat")) == (2, 1), "without a budget three SAT rubrics are borne out"
    assert all(rubric.stands in ("proven", "likely") for rubric in fitted.rubrics_.rubrics)
    assert not all(rubric.leads for rubric in fitted.rubrics_.rubrics)


def test_transform_gives_the_answers_and_their_names(fitted, talks) -> None:
    answers = fitted.transform(talks[:4])
    names = fitted.get_feature_names_out()
    assert answers.shape == (4, len(names)) == (4, fitted.n_features_out_)
    assert np.nanmin(answers) >= 0.0
    assert np.nanmax(answers) <= 10.0
    assert list(names) == [rubric.text for rubric in fitted.rubrics_.rubrics]


def test_it_clones_pickles_and_stands_in_a_pipeline(fitted, talks) -> None:
    assert clone(fitted).get_params() == fitted.get_params()
    kept = pickle.loads(pickle.dumps(fitted))
    assert kept.predict_proba(talks[:3]).tolist() == fitted.predict_proba(talks[:3]).tolist()
    assert Pipeline([("rubrics", fitted)]).predict(talks[:2]).shape == (2,)


def test_what_is_wrong_with_labels_is_said(talks) -> None:
    with pytest.raises(NotFittedError):
        pollex.RubricClassifier().predict(talks[:1])
    with pytest.raises(BadLabels, match="1 classes in y"):
        pollex.RubricClassifier().fit(talks, ["up"] * len(talks))
    with pytest.raises(BadLabels, match="labels of shape"):
        pollex.RubricClassifier().fit(talks, ["up"])
    with pytest.raises(pollex.PollexError, match="no label is 'good'"):
        pollex.RubricClassifier(positive="good").fit(talks, ["a", "b"] * (len(talks) // 2))
