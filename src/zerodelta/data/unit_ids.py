"""What the ids of units are compared by, whatever the physical type of their column.

Ids are read like categories; whole numbers are compared as such and other ids by their BLAKE2b hash
of 128 bits, so a unit is what has one such hash. Rows without an id together are one unit.
"""

from __future__ import annotations

import hashlib
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from zerodelta.data import cells as one_cell
from zerodelta.data.arrow_cells import read_column
from zerodelta.data.columns import as_objects
from zerodelta.exact.arrays import Array

Words: TypeAlias = npt.NDArray[np.uint64]

RULE = "zerodelta units 1"
"""The name of the rule by which rows are kept, and its version: another hash would keep others."""

ID = np.dtype([("high", np.uint64), ("low", np.uint64)])
WORDS = np.frombuffer(hashlib.blake2b(RULE.encode(), digest_size=32).digest(), dtype="<u8").astype(
    np.uint64
)
_MISSING, _FIRST, _SECOND, _ = WORDS
_NO_ID = np.array([(_MISSING, _FIRST)], dtype=ID)

_FEW = 64
"""Fewer cells are read one by one."""
_TEXTS = {id(str), id(type(None))}
_INTEGER = r"^-?[0-9]{1,18}\z"
_NAME = r"^[!-~]*[A-DF-Za-df-z_#@:/|][!-~]*\z"
"""A text that is no number; one of more than five letters, or with a digit, is no other word."""
_WHOLE = {2: 1 << 11, 4: 1 << 24, 8: 1 << 53}
"""Below this floats of so many bytes hold whole numbers that are their own shortest decimals."""


def unit_ids(column: Any) -> Array:
    """Return what the ids of a column are compared by, whatever its physical type.

    >>> alike = unit_ids(np.array([7, 7.0, "07", b"7"], dtype=object)), unit_ids(np.array([7] * 4))
    >>> bool((alike[0] == alike[1]).all())
    True
    """
    return read_column(column, _ids, _text_ids)


def _text_ids(texts: Any) -> Array:
    """Return the ids of an Arrow array of texts: whole numbers at once, names hashed as they are.

    What may be another number, a boolean or missing is read as a category, one distinct text after
    the other.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    encoded = texts.cast(pa.large_binary()).dictionary_encode()
    distinct = encoded.dictionary
    whole = pc.match_substring_regex(distinct, _INTEGER)
    named = pc.match_substring_regex(distinct, _NAME)
    longer = pc.greater(pc.binary_length(distinct), len("false"))
    named = pc.and_(named, pc.or_(longer, pc.match_substring_regex(distinct, "[0-9]")))
    rest = pc.invert(pc.or_(whole, named))
    found = np.empty(len(distinct) + 1, dtype=ID)
    found[-1] = _NO_ID[0]
    places = [each.to_numpy(zero_copy_only=False).nonzero()[0] for each in (whole, named, rest)]
    spelled = distinct.filter(whole).cast(pa.large_string()).cast(pa.int64())
    found[places[0]] = _whole_ids(spelled.to_numpy())
    found[places[1]] = _hashed(distinct.filter(named).to_pylist())
    found[places[2]] = _one_by_one(as_objects(distinct.filter(rest).to_pylist()))
    chosen: Array = found[encoded.indices.fill_null(len(distinct)).to_numpy()]
    return chosen


def _hashed(texts: list[bytes]) -> Array:
    """Return the ids of names."""
    begun, digests = hashlib.blake2b(digest_size=16, key=RULE.encode()), []
    for text in texts:
        each = begun.copy()
        each.update(text)
        digests.append(each.digest())
    return np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64).view(ID)


def _ids(cells: Array) -> Array:
    kind, size = cells.dtype.kind, cells.dtype.itemsize
    if kind in "mMV":
        return np.repeat(_NO_ID, len(cells))
    if kind in "bi":
        return _whole_ids(cells.astype(np.int64))
    if kind == "u" or (kind == "f" and size <= 8):
        limit = _WHOLE[size] if kind == "f" else 1 << 63
        with np.errstate(invalid="ignore"):
            plain = (cells < limit) & (cells > -limit) if kind == "f" else cells < np.uint64(limit)
            plain &= cells == np.floor(cells) if kind == "f" else True
        found = _whole_ids(np.where(plain, cells, 0).astype(np.int64))
        found[~plain] = _ids(as_objects(list(cells[~plain]))) if not plain.all() else _NO_ID[0]
        return found
    objects = as_objects(list(cells)) if kind in "fc" else cells
    texts = _as_texts(objects)
    return _one_by_one(objects) if texts is None else _text_ids(texts)


def _as_texts(cells: Array) -> Any:
    """Return an array of nothing but texts and None as one of Arrow's; None for any other."""
    listed = cells.tolist()
    # by identity: a type may have a comparison or a hash of its own
    if len(listed) < _FEW or not _TEXTS.issuperset(map(id, map(type, listed))):
        return None
    try:
        import pyarrow as pa

        return pa.array(listed, pa.large_string())
    except Exception:  # not there, or a text that is no valid UTF-8; the message would hold it
        return None


def _one_by_one(cells: Array) -> Array:
    distinct: dict[one_cell.Key, int] = {}

    def place(cell: Any) -> int:
        return distinct.setdefault(one_cell.category(cell), len(distinct))

    places = one_cell.read_all(cells, place)
    return _key_ids(list(distinct))[places]


def _whole_ids(whole: npt.NDArray[np.int64]) -> Array:
    found = np.empty(len(whole), dtype=ID)
    found["low"] = whole.view(np.uint64)
    found["high"] = mixed(found["low"] ^ _SECOND)
    return found


def _key_ids(keys: list[one_cell.Key]) -> Array:
    whole = [type(key) is int and -(1 << 63) <= key < 1 << 63 for key in keys]
    none = [key is None or type(key) is tuple for key in keys]
    texts = (str(key) if not (w or n) else "" for key, w, n in zip(keys, whole, none, strict=True))
    hashes = b"".join(text_hash(text, 16) for text in texts)
    found = np.frombuffer(hashes, dtype="<u8").astype(np.uint64).view(ID)
    found[none] = _NO_ID[0]
    numbers = [key for key, is_whole in zip(keys, whole, strict=True) if is_whole]
    found[whole] = _whole_ids(np.array(numbers, dtype=np.int64))
    return found


def text_hash(text: str, size: int) -> bytes:
    """Return the BLAKE2b hash of a text's UTF-8, under the rule's name."""
    data = text.encode("utf-8", "surrogatepass")
    return hashlib.blake2b(data, digest_size=size, key=RULE.encode()).digest()


def mixed(words: Words) -> Words:
    """Return words that any bit of the old ones changes (the finalizer of splitmix64, one-to-one).

    Small whole numbers differ in a few high bits as floats: without it rows would collide.
    """
    words = words + np.uint64(0x9E3779B97F4A7C15)
    other = words >> np.uint64(30)
    other ^= words
    other *= np.uint64(0xBF58476D1CE4E5B9)
    np.right_shift(other, np.uint64(27), out=words)
    words ^= other
    words *= np.uint64(0x94D049BB133111EB)
    np.right_shift(words, np.uint64(31), out=other)
    other ^= words
    mixed: Words = other
    return mixed
