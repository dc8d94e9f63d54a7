"""Mistakes in intervals: too short by a rounding, by a share of a, or by a quantum."""

from __future__ import annotations

from mutants.mutant import Mutant

TAILS, INTERVALS = "exact/test_noise_tails.py::", "privacy/test_intervals.py::"
VERBS, PAIRS = "tasks/test_intervals.py::", "tasks/test_covariance_intervals.py::"

MUTANTS = (
    Mutant(  # P(|z| >= k) for P(|z| > k): longer than needed
        file="exact/noise_tails.py",
        old="(-rate * (math.floor(t) + 1)).exp()",
        new="(-rate * math.floor(t)).exp()",
        tests=(f"{TAILS}test_the_interval_of_discrete_laplace_noise_is_the_smallest_that_covers",),
    ),
    Mutant(  # one side only
        file="exact/noise_tails.py",
        old="return 2 * (-rate *",
        new="return (-rate *",
        tests=(f"{TAILS}test_the_interval_of_discrete_laplace_noise_is_the_smallest_that_covers",),
    ),
    Mutant(  # variances and forecasts of rounded Laplace noise
        file="exact/noise_tails.py",
        old="return product / (2 * math.sinh(half_rate) ** 2)",
        new="return product * math.cosh(half_rate) / (2 * math.sinh(half_rate) ** 2)",
        tests=(
            "mechanisms/test_moments.py::"
            "test_the_variance_and_the_error_of_discrete_laplace_noise_are_exact",
        ),
    ),
    Mutant(  # b ln(1/a), as if noise were not rounded to nearest
        file="exact/noise_tails.py",
        old="return bool(law.tail(k + Fraction(1, 2)) <= ball(a))",
        new="return bool(law.tail(Fraction(k + 1)) <= ball(a))",
        tests=(f"{TAILS}test_the_interval_of_an_integer_is_the_smallest_that_covers",),
    ),
    Mutant(  # longer than needed
        file="exact/noise_tails.py",
        old="return bool(law.tail(k + Fraction(1, 2)) <= ball(a))",
        new="return bool(law.tail(Fraction(k)) <= ball(a))",
        tests=(f"{TAILS}test_the_interval_of_an_integer_is_the_smallest_that_covers",),
    ),
    Mutant(  # of a pair, rounding adds 1 to (1-m)u - (1+m)v
        file="privacy/intervals.py",
        old="return noise.exceeded(coefficients, gap - rounding, a)",
        new="return noise.exceeded(coefficients, gap + rounding, a)",
        tests=(f"{INTERVALS}test_fieller_covers_for_every_noise_that_laplace_pairs_can_have",),
    ),
    Mutant(
        file="exact/noise_tails.py",
        old="(1 + Fraction(1, 1 << 45)) + size / 2",
        new="(1 + Fraction(1, 1 << 45))",
        tests=(
            f"{TAILS}test_forms_of_counts_noise_have_the_laws_that_symmetry_gives_them",
            f"{TAILS}test_two_coordinates_in_a_cube_exceed_what_their_integral_says",
        ),
    ),
    Mutant(  # a for a/2: the box of two means
        file="privacy/intervals.py",
        old="return deviation_ends(self._ratio(forms, 1, a / 2), self._ratio(forms, 2, a / 2))",
        new="return deviation_ends(self._ratio(forms, 1, a), self._ratio(forms, 2, a))",
        tests=(f"{INTERVALS}test_the_box_of_a_deviation_has_half_of_a_for_each_side",),
    ),
    Mutant(
        file="privacy/statistics.py",
        old="return low * low, high * high",
        new="return low, high",
        tests=(f"{INTERVALS}test_deviations_are_covered",),
    ),
    Mutant(  # all of a for each cell
        file="privacy/intervals.py",
        old="each = -math.expm1(math.log(self.level) / lines)",
        new="each = -math.expm1(math.log(self.level))",
        tests=(f"{INTERVALS}test_simultaneous_intervals_are_the_smallest_that_cover_all_cells",),
    ),
    Mutant(
        file="privacy/intervals.py",
        old="m = 1 if self.asked.unit_rows is None else self.asked.unit_rows",
        new="m = 1",
        tests=(f"{INTERVALS}test_a_variance_helps_where_values_are_close_together",),
    ),
    Mutant(  # sampling and noise each with all of a
        file="privacy/intervals.py",
        old="return 3 if any(forms[0][:-1]) else 2",
        new="return 1",
        tests=(f"{INTERVALS}test_a_variance_helps_where_values_are_close_together",),
    ),
    Mutant(
        file="privacy/intervals.py",
        old="return np.maximum(low - moved, -1), np.minimum(high + moved, 1)",
        new="return np.maximum(low, -1), np.minimum(high, 1)",
        tests=(f"{INTERVALS}test_quantizing_is_added",),
    ),
    Mutant(
        file="privacy/intervals.py",
        old="known = under > 0",
        new="known = under != 0",
        tests=(f"{INTERVALS}test_a_group_without_a_positive_count_may_have_any_mean",),
    ),
    Mutant(  # the last of complete counts as if it were not a sum of rounded ones
        file="exact/noise_tails.py",
        old="return math.floor(self.integer_radius(a) + Fraction(1, 2) + Fraction(free, 2))",
        new="return self.integer_radius(a)",
        tests=(f"{TAILS}test_what_complete_counts_leave_is_covered",),
    ),
    Mutant(
        file="privacy/shown_release.py",
        old="<{tag}>{html.escape(printable(c))}</{tag}>",
        new="<{tag}>{printable(c)}</{tag}>",
        tests=(f"{VERBS}test_pages_escape_what_is_anyones_text",),
    ),
    Mutant(  # a quantile is a label of its group
        file="privacy/interval_shapes.py",
        old="""if f"{name}_error" in columns or f"{name}{_RANKS}" in columns""",
        new="""if f"{name}_error" in columns""",
        tests=(f"{VERBS}test_quantiles_are_ranges_beside_their_mean_and_never_labels",),
    ),
    Mutant(  # a quarter of an interval is about the standard error
        file="privacy/shown_release.py",
        old="digits = 1 - math.floor(math.log10(error))",
        new="digits = -1 - math.floor(math.log10(error))",
        tests=(f"{VERBS}test_a_page_shows_the_digits_that_the_error_leaves",),
    ),
    Mutant(  # each mean of a pair with as much of a as if it were alone
        file="privacy/intervals.py",
        old="3: tuple(Fraction(part, 10) for part in (1, 1, 8)),",
        new="3: tuple(Fraction(part, 10) for part in (10, 10, 10)),",
        tests=(f"{PAIRS}test_a_covariance_has_its_shares_of_a",),
    ),
    Mutant(  # the smallest product of means for the largest
        file="privacy/intervals.py",
        old="low = product[0] - np.maximum.reduce(corners) - slack",
        new="low = product[0] - np.minimum.reduce(corners) - slack",
        tests=(f"{PAIRS}test_a_covariance_has_its_shares_of_a",),
    ),
    Mutant(  # the largest deviations for the smallest
        file="privacy/intervals.py",
        old="low = low / np.where(low < 0, least, most)",
        new="low = low / np.where(low < 0, most, most)",
        tests=(f"{PAIRS}test_the_least_deviations_make_the_widest_correlation",),
    ),
)
