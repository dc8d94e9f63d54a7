"""Mistakes in draws that happen once in 2^64, and in what floats are said to be off by."""

from __future__ import annotations

from mutants.mutant import Mutant

MUTANTS = (
    Mutant(  # a word that is rejected is drawn again below another limit
        file="exact/integers.py",
        old="again = limit[torn] if isinstance(limit, np.ndarray) else limit",
        new="again = limit[: len(torn)] if isinstance(limit, np.ndarray) else limit",
        tests=(
            "exact/test_integers.py::test_a_word_that_is_rejected_is_drawn_again_below_its_own_limit",
        ),
    ),
    Mutant(
        file="exact/integers.py",
        old="ends = borders[np.diff(borders, prepend=0) > 1]",
        new="ends = borders[np.diff(borders, prepend=0) > 2]",
        tests=(
            "exact/test_integers.py::test_two_keys_that_tie_are_ordered_at_random_and_others_stay",
        ),
    ),
    Mutant(
        file="exact/integers.py",
        old="digits = scaled.floor().unique_fmpz()",
        new="digits = scaled.mid().floor().unique_fmpz()",
        tests=("exact/test_integers.py::test_a_coin_that_is_nearly_certain_is_no_other",),
    ),
    Mutant(  # NumPy makes floats of integers on both sides of 2^63
        file="exact/integers.py",
        old=(
            "if all(-(2**63) <= value < 2**63 for value in whole):\n"
            "        return np.array(whole, dtype=np.int64)\n"
            "    return _objects(whole)"
        ),
        new="return np.array(whole)",
        tests=("exact/test_integers.py::test_integers_on_both_sides_of_2_to_63_are_not_rounded",),
    ),
    Mutant(
        file="exact/bits.py",
        old="if any(not -(2**63) <= integer < 2**63 for integer in integers):",
        new="if any(not -(2**64) <= integer < 2**64 for integer in integers):",
        tests=("exact/test_lazy.py::test_draws_between_2_to_63_and_2_to_64_are_python_integers",),
    ),
    Mutant(
        file="exact/bits.py",
        old="self._prefixes.append(bits.integer(self.width))",
        new="self._prefixes.append(bits.integer(64))",
        tests=("exact/test_lazy.py::test_a_string_that_is_added_is_as_long_as_the_others",),
    ),
    Mutant(  # what is unknown counts as beaten
        file="exact/argmax.py",
        old="kept = ~(upper < floor)",
        new="kept = upper > floor",
        tests=(
            "exact/test_argmax.py::test_noise_that_floats_cannot_bound_still_wins",
            "exact/test_argmax.py::test_gaps_beyond_floats_are_those_that_were_meant",
        ),
    ),
    Mutant(
        file="exact/argmax.py",
        old="if not upper_end < floor[row, 0]:",
        new="if upper_end >= floor[row, 0]:",
        tests=(
            "exact/test_argmax.py::test_noise_that_floats_cannot_bound_still_wins",
            "exact/test_argmax.py::test_gaps_beyond_floats_are_those_that_were_meant",
        ),
    ),
    Mutant(
        file="exact/argmax.py",
        old="if first > second or first < second:",
        new="if True:",
        tests=(
            "exact/test_argmax.py::test_two_noises_that_begin_alike_are_compared_by_what_follows",
        ),
    ),
    Mutant(
        file="exact/argmax.py",
        old="for i in range(1, self._count + 1):",
        new="for i in range(1, self._count):",
        tests=("exact/test_argmax.py::test_each_of_the_few_that_are_only_bounded_may_win",),
    ),
    Mutant(
        file="exact/argmax.py",
        old="left = [Fraction(self._count - j) for j in range(i)]",
        new="left = [Fraction(self._count) for j in range(i)]",
        tests=("exact/test_argmax.py::test_each_of_the_few_that_are_only_bounded_may_win",),
    ),
    Mutant(
        file="exact/argmax.py",
        old=("    for other in sorted(taken):\n        place += place >= other"),
        new=("    for other in sorted(taken):\n        place += place > other"),
        tests=("exact/test_argmax.py::test_each_of_the_few_that_are_only_bounded_may_win",),
    ),
    Mutant(
        file="exact/argmax.py",
        old="float(gap) if gap < 2**1000 else math.nan",
        new="float(min(gap, 2**1000))",
        tests=("exact/test_argmax.py::test_gaps_beyond_floats_are_those_that_were_meant",),
    ),
    Mutant(
        file="exact/float_balls.py",
        old="spread = radius + size * (depth * _U)",
        new="spread = radius",
        tests=(
            "exact/test_float_balls.py::test_a_sum_of_exact_numbers_is_off_by_its_own_roundings",
        ),
    ),
    Mutant(
        file="exact/float_balls.py",
        old="(error + spread + length * _U) * _GROW",
        new="(error + spread) * _GROW",
        tests=("exact/test_float_balls.py::test_a_product_near_one_is_off_by_its_own_roundings",),
    ),
    Mutant(  # on the sphere, not in the ball
        file="exact/noise.py",
        old="return signed / (abs(signed).total() - uniforms[2 * dimension :].log())",
        new="return signed / abs(signed).total()",
        tests=(
            "exact/test_k_norm.py::test_a_uniform_point_of_a_ball_has_its_radius_and_its_signs",
        ),
    ),
    Mutant(  # Python rounds the rest to nearest
        file="exact/logs.py",
        old="excess = max(mantissa.bit_length() - 53, -1074 - exponent)",
        new="excess = max(mantissa.bit_length() - 54, -1074 - exponent)",
        tests=("exact/test_arb.py::test_integers_of_a_few_bits_too_many_are_rounded_outwards",),
    ),
)
