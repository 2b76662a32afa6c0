"""Where the command begins: with the handlers of signals, before anything that takes time is imported."""

from pollex.cli.signals import handle_signals, note_signal


def main() -> None:
    """Import the command line and carry out what was typed."""
    handle_signals(note_signal)
    from pollex.cli.main import main as carry_out  # takes a second on a busy machine

    carry_out()
