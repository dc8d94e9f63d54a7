"""Mistakes in claims, composition and the verifier: a check or a count dropped."""

from __future__ import annotations

from mutants.mutant import Mutant

MUTANTS = (
    Mutant(
        file="interop/opacus.py",
        old="Fraction(math.ceil(exact * _GRID), _GRID)",
        new="Fraction(math.floor(exact * _GRID), _GRID)",
        tests=("interop/test_opacus.py::test_rates_are_rounded_up_to_what_torch_samples_with",),
    ),
    Mutant(
        file="interop/opacus.py",
        old="moved = min(1 / sigma, Fraction(1000))",
        new="moved = min(1 / (2 * sigma), Fraction(1000))",
        tests=("interop/test_opacus.py::test_float_noise_has_a_floor_at_every_epsilon",),
    ),
    Mutant(
        file="interop/opacus.py",
        old="all(len(each) == 3 for each in entries)",
        new="entries",
        tests=("interop/test_opacus.py::test_what_is_no_history_is_refused",),
    ),
    Mutant(
        file="interop/opacus.py",
        old="        if safe > _LARGEST_FACTOR:\n            return math.inf\n",
        new="",
        tests=("interop/test_opacus.py::test_where_no_noise_would_do_the_refusal_says_so",),
    ),
    Mutant(
        file="privacy/renyi.py",
        old="return 1e300 if value > 0 else -1e300",
        new="return math.copysign(1e300, value)",
        tests=("interop/test_opacus.py::test_hardly_any_noise_hides_nothing",),
    ),
    Mutant(
        file="privacy/steps.py",
        old="return Fraction(1, 1 << exponent) if SMALLEST",
        new="return Fraction(2, 1 << exponent) if SMALLEST",
        tests=("privacy/test_powers.py::test_a_power_is_read_as_it_is_written",),
    ),
    Mutant(
        file="privacy/theorems/mixing.py",
        old="return smallest_log_delta(base, epsilon) <= allowed",
        new="return smallest_log_delta(base, epsilon) <= allowed + 1",
        tests=(
            "privacy/test_certificate.py::test_every_understated_number_fails_although_the_digest_was_computed_anew",
        ),
    ),
    Mutant(
        file="privacy/theorems/smoothing.py",
        old="gaussian_share(claim) >= 2 * self.last.rho",
        new="gaussian_share(claim) >= self.last.rho",
        tests=(
            "privacy/test_gaussian_share.py::test_a_pure_step_does_not_pay_for_the_gaussian_one",
        ),
    ),
    Mutant(
        file="privacy/theorems/smoothing.py",
        old="ideal.exact_epsilon + extra <= epsilon",
        new="ideal.exact_epsilon <= epsilon",
        tests=(
            "privacy/test_certificate.py::test_every_understated_number_fails_although_the_digest_was_computed_anew",
        ),
    ),
    Mutant(
        file="privacy/theorems/smoothing.py",
        old="- 2 * ball(log_one).exp() / ball(self.scale)",
        new="- ball(log_one).exp() / ball(self.scale)",
        tests=(
            "channels/test_channels_are_pure.py::test_algorithm_one_is_pure_at_theorem_w_s_radius",
        ),
    ),
    Mutant(
        file="privacy/theorems/mixing.py",
        old="* (1 - self.weight) / self.weight",
        new="* (1 - self.weight)",
        tests=(
            "privacy/test_certificate.py::test_every_understated_number_fails_although_the_digest_was_computed_anew",
        ),
    ),
    Mutant(
        file="privacy/theorems/mixing.py",
        old="return epsilon >= self.epsilon and lower(",
        new="return lower(",
        tests=(
            "privacy/test_certificate.py::test_every_understated_number_fails_although_the_digest_was_computed_anew",
        ),
    ),
    Mutant(
        file="privacy/verify.py",
        old="proven.exact_epsilon <= claimed.exact_epsilon",
        new="proven.exact_epsilon <= 2 * claimed.exact_epsilon",
        tests=("privacy/test_certificate.py::test_base_steps_alone_prove_what_they_compose_to",),
    ),
    Mutant(
        file="privacy/verify.py",
        old="proven.mu_squared <= claimed.mu_squared",
        new="proven.mu_squared <= 2 * claimed.mu_squared",
        tests=("privacy/test_certificate.py::test_base_steps_alone_prove_what_they_compose_to",),
    ),
    Mutant(
        file="privacy/verify.py",
        old="zcdp_cost(proven) <= claimed.rho",
        new="zcdp_cost(proven) <= 2 * claimed.rho",
        tests=("privacy/test_certificate.py::test_base_steps_alone_prove_what_they_compose_to",),
    ),
    Mutant(
        file="privacy/verify.py",
        old="<= claimed.exact_log_delta",
        new="<= claimed.exact_log_delta + 1",
        tests=("privacy/test_claims_of_base_steps.py::test_a_smaller_delta_is_refused",),
    ),
    Mutant(
        file="privacy/verify.py",
        old="and (proven.bounded_range or not claimed.bounded_range)",
        new="",
        tests=(
            "privacy/test_claims_of_base_steps.py::test_only_a_choice_by_gumbel_noise_has_a_bounded_range",
        ),
    ),
    Mutant(
        file="privacy/verify.py",
        old="if read.digest != read.fingerprint():",
        new="if False:",
        tests=("privacy/test_certificate.py::test_any_changed_number_breaks_the_digest",),
    ),
    Mutant(
        file="privacy/verify.py",
        old="if read.randomness != OS_ENTROPY:",
        new="if False:",
        tests=("privacy/test_certificate.py::test_replayed_test_bits_are_never_private",),
    ),
    Mutant(
        file="privacy/verify.py",
        old="if total > claim.exact_epsilon:",
        new="if total > 2 * claim.exact_epsilon:",
        tests=("privacy/test_parts.py::test_pure_parts_add_up_exactly",),
    ),
    Mutant(
        file="privacy/verify.py",
        old="if certificate.unit != unit:",
        new="if unit is not None and certificate.unit != unit:",
        tests=("privacy/test_parts.py::test_a_unit_is_proven_only_if_it_is_asked_for",),
    ),
    Mutant(
        file="privacy/verify.py",
        old="check_proof(part.steps, PureDP(part.epsilon, neighbors=claim.neighbors))",
        new="theorem_of(part.steps[-1])",
        tests=("privacy/test_parts.py::test_a_part_cannot_state_less_than_it_costs",),
    ),
    Mutant(
        file="privacy/verify.py",
        old="if type(last) is NumericalErrorTheorem and last.error > 0:",
        new="if type(last) is NumericalErrorTheorem:",
        tests=("privacy/test_once_accepted.py::test_a_real_minimum_is_published_with_an_error",),
    ),
    Mutant(
        file="spine/plan.py",
        old="if certificate.digest not in _CHECKED:",
        new="if not _CHECKED:",
        tests=("spine/test_remembered_proofs.py::test_another_proof_is_checked",),
    ),
    Mutant(
        file="spine/plan.py",
        old="    check_parts(certificate)  # a test reads",
        new="    _CHECKED[certificate.digest] = None\n    check_parts(certificate)  # a test reads",
        tests=("spine/test_remembered_proofs.py::test_what_proves_nothing_is_refused_each_time",),
    ),
    Mutant(
        file="privacy/readable.py",
        old="elif int(number[1]) < int(current):",
        new="elif int(number[1]) > int(current):",
        tests=("golden/test_fixtures.py::test_a_certificate_of_another_format_is_refused",),
    ),
    Mutant(
        file="privacy/certificate.py",
        old='if data["schema"] != SCHEMA:',
        new="if False:",
        tests=("golden/test_fixtures.py::test_a_certificate_of_another_format_is_refused",),
    ),
    Mutant(
        file="privacy/theorems/__init__.py",
        old="if theorem.asserted and step.status is Status.PROVEN:",
        new="if False:",
        tests=("privacy/test_certificate.py::test_a_callers_word_cannot_call_itself_proven",),
    ),
    Mutant(
        file="privacy/claims.py",
        old="if t >= stated:\n            return -math.inf",
        new="if t >= stated / 2:\n            return -math.inf",
        tests=("privacy/test_claims.py::test_pure_below_its_epsilon_is_randomized_response",),
    ),
    Mutant(
        file="privacy/claims.py",
        old="2 * (-ball(half).expm1()).log()",
        new="3 * (-ball(half).expm1()).log()",
        tests=("privacy/test_claims.py::test_bounded_range_is_the_worst_two_point_loss",),
    ),
    Mutant(
        file="privacy/claims.py",
        old="if t >= stated:\n            return self.exact_log_delta",
        new="if t >= 0:\n            return self.exact_log_delta",
        tests=("privacy/test_claims.py::test_approximate_below_its_epsilon_is_reveal_or_respond",),
    ),
    Mutant(
        file="privacy/composition.py",
        old="return self.mu_squared / 2 + self.rho + sum(pure",
        new="return self.mu_squared / 4 + self.rho + sum(pure",
        tests=("privacy/test_composition.py::test_counting_exactly",),
    ),
    Mutant(
        file="privacy/composition.py",
        old="mu_squared=count * parts.mu_squared",
        new="mu_squared=parts.mu_squared",
        tests=("privacy/test_composition.py::test_repeating_the_list_is_counting",),
    ),
    Mutant(
        file="privacy/composition.py",
        old="(epsilon, ranged, count * steps)",
        new="(epsilon, ranged, steps)",
        tests=("privacy/test_composition.py::test_repeating_the_list_is_counting",),
    ),
    Mutant(
        file="privacy/composition.py",
        old="return parts.mu_squared + 2 * parts.rho",
        new="return parts.mu_squared + 4 * parts.rho",
        tests=("privacy/test_gaussian_share.py::test_a_zcdp_part_holds_the_step_if_its_rho_does",),
    ),
    Mutant(
        file="privacy/composition.py",
        old="parts.pure[0][1:] == (True, 1)",
        new="parts.pure[0][1]",
        tests=(
            "privacy/test_composition.py::test_one_claim_once_is_itself_and_a_sum_loses_its_bounded_range",
        ),
    ),
    Mutant(
        file="privacy/composition.py",
        old="rest = t - self.pure_epsilon",
        new="rest = t",
        tests=(
            "privacy/test_composition.py::test_gaussian_with_pure_steps_bounds_the_exact_profile",
        ),
    ),
    Mutant(
        file="privacy/composition.py",
        old="return min(log_sum_upper((bound, self.log_failure)), 0.0)",
        new="return min(bound, 0.0)",
        tests=("privacy/test_composition.py::test_adding_a_step_never_helps",),
    ),
    Mutant(
        file="privacy/renyi.py",
        old="return epsilon**2 / 8",
        new="return epsilon**2 / 16",
        tests=("privacy/test_composition.py::test_zcdp_costs",),
    ),
    Mutant(
        file="privacy/renyi.py",
        old="order * self.epsilon**2 / 8",
        new="order * self.epsilon**2 / 16",
        tests=(
            "privacy/test_composition.py::test_exponential_mechanism_steps_stay_within_their_cost",
        ),
    ),
    Mutant(
        file="privacy/renyi.py",
        old="bisect_left(self.orders, order)",
        new="bisect_left(self.orders, order - 1)",
        tests=("privacy/test_renyi.py::test_a_table_answers_with_the_next_larger_order",),
    ),
    Mutant(
        file="privacy/renyi.py",
        old="math.ceil(order) if self.integer",
        new="math.floor(order) if self.integer",
        tests=("privacy/test_renyi.py::test_a_table_answers_with_the_next_larger_order",),
    ),
    Mutant(
        file="privacy/renyi.py",
        old="            - ball(order).log()\n",
        new="            - 2 * ball(order).log()\n",
        tests=("privacy/test_renyi.py::test_one_order_is_converted_upwards",),
    ),
    Mutant(
        file="privacy/renyi.py",
        old="ball(epsilon / 2).tanh()",
        new="ball(epsilon / 4).tanh()",
        tests=("privacy/test_renyi.py::test_pure_steps_are_concentrated_at_the_tanh_rate",),
    ),
    Mutant(
        file="privacy/theorems/subsampling.py",
        old="(curve.copies * terms.total()).log1p()",
        new="terms.total().log1p()",
        tests=(
            "privacy/test_subsampling.py::test_the_certified_divergence_is_the_lemma_rounded_up",
        ),
    ),
    Mutant(
        file="privacy/theorems/subsampling.py",
        old="whole = max(math.ceil(order), 2)",
        new="whole = max(math.floor(order), 2)",
        tests=("privacy/test_subsampling.py::test_between_integers_the_next_larger_order_answers",),
    ),
    Mutant(
        file="privacy/theorems/subsampling.py",
        old="total += (end - start + 1) * self._largest(",
        new="total += self._largest(",
        tests=("privacy/test_subsampling.py::test_skipped_terms_are_bounded_whatever_is_skipped",),
    ),
    Mutant(
        file="privacy/theorems/subsampling.py",
        old="plain = order * self.mu_squared / 2\n",
        new="plain = order * self.mu_squared / 4\n",
        tests=("privacy/test_subsampling.py::test_the_lemma_covers_exact_mixtures_over_batches",),
    ),
    Mutant(
        file="privacy/verify.py",
        old="if step.neighbors is not (Neighbors.ADD_REMOVE if groups else claimed):",
        new="if not groups and step.neighbors is not claimed:",
        tests=("privacy/test_certificate.py::test_mixed_neighboring_relations_are_refused",),
    ),
    Mutant(
        file="privacy/theorems/theorem.py",
        old="return Neighbors.ADD_REMOVE if cls.from_add_remove else claimed",
        new="return claimed",
        tests=(
            "privacy/test_certificate.py::test_a_certificate_verifies_at_the_smallest_epsilon_of_its_steps",
        ),
    ),
)
