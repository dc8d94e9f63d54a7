"""Mistakes in studies: a budget that is not kept, sensitivities, what outlives publishing."""

from __future__ import annotations

from mutants.mutant import Mutant

MUTANTS = (
    Mutant(
        file="study/plan.py",
        old="if not 0 < taken <= self._left:",
        new="if not 0 < taken:",
        tests=("study/test_study_plan.py::test_a_schedule_is_spent_exactly",),
    ),
    Mutant(
        file="study/plan.py",
        old="self._left -= taken",
        new="self._left -= taken / 2",
        tests=("study/test_study_plan.py::test_a_schedule_is_spent_exactly",),
    ),
    Mutant(
        file="study/plan.py",
        old="if number >= self.rounds:",
        new="if number > self.rounds:",
        tests=("study/test_study_plan.py::test_a_schedule_is_spent_exactly",),
    ),
    Mutant(
        file="study/plan.py",
        old="/ (share * self.mu_squared)",
        new="/ (2 * share * self.mu_squared)",
        tests=("study/test_study_plan.py::test_the_variance_is_the_sensitivity_over_the_share",),
    ),
    Mutant(
        file="study/plan.py",
        old="exact = 8 * share * self.mu_squared / 2",
        new="exact = 8 * share * self.mu_squared",
        tests=("study/test_study_plan.py::test_a_selection_costs_its_share_of_rho",),
    ),
    Mutant(
        file="study/plan.py",
        old="return 2 * calibration.rho if",
        new="return 4 * calibration.rho if",
        tests=("study/test_study_plan.py::test_rho_is_enough_for_zcdp",),
    ),
    Mutant(
        file="study/questions.py",
        old="return 4 * self.lattice.steps**2 * coordinates",
        new="return self.lattice.steps**2 * coordinates",
        tests=("study/test_questions.py::test_the_noise_has_the_planned_variance",),
    ),
    Mutant(
        file="study/questions.py",
        old="coordinates = self.lattice.dimension if",
        new="coordinates = 1 if",
        tests=("study/test_questions.py::test_the_noise_has_the_planned_variance",),
    ),
)
