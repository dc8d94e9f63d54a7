"""Internal answers compute like numbers and arrays, and show nothing of themselves."""

from __future__ import annotations

import copy
import io
import logging
import math
import pickle
import pprint
import re
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zerodelta.data.isolation import INTERNAL, Internal, as_internal, internal_array, reveal

NUMBER, ARRAY, MATRIX = 2.25, np.array([1.5, -2.5, 3.5]), np.array([[2.0, 0.5], [0.5, 1.0]])
SECRETS = ("2.25", "2.2", "1.5", "2.5", "3.5", "e+00")


def shows_nothing(text: str) -> bool:
    return INTERNAL in text and not any(secret in text for secret in SECRETS)


SHOWN: dict[str, Callable[[Any], str]] = {
    "repr": repr,
    "str": str,
    "ascii": ascii,
    "format": format,
    "f-string": lambda x: f"{x} {x!r} {x!s} {x:>30}",
    "f-string with digits": lambda x: f"{x:.3f} {x:10.2e} {x:g}",
    "str.format": "{0} {0:.2f}".format,
    "%s": lambda x: "%s %r" % (x, x),  # noqa: UP031
    "list": lambda x: str([x, (x, {"a": x})]),
    "pprint": lambda x: pprint.pformat({"deep": [x]}),
    "html": lambda x: x._repr_html_(),
    "array2string": np.array2string,
    "array_repr": np.array_repr,
    "array_str": np.array_str,
    "in a message": lambda x: str(ValueError("no", x)),
    "pickled": lambda x: str(pickle.loads(pickle.dumps(x))),
    "dumps": lambda x: x.dumps().decode(),
    "tobytes": lambda x: x.tobytes().decode(),
    "nested list": lambda x: str(x.tolist()),
}


@pytest.mark.parametrize("value", [NUMBER, ARRAY, MATRIX], ids=["number", "array", "matrix"])
@pytest.mark.parametrize("way", SHOWN)
def test_nothing_is_shown(way: str, value: Any) -> None:
    assert shows_nothing(SHOWN[way](as_internal(value)))


def test_the_test_sees_what_is_shown() -> None:
    """The same ways show a plain array."""
    for way in ("repr", "str", "list", "array2string", "pickled"):
        assert not shows_nothing(SHOWN[way](ARRAY))


