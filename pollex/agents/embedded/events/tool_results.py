"""Whether a tool's result says that the call failed: a fact of the log, by its fields and codes before its words."""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Literal

from pollex.agents.embedded.events.sentences import ToolAnswer

MAX_RESULT_CHARS_READ = 4_000
"""Characters of a result that are read."""
SHORT_RESULT_CHARS = 300
"""A result of so many characters is a message; in a longer one, only its lines' beginnings are."""
MAX_VALUES_OF_SMALL_OBJECT = 4
"""An object of so many values is a message, too, whatever its fields are called."""
MAX_FIELD_DEPTH = 3

(
    SURENESS_BY_LOG,
    SURENESS_BY_ERROR_CODE,
    SURENESS_BY_FAILURE_WORDS,
    SURENESS_OF_EMPTY_RESULT,
    SURENESS_OF_BLANK_RESULT,
) = 0.95, 0.95, 0.85, 0.7, 0.65
"""How sure a failure is: told by the log, by a field or code, by words alone, by fields without a
value (null), or by no word at all, with which many tools say that all is well."""

_ERROR_FIELD_REGEX = re.compile(
    r"(?:.*[._-])?(?:errors?|err|exceptions?|traceback|fault|failures?|error_?(?:message|msg|code|type|detail)s?"
    r"|fehler(?:meldung|code)?|erreurs?|errore|errori|erros?|fout(?:melding|code)?)"
)
_STATE_FIELD_REGEX = re.compile(
    r"(?:.*[._-])?(?:status|state|outcome|result|response|type|kind|level|severity|resultado|statut|stato)"
)
_STATUS_CODE_FIELD_REGEX = re.compile(
    r"(?:.*[._-])?(?:http_?)?(?:status_?)?(?:code|status)|(?:http|status)_?(?:code|status)?"
)
_EXIT_CODE_FIELD_REGEX = re.compile(r"(?:.*[._-])?(?:exit_?(?:code|status)|return_?code|rc)")
_SUCCESS_FLAG_REGEX = re.compile(
    r"(?:.*[._-])?(?:is_?)?(?:success(?:ful)?|ok|succeeded|erfolg|succes|éxito|exito|sucesso|successo)"
)
_FAILURE_FLAG_REGEX = re.compile(
    r"(?:.*[._-])?(?:is_?|has_?)?(?:error(?:ed)?|failed|failure|timed_?out|timeout)"
)
_MESSAGE_FIELD_REGEX = re.compile(
    r"(?:.*[._-])?(?:message|msg|detail|details|reason|meldung|nachricht|mensaje|mensagem|messaggio|melding|bericht)"
)
_EMPTY_VALUES = frozenset(
    {
        "",
        "null",
        "none",
        "nil",
        "undefined",
        "nan",
        "n/a",
        "[]",
        "{}",
        "()",
        '""',
        "''",
        "no output",
    }
)
_VALUES_WITHOUT_ERROR = frozenset(
    {
        *_EMPTY_VALUES,
        "0",
        "false",
        "no",
        "ok",
        "success",
        "successful",
        "none found",
        "keine",
        "aucune",
    }
)
_SUCCESS_STATES = frozenset({"ok", "success", "successful", "completed", "succeeded", "done"})
_FAILED_STATE_REGEX = re.compile(
    r"\W*(?:error(?:ed)?|fail(?:ed|ure|ing)?|fatal|exception|time(?:d)?[ _-]?out"
    r"|rejected|denied|refused|aborted|crashed"
    r"|unavailable|unauthori[sz]ed|forbidden|nok|ko|not[ _-]ok|not[ _-]found|[45]\d\d)\b",
    re.IGNORECASE,
)
_FAILING_HTTP_CODES = range(400, 600)

