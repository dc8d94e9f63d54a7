"""Add noise to exact sums, or select an option: the building blocks of every release."""

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
