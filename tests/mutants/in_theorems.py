"""Mistakes in the theorems' inequalities: a factor, a dropped term, the wrong radius."""

from __future__ import annotations

from mutants.mutant import Mutant

MUTANTS = (
    Mutant(
        file="privacy/theorems/mixing.py",
        old="ball(t).expm1().log() - arb(log_mass)",
        new="ball(t).exp().log() - arb(log_mass)",
        tests=(
            "privacy/test_theorems.py::test_what_delta_may_be_is_never_overstated_and_loses_nothing",
        ),
    ),
    Mutant(
        file="privacy/theorems/mixing.py",
        old="ball(w / (1 - w)).log() + ball(t)",
        new="ball(1 / (1 - w)).log() + ball(t)",
        tests=(
            "privacy/test_theorems.py::test_what_delta_may_be_is_never_overstated_and_loses_nothing",
        ),
    ),
    Mutant(
        file="privacy/theorems/mixing.py",
        old="ball(self.cells).log() * self.dimension",
        new="ball(self.cells).log()",
        tests=("privacy/test_theorems.py::test_every_mass_ratio_is_rounded_up_to_the_next_float",),
    ),
    Mutant(
        file="privacy/theorems/mixing.py",
        old="return upper(lambda: -ball(q).log())",
        new="return upper(lambda: -ball(q).log() / 2)",
        tests=("privacy/test_theorems.py::test_every_mass_ratio_is_rounded_up_to_the_next_float",),
    ),
    Mutant(
        file="privacy/theorems/mixing.py",
        old="sum((ball(cells).log() * times for",
        new="sum((ball(cells).log() for",
        tests=("channels/test_channels_are_pure.py::test_every_accepted_base_becomes_pure",),
    ),
    Mutant(
        file="privacy/theorems/mixing.py",
        old="spread = (self.bound + Fraction(d, 12)) / (2 * tau)",
        new="spread = self.bound / (2 * tau)",
        tests=("privacy/test_theorems.py::test_every_mass_ratio_is_rounded_up_to_the_next_float",),
    ),
    Mutant(
        file="privacy/theorems/mixing.py",
        old="ball(tau)).log() * ball(Fraction(d, 2))",
        new="ball(tau)).log() * ball(Fraction(d, 4))",
        tests=("privacy/test_theorems.py::test_every_mass_ratio_is_rounded_up_to_the_next_float",),
    ),
    Mutant(
        file="privacy/theorems/mixing.py",
        old="(ball(-1 / (2 * b)).expm1())).log() * d",
        new="(ball(-1 / b).expm1())).log() * d",
        tests=("privacy/test_theorems.py::test_every_mass_ratio_is_rounded_up_to_the_next_float",),
    ),
    Mutant(
        file="privacy/theorems/mixing.py",
        old="(1 + ball(r / (d * b)).log()) * d",
        new="ball(r / (d * b)).log() * d",
        tests=("privacy/test_theorems.py::test_every_mass_ratio_is_rounded_up_to_the_next_float",),
    ),
    Mutant(
        file="privacy/theorems/mixing.py",
        old="b <= r / d,",
        new="b <= r,",
        tests=("privacy/test_theorems.py::test_numbers_out_of_range_are_refused",),
    ),
    Mutant(
        file="privacy/theorems/mixing.py",
        old="(ball(ratio) / -(ball(-ratio).expm1())).log() * d",
        new="ball(ratio).log() * d",
        tests=(
            "channels/test_channels_are_pure.py::test_the_accepted_delta_is_as_tight_as_theory_says",
        ),
    ),
    Mutant(
        file="privacy/theorems/mixing.py",
        old="ball(Fraction(k, m)).log() * d",
        new="ball(Fraction(k, 2 * m)).log() * d",
        tests=("privacy/test_theorems.py::test_every_mass_ratio_is_rounded_up_to_the_next_float",),
    ),
    Mutant(
        file="privacy/theorems/mixing.py",
        old="rounding=decimal.ROUND_CEILING",
        new="rounding=decimal.ROUND_FLOOR",
        tests=(
            "privacy/test_theorems.py::test_the_smallest_weight_meets_the_condition_and_a_smaller_one_does_not",
        ),
    ),
    Mutant(
        file="privacy/theorems/mixing.py",
        old="0 < exact < 1,",
        new="0 <= exact <= 1,",
        tests=("privacy/test_theorems.py::test_numbers_out_of_range_are_refused",),
    ),
    Mutant(
        file="privacy/theorems/noise.py",
        old="return (1 if self.monotone else 2) * self.sensitivity / self.scale",
        new="return self.sensitivity / self.scale",
        tests=(
            "mechanisms/test_selection_is_private.py::test_selection_is_pure_on_all_tiny_scores",
        ),
    ),
    Mutant(
        file="privacy/theorems/smoothing.py",
        old='return 2 * r / as_positive(scale, "scale")',
        new='return r / as_positive(scale, "scale")',
        tests=(
            "privacy/test_theorems.py::test_numerical_error_costs_exactly_twice_the_error_per_scale",
        ),
    ),
    Mutant(
        file="privacy/theorems/smoothing.py",
        old="(tv / d if shrink else 0)",
        new="(tv if shrink else 0)",
        tests=(
            "privacy/test_theorems.py::test_the_transport_radius_is_rounded_up_and_capped_by_the_diameter",
        ),
    ),
    Mutant(
        file="privacy/theorems/smoothing.py",
        old="ball(log_radius) + ball(d).log() * ball(power)",
        new="ball(log_radius)",
        tests=(
            "privacy/test_theorems.py::test_the_transport_radius_is_rounded_up_and_capped_by_the_diameter",
        ),
    ),
    Mutant(
        file="privacy/theorems/smoothing.py",
        old="return self.radius + (order - 1) * self.sensitivity",
        new="return self.radius",
        tests=("privacy/test_theorems.py::test_smoothing_slack_is_rounded_down_to_the_next_float",),
    ),
    Mutant(
        file="privacy/theorems/smoothing.py",
        old="(2 * (tau - step.variance))",
        new="(2 * tau)",
        tests=("privacy/test_theorems.py::test_smoothing_slack_is_rounded_down_to_the_next_float",),
    ),
    Mutant(
        file="privacy/theorems/smoothing.py",
        old="return self.sensitivity**2 / (2 * self.variance)",
        new="return self.sensitivity**2 / (4 * self.variance)",
        tests=("privacy/test_theorems.py::test_numbers_out_of_range_are_refused",),
    ),
    Mutant(
        file="privacy/theorems/smoothing.py",
        old="ball(growth).log() * ball(half)",
        new="ball(growth).log()",
        tests=("privacy/test_theorems.py::test_smoothing_slack_is_rounded_down_to_the_next_float",),
    ),
    Mutant(
        file="privacy/theorems/testing.py",
        old="ball(nu + 1) * spread",
        new="ball(nu) * spread",
        tests=("tasks/test_trimmed_mean.py::test_the_theorem_s_formula_and_its_inverse",),
    ),
    Mutant(
        file="privacy/theorems/testing.py",
        old="ball(-rate * (threshold + Fraction(1, 2)))",
        new="ball(-rate * (threshold + 1))",
        tests=("paper/test_testing_certificates.py::test_a_lower_threshold_is_refused",),
    ),
    Mutant(
        file="privacy/theorems/testing.py",
        old="tail().exp() * (spread() + ball(t).exp())",
        new="tail().exp() * spread()",
        tests=("paper/test_testing_certificates.py::test_a_lower_threshold_is_refused",),
    ),
    Mutant(
        file="privacy/theorems/testing.py",
        old="tail().exp() * (spread() + 1)",
        new="tail().exp() * spread()",
        tests=("paper/test_testing_certificates.py::test_a_lower_threshold_is_refused",),
    ),
    Mutant(
        file="privacy/theorems/testing.py",
        old="tail().exp() * (size + ball(t).expm1())",
        new="tail().exp() * size",
        tests=("paper/test_testing_certificates.py::test_the_wrong_row_of_the_table_is_refused",),
    ),
    Mutant(
        file="privacy/theorems/testing.py",
        old="return self.bound_epsilon / self.local_change",
        new="return self.bound_epsilon * self.local_change",
        tests=("paper/test_testing_certificates.py::test_a_lower_threshold_is_refused",),
    ),
    Mutant(
        file="privacy/theorems/testing.py",
        old="half = epsilon / (2 * sensitivity)",
        new="half = epsilon / (4 * sensitivity)",
        tests=("paper/test_propose_test_release.py::test_a_threshold_one_lower_violates",),
    ),
    Mutant(
        file="privacy/theorems/regression.py",
        old="half * slope + (curvature / strength).log1p()",
        new="half * slope",
        tests=("regression/test_theorem_c9.py::test_the_supremum_is_the_largest_of_many_values",),
    ),
    Mutant(
        file="privacy/theorems/regression.py",
        old="noise / 2 + Fraction(max(tail",
        new="Fraction(max(tail",
        tests=("regression/test_theorem_c9.py::test_the_supremum_is_the_largest_of_many_values",),
    ),
    Mutant(
        file="privacy/theorems/regression.py",
        old="half * sine + (curvature / strength).log1p()",
        new="half * sine",
        tests=(
            "regression/test_theorem_c9.py::test_the_supremum_for_huber_is_the_largest_of_many_values",
        ),
    ),
    Mutant(
        file="privacy/theorems/regression.py",
        old="Fraction(9, 2) if replace",
        new="Fraction(2) if replace",
        tests=(
            "paper/test_adassp.py::test_the_joint_sensitivities_are_attained_and_never_exceeded",
        ),
    ),
    Mutant(
        file="privacy/theorems/regression.py",
        old="(Fraction(16, 3) if replace",
        new="(Fraction(3) if replace",
        tests=(
            "paper/test_adassp.py::test_the_joint_sensitivities_are_attained_and_never_exceeded",
        ),
    ),
    Mutant(
        file="privacy/theorems/regression.py",
        old="HALF_ROOT / self.scale",
        new="HALF_ROOT / (2 * self.scale)",
        tests=("regression/test_statistics.py::test_scale_and_epsilon_are_inverse",),
    ),
    Mutant(
        file="privacy/theorems/noise.py",
        old="moves = 2 if several and neighbors is Neighbors.REPLACE else 1",
        new="moves = 1",
        tests=(
            "tasks/test_table_is_private.py::test_independent_noise_on_all_groups_costs_epsilon",
            "mechanisms/test_partitions_are_private.py::test_p1_is_exactly_epsilon",
        ),
    ),
    Mutant(
        file="privacy/theorems/noise.py",
        old="moves = 2 if several and neighbors is Neighbors.REPLACE else 1",
        new="moves = 2 if several else 1",
        tests=("mechanisms/test_partitions_are_private.py::test_p1_is_exactly_epsilon",),
    ),
    Mutant(
        file="privacy/theorems/noise.py",
        old="several = self.cells > 1",
        new="several = self.cells > 2",
        tests=(
            "mechanisms/test_partitions_are_private.py::test_p1_is_exactly_epsilon",
            "mechanisms/test_partitions_are_private.py::test_one_cell_proves_half_of_what_two_do",
        ),
    ),
    Mutant(
        file="privacy/theorems/noise.py",
        old="    moves = 2 if neighbors is Neighbors.REPLACE else 1",
        new="    moves = 1",
        tests=(
            "mechanisms/test_partitions_are_private.py::test_g2_is_exactly_epsilon_for_any_number_of_groups",
        ),
    ),
    Mutant(
        file="privacy/theorems/noise.py",
        old="return self.row_total * self.unit_rows / self.scale",
        new="return self.row_total * self.unit_rows / 2 / self.scale",
        tests=("mechanisms/test_partitions_are_private.py::test_p2_is_exactly_epsilon",),
    ),
    Mutant(
        file="privacy/theorems/noise.py",
        old="return moves * self.row_total * self.unit_rows / self.scale",
        new="return moves * self.row_total / self.scale",
        tests=("mechanisms/test_partitions_are_private.py::test_p1_for_units_is_exactly_epsilon",),
    ),
    Mutant(
        file="privacy/theorems/noise.py",
        old="return self.row_total * self.unit_rows / self.scale",
        new="return self.row_total / self.scale",
        tests=("mechanisms/test_partitions_are_private.py::test_p2_for_units_is_exactly_epsilon",),
    ),
    Mutant(
        file="privacy/theorems/noise.py",
        old="return moves * self.row_bound * self.unit_rows / self.scale",
        new="return moves * self.row_bound / self.scale",
        tests=("mechanisms/test_partitions_are_private.py::test_g2_for_units_is_exactly_epsilon",),
    ),
    Mutant(
        file="privacy/theorems/noise.py",
        old="return 2 * self.unit_rows * group.exact_epsilon <= epsilon",
        new="return self.unit_rows * group.exact_epsilon <= epsilon",
        tests=(
            "privacy/test_certificate.py::test_an_epsilon_one_billionth_too_small_fails_on_the_mathematics",
        ),
    ),
    Mutant(
        file="privacy/theorems/noise.py",
        old="or group.neighbors is not Neighbors.ADD_REMOVE",
        new="",
        tests=(
            "privacy/test_parallel_blocks.py::test_a_claim_for_replaced_rows_of_a_group_is_not_enough",
        ),
    ),
)
