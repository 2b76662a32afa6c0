"""The command `pollex`: finds its verbs, and turns errors into messages and exit codes."""

import errno
import io
import os
import re
import shlex
import signal
import sys
import threading
import time
import webbrowser
from collections.abc import Sequence
from difflib import get_close_matches
from typing import ClassVar

import click

from pollex.children import SAFE_PATH_VARIABLES
from pollex.cli.generator import (
    collect_typed_secrets,
    make_module_command,
    write_resume_command,
    write_typed_command,
    write_typed_command_with,
)
from pollex.cli.help import VerbGroup
from pollex.cli.settings import spell_options_of_command
from pollex.cli.signals import (
    end_at_once,
    handle_signals,
    hold_signals,
    raise_waiting_signal,
)
from pollex.errors import (
    OPTION_SPELLER,
    Interrupted,
    LimitReached,
    PollexError,
    ProposedOptions,
    WrongUse,
)
from pollex.gateway.langsmith import switch_tracing
from pollex.outputs import listen_for_outputs
from pollex.rooms import find_module, list_modules_in_part

GONE_READER_ERRORS = {errno.EPIPE, errno.EIO}
"""Of a pipe without a reader, and of a terminal whose window was closed."""


class LastingStream(io.FileIO):
    """A stream that discards output when its reader is gone, so that runs go on."""

    def __init__(self, stream: io.TextIOWrapper) -> None:
        super().__init__(stream.fileno(), "w", closefd=False)
        self._stream = stream  # which would close the descriptor when nobody holds it

    def write(self, data: bytes | bytearray | memoryview, /) -> int:  # type: ignore[override]
        """Write, to nowhere once the reader is gone."""
        try:
            return super().write(data)
        except OSError as error:
            # whoever writes to this descriptor from now on writes to nowhere
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.fileno())
            os.close(nowhere)
            if error.errno not in GONE_READER_ERRORS:
                raise  # a full disk is told, once
            return len(data)


