"""Write what golden releases are now: `python tests/golden/write.py [name...]`; all without names.

A name stands for all cases that begin with it: `mean` for those of `zd.mean`, `sklearn` for all
estimators. What has changed is printed, and cases that are gone are dropped. The files have one
line for each field, so that `git diff` shows what changed.
"""

from __future__ import annotations

import sys
from pathlib import Path

if __name__ == "__main__":
    _TESTS, _ROOT = Path(__file__).resolve().parents[1:3]
    sys.path[:0] = [str(_TESTS), str(_ROOT), str(_ROOT / "src")]

from golden.golden import CASES, write


def chosen(names: list[str]) -> list[str]:
    """Return the cases that are meant, or say what is none."""

    def meant(case: str, name: str) -> bool:
        return case == name or case.startswith((f"{name},", f"{name}."))

    unknown = [name for name in names if not any(meant(case, name) for case in CASES)]
    if unknown:
        raise SystemExit(f"no golden release is called {', '.join(unknown)}")
    return [case for case in CASES if not names or any(meant(case, name) for name in names)]


if __name__ == "__main__":
    for changed in write(chosen(sys.argv[1:])):
        print(changed)
