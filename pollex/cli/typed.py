"""The command line as it was typed, without secrets: runs keep it, so that one can go on with them."""

from __future__ import annotations

import os
import shlex
import sys

RESUMABLE = ("learn", "refit", "score", "evaluate", "answer", "judge", "grade", "ask", "label", "share", "simulate")


def typed_command() -> str:
    """Return the command without `--resume`; empty if the verb can't be resumed."""
    arguments = sys.argv[1:]
    if not arguments or arguments[0] not in RESUMABLE:
        return ""
    if any(argument.startswith("--calibrator") for argument in arguments):  # `label next` makes no run of these
        return ""
    from pollex.gateway.redaction import redacted  # what plain commands don't need

    return redacted(shlex.join(["pollex", *(a for a in arguments if a != "--resume")]), secrets_given())


def command_with(options: str, names: list[str]) -> str:
    """Return the command that was typed with further options, which take the place of those of their names."""
    words: list[str] = []
    for word in sys.argv[1:]:
        if not (words and words[-1] in names):
            words.append(word)
        else:
            words[-1] = ""
    kept = [word for word in words if word and word.partition("=")[0] not in names]
    return f"{shlex.join(['pollex', *kept])} {options}"


def resume_command() -> str:
    """Return the command that resumes the run; empty if the verb can't be resumed."""
    typed = typed_command()
    return typed and f"{typed} --resume"


def secrets_given() -> list[str]:
    """Collect the key and what the addresses on the command line hold."""
    from pollex.gateway.redaction import secrets_of_address

    addresses = [argument[argument.find("http") :] for argument in sys.argv if "http" in argument]
    secrets = {
        os.environ.get("OPENAI_API_KEY", ""),
        *(secret for url in addresses for secret in secrets_of_address(url)),
    }
    return sorted(secrets, key=len, reverse=True)
