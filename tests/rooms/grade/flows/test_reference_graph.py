"""The graphs of answering and referencing with judges in this process: batches, types, failures, what a resume asks."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from web_site import client_of, made_app

from pollex.conversations.conversation import Conversation
from pollex.errors import ModelUnavailable, ResumeRefused
from pollex.rooms.grade.agents.llm.reference_judge import (
    PLAIN_QUESTION_ID,
    TYPE_QUESTION_ID,
    CaseGrading,
)
from pollex.rooms.grade.conversations.references import (
    ReferenceCase,
    ReferenceCases,
    ReferenceEvidence,
)
from pollex.rooms.grade.formats.grade_summary import summarize_grades
from pollex.rooms.grade.prompts.grading.profile import EVIDENCE_QUESTION_ID, ReferencingProfile
from pollex.rooms.grade.services.answer import collect_responses, iterate_responses
from pollex.rooms.grade.services.grade import grade_cases, iterate_gradings
from pollex.rubrics.answers import Answer, Question, Unanswered
from pollex.runs.run import RunSettings
from pollex.store.store import Store

PROFILE = ReferencingProfile.load("english")


def case(number: int, **changed: Any) -> ReferenceCase:
    known = {
        "question": f"Why {number}?",
        "reference": "So.",
        "answer": "Thus.",
        "category": "logical",
    }
    return ReferenceCase(id=f"c{number}", **(known | changed))


CASES = ReferenceCases(tuple(case(number) for number in range(7)))


class Fixed:
    """Answers each question with one of its options, by its text, and counts what it is asked.

    Attributes:
        says: By question id, the option's text; the last option where nothing is said.
        breaks: Ids of conversations at which it raises, or doesn't answer.
    """

    def __init__(
        self, says: dict[str, str] | None = None, breaks: dict[str, Exception | str] | None = None
    ) -> None:
        self.says = says or {}
        self.breaks = breaks or {}
        self.asked: Counter[str] = Counter()
        self.name = self.fingerprint = "fixed"
        self.learned: dict[str, Any] = {}

    async def fit(self, *_: Any) -> None: ...

    async def prepare(self, *_: Any) -> None: ...

    def understood(self, rubric: Any) -> Any:
        return rubric

    async def judge(
        self, conversation: Conversation, questions: Sequence[Question]
    ) -> list[Answer | Unanswered]:
        self.asked[conversation.id] += 1
        trouble = self.breaks.get(conversation.id)
        if isinstance(trouble, Exception):
            raise trouble
        if trouble:
            return [Unanswered(question_id=q.id, outcome=trouble) for q in questions]  # type: ignore[arg-type]
        return [self._answer(question) for question in questions]

    def _answer(self, question: Question) -> Answer:
        texts = [option.text for option in question.options]
        chosen = texts.index(self.says.get(question.id, texts[-1]))
        point = tuple(float(i == chosen) for i in range(len(texts)))
        return Answer(
            question_id=question.id,
            probabilities=point,
            chosen=chosen,
            source="point",
            judge="fixed",
        )


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "store") as opened:
        yield opened


async def graded(
    store: Store, cases: ReferenceCases = CASES, judge: Fixed | None = None, **changes: Any
) -> list[CaseGrading]:
    roles = {
        "classifier": changes.pop("classifier", None) or Fixed({TYPE_QUESTION_ID: "advice"}),
        "plain": changes.pop("plain", None),
    }
    run, _ = await grade_cases(
        cases,
        profile=PROFILE,
        judge=judge or Fixed(),
        setting=RunSettings.of(store, **changes),
        **roles,
    )
    return list(iterate_gradings(store, run, PROFILE, cases))


async def test_every_case_is_graded_once_in_batches_of_whatever_size(store: Store) -> None:
    for batch in (1, 2, 100):
        judge = Fixed({"overall": "6"})
        plain = Fixed({PLAIN_QUESTION_ID: "9"})
        found = await graded(store, judge=judge, plain=plain, batch=batch)
        assert [one.case.id for one in found] == [one.id for one in CASES]
        assert {one.outcome for one in found} == {"graded"}
        assert set(judge.asked.values()) == set(plain.asked.values()) == {1}
    assert await graded(store, ReferenceCases(())) == []


async def test_a_judge_that_fails_fails_its_case_alone_and_a_resume_asks_again_what_may_be_mended(
    store: Store,
) -> None:
    breaks = {"c1": "error", "c2": RuntimeError("boom"), "c3": "refused", "c4": "unparsable"}
    found = await graded(store, judge=Fixed(breaks=breaks), batch=3)
    assert [one.outcome for one in found] == [
        "graded",
        "error",
        "error",
        "refused",
        "unparsable",
        "graded",
        "graded",
    ]
    assert "boom" in found[2].detail
    judge = Fixed()
    found = await graded(store, judge=judge, batch=3, resume=True)
    assert set(judge.asked) == {"c1", "c2", "c4"}
    assert [one.outcome for one in found] == ["graded"] * 3 + ["refused"] + ["graded"] * 3


async def test_an_endpoint_that_is_gone_stops_the_run_and_a_resume_asks_only_the_rest_of_the_same_cases(
    store: Store,
) -> None:
    with pytest.raises(ModelUnavailable):
        await graded(store, judge=Fixed(breaks={"c4": ModelUnavailable("gone")}), batch=2)
    with pytest.raises(ResumeRefused, match="data"):
        await graded(store, ReferenceCases((case(0, reference="Other."),)), resume=True)
    judge = Fixed()
    found = await graded(store, judge=judge, batch=2, resume=True)
    assert {one.outcome for one in found} == {"graded"}
    assert {"c4", "c6"} <= set(judge.asked) <= {"c4", "c5", "c6"}


async def test_types_are_asked_for_only_where_no_category_tells_and_something_can_be_graded(
    store: Store,
) -> None:
    martian = {"category": "martian"}
    cases = ReferenceCases(
        (
            case(0),
            case(1, **martian),
            case(2, answer=None, **martian),
            case(3, reference=""),
            case(4, **martian),
        )
    )
    classifier = Fixed({TYPE_QUESTION_ID: "advice"}, breaks={"c4": "refused"})
    found = await graded(store, cases, classifier=classifier)
    assert set(classifier.asked) == {"c1", "c4"}
    told = [(one.type, one.type_from) for one in found if one.case.id != "c3"]
    assert told == [("logical", "category"), ("advice", "model"), (None, ""), (None, "unanswered")]
    assert [q.id for q in found[1].graded] == [
        "correctness",
        "need",
        "fairness",
        "creativity",
        "overall",
    ]
    (unsure,) = await graded(
        store, ReferenceCases((case(4, **martian),)), classifier=Fixed({TYPE_QUESTION_ID: "unsure"})
    )
    for one, told_by in ((found[4], "unanswered"), (unsure, "unsure")):
        assert (one.type, one.type_from, one.outcome) == (None, told_by, "graded")
        assert one.flags == (f"task type {told_by}",)
        assert [q.id for q in one.graded] == [*PROFILE.unknown.dimensions, "overall"]


async def test_a_reference_that_could_not_be_held_against_its_evidence_is_flagged(
    store: Store,
) -> None:
    class Unable(Fixed):
        def _answer(self, question: Question) -> Any:
            if question.id == EVIDENCE_QUESTION_ID:
                return Unanswered(question_id=question.id, outcome="unparsable")
            return super()._answer(question)

    evidences = (ReferenceEvidence(quote="q"),)
    cases = ReferenceCases(
        (case(0, evidences=evidences), case(1, evidences=evidences, answer=None))
    )
    found = await graded(store, cases, Unable(breaks={"c1": "not_scorable"}))
    flagged = [(one.flags, one.outcome) for one in found]
    assert flagged == [(("reference and evidence: not checked",), "graded"), ((), "not_scorable")]


async def test_means_by_category_and_dimension_by_hand(store: Store) -> None:
    cases = ReferenceCases(
        (
            case(0, category="logical", human=4.0),
            case(1, category="advice", evidences=(ReferenceEvidence(quote="q"),)),
            case(2, category="advice", reference=""),
        )
    )
    says = {"evidence": "consistent", "overall": "6", "correctness": "8", "creativity": "2"}
    judge = Fixed(says, breaks={"c2": "not_scorable"})
    found = summarize_grades(
        PROFILE, await graded(store, cases, judge, plain=Fixed({PLAIN_QUESTION_ID: "9"}))
    )
    assert found.categories == ("all", "logical", "advice")
    places = {(m.category, m.dimension): (m.figure.value, m.figure.n) for m in found.means}
    assert found.outcomes == {"graded": 2, "not_scorable": 1}
    assert places["all", "correctness"] == (8.0, 2)
    assert places["all", "overall"] == (6.0, 2)
    assert places["all", "plain"] == (9.0, 3)  # the plain judge needs no reference
    assert places["all", "human"] == (4.0, 1)
    assert places["advice", "creativity"] == (2.0, 1)
    assert ("logical", "creativity") not in places
    assert ("advice", "human") not in places
    assert found.areas["rules"].value == pytest.approx(2.0)
    assert found.shares["rules"][[49, 50]].tolist() == [0.0, 1.0]


class Speaker:
    """A system under test: says its temperature, or what is wrong."""

    name = fingerprint = "speaker"

    def __init__(self, breaks: dict[str, Exception | Unanswered] | None = None) -> None:
        self.breaks = breaks or {}
        self.asked: list[str] = []

    async def respond(self, item: str, question: str, temperature: float) -> str | Unanswered:
        self.asked.append(item)
        trouble = self.breaks.get(item)
        if isinstance(trouble, Exception):
            raise trouble
        return trouble or f"{question} At {temperature}."


async def answered(
    store: Store, speaker: Speaker, cases: ReferenceCases = CASES, **setting: Any
) -> list[tuple[str | None, str]]:
    run, _ = await collect_responses(
        cases, respondent=speaker, profile=PROFILE, setting=RunSettings.of(store, **setting)
    )  # type: ignore[arg-type]
    return [(found.answer, found.outcome) for found in iterate_responses(store, run, cases)]


async def test_every_question_is_answered_once_at_the_temperature_of_its_category(
    store: Store,
) -> None:
    speaker = Speaker()
    cases = ReferenceCases((case(0), case(1, category="writing"), case(2, category="martian")))
    said = [answer for answer, _ in await answered(store, speaker, cases, batch=2)]
    assert said == ["Why 0? At 0.1.", "Why 1? At 0.7.", "Why 2? At 0.7."]
    assert speaker.asked == ["c0", "c1", "c2"]


async def test_a_question_that_fails_fails_alone_and_a_resume_asks_the_rest_and_what_may_be_mended(
    store: Store,
) -> None:
    refused = Unanswered(question_id="c1", outcome="refused", detail="no")
    with pytest.raises(ModelUnavailable):
        await answered(
            store,
            Speaker({"c0": RuntimeError("boom"), "c1": refused, "c4": ModelUnavailable("gone")}),
            batch=2,
        )
    for mended, outcome in (({"c0": RuntimeError("boom")}, "error"), ({}, "answered")):
        speaker = Speaker(dict(mended))
        found = await answered(store, speaker, batch=2, resume=True)
        assert [one for _, one in found] == [outcome, "refused", *["answered"] * 5]
        assert set(speaker.asked) <= {"c0", "c4", "c5", "c6"}
    assert speaker.asked == ["c0"]


async def test_the_page_of_the_run_has_means_curves_and_an_answer_with_what_the_judge_said(
    store: Store,
) -> None:
    cases = ReferenceCases(
        tuple(
            case(n, human=float(n), evidences=(ReferenceEvidence(quote="scattered most"),))
            for n in range(3)
        )
    )
    judge = Fixed({"overall": "6", EVIDENCE_QUESTION_ID: "consistent"})
    await graded(store, cases, judge, plain=Fixed({PLAIN_QUESTION_ID: "9"}))
    async with client_of(made_app(store)) as client:
        page = (await client.get("/runs/grade-1")).text
    shown = page.partition('id="distribution"')[2].partition('id="graph"')[0]
    for words in (
        "people (n = 3)",
        "plain: no reference",
        "6.00",
        "scattered most",
        "Thus.",
        "Krippendorff",
    ):
        assert words in shown, words
