"""`python -m pollex`, where the command is not on the path."""

from pollex.terminal.main import main

main()
