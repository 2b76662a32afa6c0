"""People who can be asked now: those who wrote into a file, and whoever sits at the terminal."""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import click

from pollex.cli.old_session import Session
from pollex.conversations.conversation import Conversation
from pollex.formats.verdicts import AnswersFile, option_of
from pollex.graphs.judge.run import People
from pollex.text import count


def people_now(
    file: AnswersFile | None, ask: bool, opened: Session, find: Callable[[str], Conversation]
) -> People | None:
    """Who can be asked now: the file first, then whoever sits here."""
    asked_now: list[People] = [file] if file else []
    if ask:
        asked_now.append(Interview(opened, find))
    if not asked_now:
        return None

    def people(question: Mapping[str, Any]) -> Mapping[str, str]:
        return next((given for each in asked_now if (given := each(question))), {})

    return people


@dataclass
class Interview:
    """Asks whoever sits at the terminal. An empty line passes a conversation over; `q`, Ctrl-C and Ctrl-D end it."""

    opened: Session
    find: Callable[[str], Conversation]
    passed: set[str] = field(default_factory=set)

    def __call__(self, asked_of: Mapping[str, Any]) -> Mapping[str, str]:
        """See `graphs.judging.People`: one answer at a time, so that each is kept before the next is asked."""
        self.opened.bars.pause()
        options = asked_of["options"]
        for id_ in asked_of["conversations"]:
            if id_ in self.passed:
                continue
            self._show(id_, asked_of)
            while True:
                said = self._said(options)
                if said == "q" and "q" not in options:
                    return {}
                if not said:
                    self.passed.add(id_)
                    break
                if option := option_of(said, options):
                    return {id_: option}
                self.opened.say(f"One of {', '.join(options)}; Enter passes it over, q ends.")
        return {}

    def _show(self, id_: str, asked_of: Mapping[str, Any]) -> None:
        self.opened.say(f"\n── {id_} · {count(len(asked_of['conversations']), 'waits', 'wait')}")
        for turn in self.find(id_).turns:
            self.opened.say(f"{turn.role}: {turn.content}")
        self.opened.say(f"\n{asked_of['question']}")

    def _said(self, options: Sequence[str]) -> str:
        # The session's own handler would only be heeded after the next Enter: until then the loop waits for this line.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            return str(click.prompt(" / ".join(options), default="", show_default=False, err=True)).strip()
        except click.Abort:  # the end of input, or Ctrl-C
            return "q"
        finally:
            signal.signal(signal.SIGINT, before)
