"""One text under many ids."""

from pollex.conversations.conversation import Conversation, Label, Turn
from pollex.formats.read_logs import logs_of


def talk(id_: str, text: str, label: Label) -> Conversation:
    said = (Turn(role="user", content=text), Turn(role="assistant", content="Good day"))
    return Conversation(id=id_, turns=said, label=label)


def test_a_text_counts_once_with_the_label_that_most_of_it_have() -> None:
    up, down = Label.POSITIVE, Label.NEGATIVE
    labels = [("a", "Hello", down), ("b", "Hello", up), ("c", "Hello", up), ("d", "Bye", down), ("e", "?", up)]
    logs = logs_of([talk(*one) for one in labels] + [talk("f", "?", down), talk("g", "Bye", Label.NONE)])
    assert {c.id: c.label.value for c in logs.learnable} == {"b": "positive", "d": "negative"}
    assert logs.repeated == {"a": "b", "c": "b", "e": "e", "f": "f"}
    assert logs.note_on_repeats == [
        "4 labeled conversations have the text of another one ('b' stands 3 times): a text counts once, with the label "
        "most of it have; 2 are left out, since a text has as many thumbs up as down"
    ]


def test_nothing_is_said_of_a_log_without_repeats() -> None:
    logs = logs_of([talk("a", "Hello", Label.POSITIVE), talk("b", "Bye", Label.NEGATIVE)])
    assert (logs.note_on_repeats, logs.repeated, len(logs.learnable)) == ([], {}, 2)


def test_what_several_annotators_say_of_a_text_is_no_repetition() -> None:
    labels = [("a", "Hello", Label.POSITIVE), ("b", "Hello", Label.NEGATIVE), ("c", "Hello", Label.NEGATIVE)]
    rated = [talk(*one).model_copy(update={"judge": who}) for one, who in zip(labels, "xyy", strict=True)]
    assert logs_of(rated).repeated == {"c": "b"}
