"""Makes each fault that was found once anew, and prints whether pollex holds.

python benchmarks/faults.py            all of them
python benchmarks/faults.py 1.1 3.2    those of these entries
python benchmarks/faults.py --quick    those that no other test shows
"""

import argparse
import sys
from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic

from fault_cases import SHOWN, Case, cases
from small_form import Findings, arguments_of, run


def main() -> int:
    """Run the cases that are wanted, and print a line for each; 1 if one doesn't hold."""
    parser = arguments_of(__doc__)
    parser.add_argument("entries", nargs="*", help="numbers of entries; all if none is given")
    return run(
        parser, measure_all, [case.entry for case in cases() if case.run.__name__ not in SHOWN]
    )


def measure_all(arguments: argparse.Namespace) -> Findings:
    """Run the cases that are wanted."""
    wanted = [case for case in cases() if not arguments.entries or case.entry in arguments.entries]
    bars = {f"{case.entry}: {case.holds}": made_anew(case) for case in wanted}
    return Findings(bars=bars or {"there is a case of this entry": False})


def made_anew(one: Case) -> bool:
    """Run one case in a folder of its own, and print how it ended; what it said meanwhile, only if it doesn't hold."""
    begun = monotonic()
    with TemporaryDirectory() as folder, redirect_stderr(StringIO()) as noise:
        try:
            seen = one.run(Path(folder))
            held = True
        except AssertionError as error:
            seen = str(error) or "an assertion failed"
            held = False
        except Exception as error:  # a case that breaks is one that does not hold
            seen = f"{type(error).__name__}: {error}"
            held = False
    print(
        f"{one.entry:>5}  {'held' if held else 'NOT HELD'}  {one.holds}: {seen} ({monotonic() - begun:.1f} s)"
    )
    if not held:
        print(noise.getvalue(), file=sys.stderr)
    return held


if __name__ == "__main__":
    raise SystemExit(main())
