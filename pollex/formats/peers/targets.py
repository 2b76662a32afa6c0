"""Rubric sets in the forms of other tools: the table of the tools, and what no template can write."""

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pollex.errors import WrongUse
from pollex.formats.peers.sheet import VOID, Item, Sheet, comment, json_text, python_file, statement_prompt, unbraced


@dataclass(frozen=True, slots=True)
class Target:
    """A tool that rubric sets are exported to; `targets.toml` says what its fields mean."""

    name: str
    version: str
    netsat: str
    exact: bool = True
    file: str = ""
    about: str = ""
    conversation: str = ""
    statement: str = ""
    context: str = ""
    only_five: str = ""

    def files(self, sheet: Sheet) -> Mapping[str, str]:
        """Return texts by the names of their files; the first is the one to open.

        Raises:
            WrongUse: The tool knows five options only, and the set has others.
        """
        if self.only_five and len(sheet.options) != 5:
            remedy = "learn it with `pollex learn LOGS --model M --set scale=likert`"
            raise WrongUse(self.only_five, remedy=remedy)
        return {self.file: self._code(sheet)} if self.file else BY_CODE[self.name](sheet)

    def _code(self, sheet: Sheet) -> str:
        prompt = statement_prompt(sheet._replace(context=""), self.conversation, self.statement)
        prompt = prompt.replace("<conversation>", f"{self.context}\n<conversation>", 1)
        code = template(self.name)
        if "{openevals}\n" in code:
            code = code.replace("{openevals}\n", template("openevals"))
        filled = code.replace("{prompt}", prompt).replace("{model}", sheet.model or "MODEL")
        return python_file(sheet, self.about, filled)


def template(name: str) -> str:
    """Return the text of a template, whose places are names in braces."""
    return (Path(__file__).parent / "templates" / f"{name}.txt").read_text("utf-8")


def _autorubric(sheet: Sheet) -> dict[str, str]:
    """Write a YAML file of criteria with weights; JSON's quoting of texts is YAML's, too."""
    about = (
        "autorubric: CriterionGrader(normalize=False, auto_na_option=False); the score is NetSAT. "
        "Normalized it is cut to 0 to 1."
    )
    left_out = (
        "autorubric leaves a rubric without an answer out of the sum, as if it were 0: take no score of a report whose "
        "cannot_assess_count isn't 0."
    )
    asked = "Judge how far each statement is true of the conversation. Neutral if not applicable."
    guidelines = f"{sheet.context}\n{asked}".strip()
    sheet = sheet._replace(notes=tuple(left_out if note == VOID else note for note in sheet.notes))
    lines = [comment(sheet, about), f"guidelines: {json.dumps(guidelines, ensure_ascii=False)}\n", "criteria:\n"]
    top = max(value for _, value in sheet.options)
    for item in sheet.items:
        lines.append(f"  - name: {item.name}\n    weight: {item.sign * top:g}\n")
        lines.append(
            f"    requirement: {json.dumps(item.text, ensure_ascii=False)}\n    scale_type: ordinal\n    options:\n"
        )
        lines += [f"      - {{label: {json.dumps(word)}, value: {value / top:g}}}\n" for word, value in sheet.options]
    return {"rubric.yaml": "".join(lines)}


def _langfuse(sheet: Sheet) -> dict[str, str]:
    about = " ".join([*sheet.header, TARGETS["langfuse"].netsat.removeprefix("CANNOT: ")])
    evaluators = [_evaluator(sheet, item) for item in sheet.items]
    return {
        "evaluators.json": json_text({"about": about, "evaluators": evaluators}),
        "score-configs.json": json_text(_configs(sheet)),
    }


