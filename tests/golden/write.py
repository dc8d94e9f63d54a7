"""Write what golden releases are now: `python tests/golden/write.py [name...]`; all without names.

A name stands for all cases that begin with it: `mean` for those of `zd.mean`. The files have one
line for each field, so that `git diff` shows what changed.
"""

from __future__ import annotations

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).resolve().parents[n]) for n in (1, 2)]

from golden.golden import CASES, write


def chosen(names: list[str]) -> list[str]:
    """Return the cases that are meant, or say what is none."""
    unknown = [n for n in names if not any(c == n or c.startswith(f"{n},") for c in CASES)]
    if unknown:
        raise SystemExit(f"no golden release is called {', '.join(unknown)}")
    return [
        case
        for case in CASES
        if not names or any(case == n or case.startswith(f"{n},") for n in names)
    ]


if __name__ == "__main__":
    for changed in write(chosen(sys.argv[1:])):
        print(changed)
