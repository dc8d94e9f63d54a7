"""Seeds and forks: no two releases share random bits, and no seed of the caller reaches them.

(The bits themselves, and that nothing of them is kept: tests/exact/test_bits.py. Studies:
tests/study/test_study_lifecycle.py. No public function takes a seed: tests/test_package.py.)
"""

from __future__ import annotations

import copy
import multiprocessing
import pickle
import random
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import sklearn.cluster  # noqa: F401  (it takes generators as it is imported)

import zerodelta as zd
from attacks.every_release import every, people, run
from attacks.one_release import ROWS, released
from zerodelta.exact import bits

MANY = 6


def estimated(model: Any) -> bytes:
    """Fit an estimator, and return all of its coefficients."""
    found: bytes = model.fit(ROWS / 200, ROWS[:, 0] > 50).coef_.tobytes()
    return found


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.filterwarnings("ignore:This process")  # Python 3.12 about threads and fork
def test_processes_never_repeat_each_other(method: str) -> None:
    """As private PCA of OpenDP did, whose generator was filled before the fork (issue 2934)."""
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"no {method} on this system")
    first = released()  # whatever is filled on first use is filled now
    with multiprocessing.get_context(method).Pool(2) as pool:
        found = pool.map(released, range(MANY), chunksize=1)
    assert len({first, released(), *found}) == MANY + 2


def test_threads_never_repeat_each_other() -> None:
    start = threading.Barrier(MANY)

    def together(_: int) -> bytes:
        start.wait()
        return released()

    with ThreadPoolExecutor(MANY) as pool:
        assert len(set(pool.map(together, range(MANY)))) == MANY


def test_copies_of_an_estimator_draw_anew() -> None:
    model = zd.sklearn.LogisticRegression(epsilon=1, data_norm=1, classes=[0, 1])
    copies = [model, copy.copy(model), copy.deepcopy(model), pickle.loads(pickle.dumps(model))]
    assert len({estimated(each) for each in copies}) == len(copies)
    assert estimated(model) != estimated(model)  # and each fit does


def test_seeds_change_nothing() -> None:
    """As an integer `random_state` does elsewhere, which also turns off secure noise."""
    found = []
    for _ in range(2):
        random.seed(7)
        np.random.seed(7)  # noqa: NPY002  (the attack)
        found.append(released())
    assert found[0] != found[1]


# -- where the bits come from ---------------------------------------------------------------------

GENERATORS = [
    (random, "random"), (random, "getrandbits"), (random, "randint"), (random, "shuffle"),
    (random, "seed"), (np.random, "random"), (np.random, "normal"),
    (np.random, "laplace"), (np.random, "seed"), (np.random, "choice"), (np.random, "uniform"),
    (np.random, "shuffle"), (np.random, "permutation"),
]  # fmt: skip


@pytest.fixture
def _no_other_generator(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("noise of another generator")

    real = np.random.default_rng

    def seeded(seed: Any = None) -> Any:
        """Public numbers, the same in every run, are not noise: the splits of a random forest."""
        return real(seed) if isinstance(seed, int) else refuse()

    for module, name in GENERATORS:
        monkeypatch.setattr(module, name, refuse)
    monkeypatch.setattr(np.random, "default_rng", seeded)


@every
@pytest.mark.usefixtures("_no_other_generator")
def test_every_release_draws_from_the_operating_system_only(
    case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, real = [0], bits._system_bytes

    def counted(count: int) -> bytes:
        read[0] += count
        return real(count)

    monkeypatch.setattr(bits, "_system_bytes", counted)
    release = run(case, people())
    assert read[0] >= 16 + 8  # the name of the release, and its noise
    assert release.certificate.randomness == "operating system"
