"""Prompt files: what is refused, what a block and a gap do, and that every bundled one keeps the rules."""

from typing import Any

import pytest

from pollex.errors import WrongUse
from pollex.prompts.domain import SWITCHES, DomainProfile, switched_off
from pollex.prompts.prompt import load, names, parse

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
        parse("test", text)


def test_nothing_in_a_value_is_ever_evaluated_and_a_block_can_be_left_out() -> None:
    prompt = parse("test", HEAD + BODY)
    assert prompt.render("system", {"who": HOSTILE}) == f"Hello {HOSTILE}. Mind the domain."
    assert prompt.render("system", {"who": "you"}, {"ds"}) == "Hello you."
    with pytest.raises(WrongUse, match="no value for who"):
        prompt.render("system", {})
    with pytest.raises(WrongUse, match="no such part of a prompt: cpd"):
        switched_off({"ds", "cpd"})
    assert switched_off(["ds", "cdp"]) == {"ds", "cdp"}


def test_the_version_changes_with_text_and_schema_and_not_with_comments_for_people() -> None:
    version = parse("test", HEAD + BODY).version
    assert parse("test", HEAD.replace("To test", "For tests") + BODY).version == version
    assert parse("test", HEAD + BODY.replace("End", "The end")).version != version
    assert parse("test", HEAD + BODY + '\n# schema\n\n```json\n{"type": "object"}\n```\n').version != version


def test_every_bundled_prompt_says_what_it_is_for_and_leaves_no_mark_behind() -> None:
    for prompt in map(load, names()):
        values = DomainProfile.neutral().values() | dict.fromkeys(prompt.variables, "VALUE")
        for without in [frozenset[str](), frozenset(SWITCHES)]:
            text = prompt.render("system", values, without) + prompt.render("closing", values, without)
            assert not [mark for mark in ("{", "}", "\n\n\n") if mark in text], prompt.name
        assert prompt.purpose.endswith(".")


def test_every_schema_is_closed_and_asks_for_all_its_properties() -> None:
    """What strict structured output demands of every object."""
    schemas = [prompt.schema for prompt in map(load, names()) if prompt.schema]
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
    for name in (one for one in names() if one.startswith(("extract", "summarize"))):
        whole, *parts = (load(name).render("closing", values, set(off)) for off in ((), ("ds",), ("cdp",)))
        assert max(map(len, parts)) < len(whole), name
        assert ["Both parties answer" in part for part in parts] == [True, False], name
