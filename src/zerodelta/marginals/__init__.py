"""Tables of categorical columns: workloads, strategies, synthetic rows."""
