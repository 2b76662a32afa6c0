"""The rows of RUBICON's tables that take a model: they share what was paid for, and nothing else."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from protocol_server import SubprocessServer
from rubicon_tables import behind, difference, figures_of, row_in_words
from small_runs import Pollex
from techniques import PUBLISHED, TABLES, Technique

from planted.world import World
from pollex.conversations.splits import split_conversations
from pollex.formats.read_logs import read_logs
from pollex.prompts.domain import DomainProfile
from pollex.runs.options import ModelOptions
from pollex.store.store import Store

pytestmark = pytest.mark.nightly

GREEDY = Technique("RUBICON", policy="greedy")
DEFAULT = Technique("", "ours")
EVERY = {how.options: how for techniques in TABLES.values() for how in techniques}


@pytest.fixture(scope="module")
def server() -> Iterator[SubprocessServer]:
    with SubprocessServer(script=[{"do": "planted"}]) as served:
        yield served


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return World(0).write_log(tmp_path_factory.mktemp("tables") / "log.jsonl", 40)


def row_of(
    how: Technique, log: Path, server: SubprocessServer, store: Store, *splits: int
) -> dict[str, Any]:
    model = ModelOptions(model="planted", base_url=server.url)
    return figures_of(how, read_logs(log), DomainProfile.neutral(), splits, store, model)


def test_a_technique_that_fails_is_told_in_its_row_and_stops_no_other(
    log: Path, server: SubprocessServer, tmp_path: Path
) -> None:
    with Store.open(tmp_path) as store:
        failed = row_of(Technique("BING", rubrics="nowhere"), log, server, store, 7)
        found = row_of(Technique("BING", rubrics="generic"), log, server, store, 7)
    assert "split 7: " in failed["failure"]
    assert "nowhere" in failed["failure"]
    told = list(row_in_words(failed, Technique("BING")))
    assert "failed: split 7" in told[0]
    assert "published: BING" in told[1]
    assert behind([failed | {"technique": "BING"}, found | {"technique": "RUBICON"}], 1.0) == {}


def test_rows_pay_for_nothing_twice_and_come_to_the_same_as_each_alone(
    log: Path, server: SubprocessServer, tmp_path: Path
) -> None:
    with Store.open(tmp_path / "shared") as store:
        first = row_of(GREEDY, log, server, store, 0, 1)
        second = row_of(DEFAULT, log, server, store, 0, 1)
        again = row_of(DEFAULT, log, server, store, 0, 1)
    with Store.open(tmp_path / "alone") as store:
        alone = row_of(DEFAULT, log, server, store, 0, 1)
    assert second["values"] == alone["values"]
    # Answers that an earlier row paid for are found by rubric: they aren't even asked.
    assert second["used"]["asked"] < alone["used"]["asked"]
    # what was chosen is judged, and nothing else
    assert second["used"]["sent"] < alone["used"]["sent"] / 2
    assert again["values"] == second["values"]
    assert (again["used"]["sent"], again["used"]["prompt"]) == (0, 0)
    # Splits share conversations: what was extracted from one of them is not asked again in another.
    assert first["used"]["sent"] < first["used"]["asked"]
    assert (first["failure"], first["unscored"]) == ("", 0)


def test_held_out_conversations_without_a_score_are_counted(log: Path, tmp_path: Path) -> None:
    held_out = split_conversations(read_logs(log).learnable, 0.5, 0).test[0]
    refused = {
        "do": "message",
        "content": None,
        "refusal": "no",
        "match": f"Ticket {int(held_out.id[1:])}.",
    }
    with (
        SubprocessServer(script=[refused, {"do": "planted"}]) as server,
        Store.open(tmp_path) as store,
    ):
        row = row_of(Technique("BING", rubrics="generic"), log, server, store, 0)
    assert (row["failure"], row["unscored"]) == ("", 1)
    assert any("without a score, over all splits: 1" in line for line in row_in_words(row, GREEDY))


@pytest.mark.parametrize("how", EVERY.values(), ids=EVERY)
def test_what_a_row_says_that_it_was_told_is_taken_by_learn(
    pollex: Pollex, log: Path, how: Technique
) -> None:
    ended = pollex("learn", log, *how.options.split(), "--model", "planted", "--dry-run", "--json")
    assert ended.code == 0, ended.err
    assert ("update" in ended.last["plan"]) == (how.method == "spur")
    assert ("extract" in ended.last["plan"]) == (not how.rubrics)


def test_every_row_stands_beside_the_papers_of_its_name_or_beside_none() -> None:
    named = [how.paper for techniques in TABLES.values() for how in techniques if how.paper]
    assert len(set(named)) == len(named)
    # those need no model
    assert set(PUBLISHED) - set(named) == {"UCB", "brute force", "correctness only"}
    assert (
        replace(GREEDY, without=("ds", "cdp")).options == "--set policy=greedy --set without=ds,cdp"
    )


def test_differences_are_of_the_splits_where_both_are_defined() -> None:
    # 0.1 and 0.3: mean 0.2, sd 0.1414, standard error 0.1; the third split has no value on one
    # side.
    found = difference([0.6, 0.8, None], [0.5, 0.5, 0.4], ratio=1.0)
    assert found["mean"] == pytest.approx(0.2)
    assert found["error"] == pytest.approx(0.1)
