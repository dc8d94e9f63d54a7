"""Spend ε at most once: accounts in a file or a database, safe among many processes.

An entry is written, durably, before a row is read (`spine/run.py`). Entries are never changed, and
each holds the hash of the one before; what is spent and what remains follows from them
(`balances.py`). `Ledger` is all that users meet.
"""
