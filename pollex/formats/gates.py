"""Verdicts of a gate in the forms that build servers read: JUnit's XML, and GitHub's annotations and summary."""

import re
from collections.abc import Iterator, Sequence
from xml.etree import ElementTree

GateVerdict = tuple[str, str, str]
"""Condition; `passed`, `undecided` or `failed`; message."""

MAX_ANNOTATIONS = 9
"""Annotations that are printed: GitHub keeps ten of a step."""

XML_FORBIDDEN_PATTERN = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 can't hold."""


def make_junit_report(verdicts: Sequence[GateVerdict], *, strict: bool = False) -> bytes:
    """Return a suite with a test a condition; an undecided one fails where that is asked for."""
    failures = sum(fails_gate(status, strict=strict) for _, status, _ in verdicts)
    skipped = sum(status == "undecided" and not strict for _, status, _ in verdicts)
    about = {
        "tests": len(verdicts),
        "failures": failures,
        "errors": 0,
        "skipped": skipped,
    }
    counts = {name: str(number) for name, number in about.items()}
    suites = ElementTree.Element("testsuites")
    suite = ElementTree.SubElement(
        suites,
        "testsuite",
        {"name": "pollex check", **counts},
    )
    # a case for each condition, with why it failed or was skipped
    for number, (condition, status, message) in enumerate(verdicts, 1):
        case = ElementTree.SubElement(
            suite,
            "testcase",
            classname="pollex.check",
            name=f"{number}. {_remove_controls(condition)}",
        )
        if status != "passed":
            kind = "failure" if fails_gate(status, strict=strict) else "skipped"
            ElementTree.SubElement(
                case, kind, message=_remove_controls(message)
            ).text = _remove_controls(message)

    xml: bytes = ElementTree.tostring(
        suites,
        encoding="utf-8",
        xml_declaration=True,
    )
    return xml


def fails_gate(status: str, *, strict: bool) -> bool:
    """Tell whether a condition of this status fails the gate."""
    return status == "failed" or (strict and status == "undecided")


def iterate_workflow_commands(
    verdicts: Sequence[GateVerdict], *, strict: bool = False
) -> Iterator[str]:
    """Yield GitHub's workflow commands: errors, then warnings; nothing for what passed."""
    verdicts_unmet = []
    for verdict in verdicts:
        if verdict[1] != "passed":
            verdicts_unmet.append(verdict)
    unmet = sorted(
        verdicts_unmet,
        key=lambda verdict: not fails_gate(verdict[1], strict=strict),
    )
    for condition, status, message in unmet[:MAX_ANNOTATIONS]:
        kind = "error" if fails_gate(status, strict=strict) else "warning"
        yield f"::{kind} title={_escape_command_property(condition)}::{_escape_command_data(message)}"

    if len(unmet) > MAX_ANNOTATIONS:
        yield f"::warning title=pollex check::and {len(unmet) - MAX_ANNOTATIONS} more"


def format_verdict_table(verdicts: Sequence[GateVerdict]) -> str:
    """Return a Markdown table of all verdicts for the summary of a step."""
    rows = []
    for condition, status, message in verdicts:
        rows.append(
            f"| {_escape_table_cell(condition)} | {status} | {_escape_table_cell(message)} |"
        )

    return "\n".join(
        ["### pollex check", "", "| fails if | | figures |", "|---|---|---|", *rows, ""]
    )


def _remove_controls(text: str) -> str:
    return XML_FORBIDDEN_PATTERN.sub("", text)


def _escape_command_data(text: str) -> str:
    # the percent sign first, since the others bring some
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _escape_command_property(text: str) -> str:
    return _escape_command_data(text).replace(":", "%3A").replace(",", "%2C")


def _escape_table_cell(text: str) -> str:
    flat = " ".join(text.split()).replace("&", "&amp;").replace("<", "&lt;")
    return flat.replace("\\", "\\\\").replace("|", "\\|").replace("`", "\\`")
