"""`pollex answer` and `pollex grade` as commands, on a server whose counts are the truth."""

import json
import re
from typing import Any

import pytest
from benches import Bench, Ended, sums

from pollex.rooms.grade.prompts.grading.profile import ReferencingProfile

pytestmark = pytest.mark.nightly  # CI has twenty minutes

CATEGORIES = ["知识", "数学计算", "文本写作", "综合问答"]
TYPES = [None, "logical", "generative", "advice"]


def graded(*answers: Any) -> str:
    """What a judge writes that answers in order."""
    return json.dumps(
        {str(i): {"why": "so", "answer": answer} for i, answer in enumerate(answers, 1)}
    )


def said(match: str, content: str, **more: Any) -> dict[str, Any]:
    """A rule: where the body holds `match`, that is the answer."""
    return {"do": "message", "match": match, "content": content, **more}


def toml_of(profile: ReferencingProfile) -> str:
    """A profile as its file: JSON's strings, numbers and lists of them are TOML's too."""
    values = profile.model_dump(mode="json")
    lines = [
        f"{name} = {json.dumps(values[name])}"
        for name in ("language", "lowest", "highest", "pivot")
    ]
    tables = [("words", values["words"]), ("unknown", values["unknown"])]
    tables += [
        (f"{kind}.{key}", one)
        for kind in ("dimensions", "types")
        for key, one in values[kind].items()
    ]
    for head, table in [
        *((f"[{name}]", one) for name, one in tables),
        *(("[[rules]]", one) for one in values["rules"]),
    ]:
        lines += [head, *(f"{name} = {json.dumps(value)}" for name, value in table.items())]
    return "\n".join(lines) + "\n"


