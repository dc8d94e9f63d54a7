"""Slow, independent references for the tests: Python integers, fractions and mpmath only.

Nothing here imports the product. Every enclosure is rigorous; floats appear only at the very end,
where a chi-square test needs them.
"""
