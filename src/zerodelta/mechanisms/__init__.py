"""Noise on exact sums, and selection: the blocks everything is built from."""

from zerodelta.mechanisms.gaussian import RoundedGaussian
from zerodelta.mechanisms.k_norm_noise import KNorm
from zerodelta.mechanisms.laplace import RoundedLaplace
from zerodelta.mechanisms.selection import ExponentialMechanism, PermuteAndFlip

__all__ = ["ExponentialMechanism", "KNorm", "PermuteAndFlip", "RoundedGaussian", "RoundedLaplace"]
