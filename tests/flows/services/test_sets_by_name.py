"""Rubric sets are found by their run, their digest or their file, and are whole in the store."""

import shutil
from pathlib import Path

import pytest
from rubric_set_by_hand import rubric, rubric_set
from small_runs import Learnt, Pollex

import pollex
from pollex.errors import BadRubrics, StoreDamaged
from pollex.measures.intervals import Figure
from pollex.rubrics.records import CircumstanceRecord, CountedThumbs, RubricEvidence, TwinOverlap
from pollex.rubrics.rubric_set import RubricSet
from pollex.services.named_sets import read_rubric_set
from pollex.store.rubric_sets import (
    compute_rubric_set_digest,
    find_stored_rubric_set,
    list_stored_rubric_sets,
)
from pollex.store.store import Store
from pollex.store.tables import FactRow


@pytest.fixture
def own(learnt: Learnt, tmp_path: Path) -> Path:
    """A copy of the store in which the small log was learned from."""
    return shutil.copytree(learnt.store, tmp_path / "own")


def test_a_set_is_found_by_run_number_and_digests_and_scores_as_its_file_does(
    learnt: Learnt, own: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    of_file = RubricSet.load(learnt.rubrics)
    assert of_file.has_arrays
    names = [
        of_file.run,
        of_file.run.rpartition("-")[0],
        "last",
        of_file.rubrics_digest,
        compute_rubric_set_digest(of_file),
    ]
    for name in names:
        found = read_rubric_set(Path(name), own)
        assert found == of_file
        assert found.arrays == of_file.arrays
    by_file, by_run = (
        pollex.score(str(learnt.log), rubrics=each, store=own)
        for each in (str(learnt.rubrics), of_file.run)
    )
    assert [one.probability for one in by_run.scores] == [one.probability for one in by_file.scores]
    assert pollex.Scorer.load(of_file.run, store=own).rubrics == of_file


def test_commands_take_the_name_of_a_run(
    learnt: Learnt, own: Path, pollex: Pollex, tmp_path: Path
) -> None:
    run = RubricSet.load(learnt.rubrics, arrays=False).run
    there = ("--store", own)
    scored = pollex("score", learnt.log, "--rubrics", run, "--out", tmp_path / "s.jsonl", *there)
    assert scored.code == 0, scored.err
    for command in (
        ("rubrics", "list", run),
        ("rubrics", "lint", run),
        ("rubrics", "diff", run, learnt.rubrics),
    ):
        ended = pollex(*command, *there)
        assert ended.code == 0, ended.err
    exported = pollex("export", run, "--to", "promptfoo", "--out", tmp_path / "evals", *there)
    assert exported.code == 0, exported.err
    refused = pollex("refit", learnt.log, "--rubrics", run, *there)
    assert (refused.code, "--out" in refused.err) == (2, True)


def test_a_name_that_nothing_has_is_told_with_where_it_was_looked_for(own: Path) -> None:
    with pytest.raises(BadRubrics, match="no rubric set of this run or digest"):
        read_rubric_set(Path("learn-77"), own)


def test_arrays_that_were_changed_in_the_store_are_refused(own: Path) -> None:
    with Store.open(own) as store:
        (kept, *_) = list_stored_rubric_sets(store)

        wrong = find_stored_rubric_set(store, kept.run)
        assert wrong is not None
        assert wrong.calibrator is not None
        digest = wrong.calibrator.facts["arrays_sha256"]
        store.keep([FactRow(kept.run, "arrays", digest, '"AAAA"')])
        with pytest.raises(StoreDamaged, match="arrays"):
            find_stored_rubric_set(store, kept.run)


def test_a_set_of_before_keeps_its_digest_whatever_fields_records_got_since() -> None:
    share = Figure(0.5, 0.3, 0.7, 20)
    worth = RubricEvidence(
        holds=share,
        down_with=share,
        down_without=share,
        counted=CountedThumbs(holds=share, there=share, others=share),
    )
    changes = {
        "worth": worth,
        "overlap": TwinOverlap(both=1, own=2, twin=3),
        "circumstance": CircumstanceRecord(
            name="length", over_all=0.2, within=share, turned=False, strata=2
        ),
    }
    found = rubric_set(rubrics=(rubric(1, "dsat").model_copy(update=changes),))
    assert compute_rubric_set_digest(found) == "4321444219d3", (
        "runs in people's stores name their set so: a new field belongs in DEFAULTS_OF_LATER_FIELDS"
    )
