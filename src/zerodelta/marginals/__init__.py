"""Release tables of categorical columns: workloads, strategies, synthetic rows."""
