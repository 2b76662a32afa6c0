"""What build servers read of a gate."""

from xml.etree import ElementTree

from pollex.formats.gates import (
    format_verdict_table,
    iterate_github_workflow_commands,
    make_junit_report_of_gate,
)

PASSED, UNDECIDED, FAILED = (
    ("mean(p) drops by 0.03", status, f"{status}: 5 %\nof 90")
    for status in ("passed", "undecided", "failed")
)


def test_junit_counts_and_names_each_condition_once() -> None:
    suite = ElementTree.fromstring(make_junit_report_of_gate([PASSED, UNDECIDED, FAILED])).find(
        "testsuite"
    )
    assert suite is not None
    assert [suite.get(name) for name in ("tests", "failures", "skipped")] == ["3", "1", "1"]
    assert len({(case.get("classname"), case.get("name")) for case in suite}) == 3
    (failure,) = suite.iter("failure")
    assert failure.text == failure.get("message") or failure.text == "failed: 5 %\nof 90"
    strict = ElementTree.fromstring(
        make_junit_report_of_gate([PASSED, UNDECIDED, FAILED], strict=True)
    ).find("testsuite")
    assert strict is not None
    assert [strict.get(name) for name in ("failures", "skipped")] == ["2", "0"]


def test_junit_stays_xml_whatever_a_condition_holds() -> None:
    found = ElementTree.fromstring(
        make_junit_report_of_gate([("a\x00\x1b<&>\ud800", "failed", "]]>\x07")])
    )
    assert found.find("testsuite/testcase/failure").text == "]]>"  # type: ignore[union-attr]


def test_annotations_are_one_line_each_and_ten_at_most() -> None:
    lines = list(iterate_github_workflow_commands([FAILED] * 12 + [PASSED]))
    assert len(lines) == 10
    assert lines[0] == "::error title=mean(p) drops by 0.03::failed: 5 %25%0Aof 90"
    assert lines[-1].endswith("and 3 more")
    assert next(iterate_github_workflow_commands([UNDECIDED])).startswith("::warning ")
    assert next(iterate_github_workflow_commands([UNDECIDED], strict=True)).startswith("::error ")
    assert list(iterate_github_workflow_commands([("a,b::c", "failed", "")])) == [
        "::error title=a%2Cb%3A%3Ac::"
    ]


def test_the_summary_is_a_table_that_no_text_breaks() -> None:
    lines = format_verdict_table([("a|b", "failed", "<b>\nc")]).splitlines()
    assert lines[-1] == "| a\\|b | failed | &lt;b> c |"
