"""Tests of saved releases."""
