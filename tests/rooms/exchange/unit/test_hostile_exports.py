"""Words of a stranger's set in the files that other tools run: they stay words."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hostile_files import HOSTILE, shapes
from rubric_set_by_hand import rubric, rubric_set

from pollex.errors import BadRubrics
from pollex.formats.peers.quoting import escape_nunjucks, fill_template, separate_braces
from pollex.rooms.exchange.formats.peers.targets import EXPORT_TARGETS, make_sheet
from pollex.rubrics.judge_settings import JudgeSettings
from pollex.rubrics.records import JudgeRecord
from pollex.rubrics.rubric_set import RubricSet, hash_rubrics

Change = Callable[[RubricSet, str], RubricSet]


def stranger(words: str = "plain") -> RubricSet:
    rubrics = tuple(
        rubric(n, side).model_copy(update={"id": f"{n}0e878080f41", "text": text})
        for n, (side, text) in enumerate([("sat", words), ("dsat", "The user waits.")], start=1)
    )
    judge = JudgeRecord(
        kind="llm", name="plain", fingerprint="f00", options=JudgeSettings(scale="likert-domain")
    )
    return rubric_set(rubrics=rubrics, judge=judge, rubrics_digest=hash_rubrics(rubrics))


def with_rubric(rubrics: RubricSet, **changes: str) -> RubricSet:
    first, *rest = rubrics.rubrics
    changed = (first.model_copy(update=changes), *rest)
    return rubrics.model_copy(update={"rubrics": changed, "rubrics_digest": hash_rubrics(changed)})


def in_domain(name: str) -> Change:
    return lambda rubrics, words: rubrics.model_copy(
        update={
            "domain": rubrics.domain.model_copy(
                update={name: (words,) if name == "expectations" else words}
            )
        }
    )


FIELDS: Mapping[str, Change] = {
    "judge.name": lambda rubrics, words: rubrics.model_copy(
        update={"judge": rubrics.judge.model_copy(update={"name": words})}
    ),
    "run": lambda rubrics, words: rubrics.model_copy(update={"run": words}),
    "pollex": lambda rubrics, words: rubrics.model_copy(update={"pollex": words}),
    "created": lambda rubrics, words: rubrics.model_copy(update={"created": words}),
    "id": lambda rubrics, words: with_rubric(rubrics, id=words),
    "text": lambda rubrics, words: with_rubric(rubrics, text=words),
    "note": lambda rubrics, words: with_rubric(rubrics, note=words),
    **{
        f"domain.{name}": in_domain(name)
        for name in ("name", "assistant", "user", "task", "ideal_conversation", "expectations")
    },
}


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("target", EXPORT_TARGETS.values(), ids=lambda target: target.name)
def test_no_field_of_a_set_becomes_code_or_structure_of_an_export(target: Any, field: str) -> None:
    expected = shapes(target.files(make_sheet(stranger())))
    for words in HOSTILE:
        files = target.files(make_sheet(FIELDS[field](stranger(), words)))
        assert shapes(files) == expected, f"{field}: {words!r}"


def test_template_languages_find_no_place_and_no_file_in_words() -> None:
    for words in HOSTILE:
        assert not any(mark in separate_braces(words) for mark in ("{{", "{%", "{#", "}}"))
        inside = escape_nunjucks(words).removeprefix("{% raw %}").removesuffix("{% endraw %}")
        assert "endraw %}" not in inside or "{ %" in inside
        assert not escape_nunjucks(words).lstrip().startswith("file:")


def test_a_template_takes_nothing_that_is_not_quoted() -> None:
    with pytest.raises(TypeError, match="nothing quotes"):
        fill_template("ragas", prompt="words", rubrics="RUBRICS = []")


@pytest.mark.parametrize("field", ["judge.name", "run", "pollex", "id"])
def test_a_set_whose_names_are_no_names_is_not_read(field: str) -> None:
    RubricSet.parse(stranger().model_dump(mode="json"))
    for words in {*HOSTILE} - {"-", "null", "file://evil.js"}:
        hostile = FIELDS[field](stranger(), words).model_dump(mode="json")
        with pytest.raises(BadRubrics, match=r"is no name|has no words"):
            RubricSet.parse(hostile)
