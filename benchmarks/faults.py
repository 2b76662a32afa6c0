"""Makes each fault that was found once anew, and prints whether pollex holds.

python benchmarks/faults.py            all of them
python benchmarks/faults.py 1.1 3.2    those of these entries
"""

import sys
from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic

from fault_cases import Case, cases


def main(wanted: list[str]) -> int:
    """Run the cases that are wanted, print a line for each, and return 1 if one doesn't hold."""
    if {"-h", "--help"} & set(wanted):
        print(__doc__)
        return 0
    chosen = [one for one in cases() if not wanted or one.entry in wanted]
    held = [made_anew(one) for one in chosen]
    print(f"{sum(held)} of {len(held)} held")
    return 0 if chosen and all(held) else 1


def made_anew(one: Case) -> bool:
    """Run one case in a folder of its own, and print how it ended; what it said meanwhile, only if it doesn't hold."""
    begun = monotonic()
    with TemporaryDirectory() as folder, redirect_stderr(StringIO()) as noise:
        try:
            seen, held = one.run(Path(folder)), True
        except AssertionError as error:
            seen, held = str(error) or "an assertion failed", False
        except Exception as error:  # a case that breaks is one that does not hold
            seen, held = f"{type(error).__name__}: {error}", False
    print(f"{one.entry:>5}  {'held' if held else 'NOT HELD'}  {one.holds}: {seen} ({monotonic() - begun:.1f} s)")
    if not held:
        print(noise.getvalue(), file=sys.stderr)
    return held


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
