"""An estimator of scikit-learn: learns rubrics from conversations and labels, and predicts the labels of others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from pollex.api.rubrics import RubricSet
from pollex.api.verbs import learn
from pollex.conversations.conversation import Label
from pollex.errors import BadInput, BadLabels, WrongUse
from pollex.formats.labels import LabelRules
from pollex.prompts.domain import DomainProfile
from pollex.rubrics.answers import Answer
from pollex.rubrics.score import Score
from pollex.selection.policies import DEFAULT_SELECTION_POLICY_NAME
from pollex.services.scorer import ConversationLike, Scorer, iterate_numbered_conversations
from pollex.store.folder import DEFAULT_STORE_FOLDER

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

Floats = npt.NDArray[np.float64]


class RubricClassifier(ClassifierMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]  # it has no types
    """Learns rubrics from labeled conversations, answers them about others, and predicts who was satisfied.

    X is a sequence of conversations: `pollex.Conversation`, dicts with `messages`, or lists of
    messages. y has two classes in any spelling (up and down, 1 and 0, True and False).

    Args:
        domain: A domain profile or its file; None for the neutral one.
        rubrics: Rubrics written by hand, or a bundled set's name: all are fitted, none learned.
        budget: Maximum number of SAT and of DSAT rubrics; None: 15 in all.
        policy: A name of `selection.policies`.
        positive: The class of satisfied users; None: the one that is spelled so, else the later one
            in sorted order.
        seed: Of folds.
        model: An LLM's name or a LangChain chat model; None for the built-in roles.
        store: Folder where runs and paid answers are kept; None: `.pollex` with a model, nothing
            without one.

    Attributes:
        classes_: The two classes, sorted.
        rubrics_: The rubric set that was learned, a `pollex.RubricSet`.
        n_features_out_: How many rubrics it has.
    """

    def __init__(
        self,
        *,
        domain: str | Path | DomainProfile | None = None,
        rubrics: str | Path | None = None,
        budget: int | None = None,
        policy: str = DEFAULT_SELECTION_POLICY_NAME,
        positive: object = None,
        seed: int = 0,
        model: str | BaseChatModel | None = None,
        store: str | Path | None = None,
    ) -> None:
        self.domain = domain
        self.rubrics = rubrics
        self.budget = budget
        self.policy = policy
        self.positive = positive
        self.seed = seed
        self.model = model
        self.store = store

    def fit(self, X: Iterable[ConversationLike], y: Sequence[object]) -> Self:
        """Learn from all conversations; measure by cross-validation, since nothing is held out here.

        Raises:
            BadLabels: There aren't two classes, one is too small, or y is longer or shorter than X.
            WrongUse: One of X is no conversation.
        """
        conversations = list(iterate_numbered_conversations(X))
        labels = np.asarray(y)
        if labels.shape != (len(conversations),):
            raise BadLabels(
                f"{len(conversations)} conversations, and labels of shape {labels.shape}"
            )

        classes = np.unique(labels)
        if len(classes) != 2:
            raise BadLabels(
                f"{len(classes)} classes in y",
                hint="give labels of two classes",
            )

        good = classes[self._place_of_positive(classes)]
        # ids follow from places, so that no two conversations share one
        labeled = []
        for number, (conversation, label) in enumerate(zip(conversations, labels, strict=True)):
            labeled.append(
                conversation.model_copy(
                    update={
                        "id": f"{number:06}",
                        "label": Label.POSITIVE if label == good else Label.NEGATIVE,
                    }
                )
            )

        # without a store the files go once the set is learned
        with ExitStack() as opened:
            self.rubrics_: RubricSet = learn(
                labeled,
                domain=self.domain,
                rubrics=self.rubrics,
                test_fraction=0.0,
                budget=self.budget,
                policy=self.policy,
                seed=self.seed,
                model=self.model,
                store=self._folder() or opened.enter_context(TemporaryDirectory()),
            )

        self.classes_ = classes
        self.n_features_out_ = len(self.rubrics_.rubrics)
        return self

    def predict_proba(self, X: Iterable[ConversationLike]) -> Floats:
        """Compute the probability of each class `[conversation, class]`; NaN where a conversation can't be scored."""
        scores = self._scores(X)
        good = np.array(
            [np.nan if score.probability is None else score.probability for score in scores]
        )
        columns = [1.0 - good, good]

        # columns in the order of `classes_`
        return np.stack(
            columns if self._place_of_positive(self.classes_) else columns[::-1],
            axis=1,
        )

    def predict(self, X: Iterable[ConversationLike]) -> npt.NDArray[Any]:
        """Return the more probable class of each conversation `[conversation]`.

        Raises:
            BadInput: A conversation can't be scored; `predict_proba` has NaN there.
        """
        proba = self.predict_proba(X)
        if lost := np.flatnonzero(np.isnan(proba[:, 0])).tolist():
            raise BadInput(
                f"{len(lost)} conversations can't be scored, the first is X[{lost[0]}]",
                hint="leave them out, or use predict_proba, which has NaN for them",
            )

        predicted: npt.NDArray[Any] = self.classes_[proba.argmax(axis=1)]
        return predicted

    def transform(self, X: Iterable[ConversationLike]) -> Floats:
        """Return the answers, 0 (strongly disagree) to 10 (strongly agree) `[conversation, rubric]`.

        NaN where a rubric's occasion never came up or there is no answer.
        """
        # a column for each rubric, in the order of the set
        order = {rubric.id: place for place, rubric in enumerate(self._set().rubrics)}
        answers = np.full((len(scores := self._scores(X)), len(order)), np.nan)
        for row, score in enumerate(scores):
            for answer in score.answers:
                if isinstance(answer, Answer) and not answer.never_came_up:
                    answers[row, order[answer.question_id]] = answer.value()

        return answers

    def get_feature_names_out(self, input_features: object = None) -> npt.NDArray[np.object_]:  # noqa: ARG002
        """Return the rubrics' texts, in the order of `transform`'s columns."""
        return np.array([rubric.text for rubric in self._set().rubrics], dtype=object)

    def _scores(self, X: Iterable[ConversationLike]) -> list[Score]:
        # a name of a model is in the set's judge already, and the built-in judge needs none
        if self._set().judge.built_in or isinstance(self.model, str):
            model = None
        else:
            model = self.model

        # ids follow from places, as in `fit`
        conversations = []
        for number, conversation in enumerate(iterate_numbered_conversations(X)):
            conversations.append(conversation.model_copy(update={"id": f"{number:06}"}))

        with Scorer(
            self._set(), model=model, store=self._folder() or DEFAULT_STORE_FOLDER
        ) as scorer:
            return scorer.score_many(conversations)

    def _set(self) -> RubricSet:
        check_is_fitted(self, "rubrics_")
        return self.rubrics_

    def _folder(self) -> str | Path | None:
        return self.store or (None if self.model is None else DEFAULT_STORE_FOLDER)

    def _place_of_positive(self, classes: npt.NDArray[Any]) -> int:
        if self.positive is not None:
            if self.positive not in classes.tolist():
                raise WrongUse(
                    f"no label is {self.positive!r}",
                    hint=f"positive is one of {classes.tolist()}",
                )

            return int(classes.tolist().index(self.positive))

        # spelled as thumbs often are: they say which class is good; else it is the later one
        try:
            labels = []
            for spelling in classes.tolist():
                labels.append(LabelRules.of(None, None).label(spelling))
        except (BadInput, WrongUse):  # spelled in their own way
            return 1

        return 0 if labels == [Label.POSITIVE, Label.NEGATIVE] else 1

    def __sklearn_tags__(self) -> Tags:
        tags: Tags = super().__sklearn_tags__()
        # conversations are no table of numbers
        tags.input_tags.two_d_array = False
        tags.input_tags.allow_nan = False
        tags.classifier_tags.multi_class = False
        tags.target_tags.required = True

        return tags
