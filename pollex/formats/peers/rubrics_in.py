"""Rubrics in a run's state, and in files of autorubric, promptfoo and LLM-Rubric."""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

import yaml

from pollex.errors import UNREADABLE_FILE_HINT, BadRubrics
from pollex.formats.yaml_nodes import count_yaml_size_with_aliases_expanded
from pollex.rubrics.edits import list_bundled_rubric_set_names, read_rubrics
from pollex.rubrics.rubric import Polarity, Rubric, make_content_id
from pollex.text import read_file_bytes

MAX_RUBRIC_FILE_SIZE = 1_000_000
"""Bytes of a file of rubrics, and parts and characters of it with its aliases written out."""
RUBRIC_FILE_ENDINGS = (".yaml", ".yml", ".json")
QUESTION_ID_PATTERN = re.compile(r"Q\d+")
RAW_BLOCK_PATTERN = re.compile(r"\{%\s*raw\s*%\}(.*?)\{%\s*endraw\s*%\}", re.DOTALL)
WRAPPER_KEYS = ("rubric", "questions")
QUESTION_TEXT_NAMES = ("promptdesc", "question", "text", "prompt")
"""Names that a question's words have in LLM-Rubric's files."""
JUDGED_ASSERTION_TYPES = ("llm-rubric", "g-eval", "model-graded-closedqa")
RubricTexts = Iterator[tuple[str, Polarity]]


def load_rubrics_of_any_tool(source: str | Path) -> tuple[Rubric, ...]:
    """Read the rubrics of a pollex file, another tool's file, or a bundled set.

    Raises:
        BadRubrics: It can't be read, or holds no rubric that is known.
    """
    if (
        str(source) in list_bundled_rubric_set_names()
        or Path(source).suffix.lower() not in RUBRIC_FILE_ENDINGS
    ):
        return read_rubrics(source)

    try:
        stored = _read_yaml(Path(source))
    except FileNotFoundError:
        raise BadRubrics(
            "there is no such file",
            where=str(source),
            hint="check the path",
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise BadRubrics(
            f"it can't be read: {error}",
            where=str(source),
            hint=UNREADABLE_FILE_HINT,
        ) from error
    except (yaml.YAMLError, RecursionError) as error:
        what = f"not valid YAML: {' '.join(str(error).split())[:200]}"
        raise BadRubrics(what, where=str(source), hint="correct it") from error

    # every shape that some tool writes is tried; each yields what it knows
    pairs = [
        pair
        for read in (
            _iterate_pool_rubrics,
            _iterate_criteria_rubrics,
            _iterate_assertion_rubrics,
            _iterate_question_rubrics,
        )
        for pair in read(stored)
    ]
    unique = dict.fromkeys((text.strip(), polarity) for text, polarity in pairs if text.strip())
    if not unique:
        hint = "give autorubric's criteria, promptfoo's assertions, or questions Q1, Q2, ..."
        raise BadRubrics(
            "no rubric was found in it",
            where=str(source),
            hint=hint,
        )

    return tuple(
        Rubric(id=make_content_id(polarity, text), text=text, polarity=polarity)
        for text, polarity in unique
    )


def _read_yaml(path: Path) -> object:
    content = read_file_bytes(path)
    text = ""
    if len(content) <= MAX_RUBRIC_FILE_SIZE:
        text = content.decode("utf-8-sig")

    # aliases may stand for far more than the file has: that is counted before it is read
    node = yaml.compose(text, yaml.SafeLoader)
    if len(content) > MAX_RUBRIC_FILE_SIZE or (
        node is not None and count_yaml_size_with_aliases_expanded(node) > MAX_RUBRIC_FILE_SIZE
    ):
        raise BadRubrics(
            "more than a million characters",
            where=str(path),
            hint="give a file of rubrics alone",
        )

    return yaml.safe_load(text)


def _iterate_pool_rubrics(stored: object) -> RubricTexts:
    """Yield the pool of a run's state, as `pollex trace RUN --state NODE --json` hands it out, or its rows alone."""
    if isinstance(stored, Mapping):
        rows = stored.get("kept")
    else:
        rows = stored

    for row in rows if isinstance(rows, list) else ():
        if (
            isinstance(row, Mapping)
            and isinstance(row.get("text"), str)
            and row.get("polarity") in get_args(Polarity)
        ):
            yield row["text"], row["polarity"]


def _iterate_criteria_rubrics(stored: object) -> RubricTexts:
    """Yield autorubric's criteria; the sign of the weight gives the polarity."""
    for criterion in _iterate_objects(stored):
        if isinstance(criterion.get("requirement"), str):
            weight = criterion.get("weight", 1)
            yield (
                criterion["requirement"],
                "dsat" if isinstance(weight, int | float) and weight < 0 else "sat",
            )


def _iterate_assertion_rubrics(stored: object) -> RubricTexts:
    for assertion in _iterate_objects(stored):
        kind = str(assertion.get("type"))
        value = assertion.get("value")
        if kind.removeprefix("not-") in JUDGED_ASSERTION_TYPES:
            # a negated assertion, or a metric that is named so, tells what is bad
            down = kind.startswith("not-") or str(assertion.get("metric")).startswith("dsat_")
            for text in value if isinstance(value, list) else [value]:
                if isinstance(text, str):
                    yield RAW_BLOCK_PATTERN.sub(r"\1", text), "dsat" if down else "sat"


def _iterate_objects(stored: object) -> Iterator[Mapping[object, Any]]:
    parts: Iterable[object] = ()
    if isinstance(stored, Mapping):
        yield stored
        parts = stored.values()
    elif isinstance(stored, list):
        parts = stored

    for part in parts:
        yield from _iterate_objects(part)


def _iterate_question_rubrics(stored: object) -> RubricTexts:
    """Yield LLM-Rubric's questions Q0, Q1, ...; the last option is the best."""
    if isinstance(stored, Mapping):
        inner = next((stored[name] for name in WRAPPER_KEYS if name in stored), stored)
    else:
        inner = stored

    if isinstance(inner, Mapping):
        pairs = [(str(name), value) for name, value in inner.items()]
    else:
        if isinstance(inner, list):
            rows = [entry for entry in inner if isinstance(entry, Mapping)]
        else:
            rows = []

        pairs = []
        for row in rows:
            pairs.append((str(row.get("id") or row.get("name")), row))

    for name, value in pairs:
        if QUESTION_ID_PATTERN.fullmatch(name) and (text := _format_question(value)):
            yield text, "sat"


def _format_question(value: object) -> str:
    """Return a question with its best answer, if any; a judge agrees with both together."""
    if not isinstance(value, Mapping):
        return value if isinstance(value, str) else ""

    fields = {}
    for name, inner in value.items():
        fields[str(name).casefold()] = inner

    text = next(
        (fields[name] for name in QUESTION_TEXT_NAMES if isinstance(fields.get(name), str)),
        "",
    )
    options = fields.get("options")
    best = list(options.values() if isinstance(options, Mapping) else options or ())[-1:]
    if text and best and isinstance(best[0], str):
        return f"{text} Answer: {best[0]}"
    return text
