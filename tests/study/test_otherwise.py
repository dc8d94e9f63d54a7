"""What a failed program publishes: a fixed element, or one more than the space has (theory C8)."""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np
import pytest

from study.small_studies import made
from zerodelta.errors import ParameterError
from zerodelta.spaces import Ball, Box, Finite, Space, Subsets
from zerodelta.study.study import Study

NEVER = "1e-12"


def fails(_: Study) -> Any:
    raise RuntimeError


SPACES: list[tuple[Space, Any, Any]] = [
    (Finite(16), None, 0),
    (Finite(16), 7, 7),
    (Finite(16), "none", "none"),
    (Finite(["a", "b"]), "b", "b"),
    (Finite(["a", "b"]), "neither", "neither"),
    (Finite([None, "a"]), "none", "none"),
    (Subsets(of=5, size=2), None, (0, 1)),
    (Subsets(of=5, size=2), (4, 2), (2, 4)),
    (Subsets(of=5, size=2), "none", "none"),
    (Box(0, 4), None, [2.0]),
    (Box(0, 4), 4.0, [4.0]),
    (Ball(2, 1), [0.0, 1.0], [0.0, 1.0]),
]


@pytest.mark.parametrize(("space", "otherwise", "published"), SPACES, ids=str)
@pytest.mark.parametrize(
    "program",
    [
        *(fails, lambda s: sys.exit("the data says so")),
        *(lambda s: math.nan, lambda s: math.inf, lambda s: "text", lambda s: object()),
    ],
    ids=["raises", "exits", "NaN", "infinity", "text", "an object"],
)
def test_a_failure_publishes_otherwise(
    space: Space, otherwise: Any, published: Any, program: Any
) -> None:
    study = made(publish=space, otherwise=otherwise, mixing_probability=NEVER, resolution=None)
    value = study.run(program, rehearse=False).value
    if isinstance(space, (Box, Ball)):
        np.testing.assert_allclose(value, published, atol=0.5)
    else:
        assert value == published


def test_one_more_element_is_counted_in_plan_and_certificate() -> None:
    plain, more = made(), made(otherwise="none")
    sizes = [study.publish(1).certificate.steps[-1].numbers["size"] for study in (plain, more)]
    assert sizes == [4, 5]
    assert more.plan.mu_squared < plain.plan.mu_squared
    assert "or 'none'" in repr(more.plan)
    assert any("or 'none'" in line for line in more.release.certificate.public)
    same = made(otherwise=3)
    assert same.plan.mu_squared == plain.plan.mu_squared


def test_none_is_published_where_it_is_an_option() -> None:
    study = made(publish=Finite(["a", None]), mixing_probability=NEVER, otherwise="failed")
    assert study.run(lambda s: None).value is None


@pytest.mark.parametrize("otherwise", [math.nan, object(), [1, 2], {"a": 1}])
def test_what_no_certificate_can_carry_is_refused(otherwise: Any) -> None:
    with pytest.raises(ParameterError):
        made(otherwise=otherwise)


def test_a_point_outside_of_a_box_is_refused() -> None:
    for otherwise in (7, "none", [0.1, 0.2]):
        with pytest.raises(ParameterError, match="leave it out"):
            made(publish=Box(0, 1), otherwise=otherwise)


def test_a_number_is_published_as_the_nearest_element() -> None:
    """16 times a mean was published as element 0, always."""
    rows = np.full((100_000, 1), 0.5)
    study = Study(
        rows, epsilon=1, publish=Finite(16), rounds=1000, bounds=(0, 1), mixing_probability=NEVER,
        functions=False,
    )  # fmt: skip
    assert study.run(lambda s: 16 * s.mean(0)).value == 8
