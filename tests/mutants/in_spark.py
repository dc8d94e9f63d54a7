"""Mistakes on a cluster: rows of units that stay, sums that wrap, workers that tell."""

from __future__ import annotations

from mutants.mutant import Mutant

ALIKE = "data/test_spark.py::test_any_partitions_and_batches_give_the_integers_of_one_table"
CROWDED = "data/test_spark.py::test_of_crowded_units_the_same_rows_are_kept"
PIECES = "data/test_spark.py::test_a_partition_yields_its_sums_in_pieces"
WIDE = "data/test_spark.py::test_sums_beyond_64_bits_are_exact"

MUTANTS = (
    Mutant(
        file="data/spark_rows.py",
        old="rank <= {unit.max_rows}",
        new="rank <= {unit.max_rows + 1}",
        tests=(CROWDED,),
    ),
    Mutant(
        file="data/spark_rows.py",
        old='by = f"first, second, {contents}"',
        new='by = f"second, first, {contents}"',
        tests=(CROWDED,),
    ),
    Mutant(
        file="data/spark_workers.py",
        old="(copies.to_numpy() - 1)",
        new="copies.to_numpy()",
        tests=(CROWDED,),
    ),
    Mutant(
        file="data/spark_workers.py",
        old="words = () if hashes is None else [(each ^ _SIGN)",
        new="words = () if hashes is None else [each",
        tests=(CROWDED,),
    ),
    Mutant(
        file="data/spark_workers.py",
        old="    if held:\n        yield np.concatenate(held)",
        new="    if False:\n        yield np.concatenate(held)",
        tests=(ALIKE,),
    ),
    Mutant(
        file="data/spark_workers.py",
        old="np.add.at(total, keys, 1)",
        new="total[keys] = 1",
        tests=(ALIKE, CROWDED),
    ),
    Mutant(
        file="mechanisms/near_ranks.py",
        old="cell = (snap(block) - first) >> shift",
        new="cell = snap(block) >> shift",
        tests=("data/test_spark.py::test_crowded_cells_are_counted_by_the_workers",),
    ),
    Mutant(
        file="data/spark_workers.py",
        old='piece["place"] * _PIECE',
        new="0 * _PIECE",
        tests=(PIECES,),
    ),
    Mutant(
        file="data/spark_workers.py",
        old='raise RuntimeError("a partition could not be read to its end")',
        new="return",
        tests=("data/test_spark.py::test_a_worker_shows_nothing_of_what_it_was_told",),
    ),
    Mutant(
        file="data/spark_reader.py",
        old="return _named, (self._names, self._types)",
        new="return _named, (self._frame.collect(), self._types)",
        tests=("data/test_spark.py::test_what_a_worker_gets_has_no_rows",),
    ),
    Mutant(
        file="data/spark_reader.py",
        old="if found != {ours}:",
        new="if not found:",
        tests=("data/test_spark.py::test_streams_and_clusters_without_the_library_are_refused",),
    ),
    Mutant(
        file="exact/exact_sums.py",
        old="or most > INT64_MOST",
        new="or False",
        tests=(WIDE,),
    ),
)
