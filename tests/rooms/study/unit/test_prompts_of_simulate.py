"""The prompts of simulated dialogues, word by word."""

from itertools import product

from reviewed_prompts import require_reviewed, snapshots_of

from pollex.prompts.data_boundary import DataItem, make_turn_items
from pollex.prompts.prompt import PromptLayout, build_chat_messages_of_prompt
from pollex.rooms.study.prompts.simulate import systems

SNAPSHOTS = snapshots_of("pollex.rooms.study")
TURNS = [
    ("user", "My build fails: error CS0103."),
    ("assistant", "List<T> needs `using`."),
    ("user", "Works!"),
]
TOLD: list[DataItem] = [
    {"topic": "You want to return a kettle."},
    {"persona": "Short of time."},
    *make_turn_items(TURNS),
    {"document": 1, "name": "returns.md", "text": "Within thirty days."},
]


def test_every_prompt_is_as_it_was_reviewed() -> None:
    prompts = systems.list_prompts()
    for prompt, off in product(prompts, map(frozenset, ((), ("documents",)))):
        if off <= prompt.blocks:
            layout = PromptLayout(b"salt", without=off, inline_schema=True)
            file = "-".join([f"simulate_{prompt.name}", *(["without"] if off else []), *off])
            require_reviewed(
                build_chat_messages_of_prompt(prompt, {}, TOLD, layout), SNAPSHOTS / f"{file}.txt"
            )
    names = {file.stem.split("-")[0] for file in SNAPSHOTS.iterdir()}
    assert names == {f"simulate_{prompt.name}" for prompt in prompts}, "none is left over"
