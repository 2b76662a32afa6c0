"""A room's stages have names beside their bars that the room itself gives."""

from pollex.cli.hooks import name_stage
from pollex.cli.session import STAGE_TITLES


def test_the_room_names_its_stage_and_the_core_does_not() -> None:
    assert (name_stage("judge"), name_stage("another stage")) == (
        "Asking the runs",
        "another stage",
    )
    assert not STAGE_TITLES.keys() & {"judge", "ask", "simulate"}
