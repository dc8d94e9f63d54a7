"""Rows in, exact integer sums and counts out; nothing else may touch rows."""
