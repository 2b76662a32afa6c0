"""Pages from templates, style sheets and scripts under versioned names, filters of words, and error pages."""

import hashlib
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path

from jinja2 import ChoiceLoader, Environment, PackageLoader, PrefixLoader
from starlette.datastructures import Headers
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.types import Scope

from pollex.errors import PollexError, StoreBusy
from pollex.graphs.hooks import name_stage
from pollex.reports.numbers import MINUS_SIGN, NO_BREAK_SPACE, is_known, make_percent_unbreakable
from pollex.reports.page import make_template_environment as of_reports
from pollex.reports.page import read_style_sheet
from pollex.reports.transcript import MarkedText
from pollex.rooms import iterate_part_folders
from pollex.rubrics.records import RubricEvidence, StandingRecord
from pollex.rubrics.worth import describe_doubt_about_rubric, describe_evidence_with_difference
from pollex.store.runs import Run
from pollex.text import escape_controls
from pollex.web import links
from pollex.web.faults import find_status
from pollex.web.hooks import (
    FIRST_PLACE_BEHIND_MORE,
    IS_READER,
    REQUESTED_ADDRESS,
    fill_panel,
    list_page_links,
    list_visible_menu,
    name_kind_of_run,
)
from pollex.web.run_logs import name_log_of_run, name_logs_of_command

SHARED_STYLE_FILES = ("tokens.css", "parts.css")
CONTENT_TYPES_BY_ENDING = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}


@cache
def make_environment() -> Environment:
    """Make the template environment: that of the reports, with the application's links."""
    reports = of_reports()
    assert reports.loader is not None, "the reports have templates"
    # `web/` tells these templates from those of the reports
    ours = PrefixLoader({"web": PackageLoader("pollex.web", "templates")})
    environment = reports.overlay(loader=ChoiceLoader([ours, reports.loader]))
    environment.filters = environment.filters | FILTERS
    environment.globals = environment.globals | {
        "links": links,
        "static": link_to_static_file,
        "menu": list_visible_menu,
        "BEHIND_MORE": FIRST_PLACE_BEHIND_MORE,
        "page_links": list_page_links,
        "panel": fill_panel,
        "asked_for": REQUESTED_ADDRESS.get,
        "guest": None,
    }

    return environment


def describe_worth(worth: RubricEvidence, standing: StandingRecord | None) -> str:
    """Describe how often a rubric holds, its thumbs, and by how much they differ."""
    return make_percent_unbreakable(describe_evidence_with_difference(worth, standing))


_SCRIPT_PATTERN = re.compile(r"<script\b[^>]*></script>\s*")
_STYLE_PATTERN = re.compile(r'<link rel="(?:stylesheet|icon)"[^>]*>\s*')
_FORM_PATTERN = re.compile(r"<form\b.*?</form>", re.DOTALL)
_BAR_PATTERN = re.compile(r'<header class="bar">.*?</header>', re.DOTALL)
_LINK_PATTERN = re.compile(r'<a\b(?:[^>]*?) href="(?!#)[^"]*"[^>]*>(.*?)</a>', re.DOTALL)
_FOOT_PATTERN = re.compile(r'<footer class="foot">.*?</footer>', re.DOTALL)


def make_single_file(content: str) -> str:
    """Return a page of ours as one file: with its styles, and without forms, scripts and links into the server."""
    styles = "\n".join(
        read_static_files()[name].decode() for name in (*SHARED_STYLE_FILES, "app.css")
    )
    for pattern in (_SCRIPT_PATTERN, _STYLE_PATTERN, _FORM_PATTERN, _BAR_PATTERN, _FOOT_PATTERN):
        content = pattern.sub("", content)

    # links into the server become plain words
    content = _LINK_PATTERN.sub(r"\1", content)
    return content.replace("</head>", f"<style>{styles}</style>\n</head>", 1)


@cache
def read_static_files() -> dict[str, bytes]:
    """Read the static files of all rooms, by name."""
    statics: list[Path] = []
    for folder in iterate_part_folders("web/static"):
        statics.extend(folder.iterdir())

    context = {}
    for file in statics:
        # files of other kinds aren't served
        if file.name.rpartition(".")[2] in CONTENT_TYPES_BY_ENDING:
            context[file.name] = file.read_bytes()

    return context | {name: read_style_sheet(name).encode() for name in SHARED_STYLE_FILES}


