"""promptfoo: a configuration with assertions, its own prompt, and the sum in JavaScript."""

from __future__ import annotations

import json

from pollex.formats.peers.target import Sheet, Target, comment, json_text, statement_prompt

ABOUT = "promptfoo eval -c promptfooconfig.yaml (put your conversations under tests, as vars.conversation)"
NETSAT = """
// NetSAT: what satisfies less what dissatisfies, 10 points each. An answer that could not be read voids the sum: an
// assertion's score is 0 then, which would be good for a rubric of dissatisfaction. The mean is without void sums.
module.exports = (namedScores, { threshold, componentResults } = {}) => {
  const unread = (componentResults ?? []).filter((one) => one?.metadata?.graderError);
  const failed = new Set(unread.map((one) => one.assertion?.metric));
  const known = Object.entries(namedScores).filter(([name, score]) => Number.isFinite(score) && !failed.has(name));
  const read = Object.fromEntries(known);
  const without = failed.has(undefined) ? NAMES : NAMES.filter((name) => !(name in read));
  if (without.length) {
    const reason = `no NetSAT: ${without.length} rubrics without an answer`;
    return { pass: false, score: 0, reason, namedScores: { ...read, pollex_netsat: 0, pollex_scored: 0 } };
  }
  const netsat = NAMES.reduce((sum, name) => sum + (name.startsWith('sat_') ? 10 : -10) * read[name], 0);
  return {
    pass: threshold === undefined || netsat > threshold,
    score: netsat,
    reason: `NetSAT ${netsat.toFixed(2)}`,
    namedScores: { ...read, pollex_netsat: netsat, pollex_scored: 1 },
  };
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


TARGET = Target(
    name="promptfoo",
    version="0.123.1",
    files=_files,
    netsat="exact for each test; mean_netsat is over the tests with all answers",
)
