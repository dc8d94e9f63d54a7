"""Ask many internal noisy queries, and publish one small pure result."""
