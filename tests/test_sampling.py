"""A sampler is replaced wherever it is held, and only until the test ends."""

import pytest

from sampling import holders, replaced
from zerodelta.exact import integers
from zerodelta.mechanisms import noisy_test, selection
from zerodelta.mechanisms.sum_noise import KNorm
from zerodelta.tasks import models


def test_a_sampler_is_replaced_in_every_module_that_draws_from_it() -> None:
    true = integers.uniform_below
    with replaced({"uniform_below": len}), replaced({"uniform_below": abs}):
        for module in (models, noisy_test, selection):
            assert vars(module)["uniform_below"] is abs
        assert integers.uniform_below is true  # samplers call one another as before
    assert vars(models)["uniform_below"] is true


def test_a_method_and_a_name_of_one_module_are_replaced() -> None:
    assert holders("KNorm.apply") == [(KNorm, "apply")]
    assert holders("selection.uniform_below") == [(selection, "uniform_below")]


@pytest.mark.parametrize("name", ["no_such_sampler", "KNorm.no_such_method", "plan"])
def test_what_is_unknown_or_means_two_things_is_refused(name: str) -> None:
    with pytest.raises(AssertionError, match=rf"called {name}|module\.{name}"):
        holders(name)