def _evaluator(sheet: Sheet, item: Item) -> dict[str, Any]:
    kind = "satisfying" if item.sign > 0 else "dissatisfying"
    prompt = statement_prompt(sheet, "{{conversation}}\n{{answer}}", unbraced(item.text))
    return {
        "type": "llm_as_judge",
        "name": f"pollex_{item.name}",
        "description": f"{item.text} ({kind}, {item.stands}; rubrics {sheet.digest})",
        "prompt": [{"role": "user", "content": prompt}],
        "variableMapping": [
            {"variable": "conversation", "source": "input", "jsonPath": "$.messages"},
            {"variable": "answer", "source": "output"},
        ],
        "outputDefinition": {
            "dataType": "CATEGORICAL",
            "categories": [word for word, _ in sheet.options],
            "shouldAllowMultipleMatches": False,
            "scoreReasoningInstructions": "One sentence, quote the turn.",
            "scoreValueInstructions": "How far the statement holds.",
        },
    }


def _configs(sheet: Sheet) -> list[dict[str, Any]]:
    ups, downs = (10 * sum(item.sign == sign for item in sheet.items) for sign in (1, -1))
    theta = "" if sheet.theta is None else f", θ {sheet.theta:g}"
    netsat = {
        "name": "pollex_netsat",
        "dataType": "NUMERIC",
        "minValue": -downs,
        "maxValue": ups,
        "description": f"NetSAT of rubrics {sheet.digest}{theta}",
    }
    categories = [{"label": word, "value": value} for word, value in sheet.options]
    return [
        netsat,
        *(
            {
                "name": f"pollex_{item.name}",
                "dataType": "CATEGORICAL",
                "categories": categories,
                "description": f"{item.text} ({item.stands})",
            }
            for item in sheet.items
        ),
    ]


PROMPTFOO = "promptfoo eval -c promptfooconfig.yaml (put your conversations under tests, as vars.conversation)"


def _promptfoo(sheet: Sheet) -> dict[str, str]:
    names = json.dumps([item.name for item in sheet.items])
    return {
        "promptfooconfig.yaml": _config(sheet),
        "rubric_prompt.json": json_text(_prompt(sheet)),
        "netsat.cjs": comment(sheet, PROMPTFOO, "//") + f"const NAMES = {names};\n" + template("promptfoo"),
    }


def _config(sheet: Sheet) -> str:
    theta = [] if sheet.theta is None else [f"  threshold: {sheet.theta!r}\n"]
    asserted = [
        f"    - {{type: llm-rubric, metric: {item.name}, value: {json.dumps(_raw(item.text), ensure_ascii=False)}}}\n"
        for item in sheet.items
    ]
    return "".join(
        [
            comment(sheet, PROMPTFOO),
            f"description: {json.dumps(f'pollex rubrics {sheet.digest}')}\n",
            'prompts: ["{{conversation}}"]\nproviders: [echo]  # conversations are there already\ndefaultTest:\n',
            *theta,
            "  assertScoringFunction: file://netsat.cjs\n  options:\n    rubricPrompt: file://rubric_prompt.json\n",
            f"    provider: {json.dumps('openai:chat:' + (sheet.model or 'MODEL'))}\n  assert:\n",
            *asserted,
            "derivedMetrics:\n  - {name: mean_netsat, value: pollex_netsat / pollex_scored}\n",
            'tests:\n  - vars: {conversation: "user: Hello\\nassistant: Good day"}\n    metadata: {id: example}\n',
        ]
    )


def _raw(text: str) -> str:
    """Mark a text so that Nunjucks does not interpret it."""
    return f"{{% raw %}}{text}{{% endraw %}}" if any(mark in text for mark in ("{{", "{%", "{#")) else text


def _prompt(sheet: Sheet) -> list[dict[str, str]]:
    top = max(value for _, value in sheet.options)
    told = ", ".join(f"{value / top:g} ({word})" for word, value in sheet.options)
    system = (
        'Answer in JSON: {"reason": string, "pass": boolean, "score": number}. '
        f"score is one of {told}; pass is score >= 0.5."
    )
    question = statement_prompt(sheet, "{{ output }}", "{{ rubric }}")
    return [{"role": "system", "content": system}, {"role": "user", "content": question}]


BY_CODE = {"autorubric": _autorubric, "langfuse": _langfuse, "promptfoo": _promptfoo}
TARGETS = {
    name: Target(name, **row)
    for name, row in tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8")).items()
}
