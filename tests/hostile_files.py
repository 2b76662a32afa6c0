"""Words that files of other tools must not take for code, and the shapes of such files without the words."""

import ast
import json
from collections.abc import Mapping
from typing import Any

import yaml

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
