"""Select the pair of sensors that predicts a fault best; only its name is published.

The label depends on the *product* of two sensors, so no single sensor predicts it: the network of
each pair has to be trained before it can be scored, and all of that stays inside one study. The
second release chooses among fixed rules: nothing is trained, so permute-and-flip is used.
"""

from __future__ import annotations

import itertools

import numpy as np
import numpy.typing as npt
from rich.console import Console

import zerodelta as zd
from zerodelta.models import NetworkModel

SENSORS = ("pressure", "flow", "heat", "speed")


def main() -> None:
    console, rng = Console(), np.random.default_rng(0)
    x = rng.uniform(-1, 1, size=(10_000, 4))
    fault = np.where(rng.random(len(x)) < 0.2, x[:, 1] * x[:, 3] < 0, x[:, 1] * x[:, 3] > 0)
    rows = np.column_stack([x, fault])

    models = {
        f"{SENSORS[a]} and {SENSORS[b]}": NetworkModel(
            features=(a, b), label=4, lower=(-1, -1), upper=(1, 1)
        )
        for a, b in itertools.combinations(range(4), 2)
    }
    console.print("The truth: flow and speed. Trained inside a study, pure ε = 1:")
    release = zd.select_model(rows, models, epsilon=1, rounds=10)
    console.print(f"{release}\n")

    def is_right(pair: tuple[int, int], block: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
        a, b = pair
        correct: npt.NDArray[np.bool_] = (block[:, a] * block[:, b] > 0) == block[:, 4]
        return correct

    console.print("With a known rule (same sign: a fault) nothing has to be trained:")
    rules = {
        f"{SENSORS[a]} and {SENSORS[b]}": (a, b) for a, b in itertools.combinations(range(4), 2)
    }
    console.print(zd.select_model(rows, rules, epsilon="1/20", score=is_right))


if __name__ == "__main__":
    main()
