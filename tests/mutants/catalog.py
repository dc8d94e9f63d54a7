"""All mutants, by the part of the library they are in."""

from __future__ import annotations

from mutants import (
    in_attacks,
    in_audit,
    in_channels,
    in_exact,
    in_intervals,
    in_keys,
    in_ledger,
    in_mechanisms,
    in_paper,
    in_privacy,
    in_quantiles,
    in_readers,
    in_records,
    in_report,
    in_spark,
    in_study,
    in_tables,
    in_tasks,
    in_theorems,
    in_units,
)

MUTANTS = (
    *in_exact.MUTANTS,
    *in_theorems.MUTANTS,
    *in_privacy.MUTANTS,
    *in_channels.MUTANTS,
    *in_mechanisms.MUTANTS,
    *in_keys.MUTANTS,
    *in_readers.MUTANTS,
    *in_spark.MUTANTS,
    *in_study.MUTANTS,
    *in_tasks.MUTANTS,
    *in_tables.MUTANTS,
    *in_paper.MUTANTS,
    *in_units.MUTANTS,
    *in_quantiles.MUTANTS,
    *in_ledger.MUTANTS,
    *in_records.MUTANTS,
    *in_report.MUTANTS,
    *in_intervals.MUTANTS,
    *in_audit.MUTANTS,
    *in_attacks.MUTANTS,
)