_EXCEPTION_NAMES_REGEX = (
    r"(?:[a-z]\w*(?:error|exception|fault)|timeout(?:error|exception)?|e(?:conn(?:refused|reset|aborted)|timedout|notfound"
    r"|ai_again|pipe|acces|noent))"
)
"""Names of exceptions and of a system's errors, as they are spelled in any language."""
_FAILURE_PHRASES_REGEX = (
    r"errors?|exception|fail(?:ed|ure|s)?|fatal|panic|time[sd]?[ -]?out|timeout|traceback|(?:was |were |is )?not found"
    r"|forbidden|unauthori[sz]ed|(?:access|permission) denied|bad (?:request|gateway)|service unavailable"
    r"|(?:temporarily )?unavailable|not (?:available|reachable|responding|supported)|unreachable|no response|no such"
    r"|connection (?:refused|reset|closed|lost|aborted)|(?:could|did|can) ?(?:not|n't|n’t)"
    r"|cannot|unable to|denied|rejected|rate limit(?:ed)?|quota exceeded|too many requests"
    r"|internal server|deadline exceeded|invalid|aborted|crashed|offline"
)
_HTTP_ERROR_CODE_REGEX = re.compile(
    r"\bhttp(?:/\d(?:\.\d)?)?\W{0,9}(?:status\W{0,4}|code\W{0,4}|error\W{0,4})*[45]\d\d\b"
    r"|\b(?:status|code|error|fehler|erreur|errore|erro|fout|statut|stato|estado)(?:[ _-]?code)?\W{1,4}[45]\d\d\b"
    r"|\b[45]\d\d\b\W{1,3}(?:bad|unauthori|payment|forbidden|not found|method|not accept|request|conflict|gone|too many"
    r"|internal|not impl|service|gateway|error|timeout|client|server|unprocess|locked)"
    r"|\b(?:exit|return)(?:ed)? (?:code|status)\W{1,3}[1-9]\d*\b|\bexited with (?:code )?[1-9]\d*\b"
    r"|<(?:\w+:)?(?:error|fault|exception)\b"
)
_NO_ERRORS_PHRASE_REGEX = re.compile(
    r"\b(?:no|0|zero|without(?: any)?) (?:errors?|failures?|exceptions?|failed|problems?)\b"
    r"|\b(?:errors?|failures?|failed|exceptions?|status|code)\W{1,4}(?:null|none|nil|0|\[\]|false|ok|200)(?!\w)"
    r"|\b(?:keine|ohne|aucune|sans|nessun|senza|sin|ningún|nenhum|sem|geen|zonder) (?:fehler|erreurs?|errore|error"
    r"|errores|erros?|fouten)\b"
)


@cache
def _compile_failure_word_regexes() -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    """Make the words of failures in all languages: anywhere, at a line's beginning, and at that of a text."""
    folder = Path(__file__).parent / "languages"
    tables = (tomllib.loads(path.read_text("utf-8")) for path in sorted(folder.glob("*.toml")))
    others = []
    for table in tables:
        for phrase in table["failures"]:
            others.append(re.escape(phrase))

    words = "|".join([_EXCEPTION_NAMES_REGEX, _FAILURE_PHRASES_REGEX, *others])
    anywhere = re.compile(rf"(?<![\w-])(?:{words})(?!\w)")
    leading = re.compile(
        rf"^\W{{0,6}}(?:\w+\W+){{0,3}}?(?:{words})(?!\w)",
        re.MULTILINE,
    )
    return anywhere, leading, re.compile(rf"\W{{0,6}}(?:\w+\W+)?(?:{words})(?!\w)")


def measure_sureness_of_call_failure(answer: ToolAnswer) -> float:
    """Return how sure it is that a call failed, by its result: from 0 to 1."""
    if answer.failed:
        return SURENESS_BY_LOG
    return measure_sureness_of_failing_result(answer.text)


def measure_sureness_of_failing_result(result: str) -> float:
    """Return how sure it is that a result is that of a call that failed."""
    # no text, a word for nothing, fields, and only then words
    text = result[:MAX_RESULT_CHARS_READ].strip()
    if not text:
        return SURENESS_OF_BLANK_RESULT
    if text.lower() in _EMPTY_VALUES:
        return SURENESS_OF_EMPTY_RESULT
    if text[:1] in '{["':
        try:
            # the whole text, as a part of it is no JSON
            value = json.loads(result)
        except (ValueError, RecursionError):
            return _judge_result_by_words(text)

        return _judge_result_by_fields(value)

    return _judge_result_by_words(text)


def _judge_result_by_words(text: str) -> float:
    """Tell by a message's codes and words; in a long text, by its lines' beginnings."""
    low = text.lower()
    if _HTTP_ERROR_CODE_REGEX.search(low):
        return SURENESS_BY_ERROR_CODE

    anywhere, leading, _ = _compile_failure_word_regexes()
    pattern = anywhere if len(low) <= SHORT_RESULT_CHARS else leading
    # “no errors” and the like tell of none
    return (
        SURENESS_BY_FAILURE_WORDS if pattern.search(_NO_ERRORS_PHRASE_REGEX.sub(" ", low)) else 0.0
    )


