"""Fit private regressions: noise in the objective, pure on a computer (theory C9), or in sums."""