@cache
def compute_static_digest() -> str:
    """Compute a digest of all static files, which import each other by name."""
    files_by_name = read_static_files()
    # sorted, as folders have no order of their own
    return hashlib.sha256(
        b"\0".join(name.encode() + files_by_name[name] for name in sorted(files_by_name))
    ).hexdigest()[:12]


def link_to_static_file(name: str) -> str:
    """Link to a static file; the address changes with the files."""
    return f"{links.STATIC_PATH}/{compute_static_digest()}/{name}"


def fill_template(template: str, **data: object) -> str:
    """Fill a template of the application."""
    return make_environment().get_template(f"web/{template}").render(data)


def answer_page(
    template: str,
    http: int = 200,
    headers: dict[str, str] | None = None,
    **data: object,
) -> Response:
    """Answer with a page; a reader's has nothing that begins or changes anything."""
    if IS_READER.get():
        data = data | {"read_only": True}
    return HTMLResponse(fill_template(template, **data), http, headers)


def wants_json(scope: Scope) -> bool:
    """Return whether the client wants JSON rather than pages, as forms do that are sent without a script."""
    accepted = Headers(scope=scope).get("accept", "")
    return accepted == "application/json" or (
        scope["path"].startswith("/api/") and "text/html" not in accepted
    )


def answer_refusal(
    scope: Scope,
    status: int,
    what: str,
    hint: str,
    where: str = "",
) -> Response:
    """Answer with what was wrong, where, and what to do."""
    if wants_json(scope):
        error = {
            "ok": False,
            "error": what,
            "where": where,
            "remedy": hint,
            "status": status,
        }
        return JSONResponse(error, status)

    # a form that the server failed to take has to be sent again
    lost = scope["method"] == "POST" and status >= 500
    return answer_page(
        "fault.html",
        status,
        code=status,
        what=what,
        hint=hint,
        where=where,
        lost=lost,
        here="",
        site="",
    )


def answer_failure(scope: Scope, error: PollexError) -> Response:
    """Answer with an error of ours; a remedy names no option that whoever looks at a page can't give."""
    if isinstance(error, StoreBusy):
        hint = "wait until it has ended, then send it again"
    else:
        hint = error.advice

    return answer_refusal(scope, find_status(error), error.what, hint, error.where)


def format_duration(ms: float | None) -> str:
    """Write a duration: `820 ms`, `4.2 s`, `3 min 20 s`, `2 h 5 min`; unknown where a clock was set back."""
    if not is_known(ms) or ms < 0:
        return "unknown"
    if ms < 1000:
        return f"{ms:.0f}{NO_BREAK_SPACE}ms"

    seconds = ms / 1000
    if seconds < 60:
        return f"{seconds:.1f}{NO_BREAK_SPACE}s"

    # rounded before it is divided, so that no minute has 60 s
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes}{NO_BREAK_SPACE}min {rest}{NO_BREAK_SPACE}s"
    return f"{minutes // 60}{NO_BREAK_SPACE}h {minutes % 60}{NO_BREAK_SPACE}min"


def format_moment(time: str | None) -> str:
    """Write an ISO time to the second, in UTC: `2026-11-22 17:39:22`."""
    if not time:
        return ""
    return time[:19].replace("T", " ")


def format_whole_number(number: float | None) -> str:
    """Write a whole number with separators; missing ones are a dash."""
    if number is None:
        return "–"
    return f"{number:,.0f}".replace("-", MINUS_SIGN)


def format_dollars(amount: float | None) -> str:
    """Write a cost; one that isn't known is said to be unknown, never guessed."""
    if amount is None:
        return "unknown"
    if amount < 1:
        return f"${amount:,.4f}"
    return f"${amount:,.2f}"


def format_in_one_line(text: str, limit: int = 120) -> str:
    """Write a text in one line, cut to `limit` characters."""
    return escape_controls(" ".join(text.split()), limit)


