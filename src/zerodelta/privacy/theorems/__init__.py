"""Each theorem's inequality as a pure function of public numbers; no sampler is imported here.

The mechanism that calibrates and the verifier that re-checks call the same function. Labels are
those of `docs/theory.md`.
"""
