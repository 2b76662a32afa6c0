"""The graphs of answering and referencing with judges in this process: batches, types, failures, what a resume asks."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from web_site import client_of, made_app

from pollex.agents.llm.reference_judge import PLAIN, TYPE, Grading
from pollex.conversations.conversation import Conversation
from pollex.conversations.references import Case, Cases, Evidence
from pollex.errors import ModelUnavailable, ResumeRefused
from pollex.formats.grade_summary import summary
from pollex.prompts.grading.profile import EVIDENCE, ReferencingProfile
from pollex.rubrics.answers import Answer, Question, Unanswered
from pollex.services.answer import respond, responses_of
from pollex.services.grade import grade_cases, gradings_of
from pollex.services.runs import RunSettings
from pollex.store.store import Store

PROFILE = ReferencingProfile.load("english")


def case(number: int, **changed: Any) -> Case:
    return Case(
        **{
            "id": f"c{number}",
            "question": f"Why {number}?",
            "reference": "So.",
            "answer": "Thus.",
            "category": "logical",
        }
        | changed
    )


CASES = Cases(tuple(case(number) for number in range(7)))


class Fixed:
    """Answers each question with one of its options, by its text, and counts what it is asked.

    Attributes:
        says: By question id, the option's text; the last option where nothing is said.
        breaks: Ids of conversations at which it raises, or doesn't answer.
    """

    def __init__(self, says: dict[str, str] | None = None, breaks: dict[str, Exception | str] | None = None) -> None:
        self.says, self.breaks = says or {}, breaks or {}
        self.asked: Counter[str] = Counter()
        self.name = self.fingerprint = "fixed"
        self.learned: dict[str, Any] = {}

    async def fit(self, *_: Any) -> None: ...

    async def prepare(self, *_: Any) -> None: ...

    def understood(self, rubric: Any) -> Any:
        return rubric

    async def judge(self, conversation: Conversation, questions: Sequence[Question]) -> list[Answer | Unanswered]:
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
        return Answer(question_id=question.id, probabilities=point, chosen=chosen, source="point", judge="fixed")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "store") as opened:
        yield opened


async def graded(
    store: Store, cases: Cases = CASES, judge: Fixed | None = None, plain: Fixed | None = None, **setting: Any
) -> list[Grading]:
    run, _ = await grade_cases(
        cases,
        profile=PROFILE,
        classifier=Fixed({TYPE: "advice"}),
        judge=judge or Fixed(),
        plain=plain,
        setting=RunSettings.of(store, **setting),
    )
    return list(gradings_of(store, run, PROFILE, cases))


@pytest.mark.parametrize("batch", [1, 2, 7, 100])
async def test_every_case_is_graded_once_in_batches_of_whatever_size(store: Store, batch: int) -> None:
    judge, plain = Fixed({"overall": "6"}), Fixed({PLAIN: "9"})
    found = await graded(store, judge=judge, plain=plain, batch=batch)
    assert [one.case.id for one in found] == [one.id for one in CASES]
    assert {one.outcome for one in found} == {"graded"}
    assert set(judge.asked.values()) == set(plain.asked.values()) == {1}


async def test_no_cases_come_to_no_grades(store: Store) -> None:
    assert await graded(store, Cases(())) == []


async def test_a_judge_that_raises_fails_its_case_alone(store: Store) -> None:
    found = await graded(store, judge=Fixed(breaks={"c2": RuntimeError("boom"), "c3": "refused"}), batch=3)
    assert [one.outcome for one in found] == ["graded", "graded", "error", "refused", "graded", "graded", "graded"]
    assert "boom" in found[2].detail


async def test_an_endpoint_that_is_gone_stops_the_run_and_a_resume_asks_only_the_rest(store: Store) -> None:
    with pytest.raises(ModelUnavailable):
        await graded(store, judge=Fixed(breaks={"c4": ModelUnavailable("gone")}), batch=2)
    judge = Fixed()
    found = await graded(store, judge=judge, batch=2, resume=True)
    assert {one.outcome for one in found} == {"graded"}
    assert set(judge.asked) <= {"c4", "c5", "c6"}
    assert {"c4", "c6"} <= set(judge.asked)


async def test_a_resume_asks_again_what_may_be_mended_and_not_what_was_refused(store: Store) -> None:
    await graded(store, judge=Fixed(breaks={"c1": "error", "c2": "refused", "c3": "unparsable"}))
    judge = Fixed()
    found = await graded(store, judge=judge, resume=True)
    assert set(judge.asked) == {"c1", "c3"}
    assert [one.outcome for one in found] == ["graded", "graded", "refused", "graded", "graded", "graded", "graded"]


async def test_a_resume_with_other_cases_is_refused(store: Store) -> None:
    with pytest.raises(ModelUnavailable):
        await graded(store, judge=Fixed(breaks={"c4": ModelUnavailable("gone")}))
    with pytest.raises(ResumeRefused, match="data"):
        await graded(store, Cases((case(0, reference="Other."),)), resume=True)


async def test_types_are_asked_for_only_where_no_category_tells_and_something_can_be_graded(store: Store) -> None:
    cases = Cases(
        (
            case(0),
            case(1, category="martian"),
            case(2, category="martian", answer=None),
            case(3, category="", reference=""),
        )
    )
    classifier = Fixed({TYPE: "advice"})
    run, _ = await grade_cases(
        cases, profile=PROFILE, classifier=classifier, judge=Fixed(), plain=None, setting=RunSettings.of(store)
    )
    found = list(gradings_of(store, run, PROFILE, cases))
    assert set(classifier.asked) == {"c1"}
    assert [(one.type, one.type_from) for one in found] == [
        ("logical", "category"),
        ("advice", "model"),
        (None, ""),
        (None, ""),
    ]
    assert [q.id for q in found[1].graded] == ["correctness", "need", "fairness", "creativity", "overall"]


@pytest.mark.parametrize("told", ["unsure", "unanswered"])
async def test_a_type_that_nobody_can_tell_is_flagged(store: Store, told: str) -> None:
    cases = Cases((case(0, category=""),))
    classifier = Fixed(
        {TYPE: "unsure"} if told == "unsure" else {}, breaks={} if told == "unsure" else {"c0": "refused"}
    )
    run, _ = await grade_cases(
        cases, profile=PROFILE, classifier=classifier, judge=Fixed(), plain=None, setting=RunSettings.of(store)
    )
    (found,) = gradings_of(store, run, PROFILE, cases)
    assert (found.type, found.flags, found.outcome) == (None, (f"task type {told}",), "graded")
    assert found.type_from == told
    assert [q.id for q in found.graded] == [*PROFILE.unknown.dimensions, "overall"]


@pytest.mark.parametrize(("answer", "flags"), [("It is so.", ("reference and evidence: not checked",)), (None, ())])
async def test_a_reference_that_could_not_be_held_against_its_evidence_is_flagged(
    store: Store, answer: str | None, flags: tuple[str, ...]
) -> None:
    class Unable(Fixed):
        def _answer(self, question: Question) -> Any:
            outcome = "not_scorable" if answer is None else "unparsable"
            if question.id == EVIDENCE or answer is None:
                return Unanswered(question_id=question.id, outcome=outcome)
            return super()._answer(question)

    cases = Cases((case(0, evidences=(Evidence(quote="q"),), answer=answer),))
    (found,) = await graded(store, cases, Unable())
    assert (found.flags, found.outcome) == (flags, "not_scorable" if answer is None else "graded")


async def test_means_by_category_and_dimension_by_hand(store: Store) -> None:
    cases = Cases(
        (
            case(0, category="logical", human=4.0),
            case(1, category="advice", evidences=(Evidence(quote="q"),)),
            case(2, category="advice", reference=""),
        )
    )
    says = {"evidence": "consistent", "overall": "6", "correctness": "8", "creativity": "2"}
    judge = Fixed(says, breaks={"c2": "not_scorable"})
    found = summary(PROFILE, await graded(store, cases, judge, Fixed({PLAIN: "9"})))
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
    store: Store, speaker: Speaker, cases: Cases = CASES, **setting: Any
) -> list[tuple[str | None, str]]:
    run, _ = await respond(cases, respondent=speaker, profile=PROFILE, setting=RunSettings.of(store, **setting))  # type: ignore[arg-type]
    return [(found.answer, found.outcome) for found in responses_of(store, run, cases)]


async def test_every_question_is_answered_once_at_the_temperature_of_its_category(store: Store) -> None:
    speaker, cases = Speaker(), Cases((case(0), case(1, category="writing"), case(2, category="martian")))
    assert await answered(store, speaker, cases, batch=2) == [
        ("Why 0? At 0.1.", "answered"),
        ("Why 1? At 0.7.", "answered"),
        ("Why 2? At 0.7.", "answered"),
    ]
    assert speaker.asked == ["c0", "c1", "c2"]


async def test_a_question_that_fails_fails_alone_and_a_resume_asks_what_may_be_mended(store: Store) -> None:
    refused = Unanswered(question_id="c1", outcome="refused", detail="no")
    found = await answered(store, Speaker({"c0": RuntimeError("boom"), "c1": refused}))
    assert [outcome for _, outcome in found] == ["error", "refused", *["answered"] * 5]
    speaker = Speaker()
    found = await answered(store, speaker, resume=True)
    assert speaker.asked == ["c0"]
    assert [outcome for _, outcome in found] == ["answered", "refused", *["answered"] * 5]


async def test_answers_of_batches_that_were_closed_outlive_the_run_that_was_stopped(store: Store) -> None:
    with pytest.raises(ModelUnavailable):
        await answered(store, Speaker({"c4": ModelUnavailable("gone")}), batch=2)
    speaker = Speaker()
    assert {outcome for _, outcome in await answered(store, speaker, batch=2, resume=True)} == {"answered"}
    assert set(speaker.asked) <= {"c4", "c5", "c6"}


async def test_the_page_of_the_run_has_means_curves_and_an_answer_with_what_the_judge_said(store: Store) -> None:
    cases = Cases(tuple(case(n, human=float(n), evidences=(Evidence(quote="scattered most"),)) for n in range(3)))
    judge = Fixed({"overall": "6", EVIDENCE: "consistent"})
    await graded(store, cases, judge, Fixed({PLAIN: "9"}))
    async with client_of(made_app(store)) as client:
        page = (await client.get("/runs/grade-1")).text
    shown = page.partition('id="distribution"')[2].partition('id="graph"')[0]
    for words in ("people (n = 3)", "plain: no reference", "6.00", "scattered most", "Thus.", "Krippendorff"):
        assert words in shown, words
