"""Mistakes in tasks: sensitivities, and what a certified minimum rests on."""

from __future__ import annotations

from mutants.mutant import Mutant

MUTANTS = (
    Mutant(
        file="tasks/mean.py",
        old="sensitivity=2\n",
        new="sensitivity=1\n",
        tests=("tasks/test_mean.py::test_one_column_is_pure_on_every_pair_of_neighbours",),
    ),
    Mutant(
        file="tasks/mean.py",
        old="if noise_norm >= norm:",
        new="if noise_norm <= norm:",
        tests=("tasks/test_mean.py::test_two_columns_are_pure_on_every_pair_of_neighbours",),
    ),
    Mutant(
        file="tasks/mean.py",
        old="root = math.isqrt((dimension << 64) - 1) + 1",
        new="root = math.isqrt((dimension << 64) - 1)",
        tests=("tasks/test_mean.py::test_one_column_is_pure_on_every_pair_of_neighbours",),
    ),
    Mutant(
        file="tasks/quantile.py",
        old="for_epsilon(epsilon=exact, sensitivity=1)",
        new='for_epsilon(epsilon=exact, sensitivity="1/2")',
        tests=("tasks/test_quantile.py::test_quantiles_are_pure_on_every_pair_of_neighbours",),
    ),
    Mutant(
        file="tasks/mode.py",
        old="for_epsilon(epsilon=exact, sensitivity=1)",
        new='for_epsilon(epsilon=exact, sensitivity="1/2")',
        tests=("tasks/test_mode.py::test_modes_are_pure_on_every_pair_of_neighbours",),
    ),
)
