"""Prompts: what a file may not do, and whole ones as they are sent: order, length, and in the snapshots every word."""

import json
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from reviewed_prompts import require_reviewed, room_of_prompt, snapshots_of

from pollex.errors import WrongUse
from pollex.prompts.data_boundary import make_turn_items
from pollex.prompts.domain import (
    OPTIONAL_PROMPT_PARTS,
    ClosingRole,
    DomainProfile,
    parse_names_of_omitted_prompt_parts,
)
from pollex.prompts.judging import (
    explain_meaning_of_options,
    join_options_in_one_line,
    make_json_schema_of_several_answers,
    prefix_options_with_letters,
    write_lettered_options_one_per_line,
    write_numbered_texts,
    write_options_with_meanings,
)
from pollex.prompts.prompt import (
    PromptLayout,
    build_chat_messages_of_prompt,
    list_prompt_names,
    load_prompt,
    parse_prompt,
)
from pollex.rooms import CORE_PACKAGE
from pollex.rubrics.answers import (
    LIKERT_OPTIONS,
    NEVER_CAME_UP_OPTION,
    NUMERIC_OPTIONS,
    OPTIONS_BY_SCALE,
    Answer,
    Question,
)
from pollex.rubrics.rubric import Rubric

HEAD = '+++\npurpose = "To test."\nvariables = ["who"]\nblocks = ["ds"]\n+++\n\n'
BODY = "# system\n\nHello {who}.{ds?} Mind the domain.{/ds}\n\n# closing\n\nEnd.\n"
HOSTILE = "{who} {0.__class__} {{7*7}} {% x %} %s ${HOME} {/ds} {ds?}\n# closing"


@pytest.mark.parametrize(
    ("text", "clause"),
    [
        ("no front matter", "no front matter"),
        (HEAD + BODY.replace("{who}", "{who} }"), "a brace that is no mark"),
        (HEAD + BODY.replace("{who}", "{who} {0.__class__}"), "a brace that is no mark"),
        (HEAD + BODY.replace("{/ds}", ""), "block ds is not closed"),
        (HEAD + BODY.replace("{ds?}", ""), "is out of place"),
        (HEAD + BODY.replace(" Mind", "{cdp?}"), "is out of place"),
        (HEAD + BODY.replace("{who}", "you"), "not those that it declares"),
        (HEAD + BODY.replace("End.", "{other}"), "not those that it declares"),
        (HEAD + BODY.replace("# closing", "# ending"), "the sections must be"),
    ],
)
def test_a_prompt_file_that_breaks_a_rule_is_refused(text: str, clause: str) -> None:
    with pytest.raises(WrongUse, match=clause):
        parse_prompt("test", text)


def test_nothing_in_a_value_is_ever_evaluated_and_a_block_can_be_left_out() -> None:
    prompt = parse_prompt("test", HEAD + BODY)
    assert prompt.render("system", {"who": HOSTILE}) == f"Hello {HOSTILE}. Mind the domain."
    assert prompt.render("system", {"who": "you"}, {"ds"}) == "Hello you."
    with pytest.raises(WrongUse, match="no value for who"):
        prompt.render("system", {})
    with pytest.raises(WrongUse, match="no such part of a prompt: cpd"):
        parse_names_of_omitted_prompt_parts({"ds", "cpd"})
    assert parse_names_of_omitted_prompt_parts(["ds", "cdp"]) == {"ds", "cdp"}


def test_the_version_changes_with_text_and_schema_and_not_with_comments_for_people() -> None:
    version = parse_prompt("test", HEAD + BODY).version
    assert parse_prompt("test", HEAD.replace("To test", "For tests") + BODY).version == version
    assert parse_prompt("test", HEAD + BODY.replace("End", "The end")).version != version
    assert (
        parse_prompt(
            "test", HEAD + BODY + '\n# schema\n\n```json\n{"type": "object"}\n```\n'
        ).version
        != version
    )


def test_every_bundled_prompt_says_what_it_is_for_and_leaves_no_mark_behind() -> None:
    for prompt in map(load_prompt, list_prompt_names()):
        values = DomainProfile.neutral().values() | dict.fromkeys(prompt.variables, "VALUE")
        for without in [frozenset[str](), frozenset(OPTIONAL_PROMPT_PARTS)]:
            text = prompt.render("system", values, without) + prompt.render(
                "closing", values, without
            )
            assert not [mark for mark in ("{", "}", "\n\n\n") if mark in text], prompt.name
        assert prompt.purpose.endswith(".")


