"""What the room adds to the demo."""

from pathlib import Path

from pollex.cli.hooks import DemoSequel
from pollex.runs.options import ModelOptions


class RemedySequel(DemoSequel):
    """A change of the assistant's prompt, proved."""

    option = "remedy"

    def show_built_in(self, out: Path, learned: Path, as_json: bool) -> int:
        """Prove a change of a planted assistant's prompt."""
        from pollex.rooms.remedy.cli.demo import prove_planted_change  # the demo alone needs it

        return prove_planted_change(out, learned, as_json)

    def show(self, out: Path, model: ModelOptions, as_json: bool) -> int:
        """Have a model propose changes of its own prompt, and prove them."""
        from pollex.rooms.remedy.cli.demo import propose_and_prove_changes  # as above

        return propose_and_prove_changes(out, model, as_json)


HOOKS = (RemedySequel(),)
