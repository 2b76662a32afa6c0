"""Verdicts of a gate in the forms that build servers read: JUnit's XML, and GitHub's annotations and summary."""

import re
from collections.abc import Iterator, Sequence
from xml.etree import ElementTree

GateConditionVerdict = tuple[str, str, str]
"""Condition; `passed`, `undecided` or `failed`; message."""

MAX_GITHUB_ANNOTATIONS_PER_STEP = 9
"""Annotations that are printed: GitHub keeps ten of a step."""

XML_FORBIDDEN_PATTERN = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 can't hold."""


def make_junit_report_of_gate(
    verdicts: Sequence[GateConditionVerdict], *, strict: bool = False
) -> bytes:
    """Return a suite with a test a condition; an undecided one fails where that is asked for."""
    failures = sum(does_status_fail_gate(status, strict=strict) for _, status, _ in verdicts)
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
            kind = "failure" if does_status_fail_gate(status, strict=strict) else "skipped"
            ElementTree.SubElement(
                case, kind, message=_remove_controls(message)
            ).text = _remove_controls(message)

    xml: bytes = ElementTree.tostring(
        suites,
        encoding="utf-8",
        xml_declaration=True,
    )
    return xml


def does_status_fail_gate(status: str, *, strict: bool) -> bool:
    """Tell whether a condition of this status fails the gate."""
    return status == "failed" or (strict and status == "undecided")


def iterate_github_workflow_commands(
    verdicts: Sequence[GateConditionVerdict], *, strict: bool = False
) -> Iterator[str]:
    """Yield GitHub's workflow commands: errors, then warnings; nothing for what passed."""
    verdicts_unmet = []
    for verdict in verdicts:
        if verdict[1] != "passed":
            verdicts_unmet.append(verdict)
    unmet = sorted(
        verdicts_unmet,
        key=lambda verdict: not does_status_fail_gate(verdict[1], strict=strict),
    )
    for condition, status, message in unmet[:MAX_GITHUB_ANNOTATIONS_PER_STEP]:
        kind = "error" if does_status_fail_gate(status, strict=strict) else "warning"
        yield f"::{kind} title={_escape_command_property(condition)}::{_escape_command_data(message)}"

    if len(unmet) > MAX_GITHUB_ANNOTATIONS_PER_STEP:
        yield f"::warning title=pollex check::and {len(unmet) - MAX_GITHUB_ANNOTATIONS_PER_STEP} more"


def format_verdict_table(verdicts: Sequence[GateConditionVerdict]) -> str:
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
