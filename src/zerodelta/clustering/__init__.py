"""k-means: a public grid, private rounds of Lloyd's algorithm, and forecasts."""
