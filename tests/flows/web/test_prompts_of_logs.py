"""The prompt of a change is filled in from the system message of the log, where the log has one, and says so."""

import re
from html import unescape
from pathlib import Path

from rubric_set_by_hand import rubric_set
from web_site import client_of, made_app

from pollex.conversations.conversation import Conversation, Turn
from pollex.store.rows import make_conversation_rows, make_fact_row
from pollex.store.rubric_sets import compute_rubric_set_digest
from pollex.store.store import Store

PROMPT = "You are the assistant of a hotel.\nBe brief."


def learned_from(store: Store, prompts: list[str]) -> str:
    """A rubric set that was learned from conversations with system messages; returns its id."""
    run = store.begin("learn", arguments={"logs": ["hotel.jsonl"]}, fingerprint={}, versions={})
    rubrics = rubric_set(run=run.id)
    store.put([make_fact_row(run.id, "rubric_set", "set", rubrics)])
    conversations = []
    for number, prompt in enumerate(prompts):
        system = (Turn(role="system", content=prompt),) if prompt else ()
        turns = (*system, Turn(role="user", content=f"A room for {number}?"))
        conversations.append(Conversation(id=f"c{number}", turns=turns))

    store.put(make_conversation_rows(run.id, conversations))
    store.finish(run.id, "done")
    return compute_rubric_set_digest(rubrics)


async def form_with(folder: Path, prompts: list[str], **query: str) -> tuple[dict[str, str], str]:
    """The texts that the form of a proof holds, and its words."""
    with Store.open(folder / ".pollex") as store:
        set_id = learned_from(store, prompts)
        async with client_of(made_app(store)) as client:
            given = {"rubrics": set_id} | query
            page = unescape((await client.get("/begin/remedy-run", params=given)).text)
    texts = dict(re.findall(r'<textarea id="o-(prompt|edit)"[^>]*>([^<]*)</textarea>', page))
    return texts, page


async def test_the_prompt_that_most_conversations_have_is_filled_in_and_its_log_is_named(
    tmp_path: Path,
) -> None:
    texts, page = await form_with(tmp_path, [PROMPT, PROMPT, "An older one.", ""])
    assert texts["prompt"] == PROMPT
    assert "Filled in from the log hotel.jsonl: the system message of 2 of 4" in page
    assert "1 other message" in page.replace("\N{NO-BREAK SPACE}", " ")


async def test_a_sentence_to_try_stands_behind_it_in_the_changed_prompt(tmp_path: Path) -> None:
    texts, _ = await form_with(tmp_path, [PROMPT, PROMPT], sentence="Offer another day.")
    assert texts["edit"] == f"{PROMPT}\nOffer another day."


async def test_a_log_without_system_messages_leaves_the_field_empty(tmp_path: Path) -> None:
    texts, page = await form_with(tmp_path, ["", ""])
    assert texts == {"prompt": "", "edit": ""}
    assert "Filled in from" not in page


async def test_prompts_that_are_made_for_each_user_are_not_filled_in(tmp_path: Path) -> None:
    texts, _ = await form_with(tmp_path, ["You talk to Ann.", "You talk to Bo."])
    assert texts["prompt"] == ""
