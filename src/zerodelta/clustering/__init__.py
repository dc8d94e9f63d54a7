"""Cluster rows by k-means: a public grid, private rounds of Lloyd's algorithm, forecasts."""
