"""Each theorem as an object of public numbers, its inequality a method; no sampler is imported.

The mechanism that calibrates and the verifier that re-checks call the same method. Labels are those
of `docs/theory.md`.
"""