def shorten_id(id_: str, limit: int = 40) -> str:
    """Write a conversation's id: of one that is a digest, as where a log has none, its beginning."""
    if id_.startswith("sha256-"):
        return id_.removeprefix("sha256-")[:8]
    return format_in_one_line(id_, limit)


def format_option_value(value: object) -> str:
    """Write what an option was given: lists with commas, nothing as a dash."""
    if isinstance(value, list | tuple):
        return ", ".join(map(format_option_value, value)) or "–"
    if value is None:
        return "–"
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)


def format_elapsed_time(began: str, ended: str | None) -> str:
    """Write how long something took; empty while it goes on."""
    if not ended:
        return ""
    return format_duration(
        1000 * (datetime.fromisoformat(ended) - datetime.fromisoformat(began)).total_seconds()
    )


@dataclass(frozen=True)
class TurnPart:
    """Parts of a turn between two fences, prose or code."""

    parts: tuple[MarkedText, ...]
    code: bool


def split_at_fences(parts: Sequence[MarkedText]) -> list[TurnPart]:
    """Split a turn at code fences; the fences stay in the code."""
    # stretches of prose and of code by turns, each with its parts
    lines = [list[MarkedText]()]
    code = [False]
    for part in parts:
        for text in _FENCE_PATTERN.split(part.text):
            fence = _FENCE_PATTERN.fullmatch(text) is not None
            if fence and not code[-1]:
                lines.append([])
                code.append(True)
            if text:
                lines[-1].append(MarkedText(text, part.kind))
            if fence and code[-1] and len(lines[-1]) > 1:
                lines.append([])
                code.append(False)

    parts_of_turn = []
    for stretch, is_code in zip(lines, code, strict=True):
        if stretch:
            parts_of_turn.append(TurnPart(tuple(stretch), is_code))
    return parts_of_turn


_FENCE_PATTERN = re.compile(r"(^```[^\n]*$)", re.MULTILINE)


def quote_word(word: str) -> str:
    """Write a word of a command as one types it."""
    return shlex.quote(word)


def write_resume_command(run: Run, folder: Path) -> str:
    """Write the command that resumes a run of a store; empty for runs that no command began."""
    command = shlex.join(make_resume_words(run, folder))
    # relative paths in the command hold only in the folder where it was typed
    began = run.arguments.get("folder")
    if began and command:
        return f"cd {shlex.quote(began)} && {command}"
    return command


def make_resume_words(run: Run, folder: Path) -> list[str]:
    """Return the words of that command; a run of `learn` is named, since a fork has its parent's settings.

    A store may be a stranger's: what isn't a command of pollex is none.
    """
    try:
        typed = shlex.split(run.arguments.get("command") or "")
    except (ValueError, AttributeError):
        return []

    # nothing but pollex is carried on, and a demo is begun anew
    if typed[:1] != ["pollex"] or typed[1:2] in ([], ["demo"]):
        return []

    # the store is named at the end; a fork's parent is named by the run itself
    forks = any(word.partition("=")[0] == FROM_OPTION for word in typed)
    out = {STORE_OPTION, FROM_OPTION, "--rubrics-from"} if forks else {STORE_OPTION}
    entries = []
    # an option and its value are two words, or one with an equals sign
    for before, word in zip(["", *typed], typed, strict=False):
        if before not in out and word.partition("=")[0] not in out:
            entries.append(word)

    named = [FROM_OPTION, run.id] if run.command == "learn" else []
    if typed:
        return [*entries, "--resume", *named, STORE_OPTION, str(folder.absolute())]
    return []


STORE_OPTION = "--store"
FROM_OPTION = "--from"

FILTERS = {
    "doubt": describe_doubt_about_rubric,
    "dollars": format_dollars,
    "duration": format_duration,
    "elapsed": format_elapsed_time,
    "fences": split_at_fences,
    "given": format_option_value,
    "moment": format_moment,
    "one_line": format_in_one_line,
    "kind_of_run": name_kind_of_run,
    "log_of_run": name_log_of_run,
    "logs_of_command": name_logs_of_command,
    "quoted": quote_word,
    "resuming": write_resume_command,
    "short_id": shorten_id,
    "stage_name": name_stage,
    "whole": format_whole_number,
    "worth_told": describe_worth,
}
"""Filters by the names that templates call them by."""
