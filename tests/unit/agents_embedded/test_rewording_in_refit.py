"""A re-worded rubric through the whole of `refit`."""

import asyncio
import json
from pathlib import Path

from small_logs import small_log

from pollex.agents.embedded.embedder import Embedder
from pollex.agents.embedded.judge import EmbeddedJudge
from pollex.agents.embedded.roles import EmbeddedDeduplicator, EmbeddedExtractor, EmbeddedSummarizer
from pollex.agents.roles import Roles
from pollex.conversations.conversation import Label
from pollex.conversations.logs import Logs
from pollex.formats.read_logs import read_logs
from pollex.prompts.domain import DomainProfile
from pollex.reports.learning import render_learning_page
from pollex.rubrics.edits import remove_detector_from_rubric
from pollex.rubrics.learning.settings import LearnSettings
from pollex.rubrics.records import JudgeRecord, StandingRecord
from pollex.rubrics.rubric_set import RubricSet
from pollex.runs import learn_runs as runs
from pollex.runs import run as running
from pollex.runs.roles import RunRoles
from pollex.store.store import Store

WRONG = ("Booked the wrong date!", "again a wrong date", "That's the wrong date, I said.")
SETTINGS = LearnSettings(budget=(3, 3), stability=False)


def roles(embedder: Embedder) -> Roles:
    judge = EmbeddedJudge(embedder)
    return Roles(
        EmbeddedExtractor(embedder), EmbeddedSummarizer(), EmbeddedDeduplicator(embedder), judge
    )


def written_log(folder: Path) -> Logs:
    """The small log through a file, as users have it; every fifth label is turned, so that there is something to do."""
    rows = [
        {
            "id": one.id,
            "thumbs": "up" if (one.label is Label.POSITIVE) != (number % 5 == 3) else "down",
            "comment": WRONG[number % 3] if one.label is Label.NEGATIVE else "",
            "messages": [turn.model_dump() for turn in one.turns],
        }
        for number, one in enumerate(small_log(25))
    ]
    path = folder / "log.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    return read_logs(path)


def learned(logs: Logs, embedder: Embedder, store: Store) -> RubricSet:
    record = JudgeRecord(kind="embedded", name="built-in (no LLM)", fingerprint="")
    asked = runs.LearningInput(logs=logs, profile=DomainProfile.neutral(), settings=SETTINGS)
    staff = RunRoles(roles=roles(embedder), record=record, embedder=embedder)
    run = runs.prepare_learning(asked, staff, running.RunSettings.of(store))
    return asyncio.run(run.carry_out()).rubric_set


def refitted(logs: Logs, rubrics: RubricSet, embedder: Embedder, store: Store) -> RubricSet:
    run = runs.refit_rubric_set(
        logs,
        rubrics,
        roles=roles(embedder),
        settings=SETTINGS,
        setting=running.RunSettings.of(store),
    )
    return asyncio.run(run).rubric_set


def test_a_learned_set_has_what_people_wrote_and_a_rewording_keeps_its_detector_unless_it_is_judged_anew(
    tmp_path: Path, embedder: Embedder
) -> None:
    logs = written_log(tmp_path)
    with Store.open(tmp_path / "store") as store:
        rubrics = learned(logs, embedder, store)
        assert rubrics.remarks[0].text == "wrong date", "what people wrote with their thumb"
        page = render_learning_page(rubrics)
        assert "What people wrote with their thumb" in page
        assert "“wrong date”" in page
        same = refitted(logs, rubrics, embedder, store)
        assert same.theta == rubrics.theta
        assert same.judge.learned == rubrics.judge.learned

        first, second, *others = rubrics.rubrics
        words = {"text": "The user mentions the weather in Lisbon."}
        other_words = {"text": "The assistant names a ferry to Porto."}
        proven = StandingRecord(p=0.001, n=len(logs.learnable) + 1, by="halvings")
        edited = (
            first.model_copy(update=words | {"standing": proven}),
            remove_detector_from_rubric(second.model_copy(update=other_words)),
            *others,
        )
        fitted = refitted(logs, rubrics.model_copy(update={"rubrics": edited}), embedder, store)
        found = {rubric.id: rubric for rubric in fitted.rubrics}
    kept = found[first.id]
    anew = found[second.id]
    assert kept.standing == proven, "its judge is the same, whatever its words are"
    assert (kept.source, kept.quotes, kept.written) == (first.source, first.quotes, words["text"])
    assert fitted.judge.learned[first.id] == rubrics.judge.learned[first.id]
    assert (anew.source, anew.quotes, anew.reason_ids, anew.written) == (
        "person",
        (),
        second.reason_ids,
        other_words["text"],
    )
    (note,) = [note for note in fitted.notes if note.startswith("Judged anew: ")]
    assert second.alone
    assert anew.alone
    assert f"AUC alone {anew.alone.auc.value:.2f}" in note.partition("Before, ")[0]
    assert f"AUC alone {second.alone.auc.value:.2f}" in note.partition("Before, ")[2]
    assert {r.id: r.source for r in others} == {r.id: found[r.id].source for r in others}
