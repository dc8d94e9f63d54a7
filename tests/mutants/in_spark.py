"""Mistakes on a cluster: rows of units that stay, sums that wrap, workers that tell."""

from __future__ import annotations

from mutants.mutant import Mutant

ALIKE = "data/test_spark.py::test_any_partitions_and_batches_give_the_integers_of_one_table"
CROWDED = "data/test_spark.py::test_of_crowded_units_the_same_rows_are_kept"
PIECES = "data/test_spark.py::test_a_partition_yields_its_sums_in_pieces"
WIDE = "data/test_spark.py::test_sums_beyond_64_bits_are_exact"

_RUNS = "mechanisms/test_cluster_runs.py::test_"
_BORDERS = f"{_RUNS}borders_are_those_of_all_rows_in_order"
_COUNTED = f"{_RUNS}there_are_as_many_rows_as_were_counted_whatever_the_source_does"
_CROWDED = f"{_RUNS}a_crowded_point_is_counted_and_not_fetched"
_TOO_LARGE = (
    "data/test_spark.py::test_what_is_too_large_for_the_driver_is_refused_before_it_is_paid_for"
)

MUTANTS = (
    Mutant(  # a row beyond the last one that is asked for is not found
        file="mechanisms/runs.py",
        old="        np.add.at(begun, high + 1, -1)",
        new="        np.add.at(begun, high, -1)",
        tests=(_BORDERS,),
    ),
    Mutant(  # the last point of a cell is lost
        file="mechanisms/runs.py",
        old="(distance >= 0) & (distance < widths[at])",
        new="(distance >= 0) & (distance < widths[at] - 1)",
        tests=(_BORDERS,),
    ),
    Mutant(  # a place is drawn again
        file="mechanisms/runs.py",
        old="point not in self._placed for point",
        new="True for point",
        tests=(_BORDERS,),
    ),
    Mutant(  # rows that are not found again are no rows any more
        file="mechanisms/runs.py",
        old="lost = cells[sums != self._counts[cells]]",
        new="lost = cells[:0]",
        tests=(_COUNTED,),
    ),
    Mutant(  # more cells than fit are counted
        file="mechanisms/runs.py",
        old="bits = max(1, (_CELLS // len(cells)).bit_length() - 1)",
        new="bits = max(1, (_CELLS // len(cells)).bit_length() + 1)",
        tests=(_CROWDED,),
    ),
    Mutant(  # rows of a group travel
        file="mechanisms/runs.py",
        old="        if not self.rows.adds_here:\n            line",
        new="        if False:\n            line",
        tests=("data/test_spark.py::test_quantiles_leave_the_rows_where_they_are",),
    ),
    Mutant(
        file="spine/plan.py",
        old="self.planned_rows * self.width > MOST_HERE",
        new="self.planned_rows > MOST_HERE",
        tests=(_TOO_LARGE,),
    ),
    Mutant(
        file="data/spark.py",
        old="rank <= {unit.max_rows}",
        new="rank <= {unit.max_rows + 1}",
        tests=(CROWDED,),
    ),
    Mutant(
        file="data/spark.py",
        old='by = f"first, second, {contents}"',
        new='by = f"second, first, {contents}"',
        tests=(CROWDED,),
    ),
    Mutant(
        file="data/spark.py",
        old="(copies.to_numpy() - 1)",
        new="copies.to_numpy()",
        tests=(CROWDED,),
    ),
    Mutant(
        file="data/spark.py",
        old="words = () if hashes is None else [(each ^ _SIGN)",
        new="words = () if hashes is None else [each",
        tests=(CROWDED,),
    ),
    Mutant(
        file="data/spark.py",
        old="    if held:\n        yield np.concatenate(held)",
        new="    if False:\n        yield np.concatenate(held)",
        tests=(ALIKE,),
    ),
    Mutant(
        file="data/spark.py",
        old="np.add.at(total, keys, 1)",
        new="total[keys] = 1",
        tests=(ALIKE, CROWDED),
    ),
    Mutant(
        file="mechanisms/ranks.py",
        old="cell = (snap(block) - first) >> shift",
        new="cell = snap(block) >> shift",
        tests=("data/test_spark.py::test_crowded_cells_are_counted_by_the_workers",),
    ),
    Mutant(
        file="data/spark.py",
        old='piece["place"] * _PIECE',
        new="0 * _PIECE",
        tests=(PIECES,),
    ),
    Mutant(
        file="data/spark.py",
        old='raise RuntimeError("a partition could not be read to its end")',
        new="return",
        tests=("data/test_spark.py::test_a_worker_shows_nothing_of_what_it_was_told",),
    ),
    Mutant(
        file="data/spark.py",
        old="return _named, (self._names, self._types)",
        new="return _named, (self._frame.collect(), self._types)",
        tests=("data/test_spark.py::test_what_a_worker_gets_has_no_rows",),
    ),
    Mutant(
        file="data/spark.py",
        old="if found != {ours}:",
        new="if not found:",
        tests=("data/test_spark.py::test_streams_and_clusters_without_the_library_are_refused",),
    ),
    Mutant(
        file="exact/sums.py",
        old="or most > INT64_MOST",
        new="or False",
        tests=(WIDE,),
    ),
)
