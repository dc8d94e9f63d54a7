"""Slow, independent references for the tests: Python integers, fractions and mpmath only.

Nothing here imports the product. Every enclosure is rigorous, every sampler is exact given a
fair ``randbelow``; floats appear only at the very end, where a chi-square test needs them.
"""
