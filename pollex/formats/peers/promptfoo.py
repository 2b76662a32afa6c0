"""promptfoo: a configuration with assertions, its own prompt, and the sum in JavaScript."""

from __future__ import annotations

import json

from pollex.formats.peers.target import Sheet, Target, comment, json_text, statement_prompt

ABOUT = "promptfoo eval -c promptfooconfig.yaml (put your conversations under tests, as vars.conversation)"
NETSAT = """
// NetSAT: what satisfies less what dissatisfies, 10 points each. An answer that could not be read voids the sum: an
// assertion's score is 0 then, which would be good for a rubric of dissatisfaction.
module.exports = (namedScores, { threshold, componentResults } = {}) => {
  const unread = (one) => one?.score === 0 && /parse|error|could not/i.test(one?.reason ?? '');
  const failed = (componentResults ?? []).filter(unread);
  const missing = NAMES.filter((name) => !Number.isFinite(namedScores[name]));
  if (failed.length || missing.length) {
    return { pass: false, score: 0, reason: `no NetSAT: ${failed.length + missing.length} rubrics without an answer` };
  }
  const netsat = NAMES.reduce((sum, name) => sum + (name.startsWith('sat_') ? 10 : -10) * namedScores[name], 0);
  return { pass: threshold === undefined || netsat > threshold, score: netsat, reason: `NetSAT ${netsat.toFixed(2)}` };
};
"""


def _files(sheet: Sheet) -> dict[str, str]:
    names = json.dumps([item.name for item in sheet.items])
    return {
        "promptfooconfig.yaml": _config(sheet),
        "rubric_prompt.json": json_text(_prompt(sheet)),
        "netsat.cjs": comment(sheet, ABOUT, "//") + f"const NAMES = {names};\n" + NETSAT.lstrip("\n"),
    }


def _config(sheet: Sheet) -> str:
    terms = " ".join(f"{'+' if item.sign > 0 else '-'} {item.name}" for item in sheet.items).removeprefix("+ ")
    theta = [] if sheet.theta is None else [f"  threshold: {sheet.theta!r}\n"]
    asserted = [
        f"    - {{type: llm-rubric, metric: {item.name}, value: {json.dumps(_raw(item.text), ensure_ascii=False)}}}\n"
        for item in sheet.items
    ]
    return "".join(
        [
            comment(sheet, ABOUT),
            f"description: {json.dumps(f'pollex rubrics {sheet.digest}')}\n",
            'prompts: ["{{conversation}}"]\nproviders: [echo]  # conversations are there already\ndefaultTest:\n',
            *theta,
            "  assertScoringFunction: file://netsat.cjs\n  options:\n    rubricPrompt: file://rubric_prompt.json\n",
            f"    provider: {json.dumps('openai:chat:' + (sheet.model or 'MODEL'))}\n  assert:\n",
            *asserted,
            f'derivedMetrics:\n  - {{name: mean_netsat, value: "10 * ({terms}) / __count"}}\n',
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


TARGET = Target(
    name="promptfoo",
    version="0.123.1",
    files=_files,
    netsat="exact for each test; derivedMetrics are over all tests, and divided by their number",
)