def test_every_schema_is_closed_and_asks_for_all_its_properties() -> None:
    """What strict structured output demands of every object."""
    schemas = [prompt.schema for prompt in map(load_prompt, list_prompt_names()) if prompt.schema]
    assert schemas
    for part in (part for schema in schemas for part in objects(schema)):
        assert part["additionalProperties"] is False
        assert part["required"] == list(part["properties"])
        assert all("type" in its for its in part["properties"].values())


def objects(schema: object) -> list[dict[str, Any]]:
    if isinstance(schema, list):
        return [found for part in schema for found in objects(part)]
    if not isinstance(schema, dict):
        return []
    here = [schema] if schema.get("type") == "object" else []
    return here + [found for part in schema.values() for found in objects(part)]


def test_ds_and_cdp_can_each_be_switched_off_in_generation() -> None:
    values = DomainProfile.neutral().values() | {"most": "5", "feeling": "satisfied", "thumb": "up"}
    for name in (one for one in list_prompt_names() if one.startswith(("extract", "summarize"))):
        whole, *parts = (
            load_prompt(name).render("closing", values, set(off)) for off in ((), ("ds",), ("cdp",))
        )
        assert max(map(len, parts)) < len(whole), name
        assert ["Both parties answer" in part for part in parts] == [True, False], name


EXAMPLES = Path(__file__).parents[3] / "examples"
OPTIONS = ["Strongly Disagree", "Disagree", "Neutral", "Agree", "Strongly Agree"]
TURNS = [
    ("user", "My build fails: error CS0103."),
    ("assistant", "List<T> needs `using`."),
    ("user", "Works!"),
]
RUBRICS = ["The assistant names the cause.", 'The user writes "thanks".']
VALUES = DomainProfile.load(EXAMPLES / "debugging.toml").values() | {
    "most": "5",
    "feeling": "dissatisfied",
    "thumb": "down",
    "items": write_numbered_texts(RUBRICS),
    "item": RUBRICS[0],
    "options": join_options_in_one_line(OPTIONS),
    **explain_meaning_of_options(OPTIONS),
    "question": '"Was the task completed?"',
    "instructions": "Answer yes where the user got what was asked for.",
}
ITEMS = {
    "spur": [
        {"known": 1, "rubric": "The assistant explains."},
        {"i": 1, "reason": "The user confirms the fix."},
    ],
    "summarize": [
        {"i": 1, "reason": "The user confirms the fix."},
        {"known": 1, "rubric": "The assistant explains."},
        {"other_side": 1, "rubric": "The assistant lists causes."},
        {"pair": 1, "satisfied": "The fix worked.", "dissatisfied": "The fix failed."},
    ],
    "deduplicate": [{"i": 1, "rubric": "The fix works."}, {"i": 2, "rubric": "The bug is gone."}],
}


def sent(name: str, layout: PromptLayout) -> list[dict[str, str]]:
    prompt = load_prompt(name)
    items = ITEMS.get(name.partition("_")[0], make_turn_items(TURNS))
    options = OPTIONS if name == "judge_batch_paper" else [*OPTIONS, NEVER_CAME_UP_OPTION]
    schema = (
        make_json_schema_of_several_answers(prompt.schema, len(RUBRICS), options)
        if name.startswith("judge_batch")
        else None
    )
    listing = {
        "judge_question": write_lettered_options_one_per_line(OPTIONS),
        "judge_batch": write_options_with_meanings([*OPTIONS, NEVER_CAME_UP_OPTION]),
    }
    values = VALUES | {"options": listing.get(name, join_options_in_one_line(OPTIONS))}
    values |= {"most": "three"} if name.startswith("extract") else {}
    return build_chat_messages_of_prompt(prompt, values, items, layout, schema=schema)


def test_every_prompt_is_as_it_was_reviewed() -> None:
    """To take a change over: WRITE_SNAPSHOTS=1 pytest tests/unit/prompts, and read the diff."""
    parts_off = map(frozenset, ((), ("ds",), ("cdp",), ("ds", "cdp", "domain")))
    for name, off in product(list_prompt_names(), parts_off):
        if not off or off & load_prompt(name).blocks:
            layout = PromptLayout(b"salt", without=off, inline_schema=True)
            file = "-".join([name, *(["without"] if off else []), *sorted(off)])
            folder = snapshots_of(room_of_prompt(name))
            require_reviewed(sent(name, layout), folder / f"{file}.txt")
    snapshots = {file.stem.split("-")[0] for file in snapshots_of(CORE_PACKAGE).iterdir()}
    of_the_core = {name for name in list_prompt_names() if room_of_prompt(name) == CORE_PACKAGE}
    assert snapshots == of_the_core, "none is left over"


