"""Mistakes in channels: dropped mixing, clamps, half the noise, radius for diameter."""

from __future__ import annotations

from mutants.mutant import Mutant

MUTANTS = (
    Mutant(
        file="channels/channel.py",
        old="return drawn if bool(",
        new="return kept if bool(",
        tests=(
            "channels/test_apply_on_every_path.py::test_apply_has_exactly_its_law_at_every_value",
        ),
    ),
    Mutant(
        file="channels/channel.py",
        old="log_delta, excess = claim.log_delta(t), ratio - 1",
        new="log_delta, excess = claim.log_delta(t), (ratio - 1) / 2",
        tests=("channels/test_is_purifier.py::test_the_verdict_turns_exactly_at_the_threshold",),
    ),
    Mutant(
        file="channels/mixes.py",
        old="side // 2, 0, cells - side)",
        new="side // 2, 0, cells)",
        tests=(
            "channels/test_apply_on_every_path.py::test_apply_has_exactly_its_law_at_every_value",
        ),
    ),
    Mutant(
        file="channels/mixes.py",
        old="side // 2, 0, cells - side)",
        new="side // 2, -1, cells - side)",
        tests=(
            "channels/test_apply_on_every_path.py::test_apply_has_exactly_its_law_at_every_value",
        ),
    ),
    Mutant(
        file="channels/mixes.py",
        old="uniform_below(side, size=self.dimension, bits=bits)",
        new="uniform_below(side - 1, size=self.dimension, bits=bits)",
        tests=(
            "channels/test_apply_on_every_path.py::test_apply_has_exactly_its_law_at_every_value",
        ),
    ),
    Mutant(
        file="channels/mixes.py",
        old="drawn = uniform_below(cells, size=self.dimension, bits=bits)",
        new="drawn = uniform_below(cells - 1, size=self.dimension, bits=bits)",
        tests=(
            "channels/test_apply_on_every_path.py::test_apply_has_exactly_its_law_at_every_value",
        ),
    ),
    Mutant(
        file="channels/mixes.py",
        old="uniform_below(self.lattice.cells, size",
        new="uniform_below(self.lattice.cells - 1, size",
        tests=(
            "channels/test_apply_on_every_path.py::test_apply_has_exactly_its_law_at_every_value",
        ),
    ),
    Mutant(
        file="channels/mixes.py",
        old="rounded_gaussian(variance=self.variance, size",
        new="rounded_gaussian(variance=self.variance / 2, size",
        tests=(
            "channels/test_apply_on_every_path.py::test_noise_goes_where_the_channel_says_at_every_value",
        ),
    ),
    Mutant(
        file="channels/mixes.py",
        old="rounded_laplace(scale=self.scale, size",
        new="rounded_laplace(scale=self.scale / 2, size",
        tests=(
            "channels/test_apply_on_every_path.py::test_noise_goes_where_the_channel_says_at_every_value",
        ),
    ),
    Mutant(
        file="channels/kernels.py",
        old="scale=scale, size=1, bits=bits)\n    drawn",
        new="scale=scale / 2, size=1, bits=bits)\n    drawn",
        tests=(
            "channels/test_apply_on_every_path.py::test_noise_goes_where_the_channel_says_at_every_value",
        ),
    ),
    Mutant(
        file="channels/kernels.py",
        old="radius=body.radius,",
        new="radius=body.radius + 1,",
        tests=(
            "channels/test_apply_on_every_path.py::test_noise_goes_where_the_channel_says_at_every_value",
        ),
    ),
    Mutant(
        file="channels/kernels.py",
        old="return add_exactly(body.centered(value), noise[0]), drawn[0]",
        new="return body.centered(value), drawn[0]",
        tests=(
            "channels/test_apply_on_every_path.py::test_noise_goes_where_the_channel_says_at_every_value",
        ),
    ),
    Mutant(
        file="channels/kernels.py",
        old="width, d = 2 * self.body.radius,",
        new="width, d = self.body.radius,",
        tests=(
            "channels/test_channels_are_pure.py::test_the_accepted_delta_is_as_tight_as_theory_says",
            "channels/test_channels_are_pure.py::test_a_larger_delta_is_refused",
        ),
    ),
    Mutant(
        file="channels/kernels.py",
        old="math.isqrt(max(bound - 1, 0)) + 1",
        new="math.isqrt(max(bound - 1, 0))",
        tests=("channels/test_bodies.py::test_every_point_of_the_lattice_lies_in_the_body",),
    ),
    Mutant(
        file="channels/mixes.py",
        old="return int(uniform_below(self.space.size, size=1",
        new="return int(uniform_below(self.space.size - 1, size=1",
        tests=(
            "channels/test_apply_on_every_path.py::test_apply_has_exactly_its_law_at_every_value",
        ),
    ),
    Mutant(
        file="channels/mixes.py",
        old="return Fraction(min(self.prior), sum(self.prior))",
        new="return Fraction(max(self.prior), sum(self.prior))",
        tests=(
            "channels/test_channels_are_pure.py::test_the_accepted_delta_is_as_tight_as_theory_says",
        ),
    ),
    Mutant(
        file="channels/mixes.py",
        old="return odds / (1 + odds)",
        new="return odds / (2 + odds)",
        tests=(
            "channels/test_channels_are_pure.py::test_the_optimal_prior_of_a_profile_is_pure_and_no_weight_is_wasted",
        ),
    ),
    Mutant(
        file="channels/kernels.py",
        old="math.floor(unit + half)",
        new="math.floor(unit)",
        tests=(
            "channels/test_plan_channels.py::test_ties_go_up_and_their_neighbors_where_they_belong",
        ),
    ),
    Mutant(
        file="channels/kernels.py",
        old="rounded_gaussian(variance=self.mixing_variance",
        new="rounded_gaussian(variance=self.step_taken.variance",
        tests=(
            "channels/test_apply_on_every_path.py::test_a_smoothed_step_is_published_as_it_is_or_replaced",
        ),
    ),
    Mutant(
        file="paper/algorithm_01_02.py",
        old="2 * arb_ball(log_one).exp() / arb_ball(extra)",
        new="arb_ball(log_one).exp() / arb_ball(extra)",
        tests=(
            "channels/test_channels_are_pure.py::test_algorithm_one_is_pure_at_theorem_w_s_radius",
        ),
    ),
    Mutant(
        file="paper/algorithm_01_02.py",
        old="bernoulli_exp(1 / (2 * self.scale)",
        new="bernoulli_exp(1 / self.scale",
        tests=(
            "channels/test_apply_on_every_path.py::test_algorithm_two_has_exactly_its_law_at_every_value",
        ),
    ),
    Mutant(
        file="paper/algorithm_01_02.py",
        old="noisy_pair(self.body, value, 1, self.scale, bits)",
        new="noisy_pair(self.body, value, 1, self.scale / 2, bits)",
        tests=(
            "channels/test_apply_on_every_path.py::test_noise_goes_where_algorithm_one_says_at_every_value",
        ),
    ),
    Mutant(
        file="paper/algorithm_01_02.py",
        old="code if code < self.space.size else 0",
        new="code if code < self.space.size else 1",
        tests=(
            "channels/test_apply_on_every_path.py::test_algorithm_two_has_exactly_its_law_at_every_value",
        ),
    ),
    Mutant(
        file="paper/algorithm_01_02.py",
        old="diameter=2 * self.body.radius",
        new="diameter=self.body.radius",
        tests=(
            "channels/test_channels_are_pure.py::test_algorithm_one_is_pure_at_theorem_w_s_radius",
        ),
    ),
    Mutant(
        file="channels/channel.py",
        old="scale=self.scale / self.spacing",
        new="scale=self.scale / (2 * self.spacing)",
        tests=(
            "channels/test_apply_on_every_path.py::test_numerical_noise_surrounds_the_value_cut_to_the_ball",
        ),
    ),
    Mutant(
        file="channels/channel.py",
        old="min(max(x - m, -radius), radius) / self.spacing",
        new="max(x - m, -radius) / self.spacing",
        tests=(
            "channels/test_apply_on_every_path.py::test_numerical_noise_surrounds_the_value_cut_to_the_ball",
        ),
    ),
)
