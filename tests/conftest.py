"""Hypothesis: the same examples in every `make test`, others in every `make test-slow`.

A slow machine is not a failure.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from hypothesis import settings

from sampling import Replace, replaced

settings.register_profile("fixed", deadline=None, derandomize=True)
settings.register_profile("random", deadline=None, derandomize=False, print_blob=True)
settings.load_profile("fixed")


@pytest.fixture
def replace() -> Iterator[Replace]:
    """Replace a sampler, by its name, until the test ends; see tests/sampling.py."""
    with ExitStack() as stack:

        def replacing(name: str, replacement: Any) -> None:
            stack.enter_context(replaced({name: replacement}))

        yield replacing