def make_streams_lasting() -> None:
    """Replace standard output and error by lasting streams that escape unsupported characters."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        # what took a stream's place, in a test for example, stays
        if isinstance(stream, io.TextIOWrapper):
            stream.flush()
            buffer = io.BufferedWriter(LastingStream(stream))  # type: ignore[type-var]
            lasting = io.TextIOWrapper(
                buffer,
                stream.encoding,
                "backslashreplace",
                line_buffering=stream.line_buffering or name == "stderr",
            )
            setattr(sys, name, lasting)


MODULES_WITHOUT_VERBS = {"families", "use_case"}
"""Modules beside those of the use cases."""
UNKNOWN_VERB_HINT = (
    "It may be of a room that isn't installed: pip install 'pollex[all]' has all rooms."
)
SCREEN_VARIABLES = ("DISPLAY", "WAYLAND_DISPLAY", "WSL_DISTRO_NAME")
"""Variables of the environment that Linux has with a screen; without one a browser would be one in the terminal."""
FULL_DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
PERMISSION_ERRORS = (errno.EACCES, errno.EPERM, errno.EROFS)
PROPOSABLE_OPTIONS = {"columns", "roles", "positive", "negative", "thumbs", "pairs", "label_field"}
"""Options whose values in an error are tried or sure, so that the whole command can be gone on with."""
MAX_QUOTE_CHARACTERS = 200
LONG_WORD_PATTERN = re.compile(rf"\S{{{2 * MAX_QUOTE_CHARACTERS},}}")
MAX_MESSAGE_CHARACTERS = 4_000
"""Characters of a message, and of a word in it that is cut: paths are shorter."""
ADDRESS_OPTIONS = {"base_url", "events", "behind", "host", "allow_host", "address"}
"""Options that name a place and are no path."""


class LazyVerbGroup(VerbGroup):
    """One module of `pollex.usecases` a verb, imported when it is needed."""

    titles: ClassVar = {
        "Start": ("demo", "inspect", "learn", "score"),
        "Look": ("serve", "runs", "trace", "why", "evaluate", "turns"),
        "Improve": ("label", "rubrics", "refit", "domain"),
        "Release": ("check", "compare", "share"),
        "More": (),
    }

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's contract
        # modules that declare options alone are no verbs
        return sorted(list_modules_in_part("usecases").keys() - MODULES_WITHOUT_VERBS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:  # noqa: ARG002 - click's contract
        with hold_signals():
            is_command = (
                name not in MODULES_WITHOUT_VERBS and find_module("usecases", name) is not None
            )
            return make_module_command(name) if is_command else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            # a word that is nearly a verb was mistyped; others may be of a room
            near = get_close_matches(args[0], self.list_commands(ctx), n=1)
            hint = f"(Did you mean {near[0]!r}?)" if near else UNKNOWN_VERB_HINT
            raise click.UsageError(f"{error.message} {hint}", ctx) from error


@click.command(
    cls=LazyVerbGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(package_name="pollex")
def pollex() -> None:
    """Learn the rubrics behind your users' thumbs, and score conversations with them.

    `pollex` alone opens the browser, where there is one: from a log to a better assistant, without
    a command.

    \b
    Begin with
      pollex demo                                   on the bundled sample log
      pollex learn logs.jsonl --out rubrics.json    from conversations with thumbs
      pollex score new.jsonl --rubrics rubrics.json --out scores.parquet
      pollex runs                                   what ran, and how it went

    Without --model everything is built-in (no LLM): no network and no key are needed.
    """


def main() -> None:
    """Run the command line.

    Exit codes: 0 done, 1 failed, 2 wrong use, 3 done but not for all conversations, 75 pending, 130
    interrupted.
    """
    sys.unraisablehook = interrupt_again
    os.environ.update(SAFE_PATH_VARIABLES)
    # of every verb: one that knows no --langsmith sends nothing either
    switch_tracing(on=False)
    make_streams_lasting()
    OPTION_SPELLER.set(spell_options_of_typed_command)

    # a proposed command that the person takes is carried out in place of the typed one
    while True:
        try:
            sys.exit(carry_out_typed())
        except ProposalAccepted as proposed:
            sys.argv[1:] = proposed.words


def interrupt_again(lost: "sys.UnraisableHookArgs") -> None:
    """Raise an interruption anew that fell into a callback of Python's own, of an import for example.

    Python prints and drops what is raised there, and the command would run on.
    """
    if not issubclass(lost.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(lost)
        return

    # not from here: this is called in that callback, too
    timer = threading.Timer(0.05, signal.raise_signal, [signal.SIGINT])
    timer.daemon = True
    timer.start()


def carry_out_typed() -> int:
    """Carry out the command that was typed, and return its exit code; end the process where it fails.

    Raises:
        GoOn: The person at the terminal goes on with another one.
    """
    with listen_for_outputs() as written:
        try:
            # all as Ctrl-C, also before and after a run; one may have waited for the imports
            handle_signals(signal.default_int_handler)
            raise_waiting_signal()
            refuse_early_clock()
            if len(sys.argv) == 1 and can_open_browser():
                sys.argv.append("serve")
            # before click reads them: an empty place would be taken for the usual one
            refuse_blank_places(get_typed_command(), sys.argv[1:])
            code = pollex.main(standalone_mode=False)
        except click.ClickException as error:
            error.show()
            sys.exit(2)
        except PollexError as error:
            exit_with_error(error, has_run=bool(written.run))
        except (click.Abort, KeyboardInterrupt):
            handle_signals(end_at_once)
            exit_with_error(Interrupted("interrupted"), has_run=bool(written.run))
        except OSError as error:
            exit_with_error(explain_disk_error(error), error)
        except Exception as error:
            exit_with_error(explain_failure(error), error, has_run=bool(written.run))
    return code if isinstance(code, int) else 0


def can_open_browser() -> bool:
    """Return whether somebody sits at a terminal of a machine that has a browser to open."""
    # over ssh the browser would open on the other machine
    if not (sys.stdin.isatty() and sys.stdout.isatty()) or os.environ.get("SSH_CONNECTION"):
        return False
    if sys.platform.startswith("linux") and not any(map(os.environ.get, SCREEN_VARIABLES)):
        return False

    try:
        webbrowser.get()
    except webbrowser.Error:
        return False

    return True


def explain_disk_error(error: OSError) -> PollexError:
    """Turn what a disk or a path refuses into an error with a remedy."""
    if error.errno in FULL_DISK_ERRORS:
        hint = "make room, then run the command again; with --resume, where it has that, nothing is done twice"
        return PollexError(
            "the disk is full",
            where=str(error.filename or ""),
            hint=hint,
        )

    if error.errno in PERMISSION_ERRORS:
        what = error.strerror or "not allowed"
        return PollexError(
            what,
            where=str(error.filename or ""),
            hint="check the rights, or give another place",
        )

    if error.errno == errno.ENOENT:
        hint = "put it back, then run the command again"
        return PollexError(
            "was removed while it was in use",
            where=str(error.filename or ""),
            hint=hint,
        )

    if error.errno == errno.ENAMETOOLONG:
        hint = "give a shorter path; a query stands behind its database: sqlite:FILE?SELECT …"
        return WrongUse(
            "no file has so long a name",
            where=str(error.filename or ""),
            hint=hint,
        )
    if is_memory_error(error):
        return make_memory_error()
    # what the system says of a file
    if error.filename is not None and error.strerror:
        return PollexError(
            error.strerror.lower(),
            where=str(error.filename),
            hint="check the path, and what is there",
        )

    return make_fault_error(error)


def explain_failure(error: Exception) -> PollexError:
    """Turn an error of a library, or a fault of ours, into one in words."""
    if is_memory_error(error):
        return make_memory_error()

    # a library turns an interruption into an error of its own, in the middle of its import for example
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, KeyboardInterrupt):
            return Interrupted("interrupted")
        cause = cause.__cause__ or cause.__context__

    return make_fault_error(error)


def is_memory_error(error: Exception) -> bool:
    """Return whether memory ran out; libraries of other languages have words of their own for it."""
    words = r"cannot allocate memory|failed to (?:map segment|allocate)|bad_alloc|can't start new thread"
    return isinstance(error, MemoryError) or bool(re.search(words, str(error), re.IGNORECASE))


def make_memory_error() -> PollexError:
    """Return the error for memory that ran out."""
    hint = "give the command more, 4 GB for example; with --resume, where it has that, nothing is done twice"
    return PollexError("memory ran out", hint=hint)


def make_fault_error(error: Exception) -> PollexError:
    """Return the error for a fault in pollex."""
    return PollexError(
        f"unexpected {type(error).__name__}: {error}",
        hint="report it, with POLLEX_DEBUG=1 set",
    )


def exit_with_error(
    error: PollexError, cause: Exception | None = None, *, has_run: bool = False
) -> None:
    """Print an error with its remedy and exit; with POLLEX_DEBUG set, raise it.

    Args:
        has_run: Whether a run began, so that there is one to go on with.
    """
    from pollex.gateway.redaction import redact_secrets
    from pollex.text import (  # neither is needed where nothing fails
        escape_controls,
        quote_unclear_name,
    )

    # a name with an arrow or a colon would look like a part of the message
    error.where = quote_unclear_name(error.where)
    message = shorten_message(
        escape_controls(
            redact_secrets(str(error), collect_typed_secrets()),
            keep_lines=True,
        )
    )
    click.echo(
        f"{'Stopped' if isinstance(error, Interrupted) else 'Error'}: {message}",
        err=True,
    )

    # only a proposal with all values can be typed as it is
    if error.options.keys() & PROPOSABLE_OPTIONS and all(error.options.values()):
        command = write_typed_command_with(
            spell_options_of_typed_command(error.options),
            [f"--{name}" for name in error.options],
        )
        click.echo(
            f"The whole command: {escape_controls(redact_secrets(command, collect_typed_secrets()))}",
            err=True,
        )
        if confirm_proposal(of_words=bool(error.options.keys() & {"columns", "roles"})):
            raise ProposalAccepted(shlex.split(command)[1:])
    if isinstance(error, Interrupted | LimitReached):
        # before a run is in the store there is nothing to resume
        resumes = has_run or "--resume" in sys.argv
        if command := write_resume_command() if resumes else write_typed_command():
            click.echo(f"Go on with: {command}", err=True)
    if os.environ.get("POLLEX_DEBUG"):
        raise cause or error

    sys.exit(error.exit_code)


def shorten_message(message: str) -> str:
    """Return a message in which a query or a name that somebody gave is quoted by its beginning."""
    # so long a word is a query or a file's content, and its beginning tells which
    message = LONG_WORD_PATTERN.sub(lambda word: f"{word[0][:MAX_QUOTE_CHARACTERS]}…", message)
    if len(message) <= MAX_MESSAGE_CHARACTERS:
        return message
    return f"{message[:MAX_MESSAGE_CHARACTERS]}…"


class ProposalAccepted(Exception):
    """The person at the terminal goes on with the command that was proposed."""

    def __init__(self, words: Sequence[str]) -> None:
        super().__init__()
        self.words = words


def confirm_proposal(*, of_words: bool) -> bool:
    """Ask the person at the terminal whether to go on with what was proposed; nobody else is asked.

    Args:
        of_words: Whether it is about who said what, and not about labels alone.
    """
    # a program can't answer
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False

    try:
        if of_words:
            question = "Is this what was said? y goes on so"
        else:
            question = "Go on so?"

        return click.confirm(question, default=False, err=True)
    except click.Abort:
        return False


def spell_options_of_typed_command(options: ProposedOptions) -> str:
    """Spell options as one types them: `--label-field stars`, or `--set thumbs=last` where that is a setting."""
    return spell_options_of_command(get_typed_command(), options)


def refuse_early_clock() -> None:
    """Refuse a clock before 1970, as of a board without a battery: packages that number runs by time end in a panic.

    Raises:
        WrongUse: It is.
    """
    if time.time() < 0:
        raise WrongUse(
            "the clock of this machine is before 1970",
            hint="set it, then run the command again",
        )


def refuse_blank_places(command: click.Command, words: Sequence[str]) -> None:
    """Refuse options that name a place and are empty, as an unset variable of a shell leaves them.

    An empty path would be the current folder, and an empty address a model's usual one.

    Raises:
        click.UsageError: One is empty.
    """
    places = []
    for parameter in command.params:
        if isinstance(parameter.type, click.Path) or parameter.name in ADDRESS_OPTIONS:
            places.append(parameter)

    # names under which a place is typed
    names = {name for parameter in places for name in parameter.opts if name.startswith("-")}
    # both `--out ''` and `--out=` are empty
    for word, following in zip(words, [*words, "nothing"][1:], strict=True):
        name, equals, value = word.partition("=")
        if name in names and not (value if equals else following).strip():
            raise click.UsageError(f"{name} is empty: give a place, or leave the option out")


def get_typed_command() -> click.Command:
    """Return the command that was typed."""
    command: click.Command = pollex
    # words lead from group to group; the first that is no command ends the way
    for word in sys.argv[1:]:
        if not isinstance(command, click.Group) or not (
            inner := command.get_command(click.Context(command), word)
        ):
            break

        command = inner

    return command
