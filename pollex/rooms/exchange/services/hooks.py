"""What the room adds to the core's services."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pollex.conversations.conversation import Conversation
from pollex.rubrics.rubric_set import RubricSet
from pollex.rubrics.score import Score
from pollex.services.hooks import LogSourceTools, ScoreForms, SetForms, ToolInterface


class PeerScoreForms(ScoreForms):
    """Scores as requests of the tools in `formats/peer_scores.toml`."""

    def require(self, form: str) -> None:
        """Raise WrongUse where no tool takes scores under a name."""
        from pollex.rooms.exchange.services.exchange import require_form  # loads twenty modules

        require_form(form)

    def requests(
        self,
        form: str,
        scores: Iterable[Score],
        rubrics: RubricSet,
        conversations: Iterable[Conversation],
    ) -> list[dict[str, Any]]:
        """Return a tool's requests."""
        from pollex.rooms.exchange.formats.peer_scores import make_requests  # as above
        from pollex.rooms.exchange.services.exchange import collect_peer_ids

        self.require(form)
        return make_requests(form, scores, rubrics, collect_peer_ids(conversations)).requests

    def write(
        self,
        path: Path,
        form: str,
        scores: Iterable[Score],
        rubrics: RubricSet,
        conversations: Sequence[Conversation],
    ) -> Sequence[tuple[str, str]]:
        """Write them to a file."""
        from pollex.rooms.exchange.services.exchange import write_requests  # as above

        return write_requests(path, form, scores, rubrics, conversations).left_out


class PeerSetForms(SetForms):
    """Rubric sets as files of the tools in `formats/peers/targets.toml`."""

    def texts(self, rubrics: RubricSet, to: str) -> Mapping[str, str]:
        """Return the files of a set, as texts by name."""
        from pollex.rooms.exchange.services.exchange import export_texts  # as above

        return export_texts(rubrics, to)


def list_interfaces() -> Sequence[ToolInterface]:
    """Return the interfaces that have logs."""
    from pollex.rooms.exchange.formats.peers.interfaces import PEER_INTERFACES  # as above

    return [interface for interface in PEER_INTERFACES.values() if interface.streams]


HOOKS = (PeerScoreForms(), PeerSetForms(), LogSourceTools(list_interfaces))
