"""A model's rubrics join a family by the deduplicator's decision, and nothing more is asked for it."""

from collections.abc import Sequence

from pollex.agents.embedded.embedder import Embedder
from pollex.agents.embedded.events.signal import family_of
from pollex.conversations.conversation import Conversation, Label, Turn
from pollex.conversations.logs import Logs
from pollex.graphs.context import NullProgress
from pollex.rubrics.learning.material import GivenAnswers, Material
from pollex.rubrics.learning.measured import merged_families
from pollex.rubrics.learning.settings import LearnSettings
from pollex.rubrics.rubric import Polarity, Quote, Reason, Rubric
from pollex.services.roles import embedded_record

LOG = [
    Conversation(id=id_, turns=(Turn(role="user", content=f"Hello from {id_}."),), label=Label.NEGATIVE)
    for id_ in ("a", "b", "c", "d")
]
REASONS = [Reason(id=f"r-{c.id}", conversation_id=c.id, polarity="dsat", text="It fails.", quotes=()) for c in LOG]


def rubric(id_: str, of: Sequence[str], side: Polarity = "dsat") -> Rubric:
    quotes = tuple(Quote(conversation_id=one, turn=0, text=f"Hello from {one}.") for one in of)
    return Rubric(id=id_, text=f"{id_}.", polarity=side, reason_ids=tuple(f"r-{one}" for one in of), quotes=quotes)


def families(merged: dict[str, str], holds: dict[str, float]) -> dict[str, list[tuple[str, int]]]:
    """Families of the rubric `fails`, into which others were merged: by its id, each form with its count."""
    narrow, rare, good = rubric("no room", "ab"), rubric("no taxi", "c"), rubric("finds it", "d", "sat")
    chosen = rubric("fails", "abcd")
    found = merged_families(
        Material(
            logs=Logs(LOG),
            training=tuple(LOG),
            held_out=(),
            settings=LearnSettings(),
            judge_record=embedded_record(Embedder()),
            table=GivenAnswers("expected", values={id_: {"fails": value} for id_, value in holds.items()}),
            progress=NullProgress(),
            family_of=family_of,
            pool={"sat": (good,), "dsat": (chosen, narrow, rare)},
            chosen=(chosen,),
            merged=merged,
        ),
        LOG,
        REASONS,
    )
    return {id_: [(one["text"], one["among"]) for one in told["members"]] for id_, told in found.items()}


EVERYWHERE = dict.fromkeys("abcd", 10.0)


def test_what_is_merged_into_nothing_that_was_chosen_and_the_reverse_of_a_rubric_are_no_members() -> None:
    assert families({}, EVERYWHERE) == {}
    assert families({"no room": "elsewhere", "finds it": "fails"}, EVERYWHERE) == {}


def test_merged_forms_are_counted_in_the_conversations_of_their_reasons_where_the_rubric_holds() -> None:
    merged = {"no taxi": "fails", "no room": "fails"}
    assert families(merged, EVERYWHERE) == {"fails": [("no room.", 2), ("no taxi.", 1)]}
    assert families(merged, EVERYWHERE | {"b": 0.0, "c": 0.0}) == {"fails": [("no room.", 1)]}
