"""Mistakes in the paper's algorithms: a ball too small, a share of ε counted twice."""

from __future__ import annotations

from mutants.mutant import Mutant

MUTANTS = (
    Mutant(
        file="paper/convex_sets.py",
        old="power = Fraction(1, p) - 1 / self.norm",
        new="power = (Fraction(1, p) - 1 / self.norm) / 2",
        tests=(
            "paper/test_lq_balls.py::test_the_ball_around_holds_every_point_and_no_smaller_one_does",
        ),
    ),
    Mutant(
        file="paper/convex_sets.py",
        old="ball(self.diameter / self.inner_radius).log()",
        new="ball(slack * self.diameter / self.inner_radius / 2).log()",
        tests=("paper/test_convex_sets.py::test_on_a_ball_it_is_theorem_w",),
    ),
    Mutant(
        file="paper/convex_sets.py",
        old="2 * ball(log_one).exp() / ball(extra)",
        new="ball(log_one).exp() / ball(extra)",
        tests=(
            "paper/test_convex_sets.py::test_the_noise_is_twice_the_l1_radius_over_what_is_left_of_epsilon",
        ),
    ),
    Mutant(
        file="privacy/parameters.py",
        old="return base, total - base",
        new="return base, total",
        tests=("privacy/test_parameters.py::test_the_shares_of_epsilon_add_up_exactly",),
    ),
    Mutant(
        file="paper/appendices.py",
        old="if not channel.proves(total, ApproxDP(base, log_of)):",
        new="if False:",
        tests=(
            "paper/test_appendices.py::test_mixing_is_pure_at_what_it_claims_and_cannot_claim_less",
        ),
    ),
)
