"""Read rows, and answer exact integer sums and counts; nothing else may touch rows."""

from zerodelta.data.arrays import ArraySource
from zerodelta.data.schema import Schema, read_schema
from zerodelta.data.source import Source

__all__ = ["ArraySource", "Schema", "Source", "read_schema"]
