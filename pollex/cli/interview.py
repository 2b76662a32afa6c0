"""People at the terminal: an interview about what a run left in doubt, and the pool of `learn` to edit."""

import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import click

from pollex.cli.session import Screen
from pollex.conversations.conversation import Conversation
from pollex.text import JsonDict, format_count


@dataclass
class Interview:
    """Asks the person at the terminal.

    An empty line skips a conversation; `q`, Ctrl-C and Ctrl-D end the interview.
    """

    screen: Screen
    find: Callable[[str], Conversation]
    skipped: set[str] = field(default_factory=set)

    def __call__(self, asked_of: JsonDict) -> Mapping[str, str]:
        """Ask for one answer, to be stored before the next."""
        # roles of a model come with it, and every command loads this
        from pollex.agents.llm.parsing import match_option_of_person

        self.screen.pause()
        options = asked_of["options"]
        # an answer ends the call, so that it is stored before the next question
        for id_ in asked_of["conversations"]:
            if id_ in self.skipped:
                continue
            self._show(id_, asked_of)
            # until the reply is an option, empty, or q
            while True:
                reply = self._said(options)
                # an option may be called q
                if reply == "q" and "q" not in options:
                    return {}
                if not reply:
                    self.skipped.add(id_)
                    break
                if option := match_option_of_person(reply, options):
                    return {id_: option}
                self.screen.say(f"One of {', '.join(options)}; Enter skips it, q ends.")

        return {}

    def _show(self, id_: str, asked_of: JsonDict) -> None:
        self.screen.say()
        self.screen.say(
            f"── {id_} · {format_count(len(asked_of['conversations']), 'waits', 'wait')}"
        )
        for turn in self.find(id_).turns:
            first, *more = turn.content.split("\n")
            # no text begins as a turn does
            for text in (f"{turn.role}: {first}", *(f"    {text}" for text in more)):
                self.screen.say(text)

        self.screen.say()
        self.screen.say(asked_of["question"])

    def _said(self, options: Sequence[str]) -> str:
        return read_line(" / ".join(options))


EDITING_HELP = """\
3 5            take out rubrics 3 and 5
4: WORDS       give rubric 4 other words
+ sat WORDS    add a rubric of satisfaction (dsat: of dissatisfaction)
Enter          go on with the pool as it stands; q leaves it for later"""


@dataclass
class PoolEditor:
    """Has the person at the terminal edit a pool; see `runs.pool_review.PoolReviewer`."""

    screen: Screen
    rows: list[JsonDict] | None = None

    def __call__(self, request: JsonDict) -> list[JsonDict] | None:
        """Return the rows as they are to be; None to leave them for later."""
        self.screen.pause()
        # a pool that was refused is edited further, and not begun anew
        if self.rows is None or "refused" not in request:
            self.rows = [dict(row) for row in request["pool"]]
        else:
            self.screen.say(f"Not taken: {request['refused']}")

        self._show(self.rows)
        while line := read_line("Pool"):
            if line == "q":
                return None
            if (changed := edit_rows(self.rows, line)) is None:
                self.screen.say(EDITING_HELP)
            else:
                self.rows = changed
                self._show(changed)

        return self.rows

    def _show(self, rows: Sequence[JsonDict]) -> None:
        self.screen.say()
        for number, row in enumerate(rows, start=1):
            self.screen.say(f"{number:3} {row['polarity']:4} {row['text']}")
        self.screen.say(f"{EDITING_HELP.splitlines()[-1]}; ? tells how to change it.")


def edit_rows(rows: Sequence[JsonDict], line: str) -> list[JsonDict] | None:
    """Return rows with an edit that was typed; None where it is none."""
    # `4: WORDS` rewords
    number, colon, words = line.partition(":")
    if colon and number.strip().isdigit() and 1 <= int(number) <= len(rows):
        edited_rows = []
        for n, row in enumerate(rows, start=1):
            edited_rows.append(row | {"text": words.strip()} if n == int(number) else row)
        return edited_rows

    # `+ sat WORDS` adds
    sign, _, rest = line.partition(" ")
    side, _, words = rest.partition(" ")
    if sign == "+" and side in ("sat", "dsat"):
        return [*rows, {"id": "", "text": words.strip(), "polarity": side}]

    # `3 5` takes out
    numbers = line.replace(",", " ").split()
    if all(number.isdigit() and 1 <= int(number) <= len(rows) for number in numbers):
        return [row for n, row in enumerate(rows, start=1) if str(n) not in numbers]
    return None


def read_line(words: str) -> str:
    """Return a line that a person types; `q` at the end of input and for Ctrl-C."""
    # The run's own handler would only be heeded after the next Enter: until then the loop waits for
    # this line.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return str(click.prompt(words, default="", show_default=False, err=True)).strip()
    except click.Abort:  # the end of input, or Ctrl-C
        return "q"
    finally:
        signal.signal(signal.SIGINT, before)
