"""What people wrote with their thumb: what many comments name, proof of events, and never seen by a judge."""

import random

from pollex.agents.embedded.comments import find_frequent_remarks, quote_comment_proving_statement
from pollex.agents.embedded.embedder import Embedder
from pollex.agents.embedded.judge import EmbeddedJudge
from pollex.agents.llm.evidence import make_prompt_items_of_turns
from pollex.conversations.conversation import Conversation, Feedback, Label, Turn
from pollex.rubrics.answers import Question
from pollex.rubrics.rubric import Quote, Rubric

DAYS = ("Monday", "Tuesday", "Friday")
OTHERS = (
    "It took ages.",
    "Rude tone in the end.",
    "No idea why I should pay.",
    "Meh.",
    "My card was charged twice.",
)
PRAISE = ("Quick and friendly!", "Great help.", "Fine.", "Just what I needed.")


def commented_log(each: int = 60, share: float = 0.3, seed: int = 0) -> list[Conversation]:
    """So many conversations with a thumb up and as many down; of the comments of these, a share names a wrong date."""
    rng = random.Random(seed)
    found = []
    for row in range(2 * each):
        up = row % 2 == 0
        day = rng.choice(DAYS)
        wrong = not up and rng.random() < share
        comment = rng.choice(
            ("Booked the wrong date!", "again a wrong date", "That's the wrong date, I said.")
        )
        said = rng.choice(PRAISE) if up else comment if wrong else rng.choice(OTHERS)
        turns = (
            Turn(role="user", content=f"A table on {day}, please. I'm guest {row}."),
            Turn(
                role="assistant",
                content=f"Your table on {rng.choice(DAYS) if wrong else day} is reserved.",
            ),
            Turn(role="user", content="Okay."),
        )
        label = Label.POSITIVE if up else Label.NEGATIVE
        found.append(
            Conversation(
                id=f"c{row:03}", turns=turns, label=label, feedback=(Feedback(comment=said),)
            )
        )
    return found


def test_what_comments_name_and_no_turn_does_is_found_with_a_comment_as_quote() -> None:
    log = commented_log()
    first = next(iter(find_frequent_remarks(log)))
    naming = {one.id for one in log if "wrong date" in one.feedback[0].comment}
    assert (first.text, first.polarity) == ("wrong date", "dsat")
    assert (round((first.share.value or 0) * first.share.n), first.share.n, first.other.value) == (
        len(naming),
        60,
        0,
    )
    assert all(quote.of_comment and "wrong date" in quote.text for quote in first.quotes)
    assert {quote.conversation_id for quote in first.quotes} <= naming


def test_tags_are_named_as_they_are_and_what_few_comments_name_is_not_found() -> None:
    log = [
        one.model_copy(update={"feedback": (Feedback(tags=("Not factual",)),)})
        for one in commented_log(10)
    ]
    assert [(one.text, one.polarity) for one in find_frequent_remarks(log)] == [
        ("not factual", "dsat"),
        ("not factual", "sat"),
    ]
    assert find_frequent_remarks(log[:4]) == ()
    assert find_frequent_remarks([]) == ()


def test_a_comment_that_speaks_of_what_a_reason_says_is_its_proof() -> None:
    chat = Conversation(
        id="a", turns=(), feedback=(Feedback(comment="Nice. But it never booked the table!"),)
    )
    statement = "The assistant can't book a table."
    assert quote_comment_proving_statement(chat, statement) == (
        Quote(conversation_id="a", turn=-1, text="But it never booked the table!"),
    )
    assert quote_comment_proving_statement(chat, "The assistant says that the user is wrong.") == ()


async def test_no_judge_sees_a_comment(embedder: Embedder) -> None:
    chat = commented_log(1)[1]
    bare = chat.model_copy(update={"feedback": ()})
    assert make_prompt_items_of_turns(chat) == make_prompt_items_of_turns(bare)
    said = Quote(conversation_id="x", turn=-1, text="Your table on Friday is reserved.")
    rubric = Rubric(
        id="r",
        text="The assistant reserves a table.",
        polarity="sat",
        source="turns:assistant",
        quotes=(said,),
    )
    questions = [Question.about(rubric), Question.about(rubric.model_copy(update={"quotes": ()}))]
    judge = EmbeddedJudge(embedder)
    assert await judge.judge(chat, questions) == await judge.judge(bare, questions)
    one = await judge.judge(chat, questions[:1])
    other = await EmbeddedJudge(embedder).judge(chat, questions[1:])
    assert one == other, "nor is it one of the judge's examples"