class Exam:
    """Questions, answers and commands in a bench's folder."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench

    def questions(self, count: int = 8, **changed: Any) -> None:
        rows = [
            {
                "question_id": number,
                "category": CATEGORIES[number % 4],
                "subcategory": "",
                "question": f"Why is matter {number:03d} so?",
                "reference": f"Because of cause {number:03d}.",
                "evidences": [{"url": "https://example.org", "quote": f"cause {number:03d}"}]
                if number % 2
                else [],
                "answer": f"It comes from cause {number:03d}.",
                "human": 1 + number % 9,
            }
            | changed
            for number in range(count)
        ]
        self.write("q.jsonl", [{k: v for k, v in row.items() if v is not None} for row in rows])

    def write(self, name: str, rows: list[dict[str, Any]]) -> None:
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        (self.bench.folder / name).write_text(text, encoding="utf-8")

    def rows(self, name: str) -> list[dict[str, Any]]:
        return [
            json.loads(line)
            for line in (self.bench.folder / name).read_text(encoding="utf-8").splitlines()
        ]

    def answering(self, *options: object) -> list[str]:
        return self.bench.command(
            "answer", "q.jsonl", "--model", "sut", "--out", "a.jsonl", *options
        )

    def judging(self, *options: object, out: str = "g.jsonl") -> list[str]:
        return self.bench.command("grade", "q.jsonl", "--model", "judge", "--out", out, *options)

    def answer(self, *options: object) -> Ended:
        return self.bench.run(self.answering(*options))

    def judge(self, *options: object, out: str = "g.jsonl") -> Ended:
        return self.bench.run(self.judging(*options, out=out))


@pytest.fixture
def exam(bench: Bench) -> Exam:
    made = Exam(bench)
    bench.server.script([])
    made.questions()
    return made


def test_a_category_decides_the_temperature_and_thoughts_are_no_part_of_an_answer(
    exam: Exam,
) -> None:
    exam.bench.server.script(
        [
            said("matter 006", "<think>hm, 41?</think>\n42"),
            said("matter 007", "<think>hm</think>"),
            said("matter 004", "<think>they may go on for"),
            said("matter 005", "Thoughts end with </think>, and begin with <think>."),
            said('"temperature":0.7', "free"),
            said('"temperature":0.1', "fixed"),
        ]
    )
    assert exam.answer().code == 3
    rows = exam.rows("a.jsonl")
    assert [(row["answer"], row["temperature"]) for row in rows[:4]] == [
        ("free", 0.7),  # a category that the profile doesn't know
        ("fixed", 0.1),
        ("free", 0.7),
        ("free", 0.7),
    ]
    assert (rows[4]["answer"], rows[4]["outcome"]) == (None, "empty")  # thoughts that never end
    assert rows[5]["answer"] == "Thoughts end with </think>, and begin with <think>."
    assert {row["model"] for row in rows} == {"sut"}
    assert rows[6]["answer"] == "42"  # what it thought is no part of it
    assert (rows[7]["answer"], rows[7]["outcome"]) == (None, "empty")
    assert rows[5]["question"] == "Why is matter 005 so?"


def test_a_question_without_an_answer_keeps_its_row_and_a_resume_asks_only_what_can_be_mended(
    exam: Exam,
) -> None:
    exam.bench.server.script(
        [
            {"do": "status", "code": 400, "match": "matter 001"},
            said("matter 002", "", refusal="I won't."),
            {"do": "message", "match": "matter 003", "finish_reason": "length"},
        ]
    )
    ended = exam.answer()
    rows = exam.rows("a.jsonl")
    assert ended.code == 3
    assert ended.json["outcomes"] == {"answered": 5, "error": 1, "refused": 1, "truncated": 1}
    assert [row["outcome"] for row in rows[:4]] == ["answered", "error", "refused", "truncated"]
    assert [row["answer"] is None for row in rows[:4]] == [False, True, True, True]
    assert "I won't." in rows[2]["detail"]
    before = exam.bench.judged
    exam.bench.server.script([])
    again = exam.answer("--resume")
    assert exam.bench.judged == before + 1
    assert again.json["outcomes"] == {"answered": 6, "refused": 1, "truncated": 1}
    assert exam.answer("--resume", "--set", "retry_refused=yes").json["outcomes"] == {
        "answered": 7,
        "truncated": 1,
    }
    assert exam.bench.judged == before + 2


@pytest.mark.nightly  # test_ensemble_on_a_model.py shows it of runs
def test_no_question_is_bought_twice_in_whatever_run(exam: Exam) -> None:
    planned = exam.answer("--dry-run")
    assert exam.bench.server.counts()["received"] == 0
    exam.bench.started = 0
    assert planned.json["plan"]["answer"]["calls"] == 8
    first = exam.answer()
    second = exam.answer()
    assert exam.bench.judged == 8
    assert (first.json["usage"]["answer"]["sent"], second.json["usage"]["answer"]["known"]) == (
        8,
        8,
    )
    assert exam.answer("--dry-run").json["plan"]["answer"]["known"] == 8


@pytest.mark.nightly  # test_interrupted_runs.py shows limits of money and calls
def test_a_limit_stops_answering_and_a_resume_goes_on(exam: Exam) -> None:
    exam.questions(40)
    stopped = exam.answer("--max-calls", 15, "--concurrency", 4)
    assert stopped.code == 1
    assert "Go on with: pollex answer q.jsonl" in stopped.err
    assert exam.bench.judged == 15
    assert not (exam.bench.folder / "a.jsonl").exists()
    assert exam.answer("--resume").code == 0
    assert exam.bench.judged == 40
    assert [row["id"] for row in exam.rows("a.jsonl")] == [str(number) for number in range(40)]


def test_a_plan_says_what_samples_would_cost_at_an_endpoint_that_can_do_less(exam: Exam) -> None:
    notes = " ".join(exam.judge("--samples", 3, "--dry-run").json["notes"])
    assert "no log-probabilities, 3 samples judge so many times as often" in notes
    assert "--samples" not in " ".join(exam.judge("--dry-run").json["notes"])


def test_every_case_is_graded_on_the_dimensions_of_its_type_and_evidence_stays_with_it(
    exam: Exam,
) -> None:
    planned = exam.judge("--plain", "--dry-run").json["plan"]
    exam.bench.started = 0
    ended = exam.judge("--plain")
    assert ended.code in (0, 3), ended.err
    used = ended.json["usage"]
    assert {stage: row["calls"] for stage, row in planned.items()} == {
        s: row["calls"] for s, row in used.items()
    }
    rows = exam.rows("g.jsonl")
    assert [row["id"] for row in rows] == [str(number) for number in range(8)]
    for number, row in enumerate(rows):
        assert row["human"] == 1 + number % 9
        assert 1 <= row["plain"] <= 10
        assert row["evidences"] == (
            [{"url": "https://example.org", "quote": f"cause {number:03d}"}] if number % 2 else []
        )
        asked = [answer["question"] for answer in row["answers"]]
        assert ("evidence" in asked) == bool(number % 2)
        assert row["type_from"] == (
            "category" if number % 4 else "model" if row["type"] else "unsure"
        )
        if number % 4:
            assert row["type"] == TYPES[number % 4]
        if row["type"] == "generative":
            expected = {"correctness", "need", "coherence", "creativity", "richness", "overall"}
            assert row["grades"].keys() == expected
    usage = ended.json["usage"]
    assert sums(usage)
    assert {
        stage: usage[stage]["calls"]
        for stage in ("classify", "check_evidence", "grade", "grade_plainly")
    } == {
        "classify": 2,
        "check_evidence": 4,
        "grade": 8,
        "grade_plainly": 8,
    }
    assert exam.bench.judged == 22


def test_grades_off_the_scale_are_listed_as_unparsable_and_count_for_nothing(exam: Exam) -> None:
    exam.questions(4, category="数学计算", evidences=None)
    exam.bench.server.script(
        [
            said("matter 000", graded(8, 8, 8, 8, 11)),
            said("matter 001", graded(0, "9/10", 8.5, 12, -3)),
            said("matter", graded(7, 7, 7, 7, 6)),
        ]
    )
    ended = exam.judge()
    rows = exam.rows("g.jsonl")
    assert ended.code == 3
    assert [row["outcome"] for row in rows] == ["incomplete", "unparsable", "graded", "graded"]
    assert [row["overall"] for row in rows] == [None, None, 6, 6]
    assert rows[1]["grades"] == {}
    assert "off the scale: '11'" in rows[0]["detail"]
    means = {mean["dimension"]: (mean["value"], mean["n"]) for mean in ended.json["means"]}
    assert means["overall"] == (6, 2)
    assert means["correctness"] == (pytest.approx((8 + 7 + 7) / 3), 3)
    assert "2 answers are not or not wholly graded" in ended.err


def test_references_that_are_missing_foreign_or_against_their_evidence_are_flagged_and_not_guessed(
    exam: Exam,
) -> None:
    exam.questions(4, category="数学计算")
    rows = exam.rows("q.jsonl")
    del rows[0]["reference"]
    rows[2]["reference"] = "这是因为有一个非常重要的原因在里面起作用"
    rows[2]["question"] = "Why does matter 002 behave the way that everybody can see?"
    exam.write("q.jsonl", rows)
    exam.bench.server.script(
        [
            # the answer, which the check of the evidence doesn't show
            said("It comes from", graded(8, 8, 8, 8, 8)),
            said("matter 001", graded("contradicts")),
            said("matter 003", graded("unsure")),
        ]
    )
    ended = exam.judge()
    found = exam.rows("g.jsonl")
    assert ended.code == 3
    assert exam.bench.judged == 3 + 2  # without a reference nobody is asked
    assert [(row["outcome"], row["overall"], row["flags"]) for row in found] == [
        ("not_scorable", None, ["no reference"]),
        ("suspect", None, ["reference and evidence: contradicts"]),
        ("graded", 8, ["reference in another language than the question"]),
        ("graded", 8, ["reference and evidence: unsure"]),
    ]
    assert ended.json["flags"]["no reference"] == 1
    assert "the reference contradicts its evidence: so" in found[1]["detail"]


def test_a_profile_of_ones_own_is_a_file_and_the_trace_shows_its_grades_and_dimensions(
    exam: Exam,
) -> None:
    shipped = ReferencingProfile.load("english").model_dump(mode="json")
    rules = [{"lowest": grade, "highest": grade, "text": f"worth {grade}"} for grade in range(1, 6)]
    profile = ReferencingProfile.model_validate(
        shipped | {"lowest": 1, "highest": 5, "pivot": 4, "rules": rules}
    )
    (exam.bench.folder / "five.toml").write_text(toml_of(profile), encoding="utf-8")
    exam.questions(2, category="logic", evidences=None, human=None)
    exam.bench.server.script(
        [said("matter 000", graded(5, 4, 4, 4, 4)), said("matter 001", graded(6, 4, 4, 4, 4))]
    )
    assert exam.judge("--profile", "five.toml").code == 3
    whole, lacking = exam.rows("g.jsonl")
    assert whole["grades"] == {
        "correctness": 5,
        "need": 4,
        "coherence": 4,
        "completeness": 4,
        "overall": 4,
    }
    assert (lacking["outcome"], lacking["grades"].get("correctness")) == ("incomplete", None)
    shown = exam.bench.run(["trace", "last", "--conversation", "0", "--store", ".pollex"]).out
    assert f"correctness  {profile.dimensions['correctness'].name}: " in shown
    assert "  5 (point, judge grade_reference" in shown
    assert "Agree" not in shown


def test_a_type_that_the_model_is_unsure_of_is_flagged_and_graded_on_the_default_dimensions(
    exam: Exam,
) -> None:
    exam.questions(2, category=None, evidences=None)
    # The first call about a case asks for its type, the second one grades.
    exam.bench.server.script(
        [
            said("matter 000", graded("unsure"), count=1),
            said("matter 001", graded("advice"), count=1),
        ]
    )
    exam.judge()
    unsure, advice = exam.rows("g.jsonl")
    assert (unsure["type"], unsure["type_from"], unsure["flags"]) == (
        None,
        "unsure",
        ["task type unsure"],
    )
    assert unsure["grades"].keys() == {"correctness", "need", "clarity", "completeness", "overall"}
    assert (advice["type"], advice["type_from"], advice["flags"]) == ("advice", "model", [])
    assert advice["grades"].keys() == {"correctness", "need", "fairness", "creativity", "overall"}


@pytest.mark.nightly  # test_killed_runs.py shows it of scores
def test_a_killed_grading_run_goes_on_and_comes_to_the_same(exam: Exam) -> None:
    exam.questions(30, category="数学计算", evidences=None)
    exam.bench.server.script([{"do": "honest", "latency": 0.05}])
    process = exam.bench.start(exam.judging("--set", "concurrency=4"))
    exam.bench.wait_for_calls(15)
    lost = exam.bench.kill(process)
    assert exam.judge("--resume").code == 0
    assert exam.bench.judged == 30 + lost
    again = exam.judge(out="again.jsonl").json["usage"]["grade"]
    assert (again["known"], again["sent"]) == (30, 0)
    assert exam.rows("again.jsonl") == exam.rows("g.jsonl")


@pytest.mark.nightly  # test_interrupted_runs.py shows what may not change
def test_a_resume_with_another_profile_is_refused(exam: Exam) -> None:
    assert exam.judge("--max-calls", 5).code == 1
    ended = exam.judge("--resume", "--profile", "chinese")
    assert ended.code == 1
    assert "was started with other settings" in ended.err
    assert "profile" in ended.err


@pytest.mark.nightly  # test_endpoint_faults.py shows it of scores
def test_a_grade_that_was_refused_is_asked_for_again_by_a_resume_that_is_told_to(
    exam: Exam,
) -> None:
    exam.questions(3, evidences=None, category="数学计算")
    exam.bench.server.script([said("cause 001", "", refusal="I won't.")])
    assert exam.judge().json["outcomes"] == {"graded": 2, "refused": 1}
    exam.bench.server.script([])
    assert exam.judge("--resume").json["outcomes"] == {"graded": 2, "refused": 1}
    ended = exam.judge("--resume", "--set", "retry_refused=yes")
    assert ended.json["outcomes"] == {"graded": 3}
    assert ended.json["usage"]["all"]["sent"] == 1


def test_answers_flow_from_one_command_into_the_other_with_those_that_are_missing(
    exam: Exam,
) -> None:
    exam.questions(4, answer=None, human=None, category="数学计算", evidences=None)
    exam.bench.server.script([said("matter 001", "", refusal="I won't.")])
    exam.answer()
    exam.write("h.jsonl", [{"id": str(number), "grade": 5 + number} for number in range(4)])
    exam.bench.server.script([])
    ended = exam.judge("--answers", "a.jsonl", "--human", "h.jsonl", "--model", "sut")
    rows = exam.rows("g.jsonl")
    assert {row["answered_by"] for row in rows} == {"sut"}
    assert "sut grades answers of its own" in ended.err
    assert rows[1]["detail"] == "no answer: refused: I won't."
    assert [row["outcome"] for row in rows] == ["graded", "not_scorable", "graded", "graded"]
    assert [row["human"] for row in rows] == [5, None, 7, 8]
    assert (
        "1 of people's grades is of answers that aren't there, the first that of '1'"
        in ended.out + ended.err
    )
    assert ended.json["areas"]["rules"]["n"] == 3


def test_means_distributions_and_the_page_are_those_of_the_rows(exam: Exam) -> None:
    exam.questions(24, category="<script>alert(1)</script>", evidences=None)
    rows = exam.rows("q.jsonl")
    exam.write(
        "q.jsonl",
        [
            row | {"category": "数学计算" if i % 2 else row["category"]}
            for i, row in enumerate(rows)
        ],
    )
    ended = exam.judge("--plain", "--page", "out/page.html")
    told = ended.json
    rows = exam.rows("g.jsonl")
    means = {(mean["category"], mean["dimension"]): mean for mean in told["means"]}
    assert {category for category, _ in means} == {"all", "数学计算", "<script>alert(1)</script>"}
    for name in ("overall", "plain", "human"):
        values = [row[name] for row in rows]
        assert means["all", name]["value"] == pytest.approx(sum(values) / 24)
        assert means["all", name]["n"] == 24
        low, high = means["all", name]["interval"]
        assert low < means["all", name]["value"] < high
    assert means["数学计算", "overall"]["value"] == pytest.approx(
        sum(row["overall"] for row in rows[1::2]) / 12
    )
    shares = told["distributions"]
    assert shares.keys() == {"rules", "plain", "human"}
    assert shares["human"]["5"] == pytest.approx(sum(row["human"] <= 5 for row in rows) / 24)
    assert shares["rules"]["10"] == 1.0
    assert told["areas"].keys() == {"rules", "plain", "rules - plain"}
    page = (exam.bench.folder / told["page"]).read_text(encoding="utf-8")
    assert len(re.findall(r'<path [^>]*class="curve (?:ink|negative|positive)"', page)) == 3
    assert "(n = 24)" in page
    assert "<script" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert "//" not in re.sub(r"<style>.*?</style>", "", page, flags=re.DOTALL)
    assert not re.search(r"\bcalibrated\b", page)
