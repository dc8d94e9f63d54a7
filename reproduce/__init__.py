"""The paper's figures and tables, measured with this package (`make reproduce`).

One file for each picture or table; `run.reproduce` makes them all.
"""
