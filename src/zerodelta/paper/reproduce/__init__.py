"""The paper's figures and tables, measured with this package (`zerodelta reproduce`).

One file for each picture or table; `run.reproduce` makes them all.
"""
