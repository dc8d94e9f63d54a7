"""What leaves a study: a value and a certificate that depends on the plan only (theory C8)."""

from __future__ import annotations

from typing import Any

import pytest

from study.small_studies import ROWS, made
from zerodelta.errors import EntropyError, ParameterError
from zerodelta.exact.bits import BitSource, ReplayBits
from zerodelta.privacy.claims import PureDP
from zerodelta.privacy.verify import verify
from zerodelta.spaces import Ball, Box
from zerodelta.study.study import Study
from zerodelta.testing import replayed


class Counted(BitSource):
    """Bits that can run out."""

    def __init__(self, label: str, calls: int = 10**9) -> None:
        self.inner, self.left = ReplayBits(label), calls

    def read(self, count: int) -> bytes:
        self.left -= 1
        if self.left < 0:
            raise EntropyError("no more bits")
        return self.inner.read(count)


def fails(_: Study) -> Any:
    raise RuntimeError("the data says so")


def asks_nothing(study: Study) -> Any:
    return 3


def asks_much(study: Study) -> Any:
    for _ in range(9):
        study.mean(0)
    study.covariance(data_norm=1)
    return study.histogram(0, size=4)


def asks_unevenly(study: Study) -> Any:
    return study.mean(0, share="1/7") > study.mean(1, share="2/3")


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"selects": True},
        {"rowwise": True},
        {"publish": Box(0, 1, dimension=2), "mixing_probability": "1/20"},
        {"publish": Ball(3, 1)},
        {"rounds": [1, 2, 5]},
    ],
    ids=str,
)
def test_the_certificate_verifies_and_says_the_same_whatever_was_asked(
    options: dict[str, Any],
) -> None:
    other = ROWS[::-1] * 0.5
    texts, errors = set(), set()
    for rows in (ROWS, other):
        for program in (asks_nothing, asks_much, asks_unevenly, fails):
            release = made(rows=rows, **options).run(program, rehearse=False)
            assert verify(release.certificate)
            assert verify(release.certificate.to_json())
            texts.add(release.certificate.to_json())
            errors.add(release.error)
            assert release.certificate.claim == PureDP(1)
    assert len(texts) == len(errors) == 1


def test_a_source_of_bits_that_fails_publishes_nothing() -> None:
    with replayed(Counted("few", calls=0)):
        study = made()
        with pytest.raises(EntropyError):
            study.run(lambda s: 1, rehearse=False)
    with pytest.raises(ParameterError, match="nothing yet"):
        _ = study.release
