"""Many internal noisy queries, one small pure release."""
