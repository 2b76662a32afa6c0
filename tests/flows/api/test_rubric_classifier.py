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


def test_checks_of_scikit_learn_that_need_no_table_of_numbers_pass() -> None:
    for check in CHECKS:
        check("RubricClassifier", pollex.RubricClassifier())


def test_probabilities_are_of_the_classes_in_their_order_from_answers_to_as_many_rubrics_as_the_budget(
    fitted, talks, thumbs
) -> None:
    assert fitted.classes_.tolist() == ["👍", "👎"]
    proba = fitted.predict_proba(talks)
    assert proba.shape == (len(talks), 2)
    assert proba.sum(axis=1) == pytest.approx(1.0)
    good = np.array(thumbs) == "👍"
    assert proba[good, 0].mean() > proba[~good, 0].mean()
    assert fitted.score(talks, thumbs) > 0.5
    kinds = [rubric.polarity for rubric in fitted.rubrics_.rubrics]
    assert (kinds.count("sat"), kinds.count("dsat")) == (2, 1), (
        "without a budget three SAT rubrics are borne out"
    )
    answers = fitted.transform(talks[:4])
    names = fitted.get_feature_names_out()
    assert answers.shape == (4, len(names)) == (4, fitted.n_features_out_)
    assert 0.0 <= np.nanmin(answers) <= np.nanmax(answers) <= 10.0
    assert list(names) == [rubric.text for rubric in fitted.rubrics_.rubrics]


def test_it_clones_pickles_and_stands_in_a_pipeline(fitted, talks) -> None:
    assert clone(fitted).get_params() == fitted.get_params()
    kept = pickle.loads(pickle.dumps(fitted))
    assert kept.predict_proba(talks[:3]).tolist() == fitted.predict_proba(talks[:3]).tolist()
    assert Pipeline([("rubrics", fitted)]).predict(talks[:2]).shape == (2,)


def test_what_is_wrong_with_labels_is_said(talks) -> None:
    with pytest.raises(NotFittedError):
        pollex.RubricClassifier().predict(talks[:1])
    for positive, labels, said in (
        (None, ["up"] * len(talks), "1 classes in y"),
        (None, ["up"], "labels of shape"),
        ("good", ["a", "b"] * (len(talks) // 2), "no label is 'good'"),
    ):
        with pytest.raises(pollex.PollexError, match=said):
            pollex.RubricClassifier(positive=positive).fit(talks, labels)
