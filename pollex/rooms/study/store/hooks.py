"""What the room keeps in the store."""

from pollex.rooms.study.store.tables import (
    StudyRow,
    TalkAnswerRow,
    TalkEndRow,
    TalkRow,
    TalkTurnRow,
)
from pollex.store.hooks import StoreTable

HOOKS = (
    StoreTable(StudyRow, objects=("payload",)),
    StoreTable(TalkRow, "PRIMARY KEY (id), UNIQUE (study, number), UNIQUE (study, annotator)"),
    StoreTable(TalkTurnRow, index="turns_of_talks ON talk_turns (talk)"),
    StoreTable(TalkAnswerRow, index="answers_of_talks ON talk_answers (talk)"),
    StoreTable(TalkEndRow, index="ends_of_talks ON talk_ends (talk)"),
)
