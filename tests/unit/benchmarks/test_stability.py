"""What counts as learned again, and what of it is printed."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from rubric_set_by_hand import rubric, rubric_set
from small_log import small_log, write_log
from stability import compared, in_words, same, summarized, without

from pollex.formats.read_logs import read_logs
from pollex.rubrics.records import ChosenRubric

TRAINS = 'event:answer_no {"topic":"train","topics":{"train":{"train":2.0},"hotel":{"hotel":%s}}}'


class Letters:
    """An embedder to which texts of the same letters are the same."""

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        counts = np.array(
            [[text.lower().count(chr(97 + letter)) for letter in range(26)] for text in texts],
            float,
        )
        return counts / np.linalg.norm(counts, axis=1, keepdims=True)


EMBEDDER = Letters()


def one(source: str, text: str = "It happens.", side: str = "dsat") -> ChosenRubric:
    tells = "deed" if source.startswith("event:") else "manners"
    return rubric(1, side).model_copy(update={"source": source, "text": text, "tells": tells})


@pytest.mark.parametrize(
    ("first", "second", "again"),
    [
        (one(TRAINS % "1.0"), one(TRAINS % "0.5", "It happens often."), True),
        (one(TRAINS % "1.0"), one("event:answer_no"), False),
        (one("event:answer_no"), one("rate:answer_no"), True),
        (one("event:answer_no"), one("event:answer_no", side="sat"), False),
        (one("signal:thanks"), one("signal:praise"), False),
        (one("phrase:user:great"), one("phrase:user:great"), True),
        (one("phrase:user:great"), one("phrase:assistant:great"), False),
        (one("turns:user:0", "“Thanks a lot.”"), one("turns:user:3", "“Thanks a lot!”"), True),
        (one("turns:user:0", "“Thanks.”"), one("turns:user:0", "“Book a table.”"), False),
    ],
)
def test_the_same_event_topic_signal_phrase_or_cluster_counts_as_learned_again(
    first: ChosenRubric, second: ChosenRubric, again: bool
) -> None:
    assert same([first], [second], EMBEDDER) == [again]


def test_rubrics_are_counted_by_list() -> None:
    first = rubric_set(
        rubrics=(one("event:answer_no"), one("signal:thanks").model_copy(update={"id": "r2"}))
    )
    second = rubric_set(rubrics=(one("signal:thanks"),))
    assert compared(first, second, EMBEDDER) == {
        "all": [1, 2],
        "headline": [0, 1],
        "how users sound": [1, 1],
    }


def test_labels_are_taken_away_and_unlabeled_conversations_stay(tmp_path: Path) -> None:
    logs = read_logs(write_log(tmp_path / "log.jsonl", small_log()))
    fewer = without(logs, 5, np.random.default_rng(0))
    assert (len(logs.learnable) - len(fewer.learnable), sum(fewer.counts.values())) == (
        5,
        len(logs) - 5,
    )


def test_shares_are_of_twenty_with_a_t_interval() -> None:
    assert summarized([[5, 10], [8, 10]]) == pytest.approx(
        (10.0, 13.0, 13 - 12.7062 * 3, 13 + 12.7062 * 3), abs=1e-3
    )
    pairs = {"another seed": [{"all": [5, 10]}, {"all": [8, 10]}]}
    printed = in_words({"log": "a.jsonl", "labels": 40, "rubrics": [10, 12], "pairs": pairs})
    assert "first pair 10.0; mean 13.0 [-25.1, 51.1]; 13 of 20" in printed[-1]
