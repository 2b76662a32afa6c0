"""The main job on the bundled sample log."""

from __future__ import annotations

from pathlib import Path

from pollex.usecases.use_case import TerminalUseCase, opt, use_case


@use_case("demo")
class RunDemo(TerminalUseCase):
    """Learn, score and report on the bundled sample log, with built-in roles.

    This needs no LLM, no network and no key. The log holds 480 invented conversations of customers
    with the assistant of a bicycle shop, 400 of them with a thumb; it was made for this project.
    With --recorded a large language model works along: its replies to every prompt were recorded,
    and are replayed. With --remedy changes of the assistant's prompt are proved on the log, too:
    recorded ones, or where there are none, one of a planted assistant (rules and chance, which tell
    nothing of any model).

    \b
    Examples
      pollex demo --serve
      pollex demo --remedy
      pollex demo --recorded --out with-a-model
      pollex demo && open pollex-demo/report.html
    """

    at = "cli.demo.run_demo"
    out: Path = opt("Output folder.", default=Path("pollex-demo"), group="Output")
    remedy: bool = opt("Then prove changes of an assistant's prompt.", default=False)
    recorded: bool = opt(
        "Replay the recorded run of a large language model.",
        default=False,
        group="Model",
    )
    as_json: bool = opt(
        "Print one JSON object as the last line.",
        default=False,
        flag="json",
        group="Output",
    )
    serve: bool = opt(
        "Show the results in the browser afterwards.",
        default=False,
        group="Output",
    )
