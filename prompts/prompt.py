"""A prompt: text with named gaps and optional blocks, schema, and version.

A prompt is one Markdown file. Between `+++` lines stand, in TOML, what it is for, its stage,
`variables` and `blocks`. Then come `# system` (the rules, before the data), `# closing` (the task,
after the data) and `# schema` (JSON). In a text `{name}` is a gap and `{name?}…{/name}` a block
that may be left out; no other brace is allowed.

The text is taken apart once, when it is read. Rendering joins its parts with the values, which
nothing ever looks into:
no brace, percent sign or tag in a value can mean anything.

A prompt with its data as chat messages: rules, sealed data, task.

The order makes calls about one conversation share their beginning: the rules, the same for every
batch of rubrics, then the conversation, then what is asked about it. The task comes last also
because nothing from outside may have the last word.
"""

import hashlib
import json
import re
import tomllib
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path

from pollex.errors import WrongUse
from pollex.prompts.data_boundary import (
    DataItem,
    write_items_within_boundary,
    write_value_as_escaped_json_line,
)
from pollex.prompts.domain import ClosingRole
from pollex.rooms import find_file, iterate_part_folders

PROMPTS_FOLDER = Path(__file__).parent
_PROMPT_FILE_PATTERN = re.compile(r"\+\+\+\n(?P<head>.*?)\+\+\+\n(?P<body>.*)", re.DOTALL)
_SECTION_TITLE_PATTERN = re.compile(r"^# (\w+)\n", re.MULTILINE)
_PLACEHOLDER_PATTERN = re.compile(r"\{(?P<open>\w+)\?\}|\{/(?P<close>\w+)\}|\{(?P<gap>\w+)\}")
_JSON_FENCE_PATTERN = re.compile(r"```json\n(.*?)```", re.DOTALL)


@dataclass(frozen=True, slots=True)
class PromptPart:
    """A part of prompt text, or a gap.

    Attributes:
        block: The block that it belongs to; empty outside of any.
    """

    text: str
    gap: bool
    block: str = ""


@dataclass(frozen=True)
class Prompt:
    """A parsed prompt file; see the module.

    Attributes:
        purpose: One sentence for people; not sent.
        stage: What its calls are for, in the usage table: the name, unless it says another.
        written: Tokens of an answer, about; 0 where that depends on the number of questions.
        apart: Whether no other call waits for its answer, so that it may go into a provider's
            batch.
        sections: `system` and `closing`, taken apart.
        schema: JSON schema of the answer.
        version: Twelve hex digits: hash of texts and schema.
    """

    name: str
    purpose: str
    stage: str
    written: int
    apart: bool
    variables: frozenset[str]
    blocks: frozenset[str]
    sections: Mapping[str, tuple[PromptPart, ...]]
    schema: Mapping[str, object]
    version: str

    def render(
        self,
        section: str,
        values: Mapping[str, str],
        without: Set[str] = frozenset(),
    ) -> str:
        """Return the text of a section; `values` beyond the prompt's variables are not used.

        Raises:
            WrongUse: A variable of the prompt has no value.
        """
        # a gap never stays open in what is sent
        if missing := self.variables - values.keys():
            raise WrongUse(
                f"no value for {', '.join(sorted(missing))}",
                where=f"prompt {self.name}",
            )

        # blocks that are left out take their gaps with them
        parts = (part for part in self.sections[section] if part.block not in without)
        return "".join(values[part.text] if part.gap else part.text for part in parts)


def load_prompt(name: str) -> Prompt:
    """Return the prompt of that name."""
    # where there is none, the error names the file that is missing
    file = find_file("prompts", f"{name}.md") or PROMPTS_FOLDER / f"{name}.md"
    return parse_prompt(name, file.read_text(encoding="utf-8"))


def list_prompt_names() -> list[str]:
    """Return all prompts there are."""
    stems = []
    for folder in iterate_part_folders("prompts"):
        for file in folder.glob("*.md"):
            stems.append(file.stem)

    return sorted(stems)


