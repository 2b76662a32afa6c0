"""`python -m pollex`, where the command is not on the path."""

import os
import sys

# Of `-m` the current folder stands first: a `json.py` or a `pathlib.py` that lies there is somebody
# else's.
if sys.path[0] == os.getcwd() and not os.path.isdir("pollex"):  # noqa: PTH109, PTH112
    del sys.path[0]

from pollex.cli.entry import main

main()
