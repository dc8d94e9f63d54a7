"""Hypothesis: the same examples in every `make test`, others in every `make test-slow`.

A slow machine is not a failure.
"""

from hypothesis import settings

settings.register_profile("fixed", deadline=None, derandomize=True)
settings.register_profile("random", deadline=None, derandomize=False, print_blob=True)
settings.load_profile("fixed")
