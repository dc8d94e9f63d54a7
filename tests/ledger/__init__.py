"""Spending at most once."""