def test_logging_and_printing_show_nothing(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    with caplog.at_level(logging.INFO):
        logging.getLogger("zerodelta").info(
            "answers %s %r", as_internal(NUMBER), [as_internal(ARRAY)]
        )
    print(as_internal(NUMBER), [as_internal(ARRAY)], {"a": as_internal(MATRIX)})
    assert shows_nothing(caplog.text)
    assert shows_nothing(capsys.readouterr().out)


def test_a_traceback_shows_nothing() -> None:
    try:
        raise RuntimeError(f"stopped at {as_internal(NUMBER):.3f}", as_internal(ARRAY))
    except RuntimeError:
        assert shows_nothing(traceback.format_exc().split("RuntimeError: ")[-1])


@pytest.mark.parametrize("write", [np.save, np.savez, np.savez_compressed, np.savetxt])
def test_files_get_nothing(write: Any) -> None:
    file = io.BytesIO()
    write(file, as_internal(ARRAY))
    as_internal(ARRAY).dump(file)
    as_internal(ARRAY).tofile(file)
    assert file.getvalue() == b""


REDUCTIONS = ["all", "any", "argmax", "argmin", "max", "mean", "min", "prod", "std", "sum", "var"]
COMPUTED: dict[str, Callable[[Any, Any, Any], Any]] = (
    {
        "plus": lambda x, a, m: x + 1,
        "plus on the other side": lambda x, a, m: 1 + x,
        "two internal": lambda x, a, m: x * a - m[0, 0],
        "with a plain array": lambda x, a, m: np.ones(3) * x,
        "with a plain number": lambda x, a, m: np.float64(2) * x,
        "power": lambda x, a, m: x**2 // 1 % 3,
        "negative": lambda x, a, m: -abs(x),
        "divmod": lambda x, a, m: divmod(x, 1),
        "round": lambda x, a, m: round(x, 1),
        "round to an integer": lambda x, a, m: round(x),
        "compared": lambda x, a, m: a > x,
        "indexed": lambda x, a, m: a[1],
        "sliced": lambda x, a, m: a[1:],
        "masked": lambda x, a, m: a[a > 0],
        "indexed by itself": lambda x, a, m: a[np.argmax(a)],
        "iterated": lambda x, a, m: list(a),
        "unpacked": lambda x, a, m: (*a,),
        "built-in sum": lambda x, a, m: sum(a),
        "built-in max": lambda x, a, m: max(a),
        "transposed": lambda x, a, m: m.T,
        "reshaped": lambda x, a, m: m.reshape(-1),
        "matrix product": lambda x, a, m: m @ m,
        "inner product": lambda x, a, m: a @ a,
        "dot": lambda x, a, m: a.dot(a),
        "trace": lambda x, a, m: m.trace(),
        "take": lambda x, a, m: a.take(1),
        "searchsorted": lambda x, a, m: np.sort(a).searchsorted(0),
        "nonzero": lambda x, a, m: (a > 0).nonzero(),
        "solve": lambda x, a, m: np.linalg.solve(m, np.ones(2)),
        "norm": lambda x, a, m: np.linalg.norm(a),
        "eigenvalues": lambda x, a, m: np.linalg.eigh(m).eigenvalues,
        "eigenvectors": lambda x, a, m: np.abs(np.linalg.eigh(m)[1]),
        "singular values": lambda x, a, m: np.linalg.svd(m)[1],
        "qr": lambda x, a, m: np.linalg.qr(m).R,
        "fft": lambda x, a, m: np.fft.fft(a),
        "where": lambda x, a, m: np.where(a > 0, a, 0),
        "sorted": lambda x, a, m: np.sort(a),
        "argsort": lambda x, a, m: a.argsort(),
        "argpartition": lambda x, a, m: np.argpartition(a, 1),
        "cumulated": lambda x, a, m: a.cumsum(),
        "clipped": lambda x, a, m: np.clip(a, -1, 1),
        "stacked": lambda x, a, m: np.stack([a, a]),
        "joined": lambda x, a, m: np.concatenate([a, [1.0]]),
        "einsum": lambda x, a, m: np.einsum("ij,ji->", m, m),
        "interpolated": lambda x, a, m: np.interp(x, [0, 5], [0, 1]),
        "median": lambda x, a, m: np.median(a),
        "quantile": lambda x, a, m: np.quantile(a, 0.25),
        "exp": lambda x, a, m: np.exp(a),
        "outer": lambda x, a, m: np.outer(a, a),
        "reduced": lambda x, a, m: np.add.reduce(a),
        "close": lambda x, a, m: np.allclose(a, a),
        "rounded": lambda x, a, m: a.round(1),
        "one number rounded": lambda x, a, m: np.asanyarray(x).round(),
        "flat": lambda x, a, m: list(m.flat),
        "flat, indexed": lambda x, a, m: m.flat[1],
        "item": lambda x, a, m: a.item(1),
        "one number's item": lambda x, a, m: np.asanyarray(x).item(),
        "list": lambda x, a, m: a.tolist(),
        "determinant": lambda x, a, m: np.linalg.det(m),
        "cholesky": lambda x, a, m: np.linalg.cholesky(m),
        "unique": lambda x, a, m: np.unique(a),
        "accumulated": lambda x, a, m: np.minimum.accumulate(a),
        "outer difference": lambda x, a, m: np.subtract.outer(a, a),
        "built-in sorted": lambda x, a, m: sorted(a),
        "parts": lambda x, a, m: np.modf(a),
        "where as an option": lambda x, a, m: np.add(a, 1, where=a > 0, out=np.zeros(3)),
        "copied": lambda x, a, m: copy.copy(a),
        "deeply copied": lambda x, a, m: copy.deepcopy(a),
        "as text": lambda x, a, m: a.astype(str),
    }
    | {f"method {name}": lambda x, a, m, name=name: getattr(m, name)() for name in REDUCTIONS}
    | {
        f"function {name}": lambda x, a, m, name=name: getattr(np, name)(m, axis=0)
        for name in REDUCTIONS
    }
)


@pytest.mark.parametrize("way", COMPUTED)
def test_results_are_right_and_stay_internal(way: str) -> None:
    expected = COMPUTED[way](NUMBER, ARRAY.copy(), MATRIX.copy())
    found = COMPUTED[way](
        as_internal(NUMBER), as_internal(ARRAY.copy()), as_internal(MATRIX.copy())
    )
    parts = found if isinstance(found, (tuple, list)) else [found]
    assert all(isinstance(part, Internal) for part in parts)
    for text in (str(found), repr(found)):
        assert shows_nothing(text)
    np.testing.assert_array_equal(reveal(found), expected)


ESCAPES: dict[str, Callable[[Any, Any], Any]] = {
    "float(h)": lambda x, a: float(x),
    "int(h)": lambda x, a: int(x),
    "complex(h)": lambda x, a: complex(x),
    "bool(h)": lambda x, a: bool(x),
    "h in list": lambda x, a: x in [2.25],
    "math.floor(h)": lambda x, a: math.floor(x),
    "math.sqrt(h)": lambda x, a: math.sqrt(x),
    "range(h)": lambda x, a: len(range(as_internal(3))),
    '"%f" % h': lambda x, a: float("%f" % x),  # noqa: UP031
    "np.float64(h)": lambda x, a: np.float64(x),
    "np.asarray(h)": lambda x, a: np.asarray(a),
    "np.array(h)": lambda x, a: np.array(a),
    "np.array([h, h])": lambda x, a: np.array([x, x]),
    "np.ascontiguousarray(h)": lambda x, a: np.ascontiguousarray(a),
    "np.fromiter(h, float)": lambda x, a: np.fromiter(a, float),
    "np.full(n, h)": lambda x, a: np.full(2, x),
    "np.full_like(plain, h)": lambda x, a: np.full_like(np.zeros(2), x),
    "np.arange(h)": lambda x, a: np.arange(x),
    "np.nditer(h)": lambda x, a: next(iter(np.nditer(a))),
    "np.ndenumerate(h)": lambda x, a: next(iter(np.ndenumerate(a)))[1],
    "plain[0] = h": lambda x, a: _assigned(x),
    "np.add.at(plain, i, h)": lambda x, a: _added_at(x),
    "np.add(h, 1, out=plain)": lambda x, a: _written(x),
    "h.view(np.ndarray)": lambda x, a: a.view(np.ndarray),
    "h.data": lambda x, a: np.frombuffer(a.data),
    "memoryview(h)": lambda x, a: np.frombuffer(memoryview(a)),
    "bytes(h)": lambda x, a: np.frombuffer(bytes(a)),
    "h.__array_interface__": lambda x, a: a.__array_interface__["data"][0],
    "h.ctypes": lambda x, a: a.ctypes.data,
    "np.from_dlpack(h)": lambda x, a: np.from_dlpack(a),
    "np.mean([h, h])": lambda x, a: np.mean([x, x]),
    "np.argmax([h, h])": lambda x, a: np.argmax([x, x]),
    "np.matrix(h)": lambda x, a: np.matrix(a),
    "np.asmatrix(h)": lambda x, a: np.asmatrix(a),
    "np.format_float_positional(h)": lambda x, a: float(np.format_float_positional(x)),
    "np.float32(h)": lambda x, a: np.float32(x),
    "math.ceil(h)": lambda x, a: math.ceil(x),
    "math.fsum(h)": lambda x, a: math.fsum(a),
    "np.kaiser(3, h)": lambda x, a: np.kaiser(3, x),
    "np.polynomial.Polynomial(h)": lambda x, a: np.polynomial.Polynomial(a).coef,
    "np.random.default_rng().choice(h)": lambda x, a: np.random.default_rng(0).choice(a),
    "np.random.default_rng().normal(h)": lambda x, a: np.random.default_rng(0).normal(x),
    "np.random.default_rng().permutation(h)": lambda x, a: np.random.default_rng(0).permutation(a),
}


def _assigned(number: Any) -> Any:
    plain = np.zeros(2)
    plain[0] = number
    return plain


def _added_at(number: Any) -> Any:
    plain = np.zeros(2)
    np.add.at(plain, [0], number)
    return plain


def _written(number: Any) -> Any:
    plain = np.zeros(())
    np.add(number, 1, out=plain)
    return plain


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")  # NumPy about its matrices
@pytest.mark.parametrize("way", ESCAPES)
def test_what_the_page_lists_does_give_plain_numbers(way: str) -> None:
    found = ESCAPES[way](as_internal(NUMBER), as_internal(ARRAY.copy()))
    assert isinstance(found, (bool, int, float, complex, np.generic, np.ndarray))
    assert not isinstance(found, Internal)


def test_the_page_lists_exactly_these() -> None:
    page = Path(__file__).resolve().parents[2].joinpath("docs", "study.md").read_text("utf-8")
    listed = page.split("give plain numbers:")[1].split(".\n")[0]
    assert set(re.findall(r"`([^`]+)`", listed)) == set(ESCAPES)


def test_what_is_written_into_a_plain_array_comes_back_internal() -> None:
    total: Any = np.zeros(3)
    total += as_internal(ARRAY)
    assert isinstance(total, Internal)
    number: Any = 1.0
    number += as_internal(NUMBER)
    assert isinstance(number, Internal)
    assert float(number) == 1 + NUMBER


def test_in_place_operations_stay_internal() -> None:
    answer = as_internal(ARRAY.copy())
    answer += 1
    answer[0] = 7
    assert isinstance(answer, Internal)
    np.testing.assert_array_equal(reveal(answer), [7, -1.5, 4.5])


def test_a_program_can_decide_count_and_index() -> None:
    """What a program needs as a Python number it gets."""
    answer = as_internal(NUMBER)
    assert answer > 2
    assert bool(as_internal(False)) is False
    assert int(answer) == 2
    assert float(answer) == NUMBER
    assert math.sqrt(answer) == 1.5
    assert ["a", "b", "c"][as_internal(1)] == "b"
    assert list(range(as_internal(2))) == [0, 1]
    assert len(as_internal(ARRAY)) == 3


def test_scalars_are_arrays_without_axes() -> None:
    assert as_internal(3).shape == () == internal_array(np.float32(1)).shape
    assert as_internal(ARRAY)[0].shape == ()
    assert as_internal("text") == "text"
    assert as_internal(None) is None


numbers = st.one_of(st.integers(-(2**60), 2**60), st.floats(allow_nan=False), st.booleans())
flat = st.one_of(numbers, st.text(), st.none())


@settings(max_examples=40)
@given(st.one_of(flat, st.lists(flat), st.lists(flat).map(tuple)))
def test_revealing_undoes_hiding(value: Any) -> None:
    """Of a value, and of the items of a list or tuple."""
    found = reveal(as_internal(value))
    assert found == value
    assert type(found) is type(value)
    assert reveal(value) == value


def test_a_list_that_holds_itself_is_revealed() -> None:
    endless: list[Any] = [as_internal(1)]
    endless.append(endless)
    assert reveal(endless)[0] == 1
