"""An interview on the terminal about what a run of `judge` left in doubt."""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import click

from pollex.cli.session import Screen
from pollex.conversations.conversation import Conversation
from pollex.formats.verdicts import option_of
from pollex.text import count


@dataclass
class Interview:
    """Asks the person at the terminal.

    An empty line skips a conversation; `q`, Ctrl-C and Ctrl-D end the interview.
    """

    screen: Screen
    find: Callable[[str], Conversation]
    skipped: set[str] = field(default_factory=set)

    def __call__(self, asked_of: Mapping[str, Any]) -> Mapping[str, str]:
        """Ask for one answer, to be stored before the next; see `services.judge_runs.People`."""
        self.screen.pause()
        options = asked_of["options"]
        for id_ in asked_of["conversations"]:
            if id_ in self.skipped:
                continue
            self._show(id_, asked_of)
            while True:
                said = self._said(options)
                if said == "q" and "q" not in options:
                    return {}
                if not said:
                    self.skipped.add(id_)
                    break
                if option := option_of(said, options):
                    return {id_: option}
                self.screen.say(f"One of {', '.join(options)}; Enter skips it, q ends.")
        return {}

    def _show(self, id_: str, asked_of: Mapping[str, Any]) -> None:
        self.screen.say()
        self.screen.say(f"── {id_} · {count(len(asked_of['conversations']), 'waits', 'wait')}")
        for turn in self.find(id_).turns:
            first, *more = turn.content.split("\n")
            for text in (f"{turn.role}: {first}", *(f"    {text}" for text in more)):  # no text begins as a turn does
                self.screen.say(text)
        self.screen.say()
        self.screen.say(asked_of["question"])

    def _said(self, options: Sequence[str]) -> str:
        # The run's own handler would only be heeded after the next Enter: until then the loop waits for this line.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            return str(click.prompt(" / ".join(options), default="", show_default=False, err=True)).strip()
        except click.Abort:  # the end of input, or Ctrl-C
            return "q"
        finally:
            signal.signal(signal.SIGINT, before)
