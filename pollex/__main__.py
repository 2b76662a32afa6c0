"""`python -m pollex`, where the command is not on the path."""

from pollex.cli.main import main

main()
