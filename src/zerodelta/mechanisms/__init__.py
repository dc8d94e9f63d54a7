"""Noise on exact sums, and selection: the blocks everything is built from."""
