"""Provide one function for each thing that a user wants to publish; pick the best method."""