def parse_prompt(name: str, text: str) -> Prompt:
    """Return the prompt that a file's text holds.

    Raises:
        WrongUse: The text breaks a rule of the module, or declares what it doesn't use.
    """
    file = _PROMPT_FILE_PATTERN.fullmatch(text)
    if file is None:
        raise WrongUse("no front matter between +++ lines", where=f"prompt {name}")

    head = tomllib.loads(file["head"])
    # behind the first item titles and texts take turns
    titles = _SECTION_TITLE_PATTERN.split(file["body"])
    texts = {title: text.strip() for title, text in zip(titles[1::2], titles[2::2], strict=True)}
    fence = _JSON_FENCE_PATTERN.search(texts.pop("schema", ""))
    schema = json.loads(fence[1]) if fence else None
    sections = {}
    for title, body in texts.items():
        sections[title] = tuple(_split_prompt_text_at_gaps(name, body))

    prompt = Prompt(
        name=name,
        purpose=head["purpose"],
        stage=head.get("stage", name),
        written=head.get("written", 0),
        apart=head.get("apart", False),
        variables=frozenset(head["variables"]),
        blocks=frozenset(head["blocks"]),
        sections=sections,
        schema=schema or {},
        # a version is of what a model sees: purpose and stage are not sent
        version=hashlib.sha256(
            json.dumps([texts, schema], ensure_ascii=False).encode()
        ).hexdigest()[:12],
    )
    # what is declared and what stands in the texts must be the same
    parts: list[PromptPart] = []
    for section in sections.values():
        parts.extend(section)
    gaps = set()
    for part in parts:
        if part.gap:
            gaps.add(part.text)

    blocks = set()
    for part in parts:
        if part.block:
            blocks.add(part.block)

    if gaps != prompt.variables or blocks != prompt.blocks:
        raise WrongUse(
            "variables or blocks are not those that it declares",
            where=f"prompt {name}",
        )

    if sections.keys() != {"system", "closing"}:
        raise WrongUse(
            "the sections must be system, closing and perhaps schema",
            where=f"prompt {name}",
        )

    return prompt


def _split_prompt_text_at_gaps(name: str, text: str) -> list[PromptPart]:
    parts = []
    block = ""
    end = 0
    # None is the end of the text, behind the last mark
    for mark in [*_PLACEHOLDER_PATTERN.finditer(text), None]:
        literal = text[end : mark.start() if mark else len(text)]
        # a brace that is left over is a mark that was mistyped
        if "{" in literal or "}" in literal:
            raise WrongUse(
                f"a brace that is no mark: {literal.strip()[:60]!r}",
                where=f"prompt {name}",
            )

        if literal:
            parts.append(PromptPart(literal, gap=False, block=block))
        if mark is None:
            break
        end = mark.end()
        if mark["gap"]:
            parts.append(PromptPart(mark["gap"], gap=True, block=block))
        # a block closes only itself, and none begins inside another
        elif (mark["close"] or "") != block:
            raise WrongUse(f"{mark.group()} is out of place", where=f"prompt {name}")
        else:
            block = mark["open"] or ""

    if block:
        raise WrongUse(f"block {block} is not closed", where=f"prompt {name}")
    return parts


@dataclass(frozen=True)
class PromptLayout:
    """The layout of prompts for an endpoint.

    Attributes:
        salt: Secret of the store, for the boundary code.
        closing: Who says the task. `system` keeps it apart from all data, and is the default. Chat
            templates that refuse a system message after the first want `user`; those that also
            refuse two user messages in a row want `merged`, the task below the data in one message,
            where the boundary alone keeps them apart.
        inline_schema: Whether the task ends with the answer's schema, for an endpoint that can't be
            held to one.
        without: Blocks to leave out, of `domain.OPTIONAL_PROMPT_PARTS`.
    """

    salt: bytes = field(repr=False)
    closing: ClosingRole = "system"
    inline_schema: bool = False
    without: frozenset[str] = frozenset()


def build_chat_messages_of_prompt(
    prompt: Prompt,
    values: Mapping[str, str],
    items: Sequence[DataItem],
    layout: PromptLayout,
    *,
    schema: Mapping[str, object] | None = None,
    without: frozenset[str] = frozenset(),
) -> list[dict[str, str]]:
    """Build the messages of a call.

    Args:
        values: What stands in the prompt's gaps. Outside text must have gone through
            `envelope.escaped`.
        items: The data, as from `envelope.conversation`.
        schema: The answer's, where it isn't the prompt's own.
        without: Blocks to leave out beside the layout's.
    """
    off = layout.without | without
    rules = {"role": "system", "content": prompt.render("system", values, off)}
    data = {"role": "user", "content": write_items_within_boundary(items, layout.salt)}
    task = prompt.render("closing", values, off)
    schema = prompt.schema if schema is None else schema
    # a schema that the endpoint doesn't enforce is told in words
    if layout.inline_schema and schema:
        schema_line = write_value_as_escaped_json_line(schema)
        task += f"\nWrite one JSON object of this JSON schema and nothing else:\n{schema_line}"

    # for templates that refuse two user messages in a row
    if layout.closing == "merged":
        return [rules, {"role": "user", "content": f"{data['content']}\n\n{task}"}]
    return [rules, data, {"role": layout.closing, "content": task}]
