"""Odd cells that files, frames and arrays can hold, and whole lines of a CSV file."""

from __future__ import annotations

import math
from typing import Any

from data.odd_cells import ODD

TEXTS: tuple[Any, ...] = (
    *(cell for cell in ODD.values() if type(cell) is str),
    *(None, "NaN", "-inf", "1e308", "-1e308", "1e999", "9" * 400, "0", "-0", "1e-400", "120.00001"),
    *("'", '"', '""', '"1', '1"', "1,2", "a;b", "\t", "\\", "\\N", "NULL", "#REF!", "=1+1", "\x00"),
    *("a\nb", "\r\n", "é", "Ünïcödé", "\ufeff1", "𝟙", "\u2028", "x" * 3000, "2020-02-30", "true"),
    *("2020-06-01", "2020-06-01T10:00", "1999-12-31", "1e5", "+7", "7.", ".5", "oslo", " oslo"),
)
FLOATS: tuple[Any, ...] = (
    *(None, math.nan, math.inf, -math.inf, 1e308, -1e308, 5e-324, -0.0, 120.0, 121.0, 1e300, 2**60),
)
BYTES: tuple[bytes, ...] = (
    *(b"", b"\xff", b"\xff\xfe1\x00", b"\x00", b"\xc3\x28", b"\xed\xa0\x80", b"1,2", b'"', b"'"),
    *("é".encode("latin-1"), "é".encode("utf-16"), b"1e999", b"-1e308", b"nan", b"NULL", b"7"),
)
LINES: tuple[bytes, ...] = (
    *(b"", b",", b",,,,,,,", b",,,,,,,,,,,,,,,,", b'"', b'"ann,1,2', b'ann,"1"x",2', b"\xff\xfe"),
    *(b"\x00" * 40, b"ann,\xff,\xc3\x28,1,\xe9,oslo,\xff,2020", b"ann,1", b"ann\t1\t2", b";;;;"),
    *(b"ann,1e999,-1e999,nan,oslo,3,true,2020-01-05", b"ann,1,2,3,oslo\r\r", b"\r", b"#", b"--"),
    *(b"who,age,income,height,city,town,member,day", b"x" * (1 << 21), b"a," * (1 << 20)),
    *(b'ann,"1,5","","""","a""b",3,yes,"2020-01-05"', b"\xef\xbb\xbf1,2", b"ann,,,,,,,", b"'1',2"),
)
OBJECTS: tuple[Any, ...] = (*ODD.values(), *TEXTS[-40:], *BYTES)