@pytest.mark.parametrize(
    ("closing", "roles"),
    [
        ("system", ["system", "user", "system"]),
        ("user", ["system", "user", "user"]),
        ("merged", ["system", "user"]),
    ],
)
def test_the_task_comes_last_whoever_says_it(closing: ClosingRole, roles: list[str]) -> None:
    said = sent("judge_batch", PromptLayout(b"salt", closing))
    assert [message["role"] for message in said] == roles
    assert said[-1]["content"].endswith(write_numbered_texts(RUBRICS))
    prompt = load_prompt("judge_batch")
    layout = PromptLayout(b"salt", closing)
    first, second = (
        build_chat_messages_of_prompt(
            prompt, VALUES | {"items": write_numbered_texts([text])}, make_turn_items(TURNS), layout
        )
        for text in RUBRICS
    )
    assert first[:-1] == second[:-1], "calls share all but their task"
    assert first[-1] != second[-1]


@pytest.mark.parametrize(
    "profile", [DomainProfile.neutral(), DomainProfile.load(EXAMPLES / "debugging.toml")]
)
def test_twenty_rubrics_take_at_most_2100_tokens_beside_the_conversation(
    profile: DomainProfile,
) -> None:
    """Two calls of ten rubrics and a canary, 70 characters a rubric, a token for every four characters."""
    prompt = load_prompt("judge_batch")
    rubrics = ["x" * 70] * 10 + ["x" * 55]
    options = prefix_options_with_letters([*OPTIONS, NEVER_CAME_UP_OPTION])
    schema = make_json_schema_of_several_answers(prompt.schema, len(rubrics), options)
    values = profile.values() | {
        "items": write_numbered_texts(rubrics),
        "options": write_options_with_meanings(options),
    }
    said = build_chat_messages_of_prompt(
        prompt, values, [], PromptLayout(b"salt"), schema=schema, without=frozenset({"sources"})
    )
    characters = sum(len(message["content"]) for message in said) + len(
        json.dumps(schema, separators=(",", ":"))
    )
    assert 2 * characters / 4 <= 2100, characters


def test_an_option_or_item_that_could_be_structure_is_escaped() -> None:
    assert (
        join_options_in_one_line(["Yes", 'No, "or"', "<b>"])
        == r'Yes, "No, \"or\"", "\u003cb\u003e"'
    )
    assert write_lettered_options_one_per_line(["Yes", "<b>"]) == 'A. Yes\nB. "\\u003cb\\u003e"'
    assert write_numbered_texts(["a\n2. b"]) == '1. "a\\n2. b"'
    with pytest.raises(WrongUse, match="27 options"):
        write_lettered_options_one_per_line([str(i) for i in range(27)])


def test_the_schema_of_a_batch_names_every_answer_once() -> None:
    base = load_prompt("judge_batch").schema
    schema = make_json_schema_of_several_answers(base, 2, ["Yes", "No"])
    assert schema["required"] == list(schema["properties"]) == ["1", "2"]
    assert schema["$defs"]["a"]["properties"]["answer"] == {"type": "string", "enum": ["Yes", "No"]}
    assert base["$defs"]["a"]["properties"]["answer"]["enum"] == []


RUBRIC = Rubric(id="r", text="The user thanks.", polarity="sat")


def closing(name: str, options: list[str]) -> str:
    gaps = {"items": "1. x", "item": "x", "options": "…", **explain_meaning_of_options(options)}
    return load_prompt(name).render("closing", DomainProfile.neutral().values() | gaps)


def test_grades_are_explained_and_words_are_not() -> None:
    grades, words = (
        [option.text for option in scale] for scale in (NUMERIC_OPTIONS, LIKERT_OPTIONS)
    )
    for name in ("judge_batch_paper", "judge_question"):
        assert "from 1, not at all, to 10, wholly" in closing(name, grades)
        assert "5 if not applicable" in closing(name, grades)
        assert "Neutral if not applicable" in closing(name, words)
        assert "from" not in closing(name, words)


def test_an_answer_tells_the_scale_it_was_given_on() -> None:
    graded = Answer(question_id="r", probabilities=(0.0,) * 9 + (1.0,), chosen=9, source="point")
    worded = Answer(
        question_id="r", probabilities=(0.0, 0.5, 0.0, 0.5, 0.0), chosen=1, source="logprobs"
    )
    assert (graded.value(), worded.value(), worded.mode()) == (10.0, 5.0, 2.5)
    assert [round(option.value, 3) for option in NUMERIC_OPTIONS[:3]] == [0.0, 1.111, 2.222]
    assert (NUMERIC_OPTIONS[-1].text, NUMERIC_OPTIONS[-1].value) == ("10", 10.0)
    assert [Question.about(RUBRIC, scale).options for scale in OPTIONS_BY_SCALE] == [
        LIKERT_OPTIONS,
        LIKERT_OPTIONS,
        LIKERT_OPTIONS,
        NUMERIC_OPTIONS,
    ]
