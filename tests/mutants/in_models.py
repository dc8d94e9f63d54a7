"""Mistakes in how long rows may be: a default that costs rows in a corner their size."""

from __future__ import annotations

from mutants.mutant import Mutant

SKEWED = "estimators/test_skewed_columns.py::"
SCALER = "estimators/test_bounded_scaler.py::"
CHANCES = "estimators/test_probabilities.py::"
SURE = CHANCES + "test_no_draw_of_the_noise_makes_nearest_means_sure_of_wrong_classes"

MUTANTS = (
    Mutant(  # clipped rows lose nothing
        file="regression/encoded_columns.py",
        old="        if norm >= self.corner or not self.numbers:\n",
        new="        if True:\n",
        tests=(
            SKEWED + "test_what_is_kept_is_the_squared_correlation_with_what_rows_differ_in",
            SKEWED + "test_the_forecast_is_that_of_rows_in_a_corner",
        ),
    ),
    Mutant(  # of equal forecasts that of clipped rows
        file="regression/encoded_columns.py",
        old="            (self.corner, self.half_way),",
        new="            (self.half_way, self.corner),",
        tests=(SKEWED + "test_the_choice_is_the_smaller_forecast_for_rows_in_a_corner",),
    ),
    Mutant(  # a forecast without the bias
        file="regression/encoded_columns.py",
        old="        return kept * error + (1 - kept) * blind",
        new="        return error",
        tests=(SKEWED + "test_the_forecast_is_that_of_rows_in_a_corner",),
    ),
    Mutant(  # sums are chosen for rows that fill their bounds
        file="regression/linear.py",
        old="        if self.encoding is not None:  # rows in a corner",
        new="        if self.encoding is None:  # rows in a corner",
        tests=(
            SKEWED + "test_the_forecast_of_a_line_is_that_of_rows_in_a_quarter_of_their_bounds",
        ),
    ),
    Mutant(  # the rows inside are moved, and no others
        file="regression/rows.py",
        old="scaled, scaled) <= float(self.norm) ** 2",
        new="scaled, scaled) >= float(self.norm) ** 2",
        tests=(SKEWED + "test_predictions_clip_rows_as_the_fit_did",),
    ),
    Mutant(  # rows are clipped in the fit alone
        file="regression/features.py",
        old="return features if self.limits is None else self.limits(features)",
        new="return features",
        tests=(SKEWED + "test_predictions_clip_rows_as_the_fit_did",),
    ),
    Mutant(
        file="regression/features.py",
        old="norm = None if float(self.data_norm) >= corner else",
        new="norm = None if float(self.data_norm) > corner else",
        tests=(SKEWED + "test_bounds_beyond_which_no_row_is_longer_clip_values_only",),
    ),
    Mutant(  # columns are not scaled by their bounds
        file="regression/features.py",
        old="        block = self._scaled(block)\n        inside",
        new="        inside",
        tests=(SKEWED + "test_lines_reach_the_optimum",),
    ),
    Mutant(
        file="regression/objective.py",
        old="blind_error=limited(bias(_ALL), most),",
        new="blind_error=limited(bias(0.0), most),",
        tests=(
            SKEWED + "test_the_forecast_of_clipped_rows_holds_in_a_corner",
            SKEWED + "test_rows_are_clipped_only_where_nothing_is_learned_of_whole_ones",
        ),
    ),
    Mutant(
        file="data/arrays.py",
        old="        clipped |= beyond(np.stack(columns, axis=1))",
        new="        clipped &= beyond(np.stack(columns, axis=1))",
        tests=(SKEWED + "test_diagnostics_count_rows_that_are_too_long",),
    ),
    Mutant(  # no bias of projected rows
        file="tasks/second_moments.py",
        old="        lost = variance_kept(1.0) - variance_kept(reach)",
        new="        lost = 0.0",
        tests=(SKEWED + "test_components_are_of_whole_rows_unless_noise_is_worse",),
    ),
    Mutant(
        file="tasks/second_moments.py",
        old="        return np.asarray(squares > float(",
        new="        return np.asarray(squares < float(",
        tests=(SKEWED + "test_diagnostics_count_rows_that_are_too_long",),
    ),
    Mutant(  # projected by default
        file="tasks/covariance.py",
        old="        best = min(found, key=error)",
        new="        best = _HALF",
        tests=(
            SKEWED + "test_components_are_those_of_the_rows",
            SKEWED + "test_components_are_of_whole_rows_unless_noise_is_worse",
        ),
    ),
    Mutant(  # prior probabilities decide in wide bounds
        file="regression/classes.py",
        old="floor = min(_LEAST_VARIANCE, max(",
        new="floor = max(_LEAST_VARIANCE, min(",
        tests=(SKEWED + "test_class_means_are_those_of_the_same_method_without_noise",),
    ),
    Mutant(
        file="sklearn/linear.py",
        old="if min(more / each, _MOST_MORE) >= ",
        new="if min(more / each, _MOST_MORE) < ",
        tests=(SKEWED + "test_few_coefficients_reach_the_best_line",),
    ),
    Mutant(
        file="sklearn/unsupervised.py",
        old="reach(as_radius(1 if self.radius",
        new='reach(as_radius("1/2" if self.radius',
        tests=(SCALER + "test_by_default_the_norm_is_reached_at_a_corner_and_no_row_is_clipped",),
    ),
    Mutant(  # means outside of what rows are inside of
        file="regression/classes.py",
        old="means = np.clip(middle + weight * apart, -1.0, 1.0)",
        new="means = middle + weight * apart",
        tests=(CHANCES + "test_means_are_where_rows_are_however_large_the_noise_was",),
    ),
    Mutant(
        file="regression/classes.py",
        old="return in_ball(means, sums.radius), left",
        new="return means, left",
        tests=(CHANCES + "test_means_are_where_rows_are_however_large_the_noise_was",),
    ),
    Mutant(  # all of the noise is left, although means were moved together
        file="regression/classes.py",
        old="left = float((counts * weight * noise).sum() / sums.total)",
        new="left = float((counts * noise).sum() / sums.total)",
        tests=(CHANCES + "test_the_noise_that_is_left_in_means_is_what_was_not_shrunk_away",),
    ),
    Mutant(  # as if the published means were the means
        file="regression/classes.py",
        old="variances=np.full((1, 1), variance + left),",
        new="variances=np.full((1, 1), variance),",
        tests=(SURE,),
    ),
    Mutant(  # a variance that noise made small is believed
        file="regression/classes.py",
        old="return max(floor, deviation * math.sqrt(_trust(noise)))",
        new="return floor",
        tests=(SURE,),
    ),
)
