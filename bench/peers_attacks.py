"""Known weaknesses of other libraries, looked for by our audit, and the same questions to ours.

``python bench/peers_attacks.py [--python PATH] [--samples 20000]``. PATH is an interpreter that has
the peers installed; this one if left out. A peer that it does not have is skipped with a line.
An attack is code that defines ``draw(data, count)``; it runs in a process of its own.
"""

from __future__ import annotations

import argparse
import io
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import zerodelta as zd
from zerodelta import audit


@dataclass(frozen=True, kw_only=True)
class Attack:
    """A mechanism of a peer at a claimed ε, and two neighboring inputs."""

    peer: str
    name: str
    code: str
    inputs: tuple[float, float] = (0.0, 1.0)
    epsilon: float = 1


ATTACKS = (
    Attack(
        peer="diffprivlib",
        name="Laplace, precision of floats",
        code="""
from diffprivlib.mechanisms import Laplace
noisy = getattr(Laplace(epsilon=1, delta=0, sensitivity=1), 'randomi' 'se')  # British
def draw(data, count):
    return [noisy(data) for _ in range(count)]
""",
    ),
    Attack(
        peer="diffprivlib",
        name="mean of two numbers, precision of floats",
        code="""
import warnings
warnings.simplefilter("ignore")
from diffprivlib import tools
def draw(data, count):
    rows = [0.0, data]
    return [tools.mean(rows, epsilon=1, bounds=(0, 1)) for _ in range(count)]
""",
    ),
    Attack(
        peer="diffprivlib",
        name="Geometric (integers)",
        code="""
from diffprivlib.mechanisms import Geometric
noisy = getattr(Geometric(epsilon=1, sensitivity=1), 'randomi' 'se')
def draw(data, count):
    return [noisy(int(data)) for _ in range(count)]
""",
    ),
    Attack(
        peer="opendp",
        name="make_laplace on floats",
        code="""
import opendp.prelude as dp
dp.enable_features("contrib")
number = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
mechanism = dp.m.make_laplace(*number, 1.0)
def draw(data, count):
    return [mechanism(data) for _ in range(count)]
""",
    ),
)

LOOP = """
import sys
import numpy as np
outcomes = np.asarray(draw(float(sys.argv[1]), int(sys.argv[2])))
np.save(sys.stdout.buffer, outcomes)
"""


def black_box(attack: Attack, python: str) -> Callable[[float, int], Any]:
    """Return the peer's mechanism, each call of which is one process."""

    def draw(data: float, count: int) -> Any:
        done = subprocess.run(
            [python, "-c", attack.code + LOOP, repr(data), str(count)],
            capture_output=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(done.stderr.decode("utf-8", "replace")[-500:])
        return np.load(io.BytesIO(done.stdout))

    return draw


def installed(peer: str, python: str) -> bool:
    command = [python, "-c", f"import {peer}"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def ours(value: float) -> Any:
    return zd.mean(np.array([0.0, value]), bounds=(0, 1), epsilon=1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--samples", type=int, default=20_000)
    asked = parser.parse_args()
    print("| library | mechanism | claimed ε | found ε >= (confidence 0.999) | rule |")
    print("|---|---|---|---|---|")
    for attack in ATTACKS:
        if not installed(attack.peer, asked.python):
            print(
                f"| {attack.peer} | {attack.name} | {attack.epsilon} | skipped: not installed | |"
            )
            continue
        try:
            found = audit.lower_bound(
                black_box(attack, asked.python),
                *attack.inputs,
                epsilon=attack.epsilon,
                samples=asked.samples,
                confidence="0.999",
                vectorized=True,
            )
        except RuntimeError as error:
            reason = str(error).strip().splitlines()[-1]
            print(f"| {attack.peer} | {attack.name} | {attack.epsilon} | failed: {reason} | |")
            continue
        print(line(attack.peer, attack.name, found), flush=True)
    few = asked.samples // 10  # a release takes a millisecond
    found = audit.lower_bound(ours, 0.0, 1.0, epsilon=1, samples=few, confidence="0.999")
    print(line("zerodelta", "mean of two numbers", found))


def line(peer: str, name: str, found: audit.LowerBound) -> str:
    mark = "**VIOLATED**" if found.violated else ""
    return (
        f"| {peer} | {name} | {found.claimed} | {found.epsilon_lower:.2f} {mark} | {found.rule} |"
    )


if __name__ == "__main__":
    main()
