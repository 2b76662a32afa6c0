"""Words of a stranger's set in the files that other tools run: they stay words."""

import ast
import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest
import yaml
from rubric_set_by_hand import rubric, rubric_set

from pollex.errors import BadRubrics
from pollex.formats.peers.cases import CASE_FORMS, CaseCheck, ReplyCase, case_files
from pollex.formats.peers.quoting import filled, nunjucks, unbraced
from pollex.formats.peers.targets import TARGETS, sheet_of
from pollex.rubrics.judge_settings import JudgeSettings
from pollex.rubrics.records import JudgeRecord
from pollex.rubrics.rubric_set import RubricSet, digest_of

HOSTILE = (
    '"); import os; os.system("id"); ("',
    '"""\nimport os\n"""',
    "'''\\\n'''; x = 1 #",
    "a\nimport os\nb",
    "a\r\u2028\u2029\x85import os",
    "x: {y: 1}\n- !!python/object/apply:os.system [id]",
    "# - *a &b !c | > % @ `",
    "{{ env.OPENAI_API_KEY }} {% endraw %}{{{ env.X }}}{%- endraw -%}{{ 1 }} {# c #}",
    "*/ process.exit() /* // \\",
    "file://evil.js",
    "%s {0} {x!r} $HOME << 1 >> <% 1 %> <# c #>",
    "[x](javascript:1) **b** <script>",
    "-",
    "null",
    "\\",
    "ends with a backslash\\",
    "\x00\x1b\x7f\ufeff🔑",
)
Change = Callable[[RubricSet, str], RubricSet]


def stranger(words: str = "plain") -> RubricSet:
    rubrics = tuple(
        rubric(n, side).model_copy(update={"id": f"{n}0e878080f41", "text": text})
        for n, (side, text) in enumerate([("sat", words), ("dsat", "The user waits.")], start=1)
    )
    judge = JudgeRecord(
        kind="llm", name="plain", fingerprint="f00", options=JudgeSettings(scale="likert-domain")
    )
    return rubric_set(rubrics=rubrics, judge=judge, rubrics_digest=digest_of(rubrics))


def with_rubric(rubrics: RubricSet, **changes: str) -> RubricSet:
    first, *rest = rubrics.rubrics
    changed = (first.model_copy(update=changes), *rest)
    return rubrics.model_copy(update={"rubrics": changed, "rubrics_digest": digest_of(changed)})


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


def shape_of_code(text: str) -> str:
    """Return what code does, with its texts left out: a text of many lines is one, too."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value = ""
    return ast.dump(tree)


def shape_of_value(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: shape_of_value(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [shape_of_value(inner) for inner in value]
    return type(value).__name__


def shapes(files: Mapping[str, str]) -> dict[str, Any]:
    """Return what is left of files without the words of the set."""
    found: dict[str, Any] = {}
    for name, text in files.items():
        if name.endswith(".py"):
            found[name] = shape_of_code(text)
        elif name.endswith((".yaml", ".json")):
            found[name] = shape_of_value(
                yaml.safe_load(text) if name.endswith(".yaml") else json.loads(text)
            )
            # comments are words, too: nothing of a set stands outside
            if name.endswith(".yaml"):
                found["lines"] = [
                    line.split(":")[0] for line in text.split("\n") if not line.startswith("#")
                ]
        elif name.endswith(".cjs"):
            lines = [line for line in text.split("\n") if not line.startswith("//")]
            assert json.loads(lines[0].removeprefix("const NAMES = ").removesuffix(";"))
            found[name] = lines[1:]
            assert len(text.splitlines()) == len(text.split("\n")) - 1, (
                "a line ends where no reader expects it"
            )
        elif name.endswith(".jsonl"):
            found[name] = [shape_of_value(json.loads(line)) for line in text.splitlines()]
    return found


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("target", TARGETS.values(), ids=lambda target: target.name)
def test_no_field_of_a_set_becomes_code_or_structure_of_an_export(target: Any, field: str) -> None:
    expected = shapes(target.files(sheet_of(stranger())))
    for words in HOSTILE:
        files = target.files(sheet_of(FIELDS[field](stranger(), words)))
        assert shapes(files) == expected, f"{field}: {words!r}"


@pytest.mark.parametrize("tool", CASE_FORMS)
@pytest.mark.parametrize(
    "field", ["model", "id", "rubric", "text", "quote", "content", "conversation", "part"]
)
def test_no_field_of_a_case_becomes_code_or_structure(tool: str, field: str) -> None:
    def files(words: str) -> dict[str, str]:
        told = dict.fromkeys(
            ("model", "id", "rubric", "text", "quote", "content", "conversation", "part"), "plain"
        )
        told[field] = words
        check = CaseCheck(told["rubric"], "sat", told["text"], told["quote"])
        messages = [{"role": "user", "content": told["content"]}]
        case = ReplyCase(told["id"], messages, [check], told["conversation"], 1, told["part"])
        return case_files(tool, [case], told["model"])

    def known(found: dict[str, str]) -> dict[str, Any]:
        # the names of metadata are ids of rubrics: any words, but one name
        text = json.dumps(shapes(found))
        return {
            "shape": text.replace(json.dumps(words)[1:-1], "plain") if field == "rubric" else text
        }

    for words in HOSTILE:
        made = files(words)
        assert known(made) == known(files("plain")), f"{field}: {words!r}"
        if tool == "promptfoo":
            (test,) = [json.loads(line) for line in made["tests.jsonl"].splitlines()]
            spoken = json.dumps([test["vars"], test["assert"], test["description"]])
            assert not any(mark in spoken for mark in ("{{", "{%", "{#")), f"{field}: {words!r}"


def test_template_languages_find_no_place_and_no_file_in_words() -> None:
    for words in HOSTILE:
        assert not any(mark in unbraced(words) for mark in ("{{", "{%", "{#", "}}"))
        inside = nunjucks(words).removeprefix("{% raw %}").removesuffix("{% endraw %}")
        assert "endraw %}" not in inside or "{ %" in inside
        assert not nunjucks(words).lstrip().startswith("file:")


def test_a_template_takes_nothing_that_is_not_quoted() -> None:
    with pytest.raises(TypeError, match="nothing quotes"):
        filled("ragas", prompt="words", rubrics="RUBRICS = []")


@pytest.mark.parametrize("field", ["judge.name", "run", "pollex", "id"])
def test_a_set_whose_names_are_no_names_is_not_read(field: str) -> None:
    RubricSet.parse(stranger().model_dump(mode="json"))
    for words in {*HOSTILE} - {"-", "null", "file://evil.js"}:
        hostile = FIELDS[field](stranger(), words).model_dump(mode="json")
        with pytest.raises(BadRubrics, match=r"is no name|has no words"):
            RubricSet.parse(hostile)
