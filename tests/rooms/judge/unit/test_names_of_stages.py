"""A room's stages have names for people that the room itself gives."""

from pollex.graphs.hooks import name_stage


def test_the_room_names_its_stage_and_the_core_names_its_own() -> None:
    assert name_stage("judge", "judge") == "Asking the runs"
    assert name_stage("judge", "learn") == "Judging"
    assert name_stage("another stage", "judge") == "another stage"
