"""Noise on exact sums, and selection: the blocks everything is built from."""

from zerodelta.mechanisms.partition_noise import BlockNoise, PartitionNoise
from zerodelta.mechanisms.selection import ExponentialMechanism, PermuteAndFlip
from zerodelta.mechanisms.sum_noise import KNorm, RoundedGaussian, RoundedLaplace

__all__ = [
    "BlockNoise",
    "ExponentialMechanism",
    "KNorm",
    "PartitionNoise",
    "PermuteAndFlip",
    "RoundedGaussian",
    "RoundedLaplace",
]
