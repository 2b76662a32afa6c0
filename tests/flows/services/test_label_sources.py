"""Labels of people beside those of the log: whose count, which stand over which, and what is told of them."""

import asyncio
from pathlib import Path

import pytest
from small_runs import small_log

from pollex.conversations.conversation import Conversation, Label
from pollex.conversations.logs import Logs
from pollex.errors import WrongUse
from pollex.formats.fields import ReadOptions
from pollex.formats.read_logs import make_logs_of_conversations
from pollex.services.logs import replace_labels
from pollex.store.rows import make_label_row
from pollex.store.store import Store
from pollex.store.tables import LabelRow

UP = Label.POSITIVE
DOWN = Label.NEGATIVE
NONE = Label.NONE


@pytest.fixture
def logs() -> Logs:
    labels = (UP, UP, DOWN, NONE, NONE, NONE)
    turns = [one["messages"] for one in small_log()]
    return make_logs_of_conversations(
        Conversation.model_validate({"id": f"c{n}", "turns": turns[n], "label": label})
        for n, label in enumerate(labels)
    )


@pytest.fixture
def store(tmp_path: Path, logs: Logs) -> Path:
    def row(
        n: int, value: str, drawn: str, annotator: str = "anna", source: str = "person"
    ) -> LabelRow:
        found = make_label_row(
            "run", logs.conversations[n], "thumb", value, drawn=drawn, annotator=annotator
        )
        return LabelRow(**{**vars(found), "source": source})

    with Store.open(tmp_path / ".pollex") as opened:
        rows = [
            row(0, "down", "random"),  # the log says up
            row(1, "down", "voluntary"),  # she had seen the score
            row(3, "up", "unsure"),
            row(4, "up", "random"),
            row(4, "down", "random", "ben"),  # they differ
            row(5, "up", "random"),
            row(5, "down", "random", "carl", "adjudicated"),
        ]
        asyncio.run(opened.write(rows))
    return tmp_path / ".pollex"


def test_only_the_sources_that_are_asked_for_give_labels_and_the_log_says_whose_it_has(
    logs: Logs, store: Path
) -> None:
    for sources, labels in {
        "log": (UP, UP, DOWN, NONE, NONE, NONE),
        "log,person": (DOWN, UP, DOWN, UP, NONE, UP),
        "log, person, adjudicated": (DOWN, UP, DOWN, UP, NONE, DOWN),
        "adjudicated": (NONE, NONE, NONE, NONE, NONE, DOWN),
    }.items():
        found = replace_labels(logs, ReadOptions(label_sources=sources), store)
        assert tuple(one.label for one in found) == labels
        assert (found.fingerprint == logs.fingerprint) == (sources == "log")
        if sources == "log, person, adjudicated":
            assert found.notes[len(logs.notes) :] == (
                "labels by source: 2 of the log, 2 of people, 1 adjudicated",
                "1 label of people stands in place of another one of the log",
                "1 conversation that a queue chose, and not chance, is never held out",
            )
            assert [one.id for one in found if one.preferred] == ["c3"]
    with pytest.raises(WrongUse, match="label_sources"):
        ReadOptions(label_sources="log,friends")