def _judge_result_by_fields(value: object) -> float:
    """Tell by the fields of an object, which say it before any word does."""
    if isinstance(value, str):
        return _judge_result_by_words(value)

    fields = list(_iterate_nested_fields(value))
    verdicts = set()
    for name, inner in fields:
        if verdict := _judge_result_field(name, inner):
            verdicts.add(verdict)

    # a failure counts before a success, a “maybe” only without one
    if verdicts:
        failed = "failed" in verdicts or "fine" not in verdicts
        return SURENESS_BY_ERROR_CODE if failed else 0.0

    # no field says it: messages and short texts are read for their words
    texts = []
    for _, inner in fields:
        if isinstance(inner, str) and len(inner) <= SHORT_RESULT_CHARS:
            texts.append(inner)

    messages = []
    for name, inner in fields:
        if isinstance(inner, str) and _MESSAGE_FIELD_REGEX.fullmatch(name):
            messages.append(inner)

    first = _compile_failure_word_regexes()[2]
    if any(map(_judge_result_by_words, messages)) or (
        len(fields) <= MAX_VALUES_OF_SMALL_OBJECT
        and any(first.match(text.lower()) for text in texts)
    ):
        return SURENESS_BY_FAILURE_WORDS
    # any value at all shows that something was there
    if any(map(_is_nonempty_value, (inner for _, inner in fields))):
        return 0.0
    return SURENESS_OF_EMPTY_RESULT


def _iterate_nested_fields(
    value: object, depth: int = MAX_FIELD_DEPTH
) -> Iterator[tuple[str, object]]:
    """Yield the names and values of an object, the inner ones' behind their owner's; lists by their first items."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            low = str(name).lower()
            yield low, inner
            if isinstance(inner, Mapping) and depth > 1:
                yield from _iterate_nested_fields(inner, depth - 1)
    elif isinstance(value, list):
        for inner in value[:5]:
            if isinstance(inner, Mapping | list) and depth > 1:
                yield from _iterate_nested_fields(inner, depth - 1)
            else:
                yield "", inner


def _is_nonempty_value(value: object) -> bool:
    if isinstance(value, str):
        return value.strip().lower() not in _EMPTY_VALUES

    # 0 and false are values; null, an empty text and an empty list are none
    return (
        bool(value)
        or value is False
        or (value == 0 and not isinstance(value, Mapping | list) and value is not None)
    )


FieldVerdict = Literal["failed", "maybe", "fine", ""]
"""What a field says: "maybe" holds where no other field says that all is well."""


def _judge_result_field(name: str, value: object) -> FieldVerdict:
    """Tell what a field says of whether a call failed; nothing for most."""
    # flags come before numbers, as true is a number in Python
    if isinstance(value, bool):
        return _judge_success_flag(name, flag=value)

    number = _parse_whole_number(value)
    # exit codes are good at 0, status codes from 200 to 299
    if _EXIT_CODE_FIELD_REGEX.fullmatch(name) and number is not None:
        return "failed" if number else "fine"
    if _STATUS_CODE_FIELD_REGEX.fullmatch(name) and number is not None:
        return _judge_status_code(name, number)
    if _ERROR_FIELD_REGEX.fullmatch(name):
        return "failed" if _holds_error(value) else ""
    # a long state is prose
    if (
        _STATE_FIELD_REGEX.fullmatch(name)
        and isinstance(value, str)
        and len(value) <= SHORT_RESULT_CHARS // 5
    ):
        return _judge_state_word(value.strip())
    return ""


def _judge_status_code(name: str, number: int) -> FieldVerdict:
    if number in range(200, 300):
        return "fine"
    if number not in _FAILING_HTTP_CODES:
        return ""
    # a bare `code` may be of something else than the call
    return "maybe" if name == "code" else "failed"


def _judge_state_word(value: str) -> FieldVerdict:
    if _FAILED_STATE_REGEX.match(value) or (
        len(value.split()) <= 2 and _judge_result_by_words(value)
    ):
        return "failed"
    return "fine" if value.lower() in _SUCCESS_STATES else ""


def _judge_success_flag(name: str, *, flag: bool) -> FieldVerdict:
    if _FAILURE_FLAG_REGEX.fullmatch(name):
        return "failed" if flag else "fine"
    if _SUCCESS_FLAG_REGEX.fullmatch(name):
        return "fine" if flag else "failed"
    return ""


def _parse_whole_number(value: object) -> int | None:
    if isinstance(value, int):
        return value
    # `int` refuses texts of thousands of digits
    if isinstance(value, str) and value.strip().isdecimal() and len(value) < SHORT_RESULT_CHARS:
        return int(value)
    return None


def _holds_error(value: object) -> bool:
    if isinstance(value, str):
        return value.strip().lower() not in _VALUES_WITHOUT_ERROR
    return bool(value)
