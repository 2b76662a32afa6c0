"""The planted world does what it says, the model slips as often as it says, and pollex gets back what was planted."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from protocol_server import ProtocolServer
from small_runs import Pollex

from planted.model import Reader
from planted.world import (
    AGAINST_IT,
    WHATEVER_IT_IS,
    WITH_THE_THUMB,
    Signal,
    World,
    signal_of,
    signals,
)
from pollex.agents.checks import explain_rubric_refusal
from pollex.conversations.conversation import Conversation
from pollex.prompts.data_boundary import write_items_within_boundary
from pollex.prompts.domain import DomainProfile
from pollex.prompts.judging import write_numbered_texts, write_options_with_meanings
from pollex.prompts.prompt import PromptLayout, build_chat_messages_of_prompt, load_prompt
from pollex.rubrics.answers import LIKERT_OPTIONS, NEVER_CAME_UP_OPTION
from pollex.rubrics.rubric_set import RubricSet

DEBUGGING = Path(__file__).parents[3] / "examples" / "debugging.toml"
SALT = b"salt"
COUNT = 150


def asked(
    prompt: str, data: list[dict[str, object]], *off: str, **values: str
) -> list[dict[str, str]]:
    given = DomainProfile.load(DEBUGGING).values() | {"most": "three"} | values
    return build_chat_messages_of_prompt(
        load_prompt(prompt), given, data, PromptLayout(SALT, without=frozenset(off))
    )


def turns_of(conversation: Conversation) -> list[dict[str, object]]:
    return [
        {"i": i, "role": turn.role, "text": turn.content}
        for i, turn in enumerate(conversation.turns)
    ]


def judged(reader: Reader, conversation: Conversation, texts: list[str], *off: str) -> list[int]:
    options = [option.text for option in LIKERT_OPTIONS]
    prompt = asked(
        "judge_batch",
        turns_of(conversation),
        *off,
        items=write_numbered_texts(texts),
        options=write_options_with_meanings([*options, NEVER_CAME_UP_OPTION]),
    )
    reply = json.loads(reader.reply(prompt) or "")
    return [options.index(reply[str(number)]["answer"]) for number in range(1, len(texts) + 1)]


def test_what_is_no_prompt_of_pollex_is_not_answered() -> None:
    assert (
        Reader().reply([{"role": "user", "content": "Greet me in one short JSON object."}]) is None
    )
    assert Reader().reply([{"role": "user", "content": "x"}] * 3) is None


def test_every_text_and_every_line_speaks_of_its_own_signal_alone_and_a_text_may_be_a_rubric() -> (
    None
):
    for signal in signals():
        assert [signal_of(text) for text in signal.texts] == [signal] * len(signal.texts), (
            signal.key
        )
        assert not any(explain_rubric_refusal(text) for text in signal.texts)
        assert [other for other in signals() if other.happens(signal.lines)] == [signal]


def test_signals_occur_as_often_as_the_world_says() -> None:
    world = World(3)
    positive, happens = world.happenings(20_000)
    for place, signal in enumerate(signals()):
        own = positive if signal.polarity == "sat" else ~positive
        expected = (
            (WITH_THE_THUMB, AGAINST_IT)
            if signal in world.causes
            else (WHATEVER_IT_IS, WHATEVER_IT_IS)
        )
        assert (happens[own, place].mean(), happens[~own, place].mean()) == pytest.approx(
            expected, abs=0.02
        )


def test_conversations_say_what_happens_in_them_and_nothing_else() -> None:
    world = World(1)
    _, happens = world.happenings(50)
    for conversation, row in zip(world.conversations(50), happens, strict=True):
        said = [turn.content for turn in conversation.turns]
        assert [signal.happens(said) for signal in signals()] == row.tolist()


def test_the_judge_is_on_the_true_side_as_often_as_its_agreement() -> None:
    world = World(2)
    texts = [signal.texts[0] for signal in signals()[:10]]
    _, happens = world.happenings(COUNT)
    chosen = np.array([judged(Reader(), one, texts) for one in world.conversations(COUNT)])
    assert ((chosen >= 3) == happens[:, :10]).mean() == pytest.approx(0.85, abs=0.02)
    # neutral only for what it has no opinion on
    assert set(chosen.ravel().tolist()) == {0, 1, 3, 4}
    assert judged(Reader(), World(0).conversations(1)[0], ["The moon is full."]) == [2]


def test_without_the_domain_a_judge_agrees_less_on_the_domain_alone() -> None:
    world = World(2)
    reader = Reader()
    _, happens = world.happenings(COUNT)
    for kind, expected in (("domain", 0.7), ("plain", 0.85)):
        places = [i for i, signal in enumerate(signals()) if signal.kind == kind][:8]
        texts = [signals()[i].texts[0] for i in places]
        chosen = np.array(
            [judged(reader, one, texts, "domain") for one in world.conversations(COUNT)]
        )
        assert ((chosen >= 3) == happens[:, places]).mean() == pytest.approx(expected, abs=0.03)


@pytest.mark.parametrize(("off", "kind"), [("ds", "domain"), ("cdp", "design")])
def test_what_a_prompt_does_not_tell_is_seldom_noticed(off: str, kind: str) -> None:
    world = World(4)
    kinds: dict[str, list[float]] = {}
    for without in ((), (off,)):
        found: list[Signal | None] = []
        for one in world.conversations(COUNT):
            prompt = asked(
                f"extract_{'sat' if one.label.value == 'positive' else 'dsat'}",
                turns_of(one),
                *without,
            )
            found += [
                signal_of(r["reason"]) for r in json.loads(Reader().reply(prompt) or "")["reasons"]
            ]
        assert None not in found
        for name in ("plain", "domain", "design"):
            share = sum(s is not None and s.kind == name for s in found) / len(found)
            kinds.setdefault(name, []).append(share)
    before, after = kinds[kind]
    assert after < before / 2
    assert all(shares[1] > shares[0] for name, shares in kinds.items() if name != kind)


def test_the_same_prompt_has_the_same_reply_and_another_seed_another() -> None:
    prompts = [asked("extract_sat", turns_of(one)) for one in World(0).conversations(20)]
    replies = [Reader().reply(prompt) for prompt in prompts]
    assert replies == [Reader().reply(prompt) for prompt in prompts]
    assert replies != [Reader(seed=1).reply(prompt) for prompt in prompts]


def test_slips_do_not_depend_on_the_secret_of_a_store() -> None:
    items = turns_of(World(0).conversations(1)[0])
    prompt = asked("extract_dsat", items)
    other = [
        prompt[0],
        {"role": "user", "content": write_items_within_boundary(items, b"another")},
        prompt[2],
    ]
    assert Reader().reply(prompt) == Reader().reply(other)


def learnt_over_http(
    pollex: Pollex, folder: Path, world: World, agreement: float
) -> tuple[float, dict[str, Any]]:
    """Share of the planted signals among as many rubrics as were planted, and what `learn` told."""
    log = world.write_log(folder / "log.jsonl", 100)
    reader = {"seed": world.seed, "agreement": agreement}
    with ProtocolServer(script=[{"do": "planted", "reader": reader}]) as server:
        asking = ["--model", "planted", "--base-url", server.url, "--domain", DEBUGGING]
        ended = pollex(
            "learn", log, *asking, "--set", "without=built-in", "--budget", world.planted, "--json"
        )
        # nothing was kept from before: all of it was asked
        assert server.counts()["received"] > 100
    assert ended.code == 0, ended.err
    rubrics = RubricSet.load(folder / "rubrics.json")
    return world.recovered(rubric.text for rubric in rubrics.rubrics), ended.last


def test_pollex_gets_back_what_was_planted_over_http(pollex: Pollex, tmp_path: Path) -> None:
    recovered, told = learnt_over_http(pollex, tmp_path, World(0), agreement=0.85)
    assert recovered >= 0.7  # 0.83 here, as many rubrics as signals
    assert told["held_out"]["auc"] > 0.75


def test_what_a_model_says_that_guesses_gives_little_of_it_back(
    pollex: Pollex, tmp_path: Path
) -> None:
    recovered, told = learnt_over_http(pollex, tmp_path, World(0), agreement=0.5)
    assert recovered < 0.7
    low, high = told["held_out"]["intervals"]["auc"]
    assert low < 0.5 < high


def test_the_answers_of_a_model_that_guesses_have_nothing_to_do_with_the_thumbs() -> None:
    world = World(0)
    reader = Reader(agreement=0.5)
    texts = [signal.texts[0] for signal in world.causes[:10]]
    conversations = world.conversations(200)
    agreed = np.array([judged(reader, one, texts) for one in conversations]) >= 3
    up = np.array([one.label.value == "positive" for one in conversations])
    assert np.abs(agreed[up].mean(axis=0) - agreed[~up].mean(axis=0)).max() < 0.15
